/* Operators on the lanes of one axis: ArgMax, ArgMin, Softmax, LogSoftmax, Hardmax,
 * LpNormalization, CumSum. */
#include "ref_reduce.h"

#include <math.h>

/* ---- ArgMax, ArgMin ---- */

/* Position of the largest (or smallest) element of a lane; the first of equals, or the last. */
static int64_t arg_of_lane(const ot_rm_lanes *l, bool want_max, bool last, bool is_u64)
{
    int64_t best = 0;
    for (int64_t j = 1; j < l->len; j++) {
        bool less = l->f ? l->f[j] < l->f[best] : ot_rm_int_less(l->i[j], l->i[best], is_u64);
        bool more = l->f ? l->f[j] > l->f[best] : ot_rm_int_less(l->i[best], l->i[j], is_u64);
        bool equal = l->f ? l->f[j] == l->f[best] : l->i[j] == l->i[best];
        if ((want_max ? more : less) || (last && equal)) best = j;
    }
    return best;
}

ot_status ot_rm_arg(ot_call *c)
{
    OT_TRY(ot_rm_need_kind(c, 0, REF_FLOAT | REF_INT));
    const ot_nd *a = c->in[0];
    bool keep = ot_attr_int(c->node, "keepdims", 1) != 0,
         last = ot_attr_int(c->node, "select_last_index", 0) != 0;
    uint32_t axis = 0, rank = 0;
    int64_t dims[OT_RANK_MAX], n_out;
    OT_TRY(ot_rm_axis(c, ot_attr_int(c->node, "axis", 0), a->rank, &axis));
    for (uint32_t d = 0; d < a->rank; d++)
        if (d != axis || keep) dims[rank++] = d == axis ? 1 : a->dims[d];
    OT_TRY(ot_call_output(c, 0, OT_I64, rank, dims));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    if (!ot_nd_elems(c->out[0], &n_out)) return ot_call_fail(c, "output 0 is too large");
    if (n_out > 0 && ot_rm_dim(a, axis) == 0)
        return ot_call_fail(c, "axis %u has no elements to choose from", axis);
    ot_rm_lanes l;
    OT_TRY(ot_rm_lanes_new(&l, c, a, axis, axis + 1));
    for (int64_t o = 0, to = 0; o < l.outer; o++) {
        for (int64_t i = 0; i < l.inner; i++, to++) {
            if (l.f)
                ot_rm_load_f(a, ot_rm_lane_at(&l, o, i), l.inner, l.len, l.f);
            else
                ot_rm_load_i(a, ot_rm_lane_at(&l, o, i), l.inner, l.len, l.i);
            int64_t best = arg_of_lane(&l, ot_rm_op(c) == OT_OP_ArgMax, last, a->dtype == OT_U64);
            ot_rm_store_i(c->out[0], to, 1, 1, &best);
        }
    }
    return OT_OK;
}

/* ---- Softmax and its relatives ---- */

static double largest(const double *r, int64_t n)
{
    double m = r[0];
    for (int64_t j = 1; j < n; j++)
        if (r[j] > m || isnan(r[j])) m = r[j];
    return m;
}

static void softmax_lane(ot_op op, double *r, int64_t n)
{
    double m = largest(r, n), sum = 0;
    for (int64_t j = 0; j < n; j++) sum += exp(r[j] - m);
    for (int64_t j = 0; j < n; j++)
        r[j] = op == OT_OP_Softmax ? exp(r[j] - m) / sum : r[j] - m - log(sum);
}

/* 1 at the first of the largest elements. */
static void hardmax_lane(double *r, int64_t n)
{
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++)
        if (r[j] > r[best]) best = j;
    for (int64_t j = 0; j < n; j++) r[j] = j == best;
}

static void lp_lane(int64_t p, double *r, int64_t n)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += p == 1 ? fabs(r[j]) : r[j] * r[j];
    double norm = p == 1 ? sum : sqrt(sum);
    for (int64_t j = 0; j < n; j++) r[j] = norm == 0 ? 0 : r[j] / norm;
}

