/* The engine's own form: domain onnx_tile, version 1 (docs/engine-form.md). Pieces are written
 * in place, nothing is joined.
 *
 *     y0 = Alloc()                  one per output of the region
 *     y1 = While(y0) { class 0 }    one per class of alike tiles, chained through the
 *                                   buffers that it writes
 *     y  = While(y1) { class 1 }    the last one that writes an output makes the region's own value
 *
 *     body   x (captured) --Slice by starts[i]--> window --conv--relu--[crop]--> piece --Deslice by
 *            starts[i]--> y
 *
 * Tiles are grouped by runs.c: windows are exact, so a class has pads and attributes of its own,
 * and a class of one tile is a While that runs once. Tables of starts are attributes, a row per
 * tile of the class. Constants stay where they are, captured by name: the engine packs them once
 * for all classes.
 *
 * What is reduced over a cut axis has a slot per tile (while_parts.c).
 *
 * A region that streams (tiling/stream.h) hands rows of values on in buffers that its Whiles
 * carry, for those of each value one:
 *
 *     rows0 = Alloc()    y1, rows1 = While(y0, rows0) { step 0 }    y2, rows2 = While(y1, rows1) {
 *                                                                   steps that are alike }  ...
 *     body    rows (carried) --Slice--> what was kept --+-- readers, together with what is new
 *                                                       `-- Deslice: what stays of it, in front;
 *                                                       new rows behind it
 *
 * A body's inputs are the iteration number and the buffers; its outputs are the buffers after
 * the last Deslice.
 */
#include "transform_internal.h"

#define DOMAIN_VERSION 1

/* Where the region's outputs are on their way through the chain of Whiles. */
typedef struct flow {
    ot_id *buffer;  /* [n_values] current value of each output in the region's graph */
    uint32_t *last; /* [n_values] last block that writes the output */
    /* [n_values] form stream: likewise the buffer of the rows that are handed on; OT_NONE: none
     * are */
    ot_id *rows;
    int64_t *most; /* [n_values] rows that it holds */
} flow;

/* A class being written. */
typedef struct tile_class {
    rw_region *w;
    const rw_block *b;
    rw_target body;
    ot_id iteration;
    /* of the first tile: all others have the same extents */
    const ot_tile_windows *win[OT_DIMS_MAX];
    /* [n_values] form stream: rows that it hands on; NULL: it is the last step */
    const ot_win *handed;
    /* [n_values] likewise: the buffer of them in the body, or OT_NONE */
    ot_id *rows;
    /* [n_values] likewise: rows that it was handed, or OT_NONE */
    ot_id *kept;
} tile_class;

/* A node of the engine's domain with one output, as rw_op. */
static ot_status engine_op(rw_region *w, rw_target *t, const char *role, const ot_node_def *def,
                           ot_tensor_type type, ot_id *out)
{
    ot_node_def own = *def;
    own.domain = OT_TILE_DOMAIN;
    for (uint32_t k = 0; k < def->attrs.n; k++)
        if (def->attrs.at[k].kind == OT_ATTR_OPAQUE)
            return rw_nomem(w); /* a builder that ran out of memory */
    OT_TRY(rw_op(w, t, role, &own, type, out));
    t->g->nodes[t->g->n_nodes - 1].version = DOMAIN_VERSION;
    return OT_OK;
}

/* ---- tables of starts ---- */

/* Where region value v is cut in this class: what all its tiles share, and a start per tile and
 * axis. */
typedef struct places {
    int64_t axes[OT_DIMS_MAX], sizes[OT_DIMS_MAX];
    uint32_t dims[OT_DIMS_MAX]; /* of the tile space */
    uint32_t n;
    int64_t *starts; /* [n_tiles * n] */
} places;

/* Axes that are taken whole are left out, but for one where `any`. piece: the tile's share of an
 * output, else the window held. */
