/* OpenVINO on a CPU with caches. Where a comment says measured: OpenVINO 2026.4 on one thread of
 * a CPU with AVX-512 (docs/runtimes.md); the others are assumptions. Times were measured beside
 * convolutions, and stand here in that proportion: those reached 0.44 of the rate that target
 * `host` assumes there.
 *
 *   layout    convolutions compute channels-last (acdb) and what follows keeps that; plain tensors
 *             are made at graph outputs and before
 *             Gather and loops, by a slow kernel; Slice takes either
 *   memory    buffers of the whole graph are placed before it runs, near the optimum; tiles written
 *             out fit each other's places
 *   loops     a body that reads a value from outside holds a copy of it from compilation on; scan
 *             outputs are joined, then transposed
 *
 */
#include "runtime_tables.h"

/* Measured against ReLU and what the rates of a target say of their class. */
static const ot_op_factor SLOW[] = {
    {OT_OP_Pow, NULL, 10},
    {OT_OP_DepthToSpace, NULL, 1.5},
    {OT_OP_SpaceToDepth, NULL, 1.5},
    {OT_OP_Resize, "nearest", 1.5},
    {OT_OP_Resize, "linear", 2},
    {OT_OP_Resize, NULL, 6},
    {OT_OP_Upsample, "nearest", 1.5},
    {OT_OP_Upsample, "linear", 2},
    {OT_OP_Upsample, NULL, 6},
    {OT_OP_Transpose, NULL, 4},
};

/* Measured: 3 -> 64 channels reach 0.3 of the rate of 64 -> 64, 12 -> 12 and 16 -> 16 0.8. */
static const ot_few_channels FEW[] = {{8, 0.35}, {24, 0.8}};

static const ot_op MAKES[] = {OT_OP_Conv, OT_OP_ConvTranspose};
static const ot_op KEEPS[] = {OT_OP_MaxPool,       OT_OP_AveragePool, OT_OP_GlobalAveragePool,
                              OT_OP_GlobalMaxPool, OT_OP_Concat,      OT_OP_Resize,
                              OT_OP_DepthToSpace,  OT_OP_Slice};

/* Channels are computed in blocks as wide as the vectors of the CPU: 16 floats with AVX-512, 8
 * with AVX2. */
