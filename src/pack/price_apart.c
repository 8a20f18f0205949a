/* A packing in which no pair of a part shares bytes, if a simple order gives one: each item at the
 * lowest place where none of its neighbours lies, the largest first, or as the rows are. */
#include "improve.h"
#include "price.h"

#define ITEMS_MAX 2048 /* every look is at all neighbours */

typedef struct sized {
    int64_t size;
    uint32_t item;
} sized;

static int compare_sized(const void *pa, const void *pb)
{
    const sized *a = pa, *b = pb;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* Lowest offset for item i; in [at, the end of what is met there) it would meet that, too. */
static int64_t lowest(const price_part *p, const int64_t *offset, uint32_t i)
{
    int64_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t k = p->begin[i]; k < p->begin[i + 1]; k++) {
            const uint32_t j = p->edges[k].item;
            if (offset[j] < 0 || at >= offset[j] + p->size[j] || offset[j] >= at + p->size[i])
                continue;
            at = pack_align_up(offset[j] + p->size[j], p->alignment[i]);
            moved = true;
        }
    }
    return at;
}

static bool place_all(const price_part *p, const sized *order, int64_t *offset)
{
    for (uint32_t k = 0; k < p->n; k++) offset[k] = p->fixed[k] ? p->offset[k] : -1;
    for (uint32_t k = 0; k < p->n; k++) {
        const uint32_t i = order[k].item;
        if (p->fixed[i]) continue;
        offset[i] = lowest(p, offset, i);
        if (offset[i] + p->size[i] > p->capacity) return false;
    }
    return true;
}

ot_status price_apart(price_part *p, ot_arena *a)
{
    if (p->n > ITEMS_MAX || p->sum <= p->bound) return OT_OK;
    sized *order = OT_NEW_N(a, sized, p->n);
    int64_t *offset = OT_NEW_N(a, int64_t, p->n);
    if (!order || !offset) return OT_E_NOMEM;
    for (uint32_t k = 0; k < p->n; k++) order[k].item = k;
    bool fits = place_all(p, order, offset);
    if (!fits) {
        for (uint32_t k = 0; k < p->n; k++) order[k].size = p->size[k];
        qsort(order, p->n, sizeof *order, compare_sized);
        fits = place_all(p, order, offset);
    }
    if (!fits) return OT_OK;
    memcpy(p->offset, offset, p->n * sizeof *offset);
    p->sum = 0;
    return OT_OK;
}
