/* A device that is none, for tests: commands wait until somebody asks, maps are out of step
 * until they are synced, and any call of any driver can be made to fail.
 *
 *   fake_driver          memory of the host; a queue runs one command at each look, or as many as
 *                        are waited for
 *   faulty(&driver)      the same driver, whose call number fault_at fails with a fault of choice
 */
#ifndef TEST_FAKE_DRIVER_H
#define TEST_FAKE_DRIVER_H

#include "device_rig.h"

typedef struct fake_buffer {
    uint8_t *store, *shadow; /* what the device sees, what a map sees; shadow NULL: not mapped */
} fake_buffer;

typedef struct fake_queue {
    dev_command *commands; /* [n] not run yet */
    dev_part (*parts)[OT_DEV_ARGS_MAX];
    uint32_t n, cap;
} fake_queue;

static int64_t fake_granule = 64, fake_alignment = 64, fake_memory = 1 << 20;
static uint64_t fake_runs; /* commands that ran */
static double fake_clock;
static dev_verb fake_order[4096]; /* of the first that ran */
static ot_dev_slice fake_ranges[4096];

static inline ot_status fake_list(ot_arena *a, ot_device_list *l)
{
    (void)a;
    (void)l;
    return OT_OK;
}

static inline ot_status fake_open(ot_device *dev, uint32_t number, ot_device_error *e)
{
    (void)e;
    dev->facts = (ot_device_facts){.number = number,
                                   .name = "fake",
                                   .maps_stay = true,
                                   .memory_bytes = fake_memory,
                                   .allocation_most = fake_memory / 2,
                                   .shared_bytes = 1024,
                                   .constant_bytes = 1024,
                                   .alignment = fake_alignment,
                                   .granule = fake_granule,
                                   .items_most = 64};
    return OT_OK;
}

static inline void fake_close(ot_device *dev) { (void)dev; }

static inline ot_status fake_buffer_new(ot_device *dev, dev_buffer *b, ot_device_error *e)
{
    fake_buffer *f = calloc(1, sizeof *f);
    (void)dev;
    (void)e;
    assert_non_null(f);
    f->store = b->host ? b->host : malloc((size_t)b->bytes);
    if (!b->host) memset(f->store, 0xcd, (size_t)b->bytes);
    b->api = f;
    return OT_OK;
}

static inline void fake_buffer_free(ot_device *dev, dev_buffer *b)
{
    fake_buffer *f = b->api;
    (void)dev;
    assert_null(f->shadow);
    if (!b->host) free(f->store);
    free(f);
}

static inline ot_status fake_map(ot_device *dev, dev_buffer *b, ot_device_error *e)
{
    fake_buffer *f = b->api;
    (void)dev;
    (void)e;
    assert_null(f->shadow);
    f->shadow = malloc((size_t)b->bytes);
    assert_non_null(f->shadow);
    memcpy(f->shadow, f->store, (size_t)b->bytes);
    b->mapped = f->shadow;
    return OT_OK;
}

static inline void fake_unmap(ot_device *dev, dev_buffer *b)
{
    fake_buffer *f = b->api;
    (void)dev;
    assert_int_equal(b->n_maps, 0);
    free(f->shadow);
    f->shadow = NULL;
    b->mapped = NULL;
}

static inline ot_status fake_sync(ot_device *dev, dev_buffer *b, int64_t offset, int64_t bytes,
                                  bool to_device, ot_device_error *e)
{
    fake_buffer *f = b->api;
    (void)dev;
    (void)e;
    assert_true(offset % fake_granule == 0 &&
                (bytes % fake_granule == 0 || offset + bytes == b->bytes));
    if (to_device)
        memcpy(f->store + offset, f->shadow + offset, (size_t)bytes);
    else
        memcpy(f->shadow + offset, f->store + offset, (size_t)bytes);
    return OT_OK;
}

