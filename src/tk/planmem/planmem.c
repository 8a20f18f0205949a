/* PlanMemory: one memory of a given size, shared as little as the size allows.
 *
 * Buffers are placed in the order of their first write, each at the highest level that has a
 * place for it (planmem_rules.c says what the levels are, planmem_place.c which place). A buffer
 * without a place rolls the plan back (planmem_rollback.c). The attempts, the first that places
 * all buffers wins:
 *
 *   floor     levels tried        orders: first write, then (restart) size x lifetime
 *   level 3   3                   largest first leaves holes that small buffers fill
 *   level 2   3, 2
 *   level 1   3, 2, 1
 *   level 0   3, 2, 1, 0          many rollbacks allowed
 *
 * The floor comes first since one buffer at level 0 makes pipes wait, however high all others
 * are. In the end everything is put as low as it goes, whatever it shares, in both orders; that
 * tells what capacity would be needed, or is a plan.
 *
 * Fixed offsets are in the outline from the start. Dead buffers hold nothing and get offset 0.
 */
#include "planmem_internal.h"

#define HIGH_ROLLBACKS 50 /* of an attempt with a floor above level 0 */

static bool new_state(pm_state *m, ot_arena *a)
{
    size_t slots = 1, n = (size_t)m->n + 1;
    for (uint32_t i = 0; i < m->n; i++)
        slots = m->buffers[i]->multi > slots ? m->buffers[i]->multi : slots;
    m->outline = OT_NEW_N(a, pm_slot, n * slots);
    m->apart = OT_NEW_N(a, pm_slot, n * slots);
    m->over = OT_NEW_N(a, pm_slot, n * slots);
    m->multi = OT_NEW_N(a, uint32_t, n);
    m->level = OT_NEW_N(a, ot_reuse_level, n);
    m->limit = OT_NEW_N(a, ot_reuse_level, n);
    m->upgraded_by = OT_NEW_N(a, uint32_t, n);
    m->failed = OT_NEW_N(a, pm_failed, PM_MAX_ROLLBACKS);
    return m->outline && m->apart && m->over && m->multi && m->level && m->limit &&
           m->upgraded_by && m->failed;
}

/* Nothing placed but what is fixed. */
static void clear(pm_state *m)
{
    m->n_outline = m->n_failed = m->rollbacks = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const ot_buffer *b = m->buffers[i];
        m->multi[i] = b->multi;
        m->limit[i] = OT_LEVEL_3;
        m->upgraded_by[i] = OT_NONE;
        for (uint32_t k = 0; k < b->multi && b->n_live; k++)
            if (b->fixed[k] >= 0) pm_insert(m, (pm_slot){b->fixed[k], b->fixed[k] + b->size, i, k});
    }
}

/* ---- orders ---- */

/* Buffers to be placed, in order of first write. */
static uint32_t order_by_write(const pm_state *m, uint32_t *order)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n; i++)
        if (m->buffers[i]->n_live && pm_is_free(m->buffers[i])) order[n++] = i;
    return n;
}

typedef struct sized {
    double area;
    uint32_t buffer;
} sized;

