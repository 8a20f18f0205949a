/* The tie-break's path (plan_net.h) by labels: exact, without a solver.
 *
 * The goals come one after the other, so the first two are found by themselves, and what is left
 * of the net for the third is small:
 *
 *   1. peak    Of the arcs up to a peak, is a path fast enough? Bisected over the peaks that arcs
 *              have.
 *   2. loops   Of those arcs, least time from every node to the end with at most l loops, for
 *              l = 0, 1, ... until the first node keeps the limit:
 *
 *                                       node 0   node 1   node 2   end
 *                  0 loops                9.0      7.0      4.0     0
 *                  1 loop                 7.5      5.5      4.0     0
 *                  2 loops     limit -->  6.0      5.5      4.0     0
 *
 *   3. tiles   Labels: a way from node 0 to some node, with its time, loops and tiles. They spread
 *              from node to node, in order. A label is dropped when another one there is no worse
 *              in all three, and when the table above says that it cannot reach the end in time
 *              with the loops that are left to it:
 *
 *                  node 1:   (2.0 s, 1 loop, 8 tiles)   stays
 *                            (2.1 s, 1 loop, 4 tiles)   stays: fewer tiles
 *                            (2.2 s, 1 loop, 8 tiles)   dropped: the first is better
 *                            (1.9 s, 3 loops, 2 tiles)  dropped: more than 2 loops
 *
 * Labels of equal figures: the first stays, and arcs are gone through by number, so the same net
 * always has the same answer. A net on which more than LABELS_MAX labels meet is answered with the
 * fastest path of step 2: least peak, fewest loops, and any tiles.
 */
#include "plan_net.h"

#include <math.h>
#include <stdlib.h>

enum { LABELS_MAX = 20000 };

/* A path's time is a sum that is taken forwards or backwards: these differ in the last places. */
#define ROUNDING 1e-12

typedef struct label {
    double time;
    uint32_t loops;
    uint64_t tiles;
    uint32_t arc;  /* by which it came; OT_NONE: node 0 */
    uint32_t prev; /* label from which it came */
    uint32_t next; /* label of the same node, or OT_NONE */
} label;

typedef struct search {
    const ot_net *m;
    uint32_t *out;      /* [n_nodes] first arc from there, by number; OT_NONE: none */
    uint32_t *next_out; /* [n_arcs] */
    int64_t peak;       /* arcs above it are left out */
    double **left;      /* [n_layers][n_nodes] least time to the end with so many loops */
    uint32_t n_layers;
    size_t cap_layers;
    label *labels; /* [n_labels] */
    uint32_t n_labels;
    size_t cap_labels;
    uint32_t *at; /* [n_nodes] first label of a node, in the order in which they came */
} search;

/* List arcs by the node where they begin. false: no memory. */
static bool begin(search *x, const ot_net *m)
{
    *x = (search){.m = m, .peak = INT64_MAX};
    x->out = OT_NEW_N(m->arena, uint32_t, m->n_nodes);
    x->at = OT_NEW_N(m->arena, uint32_t, m->n_nodes);
    x->next_out = OT_NEW_N(m->arena, uint32_t, m->n_arcs + 1u);
    if (!x->out || !x->at || !x->next_out) return false;
    for (uint32_t p = 0; p < m->n_nodes; p++) x->out[p] = x->at[p] = OT_NONE;
    for (uint32_t k = m->n_arcs; k-- > 0;) {
        x->next_out[k] = x->out[m->arcs[k].from];
        x->out[m->arcs[k].from] = k;
    }
    return true;
}

/* ---- peak ---- */

