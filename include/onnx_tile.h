/* onnx-tile as a library: rewrite an ONNX model so that chains of operators run tile by tile,
 * and run models (see "sessions").
 *
 *     onnx_tile *t;
 *     if (onnx_tile_create(&t) != ONNX_TILE_OK) return 1;
 *     if (onnx_tile_set_goal(t, ONNX_TILE_GOAL_MEMORY) != ONNX_TILE_OK ||
 *         onnx_tile_load_file(t, "in.onnx") != ONNX_TILE_OK ||
 *         onnx_tile_optimise(t) != ONNX_TILE_OK ||
 *         onnx_tile_save_file(t, "out.onnx") != ONNX_TILE_OK)
 *         fprintf(stderr, "%s\n", onnx_tile_error(t));
 *     onnx_tile_free(t);
 *
 * One handle carries options, one model and its results: set options, load, optimise (or
 * inspect), save. The library never prints and never exits. Handles share nothing: different
 * threads may use different handles at the same time; one handle belongs to one thread at a
 * time.
 */
#ifndef ONNX_TILE_H
#define ONNX_TILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ONNX_TILE_MUST_USE __attribute__((warn_unused_result))
#pragma GCC visibility push(default) /* what a shared library of it exports */
#else
#define ONNX_TILE_MUST_USE
#endif

typedef struct onnx_tile onnx_tile;

typedef enum onnx_tile_status {
    ONNX_TILE_OK = 0,
    ONNX_TILE_INPUT,     /* the model or target file is wrong */
    ONNX_TILE_USAGE,     /* a call or an option is wrong */
    ONNX_TILE_BUDGET,    /* the memory budget cannot be met, or a limit on tensors */
    ONNX_TILE_SYSTEM,    /* reading or writing failed */
    ONNX_TILE_NOMEM,     /* memory ran out */
    ONNX_TILE_CANCELLED, /* a long call was cancelled */
    ONNX_TILE_TIMEOUT    /* a long call took longer than it may */
} onnx_tile_status;

/* How far a long call is: its stage ("select", "run"), and the fraction of all that is done.
 * Anything but 0 cancels the call. Called by the thread that made the call, some 50 times a second
 * at the most; it must not call functions of the handle but the one that cancels. */
typedef int onnx_tile_progress(void *of, const char *stage, double done);

typedef enum onnx_tile_goal { ONNX_TILE_GOAL_TIME = 0, ONNX_TILE_GOAL_MEMORY } onnx_tile_goal;

/* "0.1.0"; static. */
const char *onnx_tile_version(void);

/* A handle with the default options: target "host", goal time. Must be freed with onnx_tile_free.
 */
onnx_tile_status onnx_tile_create(onnx_tile **out) ONNX_TILE_MUST_USE;
/* Accepts NULL. */
void onnx_tile_free(onnx_tile *t);
/* One line about the last call that failed on this handle, "" when none did. Owned by the
 * handle, valid until the next call on it. */
const char *onnx_tile_error(const onnx_tile *t);

/* Bytes of "512K", "16M", "1.5G", "362KB", "100", as the program's options take them; K is 1024.
 * ONNX_TILE_USAGE: malformed or too large. */
onnx_tile_status onnx_tile_parse_size(const char *text, int64_t *bytes) ONNX_TILE_MUST_USE;

/* ---- options; before optimise or inspect. Strings and arrays are copied. ---- */

/* Name of a shipped target, "host", or a file that ends in .xml. Checked when planning. */
onnx_tile_status onnx_tile_set_target(onnx_tile *t, const char *name) ONNX_TILE_MUST_USE;
/* Who runs the model: "onnxruntime", "openvino", "loop" (runtimes that take Loop, and neither
 * Scan nor sequences), "portable" (any runtime), "engine" (this library's sessions, by operators
 * of their own), "engine-device" (the same where devices run them) or "ort-engine" (the engine
 * in one operator, which ONNX Runtime runs with libonnxtile_ort.so). NULL: the target's own,
 * which is "onnxruntime" for "host". A tiled model names it in its metadata, key
 * "onnx_tile.runtime" ("engine" for "ort-engine"). ONNX_TILE_USAGE: there is none of that name;
 * when planning: the target's fast memory is a scratchpad, which "engine" and "ort-engine" alone
 * drive. */
