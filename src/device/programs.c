/* Programs: records of what the driver compiled. */
#include "driver.h"

static ot_status make_program(ot_device *dev, const ot_dev_source *s, ot_device_error *e,
                              ot_dev_program *out)
{
    dev_program *p = calloc(1, sizeof *p);
    if (!p) return dev_fail_host_memory(e);
    snprintf(p->name, sizeof p->name, "%s", s->name ? s->name : "");
    p->id = dev_slot_add(dev, DEV_PROGRAM, p);
    ot_status st = p->id ? dev->driver->program_new(dev, p, s, e) : dev_fail_host_memory(e);
    if (st != OT_OK) {
        if (p->id) dev_slot_drop(dev, DEV_PROGRAM, p->id);
        free(p);
        return st;
    }
    out->id = p->id;
    return OT_OK;
}

ot_status ot_dev_program_new(ot_device *dev, const ot_dev_source *s, ot_device_error *e,
                             ot_dev_program *out)
{
    out->id = 0;
    dev_lock(dev);
    ot_status st = make_program(dev, s, e, out);
    dev_unlock(dev);
    return st;
}

/* Until no queue runs anything: a kernel of it may be under way. */
static void await_queues(ot_device *dev)
{
    ot_dev_event last[DEV_QUEUES_MOST] = {0};
    uint32_t n = 0;
    dev_lock(dev);
    for (uint32_t k = 0; k < dev->slots[DEV_QUEUE].n; k++) {
        const dev_queue *q = dev->slots[DEV_QUEUE].records[k];
        if (q) last[n++] = (ot_dev_event){{q->id}, q->issued};
    }
    dev_unlock(dev);
    for (uint32_t k = 0; k < n; k++) dev_await(dev, last[k]);
}

ot_status ot_dev_program_free(ot_device *dev, ot_dev_program handle, ot_device_error *e)
{
    void *record;
    await_queues(dev);
    dev_lock(dev);
    ot_status s = dev_slot_get(dev, DEV_PROGRAM, handle.id, OT_DEV_INVALID_OBJECT, e, &record);
    if (s == OT_OK) {
        dev->driver->program_free(dev, record);
        dev_slot_drop(dev, DEV_PROGRAM, handle.id);
        free(record);
    }
    dev_unlock(dev);
    return s;
}

ot_status ot_dev_program_binary(ot_device *dev, ot_dev_program handle, ot_arena *a,
                                ot_device_error *e, void **data, size_t *n)
{
    void *record;
    *data = NULL;
    *n = 0;
    dev_lock(dev);
    ot_status s = dev_slot_get(dev, DEV_PROGRAM, handle.id, OT_DEV_INVALID_OBJECT, e, &record);
    if (s == OT_OK) s = dev->driver->program_binary(dev, record, a, e, data, n);
    dev_unlock(dev);
    return s;
}
