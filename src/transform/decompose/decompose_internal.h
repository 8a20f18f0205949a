/* Inside of stage transform/decompose/. */
#ifndef OT_TRANSFORM_DECOMPOSE_DECOMPOSE_INTERNAL_H
#define OT_TRANSFORM_DECOMPOSE_DECOMPOSE_INTERNAL_H

#include "ops/resize_corners.h"
#include "decompose.h"
#include "decompose_nodes.h"

/* [N, C, ...] of a floating point type, in which something can be cut. */
bool decomp_is_image(const ot_value *x);
/* A normalisation that is written out, whose mean is made by node `id`: x, groups (as many as
 * channels), epsilon and nodes in *out, all else 1 and 0. Requires USES, SHAPES. */
bool decomp_find_written(const ot_graph *g, ot_id id, ot_norm *out);

#define SPLIT_CHAIN_NODES 12 /* at most of these are written again */

/* Nodes that make a value, from some values on. */
typedef struct remat_chain {
    const ot_graph *g;
    ot_id nodes[SPLIT_CHAIN_NODES]; /* [n] readers before what they read */
    uint32_t n;
    uint32_t heavy, most_heavy; /* products among them; at most */
    double macs;                /* multiply-adds of all */
} remat_chain;

/* rematerialise_norms.c: the nodes that make x, with `heavy` products at most, back to where
 * least has to be kept; the bytes that this is less than x in *saved. False: nothing is saved.
 * Requires ORDER, USES, SHAPES. */
bool remat_find_chain(const ot_graph *g, ot_id x, uint32_t heavy, remat_chain *best,
                      int64_t *saved);
/* They are written once more, as "tile/again/<x>/...": *again, the copy of x; *copies [c->n], in
 * the model's arena, the first of which makes it. ORDER and USES no longer hold. Fails:
 * OT_E_NOMEM. */
ot_status remat_copy_chain(ot_graph *g, remat_chain *c, ot_id x, ot_id *again,
                           const ot_id **copies) OT_MUST_USE;
/* rematerialise_skips.c: repeats of which no region has taken a part are made once again. Fails:
 * as remat_undo_norms. */
ot_status remat_undo_skips(ot_graph *g) OT_MUST_USE;

/* rematerialise_norms.c: x of s is made once again, where it was rematerialised and no region has
 * taken a part of that; *once: it is made once. Fails: OT_E_NOMEM, OT_E_INPUT where a user's
 * subgraph reads it. */
ot_status remat_undo_norms(ot_graph *g, const ot_decomposed *s, bool *once) OT_MUST_USE;

/* A node that normalises along one axis: softmax.c, Softmax over the pixels of a map; lp_norm.c,
 * LpNormalization along an axis of maps. */
typedef struct ot_lane_norm {
    ot_id node;
    int32_t axis; /* of its input, >= 0 */
} ot_lane_norm;

/* Whether node `id` is one that is decomposed. Requires SHAPES. */
bool decomp_find_softmax(const ot_graph *g, ot_id id, ot_lane_norm *out);
bool decomp_find_lp(const ot_graph *g, ot_id id, ot_lane_norm *out);
/* Its parts in its place; it dies. Fails: OT_E_NOMEM. */
ot_status decomp_write_softmax(decomp_writer *w, const ot_lane_norm *s) OT_MUST_USE;
ot_status decomp_write_lp(decomp_writer *w, const ot_lane_norm *s) OT_MUST_USE;
/* corners.c: whether node `id` is a Resize with align_corners that is decomposed, and what it
 * says. Requires SHAPES. */
bool decomp_find_corners(const ot_graph *g, ot_id id, ot_corners *out);
/* Its parts in its place; it dies. Fails: OT_E_NOMEM. */
ot_status decomp_write_corners(decomp_writer *w, ot_id node, const ot_corners *c) OT_MUST_USE;
/* GatherRows outside of all regions become Gathers. Fails: OT_E_NOMEM. */
ot_status decomp_agree_rows(ot_graph *g) OT_MUST_USE;
/* x is made by a Reshape of an image, of whose pixels axis `axis` has all. */
bool decomp_is_over_pixels(const ot_graph *g, ot_id x, int32_t axis);

#endif
