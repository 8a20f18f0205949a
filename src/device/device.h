/* Stage device/: memory, transfers and kernels of a GPU or of what stands for one, the same for
 * every API.
 *
 *   libOpenCL, libvulkan, libcuda, found when the program runs --*_driver.c--> struct dev_driver
 *   (driver.h)
 *   handles, checks, budget, errors: device.c, buffers.c, commands.c --> the API's driver
 *
 *   buffer  bytes of one memory kind; a slice is a part of one, and what transfers, maps and
 *           kernels take
 *   queue   runs its commands in order; other queues run beside it
 *   event   the k-th command of a queue: a plain value, never freed, done once the queue has come
 *           that far
 *
 * Handles are numbers that the device looks up: one that was freed, is another device's or was
 * never given is found and named, not followed. A device may be used from several threads. Every
 * function that fails says how in an ot_device_error (NULL: nobody wants to know).
 */
#ifndef OT_DEVICE_DEVICE_H
#define OT_DEVICE_DEVICE_H

#include "base/base.h"

typedef enum ot_dev_api { OT_DEV_OPENCL, OT_DEV_VULKAN, OT_DEV_CUDA, OT_DEV_APIS } ot_dev_api;

/* ---- errors ---- */

typedef enum ot_device_fault {
    OT_DEV_FINE = 0,
    OT_DEV_NOT_HERE,        /* no library, no such device */
    OT_DEV_OUT_OF_MEMORY,   /* of the device or the budget: requested, free, largest are set */
    OT_DEV_HOST_MEMORY,     /* of this process */
    OT_DEV_INVALID_POINTER, /* not of this device, freed already, or outside of its buffer */
    OT_DEV_INVALID_OBJECT,  /* a queue, event, program, map that is none, or not for this */
    OT_DEV_NO_MEMORY_TYPE,  /* no memory of the device has what is asked */
    OT_DEV_LOST,            /* the device went away; only ot_device_close helps */
    OT_DEV_COMPILE,         /* the device's compiler refused: its first words */
    OT_DEV_UNSUPPORTED,     /* the device or its API lacks this */
    OT_DEV_CANCELLED,       /* a request that never ran, because one before it failed */
    OT_DEV_FAILED           /* what the API calls otherwise */
} ot_device_fault;

typedef struct ot_device_error {
    ot_device_fault fault;
    /* bytes; largest: the largest block to be had at once. -1: unknown */
    int64_t requested, free, largest;
    char message[512]; /* one line */
} ot_device_error;

/* The error as the diagnosis of a command; returns its status: OT_E_USAGE (not here,
 * unsupported), OT_E_BUDGET (out of memory), OT_E_NOMEM, OT_E_SYSTEM. */
ot_status ot_device_tell(const ot_device_error *e, ot_diag *d);

/* ---- devices ---- */

typedef struct ot_device_facts {
    ot_dev_api api;
    uint32_t number;              /* of its API, from 0 */
    char name[128], version[128]; /* printable, whatever the driver says */
    bool is_cpu, has_f64, has_f16;
    /* 64-bit integers; elements of two bytes, of one, in buffers */
    bool has_i64, has_shorts, has_bytes;
    bool has_matrices;       /* CUDA: compute capability 8.0 and later */
    bool pins;               /* transfers want memory of the host that is pinned (ot_dev_pin) */
    bool maps_stay;          /* a buffer may be used by commands while it is mapped */
    bool unified;            /* host and device share one memory: maps copy nothing */
    int64_t memory_bytes;    /* of the device */
    int64_t allocation_most; /* bytes of one buffer */
    int64_t shared_bytes;    /* of a work-group ("local" in OpenCL) */
    int64_t constant_bytes;  /* of OT_DEV_MEM_CONSTANT; 0: none */
    int64_t alignment;       /* of a slice's offset that a kernel is given */
    int64_t granule;         /* of flushes and invalidations of maps */
    int64_t cache_line;      /* bytes; 0: unknown */
    int64_t cache_bytes;     /* of the cache before the device's memory; 0: unknown */
    uint32_t units;          /* compute units */
    /* float32 of a register that a work-item's vectors are kept in; 1: work-items are the lanes,
     * or unknown */
    uint32_t vector_floats;
    uint32_t items_most;  /* work-items of a work-group */
    uint32_t groups_most; /* work-groups along an axis */
    uint32_t slices_most; /* arguments of a kernel that are slices */
    int64_t steps_most;   /* iterations of all loops of a work-item; 0: as many as it takes */
} ot_device_facts;

