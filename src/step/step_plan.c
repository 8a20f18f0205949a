/* Which rows each node makes in a step, and which it reads.
 *
 *   forwards    lag: how far a value is behind its inputs. As little as its operands allow, a whole
 *               number of periods of its node's relation, so that every step cuts it alike
 *   backwards   the rows that a node makes, [-lag, rows - lag), give the rows that it reads; of
 *               each value the hull of what is read is at hand, and what of that was made in steps
 *               before is kept
 *
 * Padding is made anew in each step, of rows that are kept: so it lags behind nothing, and a causal
 * convolution behind it has the input's newest row.
 */
#include "step_internal.h"

#define STEPS_MAX (1 << 24) /* that the farthest row lies away */

ot_status step_refuse(const step_model *p, ot_id node, const char *why)
{
    const ot_node *n = &p->g->nodes[node];
    const char *name = n->name[0] || n->n_out == 0 || n->out[0] == OT_NONE
                           ? n->name
                           : p->g->values[n->out[0]].name;
    return ot_fail(p->m->diag, OT_E_INPUT, "cannot be written as a step: node '%.300s' (%.60s): %s",
                   name, n->op_type, why);
}

static const ot_row_map *map_of(const step_model *p, ot_id id, uint32_t j)
{
    const ot_row_map *maps = p->flow->flow->map[id];
    return maps && maps[j].p > 0 ? &maps[j] : NULL;
}

/* ---- what is used ---- */

static bool follows(const step_model *p, ot_id v)
{
    const ot_spread *s = p->flow->s;
    return s->axis[v] >= 0 && s->reads[v] && !s->behind[v] && p->flow->flow->num[v] > 0;
}

/* What keeps output y from being made row by row: the first barrier that it depends on. */
static ot_status refuse_output(const step_model *p, ot_id y)
{
    const ot_graph *g = p->flow->model->graph;
    const ot_spread *s = p->flow->s;
    bool *above = OT_NEW_N(p->a, bool, g->n_values + 1u);
    bool *node = OT_NEW_N(p->a, bool, g->n_nodes + 1u);
    if (!above || !node) return ot_fail_nomem(p->m->diag);
    above[y] = true;
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_node *n = &g->nodes[g->order[k]];
        bool any = false;
        for (uint32_t o = 0; o < n->n_out; o++) any |= n->out[o] != OT_NONE && above[n->out[o]];
        node[g->order[k]] = any;
        for (uint32_t j = 0; j < n->n_in && any; j++)
            if (n->in[j] != OT_NONE) above[n->in[j]] = true;
        for (uint32_t j = 0; j < n->n_captured && any; j++) above[n->captured[j]] = true;
    }
    for (uint32_t k = 0; k < s->n_barriers; k++)
        if (node[s->barriers[k].node])
            return step_refuse(p, s->barriers[k].node, s->barriers[k].why);
    if (p->g->values[y].producer == OT_NONE)
        return ot_fail(p->m->diag, OT_E_INPUT, "output '%.300s' has no rows of this axis",
                       p->g->values[y].name);
    return step_refuse(p, p->g->values[y].producer, "its result does not follow the axis");
}

/* Node id, some result of which is used: has it rows, and may it be used so? */
static ot_status use_node(step_model *p, ot_id id)
{
    const ot_spread *s = p->flow->s;
    const ot_node *n = &p->g->nodes[id];
    step_node *x = &p->nodes[id];
    x->used = true;
    for (uint32_t o = 0; o < n->n_out; o++) {
        const ot_id y = n->out[o];
        if (y == OT_NONE || !p->values[y].used) continue;
        if (s->axis[y] >= 0)
            x->has_rows = true;
        else if (s->reads[y] || s->sized[y])
            return step_refuse(p, id, "one of its results needs all rows, or their number");
    }
    x->runs = x->has_rows && ot_spread_runs(s, n);
    x->read = OT_NEW_N(p->a, step_read, n->n_in + 1u);
    if (!x->read) return ot_fail_nomem(p->m->diag);
    for (uint32_t j = 0; j < n->n_in; j++) {
        const ot_id v = n->in[j];
        if (v == OT_NONE) continue;
        x->read[j].is_read = x->has_rows && s->axis[v] >= 0 && s->lead[id] != OT_NONE &&
                             s->in_axis[id][j] >= 0;
        /* operands that say shapes are replaced in the node for a step */
        if (x->read[j].is_read || !(s->reads[v] || s->sized[v] || s->axis[v] >= 0))
            p->values[v].used = true;
    }
    for (uint32_t j = 0; j < n->n_captured; j++) p->values[n->captured[j]].used = true;
    return OT_OK;
}

