/* Regions whose cut axis has another extent in every run (tiling/dynamic_tiles.h), in plain ONNX.
 *
 *     Shape(x) --Gather--> extent --Sub, Div--> n, start        outside the loops, integers
 *
 *     SequenceEmpty --> Loop(untiled) --> Loop(first) --> Loop(inner) --> Loop(last)
 *         trips           0 | 1            1 | 0            n | 0           1 | 0
 *         --> ConcatFromSequence --> y                      where x is long | short enough
 *
 * Steps of a stream are the same picture; rows go from Loop to Loop as in stream_form.c, and
 * where the region runs untiled nobody reads what they are handed.
 *
 * Inner tiles cut their windows at lo + iteration * step, the last one takes all from `start`
 * on. Where some input is too short for a first and a last tile, the region's own operators run
 * on all of it: a loop of one step, with constants read from outside.
 *
 * Nodes are written to the file's graph, whose dynamic extents are unknown; windows are those of
 * the graph at the design size, which has the same nodes and values by number.
 */
#include "transform_internal.h"

#include "tiling/dynamic_tiles.h"
#include "transform/decompose/decompose.h"

/* Scalars of the region's graph that its loops run by. */
typedef struct free_counts {
    ot_id untiled, tiled, inner; /* trips of the loops */
    /* [n_values] first row of a cut input in the last tile, [1]; OT_NONE */
    ot_id *start;
} free_counts;

typedef struct writing {
    rw_region *w;
    ot_dynamic_tiles f;
    free_counts n;
    ot_id *seq; /* [n_values] pieces, or parts, of an output */
    /* [n_values] rows that each part of it stands for; OT_NONE: parts have no weight */
    ot_id *own;
    bool steps; /* of a stream */
    /* [n_values] rows that the step before handed on, in the region's graph; OT_NONE */
    ot_id *rows;
} writing;

typedef enum tile_kind { TILE_FIRST, TILE_INNER, TILE_LAST } tile_kind;

/* One Loop over tiles on its way. What goes through it: rows of values first, then sequences. */
typedef struct tile_loop {
    writing *x;
    tile_kind kind;
    const ot_tile_windows *win; /* of its first tile */
    rw_loop l;
    rw_chain c;
    /* region outputs; n_out of them, then again those whose parts have a weight */
    uint32_t *outs, n;
    uint32_t n_out;
    ot_id *before;             /* [n] their sequences in the body */
    uint32_t *carried, n_rows; /* region values whose rows are handed on */
} tile_loop;

/* ---- counting ---- */

/* An operator on scalars of integers or truths (or [1]), b OT_NONE: on a alone; in the region's
 * graph or a body. */
static ot_status arithmetic(rw_region *w, rw_target *t, const char *op, const char *name, ot_id a,
                            ot_id b, ot_id *out)
{
    const int64_t one[1] = {1};
    const ot_id in[2] = {a, b};
    const ot_value *x = &t->g->values[a], *y = b == OT_NONE ? x : &t->g->values[b];
    const bool compares = !strcmp(op, "Less") || !strcmp(op, "Equal");
    const ot_tensor_type type = {compares ? OT_BOOL : x->dtype,
                                 x->rank > y->rank ? x->rank : y->rank, one};
    *out = OT_NONE;
    return rw_op(w, t, t->is_body ? t->label : "count",
                 &(ot_node_def){.op = op, .name = name, .in = {in, b == OT_NONE ? 1 : 2}}, type,
                 out);
}

static ot_status number(rw_region *w, rw_target *t, int64_t value, bool scalar, ot_id *out)
{
    return rw_const_i64(w, t, "number", &value, 1, scalar, out);
}

/* Extent of the cut axis of region input v. */
static ot_status extent_of(rw_region *w, uint32_t v, ot_id *out)
{
    const ot_id id = w->r->values[v].value;
    const ot_value x = w->g->values[id];
    const int64_t rank = x.rank;
    const ot_attr axis = ot_mk_int("axis", 0);
    ot_id in[2] = {OT_NONE, OT_NONE};
    OT_TRY(rw_op(w, &w->top, "count", &(ot_node_def){.op = "Shape", .name = x.name, .in = {&id, 1}},
                 (ot_tensor_type){OT_I64, 1, &rank}, &in[0]));
    OT_TRY(number(w, &w->top, w->r->values[v].axis[0], true, &in[1]));
    *out = OT_NONE;
    return rw_op(w, &w->top, "count",
                 &(ot_node_def){.op = "Gather", .name = x.name, .in = {in, 2}, .attrs = {&axis, 1}},
                 (ot_tensor_type){OT_I64, 0, NULL}, out);
}

