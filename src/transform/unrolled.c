/* Tiles written out one by one, and joining what blocks made.
 *
 *      x --Slice--> t0 --conv--relu--crop--.
 *        --Slice--> t1 --conv--relu--------Concat--> y      (t1's border is inside the image)
 *        --Slice--> t2 --conv--relu--crop--'
 *
 * Weights are read from where they are: nothing is duplicated. In several dimensions the pieces are
 * joined along the last dimension first. The last join of an output produces the region's own
 * value, so readers and graph outputs do not change.
 */
#include "transform_internal.h"

/* Join a grid of pieces of output v, counts n[d..] in row-major order. OT_NONE marks empty
 * pieces. *out: the value to produce, or OT_NONE for a new one (which stays OT_NONE when all
 * pieces are empty). */
static ot_status join(rw_region *w, uint32_t v, const uint32_t *n, uint32_t d, const ot_id *ids,
                      ot_id *out)
{
    const ot_rvalue *rv = &w->r->values[v];
    uint32_t stride = 1, m = 0;
    if (d == w->r->n_dims) {
        *out = ids[0];
        return OT_OK;
    }
    if (n[d] == 1) return join(w, v, n, d + 1, ids, out);
    for (uint32_t e = d + 1; e < w->r->n_dims; e++) stride *= n[e];
    ot_id *parts = OT_NEW_N(w->arena, ot_id, n[d]);
    if (!parts) return rw_nomem(w);
    for (uint32_t k = 0; k < n[d]; k++) {
        parts[m] = OT_NONE;
        OT_TRY(join(w, v, n, d + 1, ids + (size_t)k * stride, &parts[m]));
        m += parts[m] != OT_NONE;
    }
    if (m == 0 || (m == 1 && *out == OT_NONE)) {
        *out = m ? parts[0] : OT_NONE;
        return OT_OK;
    }
    return rw_concat(w, &w->top, w->g->values[rv->value].name, parts, m, (uint32_t)rv->axis[d],
                     out);
}

/* The windows of the region inputs that this tile needs. */
static ot_status cut_inputs(rw_chain *c)
{
    rw_region *w = c->w;
    for (uint32_t v = 0; v < w->r->n_inputs; v++) {
        const ot_rvalue *rv = &w->r->values[v];
        rw_cut cuts[OT_DIMS_MAX];
        uint32_t n = 0;
        if (!c->needed[v]) continue;
        for (uint32_t d = 0; d < w->r->n_dims; d++)
            if (rv->axis[d] != OT_AX_WHOLE)
                cuts[n++] = (rw_cut){(uint32_t)rv->axis[d], c->win[d]->made[v].lo,
                                     c->win[d]->made[v].hi};
        OT_TRY(rw_crop(w, c->t, rv->value, cuts, n, w->g->values[rv->value].name, &c->val[v]));
    }
    return OT_OK;
}

/* This tile's piece of output v, or its part with an axis in front; OT_NONE when it is empty. */
static ot_status cut_piece(rw_chain *c, uint32_t v, ot_id *out)
{
    const rw_region *w = c->w;
    const ot_rvalue *rv = &w->r->values[v];
    rw_cut cuts[OT_DIMS_MAX];
    *out = OT_NONE;
    if (rw_is_part(w, v)) {
        *out = c->val[v];
        return rw_part(c->w, c->t, c->win, v, 1, out);
    }
    for (uint32_t d = 0; d < w->r->n_dims; d++) {
        ot_win piece = c->win[d]->piece[v], made = c->win[d]->made[v];
        if (ot_win_empty(piece)) return OT_OK;
        cuts[d] = (rw_cut){(uint32_t)rv->axis[d], piece.lo - made.lo, piece.hi - made.lo};
    }
    return rw_crop(c->w, c->t, c->val[v], cuts, w->r->n_dims, w->g->values[rv->value].name, out);
}

static const char *tile_label(const rw_region *w, const uint32_t *k)
{
    char text[16 * OT_DIMS_MAX] = "t";
    size_t at = 1;
    for (uint32_t d = 0; d < w->r->n_dims; d++)
        at += (size_t)snprintf(text + at, sizeof text - at, d ? "_%u" : "%u", k[d]);
    return ot_strdup(w->arena, text);
}

/* Write one tile; pieces of the outputs go to out[v]. */
static ot_status emit_tile(rw_region *w, const uint32_t *k, ot_id *out)
{
    const ot_tile_windows *win[OT_DIMS_MAX];
    rw_chain c;
    w->top.label = tile_label(w, k);
    if (!w->top.label) return rw_nomem(w);
    for (uint32_t d = 0; d < w->r->n_dims; d++) win[d] = &w->tiles->dims[d].tiles[k[d]];
    OT_TRY(rw_chain_plan(&c, w, &w->top, win));
    OT_TRY(cut_inputs(&c));
    OT_TRY(rw_chain_emit(&c));
    for (uint32_t v = w->r->n_inputs; v < w->r->n_values; v++)
        if (w->r->values[v].is_output) OT_TRY(cut_piece(&c, v, &out[v]));
    w->top.label = NULL;
    return OT_OK;
}

ot_status rw_unroll(rw_region *w, rw_block *b)
{
    uint32_t n_values = w->r->n_values;
    ot_id *made = OT_NEW_N(w->arena, ot_id, (size_t)b->n_tiles * n_values);
    ot_id *ids = OT_NEW_N(w->arena, ot_id, b->n_tiles);
    if (!made || !ids) return rw_nomem(w);
    for (uint32_t i = 0; i < b->n_tiles; i++) {
        uint32_t k[OT_DIMS_MAX];
        rw_tile_at(b, i, k);
        OT_TRY(emit_tile(w, k, made + (size_t)i * n_values));
    }
    for (uint32_t v = 0; v < n_values; v++) {
        b->out[v] = OT_NONE;
        if (!w->r->values[v].is_output) continue;
        for (uint32_t i = 0; i < b->n_tiles; i++) ids[i] = made[(size_t)i * n_values + v];
        if (rw_is_part(w, v)) {
            b->out[v] = b->n_tiles == 1 ? ids[0] : OT_NONE;
            if (b->n_tiles > 1)
                OT_TRY(rw_concat(w, &w->top, w->g->values[w->r->values[v].value].name, ids,
                                 b->n_tiles, 0, &b->out[v]));
            continue;
        }
        OT_TRY(join(w, v, b->count, 0, ids, &b->out[v]));
    }
    return OT_OK;
}

ot_status rw_join(rw_region *w, const rw_block *blocks)
{
    uint32_t counts[OT_DIMS_MAX], n = 1;
    for (uint32_t d = 0; d < w->r->n_dims; d++) n *= counts[d] = w->tiles->dims[d].n_runs;
    ot_id *ids = OT_NEW_N(w->arena, ot_id, n);
    if (!ids) return rw_nomem(w);
    for (uint32_t v = 0; v < w->r->n_values; v++) {
        if (!w->r->values[v].is_output) continue;
        if (rw_is_part(w, v)) {
            OT_TRY(rw_combine_blocks(w, v, blocks, n));
            continue;
        }
        if (n == 1) continue;
        for (uint32_t k = 0; k < n; k++) ids[k] = blocks[k].out[v];
        ot_id out = w->r->values[v].value;
        OT_TRY(join(w, v, counts, 0, ids, &out));
    }
    return OT_OK;
}
