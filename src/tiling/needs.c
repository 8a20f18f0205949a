/* What a form asks of who runs it.
 *
 *   form         one dimension, opset 13 on     else
 *   unrolled     -                              -
 *   scan         Scan; captures what it does not cut
 *   loop-peeled  Loop, sequences                Scan, for every run of tiles (single ones in one
 *                                               dimension, too); captures inputs whose windows
 *                                               overlap; stacks at the cut axis, where that is not
 *                                               the outermost in memory
 *   loop         Loop
 *   prescan      Scan
 *   stream       Loop, sequences                not written
 *   while        the engine's operators: nothing that is asked here
 *
 * Where there is no Scan yet (opset 8), all of these are Loops.
 */
#include "forms.h"

static bool is_cut(const ot_region *r, uint32_t v)
{
    for (uint32_t d = 0; d < r->n_dims; d++)
        if (r->values[v].axis[d] != OT_AX_WHOLE) return true;
    return false;
}

/* A Scan over all tiles reads something by name. */
static ot_status captures(const ot_form_tiles *t, bool *any)
{
    const ot_region *r = t->r;
    uint32_t first[OT_DIMS_MAX] = {0}, count[OT_DIMS_MAX] = {0};
    bool owns;
    for (uint32_t d = 0; d < r->n_dims; d++) count[d] = r->dims[d].n_tiles;
    OT_TRY(ot_body_owns_constants(t, &owns));
    *any = !owns;
    for (uint32_t v = 0; v < r->n_inputs && !*any; v++) {
        ot_body_source from = ot_body_source_of(t->g, r->values[v].value);
        bool constant = !is_cut(r, v) && (from == OT_BODY_INIT || from == OT_BODY_KNOWN);
        *any = !constant && !ot_scan_sliced(t, first, count, v);
    }
    return OT_OK;
}

/* Some output's pieces are not stacked in place by a Scan along one dimension. */
static bool stacks_elsewhere(const ot_form_tiles *t)
{
    const ot_region *r = t->r;
    for (uint32_t d = 0; d < r->n_dims; d++) {
        const ot_tile_windows *win[OT_DIMS_MAX];
        uint32_t count[OT_DIMS_MAX] = {1, 1, 1};
        count[d] = r->dims[d].n_tiles;
        for (uint32_t e = 0; e < r->n_dims; e++) win[e] = t->dims[e].tiles;
        for (uint32_t v = r->n_inputs; v < r->n_values; v++) {
            int64_t dims[OT_RANK_MAX];
            ot_reassembly layout;
            /* parts are stacked in front */
            if (!r->values[v].is_output || ot_is_part(r, v, d)) continue;
            ot_piece_dims(t->g, r, win, v, dims);
            if (!ot_reassemble_layout(t->g, r, count, v, dims, &layout)) return true;
        }
    }
    return false;
}

static bool has_group_norm(const ot_form_tiles *t)
{
    for (uint32_t i = 0; i < t->r->n_nodes; i++)
        if (t->g->nodes[t->r->nodes[i].node].op == OT_OP_GroupNormalization) return true;
    return false;
}

/* Some tile pads an AveragePool that counts padding more behind than in front: the last tile
 * does, where the whole map is padded evenly. */
static bool has_uneven_pool(const ot_form_tiles *t)
{
    const ot_region *r = t->r;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_node *n = &t->g->nodes[r->nodes[i].node];
        if (n->op != OT_OP_AveragePool || ot_attr_int(n, "count_include_pad", 0) == 0) continue;
        for (uint32_t d = 0; d < r->n_dims; d++) {
            if (r->nodes[i].lead_axis[d] < 2) continue; /* not a spatial axis: nothing is padded */
            for (uint32_t k = 0; k < t->dims[d].n; k++) {
                const ot_op_tile *tile = &t->dims[d].tiles[k].ops[i];
                if (!ot_win_empty(tile->need) && tile->pad_hi > tile->pad_lo) return true;
            }
        }
    }
    return false;
}

#define LONG_SUM (1 << 16)

