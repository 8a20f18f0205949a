/* Where memory goes, for a person and for programs.
 *
 *   unet.onnx for onnxruntime on host
 *
 *   Whole process, from before it loads onnxruntime to the last run: 850 MiB; tiled 207 MiB, ...
 *
 *   Untiled, the process grows by 770 MiB: 352 MiB of tensors that live at one time, and what
 *   onnxruntime keeps beside them.
 *   Most live at step 61 of 67, Concat n_concat_3:
 *
 *     tensor      shape             size   share  from             needed until       tiled
 *     concat_3    1x32x1024x1024  128 MiB   36 %  this step        Conv n_conv_16     in tiles only
 *
 *   Tiled ...
 *   In the way ...
 *   onnx-tile unet.onnx -o unet-tiled.onnx --goal memory
 */
#include "facts.h"
#include "facts_number.h"
#include "facts_range.h"

#include "base/json.h"

#define NAME_WIDTH 26
#define ROWS       12
#define WIDTH      108

static const ot_fact_entry *entry(const ot_facts *f, const char *id)
{
    for (uint32_t k = 0; k < f->n_peak; k++)
        if (strcmp(f->peak[k].id, id) == 0) return &f->peak[k];
    return NULL;
}

static double figure(const ot_facts *f, const char *id)
{
    const ot_fact_entry *e = entry(f, id);
    return e ? e->number : OT_ABSENT;
}

static const char *node_text(const ot_facts *f, uint32_t node, char *out)
{
    char op[24], name[NAME_WIDTH + 4];
    if (node == OT_NONE) return strcpy(out, "-");
    sprintf(out, "%s %s", ot_fact_short(f->nodes[node].op, 20, op),
            ot_fact_short(f->nodes[node].name, NAME_WIDTH, name));
    return out;
}

/* ---- in words ---- */

/* "the process grows by", "a session holds" */
static const char *grower(const ot_facts *f)
{
    return f->totals.growth_title ? f->totals.holder : "the process";
}

static const char *grows_by(const ot_facts *f)
{
    return f->totals.growth_title ? "holds" : "grows by";
}

/* What is known of what grows is told in parts that add up, where there are two. */
static bool is_whole(double process, double live) { return process > live && live >= 0; }

/* The figure that tables and reports begin with. */
static void print_process(const ot_facts *f, FILE *out)
{
    char a[32], b[32], runtime[32];
    const int64_t before = f->totals.untiled.process_bytes, after = f->totals.tiled.process_bytes;
    if (!f->totals.predicts_process || before <= 0 || *f->unknown_sizes) return;
    fprintf(out, "  Whole process, from before it loads %s to the last run: %s",
            ot_fact_short(f->runtime, 28, runtime), ot_format_bytes((double)before, a, sizeof a));
    if (f->command && after > 0)
        fprintf(out, "; tiled %s, x%.2f", ot_format_bytes((double)after, b, sizeof b),
                (double)after / (double)before);
    fputs(" (predicted).\n\n", out);
}

static void print_untiled(const ot_facts *f, FILE *out)
{
    char a[32], b[32], c[32], node[128], runtime[32];
    double process = figure(f, "growth-bytes"), live = figure(f, "peak-bytes");
    const ot_fact_entry *n = entry(f, "peak-node");
    ot_format_bytes(live, b, sizeof b);
    ot_fact_short(f->runtime, 28, runtime);
    if (process > 0 && is_whole(process, live))
        fprintf(out,
                "  Untiled, %s %s %s: %s of tensors that live at one time, and %s\n  that %s keeps "
                "beside them.",
                grower(f), grows_by(f), ot_format_bytes(process, a, sizeof a), b,
                ot_format_bytes(process - live, c, sizeof c), runtime);
    else if (process > 0)
        fprintf(out, "  Untiled, %s %s %s; %s of tensors live at one time.\n ", grower(f),
                grows_by(f), ot_format_bytes(process, a, sizeof a), b);
    else
        fprintf(out, "  Untiled, %s of tensors live at one time.", b);
    fprintf(out, " Most live at step %.0f of %.0f, %s:\n", figure(f, "peak-step"),
            figure(f, "steps"), n && n->text ? ot_fact_short(n->text, 64, node) : "?");
}

