/* A plan: which regions a graph is cut into, how they are tiled, and what that is worth; and the
 * options that it is made with. select/search makes plans. */
#ifndef OT_TILING_PLAN_H
#define OT_TILING_PLAN_H

#include "machine/target/target.h"
#include "tiling/region.h"

typedef struct ot_barrier {
    ot_id node;
    ot_reason reason;
} ot_barrier;

typedef struct ot_refusal {
    const ot_id *nodes; /* [n] */
    uint32_t n;
    ot_reason reason;
} ot_refusal;

typedef struct ot_figures {
    double time_s;
    int64_t peak_bytes;
    double traffic_bytes;
    double macs;
    int64_t largest_bytes; /* of the largest tensor that is made (stage select/) */
    /* of the process while it runs (stage select/); 0: not predicted for this runtime */
    int64_t growth_bytes;
    /* that it holds before that, with the model loaded; 0: not predicted, or part of
     * growth_bytes */
    int64_t loaded_bytes;
    int64_t loading_bytes; /* the most that it holds until then */
    int64_t process_bytes; /* the most of loading and running; 0: not predicted */
} ot_figures;

/* What a node is predicted to cost when it runs whole; seconds. time: compute and memory as they
 * overlap, and overhead. */
typedef struct ot_node_cost {
    ot_id node;
    double compute, memory, overhead, time;
    double traffic, macs;
    bool is_fused; /* the runtime merges it into its producer */
} ot_node_cost;

/* A tiling of a region's operators that was scored. Figures as in ot_region. */
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
    /* [n_spare] others that were built, if asked for: what else a set of regions may have */
    ot_region *spare;
    uint32_t n_spare;
    ot_barrier *barriers; /* [n_barriers] */
    uint32_t n_barriers;
    /* [n_refused] groups that could have been tiled and were not, with the reason */
    ot_refusal *refused;
    uint32_t n_refused;
    /* regions read this runtime's blocked values through views (stage select/); NULL: as they
     * are */
    const ot_runtime *viewed;
    /* results of regions are copied to this runtime's blocks (stage select/); NULL: none are */
    const ot_runtime *blocked;
    struct ot_form_memo *memo; /* tiles that are known (forms.h); NULL: none are */
    bool outer_weights,        /* bodies read weights by name (the runtime's) */
        /* border tiles of form loop have bodies of their own (the runtime's) */
        looped_borders, slices_apart, /* Slices of one axis name another one, too (the runtime's) */
        nests_scans,                  /* Scans in Scans write results in place (the runtime's) */
        in_order,                     /* tiles run one at a time (the target's) */
        /* the graph, tiled or not, is written as a branch, in which the runtime keeps no block
         * for its tensors (stage select/) */
        in_branch,
        /* ... that states no extents */
        hides_extents,
        /* weights are in a file beside the model, and bodies refer to it (stage select/) */
        data_file;
    /* values of so many bytes or more stay in pieces between regions, where that is possible
     * (stage select/); 0: none */
    int64_t unjoined_from;
    /* BatchNormalizations become part of convolutions in what is written (stage select/) */
    bool folds_norms;
    /* weights of so many bytes or more are packed when they are used (stage select/); 0: none */
    int64_t defer_from;
    /* weights of convolutions of so many bytes are not packed (stage select/); 0: all are */
    int64_t unpacked_from;
    /* large weights are read in pieces of about so many bytes (stage select/); 0: none are */
    int64_t piece_bytes;
    /* [n_plain] weights of convolutions that are not packed whatever their size: their maps are
     * plain tensors, which others read as they are (stage select/) */
    const ot_id *plain;
    uint32_t n_plain;
    /* a tensor of so many bytes comes and goes before the branch runs (stage select/); 0: none */
    int64_t first_block;
    double deferred_seconds; /* these take that long, and are part of tiled.time_s */
    ot_figures untiled, tiled;
    /* made for the model as stage transform/decompose/ has changed it, */
    bool is_decomposed;
    ot_figures whole; /* which took this before, untiled */
    /* nodes that compute less than in the file, for nobody reads it (stage select/); 0: none, and
     * `whole` is of the file otherwise. What is left out: multiply-adds, bytes of values */
    uint32_t narrowed_nodes;
    double unread_macs, unread_bytes;
    /* nodes that compute constants, which are in the file instead (stage select/); 0: none, and
     * `whole` is of the file otherwise */
    uint32_t folded_nodes;
    double compulsory_bytes; /* graph inputs + outputs + weights once */
    ot_plan_detail *detail;  /* NULL unless asked for */
    /* [n_lenders] plans whose arenas own what the regions point to; freed with it */
    struct ot_plan **lenders;
    uint32_t n_lenders;
    ot_region_store *store; /* of what regions point to, too; held; NULL: none */
} ot_plan;

