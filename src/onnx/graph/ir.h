/* The graph that every pass works on.
 *
 * A model owns one top-level graph. Values and nodes live in arrays indexed by id; ids never
 * change, removed nodes are marked dead. `order` lists the live nodes in topological order.
 * Nodes and tensors that came from a file keep an opaque pointer to their protobuf message
 * (`proto`), which the exporter writes back untouched as long as nothing changed them.
 * protobuf-c types themselves never leave import/ and export/.
 *
 *   ot_model -- ot_graph -- ot_value[]  <--producer/uses-->  ot_node[] --- ot_attr[]
 *                              |                                             |
 *                           ot_tensor (initializer)              ot_graph (body made by the
 *                                                                rewriter)
 *
 * Shapes: dims[k] == OT_DIM_UNKNOWN when not known; rank == -1 when even the rank is not known.
 * All intervals in this program are half-open.
 */
#ifndef OT_ONNX_GRAPH_IR_H
#define OT_ONNX_GRAPH_IR_H

#include "base/base.h"

typedef uint32_t ot_id; /* index of a value or node in its graph; OT_NONE = absent */

#define OT_DIM_UNKNOWN (-1)
#define OT_TILE_DOMAIN "onnx_tile"
#define OT_ENGINE_OP   "Engine" /* in that domain: a model in one operator (export_operator.c), */
#define OT_ENGINE_BODY "model"  /* which this attribute holds */
#define OT_NESTING_MAX 64       /* subgraphs, and functions, inside one another */
/* Keys of metadata_props: for whom a model was tiled, and what it was before. */
#define OT_NOTE_RUNTIME  "onnx_tile.runtime"
#define OT_NOTE_ORIGINAL "onnx_tile.original"
#define OT_NOTE_GOAL     "onnx_tile.goal"
#define OT_RANK_MAX      16   /* larger ranks are refused on import */
#define OT_KNOWN_MAX     4096 /* most elements of a value whose contents we track */

/* Numbers are TensorProto.DataType. */
typedef enum ot_dtype {
    OT_DT_UNKNOWN = 0,
    OT_F32 = 1,
    OT_U8 = 2,
    OT_I8 = 3,
    OT_U16 = 4,
    OT_I16 = 5,
    OT_I32 = 6,
    OT_I64 = 7,
    OT_STRING = 8,
    OT_BOOL = 9,
    OT_F16 = 10,
    OT_F64 = 11,
    OT_U32 = 12,
    OT_U64 = 13,
    OT_C64 = 14,
    OT_C128 = 15,
    OT_BF16 = 16,
    OT_F8E4M3FN = 17,
    OT_F8E4M3FNUZ = 18,
    OT_F8E5M2 = 19,
    OT_F8E5M2FNUZ = 20,
    OT_U4 = 21,
    OT_I4 = 22,
    OT_F4E2M1 = 23,
    OT_F8E8M0 = 24,
    OT_U2 = 25,
    OT_I2 = 26
} ot_dtype;

/* Operators we know, one per line of ops.def, plus OT_OP_OPAQUE for everything else
 * (other domains, unknown names, opset versions we do not support). */
typedef enum ot_op {
    OT_OP_OPAQUE = 0,
#define OP(name, ...) OT_OP_##name,
#include "ops.def"
#undef OP
    OT_OP_COUNT
} ot_op;

