/* How one run of a chain goes: made from dims and strides at the start of ot_chain_run, then
 * read by all threads.
 *
 *   dims, strides --> outer dims x rows x cols           a block: some rows of all cols, or some
 *                                                        cols of one row
 *   cells         --> places: memory of an array, a register, one number
 *   steps         --> setup (once for each run over rows x cols) and body (once a block)
 *
 * Private to chain_plan.c and chain_run.c.
 */
#ifndef OT_ENGINE_CPU_CHAIN_CHAIN_PLAN_H
#define OT_ENGINE_CPU_CHAIN_CHAIN_PLAN_H

#include "chain_ops.h"

#define OT_CHAIN_ARRAYS (OT_CHAIN_INPUTS + OT_CHAIN_OUTPUTS)
/* of each cell, and of its number spread over a register */
#define OT_CHAIN_PLACES (2 * OT_CHAIN_CELLS)
#define OT_CHAIN_MOVES  (2 * OT_CHAIN_PLACES + OT_CHAIN_OUTPUTS)
#define OT_CHAIN_BYTES  (24 * 1024) /* all registers: most of an L1 cache */
/* bytes of a large output: more than a last-level cache keeps */
#define OT_CHAIN_LARGE     (40 << 20)
#define OT_CHAIN_BLOCK_MAX 1024 /* elements of a register */
#define OT_CHAIN_BLOCK_MIN (OT_CHAIN_BYTES / 4 / OT_CHAIN_PLACES)

typedef enum ot_chain_where {
    OT_CHAIN_NOWHERE = 0,
    OT_CHAIN_NUMBER,   /* of the frame, one number */
    OT_CHAIN_REGISTER, /* of the frame */
    OT_CHAIN_MEMORY    /* of array `index`, as it lies */
} ot_chain_where;

typedef struct ot_chain_storage {
    uint8_t where;  /* ot_chain_where */
    uint8_t size;   /* bytes of an element */
    uint16_t index; /* register, array */
    uint16_t last;  /* body move that reads it last */
    bool keep;      /* holds for all blocks of a run */
} ot_chain_storage;

typedef enum ot_chain_move_kind {
    OT_CHAIN_COMPUTE,
    OT_CHAIN_SPREAD, /* place in[0], one number, over a register */
    OT_CHAIN_LOAD,   /* array */
    OT_CHAIN_CYCLE,  /* the cols of array, again for each row of a full block */
    OT_CHAIN_STORE,  /* to array */
    OT_CHAIN_STREAM, /* to array, which is dense, past the caches */
    OT_CHAIN_STORE_NUMBER
} ot_chain_move_kind;

typedef struct ot_chain_move {
    uint8_t kind, code, single, amount; /* amount: 0 one element, 1 a full block, 2 the block */
    uint16_t to, in[3];                 /* places */
    uint16_t array;
} ot_chain_move;

typedef struct ot_chain_dim {
    int64_t n;
    int64_t strides[OT_CHAIN_ARRAYS]; /* inputs, then outputs */
} ot_chain_dim;

typedef struct ot_chain_schedule {
    const ot_chain *c;
    uint32_t n_arrays;
    char *base[OT_CHAIN_ARRAYS];
    uint8_t size[OT_CHAIN_ARRAYS];
    ot_chain_dim outer[OT_CHAIN_RANK]; /* [n_outer] */
    uint32_t n_outer;
    ot_chain_dim rows, cols;
    bool by_rows;     /* blocks are whole rows; else rows.n is 1 */
    int64_t block;    /* rows of a block, or cols */
    int64_t n_blocks; /* of a run */
    int64_t n_runs;
    int64_t register_bytes;
    bool is_large; /* outputs are larger than caches: they are not read first, nor kept */
    ot_chain_storage places[OT_CHAIN_PLACES];
    uint32_t n_places, n_registers;
    ot_chain_move setup[OT_CHAIN_MOVES], body[OT_CHAIN_MOVES];
    uint32_t n_setup, n_body;
} ot_chain_schedule;

/* false: there is nothing to compute. */
bool ot_chain_plan_make(ot_chain_schedule *p, const ot_chain *c, uint32_t rank, const int64_t *dims,
                        const ot_chain_array *in, const ot_chain_array *out);

#endif
