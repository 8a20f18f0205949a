/* Facts of a planned model: the graph as the planner saw it, with what was decided for every part.
 *
 *   plan.detail.nodes --> nodes, depth; values between them --> edges; plan.regions, barriers,
 *   refused --> the same by index
 *
 * Nodes are those that run (weights and shape arithmetic are left out), in topological order;
 * every list refers to them by index.
 */
#include "tiling/lower/lowering.h"
#include "facts_build.h"

#define ROUNDING 1e-3 /* of sums of bytes: no more above a figure is above it */

const char *ot_fact_label(const ot_graph *g, const ot_node *n)
{
    if (n->name && *n->name) return n->name;
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) return g->values[n->out[k]].name;
    return n->op_type;
}

ot_bound ot_facts_bound(double compute, double memory, double overhead)
{
    if (overhead > compute && overhead > memory) return OT_BOUND_OVERHEAD;
    return compute >= memory ? OT_BOUND_COMPUTE : OT_BOUND_BANDWIDTH;
}

double ot_facts_operations(const ot_graph *g, const ot_node_cost *c)
{
    const ot_node *n = &g->nodes[c->node];
    double elems = 0;
    if (c->macs > 0) return c->macs;
    if (ot_op_cost(n->op) == OT_COST_FREE || ot_op_cost(n->op) == OT_COST_MOVE) return 0;
    for (uint32_t k = 0; k < n->n_out; k++) {
        int64_t e;
        if (n->out[k] != OT_NONE && ot_value_elems(&g->values[n->out[k]], &e)) elems += (double)e;
    }
    return elems;
}

/* "1x64x56x56"; unknown dimensions are "?". */
static const char *shape_text(ot_arena *a, const ot_value *v)
{
    char text[24 * OT_RANK_MAX + 1];
    size_t n = 0;
    text[0] = '\0';
    for (int32_t k = 0; v->rank > 0 && k < v->rank && k < OT_RANK_MAX; k++) {
        if (v->dims[k] >= 0)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld", k ? "x" : "",
                                  (long long)v->dims[k]);
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "%s?", k ? "x" : "");
    }
    return ot_strdup(a, text);
}

static double bytes_or_absent(const ot_value *v)
{
    int64_t b;
    return ot_value_bytes(v, &b) ? (double)b : OT_ABSENT;
}

/* ---- nodes and edges ---- */

static bool is_unsized(const ot_graph *g, ot_id v)
{
    return v != OT_NONE && bytes_or_absent(&g->values[v]) < 0;
}

/* What follows from sizes that are not known is no figure. */
static void leave_unknown(const ot_graph *g, const ot_node *n, ot_fact_node *to)
{
    bool reads = false, makes = false;
    for (uint32_t k = 0; k < n->n_in; k++) reads |= is_unsized(g, n->in[k]);
    for (uint32_t k = 0; k < n->n_out; k++) makes |= is_unsized(g, n->out[k]);
    if (makes) to->out_bytes = OT_ABSENT;
    if (reads || makes) to->macs = to->traffic = to->compute = to->memory = to->time = OT_ABSENT;
}

/* Elements of a weight: a constant in the file or a folded one, but for shapes and indices. */
static double parameters_of(const fact_source *x, ot_id v)
{
    int64_t n;
    if (v == OT_NONE) return 0;
    const ot_value *val = &x->g->values[v];
    const bool made = val->producer != OT_NONE && x->node_of[val->producer] != OT_NONE;
    if ((!val->init && (made || val->producer == OT_NONE)) || !val->is_tensor) return 0;
    if (val->dtype == OT_I64 || val->dtype == OT_BOOL || val->dtype == OT_STRING) return 0;
    return ot_value_elems(val, &n) ? (double)n : 0;
}

/* Of a node, and into the total what no node before it read. */
static double add_parameters(ot_facts *f, const fact_source *x, const ot_node *n, bool *counted)
{
    double sum = 0;
    for (uint32_t k = 0; k < n->n_in + n->n_captured; k++) {
        const ot_id v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
        const double elems = parameters_of(x, v);
        sum += elems;
        if (elems > 0 && !counted[v]) f->totals.parameters += elems;
        if (elems > 0) counted[v] = true;
    }
    return sum;
}

