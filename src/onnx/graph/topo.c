/* Topological order and uses.
 *
 * Tiling regions are intervals of `order`, so the order must keep a chain, and then a branch,
 * together. It is the post-order of a depth-first walk from the graph outputs towards the
 * inputs, in which a node's operands are visited deepest first (depth: longest chain from the
 * graph inputs, in nodes):
 *
 *          x                    order: c1 c2 c3 | skip | add | k | scale
 *       /     \
 *     c1       skip (1x1 conv)  - the long branch c1 c2 c3 is complete before the short one starts,
 *              and the short
 *     c2       |                  one comes right before the node that joins them;
 *     c3      /                 - a node follows at once when its last operand was just emitted
 *                               (chains stay whole);
 *       \    /                  - nodes that depend on constants only (`k`; less deep than all
 *                               others) come right
 *        add   k (Constant)       before their first reader, not at the start.
 *          \  /
 *         scale
 *
 * The walk starts at the graph outputs, the shallow ones first (an early exit frees its input
 * early), then at nodes nobody reads (dead branches are kept). All ties are broken by node id,
 * which is file order, then order of creation. Everything is linear in nodes + edges and uses no
 * recursion: graphs of any depth.
 *
 * Scratch lives in side arrays [n_nodes] in an arena of this pass; results live in the model's
 * arena.
 */
#include "ir.h"

typedef struct ot_topo {
    ot_graph *g;
    ot_arena *a;
    uint32_t n_live;
    uint32_t *depth;   /* [n_nodes] see find_depths; a node's is larger than its operands' */
    uint32_t *chain;   /* [n_nodes] scratch of find_depths: longest chain of constant nodes */
    bool *varies;      /* [n_nodes] depends on a graph input or an outer value */
    uint32_t *pending; /* [n_nodes] reads of produced values not yet satisfied; 0 after Kahn */
    ot_id *ready;      /* [n_live] Kahn's queue: a topological order, not yet the good one */
    uint32_t *dep_at;  /* [n_nodes + 1] start of each node's operands in `deps` */
    ot_id *deps;       /* producers of each node's operands, deepest first */
    ot_id *ranked;     /* [n_live] nodes, deepest first, ties by id */
} ot_topo;

/* Reads of node n: its inputs, then its captured values. */
static uint32_t n_reads(const ot_node *n) { return n->n_in + n->n_captured; }

static ot_id read_at(const ot_node *n, uint32_t k)
{
    return k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
}

/* Does v exist without any node of this graph? Sparse initializers and the like are no tensors
 * to us. */
static bool defined_elsewhere(const ot_value *v)
{
    return v->is_input || v->init || v->is_outer || !v->is_tensor;
}

/* ---- producers and uses ---- */

static ot_status set_producers(ot_graph *g)
{
    for (ot_id v = 0; v < g->n_values; v++) {
        g->values[v].producer = OT_NONE;
        g->values[v].n_uses = 0;
    }
    g->quantizes = false;
    for (ot_id id = 0; id < g->n_nodes; id++) {
        const ot_node *n = &g->nodes[id];
        g->quantizes |= !n->dead && n->op == OT_OP_QuantizeLinear;
        for (uint32_t k = 0; !n->dead && k < n->n_out; k++) {
            if (n->out[k] == OT_NONE) continue;
            ot_value *v = &g->values[n->out[k]];
            if (v->producer != OT_NONE)
                return ot_fail(g->model->diag, OT_E_INPUT,
                               "node '%s' (%s): output '%s' is already produced by node '%s' (%s)",
                               n->name, n->op_type, v->name, g->nodes[v->producer].name,
                               g->nodes[v->producer].op_type);
            v->producer = id;
            v->out_index = k;
        }
    }
    return OT_OK;
}

/* A value read but never defined. */
static ot_status check_defined(const ot_graph *g)
{
    for (ot_id id = 0; id < g->n_nodes; id++) {
        const ot_node *n = &g->nodes[id];
        for (uint32_t k = 0; !n->dead && k < n_reads(n); k++) {
            ot_id r = read_at(n, k);
            if (r == OT_NONE) continue;
            const ot_value *v = &g->values[r];
            if (v->producer == OT_NONE && !defined_elsewhere(v))
                return ot_fail(g->model->diag, OT_E_INPUT,
                               "node '%s' (%s): reads value '%s', which nothing defines", n->name,
                               n->op_type, v->name);
        }
    }
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        const ot_value *v = &g->values[g->outputs[k]];
        if (v->producer == OT_NONE && !defined_elsewhere(v))
            return ot_fail(g->model->diag, OT_E_INPUT, "graph output '%s' is never defined",
                           v->name);
    }
    return OT_OK;
}

