/* What the engine runs on 8-bit tensors, as far as a graph says it (bytes_group.c finds it).
 *
 * Scales and zero points are constants, one for a tensor; those of weights may be one for each
 * map of a convolution or column of a product. An integer product is multiplied with numbers
 * that may come in the run. Sums are of 32 bits.
 */
#include "engine_bytes_rules.h"

#include "chain_rule.h"

#include <math.h>

/* ---- constants ---- */

static bool const_shape(const ot_group_view *v, ot_id value, ot_group_shape *s)
{
    return ot_group_shape_of(v, value, s) && v->is_const(v->of, value);
}

static bool const_single(const ot_group_view *v, ot_id value, ot_dtype t)
{
    ot_group_shape s;
    return const_shape(v, value, &s) && s.dtype == t && s.rank <= 1 && ot_group_count(&s) == 1;
}

/* One number, or n along the last axis. */
static bool is_by_column(const ot_group_shape *s, int64_t n)
{
    int64_t count = ot_group_count(s);
    return count == 1 || (count == n && s->rank > 0 && s->dims[s->rank - 1] == n);
}

static bool const_by_column(const ot_group_view *v, ot_id value, ot_dtype t, int64_t n)
{
    ot_group_shape s;
    return const_shape(v, value, &s) && s.dtype == t && is_by_column(&s, n);
}

/* Above 0 and finite, as far as contents are in the graph. */
static bool are_scales(const ot_graph *g, ot_id value, int64_t n)
{
    const ot_tensor *t = g->values[value].init;
    if (!t || !t->data || t->dtype != OT_F32 || t->bytes < (size_t)n * sizeof(float)) return true;
    for (int64_t k = 0; k < n; k++) {
        float x;
        memcpy(&x, (const char *)t->data + (size_t)k * sizeof x, sizeof x);
        if (!(x > 0) || !isfinite(x)) return false;
    }
    return true;
}

/* Quantize- or DequantizeLinear by one scale, or by `slices` along `axis` of a tensor of that
 * rank (rank 0: as the attribute says). */
static bool takes_quantizer(const ot_group_view *v, const ot_group_origin *o, int64_t slices,
                            int64_t axis, int64_t rank)
{
    const ot_node *n = o->n;
    ot_group_shape scale, zero;
    int64_t own = ot_attr_int(n, "axis", 1);
    if (n->n_in < 2 || !ot_group_origin_shape(v, o, 1, &scale) || !ot_group_origin_const(v, o, 1))
        return false;
    int64_t count = ot_group_count(&scale);
    if (scale.dtype != OT_F32 || scale.rank > 1 || count < 1) return false;
    if (ot_attr_int(n, "block_size", 0) || ot_attr_int(n, "output_dtype", 0) ||
        ot_attr_int(n, "precision", 0))
        return false;
    bool has_zero = n->n_in > 2 && n->in[2] != OT_NONE;
    if (has_zero && (!ot_group_origin_shape(v, o, 2, &zero) || !ot_group_origin_const(v, o, 2) ||
                     ot_group_count(&zero) != count))
        return false;
    if (!are_scales(o->g, n->in[1], count)) return false;
    return count == 1 || (count == slices && (own < 0 ? own + rank : own) == axis);
}

/* Operand of a node, a tensor of bytes with known dims. */
static bool is_bytes(const ot_group_view *v, const ot_group_origin *o, ot_group_shape *s)
{
    return ot_group_origin_shape(v, o, 0, s) && ot_group_is_byte(s->dtype) && ot_group_count(s) > 0;
}

/* ---- convolutions ---- */

static bool is_window(const ot_group_shape *x, const ot_group_shape *w, const ot_group_shape *y)
{
    return (x->rank == 3 || x->rank == 4) && w->rank == x->rank && y->rank == x->rank &&
           w->dims[0] == y->dims[1];
}

/* int32 in units of the products, or float32: one for each map. */
static bool takes_conv_bias(const ot_group_view *v, ot_id bias, int64_t maps)
{
    ot_group_shape s;
    ot_group_origin o;
    if (bias == OT_NONE) return true;
    if (ot_group_is_f32(v, bias, &s) && v->is_const(v->of, bias)) return ot_group_count(&s) == maps;
    return ot_group_dequantized(v, bias, &o) && ot_group_origin_const(v, &o, 0) &&
           ot_group_origin_shape(v, &o, 0, &s) && s.dtype == OT_I32 && ot_group_count(&s) == maps &&
           takes_quantizer(v, &o, maps, 0, 0);
}

