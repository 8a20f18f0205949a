/* Convolutions, ordinary and transposed, of arrays of 16 bits: float32 implementations on strips of
 * rows.
 *
 *   x [16 bits]            strip of x                 strip of y              y [16 bits]
 *   ......                 . . . . . .  (pads: 0)
 *   rows that the  -widen-> x x x x x x  -kernel->   y y y y y y  -narrow->   rows of the strip
 *   strip reads            x x x x x x               y y y y y y
 *   ......                 residual --widen---------^
 *
 * The first spatial axis is cut; an image is one job after another, or all threads take jobs,
 * each with scratch and primitives of its own. All strips are alike: one implementation computes
 * them, with the pads of that axis in the strip, as zeros; rows of the last one beyond the end are
 * computed and dropped. A strip is as long as the caches like it, so widening costs next to
 * nothing, and no float32 array of full size exists. Sums, bias and what follows are float32;
 * the result is rounded once.
 */
#include "conv.h"
#include "engine/core/half.h"
#include "winograd.h"

#include <math.h>
#include <stdatomic.h>

/* of a strip's input and result: half of a core's second-level cache */
#define STRIP_BYTES ((int64_t)512 << 10)
/* or so many times the weights, which are read once a strip */
#define STRIP_WEIGHTS 2
#define STRIP_MOST    ((int64_t)4 << 20)
#define TILE_ROWS     12 /* of strips for Winograd's tiles: 2, 4 or 6 rows */
#define WORKERS_MAX   256

typedef enum strip_kind { STRIP_CONV, STRIP_WINOGRAD, STRIP_TRANSPOSED } strip_kind;

typedef struct strips {
    strip_kind kind;
    ot_dtype type;
    uint32_t n_workers;
    void **ops; /* [n_workers] conv_op, deconv_setup; ot_winograd: one for all */
    ot_nd x, y; /* forms of a strip, in the layouts of the arrays */
    lw_layout lx, ly;
    int64_t count, rows, out; /* strips of an image, rows of y in one, in all */
    /* first row of x that the first strip reads, from strip to strip, all */
    int64_t first, step, in;
    bool residual, sum; /* sum: adds to what is in the strip of y */
    int64_t x_bytes, y_bytes, worker_bytes;
} strips;

/* ---- how it is cut ---- */

/* Rows of x for `rows` of y, and the first of them for row 0. */
static int64_t rows_read(const lw_conv *k, int64_t rows, int64_t *first)
{
    const ot_window *w = &k->win;
    if (!k->transposed) {
        *first = -w->lo[0];
        return (rows - 1) * w->stride[0] + (w->kernel[0] - 1) * w->dilation[0] + 1;
    }
    *first = ot_ceil_div(w->lo[0] - w->kernel[0] + 1, w->stride[0]);
    return ot_floor_div(rows - 1 + w->lo[0], w->stride[0]) - *first + 1;
}

static bool is_tiled(const lw_conv *k)
{
    if (k->transposed || k->win.n != 2 || k->group != 1) return false;
    for (uint32_t a = 0; a < 2; a++)
        if (k->win.kernel[a] != 3 || k->win.stride[a] != 1 || k->win.dilation[a] != 1) return false;
    return true;
}

/* Bytes of a row of that form, whole blocks of channels. */
static double row_bytes(const lw_pass *l, const ot_nd *form)
{
    double n = (double)(ot_ceil_div(form->dims[1], l->block) * l->block) * sizeof(float);
    for (uint32_t a = 3; a < form->rank; a++) n *= (double)form->dims[a];
    return n;
}

static double work_of(const lw_conv *k)
{
    double work = (double)k->maps * (double)(k->transposed ? k->x_form.dims[1] : k->channels) *
                  (double)k->x_form.dims[0];
    for (uint32_t a = 0; a < k->win.n; a++)
        work *= (double)k->win.kernel[a] * (double)(k->transposed ? k->win.in[a] : k->win.out[a]);
    return work;
}

