/* Measuring this machine for the native engine, or a device: what fills a target's figures.
 *
 *   bandwidth loops   arrays of half of each level --> bw_fast, bw_mid, bw_slow, and what one core
 *                     alone gets
 *   small models      one class of operators each  --> rates, by inverting the cost model
 *   empty loops                                    --> overheads
 *   small networks    predicted against measured   --> a correction of all rates
 *
 * Of a device (measure_device.c): copies by its kernels, the same models, the same loops,
 * transfers. There is no correction.
 */
#ifndef OT_MEASURE_CALIBRATE_H
#define OT_MEASURE_CALIBRATE_H

#include "device/device.h"
#include "machine/target/target.h"

typedef struct ot_calibration {
    uint32_t threads;
    ot_device *dev;        /* measured in place of this machine; `threads` is 1 then. NULL: none */
    ot_target target;      /* figures of `threads` cores together; capacities as they were given */
    double bw_l1;          /* no level of targets: for people */
    FILE *log;             /* a line for each step; NULL: silent */
    ot_progress *progress; /* NULL: none */
} ot_calibration;

/* measure_bandwidth.c: bytes read and written per second by `threads` threads that each stream
 * through `bytes` bytes of their own, for about `seconds`; the best of several passes. 0: no
 * memory. */
double ot_measure_bandwidth(int64_t bytes, uint32_t threads, double seconds);

/* measure_rates.c: rates into c->target, whose capacities, bandwidths and node_overhead are set. */
ot_status ot_measure_rates(ot_calibration *c, ot_diag *d) OT_MUST_USE;
/* The least time of a run of the graph (the inside of "graph main { ... }" of the text form) in
 * a session of `threads` threads, or on c->dev: transfers of inputs and outputs included. */
ot_status ot_measure_graph(const ot_calibration *c, const char *graph, uint32_t threads,
                           double *seconds, ot_diag *d) OT_MUST_USE;
/* What the kernels of a run on c->dev take at the least, by the device's own clock. */
ot_status ot_measure_operators(const ot_calibration *c, const char *graph, double *seconds,
                               ot_diag *d) OT_MUST_USE;

/* A model whose graph has that inside. */
ot_status ot_parse_inside(const char *graph, ot_diag *d, ot_model **out) OT_MUST_USE;

/* measure_whole.c: correct the rates, which are all set, by what small networks take. */
ot_status ot_measure_whole(ot_calibration *c, ot_diag *d) OT_MUST_USE;

/* measure_overheads.c: of nodes, and of the engine's loops; the latter stay as they are where it
 * cannot run them. */
ot_status ot_measure_overheads(ot_calibration *c, ot_diag *d) OT_MUST_USE;

/* measure_calibrate.c: everything; c->target is the host's estimate when this starts. About half
 * a minute. */
ot_status ot_calibrate(ot_calibration *c, ot_diag *d) OT_MUST_USE;
/* measure_device.c: the same of c->dev; fills all of c->target but its name and description. */
ot_status ot_calibrate_device(ot_calibration *c, ot_diag *d) OT_MUST_USE;

#endif
