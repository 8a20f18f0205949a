/* Stage transform/: every planned region is replaced by its tiled form in plain ONNX.
 *
 *     before   x --conv--relu--conv--> y            after   x --[ tile/r0/... ]--> y
 *
 * For each region: compute the windows of all tiles, split each dimension into runs, remove the
 * original nodes, write the blocks (loops or single tiles), join them. The last node written for a
 * region output produces the original value, so nothing outside the region is touched. Afterwards,
 * nodes and initializers that only the replaced nodes read are removed.
 */
#include "tiling/stream.h"
#include "transform_internal.h"
#include "transform/decompose/decompose.h"

/* blocks beside the main one with at most so many tiles are written out */
#define INLINE_TILES_MAX 4
/* forms loop and prescan: so many operators of border tiles are written out in any case */
#define BORDER_NODES_MAX 64

/* Block number k of the grid of runs (row-major). */
static ot_status make_block(rw_region *w, uint32_t k, rw_block *b)
{
    *b = (rw_block){.n_tiles = 1};
    for (uint32_t d = OT_DIMS_MAX; d-- > 0;) {
        if (d >= w->r->n_dims) {
            b->count[d] = 1;
            continue;
        }
        ot_tile_run run = w->tiles->dims[d].runs[k % w->tiles->dims[d].n_runs];
        k /= w->tiles->dims[d].n_runs;
        b->first[d] = run.first;
        b->count[d] = run.count;
        b->n_tiles *= run.count;
    }
    b->out = OT_NEW_N(w->arena, ot_id, w->r->n_values);
    return b->out ? OT_OK : rw_nomem(w);
}

/* Nobody outside reads anything of the region: constants have taken its place. */
static bool is_unread(const ot_region *r)
{
    for (uint32_t v = r->n_inputs; v < r->n_values; v++)
        if (r->values[v].is_output) return false;
    return true;
}

/* Bytes of value v of the region in the tile with these windows; `kept`: of its piece alone. */
static double tile_bytes(const rw_region *w, const ot_tile_windows *const *win, uint32_t v,
                         bool kept)
{
    const ot_value *x = &w->tiles->g->values[w->r->values[v].value];
    int64_t dims[OT_RANK_MAX], elems;
    if (kept)
        ot_piece_dims(w->tiles->g, w->r, win, v, dims);
    else
        ot_made_dims(w->tiles->g, w->r, win, v, dims);
    return ot_product(dims, (size_t)x->rank, &elems) ? (double)elems * ot_dtype_bits(x->dtype) / 8
                                                     : 0;
}

/* Whether tiles of block b hold less in a body of their own. ONNX Runtime lets a buffer wait for
 * another of its shape, and border tiles of one region are alike: written out, all that they
 * make lives at once (20 convolutions: 194 MB, 21 in a body). A body holds constants once more,
 * and its pieces are copied. */
static bool body_pays(const rw_region *w, const rw_block *b)
{
    const ot_tile_windows *win[OT_DIMS_MAX];
    double made = 0, largest = 0, kept = 0, constants = 0;
    for (uint32_t d = 0; d < w->r->n_dims; d++) win[d] = &w->tiles->dims[d].tiles[b->first[d]];
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++) {
        const double bytes = tile_bytes(w, win, v, false);
        made += bytes;
        largest = bytes > largest ? bytes : largest;
        if (w->r->values[v].is_output) kept += tile_bytes(w, win, v, true);
    }
    for (uint32_t i = 0; i < w->r->n_nodes; i++) {
        const ot_node *n = &w->tiles->g->nodes[w->r->nodes[i].node];
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != OT_NONE && w->tiles->g->values[n->in[k]].init)
                constants += (double)w->tiles->g->values[n->in[k]].init->bytes;
    }
    return made - 2 * largest > constants + kept;
}

/* Whether block b becomes a loop. tiles: of the region, of which `largest` lie in the main block.
 */
