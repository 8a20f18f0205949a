/* Writing nodes and constants one by one, at any opset from 7 on (decompose_nodes.c): for this
 * stage, and for who takes normalisations apart in other ways. */
#ifndef OT_TRANSFORM_DECOMPOSE_DECOMPOSE_NODES_H
#define OT_TRANSFORM_DECOMPOSE_DECOMPOSE_NODES_H

#include "onnx/graph/ir.h"

/* Nodes being written to g. */
typedef struct decomp_writer {
    ot_graph *g;
    const char *base; /* names are "<base>/<role>" */
    ot_id nodes[64];  /* [n_nodes] written so far */
    uint32_t n_nodes;
} decomp_writer;

/* A node with one output, named after the role def->name. *out: the output to use, or OT_NONE for
 * a new value of that type; def->out is not read. Fails: OT_E_NOMEM. */
ot_status decomp_op(decomp_writer *w, const ot_node_def *def, ot_tensor_type type,
                    ot_id *out) OT_MUST_USE;
/* A NormFactors node: two outputs of that type. Fails: OT_E_NOMEM. */
ot_status decomp_pair(decomp_writer *w, const ot_node_def *def, ot_tensor_type type,
                      ot_id out[2]) OT_MUST_USE;
ot_status decomp_cast(decomp_writer *w, const char *role, ot_id x, ot_dtype to,
                      ot_id *out) OT_MUST_USE;
/* Reduction op_type over axes [n] (not negative), which stay with one element. */
ot_status decomp_reduce(decomp_writer *w, const char *op_type, const char *role, ot_id x,
                        const int64_t *axes, size_t n, ot_id *out) OT_MUST_USE;
ot_status decomp_reshape(decomp_writer *w, const char *role, ot_id x, int32_t rank,
                         const int64_t *dims, ot_id *out) OT_MUST_USE;
/* Constants: int64 [n]; float64 and float32 of any shape. */
ot_status decomp_ints(decomp_writer *w, const char *role, const int64_t *data, int64_t n,
                      ot_id *out) OT_MUST_USE;
ot_status decomp_doubles(decomp_writer *w, const char *role, const double *data, int32_t rank,
                         const int64_t *dims, ot_id *out) OT_MUST_USE;

ot_status decomp_floats(decomp_writer *w, const char *role, const float *data, int32_t rank,
                        const int64_t *dims, ot_id *out) OT_MUST_USE;

#endif
