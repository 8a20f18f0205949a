/* Arrays: shapes, references, copies, sequences, single elements.
 *
 *   ot_nd  dims [2,3]  data --> | 0 1 2 3 4 5 |  <-- data  dims [6]  ot_nd    two arrays, one block
 *          block ------------->   refs 2         <-------- block
 *
 * An array of no elements has a block, too: `data` is NULL only for what is no tensor in memory.
 */
#include "session.h"

#include "base/half_float.h"

bool ot_nd_elems(const ot_nd *a, int64_t *out) { return ot_product(a->dims, a->rank, out); }

size_t ot_dtype_bytes(ot_dtype t) { return (ot_dtype_bits(t) + 7) / 8; }

bool ot_nd_is_dense(const ot_nd *a)
{
    int64_t step = 1;
    if (a->chan_block) return false;
    for (uint32_t k = 0; k < a->rank; k++)
        if (a->dims[k] == 0) return true;
    for (uint32_t k = a->rank; k-- > 0;) {
        if (a->dims[k] != 1 && a->strides[k] != step) return false;
        if (!ot_mul_i64(step, a->dims[k], &step)) return false;
    }
    return true;
}

void ot_nd_set_dense(ot_nd *a, ot_dtype t, uint32_t rank, const int64_t *dims)
{
    int64_t step = 1;
    a->dtype = t;
    a->rank = rank;
    a->chan_block = 0;
    for (uint32_t k = rank; k-- > 0;) {
        a->dims[k] = dims[k];
        a->strides[k] = step;
        /* no memory of that size will ever be given */
        if (dims[k] > 0 && !ot_mul_i64(step, dims[k], &step)) step = 0;
    }
}

void ot_nd_set_blocked(ot_nd *a, ot_dtype t, uint32_t rank, const int64_t *dims, uint32_t block)
{
    int64_t step = block;
    a->dtype = t;
    a->rank = rank;
    a->chan_block = block;
    for (uint32_t k = rank; k-- > 0;) {
        int64_t count = k == 1 ? ot_ceil_div(dims[1], block) : dims[k];
        a->dims[k] = dims[k];
        a->strides[k] = step;
        if (count > 0 && !ot_mul_i64(step, count, &step)) step = 0;
    }
}

bool ot_nd_span(const ot_nd *a, int64_t *out)
{
    int64_t dims[OT_RANK_MAX + 1], n, size = (int64_t)ot_dtype_bytes(a->dtype);
    memcpy(dims, a->dims, a->rank * sizeof *dims);
    if (a->chan_block) dims[1] = ot_ceil_div(dims[1], a->chan_block) * a->chan_block;
    return size > 0 && ot_product(dims, a->rank, &n) && ot_mul_i64(n, size, out);
}

bool ot_nd_bytes(ot_dtype t, uint32_t rank, const int64_t *dims, int64_t *out)
{
    int64_t n, size = (int64_t)ot_dtype_bytes(t);
    return size > 0 && rank <= OT_RANK_MAX && ot_product(dims, rank, &n) &&
           ot_mul_i64(n, size, out);
}

bool ot_nd_same_shape(const ot_nd *a, ot_dtype t, uint32_t rank, const int64_t *dims)
{
    if (a->dtype != t || a->rank != rank) return false;
    for (uint32_t k = 0; k < rank; k++)
        if (a->dims[k] != dims[k]) return false;
    return true;
}

char *ot_dims_text(int64_t rank, const int64_t *dims, char *buf, size_t n)
{
    size_t at = 0;
    if (rank < 0) {
        snprintf(buf, n, "of unknown rank");
        return buf;
    }
    for (int64_t k = 0; k < rank && at < n; k++) {
        const char *before = k ? "," : "[";
        int w = dims[k] < 0 ? snprintf(buf + at, n - at, "%s?", before)
                            : snprintf(buf + at, n - at, "%s%lld", before, (long long)dims[k]);
        at += w < 0 ? 0 : (size_t)w;
    }
    if (at < n) snprintf(buf + at, n - at, rank ? "]" : "[]");
    return buf;
}

/* ---- memory ---- */

ot_status ot_nd_allocate(ot_nd *a, ot_heap *heap, ot_diag *d)
{
    int64_t bytes;
    if (!ot_nd_bytes(a->dtype, a->rank, a->dims, &bytes))
        return ot_fail(d, OT_E_INPUT, "an array of type %s is too large or of no type that is held",
                       ot_dtype_name(a->dtype));
    ot_block *b = ot_block_new(heap, (size_t)bytes);
    if (!b) return ot_fail_nomem(d);
    a->block = b;
    a->data = ot_block_data(b);
    a->list = NULL;
    return OT_OK;
}

ot_status ot_nd_new(ot_nd *a, ot_dtype t, uint32_t rank, const int64_t *dims, ot_diag *d)
{
    *a = (ot_nd){0};
    if (rank > OT_RANK_MAX)
        return ot_fail(d, OT_E_INPUT, "an array of %u dimensions (at most %d are supported)", rank,
                       OT_RANK_MAX);
    for (uint32_t k = 0; k < rank; k++)
        if (dims[k] < 0) return ot_fail(d, OT_E_INPUT, "an array of negative size");
    ot_nd_set_dense(a, t, rank, dims);
    ot_status s = ot_nd_allocate(a, NULL, d);
    if (s != OT_OK) *a = (ot_nd){0};
    return s;
}

