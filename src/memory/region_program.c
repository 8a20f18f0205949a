/* The kernel of a region that runs: the tiles as they are, borders and all, in the places of the planned kernel.
 *
 *   planned kernel (region_kernel.c)              program
 *
 *     for t0 in 0..14 {                             { tile 0 }            borders: windows are shorter, operators pad
 *       x_tile: 1x64x8x56  offset=0                 for t0 in 1..13 { }   alike tiles that move evenly
 *       ...                                         { tile 13 }
 *
 * A buffer of the program is one of the planned kernel, cut to what the tile at hand has, at its offset. So whoever runs the program
 * checks the plan: a place that another buffer has taken too early shows as a wrong byte. Values that the planned kernel does not count
 * (factors of a normalisation, parts of a reduction) are workspace in global memory.
 *
 * What is reduced over a cut axis has a slot per tile there, and is combined behind the loops (program_parts.c).
 *
 * Not lowered: form stream, whose steps hand rows on; operators that program_ops.c does not know. The caller is told why.
 */
#include "inner_nest.h"
#include "region/forms.h"
#include "region_program.h"

ot_status prog_refuse(prog *p, const char *why)
{
    if (!p->why) p->why = why;
    return OT_OK;
}

/* ---- statements ---- */

ot_status prog_alloc(prog *p, const char *name, const char *suffix, ot_scope scope, uint32_t multi, const prog_tensor *like,
                     prog_tensor *out)
{
    const char *own = ot_region_name(&p->names, name, suffix);
    *out = *like;
    out->v = own ? ot_kb_alloc(p->b, own, like->type, like->dims, like->rank, scope, 0, multi) : OT_NONE;
    return out->v == OT_NONE ? prog_nomem(p) : OT_OK;
}

ot_status prog_alias(prog *p, const prog_tensor *x, uint32_t rank, const int64_t *dims, prog_tensor *out)
{
    const char *own = ot_region_name(&p->names, "as", "");
    prog_tensor y = {.rank = rank, .type = x->type};
    memcpy(y.dims, dims, rank * sizeof *dims);
    y.v = own ? ot_kb_alias(p->b, own, x->v, x->type, dims, rank) : OT_NONE;
    *out = y;
    return y.v == OT_NONE ? prog_nomem(p) : OT_OK;
}

static ot_tk_affine plus(ot_tk_affine x, int64_t n)
{
    x.constant += n;
    return x;
}

ot_status prog_part(prog *p, const prog_tensor *x, const ot_tk_affine *lo, const int64_t *dims, prog_tensor *out)
{
    ot_tk_range ranges[OT_TK_RANK_MAX];
    bool all = true;
    for (uint32_t k = 0; k < x->rank; k++) {
        ranges[k] = (ot_tk_range){lo[k], plus(lo[k], dims[k])};
        all = all && lo[k].n == 0 && lo[k].constant == 0 && dims[k] == x->dims[k];
    }
    prog_tensor y = *x;
    memcpy(y.dims, dims, x->rank * sizeof *dims);
    if (!all) {
        const char *own = ot_region_name(&p->names, "part", "");
        y.v = own ? ot_kb_subview(p->b, own, x->v, ranges) : OT_NONE;
        if (y.v == OT_NONE) return prog_nomem(p);
    }
    *out = y;
    return OT_OK;
}

ot_status prog_statement(prog *p, const prog_op *op)
{
    uint32_t in[PROG_IN_MAX], out[1] = {op->out.v}, n = 0;
    for (uint32_t k = 0; k < op->n_in; k++)
        if (op->in[k].v != OT_NONE) in[n++] = op->in[k].v;
    if (!ot_kb_compute(p->b, op->pipe, op->name, out, 1, in, n)) return prog_nomem(p);
    for (uint32_t k = 0; k < op->n_attrs; k++)
        if (!ot_kb_attr(p->b, op->attrs[k].name, op->attrs[k].values, op->attrs[k].n, op->attrs[k].list)) return prog_nomem(p);
    return OT_OK;
}

ot_status prog_copy(prog *p, const prog_tensor *to, const prog_tensor *from)
{
    return ot_kb_copy(p->b, to->v, from->v) ? OT_OK : prog_nomem(p);
}

