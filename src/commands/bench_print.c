/* What bench found, as a table and as JSON.
 *
 *                      original        tiled
 *   time least          4.10 ms      2.31 ms   x0.56
 *   ...
 */
#include "bench_print.h"

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
    row(f, "peak planned", (double)o->figures.planned_peak, (double)t->figures.planned_peak,
        ot_format_bytes);
    row(f, "peak counted", (double)o->figures.peak, (double)t->figures.peak, ot_format_bytes);
    row(f, "weights", (double)o->figures.weight_bytes, (double)t->figures.weight_bytes,
        ot_format_bytes);
    row(f, "operands fast", o->bytes.fast, t->bytes.fast, ot_format_bytes);
    if (o->bytes.mid + t->bytes.mid > 0)
        row(f, "operands mid", o->bytes.mid, t->bytes.mid, ot_format_bytes);
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
    fputs("\nregion     original: predicted   measured    tiled: predicted   measured   error\n",
          f);
    for (uint32_t k = 0; k < b->n_regions; k++) {
        const ot_bench_region *r = &b->regions[k];
        for (int j = 0; j < 2; j++) {
            ot_format_seconds(r->predicted[j], c[2 * j], CELL);
            ot_format_seconds(r->measured[j], c[2 * j + 1], CELL);
        }
        fprintf(f, "r%-6u %23s %10s %19s %10s", r->id, c[0], r->measured[0] > 0 ? c[1] : "-", c[2],
                r->measured[1] > 0 ? c[3] : "-");
        if (r->measured[1] > 0 && !b->elsewhere)
            fprintf(f, "   %+.0f %%", (r->predicted[1] / r->measured[1] - 1) * 100);
        fputc('\n', f);
    }
    if (b->region_error >= 0)
        fprintf(f, "median error of the tiled regions: %.0f %%\n", b->region_error * 100);
}

static void print_outputs(const ot_bench_facts *b, FILE *f)
{
    fputc('\n', f);
    for (uint32_t k = 0; k < b->n_outputs; k++) {
        const ot_difference *x = &b->outputs[k].difference;
        fprintf(
            f,
            "output %-10.60s %s: NMSE %.1e, largest difference %.1e (%.1e of the largest value)\n",
            b->outputs[k].name, x->same ? "same" : x->why, x->nmse, x->max_abs, x->max_rel);
    }
}

void ot_bench_print(const ot_bench_facts *b, const ot_bench_place at[2], FILE *f)
{
    const ot_bench_side *o = &b->side[0], *t = &b->side[1];
    fprintf(f, "%s%s%s: %u runs each in turn, %u thread%s\n\n", b->model,
            b->tiled ? " and " : ", tiled here", b->tiled ? b->tiled : "", b->runs, b->threads,
            b->threads == 1 ? "" : "s");
    fprintf(f, "%-16s %12s %12s\n", "", o->name, t->name);
    row(f, "time least", o->time.min, t->time.min, ot_format_seconds);
    row(f, "time median", o->time.p50, t->time.p50, ot_format_seconds);
    row(f, "time p90", o->time.p90, t->time.p90, ot_format_seconds);
    row(f, "time p99", o->time.p99, t->time.p99, ot_format_seconds);
    if (o->predicted > 0) row(f, "time predicted", o->predicted, t->predicted, ot_format_seconds);
    print_memory(b, f);
    print_regions(b, f);
    print_outputs(b, f);
    for (int k = 0; k < 2 && at[k].on->dev; k++) {
        fprintf(f, "\n%s\n", b->side[k].name);
        ot_model_device_print(at[k].on, at[k].session, "", f);
    }
}

/* ---- JSON: names and units of docs/json.md; ms_* are older names of the same times ---- */

/* A time of 0 was not measured, or not predicted. */
static void put_time(ot_json *j, const char *seconds_key, const char *ms_key, double seconds)
{
    ot_json_put_number(j, ms_key, seconds > 0 ? seconds * 1e3 : NAN);
    ot_json_put_number(j, seconds_key, seconds > 0 ? seconds : NAN);
}

