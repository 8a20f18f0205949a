/* Conv of what no fused step takes: shapes or weights that are not known before the run.
 *
 *   positions [first, end) --taps--> index[tap][position] (-1: a pad)         once for all channels
 *   x ------------------- gather --> columns [channel, tap][position]         of one group
 *   y [map][position] = weights [map][channel, tap] * columns + bias[map]     one product
 *
 * Threads take pieces of positions. An implementation of one element, without steps and pads, reads
 * x as it is. Numbers of 16 bits are converted to float32 on the way in, and back; sums are
 * float32. Relu and MaxPool of float16 are here, too.
 */
#include "fast_conv.h"

#include "engine/core/half.h"
#include "engine/cpu/product/fast_product.h"
#include "engine/ref/ref_window.h"
#include "engine/core/pool.h"

#include <stdatomic.h>

#define PIECE_FLOATS ((int64_t)1 << 16) /* of columns: half of a small second-level cache */
#define PIECE_MIN    64                 /* positions */

/* The elements of a as float32: as they lie, or converted in scratch. NULL: no memory. */
static const float *floats_of(ot_call *c, const ot_nd *a)
{
    if (a->dtype == OT_F32) return a->data;
    int64_t n = ot_num_count(a);
    float *f = ot_num_scratch(c, n, sizeof *f);
    if (f) ot_half_widen(a->dtype, f, a->data, n);
    return f;
}

/* ---- Conv ---- */

typedef struct conv {
    ot_conv v;
    int64_t per, maps_per, depth; /* channels and maps of a group; rows of the columns */
    int64_t piece;                /* positions at a time */
    bool direct;                  /* x serves as columns */
    const float *x, *w, *bias;
    float *y;
    int64_t *index; /* [threads][k_n][piece] */
    float *columns; /* [threads][depth][piece] */
    ot_tap *taps;   /* [threads][k_n] */
    atomic_bool failed;
} conv;

static bool is_direct(const ot_conv *v)
{
    for (uint32_t a = 0; a < v->w.n; a++)
        if (v->w.kernel[a] != 1 || v->w.stride[a] != 1 || v->w.lo[a] != 0 ||
            v->w.out[a] != v->w.in[a])
            return false;
    return true;
}

static ot_status open_scratch(ot_call *c, conv *s, int64_t threads)
{
    int64_t index, columns, taps;
    if (s->direct) return OT_OK;
    if (!ot_mul_i64(s->v.k_n, threads, &taps) || !ot_mul_i64(taps, s->piece, &index) ||
        !ot_mul_i64(index, s->per, &columns))
        return OT_E_NOMEM;
    s->index = ot_num_scratch(c, index, sizeof *s->index);
    s->columns = ot_num_scratch(c, columns, sizeof *s->columns);
    s->taps = ot_num_scratch(c, taps, sizeof *s->taps);
    return s->index && s->columns && s->taps ? OT_OK : OT_E_NOMEM;
}

/* index[tap][position] for positions [first, first + n). */
static void find_taps(const conv *s, int64_t first, int64_t n, ot_tap *taps, int64_t *index)
{
    int64_t pos[OT_RANK_MAX], rest = first;
    for (uint32_t a = s->v.w.n; a-- > 0; rest /= s->v.w.out[a]) pos[a] = rest % s->v.w.out[a];
    for (int64_t i = 0; i < s->v.k_n * n; i++) index[i] = -1;
    for (int64_t p = 0; p < n; p++, (void)ot_num_next(s->v.w.n, s->v.w.out, pos)) {
        int64_t count = ot_window_taps(&s->v.w, pos, taps);
        for (int64_t t = 0; t < count; t++) index[taps[t].k * n + p] = taps[t].in;
    }
}

OT_CLONES static void gather(float *restrict to, const float *restrict plane,
                             const int64_t *restrict index, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = index[i] >= 0 ? plane[index[i]] : 0.0f;
}

