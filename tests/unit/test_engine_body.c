/* Graphs inside nodes: subgraphs and model-local functions, imported, run, and run out of memory.
 */
#include "engine_check.h"

#include "onnx/import/model_io.h"
#include "wire.h"

/* An attribute that stands for one of the call's. */
static wire x_attr_ref(const char *name, const char *ref, int type)
{
    return w_msg(5, W(w_str(1, name), w_int(20, type), w_str(21, ref)));
}

static wire x_attr_float(const char *name, float f)
{
    return w_msg(5, W(w_str(1, name), w_float(2, f), w_int(20, 1)));
}

/* Function `name` of domain "d": inputs, outputs, attributes and nodes are given as they are
 * encoded. */
static wire x_function(const char *name, const char *in, const char *out, const char *attrs,
                       wire nodes)
{
    return w_msg(25, W(w_str(1, name), w_words(4, in), w_words(5, out), w_words(6, attrs), nodes,
                       w_msg(9, w_int(2, 16)), w_str(10, "d")));
}

/* Nodes of graphs are field 1, those of functions field 7. */
enum { IN_GRAPH = 1, IN_FUNCTION = 7 };

static wire x_call(unsigned where, const char *op, const char *in, const char *out,
                   const char *name, wire attrs)
{
    return w_msg(where, W(w_words(1, in), w_words(2, out), w_str(3, name), w_str(4, op), attrs,
                          w_str(7, "d")));
}

static wire x_plain(unsigned where, const char *op, const char *in, const char *out, wire attrs)
{
    return w_msg(where, x_node(op, in, out, op, attrs));
}

/* Input x and output y: float32[2]. */
static wire x_whole(wire nodes, wire functions)
{
    static const float two[] = {2, 2};
    wire g = W(nodes, w_str(2, "g"), w_msg(5, x_tensor("w", OT_F32, DIMS(2), two, sizeof two)),
               w_msg(11, x_value_info("x", OT_F32, DIMS(2))),
               w_msg(12, x_value_info("y", OT_F32, DIMS(2))));
    return W(x_model(8, 17, g), x_opset("d", 1), functions);
}

static void open_wire(bench *b, wire file)
{
    ot_session_options o = {.poison = true};
    *b = (bench){0};
    if (ot_import_memory(file.data, file.n, NULL, &b->d, &b->m) != OT_OK)
        fail_msg("%s", b->d.message);
    b->status = ot_session_new(b->m, &o, &b->d, &b->s);
    wire_reset();
}

/* y of the model for x = {-1, 3}. */
static void check_y(wire file, float y0, float y1)
{
    float x[] = {-1, 3};
    bench b;
    ot_nd in = F32S(x, 2), out = {0};
    open_wire(&b, file);
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    for (int again = 0; again < 2; again++) {
        out = (ot_nd){0};
        run_ok(&b, &in, &out);
        CHECK_FLOATS(&out, y0, y1);
    }
    assert_int_equal(b.s->heap.live, 8); /* the result, nothing else */
    close_bench(&b);
}

/* ---- functions ---- */

static wire leaky(void)
{
    return x_function(
        "Leak", "a", "b", "slope",
        W(x_plain(IN_FUNCTION, "LeakyRelu", "a", "t", x_attr_ref("alpha", "slope", 1)),
          x_plain(IN_FUNCTION, "Mul", "t t", "b", W_NONE)));
}

static void attributes_of_calls(void **state)
{
    (void)state;
    wire f = leaky();
    check_y(x_whole(x_call(IN_GRAPH, "Leak", "x", "y", "call", x_attr_float("slope", 0.5f)), f),
            0.25f, 9);
    f = leaky();
    /* the operator's own default */
    check_y(x_whole(x_call(IN_GRAPH, "Leak", "x", "y", "call", W_NONE), f), 0.0001f, 9);
    wire body = x_plain(IN_FUNCTION, "LeakyRelu", "a", "b", x_attr_ref("alpha", "slope", 1));
    wire with_default = w_msg(
        25, W(w_str(1, "Leak"), w_words(4, "a"), w_words(5, "b"), body, w_msg(9, w_int(2, 16)),
              w_str(10, "d"), w_msg(11, W(w_str(1, "slope"), w_float(2, 0.25f), w_int(20, 1)))));
    check_y(x_whole(x_call(IN_GRAPH, "Leak", "x", "y", "call", W_NONE), with_default), -0.25f, 3);
}

