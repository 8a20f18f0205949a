/* The figures of the untiled model: which nodes the runtime merges, which layouts it holds, how
 * long each node takes, how many bytes are live.
 *
 * Live bytes are what a runtime need not go below: an element-wise node overwrites an input that
 * dies there, whether its kernel does or not (alloc_sim/ says what a process takes); graph inputs
 * belong to the caller and do not count.
 */
#include "cost.h"

/* Operators that may write their output over an equally large input that dies there. */
static bool may_run_in_place(const ot_seq *s, const ot_node *n, const ot_target *t)
{
    if (ot_runtime_in_place(t->runtime, n)) return true;
    if (!t->inplace_depthwise || ot_op_access(n->op) != OT_ACC_CONV || n->n_in < 2 ||
        n->in[1] == OT_NONE)
        return false;
    ot_id w = n->in[ot_op_row_of(n->op)->weights];
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
        bool fits = s->bytes[v] == s->bytes[n->out[0]] ||
                    (ot_op_access(n->op) == OT_ACC_CONV && k == 0);
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

/* Bytes that values take while they live. Where graph outputs lie in the caller's memory they
 * take none, and of a merged group there is only what others read; until that is made, the
 * group's first value stands for it. */
static void fill_held(ot_seq *s, const ot_target *t, bool *stores)
{
    const ot_graph *g = s->g;
    memcpy(s->held, s->bytes, g->n_values * sizeof *s->held);
    if (!t->runtime->own_outputs) return;
    for (ot_id v = 0; v < g->n_values; v++) {
        if (g->values[v].is_output)
            s->held[v] = 0;
        else if (s->def[v] != OT_NONE && !is_interior(s, v))
            stores[s->head[s->def[v]]] = true;
    }
    /* a Transpose that is strides makes no array: there is what it reads, or what it makes */
    for (uint32_t p = 0; p < s->n; p++) {
        const ot_node *n = &g->nodes[s->node[p]];
        if (s->strided[p] != OT_NONE) s->held[s->strided[p] > p ? n->out[0] : n->in[0]] = 0;
    }
    for (ot_id v = 0; v < g->n_values; v++)
        if (is_interior(s, v) && (s->head[s->def[v]] != s->def[v] || !stores[s->def[v]]))
            s->held[v] = 0;
}

static void fill_live(ot_seq *s, const ot_target *t)
{
    /* cut[k]: differences first, then a running sum. Values live from def+1 up to last. */
    const ot_graph *g = s->g;
    memset(s->cut, 0, (s->n + 1) * sizeof *s->cut);
    for (ot_id v = 0; v < g->n_values; v++) {
        if (!s->act[v] || s->def[v] == OT_NONE || s->last[v] == OT_NONE || s->last[v] <= s->def[v])
            continue;
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

/* A line of `-d C`: what a node is thought to take when it runs whole. */
#define NAME_WIDTH 40

static void dump_cost(const ot_graph *g, const ot_node_cost *x)
{
    const ot_node *n = &g->nodes[x->node];
    const char *name = n->name[0] ? n->name : ot_op_name(n->op);
    const size_t length = strlen(name);
    fputs("  ", stderr);
    ot_put_shown(name, stderr);
    fprintf(stderr, "%*s %9.1f us: compute %9.1f, memory %9.1f, %7.1f M multiply-adds%s\n",
            length < NAME_WIDTH ? NAME_WIDTH - (int)length : 0, "", x->time * 1e6, x->compute * 1e6,
            x->memory * 1e6, x->macs * 1e-6, x->is_fused ? ", merged" : "");
}

/* requires a built sequence. Fails: OT_E_NOMEM. */
ot_status ot_cost_fill(ot_seq *s, const ot_target *t)
{
    const ot_graph *g = s->g;
    bool *stores = OT_NEW_N(s->arena, bool, g->n_order + 1u);
    if (!stores) return ot_fail_nomem(g->model->diag);
    s->sums = ot_runtime_in_classes(t->runtime) || !t->bit_exact;
    for (ot_id v = 0; v < g->n_values; v++)
        if (t->runtime->int8_width && ot_value_beside_quantizer(g, v)) s->bytes[v] = s->elems[v];
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_node *n = &g->nodes[s->node[k]];
        bool blocked = ot_cost_makes_blocked(s, k, t);
        for (uint32_t o = 0; o < n->n_out; o++)
            if (n->out[o] != OT_NONE) s->blocked[n->out[o]] = blocked;
    }
    OT_TRY(ot_cost_groups_fill(s, t));
    ot_cost_winograd_fill(s, t);
    /* asked of every tiling tried */
    for (ot_id v = 0; v < g->n_values; v++) s->hands_blocks[v] = ot_cost_blocked(s, v, t);
    for (uint32_t k = 0; k < s->n; k++) {
        s->macs[k] = ot_node_macs(g, &g->nodes[s->node[k]]);
        s->work[k] = ot_cost_work(s, k, t);
        s->extra[k] = ot_cost_extra(s, k, t);
        /* in the other layout */
        if (s->work[k] == 0) s->work[k] = s->extra[k] * t->runtime->blocks.copies;
        ot_node_cost x;
        ot_cost_node(s, k, t, &x);
        if (ot_dbg['C']) dump_cost(g, &x);
        s->time[k + 1] = s->time[k] + x.time;
        s->traffic[k + 1] = s->traffic[k] + x.traffic;
    }
    fill_held(s, t, stores);
    fill_live(s, t);
    return OT_OK;
}
