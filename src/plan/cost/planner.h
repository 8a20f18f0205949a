/* What the files of partition/ and plan/ share: the node sequence, the backward walk, the cost model.
 * Private to these two stages; the public interface is plan.h.
 *
 * The planner works on `seq`: the graph's live nodes in topological order without static ones (weights and shape
 * arithmetic). Regions are intervals of seq, less the nodes in it that run before (PRE) or after (POST).
 */
#ifndef OT_PLANNER_H
#define OT_PLANNER_H

#include "region/region.h"

/* ---- region/sequence.c ---- */

typedef struct ot_seq {
    ot_graph *g;
    ot_arena *arena;    /* pass lifetime */
    uint32_t n;         /* nodes in the sequence */
    ot_id *node;        /* [n] node ids */
    uint32_t *pos;      /* [g->n_nodes] position, or OT_NONE */
    bool *act;          /* [g->n_values] an activation: neither constant nor made by a static node */
    int64_t *bytes;     /* [g->n_values] size of an activation or constant; 0 when unknown */
    int64_t *held;      /* [g->n_values] what it takes while it lives: its size, but for what the engine does not hold */
    int64_t *elems;     /* [g->n_values] */
    uint32_t *def;      /* [g->n_values] position of the producer; OT_NONE for graph inputs and constants */
    uint32_t *last;     /* [g->n_values] last reading position; n for graph outputs; OT_NONE when never read */
    bool *odd;          /* [n] before or after STFT or DFT, for which model checkers infer another number of bins once
                             shapes are fixed: not cut, so that no shape is stated that they would contradict */
    bool *fused;        /* [n] the target's runtime merges this node into its producer */
    uint32_t *head;     /* [n] first node of the merged group that the node is in; itself when it is alone */
    uint32_t *tail;     /* [n] last node of the attention that the engine runs as one with this node; OT_NONE: there is none */
    bool *inside;       /* [n + 1] between k-1 and k a group is open that the engine runs as one: no region begins or ends there */
    int64_t *wino_room; /* [n] bytes by which Winograd's weights of this 3x3 convolution may exceed the model's in the engine;
                             0: it is a direct one for lack of room; -1: it could not take them anyway */
    double *time;       /* [n + 1] prefix sums of untiled node times */
    double *traffic;    /* [n + 1] prefix sums of untiled slow-memory bytes */
    double *macs;       /* [n] */
    double *extra;      /* [n] bytes that the runtime's kernel moves besides its operands: layout changes around blocked
                             convolutions, column buffers; 0 for other runtimes */
    bool *blocked;      /* [g->n_values] held in a channel-blocked layout by the runtime (ONNX Runtime's NCHWc) */
    double *work;       /* [n] bytes of scratch that the runtime's kernel takes (column buffers) */
    int64_t *live;      /* [n] bytes of non-input activations live while node k runs, untiled */
    int64_t *cut;       /* [n + 1] bytes live between k-1 and k */
    int64_t peak;       /* max of live */
    bool sums;          /* reductions in parts: the form for it is the engine's */
    bool strict;        /* an output comes from a Sigmoid: the runtime keeps its absolute, not its relative precision, so
                             plans must not change any rounding */
} ot_seq;

/* Build the sequence and the untiled figures. Requires ORDER, USES, SHAPES. */
ot_status ot_seq_build(ot_graph *g, const ot_target *t, ot_arena *a, ot_seq *out) OT_MUST_USE;
/* True when node position p reads value v only for its shape or is folded away (static reader). */
bool ot_seq_reads_outside(const ot_seq *s, ot_id v, uint32_t first, uint32_t last, const uint8_t *state);

/* ---- region/barrier.c ---- */

/* Why the node can never be cut, or NULL when some axis of extent > 1 can be. */
const char *ot_barrier_reason(const ot_seq *s, ot_id node);

/* ---- region/walk.c: backward walk from a sink ---- */

enum { OT_ST_NONE = 0, OT_ST_IN, OT_ST_PRE, OT_ST_POST };

#define OT_AX_UNSET (-2)

/* What one node position looks like to a walk, for each dim. Slots are stamped: valid when stamp == walk epoch. */
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
    uint8_t *outside;            /* [n_values] read outside the region, from what the walk has seen (POST readers) */
    uint8_t *state;              /* [n] OT_ST_* of positions visited, valid for [lo, end] */
    uint32_t lo;                 /* lowest position visited so far */
    /* axis maps of the node visited last */
    int8_t *in_axis[OT_DIMS_MAX];  /* [max n_in] */
    int8_t *out_axis[OT_DIMS_MAX]; /* [max n_out] */
    uint32_t lead_out;             /* output asked */
    int8_t lead_axis[OT_DIMS_MAX];
    uint32_t n_pre_run; /* PRE nodes since the last IN */
} ot_walk;

