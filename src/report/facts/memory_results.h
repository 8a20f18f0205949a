/* What plan-memory found, and its two forms on a terminal. */
#ifndef OT_REPORT_FACTS_MEMORY_RESULTS_H
#define OT_REPORT_FACTS_MEMORY_RESULTS_H

#include "map_svg.h"
#include "base/json.h"
#include "tk/access/kernel_access.h"
#include "tk/planmem/footprint.h"

/* Where one storage lies. */
typedef struct ot_memory_buffer {
    /* [n_names] the values of a kernel that share it, or the one row of a table */
    const char *const *names;
    uint32_t n_names;
    ot_scope scope;         /* of kernels; means nothing in a table */
    int64_t size;           /* bytes of one slot */
    const int64_t *offsets; /* [n_slots] bytes; of what is never alive 0 */
    uint32_t n_slots;
    /* [n_live] ascending, disjoint: statements of a kernel from 0, times of a table; none: never
     * alive */
    const ot_span *live;
    uint32_t n_live;
} ot_memory_buffer;

/* A kernel's text after a pass. */
typedef struct ot_memory_pass {
    const char *id, *title, *what;
    const char *text; /* its lines, each with its end */
    /* [n_plots] one a scope of the plan, of the memories as they would be without what follows */
    const ot_map_plot *plots;
    uint32_t n_plots;
} ot_memory_pass;

/* What a plan is. */
typedef struct ot_memory_results {
    ot_arena *arena;    /* owns everything here, itself included */
    const char *file;   /* as given */
    const char *kernel; /* its name; NULL for a table */
    const char *target; /* NULL for a table */
    ot_mem_mode asked;  /* mode of the command */
    /* [n_plans] one a scope; for a table one, whose scope and level mean nothing */
    ot_scope_plan *plans;
    uint32_t n_plans;
    uint32_t n_buffers;
    const ot_memory_buffer *list; /* [n_list] in order of first write, or of rows; JSON has it */
    uint32_t n_list;
    int64_t steps; /* of the search; tables only */
    uint32_t n_in_place, n_copies;
    const char *const *warnings; /* [n_warnings] */
    uint32_t n_warnings;
    /* [n_notes] sizes and memories that the planner chose for a kernel, and why */
    const char *const *notes;
    uint32_t n_notes;
    bool analysed;              /* a kernel's accesses were looked at: */
    ot_kaccess_report accesses; /* names in the arena */
    bool measured;              /* a kernel's footprint was asked for: */
    ot_footprint footprint;     /* in the arena, as the plans that it names */
    double seconds;             /* of planning */
    ot_map_plot *plots;         /* [n_plots] of the plans, when asked for */
    uint32_t n_plots;
    ot_memory_pass *passes; /* [n_passes] with the plots, of a kernel's text */
    uint32_t n_passes;
    /* [n_functions] of a text of several functions: what each is; then all but file and mode are
     * there */
    struct ot_memory_results *functions;
    uint32_t n_functions;
} ot_memory_results;
void ot_memory_results_free(ot_memory_results *r); /* accepts NULL */

/* memory_buffers.c: fill r->list with copies, in r's arena, of a kernel's planned buffers or of
 * a table's rows (offsets: one a row). Fail: OT_E_NOMEM. */
ot_status ot_memory_results_keep_kernel(ot_memory_results *r, const ot_kernel *k,
                                        const ot_mem_plan *p) OT_MUST_USE;
ot_status ot_memory_results_keep_table(ot_memory_results *r, const ot_pack_file *f,
                                       const int64_t *offsets) OT_MUST_USE;

/* columns: of the terminal that f leads to; 0: any. */
ot_status ot_memory_results_print(const ot_memory_results *r, size_t columns, FILE *f) OT_MUST_USE;
/* One JSON object; valid whatever the names contain. */
ot_status ot_memory_results_json(const ot_memory_results *r, FILE *f) OT_MUST_USE;

/* memory_footprint.c: the footprint, as lines for a person and as the list `footprint`. */
void ot_memory_footprint_print(const ot_memory_results *r, FILE *f);
void ot_memory_footprint_json(const ot_memory_results *r, ot_json *j);

#endif
