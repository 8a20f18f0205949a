/* Stage engine/: runs models natively.
 *
 *   session (one model)  graph -> values by slot -> memory plan -> one call of an implementation
 *                        per node, in graph.order
 *   implementations      one function per operator: `reference` (slow, obvious, complete) and,
 *                        where it pays, `fast`
 *   arrays               strided views of memory that an arena, a heap block, a constant or the
 *                        caller owns
 *
 * Implementations compute their outputs' shapes from what they are given; ot_call_output hands out
 * the memory, at the planned place when the planner foresaw the value, from the heap otherwise. So
 * data-dependent shapes work, and a wrong prediction is found, not obeyed.
 */
#ifndef OT_ENGINE_CORE_ENGINE_H
#define OT_ENGINE_CORE_ENGINE_H

#include "ops/ops.h"
#include "pool.h"

/* ---- arrays ---- */

struct ot_block; /* reference-counted heap memory */
struct ot_nd_list;

typedef struct ot_nd {
    ot_dtype dtype;
    uint32_t rank;
    int64_t dims[OT_RANK_MAX];
    /* in elements; dense (row-major, no holes) but where fused steps agree on something else */
    int64_t strides[OT_RANK_MAX];
    /* > 1: blocked by channel: [d0, ceil(d1 / chan_block), d2..., chan_block], channels that pad
     * the last block are 0; strides[1] is that of a block, the others as they lie. Else 0. Only
     * fused steps see such arrays */
    uint32_t chan_block;
    /* first element; NULL for sequences, strings and empty optionals */
    void *data;
    struct ot_block *block;  /* owner, counted; NULL: arena, constant or caller */
    struct ot_nd_list *list; /* sequence of arrays; NULL for tensors */
} ot_nd;

/* Sequences share their elements' blocks. */
typedef struct ot_nd_list {
    ot_nd *items; /* [n] */
    size_t n, cap;
    _Atomic uint32_t refs; /* tiles that run at once may share a sequence from outside */
} ot_nd_list;

bool ot_nd_elems(const ot_nd *a, int64_t *out); /* false on overflow */
/* of one element held in memory; 0 for strings. Sub-byte types, which files pack, take a byte: int4
 * and int2 as int8, uint4 and uint2 as uint8, float4 as its code */
size_t ot_dtype_bytes(ot_dtype t);
bool ot_nd_is_dense(const ot_nd *a);
/* dims and row-major strides */
void ot_nd_set_dense(ot_nd *a, ot_dtype t, uint32_t rank, const int64_t *dims);
/* The same blocked by channel; rank >= 2. */
void ot_nd_set_blocked(ot_nd *a, ot_dtype t, uint32_t rank, const int64_t *dims, uint32_t block);
/* Element i of an integer or bool array (dense) as int64; of any numeric array but those of 4- and
 * 8-bit floats as double. */
int64_t ot_nd_int(const ot_nd *a, int64_t i);
double ot_nd_double(const ot_nd *a, int64_t i);

/* ---- one call of an implementation ---- */

struct ot_frame;

/* What a fast implementation keeps for its node (packed weights, primitives); zero at first, freed
 * with the session. */
typedef struct ot_op_state {
    void *data;
    void (*free)(void *data); /* NULL: nothing to free */
} ot_op_state;

typedef struct ot_call {
    const ot_graph *g;
    const ot_node *node;
    uint32_t n_in, n_out;
    const ot_nd *const *in;    /* [n_in] NULL: omitted */
    ot_nd **out;               /* [n_out] NULL: not wanted */
    struct ot_frame *frame;    /* of the running graph: memory, outer values, threads */
    uint32_t threads;          /* that it may use, by ot_pool_share */
    struct ot_op_state *state; /* of this node, kept from run to run */
    const void *plan;          /* of a fused step (src/engine/cpu/units/units.h); else NULL */
    void *work;                /* planned scratch of a fused step, not zeroed */
    ot_diag *diag;
} ot_call;

/* Memory for output k (dense): sets dims, strides, data of *c->out[k]. Nothing to do (OK, out
 * stays NULL) for an output that is not wanted. Fails: OT_E_NOMEM, OT_E_INPUT when rank or size
 * is out of bounds. */
