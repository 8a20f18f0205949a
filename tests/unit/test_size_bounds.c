/* Bounds over ranges of sizes (src/select/bounds) against brute force: random networks, tiled,
 * every size of a small range looked at by itself; terms of extents (src/ops/size_terms.c)
 * against shape inference. What processes take is scripts/bounds_truth.py. */
#include "cases.h"
#include "seeded.h"
#include "stingy.h"

#include "bounds_rig.h"

#include <math.h>

/* ---- brute force ---- */

typedef struct worst {
    int64_t untiled, tiled;
    uint32_t sizes, refused;
} worst;

/* What the model holds at one size, by itself; the untiled model as the planner of arenas sees it.
 */
static void look(const ranged *r, const int64_t *at, worst *w)
{
    const ot_size_var dims[4] = {
        {at[0], at[0], 1}, {at[1], at[1], 1}, {at[2], at[2], 1}, {at[3], at[3], 1}};
    ot_model *m = bound_copy(r, at, OT_E_INPUT);
    if (!m) {
        w->refused++;
        return;
    }
    ot_arena *a = ot_arena_new();
    ot_arena_figures figures;
    uint32_t n_unknown = 0;
    assert_int_equal(ot_graph_arena(m->graph, &figures, &n_unknown), OT_OK);
    const ot_bounds_facts f = bound_of(r, dims, 0, a);
    if (n_unknown > 0) { /* pools that are larger than what they read: kernels disagree */
        w->refused++;
        ot_arena_free(a);
        ot_model_free(m);
        return;
    }
    /* it aligns them */
    assert_in_range(figures.lower_bound, f.untiled.live_bytes,
                    f.untiled.live_bytes + 64 * figures.n_buffers);
    w->untiled = ot_max(w->untiled, f.untiled.live_bytes);
    w->tiled = ot_max(w->tiled, f.tiled.live_bytes);
    w->sizes++;
    ot_arena_free(a);
    ot_model_free(m);
}

static worst look_at_all(const ranged *r)
{
    worst w = {0};
    const ot_size_var *d = r->dims;
    for (int64_t n = d[0].lo; n <= d[0].hi; n += d[0].step)
        for (int64_t h = d[2].lo; h <= d[2].hi; h += d[2].step)
            for (int64_t x = d[3].lo; x <= d[3].hi; x += d[3].step) {
                const int64_t at[] = {n, 8, h, x};
                look(r, at, &w);
            }
    return w;
}

/* A chain with merges; values that may meet have one level. */
static void grow(char *out, size_t size)
{
    static const char *const OPS[] = {
        "Conv(%%%s, %%w) {pads=[1,1,1,1]}",
        "Conv(%%%s, %%w) {pads=[1,1,1,1], strides=[2,2]}",
        "MaxPool(%%%s) {kernel_shape=[2,2], strides=[2,2]}",
        "AveragePool(%%%s) {kernel_shape=[3,3], strides=[2,2], ceil_mode=1}",
        "ConvTranspose(%%%s, %%u) {strides=[2,2]}",
        "ConvTranspose(%%%s, %%z) {strides=[2,2], pads=[3,3,3,3]}",
        "Resize(%%%s, _, %%s) {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\"}",
        "Conv(%%%s, %%w) {pads=[2,2,2,2], dilations=[2,2]}",
        "Conv(%%%s, %%w)",
        "Relu(%%%s)",
    };
    static const int LEVEL[] = {0, 1, 1, 1, -1, -1, -1, 0, 10, 0};
    char name[16][16] = {"x"};
    int level[16] = {0}, n = 1, at = 0;
    const int steps = 3 + below(6);
    *out = '\0';
    for (int k = 0; k < steps; k++) {
        const int op = below(13);
        const char *from = name[n - 1];
        char node[256];
        level[n] = level[n - 1];
        if (op == 12) { /* weighed by what it reduces to, which tiles do in parts */
            snprintf(node, sizeof node, "GlobalAveragePool(%%%s)\n  %%v%d = Mul(%%%s, %%k%d)", from,
                     n, from, n);
        } else if (op >= 10) { /* with an earlier value of its level */
            int other = below(n);
            if (level[other] != level[n - 1]) other = n - 1;
            if (op == 10)
                snprintf(node, sizeof node, "Add(%%%s, %%%s)", from, name[other]);
            else
                snprintf(node, sizeof node,
                         "Concat(%%%s, %%%s) {axis=1}\n  %%v%d = Conv(%%k%d, %%c)", from,
                         name[other], n, n);
        } else {
            if (level[n - 1] + LEVEL[op] < -1) continue;
            if (LEVEL[op] == 1 && level[n - 1] % 10 > 1) continue;
            snprintf(node, sizeof node, OPS[op], from);
            level[n] += LEVEL[op];
        }
        at += snprintf(out + at, size - (size_t)at, "  %%%s%d = %s\n", op > 10 ? "k" : "v", n,
                       node);
        snprintf(name[n], sizeof name[n], "v%d", n);
        n++;
    }
    snprintf(out + at, size - (size_t)at, "  %%y = Relu(%%%s)\n  output %%y\n", name[n - 1]);
}

