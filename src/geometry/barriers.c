/* What keeps an axis of an input from being cropped: nodes that lose it, and nodes whose result on
 * a crop would be another one.
 *
 * A node is in the way when it reads a value that moves and none of its outputs follows; when it
 * has an operand that lies along the axis and is the model's own (it fits one extent, or one
 * place); when it computes with an extent. Everything computed of its results is behind it.
 */
#include "geometry_internal.h"

#include "ops/access.h"

#define EVEN_DEPTH 16 /* nodes that are looked back over */
#define POSITIONS  "an operand that lies along the axis is no input's: it says where a row lies"

const char *ot_geometry_kind_name(ot_geometry_kind kind)
{
    switch (kind) {
    case OT_GEOMETRY_REDUCE: return "reduce";
    case OT_GEOMETRY_ATTENTION: return "attention";
    case OT_GEOMETRY_FIXED: return "fixed-size";
    case OT_GEOMETRY_DATA: return "data-dependent";
    }
    return "data-dependent";
}

ot_status ot_spread_stop(ot_spread *s, ot_arena *a, ot_id n, ot_geometry_kind kind, const char *why)
{
    if (s->stops[n]) return OT_OK;
    s->stops[n] = true;
    const ot_node *x = &s->g->nodes[n];
    const ot_geometry_barrier b = {.node = n,
                                   .name = x->name[0] || x->n_out == 0 || x->out[0] == OT_NONE
                                               ? x->name
                                               : s->g->values[x->out[0]].name,
                                   .op = x->op_type,
                                   .kind = kind,
                                   .why = why};
    return OT_PUSH(a, s->barriers, s->n_barriers, s->cap_barriers, b)
               ? OT_OK
               : ot_fail_nomem(s->g->model->diag);
}

bool ot_reads_extents(const ot_node *n) { return n->op == OT_OP_Shape || n->op == OT_OP_Size; }

static bool is_constant(const ot_value *v) { return v->is_const || (v->init && !v->overridable); }

/* Operands that are multiplied with each other, all of them computed. */
static bool multiplies_data(const ot_graph *g, const ot_node *n)
{
    uint32_t computed = 0;
    for (uint32_t k = 0; k < n->n_in; k++)
        computed += n->in[k] != OT_NONE && !is_constant(&g->values[n->in[k]]);
    return computed > 1;
}

/* What a softmax makes is multiplied with other data: the weights of an attention. */
static bool weighs_rows(const ot_graph *g, const ot_node *n)
{
    for (uint32_t step = 0; step < 8 && n->n_out > 0 && n->out[0] != OT_NONE; step++) {
        const ot_value *y = &g->values[n->out[0]];
        if (y->n_uses != 1) return false;
        n = &g->nodes[y->uses[0]];
        const ot_access_kind kind = ot_op_access(n->op);
        if (kind == OT_ACC_MATMUL || kind == OT_ACC_EINSUM) return multiplies_data(g, n);
        if (kind != OT_ACC_POINTWISE && kind != OT_ACC_RESHAPE && kind != OT_ACC_TRANSPOSE)
            return false;
    }
    return false;
}

static ot_geometry_kind kind_of(const ot_graph *g, const ot_node *n)
{
    if (n->op == OT_OP_OPAQUE || n->n_captured > 0) return OT_GEOMETRY_DATA;
    switch (ot_op_access(n->op)) {
    case OT_ACC_GLOBALPOOL:
    case OT_ACC_REDUCE:
    case OT_ACC_NORM:
    case OT_ACC_CUMSUM: return OT_GEOMETRY_REDUCE;
    case OT_ACC_SOFTMAX: return weighs_rows(g, n) ? OT_GEOMETRY_ATTENTION : OT_GEOMETRY_REDUCE;
    case OT_ACC_ATTENTION: return OT_GEOMETRY_ATTENTION;
    case OT_ACC_MATMUL:
    case OT_ACC_GEMM:
    case OT_ACC_EINSUM: return multiplies_data(g, n) ? OT_GEOMETRY_ATTENTION : OT_GEOMETRY_FIXED;
    case OT_ACC_GATHER:
        return n->n_in > 1 && n->in[1] != OT_NONE && is_constant(&g->values[n->in[1]])
                   ? OT_GEOMETRY_FIXED
                   : OT_GEOMETRY_DATA;
    /* how many rows there are is the runtime's affair */
    case OT_ACC_POOL: return ot_acc_pad_lost(g, n) ? OT_GEOMETRY_DATA : OT_GEOMETRY_FIXED;
    case OT_ACC_BARRIER:
    case OT_ACC_BATCHED:
    case OT_ACC_ROWS:
    case OT_ACC_SHAPE: return OT_GEOMETRY_DATA;
    default: return OT_GEOMETRY_FIXED;
    }
}

