/* Lifetimes and memory plans of random kernels, run with real offsets (kernel_interp.h): no
 * value is overwritten while it is still to be read, whatever the trip counts and branches, and
 * a buffer is alive exactly where it holds something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cases.h"
#include "kernel_gen.h"
#include "kernel_interp.h"

#define TEXT_MAX (1 << 19)

static ot_tk_machine target(int64_t capacity)
{
    ot_tk_machine t = {0};
    for (int s = 0; s < OT_SCOPE_COUNT; s++) {
        t.scopes[s].bytes = s == OT_SCOPE_GM ? 0 : capacity;
        t.scopes[s].alignment = s == OT_SCOPE_UB ? 4 : 1 + s;
    }
    return t;
}

static ot_kernel *parse(const char *text, size_t n)
{
    ot_diag d = {0};
    ot_kernel *k = NULL;
    if (ot_kernel_parse("k.tk", text, n, &d, &k) != OT_OK) fail_msg("%s\n%s", d.message, text);
    return k;
}

/* Kernel number `seed`; multi-buffers only where they may be. apart: no two buffers are close to
 * each other in the order of definitions, so that no set of neighbours has more than one of
 * them. */
static ot_kernel *random_kernel(uint64_t seed, int size, bool parts, bool apart, char *text)
{
    ot_tk_machine t = target(1 << 20);
    for (int multi = 1;; multi--) {
        size_t n = kg_kernel(seed, size, parts, multi, apart ? 63 : 0, text, TEXT_MAX);
        ot_kernel *k = parse(text, n);
        ot_lifetimes *l;
        ot_diag d = {0};
        ot_status s = ot_lifetimes_find(k, "k.tk", &t, &(ot_lifetime_options){0}, &d, &l);
        ot_lifetimes_free(l);
        if (s == OT_OK) return k;
        if (!multi || !strstr(d.message, "multi="))
            fail_msg("seed %u: %s\n%s", (unsigned)seed, d.message, text);
        ot_kernel_free(k);
    }
}

/* ---- layouts ---- */

typedef struct layout {
    ki_layout lay;
    ot_arena *arena;
} layout;

static bool meet(const ot_buffer *a, const ot_buffer *b)
{
    for (uint32_t i = 0; i < a->n_live; i++) {
        for (uint32_t j = 0; j < b->n_live; j++) {
            if (a->live[i].lower < b->live[j].upper && b->live[j].lower < a->live[i].upper)
                return true;
        }
    }
    return false;
}

/* Lowest offset >= at for slot s of buffer b, beside all placed slots that it must not share with.
 */
static int64_t lowest(const layout *x, uint32_t b, uint32_t s, bool apart)
{
    const ot_buffer *me = &x->lay.lifetimes->buffers[b];
    int64_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t o = 0; o <= b; o++) {
            const ot_buffer *other = &x->lay.lifetimes->buffers[o];
            if (other->scope != me->scope || !other->n_live ||
                !(o == b || apart || meet(me, other)))
                continue;
            for (uint32_t k = 0; k < (o == b ? s : other->multi); k++) {
                int64_t lo = x->lay.offsets[o][k];
                if (at >= lo + other->size || lo >= at + me->size) continue;
                at = ot_ceil_div(lo + other->size, me->align) * me->align;
                moved = true;
            }
        }
    }
    return at;
}

/* First fit in the order of buffers; apart: nothing shares. */
static layout lay_out(const ot_lifetimes *l, bool apart)
{
    layout x = {.arena = ot_arena_new()};
    x.lay.lifetimes = l;
    x.lay.offsets = ot_alloc_n(x.arena, (size_t)l->n_buffers + 1, sizeof *x.lay.offsets);
    uint32_t *multi = OT_NEW_N(x.arena, uint32_t, (size_t)l->n_buffers + 1);
    x.lay.multi = multi;
    for (uint32_t b = 0; b < l->n_buffers; b++) {
        multi[b] = l->buffers[b].multi;
        for (uint32_t s = 0; s < multi[b] && l->buffers[b].n_live; s++)
            x.lay.offsets[b][s] = lowest(&x, b, s, apart);
    }
    return x;
}

static ot_lifetimes *find(const ot_kernel *k, const ot_lifetime_options *o)
{
    ot_tk_machine t = target(1 << 20);
    ot_diag d = {0};
    ot_lifetimes *l = NULL;
    if (ot_lifetimes_find(k, "k.tk", &t, o, &d, &l) != OT_OK) fail_msg("%s", d.message);
    return l;
}

