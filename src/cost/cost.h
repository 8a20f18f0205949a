/* The cost model: pure functions of a sequence, a target and a tiling. */
#ifndef OT_COST_COST_H
#define OT_COST_COST_H

#include "fusion/fusion.h"
#include "tiling/plan.h"
#include "tiling/walk.h"

/* ---- sequence_cost.c ---- */

/* Fill the tables of figures of a sequence for a target: what is merged, layouts, times, live
 * bytes. Fails: OT_E_NOMEM. */
ot_status ot_cost_fill(ot_seq *s, const ot_target *t) OT_MUST_USE;

/* ---- node_cost.c ---- */

/* Time of work that computes and moves data at once: the runtime says how far these overlap. */
static inline double ot_cost_overlap(const ot_target *t, double compute, double memory)
{
    double longer = compute > memory ? compute : memory,
           shorter = compute > memory ? memory : compute;
    return longer + t->runtime->overlap * shorter;
}
/* The same for the node at p. Winograd's algorithm computes between reading and writing, not
 * meanwhile. */
double ot_cost_both(const ot_seq *s, uint32_t p, const ot_target *t, double compute, double memory);
/* Bandwidth that data of this footprint sees. */
double ot_cost_bw(const ot_target *t, double footprint);
/* Rate of bytes that change layout, or are cropped, at data that sees this bandwidth. */
static inline double ot_cost_layout_bw(const ot_target *t, double bw)
{
    return t->runtime->blocks.steady ? t->bw_slow : bw;
}
/* Bytes of v that are read or written: in a blocked layout channels are filled up to whole blocks.
 */
double ot_cost_moved(const ot_seq *s, ot_id v, const ot_target *t);
bool ot_cost_has_constant(const ot_seq *s, const ot_node *n);
/* Seconds of compute of a whole node; fused nodes 0. */
double ot_cost_compute(const ot_graph *g, const ot_node *n, const ot_target *t, double macs,
                       int64_t out_elems, int64_t in_elems);
/* Seconds by which convolution n of static extents is longer where its weights are not packed. */
double ot_cost_unpacked(const ot_graph *g, const ot_node *n, const ot_target *t);
/* How tiles cut a node's output along one dim. */
typedef struct ot_share {
    int8_t axis; /* of the node's output; negative: not cut */
    double made; /* sum over the tiles of the dim, relative to the axis */
    double tiles;
} ot_share;
/* Seconds of compute in all tiles, of which `compute` is the whole node's; n_dims 0: of the node
 * whole. Knows what the engine computes in other ways than a rate would say: cost_winograd.c,
 * cost_attention.c. */
double ot_cost_compute_cut(const ot_seq *s, uint32_t p, const ot_target *t, double compute,
                           const ot_share *cut, uint32_t n_dims);
/* Figures of the node at p, untiled. */
void ot_cost_node(const ot_seq *s, uint32_t p, const ot_target *t, ot_node_cost *x);
/* Seconds of compute that are left of a node's own `compute` when it is merged or moves nothing. */
double ot_cost_free_compute(const ot_seq *s, uint32_t p, const ot_target *t, double compute);
/* Seconds to pack `bytes` of activations that every tile reads whole, for all tiles: a matrix
 * product packs its second factor anew each time. */
double ot_cost_pack(const ot_target *t, double bytes, double tiles);
/* See ot_seq.extra. */
double ot_cost_extra(const ot_seq *s, uint32_t p, const ot_target *t);
/* Whether the node's outputs are blocked, given its inputs. */
bool ot_cost_makes_blocked(const ot_seq *s, uint32_t p, const ot_target *t);
/* See ot_seq.work. */
double ot_cost_work(const ot_seq *s, uint32_t p, const ot_target *t);
/* Whether the runtime holds v in a channel-blocked layout when the model is not tiled: made and
 * read by operators that keep it. At the border of a region such a value becomes a plain tensor. */
