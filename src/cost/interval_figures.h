/* Inside of the trials: what interval_figures.c fills while the walk goes down and
 * interval_choice.c turns into choices. */
#ifndef OT_COST_INTERVAL_FIGURES_H
#define OT_COST_INTERVAL_FIGURES_H

#include "tile_totals.h"

enum { SAMPLES = 3, COUNTS_2D = 8, COUNTS_3D = 6 };

/* Values that a region reads from outside, whose tiles take as long to sum up as a node does. Few
 * regions read as many. */
#define OT_PENDING_A_STEP 8

/* A value along one dim in tiles of one size; valid when the walk stamped the value and `seen`
 * matches. */
typedef struct value_cut {
    /* of the tiles looked at: what later readers want; once its node is visited, what is made */
    ot_wanted at[SAMPLES];
    /* elements cut out of these windows for readers of less, all tiles; counts once the value's
     * node joins */
    double crop;
    double held;  /* scratch: e.max before the node visited last */
    ot_extents e; /* of these windows */
} value_cut;

typedef struct dim_count {
    int64_t tile;
    uint32_t n; /* tiles */
    /* tiles looked at: first, last and, with more than two tiles, the middle one */
    uint32_t n_at;
    uint32_t at[SAMPLES];   /* [n_at] their numbers */
    double weight[SAMPLES]; /* [n_at] tiles that each stands for */
    bool dead;
    bool halo;        /* nodes compute some elements in several tiles, or tiles are uneven */
    bool overlap;     /* some window overlaps its neighbour's, or tiles are uneven */
    value_cut *value; /* [max_slots] */
    uint32_t *seen;   /* [max_slots] epoch */
    ot_node_cut node; /* of the node visited last */
} dim_count;

typedef struct pair {
    uint32_t c[OT_DIMS_MAX];
    ot_node_sums sums;
    uint32_t most_at; /* position of the node while which sums.ws bytes are live */
    double after;     /* bytes live after the node visited last, if that works in place */
    bool dead;
} pair;

struct ot_trial {
    const ot_seq *s;
    const ot_target *t;
    const ot_plan_options *o;
    ot_walk *w;
    uint32_t epoch;
    /* Values that the walk has touched, in a place each: a walk is short, graphs are not. */
    uint32_t *slot;    /* [n_values] its place, where slot_of says that it is of this walk */
    uint32_t *slot_of; /* [n_values] epoch */
    uint32_t n_slots, max_slots;
    uint32_t out_index;
    int8_t axes[OT_DIMS_MAX];
    uint32_t n_dims;
    uint32_t n_counts[OT_DIMS_MAX];
    dim_count dim[OT_DIMS_MAX][OT_COUNTS_MAX];
    pair *pairs; /* [n_pairs] */
    uint32_t n_pairs;
    ot_id *pending; /* [n_pending] cut values needed by the region and not made in it yet */
    uint32_t n_pending;
    uint32_t n_dequantized; /* of pending */
    bool *is_pending;       /* [n_values] */
    /* [n_values] position of the last reader in the region, of pending ones */
    uint32_t *pending_at;
    ot_id *whole; /* [n_whole] activations read whole along some dim */
    uint32_t n_whole;
    /* [n_values] bit d: a node of the region reads all of the axis that dim d cuts */
    uint8_t *whole_in;
    ot_totals border;    /* escaping outputs and weights; the same for all pairs */
    double outside_time; /* PRE and POST nodes */
    double pre_bytes;
    /* most bytes live while a PRE or POST node runs, without what the region reads and makes */
    int64_t outside_live;
    double in_time, in_traffic; /* IN nodes untiled */
    uint32_t n_in;
    /* an output's reader outside would compute other numbers (quantized group, blocked pool) */
    bool split_quant;
    ot_win *scratch;                  /* [max n_in] */
    ot_window_rule rule[OT_DIMS_MAX]; /* of the node visited last, where it is cut */
    bool *later;                      /* [max n_in] */
    double *bytes;                    /* [max n_in + n_out] */
    uint64_t work;                    /* see ot_trial_work */
};

/* v, which the nodes visited so far cut or read, along a dim in tiles of one size. */
static inline const value_cut *ot_trial_cut(const ot_trial *tr, const dim_count *x, ot_id v)
{
    return &x->value[tr->slot[v]];
}

/* Extents of v, which the nodes visited so far cut or read, in the tiles of the pair; e: [n_dims].
 */
void ot_trial_extents(const ot_trial *tr, const pair *p, ot_id v, ot_extents *e);
/* Totals of the interval visited so far in the tiles of the pair, tiles in flight included. See
 * interval_figures.c for what is approximate in them. */
void ot_trial_totals(const ot_trial *tr, const pair *p, ot_totals *x);

#endif
