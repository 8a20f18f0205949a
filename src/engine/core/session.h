/* Private to the engine's core: how a session holds its graphs, and how a frame runs one.
 *
 *   session --- schedule (top graph) --- step (node) --- schedule (of a subgraph of the node, or
 *                |                        |              of the function that it calls) --- ...
 *                |                        |
 *                |                        implementation, addresses of inputs and outputs, what
 *                |                        dies after it, bodies
 *                slots, one a value: arrays; their memory is planned (top graph only) or from the
 *                heap
 *
 * Graphs nest strictly and a body never runs inside itself, so each graph needs one frame only:
 * slots and addresses are fixed when the session is made, and a step's operands are found
 * without looking anything up.
 */
#ifndef OT_ENGINE_CORE_SESSION_H
#define OT_ENGINE_CORE_SESSION_H

#include "pack/pack.h"
#include "engine.h"
#include "packed_weights.h"
#include "pool.h"

#include <stdatomic.h>

#define OT_ARENA_ALIGN 64
#define OT_POISON      0xA8
#define OT_GUARD       64
/* of a session: functions that call functions grow without measure */
#define OT_STEPS_MAX (1u << 20)
#define OT_CALLS_MAX (1u << 14) /* of functions */

/* ---- block.c: reference-counted memory ---- */

/* What lives on the heap now, and the most there ever was. */
typedef struct ot_heap {
    _Atomic int64_t live, peak;
    bool guards; /* around each block: see guards.c */
} ot_heap;

void ot_heap_add(ot_heap *heap, int64_t bytes); /* or take away */

typedef struct ot_block {
    ot_heap *heap; /* that counts it, or NULL */
    size_t total;  /* bytes asked of the allocator */
    size_t bytes;
    uint32_t guard;        /* bytes of a guard at either end, or 0 */
    _Atomic uint32_t refs; /* tiles that run at once may share what lies outside of them */
} ot_block;

/* `bytes` bytes, not set, aligned to OT_ARENA_ALIGN. NULL: no memory. */
ot_block *ot_block_new(ot_heap *heap, size_t bytes) OT_MUST_USE;
void *ot_block_data(ot_block *b);
void ot_block_ref(ot_block *b);
void ot_block_unref(ot_block *b); /* accepts NULL */

/* ---- guards.c: bytes before and behind memory that nobody may write to ---- */

/* OT_GUARD bytes at either end of these, which are the caller's to give. */
void ot_guard_fill(void *data, size_t bytes);
bool ot_guard_intact(const void *data, size_t bytes);

/* nd.c: dense memory for `a` whose dtype and dims are set. */
ot_status ot_nd_allocate(ot_nd *a, ot_heap *heap, ot_diag *d) OT_MUST_USE;
/* Bytes of a dense array of these dims; false when they cannot be counted or the type is none
 * that is held. */
bool ot_nd_bytes(ot_dtype t, uint32_t rank, const int64_t *dims, int64_t *out) OT_MUST_USE;
/* Bytes from the first element to the last of an array that is dense, or blocked without holes:
 * channels that pad included. */
bool ot_nd_span(const ot_nd *a, int64_t *out) OT_MUST_USE;
bool ot_nd_same_shape(const ot_nd *a, ot_dtype t, uint32_t rank, const int64_t *dims);
/* *to becomes an array of its own memory with the contents of `from`, which is dense or a list. */
ot_status ot_nd_copy(ot_nd *to, const ot_nd *from, ot_heap *heap, ot_diag *d) OT_MUST_USE;
/* Is all its memory in blocks (or is there none)? */
bool ot_nd_is_owned(const ot_nd *a);
/* "[1,3,?]" into buf; returns buf. */
char *ot_dims_text(int64_t rank, const int64_t *dims, char *buf, size_t n);

/* ---- schedules ---- */

struct ot_schedule;
struct ot_session;

typedef struct ot_body {
    const char *attr; /* name of the subgraph attribute; "" for the function that the node calls */
    struct ot_schedule *schedule;
} ot_body;

typedef enum ot_slot_memory {
    OT_PLACE_HEAP = 0, /* from the heap, freed after the last use */
    OT_PLACE_ARENA,    /* planned: at `offset` */
    /* planned: the memory of an input of the step (`under`), whatever that is, lives as long */
    OT_PLACE_VIEW,
    OT_PLACE_CALLER /* a graph output for which the caller gave memory: `caller` */
} ot_slot_memory;

