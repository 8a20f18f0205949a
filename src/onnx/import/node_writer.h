/* Nodes that stand in the place of others when a model is read (replace.c, unfuse.c, unblock.c).
 * The old ones stay, dead: a model that nothing else changes is taken back to what it was. */
#ifndef OT_ONNX_IMPORT_NODE_WRITER_H
#define OT_ONNX_IMPORT_NODE_WRITER_H

#include "import.h"

typedef struct ot_node_writer {
    ot_graph *g;
    const char *base;   /* of names */
    const char *domain; /* of the nodes */
} ot_node_writer;

/* A writer of what stands in the place of `old`, which is removed; old stays valid. */
ot_node_writer ot_writer_in_place_of(ot_graph *g, ot_id id, ot_node *old);

/* "BASE/ROLE", or that with a number; NULL: no memory. */
const char *ot_writer_name(const ot_node_writer *w, const char *role) OT_MUST_USE;

/* Constants [n]; of floats a scalar where n is 0. Fail: OT_E_NOMEM. */
ot_status ot_write_ints(const ot_node_writer *w, const char *role, const int64_t *data, int64_t n,
                        ot_id *out) OT_MUST_USE;
ot_status ot_write_floats(const ot_node_writer *w, const char *role, const float *data, int64_t n,
                          ot_id *out) OT_MUST_USE;

/* type(in) {attrs} -> *out, which is made where it is OT_NONE. Fails: OT_E_NOMEM. */
ot_status ot_write_node(const ot_node_writer *w, const char *type, ot_id_list in,
                        ot_attr_list attrs, ot_id *out) OT_MUST_USE;

/* The attributes of n but those whose names begin with a text of `without` (NULL ends it), and room
 * for two more. Fails: OT_E_NOMEM. */
ot_status ot_write_attrs_of(const ot_node_writer *w, const ot_node *n, const char *const *without,
                            ot_attr **attrs, uint32_t *n_attrs) OT_MUST_USE;

/* An activation that is merged into another operator, as a node of its own: x -> *y, which is made
 * where it is OT_NONE. */
typedef struct ot_activation {
    const char *op; /* "": none */
    float params[2];
    uint32_t n; /* of params that are given */
} ot_activation;
/* Can it be written in that opset? */
bool ot_activation_is_known(const ot_activation *a, int32_t opset);
ot_status ot_write_activation(const ot_node_writer *w, const ot_activation *a, ot_id x,
                              ot_id *y) OT_MUST_USE;

/* Activation and summand (operand 3) that are merged into a convolution. */
ot_activation ot_activation_of_conv(const ot_node *n);
/* op(in [3 at most]) + sum, activated -> y; attrs: of op. */
typedef struct ot_merged_conv {
    ot_id_list in;
    ot_attr_list attrs;
    ot_id sum; /* OT_NONE: none */
    ot_activation act;
} ot_merged_conv;
ot_status ot_write_conv(const ot_node_writer *w, const ot_merged_conv *c, ot_id y) OT_MUST_USE;

#endif
