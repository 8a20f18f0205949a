/* What a tile of a lowered kernel does: inputs are brought, operators run on their windows, pieces
 * of outputs are stored. */
#include "lower_region.h"

ot_status lowered_new_tile(lowered *p, uint32_t v, const lowered_tensor *like, lowered_tensor *out)
{
    const char *name = p->g->values[p->r->values[v].value].name;
    uint32_t planned = lowered_planned_buffer(p, v);
    if (planned == OT_NONE) return lowered_alloc(p, name, "_tile", OT_SCOPE_GM, 1, like, out);
    OT_TRY(lowered_alloc(p, name, "_tile", OT_SCOPE_L2, p->plan->values[planned].n_offsets, like,
                         out));
    return lowered_place_as(p, out->v, planned);
}

/* Rows put together: do the rows that node i reads of operand j lie in its tile where those that
 * it makes lie in theirs? */
static bool lies_alike(const lowered *p, uint32_t i, uint32_t j)
{
    const ot_tile_windows *w = lowered_windows(p, 0);
    const ot_rnode *rn = &p->r->nodes[i];
    const uint32_t v = rn->in[j];
    return rn->in_axis[0][j] == p->r->values[v].axis[0] &&
           w->ops[i].in[j].lo - w->made[v].lo == w->ops[i].made.lo - w->made[rn->out[0]].lo;
}

/* Where the planned kernel works in place, blocks and steps do, too: another name of the
 * operand's tile. *done false: it has its own place. *apart: which is the operand's, and in this
 * step they are not as long as each other, or do not begin alike. */
static ot_status work_in_place(lowered *p, uint32_t i, const lowered_tensor *in,
                               const lowered_tensor *like, bool *done, bool *apart)
{
    const ot_rnode *rn = &p->r->nodes[i];
    const uint32_t own = lowered_planned_buffer(p, rn->out[0]);
    const bool joins = lowered_joins_rows(p);
    *done = *apart = false;
    for (uint32_t j = 0; own != OT_NONE && (p->second || joins) && j < p->g->nodes[rn->node].n_in;
         j++) {
        const uint32_t v = rn->in[j], other = v == OT_NONE ? OT_NONE : lowered_planned_buffer(p, v);
        if (other == OT_NONE || in[j].v == OT_NONE ||
            p->plan->values[own].offsets[0] != p->plan->values[other].offsets[0])
            continue;
        const lowered_tensor *x = joins ? &p->tile[v] : &in[j];
        int64_t have, want;
        const bool same = ot_product(x->dims, x->rank, &have) &&
                          ot_product(like->dims, like->rank, &want) && have == want;
        *apart = joins;
        if (!same || (joins && !lies_alike(p, i, j))) continue;
        if (x->v != p->tile[v].v)
            return lowered_refuse(p, "a part of a tile that is worked on in place");
        *done = true;
        *apart = false;
        return lowered_alias(p, x, like->rank, like->dims, &p->tile[rn->out[0]]);
    }
    return OT_OK;
}

/* Region input v in this tile: loaded where the planned kernel has a buffer, else a view of the
 * tensor. */
static ot_status bring_input(lowered *p, uint32_t v)
{
    lowered_tensor like, whole;
    ot_tk_affine lo[OT_TK_RANK_MAX];
    ot_tk_range ranges[OT_TK_RANK_MAX];
    if (p->tile[v].v != OT_NONE || p->param[v] == OT_NONE ||
        !lowered_tile_shape(p, v, false, &like, lo))
        return OT_OK;
    if (lowered_planned_buffer(p, v) == OT_NONE) {
        if (!lowered_whole_shape(p, v, &whole)) return OT_OK;
        whole.v = p->param[v];
        return lowered_part(p, &whole, lo, like.dims, &p->tile[v]);
    }
    OT_TRY(lowered_new_tile(p, v, &like, &p->tile[v]));
    for (uint32_t k = 0; k < like.rank; k++)
        ranges[k] = (ot_tk_range){lo[k], lowered_plus(lo[k], like.dims[k])};
    return ot_kb_load(p->b, p->tile[v].v, p->param[v], ranges, like.rank) ? OT_OK
                                                                          : lowered_nomem(p);
}

/* Rows that node i wants of operand j in this step; all, where it does not follow them. */
static ot_win rows_wanted(const lowered *p, uint32_t i, uint32_t j)
{
    const ot_rnode *rn = &p->r->nodes[i];
    const ot_rvalue *x = &p->r->values[rn->in[j]];
    if (rn->in_axis[0][j] == x->axis[0]) return lowered_windows(p, 0)->ops[i].in[j];
    return (ot_win){0, p->g->values[x->value].dims[x->axis[0]]};
}

