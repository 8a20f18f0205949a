/* What bench found, between the command and its two writers. */
#ifndef OT_BENCH_FACTS_H
#define OT_BENCH_FACTS_H

#include "measure/measure.h"

/* One of the two models. */
typedef struct ot_bench_side {
    const char *name; /* "original", "tiled" */
    ot_spread time;
    ot_session_figures figures;
    ot_level_bytes bytes;
    double references, misses; /* of the last-level cache, a run; when counters are permitted */
    double predicted;          /* seconds; 0: no prediction */
} ot_bench_side;

typedef struct ot_bench_region {
    uint32_t id;
    double predicted[2], measured[2]; /* seconds, original and tiled; measured: the least of the runs, 0 when not seen */
} ot_bench_region;

typedef struct ot_bench_output {
    const char *name;
    ot_difference difference;
} ot_bench_output;

typedef struct ot_bench_facts {
    const char *model, *tiled; /* files; tiled NULL: made here */
    const char *target;
    bool elsewhere; /* the target is another machine: predictions are not of what was measured, and are not compared with it */
    uint32_t threads, runs;
    bool counted; /* by the processor's counters */
    ot_bench_side side[2];
    ot_bench_region *regions; /* [n_regions] empty when the tiled model came from a file */
    uint32_t n_regions;
    const ot_node_time *times; /* [n_times] of the original's last run, borrowed from its session */
    uint32_t n_times;
    ot_bench_output *outputs; /* [n_outputs] */
    uint32_t n_outputs;
    bool same;           /* all outputs */
    double region_error; /* median of |predicted - measured| / measured over the tiled regions; < 0: none measured, or elsewhere */
    int64_t resident;
} ot_bench_facts;

#endif
