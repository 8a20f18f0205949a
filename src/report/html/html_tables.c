/* Target, environment and arena figures as lists of names and values; for plan-memory the scopes
 * and the warnings.
 *
 *   Target                    Environment            Activations in one memory
 *   cores            8        onnx-tile   0.1.0      planned        9.19 MiB
 *   slow memory  100 GB/s     threads     2          greedy by size ...
 */
#include "html.h"

static void put_entries(html *h, const char *title, const ot_fact_entry *entries, uint32_t n)
{
    if (!n) return;
    html_open_class(h, "div", "panel");
    html_leaf(h, "h3", NULL, title);
    html_open_class(h, "dl", "facts");
    for (uint32_t k = 0; k < n; k++) {
        const ot_fact_entry *e = &entries[k];
        html_leaf(h, "dt", NULL, e->title);
        html_open(h, "dd");
        if (e->number >= 0)
            html_number(h, e->number, e->unit);
        else
            html_text(h, e->text && *e->text ? e->text : "-");
        html_close(h);
    }
    html_close(h);
    html_close(h);
}

/* ---- scopes of plan-memory ---- */

static const char *level_text(const ot_scope_plan *s)
{
    switch (s->level) {
    case OT_LEVEL_NONE: return "nothing shared";
    case OT_LEVEL_3: return "within one pipe";
    case OT_LEVEL_2: return "within one pipe in each loop";
    case OT_LEVEL_1: return "with double buffers";
    case OT_LEVEL_0: return "any that never meet";
    }
    return "-";
}

static void put_scope(html *h, const ot_scope_plan *s, bool kernel)
{
    html_open(h, "tr");
    html_open(h, "th");
    html_attr(h, "scope", "row");
    html_text(h, kernel ? ot_scope_name(s->scope) : "memory");
    html_close(h);
    html_cell(h, s->n_buffers, "count");
    html_cell(h, (double)s->height, "bytes");
    html_cell(h, (double)s->lower_bound, "bytes");
    html_cell(h, s->capacity > 0 ? (double)s->capacity : OT_ABSENT, "bytes");
    html_cell(h, (double)s->sum, "bytes");
    html_open(h, "td");
    html_leaf(h, "span", s->proved ? "tag yes" : "tag",
              s->proved      ? "least possible"
              : s->timed_out ? "time ran out"
                             : "not proved");
    if (s->reuse && s->reuse[0]) {
        html_text(h, " reuse ");
        html_text(h, s->reuse);
    }
    html_close(h);
    html_leaf(h, "td", NULL, ot_mem_mode_name(s->mode));
    if (kernel) {
        html_leaf(h, "td", NULL, level_text(s));
        html_cell(h, s->n_upgraded, "count");
        html_cell(h, s->n_cross_pipe, "count");
        html_cell(h, s->rollbacks, "count");
        html_cell(h, s->restarts, "count");
    }
    html_close(h);
}

static void put_scopes(html *h)
{
    static const char *const kernel_heads[] = {"Memory",
                                               "#Buffers",
                                               "#Used",
                                               "#Lower bound",
                                               "#Capacity",
                                               "#Without reuse",
                                               "Proof",
                                               "Planned by",
                                               "Memory is shared",
                                               "#Made double",
                                               "#Across pipes",
                                               "#Rollbacks",
                                               "#Restarts",
                                               NULL};
    static const char *const table_heads[] = {"Memory",       "#Buffers",   "#Used",
                                              "#Lower bound", "#Capacity",  "#Without reuse",
                                              "Proof",        "Planned by", NULL};
    const ot_facts *f = h->f;
    if (!f->n_scopes) return;
    bool kernel = f->target && *f->target;
    html_scroll(h, "panel scroll", "Table of memories");
    html_open_class(h, "table", "sortable");
    html_attr(h, "id", "scope-table");
    html_heads(h, kernel ? kernel_heads : table_heads);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < f->n_scopes; k++) put_scope(h, &f->scopes[k], kernel);
    html_close(h);
    html_close(h);
    html_close(h);
}

static void put_warnings(html *h)
{
    const ot_facts *f = h->f;
    if (!f->n_warnings) return;
    html_open_class(h, "div", "panel");
    html_leaf(h, "h3", NULL, "Warnings");
    html_open_class(h, "ul", "warnings");
    for (uint32_t k = 0; k < f->n_warnings; k++) html_leaf(h, "li", "name", f->warnings[k]);
    html_close(h);
    html_close(h);
}

void html_target(html *h)
{
    const ot_facts *f = h->f;
    if (!f->n_target_entries && !f->n_environment && !f->n_memory_entries && !f->n_scopes &&
        !f->n_warnings)
        return;
    html_section(h, "target", f->n_scopes ? "Plan" : "Target and environment", NULL);
    put_scopes(h);
    put_warnings(h);
    html_open_class(h, "div", "columns entries");
    put_entries(h, "Target", f->target_entries, f->n_target_entries);
    put_entries(h, f->kind == OT_FACTS_MEMORY ? "Totals" : "Untiled activations in one memory",
                f->memory_entries, f->n_memory_entries);
    put_entries(h, "Environment", f->environment, f->n_environment);
    put_entries(h, "Over the range of sizes", f->range_entries, f->n_range_entries);
    html_close(h);
    html_close(h);
}
