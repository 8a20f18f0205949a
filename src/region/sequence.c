/* The planner's view of a graph: nodes worth planning in topological order, sizes, live ranges, and the figures of the
 * untiled model.
 *
 *   order:  Constant  Conv  Shape  Relu  Gather  Reshape  MatMul
 *   seq:              Conv         Relu          Reshape  MatMul      (static nodes left out)
 *
 * Live bytes follow ONNX Runtime's habit: an element-wise node overwrites an input that dies there; graph inputs belong to
 * the caller and do not count.
 */
#include "plan/cost/planner.h"

/* Operators that may write their output over an equally large input that dies there. */
static bool may_run_in_place(const ot_seq *s, const ot_node *n, const ot_target *t)
{
    ot_access_kind a = ot_op_access(n->op);
    if (a == OT_ACC_POINTWISE || a == OT_ACC_RESHAPE) return true;
    if (n->op == OT_OP_BatchNormalization || a == OT_ACC_SOFTMAX) return true;
    if (!t->inplace_depthwise || a != OT_ACC_CONV || n->n_in < 2 || n->in[1] == OT_NONE) return false;
    ot_id w = n->in[n->op == OT_OP_QLinearConv ? 3 : 1];
    const ot_value *v = w == OT_NONE ? NULL : &s->g->values[w];
    return v && v->rank >= 3 && v->dims[1] == 1 && ot_attr_int(n, "group", 1) > 1;
}

/* Bytes that the node's outputs save by overwriting a dying input. */
static int64_t in_place_bytes(const ot_seq *s, uint32_t p, const ot_target *t)
{
    const ot_node *n = &s->g->nodes[s->node[p]];
    if (n->n_out == 0 || n->out[0] == OT_NONE || !may_run_in_place(s, n, t)) return 0;
    int64_t out = s->held[n->out[0]];
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v == OT_NONE || !s->act[v] || s->def[v] == OT_NONE || s->last[v] != p) continue;
        bool fits = s->bytes[v] == s->bytes[n->out[0]] || (ot_op_access(n->op) == OT_ACC_CONV && k == 0);
        if (fits) return ot_min(out, s->held[v]);
    }
    return 0;
}

/* All readers of v are merged with the node that makes it: the engine never stores it. */
static bool is_interior(const ot_seq *s, ot_id v)
{
    const ot_value *x = &s->g->values[v];
    if (s->def[v] == OT_NONE || x->is_output || x->n_uses == 0) return false;
    for (uint32_t u = 0; u < x->n_uses; u++) {
        uint32_t p = s->pos[x->uses[u]];
        if (p == OT_NONE || s->head[p] != s->head[s->def[v]]) return false;
    }
    return true;
}

/* Bytes that values take while they live. The engine writes graph outputs into the caller's memory, and stores of a merged group
 * only what others read; until that is made, the group's first value stands for it. */
static void fill_held(ot_seq *s, const ot_target *t, bool *stores)
{
    const ot_graph *g = s->g;
    memcpy(s->held, s->bytes, g->n_values * sizeof *s->held);
    if (!t->engine || !t->is_cache) return;
    for (ot_id v = 0; v < g->n_values; v++) {
        if (g->values[v].is_output)
            s->held[v] = 0;
        else if (s->def[v] != OT_NONE && !is_interior(s, v))
            stores[s->head[s->def[v]]] = true;
    }
    for (ot_id v = 0; v < g->n_values; v++)
        if (is_interior(s, v) && (s->head[s->def[v]] != s->def[v] || !stores[s->def[v]])) s->held[v] = 0;
}

