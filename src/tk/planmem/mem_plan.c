/* Memory plans of kernels: lifetimes, then each scope by itself, then the validator.
 *
 *   mode        a scope with a capacity                    gm, workspace reuse on (off: sequential)
 *   sequential  nothing shares                             nothing shares
 *   reuse       sequential if that fits, else PlanMemory   PlanMemory at the least height it finds
 *   search      the lowest that the packing search finds   the same
 *   auto        sequential, PlanMemory, search: the first  search: less is better, nothing waits
 *               for nothing
 *               that fits
 *
 * Sequential comes first because sharing costs: what shares memory waits for each other. A scope
 * that does not fit is an overflow (overflow.c).
 */
#include "planmem_internal.h"

#define MIN_SECONDS 0.01 /* a second search has at least */
/* of a trial: slots looked at, steps of the search; some milliseconds */
#define TRIAL_WORK  ((int64_t)16 << 20)
#define TRIAL_STEPS 2000

const char *ot_mem_mode_name(ot_mem_mode m)
{
    switch (m) {
    case OT_MEM_SEQUENTIAL: return "sequential";
    case OT_MEM_REUSE: return "reuse";
    case OT_MEM_SEARCH: return "search";
    case OT_MEM_AUTO: break;
    }
    return "auto";
}

/* ---- what can be said before planning ---- */

/* Fail at the definition of a buffer. */
static ot_status fail_at(const mem_job *j, const ot_buffer *b, const char *rule)
{
    const ot_tk_value *v = &j->kernel->values[b->values[0]];
    return ot_fail(j->diag, OT_E_INPUT, "%s:%u:%u: buffer '%s' in %s: %s", j->path, v->line, v->col,
                   v->name, ot_scope_name(j->scope), rule);
}

/* No sum of sizes, alignments and offsets, as they are or in bits, may overflow later. */
static ot_status check_sizes(const mem_job *j)
{
    int64_t sum = 0, limit = INT64_MAX / 32;
    for (uint32_t i = 0; i < j->n; i++) {
        const ot_buffer *b = j->buffers[i];
        int64_t each, all, far = 0;
        for (uint32_t k = 0; k < b->multi; k++) far = ot_max(far, b->fixed[k]);
        if (!ot_add_i64(b->size, b->align, &each) || !ot_mul_i64(each, OT_TK_MULTI_MAX, &all) ||
            !ot_add_i64(sum, all, &sum) || !ot_add_i64(far, sum, &all) || all > limit)
            return fail_at(j, b, "sizes are too large to plan");
    }
    return OT_OK;
}

static bool slots_overlap(const ot_buffer *a, uint32_t ka, const ot_buffer *b, uint32_t kb)
{
    return a->fixed[ka] >= 0 && b->fixed[kb] >= 0 && a->fixed[ka] < b->fixed[kb] + b->size &&
           b->fixed[kb] < a->fixed[ka] + a->size;
}

static ot_status check_fixed(const mem_job *j)
{
    for (uint32_t i = 0; i < j->n; i++) {
        const ot_buffer *b = j->buffers[i];
        for (uint32_t k = 0; k < b->multi && b->n_live; k++) {
            if (b->fixed[k] < 0) continue;
            if (b->fixed[k] % b->align != 0)
                return fail_at(j, b, "the given offset is not aligned");
            for (uint32_t q = 0; q < k; q++)
                if (slots_overlap(b, q, b, k))
                    return fail_at(j, b, "two of its slots overlap at the given offsets");
            for (uint32_t o = 0; o < i; o++) {
                const ot_buffer *other = j->buffers[o];
                for (uint32_t q = 0; q < other->multi; q++) {
                    if (!slots_overlap(other, q, b, k) || !pm_meet(other, b)) continue;
                    char rule[160];
                    snprintf(
                        rule, sizeof rule,
                        "at the given offset it overlaps '%.80s', which is alive at the same time",
                        j->kernel->values[other->values[0]].name);
                    return fail_at(j, b, rule);
                }
            }
        }
    }
    return OT_OK;
}

/* Registers and the like: what a compiler hands out, without a limit where the target says none. */
static bool is_register(ot_scope s)
{
    return s == OT_SCOPE_LOCAL || s == OT_SCOPE_FRAGMENT || s == OT_SCOPE_VAR ||
           s == OT_SCOPE_BARRIER || s == OT_SCOPE_REDUCER || s == OT_SCOPE_DESCRIPTOR;
}

