/* Footprints: every figure made a second time, statement by statement, from the plan alone; the
 * prices of other capacities against plans made there. */
#include "planmem_check.h"
#include "tk/planmem/footprint.h"

static uint32_t rnd(uint64_t *s, uint32_t n)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*s >> 33) % n;
}

/* ---- the same figures by definition ---- */

static bool alive(const ot_buffer *b, int64_t position)
{
    for (uint32_t s = 0; s < b->n_live; s++)
        if (b->live[s].lower <= position && position < b->live[s].upper) return true;
    return false;
}

static int64_t bytes(planned r, uint32_t b)
{
    return r.p->lifetimes->buffers[b].size * r.p->multi[b];
}

static bool is_listed(planned r, uint32_t b, const ot_footprint_buffer *list, uint32_t n)
{
    const char *name = r.k->values[r.p->lifetimes->buffers[b].values[0]].name;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) return true;
    return false;
}

/* Bytes alive, without those of a list. */
static int64_t live_without(planned r, ot_scope s, int64_t position,
                            const ot_footprint_buffer *list, uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t b = 0; b < r.p->lifetimes->n_buffers; b++) {
        const ot_buffer *u = &r.p->lifetimes->buffers[b];
        if (u->scope == s && alive(u, position) && !is_listed(r, b, list, n)) sum += bytes(r, b);
    }
    return sum;
}

static int64_t most_without(planned r, ot_scope s, const ot_footprint_buffer *list, uint32_t n)
{
    int64_t most = 0;
    for (int64_t at = 0; at <= r.k->n_stmts; at++)
        most = ot_max(most, live_without(r, s, at, list, n));
    return most;
}

/* The lowest place for 4 KiB beside what is alive at a statement, by trying each. */
static int64_t place(planned r, ot_scope s, int64_t position, int64_t align)
{
    for (int64_t at = 0;; at += align) {
        bool is_free = true;
        for (uint32_t b = 0; b < r.p->lifetimes->n_buffers && is_free; b++) {
            const ot_buffer *u = &r.p->lifetimes->buffers[b];
            if (u->scope != s || !alive(u, position)) continue;
            for (uint32_t k = 0; k < r.p->multi[b]; k++)
                is_free = is_free && (r.p->offsets[b][k] >= at + OT_FOOTPRINT_STEP ||
                                      r.p->offsets[b][k] + u->size <= at);
        }
        if (is_free) return at;
    }
}

/* ---- one footprint ---- */

static void check_line(planned r, const ot_footprint_scope *s, const ot_footprint_line *x,
                       int64_t position)
{
    const ot_scope_plan *p = s->plan;
    const int64_t live = live_without(r, p->scope, position, NULL, 0);
    const int64_t at = place(r, p->scope, position, 32), top = at + OT_FOOTPRINT_STEP;
    const int64_t missing = live + OT_FOOTPRINT_STEP - p->capacity;
    assert_int_equal(x->live, live);
    if (top <= p->height || top <= p->capacity) {
        assert_int_equal(x->next, top <= p->height ? OT_NEXT_HOLE : OT_NEXT_GROWS);
        assert_int_equal(x->offset, at);
        assert_int_equal(x->growth, ot_max(0, top - p->height));
        return;
    }
    assert_int_equal(x->next, missing > 0 ? OT_NEXT_GOES : OT_NEXT_MOVES);
    assert_int_equal(x->missing, ot_max(0, missing));
    if (x->n_goes == 0) return;
    int64_t sum = 0;
    for (uint32_t i = 0; i < x->n_goes; i++) sum += x->goes[i].bytes;
    assert_int_equal(live - live_without(r, p->scope, position, x->goes, x->n_goes), sum);
    assert_true(sum >= missing);
    for (uint32_t i = 0; i < x->n_goes; i++) assert_true(sum - x->goes[i].bytes < missing);
}

/* Every statement at which something is alive belongs to the next line of the list. */
static uint32_t check_lines(planned r, const ot_footprint_scope *s)
{
    uint32_t at = 0, kinds = 0;
    for (int64_t position = 0; position < r.k->n_stmts; position++) {
        if (live_without(r, s->plan->scope, position, NULL, 0) == 0) continue;
        const uint32_t line = r.k->stmts[position].line;
        while (at < s->n_lines && s->lines[at].last_line < line) at++;
        assert_true(at < s->n_lines && s->lines[at].line <= line);
        check_line(r, s, &s->lines[at], position);
        kinds |= 1u << s->lines[at].next;
    }
    return kinds;
}