onnx_tile_status onnx_tile_set_runtime(onnx_tile *t, const char *name) ONNX_TILE_MUST_USE;
/* After set_runtime "ort-engine": what becomes operators. "whole" (as it is unless this is
 * called): all of the model, one operator. "parts": what the engine has, in as few as the graph
 * allows; ONNX Runtime runs the rest. "regions": tiled regions alone. ONNX_TILE_USAGE: no such
 * word, or another runtime. */
onnx_tile_status onnx_tile_set_ort_operators(onnx_tile *t, const char *which) ONNX_TILE_MUST_USE;
/* Capacity of the fast memory in bytes; 0: the target's own. */
onnx_tile_status onnx_tile_set_l2(onnx_tile *t, int64_t bytes) ONNX_TILE_MUST_USE;
/* Workers that share a node; 0: the target's own count. */
onnx_tile_status onnx_tile_set_threads(onnx_tile *t, uint32_t threads) ONNX_TILE_MUST_USE;
onnx_tile_status onnx_tile_set_goal(onnx_tile *t, onnx_tile_goal goal) ONNX_TILE_MUST_USE;
/* Bytes that live tensors, and by prediction the whole process, must not pass at the size that is
 * planned for; 0: none. ONNX_TILE_BUDGET otherwise, and where sizes are not known. */
onnx_tile_status onnx_tile_set_memory_budget(onnx_tile *t, int64_t bytes) ONNX_TILE_MUST_USE;
/* Non-zero: a budget that is not kept, or not known to be, is no failure: the least that is found
 * is written, and results say why ("missed"). */
onnx_tile_status onnx_tile_set_best_effort(onnx_tile *t, int best_effort) ONNX_TILE_MUST_USE;
/* Bytes that no tensor may take which the tiled model makes, in the graph or in a body, whatever
 * the goal (ONNX_TILE_BUDGET otherwise, and for larger inputs, outputs and constants, which are
 * not cut); 0: any. */
onnx_tile_status onnx_tile_set_max_tensor(onnx_tile *t, int64_t bytes) ONNX_TILE_MUST_USE;
/* Slowdown that goal memory may cost, in percent; default 10. */
onnx_tile_status onnx_tile_set_max_slowdown(onnx_tile *t, double percent) ONNX_TILE_MUST_USE;
/* Non-zero: tile every legal region, even at a predicted loss. */
onnx_tile_status onnx_tile_set_force(onnx_tile *t, int force) ONNX_TILE_MUST_USE;
/* Non-zero: nothing that adds up in another order than the runtime would. */
onnx_tile_status onnx_tile_set_bit_exact(onnx_tile *t, int exact) ONNX_TILE_MUST_USE;
/* Non-zero: for goal memory, weights may be written to a file beside the model
 * (onnx_tile_save; NAME.HASH.data), where a runtime that maps them takes less memory then.
 * onnx_tile_save_memory puts them into the model all the same, which takes more. Default 0. */
onnx_tile_status onnx_tile_set_data_file(onnx_tile *t, int allowed) ONNX_TILE_MUST_USE;
/* Non-zero: keep what onnx_tile_save_report tells; planning takes a little longer. */
onnx_tile_status onnx_tile_keep_report(onnx_tile *t, int keep) ONNX_TILE_MUST_USE;
/* Bind the dimensions of a model input, dynamic ones and those that the model fixes. (With goal
 * memory, dynamic ones may stay dynamic all the same where that takes less: the results say
 * "stays_dynamic".) When planning, ONNX_TILE_USAGE: the model has no such input, or a constant that
 * only fits its old size, which onnx_tile_error names with its node. */
onnx_tile_status onnx_tile_bind_shape(onnx_tile *t, const char *input, const int64_t *dims,
                                      uint32_t rank) ONNX_TILE_MUST_USE;
