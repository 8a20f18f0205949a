/* Which nodes a chain takes, and the instructions of each.
 *
 *   n-ary      Max(a, b, c)       max(max(a, b), c)
 *   limits     Clip(x, lo, hi)    one instruction when both are constants, else at_most(at_least(x, lo), hi)
 *   powers     Pow(x, 2)          x * x; likewise 0.5, 1, 3, -1
 *   channels   BatchNormalization x * s + (B - mean * s), s = scale / sqrt(var + epsilon)
 *   gates      SwiGLU(x, y)       x * sigmoid(alpha x), * y
 *   quantized  DequantizeLinear   (q - zero) * scale, one constant scale for all; QuantizeLinear likewise
 *
 * Both questions are answered by the same tables, so that what is taken can be compiled.
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

/* Operators of com.microsoft on quantized tensors: their operands are followed by scale and zero point, the last of them by those
 * of the result. */
static const struct {
    const char *name;
    ot_chain_code code;
    uint32_t tensors;
} quantized_ops[] = {{"QLinearAdd", OT_CH_ADD, 2},
                     {"QLinearMul", OT_CH_MUL, 2},
                     {"QLinearSigmoid", OT_CH_SIGMOID, 1},
                     {"QLinearLeakyRelu", OT_CH_PRELU, 1}};

/* Number in that table; OT_NONE. */
static uint32_t quantized_op(const ot_node *n)
{
    if (n->op != OT_OP_OPAQUE || strcmp(n->domain, "com.microsoft")) return OT_NONE;
    for (uint32_t k = 0; k < sizeof quantized_ops / sizeof *quantized_ops; k++)
        if (strcmp(n->op_type, quantized_ops[k].name) == 0) return k;
    return OT_NONE;
}

/* ---- what is taken ---- */

static const ot_value *value_of(const ot_graph *g, const ot_node *n, uint32_t k)
{
    return k < n->n_in && n->in[k] != OT_NONE ? &g->values[n->in[k]] : NULL;
}

static bool has_type(const ot_graph *g, const ot_node *n, uint32_t k, ot_dtype t)
{
    const ot_value *v = value_of(g, n, k);
    return v && v->is_tensor && v->dtype == t;
}

static bool takes_clip(const ot_graph *g, const ot_node *n)
{
    if (n->version < 11) return n->n_in == 1;
    for (uint32_t k = 1; k < n->n_in; k++)
        if (value_of(g, n, k) && !has_type(g, n, k, OT_F32)) return false;
    return n->n_in <= 3;
}

static bool takes_dropout(const ot_graph *g, const ot_node *n)
{
    float yes;
    for (uint32_t k = 1; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) return false;
    if (n->version < 7 && !ot_attr_int(n, "is_test", 0)) return false;
    return !value_of(g, n, 2) || (ot_chain_known(g, n->in[2], &yes) && yes == 0);
}

static bool takes_batch_norm(const ot_graph *g, const ot_node *n)
{
    if (n->n_in != 5 || g->values[n->in[0]].rank < 2) return false;
    for (uint32_t k = 1; k < 5; k++)
        if (!has_type(g, n, k, OT_F32)) return false;
    for (uint32_t k = 1; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) return false;
    if (n->version >= 14 && ot_attr_int(n, "training_mode", 0)) return false;
    return n->version >= 9 || ot_attr_int(n, "spatial", 1);
}

/* The type a cast makes. */
static ot_dtype cast_to(const ot_graph *g, const ot_node *n)
{
    if (n->op == OT_OP_CastLike) return value_of(g, n, 1) ? value_of(g, n, 1)->dtype : OT_DT_UNKNOWN;
    int64_t t = ot_attr_int(n, "to", 0);
    return t == OT_F32 ? OT_F32 : t == OT_BOOL ? OT_BOOL : OT_DT_UNKNOWN;
}

static bool same_types(const ot_graph *g, const ot_node *n, uint32_t first, ot_dtype t)
{
    for (uint32_t k = first; k < n->n_in; k++)
        if (!has_type(g, n, k, t)) return false;
    return true;
}

