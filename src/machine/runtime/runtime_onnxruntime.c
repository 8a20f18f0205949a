/* ONNX Runtime on a CPU with caches. Figures were measured in ONNX Runtime 1.31.1, or are
 * assumed and say so; the table in docs/design-notes.md has the measurements. */
#include "runtime_tables.h"

static const ot_op_factor SLOW[] = {
    {OT_OP_PRelu, NULL, 25},        {OT_OP_Erf, NULL, 1.5},
    {OT_OP_Pow, NULL, 3},           {OT_OP_Exp, NULL, 0.5},
    {OT_OP_DepthToSpace, NULL, 8},  {OT_OP_SpaceToDepth, NULL, 8},
    {OT_OP_Resize, "nearest", 1.6}, {OT_OP_Resize, "linear", 12},
    {OT_OP_Resize, NULL, 50},       {OT_OP_Upsample, "nearest", 1.6},
    {OT_OP_Upsample, "linear", 12}, {OT_OP_Upsample, NULL, 50},
    {OT_OP_Elu, NULL, 6},           {OT_OP_Selu, NULL, 6},
    {OT_OP_Celu, NULL, 6},          {OT_OP_Softplus, NULL, 40},
    {OT_OP_Mish, NULL, 45},         {OT_OP_Log, NULL, 7},
    {OT_OP_Sin, NULL, 9},           {OT_OP_Cos, NULL, 9},
    {OT_OP_Gelu, NULL, 2.4},        {OT_OP_HardSwish, NULL, 3},
    {OT_OP_Sqrt, NULL, 3},          {OT_OP_Floor, NULL, 3},
};

/* An input of a few channels cannot be blocked (measured). */
static const ot_few_channels FEW[] = {{8, 0.45}, {24, 0.7}, {48, 0.92}};

/* NCHWc: convolutions make blocked tensors, these read and write them as they are. */
static const ot_op MAKES[] = {OT_OP_Conv};
static const ot_op KEEPS[] = {OT_OP_Conv,          OT_OP_MaxPool,
                              OT_OP_AveragePool,   OT_OP_GlobalAveragePool,
                              OT_OP_GlobalMaxPool, OT_OP_BatchNormalization,
                              OT_OP_Add,           OT_OP_Sum,
                              OT_OP_Mul,           OT_OP_Concat,
                              OT_OP_Relu,          OT_OP_Clip,
                              OT_OP_LeakyRelu,     OT_OP_Sigmoid,
                              OT_OP_Tanh,          OT_OP_HardSigmoid};

/* Blocks of channels are as wide as the vectors of the CPU: 16 floats with AVX-512, 8 with AVX2. */
/* clang-format off */
#define TABLE(lanes)                                                                                                          \
    {                                                                                                                         \
        .name = "onnxruntime",                                                                                                \
        .title = "a runtime that fuses as ONNX Runtime does",                                                                 \
        .summary = "ONNX Runtime on a CPU: loops that carry sequences, Scan; no other runtime takes all of its models",       \
        .bit = OT_BY_ONNXRUNTIME,                                                                                             \
        .merges = &ot_onnxruntime_rules,                                                                                      \
        .int8_groups = true,                                                                                                  \
        .int8_width = true,                                                                                                   \
        .slow = SLOW,                                                                                                         \
        .n_slow = sizeof SLOW / sizeof *SLOW,                                                                                 \
        .conv = {.block = (lanes), /* measured: what is not a multiple of the block computes padding */                       \
                 .few = FEW,                                                                                                  \
                 .n_few = sizeof FEW / sizeof *FEW,                                                                           \
                 .transposed = OT_TRANSPOSED_COLUMNS,                                                                         \
                 .transposed_part = 0.6, /* measured */                                                                       \
                 .bytes_part = 1},                                                                                            \
        .overlap = 0.35, /* caches overlap the two in part; measured over whole networks */                                   \
        .blocks = {.has_blocks = true,                                                                                        \
                   .makes = MAKES,                                                                                            \
                   .n_makes = sizeof MAKES / sizeof *MAKES,                                                                   \
                   .keeps = KEEPS,                                                                                            \
                   .n_keeps = sizeof KEEPS / sizeof *KEEPS,                                                                   \
                   .least = (lanes),                                                                                          \
                   .into = 2.5, /* read in strides, written; assumed */                                                       \
                   .out_of = 2,                                                                                               \
                   .copies = 0.5,                                                                                             \
                   .border_into = 2,                                                                                          \
                   .border_out_of = 2,                                                                                        \
                   .crop = 2, /* a copy: read and written */                                                                  \
                   /* out of the blocked layout and back, too, and operators that are merged otherwise run on their own */    \
                   .crop_blocked = 6,                                                                                         \
                   .crop_readers = true},                                                                                     \
        .packing = OT_PACK_SLOW,                                                                                              \
        .run_seconds = 80e-9,    /* measured: Slice of narrow tiles */                                                        \
        .gather_seconds = 10e-9, /* measured: Gather of numbers one by one; rows of them are copied as fast as by Slice */    \
        .weights_seen = 0.3,     /* kernels fetch constants while they compute; assumed */                                    \
        .forms = OT_FORMS_STANDARD | OT_FORM_BIT(OT_FORM_STREAM),                                                             \
        .motion = OT_MOTION_COPIED,                                                                                           \
        .price = OT_STANDARD_PRICES,                                                                                          \
        .scan_in_place = true,                                                                                                \
        .outer_weights =                                                                                                      \
            true, /* measured: ResNet-50 in a Loop holds 109 MB once loaded, 221 with weights in the body; times are equal */ \
        .widens = true,                                                                                                       \
        .plain_views = true,                                                                                                  \
        .chunk_arena = true,                                                                                                  \
        .in_place = true,                                                                                                     \
        .recompute = 5, /* tilings that recompute more lead nowhere; assumed */                                               \
        .recompute_forced = 64,                                                                                               \
        .doubt = 1.04,      /* predictions are no better than a few percent: a gain below that is none; assumed */            \
        .short_rows = 1.02, /* shorter vectors and strided copies */                                                          \
        .margins = OT_CHUNK_MARGINS,                                                                                          \
    }
/* clang-format on */

const ot_runtime ot_runtime_onnxruntime = TABLE(16);
const ot_runtime ot_runtime_onnxruntime_8 = TABLE(8);