static ot_status find_capacity(mem_job *j, const ot_tk_machine *t)
{
    j->capacity = t->scopes[j->scope].bytes;
    if (j->scope == OT_SCOPE_GM || is_register(j->scope)) return OT_OK;
    if (j->options->capacity > 0) j->capacity = j->options->capacity;
    if (j->options->fast_capacity > 0 && j->scope == OT_SCOPE_L2)
        j->capacity = j->options->fast_capacity;
    if (j->capacity > 0) return OT_OK;
    char rule[160];
    snprintf(rule, sizeof rule, "target '%s' has no such memory", t->name);
    return fail_at(j, j->buffers[0], rule);
}

/* ---- the modes ---- */

static bool fits(const mem_job *j, int64_t height)
{
    return j->capacity == 0 || height <= j->capacity;
}

static ot_status plan_reuse(mem_job *j, int64_t capacity, bool *done, int64_t *needed)
{
    ot_scope_places at = {.offsets = j->offsets,
                          .multi = j->multi,
                          .level = j->level,
                          .stats = j->stats,
                          .work_limit = j->is_trial ? TRIAL_WORK : 0};
    OT_TRY(ot_planmem(j->buffers, j->n, j->kernel, capacity, j->scratch, j->diag, &at));
    j->cut = j->cut || at.cut;
    *done = at.fits;
    *needed = at.needed;
    return OT_OK;
}

/* No capacity to keep to: the height that PlanMemory reaches, then the highest levels at that
 * height. */
static ot_status plan_reuse_lowest(mem_job *j, int64_t *height)
{
    bool done = false;
    OT_TRY(plan_reuse(j, ot_max(1, j->stats->lower_bound), &done, height));
    int64_t least = *height;
    if (!done) OT_TRY(plan_reuse(j, least, &done, height));
    return done ? OT_OK
                : ot_fail(j->diag, OT_E_INPUT, "memory plan: PlanMemory missed its own height");
}

/* r->seconds in: spent already, of the time limit. */
static ot_status plan_search(mem_job *j, int64_t capacity, ot_pack_result *r)
{
    const ot_mem_options *m = j->options;
    ot_pack_options o = {.capacity = capacity,
                         .step_limit = m->step_limit,
                         .threads = m->threads,
                         .rules = OT_PACK_RULES_ALL};
    if (m->time_limit > 0)
        o.time_limit = m->time_limit > r->seconds + MIN_SECONDS ? m->time_limit - r->seconds
                                                                : MIN_SECONDS;
    OT_TRY(mem_search(j, j->buffers, j->n, &o, j->offsets, j->multi, r));
    j->stats->mode = OT_MEM_SEARCH;
    j->stats->height = r->height;
    j->stats->timed_out |= r->timed_out;
    j->stats->rollbacks = j->stats->restarts = 0;
    j->stats->lower_bound = ot_max(j->stats->lower_bound, r->lower_bound);
    if (r->proved && r->found) j->stats->proved = true;
    if (r->proved && (!r->found || !fits(j, r->height))) j->impossible = true;
    return OT_OK;
}

static ot_status mode_search(mem_job *j)
{
    ot_pack_result r = {0};
    OT_TRY(plan_search(j, 0, &r));
    if (fits(j, r.height)) return OT_OK;
    int64_t least = r.height;
    /* Minimising and fitting are different searches: what one missed the other may find. */
    if (!r.proved) OT_TRY(plan_search(j, j->capacity, &r));
    return fits(j, r.height) ? OT_OK : mem_overflow(j, OT_MEM_SEARCH, ot_min(least, r.height));
}

static ot_status mode_reuse(mem_job *j)
{
    bool done = false;
    int64_t height = 0;
    if (j->scope != OT_SCOPE_GM) {
        OT_TRY(plan_reuse(j, j->capacity, &done, &height));
    } else {
        OT_TRY(plan_reuse_lowest(j, &height));
        done = fits(j, height);
    }
    return done ? OT_OK : mem_overflow(j, OT_MEM_REUSE, height);
}

static ot_status mode_auto(mem_job *j)
{
    if (j->scope == OT_SCOPE_GM) return mode_search(j);
    bool done = false;
    int64_t height = 0;
    OT_TRY(plan_reuse(j, j->capacity, &done, &height));
    if (done) return OT_OK;
    ot_pack_result r = {0};
    OT_TRY(plan_search(j, j->capacity, &r));
    return fits(j, r.height) ? OT_OK : mem_overflow(j, OT_MEM_AUTO, ot_min(height, r.height));
}

static int64_t sum_aligned(const mem_job *j)
{
    int64_t end = 0;
    for (uint32_t i = 0; i < j->n; i++)
        for (uint32_t k = 0; k < j->buffers[i]->multi && j->buffers[i]->n_live; k++)
            end = ot_ceil_div(end, j->buffers[i]->align) * j->buffers[i]->align +
                  j->buffers[i]->size;
    return end;
}

