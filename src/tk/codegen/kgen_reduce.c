/* Reductions along axes, and softmax: an item makes a whole element of the result, so that sums
 * grow in the order of the index.
 *
 *   for (int e = item; e < 16; e += ITEMS) {
 *       float acc = 0;
 *       for (int r1 = 0; r1 < 200; r1++) { const float x = a0[e * 200 + r1]; acc = acc + x; }
 *       out[e] = acc;
 *   }
 */
#include "kgen_internal.h"

#include <math.h>

typedef struct reduction {
    const char *name, *merge, *integers; /* the latter wrap */
    double start;
    bool mean;
} reduction;

static const reduction REDUCTIONS[] = {
    {"reducesum", "acc + x", "($c)(($u)acc + ($u)x)", 0, false},
    {"reducemean", "acc + x", "($c)(($u)acc + ($u)x)", 0, true},
    {"reducemax", "acc != acc || acc > x ? acc : x", "acc > x ? acc : x", -(double)INFINITY, false},
    {"reducemin", "acc != acc || acc < x ? acc : x", "acc < x ? acc : x", (double)INFINITY, false},
    {"reduceprod", "acc * x", "($c)(($u)acc * ($u)x)", 1, false},
    {"reducesumsquare", "acc + x * x", "($c)(($u)acc + ($u)x * ($u)x)", 0, false},
};
#define N_REDUCTIONS (sizeof REDUCTIONS / sizeof *REDUCTIONS)

static const reduction *find(const char *name)
{
    for (size_t k = 0; k < N_REDUCTIONS; k++)
        if (strcmp(REDUCTIONS[k].name, name) == 0) return &REDUCTIONS[k];
    return NULL;
}

/* Which axes of the input are reduced; the last by default. */
static ot_status axes(const kgen_call *c, bool *reduced)
{
    const ot_tk_attr *a = ot_tk_attr_find(c->s, "axis");
    uint32_t rank = c->in[0].rank;
    for (uint32_t d = 0; d < rank; d++) reduced[d] = !a && d + 1 == rank;
    for (uint32_t k = 0; a && k < a->n; k++) {
        double x = a->values[k] < 0 ? a->values[k] + rank : a->values[k];
        if (!(x >= 0 && x < rank) || x != floor(x))
            return kgen_fail(c->g, "axis", "axis is from %d to %u", -(int)rank, rank - 1);
        reduced[(uint32_t)x] = true;
    }
    return OT_OK;
}

/* What nothing is merged with yet: of an integer the least or the greatest. */
static const char *start_of(kgen *g, ot_tk_class c, double x)
{
    if (!isinf(x) || c == OT_TK_F32 || c == OT_TK_F64) return kgen_number(g, c, x);
    if (c == OT_TK_U32) return x > 0 ? "4294967295u" : "0u";
    if (c == OT_TK_I32) return x > 0 ? "2147483647" : "(-2147483647 - 1)";
    return x > 0 ? "9223372036854775807L" : "(-9223372036854775807L - 1)";
}

/* acc over the reduced axes of input 0, from the position that the nest has. */
static void serial(const kgen_call *c, const kgen_nest *n, const bool *reduced, const char *merge)
{
    kgen *g = c->g;
    const kgen_operand *x = &c->in[0];
    const char *at = n->lin[0];
    int opened = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (!reduced[d]) continue;
        kgen_open(g, "for (int r%u = 0; r%u < %lld; r%u++)", d, d, (long long)x->dims[d], d);
        at = kgen_term(g, at, kgen_text(g, "r%u", d), x->stride[d]);
        opened++;
    }
    kgen_line(g, "const %s x = %s;", kgen_class_name(c->c), kgen_in(c, 0, at));
    kgen_line(g, "acc = %s;", merge);
    while (opened-- > 0) kgen_close(g);
}