/* Positions [first, first + n) of all maps of one group of one image. */
static ot_status one_group(const conv *s, int64_t image, int64_t g, int64_t first, int64_t n,
                           const int64_t *index, float *columns)
{
    const ot_conv *v = &s->v;
    const float *x = s->x + (image * v->channels + g * s->per) * v->in_n;
    float *y = s->y + (image * v->maps + g * s->maps_per) * v->out_n + first;
    int64_t ld = s->direct ? v->in_n : n;
    for (int64_t ch = 0; !s->direct && ch < s->per; ch++)
        gather(columns + ch * v->k_n * n, x + ch * v->in_n, index, v->k_n * n);
    for (int64_t m = 0; m < s->maps_per; m++)
        for (int64_t p = 0; p < n; p++)
            y[m * v->out_n + p] = s->bias ? s->bias[g * s->maps_per + m] : 0.0f;
    ot_product_job j = {
        .m = s->maps_per, .n = n, .k = s->depth, .ldc = v->out_n, .c = y, .alpha = 1, .add = true};
    j.a = (ot_matrix){.data = s->w + g * s->maps_per * s->depth,
                      .row_step = s->depth,
                      .column_step = 1,
                      .ld = s->depth};
    j.b = (ot_matrix){
        .data = s->direct ? x + first : columns, .row_step = ld, .column_step = 1, .ld = ld};
    return ot_product_run(&j);
}

static ot_status one_piece(const conv *s, int64_t first, int64_t worker)
{
    const ot_conv *v = &s->v;
    int64_t n = ot_min(s->piece, v->out_n - first);
    int64_t *index = s->direct ? NULL : s->index + worker * v->k_n * s->piece;
    float *columns = s->direct ? NULL : s->columns + worker * s->depth * s->piece;
    if (!s->direct) find_taps(s, first, n, s->taps + worker * v->k_n, index);
    for (int64_t image = 0; image < v->batch; image++)
        for (int64_t g = 0; g < v->group; g++)
            OT_TRY(one_group(s, image, g, first, n, index, columns));
    return OT_OK;
}

static void pieces_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    conv *s = job;
    for (int64_t k = first; k < end; k++)
        if (one_piece(s, k * s->piece, worker) != OT_OK) s->failed = true;
}

static ot_status run_pieces(ot_call *c, conv *s)
{
    double work = (double)s->v.batch * (double)s->v.maps * (double)s->v.out_n * (double)s->depth /
                  8;
    int threads = ot_rows_threads(c, work);
    s->piece = ot_max(PIECE_MIN, PIECE_FLOATS / s->depth / 16 * 16);
    s->piece = ot_min(s->piece, ot_max(PIECE_MIN, ot_ceil_div(s->v.out_n, threads)));
    s->piece = ot_min(s->piece, s->v.out_n);
    OT_TRY(open_scratch(c, s, threads));
    int64_t pieces = ot_ceil_div(s->v.out_n, s->piece);
    ot_pool_share((uint32_t)threads, pieces, 1, pieces_share, s);
    return s->failed ? OT_E_NOMEM : OT_OK;
}

/* All three operands of one type of real numbers. */
static bool usual(const ot_call *c)
{
    const ot_nd *x = ot_num_in(c, 0), *b = ot_num_in(c, 2);
    if (c->n_in < 2 || !x || !c->in[1] || !ot_dtype_is_real(x->dtype) || x->rank < 3) return false;
    return c->in[1]->dtype == x->dtype && (!b || b->dtype == x->dtype) && ot_num_count(x) > 0 &&
           ot_num_count(c->in[1]) > 0;
}

