/* Operators of ONNX as operations of kernels (docs/kernels/language.md), for one tile.
 *
 *   Relu, Add, ...        one statement, element by element
 *   Conv, pools           one statement; the pads are the tile's own, of auto_pad and ceil_mode as
 *                         numbers
 *   ConvTranspose         one statement, of whole places: blocks of places would need inputs by
 *                         phases of the stride
 *   BatchNormalization    sub, div, mul, add with factors of its channels, which are workspace
 *   DepthToSpace, Resize  a transposition, a repetition under other names of the same bytes
 *
 * Files: this one has the table, windows, reductions, normalisations and products;
 * lower_moves.c what moves elements; lower_put.c what both are put together from.
 *
 * Each says which axes of the output may be made in blocks, and what of the operands a block
 * needs: that is all that the second level knows of it. What is not known here is refused.
 */
#include "lower_ops.h"

#include <math.h>

/* ---- windows ---- */

/* Pads of spatial axis `axis`, whether the tile is cut there or not. false: not known. */
static bool pads_of(const tile_node *x, uint32_t axis, int64_t *lo, int64_t *hi)
{
    const lowered *p = x->p;
    const ot_rnode *rn = &p->r->nodes[x->i];
    for (uint32_t d = 0; d < p->r->n_dims; d++) {
        if (rn->lead_axis[d] != (int)axis) continue;
        const ot_op_tile *t = &p->windows[d][p->runs[d][p->at[d]].first].ops[x->i];
        *lo = t->pad_lo;
        *hi = t->pad_hi;
        return true;
    }
    const ot_node *n = &p->g->nodes[rn->node];
    ot_win in[PROG_IN_MAX] = {{0, 0}};
    ot_op_tile whole = {.need = {0, x->out.dims[axis]}, .in = in};
    ot_why why;
    if (!ot_access_window(p->g, n, 0, axis, &whole, &why)) return false;
    *lo = whole.pad_lo;
    *hi = whole.pad_hi;
    return true;
}

/* Along the n spatial axes of a convolution or pool; pads before all axes, then after. */
typedef struct steps {
    int64_t stride[OT_TK_RANK_MAX], dilation[OT_TK_RANK_MAX], pad[OT_TK_RANK_MAX];
} steps;

/* false: the pads are not known. */
static bool steps_of(const tile_node *x, uint32_t n, steps *s)
{
    size_t n_strides, n_dilations;
    const int64_t *strides = ot_attr_ints(&x->n, "strides", &n_strides),
                  *dilations = ot_attr_ints(&x->n, "dilations", &n_dilations);
    if (n > 3) return false;
    for (uint32_t k = 0; k < n; k++) {
        s->stride[k] = strides && k < n_strides ? strides[k] : 1;
        s->dilation[k] = dilations && k < n_dilations ? dilations[k] : 1;
        if (!pads_of(x, 2 + k, &s->pad[k], &s->pad[n + k])) return false;
    }
    return true;
}

static void set_steps(lowered_op *op, const steps *s, uint32_t n)
{
    tile_set_list(op, "stride", s->stride, n);
    tile_set_list(op, "pad", s->pad, 2 * n);
    tile_set_list(op, "dilation", s->dilation, n);
}

/* Settings of a convolution or pool. */
static bool set_windows(const tile_node *x, lowered_op *op, const int64_t *kernel, uint32_t n)
{
    steps s;
    if (!steps_of(x, n, &s)) return false;
    for (uint32_t k = 0; k < n; k++) {
        const int64_t reach = (x->out.dims[2 + k] - 1) * s.stride[k] +
                              (kernel[k] - 1) * s.dilation[k] + 1;
        /* what the last window wants, ceil_mode or not */
        const int64_t behind = reach - x->in[0].dims[2 + k] - s.pad[k];
        if (behind > s.pad[n + k] && ot_attr_int(&x->n, "count_include_pad", 0)) return false;
        s.pad[n + k] = ot_max(behind, 0);
        op->window[2 + k] = (lowered_window){kernel[k], s.stride[k], s.dilation[k], s.pad[k],
                                             s.pad[n + k]};
        op->cut[2 + k] = true;
        op->axis[0][2 + k] = (int8_t)(2 + k);
    }
    set_steps(op, &s, n);
    return true;
}