static ot_status reduce(const kgen_call *c)
{
    const reduction *r = find(c->name);
    const kgen_operand *x = &c->in[0];
    bool reduced[OT_TK_RANK_MAX] = {false};
    int64_t dims[OT_TK_RANK_MAX], count = 1;
    kgen_nest n;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    OT_TRY(axes(c, reduced));
    for (uint32_t d = 0; d < x->rank; d++) {
        dims[d] = reduced[d] ? 1 : x->dims[d];
        count *= reduced[d] ? x->dims[d] : 1;
    }
    OT_TRY(ot_tk_makes(&c->at, dims, x->rank, kgen_value(c->g, c->out->value)));
    kgen_nest_init(&n, dims, x->rank);
    kgen_nest_strides(&n, x, x->stride);
    kgen_nest_same(&n, c->out);
    kgen_nest_fold(&n);
    kgen_share share = kgen_nest_share(c->g, &n);
    share.walks &= ~1u; /* an item reads more than the nest's element */
    OT_TRY(kgen_begin(c, share));
    kgen_nest_open(c->g, &n);
    kgen_line(c->g, "%s acc = %s;", kgen_class_name(c->c), start_of(c->g, c->c, r->start));
    serial(c, &n, reduced, kgen_expand(c->g, c->c < OT_TK_F32 ? r->integers : r->merge, c->c));
    kgen_out(c, n.lin[1],
             r->mean ? kgen_text(c->g, "acc / (%s)%lld", kgen_class_name(c->c), (long long)count)
                     : "acc");
    kgen_nest_close(c->g, &n);
    kgen_close(c->g);
    return OT_OK;
}

/* exp(x - max) / sum, along one axis: the exponentials are computed twice, for the output may be of
 * a shorter type. */
static ot_status softmax(const kgen_call *c)
{
    kgen *g = c->g;
    const kgen_operand *x = &c->in[0];
    int64_t axis, dims[OT_TK_RANK_MAX];
    kgen_nest n;
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    OT_TRY(ot_tk_makes(&c->at, x->dims, x->rank, kgen_value(c->g, c->out->value)));
    OT_TRY(ot_tk_integer(&c->at, "axis", -1, &axis));
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank)
        return kgen_fail(g, "axis", "'%s' has %u axes", kgen_value(g, x->value)->name, x->rank);
    kgen_nest_init(&n, x->dims, x->rank);
    kgen_nest_strides(&n, x, x->stride);
    kgen_nest_same(&n, c->out);
    int64_t step = n.stride[1][axis];
    memcpy(dims, x->dims, sizeof dims);
    n.dims[axis] = 1;
    kgen_nest_fold(&n);
    OT_TRY(kgen_begin(c, (kgen_share){0}));
    g->uses_f64 = g->uses_f64 || c->c != OT_TK_F32;
    const char *type = kgen_class_name(c->c), *wide = c->c == OT_TK_F32 ? "float" : "double";
    const char *head = kgen_text(g, "for (int r = 0; r < %lld; r++)", (long long)dims[axis]);
    kgen_nest_open(g, &n);
    const char *from = kgen_in(c, 0, kgen_term(g, n.lin[0], "r", x->stride[axis]));
    kgen_line(g, "%s most = %s, sum = 0;", type, start_of(g, c->c, -(double)INFINITY));
    kgen_open(g, "%s", head);
    kgen_line(g, "const %s x = %s;", type, from);
    kgen_line(g, "most = most != most || most > x ? most : x;");
    kgen_close(g);
    kgen_line(g, "%s sum = sum + (%s)exp((%s)(%s - most));", head, type, wide, from);
    kgen_open(g, "%s", head);
    kgen_line(g, "const %s x = (%s)exp((%s)(%s - most));", type, type, wide, from);
    kgen_out(c, kgen_term(g, n.lin[1], "r", step), "x / sum");
    kgen_close(g);
    kgen_nest_close(g, &n);
    kgen_close(g);
    return OT_OK;
}

kgen_op kgen_reduction(const char *name)
{
    if (find(name)) return reduce;
    return strcmp(name, "softmax") == 0 ? softmax : NULL;
}
