/* Private to shape_*.c and known*.c: what an operator's shape rule sees and fills.
 *
 *   driver (shape.c)  --- for each node in order --->  rule (shape_window.c, shape_move.c, ...)
 *        |                                                 reads input shapes and contents,
 *        |  merge with the stated shape, store             fills c->out[]
 *        v
 *   known.c: contents of small integer (and float) outputs, element by element
 *
 * A rule leaves an output untouched when it cannot say anything: every output starts with an
 * unknown type and an unknown rank.
 */
#ifndef OT_OPS_SHAPE_H
#define OT_OPS_SHAPE_H

#include "ops.h"

/* larger extents are refused: products of two stay far from overflow */
#define OT_SHAPE_DIM_MAX  ((int64_t)1 << 48)
#define OT_SHAPE_ATTR_MAX ((int64_t)1 << 31) /* largest kernel, stride, dilation, pad */
/* most elements of a float value whose contents we track */
#define OT_KNOWN_FLOAT_MAX 256

/* An inferred shape: dims beyond rank are meaningless; OT_DIM_UNKNOWN where not known. */
typedef struct ot_shp {
    ot_dtype dtype;
    int32_t rank; /* -1 unknown */
    int64_t d[OT_RANK_MAX];
} ot_shp;

/* Contents of a small value, possibly with holes (the batch of Shape(x) when it is free).
 * Exactly one of i and f is set when valid. Row-major in the value's own shape. */
typedef struct ot_known {
    uint32_t n;
    bool valid;
    const int64_t *i; /* [n] integers and booleans; NULL for floats */
    const double *f;  /* [n] floats, rounded to the value's own precision; NULL for integers */
    const bool *ok;   /* [n] which elements are known; NULL: all */
} ot_known;

/* State of one run of shape inference over one graph. */
typedef struct ot_infer {
    ot_graph *g;
    ot_arena *scratch; /* freed at the end of the run */
    ot_arena *keep;    /* the model's arena: `known` arrays that outlive the run */
    ot_known *known;   /* [n_values] */
    /* [n_values] some part of the shape comes from what the file states */
    bool *inexact;
    /* the caller gave bindings: stated shapes may be for other sizes */
    bool bound;
    /* a body of the file: a node that breaks a rule is no error, its outputs are unknown, and
     * whoever runs it says so */
    bool lenient;
    int64_t spent; /* elements evaluated so far by known.c */
    /* other_size.h: inputs have other extents than the file says; NULL: they have not */
    struct ot_other_size *other;
    const ot_node *n; /* node being inferred */
    bool exact;       /* no input of n is inexact: a violated rule is an error */
    bool sure;        /* n has a rule, and all its inputs are sure (ot_shape_is_sure) */
    bool impossible;  /* n's rule is violated: by what it takes, or by what is stated of that */
    ot_shp *out;      /* [cap_out] results, first n->n_out valid */
    uint32_t cap_out;
} ot_infer;

/* A shape rule: OT_OK, or OT_E_INPUT through ot_shape_fail, or OT_E_NOMEM. */
typedef ot_status (*ot_shape_rule)(ot_infer *c);

/* ---- shape_rules.c: the table, and helpers for rules ---- */

ot_shape_rule ot_shape_rule_of(ot_op op); /* NULL: outputs as stated */
/* shape_extra.c: a rule for some operators that are not in ops.def, or NULL. Never exact. */
ot_shape_rule ot_shape_extra_rule(const ot_node *n);

/* "node 'x' (Conv)", or "node making 'y' (Conv)" when it has no name, into buf; returns buf. */
char *ot_shape_node_text(const ot_infer *c, char *buf, size_t n);
/* Report "node 'x' (Conv): ..." as OT_E_INPUT. Where the node's inputs rest on stated (maybe stale)
 * shapes nothing is reported; the driver then leaves the outputs unknown. */