/* Output 0, like the input: f(lane) over axes [first, end). */
static ot_status each_lane(ot_call *c, uint32_t first, uint32_t end, int64_t p)
{
    const ot_nd *a = c->in[0];
    ot_rm_lanes l;
    OT_TRY(ot_call_output(c, 0, a->dtype, a->rank, a->dims));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    OT_TRY(ot_rm_lanes_new(&l, c, a, first, end));
    for (int64_t o = 0; o < l.outer; o++) {
        for (int64_t i = 0; i < l.inner; i++) {
            int64_t at = ot_rm_lane_at(&l, o, i);
            ot_rm_load_f(a, at, l.inner, l.len, l.f);
            if (p)
                lp_lane(p, l.f, l.len);
            else if (ot_rm_op(c) == OT_OP_Hardmax)
                hardmax_lane(l.f, l.len);
            else
                softmax_lane(ot_rm_op(c), l.f, l.len);
            ot_rm_store_f(c->out[0], at, l.inner, l.len, l.f);
        }
    }
    return OT_OK;
}

/* Before version 13 the axis divides the input into rows: lanes run over all axes from it on. */
ot_status ot_rm_softmax(ot_call *c)
{
    bool old = c->node->version < 13;
    uint32_t axis = 0;
    OT_TRY(ot_rm_need_kind(c, 0, REF_FLOAT));
    uint32_t rank = c->in[0]->rank;
    OT_TRY(ot_rm_axis(c, ot_attr_int(c->node, "axis", old ? rank > 1 : -1), rank, &axis));
    return each_lane(c, axis, old ? rank : axis + 1, 0);
}

ot_status ot_rm_lp_norm(ot_call *c)
{
    uint32_t axis = 0;
    int64_t p = ot_attr_int(c->node, "p", 2);
    OT_TRY(ot_rm_need_kind(c, 0, REF_FLOAT));
    if (p != 1 && p != 2) return ot_call_fail(c, "p = %lld is neither 1 nor 2", (long long)p);
    OT_TRY(ot_rm_axis(c, ot_attr_int(c->node, "axis", -1), c->in[0]->rank, &axis));
    return each_lane(c, axis, axis + 1, p);
}

/* ---- CumSum ---- */

/* exclusive: the sum of what comes before; reverse: from the end. */
static void sum_lane(const ot_rm_lanes *l, bool exclusive, bool reverse)
{
    double f = 0;
    int64_t n = 0;
    for (int64_t k = 0; k < l->len; k++) {
        int64_t j = reverse ? l->len - 1 - k : k;
        if (l->f) {
            double before = f;
            f += l->f[j];
            l->f[j] = exclusive ? before : f;
        } else {
            int64_t before = n;
            n = ot_rm_wrap_add(n, l->i[j]);
            l->i[j] = exclusive ? before : n;
        }
    }
}

ot_status ot_rm_cum_sum(ot_call *c)
{
    bool exclusive = ot_attr_int(c->node, "exclusive", 0) != 0,
         reverse = ot_attr_int(c->node, "reverse", 0) != 0;
    uint32_t axis = 0;
    int64_t n_axis;
    ot_rm_lanes l;
    OT_TRY(ot_rm_need_kind(c, 0, REF_FLOAT | REF_INT));
    OT_TRY(ot_rm_need_kind(c, 1, REF_INT));
    if (!ot_nd_elems(c->in[1], &n_axis) || n_axis != 1)
        return ot_call_fail(c, "input 1 (axis) is not one number");
    const ot_nd *a = c->in[0];
    OT_TRY(ot_rm_axis(c, ot_nd_int(c->in[1], 0), a->rank, &axis));
    OT_TRY(ot_call_output(c, 0, a->dtype, a->rank, a->dims));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    OT_TRY(ot_rm_lanes_new(&l, c, a, axis, axis + 1));
    for (int64_t o = 0; o < l.outer; o++) {
        for (int64_t i = 0; i < l.inner; i++) {
            int64_t at = ot_rm_lane_at(&l, o, i);
            if (l.f)
                ot_rm_load_f(a, at, l.inner, l.len, l.f);
            else
                ot_rm_load_i(a, at, l.inner, l.len, l.i);
            sum_lane(&l, exclusive, reverse);
            if (l.f)
                ot_rm_store_f(c->out[0], at, l.inner, l.len, l.f);
            else
                ot_rm_store_i(c->out[0], at, l.inner, l.len, l.i);
        }
    }
    return OT_OK;
}
