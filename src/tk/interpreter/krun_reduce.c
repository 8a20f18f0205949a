/* Reductions along axes, and softmax.
 *
 *   reduce_sum(x, axis=1)  x: 2x3x4 --> 2x4 (or 2x1x4)  axis: the last when not given; a list
 *                          reduces several; -1 is the last
 *
 * Sums grow element by element in the class of the operation: in f32 for f16, bf16 and f32.
 */
#include "krun_internal.h"

#include <math.h>

typedef enum reduction { SUM, MEAN, MAX, MIN, PROD, SUM_SQUARE } reduction;

static const struct {
    const char *name;
    reduction kind;
} REDUCTIONS[] = {
    {"reducesum", SUM}, {"reducemean", MEAN}, {"reducemax", MAX},
    {"reducemin", MIN}, {"reduceprod", PROD}, {"reducesumsquare", SUM_SQUARE},
};
#define N_REDUCTIONS (sizeof REDUCTIONS / sizeof *REDUCTIONS)

/* Which axes of the input are reduced; the last by default. */
static ot_status axes(const krun_call *c, bool reduced[OT_TK_RANK_MAX])
{
    const ot_tk_attr *a = ot_tk_attr_find(c->s, "axis");
    uint32_t rank = c->in[0].rank;
    for (uint32_t d = 0; d < OT_TK_RANK_MAX; d++) reduced[d] = !a && d + 1 == rank;
    for (uint32_t k = 0; a && k < a->n; k++) {
        double x = a->values[k] < 0 ? a->values[k] + rank : a->values[k];
        if (!(x >= 0 && x < rank) || x != floor(x))
            return krun_fail(c->m, "axis", "axis is from %d to %u, for '%s' has %u axes",
                             -(int)rank, rank - 1, c->in[0].x->name, rank);
        reduced[(uint32_t)x] = true;
    }
    return OT_OK;
}

static double start(reduction r)
{
    return r == PROD ? 1 : r == MAX ? -(double)INFINITY : r == MIN ? (double)INFINITY : 0;
}

static double merge(reduction r, ot_tk_class c, double x, double y)
{
    switch (r) {
    case SUM:
    case MEAN: return krun_round(c, x + y);
    case SUM_SQUARE: return krun_round(c, x + krun_round(c, y * y));
    case PROD: return krun_round(c, x * y);
    case MAX: return x != x || x > y ? x : y;
    case MIN: break;
    }
    return x != x || x < y ? x : y;
}

static ot_status reduce(const krun_call *c)
{
    const krun_tensor *x = &c->in[0];
    bool reduced[OT_TK_RANK_MAX];
    int64_t dims[OT_TK_RANK_MAX], stride[OT_TK_RANK_MAX], n = 1;
    size_t which = 0;
    while (strcmp(REDUCTIONS[which].name, c->name) != 0) which++;
    reduction r = REDUCTIONS[which].kind;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    OT_TRY(axes(c, reduced));
    for (uint32_t d = x->rank; d-- > 0;) {
        dims[d] = reduced[d] ? 1 : x->dims[d];
        stride[d] = reduced[d] ? 0 : n;
        n *= dims[d];
    }
    OT_TRY(ot_tk_makes(&c->at, dims, x->rank, c->out->x));
    for (int64_t i = 0; i < n; i++) c->out->v[i] = start(r);
    for (int64_t i = 0; i < x->n; i++) {
        int64_t rest = i, at = 0;
        for (uint32_t d = x->rank; d-- > 0; rest /= x->dims[d]) at += rest % x->dims[d] * stride[d];
        c->out->v[at] = merge(r, c->c, c->out->v[at], x->v[i]);
    }
    for (int64_t i = 0; i < n && r == MEAN; i++) c->out->v[i] /= (double)(x->n / n);
    return OT_OK;
}

/* exp(x - max) / sum, along one axis. */
static ot_status softmax(const krun_call *c)
{
    const krun_tensor *x = &c->in[0];
    int64_t axis, inner = 1;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    OT_TRY(ot_tk_makes(&c->at, x->dims, x->rank, c->out->x));
    OT_TRY(ot_tk_integer(&c->at, "axis", -1, &axis));
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank)
        return krun_fail(c->m, "axis", "'%s' has %u axes", x->x->name, x->rank);
    for (uint32_t d = (uint32_t)axis + 1; d < x->rank; d++) inner *= x->dims[d];
    int64_t n = x->dims[axis];
    for (int64_t row = 0; row < x->n / n; row++) {
        const double *from = x->v + row / inner * n * inner + row % inner;
        double *to = c->out->v + (from - x->v), most = -(double)INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++) most = merge(MAX, c->c, most, from[i * inner]);
        for (int64_t i = 0; i < n; i++) {
            to[i * inner] = krun_round(c->c, exp(krun_round(c->c, from[i * inner] - most)));
            sum = krun_round(c->c, sum + to[i * inner]);
        }
        for (int64_t i = 0; i < n; i++) to[i * inner] /= sum;
    }
    return OT_OK;
}

krun_op krun_reduction(const char *name)
{
    for (size_t k = 0; k < N_REDUCTIONS; k++)
        if (strcmp(REDUCTIONS[k].name, name) == 0) return reduce;
    return strcmp(name, "softmax") == 0 ? softmax : NULL;
}
