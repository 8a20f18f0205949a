/* What import/ keeps of the file behind an ot_model, and export/ needs to write it back.
 * Private to import/ and export/: the only places that see protobuf-c types.
 *
 *   ot_model.source -> ot_source -> ModelProto (unpacked; every proto pointer of the IR points in)
 *                               \-> mappings of external data files (ot_tensor.data points in)
 */
#ifndef OT_ONNX_IMPORT_SOURCE_H
#define OT_ONNX_IMPORT_SOURCE_H

#include "onnx/graph/ir.h"

#include "base/file_view.h"

#include "onnx.pb-c.h"

#include <sys/types.h>

/* One external data file, mapped read-only once for all its tensors. */
typedef struct ot_mapping {
    struct ot_mapping *next;
    const char *location; /* as the model spells it */
    ot_file_view *view;   /* NULL when size is 0 */
    const uint8_t *data;  /* [size], of view */
    size_t size;
    dev_t device; /* identity of the file: the exporter must never write onto it */
    ino_t inode;
} ot_mapping;

/* One tensor whose elements lie in a mapping. Its key is the array of external_data entries,
 * which a shallow copy of the TensorProto (another name, same data) shares. */
typedef struct ot_ext {
    Onnx__StringStringEntryProto *const *key; /* TensorProto.external_data */
    const uint8_t *data;                      /* [bytes] */
    size_t bytes;
    void (*release)(void *of, const void *data, size_t bytes); /* of what is lent, else NULL */
    void *of;
} ot_ext;

typedef struct ot_source {
    Onnx__ModelProto *model; /* owned */
    ot_mapping *maps;        /* owned; in order of first use, newest first */
    /* [n_ext] sorted by key address (look-up only, never an output order) */
    ot_ext *ext;
    size_t n_ext;
    size_t cap_ext;
    bool is_lent;      /* they lie in memory of the caller's: there are no mappings */
    uint32_t n_values; /* values of the top graph right after import; later ones are new */
    /* nodes of the file in it; what comes behind them right after import was written anew
     * (replace.c) */
    uint32_t n_nodes;
    /* [n_inputs] of the top graph, where constants among them are not listed any more
     * (replace.c); NULL: they are */
    ot_id *inputs;
    uint32_t n_inputs;
    bool has_lifted; /* initializers that Constant nodes hold in the file (lift_constants.c) */
    int32_t opset;   /* of the file, domain ""; model->opset may be newer (raise.c) */
    /* domain, name, overload of model-local functions -> index; see import_func.c */
    ot_map *functions;
} ot_source;

/* The external elements of `t` (or of a shallow copy), or NULL when it is not stored externally. */
const ot_ext *ot_source_ext(const ot_source *s, const Onnx__TensorProto *t);

/* ---- pb_walk.c ---- */

/* Call visit(ctx, message) for `msg` and every message inside it, outer before inner, in field
 * order. Stops at the first failure. Depth is bounded by the pre-scan of the file. */
typedef ot_status (*ot_pb_visit)(void *ctx, const ProtobufCMessage *msg);
ot_status ot_pb_walk(const ProtobufCMessage *msg, ot_pb_visit visit, void *ctx) OT_MUST_USE;
/* Sub-messages of one field of msg: their number, and the array of pointers in *items. */
size_t ot_pb_children(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *f,
                      ProtobufCMessage *const **items);

/* notes.c: a hash of what the graph computes, but for contents of large constants. */
uint64_t ot_proto_mark(const Onnx__GraphProto *g);

/* Size in bytes of a tensor's element data as raw_data holds it; false when dims are bad or the
 * type has no fixed size. Sub-byte types are packed, the last byte padded. */
bool ot_proto_nominal_bytes(const Onnx__TensorProto *t, int64_t *elems, int64_t *bytes) OT_MUST_USE;

#endif
