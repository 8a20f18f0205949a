/* What plan-memory found, and its two forms on a terminal. */
#ifndef OT_REPORT_MEMORY_RESULTS_H
#define OT_REPORT_MEMORY_RESULTS_H

#include "map_svg.h"
#include "planmem/planmem.h"

/* What a plan is, without its offsets. */
typedef struct ot_memory_results {
    ot_arena *arena;      /* owns everything here, itself included */
    const char *file;     /* as given */
    const char *kernel;   /* its name; NULL for a table */
    const char *target;   /* NULL for a table */
    ot_mem_mode asked;    /* mode of the command */
    ot_scope_plan *plans; /* [n_plans] one a scope; for a table one, whose scope and level mean nothing */
    uint32_t n_plans;
    uint32_t n_buffers;
    int64_t steps; /* of the search; tables only */
    uint32_t n_in_place, n_copies;
    const char *const *warnings; /* [n_warnings] */
    uint32_t n_warnings;
    double seconds;     /* of planning */
    ot_map_plot *plots; /* [n_plots] of the plans, when asked for */
    uint32_t n_plots;
} ot_memory_results;
void ot_memory_results_free(ot_memory_results *r); /* accepts NULL */

ot_status ot_memory_results_print(const ot_memory_results *r, FILE *f) OT_MUST_USE;
/* One JSON object; valid whatever the names contain. */
ot_status ot_memory_results_json(const ot_memory_results *r, FILE *f) OT_MUST_USE;

#endif