static ot_status add_nodes(ot_facts *f, const fact_source *x)
{
    const ot_graph *g = x->g;
    const ot_plan_detail *d = x->p->detail;
    bool *counted = OT_NEW_N(f->arena, bool, g->n_values + 1u);
    f->nodes = OT_NEW_N(f->arena, ot_fact_node, d->n_nodes + 1u);
    if (!f->nodes || !counted) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < d->n_nodes; k++) {
        const ot_node_cost *c = &d->nodes[k];
        const ot_node *n = &g->nodes[c->node];
        ot_fact_node *to = &f->nodes[k];
        *to = (ot_fact_node){.name = ot_strdup(f->arena, ot_fact_label(g, n)),
                             .op = ot_strdup(f->arena, n->op_type),
                             .shape = "",
                             .region = OT_NONE,
                             .barrier = OT_NONE,
                             .refusal = OT_NONE,
                             .is_fused = c->is_fused,
                             .macs = c->macs,
                             .traffic = c->traffic,
                             .compute = c->compute,
                             .memory = c->memory,
                             .overhead = c->overhead,
                             .time = c->time,
                             .measured = OT_ABSENT,
                             .bound = ot_facts_bound(c->compute, c->memory, c->overhead)};
        for (uint32_t j = 0; j < n->n_out; j++) {
            if (n->out[j] == OT_NONE) continue;
            double b = bytes_or_absent(&g->values[n->out[j]]);
            if (!*to->shape) to->shape = shape_text(f->arena, &g->values[n->out[j]]);
            if (b > 0) to->out_bytes += b;
        }
        to->parameters = add_parameters(f, x, n, counted);
        leave_unknown(g, n, to);
        if (!to->name || !to->op || !to->shape) return ot_fail_nomem(g->model->diag);
        x->node_of[c->node] = k;
    }
    f->n_nodes = d->n_nodes;
    return OT_OK;
}

/* Names and operators of all nodes that run or are folded: what the terminal shows needs no
 * figures. */
static ot_status name_nodes(ot_facts *f, const fact_source *x)
{
    const ot_graph *g = x->g;
    f->nodes = OT_NEW_N(f->arena, ot_fact_node, g->n_order + 1u);
    if (!f->nodes) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        f->nodes[k] = (ot_fact_node){.name = ot_strdup(f->arena, ot_fact_label(g, n)),
                                     .op = ot_strdup(f->arena, n->op_type),
                                     .shape = "",
                                     .region = OT_NONE,
                                     .barrier = OT_NONE,
                                     .refusal = OT_NONE,
                                     .measured = OT_ABSENT};
        if (!f->nodes[k].name || !f->nodes[k].op) return ot_fail_nomem(g->model->diag);
        x->node_of[g->order[k]] = k;
    }
    f->n_nodes = g->n_order;
    return OT_OK;
}

static ot_status add_edge(ot_facts *f, const fact_source *x, size_t *cap, uint32_t from,
                          uint32_t to, ot_id v)
{
    const ot_value *val = &x->g->values[v];
    ot_fact_edge e = {from, to, ot_strdup(f->arena, val->name), bytes_or_absent(val), false};
    if (!e.value || !OT_PUSH(f->arena, f->edges, f->n_edges, *cap, e))
        return ot_fail_nomem(x->g->model->diag);
    if (from != OT_NONE && to != OT_NONE && f->nodes[to].depth < f->nodes[from].depth + 1)
        f->nodes[to].depth = f->nodes[from].depth + 1;
    return OT_OK;
}

/* A node that runs, a graph input, or nothing worth an edge. */
static bool edge_source(const fact_source *x, ot_id v, uint32_t *from)
{
    const ot_value *val = &x->g->values[v];
    *from = val->producer == OT_NONE ? OT_NONE : x->node_of[val->producer];
    return *from != OT_NONE || (val->is_input && !val->init);
}

