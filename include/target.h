/* Targets: what the machine can do. XML files (reports/target.xsd), presets, and `host`. */
#ifndef OT_TARGET_H
#define OT_TARGET_H

#include "ir.h"
#include "kernel.h"

typedef struct ot_target {
    char name[64];
    char description[256];
    int64_t fast_bytes;      /* capacity of the fast memory that a tile's working set must fit ("L2") */
    int64_t granule;         /* DMA / line granule in bytes: transfers are rounded up to it */
    uint32_t cores;          /* workers that share a node's work (threads) */
    bool is_cache;           /* fast memory is a hardware cache (soft limit), not a scratchpad */
    bool double_buffer;      /* DMA overlaps transfers with compute */
    bool fuses;              /* the runtime merges BatchNormalization, activations and a residual Add into the
                                convolution before them (ONNX Runtime does), so they cost nothing of their own */
    /* Bytes per second, all cores together. */
    double bw_fast;          /* inside the fast memory */
    double bw_mid;           /* mid level (shared L3); equals bw_slow when there is none */
    int64_t mid_bytes;       /* capacity of the mid level; 0 when none */
    double bw_slow;          /* slow memory */
    /* Operations per second by class, all cores together (MACs for conv and gemm, elements else). */
    double rate_conv, rate_conv_depthwise, rate_conv_pointwise, rate_gemm;
    double rate_elem, rate_trans, rate_reduce, rate_pool;
    /* Seconds. */
    double node_overhead;    /* per executed node */
    double loop_overhead;    /* per iteration of a Loop or Scan, besides its nodes */
    double region_overhead;  /* per execution of a tiled region */
    int64_t memory_bytes;    /* slow memory; 0 unlimited */
    bool inplace_depthwise;  /* depthwise convolutions run in place (microcontroller engines) */
    /* Memories that kernels name (buffer planner), indexed by ot_scope. */
    struct {
        int64_t bytes;       /* 0: the target has no such memory; for gm: unlimited */
        int64_t alignment;   /* >= 1 */
    } scopes[OT_SCOPE_COUNT];
} ot_target;

/* Fill *t from a preset name ("host", "ascend-a2", "ascend-a2-16m", "tlf-16m", "cpu-generic", "h200", "ethos-u55",
 * "mcu-512k") or, when the name ends in ".xml", from a file (validated by the same rules as reports/target.xsd: OT_E_INPUT
 * naming element and rule). Unknown name: OT_E_USAGE listing the names. `threads` 0 means the target's own core count; for `host` the
 * rates scale with it. host: caches and cores from the system (sysconf, /sys), sanity-capped. */
ot_status ot_target_load(const char *name, uint32_t threads, ot_diag *diag, ot_target *t) OT_MUST_USE;
/* Another capacity of the fast memory (--l2): of tiles and of the scope l2. */
void ot_target_set_l2(ot_target *t, int64_t bytes);
/* Names and descriptions, one per line. */
ot_status ot_target_list(FILE *f) OT_MUST_USE;
/* Write as XML valid against reports/target.xsd. */
ot_status ot_target_save(const ot_target *t, FILE *f, ot_diag *diag) OT_MUST_USE;

#endif
