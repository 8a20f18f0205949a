/* What the reference implementations of windows and products share: arrays as plain numbers,
 * odometers, scratch memory.
 *
 *   input (any type) --ot_num_doubles--> double[] --the operator, as its definition says-->
 *   double[] --ot_num_put--> output
 *
 * A reference implementation reads its whole input into doubles (or int64), computes there, and
 * rounds once when it stores. Integers of at most 32 bits and all floats are exact in a double;
 * operators on 64-bit integers use ot_num_ints.
 */
#ifndef OT_ENGINE_REF_REF_NUMBER_H
#define OT_ENGINE_REF_REF_NUMBER_H

#include "ref_operators.h"

/* Sets of element types. */
#define OT_NUM_BIT(t) (1u << (unsigned)(t))
#define OT_NUM_FLOATS \
    (OT_NUM_BIT(OT_F32) | OT_NUM_BIT(OT_F64) | OT_NUM_BIT(OT_F16) | OT_NUM_BIT(OT_BF16))
#define OT_NUM_BYTES (OT_NUM_BIT(OT_I8) | OT_NUM_BIT(OT_U8))
#define OT_NUM_NARROW \
    (OT_NUM_BIT(OT_I4) | OT_NUM_BIT(OT_U4) | OT_NUM_BIT(OT_I2) | OT_NUM_BIT(OT_U2))
#define OT_NUM_FLOAT8                                                              \
    (OT_NUM_BIT(OT_F8E4M3FN) | OT_NUM_BIT(OT_F8E4M3FNUZ) | OT_NUM_BIT(OT_F8E5M2) | \
     OT_NUM_BIT(OT_F8E5M2FNUZ) | OT_NUM_BIT(OT_F4E2M1))
#define OT_NUM_SHORTS (OT_NUM_BIT(OT_I16) | OT_NUM_BIT(OT_U16))
#define OT_NUM_WIDE \
    (OT_NUM_BIT(OT_I32) | OT_NUM_BIT(OT_U32) | OT_NUM_BIT(OT_I64) | OT_NUM_BIT(OT_U64))
#define OT_NUM_INTS  (OT_NUM_BYTES | OT_NUM_SHORTS | OT_NUM_WIDE)
#define OT_NUM_INDEX (OT_NUM_BIT(OT_I32) | OT_NUM_BIT(OT_I64))
#define OT_NUM_ALL   (OT_NUM_FLOATS | OT_NUM_INTS | OT_NUM_BIT(OT_BOOL))

static inline bool ot_num_is(ot_dtype t, uint32_t set)
{
    return (unsigned)t < 32 && (set >> (unsigned)t & 1u);
}

/* Input k, or NULL when the node omits it. */
static inline const ot_nd *ot_num_in(const ot_call *c, uint32_t k)
{
    return k < c->n_in ? c->in[k] : NULL;
}

/* Output k, or NULL when nobody wants it. */
static inline ot_nd *ot_num_out(const ot_call *c, uint32_t k)
{
    return k < c->n_out ? c->out[k] : NULL;
}

/* Number of elements; the array exists, so it does not overflow. */
int64_t ot_num_count(const ot_nd *a);

/* Input k, when there is one, has a type of `set` / the type of input j / `rank` dimensions /
 * one element / the dims given. One line otherwise. */
ot_status ot_num_type(ot_call *c, uint32_t k, uint32_t set) OT_MUST_USE;
ot_status ot_num_same_type(ot_call *c, uint32_t k, uint32_t j) OT_MUST_USE;
ot_status ot_num_rank(ot_call *c, uint32_t k, uint32_t rank) OT_MUST_USE;
ot_status ot_num_single(ot_call *c, uint32_t k) OT_MUST_USE;
ot_status ot_num_dims(ot_call *c, uint32_t k, uint32_t rank, const int64_t *dims) OT_MUST_USE;
/* An axis in [-rank, rank) made non-negative. */
ot_status ot_num_axis(ot_call *c, int64_t axis, uint32_t rank, uint32_t *out) OT_MUST_USE;

/* n zeroed items until the call returns. NULL: no memory, recorded as the failure (return
 * OT_E_NOMEM). */
void *ot_num_scratch(ot_call *c, int64_t n, size_t size) OT_MUST_USE;
/* All elements, in scratch memory; the type was checked. NULL like ot_num_scratch. */
double *ot_num_doubles(ot_call *c, const ot_nd *a) OT_MUST_USE;
/* u64 as the int64 of the same bits */
int64_t *ot_num_ints(ot_call *c, const ot_nd *a) OT_MUST_USE;

/* Store v as element i: rounded to nearest for floats, towards zero and saturated for integers
 * (NaN gives the least). */
void ot_num_put(ot_nd *a, int64_t i, double v);
/* Store v modulo the range of an integer type. */
void ot_num_put_int(ot_nd *a, int64_t i, int64_t v);
/* Store round-half-even(v) + zero, saturated: how quantized operators end. */
void ot_num_put_quantized(ot_nd *a, int64_t i, double v, double zero);
/* Output k gets the n = product(dims) numbers v. */
ot_status ot_num_output(ot_call *c, uint32_t k, ot_dtype t, uint32_t rank, const int64_t *dims,
                        const double *v) OT_MUST_USE;

/* Scale and zero point of a quantized tensor. */
typedef struct ot_quantizer {
    double scale, zero;
} ot_quantizer;

/* ref_product_qlinear.c: bytes of input k as real numbers, in scratch memory: input k + 1 is
 * their scale, k + 2 their zero point, if it is there. */
ot_status ot_ref_dequantized(ot_call *c, uint32_t k, ot_quantizer *q, double **x) OT_MUST_USE;
/* Output 0 of type t gets the numbers y, by scale (input k) and zero point (input k + 1). */
ot_status ot_ref_requantized(ot_call *c, uint32_t k, ot_dtype t, uint32_t rank, const int64_t *dims,
                             const double *y) OT_MUST_USE;

/* Advance pos over [0, dims), last axis fastest; false when all positions were seen. n 0: one
 * position. */
bool ot_num_next(uint32_t n, const int64_t *dims, int64_t *pos);

#endif
