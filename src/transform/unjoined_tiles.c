/* Values that stay in pieces between two regions.
 *
 *     joined    Loop --tiles--> ConcatFromSequence --> y   Loop { Slice(y) ... }
 *                               tiles and y at once, y in one stretch
 *     unjoined  Loop --tiles---------------------------->  Loop { SequenceAt, ... }
 *
 *     pieces  |  0  |  1  |  2  |  3  |  a window of the region behind takes those that it touches,
 *             1 to 3 here, cuts off
 *     window           |=========|       what it does not want of the outer ones, and joins the
 *                                        rest
 *
 * The whole value never exists: an allocator that takes memory in large regions finds room for
 * pieces where it finds none for the value. A piece is copied when it is taken, which replaces
 * the copy that joins all. Shapes stay static: in every iteration of a Loop the pieces that it
 * takes have the same extents, or the value is joined.
 */
#include "transform_internal.h"

/* elements of pieces that are taken for each element of the window along the axis */
#define MOST_TAKEN 4

struct rw_pieces {
    ot_id sequence; /* of the region's graph, with all pieces; OT_NONE: not written yet */
    uint32_t n;
    int64_t *starts; /* [n + 1] along the axis that is cut */
};

typedef struct chooser {
    const ot_graph *g;
    const ot_plan *p;
    ot_arena *a;
    ot_form_tiles *tiles; /* [n_regions] */
    bool *walks;          /* [n_regions] its Loops carry sequences, along one axis */
    uint32_t *region;     /* [n_nodes] that has the node; OT_NONE */
} chooser;

static int64_t extent_of(const rw_pieces *x, int64_t k) { return x->starts[k + 1] - x->starts[k]; }

/* The piece that has element e. */
static int64_t piece_at(const rw_pieces *x, int64_t e)
{
    int64_t k = 0;
    while (k + 1 < x->n && x->starts[k + 1] <= e) k++;
    return k;
}

static const ot_win *window_of(const ot_dim_runs *d, uint32_t k, uint32_t v)
{
    return &d->tiles[k].made[v];
}

/* The pieces that the tiles [first, first + count) take for region value v: *n each, from at[i]
 * on. false: their extents differ from tile to tile, or they are much more than a window that
 * many tiles have. */
static bool find_taken(const rw_pieces *x, const ot_dim_runs *d, uint32_t first, uint32_t count,
                       uint32_t v, int64_t *at, uint32_t *n)
{
    int64_t most = 0, taken = 0;
    for (uint32_t i = 0; i < count; i++) {
        const ot_win *w = window_of(d, first + i, v);
        at[i] = piece_at(x, w->lo);
        most = ot_max(most, piece_at(x, w->hi - 1) - at[i] + 1);
    }
    for (uint32_t i = 0; i < count; i++) at[i] = ot_min(at[i], (int64_t)x->n - most);
    for (int64_t j = 0; j < most; j++) {
        for (uint32_t i = 1; i < count; i++)
            if (extent_of(x, at[i] + j) != extent_of(x, at[0] + j)) return false;
        taken += extent_of(x, at[0] + j);
    }
    *n = (uint32_t)most;
    return count == 1 || taken <= MOST_TAKEN * ot_win_len(*window_of(d, first, v));
}

/* ---- which values ---- */

static ot_status find_regions(chooser *x)
{
    const ot_plan *p = x->p;
    ot_why why;
    x->tiles = OT_NEW_N(x->a, ot_form_tiles, p->n_regions + 1u);
    x->walks = OT_NEW_N(x->a, bool, p->n_regions + 1u);
    x->region = OT_NEW_N(x->a, uint32_t, x->g->n_nodes + 1u);
    if (!x->tiles || !x->walks || !x->region) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t k = 0; k < x->g->n_nodes; k++) x->region[k] = OT_NONE;
    for (uint32_t k = 0; k < p->n_regions; k++) {
        const ot_region *r = &p->regions[k];
        x->tiles[k] = (ot_form_tiles){.g = x->g, .r = r, .arena = x->a};
        for (uint32_t i = 0; i < r->n_nodes; i++) x->region[r->nodes[i].node] = k;
        if (r->form == OT_FORM_STREAM || (r->form == OT_FORM_PEELED && ot_sequence_fits(x->g, r)))
            OT_TRY(ot_form_prepare(&x->tiles[k], r->form, &x->walks[k], &why));
    }
    return OT_OK;
}

/* The pieces that region k makes of its value v, as its tiles make them; *out NULL: memory ran out.
 */