/* ---- tiles that are alike ---- */

/* By how much everything moves from tile k to the next one. */
static void find_steps(const prog *p, uint32_t d, uint32_t k, prog_run *run)
{
    const ot_tile_windows *a = &p->windows[d][k], *b = &p->windows[d][k + 1];
    for (uint32_t v = 0; v < p->r->n_values; v++) {
        run->step[v] = b->made[v].lo - a->made[v].lo;
        run->piece_step[v] = b->piece[v].lo - a->piece[v].lo;
    }
}

static bool moves_as(const prog *p, uint32_t d, uint32_t k, const prog_run *run)
{
    const ot_tile_windows *a = &p->windows[d][k], *b = &p->windows[d][k + 1];
    for (uint32_t v = 0; v < p->r->n_values; v++)
        if (run->step[v] != b->made[v].lo - a->made[v].lo || run->piece_step[v] != b->piece[v].lo - a->piece[v].lo) return false;
    return true;
}

static ot_status fill_windows(prog *p, uint32_t d)
{
    const uint32_t n = p->r->dims[d].n_tiles;
    ot_why why;
    p->windows[d] = OT_NEW_N(p->a, ot_tile_windows, n + 1u);
    if (!p->windows[d]) return prog_nomem(p);
    for (uint32_t k = 0; k < n; k++) {
        OT_TRY(ot_tile_windows_new(p->g, p->r, p->a, &p->windows[d][k]));
        if (!ot_tile_windows_get(p->g, p->r, d, k, &p->windows[d][k], &why))
            return ot_fail(p->d, OT_E_INPUT, "region %u: %s", p->r->id, ot_reason_sentence(why));
    }
    return OT_OK;
}

static ot_status find_runs(prog *p, uint32_t d)
{
    const uint32_t n = p->r->dims[d].n_tiles;
    ot_form_tiles tiles = {.g = p->g, .r = p->r, .arena = p->a};
    OT_TRY(fill_windows(p, d));
    p->runs[d] = OT_NEW_N(p->a, prog_run, n + 1u);
    if (!p->runs[d]) return prog_nomem(p);
    for (uint32_t k = 0; k < n; k++) {
        prog_run *last = p->n_runs[d] > 0 ? &p->runs[d][p->n_runs[d] - 1] : NULL;
        bool same = false;
        if (last) OT_TRY(ot_tiles_alike(&tiles, d, &p->windows[d][last->first], &p->windows[d][k], p->a, &same));
        if (same && last->count == 1) find_steps(p, d, k - 1, last);
        if (same && moves_as(p, d, k - 1, last)) {
            last->count++;
            continue;
        }
        prog_run *run = &p->runs[d][p->n_runs[d]++];
        *run = (prog_run){k, 1, OT_NEW_N(p->a, int64_t, p->r->n_values + 1u), OT_NEW_N(p->a, int64_t, p->r->n_values + 1u)};
        if (!run->step || !run->piece_step) return prog_nomem(p);
    }
    return OT_OK;
}

static void keep_longest(prog *p, uint32_t d)
{
    for (uint32_t k = 1; k < p->n_runs[d]; k++)
        if (p->runs[d][k].count > p->runs[d][0].count) p->runs[d][0] = p->runs[d][k];
    if (p->n_runs[d] > 1) p->n_runs[d] = 1;
}

/* ---- windows of the tile at hand ---- */

const ot_tile_windows *prog_windows(const prog *p, uint32_t d) { return &p->windows[d][p->runs[d][p->at[d]].first]; }

ot_tk_affine prog_moving(const prog *p, uint32_t d, int64_t lo, int64_t step)
{
    const prog_run *run = &p->runs[d][p->at[d]];
    ot_tk_affine x = {.constant = lo};
    if (run->count == 1 || step == 0) return x;
    x.constant -= step * run->first;
    x.n = 1;
    x.terms[0].var = p->var[d];
    x.terms[0].coef = step;
    return x;
}

