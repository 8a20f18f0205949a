/* The model of a step, written in place: a value becomes the rows that a step makes of it, its
 * node the one that makes them, and what is read of earlier rows goes from state to state.
 *
 *     state.x --+                               next.x = the last rows of both
 *     x --------+--Concat--> rows at hand --Slice--> (rows outside replaced) --> node --> y
 */
#include "step_internal.h"

static ot_status nomem(const step_writer *w) { return ot_fail_nomem(w->g->model->diag); }

static int8_t axis_of(const step_writer *w, ot_id v) { return w->p->flow->s->axis[v]; }

/* ---- small parts ---- */

ot_status step_value_new(step_writer *w, const char *base, ot_tensor_type type, ot_id *out)
{
    const char *name = ot_fresh_name(w->g->model, base);
    *out = name ? ot_value_new(w->g, name, type.dtype, type.rank, type.dims) : OT_NONE;
    return *out == OT_NONE ? nomem(w) : OT_OK;
}

ot_status step_like(step_writer *w, ot_id v, uint32_t axis, int64_t rows, ot_id *out)
{
    const ot_value of = w->g->values[v];
    int64_t dims[OT_RANK_MAX];
    memcpy(dims, of.dims, (size_t)of.rank * sizeof *dims);
    dims[axis] = rows;
    return step_value_new(w, of.name, (ot_tensor_type){of.dtype, of.rank, dims}, out);
}

/* A node that makes *out, or a new value where that is OT_NONE. */
static ot_status make(step_writer *w, const char *op, ot_id_list in, ot_attr_list attrs,
                      ot_tensor_type type, ot_id *out)
{
    const char *base = ot_format(w->g->model->arena, "step/%s", op);
    const char *name = base ? ot_fresh_name(w->g->model, base) : NULL;
    if (!name) return nomem(w);
    if (*out == OT_NONE) OT_TRY(step_value_new(w, name, type, out));
    const ot_node_def def = {.op = op, .name = name, .in = in, .out = {out, 1}, .attrs = attrs};
    return ot_node_new(w->g, &def) == OT_NONE ? nomem(w) : OT_OK;
}

ot_status step_op(step_writer *w, const char *op, const ot_id *in, uint32_t n, ot_attr_list attrs,
                  ot_tensor_type type, ot_id *out)
{
    ot_id made = OT_NONE; /* *out may be among `in` */
    OT_TRY(make(w, op, (ot_id_list){in, n}, attrs, type, &made));
    *out = made;
    return OT_OK;
}

ot_status step_op_into(step_writer *w, const char *op, const ot_id *in, uint32_t n,
                       ot_attr_list attrs, ot_id y)
{
    return make(w, op, (ot_id_list){in, n}, attrs, ot_type_of(&w->g->values[y]), &y);
}

ot_status step_ints(step_writer *w, const char *name, const int64_t *v, int64_t n, ot_id *out)
{
    char key[96];
    size_t at = (size_t)snprintf(key, sizeof key, "ints %lld", (long long)n);
    for (int64_t k = 0; k < n && n <= 2; k++)
        at += (size_t)snprintf(key + at, sizeof key - at, ",%lld", (long long)v[k]);
    if (n <= 2 && (*out = ot_map_get(w->made, key)) != OT_NONE) return OT_OK;
    const char *base = ot_format(w->g->model->arena, "step/%s", name);
    const char *own = base ? ot_fresh_name(w->g->model, base) : NULL;
    *out = own ? ot_const_i64(w->g, own, v, 1, &n) : OT_NONE;
    if (*out == OT_NONE) return nomem(w);
    if (n > 2) return OT_OK;
    const char *stays = ot_strdup(w->p->a, key);
    return stays && ot_map_put(w->made, stays, *out) ? OT_OK : nomem(w);
}

