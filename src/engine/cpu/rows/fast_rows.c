/* Softmax and its relatives, and other operators on lanes; the table of the family.
 *
 *   axes before | the lane's axis | axes after          [outer, n, inner]
 *
 * inner == 1: a lane is a row. Else lanes stand next to each other: softmax runs over blocks of
 * them side by side, the others turn some lanes into rows, work on these and turn them back.
 * Other element types go to the reference.
 */
#include "fast_rows.h"

#include <math.h>

bool ot_lanes_open(const ot_nd *a, uint32_t first, uint32_t end, ot_lanes *l)
{
    *l = (ot_lanes){.outer = 1, .n = 1, .inner = 1};
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->dims[d] == 0) return false;
        *(d < first ? &l->outer : d < end ? &l->n : &l->inner) *= a->dims[d];
    }
    return true;
}

bool ot_rows_axis(int64_t axis, uint32_t rank, uint32_t *out)
{
    int64_t n = rank ? rank : 1;
    if (axis < -n || axis >= n) return false;
    *out = (uint32_t)(axis < 0 ? axis + n : axis);
    return true;
}

bool ot_rows_takes(const ot_call *c)
{
    return c->n_in > 0 && c->in[0] && c->in[0]->dtype == OT_F32 && ot_nd_is_dense(c->in[0]);
}

/* ---- Softmax, LogSoftmax ---- */

enum { SOFTMAX_BLOCK = 256 };

typedef struct softmax {
    ot_lanes l;
    bool logarithm;
    float *y;
    const float *x;
} softmax;

static void softmax_rows(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const softmax *s = job;
    int64_t n = s->l.n;
    (void)worker;
    for (int64_t at = first * n; at < end * n; at += n) {
        if (s->logarithm)
            ot_rows_log_softmax(s->y + at, s->x + at, 1, n, n, n);
        else
            ot_rows_softmax(s->y + at, s->x + at, 1, n, n, n);
    }
}

/* Blocks of lanes within each of the outer parts. */
static void softmax_blocks(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const softmax *s = job;
    int64_t inner = s->l.inner, blocks = ot_ceil_div(inner, SOFTMAX_BLOCK);
    (void)worker;
    for (int64_t p = first; p < end; p++) {
        int64_t k = p % blocks * SOFTMAX_BLOCK, at = p / blocks * s->l.n * inner + k,
                w = ot_min(SOFTMAX_BLOCK, inner - k);
        if (s->logarithm)
            ot_rows_log_softmax_columns(s->y + at, s->x + at, s->l.n, w, inner, inner);
        else
            ot_rows_softmax_columns(s->y + at, s->x + at, s->l.n, w, inner, inner);
    }
}

static void softmax_lanes(softmax *s, uint32_t threads)
{
    if (s->l.inner == 1)
        ot_pool_share(threads, s->l.outer, 1, softmax_rows, s);
    else
        ot_pool_share(threads, s->l.outer * ot_ceil_div(s->l.inner, SOFTMAX_BLOCK), 1,
                      softmax_blocks, s);
}

ot_status ot_fast_softmax(ot_call *c)
{
    if (ot_call_is_half(c))
        return ot_call_widened(
            c, ot_fast_softmax,
            ot_rows_before(c, ot_attr_int(c->node, "axis", c->node->version < 13 ? 1 : -1)));
    bool old = c->node->version < 13;
    uint32_t axis = 0;
    ot_lanes l;
    if (!ot_rows_takes(c)) return ot_op_reference(ot_rows_op(c))(c);
    const ot_nd *a = c->in[0];
    if (!ot_rows_axis(ot_attr_int(c->node, "axis", old ? a->rank > 1 : -1), a->rank, &axis) ||
        !ot_lanes_open(a, axis, old ? a->rank : axis + 1, &l))
        return ot_op_reference(ot_rows_op(c))(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, a->rank, a->dims));
    if (!ot_rows_wants(c, 0)) return OT_OK;
    softmax s = {
        .l = l, .logarithm = ot_rows_op(c) == OT_OP_LogSoftmax, .y = c->out[0]->data, .x = a->data};
    softmax_lanes(
        &s, (uint32_t)ot_rows_threads(c, 8.0 * (double)l.outer * (double)l.n * (double)l.inner));
    return OT_OK;
}

/* ---- Hardmax, LpNormalization, CumSum: functions of one row ---- */

static void hardmax(float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    memset(x, 0, (size_t)n * sizeof *x);
    x[best] = 1;
}

static void lp_one(float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)fabsf(x[i]);
    for (int64_t i = 0; i < n; i++) x[i] = sum == 0 ? 0 : (float)((double)x[i] / sum);
}

static void lp_two(float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    double norm = sqrt(sum);
    for (int64_t i = 0; i < n; i++) x[i] = norm == 0 ? 0 : (float)((double)x[i] / norm);
}

static void cumulate(float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) x[i] = (float)(sum += (double)x[i]);
}

