/* Element-wise operators of two inputs: arithmetic, bits, logic, comparisons, PRelu, Pow, SwiGLU.
 *
 * Both operands broadcast as in numpy. Before version 7 they did not: the second operand then
 * either has the shape of the first, or, with `broadcast`, the shape of some of its dimensions
 * in a row, from `axis` on (by default the last ones):
 *
 *     A [2, 3, 4, 5]   B [3, 4], axis = 1   -->   B [1, 3, 4, 1]
 *
 * Integers wrap, and the smallest number divided by -1 is itself. A division by zero, and a
 * shift by the width of the type or more before version 28, have no result: a line.
 */
#include "ref_math.h"

#include "engine/core/session.h"

#include <math.h>

/* ---- floating types: a = a op b ---- */

/* The remainder with the sign of the divisor, zero included. */
static double floor_mod(double x, double y)
{
    double r = fmod(x, y);
    if (r == 0) return copysign(r, y);
    return (r < 0) != (y < 0) ? r + y : r;
}

#define EACH(value)                   \
    for (int64_t i = 0; i < n; i++) { \
        double x = a[i], y = b[i];    \
        a[i] = (value);               \
    }                                 \
    break

static void row_f(ot_op op, bool c_mod, double *a, const double *b, int64_t n)
{
    switch ((int)op) {
    case OT_OP_Add: EACH(x + y);
    case OT_OP_Sub: EACH(x - y);
    case OT_OP_Mul: EACH(x * y);
    case OT_OP_Div: EACH(x / y);
    case OT_OP_Mod: EACH(c_mod ? fmod(x, y) : floor_mod(x, y));
    case OT_OP_Pow: EACH(pow(x, y));
    case OT_OP_PRelu: EACH(x < 0 ? x * y : x);
    case OT_OP_Equal: EACH(x == y);
    case OT_OP_Greater: EACH(x > y);
    case OT_OP_GreaterOrEqual: EACH(x >= y);
    case OT_OP_Less: EACH(x < y);
    case OT_OP_LessOrEqual: EACH(x <= y);
    default: OT_BUG("not an operator of two inputs");
    }
}
#undef EACH

/* ---- integers and bool ---- */

typedef struct int_rule {
    ot_op op;
    bool is_u64, c_mod, left; /* type; fmod of Mod; direction of BitShift */
    uint64_t width;           /* bits of the type */
    bool shift_past;          /* BitShift by the width or more is defined */
} int_rule;

static int64_t divide(int64_t a, int64_t b, bool is_u64)
{
    if (is_u64) return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? ot_rm_wrap_sub(0, a) : a / b;
}

/* The remainder has the sign of the divisor, as Python's %, or of the dividend, as C's fmod. */
static int64_t modulo(int64_t a, int64_t b, const int_rule *r)
{
    if (r->is_u64) return (int64_t)((uint64_t)a % (uint64_t)b);
    int64_t rest = b == -1 ? 0 : a % b;
    return !r->c_mod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* Bits that are shifted in are zeros, or copies of the sign. Past the width of the type, and for
 * shifts of less than nothing, only they are left. */
static int64_t shift(int64_t a, int64_t b, const int_rule *r)
{
    bool past = (uint64_t)b >= r->width;
    if (r->left) return past ? 0 : (int64_t)((uint64_t)a << b);
    if (r->is_u64 || a >= 0) return past ? 0 : (int64_t)((uint64_t)a >> b);
    return past ? -1 : ~(~a >> b);
}

static int64_t arithmetic(const int_rule *r, int64_t a, int64_t b)
{
    switch ((int)r->op) {
    case OT_OP_Add: return ot_rm_wrap_add(a, b);
    case OT_OP_Sub: return ot_rm_wrap_sub(a, b);
    case OT_OP_Mul: return ot_rm_wrap_mul(a, b);
    case OT_OP_Div: return divide(a, b, r->is_u64);
    case OT_OP_Mod: return modulo(a, b, r);
    case OT_OP_PRelu: return ot_rm_int_less(a, 0, r->is_u64) ? ot_rm_wrap_mul(a, b) : a;
    case OT_OP_BitShift: return shift(a, b, r);
    default: OT_BUG("not an arithmetic operator");
    }
}

static int64_t pair(const int_rule *r, int64_t a, int64_t b)
{
    switch ((int)r->op) {
    case OT_OP_And:
    case OT_OP_BitwiseAnd: return a & b;
    case OT_OP_Or:
    case OT_OP_BitwiseOr: return a | b;
    case OT_OP_Xor:
    case OT_OP_BitwiseXor: return a ^ b;
    case OT_OP_Equal: return a == b;
    case OT_OP_Greater: return ot_rm_int_less(b, a, r->is_u64);
    case OT_OP_GreaterOrEqual: return !ot_rm_int_less(a, b, r->is_u64);
    case OT_OP_Less: return ot_rm_int_less(a, b, r->is_u64);
    case OT_OP_LessOrEqual: return !ot_rm_int_less(b, a, r->is_u64);
    default: return arithmetic(r, a, b);
    }
}

/* Second operands that have no result. */
static ot_status check_divisors(ot_call *c, const int_rule *r, const int64_t *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if ((r->op == OT_OP_Div || r->op == OT_OP_Mod) && b[i] == 0)
            return ot_call_fail(c, "division of an integer by zero");
        if (r->op == OT_OP_BitShift && !r->shift_past && (uint64_t)b[i] >= r->width)
            return ot_call_fail(c, "shift by %llu of a type of %llu bits", (unsigned long long)b[i],
                                (unsigned long long)r->width);
    }
    return OT_OK;
}

