/* Stage geometry/: which part of its inputs a model needs for a part of an output, along each axis,
 * when the unchanged model runs on a crop.
 *
 *   input   0 ... c [----------------------------] d ... E      c: 0, or a multiple of align
 *                     halo_lo |==========| halo_hi              d: E, or equal to E modulo align
 *   output                    [a        b)                      d - c >= least
 *
 * Rows [a, b) of the output on the crop [c, d) are those of the output on the whole input, to the
 * bit: where a crop ends inside, the rows that its false border spoils are in the halo; where it
 * ends with the input, the border is the real one.
 *
 * All of it comes from the slice relation (ops/ops.h), asked of the model at sizes where every
 * value has many rows (row_map.c), and composed from the outputs backwards (compose.c). What is not
 * the same wherever rows lie stands in the way, with the node and what kind of thing it is.
 */
#ifndef OT_GEOMETRY_GEOMETRY_H
#define OT_GEOMETRY_GEOMETRY_H

#include "base/json.h"
#include "ops/ops.h"

/* An axis of an output that follows one of an input. DESIGN: output row o lies at input row
 * o * den / num - offset. Rows are those of the input where not said otherwise. */
typedef struct ot_geometry_axis {
    uint32_t axis, input_axis;
    int64_t align;            /* of crops */
    int64_t num, den;         /* rows of the output : rows of the input */
    int64_t offset;           /* less than 0: rows at the begin that the output lacks */
    int64_t halo_lo, halo_hi; /* >= 0 */
    int64_t least;            /* rows that a crop has at least, or all */
    int64_t receptive_field;  /* rows that one row of the output depends on */
    bool any_extent;          /* else of extents that are the same modulo align */
    int64_t extent, made;     /* of the whole input, and of the output then */
} ot_geometry_axis;

typedef enum ot_geometry_kind {
    OT_GEOMETRY_REDUCE,    /* a number of all rows: passes over the input would do */
    OT_GEOMETRY_ATTENTION, /* every row meets every other */
    OT_GEOMETRY_FIXED,     /* another extent, or place of rows, gives something else */
    OT_GEOMETRY_DATA       /* what is read, and where, comes of data, or is not known */
} ot_geometry_kind;

/* A node that keeps an axis of an input from being cropped. */
typedef struct ot_geometry_barrier {
    ot_id node; /* of the model's graph */
    const char *name, *op;
    ot_geometry_kind kind;
    const char *why;
    uint32_t input_axis;
} ot_geometry_barrier;

/* An output and an input that it depends on. */
typedef struct ot_geometry_pair {
    const char *output, *input;
    uint32_t output_rank, input_rank;
    ot_geometry_axis *axes; /* [n_axes] by output axis */
    uint32_t n_axes;
    ot_geometry_barrier *barriers; /* [n_barriers] */
    uint32_t n_barriers;
} ot_geometry_pair;

typedef struct ot_geometry {
    ot_arena *arena;     /* owns all of it */
    const char **inputs; /* [n_inputs] */
    uint32_t n_inputs;
    ot_geometry_pair *pairs; /* [n_pairs] in the order of outputs, then of inputs */
    uint32_t n_pairs;
} ot_geometry;

/* Of a model as it was read, at the sizes in bind ([n]; see ot_infer_shapes) or, where nothing is
 * said, those of the file or usual ones. Caller frees with ot_geometry_free. The model is not
 * changed. Fails: OT_E_USAGE (a size that the model does not take, or none can be found),
 * OT_E_INPUT, OT_E_NOMEM, in the model's diag. */
ot_status ot_geometry_find(const ot_model *model, const ot_shape_binding *bind, size_t n,
                           ot_geometry **out) OT_MUST_USE;
void ot_geometry_free(ot_geometry *g); /* accepts NULL */

/* "reduce", "attention", "fixed-size", "data-dependent"; static. */
const char *ot_geometry_kind_name(ot_geometry_kind kind);

/* ---- geometry_print.c ---- */

ot_status ot_geometry_print(const ot_geometry *g, FILE *f) OT_MUST_USE;
ot_status ot_geometry_json(const ot_geometry *g, FILE *f) OT_MUST_USE;
/* Its members, "inputs" and "outputs", in an object that is open. */
void ot_geometry_put(ot_json *j, const ot_geometry *g);
/* The fields of bioimage.io: of inputs min and step, of outputs reference, scale, offset, halo. */
ot_status ot_geometry_bioimage(const ot_geometry *g, FILE *f) OT_MUST_USE;

#endif
