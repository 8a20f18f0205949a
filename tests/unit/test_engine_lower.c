/* Fused steps, layouts, windows and the memory plan against reference kernels, on random graphs;
 * shapes that bodies state wrongly. */
#include "engine_graphs.h"

/* ---- random graphs ---- */

static void check_outputs(const graph *g, const graph_run *want, const graph_run *got,
                          const char *what, unsigned seed)
{
    for (int k = 0; k < g->outputs; k++) {
        double e = graph_error(&want->out[k], &got->out[k]);
        if (!(e <= GRAPH_NMSE))
            fail_msg("seed %u, %s: output %d has error %.2e\n%s", seed, what, k, e, g->text);
    }
}

/* The arena is all that a run takes, when no kernel asks for scratch and outputs have places. */
static void check_peak(const graph *g, const graph_run *r, unsigned seed)
{
    ot_session_figures f;
    ot_session_figures_get(r->s, &f);
    if (f.n_mispredicted)
        fail_msg("seed %u: %u values are not as planned\n%s", seed, f.n_mispredicted, g->text);
    if (g->plain && f.peak != f.planned_peak)
        fail_msg("seed %u: peak %lld, planned %lld\n%s", seed, (long long)f.peak,
                 (long long)f.planned_peak, g->text);
}

static void check_seed(unsigned seed)
{
    static graph g;
    char what[100];
    graph_run ref;
    bool cond = seed % 2;
    float *x = graph_reference(&g, seed, false, cond, &ref);
    for (uint32_t k = 0; k < 2; k++) {
        graph_run fast = {.m = NULL};
        ot_session_options o = {.threads = k ? 3 : 1, .poison = (seed + k) % 2};
        snprintf(what, sizeof what, "%u threads%s", o.threads, o.poison ? ", poisoned" : "");
        if (graph_open(&fast, text_model(g.text, &fast.d), o) != OT_OK)
            fail_msg("seed %u, %s: %s\n%s", seed, what, fast.d.message, g.text);
        for (int again = 0; again < 2; again++) {
            bool places = again == 0;
            if (graph_execute(&fast, &g, x, cond, places) != OT_OK)
                fail_msg("seed %u, %s: %s\n%s", seed, what, fast.d.message, g.text);
            check_outputs(&g, &ref, &fast, what, seed);
            if (places) check_peak(&g, &fast, seed);
            graph_drop_outputs(&fast);
        }
        graph_close(&fast);
    }
    graph_close(&ref);
    free(x);
}

static void random_networks(void **state)
{
    (void)state;
    const char *one = getenv("OT_SEED"), *many = getenv("OT_SEEDS");
    unsigned first = one ? (unsigned)atoi(one) : 1, n = many ? (unsigned)atoi(many) : one ? 1 : 150;
    print_message("seeds %u to %u\n", first, first + n - 1);
    for (unsigned seed = first; seed < first + n; seed++) check_seed(seed);
}

/* ---- transposed convolutions ---- */

/* Which of them have primitives depends on channels, pads and the instruction set: those that
 * have none run all the same. */
static void transposed_convolutions_of_all_kinds(void **state)
{
    (void)state;
    static const int channels[] = {1, 3, 8, 13, 16, 19}, maps[] = {1, 6, 16, 21};
    static const struct {
        int kernel[2], stride[2], pads[4];
    } windows[] = {
        {{5, 3}, {1, 1}, {2, 1, 0, 0}}, {{2, 2}, {2, 2}, {0, 0, 0, 0}},
        {{4, 4}, {2, 2}, {1, 1, 1, 1}}, {{3, 1}, {1, 2}, {0, 0, 2, 0}},
        {{7, 9}, {1, 1}, {0, 0, 0, 0}}, {{9, 2}, {3, 1}, {8, 0, 0, 1}},
    };
    static float x[19 * 15 * 8];
    for (size_t k = 0; k < sizeof x / sizeof *x; k++)
        x[k] = (float)(k * 2654435761u >> 16 & 1023) / 512.0f - 1;
    for (size_t at = 0; at < 6 * 4 * 6; at++) {
        int c = channels[at % 6], m = maps[at / 6 % 4];
        const int *kernel = windows[at / 24].kernel, *stride = windows[at / 24].stride,
                  *p = windows[at / 24].pads;
        char text[1000];
        bench ref, fast;
        ot_nd in = F32S(x, 1, c, 15, 8), want = {0}, got = {0};
        snprintf(text, sizeof text,
                 "input %%x : float32[1,%d,15,8]\ninit %%w : float32[%d,%d,%d,%d] = random 7 * "
                 "0.2\ninit %%b : float32[%d] = random 8\n"
                 "%%t = ConvTranspose(%%x, %%w, %%b) {strides=[%d, %d], pads=[%d, %d, %d, "
                 "%d]}\n%%y = %s(%%t)\noutput %%y",
                 c, c, m, kernel[0], kernel[1], m, stride[0], stride[1], p[0], p[1], p[2], p[3],
                 at % 2 ? "Relu" : "HardSwish");
        open_with(&ref, text, (ot_session_options){.reference = true});
        open_text(&fast, text);
        assert_int_equal(ref.status, OT_OK);
        run_ok(&ref, &in, &want);
        run_ok(&fast, &in, &got);
        if (!(graph_error(&want, &got) <= GRAPH_NMSE)) fail_msg("%s", text);
        close_bench(&ref);
        close_bench(&fast);
    }
}

