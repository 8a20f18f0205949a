/* Copies between boxes and changes of layout, against loops over indices: random boxes of random
 * sizes, permutations, strides and directions, inside memory whose other bytes must stay as they
 * were. */
#include "engine_check.h"
#include "pool_check.h"

#include "engine/cpu/move/box.h"
#include "engine/core/simd.h"

#include <time.h>

static uint64_t seed;

static int64_t below(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

static int start(void **state)
{
    const char *given = getenv("SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)seed);
    return pool_start(state);
}

/* ---- boxes ---- */

typedef struct layout {
    int64_t strides[OT_BOX_RANK], first, elems; /* elems: of the memory around it */
} layout;

/* The dims in a random order in memory, with gaps and backwards at times. `repeat`: some strides
 * are 0. */
static layout random_layout(uint32_t rank, const int64_t *dims, bool repeat)
{
    layout l = {0};
    uint32_t order[OT_BOX_RANK];
    int64_t step = below(6) ? 1 : 2;
    for (uint32_t k = 0; k < rank; k++) order[k] = k;
    for (uint32_t k = rank; k > 1; k--) {
        uint32_t j = (uint32_t)below(k), swap = order[k - 1];
        order[k - 1] = order[j];
        order[j] = swap;
    }
    for (uint32_t k = 0; k < rank; k++) {
        uint32_t d = order[k];
        bool back = !below(8);
        if (repeat && !below(4)) continue;
        l.strides[d] = back ? -step : step;
        if (back) l.first += step * (dims[d] - 1);
        step *= dims[d] + (below(4) ? 0 : below(5));
    }
    l.first += below(4);
    l.elems = step + 8;
    return l;
}

static void random_dims(uint32_t rank, int64_t *dims, int64_t most)
{
    static const int64_t usual[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 33, 64, 70};
    int64_t n = 1;
    for (uint32_t k = 0; k < rank; k++) {
        dims[k] = usual[below(16)];
        while (n * dims[k] > most) dims[k] = (dims[k] + 1) / 2 > 1 ? dims[k] / 2 : 1;
        n *= dims[k];
    }
}

static void next_index(uint32_t rank, const int64_t *dims, int64_t *pos)
{
    for (uint32_t k = rank; k-- > 0;) {
        if (++pos[k] < dims[k]) return;
        pos[k] = 0;
    }
}

static void naive_copy(size_t size, uint32_t rank, const int64_t *dims, char *dst,
                       const int64_t *ds, const char *src, const int64_t *ss)
{
    int64_t pos[OT_BOX_RANK] = {0}, n = 1;
    for (uint32_t k = 0; k < rank; k++) n *= dims[k];
    for (int64_t i = 0; i < n; i++) {
        int64_t t = 0, f = 0;
        for (uint32_t k = 0; k < rank; k++) {
            t += pos[k] * ds[k];
            f += pos[k] * ss[k];
        }
        memcpy(dst + t * (int64_t)size, src + f * (int64_t)size, size);
        next_index(rank, dims, pos);
    }
}

static char *random_bytes(size_t n)
{
    char *p = malloc(n);
    assert_non_null(p);
    for (size_t k = 0; k < n; k++) p[k] = (char)below(256);
    return p;
}

static void try_box(uint32_t rank, const int64_t *dims, size_t size, bool fill, uint32_t threads)
{
    layout to = random_layout(rank, dims, false), from = random_layout(rank, dims, true);
    if (fill) memset(from.strides, 0, sizeof from.strides);
    if (fill) from.first = 0;
    size_t n_to = (size_t)to.elems * size, n_from = (size_t)from.elems * size;
    char *src = random_bytes(n_from), *got = random_bytes(n_to), *want = malloc(n_to);
    assert_non_null(want);
    memcpy(want, got, n_to);
    int64_t at = to.first * (int64_t)size, after = from.first * (int64_t)size;
    naive_copy(size, rank, dims, want + at, to.strides, src + after, from.strides);
    if (fill)
        ot_box_fill((ot_box_shape){size, rank, dims}, got + at, to.strides, src, threads);
    else
        ot_box_copy((ot_box_shape){size, rank, dims}, got + at, to.strides, src + after,
                    from.strides, threads);
    if (memcmp(got, want, n_to) != 0) {
        for (uint32_t k = 0; k < rank; k++)
            printf("dim %lld: to %lld from %lld\n", (long long)dims[k], (long long)to.strides[k],
                   (long long)from.strides[k]);
        fail_msg("elements of %zu bytes, %u threads: wrong", size, threads);
    }
    free(src);
    free(got);
    free(want);
}

static void boxes(void **state)
{
    (void)state;
    for (int i = 0; i < 6000; i++) {
        int64_t dims[OT_BOX_RANK];
        uint32_t rank = (uint32_t)below(6);
        random_dims(rank, dims, 6000);
        try_box(rank, dims, (size_t)1 << below(4), !below(6), 1);
    }
}

static void large_boxes(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        int64_t dims[4];
        random_dims(3, dims, 60000);
        dims[3] = 2 + below(3);
        try_box(4, dims, (size_t)1 << (2 + below(2)), !below(6), 3);
    }
}

static void nothing_to_copy(void **state)
{
    (void)state;
    const int64_t dims[3] = {4, 0, 2}, strides[3] = {2, 2, 1};
    char dst[4] = "abc", src[4] = "def";
    ot_box_copy((ot_box_shape){1, 3, dims}, dst, strides, src, strides, 2);
    ot_box_fill((ot_box_shape){1, 3, dims}, dst, strides, src, 2);
    assert_string_equal(dst, "abc");
    ot_box_copy((ot_box_shape){2, 0, NULL}, dst, NULL, src, NULL, 1);
    assert_string_equal(dst, "dec");
}

/* ---- layouts ---- */

/* Where element (n, c, rest of pos) of the array lies. */
static int64_t element(const ot_nd *a, const int64_t *pos)
{
    int64_t at = 0, b = a->chan_block;
    for (uint32_t k = 0; k < a->rank; k++)
        at += (k == 1 && b > 1 ? pos[k] / b : pos[k]) * a->strides[k];
    return b > 1 ? at + pos[1] % b : at;
}

/* An array of random numbers with its own gaps between rows; *elems is the memory around it. */
static ot_nd random_array(uint32_t rank, const int64_t *dims, uint32_t block, int64_t *elems)
{
    ot_nd a = {.dtype = OT_F32, .rank = rank, .chan_block = block};
    int64_t step = block > 1 ? block : 1;
    for (uint32_t k = rank; k-- > 0;) {
        a.dims[k] = dims[k];
        a.strides[k] = step;
        step *= (k == 1 && block > 1 ? ot_ceil_div(dims[k], block) : dims[k]) +
                (below(3) ? 0 : below(4));
    }
    *elems = step + 4;
    float *data = malloc((size_t)*elems * sizeof *data);
    assert_non_null(data);
    for (int64_t k = 0; k < *elems; k++) data[k] = (float)below(1 << 20);
    a.data = data;
    return a;
}

static void naive_relayout(const ot_nd *to, const ot_nd *from)
{
    /* dims with the channels that pad */
    int64_t pos[OT_RANK_MAX] = {0}, dims[OT_RANK_MAX], n = 1, b = to->chan_block;
    memcpy(dims, to->dims, sizeof dims);
    if (b > 1) dims[1] = ot_ceil_div(dims[1], b) * b;
    for (uint32_t k = 0; k < to->rank; k++) n *= dims[k];
    for (int64_t i = 0; i < n; i++) {
        float *dst = (float *)to->data + element(to, pos);
        *dst = pos[1] < to->dims[1] ? ((const float *)from->data)[element(from, pos)] : 0;
        next_index(to->rank, dims, pos);
    }
}

static void try_relayout(uint32_t rank, const int64_t *dims, uint32_t to_block, uint32_t from_block,
                         uint32_t threads)
{
    int64_t n_to, n_from;
    ot_nd to = random_array(rank, dims, to_block, &n_to),
          from = random_array(rank, dims, from_block, &n_from), want = to;
    want.data = malloc((size_t)n_to * sizeof(float));
    assert_non_null(want.data);
    memcpy(want.data, to.data, (size_t)n_to * sizeof(float));
    naive_relayout(&want, &from);
    ot_box_relayout(&to, &from, threads);
    if (memcmp(to.data, want.data, (size_t)n_to * sizeof(float)) != 0)
        fail_msg("[%lld,%lld,...], block %u to %u, %u threads: wrong", (long long)dims[0],
                 (long long)dims[1], from_block, to_block, threads);
    free(to.data);
    free(from.data);
    free(want.data);
}

static void relayouts(void **state)
{
    static const uint32_t blocks[] = {0, 8, 16};
    (void)state;
    for (int i = 0; i < 1500; i++) {
        int64_t dims[5];
        uint32_t rank = 2 + (uint32_t)below(4);
        random_dims(rank, dims, 4000);
        dims[1] = 1 + below(40);
        try_relayout(rank, dims, blocks[below(3)], blocks[below(3)], 1);
    }
    for (int i = 0; i < 60; i++) {
        const int64_t dims[4] = {1 + below(2), 1 + below(40), 20 + below(60), 40 + below(60)};
        try_relayout(4, dims, blocks[below(3)], blocks[below(3)], 3);
    }
}

static void block_of_the_machine(void **state)
{
    (void)state;
    assert_true(ot_simd_block() == 8 || ot_simd_block() == 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes),
        cmocka_unit_test(large_boxes),
        cmocka_unit_test(nothing_to_copy),
        cmocka_unit_test(relayouts),
        cmocka_unit_test(block_of_the_machine),
    };
    return cmocka_run_group_tests(tests, start, pool_end);
}
