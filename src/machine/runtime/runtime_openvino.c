/* OpenVINO on a CPU with caches. Where a comment says measured: OpenVINO 2026.4 on one thread of
 * a CPU with AVX-512 (docs/runtimes.md); the others are assumptions. Times were measured beside
 * convolutions, and stand here in that proportion: those reached 0.44 of the rate that target
 * `host` assumes there.
 *
 *   layout    convolutions compute channels-last (acdb) and what follows keeps that; plain tensors
 *             are made at graph outputs and before
 *             Gather and loops, by a slow implementation; Slice takes either
 *   memory    buffers of the whole graph are placed before it runs, near the optimum; tiles written
 *             out fit each other's places
 *   loops     a body that reads a value from outside holds a copy of it from compilation on; scan
 *             outputs are joined, then transposed
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
    {OT_OP_Transpose, NULL, 4},
};

/* Measured: 3 -> 64 channels reach 0.3 of the rate of 64 -> 64, 12 -> 12 and 16 -> 16 0.8. */
static const ot_few_channels FEW[] = {{8, 0.35}, {24, 0.8}};

static const ot_op MAKES[] = {OT_OP_Conv, OT_OP_ConvTranspose};
static const ot_op KEEPS[] = {OT_OP_MaxPool,       OT_OP_AveragePool, OT_OP_GlobalAveragePool,
                              OT_OP_GlobalMaxPool, OT_OP_Concat,      OT_OP_Resize,
                              OT_OP_DepthToSpace,  OT_OP_Slice};

/* Measured: 28 us for a tile of 7 operators that computes next to nothing; a step of a Loop or
 * Scan besides its operators. A region: assumed. */
static const ot_overheads OVERHEADS = {.node = 2e-6, .loop = 20e-6, .region = 10e-6};

/* Measured: bytes held, on three convolutions of 64 channels; bytes moved, by the time that Slice,
 * Gather, Transpose and Concat take. Tiles that are cut to pieces of other sizes still fit each
 * other's places. */
static const ot_form_price PRICES[OT_FORM_COUNT] = {
    [OT_FORM_SCAN] = {.loops = true, .outputs = 1, .written = 1},
    [OT_FORM_UNROLLED] = {.copies = true,
                          .nodes = 1,
                          .reassemble = 2,
                          .scattered = 2,
                          .joins_blocks = true,
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
                      .inputs = 1,
                      .inputs_stay = true,
                      .written = 3,
                      .outputs = 2,
                      .outputs_scattered = 3,
                      .outputs_grid = 3,
                      .tiles = 1,
                      .tiles_grid = 2},
    [OT_FORM_PRESCAN] = {.copies = true,
                         .nodes = 1,
                         .loops = true,
                         .reassemble = 3,
                         .scattered = 5,
                         .windows = 4,
                         .inputs = 1,
                         .written = 3,
                         .outputs = 2,
                         .outputs_scattered = 2,
                         .outputs_grid = 2,
                         .tiles = 1,
                         .tiles_grid = 2},
};

/* 16 floats with AVX-512, 8 with AVX2. */
#define OT_TABLE ot_runtime_openvino
#define OT_LANES 16
#include "runtime_openvino.inc"
#undef OT_TABLE
#undef OT_LANES
#define OT_TABLE ot_runtime_openvino_8
#define OT_LANES 8
#include "runtime_openvino.inc"
