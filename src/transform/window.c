/* Windows that move with the iteration.
 *
 * Where a tile is read depends on the iteration: a table with one row per tile holds the starts,
 * the carrier hands the body its row (a Scan input, or Gather by the iteration number), and a
 * Slice with constant length cuts the tile out of the captured tensor. The Reshape behind it
 * only states the shape, which no runtime could know otherwise, so that everything in the body
 * is static.
 *
 *     table [T, n] --row--> [n] --starts--> Slice(x) --Reshape--> tile of static shape
 *
 * Before opset 10, Slice cannot take starts as an input; there the rows are index lists for Gather.
 */
#include "transform_internal.h"

void rw_tile_at(const rw_block *b, uint32_t i, uint32_t k[OT_DIMS_MAX])
{
    for (uint32_t d = OT_DIMS_MAX; d-- > 0;) {
        /* dimensions that the region does not have */
        uint32_t count = b->count[d] ? b->count[d] : 1;
        k[d] = b->first[d] + i % count;
        i /= count;
    }
}

/* In decimal; returns the end of the text. */
static char *put_number(char *at, int64_t number)
{
    char text[OT_DECIMAL];
    const uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
    if (number < 0) *at++ = '-';
    for (const char *from = ot_decimal(size, text); *from;) *at++ = *from++;
    *at = 0;
    return at;
}

/* A string that is equal for equal tables. */
static char *table_key(rw_region *w, const int64_t *rows, uint32_t n_tiles, uint32_t n)
{
    size_t numbers = (size_t)n_tiles * n, room = 24 + 21 * numbers;
    char *key = ot_alloc(w->arena, room);
    if (!key) return NULL;
    char *at = put_number(key, n);
    for (size_t k = 0; k < numbers; k++) {
        *at++ = ',';
        at = put_number(at, rows[k]);
    }
    return key;
}

ot_status rw_const_rows(rw_region *w, rw_target *t, const char *name, const int64_t *rows,
                        uint32_t n_rows, uint32_t n, ot_id *out)
{
    ot_arena *a = w->g->model->arena;
    ot_tensor *x = OT_NEW(a, ot_tensor);
    int64_t *dims = OT_NEW_N(a, int64_t, 2);
    size_t bytes = (size_t)n_rows * n * sizeof *rows;
    if (!x || !dims) return rw_nomem(w);
    dims[0] = n_rows;
    dims[1] = n;
    *x = (ot_tensor){.dtype = OT_I64, .rank = 2, .dims = dims, .bytes = bytes};
    x->data = ot_memdup(a, rows, bytes);
    return x->data ? rw_const(w, t, name, x, out) : rw_nomem(w);
}

ot_status rw_table(rw_loop *l, const char *name, const int64_t *rows, uint32_t n, ot_id *out)
{
    rw_region *w = l->w;
    const int64_t dims[1] = {n};
    ot_id table;
    char *key = table_key(w, rows, l->b->n_tiles, n);
    if (!key) return rw_nomem(w);
    if ((*out = ot_map_get(l->tables, key)) != OT_NONE) return OT_OK;
    if (l->scan) {
        OT_TRY(rw_const_rows(w, &w->top, name, rows, l->b->n_tiles, n, &table));
        OT_TRY(rw_value(w, &l->body, "body", name, (ot_tensor_type){OT_I64, 1, dims}, out));
        l->body.g->values[*out].is_input = true;
        if (!OT_PUSH(w->arena, l->inputs, l->n_inputs, l->cap_inputs, *out) ||
            !OT_PUSH(w->arena, l->scan_in, l->n_scan, l->cap_scan, table))
            return rw_nomem(w);
    } else {
        ot_attr axis = ot_mk_int("axis", 0);
        OT_TRY(rw_const_rows(w, &l->body, name, rows, l->b->n_tiles, n, &table));
        ot_id in[2] = {table, l->iter};
        OT_TRY(
            rw_op(w, &l->body, "body",
                  &(ot_node_def){.op = "Gather", .name = name, .in = {in, 2}, .attrs = {&axis, 1}},
                  (ot_tensor_type){OT_I64, 1, dims}, out));
    }
    return ot_map_put(l->tables, key, *out) ? OT_OK : rw_nomem(w);
}

