/* Operations that move elements: transpose, concat, expand, fill, iota. */
#include "kgen_internal.h"

#include <math.h>

/* One input over a nest of the output's elements: operands are the input, then the output. */
static ot_status copy_nest(const kgen_call *c, kgen_nest *n)
{
    kgen_nest_fold(n);
    OT_TRY(kgen_begin(c, kgen_nest_share(c->g, n)));
    kgen_nest_open(c->g, n);
    kgen_out(c, n->lin[1], kgen_in(c, 0, n->lin[0]));
    kgen_nest_close(c->g, n);
    kgen_close(c->g);
    return OT_OK;
}

/* Axis k of the result is axis perm[k] of the input; without perm the axes are turned round. */
static ot_status transpose(const kgen_call *c)
{
    const kgen_operand *x = &c->in[0];
    int64_t perm[OT_TK_RANK_MAX], dims[OT_TK_RANK_MAX], stride[OT_TK_RANK_MAX];
    uint32_t seen = 0;
    kgen_nest n;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    for (uint32_t d = 0; d < x->rank; d++) perm[d] = x->rank - 1 - d;
    if (ot_tk_attr_find(c->s, "perm")) OT_TRY(ot_tk_integers(&c->at, "perm", x->rank, 0, 0, perm));
    for (uint32_t d = 0; d < x->rank; d++) {
        if (perm[d] >= x->rank || seen >> perm[d] & 1)
            return kgen_fail(c->g, "setting", "perm names each of the %u axes once", x->rank);
        seen |= 1u << perm[d];
        dims[d] = x->dims[perm[d]];
        stride[d] = x->stride[perm[d]];
    }
    OT_TRY(ot_tk_makes(&c->at, dims, x->rank, kgen_value(c->g, c->out->value)));
    kgen_nest_init(&n, dims, x->rank);
    kgen_nest_strides(&n, x, stride);
    kgen_nest_same(&n, c->out);
    return copy_nest(c, &n);
}

/* Repeated along axes of 1, up to the output's shape. */
static ot_status expand(const kgen_call *c)
{
    const kgen_operand *x = &c->in[0], *o = c->out;
    kgen_nest n;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    bool fits = x->rank <= o->rank;
    for (uint32_t d = 0; fits && d < x->rank; d++)
        fits = x->dims[d] == 1 || x->dims[d] == o->dims[d + o->rank - x->rank];
    if (!fits)
        return kgen_fail(c->g, "broadcast", "'%s' does not expand to '%s'",
                         kgen_value(c->g, x->value)->name, kgen_value(c->g, o->value)->name);
    kgen_nest_init(&n, o->dims, o->rank);
    kgen_nest_broadcast(&n, x);
    kgen_nest_strides(&n, o, o->stride);
    return copy_nest(c, &n);
}

/* ---- concat ---- */

static ot_status concat_shape(const kgen_call *c, int64_t *axis, int64_t *dims)
{
    const kgen_operand *first = &c->in[0];
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, KGEN_OPERANDS_MAX));
    OT_TRY(ot_tk_integer(&c->at, "axis", 0, axis));
    if (*axis < 0) *axis += first->rank;
    if (*axis < 0 || *axis >= first->rank)
        return kgen_fail(c->g, "axis", "'%s' has %u axes", kgen_value(c->g, first->value)->name,
                         first->rank);
    memcpy(dims, first->dims, sizeof first->dims);
    dims[*axis] = 0;
    for (uint32_t k = 0; k < c->n_in; k++) {
        const kgen_operand *x = &c->in[k];
        for (uint32_t d = 0; d < first->rank; d++)
            if (x->rank != first->rank || (d != *axis && x->dims[d] != dims[d]))
                return kgen_fail(c->g, "shape", "'%s' does not fit '%s' but along axis %lld",
                                 kgen_value(c->g, x->value)->name,
                                 kgen_value(c->g, first->value)->name, (long long)*axis);
        dims[*axis] += x->dims[*axis];
    }
    return ot_tk_makes(&c->at, dims, first->rank, kgen_value(c->g, c->out->value));
}