/* Of another axis, or of none. */
static bool says_little(ot_why why)
{
    return why == OT_WHY_NOT_ALONG_AXIS || why == OT_WHY_NO_INPUT_VARIES ||
           why == OT_WHY_EXTENT_ONE;
}

/* What is said where the slice relation has no more to say. */
static const char *sentence(ot_why why, ot_geometry_kind kind)
{
    if (!says_little(why)) return ot_reason_sentence(why);
    switch (kind) {
    case OT_GEOMETRY_REDUCE: return ot_reason_sentence(OT_WHY_REDUCE);
    case OT_GEOMETRY_ATTENTION: return "a product of data needs this axis whole";
    case OT_GEOMETRY_FIXED: return "no axis of its result follows this one";
    case OT_GEOMETRY_DATA: break;
    }
    return ot_reason_sentence(why);
}

/* Does some output follow axis `axis` of operand k? If not, *why is the most telling reason: that
 * of the same axis, else any. */
static bool follows(ot_spread *s, const ot_node *n, uint32_t k, int8_t *in, int8_t *out,
                    ot_why *why)
{
    const int8_t axis = s->axis[n->in[k]];
    *why = OT_WHY_NOT_ALONG_AXIS;
    if (k == 0 && ot_spread_runs(s, n)) return true;
    for (uint32_t o = 0; o < n->n_out; o++) {
        const ot_id y = n->out[o];
        for (int32_t a = 0; y != OT_NONE && a < s->g->values[y].rank; a++) {
            ot_why here;
            if (ot_access_axis(s->g, n, o, (uint32_t)a, in, out, &here)) {
                if (in[k] == axis && s->axis[y] == a) return true;
            } else if (says_little(*why) || (a == axis && !says_little(here))) {
                *why = here;
            }
        }
    }
    return false;
}

/* Weights are multiplied with the axis of operand k. */
static bool meets_weights(const ot_graph *g, const ot_node *n, uint32_t k, int8_t axis)
{
    const ot_access_kind kind = ot_op_access(n->op);
    if (kind == OT_ACC_CONV || kind == OT_ACC_CONVT || ot_is_fused_conv(n))
        return k == 0 && axis == 1;
    if (kind == OT_ACC_MATMUL || kind == OT_ACC_GEMM || kind == OT_ACC_EINSUM)
        return !multiplies_data(g, n);
    return false;
}

/* An operator of pictures, cut along one of their axes. */
static bool treats_as_picture(const ot_node *n, int8_t axis)
{
    switch (ot_op_access(n->op)) {
    case OT_ACC_CONV:
    case OT_ACC_CONVT:
    case OT_ACC_POOL:
    case OT_ACC_GLOBALPOOL:
    case OT_ACC_BLOCK:
    case OT_ACC_RESIZE: return axis >= 2;
    case OT_ACC_NORM: return axis >= 2 && n->op == OT_OP_InstanceNormalization;
    default: return ot_is_fused_conv(n) && axis >= 2;
    }
}

/* A Resize of one row along axis `axis` of its result, to any number of them, that are all this
 * one. */
static bool spreads_one_row(const ot_graph *g, const ot_node *n, int8_t axis)
{
    if (ot_op_access(n->op) != OT_ACC_RESIZE || axis < 0 || n->in[0] == OT_NONE) return false;
    const ot_value *x = &g->values[n->in[0]];
    const char *mode = ot_attr_str(n, "mode", "nearest"),
               *how = ot_attr_str(n, "coordinate_transformation_mode", "half_pixel");
    return x->rank == g->values[n->out[0]].rank && x->dims[axis] == 1 &&
           strcmp(mode, "cubic") != 0 && strcmp(how, "tf_crop_and_resize") != 0;
}

