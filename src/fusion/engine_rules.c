/* What the engine merges, as far as a graph says it.
 *
 *   Conv --> what goes into weights and bias (NORM, AFFINE) --> at most POSTS_MAX that work on the
 *   result in registers
 *
 * The lowering asks its kernels besides (is there a fast primitive for this convolution with
 * that behind it?) and reads contents; the cost model takes these rules as they are.
 */
#include "chain_rule.h"
#include "engine_bytes_rules.h"

#include <math.h>

#define POSTS_MAX     OT_GROUP_POSTS
#define QUERIES_LEAST 8 /* of an attention: for fewer, panels of queries would be mostly empty */

static const ot_node *first_of(const ot_group_view *v, const ot_group *x)
{
    return v->node(v->of, x->parts[0].place);
}

/* Parts that work on the result; a GATED goes with its GATE. */
static uint32_t posts(const ot_group *x)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        ot_group_role r = x->parts[k].role;
        n += r == OT_ROLE_RESIDUAL || r == OT_ROLE_ACTIVATION || r == OT_ROLE_GATE;
    }
    return n;
}

static bool const_real(const ot_group_view *v, ot_id value, ot_group_shape *s)
{
    return ot_group_is_real(v, value, s) && v->is_const(v->of, value);
}

static bool takes_convolution(const ot_group_view *v, uint32_t place)
{
    const ot_node *n = v->node(v->of, place);
    ot_group_shape x, w, y, b;
    if ((n->op != OT_OP_Conv && n->op != OT_OP_ConvTranspose) ||
        !ot_group_is_real(v, ot_group_operand(v, place, 0), &x) ||
        !const_real(v, ot_group_operand(v, place, 1), &w) || !ot_group_is_real(v, n->out[0], &y))
        return false;
    int64_t group = ot_attr_int(n, "group", 1);
    if (w.dtype != x.dtype || y.dtype != x.dtype) return false;
    if (x.rank < 3 || x.rank > 5 || w.rank != x.rank || y.rank != x.rank ||
        y.dims[0] != x.dims[0] || group < 1)
        return false;
    ot_id bias = ot_group_operand(v, place, 2);
    if (bias != OT_NONE && (!const_real(v, bias, &b) || b.rank != 1 || b.dims[0] != y.dims[1]))
        return false;
    if (n->op == OT_OP_ConvTranspose)
        return w.dims[0] == x.dims[1] && y.dims[1] % group == 0 && w.dims[1] == y.dims[1] / group;
    return w.dims[0] == y.dims[1] && x.dims[1] % group == 0 && w.dims[1] == x.dims[1] / group &&
           y.dims[1] % group == 0;
}

/* Four constants of one number a channel. */
static bool takes_norm(const ot_group_view *v, uint32_t place, int64_t maps)
{
    const ot_node *n = v->node(v->of, place);
    ot_group_shape s;
    if (ot_attr_int(n, "training_mode", 0) != 0 || v->has_more_outputs(v->of, place)) return false;
    for (uint32_t k = 1; k < 5; k++)
        if (!const_real(v, ot_group_operand(v, place, k), &s) || s.rank != 1 || s.dims[0] != maps)
            return false;
    return true;
}

/* A constant of one number a channel (or one for all): [C,1,1], [1,C,1,1], [1]... against a
 * result of that rank. */
static bool takes_affine(const ot_group_view *v, uint32_t place, ot_id y, uint32_t rank,
                         int64_t maps)
{
    const ot_node *n = v->node(v->of, place);
    ot_group_shape s;
    int64_t count;
    bool second = ot_group_operand(v, place, 0) == y;
    if (!second && (n->op == OT_OP_Sub || n->op == OT_OP_Div)) return false;
    if (!const_real(v, ot_group_operand(v, place, second ? 1 : 0), &s) ||
        !ot_product(s.dims, s.rank, &count) || s.rank > rank)
        return false;
    return count == 1 || (s.rank + 1 >= rank && s.rank >= 1 && count == maps &&
                          s.dims[1 + s.rank - rank] == maps);
}

