/* The best plan of regions that exist: when estimates were wrong, and a limit was missed, there
 * are regions of several plans, each with exact figures, and no plan needs to be one of those.
 *
 *   plan 1  [ a ][   b   ]     [ c ]  too slow          a  peak 3, loses 2  cheapest way under peak
 *                                                                           P:
 *   plan 2  [ a ]        [ d ]        fast, but peak 9  b  peak 2, loses 5  shortest path over
 *                                                                           positions, where a node
 *   plan 3        [  e  ]      [ c ]  ...               ...                 whose bytes are above P
 *                                                                           must be in a region
 *
 * The lowest P whose way is allowed is found by halving, over all bytes that a peak can be:
 * positions x log of their number.
 */
#include "search.h"

#include <float.h>

typedef struct ways {
    const ot_seq *s;
    const ot_plan_options *o;
    const ot_region_pool *pool;
    int64_t *peak; /* [pool->n] of a region's interval, with what runs untiled in it */
    double *time;  /* [pool->n] likewise */
    /* [s->n + 1] regions by the position after their last node, OT_NONE ends the list */
    uint32_t *head;
    uint32_t *next; /* [pool->n] */
    double *best;   /* [s->n + 1] least time of the positions before */
    uint32_t *from; /* [s->n + 1] region that ends there, or OT_NONE: the node before is whole */
} ways;

static ot_status nomem(const ways *x) { return ot_fail_nomem(x->s->g->model->diag); }

/* Most bytes while the region or an untiled node of its interval runs: there its tiles' values
 * are not. change: zero, [s->n + 2]. */
static int64_t interval_peak(const ways *x, const ot_region *r, int64_t *change, bool *inside)
{
    const ot_seq *s = x->s;
    int64_t most = r->peak, absent = 0;
    for (uint32_t i = 0; i < r->n_nodes; i++) inside[s->pos[r->nodes[i].node]] = true;
    for (uint32_t v = r->n_inputs; v < r->n_values; v++) {
        ot_id id = r->values[v].value;
        if (r->values[v].is_output || s->last[id] == OT_NONE) continue;
        change[s->def[id]] += s->held[id];
        change[ot_min(s->last[id], r->last) + 1] -= s->held[id];
    }
    for (uint32_t p = r->first; p <= r->last; p++) {
        absent += change[p];
        if (!inside[p]) most = ot_max(most, s->live[p] - absent);
        change[p] = 0;
        inside[p] = false;
    }
    change[r->last + 1] = 0;
    return most;
}

static ot_status prepare(ways *x)
{
    const ot_seq *s = x->s;
    ot_arena *a = s->arena;
    int64_t *change = OT_NEW_N(a, int64_t, s->n + 2u);
    bool *inside = OT_NEW_N(a, bool, s->n + 1u);
    x->peak = OT_NEW_N(a, int64_t, x->pool->n + 1u);
    x->time = OT_NEW_N(a, double, x->pool->n + 1u);
    x->head = OT_NEW_N(a, uint32_t, s->n + 1u);
    x->next = OT_NEW_N(a, uint32_t, x->pool->n + 1u);
    x->best = OT_NEW_N(a, double, s->n + 1u);
    x->from = OT_NEW_N(a, uint32_t, s->n + 1u);
    if (!change || !inside || !x->peak || !x->time || !x->head || !x->next || !x->best || !x->from)
        return nomem(x);
    for (uint32_t p = 0; p <= s->n; p++) x->head[p] = OT_NONE;
    for (uint32_t k = x->pool->n; k-- > 0;) {
        const ot_region *r = &x->pool->all[k];
        x->peak[k] = interval_peak(x, r, change, inside);
        x->time[k] = s->time[r->last + 1] - s->time[r->first] - r->benefit;
        x->next[k] = x->head[r->last + 1];
        x->head[r->last + 1] = k;
    }
    return OT_OK;
}

/* Least seconds of a plan whose peak is at most `most`; DBL_MAX: there is none. */
static double fastest(ways *x, int64_t most)
{
    const ot_seq *s = x->s;
    x->best[0] = 0;
    for (uint32_t p = 1; p <= s->n; p++) {
        bool whole = x->best[p - 1] < DBL_MAX && s->live[p - 1] <= most;
        x->best[p] = whole ? x->best[p - 1] + s->time[p] - s->time[p - 1] : DBL_MAX;
        x->from[p] = OT_NONE;
        for (uint32_t k = x->head[p]; k != OT_NONE; k = x->next[k]) {
            double before = x->best[x->pool->all[k].first];
            if (x->peak[k] > most || before == DBL_MAX || before + x->time[k] >= x->best[p])
                continue;
            x->best[p] = before + x->time[k];
            x->from[p] = k;
        }
    }
    return x->best[s->n];
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Lowest peak whose fastest plan takes no longer than `allowed`. With all bytes allowed, the
 * untiled model is such a plan. */
static ot_status lowest_peak(ways *x, double allowed, int64_t *out)
{
    const ot_seq *s = x->s;
    uint32_t n = 0;
    int64_t *sizes = OT_NEW_N(s->arena, int64_t, (size_t)s->n + x->pool->n + 1u);
    if (!sizes) return nomem(x);
    for (uint32_t p = 0; p < s->n; p++) sizes[n++] = s->live[p];
    for (uint32_t k = 0; k < x->pool->n; k++) sizes[n++] = x->peak[k];
    *out = 0;
    if (n == 0) return OT_OK;
    qsort(sizes, n, sizeof *sizes, by_size);
    uint32_t low = 0, high = n - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        double time = fastest(x, sizes[middle]);
        if (time < DBL_MAX && time <= allowed)
            high = middle;
        else
            low = middle + 1;
    }
    *out = sizes[high];
    return OT_OK;
}

ot_status ot_recombine(const ot_seq *s, const ot_plan_options *o, const ot_region_pool *pool,
                       ot_region *out, uint32_t *n)
{
    ways x = {.s = s, .o = o, .pool = pool};
    int64_t most = 0;
    *n = 0;
    OT_TRY(prepare(&x));
    if (o->goal == OT_GOAL_TIME && o->memory_budget == 0 && o->force_form == OT_FORM_NONE)
        most = INT64_MAX;
    else
        OT_TRY(lowest_peak(&x, ot_time_allowed(s, o) * (1 + OT_TIME_ABOUT), &most));
    if (o->goal == OT_GOAL_TIME) most = ot_max(most, o->memory_budget);
    fastest(&x, most);
    for (uint32_t p = s->n; p > 0;) {
        uint32_t k = x.from[p];
        if (k != OT_NONE) out[(*n)++] = pool->all[k];
        p = k == OT_NONE ? p - 1 : pool->all[k].first;
    }
    for (uint32_t k = 0; k < *n / 2; k++) {
        ot_region last = out[*n - 1 - k];
        out[*n - 1 - k] = out[k];
        out[k] = last;
    }
    for (uint32_t k = 0; k < *n; k++) out[k].id = o->search.first_region + k;
    return OT_OK;
}
