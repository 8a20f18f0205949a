/* Random problems and kernels, planned in all modes; plans are checked by code of their own. */
#include "planmem_check.h"

/* ---- random problems ---- */

#define MOST 64

typedef struct problem {
    ot_tk_stmt stmts[512]; /* a loop with a loop in it: [100, 400) and [200, 300) */
    ot_kernel k;
    ot_buffer b[MOST];
    const ot_buffer *list[MOST];
    ot_span live[MOST][2];
    uint32_t n;
    int64_t peak;
} problem;

static uint32_t rnd(uint64_t *s, uint32_t n)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*s >> 33) % n;
}

static int64_t bytes_alive(const problem *p, int64_t position)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t s = 0; s < p->b[i].n_live; s++)
            if (p->live[i][s].lower <= position && position < p->live[i][s].upper)
                sum += p->b[i].size * p->b[i].multi;
    return sum;
}

static void random_problem(problem *p, uint64_t seed)
{
    static const uint32_t pipes[] = {
        1u << OT_PIPE_VECTOR, 1u << OT_PIPE_VECTOR, 1u << OT_PIPE_DMA_IN | 1u << OT_PIPE_VECTOR,
        1u << OT_PIPE_DMA_OUT | 1u << OT_PIPE_VECTOR, 1u << OT_PIPE_CUBE};
    memset(p, 0, sizeof *p);
    for (uint32_t i = 0; i < 512; i++) p->stmts[i].parent = OT_NONE;
    for (uint32_t i = 101; i < 400; i++) p->stmts[i].parent = i > 200 && i < 300 ? 200 : 100;
    p->k = (ot_kernel){.stmts = p->stmts, .n_stmts = 512};
    p->n = 3 + rnd(&seed, MOST - 3);
    uint32_t window = 10 + rnd(&seed, 200), start = rnd(&seed, 200);
    for (uint32_t i = 0; i < p->n; i++) {
        ot_buffer *b = &p->b[i];
        uint32_t kind = rnd(&seed, 5), from = start + i * window / p->n, len = 1 + rnd(&seed, 12);
        memset(b->fixed, -1, sizeof b->fixed);
        b->size = 1 + rnd(&seed, rnd(&seed, 2) ? 100 : 2000);
        b->align = 32 << rnd(&seed, 2);
        b->multi = rnd(&seed, 3) ? 1 : 2 + rnd(&seed, 2);
        b->pipes = pipes[kind];
        b->dma = kind == 2 || kind == 3;
        p->live[i][0] = (ot_span){from, from + len};
        p->live[i][1] = (ot_span){from + len + 3, from + len + 3 + rnd(&seed, 9) + 1};
        b->live = p->live[i];
        b->n_live = rnd(&seed, 40) == 0 ? 0 : 1 + (rnd(&seed, 5) == 0);
        uint32_t to = from + len + (b->n_live == 2 ? 12 : 0);
        b->loop = from > 200 && to < 300 ? 200 : from > 100 && to < 400 ? 100 : OT_NONE;
        if (rnd(&seed, 30) == 0 && b->multi == 1) b->fixed[0] = 128 * rnd(&seed, 8);
        p->list[i] = b;
    }
    for (uint32_t i = 0; i < p->n; i++) /* fixed ones must not meet */
        for (uint32_t j = 0; j < i; j++)
            if (p->b[i].fixed[0] >= 0 && p->b[j].fixed[0] >= 0) p->b[i].fixed[0] = -1;
    for (int64_t t = 0; t < 512; t++) p->peak = ot_max(p->peak, bytes_alive(p, t));
}

/* Fill the memory statement by statement; a byte that two live slots claim is a fault.
 * Independent of spans as intervals. */
static bool two_owners(const problem *p, int64_t (*offsets)[OT_TK_MULTI_MAX], const uint32_t *multi,
                       int64_t height)
{
    int16_t *owner = malloc((size_t)(height + 1) * sizeof *owner);
    bool bad = false;
    for (int64_t t = 0; t < 512 && !bad; t++) {
        memset(owner, -1, (size_t)(height + 1) * sizeof *owner);
        for (uint32_t i = 0; i < p->n; i++)
            for (uint32_t s = 0; s < p->b[i].n_live; s++) {
                if (t < p->live[i][s].lower || t >= p->live[i][s].upper) continue;
                for (uint32_t k = 0; k < multi[i]; k++)
                    for (int64_t x = offsets[i][k]; x < offsets[i][k] + p->b[i].size; x++) {
                        bad |= x < 0 || x >= height || owner[x] != -1;
                        if (x >= 0 && x < height) owner[x] = (int16_t)i;
                    }
            }
    }
    free(owner);
    return bad;
}