static ot_status add_edges(ot_facts *f, const fact_source *x)
{
    const ot_graph *g = x->g;
    size_t cap = 0;
    uint32_t from;
    for (uint32_t k = 0; k < f->n_nodes; k++) {
        const ot_node *n = &g->nodes[x->p->detail->nodes[k].node];
        for (uint32_t j = 0; j < n->n_in + n->n_captured; j++) {
            ot_id v = j < n->n_in ? n->in[j] : n->captured[j - n->n_in];
            if (v != OT_NONE && edge_source(x, v, &from)) OT_TRY(add_edge(f, x, &cap, from, k, v));
        }
    }
    for (uint32_t k = 0; k < g->n_outputs; k++)
        if (g->outputs[k] != OT_NONE && edge_source(x, g->outputs[k], &from) && from != OT_NONE)
            OT_TRY(add_edge(f, x, &cap, from, OT_NONE, g->outputs[k]));
    return OT_OK;
}

/* ---- what was decided ---- */

/* Indices of the facts' nodes; nodes that do not run (none are expected) are left out. */
static const uint32_t *indices(ot_facts *f, const fact_source *x, const ot_id *ids, uint32_t *n)
{
    uint32_t *list = OT_NEW_N(f->arena, uint32_t, *n + 1u), m = 0;
    for (uint32_t k = 0; list && k < *n; k++)
        if (x->node_of[ids[k]] != OT_NONE) list[m++] = x->node_of[ids[k]];
    *n = m;
    return list;
}

/* Sums over the region's nodes. Tiled: compute grows with what is recomputed, memory is what
 * still passes through slow memory, and the rest of the predicted time is overhead. */
static void region_bounds(const ot_facts *f, const fact_source *x, ot_fact_region *r)
{
    double compute = 0, memory = 0, overhead = 0;
    for (uint32_t k = 0; k < r->n_nodes; k++) {
        compute += f->nodes[r->nodes[k]].compute;
        memory += f->nodes[r->nodes[k]].memory;
        overhead += f->nodes[r->nodes[k]].overhead;
    }
    r->bound_untiled = ot_facts_bound(compute, memory, overhead);
    compute *= r->mac_ratio;
    memory = r->traffic / x->t->bw_slow;
    overhead = r->time_tiled - (compute > memory ? compute : memory);
    r->bound = ot_facts_bound(compute, memory, overhead);
}

/* Nodes of the region that reduce what it cuts. */
static ot_status add_sums(ot_facts *f, const fact_source *x, const ot_region *from,
                          ot_fact_region *to)
{
    ot_fact_sum *sums = OT_NEW_N(f->arena, ot_fact_sum, from->n_nodes + 1u);
    if (!sums) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t k = 0; k < from->n_nodes; k++) {
        bool is_sum = false;
        for (uint32_t d = 0; d < from->n_dims; d++)
            is_sum |= from->nodes[k].lead_axis[d] == OT_AX_SUM;
        if (is_sum && x->node_of[from->nodes[k].node] != OT_NONE)
            sums[to->n_sums++].node = x->node_of[from->nodes[k].node];
    }
    to->sums = sums;
    return OT_OK;
}

/* What fits the cache and what streams through it, in words: a share of a soft capacity tells
 * nobody anything. NULL: no memory. */
static const char *residence(ot_arena *a, const ot_fact_region *r)
{
    char cache[32], all[32], weights[32], tile[32];
    int64_t tiles = r->working_set - (r->weights_stay ? r->weights : 0);
    ot_format_bytes((double)r->capacity, cache, sizeof cache);
    ot_format_bytes((double)r->weights, weights, sizeof weights);
    ot_format_bytes((double)tiles, tile, sizeof tile);
    bool fits = r->working_set <= r->capacity;
    if (fits && (r->weights_stay || r->weights == 0))
        return ot_format(a, "fits the %s cache", cache);
    if (fits)
        return ot_format(a,
                         "a tile fits the %s cache; %s of weights stream through it for every tile",
                         cache, weights);
    ot_format_bytes((double)tiles + (double)r->weights, all, sizeof all);
    if (r->weights == 0) return ot_format(a, "%s stream through the %s cache", all, cache);
    return ot_format(a, "%s stream through the %s cache: %s of weights, %s of a tile's values", all,
                     cache, weights, tile);
}

