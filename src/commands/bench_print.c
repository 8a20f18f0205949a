/* What bench found, as a table and as JSON.
 *
 *                      original        tiled
 *   time least          4.10 ms      2.31 ms   x0.56
 *   ...
 */
#include "report/facts/bench_facts.h"

#include "base/json.h"

#include <math.h>

#define CELL 32

typedef char *(*format_fn)(double v, char *buf, size_t n);

/* ---- table ---- */

/* One line: both figures, and what the second is of the first. */
static void row(FILE *f, const char *what, double original, double tiled, format_fn format)
{
    char a[CELL], b[CELL];
    fprintf(f, "%-16s %12s %12s", what, format(original, a, sizeof a), format(tiled, b, sizeof b));
    if (original > 0) fprintf(f, "   x%.2f", tiled / original);
    fputc('\n', f);
}

static char *format_count(double v, char *buf, size_t n)
{
    snprintf(buf, n, v >= 1e6 ? "%.1f M" : "%.0f", v >= 1e6 ? v / 1e6 : v);
    return buf;
}

static void print_memory(const ot_bench_facts *b, FILE *f)
{
    const ot_bench_side *o = &b->side[0], *t = &b->side[1];
    row(f, "peak planned", (double)o->figures.planned_peak, (double)t->figures.planned_peak, ot_format_bytes);
    row(f, "peak counted", (double)o->figures.peak, (double)t->figures.peak, ot_format_bytes);
    row(f, "weights", (double)o->figures.weight_bytes, (double)t->figures.weight_bytes, ot_format_bytes);
    row(f, "operands fast", o->bytes.fast, t->bytes.fast, ot_format_bytes);
    if (o->bytes.mid + t->bytes.mid > 0) row(f, "operands mid", o->bytes.mid, t->bytes.mid, ot_format_bytes);
    row(f, "operands slow", o->bytes.slow, t->bytes.slow, ot_format_bytes);
    if (!b->counted) {
        fputs("cache counters   not permitted\n", f);
        return;
    }
    row(f, "cache accesses", o->references, t->references, format_count);
    row(f, "cache misses", o->misses, t->misses, format_count);
}

static void print_regions(const ot_bench_facts *b, FILE *f)
{
    char c[4][CELL];
    if (!b->n_regions) return;
    fputs("\nregion     original: predicted   measured    tiled: predicted   measured   error\n", f);
    for (uint32_t k = 0; k < b->n_regions; k++) {
        const ot_bench_region *r = &b->regions[k];
        for (int j = 0; j < 2; j++) {
            ot_format_seconds(r->predicted[j], c[2 * j], CELL);
            ot_format_seconds(r->measured[j], c[2 * j + 1], CELL);
        }
        fprintf(f, "r%-6u %23s %10s %19s %10s", r->id, c[0], r->measured[0] > 0 ? c[1] : "-", c[2],
                r->measured[1] > 0 ? c[3] : "-");
        if (r->measured[1] > 0 && !b->elsewhere) fprintf(f, "   %+.0f %%", (r->predicted[1] / r->measured[1] - 1) * 100);
        fputc('\n', f);
    }
    if (b->region_error >= 0) fprintf(f, "median error of the tiled regions: %.0f %%\n", b->region_error * 100);
}

static void print_outputs(const ot_bench_facts *b, FILE *f)
{
    fputc('\n', f);
    for (uint32_t k = 0; k < b->n_outputs; k++) {
        const ot_difference *x = &b->outputs[k].difference;
        fprintf(f, "output %-10.60s %s: NMSE %.1e, largest difference %.1e (%.1e of the largest value)\n", b->outputs[k].name,
                x->same ? "same" : x->why, x->nmse, x->max_abs, x->max_rel);
    }
}

void ot_bench_print(const ot_bench_facts *b, FILE *f)
{
    const ot_bench_side *o = &b->side[0], *t = &b->side[1];
    fprintf(f, "%s%s%s: %u runs each in turn, %u thread%s\n\n", b->model, b->tiled ? " and " : ", tiled here",
            b->tiled ? b->tiled : "", b->runs, b->threads, b->threads == 1 ? "" : "s");
    fprintf(f, "%-16s %12s %12s\n", "", o->name, t->name);
    row(f, "time least", o->time.min, t->time.min, ot_format_seconds);
    row(f, "time median", o->time.p50, t->time.p50, ot_format_seconds);
    row(f, "time p90", o->time.p90, t->time.p90, ot_format_seconds);
    row(f, "time p99", o->time.p99, t->time.p99, ot_format_seconds);
    if (o->predicted > 0) row(f, "time predicted", o->predicted, t->predicted, ot_format_seconds);
    print_memory(b, f);
    print_regions(b, f);
    print_outputs(b, f);
}

