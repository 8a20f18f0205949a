/* The command plan-memory: one file of buffers in, the same file with offsets out, and what
 * there is to say about it.
 *
 *   .tk  --kernel/--> ot_kernel    --bufplan/--> offsets, one plan a scope --> .tk with offsets
 *   .mlir --mlir/--> ot_kernel   --bufplan/--> offsets, one plan a scope --> .mlir with
 *                                pointer_cast
 *   .csv --csv.c----> ot_pack_file --bufplan/--> offsets, one memory       --> .csv with offsets
 *                                          `---> ot_memory_results --> table, JSON;  map --> .svg
 */
#ifndef OT_COMMANDS_PLAN_MEMORY_H
#define OT_COMMANDS_PLAN_MEMORY_H

#include "tk/planmem/planmem.h"
#include "report/facts/memory_results.h"

typedef struct ot_memory_run {
    /* "-": stdin; its kind is told by the name's end, else by the first word */
    const char *path;
    const char *output;         /* "-": stdout; NULL: nothing is written */
    const char *svg;            /* same, for the map */
    const char *pairs;          /* of a table: what shares bytes at a price; NULL: nothing */
    const char *function;       /* of MLIR: the one that is planned; NULL: all */
    const char *target;         /* for kernels; NULL: the kernel's own, else host */
    const ot_tk_binding *sizes; /* [n_sizes] values of a kernel's sizes */
    size_t n_sizes;
    bool keep_maps;      /* the results hold what the map draws, for reports */
    bool analyse;        /* kernels: what their accesses cost */
    bool apply;          /* and pad what is written */
    bool footprint;      /* kernels: what is alive where, and what 4 KiB more cost */
    ot_mem_options plan; /* for tables: capacity, mode, time_limit and threads only */
    FILE *log;           /* time of each step, one line each; NULL: silent */
} ot_memory_run;

/* Read, plan, check, write. Outputs appear whole or not at all, both or none. Fails: OT_E_INPUT
 * (the file: "path:line: rule"), OT_E_USAGE (options that are not for this kind of file, unknown
 * target), OT_E_BUDGET (it does not fit, or no fit was found, and which: with the smallest set
 * of buffers that is too much), OT_E_SYSTEM, OT_E_NOMEM. *out is freed with
 * ot_memory_results_free. */
ot_status ot_plan_memory(const ot_memory_run *run, ot_diag *d, ot_memory_results **out) OT_MUST_USE;

#endif
