/* The project's engine on a CPU with caches: src/engine, docs/engine.md. Rates and bandwidths
 * are the target's (`calibrate`). Where a comment says measured: of the engine's own
 * implementations, when the figure was put in; the others are assumptions. */
#include "runtime_tables.h"

/* Inputs of so few channels are read as they are, not in blocks. */
static const ot_few_channels FEW[] = {{5, 0.85}};

static const ot_op MAKES[] = {OT_OP_Conv, OT_OP_ConvTranspose};
static const ot_op KEEPS[] = {OT_OP_MaxPool, OT_OP_AveragePool, OT_OP_GlobalAveragePool,
                              OT_OP_GlobalMaxPool, OT_OP_Concat};

/* Where the target is not calibrated. */
static const ot_overheads OVERHEADS = {.node = 1.5e-6, .loop = 2e-6, .region = 5e-6};

const ot_runtime ot_runtime_engine = {
    .name = "engine",
    .title = "the project's engine",
    .gives_form = true,
    .summary = "the project's own engine, by operators of its own (as --emit engine)",
    .merges = &ot_engine_rules,
    .one_pass = true,
    .conv = {.block = 8, /* AVX2 registers of float32 */
             .blocks_input = true,
             .few = FEW,
             .n_few = 1,
             .transposed = OT_TRANSPOSED_PHASES,
             .transposed_part = 0.85, /* the rest goes into interleaving the phases */
             .bytes_part = 0.6,       /* elements are gathered, and multiplied as 16-bit numbers */
             .winograd = true,
             .direct_part = 0.85},
    /* measured: 19.6e9 conversions a second where 14.7e9 multiplications are made */
    .half_part = 1.3,
    .overlap = 0.35, /* caches overlap the two in part */
    .blocks = {.has_blocks = true,
               .makes = MAKES,
               .n_makes = sizeof MAKES / sizeof *MAKES,
               .keeps = KEEPS,
               .n_keeps = sizeof KEEPS / sizeof *KEEPS,
               .chains_keep = true, /* chains run in the layout that is there */
               .least = 8,
               .into = 2.5,
               .out_of = 2,
               .copies = 0.5,
               .border_into = 2,
               .border_out_of = 2,
               .crop = 1,          /* taken where it lies, in short rows */
               .crop_blocked = 2}, /* a copy */
    .packing = OT_PACK_LEVEL,
    .attention_pack = 2, /* read along one axis, written along the other */
    .run_seconds = 5e-9, /* a row of a window by itself */
    .row_loss = 4,       /* registers that are filled in part */
    .overheads = &OVERHEADS,
    .forms = OT_FORM_BIT(OT_FORM_WHILE) | OT_FORM_BIT(OT_FORM_STREAM),
    .motion = OT_MOTION_VIEWS,
    .price = ot_no_prices,
    .growth_title = "in a session",
    .holder = "a session",
    .growth_note =
        "Values of a session in its arena, laid out when it is loaded, and what operators "
        "work in, without weights, inputs and results; planned",
    .own_outputs = true,
    .in_place = true,
    .recompute = 5,
    .recompute_forced = 64,
    .doubt = 1,
    .short_rows = 1,
    .about = 0.03, /* predictions are no finer: what is as fast may as well hold less */
};
