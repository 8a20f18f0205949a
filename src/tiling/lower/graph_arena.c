/* The activations of an untiled model in one memory: how low does it get, and what does reuse save?
 *
 *   position   0       1     2     3     ...  n     n + 1
 *   runs       caller  node  node  node       node  caller
 *   x (input)  |===============|                            written by the caller, dead after its
 *                                                           last reader
 *   t                  |=============|
 *   y (output)                                |==========|  kept for the caller
 *
 * Nodes run in graph.order. Graph inputs and outputs count: they lie in memory while the model
 * runs, whoever owns them, and the arenas that other planners report hold them too. Constants do
 * not. A node with subgraphs counts by its outputs and by the most that lives inside of it; what
 * the subgraphs read of this graph stays alive until it ran. Offsets are multiples of 64 bytes.
 *
 * The in-place figure merges a value with the input that its operator may overwrite (ot_op_over:
 * same size, and nobody reads it later), and takes a reshape as another name of what it reads. A
 * merged group lives from its first to its last use.
 */
#include "lowering.h"

#include "lifetime/lifetime.h"

#define ALIGNMENT 64
#define BYTES_MAX (INT64_C(1) << 60)
/* of the search, for graphs of up to FEW values; for more, as many as make the same work */
#define STEPS      20000
#define VALUES_FEW 200
#define NEAR       1000 /* of more values, a layout that is that part above the bound will do */

typedef struct arena_work {
    const ot_graph *g;
    ot_arena *a;
    const bool *absent; /* [n_values] values that lie nowhere; NULL: none */
    uint32_t n_steps;   /* position of the last step; the caller reads the outputs one later */
    uint32_t *pos;      /* [n_nodes] position of a live node */
    ot_value_lifetimes lives; /* by those */
    uint32_t *item_of;        /* [n_values] index into items, or OT_NONE */
    ot_pack_item *items;      /* [n] one a value, lower and upper as above */
    ot_id *values;            /* [n] whose they are */
    uint32_t n;
    uint32_t *group; /* [n] union-find */
} arena_work;

static bool allocate(arena_work *w, uint32_t n_extra)
{
    const ot_graph *g = w->g;
    w->pos = OT_NEW_N(w->a, uint32_t, g->n_nodes + 1u);
    w->item_of = OT_NEW_N(w->a, uint32_t, g->n_values + 1u);
    const size_t most = (size_t)g->n_values + g->n_nodes + n_extra + 1;
    w->items = OT_NEW_N(w->a, ot_pack_item, most);
    w->values = OT_NEW_N(w->a, ot_id, most);
    w->group = OT_NEW_N(w->a, uint32_t, most);
    return w->pos && w->item_of && w->items && w->values && w->group;
}

/* v has a size while the graph runs, and it is not known. */
static bool is_unsized(const ot_value *v)
{
    int64_t bytes;
    return !v->is_const && !v->init && (!v->is_tensor || !ot_value_bytes(v, &bytes));
}

/* Value v, written at position `born`. */
static void add_value(arena_work *w, ot_id v, uint32_t born, uint32_t *n_unknown)
{
    const ot_value *x = &w->g->values[v];
    int64_t bytes, last = born;
    if (x->is_const || x->init || w->item_of[v] != OT_NONE || (w->absent && w->absent[v])) return;
    if (is_unsized(x)) {
        (*n_unknown)++;
        return;
    }
    if (!ot_value_bytes(x, &bytes) || bytes == 0) return;
    if (w->lives.last[v] != OT_NONE) last = ot_max(last, w->lives.last[v]);
    w->item_of[v] = w->n;
    w->values[w->n] = v;
    w->items[w->n++] = (ot_pack_item){.lower = born,
                                      .upper = last + 1,
                                      .size = bytes,
                                      .alignment = ALIGNMENT,
                                      .fixed = -1,
                                      .hint = -1};
}

/* What lives inside of the node at position p, while it runs. */
static void add_inner(arena_work *w, const ot_node *n, uint32_t p, uint32_t *n_unknown)
{
    if (n->inner.bytes < 0) (*n_unknown)++;
    if (n->inner.bytes <= 0) return;
    w->values[w->n] = OT_NONE;
    w->items[w->n++] = (ot_pack_item){.lower = p,
                                      .upper = (int64_t)p + 1,
                                      .size = n->inner.bytes,
                                      .alignment = ALIGNMENT,
                                      .fixed = -1,
                                      .hint = -1};
}

/* Why an input has no size. */
static const char *say_input(const ot_value *x)
{
    if (!x->is_tensor) return "it is no tensor";
    if (!ot_value_is_static(x)) return "bind it with --shape";
    return x->dtype == OT_STRING ? "its elements are strings" : "its elements have no known size";
}

