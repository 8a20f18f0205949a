/* Which tiles look alike, and which forms that allows.
 *
 * Two tiles of a dimension are alike when the same nodes, with the same attributes and constants,
 * on inputs of the same shape compute them; only where the region's inputs are cut may differ.
 * A run of alike tiles can be one loop body.
 *
 *   conv 3x3 pad 1, 6 tiles     pads  1,0 | 0,0  0,0  0,0  0,0 | 0,1
 *                               runs   A  |         B          |  C
 *
 * The engine's form does not care where a tile lies: there, tiles are sorted into classes, and
 * each class is a run.
 *
 *   resize 3/2, 6 tiles         a b a b a c  -->  runs  a a a | b b | c
 */
#include "dynamic_tiles.h"
#include "reassemble_types.h"
#include "stream.h"

/* Nodes that one tiled region may be written out to. */
#define UNROLLED_NODES_MAX 200000
/* Tiles of one dimension. */
#define TILES_MAX      65536
#define SEQUENCE_OPSET 13 /* Loop carries sequences */
/* Tiles of one region in form while: rows of its tables. */
#define WHILE_TILES_MAX 65536

/* Operators whose written form depends on extents and borders alone, not on where the tile lies. */
static bool is_position_free(const ot_node *n)
{
    switch (ot_op_access(n->op)) {
    case OT_ACC_POINTWISE:
    case OT_ACC_CONV:
    case OT_ACC_CONVT:
    case OT_ACC_POOL:
    case OT_ACC_NORM:
    case OT_ACC_SOFTMAX:
    case OT_ACC_REDUCE:
    case OT_ACC_MATMUL:
    case OT_ACC_GEMM:
    case OT_ACC_QUANT:
    case OT_ACC_TRANSPOSE:
    case OT_ACC_BLOCK: return true;
    default: return false;
    }
}

static bool same_tensor(const ot_tensor *a, const ot_tensor *b)
{
    if (a == b) return true;
    if (!a || !b || a->dtype != b->dtype || a->rank != b->rank || a->bytes != b->bytes)
        return false;
    for (uint32_t k = 0; k < a->rank; k++)
        if (a->dims[k] != b->dims[k]) return false;
    return a->data && b->data && !memcmp(a->data, b->data, a->bytes);
}

static bool same_attr(const ot_attr *a, const ot_attr *b)
{
    if (strcmp(a->name, b->name) != 0 || a->kind != b->kind || a->n != b->n) return false;
    switch (a->kind) { /* what is empty may be nowhere */
    case OT_ATTR_INT: return a->i == b->i;
    case OT_ATTR_FLOAT: return a->f == b->f;
    case OT_ATTR_STRING: return a->n == 0 || !memcmp(a->s, b->s, a->n);
    case OT_ATTR_INTS: return a->n == 0 || !memcmp(a->ints, b->ints, a->n * sizeof *a->ints);
    case OT_ATTR_FLOATS:
        return a->n == 0 || !memcmp(a->floats, b->floats, a->n * sizeof *a->floats);
    case OT_ATTR_TENSOR: return same_tensor(a->t, b->t);
    default: return a->proto == b->proto && a->g == b->g && a->strings == b->strings;
    }
}

static bool same_adapted(const ot_adapted *a, const ot_adapted *b, uint32_t n_in)
{
    if (a->kind != b->kind || a->n_attrs != b->n_attrs || a->n_operands != b->n_operands)
        return false;
    if (a->kind == OT_ADAPT_FORWARD) return a->forward == b->forward;
    for (uint32_t k = 0; k < a->n_attrs; k++)
        if (!same_attr(&a->attrs[k], &b->attrs[k])) return false;
    for (uint32_t k = 0; k < a->n_operands; k++) {
        const ot_operand *x = &a->operands[k], *y = &b->operands[k];
        if (x->input != y->input || x->omit != y->omit || !same_tensor(x->tensor, y->tensor))
            return false;
    }
    for (uint32_t k = 0; k < n_in; k++)
        if ((a->drop && a->drop[k]) != (b->drop && b->drop[k])) return false;
    return true;
}