/* How an operator's output window maps to input windows; see access.h. */
typedef enum ot_access_kind {
    OT_ACC_BARRIER = 0, /* never sliced */
    OT_ACC_POINTWISE,   /* broadcast element-wise */
    OT_ACC_CONV,
    OT_ACC_CONVT,
    OT_ACC_POOL,
    OT_ACC_GLOBALPOOL,
    OT_ACC_NORM,
    OT_ACC_SOFTMAX,
    OT_ACC_REDUCE,
    OT_ACC_MATMUL,
    OT_ACC_GEMM,
    OT_ACC_QUANT,
    OT_ACC_TRANSPOSE,
    OT_ACC_RESHAPE,
    OT_ACC_EXPAND,
    OT_ACC_CONCAT,
    OT_ACC_SPLIT,
    OT_ACC_SLICE,
    OT_ACC_PAD,
    OT_ACC_RESIZE,
    OT_ACC_BLOCK, /* DepthToSpace, SpaceToDepth */
    OT_ACC_GATHER,
    OT_ACC_ROWS, /* GatherRows */
    OT_ACC_TILE,
    OT_ACC_CUMSUM,
    OT_ACC_EINSUM,
    OT_ACC_ATTENTION,
    OT_ACC_BATCHED, /* TopK, GatherElements...: the same for every element of a batch */
    OT_ACC_SHAPE    /* Shape, Size, ConstantOfShape, Range: never part of a region */
} ot_access_kind;

/* Class of compute cost; rates per class come from the target. */
typedef enum ot_cost_kind {
    OT_COST_FREE = 0, /* no work: Reshape, Identity, Squeeze... */
    OT_COST_MOVE,     /* copies: Transpose, Concat, Slice, Pad... */
    OT_COST_ELEM,     /* a few operations per element */
    OT_COST_TRANS,    /* transcendental per element: Exp, Sigmoid, Tanh, Erf, Softmax... */
    OT_COST_REDUCE,   /* reads more than it writes */
    OT_COST_NORM,     /* two passes over the data */
    OT_COST_POOL,     /* windowed, no weights */
    OT_COST_CONV,     /* convolution; dense, depthwise and pointwise are told apart by shape */
    OT_COST_GEMM,     /* matrix product */
    OT_COST_OTHER
} ot_cost_kind;

/* Inputs whose memory the first output of an operator may take, when they have its size and
 * nobody reads them later: what it writes to a place it has read before. Bit k: input k. */
typedef enum ot_op_overwrite {
    OT_OVER_NONE = 0,
    OT_OVER_FIRST = 1,
    OT_OVER_BOTH = 3,
    OT_OVER_BRANCHES = 6, /* of Where: not the condition */
    OT_OVER_VIEW =
        1 | 64 /* nothing is computed: input 0 under another name (of Dropout, when it is off) */
} ot_op_overwrite;

/* Kinds of element types; what operators take is a union of them. */
enum { OT_IS_FLOAT = 1, OT_IS_SIGNED = 2, OT_IS_UNSIGNED = 4, OT_IS_BOOL = 8 };
typedef enum ot_op_types {
    OT_TYPES_FLOAT = OT_IS_FLOAT,
    OT_TYPES_SIGNED = OT_IS_FLOAT | OT_IS_SIGNED,
    OT_TYPES_INTEGER = OT_IS_SIGNED | OT_IS_UNSIGNED,
    OT_TYPES_NUMBER = OT_IS_FLOAT | OT_IS_SIGNED | OT_IS_UNSIGNED,
    OT_TYPES_BOOL = OT_IS_BOOL,
    OT_TYPES_ANY = OT_IS_FLOAT | OT_IS_SIGNED | OT_IS_UNSIGNED | OT_IS_BOOL
} ot_op_types;

#define OT_OP_MANY UINT16_MAX /* any number of operands */

/* What ops.def says of an operator. */
typedef struct ot_op_row {
    const char *name;
    size_t len; /* of name */
    ot_access_kind access;
    ot_cost_kind cost;
    uint16_t min_in, max_in, max_out; /* the first min_in inputs must be there; max: OT_OP_MANY */
    uint8_t place;                    /* ot_op_overwrite */
    /* input that is multiplied with input 0; 0: it is no product */
    uint8_t weights;
    uint8_t types; /* ot_op_types of input 0, over all versions */
} ot_op_row;

