/* Inside of ot_narrow: what is read of every value (narrow_find.c), and the nodes that make no more
 * (narrow.c). */
#ifndef OT_TRANSFORM_NARROW_H
#define OT_TRANSFORM_NARROW_H

#include "ops/ops.h"

/* A part of a value: a window of each axis. */
typedef struct nr_box {
    bool any;   /* something is read */
    ot_win *at; /* [rank]; NULL: all of it (its shape is not known, or it is a scalar) */
} nr_box;

typedef enum nr_kind {
    NR_WHOLE,  /* makes all that it makes now, of all that it reads now */
    NR_UNREAD, /* nobody reads what it makes */
    NR_FOLDED, /* shape arithmetic whose results are known: it reads nothing */
    NR_CUT,    /* computes windows, by the slice relation */
    NR_PICK,   /* Gather of known indices: the hull of what they point at */
    NR_SPLIT   /* Split: each result is a part of operand 0 by itself */
} nr_kind;

typedef struct nr_node {
    nr_kind kind;
    uint32_t lead;      /* CUT, PICK: the output that the axes are of */
    ot_tile_axis *axes; /* [n_axes] windows of these axes */
    int8_t **in_axis;   /* [n_axes][n_in] */
    uint32_t n_axes;
    int32_t along; /* PICK, SPLIT: the axis of operand 0; */
    ot_win picked; /* PICK: what is read of it */
} nr_node;

typedef struct nr_graph {
    ot_graph *g;
    ot_arena *a;
    nr_box *need;   /* [n_values] the hull of what readers want */
    nr_box *made;   /* [n_values] what its producer then makes: contains `need` */
    nr_node *nodes; /* [n_nodes] */
    bool *live;     /* [n_nodes] some output of the graph depends on it, as the graph is */
    uint32_t n_values, n_nodes;
} nr_graph;

/* Fill x for g. Requires ORDER, USES, SHAPES of static extents. Fails: OT_E_NOMEM. */
ot_status nr_find(ot_graph *g, ot_arena *a, nr_graph *x) OT_MUST_USE;
/* What node `id` (CUT, PICK, SPLIT) reads of operand j, into at [rank]; false: nothing. */
bool nr_operand(const nr_graph *x, ot_id id, uint32_t j, ot_win *at);
/* Less than all of v is made. */
bool nr_is_narrow(const nr_graph *x, ot_id v);
/* Where the part that Split `id` hands on as output o begins in operand 0. */
int64_t nr_split_start(const ot_graph *g, const ot_node *n, uint32_t o, int32_t along);
/* Contents of v where nobody can change them, into out [OT_KNOWN_MAX]: how many; -1: not known. */
int64_t nr_known(const ot_value *v, int64_t *out);

#endif