static bool takes_activation(const ot_group_view *v, uint32_t place)
{
    const ot_node *n = v->node(v->of, place);
    ot_group_shape s;
    int64_t count;
    if (n->op == OT_OP_Tanh || n->op == OT_OP_HardSigmoid) return false;
    for (uint32_t k = 1; n->op == OT_OP_Clip && k < 3; k++) {
        ot_id bound = ot_group_operand(v, place, k);
        if (bound == OT_NONE) continue;
        if (!const_real(v, bound, &s) || !ot_product(s.dims, s.rank, &count) || count != 1)
            return false;
    }
    return true;
}

static bool takes_residual(const ot_group_view *v, const ot_group *x, uint32_t place)
{
    ot_id a = ot_group_operand(v, place, 0), b = ot_group_operand(v, place, 1),
          other = a == x->result ? b : a;
    ot_group_shape s, y;
    return a != b && x->residual == OT_NONE && first_of(v, x)->op == OT_OP_Conv &&
           ot_group_is_real(v, other, &s) && ot_group_is_real(v, x->result, &y) &&
           s.dtype == y.dtype && ot_group_same_dims(v, other, x->result);
}

/* x * HardSigmoid(x) is HardSwish with these factors only. */
static bool takes_gate(const ot_node *n)
{
    if (n->op == OT_OP_Sigmoid) return true;
    return fabsf(ot_attr_float(n, "alpha", 0.2f) * 6 - 1) < 1e-5f &&
           ot_attr_float(n, "beta", 0.5f) == 0.5f;
}

static bool takes_part(const ot_group_view *v, const ot_group *x, uint32_t place,
                       ot_group_role role)
{
    const ot_node *n = v->node(v->of, place);
    ot_group_shape first, y;
    uint32_t behind = posts(x);
    if (role == OT_ROLE_GATE) return behind < POSTS_MAX && takes_gate(n);
    if (!ot_group_is_real(v, n->out[0], &y) || !ot_group_same_dims(v, x->result, n->out[0]))
        return false;
    if (!ot_group_is_real(v, first_of(v, x)->out[0], &first) || y.dtype != first.dtype ||
        behind == POSTS_MAX)
        return false;
    if (role == OT_ROLE_NORM) return behind == 0 && takes_norm(v, place, first.dims[1]);
    if (role == OT_ROLE_AFFINE)
        return behind == 0 && takes_affine(v, place, x->result, first.rank, first.dims[1]);
    return role == OT_ROLE_ACTIVATION ? takes_activation(v, place) : takes_residual(v, x, place);
}

/* Operand k is a scale or zero point of a quantized one, about which the chain's rule was asked;
 * k == n_in: the result. */
static bool is_parameter(const ot_node *n, uint32_t k, uint32_t n_in)
{
    if (k == n_in) return false;
    if (n->op == OT_OP_QuantizeLinear) return k > 0;
    return n->op == OT_OP_OPAQUE && (k % 3 != 0 || k + 2u >= n_in);
}

/* The operand's extents are the result's, or 1; of a normalisation's parameter, the channels'.
 * What follows becomes of *covered [rank]. */
static bool is_spread(const ot_group_shape *operand, const ot_group_shape *result, bool parameter,
                      bool *covered)
{
    if (parameter)
        return operand->rank == 1 && result->rank >= 2 &&
               (operand->dims[0] == 1 || operand->dims[0] == result->dims[1]);
    if (operand->rank > result->rank) return false;
    for (uint32_t k = 0; k < operand->rank; k++) {
        const uint32_t axis = k + result->rank - operand->rank;
        if (operand->dims[k] == result->dims[axis])
            covered[axis] = true;
        else if (operand->dims[k] != 1)
            return false;
    }
    return true;
}

