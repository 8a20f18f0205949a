/* Windows of all tiles, gathered ahead of a Scan that captures nothing.
 *
 *     x [N, C, H, W] --Gather(axis 2, positions [T, len])--> [N, C, T, len, W] --Transpose--> [T,
 *     N, C, len, W] --> Scan
 *
 *     positions    0 1 2 3        windows overlap: they take more room than the value, all at once;
 *                  2 3 4 5        no body reads anything by name, and no start moves with the
 *                                 iteration
 *                  4 5 6 7
 *
 * In several dimensions there is a Gather for each, and the Transpose brings all counts to the
 * front, where a Reshape makes one of them.
 */
#include "transform_internal.h"

/* Windows of one value, gathered along some dimensions so far. */
typedef struct gathering {
    rw_loop *l;
    uint32_t v;
    /* [n] along which its windows move, by ascending axis of the value */
    uint32_t dims[OT_DIMS_MAX];
    uint32_t n;
} gathering;

static const ot_tile_windows *windows_of(const rw_loop *l, uint32_t d)
{
    const ot_dim_runs *x = &l->w->tiles->dims[d];
    return &x->tiles[l->b->first[d]];
}

/* Sort the dimensions of the value into those along which windows move and the crops that all
 * tiles share. */
static uint32_t find_moving(gathering *m, rw_cut *still)
{
    const rw_loop *l = m->l;
    const int8_t *axis = l->w->r->values[m->v].axis;
    uint32_t n_still = 0;
    for (uint32_t d = 0; d < l->w->r->n_dims; d++) {
        const ot_tile_windows *win = windows_of(l, d);
        bool moves = false;
        if (axis[d] == OT_AX_WHOLE) continue;
        for (uint32_t k = 1; k < l->b->count[d]; k++)
            moves |= win[k].made[m->v].lo != win[0].made[m->v].lo;
        if (!moves) {
            still[n_still++] = (rw_cut){(uint32_t)axis[d], win[0].made[m->v].lo,
                                        win[0].made[m->v].hi};
            continue;
        }
        uint32_t at = m->n++;
        for (; at > 0 && axis[m->dims[at - 1]] > axis[d]; at--) m->dims[at] = m->dims[at - 1];
        m->dims[at] = d;
    }
    return n_still;
}

/* One Gather by [count, len] positions: the axis becomes two. */
static ot_status gather(gathering *m, uint32_t d, uint32_t axis, ot_id *value)
{
    rw_region *w = m->l->w;
    const ot_tile_windows *win = windows_of(m->l, d);
    const ot_value x = w->g->values[*value];
    const uint32_t count = m->l->b->count[d];
    const int64_t len = ot_win_len(win[0].made[m->v]);
    int64_t dims[OT_RANK_MAX], *rows = OT_NEW_N(w->arena, int64_t, (size_t)count * (size_t)len);
    ot_id in[2] = {*value, OT_NONE}, out = OT_NONE;
    ot_attr at = ot_mk_int("axis", axis);
    if (!rows) return rw_nomem(w);
    for (uint32_t k = 0; k < count; k++)
        for (int64_t j = 0; j < len; j++) rows[(int64_t)k * len + j] = win[k].made[m->v].lo + j;
    OT_TRY(rw_const_rows(w, &w->top, "positions", rows, count, (uint32_t)len, &in[1]));
    memcpy(dims, x.dims, axis * sizeof *dims);
    dims[axis] = count;
    dims[axis + 1] = len;
    memcpy(dims + axis + 2, x.dims + axis + 1, ((size_t)x.rank - axis - 1) * sizeof *dims);
    OT_TRY(rw_op(w, &w->top, "slice",
                 &(ot_node_def){.op = "Gather",
                                .name = w->g->values[w->r->values[m->v].value].name,
                                .in = {in, 2},
                                .attrs = {&at, 1}},
                 (ot_tensor_type){x.dtype, x.rank + 1, dims}, &out));
    *value = out;
    return OT_OK;
}

/* Counts to the front, in the order of the region's dimensions. at: [n] their places, as m->dims.
 */
