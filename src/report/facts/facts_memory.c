/* Facts of plan-memory: one card and one map a memory, totals of the plan. Planning time is left
 * out, so that reports of the same input are equal. */
#include "facts_build.h"

static ot_status copy_map(ot_facts *f, const ot_map_plot *p, const ot_scope_plan *plan,
                          ot_fact_map *m, ot_diag *d)
{
    ot_fact_box *boxes = OT_NEW_N(f->arena, ot_fact_box, p->n + 1u);
    const char *scope = f->target && *f->target ? ot_scope_name(plan->scope) : "memory";
    if (!boxes) return ot_fail_nomem(d);
    int64_t from = p->from < p->to ? p->from : INT64_MAX, to = p->to;
    for (uint32_t k = 0; k < p->n; k++)
        from = ot_min(from, p->boxes[k].lower), to = ot_max(to, p->boxes[k].upper);
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_map_box *b = &p->boxes[k];
        boxes[k] = (ot_fact_box){
            ot_strdup(f->arena, b->name), b->lower, b->upper, b->offset, b->size, b->kind};
        if (!boxes[k].name) return ot_fail_nomem(d);
    }
    *m = (ot_fact_map){
        .id = scope,
        .title = ot_format(f->arena, "Memory %s", *p->title ? p->title : "of the table"),
        .time_label = ot_strdup(f->arena, p->time),
        .steps = p->n > 0 ? to : 0,
        .boxes = boxes,
        .n_boxes = p->n,
        .height = p->height,
        .lower_bound = p->lower_bound,
        .capacity = p->capacity,
        .proved = plan->proved};
    return m->title && m->time_label ? OT_OK : ot_fail_nomem(d);
}

/* The next line of *text without its end, in the arena; NULL: there is none, or no memory. */
static const char *next_line(ot_arena *a, const char **text)
{
    const size_t n = strcspn(*text, "\n");
    if (**text == '\0') return NULL;
    const char *line = ot_format(a, "%.*s", (int)n, *text);
    *text += n + ((*text)[n] != '\0');
    return line;
}

#define LOOK_AHEAD 60 /* lines that a pass may leave out in one place */

/* Without blanks around it. */
static bool same_line(const char *a, const char *b)
{
    while (*a == ' ' || *a == '\t') a++;
    while (*b == ' ' || *b == '\t') b++;
    size_t n = strlen(a), m = strlen(b);
    while (n > 0 && (a[n - 1] == ' ' || a[n - 1] == '\r')) n--;
    while (m > 0 && (b[m - 1] == ' ' || b[m - 1] == '\r')) m--;
    return n == m && memcmp(a, b, n) == 0;
}

/* Lines that are not among the next ones of the text before. */
static void mark_changes(const ot_fact_pass *before, ot_fact_line *lines, uint32_t n)
{
    uint32_t from = 0;
    for (uint32_t k = 0; before && k < n; k++) {
        uint32_t at = from;
        while (at < before->n_lines && at < from + LOOK_AHEAD &&
               !same_line(before->lines[at].text, lines[k].text))
            at++;
        lines[k].changed = at == before->n_lines || at == from + LOOK_AHEAD;
        if (!lines[k].changed) from = at + 1;
    }
}

static ot_status copy_pass(ot_facts *f, const ot_memory_results *r, const ot_memory_pass *p,
                           const ot_fact_pass *before, ot_fact_pass *out, ot_diag *d)
{
    ot_fact_line *lines = NULL;
    size_t n = 0, cap = 0;
    *out = (ot_fact_pass){.id = p->id, .title = p->title, .what = p->what};
    for (const char *text = p->text; *text;) {
        const ot_fact_line line = {.text = next_line(f->arena, &text)};
        if (!line.text || !OT_PUSH(f->arena, lines, n, cap, line)) return ot_fail_nomem(d);
    }
    mark_changes(before, lines, (uint32_t)n);
    out->lines = lines;
    out->n_lines = (uint32_t)n;
    out->maps = OT_NEW_N(f->arena, ot_fact_map, p->n_plots + 1u);
    if (!out->maps) return ot_fail_nomem(d);
    for (; out->n_maps < p->n_plots; out->n_maps++) {
        ot_scope_plan plan = r->plans[out->n_maps];
        plan.proved = false;
        OT_TRY(copy_map(f, &p->plots[out->n_maps], &plan, &out->maps[out->n_maps], d));
    }
    return OT_OK;
}

