/* Grouped convolutions whose groups do not fill blocks of channels (ResNeXt, RegNet), which oneDNN
 * computes by matrix products of a few rows: directly, on channel-blocked arrays.
 *
 * float32, two axes, any kernel, stride, dilation and pads. Not for depthwise convolutions, nor
 * where channels and maps of a group fill blocks: oneDNN's are faster.
 */
#ifndef OT_ENGINE_CPU_CONV_GROUPED_CONV_H
#define OT_ENGINE_CPU_CONV_GROUPED_CONV_H

#include "winograd.h"

typedef struct ot_grouped_conv ot_grouped_conv; /* immutable once made: threads may share it */

typedef struct ot_grouped_spec {
    int64_t batch, group;
    int64_t channels, maps;                                          /* of one group */
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], lo[2]; /* rows, columns; lo: pads */
    int act;                                                         /* as in ot_winograd_spec */
    float alpha, beta;
    uint32_t threads; /* that a run may use */
} ot_grouped_spec;

struct ot_grouped_code;

/* Is it one for this code? Sizes are positive, and arrays of them can be counted. */
bool ot_grouped_fits(const ot_grouped_spec *s);
/* The code of this machine, whose vectors are ot_simd_block() wide. */
const struct ot_grouped_code *ot_grouped_machine(void);
/* In `a`; *out NULL: no memory. Weights are given to runs. */
ot_grouped_conv *ot_grouped_new(ot_arena *a, const ot_grouped_spec *s,
                                const struct ot_grouped_code *code);
/* Floats of packed weights and bias, and their contents. weights: [maps of all groups][channels]
 * [kernel]; scale: factor of a map or NULL; bias: of a map or NULL. */
int64_t ot_grouped_floats(const ot_grouped_conv *g);
void ot_grouped_pack(const ot_grouped_conv *g, const float *weights, const float *scale,
                     const float *bias, float *to);
/* Bytes of scratch that a run takes. */
int64_t ot_grouped_scratch(const ot_grouped_conv *g);
/* As ot_winograd_run; packed: what ot_grouped_pack wrote. The residual, in dst's strides, is added
 * before the activation; it may be dst itself. */
void ot_grouped_run_all(const ot_grouped_conv *g, const float *packed, const float *src,
                        const int64_t src_strides[3], float *dst, const int64_t dst_strides[3],
                        const float *residual, void *scratch);

#endif