static void fill_live(ot_seq *s, const ot_target *t)
{
    /* cut[k]: differences first, then a running sum. Values live from def+1 up to last. */
    const ot_graph *g = s->g;
    memset(s->cut, 0, (s->n + 1) * sizeof *s->cut);
    for (ot_id v = 0; v < g->n_values; v++) {
        if (!s->act[v] || s->def[v] == OT_NONE || s->last[v] == OT_NONE || s->last[v] <= s->def[v]) continue;
        int64_t bytes = s->held[v];
        s->cut[s->def[v] + 1] += bytes;
        if (s->last[v] + 1 <= s->n) s->cut[s->last[v] + 1] -= bytes;
    }
    for (uint32_t k = 1; k <= s->n; k++) s->cut[k] += s->cut[k - 1];
    s->peak = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_node *n = &g->nodes[s->node[k]];
        int64_t live = s->cut[k];
        for (uint32_t o = 0; o < n->n_out; o++)
            if (n->out[o] != OT_NONE) live += s->held[n->out[o]];
        s->live[k] = live + (int64_t)s->work[k] - in_place_bytes(s, k, t);
        s->peak = ot_max(s->peak, s->live[k]);
    }
}

/* A float value between DequantizeLinear and QuantizeLinear: runtimes that merge operators run the group on integers, and
 * the value has the width of the integers. */
static bool is_quantized_inside(const ot_graph *g, const ot_value *x)
{
    if (x->dtype != OT_F32 || x->is_output || x->is_input || x->producer == OT_NONE) return false;
    if (g->nodes[x->producer].op == OT_OP_DequantizeLinear) return true;
    if (x->n_uses == 0) return false;
    for (uint32_t u = 0; u < x->n_uses; u++)
        if (g->nodes[x->uses[u]].op != OT_OP_QuantizeLinear) return false;
    return true;
}

static void fill_ranges(ot_seq *s, const ot_target *t)
{
    ot_graph *g = s->g;
    for (ot_id v = 0; v < g->n_values; v++) {
        const ot_value *x = &g->values[v];
        s->def[v] = s->last[v] = OT_NONE;
        if (!ot_value_bytes(x, &s->bytes[v])) s->bytes[v] = 0;
        if (!ot_value_elems(x, &s->elems[v])) s->elems[v] = 0;
        if (t->fuses && !t->engine && is_quantized_inside(g, x)) s->bytes[v] = s->elems[v];
        bool made = x->producer != OT_NONE && s->pos[x->producer] != OT_NONE;
        s->act[v] = made || (x->producer == OT_NONE && !x->is_const && (!x->init || x->overridable));
        if (made) s->def[v] = s->pos[x->producer];
        for (uint32_t u = 0; u < x->n_uses; u++) {
            uint32_t p = s->pos[x->uses[u]];
            if (p == OT_NONE && !ot_static_foldable(g, &g->nodes[x->uses[u]])) p = s->n; /* kept alive, like an output */
            if (p != OT_NONE && (s->last[v] == OT_NONE || p > s->last[v])) s->last[v] = p;
        }
        if (x->is_output) s->last[v] = s->n;
    }
}

/* The value, followed backwards through operators that only move data, is a Sigmoid's. */
static bool from_sigmoid(const ot_graph *g, ot_id v)
{
    for (uint32_t hops = 0; hops < 12 && v != OT_NONE && g->values[v].producer != OT_NONE; hops++) {
        const ot_node *n = &g->nodes[g->values[v].producer];
        if (n->op == OT_OP_Sigmoid) return true;
        ot_access_kind a = ot_op_access(n->op);
        bool moves = a == OT_ACC_RESHAPE || a == OT_ACC_TRANSPOSE || a == OT_ACC_CONCAT || a == OT_ACC_SLICE ||
                     a == OT_ACC_GATHER || n->op == OT_OP_Identity || n->op == OT_OP_Cast || n->op == OT_OP_Mul;
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
    s->def = OT_NEW_N(a, uint32_t, g->n_values + 1u);
    s->last = OT_NEW_N(a, uint32_t, g->n_values + 1u);
    s->odd = OT_NEW_N(a, bool, g->n_order + 1u);
    s->fused = OT_NEW_N(a, bool, g->n_order + 1u);
    s->head = OT_NEW_N(a, uint32_t, g->n_order + 1u);
    s->tail = OT_NEW_N(a, uint32_t, g->n_order + 1u);
    s->inside = OT_NEW_N(a, bool, g->n_order + 2u);
    s->wino_room = OT_NEW_N(a, int64_t, g->n_order + 1u);
    s->time = OT_NEW_N(a, double, g->n_order + 2u);
    s->traffic = OT_NEW_N(a, double, g->n_order + 2u);
    s->macs = OT_NEW_N(a, double, g->n_order + 1u);
    s->extra = OT_NEW_N(a, double, g->n_order + 1u);
    s->blocked = OT_NEW_N(a, bool, g->n_values + 1u);
    s->work = OT_NEW_N(a, double, g->n_order + 1u);
    s->live = OT_NEW_N(a, int64_t, g->n_order + 1u);
    s->cut = OT_NEW_N(a, int64_t, g->n_order + 2u);
    return s->node && s->pos && s->act && s->bytes && s->held && s->elems && s->def && s->last && s->odd && s->fused && s->head &&
           s->tail && s->inside && s->wino_room && s->time && s->traffic && s->macs && s->extra && s->blocked && s->work &&
           s->live && s->cut;
}

/* What reads an odd node is odd. */
static void mark_readers_odd(ot_seq *s)
{
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_node *n = &s->g->nodes[s->node[k]];
        for (uint32_t i = 0; i < n->n_in && !s->odd[k]; i++)
            s->odd[k] = n->in[i] != OT_NONE && s->def[n->in[i]] != OT_NONE && s->odd[s->def[n->in[i]]];
    }
}

