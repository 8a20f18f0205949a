/* What the files plan_memory*.c share: one run of plan-memory. */
#ifndef OT_COMMANDS_PLAN_MEMORY_WORK_H
#define OT_COMMANDS_PLAN_MEMORY_WORK_H

#include "plan_memory.h"

/* A text in memory; from open_memstream. */
typedef struct ot_rendered {
    char *bytes;
    size_t n;
} ot_rendered;

typedef struct ot_memory_work {
    const ot_memory_run *run;
    ot_diag *d;
    const char *path; /* for messages */
    char *input;      /* [n_input] */
    size_t n_input;
    ot_rendered plan, map; /* outputs, as far as they are wanted */
    ot_memory_results *r;
} ot_memory_work;

/* plan_memory_table.c: read, plan and render the table w->input. */
ot_status ot_memory_run_table(ot_memory_work *w);

/* plan_memory_passes.c: the kernel's text after each pass, where maps are kept; it has its offsets
 * then. */
ot_status ot_memory_keep_passes(ot_memory_work *w, ot_kernel *k, const ot_mem_plan *p) OT_MUST_USE;

/* A line of the log: what took since then. */
void ot_memory_log_time(const ot_memory_work *w, const char *what, double since);
/* Close the stream of `t`; its text is complete or there is none. */
ot_status ot_memory_close_text(const ot_memory_work *w, FILE *f, ot_rendered *t, ot_status s);
const char *ot_memory_base_name(const char *path);
/* A map's frame; without boxes. */
ot_map_plot ot_memory_plot_of(const ot_scope_plan *p, const char *title, const char *time);
/* What is asked for of the maps: a drawing, a copy in the results. title NULL: no memory. */
ot_status ot_memory_use_plots(ot_memory_work *w, const ot_map_plot *plots, uint32_t n,
                              const char *title);

#endif