/* The size of an input to plan for while its dynamic dimensions stay dynamic: one result for every
 * size that the model takes. Not together with what is for one size or written otherwise
 * (onnx_tile_bind_shape, the largest tensor, the engine's operators, another runtime
 * than onnxruntime): ONNX_TILE_USAGE when planning. Where neither this nor onnx_tile_bind_shape
 * is called, nor any of those, dynamic dimensions stay dynamic as well, and the size to plan for is
 * one that such inputs usually have. */
onnx_tile_status onnx_tile_design_shape(onnx_tile *t, const char *input, const int64_t *dims,
                                        uint32_t rank) ONNX_TILE_MUST_USE;
/* Sizes of an input, along axis k lo[k], lo[k] + step[k], ... up to hi[k]: dimensions stay dynamic,
 * the plan is made for onnx_tile_design_shape or for the largest size, a memory budget holds over
 * all of them, and results say the most that lives at one time there ("range"). Once for each input
 * with dynamic dimensions; lo[k] == hi[k] is a fixed one. Planning fails as with a design size. */
onnx_tile_status onnx_tile_range_shape(onnx_tile *t, const char *input, const int64_t *lo,
                                       const int64_t *hi, const int64_t *step,
                                       uint32_t rank) ONNX_TILE_MUST_USE;
/* Non-zero: onnx_tile_optimise runs the model and the result in the native engine, on the same
 * random inputs, and ends with ONNX_TILE_SYSTEM naming the value that differs by more than the
 * original's own rounding (docs/exactness.md). ONNX_TILE_USAGE in builds without the engine. */
onnx_tile_status onnx_tile_set_verify(onnx_tile *t, int verify) ONNX_TILE_MUST_USE;

#define ONNX_TILE_RANK_MAX 16

/* Type of elements: the numbers of ONNX. Others than these exist, and cannot be bound. */
typedef enum onnx_tile_type {
    ONNX_TILE_TYPE_UNKNOWN = 0,
    ONNX_TILE_FLOAT32 = 1,
    ONNX_TILE_UINT8 = 2,
    ONNX_TILE_INT8 = 3,
    ONNX_TILE_UINT16 = 4,
    ONNX_TILE_INT16 = 5,
    ONNX_TILE_INT32 = 6,
    ONNX_TILE_INT64 = 7,
    ONNX_TILE_BOOL = 9, /* a byte each, 0 or 1 */
    ONNX_TILE_FLOAT16 = 10,
    ONNX_TILE_FLOAT64 = 11,
    ONNX_TILE_UINT32 = 12,
    ONNX_TILE_UINT64 = 13,
    ONNX_TILE_BFLOAT16 = 16
} onnx_tile_type;

typedef struct onnx_tile_tensor {
    const char *name;                 /* of the model's input or output; the handle's */
    int32_t type;                     /* onnx_tile_type, or another number of ONNX */
    int32_t rank;                     /* -1: not known */
    int64_t dims[ONNX_TILE_RANK_MAX]; /* [rank] -1: not known */
} onnx_tile_tensor;

/* ---- one model ---- */

/* Read a model; replaces the one the handle had, and its results. Options stay. */
onnx_tile_status onnx_tile_load_file(onnx_tile *t, const char *path) ONNX_TILE_MUST_USE;
/* The same from memory; the bytes may be freed afterwards. dir: folder of external data, NULL
 * refuses such data. */
onnx_tile_status onnx_tile_load_memory(onnx_tile *t, const void *bytes, size_t n,
                                       const char *dir) ONNX_TILE_MUST_USE;
/* A piece of the caller's memory with the contents of a constant. */
typedef struct onnx_tile_lent {
    const void *data; /* [bytes] */
    size_t bytes;
    /* NULL, or called when a session that is being made does not read the piece any more, at most
     * once, by the thread that makes it */
    void (*release)(void *of, const void *data, size_t bytes);
    void *of;
} onnx_tile_lent;
/* The same from memory, where the model's external data is in memory, too, and is not copied:
 * "location" is the decimal number of one of lent[n_lent], which may be freed when the handle is
 * freed or loads another model. */
onnx_tile_status onnx_tile_load_lent(onnx_tile *t, const void *bytes, size_t n,
                                     const onnx_tile_lent *lent, size_t n_lent) ONNX_TILE_MUST_USE;
