/* What items pay at least because they do not fit beside one another.
 *
 *   capacity +-------------+     items of S bytes in all cover each byte S / capacity times, so
 *            |  a  |   b   |     that many pairs share it, at least: all bytes together A pairs.
 *            |  c      | d |     One pair shares no more bytes than its smaller item has; pairs at
 *   0        +-------------+     no price come first, then the cheapest a byte.
 *
 * Depths that differ share more, for the pairs of a byte grow with the square of its depth. */
#include "price.h"

#define EDGES_MAX 1000000 /* of larger graphs a list of pairs takes too much */

typedef struct shared {
    int64_t bytes, weight;
} shared;

/* The cheapest a byte first; products fit (checked). */
static int by_price(const void *pa, const void *pb)
{
    const shared *a = pa, *b = pb;
    const int64_t x = a->weight * b->bytes, y = b->weight * a->bytes;
    return x < y ? -1 : x > y;
}

static int by_size(const void *pa, const void *pb)
{
    const int64_t *a = pa, *b = pb;
    return *a > *b ? -1 : *a < *b;
}

/* Pairs that share a byte, summed over all bytes, at least; -1: the numbers are too large. */
static int64_t least_shared(const price_part *p)
{
    int64_t total = 0, low, high;
    for (uint32_t k = 0; k < p->n; k++)
        if (!ot_add_i64(total, p->size[k], &total)) return -1;
    const int64_t depth = total / p->capacity, more = total % p->capacity;
    if (depth > UINT32_MAX || !ot_mul_i64(p->capacity - more, depth * (depth - 1) / 2, &low) ||
        !ot_mul_i64(more, (depth + 1) * depth / 2, &high) || !ot_add_i64(low, high, &low))
        return -1;
    return low;
}

/* Bytes that pairs without an edge may share; sizes: scratch [n]. -1: the numbers are too large. */
static int64_t free_bytes(const price_part *p, int64_t *sizes)
{
    int64_t sum = 0, one;
    memcpy(sizes, p->size, p->n * sizeof *sizes);
    if (p->n > 1) qsort(sizes, p->n, sizeof *sizes, by_size);
    for (uint32_t k = 0; k < p->n; k++) /* with each larger one it shares all of itself */
        if (!ot_mul_i64(sizes[k], k, &one) || !ot_add_i64(sum, one, &sum)) return -1;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = p->begin[i]; k < p->begin[i + 1]; k++)
            if (p->edges[k].item > i) sum -= ot_min(p->size[i], p->size[p->edges[k].item]);
    return sum;
}

ot_status price_find_bound(price_part *p, ot_arena *a)
{
    int64_t left = p->capacity > 0 ? least_shared(p) : -1, paid = 0, largest = 0, heaviest = 0;
    if (left <= 0 || p->begin[p->n] > EDGES_MAX) return OT_OK;
    int64_t *sizes = OT_NEW_N(a, int64_t, p->n);
    shared *pairs = OT_NEW_N(a, shared, p->begin[p->n] + 1u);
    size_t n = 0;
    if (!sizes || !pairs) return OT_E_NOMEM;
    const int64_t spared = free_bytes(p, sizes);
    if (spared < 0 || spared >= left) return OT_OK;
    left -= spared;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = p->begin[i]; k < p->begin[i + 1]; k++) {
            const price_edge *e = &p->edges[k];
            if (e->hard || e->item < i) continue;
            pairs[n++] = (shared){ot_min(p->size[i], p->size[e->item]), e->weight};
            largest = ot_max(largest, pairs[n - 1].bytes);
            heaviest = ot_max(heaviest, e->weight);
        }
    if (!ot_mul_i64(largest, heaviest, &(int64_t){0})) return OT_OK;
    if (n > 1) qsort(pairs, n, sizeof *pairs, by_price);
    for (size_t k = 0; k < n && left > 0; k++) {
        const int64_t bytes = ot_min(left, pairs[k].bytes);
        paid += (pairs[k].weight * bytes + pairs[k].bytes - 1) / pairs[k].bytes;
        left -= bytes;
    }
    if (left <= 0) p->bound = ot_max(p->bound, paid);
    return OT_OK;
}