/* Columns of the table, wide and for a terminal's lines. */
typedef struct alive_columns {
    int name, shape, until;
    bool share;
} alive_columns;

static void print_alive(const ot_facts *f, size_t columns, FILE *out)
{
    const bool wide = columns == 0 || columns > WIDTH;
    const alive_columns w = wide ? (alive_columns){NAME_WIDTH, 18, 30, true}
                                 : (alive_columns){18, 14, 18, false};
    char name[NAME_WIDTH + 4], shape[40], size[32], share[16], until[64], cut[64];
    fprintf(out, "\n    %-*s  %-*s %9s %s%-*s %s\n", w.name, "tensor", w.shape, "shape", "size",
            w.share ? " share  " : " ", w.until, "needed until", "when tiled");
    for (uint32_t k = 0; k < f->n_alive && k < ROWS; k++) {
        const ot_fact_alive *a = &f->alive[k];
        if (a->reader == OT_NONE)
            strcpy(until, wide ? "the end: it is an output" : "the end: output");
        else
            node_text(f, a->reader, until);
        ot_fact_short(until, (size_t)w.until, cut);
        snprintf(share, sizeof share, "%4.0f %%  ", 100 * a->share);
        fprintf(out, "    %-*s  %-*s %9s %s%-*s %s\n", w.name,
                ot_fact_short(a->value, (size_t)w.name, name), w.shape,
                ot_fact_short(a->shape, (size_t)w.shape, shape),
                a->bytes > 0 ? ot_format_bytes(a->bytes, size, sizeof size) : "in place",
                w.share ? share : " ", w.until, cut,
                a->in_tiles ? "in tiles only"
                : *a->shape ? "whole"
                            : "");
    }
    if (f->n_alive > ROWS) fprintf(out, "    and %u more\n", f->n_alive - ROWS);
}

static void print_tiled(const ot_facts *f, FILE *out)
{
    char a[32], b[32], runtime[32];
    double before = figure(f, "growth-bytes"), after = figure(f, "tiled-growth-bytes");
    double live = figure(f, "peak-bytes"), tiled = figure(f, "tiled-peak-bytes");
    double time = figure(f, "time-seconds"), tiled_time = figure(f, "tiled-time-seconds");
    if (!f->command) {
        fprintf(out, "\n  Tiling would not help: nothing was found that makes it smaller%s.\n",
                strcmp(f->goal, "time") == 0 ? ", or faster" : " within the time that it may take");
        return;
    }
    if (f->n_regions == 0)
        fprintf(out,
                "\n  Not tiled, but written as a branch, in which %s keeps no second block of "
                "memory for tensors",
                ot_fact_short(f->runtime, 28, runtime));
    else
        fprintf(out, "\n  Tiled (%u region%s)", f->n_regions, f->n_regions == 1 ? "" : "s");
    const bool grows = before > 0 && after > 0, whole = grows && is_whole(after, tiled);
    if (grows)
        fprintf(out, ",\n  %s %s %s, x%.2f%s", grower(f), grows_by(f),
                ot_format_bytes(after, a, sizeof a), after / before, whole ? ":" : ";");
    else
        fprintf(out, ",");
    fprintf(out, " %s of tensors%s, x%.2f", ot_format_bytes(tiled, b, sizeof b),
            grows && !whole ? " live" : "", live > 0 ? tiled / live : 1.0);
    if (whole) fprintf(out, ", and %s beside them", ot_format_bytes(after - tiled, a, sizeof a));
    fprintf(out, "; time x%.2f.\n", time > 0 ? tiled_time / time : 1.0);
    const ot_fact_entry *at = entry(f, "tiled-peak-at");
    char where[200];
    if (at && at->text && *at->text)
        fprintf(out, "  Most live then %s.\n", ot_fact_short(at->text, 110, where));
}