/* Rows [lo, hi) of x as *out, or as a new value. */
static ot_status cut_into(step_writer *w, ot_id x, uint32_t axis, int64_t base, ot_win rows,
                          ot_id *out)
{
    const ot_value v = w->g->values[x];
    int64_t dims[OT_RANK_MAX];
    const int64_t at[3] = {rows.lo - base, rows.hi - base, axis};
    ot_id in[4] = {x, OT_NONE, OT_NONE, OT_NONE};
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    if (at[0] < 0 || at[1] > dims[axis]) OT_BUG("a step reads rows that are not at hand");
    dims[axis] = rows.hi - rows.lo;
    OT_TRY(step_ints(w, "starts", &at[0], 1, &in[1]));
    OT_TRY(step_ints(w, "ends", &at[1], 1, &in[2]));
    OT_TRY(step_ints(w, "axes", &at[2], 1, &in[3]));
    return make(w, "Slice", (ot_id_list){in, 4}, (ot_attr_list){0},
                (ot_tensor_type){v.dtype, v.rank, dims}, out);
}

ot_status step_cut(step_writer *w, ot_id x, uint32_t axis, int64_t base, ot_win rows, ot_id *out)
{
    char key[96];
    *out = x;
    if (rows.lo == base && rows.hi - base == w->g->values[x].dims[axis]) return OT_OK;
    snprintf(key, sizeof key, "cut %u;%u;%lld,%lld", x, axis, (long long)(rows.lo - base),
             (long long)(rows.hi - base));
    if ((*out = ot_map_get(w->made, key)) != OT_NONE) return OT_OK;
    OT_TRY(cut_into(w, x, axis, base, rows, out));
    const char *stays = ot_strdup(w->p->a, key);
    return stays && ot_map_put(w->made, stays, *out) ? OT_OK : nomem(w);
}

ot_status step_cut_into(step_writer *w, ot_id x, uint32_t axis, int64_t base, ot_win rows, ot_id y)
{
    return cut_into(w, x, axis, base, rows, &y);
}

ot_status step_join(step_writer *w, ot_id a, ot_id b, uint32_t axis, ot_id *out)
{
    const ot_value v = w->g->values[b];
    int64_t dims[OT_RANK_MAX];
    const ot_id in[2] = {a, b};
    const ot_attr along = ot_mk_int("axis", axis);
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    dims[axis] += w->g->values[a].dims[axis];
    return step_op(w, "Concat", in, 2, (ot_attr_list){&along, 1},
                   (ot_tensor_type){v.dtype, v.rank, dims}, out);
}

/* ---- inputs, outputs, states ---- */

static bool push(step_writer *w, ot_id **list, uint32_t *n, ot_id v)
{
    ot_id *more = OT_NEW_N(w->g->model->arena, ot_id, *n + 1u);
    if (!more) return false;
    if (*n) memcpy(more, *list, *n * sizeof *more);
    more[(*n)++] = v;
    *list = more;
    return true;
}

ot_status step_new_input(step_writer *w, const char *base, ot_tensor_type type, ot_id *out)
{
    OT_TRY(step_value_new(w, base, type, out));
    w->g->values[*out].is_input = true;
    return push(w, &w->g->inputs, &w->g->n_inputs, *out) ? OT_OK : nomem(w);
}

/* `made` becomes an output of that name, which is *out then. */
ot_status step_new_output(step_writer *w, const char *base, ot_id made, ot_id *out)
{
    const ot_value v = w->g->values[made];
    OT_TRY(step_value_new(w, base, ot_type_of(&v), out));
    OT_TRY(make(w, "Identity", (ot_id_list){&made, 1}, (ot_attr_list){0}, ot_type_of(&v), out));
    w->g->values[*out].is_output = true;
    return push(w, &w->g->outputs, &w->g->n_outputs, *out) ? OT_OK : nomem(w);
}

ot_status step_state(step_writer *w, const char *name, ot_tensor_type type, ot_id *out)
{
    ot_arena *a = w->g->model->arena;
    const char *base = ot_format(a, "state.%s", name);
    int64_t *dims = OT_NEW_N(a, int64_t, (size_t)type.rank + 1);
    if (!base || !dims) return nomem(w);
    OT_TRY(step_new_input(w, base, type, out));
    memcpy(dims, type.dims, (size_t)type.rank * sizeof *dims);
    ot_step_state s = {.from = w->g->values[*out].name, .type = {type.dtype, type.rank, dims}};
    if (!ot_value_bytes(&w->g->values[*out], &s.bytes)) s.bytes = 0;
    w->facts->state_bytes += s.bytes;
    return OT_PUSH(a, w->facts->states, w->facts->n_states, w->cap_states, s) ? OT_OK : nomem(w);
}

