/* What bench measured, added to the facts of its plan.
 *
 * Headline cards become the measured ones where there is a measurement (time, peak; on devices
 * their memory), the predicted bytes and MACs stay; regions and nodes get their times.
 */
#include "facts_build.h"

static double error_of(double predicted, double measured)
{
    double e = predicted - measured;
    return measured > 0 ? (e < 0 ? -e : e) / measured : OT_ABSENT;
}

/* Where it is, in the arena from now on; false: no memory. */
static bool keep_text(ot_facts *f, const char **text)
{
    return (*text = ot_strdup(f->arena, *text)) != NULL;
}

static bool copy_device(ot_facts *f, ot_bench_device *x)
{
    ot_bench_transfer *t = ot_memdup(f->arena, x->transfers, x->n_transfers * sizeof *t);
    ot_bench_shader *kernels = ot_memdup(f->arena, x->kernels, x->n_kernels * sizeof *kernels);
    ot_bench_fallback *b = ot_memdup(f->arena, x->fallbacks, x->n_fallbacks * sizeof *b);
    bool ok = keep_text(f, &x->side) && keep_text(f, &x->api) && keep_text(f, &x->name) &&
              (t || !x->n_transfers) && (kernels || !x->n_kernels) && (b || !x->n_fallbacks);
    for (uint32_t k = 0; ok && k < x->n_transfers; k++) ok = keep_text(f, &t[k].direction);
    for (uint32_t k = 0; ok && k < x->n_kernels; k++) ok = keep_text(f, &kernels[k].name);
    for (uint32_t k = 0; ok && k < x->n_fallbacks; k++)
        ok = keep_text(f, &b[k].op) && keep_text(f, &b[k].node) && keep_text(f, &b[k].why);
    x->transfers = t;
    x->kernels = kernels;
    x->fallbacks = b;
    return ok;
}

static ot_status copy_devices(ot_facts *f, ot_bench_facts *to, ot_diag *d)
{
    if (to->n_devices == 0) return OT_OK;
    ot_bench_device *devices = ot_memdup(f->arena, to->devices, to->n_devices * sizeof *devices);
    if (!devices) return ot_fail_nomem(d);
    for (uint32_t k = 0; k < to->n_devices; k++)
        if (!copy_device(f, &devices[k])) return ot_fail_nomem(d);
    to->devices = devices;
    return OT_OK;
}

static ot_status copy_bench(ot_facts *f, const ot_bench_facts *b, ot_diag *d)
{
    ot_bench_facts *to = ot_memdup(f->arena, b, sizeof *b);
    if (!to) return ot_fail_nomem(d);
    to->model = ot_strdup(f->arena, b->model);
    to->tiled = b->tiled ? ot_strdup(f->arena, b->tiled) : NULL;
    to->target = ot_strdup(f->arena, b->target);
    to->times = NULL;
    to->n_times = 0;
    to->regions = ot_memdup(f->arena, b->regions, b->n_regions * sizeof *b->regions);
    to->outputs = ot_memdup(f->arena, b->outputs, b->n_outputs * sizeof *b->outputs);
    bool ok = to->model && (!b->tiled || to->tiled) && to->target &&
              (to->regions || b->n_regions == 0) && (to->outputs || b->n_outputs == 0);
    for (uint32_t k = 0; ok && k < b->n_outputs; k++)
        ok = (to->outputs[k].name = ot_strdup(f->arena, b->outputs[k].name)) != NULL;
    if (!ok) return ot_fail_nomem(d);
    f->bench = to;
    return copy_devices(f, to, d);
}

static ot_fact_card measured_card(const char *id, const char *title, const char *unit,
                                  double before, double after, double bound, const char *note)
{
    /* the machine is faster than its description */
    if (bound > before || bound > after) bound = OT_ABSENT;
    return (ot_fact_card){
        id,   title, unit, before, after, bound, before > 0 ? after / before : OT_ABSENT,
        note, false};
}

