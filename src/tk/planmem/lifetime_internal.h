/* Inside the lifetime analysis: what points.c (statements to points), liveness.c (dataflow),
 * merge.c (who shares storage), inplace.c (rules of operations) and lifetime.c (the driver)
 * share.
 *
 * A kernel becomes a flow graph of points in statement order, over variables: the storages that
 * values would have if nothing was shared. A statement is one point, but for those that carry
 * values: they copy, and each copy is a point of its own.
 *
 *   r = for i in 0..n carry (acc = init) {  [acc <- init]  [test]-------+  point   what it reads,
 *                                                                       |          and writes
 *     next = vector.add(acc, t)             [next <- acc, t]  <---+     |  [x <- y] writes x,
 *                                                                 |     |          reads y
 *     yield (next)                          [way <- next]         |     |  [test]  the end of an
 *   }                                       [acc <- way]  [test]--+     |          edge
 *                                           [exit]  <-------------+-----+
 *                                           [r <- acc]
 *
 * `way` is a temporary: all yielded values are read before any carried one is written, so that
 * `yield (v, u)` swaps. Most copies are gone in the end, because merge.c gives both sides one
 * storage.
 */
#ifndef OT_TK_PLANMEM_LIFETIME_INTERNAL_H
#define OT_TK_PLANMEM_LIFETIME_INTERNAL_H

#include "planmem.h"

/* ---- points.c ---- */

enum {
    LT_READ = 1,
    LT_WRITE = 2, /* at least a part */
    LT_FULL = 4,  /* with LT_WRITE: all of it, nothing that was there stays */
    LT_FORGET = 8 /* alloc, free: what was there is gone; no access */
};

typedef struct lt_access {
    uint32_t point, var;
    uint32_t what; /* LT_ bits, one access for each variable of a point */
} lt_access;

typedef struct lt_point {
    uint32_t stmt;
    uint32_t loop;         /* innermost FOR or WHILE that repeats it, or OT_NONE */
    uint32_t next[2];      /* points that may follow, or OT_NONE */
    uint32_t first_access; /* of it; up to the next point's */
    /* a copy that carrying a value implies: variables; to OT_NONE: none; from OT_NONE: a view, a
     * param */
    uint32_t to, from;
} lt_point;

/* Ascending, disjoint, not touching. */
typedef struct lt_spans {
    ot_span *at; /* [n] */
    size_t n, cap;
} lt_spans;

/* Storage of one alloc, carried value, result or temporary. */
typedef struct lt_var {
    uint32_t value; /* id; a temporary has that of the carried value it is copied to */
    bool temporary;
    bool used; /* any statement names it (an if's result that nothing reads is not copied to) */
    uint32_t n_access;
    const uint32_t *access; /* [n_access] indices into the flow's accesses, ascending */
    /* statements at which it holds a value that is read later, or is accessed; a value alive
     * around a back edge: the whole loop */
    lt_spans live;
    lt_spans after;     /* points after which it holds a value that is read later */
    uint32_t unwritten; /* first point that reads what was never written, or OT_NONE */
    uint32_t unsure;    /* first point that reads what some path to it wrote, and some did not */
} lt_var;

/* Two variables that a copy joins: better one storage. */
typedef struct lt_pair {
    uint32_t a, b;
    uint32_t depth; /* loops around the copy */
    uint32_t rank;  /* among those of one depth */
} lt_pair;

typedef struct lt_flow {
    ot_arena *arena;
    const ot_kernel *k;
    lt_point *points; /* [n_points] and one behind the last for first_access */
    size_t n_points, cap_points;
    lt_access *accesses; /* [n_accesses] in order of points */
    size_t n_accesses, cap_accesses;
    lt_var *vars; /* [n_vars] in order of value ids, temporaries last */
    size_t n_vars, cap_vars;
    uint32_t *var_of; /* [k->n_values] of the value's root; OT_NONE: param */
    bool *whole;      /* [k->n_values] stands for all bytes of its root */
    lt_pair *pairs;   /* [n_pairs] */
    size_t n_pairs, cap_pairs;
    /* [k->n_stmts + 1] first point of a statement; the jump of an if's first branch is before
     * its ELSE, though its position is that of the statement before */
    uint32_t *start;
    uint32_t *body;  /* [k->n_stmts] of FOR and WHILE: first point of the body */
    uint32_t *latch; /* [k->n_stmts] of FOR and WHILE: the point that goes back to it */
} lt_flow;