/* Attributes, and operands other than the first. */
static bool takes_rest(const ot_graph *g, const ot_node *n, ot_dtype t)
{
    switch ((int)n->op) {
    case OT_OP_Clip: return takes_clip(g, n);
    case OT_OP_Dropout: return takes_dropout(g, n);
    case OT_OP_BatchNormalization: return takes_batch_norm(g, n);
    case OT_OP_Cast:
    case OT_OP_CastLike: {
        ot_dtype to = cast_to(g, n);
        return to == OT_F32 || to == OT_BOOL;
    }
    case OT_OP_Where: return n->n_in == 3 && has_type(g, n, 0, OT_BOOL) && same_types(g, n, 1, t);
    case OT_OP_Mod: return n->n_in == 2 && ot_attr_int(n, "fmod", 0) != 0 && same_types(g, n, 0, t);
    case OT_OP_PRelu: return n->n_in == 2 && n->version >= 7 && same_types(g, n, 0, t);
    case OT_OP_SwiGLU: return n->n_in == 2 && same_types(g, n, 0, t);
    case OT_OP_Celu: return ot_attr_float(n, "alpha", 1) > 0;
    case OT_OP_Gelu: {
        const char *how = ot_attr_str(n, "approximate", "none");
        return strcmp(how, "tanh") == 0 || strcmp(how, "none") == 0;
    }
    case OT_OP_Min:
    case OT_OP_Max:
    case OT_OP_Sum:
    case OT_OP_Mean: return same_types(g, n, 0, t);
    default: {
        const ot_chain_code code = code_of(n->op, t == OT_BOOL);
        uint32_t operands = (uint32_t)(ot_chain_codes[code].operands - ot_chain_codes[code].parameters);
        if (n->op == OT_OP_LeakyRelu) operands = 1;
        if (n->version < 7 && operands == 2 && ot_attr_int(n, "broadcast", 0)) return false;
        return n->n_in == operands && same_types(g, n, 0, t);
    }
    }
}

/* Constant scale (input k) and zero point (behind it) of a tensor of bytes of type t: one of each. */
static bool constant_quantizer(const ot_graph *g, const ot_node *n, uint32_t k, ot_dtype t, float *scale, float *zero)
{
    int64_t count;
    if ((t != OT_U8 && t != OT_I8) || !has_type(g, n, k, OT_F32) || !ot_chain_known(g, n->in[k], scale)) return false;
    if (g->values[n->in[k]].rank > 1 || !(*scale > 0) || *scale > 3e38f) return false;
    *zero = 0;
    const ot_value *z = value_of(g, n, k + 1);
    if (!z) return true;
    if (!z->init || z->overridable || z->is_input || z->dtype != t || !z->init->data || z->init->dtype != t || z->rank > 1)
        return false;
    if (!ot_product(z->init->dims, z->init->rank, &count) || count != 1) return false;
    *zero = t == OT_U8 ? (float)*(const uint8_t *)z->init->data : (float)*(const int8_t *)z->init->data;
    return true;
}

static bool takes_quantized(const ot_graph *g, const ot_node *n, uint32_t at)
{
    uint32_t tensors = quantized_ops[at].tensors;
    ot_dtype t = g->values[n->out[0]].dtype;
    float scale, zero;
    if (n->n_in < 3 * tensors + 1 || n->n_out != 1) return false;
    for (uint32_t k = 0; k <= tensors; k++) {
        if (k < tensors && !has_type(g, n, 3 * k, t)) return false;
        if (!constant_quantizer(g, n, k < tensors ? 3 * k + 1 : 3 * tensors, t, &scale, &zero)) return false;
    }
    return true;
}

/* Scale and zero point of Quantize- or DequantizeLinear; bytes of type t. */
static bool quantizer(const ot_graph *g, const ot_node *n, ot_dtype t, float *scale, float *zero)
{
    int64_t asked = ot_attr_int(n, "output_dtype", 0), precision = ot_attr_int(n, "precision", 0);
    ot_dtype made = n->op == OT_OP_QuantizeLinear ? t : OT_F32;
    if (ot_attr_int(n, "block_size", 0) > 0 || !constant_quantizer(g, n, 1, t, scale, zero)) return false;
    if ((asked != 0 && asked != (int64_t)made) || (precision != 0 && precision != OT_F32)) return false;
    return value_of(g, n, 2) || t == OT_U8 || n->op == OT_OP_DequantizeLinear || asked == (int64_t)t;
}

