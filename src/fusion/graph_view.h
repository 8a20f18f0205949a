/* A plain graph as the recogniser sees it: nodes by place, who makes and who reads each value.
 *
 *   place    0       1           2          a place without a node (NULL) does not run
 *            Conv    Sigmoid     Mul
 *   maker    x: -    a: 0        b: 1       readers  a: 1 2    b: 2
 *
 * Whoever shows a graph says which nodes run, in which order; the tables follow. The engine's
 * lowering, whose units change while it merges them, shows those itself
 * (engine/lower/group_view.c).
 */
#ifndef OT_FUSION_GRAPH_VIEW_H
#define OT_FUSION_GRAPH_VIEW_H

#include "fusion.h"

typedef struct ot_node_list {
    const ot_graph *g;
    uint32_t n;
    const ot_node **node;  /* [n] NULL: does not run */
    uint32_t *maker;       /* [n_values] place; OT_NONE */
    uint32_t *first;       /* [n_values + 1] readers of v are readers[first[v] .. first[v + 1]), */
    uint32_t *readers;     /* places, each once and in order; bodies of the node count */
    bool *taken;           /* [n] part of a group already: shown no more */
    bool *kept;            /* [n_values] a result of the graph, or a body reads it */
    bool *constant;        /* [n_values] its contents are known before the model runs */
    bool *unwanted;        /* [n_values] an output that is named, but needed by nobody */
    ot_group_shape *shape; /* [n_values] rank OT_NONE: not known */
    bool shows_origins;    /* of constants: the nodes that computed them */
} ot_node_list;

/* Tables in arena a, of l's g, n and node; what is kept, constant and known is as the graph says:
 * owners who know more, or other things, change that. Fails: OT_E_NOMEM. */
ot_status ot_node_list_fill(ot_node_list *l, ot_arena *a) OT_MUST_USE;

/* l lives as long as the view. */
ot_group_view ot_node_list_view(const ot_node_list *l);

static inline uint32_t ot_list_readers(const ot_node_list *l, ot_id v)
{
    return l->first[v + 1] - l->first[v];
}
/* The place that alone reads v, which is no result; OT_NONE. */
static inline uint32_t ot_list_only_reader(const ot_node_list *l, ot_id v)
{
    return ot_list_readers(l, v) == 1 && !l->g->values[v].is_output ? l->readers[l->first[v]]
                                                                    : OT_NONE;
}

#endif