static ot_status find_places(const tile_class *c, uint32_t v, bool piece, bool any, places *p)
{
    const rw_region *w = c->w;
    const ot_rvalue *rv = &w->r->values[v];
    *p = (places){0};
    /* axes in front of the value's own */
    uint32_t slot[OT_DIMS_MAX], n_slots = piece ? rw_part_dims(w, v, slot) : 0;
    for (uint32_t s = 0; s < n_slots; s++) {
        p->axes[s] = s;
        p->sizes[s] = 1;
        p->dims[p->n++] = slot[s];
    }
    for (uint32_t d = 0; d < w->r->n_dims; d++) {
        if (rv->axis[d] == OT_AX_WHOLE) continue;
        int64_t size = ot_win_len(piece ? c->win[d]->piece[v] : c->win[d]->made[v]);
        bool whole = size == w->g->values[rv->value].dims[rv->axis[d]];
        if (whole && !(any && p->n == 0 && d + 1 == w->r->n_dims)) continue;
        p->axes[p->n] = rv->axis[d] + (int64_t)n_slots;
        p->sizes[p->n] = size;
        p->dims[p->n++] = d;
    }
    p->starts = OT_NEW_N(w->arena, int64_t, (size_t)c->b->n_tiles * p->n);
    if (!p->starts) return rw_nomem(w);
    for (uint32_t i = 0; i < c->b->n_tiles; i++) {
        uint32_t k[OT_DIMS_MAX];
        rw_tile_at(c->b, i, k);
        for (uint32_t a = 0; a < p->n; a++) {
            const ot_dim_runs *x = &w->tiles->dims[p->dims[a]];
            const uint32_t at = k[p->dims[a]];
            int64_t *start = &p->starts[(size_t)i * p->n + a];
            if (a < n_slots)
                *start = x->tile[at];
            else
                *start = piece ? x->tiles[at].piece[v].lo : x->tiles[at].made[v].lo;
        }
    }
    return OT_OK;
}

/* ---- the body ---- */

/* The window of region input v that a tile needs: the value itself where all of it is needed. */
static ot_status slice_input(tile_class *c, uint32_t v, ot_id *out)
{
    rw_region *w = c->w;
    ot_arena *a = w->g->model->arena;
    const ot_id id = w->r->values[v].value;
    const ot_value x = w->g->values[id];
    int64_t dims[OT_RANK_MAX];
    places p;
    ot_id src;
    OT_TRY(find_places(c, v, false, false, &p));
    OT_TRY(rw_use(w, &c->body, id, &src));
    *out = src;
    if (p.n == 0) return OT_OK;
    ot_made_dims(w->g, w->r, c->win, v, dims);
    const char *name = rw_labelled(w, &c->body, x.name);
    if (!name) return rw_nomem(w);
    ot_attr attrs[3] = {ot_mk_ints(a, "axes", p.axes, p.n), ot_mk_ints(a, "sizes", p.sizes, p.n),
                        ot_mk_ints(a, "starts", p.starts, (size_t)c->b->n_tiles * p.n)};
    ot_id in[2] = {src, c->iteration};
    *out = OT_NONE;
    return engine_op(
        w, &c->body, "slice",
        &(ot_node_def){.op = "Slice", .name = name, .in = {in, 2}, .attrs = {attrs, 3}},
        (ot_tensor_type){x.dtype, x.rank, dims}, out);
}

/* This tile's piece of output v, which it holds as `made`. */
static ot_status crop_piece(tile_class *c, uint32_t v, ot_id made, ot_id *out)
{
    const ot_rvalue *rv = &c->w->r->values[v];
    rw_cut cuts[OT_DIMS_MAX];
    uint32_t n = 0;
    for (uint32_t d = 0; d < c->w->r->n_dims; d++) {
        ot_win piece = c->win[d]->piece[v], held = c->win[d]->made[v];
        if (rv->axis[d] != OT_AX_WHOLE)
            cuts[n++] = (rw_cut){(uint32_t)rv->axis[d], piece.lo - held.lo, piece.hi - held.lo};
    }
    return rw_crop(c->w, &c->body, made, cuts, n, c->w->g->values[rv->value].name, out);
}

static ot_status deslice_output(tile_class *c, uint32_t v, ot_id made, ot_id buffer, ot_id *out)
{
    rw_region *w = c->w;
    ot_arena *a = w->g->model->arena;
    int64_t dims[OT_RANK_MAX];
    const ot_value x = rw_buffer_type(w, v, dims);
    places p;
    uint32_t slots[OT_DIMS_MAX];
    ot_id in[3] = {OT_NONE, buffer, c->iteration};
    if (w->r->form == OT_FORM_STREAM)
        in[0] = made; /* all that is new */
    else
        OT_TRY(crop_piece(c, v, made, &in[0]));
    OT_TRY(rw_part(w, &c->body, c->win, v, rw_part_dims(w, v, slots), &in[0]));
    OT_TRY(find_places(c, v, true, true, &p));
    const char *name = rw_labelled(w, &c->body, x.name);
    if (!name) return rw_nomem(w);
    ot_attr attrs[2] = {ot_mk_ints(a, "axes", p.axes, p.n),
                        ot_mk_ints(a, "starts", p.starts, (size_t)c->b->n_tiles * p.n)};
    *out = OT_NONE;
    return engine_op(
        w, &c->body, "deslice",
        &(ot_node_def){.op = "Deslice", .name = name, .in = {in, 3}, .attrs = {attrs, 2}},
        ot_type_of(&x), out);
}