static inline ot_status fake_queue_new(ot_device *dev, dev_queue *q, ot_device_error *e)
{
    (void)dev;
    (void)e;
    q->api = calloc(1, sizeof(fake_queue));
    assert_non_null(q->api);
    return OT_OK;
}

static inline void fake_queue_free(ot_device *dev, dev_queue *q)
{
    fake_queue *f = q->api;
    (void)dev;
    assert_int_equal(f->n, 0);
    free(f->commands);
    free(f->parts);
    free(f);
}

static inline ot_status fake_submit(ot_device *dev, dev_queue *q, const dev_command *c,
                                    ot_device_error *e)
{
    fake_queue *f = q->api;
    (void)dev;
    (void)e;
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 8;
        f->commands = realloc(f->commands, f->cap * sizeof *f->commands);
        f->parts = realloc(f->parts, f->cap * sizeof *f->parts);
        assert_true(f->commands && f->parts);
    }
    if (c->launch) memcpy(f->parts[f->n], c->parts, c->launch->n_args * sizeof *c->parts);
    for (uint32_t k = c->launch ? c->launch->n_args : 0; k < OT_DEV_ARGS_MAX; k++)
        f->parts[f->n][k].buffer = NULL;
    f->commands[f->n++] = *c;
    return OT_OK;
}

static inline ot_status fake_flush(ot_device *dev, dev_queue *q, ot_device_error *e)
{
    (void)dev;
    (void)q;
    (void)e;
    return OT_OK;
}

static inline uint8_t *fake_at(const dev_part *p)
{
    return ((fake_buffer *)p->buffer->api)->store + p->offset;
}

static inline void fake_run_first(ot_device *dev, dev_queue *q)
{
    fake_queue *f = q->api;
    dev_command c = f->commands[0];
    for (uint32_t k = 0; k < c.n_waits; k++)
        while (c.waits[k].queue->done < c.waits[k].serial) fake_run_first(dev, c.waits[k].queue);
    switch (c.verb) {
    case DEV_UPLOAD: memcpy(fake_at(&c.to), c.source, (size_t)c.to.bytes); break;
    case DEV_DOWNLOAD: memcpy(c.sink, fake_at(&c.from), (size_t)c.from.bytes); break;
    case DEV_COPY: memmove(fake_at(&c.to), fake_at(&c.from), (size_t)c.to.bytes); break;
    case DEV_FILL:
        for (int64_t k = 0; k < c.to.bytes; k++)
            fake_at(&c.to)[k] = (uint8_t)(c.pattern >> (k % 4 * 8));
        break;
    default: /* a kernel adds one to every byte of its slices */
        for (uint32_t k = 0; k < OT_DEV_ARGS_MAX; k++)
            for (int64_t i = 0; f->parts[0][k].buffer && i < f->parts[0][k].bytes; i++)
                fake_at(&f->parts[0][k])[i]++;
    }
    if (fake_runs < 4096) {
        const dev_part *p = c.to.buffer ? &c.to : &c.from;
        fake_order[fake_runs] = c.verb;
        fake_ranges[fake_runs] = (ot_dev_slice){
            {p->buffer ? p->buffer->id : 0}, p->offset, p->bytes};
    }
    fake_runs++;
    fake_clock += 1e-3;
    f->n--;
    memmove(f->commands, f->commands + 1, f->n * sizeof *f->commands);
    memmove(f->parts, f->parts + 1, f->n * sizeof *f->parts);
    dev_retire(dev, q, c.serial, fake_clock - 1e-3, fake_clock, true);
}

static inline ot_status fake_poll(ot_device *dev, dev_queue *q, ot_device_error *e)
{
    (void)e;
    if (((fake_queue *)q->api)->n > 0) fake_run_first(dev, q);
    return OT_OK;
}

static inline ot_status fake_wait(ot_device *dev, dev_queue *q, uint64_t serial, ot_device_error *e)
{
    (void)e;
    dev_lock(dev);
    while (q->done < serial) fake_run_first(dev, q);
    dev_unlock(dev);
    return OT_OK;
}