/* Level rules, written down again: of pairs that share, with the slot counts of the plan. */
static bool breaks_level(const problem *p, int64_t (*offsets)[OT_TK_MULTI_MAX],
                         const uint32_t *multi, ot_reuse_level level)
{
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < p->n; j++)
            for (uint32_t x = 0; x < multi[i]; x++)
                for (uint32_t y = 0; y < multi[j]; y++) {
                    const ot_buffer *a = &p->b[i], *b = &p->b[j];
                    if (i == j || !a->n_live || !b->n_live) continue;
                    if (offsets[i][x] >= offsets[j][y] + b->size ||
                        offsets[j][y] >= offsets[i][x] + a->size)
                        continue;
                    /* all non-DMA kinds here have one pipe */
                    bool same = a->pipes == b->pipes && !a->dma && !b->dma;
                    if (same || level == OT_LEVEL_0) continue;
                    if (level >= OT_LEVEL_3) return true;
                    if (level == OT_LEVEL_2 && a->loop != OT_NONE && a->loop == b->loop)
                        return true;
                    bool inside = multi[i] > 1 && a->loop != OT_NONE &&
                                  (b->loop == a->loop || (a->loop == 100 && b->loop == 200));
                    if (inside && (b->loop != a->loop || multi[i] != multi[j] || x != y))
                        return true;
                }
    return false;
}

typedef struct outcome {
    bool fits;
    int64_t needed;
    ot_scope_plan stats;
    int64_t offsets[MOST][OT_TK_MULTI_MAX];
    uint32_t multi[MOST];
    ot_reuse_level level[MOST];
} outcome;

static void planmem(const problem *p, int64_t capacity, outcome *o)
{
    ot_arena *a = ot_arena_new();
    ot_diag d = {0};
    memset(o, 0, sizeof *o);
    ot_scope_places at = {
        .offsets = o->offsets, .multi = o->multi, .level = o->level, .stats = &o->stats};
    assert_int_equal(ot_planmem(p->list, p->n, &p->k, capacity, a, &d, &at), OT_OK);
    o->fits = at.fits;
    o->needed = at.needed;
    ot_arena_free(a);
}

static void check_outcome(const problem *p, int64_t capacity, const outcome *o, uint64_t seed)
{
    int64_t height = 0;
    uint32_t upgraded = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const ot_buffer *b = &p->b[i];
        upgraded += o->multi[i] > b->multi;
        if (o->multi[i] > b->multi && b->multi > 1)
            fail_msg("seed %llu: a multi-buffer upgraded", (unsigned long long)seed);
        for (uint32_t k = 0; k < o->multi[i] && b->n_live; k++) {
            height = ot_max(height, o->offsets[i][k] + b->size);
            if (o->offsets[i][k] % b->align)
                fail_msg("seed %llu: alignment", (unsigned long long)seed);
        }
        if (b->n_live && b->fixed[0] >= 0 && o->offsets[i][0] != b->fixed[0])
            fail_msg("seed %llu: moved", (unsigned long long)seed);
    }
    if (two_owners(p, (int64_t(*)[OT_TK_MULTI_MAX])o->offsets, o->multi, height))
        fail_msg("seed %llu: overlap", (unsigned long long)seed);
    if (breaks_level(p, (int64_t(*)[OT_TK_MULTI_MAX])o->offsets, o->multi, o->stats.level))
        fail_msg("seed %llu: not level %d", (unsigned long long)seed, o->stats.level);
    assert_int_equal(o->stats.n_upgraded, upgraded);
    assert_int_equal(o->stats.height, height);
    if (o->fits) assert_int_equal(o->needed, height);
    assert_true(o->fits == (o->needed <= capacity));
    assert_true(o->fits ? height <= capacity : o->needed > capacity && o->needed >= p->peak);
    /* two attempts of at most 200 rollbacks each */
    assert_true(o->stats.rollbacks <= 400 && o->stats.restarts <= 1);
}