/* left [n_nodes]: least time to the end over arcs up to a peak. Whether node 0 keeps the limit. */
static bool fast_enough(const search *x, int64_t peak, double *left)
{
    const ot_net *m = x->m;
    for (uint32_t p = 0; p < m->n_nodes; p++) left[p] = 1e300;
    left[m->n_nodes - 1] = 0;
    for (uint32_t p = m->n_nodes - 1; p-- > 0;)
        for (uint32_t k = x->out[p]; k != OT_NONE; k = x->next_out[k])
            if (m->arcs[k].peak <= peak)
                left[p] = fmin(left[p], m->arcs[k].time + left[m->arcs[k].to]);
    return left[0] <= m->limit * (1 + ROUNDING);
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Set x->peak to the least that a path within the limit has. */
static ot_status find_peak(search *x, bool *found)
{
    const ot_net *m = x->m;
    int64_t *peaks = OT_NEW_N(m->arena, int64_t, m->n_arcs + 1u);
    double *left = OT_NEW_N(m->arena, double, m->n_nodes);
    uint32_t lo = 0, hi = m->n_arcs - 1;
    if (!peaks || !left) return OT_E_NOMEM;
    for (uint32_t k = 0; k < m->n_arcs; k++) peaks[k] = m->arcs[k].peak;
    qsort(peaks, m->n_arcs, sizeof *peaks, by_size);
    *found = m->n_arcs > 0 && fast_enough(x, peaks[m->n_arcs - 1], left);
    if (!*found) return OT_OK;
    while (lo < hi) { /* peaks[hi] is enough, what stands before lo is not */
        const uint32_t middle = lo + (hi - lo) / 2;
        if (fast_enough(x, peaks[middle], left))
            hi = middle;
        else
            lo = middle + 1;
    }
    x->peak = peaks[lo];
    return OT_OK;
}

/* ---- loops ---- */

/* The next layer of `left`, from those before it. false: no memory. */
static bool add_layer(search *x)
{
    const ot_net *m = x->m;
    const uint32_t loops = x->n_layers;
    double *now = OT_NEW_N(m->arena, double, m->n_nodes);
    if (!now || !OT_PUSH(m->arena, x->left, x->n_layers, x->cap_layers, now)) return false;
    for (uint32_t p = 0; p < m->n_nodes; p++) now[p] = 1e300;
    now[m->n_nodes - 1] = 0;
    for (uint32_t p = m->n_nodes - 1; p-- > 0;)
        for (uint32_t k = x->out[p]; k != OT_NONE; k = x->next_out[k]) {
            const ot_net_arc *a = &m->arcs[k];
            if (a->peak <= x->peak && a->loops <= loops)
                now[p] = fmin(now[p], a->time + x->left[loops - a->loops][a->to]);
        }
    return true;
}

/* ---- tiles ---- */

/* Whether the arc leads on from `from` to somewhere whence the end is reached in time. *to: the
 * label there. */
static bool extend(const search *x, uint32_t from, uint32_t arc, label *to)
{
    const ot_net_arc *a = &x->m->arcs[arc];
    const label *l = &x->labels[from];
    const uint32_t most = x->n_layers - 1;
    if (a->peak > x->peak || a->loops > most - l->loops) return false;
    *to = (label){.time = l->time + a->time,
                  .loops = l->loops + a->loops,
                  .tiles = l->tiles + a->tiles,
                  .arc = arc,
                  .prev = from,
                  .next = OT_NONE};
    return to->time + x->left[most - to->loops][a->to] <= x->m->limit * (1 + 2 * ROUNDING);
}

static bool no_worse(const label *a, const label *b)
{
    return a->time <= b->time && a->loops <= b->loops && a->tiles <= b->tiles;
}

/* Add the label to its node unless one there is no worse, and drop those that it is no worse than.
 * false: no memory. */
static bool add_label(search *x, uint32_t node, const label *l)
{
    uint32_t *link = &x->at[node];
    while (*link != OT_NONE) {
        label *other = &x->labels[*link];
        if (no_worse(other, l)) return true;
        if (no_worse(l, other))
            *link = other->next;
        else
            link = &other->next;
    }
    const uint32_t place = x->n_labels;
    *link = place; /* before the array moves, in which the link may lie */
    return OT_PUSH(x->m->arena, x->labels, x->n_labels, x->cap_labels, *l);
}

/* Labels of all nodes. *all false: there were too many. */
static ot_status spread(search *x, bool *all)
{
    const ot_net *m = x->m;
    const label start = {.arc = OT_NONE, .prev = OT_NONE, .next = OT_NONE};
    *all = true;
    if (!add_label(x, 0, &start)) return OT_E_NOMEM;
    for (uint32_t p = 0; p + 1 < m->n_nodes; p++)
        for (uint32_t from = x->at[p]; from != OT_NONE; from = x->labels[from].next)
            for (uint32_t k = x->out[p]; k != OT_NONE; k = x->next_out[k]) {
                label to;
                if (!extend(x, from, k, &to)) continue;
                if (!add_label(x, m->arcs[k].to, &to)) return OT_E_NOMEM;
                *all = x->n_labels <= LABELS_MAX;
                if (!*all) return OT_OK;
            }
    return OT_OK;
}

/* Mark the arcs of the label with the fewest tiles at the end. */
static void mark_best(const search *x, bool *used)
{
    uint32_t best = x->at[x->m->n_nodes - 1];
    for (uint32_t k = best; k != OT_NONE; k = x->labels[k].next)
        if (x->labels[k].tiles < x->labels[best].tiles) best = k;
    for (uint32_t k = best; x->labels[k].arc != OT_NONE; k = x->labels[k].prev)
        used[x->labels[k].arc] = true;
}

/* Mark the arcs of the fastest path with as many loops. */
static void mark_fastest(const search *x, bool *used)
{
    const ot_net *m = x->m;
    uint32_t loops = x->n_layers - 1, best;
    for (uint32_t p = 0; p + 1 < m->n_nodes; p = m->arcs[best].to) {
        best = OT_NONE;
        for (uint32_t k = x->out[p]; k != OT_NONE && best == OT_NONE; k = x->next_out[k]) {
            const ot_net_arc *a = &m->arcs[k];
            if (a->peak <= x->peak && a->loops <= loops &&
                a->time + x->left[loops - a->loops][a->to] == x->left[loops][p])
                best = k;
        }
        used[best] = true;
        loops -= m->arcs[best].loops;
    }
}

ot_status ot_net_labels(const ot_net *m, bool *used, bool *found)
{
    search x;
    bool all;
    *found = false;
    memset(used, 0, m->n_arcs * sizeof *used);
    if (!begin(&x, m)) return OT_E_NOMEM;
    OT_TRY(find_peak(&x, found));
    if (!*found) return OT_OK;
    do {
        if (!add_layer(&x)) return OT_E_NOMEM;
    } while (x.left[x.n_layers - 1][0] > m->limit * (1 + ROUNDING));
    OT_TRY(spread(&x, &all));
    if (all)
        mark_best(&x, used);
    else
        mark_fastest(&x, used);
    return OT_OK;
}
