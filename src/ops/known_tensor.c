/* Known contents in their own element type: rounding to it, and writing them down as a constant. */
#include <math.h>

#include "ops.h"
#include "shape.h"

/* v with `bits` bits of fraction, exponents from `least` to `most`. */
static double round_to(double v, int bits, int least, int most)
{
    if (v == 0 || v != v || isinf(v)) return v;
    int exponent = ilogb(v), unit = (exponent < least ? least : exponent) - bits;
    double r = scalbn(nearbyint(scalbn(v, -unit)), unit);
    return fabs(r) >= scalbn(1, most + 1) ? copysign((double)INFINITY, v) : r;
}

double ot_known_round(ot_dtype t, double v)
{
    if (t == OT_F64) return v;
    v = (double)(float)v;
    if (t == OT_F16) return round_to(v, 10, -14, 15);
    return t == OT_BF16 ? round_to(v, 7, -126, 127) : v;
}

/* Bits of a number that float16 holds exactly. */
static uint16_t half_bits(double v)
{
    uint16_t sign = signbit(v) ? 0x8000u : 0;
    double a = fabs(v);
    if (isinf(v)) return (uint16_t)(sign | 0x7c00u);
    if (a < 0x1p-14) return (uint16_t)(sign | (uint16_t)(a * 0x1p24));
    int exponent = ilogb(a);
    return (uint16_t)(sign | (uint16_t)(exponent + 15) << 10 |
                      (uint16_t)((scalbn(a, -exponent) - 1) * 1024));
}

static void put_float(unsigned char *to, ot_dtype t, double v)
{
    float f = (float)v;
    uint32_t bits;
    uint16_t half = 0;
    memcpy(&bits, &f, sizeof bits);
    if (t == OT_F16) half = half_bits(v);
    if (t == OT_BF16) half = (uint16_t)(bits >> 16);
    if (t == OT_F64)
        memcpy(to, &v, sizeof v);
    else if (t == OT_F32)
        memcpy(to, &f, sizeof f);
    else
        memcpy(to, &half, sizeof half);
}

static void put_int(unsigned char *to, ot_dtype t, int64_t v)
{
    int32_t narrow = (int32_t)v;
    if (t == OT_I64)
        memcpy(to, &v, sizeof v);
    else if (t == OT_I32)
        memcpy(to, &narrow, sizeof narrow);
    else
        *to = v != 0;
}

const ot_tensor *ot_known_tensor(ot_arena *arena, const ot_value *v)
{
    size_t size = ot_dtype_bits(v->dtype) / 8;
    if (!v->known_floats && v->dtype != OT_I64 && v->dtype != OT_I32 && v->dtype != OT_BOOL)
        OT_BUG("contents of a type that is not written down");
    ot_tensor *t = OT_NEW(arena, ot_tensor);
    unsigned char *data = ot_alloc_n(arena, v->known_n + 1u, size);
    int64_t *dims = OT_NEW_N(arena, int64_t, (size_t)v->rank + 1);
    if (!t || !data || !dims) return NULL;
    for (int32_t a = 0; a < v->rank; a++) dims[a] = v->dims[a];
    for (uint32_t k = 0; k < v->known_n; k++) {
        if (v->known_floats)
            put_float(data + k * size, v->dtype, v->known_floats[k]);
        else
            put_int(data + k * size, v->dtype, v->known[k]);
    }
    *t = (ot_tensor){.dtype = v->dtype,
                     .rank = (uint32_t)v->rank,
                     .dims = dims,
                     .data = data,
                     .bytes = v->known_n * size};
    return t;
}