static ot_status find_used(step_model *p)
{
    ot_graph *g = p->g;
    const ot_spread *s = p->flow->s;
    for (uint32_t o = 0; o < g->n_outputs; o++) {
        const ot_id y = g->outputs[o];
        if (!follows(p, y) && (s->reads[y] || s->sized[y] || s->behind[y]))
            return refuse_output(p, y);
        p->values[y].used = true;
    }
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_node *n = &g->nodes[g->order[k]];
        bool any = false;
        for (uint32_t o = 0; o < n->n_out; o++)
            any |= n->out[o] != OT_NONE && p->values[n->out[o]].used;
        if (any) OT_TRY(use_node(p, g->order[k]));
    }
    return OT_OK;
}

/* ---- lags ---- */

/* Rows of v that the reference's `rows` rows are. */
static int64_t scaled(const step_model *p, ot_id v, int64_t rows)
{
    return rows * p->flow->flow->num[v] / p->flow->flow->den[v];
}

/* The least lag with which v is not ahead of itself: rows that the model would not have if the
 * input ended at the next extent that it takes, and rows that read mirrored ones. */
static int64_t least_lag(const step_model *p, ot_id v, int64_t since)
{
    const ot_flow *f = p->flow->flow;
    const int64_t all = f->extent - f->extent % f->align + f->align;
    int64_t lag = 0;
    for (int64_t r = 0; r < f->align; r++) /* the input may end with any of these rows more */
        if (p->flow->made[r]) lag = ot_max(lag, scaled(p, v, all) - p->flow->made[r][v]);
    if (since > 0) lag = ot_max(lag, ot_ceil_div(since * f->num[v], f->den[v]) - 1);
    return lag;
}

/* What operand j of node id makes the node's results lag. y: one of them. */
static void lag_behind(const step_model *p, ot_id id, uint32_t j, int64_t *lag, int64_t *since,
                       int64_t *period)
{
    const ot_id v = p->g->nodes[id].in[j];
    const ot_row_map *m = map_of(p, id, j);
    const ot_flow *f = p->flow->flow;
    const int64_t behind = p->values[v].lag;
    *lag = ot_max(*lag, m->p * ot_ceil_div(behind + m->hi[m->p - 1] - m->q, m->q));
    *since = ot_max(*since, p->values[v].since);
    if (m->begin > 0)
        *since = ot_max(*since, ot_ceil_div((m->begin + behind) * f->den[v], f->num[v]));
    *period = *period / ot_gcd(*period, m->p) * m->p;
}

/* Padding, so that it is not late; and real numbers of quantised ones, which runtimes make a part
 * of who reads them: what is kept are the bytes. */
static bool is_made_anew(const ot_graph *g, const ot_node *n)
{
    return ot_op_access(n->op) == OT_ACC_PAD ||
           (n->op == OT_OP_DequantizeLinear && n->n_out == 1 && !g->values[n->out[0]].is_output);
}

static void set_lags(step_model *p, ot_id id)
{
    const ot_node *n = &p->g->nodes[id];
    const bool anew = is_made_anew(p->g, n);
    int64_t lag = INT64_MIN, since = 0, period = 1;
    for (uint32_t j = 0; j < n->n_in; j++)
        if (p->nodes[id].read[j].is_read && map_of(p, id, j))
            lag_behind(p, id, j, &lag, &since, &period);
    for (uint32_t o = 0; o < n->n_out && !anew; o++)
        if (n->out[o] != OT_NONE && p->values[n->out[o]].used)
            lag = ot_max(lag, least_lag(p, n->out[o], since));
    for (uint32_t o = 0; o < n->n_out; o++) {
        if (n->out[o] == OT_NONE) continue;
        step_value *y = &p->values[n->out[o]];
        y->anew = anew;
        y->since = anew ? since : 0;
        y->lag = anew ? lag : ot_ceil_div(lag, period) * period;
    }
}