/* *all = *all op more, or more where there is nothing yet. */
static ot_status join(rw_region *w, const char *op, ot_id more, ot_id *all)
{
    ot_id both;
    if (*all == OT_NONE) {
        *all = more;
        return OT_OK;
    }
    OT_TRY(arithmetic(w, &w->top, op, "all", *all, more, &both));
    *all = both;
    return OT_OK;
}

/* Inner tiles that fit by input v, and whether it is too short. */
static ot_status count_by(writing *x, uint32_t v, ot_id extent, ot_id *tiles, ot_id *low)
{
    rw_region *w = x->w;
    ot_id least, step, room, few;
    OT_TRY(number(w, &w->top, x->f.least[v], true, &least));
    OT_TRY(arithmetic(w, &w->top, "Less", "short", extent, least, &few));
    OT_TRY(join(w, "Or", few, low));
    if (x->f.step[v] == 0) return OT_OK; /* inner tiles read nothing of it */
    OT_TRY(number(w, &w->top, x->f.step[v], true, &step));
    OT_TRY(arithmetic(w, &w->top, "Sub", "room", extent, least, &room));
    OT_TRY(arithmetic(w, &w->top, "Div", "tiles", room, step, &few));
    return join(w, "Min", few, tiles);
}

static ot_status count(writing *x)
{
    rw_region *w = x->w;
    ot_id tiles = OT_NONE, low = OT_NONE, first = OT_NONE, one;
    const ot_attr to = ot_mk_int("to", OT_I64);
    x->n.start = OT_NEW_N(w->arena, ot_id, w->r->n_values);
    if (!x->n.start) return rw_nomem(w);
    for (uint32_t v = 0; v < w->r->n_inputs; v++) {
        ot_id extent, same, differs;
        x->n.start[v] = OT_NONE;
        if (w->r->values[v].axis[0] == OT_AX_WHOLE) continue;
        OT_TRY(extent_of(w, v, &extent));
        OT_TRY(count_by(x, v, extent, &tiles, &low));
        if (first == OT_NONE) first = extent;
        if (first == extent || !x->f.same) continue;
        OT_TRY(arithmetic(w, &w->top, "Equal", "same", first, extent, &same));
        OT_TRY(arithmetic(w, &w->top, "Not", "differs", same, OT_NONE, &differs));
        OT_TRY(join(w, "Or", differs, &low));
    }
    if (tiles == OT_NONE) OT_BUG("a region without an input that is cut");
    x->n.untiled = OT_NONE;
    OT_TRY(
        rw_op(w, &w->top, "count",
              &(ot_node_def){.op = "Cast", .name = "untiled", .in = {&low, 1}, .attrs = {&to, 1}},
              (ot_tensor_type){OT_I64, 0, NULL}, &x->n.untiled));
    OT_TRY(number(w, &w->top, 1, true, &one));
    OT_TRY(arithmetic(w, &w->top, "Sub", "tiled", one, x->n.untiled, &x->n.tiled));
    OT_TRY(arithmetic(w, &w->top, "Mul", "inner", tiles, x->n.tiled, &x->n.inner));
    for (uint32_t v = 0; v < w->r->n_inputs; v++) {
        ot_id step, lo, way;
        if (x->f.step[v] == 0) continue;
        OT_TRY(number(w, &w->top, x->f.step[v], false, &step));
        OT_TRY(number(w, &w->top, x->f.inner->made[v].lo, false, &lo));
        OT_TRY(arithmetic(w, &w->top, "Mul", "way", x->n.inner, step, &way));
        OT_TRY(arithmetic(w, &w->top, "Add", "start", way, lo, &x->n.start[v]));
    }
    return OT_OK;
}

/* ---- bodies ---- */

