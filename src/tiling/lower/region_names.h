/* Names of a model as names of a kernel. Private to the lowering of regions. */
#ifndef OT_TILING_LOWER_REGION_NAMES_H
#define OT_TILING_LOWER_REGION_NAMES_H

#include "base/base.h"

typedef struct ot_region_names {
    ot_arena *arena; /* borrowed; holds the names */
    ot_map *used;    /* name -> number to try next for the same wish */
} ot_region_names;

/* false when memory ran out. */
bool ot_region_names_init(ot_region_names *n, ot_arena *a) OT_MUST_USE;
/* A legal name that was not given out before, as near as possible to `name` with `suffix` (may
 * be ""). The same calls in the same order give the same names. NULL when memory ran out. */
const char *ot_region_name(ot_region_names *n, const char *name, const char *suffix);

#endif
