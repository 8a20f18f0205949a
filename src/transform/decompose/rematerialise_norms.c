/* What is cheaper to compute again than to keep: x of a normalisation is needed twice, for its
 * statistics and when they are known.
 *
 *     s --Conv--> x --Moments--> mean, variance --NormFactors--> factor, summand
 *                 x --Mul(factor)--Add(summand)--> y
 *
 * x is whole in between, and often the largest value of all: the first convolution of a style
 * network makes 16 channels of 3, an up-sampling four pixels of one. Here the nodes that make x
 * are written once more, for the second reader:
 *
 *     s --Conv--> x --Moments--> ...                  x in tiles that hand out statistics: never
 *                                                     whole
 *     s --Conv'--> x' --Mul(factor)--Add(summand)--> y   x' in the tiles of what follows: never
 *                                                        whole
 *
 * Both compute the same numbers: nothing but time is lost. What pays is scored like every other
 * plan (stage select/).
 */
#include "decompose_internal.h"

#define HEAVY 1 /* so many products are computed again */
#define NODES SPLIT_CHAIN_NODES

typedef remat_chain chain;

static bool is_product(const ot_node *n)
{
    return ot_op_cost(n->op) == OT_COST_CONV || ot_op_cost(n->op) == OT_COST_GEMM;
}

/* A node with one result, of the kinds that are computed again. */
static bool may_repeat(const ot_graph *g, ot_id id)
{
    const ot_node *n = &g->nodes[id];
    const ot_access_kind access = ot_op_access(n->op);
    const ot_cost_kind cost = ot_op_cost(n->op);
    if (n->dead || n->is_static || n->n_captured > 0 || access == OT_ACC_BARRIER ||
        access == OT_ACC_SHAPE)
        return false;
    if (cost == OT_COST_REDUCE || cost == OT_COST_NORM || cost == OT_COST_OTHER) return false;
    for (uint32_t k = 0; k < n->n_out; k++)
        if ((n->out[k] == OT_NONE) != (k > 0)) return false;
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].kind == OT_ATTR_GRAPH) return false;
    return n->n_out > 0;
}

static bool holds(const chain *c, ot_id node)
{
    for (uint32_t k = 0; k < c->n; k++)
        if (c->nodes[k] == node) return true;
    return false;
}

static bool append(chain *c, ot_id node)
{
    const ot_node *n = &c->g->nodes[node];
    if (c->n == NODES || !may_repeat(c->g, node) || (is_product(n) && c->heavy == c->most_heavy))
        return false;
    c->nodes[c->n++] = node;
    c->heavy += is_product(n);
    c->macs += ot_node_macs(c->g, n);
    return true;
}

/* What the chain reads of v, that it does not make: bytes that must be kept for it. The caller
 * keeps graph inputs. */
static int64_t kept_bytes(const chain *c, ot_id v)
{
    const ot_value *x = &c->g->values[v];
    int64_t bytes;
    if (x->init || x->is_const || x->is_input || (x->producer != OT_NONE && holds(c, x->producer)))
        return 0;
    return x->is_tensor && ot_value_bytes(x, &bytes) ? bytes : INT64_MAX / OT_RANK_MAX;
}

/* v is read by the chain alone, which may make it, too. */
static bool is_own(const chain *c, ot_id v)
{
    const ot_value *x = &c->g->values[v];
    for (uint32_t u = 0; u < x->n_uses; u++)
        if (!holds(c, x->uses[u])) return false;
    return !x->is_output;
}

/* Bytes of all that the chain reads; *largest: of what it alone reads, the value that counts most,
 * or OT_NONE. */
