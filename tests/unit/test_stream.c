/* Steps of streaming regions (src/tiling/stream.c) against brute force, on random graphs.
 *
 * A graph of convolutions, pools, sums and up-sampling is grown as text. For every row of every
 * value the rows that it reads are listed from the operators' definitions; then the steps are
 * simulated row by row:
 *
 *   sound     a row is computed where every row that it reads is at hand; what is kept was at hand
 *             before; nothing is computed twice
 *   lean      a row is computed when somebody wants it in that step, and kept because somebody
 *             wants it then or later
 *
 * Line buffers: sound likewise; rows of the input are brought once each; no step makes more of a
 * value than a steady one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tiling/sequence.h"
#include "tiling/stream.h"
#include "tiling/walk.h"

#define GRAPHS   400
#define NODES    9
#define ROWS_MAX 200
#define FIRST    UINT64_C(20261122)

/* A node along the cut axis: kernel, stride, dilation, pad before; of two operands the second is
 * read like the first. up: factor. */
typedef struct op {
    int64_t k, s, d, p, up;
    uint32_t in[2], n_in; /* values: 0 is the input, 1 + i what node i makes */
} op;

typedef struct net {
    op ops[NODES];
    uint32_t n;
    int64_t rows[NODES + 1];
    uint64_t state;
} net;

static uint64_t draw(net *x, uint64_t n)
{
    x->state = x->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (x->state >> 33) % n;
}

/* Rows [lo, hi) of its operand that row y of node o reads, inside the operand. */
static void reads_of(const net *x, const op *o, int64_t y, int64_t *lo, int64_t *hi)
{
    *lo = o->up > 1 ? y / o->up : ot_max(0, y * o->s - o->p);
    *hi = o->up > 1 ? *lo + 1 : ot_min(x->rows[o->in[0]], y * o->s - o->p + (o->k - 1) * o->d + 1);
}

static bool grow_node(net *x)
{
    op *o = &x->ops[x->n];
    const uint32_t from = (uint32_t)(draw(x, 3) ? x->n : draw(x, x->n + 1)),
                   kind = (uint32_t)draw(x, 5);
    *o = (op){.k = 1, .s = 1, .d = 1, .in = {from}, .n_in = 1};
    if (kind < 3) {
        o->k = (int64_t)draw(x, 4) + 1;
        o->s = (int64_t)draw(x, 4) ? 1 : 2;
        o->d = (int64_t)draw(x, 3) ? 1 : 3;
        o->p = (int64_t)draw(x, (uint64_t)((o->k - 1) * o->d + 1));
    } else if (kind == 3) {
        o->up = 2;
    } else {
        for (uint32_t v = x->n; v > 0; v--)
            if (v != from && x->rows[v] == x->rows[from]) o->in[1] = v, o->n_in = 2;
    }
    const int64_t in = x->rows[from], room = in + 2 * o->p - (o->k - 1) * o->d - 1;
    x->rows[x->n + 1] = o->up ? in * 2 : room / o->s + 1;
    if (room < 3 || x->rows[x->n + 1] > ROWS_MAX || x->rows[x->n + 1] < 4) return false;
    x->n++;
    return true;
}

static void grow(net *x, uint64_t seed)
{
    *x = (net){.state = seed};
    x->rows[0] = (int64_t)draw(x, 60) + 24;
    for (uint32_t k = 0; k < 3 * NODES && x->n < NODES; k++) grow_node(x);
}

static bool is_read(const net *x, uint32_t v)
{
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t k = 0; k < x->ops[i].n_in; k++)
            if (x->ops[i].in[k] == v) return true;
    return false;
}