static bool takes_conv(const ot_group_view *v, uint32_t place)
{
    ot_group_shape x, w, y;
    ot_group_origin of_x, of_w;
    if (!ot_group_dequantized(v, ot_group_operand(v, place, 0), &of_x) ||
        !ot_group_dequantized(v, ot_group_operand(v, place, 1), &of_w) || !is_bytes(v, &of_x, &x) ||
        !is_bytes(v, &of_w, &w) || !ot_group_origin_const(v, &of_w, 0) ||
        !ot_group_shape_of(v, v->node(v->of, place)->out[0], &y) || !is_window(&x, &w, &y))
        return false;
    return takes_quantizer(v, &of_x, 1, 0, 0) && takes_quantizer(v, &of_w, w.dims[0], 0, 0) &&
           takes_conv_bias(v, ot_group_operand(v, place, 2), w.dims[0]);
}

/* Zero points of weights: one, or one for each map. */
static bool takes_zeros(const ot_group_view *v, ot_id zeros, const ot_group_shape *w, int64_t maps)
{
    ot_group_shape s;
    if (zeros == OT_NONE) return true;
    return const_shape(v, zeros, &s) && s.dtype == w->dtype &&
           (ot_group_count(&s) == 1 || ot_group_count(&s) == maps);
}

static bool takes_conv_integer(const ot_group_view *v, uint32_t place)
{
    ot_group_shape x, w, y, z;
    ot_id zero = ot_group_operand(v, place, 2);
    if (!ot_group_shape_of(v, ot_group_operand(v, place, 0), &x) ||
        !const_shape(v, ot_group_operand(v, place, 1), &w) ||
        !ot_group_shape_of(v, v->node(v->of, place)->out[0], &y) || !ot_group_is_byte(x.dtype) ||
        !ot_group_is_byte(w.dtype) || !is_window(&x, &w, &y))
        return false;
    if (zero != OT_NONE &&
        (!ot_group_shape_of(v, zero, &z) || z.dtype != x.dtype || ot_group_count(&z) != 1))
        return false;
    return takes_zeros(v, ot_group_operand(v, place, 3), &w, w.dims[0]);
}

static bool takes_qlinear_conv(const ot_group_view *v, uint32_t place)
{
    ot_group_shape x, w, y, scale, b;
    ot_id bias = ot_group_operand(v, place, 8), zero = ot_group_operand(v, place, 2);
    if (!ot_group_shape_of(v, ot_group_operand(v, place, 0), &x) ||
        !const_shape(v, ot_group_operand(v, place, 3), &w) ||
        !ot_group_shape_of(v, v->node(v->of, place)->out[0], &y) || !ot_group_is_byte(x.dtype) ||
        !ot_group_is_byte(w.dtype) || !ot_group_is_byte(y.dtype) || !is_window(&x, &w, &y))
        return false;
    if (!const_single(v, ot_group_operand(v, place, 1), OT_F32) ||
        !const_single(v, ot_group_operand(v, place, 6), OT_F32) ||
        !const_single(v, ot_group_operand(v, place, 7), y.dtype) ||
        (zero != OT_NONE && !const_single(v, zero, x.dtype)))
        return false;
    if (!const_shape(v, ot_group_operand(v, place, 4), &scale) || scale.dtype != OT_F32)
        return false;
    if (ot_group_count(&scale) != 1 && ot_group_count(&scale) != w.dims[0]) return false;
    if (bias != OT_NONE &&
        (!const_shape(v, bias, &b) || b.dtype != OT_I32 || ot_group_count(&b) != w.dims[0]))
        return false;
    return takes_zeros(v, ot_group_operand(v, place, 5), &w, w.dims[0]);
}

/* ---- products ---- */

/* Constant weights [k, n], or [n, k] when `transposed`. */
static bool is_weights(const ot_group_shape *w, bool transposed, int64_t *columns)
{
    *columns = w->rank == 2 ? w->dims[!transposed] : 0;
    return w->rank == 2 && ot_group_is_byte(w->dtype) && ot_group_count(w) > 0 &&
           w->dims[transposed] <= OT_BYTES_SUMS;
}

/* The second factor: constant weights, or matrices that are computed. *n: its columns. */
static bool takes_factor(const ot_group_view *v, const ot_group_origin *o, bool transposed,
                         int64_t *n)
{
    ot_group_shape w;
    if (!is_bytes(v, o, &w)) return false;
    if (ot_group_origin_const(v, o, 0) && w.rank == 2)
        return is_weights(&w, transposed, n) && takes_quantizer(v, o, *n, !transposed, 2);
    *n = w.dims[w.rank > 0 ? w.rank - 1 : 0];
    return o->place != OT_NONE && !transposed && w.rank >= 2 &&
           w.dims[w.rank - 2] <= OT_BYTES_SUMS && takes_quantizer(v, o, 1, 0, 0);
}

