/* What is read of every value: windows by the slice relation, from the outputs of the graph back.
 *
 *     x --Conv--> a --Relu--> b --Slice [-1:]--> y        y: all of it, one step
 *       [E-3, E)    [E-1, E)    [E-1, E)                  x: the last three
 *
 * Each node is asked once for the hull of what is read of its outputs, one axis after the other; an
 * axis that it does not let cut is made whole, of whole operands. Where that leaves more than
 * SHARE of an axis, the axis is made whole, too: a Slice would cost more than it saves, and halos
 * end there.
 */
#include "narrow.h"

#include "onnx/import/model_io.h"
#include "ops/quirks.h"
#include "tiling/reassemble_types.h"
#include "tiling/sequence.h"

#define SHARE 0.875

static ot_win full_axis(const ot_value *v, int32_t d) { return (ot_win){0, v->dims[d]}; }

static bool is_full(ot_win w, int64_t extent) { return w.lo <= 0 && w.hi >= extent; }

/* A node that makes no more than w of an axis saves more than a Slice costs. */
static bool is_worth(ot_win w, int64_t extent)
{
    return (double)(w.hi - w.lo) <= SHARE * (double)extent;
}

int64_t nr_known(const ot_value *v, int64_t *out)
{
    size_t n = 0;
    if (v->overridable) return -1;
    if (v->known) {
        memcpy(out, v->known, v->known_n * sizeof *out);
        return v->known_n;
    }
    return v->init && ot_tensor_ints(v->init, out, OT_KNOWN_MAX, &n) ? (int64_t)n : -1;
}

int64_t nr_split_start(const ot_graph *g, const ot_node *n, uint32_t o, int32_t along)
{
    int64_t at = 0;
    for (uint32_t k = 0; k < o; k++) at += g->values[n->out[k]].dims[along];
    return at;
}

bool nr_is_narrow(const nr_graph *x, ot_id v)
{
    const ot_value *value = &x->g->values[v];
    if (v >= x->n_values || !x->made[v].at) return false;
    for (int32_t d = 0; d < value->rank; d++)
        if (!is_full(x->made[v].at[d], value->dims[d])) return true;
    return false;
}

/* ---- what is wanted ---- */

/* A reader wants `at` ([rank]; NULL: all) of v. */
static ot_status want(nr_graph *x, ot_id v, const ot_win *at)
{
    const ot_value *value = &x->g->values[v];
    nr_box *box = &x->need[v];
    const bool first = !box->any;
    box->any = true;
    if (!value->is_tensor || value->rank < 1 || !ot_value_is_static(value)) return OT_OK;
    if (first) box->at = OT_NEW_N(x->a, ot_win, (size_t)value->rank);
    if (!box->at) return ot_fail_nomem(x->g->model->diag);
    for (int32_t d = 0; d < value->rank; d++) {
        const ot_win w = at ? at[d] : full_axis(value, d);
        box->at[d] = first ? w : (ot_win){ot_min(box->at[d].lo, w.lo), ot_max(box->at[d].hi, w.hi)};
    }
    return OT_OK;
}

/* The node stays as it is. */
static ot_status want_all(nr_graph *x, ot_id id)
{
    const ot_node *n = &x->g->nodes[id];
    x->nodes[id].kind = NR_WHOLE;
    for (uint32_t j = 0; j < n->n_in + n->n_captured; j++) {
        const ot_id v = j < n->n_in ? n->in[j] : n->captured[j - n->n_in];
        if (v != OT_NONE) OT_TRY(want(x, v, NULL));
    }
    return OT_OK;
}

bool nr_operand(const nr_graph *x, ot_id id, uint32_t j, ot_win *at)
{
    const ot_node *n = &x->g->nodes[id];
    const nr_node *to = &x->nodes[id];
    const ot_value *v = &x->g->values[n->in[j]];
    for (int32_t d = 0; d < v->rank; d++) at[d] = full_axis(v, d);
    if (to->kind == NR_SPLIT && j == 0) {
        bool first = true;
        for (uint32_t o = 0; o < n->n_out; o++) {
            const nr_box *need = &x->need[n->out[o]];
            const int64_t from = nr_split_start(x->g, n, o, to->along);
            if (!need->any) continue;
            for (int32_t d = 0; d < v->rank; d++) {
                ot_win w = need->at[d];
                if (d == to->along) w = (ot_win){w.lo + from, w.hi + from};
                at[d] = first ? w : (ot_win){ot_min(at[d].lo, w.lo), ot_max(at[d].hi, w.hi)};
            }
            first = false;
        }
    }
    if (to->kind == NR_PICK && j == 0) at[to->along] = to->picked;
    for (uint32_t k = 0; k < to->n_axes; k++) {
        const int8_t axis = to->in_axis[k][j];
        if (axis < 0) continue;
        const ot_win w = to->axes[k].tile->in[j];
        if (w.lo >= w.hi) return false;
        at[axis] = w;
    }
    return true;
}

