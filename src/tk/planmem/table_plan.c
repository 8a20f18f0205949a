/* Plans of a table of buffers (.csv): one memory, three ways to fill it, and the reason when it
 * is too small.
 *
 *   sequential  fixed ones, then one behind the other  nothing shares
 *   reuse       ot_pack_greedy                         the largest first, each at the lowest free
 *                                                      place
 *   search      ot_pack                                as low as the effort allows
 *
 * Too small: either no plan can exist, and a few buffers show it (one that is larger than the
 * memory, one that is fixed beyond its end, or those alive at one time), or none was found, and
 * the best height is told.
 */
#include "planmem.h"

#include <math.h>

#define SET_SHOWN 6 /* buffers of an explanation that are named */

typedef struct table {
    const ot_pack_file *f;
    const ot_pack_item *items; /* [n] */
    uint32_t n;
    const char *path;
    const ot_pack_options *o;
    ot_diag *d;
    ot_arena *a;
} table;

/* ---- fixed offsets that contradict each other ---- */

/* Can the fixed ones be together? Asked only when something went wrong: it is the file's fault
 * then. */
static ot_status check_fixed(const table *t)
{
    ot_pack_item *items = OT_NEW_N(t->a, ot_pack_item, t->n);
    int64_t *offsets = OT_NEW_N(t->a, int64_t, t->n);
    const char **names = OT_NEW_N(t->a, const char *, t->n);
    ot_diag local = {0};
    uint32_t n = 0;

    if (!items || !offsets || !names) return ot_fail_nomem(t->d);
    for (uint32_t k = 0; k < t->n; k++) {
        if (t->items[k].fixed < 0) continue;
        items[n] = t->items[k];
        offsets[n] = items[n].fixed;
        names[n++] = t->f->names[k];
    }
    ot_status s = ot_pack_check(&(ot_pack_problem){items, n}, offsets, 0, names, &local);
    return s == OT_OK ? OT_OK
                      : ot_fail(t->d, s, "%.300s: fixed offsets: %s", t->path, local.message);
}

/* ---- the ways ---- */

static void place_sequential(const table *t, int64_t *offsets)
{
    int64_t at = 0;
    for (uint32_t k = 0; k < t->n; k++)
        if (t->items[k].fixed >= 0) at = ot_max(at, t->items[k].fixed + t->items[k].size);
    for (uint32_t k = 0; k < t->n; k++) {
        const ot_pack_item *i = &t->items[k];
        offsets[k] = i->fixed >= 0 ? i->fixed : ot_ceil_div(at, i->alignment) * i->alignment;
        if (i->fixed < 0) at = offsets[k] + i->size;
    }
}

static int64_t height_of(const table *t, const int64_t *offsets)
{
    int64_t height = 0;
    for (uint32_t k = 0; k < t->n; k++) height = ot_max(height, offsets[k] + t->items[k].size);
    return height;
}

/* The packer names items by number; what it may find wrong with items that the reader let pass
 * is said by name here. */
static ot_status search(const table *t, int64_t *offsets, ot_pack_result *r)
{
    ot_diag local = {0};
    ot_pack_options o = *t->o;
    if (t->f->n_pairs > 0 && o.capacity == 0) o.time_limit /= 2; /* the rest is for the price */
    ot_status s = ot_pack(&t->f->problem, &o, &local, offsets, r);
    if (s == OT_E_INPUT) OT_TRY(check_fixed(t));
    return s == OT_OK ? OT_OK : ot_fail(t->d, s, "%.300s: %s", t->path, local.message);
}

static ot_status place(const table *t, ot_mem_mode mode, int64_t *offsets, ot_pack_result *r)
{
    if (mode == OT_MEM_SEARCH) return search(t, offsets, r);
    if (mode == OT_MEM_SEQUENTIAL) {
        place_sequential(t, offsets);
        r->height = height_of(t, offsets);
    } else if (ot_pack_greedy(&t->f->problem, NULL, offsets, &r->height) != OT_OK) {
        return ot_fail_nomem(t->d);
    }
    r->lower_bound = ot_pack_lower_bound(&t->f->problem);
    if (r->lower_bound < 0) return ot_fail_nomem(t->d); /* the reader lets no sum overflow */
    r->found = t->o->capacity == 0 || r->height <= t->o->capacity;
    r->proved = r->height == r->lower_bound;
    return OT_OK;
}

