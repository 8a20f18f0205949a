/* Stages import/ and export/: ONNX files <-> ot_model. The only users of protobuf-c. */
#ifndef OT_ONNX_IMPORT_MODEL_IO_H
#define OT_ONNX_IMPORT_MODEL_IO_H

#include "onnx/graph/ir.h"

/* Read an ONNX model. path "-" reads stdin (then no external data: it has no folder).
 * On success *out is owned by the caller (ot_model_free). Every field of the file survives in it.
 * Fails with OT_E_INPUT (malformed, too deep, hostile external data, cyclic, duplicate names;
 * the message names node, attribute, value and rule), OT_E_SYSTEM or OT_E_NOMEM.
 * The graph comes back with `order` and `uses` filled (ot_topo_sort), shapes as stated in the file.
 */
ot_status ot_import_file(const char *path, ot_diag *diag, ot_model **out) OT_MUST_USE;

/* Same from memory. dir: folder that external data is looked up in, or NULL to refuse external
 * data. */
ot_status ot_import_memory(const void *bytes, size_t n, const char *dir, ot_diag *diag,
                           ot_model **out) OT_MUST_USE;

/* Contents of constants that stay in memory of the caller's. */
typedef struct ot_lent {
    const void *data;
    size_t bytes;
    /* NULL, or what to do when a session does not read it any more; at most once */
    void (*release)(void *of, const void *data, size_t bytes);
    void *of;
} ot_lent;
/* Same from memory, where external data is not in files: its location is the decimal number of one
 * of lent[n_lent], whose bytes it has from the first to the last. These are not copied, and have to
 * stay as long as the model. */
ot_status ot_import_lent(const void *bytes, size_t n, const ot_lent *lent, size_t n_lent,
                         ot_diag *diag, ot_model **out) OT_MUST_USE;
/* The piece of a constant's contents, lent to the model, that `data` points into. false: it points
 * to something else. */
bool ot_import_lent_at(const ot_model *m, const void *data, ot_lent *out) OT_MUST_USE;
/* Nobody reads that piece any more: it is not the model's from now on. */
void ot_import_return(ot_model *m, const ot_lent *piece);

/* What was done with a model ended with `so_far`. Returns that, unless zeros were read in the place
 * of external data: then what came out is not true, and OT_E_INPUT, with the file's name, replaces
 * what d says. Models that read from memory, and copies of models, have none: ask for the one that
 * was read. (external.c) */
ot_status ot_import_check(const ot_model *m, ot_status so_far, ot_diag *d) OT_MUST_USE;

/* A model that nothing has changed since it was read: nodes that were written anew to read it as
 * a newer opset become what the file has. Keeps SHAPES, makes ORDER and USES. Fails: OT_E_NOMEM. */
ot_status ot_raise_undo(ot_model *m) OT_MUST_USE;

/* Read a model of opset 11 or 12 as opset 13, where all of its nodes can be written so; else,
 * and at other opsets, nothing happens. Requires and keeps SHAPES, of the sizes that the file
 * states, makes ORDER and USES. ot_raise_undo takes it back. Fails: OT_E_NOMEM.
 * (raise_operands.c) */
ot_status ot_raise_operands(ot_model *m) OT_MUST_USE;

/* The name that the file gives to dimension k of a graph input; NULL: none. (import_graph.c) */
const char *ot_dim_name(const ot_value *input, uint32_t k);

/* ---- import_body.c: graphs inside nodes, which the importer leaves in the file's form ---- */

/* Is there a graph in attribute `a` of m: a body of ours, or the user's? */
bool ot_attr_has_graph(const ot_model *m, const ot_attr *a);
/* The graph of the user's subgraph attribute `a` of a node of `outer` (a graph of m, or one that
 * came from here), in m's arena: inputs, outputs, nodes in order. Values that it reads from the
 * graphs around it are is_outer. No shapes are inferred in it. Fails like ot_import_file;
 * OT_E_INPUT also when `a` holds no graph. */
ot_status ot_import_body(ot_model *m, const ot_attr *a, ot_graph *outer,
                         ot_graph **out) OT_MUST_USE;