/* Whether node i is written the same way in both tiles. */
static ot_status same_form(const ot_form_tiles *w, uint32_t d, uint32_t i, const ot_tile_windows *a,
                           const ot_tile_windows *b, ot_arena *scratch, bool *same)
{
    const ot_rnode *rn = &w->r->nodes[i];
    const ot_node *n = &w->g->nodes[rn->node];
    ot_adapted x, y;
    *same = true;
    if (is_position_free(n)) return OT_OK;
    ot_tile_axis ax = {rn->lead_out[d], (uint32_t)rn->lead_axis[d], &a->ops[i]};
    ot_tile_axis ay = {rn->lead_out[d], (uint32_t)rn->lead_axis[d], &b->ops[i]};
    if (ot_tile_adapt(w->g, n, &ax, 1, scratch, &x) || ot_tile_adapt(w->g, n, &ay, 1, scratch, &y))
        return ot_fail_nomem(w->g->model->diag);
    *same = same_adapted(&x, &y, n->n_in);
    return OT_OK;
}

/* Extents of all windows of a value agree, and pieces lie at the same place in them. */
static bool alike_value(const ot_tile_windows *a, const ot_tile_windows *b, uint32_t v)
{
    if (ot_win_len(a->made[v]) != ot_win_len(b->made[v])) return false;
    if (ot_win_len(a->piece[v]) != ot_win_len(b->piece[v])) return false;
    if (ot_win_empty(a->piece[v])) return true;
    return a->piece[v].lo - a->made[v].lo == b->piece[v].lo - b->made[v].lo;
}

/* The node reads its inputs at the same places of what is there, with the same border. */
static bool alike_node(const ot_form_tiles *w, uint32_t d, uint32_t i, const ot_tile_windows *a,
                       const ot_tile_windows *b)
{
    const ot_rnode *rn = &w->r->nodes[i];
    const ot_op_tile *x = &a->ops[i], *y = &b->ops[i];
    if (ot_win_empty(x->need) != ot_win_empty(y->need)) return false;
    if (ot_win_empty(x->need) || rn->lead_axis[d] == OT_AX_WHOLE) return true;
    if (x->pad_lo != y->pad_lo || x->pad_hi != y->pad_hi || x->extra != y->extra) return false;
    if (ot_win_len(x->made) != ot_win_len(y->made)) return false;
    for (uint32_t j = 0; j < w->g->nodes[rn->node].n_in; j++) {
        uint32_t v = rn->in[j];
        if (rn->in_axis[d][j] == OT_AX_WHOLE) continue;
        if (ot_win_len(x->in[j]) != ot_win_len(y->in[j])) return false;
        if (ot_win_empty(x->in[j]) || v == OT_NONE) continue;
        bool follows = w->r->values[v].axis[d] == rn->in_axis[d][j];
        if (x->in[j].lo - (follows ? a->made[v].lo : 0) !=
            y->in[j].lo - (follows ? b->made[v].lo : 0))
            return false;
    }
    return true;
}

bool ot_windows_alike(const ot_form_tiles *w, uint32_t d, const ot_tile_windows *a,
                      const ot_tile_windows *b)
{
    const ot_region *r = w->r;
    for (uint32_t v = 0; v < r->n_values; v++)
        if (r->values[v].axis[d] != OT_AX_WHOLE && !alike_value(a, b, v)) return false;
    for (uint32_t i = 0; i < r->n_nodes; i++)
        if (!alike_node(w, d, i, a, b)) return false;
    return true;
}

ot_status ot_tiles_alike(const ot_form_tiles *w, uint32_t d, const ot_tile_windows *a,
                         const ot_tile_windows *b, ot_arena *scratch, bool *same)
{
    const ot_region *r = w->r;
    *same = false;
    if (!ot_windows_alike(w, d, a, b)) return OT_OK;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        if (r->nodes[i].lead_axis[d] < 0 || ot_win_empty(a->ops[i].need)) continue;
        OT_TRY(same_form(w, d, i, a, b, scratch, same));
        if (!*same) return OT_OK;
    }
    *same = true;
    return OT_OK;
}

