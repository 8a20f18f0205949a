/* Heaps; see heap.h. */
#include "heap.h"
#include "driver.h"

typedef struct heap_piece {
    ot_dev_buffer buffer;
    int64_t bytes;
    char name[32]; /* of who has it */
} heap_piece;

struct ot_dev_heap {
    ot_device *dev;
    char name[32];
    ot_dev_heap_options options;
    heap_piece *pieces; /* [stats.n_live] */
    uint32_t cap;
    ot_dev_heap_stats stats;
};

ot_status ot_dev_heap_new(ot_device *dev, const ot_dev_heap_options *o, ot_device_error *e,
                          ot_dev_heap **out)
{
    ot_dev_heap *h = calloc(1, sizeof *h);
    *out = h;
    if (!h) return dev_fail_host_memory(e);
    h->dev = dev;
    h->options = *o;
    snprintf(h->name, sizeof h->name, "%s", o->name ? o->name : "heap");
    h->options.name = h->name;
    return OT_OK;
}

static bool make_room(ot_dev_heap *h)
{
    if (h->stats.n_live < h->cap) return true;
    uint32_t want = h->cap ? h->cap * 2 : 8;
    heap_piece *more = realloc(h->pieces, want * sizeof *more);
    if (!more) return false;
    h->pieces = more;
    h->cap = want;
    return true;
}

static ot_status fail_cap(const ot_dev_heap *h, const char *name, int64_t bytes, ot_device_error *e)
{
    ot_status s = dev_fail(
        e, OT_DEV_OUT_OF_MEMORY,
        "heap '%s': '%s' of %lld bytes does not fit: %lld of %lld bytes are held", h->name, name,
        (long long)bytes, (long long)h->stats.held, (long long)h->options.cap);
    if (e) {
        e->requested = bytes;
        e->free = e->largest = h->options.cap - h->stats.held;
    }
    return s;
}

ot_status ot_dev_take(ot_dev_heap *h, const char *name, int64_t bytes, ot_device_error *e,
                      ot_dev_slice *out)
{
    heap_piece p = {.bytes = bytes};
    ot_dev_heap_stats *s = &h->stats;
    *out = (ot_dev_slice){{0}, 0, 0};
    if (!name) name = "";
    if (bytes <= 0)
        return dev_fail(e, OT_DEV_INVALID_OBJECT, "heap '%s': '%s' of %lld bytes", h->name, name,
                        (long long)bytes);
    if (h->options.cap > 0 && bytes > h->options.cap - s->held) return fail_cap(h, name, bytes, e);
    if (!make_room(h)) return dev_fail_host_memory(e);
    snprintf(p.name, sizeof p.name, "%s", name);
    const ot_dev_buffer_options o = {
        .name = name, .bytes = bytes, .kind = h->options.kind, .access = h->options.access};
    OT_TRY(ot_dev_buffer_new(h->dev, &o, e, &p.buffer));
    h->pieces[s->n_live++] = p;
    s->held += bytes;
    s->peak = ot_max(s->peak, s->held);
    s->n_taken++;
    *out = (ot_dev_slice){p.buffer, 0, bytes};
    return OT_OK;
}

static void drop(ot_dev_heap *h, uint32_t k)
{
    ot_dev_buffer_free(h->dev, h->pieces[k].buffer, NULL);
    h->stats.held -= h->pieces[k].bytes;
    h->pieces[k] = h->pieces[--h->stats.n_live];
}

ot_status ot_dev_give(ot_dev_heap *h, ot_dev_slice s, ot_device_error *e)
{
    void *record;
    for (uint32_t k = 0; k < h->stats.n_live; k++) {
        if (h->pieces[k].buffer.id != s.buffer.id) continue;
        if (s.offset != 0)
            return dev_fail(e, OT_DEV_INVALID_POINTER, "heap '%s': no slice begins at %lld",
                            h->name, (long long)s.offset);
        drop(h, k);
        h->stats.n_given++;
        return OT_OK;
    }
    /* freed: the better message */
    OT_TRY(dev_slot_get(h->dev, DEV_BUFFER, s.buffer.id, OT_DEV_INVALID_POINTER, e, &record));
    return dev_fail(e, OT_DEV_INVALID_POINTER, "heap '%s': the slice is not of this heap", h->name);
}

const char *ot_dev_heap_name(const ot_dev_heap *h) { return h->name; }

ot_dev_heap_stats ot_dev_heap_count(const ot_dev_heap *h) { return h->stats; }

uint32_t ot_dev_heap_leaks(const ot_dev_heap *h, FILE *f)
{
    for (uint32_t k = 0; f && k < h->stats.n_live; k++)
        fprintf(f, "heap '%s': '%s' of %lld bytes was never given back\n", h->name,
                h->pieces[k].name, (long long)h->pieces[k].bytes);
    return h->stats.n_live;
}

void ot_dev_heap_free(ot_dev_heap *h)
{
    if (!h) return;
    while (h->stats.n_live > 0) drop(h, h->stats.n_live - 1);
    free(h->pieces);
    free(h);
}