static ot_status body_input(tile_class *c, const char *name, const ot_value *like, ot_id *out)
{
    static const ot_value counter = {.dtype = OT_I64, .rank = 0};
    const ot_value x = like ? *like : counter;
    OT_TRY(rw_value(c->w, &c->body, c->body.label, name, ot_type_of(&x), out));
    c->body.g->values[*out].is_input = true;
    return OT_OK;
}

/* Open the body of class number `number`. */
static ot_status open_class(tile_class *c, rw_region *w, const rw_block *b, uint32_t number)
{
    const char *label = ot_format(w->arena, "body%u", number);
    *c = (tile_class){.w = w, .b = b};
    for (uint32_t d = 0; d < w->r->n_dims; d++) c->win[d] = &w->tiles->dims[d].tiles[b->first[d]];
    if (w->r->form == OT_FORM_STREAM && b->first[0] + 1 < w->tiles->dims[0].n)
        c->handed = w->tiles->dims[0].tiles[b->first[0] + 1].kept;
    const char *name = label ? rw_name(w, label, NULL) : NULL;
    ot_graph *g = name ? ot_graph_new(w->g->model, w->g, name) : NULL;
    if (!g) return rw_nomem(w);
    OT_TRY(rw_target_init(w, &c->body, g, label));
    return body_input(c, "i", NULL, &c->iteration);
}

/* ---- rows that are handed on ---- */

/* Type of the buffer of v's rows. Its dims are `dims`. */
static ot_value rows_type(const rw_region *w, const flow *f, uint32_t v, int64_t dims[OT_RANK_MAX])
{
    ot_value x = w->g->values[w->r->values[v].value];
    memcpy(dims, x.dims, (size_t)x.rank * sizeof *dims);
    dims[w->r->values[v].axis[0]] = f->most[v];
    x.dims = dims;
    return x;
}

static int64_t rows_kept(const tile_class *c, uint32_t v) { return ot_win_len(c->win[0]->kept[v]); }
static ot_win rows_handed(const tile_class *c, uint32_t v)
{
    return c->handed ? c->handed[v] : (ot_win){0, 0};
}

/* The class takes v's rows, or hands some on. */
static bool hands_rows(const tile_class *c, const flow *f, uint32_t v)
{
    return f->rows[v] != OT_NONE && (rows_kept(c, v) > 0 || !ot_win_empty(rows_handed(c, v)));
}

/* Attribute starts: the same place in every iteration. */
static ot_attr same_start(const tile_class *c, int64_t start)
{
    const size_t n = c->b->n_tiles;
    int64_t *starts = OT_NEW_N(c->w->arena, int64_t, n);
    for (size_t k = 0; starts && k < n; k++) starts[k] = start;
    return starts ? ot_mk_ints(c->w->g->model->arena, "starts", starts, n)
                  : (ot_attr){.kind = OT_ATTR_OPAQUE};
}

/* Buffers of rows as inputs of the body, and what was kept in them. */
static ot_status take_rows(tile_class *c, const flow *f, rw_chain *chain)
{
    rw_region *w = c->w;
    ot_arena *a = w->g->model->arena;
    c->rows = OT_NEW_N(w->arena, ot_id, w->r->n_values + 1u);
    chain->kept = c->kept = OT_NEW_N(w->arena, ot_id, w->r->n_values + 1u);
    if (!c->rows || !c->kept) return rw_nomem(w);
    for (uint32_t v = 0; v < w->r->n_values; v++) c->rows[v] = c->kept[v] = OT_NONE;
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++) {
        int64_t dims[OT_RANK_MAX], axis = w->r->values[v].axis[0], rows = rows_kept(c, v);
        if (!hands_rows(c, f, v)) continue;
        const ot_value x = rows_type(w, f, v, dims);
        const char *name = ot_format(w->arena, "rows/%s", x.name),
                   *slice = rw_labelled(w, &c->body, x.name);
        if (!name || !slice) return rw_nomem(w);
        OT_TRY(body_input(c, name, &x, &c->rows[v]));
        if (rows == 0) continue;
        ot_attr attrs[3] = {ot_mk_ints(a, "axes", &axis, 1), ot_mk_ints(a, "sizes", &rows, 1),
                            same_start(c, 0)};
        const ot_id in[2] = {c->rows[v], c->iteration};
        dims[axis] = rows;
        OT_TRY(engine_op(
            w, &c->body, "slice",
            &(ot_node_def){.op = "Slice", .name = slice, .in = {in, 2}, .attrs = {attrs, 3}},
            (ot_tensor_type){x.dtype, x.rank, dims}, &c->kept[v]));
    }
    return OT_OK;
}