ot_status ot_walk_new(const ot_seq *s, ot_walk *w) OT_MUST_USE;
/* As an output number: the region ends in a reduction in parts, and the tiles are counted on what that reduces. */
#define OT_SUM_SINK (OT_NONE - 1u)
/* Start at position `end` with output `out_index` of that node cut along axes. */
void ot_walk_start(ot_walk *w, uint32_t end, uint32_t out_index, const int8_t *axes, uint32_t n_dims);
/* Visit the next lower position (w->lo - 1, or `end` at first) and return its OT_ST_*. The caller stops at position 0. */
int ot_walk_step(ot_walk *w);
/* Cut axis of v in dim d as the walk knows it; OT_AX_UNSET when it is not cut. */
static inline int8_t ot_walk_axis(const ot_walk *w, ot_id v, uint32_t d)
{
    return w->stamp[v] == w->epoch ? w->axis[v][d] : OT_AX_UNSET;
}
/* True when v (made in the region) is read by a node beyond `end` or by POST, or is a graph output. */
bool ot_walk_escapes(const ot_walk *w, ot_id v);

/* ---- region/region.c ---- */

/* A chosen interval. */
typedef struct ot_choice {
    uint32_t first, end; /* positions, inclusive; first == end and n_dims == 0: one untiled node */
    uint32_t n_dims;
    uint32_t out_index;
    int8_t axes[OT_DIMS_MAX];
    int64_t tile[OT_DIMS_MAX];
    double time, traffic;
    int64_t peak;
    uint32_t loops, tiles;
    uint32_t n_in; /* nodes that run tiled */
    bool fits;     /* working set within the fast memory */
    ot_form form;
} ot_choice;

/* Build the region of a choice in arena `a` (windows not computed, predictions zero). */
ot_status ot_region_build(const ot_seq *s, ot_walk *w, const ot_choice *c, ot_arena *a, ot_region *out) OT_MUST_USE;

/* ---- plan/cost/node_cost.c ---- */

/* Time of work that computes and moves data at once: caches overlap the two in part, DMA fully. */
static inline double ot_cost_overlap(const ot_target *t, double compute, double memory)
{
    double longer = compute > memory ? compute : memory, shorter = compute > memory ? memory : compute;
    return t->is_cache ? longer + 0.35 * shorter : longer;
}
/* The same for the node at p. Winograd's algorithm computes between reading and writing, not meanwhile. */
double ot_cost_both(const ot_seq *s, uint32_t p, const ot_target *t, double compute, double memory);
/* Bandwidth that data of this footprint sees. */
double ot_cost_bw(const ot_target *t, double footprint);
bool ot_cost_has_constant(const ot_seq *s, const ot_node *n);
/* Seconds of compute of a whole node; fused nodes 0. */
double ot_cost_compute(const ot_graph *g, const ot_node *n, const ot_target *t, double macs, int64_t out_elems, int64_t in_elems);
/* How tiles cut a node's output along one dim. */
typedef struct ot_share {
    int8_t axis; /* of the node's output; negative: not cut */
    double made; /* sum over the tiles of the dim, relative to the axis */
    double tiles;
} ot_share;
/* Seconds of compute in all tiles, of which `compute` is the whole node's; n_dims 0: of the node whole. Knows what the engine
 * computes in other ways than a rate would say: cost_winograd.c, cost_attention.c. */
double ot_cost_compute_cut(const ot_seq *s, uint32_t p, const ot_target *t, double compute, const ot_share *cut, uint32_t n_dims);
/* Figures of the node at p, untiled. */
void ot_cost_node(const ot_seq *s, uint32_t p, const ot_target *t, ot_node_cost *x);
/* Whether the runtime merges the node at p into its producer; *producer: its position. */
bool ot_cost_is_fused(const ot_seq *s, uint32_t p, const ot_target *t, uint32_t *producer);
/* Seconds of compute that are left of a node's own `compute` when it is merged or moves nothing. */
double ot_cost_free_compute(const ot_seq *s, uint32_t p, const ot_target *t, double compute);
/* Seconds to pack `bytes` of activations that every tile reads whole, for all tiles: a matrix product packs its second factor
 * anew each time. */
