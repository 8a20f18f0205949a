/* Which nodes are a normalisation over spatial axes, in the forms that exporters write.
 *
 *   InstanceNormalization, GroupNormalization       one node
 *   Reshape [N, G, ...] - InstanceNormalization - Reshape [N, C, ...]
 *       [- Mul gamma [C,1,1] [- Add beta [C,1,1]]]  torch's GroupNorm
 *   the form of decompose_written.c, with such reshapes around it or not
 *   any of them, with Mul and Add behind it         gamma and beta are taken in: two passes less
 *   MeanVarianceNormalization of one sample, over maps, or channels and maps
 *   LayerNormalization over the last axes from 1 or 2 on  its scale and bias, a number for each
 *                                                         element, stay what they are
 */
#include "decompose_internal.h"

#define MVN_SINCE   9     /* opset since which MeanVarianceNormalization has axes */
#define MVN_EPSILON 1e-9f /* that the standard adds to the deviation */

bool decomp_is_image(const ot_value *x)
{
    if (!x->is_tensor || !ot_value_is_static(x) || x->rank < 3 || x->rank > OT_RANK_MAX - 4)
        return false;
    for (int32_t a = 0; a < x->rank; a++)
        if (x->dims[a] < 1) return false;
    return x->dtype == OT_F32 || x->dtype == OT_F64 || x->dtype == OT_F16 || x->dtype == OT_BF16;
}

