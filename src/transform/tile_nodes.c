/* The region's operators, once, for one tile.
 *
 * Planning walks backwards: a value is needed when it is an output with a piece in this tile or
 * when a used node reads it; a node is used when one of its values is needed. Dimensions are
 * independent, so only here, with the windows of all of them, is it known what a tile really needs.
 * Emission walks forwards: each operand is the tile of its value, cropped when the value is held
 * wider than this reader wants it.
 *
 *     x  made [2,10)        conv wants [2,10)   -> the tile itself
 *                           add  wants [3,9)    -> Slice of the tile, shared by all such readers
 */
#include "transform_internal.h"
#include "transform/decompose/decompose.h"

/* ---- planning ---- */

static ot_status adapt(rw_chain *c, uint32_t i)
{
    const ot_region *r = c->w->r;
    const ot_rnode *rn = &r->nodes[i];
    const ot_node *n = &c->w->tiles->g->nodes[rn->node];
    ot_tile_axis axes[OT_DIMS_MAX];
    uint32_t n_axes = 0;
    for (uint32_t d = 0; d < r->n_dims; d++)
        if (rn->lead_axis[d] >= 0)
            axes[n_axes++] = (ot_tile_axis){rn->lead_out[d], (uint32_t)rn->lead_axis[d],
                                            &c->win[d]->ops[i]};
    /* What it makes ends up in the graph, so it lives as long as the model. */
    if (ot_tile_adapt(c->w->tiles->g, n, axes, n_axes, c->w->g->model->arena, &c->adapted[i]) !=
        OT_OK)
        return rw_nomem(c->w);
    return OT_OK;
}

/* Whether the written node reads operand j of the original. */
static bool reads(const rw_chain *c, uint32_t i, uint32_t j)
{
    const ot_rnode *rn = &c->w->r->nodes[i];
    const ot_adapted *a = &c->adapted[i];
    if (a->kind == OT_ADAPT_FORWARD) return j == a->forward;
    if (a->drop && a->drop[j]) return false;
    if (ot_adapted_operand(a, j)) return false;
    for (uint32_t d = 0; d < c->w->r->n_dims; d++)
        if (rn->lead_axis[d] != OT_AX_WHOLE && rn->in_axis[d][j] != OT_AX_WHOLE &&
            ot_win_empty(c->win[d]->ops[i].in[j]))
            return false;
    return true;
}

bool rw_has_piece(const rw_chain *c, uint32_t v)
{
    const ot_rvalue *rv = &c->w->r->values[v];
    bool any = rv->is_output;
    for (uint32_t d = 0; d < c->w->r->n_dims; d++)
        any = any && (rv->axis[d] == OT_AX_WHOLE || !ot_win_empty(c->win[d]->piece[v]));
    return any;
}

bool rw_no_piece(rw_region *w, const ot_tile_windows *const *win)
{
    rw_chain c = {.w = w};
    for (uint32_t d = 0; d < w->r->n_dims; d++) c.win[d] = win[d];
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++)
        if (rw_has_piece(&c, v)) return false;
    return true;
}

ot_status rw_chain_plan(rw_chain *c, rw_region *w, rw_target *t, const ot_tile_windows *const *win)
{
    const ot_region *r = w->r;
    *c = (rw_chain){.w = w, .t = t};
    memcpy(c->win, win, r->n_dims * sizeof *win);
    c->needed = OT_NEW_N(w->arena, bool, r->n_values);
    c->used = OT_NEW_N(w->arena, bool, r->n_nodes);
    c->adapted = OT_NEW_N(w->arena, ot_adapted, r->n_nodes);
    c->val = OT_NEW_N(w->arena, ot_id, r->n_values);
    if (!c->needed || !c->used || !c->adapted || !c->val) return rw_nomem(w);
    for (uint32_t v = 0; v < r->n_values; v++) {
        c->val[v] = OT_NONE;
        c->needed[v] = rw_has_piece(c, v);
    }
    for (uint32_t i = r->n_nodes; i-- > 0;) {
        const ot_rnode *rn = &r->nodes[i];
        const ot_node *n = &w->g->nodes[rn->node];
        for (uint32_t o = 0; o < n->n_out; o++)
            c->used[i] |= rn->out[o] != OT_NONE && c->needed[rn->out[o]];
        /* what is needed may be there already */
        if (r->form == OT_FORM_STREAM) c->used[i] = !ot_win_empty(c->win[0]->ops[i].need);
        if (!c->used[i]) continue;
        OT_TRY(adapt(c, i));
        for (uint32_t j = 0; j < n->n_in; j++)
            if (rn->in[j] != OT_NONE && reads(c, i, j)) c->needed[rn->in[j]] = true;
    }
    return OT_OK;
}

