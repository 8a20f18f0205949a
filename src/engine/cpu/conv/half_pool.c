/* Pools of arrays of 16 bits: rows are widened, folded over the axes before the last one, then
 * along it, and the result is rounded once.
 *
 *   rows under the window   x x x x x x x x  widened one by one into `row`, folded into `fold`
 *                           x x x x x x x x
 *                           ---------------
 *                     fold  . . . . . . . .  then one tap of the last axis at a time:
 *                           [   ]            y[0], y[1], ... take fold[0 * stride + tap], fold[1 *
 *                                            stride + tap], ...
 *
 * Elements are vectors of `lanes` channels in blocked arrays, single numbers in plain ones. Sums
 * of many rows are taken by pieces, and a row of which all is one window is folded in halves, so
 * that rounding errors do not add up. A largest element is NaN when all are.
 */
#include "conv.h"
#include "engine/core/half.h"
#include "engine/core/simd.h"

#include <math.h>

#define PIECE       64 /* rows that are summed before the sum joins the others */
#define WORKERS_MAX 256

typedef struct half_pool {
    ot_dtype type;
    bool most, with_pads; /* largest element, else average; of all places under the window */
    ot_window win;
    int64_t lanes, outer; /* rows of the result in one plane */
    uint32_t n_workers;
    int64_t row_floats; /* of each of a worker's three rows */
} half_pool;

/* ---- rows ---- */

OT_CLONES static void fold_rows(float *restrict to, const float *restrict from, int64_t n,
                                bool most)
{
    if (most)
        for (int64_t i = 0; i < n; i++) to[i] = from[i] > to[i] || to[i] != to[i] ? from[i] : to[i];
    else
        for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

OT_CLONES static void scale_row(float *x, int64_t n, float by)
{
    for (int64_t i = 0; i < n; i++) x[i] *= by;
}

/* Elements [from, to) of the result take one tap each. */
OT_CLONES static void fold_tap(float *restrict y, const float *restrict fold, int64_t n,
                               int64_t stride, int64_t lanes, bool most)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < lanes; j++) {
            float v = fold[i * stride * lanes + j], *to = &y[i * lanes + j];
            *to = most ? (v > *to || *to != *to ? v : *to) : *to + v;
        }
}

/* All elements of a row into the first. */
static void fold_halves(float *x, int64_t n, int64_t lanes, bool most)
{
    while (n > 1) {
        int64_t kept = (n + 1) / 2;
        fold_rows(x, x + kept * lanes, (n - kept) * lanes, most);
        n = kept;
    }
}

static void fill(float *x, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++) x[i] = value;
}

/* Positions p in [0, out) at which tap t of axis a is inside: [*from, *to). */
static void inside(const ot_window *w, uint32_t a, int64_t t, int64_t *from, int64_t *to)
{
    int64_t off = t * w->dilation[a] - w->lo[a];
    *from = ot_min(ot_max(ot_ceil_div(-off, w->stride[a]), 0), w->out[a]);
    *to = ot_max(ot_min(ot_floor_div(w->in[a] - 1 - off, w->stride[a]) + 1, w->out[a]), *from);
}

/* ---- a row of the result ---- */

/* Rows under the window at position `at` of the axes before the last, folded into `fold`; how
 * many there were. */
static int64_t fold_window(const half_pool *p, const uint16_t *plane, const int64_t *strides,
                           const int64_t *at, float *fold, float *row, float *piece)
{
    const ot_window *w = &p->win;
    uint32_t last = w->n - 1;
    int64_t n = w->in[last] * p->lanes, taps = 1, count = 0;
    for (uint32_t a = 0; a < last; a++) taps *= w->kernel[a];
    fill(fold, n, p->most ? -INFINITY : 0);
    for (int64_t t = 0; t < taps; t++) {
        int64_t rest = t, offset = 0;
        bool is_in = true;
        for (uint32_t a = last; a-- > 0; rest /= w->kernel[a]) {
            int64_t i = at[a] * w->stride[a] - w->lo[a] + rest % w->kernel[a] * w->dilation[a];
            is_in = is_in && i >= 0 && i < w->in[a];
            offset += i * strides[a];
        }
        if (!is_in) continue;
        if (p->most || taps <= PIECE) {
            ot_half_widen(p->type, count ? row : fold, plane + offset, n);
            if (count++) fold_rows(fold, row, n, p->most);
            continue;
        }
        bool first = count++ % PIECE == 0;
        if (first && count > 1) fold_rows(fold, piece, n, false);
        ot_half_widen(p->type, first ? piece : row, plane + offset, n);
        if (!first) fold_rows(piece, row, n, false);
    }
    if (!p->most && taps > PIECE && count) fold_rows(fold, piece, n, false);
    return count;
}