/* Rows of y in a strip. */
static int64_t choose_rows(const lw_pass *l, const lw_conv *k, int64_t workers)
{
    int64_t out = k->y_form.dims[2], batch = k->y_form.dims[0], first,
            step = k->transposed ? 1 : k->win.stride[0];
    int64_t unit = k->transposed ? k->win.stride[0] : 1;
    double weights = (double)k->maps * (double)k->channels * sizeof(float),
           x = row_bytes(l, &k->x_form), y = row_bytes(l, &k->y_form);
    for (uint32_t a = 0; a < k->win.n; a++) weights *= (double)k->win.kernel[a];
    double room = fmin(fmax((double)STRIP_BYTES, STRIP_WEIGHTS * weights), (double)STRIP_MOST);
    double halo = (double)(k->transposed ? 1 : rows_read(k, 1, &first) - 1) * x;
    double each = y + (k->transposed ? x / (double)unit : x * (double)step);
    int64_t rows = room > halo + each ? (int64_t)fmin((room - halo) / each, (double)out) : 1;
    if (is_tiled(k)) {
        rows = rows >= TILE_ROWS ? rows / TILE_ROWS * TILE_ROWS : rows > 4 ? 6 : 4;
        unit = rows < 6 ? 4 : rows < TILE_ROWS ? 6 : 2;
    }
    rows = ot_max(rows / unit, 1) * unit;
    int64_t n = ot_ceil_div(out, rows);
    if (workers > 1) n = ot_max(n, ot_ceil_div(ot_ceil_div(n * batch, workers) * workers, batch));
    rows = ot_ceil_div(ot_ceil_div(out, n), unit) * unit;
    return ot_min(rows, out);
}

/* The convolution of one strip. */
static void cut(const lw_pass *l, const lw_conv *k, strips *s, lw_conv *sub)
{
    s->type = k->type;
    s->n_workers = (uint32_t)ot_min(lw_threads(l, work_of(k)), WORKERS_MAX);
    s->out = k->y_form.dims[2];
    s->in = k->x_form.dims[2];
    s->rows = choose_rows(l, k, s->n_workers);
    s->count = ot_ceil_div(s->out, s->rows);
    *sub = *k;
    sub->alone = true;
    sub->type = OT_F32;
    if (s->count > 1) {
        sub->win.in[0] = rows_read(k, s->rows, &s->first);
        sub->win.lo[0] = k->transposed ? k->win.lo[0] - s->first * k->win.stride[0] : 0;
        sub->win.hi[0] = 0;
        sub->win.out[0] = s->rows;
        s->step = k->transposed ? s->rows / k->win.stride[0] : s->rows * k->win.stride[0];
    }
    sub->x_form.dims[0] = sub->y_form.dims[0] = 1;
    sub->x_form.dims[2] = sub->win.in[0];
    sub->y_form.dims[2] = s->rows;
    ot_nd_set_dense(&sub->x_form, OT_F32, k->x_form.rank, sub->x_form.dims);
    ot_nd_set_dense(&sub->y_form, OT_F32, k->y_form.rank, sub->y_form.dims);
    s->n_workers = (uint32_t)ot_min(s->n_workers, s->count * k->y_form.dims[0]);
}

bool lw_strips_supported(lw_pass *l, const lw_conv *k)
{
    strips s = {0};
    lw_conv sub;
    cut(l, k, &s, &sub);
    return k->transposed ? lw_deconv_supported(l, &sub) : lw_conv_supported(l, &sub);
}

/* ---- running ---- */

/* The box of a strip's rows: [blocks or channels, rows, ..., channels of a block]. Of arrays
 * with strides in elements. */
typedef struct strip_box {
    uint32_t rank;
    int64_t dims[OT_HALF_RANK], strip[OT_HALF_RANK], whole[OT_HALF_RANK];
} strip_box;

static strip_box box_of(const ot_nd *strip, const ot_nd *whole, int64_t rows)
{
    strip_box b = {.rank = strip->rank - 1};
    for (uint32_t a = 0; a < b.rank; a++) {
        b.dims[a] = strip->dims[a + 1];
        b.strip[a] = strip->strides[a + 1];
        b.whole[a] = whole->strides[a + 1];
    }
    b.dims[1] = rows;
    if (strip->chan_block) {
        b.dims[0] = ot_ceil_div(strip->dims[1], strip->chan_block);
        b.dims[b.rank] = strip->chan_block;
        b.strip[b.rank] = b.whole[b.rank] = 1;
        b.rank++;
    }
    return b;
}

/* Rows [from, from + n) of the strip are zeros. */
static void clear_rows(const ot_nd *strip, float *to, int64_t from, int64_t n)
{
    int64_t blocks = strip->chan_block ? ot_ceil_div(strip->dims[1], strip->chan_block)
                                       : strip->dims[1];
    for (int64_t c = 0; c < blocks && n > 0; c++)
        memset(to + c * strip->strides[1] + from * strip->strides[2], 0,
               (size_t)(n * strip->strides[2]) * sizeof *to);
}

