/* Pools of 8-bit tensors.
 *
 *   x [planes, H, W] u8 or s8, dense --> y [planes, out] u8 or s8, or float for averages that
 *   nobody quantizes
 *
 *   largest    of the bytes as they are: quantizing keeps the order of numbers, so it is exact
 *   average    int32 sums, exact; sum * factor / count is rounded once, and once more to an integer
 *
 * Elements outside of x count for nothing, or (`counts_pads`) as zeros.
 */
#ifndef OT_ENGINE_CPU_INT8_QPOOL_H
#define OT_ENGINE_CPU_INT8_QPOOL_H

#include "engine/ref/ref_operators.h"

typedef struct ot_qpool {
    /* H, W; one axis of space is two, the first 1 */
    int64_t planes, in[2], out[2], kernel[2], stride[2], dilation[2], lo[2];
    bool average, counts_pads;
    bool is_signed; /* x */
    int32_t zero;   /* of x; averages */
    float factor;   /* x scale, by y scale when y is quantized */
    ot_dtype type;  /* of y */
    int32_t y_zero;
} ot_qpool;

/* Bytes of scratch of each thread; -1: more than can be counted. */
int64_t ot_qpool_work(const ot_qpool *p);
/* Plane k; y: the whole result. */
void ot_qpool_run(const ot_qpool *p, const uint8_t *x, void *y, int64_t k, void *work);

#endif
