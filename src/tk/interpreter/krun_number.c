/* Numbers of the element types: bytes to doubles and back.
 *
 *   type   bits of exponent, fraction  f16 0 11110 1111111111 = 65504, bf16 has the exponent of f32
 *
 * A double holds every value of every type up to 64-bit floats exactly, and integers up to 2^53.
 */
#include "krun_internal.h"

#include "base/half_float.h"

#include <math.h>

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

/* ---- all types ---- */

static uint64_t load(const uint8_t *at, uint32_t bytes)
{
    uint64_t x = 0;
    memcpy(&x, at, bytes); /* little-endian, as .npy files are */
    return x;
}

double krun_decode(const char *dtype, const uint8_t *at)
{
    float f;
    double x;
    uint32_t bits = ot_tk_dtype_bits(dtype);
    uint64_t raw = load(at, bits / 8);
    if (is(dtype, "f32")) return memcpy(&f, at, sizeof f), f;
    if (is(dtype, "f64")) return memcpy(&x, at, sizeof x), x;
    if (is(dtype, "f16")) return (double)ot_f16_to_f32((uint16_t)raw);
    if (is(dtype, "bf16")) return (double)ot_bf16_to_f32((uint16_t)raw);
    if (is(dtype, "bool")) return raw != 0;
    if (dtype[0] == 'u') return (double)raw;
    return (double)((int64_t)(raw << (64 - bits)) >> (64 - bits));
}

/* x cut towards zero, in the integers of so many bits. */
static uint64_t saturate(double x, uint32_t bits, bool is_signed)
{
    double limit = ldexp(1, (int)bits - (is_signed ? 1 : 0));
    if (isnan(x)) return 0;
    if (is_signed) {
        if (x >= limit) return (UINT64_C(1) << (bits - 1)) - 1;
        if (x <= -limit) return UINT64_C(1) << (bits - 1);
        return (uint64_t)(int64_t)x;
    }
    if (x <= 0) return 0;
    return x >= limit ? (bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1) : (uint64_t)x;
}

void krun_encode(const char *dtype, double x, uint8_t *to)
{
    uint32_t bits = ot_tk_dtype_bits(dtype);
    float f = (float)x;
    uint64_t raw;
    if (is(dtype, "f64")) {
        memcpy(to, &x, sizeof x);
        return;
    }
    if (is(dtype, "f32")) {
        memcpy(to, &f, sizeof f);
        return;
    }
    if (is(dtype, "f16"))
        raw = ot_f64_to_f16(x);
    else if (is(dtype, "bf16"))
        raw = ot_f64_to_bf16(x);
    else if (is(dtype, "bool"))
        raw = x != 0;
    else
        raw = saturate(x, bits, dtype[0] == 'i');
    memcpy(to, &raw, bits / 8);
}

void krun_convert(const char *from, const uint8_t *src, const char *to, uint8_t *dst, int64_t n)
{
    uint32_t a = ot_tk_dtype_bits(from) / 8, b = ot_tk_dtype_bits(to) / 8;
    if (is(from, to)) {
        memcpy(dst, src, (size_t)n * a);
        return;
    }
    for (int64_t i = 0; i < n; i++) krun_encode(to, krun_decode(from, src + i * a), dst + i * b);
}

float krun_f32(double x) { return (float)x; }

/* The residue of an integer; what is no integer of 63 bits is 0. */
static uint32_t residue(double x) { return fabs(x) < 9.2e18 ? (uint32_t)(uint64_t)(int64_t)x : 0; }

double krun_round(ot_tk_class c, double x)
{
    switch (c) {
    case OT_TK_F32: return krun_f32(x);
    case OT_TK_F64: return x;
    case OT_TK_I32: return (int32_t)residue(x);
    case OT_TK_U32: return residue(x);
    case OT_TK_I64:
    case OT_TK_CLASS_COUNT: break;
    }
    return trunc(x);
}
