/* Regions as programs: random graphs, every region of a forced plan on machines of several kinds
 * and sizes, lowered, planned and interpreted with poisoned memory; the results are those of the
 * engine's reference kernels for the whole graph.
 *
 *   graph --plan, forced--> regions --ot_region_lower--> kernels --ot_krun--> outputs == reference
 *
 * So a place that is given away too early, a window that is off by one, a border that is padded
 * twice shows as a wrong number.
 */
#include "cases.h"
#include "engine_check.h"

#include <math.h>

#include "tk/interpreter/interpreter.h"
#include "tiling/lower/lowering.h"
#include "select/search/plan_search.h"
#include "tiling/stream.h"
#include "stingy.h"

static uint64_t rng;

static uint32_t next_random(uint32_t n) { return (uint32_t)(ot_next_random(&rng) % n); }

/* ---- graphs ---- */

typedef struct graph_text {
    char text[16000];
    size_t n;
    uint32_t c, h[40]; /* channels of all values; rows and columns of each */
    uint32_t values;
} graph_text;

__attribute__((format(printf, 2, 3))) static void say(graph_text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    t->n += (size_t)vsnprintf(t->text + t->n, sizeof t->text - t->n, format, list);
    va_end(list);
    assert_true(t->n < sizeof t->text);
}

static void grow(graph_text *t)
{
    static const char *const plain[] = {"Relu", "Sigmoid",   "Tanh", "Abs",
                                        "Erf",  "HardSwish", "Neg"};
    static const char *const settings[] = {
        "LeakyRelu(%%v%u) {alpha=0.25}",
        "MaxPool(%%v%u) {kernel_shape=[3,3], pads=[1,1,1,1]}",
        "AveragePool(%%v%u) {kernel_shape=[3,3], pads=[1,1,1,1]}",
        "Softmax(%%v%u) {axis=1}",
        "AveragePool(%%v%u) {kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1}",
        "HardSigmoid(%%v%u)"};
    const uint32_t k = t->values - 1, h = t->h[k], c = t->c, kind = next_random(12);
    uint32_t back = next_random(t->values), next = h;
    say(t, "  %%v%u = ", t->values);
    if (kind < 2) {
        say(t, "%s(%%v%u)\n", plain[next_random(7)], k);
    } else if (kind < 4) {
        char line[160];
        snprintf(line, sizeof line, settings[next_random(6)], k);
        say(t, "%s\n", line);
    } else if (kind == 4) {
        say(t, "BatchNormalization(%%v%u, %%scale, %%shift, %%mean, %%var)\n", k);
    } else if (kind == 5 && h % 2 == 0 && h > 8) {
        next = h / 2;
        say(t,
            next_random(2) ? "MaxPool(%%v%u) {kernel_shape=[2,2], strides=[2,2]}\n"
                           : "Conv(%%v%u, %%w3) {pads=[0,0,1,1], strides=[2,2]}\n",
            k);
    } else if (kind == 6) {
        say(t, "Conv(%%v%u, %%depth) {group=%u, pads=[1,1,1,1]}\n", k, c);
    } else if (kind == 7) {
        say(t, "Mul(%%v%u, %%bias)\n", k);
    } else if (kind < 10) {
        while (t->h[back] != h) back = next_random(t->values);
        say(t, "%s(%%v%u, %%v%u)\n", kind == 8 ? "Add" : "Max", k, back);
    } else {
        say(t,
            kind == 10 ? "Conv(%%v%u, %%w3, %%b) {pads=[1,1,1,1]}\n"
                       : "Conv(%%v%u, %%w5) {pads=[2,2,2,2]}\n",
            k);
    }
    t->h[t->values++] = next;
}

