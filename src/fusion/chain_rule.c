/* Which element-wise nodes run in one pass over memory with others: see chain_rule.h. */
#include "chain_rule.h"

#include "base/half_float.h"

/* Operators, the types they are taken with, and how many operands they must have; 0: takes_rest
 * knows. */
static const struct {
    ot_op op;
    bool floats, masks;
    uint32_t operands;
} simple[] = {
    {OT_OP_Add, true, false, 2},
    {OT_OP_Sub, true, false, 2},
    {OT_OP_Mul, true, false, 2},
    {OT_OP_Div, true, false, 2},
    {OT_OP_Mod, true, false, 2},
    {OT_OP_Pow, true, false, 2},
    {OT_OP_PRelu, true, false, 2},
    {OT_OP_Greater, true, false, 2},
    {OT_OP_GreaterOrEqual, true, false, 2},
    {OT_OP_Less, true, false, 2},
    {OT_OP_LessOrEqual, true, false, 2},
    {OT_OP_Equal, true, true, 2},
    {OT_OP_Min, true, false, 0},
    {OT_OP_Max, true, false, 0},
    {OT_OP_Sum, true, false, 0},
    {OT_OP_Mean, true, false, 0},
    {OT_OP_And, false, true, 2},
    {OT_OP_Or, false, true, 2},
    {OT_OP_Xor, false, true, 2},
    {OT_OP_Not, false, true, 1},
    {OT_OP_Neg, true, false, 1},
    {OT_OP_Abs, true, false, 1},
    {OT_OP_Sqrt, true, false, 1},
    {OT_OP_Reciprocal, true, false, 1},
    {OT_OP_Exp, true, false, 1},
    {OT_OP_Log, true, false, 1},
    {OT_OP_Relu, true, false, 1},
    {OT_OP_Sigmoid, true, false, 1},
    {OT_OP_HardSwish, true, false, 1},
    {OT_OP_Tanh, true, false, 1},
    {OT_OP_Erf, true, false, 1},
    {OT_OP_Softplus, true, false, 1},
    {OT_OP_Softsign, true, false, 1},
    {OT_OP_Mish, true, false, 1},
    {OT_OP_Floor, true, false, 1},
    {OT_OP_Ceil, true, false, 1},
    {OT_OP_Round, true, false, 1},
    {OT_OP_Sign, true, false, 1},
    {OT_OP_Sin, true, false, 1},
    {OT_OP_Cos, true, false, 1},
    {OT_OP_IsNaN, true, false, 1},
    {OT_OP_IsInf, true, false, 1},
    {OT_OP_Elu, true, false, 1},
    {OT_OP_Selu, true, false, 1},
    {OT_OP_Celu, true, false, 1},
    {OT_OP_LeakyRelu, true, false, 1},
    {OT_OP_HardSigmoid, true, false, 1},
    {OT_OP_ThresholdedRelu, true, false, 1},
    {OT_OP_Shrink, true, false, 1},
    {OT_OP_Swish, true, false, 1},
    {OT_OP_SwiGLU, true, false, 2},
    {OT_OP_Gelu, true, false, 1},
    {OT_OP_Clip, true, false, 0},
    {OT_OP_Where, true, true, 0},
    {OT_OP_Identity, true, true, 1},
    {OT_OP_Dropout, true, false, 0},
    {OT_OP_Cast, true, true, 0},
    {OT_OP_CastLike, true, true, 0},
    {OT_OP_BatchNormalization, true, false, 0},
};

/* Row of an operator for operands of this type; OT_NONE. */
static uint32_t row_of(ot_op op, bool masks)
{
    for (uint32_t k = 0; k < sizeof simple / sizeof *simple; k++)
        if (simple[k].op == op) return (masks ? simple[k].masks : simple[k].floats) ? k : OT_NONE;
    return OT_NONE;
}

/* Operators of com.microsoft on quantized tensors: their operands are followed by scale and zero
 * point, the last of them by those of the result. */
