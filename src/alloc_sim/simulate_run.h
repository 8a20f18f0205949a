/* A simulation at work: graphs that run, their chunks, their loops (private to this folder). */
#ifndef OT_ALLOC_SIM_SIMULATE_RUN_H
#define OT_ALLOC_SIM_SIMULATE_RUN_H

#include "chunk_arena.h"
#include "simulate.h"

/* Pieces that live together: of a sequence, of a loop's results. */
typedef struct ot_sim_pieces {
    uint32_t *chunks; /* [n] */
    size_t n, cap;
} ot_sim_pieces;

/* A graph that runs again and again. */
typedef struct ot_sim_frame {
    ot_sim_schedule plan;
    ot_pattern pattern;
    bool has_pattern;  /* it ran once */
    int64_t converted; /* bytes of weights that are converted anew in each run, before all else */
    /* of the run at hand: a graph does not run within itself */
    uint32_t *left;       /* [n_buffers] readers to come */
    uint32_t *chunk;      /* [n_buffers] OT_NONE: not there, or in the block */
    ot_sim_pieces **held; /* [n_values] pieces of a sequence */
} ot_sim_frame;

typedef enum ot_tape_kind {
    OT_TAPE_TAKE,
    OT_TAPE_TAKE_ROOMY,
    OT_TAPE_RELEASE,
    OT_TAPE_KEEP,   /* beside what the visit keeps */
    OT_TAPE_INSERT, /* into a sequence */
    OT_TAPE_HAND,   /* to the next iteration */
    OT_TAPE_LOOK    /* ot_sim_look */
} ot_tape_kind;

typedef struct ot_tape_entry {
    ot_tape_kind kind;
    uint32_t slot, at; /* of the chunk; of what is handed on */
    int64_t bytes;     /* that are taken */
    ot_sim_pieces *to; /* inserted */
} ot_tape_entry;

/* What an iteration asks of the arena (simulate_tape.c). */
typedef struct ot_sim_tape {
    ot_tape_entry *entries; /* [n] */
    size_t n, cap;
    uint32_t *slots; /* [n_slots] chunks that it took; OT_NONE while it is taped: has no more */
    size_t n_slots, cap_slots;
    int attempts;
    bool is_broken; /* something that the next iteration may do otherwise */
    bool keeps;     /* pieces, in each iteration */
    bool no_memory; /* to tape it in */
    bool is_done;   /* the next one may be replayed */
} ot_sim_tape;

typedef struct ot_simulator {
    const ot_runtime *r;
    bool static_shape;
    ot_sim_orders orders;  /* of changes of layout, */
    uint32_t other_orders; /* and in which of them a graph runs otherwise */
    ot_arena *a;
    ot_chunk_arena *memory;
    const ot_graph **graphs; /* [n] of frames */
    ot_sim_frame **frames;
    size_t n, cap, cap_frames, n_frames;
    /* [n_slots], a power of two: by a graph's address, its place in these plus one; 0: free */
    uint32_t *slots;
    size_t n_slots;
    uint32_t n_unknown;
    /* iterations that one which is simulated stands for, in long loops: its pieces are so many
     * times as large */
    int64_t each;
    uint32_t n_loops;  /* bodies that run, one in another */
    ot_sim_tape *tape; /* of the iteration at hand, where one is made; else NULL */
    /* the step that runs, of the graph or its branch: a loop is one */
    const ot_sim_step *now;
    const ot_sim_frame *now_frame;
    const ot_sim_stop *stop;        /* NULL: none */
    int64_t enough;                 /* bytes that are touched, above which it ends */
    bool stops;                     /* it does */
    int64_t most;                   /* bytes that were touched up to now, */
    const ot_sim_step *last;        /* since this step, */
    const ot_sim_frame *last_frame; /* of this frame */
    bool is_first;           /* run: the next one may take a block for all of it before it starts */
    const ot_sim_step *much; /* the last step of the first run that took much, */
    const ot_sim_frame *much_frame; /* of this frame */
} ot_simulator;

/* A result that a loop's body writes into where it lies among all, which come with the first. */
typedef struct ot_sim_stack {
    int64_t bytes;   /* of all; 0: the result is another kind */
    uint32_t *chunk; /* the loop's; OT_NONE: not there yet */
} ot_sim_stack;

