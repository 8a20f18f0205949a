/* Dimensions of inputs that a file calls by one name ("batch", "height") have one extent. */
#ifndef OT_OPS_DIM_NAMES_H
#define OT_OPS_DIM_NAMES_H

#include "ops/ops.h"

typedef struct ot_dim_names {
    const char **names; /* [n]; the file's */
    int64_t *extents;   /* [n] */
    size_t n;
} ot_dim_names;

/* Room for the names of all inputs of g, in the caller's arena. Fails: OT_E_NOMEM, in g's diag. */
ot_status ot_dim_names_new(const ot_graph *g, ot_arena *a, ot_dim_names *out) OT_MUST_USE;

/* The name of dimension d of an input that has a rank; NULL: none, or one that says nothing, as the
 * batch has it as well as others ("None"). */
const char *ot_dim_shared_name(const ot_value *input, uint32_t d);

/* The first that says the extent of a name counts. */
void ot_dim_names_add(ot_dim_names *x, const char *name, int64_t extent);
/* The extent of a name (may be NULL), or OT_DIM_UNKNOWN. */
int64_t ot_dim_names_extent(const ot_dim_names *x, const char *name);

/* What bindings say of free dimensions with names; g as it is before they are applied. */
void ot_dim_names_take(ot_dim_names *x, const ot_graph *g, const ot_shape_binding *given, size_t n);
/* Free dimensions of g's inputs get the extents of their names. Fails: OT_E_NOMEM. */
ot_status ot_dim_names_apply(const ot_dim_names *x, ot_graph *g) OT_MUST_USE;

/* The binding of an input; NULL: none. */
const ot_shape_binding *ot_binding_of(const ot_shape_binding *given, size_t n, const ot_value *v);

#endif
