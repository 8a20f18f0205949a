/* The gate: figures of a report against limits. */
#include "gate.h"

#include "base/json.h"
#include "compare.h"

enum { SHOWN_MAX = 64, LINE_MAX_BYTES = 768 };
#define SLACK 1e-9 /* reports hold nine digits: no more above a limit is above it */

bool ot_gate_needs_baseline(const ot_gate_limits *l)
{
    return l->time_regression >= 0 || l->peak_regression >= 0;
}

bool ot_gate_asks(const ot_gate_limits *l)
{
    return l->peak >= 0 || l->growth >= 0 || l->process >= 0 || ot_gate_needs_baseline(l);
}

static const ot_fact_card *card_of(const ot_facts *f, const char *id)
{
    for (uint32_t k = 0; k < f->n_cards; k++)
        if (strcmp(f->cards[k].id, id) == 0) return &f->cards[k];
    return NULL;
}

/* The kinds of figures that are judged. */
static const struct {
    const char *id, *title, *unit;
} KINDS[] = {{"peak-memory", "Peak memory", "bytes"},
             {"process-growth", "Peak resident growth", "bytes"},
             {"process", "Whole process", "bytes"},
             {"time", "Time", "seconds"}};

static ot_gate_check new_check(const char *id)
{
    ot_gate_check c = {.figure = id,
                       .title = id,
                       .unit = "bytes",
                       .value = OT_ABSENT,
                       .baseline = OT_ABSENT,
                       .limit = OT_ABSENT,
                       .allowed = OT_ABSENT,
                       .unknown = ""};
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
        if (strcmp(KINDS[k].id, id) != 0) continue;
        c.title = KINDS[k].title;
        c.unit = KINDS[k].unit;
    }
    return c;
}

/* The figure of f; what is in the way of judging it becomes the check's `unknown`. */
static double figure_of(const ot_facts *f, ot_gate_check *c, bool *at_least)
{
    const ot_fact_card *card = card_of(f, c->figure);
    const double x = ot_compare_figure(card);
    *at_least = card && card->at_least;
    if (x >= 0 && !*at_least) return x;
    c->unknown = *f->unknown_sizes ? f->unknown_sizes
                                   : "there is no prediction of it for this target and runtime";
    return x;
}

/* The most over the range of sizes that was asked about, in place of the figure at the size that
 * is planned for. */
static void take_range(const ot_facts *f, ot_gate_check *c)
{
    const ot_bounds_facts *r = f->range;
    const ot_bounds_side *x = r->tiled.verdict != OT_BOUNDS_NONE ? &r->tiled : &r->untiled;
    const int64_t most = strcmp(c->figure, "peak-memory") == 0      ? x->live_bytes
                         : strcmp(c->figure, "process-growth") == 0 ? x->growth_bytes
                                                                    : x->process_bytes;
    if ((double)most > c->value) c->value = (double)most;
    c->at_least = x->verdict != OT_BOUNDS_PROVED;
    if (most <= 0)
        c->unknown = "there is no prediction of it over a range for this target and runtime";
    else if (c->at_least)
        c->unknown = x->why ? x->why : "not proved over the range";
}

/* Figures of two machines, or of a prediction and a measurement, say nothing beside each other. */
static ot_status check_alike(const ot_facts *now, const ot_facts *base, const char *path,
                             ot_diag *d)
{
    const struct {
        const char *what, *now, *base;
    } same[] = {{"target", now->target, base->target}, {"runtime", now->runtime, base->runtime}};
    for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
        const char *a = same[k].now ? same[k].now : "", *b = same[k].base ? same[k].base : "";
        if (strcmp(a, b) != 0)
            return ot_fail(
                d, OT_E_INPUT,
                "%s: %s '%s' in the baseline and '%s' here: figures of the two are not comparable",
                path, same[k].what, b, a);
    }
    if (now->measured != base->measured)
        return ot_fail(
            d, OT_E_INPUT, "%s: figures are %s in the baseline and %s here: not comparable", path,
            base->measured ? "measured" : "predicted", now->measured ? "measured" : "predicted");
    return OT_OK;
}