/* A constant tensor. */
typedef struct ot_tensor {
    ot_dtype dtype;
    uint32_t rank;
    const int64_t *dims; /* [rank], all >= 0 */
    const void *data;    /* little-endian elements, densely packed; NULL when not held in memory
                            (strings, sub-byte types, absent external data) */
    size_t bytes;        /* of data when held; else the tensor's nominal size, 0 when unknown */
    /* of a sub-byte type: [bytes] as files pack them, the first element in the low bits; NULL: in
     * proto's typed field, or not held */
    const uint8_t *packed;
    const void *proto; /* TensorProto it came from, or NULL for tensors made here */
    /* hash of the contents as read from .ot text when data is NULL; 0: not known. Only the text
     * form uses it, to print back what it read. */
    uint64_t text_hash;
    /* data is NULL: its contents are those of the constant of that name in the file that the text
     * is in; NULL: they are not elsewhere. Only the text form uses it. */
    const char *stored;
} ot_tensor;

typedef enum ot_attr_kind {
    OT_ATTR_OPAQUE = 0, /* only `proto` is meaningful (user subgraphs, sparse tensors, types) */
    OT_ATTR_INT,
    OT_ATTR_FLOAT,
    OT_ATTR_STRING,
    OT_ATTR_INTS,
    OT_ATTR_FLOATS,
    OT_ATTR_STRINGS,
    OT_ATTR_TENSOR,
    OT_ATTR_GRAPH /* a body made by the rewriter or read from .ot text (`g`), not the user's own */
} ot_attr_kind;

struct ot_graph;

typedef struct ot_attr {
    const char *name;
    ot_attr_kind kind;
    size_t n; /* elements of ints/floats/strings; bytes of s */
    int64_t i;
    float f;
    const char *s;              /* [n] bytes, also zero-terminated */
    const int64_t *ints;        /* [n] */
    const float *floats;        /* [n] */
    const char *const *strings; /* [n] */
    const ot_tensor *t;
    struct ot_graph *g;
    const void *proto; /* AttributeProto it came from, or NULL */
} ot_attr;

typedef struct ot_value {
    const char *name; /* unique in its graph; never empty */
    ot_dtype dtype;
    int32_t rank;          /* -1 unknown */
    int64_t *dims;         /* [rank]; NULL when rank <= 0 */
    ot_id producer;        /* node, or OT_NONE for inputs, initializers, outer values */
    uint32_t out_index;    /* which output of the producer */
    const ot_tensor *init; /* initializer or folded constant; NULL for activations */
    const int64_t *known;  /* [known_n] contents as integers (shape arithmetic; also bool,
                                int32); NULL when not known. Set by shape inference. */
    /* [known_n] the same for small float values that nodes compute, rounded to their own type;
     * NULL when not known. Never set beside `known`, nor for initializers (see init). */
    const double *known_floats;
    uint32_t known_n;
    bool is_input;    /* graph input */
    bool is_output;   /* graph output */
    bool overridable; /* initializer that is also an input in IR >= 4: not constant */
    bool is_const;    /* set by shape inference: depends on initializers/constants only,
                                whatever the graph inputs (weights, folded or not) */
    /* set by shape inference: all that is said of type and dims follows from the operands of the
     * producer and what is sure of them (ot_shape_is_sure); of an outer value: it is sure */
    bool is_inferred;
    bool is_outer;  /* in a body graph: defined in an enclosing graph, same name */
    bool is_tensor; /* false for sequences, maps, optionals, sparse */
    /* made by the rewriter: a sequence of tensors of type dtype (is_tensor false) */
    bool is_sequence;
    /* made by the rewriter: files do not state its extents, which are known here; so a runtime
     * gives it memory when it is made, not before */
    bool is_unstated;
    /* set by transform/unpacked_weights.c: weights that no runtime is to write anew */
    bool is_unpacked;
    bool removed;      /* initializer no longer wanted by the exporter (moved to a body) */
    uint32_t n_uses;   /* valid when OT_P_USES: entries of uses */
    ot_id *uses;       /* [n_uses] node ids reading it, ascending in `order`, each once;
                                includes captures by subgraphs */
    const void *proto; /* ValueInfoProto (input, output or value_info), or NULL */
} ot_value;