/* Words in lines of at most `width` columns, all but the first indented by `indent`, which the
 * first has already. */
static void print_wrapped(const char *text, size_t indent, size_t width, FILE *out)
{
    size_t column = indent;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column > indent && column + 1 + n > width) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)n, text);
        column += n;
        text += n + strspn(text + n, " ");
    }
    fputc('\n', out);
}

/* One after the other; those with one reason share it. */
static void print_obstacles(const ot_facts *f, size_t columns, FILE *out)
{
    const size_t width = columns > 0 && columns < WIDTH ? columns : WIDTH;
    char name[NAME_WIDTH + 4], size[32], node[128];
    if (f->n_obstacles == 0) return;
    fprintf(out, "\n  In the way of less, still whole%s:\n", f->command ? " there" : "");
    for (uint32_t k = 0; k < f->n_obstacles; k++) {
        const ot_fact_obstacle *o = &f->obstacles[k], *next = k + 1 < f->n_obstacles ? o + 1 : NULL;
        fprintf(out, "    %-*s %9s  %s\n", NAME_WIDTH, ot_fact_short(o->value, NAME_WIDTH, name),
                ot_format_bytes(o->bytes, size, sizeof size), node_text(f, o->node, node));
        if (next && strcmp(next->reason, o->reason) == 0 && strcmp(next->lift, o->lift) == 0)
            continue;
        fputs("      ", out);
        print_wrapped(o->reason, 6, width, out);
        if (!*o->lift) continue;
        fputs("      in the model, this would lift it: ", out);
        print_wrapped(o->lift, 40, width, out);
    }
}

/* Options that were tried and help. */
static void print_cures(const ot_facts *f, FILE *out)
{
    char bytes[32];
    const double time = figure(f, "time-seconds");
    if (f->n_cures == 0) return;
    fprintf(out, "\n  What would help, tried on this model:\n");
    for (uint32_t k = 0; k < f->n_cures; k++) {
        const ot_fact_cure *c = &f->cures[k];
        fputs("    ", out);
        ot_put_shown(c->options, out);
        if (c->growth > 0)
            fprintf(out, ": %s %s %s", grower(f), grows_by(f),
                    ot_format_bytes(c->growth, bytes, sizeof bytes));
        else
            fprintf(out, ": %s of tensors live", ot_format_bytes(c->peak, bytes, sizeof bytes));
        if (time > 0) fprintf(out, "; time x%.2f", c->time / time);
        fputc('\n', out);
    }
}

static void print_unknown(const ot_facts *f, FILE *out)
{
    bool any = false;
    char name[160];
    for (uint32_t k = 0; k < f->n_peak; k++) {
        if (strcmp(f->peak[k].id, "unknown-input") != 0) continue;
        fprintf(out, "%s  --shape %s\n",
                any ? ""
                    : "  Sizes of inputs are not known, and nothing of what follows from them. "
                      "Give them numbers:\n",
                ot_fact_short(f->peak[k].text, 150, name));
        any = true;
    }
    if (any) fputc('\n', out);
}

ot_status ot_explain_print(const ot_facts *f, size_t columns, FILE *out)
{
    char name[84], runtime[32], target[44], which[304];
    fprintf(out, "%s for %s on %s\n\n", ot_fact_short(*f->model ? f->model : "model", 80, name),
            ot_fact_short(f->runtime, 28, runtime), ot_fact_short(f->target, 40, target));
    print_unknown(f, out);
    if (*f->unknown_sizes && !entry(f, "unknown-input"))
        fprintf(out, "  %s: left out of the figures.\n\n",
                ot_fact_short(f->unknown_sizes, 300, which));
    if (f->design_guessed) {
        fputs("  No size is given: this is for ", out);
        ot_put_shown(f->design, out);
        fputs(". Yours: --design INPUT=D,D,... or --shape.\n\n", out);
    }
    if (f->n_alive == 0) {
        fprintf(out, "  No tensor of a known size is made: there is nothing to tell.\n");
        return ferror(out) ? OT_E_SYSTEM : OT_OK;
    }
    print_process(f, out);
    print_untiled(f, out);
    print_alive(f, columns, out);
    print_tiled(f, out);
    print_obstacles(f, columns, out);
    print_cures(f, out);
    if (f->command) {
        fputs("\n  ", out);
        ot_put_shown(f->command, out);
        fputc('\n', out);
    }
    return ferror(out) ? OT_E_SYSTEM : OT_OK;
}

