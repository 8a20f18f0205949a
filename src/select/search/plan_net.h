/* Plans as paths: the net in which the tie-break looks for one, and who finds it.
 *
 *      0 ======== 1 ---- 2 ======== 3        ===  a region: an interval that runs in tiles
 *      | \________________/ \        |       ---  a run of untiled nodes between two boundaries
 *      +---- node 0 ... node n - 1 --+
 *
 * Nodes are boundaries between operators, in order, so that every arc leads forwards; a plan is a
 * path from node 0 to the last. Wanted is, of all paths that take no longer than the limit, one of
 * the least peak (the largest of its arcs), of these one of the fewest loops, of these one of the
 * fewest tiles, of these the fastest.
 */
#ifndef OT_SELECT_SEARCH_PLAN_NET_H
#define OT_SELECT_SEARCH_PLAN_NET_H

#include "base/base.h"

typedef struct ot_net_arc {
    uint32_t from, to; /* nodes, from < to */
    double time;       /* seconds, >= 0 */
    int64_t peak;      /* bytes, >= 0 */
    uint32_t loops, tiles;
} ot_net_arc;

typedef struct ot_net {
    ot_arena *arena;  /* scratch of who solves it; borrowed */
    ot_net_arc *arcs; /* [n_arcs] */
    uint32_t n_arcs;
    uint32_t n_nodes; /* at least 2 */
    double limit;     /* seconds */
} ot_net;

/* The path, as the arcs that are on it: used [n_arcs], out; the same one for the same net. *found
 * false: no path keeps the limit. Fails: OT_E_NOMEM, without a word. */
ot_status ot_net_labels(const ot_net *m, bool *used, bool *found) OT_MUST_USE;
#ifdef OT_GLPK
/* The same by integer programming (net_milp.c): exact as far as the tolerances of floating point
 * there go and where few enough branches decide; else the best that was found. */
ot_status ot_net_milp(const ot_net *m, bool *used, bool *found) OT_MUST_USE;
#else
#define ot_net_milp ot_net_labels
#endif

#endif
