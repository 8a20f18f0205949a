/* The ten reductions: ReduceSum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp, SumSquare.
 *
 * The axes are an input in later versions (13 of ReduceSum, 18 of the others), an attribute
 * before. None at all means all of them, or, with noop_with_empty_axes, that every element is
 * reduced for itself: ReduceSumSquare still squares it.
 *
 * An accumulator takes rows of one output element one after the other:
 *
 *     for every kept position       accumulator = neutral
 *         for every reduced row         accumulator takes the row
 *         output = its result
 *
 * Floating types are summed in double. Integers wrap in 64 bits; what takes a root or a
 * logarithm of them does so in double and cuts.
 */
#include "ref_reduce.h"

#include <math.h>

typedef struct accumulator {
    ot_op op;
    bool is_u64, empty; /* of the element type; no row taken yet */
    int64_t n;          /* elements taken */
    double f, shift;    /* shift: largest element, found before, of LogSumExp */
    int64_t i;
} accumulator;

/* Reductions of integers that need no fractions. */
static bool exact(ot_op op)
{
    return op != OT_OP_ReduceL2 && op != OT_OP_ReduceLogSum && op != OT_OP_ReduceLogSumExp;
}

static void take_f(accumulator *a, const double *r, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        double x = r[k];
        bool first = a->n++ == 0;
        switch ((int)a->op) {
        case OT_OP_ReduceMax: a->f = first || isnan(x) || x > a->f ? x : a->f; break;
        case OT_OP_ReduceMin: a->f = first || isnan(x) || x < a->f ? x : a->f; break;
        case OT_OP_ReduceProd: a->f = first ? x : a->f * x; break;
        case OT_OP_ReduceL1: a->f += fabs(x); break;
        case OT_OP_ReduceL2:
        case OT_OP_ReduceSumSquare: a->f += x * x; break;
        case OT_OP_ReduceLogSumExp: a->f += exp(x - a->shift); break;
        default: a->f += x; break;
        }
    }
}

static void take_i(accumulator *a, const int64_t *r, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t x = r[k];
        bool first = a->n++ == 0;
        switch ((int)a->op) {
        case OT_OP_ReduceMax: a->i = first || ot_rm_int_less(a->i, x, a->is_u64) ? x : a->i; break;
        case OT_OP_ReduceMin: a->i = first || ot_rm_int_less(x, a->i, a->is_u64) ? x : a->i; break;
        case OT_OP_ReduceProd: a->i = first ? x : ot_rm_wrap_mul(a->i, x); break;
        case OT_OP_ReduceL1:
            a->i = x < 0 && !a->is_u64 ? ot_rm_wrap_sub(a->i, x) : ot_rm_wrap_add(a->i, x);
            break;
        case OT_OP_ReduceSumSquare: a->i = ot_rm_wrap_add(a->i, ot_rm_wrap_mul(x, x)); break;
        default: a->i = ot_rm_wrap_add(a->i, x); break;
        }
    }
}

/* The result, of nothing at all as well: neutral elements, which are infinities for Max and Min. */
static double result_f(const accumulator *a)
{
    switch ((int)a->op) {
    case OT_OP_ReduceMean: return a->f / (double)a->n;
    case OT_OP_ReduceMax: return a->n ? a->f : -(double)INFINITY;
    case OT_OP_ReduceMin: return a->n ? a->f : (double)INFINITY;
    case OT_OP_ReduceProd: return a->n ? a->f : 1;
    case OT_OP_ReduceL2: return sqrt(a->f);
    case OT_OP_ReduceLogSum: return log(a->f);
    case OT_OP_ReduceLogSumExp: return log(a->f) + a->shift;
    default: return a->f;
    }
}

static int64_t lowest(ot_dtype t)
{
    return ot_rm_kind(t) == REF_SIGNED ? (int64_t)(UINT64_MAX << (ot_dtype_bytes(t) * 8 - 1)) : 0;
}

static int64_t result_i(const accumulator *a, ot_dtype t)
{
    switch ((int)a->op) {
    case OT_OP_ReduceMean:
        return a->is_u64 ? (int64_t)((uint64_t)a->i / (uint64_t)a->n) : a->i / a->n;
    case OT_OP_ReduceMax: return a->n ? a->i : lowest(t);
    /* as many bits as the type has are stored */
    case OT_OP_ReduceMin: return a->n ? a->i : ~lowest(t);
    case OT_OP_ReduceProd: return a->n ? a->i : 1;
    default: return a->i;
    }
}

/* ---- attributes ---- */

typedef struct reduction {
    bool reduced[OT_RANK_MAX];
    bool empty; /* the input has no elements */
    bool in_double;
    uint32_t rank; /* of the output */
    int64_t dims[OT_RANK_MAX];
} reduction;

static ot_status add_axis(ot_call *c, int64_t axis, reduction *r)
{
    uint32_t d = 0;
    OT_TRY(ot_rm_axis(c, axis, c->in[0]->rank, &d));
    if (r->reduced[d]) return ot_call_fail(c, "axis %u is given twice", d);
    r->reduced[d] = true;
    return OT_OK;
}

