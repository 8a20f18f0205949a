/* Sequential planning: nothing shares. The plan when all fits, and the measure of what reuse saves.
 *
 *   | A0 | A1 | B ... |// fixed F //| C |  slots follow each other, aligned; those with fixed
 *                                          offsets are gone around
 */
#include "planmem_internal.h"

/* The lowest aligned offset >= from where `size` bytes do not meet a fixed slot. */
static int64_t around_fixed(const ot_buffer *const *buffers, uint32_t n, int64_t from, int64_t size,
                            int64_t alignment)
{
    for (;;) {
        int64_t offset = ot_ceil_div(from, alignment) * alignment;
        from = offset;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = 0; k < buffers[i]->multi; k++) {
                int64_t lower = buffers[i]->fixed[k], upper = lower + buffers[i]->size;
                if (buffers[i]->n_live && lower >= 0 && lower < offset + size && upper > offset)
                    from = ot_max(from, upper);
            }
        if (from == offset) return offset;
    }
}

static bool any_fixed(const ot_buffer *const *buffers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < buffers[i]->multi; k++)
            if (buffers[i]->fixed[k] >= 0 && buffers[i]->n_live) return true;
    return false;
}

void pm_sequential(const ot_buffer *const *buffers, uint32_t n, int64_t (*offsets)[OT_TK_MULTI_MAX],
                   uint32_t *multi, int64_t *height)
{
    int64_t end = 0;
    /* usually there are none, and this is linear */
    uint32_t n_fixed = any_fixed(buffers, n) ? n : 0;
    *height = 0;
    for (uint32_t i = 0; i < n; i++) {
        const ot_buffer *b = buffers[i];
        multi[i] = b->multi;
        for (uint32_t k = 0; k < OT_TK_MULTI_MAX; k++) {
            offsets[i][k] = k >= b->multi ? -1 : b->fixed[k] >= 0 ? b->fixed[k] : 0;
            if (k >= b->multi || b->n_live == 0) continue;
            if (b->fixed[k] < 0) {
                offsets[i][k] = around_fixed(buffers, n_fixed, end, b->size, b->align);
                end = offsets[i][k] + b->size;
            }
            *height = ot_max(*height, offsets[i][k] + b->size);
        }
    }
}