/* limit: bytes; or allowed: a fraction above what base has. */
static void add_check(ot_gate *g, const ot_facts *now, const ot_facts *base, const char *id,
                      double limit, double allowed)
{
    ot_gate_check c = new_check(id);
    const ot_fact_card *card = card_of(now, id);
    bool at_least;
    if (card) {
        c.title = card->title;
        c.unit = card->unit;
    }
    c.limit = limit;
    if (base) {
        c.baseline = figure_of(base, &c, &at_least);
        c.limit = c.baseline < 0 ? OT_ABSENT : c.baseline * (1 + allowed);
        c.allowed = allowed;
    }
    c.value = figure_of(now, &c, &c.at_least);
    if (now->range && !base) take_range(now, &c);
    c.passed = !*c.unknown && c.value <= c.limit * (1 + SLACK);
    g->checks[g->n_checks++] = c;
}

/* A tiled model that computes something else passes no gate. */
static void note_outputs(const ot_facts *now, ot_gate *out)
{
    for (uint32_t k = 0; now->bench && k < now->bench->n_outputs && !out->differs; k++) {
        const ot_bench_output *x = &now->bench->outputs[k];
        if (x->difference.same) continue;
        out->differs = x->name;
        out->why = x->difference.why ? x->difference.why : "the contents differ";
    }
}

ot_status ot_gate_judge(const ot_facts *now, const ot_facts *base, const char *baseline,
                        const ot_gate_limits *l, ot_diag *d, ot_gate *out)
{
    *out = (ot_gate){.model = now->model, .baseline = baseline, .measured = now->measured};
    if (now->range) out->range = now->range->text;
    note_outputs(now, out);
    if (base) OT_TRY(check_alike(now, base, baseline, d));
    if (base && strcmp(html_file_name(now->model), html_file_name(base->model)) != 0)
        out->other_model = base->model;
    if (l->peak >= 0) add_check(out, now, NULL, "peak-memory", l->peak, 0);
    if (l->growth >= 0) add_check(out, now, NULL, "process-growth", l->growth, 0);
    if (l->process >= 0) add_check(out, now, NULL, "process", l->process, 0);
    if (l->peak_regression >= 0) add_check(out, now, base, "peak-memory", 0, l->peak_regression);
    if (l->time_regression >= 0) add_check(out, now, base, "time", 0, l->time_regression);
    return OT_OK;
}

/* ---- what it says ---- */

/* "12.3 MiB, 11.2 MiB in base.xml (x1.10): at most x1.05" */
static void say_check(const ot_gate *g, const ot_gate_check *c, char *text, size_t size)
{
    const ot_fact_card as = {.unit = c->unit, .at_least = c->at_least};
    char value[SHOWN_MAX], baseline[SHOWN_MAX], limit[SHOWN_MAX];
    html_card_text(&as, c->value, value, sizeof value);
    html_format(c->limit, c->unit, limit, sizeof limit);
    if (c->allowed < 0) {
        snprintf(text, size, "%s, at most %s%s%s", value, limit, *c->unknown ? ": " : "",
                 c->unknown);
        return;
    }
    if (*c->unknown) {
        snprintf(text, size, "%s, at most +%.4g %% of %s: %s", value, 100 * c->allowed,
                 html_file_name(g->baseline), c->unknown);
        return;
    }
    html_format(c->baseline, c->unit, baseline, sizeof baseline);
    const double more = c->baseline > 0 && !ot_compare_same(c->value, c->baseline)
                            ? 100 * (c->value / c->baseline - 1)
                            : 0;
    snprintf(text, size, "%s, %s in %s (%+.1f %%, at most +%.4g %%)", value, baseline,
             html_file_name(g->baseline), more, 100 * c->allowed);
}

