/* Sliding windows: what convolutions, their transposes and pools share.
 *
 *   |<lo>|<------- in ------->|<hi>|     window at position p covers in[p * stride - lo + k *
 *                                        dilation], k in [0, kernel)
 *   [....x x x x x x x x x x x.....]     taps: those k that fall on an element of the input
 *   [ p=0 ]
 *       [ p=1 ]  stride apart
 */
#ifndef OT_ENGINE_REF_REF_WINDOW_H
#define OT_ENGINE_REF_REF_WINDOW_H

#include "ref_number.h"

typedef struct ot_window {
    uint32_t n; /* spatial axes; x is [N, C, in[0], ... in[n-1]] */
    int64_t in[OT_RANK_MAX], kernel[OT_RANK_MAX], stride[OT_RANK_MAX], dilation[OT_RANK_MAX];
    int64_t lo[OT_RANK_MAX], hi[OT_RANK_MAX];
    int64_t out[OT_RANK_MAX];
    bool same_upper, same_lower; /* auto_pad; lo and hi are zero until the output size is known */
} ot_window;

/* One element of the kernel on one element of the input: flat positions among the spatial axes. */
typedef struct ot_tap {
    int64_t k, in;
} ot_tap;

/* ints attribute `name` of n values in [low, 2^31] into out; `dflt` when absent. */
ot_status ot_window_ints(ot_call *c, const char *name, uint32_t n, int64_t low, int64_t dflt,
                         int64_t *out) OT_MUST_USE;
/* Attributes strides, dilations, pads, auto_pad and the input's spatial sizes. `weights`: the
 * kernel's sizes, against which kernel_shape is checked; NULL: kernel_shape has them. */
ot_status ot_window_read(ot_call *c, const ot_nd *x, const int64_t *weights,
                         ot_window *w) OT_MUST_USE;
/* Output sizes of a convolution; pads of SAME_*. */
ot_status ot_window_conv_out(ot_call *c, ot_window *w) OT_MUST_USE;
/* The window and the dims of the output of a pool, a Col2Im (whose image is w->in). */
ot_status ot_window_pool(ot_call *c, ot_window *w, int64_t *dims) OT_MUST_USE;
ot_status ot_window_col2im(ot_call *c, ot_window *w, int64_t *dims) OT_MUST_USE;
/* MaxUnpool: dims of what the pool read, and of the output (larger, when input 2 asks for it). */
ot_status ot_window_unpool(ot_call *c, int64_t *from, int64_t *dims) OT_MUST_USE;
/* Memory for the taps of any position. NULL like ot_num_scratch. */
ot_tap *ot_window_taps_new(ot_call *c, const ot_window *w) OT_MUST_USE;
/* Taps of the window at `pos` [n], in the order of the kernel; returns how many. */
int64_t ot_window_taps(const ot_window *w, const int64_t *pos, ot_tap *taps);
/* Positions of the window along axis a, at p, that lie on the input or its pads. */
int64_t ot_window_padded(const ot_window *w, uint32_t a, int64_t p);

/* x [N, C, in...] against weights [M, C / group, kernel...]; everything as doubles. */
typedef struct ot_conv {
    ot_window w;
    int64_t batch, channels, maps, group;
    int64_t in_n, out_n, k_n; /* elements of one channel of input, output, kernel */
} ot_conv;

/* Shapes of inputs x and wt of a convolution (indices), and its window with output sizes. */
ot_status ot_conv_open(ot_call *c, uint32_t x, uint32_t wt, ot_conv *v) OT_MUST_USE;
/* y [N, M, out...] zeroed; gets the sums. */
ot_status ot_conv_sums(ot_call *c, const ot_conv *v, const double *x, const double *wt,
                       double *y) OT_MUST_USE;

/* A transposed convolution: windows over the output, one for each position of the input. */
typedef struct ot_scatter {
    ot_window w; /* in: output sizes, out: input sizes */
    int64_t batch, channels, maps, group, x_n, y_n, k_n;
    int64_t dims[OT_RANK_MAX]; /* of y */
} ot_scatter;

/* Shapes of a ConvTranspose's inputs 0 and 1 (checked), its attributes, the size of its output. */
ot_status ot_scatter_open(ot_call *c, ot_scatter *v) OT_MUST_USE;

/* ---- implementations, by file ---- */

ot_status ot_ref_conv(ot_call *c); /* ref_window_conv.c */
ot_status ot_ref_conv_integer(ot_call *c);
ot_status ot_ref_qlinear_conv(ot_call *c);
ot_status ot_ref_causal_conv(ot_call *c);
ot_status ot_ref_conv_transpose(ot_call *c); /* ref_window_scatter.c */
ot_status ot_ref_col2im(ot_call *c);
ot_status ot_ref_max_unpool(ot_call *c);
ot_status ot_ref_max_pool(ot_call *c); /* ref_window_pool.c */
ot_status ot_ref_average_pool(ot_call *c);
ot_status ot_ref_qlinear_average_pool(ot_call *c);
ot_status ot_ref_lp_pool(ot_call *c);
ot_status ot_ref_global_pool(ot_call *c); /* average, max, Lp */
ot_status ot_ref_lrn(ot_call *c);
ot_status ot_ref_resize(ot_call *c);      /* ref_window_resize.c: Resize, Upsample */
ot_status ot_ref_grid_sample(ot_call *c); /* ref_window_sample.c */
ot_status ot_ref_affine_grid(ot_call *c);
ot_status ot_ref_deform_conv(ot_call *c);
ot_status ot_ref_roi_align(ot_call *c); /* ref_window_roi.c */
ot_status ot_ref_max_roi_pool(ot_call *c);

#endif
