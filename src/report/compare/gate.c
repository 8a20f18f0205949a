/* The gate: figures of a report against limits. */
#include "gate.h"

#include "base/json.h"
#include "compare.h"

enum { SHOWN_MAX = 64 };
#define SLACK 1e-9 /* reports hold nine digits: no more above a limit is above it */

bool ot_gate_needs_baseline(const ot_gate_limits *l)
{
    return l->time_regression >= 0 || l->peak_regression >= 0;
}

bool ot_gate_asks(const ot_gate_limits *l)
{
    return l->peak >= 0 || l->growth >= 0 || ot_gate_needs_baseline(l);
}

static const ot_fact_card *card_of(const ot_facts *f, const char *id)
{
    for (uint32_t k = 0; k < f->n_cards; k++)
        if (strcmp(f->cards[k].id, id) == 0) return &f->cards[k];
    return NULL;
}

static ot_status need_figure(const ot_facts *f, const char *id, const char *path, ot_diag *d,
                             const ot_fact_card **card)
{
    *card = card_of(f, id);
    if (*card && ot_compare_figure(*card) >= 0) return OT_OK;
    return ot_fail(d, OT_E_INPUT, "%s: there is no figure %s to judge (target %s, runtime %s)",
                   path, id, f->target, f->runtime);
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
static ot_status add_check(ot_gate *g, const ot_facts *now, const ot_facts *base, const char *id,
                           double limit, double allowed, ot_diag *d)
{
    const ot_fact_card *card, *before;
    OT_TRY(need_figure(now, id, g->model, d, &card));
    ot_gate_check c = {.figure = id,
                       .title = card->title,
                       .unit = card->unit,
                       .value = ot_compare_figure(card),
                       .baseline = OT_ABSENT,
                       .limit = limit,
                       .allowed = OT_ABSENT};
    if (base) {
        OT_TRY(need_figure(base, id, g->baseline, d, &before));
        c.baseline = ot_compare_figure(before);
        c.limit = c.baseline * (1 + allowed);
        c.allowed = allowed;
    }
    c.passed = c.value <= c.limit * (1 + SLACK);
    g->checks[g->n_checks++] = c;
    return OT_OK;
}

ot_status ot_gate_judge(const ot_facts *now, const ot_facts *base, const char *baseline,
                        const ot_gate_limits *l, ot_diag *d, ot_gate *out)
{
    *out = (ot_gate){.model = now->model, .baseline = baseline, .measured = now->measured};
    if (base) OT_TRY(check_alike(now, base, baseline, d));
    if (l->peak >= 0) OT_TRY(add_check(out, now, NULL, "peak-memory", l->peak, 0, d));
    if (l->growth >= 0) OT_TRY(add_check(out, now, NULL, "process-growth", l->growth, 0, d));
    if (l->peak_regression >= 0)
        OT_TRY(add_check(out, now, base, "peak-memory", 0, l->peak_regression, d));
    if (l->time_regression >= 0)
        OT_TRY(add_check(out, now, base, "time", 0, l->time_regression, d));
    return OT_OK;
}

/* ---- what it says ---- */

/* "12.3 MiB, 11.2 MiB in base.xml (x1.10): at most x1.05" */
static void say_check(const ot_gate *g, const ot_gate_check *c, char *text, size_t size)
{
    char value[SHOWN_MAX], baseline[SHOWN_MAX], limit[SHOWN_MAX];
    html_format(c->value, c->unit, value, sizeof value);
    html_format(c->limit, c->unit, limit, sizeof limit);
    if (c->allowed < 0) {
        snprintf(text, size, "%s, at most %s", value, limit);
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
    char text[256];
    ot_put_shown(html_file_name(g->model), f);
    fprintf(f, " (%s)\n", g->measured ? "measured" : "predicted");
    for (uint32_t k = 0; k < g->n_checks; k++) {
        say_check(g, &g->checks[k], text, sizeof text);
        fprintf(f, "  %-6s  %-16s  ", g->checks[k].passed ? "passed" : "FAILED",
                g->checks[k].title);
        ot_put_shown(text, f);
        fputc('\n', f);
    }
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}

ot_status ot_gate_json(const ot_gate *g, FILE *f)
{
    ot_json j = {.f = f};
    bool passed = true;
    for (uint32_t k = 0; k < g->n_checks; k++) passed = passed && g->checks[k].passed;
    ot_json_open(&j, NULL);
    ot_json_put_text(&j, "model", g->model);
    ot_json_put_text(&j, "baseline", g->baseline);
    ot_json_put_truth(&j, "measured", g->measured);
    ot_json_put_truth(&j, "passed", passed);
    ot_json_list(&j, "checks");
    for (uint32_t k = 0; k < g->n_checks; k++) {
        const ot_gate_check *c = &g->checks[k];
        ot_json_open(&j, NULL);
        ot_json_put_text(&j, "figure", c->figure);
        ot_json_put_text(&j, "unit", c->unit);
        ot_json_put_number(&j, "value", c->value);
        ot_json_put_number(&j, "limit", c->limit);
        if (c->allowed >= 0) {
            ot_json_put_number(&j, "baseline", c->baseline);
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
    char all[OT_DIAG_MAX] = "", text[256];
    for (uint32_t k = 0; k < g->n_checks; k++) {
        size_t used = strlen(all);
        if (g->checks[k].passed) continue;
        say_check(g, &g->checks[k], text, sizeof text);
        snprintf(all + used, sizeof all - used, "%s%s %s", used ? "; " : "", g->checks[k].figure,
                 text);
    }
    return *all ? ot_fail(d, OT_E_BUDGET, "%s does not pass: %s", html_file_name(g->model), all)
                : OT_OK;
}
