/* Max, Min, Sum, Mean of any number of inputs, and Where: all broadcast together.
 *
 * A row of the result is accumulated over the inputs before it is stored, so that float16 is
 * rounded once. NaN wins in Max and Min. Where looks at no element type but bool: it moves
 * bytes.
 */
#include "ref_math.h"

#include <math.h>

static void join_f(ot_op op, double *sum, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (op != OT_OP_Max && op != OT_OP_Min)
            sum[i] += x[i];
        else if (isnan(x[i]) || (op == OT_OP_Max ? x[i] > sum[i] : x[i] < sum[i]))
            sum[i] = x[i];
    }
}

static void join_i(ot_op op, bool is_u64, int64_t *best, const int64_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        bool less = ot_rm_int_less(x[i], best[i], is_u64);
        if (op == OT_OP_Max ? !less : less) best[i] = x[i];
    }
}

static void many_row(ot_call *c, const ot_rm_walk *w, ot_op op)
{
    if (ot_rm_kind(c->in[0]->dtype) == REF_FLOAT) {
        double sum[REF_ROW], x[REF_ROW];
        ot_rm_row_f(w, 0, sum);
        for (uint32_t k = 1; k < w->n_ops; k++) {
            ot_rm_row_f(w, k, x);
            join_f(op, sum, x, w->n);
        }
        for (int64_t i = 0; op == OT_OP_Mean && i < w->n; i++) sum[i] /= w->n_ops;
        ot_rm_store_f(c->out[0], w->out, 1, w->n, sum);
    } else {
        int64_t best[REF_ROW], x[REF_ROW];
        ot_rm_row_i(w, 0, best);
        for (uint32_t k = 1; k < w->n_ops; k++) {
            ot_rm_row_i(w, k, x);
            join_i(op, c->in[0]->dtype == OT_U64, best, x, w->n);
        }
        ot_rm_store_i(c->out[0], w->out, 1, w->n, best);
    }
}

ot_status ot_rm_variadic(ot_call *c)
{
    ot_op op = ot_rm_op(c);
    uint32_t rank;
    int64_t dims[OT_RANK_MAX];
    OT_TRY(ot_call_need(c, c->n_in ? c->n_in : 1));
    OT_TRY(ot_rm_need_kind(c, 0, ot_op_row_of(op)->types));
    for (uint32_t k = 1; k < c->n_in; k++) OT_TRY(ot_rm_need_same(c, k));
    OT_TRY(ot_rm_broadcast(c, 0, c->n_in, &rank, dims));
    OT_TRY(ot_call_output(c, 0, c->in[0]->dtype, rank, dims));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    ot_rm_walk w;
    OT_TRY(ot_rm_walk_inputs(&w, c, 0, c->n_in, rank, dims));
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w)) many_row(c, &w, op);
    return OT_OK;
}

/* ---- Where ---- */

ot_status ot_rm_where(ot_call *c)
{
    uint32_t rank;
    int64_t dims[OT_RANK_MAX];
    OT_TRY(ot_call_need(c, 3));
    OT_TRY(ot_rm_need_kind(c, 0, REF_BOOL));
    const ot_nd *x = c->in[1], *y = c->in[2];
    size_t size = ot_dtype_bytes(x->dtype);
    if (size == 0) return ot_rm_bad_type(c, 1);
    if (x->dtype != y->dtype)
        return ot_call_fail(c, "inputs 1 and 2 have different element types (%s, %s)",
                            ot_dtype_name(x->dtype), ot_dtype_name(y->dtype));
    OT_TRY(ot_rm_broadcast(c, 0, 3, &rank, dims));
    OT_TRY(ot_call_output(c, 0, x->dtype, rank, dims));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    ot_rm_walk w;
    OT_TRY(ot_rm_walk_inputs(&w, c, 0, 3, rank, dims));
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w)) {
        int64_t yes[REF_ROW];
        ot_rm_row_i(&w, 0, yes);
        char *to = (char *)c->out[0]->data + (size_t)w.out * size;
        for (int64_t i = 0; i < w.n; i++, to += size) {
            const ot_rm_operand *o = &w.ops[yes[i] ? 1 : 2];
            memmove(to, (const char *)o->a->data + (size_t)(o->at + i * o->step) * size, size);
        }
    }
    return OT_OK;
}
