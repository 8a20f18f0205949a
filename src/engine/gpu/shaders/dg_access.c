/* What accesses to memory cost, and which layout makes fewer transactions of them.
 *
 *   each by itself     a work-item loads its lanes at once; a transaction is a sector that they
 *                      touch
 *   (a CPU's vectors)  0 1 2 3 4 5 6 7 | . . .             stride 1: one sector     stride 9: eight
 *
 *   together            a lane of all work-items of a subgroup is loaded at once
 *   (a GPU's subgroup)  item 0     item 1     item 2        items 8 apart: a sector each
 *                       0 1 2 3 .. 8 9 10 ..  16 17 ..
 *
 *   spread              0 3 6 ..   1 4 7 ..   2 5 8 ..   items 1 apart: as few sectors as hold them
 *
 * What caches keep between accesses is not counted: a layout that touches fewer sectors asks
 * less of them, too.
 */
#include "dg_internal.h"

static uint32_t sector_of(const ot_dg_layout *l) { return l->sector ? l->sector : 64; }

/* Sectors that n elements touch. */
static double sectors(const ot_dg_layout *l, ot_dtype type, uint32_t n, int64_t stride)
{
    if (stride < 0) stride = -stride;
    double span = ((double)(n - 1) * (double)stride + 1) * (double)ot_dtype_bytes(type);
    double whole = span / (double)sector_of(l), up = (double)(int64_t)whole;
    up += up < whole;
    return stride == 0 ? 1 : up < (double)n ? up : (double)n;
}

double dg_transactions(const ot_dg_layout *l, const dg_access *x)
{
    if (l->together <= 1) return x->times * sectors(l, x->type, x->lanes, x->lane_stride);
    return x->times * x->lanes * sectors(l, x->type, l->together, x->item_stride) / l->together;
}

double dg_transactions_ideal(const ot_dg_layout *l, const dg_access *x)
{
    dg_access best = *x;
    best.lane_stride = x->lane_stride ? 1 : 0;
    best.item_stride = x->item_stride ? 1 : 0;
    return dg_transactions(l, &best);
}

static double sum(const ot_dg_layout *l, const dg_access *x, uint32_t n,
                  double (*of)(const ot_dg_layout *, const dg_access *))
{
    double all = 0;
    for (uint32_t k = 0; k < n; k++) all += of(l, &x[k]);
    return all;
}

void dg_count(dg_build *b, const dg_access *x, uint32_t n, double items)
{
    b->transactions[0] = items * sum(&b->target->layout, x, n, dg_transactions);
    b->transactions[2] = items * sum(&b->target->layout, x, n, dg_transactions_ideal);
}

void dg_count_plain(dg_build *b, const dg_access *x, uint32_t n, double items)
{
    b->transactions[1] = items * sum(&b->target->layout, x, n, dg_transactions);
}

bool dg_spreads(const dg_build *b, const dg_access *x, const dg_access *spread, uint32_t n)
{
    const ot_dg_layout *l = &b->target->layout;
    if (l->spreads != OT_DG_WHERE_IT_PAYS) return l->spreads == OT_DG_ALWAYS;
    return sum(l, spread, n, dg_transactions) < sum(l, x, n, dg_transactions);
}

bool dg_packs(const dg_build *b, ot_id v, const dg_access *plain, const dg_access *packed)
{
    const ot_dg_layout *l = &b->target->layout;
    if (!dg_nd(b, v)->data || !ot_nd_is_dense(dg_nd(b, v)) || l->packs == OT_DG_NEVER) return false;
    return l->packs == OT_DG_ALWAYS || dg_transactions(l, packed) < dg_transactions(l, plain);
}

/* ---- packed constants ---- */

bool ot_dg_packed_elems(const ot_dg_packing *p, int64_t *out)
{
    const int64_t dims[] = {p->groups, ot_ceil_div(p->maps, p->block), p->depth_dims[0],
                            p->depth_dims[1], p->block};
    return ot_product(dims, 5, out);
}

void ot_dg_pack(const ot_dg_packing *p, size_t size, const void *from, void *to)
{
    const char *in = from;
    char *out = to;
    for (int64_t g = 0; g < p->groups; g++)
        for (int64_t first = 0; first < p->maps; first += p->block)
            for (int64_t k = 0; k < p->depth_dims[0]; k++)
                for (int64_t m = 0; m < p->depth_dims[1]; m++) {
                    const int64_t at = k * p->depth_steps[0] + m * p->depth_steps[1];
                    for (uint32_t j = 0; j < p->block; j++, out += size) {
                        const int64_t map = g * p->maps + first + j;
                        if (first + j < p->maps)
                            memcpy(out, in + (size_t)(map * p->map_stride + at) * size, size);
                        else
                            memset(out, 0, size);
                    }
                }
}