/* The bound is what the largest size takes: no less, and no more where that is proved. */
static void brute_force(void **state)
{
    (void)state;
    uint32_t regions = 0, proved = 0, refused = 0, elsewhere = 0, streams = 0;
    const char *more = getenv("OT_SEEDS");
    const uint32_t n = more ? (uint32_t)atoi(more) : CASES(24);
    for (uint32_t k = 0; k < n; k++) {
        char body[4096];
        ranged r;
        grow(body, sizeof body);
        const int64_t lo = 12 + below(30);
        const ot_size_var dims[4] = {{1, 1 + below(2), 1},
                                     {8, 8, 1},
                                     {lo, lo + 30 + below(20), 1},
                                     {8, 8 + 4 * below(3), 1 + below(4)}};
        ot_size_var box[4];
        memcpy(box, dims, sizeof box);
        box[3].hi -= (box[3].hi - box[3].lo) % box[3].step;
        if (!ranged_new(&r, body, box, 2048 << below(4), k % 3 == 2 ? &STREAMS : &TILES)) {
            ranged_free(&r);
            continue;
        }
        ot_arena *a = ot_arena_new();
        const ot_bounds_facts f = bound_of(&r, r.dims, 0, a);
        const worst w = look_at_all(&r);
        regions += r.plan->n_regions;
        for (uint32_t i = 0; i < r.plan->n_regions; i++)
            streams += r.plan->regions[i].form == OT_FORM_STREAM;
        refused += w.refused > 0;
        if (f.untiled.verdict != OT_BOUNDS_PROVED || f.tiled.verdict != OT_BOUNDS_PROVED) {
            const char *why = f.tiled.why ? f.tiled.why : f.untiled.why;
            /* pools that are larger than what they read */
            if (!strstr(why, "is not known")) fail_msg("%s\n%s", why, body);
            if (w.refused == 0) fail_msg("%s\n%s", why, body);
            ot_arena_free(a);
            ranged_free(&r);
            continue;
        }
        proved++;
        elsewhere += strcmp(f.tiled.live_at, f.untiled.live_at) != 0;
        if (f.untiled.live_bytes != w.untiled || f.tiled.live_bytes != w.tiled)
            fail_msg("untiled %lld, not %lld; tiled %lld, not %lld at %s\n%s",
                     (long long)f.untiled.live_bytes, (long long)w.untiled,
                     (long long)f.tiled.live_bytes, (long long)w.tiled, f.tiled.live_at, body);
        const ot_bounds_facts tight = bound_of(&r, r.dims, w.tiled - 1, a);
        assert_int_equal(tight.tiled.verdict, OT_BOUNDS_EXCEEDS);
        ot_arena_free(a);
        ranged_free(&r);
    }
    print_message("%u proved, %u regions, %u hand rows on, %u with sizes that are refused, %u "
                  "largest elsewhere than untiled\n",
                  proved, regions, streams, refused, elsewhere);
    assert_true(proved + 1 > n / 4 && regions + 1 > n / 4 && (streams > 0 || n < 24));
}

/* What a region holds is most where its last tile is longest, which need not be at the largest
 * size: the upper corner alone is no bound. */
