/* Queues, events and what runs in them: checked here, then handed to the driver.
 *
 *   ot_dev_upload(q, to, from, after) --parts, access, waits--> dev_command --serial-->
 *   driver->submit
 *   driver->poll --dev_retire(serial, times)--> queue.done
 */
#include "driver.h"

/* ---- parts and waits ---- */

static ot_status get_queue(ot_device *dev, ot_dev_queue handle, ot_device_error *e, dev_queue **out)
{
    void *record;
    *out = NULL;
    if (dev->lost) return dev_fail(e, OT_DEV_LOST, "'%s' was lost", dev->facts.name);
    OT_TRY(dev_slot_get(dev, DEV_QUEUE, handle.id, OT_DEV_INVALID_OBJECT, e, &record));
    *out = record;
    return OT_OK;
}

ot_status dev_part_of(ot_device *dev, ot_dev_slice s, uint32_t access, ot_device_error *e,
                      dev_part *out)
{
    static const char *const names[] = {"kernels that read", "kernels that write",
                                        "reads of the host", "writes of the host"};
    void *record;
    *out = (dev_part){0};
    OT_TRY(dev_slot_get(dev, DEV_BUFFER, s.buffer.id, OT_DEV_INVALID_POINTER, e, &record));
    dev_buffer *b = record;
    if (s.offset < 0 || s.bytes <= 0 || s.offset > b->bytes || s.bytes > b->bytes - s.offset)
        return dev_fail(e, OT_DEV_INVALID_POINTER,
                        "buffer '%s' of %lld bytes: %lld bytes from %lld are outside", b->name,
                        (long long)b->bytes, (long long)s.bytes, (long long)s.offset);
    for (uint32_t k = 0; k < 4; k++)
        if ((access & 1u << k) && !(b->access & 1u << k))
            return dev_fail(e, OT_DEV_INVALID_OBJECT, "buffer '%s' is not for %s", b->name,
                            names[k]);
    *out = (dev_part){b, s.offset, s.bytes};
    return OT_OK;
}

/* An event of another queue that is not done joins the command's waits. */
static ot_status add_wait(ot_device *dev, const dev_queue *q, ot_dev_event ev, dev_command *c,
                          ot_device_error *e)
{
    dev_queue *other;
    if (ev.serial == 0) return OT_OK;
    OT_TRY(get_queue(dev, ev.queue, e, &other));
    if (ev.serial > other->issued)
        return dev_fail(e, OT_DEV_INVALID_OBJECT, "an event of a command that was never given");
    if (other == q || ev.serial <= other->done) return OT_OK;
    uint32_t k = 0;
    while (k < c->n_waits && c->waits[k].queue != other) k++;
    if (k == c->n_waits) c->waits[c->n_waits++] = (struct dev_wait){other, 0};
    if (ev.serial > c->waits[k].serial) c->waits[k].serial = ev.serial;
    return OT_OK;
}

static void note_use(ot_device *dev, dev_buffer *b, const dev_queue *q)
{
    uint32_t at = DEV_QUEUES_MOST;
    for (uint32_t k = 0; k < DEV_QUEUES_MOST; k++) {
        void *record;
        uint64_t id = b->last_use[k].queue.id;
        bool is_free = id == 0 || dev_slot_get(dev, DEV_QUEUE, id, OT_DEV_INVALID_OBJECT, NULL,
                                               &record) != OT_OK;
        if (id == q->id || (is_free && at == DEV_QUEUES_MOST)) at = k;
        if (id == q->id) break;
    }
    if (at == DEV_QUEUES_MOST) OT_BUG("more queues than there can be");
    b->last_use[at] = (ot_dev_event){{q->id}, q->issued};
}

/* Where maps do not stay, a mapped buffer is unmapped for the command, or refused. */
static ot_status check_maps(ot_device *dev, dev_buffer *b, ot_device_error *e)
{
    if (!b || !b->mapped || dev->facts.maps_stay) return OT_OK;
    if (b->n_maps > 0)
        return dev_fail(e, OT_DEV_INVALID_OBJECT, "buffer '%s' is mapped: no command can use it",
                        b->name);
    dev->driver->unmap(dev, b);
    return OT_OK;
}