/* ---- one node ---- */

/* An operand of that kind may be given in part: a Slice takes it, and no runtime merges what makes
 * it with what reads it. */
static bool may_be_part(const ot_graph *g, ot_id v)
{
    return ot_reassemble_takes(OT_REASSEMBLE_SLICE, g->values[v].dtype, g->model->opset) &&
           !ot_is_quantised_weight(g, v);
}

/* The window of axis d of the lead output, which all outputs that are read are cut along; the whole
 * axis where it is not worth a cut. */
static ot_win wanted_window(const nr_graph *x, const ot_node *n, uint32_t lead, int32_t d,
                            const int8_t *out_axis)
{
    const ot_value *v = &x->g->values[n->out[lead]];
    const int64_t extent = v->dims[d];
    ot_win w = {extent, 0};
    for (uint32_t o = 0; o < n->n_out; o++) {
        if (n->out[o] == OT_NONE || !x->need[n->out[o]].any) continue;
        const int8_t axis = out_axis[o];
        if (axis < 0 || !x->need[n->out[o]].at || x->g->values[n->out[o]].dims[axis] != extent)
            return (ot_win){0, extent};
        const ot_win at = x->need[n->out[o]].at[axis];
        w = (ot_win){ot_min(w.lo, at.lo), ot_max(w.hi, at.hi)};
    }
    return is_worth(w, extent) ? w : (ot_win){0, extent};
}

/* The node lets the axis be cut so: windows of operands are not empty but of a Concat, operands may
 * be given in part, no axis of one is cut twice, and averages keep their padding. */
static bool fits(const nr_graph *x, const ot_node *n, const nr_node *to, const int8_t *in_axis,
                 const ot_op_tile *t, bool *trivial)
{
    const ot_graph *g = x->g;
    for (uint32_t j = 0; j < n->n_in; j++) {
        if (n->in[j] == OT_NONE || in_axis[j] < 0) continue;
        const ot_win w = t->in[j];
        const bool empty = w.lo >= w.hi;
        if (empty && n->op != OT_OP_Concat) return false;
        if (is_full(w, g->values[n->in[j]].dims[in_axis[j]])) continue;
        *trivial = false;
        if (!empty && !may_be_part(g, n->in[j])) return false;
        if (j == 1 && to->kind == NR_PICK) return false; /* indices are written anew */
        for (uint32_t k = 0; k < to->n_axes; k++)
            if (to->in_axis[k][j] == in_axis[j]) return false;
    }
    return n->op != OT_OP_AveragePool || t->pad_hi <= t->pad_lo;
}

/* Ask for the window of axis d; *to gets another axis where that cuts something. */
static ot_status cut_axis(nr_graph *x, const ot_node *n, int32_t d, nr_node *to)
{
    const ot_graph *g = x->g;
    const int64_t extent = g->values[n->out[to->lead]].dims[d];
    int8_t *in_axis = OT_NEW_N(x->a, int8_t, (size_t)n->n_in + n->n_out + 1u);
    ot_op_tile *t = OT_NEW(x->a, ot_op_tile);
    ot_win *in = OT_NEW_N(x->a, ot_win, n->n_in + 1u);
    ot_why why;
    if (!in_axis || !t || !in) return ot_fail_nomem(g->model->diag);
    if (d == 1 && ot_quirk_hits(OT_QUIRK_CHANNEL_AVERAGE, OT_BY_ALL, n->op_type)) return OT_OK;
    if (!ot_access_axis(g, n, to->lead, (uint32_t)d, in_axis, in_axis + n->n_in, &why))
        return OT_OK;
    *t = (ot_op_tile){.need = wanted_window(x, n, to->lead, d, in_axis + n->n_in), .in = in};
    for (int tries = 0; tries < 2; tries++) {
        bool trivial = true;
        const bool whole = is_full(t->need, extent);
        if (ot_access_window(g, n, to->lead, (uint32_t)d, t, &why)) {
            trivial = is_full(t->made, extent);
            if (fits(x, n, to, in_axis, t, &trivial)) {
                if (trivial) return OT_OK;
                to->in_axis[to->n_axes] = in_axis;
                to->axes[to->n_axes++] = (ot_tile_axis){to->lead, (uint32_t)d, t};
                return OT_OK;
            }
        }
        if (whole) return OT_OK;
        t->need = (ot_win){0, extent};
    }
    return OT_OK;
}

