/* Dynamic dimensions: a model is planned at one size and written for every size it takes.
 *
 *   the file's graph   x [N?, 3, H?, W?]  -->  ...   shapes inferred as far as they go; this one is
 *                                                    written
 *   the planned graph  x [1, 3, 720, 1280] -->  ...  the same nodes and values by number, all
 *                      extents bound
 *
 * The planned graph knows more than holds at other sizes: extents, contents of shape arithmetic.
 * This table says what of it is the design size's alone. Where it hangs on a model
 * (ot_model.dynamic_dims), ot_access_axis refuses cuts whose tiles would look otherwise at
 * another size, static nodes are folded only where they are static at every size, and a region
 * is legal in one form (tiling/dynamic_tiles.h). docs/dynamic-shapes.md has the rules.
 */
#ifndef OT_OPS_DYNAMIC_DIMS_H
#define OT_OPS_DYNAMIC_DIMS_H

#include "ops.h"

typedef struct ot_dynamic_dims {
    /* the same graph at a larger size, which shows tiles far from the ends of their axes; NULL:
     * there is none */
    const ot_graph *large;
    /* the same graph at a smaller size, which shows what does not shrink with it; NULL: there is
     * none */
    const ot_graph *small;
    /* of the graph when the table was made: what is newer is no matter of sizes */
    uint32_t n_values, n_nodes;
    const uint32_t *axes; /* [n_values] bit k: axis k is free */
    const bool *varies;   /* [n_values] contents known at the design size alone */
    const bool *unranked; /* [n_values] not even the rank is known at every size */
    /* [n_nodes] ot_static_foldable in the file's graph, or read by such nodes alone */
    const bool *foldable;
    /* [n_values] activations that a varying value is computed of (their shapes) */
    const ot_id *const *source;
    const uint32_t *n_source; /* [n_values] */
    /* what lives is to be bounded over a range: reductions whose results have free axes are not
     * made in parts */
    bool bounded;
} ot_dynamic_dims;

/* Hold the planned graph against the file's, of which it is a copy, and hang the table on its
 * model (in that model's arena), and on that of `large`, which may be NULL and must live as
 * long. Requires SHAPES, ORDER and USES of all. Fails: OT_E_NOMEM. */
ot_status ot_dynamic_dims_set(const ot_graph *file, ot_graph *planned,
                              const ot_graph *large) OT_MUST_USE;
/* The planned graph's table knows the same graph at a smaller size from now on; small lives as
 * long. Without a table: nothing. */
void ot_dynamic_dims_small(ot_graph *planned, const ot_graph *small);
/* A bound over a range of sizes is asked for (ot_dynamic_dims.bounded). Without a table: nothing.
 */
void ot_dynamic_dims_bounded(ot_graph *planned);

/* All false where the model has no table. */
bool ot_axis_is_dynamic(const ot_graph *g, ot_id v, int32_t axis);
bool ot_value_varies(const ot_graph *g, ot_id v);
bool ot_value_is_unranked(const ot_graph *g, ot_id v);
/* Whether a cut of n along `axis` of an output, which the slice relation accepts at the design
 * size, can be written for every size; else *why. in_axis: what the relation said. */
bool ot_dynamic_allows(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       const int8_t *in_axis, ot_why *why);

/* What a tile of n that reaches the end of a cut axis pads there, whatever the extent: as of
 * ot_op_tile. */
typedef struct ot_end_border {
    int64_t pad_hi, extra;
    /* input rows that must follow those of a tile, so that all rows that the tile makes exist */
    int64_t ahead;
} ot_end_border;
ot_end_border ot_access_end(const ot_graph *g, const ot_node *n, uint32_t axis);

#endif
