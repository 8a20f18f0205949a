/* Where a node reads rows before the first or behind the last of a value. What a whole model has
 * there is the operator's own padding; a step has rows there that were made of nothing, or the
 * zeros of a state that was never written.
 */
#include "step_internal.h"

static const ot_row_map *map_of(const step_model *p, ot_id id, uint32_t j)
{
    const ot_row_map *maps = p->flow->flow->map[id];
    return maps && maps[j].p > 0 ? &maps[j] : NULL;
}

/* Rows before the first are zeros that nobody has written. */
static bool starts_with_zeros(const step_model *p, const step_node *x, ot_id v)
{
    const step_value *of = &p->values[v];
    return x->outside.kind == OT_OUTSIDE_VALUE && x->outside.operand == OT_NONE &&
           x->outside.number == 0 && !of->anew && of->lag == 0;
}

static void find_low(step_model *p, ot_id id, uint32_t j)
{
    const ot_row_map *m = map_of(p, id, j);
    step_node *x = &p->nodes[id];
    bool before = m->begin > 0;
    for (int64_t k = 0; k < m->p; k++) before |= m->lo[k] < 0;
    x->read[j].low = before && !x->runs && !starts_with_zeros(p, x, p->g->nodes[id].in[j]);
}

/* Rows of each value that outputs depend on, top [n_values] of them, for one extent of the
 * reference: which nodes read rows behind the last. */
static void find_high(step_model *p, const int64_t *made, int64_t *top)
{
    const ot_graph *g = p->g;
    memset(top, 0, (p->n_values + 1u) * sizeof *top);
    for (uint32_t o = 0; o < g->n_outputs; o++)
        if (p->values[g->outputs[o]].rows > 0) top[g->outputs[o]] = made[g->outputs[o]];
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_id id = g->order[k];
        const ot_node *n = &g->nodes[id];
        int64_t rows = 0;
        if (!p->nodes[id].used || !p->nodes[id].has_rows) continue;
        for (uint32_t o = 0; o < n->n_out; o++)
            if (n->out[o] != OT_NONE) rows = ot_max(rows, top[n->out[o]]);
        for (uint32_t j = 0; j < n->n_in && rows > 0; j++) {
            const ot_row_map *m = p->nodes[id].read[j].is_read ? map_of(p, id, j) : NULL;
            if (!m) continue;
            const ot_id v = n->in[j];
            const int64_t last = rows - 1, t = last / m->p, hi = m->q * t + m->hi[last - t * m->p];
            if (hi > made[v]) p->nodes[id].read[j].high = true;
            top[v] = ot_max(top[v], ot_min(hi, made[v]));
        }
    }
}

/* A single zero point, or none, that all real zeros are of. */
static bool has_one_zero(const step_model *p, const ot_node *n)
{
    int64_t elems;
    if (n->op != OT_OP_DequantizeLinear) return false;
    if (n->n_in < 3 || n->in[2] == OT_NONE) return true;
    return ot_value_elems(&p->g->values[n->in[2]], &elems) && elems == 1;
}

/* Zeros outside of operand j of node id, which DequantizeLinear makes, are zero points outside of
 * its own operand: nothing comes between it and its readers, which runtimes run as one. */
static void move_to_bytes(step_model *p, ot_id id, uint32_t j)
{
    step_node *x = &p->nodes[id];
    if (!(x->read[j].low || x->read[j].high)) return;
    const ot_id v = p->g->nodes[id].in[j], maker = p->g->values[v].producer;
    if (maker == OT_NONE || !p->values[v].anew) return;
    if (x->outside.kind != OT_OUTSIDE_VALUE || x->outside.operand != OT_NONE ||
        x->outside.number != 0 || !has_one_zero(p, &p->g->nodes[maker]))
        return;
    step_node *y = &p->nodes[maker];
    const ot_node *n = &p->g->nodes[maker];
    y->outside = (ot_outside){OT_OUTSIDE_VALUE, n->n_in > 2 ? n->in[2] : OT_NONE, 0};
    y->read[0].low |= x->read[j].low && !starts_with_zeros(p, y, n->in[0]);
    y->read[0].high |= x->read[j].high;
    x->read[j].low = x->read[j].high = false;
}

static ot_status check(const step_model *p, ot_id id)
{
    const step_node *x = &p->nodes[id];
    bool any = false;
    for (uint32_t j = 0; j < p->g->nodes[id].n_in; j++) any |= x->read[j].low || x->read[j].high;
    if (any && x->outside.kind == OT_OUTSIDE_UNKNOWN)
        return step_refuse(p, id, "what it takes rows outside of its operand for is not known");
    return OT_OK;
}

ot_status step_find_borders(step_model *p)
{
    const ot_graph *g = p->g;
    int64_t *top = OT_NEW_N(p->a, int64_t, p->n_values + 1u);
    ot_id *with = OT_NEW_N(p->a, ot_id, g->n_order + 1u);
    uint32_t n = 0;
    if (!top || !with) return ot_fail_nomem(p->m->diag);
    for (uint32_t k = 0; k < g->n_order; k++)
        if (p->nodes[g->order[k]].used && p->nodes[g->order[k]].has_rows) with[n++] = g->order[k];
    for (uint32_t k = 0; k < n; k++) {
        step_node *x = &p->nodes[with[k]];
        x->outside = ot_access_outside(&g->nodes[with[k]]);
        for (uint32_t j = 0; j < g->nodes[with[k]].n_in; j++)
            if (x->read[j].is_read && map_of(p, with[k], j)) find_low(p, with[k], j);
        if (!x->runs || g->nodes[with[k]].op != OT_OP_CumSum) continue;
        x->outside = (ot_outside){OT_OUTSIDE_VALUE, OT_NONE, 0}; /* sums begin with the first row */
        x->read[0].low = p->values[g->nodes[with[k]].out[0]].lag > 0;
    }
    for (int64_t r = 0; r < p->flow->flow->align; r++)
        if (p->flow->made[r]) find_high(p, p->flow->made[r], top);
    for (uint32_t k = n; k-- > 0;)
        for (uint32_t j = 0; j < g->nodes[with[k]].n_in; j++) move_to_bytes(p, with[k], j);
    for (uint32_t k = 0; k < n; k++) OT_TRY(check(p, with[k]));
    return OT_OK;
}
