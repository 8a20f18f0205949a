/* What a device holds of activations: the units and values that its sessions would make of a
 * graph, in the arena that they are laid out in (tiling/lower/device_arena.h).
 *
 *   place   0    1  2  3   arena
 *   x       |====|         from the kernel that reads it first
 *   a       .    |==|
 *   loop    .    .  |==|   a body's values, the same for every tile, are there while its While runs
 *   y       .    .  |==|==
 *
 * What is counted is the most that is there at once: the packing search finds that or little
 * more.
 */
#include "device_growth.h"

#include "simulate.h"
#include "live_boxes.h"

#include "fusion/steps.h"
#include "ops/ops.h"
#include "tiling/lower/device_arena.h"

typedef struct walk {
    const ot_graph *g;
    struct walk *outer; /* of a body: around it, where it is body of node `loop` */
    const ot_node *loop;
    ot_arena *a;
    /* places: numbers in the order, those left out whose results are known before the model runs,
     * or that nobody wants */
    ot_node_list list;
    ot_steps steps;          /* kernels */
    ot_device_memory **room; /* [n_values] whose memory it is; NULL: none of this graph's */
    bool *host;              /* [n_values] stays on the host, tiles of it move */
    bool *placed;            /* [n_values] a tile that is made in its place of a buffer */
    ot_device_arena arena;
    ot_device_memory **made; /* [n_made] in the order in which they are made */
    ot_id *makers;           /* [n_made] and by whom, as of ot_live_box */
    size_t n_made, cap_made, cap_makers;
    uint32_t *unknown; /* values whose size is not known */
} walk;

static int64_t bytes_of(const walk *w, ot_id v)
{
    int64_t bytes;
    if (!ot_value_bytes(&w->g->values[v], &bytes) || bytes > OT_SIM_MOST_BYTES) {
        *w->unknown += w->g->values[v].is_tensor;
        return 0;
    }
    return bytes;
}

/* ---- kernels ---- */

static uint32_t n_operands(const ot_node *n) { return n->n_in + n->n_captured; }
static ot_id operand(const ot_node *n, uint32_t k)
{
    return k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
}

/* Nodes that no result depends on do not run. wanted: [n_values]. */
static void find_needed(const ot_graph *g, const ot_id *order, bool *wanted, bool *needed)
{
    for (uint32_t k = 0; k < g->n_outputs; k++) wanted[g->outputs[k]] = true;
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_node *n = &g->nodes[order[k]];
        if (n->is_static) continue;
        for (uint32_t j = 0; j < n->n_out; j++)
            needed[order[k]] |= n->out[j] != OT_NONE && wanted[n->out[j]];
        for (uint32_t j = 0; j < n_operands(n) && needed[order[k]]; j++)
            if (operand(n, j) != OT_NONE) wanted[operand(n, j)] = true;
    }
}

static ot_status find_steps(walk *w)
{
    const ot_graph *g = w->g;
    ot_id *order = OT_NEW_N(w->a, ot_id, g->n_order + 1u);
    bool *wanted = OT_NEW_N(w->a, bool, g->n_values + 1u),
         *needed = OT_NEW_N(w->a, bool, g->n_nodes + 1u);
    w->list = (ot_node_list){.g = g, .node = OT_NEW_N(w->a, const ot_node *, g->n_order + 1u)};
    if (!wanted || !needed || !order || !w->list.node) return OT_E_NOMEM;
    OT_TRY(ot_tile_reads_order(g, w->a, order));
    find_needed(g, order, wanted, needed);
    for (uint32_t k = 0; k < g->n_order; k++)
        if (needed[order[k]]) w->list.node[w->list.n++] = &g->nodes[order[k]];
    OT_TRY(ot_node_list_fill(&w->list, w->a));
    for (ot_id v = 0; v < g->n_values; v++)
        w->list.constant[v] |= g->values[v].known || g->values[v].known_floats;
    return ot_steps_find(&w->list, &ot_device_rules, w->a, &w->steps);
}

static const ot_node *node_of(const walk *w, uint32_t place) { return w->list.node[place]; }
static uint32_t maker_of(const walk *w, ot_id v) { return w->list.maker[v]; }

static const ot_graph *body_of(const ot_node *n)
{
    const ot_attr *a = ot_is_tile_op(n, "While") ? ot_attr_find(n, "body") : NULL;
    return a && a->kind == OT_ATTR_GRAPH ? a->g : NULL;
}

