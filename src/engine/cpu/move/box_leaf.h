/* The innermost loops of copies between boxes: two dims at a time. All strides count bytes;
 * nothing need be aligned.
 *
 *   rows    run of bytes, row after row            dst  | aaaa | bbbb |  <--  aaaa....bbbb....  src
 *   turn    adjacent along p in dst, along q in src
 *
 *            src   p0: 0 1 2 3       dst   q0: 0 4 8  squares of 4 to 16 elements go through
 *                                                     registers,
 *                  p1: 4 5 6 7             q1: 1 5 9  two or three rows are woven
 *                  p2: 8 9 a b             q2: 2 6 a
 *   lines  anything else, one element at a time
 */
#ifndef OT_ENGINE_CPU_MOVE_BOX_LEAF_H
#define OT_ENGINE_CPU_MOVE_BOX_LEAF_H

#include "engine/core/engine.h"
#include "engine/core/simd.h"

/* n runs of `bytes` bytes. */
void ot_box_rows(size_t bytes, int64_t n, char *dst, int64_t dst_step, const char *src,
                 int64_t src_step);
/* n[0] lines of n[1] elements of 1, 2, 4, 8 or 16 bytes. */
void ot_box_lines(size_t size, const int64_t n[2], char *dst, const int64_t dst_step[2],
                  const char *src, const int64_t src_step[2]);
/* The same with one value all over. */
void ot_box_lines_fill(size_t size, const int64_t n[2], char *dst, const int64_t dst_step[2],
                       const void *value);
/* dst[q * dst_q + p * size] = src[p * src_p + q * size] for p < np, q < nq; size 1, 2, 4 or 8. */
void ot_box_turn(size_t size, int64_t np, int64_t nq, char *dst, int64_t dst_q, const char *src,
                 int64_t src_p);
/* Floats: the rows p in [given, block) of src are zeros that nobody reads; block 8 or 16. */
void ot_box_pack_tail(int64_t block, int64_t given, int64_t nq, char *dst, int64_t dst_q,
                      const char *src, int64_t src_p);

/* box.c: among how many threads to share out work on so many bytes: 1 for little of it, and
 * inside a parallel region. */
int64_t ot_box_shares(int64_t bytes, uint32_t threads);

#endif
