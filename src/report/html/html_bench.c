/* What bench measured: both models side by side, and whether their outputs are the same.
 *
 *                      original      tiled
 *   time, least         4.00 ms    3.15 ms
 *   ...
 *   output  same  NMSE  largest difference
 */
#include "html.h"

static void put_pair(html *h, const char *title, double original, double tiled, const char *unit)
{
    if (original < 0 && tiled < 0) return;
    html_open(h, "tr");
    html_open(h, "th");
    html_attr(h, "scope", "row");
    html_text(h, title);
    html_close(h);
    html_cell(h, original, unit);
    html_cell(h, tiled, unit);
    html_close(h);
}

/* A figure that is 0 when nobody made it. */
static double made(double x) { return x > 0 ? x : OT_ABSENT; }

static void put_times(html *h, const ot_bench_side *o, const ot_bench_side *t)
{
    put_pair(h, "Time, least", o->time.min, t->time.min, "seconds");
    put_pair(h, "Time, median", o->time.p50, t->time.p50, "seconds");
    put_pair(h, "Time, nine of ten runs below", o->time.p90, t->time.p90, "seconds");
    put_pair(h, "Time, all but one of a hundred runs below", o->time.p99, t->time.p99, "seconds");
    put_pair(h, "Time, predicted", made(o->predicted), made(t->predicted), "seconds");
}

static void put_memory(html *h, const ot_bench_facts *b, const ot_bench_side *o,
                       const ot_bench_side *t)
{
    put_pair(h, "Peak, planned", (double)o->figures.planned_peak, (double)t->figures.planned_peak,
             "bytes");
    put_pair(h, "Peak, counted", (double)o->figures.peak, (double)t->figures.peak, "bytes");
    put_pair(h, "Weights", (double)o->figures.weight_bytes, (double)t->figures.weight_bytes,
             "bytes");
    put_pair(h, "Operands that fit fast memory", o->bytes.fast, t->bytes.fast, "bytes");
    put_pair(h, "Operands that fit the middle one", o->bytes.mid, t->bytes.mid, "bytes");
    put_pair(h, "Operands from slow memory", o->bytes.slow, t->bytes.slow, "bytes");
    if (!b->counted) return;
    put_pair(h, "Last cache, accesses", o->references, t->references, "count");
    put_pair(h, "Last cache, misses", o->misses, t->misses, "count");
}

static void put_sides(html *h, const ot_bench_facts *b)
{
    const ot_bench_side *o = &b->side[0], *t = &b->side[1];
    static const char *const heads[] = {"", "#Original", "#Tiled", NULL};
    html_open(h, "div");
    html_open_class(h, "div", "panel scroll");
    html_open_class(h, "table", "small");
    html_attr(h, "id", "bench-table");
    html_heads(h, heads);
    html_open(h, "tbody");
    put_times(h, o, t);
    put_memory(h, b, o, t);
    put_pair(h, "Nodes that run", o->figures.n_nodes, t->figures.n_nodes, "count");
    put_pair(h, "Nodes computed beforehand", o->figures.n_folded, t->figures.n_folded, "count");
    html_close(h);
    html_close(h);
    html_close(h);
    if (!b->counted)
        html_leaf(h, "p", "quiet note",
                  "The system does not let the processor's cache counters be read.");
    html_close(h);
}

static void put_output(html *h, const ot_bench_output *o)
{
    const ot_difference *x = &o->difference;
    html_open(h, "tr");
    html_leaf(h, "td", "name mono", o->name);
    html_open(h, "td");
    html_leaf(h, "span", x->same ? "tag yes" : "tag no", x->same ? "same" : "differs");
    if (!x->same && x->why) html_textf(h, " %s", x->why);
    if (x->own_noise) html_text(h, " within its own rounding");
    html_close(h);
    html_cell(h, x->nmse, "tiny");
    html_cell(h, x->max_abs, "tiny");
    html_cell(h, x->max_rel, "tiny");
    html_close(h);
}

static void put_outputs(html *h, const ot_bench_facts *b)
{
    static const char *const heads[] = {
        "Output", "Is it the same?", "#NMSE", "#Largest difference", "#Of the largest value", NULL};
    if (!b->n_outputs) return;
    html_open(h, "div");
    html_open_class(h, "div", "panel scroll");
    html_attr(h, "tabindex", "0");
    html_open_class(h, "table", "small sortable");
    html_heads(h, heads);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < b->n_outputs; k++) put_output(h, &b->outputs[k]);
    html_close(h);
    html_close(h);
    html_close(h);
    html_close(h);
}

static void put_elsewhere(html *h, const ot_bench_facts *b)
{
    html_open_class(h, "p", "note");
    html_text(h, "Target ");
    html_leaf(h, "span", "mono", b->target);
    html_text(h, " is not the machine that measured: predictions and levels of memory are the "
                 "target's, times the machine's.");
    html_close(h);
}

void html_bench(html *h)
{
    const ot_bench_facts *b = h->f->bench;
    if (!b) return;
    html_section(h, "bench", "Measured", NULL);
    html_open_class(h, "p", "lead");
    html_count(h, b->runs);
    html_text(h, " runs of each model in turn on ");
    html_count(h, b->threads);
    html_text(h, b->threads == 1 ? " thread" : " threads");
    if (b->resident > 0) {
        html_text(h, "; at most ");
        html_bytes(h, (double)b->resident);
        html_text(h, " of the process in memory");
    }
    if (b->region_error >= 0) {
        html_text(h, "; predictions of the tiled regions are off by ");
        html_percent(h, b->region_error);
        html_text(h, " in the median");
    }
    html_text(h, ". ");
    html_leaf(h, "span", b->same ? "tag yes" : "tag no",
              b->same ? "outputs are the same" : "outputs differ");
    html_close(h);
    if (b->elsewhere) put_elsewhere(h, b);
    html_open_class(h, "div", "columns");
    put_sides(h, b);
    put_outputs(h, b);
    html_close(h);
    html_close(h);
}
