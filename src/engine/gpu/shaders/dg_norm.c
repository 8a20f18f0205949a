/* Normalisations: mean and variance of a row in two passes, then each element.
 *
 *   InstanceNormalization  rows of [N, C]: all spatial axes           scale and bias by channel
 *   GroupNormalization     rows of [N, group]: channels of the group  scale and bias by channel
 *                          (by group before version 21)
 *   LayerNormalization     rows of the axes before `axis`             scale and bias by place in
 *                                                                     the row
 *   RMSNormalization       the same without a mean
 *   LpNormalization        divided by the norm along one axis
 */
#include "dg_rows.h"

/* x with its channels as [groups, channels / groups]. */
static ot_nd split_channels(const ot_nd *x, int64_t groups)
{
    ot_nd y = *x;
    y.rank++;
    for (uint32_t k = x->rank; k > 1; k--) {
        y.dims[k] = x->dims[k - 1];
        y.strides[k] = x->strides[k - 1];
    }
    y.dims[1] = groups;
    y.dims[2] = x->dims[1] / groups;
    y.strides[1] = x->strides[1] * y.dims[2];
    return y;
}

/* Rows of a normalisation (dg_share.c). Lines that make `mean` (unless it is none) and `factor` of
 * the row; `load`: an element. */
static void moments(dg_build *b, const dg_row *r, const char *load, bool centred, float epsilon)
{
    const char *n = dg_num(b, r->length);
    dg_line(b, "float mean = 0;\nsum_t s = 0;");
    if (centred) {
        dg_row_loops(b, r);
        dg_line(b, "s += %s;", load);
        dg_row_close(b, r);
        dg_row_merge(b, r, "sum_t", "s", "s += x");
        dg_line(b, "mean = to_float(s / %s);\ns = 0;", n);
    }
    dg_row_loops(b, r);
    dg_line(b, "const float x = %s - mean;\ns += x * x;", load);
    dg_row_close(b, r);
    dg_row_merge(b, r, "sum_t", "s", "s += x");
    dg_line(b, "const float factor = 1 / sqrt(to_float(s / %s) + to_float(%.9g));", n,
            (double)epsilon);
}

/* Operand `v` at the element: by `coords` aligned at the right, for LayerNormalization. */
static const char *row_operand(dg_build *b, const dg_row *r, ot_id v)
{
    const char *c[OT_RANK_MAX];
    uint32_t arg = dg_arg(b, v, NULL, false);
    const ot_nd *x = &b->arrays[arg];
    if (!dg_broadcasts(x, r->rank, r->dims)) {
        (void)dg_refuse(b, DG_CONTRADICT);
        return "0";
    }
    for (uint32_t k = 0; k < x->rank; k++)
        c[k] = x->dims[k] == 1 ? "0" : r->coords[r->rank - x->rank + k];
    return dg_load(b, arg, dg_index(b, arg, c));
}

static bool layer_norm(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]);
    int64_t axis = ot_attr_int(n, "axis", -1);
    dg_row r = {0};
    for (uint32_t k = 1; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) return dg_refuse(b, "more than one output");
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank) return dg_refuse(b, "an axis out of range");
    for (uint32_t k = (uint32_t)axis; k < x->rank; k++) r.reduced[k] = true;
    if (!dg_row_open(b, &r, x)) return false;
    uint32_t in = dg_arg(b, n->in[0], NULL, false), out = dg_arg(b, n->out[0], NULL, true);
    const char *load = dg_load(b, in, dg_index(b, in, r.coords));
    moments(b, &r, load, n->op == OT_OP_LayerNormalization, ot_attr_float(n, "epsilon", 1e-5f));
    dg_row_loops(b, &r);
    const char *y = dg_fmt(b, "(%s - mean) * factor * %s", load, row_operand(b, &r, n->in[1]));
    if (dg_in(n, 2) != OT_NONE) y = dg_fmt(b, "%s + %s", y, row_operand(b, &r, n->in[2]));
    dg_store(b, out, dg_index(b, out, r.coords), y);
    dg_row_close(b, &r);
    dg_row_end(b, &r, 4, 8.0 * (double)r.items * (double)r.length);
    return !b->why;
}

