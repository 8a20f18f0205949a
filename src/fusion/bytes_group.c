/* What runs on 8-bit tensors: an operator between quantizers, and operators of integers.
 *
 *   xq --DequantizeLinear--.
 *   wq --DequantizeLinear--+--> Conv, MatMul, Gemm --> AFFINE, ACTIVATION (limits) -->
 *   QuantizeLinear --> yq
 *   xq --DequantizeLinear-----> Transpose, Slice, Concat, MaxPool, AveragePool ... -->
 *   QuantizeLinear --> yq
 *                               ON_BYTES                                               QUANTIZE
 *
 *   ConvInteger, MatMulInteger --> Cast --> Mul --> Add of a constant                  --> float32
 *   ON_BYTES                       RESCALE (and the Mul of two scales), AFFINE
 *
 *   QLinearConv, QLinearMatMul, QLinearConcat, pools of com.microsoft                 groups of one
 *
 * DequantizeLinear is in no group: whoever reads its result reads the bytes instead, and when
 * all do, it is not run.
 */
#include "chain_rule.h"
#include "fusion.h"

#define LIMITS_MAX 2 /* Relu, Clip between a convolution and QuantizeLinear */

typedef struct search {
    const ot_group_view *v;
    const ot_group_rules *r;
    ot_bytes_group *x;
} search;

static const ot_node *node_at(const search *s, uint32_t place)
{
    return place == OT_NONE ? NULL : s->v->node(s->v->of, place);
}

static bool take(search *s, uint32_t place, ot_group_role role)
{
    ot_group *x = &s->x->group;
    if (!s->r->supported(s->r->ctx, s->v, x, place, role)) return false;
    x->parts[x->n++] = (ot_group_part){place, role};
    if (role != OT_ROLE_RESCALE || node_at(s, place)->out[0] != s->x->factor)
        x->result = node_at(s, place)->out[0];
    return true;
}

bool ot_group_dequantized(const ot_group_view *v, ot_id value, ot_group_origin *o)
{
    *o = (ot_group_origin){v->g, NULL, value == OT_NONE ? OT_NONE : v->maker(v->of, value)};
    if (o->place != OT_NONE)
        o->n = v->node(v->of, o->place);
    else if (value == OT_NONE || !v->is_const(v->of, value) || !v->origin(v->of, value, o))
        return false;
    return o->n && o->n->op == OT_OP_DequantizeLinear && o->n->n_in > 0 && o->n->in[0] != OT_NONE;
}

/* ---- operators ---- */

bool ot_bytes_is_named(const ot_node *n, const char *op_type)
{
    return n->op == OT_OP_OPAQUE && strcmp(n->domain, "com.microsoft") == 0 &&
           strcmp(n->op_type, op_type) == 0;
}

bool ot_bytes_is_view(ot_op op)
{
    return op == OT_OP_Reshape || op == OT_OP_Flatten || op == OT_OP_Squeeze ||
           op == OT_OP_Unsqueeze || op == OT_OP_Identity;
}

static bool moves(const ot_node *n)
{
    switch ((int)n->op) {
    case OT_OP_Transpose:
    case OT_OP_Slice:
    case OT_OP_DepthToSpace:
    case OT_OP_SpaceToDepth:
    case OT_OP_Expand:
    case OT_OP_Tile:
    case OT_OP_Gather:
    case OT_OP_GatherRows: return true;
    case OT_OP_Resize:
    case OT_OP_Upsample:
        return strcmp(ot_attr_str(n, "mode", "nearest"), "nearest") == 0 &&
               strcmp(ot_attr_str(n, "coordinate_transformation_mode", "half_pixel"),
                      "tf_crop_and_resize") != 0;
    default: return ot_bytes_is_view(n->op);
    }
}