/* One run of a frame. */
typedef struct ot_sim_run {
    ot_simulator *x;
    ot_sim_frame *f;
    uint32_t *left, *chunk; /* the frame's */
    ot_sim_pieces **held;
    ot_sim_pieces late; /* results of a branch that are handed out */
    bool in_block, elsewhere;
    const ot_sim_stack *stacks; /* [n_outputs]; NULL: none */
} ot_sim_run;

/* What a graph is run with, and what becomes of its results. */
typedef struct ot_sim_visit {
    ot_sim_pieces *const *fed; /* [n_fed] pieces of its inputs, NULL: a tensor */
    uint32_t n_fed;
    bool elsewhere;             /* results are written into memory that is there already */
    const ot_sim_stack *stacks; /* [g->n_outputs] or comes with them; NULL: none does */
    ot_sim_pieces *kept;        /* else they are added here; NULL: they are given back at once */
    /* [g->n_outputs] but for those that are to be handed on: chunks of these; NULL: none are */
    uint32_t *into;
    const bool *handed;   /* [g->n_outputs] which */
    ot_sim_pieces **made; /* [g->n_outputs] pieces of its outputs, or NULL */
    /* of a loop of which nothing but the arena is another in the next visit; NULL: there is none.
     * From when it is done on, visits replay it and leave `made` as it is */
    ot_sim_tape *tape;
    const ot_node *if_node; /* the If that takes this branch; NULL: none */
} ot_sim_visit;

/* One run of g. Fails: OT_E_NOMEM. */
ot_status ot_sim_run_graph(ot_simulator *x, const ot_graph *g, const ot_sim_visit *v) OT_MUST_USE;

/* A chunk of so many bytes; OT_NONE: of none. Fails: OT_E_NOMEM. */
ot_status ot_sim_take(ot_simulator *x, int64_t bytes, uint32_t *chunk) OT_MUST_USE;
/* Gives *chunk back, if there is one; it is OT_NONE then. */
void ot_sim_release(ot_simulator *x, uint32_t *chunk);
void ot_sim_release_pieces(ot_simulator *x, ot_sim_pieces *p);

/* The stack that value v of the graph is a part of; NULL: of none. */
const ot_sim_stack *ot_sim_stack_of(const ot_sim_run *u, uint32_t v);
/* The results of step s come. Fails: OT_E_NOMEM. */
ot_status ot_sim_take_results(ot_sim_run *u, const ot_sim_step *s) OT_MUST_USE;
/* Value v of the graph is a result for which there is memory already. */
bool ot_sim_lies_elsewhere(const ot_sim_run *u, uint32_t v);
/* Buffer b, which was taken, becomes part of the pattern. Fails: OT_E_NOMEM. */
ot_status ot_sim_record(ot_sim_run *u, uint32_t b) OT_MUST_USE;

/* The process may have grown, at the step that runs. */
void ot_sim_look(ot_simulator *x);

/* ---- simulate_tape.c: x->tape, where there is one ---- */

/* t, to be made anew; NULL: it cannot be, or has failed too often. */
ot_sim_tape *ot_tape_begin(ot_sim_tape *t);
void ot_tape_take(ot_simulator *x, int64_t bytes, bool roomy, uint32_t chunk);
void ot_tape_release(ot_simulator *x, uint32_t chunk);
void ot_tape_keep(ot_simulator *x, uint32_t chunk);
void ot_tape_insert(ot_simulator *x, ot_sim_pieces *to, uint32_t chunk);
void ot_tape_hand(ot_simulator *x, uint32_t chunk, uint32_t at);
void ot_tape_look(ot_simulator *x);
/* The iterations to come are replayed, and each keeps a piece: none is like another. */
bool ot_tape_keeps(const ot_sim_tape *t);
/* The iteration does what the next one may do otherwise. */
void ot_tape_break(ot_simulator *x);
/* Fails: OT_E_NOMEM (while it was taped). */
ot_status ot_tape_end(ot_sim_tape *t) OT_MUST_USE;
/* One more iteration as v->tape says. Fails: OT_E_NOMEM. */
ot_status ot_tape_replay(ot_simulator *x, const ot_sim_visit *v) OT_MUST_USE;

/* ---- simulate_loop.c ---- */

/* Step s, the loop n, runs its body. Fails: OT_E_NOMEM. */
ot_status ot_sim_loop_step(ot_sim_run *u, const ot_sim_step *s, const ot_node *n,
                           const ot_graph *body) OT_MUST_USE;

#endif
