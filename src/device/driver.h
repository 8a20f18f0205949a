/* What an API has to bring, and what the layer above keeps of its objects. Private to device/.
 *
 * The layer checks handles, access, ranges, alignment, budget; a driver is handed records that
 * are right and says what its API answered. All calls come under the device's lock, but `wait`,
 * which may take long and takes the lock for what it looks up.
 */
#ifndef OT_DEVICE_DRIVER_H
#define OT_DEVICE_DRIVER_H

#include "device.h"

#include <pthread.h>

typedef struct dev_slots { /* handles -> records: index 24 bits, generation 24, kind 4, device 12 */
    void **records;        /* [cap] NULL: free */
    uint32_t *generations; /* [cap] of the record that is, or was last */
    uint32_t n, cap;       /* slots that were ever used */
} dev_slots;

typedef enum dev_kind { DEV_BUFFER = 1, DEV_QUEUE, DEV_PROGRAM, DEV_MAP, DEV_KINDS } dev_kind;

#define DEV_QUEUES_MOST 16 /* of a device at a time */

typedef struct dev_buffer {
    uint64_t id;
    char name[48];
    int64_t bytes;
    ot_dev_memory kind;
    uint32_t access;
    void *host;                             /* imported memory; NULL: none */
    ot_dev_event last_use[DEV_QUEUES_MOST]; /* of each queue that used it; queue.id 0: none */
    uint32_t n_maps;                        /* that are open */
    /* where all of it is mapped; NULL: nowhere. The driver may unmap it when n_maps is 0 */
    void *mapped;
    void *api; /* the driver's */
} dev_buffer;

#define DEV_TIMES 1024 /* commands of a queue whose times are kept */

typedef struct dev_queue {
    uint64_t id;
    uint64_t issued, done; /* serials: of the last command, and all up to it are done */
    struct {
        double start, end;
    } times[DEV_TIMES]; /* of command s: [s % DEV_TIMES] */
    bool failed;        /* a command failed on the device: told to everybody who waits */
    void *api;
} dev_queue;

typedef struct dev_program {
    uint64_t id;
    char name[48];
    void *api;
} dev_program;

typedef struct dev_map {
    uint64_t id, order; /* order: of opening */
    dev_buffer *buffer;
    int64_t offset, bytes;
    uint32_t access;
} dev_map;

typedef enum dev_verb {
    DEV_UPLOAD,
    DEV_DOWNLOAD,
    DEV_COPY,
    DEV_FILL,
    DEV_LAUNCH,
    DEV_VERBS
} dev_verb;

typedef struct dev_part {
    dev_buffer *buffer;
    int64_t offset, bytes;
} dev_part;

typedef struct dev_command {
    dev_verb verb;
    uint64_t serial;
    dev_part to, from;  /* of transfers */
    const void *source; /* UPLOAD */
    void *sink;         /* DOWNLOAD */
    uint32_t pattern;   /* FILL */
    const ot_dev_launch *launch;
    dev_program *program;
    /* [launch->n_args] of LAUNCH; buffer NULL where the argument is no slice */
    const dev_part *parts;
    struct dev_wait {
        dev_queue *queue;
        uint64_t serial;
    } waits[DEV_QUEUES_MOST]; /* [n_waits] the latest of each other queue, none done */
    uint32_t n_waits;
} dev_command;

typedef struct dev_driver {
    ot_dev_api api;
    /* Adds its devices to the list, or says why there are none. Fails for want of memory only. */
    ot_status (*list)(ot_arena *a, ot_device_list *l);
    ot_status (*open)(ot_device *dev, uint32_t number, ot_device_error *e);
    void (*close)(ot_device *dev); /* of what `open` made as far as it came; objects are gone */
    ot_status (*buffer_new)(ot_device *dev, dev_buffer *b, ot_device_error *e);
    void (*buffer_free)(ot_device *dev, dev_buffer *b);
    /* Map all of the buffer: b->mapped. Nothing that uses it runs. */
    ot_status (*map)(ot_device *dev, dev_buffer *b, ot_device_error *e);
    void (*unmap)(ot_device *dev, dev_buffer *b);
    /* Make the host's writes the device's, or the device's the host's; the range is a multiple
     * of the granule or reaches the end. */
    ot_status (*sync)(ot_device *dev, dev_buffer *b, int64_t offset, int64_t bytes, bool to_device,
                      ot_device_error *e);
    /* Memory of the host for transfers; NULL: any does. */
    bool (*pin)(ot_device *dev, void *memory, size_t bytes);
    void (*unpin)(ot_device *dev, void *memory);
    ot_status (*queue_new)(ot_device *dev, dev_queue *q, ot_device_error *e);
    void (*queue_free)(ot_device *dev, dev_queue *q);
    /* Queue the command; it gets its serial by the layer. */
    ot_status (*submit)(ot_device *dev, dev_queue *q, const dev_command *c, ot_device_error *e);
    ot_status (*flush)(ot_device *dev, dev_queue *q, ot_device_error *e);
    /* Calls dev_retire for every command that is done, in order. */
    ot_status (*poll)(ot_device *dev, dev_queue *q, ot_device_error *e);
    ot_status (*wait)(ot_device *dev, dev_queue *q, uint64_t serial,
                      ot_device_error *e); /* unlocked; flushes; poll comes after it */
    ot_status (*program_new)(ot_device *dev, dev_program *p, const ot_dev_source *s,
                             ot_device_error *e);
    void (*program_free)(ot_device *dev, dev_program *p);
    ot_status (*program_binary)(ot_device *dev, dev_program *p, ot_arena *a, ot_device_error *e,
                                void **data, size_t *n);
} dev_driver;

