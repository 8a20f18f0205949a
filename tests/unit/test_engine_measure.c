/* What measuring rests on: quantiles, comparisons, counted bytes, traces, and that --verify
 * finds what differs. */
#include "engine_check.h"

#include "commands/bench_command.h"
#include "engine/core/engine_trace.h"
#include "measure/measure.h"
#include "onnx/import/model_io.h"
#include "api/verify_tiled.h"

#include <math.h>

/* ---- quantiles ---- */

static void quantiles_are_times_of_runs(void **state)
{
    (void)state;
    double one[] = {3};
    ot_spread s = ot_spread_of(one, 1);
    assert_true(s.min == 3 && s.p50 == 3 && s.p90 == 3 && s.p99 == 3);
    double ten[] = {7, 1, 10, 2, 9, 3, 8, 4, 6, 5};
    s = ot_spread_of(ten, 10);
    assert_true(s.min == 1 && s.p50 == 5 && s.p90 == 9 && s.p99 == 10);
    double many[200];
    /* 77 and 200 have no common factor: 0..199 */
    for (int k = 0; k < 200; k++) many[k] = (k * 77) % 200;
    s = ot_spread_of(many, 200);
    assert_true(s.min == 0 && s.p50 == 99 && s.p90 == 179 && s.p99 == 197);
}

/* ---- comparisons ---- */

static void differences(void **state)
{
    (void)state;
    float a[] = {1, -2, NAN, INFINITY}, b[] = {1, -2, NAN, INFINITY}, c[] = {1, -2, 0, INFINITY},
          d[] = {1, -2.01f, NAN, INFINITY};
    ot_nd x = F32S(a, 4), y = F32S(b, 4), z = F32S(c, 4), w = F32S(d, 4), flat = F32S(a, 2, 2);
    ot_difference r = ot_compare(&x, &y, false);
    assert_true(r.same && r.max_abs == 0 && r.nmse == 0);
    r = ot_compare(&x, &z, false); /* a number where none was */
    assert_true(!r.same && isinf(r.max_abs));
    assert_string_equal(r.why, "the contents differ");
    r = ot_compare(&x, &w, false);
    assert_true(!r.same && fabs(r.max_abs - 0.01) < 1e-6 && fabs(r.max_rel - 0.005) < 1e-6 &&
                fabs(r.nmse - 1e-4 / 5) < 1e-8);
    r = ot_compare(&x, &flat, false);
    assert_true(!r.same);
    assert_string_equal(r.why, "the ranks differ");
    int64_t i[] = {1, 1LL << 40}, j[] = {1, (1LL << 40) + 1};
    ot_nd p = over(OT_I64, i, 1, (int64_t[]){2}), q = over(OT_I64, j, 1, (int64_t[]){2});
    assert_true(ot_compare(&p, &p, false).same);
    assert_false(ot_compare(&p, &q, false).same); /* integers exactly */
    assert_false(ot_compare(&p, &x, false).same);
}

/* A difference of rounding passes, one of a thousandth of the largest does not. */
static void tolerance(void **state)
{
    (void)state;
    float a[1000], b[1000];
    ot_nd x = F32S(a, 1000), y = F32S(b, 1000);
    for (int k = 0; k < 1000; k++) a[k] = b[k] = (float)(k % 17) - 8;
    b[500] = nextafterf(a[500], 100);
    assert_true(ot_compare(&x, &y, false).same);
    b[500] = a[500] + 0.0081f;
    assert_true(ot_compare(&x, &y, true).same); /* the rounding of a model in half precision */
    ot_difference r = ot_compare(&x, &y, false);
    assert_false(r.same);
    assert_true(r.nmse < OT_SAME_NMSE && r.max_rel > OT_SAME_REL);
}

/* ---- bytes ---- */

static ot_level_bytes bytes_of(const char *graph, int64_t fast, int64_t mid)
{
    bench b = {0};
    ot_target t = {.fast_bytes = fast, .mid_bytes = mid};
    ot_level_bytes out;
    ot_arena *a = ot_arena_new();
    open_text(&b, graph);
    assert_int_equal(ot_count_bytes(b.m, &t, a, &out), OT_OK);
    ot_arena_free(a);
    close_bench(&b);
    return out;
}

