/* What a session holds once a model is loaded: constants packed for each graph or convolution,
 * kept in branches, and what of it counts. */
#include "shaped_model.h"
#include "alloc_sim/alloc_sim.h"
#include "transform/transform.h"
#include "select/candidates.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define KB INT64_C(1024)
#define MB (1024 * KB)

static int64_t loaded(const ot_model *m)
{
    ot_sim_figures f;
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
    return f.loaded;
}

static int64_t loaded_text(const char *text)
{
    ot_diag d;
    ot_model *m = read_model(text, &d);
    const int64_t bytes = loaded(m);
    ot_model_free(m);
    return bytes;
}

#define HEAD   "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,256,8,8]\n"
#define WEIGHT "  init %w : float32[256,256,4,4] = random 1\n" /* 4 MB */
#define FREED  (4 * MB * 17 / 10 - KB) /* what loading it leaves free in the heap */
#define SCALES                                                                               \
    "  init %s : float32[256] = random 2\n  init %b : float32[256] = random 3\n  init %m : " \
    "float32[256] = random 4\n"                                                              \
    "  init %v : float32[256] = random 5\n"

/* Convolutions of one graph share what is packed, but not where something is folded into it. */
static void weights_are_packed_once_unless_folded(void **state)
{
    (void)state;
    const int64_t none = loaded_text(HEAD "  %y = Relu(%x)\n  output %y\n}\n");
    const int64_t once = loaded_text(HEAD WEIGHT "  %a = Conv(%x, %w)\n  output %a\n}\n");
    const int64_t shared = loaded_text(
        HEAD WEIGHT
        "  %a = Conv(%x, %w)\n  %b = Conv(%x, %w)\n  %y = Add(%a, %b)\n  output %y\n}\n");
    const int64_t folded = loaded_text(
        HEAD WEIGHT SCALES
        "  %a = Conv(%x, %w)\n  %c = BatchNormalization(%a, %s, %b, %m, %v)\n  %d = Conv(%x, %w)\n"
        "  %e = BatchNormalization(%d, %s, %b, %m, %v)\n  %y = Add(%c, %e)\n  output %y\n}\n");
    assert_in_range(none, 27 * MB, 28 * MB);
    assert_in_range(once - none, 4 * MB + FREED, 4 * MB + FREED + 64 * KB);
    assert_in_range(shared - none, 4 * MB + FREED, 4 * MB + FREED + 128 * KB);
    assert_in_range(folded - none, 8 * MB + 2 * FREED, 8 * MB + 2 * FREED + 256 * KB);
}

/* Each transposed convolution turns its weights round, in the memory that tensors come from: there
 * before the first run, no part of growth. Weights of one channel need no turning. */
static void turned_weights_are_loaded(void **state)
{
    (void)state;
    const int64_t once = loaded_text(HEAD WEIGHT "  %a = ConvTranspose(%x, %w)\n  output %a\n}\n");
    const int64_t twice = loaded_text(HEAD WEIGHT "  %a = ConvTranspose(%x, %w)\n"
                                                  "  %b = ConvTranspose(%x, %w)\n"
                                                  "  output %a\n  output %b\n}\n");
    const int64_t depthwise = loaded_text(HEAD "  init %w : float32[256,1,64,64] = random 1\n"
                                               "  %a = ConvTranspose(%x, %w) {group=256}\n"
                                               "  %b = ConvTranspose(%x, %w) {group=256}\n"
                                               "  output %a\n  output %b\n}\n");
    assert_in_range(twice - once, 4 * MB, 4 * MB + 64 * KB);
    assert_true(llabs(depthwise - once) < 256 * KB);
    ot_diag d;
    ot_sim_figures f;
    ot_model *m = read_model(HEAD WEIGHT "  %a = ConvTranspose(%x, %w)\n  output %a\n}\n", &d);
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
    assert_in_range(f.growth, 0, 4 * MB);
    ot_model_free(m);
}