bool ot_is_long_sum(const ot_graph *g, const ot_node *n)
{
    int64_t elems;
    if (n->op != OT_OP_InstanceNormalization || n->n_in == 0 || n->in[0] == OT_NONE) return false;
    const ot_value *x = &g->values[n->in[0]];
    if (x->rank <= 2 || !ot_value_is_static(x) || !ot_value_elems(x, &elems) || elems == 0)
        return false;
    return elems / x->dims[0] / x->dims[1] >= LONG_SUM;
}

/* What the region joins is summed up so outside of it, or tiles of channels are, inside. */
static bool has_long_sum(const ot_form_tiles *t)
{
    const ot_region *r = t->r;
    for (uint32_t k = 0; k < r->n_nodes; k++)
        if (ot_is_long_sum(t->g, &t->g->nodes[r->nodes[k].node])) return true;
    for (uint32_t v = r->n_inputs; v < r->n_values; v++) {
        const ot_value *x = &t->g->values[r->values[v].value];
        for (uint32_t u = 0; r->values[v].is_output && u < x->n_uses; u++) {
            const ot_node *n = &t->g->nodes[x->uses[u]];
            if (ot_is_long_sum(t->g, n) && n->in[0] == r->values[v].value) return true;
        }
    }
    return false;
}

/* Windows of cut inputs move with the iteration, by Gather where Slice cannot. */
static unsigned loop_needs(const ot_graph *g)
{
    return OT_NEEDS_LOOP | (g->model->opset < OT_SLICE_HAS_INPUTS ? OT_NEEDS_MOVING_GATHER : 0);
}

ot_status ot_form_needs(const ot_form_tiles *t, ot_form f, unsigned *needs)
{
    const ot_graph *g = t->g;
    bool captured = f == OT_FORM_PEELED, has_scan = g->model->opset >= OT_SCAN_SINCE;
    *needs = f != OT_FORM_WHILE && f != OT_FORM_NONE && has_uneven_pool(t) ? OT_NEEDS_UNEVEN_POOL
                                                                           : 0;
    if (f != OT_FORM_WHILE && f != OT_FORM_NONE && has_long_sum(t)) *needs |= OT_NEEDS_LONG_SUM;
    if (f == OT_FORM_UNROLLED || f == OT_FORM_WHILE || f == OT_FORM_NONE) return OT_OK;
    if (f == OT_FORM_STREAM || (f == OT_FORM_PEELED && ot_sequence_fits(g, t->r))) {
        *needs |= loop_needs(g) | OT_NEEDS_SEQUENCE;
    } else if (f == OT_FORM_LOOP || !has_scan) {
        *needs |= loop_needs(g);
    } else {
        *needs |= OT_NEEDS_SCAN;
        if (f != OT_FORM_PRESCAN && !captured) OT_TRY(captures(t, &captured));
        if (captured) *needs |= OT_NEEDS_SCAN_CAPTURE | (loop_needs(g) & OT_NEEDS_MOVING_GATHER);
        if (f == OT_FORM_PEELED && stacks_elsewhere(t)) *needs |= OT_NEEDS_SCAN_AXES;
    }
    if (has_group_norm(t)) *needs |= OT_NEEDS_GROUP_NORM;
    return OT_OK;
}

ot_why ot_needs_refusal(unsigned lacking)
{
    static const ot_why whys[] = {
        OT_WHY_RUNS_NO_LOOP,         OT_WHY_RUNS_NO_SEQUENCE,    OT_WHY_RUNS_NO_SCAN,
        OT_WHY_RUNS_NO_SCAN_CAPTURE, OT_WHY_RUNS_NO_SCAN_AXES,   OT_WHY_RUNS_NO_MOVING_GATHER,
        OT_WHY_RUNS_NO_GROUP_NORM,   OT_WHY_RUNS_NO_UNEVEN_POOL, OT_WHY_RUNS_NO_LONG_SUM};
    for (uint32_t k = 0; k < sizeof whys / sizeof *whys; k++)
        if ((lacking >> k & 1u) != 0) return whys[k];
    return OT_WHY_NONE;
}
