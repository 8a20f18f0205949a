/* The arena of chunks, and patterns of what lives together. Random cases print their seed. */
#include "alloc_sim/chunk_arena.h"
#include "alloc_sim/simulate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MB (INT64_C(1) << 20)

static uint64_t rng;

static uint32_t next_random(uint32_t n) { return (uint32_t)(ot_next_random(&rng) % n); }

/* ---- the arena ---- */

static void regions_grow_by_powers_of_two(void **state)
{
    (void)state;
    ot_arena *a = ot_arena_new();
    ot_chunk_arena *x = ot_chunk_arena_new(a);
    uint32_t p = ot_chunk_take(x, 72 * MB), q = ot_chunk_take(x, 72 * MB);
    assert_int_equal(
        ot_chunk_touched(x),
        144 * MB +
            8 * MB); /* two regions of 128 MB, handed out whole, and a 32nd of them for lists */
    uint32_t r = ot_chunk_take(x, 40 * MB); /* a third one, of 256 MB */
    assert_int_equal(ot_chunk_touched(x), 184 * MB + 16 * MB);
    ot_chunk_release(x, p);
    ot_chunk_release(x, q);
    ot_chunk_release(x, r);
    p = ot_chunk_take(x, 144 * MB); /* only the third holds it, 40 MB of which were touched */
    assert_int_equal(ot_chunk_touched(x), 288 * MB + 16 * MB);
    ot_chunk_release(x, p);
    p = ot_chunk_take(x, 72 * MB); /* the smallest that holds it */
    assert_int_equal(ot_chunk_touched(x), 288 * MB + 16 * MB);
    ot_arena_free(a);
}

/* Of chunks that are free the smallest that fits comes, wherever; with room, of twice the
 * size. */
static void the_smallest_that_fits_comes(void **state)
{
    (void)state;
    static const int64_t SIZES[] = {3 * MB, 5 * MB, 4 * MB, 7 * MB, 33 * MB};
    enum { N = sizeof SIZES / sizeof *SIZES };
    ot_arena *a = ot_arena_new();
    ot_chunk_arena *x = ot_chunk_arena_new(a);
    uint32_t chunks[N];
    ot_chunk_release(x, ot_chunk_take(x, 64 * MB)); /* all lie in one region */
    for (int k = 0; k < N; k++) {
        chunks[k] = ot_chunk_take(x, SIZES[k]);
        assert_int_not_equal(ot_chunk_take(x, MB / 4), OT_NONE); /* stays between them */
    }
    for (int k = 0; k < N; k++) ot_chunk_release(x, chunks[k]);
    const uint64_t before = ot_chunk_layout(x);
    for (int again = 0; again < 2; again++) {
        const uint32_t p = ot_chunk_take(x, 7 * MB / 2), q = ot_chunk_take(x, 7 * MB / 2),
                       r = ot_chunk_take_roomy(x, 2 * MB), s = ot_chunk_take(x, 2 * MB);
        assert_int_equal(p, chunks[2]); /* 4 MB */
        assert_int_equal(q, chunks[1]); /* 5 MB */
        assert_int_equal(r, chunks[3]); /* 7 MB: 3 are too few */
        assert_int_equal(s, chunks[0]);
        ot_chunk_release(x, r);
        ot_chunk_release(x, p);
        ot_chunk_release(x, s);
        ot_chunk_release(x, q);
        assert_true(ot_chunk_layout(x) == before);
    }
    ot_arena_free(a);
}

/* Random requests: chunks that are held never overlap more memory than was touched, and what
 * came back is used again. */
