/* What run, bench, verify and calibrate share: arrays for a model's inputs and outputs, timed
 * runs, comparisons, counts.
 *
 *   model --ot_feed_new--> feed: an array for each input  --.
 *   files, random numbers -----'                            +--> ot_measured: session + places for
 *                                                           outputs --> seconds, figures
 *   other model --ot_feed_adopt--> the same arrays ---------'
 */
#ifndef OT_MEASURE_MEASURE_H
#define OT_MEASURE_MEASURE_H

#include "engine/core/array_file.h"
#include "engine/core/engine.h"
#include "engine/core/engine_trace.h"
#include "engine/core/row_window.h"
#include "machine/target/target.h"

/* ---- measure_feed.c: arrays for the inputs of a model ---- */

typedef struct ot_run_input {
    const char *name; /* of the model's input */
    const char *file; /* engine/core/array_file.h: .npy, .raw, .pb */
} ot_run_input;

typedef struct ot_feed_request {
    const ot_run_input *inputs; /* [n_inputs] those that are given; the others are random */
    size_t n_inputs;
    /* [n_shapes] of inputs that are not given; dynamic dimensions are guessed else
     * (ops/guessed_size.h) */
    const ot_shape_binding *shapes;
    size_t n_shapes;
    /* of the random numbers: floats from 0 to below 1, integers 0 or 1, booleans true */
    uint64_t seed;
    bool maps; /* large files are mapped, not read: ot_feed_check after a run */
} ot_feed_request;

typedef struct ot_feed {
    /* [n] of each graph input, a reference each; no data: an initializer that stays as it is */
    ot_nd *arrays;
    uint32_t n;
    ot_shape_binding *shapes; /* [n_shapes] of all arrays, and those asked for */
    size_t n_shapes;
    /* [n_overrides] initializers given other contents; the arrays are those above */
    ot_override *overrides;
    size_t n_overrides;
    ot_shape_binding *guessed; /* [n_guessed] of these, sizes that are a guess */
    size_t n_guessed;
    ot_array_in *files; /* [n] of inputs that are mapped: path NULL else */
} ot_feed;

/* Read and make up the arrays for g. Tables live in `a`. *out is to be released in any case.
 * Fails: OT_E_USAGE (no such input), OT_E_INPUT (a file that does not suit, an input for which
 * nothing can be made up), OT_E_NOMEM. */
ot_status ot_feed_new(const ot_graph *g, const ot_feed_request *r, ot_arena *a, ot_diag *d,
                      ot_feed *out) OT_MUST_USE;
/* The same arrays for graph g, found by the inputs' names in `from`, for which `f` was made.
 * OT_E_INPUT: g has another input. */
ot_status ot_feed_adopt(const ot_graph *g, const ot_graph *from, const ot_feed *f, ot_arena *a,
                        ot_diag *d, ot_feed *out) OT_MUST_USE;
/* Where sizes were guessed, a line that says them all and how to say others. */
void ot_feed_say_guess(const ot_feed *f, FILE *out);
/* After a run: OT_E_INPUT where a file that is mapped has become shorter. */
ot_status ot_feed_check(const ot_feed *f, ot_diag *d) OT_MUST_USE;
/* Drop the arrays that no override needs: after the last run. */
void ot_feed_release_inputs(ot_feed *f);
void ot_feed_release(ot_feed *f);

/* ---- measure.c: a model that is run again and again ---- */

typedef struct ot_measured {
    const ot_model *m;
    ot_session *s;
    ot_nd *in;  /* [session inputs] borrowed from the feed */
    ot_nd *out; /* [n_outputs] of the last run: in `places`, else the session's */
    /* [n_outputs] memory for outputs of known shape: no data where it is not known */
    ot_nd *places;
    bool has_places; /* from the first run on */
    uint32_t n_outputs;
    double *seconds; /* [n_runs] of ot_session_run alone */
    uint32_t n_runs;
    size_t cap_runs;
    ot_arena *a;
} ot_measured;

/* A session of m (threads, reference, poison of *base) for the feed's arrays. *x is to be closed
 * in any case. m and feed stay as they are until then. */
ot_status ot_measured_open(ot_measured *x, ot_model *m, const ot_feed *f,
                           const ot_session_options *base, ot_arena *a, ot_diag *d) OT_MUST_USE;
/* Output k of later runs is written to `place`, dense, of the caller's memory. Before the first. */
void ot_measured_place(ot_measured *x, uint32_t k, const ot_nd *place);
/* Run once; `keep` adds the time to `seconds`. */
ot_status ot_measured_run(ot_measured *x, bool keep, ot_diag *d) OT_MUST_USE;
void ot_measured_close(ot_measured *x);

