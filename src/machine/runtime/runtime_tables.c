/* Parts that tables of several runtimes share. */
#include "runtime_tables.h"

/* Standard ONNX, whoever runs it: the operators that the rewriter writes around a region
 * (src/transform). Slice and Concat copy: a byte read and one written. The peaks are those of
 * ONNX Runtime's arena.
 *
 *   scan      slices of the outer tensors, results in place
 *   unrolled  a Slice for each window, a Concat; tiles live in the outer graph, where sizes that
 *             differ from layer to layer do not fit each other's places (measured: 4 working sets
 *             for a chain of 12 nodes, 12 for one of 48)
 *   peeled    Slice and its bounds; in several dimensions border tiles stay in the outer graph and
 *             the stack is transposed
 *   stream    as peeled; rows that are carried are part of a tile's windows */
const ot_form_price ot_standard_prices[OT_FORM_COUNT] = {
    [OT_FORM_SCAN] = {.loops = true, .outputs = 1, .outputs_grid = 1},
    [OT_FORM_UNROLLED] = {.copies = true,
                          .nodes = 1,
                          .reassemble = 2,
                          .scattered = 2,
                          .outputs = 2,
                          .outputs_scattered = 2,
                          .outputs_grid = 2,
                          .tiles = 1,
                          .tiles_grid = 1,
                          .tiles_chain = 4},
    [OT_FORM_PEELED] = {.copies = true,
                        .nodes = 4,
                        .loops = true,
                        .reassemble = 2,
                        .scattered = 2,
                        .cropped = 2,
                        .outputs = 2,
                        .outputs_scattered = 2,
                        .outputs_grid = 3,
                        .tiles_grid = 2},
    [OT_FORM_STREAM] = {.copies = true,
                        .nodes = 4,
                        .loops = true,
                        .reassemble = 2,
                        .scattered = 2,
                        .outputs = 2,
                        .outputs_scattered = 2},
};

const ot_form_price ot_no_prices[OT_FORM_COUNT] = {{0}};

/* Measured in 1.31.1; so do releases from 1.16 on. Of all others, Add and Mul among them, input
 * and result exist together. */
const ot_op ot_onnxruntime_overwriters[OT_ONNXRUNTIME_OVERWRITERS] = {
    OT_OP_Relu,        OT_OP_Sigmoid,  OT_OP_Tanh,       OT_OP_Elu,
    OT_OP_Selu,        OT_OP_Celu,     OT_OP_LeakyRelu,  OT_OP_Softplus,
    OT_OP_HardSigmoid, OT_OP_Softsign, OT_OP_Shrink,     OT_OP_ThresholdedRelu,
    OT_OP_Clip,        OT_OP_Softmax,  OT_OP_LogSoftmax, OT_OP_Cast,
};

const ot_op_memory ot_onnxruntime_scratch[OT_ONNXRUNTIME_SCRATCH] = {
    {OT_OP_HardSwish, OT_SCRATCH_INLINED, 1},
    {OT_OP_Mish, OT_SCRATCH_INLINED, 1},
    {OT_OP_Swish, OT_SCRATCH_INLINED, 1},
    {OT_OP_GroupNormalization, OT_SCRATCH_INLINED, 2},
    {OT_OP_MeanVarianceNormalization, OT_SCRATCH_VALUES, 3},
    {OT_OP_LRN, OT_SCRATCH_VALUES, 2},
    {OT_OP_Where, OT_SCRATCH_SELECTED, 2},
};