/* ---- the operators ---- */

static unsigned kinds_of(ot_op op, int32_t version)
{
    return op == OT_OP_BitShift && version < 28 ? REF_UNSIGNED : ot_op_row_of(op)->types;
}

static bool compares(ot_op op)
{
    switch ((int)op) {
    case OT_OP_Equal:
    case OT_OP_Greater:
    case OT_OP_GreaterOrEqual:
    case OT_OP_Less:
    case OT_OP_LessOrEqual: return true;
    default: return false;
    }
}

static ot_status read_rule(ot_call *c, int_rule *r)
{
    ot_dtype t = c->in[0]->dtype;
    *r = (int_rule){.op = ot_rm_op(c), .is_u64 = t == OT_U64, .width = ot_dtype_bytes(t) * 8};
    r->shift_past = c->node->version >= 28;
    if (r->op == OT_OP_Mod) {
        r->c_mod = ot_attr_int(c->node, "fmod", 0) != 0;
        if (!r->c_mod && c->node->version < 28 && ot_rm_kind(t) == REF_FLOAT)
            return ot_call_fail(c, "Mod of floating-point numbers needs fmod = 1");
    }
    if (r->op == OT_OP_BitShift) {
        const char *way = ot_attr_str(c->node, "direction", "");
        r->left = strcmp(way, "LEFT") == 0;
        if (!r->left && strcmp(way, "RIGHT") != 0)
            return ot_call_fail(c, "direction '%s' is neither LEFT nor RIGHT", way);
    }
    return OT_OK;
}

/* The output's dimension that the second operand's first one is, before version 7. */
static ot_status old_position(ot_call *c, uint32_t *first)
{
    const ot_nd *a = c->in[0], *b = c->in[1];
    int64_t axis = ot_attr_int(c->node, "axis", (int64_t)a->rank - b->rank);
    bool by_channel = ot_rm_op(c) == OT_OP_PRelu; /* one slope, or one for each channel */
    if (!by_channel && !ot_attr_int(c->node, "broadcast", 0)) {
        if (a->rank != b->rank || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) != 0)
            return ot_call_fail(c, "shapes differ and `broadcast` is not set");
        axis = 0;
    }
    if (by_channel && b->rank == 1 && a->rank > 1 && b->dims[0] == a->dims[1]) axis = 1;
    if (axis < 0 && ot_attr_find(c->node, "axis")) axis += a->rank;
    if (axis < 0 || axis > a->rank || axis + b->rank > a->rank)
        return ot_call_fail(c, "axis out of range for operands of rank %u and %u", a->rank,
                            b->rank);
    *first = (uint32_t)axis;
    return OT_OK;
}

/* A walk over the broadcast output; its shape. */
static ot_status start(ot_call *c, ot_dtype t, ot_rm_walk *w)
{
    uint32_t rank, first = 0;
    int64_t dims[OT_RANK_MAX];
    const ot_nd *a = c->in[0], *b = c->in[1];
    bool old = c->node->version < 7, to_first = old || ot_rm_op(c) == OT_OP_PRelu;
    if (to_first) { /* the output is like the first operand */
        rank = a->rank;
        memcpy(dims, a->dims, sizeof dims);
        if (old)
            OT_TRY(old_position(c, &first));
        else
            first = a->rank > b->rank ? a->rank - b->rank : 0;
    } else {
        OT_TRY(ot_rm_broadcast(c, 0, 2, &rank, dims));
        first = rank - b->rank;
    }
    OT_TRY(ot_rm_walk_new(w, c, rank, dims, 2));
    OT_TRY(ot_rm_walk_operand(w, c, 0, a, rank - a->rank));
    OT_TRY(ot_rm_walk_operand(w, c, 1, b, first));
    return ot_call_output(c, 0, t, rank, dims);
}

