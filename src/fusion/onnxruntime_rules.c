/* What ONNX Runtime merges into a convolution: BatchNormalization, a unary activation, or the
 * Add of a tensor of the same size, when nobody else reads the result before. An Add follows the
 * convolution or its BatchNormalization; what follows an activation runs on its own, and so does an
 * Add in one or three dimensions.
 *
 *   Conv --> BatchNormalization --> Relu                   Conv --> Add(x) --> Relu
 */
#include "fusion.h"

#define PICTURE 4 /* rank of what a convolution makes where an Add is merged into it */

/* Bytes of a value as the runtime holds it; 0: not known. */
static int64_t size_of(const ot_group_view *v, ot_id value)
{
    int64_t n;
    if (value == OT_NONE) return 0;
    const ot_value *x = &v->g->values[value];
    bool on_bytes = ot_value_beside_quantizer(v->g, value);
    return (on_bytes ? ot_value_elems(x, &n) : ot_value_bytes(x, &n)) ? n : 0;
}

bool ot_onnxruntime_fuses_activation(ot_op op)
{
    return op == OT_OP_Relu || op == OT_OP_Clip || op == OT_OP_LeakyRelu || op == OT_OP_Sigmoid ||
           op == OT_OP_Tanh || op == OT_OP_HardSigmoid || op == OT_OP_HardSwish;
}

static bool is_unary(ot_op op)
{
    return op == OT_OP_BatchNormalization || ot_onnxruntime_fuses_activation(op);
}

static bool merges(void *ctx, const ot_group_view *v, const ot_group *x, uint32_t place,
                   ot_group_role role)
{
    (void)ctx;
    ot_op op = v->node(v->of, place)->op;
    if (role == OT_ROLE_CONVOLUTION) return op == OT_OP_Conv || op == OT_OP_QLinearConv;
    if (x->kind != OT_GROUP_CONV || v->g->values[x->result].n_uses != 1) return false;
    ot_op last = v->node(v->of, x->parts[x->n - 1].place)->op;
    bool first = x->n == 1 || last == OT_OP_BatchNormalization;
    if (op != OT_OP_Add) return is_unary(op) && (first || last == OT_OP_Add);
    if (v->g->values[x->result].rank != PICTURE) return false;
    bool second = ot_group_operand(v, place, 0) == x->result;
    return first && size_of(v, ot_group_operand(v, place, second ? 1 : 0)) == size_of(v, x->result);
}

const ot_group_rules ot_onnxruntime_rules = {.name = "onnxruntime", .supported = merges};