/* A function calls another; names inside and outside do not meet; one body, two calls. */
static void functions_call_functions(void **state)
{
    (void)state;
    wire inner = x_function("Twice", "x", "y", "", x_plain(IN_FUNCTION, "Add", "x x", "y", W_NONE));
    wire outer = x_function("Quad", "y", "x", "",
                            W(x_call(IN_FUNCTION, "Twice", "y", "w", "a", W_NONE),
                              x_call(IN_FUNCTION, "Twice", "w", "x", "b", W_NONE)));
    wire nodes = W(x_call(IN_GRAPH, "Quad", "x", "t", "q", W_NONE),
                   x_plain(IN_GRAPH, "Mul", "t w", "y", W_NONE));
    check_y(x_whole(nodes, W(outer, inner)), -8, 24);
}

/* Inputs may be missing at the end or in between; the operator inside sees them missing. */
static void calls_omit_inputs(void **state)
{
    (void)state;
    wire f = x_function("Cut", "a lo hi", "b", "",
                        x_plain(IN_FUNCTION, "Clip", "a lo hi", "b", W_NONE));
    check_y(x_whole(x_call(IN_GRAPH, "Cut", "x", "y", "c", W_NONE), f), -1, 3);
    static const float one = 1;
    wire k = x_plain(IN_GRAPH, "Constant", "", "k",
                     w_msg(5, W(w_str(1, "value"),
                                w_msg(5, x_tensor("", OT_F32, DIMS(-9), &one, 4)), w_int(20, 4))));
    f = x_function("Cut", "a lo hi", "b", "", x_plain(IN_FUNCTION, "Clip", "a lo hi", "b", W_NONE));
    check_y(x_whole(W(k, x_call(IN_GRAPH, "Cut", "x _ k", "y", "c", W_NONE)), f), -1, 1);
}

static void results_may_be_inputs(void **state)
{
    (void)state;
    wire f = x_function("Both", "a b", "b c", "", x_plain(IN_FUNCTION, "Neg", "a", "c", W_NONE));
    check_y(x_whole(W(x_call(IN_GRAPH, "Both", "x w", "p q", "c", W_NONE),
                      x_plain(IN_GRAPH, "Add", "p q", "y", W_NONE)),
                    f),
            3, -1);
}

static void functions_are_checked(void **state)
{
    (void)state;
    bench b;
    wire f = x_function("F", "a", "b", "", x_plain(IN_FUNCTION, "Neg", "a", "b", W_NONE));
    open_wire(&b, x_whole(x_call(IN_GRAPH, "F", "x w", "y", "call", W_NONE), f));
    assert_int_equal(b.status, OT_E_INPUT);
    assert_string_equal(
        b.d.message,
        "node 'call' (F): its function takes 1 inputs and makes 1 outputs, not 2 and 1");
    close_bench(&b);
    f = x_function("F", "a", "b", "", w_msg(7, x_node("Nope", "a", "b", "inside", W_NONE)));
    open_wire(&b, x_whole(x_call(IN_GRAPH, "F", "x", "y", "call", W_NONE), f));
    assert_int_equal(b.status, OT_E_INPUT);
    assert_string_equal(b.d.message,
                        "node 'inside' (Nope): the engine does not have this operator");
    close_bench(&b);
    /* w is the caller's */
    f = x_function("F", "a", "b", "", x_plain(IN_FUNCTION, "Neg", "w", "b", W_NONE));
    open_wire(&b, x_whole(x_call(IN_GRAPH, "F", "x", "y", "call", W_NONE), f));
    assert_int_equal(b.status, OT_E_INPUT);
    assert_non_null(strstr(b.d.message, "reads 'w', which is defined nowhere"));
    close_bench(&b);
}

