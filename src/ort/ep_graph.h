/* Walks over graphs of ONNX Runtime's, through its C interface. Private to src/ort. */
#ifndef OT_ORT_EP_GRAPH_H
#define OT_ORT_EP_GRAPH_H

#include "ep_abi.h"

/* What of the runtime's tables is used. */
typedef struct ep_tables {
    const ort_api *api;
    const ort_ep_api *ep;
    bool knows_shapes; /* has ORT_SHAPE_IS_KNOWN */
    bool mixes;        /* runs graphs of which a provider in a library takes some nodes only */
} ep_tables;

ort_status *ep_no_memory(const ep_tables *t);

/* Nodes of a graph, and values of a node: lists of the runtime's, the caller's to free; their
 * number in *n. */
ort_status *ep_graph_nodes(const ep_tables *t, const ort_graph *g, const ort_node ***out,
                           size_t *n);
ort_status *ep_node_values(const ep_tables *t, const ort_node *node, int count_at, int values_at,
                           const ort_value_info ***out, size_t *n);
/* The name of the first output of a node that is there; NULL: it has none. */
ort_status *ep_first_output(const ep_tables *t, const ort_node *n, const char **out);

/* "": v is NULL, an operand that is left out. */
ort_status *ep_value_name(const ep_tables *t, const ort_value_info *v, const char **out);
/* The shape of a tensor; NULL: it is none. */
ort_status *ep_value_shape(const ep_tables *t, const ort_value_info *v, const ort_shape **out);
/* Does the runtime know how many dimensions there are? Before ORT_VERSION_HAS_SHAPE a scalar looks
 * like a tensor of which nothing is known. */
bool ep_is_ranked(const ep_tables *t, const ort_shape *s, size_t rank);
/* Is it a tensor whose dimensions are all known? */
ort_status *ep_value_is_fixed(const ep_tables *t, const ort_value_info *v, bool *out);

#endif