static void longest_last_tile(void **state)
{
    (void)state;
    static const char body[] =
        "  %v1 = Conv(%x, %w) {pads=[2,2,2,2], dilations=[2,2]}\n  %v2 = Relu(%v1)\n"
        "  %v3 = MaxPool(%v2) {kernel_shape=[2,2], strides=[2,2]}\n"
        "  %v4 = Conv(%v3, %w) {pads=[1,1,1,1], strides=[2,2]}\n  %y = Relu(%v4)\n  output %y\n";
    uint32_t found = 0;
    for (int k = 0; k < 80 && found == 0; k++) {
        const int64_t h = 48 + 3 * (k / 4);
        const ot_size_var dims[4] = {{1, 1, 1}, {8, 8, 1}, {h - 30, h, 1}, {8, 8, 1}},
                          corner[4] = {{1, 1, 1}, {8, 8, 1}, {h, h, 1}, {8, 8, 1}};
        ranged r;
        ot_arena *a = ot_arena_new();
        assert_true(ranged_new(&r, body, dims, 8192 << k % 4, &TILES));
        const ot_bounds_facts f = bound_of(&r, dims, 0, a), upper = bound_of(&r, corner, 0, a);
        assert_int_equal(f.tiled.verdict, OT_BOUNDS_PROVED);
        assert_true(f.tiled.live_bytes >= upper.tiled.live_bytes);
        if (f.tiled.live_bytes > upper.tiled.live_bytes) {
            found++;
            assert_string_not_equal(f.tiled.live_at, upper.tiled.live_at);
            assert_int_equal(f.tiled.live_bytes, look_at_all(&r).tiled);
        }
        ot_arena_free(a);
        ranged_free(&r);
    }
    assert_true(found > 0);
}

/* ---- what is not proved ---- */

static void is_unknown(const char *body, const char *word)
{
    static const ot_size_var dims[4] = {{1, 1, 1}, {8, 8, 1}, {16, 64, 1}, {16, 16, 1}};
    ranged r;
    ot_arena *a = ot_arena_new();
    assert_true(ranged_new(&r, body, dims, 4096, &TILES));
    const ot_bounds_facts f = bound_of(&r, r.dims, 0, a);
    if (f.untiled.verdict != OT_BOUNDS_UNKNOWN || f.tiled.verdict != OT_BOUNDS_UNKNOWN)
        fail_msg("proved: %s", body);
    if (!strstr(f.untiled.why, word)) fail_msg("'%s' does not say '%s'", f.untiled.why, word);
    ot_arena_free(a);
    ranged_free(&r);
}

static void unknown(void **state)
{
    (void)state;
    /* Largest where the input is smallest: the upper corner says nothing. */
    is_unknown(
        "  init %i : int64[1] = [2]\n  init %m : int64[1] = [4096]\n  %d = Shape(%x)\n  %h = "
        "Gather(%d, %i)\n  %r = Sub(%m, %h)\n"
        "  %v = ConstantOfShape(%r)\n  %t = ReduceSum(%v)\n  %y = Add(%x, %t)\n  output %y\n",
        "may be smaller where the input is larger");
    is_unknown("  %p = Relu(%x)\n  %v = NonZero(%p)\n  %f = Cast(%v) {to=1}\n  %t = "
               "ReduceSum(%f)\n  %y = Add(%x, %t)\n  output %y\n",
               "NonZero");
}

/* ---- terms ---- */