static void put_side(ot_json *j, const ot_bench_facts *b, const ot_bench_side *s,
                     const ot_bench_place *at)
{
    ot_json_open(j, s->name);
    put_time(j, "least_seconds", "ms_min", s->time.min);
    put_time(j, "median_seconds", "ms_p50", s->time.p50);
    put_time(j, "p90_seconds", "ms_p90", s->time.p90);
    put_time(j, "p99_seconds", "ms_p99", s->time.p99);
    put_time(j, "predicted_seconds", "ms_predicted", s->predicted);
    ot_json_put_int(j, "peak_bytes", s->figures.peak);
    ot_json_put_int(j, "planned_peak_bytes", s->figures.planned_peak);
    ot_json_put_int(j, "weight_bytes", s->figures.weight_bytes);
    ot_json_put_int(j, "mispredicted", s->figures.n_mispredicted);
    ot_json_open(j, "operand_bytes");
    ot_json_put_figure(j, "fast", s->bytes.fast);
    ot_json_put_figure(j, "mid", s->bytes.mid);
    ot_json_put_figure(j, "slow", s->bytes.slow);
    ot_json_put_int(j, "unsized", s->bytes.n_unsized);
    ot_json_close(j);
    if (b->counted) {
        ot_json_open(j, "cache");
        ot_json_put_figure(j, "references", s->references);
        ot_json_put_figure(j, "misses", s->misses);
        ot_json_close(j);
    } else {
        ot_json_put_null(j, "cache");
    }
    if (at->on->dev) ot_model_device_json(at->on, at->session, j);
    ot_json_close(j);
}

static void put_regions(ot_json *j, const ot_bench_facts *b)
{
    ot_json_list(j, "regions");
    for (uint32_t k = 0; k < b->n_regions; k++) {
        const ot_bench_region *r = &b->regions[k];
        ot_json_open(j, NULL);
        put_time(j, "untiled_seconds", "ms_untiled_predicted", r->predicted[0]);
        put_time(j, "measured_untiled_seconds", "ms_untiled", r->measured[0]);
        put_time(j, "tiled_seconds", "ms_tiled_predicted", r->predicted[1]);
        put_time(j, "measured_seconds", "ms_tiled", r->measured[1]);
        ot_json_put_int(j, "id", r->id);
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_put_number(j, "region_error", b->region_error >= 0 ? b->region_error : NAN);
}

static void put_outputs(ot_json *j, const ot_bench_facts *b)
{
    ot_json_list(j, "outputs");
    for (uint32_t k = 0; k < b->n_outputs; k++) {
        const ot_difference *x = &b->outputs[k].difference;
        ot_json_open(j, NULL);
        ot_json_put_text(j, "name", b->outputs[k].name);
        ot_json_put_truth(j, "same", x->same);
        ot_json_put_number(j, "nmse", x->nmse);
        ot_json_put_number(j, "max_abs", x->max_abs);
        ot_json_put_number(j, "max_rel", x->max_rel);
        ot_json_close(j);
    }
    ot_json_close(j);
    ot_json_put_truth(j, "same", b->same);
}

void ot_bench_json(const ot_bench_facts *b, const ot_bench_place at[2], FILE *f)
{
    ot_json j = {.f = f};
    ot_json_open(&j, NULL);
    ot_json_put_text(&j, "model", b->model);
    ot_json_put_text(&j, "tiled_model", b->tiled);
    ot_json_put_text(&j, "target", b->target);
    ot_json_put_truth(&j, "other_machine", b->elsewhere);
    ot_json_put_int(&j, "threads", b->threads);
    ot_json_put_int(&j, "runs", b->runs);
    ot_json_put_int(&j, "resident_bytes", b->resident);
    for (int k = 0; k < 2; k++) put_side(&j, b, &b->side[k], &at[k]);
    ot_json_put_number(&j, "time_ratio",
                       b->side[0].time.min > 0 ? b->side[1].time.min / b->side[0].time.min : 0);
    put_regions(&j, b);
    put_outputs(&j, b);
    ot_json_close(&j);
}
