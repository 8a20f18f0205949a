/* Private interface between the files of import/. */
#ifndef OT_ONNX_IMPORT_IMPORT_H
#define OT_ONNX_IMPORT_IMPORT_H

#include "model_io.h"
#include "source.h"

#define OT_IMPORT_DEPTH_MAX 100 /* nesting of protobuf messages */
#define OT_NAME_SHOWN       160 /* bytes of a name shown in a message: the rule must still fit */

/* State of one import. */
typedef struct ot_importer {
    ot_model *m;
    ot_diag *d;
    ot_source *src;
    ot_graph *g; /* graph being built */
    const Onnx__ModelProto *mp;
    const Onnx__GraphProto *gp;
    ot_arena *scratch; /* dies with the import */
    ot_map *opsets;    /* domain -> version */
    int32_t opset;     /* of domain "" (0 when none); newer than the file's when raised */
    bool raised;       /* the model is read as a newer opset that means the same (raise.c) */
    ot_map *functions; /* domain, name, overload of model-local functions -> index */
} ot_importer;

/* pb_scan.c: walk the wire format of a message without unpacking it. Fails with OT_E_INPUT. */
ot_status ot_pb_scan(const uint8_t *bytes, size_t n, const ProtobufCMessageDescriptor *type,
                     ot_diag *d) OT_MUST_USE;

/* pb_slim.c: a model file of n bytes, without the contents of its large tensors: into `a`; *out
 * NULL: this file has to be read as a whole. Fails: OT_E_NOMEM. */
typedef struct ot_slim ot_slim;
typedef struct ot_slim_range {
    uint64_t offset; /* in the file */
    size_t bytes;
} ot_slim_range;
ot_status ot_slim_read(int fd, uint64_t n, ot_arena *a, ot_diag *d, ot_slim **out) OT_MUST_USE;
/* What to unpack. */
const void *ot_slim_bytes(const ot_slim *s, size_t *n);
/* Read the contents into what was unpacked. Fails: OT_E_INPUT without a message (the file does not
 * hold them any more, or has to be read as a whole), OT_E_NOMEM. */
ot_status ot_slim_fill(ot_slim *s, Onnx__ModelProto *model, ot_diag *d) OT_MUST_USE;

/* external.c: check and map the external data of every tensor of the model. dir_fd: the model's
 * folder, or -1 to refuse external data; or of each piece of `lent` (NULL: files). */
ot_status ot_import_external(ot_importer *im, int dir_fd, const ot_lent *lent,
                             size_t n_lent) OT_MUST_USE;

/* raise.c: the opset that the model of opset `opset` may be read as (`opset` itself: it is not
 * raised), and whether attribute `attr` of node p says nothing there. */
int32_t ot_raised_opset(const Onnx__ModelProto *mp, int32_t opset);
bool ot_raise_drops(const Onnx__NodeProto *p, const char *attr);
/* Other nodes are written in the place of operator `op` of opset `from` when it is raised to `to`.
 */
bool ot_raise_replaces(const char *op, int32_t from, int32_t to);
/* replace.c: write those nodes of im->g. Needs all names of the model. Fails: OT_E_NOMEM. */
ot_status ot_raise_nodes(ot_importer *im) OT_MUST_USE;
/* Constants are no inputs any more: a file before IR 4, where all have to be, is read as IR 4.
 * Fails: OT_E_NOMEM. */
ot_status ot_raise_constants(ot_importer *im) OT_MUST_USE;
/* inline_functions.c: calls of model-local functions, as the nodes of their bodies. Needs all names
 * of the model. Fails: OT_E_INPUT, OT_E_NOMEM. */
ot_status ot_inline_functions(ot_importer *im) OT_MUST_USE;
/* lift_constants.c: weights in Constant nodes as initializers. Fails: OT_E_NOMEM, OT_E_INPUT where
 * there are more bytes than can be counted. */
ot_status ot_lift_constants(ot_importer *im) OT_MUST_USE;
/* unfuse.c, unfuse_attention.c, unblock.c, nhwc_nodes.c: operators that ONNX Runtime's optimisers
 * write, as the standard ones that mean the same. Need all names of the model. Fail: OT_E_NOMEM;
 * the last two also OT_E_INPUT, as ot_topo_sort. */
ot_status ot_unfuse_nodes(ot_importer *im) OT_MUST_USE;
ot_status ot_unfuse_attention(ot_importer *im) OT_MUST_USE;
ot_status ot_unblock_nodes(ot_importer *im) OT_MUST_USE;
ot_status ot_turn_nhwc_nodes(ot_importer *im) OT_MUST_USE;