static bool is_looped(const rw_region *w, const rw_block *b, uint64_t tiles, uint32_t largest)
{
    if (b->n_tiles > 1 && b->n_tiles == largest) return true;
    if (w->r->form == OT_FORM_LOOP && w->looped_borders && body_pays(w, b)) return true;
    /* Every body that captures a value may hold a copy of it, but along a border that is a
     * strip; tiles that lie in the outer graph are what its memory cannot reuse (measured, 4 x 4
     * tiles of six convolutions: 146 MB written out, 57 MB in loops). */
    if (w->r->form == OT_FORM_LOOP || w->r->form == OT_FORM_PRESCAN)
        return b->n_tiles > 1 && (tiles - largest) * w->r->n_nodes > BORDER_NODES_MAX;
    /* Peeled border tiles get a body of their own too: no tile lives in the outer graph. */
    return b->n_tiles > INLINE_TILES_MAX || (w->r->form == OT_FORM_PEELED && w->r->n_dims == 1);
}

/* Write all blocks and join them. */
static ot_status write_region(rw_region *w)
{
    uint64_t tiles = 0;
    uint32_t n = 1, largest = 0;
    if (is_unread(w->r)) return OT_OK;
    if (w->tiles->g != w->g) return rw_free(w);
    if (w->r->form == OT_FORM_PEELED && !w->force_loop && ot_sequence_fits(w->g, w->r))
        return rw_sequence(w);
    if (w->r->form == OT_FORM_STREAM && !w->r->in_classes) return rw_stream(w);
    for (uint32_t d = 0; d < w->r->n_dims; d++) n *= w->tiles->dims[d].n_runs;
    rw_block *blocks = OT_NEW_N(w->arena, rw_block, n);
    if (!blocks) return rw_nomem(w);
    for (uint32_t k = 0; k < n; k++) {
        OT_TRY(make_block(w, k, &blocks[k]));
        tiles += blocks[k].n_tiles;
        if (blocks[k].n_tiles > largest) largest = blocks[k].n_tiles;
    }
    if (w->r->form == OT_FORM_WHILE || w->r->in_classes) return rw_while(w, blocks, n);
    for (uint32_t k = 0; k < n; k++) {
        rw_block *b = &blocks[k];
        b->looped = is_looped(w, b, tiles, largest);
        if (b->looped)
            OT_TRY(rw_loop_block(w, b, n == 1));
        else
            OT_TRY(rw_unroll(w, b));
    }
    return rw_join(w, blocks);
}

static ot_status rewrite_region(ot_graph *g, const ot_graph *planned, const ot_region *r,
                                const ot_plan *p, bool force_loop, rw_pieces **kept)
{
    bool legal;
    ot_why why = OT_WHY_NONE;
    ot_arena *a = ot_arena_new();
    if (!a) return ot_fail_nomem(g->model->diag);
    const ot_region flat = ot_stream_written(r);
    if (r->form == OT_FORM_STREAM) r = &flat;
    ot_form_tiles tiles = {.g = planned, .r = r, .arena = a};
    rw_region w = {
        .g = g, .r = r, .arena = a, .force_loop = force_loop, .kept = kept, .tiles = &tiles};
    /* before, an initializer had to be an input */
    w.outer_weights = p->outer_weights && g->model->ir_version >= 4;
    w.looped_borders = p->looped_borders;
    w.slices_apart = p->slices_apart;
    w.nests_scans = p->nests_scans;
    w.in_order = p->in_order;
    ot_status st = ot_form_recall(p->memo, &tiles, r->form, &legal, &why);
    if (st == OT_OK && !legal)
        st = ot_fail(g->model->diag, OT_E_INPUT,
                     "region %u cannot be written in its planned form: %s", r->id,
                     ot_reason_sentence(why));
    if (st == OT_OK) {
        /* First, so that region outputs can get a new producer. What dead nodes say stays readable.
         */
        for (uint32_t i = 0; i < r->n_nodes; i++) ot_node_remove(g, r->nodes[i].node);
        st = rw_target_init(&w, &w.top, g, NULL);
    }
    if (st == OT_OK) st = write_region(&w);
    ot_arena_free(a);
    return st;
}

/* ---- what nobody reads any more ---- */