static void random_graph(uint64_t seed, graph_text *t)
{
    rng = seed * 7919;
    *t = (graph_text){.c = 2u + next_random(4), .values = 1};
    const uint32_t n = 4 + next_random(10), c = t->c;
    t->h[0] = 16 + 2 * next_random(8);
    say(t, "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[2,%u,%u,%u]\n", c, t->h[0],
        t->h[0]);
    say(t,
        "  init %%w3 : float32[%u,%u,3,3] = random 3\n  init %%w5 : float32[%u,%u,5,5] = random "
        "5\n",
        c, c, c, c);
    say(t,
        "  init %%depth : float32[%u,1,3,3] = random 6\n  init %%bias : float32[%u,1,1] = random "
        "7\n",
        c, c);
    say(t, "  init %%b : float32[%u] = random 8\n  init %%scale : float32[%u] = random 9\n", c, c);
    say(t,
        "  init %%shift : float32[%u] = random 10\n  init %%mean : float32[%u] = random 11\n  init "
        "%%var : float32[%u] = [",
        c, c, c);
    for (uint32_t k = 0; k < c; k++) say(t, "%s%g", k ? ", " : "", 0.5 + k);
    say(t, "]\n");
    while (t->values < n) grow(t);
}

/* What random graphs have not: products, other shapes. v0 is the input, values are numbered. */
static const struct {
    uint32_t values;
    const char *body;
} HAND_MADE[] = {
    {4, "input %v0 : float32[2,6,33,20]\n%v1 = Relu(%v0)\n%v2 = Sigmoid(%v1)\n%v3 = "
        "GlobalAveragePool(%v2)\n"},
    {5,
     "input %v0 : float32[3,40,30]\n%v1 = Tanh(%v0)\n%v2 = ReduceMax(%v1) {axes=[1], keepdims=0}\n"
     "%v3 = ReduceMean(%v1) {axes=[1]}\n%v4 = ReduceSum(%v1, %r)\ninit %r : int64[1] = [2]\n"},
    {5, "input %v0 : float32[2,24,48]\ninit %s : float32[48] = random 1\ninit %b : float32[48] = "
        "random 2\n%v1 = Neg(%v0)\n"
        "%v2 = LayerNormalization(%v1, %s, %b) {axis=-1}\n%v3 = Add(%v2, %v0)\n%v4 = Relu(%v3)\n"},
    {6, "input %v0 : float32[1,8,24,20]\ninit %n : int64[2] = [3,5]\ninit %w : float32[4,5,3,3] = "
        "random 3\n"
        "%v1, %v2 = Split(%v0, %n) {axis=1}\n%v3 = Conv(%v2, %w) {pads=[1,1,1,1]}\n%v4 = "
        "Concat(%v1, %v3) {axis=1}\n%v5 = Abs(%v4)\n"},
    {5, "input %v0 : float32[2,8,26,20]\ninit %a : int64[2] = [1,2]\ninit %f : int64[2] = "
        "[2,3]\ninit %t : int64[2] = [7,25]\n"
        "init %s : float32[5] = random 1\ninit %b : float32[5] = random 2\n%v1 = Relu(%v0)\n%v2 = "
        "Slice(%v1, %f, %t, %a)\n"
        "%v3 = InstanceNormalization(%v2, %s, %b)\n%v4 = Neg(%v3)\n"},
    {4, "input %v0 : float32[2,24,40]\ninit %w : float32[40,56] = random 1\ninit %u : "
        "float32[56,20] = random 2\n"
        "%v1 = MatMul(%v0, %w)\n%v2 = Relu(%v1)\n%v3 = MatMul(%v2, %u)\n"},
    {5, "input %v0 : float32[48,36]\ninit %w : float32[30,36] = random 1\ninit %b : float32[30] = "
        "random 2\n"
        "init %u : float32[30,18] = random 3\ninit %c : float32[1,18] = random 4\n%v1 = Gemm(%v0, "
        "%w, %b) {transB=1}\n"
        "%v2 = Sigmoid(%v1)\n%v3 = Gemm(%v2, %u, %c)\n%v4 = Softmax(%v3) {axis=-1}\n"},
    {5, "input %v0 : float32[2,3,32,20]\n%v1 = Transpose(%v0) {perm=[0,1,3,2]}\n%v2 = MatMul(%v0, "
        "%v1)\n"
        "%v3 = Softmax(%v2) {axis=-1}\n%v4 = MatMul(%v3, %v0)\n"},
    {6, "input %v0 : float32[1,8,24,16]\ninit %w : float32[16,8,3,3] = random 1\n%v1 = Conv(%v0, "
        "%w) {pads=[1,1,1,1]}\n"
        "%v2 = DepthToSpace(%v1) {blocksize=2}\n%v3 = Relu(%v2)\n%v4 = Transpose(%v3) "
        "{perm=[0,2,3,1]}\n%v5 = Neg(%v4)\n"},
    {6, "input %v0 : float32[1,6,20,28]\ninit %w : float32[6,12,1,1] = random 1\ninit %s : "
        "float32[4] = [1, 1, 2, 2]\n"
        "%v1 = Relu(%v0)\n%v2 = Concat(%v0, %v1) {axis=1}\n%v3 = Conv(%v2, %w)\n"
        "%v4 = Resize(%v3, _, %s) {mode=\"nearest\", nearest_mode=\"floor\", "
        "coordinate_transformation_mode=\"asymmetric\"}\n"
        "%v5 = Tanh(%v4)\n"},
    {6, "input %v0 : float32[4,12,18,18]\ninit %g : int64[8] = [0,0,1,1,0,0,1,1]\ninit %w : "
        "float32[12,4,3,3] = random 1\n"
        "%v1 = Pad(%v0, %g)\n%v2 = Conv(%v1, %w) {group=3}\n%v3 = ReduceMean(%v2) {axes=[1]}\n%v4 "
        "= Add(%v3, %v2)\n"
        "%v5 = Sub(%v4, %v0)\n"},
    {4, "input %v0 : float32[1,6,24,16]\ninit %w : float32[6,4,3,3] = random 1\ninit %b : "
        "float32[4] = random 2\n%v1 = Relu(%v0)\n"
        "%v2 = ConvTranspose(%v1, %w, %b) {strides=[2,2], pads=[1,1,1,1], "
        "output_padding=[1,1]}\n%v3 = Tanh(%v2)\n"},
    {5, "input %v0 : float32[2,4,25,18]\ninit %w : float32[4,3,4,3] = random 1\ninit %u : "
        "float32[8,6,3,3] = random 2\n%v1 = Neg(%v0)\n"
        "%v2 = ConvTranspose(%v1, %w) {group=2, strides=[2,1], dilations=[1,2], pads=[0,1,1,2]}\n"
        "%v3 = Conv(%v2, %u) {pads=[1,1,1,1]}\n%v4 = Relu(%v3)\n"},
    /* tiles of a Concat that have nothing of its first operand */
    {5, "input %v0 : float32[1,4,60,20]\n%v1 = Relu(%v0)\n%v2 = Neg(%v0)\n%v3 = Concat(%v1, %v2) "
        "{axis=2}\n%v4 = Abs(%v3)\n"},
    {4, "input %v0 : float32[3,9,50]\ninit %w : float32[7,9,5] = random 1\n%v1 = Conv(%v0, %w) "
        "{pads=[2,2], dilations=[1]}\n"
        "%v2 = MaxPool(%v1) {kernel_shape=[4], strides=[2], pads=[1,1], ceil_mode=1}\n%v3 = "
        "Clip(%v2) \n"},
};

