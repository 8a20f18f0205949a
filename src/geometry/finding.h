/* The search for a geometry, from file to file (private to src/geometry/).
 *
 *   geometry.c   the sets of input axes that are cropped together, each at the sizes that matter
 *   look.c       one set: the model at two large sizes, and the maps of its nodes
 *   reach.c      one output: offset, halo, fewest rows
 *   pairs.c      what is told of each output beside each input
 *   axis_flow.c  one axis that somebody names, for who writes models by it
 */
#ifndef OT_GEOMETRY_FINDING_H
#define OT_GEOMETRY_FINDING_H

#include "geometry_internal.h"

/* The model with extents of its own choice. */
typedef struct ot_geometry_sizes {
    const ot_model *file;
    ot_arena *a;
    ot_shape_binding *bind; /* [n] all inputs */
    int64_t **dims;         /* [n] of bind */
    ot_id *input;           /* [n] */
    uint32_t n;
} ot_geometry_sizes;

/* Input axes that are cropped together. */
typedef struct ot_together {
    ot_spread base;  /* at the size that is asked for */
    int64_t *extent; /* [at.n] of the axis that moves; 0: none does */
    uint32_t first;  /* the one with the most rows: the reference */
} ot_together;

typedef struct ot_finding {
    ot_geometry_sizes at;
    ot_model *base;
    ot_diag *diag;
    ot_geometry *out;
    size_t cap_pairs;
    bool *given; /* [at.n] somebody has said its size */
} ot_finding;

/* What is found of an output, in rows of the reference. */
typedef struct ot_reach {
    bool known, any_extent; /* any_extent: whatever the whole input's extent */
    int64_t num, den;       /* rows of the output : rows of the reference */
    int64_t offset, halo_lo, halo_hi, least;
} ot_reach;

typedef struct ot_tracing {
    ot_finding *f;
    ot_together *t;
    ot_arena *a;
    ot_model *large, *beside;
    ot_spread s;
    ot_flow flow;
    ot_row_map **map; /* [n_nodes] of the large one; NULL: none */
    ot_reach *found;  /* [n_outputs] of the graph, in the geometry's arena; where there is one */
    int64_t step;
    int64_t runs;  /* fewest rows of the reference at which the model runs */
    int64_t *need; /* [2 n_values] scratch */
} ot_tracing;

/* ---- geometry.c ---- */

/* The size that is asked for, and all inputs as bindings that can be changed. Fails: as
 * ot_geometry_find. */
ot_status ot_geo_base(ot_finding *f, const ot_shape_binding *bind, size_t n) OT_MUST_USE;
/* Rows of the inputs that move together; *fit false: not in a small ratio. Fails: OT_E_NOMEM. */
ot_status ot_geo_extents(ot_finding *f, ot_together *t, bool *fit) OT_MUST_USE;

/* ---- look.c ---- */

/* A copy of the model at the extents of f->at; *out NULL: the model does not take them, *node says
 * where (OT_NONE: nowhere) and *why. Fails: OT_E_NOMEM. */
ot_status ot_geo_model_at(const ot_finding *f, ot_model **out, ot_id *node,
                          const char **why) OT_MUST_USE;
/* Extents of t's axes in f->at: what is asked for and `more` rows of the reference. */
void ot_geo_set_extents(const ot_finding *f, const ot_together *t, int64_t more);
/* Fill w's models, spread and flow at sizes that show the maps of all nodes that no barrier comes
 * before. *why: the model takes no other size, at *node; else NULL, and *fit says whether maps were
 * found. Fails: OT_E_NOMEM. */
ot_status ot_geo_look(ot_tracing *w, ot_row_fit *fit, ot_id *node, const char **why) OT_MUST_USE;
/* Of a value along the axis that is computed of no input: what w->flow says of its scale. */
void ot_geo_scale_by_extents(ot_tracing *w, ot_id v);
void ot_geo_drop(ot_tracing *w); /* frees w's models */
int64_t ot_geo_lcm(int64_t a, int64_t b);
void ot_geo_reduce(int64_t *num, int64_t *den);

/* ---- reach.c: after ot_geo_look ---- */

/* What every output needs that no barrier comes before; found: [n_outputs]. Fails: OT_E_NOMEM. */
ot_status ot_geo_reaches(ot_tracing *w, ot_reach *found) OT_MUST_USE;
/* The same of output value y in rows of input k. */
ot_geometry_axis ot_geo_axis_of(ot_tracing *w, ot_id y, uint32_t k, const ot_reach *r);

/* ---- pairs.c ---- */

/* Add what w->found, and the barriers of s, say of every output to the geometry. Fails:
 * OT_E_NOMEM. */
ot_status ot_geo_tell(ot_tracing *w, const ot_spread *s) OT_MUST_USE;

#endif