static void random_plans_are_valid(void **state)
{
    (void)state;
    static problem p;
    static outcome o, again;
    uint32_t levels[OT_LEVEL_NONE + 1] = {0}, fit = 0, restarted = 0, rolled = 0, upgraded = 0,
                                    tries = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        random_problem(&p, seed);
        const int64_t capacities[] = {p.peak, p.peak + p.peak / 8, p.peak * 3 / 2, p.peak * 3};
        int64_t capacity = ot_max(capacities[seed % 4], 2400); /* above every fixed end */
        planmem(&p, capacity, &o);
        check_outcome(&p, capacity, &o, seed);
        planmem(&p, capacity, &again);
        assert_memory_equal(o.offsets, again.offsets, sizeof *o.offsets * p.n);
        tries++;
        if (!o.fits) {
            planmem(&p, o.needed, &again); /* what it says is needed is enough */
            assert_true(again.fits);
            continue;
        }
        fit++;
        levels[o.stats.level]++;
        restarted += o.stats.restarts;
        rolled += o.stats.rollbacks > 0;
        upgraded += o.stats.n_upgraded;
    }
    print_message(
        "%u of %u fit, levels 3..0: %u %u %u %u, %u with rollback, %u with restart, %u upgrades\n",
        fit, tries, levels[3], levels[2], levels[1], levels[0], rolled, restarted, upgraded);
    assert_true(fit > tries * 7 / 10);
    assert_true(levels[3] > 0 && levels[2] > 0 && levels[1] > 0 && levels[0] > 0 && rolled > 0 &&
                restarted > 0 && upgraded > 0);
}

/* Few buffers, few places: an attempt that made a plan twice would use up its 200 rollbacks. */
static void failed_plans_are_never_made_twice(void **state)
{
    (void)state;
    static problem p;
    static outcome o;
    uint32_t hopeless = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        random_problem(&p, seed);
        p.n = 4 + (uint32_t)(seed % 3);
        p.peak = 0;
        uint64_t s = seed;
        for (uint32_t i = 0; i < p.n; i++) {
            p.list[i] = &p.b[i];
            p.b[i].live = p.live[i];
            p.b[i].pipes = 1u << (i % 2 ? OT_PIPE_VECTOR : OT_PIPE_CUBE);
            p.b[i].dma = false;
            p.b[i].size = p.b[i].align = 32;
            p.b[i].size *= 1 + rnd(&s, 4);
            p.b[i].multi = 1;
            p.b[i].fixed[0] = -1;
            p.b[i].n_live = 1;
            p.live[i][0] = (ot_span){i, i + 1 + rnd(&s, 4)};
        }
        for (int64_t t = 0; t < 16; t++) p.peak = ot_max(p.peak, bytes_alive(&p, t));
        planmem(&p, p.peak, &o);
        check_outcome(&p, p.peak, &o, seed);
        if (o.fits) continue;
        hopeless++;
        /* a plan is a buffer at an offset; there are two attempts */
        assert_true(o.stats.rollbacks <= 2 * p.n * (uint32_t)(p.peak / 32));
    }
    assert_true(hopeless > 0);
}

/* ---- random kernels, all modes ---- */

/* Loads, vector operations and stores in and around a loop; every operation reads what was
 * written before it. */
static void random_kernel(char *text, size_t room, uint64_t seed)
{
    size_t n = (size_t)snprintf(
        text, room,
        "kernel k {\n param x: 4096 f32 @gm\n param y: 4096 f32 @gm\n workspace w: 64 f32\n");
    uint32_t ops = 4 + rnd(&seed, 16), made = 1, size = 0;
    n += (size_t)snprintf(
        text + n, room - n,
        " alloc t0: 64 f32 @ub\n load t0 <- x[0:64]\n store w <- t0\n for i in 0..8 {\n");
    for (uint32_t i = 0; i < ops; i++, made++) {
        size = 8 + 8 * rnd(&seed, 12);
        uint32_t a = rnd(&seed, 4) ? made - 1 : rnd(&seed, made), b = rnd(&seed, made);
        bool load = i == 0 || rnd(&seed, 4) == 0;
        n += (size_t)snprintf(text + n, room - n, "  alloc t%u: %u f32 @ub%s\n", made, size,
                              load && rnd(&seed, 3) ? " multi=2" : "");
        if (load)
            n += (size_t)snprintf(text + n, room - n, "  load t%u <- x[8*i:8*i+%u]\n", made, size);
        else
            n += (size_t)snprintf(text + n, room - n, "  t%u = vector.mix(t%u, t%u)\n", made, a, b);
    }
    snprintf(
        text + n, room - n,
        "  store y[0:%u] <- t%u\n }\n alloc v: 64 f32 @ub\n load v <- w\n store y[0:64] <- v\n}\n",
        size, made - 1);
}

