/* The pattern of a run: each buffer goes, when it is made, into the gap between live ones that
 * it fills best, else on top. The block that holds them all is what later runs take at once.
 * (ONNX Runtime, MemPatternPlanner.)
 *
 *   live    |aaaa|    |bb|        |cc|          height
 *   new          |dd|      not here: the gap behind b is wider
 */
#include "chunk_arena.h"

bool ot_pattern_take(ot_pattern *p, ot_arena *a, uint32_t buffer, int64_t bytes)
{
    int64_t end = 0, least = INT64_MAX, lo = -1;
    size_t at = p->n;
    for (size_t k = 0; k <= p->n; k++) {
        int64_t gap = (k < p->n ? p->live[k].lo : p->height) - end;
        if (gap >= bytes && gap - bytes < least) {
            least = gap - bytes;
            lo = end;
            at = k;
        }
        if (k < p->n) end = p->live[k].hi;
    }
    if (lo < 0) lo = end;
    if (!OT_PUSH(a, p->live, p->n, p->cap, ((ot_pattern_block){buffer, lo, lo + bytes})))
        return false;
    for (size_t k = p->n - 1; k > at; k--) p->live[k] = p->live[k - 1];
    p->live[at] = (ot_pattern_block){buffer, lo, lo + bytes};
    p->height = ot_max(p->height, lo + bytes);
    return true;
}

void ot_pattern_release(ot_pattern *p, uint32_t buffer)
{
    size_t k = 0;
    while (k < p->n && p->live[k].buffer != buffer) k++;
    if (k == p->n) return;
    p->n--;
    for (; k < p->n; k++) p->live[k] = p->live[k + 1];
}