static ot_status read_axes(ot_call *c, reduction *r)
{
    size_t n_attr = 0;
    int64_t n = 0;
    const int64_t *axes = ot_attr_ints(c->node, "axes", &n_attr);
    if (ot_rm_given(c, 1)) {
        OT_TRY(ot_rm_need_kind(c, 1, REF_INT));
        if (!ot_nd_elems(c->in[1], &n)) return ot_call_fail(c, "input 1 (axes) is too large");
    } else if (axes) {
        n = (int64_t)n_attr;
    }
    if (n == 0 && ot_attr_int(c->node, "noop_with_empty_axes", 0)) return OT_OK;
    if (n == 0)
        for (uint32_t d = 0; d < c->in[0]->rank; d++) r->reduced[d] = true;
    for (int64_t k = 0; k < n; k++)
        OT_TRY(add_axis(c, ot_rm_given(c, 1) ? ot_nd_int(c->in[1], k) : axes[k], r));
    return OT_OK;
}

static ot_status read_reduction(ot_call *c, reduction *r)
{
    const ot_nd *a = c->in[0];
    bool keep = ot_attr_int(c->node, "keepdims", 1) != 0, of_nothing = false;
    *r = (reduction){0};
    OT_TRY(read_axes(c, r));
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->dims[d] == 0) r->empty = true;
        if (a->dims[d] == 0 && r->reduced[d]) of_nothing = true;
        if (!r->reduced[d])
            r->dims[r->rank++] = a->dims[d];
        else if (keep)
            r->dims[r->rank++] = 1;
    }
    r->in_double = ot_rm_kind(a->dtype) == REF_FLOAT || !exact(ot_rm_op(c));
    if (of_nothing && !r->in_double && ot_rm_op(c) == OT_OP_ReduceMean)
        return ot_call_fail(c, "mean of no integers");
    return OT_OK;
}

/* ---- the walk ---- */

/* All elements that the counter of reduced dimensions goes through, from element `base` on. With
 * `max`, only the largest one is looked for. */
static void take_all(accumulator *a, const ot_nd *in, bool in_double, ot_rm_counter *k,
                     int64_t base)
{
    ot_rm_counter rows = *k;
    int64_t n, step;
    ot_rm_counter_split(&rows, &n, &step);
    do {
        for (int64_t i = 0; i < n; i += REF_ROW) {
            int64_t m = ot_min(REF_ROW, n - i), at = base + rows.at + i * step;
            if (in_double) {
                double r[REF_ROW];
                ot_rm_load_f(in, at, step, m, r);
                take_f(a, r, m);
            } else {
                int64_t r[REF_ROW];
                ot_rm_load_i(in, at, step, m, r);
                take_i(a, r, m);
            }
        }
    } while (ot_rm_counter_next(&rows));
}

static void reduce_one(ot_call *c, const reduction *r, ot_rm_counter *k, int64_t base, int64_t to)
{
    const ot_nd *in = c->in[0];
    accumulator a = {.op = ot_rm_op(c), .is_u64 = in->dtype == OT_U64};
    if (a.op == OT_OP_ReduceLogSumExp && !r->empty) { /* subtract the largest: no exp overflows */
        accumulator m = {.op = OT_OP_ReduceMax};
        take_all(&m, in, true, k, base);
        if (isfinite(m.f)) a.shift = m.f;
    }
    if (!r->empty) take_all(&a, in, r->in_double, k, base);
    if (r->in_double) {
        double v = result_f(&a);
        ot_rm_store_f(c->out[0], to, 1, 1, &v);
    } else {
        int64_t v = result_i(&a, in->dtype);
        ot_rm_store_i(c->out[0], to, 1, 1, &v);
    }
}

ot_status ot_rm_reduce(ot_call *c)
{
    ot_op op = ot_rm_op(c);
    bool order = op == OT_OP_ReduceMax || op == OT_OP_ReduceMin;
    reduction r;
    int64_t n_out;
    OT_TRY(ot_rm_need_kind(c, 0, REF_FLOAT | REF_INT | (order ? REF_BOOL : 0)));
    OT_TRY(read_reduction(c, &r));
    OT_TRY(ot_call_output(c, 0, c->in[0]->dtype, r.rank, r.dims));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    if (!ot_nd_elems(c->out[0], &n_out)) return ot_call_fail(c, "output 0 is too large");
    ot_rm_counter kept = {0}, gone = {0};
    if (!r.empty) {
        ot_rm_counter_new(&kept, c->in[0], r.reduced, false);
        ot_rm_counter_new(&gone, c->in[0], r.reduced, true);
    }
    for (int64_t to = 0; to < n_out; to++) {
        reduce_one(c, &r, &gone, kept.at, to);
        ot_rm_counter_next(&kept);
    }
    return OT_OK;
}
