/* For tests that call kernels without a session: the threads that these share their work out to. */
#ifndef TEST_POOL_CHECK_H
#define TEST_POOL_CHECK_H

#include "engine/core/pool.h"

static ot_pool *pool_of_tests;

/* Group setup and teardown of cmocka. */
static inline int pool_start(void **state)
{
    (void)state;
    if (ot_pool_new(4, &pool_of_tests) != OT_OK) return 1;
    (void)ot_pool_use(pool_of_tests);
    return 0;
}

static inline int pool_end(void **state)
{
    (void)state;
    ot_pool_free(pool_of_tests);
    return 0;
}

#endif