static const char no_operands[] = "a convolution without its operands";

/* What both kinds of convolution begin with: image, weights and bias, the image's own axis; no
 * other axis follows the result's. false: these are not there. */
static bool begin_conv(const tile_node *x, const char *name, lowered_op *op)
{
    if (x->n_in < 2 || x->in[1].v == OT_NONE || x->in[0].v == OT_NONE) return false;
    *op = (lowered_op){.pipe = OT_PIPE_CUBE,
                       .name = name,
                       .out = x->out,
                       .n_in = x->n_in > 2 && x->in[2].v != OT_NONE ? 3 : 2};
    for (uint32_t j = 0; j < op->n_in; j++) op->in[j] = x->in[j];
    memset(op->axis, -1, sizeof op->axis);
    tile_set_number(op, "group", (double)ot_attr_int(&x->n, "group", 1));
    op->cut[0] = true;
    op->axis[0][0] = 0;
    return true;
}

static ot_status put_conv(const tile_node *x)
{
    const lowered_tensor *w = &x->in[1];
    const int64_t group = ot_attr_int(&x->n, "group", 1);
    lowered_op op;
    if (!begin_conv(x, "conv", &op)) return tile_refuse(x, no_operands);
    if (!set_windows(x, &op, w->dims + 2, x->out.rank - 2))
        return tile_refuse(x, "a convolution whose pads are not known");
    /* of a group of several maps each would need its own part */
    op.cut[1] = group == 1 || group == x->in[0].dims[1];
    op.axis[1][1] = 0;
    if (group > 1 && w->dims[1] == 1 && x->out.dims[1] == x->in[0].dims[1]) op.axis[0][1] = 1;
    if (group > 1 && x->out.dims[1] != x->in[0].dims[1]) op.cut[1] = false;
    if (op.n_in > 2) op.axis[2][1] = 0;
    return tile_put(x->p, &op);
}

static ot_status put_conv_transpose(const tile_node *x)
{
    const lowered_tensor *w = &x->in[1];
    const bool grouped = ot_attr_int(&x->n, "group", 1) != 1;
    const uint32_t n = x->out.rank - 2;
    int64_t extra[OT_TK_RANK_MAX];
    steps s;
    lowered_op op;
    if (!begin_conv(x, "conv_transpose", &op)) return tile_refuse(x, no_operands);
    if (!steps_of(x, n, &s)) return tile_refuse(x, "a convolution whose pads are not known");
    for (uint32_t k = 0; k < n; k++) {
        const int64_t reach = (x->in[0].dims[2 + k] - 1) * s.stride[k] +
                              (w->dims[2 + k] - 1) * s.dilation[k] + 1;
        extra[k] = x->out.dims[2 + k] + s.pad[k] + s.pad[n + k] - reach;
        if (extra[k] < 0) return tile_refuse(x, "a convolution whose pads are not known");
    }
    set_steps(&op, &s, n);
    tile_set_list(&op, "extra", extra, n);
    op.cut[1] = !grouped;
    if (!grouped) op.axis[1][1] = 1;
    if (op.n_in > 2 && !grouped) op.axis[2][1] = 0;
    return tile_put(x->p, &op);
}

static ot_status put_pool(const tile_node *x)
{
    size_t n;
    const bool most = strcmp(x->n.op_type, "MaxPool") == 0;
    const int64_t *kernel = ot_attr_ints(&x->n, "kernel_shape", &n);
    lowered_op op = {
        .pipe = OT_PIPE_VECTOR, .name = most ? "maxpool" : "averagepool", .out = x->out, .n_in = 1};
    op.in[0] = x->in[0];
    memset(op.axis, -1, sizeof op.axis);
    if (!kernel || n != x->out.rank - 2) return tile_refuse(x, "a pool without its kernel");
    tile_set_list(&op, "kernel", kernel, (uint32_t)n);
    if (!set_windows(x, &op, kernel, (uint32_t)n))
        return tile_refuse(x, "a pool whose pads are not known");
    if (!most && ot_attr_int(&x->n, "count_include_pad", 0))
        tile_set_number(&op, "count_include_pad", 1);
    for (uint32_t k = 0; k < 2; k++) op.cut[k] = true, op.axis[0][k] = (int8_t)k;
    return tile_put(x->p, &op);
}

