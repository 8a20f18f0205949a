/* The backward walk from a sink, and the region that it finds. */
#ifndef OT_TILING_WALK_H
#define OT_TILING_WALK_H

#include "forms.h"
#include "sequence.h"

enum { OT_ST_NONE = 0, OT_ST_IN, OT_ST_PRE, OT_ST_POST };

#define OT_AX_UNSET (-2)

/* What one node position looks like to a walk, for each dim. Slots are stamped: valid when stamp
 * == walk epoch. */
typedef struct ot_walk {
    const ot_seq *s;
    uint32_t end; /* position of the sink node */
    uint32_t n_dims;
    ot_id sink; /* value the tiles are counted on */
    int8_t sink_axis[OT_DIMS_MAX];
    uint32_t epoch;
    uint32_t *stamp;             /* [n_values] */
    int8_t (*axis)[OT_DIMS_MAX]; /* [n_values] cut axis, OT_AX_UNSET */
    uint8_t *whole;              /* [n_values] someone in the region (or PRE) needs it whole */
    /* [n_values] read outside the region, from what the walk has seen (POST readers) */
    uint8_t *outside;
    /* [n_values] scratch of ot_region_build, OT_NONE between its calls */
    uint32_t *number;
    uint8_t *state; /* [n] OT_ST_* of positions visited, valid for [lo, end] */
    uint32_t lo;    /* lowest position visited so far */
    /* axis maps of the node visited last */
    int8_t *in_axis[OT_DIMS_MAX];  /* [max n_in] */
    int8_t *out_axis[OT_DIMS_MAX]; /* [max n_out] */
    uint32_t lead_out;             /* output asked */
    int8_t lead_axis[OT_DIMS_MAX];
    uint32_t n_pre_run; /* PRE nodes since the last IN */
} ot_walk;

ot_status ot_walk_new(const ot_seq *s, ot_walk *w) OT_MUST_USE;
/* As an output number: the region ends in a reduction in parts, and the tiles are counted on
 * what that reduces. */
#define OT_SUM_SINK (OT_NONE - 1u)
/* Start at position `end` with output `out_index` of that node cut along axes. */
void ot_walk_start(ot_walk *w, uint32_t end, uint32_t out_index, const int8_t *axes,
                   uint32_t n_dims);
/* Visit the next lower position (w->lo - 1, or `end` at first) and return its OT_ST_*. The
 * caller stops at position 0. */
int ot_walk_step(ot_walk *w);
/* Cut axis of v in dim d as the walk knows it; OT_AX_UNSET when it is not cut. */
static inline int8_t ot_walk_axis(const ot_walk *w, ot_id v, uint32_t d)
{
    return w->stamp[v] == w->epoch ? w->axis[v][d] : OT_AX_UNSET;
}
/* True when v (made in the region) is read by a node beyond `end` or by POST, or is a graph output.
 */
bool ot_walk_escapes(const ot_walk *w, ot_id v);

/* ---- region_build.c ---- */

/* A chosen interval. A large graph has hundreds of thousands of them. */
typedef struct ot_choice {
    uint32_t first, end; /* positions, inclusive */
    uint32_t out_index;
    uint32_t loops, tiles;
    uint32_t n_in; /* nodes that run tiled */
    int64_t tile[OT_DIMS_MAX];
    double time;
    int64_t peak;
    int8_t axes[OT_DIMS_MAX];
    uint8_t n_dims;
    uint8_t form; /* ot_form */
    bool fits;    /* working set within the fast memory */
} ot_choice;

/* Build the region of a choice in arena `a` (windows not computed, predictions zero). */
ot_status ot_region_build(const ot_seq *s, ot_walk *w, const ot_choice *c, ot_arena *a,
                          ot_region *out) OT_MUST_USE;

/* ---- tilings.c ---- */

#define OT_COUNTS_MAX 14 /* tile counts tried per dim */

/* Tile extents worth trying on an axis: from 2 tiles to one element each, divisors preferred.
 * spread: fewer, further apart (for tilings in several dims). Returns how many. */
uint32_t ot_candidate_tiles(int64_t extent, uint32_t max_counts, bool spread, int64_t *tiles);
/* The same where the axis has another extent in every run: nothing is gained by dividing this
 * one; multiples of powers of two. */
uint32_t ot_candidate_dynamic_tiles(int64_t extent, uint32_t max_counts, int64_t *tiles);
#define OT_AXIS_SETS_MAX 8
/* Sets of axes of output `out` (or OT_SUM_SINK) of the node at `end` that tiles may be cut
 * along: sets[k][0 .. dims[k]), at most OT_AXIS_SETS_MAX. Returns how many. Uses w's scratch. */
uint32_t ot_candidate_axes(const ot_seq *s, ot_walk *w, uint32_t end, uint32_t out,
                           int8_t (*sets)[OT_DIMS_MAX], uint32_t *dims);

#endif
