/* What the reference implementations of element-wise operators and reductions share.
 *
 * An implementation handles one element type of C only: double for the floating types, int64 for
 * integers and bool. Rows of at most REF_ROW elements are loaded into such a buffer, computed, and
 * stored; so each is written once, and the thirteen element types are known to four
 * functions (ref_math_rows.c). double holds every float16, bfloat16 and float32, and the sum,
 * product, quotient and root of two float32, rounded to float32 afterwards, are what float32
 * arithmetic gives. uint64 travels as the bits of an int64; order, quotient and conversion ask
 * for its sign. Integers wrap: a store keeps the low bits.
 *
 *     inputs  --ot_rm_walk: where the next row starts in each--> load -> compute -> store -->
 *             output
 */
#ifndef OT_ENGINE_REF_REF_MATH_H
#define OT_ENGINE_REF_REF_MATH_H

#include "engine/core/engine.h"

#define REF_ROW 256

/* ---- element types ---- */

enum {
    REF_FLOAT = OT_IS_FLOAT,
    REF_SIGNED = OT_IS_SIGNED,
    REF_UNSIGNED = OT_IS_UNSIGNED,
    REF_BOOL = OT_IS_BOOL,
    REF_INT = REF_SIGNED | REF_UNSIGNED
};

/* The kind above of a type that rows are made of; 0 for all others. */
unsigned ot_rm_kind(ot_dtype t);
/* Input k is there and of one of these kinds. */
ot_status ot_rm_need_kind(ot_call *c, uint32_t k, unsigned kinds) OT_MUST_USE;
/* Input k has the type of input 0. */
ot_status ot_rm_need_same(ot_call *c, uint32_t k) OT_MUST_USE;
/* "an element type that the operator does not take". */
ot_status ot_rm_bad_type(ot_call *c, uint32_t k);
bool ot_rm_wants(const ot_call *c, uint32_t k); /* output k is wanted */
bool ot_rm_given(const ot_call *c, uint32_t k); /* input k is given */
ot_op ot_rm_op(const ot_call *c);

/* ---- rows: n elements from element `at` on, `step` elements apart (0: one element, many times)
 * ---- */

void ot_rm_load_f(const ot_nd *a, int64_t at, int64_t step, int64_t n, double *to);
/* integers, bool */
void ot_rm_load_i(const ot_nd *a, int64_t at, int64_t step, int64_t n, int64_t *to);
/* To any type: integers by ot_rm_to_int, bool is "not zero". */
void ot_rm_store_f(ot_nd *a, int64_t at, int64_t step, int64_t n, const double *from);
/* integers (low bits), bool */
void ot_rm_store_i(ot_nd *a, int64_t at, int64_t step, int64_t n, const int64_t *from);
/* A floating number as integer of type t: cut towards zero. What does not fit (NaN, too, is
 * undefined in ONNX) becomes what 64-bit processors of the x86 family, and ONNX Runtime on them,
 * make of it: int32 and int64 the smallest number, narrower types the low bits of the int32,
 * uint32 and uint64 the low bits of the int64. */
int64_t ot_rm_to_int(double v, ot_dtype t);

/* ---- integers that wrap ---- */

static inline int64_t ot_rm_wrap_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t ot_rm_wrap_sub(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
static inline int64_t ot_rm_wrap_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
/* a < b, of uint64 when is_u64. */
static inline bool ot_rm_int_less(int64_t a, int64_t b, bool is_u64)
{
    return is_u64 ? (uint64_t)a < (uint64_t)b : a < b;
}

/* ---- walks: an output and the operands that broadcast to it, row by row ---- */

typedef struct ot_rm_operand {
    const ot_nd *a;
    int64_t steps[OT_RANK_MAX]; /* for each dimension of the walk; 0 where it is broadcast */
    int64_t at, step;           /* of the current row */
} ot_rm_operand;

typedef struct ot_rm_walk {
    uint32_t rank, n_ops;
    /* of the output; neighbours that all operands run through alike are one */
    int64_t dims[OT_RANK_MAX];
    int64_t index[OT_RANK_MAX];
    ot_rm_operand *ops; /* [n_ops] */
    int64_t out, n;     /* current row: first element of the (dense) output, elements */
} ot_rm_walk;

/* The shape that inputs [first, first + n) broadcast to, as numpy does. */
ot_status ot_rm_broadcast(ot_call *c, uint32_t first, uint32_t n, uint32_t *rank,
                          int64_t *dims) OT_MUST_USE;
/* A walk over an output of these dims with n operands, not set yet. The output must have been
 * accepted by ot_call_output. */
ot_status ot_rm_walk_new(ot_rm_walk *w, ot_call *c, uint32_t rank, const int64_t *dims,
                         uint32_t n) OT_MUST_USE;
/* Operand j is `a`, whose first dimension is the output's dimension `first` (rank - a->rank:
 * trailing dimensions agree). Fails when one of its dimensions is neither 1 nor the output's. */
ot_status ot_rm_walk_operand(ot_rm_walk *w, ot_call *c, uint32_t j, const ot_nd *a,
                             uint32_t first) OT_MUST_USE;
/* All inputs from `first` on, aligned at the end. */
ot_status ot_rm_walk_inputs(ot_rm_walk *w, ot_call *c, uint32_t first, uint32_t n, uint32_t rank,
                            const int64_t *dims) OT_MUST_USE;
/* The first row, the next one; false when there is none. */
bool ot_rm_walk_first(ot_rm_walk *w);
bool ot_rm_walk_next(ot_rm_walk *w);

static inline void ot_rm_row_f(const ot_rm_walk *w, uint32_t j, double *to)
{
    ot_rm_load_f(w->ops[j].a, w->ops[j].at, w->ops[j].step, w->n, to);
}
static inline void ot_rm_row_i(const ot_rm_walk *w, uint32_t j, int64_t *to)
{
    ot_rm_load_i(w->ops[j].a, w->ops[j].at, w->ops[j].step, w->n, to);
}

/* ---- implementations, by file ---- */

ot_status ot_rm_unary(ot_call *c); /* ref_math_unary.c: one input, one output of its type */
ot_status ot_rm_clip(ot_call *c);
ot_status ot_rm_image_scaler(ot_call *c);
ot_status ot_rm_test(ot_call *c); /* IsNaN, IsInf */
/* ref_math_binary.c: arithmetic, bits, logic, comparisons, PRelu */
ot_status ot_rm_binary(ot_call *c);
ot_status ot_rm_pow(ot_call *c);
ot_status ot_rm_swiglu(ot_call *c);
ot_status ot_rm_variadic(ot_call *c); /* ref_math_many.c: Max, Min, Sum, Mean */
ot_status ot_rm_where(ot_call *c);
ot_status ot_rm_cast(ot_call *c); /* ref_math_cast.c: Cast, CastLike */
/* ref_math_float8.c: the value of a code, the code of a value (already rounded to float32). */
bool ot_rm_is_float8(ot_dtype t);
double ot_rm_float8_decode(ot_dtype t, uint8_t code);
/* of float8e8m0; the others round to nearest even */
typedef enum ot_rm_rounding { REF_UP, REF_DOWN, REF_NEAREST } ot_rm_rounding;
uint8_t ot_rm_float8_encode(ot_dtype t, double v, bool saturate, ot_rm_rounding rounding);
ot_status ot_rm_batch_norm(ot_call *c); /* ref_math_batch.c */
ot_status ot_rm_dropout(ot_call *c);

#endif