/* Operand j of node i: its tile, cut to what the node reads of it. */
static ot_status operand(lowered *p, uint32_t i, uint32_t j, lowered_tensor *out)
{
    const ot_rnode *rn = &p->r->nodes[i];
    const ot_node *n = &p->g->nodes[rn->node];
    const uint32_t v = rn->in[j];
    ot_tk_affine lo[OT_TK_RANK_MAX] = {0};
    *out = (lowered_tensor){.v = OT_NONE};
    if (n->in[j] == OT_NONE) return OT_OK;
    if (v == OT_NONE) {
        const ot_value *x = &p->g->values[n->in[j]];
        out->v = ot_map_get(p->constant_of, x->name);
        out->type = ot_region_type_name(x->dtype);
        out->rank = 1;
        out->dims[0] = 1;
        for (int32_t k = 0; out->v != OT_NONE && k < x->rank; k++) out->dims[k] = x->dims[k];
        if (out->v != OT_NONE && x->rank > 0) out->rank = (uint32_t)x->rank;
        return OT_OK;
    }
    if (v < p->r->n_inputs) OT_TRY(bring_input(p, v));
    if (p->tile[v].v == OT_NONE && (!p->r->rolling || p->rows[v].v == OT_NONE)) return OT_OK;
    const bool lines = p->r->rolling && p->r->values[v].axis[0] >= 0;
    lowered_tensor x = p->tile[v].v == OT_NONE ? p->rows[v] : p->tile[v], part = x;
    for (uint32_t d = 0; d < p->r->n_dims; d++) {
        const ot_op_tile *op = &lowered_windows(p, d)->ops[i];
        if (!rn->in_axis[d] || rn->lead_axis[d] == OT_AX_WHOLE || rn->in_axis[d][j] < 0) continue;
        const int8_t axis = rn->in_axis[d][j];
        const bool follows = p->r->values[v].axis[d] == axis;
        part.dims[axis] = op->in[j].hi - op->in[j].lo;
        if (part.dims[axis] == 0) return OT_OK; /* not read in this tile */
        if (follows)
            lo[axis].constant = op->in[j].lo - lowered_tile_window(p, d, v).lo;
        else if (p->runs[d][p->at[d]].count == 1)
            lo[axis].constant = op->in[j].lo;
        else
            return lowered_refuse(p, "an operand that is cut along another axis than its tiles");
    }
    if (lines) return lowered_rows_of(p, v, rows_wanted(p, i, j), lo, part.dims, out);
    return lowered_part(p, &x, lo, part.dims, out);
}

/* The piece of output v goes where it belongs. */
static ot_status store_piece(lowered *p, uint32_t v)
{
    lowered_tensor piece, from;
    ot_tk_affine to[OT_TK_RANK_MAX], inset[OT_TK_RANK_MAX] = {0};
    ot_tk_range ranges[OT_TK_RANK_MAX];
    if (!lowered_tile_shape(p, v, true, &piece, to)) return OT_OK;
    for (uint32_t d = 0; d < p->r->n_dims; d++)
        if (p->r->values[v].axis[d] >= 0)
            inset[p->r->values[v].axis[d]].constant = lowered_windows(p, d)->piece[v].lo -
                                                      lowered_tile_window(p, d, v).lo;
    OT_TRY(lowered_part(p, &p->tile[v], inset, piece.dims, &from));
    for (uint32_t k = 0; k < piece.rank; k++)
        ranges[k] = (ot_tk_range){to[k], lowered_plus(to[k], piece.dims[k])};
    return ot_kb_store(p->b, p->param[v], ranges, piece.rank, from.v) ? OT_OK : lowered_nomem(p);
}

/* What the adapted node asks for, from the windows of all dimensions. */
static ot_status adapt(lowered *p, uint32_t i, ot_adapted *out)
{
    const ot_rnode *rn = &p->r->nodes[i];
    ot_tile_axis axes[OT_DIMS_MAX];
    uint32_t n = 0;
    for (uint32_t d = 0; d < p->r->n_dims; d++)
        if (rn->lead_axis[d] >= 0)
            axes[n++] = (ot_tile_axis){rn->lead_out[d], (uint32_t)rn->lead_axis[d],
                                       &lowered_windows(p, d)->ops[i]};
    return ot_tile_adapt(p->g, &p->g->nodes[rn->node], axes, n, p->a, out) == OT_OK
               ? OT_OK
               : lowered_nomem(p);
}

/* Another name of the input, where the planned kernel has one. */
static ot_status try_view(lowered *p, uint32_t i, const lowered_tensor *in,
                          const lowered_tensor *like, bool *done)
{
    const uint32_t v = p->r->nodes[i].out[0];
    const ot_node *n = &p->g->nodes[p->r->nodes[i].node];
    int64_t have, want;
    *done = false;
    if (!ot_op_is_view(n->op) || in->v == OT_NONE || p->held->value[v] == OT_NONE) return OT_OK;
    if (p->plan->values[p->held->value[v]].kind == OT_TK_BUFFER) return OT_OK;
    if (!ot_product(in->dims, in->rank, &have) || !ot_product(like->dims, like->rank, &want) ||
        have != want)
        return lowered_refuse(p, "a view of a tile of another size");
    *done = true;
    return lowered_alias(p, in, like->rank, like->dims, &p->tile[v]);
}

