/* The planner's view of a graph: nodes worth planning in topological order, sizes, live ranges.
 *
 *   order:  Constant  Conv  Shape  Relu  Gather  Reshape  MatMul
 *   seq:              Conv         Relu          Reshape  MatMul      (static nodes left out)
 */
#include "sequence.h"

#include "lifetime/lifetime.h"
#include "ops/quirks.h"

static ot_status fill_ranges(ot_seq *s)
{
    ot_graph *g = s->g;
    ot_value_lifetimes lives;
    uint32_t *step_of = OT_NEW_N(s->arena, uint32_t, g->n_nodes + 1u);
    if (!step_of) return OT_E_NOMEM;
    memcpy(step_of, s->pos, g->n_nodes * sizeof *step_of);
    for (uint32_t k = 0; k < g->n_order; k++) { /* what others read is kept alive, like an output */
        const ot_id node = g->order[k];
        if (step_of[node] == OT_NONE && !ot_static_foldable(g, &g->nodes[node]))
            step_of[node] = s->n;
    }
    OT_TRY(ot_value_lifetimes_of(g, step_of, s->n, s->arena, &lives));
    s->last = lives.last;
    s->def = lives.made;
    for (ot_id v = 0; v < g->n_values; v++) {
        const ot_value *x = &g->values[v];
        if (s->def[v] == s->n) s->def[v] = OT_NONE;
        if (!ot_value_bytes(x, &s->bytes[v])) s->bytes[v] = 0;
        if (!ot_value_elems(x, &s->elems[v])) s->elems[v] = 0;
        s->act[v] = s->def[v] != OT_NONE ||
                    (x->producer == OT_NONE && !x->is_const && (!x->init || x->overridable));
    }
    return OT_OK;
}

/* The value, followed backwards through operators that only move data, is a Sigmoid's. */
static bool from_sigmoid(const ot_graph *g, ot_id v)
{
    for (uint32_t hops = 0; hops < 12 && v != OT_NONE && g->values[v].producer != OT_NONE; hops++) {
        const ot_node *n = &g->nodes[g->values[v].producer];
        if (n->op == OT_OP_Sigmoid) return true;
        ot_access_kind a = ot_op_access(n->op);
        bool moves = a == OT_ACC_RESHAPE || a == OT_ACC_TRANSPOSE || a == OT_ACC_CONCAT ||
                     a == OT_ACC_SLICE || a == OT_ACC_GATHER || a == OT_ACC_ROWS ||
                     n->op == OT_OP_Identity || n->op == OT_OP_Cast || n->op == OT_OP_Mul;
        if (!moves || n->n_in == 0) return false;
        v = n->in[0];
    }
    return false;
}

static bool alloc_tables(ot_seq *s)
{
    ot_arena *a = s->arena;
    const ot_graph *g = s->g;
    s->node = OT_NEW_N(a, ot_id, g->n_order + 1u);
    s->pos = OT_NEW_N(a, uint32_t, g->n_nodes + 1u);
    s->act = OT_NEW_N(a, bool, g->n_values + 1u);
    s->bytes = OT_NEW_N(a, int64_t, g->n_values + 1u);
    s->held = OT_NEW_N(a, int64_t, g->n_values + 1u);
    s->elems = OT_NEW_N(a, int64_t, g->n_values + 1u);
    s->odd = OT_NEW_N(a, bool, g->n_order + 1u);
    s->cancels = OT_NEW_N(a, bool, g->n_order + 1u);
    s->fused = OT_NEW_N(a, bool, g->n_order + 1u);
    s->head = OT_NEW_N(a, uint32_t, g->n_order + 1u);
    s->tail = OT_NEW_N(a, uint32_t, g->n_order + 1u);
    s->strided = OT_NEW_N(a, uint32_t, g->n_order + 1u);
    s->on_bytes = OT_NEW_N(a, bool, g->n_order + 1u);
    s->inside = OT_NEW_N(a, bool, g->n_order + 2u);
    s->wino_room = OT_NEW_N(a, int64_t, g->n_order + 1u);
    s->time = OT_NEW_N(a, double, g->n_order + 2u);
    s->traffic = OT_NEW_N(a, double, g->n_order + 2u);
    s->macs = OT_NEW_N(a, double, g->n_order + 1u);
    s->extra = OT_NEW_N(a, double, g->n_order + 1u);
    s->blocked = OT_NEW_N(a, bool, g->n_values + 1u);
    s->hands_blocks = OT_NEW_N(a, bool, g->n_values + 1u);
    s->work = OT_NEW_N(a, double, g->n_order + 1u);
    s->live = OT_NEW_N(a, int64_t, g->n_order + 1u);
    s->cut = OT_NEW_N(a, int64_t, g->n_order + 2u);
    return s->node && s->pos && s->act && s->bytes && s->held && s->elems && s->odd && s->cancels &&
           s->fused && s->head && s->tail && s->strided && s->on_bytes && s->inside &&
           s->wino_room && s->time && s->traffic && s->macs && s->extra && s->blocked &&
           s->hands_blocks && s->work && s->live && s->cut;
}

