/* From moments to what a normalisation multiplies with and adds, in standard ONNX and float64.
 *
 *   mean, variance [N, C, 1, ..]  --Reshape--> [N, G, C/G]  --groups--> [N, G, 1]
 *   factor  = scale / sqrt(variance + epsilon) * gamma              [N, G, C/G] --Reshape--> [N, C,
 *                                                                   1, ..] --Cast-->
 *   summand = (bias - mean * scale / sqrt(..)) * gamma + beta
 *
 * centred (MeanVarianceNormalization, whose epsilon is so small that x * factor would lose what
 * is left of x - mean):
 *   factor  = 1 / (sqrt(variance) + epsilon)        summand = -mean, to be added first
 *
 * All channels of a group have as many elements: the group's mean is the mean of their means,
 * and its variance the mean of their variances and of the squares of (channel's mean - mean).
 */
#include "decompose_internal.h"

#include "onnx/import/model_io.h"

typedef struct factors {
    decomp_writer w;
    int64_t n, groups, per_group; /* samples; channels of a group */
} factors;

/* An operator of two operands of which the first has the result's shape, [N or 1, groups, last]. */
static ot_status calc(factors *f, const char *op, const char *role, ot_id a, ot_id b, ot_id *out)
{
    const ot_value x = f->w.g->values[a], y = f->w.g->values[b];
    int64_t dims[3];
    for (int k = 0; k < 3; k++)
        dims[k] = ot_max(x.rank == 3 ? x.dims[k] : 1, y.rank == 3 ? y.dims[k] : 1);
    *out = OT_NONE;
    return decomp_op(&f->w, &(ot_node_def){.op = op, .name = role, .in = {(ot_id[]){a, b}, 2}},
                     (ot_tensor_type){OT_F64, 3, dims}, out);
}

/* Element k of the pairs that moments end with, as [N, groups, per_group]. */
static ot_status pick(factors *f, ot_id moments, int64_t k, const char *role, ot_id *out)
{
    const ot_value m = f->w.g->values[moments];
    const int64_t dims[3] = {f->n, f->groups, f->per_group};
    int64_t one[OT_RANK_MAX];
    ot_id in[2] = {moments, OT_NONE}, picked = OT_NONE;
    const ot_attr last = ot_mk_int("axis", m.rank - 1);
    memcpy(one, m.dims, (size_t)m.rank * sizeof *one);
    one[m.rank - 1] = 1;
    OT_TRY(decomp_ints(&f->w, role, &k, 1, &in[1]));
    OT_TRY(decomp_op(
        &f->w, &(ot_node_def){.op = "Gather", .name = role, .in = {in, 2}, .attrs = {&last, 1}},
        (ot_tensor_type){OT_F64, m.rank, one}, &picked));
    return decomp_reshape(&f->w, role, picked, 3, dims, out);
}

/* Numbers by group or channel as float64 [1, groups, 1 or per_group]. */
static ot_status numbers(factors *f, ot_id v, const char *role, ot_id *out)
{
    const ot_value x = f->w.g->values[v];
    int64_t n;
    if (!ot_value_elems(&x, &n)) OT_BUG("a normalisation's factors have no shape");
    const int64_t dims[3] = {1, f->groups, n / f->groups};
    float *narrow = ot_alloc_n(f->w.g->model->arena, (size_t)n + 1, sizeof *narrow);
    double *wide = ot_alloc_n(f->w.g->model->arena, (size_t)n + 1, sizeof *wide);
    size_t count = 0;
    if (!narrow || !wide) return ot_fail_nomem(f->w.g->model->diag);
    if (x.dtype != OT_F64 && x.init && !x.overridable &&
        ot_tensor_floats(x.init, narrow, (size_t)n, &count)) {
        for (int64_t k = 0; k < n; k++) wide[k] = narrow[k];
        return decomp_doubles(&f->w, role, wide, 3, dims, out);
    }
    if (x.dtype != OT_F64) OT_TRY(decomp_cast(&f->w, role, v, OT_F64, &v));
    return decomp_reshape(&f->w, role, v, 3, dims, out);
}

/* Mean and variance of all channels of each group, from those of the channels. */
static ot_status join_groups(factors *f, ot_id *mean, ot_id *variance)
{
    const int64_t axis = 2;
    ot_id all, away, square, spread;
    if (f->per_group == 1) return OT_OK;
    OT_TRY(decomp_reduce(&f->w, "ReduceMean", "group_mean", *mean, &axis, 1, &all));
    OT_TRY(calc(f, "Sub", "away", *mean, all, &away));
    OT_TRY(calc(f, "Mul", "square", away, away, &square));
    OT_TRY(calc(f, "Add", "spread", *variance, square, &spread));
    *mean = all;
    return decomp_reduce(&f->w, "ReduceMean", "group_variance", spread, &axis, 1, variance);
}