static bool is_used(const lowered *p, uint32_t i)
{
    for (uint32_t d = 0; d < p->r->n_dims; d++)
        if (lowered_windows(p, d)->ops[i].need.lo >= lowered_windows(p, d)->ops[i].need.hi)
            return false;
    return true;
}

/* The outputs lie one behind the other in the input. */
static ot_status put_split(lowered *p, uint32_t i)
{
    const ot_rnode *rn = &p->r->nodes[i];
    const ot_node *n = &p->g->nodes[rn->node];
    const ot_value *x = &p->g->values[n->in[0]];
    ot_tk_affine lo[OT_TK_RANK_MAX], from[OT_TK_RANK_MAX] = {0};
    int64_t axis = ot_attr_int(n, "axis", 0);
    lowered_tensor in, part;
    if (strcmp(n->op_type, "Split") != 0)
        return lowered_refuse(p, "an operator of several outputs");
    if (axis < 0) axis += x->rank;
    for (uint32_t d = 0; d < p->r->n_dims; d++)
        if (rn->lead_axis[d] == (int)axis) return lowered_refuse(p, "a Split along the cut");
    OT_TRY(operand(p, i, 0, &in));
    if (in.v == OT_NONE) return lowered_refuse(p, "an operand that is not there");
    for (uint32_t o = 0; o < n->n_out && !p->why; o++) {
        const uint32_t v = rn->out[o];
        const ot_value *y = n->out[o] == OT_NONE ? NULL : &p->g->values[n->out[o]];
        if (!y || y->rank != x->rank) return lowered_refuse(p, "a Split of unknown parts");
        if (v != OT_NONE && lowered_tile_shape(p, v, false, &part, lo)) {
            lowered_tensor fresh;
            OT_TRY(lowered_new_tile(p, v, &part, &p->tile[v]));
            OT_TRY(lowered_fresh_part(p, v, &fresh));
            OT_TRY(lowered_part(p, &in, from, fresh.dims, &part));
            OT_TRY(lowered_move(p, &fresh, &part));
            if (p->r->values[v].is_output) OT_TRY(store_piece(p, v));
        }
        from[axis].constant += y->dims[axis];
    }
    return OT_OK;
}

/* The value that node i makes, in a tile like `out`. */
static ot_status make_value(lowered *p, uint32_t i, const ot_adapted *ad, const lowered_tensor *in,
                            const lowered_tensor *out)
{
    const uint32_t v = p->r->nodes[i].out[0], n_in = p->g->nodes[p->r->nodes[i].node].n_in;
    lowered_tensor fresh, made;
    bool done, apart;
    OT_TRY(work_in_place(p, i, in, out, &done, &apart));
    if (!done) OT_TRY(lowered_new_tile(p, v, out, &p->tile[v]));
    OT_TRY(lowered_fresh_part(p, v, &fresh));
    if (!apart) return lowered_node(p, i, ad, in, n_in, &fresh);
    OT_TRY(lowered_alloc(p, p->node, "_made", OT_SCOPE_GM, 1, &fresh, &made));
    OT_TRY(lowered_node(p, i, ad, in, n_in, &made));
    return p->why ? OT_OK : lowered_move(p, &fresh, &made);
}

static ot_status put_node(lowered *p, uint32_t i)
{
    const ot_rnode *rn = &p->r->nodes[i];
    const ot_node *n = &p->g->nodes[rn->node];
    lowered_tensor in[PROG_IN_MAX], out;
    ot_tk_affine lo[OT_TK_RANK_MAX];
    ot_adapted ad;
    const uint32_t v = rn->out[0];
    bool done, several = false;
    if (!is_used(p, i)) return OT_OK;
    p->node = n->name[0] ? n->name : n->op_type;
    if (n->n_in > PROG_IN_MAX) return lowered_refuse(p, "an operator of more than 16 operands");
    for (uint32_t o = 1; o < n->n_out; o++) several |= rn->out[o] != OT_NONE;
    if (several || strcmp(n->op_type, "Split") == 0) return put_split(p, i);
    if (v == OT_NONE) return OT_OK;
    if (!lowered_tile_shape(p, v, false, &out, lo))
        return lowered_refuse(p, "a value that no kernel has");
    for (uint32_t j = 0; j < n->n_in && !p->why; j++) OT_TRY(operand(p, i, j, &in[j]));
    if (p->why) return OT_OK;
    OT_TRY(adapt(p, i, &ad));
    OT_TRY(try_view(p, i, &in[0], &out, &done));
    if (!done && !p->why) OT_TRY(make_value(p, i, &ad, in, &out));
    if (p->why || !p->r->values[v].is_output) return OT_OK;
    return lowered_is_part(p, v) ? lowered_keep_part(p, i) : store_piece(p, v);
}

ot_status lowered_put_tile(lowered *p)
{
    for (uint32_t v = 0; v < p->r->n_values; v++) p->tile[v].v = OT_NONE;
    for (uint32_t i = 0; i < p->r->n_nodes && !p->why; i++) {
        OT_TRY(put_node(p, i));
        if (!p->why) OT_TRY(lowered_hand_on(p, i));
    }
    return OT_OK;
}
