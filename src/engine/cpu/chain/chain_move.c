/* Blocks from memory and back where the memory is not as the block is.
 *
 *     memory, strides (row, col)            block
 *     a . . . b . . . c . . .               a b c d e f
 *     d . . . e . . . f . . .     <---->    rows * cols, no holes
 */
#include "chain_ops.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

void ot_chain_fill(void *to, const void *one, int64_t n, size_t size)
{
    if (size == 1) {
        memset(to, *(const uint8_t *)one, (size_t)n);
        return;
    }
    if (size == 2) {
        uint16_t *t = to, x = *(const uint16_t *)one;
        for (int64_t i = 0; i < n; i++) t[i] = x;
        return;
    }
    float *t = to, x = *(const float *)one;
    for (int64_t i = 0; i < n; i++) t[i] = x;
}

void ot_chain_repeat(void *to, int64_t period, int64_t n, size_t size)
{
    for (int64_t have = period; have < n;) {
        int64_t more = ot_min(have, n - have);
        memcpy((char *)to + (size_t)have * size, to, (size_t)more * size);
        have += more;
    }
}

/* Copies n elements with strides in elements. */
static void line(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n,
                 size_t size)
{
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)n * size);
    } else if (size == 1) {
        uint8_t *t = to;
        const uint8_t *f = from;
        for (int64_t i = 0; i < n; i++) t[i * to_stride] = f[i * from_stride];
    } else if (size == 2) {
        uint16_t *t = to;
        const uint16_t *f = from;
        for (int64_t i = 0; i < n; i++) t[i * to_stride] = f[i * from_stride];
    } else {
        float *t = to;
        const float *f = from;
        for (int64_t i = 0; i < n; i++) t[i * to_stride] = f[i * from_stride];
    }
}

void ot_chain_load(void *to, const void *from, const ot_chain_grid *g, size_t size)
{
    char *t = to;
    const char *f = from;
    for (int64_t r = 0; r < g->rows; r++) {
        if (g->col_stride == 0)
            ot_chain_fill(t, f, g->cols, size);
        else
            line(t, 1, f, g->col_stride, g->cols, size);
        t += (size_t)g->cols * size;
        f += g->row_stride * (int64_t)size;
    }
}

void ot_chain_store(void *to, const void *from, const ot_chain_grid *g, size_t size)
{
    char *t = to;
    const char *f = from;
    for (int64_t r = 0; r < g->rows; r++) {
        line(t, g->col_stride, f, 1, g->cols, size);
        f += (size_t)g->cols * size;
        t += g->row_stride * (int64_t)size;
    }
}

void ot_chain_fill_grid(void *to, const void *one, const ot_chain_grid *g, size_t size)
{
    char *t = to;
    for (int64_t r = 0; r < g->rows; r++) {
        if (g->col_stride == 1)
            ot_chain_fill(t, one, g->cols, size);
        else
            line(t, g->col_stride, one, 0, g->cols, size);
        t += g->row_stride * (int64_t)size;
    }
}

#ifdef __SSE2__
void ot_chain_stream(float *to, const float *from, int64_t n)
{
    int64_t i = 0;
    for (; i < n && (uintptr_t)(to + i) % 64; i++) to[i] = from[i];
    for (; i + 16 <= n; i += 16) /* a cache line at once */
        for (int64_t k = 0; k < 16; k += 4) _mm_stream_ps(to + i + k, _mm_loadu_ps(from + i + k));
    for (; i < n; i++) to[i] = from[i];
}

void ot_chain_stream_end(void) { _mm_sfence(); }
#else
void ot_chain_stream(float *to, const float *from, int64_t n)
{
    memcpy(to, from, (size_t)n * sizeof *to);
}

void ot_chain_stream_end(void) {}
#endif