bool ot_cost_blocked(const ot_seq *s, ot_id v, const ot_target *t);
/* Bytes moved per byte of v cropped inside a region. */
double ot_cost_crop(const ot_seq *s, ot_id v, const ot_target *t);
/* Bytes of constants that the node at p reads whole in every tile. Those that are cut come as
 * windows, like activations. in_axis: [n_dims] arrays [n_in] of cut axes, negative: whole. */
int64_t ot_cost_weights(const ot_seq *s, uint32_t p, const int8_t *const *in_axis, uint32_t n_dims);

/* ---- group_cost.c ---- */

/* What the target's runtime merges: fused, head, tail, inside. Requires sizes. Fails: OT_E_NOMEM.
 */
ot_status ot_cost_groups_fill(ot_seq *s, const ot_target *t) OT_MUST_USE;

/* ---- winograd_cost.c ---- */

/* See ot_seq.wino_room. Requires positions and sizes. */
void ot_cost_winograd_fill(ot_seq *s, const ot_target *t);
/* Seconds in all tiles by Winograd's algorithm; 0: the convolution does not take it. */
double ot_cost_winograd(const ot_seq *s, uint32_t p, const ot_target *t, const ot_share *cut,
                        uint32_t n_dims);
/* Multiply-adds at rate_conv_winograd of a convolution on one thread of this machine; 0 likewise.
 */
double ot_cost_winograd_work(const ot_graph *g, const ot_node *n);

/* ---- attention_cost.c ---- */

/* The nodes of an attention (places are positions) as the engine runs them: tail, inside, head,
 * fused, strided, and no bytes for values in between. Requires `fused`, `head` and `strided` of
 * all nodes. */
void ot_cost_attention_merge(ot_seq *s, const ot_group *x);
/* Seconds of compute of one of its nodes in all tiles; `compute`: at the rates of its operator. */
double ot_cost_attention(const ot_seq *s, uint32_t p, const ot_target *t, const ot_share *cut,
                         uint32_t n_dims, double compute);

/* ---- quant_cost.c ---- */

/* Where the runtime runs DequantizeLinear -> operator -> QuantizeLinear as one integer kernel: a
 * region that hands out v, a result of n, would end inside such a group (or before a pool that
 * would sum in another order). Requires int8_groups. */
bool ot_cost_torn(const ot_seq *s, const ot_target *t, const ot_node *n, ot_id v);

/* A group of bytes (places are positions), of which `head`, `fused` are known: on_bytes, inside,
 * and no bytes for values in it. */
void ot_cost_bytes_merge(ot_seq *s, const ot_bytes_group *x);
/* What quantizers leave when all groups are known, chained: [n] is that node part of a chain?
 * Likewise. */
void ot_cost_quantizers_fill(ot_seq *s, const ot_group_view *v, const bool *chained);

/* ---- region_figures.c ---- */

/* What a region does without where it would not fit. */
enum {
    OT_FIT_STREAM = 1, /* constants that stay: every tile reads them again */
    OT_FIT_SINGLE = 2  /* tiles in flight: transfers wait for compute */
};
/* Recompute a built region's predictions from the exact windows of every tile, for its form.
 * how: OT_FIT_ bits. */
ot_status ot_region_exact(const ot_seq *s, const ot_target *t, unsigned how,
                          ot_region *r) OT_MUST_USE;
