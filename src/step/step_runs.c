/* Operators that run along the axis: their state goes from step to step.
 *
 *   LSTM, GRU, RNN   initial_h = state, Y_h = next state; LSTM's cell likewise
 *   CumSum           the last sum stands before the step's rows, and is cut off again: it adds in
 *                    the same order as over all rows
 *
 * Rows before the first, which the first steps have where the operand lags behind its input, must
 * leave the state as it was. For a sum they are zeros. Cells run over a step's rows in two parts
 * where the lag is no number of whole steps, so that each part has such rows alone or none:
 *
 *   lag 5, 4 rows a step    -5 -4 -3 -2 | -1  0  1  2 |  3  4  5  6
 *                           a  b  b  b    a  b  b  b     a  b  b  b
 */
#include "step_internal.h"

static ot_status nomem(const step_writer *w) { return ot_fail_nomem(w->g->model->diag); }

/* next, or the state as it was while all rows before `end` of the step are before the first. */
static ot_status unless_before(step_writer *w, ot_id y, int64_t end, ot_id state, ot_id next,
                               ot_id *out)
{
    const int64_t one = 1;
    const ot_value of = w->g->values[state];
    ot_id place, first, is;
    *out = next;
    if (w->p->values[y].lag == 0) return OT_OK;
    OT_TRY(step_place(w, y, end, &place));
    OT_TRY(step_ints(w, "number", &one, 1, &first));
    OT_TRY(step_op(w, "Less", (ot_id[2]){place, first}, 2, (ot_attr_list){0},
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

/* A recurrent node on its way. Y is [steps, directions, batch, hidden], or with layout 1 [batch,
 * steps, ...]; a state has no steps. */
typedef struct cells {
    ot_node was;
    uint32_t n; /* states */
    ot_tensor_type type;
    ot_id now[2]; /* the states, as far as the step has come */
} cells;

/* The node on rows [from, to) of the step, of x; *y: what it makes, a value of its own where it is
 * OT_NONE. */
static ot_status run_part(step_writer *w, cells *c, ot_id x, ot_win rows, ot_id *y)
{
    const ot_id all = c->was.out[0];
    const step_value *v = &w->p->values[all];
    const uint32_t axis = (uint32_t)w->p->flow->s->axis[all];
    ot_id in[8], out[3] = {*y, OT_NONE, OT_NONE};
    for (uint32_t j = 0; j < 8; j++) in[j] = j < c->was.n_in ? c->was.in[j] : OT_NONE;
    OT_TRY(step_cut(w, x, (uint32_t)w->p->flow->s->axis[c->was.in[0]], -v->lag, rows, &in[0]));
    if (*y == OT_NONE) OT_TRY(step_like(w, all, axis, rows.hi - rows.lo, &out[0]));
    for (uint32_t k = 0; k < c->n; k++) {
        in[5 + k] = c->now[k];
        OT_TRY(step_value_new(w, "step/cells", c->type, &out[1 + k]));
    }
    const char *name = *y == OT_NONE
                           ? ot_fresh_name(w->g->model, c->was.name[0] ? c->was.name : "step/cells")
                           : c->was.name;
    const ot_node_def def = {.op = c->was.op_type,
                             .name = name,
                             .in = {in, 5 + (c->was.n_in > 7 ? 3 : c->n)},
                             .out = {out, 1 + c->n},
                             .attrs = {c->was.attrs, c->was.n_attrs}};
    if (!name || ot_node_new(w->g, &def) == OT_NONE) return nomem(w);
    *y = out[0];
    for (uint32_t k = 0; k < c->n; k++)
        OT_TRY(unless_before(w, all, rows.hi, c->now[k], out[1 + k], &c->now[k]));
    return OT_OK;
}

static ot_status run_cells(step_writer *w, ot_id id, ot_id x)
{
    const ot_node was = w->g->nodes[id];
    const ot_id all = was.out[0];
    const ot_value y = w->g->values[all];
    const step_value *v = &w->p->values[all];
    const int32_t axis = w->p->flow->s->axis[all];
    int64_t dims[3];
    uint32_t rank = 0;
    for (int32_t k = 0; k < 4; k++)
        if (k != axis) dims[rank++] = y.dims[k];
    cells c = {.was = was, .n = was.op == OT_OP_LSTM ? 2 : 1, .type = {y.dtype, 3, dims}};
    if (was.n_in > 8) return step_refuse(w->p, id, "it has too many operands");
    ot_id state[2];
    for (uint32_t k = 0; k < c.n; k++) {
        const char *of = ot_format(w->p->a, "%s%s", y.name, k == 0 ? ".h" : ".c");
        if (!of) return nomem(w);
        OT_TRY(step_state(w, of, c.type, &state[k]));
        OT_TRY(begin_with(w, was.n_in > 5 + k ? was.in[5 + k] : OT_NONE, state[k], &c.now[k]));
    }
    ot_node_remove(w->g, id);
    const int64_t cut = v->lag % v->rows;
    ot_id part[2] = {OT_NONE, cut == 0 ? all : OT_NONE};
    if (cut > 0) OT_TRY(run_part(w, &c, x, (ot_win){-v->lag, cut - v->lag}, &part[0]));
    OT_TRY(run_part(w, &c, x, (ot_win){cut - v->lag, v->rows - v->lag}, &part[1]));
    if (cut > 0) {
        const ot_attr along = ot_mk_int("axis", axis);
        OT_TRY(step_op_into(w, "Concat", part, 2, (ot_attr_list){&along, 1}, all));
    }
    for (uint32_t k = 0; k < c.n; k++) OT_TRY(step_next(w, state[k], c.now[k]));
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
    ot_id state, with, sums, last;
    memcpy(dims, of.dims, (size_t)of.rank * sizeof *dims);
    dims[axis] = 1;
    OT_TRY(step_state(w, w->g->values[y].name, (ot_tensor_type){of.dtype, of.rank, dims}, &state));
    OT_TRY(step_join(w, state, x, axis, &with));
    dims[axis] = v->rows + 1;
    OT_TRY(step_op(w, "CumSum", (ot_id[2]){with, was.in[1]}, 2, (ot_attr_list){&no_attr, 1},
                   (ot_tensor_type){of.dtype, of.rank, dims}, &sums));
    OT_TRY(step_cut(w, sums, axis, 0, (ot_win){v->rows, v->rows + 1}, &last));
    OT_TRY(step_next(w, state, last));
    ot_node_remove(w->g, id);
    return step_cut_into(w, sums, axis, 0,
                         exclusive ? (ot_win){0, v->rows} : (ot_win){1, v->rows + 1}, y);
}

ot_status step_run_node(step_writer *w, ot_id id, ot_id in)
{
    return w->g->nodes[id].op == OT_OP_CumSum ? run_sum(w, id, in) : run_cells(w, id, in);
}