/* Dims of region value v as the tensor that it is; false: no kernel has it. */
static bool whole_shape(const prog *p, uint32_t v, prog_tensor *out)
{
    const ot_value *x = &p->g->values[p->r->values[v].value];
    int64_t elems;
    *out = (prog_tensor){.v = OT_NONE, .rank = 1, .dims = {1}, .type = ot_region_type_name(x->dtype)};
    if (!out->type || x->rank > OT_TK_RANK_MAX || !ot_value_elems(x, &elems) || elems == 0) return false;
    if (x->dtype == OT_F32 && p->r->values[v].bytes == elems) return false; /* merged quantized operators: it is bytes */
    for (int32_t k = 0; k < x->rank; k++) out->dims[k] = x->dims[k];
    if (x->rank > 0) out->rank = (uint32_t)x->rank;
    return true;
}

bool prog_tile_shape(const prog *p, uint32_t v, bool piece, prog_tensor *out, ot_tk_affine *lo)
{
    if (!whole_shape(p, v, out)) return false;
    memset(lo, 0, OT_TK_RANK_MAX * sizeof *lo);
    for (uint32_t d = 0; d < p->r->n_dims; d++) {
        const int8_t axis = p->r->values[v].axis[d];
        if (axis < 0) continue;
        const ot_win w = piece ? prog_windows(p, d)->piece[v] : prog_windows(p, d)->made[v];
        const prog_run *run = &p->runs[d][p->at[d]];
        if (ot_win_empty(w)) return false;
        out->dims[axis] = w.hi - w.lo;
        lo[axis] = prog_moving(p, d, w.lo, piece ? run->piece_step[v] : run->step[v]);
    }
    return true;
}

/* ---- declarations ---- */

static ot_status declare(prog *p, ot_id value, bool is_output, prog_tensor *x)
{
    const char *own = ot_region_name(&p->names, p->g->values[value].name, "");
    x->v = own ? ot_kb_param(p->b, own, x->type, x->dims, x->rank) : OT_NONE;
    const struct ot_region_param param = {value, x->v, is_output};
    if (x->v == OT_NONE || !OT_PUSH(p->a, p->params, p->n_params, p->cap_params, param)) return prog_nomem(p);
    return OT_OK;
}

static ot_status declare_constant(prog *p, ot_id v)
{
    const ot_value *x = &p->g->values[v];
    prog_tensor c = {.rank = 1, .dims = {1}, .type = ot_region_type_name(x->dtype)};
    int64_t elems;
    if (ot_map_get(p->constant_of, x->name) != OT_NONE || !c.type) return OT_OK;
    if (x->rank > OT_TK_RANK_MAX || !ot_value_elems(x, &elems) || elems == 0) return OT_OK;
    for (int32_t k = 0; k < x->rank; k++) c.dims[k] = x->dims[k];
    if (x->rank > 0) c.rank = (uint32_t)x->rank;
    OT_TRY(declare(p, v, false, &c));
    return ot_map_put(p->constant_of, x->name, c.v) ? OT_OK : prog_nomem(p);
}

/* Whether an operator reads what operand j holds, not its numbers alone (a shape, axes, bounds). */
static bool reads_contents(const ot_node *n, uint32_t j)
{
    static const char *const numbers[] = {"Reshape", "Squeeze", "Unsqueeze", "Expand", "Slice", "Split",
                                          "Pad",     "Resize",  "Upsample",  "Clip",   "Tile",  "Dropout"};
    if (j == 0) return true;
    if (strncmp(n->op_type, "Reduce", 6) == 0) return false;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (strcmp(n->op_type, numbers[k]) == 0) return false;
    return true;
}

static ot_status declare_all(prog *p)
{
    for (uint32_t v = 0; v < p->r->n_values; v++) {
        prog_tensor x;
        p->param[v] = p->parts[v].v = OT_NONE;
        if (v >= p->r->n_inputs && !p->r->values[v].is_output) continue;
        if (!whole_shape(p, v, &x)) {
            if (p->g->values[p->r->values[v].value].rank > OT_TK_RANK_MAX) return prog_refuse(p, "a tensor of more than 8 axes");
            if (p->r->values[v].is_output) return prog_refuse(p, "an output that no kernel has");
            continue;
        }
        OT_TRY(declare(p, p->r->values[v].value, p->r->values[v].is_output, &x));
        p->param[v] = x.v;
        if (prog_is_part(p, v)) OT_TRY(prog_declare_parts(p, v, &x));
    }
    for (uint32_t i = 0; i < p->r->n_nodes; i++) {
        const ot_node *n = &p->g->nodes[p->r->nodes[i].node];
        for (uint32_t j = 0; j < n->n_in; j++)
            if (n->in[j] != OT_NONE && p->r->nodes[i].in[j] == OT_NONE && reads_contents(n, j))
                OT_TRY(declare_constant(p, n->in[j]));
    }
    return OT_OK;
}

