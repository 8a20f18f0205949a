/* The lowering of a region to its planned kernel: what region_kernel.c (the nest) and
 * region_spans.c (sizes, windows) share. Private to memory/.
 */
#ifndef OT_TILING_LOWER_REGION_LOWERING_H
#define OT_TILING_LOWER_REGION_LOWERING_H

#include "region_held.h"
#include "region_names.h"

/* One cut axis of one value over all tiles of its dimension. */
typedef struct span_of_tiles {
    int64_t len, piece;    /* largest made window, largest piece */
    int64_t start, stride; /* the made window of tile k starts at start + stride * k */
    int64_t piece_start;   /* the same for its piece */
    int64_t inset;         /* of the piece in the made window */
} span_of_tiles;

/* A constant that some operator uses whole. */
typedef struct weight {
    ot_id value;
    uint32_t at; /* kernel value that holds it */
} weight;

typedef struct lowering {
    const ot_graph *g;
    const ot_region *r;
    const ot_target *t;
    ot_diag *d;
    ot_arena *a; /* scratch */
    ot_kernel_builder *b;
    ot_region_names names;
    span_of_tiles *span[OT_DIMS_MAX]; /* [n_values] */
    /* [n_values] most rows that are carried from step to step, along the one dimension */
    int64_t *kept;
    uint32_t *rows; /* [n_values] buffer of these, or OT_NONE */
    /* [n_values] last node of the region that reads the value, or OT_NONE */
    uint32_t *last;
    /* [n_nodes] largest tile of the node's output, relative to the whole */
    double *share[OT_DIMS_MAX];
    const char *var[OT_DIMS_MAX]; /* loop variables */
    /* [n_values] of the region's inputs and outputs in slow memory, or OT_NONE */
    uint32_t *param;
    /* [n_values] what holds the value inside a tile, or OT_NONE: not there (yet) */
    uint32_t *tile;
    weight *weights; /* [n_weights] */
    uint32_t n_weights;
    size_t cap_weights;
    ot_map *weight_of; /* name of a constant -> index into weights */
    uint32_t *nodes;   /* [n_nodes] node of each computation, or OT_NONE */
    uint32_t n_nodes;
    size_t cap_nodes;
} lowering;

/* Shape of a value for the kernel: axes in order; above OT_TK_RANK_MAX, neighbours that nobody
 * cuts become one. */
typedef struct shape {
    uint32_t rank;
    const char *type;
    int64_t whole[OT_TK_RANK_MAX], tile[OT_TK_RANK_MAX];
    int dim[OT_TK_RANK_MAX]; /* dimension that cuts the axis, or -1 */
} shape;

static inline ot_status lower_nomem(const lowering *l) { return ot_fail_nomem(l->d); }

/* Spans of all values along dimension d, which has its variable: l->span[d], l->share[d]; of a
 * region that streams, l->kept as well. Fails: OT_E_NOMEM, OT_E_INPUT (a window that cannot be
 * made: our bug). */
ot_status lower_measure(lowering *l, uint32_t d) OT_MUST_USE;
/* false when region value v has no tile at all (empty in every tile), or its size overflows. */
bool lower_shape(const lowering *l, uint32_t v, shape *s);
/* Bytes of a tile. false: too many. */
bool lower_tile_bytes(const shape *s, int64_t *out);
/* Whether any dimension cuts region value v. */
bool lower_is_cut(const lowering *l, uint32_t v);
/* Ranges of the made windows of v, or of its pieces, in the outer tensor: out [s->rank]. */
void lower_ranges(const lowering *l, uint32_t v, const shape *s, bool piece, ot_tk_range *out);

#endif
