/* What runs as one step, by the rules of each runtime: by hand, and that the cost model merges the
 * nodes that the memory model merges. Random cases print their seed. */
#include "fusion/steps.h"

#include "ir_check.h"

#include "cost/cost.h"
#include "ops/shape.h"

typedef struct found {
    ot_model *m;
    ot_arena *a;
    ot_node_list l;
    ot_steps s;
} found;

static ot_model *shaped(const char *text)
{
    ot_diag *d = calloc(1, sizeof *d);
    ot_model *m = NULL;
    if (!d || ot_text_parse(text, strlen(text), d, &m) != OT_OK ||
        ot_infer_shapes(m->graph, NULL, 0) != OT_OK ||
        ot_assure(m->graph, OT_P_ORDER | OT_P_USES) != OT_OK)
        fail_msg("%s\n%s", d ? d->message : "", text);
    return m;
}

static void close_model(ot_model *m)
{
    free(m->diag);
    ot_model_free(m);
}

static found find(const char *text, const ot_group_rules *rules)
{
    found f = {.m = shaped(text), .a = ot_arena_new()};
    const ot_graph *g = f.m->graph;
    f.l = (ot_node_list){
        .g = g, .n = g->n_order, .node = OT_NEW_N(f.a, const ot_node *, g->n_order + 1u)};
    for (uint32_t k = 0; k < f.l.n; k++) f.l.node[k] = &g->nodes[g->order[k]];
    assert_int_equal(ot_node_list_fill(&f.l, f.a), OT_OK);
    assert_int_equal(ot_steps_find(&f.l, rules, f.a, &f.s), OT_OK);
    return f;
}

static void close_found(found *f)
{
    ot_arena_free(f->a);
    close_model(f->m);
}

/* Each node's step as a letter, in the order: "aab" for two that run as one and one alone. */
static void check_steps(const char *nodes, const ot_group_rules *rules, const char *want)
{
    char text[2000], letters[64] = "", next = 'a';
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,8,12,12]\n"
             "  input %%q : float32[2,6,8]\n  input %%k : float32[2,8,6]\n"
             "  input %%v : float32[2,6,8]\n  init %%w : float32[8,8,1,1] = random 1\n"
             "  init %%b : float32[8] = random 2\n  init %%half : float32[1] = random 3\n%s}\n",
             nodes);
    found f = find(text, rules);
    for (uint32_t p = 0; p < f.l.n; p++) {
        for (uint32_t k = 0; k < p; k++)
            if (f.s.leader[k] == f.s.leader[p]) letters[p] = letters[k];
        if (!letters[p]) letters[p] = next++;
    }
    if (strcmp(letters, want) != 0)
        fail_msg("%s: %s, not %s\n%s", rules->name, letters, want, text);
    for (uint32_t p = 0; p < f.l.n; p++) { /* a step runs where its last node stands */
        if (f.s.leader[p] != p) continue;
        uint32_t last = p, n = 0;
        for (uint32_t k = p; k != OT_NONE; k = f.s.next[k], n++) last = k > last ? k : last;
        assert_int_equal(f.s.last[p], last);
        for (uint32_t k = 0; k < f.l.n; k++) n -= f.s.leader[k] == p;
        assert_int_equal(n, 0);
    }
    close_found(&f);
}

static void openvino_joins_what_nobody_else_reads(void **state)
{
    (void)state;
    const ot_group_rules *r = &ot_openvino_rules;
    check_steps("%a = Conv(%x, %w)\n%c = Relu(%a)\n%y = Neg(%c)\noutput %y\n", r, "aaa");
    check_steps("%a = Conv(%x, %w)\n%c = Sigmoid(%a)\n%y = Mul(%a, %c)\noutput %y\n", r, "aaa");
    check_steps("%a = Conv(%x, %w)\n%c = Relu(%a)\n%y = Neg(%a)\noutput %y\noutput %c\n", r, "abc");
    /* a step has one convolution; what it reads is not added in it */
    check_steps("%a = Conv(%x, %w)\n%c = Conv(%a, %w)\n%d = Conv(%x, %w)\n%y = Add(%c, %d)\n"
                "output %y\n",
                r, "abcc");
    check_steps("%a = Conv(%x, %w)\n%y = Add(%a, %x)\noutput %y\n", r, "ab");
    check_steps("%a = Conv(%x, %w)\n%c = MaxPool(%a) {kernel_shape=[1,1]}\n%y = Relu(%c)\n"
                "output %y\n",
                r, "abc");
    check_steps("%s = MatMul(%q, %k)\n%m = Mul(%s, %half)\n%p = Softmax(%m) {axis=-1}\n"
                "%y = MatMul(%p, %v)\noutput %y\n",
                r, "aaaa");
}

