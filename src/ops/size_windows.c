/* Terms of the results of convolutions, pools and what moves blocks (size_rules.c): as their shape
 * rules (shape_window.c) compute them, on terms.
 */
#include "access.h"
#include "shape.h"
#include "size_rules.h"

typedef const ot_term *terms;

static bool is_same(const ot_node *n)
{
    return strncmp(ot_attr_str(n, "auto_pad", "NOTSET"), "SAME", 4) == 0;
}

static int64_t pads_of(const ot_node *n, size_t k, size_t axes, bool end)
{
    if (strcmp(ot_attr_str(n, "auto_pad", "NOTSET"), "VALID") == 0) return 0;
    return ot_sizing_item(n, "pads", end ? k + axes : k, 0);
}

/* One axis of a convolution or pool; kernel: its extent with dilation. */
static ot_term window(ot_sizing *x, const ot_node *n, ot_term in, size_t k, size_t axes,
                      int64_t kernel, bool ceil_mode)
{
    const int64_t stride = ot_sizing_item(n, "strides", k, 1), lo = pads_of(n, k, axes, false),
                  hi = pads_of(n, k, axes, true);
    if (stride < 1 || in == OT_NONE) return OT_NONE;
    const ot_term s = ot_sizing_number(x, stride);
    if (is_same(n))
        return ot_term_div(x->t->terms,
                           ot_term_add(x->t->terms, in, ot_sizing_number(x, stride - 1)), s);
    /* Sizes smaller than the kernel are the model's to refuse. */
    const ot_term room = ot_term_max(
        x->t->terms, ot_term_add(x->t->terms, in, ot_sizing_number(x, lo + hi - kernel)),
        ot_sizing_number(x, 0));
    const ot_term out = ot_term_add(
        x->t->terms,
        ot_term_div(
            x->t->terms,
            ceil_mode ? ot_term_add(x->t->terms, room, ot_sizing_number(x, stride - 1)) : room, s),
        ot_sizing_number(x, 1));
    if (!ceil_mode) return out;
    /* Less a window that would begin behind the data: no more windows than begin in it. */
    return ot_term_min(
        x->t->terms, out,
        ot_term_add(
            x->t->terms,
            ot_term_div(x->t->terms, ot_term_add(x->t->terms, in, ot_sizing_number(x, lo - 1)), s),
            ot_sizing_number(x, 1)));
}

void ot_size_convolution(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const uint32_t at = ot_op_row_of(n->op)->weights;
    const terms in = ot_sizing_dims(x, n, 0), w = ot_sizing_dims(x, n, at);
    if (!in || !w || ot_sizing_rank(x, n, 0) != rank || ot_sizing_rank(x, n, at) != rank) return;
    out[0] = in[0];
    out[1] = w[0];
    for (int32_t k = 2; k < rank; k++) {
        int64_t size;
        if (!ot_term_is_const(x->t->terms, w[k], &size)) continue;
        const size_t axis = (size_t)k - 2;
        out[k] = window(x, n, in[k], axis, (size_t)rank - 2,
                        (size - 1) * ot_sizing_item(n, "dilations", axis, 1) + 1, false);
    }
}

void ot_size_pool(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    const bool ceil_mode = ot_attr_int(n, "ceil_mode", 0) != 0;
    if (!in || ot_sizing_rank(x, n, 0) != rank) return;
    for (int32_t k = 0; k < 2 && k < rank; k++) out[k] = in[k];
    for (int32_t k = 2; k < rank; k++) {
        const size_t axis = (size_t)k - 2;
        const int64_t dilation = ot_sizing_item(n, "dilations", axis, 1);
        if (is_same(n) && dilation != 1) continue;
        out[k] = window(x, n, in[k], axis, (size_t)rank - 2,
                        (ot_sizing_item(n, "kernel_shape", axis, 1) - 1) * dilation + 1, ceil_mode);
    }
}

void ot_size_transposed(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0), w = ot_sizing_dims(x, n, 1);
    size_t have = 0;
    const int64_t *fixed = ot_attr_ints(n, "output_shape", &have);
    if (!in || !w || ot_sizing_rank(x, n, 0) != rank || ot_sizing_rank(x, n, 1) != rank) return;
    out[0] = in[0];
    out[1] = ot_term_mul(x->t->terms, w[1], ot_sizing_number(x, ot_attr_int(n, "group", 1)));
    for (int32_t k = 2; k < rank; k++) {
        const size_t axis = (size_t)k - 2, axes = (size_t)rank - 2;
        const int64_t stride = ot_sizing_item(n, "strides", axis, 1);
        int64_t size;
        if (have >= axes) out[k] = ot_sizing_number(x, fixed[have - axes + axis]);
        if (have > 0 || !ot_term_is_const(x->t->terms, w[k], &size)) continue;
        const int64_t more = (size - 1) * ot_sizing_item(n, "dilations", axis, 1) + 1 +
                             ot_sizing_item(n, "output_padding", axis, 0) -
                             pads_of(n, axis, axes, false) - pads_of(n, axis, axes, true) - stride;
        const ot_term upscaled = ot_term_mul(x->t->terms, in[k], ot_sizing_number(x, stride));
        out[k] = ot_term_add(x->t->terms, upscaled, ot_sizing_number(x, more));
        if (is_same(n)) out[k] = ot_term_min(x->t->terms, out[k], upscaled);
        out[k] = ot_term_max(x->t->terms, out[k], ot_sizing_number(x, 1)); /* less is refused */
    }
}

void ot_size_global_pool(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    for (int32_t k = 0; in && k < rank; k++) out[k] = k < 2 ? in[k] : ot_sizing_number(x, 1);
}

void ot_size_blocks(ot_sizing *x, const ot_node *n, ot_term *out)
{
    const terms in = ot_sizing_dims(x, n, 0);
    const bool up = n->op == OT_OP_DepthToSpace;
    const int64_t b = ot_attr_int(n, "blocksize", 1);
    if (!in || ot_sizing_rank(x, n, 0) != 4 || b < 1 || b > 4096) return;
    out[0] = in[0];
    out[1] = up ? ot_term_div(x->t->terms, in[1], ot_sizing_number(x, b * b))
                : ot_term_mul(x->t->terms, in[1], ot_sizing_number(x, b * b));
    for (int k = 2; k < 4; k++)
        out[k] = up ? ot_term_mul(x->t->terms, in[k], ot_sizing_number(x, b))
                    : ot_term_div(x->t->terms, in[k], ot_sizing_number(x, b));
}
