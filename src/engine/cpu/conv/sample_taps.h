/* Sums of weighted elements at positions that the run computes: GridSample, DeformConv, RoiAlign.
 *
 *   points 0 1 2 ... n-1
 *   index  [taps][points]    of an element of a plane     the same for all channels
 *   weight [taps][points]    0: the tap does not count
 *   y[point] = sum over the taps of weight * plane[index]
 */
#ifndef OT_ENGINE_CPU_CONV_SAMPLE_TAPS_H
#define OT_ENGINE_CPU_CONV_SAMPLE_TAPS_H

#include "engine/ref/ref_sample.h"

typedef struct ot_taps {
    int64_t points; /* between taps */
    int32_t taps;   /* of a point */
    int32_t *index;
    float *weight;
} ot_taps;

/* Room for that many points of so many taps, for each of `threads`: to[threads]. */
ot_status ot_taps_new(ot_call *c, int64_t points, int32_t taps, uint32_t threads,
                      ot_taps *to) OT_MUST_USE;
/* Point p reads at these places, one for each axis of s. All weights times `factor`. */
void ot_taps_put(const ot_taps *t, const ot_sampler *s, const ot_sample_point *places, int64_t p,
                 float factor);
/* y[i] of points [0, n). */
void ot_taps_sum(const ot_taps *t, const float *plane, float *y, int64_t n);
/* The largest weighted element instead of their sum; without taps 0. */
void ot_taps_most(const ot_taps *t, const float *plane, float *y, int64_t n);

#endif
