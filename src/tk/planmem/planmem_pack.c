/* The packing search for a scope: every slot of every live buffer is one rectangle, the holes in
 * its lifetime are gaps. */
#include "planmem_internal.h"

/* The times between the first and the last live span of b at which it holds nothing; NULL when
 * memory ran out. */
static const ot_span *holes(const ot_buffer *b, ot_arena *a)
{
    ot_span *gaps = OT_NEW_N(a, ot_span, b->n_live - 1);
    for (uint32_t s = 0; gaps && s + 1 < b->n_live; s++)
        gaps[s] = (ot_span){b->live[s].upper, b->live[s + 1].lower};
    return gaps;
}

ot_status mem_search(const mem_job *j, const ot_buffer *const *buffers, uint32_t n,
                     const ot_pack_options *o, int64_t (*offsets)[OT_TK_MULTI_MAX], uint32_t *multi,
                     ot_pack_result *r)
{
    size_t n_slots = 0;
    for (uint32_t i = 0; i < n; i++) n_slots += buffers[i]->multi;
    if (n_slots >= OT_NONE) return ot_fail_nomem(j->diag);
    ot_pack_item *items = OT_NEW_N(j->scratch, ot_pack_item, n_slots);
    int64_t *places = OT_NEW_N(j->scratch, int64_t, n_slots);
    if (!items || !places) return ot_fail_nomem(j->diag);
    ot_pack_problem p = {.items = items};
    for (uint32_t i = 0; i < n; i++) {
        const ot_buffer *b = buffers[i];
        if (b->n_live == 0) continue;
        const ot_span *gaps = holes(b, j->scratch);
        if (!gaps) return ot_fail_nomem(j->diag);
        for (uint32_t k = 0; k < b->multi; k++)
            items[p.n++] = (ot_pack_item){.lower = b->live[0].lower,
                                          .upper = b->live[b->n_live - 1].upper,
                                          .size = b->size,
                                          .alignment = b->align,
                                          .fixed = b->fixed[k],
                                          .hint = -1,
                                          .gaps = gaps,
                                          .n_gaps = b->n_live - 1};
    }
    OT_TRY(ot_pack(&p, o, j->diag, places, r));
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; i++) {
        const ot_buffer *b = buffers[i];
        multi[i] = b->multi;
        for (uint32_t k = 0; k < OT_TK_MULTI_MAX; k++)
            offsets[i][k] = k >= b->multi ? -1
                            : b->n_live   ? places[next++]
                                          : ot_max(b->fixed[k], 0);
    }
    return OT_OK;
}
