/* Inside of the graph's section: groups of nodes for the overview, and the drawing of nodes and
 * edges that its pictures share. */
#ifndef OT_REPORT_HTML_HTML_GRAPH_H
#define OT_REPORT_HTML_HTML_GRAPH_H

#include "html.h"
#include "html_layout.h"

#define GRAPH_SHORT 96 /* bytes of a shortened label */

/* ---- html_graph_group.c: the graph with every region closed ---- */

typedef enum graph_kind { GRAPH_INPUTS, GRAPH_UNTILED, GRAPH_REGION, GRAPH_OUTPUTS } graph_kind;

typedef struct graph_group {
    graph_kind kind;
    uint32_t region;              /* GRAPH_REGION: index into regions */
    uint32_t level;               /* regions on the longest way to it */
    uint32_t first;               /* its first node */
    uint32_t n;                   /* nodes; of inputs and outputs: tensors */
    uint32_t n_barriers, barrier; /* barrier: the first one's index */
    double time;                  /* of its nodes, untiled */
} graph_group;

typedef struct graph_flow { /* all tensors from one group to another */
    uint32_t from, to, n;   /* n: tensors */
    double bytes;
} graph_flow;

typedef struct graph_groups {
    graph_group *groups; /* [n] in topological order */
    uint32_t n;
    uint32_t *of_node; /* [n_nodes] */
    graph_flow *flows; /* [n_flows] */
    uint32_t n_flows;
} graph_groups;

/* Regions are groups; so are untiled nodes that hang together, between the same regions.
 * Everything in a. */
ot_status graph_group_nodes(const ot_facts *f, ot_arena *a, graph_groups *out) OT_MUST_USE;

/* ---- html_graph_draw.c ---- */

#define GRAPH_NODE_W 152.0
#define GRAPH_NODE_H 36.0

/* What a picture shows of the graph. */
typedef struct graph_picture {
    const uint32_t *nodes; /* [layout.n] index into the facts' nodes */
    const uint32_t *edges; /* [layout.n_edges] index into the facts' edges */
    uint32_t region;       /* nodes outside of this region are dim; OT_NONE: none is */
    bool searched;         /* nodes carry data-name */
    bool terse;            /* so many nodes that tooltips are short and edges have none */
    const char *label;     /* for those who hear it */
} graph_picture;

/* Shapes that drawings use, and the legend. */
void graph_legend(html *h);
/* One <svg>. */
ot_status graph_draw(html *h, const layout *l, const graph_picture *p, ot_arena *a) OT_MUST_USE;
/* Open an <svg> of that size with its label. */
void graph_open_svg(html *h, const char *cls, double w, double height, const char *label);
/* At most `most` characters, cut in the middle. Returns out. */
const char *graph_shorten(const char *name, uint32_t most, char out[GRAPH_SHORT]);
/* 1 to 5: how wide an edge of so many bytes is drawn. */
uint32_t graph_width_class(double bytes);

#endif