/* Figures of a model of n nodes of two operands, the second a constant of so many KB. */
static ot_sim_figures filled(const char *op, int64_t n, int64_t kb, bool external)
{
    char text[8192] = "model ir 8 opset 17\ngraph g {\n  input %v0 : float32[4,64]\n";
    for (int64_t k = 0; k < n; k++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used,
                 "  init %%w%" PRId64 " : float32[64,%" PRId64 "] = fill 1\n  %%v%" PRId64
                 " = %s(%%v0, %%w%" PRId64 ")\n  output %%v%" PRId64 "\n",
                 k, kb * 4, k + 1, op, k, k + 1);
    }
    strcat(text, "}\n");
    ot_diag d;
    ot_sim_figures f;
    ot_model *m = read_model(text, &d);
    m->has_external = external;
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
    ot_model_free(m);
    return f;
}

/* What loading freed stays in the heap: of small constants, and of weights that were packed; not
 * of larger pieces, which go back to the system, and not of what is mapped from a file. A quarter
 * of it serves runs, half of what they take at most. */
static void freed_memory_stays(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        int64_t n, kb;
        bool external;
        int64_t loaded, loading; /* MB, less what a session takes */
    } CASES[] = {
        {"MatMul", 1, 40000, false, 39, 78},
        {"MatMul", 10, 4000, false, 62, 62},
        {"MatMul", 20, 64, false, 3, 3},
        {"MatMul", 10, 4000, true, 40, 43},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        const ot_sim_figures f = filled(CASES[k].op, CASES[k].n, CASES[k].kb, CASES[k].external);
        const int64_t session = 27 * MB;
        assert_in_range(f.loaded - session, (CASES[k].loaded - 1) * MB, (CASES[k].loaded + 2) * MB);
        assert_in_range(f.loading - session, (CASES[k].loading - 1) * MB,
                        (CASES[k].loading + 2) * MB);
        assert_true(f.reused <= f.growth / 2);
    }
    const ot_sim_figures f = {.growth = 20 * MB, .loaded = 60 * MB, .reused = 5 * MB};
    assert_int_equal(ot_process_bytes(&f), 75 * MB);
}

/* Constants that are computed while loading exist together until that is done. */
static void folded_constants_exist_together(void **state)
{
    (void)state;
    ot_diag d;
    ot_sim_figures f;
    ot_model *m = read_model(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1024,1024]\n"
        "  init %w : float32[1024,1] = fill 1\n  init %s : int64[2] = [1024, 1024]\n"
        "  init %n : float32[] = [2]\n"
        "  %a = Expand(%w, %s)\n  %b = Mul(%a, %n)\n  %c = Exp(%b)\n  %y = Add(%x, %c)\n"
        "  output %y\n}\n",
        &d);
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
    const int64_t freed = 8 * MB * 7 / 10;                                       /* of a and b */
    assert_in_range(f.loading - f.loaded, 12 * MB - freed, 12 * MB - freed + 1); /* a copy of c */
    ot_model_free(m);
}

/* A constant that each of two loops is given in a shape of its own exists twice, and once more
 * until all is loaded. */
static void reshaped_constants_are_copies(void **state)
{
    (void)state;
    static const char text[] =
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[256,1024]\n"
        "  init %w : float32[1024,1] = fill 1\n  init %s : int64[2] = [1024, 1024]\n"
        "  init %t : int64[3] = [4, 256, 1024]\n"
        "  %a = Expand(%w, %s)\n  %p : float32[4,256,1024] = Reshape(%a, %t)\n"
        "  %q : float32[4,256,1024] = Reshape(%a, %t)\n"
        "  %c = Add(%x, %p)\n  %y = Add(%c, %q)\n  output %y\n}\n";
    ot_diag d;
    ot_sim_figures once, twice;
    ot_model *m = read_model(text, &d);
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &once), OT_OK);
    /* as the rewriter leaves them: nobody has said that they are constants */
    for (ot_id k = 0; k < m->graph->n_nodes; k++) {
        if (m->graph->nodes[k].op != OT_OP_Reshape) continue;
        m->graph->nodes[k].is_static = false;
        m->graph->values[m->graph->nodes[k].out[0]].is_const = false;
    }
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &twice), OT_OK);
    assert_int_equal(twice.loaded, once.loaded);
    const int64_t freed = 4 * MB * 7 / 10; /* of %a */
    assert_in_range(twice.loading - twice.loaded, 8 * MB - freed, 8 * MB - freed + 1);
    ot_model_free(m);
}

