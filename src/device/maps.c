/* Maps: a buffer is mapped once, whole, and windows into it are counted and kept in order. */
#include "driver.h"

static ot_status get_map(ot_device *dev, ot_dev_map handle, ot_device_error *e, dev_map **out)
{
    void *record;
    *out = NULL;
    OT_TRY(dev_slot_get(dev, DEV_MAP, handle.id, OT_DEV_INVALID_OBJECT, e, &record));
    *out = record;
    return OT_OK;
}

/* Part of a map, in bytes of its buffer, rounded out to whole granules. */
static ot_status sync_part(ot_device *dev, const dev_map *m, int64_t offset, int64_t bytes,
                           bool to_device, ot_device_error *e)
{
    int64_t g = ot_max(1, dev->facts.granule);
    if (offset < 0 || bytes < 0 || offset > m->bytes || bytes > m->bytes - offset)
        return dev_fail(e, OT_DEV_INVALID_POINTER,
                        "buffer '%s': %lld bytes from %lld are outside of a map of %lld",
                        m->buffer->name, (long long)bytes, (long long)offset, (long long)m->bytes);
    if (bytes == 0) return OT_OK;
    int64_t from = (m->offset + offset) / g * g,
            to = ot_min(ot_ceil_div(m->offset + offset + bytes, g) * g, m->buffer->bytes);
    return dev->driver->sync(dev, m->buffer, from, to - from, to_device, e);
}

static ot_status open_map(ot_device *dev, ot_dev_slice s, uint32_t access, ot_device_error *e,
                          ot_dev_map *out, void **data)
{
    dev_part p;
    if ((access & ~(uint32_t)(OT_DEV_HOST_READS | OT_DEV_HOST_WRITES)) || access == 0)
        return dev_fail(e, OT_DEV_INVALID_OBJECT, "a map is for reads or writes of the host");
    OT_TRY(dev_part_of(dev, s, access, e, &p));
    if (p.buffer->kind != OT_DEV_MEM_HOST && p.buffer->kind != OT_DEV_MEM_UNIFIED)
        return dev_fail(e, OT_DEV_NO_MEMORY_TYPE,
                        "buffer '%s' is memory of kind %s, which cannot be mapped", p.buffer->name,
                        ot_dev_memory_name(p.buffer->kind));
    dev_map *m = calloc(1, sizeof *m);
    if (!m) return dev_fail_host_memory(e);
    *m = (dev_map){.buffer = p.buffer,
                   .offset = p.offset,
                   .bytes = p.bytes,
                   .access = access,
                   .order = ++dev->maps_opened};
    m->id = dev_slot_add(dev, DEV_MAP, m);
    bool hit = p.buffer->mapped != NULL;
    ot_status st = !m->id                       ? dev_fail_host_memory(e)
                   : !hit                       ? dev->driver->map(dev, p.buffer, e)
                   : access & OT_DEV_HOST_READS ? sync_part(dev, m, 0, m->bytes, false, e)
                                                : OT_OK;
    if (st != OT_OK) {
        if (m->id) dev_slot_drop(dev, DEV_MAP, m->id);
        free(m);
        return st;
    }
    p.buffer->n_maps++;
    dev->usage.n_mapped++;
    dev->usage.n_map_hits += hit;
    out->id = m->id;
    *data = (char *)p.buffer->mapped + m->offset;
    return OT_OK;
}

ot_status ot_dev_map_open(ot_device *dev, ot_dev_slice s, uint32_t access, ot_device_error *e,
                          ot_dev_map *out, void **data)
{
    out->id = 0;
    *data = NULL;
    dev_await_buffer(dev, s.buffer.id);
    dev_lock(dev);
    ot_status st = open_map(dev, s, access, e, out, data);
    dev_unlock(dev);
    return st;
}

static ot_status sync_map(ot_device *dev, ot_dev_map handle, int64_t offset, int64_t bytes,
                          bool to_device, ot_device_error *e)
{
    dev_map *m;
    dev_lock(dev);
    ot_status s = get_map(dev, handle, e, &m);
    uint32_t need = to_device ? OT_DEV_HOST_WRITES : OT_DEV_HOST_READS;
    if (s == OT_OK && !(m->access & need))
        s = dev_fail(e, OT_DEV_INVALID_OBJECT, "buffer '%s' was not mapped for %s", m->buffer->name,
                     to_device ? "writing" : "reading");
    if (s == OT_OK) s = sync_part(dev, m, offset, bytes, to_device, e);
    dev_unlock(dev);
    return s;
}

ot_status ot_dev_map_flush(ot_device *dev, ot_dev_map m, int64_t offset, int64_t bytes,
                           ot_device_error *e)
{
    return sync_map(dev, m, offset, bytes, true, e);
}

ot_status ot_dev_map_invalidate(ot_device *dev, ot_dev_map m, int64_t offset, int64_t bytes,
                                ot_device_error *e)
{
    return sync_map(dev, m, offset, bytes, false, e);
}

/* No later map that is open may overlap. */
static ot_status check_order(const ot_device *dev, const dev_map *m, ot_device_error *e)
{
    for (uint32_t k = 0; k < dev->slots[DEV_MAP].n; k++) {
        const dev_map *o = dev->slots[DEV_MAP].records[k];
        if (o && o->buffer == m->buffer && o->order > m->order &&
            o->offset < m->offset + m->bytes && m->offset < o->offset + o->bytes)
            return dev_fail(
                e, OT_DEV_INVALID_OBJECT,
                "buffer '%s': a map of %lld bytes from %lld, opened later, is still open",
                m->buffer->name, (long long)o->bytes, (long long)o->offset);
    }
    return OT_OK;
}

ot_status ot_dev_map_close(ot_device *dev, ot_dev_map handle, ot_device_error *e)
{
    dev_map *m;
    dev_lock(dev);
    ot_status s = get_map(dev, handle, e, &m);
    if (s == OT_OK) s = check_order(dev, m, e);
    if (s == OT_OK) { /* closed in any case */
        if (m->access & OT_DEV_HOST_WRITES) s = sync_part(dev, m, 0, m->bytes, true, e);
        m->buffer->n_maps--;
        dev_slot_drop(dev, DEV_MAP, m->id);
        free(m);
    }
    dev_unlock(dev);
    return s;
}
