/* OpenVINO on a CPU with caches. Where a comment says measured: OpenVINO 2026.4, docs/runtimes.md; the others are assumptions. */
#include "runtime_tables.h"

static const ot_op_factor SLOW[] = {
    {OT_OP_Erf, NULL, 1.5},
    {OT_OP_Pow, NULL, 3},
};

/* The first convolution reads the plain image. */
static const ot_few_channels FEW[] = {{8, 0.45}, {24, 0.7}};

/* nChw16c, nChw8c: convolutions make blocked tensors, these read and write them as they are. */
static const ot_op MAKES[] = {OT_OP_Conv, OT_OP_ConvTranspose};
static const ot_op KEEPS[] = {OT_OP_MaxPool, OT_OP_AveragePool, OT_OP_GlobalAveragePool, OT_OP_GlobalMaxPool, OT_OP_Concat};

const ot_runtime ot_runtime_openvino = {
    .name = "openvino",
    .title = "OpenVINO on a CPU",
    .summary = "OpenVINO on a CPU: no sequences, no Scan that reads what is outside",
    .bit = OT_BY_OPENVINO,
    .merges = &ot_onnxruntime_rules,
    .int8_groups = true,
    .int8_width = true,
    .slow = SLOW,
    .n_slow = sizeof SLOW / sizeof *SLOW,
    .conv = {.block = 8,
             .few = FEW,
             .n_few = sizeof FEW / sizeof *FEW,
             .transposed = OT_TRANSPOSED_PLAIN,
             .transposed_part = 0.6,
             .bytes_part = 1},
    .overlap = 0.35,
    .blocks = {.has_blocks = true,
               .makes = MAKES,
               .n_makes = sizeof MAKES / sizeof *MAKES,
               .keeps = KEEPS,
               .n_keeps = sizeof KEEPS / sizeof *KEEPS,
               .chains_keep = true,
               .least = 8,
               .into = 2.5,
               .out_of = 2,
               .crop = 2,
               .crop_blocked = 2},
    .packing = OT_PACK_SLOW,
    .run_seconds = 80e-9,
    .weights_seen = 0.3,
    .forms = OT_FORM_BIT(OT_FORM_SCAN) | OT_FORM_BIT(OT_FORM_UNROLLED) | OT_FORM_BIT(OT_FORM_LOOP) | OT_FORM_BIT(OT_FORM_PRESCAN),
    /* Measured: sequences give wrong shapes without a word, the rest is refused on loading. */
    .cannot = OT_NEEDS_SEQUENCE | OT_NEEDS_SCAN_CAPTURE | OT_NEEDS_SCAN_AXES,
    .written_most = 32,
    .motion = OT_MOTION_COPIED,
    .price = OT_STANDARD_PRICES,
    .scan_in_place = false, /* bodies read copies */
    .in_place = true,
    .recompute = 5,
    .recompute_forced = 64,
    .doubt = 1.04,
    .short_rows = 1.02,
};
