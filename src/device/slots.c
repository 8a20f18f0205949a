/* Handles. A handle names its kind, its device, its slot and the slot's generation, so that one
 * that was freed, or comes from somewhere else, is told from one that is good without a look at
 * memory that may be gone.
 *
 *   63      52 51    48 47          24 23       0
 *   | device  |  kind  |  generation  |   slot   |  device and generation begin at 1: 0 is no
 *                                                   handle
 */
#include "driver.h"

#define SLOT_BITS       24
#define GENERATION_BITS 24
#define MASK24          0xffffffu

static const char *const KIND_NAMES[DEV_KINDS] = {"object", "buffer", "queue", "program", "map"};

static uint64_t handle(uint32_t mark, dev_kind kind, uint32_t generation, uint32_t slot)
{
    return (uint64_t)mark << 52 | (uint64_t)kind << 48 | (uint64_t)generation << SLOT_BITS | slot;
}

static bool make_room(dev_slots *s)
{
    uint32_t cap = s->cap ? s->cap * 2 : 16;
    void **records = realloc(s->records, cap * sizeof *records);
    if (records) s->records = records;
    uint32_t *generations = records ? realloc(s->generations, cap * sizeof *generations) : NULL;
    if (!generations) return false;
    s->generations = generations;
    s->cap = cap;
    return true;
}

uint64_t dev_slot_add(ot_device *dev, dev_kind kind, void *record)
{
    dev_slots *s = &dev->slots[kind];
    uint32_t k = 0;
    /* a slot whose generations are used up rests */
    while (k < s->n && (s->records[k] || s->generations[k] == MASK24)) k++;
    if (k == s->n) {
        if (k == MASK24 || (s->n == s->cap && !make_room(s))) return 0;
        s->generations[k] = 0;
        s->n++;
    }
    s->records[k] = record;
    s->generations[k]++;
    return handle(dev->mark, kind, s->generations[k], k);
}

ot_status dev_slot_get(ot_device *dev, dev_kind kind, uint64_t id, ot_device_fault fault,
                       ot_device_error *e, void **out)
{
    const dev_slots *s = &dev->slots[kind];
    uint32_t slot = (uint32_t)(id & MASK24), generation = (uint32_t)(id >> SLOT_BITS & MASK24);
    const char *name = KIND_NAMES[kind];
    *out = NULL;
    if (id == 0) return dev_fail(e, fault, "no %s: the handle is zero", name);
    if ((id >> 48 & 15) != kind)
        return dev_fail(e, fault, "handle %#llx is no %s", (unsigned long long)id, name);
    if (id >> 52 != dev->mark)
        return dev_fail(e, fault, "%s %#llx is another device's", name, (unsigned long long)id);
    if (slot >= s->n || generation > s->generations[slot])
        return dev_fail(e, fault, "%s %#llx was never given", name, (unsigned long long)id);
    if (generation < s->generations[slot] || !s->records[slot])
        return dev_fail(e, fault, "%s %#llx was freed before", name, (unsigned long long)id);
    *out = s->records[slot];
    return OT_OK;
}

void dev_slot_drop(ot_device *dev, dev_kind kind, uint64_t id)
{
    dev->slots[kind].records[id & MASK24] = NULL;
}

void dev_slots_free(dev_slots *s)
{
    free(s->records);
    free(s->generations);
    *s = (dev_slots){0};
}