/* The longest run of tiles that look like its first one (the earliest of the longest). */
static ot_status longest_run(const ot_form_tiles *w, uint32_t d, const ot_tile_windows *win,
                             ot_tile_run *best)
{
    ot_arena *scratch = ot_arena_new();
    ot_status st = scratch ? OT_OK : ot_fail_nomem(w->g->model->diag);
    uint32_t n = w->r->dims[d].n_tiles, k = 0;
    *best = (ot_tile_run){0, 1};
    while (st == OT_OK && k < n) {
        uint32_t end = k + 1;
        bool same = true;
        while (end < n) {
            st = ot_tiles_alike(w, d, &win[k], &win[end], scratch, &same);
            if (st != OT_OK || !same) break;
            end++;
        }
        if (end - k > best->count) *best = (ot_tile_run){k, end - k};
        k = end;
    }
    ot_arena_free(scratch);
    return st;
}

/* Runs of dimension d: `loop`, and single tiles around it. */
static ot_status set_runs(ot_form_tiles *w, uint32_t d, ot_tile_run loop)
{
    ot_dim_runs *x = &w->dims[d];
    uint32_t n = w->r->dims[d].n_tiles;
    x->runs = OT_NEW_N(w->arena, ot_tile_run, n);
    if (!x->runs) return ot_fail_nomem(w->g->model->diag);
    for (uint32_t k = 0; k < n;) {
        ot_tile_run run = k == loop.first ? loop : (ot_tile_run){k, 1};
        x->runs[x->n_runs++] = run;
        k += run.count;
    }
    return OT_OK;
}

/* Class of each tile: the first class whose first tile looks like it. n_classes stops above
 * OT_CLASSES_MAX. */
static ot_status classify(const ot_form_tiles *w, uint32_t d, const ot_tile_windows *win,
                          uint32_t *class_of, uint32_t *n_classes)
{
    ot_arena *scratch = ot_arena_new();
    ot_status st = scratch ? OT_OK : ot_fail_nomem(w->g->model->diag);
    uint32_t first[OT_CLASSES_MAX + 1], n = w->r->dims[d].n_tiles;
    *n_classes = 0;
    for (uint32_t k = 0; st == OT_OK && k < n && *n_classes <= OT_CLASSES_MAX; k++) {
        bool same = false;
        /* Most tiles look like the one before them. */
        uint32_t guess = k > 0 ? class_of[k - 1] : 0;
        for (uint32_t j = 0; st == OT_OK && !same && j < *n_classes; j++) {
            uint32_t c = (guess + j) % *n_classes;
            st = ot_tiles_alike(w, d, &win[first[c]], &win[k], scratch, &same);
            class_of[k] = c;
        }
        if (st != OT_OK || same) continue;
        class_of[k] = *n_classes;
        first[(*n_classes)++] = k;
    }
    ot_arena_free(scratch);
    return st;
}

/* Sort the windows of dimension d by class; each class is a run. */
static ot_status group(ot_form_tiles *w, uint32_t d, bool *legal, ot_why *why)
{
    ot_dim_runs *x = &w->dims[d];
    uint32_t n = w->r->dims[d].n_tiles, n_classes, at = 0;
    uint32_t *class_of = OT_NEW_N(w->arena, uint32_t, n);
    ot_tile_windows *sorted = OT_NEW_N(w->arena, ot_tile_windows, n);
    x->tile = OT_NEW_N(w->arena, uint32_t, n);
    if (!class_of || !sorted || !x->tile) return ot_fail_nomem(w->g->model->diag);
    OT_TRY(classify(w, d, x->tiles, class_of, &n_classes));
    *why = OT_WHY_TILE_KINDS;
    *legal = n_classes <= OT_CLASSES_MAX;
    x->runs = OT_NEW_N(w->arena, ot_tile_run, n_classes);
    if (!x->runs) return ot_fail_nomem(w->g->model->diag);
    for (uint32_t c = 0; *legal && c < n_classes; c++) {
        ot_tile_run run = {at, 0};
        for (uint32_t k = 0; k < n; k++)
            if (class_of[k] == c) {
                x->tile[at] = k;
                sorted[at++] = x->tiles[k];
            }
        run.count = at - run.first;
        x->runs[x->n_runs++] = run;
    }
    x->tiles = sorted;
    return OT_OK;
}

