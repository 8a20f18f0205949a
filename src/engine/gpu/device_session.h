/* A session whose steps run on a device: weights there once, activations in one planned arena, a
 * kernel for each group of nodes.
 *
 *   program  --device_values.c-->  what lies where, what is a window of what
 *            --device_units.c-->   units: shaders (engine/gpu/shaders), nodes that run on the host,
 *                                  loops over tiles
 *            --device_layout.c-->  layouts of constants and work-items that suit the device
 *            --device_plan.c-->    lifetimes --packer--> places in the arena
 *            --device_code.c-->    one program of all kernels, compiled or from the cache on disk
 *            --device_io.c-->      inputs and results: maps, or transfers beside kernels
 *            --device_run.c-->     launches
 *
 * Nodes without a kernel run on the host by the engine's kernels; what they read and make is
 * moved, and counted.
 */
#ifndef OT_ENGINE_GPU_DEVICE_SESSION_H
#define OT_ENGINE_GPU_DEVICE_SESSION_H

#include "device/heap.h"
#include "device/transfers.h"
#include "engine/core/engine.h"
#include "engine/gpu/shaders/shaders.h"

/* A device and how sessions use it. */
typedef struct ot_device_laid {
    ot_device *dev;
    ot_dg_layout layout; /* that its kernels take */
    /* when a run begins, all bits of the activations' memory are set: of floats, NaN */
    bool poisons;
} ot_device_laid;
/* dev, with the layouts that suit it. */
ot_device_laid ot_device_suited(ot_device *dev);
/* Place of ot_session_options: sessions made with it run on laid->dev. Both outlive them. */
ot_backend ot_device_backend(const ot_device_laid *laid);
/* The layouts that suit a device of these facts. */
ot_dg_layout ot_device_layout(const ot_device_facts *f);

/* A node that runs on the host. */
typedef struct ot_device_fallback {
    const char *op, *node; /* operator; name of the first such node */
    const char *why;
    uint32_t n; /* nodes of this operator with this reason */
} ot_device_fallback;

/* What the device's layouts change (docs/devices.md, "Layouts"). */
typedef struct ot_device_layouts {
    ot_dg_layout layout; /* that was taken */
    uint32_t n_packed;   /* constants rewritten in blocks of output channels, */
    /* what they take, and how much of it are zeros that fill up blocks */
    int64_t packed_bytes, filled;
    uint32_t n_blocked;             /* activations in blocks of channels, */
    int64_t blocked_bytes;          /* and what they take, all together */
    uint32_t n_kernels, n_analysed; /* kernels, and those whose accesses are known; of these */
    uint32_t n_spread;              /* work-items' elements are spread in so many, */
    double transactions;            /* predicted in a pass of each, */
    double transactions_plain;      /* without layouts, */
    double transactions_ideal;      /* if every transaction held nothing but what is asked */
} ot_device_layouts;

typedef struct ot_device_figures {
    int64_t arena_bytes; /* of activations: the planned peak */
    /* most of it that values fill at one time; the rest is fragmentation */
    int64_t arena_live;
    uint32_t arena_blocks; /* that it lies in */
    int64_t weight_bytes;  /* constants that kernels read, tables, numbers */
    /* what the session's heap holds of the device: arena and weights as they are allocated */
    int64_t device_bytes;
    /* nodes that run on the device, those that are views included; bodies once */
    uint32_t n_device;
    uint32_t n_host, n_programs; /* nodes on the host; different functions */
    bool from_disk;              /* the program was compiled before */
    double compile_seconds;
    int64_t uploaded, downloaded;                /* bytes of the last run, */
    uint32_t n_uploads, n_downloads, n_launches; /* and how often */
    int64_t mapped_up, mapped_down;              /* bytes of these that the host copied in maps */
    int64_t poisoned;                            /* bytes that were filled before the last run */
    const ot_dev_heap *heap;                     /* of the session */
    ot_dev_mover_stats moves; /* what its mover did since it was made, weights included */
    const ot_device_fallback *fallbacks; /* [n_fallbacks] of the session */
    uint32_t n_fallbacks;
    ot_device_layouts layouts;
} ot_device_figures;

/* Of a session made with ot_device_backend. */
void ot_device_figures_get(const ot_session *s, ot_device_figures *out);

#endif
