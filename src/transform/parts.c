/* Reductions in parts: how tiles write what none of them has the whole of, and how it is put
 * together.
 *
 *     standard ONNX: the body hands its part out, parts are stacked, loop after loop, [tiles, shape
 *     of y], and combined behind the loops
 *
 * In the engine's form:
 *
 *     y0 = Alloc()                    [tiles of dim 0, ..., shape of y]: a slot per tile
 *     y1 = While(y0) { ... GlobalMaxPool(piece of the map) --Reshape--> [1, shape of y] --Deslice
 *     at the tile's slot--> }
 *     y  = ReduceMax(y1)              over the slots, in the order of the tiles
 *
 * Every tile has a slot of its own, so tiles may run in any order and at once, and the result
 * does not depend on it: the one reduction behind the loop always adds in the same order. A
 * dimension that cuts an axis which the reduction hands on (the batch) has no slots; there, y is
 * written piece by piece as any output.
 *
 * A mean over pieces of unequal length is the sum of the pieces' means, each times its number of
 * elements, by the number of all. Mean and variance of n_t elements in each of the tiles, and of
 * all N = sum n_t (Chan, Golub, LeVeque), in float64:
 *
 *     mean = sum n_t / N * mean_t          variance = sum n_t / N * (variance_t + (mean_t -
 *                                          mean)^2)
 */
#include "transform_internal.h"

#define SUM_HAS_AXES_INPUT    13 /* opset from which ReduceSum takes its axes as an operand */
#define REDUCE_HAS_AXES_INPUT 18 /* the other reductions */

uint32_t rw_part_dims(const rw_region *w, uint32_t v, uint32_t dims[OT_DIMS_MAX])
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < w->r->n_dims; d++)
        if (ot_is_part(w->r, v, d)) dims[n++] = d;
    return n;
}

bool rw_is_part(const rw_region *w, uint32_t v)
{
    uint32_t by[OT_DIMS_MAX];
    return rw_part_dims(w, v, by) > 0;
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
    const ot_graph *g = w->tiles->g; /* whose extents are known */
    return ot_access_sum(g, &g->nodes[w->r->nodes[reducer(w, v)].node], reduced);
}

bool rw_part_has_weight(const rw_region *w, uint32_t v)
{
    return kind_of(w, v) == OT_SUM_MEAN || kind_of(w, v) == OT_SUM_MOMENTS;
}