/* ---- for programs ---- */

static void put_node(ot_json *j, const char *key, const ot_facts *f, uint32_t node)
{
    if (node != OT_NONE) ot_json_put_text(j, key, f->nodes[node].name);
}

static void put_lists(ot_json *j, const ot_facts *f)
{
    ot_json_list(j, "alive");
    for (uint32_t k = 0; k < f->n_alive; k++) {
        const ot_fact_alive *a = &f->alive[k];
        ot_json_open(j, NULL);
        ot_json_put_text(j, "value", a->value);
        ot_json_put_text(j, "shape", a->shape);
        ot_json_put_figure(j, "bytes", a->bytes);
        ot_json_put_figure(j, "share", a->share);
        put_node(j, "maker", f, a->maker);
        put_node(j, "reader", f, a->reader);
        ot_json_put_truth(j, "in_tiles", a->in_tiles);
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_list(j, "obstacles");
    for (uint32_t k = 0; k < f->n_obstacles; k++) {
        const ot_fact_obstacle *o = &f->obstacles[k];
        ot_json_open(j, NULL);
        ot_json_put_text(j, "value", o->value);
        ot_json_put_figure(j, "bytes", o->bytes);
        put_node(j, "node", f, o->node);
        if (*o->reason_id) ot_json_put_text(j, "reason_id", o->reason_id);
        ot_json_put_text(j, "reason", o->reason);
        if (*o->lift) ot_json_put_text(j, "lift", o->lift);
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_list(j, "cures");
    for (uint32_t k = 0; k < f->n_cures; k++) {
        const ot_fact_cure *c = &f->cures[k];
        ot_json_open(j, NULL);
        ot_json_put_text(j, "options", c->options);
        if (c->growth >= 0) ot_json_put_figure(j, "growth_bytes", c->growth);
        ot_json_put_figure(j, "peak_bytes", c->peak);
        ot_json_put_figure(j, "time_seconds", c->time);
        ot_json_close(j);
    }
    ot_json_close(j);
}

ot_status ot_explain_json(const ot_facts *f, FILE *out)
{
    ot_json j = {.f = out};
    ot_json_open(&j, NULL);
    ot_json_put_text(&j, "model", f->model);
    ot_json_open(&j, "target");
    ot_json_put_text(&j, "name", f->target);
    ot_json_put_int(&j, "fast_bytes", f->fast_bytes);
    ot_json_close(&j);
    ot_json_put_text(&j, "runtime", f->runtime);
    ot_design_put(f, &j);
    if (*f->unknown_sizes) ot_json_put_text(&j, "unknown_sizes", f->unknown_sizes);
    ot_json_list(&j, "peak");
    for (uint32_t k = 0; k < f->n_peak; k++) {
        const ot_fact_entry *e = &f->peak[k];
        ot_json_open(&j, NULL);
        ot_json_put_text(&j, "id", e->id);
        if (e->number >= 0)
            ot_json_put_figure(&j, "number", e->number);
        else
            ot_json_put_text(&j, "text", e->text ? e->text : "");
        if (*e->unit) ot_json_put_text(&j, "unit", e->unit);
        ot_json_close(&j);
    }
    ot_json_close(&j);
    put_lists(&j, f);
    if (f->peak_region != OT_NONE)
        ot_json_put_int(&j, "peak_region", f->regions[f->peak_region].id);
    ot_json_put_text(&j, "command", f->command);
    ot_json_close(&j);
    return ferror(out) ? OT_E_SYSTEM : OT_OK;
}
