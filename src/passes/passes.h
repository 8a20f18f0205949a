/* Stage passes/: a model that needs numbers of a whole axis (a mean, a normalisation, a global
 * pool) becomes models that run on crops, one pass over the input after the other.
 *
 *     crop of x --> pass_1 --> n, mean, m2 of the rows that the chunk owns --put together--.
 *     crop of x --> pass_2 <------------------------------------------------ mean, variance +
 *                   pass_2 --> n, mean, m2 ...                              --put together--.
 *     crop of x --> final  <------------------------------------------------ mean, variance +
 *                   final  --> rows of y
 *
 * What such a node reads is a value that crops do make; its rows each belong to one chunk, so that
 * every one is counted once, and rows of halos are left out. The node itself becomes an input of
 * all later models. Those that need nothing of each other are of one pass. Where rows of values and
 * outputs lie, and which crops they need, is the geometry of the model so cut (geometry/).
 *
 * A pass may also write values, so that the passes behind it read them and not the inputs: where
 * that takes less than computing them again.
 *
 * Normalisations are found and decomposed as tiles have them (transform/decompose/).
 */
#ifndef OT_PASSES_PASSES_H
#define OT_PASSES_PASSES_H

#include "geometry/geometry.h"

typedef enum ot_statistic_kind {
    OT_STATISTIC_MOMENTS, /* n, mean, m2 (the sum of squares of what is left without the mean) */
    OT_STATISTIC_MEAN,    /* n, mean */
    OT_STATISTIC_SUM,
    OT_STATISTIC_MAX,
    OT_STATISTIC_MIN
} ot_statistic_kind;

/* A number, or several, of all rows of a value. */
typedef struct ot_statistic {
    const char *name;      /* of the input that takes it, and the beginning of other names */
    const char *node, *op; /* what needs it */
    const char *value;     /* what it is of, */
    uint32_t rank;         /* which has so many axes */
    ot_statistic_kind kind;
    uint32_t pass;  /* that hands it out, from 1 on */
    int64_t size;   /* how many numbers: of each channel of each sample, one */
    uint32_t *axes; /* [n_axes] of the value, that are cut, as of its geometry */
    uint32_t n_axes;
    const char **owned; /* [n_axes] inputs of the pass: which rows of the crop's value count */
} ot_statistic;

/* Whether passes write values. */
typedef enum ot_passes_store {
    OT_STORE_NEVER = 0, /* everything is computed of the inputs again */
    OT_STORE_AUTO,      /* where it costs less; never where sizes are not given */
    OT_STORE_ALWAYS     /* wherever it is possible */
} ot_passes_store;

/* A value that a pass writes: each chunk the rows that it owns. */
typedef struct ot_stored {
    const char *value;
    ot_dtype dtype;
    uint32_t rank;
    int64_t *dims; /* [rank] */
    int64_t bytes;
    uint32_t pass; /* that writes it, from 1 on */
} ot_stored;

/* A model that is written. */
typedef struct ot_pass_model {
    const char *file;
    /* [n_inputs] of the original, that it reads, then statistics, then values that are stored */
    const char **inputs;
    uint32_t n_inputs;
    double macs; /* multiply-adds on the whole input, without halos */
} ot_pass_model;

typedef struct ot_passes {
    ot_arena *arena;          /* owns what is below */
    ot_statistic *statistics; /* [n_statistics] in the order of passes */
    ot_pass_model *models;    /* [n_passes] and then the final one */
    uint32_t n_statistics, n_passes;
    double macs;       /* of the original */
    ot_stored *stored; /* [n_stored] in the order of passes */
    uint32_t n_stored;
    /* of outputs, and of the values that statistics are of, and that are stored, from inputs of
     * their models */
    ot_geometry *geometry;
    ot_geometry *whole;  /* of outputs from inputs of the original; NULL: geometry has it */
    ot_geometry **parts; /* [n_parts] what geometry is put together of; none: it is itself */
    uint32_t n_parts;
} ot_passes;

/* Write the models of m, as it was read, into the folder, which is made where there is none, and
 * what is summed where as plan.json. shapes: as of ot_geometry_find. m is then of no more use.
 * Caller frees *out with ot_passes_free. Fails: OT_E_INPUT (a node that needs more than that,
 * named), OT_E_USAGE (as of ot_geometry_find, no axis can be cut, or always to be stored where
 * sizes are not given), OT_E_SYSTEM, OT_E_NOMEM. */
ot_status ot_passes_write(ot_model *m, const ot_shape_binding *shapes, size_t n_shapes,
                          ot_passes_store store, const char *folder, ot_passes **out) OT_MUST_USE;
void ot_passes_free(ot_passes *x); /* accepts NULL */

/* "never", "auto", "always"; static. */
const char *ot_passes_store_name(ot_passes_store store);
/* "moments", "mean", "sum", "max", "min"; static. */
const char *ot_statistic_kind_name(ot_statistic_kind kind);

/* ---- passes_print.c ---- */

/* As a table for people; as JSON (docs/json.md), which is also plan.json. */
ot_status ot_passes_print(const ot_passes *x, FILE *f) OT_MUST_USE;
ot_status ot_passes_json(const ot_passes *x, FILE *f) OT_MUST_USE;

#endif
