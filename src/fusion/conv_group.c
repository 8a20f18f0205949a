/* A convolution and what follows it.
 *
 *   Conv --> BatchNormalization, Mul, Add by channel --> Add of a tensor, activations
 *   y        NORM, AFFINE                                RESIDUAL, ACTIVATION
 *
 *        .--> Sigmoid --.            each value between has one reader; x * sigmoid(x) has two, the
 *   y --+     GATE       Mul         GATE and the GATED
 *        `--------------'GATED
 *
 * The walk begins at the convolution and goes from each result to the node that reads it, as
 * long as the rules take that.
 */
#include "fusion.h"

#define FOLLOW_MAX 22 /* parts */

static bool is_activation(ot_op op)
{
    return op == OT_OP_Relu || op == OT_OP_LeakyRelu || op == OT_OP_Sigmoid || op == OT_OP_Elu ||
           op == OT_OP_HardSwish || op == OT_OP_Clip || op == OT_OP_Tanh || op == OT_OP_HardSigmoid;
}

/* What the node at `place` is to y, which it reads; false: nothing that joins a convolution. */
static bool role_of(const ot_group_view *v, uint32_t place, ot_id y, ot_group_role *role)
{
    const ot_node *n = v->node(v->of, place);
    uint32_t n_in;
    const ot_id *in = v->operands(v->of, place, &n_in);
    if (is_activation(n->op) && in[0] == y) {
        *role = OT_ROLE_ACTIVATION;
        return true;
    }
    if (n->op == OT_OP_BatchNormalization && in[0] == y) {
        *role = OT_ROLE_NORM;
        return true;
    }
    if (n_in != 2) return false;
    ot_id other = in[0] == y ? in[1] : in[0];
    bool constant = other != OT_NONE && v->is_const(v->of, other);
    if ((n->op == OT_OP_Add || n->op == OT_OP_Sum) && !constant) {
        *role = OT_ROLE_RESIDUAL;
        return other != OT_NONE;
    }
    *role = OT_ROLE_AFFINE;
    return constant &&
           (n->op == OT_OP_Mul || n->op == OT_OP_Add || n->op == OT_OP_Sub || n->op == OT_OP_Div);
}

/* y is read by a Sigmoid (HardSigmoid) and by the Mul of y with what that makes, only. */
static bool is_gated(const ot_group_view *v, ot_id y, uint32_t *gate, uint32_t *mul)
{
    uint32_t n, n_in;
    const uint32_t *places = v->readers(v->of, y, &n);
    if (n != 2 || v->is_kept(v->of, y)) return false;
    *gate = places[0];
    *mul = places[1];
    const ot_node *g = v->node(v->of, *gate), *m = v->node(v->of, *mul);
    if (!g || !m || (g->op != OT_OP_Sigmoid && g->op != OT_OP_HardSigmoid) || m->op != OT_OP_Mul ||
        g->n_out < 1)
        return false;
    const ot_id *in = v->operands(v->of, *mul, &n_in);
    if (n_in != 2 || g->out[0] == OT_NONE || ot_group_only_reader(v, g->out[0]) != *mul ||
        m->out[0] == OT_NONE)
        return false;
    return (in[0] == y && in[1] == g->out[0]) || (in[1] == y && in[0] == g->out[0]);
}

static void take(ot_group *x, const ot_group_view *v, uint32_t place, ot_group_role role)
{
    const ot_node *n = v->node(v->of, place);
    if (role == OT_ROLE_RESIDUAL) {
        ot_id first = ot_group_operand(v, place, 0);
        x->residual = first == x->result ? ot_group_operand(v, place, 1) : first;
    }
    x->parts[x->n++] = (ot_group_part){place, role};
    x->result = n->n_out > 0 ? n->out[0] : OT_NONE;
}

/* The next node, if it joins. */
static bool extend(const ot_group_view *v, const ot_group_rules *r, ot_group *x)
{
    uint32_t gate, mul, next;
    ot_group_role role;
    if (x->result == OT_NONE || x->n + 3 > FOLLOW_MAX) return false;
    if (is_gated(v, x->result, &gate, &mul)) {
        if (!r->supported(r->ctx, v, x, gate, OT_ROLE_GATE)) return false;
        take(x, v, gate, OT_ROLE_GATE);
        take(x, v, mul, OT_ROLE_GATED);
        return true;
    }
    next = ot_group_only_reader(v, x->result);
    if (next == OT_NONE || !v->node(v->of, next) || v->node(v->of, next)->n_out < 1) return false;
    if (!role_of(v, next, x->result, &role) || !r->supported(r->ctx, v, x, next, role))
        return false;
    take(x, v, next, role);
    return true;
}

bool ot_group_conv(const ot_group_view *v, const ot_group_rules *r, uint32_t place, ot_group *out)
{
    const ot_node *n = v->node(v->of, place);
    *out = (ot_group){.kind = OT_GROUP_CONV, .result = OT_NONE, .residual = OT_NONE};
    if (!n || (n->op != OT_OP_Conv && n->op != OT_OP_ConvTranspose && n->op != OT_OP_QLinearConv) ||
        n->n_in < 2 || n->n_out < 1)
        return false;
    if (!r->supported(r->ctx, v, out, place, OT_ROLE_CONVOLUTION)) return false;
    take(out, v, place, OT_ROLE_CONVOLUTION);
    while (extend(v, r, out)) {}
    return true;
}