/* clang-format off */
#define TABLE(lanes)                                                                                                                    \
    {                                                                                                                                   \
        .name = "openvino",                                                                                                             \
        .title = "OpenVINO on a CPU",                                                                                                   \
        .summary = "OpenVINO on a CPU: no sequences, no Scan that reads what is outside",                                               \
        .bit = OT_BY_OPENVINO,                                                                                                          \
        .merges = &ot_engine_rules, /* post-operators of convolutions, chains (snippets), attention: what is merged is not stored */    \
        .one_pass = true,                                                                                                               \
        .int8_groups = true,                                                                                                            \
        .int8_width = true,                                                                                                             \
        .slow = SLOW,                                                                                                                   \
        .n_slow = sizeof SLOW / sizeof *SLOW,                                                                                           \
        .conv = {.block = (lanes), /* measured: 24 channels take 0.72 of the time of 32 with AVX2 */                                    \
                 .few = FEW,                                                                                                            \
                 .n_few = sizeof FEW / sizeof *FEW,                                                                                     \
                 .transposed = OT_TRANSPOSED_PLAIN,                                                                                     \
                 .transposed_part = 0.3, /* measured */                                                                                 \
                 .bytes_part = 1},                                                                                                      \
        .overlap = 0.35,                                                                                                                \
        .blocks = {.has_blocks = true,                                                                                                  \
                   .makes = MAKES,                                                                                                      \
                   .n_makes = sizeof MAKES / sizeof *MAKES,                                                                             \
                   .keeps = KEEPS,                                                                                                      \
                   .n_keeps = sizeof KEEPS / sizeof *KEEPS,                                                                             \
                   .chains_keep = true,                                                                                                 \
                   .least = 8,                                                                                                          \
                   .into = 6,      /* measured: 2.7 GB/s where slow memory gives 15 */                                                  \
                   .out_of = 20,   /* measured: 0.75 GB/s */                                                                            \
                   .steady = true, /* kernels, not memory, are slow */                                                                  \
                   .copies = 0,    /* measured: a value is gone when its copy is read */                                                \
                   .border_into = 2.5,                                                                                                  \
                   .border_out_of = 9,                                                                                                  \
                   .crop = 2,                                                                                                           \
                   .crop_blocked = 3}, /* measured: Slice takes both layouts; 1.4 % of a U-Net's time for 96 MB */                      \
        .packing = OT_PACK_SLOW,                                                                                                        \
        .run_seconds = 80e-9,                                                                                                           \
        .weights_seen = 0.3,                                                                                                            \
        .node_overhead = 2e-6,  /* measured: 28 us for a tile of 7 operators that computes next to nothing */                           \
        .loop_overhead = 20e-6, /* measured: a step of a Loop or Scan besides its operators */                                          \
        .region_overhead = 10e-6,                                                                                                       \
        .forms = OT_FORM_BIT(OT_FORM_SCAN) | OT_FORM_BIT(OT_FORM_UNROLLED) | OT_FORM_BIT(OT_FORM_LOOP) | OT_FORM_BIT(OT_FORM_PRESCAN),  \
        /* Measured: sequences give wrong shapes without a word, the rest is refused on loading. */                                     \
        .cannot = OT_NEEDS_SEQUENCE | OT_NEEDS_SCAN_CAPTURE | OT_NEEDS_SCAN_AXES | OT_NEEDS_GROUP_NORM | OT_NEEDS_LONG_SUM,                                 \
        .written_most = 32,                                                                                                             \
        .motion = OT_MOTION_COPIED,                                                                                                     \
        /* Measured: bytes held, on three convolutions of 64 channels; bytes moved, by the time that Slice, Gather, Transpose and Concat\
         * take. Tiles that are cut to pieces of other sizes still fit each other's places. */                                          \
        .price =                                                                                                                        \
            {                                                                                                                           \
                [OT_FORM_SCAN] = {.loops = true, .outputs = 1, .outputs_scattered = 1, .outputs_grid = 1, .written = 1},                \
                [OT_FORM_UNROLLED] = {.copies = true,                                                                                   \
                                      .nodes = 1,                                                                                       \
                                      .stitch = 2,                                                                                      \
                                      .scattered = 2,                                                                                   \
                                      .joins_blocks = true,                                                                             \
                                      .outputs = 2,                                                                                     \
                                      .outputs_scattered = 2,                                                                           \
                                      .outputs_grid = 2,                                                                                \
                                      .tiles = 1,                                                                                       \
                                      .tiles_grid = 1},                                                                                 \
                [OT_FORM_LOOP] = {.copies = true,                                                                                       \
                                  .nodes = 4,                                                                                           \
                                  .loops = true,                                                                                        \
                                  .stitch = 3,                                                                                          \
                                  .scattered = 5,                                                                                       \
                                  .inputs = 1,                                                                                          \
                                  .inputs_stay = true,                                                                                  \
                                  .written = 3,                                                                                         \
                                  .outputs = 2,                                                                                         \
                                  .outputs_scattered = 3,                                                                               \
                                  .outputs_grid = 3,                                                                                    \
                                  .tiles = 1,                                                                                           \
                                  .tiles_grid = 2},                                                                                     \
                [OT_FORM_PRESCAN] = {.copies = true,                                                                                    \
                                     .nodes = 1,                                                                                        \
                                     .loops = true,                                                                                     \
                                     .stitch = 3,                                                                                       \
                                     .scattered = 5,                                                                                    \
                                     .windows = 4,                                                                                      \
                                     .inputs = 1,                                                                                       \
                                     .written = 3,                                                                                      \
                                     .outputs = 2,                                                                                      \
                                     .outputs_scattered = 2,                                                                            \
                                     .outputs_grid = 2,                                                                                 \
                                     .tiles = 1,                                                                                        \
                                     .tiles_grid = 2},                                                                                  \
            },                                                                                                                          \
        .scan_in_place = false, /* slices are copied into a body */                                                                     \
        .own_biases = true,     /* measured: x0.85 of the time of three convolutions in 16 tiles */                                     \
        .node_bytes = 64 << 10, /* measured: 17 MB for 32 tiles of 8 steps, whatever their size */                                      \
        .loop_bytes = 3 << 20,  /* measured */                                                                                          \
        .one_block = true,                                                                                                              \
        .folds_norms = true,                                                                                                            \
        .deferred_seconds = 0.4e-9, /* measured: 0.42 ns, ResNet-50 and VGG-16 of small images; taken up to the next tenth in proportion */ \
        .in_place = true,                                                                                                               \
        .recompute = 5,                                                                                                                 \
        .recompute_forced = 64,                                                                                                         \
        .doubt = 1.1, /* measured: gains of that size that were predicted were none */                                                  \
        .short_rows = 1.02,                                                                                                             \
        .margins = OT_BLOCK_MARGINS,                                                                                                    \
    }
/* clang-format on */

const ot_runtime ot_runtime_openvino = TABLE(16);
const ot_runtime ot_runtime_openvino_8 = TABLE(8);