typedef struct ot_spread {
    double min, p50, p90, p99; /* nearest rank: each is one of the times */
} ot_spread;
/* Sorts the times. n >= 1. */
ot_spread ot_spread_of(double *seconds, uint32_t n);
/* Most bytes of memory that the process ever had resident; 0: the system does not tell. */
int64_t ot_resident_peak(void);

/* ---- measure_trace.c: what ran when, as a file ---- */

#define OT_TRACE_EVENTS 100000 /* room for each thread's */
/* Write the file, whole or not at all; "-" is stdout. Scratch from `a`. Fails: OT_E_SYSTEM,
 * OT_E_NOMEM. */
ot_status ot_trace_save(const ot_trace *t, const char *path, ot_diag *d) OT_MUST_USE;

/* ---- measure_compare.c: are two results the same? ---- */

typedef struct ot_difference {
    double nmse;       /* sum of squared differences by sum of squares of the first */
    double max_abs;    /* largest difference */
    double max_rel;    /* that by the largest magnitude of the first */
    int64_t n_unequal; /* elements */
    bool same;         /* kind, shape; integers exactly, floats within the tolerance */
    bool alike;        /* kind and shape are; then only contents may differ */
    bool is_float;
    bool own_noise;  /* same, and further apart than the tolerance: ot_compare_outputs */
    const char *why; /* not same: static text, "shapes differ"; else NULL */
} ot_difference;

#define OT_SAME_NMSE 1e-8
#define OT_SAME_REL  1e-3
/* Both dense (or sequences of dense arrays). NaN equals NaN. Half precision is allowed its own
 * rounding, and so is every float where `half`: the model that makes a has such numbers inside
 * (ot_has_half). */
ot_difference ot_compare(const ot_nd *a, const ot_nd *b, bool half);

/* ---- measure_noise.c: are two forms of a model the same? ---- */

/* Own noise of an output, zero at first: at least what x says, which compares two runs of one model
 * that differ by rounding alone. */
void ot_noise_add(ot_difference *noise, const ot_difference *x);
/* The outputs of two models that differ beyond the tolerance, by x, are no further apart than some
 * times that. */
bool ot_noise_covers(const ot_difference *noise, const ot_difference *x);

typedef struct ot_comparison {
    ot_measured *original; /* both have run; the original may run again, on other inputs */
    const ot_measured *other;
    const ot_feed *feed; /* the original's */
    bool half;           /* as for ot_compare */
    /* the original once more, which the caller's `of` reads; *m is freed. NULL: it cannot */
    ot_status (*load)(void *of, ot_model **m);
    void *of;
} ot_comparison;
/* out[k], [outputs of the original]: whether the output is the same in both, within the tolerance
 * or within what the original differs from itself by rounding. The other has as many outputs. The
 * original's outputs are none to read afterwards. Scratch from a. Fails: as running does. */
ot_status ot_compare_outputs(const ot_comparison *r, ot_arena *a, ot_diag *d,
                             ot_difference *out) OT_MUST_USE;

/* Values or constants of g are real numbers of 16 bits, as far as the file says. */
bool ot_has_half(const ot_graph *g);

/* ---- measure_bytes.c: bytes that nodes read and write, by the level their operands fit into ----
 */

typedef struct ot_level_bytes {
    double fast, mid, slow; /* bytes of a run; constants included */
    /* operands of unknown size and loops of unknown length: not counted, counted once */
    uint32_t n_unsized;
} ot_level_bytes;

/* By the operands' sizes against t's fast_bytes and mid_bytes. Requires inferred shapes (a
 * session on m has them). Tables live in `a`; bodies that are still in the file's form are
 * imported into the model's arena. OT_E_NOMEM is the only failure. */
ot_status ot_count_bytes(ot_model *m, const ot_target *t, ot_arena *a,
                         ot_level_bytes *out) OT_MUST_USE;

/* ---- measure_perf.c: the processor's own counters ---- */

/* Last-level cache, this process and threads that it starts after opening. */
typedef struct ot_cache_counts {
    int references_fd, misses_fd; /* -1: not open */
    double references, misses;    /* between start and stop, summed */
    double references_at, misses_at;
} ot_cache_counts;

/* false: the system does not permit it (or has no such counters); then the others do nothing. */
bool ot_cache_open(ot_cache_counts *c);
void ot_cache_start(ot_cache_counts *c);
void ot_cache_stop(ot_cache_counts *c);
void ot_cache_close(ot_cache_counts *c);

#endif
