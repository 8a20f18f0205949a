/* Targets: what the machine can do. XML files (reports/target.xsd), presets, and `host`. */
#ifndef OT_MACHINE_TARGET_TARGET_H
#define OT_MACHINE_TARGET_TARGET_H

#include "onnx/graph/ir.h"
#include "machine/tk_machine.h"
#include "machine/runtime/runtime.h"

/* What it takes to move bytes between host and device. */
typedef struct ot_transfer_costs {
    double upload, download; /* bytes per second of large transfers; 0: not said */
    /* seconds of one of four bytes, until the host knows that it is done */
    double upload_start, download_start;
} ot_transfer_costs;

typedef struct ot_target {
    char name[64];
    char description[256];
    /* calibrated: processor on which the native engine was measured; else "" */
    char cpu[128];
    /* capacity of the fast memory that a tile's working set must fit ("L2") */
    int64_t fast_bytes;
    /* of these, what one tile's working set may take; 0: all. Not of files: a search for less
     * memory sets it */
    int64_t tile_room;
    /* capacity of a memory for constants beside it, where they are once they have been read; 0:
     * none */
    int64_t weight_bytes;
    int64_t granule; /* DMA / line granule in bytes: transfers are rounded up to it */
    /* float32 numbers in a vector register of a CPU; 0: not said, and runtimes' tables stay as
     * they are */
    uint32_t vector_lanes;
    uint32_t cores; /* workers that share a node's work (threads) */
    /* tiles run one at a time, each on all of these. Not of files: a search for less memory sets
     * it */
    bool one_tile;
    bool is_cache; /* fast memory is a hardware cache (soft limit), not a scratchpad */
    /* no sum is to be made in another order: no reductions in parts in standard ONNX */
    bool bit_exact;
    bool double_buffer;        /* DMA overlaps transfers with compute */
    const ot_runtime *runtime; /* who runs the model here; never NULL once loaded */
    /* measured factors of a file's <runtime>, which `runtime` may point into; freed by
     * ot_target_free. NULL: none */
    struct ot_target_factors *factors;
    /* Bytes per second, all cores together. */
    double bw_fast;                   /* inside the fast memory */
    double bw_mid;                    /* mid level (shared L3); equals bw_slow when there is none */
    int64_t mid_bytes;                /* capacity of the mid level; 0 when none */
    double bw_slow;                   /* slow memory */
    double bw_mid_core, bw_slow_core; /* what one core alone gets; 0: not known */
    /* Operations per second by class, all cores together (MACs for conv and gemm, elements else).
     */
    double rate_conv, rate_conv_depthwise, rate_conv_pointwise, rate_gemm;
    /* factor on the runtime's parts of convolutions of few channels, which make 1 at most; 0: as
     * they are */
    double conv_few;
    /* the engine: multiply-adds of the products of Winograd's algorithm; 0: not measured */
    double rate_conv_winograd;
    double rate_elem, rate_trans, rate_reduce, rate_pool;
    /* Seconds, of `runtime` here (target_runtime.c). */
    double node_overhead;   /* per executed node */
    double loop_overhead;   /* per iteration of a Loop or Scan, besides its nodes */
    double region_overhead; /* per execution of a tiled region */
    /* What a file or a preset says of them, and whose they are; NULL: it says nothing. */
    ot_overheads said;
    const ot_runtime *said_of;
    /* of devices; for runtimes that keep inputs and results on the host */
    ot_transfer_costs transfers;
    int64_t memory_bytes;   /* slow memory; 0 unlimited */
    bool inplace_depthwise; /* depthwise convolutions run in place (microcontroller engines) */
    ot_lane_access access;
    ot_scope_room scopes[OT_SCOPE_COUNT]; /* memories that kernels name (buffer planner) */
} ot_target;

/* Fill *t from a preset name ("host", "ascend-a2", "ascend-a2-16m", "tlf-16m", "cpu-generic",
 * "h200", "ethos-u55", "mcu-512k") or, when the name ends in ".xml", from a file (validated by
 * the same rules as reports/target.xsd: OT_E_INPUT naming element and rule). Unknown name:
 * OT_E_USAGE listing the names. `threads` 0 means the target's own core count; for `host` the
 * rates scale with it. host: caches and cores from the system (sysconf, /sys), sanity-capped. */
ot_status ot_target_load(const char *name, uint32_t threads, ot_diag *diag,
                         ot_target *t) OT_MUST_USE;
/* Free what a loaded target holds (the factors of a file's <runtime>); the rest stays valid. A
 * copy of the structure shares it: one of them is to be freed, last. Nothing to do for targets
 * that were not read from a file. */
void ot_target_free(ot_target *t);
/* The fast memory is a scratchpad: what does not fit cannot run. Else a cache, where it only
 * takes longer. */
static inline bool ot_target_hard_limit(const ot_target *t) { return !t->is_cache; }
/* Bytes that the working set of a tile may take. */
static inline int64_t ot_target_room(const ot_target *t)
{
    return t->tile_room > 0 && t->tile_room < t->fast_bytes ? t->tile_room : t->fast_bytes;
}
/* Constants of so many bytes that a region reads in every tile take nothing of the fast memory,
 * and are read once. */
static inline bool ot_target_weights_apart(const ot_target *t, int64_t bytes)
{
    return t->weight_bytes > 0 && bytes <= t->weight_bytes;
}
/* The target as tile kernels see it. */
ot_tk_machine ot_target_tk_machine(const ot_target *t);
/* Another capacity of the fast memory (--l2): of tiles and of the scope l2. */
void ot_target_set_l2(ot_target *t, int64_t bytes);
/* For the engine on this machine: the target `host` becomes what `calibrate` left in the cache,
 * where that was measured on this processor with at least `threads` threads (0: all cores).
 * false: t stays as it is. note: one line about what was found. */
bool ot_target_use_calibration(ot_target *t, uint32_t threads, char *note, size_t size);
/* File that calibrate writes and `host` reads: ONNX_TILE_CACHE, else
 * ${XDG_CACHE_HOME:-~/.cache}/onnx-tile/host.xml. false: there is none (ONNX_TILE_CACHE=off, no
 * home folder). */
bool ot_target_cache_path(char *path, size_t size);
/* "AMD EPYC (25/1/1)": name, family, model and stepping as far as the system tells them. */
void ot_target_cpu(char *cpu, size_t size);
/* true: what is measured on this machine is of this target: `host`, or one that `calibrate`
 * measured on this processor. */
bool ot_target_is_here(const ot_target *t);
/* A calibrated target for fewer threads. */
void ot_target_use_threads(ot_target *t, uint32_t threads);
/* Plan for the runtime of that name, one of those that --runtime takes, in place of the target's
 * own. OT_E_USAGE: there is none of that name (lists them), or it has no use for the target's
 * kind of fast memory. "engine" is ot_target_set_engine. */
ot_status ot_target_set_runtime(ot_target *t, const char *name, ot_diag *diag) OT_MUST_USE;
/* Plan for the engine's operators: the engine on a cached machine, the device's own runtime
 * given that form elsewhere. */
void ot_target_set_engine(ot_target *t);
/* Names and descriptions, one per line. */
ot_status ot_target_list(FILE *f) OT_MUST_USE;
/* Write as XML valid against reports/target.xsd. */
ot_status ot_target_save(const ot_target *t, FILE *f, ot_diag *diag) OT_MUST_USE;
/* The same with comments that tell what each number is, to begin a file of one's own with. */
ot_status ot_target_save_commented(const ot_target *t, FILE *f, ot_diag *diag) OT_MUST_USE;

#endif