static void check_limits(planned r, const ot_footprint_scope *s)
{
    const ot_scope scope = s->plan->scope;
    const int64_t peak = most_without(r, scope, NULL, 0);
    int64_t sum = 0;
    assert_int_equal(s->lines[s->peak].live, peak);
    for (uint32_t i = 0; i < s->n_at_peak; i++) sum += s->at_peak[i].bytes;
    assert_int_equal(sum, peak);
    if (peak >= OT_FOOTPRINT_STEP) assert_true(s->n_goes > 0);
    if (s->n_goes == 0) return;
    assert_true(most_without(r, scope, s->goes, s->n_goes) <= peak - OT_FOOTPRINT_STEP);
    for (uint32_t i = 0; i < s->n_goes; i++) { /* all but one */
        ot_footprint_buffer rest[OT_FOOTPRINT_GO_MAX];
        uint32_t n = 0;
        for (uint32_t q = 0; q < s->n_goes; q++)
            if (q != i) rest[n++] = s->goes[q];
        assert_true(most_without(r, scope, rest, n) > peak - OT_FOOTPRINT_STEP);
    }
}

static void check_price(planned r, const ot_footprint_price *x, ot_mem_options o)
{
    const ot_tk_machine t = small_target();
    ot_diag d = {0};
    ot_mem_plan *p = NULL;
    if (x->capacity == 0) return;
    o.capacity = x->capacity;
    ot_status s = ot_mem_plan_kernel(r.k, "k.tk", &t, &o, &d, &p);
    if (x->fits) {
        assert_int_equal(s, OT_OK);
        assert_int_equal(p->scopes[0].level, x->plan.level);
        assert_int_equal(p->scopes[0].mode, x->plan.mode);
        assert_int_equal(p->scopes[0].n_cross_pipe, x->plan.n_cross_pipe);
        assert_true(x->certain);
    } else if (x->certain) {
        assert_int_equal(s, OT_E_BUDGET);
    }
    ot_mem_plan_free(p);
}

static ot_footprint footprint(planned r, const ot_mem_options *o, ot_arena *a)
{
    const ot_tk_machine t = small_target();
    ot_footprint f;
    ot_diag d = {0};
    assert_int_equal(ot_mem_footprint(r.k, r.p, &t, o, a, &d, &f), OT_OK);
    return f;
}

/* ---- tests ---- */

/* Buffers of ub in a loop and out of it, read by what is written later. */
static void random_text(char *text, size_t room, uint64_t seed)
{
    const uint32_t n = 4 + rnd(&seed, 24);
    size_t at = (size_t)snprintf(text, room, "kernel k {\n param x: 4096 f32 @gm\n");
    for (uint32_t i = 0; i < n; i++) {
        uint32_t size = 16 << rnd(&seed, 8);
        at += (size_t)snprintf(text + at, room - at, " alloc b%u: %u f32 @ub%s\n", i, size,
                               rnd(&seed, 4) ? "" : " multi=2");
    }
    at += (size_t)snprintf(text + at, room - at, " for i in 0..4 {\n");
    for (uint32_t i = 0; i < n; i++) {
        if (i == n / 2 + 1) at += (size_t)snprintf(text + at, room - at, " }\n");
        uint32_t from = i > n / 2 ? n / 2 + 1 : 0;
        if (i == from || rnd(&seed, 4) == 0)
            at += (size_t)snprintf(text + at, room - at, " b%u = vector.fill(value=1)\n", i);
        else
            at += (size_t)snprintf(text + at, room - at, " b%u = vector.f(b%u, b%u)\n", i,
                                   from + rnd(&seed, i - from), i - 1);
    }
    snprintf(text + at, room - at, "}\n");
}