/* Parts are filled in. Locked. */
static ot_status submit(ot_device *dev, dev_queue *q, dev_command *c, const ot_dev_after *after,
                        ot_device_error *e, ot_dev_event *done)
{
    for (uint32_t k = 0; after && k < after->n; k++)
        OT_TRY(add_wait(dev, q, after->events[k], c, e));
    OT_TRY(check_maps(dev, c->to.buffer, e));
    OT_TRY(check_maps(dev, c->from.buffer, e));
    for (uint32_t k = 0; c->launch && k < c->launch->n_args; k++)
        OT_TRY(check_maps(dev, c->parts[k].buffer, e));
    c->serial = q->issued + 1;
    OT_TRY(dev->driver->submit(dev, q, c, e));
    q->issued = c->serial;
    if (dev->profile) dev_profile_command(dev, q, c);
    if (c->to.buffer) note_use(dev, c->to.buffer, q);
    if (c->from.buffer) note_use(dev, c->from.buffer, q);
    for (uint32_t k = 0; c->launch && k < c->launch->n_args; k++)
        if (c->parts[k].buffer) note_use(dev, c->parts[k].buffer, q);
    if (done) *done = (ot_dev_event){{q->id}, c->serial};
    return OT_OK;
}

/* ---- transfers ---- */

static ot_status transfer(ot_device *dev, ot_dev_queue handle, dev_command *c,
                          const ot_dev_slice *to, const ot_dev_slice *from,
                          const ot_dev_after *after, ot_device_error *e, ot_dev_event *done)
{
    dev_queue *q;
    OT_TRY(get_queue(dev, handle, e, &q));
    if (to)
        OT_TRY(dev_part_of(dev, *to, c->verb == DEV_UPLOAD ? OT_DEV_HOST_WRITES : 0, e, &c->to));
    if (from)
        OT_TRY(
            dev_part_of(dev, *from, c->verb == DEV_DOWNLOAD ? OT_DEV_HOST_READS : 0, e, &c->from));
    if (c->verb == DEV_COPY && c->to.bytes != c->from.bytes)
        return dev_fail(e, OT_DEV_INVALID_POINTER, "a copy of %lld bytes to %lld",
                        (long long)c->from.bytes, (long long)c->to.bytes);
    if (c->verb == DEV_COPY && c->to.buffer == c->from.buffer &&
        c->to.offset < c->from.offset + c->from.bytes &&
        c->from.offset < c->to.offset + c->to.bytes)
        return dev_fail(e, OT_DEV_INVALID_POINTER, "buffer '%s': a copy onto itself",
                        c->to.buffer->name);
    if (c->verb == DEV_FILL && (c->to.offset % 4 || c->to.bytes % 4))
        return dev_fail(e, OT_DEV_INVALID_POINTER,
                        "buffer '%s': %lld bytes from %lld are no whole words to fill",
                        c->to.buffer->name, (long long)c->to.bytes, (long long)c->to.offset);
    return submit(dev, q, c, after, e, done);
}

ot_status ot_dev_upload(ot_device *dev, ot_dev_queue q, ot_dev_slice to, const void *from,
                        const ot_dev_after *after, ot_device_error *e, ot_dev_event *done)
{
    dev_command c = {.verb = DEV_UPLOAD, .source = from};
    dev_lock(dev);
    ot_status s = transfer(dev, q, &c, &to, NULL, after, e, done);
    dev_unlock(dev);
    return s;
}

ot_status ot_dev_download(ot_device *dev, ot_dev_queue q, void *to, ot_dev_slice from,
                          const ot_dev_after *after, ot_device_error *e, ot_dev_event *done)
{
    dev_command c = {.verb = DEV_DOWNLOAD, .sink = to};
    dev_lock(dev);
    ot_status s = transfer(dev, q, &c, NULL, &from, after, e, done);
    dev_unlock(dev);
    return s;
}

ot_status ot_dev_copy(ot_device *dev, ot_dev_queue q, ot_dev_slice to, ot_dev_slice from,
                      const ot_dev_after *after, ot_device_error *e, ot_dev_event *done)
{
    dev_command c = {.verb = DEV_COPY};
    dev_lock(dev);
    ot_status s = transfer(dev, q, &c, &to, &from, after, e, done);
    dev_unlock(dev);
    return s;
}

ot_status ot_dev_fill(ot_device *dev, ot_dev_queue q, ot_dev_slice to, uint32_t pattern,
                      const ot_dev_after *after, ot_device_error *e, ot_dev_event *done)
{
    dev_command c = {.verb = DEV_FILL, .pattern = pattern};
    dev_lock(dev);
    ot_status s = transfer(dev, q, &c, &to, NULL, after, e, done);
    dev_unlock(dev);
    return s;
}

/* ---- launches ---- */