ot_status ot_fast_conv(ot_call *c)
{
    conv s = {0};
    int64_t dims[OT_RANK_MAX], count;
    if (!usual(c)) return ot_ref_conv(c);
    OT_TRY(ot_conv_open(c, 0, 1, &s.v));
    OT_TRY(ot_num_dims(c, 2, 1, &s.v.maps));
    s.per = s.v.channels / s.v.group;
    s.maps_per = s.v.maps / s.v.group;
    dims[0] = s.v.batch;
    dims[1] = s.v.maps;
    memcpy(dims + 2, s.v.w.out, s.v.w.n * sizeof *dims);
    if (s.v.out_n == 0 || !ot_mul_i64(s.per, s.v.k_n, &s.depth) || s.depth < 1 ||
        !ot_product(dims, s.v.w.n + 2, &count))
        return ot_ref_conv(c);
    s.direct = is_direct(&s.v);
    OT_TRY(ot_call_output(c, 0, c->in[0]->dtype, s.v.w.n + 2, dims));
    if (!ot_num_out(c, 0)) return OT_OK;
    bool half = ot_dtype_is_half(c->in[0]->dtype);
    if (!(s.x = floats_of(c, c->in[0])) || !(s.w = floats_of(c, c->in[1]))) return OT_E_NOMEM;
    if (ot_num_in(c, 2) && !(s.bias = floats_of(c, c->in[2]))) return OT_E_NOMEM;
    s.y = half ? ot_num_scratch(c, count, sizeof *s.y) : c->out[0]->data;
    if (!s.y) return OT_E_NOMEM;
    OT_TRY(run_pieces(c, &s));
    if (half) ot_half_narrow(c->in[0]->dtype, c->out[0]->data, s.y, count);
    return OT_OK;
}

/* ---- Relu ---- */

OT_CLONES static void half_relu(uint16_t *to, const uint16_t *from, int64_t n)
{
    /* NaN stays */
    for (int64_t i = 0; i < n; i++) to[i] = from[i] > 0x8000u && from[i] <= 0xfc00u ? 0 : from[i];
}

ot_status ot_fast_relu(ot_call *c)
{
    const ot_nd *x = ot_num_in(c, 0);
    if (!x || x->dtype != OT_F16) return ot_op_reference(OT_OP_Relu)(c);
    OT_TRY(ot_call_output(c, 0, OT_F16, x->rank, x->dims));
    if (ot_num_out(c, 0)) half_relu(c->out[0]->data, x->data, ot_num_count(x));
    return OT_OK;
}

/* ---- MaxPool ---- */

/* As integers in the order of the numbers; the same function leads back. */
static inline int16_t ordered(int16_t h) { return (int16_t)(h ^ (h < 0 ? 0x7fff : 0)); }

/* Into `to`, which may be `from`. false: there is a NaN. */
OT_CLONES static bool order(int16_t *to, const int16_t *from, int64_t n)
{
    int nan = 0;
    for (int64_t i = 0; i < n; i++) {
        nan |= (from[i] & 0x7fff) > 0x7c00;
        to[i] = ordered(from[i]);
    }
    return !nan;
}

/* index [n][taps]; -1: none. */
static void pool_plane(int16_t *to, const int16_t *keys, const int64_t *index, int64_t taps,
                       int64_t n)
{
    for (int64_t p = 0; p < n; p++) {
        int16_t best = ordered((int16_t)0xfc00); /* minus infinity */
        for (int64_t t = 0; t < taps; t++) {
            int64_t at = index[p * taps + t];
            int16_t key = at >= 0 ? keys[at] : best;
            best = key > best ? key : best;
        }
        to[p] = ordered(best);
    }
}

/* The window of a pool without auto_pad and ceil_mode. */
static bool plain_window(ot_call *c, ot_window *w, int64_t *dims)
{
    const ot_nd *x = c->in[0];
    ot_diag ignored = {0};
    ot_call quiet = *c;
    quiet.diag = &ignored;
    if (ot_attr_int(c->node, "ceil_mode", 0) != 0 || ot_window_read(&quiet, x, NULL, w) != OT_OK ||
        w->same_upper || w->same_lower)
        return false;
    memcpy(dims, x->dims, 2 * sizeof *dims);
    for (uint32_t a = 0; a < w->n; a++) {
        int64_t room = w->in[a] + w->lo[a] + w->hi[a] - (w->kernel[a] - 1) * w->dilation[a] - 1;
        if (room < 0) return false;
        dims[a + 2] = w->out[a] = room / w->stride[a] + 1;
    }
    return true;
}

