/* Doubles to floats of 16 bits. See half_float.h.
 *
 * A float32 that is rounded to odd (its last bit is set where anything is cut off) has enough
 * digits that rounding it once more gives what rounding the double would.
 */
#include "half_float.h"

#include <math.h>

static float to_odd(double d)
{
    float f = (float)d;
    double back = (double)f;
    if (isnan(d) || isinf(d) || back == d) return f;
    if (fabs(back) > fabs(d)) f = nextafterf(f, 0);
    return ot_float_of_bits(ot_float_bits(f) | 1u);
}

uint16_t ot_f64_to_f16(double d) { return ot_f32_to_f16(to_odd(d)); }

uint16_t ot_f64_to_bf16(double d) { return ot_f32_to_bf16(to_odd(d)); }
