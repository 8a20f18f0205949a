/* Stage report/: what a run found, as one plain struct of facts, and its two forms on a terminal:
 * table and JSON. */
#ifndef OT_RESULTS_H
#define OT_RESULTS_H

#include "memory/memory.h"
#include "plan/plan.h"

typedef struct ot_result_region {
    uint32_t id;
    const char *const *nodes; /* [n_nodes] names in topological order */
    uint32_t n_nodes;
    const char *axes[OT_DIMS_MAX]; /* [n_dims] "N", "H"... or "a0", "a1" */
    uint32_t tiles[OT_DIMS_MAX];   /* [n_dims] tiles along each */
    const char *const *sums;       /* [n_sums] reductions of tiled axes at its end: every tile makes a part */
    uint32_t n_sums;
    uint32_t n_dims;
    const char *form;
    int64_t working_set, working_set_bound;   /* planned arena; most bytes live at once */
    int64_t weights;                          /* bytes of constants */
    bool weights_stay;                        /* they are in the working set; else every tile streams them */
    double time_untiled, time_tiled, benefit; /* seconds */
    double mac_ratio, traffic;
} ot_result_region;

typedef struct ot_result_barrier {
    const char *node, *op, *reason_id, *reason;
} ot_result_barrier;

typedef struct ot_result_refusal {
    const char *const *nodes; /* [n_nodes] */
    uint32_t n_nodes;
    const char *reason_id, *reason;
} ot_result_refusal;

typedef struct ot_results {
    ot_arena *arena;   /* owns everything here, itself included */
    const char *model; /* path as given */
    const char *target;
    int64_t fast_bytes;
    ot_figures untiled, tiled; /* predictions */
    double compulsory_bytes;
    double activation_sum;        /* bytes that nodes make together: no buffer ever reused */
    ot_arena_figures activations; /* of the untiled model's activations */
    uint32_t n_unsized;           /* values of unknown size, not in the arena */
    uint32_t n_live_nodes;        /* nodes of the untiled graph */
    ot_result_region *regions;    /* [n_regions] */
    uint32_t n_regions;
    ot_result_barrier *barriers; /* [n_barriers] */
    uint32_t n_barriers;
    ot_result_refusal *refused; /* [n_refused] */
    uint32_t n_refused;
} ot_results;

/* A node's name, or that of its first output when it has none; its operator when that has none either. */
const char *ot_fact_label(const ot_graph *g, const ot_node *n);

/* Copy the facts of a plan, before the graph is rewritten. Requires ORDER. *out is freed with
 * ot_results_free. */
ot_status ot_results_build(const ot_graph *g, const ot_plan *p, const ot_target *t, const char *model,
                           ot_results **out) OT_MUST_USE;
void ot_results_free(ot_results *r); /* accepts NULL */

/* The table that a person reads. all: every barrier and refusal with its nodes, and the activation
 * sum (inspect); otherwise the most frequent ones. */
ot_status ot_results_print(const ot_results *r, bool all, FILE *f) OT_MUST_USE;
/* One JSON object; valid whatever the names contain. */
ot_status ot_results_json(const ot_results *r, FILE *f) OT_MUST_USE;

#endif