static bool takes_product(const ot_group_view *v, uint32_t place)
{
    const ot_node *n = v->node(v->of, place);
    bool gemm = n->op == OT_OP_Gemm, transposed = gemm && ot_attr_int(n, "transB", 0) != 0;
    ot_id bias = ot_group_operand(v, place, 2);
    ot_group_shape x;
    ot_group_origin of_x, of_w;
    int64_t columns;
    if ((gemm && ot_attr_int(n, "transA", 0) != 0) ||
        !ot_group_dequantized(v, ot_group_operand(v, place, 0), &of_x) ||
        !ot_group_dequantized(v, ot_group_operand(v, place, 1), &of_w))
        return false;
    if (!is_bytes(v, &of_x, &x) || x.rank < 2 || !takes_quantizer(v, &of_x, 1, 0, 0)) return false;
    return takes_factor(v, &of_w, transposed, &columns) &&
           (bias == OT_NONE || const_by_column(v, bias, OT_F32, columns));
}

static bool takes_matmul_integer(const ot_group_view *v, uint32_t place)
{
    ot_group_shape x, w, z;
    ot_id zero = ot_group_operand(v, place, 2), zeros = ot_group_operand(v, place, 3);
    int64_t n;
    if (!ot_group_shape_of(v, ot_group_operand(v, place, 0), &x) || !ot_group_is_byte(x.dtype) ||
        x.rank < 2 || !const_shape(v, ot_group_operand(v, place, 1), &w) ||
        !is_weights(&w, false, &n))
        return false;
    if (zero != OT_NONE &&
        (!ot_group_shape_of(v, zero, &z) || z.dtype != x.dtype || ot_group_count(&z) != 1))
        return false;
    return zeros == OT_NONE ||
           (const_by_column(v, zeros, w.dtype, n) && const_shape(v, zeros, &z) && z.rank <= 1);
}

static bool takes_qlinear_matmul(const ot_group_view *v, uint32_t place)
{
    ot_group_shape x, w, y;
    uint32_t n_in;
    const ot_id *in = v->operands(v->of, place, &n_in);
    int64_t n;
    if (n_in != 8 || !ot_group_shape_of(v, in[0], &x) || !ot_group_is_byte(x.dtype) || x.rank < 2 ||
        !const_shape(v, in[3], &w) || !is_weights(&w, false, &n) ||
        !ot_group_shape_of(v, v->node(v->of, place)->out[0], &y))
        return false;
    return const_by_column(v, in[1], OT_F32, 1) && const_by_column(v, in[2], x.dtype, 1) &&
           const_by_column(v, in[4], OT_F32, n) && const_by_column(v, in[5], w.dtype, n) &&
           const_by_column(v, in[6], OT_F32, 1) && const_by_column(v, in[7], y.dtype, 1);
}

/* ---- moving, pools ---- */

typedef struct scaling {
    ot_dtype type;
    float scale, zero;
} scaling;

static bool same(const scaling *a, const scaling *b)
{
    return a->type == b->type && a->scale == b->scale && a->zero == b->zero;
}

static bool scaling_of(const ot_graph *g, const ot_node *n, scaling *x)
{
    return ot_chain_quantizer(g, n, &x->type, &x->scale, &x->zero);
}

/* That of what operand k is dequantized from. */
static bool source(const ot_group_view *v, uint32_t place, uint32_t k, scaling *x)
{
    ot_group_origin o;
    return ot_group_dequantized(v, ot_group_operand(v, place, k), &o) && o.place != OT_NONE &&
           ot_group_chain_dequantizes(v, o.place) && scaling_of(o.g, o.n, x);
}

/* Of the QuantizeLinear that alone reads the result. */
static bool sink(const ot_group_view *v, ot_id result, scaling *y)
{
    uint32_t place = ot_group_only_reader(v, result);
    const ot_node *n = place == OT_NONE ? NULL : v->node(v->of, place);
    ot_group_shape s;
    return n && n->op == OT_OP_QuantizeLinear && n->in[0] == result && n->n_out > 0 &&
           ot_group_shape_of(v, n->out[0], &s) && ot_group_same_dims(v, result, n->out[0]) &&
           scaling_of(v->g, n, y);
}

