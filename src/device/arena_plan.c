/* Arenas: items with lifetimes, laid out by the packer in one buffer, their use checked against
 * the plan. */
#include "driver.h"
#include "heap.h"
#include "pack/pack.h"

struct ot_dev_arena {
    ot_arena *mem; /* owns everything but the buffer */
    ot_device *dev;
    char name[32];
    ot_dev_arena_item *items; /* [n] */
    int64_t *offsets;         /* [n] */
    bool *lives;              /* [n] */
    uint32_t n;
    int64_t bytes;
    ot_dev_buffer buffer;
};

/* Offsets and the height. */
static ot_status lay_out(ot_dev_arena *x, ot_device_error *e)
{
    int64_t al = ot_max(1, ot_device_about(x->dev)->alignment);
    ot_diag d = {0};
    ot_pack_result r = {0};
    ot_pack_item *items = OT_NEW_N(x->mem, ot_pack_item, x->n);
    if (!items) return dev_fail_host_memory(e);
    for (uint32_t k = 0; k < x->n; k++)
        items[k] = (ot_pack_item){.lower = x->items[k].lower,
                                  .upper = x->items[k].upper,
                                  .size = x->items[k].bytes,
                                  .alignment = al,
                                  .fixed = -1,
                                  .hint = -1};
    ot_pack_problem p = {items, x->n};
    ot_status s = ot_pack(&p, &(ot_pack_options){.rules = OT_PACK_RULES_ALL}, &d, x->offsets, &r);
    if (s == OT_OK) s = ot_pack_check(&p, x->offsets, 0, NULL, &d);
    x->bytes = ot_max(1, r.height);
    if (s == OT_E_NOMEM) return dev_fail_host_memory(e);
    return s == OT_OK
               ? OT_OK
               : dev_fail(e, OT_DEV_INVALID_OBJECT, "arena '%s': %.300s", x->name, d.message);
}

static ot_status make_buffer(ot_dev_arena *x, const ot_dev_heap_options *o, ot_device_error *e)
{
    if (o->cap > 0 && x->bytes > o->cap) {
        ot_status s = dev_fail(e, OT_DEV_OUT_OF_MEMORY,
                               "arena '%s': %lld bytes are needed, %lld may be taken", x->name,
                               (long long)x->bytes, (long long)o->cap);
        if (e) {
            e->requested = x->bytes;
            e->free = e->largest = o->cap;
        }
        return s;
    }
    return ot_dev_buffer_new(
        x->dev,
        &(ot_dev_buffer_options){
            .name = x->name, .bytes = x->bytes, .kind = o->kind, .access = o->access},
        e, &x->buffer);
}

ot_status ot_dev_arena_new(ot_device *dev, const ot_dev_arena_item *items, uint32_t n,
                           const ot_dev_heap_options *o, ot_device_error *e, ot_dev_arena **out)
{
    ot_arena *mem = ot_arena_new();
    ot_dev_arena *x = mem ? OT_NEW(mem, ot_dev_arena) : NULL;
    *out = NULL;
    if (x) {
        *x = (ot_dev_arena){.mem = mem, .dev = dev, .n = n};
        x->items = OT_NEW_N(mem, ot_dev_arena_item, n);
        x->offsets = OT_NEW_N(mem, int64_t, n);
        x->lives = OT_NEW_N(mem, bool, n);
        snprintf(x->name, sizeof x->name, "%s", o->name ? o->name : "arena");
    }
    if (!x || !x->items || !x->offsets || !x->lives) {
        ot_arena_free(mem);
        return dev_fail_host_memory(e);
    }
    if (n) memcpy(x->items, items, n * sizeof *items);
    ot_status s = lay_out(x, e);
    if (s == OT_OK) s = make_buffer(x, o, e);
    if (s == OT_OK)
        *out = x;
    else
        ot_arena_free(mem);
    return s;
}

void ot_dev_arena_free(ot_dev_arena *x)
{
    if (!x) return;
    ot_dev_buffer_free(x->dev, x->buffer, NULL);
    ot_arena_free(x->mem);
}

int64_t ot_dev_arena_bytes(const ot_dev_arena *x) { return x->bytes; }

static const char *name_of(const ot_dev_arena *x, uint32_t k)
{
    return x->items[k].name ? x->items[k].name : "";
}

ot_status ot_dev_arena_take(ot_dev_arena *x, uint32_t k, ot_device_error *e, ot_dev_slice *out)
{
    *out = (ot_dev_slice){{0}, 0, 0};
    if (k >= x->n)
        return dev_fail(e, OT_DEV_INVALID_OBJECT, "arena '%s': there is no item %u", x->name, k);
    if (x->lives[k])
        return dev_fail(e, OT_DEV_INVALID_OBJECT, "arena '%s': '%s' lives already", x->name,
                        name_of(x, k));
    int64_t from = x->offsets[k], to = from + x->items[k].bytes;
    for (uint32_t i = 0; i < x->n; i++)
        if (x->lives[i] && x->offsets[i] < to && from < x->offsets[i] + x->items[i].bytes)
            return dev_fail(e, OT_DEV_INVALID_OBJECT,
                            "arena '%s': '%s' lies where '%s' still lives", x->name, name_of(x, k),
                            name_of(x, i));
    x->lives[k] = true;
    *out = (ot_dev_slice){x->buffer, from, x->items[k].bytes};
    return OT_OK;
}

ot_status ot_dev_arena_give(ot_dev_arena *x, uint32_t k, ot_device_error *e)
{
    if (k >= x->n)
        return dev_fail(e, OT_DEV_INVALID_POINTER, "arena '%s': there is no item %u", x->name, k);
    if (!x->lives[k])
        return dev_fail(e, OT_DEV_INVALID_POINTER, "arena '%s': '%s' does not live", x->name,
                        name_of(x, k));
    x->lives[k] = false;
    return OT_OK;
}

uint32_t ot_dev_arena_leaks(const ot_dev_arena *x, FILE *f)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        if (!x->lives[k]) continue;
        n++;
        if (f)
            fprintf(f, "arena '%s': '%s' of %lld bytes was never given back\n", x->name,
                    name_of(x, k), (long long)x->items[k].bytes);
    }
    return n;
}
