/* Shipped targets.
 *
 * Capacities, memory bandwidths and peak rates are those that the makers publish; where nothing is
 * published (bandwidth inside a cache, overheads) the figure is an assumption and says so. Rates
 * are in multiply-accumulates (convolution, matrix product) or elements (everything else) per
 * second, at what good kernels reach, not at the theoretical peak.
 *
 *   name            fast memory        slow memory     source of the published figures
 *   ascend-a2       192 MB L2          HBM 1.6 TB/s    Atlas A2 training series data sheet
 *   ascend-a2-16m   16 MB of the same                  one core group's share of that L2
 *   tlf-16m         16 MB scratchpad   100 GB/s        fictitious: the chip of the worked example,
 * see below h200            50 MB L2           HBM3e 4.8 TB/s  H200 data sheet (67 TFLOPS fp32, 494
 * TFLOPS tf32 dense) ethos-u55       256 KiB SRAM       0.5 GB/s        Ethos-U55 256: 256 MACs a
 * cycle at 500 MHz, 64-bit AXI mcu-512k        512 KiB SRAM       0.1 GB/s        a 480 MHz
 * Cortex-M7 class part with external memory cpu-generic     1 MiB L2 a core    20 GB/s         an
 * ordinary server core, AVX2
 *
 * tlf-16m. The worked example gives times (Conv 100 ms, BatchNorm 20 ms, Relu 10 ms on slow memory;
 * 60 ms for the fused tile) that fit no single machine and a tensor of another size, so the chip is
 * chosen such that its statement holds: element-wise work is bound by slow memory, and a fused tile
 * costs its arithmetic plus one read and one write. With 100 GB/s outside and 1.6 TB/s inside, a
 * BatchNormalization or Relu is 16 times cheaper on the table than on the floor; 30 T MAC/s keep a
 * 256-channel 1x1 convolution at a fifth of its transfer time. DMA moves 256-byte units while the
 * cores compute (double buffer).
 */
#include "target_internal.h"

#define KIB 1024LL
#define MIB (1024LL * 1024)
#define GIB (1024LL * 1024 * 1024)

/* On-chip memories of one Atlas A2 core, as its CANN platform file gives them (ub_size, l1_size,
 * l0_*_size, bt_size; fixpipe: fb0_size, the bank of quantisation parameters). Their alignments
 * are the standard ones. */
#define ATLAS_A2_SCOPES                                                             \
    {                                                                               \
        [OT_SCOPE_UB] = {.bytes = 192 * KIB}, [OT_SCOPE_L1] = {.bytes = 512 * KIB}, \
        [OT_SCOPE_L0A] = {.bytes = 64 * KIB}, [OT_SCOPE_L0B] = {.bytes = 64 * KIB}, \
        [OT_SCOPE_L0C] = {.bytes = 128 * KIB}, [OT_SCOPE_BT] = {.bytes = 1 * KIB},  \
        [OT_SCOPE_FP] = {.bytes = 2 * KIB},                                         \
    }

