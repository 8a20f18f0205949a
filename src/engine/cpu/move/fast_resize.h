/* Resize and Upsample by tables, one an axis: which input elements make an output element, with
 * which weights.
 *
 *   axis H   out 0: 0 0   out 1: 0 1   out 2: 0 1 ...      index[tap][out], weight[tap][out]
 *
 *   row = sum of weighted input rows (along W)  -->  output row = sum of weighted elements of it
 *
 * What is dense after the last axis that changes (the channels of a block, those of NHWC) moves
 * as one piece.
 */
#ifndef OT_ENGINE_CPU_MOVE_FAST_RESIZE_H
#define OT_ENGINE_CPU_MOVE_FAST_RESIZE_H

#include "engine/core/engine.h"

typedef enum ot_resize_mode { OT_RESIZE_NEAREST, OT_RESIZE_LINEAR, OT_RESIZE_CUBIC } ot_resize_mode;

typedef struct ot_resize_axis {
    int64_t in, out;
    /* as the operator defines them; length: of the output before it was cut to a whole number */
    float scale, length;
    float roi_lo, roi_hi;
    bool same; /* nothing changes; the tables are not there */
    int64_t n_taps;
    int32_t *index; /* [n_taps][out] */
    float *weight;  /* [n_taps][out], not for NEAREST */
    bool *outside;  /* [out], or NULL: none takes the extrapolation value */
    int64_t factor; /* NEAREST: output i is input i / factor; else 0 */
    /* 2 or 4 taps: outputs 2 i and 2 i + 1 have the same weights for all i in [from, to) */
    int64_t even_from, even_to;
} ot_resize_axis;

typedef struct ot_resize {
    ot_resize_mode mode;
    float extrapolation;
    uint32_t rank, last; /* last axis that changes */
    ot_resize_axis axes[OT_RANK_MAX];
} ot_resize;

/* The tables of node n for an input of x's type and dims, in arena a; in: [n_in] the node's
 * inputs, of which in[0] is not looked at. *out NULL: the reference's business. Fails:
 * OT_E_NOMEM. */
ot_status ot_resize_new(ot_arena *a, const ot_node *n, const ot_nd *x, const ot_nd *const *in,
                        uint32_t n_in, const ot_resize **out) OT_MUST_USE;
/* May it run on arrays blocked by channel, and on windows of larger arrays? Real numbers;
 * neither batch nor channels change. */
bool ot_resize_blocked_ok(const ot_resize *r, ot_dtype type);
/* Bytes that a run of so many threads needs besides, for arrays of `chan_block` (0: plain). */
int64_t ot_resize_scratch(const ot_resize *r, ot_dtype type, uint32_t chan_block, uint32_t threads);
/* x and y: dense and plain; or, if ot_resize_blocked_ok, equal in chan_block and of any strides
 * before the last axis. Several calls may run at once with scratch of their own. */
void ot_resize_run(const ot_resize *r, const ot_nd *y, const ot_nd *x, void *scratch,
                   uint32_t threads);

#endif
