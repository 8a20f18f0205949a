/* What runs as one kernel: the one place that finds groups of nodes in a graph. The engine's
 * lowering makes steps of them, the cost model counts with them, so what is planned for is what
 * runs.
 *
 *   convolution   Conv --> BatchNormalization, Mul, Add by channel --> Add of a tensor,
 *                 activations, x * Sigmoid(x)
 *   attention     MatMul --> factors, mask --> Softmax --> MatMul, Transposes of operands and
 *                 result
 *   product       MatMul --> a factor
 *   chain         element-wise nodes whose results have one shape, in one pass over memory
 *   bytes         DequantizeLinear --> an operator, what follows --> QuantizeLinear, and integer
 *                 operators: on 8-bit tensors
 *
 *   view    a graph as its owner sees it: which nodes are there to be merged, who reads what, what
 *           is constant, which shapes are
 *           known. The cost model shows a sequence of nodes, the engine the units of a program.
 *   rules   what a runtime merges: supported() is asked before a node joins a group.
 *
 * A place is a number of a node in the order of the view. Searches take time linear in nodes and
 * operands.
 */
#ifndef OT_FUSION_FUSION_H
#define OT_FUSION_FUSION_H

#include "onnx/graph/ir.h"

typedef struct ot_group_shape {
    ot_dtype dtype;
    uint32_t rank;
    const int64_t *dims; /* [rank], all known */
} ot_group_shape;

/* A node that makes a value. */
typedef struct ot_group_origin {
    const ot_graph *g; /* has its operands: of the view, or of a model around it */
    const ot_node *n;
    uint32_t place; /* OT_NONE: it is computed before the model runs, what it reads are constants */
} ot_group_origin;

typedef struct ot_group_view {
    const void *of; /* whoever shows it; first argument of the functions */
    const ot_graph *g;
    uint32_t n; /* places */
    /* The node there; NULL: it is part of something else already. */
    const ot_node *(*node)(const void *of, uint32_t place);
    /* What it reads: *n values, OT_NONE for one that is left out. */
    const ot_id *(*operands)(const void *of, uint32_t place, uint32_t *n);
    /* Places that read v, each once and in order, whatever runs there. */
    const uint32_t *(*readers)(const void *of, ot_id v, uint32_t *n);
    /* The place that makes v; OT_NONE. */
    uint32_t (*maker)(const void *of, ot_id v);
    /* What a constant, which no place makes, was computed from; false: it was not. */
    bool (*origin)(const void *of, ot_id v, ot_group_origin *o);
    /* v is needed as it is: a result of the graph, read by a subgraph. */
    bool (*is_kept)(const void *of, ot_id v);
    /* v's contents are known before the model runs. */
    bool (*is_const)(const void *of, ot_id v);
    /* Type and dims of v where they are known. */
    bool (*shape)(const void *of, ot_id v, ot_group_shape *s);
    /* Does the node make outputs that somebody wants, besides the first? */
    bool (*has_more_outputs)(const void *of, uint32_t place);
} ot_group_view;

typedef enum ot_group_role {
    OT_ROLE_CONVOLUTION = 0, /* Conv, ConvTranspose, QLinearConv: the first of its group */
    OT_ROLE_NORM,            /* BatchNormalization */
    OT_ROLE_AFFINE,          /* Add, Sub, Mul, Div of a constant */
    OT_ROLE_RESIDUAL,        /* Add, Sum of another value */
    OT_ROLE_ACTIVATION,
    OT_ROLE_GATE, /* Sigmoid, HardSigmoid of what a GATED multiplies it with */
    /* Mul of the two; comes right behind its GATE, and is asked for together with that */
    OT_ROLE_GATED,
    OT_ROLE_SOFTMAX, /* of an attention; its shape is that of the scores */
    OT_ROLE_MIX,     /* MatMul of what Softmax makes with V */
    OT_ROLE_MASK,    /* Add of a tensor to the scores */
    /* Mul, Div of the scores by a constant of one element: operand ot_group_factor */
    OT_ROLE_FACTOR,
    OT_ROLE_PRODUCT, /* MatMul of Q and K' */
    OT_ROLE_READS,   /* Transpose of Q, K' or V: other strides */
    OT_ROLE_WRITES,  /* Transpose of the result */
    OT_ROLE_ELEMENT, /* of a chain */
    /* reads 8-bit tensors, or what DequantizeLinear makes of them: the first of its group */
    OT_ROLE_ON_BYTES,
    /* Cast and Mul of an integer product; Mul of the scales that it is multiplied with */
    OT_ROLE_RESCALE,
    OT_ROLE_QUANTIZE /* QuantizeLinear of the result */
} ot_group_role;

