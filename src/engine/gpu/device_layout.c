/* Layouts by device: which ones suit it, constants rewritten, what was changed.
 *
 *   a CPU (pocl, llvmpipe)     each work-item loads for itself, in vectors; what moves is a cache
 *                              line
 *   ... with vectors (pocl)    a work-item's vector is a register: activations lie in blocks of
 *                              channels. In llvmpipe, a register holds an
 *                              element of each of eight work-items, and blocks took x1.5 of the
 *                              time
 *   a GPU                      a subgroup's work-items load together; what moves is a sector of a
 *                              cache line; each unit wants hundreds of work-items
 *
 * Whether a kernel takes a layout follows from the transactions that it makes with and without
 * (engine/gpu/shaders/dg_access.c).
 */
#include "device_internal.h"

/* work-items of a GPU's subgroup: CUDA's, and no GPU's is smaller that counts */
#define SUBGROUP   32
#define GPU_SECTOR 32 /* bytes that a GPU's cache line of 64 or 128 is read in */
#define CPU_LINE   64
#define GPU_UNITS  32 /* of a GPU whose API does not tell: Vulkan */
/* channels of an activation side by side: a vector of a CPU's, and what kernels have registers
 * for */
#define BLOCK 8

ot_dg_layout ot_device_layout(const ot_device_facts *f)
{
    const int64_t units = f->units == 1 ? GPU_UNITS : f->units;
    if (!f->is_cpu)
        return (ot_dg_layout){
            .together = SUBGROUP, .busy = units * OT_DG_UNIT_ITEMS, .sector = GPU_SECTOR};
    ot_dg_layout l = {.together = 1,
                      .sector = f->cache_line > 0 ? (uint32_t)f->cache_line : CPU_LINE};
    if (f->vector_floats > 1 && ot_dg_blocks_pay(&l, BLOCK)) l.block = BLOCK;
    return l;
}

static bool same_packing(const ot_dg_packing *a, const ot_dg_packing *b)
{
    return a->block == b->block && a->groups == b->groups && a->maps == b->maps &&
           a->map_stride == b->map_stride &&
           !memcmp(a->depth_dims, b->depth_dims, sizeof a->depth_dims) &&
           !memcmp(a->depth_steps, b->depth_steps, sizeof a->depth_steps);
}

ot_status dv_packed_value(dv_session *s, const dv_value *x, const ot_dg_packing *pack,
                          dv_value **out)
{
    int64_t elems;
    ot_device_layouts *l = &s->figures.layouts;
    for (size_t k = 0; k < s->n_packed; k++)
        if (s->packed[k]->plain == &x->nd && same_packing(&s->packed[k]->pack, pack)) {
            *out = s->packed[k];
            return OT_OK;
        }
    if (!ot_dg_packed_elems(pack, &elems))
        return ot_fail(s->s->d, OT_E_INPUT, "an array is larger than any memory");
    dv_value *y = OT_NEW(s->a, dv_value);
    if (!y || !OT_PUSH(s->a, s->packed, s->n_packed, s->cap_packed, y))
        return ot_fail_nomem(s->s->d);
    *y = (dv_value){.memory = DV_WEIGHTS, .plain = &x->nd, .pack = *pack};
    ot_nd_set_dense(&y->nd, x->nd.dtype, 1, &elems);
    const int64_t filled = elems -
                           pack->groups * pack->maps * pack->depth_dims[0] * pack->depth_dims[1];
    l->n_packed++;
    l->packed_bytes += elems * (int64_t)ot_dtype_bytes(x->nd.dtype);
    l->filled += filled * (int64_t)ot_dtype_bytes(x->nd.dtype);
    *out = y;
    return OT_OK;
}

void dv_pack_contents(const dv_value *x, void *to)
{
    ot_dg_pack(&x->pack, ot_dtype_bytes(x->nd.dtype), x->plain->data, to);
}

void dv_count_layout(dv_session *s, const ot_dg_shader *k)
{
    ot_device_layouts *l = &s->figures.layouts;
    l->n_kernels++;
    if (k->transactions <= 0) return;
    l->n_analysed++;
    l->n_spread += k->spreads;
    l->transactions += k->transactions;
    l->transactions_plain += k->transactions_plain;
    l->transactions_ideal += k->transactions_ideal;
}

void dv_count_blocks(dv_session *s, int64_t bytes)
{
    s->figures.layouts.n_blocked++;
    s->figures.layouts.blocked_bytes += bytes;
}