/* Memory of its own for v, which is made (or first read) at that step. */
static ot_status new_room(walk *w, ot_id v, uint32_t step, bool twice)
{
    const uint32_t place = maker_of(w, v);
    const ot_id by = w->outer || place == OT_NONE ? OT_NONE
                                                  : (ot_id)(node_of(w, place) - w->g->nodes);
    size_t n = w->n_made;
    ot_device_memory *m = OT_NEW(w->a, ot_device_memory);
    if (!m) return OT_E_NOMEM;
    *m = OT_DEVICE_UNUSED;
    m->bytes = bytes_of(w, v);
    m->twice = twice;
    ot_device_touch(m, step);
    w->room[v] = m;
    return OT_PUSH(w->a, w->made, w->n_made, w->cap_made, m) &&
                   OT_PUSH(w->a, w->makers, n, w->cap_makers, by)
               ? OT_OK
               : OT_E_NOMEM;
}

/* An input is there from the first step that reads it. */
static ot_status touch(walk *w, ot_id v, uint32_t step)
{
    if (v == OT_NONE || w->host[v] || ot_is_fixed(w->g, v)) return OT_OK;
    if (!w->room[v] && !w->outer && w->g->values[v].is_input) OT_TRY(new_room(w, v, step, false));
    if (w->room[v]) ot_device_touch(w->room[v], step);
    return OT_OK;
}

/* ---- what stays on the host ---- */

static ot_id named_like(const ot_graph *g, const ot_id *list, uint32_t n, const char *name)
{
    for (uint32_t k = 0; k < n; k++)
        if (list[k] != OT_NONE && strcmp(g->values[list[k]].name, name) == 0) return list[k];
    return OT_NONE;
}

static ot_status find_streams(walk *w)
{
    const ot_graph **bodies = OT_NEW_N(w->a, const ot_graph *, w->list.n + 1u);
    ot_id *host_of;
    if (!bodies) return OT_E_NOMEM;
    for (uint32_t k = 0; k < w->list.n; k++) bodies[k] = body_of(node_of(w, k));
    OT_TRY(ot_device_streams_find(&w->list, bodies, w->a, &host_of));
    for (ot_id v = 0; v < w->g->n_values; v++) w->host[v] = host_of[v] != OT_NONE;
    return OT_OK;
}

/* A body's buffers and what it reads from outside stay where they are. */
static void inherit_streams(walk *w)
{
    const ot_graph *g = w->g;
    for (uint32_t k = 1; k < g->n_inputs && k - 1 < w->loop->n_in; k++)
        w->host[g->inputs[k]] = w->outer->host[w->loop->in[k - 1]];
    for (ot_id v = 0; v < g->n_values; v++) {
        if (!g->values[v].is_outer) continue;
        const ot_id of = named_like(w->outer->g, w->loop->captured, w->loop->n_captured,
                                    g->values[v].name);
        w->host[v] = of != OT_NONE && w->outer->host[of];
    }
}

/* ---- tiles ---- */

static bool is_buffer(const walk *w, ot_id v) { return w->outer && w->g->values[v].is_input; }

static void find_placed(walk *w)
{
    for (uint32_t k = 0; k < w->list.n; k++) {
        if (!w->outer || !ot_device_makes_in_place(&w->list, k)) continue;
        const ot_node *n = node_of(w, k);
        w->placed[n->in[0]] = !w->host[n->in[1]];
    }
}

/* A tile that moves has two places while the body runs: its own, or a copy's. */
static ot_status move_out(walk *w, ot_id tile, uint32_t step)
{
    const ot_node *by = maker_of(w, tile) == OT_NONE ? NULL : node_of(w, maker_of(w, tile));
    const bool own = by && w->room[tile] && !ot_device_looks(by) && by->op != OT_OP_OPAQUE;
    if (!own) return new_room(w, tile, step, true);
    w->room[tile]->twice = true;
    return OT_OK;
}

static ot_status walk_graph(walk *w);

static ot_status run_body(walk *w, const ot_node *n, uint32_t step)
{
    walk *inner = OT_NEW(w->a, walk);
    if (!inner) return OT_E_NOMEM;
    *inner = (walk){.g = body_of(n), .outer = w, .loop = n, .a = w->a, .unknown = w->unknown};
    for (uint32_t j = 0; j < n->n_out; j++) {
        if (n->out[j] == OT_NONE || j >= n->n_in || n->in[j] == OT_NONE) continue;
        w->room[n->out[j]] = w->room[n->in[j]];
        w->host[n->out[j]] = w->host[n->in[j]];
    }
    OT_TRY(walk_graph(inner));
    return ot_device_arena_add_body(&w->arena, w->a, &inner->arena, step);
}

