/* How a runtime executes a graph (private to this folder). */
#ifndef OT_ALLOC_SIM_SIMULATE_H
#define OT_ALLOC_SIM_SIMULATE_H

#include "alloc_sim.h"

#include "fusion/fusion.h"

/* A larger value counts as one of unknown size: no memory holds it, and sums of padded ones stay
 * within 64 bits. */
#define OT_SIM_MOST_BYTES (INT64_C(1) << 40)

typedef enum ot_buffer_kind {
    OT_BUFFER_NONE = 0, /* not the run's: constants, inputs, what an outer graph holds */
    OT_BUFFER_PLANNED,  /* comes and goes with its readers */
    OT_BUFFER_RESULT,   /* of the graph: whoever runs it takes it */
    /* what a Loop carried in the end: comes from its body, goes with its readers */
    OT_BUFFER_HANDED,
    OT_BUFFER_PIECES /* a sequence: grows by a copy of what is inserted */
} ot_buffer_kind;

typedef struct ot_sim_buffer {
    ot_buffer_kind kind;
    int64_t bytes;
    uint32_t uses; /* steps that read it under any name */
} ot_sim_buffer;

/* A value in a layout: v as it is made, n_values + v in the other layout. */
typedef struct ot_sim_value {
    int64_t bytes;   /* -1: not known */
    uint32_t buffer; /* OT_NONE: nobody has made it */
    uint32_t uses;
    bool is_blocked, is_result;
    bool is_matrix; /* its buffer is planned as that of a matrix of its rows */
    ot_id rows;     /* of blocks: the value that has the same rows and columns (ot_sim_rows_of) */
} ot_sim_value;

/* what passes of the runtime make has more rank than what the file says: nodes in place of
 * several, behind them those in blocks */
#define OT_RANK_FUSED (UINT64_C(1) << 36)
#define OT_RANK_LATER (UINT64_C(1) << 40)

#define OT_SIM_SCRATCH 3

/* What a step holds besides operands and results. */
typedef struct ot_sim_scratch {
    int64_t bytes[OT_SIM_SCRATCH]; /* 0: none */
    bool is_first;                 /* taken before the results are */
    bool in_pattern;               /* values of the graph, as results are */
} ot_sim_scratch;

/* What a step does with sequences. */
typedef enum ot_sim_sequence {
    OT_SIM_NO_SEQUENCE = 0,
    OT_SIM_SEQUENCE_EMPTY,
    OT_SIM_SEQUENCE_INSERT,
    OT_SIM_SEQUENCE_JOIN
} ot_sim_sequence;

typedef struct ot_sim_step {
    ot_id node; /* OT_NONE: a change of layout */
    ot_sim_sequence sequence;
    uint32_t *reads; /* [n_reads] values, each once */
    uint32_t *writes;
    uint32_t n_reads, n_writes;
    /* bit k: the first result may lie where reads[k] lies, when that is read no more */
    uint32_t over;
    bool is_view; /* it is reads[0] under another name */
    ot_open_conv conv;
    bool is_gone; /* runs later, as part of another step */
    ot_sim_scratch scratch;
    uint64_t rank; /* of two steps that may run next, the one of more rank does */
    bool is_turn;  /* a change to plain: its rank is another in other orders (simulate_order.c) */
} ot_sim_step;

typedef struct ot_sim_schedule {
    const ot_graph *g;
    ot_sim_step *steps; /* [n] in the order in which they run */
    size_t n, cap;
    ot_sim_value *values; /* [2 * g->n_values] */
    ot_sim_buffer *buffers;
    size_t n_buffers, cap_buffers;
    bool tensors_only; /* what it is fed with are tensors: a pattern is kept */
    uint32_t n_unknown;
    /* bit k: asked for, and with changes of layout in order k the steps are not those of the first
     * order; orders: as of ot_sim_growth_most, the first is 0 */
    uint32_t other_orders;
} ot_sim_schedule;

/* Which order of changes of layout a plan is in, and with how many others it is compared. */
typedef struct ot_sim_orders {
    uint32_t order; /* 0: as they come; 1: the other way round; else some order */
    uint32_t n;     /* orders below that one are compared with it; 0: none is */
} ot_sim_orders;

/* Steps and buffers of g for runtime r, in arena a; if_node: the If whose branch g is, which says
 * what the branch leaves open, NULL: g is none. Requires ORDER, USES, SHAPES (bodies: ORDER).
 * Fails: OT_E_NOMEM. */
ot_status ot_sim_plan_make(const ot_graph *g, const ot_node *if_node, const ot_runtime *r,
                           bool static_shape, ot_sim_orders orders, ot_arena *a,
                           ot_sim_schedule *out) OT_MUST_USE;

/* Gives the values of p, whose steps are in order, their buffers; static_shape: as of
 * ot_sim_growth. Fails: OT_E_NOMEM. */
ot_status ot_sim_plan_buffers(ot_sim_schedule *p, bool static_shape, ot_arena *a) OT_MUST_USE;

/* Sets unread [n_nodes] of the nodes of g whose results only static nodes read, which a runtime
 * that knows shapes leaves out. Fails: OT_E_NOMEM. */
ot_status ot_sim_find_unread(const ot_graph *g, ot_arena *a, bool *unread) OT_MUST_USE;

/* simulate_depth.c */