static void bytes_by_level(void **state)
{
    (void)state;
    const char *graph = "input %x : float32[8,16]\n"           /* 512 bytes */
                        "init %w : float32[16,4] = random 1\n" /* 256 */
                        "%a = Relu(%x)\n"                      /* 512 + 512 */
                        "%b = MatMul(%a, %w)\n"                /* 512 + 256 + 128 */
                        "%c = Reshape(%b, %shape)\n"           /* moves nothing */
                        "%d = Sigmoid(%c)\n"                   /* 128 + 128 */
                        "init %shape : int64[1] = [32]\n"
                        "output %d\n";
    ot_level_bytes x = bytes_of(graph, 128, 256);
    assert_true(x.fast == 3 * 128 && x.mid == 256 && x.slow == 3 * 512 && x.n_unsized == 0);
    x = bytes_of(graph, 128, 0);
    assert_true(x.fast == 3 * 128 && x.mid == 0 && x.slow == 3 * 512 + 256);
}

/* A body counts once an iteration; a window of a large value comes from where that lies. */
static void bytes_of_tiles(void **state)
{
    (void)state;
    const char *graph =
        "input %x : float32[4,32]\n"
        "%buffer : float32[4,32] = \"onnx_tile\"::Alloc@1() {shape=[4, 32], dtype=1}\n"
        "%y : float32[4,32] = \"onnx_tile\"::While@1(%buffer) {count=4, body=graph b {\n"
        "input %i : int64[]\ninput %in : float32[4,32]\nouter %x : float32[4,32]\n"
        "%window : float32[1,32] = \"onnx_tile\"::Slice@1(%x, %i) {axes=[0], sizes=[1], starts=[0, "
        "1, 2, 3]}\n"
        "%t : float32[1,32] = Relu(%window)\n"
        "%piece : float32[1,32] = Exp(%t)\n"
        "%out : float32[4,32] = \"onnx_tile\"::Deslice@1(%piece, %in, %i) {axes=[0], starts=[0, 1, "
        "2, 3]}\n"
        "output %out\n}}\n"
        "output %y\n";
    ot_level_bytes x = bytes_of(graph, 128, 0);
    assert_true(x.slow == 4 * (128 + 128)); /* in and out, once over */
    assert_true(x.fast == 4 * (128 + 128)); /* t written and read */
    assert_int_equal(x.n_unsized, 0);
}

static void bytes_of_loops(void **state)
{
    (void)state;
    const char *scan =
        "input %x : float32[4,32]\n"
        "%y : float32[4,32] = Scan(%x) {num_scan_inputs=1, body=graph b {\n"
        "input %row : float32[32]\n%r : float32[32] = Relu(%row)\noutput %r\n}}\noutput %y\n";
    ot_level_bytes x = bytes_of(scan, 128, 0);
    assert_true(x.slow == 4 * 128 && x.fast == 4 * 128);
    const char *branches = "input %c : bool[]\ninput %x : float32[32]\n"
                           "%y : float32[32] = If(%c) {then_branch=graph t {\nouter %x : "
                           "float32[32]\n%a : float32[32] = Relu(%x)\noutput %a\n},\n"
                           "else_branch=graph e {\nouter %x : float32[32]\n%b : float32[32] = "
                           "Relu(%x)\n%d : float32[32] = Exp(%b)\noutput %d\n}}\n"
                           "output %y\n";
    x = bytes_of(branches, 1024, 0);
    assert_true(x.fast == 4 * 128); /* the longer branch */
}

/* ---- traces ---- */

