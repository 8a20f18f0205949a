/* What happens to a packing problem before any search: rules checked, empty items set aside,
 * independent parts found.
 *
 *   time -->  aaaa        dd   Items whose lifetimes are not connected share nothing: {a b c} and
 *                              {d e} are packed
 *               bbbb  |  eeee  apart, each from offset 0, and the height is that of the taller one.
 *             cccccc  |
 */
#include "pack_reduce.h"

#define OFFSET_MAX (INT64_MAX / 4) /* leaves room for sums of two */

static ot_status check_gaps(const ot_pack_item *x, uint32_t k, ot_diag *d)
{
    int64_t from = x->lower;
    for (uint32_t g = 0; g < x->n_gaps; g++) {
        if (x->gaps[g].lower < from || x->gaps[g].upper <= x->gaps[g].lower ||
            x->gaps[g].upper > x->upper)
            return ot_fail(
                d, OT_E_INPUT,
                "buffer %u: gap %u: gaps must be ascending, disjoint and inside the lifetime", k,
                g);
        from = x->gaps[g].upper;
    }
    return OT_OK;
}

ot_status pack_validate(const ot_pack_problem *p, ot_diag *d)
{
    int64_t sum = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_pack_item *x = &p->items[k];
        if (x->lower >= x->upper)
            return ot_fail(d, OT_E_INPUT, "buffer %u: its lifetime is empty", k);
        if (x->size < 0) return ot_fail(d, OT_E_INPUT, "buffer %u: its size is negative", k);
        if (x->alignment < 1)
            return ot_fail(d, OT_E_INPUT, "buffer %u: its alignment is below 1", k);
        if (x->fixed < -1 || x->hint < -1)
            return ot_fail(d, OT_E_INPUT, "buffer %u: a given offset is negative", k);
        if (x->fixed > 0 && x->fixed % x->alignment)
            return ot_fail(d, OT_E_INPUT, "buffer %u: its fixed offset is not aligned", k);
        if (x->fixed > OFFSET_MAX || x->hint > OFFSET_MAX || !ot_add_i64(sum, x->size, &sum) ||
            !ot_add_i64(sum, x->alignment, &sum) || sum > OFFSET_MAX)
            return ot_fail(d, OT_E_INPUT,
                           "buffer %u: sizes, alignments and offsets together are too large", k);
        OT_TRY(check_gaps(x, k, d));
    }
    for (uint32_t k = 0; k < p->n; k++) /* fixed offsets that meet make every packing wrong */
        for (uint32_t j = 0; p->items[k].fixed >= 0 && p->items[k].size > 0 && j < k; j++) {
            const ot_pack_item *x = &p->items[k], *y = &p->items[j];
            if (y->fixed >= 0 && y->size > 0 && x->fixed < y->fixed + y->size &&
                y->fixed < x->fixed + x->size && ot_pack_meet(x, y))
                return ot_fail(d, OT_E_INPUT, "buffers %u and %u: their fixed offsets overlap", j,
                               k);
        }
    return OT_OK;
}

bool pack_takes_part(const ot_pack_item *x)
{
    int64_t dead = 0;
    for (uint32_t g = 0; g < x->n_gaps; g++) dead += x->gaps[g].upper - x->gaps[g].lower;
    return x->size > 0 && dead < x->upper - x->lower;
}

typedef struct start {
    int64_t lower;
    uint32_t item;
} start;

static int compare_starts(const void *pa, const void *pb)
{
    const start *a = pa, *b = pb;
    if (a->lower != b->lower) return a->lower < b->lower ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* parts->items is one permutation of the items that take part, cut into parts. */
ot_status pack_split(const ot_pack_problem *p, ot_arena *a, pack_parts *out)
{
    start *order = OT_NEW_N(a, start, p->n + 1u);
    out->items = OT_NEW_N(a, ot_pack_item, p->n + 1u);
    out->source = OT_NEW_N(a, uint32_t, p->n + 1u);
    out->begin = OT_NEW_N(a, uint32_t, p->n + 2u);
    out->n = 0;
    if (!order || !out->items || !out->source || !out->begin) return OT_E_NOMEM;
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n; k++)
        if (pack_takes_part(&p->items[k])) order[n++] = (start){p->items[k].lower, k};
    qsort(order, n, sizeof *order, compare_starts);
    int64_t reach = 0;
    for (uint32_t k = 0; k < n; k++) {
        const ot_pack_item *x = &p->items[order[k].item];
        if (k == 0 || x->lower >= reach) {
            out->begin[out->n++] = k;
            reach = x->upper;
        }
        reach = ot_max(reach, x->upper);
        out->items[k] = *x;
        out->source[k] = order[k].item;
    }
    out->begin[out->n] = n;
    return OT_OK;
}

int64_t pack_unit(const ot_pack_problem *p)
{
    int64_t unit = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_pack_item *x = &p->items[k];
        unit = ot_gcd(x->size, unit);
        if (x->alignment > 1) unit = ot_gcd(x->alignment, unit);
        if (x->fixed > 0) unit = ot_gcd(x->fixed, unit);
    }
    return unit > 0 ? unit : 1;
}
