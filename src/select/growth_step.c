/* Regions that let go of what a process holds at the step where it grows last.
 *
 *   step     0    1    2    3    4    5         a: made at 0, read at 1 and 4
 *            a ------------------ a             last growth: at 2, where a and b are there
 *                 b ---- b                      [0 1] and [4 5] hold a in pieces: neither does
 *            [ region ]          [ region ]     alone
 *
 * No set takes less that has no such region. One of them comes in, by itself or with its twins: the
 * regions that are the same for other nodes of the same kinds, as where a block repeats. Where
 * none pays, the best few are what a second one comes in to, that lets go of what is held then.
 */
#include "candidates.h"

#define BEAM 3 /* sets to which a second region comes in */
/* so much more it may take with the first alone: what that takes stays beside what is held */
#define MORE 0.25

/* A search from one set. */
typedef struct letting_go {
    ot_candidates *x;
    uint64_t most;            /* work that x may have done at its end */
    const ot_region_set *at;  /* must be beaten */
    ot_region_set best;       /* n 0: none beats it */
    ot_region_set beam[BEAM]; /* [n_beam] that do not, those that take least first */
    uint32_t n_beam;
    ot_region_set spare, twins, other;
} letting_go;

/* Index of the largest value of held[n] that r has; OT_NONE: none. */
static uint32_t largest_in(const ot_region *r, const ot_id *held, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < r->n_values; i++)
            if (r->values[i].value == held[k]) return k;
    return OT_NONE;
}

/* The same for other nodes of the same kinds. */
static bool are_twins(const ot_graph *g, const ot_region *a, const ot_region *b)
{
    if (a->form != b->form || a->n_nodes != b->n_nodes || a->n_values != b->n_values ||
        a->n_inputs != b->n_inputs || a->n_dims != b->n_dims || a->first == b->first)
        return false;
    for (uint32_t d = 0; d < a->n_dims; d++)
        if (a->dims[d].tile != b->dims[d].tile || a->dims[d].extent != b->dims[d].extent ||
            a->dims[d].sink != b->dims[d].sink)
            return false;
    for (uint32_t k = 0; k < a->n_nodes; k++)
        if (g->nodes[a->nodes[k].node].op != g->nodes[b->nodes[k].node].op) return false;
    for (uint32_t k = 0; k < a->n_values; k++)
        if (a->values[k].bytes != b->values[k].bytes) return false;
    return true;
}

/* Puts s among the beam, unless it is there or takes more than the last of a full one. */
static void keep_best(letting_go *q, ot_region_set *s)
{
    for (uint32_t k = 0; k < q->n_beam; k++)
        if (q->beam[k].bytes == s->bytes && q->beam[k].n == s->n && q->beam[k].gain == s->gain)
            return;
    if (q->n_beam == BEAM) {
        if (s->bytes >= q->beam[BEAM - 1].bytes) return;
        q->n_beam--;
    }
    uint32_t at = q->n_beam++;
    ot_set_swap(&q->beam[at], s);
    for (; at > 0 && q->beam[at].bytes < q->beam[at - 1].bytes; at--)
        ot_set_swap(&q->beam[at], &q->beam[at - 1]);
}

/* Scores *s, to which r came in last: it has to take less, be it as fast as it may. first: it may
 * be what a second region comes in to. */
static ot_status consider(letting_go *q, const ot_region *r, ot_region_set *s, bool first)
{
    if (!ot_set_in_time(q->x, s, q->at)) return OT_OK;
    const ot_region_set *least = q->best.n > 0 ? &q->best : q->at;
    const double most = first ? (double)q->at->bytes * (1 + MORE) : 0;
    OT_TRY(ot_set_score(q->x, ot_max(least->bytes, (int64_t)most), s));
    if (s->bytes < least->bytes && ot_candidates_comes_in(q->x, r, least, s))
        ot_set_swap(&q->best, s);
    else if (first && (double)s->bytes <= (double)q->at->bytes * (1 + MORE))
        keep_best(q, s);
    return OT_OK;
}

static void copy_set(const ot_region_set *from, ot_region_set *to)
{
    ot_region *all = to->all;
    for (uint32_t k = 0; k < from->n; k++) all[k] = from->all[k];
    *to = *from;
    to->all = all;
}

/* A twin of r is in s where y is. */
static bool has_twin_at(const ot_graph *g, const ot_region_set *s, const ot_region *r,
                        const ot_region *y)
{
    for (uint32_t k = 0; k < s->n; k++)
        if (s->all[k].first <= y->last && y->first <= s->all[k].last &&
            (s->all[k].first == r->first || are_twins(g, r, &s->all[k])))
            return true;
    return false;
}

/* q->twins: q->spare, to which r came in, with its twins; false: there are none. */
static bool add_twins(letting_go *q, const ot_region *r)
{
    const ot_candidates *x = q->x;
    bool any = false;
    copy_set(&q->spare, &q->twins);
    for (size_t k = 0; k < x->n_pool; k++) {
        const ot_region *y = x->pool[k];
        if (!are_twins(x->g, r, y) || has_twin_at(x->g, &q->twins, r, y)) continue;
        if (!ot_set_put_in(x, &q->twins, y, &q->other)) continue;
        ot_set_swap(&q->twins, &q->other);
        any = true;
    }
    return any;
}

/* Every region of the pool that has one of held [n], largest first, comes in to *from. */
static ot_status let_go(letting_go *q, const ot_region_set *from, const ot_sim_figures *f,
                        bool first)
{
    ot_candidates *x = q->x;
    for (uint32_t largest = 0; largest < f->n_held; largest++) {
        for (size_t k = 0; k < x->n_pool && x->work < q->most; k++) {
            const ot_region *r = x->pool[k];
            if (largest_in(r, f->held, f->n_held) != largest) continue;
            if (!ot_set_put_in(x, from, r, &q->spare)) continue;
            const bool any = add_twins(q, r);
            OT_TRY(consider(q, r, &q->spare, first));
            if (any) OT_TRY(consider(q, r, &q->twins, first));
        }
    }
    return OT_OK;
}

static ot_status new_set(ot_candidates *x, ot_region_set *out)
{
    *out = (ot_region_set){.all = OT_NEW_N(x->arena, ot_region, x->n_pool + 1)};
    return out->all ? OT_OK : ot_fail_nomem(x->g->model->diag);
}

ot_status ot_candidates_let_go(ot_candidates *x, uint64_t most, const ot_sim_figures *f,
                               ot_region_set *won, bool *better)
{
    letting_go q = {.x = x, .most = most, .at = won};
    ot_region_set *const sets[] = {&q.best, &q.spare, &q.twins, &q.other};
    *better = false;
    if (x->work >= most) return OT_OK; /* of a large graph: sets take memory */
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) OT_TRY(new_set(x, sets[k]));
    for (size_t k = 0; k < BEAM; k++) OT_TRY(new_set(x, &q.beam[k]));
    OT_TRY(let_go(&q, won, f, true));
    for (uint32_t k = 0; k < q.n_beam && q.best.n == 0 && x->work < most; k++) {
        ot_sim_figures then;
        OT_TRY(ot_candidates_simulate(x, q.beam[k].all, q.beam[k].n, &then));
        OT_TRY(let_go(&q, &q.beam[k], &then, false));
    }
    if (q.best.n == 0) return OT_OK;
    if (ot_dbg['P'])
        fprintf(stderr, "> Let go: %.2f MB -> %.2f MB, %u regions\n",
                (double)won->bytes / 1048576.0, (double)q.best.bytes / 1048576.0, q.best.n);
    *won = q.best;
    *better = true;
    return OT_OK;
}
