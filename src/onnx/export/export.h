/* Private interface between the files of export/. */
#ifndef OT_ONNX_EXPORT_EXPORT_H
#define OT_ONNX_EXPORT_EXPORT_H

#include "onnx/import/source.h"
#include "onnx/import/model_io.h"
#include "out_file.h"

/* ---- pb_write.c: a streaming packer ---- */

/* Replaces tensors while a message is written. Must give the same answer each time. */
typedef const Onnx__TensorProto *(*ot_pb_subst)(void *ctx, const Onnx__TensorProto *t);

typedef struct ot_pb_writer {
    ot_arena *a;
    ot_pb_subst subst; /* NULL: none */
    void *ctx;
    uint64_t *sizes; /* [n_sizes] of sub-messages, in the order they are written */
    size_t n_sizes, cap_sizes;
    size_t next; /* of sizes, while writing */
} ot_pb_writer;

/* Size of `msg` when written; fills w->sizes. false when memory ran out. */
bool ot_pb_measure(ot_pb_writer *w, const ProtobufCMessage *msg, uint64_t *size) OT_MUST_USE;
/* Write `msg`, which was just measured. Failures stick in the sink. */
void ot_pb_emit(ot_pb_writer *w, const ProtobufCMessage *msg, ot_sink *s);

/* ---- building messages from the IR ---- */

typedef struct ot_exporter {
    const ot_model *m;
    ot_diag *d;
    const ot_source *src; /* NULL for a model that came from no ONNX file */
    ot_arena *a;          /* dies with the export */
    /* Called with each body of an operator that is packed; NULL: nobody asks. */
    ot_body_visit visit;
    void *visit_ctx;
    /* written with the newer opset that the model was read as (onnx/import/raise.c): nodes
     * without what that drops */
    bool raised;
} ot_exporter;

/* export_model.c: the whole message. */
ot_status ot_export_model(ot_exporter *ex, const Onnx__ModelProto **out) OT_MUST_USE;
/* export_operator.c: that message as the body of one operator. Fails: OT_E_INPUT (2 GiB, no
 * inputs, ends that are no tensors). */
ot_status ot_export_operator(ot_exporter *ex, const Onnx__ModelProto *inner,
                             const Onnx__ModelProto **out) OT_MUST_USE;
/* A node whose operator has the model `body`; its inputs and outputs are called as there. Fails
 * likewise. */
ot_status ot_operator_node(ot_exporter *ex, const Onnx__ModelProto *body, const char *name,
                           Onnx__NodeProto **out) OT_MUST_USE;
/* What `inner` says of itself, without a graph: `around`, of the model that has operators; else
 * of a body. */
ot_status ot_operator_model(const ot_exporter *ex, const Onnx__ModelProto *inner, bool around,
                            Onnx__ModelProto *out) OT_MUST_USE;
/* export_parts.c: that message with operators for m->in_operator; `inner` itself where nothing
 * becomes one. Fails likewise. */
ot_status ot_export_parts(ot_exporter *ex, const Onnx__ModelProto *inner,
                          const Onnx__ModelProto **out) OT_MUST_USE;
/* export_graph.c */
ot_status ot_export_graph(ot_exporter *ex, const ot_graph *g,
                          const Onnx__GraphProto **out) OT_MUST_USE;
/* Has anything in the top graph changed since import? */
bool ot_export_changed(const ot_exporter *ex);
/* export_node.c */
ot_status ot_export_node(ot_exporter *ex, const ot_graph *g, const ot_node *n,
                         const Onnx__NodeProto **out) OT_MUST_USE;
/* A Constant node that makes value v (IR < 4 has no initializers apart from inputs). Before
 * opset 9 it makes floats alone: integers are written as float64, and *cast, else NULL, is the
 * Cast behind it. */
ot_status ot_export_constant(ot_exporter *ex, const ot_value *v, const Onnx__NodeProto **out,
                             const Onnx__NodeProto **cast) OT_MUST_USE;
/* export_value.c */
ot_status ot_export_tensor(ot_exporter *ex, const ot_tensor *t, const char *name,
                           const Onnx__TensorProto **out) OT_MUST_USE;
/* ValueInfoProto from name, type and shape. NULL when memory ran out. */
const Onnx__ValueInfoProto *ot_export_value_info(ot_exporter *ex, const ot_value *v);
/* Copy of `p` in which every dimension the IR knows is fixed. NULL when memory ran out. */
const Onnx__ValueInfoProto *ot_export_static(ot_exporter *ex, const ot_value *v,
                                             const Onnx__ValueInfoProto *p);

/* ---- export_external.c: the .data file ---- */

typedef struct ot_store ot_store;

/* Decide which tensors below `msg` go to the data file, called BASE.HASH.data: those that came from
 * one, or (all) every raw one; only if large; none where base is NULL: they come inside.
 * *out NULL when none does and none needs inlining. */
ot_status ot_store_plan(ot_exporter *ex, const ProtobufCMessage *msg, const char *base, bool all,
                        ot_store **out) OT_MUST_USE;
bool ot_store_has_data(const ot_store *st);
/* Name of the data file, where there is one. */
const char *ot_store_location(const ot_store *st);
/* Whether the regular file at `path` holds what would be written, and nothing else. */
bool ot_store_is_in(const ot_store *st, const char *path);
const Onnx__TensorProto *ot_store_subst(void *store, const Onnx__TensorProto *t);
void ot_store_write(const ot_store *st, ot_sink *s);

#endif