static void chunks_are_used_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        ot_arena *a = ot_arena_new();
        ot_chunk_arena *x = ot_chunk_arena_new(a);
        uint32_t held[32], n = 0;
        int64_t bytes[32], live = 0, most = 0, asked = 0;
        rng = seed;
        for (uint32_t k = 0; k < 400; k++) {
            if (n == 32 || (n > 0 && next_random(2))) {
                uint32_t j = next_random(n);
                ot_chunk_release(x, held[j]);
                live -= bytes[j];
                held[j] = held[--n];
                bytes[j] = bytes[n];
                continue;
            }
            bytes[n] = 1 + (int64_t)next_random(1u << (8 + next_random(14)));
            held[n] = ot_chunk_take(x, bytes[n]);
            assert_int_not_equal(held[n], OT_NONE);
            live += bytes[n];
            asked += bytes[n++];
            most = ot_max(most, live);
        }
        int64_t touched = ot_chunk_touched(x);
        if (touched < most || touched > asked + 400 * 16384)
            fail_msg("seed %llu: touched %lld, at most %lld at once, %lld in all",
                     (unsigned long long)seed, (long long)touched, (long long)most,
                     (long long)asked);
        ot_arena_free(a);
    }
}

/* The mark of a layout is the same once the same is free, however that came about; another
 * otherwise. */
static void layouts_have_marks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        ot_arena *a = ot_arena_new();
        ot_chunk_arena *x = ot_chunk_arena_new(a);
        uint32_t held[24], n = 0;
        rng = seed;
        for (uint32_t k = 0; k < 12; k++) held[n++] = ot_chunk_take(x, 1 + next_random(300000));
        for (uint32_t k = 0; k < 6; k++) ot_chunk_release(x, held[--n]);
        const int64_t touched = ot_chunk_touched(x);
        const uint64_t before = ot_chunk_layout(x), mark = ot_chunk_mark(x, held[0]);
        const uint32_t first = n;
        while (n < 20) {
            held[n++] = ot_chunk_take(x, 1 + next_random(40000));
            if (ot_chunk_layout(x) == before)
                fail_msg("seed %llu: a chunk left no trace", (unsigned long long)seed);
        }
        while (n > first) { /* in some order */
            const uint32_t j = first + next_random(n - first);
            ot_chunk_release(x, held[j]);
            held[j] = held[--n];
        }
        const bool more = ot_chunk_touched(x) > touched; /* a region came */
        if (!more && ot_chunk_layout(x) != before)
            fail_msg("seed %llu: the same is free", (unsigned long long)seed);
        assert_true(ot_chunk_mark(x, held[0]) == mark && ot_chunk_mark(x, OT_NONE) == 0);
        assert_true(mark != ot_chunk_mark(x, held[1]));
        ot_arena_free(a);
    }
}

/* ---- patterns ---- */

static void patterns_hold_what_lives_together(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        ot_arena *a = ot_arena_new();
        ot_pattern p = {0};
        int64_t live = 0, most = 0;
        rng = seed;
        for (uint32_t k = 0; k < 200; k++) {
            if (p.n > 12 || (p.n > 0 && next_random(2))) {
                const ot_pattern_block b = p.live[next_random((uint32_t)p.n)];
                live -= b.hi - b.lo;
                ot_pattern_release(&p, b.buffer);
            } else {
                int64_t bytes = 1 + next_random(1000);
                assert_true(ot_pattern_take(&p, a, k, bytes));
                live += bytes;
            }
            most = ot_max(most, live);
            for (size_t j = 0; j + 1 < p.n; j++)
                if (p.live[j].hi > p.live[j + 1].lo)
                    fail_msg("seed %llu: blocks overlap", (unsigned long long)seed);
            if (p.n && p.live[p.n - 1].hi > p.height)
                fail_msg("seed %llu: a block above the height", (unsigned long long)seed);
        }
        if (p.height < most)
            fail_msg("seed %llu: height %lld below %lld", (unsigned long long)seed,
                     (long long)p.height, (long long)most);
        ot_arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_grow_by_powers_of_two),
        cmocka_unit_test(the_smallest_that_fits_comes),
        cmocka_unit_test(chunks_are_used_again),
        cmocka_unit_test(layouts_have_marks),
        cmocka_unit_test(patterns_hold_what_lives_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