/* What is inside of a node with bodies of the file's own (If, Loop, Scan), or that calls one of the
 * file's functions; zero for other nodes. */
typedef struct ot_inner {
    int64_t bytes;     /* most of values that live there at one time, beside the node's operands and
                      results; -1: not known */
    int64_t largest;   /* bytes of the largest of them, results included */
    const char *value; /* its name; NULL: none */
    uint64_t key;      /* of the shapes that this is of; 0: not asked yet */
} ot_inner;

typedef struct ot_node {
    const char *name; /* may be empty */
    const char *op_type;
    const char *domain; /* "" for ai.onnx */
    ot_op op;           /* OT_OP_OPAQUE unless it is a known op of domain "" */
    int32_t version;    /* imported opset version of its domain; 0 when not imported */
    uint32_t n_in, n_out, n_captured, n_attrs;
    ot_id *in;           /* [n_in]; OT_NONE for an omitted input */
    ot_id *out;          /* [n_out]; OT_NONE for an omitted output */
    ot_id *captured;     /* [n_captured] values of this graph that its subgraphs read */
    ot_attr *attrs;      /* [n_attrs] */
    bool dead;           /* removed from the graph */
    bool calls_function; /* one of the model's own */
    bool stays_whole;    /* who runs tiles does not have the operator: it is in none */
    bool is_static;      /* set by shape inference: every output has `known` contents or
                                is_const; such nodes take no part in tiling */
    uint32_t source;     /* position in the original file, or OT_NONE when made here */
    ot_inner inner;      /* set by shape inference */
    const void *proto;   /* NodeProto when nothing changed since import, else NULL */
} ot_node;

/* Element type and shape of a tensor; dims are borrowed. */
typedef struct ot_tensor_type {
    ot_dtype dtype;
    int32_t rank;
    const int64_t *dims; /* [rank] */
} ot_tensor_type;
static inline ot_tensor_type ot_type_of(const ot_value *v)
{
    return (ot_tensor_type){v->dtype, v->rank, v->dims};
}

/* Lists that are borrowed. */
typedef struct ot_id_list {
    const ot_id *at;
    uint32_t n;
} ot_id_list;
typedef struct ot_attr_list {
    const ot_attr *at;
    uint32_t n;
} ot_attr_list;

/* What a new node is: as ONNX's NodeProto. */
typedef struct ot_node_def {
    const char *op, *domain, *name; /* domain, name: NULL as "" */
    ot_id_list in, out;             /* OT_NONE: an operand or result that is left out */
    ot_attr_list attrs;
} ot_node_def;

/* Facts about a graph that passes establish (ot_confirm) and require (ot_assure). */
enum {
    OT_P_ORDER = 1u << 0, /* `order` is a topological order of the live nodes */
    OT_P_USES = 1u << 1,  /* value.uses, value.producer are exact */
    OT_P_SHAPES = 1u << 2 /* shape inference has run */
};

struct ot_model;
struct ot_dynamic_dims; /* ops/dynamic_dims.h */

typedef struct ot_graph {
    struct ot_model *model;
    struct ot_graph *parent; /* enclosing graph of a body, or NULL */
    const char *name;
    ot_node *nodes; /* [n_nodes] */
    uint32_t n_nodes;
    size_t cap_nodes;
    ot_value *values; /* [n_values] */
    uint32_t n_values;
    size_t cap_values;
    ot_id *inputs; /* [n_inputs] value ids, file order (includes initializers listed as inputs) */
    uint32_t n_inputs;
    ot_id *outputs; /* [n_outputs] value ids */
    uint32_t n_outputs;
    ot_id *order; /* [n_order] live nodes; valid when OT_P_ORDER */
    uint32_t n_order;
    bool quantizes;    /* a node is a QuantizeLinear; valid when OT_P_USES */
    ot_map *by_name;   /* value name -> id */
    unsigned props;    /* OT_P_* that hold */
    const void *proto; /* GraphProto or NULL */
    /* what its values take is known here, and is not written (transform/hidden_extents.c) */
    bool states_no_extents;
    uint32_t nesting; /* bodies and calls that it was inferred inside of; 0: the top graph */
} ot_graph;

