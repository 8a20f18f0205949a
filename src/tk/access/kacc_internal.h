/* Inside the analysis of accesses. */
#ifndef OT_TK_ACCESS_KACC_INTERNAL_H
#define OT_TK_ACCESS_KACC_INTERNAL_H

#include "kernel_access.h"

#define KACC_AXES (OT_TK_DEPTH_MAX + OT_TK_RANK_MAX)
/* iterations, and elements of one, that are counted one by one */
#define KACC_TIMES (INT64_C(1) << 20)

/* Something that repeats an access elsewhere: a loop, the axis of a reduction, what a product
 * sums over. */
typedef struct kacc_axis {
    int64_t count;
    int64_t shift; /* bytes from one to the next */
    /* what the window's first index grows by along each walked axis */
    int64_t first[OT_TK_RANK_MAX];
} kacc_axis;

/* The addresses of one operand: byte start + sum of index * stride over walked axes, the last
 * one fastest, in each iteration. */
typedef struct kacc_walk {
    uint32_t stmt, value, root;
    bool write;
    uint32_t width; /* bytes of an element */
    uint32_t rank;
    int64_t extent[OT_TK_RANK_MAX], stride[OT_TK_RANK_MAX]; /* stride in bytes */
    int64_t start;                                          /* in the first iteration */
    /* index first[d] + c * each[d] is there where 0 <= it < limit[d] */
    bool is_window;
    int64_t first[OT_TK_RANK_MAX], limit[OT_TK_RANK_MAX], each[OT_TK_RANK_MAX];
    kacc_axis axes[KACC_AXES]; /* [n_axes] */
    uint32_t n_axes;
    int64_t times; /* iterations that change nothing */
} kacc_walk;

typedef struct kacc_sum {
    int64_t least, taken, off;
    bool is_part;
} kacc_sum;

/* Where a value lies: bytes from the start of its buffer or param. */
typedef struct kacc_layout {
    uint32_t root, width, rank;
    int64_t dims[OT_TK_RANK_MAX], stride[OT_TK_RANK_MAX]; /* stride in bytes */
    int64_t start;
    struct {
        const char *var;
        int64_t bytes;
    } terms[OT_TK_DEPTH_MAX];
    uint32_t n_terms;
} kacc_layout;

/* Called for each walk; false ends it (memory ran out). */
typedef bool (*kacc_visit)(void *self, const kacc_walk *w);

typedef struct kacc_walker {
    const ot_kernel *k;
    const int64_t *pads;
    kacc_visit visit;
    void *self;
    uint32_t skipped;
    uint32_t at; /* statement */
} kacc_walker;

/* ---- kacc_walk.c ---- */

/* false: its addresses are not affine, or too large. */
bool kacc_locate(const kacc_walker *w, uint32_t v, kacc_layout *p);
/* A walk of value v, of which the caller sets the axes. */
kacc_walk kacc_walk_of(const kacc_walker *w, uint32_t v, const kacc_layout *p, bool write);
/* Give it to the visitor, if its memory is one that is looked at. first: affine first indices of
 * a window, or NULL. false: memory ran out. */
bool kacc_give(kacc_walker *w, kacc_walk *x, const kacc_layout *p, const ot_tk_affine *first);
/* Operand v, whose axes are paired to those of a result of these dims from the last one; those
 * of 1 stand still. */
bool kacc_give_broadcast(kacc_walker *w, uint32_t v, const int64_t *dims, uint32_t rank);

/* ---- kacc_product.c ---- */

/* What a product, a convolution or a pool reads, of each of its inputs. *known false: it is
 * none, or not one that is looked at. */
bool kacc_give_product(kacc_walker *w, const ot_tk_stmt *s, const char *key, bool *known);

/* kacc_walk.c: all walks of shared buffers and of global memory. pads: [n_values] elements more
 * in the last axis, or NULL. skipped (may be NULL): operands that are none. */
bool kacc_walks(const ot_kernel *k, const int64_t *pads, kacc_visit visit, void *self,
                uint32_t *skipped);
/* kacc_count.c: how many units it takes. false: memory ran out. */
bool kacc_count(const kacc_walk *w, ot_kaccess_kind kind, const ot_tk_machine *t, kacc_sum *out);

#endif