/* Gather of indices that are known: the hull of what they point at. */
static void find_picked(const nr_graph *x, const ot_node *n, nr_node *to, int64_t *room)
{
    const ot_value *v = &x->g->values[n->in[0]];
    int64_t axis = ot_attr_int(n, "axis", 0);
    const int64_t count = n->in[1] == OT_NONE ? -1 : nr_known(&x->g->values[n->in[1]], room);
    const ot_dtype type = count > 0 ? x->g->values[n->in[1]].dtype : OT_DT_UNKNOWN;
    if (axis < 0) axis += v->rank;
    if ((type != OT_I64 && type != OT_I32) || axis < 0 || axis >= v->rank ||
        !may_be_part(x->g, n->in[0]))
        return;
    const int64_t extent = v->dims[axis];
    ot_win w = {extent, 0};
    for (int64_t k = 0; k < count; k++) {
        const int64_t at = room[k] < 0 ? room[k] + extent : room[k];
        if (at < 0 || at >= extent) return;
        w = (ot_win){ot_min(w.lo, at), ot_max(w.hi, at + 1)};
    }
    if (w.hi - w.lo == extent) return;
    to->kind = NR_PICK;
    to->along = (int32_t)axis;
    to->picked = w;
}

/* Of a Split, some results are not read, or not all of them. */
static bool find_split(const nr_graph *x, const ot_node *n, nr_node *to)
{
    const ot_value *v = &x->g->values[n->in[0]];
    int64_t axis = ot_attr_int(n, "axis", 0), sum = 0;
    if (axis < 0) axis += v->rank;
    if (axis < 0 || axis >= v->rank || !may_be_part(x->g, n->in[0])) return false;
    for (uint32_t o = 0; o < n->n_out; o++) {
        const ot_value *y = n->out[o] == OT_NONE ? NULL : &x->g->values[n->out[o]];
        if (!y || y->rank != v->rank || !ot_value_is_static(y) || y->dims[axis] < 1 ||
            (x->need[n->out[o]].any && !x->need[n->out[o]].at))
            return false;
        sum += y->dims[axis];
    }
    if (sum != v->dims[axis]) return false;
    to->along = (int32_t)axis;
    to->kind = NR_SPLIT;
    return true;
}

/* Operand 0 is read in part. */
static bool reads_part(const nr_graph *x, ot_id id)
{
    ot_win at[OT_RANK_MAX];
    const ot_value *v = &x->g->values[x->g->nodes[id].in[0]];
    if (!nr_operand(x, id, 0, at)) return false;
    for (int32_t d = 0; d < v->rank; d++)
        if (is_worth(at[d], v->dims[d])) return true;
    return false;
}

static bool has_tensors(const ot_graph *g, const ot_node *n)
{
    for (uint32_t j = 0; j < n->n_in; j++) {
        const ot_value *v = n->in[j] == OT_NONE ? NULL : &g->values[n->in[j]];
        if (v && (!v->is_tensor || !ot_value_is_static(v))) return false;
    }
    return n->n_in > 0 && n->in[0] != OT_NONE && g->values[n->in[0]].rank > 0;
}

/* What the node then makes of its outputs. */
static ot_status note_made(nr_graph *x, ot_id id)
{
    const ot_node *n = &x->g->nodes[id];
    const nr_node *to = &x->nodes[id];
    for (uint32_t o = 0; o < n->n_out; o++) {
        if (n->out[o] == OT_NONE || !x->need[n->out[o]].any || !x->need[n->out[o]].at) continue;
        const ot_value *v = &x->g->values[n->out[o]];
        nr_box *box = &x->made[n->out[o]];
        *box = (nr_box){true, OT_NEW_N(x->a, ot_win, (size_t)v->rank)};
        if (!box->at) return ot_fail_nomem(x->g->model->diag);
        for (int32_t d = 0; d < v->rank; d++)
            box->at[d] = to->kind == NR_SPLIT ? x->need[n->out[o]].at[d] : full_axis(v, d);
        for (uint32_t k = 0; k < to->n_axes; k++) {
            /* outputs that are cut are cut along the same axis (wanted_window) */
            const int8_t axis = o == to->lead ? (int8_t)to->axes[k].axis
                                              : to->in_axis[k][n->n_in + o];
            if (axis >= 0) box->at[axis] = to->axes[k].tile->made;
        }
    }
    return OT_OK;
}