static void cut_pieces(const chooser *x, uint32_t k, uint32_t v, rw_pieces **out)
{
    const ot_dim_runs *d = &x->tiles[k].dims[0];
    rw_pieces *y = *out = OT_NEW(x->a, rw_pieces);
    if (!y) return;
    *y = (rw_pieces){.sequence = OT_NONE, .starts = OT_NEW_N(x->a, int64_t, d->n + 1u)};
    if (!y->starts) {
        *out = NULL;
        return;
    }
    for (uint32_t i = 0; i < d->n; i++) {
        const ot_win w = d->tiles[i].piece[v];
        if (ot_win_empty(w)) continue;
        y->starts[y->n++] = w.lo;
        y->starts[y->n] = w.hi;
    }
}

/* All tiles of region k can take their windows of graph value v, which is cut along `axis`, from
 * pieces. */
static ot_status takes_pieces(const chooser *x, uint32_t k, ot_id v, int8_t axis,
                              const rw_pieces *from, bool *takes)
{
    const ot_region *r = &x->p->regions[k];
    const ot_dim_runs *d = &x->tiles[k].dims[0];
    int64_t *at = OT_NEW_N(x->a, int64_t, d->n + 1u);
    uint32_t n;
    *takes = false;
    if (!at) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t i = 0; i < r->n_inputs; i++) {
        if (r->values[i].value != v) continue;
        if (r->values[i].axis[0] != axis) return OT_OK;
        for (uint32_t j = 0; j < d->n_runs; j++) {
            const ot_tile_run run = d->runs[j];
            if (ot_win_empty(*window_of(d, run.first, i))) continue;
            if (!find_taken(from, d, run.first, run.count, i, at, &n)) return OT_OK;
        }
        *takes = true;
    }
    return OT_OK;
}

/* Value v of region k stays in pieces: *out, else NULL. */
static ot_status choose(const chooser *x, uint32_t k, uint32_t v, rw_pieces **out)
{
    const ot_rvalue *rv = &x->p->regions[k].values[v];
    const ot_value *of = &x->g->values[rv->value];
    bool takes = of->n_uses > 0;
    rw_pieces *made;
    *out = NULL;
    if (!rv->is_output || of->is_output || rv->bytes < x->p->unjoined_from || rv->axis[0] < 0)
        return OT_OK;
    for (uint32_t u = 0; u < of->n_uses; u++) {
        const uint32_t by = x->region[of->uses[u]];
        if (by == OT_NONE || !x->walks[by]) return OT_OK;
    }
    cut_pieces(x, k, v, &made);
    if (!made) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t u = 0; u < of->n_uses && takes; u++) {
        const uint32_t by = x->region[of->uses[u]];
        if (by != k) OT_TRY(takes_pieces(x, by, rv->value, rv->axis[0], made, &takes));
    }
    if (takes) *out = made;
    return OT_OK;
}

ot_status rw_pieces_choose(const ot_graph *g, const ot_plan *p, ot_arena *a, rw_pieces ***out)
{
    chooser x = {.g = g, .p = p, .a = a};
    *out = NULL;
    if (p->unjoined_from == 0) return OT_OK;
    rw_pieces **kept = *out = OT_NEW_N(a, rw_pieces *, g->n_values + 1u);
    if (!kept) return ot_fail_nomem(g->model->diag);
    OT_TRY(find_regions(&x));
    for (uint32_t k = 0; k < p->n_regions; k++)
        for (uint32_t v = p->regions[k].n_inputs; x.walks[k] && v < p->regions[k].n_values; v++)
            OT_TRY(choose(&x, k, v, &kept[p->regions[k].values[v].value]));
    return OT_OK;
}

/* ---- writing ---- */

static rw_pieces *pieces_of(const rw_region *w, uint32_t v)
{
    return w->kept ? w->kept[w->r->values[v].value] : NULL;
}

bool rw_pieces_keep(const rw_region *w, uint32_t v, ot_id sequence)
{
    rw_pieces *x = pieces_of(w, v);
    if (x) x->sequence = sequence;
    return x != NULL;
}

bool rw_in_pieces(const rw_region *w, uint32_t v)
{
    return v < w->r->n_inputs && pieces_of(w, v) != NULL;
}

static bool all_equal(const int64_t *a, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (a[i] != a[0]) return false;
    return true;
}

/* What a loop takes of a value that is in pieces. */
typedef struct taking {
    rw_loop *l;
    const rw_pieces *from;
    ot_value of;
    uint32_t axis, n; /* pieces that each iteration takes, */
    int64_t *at;      /* [n_tiles] from here on */
    ot_id sequence;   /* as the body reads it */
} taking;

