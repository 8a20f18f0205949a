/* When stacked tiles are the value itself in memory: a tensor that is cut along its outermost
 * axis is read and written in place.
 *
 *     x [8, C, H, W]  = Reshape =>  [4, 2, C, H, W]  = Scan =>  body input [2, C, H, W], 4 times
 *     x [1, H, W, C]  = Reshape =>  [H/8, 1, 8, W, C]           (axes of extent 1 do not count)
 *
 * In general the tiles of a block, counted row by row, form the leading axes of the stacked
 * tensor; it is the same in memory as the value itself when sorting those counts in front of the
 * axes that they cut moves no entry greater than 1 past another.
 */
#include "forms.h"

static void dims_of(const ot_graph *g, const ot_region *r, const ot_tile_windows *const *win,
                    uint32_t v, bool piece, int64_t *dims)
{
    const ot_rvalue *rv = &r->values[v];
    const ot_value *x = &g->values[rv->value];
    if (x->rank > 0) memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    for (uint32_t d = 0; d < r->n_dims; d++)
        if (rv->axis[d] != OT_AX_WHOLE)
            dims[rv->axis[d]] = ot_win_len(piece ? win[d]->piece[v] : win[d]->made[v]);
}

void ot_made_dims(const ot_graph *g, const ot_region *r, const ot_tile_windows *const *win,
                  uint32_t v, int64_t *dims)
{
    dims_of(g, r, win, v, false, dims);
}

void ot_piece_dims(const ot_graph *g, const ot_region *r, const ot_tile_windows *const *win,
                   uint32_t v, int64_t *dims)
{
    dims_of(g, r, win, v, true, dims);
}

bool ot_reassemble_layout(const ot_graph *g, const ot_region *r, const uint32_t *count, uint32_t v,
                          const int64_t *tile, ot_reassembly *out)
{
    int64_t *perm = out->perm, *split = out->split, *whole = out->whole;
    const ot_rvalue *rv = &r->values[v];
    uint32_t rank = (uint32_t)g->values[rv->value].rank, counts = 0, at = 0;
    uint32_t place[OT_DIMS_MAX]; /* of a dimension's count among the leading entries */
    for (uint32_t d = 0; d < r->n_dims; d++) {
        if (count[d] == 1) continue;
        place[d] = counts;
        split[counts++] = count[d];
    }
    out->n = counts + rank;
    for (uint32_t a = 0; a < rank; a++) {
        split[counts + a] = whole[a] = tile[a];
        for (uint32_t d = 0; d < r->n_dims; d++) {
            if (count[d] == 1 || rv->axis[d] != (int8_t)a) continue;
            perm[at++] = place[d];
            whole[a] *= count[d];
        }
        perm[at++] = counts + a;
    }
    int64_t last = -1;
    for (uint32_t k = 0; k < at; k++) {
        if (split[perm[k]] == 1) continue;
        if (perm[k] < last) return false;
        last = perm[k];
    }
    return at == out->n; /* false: the value is not cut in every dimension of the block */
}

bool ot_scan_sliced(const ot_form_tiles *t, const uint32_t *first, const uint32_t *count,
                    uint32_t v)
{
    const ot_rvalue *rv = &t->r->values[v];
    const ot_tile_windows *win[OT_DIMS_MAX];
    int64_t dims[OT_RANK_MAX];
    ot_reassembly layout;
    for (uint32_t d = 0; d < t->r->n_dims; d++) {
        const ot_tile_windows *all = t->dims[d].tiles;
        win[d] = &all[first[d]];
        if (rv->axis[d] == OT_AX_WHOLE) {
            if (count[d] > 1) return false;
            continue;
        }
        int64_t extent = t->g->values[rv->value].dims[rv->axis[d]],
                len = ot_win_len(win[d]->made[v]);
        if (len * count[d] != extent) return false;
        for (uint32_t k = 0; k < count[d]; k++)
            if (all[first[d] + k].made[v].lo != (int64_t)k * len) return false;
    }
    ot_made_dims(t->g, t->r, win, v, dims);
    return ot_reassemble_layout(t->g, t->r, count, v, dims, &layout);
}

ot_status ot_prescan_legal(const ot_form_tiles *t, bool *legal, ot_why *why)
{
    *legal = false;
    *why = OT_WHY_SCAN_OPSET;
    if (t->g->model->opset < OT_SCAN_SINCE) return OT_OK;
    *why = OT_WHY_READ_WHOLE;
    for (uint32_t v = 0; v < t->r->n_inputs; v++) {
        bool cut = false;
        for (uint32_t d = 0; d < t->r->n_dims; d++) cut |= t->r->values[v].axis[d] != OT_AX_WHOLE;
        ot_body_source from = ot_body_source_of(t->g, t->r->values[v].value);
        if (!cut && from != OT_BODY_INIT && from != OT_BODY_KNOWN) return OT_OK;
    }
    return ot_body_owns_constants(t, legal);
}

bool ot_scan_legal(const ot_form_tiles *t, ot_why *why)
{
    const ot_region *r = t->r;
    const ot_tile_windows *win[OT_DIMS_MAX];
    uint32_t first[OT_DIMS_MAX] = {0}, count[OT_DIMS_MAX] = {0};
    bool any = false;
    *why = OT_WHY_SCAN_OPSET;
    if (t->g->model->opset < OT_SCAN_SINCE) return false;
    for (uint32_t d = 0; d < r->n_dims; d++) {
        count[d] = r->dims[d].n_tiles;
        win[d] = &t->dims[d].tiles[0];
    }
    *why = OT_WHY_SCAN_OUTPUT;
    for (uint32_t v = 0; v < r->n_values; v++) {
        int64_t dims[OT_RANK_MAX];
        ot_reassembly layout;
        if (v < r->n_inputs) any = any || ot_scan_sliced(t, first, count, v);
        if (!r->values[v].is_output) continue;
        ot_piece_dims(t->g, r, win, v, dims);
        if (!ot_reassemble_layout(t->g, r, count, v, dims, &layout)) return false;
    }
    *why = OT_WHY_SCAN_INPUT;
    return any;
}
