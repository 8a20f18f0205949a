/* A convolution as lowering sees it; fuse_conv.c finds them, dnnl_conv.c makes primitives of them. */
#ifndef OT_ENGINE_CONV_H
#define OT_ENGINE_CONV_H

#include "lower.h"
#include "ref_window.h"

#define LW_POSTS_MAX 4

typedef enum lw_post_kind {
    LW_POST_NONE = 0,
    LW_POST_ADD,      /* the residual */
    LW_POST_RELU,     /* alpha: slope of negative values */
    LW_POST_CLIP,     /* alpha to beta */
    LW_POST_SIGMOID,
    LW_POST_TANH,
    LW_POST_ELU,      /* alpha */
    LW_POST_SILU,
    LW_POST_HARDSWISH
} lw_post_kind;

typedef struct lw_post {
    lw_post_kind kind;
    float alpha, beta;
} lw_post;

typedef struct lw_conv {
    const ot_node *node;
    ot_id x, w, y, residual;  /* values; residual OT_NONE: nothing is added */
    ot_window win;
    int64_t group, maps;
    bool scaled;              /* some scale is not 1 */
    float *scale, *shift;     /* [maps] (w * scale) x + shift */
    lw_post posts[LW_POSTS_MAX];
    uint32_t n_posts;
} lw_conv;

/* Is there a kernel for it? Reads x, w, win, group, maps. */
bool lw_conv_supported(lw_pass *l, const lw_conv *k);

#endif