/* A tower of functions: too high, or each calling the next twice. */
static void towers_are_refused(void **state)
{
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        wire functions = {NULL, 0};
        int n = twice ? 30 : 80;
        for (int k = 0; k < n; k++) {
            char name[16], next[16];
            snprintf(name, sizeof name, "F%d", k);
            snprintf(next, sizeof next, "F%d", k + 1);
            wire last = x_plain(IN_FUNCTION, "Neg", "a", "b", W_NONE);
            wire both = W(x_call(IN_FUNCTION, next, "a", "t", "", W_NONE),
                          x_call(IN_FUNCTION, next, "t", "b", "", W_NONE));
            wire nodes = k == n - 1 ? last
                         : twice    ? both
                                    : x_call(IN_FUNCTION, next, "a", "b", "", W_NONE);
            functions = w_cat(functions, x_function(name, "a", "b", "", nodes));
        }
        bench b;
        open_wire(&b, x_whole(x_call(IN_GRAPH, "F0", "x", "y", "call", W_NONE), functions));
        assert_int_equal(b.status, OT_E_INPUT);
        assert_non_null(strstr(b.d.message, twice ? "too often" : "nested more than 64 deep"));
        close_bench(&b);
    }
}

/* ---- subgraphs ---- */

/* The graph of attribute `name` of the top graph's node k. */
static ot_graph *body_of(ot_model *m, ot_id k, const char *name)
{
    ot_graph *g = NULL;
    const ot_attr *a = ot_attr_find(&m->graph->nodes[k], name);
    assert_non_null(a);
    assert_true(ot_attr_has_graph(m, a));
    ot_status s = ot_import_body(m, a, m->graph, &g);
    if (s != OT_OK) fail_msg("%s", m->diag->message);
    return g;
}

static void bodies_are_imported(void **state)
{
    (void)state;
    float one = 1;
    wire deep = W(x_plain(IN_GRAPH, "Add", "t w", "deep", W_NONE), w_str(2, "deepest"),
                  w_msg(12, w_str(1, "deep")));
    wire body = W(x_plain(IN_GRAPH, "Add", "x k", "t", W_NONE),
                  w_msg(1, x_node("If", "c", "x2", "inner", x_attr_graph("then_branch", deep))),
                  w_str(2, "body"), w_msg(5, x_tensor("k", OT_F32, DIMS(1), &one, 4)),
                  w_msg(11, x_value_info("c", OT_BOOL, DIMS(-9))), w_msg(12, w_str(1, "x2")),
                  w_msg(12, w_str(1, "x")));
    wire file = x_whole(w_msg(1, x_node("Loop", "x", "y", "loop", x_attr_graph("body", body))),
                        W_NONE);
    ot_diag d = {0};
    ot_model *m;
    assert_int_equal(ot_import_memory(file.data, file.n, NULL, &d, &m), OT_OK);
    ot_graph *g = body_of(m, 0, "body");
    assert_ptr_equal(g->parent, m->graph);
    assert_string_equal(g->name, "body");
    assert_int_equal(g->n_order, 2);
    assert_int_equal(g->n_inputs, 1);
    assert_int_equal(g->n_outputs, 2);
    assert_true(g->values[g->outputs[1]].is_outer);
    assert_true(g->values[ot_value_find(g, "x")].is_outer);
    /* what deeper graphs read passes through */
    assert_true(g->values[ot_value_find(g, "w")].is_outer);
    assert_false(g->values[ot_value_find(g, "t")].is_outer);
    assert_non_null(g->values[ot_value_find(g, "k")].init);
    assert_int_equal(g->nodes[1].n_captured, 2);
    ot_graph *inner = NULL;
    assert_int_equal(ot_import_body(m, ot_attr_find(&g->nodes[1], "then_branch"), g, &inner),
                     OT_OK);
    assert_ptr_equal(inner->parent, g);
    assert_int_equal(inner->nodes[0].op, OT_OP_Add);
    assert_int_equal(inner->nodes[0].version, 17);
    ot_attr none = ot_mk_int("body", 1);
    assert_false(ot_attr_has_graph(m, &none));
    assert_int_equal(ot_import_body(m, &none, m->graph, &g), OT_E_INPUT);
    ot_model_free(m);
    wire_reset();
}