static ot_status new_windows(ot_form_tiles *w, uint32_t d, ot_tile_windows **out)
{
    uint32_t n = w->r->dims[d].n_tiles;
    *out = OT_NEW_N(w->arena, ot_tile_windows, n);
    if (!*out) return ot_fail_nomem(w->g->model->diag);
    for (uint32_t k = 0; k < n; k++) OT_TRY(ot_tile_windows_new(w->g, w->r, w->arena, &(*out)[k]));
    return OT_OK;
}

/* The engine's operators take and write windows of elements of whole bytes. */
static bool has_whole_bytes(const ot_form_tiles *w)
{
    const ot_region *r = w->r;
    for (uint32_t v = 0; v < r->n_values; v++) {
        uint32_t bits = ot_dtype_bits(w->g->values[r->values[v].value].dtype);
        bool cut = false;
        for (uint32_t d = 0; d < r->n_dims; d++)
            cut |= r->values[v].axis[d] >= 0 || ot_is_part(r, v, d);
        if (cut && (v < r->n_inputs || r->values[v].is_output) && (bits == 0 || bits % 8 != 0))
            return false;
    }
    return true;
}

static bool is_part(const ot_region *r, uint32_t v)
{
    for (uint32_t d = 0; d < r->n_dims; d++)
        if (ot_is_part(r, v, d)) return true;
    return false;
}

/* Whether form f can put the parts of reductions together: what a Scan hands over in place is the
 * value itself. In standard ONNX, parts lie one behind the other: nothing of them is cut
 * besides. */
static bool parts_fit(const ot_form_tiles *w, ot_form f, ot_why *why)
{
    const ot_region *r = w->r;
    for (uint32_t v = r->n_inputs; v < r->n_values; v++) {
        const bool part = is_part(r, v);
        bool cut = false;
        for (uint32_t d = 0; d < r->n_dims; d++) cut |= r->values[v].axis[d] >= 0;
        *why = OT_WHY_PARTS_FORM;
        if (part && f != OT_FORM_WHILE && f != OT_FORM_PEELED && f != OT_FORM_LOOP &&
            f != OT_FORM_UNROLLED)
            return false;
        *why = OT_WHY_PARTS_CUT;
        if (part && cut && f != OT_FORM_WHILE) return false;
    }
    return true;
}

/* Split dimension d into runs as form f wants them. */
static ot_status split_dim(ot_form_tiles *w, uint32_t d, ot_form f, bool *legal, ot_why *why)
{
    ot_dim_runs *x = &w->dims[d];
    ot_tile_run run = {0, 1};
    OT_TRY(new_windows(w, d, &x->tiles));
    x->n = w->r->dims[d].n_tiles;
    for (uint32_t k = 0; k < w->r->dims[d].n_tiles; k++)
        if (!ot_tile_windows_get(w->g, w->r, d, k, &x->tiles[k], why)) return OT_OK;
    *legal = true;
    if (f == OT_FORM_WHILE) return group(w, d, legal, why);
    if (f != OT_FORM_UNROLLED) OT_TRY(longest_run(w, d, x->tiles, &run));
    if (f == OT_FORM_SCAN && run.count < w->r->dims[d].n_tiles) {
        *legal = false;
        *why = OT_WHY_SCAN_TILES_DIFFER;
    }
    return *legal ? set_runs(w, d, run) : OT_OK;
}