/* ---- Concat along any axis, of values in blocks and plain ones ---- */

static void concats_of_blocks_and_plain_values(void **state)
{
    (void)state;
    static const int channels[] = {1, 5, 8, 16, 19, 48};
    static float x[48 * 7 * 9];
    for (size_t k = 0; k < sizeof x / sizeof *x; k++)
        x[k] = (float)(k * 2654435761u >> 16 & 1023) / 512.0f - 1;
    for (int at = 0; at < 6 * 4 * 2; at++) {
        const int c = channels[at % 6], axis = at / 6 % 4, both = axis == 1 ? 2 * c : c;
        char text[1000];
        bench ref, fast;
        ot_nd in = F32S(x, 1, c, 7, 9), want = {0}, got = {0};
        snprintf(text, sizeof text,
                 "input %%x : float32[1,%d,7,9]\ninit %%w : float32[%d,%d,3,3] = random 7 * "
                 "0.2\ninit %%v : float32[%d,%d,3,3] = random 8 * 0.2\n"
                 "%%a = Conv(%%x, %%w) {pads=[1,1,1,1]}\n%%b = Concat(%s) {axis=%d}\n%%y = "
                 "Conv(%%b, %%v) {pads=[1,1,1,1]}\noutput %%y",
                 c, c, c, c, both, at < 24 ? "%a, %x" : "%x, %a", axis);
        open_with(&ref, text, (ot_session_options){.reference = true});
        open_text(&fast, text);
        assert_int_equal(ref.status, OT_OK);
        run_ok(&ref, &in, &want);
        run_ok(&fast, &in, &got);
        if (!(graph_error(&want, &got) <= GRAPH_NMSE)) fail_msg("%s", text);
        close_bench(&ref);
        close_bench(&fast);
    }
}

/* ---- what graphs say wrongly ---- */

/* The model answers as it does when nothing is fused: what it states of shapes is not believed. */
static void check_answered(const char *text, const ot_nd *in)
{
    bench ref, fast;
    ot_nd want = {0}, got = {0};
    open_with(&ref, text, (ot_session_options){.reference = true});
    open_with(&fast, text, (ot_session_options){.threads = 2, .guards = true});
    assert_int_equal(ref.status, OT_OK);
    assert_int_equal(fast.status, OT_OK);
    run_ok(&ref, in, &want);
    run_ok(&fast, in, &got);
    assert_true(ot_nd_same_shape(&got, want.dtype, want.rank, want.dims));
    if (!(graph_error(&want, &got) <= GRAPH_NMSE)) fail_msg("%s", text);
    close_bench(&ref);
    close_bench(&fast);
}