/* How torch writes x.tile(2, 3): what repeats x stands in the branch that is taken, in front of it
 * what the graph around knows. */
static wire repeats_of_branch(uint8_t taken)
{
    static const int64_t three[] = {3}, two[] = {2};
    wire yes = W(x_plain(IN_GRAPH, "Concat", "two three", "t", x_attr_int("axis", 0)),
                 w_str(2, "yes"), w_msg(5, x_tensor("three", OT_I64, DIMS(1), three, 8)),
                 w_msg(12, x_value_info("t", OT_I64, DIMS(-1))));
    wire no = W(x_plain(IN_GRAPH, "Concat", "two two", "e", x_attr_int("axis", 0)), w_str(2, "no"),
                w_msg(12, x_value_info("e", OT_I64, DIMS(-1))));
    wire branches = W(x_attr_graph("then_branch", yes), x_attr_graph("else_branch", no));
    wire g = W(w_msg(1, x_node("If", "c", "r", "if", branches)),
               x_plain(IN_GRAPH, "Tile", "x r", "y", W_NONE), w_str(2, "g"),
               w_msg(5, x_tensor("two", OT_I64, DIMS(1), two, 8)),
               w_msg(5, x_tensor("c", OT_BOOL, DIMS(1), &taken, 1)),
               w_msg(11, x_value_info("x", OT_F32, DIMS(4, 5))),
               w_msg(12, x_value_info("y", OT_F32, DIMS(-1, -1))));
    return x_model(8, 17, g);
}

static void taken_branches_hand_on_contents(void **state)
{
    (void)state;
    for (uint8_t taken = 0; taken < 2; taken++) {
        wire file = repeats_of_branch(taken);
        ot_diag d = {0};
        ot_model *m, *copy;
        assert_int_equal(ot_import_memory(file.data, file.n, NULL, &d, &m), OT_OK);
        for (int round = 0; round < 2; round++) { /* a graph that has shapes is inferred again */
            assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
            assert_int_equal(ot_model_clone(m, &copy), OT_OK);
            assert_int_equal(ot_infer_shapes(copy->graph, NULL, 0), OT_OK);
            for (int k = 0; k < 2; k++) {
                const ot_graph *g = k ? copy->graph : m->graph;
                const ot_value *r = &g->values[ot_value_find(g, "r")],
                               *y = &g->values[ot_value_find(g, "y")];
                assert_non_null(r->known);
                assert_int_equal(r->known_n, 2);
                assert_int_equal(y->rank, 2);
                assert_int_equal(y->dims[0], 8);
                assert_int_equal(y->dims[1], taken ? 15 : 10);
                assert_false(g->nodes[0].is_static); /* it reads what its branches do */
            }
            ot_model_free(copy);
        }
        ot_model_free(m);
        wire_reset();
    }
}

/* ---- running subgraphs; arena memory is poisoned as soon as the plan gives it up ---- */

static const char head[] = "  input %x : float32[2]\n  init %yes : bool[] = [1]\n  init %no : "
                           "bool[] = [0]\n  init %w : float32[2] = [10, 20]\n";

/* y of a graph in text form for x = {-1, 3}, twice; nothing stays behind. */
static void check_text(const char *rest, float y0, float y1)
{
    float x[] = {-1, 3};
    char graph[4000];
    snprintf(graph, sizeof graph, "%s%s", head, rest);
    bench b;
    ot_nd in = F32S(x, 2), out = {0};
    ot_session_figures f;
    open_text(&b, graph);
    for (int again = 0; again < 2; again++) {
        out = (ot_nd){0};
        run_ok(&b, &in, &out);
        CHECK_FLOATS(&out, y0, y1);
    }
    ot_session_figures_get(b.s, &f);
    assert_int_equal(f.n_mispredicted, 0);
    assert_int_equal(b.s->heap.live, 8);
    close_bench(&b);
}

