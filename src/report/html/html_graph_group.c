/* The overview's groups: regions closed, and what lies between them collapsed.
 *
 *   a -> [R0: b c] -> d -> e -> [R1: f g] -> h     level of a node: regions on the longest way to
 *                                                  it
 *   0     0          1    1      1            2
 *   {a}   R0         {d e}       R1           {h}  untiled nodes of one level that hang together
 *                                                  are one group
 *
 * An edge inside of a level joins two untiled nodes, which then are in one group, or leads into
 * a region; an edge out of a region leads to a higher level. So no way leads back, and (level,
 * untiled before region) is a topological order.
 */
#include "html_graph.h"

#define SPLIT_MIN 12 /* groups of untiled nodes that are never too many */

typedef struct group_work {
    const ot_facts *f;
    ot_arena *a;
    graph_groups *out;
    uint32_t *in_first, *in; /* edges into node k: in[in_first[k]] .. */
    uint32_t *level, *region_level;
    uint32_t *root; /* [n_nodes] union-find of untiled nodes */
} group_work;

static bool joins_nodes(const ot_facts *f, const ot_fact_edge *e)
{
    return e->from < f->n_nodes && e->to < f->n_nodes;
}

static uint32_t find_root(uint32_t *root, uint32_t k)
{
    while (root[k] != k) k = root[k] = root[root[k]];
    return k;
}

static bool is_region(const ot_facts *f, uint32_t node)
{
    return f->nodes[node].region < f->n_regions;
}

static bool allocate(group_work *w)
{
    const ot_facts *f = w->f;
    w->in_first = OT_NEW_N(w->a, uint32_t, f->n_nodes + 2u);
    w->in = OT_NEW_N(w->a, uint32_t, f->n_edges + 1u);
    w->level = OT_NEW_N(w->a, uint32_t, f->n_nodes + 1u);
    w->region_level = OT_NEW_N(w->a, uint32_t, f->n_regions + 1u);
    w->root = OT_NEW_N(w->a, uint32_t, f->n_nodes + 1u);
    w->out->of_node = OT_NEW_N(w->a, uint32_t, f->n_nodes + 1u);
    w->out->groups = OT_NEW_N(w->a, graph_group, (size_t)f->n_nodes + f->n_regions + 2);
    w->out->flows = OT_NEW_N(w->a, graph_flow, f->n_edges + 1u);
    return w->in_first && w->in && w->level && w->region_level && w->root && w->out->of_node &&
           w->out->groups && w->out->flows;
}

static void group_by_target(group_work *w)
{
    const ot_facts *f = w->f;
    for (uint32_t e = 0; e < f->n_edges; e++)
        if (joins_nodes(f, &f->edges[e])) w->in_first[f->edges[e].to + 2]++;
    for (uint32_t k = 2; k <= f->n_nodes + 1; k++) w->in_first[k] += w->in_first[k - 1];
    for (uint32_t e = 0; e < f->n_edges; e++)
        if (joins_nodes(f, &f->edges[e])) w->in[w->in_first[f->edges[e].to + 1]++] = e;
}

/* A region is an interval of the order, less nodes that it does not feed, so its level is known
 * when its readers come. */
static void find_levels(group_work *w)
{
    const ot_facts *f = w->f;
    for (uint32_t k = 0; k < f->n_nodes; k++) {
        uint32_t level = 0, region = f->nodes[k].region;
        for (uint32_t j = w->in_first[k]; j < w->in_first[k + 1]; j++) {
            uint32_t from = f->edges[w->in[j]].from, source = f->nodes[from].region;
            if (is_region(f, from) && source == region) continue;
            uint32_t least = is_region(f, from) ? w->region_level[source] + 1 : w->level[from];
            if (level < least) level = least;
        }
        w->level[k] = level;
        if (is_region(f, k) && w->region_level[region] < level) w->region_level[region] = level;
    }
}

static void join_untiled(group_work *w)
{
    const ot_facts *f = w->f;
    for (uint32_t k = 0; k < f->n_nodes; k++) w->root[k] = k;
    for (uint32_t e = 0; e < f->n_edges; e++) {
        const ot_fact_edge *x = &f->edges[e];
        if (!joins_nodes(f, x) || is_region(f, x->from) || is_region(f, x->to) ||
            w->level[x->from] != w->level[x->to])
            continue;
        uint32_t a = find_root(w->root, x->from), b = find_root(w->root, x->to);
        if (a < b)
            w->root[b] = a;
        else
            w->root[a] = b;
    }
}

/* Too many of them say nothing: then a level has one. */
static ot_status join_levels(group_work *w)
{
    const ot_facts *f = w->f;
    uint32_t n = 0, *first = OT_NEW_N(w->a, uint32_t, f->n_regions + 2u);
    if (!first) return OT_E_NOMEM;
    for (uint32_t k = 0; k < f->n_nodes; k++) n += !is_region(f, k) && w->root[k] == k;
    if (n <= SPLIT_MIN || n / 2 <= f->n_regions) return OT_OK;
    for (uint32_t k = 0; k <= f->n_regions; k++) first[k] = OT_NONE;
    for (uint32_t k = 0; k < f->n_nodes; k++) {
        if (is_region(f, k) || w->root[k] != k || w->level[k] > f->n_regions) continue;
        if (first[w->level[k]] == OT_NONE) first[w->level[k]] = k;
        w->root[k] = first[w->level[k]];
    }
    return OT_OK;
}