/* Rows from `row` on of image `image`; those that x does not have are zeros. */
static void load(const strips *s, const ot_nd *strip, const ot_nd *x, int64_t image, int64_t row,
                 int64_t all, float *to)
{
    int64_t n = strip->dims[2], before = ot_min(ot_max(-row, 0), n),
            end = ot_max(ot_min(all - row, n), before);
    const uint16_t *from = (const uint16_t *)x->data + image * x->strides[0] +
                           (row + before) * x->strides[2];
    clear_rows(strip, to, 0, before);
    clear_rows(strip, to, end, n - end);
    if (end == before) return;
    strip_box b = box_of(strip, x, end - before);
    ot_half_widen_box(s->type, b.rank, b.dims, to + before * strip->strides[2], b.strip, from,
                      b.whole);
}

static void store(const strips *s, const ot_nd *y, int64_t image, int64_t row, const float *from)
{
    strip_box b = box_of(&s->y, y, ot_min(s->rows, s->out - row));
    uint16_t *to = (uint16_t *)y->data + image * y->strides[0] + row * y->strides[2];
    ot_half_narrow_box(s->type, b.rank, b.dims, to, b.whole, from, b.strip);
}

static bool run_kernel(const strips *s, void *op, float *x, float *y, float *residual, void *work)
{
    ot_nd from = s->x, to = s->y;
    from.data = x;
    to.data = y;
    if (s->kind == STRIP_TRANSPOSED) return lw_deconv_run(op, &from, &to, work, 1);
    if (s->kind == STRIP_CONV) return lw_conv_run(op, x, y, residual, work);
    ot_winograd_run(op, x, from.strides, y, to.strides, residual, work);
    return true;
}

static bool run_job(const strips *s, const ot_call *c, int64_t job, uint32_t worker)
{
    int64_t image = job / s->count, strip = job % s->count;
    float *x = (float *)(void *)((char *)c->work + worker * s->worker_bytes),
          *y = x + s->x_bytes / (int64_t)sizeof *x;
    float *rest = y + s->y_bytes / (int64_t)sizeof *y, *residual = s->sum ? y : rest;
    void *work = s->residual && !s->sum ? rest + s->y_bytes / (int64_t)sizeof *y : rest;
    load(s, &s->x, c->in[0], image, s->first + strip * s->step, s->in, x);
    if (s->residual) load(s, &s->y, c->in[1], image, strip * s->rows, s->out, residual);
    if (!run_kernel(s, s->ops[s->kind == STRIP_WINOGRAD ? 0 : worker], x, y,
                    s->residual ? residual : NULL, work))
        return false;
    store(s, c->out[0], image, strip * s->rows, y);
    return true;
}

typedef struct strip_run {
    const strips *s;
    const ot_call *c;
    atomic_bool failed;
} strip_run;

static void jobs_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    strip_run *r = job;
    for (int64_t j = first; j < end; j++)
        if (!run_job(r->s, r->c, j, worker)) r->failed = true;
}

static ot_status run_strips(ot_call *c)
{
    const strips *s = c->state->data;
    OT_TRY(ot_call_place(c, 0));
    strip_run r = {.s = s, .c = c};
    ot_pool_share_each(s->n_workers, s->count * c->out[0]->dims[0], jobs_share, &r);
    return r.failed ? ot_call_fail(c, "oneDNN failed") : OT_OK;
}

/* ---- making it ---- */

static void free_strips(void *data)
{
    strips *s = data;
    for (uint32_t w = 0; s->ops && w < s->n_workers; w++) {
        if (s->kind == STRIP_CONV) lw_conv_free(s->ops[w]);
        if (s->kind == STRIP_TRANSPOSED) lw_deconv_free(s->ops[w]);
        if (s->kind == STRIP_WINOGRAD && w == 0) ot_winograd_free(s->ops[w]);
    }
}

static int64_t aligned(int64_t bytes)
{
    return ot_ceil_div(bytes, OT_ARENA_ALIGN) * OT_ARENA_ALIGN;
}

static ot_status open_transposed(lw_pass *l, const lw_conv *sub, strips *s, int64_t *work)
{
    s->kind = STRIP_TRANSPOSED;
    for (uint32_t w = 0; w < s->n_workers; w++) {
        deconv_setup *d;
        OT_TRY(lw_deconv_op(l, sub, &d, &s->lx, &s->ly));
        s->ops[w] = d;
        *work = lw_deconv_work(d);
    }
    return OT_OK;
}