/* ---- emission ---- */

/* The tile of region value v as operand j of node i wants it. */
static ot_status operand_tile(rw_chain *c, uint32_t i, uint32_t j, uint32_t v, ot_id *out)
{
    const rw_region *w = c->w;
    const ot_rnode *rn = &w->r->nodes[i];
    rw_cut cuts[OT_DIMS_MAX];
    uint32_t n = 0;
    for (uint32_t d = 0; d < w->r->n_dims; d++) {
        if (rn->lead_axis[d] == OT_AX_WHOLE || rn->in_axis[d][j] == OT_AX_WHOLE) continue;
        int8_t axis = rn->in_axis[d][j];
        ot_win in = c->win[d]->ops[i].in[j];
        int64_t base = w->r->values[v].axis[d] == axis ? c->win[d]->made[v].lo : 0;
        cuts[n++] = (rw_cut){(uint32_t)axis, in.lo - base, c->to_end ? OT_TO_END : in.hi - base};
    }
    if (c->kept && v >= w->r->n_inputs) {
        const int64_t base = c->win[0]->made[v].lo;
        return rw_stream_rows(c, v, cuts[0].lo + base, c->to_end ? OT_TO_END : cuts[0].hi + base,
                              out);
    }
    if (c->val[v] == OT_NONE) OT_BUG("a tile reads a value that was not made");
    return rw_crop(c->w, c->t, c->val[v], cuts, n, w->g->values[w->r->values[v].value].name, out);
}

/* Operand j of node i as the original has it, tiles where it is cut. */
static ot_status original_operand(rw_chain *c, uint32_t i, uint32_t j, ot_id *out)
{
    const ot_rnode *rn = &c->w->r->nodes[i];
    ot_id v = c->w->g->nodes[rn->node].in[j];
    if (rn->in[j] != OT_NONE) return operand_tile(c, i, j, rn->in[j], out);
    if (v != OT_NONE) return rw_use(c->w, c->t, v, out);
    *out = OT_NONE;
    return OT_OK;
}

static ot_status collect_operands(rw_chain *c, uint32_t i, ot_id **list, uint32_t *count)
{
    const ot_node n = c->w->g->nodes[c->w->r->nodes[i].node];
    const ot_adapted *a = &c->adapted[i];
    const uint32_t all = ot_adapted_room(a, n.n_in);
    ot_id *in = OT_NEW_N(c->w->arena, ot_id, all);
    if (!in) return rw_nomem(c->w);
    *count = 0;
    for (uint32_t j = 0; j < all; j++) {
        const ot_operand *changed = ot_adapted_operand(a, j);
        if (!changed && j < n.n_in && a->drop && a->drop[j]) continue;
        ot_id *to = &in[(*count)++];
        *to = OT_NONE;
        if (changed && !changed->omit) {
            const char *name = j < n.n_in && n.in[j] != OT_NONE ? c->w->g->values[n.in[j]].name
                                                                : "operand";
            OT_TRY(rw_const(c->w, c->t, name, changed->tensor, to));
        } else if (!changed && j < n.n_in) {
            OT_TRY(original_operand(c, i, j, to));
        }
    }
    while (*count > 0 && in[*count - 1] == OT_NONE) (*count)--;
    *list = in;
    return OT_OK;
}

