/* The arena of activations on a device, by the rules by which sessions lay it out
 * (engine/gpu/device_plan.c, device_streams.c):
 *
 *   place   0    1  2  3   arena
 *   x       |====|         from the kernel that reads it first
 *   a       .    |==|
 *   loop    .    .  |==|   a body's values, the same for every tile, are there while its While runs
 *   y       .    .  |==|==
 *
 * Views are part of what they look at, tiles that a body makes for a Deslice are part of the
 * buffer. Inputs and results that loops alone touch stay on the host where their tiles are
 * small, and a tile has two places then, as long as the body runs. What is counted is the most
 * that is there at once: the packing search finds that or little more.
 *
 */
#include "device_arena.h"

#include "device_steps.h"
#include "simulate.h"
#include "live_boxes.h"
#include "merged_steps.h"

#include "ops/ops.h"

#include <math.h>

#define ALIGN 256 /* of values, and of their sizes */

typedef struct walk {
    const ot_graph *g;
    const struct walk *outer; /* of a body: around it, where it is body of node `loop` */
    const ot_node *loop;
    ot_arena *a;
    ot_device_steps s;
    uint32_t *box;    /* [n_values] whose memory it is; OT_NONE: none of this graph's */
    bool *host;       /* [n_values] stays on the host, tiles of it move */
    bool *placed;     /* [n_values] a tile that is made in its place of a buffer */
    ot_live_box *all; /* [n] */
    size_t n, cap;
    uint32_t *unknown; /* values whose size is not known */
} walk;

static int64_t bytes_of(const walk *w, ot_id v)
{
    int64_t bytes;
    if (!ot_value_bytes(&w->g->values[v], &bytes) || bytes > OT_SIM_MOST_BYTES) {
        *w->unknown += w->g->values[v].is_tensor;
        return 0;
    }
    return ot_ceil_div(bytes, ALIGN) * ALIGN;
}

/* Without what fills up lines; 0: not known. */
static double size_of(const ot_graph *g, ot_id v)
{
    int64_t bytes;
    return ot_value_bytes(&g->values[v], &bytes) ? (double)bytes : 0;
}

static const ot_node *node_of(const walk *w, uint32_t place)
{
    return &w->g->nodes[w->s.node[place]];
}

static const ot_graph *body_of(const ot_node *n)
{
    const ot_attr *a = ot_is_tile_op(n, "While") ? ot_attr_find(n, "body") : NULL;
    return a && a->kind == OT_ATTR_GRAPH ? a->g : NULL;
}

static ot_status new_box(walk *w, ot_id v, uint32_t first, uint32_t last, int64_t bytes)
{
    const ot_id by = w->outer || w->s.maker[v] == OT_NONE ? OT_NONE : w->s.node[w->s.maker[v]];
    w->box[v] = (uint32_t)w->n;
    return OT_PUSH(w->a, w->all, w->n, w->cap, ((ot_live_box){first, last, bytes, 0, by}))
               ? OT_OK
               : OT_E_NOMEM;
}

/* An input is there from the first step that reads it. */
static ot_status touch(walk *w, ot_id v, uint32_t step)
{
    if (v == OT_NONE || w->host[v] || ot_is_fixed(w->g, v)) return OT_OK;
    if (w->box[v] == OT_NONE && !w->outer && w->g->values[v].is_input)
        OT_TRY(new_box(w, v, step, step, bytes_of(w, v)));
    if (w->box[v] != OT_NONE && w->all[w->box[v]].last < step) w->all[w->box[v]].last = step;
    return OT_OK;
}

/* ---- what stays on the host ---- */

static ot_id named_like(const ot_graph *g, const ot_id *list, uint32_t n, const char *name)
{
    for (uint32_t k = 0; k < n; k++)
        if (list[k] != OT_NONE && strcmp(g->values[list[k]].name, name) == 0) return list[k];
    return OT_NONE;
}

/* Bytes of the windows that a body takes of the value of that name; infinite where it does
 * anything else with it. */
static double windows_of(const ot_graph *body, const char *name)
{
    double sum = 0;
    for (uint32_t k = 0; k < body->n_order; k++) {
        const ot_node *n = &body->nodes[body->order[k]];
        for (uint32_t j = 0; j < n->n_in + n->n_captured; j++) {
            const ot_id v = j < n->n_in ? n->in[j] : n->captured[j - n->n_in];
            if (v == OT_NONE || !body->values[v].is_outer ||
                strcmp(body->values[v].name, name) != 0)
                continue;
            if (j > 0 || !ot_is_tile_op(n, "Slice")) return INFINITY;
            sum += size_of(body, n->out[0]);
        }
    }
    return sum;
}

