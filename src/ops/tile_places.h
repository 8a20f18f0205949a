/* Tiles of an earlier run: their nodes, and whether the places that they write are disjoint. */
#ifndef OT_OPS_TILE_PLACES_H
#define OT_OPS_TILE_PLACES_H

#include "onnx/graph/ir.h"

/* The node is one of those ("tile/r3/...", "tile/branch/..."), by its name. */
bool ot_node_is_of_tiles(const ot_node *n);

/* The places of one Deslice in its buffer; every place lies inside. */
typedef struct ot_place_table {
    const ot_node *node;         /* the Deslice */
    const int64_t *axes;         /* [n_axes] that are cut, each once; the others are taken whole */
    const int64_t *starts;       /* [rows * n_axes] */
    const int64_t *sizes;        /* [rank of the buffer] of the tile, > 0 on axes that are cut */
    uint32_t n_axes;             /* >= 1 */
    int64_t rows;                /* places */
    struct ot_place_table *next; /* of the same buffer, for the caller's lists */
} ot_place_table;

typedef enum ot_places {
    OT_PLACES_APART = 0,
    OT_PLACES_MEET,
    /* more of them along more axes than the work that is allowed can tell apart */
    OT_PLACES_UNKNOWN
} ot_places;

typedef struct ot_place {
    const ot_place_table *table;
    int64_t row;
} ot_place;

/* Do any two of the places in `tables` (a list), in a buffer of these dims [rank], have an
 * element in common? pair: two that do. Exact; time is n log^k n for n places that are cut along
 * k axes. Fails: OT_E_NOMEM. */
ot_status ot_places_compare(const ot_place_table *tables, int32_t rank, const int64_t *dims,
                            ot_places *out, ot_place pair[2]) OT_MUST_USE;

#endif
