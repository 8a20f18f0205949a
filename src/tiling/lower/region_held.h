/* What a region's kernel keeps where: what the planned kernel and the lowered kernel have in
 * common. Private to memory/. */
#ifndef OT_TILING_LOWER_REGION_HELD_H
#define OT_TILING_LOWER_REGION_HELD_H

#include "lowering.h"

/* A constant that some operator reads whole. */
typedef struct ot_region_weight {
    ot_id value;
    uint32_t at; /* value of the kernel that holds it: a buffer when it stays, else a param */
} ot_region_weight;

typedef struct ot_region_held {
    /* [region n_values] value of the kernel that holds it inside a tile (buffer, alias or
     * param); OT_NONE: none */
    const uint32_t *value;
    /* [region n_values] form stream: buffer of the rows that steps hand on, along the first
     * dimension; OT_NONE: none */
    const uint32_t *rows;
    const ot_region_weight *weights; /* [n_weights] */
    uint32_t n_weights;
    /* [n_nodes] of the kernel's computations in order: node of the region; OT_NONE: it moves or
     * clears rows */
    const uint32_t *nodes;
    uint32_t n_nodes;
    /* [region n_nodes] multiply-adds, or elements, of the node in the largest tile */
    const double *work;
} ot_region_held;

/* A region that is lowered for a target; lists that are handed out live in the arena. */
typedef struct ot_region_job {
    const ot_graph *g;
    const ot_region *r;
    const ot_target *t;
    ot_arena *a;
    ot_diag *d;
} ot_region_job;

/* The kernel of one tile loop nest of a planned region: loads of the input windows, the
 * operators, stores of the pieces; weights loaded before the loop when they stay resident; every
 * buffer has the size of its largest tile, scope l2. *h tells where values are; h NULL: not
 * wanted. Requires a built region with its form set. Fails: OT_E_NOMEM, OT_E_INPUT (a window that
 * cannot be made: our bug). */
ot_status ot_region_kernel_held(const ot_region_job *j, ot_region_held *h,
                                ot_kernel **out) OT_MUST_USE;
/* As ot_region_plan_memory with the kernel asked for, likewise. */
ot_status ot_region_plan_held(const ot_region_job *j, ot_region_memory *out, ot_region_held *h,
                              ot_kernel **kernel) OT_MUST_USE;
/* Seconds that the pipes of a planned kernel lose because buffers share memory; seconds:
 * [n_stmts] that each statement takes. */
ot_status ot_region_stall(const ot_kernel *k, const ot_mem_plan *p, const double *seconds,
                          ot_diag *d, double *out) OT_MUST_USE;
/* [r->n_values] last node of the region, in its order, that reads the value; OT_NONE: none. In
 * `a`; NULL: no memory. */
uint32_t *ot_region_last_readers(const ot_graph *g, const ot_region *r, ot_arena *a);
/* Element type as a kernel names it; NULL: elements of no fixed size. */
const char *ot_region_type_name(ot_dtype t);

#endif