double ot_cost_pack(const ot_target *t, double bytes, double tiles);
/* See ot_seq.extra. */
double ot_cost_extra(const ot_seq *s, uint32_t p, const ot_target *t);
/* Whether the node's outputs are blocked, given its inputs. */
bool ot_cost_makes_blocked(const ot_seq *s, uint32_t p, const ot_target *t);
/* See ot_seq.work. */
double ot_cost_work(const ot_seq *s, uint32_t p, const ot_target *t);
/* Whether the runtime holds v in a channel-blocked layout when the model is not tiled: made and read by operators that keep
 * it. At the border of a region such a value becomes a plain tensor. */
bool ot_cost_blocked(const ot_seq *s, ot_id v, const ot_target *t);
/* Bytes moved per byte of v cropped inside a region. */
double ot_cost_crop(const ot_seq *s, ot_id v, const ot_target *t);
/* Bytes of constants a node reads. */
int64_t ot_cost_weights(const ot_seq *s, uint32_t p);

/* ---- plan/cost/winograd_cost.c ---- */

/* See ot_seq.wino_room. Requires positions and sizes. */
void ot_cost_winograd_fill(ot_seq *s, const ot_target *t);
/* Seconds in all tiles by Winograd's algorithm; 0: the convolution does not take it. */
double ot_cost_winograd(const ot_seq *s, uint32_t p, const ot_target *t, const ot_share *cut, uint32_t n_dims);
/* Multiply-adds at rate_conv_winograd of a convolution on one thread of this machine; 0 likewise. */
double ot_cost_winograd_work(const ot_graph *g, const ot_node *n);

/* ---- plan/cost/attention_cost.c ---- */

/* Finds what the engine runs as one attention: tail, inside, head, fused, and no bytes for values in between. Requires `fused` and
 * `head` of all nodes. */
void ot_cost_attention_fill(ot_seq *s, const ot_target *t);
/* Seconds of compute of one of its nodes in all tiles; `compute`: at the rates of its operator. */
double ot_cost_attention(const ot_seq *s, uint32_t p, const ot_target *t, const ot_share *cut, uint32_t n_dims, double compute);

/* ---- plan/cost/quant_cost.c ---- */

/* Finds what the engine runs on 8-bit tensors: fused, head, inside, and no bytes for the float32 values. Requires what the functions
 * above fill. */
void ot_cost_quant_fill(ot_seq *s, const ot_target *t);
/* Does this product, pool, or node that moves data read a dequantized tensor? */
bool ot_cost_on_bytes(const ot_graph *g, const ot_node *n);

/* ---- plan/search/tilings.c ---- */

#define OT_COUNTS_MAX 14 /* tile counts tried per dim */

/* Tile extents worth trying on an axis: from 2 tiles to one element each, divisors preferred. spread: fewer, further apart
 * (for tilings in several dims). Returns how many. */
uint32_t ot_candidate_tiles(int64_t extent, uint32_t max_counts, bool spread, int64_t *tiles);
#define OT_AXIS_SETS_MAX 8
/* Sets of axes of output `out` (or OT_SUM_SINK) of the node at `end` that tiles may be cut along: sets[k][0 .. dims[k]), at most
 * OT_AXIS_SETS_MAX. Returns how many. Uses w's scratch. */
uint32_t ot_candidate_axes(const ot_seq *s, ot_walk *w, uint32_t end, uint32_t out, int8_t (*sets)[OT_DIMS_MAX], uint32_t *dims);

/* ---- plan/cost/interval_figures.c: cost of intervals while a walk goes down ---- */

typedef struct ot_trial ot_trial;

/* Scratch for all trials of a graph. NULL when memory ran out. */
ot_trial *ot_trial_new(const ot_seq *s, const ot_target *t, const ot_plan_options *o);
/* Begin: the walk has been started on the same end, output and axes. */
void ot_trial_start(ot_trial *tr, ot_walk *w, uint32_t out_index, const int8_t *axes, uint32_t n_dims);
/* Take in the node the walk has just visited (state st). False when no tiling is left worth following. */
bool ot_trial_visit(ot_trial *tr, int st);
/* Figures of the interval [w->lo, w->end] for the tile pair number `pair`; false when it is not usable there. */
bool ot_trial_choice(ot_trial *tr, uint32_t pair, ot_choice *c);
uint32_t ot_trial_pairs(const ot_trial *tr);

/* ---- plan/search/dynamic_program.c ---- */

/* Predictions for the engine are no finer than this fraction of the model's time: what is as fast may as well hold less. */
#define OT_ENGINE_ABOUT 0.03

