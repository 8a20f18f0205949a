/* Moments (src/transform/decompose): mean and variance of each row of the last axes, in float64.
 *
 *     x [N, C, H, W], axes {2, 3}:  N * C rows of H * W numbers  ->  [N, C, 1, 2]
 *
 * Means in vector lanes over blocks, blocks in double, as of the normalisation that is
 * decomposed; then squares of the differences. Half precision is widened row by row. Everything
 * else goes to the reference.
 */
#include "fast_rows.h"

typedef struct moments {
    int64_t len; /* of a row */
    const ot_nd *x;
    double *y;   /* pairs */
    float *wide; /* of arrays of 16 bits: a row for each thread; else NULL */
} moments;

static void moments_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const moments *m = job;
    for (int64_t r = first; r < end; r++) {
        const float *x = m->wide ? m->wide + worker * m->len
                                 : (const float *)m->x->data + r * m->len;
        if (m->wide)
            ot_half_widen(m->x->dtype, m->wide + worker * m->len,
                          (const uint16_t *)m->x->data + r * m->len, m->len);
        m->y[2 * r] = ot_rows_mean(x, m->len);
        m->y[2 * r + 1] = ot_rows_square_mean(x, m->len, m->y[2 * r]);
    }
}

/* The axes are the last ones, in order; *first: the first of them. */
static bool last_axes(const ot_call *c, uint32_t rank, uint32_t *first)
{
    size_t n = 0;
    const int64_t *axes = ot_attr_ints(c->node, "axes", &n);
    if (!axes || n == 0 || n > rank) return false;
    *first = rank - (uint32_t)n;
    for (size_t k = 0; k < n; k++)
        if (axes[k] != (int64_t)(*first + k)) return false;
    return true;
}

ot_status ot_fast_moments(ot_call *c)
{
    const ot_nd *x = ot_rows_in(c, 0);
    int64_t dims[OT_RANK_MAX], room;
    uint32_t first;
    ot_lanes l;
    if (!x || !ot_dtype_is_real(x->dtype) || !ot_nd_is_dense(x) || !last_axes(c, x->rank, &first) ||
        !ot_lanes_open(x, first, x->rank, &l))
        return ot_op_reference(OT_OP_Moments)(c);
    for (uint32_t d = 0; d < x->rank; d++) dims[d] = d < first ? x->dims[d] : 1;
    dims[x->rank - 1] = 2;
    OT_TRY(ot_call_output(c, 0, OT_F64, x->rank, dims));
    if (!ot_rows_wants(c, 0)) return OT_OK;
    moments m = {.len = l.n, .x = x, .y = c->out[0]->data};
    const int64_t threads = ot_rows_threads(c, 2.0 * (double)l.outer * (double)l.n);
    if (x->dtype != OT_F32) {
        if (!ot_mul_i64(l.n, threads * (int64_t)sizeof *m.wide, &room))
            return ot_fail_nomem(c->diag);
        m.wide = ot_call_scratch(c, (size_t)room);
        if (!m.wide) return ot_fail_nomem(c->diag);
    }
    ot_pool_share((uint32_t)threads, l.outer, 1, moments_share, &m);
    return OT_OK;
}