static void run_all(const ot_kernel *k, const ki_layout *lay, int runs, const char *what,
                    uint64_t seed, const char *text)
{
    static ki m;
    for (int r = 0; r < runs; r++) {
        ki_run(&m, k, lay, seed * 64 + (uint64_t)r, NULL);
        if (m.error[0])
            fail_msg("seed %u, run %d, %s: %s\n%s", (unsigned)seed, r, what, m.error, text);
    }
}

/* ---- lifetimes ---- */

static const ot_lifetime_options OPTIONS[] = {
    {0}, {.restrict_in_place = true}, {.no_in_place = true}, {.hold_multi = true}};

/* Every buffer in memory of its own, filled with poison where it is said to be dead; then first
 * fit. */
static void lifetimes_hold(void **state)
{
    (void)state;
    char *text = malloc(TEXT_MAX);
    uint64_t first = 1, last = CASES(2000);
    uint32_t in_place = 0, copies = 0;
    print_message("seeds %u to %u\n", (unsigned)first, (unsigned)last);
    for (uint64_t seed = first; seed <= last; seed++) {
        ot_kernel *k = random_kernel(seed, 5 + (int)(seed % 40), true, seed % 16 == 0, text);
        for (size_t i = 0; i < 4; i++) {
            ot_lifetimes *l = find(k, &OPTIONS[i]);
            in_place += l->n_in_place;
            copies += l->n_copies;
            for (int apart = 1; apart >= 0; apart--) {
                layout x = lay_out(l, apart);
                x.lay.restricted = OPTIONS[i].restrict_in_place;
                run_all(k, &x.lay, 3, apart ? "apart" : "first fit", seed, text);
                ot_arena_free(x.arena);
            }
            ot_lifetimes_free(l);
        }
        ot_kernel_free(k);
    }
    print_message("%u merged in place, %u copies\n", in_place, copies);
    assert_true(in_place > last / 2 && copies > last / 2);
    free(text);
}

/* Statements at which the buffer is not alive, though it holds something, or the other way
 * round; -1: none. */
static int64_t difference(const ot_kernel *k, const ot_lifetimes *l, uint32_t b, const bool *held)
{
    for (uint32_t i = 0; i < k->n_stmts; i++) {
        const ot_tk_stmt *s = &k->stmts[i];
        /* On the way to a carried value: which of both storages has it between the two, the plan
         * does not say. */
        bool moment = (s->op == OT_TK_YIELD || s->op == OT_TK_END) &&
                      k->stmts[s->mate].op != OT_TK_IF && k->stmts[s->mate].n_out;
        if (ki_live_at(&l->buffers[b], i) != held[(size_t)b * k->n_stmts + i] && !moment) return i;
    }
    return -1;
}

/* A buffer is alive where it holds something in one of many runs, and nowhere else. Without
 * writes of parts, which count as if the rest was still needed. */
static void lifetimes_are_exact(void **state)
{
    (void)state;
    static ki m;
    char *text = malloc(TEXT_MAX);
    uint64_t first = 1, last = CASES(200);
    uint32_t spans = 0;
    print_message("seeds %u to %u\n", (unsigned)first, (unsigned)last);
    for (uint64_t seed = first; seed <= last; seed++) {
        ot_kernel *k = random_kernel(seed, 5 + (int)(seed % 16), false, seed % 8 == 0, text);
        ot_lifetimes *l = find(k, &OPTIONS[seed % 3]);
        layout x = lay_out(l, true);
        x.lay.restricted = OPTIONS[seed % 3].restrict_in_place;
        bool *held = OT_NEW_N(x.arena, bool, (size_t)l->n_buffers * k->n_stmts + 1);
        for (uint64_t r = 0; r < 400; r++) {
            ki_run(&m, k, &x.lay, seed * 1000 + r, held);
            if (m.error[0]) fail_msg("seed %u: %s\n%s", (unsigned)seed, m.error, text);
        }
        for (uint32_t b = 0; b < l->n_buffers; b++) {
            uint32_t v = l->buffers[b].values[0];
            int64_t i = l->buffer_of[v] == b ? difference(k, l, b, held) : -1;
            if (i >= 0)
                fail_msg("seed %u: '%s' at line %u (statement %d): held %d, alive %d\n%s",
                         (unsigned)seed, k->values[v].name, k->stmts[i].line, (int)i,
                         held[(size_t)b * k->n_stmts + (size_t)i],
                         ki_live_at(&l->buffers[b], (uint32_t)i), text);
            spans += l->buffers[b].n_live;
        }
        ot_arena_free(x.arena);
        ot_lifetimes_free(l);
        ot_kernel_free(k);
    }
    print_message("%u spans\n", spans);
    assert_true(spans > 5 * last);
    free(text);
}