/* The body of the model-local function that node n calls, as a graph of its own, with the call's
 * attributes put in. Its inputs are the function's: a call may give fewer. *out NULL: n calls
 * none. */
ot_status ot_import_call(ot_model *m, const ot_node *n, ot_graph **out) OT_MUST_USE;

/* ---- notes.c ---- */

/* The file's own entry of that key among its metadata; NULL: none, or it came from no file. */
const char *ot_import_note(const ot_model *m, const char *key);
/* A hash of the file's graph, but for contents of large constants: what is written says of which
 * graph its notes are (m->original). 0: it came from no file. */
uint64_t ot_import_mark(const ot_model *m);

/* ---- tensor_file.c ---- */

/* A file that holds one TensorProto; contents and *out live in `a`: those of sub-byte types
 * unpacked (ot_tensor_unpack), so bytes counts their elements. External data is refused. Fails
 * with OT_E_INPUT. */
ot_status ot_import_tensor_file(const char *path, ot_arena *a, ot_diag *d,
                                const ot_tensor **out) OT_MUST_USE;
/* Write all t->bytes of a tensor to `out`, also where t->data is NULL because they are stored in
 * another form. false: nobody holds them (strings, tensors without contents), or they are of a
 * sub-byte type. */
bool ot_tensor_read(const ot_tensor *t, void *out) OT_MUST_USE;
/* The elements of a sub-byte type, a byte each: int4 and int2 as int8, uint4 and uint2 as uint8,
 * float4 as codes. false: another type, or nobody holds them. */
bool ot_tensor_unpack(const ot_tensor *t, uint8_t *out) OT_MUST_USE;

/* Give back the memory of the contents of a tensor that came from a file, which nobody will read
 * again: the model cannot be written any more. Of an external file only the pages go; small
 * tensors stay. Returns whether it did; t->data is NULL then. */
bool ot_tensor_release(ot_tensor *t);
/* Are the contents of a tensor that came from a file in memory of their own, which
 * ot_tensor_release gives back? */
bool ot_tensor_is_own(const ot_tensor *t);

/* Write the model. path "-" writes stdout. A regular (or new) file appears whole or not at all:
 * temporary file in the same folder, fsync, rename. What exists and is no regular file is
 * written to. External data goes to "<path>.data" when the model had any or would pass 2 GiB.
 * Nodes and tensors whose `proto` is set are written back untouched; the rest is made from the
 * IR. Deterministic bytes. Values that are not graph inputs/outputs and have a fully known shape
 * get a value_info when they had one or were made by the rewriter. */
ot_status ot_export_file(const ot_model *m, const char *path) OT_MUST_USE;

/* Serialise to memory (no external files: fails with OT_E_INPUT when the model needs them).
 * *bytes is malloc'ed; the caller frees it. */
ot_status ot_export_memory(const ot_model *m, void **bytes, size_t *n) OT_MUST_USE;
/* The same, but that contents that were lent stay where they are: for ot_import_lent with the same
 * list. */
ot_status ot_export_lent(const ot_model *m, void **bytes, size_t *n) OT_MUST_USE;

/* Bodies of the operators that m->operators asks for, one after the other, packed as they will be
 * written, but that the contents of large constants stay where they are, lent[n_lent], for
 * ot_import_lent; stops at the first failure, and fails like ot_export_memory. */
typedef ot_status (*ot_body_visit)(void *ctx, const void *bytes, size_t n, const ot_lent *lent,
                                   size_t n_lent);
ot_status ot_export_bodies(const ot_model *m, ot_body_visit visit, void *ctx) OT_MUST_USE;

/* Fully typed contents of a tensor of rank <= 1 (or any small tensor) as int64 (bool, ints) into
 * out[max]; *n gets the count. false when it is too large, not an integer type, or not held. */
bool ot_tensor_ints(const ot_tensor *t, int64_t *out, size_t max, size_t *n) OT_MUST_USE;
/* Same for float16/float32/double/bfloat16 as float. */
bool ot_tensor_floats(const ot_tensor *t, float *out, size_t max, size_t *n) OT_MUST_USE;

#endif
