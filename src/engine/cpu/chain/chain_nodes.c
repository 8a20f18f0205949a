/* The instructions of each node that a chain takes.
 *
 *   n-ary      Max(a, b, c)       max(max(a, b), c)
 *   limits     Clip(x, lo, hi)    one instruction when both are constants, else at_most(at_least(x,
 *                                 lo), hi)
 *   powers     Pow(x, 2)          x * x; likewise 0.5, 1, 3, -1
 *   channels   BatchNormalization x * s + (B - mean * s), s = scale / sqrt(var + epsilon)
 *   gates      SwiGLU(x, y)       x * sigmoid(alpha x), * y
 *   quantized  DequantizeLinear   (q - zero) * scale, one constant scale for all; QuantizeLinear
 *                                 likewise
 *
 * What is taken: fusion/chain_rule.h; whatever that says has its instructions here.
 */
#include "chain_build.h"

#include <math.h>

/* Operators that are one instruction. */
static const struct {
    ot_op op;
    ot_chain_code floats, masks; /* instruction on float, on bool operands; OT_CH_COUNT: none */
} simple[] = {
#define F(name, code)                           \
    {                                           \
        OT_OP_##name, OT_CH_##code, OT_CH_COUNT \
    }
#define M(name, code)                           \
    {                                           \
        OT_OP_##name, OT_CH_COUNT, OT_CH_##code \
    }
    F(Add, ADD),
    F(Sub, SUB),
    F(Mul, MUL),
    F(Div, DIV),
    F(Mod, MOD),
    F(Pow, POW),
    F(PRelu, PRELU),
    F(Greater, GREATER),
    F(GreaterOrEqual, GREATER_EQUAL),
    F(Less, LESS),
    F(LessOrEqual, LESS_EQUAL),
    {OT_OP_Equal, OT_CH_EQUAL, OT_CH_SAME},
    F(Min, MIN),
    F(Max, MAX),
    F(Sum, ADD),
    F(Mean, ADD),
    M(And, AND),
    M(Or, OR),
    M(Xor, XOR),
    M(Not, NOT),
    F(Neg, NEG),
    F(Abs, ABS),
    F(Sqrt, SQRT),
    F(Reciprocal, RECIPROCAL),
    F(Exp, EXP),
    F(Log, LOG),
    F(Relu, RELU),
    F(Sigmoid, SIGMOID),
    F(HardSwish, HARDSWISH),
    F(Tanh, TANH),
    F(Erf, ERF),
    F(Softplus, SOFTPLUS),
    F(Softsign, SOFTSIGN),
    F(Mish, MISH),
    F(Floor, FLOOR),
    F(Ceil, CEIL),
    F(Round, ROUND),
    F(Sign, SIGN),
    F(Sin, SIN),
    F(Cos, COS),
    F(IsNaN, IS_NAN),
    F(IsInf, IS_INF),
    F(Elu, ELU),
    F(Selu, SELU),
    F(Celu, CELU),
    F(LeakyRelu, PRELU),
    F(HardSigmoid, HARDSIGMOID),
    F(ThresholdedRelu, THRESHOLD),
    F(Shrink, SHRINK),
    F(Swish, SWISH),
    F(SwiGLU, SWISH),
    F(Gelu, GELU),
    F(Clip, CLIP),
    {OT_OP_Where, OT_CH_WHERE, OT_CH_WHERE_MASK},
    {OT_OP_Identity, OT_CH_COPY, OT_CH_COPY_MASK},
    {OT_OP_Dropout, OT_CH_COPY, OT_CH_COUNT},
    {OT_OP_Cast, OT_CH_COPY, OT_CH_COPY_MASK},
    {OT_OP_CastLike, OT_CH_COPY, OT_CH_COPY_MASK},
    F(BatchNormalization, MUL_ADD),
#undef F
#undef M
};

/* Instruction for operands of this type; OT_CH_COUNT: none. */
static ot_chain_code code_of(ot_op op, bool masks)
{
    for (size_t k = 0; k < sizeof simple / sizeof *simple; k++)
        if (simple[k].op == op) return masks ? simple[k].masks : simple[k].floats;
    return OT_CH_COUNT;
}

/* Of quantized operators, by number (ot_chain_quantized_op). */
static const ot_chain_code quantized_ops[] = {OT_CH_ADD, OT_CH_MUL, OT_CH_SIGMOID, OT_CH_PRELU};

/* ---- instructions ---- */

static uint32_t emit1(ot_chain_build *b, ot_chain_code code, uint32_t x)
{
    return ot_chain_emit(b, code, x, 0, 0);
}
static uint32_t emit2(ot_chain_build *b, ot_chain_code code, uint32_t x, uint32_t y)
{
    return ot_chain_emit(b, code, x, y, 0);
}
static uint32_t number(ot_chain_build *b, float f)
{
    return ot_chain_constant(b, (ot_chain_cell){.constant.f = f});
}

