/* Zero-copy inputs and outputs of a Scan.
 *
 * A runtime hands a Scan's body views of the input and writes its results straight into the output,
 * one slice of the first axis per iteration. So a tensor that is cut along its outermost axis is
 * read and written in place; all it takes is a Reshape, which copies nothing:
 *
 *     x [8, C, H, W]  = Reshape =>  [4, 2, C, H, W]  = Scan =>  body input [2, C, H, W], 4 times
 *     x [1, H, W, C]  = Reshape =>  [H/8, 1, 8, W, C]           (axes of extent 1 do not count)
 *
 * In general the tiles of a block, counted row by row, form the leading axes of the stacked tensor;
 * it is the same in memory as the value itself when sorting those counts in front of the axes that
 * they cut moves no entry greater than 1 past another.
 */
#include "rewrite.h"

#define SCAN_SINCE 9 /* opset 8's Scan has a batch axis */

bool rw_use_scan(const rw_region *w) { return w->g->model->opset >= SCAN_SINCE && !w->force_loop; }

bool rw_stitch_layout(const rw_region *w, const rw_block *b, uint32_t v, const int64_t *tile, int64_t *perm, int64_t *split,
                      uint32_t *n, int64_t *whole)
{
    const ot_rvalue *rv = &w->r->values[v];
    uint32_t rank = (uint32_t)w->g->values[rv->value].rank, counts = 0, at = 0;
    uint32_t place[OT_DIMS_MAX]; /* of a dimension's count among the leading entries */
    for (uint32_t d = 0; d < w->r->n_dims; d++) {
        if (b->count[d] == 1) continue;
        place[d] = counts;
        split[counts++] = b->count[d];
    }
    *n = counts + rank;
    for (uint32_t a = 0; a < rank; a++) {
        split[counts + a] = whole[a] = tile[a];
        for (uint32_t d = 0; d < w->r->n_dims; d++) {
            if (b->count[d] == 1 || rv->axis[d] != (int8_t)a) continue;
            perm[at++] = place[d];
            whole[a] *= b->count[d];
        }
        perm[at++] = counts + a;
    }
    int64_t last = -1;
    for (uint32_t k = 0; k < at; k++) {
        if (split[perm[k]] == 1) continue;
        if (perm[k] < last) return false;
        last = perm[k];
    }
    return at == *n; /* false: the value is not cut in every dimension of the block */
}

bool rw_scan_sliced(const rw_region *w, const rw_block *b, uint32_t v)
{
    const ot_rvalue *rv = &w->r->values[v];
    const ot_tile_windows *win[OT_DIMS_MAX];
    int64_t dims[OT_RANK_MAX], perm[OT_RANK_MAX], split[OT_RANK_MAX], whole[OT_RANK_MAX];
    uint32_t n;
    for (uint32_t d = 0; d < w->r->n_dims; d++) {
        const ot_tile_windows *all = b->count[d] > 1 ? w->dims[d].loop : w->dims[d].exact;
        win[d] = &all[b->first[d]];
        if (rv->axis[d] == OT_AX_WHOLE) {
            if (b->count[d] > 1) return false;
            continue;
        }
        int64_t extent = w->g->values[rv->value].dims[rv->axis[d]], len = rw_len(win[d]->made[v]);
        if (len * b->count[d] != extent) return false;
        for (uint32_t k = 0; k < b->count[d]; k++)
            if (all[b->first[d] + k].made[v].lo != (int64_t)k * len) return false;
    }
    rw_made_dims(w, win, v, dims);
    return rw_stitch_layout(w, b, v, dims, perm, split, &n, whole);
}

ot_status rw_scan_input(rw_loop *l, uint32_t v, ot_id *out)
{
    rw_region *w = l->w;
    const ot_tile_windows *win[OT_DIMS_MAX];
    const ot_id id = w->r->values[v].value;
    const ot_value x = w->g->values[id];
    int64_t dims[OT_RANK_MAX];
    ot_id stacked = OT_NONE;
    for (uint32_t d = 0; d < w->r->n_dims; d++) win[d] = &(l->b->count[d] > 1 ? w->dims[d].loop : w->dims[d].exact)[l->b->first[d]];
    dims[0] = l->b->n_tiles;
    rw_made_dims(w, win, v, dims + 1);
    OT_TRY(rw_reshape(w, &w->top, "slice", x.name, id, x.rank + 1, dims, &stacked));
    OT_TRY(rw_value(w, &l->body, "body", x.name, x.dtype, x.rank, dims + 1, out));
    l->body.g->values[*out].is_input = true;
    if (!OT_PUSH(w->arena, l->inputs, l->n_inputs, l->cap_inputs, *out) ||
        !OT_PUSH(w->arena, l->scan_in, l->n_scan, l->cap_scan, stacked))
        return rw_nomem(w);
    return OT_OK;
}

bool rw_scan_legal(const rw_region *w, const char **why)
{
    const ot_region *r = w->r;
    const ot_tile_windows *win[OT_DIMS_MAX];
    rw_block b = {.n_tiles = 1};
    bool any = false;
    *why = "Scan needs opset 9 or newer";
    if (w->g->model->opset < SCAN_SINCE) return false;
    for (uint32_t d = 0; d < r->n_dims; d++) {
        b.count[d] = r->dims[d].n_tiles;
        b.n_tiles *= b.count[d];
        win[d] = &w->dims[d].exact[0];
    }
    *why = "the cut axis of an output is not outermost in memory";
    for (uint32_t v = 0; v < r->n_values; v++) {
        int64_t dims[OT_RANK_MAX], perm[OT_RANK_MAX], split[OT_RANK_MAX], whole[OT_RANK_MAX];
        uint32_t n;
        if (v < r->n_inputs) any = any || rw_scan_sliced(w, &b, v);
        if (!r->values[v].is_output) continue;
        rw_piece_dims(w, win, v, dims);
        if (!rw_stitch_layout(w, &b, v, dims, perm, split, &n, whole)) return false;
    }
    *why = "no input is cut along its outermost axis without a halo";
    return any;
}
