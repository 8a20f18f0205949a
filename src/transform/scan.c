/* Zero-copy inputs and outputs of a Scan.
 *
 * A runtime hands a Scan's body views of the input and writes its results straight into the output,
 * one slice of the first axis per iteration. So a tensor that is cut along its outermost axis is
 * read and written in place; all it takes is a Reshape, which copies nothing:
 *
 *     x [8, C, H, W]  = Reshape =>  [4, 2, C, H, W]  = Scan =>  body input [2, C, H, W], 4 times
 *     x [1, H, W, C]  = Reshape =>  [H/8, 1, 8, W, C]           (axes of extent 1 do not count)
 *
 * Which values are: tiling/scan_layout.c.
 */
#include "transform_internal.h"

bool rw_use_scan(const rw_region *w)
{
    return w->g->model->opset >= OT_SCAN_SINCE && !w->force_loop && w->r->form != OT_FORM_LOOP;
}

ot_status rw_scanned(rw_loop *l, const ot_value *x, const int64_t *dims, ot_id stacked, ot_id *out)
{
    rw_region *w = l->w;
    OT_TRY(rw_value(w, &l->body, "body", x->name, (ot_tensor_type){x->dtype, x->rank, dims}, out));
    l->body.g->values[*out].is_input = true;
    if (!OT_PUSH(w->arena, l->inputs, l->n_inputs, l->cap_inputs, *out) ||
        !OT_PUSH(w->arena, l->scan_in, l->n_scan, l->cap_scan, stacked))
        return rw_nomem(w);
    return OT_OK;
}

ot_status rw_scan_input(rw_loop *l, uint32_t v, ot_id *out)
{
    rw_region *w = l->w;
    const ot_tile_windows *win[OT_DIMS_MAX];
    const ot_id id = w->r->values[v].value;
    const ot_value x = w->g->values[id];
    int64_t dims[OT_RANK_MAX];
    ot_id stacked = OT_NONE;
    for (uint32_t d = 0; d < w->r->n_dims; d++) win[d] = &w->tiles->dims[d].tiles[l->b->first[d]];
    dims[0] = l->b->n_tiles;
    ot_made_dims(w->g, w->r, win, v, dims + 1);
    OT_TRY(rw_reshape(w, &w->top, "slice", x.name, id, x.rank + 1, dims, &stacked));
    return rw_scanned(l, &x, dims + 1, stacked, out);
}