/* All operands, one after the other. */
static uint32_t many(ot_chain_build *b, const ot_node *n, ot_chain_code code)
{
    uint32_t sum = ot_chain_operand(b, n->in[0], false);
    for (uint32_t k = 1; k < n->n_in; k++)
        sum = emit2(b, code, sum, ot_chain_operand(b, n->in[k], false));
    return n->op == OT_OP_Mean ? emit2(b, OT_CH_DIV, sum, number(b, (float)n->n_in)) : sum;
}

static uint32_t power(ot_chain_build *b, uint32_t x, uint32_t y)
{
    if (!ot_chain_is_constant(b, y)) return emit2(b, OT_CH_POW, x, y);
    float p = b->cells[y].cell.constant.f;
    if (p == 1) return emit1(b, OT_CH_COPY, x);
    if (p == 2) return emit2(b, OT_CH_MUL, x, x);
    if (p == 3) return emit2(b, OT_CH_MUL, emit2(b, OT_CH_MUL, x, x), x);
    if (p == 0.5f) return emit1(b, OT_CH_ROOT, x);
    if (p == -1) return emit1(b, OT_CH_RECIPROCAL, x);
    return emit2(b, OT_CH_POW, x, y);
}

/* A limit that is not given is OT_NONE. */
static uint32_t clip(ot_chain_build *b, const ot_node *n, uint32_t x)
{
    uint32_t lo = OT_NONE, hi = OT_NONE;
    if (n->version >= 11) {
        if (n->n_in > 1 && n->in[1] != OT_NONE) lo = ot_chain_operand(b, n->in[1], false);
        if (n->n_in > 2 && n->in[2] != OT_NONE) hi = ot_chain_operand(b, n->in[2], false);
    } else {
        if (n->version >= 6 || ot_attr_find(n, "min"))
            lo = number(b, ot_attr_float(n, "min", -3.4028234663852886e+38f));
        if (n->version >= 6 || ot_attr_find(n, "max"))
            hi = number(b, ot_attr_float(n, "max", 3.4028234663852886e+38f));
    }
    if (lo != OT_NONE && hi != OT_NONE && ot_chain_is_constant(b, lo) &&
        ot_chain_is_constant(b, hi))
        return ot_chain_emit(b, OT_CH_CLIP, x, lo, hi);
    if (lo != OT_NONE) x = emit2(b, OT_CH_AT_LEAST, x, lo);
    if (hi != OT_NONE) x = emit2(b, OT_CH_AT_MOST, x, hi);
    return lo == OT_NONE && hi == OT_NONE ? emit1(b, OT_CH_COPY, x) : x;
}

static uint32_t batch_norm(ot_chain_build *b, const ot_node *n, uint32_t x)
{
    uint32_t scale = ot_chain_operand(b, n->in[1], true),
             shift = ot_chain_operand(b, n->in[2], true);
    uint32_t mean = ot_chain_operand(b, n->in[3], true), var = ot_chain_operand(b, n->in[4], true);
    uint32_t deviation = emit1(
        b, OT_CH_SQRT, emit2(b, OT_CH_ADD, var, number(b, ot_attr_float(n, "epsilon", 1e-5f))));
    uint32_t factor = emit2(b, OT_CH_DIV, scale, deviation);
    return ot_chain_emit(b, OT_CH_MUL_ADD, x, factor,
                         emit2(b, OT_CH_SUB, shift, emit2(b, OT_CH_MUL, mean, factor)));
}

static uint32_t cast(ot_chain_build *b, const ot_node *n, uint32_t x)
{
    ot_dtype to = ot_chain_cast_to(b->g, n);
    bool from_mask = b->cells[x].cell.type == OT_CHAIN_MASK, to_mask = to == OT_BOOL;
    if (from_mask) return emit1(b, to_mask ? OT_CH_COPY_MASK : OT_CH_TO_FLOAT, x);
    if (ot_dtype_is_half(to)) return ot_chain_round(b, to, x);
    return emit1(b, to_mask ? OT_CH_NOT_ZERO : OT_CH_COPY, x);
}

/* Operators with attributes that are numbers. */
static uint32_t with_numbers(ot_chain_build *b, const ot_node *n, ot_chain_code code, uint32_t x)
{
    float alpha = 1, beta = 0;
    switch ((int)n->op) {
    case OT_OP_LeakyRelu: alpha = ot_attr_float(n, "alpha", 0.01f); break;
    case OT_OP_HardSigmoid:
        alpha = ot_attr_float(n, "alpha", 0.2f);
        beta = ot_attr_float(n, "beta", 0.5f);
        break;
    case OT_OP_Selu:
        alpha = ot_attr_float(n, "alpha", n->version < 6 ? 1.6732f : 1.67326319217681884765625f);
        beta = ot_attr_float(n, "gamma", n->version < 6 ? 1.0507f : 1.05070102214813232421875f);
        break;
    case OT_OP_Shrink:
        alpha = ot_attr_float(n, "lambd", 0.5f);
        beta = ot_attr_float(n, "bias", 0);
        break;
    default: alpha = ot_attr_float(n, "alpha", 1); break;
    }
    if (code == OT_CH_SWISH && alpha == 1) return emit1(b, OT_CH_SILU, x);
    if (code == OT_CH_SWISH && !ot_chain_is_gate(alpha))
        return emit2(b, OT_CH_MUL, x,
                     emit1(b, OT_CH_SIGMOID, emit2(b, OT_CH_MUL, x, number(b, alpha))));
    return ot_chain_emit(b, code, x, number(b, alpha),
                         ot_chain_codes[code].operands > 2 ? number(b, beta) : 0);
}