/* all: every value is an output. */
static const char *text_of(const graph_text *t, bool all)
{
    static char text[sizeof t->text + 2000];
    size_t n = (size_t)snprintf(text, sizeof text, "%s", t->text);
    for (uint32_t k = all ? 1 : t->values - 1; k < t->values; k++)
        n += (size_t)snprintf(text + n, 40, "  output %%v%u\n", k);
    snprintf(text + n, 40, "}\n");
    return text;
}

static ot_model *model_of(const char *text)
{
    static ot_diag d;
    ot_model *m = NULL;
    if (ot_text_parse(text, strlen(text), &d, &m) != OT_OK) fail_msg("%s\n%s", d.message, text);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES | OT_P_SHAPES), OT_OK);
    return m;
}

/* ---- the reference ---- */

typedef struct truth {
    const graph_text *t;
    ot_model *m;
    ot_session *s;
    float *input;
    ot_nd in[1], out[40];
} truth;

static void open_truth(const graph_text *t, truth *x)
{
    ot_diag d = {0};
    ot_session_options o = {.reference = true, .poison = true};
    *x = (truth){.t = t, .m = model_of(text_of(t, true))};
    if (ot_session_new(x->m, &o, &d, &x->s) != OT_OK) fail_msg("%s", d.message);
    const ot_value *v0 = &x->m->graph->values[x->m->graph->inputs[0]];
    int64_t n;
    assert_true(ot_value_elems(v0, &n));
    x->input = malloc((size_t)n * sizeof *x->input);
    for (int64_t k = 0; k < n; k++) x->input[k] = (float)((int)next_random(2000) - 1000) / 1000;
    x->in[0] = over(OT_F32, x->input, (uint32_t)v0->rank, v0->dims);
    if (ot_session_run(x->s, x->in, x->out, &d) != OT_OK) fail_msg("%s", d.message);
}

