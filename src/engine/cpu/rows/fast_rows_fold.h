/* Rows folded into one number, and rows folded element by element into accumulators: what
 * reductions and global pools are made of. */
#ifndef OT_ENGINE_CPU_ROWS_FAST_ROWS_FOLD_H
#define OT_ENGINE_CPU_ROWS_FAST_ROWS_FOLD_H

#include "fast_rows.h"
#include "engine/ref/ref_reduce.h"

typedef enum ot_fold {
    OT_FOLD_SUM,
    OT_FOLD_ABS,
    OT_FOLD_SQUARE,
    OT_FOLD_PRODUCT,
    OT_FOLD_MOST,
    OT_FOLD_LEAST,
    OT_FOLD_EXP
} ot_fold;

/* What folding nothing gives. */
double ot_fold_start(ot_fold f);
/* Two results of the same fold; NaN wins. */
double ot_fold_join(ot_fold f, double a, double b);
/* n elements. EXP: of exp(x - shift). */
double ot_fold_row(ot_fold f, const float *x, int64_t n, float shift);
/* acc[i] takes x[i], w of them; shift: [w] for EXP. */
void ot_fold_columns(ot_fold f, float *acc, const float *x, int64_t w, const float *shift);

/* The element that a counter stands at after i steps. */
static inline int64_t ot_rm_counter_at(const ot_rm_counter *k, int64_t i)
{
    int64_t at = 0;
    for (uint32_t d = k->rank; d-- > 0; i /= k->dims[d]) at += i % k->dims[d] * k->steps[d];
    return at;
}

#endif
