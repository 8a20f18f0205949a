/* The block of activations of a session on a device: laid out for sessions (engine/gpu), and
 * measured for plans (alloc_sim), by the same rules.
 *
 *   unit      0     1       2        3  arena
 *   x (input) |=====|                   [x       ]     from the unit that reads it first
 *   a         .     |=======|           .        [a   ]
 *   tiles     .     .       |========|  [body's arena  ]   the same for every iteration
 *   b         .     |================|  .              [b  ]
 *
 * A body's arena is laid out for itself, and takes part in the block of the graph while its
 * While runs. Views are part of what they look at; tiles that a body makes for a Deslice are part
 * of the buffer. Inputs and results that loops alone touch stay on the host where their tiles
 * are small; such a tile has two places then, as long as the body runs, so that one moves while
 * kernels use the other.
 *
 * Where the device has no block as large, there are several, and every value lies in one of them:
 *
 *   |== block 0 ==|#|== block 1 ==|#|= block 2     one packing, with items (#) between blocks that
 *                                                  live for ever, so that no value lies across
 */
#ifndef OT_TILING_DEVICE_ARENA_H
#define OT_TILING_DEVICE_ARENA_H

#include "fusion/graph_view.h"

/* Of a value that is no part of another's. */
typedef struct ot_device_memory {
    int64_t bytes;
    uint32_t first, last; /* units that touch it; OT_NONE: none */
    bool twice;           /* a tile that moves */
    bool listed;          /* it is in an arena */
    int64_t turn;         /* bytes between its two places, set by ot_device_arena_add */
    uint32_t block;       /* of its arena, and bytes in that; set by ot_device_arena_place */
    int64_t offset;
} ot_device_memory;

#define OT_DEVICE_UNUSED ((ot_device_memory){.first = OT_NONE, .last = OT_NONE})

struct ot_device_arena;

/* A value, or the arena of a body that runs as one unit. */
typedef struct ot_device_item {
    ot_device_memory *memory;
    struct ot_device_arena *body; /* NULL: a value */
    uint32_t first, last;         /* units */
    int64_t bytes;                /* that it takes while they run */
} ot_device_item;

typedef struct ot_device_block {
    int64_t bytes;
    /* of a body: the block of the graph around it where this lies, and bytes before it there; else
     * its own number, and 0 */
    uint32_t block;
    int64_t base;
} ot_device_block;

typedef struct ot_device_arena {
    uint32_t n_units;
    ot_device_item *items; /* [n] */
    size_t n, cap;
    int64_t live; /* most bytes that items fill at one time, set by ot_device_arena_measure */
    /* set by ot_device_arena_place: [n_blocks] one, or as many as it takes; bytes of all; those of
     * a body get their place with the graph around it */
    ot_device_block *blocks;
    uint32_t n_blocks;
    int64_t height;
} ot_device_arena;

/* That unit uses it. Units are numbered in the order in which they run. */
void ot_device_touch(ot_device_memory *m, uint32_t unit);
/* m takes part: once, and where some unit touches it. Its bytes are known. Fails: OT_E_NOMEM. */
ot_status ot_device_arena_add(ot_device_arena *x, ot_arena *a, ot_device_memory *m) OT_MUST_USE;
/* So does the arena of the body that unit runs, which is complete. Fails: OT_E_NOMEM. */
ot_status ot_device_arena_add_body(ot_device_arena *x, ot_arena *a, ot_device_arena *body,
                                   uint32_t unit) OT_MUST_USE;
/* x->live; those of bodies first. Fails: OT_E_NOMEM. */
ot_status ot_device_arena_measure(ot_device_arena *x, ot_arena *a) OT_MUST_USE;
/* Offsets of all, and x->height; those of bodies first, measured or not. most: bytes of a block,
 * no value takes more; 0: as many as it takes. Fails as ot_pack. */
ot_status ot_device_arena_place(ot_device_arena *x, int64_t most, ot_arena *a,
                                ot_diag *d) OT_MUST_USE;

/* Units beside the lifetime of m that use its bytes for something else: the last one before it, and
 * the first one after it; OT_NONE: none. Places are known. */
void ot_device_arena_neighbours(const ot_device_arena *x, const ot_device_memory *m,
                                uint32_t *before, uint32_t *after);

/* ---- device_streams_rule.c: what stays on the host ---- */

/* Inputs and results of the top graph that loops alone touch, tile by tile. bodies: [l->n] of
 * Whiles at their places, else NULL; *host_of: [n_values] in arena a; of an input itself, of the
 * buffer that an Alloc makes for a result that result; OT_NONE: v lies on the device. An input
 * stays where its two tiles take half of it at the most, and halos move it twice at the most.
 * Fails: OT_E_NOMEM. */
ot_status ot_device_streams_find(const ot_node_list *l, const ot_graph *const *bodies, ot_arena *a,
                                 ot_id **host_of) OT_MUST_USE;

/* ---- and what is part of something else ---- */

/* Its results are windows of its first operand, or other shapes of it: no kernel makes them. */
bool ot_device_looks(const ot_node *n);
/* The Deslice at `place` of a body gets its tile made where it would put it, if the buffer is on
 * the device: nobody else reads either, the buffer was not written to before, and a kernel makes
 * the tile. */
bool ot_device_makes_in_place(const ot_node_list *l, uint32_t place);

#endif
