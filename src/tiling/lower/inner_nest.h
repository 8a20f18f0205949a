/* What inner_nest.c (blocks of any operation) and inner_product.c (blocks of products) share.
 * Private to memory/. */
#ifndef OT_TILING_LOWER_INNER_NEST_H
#define OT_TILING_LOWER_INNER_NEST_H

#include "lower_region.h"

#define INNER_LENGTHS_MAX 48

/* Blocks of an axis that are alike and move evenly. */
typedef struct inner_run {
    int64_t first, count; /* numbers of the blocks */
    /* of the output: where the first begins, how far it is to the next, how long each is */
    int64_t lo, step, len;
    int64_t in_lo, in_step, in_len; /* of what a window of the input needs */
    int64_t pad_lo, pad_hi;
} inner_run;

typedef struct inner_axis {
    inner_run *runs; /* [n] */
    uint32_t n;
    const inner_run *at; /* whose loop is open */
    const char *var;
} inner_axis;

bool inner_is_gpu(const ot_target *t);
/* Bytes of a memory of the cores; 0: there is none. */
int64_t inner_capacity(const ot_target *t, ot_scope s);
/* bytes, as they take room in s. */
int64_t inner_room(const ot_target *t, ot_scope s, int64_t bytes);
/* Blocks of `block` of an axis. w: how they look at input 0, in_extent long; NULL or kernel 0:
 * place by place. */
ot_status inner_runs(lowered *p, int64_t extent, int64_t block, const lowered_window *w,
                     int64_t in_extent, inner_run **out, uint32_t *n) OT_MUST_USE;
ot_status inner_open(lowered *p, inner_axis *x, uint32_t k) OT_MUST_USE; /* the loop over run k */
ot_status inner_close(lowered *p) OT_MUST_USE;
ot_tk_affine inner_out(const inner_axis *x);
ot_tk_affine inner_in(const inner_axis *x);
int64_t inner_reach(const lowered_window *w, int64_t block, int64_t in_extent);
/* Bytes of a block of x with these dims, every row of it rounded up to granules. */
double inner_moved(const lowered_tensor *x, const int64_t *dims, int64_t granule);
/* Of n blocks that move so many bytes. */
double inner_seconds(const ot_target *t, double bytes, int64_t n);
uint32_t inner_lengths(int64_t extent, int64_t unit, int64_t granule,
                       int64_t out[INNER_LENGTHS_MAX]);
/* Keep what was chosen for the node at hand. */
ot_status inner_note(lowered *p, ot_inner_op note) OT_MUST_USE;

/* inner_product.c: convolutions of one group and matrix products on the cube. *done false: not
 * one of these, or no block fits. */
ot_status inner_product(lowered *p, const lowered_op *op, bool *done) OT_MUST_USE;

#endif