/* Inputs that have to be given (initializers have not), in the model's order; 0 before loading. */
uint32_t onnx_tile_input_count(const onnx_tile *t);
/* Input k with the size that plans and runs take: dimensions that were bound, or designed for,
 * those that the model states, and for the others an extent that such inputs usually have and the
 * model takes; -1 where none was found. name: the handle's, until the next load. After loading, and
 * before planning. */
onnx_tile_status onnx_tile_input(onnx_tile *t, uint32_t k,
                                 onnx_tile_tensor *out) ONNX_TILE_MUST_USE;
/* What a part of an output needs of the inputs, so that the model as it is computes it from a crop
 * (docs/large.md): halo, alignment, scale of each axis, and which nodes are in the way. At the size
 * that onnx_tile_input tells. */
typedef enum onnx_tile_geometry_form {
    ONNX_TILE_GEOMETRY_TABLE = 0, /* `onnx-tile geometry` */
    ONNX_TILE_GEOMETRY_JSON,      /* `--json` */
    ONNX_TILE_GEOMETRY_BIOIMAGE   /* `--bioimage` */
} onnx_tile_geometry_form;
/* *text ends in a 0 byte and must be freed with onnx_tile_free_bytes; NULL on failure. After
 * loading, and before planning; the model is not changed. ONNX_TILE_USAGE: the model does not take
 * a size that was bound, dimensions are dynamic and no size is found, or there is no such form. */
onnx_tile_status onnx_tile_geometry(onnx_tile *t, onnx_tile_geometry_form form,
                                    char **text) ONNX_TILE_MUST_USE;
/* Whether passes write values, so that later ones read them in place of computing them again. */
typedef enum onnx_tile_store {
    ONNX_TILE_STORE_NEVER = 0,
    ONNX_TILE_STORE_AUTO, /* where it costs less; never where sizes are not bound */
    ONNX_TILE_STORE_ALWAYS
} onnx_tile_store;
/* For onnx_tile_passes; never unless this is called. */
onnx_tile_status onnx_tile_set_store(onnx_tile *t, onnx_tile_store store) ONNX_TILE_MUST_USE;
/* Write models for passes over crops into the folder, which is made where there is none, and
 * plan.json, for a model that needs a mean, a normalisation or a global pool of a whole axis
 * (docs/large.md): pass_1.onnx, ... hand out numbers of the rows that a chunk owns, and take those
 * of passes before, put together, as final.onnx does. After loading, in place of
 * onnx_tile_optimise; to go on, load a model anew. ONNX_TILE_INPUT: a node needs more than that,
 * and is named; ONNX_TILE_USAGE: as of onnx_tile_geometry, or no axis can be cut; nothing is
 * written then. */
onnx_tile_status onnx_tile_passes(onnx_tile *t, const char *folder) ONNX_TILE_MUST_USE;
/* Make the loaded model the one of a step along `axis` of `input` (docs/steps.md): its inputs are
 * the next rows, `rows` of that input (0: as few as the model can be cut in), and a state, its
 * outputs the rows that are finished and the next state; metadata "onnx_tile.step" says which is
 * which. In place of onnx_tile_optimise; onnx_tile_save_file and onnx_tile_save_memory write it.
 * ONNX_TILE_USAGE: no such input or axis, or rows that the model cannot be cut in; ONNX_TILE_INPUT:
 * a node needs more than rows that are near, which onnx_tile_error names. */
onnx_tile_status onnx_tile_step(onnx_tile *t, const char *input, uint32_t axis,
                                int64_t rows) ONNX_TILE_MUST_USE;
/* Which nodes the engine takes where another runtime runs the others: those that it has and runs as
 * fast, at the sizes that onnx_tile_input tells. part[k] is the number of the part whose node makes
 * values[k], -1 where none does. Nodes of a part are connected, no other node stands on a path
 * between two of them, and one is a convolution or a product. After loading, in place of planning;
 * to go on, load a model anew. */
onnx_tile_status onnx_tile_engine_parts(onnx_tile *t, const char *const *values, size_t n,
                                        int32_t *part) ONNX_TILE_MUST_USE;
