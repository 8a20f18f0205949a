/* What a process grows by: steps of a graph and their buffers. Random cases print their seed. */
#include "alloc_sim/simulate.h"
#include "alloc_sim/alloc_sim.h"
#include "transform/transform.h"
#include "shaped_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MB (INT64_C(1) << 20)

/* ---- graphs ---- */

static ot_sim_figures simulated(const char *text, bool static_shape)
{
    ot_diag d;
    ot_model *m = read_model(text, &d);
    ot_sim_figures f;
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, static_shape, &f), OT_OK);
    ot_model_free(m);
    return f;
}

#define OWN (3 * MB / 2) /* what a model of no size makes a process grow by */

/* 16 channels of 512 x 512 are 16 MB: two of them live at once, in regions of their own; then a
 * block of 32 MB for later runs. */
static void later_runs_take_a_block(void **state)
{
    (void)state;
    ot_sim_figures f = simulated(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,16,512,512]\n"
        "  %a = Exp(%x)\n  %b = MaxPool(%a) {kernel_shape=[3,3],pads=[1,1,1,1]}\n"
        "  %c = MaxPool(%b) {kernel_shape=[3,3],pads=[1,1,1,1]}\n  %y = ReduceMax(%c) "
        "{axes=[1,2,3]}\n  output %y\n}\n",
        true);
    assert_int_equal(f.pattern, 32 * MB);
    assert_in_range(f.first_run, 33 * MB + OWN, 34 * MB + OWN);
    assert_in_range(f.growth, 66 * MB + OWN, 67 * MB + OWN);
    assert_int_equal(f.n_unknown, 0);
}

/* An element-wise operator takes the place of what dies there, but only where the file states
 * all extents. */
static void free_extents_are_not_planned(void **state)
{
    (void)state;
    static const char text[] =
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,16,512,512]\n"
        "  %a = MaxPool(%x) {kernel_shape=[3,3],pads=[1,1,1,1]}\n  %b = Tanh(%a)\n"
        "  %y = ReduceMax(%b) {axes=[1,2,3]}\n  output %y\n}\n";
    assert_int_equal(simulated(text, true).pattern, 16 * MB);
    assert_int_equal(simulated(text, false).pattern, 32 * MB);
}

/* Buffers of 16 MB that are there at once when a value is made, nodes follow, and a number is read
 * of the last of them, r. */
static int64_t buffers_of(const char *nodes)
{
    char text[2048];
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,16,512,512]\n"
             "  init %%n : float32[] = [2]\n  init %%row : float32[512] = random 1\n"
             "  init %%w : float32[512,512] = random 2\n"
             "  %%a = MaxPool(%%x) {kernel_shape=[3,3],pads=[1,1,1,1]}\n%s"
             "  %%y = ReduceMax(%%r) {axes=[1,2,3]}\n  output %%y\n}\n",
             nodes);
    return simulated(text, true).pattern / (16 * MB);
}

/* As scripts/in_place_truth.py measures it: few operators write over their input, and not where
 * somebody else reads it, too. */
static void few_operators_write_over_their_input(void **state)
{
    (void)state;
    assert_int_equal(buffers_of("  %r = Relu(%a)\n"), 1);
    assert_int_equal(buffers_of("  %b = Sigmoid(%a)\n  %r = Softmax(%b)\n"), 1);
    assert_int_equal(buffers_of("  %r = Exp(%a)\n"), 2);
    assert_int_equal(buffers_of("  %b = Exp(%a)\n  %c = Add(%b, %n)\n  %r = Neg(%c)\n"), 2);
    assert_int_equal(buffers_of("  %r = Mul(%a, %a)\n"), 2);
    assert_int_equal(buffers_of("  %b = Relu(%a)\n  %r = Add(%a, %b)\n"), 3);
    assert_int_equal(buffers_of("  %r = HardSwish(%a)\n"), 3);
}

