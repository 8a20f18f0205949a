/* What the reference implementations of data movement and control flow share.
 *
 * Moving data is one loop: for every coordinate of a box, copy one element from here to there.
 * What differs between operators is where the two sides start and how far apart neighbours lie,
 * so most implementations only compute strides (negative ones, and 0 to repeat) and leave the loop
 * to ot_mv_copy. Elements are bytes to it: any type of 1, 2, 4, 8 or 16 bytes.
 *
 *   Transpose   [2,3]  strides 3,1   -->  box [3,2], strides 1,3 on the side that is read
 *   Slice       [8]    6:1:-2        -->  box [3], start 6, stride -2
 *   Expand      [1,3]                -->  box [4,3], strides 0,1
 *   Concat                           -->  one box an input, each starting elsewhere in the output
 */
#ifndef OT_ENGINE_REF_REF_MOVE_H
#define OT_ENGINE_REF_REF_MOVE_H

#include "ref_number.h"

static inline size_t ot_mv_size(const ot_nd *a) { return ot_dtype_bytes(a->dtype); }

/* Address of element i. */
static inline char *ot_mv_at(const ot_nd *a, int64_t i)
{
    return (char *)a->data + i * (int64_t)ot_mv_size(a);
}

/* Copy a box of elements of `size` bytes; strides count elements. The two sides do not overlap. */
void ot_mv_copy(size_t size, uint32_t rank, const int64_t *dims, char *to,
                const int64_t *to_strides, const char *from, const int64_t *from_strides);
/* Element p of y becomes element (map[0][p0], map[1][p1], ...) of x, or `fill` where one of
 * these is negative. map: [y->rank], of [y->dims[k]] each. */
void ot_mv_mapped(ot_nd *y, const ot_nd *x, int64_t *const *map, const void *fill);

/* Input k when it is given (int32 or int64, at most one dimension), else the attribute: *v is
 * NULL when neither is there. */
ot_status ot_mv_list(ot_call *c, uint32_t k, const char *attr, const int64_t **v,
                     int64_t *n) OT_MUST_USE;
/* Input k holds a shape. */
ot_status ot_mv_shape(ot_call *c, uint32_t k, uint32_t *rank, int64_t *dims) OT_MUST_USE;
/* n axes made non-negative, all different; at most OT_RANK_MAX. v NULL: all axes of the rank.
 * *count gets their number. */
ot_status ot_mv_axes(ot_call *c, const int64_t *v, int64_t n, uint32_t rank, uint32_t *axes,
                     uint32_t *count) OT_MUST_USE;
/* Input k is one integer or bool. */
ot_status ot_mv_scalar(ot_call *c, uint32_t k, int64_t *v) OT_MUST_USE;
/* Index v of [-n, n) made non-negative. */
ot_status ot_mv_index(ot_call *c, int64_t v, int64_t n, int64_t *out) OT_MUST_USE;

/* Output k becomes *a, which is left empty; released when nobody wants it. */
void ot_mv_give(ot_call *c, uint32_t k, ot_nd *a);
/* Output k becomes a further reference to a. */
void ot_mv_share(ot_call *c, uint32_t k, const ot_nd *a);

/* ref_move_shape.c */
ot_status ot_mv_reshape(ot_call *c);
ot_status ot_mv_flatten(ot_call *c);
ot_status ot_mv_squeeze(ot_call *c);
ot_status ot_mv_unsqueeze(ot_call *c);
ot_status ot_mv_identity(ot_call *c);
ot_status ot_mv_bitcast(ot_call *c);
ot_status ot_mv_shape_of(ot_call *c);
ot_status ot_mv_size_of(ot_call *c);
/* ref_move_box.c */
ot_status ot_mv_transpose(ot_call *c);
ot_status ot_mv_slice(ot_call *c);
ot_status ot_mv_crop(ot_call *c);
ot_status ot_mv_split(ot_call *c);
ot_status ot_mv_concat(ot_call *c);
ot_status ot_mv_expand(ot_call *c);
ot_status ot_mv_depth_to_space(ot_call *c);
ot_status ot_mv_space_to_depth(ot_call *c);
ot_status ot_mv_reverse_sequence(ot_call *c);
/* ref_move_pad.c */
ot_status ot_mv_pad(ot_call *c);
ot_status ot_mv_tile(ot_call *c);
ot_status ot_mv_center_crop_pad(ot_call *c);
/* ref_move_gather.c */
ot_status ot_mv_gather(ot_call *c);
ot_status ot_mv_gather_rows(ot_call *c);
ot_status ot_mv_gather_elements(ot_call *c);
ot_status ot_mv_gather_nd(ot_call *c);
ot_status ot_mv_compress(ot_call *c);
/* ref_move_scatter.c */
ot_status ot_mv_scatter_elements(ot_call *c);
ot_status ot_mv_scatter_nd(ot_call *c);
ot_status ot_mv_tensor_scatter(ot_call *c);
/* ref_move_make.c */
ot_status ot_mv_constant(ot_call *c);
ot_status ot_mv_constant_of_shape(ot_call *c);
ot_status ot_mv_range(ot_call *c);
ot_status ot_mv_eye_like(ot_call *c);
ot_status ot_mv_one_hot(ot_call *c);
ot_status ot_mv_trilu(ot_call *c);
ot_status ot_mv_hann_window(ot_call *c);
ot_status ot_mv_hamming_window(ot_call *c);
ot_status ot_mv_blackman_window(ot_call *c);
/* ref_move_select.c */
ot_status ot_mv_non_zero(ot_call *c);
ot_status ot_mv_unique(ot_call *c);
ot_status ot_mv_non_max_suppression(ot_call *c);

#endif
