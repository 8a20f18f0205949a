/* MaxPool with dilations, indices or ceil_mode (and of bytes), Col2Im and MaxUnpool of float32.
 *
 *   MaxPool   one row of the output at a time; each tap is a row of x, `stride` apart
 *
 *               y row   [ . m m m m . ]    those columns whose tap lies on x
 *               tap     x x x x x x
 *
 *   Col2Im    the same the other way round: rows of columns are added to rows of the image
 *
 * Up to three spatial axes, of which missing ones are of size 1 in front; the rest goes to the
 * reference. Threads take planes.
 */
#include "fast_conv.h"
#include "window_rows.h"

#include "engine/core/pool.h"
#include "engine/core/simd.h"
#include "engine/cpu/rows/fast_rows.h"

#include <math.h>

void ot_row_window_of(const ot_window *w, ot_row_window *v)
{
    v->in_n = v->out_n = v->k_n = 1;
    for (uint32_t a = 0; a < OT_ROW_AXES; a++) {
        bool own = a + w->n >= OT_ROW_AXES;
        uint32_t k = own ? a + w->n - OT_ROW_AXES : 0;
        v->in[a] = own ? w->in[k] : 1;
        v->out[a] = own ? w->out[k] : 1;
        v->kernel[a] = own ? w->kernel[k] : 1;
        v->stride[a] = own ? w->stride[k] : 1;
        v->dilation[a] = own ? w->dilation[k] : 1;
        v->lo[a] = own ? w->lo[k] : 0;
        v->in_n *= v->in[a];
        v->out_n *= v->out[a];
        v->k_n *= v->kernel[a];
    }
}

/* Where tap k of window `at` lies along an axis; false: on no element. */
static bool place(const ot_row_window *v, uint32_t a, int64_t at, int64_t k, int64_t *in)
{
    *in = at * v->stride[a] - v->lo[a] + k * v->dilation[a];
    return *in >= 0 && *in < v->in[a];
}

/* Windows [*first, *end) of the last axis whose tap k lies on an element; that of the first is
 * *in. */
static bool columns_of(const ot_row_window *v, int64_t k, int64_t *first, int64_t *end, int64_t *in)
{
    int64_t s = v->stride[2], shift = k * v->dilation[2] - v->lo[2];
    *first = shift < 0 ? ot_ceil_div(-shift, s) : 0;
    *end = ot_min(v->out[2], shift < v->in[2] ? ot_ceil_div(v->in[2] - shift, s) : 0);
    *in = *first * s + shift;
    return *first < *end;
}

/* A tap of a row of windows: its row of x, and its place in the kernel; false: it is on no row. */
static bool row_of(const ot_row_window *v, const int64_t at[2], int64_t k, int64_t *row)
{
    int64_t z, y;
    if (!place(v, 0, at[0], k / v->kernel[1], &z) || !place(v, 1, at[1], k % v->kernel[1], &y))
        return false;
    *row = (z * v->in[1] + y) * v->in[2];
    return true;
}

/* ---- MaxPool ---- */

#define LARGEST(name, type)                                                                       \
    OT_CLONES static void name(type *restrict y, const type *restrict x, int64_t n, int64_t step) \
    {                                                                                             \
        if (step == 1)                                                                            \
            for (int64_t i = 0; i < n; i++) y[i] = x[i] > y[i] ? x[i] : y[i];                     \
        else if (step == 2)                                                                       \
            for (int64_t i = 0; i < n; i++) y[i] = x[2 * i] > y[i] ? x[2 * i] : y[i];             \
        else                                                                                      \
            for (int64_t i = 0; i < n; i++) y[i] = x[i * step] > y[i] ? x[i * step] : y[i];       \
    }

LARGEST(largest, float)
LARGEST(largest_u8, uint8_t)
LARGEST(largest_i8, int8_t)

/* The same, and where they are: positions in the plane, x[0] at `from`. A first tap (position -1)
 * is taken whatever it is. */
OT_CLONES static void largest_at(float *restrict y, int64_t *restrict at, const float *restrict x,
                                 int64_t n, int64_t step, int64_t from)
{
    for (int64_t i = 0; i < n; i++) {
        float v = x[i * step];
        bool take = (at[i] < 0) | (v > y[i]);
        y[i] = take ? v : y[i];
        at[i] = take ? from + i * step : at[i];
    }
}