/* Rows [start, start + len), or all from start on where len is OT_TO_END; start: [1]. */
static ot_status slice(rw_loop *l, ot_id src, uint32_t axis, ot_id start, int64_t len,
                       const char *name, ot_id *out)
{
    rw_region *w = l->w;
    const ot_value v = l->body.g->values[src];
    const int64_t at = axis;
    int64_t open[OT_RANK_MAX], dims[OT_RANK_MAX];
    ot_id in[4] = {src, start, OT_NONE, OT_NONE}, cut = OT_NONE;
    if (len == OT_TO_END) {
        OT_TRY(number(w, &l->body, OT_TO_END, false, &in[2]));
    } else {
        OT_TRY(number(w, &l->body, len, false, &in[3]));
        OT_TRY(arithmetic(w, &l->body, "Add", "end", start, in[3], &in[2]));
    }
    OT_TRY(rw_const_i64(w, &l->body, "axes", &at, 1, false, &in[3]));
    memcpy(open, v.dims, (size_t)v.rank * sizeof *open);
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    open[axis] = OT_DIM_UNKNOWN;
    OT_TRY(rw_op(w, &l->body, "slice", &(ot_node_def){.op = "Slice", .name = name, .in = {in, 4}},
                 (ot_tensor_type){v.dtype, v.rank, open}, &cut));
    *out = cut;
    if (len == OT_TO_END) return OT_OK;
    dims[axis] = len;
    *out = OT_NONE;
    return rw_reshape(w, &l->body, "body", name, cut, v.rank, dims, out); /* states the extent */
}

/* What a tile reads of region input v. */
static ot_status bring(writing *x, rw_loop *l, const ot_tile_windows *win, tile_kind kind,
                       uint32_t v, ot_id *out)
{
    rw_region *w = x->w;
    const ot_rvalue *rv = &w->r->values[v];
    const char *name = w->g->values[rv->value].name;
    const uint32_t axis = (uint32_t)rv->axis[0];
    ot_id src, start, step, lo;
    OT_TRY(rw_use(w, &l->body, rv->value, &src));
    *out = src;
    if (rv->axis[0] == OT_AX_WHOLE) return OT_OK;
    if (kind == TILE_FIRST) {
        const rw_cut cut = {axis, win->made[v].lo, win->made[v].hi};
        return rw_crop(w, &l->body, src, &cut, 1, name, out);
    }
    if (kind == TILE_LAST) {
        OT_TRY(rw_capture(w, &l->body, x->n.start[v], &start));
        return slice(l, src, axis, start, OT_TO_END, name, out);
    }
    OT_TRY(number(w, &l->body, x->f.step[v], false, &step));
    OT_TRY(number(w, &l->body, win->made[v].lo, false, &lo));
    OT_TRY(arithmetic(w, &l->body, "Mul", "way", l->iter, step, &start));
    OT_TRY(arithmetic(w, &l->body, "Add", "start", start, lo, &start));
    return slice(l, src, axis, start, ot_win_len(win->made[v]), name, out);
}

/* Rows of region value v: as many, or unknown where the region may run untiled and hands on none.
 */
static void dims_of_rows(const rw_region *w, uint32_t v, int64_t rows, int64_t *dims)
{
    const ot_value *x = &w->g->values[w->r->values[v].value];
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    dims[w->r->values[v].axis[0]] = rows;
}

/* What goes into the Loop in place of value k of those whose rows it hands on, and what comes out.
 */
static ot_status row_operand(tile_loop *t, uint32_t k, ot_id *in, ot_id *made)
{
    writing *x = t->x;
    rw_region *w = x->w;
    const uint32_t v = t->carried[k];
    const ot_value of = w->g->values[w->r->values[v].value];
    int64_t dims[OT_RANK_MAX];
    dims_of_rows(w, v, ot_value_is_static(&of) ? ot_win_len(x->f.inner->kept[v]) : OT_DIM_UNKNOWN,
                 dims);
    *in = x->rows[v];
    if (t->kind == TILE_FIRST) OT_TRY(rw_no_rows(w, v, in));
    OT_TRY(rw_value(w, &w->top, "rows", of.name, (ot_tensor_type){of.dtype, of.rank, dims}, made));
    x->rows[v] = *made;
    return OT_OK;
}

/* Element type of sequence k of those that the loop carries. */
static ot_dtype type_of(const tile_loop *t, uint32_t k)
{
    const rw_region *w = t->x->w;
    return k < t->n_out ? w->g->values[w->r->values[t->outs[k]].value].dtype : OT_F64;
}