/* Rows `part` of v go to the buffer at place `at`. */
static ot_status put_rows(tile_class *c, const flow *f, rw_chain *chain, uint32_t v, ot_win part,
                          int64_t at, ot_id *buffer)
{
    rw_region *w = c->w;
    ot_arena *a = w->g->model->arena;
    int64_t dims[OT_RANK_MAX], axis = w->r->values[v].axis[0];
    const ot_value x = rows_type(w, f, v, dims);
    const char *name = rw_labelled(w, &c->body, x.name);
    ot_id in[3] = {OT_NONE, *buffer, c->iteration};
    if (ot_win_empty(part)) return OT_OK;
    if (!name) return rw_nomem(w);
    OT_TRY(rw_stream_rows(chain, v, part.lo, part.hi, &in[0]));
    ot_attr attrs[3] = {ot_mk_ints(a, "axes", &axis, 1), same_start(c, at), ot_mk_int("again", 1)};
    *buffer = OT_NONE;
    return engine_op(
        w, &c->body, "deslice",
        &(ot_node_def){.op = "Deslice", .name = name, .in = {in, 3}, .attrs = {attrs, 3}},
        ot_type_of(&x), buffer);
}

/* What the next step keeps of v lies in front of its buffer: rows that were there before, then
 * new ones. What nobody wants any more is left as it was. */
static ot_status leave_rows(tile_class *c, const flow *f, rw_chain *chain, uint32_t v, ot_id *out)
{
    const ot_win kept = c->win[0]->kept[v], handed = rows_handed(c, v);
    /* new rows from there on */
    const int64_t split = ot_max(handed.lo, ot_min(handed.hi, kept.hi));
    *out = c->rows[v];
    if (ot_win_empty(handed)) return put_rows(c, f, chain, v, kept, 0, out);
    OT_TRY(put_rows(c, f, chain, v, (ot_win){handed.lo, split}, 0, out));
    return put_rows(c, f, chain, v, (ot_win){split, handed.hi}, split - handed.lo, out);
}

/* The tile's operators, between the slices of what they read and the places of what they make.
 * outs: [*n] body values, the outputs with a piece in order; the body's inputs likewise, after
 * the iteration. */
static ot_status fill_class(tile_class *c, const flow *f, ot_id *inputs, ot_id *outs, uint32_t *n)
{
    rw_region *w = c->w;
    rw_chain chain;
    OT_TRY(rw_chain_plan(&chain, w, &c->body, c->win));
    if (f->rows) OT_TRY(take_rows(c, f, &chain));
    for (uint32_t v = 0; v < w->r->n_inputs; v++)
        if (chain.needed[v]) OT_TRY(slice_input(c, v, &chain.val[v]));
    OT_TRY(rw_chain_emit(&chain));
    inputs[0] = c->iteration;
    *n = 0;
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++) {
        int64_t dims[OT_RANK_MAX];
        const ot_value x = rw_buffer_type(w, v, dims);
        if (!rw_has_piece(&chain, v)) continue;
        const char *name = ot_format(w->arena, "buffer/%s", x.name);
        if (!name) return rw_nomem(w);
        OT_TRY(body_input(c, name, &x, &inputs[1 + *n]));
        OT_TRY(deslice_output(c, v, chain.val[v], inputs[1 + *n], &outs[*n]));
        c->body.g->values[outs[(*n)++]].is_output = true;
    }
    for (uint32_t v = w->r->n_inputs; f->rows && v < w->r->n_values; v++) {
        if (!hands_rows(c, f, v)) continue;
        inputs[1 + *n] = c->rows[v];
        OT_TRY(leave_rows(c, f, &chain, v, &outs[*n]));
        c->body.g->values[outs[(*n)++]].is_output = true;
    }
    return OT_OK;
}