/* ---- reductions and rows ---- */

static ot_status put_reduced(const tile_node *x, const char *name, const bool *reduced)
{
    const lowered_tensor *in = &x->in[0];
    int64_t axes[OT_TK_RANK_MAX], kept[OT_TK_RANK_MAX] = {0};
    uint32_t n = 0;
    lowered_tensor out;
    for (uint32_t k = 0; k < in->rank; k++) {
        if (reduced[k]) axes[n++] = k;
        kept[k] = reduced[k] ? 1 : in->dims[k];
    }
    OT_TRY(lowered_alias(x->p, &x->out, in->rank, kept, &out)); /* with the axes that are gone */
    lowered_op op = tile_along(name, &out, in, reduced);
    if (n > 0) tile_set_list(&op, "axis", axes, n);
    if (n == 0) op.name = "identity";
    return tile_put(x->p, &op);
}

static ot_status put_reduction(const tile_node *x, const char *name)
{
    bool reduced[OT_TK_RANK_MAX] = {false};
    double list[OT_TK_RANK_MAX];
    size_t n = 0, n_attr = 0;
    const int64_t *axes = ot_attr_ints(&x->n, "axes", &n_attr);
    const uint32_t rank = x->in[0].rank;
    if (axes && n_attr > OT_TK_RANK_MAX) return tile_refuse(x, "a reduction of many axes");
    for (n = 0; axes && n < n_attr; n++) list[n] = (double)axes[n];
    if (!axes && x->n_in > 1 && x->n.in[1] != OT_NONE &&
        !tile_numbers(x, 1, list, OT_TK_RANK_MAX, &n))
        return tile_refuse(x, "a reduction whose axes are not known");
    for (size_t k = 0; k < n; k++) {
        double axis = list[k] < 0 ? list[k] + rank : list[k];
        if (axis >= 0 && axis < rank) reduced[(uint32_t)axis] = true;
    }
    for (uint32_t k = 0; n == 0 && k < rank && !ot_attr_int(&x->n, "noop_with_empty_axes", 0); k++)
        reduced[k] = true;
    return put_reduced(x, name, reduced);
}

static ot_status put_global(const tile_node *x, const char *name)
{
    bool reduced[OT_TK_RANK_MAX] = {false};
    for (uint32_t k = 2; k < x->in[0].rank; k++) reduced[k] = true;
    return put_reduced(x, name, reduced);
}

static ot_status put_softmax(const tile_node *x)
{
    const lowered_tensor *in = &x->in[0];
    const bool old = x->n.version < 13;
    int64_t axis = ot_attr_int(&x->n, "axis", old ? 1 : -1);
    bool whole[OT_TK_RANK_MAX] = {false};
    if (axis < 0) axis += in->rank;
    for (uint32_t k = (uint32_t)axis + 1; old && k < in->rank; k++)
        if (in->dims[k] != 1) return tile_refuse(x, "a Softmax over several axes");
    whole[axis] = true;
    lowered_op op = tile_along("softmax", &x->out, in, whole);
    tile_set_number(&op, "axis", (double)axis);
    return tile_put(x->p, &op);
}

/* ---- several statements ---- */

/* A channel's number for each place of the tile. */
static ot_status per_channel(lowered *p, const lowered_tensor *x, uint32_t rank,
                             lowered_tensor *out)
{
    int64_t dims[OT_TK_RANK_MAX] = {x->dims[0]};
    for (uint32_t k = 1; k + 1 < rank; k++) dims[k] = 1;
    return rank <= 2 ? (*out = *x, OT_OK) : lowered_alias(p, x, rank - 1, dims, out);
}