/* The loop's node: rows and sequences in and out; results: rows [n_rows], then the sequences of
 * the outputs [n]. */
static ot_status close_loop(tile_loop *t, ot_id trips, const ot_id *results)
{
    writing *x = t->x;
    rw_region *w = x->w;
    ot_arena *a = w->g->model->arena;
    ot_graph *body = t->l.body.g;
    const uint32_t all = t->n_rows + t->n;
    ot_id *handed = OT_NEW_N(a, ot_id, all + 1u), *in = OT_NEW_N(w->arena, ot_id, all + 2u),
          *made = OT_NEW_N(w->arena, ot_id, all + 1u);
    if (!handed || !in || !made) return rw_nomem(w);
    handed[0] = t->l.inputs[1];
    OT_TRY(rw_loop_own(&t->l, "continue", &handed[0]));
    in[0] = trips;
    OT_TRY(rw_const_true(w, &w->top, &in[1]));
    for (uint32_t k = 0; k < t->n_rows; k++) OT_TRY(row_operand(t, k, &in[k + 2], &made[k]));
    for (uint32_t k = 0; k < t->n; k++) {
        const uint32_t at = t->n_rows + k;
        const ot_value y = w->g->values[w->r->values[t->outs[k]].value];
        ot_id *sequence = &(k < t->n_out ? x->seq : x->own)[t->outs[k]];
        in[at + 2] = *sequence;
        OT_TRY(rw_value(w, &w->top, "while", y.name, (ot_tensor_type){type_of(t, k), 0, NULL},
                        &made[at]));
        rw_make_sequence(w->g, made[at]);
        *sequence = made[at];
    }
    for (uint32_t k = 0; k < all; k++) {
        handed[k + 1] = results[k];
        body->values[results[k]].is_output = true;
    }
    OT_TRY(rw_loop_write(&t->l, in, all, handed, made, all));
    return t->n_rows ? rw_stream_order(&t->l, handed + 1, t->n_rows) : OT_OK;
}

/* A sequence of region output v is handed on; n counts up. */
static ot_status carry_one(tile_loop *t, uint32_t v)
{
    rw_region *w = t->x->w;
    t->outs[t->n] = v;
    OT_TRY(rw_loop_input(&t->l, w->g->values[w->r->values[v].value].name, type_of(t, t->n),
                         &t->before[t->n]));
    rw_make_sequence(t->l.body.g, t->before[t->n]);
    t->n++;
    return OT_OK;
}

/* Outputs of the region, as numbers of values, and the sequences as the body gets them. */
static ot_status carry(tile_loop *t)
{
    rw_region *w = t->x->w;
    t->outs = OT_NEW_N(w->arena, uint32_t, 2u * w->r->n_values + 1u);
    t->before = OT_NEW_N(w->arena, ot_id, 2u * w->r->n_values + 1u);
    if (!t->outs || !t->before) return rw_nomem(w);
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++)
        t->n_out += w->r->values[v].is_output;
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++)
        if (w->r->values[v].is_output) OT_TRY(carry_one(t, v));
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++)
        if (t->x->own[v] != OT_NONE) OT_TRY(carry_one(t, v));
    return OT_OK;
}

static ot_status insert(rw_loop *l, const char *name, ot_id before, ot_id piece, ot_id *out)
{
    const ot_id in[2] = {before, piece};
    return rw_sequence_op(l->w, &l->body,
                          &(ot_node_def){.op = "SequenceInsert", .name = name, .in = {in, 2}},
                          l->body.g->values[piece].dtype, out);
}

/* A body input for rows of v; the first step's is not read. */
static ot_status rows_input(tile_loop *t, uint32_t v, ot_id *out)
{
    rw_region *w = t->x->w;
    rw_loop *l = &t->l;
    const ot_value of = w->g->values[w->r->values[v].value];
    int64_t dims[OT_RANK_MAX];
    dims_of_rows(w, v, t->kind == TILE_FIRST ? OT_DIM_UNKNOWN : ot_win_len(t->win->kept[v]), dims);
    OT_TRY(rw_value(w, &l->body, "rows", of.name, (ot_tensor_type){of.dtype, of.rank, dims}, out));
    l->body.g->values[*out].is_input = true;
    return OT_PUSH(w->arena, l->inputs, l->n_inputs, l->cap_inputs, *out) ? OT_OK : rw_nomem(w);
}