static ot_status validate(const table *t, const int64_t *offsets)
{
    ot_diag local = {0};
    ot_status s = ot_pack_check(&t->f->problem, offsets, t->o->capacity, t->f->names, &local);
    if (s == OT_OK || s == OT_E_NOMEM) return s == OT_OK ? OT_OK : ot_fail_nomem(t->d);
    OT_TRY(check_fixed(t));
    OT_BUG(local.message);
}

/* ---- why it does not fit ---- */

typedef struct event {
    int64_t time, change;
} event;

static int by_time(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->change < y->change ? -1 : x->change > y->change; /* ends first */
}

/* The time when most bytes are alive, and how many. */
static ot_status find_peak(const table *t, int64_t *time, int64_t *bytes)
{
    size_t n = 0, most = 0;
    for (uint32_t k = 0; k < t->n; k++) most += 2 + 2 * (size_t)t->items[k].n_gaps;
    event *e = OT_NEW_N(t->a, event, most);
    if (!e) return ot_fail_nomem(t->d);
    for (uint32_t k = 0; k < t->n; k++) {
        const ot_pack_item *i = &t->items[k];
        e[n++] = (event){i->lower, i->size};
        e[n++] = (event){i->upper, -i->size};
        for (uint32_t j = 0; j < i->n_gaps; j++) {
            e[n++] = (event){i->gaps[j].lower, -i->size};
            e[n++] = (event){i->gaps[j].upper, i->size};
        }
    }
    if (n > 0) qsort(e, n, sizeof *e, by_time);
    int64_t live = 0;
    *time = *bytes = 0;
    for (size_t k = 0; k < n; k++) {
        live += e[k].change;
        if (live <= *bytes) continue;
        *bytes = live;
        *time = e[k].time;
    }
    return OT_OK;
}

static bool is_alive(const ot_pack_item *i, int64_t time)
{
    if (time < i->lower || time >= i->upper) return false;
    for (uint32_t k = 0; k < i->n_gaps; k++)
        if (time >= i->gaps[k].lower && time < i->gaps[k].upper) return false;
    return true;
}

typedef struct member {
    int64_t size;
    uint32_t item;
} member;

static int by_size(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* The fewest buffers that are alive at `time` and too large together: the largest ones. */
static ot_status fail_peak(const table *t, int64_t time, int64_t bytes)
{
    member *set = OT_NEW_N(t->a, member, t->n);
    int64_t sum = 0;
    uint32_t n = 0, need = 0;
    char text[640] = "";

    if (!set) return ot_fail_nomem(t->d);
    for (uint32_t k = 0; k < t->n; k++)
        if (is_alive(&t->items[k], time)) set[n++] = (member){t->items[k].size, k};
    if (n > 1) qsort(set, n, sizeof *set, by_size);
    while (need < n && sum <= t->o->capacity) sum += set[need++].size;
    for (uint32_t k = 0; k < need && k < SET_SHOWN; k++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.60s (%lld)", k ? ", " : "",
                 t->f->names[set[k].item], (long long)set[k].size);
    }
    size_t used = strlen(text);
    if (need > SET_SHOWN)
        snprintf(text + used, sizeof text - used, " and %u more", need - SET_SHOWN);
    return ot_fail(
        t->d, OT_E_BUDGET,
        "%.200s: proved infeasible: at time %lld buffers of %lld bytes are alive, capacity %lld; "
        "the smallest set above it: %s",
        t->path, (long long)time, (long long)bytes, (long long)t->o->capacity, text);
}

/* A buffer that alone is too much. */
static ot_status check_single(const table *t)
{
    int64_t capacity = t->o->capacity;
    for (uint32_t k = 0; k < t->n; k++) {
        const ot_pack_item *i = &t->items[k];
        if (i->size > capacity)
            return ot_fail(t->d, OT_E_BUDGET,
                           "%.200s: proved infeasible: at time %lld buffer %.80s alone has %lld "
                           "bytes, capacity %lld",
                           t->path, (long long)i->lower, t->f->names[k], (long long)i->size,
                           (long long)capacity);
        if (i->fixed >= 0 && i->fixed + i->size > capacity)
            return ot_fail(t->d, OT_E_BUDGET,
                           "%.200s: proved infeasible: buffer %.80s is fixed at %lld and ends at "
                           "%lld, capacity %lld",
                           t->path, t->f->names[k], (long long)i->fixed,
                           (long long)(i->fixed + i->size), (long long)capacity);
    }
    return OT_OK;
}

/* Nothing was found. With gaps that keep a part of a buffer, which count as no gap, no proof
 * holds for the file as it is meant. */