typedef struct sweep {
    ot_graph *g;
    const bool *had_reader; /* [n_before] read before the rewrite */
    uint32_t n_before;
    uint32_t *readers; /* [n_values] now */
} sweep;

static bool lost_readers(const sweep *s, ot_id v)
{
    return v != OT_NONE && v < s->n_before && s->had_reader[v] && s->readers[v] == 0 &&
           !s->g->values[v].is_output;
}

/* Nothing reads any output, and somebody did before. (What was dead in the file is the user's
 * business.) */
static bool is_orphan(const sweep *s, const ot_node *n)
{
    bool lost = false;
    if (n->n_captured) return false; /* nodes with subgraphs stay */
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        if (v == OT_NONE) continue;
        if (s->readers[v] > 0 || s->g->values[v].is_output) return false;
        lost |= lost_readers(s, v);
    }
    return lost;
}

/* The node no longer reads its operands; value.uses counts each reader once. */
static void drop_reads(const sweep *s, const ot_id *list, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        bool again = list[k] == OT_NONE;
        for (uint32_t j = 0; j < k && !again; j++) again = list[j] == list[k];
        if (!again && s->readers[list[k]] > 0) s->readers[list[k]]--;
    }
}

/* Each reader counts once for each value. seen: [n_values]. */
static void count_readers(const sweep *s, ot_id *seen)
{
    const ot_graph *g = s->g;
    memset(seen, 0xff, g->n_values * sizeof *seen);
    for (ot_id id = 0; id < g->n_nodes; id++) {
        const ot_node *n = &g->nodes[id];
        for (uint32_t k = 0; k < n->n_in + n->n_captured && !n->dead; k++) {
            const ot_id v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
            if (v == OT_NONE || seen[v] == id) continue;
            seen[v] = id;
            s->readers[v]++;
        }
    }
}

/* stack: [n_nodes] those to look at; listed: [n_nodes] they are there. */
static void push(ot_id *stack, bool *listed, uint32_t *n, ot_id node)
{
    if (node == OT_NONE || listed[node]) return;
    listed[node] = true;
    stack[(*n)++] = node;
}

/* Who reads a node that goes was looked at before it, or is looked at once more. Breaks ORDER, USES
 * when something is removed. */
static void remove_orphans(const sweep *s, ot_id *stack, bool *listed)
{
    ot_graph *g = s->g;
    uint32_t left = 0;
    for (ot_id id = 0; id < g->n_nodes; id++)
        if (!g->nodes[id].dead) push(stack, listed, &left, id);
    while (left > 0) {
        const ot_id id = stack[--left];
        ot_node *n = &g->nodes[id];
        listed[id] = false;
        if (n->dead || !is_orphan(s, n)) continue;
        drop_reads(s, n->in, n->n_in);
        ot_node_remove(g, id);
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != OT_NONE) push(stack, listed, &left, g->values[n->in[k]].producer);
    }
    for (ot_id v = 0; v < s->n_before; v++) {
        ot_value *x = &g->values[v];
        if (x->init && x->producer == OT_NONE && !x->is_input && lost_readers(s, v))
            x->removed = true;
    }
}

/* The order is found once, without what goes. */
static ot_status sweep_graph(ot_graph *g, const bool *had_reader, uint32_t n_before, ot_arena *a)
{
    sweep s = {g, had_reader, n_before, OT_NEW_N(a, uint32_t, g->n_values + 1u)};
    ot_id *seen = OT_NEW_N(a, ot_id, g->n_values + 1u),
          *stack = OT_NEW_N(a, ot_id, g->n_nodes + 1u);
    bool *listed = OT_NEW_N(a, bool, g->n_nodes + 1u);
    if (!s.readers || !seen || !stack || !listed) return ot_fail_nomem(g->model->diag);
    count_readers(&s, seen);
    remove_orphans(&s, stack, listed);
    return ot_topo_sort(g);
}

/* Constants that the rewrite made, of which it then cut all that is read: a runtime says of each
 * that nobody reads it. Of values and nodes from these on, and of bodies, which nest as deep as
 * forms do. Requires ORDER, USES of g. */