static const char *placement(ot_arena *a, const ot_fact_region *r)
{
    char bytes[32];
    ot_format_bytes((double)r->arena, bytes, sizeof bytes);
    if (r->reuse_level == OT_LEVEL_NONE) return ot_format(a, "in %s, nothing shares memory", bytes);
    char stall[32];
    ot_format_seconds(r->stall, stall, sizeof stall);
    return ot_format(a, "in %s by %s, level %u, %u pair%s across pipes%s%s", bytes, r->placed_by,
                     r->reuse_level, r->cross_pipe, r->cross_pipe == 1 ? "" : "s",
                     r->stall > 0 ? ", which stall " : "", r->stall > 0 ? stall : "");
}

/* Buffers of the fast memory with their offsets. */
static bool copy_places(ot_arena *a, const ot_kernel *k, ot_fact_region *to)
{
    ot_fact_buffer *list = OT_NEW_N(a, ot_fact_buffer, k->n_values + 1u);
    to->places = list;
    for (uint32_t v = 0; list && v < k->n_values; v++) {
        const ot_tk_value *x = &k->values[v];
        if (x->kind != OT_TK_BUFFER || x->n_offsets == 0) continue;
        ot_fact_buffer p = {ot_strdup(a, x->name), x->bytes,
                            ot_memdup(a, x->offsets, x->n_offsets * sizeof *x->offsets),
                            x->n_offsets};
        if (!p.name || !p.offsets) return false;
        list[to->n_places++] = p;
    }
    return list != NULL;
}

/* 1 + the only pipe of the set; 0: several. */
static uint32_t only_pipe(uint32_t pipes)
{
    for (uint32_t p = 0; p < OT_PIPE_COUNT; p++)
        if (pipes == 1u << p) return p + 1;
    return 0;
}

/* A box for each slot of a buffer while it is alive. NULL when memory ran out. */
static ot_fact_box *place_boxes(ot_arena *a, const ot_kernel *k, const ot_lifetimes *l,
                                uint32_t *count)
{
    size_t n = 0;
    for (uint32_t b = 0; b < l->n_buffers; b++) n += (size_t)l->buffers[b].n_live * OT_TK_MULTI_MAX;
    ot_fact_box *boxes = OT_NEW_N(a, ot_fact_box, n + 1);
    *count = 0;
    for (uint32_t b = 0; boxes && b < l->n_buffers; b++) {
        const ot_buffer *u = &l->buffers[b];
        const ot_tk_value *x = &k->values[u->values[0]];
        for (uint32_t slot = 0; slot < x->n_offsets; slot++) {
            const char *name = x->n_offsets > 1 ? ot_format(a, "%s[%u]", x->name, slot)
                                                : ot_strdup(a, x->name);
            if (!name) return NULL;
            for (uint32_t j = 0; j < u->n_live; j++)
                boxes[(*count)++] = (ot_fact_box){
                    name,    u->live[j].lower,   u->live[j].upper, x->offsets[slot],
                    u->size, only_pipe(u->pipes)};
        }
    }
    return boxes;
}

/* The planned kernel as a map of the fast memory: a step is a statement. */
static ot_status add_place_map(ot_facts *f, const fact_source *x, const ot_kernel *k,
                               const ot_region_memory *m, ot_fact_region *to)
{
    ot_diag *d = x->g->model->diag;
    ot_lifetimes *l = NULL;
    ot_fact_map *map = OT_NEW(f->arena, ot_fact_map);
    const ot_lifetime_options held = {.hold_multi = true}; /* as it was planned */
    if (!map) return ot_fail_nomem(d);
    const ot_tk_machine machine = ot_target_tk_machine(x->t);
    OT_TRY(ot_lifetimes_find(k, k->name, &machine, &held, d, &l));
    *map = (ot_fact_map){
        .id = ot_format(f->arena, "region-%u", to->id),
        .title = ot_format(f->arena, "Region r%u: a tile's buffers, %s", to->id, to->placement),
        .time_label = "statement of the region's kernel",
        .steps = k->n_stmts,
        .height = m->arena,
        .lower_bound = m->lower_bound,
        .capacity = x->t->fast_bytes,
        .proved = m->arena == m->lower_bound};
    map->boxes = place_boxes(f->arena, k, l, &map->n_boxes);
    ot_lifetimes_free(l);
    to->map = map;
    return map->id && map->title && map->boxes ? OT_OK : ot_fail_nomem(d);
}

