/* Overflow: what a kernel asks for, and the fewest buffers that show why it cannot have it.
 *
 *   cause                                    set
 *   a fixed offset ends beyond the capacity  that buffer
 *   nothing may share (sequential)           the largest, until their sum is too large
 *   too much is alive at one statement       the largest alive there, of all such statements where
 *                                            the fewest do
 *   everything would fit, but the places do  what is left when no buffer can be dropped without the
 *                                            rest fitting:
 *   not, or no plan was found                by bounded deletion, with the planners that failed
 */
#include "planmem_internal.h"

#define MAX_TESTS     300   /* plans made to find an irreducible set... */
#define TEST_BUFFERS  40000 /* ...of as many buffers in all */
#define TEST_STEPS    20000 /* of the packing search in one of them */
#define MAX_POSITIONS 4096  /* statements looked at for the fewest buffers */

typedef struct explanation {
    uint32_t *members; /* [n] indices into the job's buffers, largest first */
    uint32_t n;
    int64_t granule;  /* sizes are compared rounded up to it */
    const char *tail; /* ends the message */
    uint32_t line;    /* 0: none */
} explanation;

/* ---- order: largest first ---- */

typedef struct ranked {
    int64_t bytes;
    uint32_t buffer;
} ranked;

static int compare_ranked(const void *pa, const void *pb)
{
    const ranked *a = pa, *b = pb;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

/* Live buffers of the job, largest first; *n of them. NULL when memory ran out. */
static ranked *rank(const mem_job *j, int64_t granule, uint32_t *n)
{
    ranked *list = OT_NEW_N(j->scratch, ranked, j->n);
    *n = 0;
    for (uint32_t i = 0; list && i < j->n; i++)
        if (j->buffers[i]->n_live) list[(*n)++] = (ranked){pm_bytes(j->buffers[i], granule), i};
    if (list) qsort(list, *n, sizeof *list, compare_ranked);
    return list;
}

/* ---- too much alive ---- */

static bool alive_at(const ot_buffer *b, int64_t position)
{
    for (uint32_t s = 0; s < b->n_live && b->live[s].lower <= position; s++)
        if (position < b->live[s].upper) return true;
    return false;
}

/* How many of the largest buffers alive at `position` (-1: of all) exceed the capacity; OT_NONE:
 * all together fit, or more than `most` are needed. The last granule of the highest slot need
 * not be there: *e keeps the members. */
static uint32_t count_exceeding(const mem_job *j, const ranked *list, uint32_t n, int64_t granule,
                                int64_t position, uint32_t most, explanation *e)
{
    int64_t sum = 0, slack = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n && count < most; i++) {
        const ot_buffer *b = j->buffers[list[i].buffer];
        if (position >= 0 && !alive_at(b, position)) continue;
        e->members[count++] = list[i].buffer;
        sum += list[i].bytes;
        slack = ot_max(slack, ot_ceil_div(b->size, granule) * granule - b->size);
        if (sum - slack > j->capacity) return count;
    }
    return OT_NONE;
}

/* The position where the fewest buffers exceed the capacity, the earliest of them. e->n stays 0
 * when there is none. */
static ot_status explain_alive(const mem_job *j, int64_t granule, explanation *e)
{
    uint32_t n;
    ranked *list = rank(j, granule, &n);
    if (!list) return ot_fail_nomem(j->diag);
    int64_t best = -1;
    uint32_t fewest = n, tried = 0;
    /* What is alive grows only where a span begins. */
    for (uint32_t i = 0; i < j->n && tried < MAX_POSITIONS; i++)
        for (uint32_t s = 0; s < j->buffers[i]->n_live; s++, tried++) {
            int64_t position = j->buffers[i]->live[s].lower;
            uint32_t count = count_exceeding(j, list, n, granule, position, fewest, e);
            if (count == OT_NONE || (count == fewest && best >= 0 && position >= best)) continue;
            fewest = count;
            best = position;
        }
    if (best < 0) return OT_OK;
    e->n = count_exceeding(j, list, n, granule, best, fewest, e);
    e->granule = granule;
    e->line = best < j->kernel->n_stmts ? j->kernel->stmts[best].line : 0;
    return OT_OK;
}