void ot_nd_share(ot_nd *to, const ot_nd *from)
{
    *to = *from;
    if (to->block) ot_block_ref(to->block);
    if (to->list) to->list->refs++;
}

void ot_nd_release(ot_nd *a)
{
    ot_block_unref(a->block);
    if (a->list && --a->list->refs == 0) {
        /* sequences hold tensors: no deeper */
        for (size_t k = 0; k < a->list->n; k++) ot_nd_release(&a->list->items[k]);
        (void)!ot_hook_alloc(a->list->items, a->list->cap * sizeof *a->list->items, 0);
        (void)!ot_hook_alloc(a->list, sizeof *a->list, 0);
    }
    *a = (ot_nd){0};
}

bool ot_nd_is_owned(const ot_nd *a)
{
    if (!a->list) return a->block || !a->data;
    for (size_t k = 0; k < a->list->n; k++)
        if (!ot_nd_is_owned(&a->list->items[k])) return false;
    return true;
}

/* ---- sequences ---- */

ot_status ot_nd_list_new(ot_nd *a, ot_dtype t, ot_diag *d)
{
    *a = (ot_nd){.dtype = t};
    ot_nd_list *l = ot_hook_alloc(NULL, 0, sizeof *l);
    if (!l) return ot_fail_nomem(d);
    *l = (ot_nd_list){.refs = 1};
    a->list = l;
    return OT_OK;
}

ot_status ot_nd_list_push(ot_nd *a, const ot_nd *item, ot_diag *d)
{
    ot_nd_list *l = a->list;
    if (!l || l->refs != 1) OT_BUG("a sequence grows while others share it");
    if (item->list) return ot_fail(d, OT_E_INPUT, "a sequence of sequences");
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 4;
        ot_nd *items = ot_hook_alloc(l->items, l->cap * sizeof *items, cap * sizeof *items);
        if (!items) return ot_fail_nomem(d);
        l->items = items;
        l->cap = cap;
    }
    ot_nd_share(&l->items[l->n++], item);
    return OT_OK;
}

static ot_status copy_list(ot_nd *to, const ot_nd *from, ot_heap *heap, ot_diag *d)
{
    OT_TRY(ot_nd_list_new(to, from->dtype, d));
    for (size_t k = 0; k < from->list->n; k++) {
        ot_nd item;
        ot_status s = ot_nd_copy(&item, &from->list->items[k], heap, d);
        if (s == OT_OK) {
            s = ot_nd_list_push(to, &item, d);
            ot_nd_release(&item);
        }
        if (s == OT_OK) continue;
        ot_nd_release(to);
        return s;
    }
    return OT_OK;
}

ot_status ot_nd_copy(ot_nd *to, const ot_nd *from, ot_heap *heap, ot_diag *d)
{
    *to = (ot_nd){0};
    if (from->list) return copy_list(to, from, heap, d);
    if (!from->data) {
        *to = *from;
        return OT_OK;
    }
    ot_nd_set_dense(to, from->dtype, from->rank, from->dims);
    ot_status s = ot_nd_allocate(to, heap, d);
    if (s != OT_OK) {
        *to = (ot_nd){0};
        return s;
    }
    if (to->block->bytes) memcpy(to->data, from->data, to->block->bytes);
    return OT_OK;
}

/* ---- elements ---- */

static const void *at(const ot_nd *a, int64_t i, size_t size)
{
    return (const char *)a->data + (size_t)i * size;
}

int64_t ot_nd_int(const ot_nd *a, int64_t i)
{
    switch ((int)a->dtype) {
    case OT_BOOL: return *(const uint8_t *)at(a, i, 1) != 0;
    case OT_U8: return *(const uint8_t *)at(a, i, 1);
    case OT_I8: return *(const int8_t *)at(a, i, 1);
    case OT_U4:
    case OT_U2: return *(const uint8_t *)at(a, i, 1);
    case OT_I4:
    case OT_I2: return *(const int8_t *)at(a, i, 1);
    case OT_U16: return *(const uint16_t *)at(a, i, 2);
    case OT_I16: return *(const int16_t *)at(a, i, 2);
    case OT_U32: return *(const uint32_t *)at(a, i, 4);
    case OT_I32: return *(const int32_t *)at(a, i, 4);
    case OT_U64: return (int64_t) * (const uint64_t *)at(a, i, 8);
    case OT_I64: return *(const int64_t *)at(a, i, 8);
    default: return 0;
    }
}

double ot_nd_double(const ot_nd *a, int64_t i)
{
    switch ((int)a->dtype) {
    case OT_F32: return (double)*(const float *)at(a, i, 4);
    case OT_F64: return *(const double *)at(a, i, 8);
    case OT_F16: return (double)ot_f16_to_f32(*(const uint16_t *)at(a, i, 2));
    case OT_BF16: return (double)ot_bf16_to_f32(*(const uint16_t *)at(a, i, 2));
    case OT_U64: return (double)*(const uint64_t *)at(a, i, 8);
    default: return (double)ot_nd_int(a, i);
    }
}