/* What reads an odd node is odd. */
static void mark_readers_odd(ot_seq *s)
{
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_node *n = &s->g->nodes[s->node[k]];
        for (uint32_t i = 0; i < n->n_in && !s->odd[k]; i++)
            s->odd[k] = n->in[i] != OT_NONE && s->def[n->in[i]] != OT_NONE &&
                        s->odd[s->def[n->in[i]]];
    }
}

/* Nodes on whose shapes runtimes and checkers disagree, with everything before and after them:
 * new shapes written there would be refused somewhere. Spectral nodes, ceil_mode pools at an
 * unclear border, and Resizes whose extent is a matter of rounding. */
static void mark_odd(ot_seq *s)
{
    const ot_graph *g = s->g;
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_node *n = &g->nodes[s->node[k]];
        s->odd[k] = ot_quirk_hits(OT_QUIRK_SPECTRAL_SHAPE, OT_BY_ALL, n->op_type) ||
                    (ot_quirk_concerns(OT_QUIRK_CEIL_POOL_SHAPE, OT_BY_ALL) &&
                     ot_pool_is_odd(g, n)) ||
                    (ot_quirk_concerns(OT_QUIRK_RESIZE_FLOOR, OT_BY_ALL) && ot_resize_is_odd(g, n));
    }
    mark_readers_odd(s);
    for (uint32_t k = s->n; k-- > 0;) {
        if (!s->odd[k]) continue;
        const ot_node *n = &g->nodes[s->node[k]];
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i] != OT_NONE && s->def[n->in[i]] != OT_NONE) s->odd[s->def[n->in[i]]] = true;
    }
}

/* requires ORDER, USES, SHAPES. keeps all. Fails: OT_E_NOMEM. */
ot_status ot_seq_build(ot_graph *g, ot_arena *a, ot_seq *out)
{
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES | OT_P_SHAPES));
    memset(out, 0, sizeof *out);
    out->g = g;
    out->arena = a;
    if (!alloc_tables(out)) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < g->n_nodes; k++) out->pos[k] = OT_NONE;
    for (uint32_t k = 0; k < g->n_order; k++) {
        if (g->nodes[g->order[k]].is_static) continue;
        out->pos[g->order[k]] = out->n;
        out->node[out->n++] = g->order[k];
    }
    if (fill_ranges(out) != OT_OK) return ot_fail_nomem(g->model->diag);
    mark_odd(out);
    for (uint32_t k = 0; k < out->n; k++)
        out->cancels[k] = ot_sum_cancels(g, &g->nodes[out->node[k]]);
    for (uint32_t k = 0; k < g->n_outputs; k++) out->strict |= from_sigmoid(g, g->outputs[k]);
    return OT_OK;
}

uint32_t ot_seq_attention_end(const ot_seq *s, uint32_t p)
{
    uint32_t head = s->strided[p] != OT_NONE ? s->strided[p]
                    : s->tail[p] != OT_NONE  ? s->head[p]
                                             : OT_NONE;
    if (head == OT_NONE) return OT_NONE;
    const ot_value *made = &s->g->values[s->g->nodes[s->node[s->tail[head]]].out[0]];
    for (uint32_t u = 0; u < made->n_uses; u++) {
        uint32_t reader = s->pos[made->uses[u]];
        if (reader != OT_NONE && s->strided[reader] == head) return reader;
    }
    return s->tail[head];
}

ot_sum_kind ot_seq_sum(const ot_seq *s, const ot_node *n, bool reduced[OT_RANK_MAX])
{
    uint32_t at = s->pos[n - s->g->nodes];
    return !s->sums || at == OT_NONE || s->cancels[at] ? OT_SUM_NONE
                                                       : ot_access_sum(s->g, n, reduced);
}
