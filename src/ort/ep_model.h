/* A graph of ONNX Runtime's as an ONNX file in memory. Private to src/ort. */
#ifndef OT_ORT_EP_MODEL_H
#define OT_ORT_EP_MODEL_H

#include "ep_graph.h"
#include "ort_bytes.h"

/* Inputs and outputs are the graph's, or where `ends` is given those of that node, which stands for
 * the graph. Constants are initializers, and so is with `defaults` what an input has unless it is
 * given, which is no input then; a node that cannot be told (with graphs inside, or
 * attributes of unknown kinds) becomes one of an unknown operator with the same operands. out is
 * the caller's to free, after failures, too. */
ort_status *ep_model_write(const ep_tables *t, const ort_graph *g, const ort_node *ends,
                           bool defaults, ort_bytes *out);

#endif