static ot_status put_batch_norm(const tile_node *x)
{
    lowered *p = x->p;
    const uint32_t rank = x->out.rank;
    lowered_tensor deviation, factor[4], root;
    if (x->n_in < 5 || x->n.version < 9 || ot_attr_int(&x->n, "training_mode", 0))
        return tile_refuse(x, "a normalisation that learns");
    for (uint32_t j = 1; j < 5; j++)
        if (x->in[j].v == OT_NONE || x->in[j].rank != 1)
            return tile_refuse(x, "a normalisation without its factors");
    OT_TRY(lowered_alloc(p, p->node, "_deviation", OT_SCOPE_GM, 1, &x->in[4], &deviation));
    lowered_op eps = tile_pointwise("adds", &deviation, &x->in[4], 1),
               sqrt_ = tile_pointwise("sqrt", &deviation, &deviation, 1);
    tile_set_number(&eps, "value", (double)ot_attr_float(&x->n, "epsilon", 1e-5f));
    OT_TRY(lowered_statement(p, &eps));
    OT_TRY(lowered_statement(p, &sqrt_));
    for (uint32_t j = 1; j < 4; j++) OT_TRY(per_channel(p, &x->in[j], rank, &factor[j]));
    OT_TRY(per_channel(p, &deviation, rank, &root));
    OT_TRY(tile_put_pair(p, "sub", &x->out, &x->in[0], &factor[3]));
    OT_TRY(tile_put_pair(p, "div", &x->out, &x->out, &root));
    OT_TRY(tile_put_pair(p, "mul", &x->out, &x->out, &factor[1]));
    return tile_put_pair(p, "add", &x->out, &x->out, &factor[2]);
}

/* Mean and deviation over the axes in `over`; then factors, which have the shape of the last
 * axes, or one number a channel. */
static ot_status put_normed(const tile_node *x, const bool *over, const lowered_tensor *scale,
                            const lowered_tensor *shift)
{
    lowered *p = x->p;
    const uint32_t rank = x->out.rank;
    lowered_tensor like = x->in[0], mean, variance, square;
    int64_t axes[OT_TK_RANK_MAX];
    uint32_t n = 0;
    for (uint32_t k = 0; k < rank; k++)
        if (over[k]) axes[n++] = k, like.dims[k] = 1;
    OT_TRY(lowered_alloc(p, p->node, "_mean", OT_SCOPE_GM, 1, &like, &mean));
    OT_TRY(lowered_alloc(p, p->node, "_variance", OT_SCOPE_GM, 1, &like, &variance));
    OT_TRY(lowered_alloc(p, p->node, "_square", OT_SCOPE_GM, 1, &x->in[0], &square));
    lowered_op means = tile_along("reduce_mean", &mean, &x->in[0], over),
               spread = tile_along("reduce_mean", &variance, &square, over);
    tile_set_list(&means, "axis", axes, n);
    tile_set_list(&spread, "axis", axes, n);
    OT_TRY(tile_put(p, &means));
    OT_TRY(tile_put_pair(p, "sub", &x->out, &x->in[0], &mean));
    OT_TRY(tile_put_unary(p, "square", &square, &x->out));
    OT_TRY(tile_put(p, &spread));
    OT_TRY(tile_put_number(p, "adds", &variance, &variance, "value",
                           (double)ot_attr_float(&x->n, "epsilon", 1e-5f)));
    OT_TRY(tile_put_unary(p, "sqrt", &variance, &variance));
    OT_TRY(tile_put_pair(p, "div", &x->out, &x->out, &variance));
    OT_TRY(tile_put_pair(p, "mul", &x->out, &x->out, scale));
    return shift ? tile_put_pair(p, "add", &x->out, &x->out, shift) : OT_OK;
}

static ot_status put_layer_norm(const tile_node *x)
{
    int64_t axis = ot_attr_int(&x->n, "axis", -1);
    bool over[OT_TK_RANK_MAX] = {false};
    if (axis < 0) axis += x->out.rank;
    for (uint32_t k = 0; k < x->out.rank; k++) over[k] = k >= axis;
    if (x->n_in < 2 || x->in[1].v == OT_NONE)
        return tile_refuse(x, "a normalisation without its factors");
    return put_normed(x, over, &x->in[1], x->n_in > 2 && x->in[2].v != OT_NONE ? &x->in[2] : NULL);
}