ot_status ot_shape_fail(ot_infer *c, const char *fmt, ...) OT_PRINTF(2, 3) OT_MUST_USE;
#ifdef __clang_analyzer__ /* see ot_fail */
#define ot_shape_fail(c, ...) ((void)!ot_shape_fail(c, __VA_ARGS__), OT_E_INPUT)
#endif
/* Input k, or NULL when it is omitted. */
const ot_value *ot_shape_in(const ot_infer *c, uint32_t k);
/* Same, NULL also when its rank is unknown. */
const ot_value *ot_shape_ranked(const ot_infer *c, uint32_t k);
/* Contents of input k (maybe with holes), or NULL. */
const ot_known *ot_shape_known(const ot_infer *c, uint32_t k);
/* Contents of input k as integers without holes, or NULL. */
const int64_t *ot_shape_ints(const ot_infer *c, uint32_t k, size_t *n);
/* The single integer in input k; false when not known. */
bool ot_shape_int(const ot_infer *c, uint32_t k, int64_t *out);
ot_dtype ot_shape_dtype(const ot_infer *c, uint32_t k); /* UNKNOWN when omitted */
/* Set output k; ignored when the node has fewer outputs. d NULL: all dims unknown. */
void ot_shape_set(ot_infer *c, uint32_t k, ot_dtype t, int32_t rank, const int64_t *d);
void ot_shape_set_type(ot_infer *c, uint32_t k, ot_dtype t);
/* Output k has the shape of v (maybe NULL) and type t. */
void ot_shape_set_like(ot_infer *c, uint32_t k, ot_dtype t, const ot_value *v);
/* axis in [-rank, rank) to [0, rank); fails naming the attribute or input `what`. */
ot_status ot_shape_axis(ot_infer *c, const char *what, int64_t axis, int32_t rank,
                        uint32_t *out) OT_MUST_USE;
/* Same for a list: mask[k] = named. Duplicates fail. */
ot_status ot_shape_axes(ot_infer *c, const char *what, const int64_t *axes, size_t n, int32_t rank,
                        bool mask[OT_RANK_MAX]) OT_MUST_USE;
/* Axes given as attribute (older versions) or as input k (newer). *given: any present; *axes NULL
 * with *given: contents unknown (then *n is their count, or SIZE_MAX when even that is unknown). */
void ot_shape_axes_of(const ot_infer *c, const char *attr, uint32_t k, bool *given,
                      const int64_t **axes, size_t *n);
/* Numpy broadcast of b into a (both of known rank). false when they do not fit. */
bool ot_shape_broadcast(ot_shp *a, int32_t rank, const int64_t *d);
/* Merge two claims about one dim: the known one; false on contradiction. */
bool ot_shape_merge(int64_t *a, int64_t b);

/* Elements that Slice takes of an axis of extent dim >= 0 with step != 0; *first is the first of
 * them. */
int64_t ot_shape_slice_range(int64_t dim, int64_t start, int64_t end, int64_t step, int64_t *first);

/* ---- shape.c ---- */

/* Shape inference of a top graph; other: see ot_infer. Bindings replace what inputs say where
 * that is not NULL. */
ot_status ot_infer_sized(ot_graph *g, const ot_shape_binding *bind, size_t n_bind,
                         struct ot_other_size *other) OT_MUST_USE;

/* Shape inference of a body whose inputs are set: what the file states otherwise is overruled
 * where inference knows better, and a node that breaks a rule leaves its outputs unknown. */
ot_status ot_infer_lenient(ot_graph *g) OT_MUST_USE;

/* Outputs of an If, Loop or Scan of the file, or of a call of a function, as far as its bodies say
 * (shape_branches.c). Sets c->sure where c->lenient. */
void ot_shape_branches(ot_infer *c);

/* ---- rules by file ---- */

#define OT_RULE(name) ot_status ot_shape_##name(ot_infer *c) OT_MUST_USE
/* shape_window.c */
OT_RULE(conv);
OT_RULE(conv_transpose);
OT_RULE(pool);
OT_RULE(global_pool);
OT_RULE(max_unpool);
OT_RULE(roi_align);
OT_RULE(grid_sample);
OT_RULE(depth_to_space);
OT_RULE(space_to_depth);
/* shape_move.c; [start, end) of Shape (opset 15), clamped */
void ot_shape_shape_range(const ot_node *n, int32_t rank, int32_t *start, int32_t *end);
OT_RULE(reshape);
OT_RULE(flatten);
OT_RULE(squeeze);
OT_RULE(unsqueeze);
OT_RULE(transpose);
OT_RULE(concat);
OT_RULE(split);
OT_RULE(expand);
OT_RULE(tile);
OT_RULE(shape);
OT_RULE(size);
OT_RULE(constant);
OT_RULE(constant_of_shape);
OT_RULE(range);
OT_RULE(eye_like);
/* shape_index.c */
OT_RULE(slice);
OT_RULE(crop);
OT_RULE(pad);
OT_RULE(gather);
OT_RULE(gather_rows);
OT_RULE(gather_elements);
OT_RULE(gather_nd);
OT_RULE(one_hot);
OT_RULE(top_k);
OT_RULE(non_zero);
OT_RULE(compress);
OT_RULE(unique);
OT_RULE(nms);
/* shape_resize.c */
OT_RULE(resize);
/* shape_math.c */
OT_RULE(same);
OT_RULE(pointwise);
OT_RULE(pointwise_bool);
OT_RULE(alike);
OT_RULE(cast);
OT_RULE(dropout);
OT_RULE(batch_norm);
OT_RULE(instance_norm);
OT_RULE(layer_norm);
OT_RULE(softmax);
OT_RULE(reduce);
OT_RULE(arg_reduce);
OT_RULE(moments);
OT_RULE(norm_factors);
OT_RULE(matmul);
OT_RULE(gemm);
OT_RULE(quantize);
OT_RULE(dequantize);
OT_RULE(det);
/* shape_seq.c */
OT_RULE(einsum);
OT_RULE(attention);
OT_RULE(recurrent);

