/* Why a tiling won or lost: sentences that a person can act on (of barriers and refusals:
 * ops/reasons.def).
 *
 * A candidate is told by its largest difference to the chosen one: time first, and then what
 * costs the time (recomputed halos, bytes moved, tiles), or what it holds.
 */
#include "facts_build.h"

/* Differences below this are none: predictions are no finer. */
#define ABOUT 0.01

/* ---- candidates ---- */

static double share(double a, double b) { return b > 0 ? a / b - 1 : 0; }

static double tiles_of(const ot_candidate *c)
{
    double n = 1;
    for (uint32_t d = 0; d < c->n_dims; d++) n *= c->tiles[d];
    return n;
}

/* What costs a slower candidate its time. */
static const char *cause(ot_arena *a, const ot_candidate *c, const ot_candidate *best)
{
    double halo = share(c->mac_ratio, best->mac_ratio), bytes = share(c->traffic, best->traffic),
           tiles = share(tiles_of(c), tiles_of(best));
    if (halo > ABOUT && halo >= bytes)
        return ot_format(a, "halos recompute %.0f %% more", 100 * halo);
    if (bytes > ABOUT) return ot_format(a, "it moves %.0f %% more bytes", 100 * bytes);
    if (!c->fits && best->fits) return "its tiles fall out of the fast memory";
    if (tiles > ABOUT)
        return ot_format(a, "%.0f tiles in place of %.0f cost overhead", tiles_of(c),
                         tiles_of(best));
    if (c->n_dims > best->n_dims) return "rows cut short are copied in smaller pieces";
    return "its transfers overlap less with its compute";
}

static const char *loss(ot_arena *a, const ot_candidate *c, const ot_candidate *best,
                        const fact_source *x)
{
    double slower = share(c->time, best->time), peak = share((double)c->peak, (double)best->peak);
    char need[32], have[32];
    if (!c->fits && best->fits && ot_target_hard_limit(x->t))
        return ot_format(a, "does not fit: %s of %s",
                         ot_format_bytes((double)c->working_set, need, sizeof need),
                         ot_format_bytes((double)x->t->fast_bytes, have, sizeof have));
    if (x->o->goal == OT_GOAL_MEMORY && peak > ABOUT)
        return ot_format(a, "its peak is %.0f %% higher%s", 100 * peak,
                         slower > ABOUT ? ", and it is slower" : "");
    if (slower > ABOUT) {
        const char *why = cause(a, c, best);
        return why ? ot_format(a, "predicted %.0f %% slower: %s", 100 * slower, why) : NULL;
    }
    if (peak > ABOUT) return ot_format(a, "as fast, but its peak is %.0f %% higher", 100 * peak);
    if (!c->fits && best->fits) return "as fast, but its tiles fall out of the fast memory";
    if (slower < -ABOUT)
        return ot_format(a,
                         "predicted %.0f %% faster by these figures, but not by the search's "
                         "estimates, or not in the plan as a whole",
                         -100 * slower);
    return tiles_of(c) > tiles_of(best) ? "as good, with more tiles"
                                        : "as good within what predictions can tell";
}

static const char *victory(ot_arena *a, uint32_t n, const fact_source *x)
{
    if (n < 2) return "chosen; no other tiling was scored";
    if (x->o->goal == OT_GOAL_MEMORY)
        return ot_format(a, "chosen of %u: the lowest peak within the slowdown that is allowed", n);
    return ot_format(a, "chosen of %u: the shortest predicted time, then the lowest peak", n);
}

/* Chosen first, then by time, then by bytes; equal ones as they were found. */
static int by_time(const void *pa, const void *pb)
{
    const ot_candidate *a = *(const ot_candidate *const *)pa, *b = *(const ot_candidate *const *)pb;
    if (a->chosen != b->chosen) return a->chosen ? -1 : 1;
    if (a->time < b->time || a->time > b->time) return a->time < b->time ? -1 : 1;
    if (a->traffic < b->traffic || a->traffic > b->traffic) return a->traffic < b->traffic ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* No other has less of one and no more of the other. Quadratic, over some two hundred. */
static bool on_front(const ot_candidate *list, uint32_t n, uint32_t k)
{
    for (uint32_t j = 0; j < n; j++) {
        bool less = list[j].time < list[k].time || list[j].traffic < list[k].traffic;
        if (less && list[j].time <= list[k].time && list[j].traffic <= list[k].traffic)
            return false;
    }
    return true;
}

ot_status ot_facts_candidates(ot_facts *f, const fact_source *x, uint32_t k)
{
    const ot_plan_detail *d = x->p->detail;
    const ot_candidate *list = d->candidates[k];
    uint32_t n = d->n_candidates[k];
    const ot_region *r = &x->p->regions[k];
    int32_t rank = x->g->values[r->values[r->dims[0].sink].value].rank;
    const ot_candidate **order = OT_NEW_N(f->arena, const ot_candidate *, n + 1u);
    ot_fact_candidate *out = OT_NEW_N(f->arena, ot_fact_candidate, n + 1u);
    if (!order || !out) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t j = 0; j < n; j++) order[j] = &list[j];
    qsort(order, n, sizeof *order, by_time);
    for (uint32_t j = 0; j < n; j++) {
        const ot_candidate *c = order[j];
        out[j] = (ot_fact_candidate){.n_dims = c->n_dims,
                                     .form = ot_form_name(c->form),
                                     .time = c->time,
                                     .traffic = c->traffic,
                                     .working_set = c->working_set,
                                     .fits = c->fits,
                                     .chosen = c->chosen,
                                     .on_front = on_front(list, n, (uint32_t)(c - list)),
                                     .reason = c->chosen ? victory(f->arena, n, x)
                                                         : loss(f->arena, c, order[0], x)};
        if (!out[j].reason) return ot_fail_nomem(x->g->model->diag);
        for (uint32_t i = 0; i < c->n_dims; i++) {
            out[j].axes[i] = ot_axis_name(rank, c->axes[i]);
            out[j].tiles[i] = c->tiles[i];
            out[j].tile[i] = c->tile[i];
        }
    }
    f->regions[k].candidates = out;
    f->regions[k].n_candidates = n;
    return OT_OK;
}
