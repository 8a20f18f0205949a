/* Discrete Fourier transforms of float32 in n log n operations, several at a time.
 *
 *   n = r1 * r2 * ... * rk     a pass for each factor (4, 2, 3, 5, others up to 31), which
 *                              leaves the elements in order (Stockham)
 *   a larger prime factor      a convolution with a chirp, by transforms of a power of 2
 *                              (Bluestein)
 *
 *   element t of transform l   re[t * lanes + l], im[t * lanes + l]     loops run over the lanes
 */
#ifndef OT_ENGINE_CPU_PRODUCT_FFT_H
#define OT_ENGINE_CPU_PRODUCT_FFT_H

#include "base/base.h"

typedef struct ot_fft ot_fft;

#define OT_FFT_MAX ((int64_t)1 << 28) /* n */

/* Transforms of n complex numbers, 1 <= n <= OT_FFT_MAX. NULL: no memory. */
ot_fft *ot_fft_new(int64_t n) OT_MUST_USE;
void ot_fft_free(void *f); /* accepts NULL */
int64_t ot_fft_length(const ot_fft *f);
/* Floats of each of the four arrays of a run: per lane. At least n. */
int64_t ot_fft_room(const ot_fft *f);

/* Memory of a run: [room * lanes] each, which do not overlap. */
typedef struct ot_fft_arrays {
    float *re, *im, *other_re, *other_im;
} ot_fft_arrays;

/* X[k] = sum over t of x[t] e^(-2 pi i k t / n) of re and im; results are in re and im of what it
 * returns, the other two arrays have been written to. Exchanging re and im in operands and
 * results makes it the inverse, times n. */
ot_fft_arrays ot_fft_run(const ot_fft *f, ot_fft_arrays x, int64_t lanes);

#endif
