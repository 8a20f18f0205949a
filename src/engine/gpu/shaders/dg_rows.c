/* Reductions, Softmax, ArgMax: a work-item, or a group of them, goes through the elements that
 * make one result, or one row (dg_share.c).
 *
 *   kept axes      coordinates of the row      c0, c1
 *   reduced axes   loops                       for r2, for r3
 */
#include "dg_rows.h"

static bool is_number(dg_build *b, const ot_nd *x, dg_type *t)
{
    if (dg_type_of(x->dtype, t) && x->dtype != OT_BOOL) return true;
    return dg_refuse(b, "a reduction of this type");
}

/* ---- reductions ---- */

#define LARGER  "s = !is_nan(s) && (x > s || is_nan(x)) ? x : s"
#define SMALLER "s = !is_nan(s) && (x < s || is_nan(x)) ? x : s"

/* sum_t s begins as `first`, takes in each x, others' s as `merge` says, and is `last` in the end;
 * n: how many. Maxima and minima are of the type itself. */
static const struct reduction {
    ot_op op;
    const char *first, *each, *merge, *last;
    bool extreme, integers;
} REDUCTIONS[] = {
    {OT_OP_ReduceSum, "0", "s += x", "s += x", "s", false, true},
    {OT_OP_ReduceMean, "0", "s += x", "s += x", "s / n", false, false},
    {OT_OP_GlobalAveragePool, "0", "s += x", "s += x", "s / n", false, false},
    {OT_OP_ReduceL1, "0", "s += x < 0 ? -x : x", "s += x", "s", false, true},
    {OT_OP_ReduceL2, "0", "s += to_sum_t(x) * x", "s += x", "sqrt(s)", false, false},
    {OT_OP_ReduceSumSquare, "0", "s += to_sum_t(x) * x", "s += x", "s", false, false},
    {OT_OP_ReduceProd, "1", "s *= x", "s *= x", "s", false, true},
    {OT_OP_ReduceLogSum, "0", "s += x", "s += x", "log(s)", false, false},
    {OT_OP_ReduceMax, NULL, LARGER, LARGER, "s", true, true},
    {OT_OP_ReduceMin, NULL, SMALLER, SMALLER, "s", true, true},
    {OT_OP_GlobalMaxPool, NULL, LARGER, LARGER, "s", true, false},
};

/* Axes of a Reduce: attribute, or constant operand 1; none: all, unless the node is to do
 * nothing then. */
static bool read_axes(dg_build *b, const ot_node *n, const ot_nd *x, bool *reduced)
{
    int64_t given[OT_RANK_MAX];
    uint32_t count = 0;
    size_t have = 0;
    const int64_t *axes = ot_attr_ints(n, "axes", &have);
    if (n->op == OT_OP_GlobalAveragePool || n->op == OT_OP_GlobalMaxPool) {
        for (uint32_t k = 2; k < x->rank; k++) reduced[k] = true;
        return x->rank > 2 || dg_refuse(b, "a pool without axes");
    }
    if (!axes && dg_in(n, 1) != OT_NONE) {
        if (!dg_const_ints(b, n, 1, given, OT_RANK_MAX, &count))
            return dg_refuse(b, "axes that are not constant");
        axes = given;
        have = count;
    }
    if (have == 0 && ot_attr_int(n, "noop_with_empty_axes", 0))
        return dg_refuse(b, "a reduction along no axis");
    for (uint32_t k = 0; k < x->rank; k++) reduced[k] = have == 0;
    for (size_t k = 0; k < have; k++) {
        int64_t a = axes[k] < 0 ? axes[k] + x->rank : axes[k];
        if (a < 0 || a >= x->rank) return dg_refuse(b, "an axis out of range");
        reduced[a] = true;
    }
    return true;
}