/* shape_image.c */
OT_RULE(max_roi_pool);
OT_RULE(col2im);
OT_RULE(affine_grid);
OT_RULE(center_crop_pad);
OT_RULE(bit_cast);
OT_RULE(loss);
OT_RULE(causal_conv);
OT_RULE(linear_attention);
OT_RULE(flex_attention);
/* tile_ops.c */
OT_RULE(tile_alloc);
OT_RULE(tile_while);
OT_RULE(tile_slice);
OT_RULE(tile_deslice);

/* ---- known.c, known_arith.c, known_move.c ---- */

/* Contents of a small constant tensor into k (k->valid stays false when it is not small). false: no
 * memory. */
bool ot_known_of_tensor(ot_infer *c, const ot_tensor *t, ot_known *k) OT_MUST_USE;
/* Contents of the outputs of c->n, whose shapes are already stored. OT_E_NOMEM is the only failure.
 */
ot_status ot_known_propagate(ot_infer *c) OT_MUST_USE;

/* Contents under construction: n elements, all unknown at first. */
typedef struct ot_known_buf {
    uint32_t n;
    int64_t *i; /* [n] or NULL */
    double *f;  /* [n] or NULL */
    bool *ok;   /* [n] */
} ot_known_buf;

/* Element e of k is known. */
static inline bool ot_known_has(const ot_known *k, uint32_t e) { return k->ok == NULL || k->ok[e]; }
bool ot_known_is_float(ot_dtype t); /* a float type whose contents we track */
/* an integer type whose contents we track (bool included) */
bool ot_known_is_int(ot_dtype t);
bool ot_known_fits(ot_dtype t, int64_t v); /* v fits the integer type t */
/* Set element e when the value fits type t (else it stays unknown). */
void ot_known_set_int(ot_known_buf *b, ot_dtype t, uint32_t e, int64_t v);
void ot_known_set_float(ot_known_buf *b, ot_dtype t, uint32_t e, double v);
/* Same for what arithmetic made: of 16 bits only results that need no rounding (runtimes differ).
 */
void ot_known_set_result(ot_known_buf *b, ot_dtype t, uint32_t e, double v);
/* v as type t holds it: rounded to nearest even; infinite beyond its range. t: ot_known_is_float.
 */
double ot_known_round(ot_dtype t, double v);
/* Copy element s of k to element e of b, both integers or both floats. */
void ot_known_copy(ot_known_buf *b, uint32_t e, const ot_known *k, uint32_t s);
/* Element number <-> coordinates in the static shape of v. */
void ot_known_unravel(const ot_value *v, uint32_t e, int64_t at[OT_RANK_MAX]);
uint32_t ot_known_ravel(const ot_value *v, const int64_t *at);
/* Element of `in` that element e of `out` reads when `in` is broadcast to it. */
uint32_t ot_known_broadcast(const ot_value *out, const ot_value *in, uint32_t e);

/* Fill b for output k (value v, static shape of b->n elements); false: this operator or these
 * inputs cannot be evaluated. Integer arithmetic that overflows leaves the element unknown. */
bool ot_known_arith(ot_infer *c, uint32_t k, const ot_value *v, ot_known_buf *b);
bool ot_known_move(ot_infer *c, uint32_t k, const ot_value *v, ot_known_buf *b);

#endif
