/* Stages partition/ and plan/: which operators run tiled together, how, and what that is worth.
 *
 * A region is a convex set of nodes (an interval of the topological order, less nodes that run before it) with one tile
 * space: 1 to 3 dimensions, each the set of value axes that are cut together. Windows of one dimension do not depend on the
 * others, so a tile in two dimensions is a pair of independent windows.
 *
 *   dim 0: 4 tiles along H          region input x: need windows overlap (halo)
 *   x   |====--|                    region output y: pieces are disjoint and cover the axis
 *         |--====--|                interior values: made windows contain what their readers need
 *               |--====|
 */
#ifndef OT_PLAN_H
#define OT_PLAN_H

#include "analyse/analyse.h"
#include "plan/target/target.h"

#define OT_DIMS_MAX 3
#define OT_AX_SUM   (-3) /* as a node's lead axis: a reduction over the cut axis of its input, tile by tile (docs/engine-form.md) */

/* How the tiles are expressed in plain ONNX (DESIGN section 6). */
typedef enum ot_form {
    OT_FORM_NONE = 0,
    OT_FORM_SCAN,     /* one cut axis outermost in memory for all inputs and outputs, no halo, even tiles: Scan inputs and
                         outputs are slices of the outer tensors, nothing is copied */
    OT_FORM_UNROLLED, /* every tile written out: Slice ... Concat, exact pads */
    OT_FORM_PEELED,   /* interior tiles in one Loop/Scan body, the others written out; Concat */
    OT_FORM_WINDOW,   /* one body for all tiles: equal windows clamped into the tensor, original pads, crop at the end */
    OT_FORM_WHILE     /* the engine's operators (domain onnx_tile): a While per class of alike tiles, pieces written in place */
} ot_form;
const char *ot_form_name(ot_form f); /* "scan", "unrolled", "loop-peeled", "loop-window", "while" */

/* A value as a region sees it. Inputs are defined outside and read inside (constants included when they are cut). */
typedef struct ot_rvalue {
    ot_id value;              /* id in the graph */
    ot_id node;               /* producing region node (index into region.nodes), or OT_NONE for a region input */
    bool is_output;           /* produced inside, read outside (or graph output) */
    int8_t axis[OT_DIMS_MAX]; /* cut axis in each dim, or OT_AX_WHOLE */
    int64_t bytes;            /* whole value */
} ot_rvalue;

typedef struct ot_rnode {
    ot_id node;                         /* id in the graph */
    const uint32_t *in;                 /* [n_in] index into region.values, OT_NONE: omitted or a constant used whole */
    const uint32_t *out;                /* [n_out] index into region.values, OT_NONE: unused */
    uint32_t lead_out[OT_DIMS_MAX];     /* output whose axis is asked in each dim */
    int8_t lead_axis[OT_DIMS_MAX];      /* that axis, or OT_AX_WHOLE when the node is not cut in this dim (then computed
                                        whole in every tile), or OT_AX_SUM: operand 0 is cut along in_axis, each tile
                                        reduces its piece of that, and the output is combined from these parts */
    const int8_t *in_axis[OT_DIMS_MAX]; /* [n_in] from ot_access_axis; NULL when not cut in the dim */
    double work; /* bytes of scratch that the runtime's kernel takes for the whole node (column buffers, other layouts) */
} ot_rnode;

typedef struct ot_dim {
    uint32_t n_tiles; /* >= 2 */
    int64_t extent;   /* of the sink axis */
    int64_t tile;     /* tile extent on the sink axis; the last tile may be smaller */
    uint32_t sink;    /* index into region.values: the output the tiles are counted on */
} ot_dim;

typedef struct ot_region {
    uint32_t id; /* number in node names: tile/r<id>/ */
    uint32_t n_nodes;
    ot_rnode *nodes; /* [n_nodes] in topological order */
    uint32_t n_values;
    ot_rvalue *values; /* [n_values] inputs first (n_inputs of them), then produced values in order */
    uint32_t n_inputs;
    uint32_t n_dims;
    ot_dim dims[OT_DIMS_MAX];
    ot_form form;
    uint32_t first, last; /* positions in graph.order of the interval's first and last node (for printing) */
    /* predictions, filled by the planner */
    int64_t working_set;       /* fast memory that a tile takes: height of the planned arena of the region's kernel (bufplan.h),
                             weights that stay included */
    int64_t working_set_bound; /* most bytes of that kernel live at once: no plan is lower */
    bool weights_stay;         /* constants are read once and stay beside the tiles; else every tile streams them */
    bool overlap;              /* DMA moves tiles while others are computed: loaded and stored tiles have two slots */
    int64_t weight_bytes;      /* constants read by the region */
    double time_untiled, time_tiled, benefit; /* seconds */
    double mac_ratio;                         /* MACs with recompute / MACs without */
    double traffic;                           /* bytes through slow memory, tiled */
    double traffic_untiled;
    int64_t peak; /* slow-memory bytes live while the region runs: live-through + outputs (+ stitching) + tile, as the
                             cost model counts it */
} ot_region;