/* Metadata for the nodes made here for tiled region `id` ("tile/r<id>/..."): for graph viewers. */
typedef struct ot_note_entry {
    const char *key, *value;
} ot_note_entry;
typedef struct ot_node_note {
    uint32_t id;
    const ot_note_entry *entries; /* [n] */
    uint32_t n;
} ot_node_note;

/* A normalisation (Softmax over pixels, Resize with align_corners) that stage
 * transform/decompose/ has decomposed. */
typedef struct ot_decomposed {
    const ot_id *whole; /* [n_whole] the nodes that it was, dead */
    /* [n_parts] the nodes in their place; of a normalisation, Moments and NormFactors are the
     * first two */
    const ot_id *parts;
    uint32_t n_whole, n_parts;
    /* [n_again] nodes that make what is normalised once more, for all parts but Moments; the
     * first makes it */
    const ot_id *again;
    uint32_t n_again;
} ot_decomposed;

/* A value that is rematerialised (stage transform/decompose/). */
typedef struct ot_rematerialised {
    ot_id value, again; /* as it was, for some of its readers; for the others */
    const ot_id *nodes; /* [n_nodes] that make `again`; the first makes it */
    uint32_t n_nodes;
} ot_rematerialised;

/* What of a model is written as operators for ONNX Runtime with the engine as a library
 * (src/onnx/export/export_operator.c, export_parts.c). */
typedef enum ot_operators {
    OT_OPERATORS_NONE,
    OT_OPERATORS_WHOLE,  /* all of it, as one */
    OT_OPERATORS_PARTS,  /* what the engine has, as few as the graph allows */
    OT_OPERATORS_REGIONS /* tiled regions */
} ot_operators;

/* so many splits, and so many other values, are rematerialised in one plan */
#define OT_REMAT_MAX 4

typedef struct ot_model {
    ot_arena *arena; /* everything that lives as long as the model */
    ot_diag *diag;   /* where failures are described; owned by the caller */
    ot_graph *graph;
    int64_t ir_version;
    int32_t opset; /* version imported for domain "" (0 when none) */
    /* every name used anywhere in the model, subgraphs included; for ot_fresh_name */
    ot_map *names;
    const char *last_fresh; /* what ot_fresh_name gave last, a key of `names`; NULL: nothing yet */
    /* a sketch (clone.c): `names` is another model's and stays as it is, fresh names say nothing */
    bool is_sketch;
    uint32_t n_sketched; /* fresh names that it gave */
    const char *path;    /* file it came from; NULL for stdin or text */
    bool has_external;   /* some tensor is stored in an external file */
    /* all weights are to be written to a file beside the model; where it is written to memory, they
     * are in it */
    bool data_file;
    /* dimensions of graph inputs were bound: a changed graph is written with them fixed */
    bool static_inputs;
    /* fixed extents of graph inputs were replaced: what the file states of shapes is written
     * anew */
    bool resized;
    /* the slice relation is asked of the model as it is: no tile is made of it, and what runtimes
     * make of tiles is no matter */
    bool unchanged;
    /* where shape inference of the top graph ended with a failure; OT_NONE: nowhere */
    ot_id failed_node;
    /* shapes have been inferred: what values have is not the file's word any more */
    bool shaped;
    uint64_t in_bodies; /* nodes of bodies and functions that were inferred for their callers */
    bool restated;      /* the file states some shape that is not followed: it is written anew */
    /* the first of these as a sentence, where no sizes were given, and how many there are; NULL:
     * none */
    const char *unfollowed;
    uint32_t n_unfollowed;
    size_t weight_bytes; /* nominal bytes of all initializers of the top graph */
    /* made for it: name in the model's metadata_props; NULL: none is added. Static */
    const char *runtime;
    /* it is a step along an axis: what goes from step to step, as JSON, in metadata_props; NULL: it
     * is none */
    const char *step;
    /* what it was before it was tiled, as text without the contents that the file has anyway, in
     * metadata_props (app/original.c); NULL: none is added */
    const char *original;
    const char *goal;        /* with original: what it was tiled for, likewise */
    struct ot_model *lender; /* freed with it: what ot_model_adopt borrowed from; NULL */
    ot_operators operators;  /* what is written as bodies of operators */
    /* [graph->n_nodes] with PARTS and REGIONS: nodes that go into operators */
    const bool *in_operator;
    /* [n_notes] of regions numbered one after the other; metadata_props of nodes of the top
     * graph */
    const ot_node_note *notes;
    uint32_t n_notes;
    /* planned at a design size: what holds there alone; NULL: the sizes are what they are */
    const struct ot_dynamic_dims *dynamic_dims;
    const ot_decomposed *decomposed; /* [n_decomposed] */
    uint32_t n_decomposed;
    const ot_rematerialised *rematerialised; /* [n_rematerialised] */
    uint32_t n_rematerialised;
    void *source; /* import/'s private state (ModelProto, mappings); freed by ot_model_free */
    void (*free_source)(void *source);
} ot_model;