/* What every form asks of a region. */
static bool is_sound(const ot_form_tiles *w, ot_why *why)
{
    const ot_region *r = w->r;
    *why = OT_WHY_NO_TILE_DIMENSION;
    if (r->n_dims == 0 || r->n_dims > OT_DIMS_MAX) return false;
    *why = OT_WHY_RESHAPE_OPSET;
    if (w->g->model->opset < 5) return false;
    for (uint32_t d = 0; d < r->n_dims; d++) {
        *why = OT_WHY_TILE_COUNT;
        if (r->dims[d].n_tiles < 2 || r->dims[d].n_tiles > TILES_MAX) return false;
    }
    for (uint32_t k = 0; k < r->n_values; k++) {
        const ot_rvalue *rv = &r->values[k];
        const ot_value *v = &w->g->values[rv->value];
        int64_t elems;
        *why = OT_WHY_VALUE_UNKNOWN;
        if (!ot_value_is_static(v) || v->dtype == OT_DT_UNKNOWN || !v->is_tensor) return false;
        if (!ot_value_elems(v, &elems) || elems == 0) return false;
        for (uint32_t d = 0; d < r->n_dims; d++) {
            *why = OT_WHY_OUTPUT_UNCUT;
            if (rv->is_output && rv->axis[d] == OT_AX_WHOLE && !ot_is_part(r, k, d)) return false;
            *why = OT_WHY_SAME_AXIS_TWICE;
            for (uint32_t e = 0; e < d; e++)
                if (rv->axis[d] != OT_AX_WHOLE && rv->axis[d] == rv->axis[e]) return false;
            *why = OT_WHY_VALUE_RANK;
            if (v->rank + (int32_t)OT_DIMS_MAX + 2 > OT_RANK_MAX) return false;
        }
    }
    return true;
}

bool ot_sequence_fits(const ot_graph *g, const ot_region *r)
{
    for (uint32_t v = r->n_inputs; v < r->n_values; v++)
        if (r->values[v].is_output && !is_part(r, v) &&
            !ot_reassemble_takes(OT_REASSEMBLE_SEQUENCE, g->values[r->values[v].value].dtype,
                                 g->model->opset))
            return false;
    return r->n_dims == 1 && g->model->opset >= SEQUENCE_OPSET;
}

/* Rows of any value may be handed on. */
static bool all_whole_bytes(const ot_form_tiles *w)
{
    for (uint32_t v = 0; v < w->r->n_values; v++)
        if (ot_dtype_bits(w->g->values[w->r->values[v].value].dtype) % 8 != 0) return false;
    return true;
}

/* Whether there are tiles, or steps, for every size. */
static ot_status free_legal(const ot_form_tiles *w, ot_form f, bool *legal, ot_why *why)
{
    ot_region r = *w->r;
    const ot_form_tiles t = {.g = w->g, .r = &r, .arena = w->arena};
    ot_dynamic_tiles free;
    r.form = f;
    return ot_dynamic_tiles_plan(&t, &free, legal, why);
}

/* Steps in place of tiles. */
static ot_status prepare_stream(ot_form_tiles *w, bool *legal, ot_why *why)
{
    ot_stream s;
    ot_dim_runs *x = &w->dims[0];
    *why = w->r->in_classes ? OT_WHY_TYPE_WHILE : OT_WHY_STREAM_SEQUENCE;
    if (w->r->in_classes ? !all_whole_bytes(w) : !ot_sequence_fits(w->g, w->r)) return OT_OK;
    OT_TRY(ot_stream_steps(w->g, w->r, w->arena, &s, legal, why));
    if (!*legal) return OT_OK;
    *x = (ot_dim_runs){.n = s.n, .tiles = s.steps, .runs = s.runs, .n_runs = s.n_runs};
    if (w->r->in_classes) *why = OT_WHY_TILE_KINDS;
    *legal = w->r->in_classes ? s.n_runs <= OT_CLASSES_MAX
                              : ot_reassemble_legal(w, OT_FORM_STREAM, true, why);
    return *legal && w->g->model->dynamic_dims ? free_legal(w, OT_FORM_STREAM, legal, why) : OT_OK;
}

