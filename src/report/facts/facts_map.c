/* The facts' memory maps: where the activations lie while the untiled model runs, and while the
 * planned one does.
 *
 *   untiled                            planned: a region is one step, which holds its working set
 *   bytes ^                            bytes ^
 *         |      +---+                       |
 *         |  +---+ b +---+                   |      +---+
 *         +--+ a |   | c +--+                +------+ws +------+
 *         +--+---+---+---+--+-> step         +--+---+---+---+--+-> step
 *                                               a      R      c
 *
 * Both are planned by the same code with the same bounded effort (tiling/lower/graph_arena.c).
 * Graph inputs lie there from before the first step, outputs to after the last one. Values that
 * exist in tiles only are a part of their region's working set in the second map.
 */
#include "facts.h"

#define ALIGNMENT 64

/* Steps of the planned model: nodes outside of regions, and regions. */
typedef struct step_work {
    const ot_graph *g;
    const ot_plan *p;
    ot_arena *a;
    uint32_t *region_of; /* [n_nodes] index into plan.regions, or OT_NONE */
    uint32_t *step_of;   /* [n_nodes] 1 .. n_steps; 0: not yet placed */
    bool *absent;        /* [n_values] */
    ot_pack_item *sets;  /* [n_regions] working sets */
    ot_id *stack;        /* [n_nodes] nodes that wait for their producers */
    uint32_t n_steps;
} step_work;

static bool allocate(step_work *w)
{
    size_t n = w->g->n_nodes + 1u;
    w->region_of = OT_NEW_N(w->a, uint32_t, n);
    w->step_of = OT_NEW_N(w->a, uint32_t, n);
    w->absent = OT_NEW_N(w->a, bool, w->g->n_values + 1u);
    w->sets = OT_NEW_N(w->a, ot_pack_item, w->p->n_regions + 1u);
    w->stack = OT_NEW_N(w->a, ot_id, n);
    return w->region_of && w->step_of && w->absent && w->sets && w->stack;
}

/* tiled: of the planned model; else no node is in a region. */
static void begin(step_work *w, bool tiled)
{
    w->n_steps = 0;
    memset(w->step_of, 0, w->g->n_nodes * sizeof *w->step_of);
    for (uint32_t k = 0; k < w->g->n_nodes; k++) w->region_of[k] = OT_NONE;
    for (uint32_t r = 0; tiled && r < w->p->n_regions; r++) {
        const ot_region *region = &w->p->regions[r];
        for (uint32_t k = 0; k < region->n_nodes; k++) w->region_of[region->nodes[k].node] = r;
        for (uint32_t k = region->n_inputs; k < region->n_values; k++)
            if (!region->values[k].is_output) w->absent[region->values[k].value] = true;
    }
}

/* The producer of v, when it has to run before `reader` and has no step yet; else OT_NONE. */
static ot_id waits_for(const step_work *w, ot_id reader, ot_id v)
{
    ot_id made = v == OT_NONE ? OT_NONE : w->g->values[v].producer;
    if (made == OT_NONE || w->g->nodes[made].dead || w->step_of[made]) return OT_NONE;
    return w->region_of[made] != OT_NONE && w->region_of[made] == w->region_of[reader] ? OT_NONE
                                                                                       : made;
}

static ot_id node_waits_for(const step_work *w, ot_id id)
{
    const ot_node *n = &w->g->nodes[id];
    ot_id made = OT_NONE;
    for (uint32_t k = 0; k < n->n_in && made == OT_NONE; k++) made = waits_for(w, id, n->in[k]);
    for (uint32_t k = 0; k < n->n_captured && made == OT_NONE; k++)
        made = waits_for(w, id, n->captured[k]);
    return made;
}

/* A node that must run before the step of node `id`, or OT_NONE. */
static ot_id step_waits_for(const step_work *w, ot_id id)
{
    ot_id made = OT_NONE;
    if (w->region_of[id] == OT_NONE) return node_waits_for(w, id);
    const ot_region *r = &w->p->regions[w->region_of[id]];
    for (uint32_t k = 0; k < r->n_nodes && made == OT_NONE; k++)
        made = node_waits_for(w, r->nodes[k].node);
    return made;
}

/* Does node id make or read anything that lies in the arena? Others, of constants, happen before
 * the model runs: no step. */
static bool takes_time(const ot_graph *g, ot_id id)
{
    const ot_node *n = &g->nodes[id];
    for (uint32_t k = 0; k < n->n_in + n->n_captured + n->n_out; k++) {
        uint32_t j = k < n->n_in ? k : k - n->n_in;
        ot_id v = k < n->n_in         ? n->in[k]
                  : j < n->n_captured ? n->captured[j]
                                      : n->out[j - n->n_captured];
        if (v != OT_NONE && !g->values[v].is_const && !g->values[v].init) return true;
    }
    return false;
}