/* *dequantized: operands that must come from a DequantizeLinear. */
static bool kind_of(const ot_node *n, ot_bytes_kind *kind, uint32_t *dequantized)
{
    *dequantized = 0;
    switch ((int)n->op) {
    case OT_OP_QLinearConv:
    case OT_OP_ConvInteger: *kind = OT_BYTES_CONV; return true;
    case OT_OP_QLinearMatMul:
    case OT_OP_MatMulInteger: *kind = OT_BYTES_PRODUCT; return true;
    case OT_OP_OPAQUE:
        *kind = ot_bytes_is_named(n, "QLinearConcat") ? OT_BYTES_CONCAT : OT_BYTES_POOL;
        return *kind == OT_BYTES_CONCAT || ot_bytes_is_named(n, "QLinearAveragePool") ||
               ot_bytes_is_named(n, "QLinearGlobalAveragePool");
    case OT_OP_Conv: *kind = OT_BYTES_CONV; break;
    case OT_OP_MatMul:
    case OT_OP_Gemm: *kind = OT_BYTES_PRODUCT; break;
    case OT_OP_MaxPool:
    case OT_OP_AveragePool:
    case OT_OP_GlobalMaxPool:
    case OT_OP_GlobalAveragePool: *kind = OT_BYTES_POOL; break;
    case OT_OP_Concat: *kind = OT_BYTES_CONCAT; break;
    default: *kind = OT_BYTES_MOVE; break;
    }
    *dequantized = *kind == OT_BYTES_CONCAT                              ? n->n_in
                   : *kind == OT_BYTES_CONV || *kind == OT_BYTES_PRODUCT ? 2
                                                                         : 1;
    return *kind != OT_BYTES_MOVE || moves(n);
}

bool ot_bytes_reads(const ot_node *n, uint32_t k)
{
    ot_bytes_kind kind;
    uint32_t dequantized;
    return kind_of(n, &kind, &dequantized) && k < dequantized;
}

/* ---- what follows ---- */

/* The node that alone reads the result so far, if it has that operator. */
static const ot_node *follower(const search *s, ot_op op, uint32_t *place)
{
    *place = ot_group_only_reader(s->v, s->x->group.result);
    const ot_node *n = node_at(s, *place);
    return n && n->op == op && n->n_out > 0 && n->out[0] != OT_NONE ? n : NULL;
}

static bool reads_first(const search *s, uint32_t place)
{
    return ot_group_operand(s->v, place, 0) == s->x->group.result;
}

/* Float32 results of one shape: what the node at `place` reads and makes. */
static bool keeps_floats(const search *s, uint32_t place)
{
    ot_group_shape y;
    ot_id out = node_at(s, place)->out[0];
    return ot_group_is_f32(s->v, out, &y) && ot_group_same_dims(s->v, s->x->group.result, out);
}

static bool take_quantize(search *s)
{
    uint32_t place;
    ot_group_shape y;
    const ot_node *n = follower(s, OT_OP_QuantizeLinear, &place);
    if (!n || !reads_first(s, place) || !ot_group_shape_of(s->v, n->out[0], &y) ||
        !ot_group_is_byte(y.dtype) || !ot_group_same_dims(s->v, s->x->group.result, n->out[0]) ||
        !take(s, place, OT_ROLE_QUANTIZE))
        return false;
    s->x->y = (ot_group_origin){s->v->g, n, place};
    return true;
}

/* Up to `most` limits, then QuantizeLinear: all of it, or nothing. */
static void take_limits(search *s, uint32_t most, bool clips)
{
    const ot_bytes_group before = *s->x;
    uint32_t place;
    for (uint32_t k = 0; k <= most; k++) {
        if (take_quantize(s)) return;
        const ot_node *n = follower(s, OT_OP_Relu, &place);
        if (!n && clips) n = follower(s, OT_OP_Clip, &place);
        if (!n || k == most || !reads_first(s, place) || !keeps_floats(s, place) ||
            !take(s, place, OT_ROLE_ACTIVATION))
            break;
    }
    *s->x = before;
}

/* The operand of a node of two that is not the result so far; OT_NONE. */
static ot_id other_operand(const search *s, uint32_t place)
{
    uint32_t n;
    const ot_id *in = s->v->operands(s->v->of, place, &n);
    return n == 2 && in[0] != in[1] ? in[in[0] == s->x->group.result ? 1 : 0] : OT_NONE;
}