typedef enum ot_goal { OT_GOAL_TIME, OT_GOAL_MEMORY } ot_goal;

#define OT_MAX_SLOWDOWN 0.10 /* of goal memory, where nobody says */
/* the same under a memory budget that nothing faster keeps */
#define OT_BUDGET_SLOWDOWN 1.0

/* What a search sets for itself, plan by plan; zeros where users' options alone count. */
typedef struct ot_search_settings {
    bool spare;            /* keep what was built and not chosen */
    uint32_t first_region; /* number of the first region */
    /* goal memory: bytes that a node may be live among for nothing; with price. With
     * byte_seconds: least bytes of what has a price; above 0, what nodes take beside their results
     * has a price, too */
    int64_t level;
    /* seconds for each byte above that and node: what the plan pays for memory all over the
     * graph, not at its peak alone; 0: the least peak is looked for */
    double price;
    /* 1 + the node around which regions are looked for; with spare, one for each interval that
     * holds it. 0: anywhere */
    uint32_t near;
    /* what a byte of a value that is kept between steps costs in the search, in seconds: a
     * process has such values in two layouts and in pieces. Regions stay that do not lower the
     * peak. 0: nothing */
    double byte_seconds;
    /* of regions that stream, least rows of a step on the axis of the region's sink; 0: by cost */
    uint32_t stream_rows;
    /* the limit on time is searched alone: what tighter ones find does not compete. Quicker, and
     * never better */
    bool one_lap;
    bool try_slower; /* see ot_selection.slower */
    /* goal memory: plans as for smaller fast memories compete, where the user said how large it is:
     * a larger one is to bring no worse plan */
    bool smaller_fast;
} ot_search_settings;

typedef struct ot_plan_options {
    ot_goal goal;
    int64_t memory_budget; /* bytes; 0 none */
    bool best_effort;      /* where the budget cannot be kept, the least that is found does */
    /* bytes that no tensor of the plan may exceed, whatever the goal; 0 none */
    int64_t max_tensor;
    double max_slowdown; /* fraction, 0.10 = 10 % (goal memory) */
    bool bit_exact;      /* no reductions in parts in standard ONNX (the target's bit_exact) */
    bool force;          /* tile every legal region */
    bool tie_break;      /* of plans that are about as fast, the leanest (tests turn it off) */
    bool tie_glpk;       /* found by GLPK, where it is built in: for comparisons */
    bool detail;         /* fill the plan's detail, for reports */
    /* use this form wherever it is legal (tests); OT_FORM_NONE: by cost. Stream, without
     * `force`: regions that stream are looked for by themselves, where they lower the peak */
    ot_form force_form;
    bool single_file; /* the model is written as one file, or to memory */
    bool no_streams;  /* no region streams: tiles with halos alone, for comparisons */
    ot_search_settings search;
} ot_plan_options;

void ot_plan_free(ot_plan *p);
/* The graph is written otherwise than it was read. */
static inline bool ot_plan_edits(const ot_plan *p)
{
    return p->n_regions > 0 || p->in_branch || p->defer_from > 0 || p->piece_bytes > 0 ||
           p->narrowed_nodes > 0 || p->folded_nodes > 0;
}
/* The model is: its graph, or where its weights are. */
static inline bool ot_plan_changes(const ot_plan *p) { return ot_plan_edits(p) || p->data_file; }
#endif