static void close_truth(truth *x)
{
    free(x->input);
    ot_session_free(x->s);
    ot_model_free(x->m);
}

/* What value `name` holds: the input, an initializer, what the reference made. */
static const void *contents(const truth *x, const char *name)
{
    const ot_value *v = &x->m->graph->values[ot_value_find(x->m->graph, name)];
    if (strcmp(name, "v0") == 0) return x->input;
    if (v->init) return v->init->data;
    for (uint32_t k = 0; k < ot_session_outputs(x->s); k++)
        if (strcmp(ot_session_output(x->s, k)->name, name) == 0) return x->out[k].data;
    fail_msg("nobody made %s", name);
    return NULL;
}

/* ---- one region ---- */

static void same_numbers(const float *got, const float *want, int64_t n, const char *where,
                         const char *name)
{
    float most = 0;
    for (int64_t k = 0; k < n; k++) most = fmaxf(most, fabsf(want[k]));
    for (int64_t k = 0; k < n; k++)
        if (!(fabsf(got[k] - want[k]) <= 2e-5f * most))
            fail_msg("%s: %s[%lld] is %g, not %g", where, name, (long long)k, (double)got[k],
                     (double)want[k]);
}

/* The kernel where its plan has put everything. */
static void run_program(const ot_graph *g, const ot_lowered_region *p, const ot_target *t,
                        const truth *x, const char *where)
{
    ot_diag d = {0};
    ot_krun_array in[64];
    ot_krun_request q = {.inputs = in};
    ot_mem_plan *m = NULL;
    ot_krun_result *r = NULL;
    ot_tk_machine roomy = ot_target_tk_machine(t);
    roomy.scopes[OT_SCOPE_L2].bytes = ot_max(t->fast_bytes, p->memory.arena);
    const ot_mem_options o = {.threads = 1};
    for (uint32_t k = 0; k < p->n_params; k++) {
        const ot_tk_value *v = &p->kernel->values[p->params[k].at];
        if (p->params[k].is_output) continue;
        ot_krun_array *a = &in[q.n_inputs++];
        *a = (ot_krun_array){.name = v->name,
                             .dtype = v->dtype,
                             .rank = v->rank,
                             .data = contents(x, g->values[p->params[k].value].name)};
        memcpy(a->dims, v->dims, sizeof v->dims);
    }
    if (ot_mem_plan_kernel(p->kernel, where, &roomy, &o, &d, &m) != OT_OK) {
        if (ot_kernel_print(p->kernel, stderr) != OT_OK) fail_msg("out of memory");
        fail_msg("%s: %s", where, d.message);
    }
    if (ot_krun(p->kernel, where, m, &q, &d, &r) != OT_OK) {
        if (ot_kernel_print(p->kernel, stderr) != OT_OK) fail_msg("out of memory");
        fail_msg("%s: %s", where, d.message);
    }
    for (uint32_t k = 0; k < p->n_params; k++) {
        const ot_tk_value *v = &p->kernel->values[p->params[k].at];
        const char *name = g->values[p->params[k].value].name;
        if (!p->params[k].is_output) continue;
        uint32_t j = 0;
        while (j < r->n_outputs && strcmp(r->outputs[j].name, v->name) != 0) j++;
        if (j == r->n_outputs) fail_msg("%s: %s is not written", where, name);
        assert_int_equal(r->unwritten[j], 0);
        same_numbers(r->outputs[j].data, contents(x, name), v->bytes / 4, where, name);
    }
    ot_krun_free(r);
    ot_mem_plan_free(m);
}