ot_status step_next(step_writer *w, ot_id state, ot_id next)
{
    const char *from = w->g->values[state].name;
    const char *base = ot_format(w->g->model->arena, "next.%s", from + strlen("state."));
    ot_id out;
    if (!base) return nomem(w);
    OT_TRY(step_new_output(w, base, next, &out));
    for (uint32_t k = 0; k < w->facts->n_states; k++)
        if (w->facts->states[k].from == from) w->facts->states[k].to = w->g->values[out].name;
    return OT_OK;
}

/* ---- rows at hand ---- */

/* First row at hand of v. */
static int64_t base_of(const step_writer *w, ot_id v)
{
    const step_value *x = &w->p->values[v];
    return x->anew ? x->win.lo : ot_min(x->win.lo, -x->lag);
}

/* What is kept of v joins what this step has made of it (`fresh`); what the next one needs is
 * handed on. */
static ot_status take_over(step_writer *w, ot_id v, ot_id fresh)
{
    const step_value *x = &w->p->values[v];
    const uint32_t axis = (uint32_t)axis_of(w, v);
    const int64_t lag = x->lag, kept = -lag - x->win.lo;
    w->now[v] = fresh;
    if (x->anew || kept <= 0) return OT_OK;
    const ot_value of = w->g->values[v];
    int64_t dims[OT_RANK_MAX];
    ot_id state, rest;
    memcpy(dims, of.dims, (size_t)of.rank * sizeof *dims);
    dims[axis] = kept;
    OT_TRY(step_state(w, of.name, (ot_tensor_type){of.dtype, of.rank, dims}, &state));
    OT_TRY(step_join(w, state, fresh, axis, &w->now[v]));
    const ot_win next = {x->win.lo + x->rows, x->rows - lag};
    if (kept <= x->rows)
        OT_TRY(step_cut(w, fresh, axis, -lag, next, &rest));
    else
        OT_TRY(step_cut(w, w->now[v], axis, x->win.lo, next, &rest));
    return step_next(w, state, rest);
}

/* n: inputs of the model itself, before those that were added. */
static ot_status take_inputs(step_writer *w, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        const ot_id v = w->g->inputs[k];
        const step_value *x = &w->p->values[v];
        int64_t dims[OT_RANK_MAX];
        if (axis_of(w, v) < 0 || !w->p->flow->s->reads[v]) continue;
        const ot_value of = w->g->values[v];
        memcpy(dims, of.dims, (size_t)of.rank * sizeof *dims);
        dims[axis_of(w, v)] = x->used ? x->rows
                                      : ot_max(1, w->p->rows * of.dims[axis_of(w, v)] /
                                                      w->p->flow->flow->extent);
        OT_TRY(ot_value_set_shape(w->g, v, of.rank, dims));
        if (x->used) OT_TRY(take_over(w, v, v));
    }
    return OT_OK;
}

/* ---- nodes ---- */

/* What node id reads as operand j. */
static ot_status operand(step_writer *w, ot_id id, uint32_t j, ot_id *out)
{
    const ot_id v = w->g->nodes[id].in[j];
    const step_read *r = &w->p->nodes[id].read[j];
    *out = v;
    if (v == OT_NONE) return OT_OK;
    if (!r->is_read) {
        ot_value *x = &w->g->values[v];
        if (w->p->values[v].used || x->init || x->is_input) return OT_OK;
        if (!x->known && !x->known_floats)
            return step_refuse(w->p, id, "an operand of it is computed of the extent");
        if ((*out = w->now[v]) != v) return OT_OK;
        const ot_tensor *t = ot_known_tensor(w->g->model->arena, x);
        OT_TRY(step_value_new(w, "step/known", ot_type_of(x), out));
        w->g->values[*out].init = t;
        w->g->values[*out].is_const = true;
        w->now[v] = *out;
        return t ? OT_OK : nomem(w);
    }
    const uint32_t axis = (uint32_t)axis_of(w, v);
    OT_TRY(step_cut(w, w->now[v], axis, base_of(w, v), r->from, out));
    return r->low || r->high ? step_outside(w, id, j, *out, out) : OT_OK;
}