/* 3 output channels are packed as 16. */
static void packed_weights_are_padded(void **state)
{
    (void)state;
    const int64_t three = loaded_text(
        HEAD "  init %w : float32[3,256,8,8] = random 1\n  %a = Conv(%x, %w)\n  output %a\n}\n");
    const int64_t sixteen = loaded_text(
        HEAD "  init %w : float32[16,256,8,8] = random 1\n  %a = Conv(%x, %w)\n  output %a\n}\n");
    assert_int_equal(three, sixteen);
}

/* In a branch, weights of convolutions and of matrix products are there once: the latter are
 * captured as they are. */
static void branches_hold_weights_once(void **state)
{
    (void)state;
    static const char *const products[] = {
        HEAD WEIGHT "  %y = Conv(%x, %w)\n  output %y\n}\n",
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[4,1024]\n"
        "  init %w : float32[1024,1024] = random 1\n  %y = Gemm(%x, %w)\n  output %y\n}\n",
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,4,1024]\n"
        "  init %w : float32[1024,1024] = random 1\n  %y = MatMul(%x, %w)\n  output %y\n}\n"};
    for (size_t k = 0; k < sizeof products / sizeof *products; k++) {
        ot_diag d;
        ot_model *m = read_model(products[k], &d);
        const int64_t before = loaded(m);
        assert_true(ot_branch_fits(m->graph));
        assert_int_equal(ot_branch(m, false), OT_OK);
        assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
        assert_in_range(loaded(m) - before, 0, 128 * KB);
        ot_model_free(m);
    }
}

/* Of a table in a file that is mapped, the rows that are looked up are there, but all of it where
 * somebody else reads it, or where it is copied from the model. */
static void mapped_tables_are_read_by_row(void **state)
{
    (void)state;
#define TABLE                                                 \
    "model ir 8 opset 17\ngraph g {\n  input %i : int64[4]\n" \
    "  init %w : float32[4096,1024] = random 1\n  %a = Gather(%w, %i)\n"
    static const char *const texts[] = {TABLE "  output %a\n}\n",
                                        TABLE "  %b = Neg(%w)\n  output %a\n  output %b\n}\n"};
    for (size_t k = 0; k < 2; k++) {
        ot_diag d;
        ot_sim_figures f;
        ot_model *m = read_model(texts[k], &d);
        const int64_t copied = loaded(m);
        m->data_file = true;
        assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
        assert_in_range(copied, 43 * MB, 45 * MB);
        if (k == 0)
            assert_in_range(f.loading, 27 * MB, 28 * MB);
        else
            assert_in_range(f.loaded, 43 * MB, 45 * MB);
        ot_model_free(m);
    }
}

/* A branch states no extents of what it joins from a sequence, and is simulated so: the joined
 * tensor is taken behind the pieces, where a stated one is there from the start, in the first
 * large region. */
static void joined_results_are_taken_late(void **state)
{
    (void)state;
    ot_diag d;
    ot_sim_figures f;
    ot_model *m = read_model(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,16,512,512]\n  %a = Exp(%x)\n"
        "  %s : opaque = SequenceConstruct(%a, %a)\n"
        "  %y : float32[1,32,512,512] = ConcatFromSequence(%s) {axis=1}\n  output %y\n}\n",
        &d);
    assert_int_equal(ot_branch(m, false), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    const ot_value *top = &m->graph->values[m->graph->outputs[0]];
    const ot_graph *branch = ot_attr_find(&m->graph->nodes[top->producer], "then_branch")->g;
    const ot_value *y = &branch->values[branch->outputs[0]];
    assert_true(ot_value_is_static(top));
    assert_int_equal(y->rank, 4);
    assert_false(ot_value_is_static(y));
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
    assert_int_equal(f.n_unknown, 0);
    assert_in_range(f.growth, 32 * MB, 96 * MB);
    ot_model_free(m);
}

