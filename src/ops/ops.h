/* Stage ops/: shapes, known contents, and the slice relation of every operator.
 *
 * SLICE RELATION. For an operator node and one axis of one of its outputs, the relation answers two
 * questions:
 *   1. ot_access_axis: when the output is cut along that axis, which axis of each input is cut
 *   along with it,
 *      and which inputs are needed whole? If cutting is not possible: why?
 *   2. ot_access_window: for a window [lo,hi) of that output axis, which window of each input is
 *   needed,
 *      which window is really produced (may be larger: alignment), and which border (pads) remains
 *      inside?
 * Axes are independent: a tile in two dimensions asks twice.
 *
 *   out axis   0....[lo     hi)....E_out          Conv k=3 s=1 p=1, E=8, out [0,4):
 *                   \       /                       in [-1,5) clamped to [0,5), pad_lo 1, pad_hi 0
 *   in axis    0..[lo'       hi')..E_in
 *
 * ot_tile_adapt then says how to write the node that computes such a tile: changed attributes
 * and replaced constant operands. The analysis is pure: no I/O, no globals, no allocation but in
 * `arena`.
 */
#ifndef OT_OPS_OPS_H
#define OT_OPS_OPS_H

#include "onnx/graph/ir.h"
#include "reasons.h"

/* ---- shape.c, shape_*.c ---- */

typedef struct ot_shape_binding {
    const char *input; /* graph input name */
    uint32_t rank;
    const int64_t *dims; /* [rank] */
    bool replace;        /* also extents that the model fixes: see other_size.c */
    const char *option;  /* that gave it, static; NULL: --shape */
} ot_shape_binding;

/* Infer dtype and shape of every value of the graph, propagate known integer contents (Shape,
 * Gather, Concat, Slice, Cast, arithmetic... on small int64/int32/bool tensors; also Constant,
 * ConstantOfShape, Range), and set value.is_const and node.is_static. Bindings give free
 * dimensions of graph inputs, also those of other inputs that have the same name (dim_param; fails
 * with OT_E_USAGE on an unknown input or a contradiction with a fixed dimension). Those that may
 * replace fixed extents make the model one for another size: nothing that the file states of
 * values which depend on them is believed, and a node with a constant that only fits the old size
 * is OT_E_USAGE; model.resized is set then. Shapes stated in the file count behind operators
 * without a rule whose operands are all known; elsewhere they may be of another size, and what
 * inference says, or does not know, stands (model.restated, model.unfollowed). Malformed operators
 * (kernel rank disagrees, negative stride, axis out of range...) are OT_E_INPUT. Linear time.
 * Establishes OT_P_SHAPES. */
ot_status ot_infer_shapes(ot_graph *g, const ot_shape_binding *bind, size_t n_bind) OT_MUST_USE;
/* OT_E_USAGE: `option` names an input that g has not; says which there are, and the nearest. */
ot_status ot_no_such_input(const ot_graph *g, const char *option, const char *name) OT_MUST_USE;

/* ---- body_shapes.c ---- */

/* Infer what the body of n is about, before it runs: its inputs have the types and shapes of what n
 * hands it, as far as that is known and the same in every iteration, and everything behind follows
 * from them as in ot_infer_shapes. What the file states of values is overruled, and is no more than
 * a guess where inference knows nothing (see is_inferred). Changes inputs and values of the body
 * only. Requires SHAPES of the graph around. Fails: OT_E_NOMEM, OT_E_INPUT (a cycle). */
ot_status ot_infer_body(const ot_graph *outer, const ot_node *n, ot_graph *body) OT_MUST_USE;
/* The body that n has as `attr`, or the function that it calls (attr NULL), read and inferred. NULL
 * in *body: it cannot be read or inferred, is nested deeper than OT_NESTING_MAX, or the model's
 * bodies, each counted as often as it is run from another place, have more than OT_BODY_NODES_MAX
 * nodes: two functions of two calls each make four, thirty 2^30. Whoever runs it says why. Lives as
 * long as the model. Requires SHAPES of g. Fails: OT_E_NOMEM. */
ot_status ot_inferred_body(const ot_graph *g, const ot_node *n, const ot_attr *attr,
                           ot_graph **body) OT_MUST_USE;
#define OT_BODY_NODES_MAX 1000000
/* Set `inner` of all nodes (body_memory.c). Requires ORDER, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_size_bodies(ot_graph *g) OT_MUST_USE;
/* May somebody who looks at what x is before he reads it rely on its type and dims? Those of inputs
 * and constants are what they are. What a node makes is sure where inference made it of sure
 * operands; and where the node's own implementation alone can make it, so that the file's word for
 * it is no more than what is compared. Requires SHAPES. */