/* x, [N, groups, 1 or per_group], becomes output v of the node. */
static ot_status hand_out(factors *f, ot_id x, const char *role, ot_id v)
{
    const ot_value y = f->w.g->values[v], from = f->w.g->values[x];
    const int64_t dims[3] = {1, 1, f->per_group};
    const ot_attr to = ot_mk_int("to", y.dtype);
    if (from.dims[2] < f->per_group) {
        double *ones = ot_alloc_n(f->w.g->model->arena, (size_t)f->per_group, sizeof *ones);
        ot_id spread;
        if (!ones) return ot_fail_nomem(f->w.g->model->diag);
        for (int64_t k = 0; k < f->per_group; k++) ones[k] = 1;
        OT_TRY(decomp_doubles(&f->w, "ones", ones, 3, dims, &spread));
        OT_TRY(calc(f, "Mul", role, x, spread, &x));
    }
    OT_TRY(decomp_reshape(&f->w, role, x, y.rank, y.dims, &x));
    return decomp_op(&f->w,
                     &(ot_node_def){.op = "Cast", .name = role, .in = {&x, 1}, .attrs = {&to, 1}},
                     ot_type_of(&y), &v);
}

/* Operand k of the node, if it is there. */
static ot_id operand(const ot_node *n, uint32_t k) { return k < n->n_in ? n->in[k] : OT_NONE; }

/* *x = *x op v, where v is there. */
static ot_status by_operand(factors *f, const char *op, const char *role, ot_id v, ot_id *x)
{
    ot_id other;
    if (v == OT_NONE) return OT_OK;
    OT_TRY(numbers(f, v, role, &other));
    return calc(f, op, role, *x, other, x);
}

static ot_status write_centred(factors *f, ot_id mean, ot_id variance, ot_id epsilon,
                               const ot_id *out)
{
    const double one = 1;
    ot_id root = OT_NONE, minus = OT_NONE, unit, factor;
    OT_TRY(decomp_op(&f->w, &(ot_node_def){.op = "Sqrt", .name = "deviation", .in = {&variance, 1}},
                     (ot_tensor_type){OT_F64, 3, f->w.g->values[variance].dims}, &root));
    OT_TRY(calc(f, "Add", "above_zero", root, epsilon, &root));
    OT_TRY(decomp_doubles(&f->w, "one", &one, 0, NULL, &unit));
    OT_TRY(calc(f, "Div", "factor", unit, root, &factor));
    OT_TRY(decomp_op(&f->w, &(ot_node_def){.op = "Neg", .name = "minus", .in = {&mean, 1}},
                     (ot_tensor_type){OT_F64, 3, f->w.g->values[mean].dims}, &minus));
    OT_TRY(hand_out(f, factor, "factor", out[0]));
    return hand_out(f, minus, "summand", out[1]);
}

ot_status ot_norm_factors_write(ot_graph *g, ot_id node)
{
    const ot_node n = g->nodes[node];
    const ot_value m = g->values[n.in[0]];
    const double epsilon = (double)ot_attr_float(&n, "epsilon", 0), one = 1;
    factors f = {
        .w = {.g = g, .base = n.name}, .n = m.dims[0], .groups = ot_attr_int(&n, "groups", 1)};
    ot_id mean, variance, eps, root = OT_NONE, factor, product, summand = OT_NONE, unit;
    f.per_group = m.dims[1] / f.groups;
    ot_node_remove(g, node);
    OT_TRY(pick(&f, n.in[0], 0, "mean", &mean));
    OT_TRY(pick(&f, n.in[0], 1, "variance", &variance));
    OT_TRY(join_groups(&f, &mean, &variance));
    OT_TRY(decomp_doubles(&f.w, "epsilon", &epsilon, 0, NULL, &eps));
    if (ot_attr_int(&n, "centred", 0)) return write_centred(&f, mean, variance, eps, n.out);
    OT_TRY(calc(&f, "Add", "above_zero", variance, eps, &variance));
    OT_TRY(decomp_op(&f.w, &(ot_node_def){.op = "Sqrt", .name = "deviation", .in = {&variance, 1}},
                     (ot_tensor_type){OT_F64, 3, g->values[variance].dims}, &root));
    if (operand(&n, 1) != OT_NONE)
        OT_TRY(numbers(&f, n.in[1], "scale", &unit));
    else
        OT_TRY(decomp_doubles(&f.w, "one", &one, 0, NULL, &unit));
    OT_TRY(calc(&f, "Div", "factor", unit, root, &factor));
    OT_TRY(calc(&f, "Mul", "product", mean, factor, &product));
    OT_TRY(decomp_op(&f.w, &(ot_node_def){.op = "Neg", .name = "minus", .in = {&product, 1}},
                     (ot_tensor_type){OT_F64, 3, g->values[product].dims}, &summand));
    OT_TRY(by_operand(&f, "Add", "bias", operand(&n, 2), &summand));
    OT_TRY(by_operand(&f, "Mul", "gamma", operand(&n, 3), &factor));
    OT_TRY(by_operand(&f, "Mul", "gamma", operand(&n, 3), &summand));
    OT_TRY(by_operand(&f, "Add", "beta", operand(&n, 4), &summand));
    OT_TRY(hand_out(&f, factor, "factor", n.out[0]));
    return hand_out(&f, summand, "summand", n.out[1]);
}
