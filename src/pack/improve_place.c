/* One item among the blocks of bytes that its neighbours take.
 *
 *   bytes  |####      ######   ##              |     first fit: the first hole that is large enough
 *           blocks may overlap: they are              best fit: the smallest such hole, else above
 *                                                     everything
 *           alive with the item, not with each other
 */
#include "improve.h"

#define INSERTION_MAX 48

static void insertion_sort(pack_block *b, uint32_t n)
{
    for (uint32_t k = 1; k < n; k++) {
        pack_block x = b[k];
        uint32_t at = k;
        for (; at > 0 && b[at - 1].lower > x.lower; at--) b[at] = b[at - 1];
        b[at] = x;
    }
}

/* Byte by byte of `lower`, where they differ; stable. */
void pack_blocks_sort(pack_block *b, uint32_t n, pack_block *spare)
{
    uint64_t differ = 0;
    pack_block *from = b, *to = spare;
    if (n <= INSERTION_MAX) {
        insertion_sort(b, n);
        return;
    }
    for (uint32_t k = 1; k < n; k++) differ |= (uint64_t)(b[k].lower ^ b[0].lower);
    while (differ) {
        uint32_t shift = (uint32_t)__builtin_ctzll(differ), count[256] = {0};
        for (uint32_t k = 0; k < n; k++) count[((uint64_t)from[k].lower >> shift) & 255]++;
        for (uint32_t d = 0, sum = 0; d < 256; d++) {
            uint32_t c = count[d];
            count[d] = sum;
            sum += c;
        }
        for (uint32_t k = 0; k < n; k++)
            to[count[((uint64_t)from[k].lower >> shift) & 255]++] = from[k];
        pack_block *swap = from;
        from = to;
        to = swap;
        differ = shift < 56 ? differ >> (shift + 8) << (shift + 8) : 0;
    }
    if (from != b) memcpy(b, from, n * sizeof *b);
}

static bool overlap(const pack_block *b, pack_life life)
{
    return (b->life.first < life.last) & (life.first < b->life.last);
}

static bool is_free(const pack_block *b, size_t n, pack_life life, int64_t offset, int64_t size)
{
    for (size_t k = 0; k < n && b[k].lower < offset + size; k++)
        if (b[k].upper > offset && overlap(&b[k], life)) return false;
    return true;
}

int64_t pack_blocks_place(const pack_block *b, size_t n, pack_life life, const ot_pack_item *x,
                          pack_fit fit)
{
    int64_t top = 0, best = -1, best_gap = INT64_MAX;
    if (x->hint >= 0 && x->hint % x->alignment == 0 && is_free(b, n, life, x->hint, x->size))
        return x->hint;
    for (size_t k = 0; k < n; k++) { /* only what can be foreseen is a branch */
        bool meets = overlap(&b[k], life);
        int64_t upper = meets ? b[k].upper : 0;
        if (meets & (b[k].lower - top >= x->size)) {
            int64_t at = pack_align_up(top, x->alignment), gap = b[k].lower - at;
            if (gap >= x->size && fit == PACK_FIRST_FIT) return at;
            if (gap >= x->size && gap < best_gap) {
                best = at;
                best_gap = gap;
            }
        }
        top = ot_max(top, upper);
    }
    return best >= 0 ? best : pack_align_up(top, x->alignment);
}