/* Blocks cover the tile; what is planned fits. */
static void check_inner(const ot_lowered_region *p, const ot_target *t, const char *where)
{
    for (uint32_t k = 0; k < p->n_inner; k++) {
        const ot_inner_op *x = &p->inner[k];
        int64_t n = x->depth > 0 ? ot_ceil_div(x->depth, x->depth_block) : 1;
        for (uint32_t d = 0; d < x->rank; d++) {
            assert_in_range(x->block[d], 1, x->extent[d]);
            n *= ot_ceil_div(x->extent[d], x->block[d]);
        }
        if (n != x->n_blocks)
            fail_msg("%s: %s has %lld blocks, not %lld", where, x->node, (long long)n,
                     (long long)x->n_blocks);
        assert_true(x->bytes > 0 && x->time > 0 && x->granules_saved >= 0);
    }
    for (uint32_t k = 0; k < p->n_scopes; k++) {
        const ot_scope_plan *s = &p->scopes[k];
        if (s->scope == OT_SCOPE_GM || s->scope == OT_SCOPE_L2) continue;
        assert_in_range(s->height, 1, s->capacity);
        if (s->scope != OT_SCOPE_FRAGMENT) assert_int_equal(s->capacity, t->scopes[s->scope].bytes);
    }
}

typedef struct tally {
    uint32_t regions, programs, inner, shared, streams, lines, strips;
} tally;

/* For figures: the tiles, or steps, of the most frequent kind alone. */
static void lower_one_kind(const ot_graph *g, const ot_region *r, const ot_target *t, ot_arena *a,
                           const char *where)
{
    ot_diag d = {0};
    ot_lowered_region q;
    if (ot_region_lower(g, r, t, OT_LOWER_BLOCKS | OT_LOWER_ONE_KIND, a, &d, &q) != OT_OK)
        fail_msg("%s, one kind: %s", where, d.message);
    assert_non_null(q.kernel);
    ot_kernel_free(q.kernel);
}

/* Cores with so little memory that everything is done in many blocks. */
static void shrink(ot_target *t)
{
    static const ot_scope cores[] = {OT_SCOPE_UB,  OT_SCOPE_L1,  OT_SCOPE_L0A,
                                     OT_SCOPE_L0B, OT_SCOPE_L0C, OT_SCOPE_SHARED};
    for (size_t k = 0; k < sizeof cores / sizeof *cores; k++)
        if (t->scopes[cores[k]].bytes > 0) t->scopes[cores[k]].bytes = 6 << 10;
    t->scopes[OT_SCOPE_FRAGMENT].bytes = t->scopes[OT_SCOPE_SHARED].bytes;
    t->scopes[OT_SCOPE_BT].bytes = ot_min(t->scopes[OT_SCOPE_BT].bytes, 64);
}

/* The region walks along its first dimension with line buffers, in strips along the second one.
 * false: it cannot. */
static bool with_line_buffers(const ot_graph *g, ot_region *r)
{
    ot_arena *a = ot_arena_new();
    ot_stream s;
    bool legal = false;
    ot_why why;
    r->form = OT_FORM_STREAM;
    r->rolling = true;
    r->in_classes = false;
    if (r->n_dims <= 2) assert_int_equal(ot_stream_steps(g, r, a, &s, &legal, &why), OT_OK);
    ot_arena_free(a);
    return legal;
}