typedef struct ot_device_list {
    ot_device_facts *devices; /* [n] */
    uint32_t n;
    char missing[OT_DEV_APIS][256]; /* why an API has no device, "" where it has */
} ot_device_list;

/* "opencl", "vulkan", "cuda". */
const char *ot_dev_api_name(ot_dev_api api);
/* Every device of every API, and one line for each API without one. Fails only for want of memory.
 */
ot_status ot_devices_list(ot_arena *a, ot_device_list **out) OT_MUST_USE;
/* "opencl", "vulkan:1": false when it is none of these. */
bool ot_device_parse(const char *text, ot_dev_api *api, uint32_t *number) OT_MUST_USE;

typedef struct ot_device ot_device;

typedef struct ot_device_options {
    int64_t budget; /* bytes that buffers may take together; 0: the device's memory */
    /* Vulkan: the Khronos validation layer, what it finds is counted in ot_device_findings */
    bool validate;
} ot_device_options;

/* OT_DEV_NOT_HERE names what is missing. o: NULL for defaults. *out is to be closed. */
ot_status ot_device_open(ot_dev_api api, uint32_t number, const ot_device_options *o,
                         ot_device_error *e, ot_device **out) OT_MUST_USE;
/* Waits for what runs, then frees everything, what was never freed included. Accepts NULL. */
void ot_device_close(ot_device *dev);
const ot_device_facts *ot_device_about(const ot_device *dev);
/* Lines like "buffer 'weights' of 4096 bytes was never freed", to f unless NULL; returns how many.
 */
uint32_t ot_device_leaks(ot_device *dev, FILE *f);
/* What the validation layer found, with its first line in *first (of the device; NULL: not wanted).
 */
uint32_t ot_device_findings(ot_device *dev, const char **first);

/* ---- buffers ---- */

typedef enum ot_dev_memory {
    OT_DEV_MEM_DEVICE,   /* what kernels reach fastest; the host only by transfers */
    OT_DEV_MEM_HOST,     /* host-visible: can be mapped, and staging of transfers */
    OT_DEV_MEM_UNIFIED,  /* both at once; OT_DEV_NO_MEMORY_TYPE where the device has none */
    OT_DEV_MEM_CONSTANT, /* read by kernels through the constant cache */
    OT_DEV_MEM_KINDS
} ot_dev_memory;
const char *ot_dev_memory_name(ot_dev_memory kind);

typedef enum ot_dev_access {
    OT_DEV_KERNEL_READS = 1,
    OT_DEV_KERNEL_WRITES = 2,
    OT_DEV_HOST_READS = 4, /* downloads and maps */
    OT_DEV_HOST_WRITES = 8,
    OT_DEV_ACCESS_ALL = 15
} ot_dev_access;

typedef struct ot_dev_buffer {
    uint64_t id; /* 0: none */
} ot_dev_buffer;

typedef struct ot_dev_buffer_options {
    const char *name; /* for messages and profiles; copied, cut at 47 bytes; NULL: "" */
    int64_t bytes;    /* > 0 */
    ot_dev_memory kind;
    uint32_t access; /* of ot_dev_access; 0: all */
    /* memory of the host to import (kind OT_DEV_MEM_HOST): it stays the caller's, until the
     * buffer is freed; NULL: none */
    void *host;
} ot_dev_buffer_options;

typedef struct ot_dev_slice {
    ot_dev_buffer buffer;
    int64_t offset, bytes;
} ot_dev_slice;

ot_status ot_dev_buffer_new(ot_device *dev, const ot_dev_buffer_options *o, ot_device_error *e,
                            ot_dev_buffer *out) OT_MUST_USE;
/* Waits for commands that use it. OT_DEV_INVALID_POINTER: freed before, another device's, none
 * at all; OT_DEV_INVALID_OBJECT: mapped. */
ot_status ot_dev_buffer_free(ot_device *dev, ot_dev_buffer b, ot_device_error *e);
/* The whole of it; all zero for what is no buffer of this device. */
ot_dev_slice ot_dev_whole(ot_device *dev, ot_dev_buffer b);

typedef struct ot_device_usage {
    int64_t used, peak, budget; /* bytes of buffers */
    uint32_t n_buffers;
    uint64_t n_allocated, n_freed, bytes_allocated, bytes_freed;
    double allocate_seconds;       /* in the driver, making and freeing them */
    uint64_t n_mapped, n_map_hits; /* maps opened, and those that found the buffer mapped */
} ot_device_usage;
ot_device_usage ot_device_use(ot_device *dev);

/* ---- queues and events ---- */

