/* What ONNX Runtime's implementations of 8-bit tensors hold besides operands and results.
 *
 *   convolution of bytes by int8 weights around 0   where each tap of its windows begins
 *   depthwise, any other                            the same, and sums of 32 bits
 *   any other                                       its windows, unfolded, and sums of 32 bits
 *   mean of windows                                 its input in float32
 *
 * Measured in ONNX Runtime 1.31.1 on x86-64. Weights around 0 are taken as they are where channels
 * fill its registers.
 */
#include "simulate.h"

#define ADDRESS 8 /* bytes of one */
#define SUM     4

typedef struct conv_on_bytes {
    ot_dtype x;        /* what its input is made of */
    const ot_value *w; /* [channels, channels of a group, kernel...] */
    ot_id zero;        /* of the weights; OT_NONE: 0 */
    int64_t pixels, taps, groups;
    bool is_strided;
} conv_on_bytes;

static ot_id operand(const ot_node *n, uint32_t k) { return n->n_in > k ? n->in[k] : OT_NONE; }

/* Type, weights and zero point of a QLinearConv, or of a Conv between quantizers. */
static bool operands_of(const ot_graph *g, const ot_node *n, conv_on_bytes *c)
{
    if (n->op == OT_OP_QLinearConv) {
        c->x = g->values[n->in[0]].dtype;
        c->w = &g->values[n->in[3]];
        c->zero = operand(n, 5);
        return true;
    }
    const ot_id x = ot_dequantized_from(g, operand(n, 0)), w = operand(n, 1),
                by = w == OT_NONE ? OT_NONE : g->values[w].producer;
    if (n->op != OT_OP_Conv || x == OT_NONE || ot_dequantized_from(g, w) == OT_NONE) return false;
    c->x = OT_U8; /* also from int8, which optimisations on x86-64 move by 128 */
    c->w = &g->values[ot_dequantized_from(g, w)];
    c->zero = operand(&g->nodes[by], 2);
    return true;
}

static bool start(const ot_graph *g, const ot_node *n, conv_on_bytes *c)
{
    const ot_value *y = &g->values[n->out[0]];
    int64_t elems;
    *c = (conv_on_bytes){
        .taps = 1, .groups = ot_attr_int(n, "group", 1), .is_strided = ot_sim_is_strided(n)};
    if (!operands_of(g, n, c) || !ot_value_elems(y, &elems) || y->rank < 3 || y->dims[0] <= 0 ||
        y->dims[1] <= 0 || c->w->rank != y->rank || !ot_value_is_static(c->w))
        return false;
    for (int32_t k = 2; k < c->w->rank; k++)
        if (!ot_mul_i64(c->taps, c->w->dims[k], &c->taps)) return false;
    c->pixels = elems / y->dims[0] / y->dims[1];
    return true;
}

static bool is_zero(const ot_graph *g, ot_id v)
{
    const ot_tensor *t = v == OT_NONE ? NULL : g->values[v].init;
    if (v == OT_NONE) return true;
    if (!t || !t->data) return false;
    for (size_t k = 0; k < t->bytes; k++)
        if (((const uint8_t *)t->data)[k] != 0) return false;
    return true;
}

static bool is_depthwise(const conv_on_bytes *c)
{
    return c->groups > 1 && c->w->dims[1] == 1 && c->w->dims[0] == c->groups;
}

static bool takes_as_they_are(const ot_graph *g, const conv_on_bytes *c)
{
    const int64_t in = c->w->dims[1], out = c->w->dims[0];
    if (c->x != OT_U8 || c->w->dtype != OT_I8 || !is_zero(g, c->zero)) return false;
    if (is_depthwise(c)) return out % 16 == 0;
    return c->groups == 1 && in % 4 == 0 && out % 4 == 0 && out >= 16;
}

/* per pixel of a result; -1: no size */
static int64_t bytes_of_pixel(const ot_graph *g, const conv_on_bytes *c)
{
    int64_t addresses, sums, windows;
    if (!ot_mul_i64(c->taps, ADDRESS, &addresses) || !ot_mul_i64(c->w->dims[0], SUM, &sums) ||
        !ot_mul_i64(c->taps, c->w->dims[1], &windows))
        return -1;
    if (takes_as_they_are(g, c)) return c->taps == 1 ? 0 : addresses;
    if (is_depthwise(c)) return ot_add_i64(sums, addresses, &sums) ? sums : -1;
    if (c->taps == 1 && !c->is_strided) return sums;
    return ot_add_i64(sums, windows, &sums) ? sums : -1;
}

int64_t ot_sim_scratch_on_bytes(const ot_graph *g, const ot_node *n)
{
    conv_on_bytes c;
    int64_t bytes = 0;
    if (n->op == OT_OP_AveragePool)
        return ot_sim_held_bytes(&g->values[n->in[0]], &bytes) ? bytes : 0;
    if (!start(g, n, &c)) return 0;
    const int64_t of_pixel = bytes_of_pixel(g, &c);
    const bool ok = of_pixel >= 0 && ot_mul_i64(c.pixels, of_pixel, &bytes);
    return ok && bytes <= OT_SIM_MOST_BYTES ? bytes : 0;
}