static ot_status plan_modes(mem_job *j)
{
    ot_mem_mode mode = j->options->mode;
    int64_t height;
    pm_sequential(j->buffers, j->n, j->offsets, j->multi, &height);
    j->stats->mode = OT_MEM_SEQUENTIAL;
    j->stats->height = height;
    bool workspace = j->scope == OT_SCOPE_GM && j->options->workspace_reuse;
    bool only = mode == OT_MEM_SEQUENTIAL || (j->scope == OT_SCOPE_GM && !workspace);
    if (only) return fits(j, height) ? OT_OK : mem_overflow(j, OT_MEM_SEQUENTIAL, height);
    if (mode != OT_MEM_SEARCH && !workspace && fits(j, height)) return OT_OK;
    switch (mode) {
    case OT_MEM_REUSE: return mode_reuse(j);
    case OT_MEM_SEARCH: return mode_search(j);
    default: return mode_auto(j);
    }
}

static ot_status plan_scope(mem_job *j, const ot_tk_machine *t)
{
    OT_TRY(find_capacity(j, t));
    OT_TRY(check_sizes(j));
    OT_TRY(check_fixed(j));
    *j->stats = (ot_scope_plan){.scope = j->scope, .capacity = j->capacity, .n_buffers = j->n};
    j->stats->sum = sum_aligned(j);
    OT_TRY(pm_lower_bound(j->buffers, j->n, j->scratch, j->diag, &j->stats->lower_bound));
    OT_TRY(plan_modes(j));
    pm_grade(j->buffers, j->n, j->kernel, j->offsets, j->multi, j->level, j->stats);
    if (j->stats->height <= j->stats->lower_bound) j->stats->proved = true;
    return OT_OK;
}

/* ---- the kernel ---- */

/* Collect the buffers of a scope, plan them, and put the result where the plan wants it. */
static ot_status scope_of_kernel(mem_job *j, const ot_tk_machine *t, ot_mem_plan *p)
{
    const ot_lifetimes *l = p->lifetimes;
    uint32_t *ids = OT_NEW_N(j->scratch, uint32_t, l->n_buffers);
    j->buffers = OT_NEW_N(j->scratch, const ot_buffer *, l->n_buffers);
    j->offsets = ot_alloc_n(j->scratch, l->n_buffers, sizeof *j->offsets);
    j->multi = OT_NEW_N(j->scratch, uint32_t, l->n_buffers);
    j->level = OT_NEW_N(j->scratch, ot_reuse_level, l->n_buffers);
    if (!ids || !j->buffers || !j->offsets || !j->multi || !j->level) return ot_fail_nomem(j->diag);
    j->n = 0;
    for (uint32_t i = 0; i < l->n_buffers; i++) {
        if (l->buffers[i].scope != j->scope) continue;
        ids[j->n] = i;
        j->buffers[j->n++] = &l->buffers[i];
    }
    if (j->n == 0) return OT_OK;
    j->stats = &p->scopes[p->n_scopes++];
    mem_pools *pools;
    uint32_t n = j->n;
    OT_TRY(mem_pools_enter(j, &pools));
    OT_TRY(plan_scope(j, t));
    for (uint32_t i = 0; i < n; i++)
        mem_pools_place(j, pools, i, p->offsets[ids[i]], &p->multi[ids[i]], &p->level[ids[i]]);
    j->stats->n_buffers = n;
    return OT_OK;
}

static ot_status plan_kernel(mem_job *j, const ot_tk_machine *t, ot_mem_plan *p)
{
    ot_lifetimes *l = NULL;
    OT_TRY(ot_lifetimes_find(j->kernel, j->path, t, &j->options->lifetimes, j->diag, &l));
    p->lifetimes = l;
    p->offsets = ot_alloc_n(p->arena, l->n_buffers, sizeof *p->offsets);
    p->multi = OT_NEW_N(p->arena, uint32_t, l->n_buffers);
    p->level = OT_NEW_N(p->arena, ot_reuse_level, l->n_buffers);
    if (!p->offsets || !p->multi || !p->level) return ot_fail_nomem(j->diag);
    memset(p->offsets, -1, l->n_buffers * sizeof *p->offsets);
    for (int s = 0; s < OT_SCOPE_COUNT; s++) {
        j->scope = (ot_scope)s;
        if (ot_mem_plans(p->part, j->scope)) OT_TRY(scope_of_kernel(j, t, p));
    }
    OT_TRY(ot_mem_plan_check(j->kernel, p, j->diag));
    return mem_check_addresses(j->kernel, j->path, p, t, j->diag);
}