bool ot_shape_is_sure(const ot_graph *g, const ot_value *x);
/* Does the number of inputs and outputs not fit the operator of n, or lack one that it needs? Then
 * `why` says so. */
bool ot_node_lacks(const ot_node *n, char *why, size_t size);
/* Does inference have a rule for what n makes? */
bool ot_shape_has_rule(const ot_node *n);

/* ---- tile_ops.c: the engine's operators Alloc, While, Slice, Deslice ---- */

/* Whether n is operator op_type of that domain. */
bool ot_is_tile_op(const ot_node *n, const char *op_type);
/* The engine's operators in g are as docs/engine-form.md says: operands, attributes, bodies,
 * lengths of tables, every window inside its tensor, types and shapes, no element of a buffer
 * written twice. Requires SHAPES; changes nothing. bodies: [g n_nodes] of Whiles as graphs with
 * shapes, or NULL, as the whole list may be: those are read from the model. OT_E_INPUT names
 * node, value and rule. */
ot_status ot_check_tile_ops(ot_graph *g, ot_graph *const *bodies) OT_MUST_USE;
/* In the body of a While: windows of the buffers that it is given, as it finds them, stand
 * before the first Deslice that writes where they were. Establishes ORDER, USES. Fails:
 * OT_E_NOMEM, OT_E_INPUT (a cycle). */
ot_status ot_tile_reads_first(ot_graph *body) OT_MUST_USE;
/* That order ([n_order]). a: for what it needs. Requires ORDER, USES. Fails: OT_E_NOMEM. */
ot_status ot_tile_reads_order(const ot_graph *body, ot_arena *a, ot_id *order) OT_MUST_USE;

/* ---- access.c, access_*.c ---- */

#define OT_AX_WHOLE (-1) /* this input is needed whole (or does not vary along the axis) */

typedef struct ot_win {
    int64_t lo, hi;
} ot_win; /* half-open; lo == hi: nothing needed */

/* One axis of one node in one tile. */
typedef struct ot_op_tile {
    /* in: window of the output axis that is wanted; non-empty, inside [0,extent) */
    ot_win need;
    ot_win made; /* out: window that the adapted node produces; contains `need` */
    /* out: [n_in] window of each cut input axis, inside [0,extent of that axis); entries of
     * WHOLE inputs are untouched; empty when the tile does not need that input at all (Concat,
     * Pad) */
    ot_win *in;
    /* out: border the adapted node pads itself (Conv, pools, Pad, ConvTranspose crops) */
    int64_t pad_lo, pad_hi;
    /* out: operator specific (ConvTranspose output_padding, ceil_mode flag of pools...) */
    int64_t extra;
} ot_op_tile;

/* Which input axes follow `axis` of output `out_index`. in_axis: [n->n_in], filled with an axis
 * >= 0 or OT_AX_WHOLE (also for omitted inputs); out_axis: [n->n_out], the axis of each output
 * that is cut along with it (same tile windows), or OT_AX_WHOLE when that output cannot be (then
 * the node is usable only if that output has no reader). At least one input is >= 0 on success,
 * except of operators that repeat their input along the axis (Expand, Tile). Returns false when
 * the axis cannot be cut and sets *why to a reason that a person understands (OT_WHY_SOFTMAX).
 * Requires shapes; values of unknown shape: false. Never fails otherwise. */
bool ot_access_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                    int8_t *in_axis, int8_t *out_axis, ot_why *why);

/* Is n an operator of ops.def, or one of another domain that the slice relation knows? */
bool ot_access_known(const ot_node *n);
/* Why a standard operator without a row in ops.def is never cut; OT_WHY_NONE: nothing is known. */
ot_why ot_access_extra_reason(const ot_node *n);
/* Is n FusedConv of com.microsoft, a Conv with a sum and an activation? */
bool ot_is_fused_conv(const ot_node *n);
/* Outputs that nobody reads have to be there all the same: Split counts them, others
 * are not optional. */
bool ot_makes_all_outputs(const ot_node *n);

/* A pool with ceil_mode whose last window would start in the end padding: it does not exist, but
 * older shape inference counts it. Requires shapes. */
bool ot_pool_is_odd(const ot_graph *g, const ot_node *n);

/* A Resize one of whose extents is another in single precision, which runtimes compute in, than
 * in double, which shape inference does. Requires shapes. */
bool ot_resize_is_odd(const ot_graph *g, const ot_node *n);
/* A Resize, cut along an axis, computes the same bits wherever its rows lie there: coordinates are
 * exact, or no more than choose a neighbour. Requires shapes. */
bool ot_resize_repeats(const ot_graph *g, const ot_node *n, uint32_t axis);