static int by_place(const void *a, const void *b)
{
    const graph_group *x = a, *y = b;
    if (x->kind == GRAPH_INPUTS || y->kind == GRAPH_INPUTS)
        return (y->kind == GRAPH_INPUTS) - (x->kind == GRAPH_INPUTS);
    if (x->kind == GRAPH_OUTPUTS || y->kind == GRAPH_OUTPUTS)
        return (x->kind == GRAPH_OUTPUTS) - (y->kind == GRAPH_OUTPUTS);
    if (x->level != y->level) return x->level < y->level ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Groups of nodes, numbered in order; of_node tells each node's. The inputs are group 0, the
 * outputs the last. */
static ot_status make_groups(group_work *w)
{
    const ot_facts *f = w->f;
    graph_groups *out = w->out;
    uint32_t *number = OT_NEW_N(w->a, uint32_t, f->n_nodes + 1u);
    if (!number) return OT_E_NOMEM;
    out->groups[out->n++] = (graph_group){.kind = GRAPH_INPUTS};
    out->groups[out->n++] = (graph_group){.kind = GRAPH_OUTPUTS};
    for (uint32_t k = 0; k < f->n_nodes; k++) {
        bool tiled = is_region(f, k);
        uint32_t region = f->nodes[k].region;
        if (tiled ? f->regions[region].n_nodes == 0 || f->regions[region].nodes[0] != k
                  : w->root[k] != k)
            continue;
        out->groups[out->n++] = (graph_group){.kind = tiled ? GRAPH_REGION : GRAPH_UNTILED,
                                              .region = tiled ? region : OT_NONE,
                                              .level = tiled ? w->region_level[region]
                                                             : w->level[k],
                                              .first = k};
    }
    qsort(out->groups, out->n, sizeof *out->groups, by_place);
    for (uint32_t g = 1; g + 1 < out->n; g++) number[out->groups[g].first] = g;
    for (uint32_t k = 0; k < f->n_nodes; k++) {
        const ot_fact_node *n = &f->nodes[k];
        uint32_t g =
            number[is_region(f, k) ? f->regions[n->region].nodes[0] : find_root(w->root, k)];
        graph_group *group = &out->groups[g];
        out->of_node[k] = g;
        group->n++;
        group->time += n->time > 0 ? n->time : 0;
        if (n->barrier < f->n_barriers && group->n_barriers++ == 0) group->barrier = n->barrier;
    }
    return OT_OK;
}

/* ---- what flows between them ---- */

typedef struct crossing {
    uint32_t from, to, edge; /* groups */
    uint32_t node;           /* that the tensor comes from, or OT_NONE */
    const char *value;
} crossing;

static int by_tensor(const void *a, const void *b)
{
    const crossing *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return strcmp(x->value, y->value);
}

/* Tensors that cross from group to group, each once however many nodes of the group read it. */
static ot_status make_flows(group_work *w)
{
    const ot_facts *f = w->f;
    graph_groups *out = w->out;
    crossing *list = OT_NEW_N(w->a, crossing, f->n_edges + 1u);
    uint32_t n = 0;
    if (!list) return OT_E_NOMEM;
    for (uint32_t e = 0; e < f->n_edges; e++) {
        const ot_fact_edge *x = &f->edges[e];
        uint32_t from = x->from < f->n_nodes ? out->of_node[x->from] : 0;
        uint32_t to = x->to < f->n_nodes ? out->of_node[x->to] : out->n - 1;
        if (from != to) list[n++] = (crossing){from, to, e, x->from, x->value ? x->value : ""};
    }
    qsort(list, n, sizeof *list, by_tensor);
    for (uint32_t k = 0; k < n; k++) {
        graph_flow *last = out->n_flows ? &out->flows[out->n_flows - 1] : NULL;
        double bytes = f->edges[list[k].edge].bytes;
        if (k && by_tensor(&list[k - 1], &list[k]) == 0) continue;
        if (!last || last->from != list[k].from || last->to != list[k].to) {
            last = &out->flows[out->n_flows++];
            *last = (graph_flow){.from = list[k].from, .to = list[k].to};
        }
        last->n++;
        last->bytes += bytes > 0 ? bytes : 0;
    }
    return OT_OK;
}

/* Distinct graph inputs, and edges to the outputs. */
static ot_status count_boundary(group_work *w)
{
    const ot_facts *f = w->f;
    ot_map *seen = ot_map_new(w->a);
    if (!seen) return OT_E_NOMEM;
    for (uint32_t e = 0; e < f->n_edges; e++) {
        const ot_fact_edge *x = &f->edges[e];
        const char *value = x->value ? x->value : "";
        if (x->to >= f->n_nodes) w->out->groups[w->out->n - 1].n++;
        if (x->from < f->n_nodes || ot_map_get(seen, value) != OT_NONE) continue;
        if (!ot_map_put(seen, value, 1)) return OT_E_NOMEM;
        w->out->groups[0].n++;
    }
    return OT_OK;
}

ot_status graph_group_nodes(const ot_facts *f, ot_arena *a, graph_groups *out)
{
    group_work w = {.f = f, .a = a, .out = out};
    *out = (graph_groups){0};
    if (!allocate(&w)) return OT_E_NOMEM;
    group_by_target(&w);
    find_levels(&w);
    join_untiled(&w);
    OT_TRY(join_levels(&w));
    OT_TRY(make_groups(&w));
    OT_TRY(make_flows(&w));
    return count_boundary(&w);
}