static const struct {
    const char *name;
    uint32_t tensors;
} quantized_ops[] = {
    {"QLinearAdd", 2}, {"QLinearMul", 2}, {"QLinearSigmoid", 1}, {"QLinearLeakyRelu", 1}};

uint32_t ot_chain_quantized_op(const ot_node *n, uint32_t *tensors)
{
    if (n->op != OT_OP_OPAQUE || strcmp(n->domain, "com.microsoft")) return OT_NONE;
    for (uint32_t k = 0; k < sizeof quantized_ops / sizeof *quantized_ops; k++) {
        *tensors = quantized_ops[k].tensors;
        if (strcmp(n->op_type, quantized_ops[k].name) == 0) return k;
    }
    return OT_NONE;
}

/* A number of 16 bits. */
static float half_number(ot_dtype t, const void *data)
{
    uint16_t h;
    memcpy(&h, data, sizeof h);
    return t == OT_BF16 ? ot_bf16_to_f32(h) : ot_f16_to_f32(h);
}

bool ot_chain_known(const ot_graph *g, ot_id id, float *out)
{
    const ot_value *v = &g->values[id];
    const ot_tensor *t = v->init;
    int64_t n;
    if (v->overridable || v->is_input || (!ot_dtype_is_real(v->dtype) && v->dtype != OT_BOOL))
        return false;
    if (t && t->data && t->dtype == v->dtype && ot_product(t->dims, t->rank, &n) && n == 1) {
        if (ot_dtype_is_half(t->dtype))
            *out = half_number(t->dtype, t->data);
        else if (t->dtype == OT_F32)
            memcpy(out, t->data, sizeof *out);
        else
            *out = *(const uint8_t *)t->data != 0;
        return true;
    }
    if (v->known_n != 1 || (v->dtype == OT_BOOL ? !v->known : !v->known_floats)) return false;
    *out = v->known ? (float)(v->known[0] != 0) : (float)v->known_floats[0];
    return true;
}

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
        if (value_of(g, n, k) && !has_type(g, n, k, g->values[n->in[0]].dtype)) return false;
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
        if (!value_of(g, n, k) || !value_of(g, n, k)->is_tensor ||
            !ot_dtype_is_real(value_of(g, n, k)->dtype))
            return false;
    for (uint32_t k = 1; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) return false;
    if (n->version >= 14 && ot_attr_int(n, "training_mode", 0)) return false;
    return n->version >= 9 || ot_attr_int(n, "spatial", 1);
}

ot_dtype ot_chain_cast_to(const ot_graph *g, const ot_node *n)
{
    if (n->op == OT_OP_CastLike)
        return value_of(g, n, 1) ? value_of(g, n, 1)->dtype : OT_DT_UNKNOWN;
    int64_t t = ot_attr_int(n, "to", 0);
    return t == OT_BOOL || t == OT_F32 || t == OT_F16 || t == OT_BF16 ? (ot_dtype)t : OT_DT_UNKNOWN;
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
        ot_dtype to = ot_chain_cast_to(g, n);
        return ot_dtype_is_real(to) || to == OT_BOOL;
    }
    case OT_OP_Where: return n->n_in == 3 && has_type(g, n, 0, OT_BOOL) && same_types(g, n, 1, t);
    case OT_OP_Mod: return n->n_in == 2 && ot_attr_int(n, "fmod", 0) != 0 && same_types(g, n, 0, t);
    case OT_OP_PRelu: return n->n_in == 2 && n->version >= 7 && same_types(g, n, 0, t);
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
        uint32_t operands = simple[row_of(n->op, t == OT_BOOL)].operands;
        if (n->version < 7 && operands == 2 && ot_attr_int(n, "broadcast", 0)) return false;
        return n->n_in == operands && same_types(g, n, 0, t);
    }
    }
}