/* Operands of the written node ([*n] in *list). */
static ot_status operands(step_writer *w, ot_id id, ot_id **list, uint32_t *n)
{
    const uint32_t n_in = w->g->nodes[id].n_in;
    const ot_adapted *how = &w->p->nodes[id].how;
    const uint32_t all = ot_adapted_room(how, n_in);
    ot_id *in = OT_NEW_N(w->p->a, ot_id, all + 1u);
    if (!in) return nomem(w);
    *list = in;
    *n = 0;
    for (uint32_t j = 0; j < all; j++) {
        const ot_operand *changed = ot_adapted_operand(how, j);
        if (!changed && j < n_in && how->drop && how->drop[j]) continue;
        ot_id *at = &in[(*n)++];
        *at = OT_NONE;
        if (changed && !changed->omit) {
            const ot_tensor *t = changed->tensor;
            OT_TRY(step_value_new(w, "step/operand",
                                  (ot_tensor_type){t->dtype, (int32_t)t->rank, t->dims}, at));
            w->g->values[*at].init = t;
            w->g->values[*at].is_const = true;
        } else if (!changed && j < n_in) {
            OT_TRY(operand(w, id, j, at));
        }
    }
    while (*n > 0 && in[*n - 1] == OT_NONE) (*n)--;
    return OT_OK;
}

/* Results of node id become rows of a step. */
static ot_status shape_results(step_writer *w, ot_id id)
{
    const step_node *x = &w->p->nodes[id];
    const ot_node n = w->g->nodes[id];
    for (uint32_t o = 0; o < n.n_out; o++) {
        const ot_id y = n.out[o];
        int64_t dims[OT_RANK_MAX];
        if (y == OT_NONE || axis_of(w, y) < 0) continue;
        ot_value *v = &w->g->values[y];
        memcpy(dims, v->dims, (size_t)v->rank * sizeof *dims);
        dims[axis_of(w, y)] = x->make.hi - x->make.lo;
        v->known = NULL;
        v->known_floats = NULL;
        v->proto = v->is_output ? v->proto : NULL;
        OT_TRY(ot_value_set_shape(w->g, y, v->rank, dims));
    }
    return OT_OK;
}

/* ConstantOfShape along the axis: of the rows that are read. */
static ot_status write_even(step_writer *w, ot_id id, const ot_node *was)
{
    const ot_id y = was->out[0];
    const ot_value v = w->g->values[y];
    ot_id shape;
    OT_TRY(step_ints(w, "shape", v.dims, v.rank, &shape));
    const ot_node_def def = {.op = was->op_type,
                             .name = was->name,
                             .in = {&shape, 1},
                             .out = {&y, 1},
                             .attrs = {was->attrs, was->n_attrs}};
    (void)id;
    return ot_node_new(w->g, &def) == OT_NONE ? nomem(w) : OT_OK;
}