/* What the tile operator makes; *done: it is one. */
static ot_status make_tiles(walk *w, const ot_node *n, uint32_t step, bool *done)
{
    *done = true;
    if (body_of(n)) return run_body(w, n, step);
    if (ot_is_tile_op(n, "Slice")) {
        const ot_id x = n->in[0], y = n->out[0];
        if (w->host[x] || is_buffer(w, x)) return new_room(w, y, step, w->host[x]);
        w->room[y] = w->room[x];
        return OT_OK;
    }
    if (ot_is_tile_op(n, "Deslice")) {
        w->room[n->out[0]] = w->room[n->in[1]];
        w->host[n->out[0]] = w->host[n->in[1]];
        return w->host[n->in[1]] ? move_out(w, n->in[0], step) : OT_OK;
    }
    *done = false;
    return OT_OK;
}

/* ---- graphs ---- */

/* A window v of `of` without holes: it is cut along the outermost axis alone. */
static bool is_whole_part(const ot_graph *g, ot_id v, ot_id of)
{
    const ot_value *x = &g->values[of], *y = &g->values[v];
    int32_t outermost = 0;
    if (x->rank != y->rank) return true; /* another shape of all of it */
    while (outermost < x->rank && x->dims[outermost] == 1) outermost++;
    for (int32_t k = 0; k < x->rank; k++)
        if (k != outermost && x->dims[k] != y->dims[k]) return false;
    return true;
}

static ot_status make(walk *w, uint32_t place)
{
    const ot_node *n = node_of(w, place);
    const uint32_t step = ot_step_at(&w->steps, place);
    bool done;
    OT_TRY(make_tiles(w, n, step, &done));
    for (uint32_t j = 0; j < n->n_out && !done; j++) {
        const ot_id v = n->out[j];
        if (v == OT_NONE || w->placed[v] || w->host[v] || ot_is_fixed(w->g, v) ||
            !ot_step_stores(&w->list, &w->steps, v, w->steps.leader[place]))
            continue;
        const bool looks = ot_device_looks(n) && n->n_in > 0 && n->in[0] != OT_NONE &&
                           !ot_is_fixed(w->g, n->in[0]);
        if (looks && (w->outer || !w->g->values[v].is_output ||
                      is_whole_part(w->g, v, n->in[0]))) /* else a copy leaves */
            w->room[v] = w->room[n->in[0]];
        else
            OT_TRY(new_room(w, v, step, false));
    }
    return OT_OK;
}

static ot_status walk_graph(walk *w)
{
    const ot_graph *g = w->g;
    OT_TRY(find_steps(w));
    w->room = OT_NEW_N(w->a, ot_device_memory *, g->n_values + 1u);
    w->host = OT_NEW_N(w->a, bool, g->n_values + 1u);
    w->placed = OT_NEW_N(w->a, bool, g->n_values + 1u);
    if (!w->room || !w->host || !w->placed) return OT_E_NOMEM;
    w->arena.n_units = w->list.n;
    if (w->outer)
        inherit_streams(w);
    else
        OT_TRY(find_streams(w));
    find_placed(w);
    for (uint32_t k = 0; k < w->list.n; k++) {
        const ot_node *n = node_of(w, k);
        const uint32_t step = ot_step_at(&w->steps, k);
        for (uint32_t j = 0; j < n->n_in; j++) OT_TRY(touch(w, n->in[j], step));
        for (uint32_t j = 0; j < n->n_captured; j++) OT_TRY(touch(w, n->captured[j], step));
        OT_TRY(make(w, k));
    }
    for (size_t k = 0; k < w->n_made; k++) OT_TRY(ot_device_arena_add(&w->arena, w->a, w->made[k]));
    return ot_device_arena_measure(&w->arena, w->a);
}

/* Who made what is there when most is. */
static ot_status find_fullest(const walk *w, ot_sim_figures *out)
{
    ot_live_box *boxes = OT_NEW_N(w->a, ot_live_box, w->arena.n + 1);
    size_t next = 0;
    if (!boxes) return OT_E_NOMEM;
    for (size_t k = 0; k < w->arena.n; k++) {
        const ot_device_item *x = &w->arena.items[k];
        const ot_node *loop = x->body ? node_of(w, x->first) : NULL;
        boxes[k] = (ot_live_box){x->first, x->last, x->bytes, 0,
                                 loop ? (ot_id)(loop - w->g->nodes) : w->makers[next]};
        next += !x->body;
    }
    return ot_boxes_fullest(boxes, w->arena.n, w->list.n + 1, w->a, out->fullest, OT_FULLEST,
                            &out->n_fullest);
}

ot_status ot_device_growth(const ot_graph *g, ot_arena *a, ot_sim_figures *out)
{
    walk w = {.g = g, .a = a, .unknown = &out->n_unknown};
    OT_TRY(walk_graph(&w));
    out->growth = out->first_run = out->pattern = w.arena.live;
    return find_fullest(&w, out);
}