/* Where the buffers are put, on targets whose pipes run side by side. */
static ot_status add_places(ot_facts *f, const fact_source *x, const ot_region *from,
                            ot_fact_region *to)
{
    ot_region_memory m;
    ot_kernel *k = NULL;
    to->placement = to->placed_by = "";
    if (!x->t->double_buffer) return OT_OK;
    OT_TRY(ot_region_plan_memory(x->g, from, x->t, x->g->model->diag, &m, &k));
    to->arena = m.arena;
    to->placed_by = ot_mem_mode_name(m.mode);
    to->reuse_level = m.level;
    to->cross_pipe = m.cross_pipe;
    to->stall = m.stall;
    to->placement = placement(f->arena, to);
    bool ok = to->placement && copy_places(f->arena, k, to);
    ot_status s = ok ? OT_OK : ot_fail_nomem(x->g->model->diag);
    if (s == OT_OK && f->complete) s = add_place_map(f, x, k, &m, to);
    ot_kernel_free(k);
    return s;
}

static ot_status add_region(ot_facts *f, const fact_source *x, uint32_t k)
{
    const ot_region *from = &x->p->regions[k];
    ot_fact_region *to = &f->regions[k];
    ot_id *ids = OT_NEW_N(f->arena, ot_id, from->n_nodes + 1u);
    if (!ids) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t j = 0; j < from->n_nodes; j++) ids[j] = from->nodes[j].node;
    *to = (ot_fact_region){.id = from->id,
                           .n_nodes = from->n_nodes,
                           .n_dims = from->n_dims,
                           .form = ot_form_name(from->form),
                           .working_set = from->working_set,
                           .working_set_bound = from->working_set_bound,
                           .capacity = x->t->fast_bytes,
                           .weights = from->weight_bytes,
                           .weights_stay = from->weights_stay,
                           .time_untiled = from->time_untiled,
                           .time_tiled = from->time_tiled,
                           .benefit = from->benefit,
                           .mac_ratio = from->mac_ratio,
                           .traffic_untiled = from->traffic_untiled,
                           .traffic = from->traffic,
                           .measured_untiled = OT_ABSENT,
                           .measured = OT_ABSENT,
                           .error = OT_ABSENT,
                           .stall = OT_ABSENT};
    to->fill = to->capacity > 0 ? (double)to->working_set / (double)to->capacity : OT_ABSENT;
    to->nodes = indices(f, x, ids, &to->n_nodes);
    if (!to->nodes) return ot_fail_nomem(x->g->model->diag);
    OT_TRY(add_sums(f, x, from, to));
    for (uint32_t d = 0; d < from->n_dims; d++) {
        const ot_rvalue *sink = &from->values[from->dims[d].sink];
        to->axes[d] = ot_axis_name(x->g->values[sink->value].rank, sink->axis[d]);
        to->tiles[d] = from->dims[d].n_tiles;
        to->tile[d] = from->dims[d].tile;
        to->extent[d] = from->dims[d].extent;
    }
    for (uint32_t j = 0; j < to->n_nodes; j++) f->nodes[to->nodes[j]].region = k;
    to->residence = ot_target_hard_limit(x->t) ? "" : residence(f->arena, to);
    if (!to->residence) return ot_fail_nomem(x->g->model->diag);
    OT_TRY(add_places(f, x, from, to));
    OT_TRY(ot_facts_add_cores(f, x->g, x->t, from, to));
    if (!f->complete) return OT_OK;
    region_bounds(f, x, to);
    return ot_facts_candidates(f, x, k);
}