/* What kernels hold until they are done is not in the pattern: the first run's chunks have it. */
static void selections_are_held_apart(void **state)
{
    (void)state;
    static const char text[] =
        "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,16,512,512]\n"
        "  input %%c : bool[%s]\n  init %%n : float32[] = [2]\n"
        "  %%r = Where(%%c, %%x, %%n)\n  %%y = ReduceMax(%%r) {axes=[1,2,3]}\n  output %%y\n}\n";
    static const struct {
        const char *condition;
        int64_t values; /* of the first run */
    } CASES[] = {{"1,16,512,512", 3}, {"1,1,1,512", 2}, {"1", 2}};
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        char model[512];
        snprintf(model, sizeof model, text, CASES[k].condition);
        const ot_sim_figures f = simulated(model, true);
        assert_int_equal(f.pattern, 16 * MB);
        assert_in_range(f.first_run, CASES[k].values * 16 * MB, CASES[k].values * 16 * MB + 4 * MB);
    }
}

/* Nodes that the runtime replaces by one have nothing between them; one that differs in a detail
 * stays what it is. */
static void replaced_nodes_hold_nothing(void **state)
{
    (void)state;
    assert_int_equal(buffers_of("  %s = Sigmoid(%a)\n  %r = Mul(%a, %s)\n"), 2);
    assert_int_equal(buffers_of("  %f = Mul(%n, %a)\n  %s = Sigmoid(%f)\n  %r = Mul(%s, %a)\n"), 2);
    assert_int_equal(buffers_of("  %f = Mul(%a, %row)\n  %s = Sigmoid(%f)\n  %r = Mul(%s, %a)\n"),
                     3);
#define ERF(x, one) \
    "  %d = Div(%a, %n)\n  %e = Erf(%d)\n  %o = Add(%e, %" one ")\n  %m = Mul(%" x ", %o)\n"
    assert_int_equal(buffers_of(ERF("a", "n") "  %r = Mul(%m, %n)\n"), 2);
    assert_int_equal(buffers_of("  %h = Mul(%n, %a)\n" ERF("h", "n") "  %r = Relu(%m)\n"), 2);
    assert_int_equal(buffers_of(ERF("a", "row") "  %r = Mul(%m, %n)\n"), 3);
#define CUBE                                                                           \
    "  %p = Pow(%a, %n)\n  %q = Mul(%p, %n)\n  %s = Add(%a, %q)\n  %t = Mul(%s, %n)\n" \
    "  %u = Tanh(%t)\n  %o = Add(%u, %n)\n"
    assert_int_equal(buffers_of(CUBE "  %m = Mul(%a, %o)\n  %r = Mul(%m, %n)\n"), 2);
    assert_int_equal(buffers_of("  %h = Mul(%a, %n)\n" CUBE "  %r = Mul(%h, %o)\n"), 2);
    assert_int_equal(buffers_of("  %m = MatMul(%a, %w)\n  %r = Add(%row, %m)\n"), 2);
#define NORM                                                                      \
    "  %m = ReduceMean(%s) {axes=[-1]}\n  %d = Sub(%s, %m)\n  %q = Pow(%d, %n)\n" \
    "  %v = ReduceMean(%q) {axes=[-1]}\n  %e = Add(%v, %n)\n  %o = Sqrt(%e)\n"    \
    "  %f = Div(%d, %o)\n  %g = Mul(%f, %row)\n  %r = Add(%g, %row)\n"
    assert_int_equal(buffers_of("  %s = Exp(%a)\n" NORM), 2);
    assert_int_equal(buffers_of("  %s = Exp(%a)\n  %z = ReduceMax(%s) {axes=[1,2,3]}\n"
                                "  output %z\n" NORM),
                     2);
}

/* A sum of three axes that only a normalisation reads is part of it. */
static void skipped_sums_are_not_made(void **state)
{
    (void)state;
    static const char text[] =
        "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,4096,1024]\n"
        "  init %%w : float32[1024] = random 1\n  %%a = Exp(%%x)\n  %%b = Add(%%x, %%a)\n"
        "  %%r = LayerNormalization(%%b, %%w, %%w)\n  %%s = %s\n"
        "  %%y = ReduceMax(%%s) {axes=[1,2]}\n  output %%y\n}\n";
    char alone[512], read[512];
    snprintf(alone, sizeof alone, text, "Exp(%r)");
    snprintf(read, sizeof read, text, "Mul(%r, %b)");
    assert_int_equal(simulated(alone, true).pattern, 32 * MB);
    assert_int_equal(simulated(read, true).pattern, 48 * MB);
}