/* The buffer takes the offsets and slots of a value of the planned kernel. */
static ot_status place_as(prog *p, uint32_t v, uint32_t planned)
{
    return OT_PUSH(p->a, p->places, p->n_places, p->cap_places, v) && OT_PUSH(p->a, p->places, p->n_places, p->cap_places, planned)
               ? OT_OK
               : prog_nomem(p);
}

/* The buffer of the planned kernel that holds region value v in a tile, or OT_NONE. */
static uint32_t planned_buffer(const prog *p, uint32_t v)
{
    if (p->held->value[v] == OT_NONE) return OT_NONE;
    uint32_t root = ot_tk_root(p->plan, p->held->value[v], NULL);
    return p->plan->values[root].kind == OT_TK_BUFFER ? root : OT_NONE;
}

/* Weights that stay are loaded once. */
static ot_status load_weights(prog *p)
{
    for (uint32_t k = 0; k < p->held->n_weights; k++) {
        const ot_region_weight *w = &p->held->weights[k];
        const ot_value *x = &p->g->values[w->value];
        uint32_t from = ot_map_get(p->constant_of, x->name);
        if (from == OT_NONE || p->plan->values[w->at].kind != OT_TK_BUFFER) continue;
        const ot_tk_value *like = &p->plan->values[w->at];
        prog_tensor c = {.rank = like->rank, .type = like->dtype}, buffer;
        memcpy(c.dims, like->dims, sizeof c.dims);
        OT_TRY(prog_alloc(p, x->name, "_l2", OT_SCOPE_L2, 1, &c, &buffer));
        OT_TRY(place_as(p, buffer.v, w->at));
        if (!ot_kb_load(p->b, buffer.v, from, NULL, 0)) return prog_nomem(p);
        if (!ot_map_put(p->constant_of, x->name, buffer.v)) return prog_nomem(p);
    }
    return OT_OK;
}

/* ---- the tile ---- */

/* A buffer for region value v, in the place that the planned kernel has for it. */
static ot_status new_tile(prog *p, uint32_t v, const prog_tensor *like, prog_tensor *out)
{
    const char *name = p->g->values[p->r->values[v].value].name;
    uint32_t planned = planned_buffer(p, v);
    if (planned == OT_NONE) return prog_alloc(p, name, "_tile", OT_SCOPE_GM, 1, like, out);
    OT_TRY(prog_alloc(p, name, "_tile", OT_SCOPE_L2, p->plan->values[planned].n_offsets, like, out));
    return place_as(p, out->v, planned);
}

/* Where the planned kernel works in place, blocks do, too: another name of the operand's tile. *done false: it has its own place. */
static ot_status work_in_place(prog *p, uint32_t i, const prog_tensor *in, const prog_tensor *like, bool *done)
{
    const ot_rnode *rn = &p->r->nodes[i];
    const uint32_t own = planned_buffer(p, rn->out[0]);
    *done = false;
    for (uint32_t j = 0; own != OT_NONE && p->second && j < p->g->nodes[rn->node].n_in; j++) {
        const uint32_t v = rn->in[j], other = v == OT_NONE ? OT_NONE : planned_buffer(p, v);
        int64_t have, want;
        if (other == OT_NONE || in[j].v == OT_NONE || p->plan->values[own].offsets[0] != p->plan->values[other].offsets[0])
            continue;
        if (!ot_product(in[j].dims, in[j].rank, &have) || !ot_product(like->dims, like->rank, &want) || have != want) continue;
        if (in[j].v != p->tile[v].v) return prog_refuse(p, "a part of a tile that is worked on in place");
        *done = true;
        return prog_alias(p, &in[j], like->rank, like->dims, &p->tile[rn->out[0]]);
    }
    return OT_OK;
}

