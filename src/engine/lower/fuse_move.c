/* Data movement without copies, or between blocked arrays: windows (Slice with constant bounds),
 * Concat.
 *
 * A window makes nothing by itself: whoever reads it decides on a layout, and versions.c takes
 * the window of that version of the source. Concat along the channel copies whole blocks when
 * all its parts but the last end on one; along any other axis each part keeps its blocks. Rows
 * that a stream puts together (kept ones, plain, and new ones, blocked) so move once, to where a
 * convolution reads them.
 */
#include "engine/cpu/move/box.h"
#include "lower.h"

/* ---- windows ---- */

/* Constant integers of operand k; false: none, or not known. */
static bool ints_of(const lw_pass *l, const lw_unit *u, uint32_t k, int64_t *out, uint32_t max,
                    uint32_t *n)
{
    int64_t count;
    if (k >= u->n_in || u->in[k] == OT_NONE) return false;
    const ot_slot *slot = l->v[u->in[k]].slot;
    if (!slot->is_const || !slot->nd.data || (slot->nd.dtype != OT_I64 && slot->nd.dtype != OT_I32))
        return false;
    if (!ot_nd_elems(&slot->nd, &count) || count > max) return false;
    for (int64_t j = 0; j < count; j++) out[j] = ot_nd_int(&slot->nd, j);
    *n = (uint32_t)count;
    return true;
}

static bool copy_attr(const ot_node *n, const char *name, int64_t *out, uint32_t max,
                      uint32_t *count)
{
    size_t k;
    const int64_t *a = ot_attr_ints(n, name, &k);
    if (!a || k > max) return false;
    memcpy(out, a, k * sizeof *out);
    *count = (uint32_t)k;
    return true;
}

/* Axes and starts of a Slice with steps of 1, of either form of the operator. */
static bool slice_bounds(const lw_pass *l, const lw_unit *u, int64_t *axes, int64_t *starts,
                         uint32_t *n)
{
    const ot_node *node = u->nodes[0];
    int64_t steps[OT_RANK_MAX];
    uint32_t n_axes, n_steps;
    if (u->n_in == 1) {
        if (!copy_attr(node, "starts", starts, OT_RANK_MAX, n)) return false;
        if (copy_attr(node, "axes", axes, OT_RANK_MAX, &n_axes)) return n_axes == *n;
    } else {
        if (!ints_of(l, u, 1, starts, OT_RANK_MAX, n)) return false;
        if (u->n_in > 4 && u->in[4] != OT_NONE) {
            if (!ints_of(l, u, 4, steps, OT_RANK_MAX, &n_steps)) return false;
            for (uint32_t k = 0; k < n_steps; k++)
                if (steps[k] != 1) return false;
        }
        if (u->n_in > 3 && u->in[3] != OT_NONE)
            return ints_of(l, u, 3, axes, OT_RANK_MAX, &n_axes) && n_axes == *n;
    }
    for (uint32_t k = 0; k < *n; k++) axes[k] = k;
    return true;
}

/* Where the window of a Slice begins, in each dim. */
static bool window_start(const lw_pass *l, const lw_unit *u, int64_t *start)
{
    const ot_nd *x = &l->v[u->in[0]].slot->fore, *y = &l->v[u->out[0]].slot->fore;
    int64_t axes[OT_RANK_MAX], starts[OT_RANK_MAX];
    uint32_t n;
    if (!slice_bounds(l, u, axes, starts, &n)) return false;
    memset(start, 0, OT_RANK_MAX * sizeof *start);
    for (uint32_t k = 0; k < n; k++) {
        int64_t axis = axes[k] < 0 ? axes[k] + x->rank : axes[k];
        if (axis < 0 || axis >= x->rank) return false;
        int64_t at = starts[k] < 0 ? starts[k] + x->dims[axis] : starts[k];
        start[axis] = ot_min(ot_max(at, 0), x->dims[axis]);
    }
    for (uint32_t k = 0; k < x->rank; k++)
        if (start[k] + y->dims[k] > x->dims[k]) return false;
    return true;
}

ot_status lw_find_windows(lw_pass *l)
{
    for (uint32_t u = 0; u < l->n_units; u++) {
        lw_unit *unit = &l->units[u];
        int64_t start[OT_RANK_MAX];
        if (unit->kind != LW_NODE || unit->nodes[0]->op != OT_OP_Slice || unit->n_in < 1 ||
            unit->out[0] == OT_NONE)
            continue;
        if (!lw_is_real(l, unit->in[0]) || !lw_is_real(l, unit->out[0]) ||
            l->v[unit->in[0]].slot->is_const)
            continue;
        if (l->v[unit->in[0]].slot->fore.rank != l->v[unit->out[0]].slot->fore.rank ||
            !window_start(l, unit, start))
            continue;
        lw_value *w = &l->v[unit->out[0]];
        w->start = ot_memdup(l->a, start, sizeof start);
        if (!w->start) return ot_fail_nomem(l->p->s->d);
        w->of = unit->in[0];
        unit->kind = LW_WINDOW;
    }
    return OT_OK;
}