static ot_model *build(const net *x, ot_diag *d)
{
    char text[8192];
    size_t n = (size_t)snprintf(
        text, sizeof text, "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[1,2,%lld,3]\n",
        (long long)x->rows[0]);
    for (uint32_t i = 0; i < x->n; i++) {
        const op *o = &x->ops[i];
        if (o->up)
            n += (size_t)snprintf(
                text + n, sizeof text - n,
                "  init %%s%u : float32[4] = [1, 1, 2, 1]\n  %%v%u = Resize(%%v%u, _, %%s%u) "
                "{mode=\"nearest\", "
                "coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"}\n",
                i, i + 1, o->in[0], i);
        else if (o->n_in == 2)
            n += (size_t)snprintf(text + n, sizeof text - n, "  %%v%u = Add(%%v%u, %%v%u)\n", i + 1,
                                  o->in[0], o->in[1]);
        else
            n += (size_t)snprintf(
                text + n, sizeof text - n,
                "  init %%w%u : float32[2,2,%lld,1] = random %u\n  %%v%u = Conv(%%v%u, %%w%u) "
                "{kernel_shape=[%lld, 1], "
                "strides=[%lld, 1], dilations=[%lld, 1], pads=[%lld, 0, %lld, 0]}\n",
                i, (long long)o->k, i + 1, i + 1, o->in[0], i, (long long)o->k, (long long)o->s,
                (long long)o->d, (long long)o->p, (long long)o->p);
    }
    for (uint32_t v = 1; v <= x->n; v++)
        if (!is_read(x, v)) n += (size_t)snprintf(text + n, sizeof text - n, "  output %%v%u\n", v);
    n += (size_t)snprintf(text + n, sizeof text - n, "}\n");
    ot_model *m = NULL;
    if (ot_text_parse(text, n, d, &m) != OT_OK) fail_msg("%s in %s", d->message, text);
    assert_int_equal(ot_topo_sort(m->graph), OT_OK);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    return m;
}

/* The whole graph as one region, in steps of so many rows of its last node's result. */
static void region_of(ot_graph *g, ot_arena *a, int64_t rows, ot_region *r)
{
    ot_seq s;
    ot_walk w;
    assert_int_equal(ot_seq_build(g, a, &s), OT_OK);
    assert_int_equal(ot_walk_new(&s, &w), OT_OK);
    ot_choice c = {.first = 0, .end = s.n - 1, .n_dims = 1, .axes = {2}, .tile = {rows}};
    assert_int_equal(ot_region_build(&s, &w, &c, a, r), OT_OK);
}

/* Number of region value v in the net; its name says it. */
static uint32_t number_of(const ot_graph *g, const ot_region *r, uint32_t v)
{
    return (uint32_t)strtoul(g->values[r->values[v].value].name + 1, NULL, 10);
}

static bool inside(ot_win a, int64_t lo, int64_t hi)
{
    return lo >= hi || (a.lo <= lo && a.hi >= hi);
}

/* Whether a reader of value v computes, in steps [from, to), a row that reads row y of it; of
 * the last run's steps all that are handed on. */
static bool is_wanted(const net *x, const ot_graph *g, const ot_region *r, const ot_stream *s,
                      uint32_t v, int64_t y, uint32_t from, uint32_t to)
{
    for (uint32_t t = from; t < to; t++)
        for (uint32_t i = 0; i < r->n_nodes; i++) {
            const ot_win made = s->steps[t].ops[i].made;
            const op *o = &x->ops[number_of(g, r, r->nodes[i].out[0]) - 1];
            bool reads = false;
            for (uint32_t k = 0; k < o->n_in; k++) reads |= o->in[k] == v;
            for (int64_t row = made.lo; reads && row < made.hi; row++) {
                int64_t lo, hi;
                reads_of(x, o, row, &lo, &hi);
                if (y >= lo && y < hi) return true;
            }
        }
    return false;
}

static void check_sound(const net *x, const ot_graph *g, const ot_region *r, const ot_stream *s)
{
    int64_t ready[NODES + 1] = {0};
    for (uint32_t t = 0; t < s->n; t++) {
        const ot_tile_windows *w = &s->steps[t];
        const ot_win *at_hand[NODES + 1] = {NULL};
        for (uint32_t v = 0; v < r->n_values; v++) at_hand[number_of(g, r, v)] = &w->made[v];
        for (uint32_t v = r->n_inputs; v < r->n_values; v++) {
            const ot_win fresh = w->ops[r->values[v].node].made, kept = w->kept[v];
            const uint32_t n = number_of(g, r, v);
            if (kept.lo < kept.hi)
                assert_true(t > 0 && inside(s->steps[t - 1].made[v], kept.lo, kept.hi) &&
                            kept.hi == ready[n]);
            if (fresh.lo < fresh.hi) {
                assert_int_equal(fresh.lo, ready[n]);
                ready[n] = fresh.hi;
            }
            assert_int_equal(w->made[v].hi, ready[n]);
            assert_int_equal(w->made[v].lo, kept.lo < kept.hi ? kept.lo : w->made[v].lo);
        }
        for (uint32_t i = 0; i < r->n_nodes; i++) {
            const op *o = &x->ops[number_of(g, r, r->nodes[i].out[0]) - 1];
            for (int64_t y = w->ops[i].made.lo; y < w->ops[i].made.hi; y++) {
                int64_t lo, hi;
                reads_of(x, o, y, &lo, &hi);
                for (uint32_t k = 0; k < o->n_in; k++)
                    assert_true(inside(*at_hand[o->in[k]], lo, hi));
            }
        }
    }
    for (uint32_t v = r->n_inputs; v < r->n_values; v++)
        if (r->values[v].is_output)
            assert_int_equal(ready[number_of(g, r, v)], x->rows[number_of(g, r, v)]);
}

