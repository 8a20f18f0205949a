/* Sessions: values, memory as planned, inputs and outputs in place, refusals. */
#include "engine_check.h"

#include <math.h>
#include <pthread.h>

static const char chain[] = "  input %x : float32[?,3]\n"
                            "  init %w : float32[3] = [1, -2, 0.5]\n"
                            "  %a = Add(%x, %w)\n"
                            "  %b = Relu(%a)\n"
                            "  %c = Mul(%b, %w)\n"
                            "  %d = Abs(%c)\n"
                            "  %y = Sub(%d, %b)\n"
                            "  output %y";

static void values_are_right(void **state)
{
    (void)state;
    float x[] = {1, 2, 3, -1, 4, -4};
    bench b;
    ot_nd in = F32S(x, 2, 3), out = {0};
    open_text(&b, chain);
    for (int again = 0; again < 2; again++) {
        out = (ot_nd){0};
        run_ok(&b, &in, &out);
        assert_int_equal(out.rank, 2);
        assert_int_equal(out.dims[0], 2);
        CHECK_FLOATS(&out, 0, 0, -1.75f, 0, 2, 0);
    }
    assert_true(x[4] == 4); /* inputs are only read */
    close_bench(&b);
}

/* What is planned is what is allocated, and what kernels make is what was planned. */
static void arena_is_as_planned(void **state)
{
    (void)state;
    const ot_shape_binding shape = {"x", 2, (int64_t[]){100, 3}, false, NULL};
    float x[300] = {0};
    bench b;
    ot_nd in = F32S(x, 100, 3), out = {0};
    ot_session_figures f;
    open_with(&b, chain, (ot_session_options){.reference = true, .shapes = &shape, .n_shapes = 1});
    assert_int_equal(b.status, OT_OK);
    run_ok(&b, &in, &out);
    ot_session_figures_get(b.s, &f);
    assert_int_equal(f.planned_peak, b.s->arena->bytes);
    assert_int_equal(f.n_mispredicted, 0);
    assert_int_equal(f.n_nodes, 5);
    /* a to d; b lives from its making to the end, and two neighbours of the chain at one time */
    assert_int_equal(f.planned_peak, 3 * 1200 + 2 * 16);
    assert_int_equal(f.weight_bytes, 12);
    assert_true(f.peak >= f.planned_peak + 1200);
    close_bench(&b);
}

/* Values of unknown size live on the heap and leave it after their last use. */
static void heap_is_given_back(void **state)
{
    (void)state;
    float x[300] = {0};
    bench b;
    ot_nd in = F32S(x, 100, 3), out = {0};
    ot_session_figures f;
    open_text(&b, chain);
    run_ok(&b, &in, &out);
    ot_session_figures_get(b.s, &f);
    assert_int_equal(f.planned_peak, 0);
    assert_int_equal(b.s->heap.live, 1200); /* the result */
    int64_t first = f.peak;
    out = (ot_nd){0};
    run_ok(&b, &in, &out);
    ot_session_figures_get(b.s, &f);
    assert_int_equal(f.peak, first);
    close_bench(&b);
}

static void outputs_go_where_the_caller_says(void **state)
{
    (void)state;
    float x[] = {1, 2, 3, -1, 4, -4}, mine[6] = {0}, small[3];
    bench b;
    ot_nd in = F32S(x, 2, 3), out = F32S(mine, 2, 3);
    open_text(&b, chain);
    run_ok(&b, &in, &out);
    assert_ptr_equal(out.data, mine);
    CHECK_FLOATS(&out, 0, 0, -1.75f, 0, 2, 0);
    ot_nd wrong = F32S(small, 1, 3);
    assert_int_equal(ot_session_run(b.s, &in, &wrong, &b.d), OT_E_INPUT);
    assert_non_null(strstr(b.d.message, "[2,3], but the memory given for it is for float32 [1,3]"));
    b.d = (ot_diag){0};
    run_ok(&b, &in, &out); /* a run that failed does no harm to the next */
    close_bench(&b);
}

/* Outputs that no node makes: an input, a constant, one value twice. */
static void outputs_without_nodes(void **state)
{
    (void)state;
    float x[] = {1, -2}, mine[2];
    bench b;
    ot_nd in = F32S(x, 2), out[4] = {{0}, {0}, F32S(mine, 2), {0}};
    open_text(&b, "  input %x : float32[2]\n  init %w : float32[2] = [5, 6]\n  %y = Relu(%x)\n"
                  "  output %x\n  output %w\n  output %y\n  output %y");
    run_ok(&b, &in, out);
    assert_ptr_not_equal(out[0].data, x);
    CHECK_FLOATS(&out[0], 1, -2);
    CHECK_FLOATS(&out[1], 5, 6);
    CHECK_FLOATS(&out[2], 1, 0);
    CHECK_FLOATS(&out[3], 1, 0);
    assert_ptr_equal(out[2].data, mine);
    close_bench(&b);
}

