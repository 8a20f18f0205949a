/* Operators without a row in ops.def that are cut, by name: of domain com.microsoft
 * (access_contrib.c, access_transformers.c), and of the standard (access_extra.c). Private to
 * src/ops/. */
#ifndef OT_OPS_ACCESS_CONTRIB_H
#define OT_OPS_ACCESS_CONTRIB_H

#include "access_same.h"

typedef struct ot_contrib {
    const char *op_type; /* NULL ends a table */
    ot_access_ops ops;
} ot_contrib;

extern const ot_contrib ot_access_transformers[];

/* Of an operator of the standard; NULL: it has a row, or is never cut. */
const ot_access_ops *ot_access_extra(const ot_node *n);

#endif
