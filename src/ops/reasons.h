/* Why something is not tiled: ids in place of sentences.
 *
 *   OT_WHY_SOFTMAX --name--> "softmax" (reports, JSON)
 *                  --sentence--> "Softmax needs its whole axis"
 *                  --lift--> what would make it possible
 *
 * Names, sentences and lifts are in reasons.def, which reasons.c alone includes: a changed
 * sentence compiles one file. A new reason is an id here and a row there.
 */
#ifndef OT_OPS_REASONS_H
#define OT_OPS_REASONS_H

#include "base/base.h"

typedef enum ot_why {
    OT_WHY_NONE = 0, /* nothing is in the way */
    /* access.c: what every operator is asked first */
    OT_WHY_UNKNOWN_TO_TOOL,
    OT_WHY_SUBGRAPH,
    OT_WHY_MAKES_SHAPES,
    OT_WHY_NEEDS_ALL,
    OT_WHY_SHAPE_UNKNOWN,
    OT_WHY_NO_OUTPUT_AXIS,
    OT_WHY_NOT_ALONG_AXIS,
    OT_WHY_NO_INPUT_VARIES,
    OT_WHY_NO_WINDOW,
    OT_WHY_WINDOW_OUTSIDE,
    OT_WHY_EMPTY_OPERAND,
    OT_WHY_TOO_MANY_OPERANDS,
    OT_WHY_INPUT_MISSING,
    OT_WHY_IN_OUT_DIFFER,
    OT_WHY_RANKS_DIFFER,
    OT_WHY_ELEMENTS_DIFFER,
    OT_WHY_BATCH_DIFFERS,
    OT_WHY_CHANNELS_DIFFER,
    OT_WHY_AXIS_RANGE,
    OT_WHY_INDEXED,
    OT_WHY_WORKED_ALONG,
    OT_WHY_DEFORMED,
    /* windows in space: convolutions and pools */
    OT_WHY_NO_SPATIAL_AXIS,
    OT_WHY_MANY_SPATIAL_AXES,
    OT_WHY_WEIGHTS_RANK,
    OT_WHY_KERNEL_RANGE,
    OT_WHY_AUTO_PAD_UNKNOWN,
    OT_WHY_SPATIAL_PADS_COUNT,
    OT_WHY_SPATIAL_PADS_RANGE,
    OT_WHY_AXIS_IN_PADDING,
    OT_WHY_WINDOW_EMPTY,
    OT_WHY_KERNEL_EXTENT,
    OT_WHY_CONV_CHANNELS,
    OT_WHY_CONVT_SHAPE,
    OT_WHY_CONVT_PADDING_COUNT,
    OT_WHY_CONVT_PADDING_RANGE,
    OT_WHY_CONVT_GAPS,
    OT_WHY_CONVT_NO_INPUT,
    OT_WHY_CONVT_CROP,
    OT_WHY_POOL_SAME,
    OT_WHY_POOL_LAST_WINDOW,
    OT_WHY_POOL_PADS,
    OT_WHY_POOL_INDICES,
    OT_WHY_POOL_AFTER_PAD,
    OT_WHY_GLOBAL_POOL_NO_AXIS,
    OT_WHY_GLOBAL_POOL_EXTENT,
    OT_WHY_CHANNELS_LAST,
    /* products */
    OT_WHY_MATMUL_OPERAND,
    OT_WHY_MATMUL_RANKS,
    OT_WHY_MATMUL_NO_OPERAND,
    OT_WHY_GEMM_NO_MATRIX,
    OT_WHY_EINSUM_ELLIPSIS,
    OT_WHY_EINSUM_DIAGONAL,
    OT_WHY_EINSUM_MALFORMED,
    OT_WHY_EINSUM_OPERANDS,
    OT_WHY_EINSUM_MISSING,
    OT_WHY_EINSUM_RESULT,
    OT_WHY_EINSUM_NO_OPERAND,
    OT_WHY_ATTENTION_OPERAND,
    OT_WHY_ATTENTION_RANK,
    OT_WHY_ATTENTION_CACHE,
    OT_WHY_ATTENTION_OUTPUTS,
    OT_WHY_ATTENTION_WIDTH,
    OT_WHY_ATTENTION_CAUSAL,
    OT_WHY_ATTENTION_GROUPS,
    OT_WHY_ATTENTION_DISAGREE,
    OT_WHY_ATTENTION_LENGTHS,
    OT_WHY_ATTENTION_KEYS,
    /* element by element, normalisations, reductions */
    OT_WHY_NO_BROADCAST,
    OT_WHY_NO_OPERAND_VARIES,
    OT_WHY_DROPOUT_TRAINING,
    OT_WHY_EXPERIMENTAL,
    OT_WHY_SCALER_CHANNELS,
    OT_WHY_BATCH_NORM_TRAINING,
    OT_WHY_BATCH_NORM_SPATIAL,
    OT_WHY_BATCH_NORM_STATISTICS,
    OT_WHY_INSTANCE_NORM,
    OT_WHY_INSTANCE_NORM_SCALE,
    OT_WHY_LAYER_NORM,
    OT_WHY_MVN_OPSET,
    OT_WHY_MVN,
    OT_WHY_NORM_AXIS_RANGE,
    OT_WHY_GROUP_NORM,
    OT_WHY_LP_NORM,
    OT_WHY_LRN,
    OT_WHY_SOFTMAX_OPSET,
    OT_WHY_SOFTMAX,
    OT_WHY_QUANT_BLOCKS,
    OT_WHY_QUANT_SCALE,
    OT_WHY_QUANT_ONE,
    OT_WHY_REDUCE_AXES_RUNTIME,
    OT_WHY_REDUCE_AXES_RANGE,
    OT_WHY_REDUCE,
    OT_WHY_CUMSUM_AXIS_RUNTIME,
    OT_WHY_CUMSUM_AXIS_RANGE,
    OT_WHY_CUMSUM,
    /* movement */
    OT_WHY_BLOCK_SIZE,
    OT_WHY_BLOCK_CHANNELS,
    OT_WHY_PAD_RANK,
    OT_WHY_PAD_VERSION,
    OT_WHY_PAD_MODE,
    OT_WHY_PAD_AXES,
    OT_WHY_PAD_NOT_CONSTANT,
    OT_WHY_PAD_COUNT,
    OT_WHY_PAD_EXTENT,
    OT_WHY_PAD_BEFORE_POOL,
    OT_WHY_PAD_WRAP,
    OT_WHY_PAD_NEGATIVE_BORDER,
    OT_WHY_PAD_REFLECT,
    OT_WHY_PAD_NOTHING_LEFT,
    OT_WHY_EXTENT_ONE,
    OT_WHY_RESHAPE_INNER,
    OT_WHY_EXPAND_BROADCAST,
    OT_WHY_TRANSPOSE_PERM,
    OT_WHY_SPLIT_AXIS,
    OT_WHY_CONCAT_OPERAND,
    OT_WHY_CONCAT_DIFFER,
    OT_WHY_CONCAT_OVERFLOW,
    OT_WHY_CONCAT_SUM,
    OT_WHY_GATHER_RANKS,
    OT_WHY_TILE_OPSET,
    OT_WHY_SLICE_RANK,
    OT_WHY_SLICE_AXES_RUNTIME,
    OT_WHY_SLICE_BOUNDS_RUNTIME,
    OT_WHY_SLICE_AXES_COUNT,
    OT_WHY_SLICE_AXES_WRONG,
    OT_WHY_SLICE_STEP_ZERO,
    OT_WHY_SLICE_BACKWARDS,
    OT_WHY_SLICE_EXTENT,
    OT_WHY_RESIZE_MODE,
    OT_WHY_RESIZE_RANK,
    OT_WHY_RESIZE_AXES,
    OT_WHY_RESIZE_RUNTIME,
    OT_WHY_RESIZE_COUNT,
    OT_WHY_RESIZE_EXTENT,
    OT_WHY_RESIZE_LENGTH,
    OT_WHY_RESIZE_RATIO,
    OT_WHY_RESIZE_SCALE,
    OT_WHY_RESIZE_CORNERS,
    OT_WHY_RESIZE_CROP,
    OT_WHY_RESIZE_ASPECT,
    OT_WHY_RESIZE_ANTIALIAS,
    OT_WHY_RESIZE_CUBIC,
    OT_WHY_RESIZE_SYMMETRIC,
    OT_WHY_RESIZE_PYTORCH_ONE,
    OT_WHY_RESIZE_BELOW,
    OT_WHY_RESIZE_SAME_EXTENT,
    OT_WHY_RESIZE_TF,
    OT_WHY_RESIZE_NEIGHBOURS,
    OT_WHY_RESIZE_ROUNDING,
    OT_WHY_RESIZE_SPECIAL,
    OT_WHY_RESIZE_WINDOW,
    /* ops/dynamic_cut.c, tiling/dynamic_tiles.c: with dynamic dimensions */
    OT_WHY_DYNAMIC_OPERATOR,
    OT_WHY_DYNAMIC_BROADCAST,
    OT_WHY_DYNAMIC_AUTO_PAD,
    OT_WHY_DYNAMIC_FIXED,
    OT_WHY_DYNAMIC_SCALE,
    OT_WHY_DYNAMIC_BORDER,
    OT_WHY_DYNAMIC_FORM,
    OT_WHY_DYNAMIC_STEP,
    /* tiling/barrier.c: nodes that no region contains */
    OT_WHY_KEPT_CONTROL_FLOW,
    OT_WHY_OTHER_DOMAIN,
    OT_WHY_OLD_OPSET,
    OT_WHY_UNKNOWN_OPERATOR,
    OT_WHY_NO_TENSOR,
    OT_WHY_INPUT_SHAPE,
    OT_WHY_OUTPUT_SHAPE,
    OT_WHY_LOCAL_FUNCTION,
    OT_WHY_TILED_ALREADY,
    OT_WHY_CONTROL_FLOW,
    OT_WHY_NOT_CUT,
    OT_WHY_WHOLE_INPUT,
    OT_WHY_ODD_SHAPES,
    OT_WHY_ALL_ONES,
    OT_WHY_GLOBAL_POOL_ONE,
    OT_WHY_REDUCES_ALL,
    OT_WHY_GLOBAL_POOL,
    /* region/: tilings that have no form */
    OT_WHY_TYPE_SLICE,
    OT_WHY_TYPE_CONCAT,
    OT_WHY_TYPE_RESHAPE,
    OT_WHY_TYPE_TRANSPOSE,
    OT_WHY_TYPE_LOOP,
    OT_WHY_TYPE_SEQUENCE,
    OT_WHY_TYPE_WHILE,
    OT_WHY_CAPTURED_QUANT,
    OT_WHY_TILE_KINDS,
    OT_WHY_SCAN_TILES_DIFFER,
    OT_WHY_NO_TILE_DIMENSION,
    OT_WHY_RESHAPE_OPSET,
    OT_WHY_TILE_COUNT,
    OT_WHY_VALUE_UNKNOWN,
    OT_WHY_OUTPUT_UNCUT,
    OT_WHY_SAME_AXIS_TWICE,
    OT_WHY_VALUE_RANK,
    OT_WHY_MANY_STARTS,
    OT_WHY_MANY_NODES,
    OT_WHY_NONE_ALIKE,
    OT_WHY_STREAM_ONE_AXIS,
    OT_WHY_STREAM_WHOLE,
    OT_WHY_STREAM_ROWS,
    OT_WHY_STREAM_SEQUENCE,
    OT_WHY_NO_FORM,
    OT_WHY_SCAN_OPSET,
    OT_WHY_PARTS_FORM,
    OT_WHY_PARTS_CUT,
    OT_WHY_SCAN_OUTPUT,
    OT_WHY_SCAN_INPUT,
    OT_WHY_READ_WHOLE,
    OT_WHY_RUNS_NO_LOOP,
    OT_WHY_RUNS_NO_SEQUENCE,
    OT_WHY_RUNS_NO_SCAN,
    OT_WHY_RUNS_NO_SCAN_CAPTURE,
    OT_WHY_RUNS_NO_SCAN_AXES,
    OT_WHY_RUNS_NO_MOVING_GATHER,
    OT_WHY_RUNS_NO_GROUP_NORM,
    OT_WHY_RUNS_NO_UNEVEN_POOL,
    OT_WHY_RUNS_NO_LONG_SUM,
    OT_WHY_OUTPUT_BESIDE,
    OT_WHY_NO_SHARE,
    /* plan/: groups that could be tiled and are not, and nodes where a region ends */
    OT_WHY_NO_EXACT_FORM,
    OT_WHY_NO_FORM_OF_RUNTIME,
    OT_WHY_NO_FORM_FITS,
    OT_WHY_LOSES,
    OT_WHY_PEAK_WITHIN_SLOWDOWN,
    OT_WHY_NOT_FASTER,
    OT_WHY_POOL_ENDS_ENGINE,
    OT_WHY_POOL_ENDS,
    OT_WHY_WHOLE_ENDS_ENGINE,
    OT_WHY_WHOLE_ENDS,
    OT_WHY_SUM_CANCELS,
    OT_WHY_TENSOR_LIMIT,
    OT_WHY_GROWTH,
    OT_WHY_PEAK,
    /* report/facts/facts_explain.c: why a tensor is whole that no node above explains */
    OT_WHY_MODEL_OUTPUT,
    OT_WHY_READ_LATER,
    OT_WHY_REGION_ENDS,
    OT_WHYS /* how many there are, this and OT_WHY_NONE included */
} ot_why;