typedef struct dev_profile dev_profile; /* profile.c */

struct ot_device {
    const dev_driver *driver;
    pthread_mutex_t lock; /* recursive */
    ot_device_facts facts;
    ot_device_options options;
    uint32_t mark; /* of its handles */
    dev_slots slots[DEV_KINDS];
    ot_device_usage usage;
    dev_profile *profile; /* NULL: nothing is recorded */
    bool lost;
    uint64_t maps_opened;
    uint32_t n_findings;
    char first_finding[512];
    void *api; /* the driver's */
};

/* What this program was built with: NULL where there were no headers. */
extern const dev_driver *const dev_drivers[OT_DEV_APIS];
extern const dev_driver dev_opencl, dev_vulkan, dev_cuda;

/* ---- device.c ---- */

/* ot_device_open with a driver of one's own (tests). */
ot_status dev_open_with(const dev_driver *driver, uint32_t number, const ot_device_options *o,
                        ot_device_error *e, ot_device **out) OT_MUST_USE;

/* ---- errors.c ---- */

/* Fills *e (NULL: nothing) and returns its status. */
ot_status dev_fail(ot_device_error *e, ot_device_fault fault, const char *fmt, ...) OT_PRINTF(3, 4);
/* Out of memory: the figures and a line with them. what: "buffer 'x'". */
ot_status dev_fail_full(const ot_device *dev, ot_device_error *e, const char *what,
                        int64_t requested);
ot_status dev_fail_host_memory(ot_device_error *e);

/* ---- profile.c: records, when they are wanted ---- */

/* bytes: + made, - freed; seconds of the host. */
void dev_profile_memory(ot_device *dev, const char *name, int64_t bytes, double start, double end);
void dev_profile_command(ot_device *dev, const dev_queue *q, const dev_command *c);
void dev_profile_retire(ot_device *dev, const dev_queue *q, uint64_t serial, double start,
                        double end);
void dev_profile_free(ot_device *dev);

/* ---- memory_types.c ---- */

/* flags: [n] properties of memory types; allowed: a bit for each. The first that has all of
 * preferred, else the first that has all of required; OT_NONE: none. */
uint32_t dev_choose_memory(const uint32_t *flags, uint32_t n, uint32_t allowed, uint32_t required,
                           uint32_t preferred);

/* ---- slots.c ---- */

/* A handle for the record, 0 when memory ran out. */
uint64_t dev_slot_add(ot_device *dev, dev_kind kind, void *record);
/* The record; else fails with what is wrong with the handle: `fault` is INVALID_POINTER or
 * INVALID_OBJECT. */
ot_status dev_slot_get(ot_device *dev, dev_kind kind, uint64_t id, ot_device_fault fault,
                       ot_device_error *e, void **out);
void dev_slot_drop(ot_device *dev, dev_kind kind, uint64_t id);
void dev_slots_free(dev_slots *s);

/* ---- commands.c ---- */

/* The slice as a part of its buffer. Fails when the handle is wrong, the range is not inside, or
 * the access is not allowed. */
ot_status dev_part_of(ot_device *dev, ot_dev_slice s, uint32_t access, ot_device_error *e,
                      dev_part *out);
/* Until the command is done, well or not. Not locked. */
void dev_await(ot_device *dev, ot_dev_event ev);
/* Until what uses the buffer is done. Not locked. */
void dev_await_buffer(ot_device *dev, uint64_t id);
/* Command `serial`, the next of the queue, is done; seconds of the device's clock. For drivers. */
void dev_retire(ot_device *dev, dev_queue *q, uint64_t serial, double start, double end, bool ok);

static inline void dev_lock(ot_device *dev) { pthread_mutex_lock(&dev->lock); }
static inline void dev_unlock(ot_device *dev) { pthread_mutex_unlock(&dev->lock); }

#endif
