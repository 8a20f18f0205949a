/* Convolutions of 8-bit tensors, exact: int32 sums of (x - x_zero) * (w - w_zero), and what
 * becomes of them.
 *
 *   x [N, C, H, W] u8 or s8, maybe a window     y [N, M, positions] dense: u8, s8, int32 or float
 *
 * One axis of space is two, the first of length 1. Nothing is packed beforehand: weights are
 * read as the model has them. Elements outside of x are x_zero.
 */
#ifndef OT_ENGINE_CPU_INT8_QCONV_H
#define OT_ENGINE_CPU_INT8_QCONV_H

#include "int8_gemm.h"

typedef struct ot_qconv {
    int64_t batch, channels, maps, group;
    /* H, W; lo: elements before the first */
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], lo[2];
    /* in elements; the last is 1 */
    int64_t x_strides[4];
    bool x_signed, w_signed;
    int32_t x_zero, w_zero;
    const int32_t *w_zeros; /* [maps] or NULL */
    const uint8_t *weights; /* [maps][channels / group][kernel] */
    /* rows are maps: type, scale, row_scales, row_bias, row_shift, zero, least, most */
    ot_i8_out y;
} ot_qconv;

/* Bytes of scratch of a run by so many threads; -1: more than can be counted. */
int64_t ot_qconv_work(const ot_qconv *v, uint32_t threads);
void ot_qconv_run(const ot_qconv *v, const void *x, void *y, uint32_t threads, void *work);

/* ---- qconv_depthwise.c: groups of one channel ---- */

int64_t ot_qconv_depthwise_work(const ot_qconv *v); /* of each thread */
/* Map m of image n. */
void ot_qconv_depthwise(const ot_qconv *v, const uint8_t *x, void *y, int64_t image, int64_t map,
                        void *work);

#endif