typedef struct ot_dev_queue {
    uint64_t id;
} ot_dev_queue;

typedef struct ot_dev_event {
    ot_dev_queue queue;
    uint64_t serial; /* of the command in its queue, from 1; 0: done already */
} ot_dev_event;

/* What a command waits for, next to those before it in its own queue. */
typedef struct ot_dev_after {
    const ot_dev_event *events; /* [n] */
    uint32_t n;
} ot_dev_after;

ot_status ot_dev_queue_new(ot_device *dev, ot_device_error *e, ot_dev_queue *out) OT_MUST_USE;
/* Waits for its commands. */
ot_status ot_dev_queue_free(ot_device *dev, ot_dev_queue q, ot_device_error *e);
/* Hand over what was asked so far; returns before it is done. */
ot_status ot_dev_flush(ot_device *dev, ot_dev_queue q, ot_device_error *e) OT_MUST_USE;
/* Until everything in the queue is done, until one command is. Once a command failed on the
 * device, all who wait for its queue are told so: free the queue. */
ot_status ot_dev_finish(ot_device *dev, ot_dev_queue q, ot_device_error *e) OT_MUST_USE;
ot_status ot_dev_wait(ot_device *dev, ot_dev_event ev, ot_device_error *e) OT_MUST_USE;
/* Seconds of the device's clock at which a command that is done began and ended; false: not
 * done, or more than 1,000 commands ago. */
bool ot_dev_times(ot_device *dev, ot_dev_event ev, double *start, double *end);

/* ---- transfers: each returns when it is queued; *done may be NULL, after may be NULL ---- */

/* Memory of the host may be read as early as the call and written as late as the wait: nothing
 * on the device orders two transfers that meet there. */

/* from: [to.bytes], untouched until the event is done. */
ot_status ot_dev_upload(ot_device *dev, ot_dev_queue q, ot_dev_slice to, const void *from,
                        const ot_dev_after *after, ot_device_error *e,
                        ot_dev_event *done) OT_MUST_USE;
/* to: [from.bytes], there when somebody has seen that the event is done. */
ot_status ot_dev_download(ot_device *dev, ot_dev_queue q, void *to, ot_dev_slice from,
                          const ot_dev_after *after, ot_device_error *e,
                          ot_dev_event *done) OT_MUST_USE;
/* Equal bytes on both sides; parts of one buffer may not overlap. */
ot_status ot_dev_copy(ot_device *dev, ot_dev_queue q, ot_dev_slice to, ot_dev_slice from,
                      const ot_dev_after *after, ot_device_error *e,
                      ot_dev_event *done) OT_MUST_USE;
/* A 32-bit pattern over a slice whose offset and bytes are multiples of 4. */
ot_status ot_dev_fill(ot_device *dev, ot_dev_queue q, ot_dev_slice to, uint32_t pattern,
                      const ot_dev_after *after, ot_device_error *e,
                      ot_dev_event *done) OT_MUST_USE;

/* ---- maps: maps.c ---- */

/* Pin whole pages of the caller's memory, so that transfers from and to it go on beside kernels:
 * CUDA takes other memory in pieces, and a download into it ends before the call does. false: not
 * possible, or no use (facts.pins); transfers work all the same. To be unpinned before it is
 * freed. */
bool ot_dev_pin(ot_device *dev, void *memory, size_t bytes);
void ot_dev_unpin(ot_device *dev, void *memory);

/* A window of the host into a buffer of kind host or unified. The first map of a buffer maps all
 * of it, and it stays so: later ones are hits, whatever their range. What the host writes is the
 * device's after a flush, or when the map is closed; what the device wrote is the host's when a
 * map is opened, or after an invalidation. Maps that overlap are closed in the reverse order.
 * While one is open, OpenCL lets no command use the buffer (facts.maps_stay false): it is
 * refused. */
typedef struct ot_dev_map {
    uint64_t id;
} ot_dev_map;

/* access: OT_DEV_HOST_READS, OT_DEV_HOST_WRITES or both, as the buffer's allows. Waits for
 * commands that use the buffer. */
ot_status ot_dev_map_open(ot_device *dev, ot_dev_slice s, uint32_t access, ot_device_error *e,
                          ot_dev_map *out, void **data) OT_MUST_USE;
/* A part of the map, from its begin; rounded out to the device's granule. */
ot_status ot_dev_map_flush(ot_device *dev, ot_dev_map m, int64_t offset, int64_t bytes,
                           ot_device_error *e) OT_MUST_USE;
ot_status ot_dev_map_invalidate(ot_device *dev, ot_dev_map m, int64_t offset, int64_t bytes,
                                ot_device_error *e) OT_MUST_USE;