/* ---- JSON ---- */

static void number(const char *key, double v, FILE *f)
{
    fprintf(f, "\"%s\": ", key);
    if (isfinite(v))
        ot_json_number(v, f);
    else
        fputs("null", f);
}

/* A time of 0 was not measured, or not predicted. */
static void ms(const char *key, double seconds, FILE *f)
{
    if (seconds > 0)
        number(key, seconds * 1e3, f);
    else
        fprintf(f, "\"%s\": null", key);
    fputs(", ", f);
}

static void json_side(const ot_bench_facts *b, const ot_bench_side *s, FILE *f)
{
    fprintf(f, "\"%s\": {", s->name);
    ms("ms_min", s->time.min, f);
    ms("ms_p50", s->time.p50, f);
    ms("ms_p90", s->time.p90, f);
    ms("ms_p99", s->time.p99, f);
    ms("ms_predicted", s->predicted, f);
    fprintf(f, "\"peak_bytes\": %lld, \"planned_peak_bytes\": %lld, \"weight_bytes\": %lld, \"mispredicted\": %u,\n  ",
            (long long)s->figures.peak, (long long)s->figures.planned_peak, (long long)s->figures.weight_bytes,
            s->figures.n_mispredicted);
    fprintf(f, "\"operand_bytes\": {\"fast\": %.0f, \"mid\": %.0f, \"slow\": %.0f, \"unsized\": %u}, \"cache\": ", s->bytes.fast,
            s->bytes.mid, s->bytes.slow, s->bytes.n_unsized);
    if (b->counted)
        fprintf(f, "{\"references\": %.0f, \"misses\": %.0f}},\n", s->references, s->misses);
    else
        fputs("null},\n", f);
}

static void json_regions(const ot_bench_facts *b, FILE *f)
{
    fputs("\"regions\": [", f);
    for (uint32_t k = 0; k < b->n_regions; k++) {
        const ot_bench_region *r = &b->regions[k];
        fprintf(f, "%s\n  {", k ? "," : "");
        ms("ms_untiled_predicted", r->predicted[0], f);
        ms("ms_untiled", r->measured[0], f);
        ms("ms_tiled_predicted", r->predicted[1], f);
        ms("ms_tiled", r->measured[1], f);
        fprintf(f, "\"id\": %u}", r->id);
    }
    fputs("], \"region_error\": ", f);
    if (b->region_error >= 0)
        ot_json_number(b->region_error, f);
    else
        fputs("null", f);
    fputs(",\n", f);
}

static void json_outputs(const ot_bench_facts *b, FILE *f)
{
    fputs("\"outputs\": [", f);
    for (uint32_t k = 0; k < b->n_outputs; k++) {
        const ot_difference *x = &b->outputs[k].difference;
        fprintf(f, "%s\n  {\"name\": ", k ? "," : "");
        ot_json_string(b->outputs[k].name, f);
        fprintf(f, ", \"same\": %s, ", x->same ? "true" : "false");
        number("nmse", x->nmse, f);
        fputs(", ", f);
        number("max_abs", x->max_abs, f);
        fputs(", ", f);
        number("max_rel", x->max_rel, f);
        fputs("}", f);
    }
    fprintf(f, "], \"same\": %s}\n", b->same ? "true" : "false");
}

void ot_bench_json(const ot_bench_facts *b, FILE *f)
{
    fputs("{\"model\": ", f);
    ot_json_string(b->model, f);
    fputs(", \"tiled_model\": ", f);
    if (b->tiled)
        ot_json_string(b->tiled, f);
    else
        fputs("null", f);
    fputs(", \"target\": ", f);
    ot_json_string(b->target, f);
    fprintf(f, ", \"other_machine\": %s, \"threads\": %u, \"runs\": %u, \"resident_bytes\": %lld,\n",
            b->elsewhere ? "true" : "false", b->threads, b->runs, (long long)b->resident);
    json_side(b, &b->side[0], f);
    json_side(b, &b->side[1], f);
    number("time_ratio", b->side[0].time.min > 0 ? b->side[1].time.min / b->side[0].time.min : 0, f);
    fputs(",\n", f);
    json_regions(b, f);
    json_outputs(b, f);
}