ot_status ot_form_prepare(ot_form_tiles *w, ot_form f, bool *legal, ot_why *why)
{
    const ot_region *r = w->r;
    uint64_t tiles = 1, single = 1, looped = 0;
    *legal = false;
    if (!is_sound(w, why) || !parts_fit(w, f, why)) return OT_OK;
    if (w->g->model->dynamic_dims && ((f != OT_FORM_PEELED && f != OT_FORM_STREAM) ||
                                      r->in_classes || !ot_sequence_fits(w->g, r))) {
        *why = OT_WHY_DYNAMIC_FORM;
        return OT_OK;
    }
    if (f == OT_FORM_STREAM) return prepare_stream(w, legal, why);
    for (uint32_t d = 0; d < r->n_dims; d++) {
        *legal = false;
        OT_TRY(split_dim(w, d, f, legal, why));
        if (!*legal) return OT_OK;
        tiles *= r->dims[d].n_tiles;
        single *= w->dims[d].n_runs;
        for (uint32_t k = 0; k < w->dims[d].n_runs; k++) looped |= w->dims[d].runs[k].count > 1;
    }
    *legal = false;
    if (f == OT_FORM_WHILE) {
        *why = OT_WHY_TYPE_WHILE;
        if (!has_whole_bytes(w)) return OT_OK;
        *why = single > OT_CLASSES_MAX ? OT_WHY_TILE_KINDS : OT_WHY_MANY_STARTS;
        *legal = single <= OT_CLASSES_MAX && tiles <= WHILE_TILES_MAX;
        return OT_OK;
    }
    *why = OT_WHY_MANY_NODES;
    if (single * r->n_nodes > UNROLLED_NODES_MAX || tiles > UINT32_MAX / 64) return OT_OK;
    *why = OT_WHY_NONE_ALIKE;
    bool sequence = f == OT_FORM_PEELED && ot_sequence_fits(w->g, w->r);
    if (f != OT_FORM_UNROLLED && !looped && !sequence) return OT_OK;
    if (!ot_reassemble_legal(w, f, sequence, why)) return OT_OK;
    if (w->g->model->dynamic_dims) return free_legal(w, f, legal, why);
    if (f == OT_FORM_PRESCAN) return ot_prescan_legal(w, legal, why);
    *legal = f != OT_FORM_SCAN || ot_scan_legal(w, why);
    return OT_OK;
}

/* Whether all that the prepared form needs is there. */
static ot_status can_run(const ot_form_tiles *w, ot_form f, unsigned cannot, bool *legal,
                         ot_why *why)
{
    unsigned needs;
    OT_TRY(ot_form_needs(w, f, &needs));
    *legal = (needs & cannot) == 0;
    if (!*legal) *why = ot_needs_refusal(needs & cannot);
    return OT_OK;
}

static ot_status form_legal(ot_form_memo *m, const ot_graph *g, const ot_region *r, ot_form f,
                            unsigned cannot, bool *legal, ot_why *why)
{
    *legal = false;
    *why = OT_WHY_NO_FORM;
    if (f == OT_FORM_NONE) return OT_OK;
    ot_arena *a = ot_arena_new();
    if (!a) return ot_fail_nomem(g->model->diag);
    const ot_region flat = ot_stream_written(r);
    ot_form_tiles w = {.g = g, .r = f == OT_FORM_STREAM ? &flat : r, .arena = a};
    ot_status st = ot_form_recall(m, &w, f, legal, why);
    /* asked of the graph as it was planned: later, other regions' readers have changed */
    if (st == OT_OK && *legal && f != OT_FORM_UNROLLED && f != OT_FORM_WHILE &&
        !(f == OT_FORM_STREAM && r->in_classes))
        *legal = ot_captures_safe(g, r, why);
    if (st == OT_OK && *legal && cannot) st = can_run(&w, f, cannot, legal, why);
    ot_arena_free(a);
    return st;
}

ot_status ot_form_legal(const ot_graph *g, const ot_region *r, ot_form f, unsigned cannot,
                        bool *legal, ot_why *why)
{
    return form_legal(NULL, g, r, f, cannot, legal, why);
}

ot_status ot_form_recall_legal(ot_form_memo *m, const ot_graph *g, const ot_region *r, ot_form f,
                               bool *legal, ot_why *why)
{
    return form_legal(m, g, r, f, 0, legal, why);
}