static ot_status write_adapted(step_writer *w, ot_id id, const ot_node *was)
{
    const ot_adapted *how = &w->p->nodes[id].how;
    ot_id *in = NULL;
    uint32_t n_in = 0;
    if (how->kind == OT_ADAPT_FORWARD) {
        ot_id from, y = was->out[w->p->flow->s->lead[id]];
        OT_TRY(operand(w, id, how->forward, &from));
        ot_node_remove(w->g, id);
        return make(w, "Identity", (ot_id_list){&from, 1}, (ot_attr_list){0},
                    ot_type_of(&w->g->values[y]), &y);
    }
    OT_TRY(operands(w, id, &in, &n_in));
    ot_node_remove(w->g, id);
    const step_node *x = &w->p->nodes[id];
    const bool left_out = x->outside.kind == OT_OUTSIDE_LEFT_OUT &&
                          (x->read[0].low || x->read[0].high);
    const bool more = x->made.lo != x->make.lo || x->made.hi != x->make.hi || left_out;
    ot_id *out = ot_memdup(w->p->a, was->out, was->n_out * sizeof *out);
    if (!out) return nomem(w);
    for (uint32_t o = 0; o < was->n_out && more; o++)
        if (out[o] != OT_NONE && axis_of(w, out[o]) >= 0)
            OT_TRY(step_like(w, out[o], (uint32_t)axis_of(w, out[o]), x->made.hi - x->made.lo,
                             &out[o]));
    const ot_node_def def = {.op = how->op_type ? how->op_type : was->op_type,
                             .domain = was->domain,
                             .name = was->name,
                             .in = {in, n_in},
                             .out = {out, was->n_out},
                             .attrs = {how->attrs, how->n_attrs}};
    if (ot_node_new(w->g, &def) == OT_NONE) return nomem(w);
    if (left_out) return step_leave_out(w, id, was, out[0]);
    for (uint32_t o = 0; o < was->n_out; o++)
        if (out[o] != was->out[o])
            OT_TRY(step_cut_into(w, out[o], (uint32_t)axis_of(w, was->out[o]), x->made.lo, x->make,
                                 was->out[o]));
    return OT_OK;
}

static ot_status write_node(step_writer *w, ot_id id)
{
    const step_node *x = &w->p->nodes[id];
    const ot_node was = w->g->nodes[id];
    OT_TRY(shape_results(w, id));
    if (x->runs) {
        ot_id in;
        OT_TRY(operand(w, id, 0, &in));
        OT_TRY(step_run_node(w, id, in));
    } else if (w->p->flow->s->lead[id] == OT_NONE) {
        ot_node_remove(w->g, id);
        OT_TRY(write_even(w, id, &was));
    } else {
        OT_TRY(write_adapted(w, id, &was));
    }
    for (uint32_t o = 0; o < was.n_out; o++) {
        const ot_id y = was.out[o];
        if (y != OT_NONE && axis_of(w, y) >= 0 && w->p->values[y].used) OT_TRY(take_over(w, y, y));
    }
    return OT_OK;
}

/* ---- outputs ---- */

/* Rows of output y in a step, which are those of its node but where that makes more. */
static ot_win output_rows(const step_writer *w, ot_id y)
{
    const step_value *x = &w->p->values[y];
    return (ot_win){-x->out_lag, x->rows - x->out_lag};
}

/* An output that is made anew with more rows than a step has: the value that nodes make gets
 * another name. */
static ot_status cut_output(step_writer *w, uint32_t o)
{
    const ot_id y = w->g->outputs[o];
    const step_value *x = &w->p->values[y];
    const ot_win rows = output_rows(w, y);
    if (x->rows == 0 || !x->anew || (x->win.lo == rows.lo && x->win.hi == rows.hi)) return OT_OK;
    const ot_value v = w->g->values[y];
    int64_t dims[OT_RANK_MAX];
    ot_id all;
    OT_TRY(step_value_new(w, v.name, ot_type_of(&v), &all));
    OT_TRY(ot_replace_uses(w->g, y, all));
    w->g->outputs[o] = y;
    const ot_node maker = w->g->nodes[v.producer];
    ot_id *out = ot_memdup(w->p->a, maker.out, maker.n_out * sizeof *out);
    if (!out) return nomem(w);
    out[v.out_index] = all;
    ot_node_remove(w->g, v.producer);
    const ot_node_def def = {.op = maker.op_type,
                             .domain = maker.domain,
                             .name = maker.name,
                             .in = {maker.in, maker.n_in},
                             .out = {out, maker.n_out},
                             .attrs = {maker.attrs, maker.n_attrs}};
    if (ot_node_new(w->g, &def) == OT_NONE) return nomem(w);
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    dims[axis_of(w, y)] = x->rows;
    OT_TRY(ot_value_set_shape(w->g, y, v.rank, dims));
    ot_id into = y;
    return cut_into(w, all, (uint32_t)axis_of(w, y), x->win.lo, rows, &into);
}

