/* Table of the window family, and the arithmetic of sliding windows (ref_window.h).
 *
 * Sizes are bounded here: attributes at most 2^31, spatial sizes at most 2^40, so that sums and
 * products of two stay in int64 and the implementations need no further checks.
 */
#include "ref_window.h"

#define ATTR_MAX   ((int64_t)1 << 31)
#define SIZE_BOUND ((int64_t)1 << 40)

const ot_op_entry ot_ops_window[] = {
    {OT_OP_Conv, ot_ref_conv},
    {OT_OP_ConvInteger, ot_ref_conv_integer},
    {OT_OP_QLinearConv, ot_ref_qlinear_conv},
    {OT_OP_ConvTranspose, ot_ref_conv_transpose},
    {OT_OP_MaxPool, ot_ref_max_pool},
    {OT_OP_AveragePool, ot_ref_average_pool},
    {OT_OP_LpPool, ot_ref_lp_pool},
    {OT_OP_GlobalAveragePool, ot_ref_global_pool},
    {OT_OP_GlobalMaxPool, ot_ref_global_pool},
    {OT_OP_GlobalLpPool, ot_ref_global_pool},
    {OT_OP_LRN, ot_ref_lrn},
    {OT_OP_Resize, ot_ref_resize},
    {OT_OP_Upsample, ot_ref_resize},
    {OT_OP_MaxUnpool, ot_ref_max_unpool},
    {OT_OP_RoiAlign, ot_ref_roi_align},
    {OT_OP_GridSample, ot_ref_grid_sample},
    {OT_OP_DeformConv, ot_ref_deform_conv},
    {OT_OP_OPAQUE, NULL},
};

const ot_op_named ot_ops_window_named[] = {
    {"", "MaxRoiPool", ot_ref_max_roi_pool},
    {"", "AffineGrid", ot_ref_affine_grid},
    {"", "Col2Im", ot_ref_col2im},
    {"", "CausalConvWithState", ot_ref_causal_conv},
    {"com.microsoft", "QLinearAveragePool", ot_ref_qlinear_average_pool},
    {NULL, NULL, NULL},
};

/* ---- attributes ---- */

ot_status ot_window_ints(ot_call *c, const char *name, uint32_t n, int64_t low, int64_t dflt,
                         int64_t *out)
{
    size_t have = 0;
    const int64_t *v = ot_attr_ints(c->node, name, &have);
    for (uint32_t k = 0; k < n; k++) out[k] = dflt;
    if (!v || have == 0) return OT_OK;
    if (have != n) return ot_call_fail(c, "%s has %zu values, must have %u", name, have, n);
    for (uint32_t k = 0; k < n; k++) {
        if (v[k] < low || v[k] > ATTR_MAX)
            return ot_call_fail(c, "%s[%u] is %lld, must be in [%lld, 2^31]", name, k,
                                (long long)v[k], (long long)low);
        out[k] = v[k];
    }
    return OT_OK;
}

static ot_status read_pads(ot_call *c, ot_window *w)
{
    const char *mode = ot_attr_str(c->node, "auto_pad", "NOTSET");
    w->same_upper = strcmp(mode, "SAME_UPPER") == 0;
    w->same_lower = strcmp(mode, "SAME_LOWER") == 0;
    bool valid = strcmp(mode, "VALID") == 0;
    if (!w->same_upper && !w->same_lower && !valid) {
        int64_t pads[2 * OT_RANK_MAX];
        if (mode[0] != '\0' && strcmp(mode, "NOTSET") != 0)
            return ot_call_fail(c, "auto_pad '%s' is unknown", mode);
        OT_TRY(ot_window_ints(c, "pads", 2 * w->n, 0, 0, pads));
        for (uint32_t k = 0; k < w->n; k++) w->lo[k] = pads[k], w->hi[k] = pads[w->n + k];
        return OT_OK;
    }
    for (uint32_t k = 0; k < w->n; k++) w->lo[k] = w->hi[k] = 0;
    return OT_OK;
}