typedef struct plan_kind {
    const char *called;
    ot_plan_options o;
    bool lines; /* regions that may are made to stream with line buffers */
} plan_kind;

static const plan_kind FORCED = {"forced", {.goal = OT_GOAL_TIME, .force = true}, false};

static void run_regions(const graph_text *t, const char *called, const char *target, int64_t l2,
                        bool small, const plan_kind *kind, tally *n)
{
    truth x;
    ot_diag d = {0};
    ot_target machine;
    ot_plan *p = NULL;
    open_truth(t, &x);
    ot_model *m = model_of(text_of(t, false));
    assert_int_equal(ot_target_load(target, 1, &d, &machine), OT_OK);
    ot_target_set_l2(&machine, l2);
    if (small) shrink(&machine);
    assert_int_equal(ot_plan_graph(m->graph, &machine, &kind->o, &p), OT_OK);
    for (uint32_t k = 0; k < p->n_regions; k++) {
        char where[120];
        ot_lowered_region q;
        ot_region r = p->regions[k];
        snprintf(where, sizeof where, "%s, %s, %s, %lld bytes, region %u", called, kind->called,
                 target, (long long)l2, k);
        if (kind->lines && !with_line_buffers(m->graph, &r)) continue;
        ot_arena *a = ot_arena_new();
        if (ot_region_lower(m->graph, &r, &machine, OT_LOWER_BLOCKS, a, &d, &q) != OT_OK)
            fail_msg("%s: %s", where, d.message);
        n->regions++;
        n->programs += q.kernel != NULL;
        n->inner += q.n_inner > 0;
        n->shared += q.memory.level != OT_LEVEL_NONE;
        n->streams += r.form == OT_FORM_STREAM;
        n->lines += r.rolling;
        n->strips += r.rolling && r.n_dims > 1;
        if (!q.kernel) print_message("%s: %s\n", where, q.why);
        if (q.kernel) check_inner(&q, &machine, where);
        if (q.kernel) run_program(m->graph, &q, &machine, &x, where);
        if (q.kernel) lower_one_kind(m->graph, &r, &machine, a, where);
        ot_kernel_free(q.kernel);
        ot_arena_free(a);
    }
    ot_plan_free(p);
    ot_model_free(m);
    close_truth(&x);
}

#define SEEDS CASES(12)

static const char *const TARGETS[] = {"tlf-16m", "ascend-a2", "h200"};

/* On every target at three capacities; with cores, also with small ones. */
static void run_everywhere(const graph_text *t, const char *called, const plan_kind *kind, tally *n)
{
    static const int64_t sizes[] = {4096, 16384, 65536};
    for (size_t k = 0; k < 3; k++)
        for (size_t j = 0; j < 3; j++) {
            run_regions(t, called, TARGETS[k], sizes[j], false, kind, &n[k]);
            if (k > 0) run_regions(t, called, TARGETS[k], sizes[j], true, kind, &n[k]);
        }
}

static void tell(const tally *n)
{
    for (size_t k = 0; k < 3; k++) {
        print_message("%s: %u regions, %u programs, %u in two levels, %u that share memory",
                      TARGETS[k], n[k].regions, n[k].programs, n[k].inner, n[k].shared);
        print_message("; %u stream, %u of them with line buffers, %u of those in strips\n",
                      n[k].streams, n[k].lines, n[k].strips);
        assert_int_equal(n[k].programs, n[k].regions);
        assert_int_equal(n[k].inner, k == 0 ? 0 : n[k].regions);
    }
}

static void random_graphs_make_what_the_reference_makes(void **state)
{
    (void)state;
    static graph_text t;
    tally n[3] = {{0}};
    const char *first = getenv("OT_SEED");
    const uint64_t from = first ? strtoull(first, NULL, 10) : 1;
    for (uint64_t seed = from; seed < from + SEEDS; seed++) {
        char called[40];
        snprintf(called, sizeof called, "seed %llu", (unsigned long long)seed);
        random_graph(seed, &t);
        run_everywhere(&t, called, &FORCED, n);
    }
    tell(n);
    for (size_t k = 0; k < 3; k++) assert_true(n[k].regions > SEEDS);
}