static ot_status put_instance_norm(const tile_node *x)
{
    bool over[OT_TK_RANK_MAX] = {false};
    lowered_tensor scale, shift;
    for (uint32_t k = 2; k < x->out.rank; k++) over[k] = true;
    if (x->n_in < 3 || x->in[1].v == OT_NONE || x->in[2].v == OT_NONE)
        return tile_refuse(x, "a normalisation without its factors");
    OT_TRY(per_channel(x->p, &x->in[1], x->out.rank, &scale));
    OT_TRY(per_channel(x->p, &x->in[2], x->out.rank, &shift));
    return put_normed(x, over, &scale, &shift);
}

static ot_status put_clip(const tile_node *x)
{
    double bound[2] = {-(double)INFINITY, (double)INFINITY};
    size_t n;
    lowered_op op = tile_pointwise("clip", &x->out, x->in, 1);
    for (uint32_t j = 0; j < 2; j++) {
        const ot_attr *a = ot_attr_find(&x->n, j ? "max" : "min");
        if (a && a->kind == OT_ATTR_FLOAT) bound[j] = (double)a->f;
        if (!a && 1 + j < x->n_in && x->n.in[1 + j] != OT_NONE &&
            !tile_numbers(x, 1 + j, &bound[j], 1, &n))
            return tile_refuse(x, "a Clip whose bounds are not known");
        tile_set_number(&op, j ? "max" : "min", bound[j]);
    }
    return tile_put(x->p, &op);
}

static ot_status put_hard(const tile_node *x)
{
    const bool swish = strcmp(x->n.op_type, "HardSwish") == 0;
    const double alpha = swish ? 1.0 / 6 : (double)ot_attr_float(&x->n, "alpha", 0.2f),
                 beta = swish ? 0.5 : (double)ot_attr_float(&x->n, "beta", 0.5f);
    lowered_tensor gate = x->out;
    if (swish) OT_TRY(lowered_alloc(x->p, x->p->node, "_gate", OT_SCOPE_GM, 1, &x->out, &gate));
    OT_TRY(tile_put_number(x->p, "muls", &gate, &x->in[0], "value", alpha));
    OT_TRY(tile_put_number(x->p, "adds", &gate, &gate, "value", beta));
    lowered_op clip = tile_pointwise("clip", &gate, &gate, 1);
    tile_set_number(&clip, "min", 0);
    tile_set_number(&clip, "max", 1);
    OT_TRY(tile_put(x->p, &clip));
    return swish ? tile_put_pair(x->p, "mul", &x->out, &x->in[0], &gate) : OT_OK;
}

/* x1 + x2 + ..., or the largest, the least of them. */
static ot_status put_many(const tile_node *x, const char *name)
{
    if (x->n_in == 1) return tile_put_unary(x->p, "identity", &x->out, &x->in[0]);
    for (uint32_t j = 1; j < x->n_in; j++)
        OT_TRY(tile_put_pair(x->p, name, &x->out, j == 1 ? &x->in[0] : &x->out, &x->in[j]));
    return OT_OK;
}

static ot_status put_leaky(const tile_node *x)
{
    return tile_put_number(x->p, "leakyrelu", &x->out, &x->in[0], "alpha",
                           (double)ot_attr_float(&x->n, "alpha", 0.01f));
}

/* ---- products ---- */

static ot_status put_product(const tile_node *x, bool turn_a, bool turn_b)
{
    const lowered_tensor *a = &x->in[0], *b = &x->in[1];
    const uint32_t rank = x->out.rank;
    lowered_op op = {.pipe = OT_PIPE_CUBE,
                     .name = "matmul",
                     .out = x->out,
                     .n_in = x->n_in > 2 && x->in[2].v != OT_NONE ? 3 : 2};
    memset(op.axis, -1, sizeof op.axis);
    for (uint32_t j = 0; j < op.n_in; j++) op.in[j] = x->in[j];
    if (a->v == OT_NONE || b->v == OT_NONE || a->rank < 2 || b->rank < 2 || rank < 2)
        return tile_refuse(x, "a product of vectors");
    for (uint32_t k = 0; k < rank; k++) {
        op.cut[k] = true;
        for (uint32_t j = 0; j < op.n_in; j++) {
            const int64_t at = (int64_t)k - (int64_t)rank + (int64_t)op.in[j].rank;
            if (at >= 0 && (k + 2 < rank || j == 2) && op.in[j].dims[at] == x->out.dims[k] &&
                x->out.dims[k] > 1)
                op.axis[j][k] = (int8_t)at;
        }
    }
    op.axis[0][rank - 2] = (int8_t)(turn_a ? a->rank - 1 : a->rank - 2);
    op.axis[1][rank - 1] = (int8_t)(turn_b ? b->rank - 2 : b->rank - 1);
    if (turn_a) tile_set_number(&op, "transpose_a", 1);
    if (turn_b) tile_set_number(&op, "transpose_b", 1);
    return tile_put(x->p, &op);
}