ot_status ot_window_read(ot_call *c, const ot_nd *x, const int64_t *weights, ot_window *w)
{
    if (x->rank < 3)
        return ot_call_fail(c, "the input has rank %u, needs N, C and at least one spatial axis",
                            x->rank);
    w->n = x->rank - 2;
    if (!weights && !ot_attr_find(c->node, "kernel_shape"))
        return ot_call_fail(c, "attribute kernel_shape is missing");
    OT_TRY(ot_window_ints(c, "kernel_shape", w->n, 1, 0, w->kernel));
    OT_TRY(ot_window_ints(c, "strides", w->n, 1, 1, w->stride));
    OT_TRY(ot_window_ints(c, "dilations", w->n, 1, 1, w->dilation));
    OT_TRY(read_pads(c, w));
    for (uint32_t k = 0; k < w->n; k++) {
        w->in[k] = x->dims[2 + k];
        if (weights && w->kernel[k] != 0 && w->kernel[k] != weights[k])
            return ot_call_fail(c, "kernel_shape[%u] is %lld, but the weight's kernel is %lld", k,
                                (long long)w->kernel[k], (long long)weights[k]);
        if (weights) w->kernel[k] = weights[k];
        if (w->kernel[k] < 1)
            return ot_call_fail(c, "the kernel is empty along spatial axis %u", k);
        if (w->in[k] > SIZE_BOUND || w->kernel[k] > ATTR_MAX)
            return ot_call_fail(c, "spatial axis %u is too large", k);
    }
    return OT_OK;
}

ot_status ot_window_conv_out(ot_call *c, ot_window *w)
{
    for (uint32_t k = 0; k < w->n; k++) {
        int64_t extent = (w->kernel[k] - 1) * w->dilation[k] + 1;
        if (w->same_upper || w->same_lower) {
            w->out[k] = ot_ceil_div(w->in[k], w->stride[k]);
            int64_t pads = ot_max(0, (w->out[k] - 1) * w->stride[k] + extent - w->in[k]);
            w->lo[k] = w->same_upper ? pads / 2 : pads - pads / 2;
            w->hi[k] = pads - w->lo[k];
            continue;
        }
        int64_t room = w->in[k] + w->lo[k] + w->hi[k] - extent;
        if (room < 0)
            return ot_call_fail(
                c, "the window (%lld) is larger than the padded input (%lld) along spatial axis %u",
                (long long)extent, (long long)(room + extent), k);
        w->out[k] = room / w->stride[k] + 1;
    }
    return OT_OK;
}

/* ---- taps ---- */

/* Kernel positions [*first, *last) of the window at p that lie on the input. */
static void tap_range(const ot_window *w, uint32_t a, int64_t p, int64_t *first, int64_t *last)
{
    int64_t start = p * w->stride[a] - w->lo[a];
    *first = start < 0 ? ot_ceil_div(-start, w->dilation[a]) : 0;
    *last = ot_min(w->kernel[a], ot_floor_div(w->in[a] - 1 - start, w->dilation[a]) + 1);
}

ot_tap *ot_window_taps_new(ot_call *c, const ot_window *w)
{
    int64_t n = 1;
    for (uint32_t a = 0; a < w->n; a++)
        if (!ot_mul_i64(n, ot_min(w->kernel[a], w->in[a]), &n)) n = -1; /* more than memory holds */
    return ot_num_scratch(c, n, sizeof(ot_tap));
}

int64_t ot_window_taps(const ot_window *w, const int64_t *pos, ot_tap *taps)
{
    int64_t first[OT_RANK_MAX], count[OT_RANK_MAX], at[OT_RANK_MAX] = {0}, n = 0;
    for (uint32_t a = 0; a < w->n; a++) {
        int64_t last;
        tap_range(w, a, pos[a], &first[a], &last);
        if (last <= first[a]) return 0;
        count[a] = last - first[a];
    }
    do {
        uint64_t k = 0; /* wraps for pools with huge kernels, which do not use it */
        int64_t in = 0;
        for (uint32_t a = 0; a < w->n; a++) {
            int64_t j = first[a] + at[a];
            k = k * (uint64_t)w->kernel[a] + (uint64_t)j;
            in = in * w->in[a] + pos[a] * w->stride[a] - w->lo[a] + j * w->dilation[a];
        }
        taps[n++] = (ot_tap){(int64_t)k, in};
    } while (ot_num_next(w->n, count, at));
    return n;
}

int64_t ot_window_padded(const ot_window *w, uint32_t a, int64_t p)
{
    /* from the window's start to the end of the pads */
    int64_t room = w->in[a] + w->hi[a] - (p * w->stride[a] - w->lo[a]);
    return room <= 0 ? 0 : ot_min(w->kernel[a], ot_ceil_div(room, w->dilation[a]));
}
