/* What bench found, between the command and its two writers. */
#ifndef OT_REPORT_FACTS_BENCH_FACTS_H
#define OT_REPORT_FACTS_BENCH_FACTS_H

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

/* What the device of one side did in one run that was recorded. */
typedef struct ot_bench_transfer {
    const char *direction; /* "upload", "download", "copy", "fill" */
    int64_t count, bytes;
    double seconds, bandwidth; /* bytes a second */
    double of_peak;            /* that by what large transfers reach; negative: not measured */
} ot_bench_transfer;

typedef struct ot_bench_shader {
    const char *name; /* operators that it computes: "Conv, Relu" */
    int64_t count, bytes;
    double seconds, bandwidth; /* bytes a second */
} ot_bench_shader;

/* Nodes of one operator that the host runs for one reason. */
typedef struct ot_bench_fallback {
    const char *op, *node, *why; /* node: the first one's name */
    uint32_t n;
} ot_bench_fallback;

typedef struct ot_bench_device {
    const char *side, *api, *name; /* "original", "tiled"; "opencl"; of the device */
    uint32_t number;
    /* bytes: all; of activations, of these at one time at the most; of constants */
    int64_t planned, arena, live, weights;
    int64_t peak, budget; /* bytes that buffers took, that they may take */
    int64_t n_made, n_freed, bytes_made, bytes_freed;
    double fragmentation;    /* part of the arena that is never filled: 1 - live / arena */
    double allocate_seconds; /* in calls that make and free buffers */
    /* seconds of the device from its first command to its last, and in which something ran */
    double span, busy;
    double compile_seconds;    /* of its programs, before the runs */
    uint32_t n_device, n_host; /* nodes */
    uint32_t n_launches;
    /* constants that were rewritten for the device; activations in blocks of channels */
    uint32_t n_packed, n_blocked;
    uint32_t n_spread;            /* kernels whose elements are spread over work-items */
    int64_t packed_bytes, filled; /* of these constants; zeros in them that fill up blocks */
    int64_t blocked_bytes;        /* of these activations, all together */
    /* predicted, a launch of each convolution and product: with the device's layouts, */
    double transactions;
    double transactions_plain; /* without them, */
    /* and if each held nothing but what is asked. Absent: no such kernel */
    double transactions_ideal;
    const ot_bench_transfer *transfers; /* [n_transfers] */
    uint32_t n_transfers;
    const ot_bench_shader *kernels; /* [n_kernels] what took longest first */
    uint32_t n_kernels;
    const ot_bench_fallback *fallbacks; /* [n_fallbacks] */
    uint32_t n_fallbacks;
} ot_bench_device;

typedef struct ot_bench_region {
    uint32_t id;
    /* seconds, original and tiled; measured: the least of the runs, 0 when not seen */
    double predicted[2], measured[2];
} ot_bench_region;

typedef struct ot_bench_output {
    const char *name;
    ot_difference difference;
} ot_bench_output;

typedef struct ot_bench_facts {
    const char *model, *tiled; /* files; tiled NULL: made here */
    const char *target;
    /* the target is another machine: predictions are not of what was measured, and are not
     * compared with it */
    bool elsewhere;
    uint32_t threads, runs;
    bool counted; /* by the processor's counters */
    ot_bench_side side[2];
    /* [n_devices] of both sides, in their order; empty on the host, and where nothing was
     * recorded */
    const ot_bench_device *devices;
    uint32_t n_devices;
    ot_bench_region *regions; /* [n_regions] empty when the tiled model came from a file */
    uint32_t n_regions;
    const ot_node_time *times; /* [n_times] of the original's last run, borrowed from its session */
    uint32_t n_times;
    ot_bench_output *outputs; /* [n_outputs] */
    uint32_t n_outputs;
    bool same; /* all outputs */
    /* median of |predicted - measured| / measured over the tiled regions; < 0: none measured, or
     * elsewhere */
    double region_error;
    int64_t resident;
} ot_bench_facts;

#endif