static ot_status add_regions(ot_facts *f, const fact_source *x)
{
    f->regions = OT_NEW_N(f->arena, ot_fact_region, x->p->n_regions + 1u);
    if (!f->regions) return ot_fail_nomem(x->g->model->diag);
    f->n_regions = x->p->n_regions;
    for (uint32_t k = 0; k < f->n_regions; k++) OT_TRY(add_region(f, x, k));
    for (uint32_t k = 0; k < f->n_edges; k++) {
        ot_fact_edge *e = &f->edges[k];
        e->in_tiles = e->from != OT_NONE && e->to != OT_NONE &&
                      f->nodes[e->from].region != OT_NONE &&
                      f->nodes[e->from].region == f->nodes[e->to].region;
    }
    return OT_OK;
}

/* A value that is also read elsewhere is stored whole: then no edge of it exists in tiles only. */
static ot_status mark_stored(ot_facts *f, const fact_source *x)
{
    ot_map *stored = ot_map_new(f->arena);
    if (!stored) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t k = 0; k < x->p->n_regions; k++) {
        const ot_region *r = &x->p->regions[k];
        for (uint32_t v = r->n_inputs; v < r->n_values; v++)
            if (r->values[v].is_output &&
                !ot_map_put(stored, x->g->values[r->values[v].value].name, 1))
                return ot_fail_nomem(x->g->model->diag);
    }
    for (uint32_t k = 0; k < f->n_edges; k++)
        if (ot_map_get(stored, f->edges[k].value) != OT_NONE) f->edges[k].in_tiles = false;
    return OT_OK;
}

static ot_status add_barriers(ot_facts *f, const fact_source *x)
{
    f->barriers = OT_NEW_N(f->arena, ot_fact_barrier, x->p->n_barriers + 1u);
    f->refusals = OT_NEW_N(f->arena, ot_fact_refusal, x->p->n_refused + 1u);
    if (!f->barriers || !f->refusals) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t k = 0; k < x->p->n_barriers; k++) {
        const ot_barrier *b = &x->p->barriers[k];
        uint32_t node = x->node_of[b->node];
        if (node == OT_NONE) continue;
        f->nodes[node].barrier = f->n_barriers;
        ot_fact_barrier *to = &f->barriers[f->n_barriers++];
        *to = (ot_fact_barrier){node, ot_reason_name(b->reason.why),
                                ot_reason_text(f->arena, b->reason), ot_reason_lift(b->reason.why)};
        if (!to->reason) return ot_fail_nomem(x->g->model->diag);
    }
    for (uint32_t k = 0; k < x->p->n_refused; k++) {
        const ot_refusal *r = &x->p->refused[k];
        uint32_t n = r->n;
        const uint32_t *nodes = indices(f, x, r->nodes, &n);
        const char *reason = ot_reason_text(f->arena, r->reason);
        if (!nodes || !reason) return ot_fail_nomem(x->g->model->diag);
        for (uint32_t j = 0; j < n; j++) f->nodes[nodes[j]].refusal = k;
        f->refusals[f->n_refusals++] = (ot_fact_refusal){nodes, n, ot_reason_name(r->reason.why),
                                                         reason, ot_reason_lift(r->reason.why)};
    }
    return OT_OK;
}

/* Bytes of everything that nodes make while running; constants and unknown shapes do not count. */
static double activation_sum(const ot_graph *g)
{
    double sum = 0;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        for (uint32_t j = 0; j < n->n_out; j++) {
            int64_t bytes;
            if (n->out[j] == OT_NONE) continue;
            const ot_value *v = &g->values[n->out[j]];
            if (!v->is_const && v->is_tensor && ot_value_bytes(v, &bytes)) sum += (double)bytes;
        }
    }
    return sum;
}

/* The limit is none where a prediction is below it: what stays in a cache is not moved, and the
 * cost model takes some inputs for read that are made beforehand. */