typedef enum ot_group_kind {
    OT_GROUP_CONV = 0,
    OT_GROUP_ATTENTION,
    OT_GROUP_PRODUCT,
    OT_GROUP_CHAIN,
    OT_GROUP_BYTES
} ot_group_kind;

typedef struct ot_group_part {
    uint32_t place;
    ot_group_role role;
} ot_group_part;

#define OT_GROUP_PARTS 48 /* most nodes of a group */
/* most that the engine computes on the result of a convolution while that is in registers */
#define OT_GROUP_POSTS 4

typedef struct ot_group {
    ot_group_kind kind;
    uint32_t n;
    /* [n] a convolution's in the order in which they compute, a chain's by place, an attention's
     * as they are found: MIX, SOFTMAX, then up to PRODUCT, then Transposes */
    ot_group_part parts[OT_GROUP_PARTS];
    /* what is made at last; of a chain OT_NONE: it may make several values */
    ot_id result;
    ot_id residual; /* of a convolution: what is added; OT_NONE */
} ot_group;

struct ot_node_list;
struct ot_steps;

typedef struct ot_group_rules {
    const char *name; /* of who merges so */
    /* May the node at `place` join `group` in that role? Asked in the order in which parts join;
     * `true` means that it does. */
    bool (*supported)(void *ctx, const ot_group_view *v, const ot_group *group, uint32_t place,
                      ot_group_role role);
    void *ctx;
    /* How steps are found (steps.h): NULL, the groups of the recogniser, kind after kind. */
    ot_status (*find)(const struct ot_group_rules *r, struct ot_node_list *l, ot_arena *a,
                      struct ot_steps *s);
} ot_group_rules;

/* ---- conv_group.c ---- */

/* The group of the convolution at `place`; false: there is none, or the rules do not take it. */
bool ot_group_conv(const ot_group_view *v, const ot_group_rules *r, uint32_t place,
                   ot_group *out) OT_MUST_USE;

/* ---- attention_group.c ---- */

#define OT_GROUP_RANK 8 /* most axes of a value that a group looks at */

/* Where the axes of an operand are: batch axes, row, column, as the scores (V: the result) count
 * them. */
typedef struct ot_group_axes {
    uint32_t axis[OT_GROUP_RANK]; /* of the array; OT_NONE: repeated */
} ot_group_axes;

typedef struct ot_attention_group {
    ot_group group;
    /* what is read and made, before and behind Transposes; mask: OT_NONE without one */
    ot_id q, k, v, mask, y;
    ot_id scores, weights; /* what the first product and Softmax make: [..., queries, keys] */
    /* of_k: rows are keys, although the product reads K' */
    ot_group_axes of_q, of_k, of_v, of_mask, of_y;
} ot_attention_group;

/* The attention around the Softmax at `softmax`; false: there is none, or the rules do not take
 * it. Rules may be asked about parts that are given up again: either side of a MASK may be the
 * scores. */
bool ot_group_attention(const ot_group_view *v, const ot_group_rules *r, uint32_t softmax,
                        ot_attention_group *out) OT_MUST_USE;
/* Which operand of the Mul or Div at `place` is its factor, a constant of one element; OT_NONE:
 * it has none. */
uint32_t ot_group_factor(const ot_group_view *v, uint32_t place);
/* Axis of the operand that axis k of the result of the Transpose at `place` is: perm[k]. Real
 * numbers only. */
bool ot_group_perm(const ot_group_view *v, uint32_t place, uint32_t *perm);

/* ---- product_group.c ---- */

/* The product at `place` and its factor; false: there is none, or the rules do not take it. */
bool ot_group_product(const ot_group_view *v, const ot_group_rules *r, uint32_t place,
                      ot_group *out) OT_MUST_USE;