/* Who makes what units read: all[first[u] .. first[u + 1]), in arena a. Those that are not there
 * make nothing and read nothing. */
typedef struct ot_sim_makers {
    uint32_t *first, *all;
    bool *is_there;
    uint32_t n;
    size_t n_all, cap;
    ot_arena *a;
} ot_sim_makers;

typedef struct ot_sim_depth ot_sim_depth;

/* Of n units, one after the other: its makers are added, then it ends. Fail: OT_E_NOMEM. */
ot_status ot_sim_makers_start(ot_sim_makers *m, uint32_t n, ot_arena *a) OT_MUST_USE;
ot_status ot_sim_makers_add(ot_sim_makers *m, uint32_t maker) OT_MUST_USE;
void ot_sim_makers_end(ot_sim_makers *m, bool is_there);
/* What orders of the units of m (borrowed) are found with. In arena a. Fails: OT_E_NOMEM. */
ot_status ot_sim_depth_new(const ot_sim_makers *m, ot_arena *a, ot_sim_depth **out) OT_MUST_USE;
/* rank: [m->n]. out: [*n] units, room for m->n. Fails: OT_E_NOMEM. */
ot_status ot_sim_depth_order(ot_sim_depth *d, const uint64_t *rank, uint32_t *out,
                             uint32_t *n) OT_MUST_USE;

/* simulate_places.c */

/* Where a runtime's passes come by the nodes that it does not compute while loading, and which of
 * two it prefers to go on with. */
typedef struct ot_sim_places {
    const ot_id *order;   /* [n] in which the last pass sees them */
    const uint64_t *rank; /* [n_nodes] of the node, or of what replaced it and those before it */
    uint32_t n;
} ot_sim_places;

/* fuses: the runtime's passes replace nodes; tail: [n_nodes] of such a group the last node. In
 * arena a. Requires ORDER, USES. Fails: OT_E_NOMEM. */
ot_status ot_sim_find_places(const ot_graph *g, bool fuses, const ot_id *tail, ot_arena *a,
                             ot_sim_places *out) OT_MUST_USE;

/* Fills out->waiting: who made the tensors that were there at step `last` of p, made before it
 * and read behind it. Fails: OT_E_NOMEM. */
ot_status ot_sim_list_waiting(const ot_sim_schedule *p, const ot_sim_step *last, ot_arena *a,
                              ot_sim_figures *out) OT_MUST_USE;

/* Fills out->held: the values of p's graph that are there while step `last` runs. Fails:
 * OT_E_NOMEM. */
ot_status ot_sim_list_held(const ot_sim_schedule *p, const ot_sim_step *last, ot_arena *a,
                           ot_sim_figures *out) OT_MUST_USE;

/* Bytes of v as the runtime computes with it: half precision, for which a CPU has few
 * implementations, is held in float32. false: not known, or more than any memory has. */
bool ot_sim_held_bytes(const ot_value *v, int64_t *bytes);

/* A convolution's windows are not one beside another. */
static inline bool ot_sim_is_strided(const ot_node *n)
{
    size_t rank = 0;
    const int64_t *strides = ot_attr_ints(n, "strides", &rank);
    bool any = false;
    for (size_t k = 0; k < rank; k++) any |= strides[k] > 1;
    return any;
}

/* Bytes that the implementation of n, which has operands and results of 8 bits, holds besides them;
 * 0: none, or not known. */
int64_t ot_sim_scratch_on_bytes(const ot_graph *g, const ot_node *n);

/* Values that take no memory of their own as activations. */
static inline bool ot_is_fixed(const ot_graph *g, ot_id v)
{
    return g->values[v].init || g->values[v].is_const;
}

/* Does convolution n, which has two inputs or more, run on channel blocks, and (*input) does it
 * want its input in them? */
bool ot_sim_is_blocked(const ot_graph *g, const ot_runtime *r, const ot_node *n, bool *input);

/* ---- simulate_extents.c ---- */

/* The first of those values in blocks which the runtime knows to have the rows and columns of v,
 * for v in blocks, where p has the values before it; v itself where there is none. */
ot_id ot_sim_rows_of(const ot_sim_schedule *p, ot_id v);

/* The runtime knows that the operands of n, all in blocks, have the same extents. */
bool ot_sim_same_extents(const ot_sim_schedule *p, const ot_node *n);

/* n works on blocks of so many channels, as all its operands are, as far as extents decide. */
bool ot_sim_suits_blocks(const ot_sim_schedule *p, int64_t block, const ot_node *n);

/* Bytes of the weights of n, a transposed convolution, that it turns round while the model is
 * loaded: each node for itself, in the memory that tensors come from. 0: it does not. */
int64_t ot_sim_turned_bytes(const ot_graph *g, const ot_runtime *r, const ot_node *n);

/* Fills out->loaded and out->loading, what a session of runtime r holds once g is loaded, and the
 * most until then; and out->reused, of any growth. Requires ORDER, USES, SHAPES (bodies: ORDER).
 * Fails: OT_E_NOMEM. */
ot_status ot_loaded_bytes(const ot_graph *g, const ot_runtime *r, ot_arena *a,
                          ot_sim_figures *out) OT_MUST_USE;

/* Sorts p's steps as the runtime runs them, without those that are gone. Fails: OT_E_NOMEM. */
ot_status ot_sim_order(ot_sim_schedule *p, ot_sim_orders orders) OT_MUST_USE;

#endif