static ot_status put_gemm(const tile_node *x)
{
    if ((double)ot_attr_float(&x->n, "alpha", 1) != 1 ||
        (double)ot_attr_float(&x->n, "beta", 1) != 1)
        return tile_refuse(x, "a Gemm with factors");
    return put_product(x, ot_attr_int(&x->n, "transA", 0) != 0,
                       ot_attr_int(&x->n, "transB", 0) != 0);
}

static ot_status put_matmul(const tile_node *x) { return put_product(x, false, false); }

/* ---- the table ---- */

static const struct {
    const char *op, *name;
    enum { UNARY, BINARY, TERNARY, MANY, REDUCTION, GLOBAL } how;
} SIMPLE[] = {
    {"Abs", "abs", UNARY},
    {"Neg", "neg", UNARY},
    {"Exp", "exp", UNARY},
    {"Log", "log", UNARY},
    {"Sqrt", "sqrt", UNARY},
    {"Reciprocal", "reciprocal", UNARY},
    {"Relu", "relu", UNARY},
    {"Sigmoid", "sigmoid", UNARY},
    {"Tanh", "tanh", UNARY},
    {"Erf", "erf", UNARY},
    {"Sin", "sin", UNARY},
    {"Cos", "cos", UNARY},
    {"Floor", "floor", UNARY},
    {"Ceil", "ceil", UNARY},
    {"Round", "round", UNARY},
    {"Sign", "sign", UNARY},
    {"Not", "not", UNARY},
    {"Identity", "identity", UNARY},
    {"Cast", "cast", UNARY},
    {"Dropout", "identity", UNARY},
    {"Reshape", "reshape", UNARY},
    {"Flatten", "reshape", UNARY},
    {"Squeeze", "reshape", UNARY},
    {"Unsqueeze", "reshape", UNARY},
    {"Expand", "expand", UNARY},
    {"Add", "add", BINARY},
    {"Sub", "sub", BINARY},
    {"Mul", "mul", BINARY},
    {"Div", "div", BINARY},
    {"Pow", "pow", BINARY},
    {"And", "and", BINARY},
    {"Or", "or", BINARY},
    {"Xor", "xor", BINARY},
    {"Equal", "equal", BINARY},
    {"Less", "less", BINARY},
    {"LessOrEqual", "lessorequal", BINARY},
    {"Greater", "greater", BINARY},
    {"GreaterOrEqual", "greaterorequal", BINARY},
    {"PRelu", "prelu", BINARY},
    {"Where", "where", TERNARY},
    {"Sum", "add", MANY},
    {"Max", "max", MANY},
    {"Min", "min", MANY},
    {"ReduceSum", "reduce_sum", REDUCTION},
    {"ReduceMean", "reduce_mean", REDUCTION},
    {"ReduceMax", "reduce_max", REDUCTION},
    {"ReduceMin", "reduce_min", REDUCTION},
    {"ReduceProd", "reduce_prod", REDUCTION},
    {"ReduceSumSquare", "reduce_sum_square", REDUCTION},
    {"GlobalAveragePool", "reduce_mean", GLOBAL},
    {"GlobalMaxPool", "reduce_max", GLOBAL},
};