static ot_dtype quantized_type(const ot_graph *g, const ot_node *n)
{
    return g->values[n->op == OT_OP_QuantizeLinear ? n->out[0] : n->in[0]].dtype;
}

bool ot_chain_quantizer(const ot_graph *g, const ot_node *n, ot_dtype *t, float *scale, float *zero)
{
    if (n->op != OT_OP_DequantizeLinear && n->op != OT_OP_QuantizeLinear) return false;
    if (n->n_out != 1 || n->out[0] == OT_NONE || !value_of(g, n, 0) || !value_of(g, n, 0)->is_tensor) return false;
    *t = quantized_type(g, n);
    bool floats = n->op == OT_OP_DequantizeLinear ? g->values[n->out[0]].dtype == OT_F32 : has_type(g, n, 0, OT_F32);
    return floats && quantizer(g, n, *t, scale, zero);
}

bool ot_chain_takes(const ot_graph *g, const ot_node *n)
{
    float scale, zero;
    ot_dtype t;
    if (n->n_in == 0 || n->n_out == 0 || n->out[0] == OT_NONE || n->n_captured) return false;
    if (n->op == OT_OP_OPAQUE) return quantized_op(n) != OT_NONE && takes_quantized(g, n, quantized_op(n));
    if (n->op == OT_OP_DequantizeLinear || n->op == OT_OP_QuantizeLinear) return ot_chain_quantizer(g, n, &t, &scale, &zero);
    const ot_value *first = value_of(g, n, n->op == OT_OP_Where ? 1 : 0);
    if (!first || !first->is_tensor || (first->dtype != OT_F32 && first->dtype != OT_BOOL)) return false;
    if (code_of(n->op, first->dtype == OT_BOOL) == OT_CH_COUNT) return false;
    return takes_rest(g, n, first->dtype);
}

/* ---- instructions ---- */

static uint32_t emit1(ot_chain_build *b, ot_chain_code code, uint32_t x) { return ot_chain_emit(b, code, x, 0, 0); }
static uint32_t emit2(ot_chain_build *b, ot_chain_code code, uint32_t x, uint32_t y) { return ot_chain_emit(b, code, x, y, 0); }
static uint32_t number(ot_chain_build *b, float f) { return ot_chain_constant(b, (ot_chain_cell){.constant.f = f}); }

/* All operands, one after the other. */
static uint32_t many(ot_chain_build *b, const ot_node *n, ot_chain_code code)
{
    uint32_t sum = ot_chain_operand(b, n->in[0], false);
    for (uint32_t k = 1; k < n->n_in; k++) sum = emit2(b, code, sum, ot_chain_operand(b, n->in[k], false));
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
        if (n->version >= 6 || ot_attr_find(n, "min")) lo = number(b, ot_attr_float(n, "min", -3.4028234663852886e+38f));
        if (n->version >= 6 || ot_attr_find(n, "max")) hi = number(b, ot_attr_float(n, "max", 3.4028234663852886e+38f));
    }
    if (lo != OT_NONE && hi != OT_NONE && ot_chain_is_constant(b, lo) && ot_chain_is_constant(b, hi))
        return ot_chain_emit(b, OT_CH_CLIP, x, lo, hi);
    if (lo != OT_NONE) x = emit2(b, OT_CH_AT_LEAST, x, lo);
    if (hi != OT_NONE) x = emit2(b, OT_CH_AT_MOST, x, hi);
    return lo == OT_NONE && hi == OT_NONE ? emit1(b, OT_CH_COPY, x) : x;
}