static uint32_t is_inf(ot_chain_build *b, const ot_node *n, uint32_t x)
{
    bool negative = ot_attr_int(n, "detect_negative", 1) != 0,
         positive = ot_attr_int(n, "detect_positive", 1) != 0;
    if (negative && positive) return emit1(b, OT_CH_IS_INF, x);
    if (negative || positive) return emit1(b, negative ? OT_CH_IS_MINUS_INF : OT_CH_IS_PLUS_INF, x);
    uint32_t nan = emit1(b, OT_CH_IS_NAN, x);
    return emit2(b, OT_CH_XOR, nan, nan); /* false everywhere, in the shape of x */
}

static uint32_t quantized(ot_chain_build *b, const ot_node *n, uint32_t x)
{
    float scale, zero;
    ot_dtype t;
    if (!ot_chain_quantizer(b->g, n, &t, &scale, &zero)) return OT_NONE;
    ot_chain_code code = n->op == OT_OP_QuantizeLinear ? t == OT_I8 ? OT_CH_TO_I8 : OT_CH_TO_U8
                         : t == OT_I8                  ? OT_CH_FROM_I8
                                                       : OT_CH_FROM_U8;
    return ot_chain_emit(b, code, x, number(b, scale), number(b, zero));
}

/* Bytes of type t to real numbers, or back. */
static uint32_t convert(ot_chain_build *b, const ot_node *n, uint32_t k, ot_dtype t, bool back,
                        uint32_t x)
{
    float scale, zero;
    if (!ot_chain_scale(b->g, n, k, t, &scale, &zero)) return OT_NONE;
    ot_chain_code code = back         ? t == OT_I8 ? OT_CH_TO_I8 : OT_CH_TO_U8
                         : t == OT_I8 ? OT_CH_FROM_I8
                                      : OT_CH_FROM_U8;
    return ot_chain_emit(b, code, x, number(b, scale), number(b, zero));
}

static uint32_t quantized_node(ot_chain_build *b, const ot_node *n)
{
    ot_dtype t = b->g->values[n->out[0]].dtype;
    uint32_t tensors, at = ot_chain_quantized_op(n, &tensors),
                      x = convert(b, n, 1, t, false, ot_chain_operand(b, n->in[0], false)), y = 0;
    if (tensors > 1) y = convert(b, n, 4, t, false, ot_chain_operand(b, n->in[3], false));
    if (quantized_ops[at] == OT_CH_PRELU) y = number(b, ot_attr_float(n, "alpha", 0.01f));
    return convert(b, n, 3 * tensors, t, true, ot_chain_emit(b, quantized_ops[at], x, y, 0));
}

uint32_t ot_chain_node(ot_chain_build *b, const ot_node *n)
{
    if (n->op == OT_OP_OPAQUE) return quantized_node(b, n);
    uint32_t x = ot_chain_operand(b, n->in[0], false);
    if (x == OT_NONE) return OT_NONE;
    if (n->op == OT_OP_DequantizeLinear || n->op == OT_OP_QuantizeLinear) return quantized(b, n, x);
    ot_chain_code code = code_of(n->op, b->g->values[n->in[n->op == OT_OP_Where ? 1 : 0]].dtype ==
                                            OT_BOOL);
    switch ((int)n->op) {
    case OT_OP_Min:
    case OT_OP_Max:
    case OT_OP_Sum:
    case OT_OP_Mean: return many(b, n, code);
    case OT_OP_Pow: return power(b, x, ot_chain_operand(b, n->in[1], false));
    case OT_OP_Clip: return clip(b, n, x);
    case OT_OP_BatchNormalization: return batch_norm(b, n, x);
    case OT_OP_Cast:
    case OT_OP_CastLike: return cast(b, n, x);
    case OT_OP_Dropout: return emit1(b, code, x);
    case OT_OP_IsInf: return is_inf(b, n, x);
    case OT_OP_Gelu:
        return emit1(
            b, strcmp(ot_attr_str(n, "approximate", "none"), "tanh") ? code : OT_CH_GELU_TANH, x);
    case OT_OP_LeakyRelu: return with_numbers(b, n, code, x);
    case OT_OP_SwiGLU:
        return emit2(b, OT_CH_MUL, with_numbers(b, n, code, x),
                     ot_chain_operand(b, n->in[1], false));
    default: {
        const ot_chain_code_info *info = &ot_chain_codes[code];
        if (info->parameters) return with_numbers(b, n, code, x);
        uint32_t y = info->operands > 1 ? ot_chain_operand(b, n->in[1], false) : 0;
        uint32_t z = info->operands > 2 ? ot_chain_operand(b, n->in[2], false) : 0;
        return ot_chain_emit(b, code, x, y, z);
    }
    }
}
