/* Operators of domain com.microsoft that are cut, by name (access_contrib.c). Private to src/ops/.
 */
#ifndef OT_OPS_ACCESS_CONTRIB_H
#define OT_OPS_ACCESS_CONTRIB_H

#include "access_same.h"

typedef struct ot_contrib {
    const char *op_type; /* NULL ends a table */
    ot_access_ops ops;
} ot_contrib;

extern const ot_contrib ot_access_transformers[];

#endif