/* A Loop whose body states [1,4] for a value that is [1,8] at first, or becomes it. */
static void bodies_that_state_other_shapes(void **state)
{
    (void)state;
    static const char carried[] =
        "  input %x : float32[?,?]\n  init %n : int64[] = [3]\n  %y = Loop(%n, _, %x) {body=graph "
        "b {\n"
        "    input %i : int64[]\n    input %go : bool[]\n    input %a : float32[1,4]\n"
        "    %c = Sigmoid(%a)\n    %d = Mul(%c, %a)\n    %e : float32[1,4] = Abs(%d)\n    %again : "
        "bool[] = Identity(%go)\n"
        "    output %again\n    output %e\n  }} \"loop\"\n  output %y";
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    ot_nd wide = F32S(x, 1, 8), right = F32S(x, 1, 4), narrow = F32S(x, 1, 1);
    check_answered(carried, &wide);
    check_answered(carried, &right);
    check_answered(carried, &narrow);
    static const char grows[] =
        "  input %x : float32[1,4]\n  init %n : int64[] = [3]\n  %y = Loop(%n, _, %x) {body=graph "
        "b {\n"
        "    input %i : int64[]\n    input %go : bool[]\n    input %a : float32[1,4]\n"
        "    %c = Sigmoid(%a)\n    %d = Mul(%c, %a)\n    %e : float32[1,?] = Concat(%d, %d) "
        "{axis=1}\n    %again : bool[] = Identity(%go)\n"
        "    output %again\n    output %e\n  }} \"loop\"\n  output %y";
    check_answered(grows, &right);
}

/* The same one level further in: the inner body reads what the outer one was given. */
static void outer_values_of_other_shapes(void **state)
{
    (void)state;
    static const char nested[] =
        "  input %x : float32[?,?]\n  input %p : bool[]\n  init %n : int64[] = [1]\n  %y = "
        "Loop(%n, _, %x) {body=graph b {\n"
        "    input %i : int64[]\n    input %go : bool[]\n    input %a : float32[1,4]\n    outer %p "
        ": bool[]\n"
        "    %e : float32[1,?] = If(%p) {then_branch=graph t {\n      outer %a : float32[1,4]\n"
        "      %c = Sigmoid(%a)\n      %d : float32[1,4] = Mul(%c, %a)\n      output %d\n    }, "
        "else_branch=graph f {\n"
        "      outer %a : float32[1,4]\n      %g : float32[1,4] = Neg(%a)\n      output %g\n    "
        "}}\n"
        "    %again : bool[] = Identity(%go)\n    output %again\n    output %e\n  }} \"loop\"\n  "
        "output %y";
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    bool yes = true;
    ot_nd in[2] = {F32S(x, 1, 2), over(OT_BOOL, &yes, 0, NULL)};
    check_answered(nested, in);
}

/* What a node makes contradicts the shape that the file states for it, where inference does not
 * know better. */
static void nodes_that_make_other_shapes(void **state)
{
    (void)state;
    static const char text[] =
        "  input %x : float32[4]\n  %n = NonZero(%x)\n  %m : float32[1,4] = Cast(%n) {to=1}\n"
        "  %c = Sigmoid(%m)\n  %y = Mul(%c, %m)\n  output %y";
    float x[] = {0, 5, 0, 7};
    ot_nd in = F32S(x, 4);
    check_answered(text, &in);
}

/* What a branch makes contradicts what is stated of the If behind which fused steps were made for
 * it: a run says so, and does no harm to the next. */
static void branches_that_make_other_shapes(void **state)
{
    (void)state;
    static const char text[] =
        "  input %x : float32[1,?]\n  init %go : bool[] = [1]\n"
        "  %n : float32[1,4] = If(%go) {then_branch=graph t {\n    outer %x : float32[1,?]\n"
        "    %d : float32[?,?] = Neg(%x)\n    output %d\n  }, else_branch=graph f {\n    outer %x "
        ": "
        "float32[1,?]\n    %d : float32[?,?] = Abs(%x)\n    output %d\n  }} \"if\"\n"
        "  %c = Sigmoid(%n)\n  %y = Mul(%c, %n) \"mul\"\n  output %y";
    float x[] = {0, 5, 0, 7, 1};
    ot_nd right = F32S(x, 1, 4), wide = F32S(x, 1, 5), out = {0};
    check_answered(text, &right);
    bench b;
    open_text(&b, text);
    run_ok(&b, &right, &out);
    assert_int_equal(ot_session_run(b.s, &wide, &out, &b.d), OT_E_INPUT);
    assert_string_equal(b.d.message, "node 'mul' (Mul): it reads 'n', which is float32 [1,5], and "
                                     "the model's shapes say float32 [1,4]");
    b.d = (ot_diag){0};
    out = (ot_nd){0};
    run_ok(&b, &right, &out);
    close_bench(&b);
}

/* A window looks at memory that is its source's: that stays while the window is read, also on the
 * heap. */