/* Whether a tile of dimension d makes a part of region value v, all of v's extents, that is combined with those of other tiles. */
static inline bool ot_is_part(const ot_region *r, uint32_t v, uint32_t d)
{
    return r->values[v].node != OT_NONE && r->nodes[r->values[v].node].lead_axis[d] == OT_AX_SUM;
}

/* Windows of one tile along one dimension. All arrays belong to the caller's arena. */
typedef struct ot_tile_windows {
    ot_win *need;    /* [n_values] hull of what readers in this tile need, plus `piece` for outputs; empty when unused */
    ot_win *made;    /* [n_values] what is really there: the slice taken (inputs: = need) or made by the node */
    ot_win *piece;   /* [n_values] for outputs: this tile's disjoint share; else empty */
    ot_op_tile *ops; /* [n_nodes]; in == NULL when the node is not cut in this dim; need.lo==need.hi: node unused in this tile */
} ot_tile_windows;

/* Allocate the arrays of *w for region r. */
ot_status ot_tile_windows_new(const ot_graph *g, const ot_region *r, ot_arena *a, ot_tile_windows *w) OT_MUST_USE;
/* Exact windows of tile k (0 <= k < n_tiles) of dimension d, computed backwards from the outputs' pieces.
 * For values not cut in d, windows are left {0,0}. OT_E_INPUT is never returned; false with *why when
 * a window cannot be made (the tiling is then illegal). */
bool ot_tile_windows_get(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t k, ot_tile_windows *w, const char **why);
/* Part of the work of region node i that falls to the tile with these windows along d. */
double ot_tile_share(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t i, const ot_tile_windows *w);
/* Equal windows for OT_FORM_WINDOW: made[v] of every tile has the same extent for each value; pads are the original ones.
 * Fills w for tile k as above with made = the clamped window. false (with why) when this region has no such form. */
bool ot_tile_windows_clamped(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t k, ot_tile_windows *w, const char **why);
/* The same in two steps, for callers that want many tiles: the common unit and window length once (w is scratch), then
 * each tile. */
typedef struct ot_clamp {
    int64_t units;  /* every cut axis in the dimension is a whole number of elements per unit long */
    int64_t window; /* units that each tile reads and makes */
} ot_clamp;
bool ot_tile_clamp_plan(const ot_graph *g, const ot_region *r, uint32_t d, ot_tile_windows *w, ot_clamp *c, const char **why);
bool ot_tile_clamp_fill(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t k, const ot_clamp *c, ot_tile_windows *w,
                        const char **why);

typedef struct ot_barrier {
    ot_id node;
    const char *reason; /* sentence; static or in the plan's arena */
} ot_barrier;

typedef struct ot_refusal {
    const ot_id *nodes; /* [n] */
    uint32_t n;
    const char *reason;
} ot_refusal;

typedef struct ot_figures {
    double time_s;
    int64_t peak_bytes;
    double traffic_bytes;
    double macs;
} ot_figures;

/* What a node is predicted to cost when it runs whole; seconds. time: compute and memory as they overlap, and overhead. */
typedef struct ot_node_cost {
    ot_id node;
    double compute, memory, overhead, time;
    double traffic, macs;
    bool is_fused; /* the runtime merges it into its producer */
} ot_node_cost;

/* A tiling of a region's operators that was weighed. Figures as in ot_region. */
typedef struct ot_candidate {
    uint32_t n_dims;
    int8_t axes[OT_DIMS_MAX]; /* of the region's sink */
    uint32_t tiles[OT_DIMS_MAX];
    int64_t tile[OT_DIMS_MAX];
    ot_form form;
    double time, traffic, mac_ratio;
    int64_t working_set, peak;
    bool fits, chosen;
} ot_candidate;

typedef struct ot_plan_detail {
    ot_node_cost *nodes; /* [n_nodes] of the graph's nodes that run, in topological order */
    uint32_t n_nodes;
    ot_candidate **candidates; /* [n_regions][n_candidates[k]] the chosen one first */
    uint32_t *n_candidates;    /* [n_regions] */
} ot_plan_detail;

