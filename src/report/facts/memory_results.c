/* What plan-memory found, as a table for a person and as JSON for a program. Keys are a promise:
 * see docs/onnx-tile.1.
 *
 *   conv.tk (kernel conv on ascend-a2): 12 buffers, planned in 1.2 ms
 *
 *     scope  buffers  height  lower bound    gap  proved  capacity  mode   level  rollbacks  ...
 *     ub           9   12288        12288  0.0 %  yes       196608  reuse      2          0
 */
#include "memory_results.h"
#include "facts_number.h"
#include "facts_table.h"

#include <math.h>

#define COLUMNS 13
#define CELL    32

/* How far above the lower bound, in percent. */
static double gap_of(const ot_scope_plan *p)
{
    if (p->height <= p->lower_bound) return 0;
    return p->lower_bound > 0
               ? 100.0 * ((double)p->height - (double)p->lower_bound) / (double)p->lower_bound
               : INFINITY;
}

static bool any_timed_out(const ot_memory_results *r)
{
    for (uint32_t k = 0; k < r->n_plans; k++)
        if (r->plans[k].timed_out) return true;
    return false;
}

/* ---- table ---- */

static void print_head(const ot_memory_results *r, FILE *f)
{
    char file[84], kernel[84], took[32];
    ot_fact_short(r->file, 80, file);
    fputs(file, f);
    if (r->kernel) {
        ot_fact_short(r->kernel, 80, kernel);
        fprintf(f, " (kernel %s on %s)", kernel, r->target);
    }
    fprintf(f, ": %u buffer%s, planned in %s\n", r->n_buffers, r->n_buffers == 1 ? "" : "s",
            ot_format_seconds(r->seconds, took, sizeof took));
}

static const char *const TITLES[COLUMNS] = {
    "scope", "buffers", "height",    "lower bound", "gap",     "proved",    "capacity",
    "mode",  "level",   "rollbacks", "restarts",    "doubled", "cross-pipe"};

static void fill_row(const ot_scope_plan *p, char c[COLUMNS][CELL])
{
    double gap = gap_of(p);
    snprintf(c[0], CELL, "%s", ot_scope_name(p->scope));
    snprintf(c[1], CELL, "%u", p->n_buffers);
    snprintf(c[2], CELL, "%lld", (long long)p->height);
    snprintf(c[3], CELL, "%lld", (long long)p->lower_bound);
    if (isfinite(gap))
        snprintf(c[4], CELL, "%.2f %%", gap);
    else
        snprintf(c[4], CELL, "-");
    snprintf(c[5], CELL, "%s", p->proved ? "yes" : "no");
    if (p->capacity > 0)
        snprintf(c[6], CELL, "%lld", (long long)p->capacity);
    else
        snprintf(c[6], CELL, "-");
    snprintf(c[7], CELL, "%s", ot_mem_mode_name(p->mode));
    if (p->level == OT_LEVEL_NONE)
        snprintf(c[8], CELL, "-");
    else
        snprintf(c[8], CELL, "%d", (int)p->level);
    snprintf(c[9], CELL, "%u", p->rollbacks);
    snprintf(c[10], CELL, "%u", p->restarts);
    snprintf(c[11], CELL, "%u", p->n_upgraded);
    snprintf(c[12], CELL, "%u", p->n_cross_pipe);
}

typedef struct shown {
    size_t first, end;
} shown;

/* Columns that mean something: a table (.csv) has no scope and nothing of pipes. The last ones,
 * which --json has, leave where the terminal is too narrow. */
static shown shown_columns(const ot_memory_results *r, const size_t *width, size_t columns)
{
    shown s = r->kernel ? (shown){0, COLUMNS} : (shown){1, 8};
    size_t takes = 0;
    for (size_t k = s.first; k < s.end; k++) takes += 2 + width[k];
    while (columns > 0 && takes > columns && s.end > 4) takes -= 2 + width[--s.end];
    return s;
}

static void print_row(shown s, char c[COLUMNS][CELL], const size_t *width, FILE *f)
{
    const char *gap = "";
    fputs("  ", f);
    for (size_t k = s.first; k < s.end; k++) {
        bool left = k == 0 || k == 5 || k == 7, last = k + 1 == s.end;
        if (left)
            fprintf(f, "%s%-*s", gap, last ? 0 : (int)width[k], c[k]);
        else
            fprintf(f, "%s%*s", gap, (int)width[k], c[k]);
        gap = "  ";
    }
    fputc('\n', f);
}