static void take_step(step_work *w, ot_id id)
{
    if (w->region_of[id] == OT_NONE) {
        if (w->n_steps == 0 || takes_time(w->g, id)) w->n_steps++;
        w->step_of[id] = w->n_steps;
        return;
    }
    uint32_t step = ++w->n_steps;
    const ot_region *r = &w->p->regions[w->region_of[id]];
    for (uint32_t k = 0; k < r->n_nodes; k++) w->step_of[r->nodes[k].node] = step;
    w->sets[w->region_of[id]] = (ot_pack_item){.lower = step,
                                               .upper = (int64_t)step + 1,
                                               .size = ot_max(r->working_set, 0),
                                               .alignment = ALIGNMENT,
                                               .fixed = -1,
                                               .hint = -1};
}

/* Steps in graph.order, a region where its first node stands, but what a step reads is made
 * first. Regions are convex, so the walk up ends; each visit of a node on the stack places one
 * of its producers. */
static void find_steps(step_work *w)
{
    for (uint32_t k = 0; k < w->g->n_order; k++) {
        uint32_t depth = 0;
        if (w->step_of[w->g->order[k]]) continue;
        w->stack[depth++] = w->g->order[k];
        while (depth > 0) {
            ot_id top = w->stack[depth - 1],
                  made = w->step_of[top] ? OT_NONE : step_waits_for(w, top);
            if (made != OT_NONE && depth < w->g->n_nodes) {
                w->stack[depth++] = made;
                continue;
            }
            if (!w->step_of[top]) take_step(w, top);
            depth--;
        }
    }
}

/* ---- from layouts to facts ---- */

static uint32_t kind_of(const ot_value *v) { return v->is_input || v->is_output; }

static ot_status copy_boxes(ot_facts *f, const ot_graph *g, const ot_plan *p,
                            const ot_arena_layout *l, ot_fact_map *m)
{
    ot_fact_box *boxes = OT_NEW_N(f->arena, ot_fact_box, l->n + 1u);
    uint32_t n_values = 0;
    if (!boxes) return ot_fail_nomem(g->model->diag);
    while (n_values < l->n && l->values[n_values] != OT_NONE) n_values++;
    for (uint32_t k = 0; k < l->n; k++) {
        bool is_value = k < n_values;
        const ot_value *v = is_value ? &g->values[l->values[k]] : NULL;
        boxes[k] = (ot_fact_box){.name = is_value ? ot_strdup(f->arena, v->name)
                                                  : ot_format(f->arena, "working set of region %u",
                                                              p->regions[k - n_values].id),
                                 .lower = l->items[k].lower,
                                 .upper = l->items[k].upper,
                                 .offset = l->offsets[k],
                                 .size = l->items[k].size,
                                 .kind = is_value ? kind_of(v) : 2};
        if (!boxes[k].name) return ot_fail_nomem(g->model->diag);
    }
    m->boxes = boxes;
    m->n_boxes = l->n;
    m->steps = l->n_steps;
    m->height = l->height;
    m->lower_bound = l->lower_bound;
    m->proved = l->proved;
    return OT_OK;
}

static ot_status add_maps(ot_facts *f, const ot_graph *g, const ot_plan *p, ot_arena *a)
{
    step_work w = {.g = g, .p = p, .a = a};
    ot_arena_layout before, after;
    uint32_t n_unknown;
    ot_fact_map *maps = OT_NEW_N(f->arena, ot_fact_map, 2u + f->n_regions);

    if (!maps || !allocate(&w)) return ot_fail_nomem(g->model->diag);
    maps[0] = (ot_fact_map){
        .id = "before", .title = "Before: untiled", .time_label = "step: one node each"};
    maps[1] = (ot_fact_map){
        .id = "after", .title = "After: tiled", .time_label = "step: one node or one region each"};
    begin(&w, false);
    find_steps(&w);
    ot_arena_steps steps = {.step_of = w.step_of, .n = w.n_steps};
    OT_TRY(ot_graph_arena_layout(g, &steps, a, &before, &n_unknown));
    begin(&w, true);
    find_steps(&w);
    steps = (ot_arena_steps){w.step_of, w.n_steps, w.absent, w.sets, p->n_regions};
    OT_TRY(ot_graph_arena_layout(g, &steps, a, &after, &n_unknown));
    OT_TRY(copy_boxes(f, g, p, &before, &maps[0]));
    OT_TRY(copy_boxes(f, g, p, &after, &maps[1]));
    f->maps = maps;
    f->n_maps = 2;
    for (uint32_t k = 0; k < f->n_regions; k++)
        if (f->regions[k].map) maps[f->n_maps++] = *f->regions[k].map;
    return OT_OK;
}

/* requires ORDER, USES, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_facts_add_maps(ot_facts *f, const ot_graph *g, const ot_plan *p)
{
    ot_arena *a = ot_arena_new();
    ot_status st = a ? add_maps(f, g, p, a) : ot_fail_nomem(g->model->diag);
    ot_arena_free(a);
    return st;
}