/* ---- plans ---- */

static void run_plan(const ot_kernel *k, const ot_mem_plan *p, uint64_t seed, const char *what,
                     const char *text)
{
    ki_layout lay = {p->lifetimes, p->offsets, p->multi, false};
    run_all(k, &lay, 4, what, seed, text);
}

/* Plan and run; the largest height of a scope with a capacity, or -1 when there is no plan. */
static int64_t plan_and_run(const ot_kernel *k, ot_mem_mode mode, int64_t capacity, uint64_t seed,
                            const char *text, uint32_t *levels)
{
    ot_tk_machine t = target(1 << 20);
    ot_mem_options o = {
        .mode = mode, .capacity = capacity, .step_limit = 3000, .workspace_reuse = seed % 2};
    ot_diag d = {0};
    ot_mem_plan *p;
    ot_status s = ot_mem_plan_kernel(k, "k.tk", &t, &o, &d, &p);
    if (s != OT_OK) {
        if (s != OT_E_BUDGET || mode == OT_MEM_SEQUENTIAL || mode == OT_MEM_SEARCH)
            fail_msg("seed %u, %s: %s\n%s", (unsigned)seed, ot_mem_mode_name(mode), d.message,
                     text);
        return -1;
    }
    run_plan(k, p, seed, ot_mem_mode_name(mode), text);
    int64_t height = 0;
    for (uint32_t i = 0; i < p->n_scopes; i++) {
        if (p->scopes[i].scope == OT_SCOPE_GM) continue;
        height = ot_max(height, p->scopes[i].height);
        levels[p->scopes[i].level]++;
    }
    ot_mem_plan_free(p);
    return height;
}

/* Every mode, with room and without. */
static void plans_hold(void **state)
{
    (void)state;
    char *text = malloc(TEXT_MAX);
    uint64_t first = 10001, last = 10000 + CASES(500);
    uint32_t tight = 0, levels[OT_LEVEL_NONE + 1] = {0};
    print_message("seeds %u to %u\n", (unsigned)first, (unsigned)last);
    for (uint64_t seed = first; seed <= last; seed++) {
        ot_kernel *k = random_kernel(seed, 5 + (int)(seed % 40), true, false, text);
        plan_and_run(k, OT_MEM_SEQUENTIAL, 0, seed, text, levels);
        int64_t least = plan_and_run(k, OT_MEM_SEARCH, 0, seed, text, levels);
        for (int64_t more = 0; more < 3; more++) {
            int64_t capacity = ot_max(least + least * more / 8, 1);
            tight += plan_and_run(k, OT_MEM_REUSE, capacity, seed, text, levels) >= 0;
            tight += plan_and_run(k, OT_MEM_AUTO, capacity, seed, text, levels) >= 0;
        }
        ot_kernel_free(k);
    }
    print_message("%u of %u tight plans; by level: %u, %u, %u, %u\n", tight,
                  (unsigned)(6 * (last - first + 1)), levels[0], levels[1], levels[2], levels[3]);
    assert_true(tight > 4 * (last - first) && levels[0] && levels[1] && levels[2] && levels[3]);
    free(text);
}

/* A planned kernel, printed and read again, has the same plan: what shares has one offset, and
 * is found to share again. */