static double least_moved(const ot_plan *p)
{
    const double a = p->untiled.traffic_bytes, b = p->tiled.traffic_bytes, lower = a < b ? a : b;
    if (p->compulsory_bytes > lower * (1 + ROUNDING)) return OT_ABSENT;
    return p->compulsory_bytes < lower ? p->compulsory_bytes : lower;
}

static ot_status add_totals(ot_facts *f, const fact_source *x)
{
    f->totals = (ot_fact_totals){.untiled = x->p->untiled,
                                 .growth_title = x->t->runtime->growth_title,
                                 .holder = x->t->runtime->holder,
                                 .predicts_growth = ot_runtime_simulates(x->t->runtime),
                                 .predicts_process = ot_runtime_grows(x->t->runtime),
                                 .tiled = x->p->tiled,
                                 .compulsory_bytes = least_moved(x->p),
                                 .activation_sum = activation_sum(x->g),
                                 .n_live_nodes = x->g->n_order,
                                 .memory_budget = x->o->memory_budget,
                                 .max_tensor = x->o->max_tensor,
                                 .dynamic_dims = x->g->model->dynamic_dims != NULL,
                                 .dynamic_untiled = x->g->model->dynamic_dims &&
                                                    !ot_runtime_sequences(x->t->runtime),
                                 .defer_from = x->p->defer_from,
                                 .unpacked_from = x->p->unpacked_from,
                                 .piece_bytes = x->p->piece_bytes,
                                 .first_block = x->p->first_block,
                                 .n_plain = x->p->n_plain,
                                 .in_branch = x->p->in_branch,
                                 .hides_extents = x->p->hides_extents,
                                 .data_file = x->p->data_file,
                                 .narrowed_nodes = x->p->narrowed_nodes,
                                 .folded_nodes = x->p->folded_nodes,
                                 .unread_macs = x->p->unread_macs,
                                 .unread_bytes = x->p->unread_bytes};
    return ot_graph_arena(x->g, &f->totals.activations, &f->totals.n_unsized);
}

static ot_status fill(ot_facts *f, fact_source *x, const char *model, const char *output)
{
    const ot_graph *g = x->g;
    ot_diag *d = g->model->diag;
    x->node_of = OT_NEW_N(f->arena, uint32_t, g->n_nodes + 1u);
    f->model = ot_strdup(f->arena, model ? model : "");
    f->output = output ? ot_strdup(f->arena, output) : NULL;
    f->target = ot_strdup(f->arena, x->t->name);
    if (!x->node_of || !f->model || (output && !f->output) || !f->target) return ot_fail_nomem(d);
    for (uint32_t k = 0; k < g->n_nodes; k++) x->node_of[k] = OT_NONE;
    f->runtime = x->t->runtime->name;
    f->goal = x->o->goal == OT_GOAL_MEMORY ? "memory" : "time";
    f->fast_bytes = x->t->fast_bytes;
    OT_TRY(add_totals(f, x));
    f->unknown_sizes = ot_unknown_sizes(g, f->arena);
    if (!f->unknown_sizes) return ot_fail_nomem(d);
    OT_TRY(f->complete ? add_nodes(f, x) : name_nodes(f, x));
    if (f->complete) OT_TRY(add_edges(f, x));
    OT_TRY(add_regions(f, x));
    if (f->complete) OT_TRY(mark_stored(f, x));
    OT_TRY(add_barriers(f, x));
    if (!f->complete) return OT_OK;
    OT_TRY(ot_facts_figures(f, x));
    OT_TRY(ot_facts_explain(f, x));
    return ot_facts_add_maps(f, g, x->p);
}

ot_status ot_facts_from_plan(const ot_graph *g, const ot_plan *p, const ot_target *t,
                             const ot_plan_options *o, const char *model, const char *output,
                             ot_fact_kind kind, ot_facts **out)
{
    ot_facts *f;
    fact_source x = {.g = g, .p = p, .t = t, .o = o};
    *out = NULL;
    OT_TRY(ot_facts_new(kind, g->model->diag, &f));
    f->complete = p->detail != NULL;
    ot_status st = fill(f, &x, model, output);
    if (st == OT_OK)
        *out = f;
    else
        ot_facts_free(f);
    return st;
}
