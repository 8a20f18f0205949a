/* The floating types of 8 and 4 bits.
 *
 *     type      sign exponent mantissa  bias  largest  infinity   NaN
 *     E4M3FN    1    4        3         7     448      none       S.1111.111
 *     E4M3FNUZ  1    4        3         8     240      none       1.0000.000 (there is no -0)
 *     E5M2      1    5        2         15    57344    S.11111.00 S.11111.01 to S.11111.11
 *     E5M2FNUZ  1    5        2         16    57344    none       1.00000.00 (there is no -0)
 *     E2M1      1    2        1         1     6        none       none (4 bits: 0 to 6, with sign)
 *     E8M0      0    8        0         127   2^127    none       11111111 (no zero either:
 *                                                                 00000000 is 2^-127)
 */
#include "ref_math.h"

#include <math.h>

typedef struct float8_form {
    int mantissa, bias;
    double largest;
    bool fnuz;
    uint8_t nan, inf; /* without sign; inf == nan: there is no infinity; both 0: none of them */
    uint8_t sign;
} float8_form;

static const float8_form *form_of(ot_dtype t)
{
    static const float8_form e4m3fn = {3, 7, 448, false, 0x7F, 0x7F, 0x80},
                             e4m3fnuz = {3, 8, 240, true, 0x80, 0x80, 0x80},
                             e5m2 = {2, 15, 57344, false, 0x7F, 0x7C, 0x80},
                             e5m2fnuz = {2, 16, 57344, true, 0x80, 0x80, 0x80},
                             e2m1 = {1, 1, 6, false, 0, 0, 0x08};
    switch ((int)t) {
    case OT_F8E4M3FN: return &e4m3fn;
    case OT_F8E4M3FNUZ: return &e4m3fnuz;
    case OT_F8E5M2: return &e5m2;
    case OT_F8E5M2FNUZ: return &e5m2fnuz;
    case OT_F4E2M1: return &e2m1;
    default: return NULL;
    }
}

bool ot_rm_is_float8(ot_dtype t) { return t == OT_F8E8M0 || form_of(t) != NULL; }

double ot_rm_float8_decode(ot_dtype t, uint8_t code)
{
    const float8_form *f = form_of(t);
    if (!f) return code == 0xFF ? (double)NAN : ldexp(1, code - 127);
    uint8_t magnitude = code & (uint8_t)(f->sign - 1);
    double sign = code & f->sign ? -1 : 1;
    bool is_nan = f->fnuz ? code == f->nan : magnitude > f->inf || magnitude == f->nan;
    if (f->nan && is_nan) return (double)NAN;
    if (!f->fnuz && f->inf != f->nan && magnitude == f->inf) return sign * (double)INFINITY;
    int exponent = magnitude >> f->mantissa, fraction = magnitude & ((1 << f->mantissa) - 1);
    if (exponent == 0)
        exponent = 1; /* subnormal */
    else
        fraction |= 1 << f->mantissa;
    return sign * ldexp(fraction, exponent - f->bias - f->mantissa);
}

/* A power of two near |v|. */
static uint8_t encode_e8m0(double v, bool saturate, ot_rm_rounding rounding)
{
    if (isnan(v)) return 0xFF;
    if (isinf(v)) return saturate ? 0xFE : 0xFF;
    if (v == 0) return saturate ? 0 : 0xFF;
    int exponent;
    double m = frexp(fabs(v), &exponent) * 2; /* |v| = m * 2^(exponent - 1), 1 <= m < 2 */
    exponent += (rounding == REF_UP ? m > 1 : rounding == REF_NEAREST && m >= 1.5) - 1 + 127;
    if (exponent < 0) return saturate ? 0 : 0xFF;
    return exponent <= 0xFE ? (uint8_t)exponent : saturate ? 0xFE : 0xFF;
}

uint8_t ot_rm_float8_encode(ot_dtype t, double v, bool saturate, ot_rm_rounding rounding)
{
    const float8_form *f = form_of(t);
    if (!f) return encode_e8m0(v, saturate, rounding);
    uint8_t sign = !f->fnuz && signbit(v) ? f->sign : 0;
    if (isnan(v) && f->nan == 0) return f->sign; /* -0, as ml_dtypes has it */
    if (isnan(v)) return sign | f->nan;
    double size = fabs(v);
    if (isinf(v)) size = 2 * f->largest;
    int lowest = 1 - f->bias, exponent = size > 0 ? ilogb(size) : lowest;
    if (exponent < lowest) exponent = lowest;
    double units = rint(ldexp(size, f->mantissa - exponent)); /* halves to even */
    if (ldexp(units, exponent - f->mantissa) > f->largest) {
        if (!saturate && f->nan) return sign | f->inf;
        exponent = ilogb(f->largest);
        units = ldexp(f->largest, f->mantissa - exponent);
    }
    int hidden = 1 << f->mantissa, code = (int)units; /* 0 to 2 * hidden */
    if (code >= hidden) code += (exponent - lowest) * hidden;
    if (f->fnuz && signbit(v) && code != 0) sign = f->sign;
    return (uint8_t)(sign | code);
}
