/* Why regions end where they do, and what stayed untiled.
 *
 *     x --[ Conv  Relu ]--> y --> Softmax        y is cut along its rows; Softmax along them reads
 *           region, rows                         all: it ends the region
 *
 *     Expand --> x --[ Mul ... ]                 x is cut along its rows, of which Expand's operand
 *                     region, rows               has one: the region cannot begin before it
 *
 * A reason is told of a node only where it is true of the axes that the region cuts.
 */
#include "search.h"

/* ---- one node beside a region ---- */

typedef struct neighbour {
    const ot_seq *s;
    int8_t *in_axis, *out_axis; /* of the node that has most operands, most results */
} neighbour;

static ot_status neighbour_open(const ot_seq *s, neighbour *x)
{
    uint32_t n_in = 0, n_out = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_node *n = &s->g->nodes[s->node[k]];
        if (n->n_in > n_in) n_in = n->n_in;
        if (n->n_out > n_out) n_out = n->n_out;
    }
    *x = (neighbour){s, OT_NEW_N(s->arena, int8_t, n_in + 1u),
                     OT_NEW_N(s->arena, int8_t, n_out + 1u)};
    return x->in_axis && x->out_axis ? OT_OK : ot_fail_nomem(s->g->model->diag);
}

/* Reasons that say nothing of why an operand's axis is read whole. */
static bool is_beside_the_point(ot_why why)
{
    return why == OT_WHY_NONE || why == OT_WHY_CONV_CHANNELS || why == OT_WHY_EXTENT_ONE ||
           why == OT_WHY_NO_INPUT_VARIES || why == OT_WHY_NO_OPERAND_VARIES;
}

/* Why no piece of n is made of a piece of its operand v along `axis`; OT_WHY_NONE: one is. */
static ot_why why_read_whole(const neighbour *x, const ot_node *n, ot_id v, int32_t axis)
{
    const ot_graph *g = x->s->g;
    ot_why found = OT_WHY_NONE;
    for (uint32_t o = 0; o < n->n_out; o++) {
        const ot_value *out = n->out[o] == OT_NONE ? NULL : &g->values[n->out[o]];
        if (!out || out->rank < 0) continue;
        const int32_t same = axis + out->rank - g->values[v].rank;
        for (int32_t a = 0; a < out->rank; a++) {
            ot_why why;
            if (ot_access_axis(g, n, o, (uint32_t)a, x->in_axis, x->out_axis, &why)) {
                for (uint32_t k = 0; k < n->n_in; k++)
                    if (n->in[k] == v && x->in_axis[k] == axis) return OT_WHY_NONE;
            } else if (a == same && !found && !is_beside_the_point(why)) {
                found = why;
            }
        }
    }
    return found ? found : OT_WHY_WHOLE_ENDS;
}

/* Why n's result v is not made in pieces along `axis`; OT_WHY_NONE: it can be. */
static ot_why why_made_whole(const neighbour *x, const ot_node *n, ot_id v, int32_t axis)
{
    ot_why why;
    for (uint32_t o = 0; o < n->n_out; o++)
        if (n->out[o] == v)
            return ot_access_axis(x->s->g, n, o, (uint32_t)axis, x->in_axis, x->out_axis, &why)
                       ? OT_WHY_NONE
                       : why;
    return OT_WHY_NONE;
}

/* The first reason over the axes of v that r cuts; OT_WHY_NONE: it is cut along none, or n could
 * be cut along them. */
static ot_why why_not_inside(const neighbour *x, const ot_region *r, const ot_rvalue *v,
                             const ot_node *n, bool reads)
{
    for (uint32_t d = 0; d < r->n_dims; d++) {
        if (v->axis[d] < 0) continue;
        const ot_why why = reads ? why_read_whole(x, n, v->value, v->axis[d])
                                 : why_made_whole(x, n, v->value, v->axis[d]);
        if (why) return why;
    }
    return OT_WHY_NONE;
}

static bool in_region(const ot_region *r, ot_id node)
{
    for (uint32_t k = 0; k < r->n_nodes; k++)
        if (r->nodes[k].node == node) return true;
    return false;
}

/* ---- barriers ---- */

static bool is_listed(const ot_plan *p, ot_id node)
{
    for (uint32_t k = 0; k < p->n_barriers; k++)
        if (p->barriers[k].node == node) return true;
    return false;
}

/* Operators that read whole axes by what they are. */
static bool is_reducing(const ot_node *n)
{
    const ot_access_kind a = ot_op_access(n->op);
    return a == OT_ACC_GLOBALPOOL || a == OT_ACC_REDUCE || a == OT_ACC_NORM || a == OT_ACC_SOFTMAX;
}

/* Why n ends the region before it, whose cut axes it reads whole; the form of the tiles may decide
 * that. */
