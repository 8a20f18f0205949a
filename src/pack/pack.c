/* The packer: from cheap to dear, until the height asked for is reached or proved out of reach.
 *
 *   lower bound   max live bytes: nothing is lower
 *   greedy        a packing at once
 *   improve       many greedy packings of better orders
 *   search        exact: either a packing of the wanted height, or the proof that there is none
 *
 * Minimising asks the search for ever lower heights: first for the lower bound, then between
 * what was refused and the best packing. Refused is not impossible: a round gives each question
 * some steps, and the next round asks again with twice as many.
 *
 * Each question goes to several workers, who differ in their orders only. The answer is that of
 * the lowest-numbered worker who has one, and only the steps up to it count, so threads change
 * the time and never the result (unless the clock ends the search).
 */
#include "pack_reduce.h"

#include "base/watch.h"

#include <pthread.h>

#define SEARCH_ITEMS_MAX 4000   /* above, one step of the exact search is too dear */
#define DEFAULT_STEPS    200000 /* up to 300 items; fewer when a step looks at more of them */
#define DEFAULT_WORK     60000000
/* of one worker in the first round: a period of the search's restarts */
#define FIRST_STEPS 9600
/* for improve before the search starts, which is the better one where it can be used */
#define IMPROVE_STEPS 40
#define WORKERS       4   /* per question; independent of the threads */
#define LOOK_STEPS    512 /* between two looks whether to end */

bool pack_spend(pack_budget *b, int64_t n)
{
    int64_t before = b->steps;
    b->steps += n;
    if (b->step_limit && b->steps >= b->step_limit) return false;
    if (b->stop && atomic_load_explicit(b->stop, memory_order_relaxed)) return false;
    if (b->deadline > 0 && before / 128 != b->steps / 128 && ot_now() > b->deadline)
        b->timed_out = true;
    /* the caller's work is to end: what there is will not be used */
    if (before / LOOK_STEPS != b->steps / LOOK_STEPS && ot_watch_look(&(ot_diag){0}) != OT_OK)
        b->timed_out = true;
    return !b->timed_out;
}

/* ---- one question, several workers ---- */

typedef struct packer {
    const ot_pack_problem *p; /* one part */
    const ot_pack_options *o;
    uint32_t threads;
    double deadline;
    int64_t steps_left; /* INT64_MAX: no limit */
    int64_t steps;
    bool timed_out;
    int64_t bound; /* no packing is lower */
    int64_t unit;
    int64_t *best; /* [n] offsets */
    int64_t height;
} packer;

typedef struct worker {
    const struct question *q;
    uint32_t number;
    int64_t capacity;
    int64_t *offsets;
    pack_budget budget;
    pack_answer answer;
    ot_status status;
    atomic_bool stop;
} worker;

typedef struct question {
    const packer *s;
    uint32_t first_order;
    worker workers[WORKERS];
    uint32_t n;
    atomic_uint next;
} question;

static void ask(worker *w)
{
    const question *q = w->q;
    w->status = pack_search(q->s->p, w->capacity, q->first_order + w->number, q->s->o->rules,
                            &w->budget, w->offsets, &w->answer);
}

static bool decides(const worker *w) { return w->status != OT_OK || w->answer != PACK_LIMIT; }

/* Take workers in order; one that has an answer stops those after it. */
static void *work(void *arg)
{
    question *q = arg;
    for (;;) {
        uint32_t k = atomic_fetch_add(&q->next, 1);
        if (k >= q->n) return NULL;
        ask(&q->workers[k]);
        if (!decides(&q->workers[k])) continue;
        for (uint32_t j = k + 1; j < q->n; j++) atomic_store(&q->workers[j].stop, true);
    }
}

static void run_workers(question *q, uint32_t threads)
{
    pthread_t ids[WORKERS];
    uint32_t started = 0;
    while (started + 1 < threads && started + 1 < q->n &&
           pthread_create(&ids[started], NULL, work, q) == 0)
        started++;
    work(q);
    for (uint32_t k = 0; k < started; k++) pthread_join(ids[k], NULL);
}

/* Is there a packing of at most `capacity`? When one is found it becomes the best. `steps`: for
 * each worker. */