/* Before onnx_tile_optimise and onnx_tile_inspect: the seconds that they may take (0: any), after
 * which they end with ONNX_TILE_TIMEOUT, and whom to tell how far they are (NULL: nobody). */
onnx_tile_status onnx_tile_set_timeout(onnx_tile *t, double seconds) ONNX_TILE_MUST_USE;
onnx_tile_status onnx_tile_set_progress(onnx_tile *t, onnx_tile_progress *tell,
                                        void *of) ONNX_TILE_MUST_USE;
/* End what another thread plans with the handle: its call returns ONNX_TILE_CANCELLED between two
 * pieces of its work, and the model has to be loaded anew. Nothing when nothing is planned. By any
 * thread, and by signal handlers. Accepts NULL. */
void onnx_tile_cancel(onnx_tile *t);
/* Plan and rewrite. Once per loaded model. A model in which nothing is worth tiling stays as it
 * is: that is no failure. */
onnx_tile_status onnx_tile_optimise(onnx_tile *t) ONNX_TILE_MUST_USE;
/* Plan only: results without a changed model. Once per loaded model, in place of
 * onnx_tile_optimise. */
onnx_tile_status onnx_tile_inspect(onnx_tile *t) ONNX_TILE_MUST_USE;
/* Write the model: whole or not at all. */
onnx_tile_status onnx_tile_save_file(onnx_tile *t, const char *path) ONNX_TILE_MUST_USE;
/* The same into memory. *bytes must be freed with onnx_tile_free_bytes. */
onnx_tile_status onnx_tile_save_memory(onnx_tile *t, void **bytes, size_t *n) ONNX_TILE_MUST_USE;
/* The same after onnx_tile_load_lent; what was lent stays outside: the result has the same numbers
 * for it. */
onnx_tile_status onnx_tile_save_lent(onnx_tile *t, void **bytes, size_t *n) ONNX_TILE_MUST_USE;
void onnx_tile_free_bytes(void *bytes); /* accepts NULL */

/* ---- results; after optimise or inspect ---- */

/* The JSON object that `onnx-tile --json` prints. Owned by the handle, valid until the next load
 * or onnx_tile_free. */
onnx_tile_status onnx_tile_results_json(onnx_tile *t, const char **json) ONNX_TILE_MUST_USE;
/* Results as text, each as the program prints or writes it. The forms after ONNX_TILE_TEXT_JSON
 * need onnx_tile_keep_report. */
typedef enum onnx_tile_text {
    ONNX_TILE_TEXT_TABLE = 0,    /* the table on the terminal */
    ONNX_TILE_TEXT_JSON,         /* `--json`: as onnx_tile_results_json */
    ONNX_TILE_TEXT_EXPLAIN,      /* `explain` */
    ONNX_TILE_TEXT_EXPLAIN_JSON, /* `explain --json` */
    ONNX_TILE_TEXT_HTML,         /* `--report F.html` */
    ONNX_TILE_TEXT_XML,
    ONNX_TILE_TEXT_CSV
} onnx_tile_text;
/* *text ends in a 0 byte and must be freed with onnx_tile_free_bytes; NULL on failure.
 * ONNX_TILE_USAGE: nothing was planned, the form does not exist, or no report was kept. */
onnx_tile_status onnx_tile_results_text(onnx_tile *t, onnx_tile_text form,
                                        char **text) ONNX_TILE_MUST_USE;
/* The report that `onnx-tile --report` writes, in the form that the name ends in: .html, .xml,
 * .json or .csv; whole or not at all. ONNX_TILE_USAGE unless onnx_tile_keep_report was called
 * before planning. */
onnx_tile_status onnx_tile_save_report(onnx_tile *t, const char *path) ONNX_TILE_MUST_USE;
/* Regions that were tiled (or would be); 0 before optimise or inspect. */
uint32_t onnx_tile_region_count(const onnx_tile *t);