static ot_status add_cards(ot_facts *f, const ot_memory_results *r, ot_diag *d)
{
    f->cards = OT_NEW_N(f->arena, ot_fact_card, r->n_plans + 1u);
    if (!f->cards) return ot_fail_nomem(d);
    for (uint32_t k = 0; k < r->n_plans; k++) {
        const ot_scope_plan *p = &r->plans[k];
        const char *scope = r->kernel ? ot_scope_name(p->scope) : "memory";
        f->cards[k] = (ot_fact_card){
            .id = scope,
            .title = r->kernel ? ot_format(f->arena, "Memory %s", scope) : "Memory",
            .unit = "bytes",
            .before = (double)p->sum,
            .after = (double)p->height,
            .bound = (double)p->lower_bound,
            .ratio = p->sum > 0 ? (double)p->height / (double)p->sum : OT_ABSENT,
            .note = "Without any reuse, and planned; the limit is what lives at one time."};
        if (!f->cards[k].title) return ot_fail_nomem(d);
    }
    f->n_cards = r->n_plans;
    return OT_OK;
}

static ot_status add_totals(ot_facts *f, const ot_memory_results *r, ot_diag *d)
{
    const ot_fact_entry e[] = {
        {"buffers", "Buffers", "", r->n_buffers, "count"},
        {"in-place", "Merged in place", "", r->n_in_place, "count"},
        {"copies", "Copies that could not be merged", "", r->n_copies, "count"},
        {"steps", "Steps of the search", "", (double)r->steps, "count"},
        {"mode", "Mode asked for", ot_mem_mode_name(r->asked), OT_ABSENT, ""},
    };
    f->memory_entries = ot_memdup(f->arena, e, sizeof e);
    f->n_memory_entries = sizeof e / sizeof *e;
    const ot_fact_entry v = {"version", "onnx-tile", f->version, OT_ABSENT, ""};
    f->environment = ot_memdup(f->arena, &v, sizeof v);
    f->n_environment = 1;
    return f->memory_entries && f->environment ? OT_OK : ot_fail_nomem(d);
}

static ot_status fill(ot_facts *f, const ot_memory_results *r, ot_diag *d)
{
    f->model = ot_strdup(f->arena, r->file);
    f->target = ot_strdup(f->arena, r->target ? r->target : "");
    f->goal = "memory";
    ot_scope_plan *scopes = ot_memdup(f->arena, r->plans, r->n_plans * sizeof *r->plans);
    f->scopes = scopes;
    f->n_scopes = r->n_plans;
    const char **warnings = OT_NEW_N(f->arena, const char *, r->n_warnings + 1u);
    f->maps = OT_NEW_N(f->arena, ot_fact_map, r->n_plots + 1u);
    if (!f->model || !f->target || !f->scopes || !warnings || !f->maps) return ot_fail_nomem(d);
    for (uint32_t k = 0; k < r->n_warnings; k++)
        if (!(warnings[k] = ot_strdup(f->arena, r->warnings[k]))) return ot_fail_nomem(d);
    for (uint32_t k = 0; k < f->n_scopes; k++)
        if (scopes[k].reuse && !(scopes[k].reuse = ot_strdup(f->arena, scopes[k].reuse)))
            return ot_fail_nomem(d);
    f->warnings = warnings;
    f->n_warnings = r->n_warnings;
    for (; f->n_maps < r->n_plots; f->n_maps++)
        OT_TRY(copy_map(f, &r->plots[f->n_maps], &r->plans[f->n_maps], &f->maps[f->n_maps], d));
    f->passes = OT_NEW_N(f->arena, ot_fact_pass, r->n_passes + 1u);
    if (!f->passes) return ot_fail_nomem(d);
    for (; f->n_passes < r->n_passes; f->n_passes++) {
        ot_fact_pass *to = &f->passes[f->n_passes];
        OT_TRY(copy_pass(f, r, &r->passes[f->n_passes], f->n_passes ? to - 1 : NULL, to, d));
    }
    OT_TRY(add_cards(f, r, d));
    return add_totals(f, r, d);
}

ot_status ot_facts_from_memory(const ot_memory_results *r, ot_diag *d, ot_facts **out)
{
    ot_facts *f;
    *out = NULL;
    OT_TRY(ot_facts_new(OT_FACTS_MEMORY, d, &f));
    ot_status st = fill(f, r, d);
    if (st == OT_OK)
        *out = f;
    else
        ot_facts_free(f);
    return st;
}
