/* Models for more than one runtime on CPUs with caches: what is written is what all of them take.
 *
 *   portable   tiles written out, so many at most, or a Scan over the outermost axis whose body
 *              reads nothing from outside
 *   loop       tiles written out, or a Loop; neither Scan nor sequences: MNN, OpenCV's dnn module,
 *              TensorRT
 *
 * Tiles that are written out are taken to fit each other's places; stage select/ simulates what
 * ONNX Runtime makes of them.
 *
 * What follows from the operators themselves is that of ONNX Runtime, whose figures are the ones
 * that were measured; what one runtime does better than another is not counted on.
 */
#include "runtime_tables.h"

static const ot_op_factor SLOW[] = {
    {OT_OP_PRelu, NULL, 2},           {OT_OP_Erf, NULL, 1.5},         {OT_OP_Pow, NULL, 3},
    {OT_OP_Resize, "nearest", 1.6},   {OT_OP_Resize, "linear", 12},   {OT_OP_Resize, NULL, 50},
    {OT_OP_Upsample, "nearest", 1.6}, {OT_OP_Upsample, "linear", 12},
};
static const ot_few_channels FEW[] = {{8, 0.45}, {24, 0.7}, {48, 0.92}};
static const ot_op MAKES[] = {OT_OP_Conv};
static const ot_op KEEPS[] = {OT_OP_MaxPool,       OT_OP_AveragePool, OT_OP_GlobalAveragePool,
                              OT_OP_GlobalMaxPool, OT_OP_Add,         OT_OP_Concat,
                              OT_OP_Relu,          OT_OP_Clip};

/* As ot_standard_prices: loop has bounds and Slice, a Concat with the border tiles, which are
 * written out. Tiles that are written out fit each other's places. */
static const ot_form_price PRICES[OT_FORM_COUNT] = {
    [OT_FORM_SCAN] = {.loops = true, .outputs = 1, .outputs_grid = 1},
    [OT_FORM_UNROLLED] = {.copies = true,
                          .nodes = 1,
                          .reassemble = 2,
                          .scattered = 2,
                          .outputs = 2,
                          .outputs_scattered = 2,
                          .outputs_grid = 2,
                          .tiles = 1,
                          .tiles_grid = 1},
    [OT_FORM_LOOP] = {.copies = true,
                      .nodes = 4,
                      .loops = true,
                      .reassemble = 3,
                      .scattered = 5,
                      .outputs = 2,
                      .outputs_scattered = 3,
                      .outputs_grid = 3,
                      .tiles_grid = 2},
};

#define ANYWHERE                                                                                \
    .bit = OT_BY_ALL, .merges = &ot_onnxruntime_rules, .int8_groups = true, .int8_width = true, \
    .slow = SLOW, .n_slow = sizeof SLOW / sizeof *SLOW,                                         \
    .conv = {.block = 16,                                                                       \
             .few = FEW,                                                                        \
             .n_few = sizeof FEW / sizeof *FEW,                                                 \
             .transposed = OT_TRANSPOSED_COLUMNS,                                               \
             .transposed_part = 0.6},                                                           \
    .overlap = 0.35,                                                                            \
    .blocks = {.has_blocks = true,                                                              \
               .makes = MAKES,                                                                  \
               .n_makes = sizeof MAKES / sizeof *MAKES,                                         \
               .keeps = KEEPS,                                                                  \
               .n_keeps = sizeof KEEPS / sizeof *KEEPS,                                         \
               .least = 8,                                                                      \
               .into = 2.5,                                                                     \
               .out_of = 2,                                                                     \
               .copies = 0.5,                                                                   \
               .border_into = 2,                                                                \
               .border_out_of = 2,                                                              \
               .crop = 2,                                                                       \
               .crop_blocked = 6,                                                               \
               .crop_readers = true},                                                           \
    .packing = OT_PACK_SLOW, .run_seconds = 80e-9, .weights_seen = 0.3,                         \
    .overheads = &ot_onnxruntime_overheads, .motion = OT_MOTION_COPIED, .price = PRICES,        \
    .chunk_arena = true, .slices_apart = true, .in_place = true,                                \
    .overwriters = ot_onnxruntime_overwriters, .n_overwriters = OT_ONNXRUNTIME_OVERWRITERS,     \
    .scratch = ot_onnxruntime_scratch, .n_scratch = OT_ONNXRUNTIME_SCRATCH, .recompute = 5,     \
    .recompute_forced = 64, .doubt = 1.04, .short_rows = 1.02, .margins = OT_CHUNK_MARGINS

const ot_runtime ot_runtime_loop = {
    ANYWHERE,
    .name = "loop",
    .title = "a runtime that takes Loop",
    .summary = "runtimes that take Loop, and neither Scan nor sequences: MNN, OpenCV, TensorRT",
    .forms = OT_FORM_BIT(OT_FORM_UNROLLED) | OT_FORM_BIT(OT_FORM_LOOP),
    .cannot = OT_NEEDS_SEQUENCE | OT_NEEDS_SCAN | OT_NEEDS_SCAN_CAPTURE | OT_NEEDS_SCAN_AXES |
              OT_NEEDS_MOVING_GATHER | OT_NEEDS_UNEVEN_POOL | OT_NEEDS_LONG_SUM,
    .looped_borders = true,
    .written_most = 32};
const ot_runtime ot_runtime_portable = {
    ANYWHERE,
    .name = "portable",
    .title = "any runtime",
    .summary = "any runtime: tiles written out, or a Scan that reads nothing from outside",
    .forms = OT_FORM_BIT(OT_FORM_SCAN) | OT_FORM_BIT(OT_FORM_UNROLLED),
    .cannot = OT_NEEDS_ALL & ~OT_NEEDS_SCAN,
    .written_most = 32};