/* A branch hands out what it reads from around it: a value in the arena that dies, a constant,
 * an input. */
static void branches_hand_out_what_is_not_theirs(void **state)
{
    (void)state;
    static const char *const what[] = {"a", "w", "x"};
    const float want[][2] = {{1, -3}, {10, 20}, {-1, 3}};
    for (size_t k = 0; k < 3; k++) {
        char text[2000];
        snprintf(text, sizeof text,
                 "  %%a = Neg(%%x)\n  %%r : float32[2] = If(%%yes) {then_branch=graph t {\n outer "
                 "%%%s : float32[2]\n"
                 " %%t : float32[2] = Identity(%%%s)\n output %%t\n}, else_branch=graph e {\n"
                 " outer %%x : float32[2]\n %%e : float32[2] = Abs(%%x)\n output %%e\n}}\n"
                 "  %%s = Relu(%%x)\n  %%u = Abs(%%s)\n  %%v = Sub(%%u, %%s)\n  %%y = Add(%%r, "
                 "%%v)\n  output %%y",
                 what[k], what[k]);
        check_text(text, want[k][0], want[k][1]);
    }
}

/* Five times state = state * 2 + w, w from around; then no times: the first state comes back. */
static void loops_carry_states(void **state)
{
    (void)state;
    for (int times = 0; times <= 5; times += 5) {
        char text[2000];
        snprintf(text, sizeof text,
                 "  init %%n : int64[] = [%d]\n  %%a = Neg(%%x)\n"
                 "  %%r : float32[2] = Loop(%%n, _, %%a) {body=graph step {\n input %%i : "
                 "int64[]\n input %%go : bool[]\n "
                 "input %%q : float32[2]\n"
                 " outer %%w : float32[2]\n %%d : float32[2] = Add(%%q, %%q)\n %%next : float32[2] "
                 "= Add(%%d, %%w)\n"
                 " %%again : bool[] = Identity(%%go)\n output %%again\n output %%next\n}}\n"
                 "  %%s = Relu(%%x)\n  %%u = Abs(%%s)\n  %%v = Sub(%%u, %%s)\n  %%y = Add(%%r, "
                 "%%v)\n  output %%y",
                 times);
        if (times)
            check_text(text, 1 * 32 + 310, -3 * 32 + 620);
        else
            check_text(text, 1, -3);
    }
}

/* Two levels down, a value of the top graph. */
static void bodies_nest(void **state)
{
    (void)state;
    check_text("  init %n : int64[] = [3]\n  %a = Neg(%x)\n"
               "  %y : float32[2] = Loop(%n, %yes, %w) {body=graph step {\n input %i : int64[]\n "
               "input %go : bool[]\n input "
               "%q : float32[2]\n"
               " outer %a : float32[2]\n outer %no : bool[]\n"
               " %next : float32[2] = If(%no) {then_branch=graph t {\n outer %q : float32[2]\n %tt "
               ": float32[2] = Neg(%q)\n "
               "output %tt\n},"
               " else_branch=graph e {\n outer %q : float32[2]\n outer %a : float32[2]\n %ee : "
               "float32[2] = Add(%q, %a)\n "
               "output %ee\n}}\n"
               " %again : bool[] = Identity(%go)\n output %again\n output %next\n}}\n  output %y",
               13, 11);
}

/* Sequences hold arrays that die around them. */
static void sequences_outlive_their_makers(void **state)
{
    (void)state;
    wire nodes = W(x_plain(IN_GRAPH, "Neg", "x", "a", W_NONE),
                   x_plain(IN_GRAPH, "SequenceConstruct", "a w", "q", W_NONE),
                   x_plain(IN_GRAPH, "Abs", "x", "b", W_NONE),
                   x_plain(IN_GRAPH, "Sub", "b b", "c", W_NONE),
                   x_plain(IN_GRAPH, "ConcatFromSequence", "q", "d",
                           W(x_attr_int("axis", 0), x_attr_int("new_axis", 1))),
                   x_plain(IN_GRAPH, "ReduceSum", "d k", "e", x_attr_int("keepdims", 0)),
                   x_plain(IN_GRAPH, "Add", "c e", "y", W_NONE));
    int64_t zero = 0;
    wire k = x_plain(IN_GRAPH, "Constant", "", "k",
                     w_msg(5, W(w_str(1, "value"),
                                w_msg(5, x_tensor("", OT_I64, DIMS(1), &zero, 8)), w_int(20, 4))));
    check_y(x_whole(W(k, nodes), W_NONE), 3, -1);
}