typedef struct ot_plan {
    ot_arena *arena;    /* owns everything below; freed by ot_plan_free */
    ot_region *regions; /* [n_regions] in topological order, disjoint */
    uint32_t n_regions;
    ot_barrier *barriers; /* [n_barriers] */
    uint32_t n_barriers;
    ot_refusal *refused; /* [n_refused] groups that could have been tiled and were not, with the reason */
    uint32_t n_refused;
    ot_figures untiled, tiled;
    double compulsory_bytes; /* graph inputs + outputs + weights once */
    ot_plan_detail *detail;  /* NULL unless asked for */
} ot_plan;

typedef enum ot_goal { OT_GOAL_TIME, OT_GOAL_MEMORY } ot_goal;

typedef struct ot_plan_options {
    ot_goal goal;
    int64_t memory_budget; /* bytes; 0 none */
    double max_slowdown;   /* fraction, 0.10 = 10 % (goal memory) */
    bool force;            /* tile every legal region */
    bool engine;           /* write the engine's operators; the target is told by ot_target_set_engine */
    bool tie_break;        /* use GLPK (tests turn it off) */
    bool detail;           /* fill the plan's detail, for reports */
    uint32_t first_region; /* number of the first region */
    ot_form force_form;    /* use this form wherever it is legal (tests); OT_FORM_NONE: by cost */
} ot_plan_options;

/* Plan a graph. Requires ORDER, USES, SHAPES; keeps them. Fails with OT_E_BUDGET naming required, available and excess
 * bytes when memory_budget cannot be met. Deterministic, bounded. */
ot_status ot_plan_graph(ot_graph *g, const ot_target *t, const ot_plan_options *o, ot_plan **out) OT_MUST_USE;
void ot_plan_free(ot_plan *p);

/* Recompute every claim of the plan without the planner's code: regions disjoint, convex, connected; pieces cover outputs
 * exactly once; windows contain what brute-force propagation needs; working sets; capacity. First violation: OT_BUG-style
 * message through diag with OT_E_INPUT. */
ot_status ot_plan_check(const ot_graph *g, const ot_plan *p, const ot_target *t, ot_diag *d) OT_MUST_USE;

/* Replace every planned region in the graph by its tiled form. Breaks ORDER, USES (re-established before return), keeps SHAPES for new values. */
ot_status ot_rewrite(ot_graph *g, const ot_plan *p) OT_MUST_USE;
/* Whether ot_rewrite can write region r in form f (r->form is not looked at); if not, *why is a static sentence. Requires
 * SHAPES; changes nothing. */
#define OT_CLASSES_MAX 64 /* kinds of tiles of one region in form while, each with a body of its own */
bool ot_form_legal(const ot_graph *g, const ot_region *r, ot_form f, const char **why);

/* Replace static nodes that read values made inside a region by constants (rewrite/fold.c). Call before ot_rewrite. */
ot_status ot_fold_static(ot_graph *g, const ot_plan *p) OT_MUST_USE;
/* Whether it could: then reading a value does not keep it alive. */
bool ot_static_foldable(const ot_graph *g, const ot_node *n);

/* Notes for graph viewers about the regions' nodes: g->model->notes. Call before ot_rewrite, which dissolves what they tell of. */
ot_status ot_overlay(ot_graph *g, const ot_plan *p) OT_MUST_USE;

/* ---- lp.c, lp_glpk.c: small mixed-integer programs ---- */

typedef struct ot_lp ot_lp; /* minimise, rows lo <= a.x <= hi, columns with bounds, some integer */
ot_lp *ot_lp_new(ot_arena *a);
/* Returns column index, or OT_NONE on no memory. */
uint32_t ot_lp_col(ot_lp *lp, const char *name, double lo, double hi, double cost, bool integer);
/* Row over n columns. false on no memory. */
bool ot_lp_row(ot_lp *lp, const char *name, double lo, double hi, const uint32_t *cols, const double *coef, uint32_t n);
void ot_lp_set_cost(ot_lp *lp, uint32_t col, double cost);
ot_status ot_lp_dump(const ot_lp *lp, FILE *f) OT_MUST_USE; /* CPLEX LP text */
/* Solve with GLPK (bounded: at most `node_limit` branch-and-bound nodes... time limits would not be deterministic).
 * x: [n_cols] out. *optimal false: infeasible or the limit was hit (x then holds the best found if *feasible). */
ot_status ot_lp_solve(const ot_lp *lp, uint32_t node_limit, double *x, double *objective, bool *feasible,
                      bool *optimal) OT_MUST_USE;

#endif
