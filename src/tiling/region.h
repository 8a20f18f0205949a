/* Stage tiling/: sets of operators that run tiled together, and the windows of their tiles.
 *
 * A region is a convex set of nodes (an interval of the topological order, less nodes that run
 * before it) with one tile space: 1 to 3 dimensions, each the set of value axes that are cut
 * together. Windows of one dimension do not depend on the others, so a tile in two dimensions is
 * a pair of independent windows.
 *
 *   dim 0: 4 tiles along H          region input x: need windows overlap (halo)
 *   x   |====--|                    region output y: pieces are disjoint and cover the axis
 *         |--====--|                interior values: made windows contain what their readers need
 *               |--====|
 */
#ifndef OT_TILING_REGION_H
#define OT_TILING_REGION_H

#include "machine/runtime/form.h"
#include "ops/ops.h"

#define OT_DIMS_MAX 3
/* as a node's lead axis: a reduction over the cut axis of its input, tile by tile
 * (docs/engine-form.md) */
#define OT_AX_SUM (-3)

/* A value as a region sees it. Inputs are defined outside and read inside (constants included
 * when they are cut). */
typedef struct ot_rvalue {
    ot_id value; /* id in the graph */
    /* producing region node (index into region.nodes), or OT_NONE for a region input */
    ot_id node;
    bool is_output;           /* produced inside, read outside (or graph output) */
    int8_t axis[OT_DIMS_MAX]; /* cut axis in each dim, or OT_AX_WHOLE */
    int64_t bytes;            /* whole value */
} ot_rvalue;

typedef struct ot_rnode {
    ot_id node; /* id in the graph */
    /* [n_in] index into region.values, OT_NONE: omitted or a constant used whole */
    const uint32_t *in;
    const uint32_t *out;            /* [n_out] index into region.values, OT_NONE: unused */
    uint32_t lead_out[OT_DIMS_MAX]; /* output whose axis is asked in each dim */
    /* that axis, or OT_AX_WHOLE when the node is not cut in this dim (then computed whole in
     * every tile), or OT_AX_SUM: operand 0 is cut along in_axis, each tile reduces its piece of
     * that, and the output is combined from these parts */
    int8_t lead_axis[OT_DIMS_MAX];
    /* [n_in] from ot_access_axis; NULL when not cut in the dim */
    const int8_t *in_axis[OT_DIMS_MAX];
    /* bytes of scratch that the runtime's kernel takes for the whole node (column buffers, other
     * layouts) */
    double work;
} ot_rnode;

typedef struct ot_dim {
    uint32_t n_tiles; /* >= 2 */
    uint32_t sink;    /* index into region.values: the output the tiles are counted on */
    int64_t extent;   /* of the sink axis */
    int64_t tile;     /* tile extent on the sink axis; the last tile may be smaller */
} ot_dim;

typedef struct ot_region {
    uint32_t id; /* number in node names: tile/r<id>/ */
    uint32_t n_nodes;
    ot_rnode *nodes; /* [n_nodes] in topological order */
    uint32_t n_values;
    /* [n_values] inputs first (n_inputs of them), then produced values in order */
    ot_rvalue *values;
    uint32_t n_inputs;
    uint32_t n_dims;
    ot_dim dims[OT_DIMS_MAX];
    /* from here on: of one tiling, what differs between its forms (fitted.c) */
    ot_form form;
    /* form stream, planned for somebody who writes in place: line buffers, see stream.h */
    bool rolling;
    /* form stream, written in the engine's operators: small steps in front as with line buffers;
     * the rest as in Loops */
    bool in_classes;
    /* constants are read once and stay beside the tiles; else every tile streams them */
    bool weights_stay;
    /* DMA moves tiles while others are computed: loaded and stored tiles have two slots */
    bool overlap;
    /* form stream, while it is looked at: its steps, once somebody asked (stream.h); else NULL */
    struct ot_stream_memo *memo;
    /* positions in graph.order of the interval's first and last node (for printing) */
    uint32_t first, last;
    /* predictions, filled by the planner */
    /* fast memory that a tile takes: height of the planned arena of the region's kernel
     * (bufplan.h), weights that stay included */
    int64_t working_set;
    int64_t working_set_bound; /* most bytes of that kernel live at once: no plan is lower */
    int64_t weight_bytes;      /* constants read by the region */
    double time_untiled, time_tiled, benefit; /* seconds */
    /* of time_tiled: pipes that wait for each other where buffers share memory */
    double stall;
    double mac_ratio; /* MACs with recompute / MACs without */
    double traffic;   /* bytes through slow memory, tiled */
    double traffic_untiled;
    int64_t carried; /* form stream: bytes that a step hands on */
    int64_t largest; /* bytes of the largest tensor that is made: in a tile, or an output */
    /* slow-memory bytes live while the region runs: live-through + outputs (+ reassembly) + tile,
     * as the cost model counts it */
    int64_t peak;
} ot_region;