static void check_lean(const net *x, const ot_graph *g, const ot_region *r, const ot_stream *s)
{
    /* what the run before hands on to it is as much as it takes itself */
    const uint32_t last = s->runs[s->n_runs - 1].first;
    for (uint32_t t = 0; t < s->n; t++)
        for (uint32_t v = r->n_inputs; v < r->n_values; v++) {
            const ot_tile_windows *w = &s->steps[t];
            const ot_win fresh = w->ops[r->values[v].node].made, kept = w->kept[v];
            const uint32_t n = number_of(g, r, v);
            if (kept.lo < kept.hi && t < last)
                assert_true(is_wanted(x, g, r, s, n, kept.lo, t, s->n));
            if (fresh.lo >= fresh.hi || r->values[v].is_output) continue;
            /* up-sampling makes whole pairs of rows: the last one may be early */
            if (!is_wanted(x, g, r, s, n, fresh.hi - 1, t, t + 1))
                assert_true(x->ops[n - 1].up > 1 &&
                            is_wanted(x, g, r, s, n, fresh.hi - 2, t, t + 1));
        }
}

/* Rows of the input are brought in order, each once, and are there while somebody reads them;
 * none is kept that nobody reads. */
static void check_input(const net *x, const ot_graph *g, const ot_region *r, const ot_stream *s)
{
    int64_t ready = 0;
    for (uint32_t t = 0; t < s->n; t++) {
        const ot_win made = s->steps[t].made[0], kept = s->steps[t].kept[0],
                     fresh = ot_stream_new(&s->steps[t], 0);
        if (kept.lo < kept.hi) {
            assert_true(t > 0 && inside(s->steps[t - 1].made[0], kept.lo, kept.hi) &&
                        kept.lo == made.lo && kept.hi == ready);
            assert_true(is_wanted(x, g, r, s, 0, kept.lo, t, s->n));
        }
        if (fresh.lo >= fresh.hi) continue;
        assert_true(fresh.lo >= ready);
        for (int64_t y = ready; y < fresh.lo; y++)
            assert_false(is_wanted(x, g, r, s, 0, y, t, s->n));
        ready = fresh.hi;
    }
}

/* Outputs of other lengths than the sink's are made in uneven steps. */
static bool is_even(const net *x, const ot_region *r, const ot_graph *g)
{
    for (uint32_t v = r->n_inputs; v < r->n_values; v++)
        if (r->values[v].is_output && x->rows[number_of(g, r, v)] % r->dims[0].extent != 0)
            return false;
    return true;
}

/* The most of each value that a step makes is what the steady ones make; up-sampling makes whole
 * blocks. */
static bool is_level(const net *x, const ot_graph *g, const ot_region *r, const ot_stream *s)
{
    const ot_tile_windows *steady = NULL;
    for (uint32_t k = 0; k < s->n_runs; k++)
        if (s->runs[k].count > 1) steady = &s->steps[s->runs[k].first];
    assert_non_null(steady);
    for (uint32_t v = r->n_inputs; v < r->n_values; v++) {
        const int64_t block = x->ops[number_of(g, r, v) - 1].up > 1 ? 2 : 1;
        for (uint32_t t = 0; t < s->n; t++)
            if (ot_win_len(ot_stream_new(&s->steps[t], v)) >
                ot_win_len(ot_stream_new(steady, v)) + block - 1)
                return false;
    }
    return true;
}

static void steps_are_what_brute_force_finds(void **state)
{
    (void)state;
    uint32_t streamed = 0, at_once = 0;
    for (uint64_t k = 0; k < GRAPHS; k++) {
        const uint64_t seed = FIRST + k;
        net x;
        ot_diag d = {0};
        ot_region r;
        ot_stream s;
        ot_why why = OT_WHY_NONE;
        bool legal;
        grow(&x, seed);
        if (x.n == 0) continue;
        ot_model *m = build(&x, &d);
        ot_arena *a = ot_arena_new();
        region_of(m->graph, a, (int64_t)draw(&x, 8) + 1, &r);
        print_message("seed %llu: %u nodes\n", (unsigned long long)seed, x.n);
        if (r.dims[0].n_tiles >= 2) {
            assert_int_equal(ot_stream_steps(m->graph, &r, a, &s, &legal, &why), OT_OK);
            if (legal) {
                check_sound(&x, m->graph, &r, &s);
                check_lean(&x, m->graph, &r, &s);
                streamed++;
                for (uint32_t j = 0; j < s.n_runs; j++) at_once += s.runs[j].count > 2;
            } else {
                assert_true(why != OT_WHY_NONE);
            }
        }
        ot_arena_free(a);
        ot_model_free(m);
    }
    print_message("%u of %u stream\n", streamed, GRAPHS);
    assert_true(streamed > GRAPHS / 4 && at_once > GRAPHS / 5);
}