/* Fill value.uses by walking `seq` [n]; each reader once per value. One block holds all lists.
 * With `fill` false only n_uses is counted. stamp: [n_values], set to OT_NONE. */
static void walk_uses(ot_graph *g, const ot_id *seq, uint32_t n, ot_id *stamp, bool fill)
{
    memset(stamp, 0xff, g->n_values * sizeof *stamp);
    for (uint32_t p = 0; p < n; p++) {
        const ot_node *node = &g->nodes[seq[p]];
        for (uint32_t k = 0; k < n_reads(node); k++) {
            ot_id r = read_at(node, k);
            if (r == OT_NONE || stamp[r] == seq[p]) continue;
            stamp[r] = seq[p];
            ot_value *v = &g->values[r];
            if (fill) v->uses[v->n_uses] = seq[p];
            v->n_uses++;
        }
    }
}

static ot_status fill_uses(ot_topo *t, const ot_id *seq, ot_arena *into)
{
    ot_graph *g = t->g;
    ot_id *stamp = OT_NEW_N(t->a, ot_id, g->n_values);
    if (!stamp) return ot_fail_nomem(g->model->diag);
    for (ot_id v = 0; v < g->n_values; v++) g->values[v].n_uses = 0;
    walk_uses(g, seq, t->n_live, stamp, false);
    size_t total = 0;
    for (ot_id v = 0; v < g->n_values; v++) total += g->values[v].n_uses;
    ot_id *block = OT_NEW_N(into, ot_id, total);
    if (!block) return ot_fail_nomem(g->model->diag);
    for (ot_id v = 0; v < g->n_values; v++) {
        g->values[v].uses = block;
        block += g->values[v].n_uses;
        g->values[v].n_uses = 0;
    }
    walk_uses(g, seq, t->n_live, stamp, true);
    return OT_OK;
}

/* ---- depth, and cycles ---- */

/* Some node on a cycle: walk from an unsatisfied node to an unsatisfied producer until one comes
 * twice. */
static ot_status report_cycle(const ot_topo *t)
{
    const ot_graph *g = t->g;
    ot_id at = 0, via = OT_NONE; /* via: the output of `at` that the node before it reads */
    while (g->nodes[at].dead || t->pending[at] == 0) at++;
    bool *seen = OT_NEW_N(t->a, bool, g->n_nodes);
    if (!seen) return ot_fail_nomem(g->model->diag);
    while (!seen[at]) {
        seen[at] = true;
        const ot_node *n = &g->nodes[at];
        for (uint32_t k = 0; k < n_reads(n); k++) {
            ot_id r = read_at(n, k);
            ot_id p = r == OT_NONE ? OT_NONE : g->values[r].producer;
            if (p == OT_NONE || t->pending[p] == 0) continue;
            at = p;
            via = r;
            break;
        }
    }
    return ot_fail(
        g->model->diag, OT_E_INPUT,
        "node '%s' (%s): its output '%s' leads back to its own input (the graph has a cycle)",
        g->nodes[at].name, g->nodes[at].op_type, g->values[via].name);
}

/* Kahn's algorithm: `ready`, `depth`, `varies`. Needs producers and uses (in any order).
 * Constant nodes count the longest chain of constant nodes behind them, the others the longest
 * chain of non-constant ones, and the latter are all lifted above the former. That a reader is
 * always deeper than what it reads makes the order a fixed point: sorting a graph whose ids are
 * in this order changes nothing. */
static ot_status find_depths(ot_topo *t)
{
    ot_graph *g = t->g;
    for (ot_id v = 0; v < g->n_values; v++) {
        const ot_value *val = &g->values[v];
        bool varies = val->producer == OT_NONE &&
                      (val->is_outer || (val->is_input && (!val->init || val->overridable)));
        for (uint32_t k = 0; k < val->n_uses; k++) {
            t->varies[val->uses[k]] |= varies;
            t->pending[val->uses[k]] += val->producer != OT_NONE;
        }
    }
    uint32_t head = 0, tail = 0, lift = 0;
    for (ot_id id = 0; id < g->n_nodes; id++)
        if (!g->nodes[id].dead && t->pending[id] == 0) t->ready[tail++] = id;
    while (head < tail) {
        ot_id id = t->ready[head++];
        const ot_node *n = &g->nodes[id];
        uint32_t *count = t->varies[id] ? t->depth : t->chain;
        uint32_t steps = ++count[id]; /* its own step, on top of the deepest operand */
        if (!t->varies[id] && steps > lift) lift = steps;
        for (uint32_t o = 0; o < n->n_out; o++) {
            const ot_value *v = n->out[o] == OT_NONE ? NULL : &g->values[n->out[o]];
            for (uint32_t k = 0; v && k < v->n_uses; k++) {
                ot_id reader = v->uses[k];
                t->varies[reader] |= t->varies[id];
                if (count[reader] < steps) count[reader] = steps;
                if (--t->pending[reader] == 0) t->ready[tail++] = reader;
            }
        }
    }
    if (tail < t->n_live) return report_cycle(t);
    for (ot_id id = 0; id < g->n_nodes; id++)
        t->depth[id] = t->varies[id] ? t->depth[id] + lift : t->chain[id];
    return OT_OK;
}