static const char *say_unsized(const ot_graph *g, ot_id v, uint32_t n, ot_arena *a)
{
    const ot_value *x = &g->values[v];
    const char *what;
    if (x->producer == OT_NONE) {
        what = ot_format(a, "input '%.200s' (%s)", x->name, say_input(x));
    } else {
        const ot_node *by = &g->nodes[x->producer];
        const char *name = by->name ? by->name : "";
        what = ot_format(a, "'%.200s' (made by %.80s%s%.200s%s)", x->name, by->op_type,
                         *name ? " '" : "", name, *name ? "'" : "");
    }
    if (!what) return NULL;
    return n == 1
               ? ot_format(a, "the size of %s is not known", what)
               : ot_format(a, "sizes of %u values are not known, the first is that of %s", n, what);
}

/* The first node that holds values inside of which nobody knows the size; "": there is none. */
static const char *say_unsized_inside(const ot_graph *g, ot_arena *a)
{
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (n->inner.bytes >= 0) continue;
        const char *name = n->name ? n->name : "";
        return ot_format(a, "sizes of values inside of %.80s%s%.200s%s are not known", n->op_type,
                         *name ? " '" : "", name, *name ? "'" : "");
    }
    return "";
}

const char *ot_unknown_sizes(const ot_graph *g, ot_arena *a)
{
    ot_id first = OT_NONE;
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        if (!is_unsized(&g->values[g->inputs[k]])) continue;
        if (n++ == 0) first = g->inputs[k];
    }
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *node = &g->nodes[g->order[k]];
        for (uint32_t o = 0; o < node->n_out; o++) {
            if (node->out[o] == OT_NONE || !is_unsized(&g->values[node->out[o]])) continue;
            if (n++ == 0) first = node->out[o];
        }
    }
    return n > 0 ? say_unsized(g, first, n, a) : say_unsized_inside(g, a);
}

static ot_status add_values(arena_work *w, uint32_t *n_unknown)
{
    const ot_graph *g = w->g;
    if (ot_value_lifetimes_of(g, w->pos, w->n_steps + 1, w->a, &w->lives) != OT_OK)
        return ot_fail_nomem(g->model->diag);
    *n_unknown = 0;
    for (ot_id v = 0; v < g->n_values; v++) w->item_of[v] = OT_NONE;
    for (uint32_t k = 0; k < g->n_inputs; k++) add_value(w, g->inputs[k], 0, n_unknown);
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        for (uint32_t o = 0; o < n->n_out; o++)
            if (n->out[o] != OT_NONE) add_value(w, n->out[o], w->pos[g->order[k]], n_unknown);
        add_inner(w, n, w->pos[g->order[k]], n_unknown);
    }
    return OT_OK;
}

static void number_nodes(arena_work *w)
{
    for (uint32_t k = 0; k < w->g->n_order; k++) w->pos[w->g->order[k]] = k + 1;
    w->n_steps = w->g->n_order;
}

/* ---- merging ---- */

static uint32_t root(uint32_t *group, uint32_t x)
{
    while (group[x] != x) x = group[x] = group[group[x]];
    return x;
}

/* The items of a group become one, kept at its root. */
static void merge(arena_work *w, uint32_t a, uint32_t b)
{
    a = root(w->group, a);
    b = root(w->group, b);
    if (a == b) return;
    w->group[b] = a;
    w->items[a].lower = ot_min(w->items[a].lower, w->items[b].lower);
    w->items[a].upper = ot_max(w->items[a].upper, w->items[b].upper);
}

/* The node at position p writes its first output where one of its inputs lies, if it may. */
static void merge_node(arena_work *w, const ot_node *n, uint32_t p)
{
    uint32_t out = n->n_out > 0 && n->out[0] != OT_NONE ? w->item_of[n->out[0]] : OT_NONE;
    bool view = ot_op_is_view(n->op);
    if (out == OT_NONE) return;
    for (uint32_t k = 0; k < (view ? 1 : n->n_in); k++) {
        uint32_t in = n->in[k] == OT_NONE ? OT_NONE : w->item_of[n->in[k]];
        if (in == OT_NONE || w->items[in].size != w->items[out].size) continue;
        bool dies = w->items[root(w->group, in)].upper == (int64_t)p + 1;
        if (!view && !(dies && ot_op_over(n->op, k))) continue;
        merge(w, in, out);
        return;
    }
}

/* Merge, and move the roots to the front. */
static void merge_all(arena_work *w)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < w->n; k++) w->group[k] = k;
    for (uint32_t k = 0; k < w->g->n_order; k++) merge_node(w, &w->g->nodes[w->g->order[k]], k + 1);
    for (uint32_t k = 0; k < w->n; k++)
        if (w->group[k] == k) w->items[n++] = w->items[k];
    w->n = n;
}

/* ---- figures ---- */