/* Rows that steps hand on, as the body gets them; the last one reads them by name. */
static ot_status carry_rows(tile_loop *t)
{
    rw_region *w = t->x->w;
    ot_id unread;
    t->carried = OT_NEW_N(w->arena, uint32_t, w->r->n_values + 1u);
    t->c.kept = OT_NEW_N(w->arena, ot_id, w->r->n_values + 1u);
    if (!t->carried || !t->c.kept) return rw_nomem(w);
    for (uint32_t v = 0; v < w->r->n_values; v++) {
        t->c.kept[v] = OT_NONE;
        if (v < w->r->n_inputs || ot_win_empty(t->x->f.inner->kept[v])) continue;
        if (t->kind == TILE_LAST) {
            OT_TRY(rw_capture(w, &t->l.body, t->x->rows[v], &t->c.kept[v]));
            continue;
        }
        OT_TRY(rows_input(t, v, t->kind == TILE_FIRST ? &unread : &t->c.kept[v]));
        t->carried[t->n_rows++] = v;
    }
    return OT_OK;
}

/* Rows of value k of these for the next step. */
static ot_status hand_on(tile_loop *t, uint32_t k, ot_id *out)
{
    const uint32_t v = t->carried[k];
    const ot_win kept = t->x->f.inner->kept[v];
    const int64_t moved = t->kind == TILE_INNER ? t->x->f.step[v] : 0;
    OT_TRY(rw_stream_rows(&t->c, v, kept.lo + moved, kept.hi + moved, out));
    return rw_loop_own(&t->l, t->x->w->g->values[t->x->w->r->values[v].value].name, out);
}

/* The sequence of output k with what the tile made of it behind. */
static ot_status add_piece(tile_loop *t, uint32_t k, ot_id *out)
{
    rw_region *w = t->x->w;
    const uint32_t v = t->outs[k];
    const ot_value y = w->g->values[w->r->values[v].value];
    const int64_t lo = t->win->piece[v].lo - t->win->made[v].lo;
    const rw_cut cut = {(uint32_t)w->r->values[v].axis[0], lo,
                        t->c.to_end ? OT_TO_END : lo + ot_win_len(t->win->piece[v])};
    ot_id piece = t->c.val[v];
    if (k >= t->n_out) {
        OT_TRY(rw_free_part_rows(&t->c, t->win, v, &piece));
        return insert(&t->l, y.name, t->before[k], piece, out);
    }
    if (rw_is_part(w, v)) {
        OT_TRY(rw_free_part(w, &t->l.body, v, t->c.val[v], &piece));
        return insert(&t->l, y.name, t->before[k], piece, out);
    }
    if (!rw_has_piece(&t->c, v)) { /* a first tile may have none of an output */
        const ot_node_def same = {.op = "Identity", .name = y.name, .in = {&t->before[k], 1}};
        *out = OT_NONE;
        OT_TRY(
            rw_op(w, &t->l.body, t->l.body.label, &same, (ot_tensor_type){y.dtype, 0, NULL}, out));
        rw_make_sequence(t->l.body.g, *out);
        return OT_OK;
    }
    /* steps make no row twice */
    if (!t->x->steps) OT_TRY(rw_crop(w, &t->l.body, t->c.val[v], &cut, 1, y.name, &piece));
    return insert(&t->l, y.name, t->before[k], piece, out);
}

/* A loop over tiles that are all written as the one with windows win is. */
static ot_status write_tiles(writing *x, const ot_tile_windows *win, tile_kind kind, ot_id trips)
{
    rw_region *w = x->w;
    const ot_tile_windows *wins[OT_DIMS_MAX] = {win};
    const rw_block block = {.count = {1, 1, 1}, .n_tiles = 1, .looped = true};
    ot_id *results = OT_NEW_N(w->arena, ot_id, 3u * w->r->n_values + 1u);
    tile_loop t = {.x = x, .kind = kind, .win = win};
    if (!results) return rw_nomem(w);
    OT_TRY(rw_loop_open(&t.l, w, &block, true));
    OT_TRY(rw_chain_plan(&t.c, w, &t.l.body, wins));
    if (x->steps) OT_TRY(carry_rows(&t));
    OT_TRY(carry(&t));
    t.c.to_end = kind == TILE_LAST;
    for (uint32_t v = 0; v < w->r->n_inputs; v++)
        if (t.c.needed[v]) OT_TRY(bring(x, &t.l, win, kind, v, &t.c.val[v]));
    OT_TRY(rw_chain_emit(&t.c));
    for (uint32_t k = 0; k < t.n_rows; k++) OT_TRY(hand_on(&t, k, &results[k]));
    for (uint32_t k = 0; k < t.n; k++) OT_TRY(add_piece(&t, k, &results[t.n_rows + k]));
    return close_loop(&t, trips, results);
}

