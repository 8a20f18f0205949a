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