/* One behind the other along an axis. */
static ot_status concat(const kgen_call *c)
{
    kgen *g = c->g;
    int64_t axis, dims[OT_TK_RANK_MAX], done = 0;
    kgen_nest whole;
    OT_TRY(concat_shape(c, &axis, dims));
    kgen_nest_init(&whole, dims, c->in[0].rank);
    kgen_nest_same(&whole, c->out);
    OT_TRY(kgen_begin(c, (kgen_share){0}));
    for (uint32_t k = 0; k < c->n_in; k++) {
        const kgen_operand *x = &c->in[k];
        kgen_nest n;
        kgen_nest_init(&n, x->dims, x->rank);
        kgen_nest_strides(&n, x, x->stride);
        kgen_nest_strides(&n, c->out, whole.stride[0]);
        kgen_nest_fold(&n);
        kgen_nest_open(g, &n);
        kgen_out(c, kgen_text(g, "%s + %lld", n.lin[1], (long long)(done * whole.stride[0][axis])),
                 kgen_in(c, k, n.lin[0]));
        kgen_nest_close(g, &n);
        done += x->dims[axis];
    }
    kgen_close(g);
    return OT_OK;
}

/* ---- without inputs ---- */

static ot_status fill(const kgen_call *c)
{
    kgen_nest n;
    ot_tk_class within = c->c == OT_TK_F32 ? OT_TK_F32 : c->c == OT_TK_F64 ? OT_TK_F64 : OT_TK_I64;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 0, 0));
    double value = ot_tk_setting(c->s, "value", 0);
    kgen_nest_init(&n, c->out->dims, c->out->rank);
    kgen_nest_strides(&n, c->out, c->out->stride);
    kgen_nest_fold(&n);
    OT_TRY(kgen_begin(c, kgen_nest_share(c->g, &n)));
    kgen_nest_open(c->g, &n);
    const char *x = kgen_number(
        c->g, within, within == OT_TK_I64 && !(value > -9e18 && value < 9e18) ? 0 : value);
    kgen_line(c->g, "%s",
              kgen_put(c->g, c->out->dtype, within, "out", kgen_index(c->g, c->out, n.lin[0]), x));
    kgen_nest_close(c->g, &n);
    kgen_close(c->g);
    return OT_OK;
}

/* Is start + step * i exact in a float for every i below n? */
static bool short_numbers(double start, double step, int64_t n)
{
    return start == trunc(start) && step == trunc(step) &&
           fabs(start) + fabs(step) * (double)n < 16777216;
}

static ot_status iota(const kgen_call *c)
{
    kgen *g = c->g;
    int64_t total = kgen_elements(c->out), one = 1;
    double start = ot_tk_setting(c->s, "start", 0), step = ot_tk_setting(c->s, "step", 1);
    ot_tk_class within = short_numbers(start, step, total) && c->c != OT_TK_F64 ? OT_TK_F32
                                                                                : OT_TK_F64;
    kgen_nest n;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 0, 0));
    OT_TRY(kgen_number_elements(g, c->out));
    kgen_nest_init(&n, &total, 1);
    kgen_nest_strides(&n, c->out, &one);
    OT_TRY(kgen_begin(c, kgen_nest_share(g, &n)));
    kgen_nest_open(g, &n);
    g->uses_f64 = g->uses_f64 || within == OT_TK_F64;
    const char *x = kgen_text(g, "%s + %s * (%s)(%s)", kgen_number(g, within, start),
                              kgen_number(g, within, step), kgen_class_name(within), n.lin[0]);
    kgen_line(g, "%s",
              kgen_put(g, c->out->dtype, within, "out", kgen_index(g, c->out, n.lin[0]), x));
    kgen_nest_close(g, &n);
    kgen_close(g);
    return OT_OK;
}

kgen_op kgen_shaping(const char *name)
{
    static const struct {
        const char *name;
        kgen_op op;
    } ops[] = {{"transpose", transpose}, {"concat", concat}, {"expand", expand},
               {"broadcast", expand},    {"fill", fill},     {"iota", iota}};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (strcmp(ops[k].name, name) == 0) return ops[k].op;
    return NULL;
}