/* ---- the order ---- */

/* Counting sort by depth, deepest first; stable in id. */
static ot_status rank_nodes(ot_topo *t)
{
    const ot_graph *g = t->g;
    uint32_t deepest = 0;
    for (ot_id id = 0; id < g->n_nodes; id++)
        if (!g->nodes[id].dead) deepest = t->depth[id] > deepest ? t->depth[id] : deepest;
    uint32_t *at = OT_NEW_N(t->a, uint32_t, (size_t)deepest + 2);
    if (!at) return ot_fail_nomem(g->model->diag);
    for (ot_id id = 0; id < g->n_nodes; id++)
        if (!g->nodes[id].dead) at[deepest - t->depth[id] + 1]++;
    for (uint32_t d = 0; d <= deepest; d++) at[d + 1] += at[d];
    for (ot_id id = 0; id < g->n_nodes; id++)
        if (!g->nodes[id].dead) t->ranked[at[deepest - t->depth[id]]++] = id;
    return OT_OK;
}

/* Operand lists, sorted without sorting: producers in rank order append themselves to their
 * readers. */
static ot_status list_operands(ot_topo *t)
{
    const ot_graph *g = t->g;
    t->dep_at = OT_NEW_N(t->a, uint32_t, (size_t)g->n_nodes + 2);
    if (!t->dep_at) return ot_fail_nomem(g->model->diag);
    uint64_t total = 0;
    for (ot_id v = 0; v < g->n_values; v++) {
        if (g->values[v].producer == OT_NONE) continue;
        total += g->values[v].n_uses;
        for (uint32_t k = 0; k < g->values[v].n_uses; k++) t->dep_at[g->values[v].uses[k] + 2]++;
    }
    t->deps = total < OT_NONE ? OT_NEW_N(t->a, ot_id, (size_t)total) : NULL;
    if (!t->deps) return ot_fail_nomem(g->model->diag);
    /* dep_at[id + 1] is the fill mark of node id; when filled it has become the start of node id
     * + 1 */
    for (ot_id id = 0; id < g->n_nodes; id++) t->dep_at[id + 2] += t->dep_at[id + 1];
    for (uint32_t p = 0; p < t->n_live; p++) {
        const ot_node *n = &g->nodes[t->ranked[p]];
        for (uint32_t o = 0; o < n->n_out; o++) {
            const ot_value *v = n->out[o] == OT_NONE ? NULL : &g->values[n->out[o]];
            for (uint32_t k = 0; v && k < v->n_uses; k++)
                t->deps[t->dep_at[v->uses[k] + 1]++] = t->ranked[p];
        }
    }
    return OT_OK;
}

typedef struct ot_frame {
    ot_id node;
    uint32_t next; /* index into deps of the operand to visit next */
} ot_frame;

/* Emit everything `root` needs, then root itself. */
static void emit_from(const ot_topo *t, ot_id root, bool *seen, ot_frame *stack, ot_id *order,
                      uint32_t *n)
{
    if (seen[root]) return;
    uint32_t top = 0;
    seen[root] = true;
    stack[top++] = (ot_frame){root, t->dep_at[root]};
    while (top) {
        ot_frame *f = &stack[top - 1];
        if (f->next == t->dep_at[f->node + 1]) {
            order[(*n)++] = f->node;
            top--;
            continue;
        }
        ot_id dep = t->deps[f->next++];
        if (seen[dep]) continue;
        seen[dep] = true;
        stack[top++] = (ot_frame){dep, t->dep_at[dep]};
    }
}