/* A product with a bias is computed on matrices: its buffer fits another one's, not that of a
 * value of three axes. */
static void products_have_buffers_of_matrices(void **state)
{
    (void)state;
    static const char text[] =
        "model ir 8 opset 17\ngraph g {\n  input %%x : float32[%s4096,1024]\n"
        "  init %%w : float32[1024,1024] = random 1\n  init %%b : float32[1024] = random 2\n"
        "  %%p = Exp(%%x)\n  %%m = MatMul(%%p, %%w)\n  %%a = Add(%%m, %%b)\n"
        "  %%c = Exp(%%a)\n  %%k = MatMul(%%c, %%w)\n  %%d = Add(%%k, %%b)\n"
        "  %%y = ReduceMax(%%d) {axes=[-1,-2]}\n  output %%y\n}\n";
    char flat[1024], deep[1024];
    snprintf(flat, sizeof flat, text, "");
    snprintf(deep, sizeof deep, text, "1,");
    assert_int_equal(simulated(flat, true).pattern, 32 * MB);
    assert_int_equal(simulated(deep, true).pattern, 32 * MB);
}

/* A convolution computes in blocks of 16 channels: 3 of them take the memory of 16, and the
 * plain result besides. */
static void blocks_are_padded(void **state)
{
    (void)state;
    ot_sim_figures f = simulated(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,3,512,512]\n  init %w : "
        "float32[3,3,3,3] = random 1\n"
        "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %y = Softmax(%a) {axis=3}\n  output %y\n}\n",
        true);
    assert_in_range(f.pattern, 19 * MB, 19 * MB + 4096);
}

static ot_sim_figures looped(int64_t trips)
{
    char text[1024];
    snprintf(
        text, sizeof text,
        "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,1024,64]\n  init %%n : int64[] = "
        "[%lld]\n  init %%yes : bool[] = [1]\n"
        "  %%none : opaque = SequenceEmpty()\n"
        "  %%all : opaque = Loop(%%n, %%yes, %%none) {body=graph step {\n    input %%i : int64[]\n "
        "   input %%go : bool[]\n"
        "    input %%s : opaque\n    outer %%x : float32[1,1024,64]\n    %%on : bool[] = "
        "Identity(%%go)\n"
        "    %%e : float32[1,1024,64] = Exp(%%x)\n    %%more : opaque = SequenceInsert(%%s, %%e)\n"
        "    output %%on\n    output %%more\n  }}\n"
        "  %%y : float32[%lld,1024,64] = ConcatFromSequence(%%all) {axis=0}\n  output %%y\n}\n",
        (long long)trips, (long long)trips);
    return simulated(text, true);
}

/* Long loops are simulated in part: their pieces are held all the same, 256 KiB of each iteration,
 * and joined. */
static void long_loops_hold_all_pieces(void **state)
{
    (void)state;
    assert_in_range(looped(400).growth, 200 * MB, 210 * MB);
    assert_in_range(looped(1600).growth, 800 * MB, 860 * MB);
}

/* A loop that hands tensors of two sizes from one iteration to the next, each by way of others:
 * what the process grows by once it is through. */
static int64_t handed_on(int64_t trips)
{
    char text[2048];
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,16,200,200]\n  input %%z : "
             "float32[1,16,300,300]\n  init %%n : int64[] = [%lld]\n  init %%yes : bool[] = [1]\n"
             "  %%p : float32[1,16,200,200], %%q : float32[1,16,300,300] = Loop(%%n, %%yes, %%x, "
             "%%z) {body=graph step {\n    input %%i : int64[]\n    input %%go : bool[]\n"
             "    input %%s : float32[1,16,200,200]\n    input %%t : float32[1,16,300,300]\n"
             "    %%e : float32[1,16,200,200] = Exp(%%s)\n"
             "    %%f : float32[1,16,300,300] = Exp(%%t)\n    %%h : float32[1,16,300,300] = "
             "Relu(%%f)\n    output %%go\n    output %%e\n    output %%h\n  }}\n"
             "  %%u : float32[1,16,200,200] = Exp(%%p)\n  %%v : float32[1,16,300,300] = "
             "Exp(%%q)\n"
             "  output %%v\n  output %%u\n}\n",
             (long long)trips);
    return simulated(text, true).growth;
}