static void windows_of_values_on_the_heap(void **state)
{
    (void)state;
    static const char text[] = "  input %x : float32[1,2,6]\n  input %p : bool[]\n  init %s : "
                               "int64[1] = [2]\n  init %e : int64[1] = [5]\n"
                               "  init %ax : int64[1] = [2]\n  %h : float32[1,2,6] = If(%p) "
                               "{then_branch=graph t {\n    outer %x : float32[1,2,6]\n"
                               "    %t0 : float32[1,2,6] = Neg(%x)\n    output %t0\n  }, "
                               "else_branch=graph f {\n    outer %x : float32[1,2,6]\n"
                               "    %f0 : float32[1,2,6] = Abs(%x)\n    output %f0\n  }}\n"
                               "  %w = Slice(%h, %s, %e, %ax)\n  %a = Relu(%w)\n  %b = Softmax(%x) "
                               "{axis=2}\n  %c = Slice(%b, %s, %e, %ax)\n"
                               "  %d = Mul(%c, %a)\n  %y = Sub(%d, %w)\n  output %a\n  output %y";
    float x[12] = {0, 0, 0, -1, -2, 0, 0, 0, 3, -4, 0, 0};
    bool yes = true;
    bench b;
    ot_nd in[2] = {F32S(x, 1, 2, 6), over(OT_BOOL, &yes, 0, NULL)}, out[2] = {{0}};
    open_text(&b, text);
    run_ok(&b, in, out);
    CHECK_FLOATS(&out[0], 0, 1, 2, 0, 4, 0);
    const float *y = out[1].data;
    assert_true(y[0] == 0 && y[3] == 3 && y[1] < -0.5f && y[1] > -1 && y[4] < -3.5f);
    const ot_schedule *top = b.s->top;
    for (uint32_t k = 0; k < top->n_steps; k++) {
        const ot_step *step = &top->steps[k];
        if (step->plan && step->is_view)
            assert_true(top->at[step->in_ids[0]]->last >= step->out_slots[0]->last);
    }
    close_bench(&b);
}

/* Two activations of one kind behind a convolution, with other numbers each: oneDNN would apply
 * both with the same. */
static void activations_of_one_kind(void **state)
{
    (void)state;
    static const char *const CASES[] = {
        "%a = LeakyRelu(%c) {alpha=0.1}\n%y = Relu(%a)", "%a = Elu(%c) {alpha=0.3}\n%y = Elu(%a)",
        "%a = LeakyRelu(%c) {alpha=0.1}\n%y = LeakyRelu(%a) {alpha=0.5}"};
    static float data[8 * 20 * 16];
    for (int k = 0; k < 8 * 20 * 16; k++) data[k] = (float)(k * 7919 % 2001) / 1000 - 1;
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        char text[1000];
        bench b[2];
        ot_nd in = F32S(data, 1, 8, 20, 16), out[2] = {{0}};
        snprintf(text, sizeof text, "%s%s\noutput %%y\n",
                 "input %x : float32[1,8,20,16]\ninit %w : float32[8,8,3,3] = random 1 * 0.1\n%c = "
                 "Conv(%x, %w) {pads=[1,1,1,1]}\n",
                 CASES[k]);
        for (int j = 0; j < 2; j++) {
            open_with(&b[j], text, (ot_session_options){.reference = j == 1});
            assert_int_equal(b[j].status, OT_OK);
            run_ok(&b[j], &in, &out[j]);
        }
        for (int i = 0; i < 8 * 20 * 16; i++) {
            const float got = ((const float *)out[0].data)[i],
                        want = ((const float *)out[1].data)[i];
            if (!(got - want < 1e-5f && want - got < 1e-5f))
                fail_msg("case %zu: %g, not %g", k, (double)got, (double)want);
        }
        for (int j = 0; j < 2; j++) close_bench(&b[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_networks),
        cmocka_unit_test(transposed_convolutions_of_all_kinds),
        cmocka_unit_test(concats_of_blocks_and_plain_values),
        cmocka_unit_test(bodies_that_state_other_shapes),
        cmocka_unit_test(outer_values_of_other_shapes),
        cmocka_unit_test(nodes_that_make_other_shapes),
        cmocka_unit_test(branches_that_make_other_shapes),
        cmocka_unit_test(windows_of_values_on_the_heap),
        cmocka_unit_test(activations_of_one_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