/* ---- sessions: models that run in the native engine ----
 *
 *     onnx_tile_session *s;
 *     onnx_tile_tensor y;
 *     const void *data;
 *     if (onnx_tile_session_create(&s) != ONNX_TILE_OK) return 1;
 *     if (onnx_tile_session_load_file(s, "tiled.onnx") != ONNX_TILE_OK ||
 *         onnx_tile_session_bind_input(s, 0, pixels, NULL, 0) != ONNX_TILE_OK ||
 *         onnx_tile_session_run(s) != ONNX_TILE_OK ||
 *         onnx_tile_session_result(s, 0, &y, &data) != ONNX_TILE_OK)
 *         fprintf(stderr, "%s\n", onnx_tile_session_error(s));
 *     onnx_tile_session_free(s);
 *
 * A session has one model. Arrays are the caller's memory, read and written in place; elements
 * are little-endian, packed densely, the last dimension fastest. Sessions share nothing:
 * different threads may use different sessions at the same time. Threads that share one wait for
 * each other: see onnx_tile_session_lock. A library that was built without the native engine has
 * these functions, and loading fails with ONNX_TILE_USAGE. */

typedef struct onnx_tile_session onnx_tile_session;

/* Must be freed with onnx_tile_session_free. */
onnx_tile_status onnx_tile_session_create(onnx_tile_session **out) ONNX_TILE_MUST_USE;
/* Each call on a session waits until no other thread is in one. What spans several calls, from
 * binding to reading results and errors, is one thread's when it holds the lock meanwhile. The
 * thread that holds it may lock again, and unlocks as often. Both accept NULL. */
void onnx_tile_session_lock(onnx_tile_session *s);
void onnx_tile_session_unlock(onnx_tile_session *s);
/* Accepts NULL. Waits for a run in another thread; no thread may use the session afterwards. Bound
 * memory stays the caller's. */
void onnx_tile_session_free(onnx_tile_session *s);
/* As onnx_tile_error. */
const char *onnx_tile_session_error(const onnx_tile_session *s);

/* Before loading: threads that share the work (default 1), and dimensions of inputs, as
 * onnx_tile_bind_shape. What has fixed dimensions throughout runs in memory that was planned
 * when loading; the rest takes memory while it runs. */
onnx_tile_status onnx_tile_session_set_threads(onnx_tile_session *s,
                                               uint32_t threads) ONNX_TILE_MUST_USE;
/* Before loading: somebody else's threads, in place of ones of the session's own (which run NULL
 * brings back). `run` calls task(job, k) for k below n, each at most once, on any threads and in
 * any order, and returns when all these calls have returned; tasks that it leaves out are done
 * by the thread that runs the session. n is at most what onnx_tile_session_set_threads said.
 * `run` and `of` must stay as long as the session; `run` is called in the threads that load and
 * run it. */
typedef void onnx_tile_task(void *job, size_t k);
typedef void onnx_tile_run_tasks(void *of, onnx_tile_task *task, size_t n, void *job);
onnx_tile_status onnx_tile_session_set_executor(onnx_tile_session *s, onnx_tile_run_tasks *run,
                                                void *of) ONNX_TILE_MUST_USE;
onnx_tile_status onnx_tile_session_bind_shape(onnx_tile_session *s, const char *input,
                                              const int64_t *dims,
                                              uint32_t rank) ONNX_TILE_MUST_USE;
/* Before loading: what becomes of a model then. Tiles keep values small; where a session would take
 * no less with them (PLAN_MEMORY) or a model cannot be planned, it runs as it is. Planning takes a
 * fraction of a second for most models, and rounding may differ as it does between a model and its
 * tiled form. Dimensions have to be known: the model's, or onnx_tile_session_bind_shape. */
typedef enum onnx_tile_plan {
    /* models run as they are; but one that was tiled for another runtime is restored, and planned
     * for what it was tiled for */
    ONNX_TILE_PLAN_AS_FILE = 0,
    ONNX_TILE_PLAN_NOT,   /* the same, but nothing is planned */
    ONNX_TILE_PLAN_TIME,  /* any model is planned, as by onnx_tile_optimise for runtime "engine" */
    ONNX_TILE_PLAN_MEMORY /* the same with goal memory */
} onnx_tile_plan;
onnx_tile_status onnx_tile_session_set_plan(onnx_tile_session *s,
                                            onnx_tile_plan plan) ONNX_TILE_MUST_USE;
