/* run-kernel --tune: extents and work-groups with which a kernel is fastest, by measured runs.
 *
 *   what the planner chose --> one size after the other: twice as large, half, ... --> fastest
 *                              the work-group last
 */
#ifndef OT_COMMANDS_KERNEL_TUNE_H
#define OT_COMMANDS_KERNEL_TUNE_H

#include "tk/planmem/planmem.h"

/* One way to run the kernel. */
typedef struct ot_kernel_trial {
    ot_tk_binding *sizes; /* [n of the tuning] */
    uint32_t items;       /* of a work-group */
    double seconds;       /* INFINITY: it does not fit, or the device refuses it */
} ot_kernel_trial;

typedef struct ot_kernel_tuning {
    uint32_t n_sizes;
    ot_kernel_trial *trials; /* [n_trials] the first is what the planner chose */
    size_t n_trials, cap_trials;
    size_t best;
} ot_kernel_tuning;

/* Who plans and runs. */
typedef struct ot_kernel_tuner {
    void *of;
    /* Plan and run with t's sizes and items; sets t->seconds. Fails: what no other trial mends. */
    ot_status (*run)(void *of, ot_kernel_trial *t);
    uint32_t items, items_most; /* of the first trial; of what the device takes */
    bool keeps_items;           /* the caller gave them */
    const ot_tk_binding *given; /* [n_given] sizes that are kept */
    size_t n_given;
} ot_kernel_tuner;

/* Sizes of k (as planned, values and all) that are tried: those that the planner chooses and those
 * that say of what they are a multiple. first_seconds: of k as it is. Work: at most 40 trials.
 * Fails: OT_E_NOMEM, as run. */
ot_status ot_kernel_tune(const ot_kernel *k, double first_seconds, const ot_kernel_tuner *by,
                         ot_arena *a, ot_diag *d, ot_kernel_tuning *out) OT_MUST_USE;

#endif