static void random_footprints(void **state)
{
    (void)state;
    uint32_t kinds = 0, prices = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        char text[8192];
        random_text(text, sizeof text, seed);
        ot_mem_options o = options(seed % 5 ? OT_MEM_AUTO : OT_MEM_REUSE, 0);
        planned r = plan_with(text, &o);
        /* from what must be alive to what does without sharing */
        const int64_t low = scope(r, OT_SCOPE_UB)->lower_bound, sum = scope(r, OT_SCOPE_UB)->sum;
        done(r);
        o.capacity = low + (sum - low) * (int64_t)(seed % 4) / 3 + (seed % 3 ? 0 : 4096);
        ot_kernel *k = parse(text);
        const ot_tk_machine t = small_target();
        ot_diag d = {0};
        r = (planned){k, NULL};
        if (ot_mem_plan_kernel(k, "k.tk", &t, &o, &d, &r.p) == OT_OK) {
            ot_arena *a = ot_arena_new();
            ot_footprint f = footprint(r, &o, a);
            assert_int_equal(f.n_scopes, 1);
            kinds |= check_lines(r, &f.scopes[0]);
            check_limits(r, &f.scopes[0]);
            check_price(r, &f.scopes[0].less, o);
            check_price(r, &f.scopes[0].more, o);
            prices |= 1u << (f.scopes[0].less.capacity > 0 ? 1 + f.scopes[0].less.fits : 0);
            ot_arena_free(a);
        }
        done(r);
    }
    assert_int_equal(kinds, 15); /* every kind of a line */
    assert_int_equal(prices, 7); /* no capacity left, nothing fits, something does */
}

/* a and c are alive beside b, by turns: 4 KiB more take the smaller one's place where it is. */
static void what_goes_is_the_smallest_that_does(void **state)
{
    (void)state;
    const char *text = "kernel k {\n param y: 4096 f32 @gm\n alloc a: 4096 f32 @ub\n"
                       " alloc b: 2048 f32 @ub\n alloc c: 1024 f32 @ub\n"
                       " a = vector.fill(value=1)\n b = vector.fill(value=1)\n"
                       " c = vector.fill(value=1)\n store y <- a\n store y[0:2048] <- b\n"
                       " store y[0:1024] <- c\n}\n";
    const ot_mem_options o = options(OT_MEM_AUTO, 28672); /* all of it, and nothing more */
    planned r = plan_with(text, &o);
    ot_arena *a = ot_arena_new();
    const ot_footprint f = footprint(r, &o, a);
    const ot_footprint_scope *s = &f.scopes[0];
    const ot_footprint_line *x = &s->lines[s->peak];
    assert_int_equal(x->live, 28672);
    assert_int_equal(x->line, 8);
    assert_int_equal(x->last_line, 9);
    assert_int_equal(x->next, OT_NEXT_GOES);
    assert_int_equal(x->n_goes, 1);
    assert_string_equal(x->goes[0].name, "c");
    assert_string_equal(s->at_peak[0].name, "a");
    assert_string_equal(s->goes[0].name, "c");
    assert_false(s->less.fits);
    assert_true(s->less.certain && s->more.fits);
    assert_int_equal(s->lines[0].next, OT_NEXT_HOLE);
    ot_arena_free(a);
    done(r);
}

/* A plan that shares within a pipe only: with 4 KiB less it must share across pipes. */
static void less_memory_costs_levels(void **state)
{
    (void)state;
    const char *text = "kernel k {\n param x: 4096 f32 @gm\n param y: 1024 f32 @gm\n"
                       " alloc a: 1024 f32 @ub\n alloc b: 1024 f32 @ub\n alloc c: 1024 f32 @ub\n"
                       " alloc d: 1024 f32 @ub\n load a <- x[0:1024]\n b = vector.f(a)\n"
                       " c = vector.f(b)\n d = vector.f(c)\n store y <- d\n}\n";
    const ot_mem_options o = options(OT_MEM_REUSE, 4 * 4096);
    planned r = plan_with(text, &o);
    ot_arena *a = ot_arena_new();
    const ot_footprint f = footprint(r, &o, a);
    assert_int_equal(scope(r, OT_SCOPE_UB)->mode, OT_MEM_SEQUENTIAL);
    assert_true(f.scopes[0].less.fits);
    assert_int_equal(f.scopes[0].less.plan.mode, OT_MEM_REUSE);
    assert_int_equal(f.scopes[0].less.plan.n_cross_pipe, 1);
    ot_arena_free(a);
    done(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_footprints),
                                       cmocka_unit_test(what_goes_is_the_smallest_that_does),
                                       cmocka_unit_test(less_memory_costs_levels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