/* Windows for t->need. out_index/axis as above (and accepted by ot_access_axis); t->in must
 * point to [n_in] entries. Returns false when this very window cannot be made (rare: alignment
 * rules); *why says so. Constant time per input. */
bool ot_access_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                      ot_op_tile *t, ot_why *why);

/* ---- window_rule.c: the same for many windows of one node ---- */

/* One spatial axis of a convolution or pool: input extent, output extent, kernel, stride, dilation,
 * pads at both ends. All numbers are below 2^30, so products of two of them cannot overflow. */
typedef struct ot_spatial_axis {
    int64_t in, out, k, s, d, pb, pe;
} ot_spatial_axis;

typedef enum ot_window_kind {
    OT_WINDOW_ASKED,  /* ot_access_window */
    OT_WINDOW_SAME,   /* operands that follow are cut to the same window */
    OT_WINDOW_SPATIAL /* operand 0, as a convolution's */
} ot_window_kind;

/* How windows of a node along an axis of one of its outputs follow. */
typedef struct ot_window_rule {
    const ot_graph *g;
    const ot_node *n;
    uint32_t out_index, axis;
    ot_window_kind kind;
    int64_t extent;   /* of that axis */
    uint64_t follows; /* same: bit k, operand k does */
    ot_spatial_axis spatial;
} ot_window_rule;

/* out_index/axis: accepted by ot_access_axis. Of the graph and its shapes as they are. */
ot_window_rule ot_window_rule_of(const ot_graph *g, const ot_node *n, uint32_t out_index,
                                 uint32_t axis);
/* As ot_access_window. */
bool ot_window_by_rule(const ot_window_rule *r, ot_op_tile *t, ot_why *why);

/* n goes through axis `in` of operand 0 from its first row to its last, makes row by row of axis
 * `out` of output 0 of it, and hands a state from each to the next: LSTM, GRU and RNN forwards over
 * all rows, CumSum (access_batched.c). Requires shapes. */
bool ot_runs_along(const ot_graph *g, const ot_node *n, int32_t *in, int32_t *out);

/* ---- outside.c ---- */

typedef enum ot_outside_kind {
    OT_OUTSIDE_VALUE,    /* one value: of `operand`, or `number` */
    OT_OUTSIDE_LOWEST,   /* less than any other, or the least that the type has */
    OT_OUTSIDE_EDGE,     /* the first or last row */
    OT_OUTSIDE_REFLECT,  /* the rows inside, mirrored at the first or last */
    OT_OUTSIDE_LEFT_OUT, /* nothing: an average is one of fewer */
    OT_OUTSIDE_UNKNOWN
} ot_outside_kind;
typedef struct ot_outside {
    ot_outside_kind kind;
    ot_id operand; /* of VALUE: a scalar, or of one element for each channel; OT_NONE: number */
    float number;
} ot_outside;
/* What rows outside of operand 0 of n count as, where its windows reach there. */
ot_outside ot_access_outside(const ot_node *n);

/* ---- access_sum.c: reductions in parts ---- */

/* How the reductions of pieces of an input are combined to the reduction of all of it. */
typedef enum ot_sum_kind {
    OT_SUM_NONE = 0,
    OT_SUM_ADD,
    OT_SUM_MEAN,
    OT_SUM_MAX,
    OT_SUM_MIN,
    OT_SUM_L2,     /* root of the sum of squares: of the parts' roots, too */
    OT_SUM_MOMENTS /* mean and variance: docs/exactness.md */
} ot_sum_kind;

/* How n (a reduction or global pool of operand 0) is combined from parts along the axes that it
 * reduces, which are marked in `reduced`; OT_SUM_NONE: it is not. Requires shapes. */
ot_sum_kind ot_access_sum(const ot_graph *g, const ot_node *n, bool reduced[OT_RANK_MAX]);
/* Moments of x over axes [n] are of more numbers than runtimes add up one after another without
 * loss (transform/decompose/moments.c). */
bool ot_moments_are_many(const ot_value *x, const int64_t *axes, size_t n);

/* ---- cancel.c ---- */

/* Whether what n sums up (a sum or a mean) is subtracted from another sum soon after, as in
 * E[x^2] - E[x]^2: then the order in which it adds shows in the result, and it is not reduced in
 * parts. Requires USES and SHAPES. */
bool ot_sum_cancels(const ot_graph *g, const ot_node *n);

/* ---- quantised_weight.c ---- */

/* v is a constant that DequantizeLinear makes of integers of at most 8 bits. */
bool ot_is_quantised_weight(const ot_graph *g, ot_id v);
/* The same, and one node alone reads it, and each of its own operands: a runtime multiplies by the
 * integers, but for products before some Relu and Clip. Requires USES. */