/* What only some operators take is refused by the others. */
static void sequences_are_no_tensors(void **state)
{
    (void)state;
    float x[] = {-1, 3};
    bench b;
    ot_nd in = F32S(x, 2), out = {0};
    open_wire(&b, x_whole(W(x_plain(IN_GRAPH, "SequenceConstruct", "x x", "q", W_NONE),
                            x_plain(IN_GRAPH, "Neg", "q", "y", W_NONE)),
                          W_NONE));
    assert_int_equal(b.status, OT_OK);
    assert_int_equal(ot_session_run(b.s, &in, &out, &b.d), OT_E_INPUT);
    assert_string_equal(
        b.d.message,
        "node 'Neg' (Neg): input 0 is a sequence, which this operator of the engine does not take");
    close_bench(&b);
}

/* ---- memory runs out ---- */

static long allowed, live;

static void *failing_hook(void *ptr, size_t old_size, size_t new_size)
{
    if (new_size && allowed-- <= 0) return NULL;
    live += (long)new_size - (long)(ptr ? old_size : 0);
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static ot_status everything(wire file, ot_diag *d)
{
    float x[] = {-1, 3};
    ot_model *m = NULL;
    ot_session *s = NULL;
    ot_nd in = F32S(x, 2), out = {0};
    OT_TRY(ot_import_memory(file.data, file.n, NULL, d, &m));
    ot_session_options o = {.poison = true};
    ot_status st = ot_session_new(m, &o, d, &s);
    if (st == OT_OK) st = ot_session_run(s, &in, &out, d);
    if (st == OT_OK) assert_true(((float *)out.data)[1] == 9);
    ot_session_free(s);
    ot_model_free(m);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    wire nodes = W(
        x_call(IN_GRAPH, "Leak", "x", "t", "call", x_attr_float("slope", 0.5f)),
        x_plain(IN_GRAPH, "Abs", "w", "v", W_NONE), x_plain(IN_GRAPH, "Div", "v v", "one", W_NONE),
        x_plain(IN_GRAPH, "Mul", "t one", "u", W_NONE), x_plain(IN_GRAPH, "Abs", "u", "y", W_NONE));
    wire file = x_whole(nodes, leaky());
    ot_set_alloc_hook(failing_hook);
    long k = 0;
    for (;; k++) {
        ot_diag d = {0};
        allowed = k;
        live = 0;
        ot_status st = everything(file, &d);
        if (live != 0) fail_msg("%ld bytes are not given back when allocation %ld fails", live, k);
        if (st == OT_OK) break;
        if (st != OT_E_NOMEM || d.status != OT_E_NOMEM)
            fail_msg("allocation %ld fails: status %d, %s", k, st, d.message);
    }
    ot_set_alloc_hook(NULL);
    assert_true(k > 50); /* the walk saw what it came for */
    wire_reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_of_calls),
        cmocka_unit_test(functions_call_functions),
        cmocka_unit_test(calls_omit_inputs),
        cmocka_unit_test(results_may_be_inputs),
        cmocka_unit_test(functions_are_checked),
        cmocka_unit_test(towers_are_refused),
        cmocka_unit_test(bodies_are_imported),
        cmocka_unit_test(taken_branches_hand_on_contents),
        cmocka_unit_test(branches_hand_out_what_is_not_theirs),
        cmocka_unit_test(loops_carry_states),
        cmocka_unit_test(bodies_nest),
        cmocka_unit_test(sequences_outlive_their_makers),
        cmocka_unit_test(sequences_are_no_tensors),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
