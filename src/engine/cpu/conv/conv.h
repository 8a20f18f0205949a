/* A convolution as lowering sees it; fuse_conv.c finds them, dnnl_conv.c makes primitives of them.
 */
#ifndef OT_ENGINE_CPU_CONV_CONV_H
#define OT_ENGINE_CPU_CONV_CONV_H

#include "engine/ref/ref_window.h"
#include "engine/cpu/units/units.h"
#include "fusion/fusion.h"

#define LW_POSTS_MAX OT_GROUP_POSTS

typedef enum lw_post_kind {
    LW_POST_NONE = 0,
    LW_POST_ADD,  /* the residual */
    LW_POST_RELU, /* alpha: slope of negative values */
    LW_POST_CLIP, /* alpha to beta */
    LW_POST_SIGMOID,
    LW_POST_ELU, /* alpha */
    LW_POST_SILU,
    LW_POST_HARDSWISH
} lw_post_kind;

typedef struct lw_post {
    lw_post_kind kind;
    float alpha, beta;
} lw_post;

typedef struct lw_conv {
    const ot_node *node;
    ot_id x, w, y, residual; /* values; residual OT_NONE: nothing is added */
    /* of a ConvTranspose: of the convolution that it transposes; out are its result's sizes */
    ot_window win;
    int64_t group, maps;
    bool transposed;
    ot_dtype type; /* of the arrays: float32, or 16 bits */
    /* dims of what an implementation is given and makes, float32: the arrays, or strips of them
     * (strips.c) */
    ot_nd x_form, y_form;
    bool alone;            /* on the calling thread */
    ot_dtype weights_type; /* float32, or 16 bits */
    /* [maps][channels / group][kernel...]; of a ConvTranspose as the model has them:
     * lw_conv_weights */
    const void *weights;
    uint64_t form;      /* what they are made from besides `source`; 0: nothing */
    const void *source; /* the model's weights */
    int64_t channels;   /* of the input, in one group */
    bool scaled;        /* some scale is not 1 */
    /* [maps] (w * scale) x + shift; they die with lowering: see lw_conv_keep */
    float *scale, *shift;
    lw_post posts[LW_POSTS_MAX];
    uint32_t n_posts;
} lw_conv;

/* ---- dnnl_conv.c ---- */

ot_status lw_write_conv(lw_pass *l, lw_unit *u) OT_MUST_USE;
/* A copy for packing weights after lowering, in the session's arena. NULL: no memory. */
const lw_conv *lw_conv_keep(const lw_pass *l, const lw_conv *k);
/* Is there an implementation for it? Reads what open_conv sets. */
bool lw_conv_supported(lw_pass *l, const lw_conv *k);
/* Layouts of input and result for which there is one. */
bool lw_conv_choose(lw_pass *l, const lw_conv *k, bool sum, lw_layout *lx, lw_layout *ly);
/* A form in that layout. */
void lw_conv_in_layout(const lw_pass *l, const ot_nd *form, lw_layout layout, ot_nd *out);
/* Its n weights as float32: as they lie, or a copy, *copy. NULL: no memory. */
const float *lw_conv_weights(const lw_conv *k, int64_t n, ot_block **copy);
/* May the result take the place of the residual of unit `at`? */
bool lw_conv_adds_in_place(const lw_pass *l, const lw_conv *k, uint32_t at);

/* Is there a fast primitive from arrays of the form of x to arrays of the form of y? Reads no
 * weights; sum as below. */
bool lw_conv_takes(lw_pass *l, const lw_conv *k, const ot_nd *x, const ot_nd *y, bool sum);

/* a convolution ready to run; in the session's arena, but for what free_op gives back */
typedef struct conv_op conv_op;

/* Convolve arrays of the form of x into arrays of the form of y. *out NULL: there is no fast
 * implementation for these layouts. sum: the result is added to what is there. */
ot_status lw_conv_op(lw_pass *l, const lw_conv *k, const ot_nd *x, const ot_nd *y, bool sum,
                     conv_op **out) OT_MUST_USE;
int64_t lw_conv_work(const conv_op *op); /* bytes of scratch that a run takes */
bool lw_conv_run(conv_op *op, void *x, void *y, void *residual, void *work);
void lw_conv_free(conv_op *op);

/* ---- wino_conv.c ---- */

/* Write the convolution by Winograd's algorithm, if that is possible and pays. */
ot_status lw_write_winograd(lw_pass *l, lw_unit *u, bool in_place, bool *done) OT_MUST_USE;
struct ot_winograd;
struct ot_winograd_spec;
/* The post-operations into s: a residual first if there is one, then at most one activation that
 * is known. false: there are others. */
bool lw_wino_posts(const lw_conv *k, struct ot_winograd_spec *s);
/* The operation for those forms; NULL: it is not possible, does not pay, or would hold too much. */
ot_status lw_winograd_op(lw_pass *l, const lw_conv *k, struct ot_winograd **out) OT_MUST_USE;

/* ---- grouped_unit.c ---- */

/* Write the convolution of groups that fill no blocks of channels, if it is one. */
ot_status lw_write_grouped(lw_pass *l, lw_unit *u, bool in_place, bool *done) OT_MUST_USE;

/* ---- dnnl_pool.c ---- */

ot_status lw_fuse_pool(lw_pass *l) OT_MUST_USE;
ot_status lw_write_pool(lw_pass *l, lw_unit *u) OT_MUST_USE;

/* ---- half_pool.c ---- */

/* A pool of arrays of 16 bits: largest elements, or averages, of all places under the window or
 * of those that are no pads. Each window has places in the array. */
ot_status lw_write_half_pool(lw_pass *l, lw_unit *u, const ot_window *w, bool most,
                             bool with_pads) OT_MUST_USE;

/* ---- deconv.c ---- */

ot_status lw_write_deconv(lw_pass *l, lw_unit *u) OT_MUST_USE;
/* Can the ConvTranspose, with what follows it, be made of convolutions that have fast
 * primitives? Reads no weights. */
bool lw_deconv_supported(lw_pass *l, const lw_conv *k);

/* What computes it, and the layouts of input and result. In the session's arena, but for what
 * lw_deconv_free gives back. */
typedef struct deconv_setup deconv_setup;
ot_status lw_deconv_op(lw_pass *l, const lw_conv *k, deconv_setup **out, lw_layout *lx,
                       lw_layout *ly) OT_MUST_USE;
int64_t lw_deconv_work(const deconv_setup *d); /* bytes of scratch */
/* false: oneDNN failed. */
bool lw_deconv_run(const deconv_setup *d, const ot_nd *x, const ot_nd *y, void *work,
                   uint32_t threads);
void lw_deconv_free(deconv_setup *d);

/* ---- strips.c: arrays of 16 bits, by float32 implementations on strips of rows ---- */

/* Is there an implementation for strips of it? */
bool lw_strips_supported(lw_pass *l, const lw_conv *k);
ot_status lw_write_strips(lw_pass *l, lw_unit *u) OT_MUST_USE;

#endif
