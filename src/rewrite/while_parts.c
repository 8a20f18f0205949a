/* Reductions in parts: how a While writes what no tile has the whole of.
 *
 *     y0 = Alloc()                    [tiles of dim 0, ..., shape of y]: a slot per tile
 *     y1 = While(y0) { ... GlobalMaxPool(piece of the map) --Reshape--> [1, shape of y] --Deslice at the tile's slot--> }
 *     y  = ReduceMax(y1)              over the slots, in the order of the tiles
 *
 * Every tile has a slot of its own, so tiles may run in any order and at once, and the result does not depend on it: the one
 * reduction behind the loop always adds in the same order. A dimension that cuts an axis which the reduction hands on (the batch)
 * has no slots; there, y is written piece by piece as any output.
 *
 * A mean over pieces of unequal length is the sum of the pieces' means, each times its number of elements, by the number of all.
 */
#include "rewrite_internal.h"

#define SUM_HAS_AXES_INPUT    13 /* opset from which ReduceSum takes its axes as an operand */
#define REDUCE_HAS_AXES_INPUT 18 /* the other reductions */

uint32_t rw_part_dims(const rw_region *w, uint32_t v, uint32_t dims[OT_DIMS_MAX])
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < w->r->n_dims; d++)
        if (ot_is_part(w->r, v, d)) dims[n++] = d;
    return n;
}

ot_value rw_buffer_type(const rw_region *w, uint32_t v, int64_t dims[OT_RANK_MAX])
{
    ot_value x = w->g->values[w->r->values[v].value];
    uint32_t by[OT_DIMS_MAX], n = rw_part_dims(w, v, by);
    for (uint32_t k = 0; k < n; k++) dims[k] = w->r->dims[by[k]].n_tiles;
    if (x.rank > 0) memcpy(dims + n, x.dims, (size_t)x.rank * sizeof *dims);
    x.rank += (int32_t)n;
    x.dims = dims;
    return x;
}

/* The node that reduces to v. */
static uint32_t reducer(const rw_region *w, uint32_t v) { return w->r->values[v].node; }

static ot_sum_kind kind_of(const rw_region *w, uint32_t v)
{
    bool reduced[OT_RANK_MAX];
    return ot_access_sum(w->g, &w->g->nodes[w->r->nodes[reducer(w, v)].node], reduced);
}

/* Every tile reduces as many elements as any other. */
static bool is_even(const rw_region *w, uint32_t v)
{
    const uint32_t i = reducer(w, v);
    for (uint32_t d = 0; d < w->r->n_dims; d++) {
        if (!ot_is_part(w->r, v, d)) continue;
        const ot_tile_windows *t = w->tiles->dims[d].exact;
        for (uint32_t k = 1; k < w->r->dims[d].n_tiles; k++)
            if (ot_win_len(t[k].ops[i].in[0]) != ot_win_len(t[0].ops[i].in[0])) return false;
    }
    return true;
}

/* A count of elements as a scalar constant of type `type`. */
static ot_status scalar(rw_region *w, rw_target *t, ot_dtype type, double value, ot_id *out)
{
    ot_arena *a = w->g->model->arena; /* constants live as long as the model */
    const float narrow = (float)value;
    ot_tensor *x = OT_NEW(a, ot_tensor);
    if (!x) return rw_nomem(w);
    *x = (ot_tensor){.dtype = type, .bytes = type == OT_F64 ? sizeof value : sizeof narrow};
    x->data = ot_memdup(a, type == OT_F64 ? (const void *)&value : (const void *)&narrow, x->bytes);
    return x->data ? rw_const(w, t, "elements", x, out) : rw_nomem(w);
}