/* Coordinates in the result: axes that are reduced are 0 there, or not there. */
static bool result_coords(dg_build *b, const dg_row *r, const ot_nd *y, const char **out)
{
    uint32_t to = 0;
    for (uint32_t k = 0; k < r->rank; k++) {
        if (r->reduced[k] && y->rank != r->rank) continue;
        if (to == y->rank || y->dims[to] != (r->reduced[k] ? 1 : r->dims[k]))
            return dg_refuse(b, DG_CONTRADICT);
        out[to++] = r->reduced[k] ? "0" : r->coords[k];
    }
    return to == y->rank || dg_refuse(b, DG_CONTRADICT);
}

bool dg_reduce(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]), *y = dg_nd(b, n->out[0]);
    const struct reduction *how = NULL;
    const char *coords[OT_RANK_MAX];
    dg_row r = {0};
    dg_type t;
    for (size_t k = 0; k < sizeof REDUCTIONS / sizeof *REDUCTIONS; k++)
        if (REDUCTIONS[k].op == n->op) how = &REDUCTIONS[k];
    if (!how) return dg_refuse(b, "a reduction that has no kernel");
    if (!is_number(b, x, &t)) return false;
    if (!t.is_float && !how->integers) return dg_refuse(b, "a reduction of this type");
    if (!read_axes(b, n, x, r.reduced)) return false;
    ot_nd from = *x;
    dg_row_join(&r, 0, &from, NULL);
    if (!dg_row_open(b, &r, &from)) return false;
    uint32_t in = dg_arg(b, n->in[0], &from, false);
    const char *sum = how->extreme || !t.is_float ? t.computed : "sum_t";
    if (how->extreme) {
        const char *first[OT_RANK_MAX];
        for (uint32_t k = 0; k < r.rank; k++) first[k] = r.reduced[k] ? "0" : r.coords[k];
        dg_line(b, "%s s = %s;", sum, dg_load(b, in, dg_index(b, in, first)));
    } else {
        dg_line(b, "%s s = %s;", sum, how->first);
    }
    dg_row_loops(b, &r);
    dg_line(b, "const %s x = %s;\n%s;", t.computed, dg_load(b, in, dg_index(b, in, r.coords)),
            how->each);
    dg_row_close(b, &r);
    dg_row_merge(b, &r, sum, "s", how->merge);
    dg_row_one(b, &r);
    dg_line(b, "const sum_t n_all = %s;", dg_num(b, r.length));
    const char *last = strcmp(how->last, "s / n") == 0 ? "s / n_all" : how->last;
    if (n->op == OT_OP_ReduceLogSum) last = dg_fmt(b, "log(to_%s(s))", t.computed);
    if (t.bits == 64 && dg_lacks_in_double(b, last)) return dg_refuse(b, DG_FLOAT_ALONE);
    dg_line(b, "const %s y = to_%s(%s);", t.computed, t.computed, last);
    if (!result_coords(b, &r, y, coords)) return false;
    dg_element e = {.rank = y->rank, .dims = y->dims, .coords = coords};
    dg_element_var(b, &e, n->out[0], "y");
    if (!dg_element_rest(b, &e, 1)) return false;
    dg_row_one_end(b, &r);
    dg_row_end(b, &r, 4, (double)r.items * (double)r.length);
    return !b->why;
}

/* ---- Softmax ---- */

