/* What the reference implementations of reductions, softmax, normalisation, CumSum and TopK share;
 * rows come from ref_math.h.
 *
 * Most of them look at lanes: the elements of one axis (or of all axes from one on), everything
 * else fixed.
 *
 *     dims [2, 3, 4], axis 1    outer 2, len 3, inner 4: lane (o, i) is elements (o * 3 + j) * 4 +
 *                               i, j = 0, 1, 2
 *
 * Reductions over any set of axes count through two sets of dimensions instead, the kept ones
 * and the reduced ones (ot_rm_counter).
 */
#ifndef OT_ENGINE_REF_REF_REDUCE_H
#define OT_ENGINE_REF_REF_REDUCE_H

#include "ref_math.h"

/* ---- axes ---- */

/* axis of a given rank, negative from the end; a scalar has axis 0, of size 1. `*out` <
 * max(rank, 1). */
ot_status ot_rm_axis(ot_call *c, int64_t axis, uint32_t rank, uint32_t *out) OT_MUST_USE;
static inline int64_t ot_rm_dim(const ot_nd *a, uint32_t d) { return d < a->rank ? a->dims[d] : 1; }

/* ---- lanes ---- */

typedef struct ot_rm_lanes {
    int64_t outer, len, inner;
    double *f;  /* [len] one lane of a floating type */
    int64_t *i; /* [len] of integers */
} ot_rm_lanes;

/* Lanes of `a` along axes [first, end), with room for one. An empty array has no lanes: outer,
 * inner or both are 0, and len is what it is when that can be told, else 0. */
ot_status ot_rm_lanes_new(ot_rm_lanes *l, ot_call *c, const ot_nd *a, uint32_t first,
                          uint32_t end) OT_MUST_USE;
static inline int64_t ot_rm_lane_at(const ot_rm_lanes *l, int64_t o, int64_t i)
{
    return o * l->len * l->inner + i;
}

/* ---- counters ---- */

/* Counts through some dimensions of an array, row-major; `at` is the element that it stands at. */
typedef struct ot_rm_counter {
    uint32_t rank;
    int64_t dims[OT_RANK_MAX], steps[OT_RANK_MAX], index[OT_RANK_MAX];
    int64_t at;
} ot_rm_counter;

/* Dimensions d of `a` with chosen[d] == which. The array must have elements. Neighbours without
 * a jump become one. */
void ot_rm_counter_new(ot_rm_counter *k, const ot_nd *a, const bool *chosen, bool which);
/* The last dimension apart, to go through it in rows: its size and step; 1 and 0 when there is
 * none. */
void ot_rm_counter_split(ot_rm_counter *k, int64_t *n, int64_t *step);
bool ot_rm_counter_next(ot_rm_counter *k); /* false: it stands at the start again */

/* ---- implementations, by file ---- */

ot_status ot_rm_reduce(ot_call *c);  /* ref_reduce_axes.c: the ten reductions */
ot_status ot_rm_arg(ot_call *c);     /* ref_reduce_lane.c: ArgMax, ArgMin */
ot_status ot_rm_softmax(ot_call *c); /* Softmax, LogSoftmax, Hardmax */
ot_status ot_rm_lp_norm(ot_call *c);
ot_status ot_rm_cum_sum(ot_call *c);
ot_status ot_rm_topk(ot_call *c); /* ref_reduce_topk.c */
/* ref_reduce_norm.c: LayerNormalization, RMSNormalization */
ot_status ot_rm_layer_norm(ot_call *c);
ot_status ot_rm_channel_norm(ot_call *c);  /* InstanceNormalization, GroupNormalization */
ot_status ot_rm_mean_variance(ot_call *c); /* MeanVarianceNormalization */
ot_status ot_rm_moments(ot_call *c);       /* ref_reduce_moments.c: of domain onnx_tile */
ot_status ot_rm_norm_factors(ot_call *c);

#endif