/* The result has the shape that its operands make. Of operators of other domains it is the
 * file's word alone, and who computes by a false one reads beyond its operands. */
static bool agrees(const ot_group_view *v, const ot_node *n, const ot_id *in, uint32_t n_in)
{
    bool covered[OT_GROUP_RANK] = {false};
    ot_group_shape operand, result;
    if (!v->shape(v->of, n->out[0], &result) || result.rank > OT_GROUP_RANK) return false;
    for (uint32_t k = 0; k < n_in; k++) {
        if (in[k] == OT_NONE || is_parameter(n, k, n_in)) continue;
        const bool parameter = n->op == OT_OP_BatchNormalization && k > 0;
        if (!v->shape(v->of, in[k], &operand) || !is_spread(&operand, &result, parameter, covered))
            return false;
    }
    for (uint32_t k = 0; k < result.rank; k++)
        if (!covered[k] && result.dims[k] != 1) return false;
    return true;
}

/* Arrays of real numbers or bool that are known and not empty. */
static bool takes_element(const ot_group_view *v, uint32_t place)
{
    const ot_node *n = v->node(v->of, place);
    uint32_t n_in;
    const ot_id *in = v->operands(v->of, place, &n_in);
    bool quantizes = n->op == OT_OP_QuantizeLinear, bytes = n->op == OT_OP_OPAQUE;
    if (n->n_out < 1 || n->out[0] == OT_NONE || v->has_more_outputs(v->of, place)) return false;
    if (n->op == OT_OP_Identity || n->op == OT_OP_Dropout || n->op == OT_OP_Constant ||
        n->op == OT_OP_DequantizeLinear)
        return false;
    if (!ot_chain_takes(v->g, n)) return false;
    for (uint32_t k = 0; k <= n_in; k++) {
        ot_id value = k < n_in ? in[k] : n->out[0];
        ot_group_shape s;
        int64_t count;
        if (value == OT_NONE || is_parameter(n, k, n_in)) continue;
        if (!v->shape(v->of, value, &s)) return false;
        bool type = ot_dtype_is_real(s.dtype) || s.dtype == OT_BOOL || bytes ||
                    (quantizes && k == n_in);
        if (!type || s.rank > 7 || !ot_product(s.dims, s.rank, &count) || count == 0) return false;
    }
    return agrees(v, n, in, n_in);
}

/* Rows of an attention's result that stay rows, enough of them; what is alike for all runtimes
 * is the recogniser's. */
static bool takes_attention(const ot_group_view *v, uint32_t place, ot_group_role role)
{
    uint32_t perm[OT_GROUP_RANK];
    ot_group_shape s;
    if (role == OT_ROLE_SOFTMAX)
        return v->shape(v->of, ot_group_operand(v, place, 0), &s) && s.rank >= 2 &&
               s.dims[s.rank - 2] >= QUERIES_LEAST;
    if (role != OT_ROLE_WRITES) return true;
    if (!v->shape(v->of, v->node(v->of, place)->out[0], &s) || !ot_group_perm(v, place, perm))
        return false;
    return perm[s.rank - 1] == s.rank - 1;
}

bool ot_engine_merges(void *ctx, const ot_group_view *v, const ot_group *group, uint32_t place,
                      ot_group_role role)
{
    (void)ctx;
    if (group->kind == OT_GROUP_BYTES) return ot_engine_takes_bytes(v, group, place, role);
    if (group->kind == OT_GROUP_PRODUCT) return true;
    if (role == OT_ROLE_ELEMENT) return takes_element(v, place);
    if (role == OT_ROLE_CONVOLUTION) return takes_convolution(v, place);
    if (group->kind == OT_GROUP_ATTENTION) return takes_attention(v, place, role);
    return takes_part(v, group, place, role);
}

const ot_group_rules ot_engine_rules = {.name = "engine", .supported = ot_engine_merges};