/* ---- other causes ---- */

static void explain_fixed(const mem_job *j, explanation *e)
{
    for (uint32_t i = 0; i < j->n && e->n == 0; i++)
        for (uint32_t k = 0; k < j->buffers[i]->multi && j->buffers[i]->n_live && e->n == 0; k++) {
            int64_t at = j->buffers[i]->fixed[k];
            if (at < 0 || at + j->buffers[i]->size <= j->capacity) continue;
            e->members[e->n++] = i;
            e->tail = " at the given offset";
        }
}

static ot_status explain_sequential(const mem_job *j, explanation *e)
{
    const int64_t granules[2] = {1, pm_granule(j->buffers, j->n)};
    for (int g = 0; g < 2 && e->n == 0; g++) {
        uint32_t n, count;
        ranked *list = rank(j, granules[g], &n);
        if (!list) return ot_fail_nomem(j->diag);
        count = count_exceeding(j, list, n, granules[g], -1, n, e);
        /* fixed offsets */
        for (uint32_t i = 0; count == OT_NONE && g == 1 && i < n; i++)
            e->members[i] = list[i].buffer;
        e->n = count != OT_NONE ? count : g == 1 ? n : 0;
    }
    e->tail = ", sharing nothing";
    return OT_OK;
}

/* The members in the order of `list`. */
static void sort_members(const ranked *list, uint32_t n, explanation *e, uint32_t *scratch)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t m = 0; m < e->n; m++)
            if (e->members[m] == list[i].buffer) scratch[count++] = list[i].buffer;
    memcpy(e->members, scratch, e->n * sizeof *scratch);
}

typedef enum verdict { FITS, NOT_FOUND, IMPOSSIBLE } verdict;

/* Do these buffers fit by themselves, for the planners of the mode that failed? */
static ot_status try_subset(const mem_job *j, ot_mem_mode mode, const uint32_t *members, uint32_t n,
                            verdict *v)
{
    const ot_buffer **subset = OT_NEW_N(j->scratch, const ot_buffer *, n);
    if (!subset) return ot_fail_nomem(j->diag);
    for (uint32_t i = 0; i < n; i++) subset[i] = j->buffers[members[i]];
    *v = NOT_FOUND;
    if (mode != OT_MEM_SEARCH) {
        ot_scope_plan stats = {0};
        ot_scope_places own = {
            .offsets = j->offsets, .multi = j->multi, .level = j->level, .stats = &stats};
        OT_TRY(ot_planmem(subset, n, j->kernel, j->capacity, j->scratch, j->diag, &own));
        if (own.fits) *v = FITS;
    }
    if (mode != OT_MEM_REUSE && *v != FITS) {
        ot_pack_options o = {
            .capacity = j->capacity, .step_limit = TEST_STEPS, .rules = OT_PACK_RULES_ALL};
        ot_pack_result r;
        OT_TRY(mem_search(j, subset, n, &o, j->offsets, j->multi, &r));
        *v = r.found ? FITS : r.proved ? IMPOSSIBLE : NOT_FOUND;
    }
    return OT_OK;
}

/* Drop what can be dropped, in halves, quarters and so on of the time: what is too tight is so
 * at one time. */