/* Region input v in this tile: loaded where the planned kernel has a buffer, else a view of the tensor. */
static ot_status bring_input(prog *p, uint32_t v)
{
    prog_tensor like, whole;
    ot_tk_affine lo[OT_TK_RANK_MAX];
    ot_tk_range ranges[OT_TK_RANK_MAX];
    if (p->tile[v].v != OT_NONE || p->param[v] == OT_NONE || !prog_tile_shape(p, v, false, &like, lo)) return OT_OK;
    if (planned_buffer(p, v) == OT_NONE) {
        if (!whole_shape(p, v, &whole)) return OT_OK;
        whole.v = p->param[v];
        return prog_part(p, &whole, lo, like.dims, &p->tile[v]);
    }
    OT_TRY(new_tile(p, v, &like, &p->tile[v]));
    for (uint32_t k = 0; k < like.rank; k++) ranges[k] = (ot_tk_range){lo[k], plus(lo[k], like.dims[k])};
    return ot_kb_load(p->b, p->tile[v].v, p->param[v], ranges, like.rank) ? OT_OK : prog_nomem(p);
}

/* Operand j of node i: its tile, cut to what the node reads of it. */
static ot_status operand(prog *p, uint32_t i, uint32_t j, prog_tensor *out)
{
    const ot_rnode *rn = &p->r->nodes[i];
    const ot_node *n = &p->g->nodes[rn->node];
    const uint32_t v = rn->in[j];
    ot_tk_affine lo[OT_TK_RANK_MAX] = {0};
    *out = (prog_tensor){.v = OT_NONE};
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
    if (p->tile[v].v == OT_NONE) return OT_OK;
    prog_tensor x = p->tile[v], part = x;
    for (uint32_t d = 0; d < p->r->n_dims; d++) {
        const ot_op_tile *op = &prog_windows(p, d)->ops[i];
        if (!rn->in_axis[d] || rn->lead_axis[d] == OT_AX_WHOLE || rn->in_axis[d][j] < 0) continue;
        const int8_t axis = rn->in_axis[d][j];
        const bool follows = p->r->values[v].axis[d] == axis;
        part.dims[axis] = op->in[j].hi - op->in[j].lo;
        if (part.dims[axis] == 0) return OT_OK; /* not read in this tile */
        if (follows)
            lo[axis].constant = op->in[j].lo - prog_windows(p, d)->made[v].lo;
        else if (p->runs[d][p->at[d]].count == 1)
            lo[axis].constant = op->in[j].lo;
        else
            return prog_refuse(p, "an operand that is cut along another axis than its tiles");
    }
    return prog_part(p, &x, lo, part.dims, out);
}

/* The piece of output v goes where it belongs. */
static ot_status store_piece(prog *p, uint32_t v)
{
    prog_tensor piece, from;
    ot_tk_affine to[OT_TK_RANK_MAX], inset[OT_TK_RANK_MAX] = {0};
    ot_tk_range ranges[OT_TK_RANK_MAX];
    if (!prog_tile_shape(p, v, true, &piece, to)) return OT_OK;
    for (uint32_t d = 0; d < p->r->n_dims; d++)
        if (p->r->values[v].axis[d] >= 0)
            inset[p->r->values[v].axis[d]].constant = prog_windows(p, d)->piece[v].lo - prog_windows(p, d)->made[v].lo;
    OT_TRY(prog_part(p, &p->tile[v], inset, piece.dims, &from));
    for (uint32_t k = 0; k < piece.rank; k++) ranges[k] = (ot_tk_range){to[k], plus(to[k], piece.dims[k])};
    return ot_kb_store(p->b, p->param[v], ranges, piece.rank, from.v) ? OT_OK : prog_nomem(p);
}