static void cumulate_before(float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double before = sum;
        sum += (double)x[i];
        x[i] = (float)before;
    }
}

static void cumulate_back(float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = n; i-- > 0;) x[i] = (float)(sum += (double)x[i]);
}

static void cumulate_behind(float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = n; i-- > 0;) {
        double behind = sum;
        sum += (double)x[i];
        x[i] = (float)behind;
    }
}

enum { SUMS = 256 }; /* lanes side by side */

/* The same of w lanes next to each other, n elements from x on, `inner` apart; backwards with a
 * negative one. */
OT_CLONES static void cumulate_lanes(float *y, const float *x, int64_t n, int64_t w, int64_t inner,
                                     bool exclusive)
{
    double sum[SUMS] = {0};
    for (int64_t j = 0; j < n; j++, x += inner, y += inner) {
        if (exclusive) {
#pragma omp simd
            for (int64_t i = 0; i < w; i++) {
                double before = sum[i];
                sum[i] = before + (double)x[i];
                y[i] = (float)before;
            }
            continue;
        }
#pragma omp simd
        for (int64_t i = 0; i < w; i++) {
            sum[i] += (double)x[i];
            y[i] = (float)sum[i];
        }
    }
}

typedef struct sum_job {
    ot_lanes l;
    bool exclusive, reverse;
    float *y;
    const float *x;
} sum_job;

static void sums_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const sum_job *s = job;
    const ot_lanes *l = &s->l;
    int64_t blocks = ot_ceil_div(l->inner, SUMS), last = s->reverse ? (l->n - 1) * l->inner : 0;
    (void)worker;
    for (int64_t p = first; p < end; p++) {
        int64_t k = p % blocks * SUMS, at = p / blocks * l->n * l->inner + k + last;
        cumulate_lanes(s->y + at, s->x + at, l->n, ot_min(SUMS, l->inner - k),
                       s->reverse ? -l->inner : l->inner, s->exclusive);
    }
}

static ot_status sum_lanes(ot_call *c, const ot_lanes *l, int threads)
{
    const ot_nd *a = c->in[0];
    OT_TRY(ot_call_output(c, 0, OT_F32, a->rank, a->dims));
    if (!ot_rows_wants(c, 0)) return OT_OK;
    sum_job s = {.l = *l,
                 .exclusive = ot_attr_int(c->node, "exclusive", 0) != 0,
                 .reverse = ot_attr_int(c->node, "reverse", 0) != 0,
                 .y = c->out[0]->data,
                 .x = a->data};
    ot_pool_share((uint32_t)threads, l->outer * ot_ceil_div(l->inner, SUMS), 1, sums_share, &s);
    return OT_OK;
}

typedef void (*row_function)(float *x, int64_t n);

/* What the node does to a row, and the axis of its rows; NULL: the reference knows. */
static row_function read_lanes(const ot_call *c, int64_t *axis)
{
    const ot_node *n = c->node;
    int64_t order = ot_attr_int(n, "p", 2), count;
    *axis = ot_attr_int(n, "axis", -1);
    switch ((int)ot_rows_op(c)) {
    case OT_OP_Hardmax: return n->version < 13 ? NULL : hardmax;
    case OT_OP_LpNormalization: return order == 1 ? lp_one : order == 2 ? lp_two : NULL;
    case OT_OP_CumSum:
        if (c->n_in < 2 || !c->in[1] || (c->in[1]->dtype != OT_I64 && c->in[1]->dtype != OT_I32) ||
            !ot_nd_elems(c->in[1], &count) || count != 1)
            return NULL;
        *axis = ot_nd_int(c->in[1], 0);
        if (ot_attr_int(n, "exclusive", 0) != 0)
            return ot_attr_int(n, "reverse", 0) != 0 ? cumulate_behind : cumulate_before;
        return ot_attr_int(n, "reverse", 0) != 0 ? cumulate_back : cumulate;
    default: return NULL;
    }
}

enum { TURNED = 16 }; /* lanes that are rows for a while */

/* Lanes [k, k + w) of one outer part. */
static void turn_and_run(const ot_lanes *l, row_function f, float *y, const float *x, int64_t w,
                         float *rows)
{
    ot_rows_transpose(rows, x, l->n, w, l->n, l->inner);
    for (int64_t k = 0; k < w; k++) f(rows + k * l->n, l->n);
    ot_rows_transpose(y, rows, w, l->n, l->inner, l->n);
}

typedef struct lane_run {
    ot_lanes l;
    row_function f;
    float *y;
    const float *x;
    float *scratch; /* [threads][TURNED][n] */
} lane_run;

static void lanes_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const lane_run *r = job;
    const ot_lanes *l = &r->l;
    int64_t blocks = ot_ceil_div(l->inner, TURNED);
    for (int64_t p = first; p < end; p++) {
        int64_t k = p % blocks * TURNED, at = p / blocks * l->n * l->inner + k;
        if (l->inner == 1) {
            memmove(r->y + at, r->x + at, (size_t)l->n * sizeof *r->y);
            r->f(r->y + at, l->n);
        } else {
            turn_and_run(l, r->f, r->y + at, r->x + at, ot_min(TURNED, l->inner - k),
                         r->scratch + worker * TURNED * l->n);
        }
    }
}