static bool same_shape(const ot_value *a, const ot_value *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static int64_t elements(const ot_value *v)
{
    int64_t n;
    return v->is_tensor && ot_value_elems(v, &n) ? n : -1;
}

/* v has a number for each channel of x, where numpy's rules put them there. */
static bool is_by_channel(const ot_value *v, const ot_value *x)
{
    const int32_t at = v->rank - (x->rank - 1);
    return at >= 0 && v->rank <= x->rank && v->dtype == x->dtype && elements(v) == x->dims[1] &&
           v->dims[at] == x->dims[1];
}

/* The only reader of n's result is operator `op` with another operand that has a number for each
 * channel: then it is taken in. */
static bool take_in(const ot_graph *g, ot_norm *n, ot_op op, ot_id *other)
{
    const ot_id reader = ot_value_only_reader(g, n->y);
    if (reader == OT_NONE || g->nodes[reader].op != op) return false;
    const ot_node *r = &g->nodes[reader];
    const ot_id v = r->in[0] == n->y ? r->in[1] : r->in[0];
    if (v == OT_NONE || v == n->y || !is_by_channel(&g->values[v], &g->values[n->x])) return false;
    if (!same_shape(&g->values[r->out[0]], &g->values[n->x])) return false;
    *other = v;
    n->nodes[n->n_nodes++] = reader;
    n->y = r->out[0];
    return true;
}

/* Nobody but the nodes of n reads its x. */
static bool is_read_by_it_alone(const ot_graph *g, const ot_norm *n)
{
    const ot_value *x = &g->values[n->x];
    for (uint32_t u = 0; u < x->n_uses; u++) {
        bool own = false;
        for (uint32_t k = 0; k < n->n_nodes; k++) own |= n->nodes[k] == x->uses[u];
        if (!own) return false;
    }
    return !x->is_output;
}

/* Reshapes around: from [N, C, ...] to groups, and back. */
static void look_through_reshapes(const ot_graph *g, ot_norm *n)
{
    const ot_id maker = g->values[n->x].producer, reader = ot_value_only_reader(g, n->y);
    if (maker == OT_NONE || reader == OT_NONE || !is_read_by_it_alone(g, n)) return;
    const ot_node *to = &g->nodes[maker], *back = &g->nodes[reader];
    if (to->op != OT_OP_Reshape || back->op != OT_OP_Reshape || back->in[0] != n->y) return;
    const ot_value *x = &g->values[to->in[0]], *grouped = &g->values[n->x],
                   *y = &g->values[back->out[0]];
    if (!decomp_is_image(x) || !ot_value_is_static(y) || !same_shape(x, y) ||
        elements(x) != elements(grouped))
        return;
    if (x->dims[0] != grouped->dims[0] || x->dims[1] % grouped->dims[1] != 0) return;
    memmove(n->nodes + 1, n->nodes, n->n_nodes * sizeof *n->nodes);
    n->nodes[0] = maker;
    n->nodes[++n->n_nodes] = reader;
    n->n_nodes++;
    n->x = to->in[0];
    n->y = back->out[0];
}

/* InstanceNormalization or GroupNormalization. */
static bool find_node(const ot_graph *g, ot_id id, ot_norm *out)
{
    const ot_node *n = &g->nodes[id];
    if ((n->op != OT_OP_InstanceNormalization && n->op != OT_OP_GroupNormalization) || n->n_in < 3)
        return false;
    if (n->in[0] == OT_NONE || n->in[1] == OT_NONE || n->in[2] == OT_NONE || n->out[0] == OT_NONE)
        return false;
    const ot_value *x = &g->values[n->in[0]];
    *out = (ot_norm){.x = n->in[0],
                     .y = n->out[0],
                     .epsilon = ot_attr_float(n, "epsilon", 1e-5f),
                     .scale = n->in[1],
                     .bias = n->in[2],
                     .gamma = OT_NONE,
                     .beta = OT_NONE,
                     .each_scale = OT_NONE,
                     .each_bias = OT_NONE,
                     .nodes = {id},
                     .n_nodes = 1};
    if (!decomp_is_image(x)) return false;
    out->groups = n->op == OT_OP_GroupNormalization ? ot_attr_int(n, "num_groups", 0) : x->dims[1];
    if (out->groups < 1 || x->dims[1] % out->groups != 0) return false;
    for (int k = 1; k < 3; k++) {
        const int64_t size = elements(&g->values[n->in[k]]);
        if ((size != out->groups && size != x->dims[1]) || g->values[n->in[k]].dtype != x->dtype)
            return false;
    }
    return true;
}

/* LayerNormalization over the maps of each channel, or of all of them: [N, C, H, W] with axis 2
 * or 1. Over the last axis alone tokens can be cut, and nothing is gained. */
static bool find_layer(const ot_graph *g, ot_id id, ot_norm *out)
{
    const ot_node *n = &g->nodes[id];
    if (n->op != OT_OP_LayerNormalization || n->n_in < 2 || n->in[0] == OT_NONE ||
        n->in[1] == OT_NONE || n->out[0] == OT_NONE)
        return false;
    const ot_value *x = &g->values[n->in[0]], *y = &g->values[n->out[0]];
    int64_t axis = ot_attr_int(n, "axis", -1);
    if (axis < 0) axis += x->rank;
    if (!decomp_is_image(x) || x->rank < 4 || axis < 1 || axis > 2 || !same_shape(x, y) ||
        ot_attr_int(n, "stash_type", 1) != 1)
        return false;
    for (uint32_t k = 1; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) return false;
    for (uint32_t k = 1; k < n->n_in; k++) {
        if (n->in[k] == OT_NONE) continue;
        const ot_value *v = &g->values[n->in[k]];
        if (v->dtype != x->dtype || !ot_value_is_static(v) || v->rank > x->rank - axis)
            return false;
        for (int32_t a = 0; a < v->rank; a++)
            if (v->dims[a] != 1 && v->dims[a] != x->dims[x->rank - v->rank + a]) return false;
    }
    *out = (ot_norm){.x = n->in[0],
                     .y = n->out[0],
                     .groups = axis == 1 ? 1 : x->dims[1],
                     .epsilon = ot_attr_float(n, "epsilon", 1e-5f),
                     .scale = OT_NONE,
                     .bias = OT_NONE,
                     .gamma = OT_NONE,
                     .beta = OT_NONE,
                     .each_scale = n->in[1],
                     .each_bias = n->n_in > 2 ? n->in[2] : OT_NONE,
                     .nodes = {id},
                     .n_nodes = 1};
    return true;
}

/* MeanVarianceNormalization over all maps of a channel, or of all channels, of one sample. */
static bool find_mean_variance(const ot_graph *g, ot_id id, ot_norm *out)
{
    static const int64_t usual[] = {0, 2, 3};
    const ot_node *n = &g->nodes[id];
    bool reduced[OT_RANK_MAX] = {false};
    size_t n_axes = 0;
    if (n->op != OT_OP_MeanVarianceNormalization || n->version < MVN_SINCE || n->in[0] == OT_NONE ||
        n->out[0] == OT_NONE)
        return false;
    const ot_value *x = &g->values[n->in[0]], *y = &g->values[n->out[0]];
    const int64_t *axes = ot_attr_ints(n, "axes", &n_axes);
    if (!decomp_is_image(x) || !same_shape(x, y) || x->dtype != y->dtype) return false;
    if (!axes) {
        axes = usual;
        n_axes = sizeof usual / sizeof *usual;
    }
    for (size_t k = 0; k < n_axes; k++) {
        const int64_t axis = axes[k] < 0 ? axes[k] + x->rank : axes[k];
        if (axis < 0 || axis >= x->rank) return false;
        reduced[axis] = true;
    }
    if (reduced[0] && x->dims[0] != 1) return false;
    for (int32_t a = 2; a < x->rank; a++)
        if (!reduced[a]) return false;
    *out = (ot_norm){.x = n->in[0],
                     .y = n->out[0],
                     .groups = reduced[1] ? 1 : x->dims[1],
                     .epsilon = MVN_EPSILON,
                     .centred = true,
                     .scale = OT_NONE,
                     .bias = OT_NONE,
                     .gamma = OT_NONE,
                     .beta = OT_NONE,
                     .each_scale = OT_NONE,
                     .each_bias = OT_NONE,
                     .nodes = {id},
                     .n_nodes = 1};
    return true;
}

bool ot_decompose_find(const ot_graph *g, ot_id id, ot_norm *out)
{
    if (g->nodes[id].dead) return false;
    if (find_layer(g, id, out) || find_mean_variance(g, id, out)) return true;
    const bool written = decomp_find_written(g, id, out);
    if (!written && !find_node(g, id, out)) return false;
    const bool each = out->groups == g->values[out->x].dims[1];
    if (each && g->nodes[id].op != OT_OP_GroupNormalization) look_through_reshapes(g, out);
    const bool grouped = g->nodes[out->nodes[0]].op == OT_OP_Reshape;
    /* [N, tokens, features] is cut by tokens as it is */
    if (written && !grouped && g->values[out->x].rank == 3) return false;
    if (take_in(g, out, OT_OP_Mul, &out->gamma)) take_in(g, out, OT_OP_Add, &out->beta);
    return true;
}
