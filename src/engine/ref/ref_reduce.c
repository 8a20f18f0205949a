/* Axes, lanes, counters, and the table of the family. */
#include "ref_reduce.h"
#include "ref_operators.h"

ot_status ot_rm_axis(ot_call *c, int64_t axis, uint32_t rank, uint32_t *out)
{
    int64_t n = rank ? rank : 1;
    if (axis < -n || axis >= n)
        return ot_call_fail(c, "axis %lld is not an axis of rank %u", (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + n : axis);
    return OT_OK;
}

ot_status ot_rm_lanes_new(ot_rm_lanes *l, ot_call *c, const ot_nd *a, uint32_t first, uint32_t end)
{
    int64_t elems;
    *l = (ot_rm_lanes){.outer = 1, .len = 1, .inner = 1};
    if (!ot_nd_elems(a, &elems)) return ot_call_fail(c, "input 0 is too large");
    if (elems == 0) { /* the product of some dimensions need not be a number then */
        l->outer = l->inner = 0;
        if (end - first == 1)
            l->len = ot_rm_dim(a, first);
        else
            l->len = 0;
        return OT_OK;
    }
    for (uint32_t d = 0; d < a->rank; d++)
        *(d < first ? &l->outer : d < end ? &l->len : &l->inner) *= a->dims[d];
    size_t bytes;
    if (__builtin_mul_overflow((size_t)l->len, sizeof *l->f, &bytes))
        return ot_call_fail(c, "input 0 is too large");
    if (ot_rm_kind(a->dtype) == REF_FLOAT)
        l->f = ot_call_scratch(c, bytes);
    else
        l->i = ot_call_scratch(c, bytes);
    return l->f || l->i ? OT_OK : ot_fail_nomem(c->diag);
}

/* ---- counters ---- */

void ot_rm_counter_new(ot_rm_counter *k, const ot_nd *a, const bool *chosen, bool which)
{
    int64_t step = 1;
    *k = (ot_rm_counter){0};
    for (uint32_t d = a->rank; d-- > 0;) { /* last dimension first, for now */
        int64_t n = a->dims[d];
        uint32_t r = k->rank;
        if (chosen[d] == which && n != 1) {
            if (r && step == k->steps[r - 1] * k->dims[r - 1]) {
                k->dims[r - 1] *= n;
            } else {
                k->dims[r] = n;
                k->steps[r] = step;
                k->rank++;
            }
        }
        step *= n;
    }
    for (uint32_t i = 0, j = k->rank; i + 1 < j; i++) {
        j--;
        int64_t n = k->dims[i], s = k->steps[i];
        k->dims[i] = k->dims[j];
        k->steps[i] = k->steps[j];
        k->dims[j] = n;
        k->steps[j] = s;
    }
}

void ot_rm_counter_split(ot_rm_counter *k, int64_t *n, int64_t *step)
{
    *n = k->rank ? k->dims[k->rank - 1] : 1;
    *step = k->rank ? k->steps[k->rank - 1] : 0;
    if (k->rank) k->rank--;
}

bool ot_rm_counter_next(ot_rm_counter *k)
{
    for (uint32_t d = k->rank; d-- > 0;) {
        k->at += k->steps[d];
        if (++k->index[d] < k->dims[d]) return true;
        k->at -= k->steps[d] * k->dims[d];
        k->index[d] = 0;
    }
    return false;
}

/* ---- the table ---- */

#define K(name, run)      \
    {                     \
        OT_OP_##name, run \
    }

const ot_op_entry ot_ops_reduce[] = {K(ReduceSum, ot_rm_reduce),
                                     K(ReduceMean, ot_rm_reduce),
                                     K(ReduceMax, ot_rm_reduce),
                                     K(ReduceMin, ot_rm_reduce),
                                     K(ReduceProd, ot_rm_reduce),
                                     K(ReduceL1, ot_rm_reduce),
                                     K(ReduceL2, ot_rm_reduce),
                                     K(ReduceLogSum, ot_rm_reduce),
                                     K(ReduceLogSumExp, ot_rm_reduce),
                                     K(ReduceSumSquare, ot_rm_reduce),
                                     K(ArgMax, ot_rm_arg),
                                     K(ArgMin, ot_rm_arg),
                                     K(Softmax, ot_rm_softmax),
                                     K(LogSoftmax, ot_rm_softmax),
                                     K(Hardmax, ot_rm_softmax),
                                     K(LpNormalization, ot_rm_lp_norm),
                                     K(CumSum, ot_rm_cum_sum),
                                     K(TopK, ot_rm_topk),
                                     K(LayerNormalization, ot_rm_layer_norm),
                                     K(RMSNormalization, ot_rm_layer_norm),
                                     K(InstanceNormalization, ot_rm_channel_norm),
                                     K(GroupNormalization, ot_rm_channel_norm),
                                     K(MeanVarianceNormalization, ot_rm_mean_variance),
                                     K(Moments, ot_rm_moments),
                                     K(NormFactors, ot_rm_norm_factors),
                                     {OT_OP_OPAQUE, NULL}};
