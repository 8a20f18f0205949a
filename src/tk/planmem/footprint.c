/* Footprints of planned scopes: a sweep over the statements, with the slots that are alive in
 * order of their offsets. */
#include "footprint.h"
#include "planmem_internal.h"

const char *ot_footprint_next_name(ot_footprint_next n)
{
    static const char *const names[] = {"hole", "grows", "moves", "goes"};
    return names[n];
}

/* A buffer of the scope begins or ends to be alive. */
typedef struct event {
    int64_t position;
    uint32_t buffer;
    bool begins;
} event;

typedef struct sweep {
    const ot_kernel *kernel;
    const ot_mem_plan *plan;
    const ot_scope_plan *scope;
    int64_t align;
    ot_arena *a;         /* of what is found */
    ot_arena *scratch;   /* of the rest */
    const uint32_t *ids; /* [n] the scope's buffers that are ever alive */
    uint32_t n;
    event *events; /* [n_events] ascending; ends first */
    size_t n_events;
    uint32_t *alive; /* [n_alive] buffers */
    uint32_t n_alive;
    pm_slot *slots; /* [n_slots] of them, by offset */
    uint32_t n_slots;
    int64_t live; /* bytes */
    ot_footprint_line *lines;
    size_t n_lines, cap;
    ot_footprint_scope *out;
} sweep;

static int64_t bytes_of(const sweep *w, uint32_t b)
{
    return w->plan->lifetimes->buffers[b].size * w->plan->multi[b];
}

/* ---- the sweep ---- */

static int compare_events(const void *pa, const void *pb)
{
    const event *a = pa, *b = pb;
    if (a->position != b->position) return a->position < b->position ? -1 : 1;
    if (a->begins != b->begins) return a->begins ? 1 : -1;
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

static bool new_sweep(sweep *w)
{
    const ot_lifetimes *l = w->plan->lifetimes;
    size_t slots = 0, at = 0;
    uint32_t *ids = OT_NEW_N(w->scratch, uint32_t, l->n_buffers);
    if (!ids) return false;
    for (uint32_t b = 0; b < l->n_buffers; b++) {
        const ot_buffer *u = &l->buffers[b];
        if (u->scope != w->scope->scope || u->n_live == 0) continue;
        ids[w->n++] = b;
        w->n_events += 2 * (size_t)u->n_live;
        slots += w->plan->multi[b];
    }
    w->ids = ids;
    w->events = OT_NEW_N(w->scratch, event, w->n_events);
    w->alive = OT_NEW_N(w->scratch, uint32_t, w->n);
    w->slots = OT_NEW_N(w->scratch, pm_slot, slots);
    if (!w->events || !w->alive || !w->slots) return false;
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t s = 0; s < l->buffers[ids[i]].n_live; s++) {
            const ot_span *span = &l->buffers[ids[i]].live[s];
            w->events[at++] = (event){span->lower, ids[i], true};
            w->events[at++] = (event){span->upper, ids[i], false};
        }
    qsort(w->events, w->n_events, sizeof *w->events, compare_events);
    return true;
}

static void begin(sweep *w, uint32_t b)
{
    const ot_buffer *u = &w->plan->lifetimes->buffers[b];
    w->alive[w->n_alive++] = b;
    w->live += bytes_of(w, b);
    for (uint32_t k = 0; k < w->plan->multi[b]; k++) {
        const int64_t offset = w->plan->offsets[b][k];
        uint32_t at = w->n_slots++;
        for (; at > 0 && w->slots[at - 1].offset > offset; at--) w->slots[at] = w->slots[at - 1];
        w->slots[at] = (pm_slot){offset, offset + u->size, b, k};
    }
}

static void end(sweep *w, uint32_t b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_slots; i++)
        if (w->slots[i].buffer != b) w->slots[n++] = w->slots[i];
    w->n_slots = n;
    for (uint32_t i = n = 0; i < w->n_alive; i++)
        if (w->alive[i] != b) w->alive[n++] = w->alive[i];
    w->n_alive = n;
    w->live -= bytes_of(w, b);
}

/* ---- buffers that would have to go ---- */

static bool add_buffer(const sweep *w, uint32_t b, ot_footprint_buffer *to)
{
    const ot_tk_value *v = &w->kernel->values[w->plan->lifetimes->buffers[b].values[0]];
    *to = (ot_footprint_buffer){ot_strdup(w->a, v->name), bytes_of(w, b), w->plan->multi[b]};
    return to->name != NULL;
}

/* Of two buffers, does b rather go, where `missing` bytes are to be got? The smallest that does
 * alone, else the largest; the earlier of equal ones. */
static bool rather_goes(const sweep *w, uint32_t b, uint32_t than, int64_t missing)
{
    if (than == OT_NONE) return true;
    const int64_t x = bytes_of(w, b), y = bytes_of(w, than);
    const bool does = x >= missing, other = y >= missing;
    if (does != other) return does;
    if (x != y) return does ? x < y : x > y;
    return b < than;
}