/* What the adapted node asks for, from the windows of all dimensions. */
static ot_status adapt(prog *p, uint32_t i, ot_adapted *out)
{
    const ot_rnode *rn = &p->r->nodes[i];
    ot_tile_axis axes[OT_DIMS_MAX];
    uint32_t n = 0;
    for (uint32_t d = 0; d < p->r->n_dims; d++)
        if (rn->lead_axis[d] >= 0)
            axes[n++] = (ot_tile_axis){rn->lead_out[d], (uint32_t)rn->lead_axis[d], &prog_windows(p, d)->ops[i]};
    return ot_tile_adapt(p->g, &p->g->nodes[rn->node], axes, n, p->a, out) == OT_OK ? OT_OK : prog_nomem(p);
}

/* Another name of the input, where the planned kernel has one. */
static ot_status try_view(prog *p, uint32_t i, const prog_tensor *in, const prog_tensor *like, bool *done)
{
    const uint32_t v = p->r->nodes[i].out[0];
    const ot_node *n = &p->g->nodes[p->r->nodes[i].node];
    int64_t have, want;
    *done = false;
    if (!ot_op_is_view(n->op) || in->v == OT_NONE || p->held->value[v] == OT_NONE) return OT_OK;
    if (p->plan->values[p->held->value[v]].kind == OT_TK_BUFFER) return OT_OK;
    if (!ot_product(in->dims, in->rank, &have) || !ot_product(like->dims, like->rank, &want) || have != want)
        return prog_refuse(p, "a view of a tile of another size");
    *done = true;
    return prog_alias(p, in, like->rank, like->dims, &p->tile[v]);
}

static bool is_used(const prog *p, uint32_t i)
{
    for (uint32_t d = 0; d < p->r->n_dims; d++)
        if (prog_windows(p, d)->ops[i].need.lo >= prog_windows(p, d)->ops[i].need.hi) return false;
    return true;
}

/* The outputs lie one behind the other in the input. */
static ot_status put_split(prog *p, uint32_t i)
{
    const ot_rnode *rn = &p->r->nodes[i];
    const ot_node *n = &p->g->nodes[rn->node];
    const ot_value *x = &p->g->values[n->in[0]];
    ot_tk_affine lo[OT_TK_RANK_MAX], from[OT_TK_RANK_MAX] = {0};
    int64_t axis = ot_attr_int(n, "axis", 0);
    prog_tensor in, part;
    if (strcmp(n->op_type, "Split") != 0) return prog_refuse(p, "an operator of several outputs");
    if (axis < 0) axis += x->rank;
    for (uint32_t d = 0; d < p->r->n_dims; d++)
        if (rn->lead_axis[d] == (int)axis) return prog_refuse(p, "a Split along the cut");
    OT_TRY(operand(p, i, 0, &in));
    if (in.v == OT_NONE) return prog_refuse(p, "an operand that is not there");
    p->node = n->name[0] ? n->name : n->op_type;
    for (uint32_t o = 0; o < n->n_out && !p->why; o++) {
        const uint32_t v = rn->out[o];
        const ot_value *y = n->out[o] == OT_NONE ? NULL : &p->g->values[n->out[o]];
        if (!y || y->rank != x->rank) return prog_refuse(p, "a Split of unknown parts");
        if (v != OT_NONE && prog_tile_shape(p, v, false, &part, lo)) {
            OT_TRY(new_tile(p, v, &part, &p->tile[v]));
            OT_TRY(prog_part(p, &in, from, part.dims, &part));
            OT_TRY(prog_move(p, &p->tile[v], &part));
            if (p->r->values[v].is_output) OT_TRY(store_piece(p, v));
        }
        from[axis].constant += y->dims[axis];
    }
    return OT_OK;
}