/* Along the last axis, from `fold` to y. */
static void fold_along(const half_pool *p, float *fold, float *y, int64_t rows)
{
    const ot_window *w = &p->win;
    uint32_t last = w->n - 1;
    int64_t n = w->out[last], lanes = p->lanes, places = 1;
    bool whole = n == 1 && w->kernel[last] == w->in[last] && w->lo[last] == 0;
    for (uint32_t a = 0; a < w->n; a++) places *= w->kernel[a];
    if (whole) {
        fold_halves(fold, w->in[last], lanes, p->most);
        memcpy(y, fold, (size_t)lanes * sizeof *y);
    } else {
        fill(y, n * lanes, p->most ? -INFINITY : 0);
        for (int64_t t = 0, from, to; t < w->kernel[last]; t++) {
            inside(w, last, t, &from, &to);
            int64_t first = from * w->stride[last] - w->lo[last] + t * w->dilation[last];
            if (w->stride[last] == 1)
                fold_rows(y + from * lanes, fold + first * lanes, (to - from) * lanes, p->most);
            else if (to > from)
                fold_tap(y + from * lanes, fold + first * lanes, to - from, w->stride[last], lanes,
                         p->most);
        }
    }
    for (int64_t i = 0; i < n && !p->most; i++) {
        int64_t columns = 0;
        for (int64_t t = 0; t < w->kernel[last] && !whole; t++) {
            int64_t at = i * w->stride[last] - w->lo[last] + t * w->dilation[last];
            columns += at >= 0 && at < w->in[last];
        }
        int64_t count = p->with_pads ? places : rows * (whole ? w->in[last] : columns);
        scale_row(y + i * lanes, lanes, 1.0f / (float)ot_max(count, 1));
    }
}

static void run_row(const half_pool *p, const ot_nd *x, const ot_nd *y, int64_t job, float *scratch)
{
    const ot_window *w = &p->win;
    int64_t planes = ot_ceil_div(x->dims[1], p->lanes), plane = job / p->outer,
            rest = job % p->outer, at[OT_RANK_MAX] = {0};
    int64_t image = plane / planes, channel = plane % planes,
            to = image * y->strides[0] + channel * y->strides[1];
    float *fold = scratch, *row = fold + p->row_floats, *result = row + p->row_floats,
          *piece = result + p->row_floats;
    for (uint32_t a = w->n - 1; a-- > 0; rest /= w->out[a]) {
        at[a] = rest % w->out[a];
        to += at[a] * y->strides[a + 2];
    }
    const uint16_t *from = (const uint16_t *)x->data + image * x->strides[0] +
                           channel * x->strides[1];
    int64_t rows = fold_window(p, from, x->strides + 2, at, fold, row, piece);
    fold_along(p, fold, result, rows);
    ot_half_narrow(p->type, (uint16_t *)y->data + to, result, w->out[w->n - 1] * p->lanes);
}

static void rows_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const ot_call *c = job;
    const half_pool *p = c->plan;
    for (int64_t j = first; j < end; j++)
        run_row(p, c->in[0], c->out[0], j, (float *)c->work + worker * 4 * p->row_floats);
}

static ot_status run_half_pool(ot_call *c)
{
    const half_pool *p = c->plan;
    OT_TRY(ot_call_place(c, 0));
    const ot_nd *x = c->in[0];
    ot_pool_share(p->n_workers, x->dims[0] * ot_ceil_div(x->dims[1], p->lanes) * p->outer, 1,
                  rows_share, c);
    return OT_OK;
}

/* ---- making it ---- */

ot_status lw_write_half_pool(lw_pass *l, lw_unit *u, const ot_window *w, bool most, bool with_pads)
{
    ot_id in, out;
    ot_step *step = NULL;
    int64_t floats, work;
    bool blocked = lw_has(l, u->in[0], LW_ANY_BLOCK);
    lw_layout layout = blocked ? LW_BLOCK : LW_PLAIN;
    half_pool *p = OT_NEW(l->a, half_pool);
    if (!p) return ot_fail_nomem(l->p->s->d);
    double each = 1;
    for (uint32_t a = 0; a < w->n; a++) each *= (double)w->in[a];
    *p = (half_pool){.type = l->v[u->in[0]].slot->fore.dtype,
                     .most = most,
                     .with_pads = with_pads,
                     .win = *w,
                     .lanes = 1,
                     .outer = 1};
    if (blocked) p->lanes = l->block;
    for (uint32_t a = 0; a + 1 < w->n; a++) p->outer *= w->out[a];
    const int64_t *dims = l->v[u->in[0]].slot->fore.dims;
    p->n_workers = (uint32_t)ot_min(lw_threads(l, each * (double)dims[0] * (double)dims[1]),
                                    WORKERS_MAX);
    OT_TRY(lw_need(l, u->in[0], blocked ? LW_ANY_BLOCK : LW_ANY_PLAIN, layout, &in));
    OT_TRY(lw_make(l, u->out[0], layout, &out));
    if (!ot_mul_i64(ot_max(w->in[w->n - 1], w->out[w->n - 1]), p->lanes, &floats))
        return ot_fail_nomem(l->p->s->d);
    p->row_floats = ot_ceil_div(floats, 16) * 16;
    if (!ot_mul_i64(p->row_floats, 4 * (int64_t)sizeof(float) * p->n_workers, &work))
        return ot_fail_nomem(l->p->s->d);
    OT_TRY(lw_push(l, u->nodes[0], run_half_pool, p, (ot_id_list){&in, 1}, (ot_id_list){&out, 1},
                   &step));
    step->work = work;
    return OT_OK;
}
