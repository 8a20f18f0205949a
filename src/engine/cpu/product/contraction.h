/* Sums of products of two arrays with strides, as Einsum has them (private to this folder). */
#ifndef OT_ENGINE_CPU_PRODUCT_CONTRACTION_H
#define OT_ENGINE_CPU_PRODUCT_CONTRACTION_H

#include "fast_product.h"

/* Labels that are one loop: positions, and steps in elements of A, B and the result. */
typedef struct ot_strided_axis {
    int64_t n, a, b, c;
} ot_strided_axis;

typedef struct ot_strided_axes {
    uint32_t count;
    ot_strided_axis at[OT_EINSUM_LABELS];
} ot_strided_axes;

/* Of what both operands and the result have, A and the result, B and the result, A and B. */
enum { OT_AXES_BATCH, OT_AXES_ROWS, OT_AXES_COLUMNS, OT_AXES_SUMMED, OT_AXES_KINDS };

/* y = sum over OT_AXES_SUMMED of a * b */
typedef struct ot_contraction {
    const float *a, *b;
    float *y;
    ot_strided_axes kind[OT_AXES_KINDS];
} ot_contraction;

/* Positions of all axes together. */
int64_t ot_axes_extent(const ot_strided_axes *x);
/* In the order of the result (then of B, of A), those that are adjacent everywhere as one. */
void ot_axes_merge(ot_strided_axes *x);
/* Moves *a, *b, *y to position i of the axes, counted with the last one fastest. y may be NULL. */
void ot_axes_go_to(const ot_strided_axes *x, int64_t i, const float **a, const float **b,
                   float **y);

/* By a nest of plain loops, where one axis of the result lies without steps and is not short;
 * false: none does, and nothing was done. */
bool ot_contract_in_nest(ot_call *c, const ot_contraction *p);
/* By products of matrices. *fits false: the arrays do not lie as one needs them, and nothing was
 * done. Fails: OT_E_NOMEM. */
ot_status ot_contract_by_products(ot_call *c, const ot_contraction *p, bool *fits) OT_MUST_USE;

#endif