static bool input_stays(const walk *w, ot_id v)
{
    const double whole = size_of(w->g, v);
    double tiles = 0, moved = 0;
    if (ot_device_readers(&w->s, v) == 0 || w->g->values[v].is_output || ot_is_fixed(w->g, v))
        return false;
    for (uint32_t k = w->s.first[v]; k < w->s.first[v + 1]; k++) {
        const ot_node *n = node_of(w, w->s.readers[k]);
        const ot_graph *body = body_of(n);
        if (!body) return false;
        for (uint32_t j = 0; j < n->n_in; j++)
            if (n->in[j] == v) return false;
        const double windows = windows_of(body, w->g->values[v].name);
        tiles = fmax(tiles, windows);
        moved += windows * (double)ot_attr_int(n, "count", 0);
    }
    return 2 * tiles <= OT_STREAM_PART_MOST * whole && moved <= OT_STREAM_MOVES_MOST * whole;
}

/* Bytes of the tiles that a body writes into its buffer j. */
static double tiles_of(const ot_graph *body, uint32_t j)
{
    ot_id v = body->inputs[j];
    double sum = 0;
    /* in the order in which they follow each other */
    for (uint32_t k = 0; k < body->n_order; k++) {
        const ot_node *n = &body->nodes[body->order[k]];
        if (!ot_is_tile_op(n, "Deslice") || n->in[1] != v) continue;
        sum += size_of(body, n->in[0]);
        v = n->out[0];
    }
    return sum;
}

/* The result v is what a chain of loops writes into memory that an Alloc made, which stays on
 * the host. */
static void find_result(walk *w, ot_id v)
{
    const ot_id result = v;
    double tiles = 0;
    if (ot_device_readers(&w->s, v) != 0) return;
    for (;;) {
        const uint32_t by = w->s.maker[v];
        uint32_t j = 0;
        if (by == OT_NONE) return;
        const ot_node *n = node_of(w, by);
        if (ot_is_tile_op(n, "Alloc")) break;
        const ot_graph *body = body_of(n);
        if (!body || n->n_in != n->n_out || body->n_inputs != n->n_in + 1) return;
        while (j < n->n_out && n->out[j] != v) j++;
        if (j >= n->n_in - (uint32_t)ot_attr_int(n, "carried", 0)) return;
        tiles = fmax(tiles, tiles_of(body, j + 1));
        v = n->in[j];
        if (ot_device_only_reader(&w->s, v) != by) return;
    }
    if (tiles > 0 && 2 * tiles <= OT_STREAM_PART_MOST * size_of(w->g, result)) w->host[v] = true;
}