int64_t ot_graph_arena_steps(uint32_t n)
{
    return n <= VALUES_FEW ? STEPS : ot_max(1, (int64_t)STEPS * VALUES_FEW / n);
}

/* The lowest layout that is found; r->proved: there is no lower one. */
static ot_status pack(arena_work *w, int64_t *offsets, ot_pack_result *r)
{
    ot_pack_problem p = {w->items, w->n};
    ot_pack_options o = {
        .step_limit = ot_graph_arena_steps(w->n), .threads = 1, .rules = OT_PACK_RULES_ALL};
    ot_diag *d = w->g->model->diag;
    int64_t bound;
    if (ot_pack_find_bound(&p, &bound) != OT_OK) return ot_fail_nomem(d);
    if (w->n > VALUES_FEW && bound > 0) o.capacity = bound + bound / NEAR;
    OT_TRY(ot_pack(&p, &o, d, offsets, r));
    r->proved = o.capacity ? r->height == r->lower_bound : r->proved;
    return ot_pack_check(&p, offsets, 0, NULL, d);
}

static int64_t align_up(int64_t at) { return (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static ot_status fill(arena_work *w, ot_arena_figures *out, uint32_t *n_unknown)
{
    ot_pack_result r = {0};
    if (!allocate(w, 0)) return ot_fail_nomem(w->g->model->diag);
    number_nodes(w);
    OT_TRY(add_values(w, n_unknown));
    int64_t *offsets = OT_NEW_N(w->a, int64_t, w->n + 1u);
    if (!offsets) return ot_fail_nomem(w->g->model->diag);
    for (uint32_t k = 0; k < w->n; k++)
        if (!ot_add_i64(align_up(out->naive), w->items[k].size, &out->naive) ||
            out->naive > BYTES_MAX) { /* nobody has such a memory */
            *out = (ot_arena_figures){0};
            *n_unknown += w->n;
            return OT_OK;
        }
    out->n_buffers = w->n;
    ot_pack_problem p = {w->items, w->n};
    ot_status st = ot_pack_greedy(&p, NULL, offsets, &out->greedy);
    if (st != OT_OK) return st == OT_E_NOMEM ? ot_fail_nomem(w->g->model->diag) : st;
    OT_TRY(pack(w, offsets, &r));
    out->lower_bound = r.lower_bound;
    out->planned = r.height;
    out->proved = r.proved;
    merge_all(w);
    OT_TRY(pack(w, offsets, &r));
    out->in_place = r.height;
    return OT_OK;
}

/* requires ORDER, USES, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_graph_arena(const ot_graph *g, ot_arena_figures *out, uint32_t *n_unknown)
{
    arena_work w = {.g = g, .a = ot_arena_new()};
    *out = (ot_arena_figures){0};
    ot_status st = w.a ? fill(&w, out, n_unknown) : ot_fail_nomem(g->model->diag);
    ot_arena_free(w.a);
    return st;
}

/* ---- the plan itself ---- */

static ot_status lay_out(arena_work *w, const ot_arena_steps *steps, ot_arena_layout *out,
                         uint32_t *n_unknown)
{
    ot_diag *d = w->g->model->diag;
    ot_pack_result r = {0};
    int64_t sum = 0;

    if (!allocate(w, steps->n_extra)) return ot_fail_nomem(d);
    memcpy(w->pos, steps->step_of, w->g->n_nodes * sizeof *w->pos);
    w->n_steps = steps->n;
    w->absent = steps->absent;
    OT_TRY(add_values(w, n_unknown));
    for (uint32_t k = 0; k < steps->n_extra; k++, w->n++) {
        w->items[w->n] = steps->extra[k];
        w->values[w->n] = OT_NONE;
    }
    for (uint32_t k = 0; k < w->n; k++)
        if (!ot_add_i64(sum, w->items[k].size, &sum) || sum > BYTES_MAX) {
            *n_unknown += w->n;
            w->n = 0;
        }
    int64_t *offsets = OT_NEW_N(w->a, int64_t, w->n + 1u);
    if (!offsets) return ot_fail_nomem(d);
    if (w->n > 0) OT_TRY(pack(w, offsets, &r));
    *out = (ot_arena_layout){.items = w->items,
                             .values = w->values,
                             .offsets = offsets,
                             .n = w->n,
                             .n_steps = w->n_steps + 2,
                             .height = r.height,
                             .lower_bound = r.lower_bound,
                             .proved = w->n == 0 || r.proved};
    return OT_OK;
}

/* requires ORDER, USES, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_graph_arena_layout(const ot_graph *g, const ot_arena_steps *steps, ot_arena *a,
                                ot_arena_layout *out, uint32_t *n_unknown)
{
    arena_work w = {.g = g, .a = a};
    return lay_out(&w, steps, out, n_unknown);
}