static ot_status put_node(prog *p, uint32_t i)
{
    const ot_rnode *rn = &p->r->nodes[i];
    const ot_node *n = &p->g->nodes[rn->node];
    prog_tensor in[PROG_IN_MAX], out;
    ot_tk_affine lo[OT_TK_RANK_MAX];
    ot_adapted ad;
    const uint32_t v = rn->out[0];
    bool done, several = false;
    if (!is_used(p, i)) return OT_OK;
    if (n->n_in > PROG_IN_MAX) return prog_refuse(p, "an operator of more than 16 operands");
    for (uint32_t o = 1; o < n->n_out; o++) several |= rn->out[o] != OT_NONE;
    if (several || strcmp(n->op_type, "Split") == 0) return put_split(p, i);
    if (v == OT_NONE) return OT_OK;
    if (!prog_tile_shape(p, v, false, &out, lo)) return prog_refuse(p, "a value that no kernel has");
    for (uint32_t j = 0; j < n->n_in && !p->why; j++) OT_TRY(operand(p, i, j, &in[j]));
    if (p->why) return OT_OK;
    OT_TRY(adapt(p, i, &ad));
    p->node = n->name[0] ? n->name : n->op_type;
    OT_TRY(try_view(p, i, &in[0], &out, &done));
    if (!done && !p->why) {
        OT_TRY(work_in_place(p, i, in, &out, &done));
        if (!done) OT_TRY(new_tile(p, v, &out, &p->tile[v]));
        OT_TRY(prog_node(p, i, &ad, in, n->n_in, &p->tile[v]));
    }
    if (p->why || !p->r->values[v].is_output) return OT_OK;
    return prog_is_part(p, v) ? prog_keep_part(p, i) : store_piece(p, v);
}

/* The tiles of the runs at hand. */
static ot_status put_tile(prog *p)
{
    for (uint32_t v = 0; v < p->r->n_values; v++) p->tile[v].v = OT_NONE;
    for (uint32_t i = 0; i < p->r->n_nodes && !p->why; i++) OT_TRY(put_node(p, i));
    return OT_OK;
}

/* Runs of dimension d and those behind it. */
static ot_status put_runs(prog *p, uint32_t d)
{
    if (d == p->r->n_dims) return put_tile(p);
    for (uint32_t k = 0; k < p->n_runs[d] && !p->why; k++) {
        const prog_run *run = &p->runs[d][k];
        p->at[d] = k;
        if (!ot_kb_for(p->b, p->var[d], run->first, (int64_t)run->first + run->count, 1)) return prog_nomem(p);
        OT_TRY(put_runs(p, d + 1));
        if (!ot_kb_end(p->b)) return prog_nomem(p);
    }
    return OT_OK;
}

#define BODIES_BLOCKS 1000 /* that are written out in blocks */
#define BODIES_MAX    4000 /* operators that are written out */

static ot_status put_all(prog *p)
{
    static const char *const variables[OT_DIMS_MAX] = {"t0", "t1", "t2"};
    int64_t bodies = p->r->n_nodes;
    if (p->r->form == OT_FORM_STREAM) return prog_refuse(p, "form stream: its steps hand rows on");
    for (uint32_t d = 0; d < p->r->n_dims; d++) {
        p->var[d] = ot_region_name(&p->names, variables[d], "");
        if (!p->var[d]) return prog_nomem(p);
        OT_TRY(find_runs(p, d));
        if (p->one_kind) keep_longest(p, d);
        bodies *= p->n_runs[d];
        if (bodies > BODIES_MAX) return prog_refuse(p, "tiles of too many kinds");
    }
    p->second = p->second && bodies <= BODIES_BLOCKS;
    OT_TRY(declare_all(p));
    if (p->why) return OT_OK;
    OT_TRY(load_weights(p));
    OT_TRY(put_runs(p, 0));
    for (uint32_t i = 0; i < p->r->n_nodes && !p->why; i++) OT_TRY(prog_combine(p, i));
    return OT_OK;
}

static bool prepare(prog *p)
{
    char name[32];
    snprintf(name, sizeof name, "program_%u", p->r->id);
    p->a = ot_arena_new();
    if (!p->a || !ot_region_names_init(&p->names, p->a)) return false;
    p->constant_of = ot_map_new(p->a);
    p->param = OT_NEW_N(p->a, uint32_t, p->r->n_values + 1u);
    p->parts = OT_NEW_N(p->a, prog_tensor, p->r->n_values + 1u);
    p->tile = OT_NEW_N(p->a, prog_tensor, p->r->n_values + 1u);
    p->b = ot_kernel_build(name, p->t->name[0] ? p->t->name : NULL);
    return p->constant_of && p->param && p->parts && p->tile && p->b;
}

