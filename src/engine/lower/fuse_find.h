/* What several passes ask while they look for units, and what they make of the nodes that they
 * found (fuse_find.c). */
#ifndef OT_ENGINE_LOWER_FUSE_FIND_H
#define OT_ENGINE_LOWER_FUSE_FIND_H

#include "lower.h"

static inline bool lw_is_byte(ot_dtype t) { return t == OT_U8 || t == OT_I8; }

/* Operand k of a node or a unit; OT_NONE: left out. */
static inline ot_id lw_operand(const ot_node *n, uint32_t k)
{
    return k < n->n_in ? n->in[k] : OT_NONE;
}
static inline ot_id lw_operand_of(const lw_unit *u, uint32_t k)
{
    return k < u->n_in ? u->in[k] : OT_NONE;
}

/* Type and dims of v, when they are known; else NULL. */
const ot_nd *lw_shape(const lw_pass *l, ot_id v);
/* Constant contents of p's value v; NULL: it has none, or v is OT_NONE. */
const ot_nd *lw_constant(const ot_schedule *p, ot_id v);

/* A node, and the schedule that has its operands. */
typedef struct lw_source {
    const ot_schedule *p;
    const ot_node *node;
    bool is_unit; /* it runs: its operands are values of this schedule */
} lw_source;

/* What makes v: a node unit of this schedule or, when v was computed before (it is constant), a
 * node of the schedule that has it. */
bool lw_source_of(const lw_pass *l, ot_id v, lw_source *s);

/* A unit that is one node on other values, with an implementation of its own. */
typedef struct lw_rewrite {
    const uint32_t *parts; /* [n_parts] units that it replaces */
    uint32_t n_parts;
    uint32_t like;   /* of them, the unit whose step it takes */
    const ot_id *in; /* [n_in] */
    uint32_t n_in;
    ot_id out;
    ot_op_fn run; /* NULL: the step's own */
    const void *plan;
} lw_rewrite;

/* *unit: the new one; NULL: not asked for. */
ot_status lw_apply(lw_pass *l, const lw_rewrite *r, lw_unit **unit) OT_MUST_USE;

#endif
