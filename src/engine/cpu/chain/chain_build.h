/* A chain while it is made: cells in the order in which they come up. Private to chain.c,
 * chain_nodes.c, chain_fuse.c. */
#ifndef OT_ENGINE_CPU_CHAIN_CHAIN_BUILD_H
#define OT_ENGINE_CPU_CHAIN_CHAIN_BUILD_H

#include "chain_ops.h"

typedef enum ot_chain_cell_kind {
    OT_CHAIN_INPUT,
    OT_CHAIN_CONSTANT,
    OT_CHAIN_RESULT
} ot_chain_cell_kind;

typedef struct ot_chain_build_cell {
    ot_chain_cell_kind kind;
    ot_chain_cell cell;
    ot_id value;        /* INPUT */
    bool is_channel;    /* INPUT */
    ot_chain_code code; /* RESULT */
    uint32_t in[3];     /* RESULT: cells, before this one */
    uint32_t uses;      /* operands of others, and outputs */
} ot_chain_build_cell;

typedef struct ot_chain_build {
    const ot_graph *g;
    ot_chain_build_cell cells[OT_CHAIN_CELLS];
    uint32_t n_cells;
    struct {
        ot_id value;
        uint32_t cell;
    } * made; /* [n_made] values that nodes have made */
    uint32_t n_made;
    uint32_t outputs[OT_CHAIN_OUTPUTS];
    uint32_t n_outputs;
    bool full; /* a cell did not fit: OT_NONE was returned in its place, and is from now on */
} ot_chain_build;

/* chain.c. Cells, or OT_NONE when there is no room (or an operand is OT_NONE). */
uint32_t ot_chain_operand(ot_chain_build *b, ot_id value, bool is_channel);
uint32_t ot_chain_constant(ot_chain_build *b, ot_chain_cell c);
/* Instructions on constants are constants. Operands that the instruction does not have are ignored.
 */
uint32_t ot_chain_emit(ot_chain_build *b, ot_chain_code code, uint32_t x, uint32_t y, uint32_t z);
bool ot_chain_is_constant(const ot_chain_build *b, uint32_t cell);
/* x, a float, rounded to a number of 16 bits of type t. */
uint32_t ot_chain_round(ot_chain_build *b, ot_dtype t, uint32_t x);
/* Does SWISH take this factor? Its intermediate results overflow for factors near 0. */
static inline bool ot_chain_is_gate(float factor) { return factor > 1e-3f && factor < 1e3f; }

/* chain_nodes.c: the cell that a node makes, or OT_NONE. */
uint32_t ot_chain_node(ot_chain_build *b, const ot_node *n);

/* chain_fuse.c: several instructions become one where a single one reads what the others make.
 * Counts uses. */
void ot_chain_fuse(ot_chain_build *b);

#endif