static const struct {
    const char *op;
    ot_status (*put)(const tile_node *x);
} OTHERS[] = {
    {"Conv", put_conv},
    {"ConvTranspose", put_conv_transpose},
    {"MaxPool", put_pool},
    {"AveragePool", put_pool},
    {"Softmax", put_softmax},
    {"Transpose", tile_transpose},
    {"DepthToSpace", tile_blocks},
    {"SpaceToDepth", tile_blocks},
    {"Resize", tile_resize},
    {"Upsample", tile_resize},
    {"Concat", tile_concat},
    {"Pad", tile_pad},
    {"BatchNormalization", put_batch_norm},
    {"Clip", put_clip},
    {"HardSigmoid", put_hard},
    {"HardSwish", put_hard},
    {"LeakyRelu", put_leaky},
    {"Slice", tile_slice},
    {"LayerNormalization", put_layer_norm},
    {"InstanceNormalization", put_instance_norm},
    {"MatMul", put_matmul},
    {"Gemm", put_gemm},
};

/* A shape changes, and blocks of one are no blocks of the other: in one row. */
static ot_status put_renamed(const tile_node *x)
{
    int64_t n = 1;
    lowered_tensor src, dst;
    for (uint32_t k = 0; k < x->out.rank; k++) n *= x->out.dims[k];
    OT_TRY(lowered_alias(x->p, &x->in[0], 1, &n, &src));
    OT_TRY(lowered_alias(x->p, &x->out, 1, &n, &dst));
    return tile_put_unary(x->p, "identity", &dst, &src);
}

static ot_status put_simple(const tile_node *x, size_t k)
{
    const uint32_t wanted = SIMPLE[k].how == BINARY    ? 2
                            : SIMPLE[k].how == TERNARY ? 3
                            : SIMPLE[k].how == MANY    ? x->n_in
                                                       : 1;
    if (x->n_in < wanted) return tile_refuse(x, "an operator without its operands");
    for (uint32_t j = 0; j < wanted; j++)
        if (x->in[j].v == OT_NONE) return tile_refuse(x, "an operand that is not there");
    if (strcmp(SIMPLE[k].name, "reshape") == 0) return put_renamed(x);
    switch (SIMPLE[k].how) {
    case UNARY: return tile_put_unary(x->p, SIMPLE[k].name, &x->out, &x->in[0]);
    case BINARY: return tile_put_pair(x->p, SIMPLE[k].name, &x->out, &x->in[0], &x->in[1]);
    case MANY: return put_many(x, SIMPLE[k].name);
    case REDUCTION: return put_reduction(x, SIMPLE[k].name);
    case GLOBAL: return put_global(x, SIMPLE[k].name);
    case TERNARY: break;
    }
    lowered_op op = tile_pointwise(SIMPLE[k].name, &x->out, x->in, 3);
    return tile_put(x->p, &op);
}

ot_status lowered_node(lowered *p, uint32_t i, const ot_adapted *ad, const lowered_tensor *in,
                       uint32_t n_in, const lowered_tensor *out)
{
    tile_node x = {.p = p,
                   .n = p->g->nodes[p->r->nodes[i].node],
                   .i = i,
                   .ad = ad,
                   .in = in,
                   .n_in = n_in,
                   .out = *out};
    if (ad->kind == OT_ADAPT_FORWARD) return tile_put_unary(p, "identity", out, &in[ad->forward]);
    if (ad->op_type) return lowered_refuse(p, "an operator that another one stands for");
    if (x.n.domain[0]) return lowered_refuse(p, "an operator of another domain");
    x.n.attrs = (ot_attr *)ad->attrs;
    x.n.n_attrs = ad->n_attrs;
    for (size_t k = 0; k < sizeof SIMPLE / sizeof *SIMPLE; k++)
        if (strcmp(SIMPLE[k].op, x.n.op_type) == 0) return put_simple(&x, k);
    for (size_t k = 0; k < sizeof OTHERS / sizeof *OTHERS; k++)
        if (strcmp(OTHERS[k].op, x.n.op_type) == 0)
            return in[0].v == OT_NONE && OTHERS[k].put != tile_concat
                       ? lowered_refuse(p, "an operand that is not there")
                       : OTHERS[k].put(&x);
    const char *why = ot_format(p->a, "the operator %s", x.n.op_type);
    return why ? lowered_refuse(p, why) : lowered_nomem(p);
}
