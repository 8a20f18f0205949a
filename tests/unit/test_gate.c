/* The gate (src/report/compare/gate.c): what it asks, which figure it judges, where a limit lies to
 * the byte, what it refuses to compare, and what it prints. */
#include "report_check.h"

#include "report/compare/gate.h"

/* No limit. */
static const ot_gate_limits NONE = {-1, -1, -1, -1, -1};

/* A report of a plan: live tensors, growth of the process, time, of the untiled and the tiled
 * model; tiled < 0: nothing is tiled. */
typedef struct figures {
    double peak, tiled_peak, growth, tiled_growth, time, tiled_time;
} figures;

typedef struct sample {
    ot_fact_card cards[3];
    ot_facts facts;
} sample;

static void put_sample(sample *s, const char *model, const figures *f)
{
    const ot_fact_card cards[3] = {
        {"peak-memory", "Peak memory", "bytes", f->peak, f->tiled_peak, OT_ABSENT, OT_ABSENT, "",
         false},
        {"process-growth", "Peak resident growth", "bytes", f->growth, f->tiled_growth, OT_ABSENT,
         OT_ABSENT, "", false},
        {"time", "Time", "seconds", f->time, f->tiled_time, OT_ABSENT, OT_ABSENT, "", false}};
    memcpy(s->cards, cards, sizeof cards);
    s->facts = (ot_facts){.model = model,
                          .target = "cpu-generic",
                          .runtime = "onnxruntime",
                          .unknown_sizes = "",
                          .cards = s->cards,
                          .n_cards = 3};
}

static const figures TILED = {4000, 1000, 8000, 3000, 1.0, 1.25},
                     UNTILED = {4000, OT_ABSENT, 8000, OT_ABSENT, 1.0, OT_ABSENT};

static ot_gate judged(const ot_facts *now, const ot_facts *base, const ot_gate_limits *l)
{
    ot_gate g;
    ot_diag d = {0};
    if (ot_gate_judge(now, base, "old/base.xml", l, &d, &g) != OT_OK) fail_msg("%s", d.message);
    return g;
}

static void refuses(const ot_facts *now, const ot_facts *base, const ot_gate_limits *l,
                    const char *word)
{
    ot_gate g;
    ot_diag d = {0};
    assert_int_equal(ot_gate_judge(now, base, "old/base.xml", l, &d, &g), OT_E_INPUT);
    if (!strstr(d.message, word)) fail_msg("'%s' does not say '%s'", d.message, word);
}