/* Measured time and peak take the place of the predicted ones; what is not measured follows. */
static ot_status measure_cards(ot_facts *f, const ot_bench_facts *b, ot_diag *d)
{
    ot_fact_card *cards = OT_NEW_N(f->arena, ot_fact_card, f->n_cards + 2u);
    const ot_bench_side *o = &b->side[0], *t = &b->side[1];
    uint32_t n = 0;
    double least = OT_ABSENT;
    if (!cards) return ot_fail_nomem(d);
    for (uint32_t k = 0; k < f->n_cards && !b->elsewhere; k++)
        if (strcmp(f->cards[k].id, "time") == 0) least = f->cards[k].bound;
    cards[n++] = measured_card("time", "Time", "seconds", o->time.p50, t->time.p50, least,
                               least >= 0 && least <= o->time.p50 && least <= t->time.p50
                                   ? "Measured in the engine, median of the runs; the limit is "
                                     "predicted from the target's rates."
                                   : "Measured in the engine, median of the runs.");
    if (b->n_devices == 2)
        cards[n++] = measured_card(
            "device-memory", "Device memory", "bytes", (double)b->devices[0].peak,
            (double)b->devices[1].peak, OT_ABSENT,
            "Most that buffers of the device took: weights and activations.");
    else
        cards[n++] = measured_card("peak-memory", "Peak memory", "bytes", (double)o->figures.peak,
                                   (double)t->figures.peak, OT_ABSENT,
                                   "Counted by the engine: its arena and what it took besides.");
    for (uint32_t k = 0; k < f->n_cards; k++)
        if (strcmp(f->cards[k].id, "time") != 0 && strcmp(f->cards[k].id, "peak-memory") != 0)
            cards[n++] = f->cards[k];
    f->cards = cards;
    f->n_cards = n;
    return OT_OK;
}

static void measure_regions(ot_facts *f, const ot_bench_facts *b)
{
    for (uint32_t k = 0; k < b->n_regions; k++)
        for (uint32_t j = 0; j < f->n_regions; j++) {
            if (f->regions[j].id != b->regions[k].id) continue;
            ot_fact_region *r = &f->regions[j];
            if (b->regions[k].measured[0] > 0) r->measured_untiled = b->regions[k].measured[0];
            if (b->regions[k].measured[1] > 0) r->measured = b->regions[k].measured[1];
            if (!b->elsewhere) r->error = error_of(r->time_tiled, r->measured);
        }
    f->region_error = b->region_error;
}

/* Steps carry the name of their first node: what is fused into it has no time of its own. */
static ot_status measure_nodes(ot_facts *f, const ot_bench_facts *b, ot_diag *d)
{
    ot_map *index = ot_map_new(f->arena);
    if (!index) return ot_fail_nomem(d);
    for (uint32_t k = 0; k < f->n_nodes; k++)
        if (ot_map_get(index, f->nodes[k].name) == OT_NONE &&
            !ot_map_put(index, f->nodes[k].name, k))
            return ot_fail_nomem(d);
    for (uint32_t k = 0; k < b->n_times; k++) {
        uint32_t node = *b->times[k].name ? ot_map_get(index, b->times[k].name) : OT_NONE;
        if (node != OT_NONE && b->times[k].seconds > 0)
            f->nodes[node].measured = b->times[k].seconds;
    }
    return OT_OK;
}

/* bench's own rows after those of the plan. */
static ot_status measure_environment(ot_facts *f, const ot_bench_facts *b, ot_diag *d)
{
    const ot_fact_entry more[] = {
        {"threads", "Threads", "", b->threads, "count"},
        {"runs", "Runs of each model", "", b->runs, "count"},
        {"resident", "Most memory of the process", "",
         b->resident > 0 ? (double)b->resident : OT_ABSENT, "bytes"},
    };
    uint32_t n = sizeof more / sizeof *more;
    ot_fact_entry *e = OT_NEW_N(f->arena, ot_fact_entry, f->n_environment + n + 1u);
    if (!e) return ot_fail_nomem(d);
    if (f->n_environment > 0) memcpy(e, f->environment, f->n_environment * sizeof *e);
    for (uint32_t k = 0; k < n; k++)
        if (more[k].number >= 0) e[f->n_environment++] = more[k];
    f->environment = e;
    return OT_OK;
}

ot_status ot_facts_add_bench(ot_facts *f, const ot_bench_facts *b, ot_diag *d)
{
    f->measured = true;
    OT_TRY(copy_bench(f, b, d));
    OT_TRY(measure_cards(f, b, d));
    OT_TRY(measure_environment(f, b, d));
    measure_regions(f, b);
    return measure_nodes(f, b, d);
}
