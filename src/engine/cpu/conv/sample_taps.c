/* Sums of weighted elements (sample_taps.h). */
#include "sample_taps.h"

#include "engine/core/simd.h"

ot_status ot_taps_new(ot_call *c, int64_t points, int32_t taps, uint32_t threads, ot_taps *to)
{
    int64_t each, all;
    if (!ot_mul_i64(points, taps, &each) || !ot_mul_i64(each, threads, &all)) return OT_E_NOMEM;
    int32_t *index = ot_num_scratch(c, all, sizeof *index);
    float *weight = index ? ot_num_scratch(c, all, sizeof *weight) : NULL;
    if (!weight) return OT_E_NOMEM;
    for (uint32_t k = 0; k < threads; k++)
        to[k] = (ot_taps){points, taps, index + k * each, weight + k * each};
    return OT_OK;
}

void ot_taps_put(const ot_taps *t, const ot_sampler *s, const ot_sample_point *places, int64_t p,
                 float factor)
{
    int count = places[0].n;
    for (int32_t k = 0; k < t->taps; k++) {
        double weight = 1;
        int64_t from = 0, stride = 1;
        bool inside = true;
        for (uint32_t a = s->n, rest = (uint32_t)k; a-- > 0; rest /= (uint32_t)count) {
            uint32_t at = rest % (uint32_t)count;
            int64_t index = places[a].index[at];
            inside = inside && index >= 0;
            weight *= places[a].weight[at];
            from += index * stride;
            stride *= s->in[a];
        }
        t->index[k * t->points + p] = inside ? (int32_t)from : 0;
        t->weight[k * t->points + p] = inside ? (float)weight * factor : 0;
    }
}

/* A weight of 0 hides what it would multiply, be it infinite. */
static inline float weighed(float weight, float x) { return weight != 0 ? weight * x : 0; }

OT_CLONES static void sum_one(const ot_taps *t, const float *plane, float *restrict y, int64_t n)
{
    const int32_t *index = t->index;
    const float *weight = t->weight;
    for (int64_t i = 0; i < n; i++) y[i] = weighed(weight[i], plane[index[i]]);
}

OT_CLONES static void sum_four(const ot_taps *t, const float *plane, float *restrict y, int64_t n)
{
    const int32_t *i0 = t->index, *i1 = i0 + t->points, *i2 = i1 + t->points, *i3 = i2 + t->points;
    const float *w0 = t->weight, *w1 = w0 + t->points, *w2 = w1 + t->points, *w3 = w2 + t->points;
    for (int64_t i = 0; i < n; i++)
        y[i] = (weighed(w0[i], plane[i0[i]]) + weighed(w1[i], plane[i1[i]])) +
               (weighed(w2[i], plane[i2[i]]) + weighed(w3[i], plane[i3[i]]));
}

OT_CLONES static void sum_more(const ot_taps *t, const float *plane, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = 0;
    for (int32_t k = 0; k < t->taps; k++) {
        const int32_t *index = t->index + k * t->points;
        const float *weight = t->weight + k * t->points;
        for (int64_t i = 0; i < n; i++) y[i] += weighed(weight[i], plane[index[i]]);
    }
}

void ot_taps_sum(const ot_taps *t, const float *plane, float *y, int64_t n)
{
    if (t->taps == 1)
        sum_one(t, plane, y, n);
    else if (t->taps == 4)
        sum_four(t, plane, y, n);
    else
        sum_more(t, plane, y, n);
}

OT_CLONES void ot_taps_most(const ot_taps *t, const float *plane, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = t->taps > 0 ? -INFINITY : 0;
    for (int32_t k = 0; k < t->taps; k++) {
        const int32_t *index = t->index + k * t->points;
        const float *weight = t->weight + k * t->points;
        for (int64_t i = 0; i < n; i++) {
            float e = weighed(weight[i], plane[index[i]]);
            y[i] = e > y[i] ? e : y[i];
        }
    }
}
