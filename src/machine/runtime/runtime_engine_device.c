/* The project's engine on a device: src/engine/gpu, docs/devices.md. Kernels are made for each
 * group as they come: convolutions and products with what follows them element by element,
 * chains, and nothing else as one, so that the scores of an attention are stored. They compute
 * directly, on plain layouts; windows are arguments of kernels, tiles of inputs and results move
 * beside them. Rates and bandwidths are the target's (`calibrate --device`); nothing here was
 * measured.
 */
#include "runtime_tables.h"

/* A launch each, where the target is not calibrated. */
static const ot_overheads OVERHEADS = {.node = 5e-6, .loop = 5e-6, .region = 5e-6};

const ot_runtime ot_runtime_engine_device = {
    .name = "engine-device",
    .title = "the project's engine on a device",
    .summary = "the project's own engine on a device (run --device), by operators of its own",
    .merges = &ot_device_rules,
    .one_pass = true,
    .conv = {.transposed_part = 1, .bytes_part = 1},
    .overlap = 0.35, /* as on CPUs, for want of a measurement */
    .blocks = {.crop = 1, .crop_blocked = 1},
    .overheads = &OVERHEADS,
    .forms = OT_FORM_BIT(OT_FORM_WHILE) | OT_FORM_BIT(OT_FORM_STREAM),
    .motion = OT_MOTION_VIEWS,
    .price = ot_no_prices,
    .device_arena = true,
    .growth_title = "on the device",
    .holder = "the device",
    .growth_note =
        "Activations, inputs and results on the device, laid out before it runs, without "
        "weights; predicted",
    .own_outputs = true,
    .moves_tiles = true,
    .recompute = 5,
    .recompute_forced = 64,
    .doubt = 1,
    .short_rows = 1,
    .about = 0.03,
    .margins = OT_BLOCK_MARGINS,
};
