/* Inside of stage passes/, from file to file.
 *
 *   passes.c            the order of things, and the files
 *   passes_find.c       what stands in the way, and what of it can be put together from parts
 *   passes_cut.c        the model without these nodes: their results come from outside
 *   passes_statistic.c  the nodes that hand out numbers of the rows that a chunk owns
 */
#ifndef OT_PASSES_PASSES_INTERNAL_H
#define OT_PASSES_PASSES_INTERNAL_H

#include "passes.h"

#include "transform/decompose/decompose.h"
#include "transform/decompose/decompose_nodes.h"

/* A statistic, and the nodes that it is taken from. */
typedef struct pass_statistic {
    ot_statistic is;
    ot_id x, y;                 /* what it is of; what is computed of it */
    ot_id node;                 /* that needs it, or the first of them */
    ot_norm norm;               /* of moments */
    bool reduced[OT_RANK_MAX];  /* axes of x that it is over */
    int64_t shape[OT_RANK_MAX]; /* of x, 1 where it is reduced */
} pass_statistic;

typedef struct pass_maker {
    ot_model *m;    /* as it was read */
    ot_model *base; /* a copy at the size that is asked for; ids are the same */
    const ot_shape_binding *shapes;
    size_t n_shapes;
    ot_passes *out;
    pass_statistic *found; /* [n] in the order of passes, then of nodes */
    uint32_t n;
} pass_maker;

/* ---- passes_find.c ---- */

/* Fill found and n from the barriers of geometry g. Fails: OT_E_INPUT, OT_E_NOMEM. */
ot_status passes_find(pass_maker *p, const ot_geometry *g) OT_MUST_USE;
/* What to do about a node of that kind; static. */
const char *passes_advice(ot_geometry_kind kind);
/* "cannot be made of passes: node '<name>' (Op): why" as OT_E_INPUT. */
ot_status passes_refuse(const pass_maker *p, ot_id node, const char *kind, const char *why);

/* ---- passes_cut.c ---- */

/* All statistics become inputs of graph g, a copy of p->base. Breaks ORDER and USES. */
ot_status passes_cut(const pass_maker *p, ot_graph *g) OT_MUST_USE;
/* An input, an output of graph g. */
ot_status passes_add_input(ot_graph *g, const char *name, ot_tensor_type type,
                           ot_id *out) OT_MUST_USE;
ot_status passes_add_output(ot_graph *g, ot_id v) OT_MUST_USE;
/* What no output depends on goes, inputs too. */
ot_status passes_keep_needed(ot_graph *g) OT_MUST_USE;

/* ---- passes_statistic.c ---- */

/* The outputs <name>.n, .mean ... of statistic s, with its inputs s->is.owned. */
ot_status passes_hand_out(const pass_maker *p, const pass_statistic *s, ot_graph *g) OT_MUST_USE;

#endif
