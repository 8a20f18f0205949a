/* TensorProto -> ot_tensor, without copying the elements where that is possible.
 *
 * A TensorProto may hold its elements in one of several places, depending on its type and its
 * writer:
 *
 *   raw_data      little-endian bytes                  data points at them
 *   float_data, int64_data, double_data                data points at the array (same layout)
 *   int32_data    also the narrow types, one per int   small ones are narrowed into the arena
 *   uint64_data   also uint32                          small ones are narrowed into the arena
 *   external      a mapped file (external.c)           data points into the mapping
 *   string_data                                        not held (data NULL)
 *
 * Every place is checked against dims: a tensor that lies about its size never gets past here.
 */
#include "import.h"

#define NARROW_MAX ((int64_t)1 << 16) /* most elements that are converted */

bool ot_proto_nominal_bytes(const Onnx__TensorProto *t, int64_t *elems, int64_t *bytes)
{
    uint32_t bits = ot_dtype_bits((ot_dtype)t->data_type);
    int64_t total;
    if (!ot_product(t->dims, t->n_dims, elems) || bits == 0) return false;
    if (!ot_mul_i64(*elems, bits, &total) || !ot_add_i64(total, 7, &total)) return false;
    *bytes = total / 8;
    return true;
}

typedef struct place {
    const void *data; /* first element as stored */
    size_t n;         /* entries stored */
    int64_t want;     /* entries dims ask for */
    size_t entry;     /* bytes of a stored entry */
    const char *field;
} place;

/* The typed field that holds elements of t's type. */
static place typed_place(const Onnx__TensorProto *t, int64_t elems)
{
    switch (t->data_type) {
    case OT_F32: return (place){t->float_data, t->n_float_data, elems, 4, "float_data"};
    case OT_C64: return (place){t->float_data, t->n_float_data, elems * 2, 4, "float_data"};
    case OT_F64: return (place){t->double_data, t->n_double_data, elems, 8, "double_data"};
    case OT_C128: return (place){t->double_data, t->n_double_data, elems * 2, 8, "double_data"};
    case OT_I64: return (place){t->int64_data, t->n_int64_data, elems, 8, "int64_data"};
    case OT_U32:
    case OT_U64: return (place){t->uint64_data, t->n_uint64_data, elems, 8, "uint64_data"};
    case OT_U4:
    case OT_I4:
    case OT_F4E2M1:
        return (place){t->int32_data, t->n_int32_data, (elems + 1) / 2, 4, "int32_data"};
    case OT_U2:
    case OT_I2: return (place){t->int32_data, t->n_int32_data, (elems + 3) / 4, 4, "int32_data"};
    default: return (place){t->int32_data, t->n_int32_data, elems, 4, "int32_data"};
    }
}

/* Keep the low `size` bytes of each entry. Two's complement, so this is the stored element. */
static void *narrow(ot_arena *a, const place *p, size_t size)
{
    char *out = ot_alloc_n(a, p->n, size);
    for (size_t k = 0; out && k < p->n; k++)
        memcpy(out + k * size, (const char *)p->data + k * p->entry, size);
    return out;
}

static ot_status from_typed(ot_importer *im, const Onnx__TensorProto *p, const char *where,
                            int64_t elems, ot_tensor *t)
{
    place at = typed_place(p, elems);
    if (at.n == 0 && at.want > 0)
        return ot_fail(im->d, OT_E_INPUT, "%s: holds no data, but its dims ask for %lld elements",
                       where, (long long)elems);
    if ((uint64_t)at.n != (uint64_t)at.want)
        return ot_fail(im->d, OT_E_INPUT, "%s: %s holds %zu entries, but its dims ask for %lld",
                       where, at.field, at.n, (long long)at.want);
    uint32_t bits = ot_dtype_bits(t->dtype);
    if (bits < 8) return OT_OK; /* read in place (ot_tensor_unpack) */
    size_t stored = at.n ? at.entry * at.n : 0;
    if (stored == t->bytes) {
        t->data = at.n ? at.data : "";
        return OT_OK;
    }
    if (elems > NARROW_MAX) return OT_OK; /* legal, not held */
    t->data = narrow(im->m->arena, &at, bits / 8);
    return t->data ? OT_OK : ot_fail_nomem(im->d);
}

/* Mapped elements; copied when the file puts them where the type cannot be read in place. */
static ot_status from_external(ot_importer *im, const ot_ext *e, ot_tensor *t)
{
    uint32_t bits = ot_dtype_bits(t->dtype);
    if (bits < 8) {
        t->packed = e->data;
        return OT_OK;
    }
    size_t align = bits / 8 > 8 ? 8 : bits / 8;
    if (t->bytes == 0)
        t->data = "";
    else if ((uintptr_t)e->data % align == 0)
        t->data = e->data;
    else
        t->data = ot_memdup(im->m->arena, e->data, e->bytes);
    return t->data ? OT_OK : ot_fail_nomem(im->d);
}