/* A body's buffers and what it reads from outside stay where they are. */
static void find_streams(walk *w)
{
    const ot_graph *g = w->g;
    if (!w->outer) {
        for (uint32_t k = 0; k < g->n_inputs; k++)
            w->host[g->inputs[k]] = input_stays(w, g->inputs[k]);
        for (uint32_t k = 0; k < g->n_outputs; k++) find_result(w, g->outputs[k]);
        return;
    }
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

static bool is_window(const ot_node *n)
{
    return ot_op_is_view(n->op) || n->op == OT_OP_Slice || n->op == OT_OP_Split ||
           n->op == OT_OP_Expand;
}

/* Tiles that are made in their place: nobody else reads them, and the buffer was not written to
 * before. */
static void find_placed(walk *w)
{
    for (uint32_t k = 0; k < w->s.n; k++) {
        const ot_node *n = node_of(w, k);
        if (!ot_is_tile_op(n, "Deslice")) continue;
        const ot_id t = n->in[0], y = n->in[1];
        if (ot_device_only_reader(&w->s, t) != k || ot_device_only_reader(&w->s, y) != k ||
            w->s.maker[t] == OT_NONE)
            continue;
        const ot_node *by = node_of(w, w->s.maker[t]);
        w->placed[t] = is_buffer(w, y) && !w->host[y] && by->op != OT_OP_OPAQUE && !is_window(by);
    }
}

/* A tile that moves has two places while the body runs: its own, or a copy's. */
static ot_status move_out(walk *w, ot_id tile)
{
    const uint32_t by = w->s.maker[tile], last = w->s.n ? w->s.n - 1 : 0;
    const bool own = by != OT_NONE && w->box[tile] != OT_NONE && !is_window(node_of(w, by)) &&
                     node_of(w, by)->op != OT_OP_OPAQUE;
    if (!own) return new_box(w, tile, 0, last, 2 * bytes_of(w, tile));
    ot_live_box *b = &w->all[w->box[tile]];
    b->first = 0;
    b->last = last;
    b->bytes *= 2;
    return OT_OK;
}

static ot_status walk_graph(walk *w, int64_t *most);

static ot_status run_body(walk *w, const ot_node *n, uint32_t step)
{
    walk inner = {.g = body_of(n), .outer = w, .loop = n, .a = w->a, .unknown = w->unknown};
    int64_t most;
    for (uint32_t j = 0; j < n->n_out; j++) {
        if (n->out[j] == OT_NONE || j >= n->n_in || n->in[j] == OT_NONE) continue;
        w->box[n->out[j]] = w->box[n->in[j]];
        w->host[n->out[j]] = w->host[n->in[j]];
    }
    OT_TRY(walk_graph(&inner, &most));
    const ot_live_box scratch = {step, step, most, 0, w->outer ? OT_NONE : w->s.node[step]};
    return most == 0 || OT_PUSH(w->a, w->all, w->n, w->cap, scratch) ? OT_OK : OT_E_NOMEM;
}

/* What the tile operator makes; *done: it is one. */
static ot_status make_tiles(walk *w, const ot_node *n, uint32_t step, bool *done)
{
    const uint32_t last = w->s.n - 1;
    *done = true;
    if (body_of(n)) return run_body(w, n, step);
    if (ot_is_tile_op(n, "Slice")) {
        const ot_id x = n->in[0], y = n->out[0];
        if (w->host[x]) return new_box(w, y, 0, last, 2 * bytes_of(w, y));
        if (is_buffer(w, x)) return new_box(w, y, step, step, bytes_of(w, y));
        w->box[y] = w->box[x];
        return OT_OK;
    }
    if (ot_is_tile_op(n, "Deslice")) {
        w->box[n->out[0]] = w->box[n->in[1]];
        w->host[n->out[0]] = w->host[n->in[1]];
        return w->host[n->in[1]] ? move_out(w, n->in[0]) : OT_OK;
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
    const uint32_t step = w->s.at[place];
    bool done;
    OT_TRY(make_tiles(w, n, step, &done));
    for (uint32_t j = 0; j < n->n_out && !done; j++) {
        const ot_id v = n->out[j];
        if (v == OT_NONE || w->placed[v] || w->host[v] || ot_is_fixed(w->g, v) ||
            !ot_device_stores(&w->s, v, place))
            continue;
        const bool looks = is_window(n) && n->n_in > 0 && n->in[0] != OT_NONE &&
                           !ot_is_fixed(w->g, n->in[0]);
        if (looks && (w->outer || !w->g->values[v].is_output ||
                      is_whole_part(w->g, v, n->in[0]))) /* else a copy leaves */
            w->box[v] = w->box[n->in[0]];
        else
            OT_TRY(new_box(w, v, step, step, bytes_of(w, v)));
    }
    return OT_OK;
}

static ot_status walk_graph(walk *w, int64_t *most)
{
    const ot_graph *g = w->g;
    OT_TRY(ot_device_steps_find(g, w->a, &w->s));
    w->box = OT_NEW_N(w->a, uint32_t, g->n_values + 1u);
    w->host = OT_NEW_N(w->a, bool, g->n_values + 1u);
    w->placed = OT_NEW_N(w->a, bool, g->n_values + 1u);
    if (!w->box || !w->host || !w->placed) return OT_E_NOMEM;
    for (ot_id v = 0; v < g->n_values; v++) w->box[v] = OT_NONE;
    find_streams(w);
    find_placed(w);
    for (uint32_t k = 0; k < w->s.n; k++) {
        const ot_node *n = node_of(w, k);
        for (uint32_t j = 0; j < n->n_in; j++) OT_TRY(touch(w, n->in[j], w->s.at[k]));
        for (uint32_t j = 0; j < n->n_captured; j++) OT_TRY(touch(w, n->captured[j], w->s.at[k]));
        OT_TRY(make(w, k));
    }
    return ot_boxes_live(w->all, w->n, w->s.n + 1, w->a, most);
}

ot_status ot_device_arena_growth(const ot_graph *g, ot_arena *a, ot_sim_figures *out)
{
    walk w = {.g = g, .a = a, .unknown = &out->n_unknown};
    OT_TRY(walk_graph(&w, &out->growth));
    out->first_run = out->pattern = out->growth;
    return ot_boxes_fullest(w.all, w.n, w.s.n + 1, a, out->fullest, OT_FULLEST, &out->n_fullest);
}