static inline ot_status fake_program_new(ot_device *dev, dev_program *p, const ot_dev_source *s,
                                         ot_device_error *e)
{
    (void)dev;
    (void)p;
    (void)s;
    (void)e;
    return OT_OK;
}

static inline void fake_program_free(ot_device *dev, dev_program *p)
{
    (void)dev;
    (void)p;
}

static inline ot_status fake_binary(ot_device *dev, dev_program *p, ot_arena *a, ot_device_error *e,
                                    void **data, size_t *n)
{
    (void)dev;
    (void)p;
    (void)e;
    *n = 1;
    *data = ot_alloc(a, 1);
    return OT_OK;
}

static const dev_driver fake_driver = {.list = fake_list,
                                       .open = fake_open,
                                       .close = fake_close,
                                       .buffer_new = fake_buffer_new,
                                       .buffer_free = fake_buffer_free,
                                       .map = fake_map,
                                       .unmap = fake_unmap,
                                       .sync = fake_sync,
                                       .queue_new = fake_queue_new,
                                       .queue_free = fake_queue_free,
                                       .submit = fake_submit,
                                       .flush = fake_flush,
                                       .poll = fake_poll,
                                       .wait = fake_wait,
                                       .program_new = fake_program_new,
                                       .program_free = fake_program_free,
                                       .program_binary = fake_binary};

/* ---- faults ---- */

static const dev_driver *fault_base;
static int64_t fault_calls, fault_at = -1; /* calls so far; the one that fails, from 0 */
static ot_device_fault fault_kind;

static inline ot_status fault_here(ot_device *dev, ot_device_error *e)
{
    if (fault_calls++ != fault_at) return OT_OK;
    if (fault_kind == OT_DEV_OUT_OF_MEMORY) return dev_fail_full(dev, e, "injected", 1);
    return dev_fail(e, fault_kind, "injected");
}

#define FAULTY(name, params, args)               \
    static inline ot_status faulty_##name params \
    {                                            \
        OT_TRY(fault_here(dev, e));              \
        return fault_base->name args;            \
    }
FAULTY(open, (ot_device * dev, uint32_t number, ot_device_error *e), (dev, number, e))
FAULTY(buffer_new, (ot_device * dev, dev_buffer *b, ot_device_error *e), (dev, b, e))
FAULTY(map, (ot_device * dev, dev_buffer *b, ot_device_error *e), (dev, b, e))
FAULTY(sync, (ot_device * dev, dev_buffer *b, int64_t o, int64_t n, bool to, ot_device_error *e),
       (dev, b, o, n, to, e))
FAULTY(queue_new, (ot_device * dev, dev_queue *q, ot_device_error *e), (dev, q, e))
FAULTY(submit, (ot_device * dev, dev_queue *q, const dev_command *c, ot_device_error *e),
       (dev, q, c, e))
FAULTY(flush, (ot_device * dev, dev_queue *q, ot_device_error *e), (dev, q, e))
FAULTY(program_new, (ot_device * dev, dev_program *p, const ot_dev_source *s, ot_device_error *e),
       (dev, p, s, e))
FAULTY(program_binary,
       (ot_device * dev, dev_program *p, ot_arena *a, ot_device_error *e, void **data, size_t *n),
       (dev, p, a, e, data, n))

static inline dev_driver faulty(const dev_driver *base)
{
    dev_driver d = *base;
    fault_base = base;
    fault_calls = 0;
    d.open = faulty_open;
    d.buffer_new = faulty_buffer_new;
    d.map = faulty_map;
    d.sync = faulty_sync;
    d.queue_new = faulty_queue_new;
    d.submit = faulty_submit;
    d.flush = faulty_flush;
    d.program_new = faulty_program_new;
    d.program_binary = faulty_program_binary;
    return d;
}

static inline ot_device *open_fake(int64_t budget)
{
    ot_device *dev = NULL;
    FINE(dev_open_with(&fake_driver, 0, &(ot_device_options){.budget = budget}, e, &dev));
    return dev;
}

#endif
