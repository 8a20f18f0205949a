/* Accelerators: scratchpads with DMA (NPUs, microcontrollers) and chips with a hardware cache
 * (GPUs, Ascend). Nothing here was measured; the target's rates are the makers', and a runtime
 * is assumed to come up to them for every operator: there are no blocks of channels to fill, no
 * layouts to change, no packing. What remains are the operators of standard ONNX around a
 * region, which any runtime executes, and the transfers, which the form of the tiles gives.
 *
 *   device        scratchpad; merges what follows a convolution       _plain: merges nothing
 *   device-while  the same, given the engine's form (--emit engine)
 *   gpu           hardware cache
 */
#include "runtime_tables.h"

#define PLAIN_CONV           \
    {                        \
        .transposed_part = 1 \
    }

#define COMMON                                                                         \
    .bit = OT_BY_DEVICE, .conv = PLAIN_CONV, .fills_granules = true, .in_place = true, \
    .recompute_forced = 64

/* Transfers are charged as such, so a copy inside is what a crop costs; a scratchpad gains more
 * from staying inside than a cache, so more is computed again. DMA hides all of the shorter time
 * (assumptions). */
#define SCRATCHPAD                                                                                 \
    COMMON, .overlap = 0, .weights_seen = 1, .motion = OT_MOTION_DMA, .recompute = 16, .doubt = 1, \
            .short_rows = 1

#define STANDARD_ON_SCRATCHPAD                                                                   \
    SCRATCHPAD, .forms = OT_FORMS_STANDARD | OT_FORM_BIT(OT_FORM_STREAM), .price = ot_no_prices, \
                .blocks = {.crop = 2, .crop_blocked = 2}, .int8_groups = true

#define WHILE_ON_SCRATCHPAD                                                                     \
    SCRATCHPAD, .forms = OT_FORM_BIT(OT_FORM_WHILE) | OT_FORM_BIT(OT_FORM_STREAM),              \
                .price = ot_no_prices, .blocks = {.crop = 1, .crop_blocked = 1}, .about = 0.03, \
                .title = "the project's engine"

/* Overlap and constants as on CPUs, for want of a measurement. */
#define CACHED                                                                              \
    COMMON, .overlap = 0.35, .weights_seen = 0.3, .motion = OT_MOTION_COPIED,               \
            .forms = OT_FORMS_STANDARD, .price = ot_standard_prices, .scan_in_place = true, \
            .blocks = {.crop = 2, .crop_blocked = 2}, .int8_groups = true, .recompute = 5,  \
            .doubt = 1.04, .short_rows = 1.02

const ot_runtime ot_runtime_device = {STANDARD_ON_SCRATCHPAD, .name = "device",
                                      .title = "a runtime that fuses as ONNX Runtime does",
                                      .merges = &ot_onnxruntime_rules, .int8_width = true};
const ot_runtime ot_runtime_device_plain = {STANDARD_ON_SCRATCHPAD, .name = "device-plain",
                                            .title = "a plain runtime"};
const ot_runtime ot_runtime_device_while = {WHILE_ON_SCRATCHPAD, .name = "device-while",
                                            .merges = &ot_onnxruntime_rules};
const ot_runtime ot_runtime_device_while_plain = {WHILE_ON_SCRATCHPAD,
                                                  .name = "device-while-plain"};
const ot_runtime ot_runtime_gpu = {CACHED, .name = "gpu",
                                   .title = "a runtime that fuses as ONNX Runtime does",
                                   .merges = &ot_onnxruntime_rules, .int8_width = true};
const ot_runtime ot_runtime_gpu_plain = {CACHED, .name = "gpu-plain", .title = "a plain runtime"};