/* A value of a schedule, or one that lowering added. */
typedef struct ot_slot ot_slot;
struct ot_slot {
    ot_nd nd;
    ot_slot_memory place;
    /* an initializer, or computed when the session was made: never released */
    bool is_const;
    bool absent;         /* of a function: an input that the call omits */
    bool is_result;      /* output of the graph: kept until the next run */
    bool is_borrowed;    /* input: bound by whoever runs the graph, released after it ran */
    bool handed;         /* by ot_call_output or ot_call_view, in this step */
    uint32_t born, last; /* steps that write it and read it last; last == born: nobody reads it */
    int64_t offset;      /* of OT_PLACE_ARENA */
    /* dtype and dims that the plan foresaw (ARENA), or the caller's array (CALLER) */
    ot_nd want;
    /* dtype, dims, strides, layout that lowering foresaw; type unknown: it foresaw nothing */
    ot_nd fore;
    const ot_slot *under; /* VIEW made by a fused step in place: whose memory */
};

typedef struct ot_step {
    const ot_node *node; /* of a fused step: the one it is named after */
    ot_op_fn run;
    ot_op_state state;
    bool is_fused;    /* made by lowering (lower.h): its outputs are as `fore` says */
    const void *plan; /* what the implementation of a fused step wants to know; may be NULL */
    int64_t work;     /* bytes of scratch that are planned */
    int64_t work_at;  /* their offset; -1: from the heap */
    uint32_t n_in, n_out;
    /* [n_in] values read, OT_NONE: omitted; those of lowering have ids from g->n_values on */
    const ot_id *in_ids;
    const ot_id *out_ids; /* [n_out] */
    const ot_nd **in;     /* [n_in] NULL: omitted */
    ot_nd **out;          /* [n_out] NULL: not wanted */
    ot_slot **out_slots;  /* [n_out] same */
    /* output 0 may be written over this input if nobody reads that later; OT_NONE: no */
    uint32_t in_place;
    bool is_view;      /* output 0 is input 0 with other strides */
    bool is_tiles;     /* its bodies read, and write its outputs */
    ot_slot **release; /* [n_release] slots that nobody reads after this step */
    uint32_t n_release;
    ot_body *bodies; /* [n_bodies] */
    uint32_t n_bodies;
    bool takes_lists; /* sequences and empty optionals are its business */
} ot_step;

typedef struct ot_frame {
    struct ot_schedule *schedule;
    ot_step *step;      /* that runs now */
    ot_block **scratch; /* [n_scratch] of this step */
    size_t n_scratch, cap_scratch;
} ot_frame;

/* Nodes that lowering made one step of; a single one only on bytes. */
typedef struct ot_merged {
    /* of group: "convolution", "attention", "product", "chain", "bytes" */
    const char *kind;
    const ot_node *const *nodes; /* [n] */
    uint32_t n;
} ot_merged;

/* A graph made ready to run, and the frame that runs it. */
typedef struct ot_schedule {
    struct ot_session *s;
    struct ot_schedule *next;  /* of the session */
    struct ot_schedule *outer; /* NULL: top graph or function */
    ot_graph *g;
    ot_slot *slots; /* [g n_values]; those of outer values are not used */
    /* [n_ids] the slot of each value, maybe an outer schedule's; then those that lowering added */
    ot_slot **at;
    uint32_t n_ids;
    ot_step *steps; /* [n_steps] */
    uint32_t n_steps;
    ot_frame frame;
    /* [n_steps] of a tile body: all tiles of the last run together; else NULL */
    ot_node_time *times;
    void **streams; /* [threads] oneDNN's, the first n_streams */
    uint32_t n_streams;
    /* of the caller of a body, of a worker while tiles run; NULL: the session's */
    ot_diag *d;
    uint32_t threads;    /* that its implementations may use */
    uint32_t worker;     /* of a tile body: the thread that runs it */
    int64_t tile;        /* the task that it is running; -1: it is no tile body */
    char *base;          /* where its planned values lie */
    int64_t arena_bytes; /* of these */
    ot_pack_item *items; /* [n_items] of the plan */
    int64_t *offsets;    /* [n_items] */
    uint32_t n_items;
    ot_merged *merged; /* [n_merged] tests hold them against what the planner believes */
    uint32_t n_merged;
} ot_schedule;

