/* onnx-tile as a library: rewrite an ONNX model so that chains of operators run tile by tile.
 *
 *     onnx_tile *t;
 *     if (onnx_tile_create(&t) != ONNX_TILE_OK) return 1;
 *     if (onnx_tile_set_goal(t, ONNX_TILE_GOAL_MEMORY) != ONNX_TILE_OK || onnx_tile_load_file(t,
 * "in.onnx") != ONNX_TILE_OK || onnx_tile_optimise(t) != ONNX_TILE_OK || onnx_tile_save_file(t,
 * "out.onnx") != ONNX_TILE_OK) fprintf(stderr, "%s\n", onnx_tile_error(t)); onnx_tile_free(t);
 *
 * One handle carries options, one model and its results: set options, load, optimise (or inspect),
 * save. The library never prints and never exits. Handles share nothing: different threads may use
 * different handles at the same time; one handle belongs to one thread at a time.
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
#else
#define ONNX_TILE_MUST_USE
#endif

typedef struct onnx_tile onnx_tile;

typedef enum onnx_tile_status {
    ONNX_TILE_OK = 0,
    ONNX_TILE_INPUT,  /* the model or target file is wrong */
    ONNX_TILE_USAGE,  /* a call or an option is wrong */
    ONNX_TILE_BUDGET, /* the memory budget cannot be met */
    ONNX_TILE_SYSTEM, /* reading or writing failed */
    ONNX_TILE_NOMEM   /* memory ran out */
} onnx_tile_status;

typedef enum onnx_tile_goal { ONNX_TILE_GOAL_TIME = 0, ONNX_TILE_GOAL_MEMORY } onnx_tile_goal;

/* "0.1.0"; static. */
const char *onnx_tile_version(void);

/* A handle with the default options: target "host", goal time. Must be freed with onnx_tile_free.
 */
onnx_tile_status onnx_tile_create(onnx_tile **out) ONNX_TILE_MUST_USE;
/* Accepts NULL. */
void onnx_tile_free(onnx_tile *t);
/* One line about the last call that failed on this handle, "" when none did. Owned by the handle,
 * valid until the next call on it. */
const char *onnx_tile_error(const onnx_tile *t);

/* ---- options; before optimise or inspect. Strings and arrays are copied. ---- */

/* Name of a shipped target, "host", or a file that ends in .xml. Checked when planning. */
onnx_tile_status onnx_tile_set_target(onnx_tile *t, const char *name) ONNX_TILE_MUST_USE;
/* Capacity of the fast memory in bytes; 0: the target's own. */
onnx_tile_status onnx_tile_set_l2(onnx_tile *t, int64_t bytes) ONNX_TILE_MUST_USE;
/* Workers that share a node; 0: the target's own count. */
onnx_tile_status onnx_tile_set_threads(onnx_tile *t, uint32_t threads) ONNX_TILE_MUST_USE;
onnx_tile_status onnx_tile_set_goal(onnx_tile *t, onnx_tile_goal goal) ONNX_TILE_MUST_USE;
/* Peak memory in bytes that must not be passed (ONNX_TILE_BUDGET otherwise); 0: none. */
onnx_tile_status onnx_tile_set_memory_budget(onnx_tile *t, int64_t bytes) ONNX_TILE_MUST_USE;
/* Slowdown that goal memory may cost, in percent; default 10. */
onnx_tile_status onnx_tile_set_max_slowdown(onnx_tile *t, double percent) ONNX_TILE_MUST_USE;
/* Non-zero: tile every legal region, even at a predicted loss. */
onnx_tile_status onnx_tile_set_force(onnx_tile *t, int force) ONNX_TILE_MUST_USE;
/* Bind the dimensions of a model input. */
onnx_tile_status onnx_tile_bind_shape(onnx_tile *t, const char *input, const int64_t *dims,
                                      uint32_t rank) ONNX_TILE_MUST_USE;

/* ---- one model ---- */

/* Read a model; replaces the one the handle had, and its results. Options stay. */
onnx_tile_status onnx_tile_load_file(onnx_tile *t, const char *path) ONNX_TILE_MUST_USE;
/* The same from memory; the bytes may be freed afterwards. dir: folder of external data, NULL
 * refuses such data. */
onnx_tile_status onnx_tile_load_memory(onnx_tile *t, const void *bytes, size_t n,
                                       const char *dir) ONNX_TILE_MUST_USE;
/* Plan and rewrite. Once per loaded model. A model in which nothing is worth tiling stays as it is:
 * that is no failure. */
onnx_tile_status onnx_tile_optimise(onnx_tile *t) ONNX_TILE_MUST_USE;
/* Plan only: results without a changed model. Once per loaded model, in place of
 * onnx_tile_optimise. */
onnx_tile_status onnx_tile_inspect(onnx_tile *t) ONNX_TILE_MUST_USE;
/* Write the model: whole or not at all. */
onnx_tile_status onnx_tile_save_file(onnx_tile *t, const char *path) ONNX_TILE_MUST_USE;
/* The same into memory. *bytes must be freed with onnx_tile_free_bytes. */
onnx_tile_status onnx_tile_save_memory(onnx_tile *t, void **bytes, size_t *n) ONNX_TILE_MUST_USE;
void onnx_tile_free_bytes(void *bytes); /* accepts NULL */

/* ---- results; after optimise or inspect ---- */

/* The JSON object that `onnx-tile --json` prints. Owned by the handle, valid until the next load or
 * onnx_tile_free. */
onnx_tile_status onnx_tile_results_json(onnx_tile *t, const char **json) ONNX_TILE_MUST_USE;
/* Regions that were tiled (or would be); 0 before optimise or inspect. */
uint32_t onnx_tile_region_count(const onnx_tile *t);

#ifdef __cplusplus
}
#endif

#endif