static ot_status print_plans(const ot_memory_results *r, size_t columns, FILE *f)
{
    size_t width[COLUMNS] = {0};
    char(*rows)[COLUMNS][CELL] = calloc((size_t)r->n_plans + 1, sizeof *rows);

    if (!rows) return OT_E_NOMEM;
    for (size_t k = 0; k < COLUMNS; k++) snprintf(rows[0][k], CELL, "%s", TITLES[k]);
    for (uint32_t i = 0; i < r->n_plans; i++) fill_row(&r->plans[i], rows[i + 1]);
    for (uint32_t i = 0; i <= r->n_plans; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            if (strlen(rows[i][k]) > width[k]) width[k] = strlen(rows[i][k]);
    const shown s = shown_columns(r, width, columns);
    fputc('\n', f);
    for (uint32_t i = 0; i <= r->n_plans; i++) print_row(s, rows[i], width, f);
    free(rows);
    return OT_OK;
}

/* line 12: transpose reads 'a' in 32768 wavefronts where 1024 would do (bank-conflict): 4063232
 * bytes, 122 ns; padding: ... */
static void print_access(const ot_kaccess_finding *x, FILE *f)
{
    char text[404], took[32];
    ot_fact_short(x->name, 60, text);
    fprintf(
        f,
        "  access: line %u: '%s' is %s in %s%lld %s where %lld would do (%s): %lld bytes more, %s",
        x->line, text, x->write ? "written" : "read", x->is_part ? "about " : "",
        (long long)x->taken, ot_kaccess_unit_name(x->kind), (long long)x->least,
        ot_kaccess_kind_name(x->kind), (long long)((x->taken - x->least) * x->unit),
        ot_format_seconds(x->seconds, took, sizeof took));
    if (x->advice) {
        ot_fact_short(x->advice, 400, text);
        fprintf(f, "; %s", text);
    }
    fputc('\n', f);
}

static void print_accesses(const ot_memory_results *r, FILE *f)
{
    const ot_kaccess_report *a = &r->accesses;
    for (uint32_t k = 0; k < a->n_findings; k++) print_access(&a->findings[k], f);
    fprintf(f, "  accesses: %u looked at, %u not known, %u take more than they have to\n",
            a->n_walks, a->n_skipped, a->n_findings);
}

static void print_prices(const ot_memory_results *r, FILE *f)
{
    for (uint32_t k = 0; k < r->n_plans; k++)
        if (r->plans[k].reuse) fprintf(f, "\n  reuse %s\n", r->plans[k].reuse);
}

ot_status ot_memory_results_print(const ot_memory_results *r, size_t columns, FILE *f)
{
    for (uint32_t k = 0; k < r->n_functions; k++) {
        if (k > 0) fputc('\n', f);
        OT_TRY(ot_memory_results_print(&r->functions[k], columns, f));
    }
    if (r->n_functions > 0) return ferror(f) ? OT_E_SYSTEM : OT_OK;
    print_head(r, f);
    if (r->n_plans > 0) OT_TRY(print_plans(r, columns, f));
    print_prices(r, f);
    if (r->kernel || r->steps > 0 || any_timed_out(r)) fputc('\n', f);
    if (r->kernel)
        fprintf(f, "  %u in-place merge%s, %u cop%s\n", r->n_in_place,
                r->n_in_place == 1 ? "" : "s", r->n_copies, r->n_copies == 1 ? "y" : "ies");
    if (r->steps > 0) fprintf(f, "  %lld search steps\n", (long long)r->steps);
    if (any_timed_out(r)) fputs("  time limit hit: another run may find another plan\n", f);
    for (uint32_t k = 0; k < r->n_notes; k++) {
        char text[800];
        ot_fact_short(r->notes[k], 400, text);
        fprintf(f, "  chosen: %s\n", text);
    }
    if (r->analysed) print_accesses(r, f);
    if (r->measured) ot_memory_footprint_print(r, f);
    for (uint32_t k = 0; k < r->n_warnings; k++) {
        char text[404];
        ot_fact_short(r->warnings[k], 400, text);
        fprintf(f, "  warning: %s\n", text);
    }
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}

/* ---- JSON ---- */

static void put_plan(const ot_memory_results *r, const ot_scope_plan *p, ot_json *j)
{
    const ot_facts facts = {.target = r->kernel ? r->target : NULL};
    fact_json to = ot_facts_json_sink(j, true);
    ot_json_open(j, NULL);
    ot_facts_put_struct(&facts, &FACTS_SCOPE, p, &to.base);
    ot_json_put_number(j, "gap_percent", gap_of(p));
    if (p->priced) {
        ot_json_put_int(j, "reuse_cost", p->reuse_cost);
        ot_json_put_int(j, "reuse_cost_bound", p->reuse_cost_bound);
        ot_json_put_truth(j, "reuse_cost_proved", p->reuse_cost_proved);
    }
    ot_json_close(j);
}

static void put_buffer(const ot_memory_results *r, const ot_memory_buffer *b, ot_json *j)
{
    ot_json_open(j, NULL);
    ot_json_list(j, "names");
    for (uint32_t k = 0; k < b->n_names; k++) ot_json_put_text(j, NULL, b->names[k]);
    ot_json_close(j);
    ot_json_put_text(j, "scope", r->kernel ? ot_scope_name(b->scope) : NULL);
    ot_json_put_int(j, "size_bytes", b->size);
    ot_json_list(j, "offsets_bytes");
    for (uint32_t k = 0; k < b->n_slots; k++) ot_json_put_int(j, NULL, b->offsets[k]);
    ot_json_close(j);
    ot_json_list(j, "live");
    for (uint32_t k = 0; k < b->n_live; k++) {
        ot_json_open(j, NULL);
        ot_json_put_int(j, "lower", b->live[k].lower);
        ot_json_put_int(j, "upper", b->live[k].upper);
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_close(j);
}

static void put_access(const ot_kaccess_finding *x, ot_json *j)
{
    ot_json_open(j, NULL);
    ot_json_put_text(j, "kind", ot_kaccess_kind_name(x->kind));
    ot_json_put_int(j, "line", x->line);
    ot_json_put_int(j, "column", x->col);
    ot_json_put_text(j, "value", x->name);
    ot_json_put_truth(j, "write", x->write);
    ot_json_put_text(j, "unit", ot_kaccess_unit_name(x->kind));
    ot_json_put_int(j, "unit_bytes", x->unit);
    ot_json_put_int(j, "taken", x->taken);
    ot_json_put_int(j, "least", x->least);
    if (x->kind == OT_KACCESS_GRANULES) ot_json_put_int(j, "misaligned", x->off);
    ot_json_put_truth(j, "scaled", x->is_part);
    ot_json_put_figure(j, "excess_seconds", x->seconds);
    ot_json_put_text(j, "advice", x->advice);
    ot_json_close(j);
}

static void put_results(const ot_memory_results *r, ot_json *j)
{
    ot_json_open(j, NULL);
    ot_json_put_text(j, "file", r->file);
    ot_json_put_text(j, "kernel", r->kernel);
    ot_json_put_text(j, "target", r->target);
    ot_json_put_text(j, "mode", ot_mem_mode_name(r->asked));
    ot_json_put_int(j, "buffers", r->n_buffers);
    ot_json_list(j, "scopes");
    for (uint32_t k = 0; k < r->n_plans; k++) put_plan(r, &r->plans[k], j);
    ot_json_close(j);
    ot_json_list(j, "placed");
    for (uint32_t k = 0; k < r->n_list; k++) put_buffer(r, &r->list[k], j);
    ot_json_close(j);
    ot_json_put_int(j, "in_place", r->n_in_place);
    ot_json_put_int(j, "copies", r->n_copies);
    ot_json_put_int(j, "search_steps", r->steps);
    ot_json_list(j, "chosen");
    for (uint32_t k = 0; k < r->n_notes; k++) ot_json_put_text(j, NULL, r->notes[k]);
    ot_json_close(j);
    if (r->analysed) {
        ot_json_list(j, "accesses");
        for (uint32_t k = 0; k < r->accesses.n_findings; k++)
            put_access(&r->accesses.findings[k], j);
        ot_json_close(j);
    }
    if (r->measured) ot_memory_footprint_json(r, j);
    ot_json_list(j, "warnings");
    for (uint32_t k = 0; k < r->n_warnings; k++) ot_json_put_text(j, NULL, r->warnings[k]);
    ot_json_close(j);
    ot_json_put_figure(j, "time_seconds", r->seconds);
    ot_json_close(j);
}

ot_status ot_memory_results_json(const ot_memory_results *r, FILE *f)
{
    ot_json j = {.f = f};
    if (r->n_functions == 0) {
        put_results(r, &j);
        return ferror(f) ? OT_E_SYSTEM : OT_OK;
    }
    ot_json_open(&j, NULL);
    ot_json_put_text(&j, "file", r->file);
    ot_json_put_text(&j, "mode", ot_mem_mode_name(r->asked));
    ot_json_list(&j, "functions");
    for (uint32_t k = 0; k < r->n_functions; k++) put_results(&r->functions[k], &j);
    ot_json_close(&j);
    ot_json_close(&j);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}

void ot_memory_results_free(ot_memory_results *r)
{
    if (r) ot_arena_free(r->arena);
}
