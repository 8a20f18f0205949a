/* Memory of one owner, a buffer for each slice: budget, names, statistics.
 *
 *   take -> a buffer of the device      give -> back to the device
 *
 * What a session needs is known before it runs: its values are laid out in an arena
 * (tiling/lower/device_arena.h) and taken as one or a few slices, so nothing is kept for later and
 * nothing lies between slices. A heap names what is given twice, what is not its own, and what was
 * never given back. It is for one thread.
 */
#ifndef OT_DEVICE_HEAP_H
#define OT_DEVICE_HEAP_H

#include "device.h"

typedef struct ot_dev_heap ot_dev_heap;

typedef struct ot_dev_heap_options {
    const char *name; /* NULL: "heap" */
    ot_dev_memory kind;
    uint32_t access; /* of ot_dev_access; 0: all */
    int64_t cap;     /* bytes of the device it may hold; 0: as many as there are */
} ot_dev_heap_options;

typedef struct ot_dev_heap_stats {
    int64_t held, peak; /* bytes of slices that are taken */
    uint64_t n_taken, n_given;
    uint32_t n_live;
} ot_dev_heap_stats;

ot_status ot_dev_heap_new(ot_device *dev, const ot_dev_heap_options *o, ot_device_error *e,
                          ot_dev_heap **out) OT_MUST_USE;
/* Gives everything back to the device, what is still taken included. Accepts NULL. */
void ot_dev_heap_free(ot_dev_heap *h);

/* A slice of `bytes`, the whole of a buffer. name: for messages. OT_DEV_OUT_OF_MEMORY: also above
 * the cap; free and largest are the heap's then. */
ot_status ot_dev_take(ot_dev_heap *h, const char *name, int64_t bytes, ot_device_error *e,
                      ot_dev_slice *out) OT_MUST_USE;
/* OT_DEV_INVALID_POINTER: given before, another heap's, or not where a slice begins. */
ot_status ot_dev_give(ot_dev_heap *h, ot_dev_slice s, ot_device_error *e);
ot_dev_heap_stats ot_dev_heap_count(const ot_dev_heap *h);
const char *ot_dev_heap_name(const ot_dev_heap *h);
/* Lines like "heap 'x': 'conv1' of 400 bytes was never given back", to f unless NULL; returns
 * how many. */
uint32_t ot_dev_heap_leaks(const ot_dev_heap *h, FILE *f);

#endif
