/* Mean and variance of a tile in standard ONNX: two passes, which lose nothing when the mean is large against the deviation.
 *
 *     x --ReduceMean--> m              x - m --square--ReduceMean--> v             [m, v] --Cast--> float64
 *
 * Means and squares of one tile are of the type of x; half precision is widened first. What tiles hand out is put together in float64.
 */
#include "split_internal.h"

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
    OT_TRY(split_reduce(&w, "ReduceMean", "mean", x, axes, n, small, &mean));
    OT_TRY(split_op(&w, "Sub", "away", (ot_id[]){x, mean}, 2, NULL, 0, type, v.rank, v.dims, &away));
    OT_TRY(split_op(&w, "Mul", "square", (ot_id[]){away, away}, 2, NULL, 0, type, v.rank, v.dims, &square));
    OT_TRY(split_reduce(&w, "ReduceMean", "variance", square, axes, n, small, &spread));
    const ot_attr last = ot_mk_int("axis", v.rank - 1), to = ot_mk_int("to", OT_F64);
    OT_TRY(split_op(&w, "Concat", "pair", (ot_id[]){mean, spread}, 2, &last, 1, type, v.rank, pair, &both));
    return split_op(&w, "Cast", "moments", &both, 1, &to, 1, OT_F64, v.rank, pair, out);
}