/* Flushes what was mapped for writing. OT_DEV_INVALID_OBJECT: closed before, or one that
 * overlaps was opened later and is open. */
ot_status ot_dev_map_close(ot_device *dev, ot_dev_map m, ot_device_error *e);

/* ---- programs and kernels ---- */

typedef enum ot_dev_language {
    OT_DEV_NATIVE, /* text of the API: OpenCL C, GLSL (compute), CUDA C or PTX */
    OT_DEV_BINARY  /* what ot_dev_program_binary gave, of the same device and version */
} ot_dev_language;

typedef struct ot_dev_program {
    uint64_t id;
} ot_dev_program;

typedef struct ot_dev_source {
    const char *name; /* of messages */
    ot_dev_language language;
    const void *text;
    size_t n;            /* bytes of text */
    const char *options; /* of the device's compiler; NULL: none */
} ot_dev_source;

ot_status ot_dev_program_new(ot_device *dev, const ot_dev_source *s, ot_device_error *e,
                             ot_dev_program *out) OT_MUST_USE;
ot_status ot_dev_program_free(ot_device *dev, ot_dev_program p, ot_device_error *e);
/* What was compiled, to be kept on disk: *data is a's. */
ot_status ot_dev_program_binary(ot_device *dev, ot_dev_program p, ot_arena *a, ot_device_error *e,
                                void **data, size_t *n) OT_MUST_USE;

typedef enum ot_dev_arg_kind {
    /* a buffer's part: offset a multiple of facts.alignment. Vulkan: the k-th slice is binding k
     * of set 0 */
    OT_DEV_ARG_SLICE,
    /* a number. Vulkan: push constants, one after the other, each aligned to its size */
    OT_DEV_ARG_VALUE,
    OT_DEV_ARG_SHARED /* bytes of the work-group's memory. Vulkan: none, the text declares them */
} ot_dev_arg_kind;

typedef struct ot_dev_arg {
    ot_dev_arg_kind kind;
    ot_dev_slice slice;
    bool written;   /* SLICE: the kernel writes it; refused where the buffer's access forbids it */
    uint8_t bytes;  /* VALUE: 1 to 8 */
    uint64_t value; /* VALUE: its bits; SHARED: bytes */
} ot_dev_arg;

#define OT_DEV_ARGS_MAX 128 /* OpenCL: 1024 bytes of arguments are always there */

typedef struct ot_dev_launch {
    ot_dev_program program;
    /* of the program. Vulkan: in messages alone, the text's entry is main */
    const char *entry;
    const char *name;       /* in profiles, copied, cut at 47 bytes; NULL: the entry */
    const ot_dev_arg *args; /* [n_args] at most OT_DEV_ARGS_MAX */
    uint32_t n_args;
    /* in profiles: that it reads and writes; 0: those of its slices */
    int64_t bytes;
    /* work-groups, and work-items of each; 0 is 1. Vulkan: items are what the text says */
    uint32_t groups[3], items[3];
} ot_dev_launch;

ot_status ot_dev_run(ot_device *dev, ot_dev_queue q, const ot_dev_launch *l,
                     const ot_dev_after *after, ot_device_error *e, ot_dev_event *done) OT_MUST_USE;

/* ---- arguments, briefly ---- */

static inline ot_dev_arg ot_dev_reads(ot_dev_slice s)
{
    return (ot_dev_arg){.kind = OT_DEV_ARG_SLICE, .slice = s};
}
static inline ot_dev_arg ot_dev_writes(ot_dev_slice s)
{
    return (ot_dev_arg){.kind = OT_DEV_ARG_SLICE, .slice = s, .written = true};
}
static inline ot_dev_arg ot_dev_shared(int64_t bytes)
{
    return (ot_dev_arg){.kind = OT_DEV_ARG_SHARED, .value = (uint64_t)bytes};
}
static inline ot_dev_arg ot_dev_i32(int32_t v)
{
    return (ot_dev_arg){.kind = OT_DEV_ARG_VALUE, .bytes = 4, .value = (uint32_t)v};
}
static inline ot_dev_arg ot_dev_i64(int64_t v)
{
    return (ot_dev_arg){.kind = OT_DEV_ARG_VALUE, .bytes = 8, .value = (uint64_t)v};
}
static inline ot_dev_arg ot_dev_f32(float v)
{
    ot_dev_arg a = {.kind = OT_DEV_ARG_VALUE, .bytes = 4};
    memcpy(&a.value, &v, sizeof v);
    return a;
}

#endif