typedef struct max_pool {
    ot_row_window w;
    ot_dtype type;
    const void *x;
    void *y;
    int64_t *at;  /* or NULL */
    float *lines; /* [threads][out[2]] where y is not wanted */
    bool column_major;
} max_pool;

/* Position `in` of a plane numbered column by column. */
static int64_t by_columns(const ot_row_window *w, int64_t in)
{
    int64_t x = in % w->in[2], y = in / w->in[2] % w->in[1], z = in / w->in[2] / w->in[1];
    return z + w->in[0] * (y + w->in[1] * x);
}

static void max_row(const max_pool *p, int64_t plane, const int64_t at[2], float *y, int64_t *index)
{
    const ot_row_window *w = &p->w;
    const float *x = (const float *)p->x + plane * w->in_n;
    int64_t rows = w->kernel[0] * w->kernel[1], row, first, end, in;
    for (int64_t i = 0; i < w->out[2]; i++) y[i] = -INFINITY;
    for (int64_t i = 0; index && i < w->out[2]; i++) index[i] = -1;
    for (int64_t k = 0; k < rows; k++) {
        if (!row_of(w, at, k, &row)) continue;
        for (int64_t t = 0; t < w->kernel[2]; t++) {
            if (!columns_of(w, t, &first, &end, &in)) continue;
            if (index)
                largest_at(y + first, index + first, x + row + in, end - first, w->stride[2],
                           row + in);
            else
                largest(y + first, x + row + in, end - first, w->stride[2]);
        }
    }
    for (int64_t i = 0; index && i < w->out[2]; i++) {
        int64_t best = ot_max(0, index[i]);
        index[i] = plane * w->in_n + (p->column_major ? by_columns(w, best) : best);
    }
}

/* A row of bytes, whose positions nobody wants. */
static void max_row_bytes(const max_pool *p, int64_t plane, const int64_t at[2], uint8_t *y)
{
    const ot_row_window *w = &p->w;
    const uint8_t *x = (const uint8_t *)p->x + plane * w->in_n;
    int64_t rows = w->kernel[0] * w->kernel[1], row, first, end, in;
    memset(y, p->type == OT_I8 ? 0x80 : 0, (size_t)w->out[2]);
    for (int64_t k = 0; k < rows; k++) {
        if (!row_of(w, at, k, &row)) continue;
        for (int64_t t = 0; t < w->kernel[2]; t++) {
            if (!columns_of(w, t, &first, &end, &in)) continue;
            if (p->type == OT_U8)
                largest_u8(y + first, x + row + in, end - first, w->stride[2]);
            else
                largest_i8((int8_t *)y + first, (const int8_t *)x + row + in, end - first,
                           w->stride[2]);
        }
    }
}

static void max_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const max_pool *p = job;
    const ot_row_window *w = &p->w;
    int64_t rows = w->out[0] * w->out[1];
    for (int64_t r = first; r < end; r++) {
        int64_t row = r % rows, to = r * w->out[2], at[2] = {row / w->out[1], row % w->out[1]};
        if (p->type != OT_F32)
            max_row_bytes(p, r / rows, at, (uint8_t *)p->y + to);
        else
            max_row(p, r / rows, at, p->y ? (float *)p->y + to : p->lines + worker * w->out[2],
                    p->at ? p->at + to : NULL);
    }
}

ot_status ot_fast_max_pool_rows(ot_call *c)
{
    const ot_nd *x = ot_num_in(c, 0);
    ot_window w;
    int64_t dims[OT_RANK_MAX];
    max_pool p = {.column_major = ot_attr_int(c->node, "storage_order", 0) != 0};
    bool bytes = x && (x->dtype == OT_U8 || x->dtype == OT_I8) && !ot_num_out(c, 1);
    if (!x || (x->dtype != OT_F32 && !bytes) || x->rank < 3 || x->rank > 2 + OT_ROW_AXES ||
        ot_num_count(x) == 0 || !(ot_num_out(c, 0) || ot_num_out(c, 1)))
        return ot_ref_max_pool(c);
    OT_TRY(ot_window_pool(c, &w, dims));
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, dims));
    OT_TRY(ot_call_output(c, 1, OT_I64, x->rank, dims));
    ot_row_window_of(&w, &p.w);
    double work = (double)(dims[0] * dims[1] * p.w.out_n) * (double)p.w.k_n;
    int threads = ot_rows_threads(c, work / 4);
    p.type = x->dtype;
    p.x = x->data;
    if (ot_num_out(c, 0)) p.y = c->out[0]->data;
    if (ot_num_out(c, 1)) p.at = c->out[1]->data;
    if (!p.y) p.lines = ot_num_scratch(c, threads * p.w.out[2], sizeof *p.lines);
    if (!p.y && !p.lines) return OT_E_NOMEM;
    ot_pool_share((uint32_t)threads, dims[0] * dims[1] * p.w.out[0] * p.w.out[1], 1, max_share, &p);
    return OT_OK;
}