/* a and b are one tiling, in one form, with the same beside its tiles. */
bool ot_region_is(const ot_region *a, const ot_region *b);

/* What regions point to, for several plans: it goes with the last one that holds it. */
typedef struct ot_region_store {
    ot_arena *arena;
    uint32_t holders;
} ot_region_store;
/* Held by the caller. NULL: no memory. */
ot_region_store *ot_region_store_new(void);
/* One more holder of x, which is returned. */
ot_region_store *ot_region_store_hold(ot_region_store *x);
/* NULL: nothing to do. */
void ot_region_store_release(ot_region_store *x);

/* A copy of r, a region of g, in arena a. Fails: OT_E_NOMEM. */
ot_status ot_region_copy(const ot_graph *g, const ot_region *r, ot_arena *a,
                         ot_region *out) OT_MUST_USE;

/* Whether a tile of dimension d makes a part of region value v, all of v's extents, that is
 * combined with those of other tiles. */
static inline bool ot_is_part(const ot_region *r, uint32_t v, uint32_t d)
{
    return r->values[v].node != OT_NONE && r->nodes[r->values[v].node].lead_axis[d] == OT_AX_SUM;
}

/* Windows of one tile along one dimension. All arrays belong to the caller's arena. */
typedef struct ot_tile_windows {
    /* [n_values] hull of what readers in this tile need, plus `piece` for outputs; empty when
     * unused */
    ot_win *need;
    /* [n_values] what is really there: the slice taken (inputs: = need) or made by the node */
    ot_win *made;
    ot_win *piece; /* [n_values] for outputs: this tile's disjoint share; else empty */
    /* [n_nodes]; in == NULL when the node is not cut in this dim; need.lo==need.hi: node unused
     * in this tile */
    ot_op_tile *ops;
    /* [n_values] form stream: the part of `made` that the step before handed on (of inputs:
     * rolling alone); NULL in other forms */
    ot_win *kept;
} ot_tile_windows;

/* Allocate the arrays of *w for region r. */
ot_status ot_tile_windows_new(const ot_graph *g, const ot_region *r, ot_arena *a,
                              ot_tile_windows *w) OT_MUST_USE;
/* Exact windows of tile k (0 <= k < n_tiles) of dimension d, computed backwards from the
 * outputs' pieces. For values not cut in d, windows are left {0,0}. OT_E_INPUT is never
 * returned; false with *why when a window cannot be made (the tiling is then illegal). */
bool ot_tile_windows_get(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t k,
                         ot_tile_windows *w, ot_why *why);
/* The same for a tile that has [lo, hi) of the sink axis. */
bool ot_tile_windows_part(const ot_graph *g, const ot_region *r, uint32_t d, int64_t lo, int64_t hi,
                          ot_tile_windows *w, ot_why *why);
/* Part of the work of region node i that falls to the tile with these windows along d. */
double ot_tile_share(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t i,
                     const ot_tile_windows *w);

#endif