typedef struct ot_path {
    ot_choice *steps; /* [n] in order; untiled nodes have n_dims 0 */
    uint32_t n;
    double time;
    int64_t peak;
    ot_choice *pool; /* [n_pool] tiled choices that some good plan uses (for the tie-break) */
    uint32_t n_pool;
} ot_path;

/* Cheapest way through the sequence. `ends`: optional filter. */
ot_status ot_dp_solve(const ot_seq *s, ot_walk *w, ot_trial *tr, const ot_target *t, const ot_plan_options *o,
                      ot_path *out) OT_MUST_USE;

/* ---- plan/search/tie_break.c ---- */

/* Among plans within epsilon of the path's time (and under the budgets): least peak, then loops, then tiles, by a small
 * MILP over the pool. Leaves *path as it was when GLPK finds nothing better or the program is too large. */
ot_status ot_tie_break(const ot_seq *s, const ot_target *t, const ot_plan_options *o, ot_path *path) OT_MUST_USE;

/* ---- plan/cost/region_figures.c ---- */

/* What a region does without where it would not fit. */
enum {
    OT_FIT_STREAM = 1, /* constants that stay: every tile reads them again */
    OT_FIT_SINGLE = 2  /* tiles in flight: transfers wait for compute */
};
/* Recompute a built region's predictions from the exact windows of every tile, for its form. how: OT_FIT_ bits. */
ot_status ot_region_exact(const ot_seq *s, const ot_target *t, ot_arena *a, unsigned how, ot_region *r) OT_MUST_USE;
/* Seconds and bytes of executing the region with the given totals in a form. */
typedef struct ot_totals {
    double t_fast, t_mid, t_slow; /* node time summed over tiles if the working set sits in that memory */
    double nodes;                 /* node executions */
    double in_bytes;              /* windows taken from outside, all tiles */
    double in_slow;               /* the part that comes from slow memory */
    double in_seconds;            /* to bring them from where their whole values lie; engine */
    double out_bytes;             /* pieces written */
    double out_seconds;           /* engine */
    double out_kept;              /* bytes of outputs that are not the caller's; engine */
    double weights;               /* constants read per tile */
    double tiles;
    uint32_t n_dims;
    uint32_t chain;               /* nodes in the region */
    int64_t ws;                   /* working set without weights */
    uint32_t n_inputs, n_outputs; /* cut inputs, outputs */
    double runs;                  /* contiguous pieces of memory copied where the last axis is cut */
    int64_t row;                  /* elements of a tile along the last axis where that is cut, else 0; engine */
    double border_whole;          /* layout changes at the region's border: bytes moved outside the tiles */
    double border_tile;           /* and inside them, all tiles */
    unsigned how;                 /* OT_FIT_ bits */
    bool halo;                    /* windows overlap, or tiles differ */
    bool outermost;               /* outputs are contiguous in memory tile by tile */
} ot_totals;
/* Transfers overlap compute. */
bool ot_overlaps(const ot_target *t, const ot_totals *x);
/* Bytes of a second input and output tile, where they do; else 0. */
int64_t ot_double_buffers(const ot_target *t, const ot_totals *x);
/* Constants are read once and stay in the fast memory beside the tiles. */
bool ot_weights_stay(const ot_target *t, const ot_totals *x);
void ot_form_cost(const ot_target *t, const ot_totals *x, ot_form form, double *time, double *traffic, int64_t *stitch_peak);

/* ---- plan/search/alternatives.c ---- */

/* What a report tells besides the plan: costs of nodes, tilings that were weighed. Figures are exact until a budget of windows
 * is used up; regions after that have no candidates but their own. Fills p->detail. */
ot_status ot_plan_detail_fill(const ot_seq *s, ot_walk *w, ot_trial *tr, const ot_target *t, ot_plan *p) OT_MUST_USE;

/* ---- plan/search/settle.c ---- */

#define OT_FIT_TRIES 1000 /* other tilings tried for a whole graph */

/* The region of a chosen interval: its best form, exact figures, working set planned. On a scratchpad, finer tiles when the
 * chosen ones do not fit (*tries counts down). *found false: no form can express it, or nothing fits; *out is then the region
 * as chosen. */
ot_status ot_region_fit(const ot_seq *s, ot_walk *w, const ot_target *t, const ot_plan_options *o, const ot_choice *choice,
                        ot_arena *a, uint32_t *tries, ot_region *out, bool *found) OT_MUST_USE;

#endif