static ot_status emit_all(const ot_topo *t, ot_id *order)
{
    const ot_graph *g = t->g;
    bool *seen = OT_NEW_N(t->a, bool, g->n_nodes);
    bool *root = OT_NEW_N(t->a, bool, g->n_nodes);
    ot_frame *stack = OT_NEW_N(t->a, ot_frame, t->n_live);
    if (!seen || !root || !stack) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        ot_id p = g->values[g->outputs[k]].producer;
        if (p != OT_NONE) root[p] = true;
    }
    /* outputs, shallow ones first: `ranked` backwards, with its runs of equal depth forwards */
    uint32_t n = 0;
    for (uint32_t hi = t->n_live; hi > 0;) {
        uint32_t lo = hi - 1;
        while (lo > 0 && t->depth[t->ranked[lo - 1]] == t->depth[t->ranked[hi - 1]]) lo--;
        for (uint32_t p = lo; p < hi; p++)
            if (root[t->ranked[p]]) emit_from(t, t->ranked[p], seen, stack, order, &n);
        hi = lo;
    }
    /* what no output needs; deepest first, so that a branch's last node pulls in the whole branch
     */
    for (uint32_t p = 0; p < t->n_live; p++) emit_from(t, t->ranked[p], seen, stack, order, &n);
    if (n != t->n_live) OT_BUG("the topological order lost a node");
    return OT_OK;
}

static ot_status sort_with(ot_topo *t)
{
    ot_graph *g = t->g;
    for (ot_id id = 0; id < g->n_nodes; id++) t->n_live += !g->nodes[id].dead;
    t->depth = OT_NEW_N(t->a, uint32_t, g->n_nodes);
    t->chain = OT_NEW_N(t->a, uint32_t, g->n_nodes);
    t->varies = OT_NEW_N(t->a, bool, g->n_nodes);
    t->pending = OT_NEW_N(t->a, uint32_t, g->n_nodes);
    t->ready = OT_NEW_N(t->a, ot_id, t->n_live);
    t->ranked = OT_NEW_N(t->a, ot_id, t->n_live);
    ot_id *order = OT_NEW_N(g->model->arena, ot_id, t->n_live);
    if (!t->depth || !t->chain || !t->varies || !t->pending || !t->ready || !t->ranked || !order)
        return ot_fail_nomem(g->model->diag);
    OT_TRY(set_producers(g));
    OT_TRY(check_defined(g));
    uint32_t n = 0;
    for (ot_id id = 0; id < g->n_nodes; id++)
        if (!g->nodes[id].dead) t->ready[n++] = id;
    OT_TRY(fill_uses(t, t->ready, t->a)); /* in file order, for the walks below */
    OT_TRY(find_depths(t));
    OT_TRY(rank_nodes(t));
    OT_TRY(list_operands(t));
    OT_TRY(emit_all(t, order));
    OT_TRY(fill_uses(t, order, g->model->arena));
    g->order = order;
    g->n_order = t->n_live;
    g->props |= OT_P_ORDER | OT_P_USES;
    return OT_OK;
}

/* requires nothing. keeps SHAPES. establishes ORDER and USES. Fails: OT_E_INPUT, OT_E_NOMEM; the
 * two properties then do not hold. */
ot_status ot_topo_sort(ot_graph *g)
{
    g->props &= ~(unsigned)(OT_P_ORDER | OT_P_USES);
    ot_topo t = {.g = g, .a = ot_arena_new()};
    if (!t.a) return ot_fail_nomem(g->model->diag);
    ot_status st = sort_with(&t);
    if (st != OT_OK) /* the lists may point into the scratch arena */
        for (ot_id v = 0; v < g->n_values; v++) {
            g->values[v].uses = NULL;
            g->values[v].n_uses = 0;
        }
    ot_arena_free(t.a);
    return st;
}

ot_status ot_take_order(ot_graph *g)
{
    ot_topo t = {.g = g, .a = ot_arena_new(), .n_live = g->n_order};
    if (!t.a) return ot_fail_nomem(g->model->diag);
    ot_status st = fill_uses(&t, g->order, g->model->arena);
    ot_arena_free(t.a);
    return st;
}

ot_status ot_assure(ot_graph *g, unsigned mask)
{
    if ((mask & OT_P_SHAPES) && !(g->props & OT_P_SHAPES))
        OT_BUG("a pass needs shapes before they were inferred");
    unsigned missing = mask & ~g->props & (unsigned)(OT_P_ORDER | OT_P_USES);
    return missing ? ot_topo_sort(g) : OT_OK;
}

void ot_confirm(ot_graph *g, unsigned mask)
{
    g->props &= mask;
    g->props |= mask & OT_P_SHAPES; /* the only one a pass can establish by its own word */
}