/* Moments of all of x, in standard ONNX. */
static ot_status copy_moments(rw_loop *l, const ot_node *n, ot_id x, ot_id *out)
{
    size_t n_axes;
    const int64_t *axes = ot_attr_ints(n, "axes", &n_axes);
    const char *base = rw_name(l->w, "untiled", n->name);
    *out = OT_NONE;
    return base ? ot_moments_write(l->body.g, base, x, axes, n_axes, out) : rw_nomem(l->w);
}

/* Node i of the region as it is, in the body; val: [n_values] of the region, filled. */
static ot_status copy_node(rw_loop *l, uint32_t i, ot_id *val)
{
    rw_region *w = l->w;
    const ot_rnode *rn = &w->r->nodes[i];
    const ot_node n = w->g->nodes[rn->node];
    ot_id *in = OT_NEW_N(w->arena, ot_id, n.n_in + 1u),
          *out = OT_NEW_N(w->arena, ot_id, n.n_out + 1u);
    if (!in || !out) return rw_nomem(w);
    for (uint32_t j = 0; j < n.n_in; j++) {
        in[j] = OT_NONE;
        if (n.in[j] == OT_NONE) continue;
        if (rn->in[j] != OT_NONE)
            in[j] = val[rn->in[j]];
        else
            OT_TRY(rw_use(w, &l->body, n.in[j], &in[j]));
    }
    if (n.op == OT_OP_Moments) return copy_moments(l, &n, in[0], &val[rn->out[0]]);
    for (uint32_t o = 0; o < n.n_out; o++) {
        out[o] = OT_NONE;
        if (n.out[o] == OT_NONE) continue;
        const ot_value v = w->g->values[n.out[o]];
        OT_TRY(rw_value(w, &l->body, "untiled", v.name, ot_type_of(&v), &out[o]));
        if (rn->out[o] != OT_NONE) val[rn->out[o]] = out[o];
    }
    const char *name = rw_name(w, "untiled", n.name[0] ? n.name : n.op_type);
    if (!name) return rw_nomem(w);
    const ot_id id = ot_node_new(l->body.g, &(ot_node_def){.op = n.op_type,
                                                           .domain = n.domain,
                                                           .name = name,
                                                           .in = {in, n.n_in},
                                                           .out = {out, n.n_out},
                                                           .attrs = {n.attrs, n.n_attrs}});
    return id == OT_NONE ? rw_nomem(w) : OT_OK;
}

/* A loop of one step that runs the region's operators on all there is. */
static ot_status write_untiled(writing *x)
{
    rw_region *w = x->w;
    const rw_block block = {.count = {1, 1, 1}, .n_tiles = 1, .looped = true};
    ot_id *val = OT_NEW_N(w->arena, ot_id, w->r->n_values),
          *results = OT_NEW_N(w->arena, ot_id, 2u * w->r->n_values + 1u);
    tile_loop t = {.x = x};
    if (!val || !results) return rw_nomem(w);
    OT_TRY(rw_loop_open(&t.l, w, &block, true));
    OT_TRY(carry(&t));
    for (uint32_t v = 0; v < w->r->n_inputs; v++)
        OT_TRY(rw_capture(w, &t.l.body, w->r->values[v].value, &val[v]));
    /* But for known shapes, which need not be computed of what the region makes. Before IR 4,
     * bodies read no initializers from outside. */
    w->capture = w->g->model->ir_version >= 4;
    for (uint32_t i = 0; i < w->r->n_nodes; i++) OT_TRY(copy_node(&t.l, i, val));
    w->capture = false;
    for (uint32_t k = 0; k < t.n; k++) {
        ot_id piece = val[t.outs[k]];
        if (k >= t.n_out)
            OT_TRY(rw_free_part_all(w, &t.l.body, &piece));
        else if (rw_is_part(w, t.outs[k]))
            OT_TRY(rw_free_part(w, &t.l.body, t.outs[k], piece, &piece));
        OT_TRY(insert(&t.l, w->g->values[w->r->values[t.outs[k]].value].name, t.before[k], piece,
                      &results[k]));
    }
    return close_loop(&t, x->n.untiled, results);
}