static ot_status counts_first(gathering *m, const uint32_t *at, ot_id *value)
{
    rw_region *w = m->l->w;
    const ot_value x = w->g->values[*value];
    int64_t perm[OT_RANK_MAX], dims[OT_RANK_MAX], last = -1;
    uint32_t n = 0;
    bool moved = false;
    ot_id out = OT_NONE;
    for (uint32_t d = 0; d < w->r->n_dims; d++)
        for (uint32_t k = 0; k < m->n; k++)
            if (m->dims[k] == d) perm[n++] = at[k];
    for (uint32_t a = 0; a < (uint32_t)x.rank; a++) {
        bool count = false;
        for (uint32_t k = 0; k < m->n; k++) count |= at[k] == a;
        if (!count) perm[n++] = a;
    }
    for (uint32_t a = 0; a < n; a++) {
        dims[a] = x.dims[perm[a]];
        if (dims[a] == 1) continue;
        moved |= perm[a] < last;
        last = perm[a];
    }
    if (!moved) return OT_OK; /* a Reshape does it */
    ot_attr to = ot_mk_ints(w->g->model->arena, "perm", perm, n);
    if (to.kind != OT_ATTR_INTS) return rw_nomem(w);
    OT_TRY(rw_op(w, &w->top, "slice",
                 &(ot_node_def){.op = "Transpose",
                                .name = w->g->values[w->r->values[m->v].value].name,
                                .in = {value, 1},
                                .attrs = {&to, 1}},
                 (ot_tensor_type){x.dtype, x.rank, dims}, &out));
    *value = out;
    return OT_OK;
}

/* [windows, ...] to [tiles, ...], where tiles along some dimension read the same window. */
static ot_status repeat(gathering *m, const int64_t *dims, ot_id *value)
{
    rw_region *w = m->l->w;
    const ot_value x = w->g->values[*value];
    const uint32_t n_tiles = m->l->b->n_tiles;
    int64_t *which = OT_NEW_N(w->arena, int64_t, n_tiles);
    ot_id in[2] = {*value, OT_NONE}, out = OT_NONE;
    ot_attr at = ot_mk_int("axis", 0);
    if (!which) return rw_nomem(w);
    for (uint32_t i = 0; i < n_tiles; i++) {
        uint32_t k[OT_DIMS_MAX];
        rw_tile_at(m->l->b, i, k);
        for (uint32_t d = 0; d < w->r->n_dims; d++)
            for (uint32_t j = 0; j < m->n; j++)
                if (m->dims[j] == d)
                    which[i] = which[i] * m->l->b->count[d] + (k[d] - m->l->b->first[d]);
    }
    OT_TRY(rw_const_i64(w, &w->top, "windows", which, n_tiles, false, &in[1]));
    OT_TRY(rw_op(w, &w->top, "slice",
                 &(ot_node_def){.op = "Gather",
                                .name = w->g->values[w->r->values[m->v].value].name,
                                .in = {in, 2},
                                .attrs = {&at, 1}},
                 (ot_tensor_type){x.dtype, x.rank, dims}, &out));
    *value = out;
    return OT_OK;
}

ot_status rw_gathered_input(rw_loop *l, uint32_t v, ot_id *out)
{
    rw_region *w = l->w;
    const ot_id id = w->r->values[v].value;
    const ot_value x = w->g->values[id];
    gathering m = {.l = l, .v = v};
    const ot_tile_windows *win[OT_DIMS_MAX];
    rw_cut still[OT_DIMS_MAX] = {{0}};
    uint32_t at[OT_DIMS_MAX];
    int64_t dims[OT_RANK_MAX];
    ot_id value, stacked = OT_NONE;
    uint32_t n_still = find_moving(&m, still);
    OT_TRY(rw_crop(w, &w->top, id, still, n_still, x.name, &value));
    for (uint32_t k = 0; k < m.n; k++) {
        at[k] = (uint32_t)w->r->values[v].axis[m.dims[k]] + k;
        OT_TRY(gather(&m, m.dims[k], at[k], &value));
    }
    OT_TRY(counts_first(&m, at, &value));
    for (uint32_t d = 0; d < w->r->n_dims; d++) win[d] = windows_of(l, d);
    ot_made_dims(w->g, w->r, win, v, dims + 1);
    dims[0] = 1;
    for (uint32_t k = 0; k < m.n; k++) dims[0] *= l->b->count[m.dims[k]];
    OT_TRY(rw_reshape(w, &w->top, "slice", x.name, value, x.rank + 1, dims, &stacked));
    bool shared = dims[0] != l->b->n_tiles;
    dims[0] = l->b->n_tiles;
    if (shared) OT_TRY(repeat(&m, dims, &stacked));
    return rw_scanned(l, &x, dims + 1, stacked, out);
}
