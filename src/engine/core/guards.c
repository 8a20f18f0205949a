/* Guards: bytes of a pattern around everything that a step may write to, so that tests see what
 * writes too far.
 *
 *   step        0      1      2       planned memory
 *   a           |=============|       [guard a guard]
 *   b           .      |======|       .             [guard b guard]
 *   c           .      .      .|===   [guard   c   guard]      after a: its guards are laid anew
 *
 * A guard lives as long as what it surrounds: two of a plan never overlap while they live.
 */
#include "session.h"

#define PATTERN 0x5C

void ot_guard_fill(void *data, size_t bytes)
{
    memset((char *)data - OT_GUARD, PATTERN, OT_GUARD);
    memset((char *)data + bytes, PATTERN, OT_GUARD);
}

bool ot_guard_intact(const void *data, size_t bytes)
{
    unsigned char want[OT_GUARD];
    memset(want, PATTERN, sizeof want);
    return !memcmp((const char *)data - OT_GUARD, want, OT_GUARD) &&
           !memcmp((const char *)data + bytes, want, OT_GUARD);
}

static bool lives(const ot_pack_item *item, uint32_t k)
{
    return item->lower <= (int64_t)k && (int64_t)k < item->upper;
}

void ot_guards_open(const ot_schedule *p, uint32_t k)
{
    for (uint32_t j = 0; p->base && j < p->n_items; j++)
        if (p->items[j].lower == (int64_t)k)
            ot_guard_fill(p->base + p->offsets[j], (size_t)p->items[j].size);
}

static void broken(const ot_schedule *p, uint32_t k)
{
    char label[OT_LABEL_MAX];
    fprintf(stderr, "%s:\n", ot_node_label(p->steps[k].node, label, sizeof label));
    OT_BUG("a step wrote outside of its memory");
}

void ot_guards_check(const ot_schedule *p, uint32_t k)
{
    const ot_step *step = &p->steps[k];
    for (uint32_t j = 0; p->base && j < p->n_items; j++)
        if (lives(&p->items[j], k) &&
            !ot_guard_intact(p->base + p->offsets[j], (size_t)p->items[j].size))
            broken(p, k);
    for (uint32_t j = 0; j < step->n_out; j++) {
        ot_block *b = step->out_slots[j] ? step->out_slots[j]->nd.block : NULL;
        if (b && b->guard && !ot_guard_intact(ot_block_data(b), b->bytes)) broken(p, k);
    }
}