/* Cast and Mul by scales; a Mul of two scales that is for this one only. */
static bool take_rescale(search *s)
{
    const ot_bytes_group before = *s->x;
    uint32_t cast, mul, scales;
    if (!follower(s, OT_OP_Cast, &cast) || !keeps_floats(s, cast) ||
        !take(s, cast, OT_ROLE_RESCALE))
        return false;
    if (follower(s, OT_OP_Mul, &mul) && keeps_floats(s, mul)) {
        s->x->factor = other_operand(s, mul);
        if (s->x->factor != OT_NONE && take(s, mul, OT_ROLE_RESCALE)) {
            scales = s->v->maker(s->v->of, s->x->factor);
            const ot_node *n = node_at(s, scales);
            if (s->x->kind == OT_BYTES_PRODUCT && n && n->op == OT_OP_Mul && n->n_in == 2 &&
                ot_group_only_reader(s->v, s->x->factor) == mul)
                (void)take(s, scales, OT_ROLE_RESCALE);
            return true;
        }
    }
    *s->x = before;
    return false;
}

/* Add of a constant. */
static void take_bias(search *s)
{
    uint32_t add;
    ot_group_shape b;
    if (!follower(s, OT_OP_Add, &add) || !keeps_floats(s, add)) return;
    ot_id bias = other_operand(s, add), before = s->x->bias;
    if (bias == OT_NONE || !ot_group_is_f32(s->v, bias, &b) || !s->v->is_const(s->v->of, bias))
        return;
    s->x->bias = bias;
    if (!take(s, add, OT_ROLE_AFFINE)) s->x->bias = before;
}

/* ---- all of it ---- */

static bool dequantizes(search *s, const ot_node *n, uint32_t operands)
{
    for (uint32_t k = 0; k < operands; k++) {
        ot_group_origin o;
        if (k >= n->n_in || !ot_group_dequantized(s->v, n->in[k], &o)) return false;
        bool weights = k == 1 && s->x->kind != OT_BYTES_CONCAT;
        if (o.place == OT_NONE && !weights) return false;
        if (k == 0) s->x->x = o;
        if (k == 1) s->x->w = o;
    }
    return true;
}

static void follow(search *s, const ot_node *n)
{
    const ot_op op = n->op;
    if (op == OT_OP_ConvInteger || op == OT_OP_MatMulInteger) {
        if (!take_rescale(s)) return;
        take_bias(s);
        if (op == OT_OP_MatMulInteger && s->v->is_const(s->v->of, s->x->factor))
            take_limits(s, 1, false);
    } else if (op == OT_OP_Conv) {
        take_limits(s, LIMITS_MAX, true);
    } else if (op == OT_OP_MatMul || op == OT_OP_Gemm) {
        if (n->n_in < 3 || n->in[2] == OT_NONE) take_bias(s);
        take_limits(s, 1, false);
    } else if (s->x->x.n) {
        (void)take_quantize(s);
    }
}

bool ot_group_bytes(const ot_group_view *v, const ot_group_rules *r, uint32_t place,
                    ot_bytes_group *out)
{
    search s = {v, r, out};
    uint32_t dequantized;
    ot_group_shape y;
    const ot_node *n = v->node(v->of, place);
    *out = (ot_bytes_group){
        .group = {.kind = OT_GROUP_BYTES, .result = OT_NONE, .residual = OT_NONE},
        .factor = OT_NONE,
        .bias = OT_NONE};
    if (!n || n->n_in < 1 || n->n_out < 1 || n->in[0] == OT_NONE || n->out[0] == OT_NONE ||
        n->n_captured > 0 || !kind_of(n, &out->kind, &dequantized) ||
        v->has_more_outputs(v->of, place))
        return false;
    if (!dequantizes(&s, n, dequantized) || !ot_group_shape_of(v, n->out[0], &y)) return false;
    if (dequantized > 0 && !ot_group_is_f32(v, n->out[0], &y)) return false;
    if (!take(&s, place, OT_ROLE_ON_BYTES)) return false;
    follow(&s, n);
    return true;
}

bool ot_group_chain_dequantizes(const ot_group_view *v, uint32_t place)
{
    const ot_node *n = v->node(v->of, place);
    ot_group_shape x, y;
    return n && n->op == OT_OP_DequantizeLinear && n->n_out > 0 &&
           ot_group_is_f32(v, n->out[0], &y) &&
           ot_group_shape_of(v, ot_group_operand(v, place, 0), &x) &&
           ot_group_same_dims(v, n->in[0], n->out[0]) && ot_chain_takes(v->g, n);
}
