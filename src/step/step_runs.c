/* Operators that run along the axis: their state goes from step to step.
 *
 *   LSTM, GRU, RNN   initial_h = state, Y_h = next state; LSTM's cell likewise
 *   CumSum           the last sum stands before the step's rows, and is cut off again: it adds in
 *                    the same order as over all rows
 *
 * Rows before the first, which the first steps have where the operand lags behind its input, must
 * leave the state as it was: lags are whole steps here, so a step has none of them or no others.
 */
#include "step_internal.h"

static ot_status nomem(const step_writer *w) { return ot_fail_nomem(w->g->model->diag); }

/* next, or the state as it was while there are no rows yet. */
static ot_status unless_before(step_writer *w, ot_id y, ot_id state, ot_id next, ot_id *out)
{
    const int64_t one = 1, none = 0;
    const ot_value of = w->g->values[state];
    ot_id place, zero, is;
    *out = next;
    if (w->p->values[y].lag == 0) return OT_OK;
    OT_TRY(step_place(w, y, -w->p->values[y].lag, &place));
    OT_TRY(step_ints(w, "number", &none, 1, &zero));
    OT_TRY(step_op(w, "Less", (ot_id[2]){place, zero}, 2, (ot_attr_list){0},
                   (ot_tensor_type){OT_BOOL, 1, &one}, &is));
    return step_op(w, "Where", (ot_id[3]){is, state, next}, 3, (ot_attr_list){0}, ot_type_of(&of),
                   out);
}

/* What the first step begins with: the node's own operand j, or zeros; *out as the state. */
static ot_status begin_with(step_writer *w, ot_id own, ot_id state, ot_id *out)
{
    const int64_t one = 1, none = 0;
    const ot_value of = w->g->values[state];
    ot_id zero, is;
    *out = state;
    if (own == OT_NONE) return OT_OK;
    OT_TRY(step_ints(w, "number", &none, 1, &zero));
    /* of the first step, and of those whose rows leave the state as it was */
    OT_TRY(step_op(w, "Equal", (ot_id[2]){w->first, zero}, 2, (ot_attr_list){0},
                   (ot_tensor_type){OT_BOOL, 1, &one}, &is));
    return step_op(w, "Where", (ot_id[3]){is, own, state}, 3, (ot_attr_list){0}, ot_type_of(&of),
                   out);
}

/* Y is [steps, directions, batch, hidden], the state all but the first. */
static ot_status run_cells(step_writer *w, ot_id id, ot_id x)
{
    const ot_node was = w->g->nodes[id];
    const ot_value y = w->g->values[was.out[0]];
    const bool lstm = was.op == OT_OP_LSTM;
    const uint32_t n = lstm ? 2 : 1;
    const int64_t dims[3] = {y.dims[1], y.dims[2], y.dims[3]};
    const ot_tensor_type type = {y.dtype, 3, dims};
    const char *name = y.name;
    ot_id in[8], out[3] = {was.out[0], OT_NONE, OT_NONE}, state[2], before[2], next;
    if (was.n_in > 8) return step_refuse(w->p, id, "it has too many operands");
    for (uint32_t j = 0; j < 8; j++) in[j] = j < was.n_in ? was.in[j] : OT_NONE;
    in[0] = x;
    for (uint32_t k = 0; k < n; k++) {
        const char *of = ot_format(w->p->a, "%s%s", name, k == 0 ? ".h" : ".c");
        const char *made = ot_format(w->g->model->arena, "step/%s", of ? of : "");
        made = made ? ot_fresh_name(w->g->model, made) : NULL;
        if (!of || !made) return nomem(w);
        OT_TRY(step_state(w, of, type, &state[k]));
        OT_TRY(begin_with(w, in[5 + k], state[k], &before[k]));
        in[5 + k] = before[k];
        out[1 + k] = ot_value_new(w->g, made, y.dtype, 3, dims);
        if (out[1 + k] == OT_NONE) return nomem(w);
    }
    ot_node_remove(w->g, id);
    const ot_node_def def = {.op = was.op_type,
                             .name = was.name,
                             .in = {in, lstm ? 8 : 6},
                             .out = {out, 1 + n},
                             .attrs = {was.attrs, was.n_attrs}};
    if (ot_node_new(w->g, &def) == OT_NONE) return nomem(w);
    for (uint32_t k = 0; k < n; k++) {
        OT_TRY(unless_before(w, was.out[0], before[k], out[1 + k], &next));
        OT_TRY(step_next(w, state[k], next));
    }
    return OT_OK;
}

/* exclusive: sums of the rows before, without the row itself. Then the state is what the next row
 * would have: the last sum and the last row. */
static ot_status run_sum(step_writer *w, ot_id id, ot_id x)
{
    const ot_node was = w->g->nodes[id];
    const ot_id y = was.out[0];
    const uint32_t axis = (uint32_t)w->p->flow->s->axis[y];
    const step_value *v = &w->p->values[y];
    const ot_value of = w->g->values[x];
    const ot_attr no_attr = ot_mk_int("exclusive", 0);
    const bool exclusive = ot_attr_int(&was, "exclusive", 0) != 0;
    int64_t dims[OT_RANK_MAX];
    ot_id state, with, sums, last, next;
    memcpy(dims, of.dims, (size_t)of.rank * sizeof *dims);
    dims[axis] = 1;
    OT_TRY(step_state(w, w->g->values[y].name, (ot_tensor_type){of.dtype, of.rank, dims}, &state));
    OT_TRY(step_join(w, state, x, axis, &with));
    dims[axis] = v->rows + 1;
    OT_TRY(step_op(w, "CumSum", (ot_id[2]){with, was.in[1]}, 2, (ot_attr_list){&no_attr, 1},
                   (ot_tensor_type){of.dtype, of.rank, dims}, &sums));
    OT_TRY(step_cut(w, sums, axis, 0, (ot_win){v->rows, v->rows + 1}, &last));
    OT_TRY(unless_before(w, y, state, last, &next));
    OT_TRY(step_next(w, state, next));
    ot_node_remove(w->g, id);
    return step_cut_into(w, sums, axis, 0,
                         exclusive ? (ot_win){0, v->rows} : (ot_win){1, v->rows + 1}, y);
}

ot_status step_run_node(step_writer *w, ot_id id, ot_id in)
{
    return w->g->nodes[id].op == OT_OP_CumSum ? run_sum(w, id, in) : run_cells(w, id, in);
}