/* What the process takes beside its growth counts three quarters, down to what it must take; what
 * takes more than the untiled model is worse than that. */
static void whole_processes_compete(void **state)
{
    (void)state;
    const ot_sim_figures untiled = {.growth = 100 * MB, .loaded = 40 * MB, .loading = 60 * MB},
                         file = {.growth = 104 * MB, .loaded = 20 * MB};
    const ot_score_base plain = ot_score_base_of(&untiled, &untiled),
                        apart = ot_score_base_of(&untiled, &file);
    const struct {
        ot_sim_figures f;
        double plain, apart;
    } rows[] = {
        {untiled, 100, 115},
        {{.growth = 20 * MB, .loaded = 40 * MB}, 20, 35},
        {{.growth = 20 * MB, .loaded = 60 * MB}, 35, 50},
        {{.growth = 20 * MB, .loaded = 60 * MB, .loading = 130 * MB}, 72.5, 87.5},
        {{.growth = 20 * MB, .loaded = 30 * MB}, 12.5, 27.5},
        {{.growth = 20 * MB, .loaded = 0}, 2.5, 5}, /* a part of growth always counts */
        {{.growth = 12 * MB, .loaded = 4 * MB}, 1, 2.25},
        /* holds more than the untiled model, whatever it grows by */
        {{.growth = 20 * MB, .loaded = 60 * MB, .loading = 160 * MB}, 120, 135},
        {{.growth = 140 * MB, .loaded = 40 * MB}, 180, 195},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        assert_int_equal(ot_score_bytes(&rows[k].f, &plain), (int64_t)(rows[k].plain * MB));
        assert_int_equal(ot_score_bytes(&rows[k].f, &apart), (int64_t)(rows[k].apart * MB));
    }
    assert_int_equal(apart.untiled, 115 * MB);
    assert_true(ot_score_bytes(&(ot_sim_figures){.growth = INT64_MAX}, &plain) == INT64_MAX);
}

/* Beside a plan that loads 100 MB and grows by 50: growth may rise where the process falls. */
static void growth_may_rise_where_the_process_falls(void **state)
{
    (void)state;
    const ot_sim_figures kept = {.growth = 50 * MB, .loaded = 100 * MB};
    const ot_score_base base = {.process = 300 * MB, .beside = 20 * MB, .untiled = 260 * MB};
    static const struct {
        double growth, loaded;
        bool less;
    } rows[] = {
        {49, 100, true},  /* less of both */
        {50, 100, false}, /* the same */
        {50.4, 95, true}, /* as much growth, by all that is known */
        {49, 120, false}, /* less growth, a process that holds more */
        {60, 70, true},   /* 20 MB less of the process for 10 MB of growth */
        {60, 81, false},  /* 9 MB less of it, for 10 MB of growth */
        {52, 95, false},  /* 3 MB less of it: less than a twentieth */
        {100, 40, false}, /* 10 MB less of it, for 50 MB of growth */
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const ot_sim_figures to = {.growth = (int64_t)(rows[k].growth * MB),
                                   .loaded = (int64_t)(rows[k].loaded * MB)};
        if (ot_score_holds_less(&kept, &to, &base) != rows[k].less) fail_msg("row %zu", k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_packed_once_unless_folded),
        cmocka_unit_test(turned_weights_are_loaded),
        cmocka_unit_test(freed_memory_stays),
        cmocka_unit_test(folded_constants_exist_together),
        cmocka_unit_test(reshaped_constants_are_copies),
        cmocka_unit_test(packed_weights_are_padded),
        cmocka_unit_test(branches_hold_weights_once),
        cmocka_unit_test(mapped_tables_are_read_by_row),
        cmocka_unit_test(joined_results_are_taken_late),
        cmocka_unit_test(whole_processes_compete),
        cmocka_unit_test(growth_may_rise_where_the_process_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
