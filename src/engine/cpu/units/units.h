/* Units: what runs as one step, and values in the layouts in which units read and write them.
 * Lowering (lower/lower.h) finds units and has them written; what writes a unit of its own kind
 * (a convolution, a chain) stands with its implementations. Private to the engine.
 *
 *   unit   [Conv BN Relu]  reads x, writes y; one step when it is written
 *   value  y               version[LW_BLOCK] = 57, version[LW_PLAIN] = y (made by a change of
 *                          layout, if somebody wants it)
 *
 * A value may exist in several versions at once (a convolution reads it blocked by channel, a
 * Reshape reads it plain); each version has an id of its own from g->n_values on, but the dense
 * plain one, which is the value's own slot: subgraphs and callers find it there.
 */
#ifndef OT_ENGINE_CPU_UNITS_UNITS_H
#define OT_ENGINE_CPU_UNITS_UNITS_H

#include "engine/core/session.h"

typedef enum lw_layout {
    LW_PLAIN = 0,  /* dense, row-major */
    LW_BLOCK,      /* blocked by channel, no holes */
    LW_PLAIN_VIEW, /* a window of a plain array */
    LW_BLOCK_VIEW, /* a window of a blocked array */
    LW_LAYOUTS
} lw_layout;

#define LW_BIT(layout) (1u << (layout))
#define LW_ANY_PLAIN   (LW_BIT(LW_PLAIN) | LW_BIT(LW_PLAIN_VIEW))
#define LW_ANY_BLOCK   (LW_BIT(LW_BLOCK) | LW_BIT(LW_BLOCK_VIEW))

typedef struct lw_value {
    bool is_static;            /* a tensor whose type and dims are known */
    bool is_kept;              /* needed as it is in the model: a result, or read by a subgraph */
    const ot_value *x;         /* what the graph (or an enclosing one) says of it */
    ot_slot *slot;             /* the value's own */
    uint32_t maker;            /* unit, or OT_NONE: constant, input, outer */
    uint32_t first, n_readers; /* units that read it: readers[first ..], each once */
    ot_id version[LW_LAYOUTS];
    /* a window of another value (a Slice with constant bounds and steps of 1): `of` from `start`
     * on; OT_NONE */
    ot_id of;
    const int64_t *start; /* [rank] */
    /* of a constant of 16 bits: its contents as float32, once somebody asked; dies with lowering */
    const float *wide;
} lw_value;

typedef enum lw_kind {
    LW_NODE = 0, /* as it was: dense plain operands */
    LW_CONV,
    LW_DECONV, /* ConvTranspose */
    LW_QCONV,  /* of 8-bit tensors */
    LW_POOL,
    LW_RESIZE,
    LW_ATTENTION,
    LW_CHAIN,
    LW_WINDOW, /* makes nothing: its value is a window of another */
    LW_CONCAT,
    LW_TILES,    /* Alloc and While */
    LW_TILE_IN,  /* onnx_tile.Slice */
    LW_TILE_OUT, /* onnx_tile.Deslice */
    LW_GONE      /* part of another unit */
} lw_kind;

typedef struct lw_unit {
    lw_kind kind;
    ot_step *step;         /* that it began as */
    const ot_node **nodes; /* [n_nodes] in order */
    uint32_t n_nodes;
    const ot_id *in, *out; /* [n_in], [n_out] values */
    uint32_t n_in, n_out;
    void *plan; /* what its implementation wants to know; kinds but LW_NODE */
} lw_unit;

typedef struct lw_pass {
    ot_schedule *p;
    ot_arena *a;       /* of the session */
    ot_arena *scratch; /* dies with lowering */
    uint32_t block;    /* channels */
    lw_value *v;       /* [g n_values] */
    lw_unit *units;    /* [n_units] one for each step; fused ones at the place of their last node */
    uint32_t n_units;
    uint32_t *readers;
    ot_slot **ids; /* [n_ids] slots by id */
    size_t n_ids, cap_ids;
    ot_step *steps; /* [n_steps] the result */
    size_t n_steps, cap_steps;
    bool starved; /* lw_const_real had no memory: the pass fails */
} lw_pass;

/* ---- units.c ---- */

/* The only unit that reads v, if v is nothing else; OT_NONE. */
uint32_t lw_only_reader(const lw_pass *l, ot_id v);
/* Who reads what, anew: a fuser made units read other values than their nodes do. */
ot_status lw_find_readers(lw_pass *l) OT_MUST_USE;
bool lw_is_f32(const lw_pass *l, ot_id v);  /* static, float32, rank <= 8, not empty */
bool lw_is_real(const lw_pass *l, ot_id v); /* the same, float32 or of 16 bits (core/half.h) */
bool lw_same_dims(const lw_pass *l, ot_id a, ot_id b);
/* Contents of a constant float32 value in memory, or NULL. */
const float *lw_const_f32(const lw_pass *l, ot_id v);
/* The same of a constant of 16 bits, too: a widened copy, which dies with lowering. */
const float *lw_const_real(lw_pass *l, ot_id v);
/* A constant of one element, of either type. */
bool lw_scalar(const lw_pass *l, ot_id v, float *out);
/* Units `parts` [n] become one at the last of them. */
ot_status lw_merge(lw_pass *l, const uint32_t *parts, uint32_t n, lw_kind kind, ot_id_list in,
                   ot_id_list out, void *plan) OT_MUST_USE;

/* How many threads share a step of so many multiply-adds: waking them up costs some microseconds.
 */
uint32_t lw_threads(const lw_pass *l, double work);

/* ---- versions.c: writing steps ---- */

/* A version of v that is one of `accept` (LW_BIT), made now if there is none: by a step that
 * changes the layout to dense `otherwise`. *id: what to read. */
ot_status lw_need(lw_pass *l, ot_id v, unsigned accept, lw_layout otherwise, ot_id *id) OT_MUST_USE;
/* Does v exist in this layout, or as a window of what exists so? */
bool lw_has(const lw_pass *l, ot_id v, unsigned layouts);
/* A plain window of that source has no holes. */
bool lw_stays_dense(const ot_nd *window, const ot_nd *source);
/* A new version of v; its id. */
ot_status lw_make(lw_pass *l, ot_id v, lw_layout layout, ot_id *id) OT_MUST_USE;
/* Append a step. ids are copied. */
ot_status lw_push(lw_pass *l, const ot_node *node, ot_op_fn run, const void *plan, ot_id_list in,
                  ot_id_list out, ot_step **step) OT_MUST_USE;

#endif