static ot_status ask_all(packer *s, int64_t capacity, uint32_t round, int64_t steps, ot_arena *a,
                         pack_answer *answer)
{
    question *q = OT_NEW(a, question);
    *answer = PACK_LIMIT;
    if (!q) return OT_E_NOMEM;
    q->s = s;
    q->first_order = round * WORKERS;
    q->n = WORKERS;
    steps = ot_max(1, ot_min(steps, s->steps_left / WORKERS));
    for (uint32_t k = 0; k < q->n; k++) {
        worker *w = &q->workers[k];
        *w = (worker){.q = q, .number = k, .capacity = capacity, .answer = PACK_LIMIT};
        w->offsets = OT_NEW_N(a, int64_t, s->p->n + 1u);
        w->budget = (pack_budget){.step_limit = steps, .deadline = s->deadline, .stop = &w->stop};
        if (!w->offsets) return OT_E_NOMEM;
    }
    run_workers(q, s->threads);
    for (uint32_t k = 0; k < q->n; k++) {
        const worker *w = &q->workers[k];
        OT_TRY(w->status);
        s->steps += w->budget.steps;
        s->steps_left -= s->steps_left == INT64_MAX ? 0 : w->budget.steps;
        s->timed_out |= w->budget.timed_out;
        if (w->answer == PACK_LIMIT) continue;
        *answer = w->answer;
        if (w->answer == PACK_NONE) break;
        s->height = 0;
        for (uint32_t j = 0; j < s->p->n; j++) {
            s->best[j] = w->offsets[j];
            s->height = ot_max(s->height, w->offsets[j] + s->p->items[j].size);
        }
        break;
    }
    return OT_OK;
}

/* ---- one part ---- */

static bool exhausted(packer *s)
{
    if (s->deadline > 0 && ot_now() > s->deadline) s->timed_out = true;
    return s->timed_out || s->steps_left <= 0;
}

static int64_t default_steps(uint32_t n)
{
    return ot_min(DEFAULT_STEPS, DEFAULT_WORK / ot_max(n, 1));
}

/* A step of the heuristics places one item, a step of the search looks at all of them. */
static ot_status improve(packer *s, int64_t goal, uint64_t seed, int64_t steps)
{
    if (s->height <= goal) return OT_OK;
    int64_t n = s->p->n, allowed = ot_max(1, ot_min(steps, s->steps_left));
    pack_budget b = {.step_limit = allowed > INT64_MAX / n ? INT64_MAX : allowed * n,
                     .deadline = s->deadline};
    ot_status st = pack_improve(s->p, goal, seed, &b, s->best, &s->height);
    s->steps += b.steps / n;
    s->steps_left -= s->steps_left == INT64_MAX ? 0 : ot_max(1, b.steps / n);
    s->timed_out |= b.timed_out;
    return st;
}

/* Ask for `capacity` and, where there is slack, now and then for less: tight problems have fewer
 * wrong turns. */
static ot_status fit(packer *s, int64_t capacity)
{
    for (uint32_t round = 0; s->height > capacity && s->bound <= capacity && !exhausted(s);
         round++) {
        int64_t steps = FIRST_STEPS << (round < 20 ? round : 20);
        int64_t wanted = round % 2 ? s->bound + (capacity - s->bound) / s->unit / 2 * s->unit
                                   : capacity;
        ot_arena *a = ot_arena_new();
        pack_answer answer;
        ot_status st = a ? ask_all(s, wanted, round, steps, a, &answer) : OT_E_NOMEM;
        ot_arena_free(a);
        OT_TRY(st);
        if (answer == PACK_NONE) s->bound = wanted + s->unit;
    }
    return OT_OK;
}

/* One round of questions between the bound and the best height, by halving. */
static ot_status descend(packer *s, int64_t goal, uint32_t round, int64_t steps)
{
    int64_t refused = ot_max(s->bound, goal) - s->unit; /* not reached in this round */
    int64_t wanted = ot_max(s->bound, goal);
    while (s->height > ot_max(s->bound, goal) && refused + s->unit < s->height && !exhausted(s)) {
        ot_arena *a = ot_arena_new();
        pack_answer answer;
        ot_status st = a ? ask_all(s, wanted, round, steps, a, &answer) : OT_E_NOMEM;
        ot_arena_free(a);
        OT_TRY(st);
        if (answer == PACK_NONE) s->bound = ot_max(s->bound, wanted + s->unit);
        if (answer != PACK_FOUND) refused = wanted;
        int64_t between = (s->height - refused) / s->unit / 2;
        wanted = refused + ot_max(1, between) * s->unit;
    }
    return OT_OK;
}

static ot_status minimise(packer *s, int64_t goal)
{
    for (uint32_t round = 0; s->height > ot_max(s->bound, goal) && !exhausted(s); round++)
        OT_TRY(descend(s, goal, round, FIRST_STEPS << (round < 20 ? round : 20)));
    return OT_OK;
}

/* Only heuristics: until the goal, the steps or the time are reached. */
static ot_status improve_on(packer *s, int64_t goal)
{
    for (uint64_t seed = 1; s->height > goal && !exhausted(s); seed++)
        OT_TRY(improve(s, goal, seed, INT64_MAX));
    return OT_OK;
}

