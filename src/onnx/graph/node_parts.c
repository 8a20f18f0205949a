/* Which marked nodes are one part of a graph:
 *
 *     x -> a -> b -> odd -> c -> y     becomes     x -> {a, b} -> odd -> {c} -> y
 *
 * Such nodes are together where values go from one to another and no node of the other kind stands
 * between:
 *
 *     level(n) = most of level(p) over the nodes p that n reads, and one more where n and p are not
 *     of one kind
 *
 * A path between nodes of one kind and level has no other nodes on it, so parts made of connected
 * nodes of a level do not wait for each other. A part without a convolution, a product or tiles is
 * not worth the way: its nodes stay.
 */
#include "node_parts.h"

typedef struct finder {
    const ot_graph *g;
    const bool *in; /* [n_nodes] */
} finder;

bool ot_part_constant(const ot_value *v) { return v->init && !v->overridable; }

ot_id ot_part_read(const ot_node *n, uint32_t k)
{
    return k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
}
uint32_t ot_part_n_reads(const ot_node *n) { return n->n_in + n->n_captured; }

ot_id ot_part_maker(const ot_graph *g, ot_id v)
{
    return v == OT_NONE || ot_part_constant(&g->values[v]) ? OT_NONE : g->values[v].producer;
}

static bool is_tile_node(const ot_node *n) { return strcmp(n->domain, OT_TILE_DOMAIN) == 0; }

static bool is_worth_it(const ot_node *n)
{
    const ot_cost_kind kind = ot_op_cost(n->op);
    return is_tile_node(n) || kind == OT_COST_CONV || kind == OT_COST_GEMM;
}

/* The root of a node's set. */
static uint32_t find(uint32_t *up, uint32_t n)
{
    while (up[n] != n) n = up[n] = up[up[n]];
    return n;
}

/* By the nodes that each node reads; a node that reads none is on the level of the first that
 * reads it, as an Alloc is on its While's. */
static void find_levels(const finder *x, uint32_t *level, uint32_t *first)
{
    const bool *in = x->in;
    for (uint32_t k = 0; k < x->g->n_order; k++) {
        const ot_id id = x->g->order[k];
        const ot_node *n = &x->g->nodes[id];
        first[id] = UINT32_MAX;
        for (uint32_t j = 0; j < ot_part_n_reads(n); j++) {
            const ot_id p = ot_part_maker(x->g, ot_part_read(n, j));
            if (p != OT_NONE)
                level[id] = (uint32_t)ot_max(level[id], (int64_t)level[p] + (in[p] != in[id]));
        }
        for (uint32_t j = 0; j < ot_part_n_reads(n); j++) {
            const ot_id p = ot_part_maker(x->g, ot_part_read(n, j));
            if (p != OT_NONE)
                first[p] = (uint32_t)ot_min(first[p], (int64_t)level[id] - (in[p] != in[id]));
        }
    }
    for (uint32_t k = 0; k < x->g->n_order; k++) {
        const ot_id id = x->g->order[k];
        const ot_node *n = &x->g->nodes[id];
        bool reads = false;
        for (uint32_t j = 0; j < ot_part_n_reads(n); j++)
            reads |= ot_part_maker(x->g, ot_part_read(n, j)) != OT_NONE;
        if (!reads && first[id] != UINT32_MAX) level[id] = first[id];
    }
}

/* up: sets of connected nodes of one kind and level, whose roots come first in the order. */
static void connect(const finder *x, const uint32_t *at, const uint32_t *level, uint32_t *up)
{
    const bool *in = x->in;
    for (uint32_t k = 0; k < x->g->n_order; k++) {
        const ot_id id = x->g->order[k];
        const ot_node *n = &x->g->nodes[id];
        up[id] = id;
        for (uint32_t j = 0; in[id] && j < ot_part_n_reads(n); j++) {
            const ot_id p = ot_part_maker(x->g, ot_part_read(n, j));
            if (p == OT_NONE || !in[p] || level[p] != level[id]) continue;
            const uint32_t a = find(up, p), b = find(up, id);
            if (at[a] < at[b])
                up[b] = a;
            else
                up[a] = b;
        }
    }
}

static int compare_places(const void *a, const void *b)
{
    const ot_part_position *x = a, *y = b;
    if (x->level != y->level) return x->level < y->level ? -1 : 1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

ot_status ot_parts_find(const ot_graph *g, const bool *in, ot_arena *a, ot_diag *d, ot_parts *out)
{
    const finder x = {g, in};
    uint32_t *level = OT_NEW_N(a, uint32_t, g->n_nodes + 1u),
             *up = OT_NEW_N(a, uint32_t, g->n_nodes + 1u);
    uint32_t *at = OT_NEW_N(a, uint32_t, g->n_nodes + 1u),
             *first = OT_NEW_N(a, uint32_t, g->n_nodes + 1u);
    bool *worth = OT_NEW_N(a, bool, g->n_nodes + 1u);
    out->part = OT_NEW_N(a, uint32_t, g->n_nodes + 1u);
    out->places = OT_NEW_N(a, ot_part_position, g->n_order + 1u);
    if (!level || !up || !at || !first || !worth || !out->part || !out->places)
        return ot_fail_nomem(d);
    for (uint32_t k = 0; k < g->n_order; k++) at[g->order[k]] = k;
    find_levels(&x, level, first);
    connect(&x, at, level, up);
    for (uint32_t k = 0; k < g->n_order; k++)
        if (is_worth_it(&g->nodes[g->order[k]])) worth[find(up, g->order[k])] = true;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_id id = g->order[k];
        const uint32_t root = find(up, id);
        const bool inside = in[id] && worth[root];
        out->part[id] = inside ? at[root] : OT_NONE;
        out->places[k] = (ot_part_position){level[id], inside ? at[root] : k, k};
    }
    qsort(out->places, g->n_order, sizeof *out->places, compare_places);
    return OT_OK;
}
