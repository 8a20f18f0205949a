/* Operations that move elements: transpose, concat, expand, fill, iota. */
#include "krun_internal.h"

#include <math.h>

/* Axis k of the result is axis perm[k] of the input; without perm the axes are turned round. */
static ot_status transpose(const krun_call *c)
{
    const krun_tensor *x = &c->in[0];
    int64_t perm[OT_TK_RANK_MAX], dims[OT_TK_RANK_MAX], stride[OT_TK_RANK_MAX], n = 1;
    uint32_t seen = 0;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    for (uint32_t d = 0; d < x->rank; d++) perm[d] = x->rank - 1 - d;
    if (ot_tk_attr_find(c->s, "perm")) OT_TRY(ot_tk_integers(&c->at, "perm", x->rank, 0, 0, perm));
    for (uint32_t d = 0; d < x->rank; d++) {
        if (perm[d] >= x->rank || seen >> perm[d] & 1)
            return krun_fail(c->m, "setting", "perm names each of the %u axes once", x->rank);
        seen |= 1u << perm[d];
        dims[d] = x->dims[perm[d]];
    }
    OT_TRY(ot_tk_makes(&c->at, dims, x->rank, c->out->x));
    for (uint32_t d = x->rank; d-- > 0; n *= x->dims[d]) stride[d] = n;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t rest = i, at = 0;
        for (uint32_t d = x->rank; d-- > 0; rest /= dims[d]) at += rest % dims[d] * stride[perm[d]];
        c->out->v[i] = x->v[at];
    }
    return OT_OK;
}

/* One behind the other along an axis. */
static ot_status concat(const krun_call *c)
{
    const krun_tensor *first = &c->in[0];
    int64_t axis, dims[OT_TK_RANK_MAX], inner = 1, outer = 1, done = 0;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, KRUN_INPUTS_MAX));
    OT_TRY(ot_tk_integer(&c->at, "axis", 0, &axis));
    if (axis < 0) axis += first->rank;
    if (axis < 0 || axis >= first->rank)
        return krun_fail(c->m, "axis", "'%s' has %u axes", first->x->name, first->rank);
    memcpy(dims, first->dims, sizeof dims);
    dims[axis] = 0;
    for (uint32_t k = 0; k < c->n_in; k++) {
        const krun_tensor *x = &c->in[k];
        for (uint32_t d = 0; d < first->rank; d++)
            if (x->rank != first->rank || (d != axis && x->dims[d] != dims[d]))
                return krun_fail(c->m, "shape", "'%s' does not fit '%s' but along axis %lld",
                                 x->x->name, first->x->name, (long long)axis);
        dims[axis] += x->dims[axis];
    }
    OT_TRY(ot_tk_makes(&c->at, dims, first->rank, c->out->x));
    for (uint32_t d = 0; d < first->rank; d++)
        *(d < axis ? &outer : &inner) *= d == axis ? 1 : dims[d];
    for (uint32_t k = 0; k < c->n_in; k++) {
        int64_t n = c->in[k].dims[axis] * inner;
        for (int64_t o = 0; o < outer; o++)
            memcpy(c->out->v + (o * dims[axis] + done) * inner, c->in[k].v + o * n,
                   (size_t)n * sizeof(double));
        done += c->in[k].dims[axis];
    }
    return OT_OK;
}

/* Repeated along axes of 1, up to the output's shape. */
static ot_status expand(const krun_call *c)
{
    const krun_tensor *x = &c->in[0], *o = c->out;
    int64_t stride[OT_TK_RANK_MAX] = {0}, n = 1;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    if (x->rank > o->rank)
        return krun_fail(c->m, "shape", "'%s' has more axes than '%s'", x->x->name, o->x->name);
    for (uint32_t d = x->rank; d-- > 0; n *= x->dims[d]) {
        uint32_t to = d + o->rank - x->rank;
        if (x->dims[d] != 1 && x->dims[d] != o->dims[to])
            return krun_fail(c->m, "broadcast", "'%s' does not expand to '%s'", x->x->name,
                             o->x->name);
        stride[to] = x->dims[d] == 1 ? 0 : n;
    }
    for (int64_t i = 0; i < o->n; i++) {
        int64_t rest = i, at = 0;
        for (uint32_t d = o->rank; d-- > 0; rest /= o->dims[d]) at += rest % o->dims[d] * stride[d];
        o->v[i] = x->v[at];
    }
    return OT_OK;
}

static ot_status fill(const krun_call *c)
{
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 0, 0));
    double value = ot_tk_setting(c->s, "value", 0);
    for (int64_t i = 0; i < c->out->n; i++) c->out->v[i] = value;
    return OT_OK;
}

static ot_status iota(const krun_call *c)
{
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 0, 0));
    double start = ot_tk_setting(c->s, "start", 0), step = ot_tk_setting(c->s, "step", 1);
    for (int64_t i = 0; i < c->out->n; i++) c->out->v[i] = start + step * (double)i;
    return OT_OK;
}

krun_op krun_shaping(const char *name)
{
    static const struct {
        const char *name;
        krun_op op;
    } ops[] = {{"transpose", transpose}, {"concat", concat}, {"expand", expand},
               {"broadcast", expand},    {"fill", fill},     {"iota", iota}};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (strcmp(ops[k].name, name) == 0) return ops[k].op;
    return NULL;
}