/* Iterations that change nothing any more are left out, whole rounds of them: more or less of them
 * is the same, and the last one is there. */
static void long_loops_repeat(void **state)
{
    (void)state;
    for (int64_t trips = 6; trips <= 9; trips++)
        for (int64_t more = 2; more <= 200; more += 66)
            assert_int_equal(handed_on(trips + more), handed_on(trips));
    assert_true(handed_on(2) > handed_on(1));
}

/* What a Loop hands out in the end is part of its graph's pattern: later runs have it in the
 * block, for as long as they last. */
static void carried_results_are_in_the_block(void **state)
{
    (void)state;
    ot_sim_figures f = simulated(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,16,512,512]\n  init %n : int64[] = "
        "[3]\n  init %yes : bool[] = [1]\n"
        "  %all : float32[1,16,512,512] = Loop(%n, %yes, %x) {body=graph step {\n    input %i : "
        "int64[]\n    input %go : bool[]\n"
        "    input %s : float32[1,16,512,512]\n    %on : bool[] = Identity(%go)\n    %e : "
        "float32[1,16,512,512] = Exp(%s)\n"
        "    output %on\n    output %e\n  }}\n"
        "  %y = ReduceMax(%all) {axes=[1,2,3]}\n  output %y\n}\n",
        true);
    assert_int_equal(f.pattern, 16 * MB);
    assert_true(f.growth > f.first_run + 15 * MB);
}

/* A Resize whose sizes are computed from a shape stays in blocks: 3 channels of 512 x 512 in 16,
 * then as they are asked for. */
static void computed_sizes_are_known(void **state)
{
    (void)state;
    ot_sim_figures f = simulated(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,3,128,128]\n  init %w : "
        "float32[3,3,3,3] = random 1\n"
        "  init %k : int64[4] = [1,1,4,4]\n  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %h = "
        "Shape(%a)\n  %s = Mul(%h, %k)\n"
        "  %b = Resize(%a, _, _, %s) {mode=\"linear\", "
        "coordinate_transformation_mode=\"half_pixel\"}\n  %y = Softmax(%b) {axis=3}\n"
        "  output %y\n}\n",
        true);
    assert_in_range(f.pattern, 19 * MB, 21 * MB);
}

/* The result of a branch that states no extents is made in blocks all the same, where a Resize by
 * constant scales makes it: 3 channels of 512 x 512 in 16, and as they are handed out. */
static void unstated_results_are_made_in_blocks(void **state)
{
    (void)state;
    ot_diag d;
    ot_sim_figures f;
    ot_model *m = read_model(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,3,128,128]\n  init %w : "
        "float32[3,3,3,3] = random 1\n  init %k : float32[4] = [1,1,4,4]\n"
        "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %y = Resize(%a, _, %k) {mode=\"linear\", "
        "coordinate_transformation_mode=\"align_corners\"}\n  output %y\n}\n",
        &d);
    assert_int_equal(ot_branch(m, true), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
    assert_int_equal(f.n_unknown, 0);
    assert_in_range(f.growth, 33 * MB,
                    38 * MB); /* the second run finds the first one's result there */
    ot_model_free(m);
}

/* A window that moves with the iteration has the extents that the Reshape behind it states: 8
 * MiB beside those of the result. */