/* Terms are what shape inference says at every size, and what never falls does not. */
static void terms(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        "  %y = Conv(%x, %w) {auto_pad=\"SAME_UPPER\", strides=[2,2]}\n",
        "  %y = MaxPool(%x) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1], ceil_mode=1}\n",
        "  %y = ConvTranspose(%x, %u) {strides=[3,2], output_padding=[1,0]}\n",
        "  init %a : int64[1] = [2]\n  init %b : int64[1] = [9]\n  init %q : int64[1] = [2]\n  "
        "init %p : int64[1] = [3]\n  %y = Slice(%x, %a, %b, %q, %p)\n",
        "  init %a : int64[1] = [-5]\n  init %b : int64[1] = [9223372036854775807]\n  init %q : "
        "int64[1] = [2]\n  %y = Slice(%x, %a, %b, %q)\n",
        "  init %p : int64[8] = [0,0,1,2,0,0,-1,3]\n  %y = Pad(%x, %p)\n",
        "  init %p : int64[3] = [0,-1,4]\n  %y = Reshape(%x, %p)\n",
        "  init %i : int64[1] = [0]\n  init %p : int64[2] = [64,-1]\n  %d = Shape(%x)\n  %b = "
        "Gather(%d, %i)\n  %t = Concat(%b, %p) {axis=0}\n  %y = Reshape(%x, %t)\n",
        "  init %i : int64[2] = [2,3]\n  init %two : int64[1] = [2]\n  init %j : int64[2] = "
        "[0,1]\n  %d = Shape(%x)\n  %b = Gather(%d, %i)\n  %e = Gather(%d, %j)\n"
        "  %m = Mul(%b, %two)\n  %t = Concat(%e, %m) {axis=0}\n  %y = Resize(%x, _, _, %t) "
        "{mode=\"nearest\"}\n",
        "  %f = Flatten(%x) {axis=2}\n  %y = Transpose(%f)\n",
        "  %a = Transpose(%x) {perm=[0,1,3,2]}\n  %b = MatMul(%a, %x)\n  %y = ReduceMean(%b) "
        "{axes=[2], keepdims=0}\n",
        "  init %k : float32[4] = [1, 1, 1.5, 0.7]\n  %y = Resize(%x, _, %k) {mode=\"nearest\"}\n",
        "  %y = DepthToSpace(%x) {blocksize=2}\n",
        "  %a, %b = Split(%x) {axis=1}\n  %c0 = Concat(%a, %x) {axis=1}\n  %y = Concat(%c0, %c0) "
        "{axis=2}\n",
        "  init %i : int64[1] = [2]\n  init %p : int64[1] = [31]\n  init %q : int64[1] = [32]\n  "
        "init %l : int64[5] = [0,0,0,0,0]\n  init %m : int64[2] = [0,0]\n"
        "  %d = Shape(%x)\n  %h = Gather(%d, %i)\n  %a = Add(%h, %p)\n  %b = Div(%a, %q)\n  %t = "
        "Mul(%b, %q)\n  %n = Sub(%t, %h)\n  %k = Concat(%l, %m) {axis=0}\n"
        "  init %z1 : int64[6] = [0,0,0,0,0,0]\n  init %z2 : int64[1] = [0]\n  %g = Concat(%z1, "
        "%n, %z2) {axis=0}\n  %y = Pad(%x, %g)\n",
    };
    for (size_t k = 0; k < sizeof BODIES / sizeof *BODIES; k++) {
        static const ot_size_var dims[4] = {{1, 3, 1}, {8, 8, 1}, {12, 40, 1}, {12, 20, 4}};
        char body[2048];
        ranged r;
        snprintf(body, sizeof body, "%s  output %%y\n", BODIES[k]);
        if (!ranged_new(&r, body, dims, 4096, &TILES)) fail_msg("%s", body);
        ot_arena *a = ot_arena_new();
        const ot_graph *g = r.file->graph;
        const ot_size_var vars[3] = {dims[0], dims[2], dims[3]};
        ot_size_terms *t = ot_size_terms_new(a, vars, 3);
        ot_term x[4] = {ot_term_var(t, 0), ot_term_const(t, 8), ot_term_var(t, 1),
                        ot_term_var(t, 2)},
                **inputs;
        inputs = OT_NEW_N(a, ot_term *, g->n_inputs);
        inputs[0] = x;
        ot_size_table table;
        assert_int_equal(ot_size_table_fill(g, t, inputs, a, &table), OT_OK);
        const ot_id y = ot_value_find(g, "y");
        int64_t *values = OT_NEW_N(a, int64_t, ot_size_n_terms(t));
        uint32_t seen = 0;
        for (int64_t n = 1; n <= 3; n++)
            for (int64_t h = 12; h <= 40; h++)
                for (int64_t w = 12; w <= 20; w += 4) {
                    const int64_t at[] = {n, h, w}, size[] = {n, 8, h, w};
                    ot_model *m = bound_copy(&r, size, OT_E_INPUT);
                    ot_size_values(t, at, values);
                    if (!m) continue;
                    const ot_value *v = &m->graph->values[y];
                    assert_true(table.dims[y] && v->rank == g->values[y].rank);
                    for (int32_t d = 0; d < v->rank; d++) {
                        if (table.dims[y][d] == OT_NONE)
                            fail_msg("no term for axis %d: %s", d, body);
                        if (values[table.dims[y][d]] != v->dims[d])
                            fail_msg("axis %d is %lld, not %lld: %s", d, (long long)v->dims[d],
                                     (long long)values[table.dims[y][d]], body);
                        if (ot_term_falls(t, table.dims[y][d]))
                            fail_msg("axis %d falls: %s", d, body);
                        assert_true(v->dims[d] <= ot_term_most(t, table.dims[y][d]));
                        assert_true(v->dims[d] >= ot_term_least(t, table.dims[y][d]));
                    }
                    ot_model_free(m);
                    seen++;
                }
        if (seen == 0) fail_msg("no size is taken: %s", body);
        ot_arena_free(a);
        ranged_free(&r);
    }
}

