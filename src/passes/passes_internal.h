/* Inside of stage passes/, from file to file.
 *
 *   passes.c            the order of things, and the files
 *   passes_find.c       what stands in the way, and what of it can be put together from parts
 *   passes_cut.c        the model without these nodes: their results come from outside
 *   passes_statistic.c  the nodes that hand out numbers of the rows that a chunk owns
 *   passes_store.c      which values passes write, so that later ones read them
 *   passes_segment.c    the passes between two that write, and their geometry
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

#define HUGE_COST 1e300

/* What passes write. Stage k is what pass k writes; stage 0 are the inputs. Values are those of
 * `cut`, and of every copy that is cut as it is. */
typedef struct pass_stages {
    ot_model *cut;   /* base without the nodes of statistics; NULL: nothing is to be stored */
    uint32_t *level; /* [n_values] passes that are over before it can be computed */
    bool *carries;   /* [n_values] it comes of the model's inputs */
    bool **frontier; /* [1 .. n_passes][n_values] what later passes need of those before */
    bool *after;     /* [1 .. n_passes] it is stored; NULL: of none */
    bool *barred;    /* [1 .. n_passes] it cannot be */
} pass_stages;

typedef struct pass_maker {
    ot_model *m;    /* as it was read */
    ot_model *base; /* a copy at the size that is asked for; ids are the same */
    const ot_shape_binding *shapes;
    size_t n_shapes;
    bool guessed; /* sizes that nobody has given */
    ot_passes_store store;
    ot_passes *out;
    pass_statistic *found; /* [n] in the order of passes, then of nodes */
    uint32_t n;
    pass_stages stages;
} pass_maker;

/* ---- passes.c ---- */

/* What values that nodes make have of extents is forgotten: crops have others. */
ot_status passes_forget_extents(ot_graph *g) OT_MUST_USE;
/* Only pairs and inputs of g that are no statistics; the first barrier of them, NULL: none. */
const ot_geometry_barrier *passes_without_statistics(const pass_maker *p, ot_geometry *g);

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
/* An input, an output of graph g; value v, which no node makes any more, as an input. */
ot_status passes_add_input(ot_graph *g, const char *name, ot_tensor_type type,
                           ot_id *out) OT_MUST_USE;
ot_status passes_add_output(ot_graph *g, ot_id v) OT_MUST_USE;
ot_status passes_become_input(ot_graph *g, ot_id v) OT_MUST_USE;
/* What no output depends on goes, inputs too. */
ot_status passes_keep_needed(ot_graph *g) OT_MUST_USE;

/* ---- passes_store.c ---- */

/* Fill s from s->cut, whose outputs are those of the model and the values of statistics. */
ot_status passes_store_find(const pass_maker *p, pass_stages *s) OT_MUST_USE;
/* Choose s->after, none that is barred. */
ot_status passes_store_choose(const pass_maker *p, pass_stages *s) OT_MUST_USE;
/* The stage that pass k reads; the last pass is n_passes + 1. */
uint32_t passes_stage_before(const pass_maker *p, uint32_t k);
/* Pass k writes value v. */
bool passes_is_written(const pass_maker *p, ot_id v, uint32_t k);

/* ---- passes_segment.c ---- */

/* Choose what is stored, and take the geometry of all passes that read it into p->out. */
ot_status passes_segments(pass_maker *p) OT_MUST_USE;
/* Graph g, cut as stages.cut is: what is stored at stage s becomes inputs. Breaks ORDER, USES. */
ot_status passes_read_stage(const pass_maker *p, ot_graph *g, uint32_t s) OT_MUST_USE;

/* ---- passes_statistic.c ---- */

/* The outputs <name>.n, .mean ... of statistic s, with its inputs s->is.owned. */
ot_status passes_hand_out(const pass_maker *p, const pass_statistic *s, ot_graph *g) OT_MUST_USE;

#endif
