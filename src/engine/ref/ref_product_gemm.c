/* Gemm (all versions) and com.microsoft FusedGemm.
 *
 *   y[m, n] = activation(alpha * sum over k of A[m, k] * B[k, n] + beta * C)  A, B perhaps
 *   transposed; C broadcast to [m, n]
 */
#include "ref_product.h"

typedef struct gemm {
    int64_t m, n, k;
    int64_t a_row, a_column, b_row, b_column; /* steps in a and b along m, k and k, n */
    int64_t c_row, c_column;                  /* steps in C along m, n; 0: broadcast */
    double alpha, beta;
} gemm;

static ot_status bias_steps(ot_call *c, gemm *g)
{
    const ot_nd *bias = ot_num_in(c, 2);
    if (!bias) return OT_OK;
    int64_t rows = bias->rank > 1 ? bias->dims[bias->rank - 2] : 1,
            columns = bias->rank > 0 ? bias->dims[bias->rank - 1] : 1;
    if (bias->rank > 2 || (rows != 1 && rows != g->m) || (columns != 1 && columns != g->n))
        return ot_call_fail(c, "C does not broadcast to [%lld,%lld]", (long long)g->m,
                            (long long)g->n);
    g->c_row = rows == 1 ? 0 : columns;
    g->c_column = columns == 1 ? 0 : 1;
    return OT_OK;
}

static ot_status gemm_open(ot_call *c, gemm *g)
{
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS | OT_NUM_WIDE));
    OT_TRY(ot_num_same_type(c, 1, 0));
    OT_TRY(ot_num_same_type(c, 2, 0));
    OT_TRY(ot_num_rank(c, 0, 2));
    OT_TRY(ot_num_rank(c, 1, 2));
    const ot_nd *a = c->in[0], *b = c->in[1];
    bool ta = ot_attr_int(c->node, "transA", 0) != 0, tb = ot_attr_int(c->node, "transB", 0) != 0;
    int64_t rows = b->dims[tb ? 1 : 0];
    *g = (gemm){.m = a->dims[ta ? 1 : 0], .n = b->dims[tb ? 0 : 1], .k = a->dims[ta ? 0 : 1]};
    if (g->k != rows)
        return ot_call_fail(c, "%lld columns meet %lld rows", (long long)g->k, (long long)rows);
    g->a_row = ta ? 1 : g->k;
    g->a_column = ta ? g->m : 1;
    g->b_row = tb ? 1 : g->n;
    g->b_column = tb ? g->k : 1;
    g->alpha = (double)ot_attr_float(c->node, "alpha", 1);
    g->beta = (double)ot_attr_float(c->node, "beta", 1);
    return bias_steps(c, g);
}

static void gemm_doubles(const gemm *g, const double *a, const double *b, const double *bias,
                         double *y)
{
    for (int64_t m = 0; m < g->m; m++) {
        double *row = y + m * g->n;
        for (int64_t k = 0; k < g->k; k++)
            for (int64_t n = 0; n < g->n; n++)
                row[n] += a[m * g->a_row + k * g->a_column] * b[k * g->b_row + n * g->b_column];
        for (int64_t n = 0; n < g->n; n++)
            row[n] = g->alpha * row[n] +
                     (bias ? g->beta * bias[m * g->c_row + n * g->c_column] : 0);
    }
}

/* Whole factors: modulo 2^64, as integers are. */
static void gemm_ints(const gemm *g, const int64_t *a, const int64_t *b, const int64_t *bias,
                      ot_nd *y)
{
    uint64_t alpha = (uint64_t)(int64_t)g->alpha, beta = (uint64_t)(int64_t)g->beta;
    for (int64_t i = 0; i < g->m * g->n; i++) {
        int64_t m = i / g->n, n = i % g->n;
        uint64_t sum = 0;
        for (int64_t k = 0; k < g->k; k++)
            sum += (uint64_t)a[m * g->a_row + k * g->a_column] *
                   (uint64_t)b[k * g->b_row + n * g->b_column];
        sum = sum * alpha + (bias ? beta * (uint64_t)bias[m * g->c_row + n * g->c_column] : 0);
        ot_num_put_int(y, i, (int64_t)sum);
    }
}

static ot_status integer_gemm(ot_call *c, const gemm *g, const int64_t *dims)
{
    const ot_nd *bias = ot_num_in(c, 2);
    if (!(g->alpha >= -1e9 && g->alpha <= 1e9 && g->beta >= -1e9 && g->beta <= 1e9) ||
        g->alpha != (double)(int64_t)g->alpha || g->beta != (double)(int64_t)g->beta)
        return ot_call_fail(c, "alpha %g and beta %g must be whole for integers", g->alpha,
                            g->beta);
    int64_t *a = ot_num_ints(c, c->in[0]), *b = a ? ot_num_ints(c, c->in[1]) : NULL,
            *v = b && bias ? ot_num_ints(c, bias) : NULL;
    if (!b || (bias && !v)) return OT_E_NOMEM;
    if (!ot_num_out(c, 0)) return OT_OK;
    OT_TRY(ot_call_output(c, 0, c->in[0]->dtype, 2, dims));
    gemm_ints(g, a, b, v, c->out[0]);
    return OT_OK;
}

static ot_status run_gemm(ot_call *c, const ot_activation *act)
{
    gemm g = {0};
    int64_t n;
    OT_TRY(gemm_open(c, &g));
    const ot_nd *bias = ot_num_in(c, 2);
    int64_t dims[2] = {g.m, g.n};
    if (!ot_product(dims, 2, &n)) return ot_call_fail(c, "the output is too large");
    if (!ot_num_is(c->in[0]->dtype, OT_NUM_FLOATS)) return integer_gemm(c, &g, dims);
    double *a = ot_num_doubles(c, c->in[0]), *b = a ? ot_num_doubles(c, c->in[1]) : NULL,
           *v = b && bias ? ot_num_doubles(c, bias) : NULL;
    double *y = b ? ot_num_scratch(c, n, sizeof *y) : NULL;
    if (!y || (bias && !v)) return OT_E_NOMEM;
    gemm_doubles(&g, a, b, v, y);
    for (int64_t i = 0; act && i < n; i++) y[i] = act->f(y[i], act->alpha, act->beta);
    return ot_num_output(c, 0, c->in[0]->dtype, 2, dims, y);
}

ot_status ot_ref_gemm(ot_call *c) { return run_gemm(c, NULL); }

ot_status ot_ref_fused_gemm(ot_call *c)
{
    ot_activation act;
    const char *name = ot_attr_str(c->node, "activation", "");
    if (name[0] == '\0') return run_gemm(c, NULL);
    if (!ot_activation_find(name, &act)) return ot_call_fail(c, "activation '%s' is unknown", name);
    act.alpha = (double)ot_attr_float(c->node, "activation_alpha", (float)act.alpha);
    act.beta = (double)ot_attr_float(c->node, "activation_beta", (float)act.beta);
    if (!ot_num_is(c->n_in > 0 && c->in[0] ? c->in[0]->dtype : OT_F32, OT_NUM_FLOATS))
        return ot_call_fail(c, "needs floating inputs");
    return run_gemm(c, &act);
}