/* Build the flow graph of a verified kernel. */
ot_status lt_points_build(lt_flow *f, const ot_kernel *k, ot_arena *a, ot_diag *d) OT_MUST_USE;

/* ---- liveness.c: fills live, after, unwritten of every variable ---- */

ot_status lt_liveness(lt_flow *f, ot_diag *d) OT_MUST_USE;

/* ---- async.c: what transfers in streams touch is held until they are surely done ---- */

ot_status lt_async(lt_flow *f, ot_diag *d) OT_MUST_USE;

/* ---- spans.c ---- */

bool lt_spans_hold(const lt_spans *s, int64_t x);
bool lt_spans_meet(const lt_spans *a, const lt_spans *b);
/* a becomes the union of both; false when memory ran out. */
bool lt_spans_join(ot_arena *arena, lt_spans *a, const lt_spans *b);

/* ---- merge.c ---- */

/* Variables that share one storage. */
typedef struct lt_class {
    /* members, linked by lt_classes.next; OT_NONE: merged into another class */
    uint32_t first, last;
    uint32_t n_members;
    uint32_t n_access;
    uint32_t *writes; /* [n_writes] points, ascending */
    size_t n_writes, cap_writes;
    lt_spans live, after; /* of all members */
    ot_scope scope;
    uint32_t pool; /* 1 + the pool it is from; 0: none */
    int64_t size, align;
    uint32_t multi; /* 0: none of its own (carried values, results, temporaries) */
    bool fixed;     /* offsets are given */
    int64_t offsets[OT_TK_MULTI_MAX];
    uint32_t loop; /* innermost FOR or WHILE that repeats all accesses */
    /* the longest of all members, and the innermost loop around the allocs of those that keep
     * their places longer than they live */
    ot_tk_keep keep;
    uint32_t keep_loop;
} lt_class;

typedef struct lt_slot {
    ot_scope scope;
    int64_t offset;
    uint32_t var;
} lt_slot;

typedef struct lt_classes {
    const lt_flow *flow;
    const ot_lifetime_options *options;
    ot_arena *arena;
    lt_class *classes; /* [flow->n_vars] */
    uint32_t *of;      /* [flow->n_vars] class of a variable */
    uint32_t *next;    /* [flow->n_vars] next member of its class */
    lt_slot *fixed;    /* [n_fixed] slots with given offsets, by scope, then offset */
    size_t n_fixed;
    int64_t largest[OT_SCOPE_COUNT]; /* size of those */
    bool finished[OT_SCOPE_COUNT];   /* all allocs have offsets */
    uint32_t n_in_place, n_copies;
} lt_classes;

/* Every variable by itself, then merged: copies first, then in place. */
ot_status lt_merge(lt_classes *c, const lt_flow *f, const ot_tk_machine *t,
                   const ot_lifetime_options *o, const char *path, ot_arena *a,
                   ot_diag *d) OT_MUST_USE;
/* Innermost loop that is or holds both (OT_NONE: none). */
uint32_t lt_common_loop(const ot_kernel *k, uint32_t a, uint32_t b);

/* ---- inplace.c ---- */

/* Are its outputs narrower than its first input, element by element in ascending order? */
bool lt_is_narrow(const ot_tk_stmt *s);
bool lt_is_narrower(const ot_tk_value *to, const ot_tk_value *from);
/* May statement `stmt`, which writes variable `to` and reads `from`, have both in one storage? */
bool lt_in_place(const lt_flow *f, const ot_lifetime_options *o, uint32_t stmt, uint32_t to,
                 uint32_t from);

#endif
