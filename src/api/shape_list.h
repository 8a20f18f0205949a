/* Dimensions of inputs as callers of the library give them. */
#ifndef OT_API_SHAPE_LIST_H
#define OT_API_SHAPE_LIST_H

#include "ops/ops.h"

/* One binding an input. */
typedef struct ot_shape_list {
    ot_shape_binding *all; /* [n] */
    size_t n, cap;
} ot_shape_list;

/* Keep copies of b's name and dims in arena a; the last ones given of an input count. Fails:
 * OT_E_USAGE (no name, no or too many dimensions, one below 1), OT_E_NOMEM. */
ot_status ot_shape_list_put(ot_shape_list *l, ot_shape_binding b, ot_arena *a,
                            ot_diag *d) OT_MUST_USE;

#endif