static void traces_are_bounded(void **state)
{
    (void)state;
    ot_trace *t = ot_trace_new(2, 3);
    char *text = NULL;
    size_t n = 0;
    ot_diag d = {0};
    assert_non_null(t);
    ot_trace_begin(t, "first");
    for (int k = 0; k < 5; k++) ot_trace_add(t, 0, "no\"de", "Relu", -1, 10 + k, 10.5 + k);
    ot_trace_begin(t, "second");
    ot_trace_add(t, 1, "", "While", 7, 9.75, 10);
    ot_trace_add(t, 2, "nobody's", "Relu", -1, 0, 1);
    assert_int_equal(ot_trace_dropped(t), 2);
    FILE *f = open_memstream(&text, &n);
    assert_int_equal(ot_trace_write(t, f, &d), OT_OK);
    fclose(f);
    int events = 0;
    for (const char *p = text; (p = strstr(p, "\"ph\": \"X\"")); p++) events++;
    assert_int_equal(events, 4);
    assert_non_null(strstr(text, "\"name\": \"no\\\"de\", \"cat\": \"Relu\", \"pid\": 0, \"tid\": "
                                 "0, \"ts\": 250000.000, \"dur\": "
                                 "500000.000, \"args\": {\"op\": \"Relu\"}}"));
    assert_non_null(strstr(
        text,
        "\"name\": \"While\", \"cat\": \"While\", \"pid\": 1, \"tid\": 1, \"ts\": 0.000, \"dur\": "
        "250000.000, \"args\": {\"op\": \"While\", \"tile\": 7}}"));
    assert_non_null(strstr(text, "\"dropped\": 2"));
    assert_null(strstr(text, "nobody"));
    free(text);
    ot_trace_free(t);
}

/* ---- verify ---- */

/* A run over a model in memory, tiled; what it was "before" is the model of another text. */
static ot_status verify_against(const char *text, const char *before, ot_verify_mode mode,
                                ot_verify_facts *facts, ot_diag *d)
{
    void *bytes, *other;
    size_t n, m;
    ot_diag d2 = {0};
    ot_model *a = text_model(text, &d2), *b = text_model(before, &d2);
    assert_int_equal(ot_export_memory(a, &bytes, &n), OT_OK);
    assert_int_equal(ot_export_memory(b, &other, &m), OT_OK);
    ot_model_free(a);
    ot_model_free(b);
    ot_run run = {.diag = d,
                  .source = {.bytes = bytes, .n = n},
                  .options = {.target = "mcu-512k",
                              .l2_bytes = 2048,
                              .threads = 1,
                              .plan = {.force = true, .max_slowdown = 0.1}}};
    assert_int_equal(ot_run_load(&run), OT_OK);
    assert_int_equal(ot_run_tile(&run, false), OT_OK);
    assert_true(run.facts->n_regions > 0);
    ot_status s = ot_verify_tiled(&run, other, m, mode, facts);
    ot_run_free(&run);
    free(bytes);
    free(other);
    return s;
}

#define NET(factor)                           \
    "input %x : float32[1,1,16,16]\n"         \
    "init %w : float32[1,1,3,3] = random 1\n" \
    "init %f : float32[] = fill " factor "\n" \
    "%a = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n" \
    "%b = Conv(%a, %w) {pads=[1, 1, 1, 1]}\n" \
    "%c = Mul(%b, %f)\n"                      \
    "%s = Sign(%c)\n"                         \
    "%y = Abs(%s)\n"                          \
    "output %y\n"

static void what_differs_is_found(void **state)
{
    (void)state;
    ot_verify_facts f;
    ot_diag d = {0};
    if (verify_against(NET("1"), NET("1"), OT_VERIFY_OUTPUTS, &f, &d) != OT_OK)
        fail_msg("%s", d.message);
    assert_int_equal(f.n_values, 1);
    /* Only inside: the output forgets the factor. */
    assert_int_equal(verify_against(NET("1"), NET("2"), OT_VERIFY_OUTPUTS, &f, &d), OT_OK);
    const char *split = "input %x : float32[1,1,16,16]\ninit %w : float32[1,1,3,3] = random 1\n%a "
                        "= Conv(%x, %w) {pads=[1, 1, 1, 1]}\n"
                        "%b = Conv(%a, %w) {pads=[1, 1, 1, 1]}\n%c = Relu(%b)\n%m = "
                        "GlobalAveragePool(%c)\n%y = Sign(%m)\noutput %y\n";
    const char *other = "input %x : float32[1,1,16,16]\ninit %w : float32[1,1,3,3] = random 1\n%a "
                        "= Conv(%x, %w) {pads=[1, 1, 1, 1]}\n"
                        "%b = Conv(%a, %w) {pads=[1, 1, 1, 1]}\n%c = Abs(%b)\n%m = "
                        "GlobalAveragePool(%c)\n%y = Sign(%m)\noutput %y\n";
    assert_int_equal(verify_against(split, other, OT_VERIFY_OUTPUTS, &f, &d), OT_OK);
    assert_int_equal(verify_against(split, other, OT_VERIFY_ALL, &f, &d), OT_E_SYSTEM);
    assert_non_null(strstr(d.message, "--verify: value '"));
    assert_non_null(strstr(d.message, "the contents differ"));
    d = (ot_diag){0};
    assert_int_equal(verify_against(split, split, OT_VERIFY_ALL, &f, &d), OT_OK);
    assert_true(f.n_values > 1);
}

