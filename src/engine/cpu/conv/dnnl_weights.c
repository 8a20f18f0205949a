/* Weights of convolutions in the layouts that oneDNN's implementations take. */
#include "dnnl_weights.h"

#include "engine/core/half.h"

bool lw_weights_md(const lw_conv *k, dnnl_memory_desc_t *md, bool any)
{
    dnnl_dims_t dims, strides;
    int n = 0;
    int64_t step = 1;
    if (k->group > 1) dims[n++] = k->group;
    dims[n++] = k->maps / k->group;
    dims[n++] = k->channels;
    for (uint32_t a = 0; a < k->win.n; a++) dims[n++] = k->win.kernel[a];
    for (int a = n; a-- > 0;) {
        strides[a] = step;
        step *= dims[a];
    }
    if (any)
        return dnnl_memory_desc_init_by_tag(md, n, dims, dnnl_f32, dnnl_format_tag_any) ==
               dnnl_success;
    return dnnl_memory_desc_init_by_strides(md, n, dims, dnnl_f32, strides) == dnnl_success;
}

static void free_block(void *data) { ot_block_unref(data); }

/* How packed weights are made. */
typedef struct packing {
    const lw_conv *conv;
    dnnl_memory_desc_t md;
    dnnl_stream_t stream;
} packing;

const float *lw_conv_weights(const lw_conv *k, int64_t n, ot_block **copy)
{
    *copy = NULL;
    if (k->weights_type == OT_F32) return k->weights;
    *copy = ot_block_new(NULL, (size_t)n * sizeof(float));
    if (!*copy) return NULL;
    ot_half_widen(k->weights_type, ot_block_data(*copy), k->weights, n);
    return ot_block_data(*copy);
}

/* Weights times scale, in the model's layout: in place if they are `own`, else a copy, *copy.
 * false: no memory. */
static bool scale_weights(const lw_conv *k, bool own, ot_block **copy, const float **out)
{
    int64_t each = k->channels;
    for (uint32_t a = 0; a < k->win.n; a++) each *= k->win.kernel[a];
    const float *from = *out = lw_conv_weights(k, k->maps * each, copy);
    if (!from || !k->scaled) return from != NULL;
    bool writable = own || *copy;
    if (!writable) *copy = ot_block_new(NULL, (size_t)(k->maps * each) * sizeof(float));
    if (!writable && !*copy) return false;
    float *to = *copy ? ot_block_data(*copy) : (float *)(uintptr_t)from;
    for (int64_t m = 0; m < k->maps; m++)
        for (int64_t j = 0; j < each; j++) to[m * each + j] = from[m * each + j] * k->scale[m];
    *out = to;
    return true;
}

static bool reorder(dnnl_engine_t e, dnnl_stream_t stream, const dnnl_memory_desc_t *from,
                    const void *src, const dnnl_memory_desc_t *to, void *dst)
{
    dnnl_primitive_desc_t pd = NULL;
    ot_dnnl_op op = {.stream = stream};
    bool ok = dnnl_reorder_primitive_desc_create(&pd, from, e, to, e, NULL) == dnnl_success &&
              dnnl_primitive_create(&op.primitive, pd) == dnnl_success &&
              ot_dnnl_arg(&op, e, DNNL_ARG_FROM, from, (void *)(uintptr_t)src) &&
              ot_dnnl_arg(&op, e, DNNL_ARG_TO, to, dst) && ot_dnnl_run(&op) &&
              dnnl_stream_wait(stream) == dnnl_success;
    if (pd) dnnl_primitive_desc_destroy(pd);
    ot_dnnl_op_free(&op);
    return ok;
}

const lw_conv *lw_conv_keep(const lw_pass *l, const lw_conv *k)
{
    lw_conv *copy = ot_memdup(l->a, k, sizeof *k);
    if (!copy) return NULL;
    copy->scale = ot_memdup(l->a, k->scale, (size_t)k->maps * sizeof *k->scale);
    copy->shift = ot_memdup(l->a, k->shift, (size_t)k->maps * sizeof *k->shift);
    return copy->scale && copy->shift ? copy : NULL;
}

static ot_status fill_packed(ot_session *s, const ot_packed *packed, bool own)
{
    const packing *how = packed->how;
    dnnl_memory_desc_t from;
    const float *weights;
    ot_block *scaled;
    memset(ot_block_data(packed->data), 0, dnnl_memory_desc_get_size(&how->md));
    if (!lw_weights_md(how->conv, &from, false) ||
        !scale_weights(how->conv, own, &scaled, &weights))
        return ot_fail_nomem(s->d);
    bool ok = reorder(ot_dnnl_engine(s), how->stream, &from, weights, &how->md,
                      ot_block_data(packed->data));
    ot_block_unref(scaled);
    return ok ? OT_OK : ot_fail_nomem(s->d);
}

ot_status lw_weights_pack(lw_pass *l, const lw_conv *k, const dnnl_memory_desc_t *md, void **out)
{
    ot_session *s = l->p->s;
    uint64_t form = ot_hash_bytes(k->form, md, sizeof *md);
    if (k->scaled) form = ot_hash_bytes(form, k->scale, (size_t)k->maps * sizeof *k->scale);
    ot_block *packed = ot_packed_find(s, k->source, form);
    if (!packed) {
        bool now = k->weights != k->source;
        size_t bytes = dnnl_memory_desc_get_size(md);
        packing *how = OT_NEW(l->a, packing);
        if (how) *how = (packing){now ? k : lw_conv_keep(l, k), *md, ot_dnnl_stream(l->p)};
        packed = how && how->conv && how->stream ? ot_block_new(NULL, bytes) : NULL;
        if (!packed) return ot_fail_nomem(s->d);
        OT_TRY(
            ot_packed_later(s, k->source, form, packed, free_block, now ? NULL : fill_packed, how));
        s->figures.weight_bytes += (int64_t)bytes;
        if (now) OT_TRY(fill_packed(s, s->packed, false));
    }
    *out = ot_block_data(packed);
    return OT_OK;
}