/* Number of the j-th piece of an iteration: a constant, or out of a table. */
static ot_status position(const taking *x, uint32_t j, ot_id *out)
{
    rw_region *w = x->l->w;
    const uint32_t tiles = x->l->b->n_tiles;
    const int64_t same = x->at[0] + j;
    ot_attr axis = ot_mk_int("axis", 0);
    ot_id in[2];
    if (all_equal(x->at, tiles)) return rw_const_i64(w, &x->l->body, "piece", &same, 1, true, out);
    int64_t *rows = OT_NEW_N(w->arena, int64_t, tiles), none = 0;
    if (!rows) return rw_nomem(w);
    for (uint32_t i = 0; i < tiles; i++) rows[i] = x->at[i] + j;
    OT_TRY(rw_table(x->l, "piece", rows, 1, &in[0]));
    OT_TRY(rw_const_i64(w, &x->l->body, "only", &none, 1, true, &in[1]));
    *out = OT_NONE;
    return rw_op(
        w, &x->l->body, "slice",
        &(ot_node_def){.op = "Gather", .name = "piece", .in = {in, 2}, .attrs = {&axis, 1}},
        (ot_tensor_type){OT_I64, 0, NULL}, out);
}

static ot_status take_piece(const taking *x, uint32_t j, ot_id *out)
{
    int64_t dims[OT_RANK_MAX];
    ot_id in[2] = {x->sequence, OT_NONE};
    OT_TRY(position(x, j, &in[1]));
    memcpy(dims, x->of.dims, (size_t)x->of.rank * sizeof *dims);
    dims[x->axis] = extent_of(x->from, x->at[0] + j);
    *out = OT_NONE;
    return rw_op(x->l->w, &x->l->body, "slice",
                 &(ot_node_def){.op = "SequenceAt", .name = x->of.name, .in = {in, 2}},
                 (ot_tensor_type){x->of.dtype, x->of.rank, dims}, out);
}

/* The window lies at the same place of what is taken in every iteration: what is not wanted is
 * cut off before the rest is joined. */
static ot_status join_cut(const taking *x, int64_t lo, int64_t hi, ot_id *out)
{
    rw_loop *l = x->l;
    ot_id *parts = OT_NEW_N(l->w->arena, ot_id, x->n + 1u);
    uint32_t n = 0;
    int64_t base = 0;
    if (!parts) return rw_nomem(l->w);
    for (uint32_t j = 0; j < x->n; j++) {
        const int64_t extent = extent_of(x->from, x->at[0] + j);
        const rw_cut cut = {x->axis, ot_max(0, lo - base), ot_min(extent, hi - base)};
        base += extent;
        if (cut.lo >= cut.hi) continue;
        ot_id whole;
        OT_TRY(take_piece(x, j, &whole));
        OT_TRY(rw_crop(l->w, &l->body, whole, &cut, 1, x->of.name, &parts[n++]));
    }
    *out = n > 1 ? OT_NONE : parts[0];
    return n > 1 ? rw_concat(l->w, &l->body, x->of.name, parts, n, x->axis, out) : OT_OK;
}

/* All that is taken is joined, and cut at a place that moves. lo: [n_tiles] */
static ot_status join_moving(const taking *x, int64_t *lo, int64_t len, ot_id *out)
{
    rw_loop *l = x->l;
    ot_id *parts = OT_NEW_N(l->w->arena, ot_id, x->n + 1u), joined;
    if (!parts) return rw_nomem(l->w);
    for (uint32_t j = 0; j < x->n; j++) OT_TRY(take_piece(x, j, &parts[j]));
    joined = x->n > 1 ? OT_NONE : parts[0];
    if (x->n > 1) OT_TRY(rw_concat(l->w, &l->body, x->of.name, parts, x->n, x->axis, &joined));
    const rw_moving_window m = {.n = 1, .axes = {x->axis}, .len = {len}, .lo = lo};
    return rw_moving_crop(l, joined, &m, x->of.name, out);
}

ot_status rw_pieces_window(rw_loop *l, uint32_t v, ot_id *out)
{
    rw_region *w = l->w;
    const rw_block *b = l->b;
    const ot_dim_runs *d = &w->tiles->dims[0];
    const int64_t len = ot_win_len(*window_of(d, b->first[0], v));
    taking x = {.l = l,
                .from = pieces_of(w, v),
                .of = w->g->values[w->r->values[v].value],
                .axis = (uint32_t)w->r->values[v].axis[0]};
    int64_t *lo = OT_NEW_N(w->arena, int64_t, b->n_tiles + 1u);
    x.at = OT_NEW_N(w->arena, int64_t, b->n_tiles + 1u);
    if (!lo || !x.at) return rw_nomem(w);
    if (!find_taken(x.from, d, b->first[0], b->n_tiles, v, x.at, &x.n))
        OT_BUG("pieces of a value that cannot be taken so");
    for (uint32_t i = 0; i < b->n_tiles; i++)
        lo[i] = window_of(d, b->first[0] + i, v)->lo - x.from->starts[x.at[i]];
    OT_TRY(rw_capture(w, &l->body, x.from->sequence, &x.sequence));
    rw_make_sequence(l->body.g, x.sequence);
    if (all_equal(lo, b->n_tiles)) return join_cut(&x, lo[0], lo[0] + len, out);
    return join_moving(&x, lo, len, out);
}
