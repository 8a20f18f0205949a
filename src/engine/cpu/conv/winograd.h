/* 3x3 convolutions of stride 1 by Winograd's minimal filtering F(4x4, 3x3) (Lavin and Gray
 * 2016): 36 multiplications for 16 outputs in place of 144.
 *
 *   input tiles 6x6 --B'dB--> V[36][tiles][C]  --36 products with U[36][C][K]-->  M[36][tiles][K]
 *                                              --A'mA--> 4x4 outputs
 *
 * float32, channel-blocked arrays in and out (ot_nd.chan_block, ot_simd_block()), groups 1.
 * Small maps take F(2x2, 3x3), large ones F(6x6, 3x3) where that is faster. An input that is no
 * number, or infinite, makes the outputs that it reaches NaN or infinite, and perhaps others of
 * the same tiles.
 */
#ifndef OT_ENGINE_CPU_CONV_WINOGRAD_H
#define OT_ENGINE_CPU_CONV_WINOGRAD_H

#include "engine/core/engine.h"
#include "fusion/winograd_rule.h"

typedef struct ot_winograd ot_winograd; /* immutable once made: threads may share it */

typedef struct ot_winograd_spec {
    ot_winograd_sizes sizes;
    int64_t room;         /* bytes by which transformed weights may exceed these */
    const float *weights; /* [out_channels][in_channels][3][3]; NULL: ot_winograd_fill will say */
    /* [out_channels] factor of the weights, or NULL (a folded normalisation) */
    const float *scale;
    const float *bias; /* [out_channels] or NULL */
    /* What follows: y = act(y + residual) */
    enum { OT_WINO_NONE, OT_WINO_RELU, OT_WINO_CLIP, OT_WINO_LEAKY } act;
    float alpha, beta; /* CLIP: bounds; LEAKY: slope of negative values */
    bool residual;     /* an array of the output's shape and layout is added before act */
    /* 0: images of the batch are the arrays'. d: of a dilated convolution, d * d images lie in one
     * another, d rows and columns apart, in arrays of extents `in` and `out`; the sizes are those
     * of the largest image */
    int64_t apart, in[2], out[2];
    /* NULL, or one of the same weights, scale, bias and form, which outlives this one: its
     * transformed weights are used */
    const struct ot_winograd *like;
} ot_winograd_spec;

/* Would this be faster than a direct convolution on this machine (winograd_rule.h)? */
bool ot_winograd_pays(const ot_winograd_spec *s);
/* Floats of a vector of its code; 0: this machine has no fast code. */
int64_t ot_winograd_block(void);
/* What the layout of transformed weights depends on besides the weights: equal forms can share
 * them. */
uint64_t ot_winograd_form(const ot_winograd_spec *s);
/* Bytes of weights that it would hold of its own; *growth: by which transforming makes them
 * larger. */
int64_t ot_winograd_would_hold(const ot_winograd_spec *s, int64_t *growth);
ot_status ot_winograd_new(const ot_winograd_spec *s, ot_diag *d, ot_winograd **out) OT_MUST_USE;
/* The weights of one that was made without them, and of all that are like it; before the first
 * run. Until then its memory is not touched. */
void ot_winograd_fill(ot_winograd *w, const float *weights, const float *scale, const float *bias);
void ot_winograd_free(ot_winograd *w); /* accepts NULL */
/* Bytes of scratch that a run takes. */
int64_t ot_winograd_scratch(const ot_winograd *w);
/* src: [batch][ceil(in_channels/b)][in_h][in_w][b], dst alike, dense but for strides of batch,
 * block and row given in elements (n, c, h). residual: NULL, or like dst with dst's strides.
 * scratch: aligned to 64. Several calls may run at once with scratch of their own. Channels that
 * pad the last block of dst become 0. */
void ot_winograd_run(const ot_winograd *w, const float *src, const int64_t src_strides[3],
                     float *dst, const int64_t dst_strides[3], const float *residual,
                     void *scratch);

#endif
