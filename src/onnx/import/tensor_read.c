/* Reading the elements of a held tensor as int64 or float, whatever its type.
 *
 * Elements are read with memcpy: raw_data need not be aligned for every type.
 */
#include "import.h"

#include "base/half_float.h"
#include "model_io.h"

#include <sys/mman.h>
#include <unistd.h>

/* Number of elements, when the tensor is held and has at most `max`. */
static bool held(const ot_tensor *t, size_t max, size_t *n)
{
    int64_t elems;
    if (!t || !t->data || !ot_product(t->dims, t->rank, &elems) || (uint64_t)elems > max)
        return false;
    if ((uint64_t)elems * (ot_dtype_bits(t->dtype) / 8) != t->bytes) return false;
    *n = (size_t)elems;
    return true;
}

static bool one_int(ot_dtype type, const char *p, int64_t *out)
{
    int8_t i8;
    uint8_t u8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    uint64_t u64;
    switch (type) {
    case OT_I8:
        memcpy(&i8, p, 1);
        *out = i8;
        return true;
    case OT_U8:
        memcpy(&u8, p, 1);
        *out = u8;
        return true;
    case OT_BOOL:
        memcpy(&u8, p, 1);
        *out = u8 != 0;
        return true;
    case OT_I16:
        memcpy(&i16, p, 2);
        *out = i16;
        return true;
    case OT_U16:
        memcpy(&u16, p, 2);
        *out = u16;
        return true;
    case OT_I32:
        memcpy(&i32, p, 4);
        *out = i32;
        return true;
    case OT_U32:
        memcpy(&u32, p, 4);
        *out = u32;
        return true;
    case OT_I64: memcpy(out, p, 8); return true;
    case OT_U64:
        memcpy(&u64, p, 8);
        *out = (int64_t)u64;
        return u64 <= INT64_MAX;
    default: return false;
    }
}

bool ot_tensor_ints(const ot_tensor *t, int64_t *out, size_t max, size_t *n)
{
    size_t count;
    if (!held(t, max, &count)) return false;
    size_t size = ot_dtype_bits(t->dtype) / 8;
    int64_t ignored;
    if (count == 0 && !one_int(t->dtype, "\0\0\0\0\0\0\0", &ignored)) return false;
    for (size_t k = 0; k < count; k++)
        if (!one_int(t->dtype, (const char *)t->data + k * size, &out[k])) return false;
    *n = count;
    return true;
}

static bool one_float(ot_dtype type, const char *p, float *out)
{
    double f64;
    uint16_t u16;
    switch (type) {
    case OT_F32: memcpy(out, p, 4); return true;
    case OT_F64:
        memcpy(&f64, p, 8);
        *out = (float)f64;
        return true;
    case OT_F16:
        memcpy(&u16, p, 2);
        *out = ot_f16_to_f32(u16);
        return true;
    case OT_BF16:
        memcpy(&u16, p, 2);
        *out = ot_bf16_to_f32(u16);
        return true;
    default: return false;
    }
}

bool ot_tensor_floats(const ot_tensor *t, float *out, size_t max, size_t *n)
{
    size_t count;
    if (!held(t, max, &count)) return false;
    size_t size = ot_dtype_bits(t->dtype) / 8;
    float ignored;
    if (count == 0 && !one_float(t->dtype, "\0\0\0\0\0\0\0", &ignored)) return false;
    for (size_t k = 0; k < count; k++)
        if (!one_float(t->dtype, (const char *)t->data + k * size, &out[k])) return false;
    *n = count;
    return true;
}

bool ot_tensor_is_own(const ot_tensor *t)
{
    const Onnx__TensorProto *p = t->proto;
    return p && t->data &&
           ((p->has_raw_data && t->data == p->raw_data.data) ||
            (p->n_float_data && t->data == p->float_data));
}

/* Pages that hold nothing but [data, data + bytes) of a mapped file. */
static void drop_pages(const void *data, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
              first = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)data + bytes) / page * page;
    if (end > first) (void)madvise((void *)first, end - first, MADV_DONTNEED);
}

bool ot_tensor_release(ot_tensor *t)
{
    Onnx__TensorProto *p = (Onnx__TensorProto *)(uintptr_t)t->proto;
    if (!p || !t->data) return false;
    if (p->has_raw_data && t->data == p->raw_data.data) {
        ot_pb_release(p->raw_data.data);
        p->raw_data = (ProtobufCBinaryData){0, NULL};
        p->has_raw_data = false;
    } else if (p->n_float_data && t->data == p->float_data) {
        ot_pb_release(p->float_data);
        p->float_data = NULL;
        p->n_float_data = 0;
    } else if (p->n_external_data) {
        drop_pages(t->data, t->bytes);
    } else {
        return false;
    }
    t->data = NULL;
    return true;
}
