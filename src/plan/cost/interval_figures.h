/* Inside of the trials: what trial.c fills while the walk goes down and trial_choice.c turns into choices. */
#ifndef OT_TRIAL_H
#define OT_TRIAL_H

#include "cost.h"

enum { SAMPLES = 3, COUNTS_2D = 8, COUNTS_3D = 6 };

typedef struct dim_count {
    int64_t tile;
    uint32_t n;           /* tiles */
    uint32_t at[SAMPLES]; /* tile numbers sampled */
    double weight[SAMPLES];
    bool dead;
    bool halo;                 /* some window overlaps its neighbour's, or tiles are uneven */
    ot_win (*win)[SAMPLES];    /* [n_values] hull needed; valid when the walk stamped the value and `seen` matches */
    uint32_t *seen;            /* [n_values] epoch */
    float *sum, *max;          /* [n_values] extents over all tiles / of the largest tile, relative to the whole axis */
    double made_sum, made_max; /* of the node visited last, relative */
    double crop;               /* bytes moved because its inputs are also read in another window, all tiles */
} dim_count;

typedef struct pair {
    uint32_t c[OT_DIMS_MAX];
    double t_fast, t_mid, t_slow, nodes;
    double ws;
    bool dead;
} pair;

struct ot_trial {
    const ot_seq *s;
    const ot_target *t;
    const ot_plan_options *o;
    ot_walk *w;
    uint32_t epoch;
    uint32_t out_index;
    int8_t axes[OT_DIMS_MAX];
    uint32_t n_dims;
    uint32_t n_counts[OT_DIMS_MAX];
    dim_count dim[OT_DIMS_MAX][OT_COUNTS_MAX];
    pair *pairs; /* [n_pairs] */
    uint32_t n_pairs;
    ot_id *pending; /* [n_pending] cut values needed by the region and not made in it yet */
    uint32_t n_pending;
    size_t cap_pending;
    bool *is_pending; /* [n_values] */
    ot_id *whole;     /* [n_whole] activations read whole */
    uint32_t n_whole;
    size_t cap_whole;
    bool *is_whole;     /* [n_values] */
    double out_bytes;   /* escaping outputs */
    double out_seconds; /* to write them where they belong */
    double out_kept;    /* those of them that are no graph outputs */
    double out_blocked; /* those of them that the untiled model keeps blocked */
    uint32_t n_outputs;
    double weights;
    double outside_time; /* PRE and POST nodes */
    double outside_traffic;
    double pre_bytes;
    int64_t outside_live;       /* most bytes live while a PRE or POST node runs, without what the region reads and makes */
    double in_time, in_traffic; /* IN nodes untiled */
    uint32_t n_in;
    bool outermost_out;
    /* For OT_FORM_WINDOW: whole nodes, whole live bytes, common unit of the cut axes. */
    double w_fast, w_mid, w_slow, w_pack;
    uint32_t w_nodes;
    double w_ws;
    int64_t w_unit[OT_DIMS_MAX];
    bool w_ok;
    bool split_quant; /* an output's reader outside would compute other numbers (quantized group, blocked pool) */
    ot_win *scratch;  /* [max n_in] */
};

/* Extents of v in all tiles of the pair, in bytes; of the largest tile; number of tiles. */
double ot_trial_sum_bytes(const ot_trial *tr, const pair *p, ot_id v);
double ot_trial_tile_bytes(const ot_trial *tr, const pair *p, ot_id v);
double ot_trial_tiles(const ot_trial *tr, const pair *p);

#endif