/* ---- graph.c: the only place that edits a graph ---- */

/* empty model with an empty graph; of m's versions, with what was found while m was read; NULL when
 * memory ran out */
ot_model *ot_model_new(ot_diag *diag);
ot_model *ot_model_like(const ot_model *m);
void ot_model_free(ot_model *m); /* accepts NULL */
/* A copy of the model to try changes on; it borrows contents from m, which must outlive it, and
 * cannot be exported. Keeps SHAPES, establishes ORDER and USES. Caller frees. Fails: OT_E_NOMEM.
 * (clone.c) */
ot_status ot_model_clone(const ot_model *m, ot_model **out) OT_MUST_USE;
/* The same for a copy that is looked at and never written: what is made in it has short names
 * that say nothing, so that thousands of such copies are made quickly. m must live longer, and
 * have no new names meanwhile. */
ot_status ot_model_sketch(const ot_model *m, ot_model **out) OT_MUST_USE;
/* m becomes as `copy` is, a clone of it that may have been edited since, or have been taken
 * before m was edited, and which must outlive m: names and contents are borrowed. Keeps SHAPES
 * of the copy, establishes ORDER and USES. Fails: OT_E_NOMEM. (clone.c) */
ot_status ot_model_adopt(ot_model *m, const ot_model *copy) OT_MUST_USE;
/* A new graph (a body when parent != NULL) in the model's arena. */
ot_graph *ot_graph_new(ot_model *m, ot_graph *parent, const char *name) OT_MUST_USE;
/* Room for so many nodes and values in all, which then come without tables made anew. false: memory
 * ran out. */
bool ot_graph_reserve(ot_graph *g, size_t n_nodes, size_t n_values) OT_MUST_USE;
/* New value; `name` is borrowed and must not exist in the graph yet. rank -1: unknown shape.
 * dims are copied. Returns OT_NONE when memory ran out. Clears no property. */
ot_id ot_value_new(ot_graph *g, const char *name, ot_dtype dtype, int32_t rank,
                   const int64_t *dims) OT_MUST_USE;
/* Value of that name, or OT_NONE. */
ot_id ot_value_find(const ot_graph *g, const char *name);
ot_status ot_value_set_shape(ot_graph *g, ot_id v, int32_t rank, const int64_t *dims) OT_MUST_USE;
/* New node, appended (not yet in `order`; clears OT_P_ORDER and OT_P_USES). Arrays of the
 * definition are copied (attrs shallowly), its texts borrowed. Sets producer of its outputs.
 * version: the model's opset. `captured` is filled from the outer values of the bodies among
 * attrs, which must be complete. OT_NONE when memory ran out. */