static void devices_extend_heads(void **state)
{
    (void)state;
    const ot_group_rules *r = &ot_device_rules;
    check_steps("%a = MaxPool(%x) {kernel_shape=[1,1]}\n%c = Relu(%a)\n%y = Neg(%c)\noutput %y\n",
                r, "aaa");
    check_steps("%s = MatMul(%q, %k)\n%m = Mul(%s, %half)\n%p = Softmax(%m) {axis=-1}\n"
                "%y = MatMul(%p, %v)\noutput %y\n",
                r, "aabc");
    check_steps("%a = Neg(%x)\n%c = Exp(%a)\n%y = Conv(%c, %w)\noutput %y\noutput %a\n", r, "aab");
}

static void the_engine_takes_attention(void **state)
{
    (void)state;
    check_steps("%a = MaxPool(%x) {kernel_shape=[1,1]}\n%c = Relu(%a)\n%y = Neg(%c)\noutput %y\n",
                &ot_engine_rules, "abb");
    check_steps("%a = Conv(%x, %w)\n%c = Relu(%a)\n%y = Add(%c, %x)\noutput %y\n", &ot_engine_rules,
                "aaa");
    check_steps("%a = Conv(%x, %w)\n%c = Relu(%a)\n%y = Add(%c, %x)\noutput %y\n",
                &ot_onnxruntime_rules, "aab");
}

static void onnxruntime_adds_within_pictures_only(void **state)
{
    (void)state;
    const ot_group_rules *r = &ot_onnxruntime_rules;
    check_steps("%a = Conv(%x, %w)\n%y = Add(%a, %x)\noutput %y\n", r, "aa");
    check_steps("input %l : float32[1,8,12]\ninit %n : float32[8,8,1] = random 4\n"
                "%a = Conv(%l, %n)\n%y = Add(%a, %l)\noutput %y\n",
                r, "ab");
    check_steps("input %l : float32[1,8,3,3,3]\ninit %n : float32[8,8,1,1,1] = random 4\n"
                "%a = Conv(%l, %n)\n%y = Add(%a, %l)\noutput %y\n",
                r, "ab");
}

/* ---- ONNX Runtime, node by node ---- */

static ot_id node_of(const ot_graph *g, const char *value)
{
    return g->values[ot_value_find(g, value)].producer;
}

static void onnxruntime_folds_and_joins(void **state)
{
    (void)state;
    ot_model *m = shaped("model ir 8 opset 17\ngraph g {\n  input %x : float32[1,8,12,12]\n"
                         "  input %r : float32[1,8,12,12]\n"
                         "  init %w : float32[8,8,1,1] = random 1\n"
                         "  init %f : float32[8,1,1] = random 2\n"
                         "  %a = Conv(%x, %w)\n  %b = Mul(%a, %f)\n  %c = Add(%b, %r)\n"
                         "  %y = Relu(%c)\n  output %y\n}\n");
    const ot_graph *g = m->graph;
    const ot_open_conv none = {0}, conv = {.is_conv = true};
    const ot_open_conv full = {.is_conv = true, .has_added = true};
    const ot_open_conv done = {.is_conv = true, .has_activation = true};
    const ot_node *add = &g->nodes[node_of(g, "c")], *relu = &g->nodes[node_of(g, "y")];
    assert_int_equal(ot_onnxruntime_folded(g, node_of(g, "a")), node_of(g, "b"));
    assert_int_equal(ot_onnxruntime_folded(g, node_of(g, "b")), OT_NONE); /* no constant */
    assert_int_equal(ot_onnxruntime_joins(g, add, (ot_open_conv[2]){conv, none}, true), 0);
    assert_int_equal(ot_onnxruntime_joins(g, add, (ot_open_conv[2]){none, conv}, true), 1);
    assert_int_equal(ot_onnxruntime_joins(g, add, (ot_open_conv[2]){full, none}, true), OT_NONE);
    assert_int_equal(ot_onnxruntime_joins(g, add, (ot_open_conv[2]){full, conv}, true), 1);
    assert_int_equal(ot_onnxruntime_joins(g, add, (ot_open_conv[2]){conv, none}, false), OT_NONE);
    assert_int_equal(ot_onnxruntime_joins(g, relu, (ot_open_conv[2]){full, none}, false), 0);
    assert_int_equal(ot_onnxruntime_joins(g, relu, (ot_open_conv[2]){done, none}, false), OT_NONE);
    close_model(m);
}