struct ot_session {
    ot_model *m;
    ot_arena *a; /* everything here but arrays, itself included */
    ot_diag *d;  /* of the call that runs now */
    uint32_t threads;
    ot_pool *pool;    /* NULL: one thread */
    bool checks_only; /* of the options: it cannot run, */
    bool plans_only;  /* nor can this one */
    bool reference, poison, guards, releases;
    const ot_backend *place; /* NULL: steps run here */
    void *placed;            /* its state */
    struct ot_trace *trace;  /* NULL: steps are not recorded */
    /* of the arrays that runs bind; NULL: all of each lies in memory */
    const struct ot_row_windows *windows;
    ot_schedule *top;
    /* Lowering a tiled region needs schedules, which are lowered themselves: *p, the schedule of a
     * tile's body g inside `outer` (made now if NULL), gets places for its values and times. By
     * whoever makes schedules. */
    ot_status (*hire)(struct ot_schedule *outer, ot_graph *g, uint32_t threads,
                      struct ot_schedule **p);
    ot_heap heap;
    ot_block *arena; /* NULL: nothing is planned */
    int64_t arena_bytes;
    ot_id *inputs; /* [n_inputs] to be bound */
    uint32_t n_inputs;
    ot_schedule *all;        /* every schedule, newest first */
    void *dnnl;              /* oneDNN's engine, when it was asked for */
    int64_t winograd_growth; /* bytes by which transformed weights exceed the model's, so far */
    ot_packed *packed;       /* weights in the forms that implementations want, newest first */
    /* [g n_outputs] results that lie in memory that is not ours to hand out */
    ot_nd *copies;
    ot_node_time *times; /* [n_times] steps of the top schedule, then of tile bodies */
    uint32_t n_times;
    struct {
        ot_value *value; /* of the top graph */
        const ot_tensor *init;
    } * overridden; /* [n_overridden] what the model said */
    uint32_t n_overridden;
    ot_session_figures figures;
    uint32_t n_steps_all, n_calls;
};

/* schedule.c: the schedule of g; bodies and functions, too. `absent`: NULL, or of each graph
 * input: does the call omit it? Steps share their work among so many threads at most. It is in
 * s->all, also when this fails. */
ot_status ot_schedule_new(struct ot_session *s, ot_graph *g, ot_schedule *outer, uint32_t threads,
                          uint32_t depth, const bool *absent, ot_schedule **out) OT_MUST_USE;
/* What a session's `hire` is. */
ot_status ot_schedule_hire(ot_schedule *outer, ot_graph *g, uint32_t threads,
                           ot_schedule **p) OT_MUST_USE;
/* schedule_const.c: the slot of an initializer. */
ot_status ot_slot_set_tensor(ot_schedule *p, ot_slot *slot, const ot_tensor *t) OT_MUST_USE;
/* Run the step now and make its outputs constants, if it depends on constants only and that is
 * cheap. *done: it was. */
ot_status ot_step_fold(ot_schedule *p, ot_step *step, bool *done) OT_MUST_USE;
/* Frees what slots, steps and frame hold. */
void ot_schedule_release(ot_schedule *p);
/* Make room for p->times. */
ot_status ot_schedule_time(ot_schedule *p) OT_MUST_USE;

/* dnnl_util.c: the number of threads that oneDNN takes, for primitives that are made or run by
 * this thread. Returns what it was. The engine lets it take one only: see dnnl_util.h. */
int ot_dnnl_threads(uint32_t threads);
/* Accept NULL. */
void ot_dnnl_release_stream(void *stream);
void ot_dnnl_release_engine(void *engine);

/* lower.c: fuse steps and give values layouts. Requires steps; lifetimes come after. */
ot_status ot_lower(ot_schedule *p) OT_MUST_USE;
/* The graph of p tells of outer values what the graphs around it know. */
void ot_schedule_describe_outer(ot_schedule *p);
/* weight_release.c: when all schedules are made: fill packed weights, and give back what they
 * were made of. */
ot_status ot_finish_weights(struct ot_session *s) OT_MUST_USE;

/* session_plan.c: places for the values of p, relative to p->base, and p->arena_bytes. Requires
 * lifetimes. */
ot_status ot_schedule_plan(ot_schedule *p) OT_MUST_USE;

/* guards.c: of planned memory that begins to live with step k; of all that lives during it, and of
 * what it made on the heap. Ends the program when one was written to, naming the step. */
void ot_guards_open(const ot_schedule *p, uint32_t k);
void ot_guards_check(const ot_schedule *p, uint32_t k);

/* frame.c */
ot_status ot_step_run(ot_schedule *p, ot_step *step) OT_MUST_USE;
/* All steps in order; times: NULL or [n_steps]. Results stay in their slots; on failure nothing
 * does. */
ot_status ot_schedule_run(ot_schedule *p, ot_node_time *times) OT_MUST_USE;
/* Release what a run left: all slots but constants. */
void ot_schedule_clear(ot_schedule *p);
/* The implementation of a call of a model-local function. */
ot_status ot_call_function(ot_call *c);

/* Give back the scratch of a frame; its list, too. */
void ot_frame_release(ot_frame *f);

/* op_call.c: output k of a fused step as lowering foresaw it: its memory, contents not set
 * (in place: those of the input). */
ot_status ot_call_place(ot_call *c, uint32_t k) OT_MUST_USE;
/* "node 'x' (Op)" into buf; returns buf. */
char *ot_node_label(const ot_node *n, char *buf, size_t size);
#define OT_LABEL_MAX 400

#endif