static ot_status cut_node(nr_graph *x, ot_id id)
{
    const ot_node *n = &x->g->nodes[id];
    nr_node *to = &x->nodes[id];
    const int32_t rank = x->g->values[n->out[to->lead]].rank;
    int64_t *room = OT_NEW_N(x->a, int64_t, n->op == OT_OP_Gather ? OT_KNOWN_MAX : 1);
    to->axes = OT_NEW_N(x->a, ot_tile_axis, (size_t)(rank > 0 ? rank : 1));
    to->in_axis = OT_NEW_N(x->a, int8_t *, (size_t)(rank > 0 ? rank : 1));
    if (!room || !to->axes || !to->in_axis) return ot_fail_nomem(x->g->model->diag);
    to->kind = NR_CUT;
    if (n->op == OT_OP_Split && find_split(x, n, to) && reads_part(x, id)) return OT_OK;
    to->kind = NR_CUT;
    if (n->op == OT_OP_Gather && n->n_in == 2) find_picked(x, n, to, room);
    for (int32_t d = 0; d < rank; d++) OT_TRY(cut_axis(x, n, d, to));
    if (to->n_axes == 0 && to->kind == NR_CUT) to->kind = NR_WHOLE;
    return OT_OK;
}

/* odd: nothing of it is cut (tiling/sequence.h). */
static ot_status visit(nr_graph *x, ot_id id, bool odd)
{
    const ot_node *n = &x->g->nodes[id];
    nr_node *to = &x->nodes[id];
    uint32_t lead = OT_NONE;
    for (uint32_t o = n->n_out; o-- > 0;)
        if (n->out[o] != OT_NONE && x->need[n->out[o]].any) lead = o;
    if (lead == OT_NONE) {
        to->kind = NR_UNREAD;
        return OT_OK;
    }
    if (ot_static_foldable(x->g, n)) {
        to->kind = NR_FOLDED;
        return OT_OK;
    }
    const ot_value *v = &x->g->values[n->out[lead]];
    if (odd || n->is_static || n->n_captured > 0 || !ot_access_known(n) || !has_tensors(x->g, n) ||
        !v->is_tensor || !ot_value_is_static(v))
        return want_all(x, id);
    to->lead = lead;
    OT_TRY(cut_node(x, id));
    if (to->kind == NR_WHOLE) return want_all(x, id);
    OT_TRY(note_made(x, id));
    for (uint32_t j = 0; j < n->n_in; j++) {
        ot_win at[OT_RANK_MAX];
        if (n->in[j] != OT_NONE && nr_operand(x, id, j, at)) OT_TRY(want(x, n->in[j], at));
    }
    return OT_OK;
}

/* Nodes that outputs depend on. */
static void mark_live(nr_graph *x, bool *read)
{
    ot_graph *g = x->g;
    for (uint32_t k = 0; k < g->n_outputs; k++) read[g->outputs[k]] = true;
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_node *n = &g->nodes[g->order[k]];
        bool *live = &x->live[g->order[k]];
        for (uint32_t o = 0; o < n->n_out; o++) *live |= n->out[o] != OT_NONE && read[n->out[o]];
        for (uint32_t j = 0; *live && j < n->n_in + n->n_captured; j++) {
            const ot_id v = j < n->n_in ? n->in[j] : n->captured[j - n->n_in];
            if (v != OT_NONE) read[v] = true;
        }
    }
}

ot_status nr_find(ot_graph *g, ot_arena *a, nr_graph *x)
{
    ot_seq s;
    bool *read = OT_NEW_N(a, bool, g->n_values + 1u);
    *x = (nr_graph){.g = g,
                    .a = a,
                    .need = OT_NEW_N(a, nr_box, g->n_values + 1u),
                    .made = OT_NEW_N(a, nr_box, g->n_values + 1u),
                    .nodes = OT_NEW_N(a, nr_node, g->n_nodes + 1u),
                    .live = OT_NEW_N(a, bool, g->n_nodes + 1u),
                    .n_values = g->n_values,
                    .n_nodes = g->n_nodes};
    if (!read || !x->need || !x->made || !x->nodes || !x->live)
        return ot_fail_nomem(g->model->diag);
    OT_TRY(ot_seq_build(g, a, &s));
    mark_live(x, read);
    for (uint32_t k = 0; k < g->n_outputs; k++) OT_TRY(want(x, g->outputs[k], NULL));
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_id id = g->order[k];
        OT_TRY(visit(x, id, s.pos[id] != OT_NONE && s.odd[s.pos[id]]));
    }
    return OT_OK;
}