/* Of rows that are the same it makes such: no border shows in them. */
static bool keeps_even(const ot_node *n)
{
    switch (ot_op_access(n->op)) {
    case OT_ACC_POINTWISE:
    case OT_ACC_TRANSPOSE:
    case OT_ACC_CONCAT:
    case OT_ACC_EXPAND:
    case OT_ACC_RESHAPE:
    case OT_ACC_SLICE:
    case OT_ACC_SPLIT:
    case OT_ACC_QUANT: return true;
    default: return false;
    }
}

/* All rows of v along the axis are the same: a constant spread over it, and what is made of
 * such. */
static bool is_even(const ot_spread *s, ot_id v, uint32_t depth)
{
    const ot_id id = s->g->values[v].producer;
    if (id == OT_NONE || depth == 0) return false;
    const ot_node *n = &s->g->nodes[id];
    if (n->op == OT_OP_ConstantOfShape) return true;
    if (s->lead[id] == OT_NONE || ot_spread_runs(s, n) || !keeps_even(n)) return false;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (s->in_axis[id][k] >= 0 && !is_even(s, n->in[k], depth - 1)) return false;
    return true;
}

/* Operands that say what shape there is to be: the slice relation has read them. */
static bool is_shape_operand(const ot_node *n, uint32_t k)
{
    switch (ot_op_access(n->op)) {
    case OT_ACC_RESHAPE:
    case OT_ACC_EXPAND:
    case OT_ACC_TILE:
    case OT_ACC_SPLIT:
    case OT_ACC_SLICE:
    case OT_ACC_RESIZE: return k > 0;
    case OT_ACC_PAD: return k == 1 || k == 3;
    default: return ot_reads_extents(n);
    }
}

/* v is known, and the same, at both sizes. */
static bool is_same(const ot_spread *s, ot_id v)
{
    const ot_value *x = &s->g->values[v], *y = s->beside ? &s->beside->values[v] : NULL;
    if (!y || x->known_n != y->known_n) return false;
    if (x->known && y->known) return memcmp(x->known, y->known, x->known_n * sizeof *x->known) == 0;
    return x->known_floats && y->known_floats &&
           memcmp(x->known_floats, y->known_floats, x->known_n * sizeof *x->known_floats) == 0;
}

/* What is wrong with operand k of a node whose output moves; NULL: nothing. */
static const char *bad_operand(const ot_spread *s, const ot_node *n, uint32_t k,
                               ot_geometry_kind *kind)
{
    const ot_id v = n->in[k];
    *kind = OT_GEOMETRY_FIXED;
    if (s->axis[v] >= 0) return s->reads[v] || is_even(s, v, EVEN_DEPTH) ? NULL : POSITIONS;
    *kind = OT_GEOMETRY_DATA;
    if (s->sized[v] && !is_shape_operand(n, k) && !is_same(s, v))
        return "it computes with the extent of the axis";
    return NULL;
}

/* Some operand of n that moves is computed of an input. */
static bool reads_rows(const ot_spread *s, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && s->axis[n->in[k]] >= 0 && s->reads[n->in[k]]) return true;
    return false;
}

/* Every operand of node n is such that its outputs on a crop are those of the whole. */
static ot_status check_node(ot_spread *s, ot_arena *a, ot_id id, int8_t *in, int8_t *out)
{
    const ot_node *n = &s->g->nodes[id];
    const bool shapes = ot_reads_extents(n);
    ot_why why;
    for (uint32_t k = 0; k < n->n_captured; k++)
        if (s->reads[n->captured[k]] && s->axis[n->captured[k]] >= 0)
            OT_TRY(ot_spread_stop(s, a, id, OT_GEOMETRY_DATA, ot_reason_sentence(OT_WHY_SUBGRAPH)));
    for (uint32_t k = 0; k < n->n_in && !shapes; k++) {
        const ot_id v = n->in[k];
        if (v == OT_NONE || s->axis[v] < 0) continue;
        if (treats_as_picture(n, s->axis[v])) s->is_spatial = true;
        if (!s->reads[v] || follows(s, n, k, in, out, &why)) continue;
        if (meets_weights(s->g, n, k, s->axis[v])) s->is_feature = true;
        const ot_id norm = ot_group_norm_of(s->g, id, NULL);
        if (norm != OT_NONE) {
            OT_TRY(ot_spread_stop(s, a, norm, OT_GEOMETRY_REDUCE,
                                  ot_reason_sentence(OT_WHY_GROUP_NORM)));
            s->stops[id] = true; /* told as the one that it is a part of */
            continue;
        }
        const ot_geometry_kind kind = kind_of(s->g, n);
        OT_TRY(ot_spread_stop(s, a, id, kind, sentence(why, kind)));
    }
    const bool rows = s->lead[id] != OT_NONE && (reads_rows(s, n) || ot_spread_runs(s, n));
    for (uint32_t k = 0; k < n->n_in && rows; k++) {
        ot_geometry_kind kind;
        const char *bad = n->in[k] == OT_NONE ? NULL : bad_operand(s, n, k, &kind);
        if (!bad) continue;
        if (kind == OT_GEOMETRY_FIXED &&
            (n->op == OT_OP_BatchNormalization || ot_op_access(n->op) == OT_ACC_QUANT))
            s->is_feature = true;
        OT_TRY(ot_spread_stop(s, a, id, kind, bad));
    }
    return OT_OK;
}

