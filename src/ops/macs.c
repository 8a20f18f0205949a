/* How much arithmetic a node does: multiply-accumulates for the operators whose cost is a product,
 * elements touched for all others (the larger of what is read and what is written: a reduction
 * reads more, an Expand writes more).
 *
 *   Conv            out elements x (channels per group x kernel)
 *   ConvTranspose   in elements x (output channels per group x kernel)
 *   MatMul, Gemm    out elements x contracted extent
 *   Einsum          product of the extents of all its labels
 *   Attention       batch x heads x queries x keys x (head size + value size)
 *
 * Results are doubles: sizes come from files and their products need no exactness, only no
 * overflow.
 */
#include "access.h"

/* Elements as a double; 0 for an absent value, -1 for an unknown shape. */
static double elems(const ot_value *v)
{
    if (!v) return 0;
    if (!ot_value_is_static(v)) return -1;
    double e = 1;
    for (int32_t d = 0; d < v->rank; d++) e *= (double)v->dims[d];
    return e;
}

static double last_dim(const ot_value *v, int32_t from_end)
{
    return v && v->rank >= from_end ? (double)v->dims[v->rank - from_end] : 1;
}

static double conv_macs(const ot_graph *g, const ot_node *n, uint32_t weights)
{
    const ot_value *w = ot_acc_in(g, n, weights), *y = ot_acc_out(g, n, 0);
    if (!w || w->rank < 1 || w->dims[0] < 1) return 0;
    return elems(y) * elems(w) / (double)w->dims[0];
}

static double convt_macs(const ot_graph *g, const ot_node *n)
{
    const ot_value *x = ot_acc_in(g, n, 0), *w = ot_acc_in(g, n, 1);
    if (!x || !w || w->rank < 1 || w->dims[0] < 1) return 0;
    return elems(x) * elems(w) / (double)w->dims[0];
}

static double gemm_macs(const ot_graph *g, const ot_node *n)
{
    const ot_value *a = ot_acc_in(g, n, 0);
    if (!a || a->rank != 2) return 0;
    return elems(ot_acc_out(g, n, 0)) * (double)a->dims[ot_attr_int(n, "transA", 0) ? 0 : 1];
}

/* Labels of one operand term, "..." standing for the dims they do not name. Returns the extent
 * product of labels (and ellipsis dims) not seen before. */
static double term_macs(const char *s, const char *end, const ot_value *v, bool *seen,
                        bool *seen_dots)
{
    int32_t named = 0, at = 0;
    double product = 1;
    for (const char *c = s; c < end; c++) named += *c != ' ' && *c != '.';
    for (const char *c = s; c < end && at < v->rank; c++) {
        if (*c == ' ') continue;
        if (*c == '.') {
            for (int32_t k = v->rank - named; k > 0 && at < v->rank; k--, at++)
                if (!*seen_dots) product *= (double)v->dims[at];
            *seen_dots = true;
            while (c + 1 < end && c[1] == '.') c++;
            continue;
        }
        unsigned char label = (unsigned char)*c;
        if (!seen[label]) product *= (double)v->dims[at];
        seen[label] = true;
        at++;
    }
    return product;
}

static double einsum_macs(const ot_graph *g, const ot_node *n)
{
    const char *s = ot_attr_str(n, "equation", "");
    bool seen[256] = {false}, seen_dots = false;
    double product = 1;
    for (uint32_t i = 0; i < n->n_in; i++) {
        size_t len = strcspn(s, ",-");
        const ot_value *v = ot_acc_in(g, n, i);
        if (v) product *= term_macs(s, s + len, v, seen, &seen_dots);
        s += len + (s[len] == ',');
    }
    return product;
}

static double attention_macs(const ot_graph *g, const ot_node *n)
{
    const ot_value *q = ot_acc_in(g, n, 0), *k = ot_acc_in(g, n, 1), *v = ot_acc_in(g, n, 2);
    if (!q || !k || !v) return 0;
    /* Keys as attended: the cache that an optional past adds shows in the `present` output or the
     * past operand. */
    double keys = last_dim(k, 2);
    const ot_value *past = ot_acc_in(g, n, 4);
    if (past && past->rank == 4) keys += (double)past->dims[2];
    if (q->rank == 4 && v->rank == 4) /* [batch, heads, rows, size] */
        return elems(q) * keys + elems(q) / (double)ot_max(1, q->dims[3]) * keys * last_dim(v, 1);
    /* [batch, rows, heads * size]: scores cost the row width, the value product the output's row
     * width. */
    return (elems(q) + elems(ot_acc_out(g, n, 0))) * keys;
}

static double touched(const ot_graph *g, const ot_node *n)
{
    double read = 0, written = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        double e = elems(ot_acc_in(g, n, i));
        if (e > read) read = e;
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        double e = elems(ot_acc_out(g, n, i));
        if (e > 0) written += e;
    }
    return read > written ? read : written;
}

double ot_node_macs(const ot_graph *g, const ot_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (elems(ot_acc_in(g, n, i)) < 0) return 0;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (elems(ot_acc_out(g, n, i)) < 0) return 0;
    if (ot_is_fused_conv(n)) return conv_macs(g, n, 1);
    switch (ot_op_access(n->op)) {
    case OT_ACC_CONV: return conv_macs(g, n, ot_op_row_of(n->op)->weights);
    case OT_ACC_CONVT: return convt_macs(g, n);
    case OT_ACC_MATMUL: return elems(ot_acc_out(g, n, 0)) * last_dim(ot_acc_in(g, n, 0), 1);
    case OT_ACC_GEMM: return gemm_macs(g, n);
    case OT_ACC_EINSUM: return einsum_macs(g, n);
    case OT_ACC_ATTENTION: return attention_macs(g, n);
    default: return touched(g, n);
    }
}