/* Before loading: an input comes as elements of this type (ONNX_TILE_UINT8; 0: the model's own),
 * which are converted to the model's, then multiplied by `scale` (1: not at all): tile by tile
 * where tiles of the engine's form read it, so that bytes of a picture are never held as floats.
 * Of half precision, the product is float32's, rounded once. Again for the same input: it is
 * replaced. Loading fails with ONNX_TILE_USAGE (no such input) or ONNX_TILE_INPUT (types that do
 * not fit, a subgraph of the model reads the input). */
onnx_tile_status onnx_tile_session_set_input_type(onnx_tile_session *s, const char *input,
                                                  int32_t type, double scale) ONNX_TILE_MUST_USE;
/* Read a model, tiled or not, and make it ready to run; replaces the one the session had.
 * ONNX_TILE_INPUT names node and operator when the engine cannot run it. dir: as for
 * onnx_tile_load_memory. */
onnx_tile_status onnx_tile_session_load_file(onnx_tile_session *s,
                                             const char *path) ONNX_TILE_MUST_USE;
onnx_tile_status onnx_tile_session_load_memory(onnx_tile_session *s, const void *bytes, size_t n,
                                               const char *dir) ONNX_TILE_MUST_USE;

/* As onnx_tile_load_lent; what was lent may be freed afterwards: weights are packed by then, and
 * what is read as it is was copied. Such sessions are not shared, and their models not planned. */
onnx_tile_status onnx_tile_session_load_lent(onnx_tile_session *s, const void *bytes, size_t n,
                                             const onnx_tile_lent *lent,
                                             size_t n_lent) ONNX_TILE_MUST_USE;

/* Another session of the model that `of` has loaded, with the same threads and shapes, so that
 * threads run the model at the same time, one a session: arrays, results and memory for values are
 * its own, packed weights are shared. No session of the model may run meanwhile. The model stays
 * until all of them are freed, in any order; until then none of them loads another. Must be freed
 * with onnx_tile_session_free. *out is NULL on failure, and onnx_tile_session_error(of) has the
 * line. */
onnx_tile_status onnx_tile_session_share(onnx_tile_session *of,
                                         onnx_tile_session **out) ONNX_TILE_MUST_USE;
/* A file that was tiled for another runtime is slow in the engine. One of this version says what it
 * was, and that is what is loaded, and planned (onnx_tile_session_set_plan). "", or a sentence that
 * says that it was not. Static. */
const char *onnx_tile_session_notice(const onnx_tile_session *s);

/* Inputs that have to be bound (initializers have not), and outputs, in the model's order; 0
 * before loading. */
uint32_t onnx_tile_session_input_count(const onnx_tile_session *s);
uint32_t onnx_tile_session_output_count(const onnx_tile_session *s);
/* What the model says of them, or what follows from it. */
onnx_tile_status onnx_tile_session_input(onnx_tile_session *s, uint32_t k,
                                         onnx_tile_tensor *out) ONNX_TILE_MUST_USE;
onnx_tile_status onnx_tile_session_output(onnx_tile_session *s, uint32_t k,
                                          onnx_tile_tensor *out) ONNX_TILE_MUST_USE;

/* Memory for input k: read by each run until something else is bound or the session is freed.
 * dims NULL: the model's own, which must be fixed then. */
onnx_tile_status onnx_tile_session_bind_input(onnx_tile_session *s, uint32_t k, const void *data,
                                              const int64_t *dims,
                                              uint32_t rank) ONNX_TILE_MUST_USE;
/* Memory for output k, whose dimensions must be fixed, of `bytes` bytes at least: written by
 * each run. data NULL: the session's own memory again. */
onnx_tile_status onnx_tile_session_bind_output(onnx_tile_session *s, uint32_t k, void *data,
                                               size_t bytes) ONNX_TILE_MUST_USE;
/* Arrays larger than memory. What a tiled model does not read whole is not held whole: tiles run
 * in the order of rows, and rows come before a tile reads them and go behind it.
 *
 * A file in place of memory: .npy, or elements alone (.raw, .bin; of `dims`, NULL: the model's
 * own). Input: mapped now, until something else is bound. ONNX_TILE_INPUT: it is not what it has
 * to be; so ends a run in which it becomes shorter. Output: each run makes the file at full size
 * beside the final one, writes into it, and puts it there at its end, whole or not at all; signals
 * that end the program end the run first. No file may be two of them. */