/* Empty sequences: of each output's pieces or parts, and of the rows that parts stand for. */
static ot_status start_sequences(writing *x)
{
    rw_region *w = x->w;
    OT_TRY(rw_sequences_start(w, x->seq));
    for (uint32_t v = 0; v < w->r->n_values; v++) {
        x->own[v] = OT_NONE;
        if (!w->r->values[v].is_output || !rw_is_part(w, v)) continue;
        const ot_value y = w->g->values[w->r->values[v].value];
        const ot_attr type = ot_mk_int("dtype", y.dtype), rows = ot_mk_int("dtype", OT_F64);
        OT_TRY(rw_sequence_op(
            w, &w->top, &(ot_node_def){.op = "SequenceEmpty", .name = y.name, .attrs = {&type, 1}},
            y.dtype, &x->seq[v]));
        if (rw_part_has_weight(w, v))
            OT_TRY(rw_sequence_op(
                w, &w->top,
                &(ot_node_def){.op = "SequenceEmpty", .name = y.name, .attrs = {&rows, 1}}, OT_F64,
                &x->own[v]));
    }
    return OT_OK;
}

/* How many tiles the region runs in, [1]. */
static ot_status count_all(writing *x, ot_id *out)
{
    rw_region *w = x->w;
    ot_id ends, all;
    OT_TRY(number(w, &w->top, (int64_t)x->f.n_first + 1, false, &ends));
    OT_TRY(arithmetic(w, &w->top, "Mul", "ends", x->n.tiled, ends, &all));
    OT_TRY(arithmetic(w, &w->top, "Add", "ends", all, x->n.inner, &ends));
    return arithmetic(w, &w->top, "Add", "parts", ends, x->n.untiled, out);
}

/* The region's outputs of what the sequences hold. */
static ot_status finish_sequences(writing *x)
{
    rw_region *w = x->w;
    ot_id tiles = OT_NONE;
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++) {
        if (!w->r->values[v].is_output || !rw_is_part(w, v)) continue;
        if (tiles == OT_NONE) OT_TRY(count_all(x, &tiles));
        OT_TRY(rw_free_combine(w, v, x->seq[v], x->own[v], tiles));
        x->seq[v] = OT_NONE;
    }
    return rw_sequences_join(w, x->seq);
}

/* requires a region that ot_dynamic_tiles_plan finds legal. Fails: OT_E_NOMEM. */
ot_status rw_free(rw_region *w)
{
    writing x = {.w = w,
                 .seq = OT_NEW_N(w->arena, ot_id, w->r->n_values + 1u),
                 .steps = w->r->form == OT_FORM_STREAM};
    bool legal;
    ot_why why;
    x.rows = OT_NEW_N(w->arena, ot_id, w->r->n_values + 1u);
    x.own = OT_NEW_N(w->arena, ot_id, w->r->n_values + 1u);
    if (!x.seq || !x.rows || !x.own) return rw_nomem(w);
    for (uint32_t v = 0; v < w->r->n_values; v++) x.rows[v] = OT_NONE;
    OT_TRY(ot_dynamic_tiles_plan(w->tiles, &x.f, &legal, &why));
    if (!legal) OT_BUG("a region with dynamic dimensions is planned that has no such form");
    /* operators are written by the extents that their windows are of */
    ot_form_tiles tiles = *w->tiles;
    tiles.g = x.f.g;
    w->tiles = &tiles;
    OT_TRY(count(&x));
    OT_TRY(start_sequences(&x));
    OT_TRY(write_untiled(&x));
    for (uint32_t k = 0; k < x.f.n_first; k++)
        OT_TRY(write_tiles(&x, &x.f.first[k], TILE_FIRST, x.n.tiled));
    OT_TRY(write_tiles(&x, x.f.inner, TILE_INNER, x.n.inner));
    OT_TRY(write_tiles(&x, &x.f.last, TILE_LAST, x.n.tiled));
    return finish_sequences(&x);
}