/* %b, and %p - %m, which is %b but for rounding: %p is a million and one times %b, %m a million. */
#define ROUNDED(end)                          \
    "input %x : float32[1,1,16,16]\n"         \
    "init %w : float32[1,1,3,3] = random 1\n" \
    "init %f : float32[] = fill 1e6\n"        \
    "init %g : float32[] = fill 1000001\n"    \
    "init %h : float32[] = fill 1.5\n"        \
    "%a = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n" \
    "%b = Conv(%a, %w) {pads=[1, 1, 1, 1]}\n" \
    "%m = Mul(%b, %f)\n"                      \
    "%p = Mul(%b, %g)\n" end "output %y\n"

/* Outputs that are further apart than the tolerance, and no further than the original's own
 * rounding; and such as are further apart than that. */
static void own_rounding_is_no_difference(void **state)
{
    (void)state;
    static const struct {
        const char *tiled, *before;
        ot_status want;
        uint32_t noisy;
    } cases[] = {
        {ROUNDED("%y = Add(%b, %b)\n"), ROUNDED("%y = Add(%b, %b)\n"), OT_OK, 0},
        {ROUNDED("%z = Sub(%m, %m)\n%y = Add(%z, %b)\n"), ROUNDED("%y = Sub(%p, %m)\n"), OT_OK, 1},
        {ROUNDED("%y = Mul(%b, %h)\n"), ROUNDED("%y = Sub(%p, %m)\n"), OT_E_SYSTEM, 0},
        {ROUNDED("%y = Sub(%p, %m)\n"), ROUNDED("%z = Sub(%m, %m)\n%y = Add(%z, %b)\n"),
         OT_E_SYSTEM, 0}, /* exact before: it has no such noise */
        /* whether a sum is rounded up, as integers */
        {ROUNDED("%z = Sub(%m, %m)\n%q = Sub(%z, %b)\n%s = Add(%b, %q)\n%y = Cast(%s) {to=7}\n"),
         ROUNDED("%q = Sub(%p, %m)\n%r = Sub(%q, %b)\n%s = Sign(%r)\n%y = Cast(%s) {to=7}\n"),
         OT_OK, 1},
        {ROUNDED("%s = Sign(%b)\n%y = Cast(%s) {to=7}\n"),
         ROUNDED("%n = Neg(%b)\n%s = Sign(%n)\n%y = Cast(%s) {to=7}\n"), OT_E_SYSTEM, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ot_verify_facts f = {0};
        ot_diag d = {0};
        const ot_status s = verify_against(cases[k].tiled, cases[k].before, OT_VERIFY_OUTPUTS, &f,
                                           &d);
        if (s != cases[k].want) fail_msg("case %zu: status %d: %s", k, s, d.message);
        assert_int_equal(f.n_noisy, cases[k].noisy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_times_of_runs),
        cmocka_unit_test(differences),
        cmocka_unit_test(tolerance),
        cmocka_unit_test(bytes_by_level),
        cmocka_unit_test(bytes_of_tiles),
        cmocka_unit_test(bytes_of_loops),
        cmocka_unit_test(traces_are_bounded),
        cmocka_unit_test(what_differs_is_found),
        cmocka_unit_test(own_rounding_is_no_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
