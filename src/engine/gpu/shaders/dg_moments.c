/* Statistics of normalisations that tiles hand out: domain onnx_tile, src/transform/decompose.
 * In float64, as the reference computes them. */
#include "dg_rows.h"

/* Where element `which` (0: mean, 1: variance) of the pair of channel coordinates is. */
static const char *pair_index(dg_build *b, uint32_t arg, const char *const *coords,
                              const char *which)
{
    const char *c[OT_RANK_MAX];
    const uint32_t rank = b->arrays[arg].rank;
    memcpy(c, coords, rank * sizeof *c);
    c[rank - 1] = which;
    return dg_index(b, arg, c);
}

/* Mean and variance of each channel, in float64. */
bool dg_moments(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]), *y = dg_nd(b, n->out[0]);
    size_t n_axes = 0;
    const int64_t *axes = ot_attr_ints(n, "axes", &n_axes);
    dg_row r = {0};
    if (!ot_dtype_is_real(x->dtype) || y->dtype != OT_F64)
        return dg_refuse(b, "a normalisation of this type");
    if (!axes || n_axes == 0 || n_axes > x->rank || y->rank != x->rank)
        return dg_refuse(b, DG_CONTRADICT);
    for (uint32_t k = 0; k < x->rank; k++) {
        r.reduced[k] = k >= x->rank - n_axes;
        if (y->dims[k] != (k + 1 == x->rank ? 2 : r.reduced[k] ? 1 : x->dims[k]))
            return dg_refuse(b, DG_CONTRADICT);
    }
    ot_nd from = *x;
    dg_row_join(&r, 0, &from, NULL);
    if (!dg_row_open(b, &r, &from)) return false;
    uint32_t in = dg_arg(b, n->in[0], &from, false), out = dg_arg(b, n->out[0], NULL, true);
    const char *load = dg_load(b, in, dg_index(b, in, r.coords)), *length = dg_num(b, r.length),
               *kept[OT_RANK_MAX];
    for (uint32_t k = 0; k < x->rank; k++) kept[k] = r.reduced[k] ? "0" : r.coords[k];
    dg_line(b, "double s = 0, v = 0;");
    dg_row_loops(b, &r);
    dg_line(b, "s += %s;", load);
    dg_row_close(b, &r);
    dg_row_merge(b, &r, "double", "s", "s += x");
    dg_line(b, "s /= %s;", length);
    dg_row_loops(b, &r);
    dg_line(b, "const double x = %s - s;\nv += x * x;", load);
    dg_row_close(b, &r);
    dg_row_merge(b, &r, "double", "v", "s += x");
    dg_row_one(b, &r);
    dg_store(b, out, pair_index(b, out, kept, "0"), "s");
    dg_store(b, out, pair_index(b, out, kept, "1"), dg_fmt(b, "v / %s", length));
    dg_row_one_end(b, &r);
    dg_row_end(b, &r, 4, 4.0 * (double)r.items * (double)r.length);
    return !b->why;
}

/* Operand k, a number for each channel or each group; `none` where it is left out. */
static const char *of_channel(dg_build *b, const ot_node *n, uint32_t k, int64_t channels,
                              int64_t groups, const char *none)
{
    const ot_nd *x = dg_in(n, k) == OT_NONE ? NULL : dg_nd(b, n->in[k]);
    int64_t count;
    if (!x) return none;
    if (!ot_nd_elems(x, &count) || (count != channels && count != groups) || !ot_nd_is_dense(x) ||
        !(ot_dtype_is_real(x->dtype) || x->dtype == OT_F64)) {
        (void)dg_refuse(b, DG_CONTRADICT);
        return none;
    }
    return dg_fmt(b, "to_double(%s)",
                  dg_load(b, dg_arg(b, n->in[k], NULL, false),
                          dg_fmt(b, "c / %s", dg_num(b, channels / count))));
}

/* Factor and summand of each channel; channels of a group are put together. */
bool dg_norm_factors(dg_build *b, const ot_node *n)
{
    const ot_nd *m = dg_nd(b, n->in[0]), *f = dg_nd(b, n->out[0]),
                *s = n->n_out == 2 && n->out[1] != OT_NONE ? dg_nd(b, n->out[1]) : NULL;
    int64_t groups = ot_attr_int(n, "groups", 0), pairs;
    bool centred = ot_attr_int(n, "centred", 0) != 0;
    if (m->rank < 3 || m->dtype != OT_F64 || !s || groups < 1 || m->dims[1] % groups != 0 ||
        m->dims[m->rank - 1] != 2 || !ot_nd_elems(m, &pairs) ||
        pairs != 2 * m->dims[0] * m->dims[1] || !dg_same_dims(f, s))
        return dg_refuse(b, DG_CONTRADICT);
    for (uint32_t k = 0; k < m->rank; k++)
        if (f->rank != m->rank || f->dims[k] != (k + 1 == m->rank ? 1 : m->dims[k]))
            return dg_refuse(b, DG_CONTRADICT);
    int64_t channels = m->dims[1], size = channels / groups;
    const char *c[OT_RANK_MAX], *of[OT_RANK_MAX];
    dg_begin(b, pairs / 2);
    dg_split(b, "c", f->rank, f->dims, c);
    uint32_t in = dg_arg(b, n->in[0], NULL, false), factor = dg_arg(b, n->out[0], NULL, true),
             summand = dg_arg(b, n->out[1], NULL, true);
    memcpy(of, c, sizeof of);
    of[1] = "(first + j)";
    const char *mean = dg_load(b, in, pair_index(b, in, of, "0")),
               *variance = dg_load(b, in, pair_index(b, in, of, "1"));
    const char *count = dg_num(b, size),
               *epsilon = dg_fmt(b, "to_double(%.9g)", (double)ot_attr_float(n, "epsilon", 0));
    dg_line(b, "const int c = %s, first = c - c %% %s;\ndouble mean = 0, variance = 0;", c[1],
            count);
    dg_line(b, "for (int j = 0; j < %s; j++) mean += %s;\nmean /= %s;", count, mean, count);
    dg_line(
        b,
        "for (int j = 0; j < %s; j++) variance += %s + (%s - mean) * (%s - mean);\nvariance /= %s;",
        count, variance, mean, mean, count);
    if (centred) {
        dg_line(b, "const double a = 1 / (sqrt(variance) + %s), z = -mean;", epsilon);
    } else {
        const char *gamma = of_channel(b, n, 3, channels, groups, "1");
        dg_line(b, "const double a0 = %s / sqrt(variance + %s);",
                of_channel(b, n, 1, channels, groups, "1"), epsilon);
        dg_line(b, "const double z0 = %s - mean * a0;", of_channel(b, n, 2, channels, groups, "0"));
        dg_line(b, "const double a = a0 * %s, z = z0 * %s + %s;", gamma, gamma,
                of_channel(b, n, 4, channels, groups, "0"));
    }
    dg_store(b, factor, dg_index(b, factor, c), "a");
    dg_store(b, summand, dg_index(b, summand, c), "z");
    dg_end(b, pairs / 2, 4, 0);
    return !b->why;
}