static void inputs_are_checked(void **state)
{
    (void)state;
    float x[8] = {0};
    bench b;
    open_text(&b, "  input %x : float32[2,?]\n  %y = Relu(%x)\n  output %y");
    static const int64_t flat[] = {4}, tall[] = {4, 2};
    const struct {
        ot_nd in;
        const char *says;
    } cases[] = {{over(OT_F32, x, 1, flat), "input 'x' has shape [2,?], but [4] is given"},
                 {over(OT_F32, x, 2, tall), "input 'x' has shape [2,?], but [4,2] is given"},
                 {over(OT_F64, x, 2, tall), "input 'x' is float32, but float64 is given"},
                 {{0}, "input 'x' is not given"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ot_nd out = {0};
        b.d = (ot_diag){0};
        assert_int_equal(ot_session_run(b.s, &cases[k].in, &out, &b.d), OT_E_INPUT);
        if (!strstr(b.d.message, cases[k].says)) fail_msg("%s", b.d.message);
    }
    close_bench(&b);
}

/* An operator that nobody has is refused, unless nothing depends on it. */
static void unknown_operators(void **state)
{
    (void)state;
    bench b;
    open_with(&b, "  input %x : float32[2]\n  %y = Frobnicate(%x) \"f\"\n  output %y",
              (ot_session_options){0});
    assert_int_equal(b.status, OT_E_INPUT);
    assert_string_equal(b.d.message,
                        "node 'f' (Frobnicate): the engine does not have this operator");
    close_bench(&b);
    open_with(&b, "  input %x : float32[2]\n  %y = \"some.where\"::Abs@1(%x) \"f\"\n  output %y",
              (ot_session_options){0});
    assert_int_equal(b.status, OT_E_INPUT);
    assert_string_equal(
        b.d.message,
        "node 'f' (Abs): the engine does not have this operator (domain 'some.where')");
    close_bench(&b);
    open_text(&b,
              "  input %x : float32[2]\n  %z = Frobnicate(%x) \"f\"\n  %y = Relu(%x)\n  output %y");
    assert_int_equal(b.s->top->n_steps, 1);
    close_bench(&b);
}

/* What depends on constants only is computed once. */
static void constants_are_folded(void **state)
{
    (void)state;
    float x[] = {1, 2};
    bench b;
    ot_nd in = F32S(x, 2), out = {0};
    ot_session_figures f;
    open_text(&b, "  input %x : float32[2]\n  init %w : float32[2] = [-3, 4]\n  %a = Abs(%w)\n  %b "
                  "= Neg(%a)\n  %y = "
                  "Add(%x, %b)\n  output %y");
    assert_int_equal(b.s->top->n_steps, 1);
    run_ok(&b, &in, &out);
    CHECK_FLOATS(&out, -2, -2);
    ot_session_figures_get(b.s, &f);
    assert_int_equal(f.n_folded, 2);
    assert_int_equal(f.weight_bytes, 8 + 8 + 8);
    close_bench(&b);
}

/* A view of what was folded has no bytes of its own: it is a weight once, and what lives is never
 * below nothing. */
static void folded_views_count_once(void **state)
{
    (void)state;
    float x[] = {1, 2};
    bench b;
    ot_nd in = F32S(x, 2), out = {0};
    ot_session_figures f;
    open_text(&b, "  input %x : float32[2]\n  init %w : float32[2, 1] = [-3, 4]\n  init %s : "
                  "int64[1] = [2]\n  %a = Abs(%w)\n  %b = Reshape(%a, %s)\n  %y = "
                  "Add(%x, %b)\n  output %y");
    assert_int_equal(b.s->heap.live, 0);
    run_ok(&b, &in, &out);
    CHECK_FLOATS(&out, 4, 6);
    ot_session_figures_get(b.s, &f);
    assert_int_equal(f.n_folded, 2);
    assert_int_equal(f.weight_bytes, 8 + 8 + 8);
    assert_true(f.peak >= f.planned_peak);
    close_bench(&b);
}

/* Initializers that are inputs, too, may be replaced; the model is as it was afterwards. */
static void initializers_are_overridden(void **state)
{
    (void)state;
    static const char text[] = "  input %x : float32[2]\n  input init %w : float32[2] = [10, 20]\n "
                               " %y = Add(%x, %w)\n  output %y";
    float x[] = {1, 2}, other[] = {5, 6};
    ot_override o = {"w", F32S(other, 2)};
    bench b;
    ot_nd in = F32S(x, 2), out = {0};
    open_text(&b, text);
    assert_int_equal(ot_session_inputs(b.s), 1);
    run_ok(&b, &in, &out);
    CHECK_FLOATS(&out, 11, 22);
    ot_session_free(b.s);
    const ot_tensor *own = b.m->graph->values[ot_value_find(b.m->graph, "w")].init;
    ot_session_options options = {.overrides = &o, .n_overrides = 1};
    assert_int_equal(ot_session_new(b.m, &options, &b.d, &b.s), OT_OK);
    out = (ot_nd){0};
    run_ok(&b, &in, &out);
    CHECK_FLOATS(&out, 6, 8);
    ot_session_free(b.s);
    assert_ptr_equal(b.m->graph->values[ot_value_find(b.m->graph, "w")].init, own);
    o.name = "x";
    assert_int_equal(ot_session_new(b.m, &options, &b.d, &b.s), OT_E_INPUT);
    ot_model_free(b.m);
}

/* A constant whose contents are not there is refused by whoever reads it. */
static void constants_without_contents(void **state)
{
    (void)state;
    float x[] = {1, 2};
    bench b;
    ot_nd in = F32S(x, 2), out = {0};
    open_text(
        &b,
        "  input %x : float32[2]\n  init %w : float32[2]\n  %y = Add(%x, %w) \"add\"\n  output %y");
    assert_int_equal(ot_session_run(b.s, &in, &out, &b.d), OT_E_INPUT);
    assert_non_null(strstr(b.d.message, "node 'add' (Add): the contents of input 1"));
    close_bench(&b);
}

/* ---- views ---- */

/* A reshape is another name of the same bytes: nothing but the first value needs a place. */
static void reshapes_take_no_memory(void **state)
{
    (void)state;
    float x[] = {1, -2, 3, -4, 5, -6};
    bench b;
    ot_nd in = F32S(x, 2, 3), out = {0};
    ot_session_figures f;
    open_text(
        &b,
        "  input %x : float32[2,3]\n  init %s : int64[3] = [1, 6, 1]\n  init %ax : int64[1] = [0]\n"
        "  %a = Neg(%x)\n  %b = Reshape(%a, %s)\n  %c = Squeeze(%b, %ax)\n  %d = Identity(%c)\n  "
        "%e, %m = Dropout(%d)\n"
        "  %f = Flatten(%e)\n  %y = Abs(%f)\n  output %y");
    run_ok(&b, &in, &out);
    CHECK_FLOATS(&out, 1, 2, 3, 4, 5, 6);
    ot_session_figures_get(b.s, &f);
    assert_int_equal(f.planned_peak, 24);
    assert_int_equal(f.n_mispredicted, 0);
    close_bench(&b);
}

/* Views of inputs and constants cost nothing; as results they are copies, so that the caller's
 * memory is not handed back. */
static void views_of_what_is_not_ours(void **state)
{
    (void)state;
    float x[] = {1, -2, 3, -4};
    bench b;
    ot_nd in = F32S(x, 4), out[3] = {{0}};
    open_text(
        &b,
        "  input %x : float32[4]\n  init %s : int64[2] = [2, 2]\n  init %w : float32[4] = [1, 2, "
        "3, 4]\n"
        "  %a = Reshape(%x, %s)\n  %b = Reshape(%w, %s)\n  %c = Add(%a, %b)\n  %y = Identity(%c)\n"
        "  output %y\n  output %a\n  output %b");
    run_ok(&b, &in, out);
    CHECK_FLOATS(&out[0], 2, 0, 6, 0);
    CHECK_FLOATS(&out[1], 1, -2, 3, -4);
    CHECK_FLOATS(&out[2], 1, 2, 3, 4);
    assert_ptr_not_equal(out[1].data, x);
    assert_int_equal(out[1].rank, 2);
    close_bench(&b);
}

/* What the file states is only believed until a kernel says otherwise. */
static void wrong_predictions_are_found(void **state)
{
    (void)state;
    float x[] = {0, 5, 0, 7};
    bench b;
    ot_nd in = F32S(x, 4), out = {0};
    ot_session_figures f;
    open_text(&b, "  input %x : float32[4]\n  %n : int64[1,3] = NonZero(%x)\n  %m : int64[1,3] = "
                  "Neg(%n)\n  %y = Abs(%m)\n  "
                  "output %y");
    run_ok(&b, &in, &out);
    assert_int_equal(out.dims[1], 2);
    assert_int_equal(((int64_t *)out.data)[1], 3);
    ot_session_figures_get(b.s, &f);
    assert_int_equal(f.n_mispredicted, 2);
    close_bench(&b);
}

/* ---- any graph: planned or not, the same results ---- */

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Element-wise operators and reshapes over values of 12 elements, some of them outputs. dim: of
 * the input. */
static void random_graph(uint32_t seed, const char *dim, char *text, size_t size)
{
    static const char *const unary[] = {"Relu", "Neg", "Abs", "Identity", "Sigmoid", "Flatten"};
    static const char *const binary[] = {"Add", "Sub", "Max"};
    uint32_t r = seed * 2654435761u + 1, n = 5 + next_random(&r) % 40;
    size_t at = (size_t)snprintf(
        text, size, "  input %%v0 : float32[%s,4]\n  init %%s : int64[2] = [3, 4]\n", dim);
    for (uint32_t k = 1; k <= n; k++) {
        uint32_t near = k < 6 ? k : 6, a = k - 1 - next_random(&r) % near,
                 b = k - 1 - next_random(&r) % near;
        uint32_t what = next_random(&r) % 10;
        if (what < 4)
            at += (size_t)snprintf(text + at, size - at, "  %%v%u = %s(%%v%u)\n", k,
                                   unary[next_random(&r) % 6], a);
        else if (what < 6)
            at += (size_t)snprintf(text + at, size - at, "  %%v%u = Reshape(%%v%u, %%s)\n", k, a);
        else
            at += (size_t)snprintf(text + at, size - at,
                                   "  %%r%u = Reshape(%%v%u, %%s)\n  %%q%u = Reshape(%%v%u, %%s)\n "
                                   " %%v%u = %s(%%r%u, %%q%u)\n",
                                   k, a, k, b, k, binary[next_random(&r) % 3], k, k);
        if (next_random(&r) % 8 == 0 || k == n)
            at += (size_t)snprintf(text + at, size - at, "  output %%v%u\n", k);
    }
}

/* Chains compute a Sigmoid in another way than the reference: to the last digits. */
static bool near(const float *a, const float *b, int n)
{
    for (int k = 0; k < n; k++)
        if (fabsf(a[k] - b[k]) > 1e-5f * fmaxf(1, fabsf(b[k]))) return false;
    return true;
}

static void random_graphs(void **state)
{
    (void)state;
    char text[12000];
    float x[12];
    for (int k = 0; k < 12; k++) x[k] = (float)k * 0.75f - 4;
    ot_nd in = F32S(x, 3, 4);
    for (uint32_t seed = 1; seed <= 150; seed++) {
        bench planned, heap;
        ot_session_figures f;
        random_graph(seed, "3", text, sizeof text);
        open_text(&planned, text);
        random_graph(seed, "?", text, sizeof text);
        open_text(&heap, text);
        uint32_t n = ot_session_outputs(planned.s);
        ot_nd a[50] = {{0}}, b[50] = {{0}};
        assert_in_range(n, 1, 50);
        run_ok(&planned, &in, a);
        run_ok(&heap, &in, b);
        for (uint32_t k = 0; k < n; k++) {
            if (!ot_nd_same_shape(&a[k], OT_F32, b[k].rank, b[k].dims) ||
                !near(a[k].data, b[k].data, 12))
                fail_msg("seed %u: output %u differs", seed, k);
        }
        ot_session_figures_get(planned.s, &f);
        if (f.n_mispredicted != 0)
            fail_msg("seed %u: %u values not as planned", seed, f.n_mispredicted);
        close_bench(&planned);
        close_bench(&heap);
    }
}

/* ---- sessions share nothing ---- */

static void *many_runs(void *arg)
{
    bench *b = arg;
    float x[] = {1, 2, 3, -1, 4, -4};
    for (int k = 0; k < 50; k++) {
        ot_nd in = F32S(x, 2, 3), out = {0};
        if (ot_session_run(b->s, &in, &out, &b->d) != OT_OK || ((float *)out.data)[2] != -1.75f)
            return arg;
    }
    return NULL;
}

static void sessions_run_side_by_side(void **state)
{
    (void)state;
    bench b[2];
    pthread_t t[2];
    for (int k = 0; k < 2; k++) open_text(&b[k], chain);
    for (int k = 0; k < 2; k++) assert_int_equal(pthread_create(&t[k], NULL, many_runs, &b[k]), 0);
    for (int k = 0; k < 2; k++) {
        void *failed;
        assert_int_equal(pthread_join(t[k], &failed), 0);
        assert_null(failed);
    }
    for (int k = 0; k < 2; k++) close_bench(&b[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_right),
        cmocka_unit_test(arena_is_as_planned),
        cmocka_unit_test(heap_is_given_back),
        cmocka_unit_test(outputs_go_where_the_caller_says),
        cmocka_unit_test(outputs_without_nodes),
        cmocka_unit_test(inputs_are_checked),
        cmocka_unit_test(unknown_operators),
        cmocka_unit_test(constants_are_folded),
        cmocka_unit_test(folded_views_count_once),
        cmocka_unit_test(initializers_are_overridden),
        cmocka_unit_test(constants_without_contents),
        cmocka_unit_test(reshapes_take_no_memory),
        cmocka_unit_test(views_of_what_is_not_ours),
        cmocka_unit_test(wrong_predictions_are_found),
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(sessions_run_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