ot_id ot_node_new(ot_graph *g, const ot_node_def *def) OT_MUST_USE;
/* Mark dead, detach its outputs' producer; clears ORDER and USES. */
void ot_node_remove(ot_graph *g, ot_id n);
/* A constant that nobody reads is no longer written: an initializer, or the only result of a
 * node. Anything else stays. Requires USES; clears ORDER and USES when a node goes. */
void ot_value_drop_unread(ot_graph *g, ot_id v);
/* Take a removal back; nobody else makes its outputs. Clears ORDER and USES. */
void ot_node_restore(ot_graph *g, ot_id n);
/* Replace every read of `from` by `to` in live nodes and graph outputs (names unchanged); clears
 * ORDER and USES. Nodes that change lose their `proto`. Reads by bodies (OT_ATTR_GRAPH) follow;
 * a value that a user's own subgraph captures is refused with OT_E_INPUT. */
ot_status ot_replace_uses(ot_graph *g, ot_id from, ot_id to) OT_MUST_USE;
/* A name that is used nowhere in the model: `base`, or base with a numeric suffix. Reserves it.
 * NULL on no memory. */
const char *ot_fresh_name(ot_model *m, const char *base) OT_MUST_USE;
/* New initializer value with the given contents (data copied into the model arena). */
ot_id ot_const_i64(ot_graph *g, const char *name, const int64_t *data, int32_t rank,
                   const int64_t *dims) OT_MUST_USE;
/* The same of int64 along one axis (n < 0: one number without axes), named after base
 * (ot_fresh_name); base NULL: no memory. Fails: OT_E_NOMEM. */
ot_status ot_const_ints(ot_graph *g, const char *base, const int64_t *data, int64_t n,
                        ot_id *out) OT_MUST_USE;
ot_id ot_const_f32(ot_graph *g, const char *name, const float *data, int32_t rank,
                   const int64_t *dims) OT_MUST_USE;
ot_id ot_const_f64(ot_graph *g, const char *name, const double *data, int32_t rank,
                   const int64_t *dims) OT_MUST_USE;

/* Attribute access. Missing or of another kind: the default / NULL. */
const ot_attr *ot_attr_find(const ot_node *n, const char *name);
int64_t ot_attr_int(const ot_node *n, const char *name, int64_t dflt);
float ot_attr_float(const ot_node *n, const char *name, float dflt);
const char *ot_attr_str(const ot_node *n, const char *name, const char *dflt);
/* Elements into *n_out; NULL when absent. */
const int64_t *ot_attr_ints(const ot_node *n, const char *name, size_t *n_out);
/* Builders for ot_node_new; arrays are copied into the arena (NULL payload on no memory -> kind
 * OPAQUE). */
ot_attr ot_mk_int(const char *name, int64_t v);
ot_attr ot_mk_float(const char *name, float v);
ot_attr ot_mk_str(const char *name, const char *s);
ot_attr ot_mk_ints(ot_arena *a, const char *name, const int64_t *v, size_t n);
ot_attr ot_mk_tensor(const char *name, const ot_tensor *t);
ot_attr ot_mk_graph(const char *name, ot_graph *g);

/* ---- topo.c ---- */

/* Fill `order` (stable: among ready nodes, the one that keeps branches together: depth first from
 * file order) and value.uses. Fails with OT_E_INPUT naming a node on a cycle, or a value read but
 * never defined. Linear time. */
ot_status ot_topo_sort(ot_graph *g) OT_MUST_USE;
/* Take another topological order: g->order as the caller has rearranged it. Requires ORDER,
 * keeps it; USES are made anew. Fails: OT_E_NOMEM. */
ot_status ot_take_order(ot_graph *g) OT_MUST_USE;
/* Make the properties in `mask` hold (re-sorts when ORDER or USES is missing). OT_BUG when
 * SHAPES is missing. */