/* The offsets of the planned kernel. Shared memory is sized by the launch. */
static void give_places(const prog *p, ot_kernel *k)
{
    for (uint32_t v = 0; v < k->n_values; v++)
        if (k->values[v].kind == OT_TK_BUFFER && k->values[v].scope == OT_SCOPE_SHARED) k->values[v].dynamic = true;
    for (uint32_t i = 0; i + 1 < p->n_places; i += 2) {
        ot_tk_value *to = &k->values[p->places[i]];
        const ot_tk_value *from = &p->plan->values[p->places[i + 1]];
        to->multi = to->n_offsets = from->n_offsets;
        memcpy(to->offsets, from->offsets, sizeof to->offsets);
    }
}

/* The rest of the plan: memories that the region's plan does not have. */
static ot_status place_rest(const prog *p, ot_kernel *k, ot_region_program *out)
{
    ot_target t = *p->t;
    ot_mem_options o = {.mode = OT_MEM_AUTO, .threads = 1};
    ot_mem_plan *m = NULL;
    for (int s = 0; s < OT_SCOPE_COUNT; s++)
        if (t.scopes[s].alignment < 1) t.scopes[s].alignment = 1;
    if (p->second) t.scopes[OT_SCOPE_FRAGMENT].bytes = inner_capacity(p->t, OT_SCOPE_FRAGMENT);
    t.scopes[OT_SCOPE_L2].bytes = ot_max(t.scopes[OT_SCOPE_L2].bytes, out->memory.arena);
    OT_TRY(ot_kernel_verify(k, k->name, p->d));
    OT_TRY(ot_mem_plan_kernel(k, k->name, &t, &o, p->d, &m));
    out->n_scopes = m->n_scopes;
    memcpy(out->scopes, m->scopes, sizeof out->scopes);
    ot_mem_plan_apply(m, k);
    ot_mem_plan_free(m);
    return OT_OK;
}

/* What outlives the scratch. */
static ot_status keep_rest(const prog *p, ot_arena *a, ot_region_program *out)
{
    out->why = p->why ? ot_strdup(a, p->why) : NULL;
    if (p->why && !out->why) return prog_nomem(p);
    if (!out->kernel) return OT_OK;
    out->n_params = p->n_params;
    out->params = ot_memdup(a, p->params, p->n_params * sizeof *p->params);
    if (!out->params) return prog_nomem(p);
    if (p->n_inner_ops == 0) return OT_OK;
    ot_inner_op *list = ot_memdup(a, p->inner, p->n_inner_ops * sizeof *p->inner);
    out->inner = list;
    out->n_inner = p->n_inner_ops;
    for (uint32_t k = 0; list && k < p->n_inner_ops; k++)
        if (!(list[k].node = ot_strdup(a, list[k].node))) return prog_nomem(p);
    return list ? OT_OK : prog_nomem(p);
}

/* requires a built region with its form set. Fails: OT_E_NOMEM, OT_E_INPUT (our bug), OT_E_BUDGET (a block that was thought to fit). */
ot_status ot_region_lower(const ot_graph *g, const ot_region *r, const ot_target *t, unsigned how, ot_arena *a, ot_diag *d,
                          ot_region_program *out)
{
    ot_kernel *planned = NULL;
    ot_region_held held = {0};
    *out = (ot_region_program){0};
    OT_TRY(ot_region_plan_held(g, r, t, d, a, &out->memory, &held, &planned));
    prog p = {.g = g,
              .r = r,
              .t = t,
              .d = d,
              .plan = planned,
              .held = &held,
              .second = (how & OT_LOWER_BLOCKS) && ot_target_has_cores(t),
              .one_kind = (how & OT_LOWER_ONE_KIND) != 0};
    ot_status st = prepare(&p) ? put_all(&p) : prog_nomem(&p);
    if (st == OT_OK && !p.why) {
        out->kernel = ot_kb_finish(p.b);
        if (!out->kernel) st = prog_nomem(&p);
    } else {
        ot_kb_drop(p.b);
    }
    if (out->kernel) {
        give_places(&p, out->kernel);
        st = place_rest(&p, out->kernel, out);
    }
    if (st == OT_OK) st = keep_rest(&p, a, out);
    if (st != OT_OK) {
        ot_kernel_free(out->kernel);
        out->kernel = NULL;
    }
    ot_kernel_free(planned);
    ot_arena_free(p.a);
    return st;
}
