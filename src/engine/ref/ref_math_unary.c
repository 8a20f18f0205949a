/* Element-wise operators of one input: y = f(x), with the attributes of the operator as
 * constants of f.
 *
 * Floating types are computed in double and rounded once. Integers, where the operator takes
 * them, are computed exactly and wrap (Abs and Neg of the smallest number are that number).
 * Clip, IsNaN and IsInf are here, too: they have no second operand but limits.
 */
#include "ref_math.h"

#include <math.h>

/* What the operator takes besides its input. */
typedef struct unary_consts {
    ot_op op;
    double alpha, beta;
    bool tanh; /* Gelu by tanh */
} unary_consts;

/* ---- floating types ---- */

static double softplus(double x) { return log1p(exp(-fabs(x))) + (x > 0 ? x : 0); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
static double hard_sigmoid(double x, double alpha, double beta)
{
    double y = alpha * x + beta;
    return y < 0 ? 0 : y > 1 ? 1 : y;
}
static double gelu(double x, bool by_tanh)
{
    if (by_tanh) return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    return 0.5 * x * (1 + erf(x / M_SQRT2));
}
static double shrink(double x, double lambd, double bias)
{
    return x < -lambd ? x + bias : x > lambd ? x - bias : 0;
}

#define EACH(value)                   \
    for (int64_t i = 0; i < n; i++) { \
        double x = r[i];              \
        r[i] = (value);               \
    }                                 \
    break

/* The functions of mathematics, and rounding. false: it is none of them. */
static bool function_row(ot_op op, double *r, int64_t n)
{
    switch ((int)op) {
    case OT_OP_Abs: EACH(fabs(x));
    case OT_OP_Neg: EACH(-x);
    case OT_OP_Sign: EACH(sign(x));
    case OT_OP_Floor: EACH(floor(x));
    case OT_OP_Ceil: EACH(ceil(x));
    case OT_OP_Round: EACH(rint(x)); /* halves to even */
    case OT_OP_Sqrt: EACH(sqrt(x));
    case OT_OP_Reciprocal: EACH(1 / x);
    case OT_OP_Exp: EACH(exp(x));
    case OT_OP_Log: EACH(log(x));
    case OT_OP_Erf: EACH(erf(x));
    case OT_OP_Sin: EACH(sin(x));
    case OT_OP_Cos: EACH(cos(x));
    case OT_OP_Tan: EACH(tan(x));
    case OT_OP_Asin: EACH(asin(x));
    case OT_OP_Acos: EACH(acos(x));
    case OT_OP_Atan: EACH(atan(x));
    case OT_OP_Sinh: EACH(sinh(x));
    case OT_OP_Cosh: EACH(cosh(x));
    case OT_OP_Tanh: EACH(tanh(x));
    case OT_OP_Asinh: EACH(asinh(x));
    case OT_OP_Acosh: EACH(acosh(x));
    case OT_OP_Atanh: EACH(atanh(x));
    default: return false;
    }
    return true;
}

static void activation_row(const unary_consts *k, double *r, int64_t n)
{
    double alpha = k->alpha, beta = k->beta;
    switch ((int)k->op) {
    case OT_OP_Sigmoid: EACH(sigmoid(x));
    case OT_OP_Relu: EACH(x < 0 ? 0 : x);
    case OT_OP_LeakyRelu: EACH(x < 0 ? alpha * x : x);
    case OT_OP_ThresholdedRelu: EACH(x > alpha ? x : 0);
    case OT_OP_Elu: EACH(x < 0 ? alpha * expm1(x) : x);
    case OT_OP_Selu: EACH(beta * (x > 0 ? x : alpha * expm1(x)));
    case OT_OP_Celu: EACH(x > 0 ? x : alpha * expm1(x / alpha));
    case OT_OP_Gelu: EACH(gelu(x, k->tanh));
    case OT_OP_HardSigmoid: EACH(hard_sigmoid(x, alpha, beta));
    case OT_OP_HardSwish: EACH(x * hard_sigmoid(x, 1.0 / 6, 0.5));
    case OT_OP_Mish: EACH(x * tanh(softplus(x)));
    case OT_OP_Softplus: EACH(softplus(x));
    case OT_OP_Softsign: EACH(isinf(x) ? sign(x) : x / (1 + fabs(x)));
    case OT_OP_Swish: EACH(x * sigmoid(alpha * x));
    case OT_OP_Shrink: EACH(shrink(x, alpha, beta));
    case OT_OP_Affine: EACH(alpha * x + beta);
    default: OT_BUG("not an operator of one input");
    }
}
#undef EACH

/* ---- integers ---- */

static int64_t unary_int(const unary_consts *k, int64_t x, bool is_u64)
{
    bool negative = !is_u64 && x < 0;
    switch ((int)k->op) {
    case OT_OP_Abs: return negative ? ot_rm_wrap_sub(0, x) : x;
    case OT_OP_Neg: return ot_rm_wrap_sub(0, x);
    case OT_OP_Sign: return negative ? -1 : x != 0;
    case OT_OP_Relu: return negative ? 0 : x;
    case OT_OP_Not: return !x;
    case OT_OP_BitwiseNot: return ~x;
    default: OT_BUG("not an operator of integers");
    }
}

/* ---- the operators ---- */

static ot_status read_consts(ot_call *c, unary_consts *k)
{
    const ot_node *n = c->node;
    *k = (unary_consts){.op = ot_rm_op(c)};
    switch ((int)k->op) {
    case OT_OP_LeakyRelu: k->alpha = (double)ot_attr_float(n, "alpha", 0.01f); break;
    case OT_OP_HardSigmoid:
        k->alpha = (double)ot_attr_float(n, "alpha", 0.2f);
        k->beta = (double)ot_attr_float(n, "beta", 0.5f);
        break;
    case OT_OP_Selu:
        k->alpha = (double)ot_attr_float(n, "alpha",
                                         n->version < 6 ? 1.6732f : 1.67326319217681884765625f);
        k->beta = (double)ot_attr_float(n, "gamma",
                                        n->version < 6 ? 1.0507f : 1.05070102214813232421875f);
        break;
    case OT_OP_Affine:
        k->alpha = (double)ot_attr_float(n, "alpha", 1);
        k->beta = (double)ot_attr_float(n, "beta", 0);
        break;
    case OT_OP_Shrink:
        k->alpha = (double)ot_attr_float(n, "lambd", 0.5f);
        k->beta = (double)ot_attr_float(n, "bias", 0);
        break;
    case OT_OP_Gelu: {
        const char *how = ot_attr_str(n, "approximate", "none");
        k->tanh = strcmp(how, "tanh") == 0;
        if (!k->tanh && strcmp(how, "none") != 0)
            return ot_call_fail(c, "approximate '%s' is neither none nor tanh", how);
        break;
    }
    default: k->alpha = (double)ot_attr_float(n, "alpha", 1); break;
    }
    return OT_OK;
}

ot_status ot_rm_unary(ot_call *c)
{
    unary_consts k;
    OT_TRY(read_consts(c, &k));
    OT_TRY(ot_rm_need_kind(c, 0, ot_op_row_of(k.op)->types));
    const ot_nd *a = c->in[0];
    OT_TRY(ot_call_output(c, 0, a->dtype, a->rank, a->dims));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    bool in_double = ot_rm_kind(a->dtype) == REF_FLOAT || k.op == OT_OP_Erf || k.op == OT_OP_Shrink;
    ot_rm_walk w;
    OT_TRY(ot_rm_walk_inputs(&w, c, 0, 1, a->rank, a->dims));
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w)) {
        if (in_double) {
            double r[REF_ROW];
            ot_rm_row_f(&w, 0, r);
            if (!function_row(k.op, r, w.n)) activation_row(&k, r, w.n);
            ot_rm_store_f(c->out[0], w.out, 1, w.n, r);
        } else {
            int64_t r[REF_ROW];
            ot_rm_row_i(&w, 0, r);
            for (int64_t i = 0; i < w.n; i++) r[i] = unary_int(&k, r[i], a->dtype == OT_U64);
            ot_rm_store_i(c->out[0], w.out, 1, w.n, r);
        }
    }
    return OT_OK;
}