static ot_status set_body_ends(tile_class *c, const ot_id *inputs, const ot_id *outs, uint32_t n)
{
    ot_graph *g = c->body.g;
    ot_arena *a = g->model->arena;
    g->inputs = ot_memdup(a, inputs, (n + 1u) * sizeof *inputs);
    g->outputs = ot_memdup(a, outs, n * sizeof *outs);
    if (!g->inputs || !g->outputs) return rw_nomem(c->w);
    g->n_inputs = n + 1;
    g->n_outputs = n;
    OT_TRY(ot_topo_sort(g));
    ot_confirm(g, g->props | OT_P_SHAPES);
    return OT_OK;
}

/* ---- the chain of Whiles ---- */

/* Whether the block's tiles have a part of output v. */
static bool writes(const rw_region *w, const rw_block *b, uint32_t v)
{
    const ot_rvalue *rv = &w->r->values[v];
    bool any = rv->is_output;
    for (uint32_t d = 0; any && d < w->r->n_dims; d++)
        any = rv->axis[d] == OT_AX_WHOLE ||
              !ot_win_empty(w->tiles->dims[d].tiles[b->first[d]].piece[v]);
    return any;
}

static ot_status write_class(rw_region *w, const rw_block *b, uint32_t block, uint32_t number,
                             flow *f)
{
    tile_class c;
    const size_t room = 2u * w->r->n_values + 1u; /* outputs and rows */
    ot_id *inputs = OT_NEW_N(w->arena, ot_id, room), *outs = OT_NEW_N(w->arena, ot_id, room);
    ot_id *from = OT_NEW_N(w->arena, ot_id, room), *to = OT_NEW_N(w->arena, ot_id, room);
    uint32_t n, k = 0;
    if (!inputs || !outs || !from || !to) return rw_nomem(w);
    OT_TRY(open_class(&c, w, b, number));
    OT_TRY(fill_class(&c, f, inputs, outs, &n));
    if (n == 0) return OT_OK; /* a step that makes nothing */
    OT_TRY(set_body_ends(&c, inputs, outs, n));
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++) {
        if (!writes(w, b, v)) continue;
        int64_t dims[OT_RANK_MAX];
        const ot_value x = rw_buffer_type(w, v, dims);
        from[k] = f->buffer[v];
        to[k] = w->r->values[v].value;
        if (f->last[v] != block || rw_is_part(w, v))
            OT_TRY(rw_value(w, &w->top, "while", x.name, ot_type_of(&x), &to[k]));
        f->buffer[v] = to[k++];
    }
    const uint32_t n_outputs = k;
    for (uint32_t v = w->r->n_inputs; f->rows && v < w->r->n_values; v++) {
        if (!hands_rows(&c, f, v)) continue;
        int64_t dims[OT_RANK_MAX];
        const ot_value x = rows_type(w, f, v, dims);
        from[k] = f->rows[v];
        OT_TRY(rw_value(w, &w->top, "rows", x.name, ot_type_of(&x), &to[k]));
        f->rows[v] = to[k++];
    }
    if (k != n) OT_BUG("a class of tiles writes other outputs than it has pieces of");
    const bool carries = n > n_outputs;
    ot_attr attrs[3] = {ot_mk_int("count", b->n_tiles), ot_mk_graph("body", c.body.g),
                        carries ? ot_mk_int("carried", n - n_outputs) : ot_mk_int("in_order", 1)};
    const char *name = rw_name(w, "while", NULL);
    if (!name) return rw_nomem(w);
    ot_id id = ot_node_new(w->g, &(ot_node_def){.op = "While",
                                                .domain = OT_TILE_DOMAIN,
                                                .name = name,
                                                .in = {from, n},
                                                .out = {to, n},
                                                .attrs = {attrs, carries || w->in_order ? 3 : 2}});
    if (id == OT_NONE) return rw_nomem(w);
    w->g->nodes[id].version = DOMAIN_VERSION;
    return OT_OK;
}

static ot_status alloc_output(rw_region *w, uint32_t v, ot_id *out)
{
    int64_t dims[OT_RANK_MAX];
    const ot_value x = rw_buffer_type(w, v, dims);
    ot_attr attrs[2] = {ot_mk_ints(w->g->model->arena, "shape", x.dims, (size_t)x.rank),
                        ot_mk_int("dtype", x.dtype)};
    *out = OT_NONE;
    return engine_op(w, &w->top, "alloc",
                     &(ot_node_def){.op = "Alloc", .name = x.name, .attrs = {attrs, 2}},
                     ot_type_of(&x), out);
}

