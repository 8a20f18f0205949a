/* From the totals of an interval to a choice: which output form would be cheapest, what it
 * costs, what it holds.
 *
 * For every pair of tile counts, windows written out or peeled compete with a zero-copy Scan where
 * windows do not overlap.
 */
#include "interval_figures.h"

#include <math.h>

uint32_t ot_trial_pairs(const ot_trial *tr) { return tr->n_pairs; }
uint64_t ot_trial_work(const ot_trial *tr) { return tr->work; }
void ot_trial_knows(ot_trial *tr, uint64_t work) { tr->work += work; }

double ot_trial_tile_bytes(const ot_trial *tr, uint32_t k, ot_id v)
{
    ot_extents e[OT_DIMS_MAX];
    double b = (double)tr->s->bytes[v];
    ot_trial_extents(tr, &tr->pairs[k], v, e);
    for (uint32_t d = 0; d < tr->n_dims; d++) b *= e[d].max;
    return b;
}

/* Windows of some value overlap, or tiles are uneven. */
static bool overlaps(const ot_trial *tr, const pair *p)
{
    for (uint32_t d = 0; d < tr->n_dims; d++)
        if (tr->dim[d][p->c[d]].overlap) return true;
    return false;
}

/* Forms this tiling can probably take; the rewriter has the last word. */
static ot_form cheapest_form(const ot_trial *tr, const pair *p, const ot_totals *x, double *time,
                             int64_t *reassembly)
{
    ot_form best = OT_FORM_NONE;
    const dim_count *d0 = &tr->dim[0][p->c[0]];
    bool scan_ok = tr->n_dims < 3 && tr->border.outermost && tr->s->g->model->opset >= 9 &&
                   !overlaps(tr, p);
    if (tr->n_dims == 2) scan_ok = scan_ok && d0->tile == 1 && tr->axes[1] == tr->axes[0] + 1;
    double best_time = 0;
    for (ot_form f = OT_FORM_SCAN; f <= OT_FORM_WHILE; f++) {
        if (!ot_runtime_takes(tr->t->runtime, f)) continue;
        /* streams have a search of their own */
        if (f == OT_FORM_STREAM || (f == OT_FORM_SCAN && !scan_ok)) continue;
        if (f == OT_FORM_UNROLLED &&
            (x->tiles * tr->n_in > 1200 || !ot_runtime_writes_out(tr->t->runtime, x->tiles)))
            continue;
        double t, tr_bytes;
        int64_t st;
        ot_form_cost(tr->t, x, f, &t, &tr_bytes, &st);
        st += x->ws; /* all that the region holds */
        bool leaner = st < *reassembly && t < best_time * 1.05;
        if (best != OT_FORM_NONE &&
            !(tr->o->goal == OT_GOAL_MEMORY ? leaner || t < best_time * 0.95 : t < best_time))
            continue;
        best = f;
        best_time = t;
        *time = t;
        *reassembly = st;
    }
    return best;
}

/* Classes of alike tiles, about: tiles in the middle, and on either side those whose windows
 * reach over the border at some depth of the chain. */
static double kinds_of(const ot_trial *tr, const pair *p)
{
    double kinds = 1;
    for (uint32_t d = 0; d < tr->n_dims; d++) {
        const dim_count *x = &tr->dim[d][p->c[d]];
        double reach = 0, extent = (double)tr->s->g->values[tr->w->sink].dims[tr->axes[d]];
        for (uint32_t k = 0; k < tr->n_pending; k++) {
            ot_id v = tr->pending[k];
            int8_t axis = ot_walk_axis(tr->w, v, d);
            if (axis < 0) continue;
            ot_win middle = ot_trial_cut(tr, x, v)->at[x->n_at - 1].hull;
            double need = (double)(middle.hi - middle.lo) * extent /
                          (double)tr->s->g->values[v].dims[axis];
            reach = fmax(reach, (need - (double)x->tile) / 2);
        }
        kinds *= fmin(x->n, 1 + 2 * ceil(reach / (double)x->tile - 1e-9));
    }
    return kinds;
}

bool ot_trial_choice(ot_trial *tr, uint32_t k, ot_choice *c)
{
    const pair *p = &tr->pairs[k];
    if (p->dead || tr->n_in == 0 || tr->split_quant) return false;
    if (tr->t->runtime->int8_groups && tr->n_dequantized > 0) return false;
    const ot_seq *s = tr->s;
    ot_totals x;
    if (ot_runtime_in_classes(tr->t->runtime) && kinds_of(tr, p) > OT_CLASSES_MAX) return false;
    ot_trial_totals(tr, p, &x);
    tr->work += tr->n_pending / OT_PENDING_A_STEP;
    const ot_value *sink = &s->g->values[tr->w->sink];
    bool short_rows = sink->rank > 2 && tr->axes[tr->n_dims - 1] == sink->rank - 1;
    /* a scratchpad is a hard limit */
    if (ot_target_hard_limit(tr->t) && x.ws > ot_target_room(tr->t)) return false;
    double time = 0;
    int64_t reassembly = 0;
    ot_form form = cheapest_form(tr, p, &x, &time, &reassembly);
    if (form == OT_FORM_NONE) return false;
    if (tr->o->goal == OT_GOAL_TIME && !tr->o->force) time *= tr->t->runtime->doubt;
    if (short_rows) time *= tr->t->runtime->short_rows;
    memset(c, 0, sizeof *c);
    c->first = tr->w->lo;
    c->end = tr->w->end;
    c->n_dims = (uint8_t)tr->n_dims;
    c->out_index = tr->out_index;
    memcpy(c->axes, tr->axes, sizeof c->axes);
    for (uint32_t d = 0; d < tr->n_dims; d++) c->tile[d] = tr->dim[d][p->c[d]].tile;
    c->time = time + tr->outside_time;
    c->fits = x.ws <= ot_target_room(tr->t);
    c->n_in = tr->n_in;
    int64_t outside = tr->outside_live;
    for (uint32_t j = 0; j < tr->n_pending && outside > 0; j++)
        if (s->act[tr->pending[j]] && s->def[tr->pending[j]] != OT_NONE)
            outside += s->held[tr->pending[j]];
    c->peak = ot_max(s->cut[c->first] + (int64_t)tr->pre_bytes + reassembly, outside);
    c->loops = form == OT_FORM_UNROLLED ? 0 : 1;
    c->tiles = x.tiles < (double)UINT32_MAX ? (uint32_t)x.tiles : UINT32_MAX;
    c->form = (uint8_t)form;
    return true;
}