/* ---- ImageScaler: y[n, c, h, w] = scale x[n, c, h, w] + bias[c], of opsets 1 to 9 ---- */

ot_status ot_rm_image_scaler(ot_call *c)
{
    const ot_attr *bias = ot_attr_find(c->node, "bias");
    double scale = (double)ot_attr_float(c->node, "scale", 1);
    OT_TRY(ot_rm_need_kind(c, 0, ot_op_row_of(OT_OP_ImageScaler)->types));
    const ot_nd *x = c->in[0];
    if (x->rank != 4) return ot_call_fail(c, "the input has rank %u, not 4", x->rank);
    if (!bias || bias->kind != OT_ATTR_FLOATS || (int64_t)bias->n != x->dims[1])
        return ot_call_fail(c, "bias does not have one value for each of %lld channels",
                            (long long)x->dims[1]);
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, x->dims));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    ot_rm_walk w;
    int64_t done = 0, picture = x->dims[2] * x->dims[3];
    OT_TRY(ot_rm_walk_inputs(&w, c, 0, 1, x->rank, x->dims));
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w)) {
        double r[REF_ROW];
        ot_rm_row_f(&w, 0, r);
        for (int64_t i = 0; i < w.n; i++)
            r[i] = scale * r[i] + (double)bias->floats[(done + i) / picture % x->dims[1]];
        ot_rm_store_f(c->out[0], w.out, 1, w.n, r);
        done += w.n;
    }
    return OT_OK;
}