/* Shape of output o of node i, which the region uses, as the node makes it in this tile. */
static void output_dims(const rw_chain *c, uint32_t i, uint32_t o, int64_t *dims)
{
    const ot_region *r = c->w->r;
    const uint32_t v = r->nodes[i].out[o];
    ot_made_dims(c->w->g, r, c->win, v, dims);
    /* behind the rows that are there */
    if (c->kept) dims[r->values[v].axis[0]] = ot_win_len(c->win[0]->ops[i].made);
    for (uint32_t d = 0; c->to_end && d < r->n_dims; d++)
        if (r->values[v].axis[d] >= 0) dims[r->values[v].axis[d]] = OT_DIM_UNKNOWN;
}

/* Output o of node i, which the region does not use: left out where the operator allows that. */
static ot_status unused_output(rw_chain *c, uint32_t i, uint32_t o, ot_id *out)
{
    const rw_region *w = c->w;
    const ot_rnode *rn = &w->r->nodes[i];
    const ot_node n = w->g->nodes[rn->node];
    int64_t made[OT_RANK_MAX] = {0}, dims[OT_RANK_MAX];
    *out = OT_NONE;
    if (!ot_makes_all_outputs(&n) || n.out[o] == OT_NONE) return OT_OK;
    const ot_value v = w->g->values[n.out[o]], lead = w->g->values[n.out[rn->lead_out[0]]];
    output_dims(c, i, rn->lead_out[0], made); /* all are cut alike */
    for (int32_t k = 0; k < v.rank; k++) dims[k] = made[k] != lead.dims[k] ? made[k] : v.dims[k];
    return rw_value(c->w, c->t, c->t->label, v.name, (ot_tensor_type){v.dtype, v.rank, dims}, out);
}

/* Moments of a tile, in standard ONNX. */
static ot_status emit_moments(rw_chain *c, uint32_t i)
{
    const ot_rnode *rn = &c->w->r->nodes[i];
    const ot_node n = c->w->g->nodes[rn->node];
    size_t n_axes;
    const int64_t *axes = ot_attr_ints(&n, "axes", &n_axes);
    const char *base = rw_name(c->w, c->t->label, n.name);
    ot_id x;
    if (!base) return rw_nomem(c->w);
    OT_TRY(original_operand(c, i, 0, &x));
    c->val[rn->out[0]] = OT_NONE;
    return ot_moments_write(c->t->g, base, x, axes, n_axes, &c->val[rn->out[0]]);
}

/* Indices of rows of a tile, whose rows have the numbers `rows`: as constants where both are. */
static ot_status relative_index(rw_chain *c, const char *name, ot_id rows, ot_id index, ot_id *out)
{
    rw_region *w = c->w;
    const ot_graph *g = c->t->g;
    const ot_value from = g->values[rows], all = g->values[index];
    const int64_t zero = 0, one = 1;
    const ot_attr axis = ot_mk_int("axis", 0);
    ot_id at, first = OT_NONE;
    if (from.init && all.init && from.init->data && all.init->data) {
        const int64_t *numbers = from.init->data, *ids = all.init->data;
        int64_t *moved = OT_NEW_N(w->arena, int64_t, (size_t)all.dims[0]);
        if (!moved) return rw_nomem(w);
        for (int64_t k = 0; k < all.dims[0]; k++) moved[k] = ids[k] - numbers[0];
        return rw_const_i64(w, c->t, "index", moved, (size_t)all.dims[0], false, out);
    }
    const char *of_first = ot_format(w->arena, "%s/first", name),
               *of_index = ot_format(w->arena, "%s/index", name);
    if (!of_first || !of_index) return rw_nomem(w);
    OT_TRY(rw_const_i64(w, c->t, "first", &zero, 1, false, &at));
    OT_TRY(rw_op(
        w, c->t, c->t->label,
        &(ot_node_def){
            .op = "Gather", .name = of_first, .in = {(ot_id[]){rows, at}, 2}, .attrs = {&axis, 1}},
        (ot_tensor_type){OT_I64, 1, &one}, &first));
    *out = OT_NONE;
    return rw_op(w, c->t, c->t->label,
                 &(ot_node_def){.op = "Sub", .name = of_index, .in = {(ot_id[]){index, first}, 2}},
                 (ot_tensor_type){OT_I64, 1, all.dims}, out);
}