static ot_status find_lags(step_model *p)
{
    const ot_spread *s = p->flow->s;
    const ot_flow *f = p->flow->flow;
    for (ot_id v = 0; v < p->n_values; v++) {
        if (!p->values[v].used || s->axis[v] < 0 || f->num[v] <= 0) continue;
        p->values[v].rows = scaled(p, v, p->rows);
        if (p->values[v].rows * f->den[v] != p->rows * f->num[v] || p->values[v].rows < 1)
            return p->g->values[v].producer == OT_NONE
                       ? ot_fail(p->m->diag, OT_E_INPUT,
                                 "input '%.300s' has no whole rows in a step", p->g->values[v].name)
                       : step_refuse(p, p->g->values[v].producer,
                                     "it makes no whole rows in a step");
    }
    for (uint32_t k = 0; k < p->g->n_order; k++) {
        const ot_id id = p->g->order[k];
        const ot_node *n = &p->g->nodes[id];
        if (!p->nodes[id].used || !p->nodes[id].has_rows) continue;
        bool reads = false;
        for (uint32_t j = 0; j < n->n_in; j++)
            reads |= p->nodes[id].read[j].is_read && map_of(p, id, j);
        if (reads) set_lags(p, id);
        for (uint32_t o = 0; o < n->n_out && !reads; o++)
            if (n->out[o] != OT_NONE)
                p->values[n->out[o]].anew = true; /* rows that are all alike */
    }
    return OT_OK;
}

/* ---- windows ---- */

static void widen(ot_win *a, ot_win b)
{
    if (b.lo >= b.hi) return;
    *a = a->lo >= a->hi ? b : (ot_win){ot_min(a->lo, b.lo), ot_max(a->hi, b.hi)};
}

/* Rows of the operand that rows `make` of the result are made of. */
static ot_win back(const ot_row_map *m, ot_win make)
{
    const int64_t t = ot_floor_div(make.lo, m->p), u = ot_floor_div(make.hi - 1, m->p);
    return (ot_win){m->q * t + m->lo[make.lo - t * m->p], m->q * u + m->hi[make.hi - 1 - u * m->p]};
}

/* Rows that are repeated or mirrored lie up to as far inside as those that they stand for lie
 * outside. `over`: rows behind the last that the last row of the result reads. */
static ot_win with_mirrored(const step_model *p, ot_id id, uint32_t j, ot_win need)
{
    const ot_node *n = &p->g->nodes[id];
    const ot_row_map *m = map_of(p, id, j);
    const ot_graph *large = p->flow->model->graph;
    const ot_id v = n->in[j], y = n->out[p->flow->s->lead[id]];
    const int64_t made = large->values[y].dims[p->flow->s->axis[y]],
                  extent = large->values[v].dims[p->flow->s->axis[v]];
    const int64_t over = ot_max(0, back(m, (ot_win){made - 1, made}).hi - extent);
    need.lo -= over + ot_max(m->end, 1) - 1;
    need.hi = ot_max(need.hi, p->values[v].rows - p->values[v].lag);
    return need;
}

static ot_status read_rows(step_model *p, ot_id id, uint32_t j)
{
    step_node *x = &p->nodes[id];
    step_read *r = &x->read[j];
    const ot_id v = p->g->nodes[id].in[j];
    step_value *of = &p->values[v];
    const ot_row_map *m = map_of(p, id, j);
    r->need = back(m, x->make);
    if (x->runs) r->need = x->make;
    r->from = r->need;
    if ((r->low || r->high) &&
        (x->outside.kind == OT_OUTSIDE_EDGE || x->outside.kind == OT_OUTSIDE_REFLECT))
        r->from = with_mirrored(p, id, j, r->need);
    if (r->need.hi > of->rows - of->lag)
        return step_refuse(p, id, "it reads rows that are not there yet");
    widen(&of->win, r->from);
    return OT_OK;
}

static ot_status find_windows(step_model *p)
{
    const ot_graph *g = p->g;
    for (ot_id v = 0; v < p->n_values; v++) {
        step_value *x = &p->values[v];
        if (x->used && x->rows > 0 && !x->anew) x->win = (ot_win){-x->lag, x->rows - x->lag};
    }
    for (uint32_t o = 0; o < g->n_outputs; o++) {
        step_value *y = &p->values[g->outputs[o]];
        if (y->rows == 0) continue;
        y->out_lag = y->anew ? ot_max(y->lag, least_lag(p, g->outputs[o], y->since)) : y->lag;
        widen(&y->win, (ot_win){-y->out_lag, y->rows - y->out_lag});
    }
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_id id = g->order[k];
        const ot_node *n = &g->nodes[id];
        step_node *x = &p->nodes[id];
        if (!x->used || !x->has_rows) continue;
        for (uint32_t o = 0; o < n->n_out; o++) {
            const step_value *y = n->out[o] == OT_NONE ? NULL : &p->values[n->out[o]];
            if (!y || !y->used) continue;
            widen(&x->make, y->anew ? y->win : (ot_win){-y->lag, y->rows - y->lag});
        }
        for (uint32_t j = 0; j < n->n_in; j++)
            if (x->read[j].is_read && map_of(p, id, j)) OT_TRY(read_rows(p, id, j));
    }
    return OT_OK;
}

