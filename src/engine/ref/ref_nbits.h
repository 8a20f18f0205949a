/* MatMulNBits (com.microsoft): weights of 2, 4 or 8 bits, each block of a column with a scale and
 * a zero point of its own.
 *
 *   B [n][blocks][bytes of a block]    element e of a block: bits [e * bits, (e + 1) * bits) of
 *                                      its bytes, the lowest first
 *   weight (k, column) = (B - zero[column][k / block]) * scale[column][k / block]
 *
 * One rule for the reference and the fast implementation.
 */
#ifndef OT_ENGINE_REF_REF_NBITS_H
#define OT_ENGINE_REF_REF_NBITS_H

#include "ref_product.h"

typedef struct ot_nbits {
    int64_t rows, k, n, bits, block, blocks; /* blocks: of a column */
    const uint8_t *b;
    const ot_nd *a, *scale, *zero, *bias; /* zero, bias: NULL when omitted */
    int64_t zero_step;                    /* packed zero points: bytes of a column */
} ot_nbits;

/* Inputs (checked) and attributes. */
ot_status ot_nbits_open(ot_call *c, ot_nbits *p) OT_MUST_USE;
/* Dims of the output: those of A, with n at the end. */
void ot_nbits_dims(const ot_nbits *p, int64_t *dims);

/* The bytes of a block. */
static inline const uint8_t *ot_nbits_block(const ot_nbits *p, int64_t column, int64_t block)
{
    return p->b + (column * p->blocks + block) * (p->block * p->bits / 8);
}

/* Element e of packed numbers of 2, 4 or 8 bits. */
static inline int ot_nbits_element(const uint8_t *packed, int64_t bits, int64_t e)
{
    int64_t at = e * bits;
    return packed[at / 8] >> (at % 8) & ((1 << bits) - 1);
}

static inline double ot_nbits_scale(const ot_nbits *p, int64_t column, int64_t block)
{
    return ot_nd_double(p->scale, column * p->blocks + block);
}

static inline double ot_nbits_zero(const ot_nbits *p, int64_t column, int64_t block)
{
    if (!p->zero) return (double)(1 << (p->bits - 1));
    if (p->zero->dtype != OT_U8) return ot_nd_double(p->zero, column * p->blocks + block);
    return ot_nbits_element((const uint8_t *)p->zero->data + column * p->zero_step, p->bits, block);
}

#endif
