/* Mean and variance of a tile in standard ONNX: two passes, which lose nothing when the mean is
 * large against the deviation.
 *
 *     x --ReduceMean--> m              x - m --square--ReduceMean--> v     [m, v] --Cast--> float64
 *
 * Means and squares of one tile are of the type of x; half precision is widened first. What
 * tiles hand out is put together in float64.
 *
 * Runtimes add up in float32, one number after another: of 65,536 squares the last bits of
 * thousands are lost, the same way in all, which was the largest error of an image decoder
 * (1.2e-6 of its range, and 0.6e-6 now). So many are taken line by line, then the lines; squares
 * are added up as they are made, and never there as a tensor:
 *
 *     x [N, C, H, W] --ReduceMean over W--> [N, C, H, 1] --ReduceMean over H--> m [N, C, 1, 1]
 *     x - m --ReduceSumSquare over W--> [N, C, H, 1] --ReduceMean over H--> [N, C, 1, 1] --Div W-->
 *     v
 */
#include "decompose_internal.h"

/* A tensor's Moments over `axes`, being written. */
typedef struct moments {
    decomp_writer w;
    ot_value x;
    ot_dtype type; /* of all that is computed */
    const int64_t *axes;
    size_t n_axes;
    int64_t small[OT_RANK_MAX]; /* extents of the results */
} moments;

/* Of y, extents as x: reduced by op along the last axis, then averaged over the others. *out:
 * OT_NONE, or the output to use. */
static ot_status by_lines(moments *m, const char *op, const char *role, const char *of_lines,
                          ot_id y, ot_id *out)
{
    const size_t others = m->n_axes - 1;
    if (others == 0) return decomp_reduce(&m->w, op, role, y, m->axes, 1, out);
    OT_TRY(decomp_reduce(&m->w, op, of_lines, y, m->axes + others, 1, &y));
    return decomp_reduce(&m->w, "ReduceMean", role, y, m->axes, others, out);
}

/* Mean and variance of many numbers. */
static ot_status of_many(moments *m, ot_id x, ot_id *mean, ot_id *variance)
{
    ot_id away = OT_NONE, sum = OT_NONE, length;
    const double last = (double)m->x.dims[m->axes[m->n_axes - 1]];
    const int64_t one = 1;
    OT_TRY(by_lines(m, "ReduceMean", "mean", "mean_lines", x, mean));
    OT_TRY(decomp_op(&m->w,
                     &(ot_node_def){.op = "Sub", .name = "away", .in = {(ot_id[]){x, *mean}, 2}},
                     (ot_tensor_type){m->type, m->x.rank, m->x.dims}, &away));
    OT_TRY(by_lines(m, "ReduceSumSquare", "squares", "squares_lines", away, &sum));
    OT_TRY(decomp_doubles(&m->w, "length", &last, 1, &one, &length));
    if (m->type != OT_F64) OT_TRY(decomp_cast(&m->w, "length_narrow", length, m->type, &length));
    return decomp_op(
        &m->w, &(ot_node_def){.op = "Div", .name = "variance", .in = {(ot_id[]){sum, length}, 2}},
        (ot_tensor_type){m->type, m->x.rank, m->small}, variance);
}

static ot_status of_few(moments *m, ot_id x, ot_id *mean, ot_id *variance)
{
    ot_id away = OT_NONE, square = OT_NONE;
    OT_TRY(decomp_reduce(&m->w, "ReduceMean", "mean", x, m->axes, m->n_axes, mean));
    OT_TRY(decomp_op(&m->w,
                     &(ot_node_def){.op = "Sub", .name = "away", .in = {(ot_id[]){x, *mean}, 2}},
                     (ot_tensor_type){m->type, m->x.rank, m->x.dims}, &away));
    OT_TRY(decomp_op(
        &m->w, &(ot_node_def){.op = "Mul", .name = "square", .in = {(ot_id[]){away, away}, 2}},
        (ot_tensor_type){m->type, m->x.rank, m->x.dims}, &square));
    return decomp_reduce(&m->w, "ReduceMean", "variance", square, m->axes, m->n_axes, variance);
}

ot_status ot_moments_write(ot_graph *g, const char *base, ot_id x, const int64_t *axes, size_t n,
                           ot_id *out)
{
    const ot_value v = g->values[x];
    moments m = {.w = {.g = g, .base = base},
                 .x = v,
                 .type = v.dtype == OT_F64 ? OT_F64 : OT_F32,
                 .axes = axes,
                 .n_axes = n};
    int64_t pair[OT_RANK_MAX];
    ot_id mean = OT_NONE, variance = OT_NONE, both = OT_NONE;
    memcpy(m.small, v.dims, (size_t)v.rank * sizeof *m.small);
    for (size_t k = 0; k < n; k++) m.small[axes[k]] = 1;
    memcpy(pair, m.small, (size_t)v.rank * sizeof *pair);
    pair[v.rank - 1] = 2;
    if (v.dtype != m.type) OT_TRY(decomp_cast(&m.w, "wide", x, m.type, &x));
    /* lines may have any length then */
    const bool many = ot_moments_are_many(&v, axes, n) && !g->model->dynamic_dims;
    OT_TRY((many ? of_many : of_few)(&m, x, &mean, &variance));
    const ot_attr last = ot_mk_int("axis", v.rank - 1), to = ot_mk_int("to", OT_F64);
    OT_TRY(decomp_op(&m.w,
                     &(ot_node_def){.op = "Concat",
                                    .name = "pair",
                                    .in = {(ot_id[]){mean, variance}, 2},
                                    .attrs = {&last, 1}},
                     (ot_tensor_type){m.type, v.rank, pair}, &both));
    return decomp_op(
        &m.w, &(ot_node_def){.op = "Cast", .name = "moments", .in = {&both, 1}, .attrs = {&to, 1}},
        (ot_tensor_type){OT_F64, v.rank, pair}, out);
}