static ot_status open_plain(lw_pass *l, const lw_conv *sub, strips *s, int64_t *work)
{
    ot_winograd *wino;
    ot_nd x, y;
    OT_TRY(lw_winograd_op(l, sub, &wino));
    if (wino) {
        s->kind = STRIP_WINOGRAD;
        s->ops[0] = wino;
        s->lx = s->ly = LW_BLOCK;
        s->sum = s->residual;
        *work = ot_winograd_scratch(wino);
        return OT_OK;
    }
    s->kind = STRIP_CONV;
    s->sum = s->residual && sub->posts[0].kind == LW_POST_ADD;
    bool found = lw_conv_choose(l, sub, s->sum, &s->lx, &s->ly);
    if (!found && s->sum) found = lw_conv_choose(l, sub, s->sum = false, &s->lx, &s->ly);
    if (!found) return ot_fail_nomem(l->p->s->d); /* it had one, which can only lack memory now */
    lw_conv_in_layout(l, &sub->x_form, s->lx, &x);
    lw_conv_in_layout(l, &sub->y_form, s->ly, &y);
    for (uint32_t w = 0; w < s->n_workers; w++) {
        conv_op *op;
        OT_TRY(lw_conv_op(l, sub, &x, &y, s->sum, &op));
        s->ops[w] = op;
        if (!op) return ot_fail_nomem(l->p->s->d);
        *work = lw_conv_work(op);
    }
    return OT_OK;
}

static ot_status open_strips(lw_pass *l, const lw_conv *k, strips *s)
{
    lw_conv sub;
    int64_t work = 0;
    cut(l, k, s, &sub);
    s->residual = k->residual != OT_NONE;
    s->ops = OT_NEW_N(l->a, void *, s->n_workers);
    if (!s->ops) return ot_fail_nomem(l->p->s->d);
    OT_TRY(k->transposed ? open_transposed(l, &sub, s, &work) : open_plain(l, &sub, s, &work));
    lw_conv_in_layout(l, &sub.x_form, s->lx, &s->x);
    lw_conv_in_layout(l, &sub.y_form, s->ly, &s->y);
    if (!ot_nd_span(&s->x, &s->x_bytes) || !ot_nd_span(&s->y, &s->y_bytes))
        return ot_fail_nomem(l->p->s->d);
    s->x_bytes = aligned(s->x_bytes);
    s->y_bytes = aligned(s->y_bytes);
    s->worker_bytes = s->x_bytes + s->y_bytes * (s->residual && !s->sum ? 2 : 1) + aligned(work);
    return OT_OK;
}

static ot_status push(lw_pass *l, lw_unit *u, const lw_conv *k, strips *s)
{
    ot_id in[2], out;
    int64_t work;
    ot_step *step = NULL;
    unsigned views = s->lx == LW_BLOCK ? LW_ANY_BLOCK : LW_ANY_PLAIN,
             same = s->ly == LW_BLOCK ? LW_ANY_BLOCK : LW_ANY_PLAIN;
    OT_TRY(lw_need(l, k->x, views, s->lx, &in[0]));
    if (s->residual) OT_TRY(lw_need(l, k->residual, same, s->ly, &in[1]));
    OT_TRY(lw_make(l, k->y, s->ly, &out));
    if (!ot_mul_i64(s->worker_bytes, s->n_workers, &work)) return ot_fail_nomem(l->p->s->d);
    OT_TRY(lw_push(l, u->nodes[0], run_strips, s, (ot_id_list){in, s->residual ? 2 : 1},
                   (ot_id_list){&out, 1}, &step));
    step->state = (ot_op_state){s, free_strips};
    step->work = work;
    /* A strip is read before it is written; other readers must be gone. */
    if (s->residual && lw_conv_adds_in_place(l, k, (uint32_t)(u - l->units)) &&
        in[1] == l->v[k->residual].version[s->ly])
        step->in_place = 1;
    return OT_OK;
}

ot_status lw_write_strips(lw_pass *l, lw_unit *u)
{
    const lw_conv *k = u->plan;
    strips *s = OT_NEW(l->a, strips);
    if (!s) return ot_fail_nomem(l->p->s->d);
    ot_status st = open_strips(l, k, s);
    if (st == OT_OK) st = push(l, u, k, s);
    if (st != OT_OK) free_strips(s);
    return st;
}
