/* PlanMemory, the rules: which buffers may share memory at which level, and which level a
 * finished plan needed.
 *
 * Pipes run side by side and wait for each other only where data or memory makes them. Sharing
 * memory is such a place:
 *
 *   level 3   only buffers that one pipe touches, the same one, and no DMA: a pipe does one thing
 *             after the other anyway
 *   level 2   others too, unless both are used in one loop, where they would wait in every
 *             iteration; in different loops, or outside of all, they wait once
 *   level 1   also those of one loop, but not so that a multi-buffer loses its turn:
 *
 *     iteration   0   1   2   3   C with one slot over A0: the load of A0 in iteration 2
 *     A (load)    A0  A1  A0  A1  waits for C of iteration 1, and C of iteration 1 for A1...
 *     C (vector)  C0  C1  C0  C1  With a slot over each of A's, load and compute go on side by
 *                 side.
 *
 *   level 0   any two that are never alive together
 *
 * So at level 1 two buffers that take turns in one loop share slot by slot, with as many slots
 * each. A buffer of an inner loop passes through all its turns while one slot of the outer
 * loop's buffer lasts: they do not share at level 1. A buffer of an outer or of another loop is
 * done when the turns start: no rule.
 */
#include "planmem_internal.h"

bool pm_meet(const ot_buffer *a, const ot_buffer *b)
{
    for (uint32_t i = 0, j = 0; i < a->n_live && j < b->n_live;) {
        if (a->live[i].upper <= b->live[j].lower)
            i++;
        else if (b->live[j].upper <= a->live[i].lower)
            j++;
        else
            return true;
    }
    return false;
}

bool pm_cross_pipe(const ot_buffer *a, const ot_buffer *b)
{
    uint32_t pipes = a->pipes | b->pipes;
    return (pipes & (pipes - 1)) != 0;
}

bool pm_same_pipe(const ot_buffer *a, const ot_buffer *b)
{
    return !a->dma && !b->dma && !pm_cross_pipe(a, b);
}

bool pm_loop_inside(const ot_kernel *k, uint32_t loop, uint32_t outer)
{
    for (; loop != OT_NONE; loop = k->stmts[loop].parent)
        if (loop == outer) return true;
    return false;
}

/* Does a, which takes turns in a loop, keep its turn when b lies over it? */
static bool keeps_turn(const ot_kernel *k, pm_turn a, pm_turn b)
{
    const uint32_t loop = a.of->loop;
    if (a.multi == 1 || loop == OT_NONE || !pm_loop_inside(k, b.of->loop, loop)) return true;
    return loop == b.of->loop && a.multi == b.multi && a.slot == b.slot;
}

bool pm_may_share(const ot_kernel *k, pm_turn a, pm_turn b, ot_reuse_level level)
{
    if (level == OT_LEVEL_0 || pm_same_pipe(a.of, b.of)) return true;
    if (level >= OT_LEVEL_3) return false;
    if (level == OT_LEVEL_2 && a.of->loop != OT_NONE && a.of->loop == b.of->loop) return false;
    return keeps_turn(k, a, b) && keeps_turn(k, b, a);
}

/* ---- grading ---- */

/* The highest level that allows how i and j share; LEVEL_NONE when they do not. */
static ot_reuse_level pair_level(const ot_buffer *const *buffers, uint32_t i, uint32_t j,
                                 const ot_kernel *k, int64_t (*offsets)[OT_TK_MULTI_MAX],
                                 const uint32_t *multi)
{
    const ot_buffer *a = buffers[i], *b = buffers[j];
    ot_reuse_level level = OT_LEVEL_NONE;
    for (uint32_t ka = 0; ka < multi[i]; ka++)
        for (uint32_t kb = 0; kb < multi[j]; kb++) {
            if (offsets[i][ka] >= offsets[j][kb] + b->size ||
                offsets[j][kb] >= offsets[i][ka] + a->size)
                continue;
            ot_reuse_level at = OT_LEVEL_3;
            const pm_turn x = {a, multi[i], ka}, y = {b, multi[j], kb};
            while (at > OT_LEVEL_0 && !pm_may_share(k, x, y, at)) at--;
            if (at < level) level = at;
        }
    return level;
}

void pm_grade(const ot_buffer *const *buffers, uint32_t n, const ot_kernel *k,
              int64_t (*offsets)[OT_TK_MULTI_MAX], const uint32_t *multi, ot_reuse_level *level,
              ot_scope_plan *stats)
{
    stats->n_upgraded = stats->n_cross_pipe = 0;
    stats->level = OT_LEVEL_NONE;
    for (uint32_t i = 0; i < n; i++) {
        bool upgraded = multi[i] > buffers[i]->multi;
        level[i] = upgraded ? OT_LEVEL_1 : OT_LEVEL_NONE;
        stats->n_upgraded += upgraded;
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = i + 1; j < n && buffers[i]->n_live; j++) {
            if (buffers[j]->n_live == 0) continue;
            ot_reuse_level at = pair_level(buffers, i, j, k, offsets, multi);
            if (at == OT_LEVEL_NONE) continue;
            if (at < level[i]) level[i] = at;
            if (at < level[j]) level[j] = at;
            stats->n_cross_pipe += pm_cross_pipe(buffers[i], buffers[j]);
        }
        if (level[i] < stats->level) stats->level = level[i];
    }
}