static void onnxruntime_reads_through(void **state)
{
    (void)state;
    ot_model *m = shaped("model ir 8 opset 17\ngraph g {\n  input %q : float32[2,6,8]\n"
                         "  input %k : float32[2,6,8]\n  init %half : float32[1] = random 3\n"
                         "  %t = Transpose(%k) {perm=[0, 2, 1]}\n  %s = MatMul(%q, %t)\n"
                         "  %n = Mul(%s, %half)\n  %u = Transpose(%n) {perm=[1, 0, 2]}\n"
                         "  %y = Neg(%u)\n  output %y\n}\n");
    const ot_graph *g = m->graph;
    static const struct {
        const char *value;
        bool through;
    } of[] = {{"t", true}, {"s", false}, {"n", true}, {"u", false}, {"y", false}};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        if (ot_onnxruntime_reads_through(g, &g->nodes[node_of(g, of[k].value)]) != of[k].through)
            fail_msg("%s", of[k].value);
    close_model(m);
}

/* ---- cost model and memory model ---- */

/* A chain of operators with a few readers of earlier values. */
static void make_text(uint64_t seed, char *text, size_t size)
{
    static const char *const unary[] = {"Relu", "Neg", "Sigmoid", "Exp"};
    uint64_t rng = seed;
    int at = snprintf(text, size,
                      "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[1,8,6,6]\n"
                      "  init %%w : float32[8,8,1,1] = random 1\n");
    const unsigned n = 3 + (unsigned)(ot_next_random(&rng) % 14);
    for (unsigned k = 1; k < n; k++) {
        const unsigned near = k > 3 ? 3 : k, a = k - 1 - (unsigned)(ot_next_random(&rng) % near),
                       b = k - 1 - (unsigned)(ot_next_random(&rng) % near);
        const unsigned what = (unsigned)(ot_next_random(&rng) % 8);
        char node[80];
        if (what < 2)
            snprintf(node, sizeof node, "Conv(%%v%u, %%w)", a);
        else if (what < 5)
            snprintf(node, sizeof node, "%s(%%v%u)", unary[ot_next_random(&rng) % 4], a);
        else if (what < 7)
            snprintf(node, sizeof node, "Add(%%v%u, %%v%u)", a, b);
        else
            snprintf(node, sizeof node, "MaxPool(%%v%u) {kernel_shape=[1,1]}", a);
        at += snprintf(text + at, size - (size_t)at, "  %%v%u = %s\n", k, node);
    }
    snprintf(text + at, size - (size_t)at, "  output %%v%u\n}\n", n - 1);
}

static void cost_and_memory_agree(void **state)
{
    (void)state;
    static const struct {
        const char *runtime;
        const ot_group_rules *rules;
    } of[] = {{"openvino", &ot_openvino_rules}, {"engine-device", &ot_device_rules}};
    uint32_t merged = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        char text[3000];
        make_text(seed, text, sizeof text);
        for (size_t r = 0; r < sizeof of / sizeof *of; r++) {
            found f = find(text, of[r].rules);
            ot_model *m = shaped(text);
            ot_diag d = {0};
            ot_target t;
            ot_seq s;
            if (ot_target_load("cpu-generic", 1, &d, &t) != OT_OK ||
                ot_target_set_runtime(&t, of[r].runtime, &d) != OT_OK)
                fail_msg("%s", d.message);
            assert_int_equal(ot_seq_build(m->graph, f.a, &s), OT_OK);
            assert_int_equal(ot_cost_fill(&s, &t), OT_OK);
            assert_int_equal(s.n, f.l.n);
            for (uint32_t p = 0; p < s.n; p++) {
                merged += s.fused[p];
                for (uint32_t k = 0; k < p; k++)
                    if ((s.head[k] == s.head[p]) != (f.s.leader[k] == f.s.leader[p]))
                        fail_msg("seed %llu, %s: nodes %u and %u\n%s", (unsigned long long)seed,
                                 of[r].runtime, k, p, text);
            }
            close_model(m);
            close_found(&f);
        }
    }
    assert_true(merged > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openvino_joins_what_nobody_else_reads),
        cmocka_unit_test(devices_extend_heads),
        cmocka_unit_test(the_engine_takes_attention),
        cmocka_unit_test(onnxruntime_adds_within_pictures_only),
        cmocka_unit_test(onnxruntime_folds_and_joins),
        cmocka_unit_test(onnxruntime_reads_through),
        cmocka_unit_test(cost_and_memory_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