ot_status ot_call_output(ot_call *c, uint32_t k, ot_dtype t, uint32_t rank,
                         const int64_t *dims) OT_MUST_USE;
/* Output k is input i seen with other dims (same bytes, dense): no copy where the memory plan
 * allows it. */
ot_status ot_call_view(ot_call *c, uint32_t k, uint32_t i, uint32_t rank,
                       const int64_t *dims) OT_MUST_USE;
/* Zeroed memory until the call returns. NULL: no memory. */
void *ot_call_scratch(ot_call *c, size_t bytes);
/* "node 'name' (Op): ...", OT_E_INPUT. */
ot_status ot_call_fail(ot_call *c, const char *fmt, ...) OT_PRINTF(2, 3);
/* The usual checks, one line each; k counts inputs. */
/* at least so many inputs, none of these omitted */
ot_status ot_call_need(ot_call *c, uint32_t min_in);
/* Run a subgraph attribute: `in`: [n_in] values of its inputs; `out`: [n_out] receive its
 * outputs (owned by the caller, ot_nd_release). Values of the graphs around it are found by
 * name. */
ot_status ot_call_body(ot_call *c, const char *attr, ot_nd *in, uint32_t n_in, ot_nd *out,
                       uint32_t n_out) OT_MUST_USE;
/* Number of outputs of a subgraph attribute; 0 when absent. */
uint32_t ot_call_body_outputs(const ot_call *c, const char *attr);
void ot_nd_release(ot_nd *a);                   /* drop the block; zero the array */
void ot_nd_share(ot_nd *to, const ot_nd *from); /* another reference to the same memory */
/* heap */
ot_status ot_nd_new(ot_nd *a, ot_dtype t, uint32_t rank, const int64_t *dims,
                    ot_diag *d) OT_MUST_USE;
/* An empty sequence of tensors of type t; a further reference to `item` at its end (only while
 * nobody else shares the sequence). */
ot_status ot_nd_list_new(ot_nd *a, ot_dtype t, ot_diag *d) OT_MUST_USE;
ot_status ot_nd_list_push(ot_nd *a, const ot_nd *item, ot_diag *d) OT_MUST_USE;
/* Instead of ot_call_output an implementation may put an array into *c->out[k] itself: one that it
 * made (ot_nd_new, ot_call_body), or another reference to an input or to an element of one
 * (ot_nd_share). What no block owns is copied after the call. An empty optional is a zeroed
 * ot_nd. Only operators of control flow, sequences and optionals are given sequences and empty
 * optionals. */

typedef ot_status (*ot_op_fn)(ot_call *c);

/* ref/ref_operators.c, from the tables of ref/ref_operators.h. NULL: the engine does not have the
 * operator. */
ot_op_fn ot_op_reference(ot_op op);
ot_op_fn ot_op_reference_of(const ot_node *n); /* also of operators known by name only */
/* session/implementation_choice.c: a faster implementation for this very node, or NULL. It may call
 * the reference when it meets what it cannot do. */
ot_op_fn ot_op_fast(const ot_node *n);
/* What computes a node: a fast implementation, the reference where there is none or `reference`
 * asks for it. Some operators have a fast implementation only. NULL: the engine does not have
 * it. */
ot_op_fn ot_op_choose(const ot_node *n, bool reference);
/* Will a session run the node by a reference implementation, on more than a few elements? Fast
 * implementations that leave a rare form or type of operands to the reference are not seen here. */
bool ot_op_is_slow(const ot_graph *g, const ot_node *n);

/* ---- sessions ---- */

typedef struct ot_session ot_session; /* one model, ready to run; sessions share nothing */

/* Somewhere else for the steps of a session to run: a device. The session reads the model,
 * computes constants and makes a step of each node that runs; what becomes of the steps is up to
 * this. */
typedef struct ot_backend {
    /* Once, when the session is made: its top schedule has steps, operands, constants. *state is
     * to be freed with free. */
    ot_status (*make)(const struct ot_backend *place, ot_session *s, void **state);
    /* Inputs lie in their slots; afterwards results lie in theirs. */
    ot_status (*run)(void *state);
    void (*free)(void *state); /* accepts NULL */
    void *with;                /* what `make` wants to know */
} ot_backend;