/* goal: the height below which nothing is gained (another part is as tall). */
static ot_status solve_part(packer *s, int64_t goal)
{
    pack_budget first = {.deadline = s->deadline};
    OT_TRY(pack_greedy(s->p, NULL, &first, s->best, &s->height));
    s->timed_out |= first.timed_out;
    int64_t enough = s->o->capacity > 0 ? s->o->capacity : ot_max(s->bound, goal);
    if (s->height <= enough || (s->o->capacity > 0 && s->bound > s->o->capacity)) return OT_OK;
    if (s->p->n > SEARCH_ITEMS_MAX) return improve_on(s, enough);
    OT_TRY(improve(s, enough, 0, IMPROVE_STEPS));
    return s->o->capacity > 0 ? fit(s, s->o->capacity) : minimise(s, goal);
}

/* ---- the whole ---- */

typedef struct part_order {
    int64_t bound;
    uint32_t part;
} part_order;

static int compare_parts(const void *pa, const void *pb)
{
    const part_order *a = pa, *b = pb;
    if (a->bound != b->bound) return a->bound > b->bound ? -1 : 1;
    return a->part < b->part ? -1 : a->part > b->part;
}

/* Parts with the highest bound first: the others need not get lower than what that takes. */
static ot_status solve_parts(const ot_pack_problem *p, packer *s, ot_arena *a, int64_t *offsets,
                             ot_pack_result *r)
{
    pack_parts parts;
    OT_TRY(pack_split(p, a, &parts));
    part_order *order = OT_NEW_N(a, part_order, parts.n + 1u);
    int64_t *best = OT_NEW_N(a, int64_t, p->n + 1u);
    if (!order || !best) return OT_E_NOMEM;
    for (uint32_t k = 0; k < parts.n; k++) {
        ot_pack_problem q = {parts.items + parts.begin[k], parts.begin[k + 1] - parts.begin[k]};
        order[k].part = k;
        OT_TRY(ot_pack_find_bound(&q, &order[k].bound));
    }
    qsort(order, parts.n, sizeof *order, compare_parts);
    int64_t bound = ot_max(r->lower_bound, r->height); /* so far only what cannot lie lower */
    for (uint32_t k = 0; k < parts.n; k++) {
        uint32_t part = order[k].part, begin = parts.begin[part];
        ot_pack_problem q = {parts.items + begin, parts.begin[part + 1] - begin};
        s->p = &q;
        s->best = best + begin;
        s->bound = order[k].bound;
        s->unit = pack_unit(&q);
        OT_TRY(solve_part(s, ot_max(r->height, bound)));
        r->height = ot_max(r->height, s->height);
        bound = ot_max(bound, s->bound);
        for (uint32_t j = 0; j < q.n; j++) offsets[parts.source[begin + j]] = s->best[j];
    }
    r->found = s->o->capacity == 0 || r->height <= s->o->capacity;
    r->proved = r->found ? r->height <= bound : bound > s->o->capacity;
    return OT_OK;
}

/* Items that take no part: anywhere that their own rules allow. */
static void place_empty(const ot_pack_problem *p, int64_t *offsets, int64_t *height)
{
    for (uint32_t k = 0; k < p->n; k++) {
        offsets[k] = ot_max(p->items[k].fixed, 0);
        if (!pack_takes_part(&p->items[k]))
            *height = ot_max(*height, offsets[k] + p->items[k].size);
    }
}

ot_status ot_pack(const ot_pack_problem *p, const ot_pack_options *o, ot_diag *d, int64_t *offsets,
                  ot_pack_result *r)
{
    double start = ot_now();
    *r = (ot_pack_result){0};
    OT_TRY(pack_validate(p, d));
    if (ot_pack_find_bound(p, &r->lower_bound) != OT_OK) return ot_fail_nomem(d);
    ot_arena *a = ot_arena_new();
    packer s = {.o = o,
                .threads = o->threads ? o->threads : 1,
                .deadline = o->time_limit > 0 ? start + o->time_limit : 0,
                .steps_left = o->step_limit > 0   ? o->step_limit
                              : o->time_limit > 0 ? INT64_MAX
                                                  : default_steps(p->n)};
    place_empty(p, offsets, &r->height);
    ot_status st = a ? solve_parts(p, &s, a, offsets, r) : OT_E_NOMEM;
    ot_arena_free(a);
    r->steps = s.steps;
    r->timed_out = s.timed_out && !r->proved && !(r->found && o->capacity > 0);
    r->seconds = ot_now() - start;
    return st == OT_E_NOMEM ? ot_fail_nomem(d) : st;
}
