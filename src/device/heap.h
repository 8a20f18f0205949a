/* Where slices come from: two strategies behind one pair of calls.
 *
 *   dedicated   take -> a buffer of its own
 *   pooled      size classes, four to a power of two; a chunk is a buffer of equal blocks of one
 *               class; what is given back waits in its chunk for the next of its class; empty
 *               chunks go back to the device when the cap or the device asks for it
 *
 * Slices with lifetimes that are known are laid out before (tiling/lower/device_arena.h) and taken
 * as one. A heap names what is given twice, what is not its own, and what was never given back. It
 * is for one thread.
 */
#ifndef OT_DEVICE_HEAP_H
#define OT_DEVICE_HEAP_H

#include "device.h"

typedef enum ot_dev_strategy { OT_DEV_DEDICATED, OT_DEV_POOLED } ot_dev_strategy;

typedef struct ot_dev_heap ot_dev_heap;

typedef struct ot_dev_heap_options {
    const char *name; /* of its buffers; NULL: "heap" */
    ot_dev_strategy strategy;
    ot_dev_memory kind;
    uint32_t access; /* of ot_dev_access; 0: all */
    /* POOLED: of a chunk of small blocks; 0: 1 MiB. A block of more than half has a chunk for
     * itself */
    int64_t chunk_bytes;
    int64_t cap; /* bytes of the device it may hold; 0: as many as there are */
} ot_dev_heap_options;

typedef struct ot_dev_heap_stats {
    int64_t requested; /* bytes that are taken, as asked */
    int64_t used;      /* with what rounding adds */
    int64_t held;      /* of the device: used, and free for the next */
    int64_t peak_used, peak_held;
    int64_t largest_free;                /* bytes in one piece of what is held and free */
    double fragmentation;                /* 1 - largest_free / free; 0 where nothing is free */
    uint64_t n_taken, n_given, n_reused; /* reused: taken without the device */
    uint32_t n_live, n_chunks;
} ot_dev_heap_stats;

ot_status ot_dev_heap_new(ot_device *dev, const ot_dev_heap_options *o, ot_device_error *e,
                          ot_dev_heap **out) OT_MUST_USE;
/* Gives everything back to the device, what is still taken included. Accepts NULL. */
void ot_dev_heap_free(ot_dev_heap *h);

/* A slice of `bytes` at a multiple of the device's alignment. name: for messages.
 * OT_DEV_OUT_OF_MEMORY: also above the cap; free and largest are the heap's then. */
ot_status ot_dev_take(ot_dev_heap *h, const char *name, int64_t bytes, ot_device_error *e,
                      ot_dev_slice *out) OT_MUST_USE;
/* OT_DEV_INVALID_POINTER: given before ("double free", with its last name), another heap's, or
 * not where a slice begins. */
ot_status ot_dev_give(ot_dev_heap *h, ot_dev_slice s, ot_device_error *e);
/* Empty chunks back to the device; returns bytes. */
int64_t ot_dev_trim(ot_dev_heap *h);
ot_dev_heap_stats ot_dev_heap_count(const ot_dev_heap *h);
const char *ot_dev_heap_name(const ot_dev_heap *h);
/* Lines like "heap 'x': 'conv1' of 400 bytes was never given back", to f unless NULL; returns
 * how many. */
uint32_t ot_dev_heap_leaks(const ot_dev_heap *h, FILE *f);

#endif