static int64_t lane_axis(const ot_call *c)
{
    int64_t axis;
    return read_lanes(c, &axis) ? axis : 0;
}

ot_status ot_fast_lanes(ot_call *c)
{
    if (ot_call_is_half(c))
        return ot_call_widened(c, ot_fast_lanes, ot_rows_before(c, lane_axis(c)));
    int64_t axis_given, bytes = 0;
    uint32_t axis = 0;
    ot_lanes l;
    row_function f = ot_rows_takes(c) ? read_lanes(c, &axis_given) : NULL;
    if (!f || !ot_rows_axis(axis_given, c->in[0]->rank, &axis) ||
        !ot_lanes_open(c->in[0], axis, axis + 1, &l))
        return ot_op_reference(ot_rows_op(c))(c);
    const ot_nd *a = c->in[0];
    int threads = ot_rows_threads(c, 4.0 * (double)l.outer * (double)l.n * (double)l.inner);
    if (l.inner > 1 && ot_rows_op(c) == OT_OP_CumSum) return sum_lanes(c, &l, threads);
    if (l.inner > 1 && !ot_mul_i64(l.n, (int64_t)sizeof(float) * TURNED * threads, &bytes))
        return ot_op_reference(ot_rows_op(c))(c);
    float *scratch = ot_call_scratch(c, (size_t)bytes + 1);
    if (!scratch) return ot_fail_nomem(c->diag);
    OT_TRY(ot_call_output(c, 0, OT_F32, a->rank, a->dims));
    if (!ot_rows_wants(c, 0)) return OT_OK;
    lane_run r = {.l = l, .f = f, .y = c->out[0]->data, .x = a->data, .scratch = scratch};
    ot_pool_share((uint32_t)threads, l.outer * ot_ceil_div(l.inner, TURNED), 1, lanes_share, &r);
    return OT_OK;
}

/* ---- the tables ---- */

const ot_op_entry ot_fast_rows[] = {
    {OT_OP_Softmax, ot_fast_softmax},
    {OT_OP_LogSoftmax, ot_fast_softmax},
    {OT_OP_Hardmax, ot_fast_lanes},
    {OT_OP_LpNormalization, ot_fast_lanes},
    {OT_OP_CumSum, ot_fast_lanes},
    {OT_OP_LayerNormalization, ot_fast_layer_norm},
    {OT_OP_RMSNormalization, ot_fast_layer_norm},
    {OT_OP_InstanceNormalization, ot_fast_channel_norm},
    {OT_OP_GroupNormalization, ot_fast_channel_norm},
    {OT_OP_MeanVarianceNormalization, ot_fast_mean_variance},
    {OT_OP_Moments, ot_fast_moments},
    {OT_OP_LRN, ot_fast_lrn},
    {OT_OP_ReduceSum, ot_fast_reduce},
    {OT_OP_ReduceMean, ot_fast_reduce},
    {OT_OP_ReduceMax, ot_fast_reduce},
    {OT_OP_ReduceMin, ot_fast_reduce},
    {OT_OP_ReduceProd, ot_fast_reduce},
    {OT_OP_ReduceL1, ot_fast_reduce},
    {OT_OP_ReduceL2, ot_fast_reduce},
    {OT_OP_ReduceLogSum, ot_fast_reduce},
    {OT_OP_ReduceLogSumExp, ot_fast_reduce},
    {OT_OP_ReduceSumSquare, ot_fast_reduce},
    {OT_OP_GlobalAveragePool, ot_fast_global_pool},
    {OT_OP_GlobalMaxPool, ot_fast_global_pool},
    {OT_OP_ArgMax, ot_fast_arg},
    {OT_OP_ArgMin, ot_fast_arg},
    {OT_OP_TopK, ot_fast_topk},
    {OT_OP_Asin, ot_fast_arc},
    {OT_OP_Acos, ot_fast_arc},
    {OT_OP_Atan, ot_fast_arc},
    {OT_OP_OPAQUE, NULL},
};

const ot_op_named ot_fast_rows_named[] = {
    {"com.microsoft", "SkipLayerNormalization", ot_fast_skip_layer_norm},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", ot_fast_skip_layer_norm},
    {"", "SimplifiedLayerNormalization", ot_fast_layer_norm},
    {"com.microsoft", "SimplifiedLayerNormalization", ot_fast_layer_norm},
    {"com.microsoft", "Gelu", ot_fast_gelu},
    {"com.microsoft", "BiasGelu", ot_fast_gelu},
    {"com.microsoft", "FastGelu", ot_fast_gelu},
    {"com.microsoft", "QuickGelu", ot_fast_gelu},
    {NULL, NULL, NULL},
};
