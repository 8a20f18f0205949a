/* Known contents of arithmetic, comparisons, casts and full reductions.
 *
 * Integers follow ONNX Runtime: division truncates towards zero, Mod takes the sign of the divisor
 * unless fmod is set. What has no defined result (division by zero, overflow) leaves the element
 * unknown.
 */
#include "shape.h"

#include <math.h>

static bool int_power(int64_t base, int64_t exponent, int64_t *r)
{
    if (exponent < 0 || exponent > 63) return false;
    *r = 1;
    for (int64_t k = 0; k < exponent; k++)
        if (!ot_mul_i64(*r, base, r)) return false;
    return true;
}

static int64_t modulo(int64_t a, int64_t b, bool c_rule) /* b not 0 or -1 */
{
    int64_t r = a % b;
    return !c_rule && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* a op b; false when undefined. */
static bool int_binary(const ot_node *n, int64_t a, int64_t b, int64_t *r)
{
    switch ((int)n->op) {
    case OT_OP_Add:
    case OT_OP_Sum: return ot_add_i64(a, b, r);
    case OT_OP_Sub: return b != INT64_MIN && ot_add_i64(a, -b, r);
    case OT_OP_Mul: return ot_mul_i64(a, b, r);
    case OT_OP_Div:
        if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
        *r = a / b;
        return true;
    case OT_OP_Mod:
        if (b == 0) return false;
        *r = b == -1 ? 0 : modulo(a, b, ot_attr_int(n, "fmod", 0) != 0);
        return true;
    case OT_OP_Pow: return int_power(a, b, r);
    case OT_OP_Min: *r = ot_min(a, b); return true;
    case OT_OP_Max: *r = ot_max(a, b); return true;
    case OT_OP_And: *r = a && b; return true;
    case OT_OP_Or: *r = a || b; return true;
    case OT_OP_Xor: *r = !a != !b; return true;
    case OT_OP_Equal: *r = a == b; return true;
    case OT_OP_Less: *r = a < b; return true;
    case OT_OP_LessOrEqual: *r = a <= b; return true;
    case OT_OP_Greater: *r = a > b; return true;
    case OT_OP_GreaterOrEqual: *r = a >= b; return true;
    default: return false;
    }
}

static bool float_compare(ot_op op, double a, double b, int64_t *r)
{
    switch ((int)op) {
    case OT_OP_Equal: *r = a == b; return true;
    case OT_OP_Less: *r = a < b; return true;
    case OT_OP_LessOrEqual: *r = a <= b; return true;
    case OT_OP_Greater: *r = a > b; return true;
    case OT_OP_GreaterOrEqual: *r = a >= b; return true;
    default: return false;
    }
}

static bool float_binary(ot_op op, double a, double b, double *r)
{
    switch ((int)op) {
    case OT_OP_Add:
    case OT_OP_Sum: *r = a + b; return true;
    case OT_OP_Sub: *r = a - b; return true;
    case OT_OP_Mul: *r = a * b; return true;
    case OT_OP_Div: *r = b == 0 ? (double)NAN : a / b; return true;
    case OT_OP_Pow: *r = pow(a, b); return true;
    case OT_OP_Min: *r = fmin(a, b); return true;
    case OT_OP_Max: *r = fmax(a, b); return true;
    default: return false;
    }
}

/* Element e of b = b op (element s of k); for the first operand: = element s. */
static bool fold(const ot_infer *c, ot_dtype t, ot_known_buf *b, uint32_t e, const ot_known *k,
                 uint32_t s)
{
    int64_t i = 0;
    double f = 0;
    if (!b->ok[e] || !ot_known_has(k, s)) {
        b->ok[e] = false;
        return true;
    }
    if (b->i != NULL) {
        if (k->i == NULL) return false;
        if (int_binary(c->n, b->i[e], k->i[s], &i))
            ot_known_set_int(b, t, e, i);
        else
            b->ok[e] = false;
    } else {
        if (k->f == NULL || !float_binary(c->n->op, b->f[e], k->f[s], &f)) return false;
        ot_known_set_result(b, t, e, f);
    }
    return true;
}

/* Add, Mul, Min... with any number of operands, result of the operands' type. */
static bool accumulate(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    for (uint32_t p = 0; p < c->n->n_in; p++) {
        const ot_known *k = ot_shape_known(c, p);
        const ot_value *x = ot_shape_in(c, p);
        if (k == NULL || !ot_value_is_static(x) || x->rank > v->rank) return false;
        if ((k->i != NULL) != (b->i != NULL)) return false; /* Pow of mixed types */
        for (uint32_t e = 0; e < b->n; e++) {
            uint32_t s = ot_known_broadcast(v, x, e);
            if (p == 0)
                ot_known_copy(b, e, k, s);
            else if (!fold(c, v->dtype, b, e, k, s))
                return false;
        }
    }
    return true;
}

/* Equal, Less, And...: a boolean from two operands. */
static bool compare(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *p = ot_shape_known(c, 0), *q = ot_shape_known(c, 1);
    const ot_value *x = ot_shape_in(c, 0), *y = ot_shape_in(c, 1);
    if (p == NULL || q == NULL || b->i == NULL || (p->i != NULL) != (q->i != NULL)) return false;
    if (!ot_value_is_static(x) || !ot_value_is_static(y)) return false;
    for (uint32_t e = 0; e < b->n; e++) {
        uint32_t s = ot_known_broadcast(v, x, e), t = ot_known_broadcast(v, y, e);
        int64_t r = 0;
        if (!ot_known_has(p, s) || !ot_known_has(q, t)) continue;
        bool done = p->i != NULL ? int_binary(c->n, p->i[s], q->i[t], &r)
                                 : float_compare(c->n->op, p->f[s], q->f[t], &r);
        if (!done) return false;
        ot_known_set_int(b, OT_BOOL, e, r);
    }
    return true;
}

static bool choose(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *k[3];
    const ot_value *x[3];
    for (uint32_t p = 0; p < 3; p++) {
        k[p] = ot_shape_known(c, p);
        x[p] = ot_shape_in(c, p);
        if (!ot_value_is_static(x[p]) || (p == 0 && (k[p] == NULL || k[p]->i == NULL)))
            return false;
    }
    for (uint32_t e = 0; e < b->n; e++) {
        uint32_t s = ot_known_broadcast(v, x[0], e);
        if (!ot_known_has(k[0], s)) continue;
        uint32_t from = k[0]->i[s] != 0 ? 1 : 2;
        if (k[from] != NULL) ot_known_copy(b, e, k[from], ot_known_broadcast(v, x[from], e));
    }
    return true;
}

/* ---- one operand ---- */

static bool float_unary(ot_op op, double a, double *r)
{
    switch ((int)op) {
    case OT_OP_Neg: *r = -a; return true;
    case OT_OP_Abs: *r = fabs(a); return true;
    case OT_OP_Ceil: *r = ceil(a); return true;
    case OT_OP_Floor: *r = floor(a); return true;
    case OT_OP_Round: *r = nearbyint(a); return true;
    case OT_OP_Sqrt: *r = a < 0 ? (double)NAN : sqrt(a); return true;
    case OT_OP_Reciprocal: *r = a == 0 ? (double)NAN : 1.0 / a; return true;
    default: return false;
    }
}

/* false: not an operator on integers. *defined false: no result for this element. */
static bool int_unary(ot_op op, int64_t a, int64_t *r, bool *defined)
{
    *defined = a != INT64_MIN;
    switch ((int)op) {
    case OT_OP_Neg: *r = *defined ? -a : a; return true;
    case OT_OP_Abs: *r = *defined && a < 0 ? -a : a; return true;
    case OT_OP_Not: *r = a == 0; return true;
    case OT_OP_Sign: *r = (a > 0) - (a < 0); return true;
    default: return false;
    }
}

static bool unary(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *k = ot_shape_known(c, 0);
    if (k == NULL || k->n != b->n || (k->i != NULL) != (b->i != NULL)) return false;
    for (uint32_t e = 0; e < b->n; e++) {
        int64_t i;
        double f;
        bool defined = true;
        if (!ot_known_has(k, e)) continue;
        if (k->i != NULL) {
            if (!int_unary(c->n->op, k->i[e], &i, &defined)) return false;
            if (defined) ot_known_set_int(b, v->dtype, e, i);
        } else {
            if (!float_unary(c->n->op, k->f[e], &f)) return false;
            ot_known_set_result(b, v->dtype, e, f);
        }
    }
    return true;
}

static bool cast(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *k = ot_shape_known(c, 0);
    if (k == NULL || k->n != b->n) return false;
    bool to_bool = v->dtype == OT_BOOL;
    for (uint32_t e = 0; e < b->n; e++) {
        if (!ot_known_has(k, e)) continue;
        if (b->f != NULL)
            ot_known_set_float(b, v->dtype, e, k->i != NULL ? (double)k->i[e] : k->f[e]);
        else if (k->i != NULL)
            ot_known_set_int(b, v->dtype, e, to_bool ? k->i[e] != 0 : k->i[e]);
        else if (to_bool)
            ot_known_set_int(b, v->dtype, e, k->f[e] != 0);
        else if (fabs(k->f[e]) < 9e18)
            ot_known_set_int(b, v->dtype, e, (int64_t)k->f[e]);
    }
    return true;
}

/* Bound `side` (1: least, 2: greatest) of Clip: an operand of one element, or before opset 11 an
 * attribute. *has: there is one. false: not known. */
static bool clip_bound(const ot_infer *c, uint32_t side, bool floats, bool *has, int64_t *i,
                       double *f)
{
    const ot_known *k = ot_shape_known(c, side);
    const ot_attr *attr = ot_attr_find(c->n, side == 1 ? "min" : "max");
    *has = ot_shape_in(c, side) != NULL || attr != NULL;
    if (attr != NULL) {
        *f = (double)attr->f;
        return floats && attr->kind == OT_ATTR_FLOAT;
    }
    if (!*has) return true;
    if (k == NULL || k->n != 1 || k->ok != NULL || (k->f != NULL) != floats) return false;
    if (floats)
        *f = k->f[0];
    else
        *i = k->i[0];
    return true;
}

static bool clip(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *k = ot_shape_known(c, 0);
    bool floats = b->f != NULL, low, high;
    int64_t least = 0, most = 0;
    double lower = 0, upper = 0;
    if (k == NULL || (k->f != NULL) != floats || k->n != b->n) return false;
    if (!clip_bound(c, 1, floats, &low, &least, &lower) ||
        !clip_bound(c, 2, floats, &high, &most, &upper))
        return false;
    for (uint32_t e = 0; e < b->n; e++) {
        if (!ot_known_has(k, e)) continue;
        if (floats) {
            double r = low ? fmax(k->f[e], lower) : k->f[e];
            ot_known_set_result(b, v->dtype, e, high ? fmin(r, upper) : r);
        } else {
            int64_t r = low ? ot_max(k->i[e], least) : k->i[e];
            ot_known_set_int(b, v->dtype, e, high ? ot_min(r, most) : r);
        }
    }
    return true;
}

/* ---- reductions to one element ---- */

static ot_op fold_of(ot_op op)
{
    switch ((int)op) {
    case OT_OP_ReduceSum: return OT_OP_Add;
    case OT_OP_ReduceProd: return OT_OP_Mul;
    case OT_OP_ReduceMax: return OT_OP_Max;
    case OT_OP_ReduceMin: return OT_OP_Min;
    default: return OT_OP_OPAQUE;
    }
}

static bool reduce(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *k = ot_shape_known(c, 0);
    ot_node step = {.op = fold_of(c->n->op)};
    if (k == NULL || b->n != 1 || k->n < 1 || (k->i != NULL) != (b->i != NULL)) return false;
    ot_known_copy(b, 0, k, 0);
    for (uint32_t s = 1; s < k->n; s++) {
        int64_t i = 0;
        double f = 0;
        bool ok = b->ok[0] && ot_known_has(k, s);
        b->ok[0] = false;
        if (!ok) break;
        if (k->i != NULL && int_binary(&step, b->i[0], k->i[s], &i))
            ot_known_set_int(b, v->dtype, 0, i);
        if (k->f != NULL && float_binary(step.op, b->f[0], k->f[s], &f))
            ot_known_set_result(b, v->dtype, 0, f);
    }
    return true;
}

bool ot_known_arith(ot_infer *c, uint32_t k, const ot_value *v, ot_known_buf *b)
{
    if (k > 0) return false;
    switch ((int)c->n->op) {
    case OT_OP_Add:
    case OT_OP_Sub:
    case OT_OP_Mul:
    case OT_OP_Div:
    case OT_OP_Mod:
    case OT_OP_Pow:
    case OT_OP_Min:
    case OT_OP_Max:
    case OT_OP_Sum: return accumulate(c, v, b);
    case OT_OP_Equal:
    case OT_OP_Less:
    case OT_OP_LessOrEqual:
    case OT_OP_Greater:
    case OT_OP_GreaterOrEqual:
    case OT_OP_And:
    case OT_OP_Or:
    case OT_OP_Xor: return compare(c, v, b);
    case OT_OP_Where: return choose(c, v, b);
    case OT_OP_Neg:
    case OT_OP_Abs:
    case OT_OP_Not:
    case OT_OP_Sign:
    case OT_OP_Ceil:
    case OT_OP_Floor:
    case OT_OP_Round:
    case OT_OP_Sqrt:
    case OT_OP_Reciprocal: return unary(c, v, b);
    case OT_OP_Cast:
    case OT_OP_CastLike: return cast(c, v, b);
    case OT_OP_Clip: return clip(c, v, b);
    case OT_OP_ReduceSum:
    case OT_OP_ReduceProd:
    case OT_OP_ReduceMax:
    case OT_OP_ReduceMin: return reduce(c, v, b);
    default: return false;
    }
}