/* ---- Col2Im ---- */

OT_CLONES static void add_row(float *restrict y, const float *restrict x, int64_t n, int64_t step)
{
    if (step == 1)
        for (int64_t i = 0; i < n; i++) y[i] += x[i];
    else
        for (int64_t i = 0; i < n; i++) y[i * step] += x[i];
}

void ot_row_window_add(const ot_row_window *w, float *y, const float *x)
{
    int64_t rows = w->out[0] * w->out[1], row, from, to, in;
    for (int64_t k = 0; k < w->k_n; k++, x += w->out_n) {
        if (!columns_of(w, k % w->kernel[2], &from, &to, &in)) continue;
        for (int64_t r = 0; r < rows; r++) {
            int64_t at[2] = {r / w->out[1], r % w->out[1]};
            if (row_of(w, at, k / w->kernel[2], &row))
                add_row(y + row + in, x + r * w->out[2] + from, to - from, w->stride[2]);
        }
    }
}

typedef struct col2im {
    ot_row_window w;
    const float *x;
    float *y;
} col2im;

static void col2im_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const col2im *p = job;
    const ot_row_window *w = &p->w;
    (void)worker;
    for (int64_t plane = first; plane < end; plane++) {
        float *y = p->y + plane * w->in_n;
        memset(y, 0, (size_t)w->in_n * sizeof *y);
        ot_row_window_add(w, y, p->x + plane * w->k_n * w->out_n);
    }
}

ot_status ot_fast_col2im(ot_call *c)
{
    ot_window w;
    int64_t dims[OT_RANK_MAX];
    col2im p = {0};
    const ot_nd *x = ot_num_in(c, 0);
    if (!x || x->dtype != OT_F32 || ot_num_count(x) == 0 || !ot_num_in(c, 1) || !ot_num_in(c, 2))
        return ot_ref_col2im(c);
    OT_TRY(ot_window_col2im(c, &w, dims));
    if (w.n > OT_ROW_AXES) return ot_ref_col2im(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, w.n + 2, dims));
    if (!ot_num_out(c, 0)) return OT_OK;
    ot_row_window_of(&w, &p.w);
    p.x = x->data;
    p.y = c->out[0]->data;
    ot_pool_share((uint32_t)ot_rows_threads(c, (double)ot_num_count(x)), dims[0] * dims[1], 1,
                  col2im_share, &p);
    return OT_OK;
}

/* ---- MaxUnpool ---- */

/* Where the output is as large as the pool's input: an index is a place. */
ot_status ot_fast_max_unpool(ot_call *c)
{
    const ot_nd *x = ot_num_in(c, 0), *index = ot_num_in(c, 1);
    int64_t from[OT_RANK_MAX], dims[OT_RANK_MAX], n;
    if (!x || !index || x->dtype != OT_F32 || index->dtype != OT_I64 || ot_num_in(c, 2) ||
        x->rank != index->rank || ot_num_count(index) != ot_num_count(x) || !ot_num_out(c, 0))
        return ot_ref_max_unpool(c);
    OT_TRY(ot_window_unpool(c, from, dims));
    if (!ot_product(dims, x->rank, &n)) return ot_ref_max_unpool(c);
    const int64_t *at = index->data;
    int64_t count = ot_num_count(x), wrong = 0;
    for (int64_t i = 0; i < count; i++) wrong |= at[i] < 0 || at[i] >= n;
    if (wrong) return ot_ref_max_unpool(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, x->rank, dims));
    float *y = c->out[0]->data;
    memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < count; i++) y[at[i]] = ((const float *)x->data)[i];
    return OT_OK;
}