/* A place that two pipes share is a dependency which a text with its own order does not know. */
static ot_mem_options own_options(const ot_kernel *k, const ot_mem_options *o)
{
    ot_mem_options own = *o;
    if (!k->explicit_sync) return own;
    own.lifetimes.no_in_place = true;
    if (own.mode == OT_MEM_AUTO) own.mode = OT_MEM_SEQUENTIAL;
    return own;
}

ot_status mem_try_capacity(const ot_kernel *k, const ot_mem_plan *p, const ot_tk_machine *t,
                           const ot_mem_options *o, ot_arena *a, ot_diag *d, mem_trial *trial)
{
    const uint32_t n = p->lifetimes->n_buffers;
    ot_mem_options own = own_options(k, o);
    ot_mem_plan other = {.lifetimes = p->lifetimes,
                         .offsets = ot_alloc_n(a, n, sizeof *other.offsets),
                         .multi = OT_NEW_N(a, uint32_t, n),
                         .level = OT_NEW_N(a, ot_reuse_level, n)};
    mem_job j = {.kernel = k,
                 .path = "",
                 .options = &own,
                 .diag = d,
                 .scratch = a,
                 .scope = trial->scope,
                 .is_trial = true};
    if (!other.offsets || !other.multi || !other.level) return ot_fail_nomem(d);
    own.capacity = own.fast_capacity = trial->capacity;
    own.time_limit = 0;
    own.step_limit = TRIAL_STEPS;
    ot_status s = scope_of_kernel(&j, t, &other);
    const ot_scope_plan *made = &other.scopes[0];
    trial->fits = s == OT_OK;
    trial->plan = *made;
    trial->certain = trial->fits ? !j.cut
                                 : own.mode == OT_MEM_SEQUENTIAL || j.impossible ||
                                       made->lower_bound > trial->capacity;
    return s == OT_E_BUDGET ? OT_OK : s;
}

ot_status ot_mem_plan_kernel(const ot_kernel *k, const char *path, const ot_tk_machine *t,
                             const ot_mem_options *o, ot_diag *d, ot_mem_plan **out)
{
    *out = NULL;
    ot_arena *a = ot_arena_new(), *scratch = ot_arena_new();
    ot_mem_plan *p = a ? OT_NEW(a, ot_mem_plan) : NULL;
    if (!p || !scratch) {
        ot_arena_free(a);
        ot_arena_free(scratch);
        return ot_fail_nomem(d);
    }
    p->arena = a;
    p->part = o->part;
    ot_mem_options own = own_options(k, o);
    mem_job j = {.kernel = k, .path = path, .options = &own, .diag = d, .scratch = scratch};
    ot_status s = plan_kernel(&j, t, p);
    ot_arena_free(scratch);
    if (s == OT_OK)
        *out = p;
    else
        ot_mem_plan_free(p);
    return s;
}

void ot_mem_plan_free(ot_mem_plan *p)
{
    if (!p) return;
    ot_lifetimes_free((ot_lifetimes *)p->lifetimes);
    ot_arena_free(p->arena);
}

/* Write the place of storage i, which has no alloc, to the first value that it holds: as its own
 * if it lies there itself, else that of its next value, which waits there (the third buffer of a
 * swap). What is never alive needs none. */
static void apply_place(const ot_mem_plan *p, uint32_t i, ot_kernel *k)
{
    const ot_lifetimes *l = p->lifetimes;
    const ot_buffer *b = &l->buffers[i];
    if (b->n_live == 0) return;
    uint32_t j = 0;
    while (j < b->n_values && l->buffer_of[b->values[j]] != i) j++;
    bool waits = j == b->n_values;
    ot_tk_value *v = &k->values[b->values[waits ? 0 : j]];
    *(waits ? &v->n_waits : &v->n_offsets) = p->multi[i];
    memcpy(waits ? v->waits : v->offsets, p->offsets[i], sizeof v->offsets);
}

void ot_mem_plan_apply(const ot_mem_plan *p, ot_kernel *k)
{
    for (uint32_t i = 0; i < p->lifetimes->n_buffers; i++) {
        const ot_buffer *b = &p->lifetimes->buffers[i];
        if (p->multi[i] == 0) continue;
        /* carried values, results only */
        if (k->values[b->values[0]].kind != OT_TK_BUFFER) apply_place(p, i, k);
        for (uint32_t v = 0; v < b->n_values; v++) {
            ot_tk_value *value = &k->values[b->values[v]];
            if (value->kind != OT_TK_BUFFER) continue;
            value->multi = value->n_offsets = p->multi[i];
            for (uint32_t s = 0; s < p->multi[i]; s++) value->offsets[s] = p->offsets[i][s];
        }
    }
}
