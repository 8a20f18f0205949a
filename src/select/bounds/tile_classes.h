/* Sizes by how the last tiles of a region look (private to this folder). */
#ifndef OT_SELECT_BOUNDS_TILE_CLASSES_H
#define OT_SELECT_BOUNDS_TILE_CLASSES_H

#include "size_bounds.h"

/* Says whether the model takes a size. Fails: OT_E_NOMEM. */
typedef ot_status (*ot_size_takes)(void *context, const int64_t *at, bool *takes);

typedef struct ot_tile_sizes {
    int64_t **at; /* [n][variables] */
    size_t n, cap;
    const char *why; /* not all classes could be looked at: a sentence; NULL: they were */
} ot_tile_sizes;

/* Add to `out` the sizes at which region r may hold most: of all that the model takes, those
 * than which no other is as large in every variable, has last tiles as long or longer, and goes
 * the same way (tiled or whole). All variables that r's cut inputs do not depend on are at their
 * largest. t: terms of the file's graph; g: the planned graph. In arena a. Fails: OT_E_NOMEM. */
ot_status ot_tile_sizes_add(const ot_graph *g, const ot_region *r, const ot_size_table *t,
                            ot_size_takes takes, void *context, ot_arena *a,
                            ot_tile_sizes *out) OT_MUST_USE;

#endif
