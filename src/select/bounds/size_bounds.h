/* Stage select/bounds/: what a model takes at the most over a range of sizes, as it is and tiled
 * for every size.
 *
 *   range        x = [1, 3, 256..2160, 256..3840]
 *   size_terms   every extent as a term of h and w: none falls where h or w grows
 *   classes      sizes by how long the last tiles of the regions are, and which regions run
 *                untiled: finitely many
 *   exact        of each class, the largest size: the tiled graph with that size's extents, what is
 *                live step by step (live_bytes.c)
 *
 * Within a class everything that lives grows with the size, so the largest of these is the
 * largest of the range: proved, and some size takes it. What the process grows by is predicted
 * there and at some more sizes (alloc_sim/), with a margin for what was measured.
 * docs/dynamic-shapes.md has the argument.
 */
#ifndef OT_SELECT_BOUNDS_SIZE_BOUNDS_H
#define OT_SELECT_BOUNDS_SIZE_BOUNDS_H

#include "ops/size_terms.h"
#include "select/search/plan_search.h"

/* Extents that an input may have. */
typedef struct ot_size_range {
    const char *input;
    uint32_t rank;
    const ot_size_var *dims; /* [rank] */
} ot_size_range;

typedef enum ot_bounds_verdict {
    OT_BOUNDS_NONE = 0, /* nobody asked */
    OT_BOUNDS_PROVED,   /* no size takes more, and this one takes it */
    OT_BOUNDS_EXCEEDS,  /* this size takes more than the budget */
    OT_BOUNDS_UNKNOWN   /* why not */
} ot_bounds_verdict;
const char *ot_bounds_verdict_name(ot_bounds_verdict v); /* "proved", "exceeds", "unknown" */

/* The model in one form. */
typedef struct ot_bounds_side {
    ot_bounds_verdict verdict;
    int64_t live_bytes; /* the largest; unknown: the largest that was seen */
    /* a size that takes it: "1x3x2160x3840", "a=1x8,b=1x16"; NULL: none was looked at */
    const char *live_at;
    /* of the process, predicted, with a margin; 0: not predicted for this runtime */
    int64_t growth_bytes;
    const char *growth_at;
    int64_t process_bytes; /* with what loading takes */
    const char *why;       /* of an unknown one, a sentence that names the node; else NULL */
} ot_bounds_side;

typedef struct ot_bounds_facts {
    const char *text; /* the range as asked for, "x=1,3,256:2160,256:3840" */
    ot_bounds_side untiled, tiled;
    uint32_t n_sizes; /* that were looked at */
} ot_bounds_facts;

/* What is asked about. */
typedef struct ot_bounds_case {
    const ot_model *file;    /* shapes inferred for every size, not rewritten */
    const ot_model *planned; /* its copy at the design size, with the table of dynamic_dims.h */
    const ot_plan *plan;     /* made for that */
    const ot_target *target;
    const ot_size_range *ranges; /* [n] */
    size_t n;
    int64_t budget; /* bytes that neither what is live nor the process may exceed; 0: none */
    ot_diag *diag;
} ot_bounds_case;

/* The ranges name inputs of g with dynamic dimensions, all of them, and allow what is fixed. Sets
 * *design: the upper corner. In arena a. Fails: OT_E_USAGE in one line; OT_E_NOMEM. Requires
 * SHAPES as the file says. */
ot_status ot_bounds_check(const ot_graph *g, const ot_size_range *ranges, size_t n, ot_arena *a,
                          ot_shape_binding **design) OT_MUST_USE;

/* Requires ranges that ot_bounds_check took. Texts in arena a. Fails: OT_E_NOMEM. Deterministic. */
ot_status ot_bounds_compute(const ot_bounds_case *c, ot_arena *a, ot_bounds_facts *out) OT_MUST_USE;

/* ---- live_bytes.c ---- */

typedef struct ot_live_bytes {
    int64_t peak;
    const char *unknown; /* a value whose size is not known; NULL: all are */
} ot_live_bytes;

/* Most bytes that live at once while g runs node by node in its order: inputs, results and all
 * between from the step that makes them to the last that reads them; in Loops that hand on
 * sequences, what the body holds beside all that lives outside, and pieces until they are
 * joined. Not constants. Trips of Loops are known contents. Requires ORDER, USES, SHAPES
 * (bodies: ORDER, SHAPES). Fails: OT_E_NOMEM. */
ot_status ot_live_bytes_of(const ot_graph *g, ot_live_bytes *out) OT_MUST_USE;

#endif