static const plan_kind STREAMS[] = {
    {"rows put together",
     {.goal = OT_GOAL_TIME, .force = true, .force_form = OT_FORM_STREAM},
     false},
    {"line buffers", {.goal = OT_GOAL_TIME, .force = true, .force_form = OT_FORM_STREAM}, true},
    {"strips", {.goal = OT_GOAL_TIME, .force = true}, true},
};

static void streamed_graphs_do_so_too(void **state)
{
    (void)state;
    static graph_text t;
    tally n[3] = {{0}};
    const char *first = getenv("OT_SEED");
    const uint64_t from = first ? strtoull(first, NULL, 10) : 1;
    for (uint64_t seed = from; seed < from + SEEDS; seed++)
        for (size_t k = 0; k < sizeof STREAMS / sizeof *STREAMS; k++) {
            char called[40];
            snprintf(called, sizeof called, "seed %llu", (unsigned long long)seed);
            random_graph(seed, &t);
            run_everywhere(&t, called, &STREAMS[k], n);
        }
    tell(n);
    for (size_t k = 0; k < 3; k++)
        assert_true(n[k].lines > SEEDS && n[k].streams > n[k].lines + SEEDS && n[k].strips > 0);
}

static void other_operators_do_so_too(void **state)
{
    (void)state;
    static graph_text t;
    tally n[3] = {{0}};
    rng = 1;
    for (size_t k = 0; k < sizeof HAND_MADE / sizeof *HAND_MADE; k++) {
        char called[40];
        snprintf(called, sizeof called, "graph %zu", k);
        t = (graph_text){.values = HAND_MADE[k].values};
        say(&t, "model ir 8 opset 17\ngraph g {\n%s", HAND_MADE[k].body);
        run_everywhere(&t, called, &FORCED, n);
        for (size_t j = 0; j < sizeof STREAMS / sizeof *STREAMS; j++)
            run_everywhere(&t, called, &STREAMS[j], n);
    }
    tell(n);
}

/* Whichever block is refused: the program, or OT_E_NOMEM. */
static void memory_may_run_out(void **state)
{
    (void)state;
    static graph_text t;
    ot_diag d = {0};
    ot_target machine;
    ot_plan *p = NULL;
    uint32_t refused = 0;
    random_graph(3, &t);
    ot_model *m = model_of(text_of(&t, false));
    assert_int_equal(ot_target_load("ascend-a2", 1, &d, &machine), OT_OK);
    ot_target_set_l2(&machine, 16384);
    shrink(&machine);
    assert_int_equal(ot_plan_graph(m->graph, &machine, &FORCED.o, &p), OT_OK);
    assert_true(p->n_regions > 0);
    for (long n = 0, done = 0; !done; n += 1 + n / 20) {
        ot_lowered_region q;
        ot_status s = OT_E_NOMEM;
        allowed = n;
        ot_set_alloc_hook(stingy);
        ot_arena *a = ot_arena_new();
        if (a) s = ot_region_lower(m->graph, &p->regions[0], &machine, OT_LOWER_BLOCKS, a, &d, &q);
        ot_set_alloc_hook(NULL);
        done = s == OT_OK;
        refused += !done;
        if (!done) assert_int_equal(s, OT_E_NOMEM);
        if (done) assert_true(q.kernel && q.n_inner > 0);
        if (done) ot_kernel_free(q.kernel);
        ot_arena_free(a);
    }
    print_message("%u times refused\n", refused);
    assert_true(refused > 20);
    ot_plan_free(p);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_make_what_the_reference_makes),
        cmocka_unit_test(streamed_graphs_do_so_too),
        cmocka_unit_test(other_operators_do_so_too),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