/* InstanceNormalization is a GroupNormalization with a channel a group. */
static bool group_norm(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]), *y = dg_nd(b, n->out[0]);
    bool instance = n->op == OT_OP_InstanceNormalization;
    dg_row r = {0};
    if (x->rank < 3 || x->rank >= OT_RANK_MAX) return dg_refuse(b, "a normalisation of this rank");
    int64_t groups = instance ? x->dims[1] : ot_attr_int(n, "num_groups", 0);
    if (groups < 1 || x->dims[1] % groups != 0)
        return dg_refuse(b, "channels that are no whole groups");
    ot_nd from = split_channels(x, groups), to = split_channels(y, groups);
    bool by_group = !instance && n->version < 21;
    for (uint32_t k = 1; k < 3; k++) {
        const ot_nd *v = dg_nd(b, n->in[k]);
        if (v->rank != 1 || v->dims[0] != (by_group ? groups : x->dims[1]))
            return dg_refuse(b, DG_CONTRADICT);
    }
    for (uint32_t k = 2; k < from.rank; k++) r.reduced[k] = true;
    dg_row_join(&r, 3, &from, &to);
    if (!dg_row_open(b, &r, &from)) return false;
    uint32_t in = dg_arg(b, n->in[0], &from, false), out = dg_arg(b, n->out[0], &to, true);
    uint32_t scale = dg_arg(b, n->in[1], NULL, false), bias = dg_arg(b, n->in[2], NULL, false);
    const char *load = dg_load(b, in, dg_index(b, in, r.coords));
    moments(b, &r, load, true, ot_attr_float(n, "epsilon", 1e-5f));
    const char *channel = by_group ? r.coords[1]
                                   : dg_fmt(b, "%s * %s + %s", r.coords[1], dg_num(b, from.dims[2]),
                                            r.coords[2]);
    dg_row_loops(b, &r);
    dg_store(b, out, dg_index(b, out, r.coords),
             dg_fmt(b, "(%s - mean) * factor * %s + %s", load, dg_load(b, scale, channel),
                    dg_load(b, bias, channel)));
    dg_row_close(b, &r);
    dg_row_end(b, &r, 1, 8.0 * (double)r.items * (double)r.length);
    return !b->why;
}

static bool lp_norm(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]);
    int64_t axis = ot_attr_int(n, "axis", -1), p = ot_attr_int(n, "p", 2);
    dg_row r = {0};
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank || (p != 1 && p != 2))
        return dg_refuse(b, "a norm of this order");
    r.reduced[axis] = true;
    if (!dg_row_open(b, &r, x)) return false;
    uint32_t in = dg_arg(b, n->in[0], NULL, false), out = dg_arg(b, n->out[0], NULL, true);
    const char *load = dg_load(b, in, dg_index(b, in, r.coords));
    dg_line(b, "sum_t s = 0;");
    dg_row_loops(b, &r);
    dg_line(b, "const float x = %s;\ns += %s;", load, p == 1 ? "fabs(x)" : "x * x");
    dg_row_close(b, &r);
    dg_row_merge(b, &r, "sum_t", "s", "s += x");
    dg_line(b, "const float norm = to_float(%s);", p == 1 ? "s" : "sqrt(s)");
    dg_row_loops(b, &r);
    dg_store(b, out, dg_index(b, out, r.coords), dg_fmt(b, "norm == 0 ? 0 : %s / norm", load));
    dg_row_close(b, &r);
    dg_row_end(b, &r, 4, 4.0 * (double)r.items * (double)r.length);
    return !b->why;
}

/* LRN: each element over a power of the squares around it, along the channels. */
static bool local_norm(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]);
    const int64_t size = ot_attr_int(n, "size", 0);
    const char *c[OT_RANK_MAX], *at[OT_RANK_MAX];
    int64_t items;
    if (x->rank < 2 || size < 1) return dg_refuse(b, "an LRN of this shape");
    if (!ot_nd_elems(x, &items) || items == 0) return dg_refuse(b, "an empty result");
    if (!dg_steps(b, (double)size)) return false;
    dg_begin(b, items);
    dg_split(b, "c", x->rank, x->dims, c);
    memcpy(at, c, sizeof at);
    at[1] = x->dims[1] == 1 ? "0" : "k";
    uint32_t in = dg_arg(b, n->in[0], NULL, false), out = dg_arg(b, n->out[0], NULL, true);
    dg_line(b, "float s = 0;\nfor (int k = %s - %lld; k <= %s + %lld; k++) {", c[1],
            (long long)((size - 1) / 2), c[1], (long long)(size / 2));
    dg_line(b, "if (k < 0 || k >= %s) continue;", dg_num(b, x->dims[1]));
    dg_line(b, "const float v = %s;\ns += v * v;\n}", dg_load(b, in, dg_index(b, in, at)));
    const double alpha = (double)ot_attr_float(n, "alpha", 0.0001f) / (double)size;
    dg_store(b, out, dg_index(b, out, c),
             dg_fmt(b, "%s / power(%s + %s * s, %s)", dg_load(b, in, dg_index(b, in, c)),
                    dg_float(b, (double)ot_attr_float(n, "bias", 1.0f), false),
                    dg_float(b, alpha, false),
                    dg_float(b, (double)ot_attr_float(n, "beta", 0.75f), false)));
    dg_end(b, items, 64, 2.0 * (double)items * (double)size);
    return !b->why;
}

bool dg_norm(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]);
    if (!ot_dtype_is_real(x->dtype)) return dg_refuse(b, "a normalisation of this type");
    if (!dg_same_dims(x, dg_nd(b, n->out[0]))) return dg_refuse(b, DG_CONTRADICT);
    switch ((int)n->op) {
    case OT_OP_LayerNormalization:
    case OT_OP_RMSNormalization: return layer_norm(b, n);
    case OT_OP_InstanceNormalization:
    case OT_OP_GroupNormalization: return group_norm(b, n);
    case OT_OP_LpNormalization: return lp_norm(b, n);
    case OT_OP_LRN: return local_norm(b, n);
    default: return dg_refuse(b, "an operator that has no kernel");
    }
}
