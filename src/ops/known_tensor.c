/* Known contents in their own element type: rounding to it, and writing them down as a constant. */
#include "ops.h"
#include "shape.h"

#include "base/half_float.h"

double ot_known_round(ot_dtype t, double v)
{
    if (t == OT_F64) return v;
    float f = (float)v;
    if (t == OT_F16) f = ot_f16_to_f32(ot_f32_to_f16(f));
    if (t == OT_BF16) f = ot_bf16_to_f32(ot_f32_to_bf16(f));
    return (double)f;
}

static void put_float(unsigned char *to, ot_dtype t, double v)
{
    float f = (float)v;
    uint16_t half = t == OT_F16 ? ot_f32_to_f16(f) : ot_f32_to_bf16(f);
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
