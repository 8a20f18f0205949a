/* What a device did: memory, transfers, kernels. Off until ot_device_profile_start.
 *
 *   buffers.c, commands.c --records--> profile.c --> sums, JSON, a Chrome trace with counters
 *
 * Times of commands are the device's; in the trace they are moved so that nothing ran before it
 * was asked.
 */
#ifndef OT_DEVICE_PROFILE_H
#define OT_DEVICE_PROFILE_H

#include "heap.h"

#include "base/json.h"

typedef enum ot_dev_work {
    OT_DEV_WORK_UPLOAD,
    OT_DEV_WORK_DOWNLOAD,
    OT_DEV_WORK_COPY,
    OT_DEV_WORK_FILL,
    OT_DEV_WORK_KERNEL,
    OT_DEV_WORKS
} ot_dev_work;

typedef struct ot_device_profile {
    ot_device_usage usage; /* counts, bytes and time since the device was opened */
    struct {
        uint64_t n;
        /* moved; kernels: read and written, where who launched them said so, else of their
         * slices */
        int64_t bytes;
        double seconds; /* of the device, each command by itself */
        double fastest; /* bytes per second of one command, at the most */
    } work[OT_DEV_WORKS];
    double span_seconds; /* from the first command's start to the last one's end */
    double busy_seconds; /* of those, in which a queue ran something */
} ot_device_profile;

/* Begin to record; records of before are forgotten. */
ot_status ot_device_profile_start(ot_device *dev, ot_device_error *e) OT_MUST_USE;
/* The host moved so many bytes through a map; seconds of ot_now. work: upload or download. */
void ot_device_profile_mapped(ot_device *dev, const char *name, ot_dev_work work, int64_t bytes,
                              double start, double end);
/* Sums over commands that are done. All zero but usage when nothing was started. */
ot_device_profile ot_device_profile_sum(ot_device *dev);

#define OT_DEV_NAME_MAX 48 /* bytes of a name in records, its end included */

/* All launches of the kernels of one name. */
typedef struct ot_device_kernel_sum {
    char name[OT_DEV_NAME_MAX];
    uint64_t n;
    int64_t bytes;
    double seconds;
} ot_device_kernel_sum;

/* Kernels that are done, by name, in the order of their first launches: [*n], to be freed. NULL,
 * *n 0: there are none, or memory ran out (then they are left out, as records are). */
ot_device_kernel_sum *ot_device_profile_kernels(ot_device *dev, uint32_t *n);
/* "upload", "download", "copy", "fill", "kernel". */
const char *ot_dev_work_name(ot_dev_work w);

/* Bytes per second of a transfer of 16 MiB (or a quarter of what is free), the best of five, by
 * direction: upload, download, copy. */
ot_status ot_device_measure_bandwidth(ot_device *dev, ot_device_error *e,
                                      double out[3]) OT_MUST_USE;

/* Members of the object that is open in j: memory, heaps [n_heaps], transfers, kernels by name.
 * peak: [3] of ot_device_measure_bandwidth, NULL: not measured. */
void ot_device_profile_json(ot_device *dev, const ot_dev_heap *const *heaps, uint32_t n_heaps,
                            const double *peak, ot_json *j);
/* A trace for chrome://tracing of n devices, each a process of that name: a row for each queue,
 * memory in use as a counter. */
void ot_device_profile_trace(ot_device *const *devices, const char *const *names, uint32_t n,
                             FILE *f);

#endif
