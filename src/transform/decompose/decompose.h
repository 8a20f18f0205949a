/* Stage transform/decompose/: normalisations over axes that tiles cut are decomposed, so that
 * regions need not end there.
 *
 *     x --InstanceNormalization--> y          x --Moments--> mean, variance --NormFactors-->
 *                                             factor, summand [N, C, 1, 1]
 *                                             x --Mul(factor)--Add(summand)--> y
 *
 * Moments is a reduction in parts (ops/access_sum.c): the tiles that make x hand theirs out,
 * over the elements that they own. Mul and Add are element-wise and run in the tiles of what
 * follows. Moments are float64, and half precision is scaled in float32, between Casts. Groups
 * of channels are put together from the channels' moments by the same formula, so reshapes to
 * groups vanish.
 *
 *   decompose_find.c     which nodes are a normalisation, in the forms that exporters write
 *   decompose_dynamic.c     which of them are one at every size, where extents are free
 *   decompose_written.c  the form that is written out: mean, difference, mean of its square, root,
 *                        quotient
 *   decompose.c          decomposing, and putting together again what no region has taken a part
 *                        of
 *   moments.c        Moments in standard ONNX
 *   norm_factors.c   NormFactors in standard ONNX
 *   rematerialise_norms.c    what is computed twice, for the statistics and for what follows, since
 *                            keeping it costs more
 *   rematerialise_skips.c    values that late readers compute once more, since keeping them until
 *                            then costs more
 *   softmax.c        Softmax over pixels: largest and sum in parts
 *   lp_norm.c        LpNormalization along an axis of maps: its norm in parts
 *   corners.c        Resize with align_corners: interpolation by constants
 *   decompose_nodes.c    writing nodes and constants
 */
#ifndef OT_TRANSFORM_DECOMPOSE_DECOMPOSE_H
#define OT_TRANSFORM_DECOMPOSE_DECOMPOSE_H

#include "ops/ops.h"

/* A normalisation over the spatial axes of x: y = ((x - mean) / sqrt(variance + epsilon) * scale
 * + bias) * gamma + beta, which is of x's type. */
typedef struct ot_norm {
    ot_id x, y;     /* [N, C, ...] */
    int64_t groups; /* that divide the channels; as many as channels: each for itself */
    float epsilon;
    ot_id scale, bias; /* one number for each group or channel; OT_NONE: 1, 0 */
    ot_id gamma, beta; /* one number for each channel; OT_NONE: 1, 0 */
    /* numbers that broadcast to x, each_bias, too, are multiplied with and added last; OT_NONE:
     * 1, 0 */
    ot_id each_scale;
    ot_id each_bias;
    ot_id nodes[16]; /* [n_nodes] what it consists of; the last one makes y */
    uint32_t n_nodes;
    bool centred; /* y = (x - mean) / (sqrt(variance) + epsilon), and nothing else */
} ot_norm;

/* Whether a normalisation has its (first) reduction in node `id`. Requires USES, SHAPES. */
bool ot_decompose_find(const ot_graph *g, ot_id id, ot_norm *out);

/* Take the normalisations of g apart, LpNormalizations along maps, Resizes with align_corners,
 * and (where `softmax`) Softmaxes over pixels; their number in *n. Noted in the model (splits).
 * Breaks and makes ORDER and USES, keeps SHAPES. What is made depends on the graph alone: clones
 * get the same numbers. Fails: OT_E_NOMEM. */
ot_status ot_decompose_norms(ot_graph *g, bool softmax, uint32_t *n) OT_MUST_USE;
/* Whether that finds any. Requires ORDER, USES, SHAPES. */
bool ot_decompose_any(const ot_graph *g, bool softmax);
/* Normalisations of a graph with dynamic extents, the file's, into *norms [*n] (in a): those of
 * `planned`, the same graph at one size, that are such at every size. Requires ORDER, USES,
 * SHAPES of both. Fails: OT_E_NOMEM. */
ot_status ot_decompose_find_dynamic(const ot_graph *planned, const ot_graph *file, ot_arena *a,
                                    ot_norm **norms, uint32_t *n) OT_MUST_USE;
/* Take these [n] apart in g, whose extents may be free. As ot_decompose_norms in all else. */
ot_status ot_decompose_these(ot_graph *g, const ot_norm *norms, uint32_t n) OT_MUST_USE;
/* What a normalisation in parts may make again in place of keeping it. */
typedef struct ot_remat_norm {
    uint32_t split; /* of the model's */
    int64_t bytes;  /* that x takes beyond what it is made of */
    double macs;    /* multiply-adds, once more */
} ot_remat_norm;

/* Splits whose x only they read, and which is made by a few nodes of less than its bytes, into
 * out [max]. Returns how many. Requires ORDER, USES, SHAPES of a graph whose normalisations are
 * decomposed. */
uint32_t ot_rematerialise_find_norms(const ot_graph *g, ot_remat_norm *out, uint32_t max);
/* Make x of these splits [n] twice: for Moments, and for all that comes after. Names and numbers
 * depend on the graph alone. Breaks and makes ORDER and USES, keeps SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_rematerialise_norms(ot_graph *g, const uint32_t *splits, uint32_t n) OT_MUST_USE;
/* Why a value waits for its last readers. */
typedef enum ot_remat_kind {
    OT_REMAT_WAITS,  /* other nodes run before them, more than make it */
    OT_REMAT_DEEP,   /* the same; more nodes may make it */
    OT_REMAT_POOLED, /* they need what all others reduce it to */
} ot_remat_kind;

/* A value that waits for its last readers, and which they may compute once more. */
typedef struct ot_remat_skip {
    ot_id value;
    int64_t bytes; /* that it takes beyond what it is made of */
    double macs;   /* multiply-adds, once more */
} ot_remat_skip;

/* Values of that kind, largest first, into out [max]. Returns how many. Requires ORDER, USES,
 * SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_rematerialise_find_skips(const ot_graph *g, ot_remat_kind kind, ot_remat_skip *out,
                                      uint32_t max, uint32_t *n) OT_MUST_USE;
/* Make these values [n] twice: for those that read them soon, and for those that read them late.
 * planned: g, or where its extents are dynamic the same graph at one size, which stays as it is.
 * Noted in the model (repeats). Names and numbers depend on the graph alone. Breaks and makes
 * ORDER and USES, keeps SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_rematerialise_skips(ot_graph *g, const ot_graph *planned, ot_remat_kind kind,
                                 const ot_id *values, uint32_t n) OT_MUST_USE;

/* After the rewriting of regions: rematerialised values are made once again, where no region has
 * taken a part of that; what is whole still becomes the node that it was, but for normalisations
 * of more than 250 000 numbers, which are more exact in parts; else Moments in no region, and
 * NormFactors, become operators of the standard, unless own_operators. Breaks ORDER and USES.
 * Fails: OT_E_NOMEM. */
ot_status ot_recompose(ot_graph *g, bool own_operators) OT_MUST_USE;

/* Moments of x (a value of g, a body or not) over `axes` [n] in standard ONNX, with names that
 * begin with `base`; *out as ot_node_new's output, or OT_NONE for a new value of those dims.
 * Fails: OT_E_NOMEM. */
ot_status ot_moments_write(ot_graph *g, const char *base, ot_id x, const int64_t *axes, size_t n,
                           ot_id *out) OT_MUST_USE;
/* The NormFactors node of g in standard ONNX: its outputs get other producers, it dies. Fails:
 * OT_E_NOMEM. */
ot_status ot_norm_factors_write(ot_graph *g, ot_id node) OT_MUST_USE;

#endif