/* As two_owners, for one scope of a plan. */
static bool kernel_two_owners(planned r, const ot_scope_plan *s)
{
    int16_t *owner = malloc((size_t)(s->height + 1) * sizeof *owner);
    bool bad = false;
    for (uint32_t t = 0; t < r.k->n_stmts; t++) {
        memset(owner, -1, (size_t)(s->height + 1) * sizeof *owner);
        for (uint32_t i = 0; i < r.p->lifetimes->n_buffers; i++) {
            const ot_buffer *b = &r.p->lifetimes->buffers[i];
            bool alive = false;
            for (uint32_t q = 0; q < b->n_live; q++)
                alive |= b->live[q].lower <= t && t < b->live[q].upper;
            for (uint32_t k = 0; alive && b->scope == s->scope && k < r.p->multi[i]; k++)
                for (int64_t x = r.p->offsets[i][k]; x < r.p->offsets[i][k] + b->size; x++) {
                    bad |= x < 0 || x >= s->height || owner[x] != -1;
                    if (x >= 0 && x < s->height) owner[x] = (int16_t)i;
                }
        }
    }
    free(owner);
    return bad;
}

static void random_kernels_in_all_modes(void **state)
{
    (void)state;
    static char text[8192];
    uint32_t planned_by[4] = {0}, refused = 0;
    ot_tk_machine t = small_target();
    for (uint64_t seed = 1; seed <= 150; seed++) {
        random_kernel(text, sizeof text, seed);
        ot_mem_options o = options(OT_MEM_SEARCH, 1 << 20);
        o.lifetimes.no_in_place = seed % 2 == 0;
        planned best = plan_with(text, &o);
        int64_t least = scope(best, OT_SCOPE_UB)->height,
                bound = scope(best, OT_SCOPE_UB)->lower_bound;
        bool proved = scope(best, OT_SCOPE_UB)->proved;
        done(best);
        assert_true(least >= bound);
        const int64_t capacities[] = {least - 32, least, least + least / 4, 1 << 20};
        for (int c = 0; c < 4; c++)
            for (int mode = OT_MEM_AUTO; mode <= OT_MEM_SEARCH; mode++) {
                o.mode = (ot_mem_mode)mode;
                o.capacity = capacities[c];
                o.workspace_reuse = seed % 3 == 0;
                ot_diag d = {0};
                planned r = {parse(text), NULL};
                ot_status s = ot_mem_plan_kernel(r.k, "k.tk", &t, &o, &d, &r.p);
                if (s == OT_OK) {
                    const ot_scope_plan *ub = scope(r, OT_SCOPE_UB);
                    assert_true(ub->height <= o.capacity && ub->lower_bound >= bound &&
                                ub->height >= bound);
                    assert_true(ub->mode != OT_MEM_SEQUENTIAL || ub->height == ub->sum);
                    assert_true(c > 0 || !proved);
                    for (uint32_t q = 0; q < r.p->n_scopes; q++)
                        if (kernel_two_owners(r, &r.p->scopes[q]))
                            fail_msg("seed %llu: overlap\n%s", (unsigned long long)seed, text);
                    planned_by[ub->mode]++;
                } else {
                    long long requires = 0, available = 0;
                    const char *p = strstr(d.message, "requires ");
                    assert_int_equal(s, OT_E_BUDGET);
                    assert_non_null(p);
                    assert_int_equal(
                        sscanf(p, "requires %lld bits while %lld bits", &requires, &available), 2);
                    assert_true(available == o.capacity * 8 && requires > available &&
                                requires >= bound * 8);
                    assert_true(c == 0 || mode == OT_MEM_SEQUENTIAL || mode == OT_MEM_REUSE);
                    refused++;
                }
                done(r);
            }
    }
    print_message("sequential %u, reuse %u, search %u, refused %u\n", planned_by[OT_MEM_SEQUENTIAL],
                  planned_by[OT_MEM_REUSE], planned_by[OT_MEM_SEARCH], refused);
    assert_true(planned_by[OT_MEM_SEQUENTIAL] && planned_by[OT_MEM_REUSE] &&
                planned_by[OT_MEM_SEARCH] && refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans_are_valid),
        cmocka_unit_test(failed_plans_are_never_made_twice),
        cmocka_unit_test(random_kernels_in_all_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