/* Inputs and outputs as the facts have them. */
static ot_status tell_rows(step_writer *w, ot_id v, const char *valid, ot_step_rows *out)
{
    const ot_axis_flow *f = w->p->flow;
    const ot_id named = f->input[f->named];
    const int64_t num = f->flow->num[v] * f->flow->den[named],
                  den = f->flow->den[v] * f->flow->num[named], d = ot_gcd(num, den);
    const char *name = ot_strdup(w->g->model->arena, w->g->values[v].name);
    *out = (ot_step_rows){.name = name,
                          .axis = (uint32_t)axis_of(w, v),
                          .rows = w->g->values[v].dims[axis_of(w, v)],
                          .num = num / d,
                          .den = den / d,
                          .delay = w->p->values[v].out_lag,
                          .valid = valid};
    return name ? OT_OK : nomem(w);
}

static ot_status tell_inputs(step_writer *w, uint32_t n)
{
    ot_step_facts *x = w->facts;
    x->inputs = OT_NEW_N(w->g->model->arena, ot_step_rows, n + 1u);
    if (!x->inputs) return nomem(w);
    for (uint32_t k = 0; k < n; k++) {
        const ot_id v = w->g->inputs[k];
        if (axis_of(w, v) >= 0 && w->p->flow->s->reads[v])
            OT_TRY(tell_rows(w, v, NULL, &x->inputs[x->n_inputs++]));
    }
    return OT_OK;
}

/* n: outputs that the model had. */
static ot_status tell_outputs(step_writer *w, uint32_t n)
{
    ot_step_facts *x = w->facts;
    x->outputs = OT_NEW_N(w->g->model->arena, ot_step_rows, n + 1u);
    if (!x->outputs) return nomem(w);
    for (uint32_t o = 0; o < n; o++) {
        const ot_id y = w->g->outputs[o];
        const char *valid = NULL;
        ot_id told;
        if (w->p->values[y].rows == 0) continue;
        OT_TRY(cut_output(w, o));
        if (w->p->told[o]) {
            OT_TRY(step_tell(w, y, &told));
            valid = w->g->values[told].name;
        }
        OT_TRY(tell_rows(w, y, valid, &x->outputs[x->n_outputs++]));
        const step_value *v = &w->p->values[y];
        x->flush = ot_max(x->flush, ot_ceil_div(v->out_lag + v->most, v->rows));
    }
    return OT_OK;
}

/* ---- all of it ---- */

static ot_status remove_unused(step_writer *w, const ot_id *order, uint32_t n)
{
    ot_graph *g = w->g;
    for (uint32_t k = 0; k < n; k++)
        if (!w->p->nodes[order[k]].used && !g->nodes[order[k]].dead) ot_node_remove(g, order[k]);
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    for (ot_id v = 0; v < w->p->n_values; v++)
        if (g->values[v].init && !g->values[v].is_input) ot_value_drop_unread(g, v);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}

ot_status step_write_model(step_model *p, ot_step_facts *facts)
{
    step_writer w = {.p = p,
                     .g = p->g,
                     .facts = facts,
                     .now = OT_NEW_N(p->a, ot_id, p->n_values + 1u),
                     .made = ot_map_new(p->a)};
    const uint32_t n = p->g->n_order, n_inputs = p->g->n_inputs, n_outputs = p->g->n_outputs;
    ot_id *order = ot_memdup(p->a, p->g->order, n * sizeof *order);
    if (!w.now || !w.made || !order) return nomem(&w);
    for (ot_id v = 0; v < p->n_values; v++) w.now[v] = v;
    if (p->counts) OT_TRY(step_counters(&w));
    OT_TRY(take_inputs(&w, n_inputs));
    OT_TRY(tell_inputs(&w, n_inputs));
    for (uint32_t k = 0; k < n; k++)
        if (p->nodes[order[k]].used && p->nodes[order[k]].has_rows)
            OT_TRY(write_node(&w, order[k]));
    OT_TRY(tell_outputs(&w, n_outputs));
    return remove_unused(&w, order, n);
}
