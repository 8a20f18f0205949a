/* Random numbers of a test whose seed is printed, and taken from SEED. */
#ifndef TEST_SEEDED_H
#define TEST_SEEDED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static uint64_t seed;

/* 0 <= result < n */
static inline int below(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static inline uint32_t draw(uint32_t n) { return (uint32_t)below((int)n); }

/* The group's setup. */
static inline int start(void **state)
{
    (void)state;
    const char *given = getenv("SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    return 0;
}

#endif