/* One limit is enough to ask, and 0 is one; a baseline is for regressions alone. */
static void what_limits_ask(void **state)
{
    (void)state;
    static const struct {
        ot_gate_limits limits;
        bool asks, needs_baseline;
    } cases[] = {{{-1, -1, -1, -1, -1}, false, false}, {{0, -1, -1, -1, -1}, true, false},
                 {{-1, 0, -1, -1, -1}, true, false},   {{-1, -1, 0, -1, -1}, true, false},
                 {{-1, -1, -1, 0, -1}, true, true},    {{-1, -1, -1, -1, 0}, true, true},
                 {{5, 5, 5, -1, -1}, true, false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_int_equal(ot_gate_asks(&cases[k].limits), cases[k].asks);
        assert_int_equal(ot_gate_needs_baseline(&cases[k].limits), cases[k].needs_baseline);
    }
}

/* The tiled model's figure counts, the untiled one's where nothing is tiled; at the limit it
 * passes, a byte above it does not. */
static void absolute_limits(void **state)
{
    (void)state;
    static const struct {
        const figures *f;
        double peak, growth;
    } cases[] = {{&TILED, 1000, 3000}, {&UNTILED, 4000, 8000}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        sample s;
        put_sample(&s, "dir/m.onnx", cases[k].f);
        for (int below = 0; below < 2; below++) {
            ot_gate_limits l = NONE;
            l.peak = cases[k].peak - below;
            l.growth = cases[k].growth;
            const ot_gate g = judged(&s.facts, NULL, &l);
            assert_int_equal(g.n_checks, 2);
            assert_string_equal(g.checks[0].figure, "peak-memory");
            assert_string_equal(g.checks[1].figure, "process-growth");
            assert_true(g.checks[0].value == cases[k].peak && g.checks[0].limit == l.peak);
            assert_true(g.checks[1].value == cases[k].growth);
            assert_int_equal(g.checks[0].passed, !below);
            assert_true(g.checks[1].passed);
            assert_true(g.checks[0].baseline == OT_ABSENT && g.checks[0].allowed == OT_ABSENT);
        }
    }
}

/* So much more than the baseline passes, more does not; less always does. */
static void regressions(void **state)
{
    (void)state;
    static const struct {
        double time, peak, allowed_time, allowed_peak;
        bool time_passes, peak_passes;
    } cases[] = {
        {1.25, 1000, 0, 0, true, true},      {1.375, 1000, 0.10, 0, true, true},
        {1.376, 1000, 0.10, 0, false, true}, {1.0, 500, 0, 0, true, true},
        {1.25, 1250, 0.5, 0.25, true, true}, {1.25, 1251, 0.5, 0.25, true, false},
        {2.0, 2001, 0.5, 1.0, false, false},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        sample base, now;
        figures f = TILED;
        put_sample(&base, "m.onnx", &TILED);
        f.tiled_time = cases[k].time;
        f.tiled_peak = cases[k].peak;
        put_sample(&now, "m.onnx", &f);
        const ot_gate_limits l = {-1, -1, -1, cases[k].allowed_time, cases[k].allowed_peak};
        const ot_gate g = judged(&now.facts, &base.facts, &l);
        assert_int_equal(g.n_checks, 2);
        assert_string_equal(g.checks[0].figure, "peak-memory");
        assert_string_equal(g.checks[1].figure, "time");
        assert_true(g.checks[0].baseline == 1000 && g.checks[1].baseline == 1.25);
        assert_true(g.checks[1].limit == 1.25 * (1 + cases[k].allowed_time));
        assert_true(g.checks[1].allowed == cases[k].allowed_time);
        if (g.checks[0].passed != cases[k].peak_passes ||
            g.checks[1].passed != cases[k].time_passes)
            fail_msg("case %zu: peak %d, time %d", k, g.checks[0].passed, g.checks[1].passed);
    }
}

/* Reports hold nine digits: what is above a limit by less is not above it. */
static void digits_that_reports_do_not_hold(void **state)
{
    (void)state;
    sample s;
    figures f = TILED;
    ot_gate_limits l = NONE;
    l.peak = 1e9;
    f.tiled_peak = 1e9 + 0.5;
    put_sample(&s, "m.onnx", &f);
    assert_true(judged(&s.facts, NULL, &l).checks[0].passed);
    f.tiled_peak = 1e9 + 2;
    put_sample(&s, "m.onnx", &f);
    assert_false(judged(&s.facts, NULL, &l).checks[0].passed);
}

/* No gate passes on a figure that is not known, and figures of two kinds are not compared. */
/* What is not known passes no limit. */
static void fails_unknown(const ot_facts *now, const ot_facts *base, const ot_gate_limits *l,
                          const char *says)
{
    ot_diag d = {0};
    const ot_gate g = judged(now, base, l);
    for (uint32_t k = 0; k < g.n_checks; k++) {
        assert_false(g.checks[k].passed);
        assert_true(*g.checks[k].unknown);
    }
    assert_int_equal(ot_gate_result(&g, &d), OT_E_BUDGET);
    if (!strstr(d.message, says)) fail_msg("'%s' does not say '%s'", d.message, says);
}

static void what_is_not_judged(void **state)
{
    (void)state;
    sample now, base;
    figures f = TILED;
    ot_gate_limits l = NONE, more = NONE;
    l.growth = 1e12;
    more.time_regression = 9;
    f.growth = f.tiled_growth = OT_ABSENT;
    put_sample(&now, "m.onnx", &f);
    fails_unknown(&now.facts, NULL, &l, "process-growth not known, at most 931 GiB: there is no ");
    put_sample(&now, "m.onnx", &TILED);
    now.facts.n_cards = 1;
    fails_unknown(&now.facts, NULL, &l, "process-growth not known");

    put_sample(&now, "m.onnx", &TILED);
    put_sample(&base, "m.onnx", &TILED);
    base.cards[2].before = base.cards[2].after = OT_ABSENT;
    fails_unknown(&now.facts, &base.facts, &more, "at most +900 % of base.xml: there is no ");
    put_sample(&base, "m.onnx", &TILED);
    now.facts.unknown_sizes = "the size of 'v' is not known";
    now.cards[1].at_least = now.cards[2].at_least = true;
    fails_unknown(
        &now.facts, NULL, &l,
        "process-growth at least 2.93 KiB, at most 931 GiB: the size of 'v' is not known");
    fails_unknown(&now.facts, &base.facts, &more, "time at least 1.25 s, at most +900 % of");
    now.cards[1].at_least = now.cards[2].at_least = false;
    base.facts.unknown_sizes = "the size of 'w' is not known";
    base.cards[2].at_least = true;
    fails_unknown(&now.facts, &base.facts, &more, "the size of 'w' is not known");
    now.facts.unknown_sizes = "";

    put_sample(&base, "m.onnx", &TILED);
    base.facts.target = "tlf-16m";
    refuses(&now.facts, &base.facts, &more,
            "old/base.xml: target 'tlf-16m' in the baseline and 'cpu-generic' here");
    base.facts.target = NULL;
    refuses(&now.facts, &base.facts, &more, "target '' in the baseline");
    put_sample(&base, "m.onnx", &TILED);
    base.facts.runtime = "openvino";
    refuses(&now.facts, &base.facts, &more, "runtime 'openvino' in the baseline");
    put_sample(&base, "m.onnx", &TILED);
    base.facts.measured = true;
    refuses(&now.facts, &base.facts, &more, "measured in the baseline and predicted here");
    now.facts.measured = true;
    base.facts.measured = false;
    refuses(&now.facts, &base.facts, &more, "predicted in the baseline and measured here");
    base.facts.measured = true;
    assert_true(judged(&now.facts, &base.facts, &more).measured);
}

/* Over a range the largest size counts, not the one that is planned for; what is not proved, or
 * not predicted, passes nothing. */
static void the_most_over_a_range(void **state)
{
    (void)state;
    sample now;
    ot_bounds_facts r = {.text = "x=1:9", .tiled = {OT_BOUNDS_PROVED, 5000, "9", 0, NULL, 0, NULL}};
    ot_gate_limits l = NONE;
    put_sample(&now, "m.onnx", &TILED);
    now.facts.range = &r;
    l.peak = 4999;
    assert_false(judged(&now.facts, NULL, &l).checks[0].passed);
    l.peak = 5000;
    assert_true(judged(&now.facts, NULL, &l).checks[0].passed);
    assert_string_equal(judged(&now.facts, NULL, &l).range, "x=1:9");
    l.growth = 1e12; /* not predicted over it */
    fails_unknown(&now.facts, NULL, &(ot_gate_limits){-1, 1e12, -1, -1, -1}, "over a range");
    r.tiled.verdict = OT_BOUNDS_UNKNOWN;
    r.tiled.why = "NonZero 'n' is in the way";
    fails_unknown(&now.facts, NULL, &(ot_gate_limits){1e12, -1, -1, -1, -1}, "NonZero 'n' is in");
    r.untiled = r.tiled; /* nothing is tiled */
    r.tiled = (ot_bounds_side){OT_BOUNDS_NONE, 0, NULL, 0, NULL, 0, NULL};
    fails_unknown(&now.facts, NULL, &(ot_gate_limits){1e12, -1, -1, -1, -1}, "at least");
}

/* Figures of a model that computes something else are none to pass by. */
static void outputs_that_differ(void **state)
{
    (void)state;
    sample now;
    ot_diag d = {0};
    ot_bench_output outputs[2] = {{"a", {.same = true}}, {"b", {.why = "the contents differ"}}};
    ot_bench_facts bench = {.n_outputs = 2, .outputs = outputs};
    ot_gate_limits l = NONE;
    l.peak = 1e12;
    put_sample(&now, "m.onnx", &TILED);
    now.facts.bench = &bench;
    ot_gate g = judged(&now.facts, NULL, &l);
    assert_true(g.checks[0].passed);
    assert_int_equal(ot_gate_result(&g, &d), OT_E_BUDGET);
    assert_non_null(strstr(d.message, "output 'b' is not the original's: the contents differ"));
    outputs[1].difference = (ot_difference){.same = true, .own_noise = true};
    d = (ot_diag){0};
    g = judged(&now.facts, NULL, &l);
    assert_int_equal(ot_gate_result(&g, &d), OT_OK);
}

static char *printed(const ot_gate *g, ot_status (*print)(const ot_gate *, FILE *))
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    assert_int_equal(print(g, f), OT_OK);
    assert_int_equal(fclose(f), 0);
    return text;
}