/* GatherRows of a tile, in standard ONNX. */
static ot_status emit_gather_rows(rw_chain *c, uint32_t i)
{
    rw_region *w = c->w;
    const ot_rnode *rn = &w->r->nodes[i];
    const ot_node n = w->g->nodes[rn->node];
    const ot_value y = w->g->values[n.out[0]];
    const ot_attr axis = ot_mk_int("axis", ot_attr_int(&n, "axis", 0));
    int64_t dims[OT_RANK_MAX];
    ot_id in[2];
    bool cut = false;
    for (uint32_t d = 0; d < w->r->n_dims; d++)
        cut |= rn->lead_axis[d] != OT_AX_WHOLE && rn->in_axis[d][1] != OT_AX_WHOLE;
    OT_TRY(original_operand(c, i, 0, &in[0]));
    OT_TRY(original_operand(c, i, 2, &in[1]));
    if (cut) {
        ot_id rows;
        OT_TRY(original_operand(c, i, 1, &rows));
        OT_TRY(relative_index(c, y.name, rows, in[1], &in[1]));
    }
    output_dims(c, i, 0, dims);
    ot_id *out = &c->val[rn->out[0]];
    *out = OT_NONE;
    return rw_op(w, c->t, c->t->label,
                 &(ot_node_def){.op = "Gather", .name = y.name, .in = {in, 2}, .attrs = {&axis, 1}},
                 (ot_tensor_type){y.dtype, y.rank, dims}, out);
}

static ot_status emit_node(rw_chain *c, uint32_t i)
{
    rw_region *w = c->w;
    const ot_rnode *rn = &w->r->nodes[i];
    const ot_node n = w->g->nodes[rn->node];
    const ot_adapted *a = &c->adapted[i];
    uint32_t n_in = 0, n_out = n.n_out;
    ot_id *in = NULL, *out = OT_NEW_N(w->arena, ot_id, n_out);
    if (!out) return rw_nomem(w);
    if (n.op == OT_OP_Moments && w->r->form != OT_FORM_WHILE) return emit_moments(c, i);
    if (n.op == OT_OP_GatherRows) return emit_gather_rows(c, i);
    if (a->kind == OT_ADAPT_FORWARD)
        return original_operand(c, i, a->forward, &c->val[rn->out[rn->lead_out[0]]]);
    OT_TRY(collect_operands(c, i, &in, &n_in));
    for (uint32_t o = 0; o < n_out; o++) {
        int64_t dims[OT_RANK_MAX];
        if (rn->out[o] == OT_NONE) {
            OT_TRY(unused_output(c, i, o, &out[o]));
            continue;
        }
        const ot_value v = w->g->values[n.out[o]];
        output_dims(c, i, o, dims);
        OT_TRY(rw_value(w, c->t, c->t->label, v.name, (ot_tensor_type){v.dtype, v.rank, dims},
                        &out[o]));
        c->val[rn->out[o]] = out[o];
    }
    while (n_out > 0 && out[n_out - 1] == OT_NONE) n_out--;
    const char *name = rw_name(w, c->t->label, n.name[0] ? n.name : n.op_type);
    if (!name) return rw_nomem(w);
    const char *type = a->op_type ? a->op_type : n.op_type;
    ot_id id = ot_node_new(c->t->g, &(ot_node_def){.op = type,
                                                   .domain = n.domain,
                                                   .name = name,
                                                   .in = {in, n_in},
                                                   .out = {out, n_out},
                                                   .attrs = {a->attrs, a->n_attrs}});
    return id == OT_NONE ? rw_nomem(w) : OT_OK;
}

ot_status rw_chain_emit(rw_chain *c)
{
    for (uint32_t i = 0; i < c->w->r->n_nodes; i++)
        if (c->used[i]) OT_TRY(emit_node(c, i));
    return OT_OK;
}