/* Options of the tool that may help against a reason. Whether one does is tried. */
enum {
    OT_CURE_MEMORY = 1u << 0,   /* another goal: memory */
    OT_CURE_SLOWDOWN = 1u << 1, /* with that goal, more time */
    OT_CURE_ENGINE = 1u << 2,   /* the engine's operators, which have forms for more tilings */
    OT_CURE_RUNTIME = 1u << 3,  /* onnxruntime, which runs more forms than other runtimes */
    OT_CURE_SIZE = 1u << 4      /* one size in place of dynamic dimensions */
};

/* A reason with what it counts: a value, so that it outlives graph and plan. */
typedef struct ot_reason {
    ot_why why;
    double seconds; /* of rows with {ms}; else 0 */
} ot_reason;

/* All static, "" for OT_WHY_NONE. The name is what scripts see: "softmax". The sentence is as in
 * the table: a {ms} is left. */
const char *ot_reason_name(ot_why why);
const char *ot_reason_sentence(ot_why why);
/* What change of the model would lift it; "" when none would. */
const char *ot_reason_lift(ot_why why);
/* OT_CURE_* bits: the options that may help where it is in the way. */
unsigned ot_reason_cures(ot_why why);
/* The sentence with its number, static or in a; NULL when memory ran out. */
const char *ot_reason_text(ot_arena *a, ot_reason r);
/* The reason of that name; OT_WHY_NONE when there is none. */
ot_why ot_reason_find(const char *name);

#endif