static ot_why end_reason(const ot_seq *s, const ot_node *n)
{
    bool reduced[OT_RANK_MAX];
    bool pool = ot_op_access(n->op) == OT_ACC_GLOBALPOOL,
         in_parts = !s->sums && ot_access_sum(s->g, n, reduced) != OT_SUM_NONE;
    if (s->sums && s->cancels[s->pos[n - s->g->nodes]]) return OT_WHY_SUM_CANCELS;
    if (pool && in_parts) return OT_WHY_POOL_ENDS_ENGINE;
    if (pool) return OT_WHY_POOL_ENDS;
    return in_parts ? OT_WHY_WHOLE_ENDS_ENGINE : OT_WHY_WHOLE_ENDS;
}

ot_status ot_region_ends_list(const ot_seq *s, ot_plan *p)
{
    const ot_graph *g = s->g;
    const size_t cap = s->n + 1u;
    neighbour x;
    OT_TRY(neighbour_open(s, &x));
    for (uint32_t k = 0; k < p->n_regions; k++) {
        const ot_region *r = &p->regions[k];
        for (uint32_t j = r->n_inputs; j < r->n_values; j++) {
            const ot_value *v = &g->values[r->values[j].value];
            for (uint32_t u = 0; r->values[j].is_output && u < v->n_uses; u++) {
                const ot_id id = v->uses[u];
                const ot_node *n = &g->nodes[id];
                if (!is_reducing(n) || s->pos[id] == OT_NONE || p->n_barriers == cap ||
                    is_listed(p, id) || in_region(r, id) || /* it reduces tile by tile */
                    !why_not_inside(&x, r, &r->values[j], n, true))
                    continue;
                p->barriers[p->n_barriers++] = (ot_barrier){id, {end_reason(s, n), 0}};
            }
        }
    }
    return OT_OK;
}

bool ot_splits_fusion(const ot_seq *s, uint32_t first)
{
    if (s->inside[first]) return true;
    if (first >= s->n || !s->fused[first]) return false;
    const ot_node *n = &s->g->nodes[s->node[first]];
    if (n->op == OT_OP_DequantizeLinear) return false; /* it joins what follows */
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && s->act[n->in[k]] && s->def[n->in[k]] != OT_NONE &&
            s->def[n->in[k]] < first && s->g->values[n->in[k]].n_uses == 1 &&
            s->head[s->def[n->in[k]]] == s->head[first])
            return true;
    return false;
}

/* ---- refusals ---- */

/* whys[node]: why it is in no region beside it. */
static ot_status find_edges(const ot_seq *s, const ot_plan *p, const bool *taken, ot_why *whys)
{
    const ot_graph *g = s->g;
    neighbour x;
    OT_TRY(neighbour_open(s, &x));
    for (uint32_t k = 0; k < p->n_regions; k++) {
        const ot_region *r = &p->regions[k];
        for (uint32_t j = 0; j < r->n_values; j++) {
            const ot_rvalue *rv = &r->values[j];
            const ot_value *v = &g->values[rv->value];
            const ot_id maker = j < r->n_inputs ? v->producer : OT_NONE;
            if (maker != OT_NONE && s->pos[maker] != OT_NONE && !taken[maker] && !whys[maker])
                whys[maker] = why_not_inside(&x, r, rv, &g->nodes[maker], false);
            for (uint32_t u = 0; rv->is_output && u < v->n_uses; u++) {
                const ot_id id = v->uses[u];
                if (s->pos[id] != OT_NONE && !taken[id] && !whys[id])
                    whys[id] = why_not_inside(&x, r, rv, &g->nodes[id], true);
            }
        }
    }
    return OT_OK;
}

ot_status ot_refusals_list(const ot_seq *s, const ot_plan_options *o, ot_plan *p)
{
    bool *taken = OT_NEW_N(s->arena, bool, s->g->n_nodes + 1u);
    ot_why *whys = OT_NEW_N(s->arena, ot_why, s->g->n_nodes + 1u);
    if (!taken || !whys) return ot_fail_nomem(s->g->model->diag);
    for (uint32_t k = 0; k < p->n_regions; k++)
        for (uint32_t i = 0; i < p->regions[k].n_nodes; i++)
            taken[p->regions[k].nodes[i].node] = true;
    for (uint32_t k = 0; k < p->n_barriers; k++) taken[p->barriers[k].node] = true;
    for (uint32_t k = 0; k < p->n_refused; k++)
        for (uint32_t i = 0; i < p->refused[k].n; i++) taken[p->refused[k].nodes[i]] = true;
    OT_TRY(find_edges(s, p, taken, whys));
    ot_why rest = o->goal == OT_GOAL_MEMORY ? OT_WHY_PEAK_WITHIN_SLOWDOWN : OT_WHY_NOT_FASTER;
    for (uint32_t k = 0; k < s->n;) {
        const uint32_t from = k;
        const ot_why why = whys[s->node[k]];
        if (taken[s->node[k++]]) continue;
        while (!why && k < s->n && !taken[s->node[k]] && !whys[s->node[k]]) k++;
        ot_id *nodes = ot_memdup(p->arena, s->node + from, (k - from) * sizeof *nodes);
        if (!nodes) return ot_fail_nomem(s->g->model->diag);
        p->refused[p->n_refused++] = (ot_refusal){nodes, k - from, {why ? why : rest, 0}};
    }
    return OT_OK;
}