static const ot_target_preset PRESETS[] = {
    {.target = {.name = "ascend-a2",
                .description = "Ascend A2: 192 MB L2, HBM 1.6 TB/s",
                .fast_bytes = 192 * MIB,
                .granule = 512,
                .cores = 24,
                .is_cache = true,
                .runtime = &ot_runtime_gpu,
                .double_buffer = true,
                .bw_fast = 5.5e12,
                .bw_mid = 1.6e12,
                .mid_bytes = 0,
                .bw_slow = 1.6e12,
                .rate_conv = 90e12,
                .rate_conv_depthwise = 4e12,
                .rate_conv_pointwise = 90e12,
                .rate_gemm = 100e12,
                .rate_elem = 4e12,
                .rate_trans = 1e12,
                .rate_reduce = 2e12,
                .rate_pool = 1e12,
                .node_overhead = 5e-6,
                .loop_overhead = 2e-6,
                .region_overhead = 10e-6,
                .memory_bytes = 64 * GIB,
                .scopes = ATLAS_A2_SCOPES}},
    {.target = {.name = "ascend-a2-16m",
                .description = "Ascend A2, 16 MB share of its L2",
                .fast_bytes = 16 * MIB,
                .granule = 512,
                .cores = 24,
                .is_cache = true,
                .runtime = &ot_runtime_gpu,
                .double_buffer = true,
                .bw_fast = 5.5e12,
                .bw_mid = 1.6e12,
                .mid_bytes = 0,
                .bw_slow = 1.6e12,
                .rate_conv = 90e12,
                .rate_conv_depthwise = 4e12,
                .rate_conv_pointwise = 90e12,
                .rate_gemm = 100e12,
                .rate_elem = 4e12,
                .rate_trans = 1e12,
                .rate_reduce = 2e12,
                .rate_pool = 1e12,
                .node_overhead = 5e-6,
                .loop_overhead = 2e-6,
                .region_overhead = 10e-6,
                .memory_bytes = 64 * GIB,
                .scopes = ATLAS_A2_SCOPES}},
    {.target = {.name = "tlf-16m",
                .description =
                    "fictitious chip of the worked example: 16 MB scratchpad, 100 GB/s slow memory",
                .fast_bytes = 16 * MIB,
                .granule = 256,
                .cores = 1,
                .is_cache = false,
                .runtime = &ot_runtime_device_plain,
                .double_buffer = true,
                .bw_fast = 1.6e12,
                .bw_mid = 100e9,
                .mid_bytes = 0,
                .bw_slow = 100e9,
                .rate_conv = 60e12,
                .rate_conv_depthwise = 5e12,
                .rate_conv_pointwise = 60e12,
                .rate_gemm = 60e12,
                .rate_elem = 2e12,
                .rate_trans = 1e12,
                .rate_reduce = 2e12,
                .rate_pool = 2e12,
                .node_overhead = 0.1e-6,
                .loop_overhead = 0.2e-6,
                .region_overhead = 5e-6,
                .memory_bytes = 0,
                .scopes = {[OT_SCOPE_L2] = {.alignment = 256}}}},
    {.target =
         {.name = "h200",
          .description = "H200: 50 MB L2, HBM3e 4.8 TB/s",
          .fast_bytes = 50 * MIB,
          .granule = 128,
          .cores = 132,
          .is_cache = true,
          .runtime = &ot_runtime_gpu,
          .double_buffer = false,
          .bw_fast = 10e12,
          .bw_mid = 4.8e12,
          .mid_bytes = 0,
          .bw_slow = 4.8e12,
          .rate_conv = 120e12,
          .rate_conv_depthwise = 8e12,
          .rate_conv_pointwise = 150e12,
          .rate_gemm = 180e12,
          .rate_elem = 16e12,
          .rate_trans = 4e12,
          .rate_reduce = 8e12,
          .rate_pool = 4e12,
          .node_overhead = 3e-6,
          .loop_overhead = 3e-6,
          .region_overhead = 10e-6,
          .memory_bytes = 141000000000LL,
          /* CUDA C++ Programming Guide, compute capability 5.x and later: warps of 32
                 * lanes, 32 banks with successive 32-bit words, one word a clock each; global
                 * memory in 32-byte sectors of its 128-byte lines (CUDA C++ Best Practices
                 * Guide). 132 SMs x 128 bytes x 1.98 GHz (H200 data sheet's boost clock) of
                 * shared memory */
          .access = {.lanes = 32, .banks = 32, .bank_bytes = 4, .sector = 32, .bw_shared = 33.4e12},
          /* 227 KiB of an SM's shared memory for one block (Hopper tuning guide); L2 lines
                 * of 128 B */
          .scopes = {[OT_SCOPE_SHARED] = {.bytes = 227 * KIB},
                     [OT_SCOPE_TMEM] = {.bytes = 256 * KIB},
                     [OT_SCOPE_L2] = {.alignment = 128}}}},
    {.target = {.name = "ethos-u55",
                .description =
                    "Ethos-U55 with 256 MACs at 500 MHz: 256 KiB SRAM, 0.5 GB/s behind it",
                .fast_bytes = 256 * KIB,
                .granule = 16,
                .cores = 1,
                .is_cache = false,
                .runtime = &ot_runtime_device,
                .double_buffer = true,
                .bw_fast = 4e9,
                .bw_mid = 0.5e9,
                .mid_bytes = 0,
                .bw_slow = 0.5e9,
                .rate_conv = 100e9,
                .rate_conv_depthwise = 25e9,
                .rate_conv_pointwise = 100e9,
                .rate_gemm = 50e9,
                .rate_elem = 2e9,
                .rate_trans = 1e9,
                .rate_reduce = 2e9,
                .rate_pool = 2e9,
                .node_overhead = 2e-6,
                .loop_overhead = 1e-6,
                .region_overhead = 5e-6,
                .memory_bytes = 0,
                /* feature maps lie in units of 16 bytes */
                .scopes = {[OT_SCOPE_L2] = {.alignment = 16}, [OT_SCOPE_GM] = {.alignment = 16}}}},
    {.target = {.name = "mcu-512k",
                .description = "microcontroller of the Cortex-M7 class at 480 MHz: 512 KiB SRAM",
                .fast_bytes = 512 * KIB,
                .granule = 4,
                .cores = 1,
                .is_cache = false,
                .runtime = &ot_runtime_device,
                .inplace_depthwise = true,
                .double_buffer = false,
                .bw_fast = 1.9e9,
                .bw_mid = 0.1e9,
                .mid_bytes = 0,
                .bw_slow = 0.1e9,
                .rate_conv = 0.25e9,
                .rate_conv_depthwise = 0.1e9,
                .rate_conv_pointwise = 0.3e9,
                .rate_gemm = 0.3e9,
                .rate_elem = 0.1e9,
                .rate_trans = 0.02e9,
                .rate_reduce = 0.1e9,
                .rate_pool = 0.1e9,
                .node_overhead = 2e-6,
                .loop_overhead = 0.5e-6,
                .region_overhead = 2e-6,
                .memory_bytes = 0,
                /* double words */
                .scopes = {[OT_SCOPE_L2] = {.alignment = 8}, [OT_SCOPE_GM] = {.alignment = 8}}}},
    {.target = {.name = "cpu-generic",
                .description =
                    "ordinary CPU core with AVX2, 1 MiB L2, 20 GB/s (rates scale with --threads)",
                .fast_bytes = 1 * MIB,
                .granule = 64,
                .cores = 1,
                .is_cache = true,
                .runtime = &ot_runtime_onnxruntime,
                .double_buffer = false,
                .bw_fast = 60e9,
                .bw_mid = 25e9,
                .mid_bytes = 16 * MIB,
                .bw_slow = 20e9,
                .rate_conv = 30e9,
                .rate_conv_depthwise = 6e9,
                .rate_conv_pointwise = 28e9,
                .rate_gemm = 30e9,
                .rate_elem = 3e9,
                .rate_trans = 0.6e9,
                .rate_reduce = 2e9,
                .rate_pool = 1e9,
                /* assumed, on an ordinary core */
                .node_overhead = 3e-6,
                .loop_overhead = 8e-6,
                .region_overhead = 20e-6,
                .memory_bytes = 0,
                .scopes = {[OT_SCOPE_GM] = {.alignment = 64}}},
     .per_core = true},
};

const ot_target_preset *ot_target_presets(size_t *n)
{
    *n = sizeof PRESETS / sizeof *PRESETS;
    return PRESETS;
}