/* Scale (operand k) and zero point behind it of a QLinear operator's tensor. */
static bool takes_scale(const ot_group_view *v, uint32_t place, ot_id tensor, uint32_t k,
                        ot_dtype *type)
{
    ot_group_shape x, scale, z;
    ot_id of_scale = ot_group_operand(v, place, k), zero = ot_group_operand(v, place, k + 1);
    if (!ot_group_shape_of(v, tensor, &x) || !ot_group_is_byte(x.dtype) || ot_group_count(&x) < 1)
        return false;
    if (!const_shape(v, of_scale, &scale) || scale.dtype != OT_F32 || ot_group_count(&scale) != 1)
        return false;
    *type = x.dtype;
    if (!are_scales(v->g, of_scale, 1)) return false;
    return zero == OT_NONE ||
           (const_shape(v, zero, &z) && z.dtype == x.dtype && ot_group_count(&z) == 1);
}

static bool takes_move(const ot_group_view *v, uint32_t place)
{
    const ot_node *n = v->node(v->of, place);
    scaling x, y;
    if (!source(v, place, 0, &x) || !sink(v, n->out[0], &y) || x.type != y.type) return false;
    return same(&x, &y) || !ot_bytes_is_view(n->op);
}

static bool takes_concat(const ot_group_view *v, uint32_t place)
{
    const ot_node *n = v->node(v->of, place);
    bool named = n->op == OT_OP_OPAQUE;
    ot_dtype type, part;
    scaling x, y;
    if (!named) {
        if (!sink(v, n->out[0], &y)) return false;
        for (uint32_t k = 0; k < n->n_in; k++)
            if (!source(v, place, k, &x) || x.type != y.type) return false;
        return true;
    }
    if (n->n_in < 5 || n->n_in % 3 != 2 || !takes_scale(v, place, n->out[0], 0, &type))
        return false;
    for (uint32_t k = 2; k < n->n_in; k += 3)
        if (!takes_scale(v, place, ot_group_operand(v, place, k), k + 1, &part) || part != type)
            return false;
    return true;
}

static bool takes_pool(const ot_group_view *v, uint32_t place)
{
    const ot_node *n = v->node(v->of, place);
    ot_group_shape from, to;
    ot_dtype type, made;
    scaling x, y;
    if (!ot_group_shape_of(v, ot_group_operand(v, place, 0), &from) ||
        !ot_group_shape_of(v, n->out[0], &to))
        return false;
    if ((from.rank != 3 && from.rank != 4) || to.rank != from.rank) return false;
    if (n->op == OT_OP_OPAQUE)
        return ot_attr_int(n, "channels_last", 0) == 0 &&
               takes_scale(v, place, n->in[0], 1, &type) &&
               takes_scale(v, place, n->out[0], 3, &made) && made == type;
    if (n->n_in != 1 || !source(v, place, 0, &x)) return false;
    bool average = n->op == OT_OP_AveragePool || n->op == OT_OP_GlobalAveragePool;
    return average || (sink(v, n->out[0], &y) && same(&x, &y));
}

/* ---- what follows ---- */

static const ot_node *first_of(const ot_group_view *v, const ot_group *x)
{
    return v->node(v->of, x->parts[0].place);
}

/* Maps of a convolution, columns of a product. */
static int64_t slices_of(const ot_group_view *v, const ot_group *x, uint32_t *rank)
{
    const ot_node *n = first_of(v, x);
    ot_group_shape y;
    if (!ot_group_shape_of(v, n->out[0], &y) || y.rank < 2) return 0;
    *rank = y.rank;
    return n->op == OT_OP_ConvInteger ? y.dims[1] : y.dims[y.rank - 1];
}

/* Clip's limits, where it has any, are numbers that are known. */
static bool takes_limits(const ot_group_view *v, uint32_t place)
{
    ot_group_shape s;
    uint32_t n_in;
    const ot_id *in = v->operands(v->of, place, &n_in);
    for (uint32_t k = 1; k < n_in && k < 3; k++)
        if (in[k] != OT_NONE &&
            (!const_shape(v, in[k], &s) || s.dtype != OT_F32 || ot_group_count(&s) != 1))
            return false;
    return true;
}

/* A number of float32 that the run may bring. */
static bool is_single(const ot_group_view *v, ot_id value)
{
    ot_group_shape s;
    return ot_group_shape_of(v, value, &s) && s.dtype == OT_F32 && ot_group_count(&s) == 1;
}