static ot_status fill(ot_importer *im, const Onnx__TensorProto *p, const char *where, ot_tensor *t)
{
    if (t->dtype == OT_STRING) {
        int64_t n;
        if (!ot_product(p->dims, p->n_dims, &n) || (uint64_t)n != p->n_string_data)
            return ot_fail(im->d, OT_E_INPUT, "%s: %zu strings do not fit its dims", where,
                           p->n_string_data);
        return OT_OK;
    }
    int64_t elems, bytes;
    if (!ot_proto_nominal_bytes(p, &elems, &bytes))
        return ot_fail(im->d, OT_E_INPUT, "%s: its dims ask for more bytes than can be counted",
                       where);
    t->bytes = (size_t)bytes;
    const ot_ext *e = ot_source_ext(im->src, p);
    if (e) return from_external(im, e, t);
    bool raw = p->has_raw_data && (p->raw_data.len > 0 || typed_place(p, elems).n == 0);
    if (!raw) return from_typed(im, p, where, elems, t);
    if (p->raw_data.len != t->bytes)
        return ot_fail(im->d, OT_E_INPUT,
                       "%s: raw_data holds %zu bytes, but its dims and type (%s) ask for %zu",
                       where, p->raw_data.len, ot_dtype_name(t->dtype), t->bytes);
    const void *contents = t->bytes ? (const void *)p->raw_data.data : "";
    if (ot_dtype_bits(t->dtype) >= 8)
        t->data = contents;
    else
        t->packed = contents;
    return OT_OK;
}

ot_status ot_import_tensor(ot_importer *im, const Onnx__TensorProto *p, const char *where,
                           const ot_tensor **out)
{
    if (p->n_dims > OT_RANK_MAX)
        return ot_fail(im->d, OT_E_INPUT, "%s: %zu dimensions (at most %d are supported)", where,
                       p->n_dims, OT_RANK_MAX);
    for (size_t k = 0; k < p->n_dims; k++)
        if (p->dims[k] < 0)
            return ot_fail(im->d, OT_E_INPUT, "%s: dimension %zu is negative (%lld)", where, k,
                           (long long)p->dims[k]);
    ot_tensor *t = OT_NEW(im->m->arena, ot_tensor);
    if (!t) return ot_fail_nomem(im->d);
    t->rank = (uint32_t)p->n_dims;
    t->dims = p->dims;
    t->proto = p;
    bool known = p->data_type > OT_DT_UNKNOWN && p->data_type <= OT_I2;
    t->dtype = known ? (ot_dtype)p->data_type : OT_DT_UNKNOWN;
    if (known) OT_TRY(fill(im, p, where, t)); /* a type newer than this program: passed through */
    *out = t;
    return OT_OK;
}

/* Byte k of a sub-byte tensor: packed, or an entry of int32_data. */
static uint8_t packed_byte(const ot_tensor *t, const place *at, size_t k)
{
    return t->packed ? t->packed[k] : (uint8_t)((const int32_t *)at->data)[k];
}

bool ot_tensor_unpack(const ot_tensor *t, uint8_t *out)
{
    const Onnx__TensorProto *p = t->proto;
    const uint32_t bits = ot_dtype_bits(t->dtype), each = bits ? 8 / bits : 1;
    const bool is_signed = t->dtype == OT_I4 || t->dtype == OT_I2;
    int64_t elems;
    place at = {0};
    if (bits == 0 || bits >= 8 || !ot_product(t->dims, t->rank, &elems)) return false;
    if (!t->packed) {
        if (!p) return false;
        at = typed_place(p, elems);
        if ((uint64_t)at.n != (uint64_t)at.want) return false;
    }
    for (int64_t k = 0; k < elems; k++) {
        uint8_t code = (uint8_t)(packed_byte(t, &at, (size_t)(k / each)) >> (k % each * bits));
        code &= (uint8_t)((1u << bits) - 1);
        if (is_signed && code >> (bits - 1)) code |= (uint8_t)(0xffu << bits);
        out[k] = code;
    }
    return true;
}

bool ot_tensor_read(const ot_tensor *t, void *out)
{
    const Onnx__TensorProto *p = t->proto;
    uint32_t bits = ot_dtype_bits(t->dtype);
    int64_t elems;
    if (t->data) {
        if (t->bytes) memcpy(out, t->data, t->bytes);
        return true;
    }
    if (!p || bits < 8 || !ot_product(t->dims, t->rank, &elems)) return false;
    place at = typed_place(p, elems);
    size_t size = bits / 8;
    if (at.n == 0 || (uint64_t)at.n != (uint64_t)at.want || at.n * size != t->bytes) return false;
    for (size_t k = 0; k < at.n; k++)
        memcpy((char *)out + k * size, (const char *)at.data + k * at.entry, size);
    return true;
}