onnx_tile_status onnx_tile_session_map_input(onnx_tile_session *s, uint32_t k, const char *path,
                                             const int64_t *dims, uint32_t rank) ONNX_TILE_MUST_USE;
onnx_tile_status onnx_tile_session_map_output(onnx_tile_session *s, uint32_t k,
                                              const char *path) ONNX_TILE_MUST_USE;
/* Functions in place of memory. They are given rows [first, end) along the axis, dense: all other
 * dimensions whole. They return 0; anything else ends the run with ONNX_TILE_SYSTEM. They are
 * called by any thread of the session, one call at a time for an array, and must not call
 * functions of the session. */
typedef int onnx_tile_read_rows(void *of, int64_t first, int64_t end, void *rows);
typedef int onnx_tile_write_rows(void *of, int64_t first, int64_t end, const void *rows);
/* `read` fills in rows before they are read: each once in a run when one region of a tiled model
 * reads the input; all of them, and they are held, when something reads it whole. dims NULL: the
 * model's own. */
onnx_tile_status onnx_tile_session_read_input(onnx_tile_session *s, uint32_t k, const int64_t *dims,
                                              uint32_t rank, uint32_t axis,
                                              onnx_tile_read_rows *read,
                                              void *of) ONNX_TILE_MUST_USE;
/* `write` is given rows in order, each once in a run. When another node of the model reads the
 * output, all are held until the run ends. */
onnx_tile_status onnx_tile_session_write_output(onnx_tile_session *s, uint32_t k, uint32_t axis,
                                                onnx_tile_write_rows *write,
                                                void *of) ONNX_TILE_MUST_USE;
/* Each run: the seconds that it may take (0: any), after which it ends with ONNX_TILE_TIMEOUT, and
 * whom to tell how far it is (NULL: nobody). */
onnx_tile_status onnx_tile_session_set_timeout(onnx_tile_session *s,
                                               double seconds) ONNX_TILE_MUST_USE;
onnx_tile_status onnx_tile_session_set_progress(onnx_tile_session *s, onnx_tile_progress *tell,
                                                void *of) ONNX_TILE_MUST_USE;
/* End the run or the loading in another thread: it returns ONNX_TILE_CANCELLED between two steps,
 * tiles or weights, no file of an output appears, and the session can run, or load, again. Nothing
 * when none goes on. By any thread, and by signal handlers; it does not wait. Accepts NULL. */
void onnx_tile_session_cancel(onnx_tile_session *s);
/* Every input must be bound, and no output to memory of an input or of another output. May be
 * called again and again. */
onnx_tile_status onnx_tile_session_run(onnx_tile_session *s) ONNX_TILE_MUST_USE;
/* Output k of the last run: its real dimensions, and where it lies: in the memory bound for it,
 * else in the session's, until the next run. ONNX_TILE_USAGE for sequences and other outputs
 * that are no tensors, and for those that went to a file or a writer. */
onnx_tile_status onnx_tile_session_result(onnx_tile_session *s, uint32_t k, onnx_tile_tensor *out,
                                          const void **data) ONNX_TILE_MUST_USE;
/* Bytes that values took at the most at one time in all runs, without bound memory and
 * constants, and how many of them were planned when loading. 0 before loading. Both may be NULL. */
void onnx_tile_session_memory(const onnx_tile_session *s, int64_t *peak, int64_t *planned);
/* The last run as a JSON object: peak_bytes, planned_peak_bytes and weight_bytes, and nodes (of
 * name, op, measured_seconds) in the order in which they ran; then those of tiles' bodies, all
 * tiles and threads together, whose time is part of their loop's. *json must be freed with
 * onnx_tile_free_bytes; NULL on failure. ONNX_TILE_USAGE: nothing has run. */
onnx_tile_status onnx_tile_session_profile(onnx_tile_session *s, char **json) ONNX_TILE_MUST_USE;

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
