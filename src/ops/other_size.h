/* Private to shape.c and other_size*.c: a model whose file fixes the extents of its inputs is
 * asked to take others.
 *
 *   file    x [1,3,512,512] --> ... --> [1,64,64,64] --Reshape [1,64,4096]--> ...
 *   asked   x [1,3,256,256] --> ... --> [1,64,32,32] --Reshape [1,64,4096]-- refused: 4096 was 64 x
 *           64
 *
 * Shapes are inferred twice, with the old extents and with the new. In the second walk each node
 * that depends on a resized input is held against the first: a constant that speaks of an axis
 * whose extent moved must mean the same for every extent (-1, a margin, a factor), else the
 * model would compute something else than its author's network does at this size. What cannot be
 * told is refused.
 */
#ifndef OT_OPS_OTHER_SIZE_H
#define OT_OPS_OTHER_SIZE_H

#include "shape.h"

/* A value at the file's own size. */
typedef struct ot_was {
    int32_t rank;        /* -1: not known */
    const int64_t *dims; /* [rank] OT_DIM_UNKNOWN: not known */
    const int64_t *known;
    const double *known_floats; /* [known_n] as of ot_value: at most one of the two */
    uint32_t known_n;
} ot_was;

#define OT_GONE_MAX 256 /* old extents that are remembered */

typedef struct ot_other_size {
    ot_was *was; /* [n_values] */
    /* [n_values] on an input of another size; filled in while the second walk goes on */
    bool *depends;
    /* [n_values] holds positions along an axis of another extent, or what was computed of such */
    bool *index;
    /* [n_gone] distinct old extents of axes that moved, of inputs first */
    int64_t gone[OT_GONE_MAX];
    uint32_t n_gone, n_gone_inputs;
    char rule[OT_DIAG_MAX]; /* what the shape rule of the running node said; "" nothing */
} ot_other_size;

/* ---- other_size.c ---- */

/* Whether a binding replaces an extent that its input fixes. */
bool ot_size_is_other(const ot_graph *g, const ot_shape_binding *bind, size_t n_bind);
/* Infer shapes for the extents in bind. Fails: OT_E_USAGE naming a node and the constant that
 * only fits the old size; as ot_infer_shapes. */
ot_status ot_size_infer(ot_graph *g, const ot_shape_binding *bind, size_t n_bind) OT_MUST_USE;
/* Whether the running node depends on a resized input; false without c->other. */
bool ot_size_depends(const ot_infer *c);
/* Keep what a shape rule says of the running node; false when it does not depend on a resized
 * input. */
bool ot_size_note(ot_infer *c, const char *text);
/* The running node may run at the new size. Its outputs are proposed (c->out); what was stated
 * of them is forgotten. by_rule: what its shape rule returned. Fails: OT_E_USAGE. */
ot_status ot_size_check(ot_infer *c, ot_status by_rule) OT_MUST_USE;
/* Its outputs, now that they have shapes, are as well known as they were. Fails: OT_E_USAGE. */
ot_status ot_size_check_outputs(ot_infer *c) OT_MUST_USE;

/* ---- for the rules: other_size_rules.c, other_size_move.c ---- */

/* "--shape: node 'x' (Reshape): <text>" as OT_E_USAGE. */
ot_status ot_size_refuse(ot_infer *c, const char *fmt, ...) OT_PRINTF(2, 3) OT_MUST_USE;
#ifdef __clang_analyzer__ /* see ot_fail */
#define ot_size_refuse(c, ...) ((void)!ot_size_refuse(c, __VA_ARGS__), OT_E_USAGE)
#endif
/* Axis a of value v has another extent than it had; both are known. */
bool ot_size_moved(const ot_infer *c, ot_id v, int32_t a);
bool ot_size_any_moved(const ot_infer *c, ot_id v); /* of any axis, or the rank */
/* An axis that moved had this extent. */
bool ot_size_is_gone(const ot_infer *c, int64_t extent);
/* Elements of operand k (integers), or of attribute `attr` where that is not NULL and there, at
 * both sizes. */
typedef struct ot_size_list {
    bool given;
    uint32_t n;
    const int64_t *now, *was; /* [n] NULL: contents not known */
    const bool *ok;           /* [n] of now; NULL: all known */
    const char *name;         /* of the operand or attribute */
    const char *what;         /* "operand" or "attribute" */
} ot_size_list;
ot_size_list ot_size_list_of(const ot_infer *c, const char *attr, uint32_t k);
/* Element e is known and is the same at both sizes: a constant. */
bool ot_size_fixed(const ot_size_list *l, uint32_t e);
/* Element e at the new size; false: not known. */
bool ot_size_item(const ot_size_list *l, uint32_t e, int64_t *out);

ot_status ot_size_rule(ot_infer *c) OT_MUST_USE;    /* by operator */
ot_status ot_size_reshape(ot_infer *c) OT_MUST_USE; /* other_size_move.c from here on */
ot_status ot_size_slice(ot_infer *c) OT_MUST_USE;
ot_status ot_size_resize(ot_infer *c) OT_MUST_USE;
ot_status ot_size_expand(ot_infer *c) OT_MUST_USE;

#endif