bool ot_quantised_weight_alone(const ot_graph *g, ot_id v);
/* n is a Relu or Clip behind such a product: in tiles others may read either, and the product
 * would be one of floats. */
bool ot_limits_quantised(const ot_graph *g, const ot_node *n);
/* n is a product by such a weight in half precision: a quirk where it is in a subgraph. */
bool ot_is_half_quantised(const ot_graph *g, const ot_node *n);
bool ot_has_half_quantised(const ot_graph *g);
/* n is a product whose operand 1 is such a constant, and whose operand 0 is not quantised: a
 * runtime multiplies by the integers where nobody else reads what DequantizeLinear makes. */
bool ot_is_quantised_product(const ot_graph *g, const ot_node *n);

/* ---- adapt.c, adapt_*.c: the node that computes a tile ---- */

/* One cut axis of the node. */
typedef struct ot_tile_axis {
    uint32_t out_index, axis; /* as given to ot_access_axis */
    const ot_op_tile *tile;
} ot_tile_axis;

/* What replaces a constant operand of the node. */
typedef struct ot_operand {
    /* operand number (may be >= the node's n_in: then it is appended, gaps omitted) */
    uint32_t input;
    bool omit;               /* leave the operand out ("" in ONNX) */
    const ot_tensor *tensor; /* new constant contents */
} ot_operand;

typedef enum ot_adapt_kind {
    OT_ADAPT_CLONE, /* same operator, with attrs and operands below */
    /* the tile of input `forward` is the result as it is (Concat of one piece, Pad of nothing...);
     * no node is needed */
    OT_ADAPT_FORWARD
} ot_adapt_kind;

typedef struct ot_adapted {
    ot_adapt_kind kind;
    uint32_t forward; /* operand number for OT_ADAPT_FORWARD */
    /* another operator of domain "", at the model's opset; NULL: the node's own */
    const char *op_type;
    const ot_attr *attrs; /* [n_attrs] complete attribute list of the new node */
    uint32_t n_attrs;
    /* [n_operands] changes to operands; others stay (with tiles where cut) */
    const ot_operand *operands;
    uint32_t n_operands;
    /* [n_in] operands to leave out entirely, shifting the rest (Concat pieces with an empty
     * window) */
    bool *drop;
} ot_adapted;

/* How to write node n for a tile cut along axes[0..n_axes). Data is allocated in `arena`. The
 * shapes of the adapted node's inputs are: extents in[k].hi-in[k].lo on cut axes, the original
 * extents elsewhere; its outputs: made.hi-made.lo on cut axes, the original elsewhere.
 * Attributes that do not change are shared with the original node. With n_axes > 0 and every
 * window full this returns a plain clone. OT_E_NOMEM is the only failure. */
ot_status ot_tile_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                        uint32_t n_axes, ot_arena *arena, ot_adapted *out) OT_MUST_USE;
/* Operands that the adapted node may have, of a node with n_in. */
static inline uint32_t ot_adapted_room(const ot_adapted *a, uint32_t n_in)
{
    uint32_t all = n_in;
    for (uint32_t k = 0; k < a->n_operands; k++)
        if (a->operands[k].input >= all) all = a->operands[k].input + 1;
    return all;
}
/* What changes of operand j; NULL: nothing. */
static inline const ot_operand *ot_adapted_operand(const ot_adapted *a, uint32_t j)
{
    for (uint32_t k = 0; k < a->n_operands; k++)
        if (a->operands[k].input == j) return &a->operands[k];
    return NULL;
}

/* Multiply-accumulates of the whole node (Conv, ConvTranspose, MatMul, Gemm, Attention: exact;
 * others: elements touched); 0 when shapes are unknown. */
double ot_node_macs(const ot_graph *g, const ot_node *n);

/* ---- known_tensor.c ---- */

/* The known contents of v (integers of 64 or 32 bits, bool, known_floats) as a tensor of its
 * type and shape, in the arena. NULL: no memory. */
const ot_tensor *ot_known_tensor(ot_arena *arena, const ot_value *v);

/* ---- largest.c ---- */

/* Tensors that nodes make, those in bodies of the rewriter (or .ot text) included; not inputs,
 * constants, sequences. */
typedef struct ot_largest {
    int64_t bytes;      /* of the largest; 0: there is none */
    const char *value;  /* its name, the graph's; NULL: there is none */
    uint32_t n_unknown; /* whose size is not known: not counted */
} ot_largest;
/* Requires SHAPES. */
ot_largest ot_largest_tensor(const ot_graph *g);

/* ---- static_nodes.c ---- */

/* Whether rewriting can replace the static node by a constant: then its reading a value does not
 * keep that alive. */
bool ot_static_foldable(const ot_graph *g, const ot_node *n);

#endif
