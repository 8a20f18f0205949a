/* The command plan-memory: one file of buffers in, the same file with offsets out, and what there is to say about it.
 *
 *   .tk  --kernel/--> ot_kernel    --bufplan/--> offsets, one plan a scope --> .tk with offsets
 *   .csv --csv.c----> ot_pack_file --bufplan/--> offsets, one memory       --> .csv with offsets
 *                                          `---> ot_memory_results --> table, JSON;  map --> .svg
 */
#ifndef OT_PLAN_MEMORY_H
#define OT_PLAN_MEMORY_H

#include "planmem/planmem.h"

typedef struct ot_memory_run {
    const char *path;    /* "-": stdin; its kind is told by the name's end, else by the first word */
    const char *output;  /* "-": stdout; NULL: nothing is written */
    const char *svg;     /* same, for the map */
    const char *target;  /* for kernels; NULL: the kernel's own, else host */
    bool keep_maps;      /* the results hold what the map draws, for reports */
    ot_mem_options plan; /* for tables: capacity, mode, time_limit and threads only */
    FILE *log;           /* time of each step, one line each; NULL: silent */
} ot_memory_run;

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

/* Read, plan, check, write. Outputs appear whole or not at all, both or none. Fails: OT_E_INPUT (the file: "path:line: rule"),
 * OT_E_USAGE (options that are not for this kind of file, unknown target), OT_E_BUDGET (it does not fit, or no fit was found, and
 * which: with the smallest set of buffers that is too much), OT_E_SYSTEM, OT_E_NOMEM. *out is freed with ot_memory_results_free. */
ot_status ot_plan_memory(const ot_memory_run *run, ot_diag *d, ot_memory_results **out) OT_MUST_USE;
void ot_memory_results_free(ot_memory_results *r); /* accepts NULL */

/* ---- planmem/table_plan.c ---- */

/* Offsets of a table, by mode: search (and auto) is ot_pack; reuse is ot_pack_greedy, the largest first at the lowest place;
 * sequential puts one behind the other. offsets: [n]. Checked by ot_pack_check. Fails with OT_E_BUDGET when o->capacity is passed,
 * as ot_plan_memory says it. */
ot_status ot_pack_table(const ot_pack_file *f, const char *path, ot_mem_mode mode, const ot_pack_options *o, ot_diag *d,
                        int64_t *offsets, ot_scope_plan *plan, int64_t *steps) OT_MUST_USE;

/* ---- report/facts/memory_results.c ---- */

ot_status ot_memory_results_print(const ot_memory_results *r, FILE *f) OT_MUST_USE;
/* One JSON object; valid whatever the names contain. */
ot_status ot_memory_results_json(const ot_memory_results *r, FILE *f) OT_MUST_USE;

#endif