/* Where tile number k of dim d is found among the sorted ones. */
static uint32_t place_of(const ot_dim_runs *x, uint32_t k)
{
    uint32_t at = 0;
    while (x->tile[at] != k) at++;
    return at;
}

/* v from its parts, one behind the other by the numbers of their tiles. */
static ot_status combine(rw_region *w, uint32_t v, ot_id parts)
{
    uint32_t by[OT_DIMS_MAX], n_slots = rw_part_dims(w, v, by);
    size_t tiles = 1;
    for (uint32_t s = 0; s < n_slots; s++) tiles *= w->r->dims[by[s]].n_tiles;
    double *n = OT_NEW_N(w->arena, double, tiles);
    if (!n) return rw_nomem(w);
    for (size_t t = 0; t < tiles; t++) {
        const ot_tile_windows *win[OT_DIMS_MAX] = {0};
        size_t rest = t;
        for (uint32_t s = n_slots; s-- > 0;) {
            const ot_dim_runs *x = &w->tiles->dims[by[s]];
            const uint32_t count = w->r->dims[by[s]].n_tiles;
            win[by[s]] = &x->tiles[place_of(x, (uint32_t)(rest % count))];
            rest /= count;
        }
        n[t] = rw_part_elements(w, win, v);
    }
    return rw_combine(w, v, parts, n_slots, n);
}

/* A buffer for the rows of each value that some step hands on. */
static ot_status alloc_rows(rw_region *w, flow *f)
{
    const ot_dim_runs *x = &w->tiles->dims[0];
    f->rows = OT_NEW_N(w->arena, ot_id, w->r->n_values + 1u);
    f->most = OT_NEW_N(w->arena, int64_t, w->r->n_values + 1u);
    if (!f->rows || !f->most) return rw_nomem(w);
    for (uint32_t v = 0; v < w->r->n_values; v++) {
        int64_t dims[OT_RANK_MAX];
        f->rows[v] = OT_NONE;
        for (uint32_t k = 0; v >= w->r->n_inputs && k < x->n; k++)
            f->most[v] = ot_max(f->most[v], ot_win_len(x->tiles[k].kept[v]));
        if (f->most[v] == 0) continue;
        const ot_value y = rows_type(w, f, v, dims);
        ot_attr attrs[2] = {ot_mk_ints(w->g->model->arena, "shape", y.dims, (size_t)y.rank),
                            ot_mk_int("dtype", y.dtype)};
        const char *name = ot_format(w->arena, "rows/%s", y.name);
        if (!name) return rw_nomem(w);
        OT_TRY(engine_op(w, &w->top, "alloc",
                         &(ot_node_def){.op = "Alloc", .name = name, .attrs = {attrs, 2}},
                         ot_type_of(&y), &f->rows[v]));
    }
    return OT_OK;
}

ot_status rw_while(rw_region *w, const rw_block *blocks, uint32_t n)
{
    flow f = {.buffer = OT_NEW_N(w->arena, ot_id, w->r->n_values),
              .last = OT_NEW_N(w->arena, uint32_t, w->r->n_values)};
    uint32_t number = 0;
    if (!f.buffer || !f.last) return rw_nomem(w);
    w->capture = true;
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++) {
        if (!w->r->values[v].is_output) continue;
        for (uint32_t k = 0; k < n; k++)
            if (writes(w, &blocks[k], v)) f.last[v] = k;
        OT_TRY(alloc_output(w, v, &f.buffer[v]));
    }
    if (w->r->form == OT_FORM_STREAM) OT_TRY(alloc_rows(w, &f));
    for (uint32_t k = 0; k < n; k++) {
        bool any = w->r->form == OT_FORM_STREAM;
        for (uint32_t v = w->r->n_inputs; v < w->r->n_values && !any; v++)
            any = writes(w, &blocks[k], v);
        /* else other tiles cover everything */
        if (any) OT_TRY(write_class(w, &blocks[k], k, number++, &f));
    }
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++) {
        if (w->r->values[v].is_output && rw_is_part(w, v)) OT_TRY(combine(w, v, f.buffer[v]));
    }
    return OT_OK;
}