/* Extents scaled by powers of two and by their neighbours, down to what a strange file may hold. */
static void scales(void **state)
{
    (void)state;
    static const ot_size_var var = {1, 40, 1};
    for (int power = -140; power <= 16; power++)
        for (int next = -1; next <= 1; next++) {
            const float two = ldexpf(1, power), by = next < 0   ? nextafterf(two, 0)
                                                     : next > 0 ? nextafterf(two, 9e9f)
                                                                : two;
            ot_arena *a = ot_arena_new();
            ot_size_terms *t = ot_size_terms_new(a, &var, 1);
            const ot_term y = by <= 65536 ? ot_term_scale(t, ot_term_var(t, 0), by) : OT_NONE;
            int64_t values[8];
            if (y == OT_NONE && by <= 65536) fail_msg("no term for a scale of %a", (double)by);
            assert_in_range(ot_size_n_terms(t), 0, 8);
            for (int64_t v = var.lo; y != OT_NONE && v <= var.hi; v++) {
                ot_size_values(t, &v, values);
                assert_int_equal(values[y], (int64_t)floorf((float)v * by));
            }
            ot_arena_free(a);
        }
}

/* ---- live bytes ---- */

/* A loop that collects three pieces, by hand. */
static void live_bytes(void **state)
{
    (void)state;
    static const char text[] = "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,8,4,4]\n  "
                               "%a = Relu(%x)\n  %b = Relu(%a)\n  %c = Add(%a, %b)\n"
                               "  %y = Relu(%c)\n  output %y\n}\n";
    ot_model *m = NULL;
    ot_live_bytes live;
    assert_int_equal(ot_text_parse(text, strlen(text), &diag, &m), OT_OK);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_live_bytes_of(m->graph, &live), OT_OK);
    assert_int_equal(live.peak, 3 * 512); /* a, b, c */
    assert_null(live.unknown);
    ot_model_free(m);
}

static void no_memory(void **state)
{
    (void)state;
    static const ot_size_var dims[4] = {{1, 1, 1}, {8, 8, 1}, {40, 64, 1}, {16, 16, 1}};
    ranged r;
    assert_true(ranged_new(
        &r,
        "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %y = Conv(%a, %w) {pads=[1,1,1,1]}\n  output %y\n",
        dims, 2048, &TILES));
    assert_true(r.plan->n_regions > 0);
    ot_arena *a = ot_arena_new();
    const ot_bounds_case c = {.file = r.file,
                              .planned = r.planned,
                              .plan = r.plan,
                              .target = &r.target,
                              .ranges = &r.range,
                              .n = 1,
                              .diag = &diag};
    ot_set_alloc_hook(stingy);
    for (long n = 0;; n += 1 + n / 8) {
        ot_bounds_facts f;
        allowed = n;
        const ot_status s = ot_bounds_compute(&c, a, &f);
        if (s == OT_OK) break;
        if (s != OT_E_NOMEM) {
            ot_set_alloc_hook(NULL);
            fail_msg("%d after %ld blocks: %s", (int)s, n, diag.message);
        }
    }
    ot_set_alloc_hook(NULL);
    ot_arena_free(a);
    ranged_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms),       cmocka_unit_test(scales),
        cmocka_unit_test(brute_force), cmocka_unit_test(longest_last_tile),
        cmocka_unit_test(unknown),     cmocka_unit_test(live_bytes),
        cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, start, NULL);
}