static ot_status explain_places(const mem_job *j, ot_mem_mode mode, explanation *e)
{
    uint32_t n, *rest = OT_NEW_N(j->scratch, uint32_t, j->n);
    ranked *list = rank(j, 1, &n);
    if (!list || !rest) return ot_fail_nomem(j->diag);
    for (uint32_t i = 0; i < j->n; i++)
        if (j->buffers[i]->n_live) e->members[e->n++] = i;
    verdict now = NOT_FOUND, v = NOT_FOUND;
    uint32_t tests = 0, planned = 0;
    for (uint32_t chunk = (e->n + 1) / 2; chunk > 0; chunk = chunk == 1 ? 0 : (chunk + 1) / 2)
        for (uint32_t end = e->n, from; end > 0 && tests < MAX_TESTS && planned < TEST_BUFFERS;
             end = from, tests++) {
            uint32_t kept = 0;
            from = end > chunk ? end - chunk : 0;
            if (end - from == e->n) continue;
            for (uint32_t i = 0; i < e->n; i++)
                if (i < from || i >= end) rest[kept++] = e->members[i];
            OT_TRY(try_subset(j, mode, rest, kept, &v));
            planned += kept;
            if (v == FITS) continue;
            now = v;
            memcpy(e->members, rest, kept * sizeof *rest);
            e->n = kept;
        }
    sort_members(list, n, e, rest);
    e->tail = now == IMPOSSIBLE ? ", which cannot be placed together" : ", no plan found for them";
    return OT_OK;
}

/* ---- the message ---- */

/* " a (8192 B), b x2 (16384 B)" into text; what does not fit becomes "... and N more". */
static void list_members(const mem_job *j, const explanation *e, char *text, size_t room)
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        const ot_buffer *b = j->buffers[e->members[i]];
        const char *name = j->kernel->values[b->values[0]].name;
        char slots[16] = "", item[160];
        if (b->multi > 1) snprintf(slots, sizeof slots, " x%u", b->multi);
        snprintf(item, sizeof item, "%s %.64s%s%s (%lld B)", i ? "," : "", name,
                 strlen(name) > 64 ? "..." : "", slots, (long long)pm_bytes(b, e->granule));
        size_t len = strlen(item), reserve = i + 1 < e->n ? 32 : 0;
        if (used + len + reserve >= room) {
            snprintf(text + used, room - used, "%s ... and %u more", i ? "," : "", e->n - i);
            return;
        }
        memcpy(text + used, item, len + 1);
        used += len;
    }
}

static ot_status report(const mem_job *j, const explanation *e, int64_t required)
{
    const ot_tk_value *v = &j->kernel->values[j->buffers[e->members[0]]->values[0]];
    const ot_tk_stmt *alloc = v->stmt < j->kernel->n_stmts ? &j->kernel->stmts[v->stmt] : NULL;
    char head[OT_DIAG_MAX], list[OT_DIAG_MAX], line[32] = "";
    int len = snprintf(head, sizeof head,
                       "%s:%u:%u: %s overflow, requires %lld bits while %lld bits available! "
                       "(possible reason: tiling basic block "
                       "is too large or block number is more than what user expect due to "
                       "multi-buffer feature is enabled and some "
                       "ops need extra local buffer.) smallest explaining set:",
                       j->path, alloc ? alloc->line : v->line, alloc ? alloc->col : v->col,
                       ot_scope_name(j->scope), (long long)required * 8,
                       (long long)j->capacity * 8);
    if (e->line) snprintf(line, sizeof line, " at line %u", e->line);
    size_t taken = (size_t)len + strlen(line) + strlen(e->tail) + 1;
    if (taken + 64 < sizeof list)
        list_members(j, e, list, sizeof list - taken);
    else
        snprintf(list, sizeof list, " %u buffers", e->n);
    return ot_fail(j->diag, OT_E_BUDGET, "%s%s%s%s", head, list, e->tail, line);
}

ot_status mem_overflow(const mem_job *j, ot_mem_mode mode, int64_t required)
{
    if (j->is_trial) return OT_E_BUDGET;
    explanation e = {.members = OT_NEW_N(j->scratch, uint32_t, j->n), .granule = 1, .tail = ""};
    if (!e.members) return ot_fail_nomem(j->diag);
    explain_fixed(j, &e);
    if (e.n == 0 && mode == OT_MEM_SEQUENTIAL) {
        OT_TRY(explain_sequential(j, &e));
    } else if (e.n == 0) {
        OT_TRY(explain_alive(j, 1, &e));
        if (e.n == 0) OT_TRY(explain_alive(j, pm_granule(j->buffers, j->n), &e));
        if (e.n == 0) OT_TRY(explain_places(j, mode, &e));
    }
    return report(j, &e, ot_max(required, j->stats->lower_bound));
}