static int64_t source_bytes(const chain *c, ot_id *largest)
{
    int64_t sum = 0, most = 0;
    ot_id seen[NODES * 2];
    uint32_t n_seen = 0;
    *largest = OT_NONE;
    for (uint32_t k = 0; k < c->n; k++) {
        const ot_node *n = &c->g->nodes[c->nodes[k]];
        for (uint32_t i = 0; i < n->n_in; i++) {
            const int64_t bytes = n->in[i] == OT_NONE ? 0 : kept_bytes(c, n->in[i]);
            bool again = bytes == 0;
            for (uint32_t j = 0; j < n_seen && !again; j++) again = seen[j] == n->in[i];
            if (again) continue;
            if (n_seen == sizeof seen / sizeof *seen) return INT64_MAX;
            seen[n_seen++] = n->in[i];
            if (bytes > most && is_own(c, n->in[i])) {
                *largest = n->in[i];
                most = bytes;
            }
            if (!ot_add_i64(sum, bytes, &sum)) return INT64_MAX;
        }
    }
    return sum;
}

bool remat_find_chain(const ot_graph *g, ot_id x, uint32_t heavy, remat_chain *best, int64_t *saved)
{
    chain c = {.g = g, .most_heavy = heavy};
    int64_t whole, least;
    ot_id largest;
    if (g->values[x].producer == OT_NONE || !ot_value_bytes(&g->values[x], &whole) ||
        !append(&c, g->values[x].producer))
        return false;
    least = source_bytes(&c, &largest);
    *best = c;
    while (largest != OT_NONE && g->values[largest].producer != OT_NONE &&
           append(&c, g->values[largest].producer)) {
        const int64_t bytes = source_bytes(&c, &largest);
        if (bytes >= least) continue;
        least = bytes;
        *best = c;
    }
    *saved = whole - least;
    return least < whole;
}

/* x of a normalisation in parts, which nobody reads but those; OT_NONE: there is none. */
static ot_id own_x(const ot_graph *g, const ot_decomposed *s)
{
    const ot_node *moments = &g->nodes[s->parts[0]];
    if (moments->op != OT_OP_Moments || moments->dead || s->n_again > 0) return OT_NONE;
    const ot_value *x = &g->values[moments->in[0]];
    for (uint32_t u = 0; u < x->n_uses; u++) {
        bool own = false;
        for (uint32_t k = 0; k < s->n_parts; k++) own |= s->parts[k] == x->uses[u];
        if (!own) return OT_NONE;
    }
    return x->is_output ? OT_NONE : moments->in[0];
}

uint32_t ot_rematerialise_find_norms(const ot_graph *g, ot_remat_norm *out, uint32_t max)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->model->n_decomposed && n < max; k++) {
        const ot_id x = own_x(g, &g->model->decomposed[k]);
        chain c;
        int64_t saved;
        if (x == OT_NONE || !remat_find_chain(g, x, HEAVY, &c, &saved)) continue;
        out[n++] = (ot_remat_norm){.split = k, .bytes = saved, .macs = c.macs};
    }
    return n;
}

/* A copy of chain node k, of which the last to be copied come first in `c`; made[j]: the result
 * of the copy of node j. */
static ot_status copy_node(ot_graph *g, const chain *c, uint32_t k, const char *base, ot_id *made,
                           ot_id *node)
{
    ot_arena *a = g->model->arena;
    const ot_node n = g->nodes[c->nodes[k]];
    const ot_value y = g->values[n.out[0]];
    const char *name = ot_format(a, "%s/%u/%s", base, k, n.op_type),
               *result = ot_format(a, "%s/%u/%s/out", base, k, n.op_type);
    ot_id *in = OT_NEW_N(a, ot_id, n.n_in + 1u);
    if (name) name = ot_fresh_name(g->model, name);
    if (result) result = ot_fresh_name(g->model, result);
    if (!name || !result || !in) return ot_fail_nomem(g->model->diag);
    for (uint32_t i = 0; i < n.n_in; i++) {
        in[i] = n.in[i];
        for (uint32_t j = k + 1; j < c->n && n.in[i] != OT_NONE; j++)
            if (g->nodes[c->nodes[j]].out[0] == n.in[i]) in[i] = made[j];
    }
    made[k] = ot_value_new(g, result, y.dtype, y.rank, y.dims);
    if (made[k] == OT_NONE) return ot_fail_nomem(g->model->diag);
    *node = ot_node_new(g, &(ot_node_def){.op = n.op_type,
                                          .domain = n.domain,
                                          .name = name,
                                          .in = {in, n.n_in},
                                          .out = {&made[k], 1},
                                          .attrs = {n.attrs, n.n_attrs}});
    if (*node == OT_NONE) return ot_fail_nomem(g->model->diag);
    g->nodes[*node].op = n.op;
    g->nodes[*node].version = n.version;
    return OT_OK;
}