/* Axis a of the window at opset < 10: Gather the indices start, start+1, ... */
static ot_status gather_window(rw_loop *l, ot_id src, const rw_moving_window *m, uint32_t a,
                               const char *name, ot_id *out)
{
    rw_region *w = l->w;
    const ot_value v = l->body.g->values[src];
    const int64_t len = m->len[a];
    int64_t dims[OT_RANK_MAX];
    uint32_t n_tiles = l->b->n_tiles;
    int64_t *rows = OT_NEW_N(w->arena, int64_t, (size_t)n_tiles * (size_t)len);
    ot_id in[2] = {src, OT_NONE};
    ot_attr at = ot_mk_int("axis", m->axes[a]);
    if (!rows) return rw_nomem(w);
    for (uint32_t i = 0; i < n_tiles; i++)
        for (int64_t j = 0; j < len; j++)
            rows[(int64_t)i * len + j] = m->lo[(size_t)i * m->n + a] + j;
    OT_TRY(rw_table(l, "indices", rows, (uint32_t)len, &in[1]));
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    dims[m->axes[a]] = len;
    *out = OT_NONE;
    return rw_op(w, &l->body, "slice",
                 &(ot_node_def){.op = "Gather", .name = name, .in = {in, 2}, .attrs = {&at, 1}},
                 (ot_tensor_type){v.dtype, v.rank, dims}, out);
}

ot_status rw_moving_crop(rw_loop *l, ot_id src, const rw_moving_window *m, const char *name,
                         ot_id *out)
{
    const uint32_t n = m->n;
    rw_region *w = l->w;
    const ot_value v = l->body.g->values[src];
    int64_t dims[OT_RANK_MAX], open[OT_RANK_MAX], wide[OT_DIMS_MAX];
    size_t numbers = (size_t)l->b->n_tiles * n;
    *out = src;
    if (w->g->model->opset < OT_SLICE_HAS_INPUTS) {
        for (uint32_t a = 0; a < n; a++) OT_TRY(gather_window(l, *out, m, a, name, out));
        return OT_OK;
    }
    int64_t *hi = OT_NEW_N(w->arena, int64_t, numbers);
    if (!hi) return rw_nomem(w);
    for (size_t k = 0; k < numbers; k++) hi[k] = m->lo[k] + m->len[k % n];
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    memcpy(open, v.dims, (size_t)v.rank * sizeof *open);
    for (uint32_t a = 0; a < n; a++) {
        dims[m->axes[a]] = m->len[a];
        open[m->axes[a]] = OT_DIM_UNKNOWN;
        wide[a] = m->axes[a];
    }
    ot_id in[4] = {src, OT_NONE, OT_NONE, OT_NONE}, cut = OT_NONE;
    OT_TRY(rw_table(l, "starts", m->lo, n, &in[1]));
    OT_TRY(rw_table(l, "ends", hi, n, &in[2]));
    OT_TRY(rw_const_i64(w, &l->body, "axes", wide, n, false, &in[3]));
    OT_TRY(rw_op(w, &l->body, "slice", &(ot_node_def){.op = "Slice", .name = name, .in = {in, 4}},
                 (ot_tensor_type){v.dtype, v.rank, open}, &cut));
    *out = OT_NONE;
    return rw_reshape(w, &l->body, "body", name, cut, v.rank, dims, out);
}

/* A window per dimension of every tile of the block: starts and lengths, sorted into those that
 * stay and those that move. */
typedef struct motion {
    rw_cut still[OT_DIMS_MAX];
    uint32_t n_still;
    rw_moving_window moving;
} motion;

/* What tile k makes of v in dimension d; of inputs, what it reads. */
static ot_win window_at(const rw_loop *l, uint32_t d, uint32_t k, uint32_t v)
{
    return l->w->tiles->dims[d].tiles[k].made[v];
}