/* So far from both ends that no node at this step reads rows outside. */
static ot_status find_place(step_model *p)
{
    int64_t far = 1;
    for (ot_id v = 0; v < p->n_values; v++) {
        const step_value *x = &p->values[v];
        if (!x->used || x->rows == 0) continue;
        far = ot_max(far, ot_ceil_div(ot_max(-x->win.lo, x->win.hi), x->rows));
    }
    p->place = far + 3;
    if (far > STEPS_MAX)
        return ot_fail(p->m->diag, OT_E_INPUT, "rows are read too many steps later");
    return OT_OK;
}

ot_status step_plan_rows(step_model *p)
{
    p->values = OT_NEW_N(p->a, step_value, p->n_values + 1u);
    p->nodes = OT_NEW_N(p->a, step_node, p->g->n_nodes + 1u);
    if (!p->values || !p->nodes) return ot_fail_nomem(p->m->diag);
    OT_TRY(find_used(p));
    OT_TRY(find_lags(p));
    OT_TRY(step_find_borders(p));
    OT_TRY(find_windows(p));
    return find_place(p);
}

/* ---- nodes ---- */

static ot_win moved(ot_win w, int64_t by) { return (ot_win){w.lo + by, w.hi + by}; }

/* Ask the slice relation for what was planned: it must say the same. */
static ot_status ask_node(step_model *p, ot_id id)
{
    const ot_spread *s = p->flow->s;
    const ot_node *n = &p->g->nodes[id];
    step_node *x = &p->nodes[id];
    const ot_id y = n->out[s->lead[id]];
    const ot_win rows = moved(x->make, p->place * p->values[y].rows);
    ot_why why = OT_WHY_NONE;
    x->tile = (ot_op_tile){.need = rows, .in = OT_NEW_N(p->a, ot_win, n->n_in + 1u)};
    if (!x->tile.in) return ot_fail_nomem(p->m->diag);
    if (!ot_access_window(p->g, n, s->lead[id], (uint32_t)s->axis[y], &x->tile, &why))
        return step_refuse(p, id, ot_reason_sentence(why));
    x->made = moved(x->tile.made, -p->place * p->values[y].rows);
    bool same = true;
    for (uint32_t j = 0; j < n->n_in && same; j++) {
        step_read *r = &x->read[j];
        if (!r->is_read) continue;
        step_value *v = &p->values[n->in[j]];
        const ot_win in = moved(x->tile.in[j], -p->place * v->rows);
        if (map_of(p, id, j)) {
            same = in.lo == r->need.lo && in.hi == r->need.hi;
        } else {
            r->need = r->from = in;
            widen(&v->win, in);
        }
    }
    if (!same) return step_refuse(p, id, "a step would cut it elsewhere");
    const ot_tile_axis axis = {s->lead[id], (uint32_t)s->axis[y], &x->tile};
    return ot_tile_adapt(p->g, n, &axis, 1, p->m->arena, &x->how);
}

ot_status step_plan_nodes(step_model *p)
{
    const ot_graph *g = p->g;
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_id id = g->order[k];
        const ot_node *n = &g->nodes[id];
        step_node *x = &p->nodes[id];
        if (!x->used || !x->has_rows) continue;
        for (uint32_t o = 0; o < n->n_out; o++) { /* of rows that are all alike */
            const step_value *y = n->out[o] == OT_NONE ? NULL : &p->values[n->out[o]];
            if (y && y->used && y->anew) widen(&x->make, y->win);
        }
        if (x->runs || (p->flow->s->lead[id] == OT_NONE && n->op == OT_OP_ConstantOfShape))
            continue;
        if (p->flow->s->lead[id] == OT_NONE)
            return step_refuse(p, id, "what it makes of the extent has no rows of its own");
        OT_TRY(ask_node(p, id));
    }
    return OT_OK;
}