static ot_status check_arg(ot_device *dev, const ot_dev_launch *l, uint32_t k, ot_device_error *e,
                           dev_part *part)
{
    const ot_dev_arg *a = &l->args[k];
    *part = (dev_part){0};
    if (a->kind == OT_DEV_ARG_VALUE && a->bytes != 1 && a->bytes != 2 && a->bytes != 4 &&
        a->bytes != 8)
        return dev_fail(e, OT_DEV_INVALID_OBJECT,
                        "kernel '%s': argument %u is a number of %u bytes", l->entry, k, a->bytes);
    if (a->kind == OT_DEV_ARG_SHARED && a->value > (uint64_t)dev->facts.shared_bytes)
        return dev_fail(e, OT_DEV_NO_MEMORY_TYPE,
                        "kernel '%s': %llu bytes of a work-group's memory, '%s' has %lld", l->entry,
                        (unsigned long long)a->value, dev->facts.name,
                        (long long)dev->facts.shared_bytes);
    if (a->kind != OT_DEV_ARG_SLICE) return OT_OK;
    OT_TRY(dev_part_of(dev, a->slice, a->written ? OT_DEV_KERNEL_WRITES : OT_DEV_KERNEL_READS, e,
                       part));
    if (part->offset % dev->facts.alignment)
        return dev_fail(
            e, OT_DEV_INVALID_POINTER,
            "kernel '%s': argument %u begins at %lld of buffer '%s', not a multiple of %lld",
            l->entry, k, (long long)part->offset, part->buffer->name,
            (long long)dev->facts.alignment);
    return OT_OK;
}

static ot_status launch(ot_device *dev, ot_dev_queue handle, const ot_dev_launch *given,
                        const ot_dev_after *after, ot_device_error *e, ot_dev_event *done)
{
    dev_part parts[OT_DEV_ARGS_MAX];
    ot_dev_launch l = *given;
    dev_queue *q;
    void *program;
    OT_TRY(get_queue(dev, handle, e, &q));
    OT_TRY(dev_slot_get(dev, DEV_PROGRAM, l.program.id, OT_DEV_INVALID_OBJECT, e, &program));
    if (l.n_args > OT_DEV_ARGS_MAX)
        return dev_fail(e, OT_DEV_UNSUPPORTED, "kernel '%s' takes %u arguments, more than %d",
                        l.entry, l.n_args, OT_DEV_ARGS_MAX);
    uint64_t items = 1;
    for (uint32_t k = 0; k < 3; k++) {
        if (l.groups[k] == 0) l.groups[k] = 1;
        if (l.items[k] == 0) l.items[k] = 1;
        items *= l.items[k];
    }
    if (items > dev->facts.items_most)
        return dev_fail(e, OT_DEV_UNSUPPORTED,
                        "kernel '%s': %llu work-items in a group, '%s' takes %u", l.entry,
                        (unsigned long long)items, dev->facts.name, dev->facts.items_most);
    for (uint32_t k = 0; k < l.n_args; k++) OT_TRY(check_arg(dev, &l, k, e, &parts[k]));
    dev_command c = {.verb = DEV_LAUNCH, .launch = &l, .program = program, .parts = parts};
    return submit(dev, q, &c, after, e, done);
}

ot_status ot_dev_run(ot_device *dev, ot_dev_queue q, const ot_dev_launch *l,
                     const ot_dev_after *after, ot_device_error *e, ot_dev_event *done)
{
    dev_lock(dev);
    ot_status s = launch(dev, q, l, after, e, done);
    dev_unlock(dev);
    return s;
}

/* ---- queues ---- */

static ot_status make_queue(ot_device *dev, ot_device_error *e, ot_dev_queue *out)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < dev->slots[DEV_QUEUE].n; k++)
        n += dev->slots[DEV_QUEUE].records[k] != NULL;
    if (n == DEV_QUEUES_MOST)
        return dev_fail(e, OT_DEV_UNSUPPORTED, "a device has %d queues at the most",
                        DEV_QUEUES_MOST);
    dev_queue *q = calloc(1, sizeof *q);
    if (!q) return dev_fail_host_memory(e);
    q->id = dev_slot_add(dev, DEV_QUEUE, q);
    ot_status s = q->id ? dev->driver->queue_new(dev, q, e) : dev_fail_host_memory(e);
    if (s != OT_OK) {
        if (q->id) dev_slot_drop(dev, DEV_QUEUE, q->id);
        free(q);
        return s;
    }
    out->id = q->id;
    return OT_OK;
}

ot_status ot_dev_queue_new(ot_device *dev, ot_device_error *e, ot_dev_queue *out)
{
    out->id = 0;
    dev_lock(dev);
    ot_status s = make_queue(dev, e, out);
    dev_unlock(dev);
    return s;
}