/* ---- bytes_group.c ---- */

/* What kernels a group of bytes runs in. */
typedef enum ot_bytes_kind {
    OT_BYTES_CONV = 0, /* Conv of dequantized tensors, QLinearConv, ConvInteger */
    OT_BYTES_PRODUCT,  /* MatMul and Gemm of such, QLinearMatMul, MatMulInteger */
    OT_BYTES_POOL,
    OT_BYTES_CONCAT,
    OT_BYTES_MOVE /* elements of the first operand, as they are */
} ot_bytes_kind;

typedef struct ot_bytes_group {
    /* ON_BYTES, then what follows in order; the RESCALE of scales behind the one that it is for */
    ot_group group;
    ot_bytes_kind kind;
    /* DequantizeLinear of the first two operands; n NULL: they are bytes, or there is none */
    ot_group_origin x, w;
    ot_id factor;      /* an integer product is multiplied with; OT_NONE */
    ot_id bias;        /* an AFFINE adds; OT_NONE */
    ot_group_origin y; /* QuantizeLinear; n NULL: there is none */
} ot_bytes_group;

/* The group of the operator at `place`; false: there is none, or the rules do not take it. Rules
 * may be asked about parts that are given up again: limits are part of a group only where a
 * QuantizeLinear follows them. */
bool ot_group_bytes(const ot_group_view *v, const ot_group_rules *r, uint32_t place,
                    ot_bytes_group *out) OT_MUST_USE;
/* Who dequantizes v; false: nobody does. */
bool ot_group_dequantized(const ot_group_view *v, ot_id value, ot_group_origin *o);
/* The operator of a group of bytes reads operand k without its DequantizeLinear. */
bool ot_bytes_reads(const ot_node *n, uint32_t k);
/* Does a chain read bytes where it is given what DequantizeLinear at `place` makes of them? */
bool ot_group_chain_dequantizes(const ot_group_view *v, uint32_t place);
/* Result and first operand have the same elements in the same order. */
bool ot_bytes_is_view(ot_op op);
/* Domain com.microsoft. */
bool ot_bytes_is_named(const ot_node *n, const char *op_type);

/* ---- chain_group.c ---- */

typedef struct ot_group_list {
    ot_group *groups; /* [n] */
    uint32_t n;
} ot_group_list;

/* All chains of a view, in arena a; single nodes are chains, too. Each stands where its last
 * node stood: nobody outside reads what it makes before. Fails: OT_E_NOMEM. */
ot_status ot_group_chains(const ot_group_view *v, const ot_group_rules *r, ot_arena *a, ot_diag *d,
                          ot_group_list *out) OT_MUST_USE;

/* ---- engine_rules.c, device_rules.c, onnxruntime_rules.c, openvino_rules.c ---- */

/* What the engine merges, as far as the graph says: its lowering asks its kernels besides. */
extern const ot_group_rules ot_engine_rules;
/* The same on a device. */
extern const ot_group_rules ot_device_rules;
/* What OpenVINO runs as one step. */
extern const ot_group_rules ot_openvino_rules;
/* What ONNX Runtime merges into a convolution, and what others are assumed to. */
extern const ot_group_rules ot_onnxruntime_rules;
/* An activation that ONNX Runtime computes within the convolution before it. */
bool ot_onnxruntime_fuses_activation(ot_op op);
/* ---- onnxruntime_steps.c: the same and what more it does, step by step. Requires USES ---- */

/* v is known before the run: what is computed from shapes, too. */
bool ot_value_is_precomputed(const ot_graph *g, ot_id v);
/* Of a convolution, or what is folded into it: the next node that is folded into its weights (a
 * BatchNormalization, a constant factor or bias for each channel); OT_NONE. */
ot_id ot_onnxruntime_folded(const ot_graph *g, ot_id node);

/* A step, as far as it is made. */
typedef struct ot_open_conv {
    bool is_conv, has_added, has_activation; /* a convolution, and what it took in */
} ot_open_conv;
/* Which operand of n is the result of a convolution that n runs in; OT_NONE: none. by: the steps
 * that make the first two; blocked: both lie in blocks of channels. */