static uint32_t batch_norm(ot_chain_build *b, const ot_node *n, uint32_t x)
{
    uint32_t scale = ot_chain_operand(b, n->in[1], true), shift = ot_chain_operand(b, n->in[2], true);
    uint32_t mean = ot_chain_operand(b, n->in[3], true), var = ot_chain_operand(b, n->in[4], true);
    uint32_t deviation = emit1(b, OT_CH_SQRT, emit2(b, OT_CH_ADD, var, number(b, ot_attr_float(n, "epsilon", 1e-5f))));
    uint32_t factor = emit2(b, OT_CH_DIV, scale, deviation);
    return ot_chain_emit(b, OT_CH_MUL_ADD, x, factor, emit2(b, OT_CH_SUB, shift, emit2(b, OT_CH_MUL, mean, factor)));
}

static uint32_t cast(ot_chain_build *b, const ot_node *n, uint32_t x)
{
    bool from_mask = b->cells[x].cell.type == OT_CHAIN_MASK, to_mask = cast_to(b->g, n) == OT_BOOL;
    if (from_mask) return emit1(b, to_mask ? OT_CH_COPY_MASK : OT_CH_TO_FLOAT, x);
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
        return emit2(b, OT_CH_MUL, x, emit1(b, OT_CH_SIGMOID, emit2(b, OT_CH_MUL, x, number(b, alpha))));
    return ot_chain_emit(b, code, x, number(b, alpha), ot_chain_codes[code].operands > 2 ? number(b, beta) : 0);
}

static uint32_t is_inf(ot_chain_build *b, const ot_node *n, uint32_t x)
{
    bool negative = ot_attr_int(n, "detect_negative", 1) != 0, positive = ot_attr_int(n, "detect_positive", 1) != 0;
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
static uint32_t convert(ot_chain_build *b, const ot_node *n, uint32_t k, ot_dtype t, bool back, uint32_t x)
{
    float scale, zero;
    if (!constant_quantizer(b->g, n, k, t, &scale, &zero)) return OT_NONE;
    ot_chain_code code = back ? t == OT_I8 ? OT_CH_TO_I8 : OT_CH_TO_U8 : t == OT_I8 ? OT_CH_FROM_I8 : OT_CH_FROM_U8;
    return ot_chain_emit(b, code, x, number(b, scale), number(b, zero));
}

static uint32_t quantized_node(ot_chain_build *b, const ot_node *n, uint32_t at)
{
    ot_dtype t = b->g->values[n->out[0]].dtype;
    uint32_t tensors = quantized_ops[at].tensors, x = convert(b, n, 1, t, false, ot_chain_operand(b, n->in[0], false)), y = 0;
    if (tensors > 1) y = convert(b, n, 4, t, false, ot_chain_operand(b, n->in[3], false));
    if (quantized_ops[at].code == OT_CH_PRELU) y = number(b, ot_attr_float(n, "alpha", 0.01f));
    return convert(b, n, 3 * tensors, t, true, ot_chain_emit(b, quantized_ops[at].code, x, y, 0));
}

uint32_t ot_chain_node(ot_chain_build *b, const ot_node *n)
{
    if (n->op == OT_OP_OPAQUE) return quantized_node(b, n, quantized_op(n));
    uint32_t x = ot_chain_operand(b, n->in[0], false);
    if (x == OT_NONE) return OT_NONE;
    if (n->op == OT_OP_DequantizeLinear || n->op == OT_OP_QuantizeLinear) return quantized(b, n, x);
    ot_chain_code code = code_of(n->op, b->g->values[n->in[n->op == OT_OP_Where ? 1 : 0]].dtype == OT_BOOL);
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
    case OT_OP_Gelu: return emit1(b, strcmp(ot_attr_str(n, "approximate", "none"), "tanh") ? code : OT_CH_GELU_TANH, x);
    case OT_OP_LeakyRelu: return with_numbers(b, n, code, x);
    case OT_OP_SwiGLU: return emit2(b, OT_CH_MUL, with_numbers(b, n, code, x), ot_chain_operand(b, n->in[1], false));
    default: {
        const ot_chain_code_info *info = &ot_chain_codes[code];
        if (info->parameters) return with_numbers(b, n, code, x);
        uint32_t y = info->operands > 1 ? ot_chain_operand(b, n->in[1], false) : 0;
        uint32_t z = info->operands > 2 ? ot_chain_operand(b, n->in[2], false) : 0;
        return ot_chain_emit(b, code, x, y, z);
    }
    }
}
