/* Stage transform/: a graph and its plan become the tiled graph. */
#ifndef OT_TRANSFORM_TRANSFORM_H
#define OT_TRANSFORM_TRANSFORM_H

#include "tiling/plan.h"

/* Replace static nodes that read values made inside a region by constants (fold.c). Call before
 * ot_transform_tiles. */
ot_status ot_fold_static(ot_graph *g, const ot_plan *p) OT_MUST_USE;
/* With dynamic dimensions: shape arithmetic of g, the file's graph, whose results are the same at
 * every size becomes constants, and what was read for it alone goes: else regions could depend
 * on shapes of what they make. In place of ot_fold_static; planned: as of ot_transform_dynamic. */
ot_status ot_fold_dynamic(ot_graph *g, const ot_graph *planned) OT_MUST_USE;
/* Notes for graph viewers about the regions' nodes: g->model->notes. Call before
 * ot_transform_tiles, which dissolves what they tell of. */
ot_status ot_overlay(ot_graph *g, const ot_plan *p) OT_MUST_USE;
/* Replace every planned region in the graph by its tiled form. Breaks ORDER, USES
 * (re-established before return), keeps SHAPES for new values. */
ot_status ot_transform_tiles(ot_graph *g, const ot_plan *p) OT_MUST_USE;
/* Replace every region of a plan with dynamic dimensions in g, the file's graph. planned: its copy
 * at the design size, with the table of ops/dynamic_dims.h, whose regions these are; it must
 * live until the model is written. */
ot_status ot_transform_dynamic(ot_graph *g, const ot_graph *planned, const ot_plan *p) OT_MUST_USE;
/* Bodies that capture a constant under a second name, of an Identity, capture the constant itself;
 * what only gave the name goes (one_name.c). Call after ot_transform_tiles. Requires USES; keeps
 * SHAPES, ORDER and USES hold as before. Fails: OT_E_NOMEM. */
ot_status ot_use_one_name(ot_graph *g) OT_MUST_USE;
/* Give every convolution that ot_transform_tiles made a bias that no other reads, every
 * element-wise operator constants that no other reads (64 KiB at most, not limits of Clip), for
 * runtimes that ask for it (own_biases). Call after ot_transform_tiles; ORDER and USES hold as
 * before. Fails: OT_E_NOMEM. */
ot_status ot_own_biases(ot_graph *g) OT_MUST_USE;

/* Write out, in bodies, functions that runtimes which ask for it (inlines_functions) write out when
 * they load a model (inlined.c). Call after ot_transform_tiles; ORDER and USES hold as before,
 * keeps SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_write_inlined(ot_graph *g) OT_MUST_USE;

/* Make BatchNormalizations part of the convolutions whose result they alone read; convolutions
 * that read the same constants share the folded ones. contents: compute these; else the graph is
 * good for simulation alone, not for writing. Call after ot_transform_tiles. Requires and keeps
 * SHAPES, establishes ORDER and USES. Fails: OT_E_NOMEM. */
ot_status ot_fold_norms(ot_graph *g, bool contents) OT_MUST_USE;
/* What a graph computes of constants alone (fold_constants.c). */
typedef struct ot_computed {
    bool *nodes;   /* [n_nodes] of the graph: they are computed while a model loads */
    ot_id *values; /* [n] that nodes read which are not */
    uint32_t n;
} ot_computed;
/* The contents of these values. */
typedef struct ot_constants {
    ot_computed computed;
    const ot_tensor **contents; /* [n] equal ones are one */
    ot_id *made;                /* [n] scratch of ot_fold_constants: the initializers */
} ot_constants;
/* Constants of g that are computed by operators whose results are the same bits everywhere, or
 * (not bit_exact) differ by roundings that stay such, where that makes some MB on the way, and the
 * constants are not too large for a file; n is 0 otherwise. In a. Requires ORDER, USES, SHAPES of
 * static extents. Fails: OT_E_NOMEM. */
ot_status ot_find_constants(const ot_graph *g, bool bit_exact, ot_arena *a,
                            ot_computed *out) OT_MUST_USE;
/* They become initializers, equal ones one, and what led to them alone goes: *n_dropped nodes. Of
 * the graph that c was found in, or its copy. Requires and keeps ORDER, USES, SHAPES. Fails:
 * OT_E_NOMEM, OT_E_INPUT (a subgraph of the file reads one by name). */
ot_status ot_fold_constants(ot_graph *g, const ot_constants *c, uint32_t *n_dropped) OT_MUST_USE;
/* What is left to compute of large constants with few distinct values, element by element, is
 * computed of those and looked up (distinct_values.c). Requires and keeps ORDER, USES, SHAPES.
 * Fails: OT_E_NOMEM. */
ot_status ot_fold_distinct(ot_graph *g) OT_MUST_USE;
/* Weights of float32 of `from` bytes or more that only convolutions and Gemms of g read, which
 * is the top graph, become values that are made right before their first reader, and that no
 * runtime can compute before the model runs (deferred_packing.c). *packed: their bytes, once for
 * each reader; 0: there are none, or the model is of an opset before 9 or has no input of
 * numbers. Call last: nodes stand where they are to run. Requires and keeps ORDER, USES, SHAPES.
 * Fails: OT_E_NOMEM. */