/* ---- Clip ---- */

typedef struct limits {
    bool has_lo, has_hi;
    double lo, hi;    /* floating types */
    int64_t ilo, ihi; /* integers */
} limits;

static ot_status read_limit(ot_call *c, uint32_t k, bool *has, double *f, int64_t *i)
{
    int64_t n;
    if (!ot_rm_given(c, k)) return OT_OK;
    OT_TRY(ot_rm_need_same(c, k));
    if (!ot_nd_elems(c->in[k], &n) || n != 1)
        return ot_call_fail(c, "input %u (a limit) is not one number", k);
    *has = true;
    if (ot_rm_kind(c->in[k]->dtype) == REF_FLOAT)
        ot_rm_load_f(c->in[k], 0, 0, 1, f);
    else
        ot_rm_load_i(c->in[k], 0, 0, 1, i);
    return OT_OK;
}

/* Attributes before version 11 (those of version 6 are the whole range of float32 when absent),
 * inputs after. */
static ot_status read_limits(ot_call *c, limits *l)
{
    const ot_node *n = c->node;
    *l = (limits){0};
    if (n->version >= 11) {
        OT_TRY(read_limit(c, 1, &l->has_lo, &l->lo, &l->ilo));
        return read_limit(c, 2, &l->has_hi, &l->hi, &l->ihi);
    }
    l->has_lo = n->version >= 6 || ot_attr_find(n, "min");
    l->has_hi = n->version >= 6 || ot_attr_find(n, "max");
    l->lo = (double)ot_attr_float(n, "min", -3.4028234663852886e+38f);
    l->hi = (double)ot_attr_float(n, "max", 3.4028234663852886e+38f);
    return OT_OK;
}

/* Min(hi, Max(x, lo)): hi wins when the limits cross. */
static void clip_f(const limits *l, double *r, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (l->has_lo && r[i] < l->lo) r[i] = l->lo;
        if (l->has_hi && r[i] > l->hi) r[i] = l->hi;
    }
}

static void clip_i(const limits *l, bool is_u64, int64_t *r, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (l->has_lo && ot_rm_int_less(r[i], l->ilo, is_u64)) r[i] = l->ilo;
        if (l->has_hi && ot_rm_int_less(l->ihi, r[i], is_u64)) r[i] = l->ihi;
    }
}

ot_status ot_rm_clip(ot_call *c)
{
    limits l;
    OT_TRY(ot_rm_need_kind(c, 0, c->node->version < 11 ? REF_FLOAT : REF_FLOAT | REF_INT));
    OT_TRY(read_limits(c, &l));
    const ot_nd *a = c->in[0];
    OT_TRY(ot_call_output(c, 0, a->dtype, a->rank, a->dims));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    ot_rm_walk w;
    OT_TRY(ot_rm_walk_inputs(&w, c, 0, 1, a->rank, a->dims));
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w)) {
        if (ot_rm_kind(a->dtype) == REF_FLOAT) {
            double r[REF_ROW];
            ot_rm_row_f(&w, 0, r);
            clip_f(&l, r, w.n);
            ot_rm_store_f(c->out[0], w.out, 1, w.n, r);
        } else {
            int64_t r[REF_ROW];
            ot_rm_row_i(&w, 0, r);
            clip_i(&l, a->dtype == OT_U64, r, w.n);
            ot_rm_store_i(c->out[0], w.out, 1, w.n, r);
        }
    }
    return OT_OK;
}

/* ---- IsNaN, IsInf ---- */

ot_status ot_rm_test(ot_call *c)
{
    OT_TRY(ot_rm_need_kind(c, 0, REF_FLOAT));
    bool nan = ot_rm_op(c) == OT_OP_IsNaN;
    bool negative = ot_attr_int(c->node, "detect_negative", 1) != 0;
    bool positive = ot_attr_int(c->node, "detect_positive", 1) != 0;
    const ot_nd *a = c->in[0];
    OT_TRY(ot_call_output(c, 0, OT_BOOL, a->rank, a->dims));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    ot_rm_walk w;
    OT_TRY(ot_rm_walk_inputs(&w, c, 0, 1, a->rank, a->dims));
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w)) {
        double r[REF_ROW];
        int64_t yes[REF_ROW];
        ot_rm_row_f(&w, 0, r);
        for (int64_t i = 0; i < w.n; i++)
            yes[i] = nan ? isnan(r[i]) : isinf(r[i]) && (r[i] > 0 ? positive : negative);
        ot_rm_store_i(c->out[0], w.out, 1, w.n, yes);
    }
    return OT_OK;
}
