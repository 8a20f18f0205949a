/* Which items are alive together with a given one, without looking at all of them.
 *
 *   time ---->  0   1   2   3 4   5        Items ascend by start. Those that overlap [f, l) start inside it: a range of positions;
 *       a       |===============|          or they start before f and end after it. For these there are marks: moments at which the
 *       b           |===|                  living are written down. From the last mark before f on, the list of the mark and the
 *       c               |=======|          starts since then hold all of them.
 *       d                 |=======|
 *               ^       ^ mark {a}         A new mark is set when the starts since the last one are a quarter of the living, so marks
 *                                          take O(n) memory, and a query takes about as many steps as it has answers.
 */
#include "improve.h"

#define MARK_STEP_MIN 16

typedef struct start {
    int64_t time;
    uint32_t item;
} start;

static int compare_starts(const void *pa, const void *pb)
{
    const start *a = pa, *b = pb;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* The different times of v, ascending, in place. */
static uint32_t different(start *v, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n; k++)
        if (kept == 0 || v[kept - 1].time != v[k].time) v[kept++] = v[k];
    return kept;
}

/* How many moments come before the time. */
static uint32_t moments_before(const start *moments, uint32_t n, int64_t time)
{
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (moments[mid].time < time)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* life, item, at, begin. */
static ot_status number_items(pack_index *x, ot_arena *a)
{
    const ot_pack_problem *p = x->p;
    start *order = OT_NEW_N(a, start, p->n + 1u), *moments = OT_NEW_N(a, start, p->n + 1u);
    if (!order || !moments) return OT_E_NOMEM;
    for (uint32_t k = 0; k < p->n; k++) {
        order[k] = (start){p->items[k].lower, k};
        x->gaps |= p->items[k].n_gaps > 0;
    }
    if (p->n > 1) qsort(order, p->n, sizeof *order, compare_starts);
    if (p->n > 0) memcpy(moments, order, p->n * sizeof *order);
    x->n_moments = different(moments, p->n);
    x->begin = OT_NEW_N(a, uint32_t, x->n_moments + 1u);
    if (!x->begin) return OT_E_NOMEM;
    for (uint32_t k = 0, t = 0; k < p->n; k++) {
        const ot_pack_item *it = &p->items[order[k].item];
        if (k > 0 && order[k].time != order[k - 1].time) x->begin[++t] = k;
        x->life[k] = (pack_life){t, moments_before(moments, x->n_moments, it->upper)};
        x->item[k] = order[k].item;
        x->at[order[k].item] = k;
    }
    x->begin[x->n_moments] = p->n;
    return OT_OK;
}

/* mark, mark_list, alive, mark_of. */
static ot_status set_marks(pack_index *x, ot_arena *a)
{
    size_t n_alive = 0, cap_alive = 0, cap_mark = 0, cap_list = 0, n_mark = 0, n_list = 0;
    uint32_t n_live = 0, since = 0, step = MARK_STEP_MIN;
    uint32_t *live = OT_NEW_N(a, uint32_t, x->n + 1u);
    x->mark_of = OT_NEW_N(a, uint32_t, x->n_moments + 1u);
    if (!live || !x->mark_of) return OT_E_NOMEM;
    for (uint32_t t = 0; t < x->n_moments; t++) {
        if (t == 0 || since >= step) {
            uint32_t kept = 0;
            for (uint32_t k = 0; k < n_live; k++)
                if (x->life[live[k]].last > t) live[kept++] = live[k];
            n_live = kept;
            if (!OT_PUSH(a, x->mark, n_mark, cap_mark, t)) return OT_E_NOMEM;
            if (!OT_PUSH(a, x->mark_list, n_list, cap_list, (uint32_t)n_alive)) return OT_E_NOMEM;
            for (uint32_t k = 0; k < n_live; k++)
                if (!OT_PUSH(a, x->alive, n_alive, cap_alive, live[k])) return OT_E_NOMEM;
            if (n_alive > UINT32_MAX / 2) return OT_E_NOMEM;
            step = n_live / 4 > MARK_STEP_MIN ? n_live / 4 : MARK_STEP_MIN;
            since = 0;
        }
        x->mark_of[t] = (uint32_t)n_mark - 1;
        for (uint32_t k = x->begin[t]; k < x->begin[t + 1]; k++) live[n_live++] = k;
        since += x->begin[t + 1] - x->begin[t];
    }
    if (!OT_PUSH(a, x->mark_list, n_list, cap_list, (uint32_t)n_alive)) return OT_E_NOMEM;
    x->n_marks = (uint32_t)n_mark;
    return OT_OK;
}

ot_status pack_index_new(const ot_pack_problem *p, ot_arena *a, pack_index *out)
{
    *out = (pack_index){.p = p, .n = p->n};
    out->life = OT_NEW_N(a, pack_life, p->n + 1u);
    out->item = OT_NEW_N(a, uint32_t, p->n + 1u);
    out->at = OT_NEW_N(a, uint32_t, p->n + 1u);
    if (!out->life || !out->item || !out->at) return OT_E_NOMEM;
    OT_TRY(number_items(out, a));
    return set_marks(out, a);
}

uint32_t pack_index_neighbours(const pack_index *x, uint32_t at, uint32_t *out)
{
    pack_life me = x->life[at];
    uint32_t mark = x->mark_of[me.first], n = 0;
    for (uint32_t k = x->mark_list[mark]; k < x->mark_list[mark + 1]; k++)
        if (x->life[x->alive[k]].last > me.first) out[n++] = x->alive[k];
    for (uint32_t k = x->begin[x->mark[mark]]; k < x->begin[me.first]; k++)
        if (x->life[k].last > me.first) out[n++] = k;
    for (uint32_t k = x->begin[me.first]; k < x->begin[me.last]; k++)
        if (k != at) out[n++] = k;
    if (!x->gaps) return n;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n; k++)
        if (ot_pack_meet(&x->p->items[x->item[at]], &x->p->items[x->item[out[k]]])) out[kept++] = out[k];
    return kept;
}