ot_status ot_rm_binary(ot_call *c)
{
    ot_op op = ot_rm_op(c);
    int_rule rule;
    OT_TRY(ot_rm_need_kind(c, 0, kinds_of(op, c->node->version)));
    OT_TRY(ot_rm_need_same(c, 1));
    OT_TRY(read_rule(c, &rule));
    ot_rm_walk w;
    OT_TRY(start(c, compares(op) ? OT_BOOL : c->in[0]->dtype, &w));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w)) {
        if (ot_rm_kind(c->in[0]->dtype) == REF_FLOAT) {
            double a[REF_ROW], b[REF_ROW];
            ot_rm_row_f(&w, 0, a);
            ot_rm_row_f(&w, 1, b);
            row_f(op, rule.c_mod, a, b, w.n);
            ot_rm_store_f(c->out[0], w.out, 1, w.n, a);
        } else {
            int64_t a[REF_ROW], b[REF_ROW];
            ot_rm_row_i(&w, 0, a);
            ot_rm_row_i(&w, 1, b);
            OT_TRY(check_divisors(c, &rule, b, w.n));
            for (int64_t i = 0; i < w.n; i++) a[i] = pair(&rule, a[i], b[i]);
            ot_rm_store_i(c->out[0], w.out, 1, w.n, a);
        }
    }
    return OT_OK;
}

/* ---- Pow: the two operands may have different types, the result has the first one's ---- */

static int64_t int_power(int64_t base, uint64_t exponent)
{
    int64_t r = 1;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1) r = ot_rm_wrap_mul(r, base);
        base = ot_rm_wrap_mul(base, base);
    }
    return r;
}

static ot_status power_row_i(ot_call *c, const ot_rm_walk *w)
{
    int64_t a[REF_ROW], b[REF_ROW];
    bool is_u64 = c->in[1]->dtype == OT_U64;
    ot_rm_row_i(w, 0, a);
    ot_rm_row_i(w, 1, b);
    for (int64_t i = 0; i < w->n; i++) {
        if (is_u64 || b[i] >= 0) {
            a[i] = int_power(a[i], (uint64_t)b[i]);
            continue;
        }
        if (a[i] == 0) return ot_call_fail(c, "zero to a negative power, of integers");
        a[i] = a[i] == 1 ? 1 : a[i] != -1 ? 0 : b[i] & 1 ? -1 : 1; /* 1 / a^-b, cut */
    }
    ot_rm_store_i(c->out[0], w->out, 1, w->n, a);
    return OT_OK;
}

ot_status ot_rm_pow(ot_call *c)
{
    OT_TRY(ot_rm_need_kind(c, 0, REF_FLOAT | REF_INT));
    OT_TRY(ot_rm_need_kind(c, 1, REF_FLOAT | REF_INT));
    if (c->node->version < 12) OT_TRY(ot_rm_need_same(c, 1));
    ot_rm_walk w;
    OT_TRY(start(c, c->in[0]->dtype, &w));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    bool in_int = ot_rm_kind(c->in[0]->dtype) != REF_FLOAT &&
                  ot_rm_kind(c->in[1]->dtype) != REF_FLOAT;
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w)) {
        if (in_int) {
            OT_TRY(power_row_i(c, &w));
            continue;
        }
        double a[REF_ROW], b[REF_ROW];
        ot_rm_row_f(&w, 0, a);
        ot_rm_row_f(&w, 1, b);
        row_f(OT_OP_Pow, false, a, b, w.n);
        ot_rm_store_f(c->out[0], w.out, 1, w.n, a);
    }
    return OT_OK;
}

/* ---- SwiGLU: x * sigmoid(alpha x) * y, of one shape ---- */

ot_status ot_rm_swiglu(ot_call *c)
{
    double alpha = (double)ot_attr_float(c->node, "alpha", 1);
    OT_TRY(ot_rm_need_kind(c, 0, REF_FLOAT));
    OT_TRY(ot_rm_need_same(c, 1));
    if (!ot_nd_same_shape(c->in[1], c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims))
        return ot_call_fail(c, "inputs 0 and 1 have different shapes");
    ot_rm_walk w;
    OT_TRY(start(c, c->in[0]->dtype, &w));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w)) {
        double x[REF_ROW], y[REF_ROW];
        ot_rm_row_f(&w, 0, x);
        ot_rm_row_f(&w, 1, y);
        for (int64_t i = 0; i < w.n; i++) x[i] = x[i] / (1 + exp(-alpha * x[i])) * y[i];
        ot_rm_store_f(c->out[0], w.out, 1, w.n, x);
    }
    return OT_OK;
}