/* Nodes on whose shapes runtimes and checkers disagree, with everything before and after them: new shapes written there
 * would be refused somewhere. Spectral nodes, and ceil_mode pools at an unclear border. */
static void mark_odd(ot_seq *s)
{
    const ot_graph *g = s->g;
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_node *n = &g->nodes[s->node[k]];
        s->odd[k] = strcmp(n->op_type, "STFT") == 0 || strcmp(n->op_type, "DFT") == 0 || ot_pool_is_odd(g, n);
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
ot_status ot_seq_build(ot_graph *g, const ot_target *t, ot_arena *a, ot_seq *out)
{
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES | OT_P_SHAPES));
    memset(out, 0, sizeof *out);
    out->g = g;
    out->arena = a;
    out->sums = t->engine;
    if (!alloc_tables(out)) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < g->n_nodes; k++) out->pos[k] = OT_NONE;
    for (uint32_t k = 0; k < g->n_order; k++) {
        if (g->nodes[g->order[k]].is_static) continue;
        out->pos[g->order[k]] = out->n;
        out->node[out->n++] = g->order[k];
    }
    fill_ranges(out, t);
    mark_odd(out);
    for (uint32_t k = 0; k < out->n; k++) {
        const ot_node *n = &g->nodes[out->node[k]];
        bool blocked = ot_cost_makes_blocked(out, k, t);
        for (uint32_t o = 0; o < n->n_out; o++)
            if (n->out[o] != OT_NONE) out->blocked[n->out[o]] = blocked;
        uint32_t producer = k;
        out->fused[k] = ot_cost_is_fused(out, k, t, &producer);
        out->head[k] = out->fused[k] ? out->head[producer] : k;
    }
    ot_cost_attention_fill(out, t);
    ot_cost_winograd_fill(out, t);
    ot_cost_quant_fill(out, t);
    for (uint32_t k = 0; k < out->n; k++) {
        out->macs[k] = ot_node_macs(g, &g->nodes[out->node[k]]);
        out->work[k] = ot_cost_work(out, k, t);
        out->extra[k] = ot_cost_extra(out, k, t);
        if (out->work[k] == 0) out->work[k] = out->extra[k] / 2; /* copies in the other layout */
        ot_node_cost x;
        ot_cost_node(out, k, t, &x);
        out->time[k + 1] = out->time[k] + x.time;
        out->traffic[k + 1] = out->traffic[k] + x.traffic;
    }
    bool *stores = OT_NEW_N(a, bool, g->n_order + 1u);
    if (!stores) return ot_fail_nomem(g->model->diag);
    fill_held(out, t, stores);
    fill_live(out, t);
    for (uint32_t k = 0; k < g->n_outputs; k++) out->strict |= from_sigmoid(g, g->outputs[k]);
    return OT_OK;
}