/* Node n makes rows that are all the same, as many as the axis has, of what has none of them. What
 * reads them has the borders of a crop beside them, as beside rows of an input. */
static bool makes_even_rows(const ot_spread *s, const ot_node *n)
{
    if (s->runs || n->n_out < 1 || n->out[0] == OT_NONE || s->axis[n->out[0]] < 0) return false;
    if (n->op == OT_OP_ConstantOfShape || spreads_one_row(s->g, n, s->axis[n->out[0]])) return true;
    return ot_op_access(n->op) == OT_ACC_EXPAND && n->in[0] != OT_NONE && s->axis[n->in[0]] < 0;
}

/* Operand k says how many rows a result of n has that moves with the rows it is made of: the slice
 * relation holds for it, and its elements are those of any extent. */
static bool says_extent(const ot_spread *s, const ot_node *n, uint32_t k)
{
    bool moves = false;
    if (makes_even_rows(s, n)) return true;
    if (!is_shape_operand(n, k) || ot_reads_extents(n)) return false;
    for (uint32_t o = 0; o < n->n_out; o++)
        moves |= n->out[o] != OT_NONE && s->axis[n->out[o]] >= 0;
    return moves && n->in[0] != OT_NONE && s->reads[n->in[0]];
}

/* What node n makes of what it reads. */
static void pass_on(ot_spread *s, ot_id id)
{
    const ot_node *n = &s->g->nodes[id];
    const bool shapes = ot_reads_extents(n);
    /* a sum of ones says how many rows there have been: as good as what is read */
    bool reads = ot_spread_runs(s, n) || makes_even_rows(s, n), sized = false,
         behind = s->stops[id];
    for (uint32_t k = 0; k < n->n_in + n->n_captured; k++) {
        const ot_id v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
        if (v == OT_NONE) continue;
        reads |= s->reads[v] && !shapes;
        sized |= (s->sized[v] && !(k < n->n_in && says_extent(s, n, k))) || (shapes && s->reads[v]);
        behind |= s->behind[v] && !shapes;
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (n->out[k] == OT_NONE) continue;
        s->reads[n->out[k]] = reads;
        s->sized[n->out[k]] = sized;
        s->behind[n->out[k]] = behind;
    }
}

ot_status ot_spread_barriers(ot_spread *s, ot_arena *a)
{
    const ot_graph *g = s->g;
    uint32_t wide = 1;
    for (uint32_t k = 0; k < g->n_nodes; k++) {
        if (g->nodes[k].n_in >= wide) wide = g->nodes[k].n_in + 1;
        if (g->nodes[k].n_out >= wide) wide = g->nodes[k].n_out + 1;
    }
    int8_t *in = OT_NEW_N(a, int8_t, wide), *out = OT_NEW_N(a, int8_t, wide);
    if (!in || !out) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < g->n_inputs; k++)
        s->reads[g->inputs[k]] = s->axis[g->inputs[k]] >= 0 && !g->values[g->inputs[k]].init;
    for (uint32_t k = 0; k < g->n_order; k++) {
        OT_TRY(check_node(s, a, g->order[k], in, out));
        pass_on(s, g->order[k]);
    }
    return OT_OK;
}
