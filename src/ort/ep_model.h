/* A graph of ONNX Runtime's as an ONNX file in memory. Private to src/ort. */
#ifndef OT_ORT_EP_MODEL_H
#define OT_ORT_EP_MODEL_H

#include "ep_graph.h"
#include "ep_pieces.h"
#include "ort_bytes.h"

typedef struct ep_model {
    ort_bytes bytes;
    ep_pieces pieces;
} ep_model;

/* Inputs and outputs are the graph's, or where `ends` is given those of that node, which stands for
 * the graph. Constants are initializers, and so is with `defaults` what an input has unless it is
 * given, which is no input then; a node that cannot be told (with graphs inside, or attributes of
 * unknown kinds) becomes one of an unknown operator with the same operands. Contents of large
 * constants are the runtime's, as long as the graph is. out is the caller's to free, after
 * failures, too. */
ort_status *ep_model_write(const ep_tables *t, const ort_graph *g, const ort_node *ends,
                           bool defaults, ep_model *out);
void ep_model_free(ep_model *m); /* it is empty then */

#endif