/* The table names the file, not its folder; differences in percent; the line of a failure has
 * every check that failed and none that passed. */
static void what_it_prints(void **state)
{
    (void)state;
    sample now, base;
    figures f = TILED;
    put_sample(&base, "m.onnx", &TILED);
    f.tiled_time = 1.5;
    put_sample(&now, "dir/m.onnx", &f);
    const ot_gate_limits l = {999, 3000, -1, 0.10, 0};
    const ot_gate g = judged(&now.facts, &base.facts, &l);
    assert_int_equal(g.n_checks, OT_GATE_CHECKS - 1);

    char *text = printed(&g, ot_gate_print);
    assert_int_equal(strncmp(text, "m.onnx (predicted)\n", 19), 0);
    assert_non_null(strstr(text, "  FAILED  Peak memory       1000 B, at most 999 B\n"));
    assert_non_null(strstr(text, "  passed  Peak resident growth  2.93 KiB, at most 2.93 KiB\n"));
    assert_non_null(strstr(text, "  passed  Peak memory       1000 B, 1000 B in base.xml (+0.0 %, "
                                 "at most +0 %)\n"));
    assert_non_null(strstr(text, "  FAILED  Time              1.5 s, 1.25 s in base.xml (+20.0 %, "
                                 "at most +10 %)\n"));
    free(text);

    ot_diag d = {0};
    assert_int_equal(ot_gate_result(&g, &d), OT_E_BUDGET);
    assert_string_equal(d.message, "m.onnx does not pass: peak-memory 1000 B, at most 999 B; time "
                                   "1.5 s, 1.25 s in base.xml (+20.0 %, at most +10 %)");

    text = printed(&g, ot_gate_json);
    assert_non_null(strstr(text, "\"passed\": false"));
    assert_non_null(strstr(text, "\"baseline\": \"old/base.xml\""));
    assert_non_null(strstr(text, "\"allowed\": 0.1"));
    free(text);

    /* all pass: the result is good, the JSON says so, and absolute limits have no baseline */
    const ot_gate_limits wide = {1e9, 1e9, -1, -1, -1};
    const ot_gate good = judged(&now.facts, NULL, &wide);
    assert_int_equal(ot_gate_result(&good, &d), OT_OK);
    text = printed(&good, ot_gate_json);
    assert_non_null(strstr(text, "\"passed\": true"));
    assert_null(strstr(text, "false, \"checks\""));
    assert_null(strstr(text, "allowed"));
    free(text);
}

