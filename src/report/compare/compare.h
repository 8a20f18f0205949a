/* Two reports beside each other (private to compare*.c).
 *
 *   compare.c         reads both, finds what belongs together: nodes by name, regions by the nodes
 *                     that they share
 *   compare_page.c    the page: head, sentence, headline, order of sections
 *   compare_tables.c  regions, nodes, figures of both targets, measured times, memories
 *   compare_markdown.c  the short form for comments on changes
 *   gate.c            limits on the figures of a report
 */
#ifndef OT_REPORT_COMPARE_COMPARE_H
#define OT_REPORT_COMPARE_COMPARE_H

#include "report/html/html.h"

/* Indices into a list of the report before and of the one after; OT_NONE: it has no counterpart
 * there. */
typedef struct compare_pair {
    uint32_t before, after;
} compare_pair;

typedef struct compare_list {
    /* [n] those of the report before in its order, then those that only the other has */
    compare_pair *pairs;
    uint32_t n;
} compare_list;

/* What became of a node. */
typedef enum compare_change {
    COMPARE_SAME,
    COMPARE_TILED,   /* was in no region */
    COMPARE_UNTILED, /* is in no region any more */
    COMPARE_MOVED,   /* in a region with other nodes */
    COMPARE_RETILED, /* its region has another form or other tiles */
    COMPARE_NEW,     /* only in the model after */
    COMPARE_GONE,    /* only in the model before */
    COMPARE_CHANGES
} compare_change;

typedef struct comparison {
    const ot_facts *side[2]; /* before, after */
    const char *path[2];
    ot_arena *a;
    compare_list cards, nodes, regions, target, environment, memory, maps;
    uint32_t *shared;       /* [regions.n] nodes that both regions of the pair have */
    compare_change *change; /* [nodes.n] */
    uint32_t n_changes[COMPARE_CHANGES];
} comparison;

/* Same axes, tiles and form. */
bool ot_compare_same_tiling(const ot_fact_region *a, const ot_fact_region *b);

/* What is compared of a card: the tiled model, or the only one there is; OT_ABSENT of no card. */
double ot_compare_figure(const ot_fact_card *card);
/* Card k of a side; NULL for OT_NONE. */
const ot_fact_card *ot_compare_card(const comparison *c, int side, uint32_t k);
/* "newly tiled": of a number of nodes. */
extern const char *const ot_compare_change_words[COMPARE_CHANGES];

/* ---- compare_page.c ---- */

/* Equal in the digits that reports hold. */
bool ot_compare_same(double x, double y);
/* "a -> b", or "a" when they are the same. */
void ot_compare_figures(html *h, double before, double after, const char *unit);
/* What the second is of the first. */
void ot_compare_ratio(html *h, double before, double after);
ot_status ot_compare_write(const comparison *c, FILE *out) OT_MUST_USE;

/* ---- compare_markdown.c ---- */

ot_status ot_compare_markdown(const comparison *c, FILE *out) OT_MUST_USE;

/* ---- compare_tables.c: sections, each with its heading, or nothing ---- */
void ot_compare_regions(const comparison *c, html *h);
void ot_compare_nodes(const comparison *c, html *h);
void ot_compare_bench(const comparison *c, html *h);
void ot_compare_maps(const comparison *c, html *h);
void ot_compare_entries(const comparison *c, html *h);

#endif
