/* Inside of the facts' makers. */
#ifndef OT_REPORT_FACTS_FACTS_BUILD_H
#define OT_REPORT_FACTS_FACTS_BUILD_H

#include "facts.h"

typedef struct fact_source {
    const ot_graph *g;
    const ot_plan *p; /* with detail */
    const ot_target *t;
    const ot_plan_options *o;
    uint32_t *node_of; /* [g->n_nodes] index into facts.nodes; OT_NONE */
} fact_source;

/* facts_figures.c: cards, roofs and points, tables of target, environment and memory. Requires
 * nodes and regions. */
ot_status ot_facts_figures(ot_facts *f, const fact_source *x) OT_MUST_USE;

/* facts_explain.c: where memory goes: f->peak, alive, obstacles, peak_region. Requires nodes,
 * regions, barriers and totals. */
ot_status ot_facts_explain(ot_facts *f, const fact_source *x) OT_MUST_USE;

/* facts_reasons.c: candidates of f->regions[k], marked and explained. */
ot_status ot_facts_candidates(ot_facts *f, const fact_source *x, uint32_t k) OT_MUST_USE;

/* The largest part names the bound. Seconds. */
ot_bound ot_facts_bound(double compute, double memory, double overhead);
/* Multiply-accumulates of a node, or elements it makes where it has none: what rates and
 * rooflines count. */
double ot_facts_operations(const ot_graph *g, const ot_node_cost *c);

#endif