typedef struct ot_session_options {
    const ot_backend *place; /* borrowed until ot_session_free; NULL: here */
    uint32_t threads;        /* 0: 1 */
    ot_simulation executor;  /* whose threads these are; run NULL: the session's own */
    bool reference;          /* reference implementations only */
    /* the model serves this session only: contents of initializers that implementations keep in
     * another form are given back, and the model cannot be written or used again */
    bool releases;
    /* to learn whether the engine takes the model: no arena, no packed weights, no constants are
     * made, and the session cannot run */
    bool checks_only;
    /* to learn what it would hold: constants are computed, but no weights are packed, there is no
     * arena, and the session cannot run */
    bool plans_only;
    /* fill arena memory with junk where no value lives, and outputs before they are computed */
    bool poison;
    /* lay bytes around all memory that is planned or from the heap, and end the program when a step
     * wrote to them */
    bool guards;
    /* [n_shapes] dimensions of inputs; usually those of the arrays to come */
    const ot_shape_binding *shapes;
    size_t n_shapes;
    /* [n_overrides] initializers that are inputs, too, with other contents */
    const struct ot_override *overrides;
    size_t n_overrides;
} ot_session_options;

typedef struct ot_override {
    const char *name;
    ot_nd array; /* dense; borrowed until ot_session_free */
} ot_override;

typedef struct ot_session_figures {
    int64_t planned_peak; /* bytes of the arena */
    /* arena + most heap bytes of values and scratch at one time, over all runs so far */
    int64_t peak;
    int64_t weight_bytes;    /* of initializers, and of constants computed from them */
    uint32_t n_nodes;        /* that a run executes, bodies once */
    uint32_t n_folded;       /* nodes computed once, when the session was made */
    uint32_t n_mispredicted; /* values, over all runs, that were not what the memory plan foresaw */
} ot_session_figures;

/* Borrows the model (shapes are inferred in it) until ot_session_free. Fails with OT_E_INPUT
 * naming node and operator when the engine cannot run it. */
ot_status ot_session_new(ot_model *m, const ot_session_options *o, ot_diag *d,
                         ot_session **out) OT_MUST_USE;
void ot_session_free(ot_session *s); /* accepts NULL */
/* those that must be bound: initializers are not */
uint32_t ot_session_inputs(const ot_session *s);
uint32_t ot_session_outputs(const ot_session *s);
const ot_value *ot_session_input(const ot_session *s, uint32_t k);
const ot_value *ot_session_output(const ot_session *s, uint32_t k);
/* in: [inputs] dense arrays of the right type and shape, not changed, read in place. out:
 * [outputs] receive arrays that stay valid until the next run or ot_session_free (data == NULL
 * in), or are written in place (data given, dims matching). */
ot_status ot_session_run(ot_session *s, const ot_nd *in, ot_nd *out, ot_diag *d) OT_MUST_USE;
/* Later runs add their steps to t (engine_trace.h), under the number of the worker and of the
 * tile; NULL: no more. Borrowed. */
struct ot_trace;
void ot_session_trace(ot_session *s, struct ot_trace *t);
void ot_session_figures_get(const ot_session *s, ot_session_figures *out);
/* Per step: seconds of the last run, in execution order; then those of tile bodies (all tiles
 * and workers together, which the steps of their While contain). *n of them. */
typedef struct ot_node_time {
    const char *name, *op;
    double seconds;
} ot_node_time;
const ot_node_time *ot_session_times(const ot_session *s, uint32_t *n);

/* ---- npy.c ---- */

/* Read an .npy (versions 1 to 3, little-endian, C order or Fortran order) or a TensorProto (.pb).
 */
ot_status ot_npy_read(const char *path, ot_diag *d, ot_nd *out) OT_MUST_USE;
/* Into an open file; `what` opens the message. OT_E_INPUT: a type that .npy has not. */
struct ot_sink;
ot_status ot_npy_put(struct ot_sink *sink, const ot_nd *a, const char *what,
                     ot_diag *d) OT_MUST_USE;

#endif