/* Readers before what they read: nodes of a chain in the order in which they stand in the graph,
 * backwards. */
static void sort_chain(chain *c)
{
    const ot_graph *g = c->g;
    uint32_t n = 0;
    for (uint32_t p = g->n_order; p-- > 0 && n < c->n;)
        for (uint32_t k = n; k < c->n; k++) {
            if (c->nodes[k] != g->order[p]) continue;
            const ot_id t = c->nodes[n];
            c->nodes[n++] = c->nodes[k];
            c->nodes[k] = t;
            break;
        }
}

ot_status remat_copy_chain(ot_graph *g, remat_chain *c, ot_id x, ot_id *again, const ot_id **copies)
{
    ot_arena *a = g->model->arena;
    ot_id made[NODES], nodes[NODES];
    const char *base = ot_format(a, "tile/again/%s", g->values[x].name);
    if (!base) return ot_fail_nomem(g->model->diag);
    sort_chain(c);
    for (uint32_t k = c->n; k-- > 0;) OT_TRY(copy_node(g, c, k, base, made, &nodes[k]));
    *again = made[0];
    *copies = ot_memdup(a, nodes, c->n * sizeof *nodes);
    return *copies ? OT_OK : ot_fail_nomem(g->model->diag);
}

static ot_status write_again(ot_graph *g, ot_decomposed *s)
{
    const ot_id x = own_x(g, s);
    chain c;
    int64_t saved;
    ot_id again;
    if (x == OT_NONE || !remat_find_chain(g, x, HEAVY, &c, &saved)) return OT_OK;
    OT_TRY(remat_copy_chain(g, &c, x, &again, &s->again));
    for (uint32_t k = 1; k < s->n_parts; k++) {
        const ot_node *n = &g->nodes[s->parts[k]];
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i] == x) n->in[i] = again;
    }
    s->n_again = c.n;
    g->props &= ~(unsigned)(OT_P_ORDER | OT_P_USES);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}

ot_status ot_rematerialise_norms(ot_graph *g, const uint32_t *splits, uint32_t n)
{
    ot_decomposed *all = ot_memdup(g->model->arena, g->model->decomposed,
                                   (g->model->n_decomposed + 1u) * sizeof *all);
    if (!all) return ot_fail_nomem(g->model->diag);
    g->model->decomposed = all;
    for (uint32_t k = 0; k < n; k++)
        if (splits[k] < g->model->n_decomposed) OT_TRY(write_again(g, &all[splits[k]]));
    return OT_OK;
}

ot_status remat_undo_norms(ot_graph *g, const ot_decomposed *s, bool *once)
{
    *once = s->n_again == 0;
    if (*once || g->nodes[s->parts[0]].dead) return OT_OK;
    const ot_id x = g->nodes[s->parts[0]].in[0], again = g->nodes[s->again[0]].out[0];
    for (uint32_t k = 0; k < s->n_again; k++)
        if (g->nodes[s->again[k]].dead) return OT_OK;
    if (g->values[x].producer == OT_NONE || g->nodes[g->values[x].producer].dead) return OT_OK;
    *once = true;
    for (uint32_t k = 0; k < s->n_again; k++) ot_node_remove(g, s->again[k]);
    return ot_replace_uses(g, again, x);
}
