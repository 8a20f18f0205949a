/* What bench found, as a table and as JSON.
 *
 *                      original        tiled
 *   time least          4.10 ms      2.31 ms   x0.56
 *   ...
 */
#include "bench_print.h"

#include "report/facts/facts_number.h"
#include "report/facts/facts_table.h"

#define CELL 32

typedef char *(*format_fn)(double v, char *buf, size_t n);

/* ---- table ---- */

#define TELLING 100 /* times more than next to nothing tells nothing */

/* One line: both figures, and what the second is of the first. */
static void row(FILE *f, const char *what, double original, double tiled, format_fn format)
{
    char a[CELL], b[CELL];
    fprintf(f, "%-16s %12s %12s", what, format(original, a, sizeof a), format(tiled, b, sizeof b));
    if (original > 0 && tiled <= TELLING * original) fprintf(f, "   x%.2f", tiled / original);
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
        char name[64];
        fprintf(f,
                "output %-10s %s: NMSE %.1e, largest difference %.1e (%.1e of the largest value)\n",
                ot_fact_short(b->outputs[k].name, 60, name), x->same ? "same" : x->why, x->nmse,
                x->max_abs, x->max_rel);
    }
}

void ot_bench_print(const ot_bench_facts *b, const ot_bench_side_device at[2], FILE *f)
{
    const ot_bench_side *o = &b->side[0], *t = &b->side[1];
    char left[32], right[32];
    ot_put_shown(b->model, f);
    fputs(b->tiled ? " and " : ", tiled here", f);
    if (b->tiled) ot_put_shown(b->tiled, f);
    fprintf(f, ": %u runs each in turn, %u thread%s\n\n", b->runs, b->threads,
            b->threads == 1 ? "" : "s");
    fprintf(f, "%-16s %12s %12s\n", "", ot_fact_short(o->name, 28, left),
            ot_fact_short(t->name, 28, right));
    row(f, "time least", o->time.min, t->time.min, ot_format_seconds);
    row(f, "time median", o->time.p50, t->time.p50, ot_format_seconds);
    row(f, "time p90", o->time.p90, t->time.p90, ot_format_seconds);
    row(f, "time p99", o->time.p99, t->time.p99, ot_format_seconds);
    if (o->predicted > 0) row(f, "time predicted", o->predicted, t->predicted, ot_format_seconds);
    print_memory(b, f);
    print_regions(b, f);
    print_outputs(b, f);
    for (int k = 0; k < 2 && at[k].on->dev; k++) {
        fputc('\n', f);
        ot_put_shown(b->side[k].name, f);
        fputc('\n', f);
        ot_model_device_print(at[k].on, at[k].session, "", f);
    }
}

/* ---- JSON ---- */

static void put_side(const ot_bench_side *s, const ot_bench_side_device *at, fact_json *to)
{
    ot_json_open(to->json, s->name);
    ot_facts_put_struct(NULL, &FACTS_BENCH_SIDE, s, &to->base);
    if (at->on->dev) ot_model_device_json(at->on, at->session, to->json);
    ot_json_close(to->json);
}

void ot_bench_json(const ot_bench_facts *b, const ot_bench_side_device at[2], FILE *f)
{
    ot_json j = {.f = f};
    fact_json to = ot_facts_json_sink(&j, true);
    ot_json_open(&j, NULL);
    ot_facts_put_fields(NULL, &FACTS_BENCH_HEAD, b, &to.base);
    for (int k = 0; k < 2; k++) put_side(&b->side[k], &at[k], &to);
    if (b->side[0].time.min > 0)
        ot_json_put_number(&j, "time_ratio", b->side[1].time.min / b->side[0].time.min);
    ot_json_list(&j, "regions");
    for (uint32_t k = 0; k < b->n_regions; k++) {
        ot_json_open(&j, NULL);
        ot_facts_put_struct(NULL, &FACTS_BENCH_REGION, &b->regions[k], &to.base);
        ot_json_close(&j);
    }
    ot_json_close(&j);
    ot_json_list(&j, "outputs");
    for (uint32_t k = 0; k < b->n_outputs; k++) {
        ot_json_open(&j, NULL);
        ot_facts_put_struct(NULL, &FACTS_BENCH_OUTPUT, &b->outputs[k], &to.base);
        ot_json_close(&j);
    }
    ot_json_close(&j);
    ot_json_close(&j);
}