static ot_status drop_constants(ot_graph *g, ot_id value, ot_id node)
{
    for (ot_id v = value; v < g->n_values; v++) {
        ot_value *x = &g->values[v];
        if (x->init && x->producer == OT_NONE && !x->is_input && !x->is_output && x->n_uses == 0)
            x->removed = true;
    }
    for (ot_id k = node; k < g->n_nodes; k++) {
        const ot_node *n = &g->nodes[k];
        for (uint32_t j = 0; j < n->n_attrs && !n->dead; j++) {
            if (n->attrs[j].kind != OT_ATTR_GRAPH) continue;
            OT_TRY(ot_assure(n->attrs[j].g, OT_P_ORDER | OT_P_USES));
            OT_TRY(drop_constants(n->attrs[j].g, 0, 0));
        }
    }
    return OT_OK;
}

/* ---- the pass ---- */

/* The plan's regions become the engine's operators, of which it has more. */
static bool in_engine_form(const ot_plan *p)
{
    bool any = false;
    for (uint32_t k = 0; k < p->n_regions; k++)
        any |= p->regions[k].form == OT_FORM_WHILE || p->regions[k].in_classes;
    return any;
}

/* What the nodes read that a normalisation was has had a reader, too. */
static void note_reads(const ot_graph *g, const ot_decomposed *s, bool *had_reader)
{
    for (uint32_t k = 0; k < s->n_whole; k++) {
        const ot_node *n = &g->nodes[s->whole[k]];
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i] != OT_NONE) had_reader[n->in[i]] = true;
    }
}

ot_status rw_rewrite(ot_graph *g, const ot_graph *planned, const ot_plan *p, bool force_loop)
{
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES | OT_P_SHAPES));
    const uint32_t n_before = g->n_values, n_nodes = g->n_nodes;
    ot_arena *a = ot_arena_new();
    bool *had_reader = a ? OT_NEW_N(a, bool, n_before) : NULL;
    const bool *alone = had_reader ? rw_quantised_alone(g, a) : NULL;
    ot_status st = alone ? OT_OK : ot_fail_nomem(g->model->diag);
    for (ot_id v = 0; st == OT_OK && v < n_before; v++) had_reader[v] = g->values[v].n_uses > 0;
    for (uint32_t k = 0; st == OT_OK && k < g->model->n_decomposed; k++)
        note_reads(g, &g->model->decomposed[k], had_reader);
    rw_pieces **kept = NULL;
    if (st == OT_OK && !force_loop && planned == g && !g->model->dynamic_dims)
        st = rw_pieces_choose(g, p, a, &kept);
    for (uint32_t k = 0; st == OT_OK && k < p->n_regions; k++)
        if (p->regions[k].form != OT_FORM_NONE)
            st = rewrite_region(g, planned, &p->regions[k], p, force_loop, kept);
    if (st == OT_OK) st = ot_recompose(g, in_engine_form(p));
    if (st == OT_OK) st = sweep_graph(g, had_reader, n_before, a);
    if (st == OT_OK) st = rw_own_quantised(g, alone, n_before);
    if (st == OT_OK && planned == g) st = rw_share_constants(g, n_nodes);
    if (st == OT_OK && p->blocked && p->n_regions > 0 && planned == g && !g->model->dynamic_dims)
        st = rw_blocked_results(g, p->blocked);
    if (st == OT_OK && p->viewed && p->n_regions > 0 && planned == g && !g->model->dynamic_dims)
        st = rw_plain_views(g, p->viewed);
    if (st == OT_OK) st = drop_constants(g, n_before, n_nodes);
    ot_arena_free(a);
    return st;
}

/* requires ORDER, USES, SHAPES.  keeps SHAPES.  breaks and re-establishes ORDER, USES.
 * Fails: OT_E_INPUT (a region that has no such form), OT_E_NOMEM. */
ot_status ot_transform_tiles(ot_graph *g, const ot_plan *p) { return rw_rewrite(g, g, p, false); }

/* as ot_transform_tiles; requires SHAPES of `planned`. */
ot_status ot_transform_dynamic(ot_graph *g, const ot_graph *planned, const ot_plan *p)
{
    return rw_rewrite(g, planned, p, false);
}