/* Is b behind `last` when the largest stand first, the earlier of equal ones? */
static bool is_behind(const sweep *w, uint32_t b, uint32_t last)
{
    if (last == OT_NONE) return true;
    const int64_t x = bytes_of(w, b), y = bytes_of(w, last);
    return x != y ? x < y : b > last;
}

/* What is alive now, and goes so that `missing` bytes more are free: the smallest one that does
 * it alone, else the largest first; then those of which enough others go stay. */
static bool find_goes(sweep *w, int64_t missing, ot_footprint_line *line)
{
    uint32_t set[OT_FOOTPRINT_GO_MAX], n = 0, kept = 0;
    ot_footprint_buffer *goes;
    int64_t left = missing;
    while (left > 0) {
        uint32_t best = OT_NONE, last = n > 0 ? set[n - 1] : OT_NONE;
        for (uint32_t i = 0; i < w->n_alive; i++)
            if (is_behind(w, w->alive[i], last) && rather_goes(w, w->alive[i], best, left))
                best = w->alive[i];
        if (best == OT_NONE || n == OT_FOOTPRINT_GO_MAX) return true;
        set[n++] = best;
        left -= bytes_of(w, best);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (left + bytes_of(w, set[i]) <= 0)
            left += bytes_of(w, set[i]);
        else
            set[kept++] = set[i];
    }
    if (!(goes = OT_NEW_N(w->a, ot_footprint_buffer, kept))) return false;
    for (uint32_t i = 0; i < kept; i++)
        if (!add_buffer(w, set[i], &goes[i])) return false;
    line->goes = goes;
    line->n_goes = kept;
    return true;
}

/* ---- one stretch ---- */

/* The lowest place for 4 KiB beside what is alive now. */
static int64_t lowest_place(const sweep *w)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < w->n_slots; i++) {
        if (w->slots[i].offset >= at + OT_FOOTPRINT_STEP) break;
        at = ot_max(at, ot_ceil_div(w->slots[i].end, w->align) * w->align);
    }
    return at;
}

static bool price_line(sweep *w, ot_footprint_line *line)
{
    const ot_scope_plan *p = w->scope;
    const int64_t at = lowest_place(w), end_at = at + OT_FOOTPRINT_STEP;
    const int64_t missing = w->live + OT_FOOTPRINT_STEP - p->capacity;
    line->offset = at;
    if (end_at <= p->height) {
        line->next = OT_NEXT_HOLE;
    } else if (p->capacity == 0 || end_at <= p->capacity) {
        line->next = OT_NEXT_GROWS;
        line->growth = end_at - p->height;
    } else if (missing <= 0) {
        line->next = OT_NEXT_MOVES;
    } else {
        line->next = OT_NEXT_GOES;
        line->missing = missing;
        return find_goes(w, missing, line);
    }
    return true;
}

static uint32_t line_of(const sweep *w, int64_t position)
{
    const ot_kernel *k = w->kernel;
    if (k->n_stmts == 0) return 0;
    return k->stmts[ot_min(position, (int64_t)k->n_stmts - 1)].line;
}

/* What is alive from here to there. */
static bool add_line(sweep *w, int64_t from, int64_t to)
{
    ot_footprint_line line = {.line = line_of(w, from),
                              .last_line = line_of(w, to - 1),
                              .live = w->live,
                              .n_buffers = w->n_alive};
    return price_line(w, &line) && OT_PUSH(w->a, w->lines, w->n_lines, w->cap, line);
}

/* ---- what limits the scope ---- */

