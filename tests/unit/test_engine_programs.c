/* Regions as programs: random graphs, every region of a forced plan on machines of several kinds and sizes, lowered, planned and
 * interpreted with poisoned memory; the results are those of the engine's reference kernels for the whole graph.
 *
 *   graph --plan, forced--> regions --ot_region_lower--> kernels --ot_krun--> outputs == reference
 *
 * So a place that is given away too early, a window that is off by one, a border that is padded twice shows as a wrong number.
 */
#include "engine_check.h"

#include <math.h>

#include "kernelrun/kernelrun.h"
#include "memory/memory.h"
#include "plan/plan.h"

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
    static const char *const plain[] = {"Relu", "Sigmoid", "Tanh", "Abs", "Erf", "HardSwish", "Neg"};
    static const char *const settings[] = {"LeakyRelu(%%v%u) {alpha=0.25}",
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
        say(t, kind == 10 ? "Conv(%%v%u, %%w3, %%b) {pads=[1,1,1,1]}\n" : "Conv(%%v%u, %%w5) {pads=[2,2,2,2]}\n", k);
    }
    t->h[t->values++] = next;
}

/* all: every value is an output. */
static void random_graph(uint64_t seed, bool all, graph_text *t)
{
    rng = seed * 7919;
    *t = (graph_text){.c = 2u + next_random(4), .values = 1};
    const uint32_t n = 4 + next_random(10), c = t->c;
    t->h[0] = 16 + 2 * next_random(8);
    say(t, "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[2,%u,%u,%u]\n", c, t->h[0], t->h[0]);
    say(t, "  init %%w3 : float32[%u,%u,3,3] = random 3\n  init %%w5 : float32[%u,%u,5,5] = random 5\n", c, c, c, c);
    say(t, "  init %%depth : float32[%u,1,3,3] = random 6\n  init %%bias : float32[%u,1,1] = random 7\n", c, c);
    say(t, "  init %%b : float32[%u] = random 8\n  init %%scale : float32[%u] = random 9\n", c, c);
    say(t, "  init %%shift : float32[%u] = random 10\n  init %%mean : float32[%u] = random 11\n  init %%var : float32[%u] = [", c,
        c, c);
    for (uint32_t k = 0; k < c; k++) say(t, "%s%g", k ? ", " : "", 0.5 + k);
    say(t, "]\n");
    while (t->values < n) grow(t);
    for (uint32_t k = all ? 1 : n - 1; k < n; k++) say(t, "  output %%v%u\n", k);
    say(t, "}\n");
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
    ot_model *m;
    ot_session *s;
    float *input;
    ot_nd in[1], out[40];
} truth;

static void open_truth(uint64_t seed, truth *x)
{
    graph_text t;
    ot_diag d = {0};
    ot_session_options o = {.reference = true, .poison = true};
    random_graph(seed, true, &t);
    *x = (truth){.m = model_of(t.text)};
    if (ot_session_new(x->m, &o, &d, &x->s) != OT_OK) fail_msg("%s", d.message);
    const int64_t dims[4] = {2, t.c, t.h[0], t.h[0]}, n = 2 * dims[1] * dims[2] * dims[3];
    x->input = malloc((size_t)n * sizeof *x->input);
    for (int64_t k = 0; k < n; k++) x->input[k] = (float)((int)next_random(2000) - 1000) / 1000;
    x->in[0] = over(OT_F32, x->input, 4, dims);
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

static void same_numbers(const float *got, const float *want, int64_t n, const char *where, const char *name)
{
    float most = 0;
    for (int64_t k = 0; k < n; k++) most = fmaxf(most, fabsf(want[k]));
    for (int64_t k = 0; k < n; k++)
        if (!(fabsf(got[k] - want[k]) <= 2e-5f * most))
            fail_msg("%s: %s[%lld] is %g, not %g", where, name, (long long)k, (double)got[k], (double)want[k]);
}

/* The kernel where its plan has put everything. */
static void run_program(const ot_graph *g, const ot_region_program *p, const ot_target *t, const truth *x, const char *where)
{
    ot_diag d = {0};
    ot_krun_array in[64];
    ot_krun_request q = {.inputs = in};
    ot_mem_plan *m = NULL;
    ot_krun_result *r = NULL;
    ot_target roomy = *t;
    roomy.scopes[OT_SCOPE_L2].bytes = ot_max(t->fast_bytes, p->memory.arena);
    const ot_mem_options o = {.threads = 1};
    for (uint32_t k = 0; k < p->n_params; k++) {
        const ot_tk_value *v = &p->kernel->values[p->params[k].at];
        if (p->params[k].is_output) continue;
        ot_krun_array *a = &in[q.n_inputs++];
        *a = (ot_krun_array){
            .name = v->name, .dtype = v->dtype, .rank = v->rank, .data = contents(x, g->values[p->params[k].value].name)};
        memcpy(a->dims, v->dims, sizeof v->dims);
    }
    if (ot_mem_plan_kernel(p->kernel, where, &roomy, &o, &d, &m) != OT_OK) fail_msg("%s: %s", where, d.message);
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

typedef struct tally {
    uint32_t regions, programs, inner, shared;
} tally;

static void run_regions(uint64_t seed, const char *target, int64_t l2, tally *n)
{
    graph_text t;
    truth x;
    ot_diag d = {0};
    ot_target machine;
    ot_plan *p = NULL;
    const ot_plan_options o = {.goal = OT_GOAL_TIME, .force = true};
    open_truth(seed, &x);
    random_graph(seed, false, &t);
    ot_model *m = model_of(t.text);
    assert_int_equal(ot_target_load(target, 1, &d, &machine), OT_OK);
    ot_target_set_l2(&machine, l2);
    assert_int_equal(ot_plan_graph(m->graph, &machine, &o, &p), OT_OK);
    for (uint32_t k = 0; k < p->n_regions; k++) {
        char where[120];
        ot_region_program q;
        ot_arena *a = ot_arena_new();
        snprintf(where, sizeof where, "seed %llu, %s, %lld bytes, region %u", (unsigned long long)seed, target, (long long)l2, k);
        if (ot_region_lower(m->graph, &p->regions[k], &machine, true, a, &d, &q) != OT_OK) fail_msg("%s: %s", where, d.message);
        n->regions++;
        n->programs += q.kernel != NULL;
        n->inner += q.n_inner > 0;
        n->shared += q.memory.level != OT_LEVEL_NONE;
        if (!q.kernel) print_message("%s: %s\n", where, q.why);
        if (q.kernel) run_program(m->graph, &q, &machine, &x, where);
        ot_kernel_free(q.kernel);
        ot_arena_free(a);
    }
    ot_plan_free(p);
    ot_model_free(m);
    close_truth(&x);
}

#define SEEDS 12

static void programs_make_what_the_reference_makes(void **state)
{
    (void)state;
    static const char *const targets[] = {"tlf-16m", "ascend-a2", "h200"};
    static const int64_t sizes[] = {4096, 16384, 65536};
    const char *first = getenv("OT_SEED");
    const uint64_t from = first ? strtoull(first, NULL, 10) : 1;
    for (size_t k = 0; k < 3; k++) {
        tally n = {0};
        for (uint64_t seed = from; seed < from + SEEDS; seed++)
            for (size_t j = 0; j < 3; j++) run_regions(seed, targets[k], sizes[j], &n);
        print_message("%s: %u regions, %u programs, %u in two levels, %u that share memory\n", targets[k], n.regions, n.programs,
                      n.inner, n.shared);
        assert_true(n.regions > SEEDS && n.programs == n.regions);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_make_what_the_reference_makes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