ot_status ot_defer_packing(ot_graph *g, int64_t from, int64_t *packed) OT_MUST_USE;
#define OT_SPLIT_FROM 2 /* weights are split from so many pieces on */
/* piece k of constant w is called so, w, "/", k */
#define OT_PIECE_PREFIX "tile/piece/"
/* Weights of float32 of OT_SPLIT_FROM * `each` bytes or more of Gemms with transB and of
 * convolutions of one group, whose results are small beside them, are read in pieces of about
 * `each` bytes, rows of what they were, by as many operators, whose results a Concat joins
 * (weight_pieces.c). Call after ot_fold_norms, before ot_defer_packing and ot_branch. Requires
 * SHAPES; keeps SHAPES, establishes ORDER and USES. Fails: OT_E_NOMEM. */
ot_status ot_split_weights(ot_graph *g, int64_t each) OT_MUST_USE;
/* How many it would split. Requires ORDER, USES, SHAPES. */
uint32_t ot_count_split(const ot_graph *g, int64_t each);
/* Mark the weights of float32 of `from` bytes or more that only convolutions of g read, which is
 * to become a branch: ot_branch writes them so that no runtime packs them (unpacked_weights.c).
 * Returns how many there are. Call before ot_transform_tiles, whose bodies capture them then.
 * Requires USES, SHAPES. */
uint32_t ot_mark_unpacked(ot_graph *g, int64_t from);
/* Mark these weights, [n] ids of g, besides, those of any size that could be. Returns how many are.
 * Requires the same. */
uint32_t ot_mark_plain(ot_graph *g, const ot_id *weights, uint32_t n);
/* v is a weight that could be marked. Requires the same. */
bool ot_may_unpack(const ot_graph *g, ot_id v);
/* Whether ot_mark_unpacked would mark any. Requires the same. */
bool ot_has_unpacked(const ot_graph *g, int64_t from);
/* Bytes of the weight of matrix product n that bodies of tiles capture as it is, for a runtime with
 * outer_weights or maps_weights (weights.c); 0: there is none. Requires USES, SHAPES. */
int64_t ot_captured_product(const ot_graph *g, const ot_node *n);
/* Write what g computes in half precision in float32 (widen.c): for runtimes that would cast
 * every operand anyway. Inputs and results keep their types. *changed false: nothing was to
 * gain, or an operator stands in the way, and g is as it was. Requires SHAPES, which are to be
 * inferred anew; makes ORDER and USES. Fails: OT_E_NOMEM. */
ot_status ot_widen(ot_graph *g, bool *changed) OT_MUST_USE;
/* Input `input` of the model comes as `type` (OT_DT_UNKNOWN: as it is) and is multiplied by `scale`
 * once it has the model's type (input_type.c): in bodies of tiles, where these read it, else as a
 * whole. For models that run and are not written. Breaks ORDER, USES, SHAPES. Fails: OT_E_USAGE (no
 * such input), OT_E_INPUT (types that do not fit, a subgraph that reads it), OT_E_NOMEM. */
ot_status ot_convert_input(ot_model *m, const char *input, ot_dtype type, double scale) OT_MUST_USE;
/* Casts from float32 to float32, which exporters leave around what they keep so, are taken out
 * of a graph that was widened. Makes ORDER and USES; keeps SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_widen_drop_casts(ot_graph *g) OT_MUST_USE;
/* What a graph computes, and what of that nobody reads. */
typedef struct ot_narrowed {
    uint32_t n_nodes;             /* that compute less, or are gone; 0: the graph stays as it is */
    double unread_macs, all_macs; /* multiply-adds */
    double unread_bytes, all_bytes; /* of values that nodes make */
} ot_narrowed;
#define OT_NARROW_PAYS 0.125 /* of all_macs or all_bytes */
/* Where nobody reads so much of what the nodes of g compute, they compute what is read alone
 * (narrow.c): results keep their bits, as far as kernels do not depend on how much they compute.
 * Requires ORDER, USES, SHAPES of static extents; keeps them. Fails: OT_E_NOMEM. */
ot_status ot_narrow(ot_graph *g, ot_narrowed *out) OT_MUST_USE;
/* What ot_narrow would find, and leave as it is. Requires the same. Fails: OT_E_NOMEM. */
ot_status ot_find_unread(ot_graph *g, ot_narrowed *out) OT_MUST_USE;
/* Circular padding along axis 2 moves to the front of what it is repeated in (wraps.c): *n, how
 * many go. Values are those that they were. Requires ORDER, USES, SHAPES of static extents; keeps
 * them. Fails: OT_E_NOMEM. */
ot_status ot_move_wraps(ot_graph *g, uint32_t *n) OT_MUST_USE;
/* Whether there is any, which may stay all the same. Requires the same. */
bool ot_wraps_any(const ot_graph *g);
/* Whether the graph can be written as a branch: sequences exist, and every output is made by a
 * node and has a type and a rank. */
bool ot_branch_fits(const ot_graph *g);
/* Make m's graph the body of a branch that is always taken, in a new top graph: the runtime then
 * records no pattern of its allocations (branch.c). hides: nor does it know what the values take
 * before it runs (hidden_extents.c); then all extents must be static. Call last, for a graph that
 * fits. Requires USES, SHAPES; keeps SHAPES, establishes ORDER and USES. Fails: OT_E_NOMEM. */
ot_status ot_branch(ot_model *m, bool hides) OT_MUST_USE;
/* Before the branch that ot_branch has made of m runs, a tensor of so many bytes comes and goes:
 * the first region of the runtime's arena is that large; what the branch makes lies in it. 0: none.
 * Keeps SHAPES; establishes ORDER, USES. Fails: OT_E_NOMEM. */
ot_status ot_first_block(ot_model *m, int64_t bytes) OT_MUST_USE;

#endif