static int compare_buffers(const void *pa, const void *pb)
{
    const ot_footprint_buffer *a = pa, *b = pb;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* The buffers of the line where most is alive: the first such line. */
static bool keep_peak(sweep *w)
{
    ot_footprint_buffer *list;
    if (w->n_lines > 1 && w->lines[w->n_lines - 1].live <= w->lines[w->out->peak].live) return true;
    w->out->peak = (uint32_t)(w->n_lines - 1);
    if (!(list = OT_NEW_N(w->a, ot_footprint_buffer, w->n_alive))) return false;
    for (uint32_t i = 0; i < w->n_alive; i++)
        if (!add_buffer(w, w->alive[i], &list[i])) return false;
    qsort(list, w->n_alive, sizeof *list, compare_buffers);
    w->out->at_peak = list;
    w->out->n_at_peak = w->n_alive;
    return true;
}

/* The most that is alive without the buffers of a set, and one that goes where that first is
 * so (it must pass `most`); OT_NONE: all do. */
static uint32_t worst_left(sweep *w, const bool *gone, int64_t most)
{
    int64_t live = 0, worst = most;
    uint32_t best = OT_NONE;
    w->n_alive = 0;
    for (size_t e = 0; e < w->n_events; e++) {
        const event *x = &w->events[e];
        if (gone[x->buffer]) continue;
        live += x->begins ? bytes_of(w, x->buffer) : -bytes_of(w, x->buffer);
        if (x->begins) {
            w->alive[w->n_alive++] = x->buffer;
        } else {
            uint32_t n = 0;
            for (uint32_t i = 0; i < w->n_alive; i++)
                if (w->alive[i] != x->buffer) w->alive[n++] = w->alive[i];
            w->n_alive = n;
        }
        if (live <= worst || (e + 1 < w->n_events && w->events[e + 1].position == x->position))
            continue;
        worst = live;
        best = OT_NONE;
        for (uint32_t i = 0; i < w->n_alive; i++)
            if (rather_goes(w, w->alive[i], best, live - most)) best = w->alive[i];
    }
    return best;
}

/* A set whose going leaves 4 KiB less alive at most: where most is alive one goes, until that is
 * so; then what can stay stays. */
static bool find_scope_goes(sweep *w)
{
    const int64_t peak = w->lines[w->out->peak].live, most = peak - OT_FOOTPRINT_STEP;
    uint32_t set[OT_FOOTPRINT_GO_MAX], n = 0, kept = 0, b;
    bool *gone = OT_NEW_N(w->scratch, bool, w->plan->lifetimes->n_buffers);
    ot_footprint_buffer *goes;
    if (!gone) return false;
    if (most < 0) return true;
    while ((b = worst_left(w, gone, most)) != OT_NONE) {
        if (n == OT_FOOTPRINT_GO_MAX) return true;
        gone[set[n++] = b] = true;
    }
    for (uint32_t i = 0; i < n; i++) {
        gone[set[i]] = false;
        if (worst_left(w, gone, most) == OT_NONE) continue;
        gone[set[i]] = true;
        set[kept++] = set[i];
    }
    if (!(goes = OT_NEW_N(w->a, ot_footprint_buffer, kept))) return false;
    for (uint32_t i = 0; i < kept; i++)
        if (!add_buffer(w, set[i], &goes[i])) return false;
    w->out->goes = goes;
    w->out->n_goes = kept;
    return true;
}

static bool run_sweep(sweep *w)
{
    for (size_t e = 0; e < w->n_events; e++) {
        const event *x = &w->events[e];
        if (x->begins)
            begin(w, x->buffer);
        else
            end(w, x->buffer);
        const int64_t to = e + 1 < w->n_events ? w->events[e + 1].position : x->position;
        if (to == x->position || w->n_alive == 0) continue;
        if (!add_line(w, x->position, to) || !keep_peak(w)) return false;
    }
    w->out->lines = w->lines;
    w->out->n_lines = (uint32_t)w->n_lines;
    return w->n_lines == 0 || find_scope_goes(w);
}

/* ---- other capacities ---- */

static ot_status price(const sweep *w, const ot_tk_machine *t, const ot_mem_options *o,
                       int64_t change, ot_diag *d, ot_footprint_price *out)
{
    const int64_t capacity = w->scope->capacity + change;
    if (w->scope->capacity == 0 || capacity <= 0) return OT_OK;
    mem_trial trial = {.scope = w->scope->scope, .capacity = capacity};
    OT_TRY(mem_try_capacity(w->kernel, w->plan, t, o, w->scratch, d, &trial));
    *out = (ot_footprint_price){capacity, trial.fits, trial.certain, trial.plan};
    return OT_OK;
}

static ot_status scope_footprint(sweep *w, const ot_tk_machine *t, const ot_mem_options *o,
                                 ot_diag *d)
{
    if (!new_sweep(w) || !run_sweep(w)) return ot_fail_nomem(d);
    if (w->n_lines == 0) return OT_OK;
    OT_TRY(price(w, t, o, -OT_FOOTPRINT_STEP, d, &w->out->less));
    return price(w, t, o, OT_FOOTPRINT_STEP, d, &w->out->more);
}

ot_status ot_mem_footprint(const ot_kernel *k, const ot_mem_plan *p, const ot_tk_machine *t,
                           const ot_mem_options *o, ot_arena *a, ot_diag *d, ot_footprint *out)
{
    ot_footprint_scope *scopes = OT_NEW_N(a, ot_footprint_scope, p->n_scopes);
    ot_status s = scopes ? OT_OK : ot_fail_nomem(d);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_scopes && s == OT_OK; i++) {
        sweep w = {.kernel = k,
                   .plan = p,
                   .scope = &p->scopes[i],
                   .align = t->scopes[p->scopes[i].scope].alignment,
                   .a = a,
                   .scratch = ot_arena_new(),
                   .out = &scopes[n]};
        scopes[n].plan = &p->scopes[i];
        s = w.scratch ? scope_footprint(&w, t, o, d) : ot_fail_nomem(d);
        ot_arena_free(w.scratch);
        n += w.n_lines > 0;
    }
    *out = (ot_footprint){scopes, n};
    return s;
}