/* ---- Concat ---- */

typedef struct concat_setup {
    uint32_t axis;
    bool blocked;
} concat_setup;

/* Of arrays of real numbers whose blocks of channels stay whole. *axis: along which. */
static bool concat_fits(const lw_pass *l, const lw_unit *u, uint32_t *axis)
{
    if (u->kind != LW_NODE || u->nodes[0]->op != OT_OP_Concat || u->n_in < 2 ||
        !lw_is_real(l, u->out[0]))
        return false;
    const ot_nd *y = &l->v[u->out[0]].slot->fore;
    int64_t along = ot_attr_int(u->nodes[0], "axis", 1), sum = 0;
    if (along < 0) along += y->rank;
    if (y->rank < 3 || y->rank > 5 || along < 0 || along >= y->rank) return false;
    *axis = (uint32_t)along;
    for (uint32_t k = 0; k < u->n_in; k++) {
        if (u->in[k] == OT_NONE || !lw_is_real(l, u->in[k]) ||
            l->v[u->in[k]].slot->fore.rank != y->rank)
            return false;
        const ot_nd *x = &l->v[u->in[k]].slot->fore;
        for (uint32_t a = 0; a < y->rank; a++)
            if (a != *axis && x->dims[a] != y->dims[a]) return false;
        if (*axis == 1 && sum % l->block != 0) return false;
        sum += x->dims[*axis];
    }
    return sum == y->dims[*axis];
}

ot_status lw_fuse_move(lw_pass *l)
{
    for (uint32_t u = 0; u < l->n_units; u++) {
        uint32_t axis;
        if (!concat_fits(l, &l->units[u], &axis)) continue;
        concat_setup *p = OT_NEW(l->a, concat_setup);
        if (!p) return ot_fail_nomem(l->p->s->d);
        p->axis = axis;
        l->units[u].kind = LW_CONCAT;
        l->units[u].plan = p;
    }
    return OT_OK;
}

/* Each part into its channels, or rows, of the result. */
static ot_status run_concat(ot_call *c)
{
    const concat_setup *p = c->plan;
    OT_TRY(ot_call_place(c, 0));
    ot_nd part = *c->out[0];
    for (uint32_t k = 0; k < c->n_in; k++) {
        const ot_nd *x = c->in[k];
        part.dims[p->axis] = x->dims[p->axis];
        ot_box_relayout(&part, x, c->threads);
        int64_t steps = p->blocked && p->axis == 1 ? ot_ceil_div(x->dims[1], part.chan_block)
                                                   : x->dims[p->axis];
        part.data = (char *)part.data +
                    steps * part.strides[p->axis] * (int64_t)ot_dtype_bytes(part.dtype);
    }
    return OT_OK;
}

ot_status lw_write_concat(lw_pass *l, lw_unit *u)
{
    concat_setup *p = u->plan;
    double gain = 0;
    ot_id *in = OT_NEW_N(l->scratch, ot_id, u->n_in), out;
    if (!in) return ot_fail_nomem(l->p->s->d);
    for (uint32_t k = 0; k < u->n_in; k++) {
        const ot_nd *x = &l->v[u->in[k]].slot->fore;
        gain += lw_has(l, u->in[k], LW_ANY_BLOCK) ? (double)x->dims[p->axis]
                                                  : -(double)x->dims[p->axis];
    }
    int64_t channels = l->v[u->out[0]].slot->fore.dims[1],
            padded = ot_ceil_div(channels, l->block) * l->block;
    /* mostly holes: plain is less to hold, and to read */
    p->blocked = gain > 0 && (p->axis == 1 || 2 * padded <= 3 * channels);
    lw_layout layout = p->blocked ? LW_BLOCK : LW_PLAIN;
    for (uint32_t k = 0; k < u->n_in; k++)
        OT_TRY(lw_need(l, u->in[k], LW_ANY_PLAIN | LW_ANY_BLOCK, layout, &in[k]));
    OT_TRY(lw_make(l, u->out[0], layout, &out));
    return lw_push(l, u->nodes[0], run_concat, p, (ot_id_list){in, u->n_in}, (ot_id_list){&out, 1},
                   NULL);
}