bool ot_chain_scale(const ot_graph *g, const ot_node *n, uint32_t k, ot_dtype t, float *scale,
                    float *zero)
{
    int64_t count;
    if ((t != OT_U8 && t != OT_I8) || !has_type(g, n, k, OT_F32) ||
        !ot_chain_known(g, n->in[k], scale))
        return false;
    if (g->values[n->in[k]].rank > 1 || !(*scale > 0) || *scale > 3e38f) return false;
    *zero = 0;
    const ot_value *z = value_of(g, n, k + 1);
    if (!z) return true;
    if (!z->init || z->overridable || z->is_input || z->dtype != t || !z->init->data ||
        z->init->dtype != t || z->rank > 1)
        return false;
    if (!ot_product(z->init->dims, z->init->rank, &count) || count != 1) return false;
    *zero = t == OT_U8 ? (float)*(const uint8_t *)z->init->data
                       : (float)*(const int8_t *)z->init->data;
    return true;
}

static bool takes_quantized(const ot_graph *g, const ot_node *n)
{
    uint32_t tensors;
    if (ot_chain_quantized_op(n, &tensors) == OT_NONE) return false;
    ot_dtype t = g->values[n->out[0]].dtype;
    float scale, zero;
    if (n->n_in < 3 * tensors + 1 || n->n_out != 1) return false;
    for (uint32_t k = 0; k <= tensors; k++) {
        if (k < tensors && !has_type(g, n, 3 * k, t)) return false;
        if (!ot_chain_scale(g, n, k < tensors ? 3 * k + 1 : 3 * tensors, t, &scale, &zero))
            return false;
    }
    return true;
}

/* Scale and zero point of Quantize- or DequantizeLinear; bytes of type t. */
static bool quantizer(const ot_graph *g, const ot_node *n, ot_dtype t, float *scale, float *zero)
{
    int64_t asked = ot_attr_int(n, "output_dtype", 0), precision = ot_attr_int(n, "precision", 0);
    ot_dtype made = n->op == OT_OP_QuantizeLinear ? t : OT_F32;
    if (ot_attr_int(n, "block_size", 0) > 0 || !ot_chain_scale(g, n, 1, t, scale, zero))
        return false;
    if ((asked != 0 && asked != (int64_t)made) || (precision != 0 && precision != OT_F32))
        return false;
    return value_of(g, n, 2) || t == OT_U8 || n->op == OT_OP_DequantizeLinear ||
           asked == (int64_t)t;
}

static ot_dtype quantized_type(const ot_graph *g, const ot_node *n)
{
    return g->values[n->op == OT_OP_QuantizeLinear ? n->out[0] : n->in[0]].dtype;
}

bool ot_chain_quantizer(const ot_graph *g, const ot_node *n, ot_dtype *t, float *scale, float *zero)
{
    if (n->op != OT_OP_DequantizeLinear && n->op != OT_OP_QuantizeLinear) return false;
    if (n->n_out != 1 || n->out[0] == OT_NONE || !value_of(g, n, 0) ||
        !value_of(g, n, 0)->is_tensor)
        return false;
    *t = quantized_type(g, n);
    bool floats = n->op == OT_OP_DequantizeLinear ? g->values[n->out[0]].dtype == OT_F32
                                                  : has_type(g, n, 0, OT_F32);
    return floats && quantizer(g, n, *t, scale, zero);
}

bool ot_chain_takes(const ot_graph *g, const ot_node *n)
{
    float scale, zero;
    ot_dtype t;
    if (n->n_in == 0 || n->n_out == 0 || n->out[0] == OT_NONE || n->n_captured) return false;
    if (n->op == OT_OP_OPAQUE) return takes_quantized(g, n);
    if (n->op == OT_OP_DequantizeLinear || n->op == OT_OP_QuantizeLinear)
        return ot_chain_quantizer(g, n, &t, &scale, &zero);
    const ot_value *first = value_of(g, n, n->op == OT_OP_Where ? 1 : 0);
    if (!first || !first->is_tensor || (!ot_dtype_is_real(first->dtype) && first->dtype != OT_BOOL))
        return false;
    if (row_of(n->op, first->dtype == OT_BOOL) == OT_NONE) return false;
    return takes_rest(g, n, first->dtype);
}
