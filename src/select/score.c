/* What sets of regions, and ways to write them, compete by.
 *
 *      process        loading  loaded          run 1  run 2  ...
 *      (bytes)          /\                    ____---------------   growth: over what is loaded
 *                      /  \__________________/
 *                _____/
 *
 * A machine must hold the whole process at its highest, while it loads the model or runs it. The
 * score is what the process grows by, and what it takes beside that more than it must: than the
 * untiled model's, or the same with its weights in a file of their own.
 *
 *      untiled        loaded 40, growth 100                       process 140   score 100
 *      tiles          loaded 60, growth  20                       process  80   score  35
 *      tiles          loaded 60, growth  20, 130 while loading    process 130   score  72
 *
 * SHARE of the score is growth alone: where the process is at its highest while it loads, tensors
 * would be left as they are otherwise, and models that run side by side load one after another.
 */
#include "candidates.h"

#define SHARE       4    /* one part in so many */
#define LARGE_GRAPH 4000 /* nodes that run: to write and simulate its tiles takes long */
/* at least: a loop, what cuts its input, what joins its results; and where a sequence gathers them
 * it, one more of it, the condition and the place in the input */
#define LOOP_NODES      3
#define GATHERING_NODES 6
/* of growth: saved beside it, that much counts by SHARE, more of it ever less */
#define FULLY         1
#define ABOUT         1.02 /* predictions differ by that much from one another at least */
#define GROWTH_ABOUT  1.01 /* growth that is taken to be the same, where the process holds less */
#define PROCESS_SAVES 0.95 /* of the process, where growth is more, and no more than that saves */

void ot_process_figures(const ot_sim_figures *f, ot_figures *out)
{
    out->growth_bytes = f->growth;
    out->loaded_bytes = f->loaded;
    out->loading_bytes = f->loading;
    out->process_bytes = ot_process_bytes(f);
}

static int64_t beside_growth(const ot_sim_figures *f) { return ot_process_bytes(f) - f->growth; }

static int64_t score_of(const ot_sim_figures *f, int64_t beside)
{
    const int64_t more = beside_growth(f) - beside;
    const double growth = (double)f->growth, fully = FULLY * growth, counts = 1 - 1.0 / SHARE;
    if ((double)-more <= fully) return f->growth + more - more / SHARE;
    return (int64_t)((growth - counts * fully) * fully / (double)-more); /* above 0 */
}

int64_t ot_outcome_process(const ot_outcome *of)
{
    return of->takes.growth > 0 ? ot_process_bytes(&of->takes) : 0;
}

ot_score_base ot_score_base_of(const ot_sim_figures *untiled, const ot_sim_figures *written)
{
    const int64_t beside = ot_min(beside_growth(untiled), beside_growth(written));
    return (ot_score_base){.process = ot_process_bytes(untiled),
                           .beside = beside,
                           .untiled = score_of(untiled, beside)};
}

void ot_score_base_share(const ot_candidates *plain, ot_candidates *edited)
{
    if (!plain->has_base) return;
    edited->base = plain->base;
    edited->has_base = true;
    if (!plain->looked_small) return;
    edited->small_base = plain->small_base;
    edited->looked_small = true;
}

int64_t ot_score_bytes(const ot_sim_figures *f, const ot_score_base *base)
{
    if (f->growth == INT64_MAX) return INT64_MAX;
    const int64_t score = score_of(f, base->beside), more = ot_process_bytes(f) - base->process;
    /* a loss, whatever it grows by */
    if ((double)more > (ABOUT - 1) * (double)base->process)
        return ot_max(score, base->untiled) + more;
    return score;
}

/* Nodes beside those that were there, at least: tiles that are written out have their own. */
static double added_nodes(const ot_region *r)
{
    double tiles = 1;
    if (ot_form_gathers(r->form)) return GATHERING_NODES;
    if (r->form != OT_FORM_UNROLLED) return LOOP_NODES;
    for (uint32_t d = 0; d < r->n_dims; d++) tiles *= (double)r->dims[d].n_tiles;
    return (tiles - 1) * r->n_nodes;
}

bool ot_score_loads_more(const ot_candidates *x, const ot_region *regions, uint32_t n)
{
    const double each = (double)ot_loaded_node_bytes(x->t->runtime);
    const double most = (double)x->untiled.growth +
                        (ABOUT - 1) * (double)ot_process_bytes(&x->untiled);
    double nodes = 0;
    if (x->g->n_order <= LARGE_GRAPH || x->o.max_tensor || x->o.force) return false;
    for (uint32_t k = 0; k < n; k++) nodes += added_nodes(&regions[k]);
    return nodes * each > most;
}

bool ot_score_holds_less(const ot_sim_figures *kept, const ot_sim_figures *to,
                         const ot_score_base *base)
{
    const int64_t process = ot_process_bytes(to), saved = ot_process_bytes(kept) - process;
    if (ot_score_bytes(to, base) >= ot_score_bytes(kept, base)) return false;
    if ((double)to->growth <= GROWTH_ABOUT * (double)kept->growth) return true;
    return (double)process < PROCESS_SAVES * (double)(process + saved) &&
           saved >= to->growth - kept->growth;
}

#define SURELY  64 /* bytes by which scores may differ that are computed in float64 */
#define NO_MORE (INT64_C(1) << 50)

/* The least growth that scores more. */
static int64_t growth_above(const ot_sim_figures *loaded, const void *of)
{
    const ot_score_limit *l = of;
    int64_t low = 0, high = NO_MORE;
    if (l->most >= NO_MORE) return INT64_MAX;
    while (low < high) {
        const int64_t half = low + (high - low) / 2;
        ot_sim_figures f = *loaded;
        ot_sim_grown(&f, half);
        if (ot_score_bytes(&f, l->base) > l->most + SURELY)
            high = half;
        else
            low = half + 1;
    }
    return low;
}

ot_sim_stop ot_score_stop(const ot_score_limit *l)
{
    return (ot_sim_stop){.most = growth_above, .of = l};
}