static bool moves(const rw_loop *l, uint32_t d, uint32_t v)
{
    const uint32_t first = l->b->first[d];
    for (uint32_t k = 1; k < l->b->count[d]; k++)
        if (window_at(l, d, first + k, v).lo != window_at(l, d, first, v).lo) return true;
    return false;
}

/* Of input v. Where one window moves and the cut is made in the body, all are cut there by one
 * Slice, though some move to the same place: cut on its own in the body, a window that stays would
 * be taken out of all that the others move over, in every iteration. */
static ot_status find_motion(const rw_loop *l, uint32_t v, motion *m)
{
    const ot_rvalue *rv = &l->w->r->values[v];
    uint32_t dims[OT_DIMS_MAX] = {0};
    bool any = false;
    *m = (motion){0};
    for (uint32_t d = 0; d < l->w->r->n_dims; d++)
        any |= rv->axis[d] != OT_AX_WHOLE && moves(l, d, v);
    for (uint32_t d = 0; d < l->w->r->n_dims; d++) {
        if (rv->axis[d] == OT_AX_WHOLE) continue;
        const ot_win at = window_at(l, d, l->b->first[d], v);
        if ((any && l->inside) || moves(l, d, v)) {
            dims[m->moving.n] = d;
            m->moving.axes[m->moving.n] = (uint32_t)rv->axis[d];
            m->moving.len[m->moving.n++] = ot_win_len(at);
        } else {
            m->still[m->n_still++] = (rw_cut){(uint32_t)rv->axis[d], at.lo, at.hi};
        }
    }
    m->moving.lo = OT_NEW_N(l->w->arena, int64_t, (size_t)l->b->n_tiles * m->moving.n);
    if (!m->moving.lo) return rw_nomem(l->w);
    for (uint32_t i = 0; i < l->b->n_tiles; i++) {
        uint32_t k[OT_DIMS_MAX];
        rw_tile_at(l->b, i, k);
        for (uint32_t a = 0; a < m->moving.n; a++)
            m->moving.lo[(size_t)i * m->moving.n + a] = window_at(l, dims[a], k[dims[a]], v).lo;
    }
    return OT_OK;
}

ot_status rw_window_input(rw_loop *l, uint32_t v, ot_id *out)
{
    rw_region *w = l->w;
    const ot_id id = w->r->values[v].value;
    const char *name = w->g->values[id].name;
    motion m;
    ot_id src;
    if (rw_in_pieces(w, v)) return rw_pieces_window(l, v, out);
    OT_TRY(find_motion(l, v, &m));
    if (l->inside) { /* nothing of the tiles in the outer graph */
        OT_TRY(rw_use(w, &l->body, id, &src));
        if (m.moving.n) return rw_moving_crop(l, src, &m.moving, name, out);
        return rw_crop(w, &l->body, src, m.still, m.n_still, name, out);
    }
    OT_TRY(rw_crop(w, &w->top, id, m.still, m.n_still, name, &src));
    if (m.moving.n == 0) return rw_use(w, &l->body, src, out);
    OT_TRY(rw_capture(w, &l->body, src, &src));
    return rw_moving_crop(l, src, &m.moving, name, out);
}

/* Tiles of a run look alike: the piece lies at the same place in all of them. */
ot_status rw_window_piece(rw_loop *l, uint32_t v, ot_id made, ot_id *out)
{
    rw_region *w = l->w;
    const ot_rvalue *rv = &w->r->values[v];
    rw_cut cuts[OT_DIMS_MAX];
    uint32_t n = 0;
    for (uint32_t d = 0; d < w->r->n_dims; d++) {
        if (rv->axis[d] == OT_AX_WHOLE) continue;
        const ot_tile_windows *t = &w->tiles->dims[d].tiles[l->b->first[d]];
        const int64_t inset = t->piece[v].lo - t->made[v].lo;
        cuts[n++] = (rw_cut){(uint32_t)rv->axis[d], inset, inset + ot_win_len(t->piece[v])};
    }
    return rw_crop(w, &l->body, made, cuts, n, w->g->values[rv->value].name, out);
}