/* Elements that make one mean: of the tile with windows win, or of all tiles where win is NULL. */
static double elements(const rw_region *w, const ot_tile_windows *const *win, uint32_t v)
{
    const uint32_t i = reducer(w, v);
    double n = 1;
    for (uint32_t d = 0; d < w->r->n_dims; d++) {
        if (!ot_is_part(w->r, v, d)) continue;
        const ot_rnode *rn = &w->r->nodes[i];
        const ot_value *x = &w->g->values[w->g->nodes[rn->node].in[0]];
        n *= (double)(win ? ot_win_len(win[d]->ops[i].in[0]) : x->dims[rn->in_axis[d][0]]);
    }
    return n;
}

/* x times or divided by (op Mul or Div) a count; *out as in rw_op. */
static ot_status by_count(rw_region *w, rw_target *t, const char *op, const char *role, const char *name, ot_id x, double count,
                          ot_id *out)
{
    const ot_value v = t->g->values[x];
    ot_id in[2] = {x, OT_NONE};
    OT_TRY(scalar(w, t, v.dtype, count, &in[1]));
    return rw_op(w, t, op, role, name, in, 2, NULL, 0, v.dtype, v.rank, v.dims, out);
}

ot_status rw_part(rw_region *w, rw_target *t, const ot_tile_windows *const *win, uint32_t v, ot_id *part)
{
    uint32_t by[OT_DIMS_MAX], n = rw_part_dims(w, v, by);
    int64_t dims[OT_RANK_MAX];
    if (n == 0) return OT_OK;
    if (kind_of(w, v) == OT_SUM_MEAN && !is_even(w, v)) {
        ot_id sum = OT_NONE;
        OT_TRY(by_count(w, t, "Mul", t->label, "sum", *part, elements(w, win, v), &sum));
        *part = sum;
    }
    const ot_value x = t->g->values[*part];
    for (uint32_t k = 0; k < n; k++) dims[k] = 1;
    if (x.rank > 0) memcpy(dims + n, x.dims, (size_t)x.rank * sizeof *dims);
    ot_id slot = OT_NONE;
    OT_TRY(rw_reshape(w, t, t->label, "part", *part, x.rank + (int32_t)n, dims, &slot));
    *part = slot;
    return OT_OK;
}

ot_status rw_combine(rw_region *w, uint32_t v, ot_id parts)
{
    static const char *const ops[] = {
        [OT_SUM_ADD] = "ReduceSum", [OT_SUM_MEAN] = "ReduceMean", [OT_SUM_MAX] = "ReduceMax", [OT_SUM_MIN] = "ReduceMin"};
    const int64_t axes[OT_DIMS_MAX] = {0, 1, 2};
    const ot_value y = w->g->values[w->r->values[v].value];
    const ot_sum_kind kind = kind_of(w, v);
    uint32_t by[OT_DIMS_MAX], n = rw_part_dims(w, v, by);
    const bool weighted = kind == OT_SUM_MEAN && !is_even(w, v);
    const char *op = weighted ? "ReduceSum" : ops[kind];
    const int64_t since = strcmp(op, "ReduceSum") == 0 ? SUM_HAS_AXES_INPUT : REDUCE_HAS_AXES_INPUT;
    ot_id in[2] = {parts, OT_NONE}, out = w->r->values[v].value, sum = weighted ? OT_NONE : out;
    ot_attr attrs[2] = {ot_mk_int("keepdims", 0)};
    uint32_t n_in = 1, n_attrs = 1;
    if (w->g->model->opset >= since) {
        OT_TRY(rw_const_i64(w, &w->top, "slots", axes, n, false, &in[n_in++]));
    } else {
        attrs[n_attrs] = ot_mk_ints(w->g->model->arena, "axes", axes, n);
        if (attrs[n_attrs++].kind != OT_ATTR_INTS) return rw_nomem(w);
    }
    OT_TRY(rw_op(w, &w->top, op, "combine", y.name, in, n_in, attrs, n_attrs, y.dtype, y.rank, y.dims, &sum));
    return weighted ? by_count(w, &w->top, "Div", "combine", y.name, sum, elements(w, NULL, v), &out) : OT_OK;
}