ot_status ot_gate_print(const ot_gate *g, FILE *f)
{
    char text[LINE_MAX_BYTES];
    ot_put_shown(html_file_name(g->model), f);
    fprintf(f, " (%s%s", g->measured ? "measured" : "predicted",
            g->range ? ", the most over " : "");
    if (g->range) ot_put_shown(g->range, f);
    fputs(")\n", f);
    for (uint32_t k = 0; k < g->n_checks; k++) {
        say_check(g, &g->checks[k], text, sizeof text);
        fprintf(f, "  %-6s  %-16s  ", g->checks[k].passed ? "passed" : "FAILED",
                g->checks[k].title);
        ot_put_shown(text, f);
        fputc('\n', f);
    }
    if (g->differs) {
        fprintf(f, "  %-6s  %-16s  '", "FAILED", "Outputs");
        ot_put_shown(g->differs, f);
        fprintf(f, "': %s\n", g->why);
    }
    if (g->other_model) {
        fputs("  note: ", f);
        ot_put_shown(html_file_name(g->baseline), f);
        fputs(" is of another model, ", f);
        ot_put_shown(html_file_name(g->other_model), f);
        fputc('\n', f);
    }
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}

/* null: not known. */
static void put_known(ot_json *j, const char *key, double x)
{
    if (x < 0)
        ot_json_put_null(j, key);
    else
        ot_json_put_number(j, key, x);
}

ot_status ot_gate_json(const ot_gate *g, FILE *f)
{
    ot_json j = {.f = f};
    bool passed = !g->differs;
    for (uint32_t k = 0; k < g->n_checks; k++) passed = passed && g->checks[k].passed;
    ot_json_open(&j, NULL);
    ot_json_put_text(&j, "model", g->model);
    ot_json_put_text(&j, "baseline", g->baseline);
    if (g->other_model) ot_json_put_text(&j, "baseline_model", g->other_model);
    if (g->range) ot_json_put_text(&j, "range", g->range);
    ot_json_put_truth(&j, "measured", g->measured);
    ot_json_put_truth(&j, "passed", passed);
    if (g->differs) ot_json_put_text(&j, "differs", g->differs);
    ot_json_list(&j, "checks");
    for (uint32_t k = 0; k < g->n_checks; k++) {
        const ot_gate_check *c = &g->checks[k];
        ot_json_open(&j, NULL);
        ot_json_put_text(&j, "figure", c->figure);
        ot_json_put_text(&j, "unit", c->unit);
        put_known(&j, "value", c->value);
        put_known(&j, "limit", c->limit);
        if (*c->unknown) ot_json_put_text(&j, "unknown", c->unknown);
        if (c->allowed >= 0) {
            put_known(&j, "baseline", c->baseline);
            ot_json_put_number(&j, "allowed", c->allowed);
        }
        ot_json_put_truth(&j, "passed", c->passed);
        ot_json_close(&j);
    }
    ot_json_close(&j);
    ot_json_close(&j);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}

ot_status ot_gate_result(const ot_gate *g, ot_diag *d)
{
    char all[OT_DIAG_MAX] = "", text[LINE_MAX_BYTES];
    for (uint32_t k = 0; k < g->n_checks; k++) {
        size_t used = strlen(all);
        if (g->checks[k].passed) continue;
        say_check(g, &g->checks[k], text, sizeof text);
        snprintf(all + used, sizeof all - used, "%s%s %s", used ? "; " : "", g->checks[k].figure,
                 text);
    }
    const size_t used = strlen(all);
    if (g->differs)
        snprintf(all + used, sizeof all - used, "%soutput '%.200s' is not the original's: %s",
                 used ? "; " : "", g->differs, g->why);
    return *all ? ot_fail(d, OT_E_BUDGET, "%s does not pass: %s", html_file_name(g->model), all)
                : OT_OK;
}