/* Is op_type one of the array `names`? */
bool ot_is_among(const char *op_type, const char *const *names, size_t n);
#define OT_IS_AMONG(op_type, names) ot_is_among(op_type, names, sizeof(names) / sizeof *(names))

/* import_tensor.c: *out in the model arena. `where` opens the message ("initializer", "node 'x'
 * ..."). */
ot_status ot_import_tensor(ot_importer *im, const Onnx__TensorProto *t, const char *where,
                           const ot_tensor **out) OT_MUST_USE;

/* import_attr.c: all attributes of a node into *out [*n]. */
ot_status ot_import_attrs(ot_importer *im, const Onnx__NodeProto *p, const char *label,
                          bool standard, ot_attr **out) OT_MUST_USE;
/* The type of an attribute: as stated, or deduced from the field that is set (IR < 2 has no type).
 */
Onnx__AttributeProto__AttributeType ot_attr_type(const Onnx__AttributeProto *a);

/* import_func.c: index model-local functions; refuse duplicates and cycles. */
ot_status ot_import_functions(ot_importer *im) OT_MUST_USE;
/* Does node p call a model-local function? *index: which. *nomem: memory ran out (the answer is
 * false). */
bool ot_calls_function(ot_importer *im, const Onnx__NodeProto *p, uint32_t *index, bool *nomem);
/* Does p name one of several functions of its name? */
bool ot_has_overload(const Onnx__NodeProto *p);

/* import_capture.c: values of the top graph that the subgraphs of node `p` read. `label` names
 * the node. */
ot_status ot_import_captures(ot_importer *im, const Onnx__NodeProto *p, const char *label,
                             ot_id **out, uint32_t *n) OT_MUST_USE;

/* import_names.c: register every name of the model in m->names. */
ot_status ot_import_names(ot_importer *im) OT_MUST_USE;

/* import_graph.c: the top graph, opsets included; then, for a graph inside another or a
 * function, its opsets and what it holds. */
ot_status ot_import_graph(ot_importer *im) OT_MUST_USE;
ot_status ot_import_opsets(ot_importer *im, Onnx__OperatorSetIdProto *const *imports,
                           size_t n) OT_MUST_USE;
ot_status ot_import_contents(ot_importer *im) OT_MUST_USE;
/* Has t the extents that the file states of v, as far as it states some? */
bool ot_fits_stated(const ot_value *v, const ot_tensor *t);
/* The value that `name` means in im->g: its own, or an outer one, which is then made known to
 * im->g; OT_NONE: there is none. *nomem: memory ran out. */
ot_id ot_import_lookup(ot_importer *im, const char *name, bool *nomem);

/* "" for a NULL string, "" also for the domain ai.onnx. */
const char *ot_text(const char *s);
const char *ot_domain(const char *s);

/* pb_load.c: protobuf-c's memory: a block (NULL: no memory), given back (NULL is accepted); a
 * message with all that it holds. */
void *ot_pb_take(size_t size) OT_MUST_USE;
void ot_pb_release(void *pointer);
void ot_pb_free(ProtobufCMessage *message);
/* A model of `n` bytes, to be freed with that before a, where its small parts lie. Fails:
 * OT_E_INPUT, OT_E_NOMEM. */
ot_status ot_pb_unpack(const void *bytes, size_t n, ot_arena *a, ot_diag *d,
                       Onnx__ModelProto **out) OT_MUST_USE;

/* Whether `block` (NULL: yes) goes with the arena of its model; it is small. */
bool ot_pb_pools(const void *block);
bool ot_pb_is_small(const void *block);
/* The attribute in n bytes, all of whose parts are small, as one that goes with a. NULL: no
 * memory. */
Onnx__AttributeProto *ot_pb_pool(ot_arena *a, const uint8_t *bytes, size_t n) OT_MUST_USE;

/* share_attributes.c: nodes of g, a graph of a model whose small parts lie in a, share attributes
 * that say the same. Fails: OT_E_NOMEM; some are shared then. */
ot_status ot_share_attributes(const Onnx__GraphProto *g, ot_arena *a, ot_diag *d) OT_MUST_USE;
/* Before g is freed: its nodes have none that are shared any more. */
void ot_unshare_attributes(const Onnx__GraphProto *g);

/* unwrap.c: in the place of operators that hold models, what they hold: src->model, unpacked so.
 * Fails likewise. */
ot_status ot_unwrap(ot_source *src, ot_arena *a, ot_diag *d) OT_MUST_USE;

#endif
