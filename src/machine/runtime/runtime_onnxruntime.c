/* ONNX Runtime on a CPU with caches. Figures were measured in ONNX Runtime 1.31.1, or are
 * assumed and say so; the table in docs/design-notes.md has the measurements. */
#include "runtime_tables.h"

static const ot_op_factor SLOW[] = {
    {OT_OP_PRelu, NULL, 25},        {OT_OP_Erf, NULL, 1.5},
    {OT_OP_Pow, NULL, 3},           {OT_OP_Exp, NULL, 0.5},
    {OT_OP_DepthToSpace, NULL, 8},  {OT_OP_SpaceToDepth, NULL, 8},
    {OT_OP_Resize, "nearest", 1.6}, {OT_OP_Resize, "linear", 12},
    {OT_OP_Resize, NULL, 50},       {OT_OP_Upsample, "nearest", 1.6},
    {OT_OP_Upsample, "linear", 12}, {OT_OP_Elu, NULL, 6},
    {OT_OP_Selu, NULL, 6},          {OT_OP_Celu, NULL, 6},
    {OT_OP_Softplus, NULL, 40},     {OT_OP_Mish, NULL, 45},
    {OT_OP_Log, NULL, 7},           {OT_OP_Sin, NULL, 9},
    {OT_OP_Cos, NULL, 9},           {OT_OP_Gelu, NULL, 2.4},
    {OT_OP_HardSwish, NULL, 3},     {OT_OP_Sqrt, NULL, 3},
    {OT_OP_Floor, NULL, 3},
};

/* An input of a few channels cannot be blocked (measured). */
static const ot_few_channels FEW[] = {{8, 0.45}, {24, 0.7}, {48, 0.92}};

/* NCHWc: convolutions make blocked tensors, these read and write them as they are. */
static const ot_op MAKES[] = {OT_OP_Conv};
static const ot_op KEEPS[] = {OT_OP_MaxPool,
                              OT_OP_AveragePool,
                              OT_OP_GlobalAveragePool,
                              OT_OP_GlobalMaxPool,
                              OT_OP_BatchNormalization,
                              OT_OP_Add,
                              OT_OP_Sum,
                              OT_OP_Mul,
                              OT_OP_Concat,
                              OT_OP_Relu,
                              OT_OP_Clip,
                              OT_OP_LeakyRelu,
                              OT_OP_Sigmoid,
                              OT_OP_Tanh,
                              OT_OP_HardSigmoid};

/* Measured: 0.18 us for a node, 0.34 for a step of a Scan, 0.6 to 0.7 of a Loop; the rest of
 * these is caution. A region: assumed. */
const ot_overheads ot_onnxruntime_overheads = {.node = 1e-6, .loop = 1.5e-6, .region = 10e-6};

/* 16 floats with AVX-512, 8 with AVX2. */
#define OT_TABLE ot_runtime_onnxruntime
#define OT_LANES 16
#include "runtime_onnxruntime.inc"
#undef OT_TABLE
#undef OT_LANES
#define OT_TABLE ot_runtime_onnxruntime_8
#define OT_LANES 8
#include "runtime_onnxruntime.inc"
