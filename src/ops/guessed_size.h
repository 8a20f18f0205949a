/* Sizes of inputs where nobody gives one: the one place that chooses them, for plans, runs,
 * comparisons and the library. */
#ifndef OT_OPS_GUESSED_SIZE_H
#define OT_OPS_GUESSED_SIZE_H

#include "ops/ops.h"

/* A size for every input of m: bindings that are given (their inputs may be any), and extents that
 * inputs of such ranks usually have and the model takes for the others that have dynamic
 * dimensions. Dimensions that share a name have one extent, that of a given binding where there is
 * one. */
typedef struct ot_guessed_sizes {
    ot_shape_binding *all; /* [n] the given ones first; in the caller's arena */
    size_t n;
    bool found; /* there was something to guess, and the model takes it; else nothing is added */
} ot_guessed_sizes;

/* option: of the bindings that are added. Requires m as it was read, or with shapes inferred; it is
 * not changed. Fails: OT_E_NOMEM, in m's diag. */
ot_status ot_guess_sizes(const ot_model *m, const ot_shape_binding *given, size_t n_given,
                         const char *option, ot_arena *a, ot_guessed_sizes *out) OT_MUST_USE;

#endif