/* What a product of integers is multiplied with: the scale of A, those of B's columns, or what a
 * Mul makes of the two. */
static bool takes_scales(const ot_group_view *v, ot_id factor, int64_t columns)
{
    uint32_t maker = v->maker(v->of, factor), n_in = 1;
    const ot_node *n = maker == OT_NONE ? NULL : v->node(v->of, maker);
    const ot_id *pair = &factor;
    bool fixed = false, single = false;
    ot_group_shape s;
    if (!ot_group_shape_of(v, factor, &s) || s.dtype != OT_F32) return false;
    if (n && n->op == OT_OP_Mul && n->n_in == 2) pair = v->operands(v->of, maker, &n_in);
    for (uint32_t k = 0; k < n_in; k++) {
        if (pair[k] == OT_NONE) continue;
        if (!fixed && const_by_column(v, pair[k], OT_F32, columns))
            fixed = true;
        else if (!single && is_single(v, pair[k]))
            single = true;
        else
            return false;
    }
    return true;
}

static bool takes_rescale(const ot_group_view *v, const ot_group *x, uint32_t place)
{
    const ot_node *n = v->node(v->of, place);
    uint32_t rank;
    /* the Mul of scales was looked at with the one before it */
    if (n->op == OT_OP_Cast || x->n > 2) return true;
    bool second = ot_group_operand(v, place, 0) == x->result;
    ot_id factor = ot_group_operand(v, place, second ? 1 : 0);
    if (first_of(v, x)->op == OT_OP_ConvInteger) return is_single(v, factor);
    return takes_scales(v, factor, slices_of(v, x, &rank));
}

static bool takes_bias(const ot_group_view *v, const ot_group *x, uint32_t place)
{
    ot_group_shape s;
    uint32_t rank = 0;
    int64_t n = slices_of(v, x, &rank);
    bool second = ot_group_operand(v, place, 0) == x->result;
    if (!const_shape(v, ot_group_operand(v, place, second ? 1 : 0), &s) || s.dtype != OT_F32)
        return false;
    if (first_of(v, x)->op != OT_OP_ConvInteger) return is_by_column(&s, n);
    return ot_group_count(&s) == n && s.rank + 1 >= rank && s.rank <= rank &&
           s.dims[s.rank + 1 - rank] == n;
}

/* By one scale; where bytes are moved or pooled, that was looked at with the operator. */
static bool takes_quantize(const ot_group_view *v, const ot_group *x, uint32_t place)
{
    ot_group_origin o = {v->g, v->node(v->of, place), place};
    ot_op op = first_of(v, x)->op;
    scaling y;
    if (op == OT_OP_Conv || op == OT_OP_MatMul || op == OT_OP_Gemm || op == OT_OP_MatMulInteger)
        return takes_quantizer(v, &o, 1, 0, 0);
    return scaling_of(v->g, o.n, &y);
}

static bool takes_operator(const ot_group_view *v, uint32_t place)
{
    const ot_node *n = v->node(v->of, place);
    switch ((int)n->op) {
    case OT_OP_Conv: return takes_conv(v, place);
    case OT_OP_ConvInteger: return takes_conv_integer(v, place);
    case OT_OP_QLinearConv: return takes_qlinear_conv(v, place);
    case OT_OP_MatMul:
    case OT_OP_Gemm: return takes_product(v, place);
    case OT_OP_MatMulInteger: return takes_matmul_integer(v, place);
    case OT_OP_QLinearMatMul: return takes_qlinear_matmul(v, place);
    case OT_OP_Concat: return takes_concat(v, place);
    case OT_OP_MaxPool:
    case OT_OP_AveragePool:
    case OT_OP_GlobalMaxPool:
    case OT_OP_GlobalAveragePool: return takes_pool(v, place);
    case OT_OP_OPAQUE:
        return ot_bytes_is_named(n, "QLinearConcat") ? takes_concat(v, place)
                                                     : takes_pool(v, place);
    default: return takes_move(v, place);
    }
}

bool ot_engine_takes_bytes(const ot_group_view *v, const ot_group *x, uint32_t place,
                           ot_group_role role)
{
    switch ((int)role) {
    case OT_ROLE_ON_BYTES: return takes_operator(v, place);
    case OT_ROLE_RESCALE: return takes_rescale(v, x, place);
    case OT_ROLE_AFFINE: return takes_bias(v, x, place);
    case OT_ROLE_ACTIVATION: return takes_limits(v, place);
    case OT_ROLE_QUANTIZE: return takes_quantize(v, x, place);
    default: return false;
    }
}