static ot_status fail_fit(const table *t, ot_mem_mode mode, const ot_pack_result *r)
{
    int64_t time = 0, bytes = 0;
    long long capacity = t->o->capacity, height = r->height, bound = r->lower_bound;
    char limit[64];

    OT_TRY(check_fixed(t));
    OT_TRY(check_single(t));
    OT_TRY(find_peak(t, &time, &bytes));
    bool exact = t->f->n_windows == 0;
    if (exact && bytes > capacity) return fail_peak(t, time, bytes);
    if (exact && mode == OT_MEM_SEARCH && r->proved)
        return ot_fail(t->d, OT_E_BUDGET,
                       "%.200s: proved infeasible: no plan fits capacity %lld (lower bound %lld, "
                       "%lld search steps)",
                       t->path, capacity, bound, (long long)r->steps);
    if (mode != OT_MEM_SEARCH)
        return ot_fail(t->d, OT_E_BUDGET,
                       "%.200s: mode %s needs %lld bytes, capacity %lld (lower bound %lld): --mode "
                       "search may do",
                       t->path, ot_mem_mode_name(mode), height, capacity, bound);
    if (r->timed_out)
        snprintf(limit, sizeof limit, "the time limit of %g s", t->o->time_limit);
    else
        snprintf(limit, sizeof limit, "%lld search steps", (long long)r->steps);
    return ot_fail(t->d, OT_E_BUDGET,
                   "%.200s: no plan within capacity %lld was found in %s%s: the best has %lld "
                   "bytes, lower bound %lld",
                   t->path, capacity, limit, exact ? "" : ", gaps that keep a part counted as none",
                   height, bound);
}

/* ---- what reuse costs ---- */

/* Of a plan that fits: the cheapest that is no taller than the capacity, or without one than the
 * plan. A search makes it cheaper, other modes only say what they pay. */
static ot_status price(const table *t, ot_mem_mode mode, const ot_pack_result *r, double start,
                       ot_table_layout *out)
{
    const ot_pack_file *f = t->f;
    ot_scope_plan *plan = &out->memory;
    ot_pack_options o = *t->o;
    ot_pack_price paid = {.sum = ot_pack_price_of(&f->problem, f->pairs, f->n_pairs, out->offsets)};
    o.capacity = o.capacity > 0 ? o.capacity : r->height;
    if (o.time_limit > 0) o.time_limit = fmax(0.001, start + o.time_limit - ot_now());
    if (mode == OT_MEM_SEARCH && o.capacity > 0 &&
        ot_pack_price_reuse(&f->problem, f->pairs, f->n_pairs, &o, out->offsets, &paid) != OT_OK)
        return ot_fail_nomem(t->d);
    plan->priced = true;
    plan->reuse_cost = paid.sum;
    plan->reuse_cost_bound = paid.lower_bound;
    plan->reuse_cost_proved = paid.sum <= paid.lower_bound;
    plan->height = height_of(t, out->offsets);
    plan->timed_out |= paid.timed_out;
    out->steps += paid.steps;
    return OT_OK;
}

/* ---- all of it ---- */

static ot_status plan_table(const table *t, ot_mem_mode mode, ot_table_layout *out)
{
    ot_pack_result r = {0};
    ot_scope_plan *plan = &out->memory;

    const double start = ot_now();
    OT_TRY(place(t, mode, out->offsets, &r));
    if (!r.found) return fail_fit(t, mode, &r);
    *plan = (ot_scope_plan){.capacity = t->o->capacity,
                            .height = r.height,
                            .lower_bound = r.lower_bound,
                            .mode = mode,
                            .level = OT_LEVEL_NONE,
                            .n_buffers = t->n,
                            .proved = r.proved && t->f->n_windows == 0,
                            .timed_out = r.timed_out};
    for (uint32_t k = 0; k < t->n; k++) plan->sum += t->items[k].size;
    out->steps = r.steps;
    if (t->f->n_pairs > 0) OT_TRY(price(t, mode, &r, start, out));
    return validate(t, out->offsets);
}

ot_status ot_pack_table(const ot_pack_file *f, const char *path, ot_mem_mode mode,
                        const ot_pack_options *o, ot_diag *d, ot_table_layout *out)
{
    table t = {f, f->problem.items, f->problem.n, path, o, d, ot_arena_new()};
    if (!t.a) return ot_fail_nomem(d);
    ot_status s = plan_table(&t, mode == OT_MEM_AUTO ? OT_MEM_SEARCH : mode, out);
    ot_arena_free(t.a);
    return s;
}