/* A baseline of nothing: there is no percentage of it, and any more fails. */
static void more_than_nothing(void **state)
{
    (void)state;
    sample now, base;
    figures f = TILED;
    f.tiled_peak = 0;
    put_sample(&base, "m.onnx", &f);
    put_sample(&now, "m.onnx", &TILED);
    ot_gate_limits l = NONE;
    l.peak_regression = 10;
    const ot_gate g = judged(&now.facts, &base.facts, &l);
    assert_false(g.checks[0].passed);
    char *text = printed(&g, ot_gate_print);
    assert_non_null(strstr(text, "(+0.0 %, at most +1000 %)"));
    free(text);
    const ot_gate none = judged(&base.facts, &base.facts, &l);
    assert_true(none.checks[0].passed);
}

static void a_full_device(void **state)
{
    (void)state;
    sample s;
    ot_gate_limits l = NONE;
    l.peak = 1;
    put_sample(&s, "m.onnx", &TILED);
    const ot_gate g = judged(&s.facts, NULL, &l);
    ot_status (*const print[])(const ot_gate *, FILE *) = {ot_gate_print, ot_gate_json};
    for (size_t k = 0; k < 2; k++) {
        FILE *f = fopen("/dev/full", "w");
        assert_non_null(f);
        setvbuf(f, NULL, _IONBF, 0);
        assert_int_equal(print[k](&g, f), OT_E_SYSTEM);
        fclose(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_limits_ask),       cmocka_unit_test(absolute_limits),
        cmocka_unit_test(regressions),           cmocka_unit_test(digits_that_reports_do_not_hold),
        cmocka_unit_test(what_is_not_judged),    cmocka_unit_test(outputs_that_differ),
        cmocka_unit_test(the_most_over_a_range), cmocka_unit_test(what_it_prints),
        cmocka_unit_test(more_than_nothing),     cmocka_unit_test(a_full_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