ot_status ot_assure(ot_graph *g, unsigned mask) OT_MUST_USE;
/* Only the properties in `mask` still hold. */
void ot_confirm(ot_graph *g, unsigned mask);

/* ---- write_order.c ---- */

/* The live nodes in the order in which a file has them ([n_order], in arena a, or g->order): as
 * they were read where none was made here. Requires ORDER, USES. NULL: no memory. */
const ot_id *ot_write_order(const ot_graph *g, ot_arena *a);

/* ---- opinfo.c ---- */

ot_op ot_op_find(const char *op_type); /* OT_OP_OPAQUE when unknown; constant time */
/* The row of operator op_type of that domain: of ours, those of the standard are not found, and
 * the other way round. */
ot_op ot_op_of(const char *domain, const char *op_type);
const char *ot_op_name(ot_op op);
ot_access_kind ot_op_access(ot_op op);
ot_cost_kind ot_op_cost(ot_op op);
/* never NULL: OT_OP_OPAQUE has a row, too, of a barrier with any operands */
const ot_op_row *ot_op_row_of(ot_op op);
bool ot_op_is_view(ot_op op);           /* does its first output have the bytes of input 0? */
bool ot_op_over(ot_op op, uint32_t in); /* may its first output take the memory of that input? */
/* Bits per element; 0 for strings and unknown. */
uint32_t ot_dtype_bits(ot_dtype t);
/* "whole", "parts", "regions" as options spell them; "" */
const char *ot_operators_name(ot_operators which);
/* The node that alone reads v, which is no output and is captured by no subgraph; OT_NONE.
 * Requires USES. */
ot_id ot_value_only_reader(const ot_graph *g, ot_id v);
/* Real numbers of 16 bits; those, or float32. */
static inline bool ot_dtype_is_half(ot_dtype t) { return t == OT_F16 || t == OT_BF16; }
static inline bool ot_dtype_is_real(ot_dtype t) { return t == OT_F32 || ot_dtype_is_half(t); }
const char *ot_dtype_name(ot_dtype t);     /* "float32", ... as numpy spells them */
ot_dtype ot_dtype_parse(const char *name); /* OT_DT_UNKNOWN when not a type name */
/* Elements / bytes of a value; false when the shape is not fully known or the product overflows. */
bool ot_value_elems(const ot_value *v, int64_t *out) OT_MUST_USE;
bool ot_value_bytes(const ot_value *v, int64_t *out) OT_MUST_USE;
bool ot_value_is_static(const ot_value *v); /* rank and all dims known */

/* ---- verify.c ---- */

/* Check names unique, ids in range, one producer each, order topological, uses exact when
 * claimed, shapes sane, bodies likewise (their outer references resolve, no shadowing of names).
 * First violation is reported with node and value names as OT_E_INPUT. */
ot_status ot_verify(ot_graph *g) OT_MUST_USE;

/* ---- text_print.c, text_parse.c, dot.c: the .ot text form (docs/ot-format.md) ---- */

/* Print the graph, bodies included. Deterministic. Returns OT_E_SYSTEM when writing failed,
 * without a message: the caller knows the file, and errno. */
ot_status ot_text_print(const ot_graph *g, FILE *f) OT_MUST_USE;
/* The same for programs: without blanks at the start of lines, types of results only where they
 * do not follow, and more elements written out. */
ot_status ot_text_print_brief(const ot_graph *g, FILE *f) OT_MUST_USE;
/* Parse a model; errors carry line:column. *out is owned by the caller (ot_model_free). */
ot_status ot_text_parse(const char *text, size_t n, ot_diag *diag, ot_model **out) OT_MUST_USE;
/* region_of[node id] = region number or OT_NONE; NULL for none. */
ot_status ot_dot_print(const ot_graph *g, const uint32_t *region_of, FILE *f) OT_MUST_USE;

/* "N", "C", "H", "W" for rank 4, with "D" for rank 5, else "a0", "a1"...; static. */
const char *ot_axis_name(int32_t rank, int axis);

#endif
