/* What tile kernels need to know of a machine: its memories, and how they are reached. */
#ifndef OT_MACHINE_TK_MACHINE_H
#define OT_MACHINE_TK_MACHINE_H

#include "scope.h"

#define OT_LANES_MAX 64
#define OT_BANKS_MAX 1024

/* How lanes that work in step reach memories (GPUs). */
typedef struct ot_lane_access {
    /* of one access, at most OT_LANES_MAX; 0: there are none, and granules are moved by DMA */
    uint32_t lanes;
    /* of the shared memory, at most OT_BANKS_MAX, that serve one word each at a time; words of
     * bank_bytes are dealt in turn */
    uint32_t banks;
    int64_t bank_bytes;
    int64_t sector;   /* bytes that are fetched from slow memory at once, at least */
    double bw_shared; /* bytes per second of all shared memories together */
} ot_lane_access;

/* A memory that kernels name. */
typedef struct ot_scope_room {
    int64_t bytes;     /* 0: there is no such memory; for gm: unlimited */
    int64_t alignment; /* >= 1 */
} ot_scope_room;

typedef struct ot_tk_machine {
    char name[64];
    int64_t granule; /* DMA / line granule in bytes: transfers are rounded up to it */
    bool is_cache;   /* fast memory is a hardware cache, not a scratchpad */
    double bw_slow;  /* bytes per second of the slow memory */
    ot_lane_access access;
    ot_scope_room scopes[OT_SCOPE_COUNT];
} ot_tk_machine;

#endif
