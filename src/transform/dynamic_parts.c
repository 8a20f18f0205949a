/* Reductions in parts where extents are free: how much of all a part stands for is known when
 * the model runs.
 *
 *     bodies  x --ReduceMean--> m_t --Unsqueeze--> [1, shape of y] --SequenceInsert--> parts
 *             rows of x that the tile owns, [1] --SequenceInsert--> rows
 *                                               constants; of the last tile computed
 *     behind  rows --ConcatFromSequence--> [tiles] --Div by their sum--> shares
 *             parts --ConcatFromSequence--> [tiles, shape of y] --Mul shares, ReduceSum--> y
 *
 * What is beside the cut axis is as much in every tile, so rows are all that counts. A region
 * that runs untiled hands out one part, which is y: its share is 1, and it comes out as it went
 * in. Sums, largest and smallest need no weights. The formulas are those of parts.c.
 */
#include "transform_internal.h"

/* A constant of float64, [1]. */
static ot_status number(rw_region *w, rw_target *t, double value, ot_id *out)
{
    ot_arena *a = w->g->model->arena; /* constants live as long as the model */
    ot_tensor *x = OT_NEW(a, ot_tensor);
    int64_t *dims = OT_NEW_N(a, int64_t, 1);
    double *data = OT_NEW_N(a, double, 1);
    if (!x || !dims || !data) return rw_nomem(w);
    *dims = 1;
    *data = value;
    *x = (ot_tensor){.dtype = OT_F64, .rank = 1, .dims = dims, .data = data, .bytes = sizeof *data};
    return rw_const(w, t, "rows", x, out);
}

/* Region value v is reduced by this node. */
static const ot_rnode *reducer(const rw_region *w, uint32_t v)
{
    return &w->r->nodes[w->r->values[v].node];
}

ot_status rw_free_part(rw_region *w, rw_target *t, uint32_t v, ot_id x, ot_id *piece)
{
    const ot_value y = t->g->values[x];
    const int64_t front = 0;
    int64_t dims[OT_RANK_MAX] = {1};
    ot_id in[2] = {x, OT_NONE};
    if (y.rank > 0) memcpy(dims + 1, y.dims, (size_t)y.rank * sizeof *dims);
    OT_TRY(rw_const_i64(w, t, "front", &front, 1, false, &in[1]));
    *piece = OT_NONE;
    return rw_op(w, t, "part",
                 &(ot_node_def){.op = "Unsqueeze",
                                .name = w->g->values[w->r->values[v].value].name,
                                .in = {in, 2}},
                 (ot_tensor_type){y.dtype, y.rank + 1, dims}, piece);
}

ot_status rw_free_part_all(rw_region *w, rw_target *t, ot_id *rows)
{
    return number(w, t, 1, rows);
}

ot_status rw_free_part_rows(rw_chain *c, const ot_tile_windows *win, uint32_t v, ot_id *rows)
{
    rw_region *w = c->w;
    const ot_rnode *rn = reducer(w, v);
    const ot_win own = win->ops[w->r->values[v].node].in[0];
    const int64_t axis = rn->in_axis[0][0], before = own.lo - win->made[rn->in[0]].lo, one[1] = {1};
    const ot_attr first = ot_mk_int("axis", 0), to = ot_mk_int("to", OT_F64);
    const ot_id x = c->val[rn->in[0]];
    ot_id in[2] = {OT_NONE, OT_NONE}, extent = OT_NONE;
    if (!c->to_end) return number(w, c->t, (double)ot_win_len(own), rows);
    const ot_value of = c->t->g->values[x];
    const int64_t rank = of.rank;
    OT_TRY(rw_op(w, c->t, c->t->label,
                 &(ot_node_def){.op = "Shape", .name = of.name, .in = {&x, 1}},
                 (ot_tensor_type){OT_I64, 1, &rank}, &in[0]));
    OT_TRY(rw_const_i64(w, c->t, "axis", &axis, 1, false, &in[1]));
    OT_TRY(
        rw_op(w, c->t, c->t->label,
              &(ot_node_def){.op = "Gather", .name = of.name, .in = {in, 2}, .attrs = {&first, 1}},
              (ot_tensor_type){OT_I64, 1, one}, &extent));
    if (before > 0) {
        in[0] = extent;
        extent = OT_NONE;
        OT_TRY(rw_const_i64(w, c->t, "before", &before, 1, false, &in[1]));
        OT_TRY(rw_op(w, c->t, c->t->label,
                     &(ot_node_def){.op = "Sub", .name = of.name, .in = {in, 2}},
                     (ot_tensor_type){OT_I64, 1, one}, &extent));
    }
    *rows = OT_NONE;
    return rw_op(
        w, c->t, c->t->label,
        &(ot_node_def){.op = "Cast", .name = of.name, .in = {&extent, 1}, .attrs = {&to, 1}},
        (ot_tensor_type){OT_F64, 1, one}, rows);
}