uint32_t ot_onnxruntime_joins(const ot_graph *g, const ot_node *n, const ot_open_conv by[2],
                              bool blocked);
/* A matrix product reads what n reads, as it lies. */
bool ot_onnxruntime_reads_through(const ot_graph *g, const ot_node *n);

/* ---- onnxruntime_replaced.c ---- */

/* Nodes that it replaces by one operator of its own (Gemm, Gelu, QuickGelu, LayerNormalization,
 * SkipLayerNormalization): (*tail)[n], in arena a, is the last node of n's group, where it runs;
 * OT_NONE: n stays as it is. Values between them are never made. Requires USES, SHAPES. Fails:
 * OT_E_NOMEM. */
ot_status ot_onnxruntime_replaced(const ot_graph *g, ot_arena *a, ot_id **tail) OT_MUST_USE;

/* ---- onnxruntime_bytes.c ---- */

/* What ONNX Runtime runs on 8-bit tensors of a graph. */
typedef struct ot_on_bytes {
    bool *nodes;  /* [n_nodes] operators that do: they read what their operands are made of */
    bool *names;  /* [n_nodes] QuantizeLinear, limits: part of the operator before them */
    bool *gone;   /* [n_nodes] DequantizeLinear whose result nobody reads then */
    bool *values; /* [n_values] float32 in the file, held with 8 bits */
} ot_on_bytes;
/* Fills x, in arena a; fuses: the runtime merges such nodes, else there are none. Requires ORDER,
 * USES. Fails: OT_E_NOMEM. */
ot_status ot_onnxruntime_on_bytes(const ot_graph *g, bool fuses, ot_arena *a,
                                  ot_on_bytes *x) OT_MUST_USE;
/* The tensor of 8 bits or less that DequantizeLinear makes v of; OT_NONE: it makes no such v. */
ot_id ot_dequantized_from(const ot_graph *g, ot_id v);

/* The engine's answer, for rules that ask more than that. ctx: not looked at. */
bool ot_engine_merges(void *ctx, const ot_group_view *v, const ot_group *group, uint32_t place,
                      ot_group_role role);

/* ---- quantized_values.c ---- */

/* A float32 value beside a quantizer: DequantizeLinear makes it, or nothing but QuantizeLinear
 * reads it. Runtimes that run what is between the two on integers hold it with their width. */
bool ot_value_beside_quantizer(const ot_graph *g, ot_id v);
/* A DequantizeLinear makes v. */
bool ot_value_is_dequantized(const ot_graph *g, ot_id v);
/* A QuantizeLinear reads v, perhaps beside others. */
bool ot_value_is_quantized(const ot_graph *g, ot_id v);

/* ---- group_facts.c: questions that recogniser and rules ask ---- */

/* Known, float32, rank at most 8, not empty. */
bool ot_group_is_f32(const ot_group_view *v, ot_id value, ot_group_shape *s);
/* The same, or float16, or bfloat16. */
bool ot_group_is_real(const ot_group_view *v, ot_id value, ot_group_shape *s);
bool ot_group_same_dims(const ot_group_view *v, ot_id a, ot_id b);
/* The place that alone reads `value`, when nothing else needs it; OT_NONE. */
uint32_t ot_group_only_reader(const ot_group_view *v, ot_id value);
/* Operand k at that place; OT_NONE: left out. */
ot_id ot_group_operand(const ot_group_view *v, uint32_t place, uint32_t k);
/* Type and dims of a value where they are known. */
bool ot_group_shape_of(const ot_group_view *v, ot_id value, ot_group_shape *s);
/* The same of operand k of a node that is not part of anything yet; is it a constant? */
bool ot_group_origin_shape(const ot_group_view *v, const ot_group_origin *o, uint32_t k,
                           ot_group_shape *s);
bool ot_group_origin_const(const ot_group_view *v, const ot_group_origin *o, uint32_t k);
/* Number of elements; 0 where they are too many to count. */
int64_t ot_group_count(const ot_group_shape *s);
static inline bool ot_group_is_byte(ot_dtype t) { return t == OT_U8 || t == OT_I8; }

#endif