/* Seconds and bytes of executing the region with the given totals in a form. */
typedef struct ot_totals {
    /* node time summed over tiles if the working set sits in that memory */
    double t_fast, t_mid, t_slow;
    double nodes;       /* node executions */
    double in_bytes;    /* windows taken from outside, all tiles */
    double in_slow;     /* the part that comes from slow memory */
    double in_seconds;  /* to bring them from where their whole values lie; engine */
    double out_bytes;   /* pieces written */
    double out_seconds; /* engine */
    double out_kept;    /* bytes of outputs that are not the caller's; engine */
    double weights;     /* constants read per tile */
    double tiles;
    uint32_t n_dims;
    uint32_t chain;               /* nodes in the region */
    int64_t ws;                   /* working set without weights */
    double carried;               /* form stream: bytes that a step hands on; exact figures only */
    int64_t largest;              /* see ot_region; exact figures only */
    uint32_t n_inputs, n_outputs; /* cut inputs, outputs */
    /* contiguous pieces of memory copied where the last axis is cut */
    double runs;
    /* numbers of such windows where loops take them one by one: before opset 10 */
    double gathered;
    /* elements of a tile along the last axis where that is cut, else 0; engine */
    int64_t row;
    /* seconds to bring inputs and results over whole, as the nodes pay for it untiled; */
    double transfers;
    /* inputs that move in tiles: bytes of all windows, and their seconds of those above; */
    double up_bytes, up_whole;
    double down_bytes;     /* results that may: they do with enough tiles */
    uint32_t n_up, n_down; /* how many of both */
    /* layout changes of inputs at the region's border: bytes moved outside the tiles */
    double border_whole;
    double border_tile;                       /* and inside them, all tiles; */
    double border_whole_out, border_tile_out; /* those of outputs */
    unsigned how;                             /* OT_FIT_ bits */
    /* nodes compute some elements in several tiles, or tiles are uneven */
    bool halo;
    bool outermost; /* outputs are contiguous in memory tile by tile */
} ot_totals;
/* Transfers overlap compute. */
bool ot_overlaps(const ot_target *t, const ot_totals *x);
/* Bytes of a second input and output tile, where they do; else 0. */
int64_t ot_double_buffers(const ot_target *t, const ot_totals *x);
/* Constants are read once and stay in the fast memory beside the tiles. */
bool ot_weights_stay(const ot_target *t, const ot_totals *x);
/* Bytes that a process holds for a tiled region as long as it runs the model: operators that
 * were written, values that bodies took in. */
int64_t ot_form_holds(const ot_seq *s, const ot_target *t, const ot_region *r);
void ot_form_cost(const ot_target *t, const ot_totals *x, ot_form form, double *time,
                  double *traffic, int64_t *reassembly_peak);

/* ---- transfer_cost.c: graph inputs and results between host and device; nothing where the
 * runtime or the target says nothing of it ---- */

/* Seconds to bring over, whole, the inputs that the node at p reads first, and the results that
 * it makes. */
double ot_cost_transfers(const ot_seq *s, uint32_t p, const ot_target *t);
/* An input of a region, read by windows of so many bytes, all tiles and the largest one; an
 * output, cut along axis (negative: not). */
void ot_streams_add_input(ot_totals *x, const ot_seq *s, const ot_target *t, ot_id v,
                          double windows, double largest);
void ot_streams_add_output(ot_totals *x, const ot_seq *s, const ot_target *t, ot_id v, int8_t axis);
/* Seconds of a region whose kernels take so long. */
double ot_cost_streams(const ot_target *t, const ot_totals *x, double kernels);

/* ---- interval_figures.c: cost of intervals while a walk goes down ---- */

typedef struct ot_trial ot_trial;

/* Scratch for all trials of a graph. NULL when memory ran out. */
ot_trial *ot_trial_new(const ot_seq *s, const ot_target *t, const ot_plan_options *o);
/* Begin: the walk has been started on the same end, output and axes. */
void ot_trial_start(ot_trial *tr, ot_walk *w, uint32_t out_index, const int8_t *axes,
                    uint32_t n_dims);
/* Take in the node the walk has just visited (state st). False when no tiling is left worth
 * following. */
bool ot_trial_visit(ot_trial *tr, int st);
/* Figures of the interval [w->lo, w->end] for the tile pair number `pair`; false when it is not
 * usable there. */
bool ot_trial_choice(ot_trial *tr, uint32_t pair, ot_choice *c);
uint32_t ot_trial_pairs(const ot_trial *tr);
/* Bytes of v, which the nodes visited make or read cut, in the largest tile of the pair. */
double ot_trial_tile_bytes(const ot_trial *tr, uint32_t pair, ot_id v);
/* What all visits so far have cost: nodes times the tile counts and tilings
 * that were alive, those that read many values from outside of their region as several. */
uint64_t ot_trial_work(const ot_trial *tr);
/* So much more, of visits whose figures are known: what follows is bounded as if they were made. */
void ot_trial_knows(ot_trial *tr, uint64_t work);

#endif