static void plans_replay(void **state)
{
    (void)state;
    char *text = malloc(TEXT_MAX);
    uint64_t first = 30001, last = 30000 + CASES(400);
    uint32_t values = 0, places = 0; /* of carried values that no alloc holds */
    print_message("seeds %u to %u\n", (unsigned)first, (unsigned)last);
    for (uint64_t seed = first; seed <= last; seed++) {
        ot_kernel *k = random_kernel(seed, 5 + (int)(seed % 40), true, false, text);
        ot_tk_machine t = target(1 << 20);
        ot_mem_options o = {.mode = OT_MEM_SEARCH, .step_limit = 3000, .workspace_reuse = true};
        ot_diag d = {0};
        ot_mem_plan *p, *again;
        if (ot_mem_plan_kernel(k, "k.tk", &t, &o, &d, &p) != OT_OK) fail_msg("%s", d.message);
        ot_mem_plan_apply(p, k);
        char *planned = NULL;
        size_t n = 0;
        FILE *f = open_memstream(&planned, &n);
        assert_int_equal(ot_kernel_print(k, f), OT_OK);
        fclose(f);
        ot_kernel *copy = parse(planned, n);
        if (ot_mem_plan_kernel(copy, "k.tk", &t, &o, &d, &again) != OT_OK)
            fail_msg("seed %u: %s\n%s", (unsigned)seed, d.message, planned);
        run_plan(copy, again, seed, "again", planned);
        assert_int_equal(copy->n_values, k->n_values);
        for (uint32_t v = 0; v < k->n_values; v++) {
            uint32_t b = p->lifetimes->buffer_of[v];
            if (b == OT_NONE ||
                (k->values[v].kind != OT_TK_BUFFER && p->lifetimes->buffers[b].n_live == 0))
                continue;
            assert_int_equal(again->offsets[again->lifetimes->buffer_of[v]][0], p->offsets[b][0]);
            values++;
            places += k->values[v].kind == OT_TK_CARRIED &&
                      k->values[v].n_offsets + k->values[v].n_waits > 0;
        }
        ot_mem_plan_free(p);
        ot_mem_plan_free(again);
        ot_kernel_free(k);
        ot_kernel_free(copy);
        free(planned);
    }
    print_message("%u values, %u places\n", values, places);
    assert_true(values > CASES(2000) && places > CASES(20));
    free(text);
}

/* ---- does it notice? ---- */

static bool caught(const ot_kernel *k, const ki_layout *lay, uint64_t seed)
{
    static ki m;
    for (uint64_t r = 0; r < 8; r++) {
        ki_run(&m, k, lay, seed * 64 + r, NULL);
        if (m.error[0]) return true;
    }
    return false;
}

/* Two buffers that are alive together, moved to one place. */
static bool overlay(layout *x, uint64_t seed)
{
    const ot_lifetimes *l = x->lay.lifetimes;
    for (uint32_t i = 0; i < l->n_buffers; i++) {
        uint32_t a = (uint32_t)((i + seed) % l->n_buffers);
        for (uint32_t b = 0; b < l->n_buffers; b++) {
            if (a == b || l->buffers[a].scope != l->buffers[b].scope ||
                !meet(&l->buffers[a], &l->buffers[b]))
                continue;
            x->lay.offsets[b][0] = x->lay.offsets[a][0];
            return true;
        }
    }
    return false;
}

/* A lifetime that ends one statement early. */
static bool shorten(ot_lifetimes *l, uint64_t seed)
{
    for (uint32_t i = 0; i < l->n_buffers; i++) {
        ot_buffer *b = &l->buffers[(i + seed) % l->n_buffers];
        if (!b->n_live || b->live[0].upper - b->live[0].lower < 2) continue;
        ot_span *live = ot_memdup(l->arena, b->live, b->n_live * sizeof *live);
        live[0].upper--;
        b->live = live;
        return true;
    }
    return false;
}

/* The machine finds plans and lifetimes that are wrong. Not all: what moves together may be read
 * by no run. */
static void mistakes_are_caught(void **state)
{
    (void)state;
    char *text = malloc(TEXT_MAX);
    uint32_t done[2] = {0}, found[2] = {0};
    for (uint64_t seed = 20001; seed <= 20000 + CASES(400); seed++) {
        ot_kernel *k = random_kernel(seed, 30, false, false, text);
        for (int kind = 0; kind < 2; kind++) {
            ot_lifetimes *l = find(k, &OPTIONS[0]);
            layout x = lay_out(l, kind == 1);
            if (kind ? shorten(l, seed) : overlay(&x, seed)) {
                done[kind]++;
                found[kind] += caught(k, &x.lay, seed);
            }
            ot_arena_free(x.arena);
            ot_lifetimes_free(l);
        }
        ot_kernel_free(k);
    }
    print_message("caught: %u of %u overlaps, %u of %u short lifetimes\n", found[0], done[0],
                  found[1], done[1]);
    assert_true(done[0] > CASES(300) && done[1] > CASES(300));
    assert_true(found[0] * 10 > done[0] * 7 && found[1] * 10 > done[1] * 7);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lifetimes_hold),      cmocka_unit_test(lifetimes_are_exact),
        cmocka_unit_test(plans_hold),          cmocka_unit_test(plans_replay),
        cmocka_unit_test(mistakes_are_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