/* All that a sequence holds, along a first axis of as many entries as there were tiles (an [1],
 * computed), of that type. */
static ot_status joined(rw_region *w, const char *name, ot_id sequence, ot_id tiles,
                        ot_tensor_type type, ot_id *out)
{
    const ot_attr axis = ot_mk_int("axis", 0);
    const int64_t n = type.rank;
    int64_t rest[OT_RANK_MAX];
    ot_id in[2] = {tiles, OT_NONE}, loose = OT_NONE, shape = OT_NONE;
    OT_TRY(rw_op(
        w, &w->top, "combine",
        &(ot_node_def){
            .op = "ConcatFromSequence", .name = name, .in = {&sequence, 1}, .attrs = {&axis, 1}},
        type, &loose));
    if (type.rank > 1) {
        /* 0: as it is */
        for (int32_t k = 1; k < type.rank; k++) rest[k - 1] = type.dims[k] < 0 ? 0 : type.dims[k];
        OT_TRY(rw_const_i64(w, &w->top, "rest", rest, (size_t)type.rank - 1, false, &in[1]));
        OT_TRY(
            rw_op(w, &w->top, "combine",
                  &(ot_node_def){.op = "Concat", .name = name, .in = {in, 2}, .attrs = {&axis, 1}},
                  (ot_tensor_type){OT_I64, 1, &n}, &shape));
        in[1] = shape;
    } else {
        in[1] = tiles;
    }
    in[0] = loose;
    *out = OT_NONE;
    /* States the shape, which nobody can infer behind a sequence. */
    return rw_op(w, &w->top, "combine",
                 &(ot_node_def){.op = "Reshape", .name = name, .in = {in, 2}}, type, out);
}

/* What each tile has of all rows, as something that parts of that type and rank are multiplied
 * with. */
static ot_status shares_of(rw_region *w, const char *name, ot_id rows, ot_id tiles, ot_dtype type,
                           int32_t rank, ot_id *out)
{
    const ot_attr keep = ot_mk_int("keepdims", 1), to = ot_mk_int("to", type);
    const int64_t any[1] = {OT_DIM_UNKNOWN}, one[1] = {1}, front = 0;
    int64_t dims[OT_RANK_MAX], shape[OT_RANK_MAX];
    ot_id in[2], sum = OT_NONE, share = OT_NONE;
    OT_TRY(joined(w, name, rows, tiles, (ot_tensor_type){OT_F64, 1, any}, &in[0]));
    OT_TRY(rw_const_i64(w, &w->top, "front", &front, 1, false, &in[1]));
    OT_TRY(
        rw_op(w, &w->top, "combine",
              &(ot_node_def){.op = "ReduceSum", .name = name, .in = {in, 2}, .attrs = {&keep, 1}},
              (ot_tensor_type){OT_F64, 1, one}, &sum));
    in[1] = sum;
    OT_TRY(rw_op(w, &w->top, "combine", &(ot_node_def){.op = "Div", .name = name, .in = {in, 2}},
                 (ot_tensor_type){OT_F64, 1, any}, &share));
    in[0] = share;
    if (type != OT_F64) {
        in[0] = OT_NONE;
        OT_TRY(
            rw_op(w, &w->top, "combine",
                  &(ot_node_def){.op = "Cast", .name = name, .in = {&share, 1}, .attrs = {&to, 1}},
                  (ot_tensor_type){type, 1, any}, &in[0]));
    }
    for (int32_t k = 0; k < rank; k++) {
        shape[k] = k == 0 ? -1 : 1;
        dims[k] = k == 0 ? OT_DIM_UNKNOWN : 1;
    }
    OT_TRY(rw_const_i64(w, &w->top, "shares", shape, (size_t)rank, false, &in[1]));
    *out = OT_NONE;
    return rw_op(w, &w->top, "combine",
                 &(ot_node_def){.op = "Reshape", .name = name, .in = {in, 2}},
                 (ot_tensor_type){type, rank, dims}, out);
}

ot_status rw_free_combine(rw_region *w, uint32_t v, ot_id parts, ot_id rows, ot_id tiles)
{
    const ot_value y = w->g->values[w->r->values[v].value];
    int64_t dims[OT_RANK_MAX] = {OT_DIM_UNKNOWN};
    ot_id all, shares = OT_NONE;
    if (y.rank > 0) memcpy(dims + 1, y.dims, (size_t)y.rank * sizeof *dims);
    OT_TRY(joined(w, y.name, parts, tiles, (ot_tensor_type){y.dtype, y.rank + 1, dims}, &all));
    if (rows != OT_NONE) OT_TRY(shares_of(w, y.name, rows, tiles, y.dtype, y.rank + 1, &shares));
    return rw_combine_by(w, v, all, shares);
}
