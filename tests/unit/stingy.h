/* An allocator that lets so many blocks through, for ot_set_alloc_hook. */
#ifndef TEST_STINGY_H
#define TEST_STINGY_H

#include <stddef.h>
#include <stdlib.h>

static long allowed;

static inline void *stingy(void *ptr, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (new_size && allowed-- <= 0) return NULL;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

#endif