ot_status ot_dev_queue_free(ot_device *dev, ot_dev_queue handle, ot_device_error *e)
{
    void *record;
    dev_queue *q;
    dev_lock(dev);
    ot_dev_event last = {handle, get_queue(dev, handle, NULL, &q) == OT_OK ? q->issued : 0};
    dev_unlock(dev);
    dev_await(dev, last);
    dev_lock(dev);
    ot_status s = dev_slot_get(dev, DEV_QUEUE, handle.id, OT_DEV_INVALID_OBJECT, e, &record);
    if (s == OT_OK) {
        dev->driver->queue_free(dev, record);
        dev_slot_drop(dev, DEV_QUEUE, handle.id);
        free(record);
    }
    dev_unlock(dev);
    return s;
}

ot_status ot_dev_flush(ot_device *dev, ot_dev_queue handle, ot_device_error *e)
{
    dev_queue *q;
    dev_lock(dev);
    ot_status s = get_queue(dev, handle, e, &q);
    if (s == OT_OK) s = dev->driver->flush(dev, q, e);
    dev_unlock(dev);
    return s;
}

void dev_retire(ot_device *dev, dev_queue *q, uint64_t serial, double start, double end, bool ok)
{
    q->done = serial;
    dev_profile_retire(dev, q, serial, start, end);
    q->times[serial % DEV_TIMES].start = start;
    q->times[serial % DEV_TIMES].end = end;
    if (!ok) q->failed = true;
}

/* ---- waiting ---- */

/* The queue, once it has retired what is done. Locked. */
static ot_status look(ot_device *dev, ot_dev_event ev, ot_device_error *e, dev_queue **q)
{
    OT_TRY(get_queue(dev, ev.queue, e, q));
    if (ev.serial > (*q)->issued)
        return dev_fail(e, OT_DEV_INVALID_OBJECT, "an event of a command that was never given");
    if (ev.serial > (*q)->done) OT_TRY(dev->driver->poll(dev, *q, e));
    return (*q)->failed ? dev_fail(e, OT_DEV_FAILED, "a command failed on '%s'", dev->facts.name)
                        : OT_OK;
}

ot_status ot_dev_wait(ot_device *dev, ot_dev_event ev, ot_device_error *e)
{
    dev_queue *q;
    if (ev.serial == 0) return OT_OK;
    dev_lock(dev);
    ot_status s = look(dev, ev, e, &q);
    bool done = s == OT_OK && ev.serial <= q->done;
    dev_unlock(dev);
    if (s != OT_OK || done) return s;
    OT_TRY(dev->driver->wait(dev, q, ev.serial, e));
    dev_lock(dev);
    s = look(dev, ev, e, &q);
    dev_unlock(dev);
    return s;
}

ot_status ot_dev_finish(ot_device *dev, ot_dev_queue handle, ot_device_error *e)
{
    dev_queue *q;
    dev_lock(dev);
    ot_status s = get_queue(dev, handle, e, &q);
    ot_dev_event last = {handle, s == OT_OK ? q->issued : 0};
    dev_unlock(dev);
    return s == OT_OK ? ot_dev_wait(dev, last, e) : s;
}

bool ot_dev_times(ot_device *dev, ot_dev_event ev, double *start, double *end)
{
    dev_queue *q;
    dev_lock(dev);
    bool ok = ev.serial > 0 && look(dev, ev, NULL, &q) == OT_OK && ev.serial <= q->done &&
              q->done - ev.serial < DEV_TIMES;
    *start = ok ? q->times[ev.serial % DEV_TIMES].start : 0;
    *end = ok ? q->times[ev.serial % DEV_TIMES].end : 0;
    dev_unlock(dev);
    return ok;
}

void dev_await(ot_device *dev, ot_dev_event ev)
{
    ot_status s = ot_dev_wait(dev, ev, NULL);
    (void)s; /* what failed is done, too */
}

void dev_await_buffer(ot_device *dev, uint64_t id)
{
    void *record;
    ot_dev_event uses[DEV_QUEUES_MOST] = {0};
    dev_lock(dev);
    if (dev_slot_get(dev, DEV_BUFFER, id, OT_DEV_INVALID_POINTER, NULL, &record) == OT_OK)
        memcpy(uses, ((dev_buffer *)record)->last_use, sizeof uses);
    dev_unlock(dev);
    for (uint32_t k = 0; k < DEV_QUEUES_MOST; k++) dev_await(dev, uses[k]);
}