static void fill_index(const ot_window *w, int64_t n, int64_t taps, ot_tap *found, int64_t *index)
{
    int64_t pos[OT_RANK_MAX] = {0};
    for (int64_t p = 0; p < n; p++, (void)ot_num_next(w->n, w->out, pos)) {
        int64_t count = ot_window_taps(w, pos, found);
        for (int64_t t = 0; t < taps; t++) index[p * taps + t] = t < count ? found[t].in : -1;
    }
}

typedef struct half_pool {
    int16_t *y;
    const int16_t *keys;
    const int64_t *index; /* [out_n][taps] */
    int64_t taps, in_n, out_n;
} half_pool;

static void planes_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const half_pool *p = job;
    (void)worker;
    for (int64_t k = first; k < end; k++)
        pool_plane(p->y + k * p->out_n, p->keys + k * p->in_n, p->index, p->taps, p->out_n);
}

ot_status ot_fast_max_pool(ot_call *c)
{
    const ot_nd *x = ot_num_in(c, 0);
    ot_window w = {0};
    int64_t dims[OT_RANK_MAX], in_n, out_n, taps, table, planes;
    if (!x || x->dtype != OT_F16 || x->rank < 3 || ot_num_out(c, 1) || !ot_num_out(c, 0) ||
        ot_num_count(x) == 0 || !plain_window(c, &w, dims) || !ot_product(w.in, w.n, &in_n) ||
        !ot_product(w.out, w.n, &out_n) || !ot_product(w.kernel, w.n, &taps) ||
        !ot_mul_i64(taps, out_n, &table))
        return ot_fast_max_pool_rows(c);
    planes = x->dims[0] * x->dims[1];
    int16_t *keys = ot_num_scratch(c, ot_num_count(x), sizeof *keys);
    int64_t *index = keys ? ot_num_scratch(c, table, sizeof *index) : NULL;
    ot_tap *found = index ? ot_window_taps_new(c, &w) : NULL;
    if (!found) return OT_E_NOMEM;
    if (!order(keys, x->data, ot_num_count(x))) return ot_ref_max_pool(c); /* NaN */
    OT_TRY(ot_call_output(c, 0, OT_F16, x->rank, dims));
    fill_index(&w, out_n, taps, found, index);
    int16_t *y = c->out[0]->data;
    half_pool p = {
        .y = y, .keys = keys, .index = index, .taps = taps, .in_n = in_n, .out_n = out_n};
    ot_pool_share((uint32_t)ot_rows_threads(c, (double)planes * (double)table), planes, 1,
                  planes_share, &p);
    return OT_OK;
}

const ot_op_entry ot_fast_window[] = {
    {OT_OP_Conv, ot_fast_conv},
    {OT_OP_ConvTranspose, ot_fast_conv_transpose},
    {OT_OP_GridSample, ot_fast_grid_sample},
    {OT_OP_DeformConv, ot_fast_deform_conv},
    {OT_OP_RoiAlign, ot_fast_roi_align},
    {OT_OP_Relu, ot_fast_relu},
    {OT_OP_MaxPool, ot_fast_max_pool},
    {OT_OP_MaxUnpool, ot_fast_max_unpool},
    {OT_OP_OPAQUE, NULL},
};

const ot_op_named ot_fast_window_named[] = {
    {"", "Col2Im", ot_fast_col2im},
    {"", "MaxRoiPool", ot_fast_max_roi_pool},
    {"", "AffineGrid", ot_fast_affine_grid},
    {NULL, NULL, NULL},
};