static void line_buffers_are_what_brute_force_finds(void **state)
{
    (void)state;
    uint32_t streamed = 0, level = 0;
    for (uint64_t k = 0; k < GRAPHS; k++) {
        const uint64_t seed = FIRST + k;
        net x;
        ot_diag d = {0};
        ot_region r;
        ot_stream s, merged;
        ot_why why = OT_WHY_NONE;
        bool legal, flat;
        grow(&x, seed);
        if (x.n == 0) continue;
        ot_model *m = build(&x, &d);
        ot_arena *a = ot_arena_new();
        region_of(m->graph, a, (int64_t)draw(&x, 8) + 1, &r);
        if (r.dims[0].n_tiles >= 2) {
            print_message("seed %llu: %u nodes\n", (unsigned long long)seed, x.n);
            assert_int_equal(ot_stream_steps(m->graph, &r, a, &merged, &flat, &why), OT_OK);
            r.rolling = true;
            assert_int_equal(ot_stream_steps(m->graph, &r, a, &s, &legal, &why), OT_OK);
            if (legal) {
                check_sound(&x, m->graph, &r, &s);
                check_input(&x, m->graph, &r, &s);
                if (is_even(&x, &r, m->graph)) {
                    assert_true(is_level(&x, m->graph, &r, &s));
                    level++;
                }
                streamed++;
            } else {
                assert_true(why != OT_WHY_NONE);
            }
        }
        ot_arena_free(a);
        ot_model_free(m);
    }
    print_message("%u of %u stream, %u level\n", streamed, GRAPHS, level);
    assert_true(streamed > GRAPHS / 4 && level > GRAPHS / 20);
}

/* Kept beside the region, steps are found once, and the same; other rows are other steps. */
static void kept_steps_are_those_of_the_region(void **state)
{
    (void)state;
    uint32_t legal_ones = 0, others = 0;
    for (uint64_t k = 0; k < GRAPHS; k++) {
        net x;
        ot_diag d = {0};
        ot_region r;
        ot_stream plain, kept, again, flat;
        ot_why why = OT_WHY_NONE, also = OT_WHY_NONE;
        bool legal, same;
        grow(&x, FIRST + k);
        if (x.n == 0) continue;
        ot_model *m = build(&x, &d);
        ot_arena *a = ot_arena_new(), *scratch = ot_arena_new();
        ot_stream_memo memo = {.a = a};
        region_of(m->graph, a, (int64_t)draw(&x, 8) + 1, &r);
        assert_null(r.memo);
        assert_int_equal(ot_stream_steps(m->graph, &r, a, &plain, &legal, &why), OT_OK);
        r.memo = &memo;
        assert_int_equal(ot_stream_steps(m->graph, &r, scratch, &kept, &same, &also), OT_OK);
        ot_arena_free(scratch); /* they lie elsewhere */
        assert_int_equal(same, legal);
        assert_true(legal || also == why);
        assert_int_equal(kept.n, plain.n);
        for (uint32_t t = 0; legal && t < kept.n; t++)
            for (uint32_t v = 0; v < r.n_values; v++)
                assert_memory_equal(&kept.steps[t].made[v], &plain.steps[t].made[v],
                                    sizeof(ot_win));
        assert_int_equal(ot_stream_steps(m->graph, &r, a, &again, &same, &also), OT_OK);
        assert_ptr_equal(again.steps, kept.steps);
        r.rolling = true;
        const ot_region written = ot_stream_written(&r);
        assert_int_equal(ot_stream_steps(m->graph, &written, a, &flat, &same, &also), OT_OK);
        others += legal && flat.steps != kept.steps;
        legal_ones += legal;
        ot_arena_free(a);
        ot_model_free(m);
    }
    assert_true(legal_ones > GRAPHS / 4);
    assert_int_equal(others, legal_ones);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_are_what_brute_force_finds),
                                       cmocka_unit_test(kept_steps_are_those_of_the_region),
                                       cmocka_unit_test(line_buffers_are_what_brute_force_finds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