static void moving_windows_take_memory(void **state)
{
    (void)state;
    ot_sim_figures f = simulated(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[8,1024,2048]\n "
        " init %n : int64[] = [8]\n  init %yes : bool[] = [1]\n"
        "  init %one : int64[1] = [1]\n  init %first : int64[1] = [0]\n  "
        "init %extents : int64[3] = [1,1024,2048]\n"
        "  %y : float32[8,1,1,1] = Loop(%n, %yes) {body=graph step {\n    "
        "input %i : int64[]\n    input %go : bool[]\n"
        "    outer %x : float32[8,1024,2048]\n    outer %one : int64[1]\n    "
        "outer %first : int64[1]\n    outer %extents : int64[3]\n"
        "    %on : bool[] = Identity(%go)\n    %from = Reshape(%i, %one)\n   "
        " %to = Add(%from, %one)\n"
        "    %s = Slice(%x, %from, %to, %first)\n    %v = Reshape(%s, "
        "%extents)\n    %e = Softmax(%v) {axis=2}\n"
        "    %r : float32[1,1,1] = ReduceMax(%e)\n    output %on\n    output "
        "%r\n  }}\n  output %y\n}\n",
        true);
    assert_int_equal(f.n_unknown, 0);
    assert_in_range(f.first_run, 16 * MB + OWN, 18 * MB + OWN);
}

static size_t steps_of(const char *text)
{
    ot_diag d;
    ot_model *m = read_model(text, &d);
    ot_sim_schedule p;
    ot_arena *a = ot_arena_new();
    const ot_sim_orders first = {0};
    assert_int_equal(ot_sim_plan_make(m->graph, NULL, &ot_runtime_onnxruntime, true, first, a, &p),
                     OT_OK);
    const size_t n = p.n;
    ot_arena_free(a);
    ot_model_free(m);
    return n;
}

/* HardSwish runs within a convolution, and what multiplies or adds a constant for each channel
 * is part of its weights: no steps. */
static void convolutions_take_in(void **state)
{
    (void)state;
    static const char *const behind[] = {"  %b = Relu(%a)\n", "  %b = HardSwish(%a)\n",
                                         "  %b = Mul(%a, %s)\n", "  %b = Add(%a, %s)\n",
                                         "  %b = Exp(%a)\n"};
    size_t alone = 0;
    for (size_t k = 0; k < sizeof behind / sizeof *behind; k++) {
        char text[1024];
        snprintf(
            text, sizeof text,
            "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,16,64,64]\n  init %%w : "
            "float32[16,16,3,3] = random 1\n"
            "  init %%s : float32[16,1,1] = random 2\n  %%a = Conv(%%x, %%w) {pads=[1,1,1,1]}\n%s"
            "  %%c = Conv(%%b, %%w) {pads=[1,1,1,1]}\n  %%y = GlobalMaxPool(%%c)\n  output "
            "%%y\n}\n",
            behind[k]);
        size_t n = steps_of(text);
        if (k == 0) alone = n;
        if ((n == alone) != (k < 4))
            fail_msg("%s%zu steps, %zu with an activation", behind[k], n, alone);
    }
}

/* What strangers write: results that nobody wants, sequences of nothing, values larger than any
 * memory. */
static void odd_graphs_are_played(void **state)
{
    (void)state;
#define HEAD                                                                                       \
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,4,8,8]\n  init %w : float32[4,4,3,3] " \
    "= random 1\n"
    static const char *const odd[] = {
        HEAD "  %y = Relu(%x)\n  _ = Conv(%x, %w)\n  output %y\n}\n",
        HEAD "  %c = Conv(%x, %w) {pads=[1,1,1,1]}\n  _ = Relu(%c)\n  output %x\n}\n",
        HEAD "  init %s : float32[4] = random 2\n  %c = Conv(%x, %w)\n  _ = BatchNormalization(%c, "
             "%s, %s, %s, %s)\n"
             "  output %x\n}\n",
    };
#undef HEAD
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++)
        assert_int_equal(simulated(odd[k], true).n_unknown, 0);
    ot_sim_figures f = simulated("model ir 8 opset 17\ngraph g {\n  input %x : "
                                 "float32[1,4,1073741824,268435456]\n  %a = Relu(%x)\n"
                                 "  %y = Softmax(%a) {axis=1}\n  output %y\n}\n",
                                 true);
    assert_int_equal(f.n_unknown, 2);
    assert_int_equal(f.growth, OWN);
}

/* As a branch that reads a sequence the same graph has no block, and later runs take what the
 * first one took. */