static int compare_sized(const void *pa, const void *pb)
{
    const sized *a = pa, *b = pb;
    if (a->area != b->area) return a->area > b->area ? -1 : 1;
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

/* The same buffers, largest size x lifetime first. */
static bool order_by_area(const pm_state *m, const uint32_t *order, uint32_t n, ot_arena *a,
                          uint32_t *out)
{
    sized *list = OT_NEW_N(a, sized, n);
    if (!list) return false;
    for (uint32_t i = 0; i < n; i++) {
        const ot_buffer *b = m->buffers[order[i]];
        double life = 0;
        for (uint32_t s = 0; s < b->n_live; s++)
            life += (double)(b->live[s].upper - b->live[s].lower);
        list[i] = (sized){(double)b->size * b->multi * life, order[i]};
    }
    qsort(list, n, sizeof *list, compare_sized);
    for (uint32_t i = 0; i < n; i++) out[i] = list[i].buffer;
    return true;
}

/* ---- attempts ---- */

/* The highest level from its limit down to the floor that has a place for b. */
static bool place_high(pm_state *m, uint32_t b)
{
    for (ot_reuse_level level = m->limit[b];; level--) {
        if (pm_place(m, b, level)) return true;
        if (level == m->floor) return false;
    }
}

static bool attempt(pm_state *m, const uint32_t *order, uint32_t n)
{
    clear(m);
    for (uint32_t i = 0; i < n;) {
        if (pm_is_spent(m)) return false;
        if (place_high(m, order[i])) {
            m->limit[order[i]] = OT_LEVEL_3;
            i++;
        } else if (!pm_roll_back(m, order, &i)) {
            return false;
        }
    }
    return true;
}

/* Both orders at each floor. Counts are those of the floor that ended it: what this plan took. */
static bool plan_levels(pm_state *m, const uint32_t *const orders[2], uint32_t n,
                        ot_scope_plan *stats)
{
    const int64_t most = m->max_work;
    for (m->floor = OT_LEVEL_3;; m->floor--) {
        m->max_work = m->is_shared_out ? most / (1 + m->floor) : most;
        m->max_rollbacks = m->floor == OT_LEVEL_0 ? PM_MAX_ROLLBACKS : HIGH_ROLLBACKS;
        stats->rollbacks = 0;
        for (uint32_t order = 0; order < 2; order++) {
            bool done = attempt(m, orders[order], n);
            stats->restarts = order;
            stats->rollbacks += m->rollbacks;
            if (done) return true;
        }
        if (m->floor == OT_LEVEL_0) return false;
    }
}

/* Everything as low as it goes; the height. */
static int64_t place_low(pm_state *m, const uint32_t *order, uint32_t n)
{
    int64_t capacity = m->capacity;
    m->capacity = INT64_MAX;
    m->lowest = true;
    clear(m);
    for (uint32_t i = 0; i < n; i++)
        if (!pm_place(m, order[i], OT_LEVEL_0)) OT_BUG("no place in unlimited memory");
    m->capacity = capacity;
    m->lowest = false;
    return pm_height(m);
}

static void read_out(const pm_state *m, int64_t (*offsets)[OT_TK_MULTI_MAX], uint32_t *multi)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const ot_buffer *b = m->buffers[i];
        multi[i] = m->multi[i];
        for (uint32_t k = 0; k < OT_TK_MULTI_MAX; k++)
            offsets[i][k] = k >= multi[i] ? -1 : k < b->multi ? ot_max(b->fixed[k], 0) : 0;
    }
    for (uint32_t i = 0; i < m->n_outline; i++)
        offsets[m->outline[i].buffer][m->outline[i].slot] = m->outline[i].offset;
}

ot_status ot_planmem(const ot_buffer *const *buffers, uint32_t n, const ot_kernel *k,
                     int64_t capacity, ot_arena *a, ot_diag *d, ot_scope_places *out)
{
    pm_state m = {.buffers = buffers,
                  .n = n,
                  .kernel = k,
                  .capacity = capacity > 0 ? capacity : INT64_MAX,
                  .max_work = out->work_limit > 0 ? out->work_limit : PM_MAX_WORK,
                  .is_shared_out = out->work_limit > 0};
    ot_scope_plan *stats = out->stats;
    uint32_t *by_write = OT_NEW_N(a, uint32_t, (size_t)n + 1),
             *by_area = OT_NEW_N(a, uint32_t, (size_t)n + 1);
    if (!by_write || !by_area || !new_state(&m, a)) return ot_fail_nomem(d);
    uint32_t n_order = order_by_write(&m, by_write);
    if (!order_by_area(&m, by_write, n_order, a, by_area)) return ot_fail_nomem(d);
    int64_t bound;
    OT_TRY(pm_lower_bound(buffers, n, a, d, &bound));
    stats->rollbacks = stats->restarts = 0;
    out->fits = bound <= m.capacity &&
                plan_levels(&m, (const uint32_t *const[2]){by_write, by_area}, n_order, stats);
    out->cut = m.was_cut;
    out->needed = out->fits ? pm_height(&m) : place_low(&m, by_area, n_order);
    if (!out->fits && out->needed > m.capacity) {
        int64_t other = place_low(&m, by_write, n_order);
        out->needed = ot_min(out->needed, other);
    }
    out->fits = out->needed <= m.capacity;
    read_out(&m, out->offsets, out->multi);
    pm_grade(buffers, n, k, out->offsets, out->multi, out->level, stats);
    stats->mode = OT_MEM_REUSE;
    stats->height = pm_height(&m);
    return OT_OK;
}