bool dg_softmax(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]), *y = dg_nd(b, n->out[0]);
    bool old = n->version < 13, log = n->op == OT_OP_LogSoftmax;
    int64_t axis = ot_attr_int(n, "axis", old ? 1 : -1);
    dg_row r = {0};
    if (n->op == OT_OP_Hardmax) return dg_refuse(b, "an operator that has no kernel");
    if (axis < 0) axis += x->rank;
    if (!ot_dtype_is_real(x->dtype) || axis < 0 || axis > x->rank || (axis == x->rank && !old))
        return dg_refuse(b, "a Softmax of this type");
    if (!dg_same_dims(x, y)) return dg_refuse(b, DG_CONTRADICT);
    for (uint32_t k = (uint32_t)axis; k < x->rank; k++) r.reduced[k] = old || k == (uint32_t)axis;
    if (!dg_row_open(b, &r, x)) return false;
    uint32_t in = dg_arg(b, n->in[0], NULL, false), out = dg_arg(b, n->out[0], NULL, true);
    const char *load = dg_load(b, in, dg_index(b, in, r.coords));
    dg_line(b, "float m = -INFINITY;");
    dg_row_loops(b, &r);
    dg_line(b, "m = fmax(m, %s);", load);
    dg_row_close(b, &r);
    dg_row_merge(b, &r, "float", "m", "s = fmax(s, x)");
    dg_line(b, "sum_t s = 0;");
    dg_row_loops(b, &r);
    dg_line(b, "s += exp(%s - m);", load);
    dg_row_close(b, &r);
    dg_row_merge(b, &r, "sum_t", "s", "s += x");
    dg_line(b, "const float f = %s;", log ? "log(to_float(s))" : "1 / to_float(s)");
    dg_row_loops(b, &r);
    dg_store(b, out, dg_index(b, out, r.coords),
             dg_fmt(b, log ? "%s - m - f" : "exp(%s - m) * f", load));
    dg_row_close(b, &r);
    dg_row_end(b, &r, 4, 8.0 * (double)r.items * (double)r.length);
    return !b->why;
}

/* ---- ArgMax, ArgMin ---- */

/* The place of the best of all work-items' in `at`; among equals the first or the last. */
static void merge_places(dg_build *b, const dg_row *r, const char *type, const char *better,
                         const char *sooner)
{
    if (r->share == 1) return;
    dg_shared(b, type, "part_s", r->share);
    dg_shared(b, "int", "part_at", r->share);
    dg_line(b, "part_s[me] = s;\npart_at[me] = at;");
    dg_meet(b);
    dg_line(b, "for (int h = %u; h > 0; h /= 2) {\nif (me < h) {", r->share / 2);
    dg_line(b, "const %s x = part_s[me], y = part_s[me + h];", type);
    dg_line(b, "if (y %s x || (y == x && part_at[me + h] %s part_at[me])) {", better, sooner);
    dg_line(b, "part_s[me] = y; part_at[me] = part_at[me + h];\n}\n}");
    dg_meet(b);
    dg_line(b, "}\nat = part_at[0];");
}

bool dg_arg_reduce(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]), *y = dg_nd(b, n->out[0]);
    int64_t axis = ot_attr_int(n, "axis", 0);
    bool last = ot_attr_int(n, "select_last_index", 0) != 0;
    const char *coords[OT_RANK_MAX], *first[OT_RANK_MAX];
    dg_row r = {0};
    dg_type t;
    if (axis < 0) axis += x->rank;
    if (!is_number(b, x, &t) || axis < 0 || axis >= x->rank)
        return dg_refuse(b, "an axis out of range");
    r.reduced[axis] = true;
    if (!dg_row_open(b, &r, x)) return false;
    uint32_t in = dg_arg(b, n->in[0], NULL, false), out = dg_arg(b, n->out[0], NULL, true);
    for (uint32_t k = 0; k < r.rank; k++) first[k] = r.reduced[k] ? "0" : r.coords[k];
    dg_line(b, "%s s = %s;\nint at = 0;", t.computed, dg_load(b, in, dg_index(b, in, first)));
    dg_row_loops(b, &r);
    dg_line(b, "const %s x = %s;", t.computed, dg_load(b, in, dg_index(b, in, r.coords)));
    dg_line(b, "if (x %s%s s) { s = x; at = %s; }", n->op == OT_OP_ArgMax ? ">" : "<",
            last ? "=" : "", r.coords[axis]);
    dg_row_close(b, &r);
    merge_places(b, &r, t.computed, n->op == OT_OP_ArgMax ? ">" : "<", last ? ">" : "<");
    if (!result_coords(b, &r, y, coords)) return false;
    dg_row_one(b, &r);
    dg_store(b, out, dg_index(b, out, coords), "at");
    dg_row_one_end(b, &r);
    dg_row_end(b, &r, 4, (double)r.items * (double)r.length);
    return !b->why;
}