static void branches_have_no_block(void **state)
{
    (void)state;
    static const char text[] =
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,16,512,512]\n"
        "  %a = Exp(%x)\n  %b = MaxPool(%a) {kernel_shape=[3,3],pads=[1,1,1,1]}\n"
        "  %c = MaxPool(%b) {kernel_shape=[3,3],pads=[1,1,1,1]}\n  %y = ReduceMax(%c) {axes=[1]}\n "
        " output %y\n}\n";
    for (int static_shape = 0; static_shape < 2; static_shape++) {
        ot_diag d;
        ot_model *m = read_model(text, &d);
        ot_sim_figures f;
        assert_true(ot_branch_fits(m->graph));
        if (ot_branch(m, false) != OT_OK || ot_verify(m->graph) != OT_OK) fail_msg("%s", d.message);
        assert_int_equal(m->graph->n_inputs, 1);
        assert_string_equal(m->graph->values[m->graph->inputs[0]].name, "x");
        assert_string_equal(m->graph->values[m->graph->outputs[0]].name, "y");
        /* a body */
        assert_false(ot_branch_fits(m->graph->nodes[m->graph->n_nodes - 1].attrs[0].g));
        assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, static_shape, &f), OT_OK);
        /* the static_shape one takes its result ahead */
        assert_in_range(f.growth, 33 * MB + OWN, 36 * MB + OWN);
        assert_int_equal(f.growth, f.first_run);
        ot_model_free(m);
    }
}

/* Tensors of 4 and 8 MB, and when these are gone of 4 and 16, ask for regions of 4, 8 and 16. A
 * block of 20 that comes before them holds them all, in every run. */
static void a_first_block_holds_what_follows(void **state)
{
    (void)state;
    ot_sim_figures f[2];
    for (int k = 0; k < 2; k++) {
        ot_diag d;
        ot_model *m = read_model(
            "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,1,1024,1024]\n"
            "  %a = Neg(%x)\n  %b = Concat(%a, %a) {axis=1}\n  %r = ReduceMax(%b) "
            "{axes=[1,2,3]}\n  %c = Mul(%x, %r)\n  %d = Concat(%c, %c, %c, %c) {axis=1}\n"
            "  %y = ReduceMax(%d) {axes=[1,2,3]}\n  output %y\n}\n",
            &d);
        if (ot_branch(m, false) != OT_OK) fail_msg("%s", d.message);
        const uint32_t nodes = m->graph->n_nodes;
        assert_int_equal(ot_first_block(m, 0), OT_OK);
        assert_int_equal(m->graph->n_nodes, nodes);
        if (k == 1 && (ot_first_block(m, 20 * MB) != OT_OK || ot_verify(m->graph) != OT_OK))
            fail_msg("%s", d.message);
        assert_int_equal(m->graph->n_nodes, nodes + (uint32_t)k);
        assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f[k]), OT_OK);
        assert_int_equal(f[k].n_unknown, 0);
        assert_int_equal(f[k].growth, f[k].first_run);
        ot_model_free(m);
    }
    assert_in_range(f[0].growth, 28 * MB + OWN, 30 * MB + OWN);
    assert_in_range(f[1].growth, 20 * MB + OWN, 22 * MB + OWN);
}

/* Weights of half precision that a branch reads are all converted before anything runs: 9 MB
 * here, which the graph itself has from loading. */
static void branches_convert_weights(void **state)
{
    (void)state;
    static const char text[] =
        "model ir 8 opset 17\ngraph g {\n  input %x : float16[1,256,16,16]\n"
        "  init %w : float16[1024,256,3,3] = random 1\n  %c = Conv(%x, %w) {pads=[1,1,1,1]}\n"
        "  %y = Relu(%c)\n  output %y\n}\n";
    ot_diag d;
    ot_sim_figures f;
    ot_model *m = read_model(text, &d);
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
    const int64_t whole = f.first_run;
    if (ot_branch(m, false) != OT_OK) fail_msg("%s", d.message);
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
    assert_in_range(f.first_run - whole, 8 * MB, 12 * MB);
    ot_model_free(m);
}

