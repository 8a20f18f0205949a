/* Loops over elements, which the items of a group share.
 *
 *   one axis, or few columns  for (int e = item; e < 2000; e += ITEMS)       coordinates by
 *                                                                            division
 *   rows of many columns      for (int c0 = 0; c0 < 16; c0++)
 *                                 for (int c1 = item; c1 < 200; c1 += ITEMS)
 */
#include "kgen_internal.h"

void kgen_nest_init(kgen_nest *n, const int64_t *dims, uint32_t rank)
{
    *n = (kgen_nest){.rank = rank};
    memcpy(n->dims, dims, rank * sizeof *dims);
}

void kgen_nest_broadcast(kgen_nest *n, const kgen_operand *o)
{
    int64_t *to = n->stride[n->n];
    for (uint32_t d = 0; d < n->rank; d++) {
        uint32_t own = d + o->rank - n->rank; /* wraps where the operand has no such axis */
        to[d] = d + o->rank < n->rank || o->dims[own] == 1 ? 0 : o->stride[own];
    }
    n->op[n->n++] = o;
}

void kgen_nest_same(kgen_nest *n, const kgen_operand *o)
{
    uint32_t own = 0;
    for (uint32_t d = 0; d < n->rank; d++) {
        if (n->dims[d] == 1) continue;
        while (own < o->rank && o->dims[own] == 1) own++;
        n->stride[n->n][d] = own < o->rank ? o->stride[own] : 0;
        own++;
    }
    n->op[n->n++] = o;
}

void kgen_nest_strides(kgen_nest *n, const kgen_operand *o, const int64_t *strides)
{
    memcpy(n->stride[n->n], strides, n->rank * sizeof *strides);
    n->op[n->n++] = o;
}

void kgen_nest_guard(kgen_nest *n, const kgen_operand *o)
{
    for (uint32_t d = 0; d < n->rank && d < o->rank; d++) {
        n->first[d] = o->first[d];
        n->limit[d] = o->limit[d];
    }
}

/* ---- fewer axes ---- */

static void drop_axis(kgen_nest *n, uint32_t axis)
{
    n->rank--;
    for (uint32_t d = axis; d < n->rank; d++) {
        n->dims[d] = n->dims[d + 1];
        n->first[d] = n->first[d + 1];
        n->limit[d] = n->limit[d + 1];
        for (uint32_t k = 0; k < n->n; k++) n->stride[k][d] = n->stride[k][d + 1];
    }
}

static bool one_walk(const kgen_nest *n, uint32_t d)
{
    if (n->first[d] || n->first[d + 1]) return false;
    for (uint32_t k = 0; k < n->n; k++)
        if (n->stride[k][d] != n->stride[k][d + 1] * n->dims[d + 1]) return false;
    return true;
}

void kgen_nest_fold(kgen_nest *n)
{
    if (n->keep_axes) return;
    for (uint32_t d = n->rank; d-- > 0;)
        if (n->dims[d] == 1 && !n->first[d] && n->rank > 1) drop_axis(n, d);
    for (uint32_t d = n->rank; d-- > 1;) {
        if (!one_walk(n, d - 1)) continue;
        n->dims[d - 1] *= n->dims[d];
        for (uint32_t k = 0; k < n->n; k++) n->stride[k][d - 1] = n->stride[k][d];
        drop_axis(n, d);
    }
}

/* ---- who does what ---- */

static bool in_rows(const kgen *g, const kgen_nest *n)
{
    return n->rank > 1 &&
           (g->options->items == 1 || n->dims[n->rank - 1] >= (int64_t)g->options->items);
}

static int64_t total(const kgen_nest *n)
{
    int64_t x = 1;
    for (uint32_t d = 0; d < n->rank; d++) x *= n->dims[d];
    return x;
}

kgen_share kgen_nest_share(const kgen *g, const kgen_nest *n)
{
    kgen_share s = {.total = total(n), .inner = total(n)};
    int64_t row = n->dims[n->rank - 1];
    /* else element e is item e % ITEMS's, as without rows */
    if (in_rows(g, n) && row % g->options->items != 0) s.inner = row;
    int64_t dense[OT_TK_RANK_MAX];
    kgen_dense(n->dims, n->rank, dense);
    for (uint32_t k = 0; k < n->n; k++) {
        bool walks = n->op[k] && kgen_is_dense(n->op[k]) && kgen_elements(n->op[k]) == s.total;
        for (uint32_t d = 0; d < n->rank; d++)
            walks = walks && (n->dims[d] == 1 || n->stride[k][d] == dense[d]);
        if (walks) s.walks |= 1u << k;
    }
    return s;
}

/* ---- text ---- */

static void loops(kgen *g, kgen_nest *n)
{
    bool rows = in_rows(g, n);
    int64_t inner = total(n);
    if (!rows) {
        kgen_open(g, "for (int e = item; e < %lld; e += ITEMS)", (long long)inner);
        n->opened = 1;
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        inner /= n->dims[d];
        n->axis[d] = n->dims[d] == 1 ? "0" : kgen_text(g, "c%u", d);
        if (!rows && inner == 1 && total(n) == n->dims[d]) {
            n->axis[d] = n->dims[d] == 1 ? "0" : "e";
        } else if (!rows && n->dims[d] > 1) {
            const char *of = inner > 1 ? kgen_text(g, "e / %lld", (long long)inner) : "e";
            if (total(n) == inner * n->dims[d])
                kgen_line(g, "const int c%u = %s;", d, of);
            else
                kgen_line(g, "const int c%u = %s %% %lld;", d, of, (long long)n->dims[d]);
        } else if (rows && d + 1 < n->rank) {
            if (n->dims[d] == 1) continue;
            kgen_open(g, "for (int c%u = 0; c%u < %lld; c%u++)", d, d, (long long)n->dims[d], d);
            n->opened++;
        } else if (rows) {
            n->axis[d] = kgen_text(g, "c%u", d);
            kgen_open(g, "for (int c%u = item; c%u < %lld; c%u += ITEMS)", d, d,
                      (long long)n->dims[d], d);
            n->opened++;
        }
    }
}

void kgen_nest_open(kgen *g, kgen_nest *n)
{
    loops(g, n);
    for (uint32_t k = 0; k < n->n; k++) {
        const char *text = "";
        for (uint32_t d = 0; d < n->rank; d++) {
            if (n->stride[k][d] == 0 || n->dims[d] == 1) continue;
            text = kgen_term(g, text, n->axis[d], n->stride[k][d]);
        }
        n->lin[k] = *text ? text : "0";
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        if (!n->first[d]) continue;
        const char *inside = kgen_text(g, "((uint)(%s + %s) < %lldu)", n->first[d], n->axis[d],
                                       (long long)n->limit[d]);
        n->guard = n->guard ? kgen_text(g, "%s & %s", n->guard, inside) : inside;
    }
}

void kgen_nest_close(kgen *g, const kgen_nest *n)
{
    for (int k = 0; k < n->opened; k++) kgen_close(g);
}
