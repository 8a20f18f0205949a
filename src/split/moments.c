/* Mean and variance of a tile in standard ONNX: two passes, which lose nothing when the mean is large against the deviation.
 *
 *     x --ReduceMean--> m              x - m --square--ReduceMean--> v             [m, v] --Cast--> float64
 *
 * Means and squares of one tile are of the type of x; half precision is widened first. What tiles hand out is put together in float64.
 *
 * Runtimes add up in float32, one number after another: of 65,536 squares the last bits of thousands are lost, the same way in all, which was
 * the largest error of an image decoder (1.2e-6 of its range, and 0.6e-6 now). So many are taken line by line, then the lines:
 *
 *     x [N, C, H, W] --ReduceMean over W--> [N, C, H, 1] --ReduceMean over H--> m [N, C, 1, 1]
 */
#include "split_internal.h"

#define ADDED_AT_ONCE 4096 /* numbers; below, a second node costs more than it mends */

/* Means of x over `axes` [n], ascending; all but the last in a second node where they are many. dims: of the result. */
static ot_status means(split_writer *w, const char *role, ot_id x, const int64_t *axes, size_t n, const int64_t *dims, ot_id *out)
{
    const ot_value v = w->g->values[x];
    int64_t many = 1, lines[OT_RANK_MAX];
    char name[32];
    for (size_t k = 0; k < n; k++)
        if (v.dims[axes[k]] < 1 || !ot_mul_i64(many, v.dims[axes[k]], &many)) many = INT64_MAX;
    if (n < 2 || many <= ADDED_AT_ONCE) return split_reduce(w, "ReduceMean", role, x, axes, n, dims, out);
    memcpy(lines, v.dims, (size_t)v.rank * sizeof *lines);
    lines[axes[n - 1]] = 1;
    snprintf(name, sizeof name, "%s_lines", role);
    OT_TRY(split_reduce(w, "ReduceMean", name, x, axes + n - 1, 1, lines, &x));
    return split_reduce(w, "ReduceMean", role, x, axes, n - 1, dims, out);
}

ot_status ot_moments_write(ot_graph *g, const char *base, ot_id x, const int64_t *axes, size_t n, ot_id *out)
{
    split_writer w = {.g = g, .base = base};
    const ot_value v = g->values[x];
    ot_dtype type = v.dtype == OT_F64 ? OT_F64 : OT_F32;
    int64_t small[OT_RANK_MAX], pair[OT_RANK_MAX];
    ot_id mean = OT_NONE, away = OT_NONE, square = OT_NONE, spread = OT_NONE, both = OT_NONE;
    memcpy(small, v.dims, (size_t)v.rank * sizeof *small);
    for (size_t k = 0; k < n; k++) small[axes[k]] = 1;
    memcpy(pair, small, (size_t)v.rank * sizeof *pair);
    pair[v.rank - 1] = 2;
    if (v.dtype != type) OT_TRY(split_cast(&w, "wide", x, type, &x));
    OT_TRY(means(&w, "mean", x, axes, n, small, &mean));
    OT_TRY(split_op(&w, "Sub", "away", (ot_id[]){x, mean}, 2, NULL, 0, type, v.rank, v.dims, &away));
    OT_TRY(split_op(&w, "Mul", "square", (ot_id[]){away, away}, 2, NULL, 0, type, v.rank, v.dims, &square));
    OT_TRY(means(&w, "variance", square, axes, n, small, &spread));
    const ot_attr last = ot_mk_int("axis", v.rank - 1), to = ot_mk_int("to", OT_F64);
    OT_TRY(split_op(&w, "Concat", "pair", (ot_id[]){mean, spread}, 2, &last, 1, type, v.rank, pair, &both));
    return split_op(&w, "Cast", "moments", &both, 1, &to, 1, OT_F64, v.rank, pair, out);
}