/* A Scan's result of 128 MB and the body's 24 MB: two free regions of 128 MB after the first run,
 * and the second run takes the other one. Where the body does not state the extents of its result,
 * what it works in comes first, and lies in smaller regions. */
static void a_stack_of_unstated_parts_comes_late(void **state)
{
    (void)state;
    ot_diag d;
    ot_model *m = read_model(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[16,1,32,256,256]\n"
        "  %y : float32[16,32,256,256] = Scan(%x) {num_scan_inputs=1, body=graph b {\n"
        "    input %p : float32[1,32,256,256]\n    init %s : int64[3] = [32, 256, 256]\n"
        "    %a : float32[1,32,256,256] = Softmax(%p)\n"
        "    %c : float32[1,32,256,256] = Softmax(%a)\n"
        "    %r : float32[32,256,256] = Reshape(%c, %s)\n    output %r\n  }}\n  output %y\n}\n",
        &d);
    const ot_graph *g = m->graph;
    const ot_attr *attr = ot_attr_find(&g->nodes[g->order[0]], "body");
    ot_sim_figures stated, unstated;
    assert_int_equal(ot_sim_growth(g, &ot_runtime_onnxruntime, true, &stated), OT_OK);
    attr->g->values[attr->g->outputs[0]].is_unstated = true;
    assert_int_equal(ot_sim_growth(g, &ot_runtime_onnxruntime, true, &unstated), OT_OK);
    assert_in_range(stated.growth, 256 * MB, 300 * MB);
    assert_in_range(unstated.growth, 128 * MB, 180 * MB);
    ot_model_free(m);
}

/* A Scan whose body is a Scan stacks what that one makes: one result, not two. */
static void a_stack_of_stacks_is_one(void **state)
{
    (void)state;
    ot_diag d;
    ot_model *m = read_model(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,32,1024,1024]\n"
        "  %y : float32[1,32,1024,1024] = Scan(%x) {num_scan_inputs=1, body=graph b {\n"
        "    input %p : float32[32,1024,1024]\n"
        "    %q : float32[32,1024,1024] = Scan(%p) {num_scan_inputs=1, body=graph c {\n"
        "      input %r : float32[1024,1024]\n      %s : float32[1024,1024] = Softmax(%r)\n"
        "      output %s\n    }}\n    output %q\n  }}\n  output %y\n}\n",
        &d);
    const ot_graph *outer = ot_attr_find(&m->graph->nodes[m->graph->order[0]], "body")->g,
                   *inner = ot_attr_find(&outer->nodes[outer->order[0]], "body")->g;
    for (int unstated = 0; unstated < 2; unstated++) {
        ot_sim_figures f;
        outer->values[outer->outputs[0]].is_unstated = unstated != 0;
        inner->values[inner->outputs[0]].is_unstated = unstated != 0;
        assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
        assert_in_range(f.growth, 128 * MB, 148 * MB);
    }
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_of_stacks_is_one),
        cmocka_unit_test(a_stack_of_unstated_parts_comes_late),
        cmocka_unit_test(later_runs_take_a_block),
        cmocka_unit_test(free_extents_are_not_planned),
        cmocka_unit_test(few_operators_write_over_their_input),
        cmocka_unit_test(selections_are_held_apart),
        cmocka_unit_test(replaced_nodes_hold_nothing),
        cmocka_unit_test(skipped_sums_are_not_made),
        cmocka_unit_test(products_have_buffers_of_matrices),
        cmocka_unit_test(blocks_are_padded),
        cmocka_unit_test(computed_sizes_are_known),
        cmocka_unit_test(unstated_results_are_made_in_blocks),
        cmocka_unit_test(moving_windows_take_memory),
        cmocka_unit_test(convolutions_take_in),
        cmocka_unit_test(odd_graphs_are_played),
        cmocka_unit_test(branches_have_no_block),
        cmocka_unit_test(a_first_block_holds_what_follows),
        cmocka_unit_test(branches_convert_weights),
        cmocka_unit_test(long_loops_hold_all_pieces),
        cmocka_unit_test(long_loops_repeat),
        cmocka_unit_test(carried_results_are_in_the_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