/* Every tile reduces as many elements as any other. */
static bool is_even(const rw_region *w, uint32_t v)
{
    const uint32_t i = reducer(w, v);
    for (uint32_t d = 0; d < w->r->n_dims; d++) {
        if (!ot_is_part(w->r, v, d)) continue;
        const ot_tile_windows *t = w->tiles->dims[d].tiles;
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

ot_status rw_part(rw_region *w, rw_target *t, const ot_tile_windows *const *win, uint32_t v,
                  uint32_t n_slots, ot_id *part)
{
    int64_t dims[OT_RANK_MAX];
    if (!rw_is_part(w, v)) return OT_OK;
    if (kind_of(w, v) == OT_SUM_MEAN && !is_even(w, v)) {
        const ot_value mean = t->g->values[*part];
        ot_id in[2] = {*part, OT_NONE}, sum = OT_NONE;
        OT_TRY(scalar(w, t, mean.dtype, elements(w, win, v), &in[1]));
        OT_TRY(rw_op(w, t, t->label, &(ot_node_def){.op = "Mul", .name = "sum", .in = {in, 2}},
                     ot_type_of(&mean), &sum));
        *part = sum;
    }
    if (n_slots == 0) return OT_OK;
    const ot_value x = t->g->values[*part];
    for (uint32_t k = 0; k < n_slots; k++) dims[k] = 1;
    if (x.rank > 0) memcpy(dims + n_slots, x.dims, (size_t)x.rank * sizeof *dims);
    ot_id slot = OT_NONE;
    OT_TRY(rw_reshape(w, t, t->label, "part", *part, x.rank + (int32_t)n_slots, dims, &slot));
    *part = slot;
    return OT_OK;
}

/* ---- behind the tiles ---- */

/* The parts of one value. */
typedef struct combination {
    rw_region *w;
    const char *name; /* of the value */
    uint32_t n_slots; /* leading axes of the parts */
    /* share of each part in all elements, to be multiplied with; OT_NONE: all are equal */
    ot_id weights;
} combination;

/* op of x over the slots; *out as in rw_op. */
static ot_status over_slots(const combination *c, const char *op, ot_id x, bool keep, ot_id *out)
{
    rw_region *w = c->w;
    const ot_value v = w->g->values[x];
    const int64_t axes[OT_DIMS_MAX] = {0, 1, 2},
                  since = strcmp(op, "ReduceSum") == 0 ? SUM_HAS_AXES_INPUT : REDUCE_HAS_AXES_INPUT;
    int64_t dims[OT_RANK_MAX];
    ot_id in[2] = {x, OT_NONE};
    ot_attr attrs[2] = {ot_mk_int("keepdims", keep)};
    uint32_t n_in = 1, n_attrs = 1, at = keep ? c->n_slots : 0;
    for (uint32_t k = 0; k < at; k++) dims[k] = 1;
    memcpy(dims + at, v.dims + c->n_slots, ((size_t)v.rank - c->n_slots) * sizeof *dims);
    if (w->g->model->opset >= since) {
        OT_TRY(rw_const_i64(w, &w->top, "slots", axes, c->n_slots, false, &in[n_in++]));
    } else {
        attrs[n_attrs] = ot_mk_ints(w->g->model->arena, "axes", axes, c->n_slots);
        if (attrs[n_attrs++].kind != OT_ATTR_INTS) return rw_nomem(w);
    }
    return rw_op(
        w, &w->top, "combine",
        &(ot_node_def){.op = op, .name = c->name, .in = {in, n_in}, .attrs = {attrs, n_attrs}},
        (ot_tensor_type){v.dtype, (int32_t)(at + (uint32_t)v.rank - c->n_slots), dims}, out);
}

/* An operator of two operands, of the shape of the first. */
static ot_status binary(const combination *c, const char *op, ot_id a, ot_id b, ot_id *out)
{
    const ot_value v = c->w->g->values[a];
    const ot_id in[2] = {a, b};
    *out = OT_NONE;
    return rw_op(c->w, &c->w->top, "combine",
                 &(ot_node_def){.op = op, .name = c->name, .in = {in, 2}}, ot_type_of(&v), out);
}

/* The mean of x over the slots, each by its share. */
static ot_status share_out(const combination *c, ot_id x, bool keep, ot_id *out)
{
    *out = OT_NONE;
    if (c->weights == OT_NONE) return over_slots(c, "ReduceMean", x, keep, out);
    ot_id part;
    OT_TRY(binary(c, "Mul", x, c->weights, &part));
    return over_slots(c, "ReduceSum", part, keep, out);
}

/* Element k of x's last axis. */
static ot_status pick(const combination *c, ot_id x, int64_t k, ot_id *out)
{
    rw_region *w = c->w;
    const ot_value v = w->g->values[x];
    int64_t dims[OT_RANK_MAX];
    ot_id in[2] = {x, OT_NONE};
    ot_attr axis = ot_mk_int("axis", v.rank - 1);
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    dims[v.rank - 1] = 1;
    OT_TRY(rw_const_i64(w, &w->top, k ? "second" : "first", &k, 1, false, &in[1]));
    *out = OT_NONE;
    return rw_op(
        w, &w->top, "combine",
        &(ot_node_def){.op = "Gather", .name = c->name, .in = {in, 2}, .attrs = {&axis, 1}},
        (ot_tensor_type){v.dtype, v.rank, dims}, out);
}

/* Shares [n_tiles] as a constant that broadcasts with parts of that rank. */
static ot_status weights_of(combination *c, const double *n, const int64_t *slots, int32_t rank)
{
    ot_arena *a = c->w->g->model->arena;
    ot_tensor *x = OT_NEW(a, ot_tensor);
    int64_t *dims = OT_NEW_N(a, int64_t, rank), tiles = 1;
    double sum = 0;
    if (!x || !dims) return rw_nomem(c->w);
    for (int32_t k = 0; k < rank; k++) dims[k] = (uint32_t)k < c->n_slots ? slots[k] : 1;
    for (uint32_t k = 0; k < c->n_slots; k++) tiles *= slots[k];
    double *share = OT_NEW_N(a, double, (size_t)tiles);
    if (!share) return rw_nomem(c->w);
    for (int64_t k = 0; k < tiles; k++) sum += n[k];
    for (int64_t k = 0; k < tiles; k++) share[k] = n[k] / sum;
    *x = (ot_tensor){.dtype = OT_F64,
                     .rank = (uint32_t)rank,
                     .dims = dims,
                     .data = share,
                     .bytes = (size_t)tiles * sizeof *share};
    return rw_const(c->w, &c->w->top, "shares", x, &c->weights);
}

/* x without its slots, of which there is one element: as dims, which may be free (then the opset
 * has sequences). */
static ot_status without_slots(const combination *c, ot_id x, int32_t rank, const int64_t *dims,
                               ot_id *out)
{
    rw_region *w = c->w;
    const ot_value v = w->g->values[x];
    const int64_t axes[OT_DIMS_MAX] = {0, 1, 2};
    ot_id in[2] = {x, OT_NONE};
    *out = OT_NONE;
    if (ot_value_is_static(&v))
        return rw_reshape(w, &w->top, "combine", c->name, x, rank, dims, out);
    OT_TRY(rw_const_i64(w, &w->top, "slots", axes, c->n_slots, false, &in[1]));
    return rw_op(w, &w->top, "combine",
                 &(ot_node_def){.op = "Squeeze", .name = c->name, .in = {in, 2}},
                 (ot_tensor_type){v.dtype, rank, dims}, out);
}

/* y [..., 2] from parts [slots..., ..., 2]: means, then variances. */
static ot_status combine_moments(const combination *c, ot_id parts, ot_id y)
{
    rw_region *w = c->w;
    const ot_value v = w->g->values[y];
    int64_t dims[OT_RANK_MAX];
    ot_id means, variances, mean, away, square, spread, in[2] = {OT_NONE, OT_NONE};
    OT_TRY(pick(c, parts, 0, &means));
    OT_TRY(pick(c, parts, 1, &variances));
    OT_TRY(share_out(c, means, true, &mean));
    OT_TRY(binary(c, "Sub", means, mean, &away));
    OT_TRY(binary(c, "Mul", away, away, &square));
    OT_TRY(binary(c, "Add", variances, square, &spread));
    OT_TRY(share_out(c, spread, false, &in[1]));
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    dims[v.rank - 1] = 1;
    OT_TRY(without_slots(c, mean, v.rank, dims, &in[0]));
    return rw_concat(w, &w->top, v.name, in, 2, (uint32_t)v.rank - 1, &y);
}

/* What reduces parts that are all alike as the node reduces its input. */
static const char *const OF_PARTS[OT_SUM_MOMENTS] = {[OT_SUM_ADD] = "ReduceSum",
                                                     [OT_SUM_MEAN] = "ReduceMean",
                                                     [OT_SUM_MAX] = "ReduceMax",
                                                     [OT_SUM_MIN] = "ReduceMin",
                                                     [OT_SUM_L2] = "ReduceL2"};

ot_status rw_combine(rw_region *w, uint32_t v, ot_id parts, uint32_t n_slots, const double *n)
{
    const ot_value y = w->g->values[w->r->values[v].value], x = w->g->values[parts];
    const ot_sum_kind kind = kind_of(w, v);
    combination c = {w, y.name, n_slots, OT_NONE};
    const bool even = is_even(w, v);
    ot_id out = w->r->values[v].value, sum = OT_NONE;
    if (kind == OT_SUM_MOMENTS) {
        if (!even) OT_TRY(weights_of(&c, n, x.dims, x.rank));
        return combine_moments(&c, parts, out);
    }
    if (kind != OT_SUM_MEAN || even) return over_slots(&c, OF_PARTS[kind], parts, false, &out);
    OT_TRY(over_slots(&c, "ReduceSum", parts, false, &sum));
    const ot_value all = w->g->values[sum];
    ot_id in[2] = {sum, OT_NONE};
    OT_TRY(scalar(w, &w->top, all.dtype, elements(w, NULL, v), &in[1]));
    return rw_op(w, &w->top, "combine", &(ot_node_def){.op = "Div", .name = y.name, .in = {in, 2}},
                 ot_type_of(&all), &out);
}

ot_status rw_combine_by(rw_region *w, uint32_t v, ot_id parts, ot_id shares)
{
    const ot_sum_kind kind = kind_of(w, v);
    const combination c = {w, w->g->values[w->r->values[v].value].name, 1, shares};
    ot_id out = w->r->values[v].value, part;
    if (kind == OT_SUM_MOMENTS) return combine_moments(&c, parts, out);
    if (kind != OT_SUM_MEAN) return over_slots(&c, OF_PARTS[kind], parts, false, &out);
    OT_TRY(binary(&c, "Mul", parts, shares, &part));
    return over_slots(&c, "ReduceSum", part, false, &out);
}

double rw_part_elements(const rw_region *w, const ot_tile_windows *const *win, uint32_t v)
{
    return elements(w, win, v);
}

/* Elements of the parts of v from tile i of block b, which is a loop or written out. */
static double block_elements(const rw_region *w, const rw_block *b, uint32_t i, uint32_t v)
{
    const ot_tile_windows *win[OT_DIMS_MAX];
    uint32_t k[OT_DIMS_MAX];
    rw_tile_at(b, i, k);
    for (uint32_t d = 0; d < w->r->n_dims; d++) win[d] = &w->tiles->dims[d].tiles[k[d]];
    return elements(w, win, v);
}

ot_status rw_combine_blocks(rw_region *w, uint32_t v, const rw_block *blocks, uint32_t n)
{
    uint32_t tiles = 0, stacks = 0;
    for (uint32_t k = 0; k < n; k++) tiles += blocks[k].n_tiles;
    double *count = OT_NEW_N(w->arena, double, tiles);
    ot_id *stack = OT_NEW_N(w->arena, ot_id, n), all = OT_NONE;
    if (!count || !stack) return rw_nomem(w);
    tiles = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (blocks[k].out[v] == OT_NONE) continue;
        stack[stacks++] = blocks[k].out[v];
        for (uint32_t i = 0; i < blocks[k].n_tiles; i++)
            count[tiles++] = block_elements(w, &blocks[k], i, v);
    }
    if (stacks == 1)
        all = stack[0];
    else
        OT_TRY(rw_concat(w, &w->top, w->g->values[w->r->values[v].value].name, stack, stacks, 0,
                         &all));
    return rw_combine(w, v, all, 1, count);
}
