/* Buffers: what is asked is checked and counted against the budget, then the driver's to make. */
#include "driver.h"

static ot_status check_options(const ot_device *dev, const ot_dev_buffer_options *o,
                               const char *name, ot_device_error *e)
{
    char what[80];
    snprintf(what, sizeof what, "buffer '%s'", name);
    if (o->bytes <= 0)
        return dev_fail(e, OT_DEV_INVALID_OBJECT, "%s: %lld bytes are none", what,
                        (long long)o->bytes);
    if ((uint32_t)o->kind >= OT_DEV_MEM_KINDS || (o->access & ~(uint32_t)OT_DEV_ACCESS_ALL))
        return dev_fail(e, OT_DEV_INVALID_OBJECT, "%s: no such kind of memory or access", what);
    if (o->host && o->kind != OT_DEV_MEM_HOST)
        return dev_fail(e, OT_DEV_NO_MEMORY_TYPE,
                        "%s: imported memory is the host's, not of kind %s", what,
                        ot_dev_memory_name(o->kind));
    if (o->kind == OT_DEV_MEM_UNIFIED && !dev->facts.unified)
        return dev_fail(e, OT_DEV_NO_MEMORY_TYPE,
                        "%s: '%s' has no memory that host and device share", what, dev->facts.name);
    if (o->kind == OT_DEV_MEM_CONSTANT && o->bytes > dev->facts.constant_bytes)
        return dev_fail(e, OT_DEV_NO_MEMORY_TYPE,
                        "%s: %lld bytes, but '%s' has %lld of constant memory", what,
                        (long long)o->bytes, dev->facts.name, (long long)dev->facts.constant_bytes);
    if (o->kind == OT_DEV_MEM_CONSTANT && (o->access & OT_DEV_KERNEL_WRITES))
        return dev_fail(e, OT_DEV_NO_MEMORY_TYPE, "%s: no kernel can write constant memory", what);
    if (o->bytes > dev->usage.budget - dev->usage.used ||
        (dev->facts.allocation_most > 0 && o->bytes > dev->facts.allocation_most))
        return dev_fail_full(dev, e, what, o->bytes);
    return OT_OK;
}

static uint32_t access_of(const ot_dev_buffer_options *o)
{
    if (o->access) return o->access;
    return o->kind == OT_DEV_MEM_CONSTANT ? OT_DEV_ACCESS_ALL & ~(uint32_t)OT_DEV_KERNEL_WRITES
                                          : OT_DEV_ACCESS_ALL;
}

static void count_new(ot_device_usage *u, int64_t bytes, double seconds)
{
    u->allocate_seconds += seconds;
    u->used += bytes;
    u->peak = ot_max(u->peak, u->used);
    u->n_buffers++;
    u->n_allocated++;
    u->bytes_allocated += (uint64_t)bytes;
}

static void count_free(ot_device_usage *u, int64_t bytes, double seconds)
{
    u->allocate_seconds += seconds;
    u->used -= bytes;
    u->n_buffers--;
    u->n_freed++;
    u->bytes_freed += (uint64_t)bytes;
}

static ot_status make_buffer(ot_device *dev, const ot_dev_buffer_options *o, ot_device_error *e,
                             ot_dev_buffer *out)
{
    const char *name = o->name ? o->name : "";
    OT_TRY(check_options(dev, o, name, e));
    dev_buffer *b = calloc(1, sizeof *b);
    if (!b) return dev_fail_host_memory(e);
    snprintf(b->name, sizeof b->name, "%s", name);
    b->bytes = o->bytes;
    b->kind = o->kind;
    b->access = access_of(o);
    b->host = o->host;
    b->id = dev_slot_add(dev, DEV_BUFFER, b);
    double start = ot_now();
    ot_status s = b->id ? dev->driver->buffer_new(dev, b, e) : dev_fail_host_memory(e);
    if (s != OT_OK) {
        if (b->id) dev_slot_drop(dev, DEV_BUFFER, b->id);
        free(b);
        return s;
    }
    const double end = ot_now();
    count_new(&dev->usage, b->bytes, end - start);
    dev_profile_memory(dev, b->name, b->bytes, start, end);
    out->id = b->id;
    return OT_OK;
}

ot_status ot_dev_buffer_new(ot_device *dev, const ot_dev_buffer_options *o, ot_device_error *e,
                            ot_dev_buffer *out)
{
    out->id = 0;
    dev_lock(dev);
    ot_status s = make_buffer(dev, o, e, out);
    dev_unlock(dev);
    return s;
}

ot_status ot_dev_buffer_free(ot_device *dev, ot_dev_buffer handle, ot_device_error *e)
{
    void *record;
    dev_await_buffer(dev, handle.id);
    dev_lock(dev);
    ot_status s = dev_slot_get(dev, DEV_BUFFER, handle.id, OT_DEV_INVALID_POINTER, e, &record);
    if (s == OT_OK && ((dev_buffer *)record)->n_maps > 0)
        s = dev_fail(e, OT_DEV_INVALID_OBJECT, "buffer '%s' is still mapped",
                     ((dev_buffer *)record)->name);
    if (s == OT_OK) {
        dev_buffer *b = record;
        double start = ot_now();
        if (b->mapped) dev->driver->unmap(dev, b);
        dev->driver->buffer_free(dev, b);
        dev_slot_drop(dev, DEV_BUFFER, b->id);
        const double end = ot_now();
        count_free(&dev->usage, b->bytes, end - start);
        dev_profile_memory(dev, b->name, -b->bytes, start, end);
        free(b);
    }
    dev_unlock(dev);
    return s;
}

ot_dev_slice ot_dev_whole(ot_device *dev, ot_dev_buffer handle)
{
    void *record;
    ot_dev_slice all = {{0}, 0, 0};
    dev_lock(dev);
    if (dev_slot_get(dev, DEV_BUFFER, handle.id, OT_DEV_INVALID_POINTER, NULL, &record) == OT_OK)
        all = (ot_dev_slice){handle, 0, ((dev_buffer *)record)->bytes};
    dev_unlock(dev);
    return all;
}

bool ot_dev_pin(ot_device *dev, void *memory, size_t bytes)
{
    dev_lock(dev);
    const bool ok = !dev->lost && dev->driver->pin && dev->driver->pin(dev, memory, bytes);
    dev_unlock(dev);
    return ok;
}

void ot_dev_unpin(ot_device *dev, void *memory)
{
    dev_lock(dev);
    if (dev->driver->unpin) dev->driver->unpin(dev, memory);
    dev_unlock(dev);
}
