/* Which values wait for a reader when a process grows last: what regions could hold in pieces.
 *
 *   step    0    1    last   3        a: made before the last step, read behind it
 *           a ---------------> read
 */
#include "simulate.h"

/* Put one in, largest first, each maker once. */
static void put_waiting(ot_sim_figures *out, int64_t bytes[OT_WAITING], ot_id maker, int64_t size)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < OT_WAITING; k++)
        if (out->waiting[k] == maker) return;
    while (at < OT_WAITING && bytes[at] >= size) at++;
    for (uint32_t k = OT_WAITING; k-- > at + 1;) {
        out->waiting[k] = out->waiting[k - 1];
        bytes[k] = bytes[k - 1];
    }
    if (at == OT_WAITING) return;
    out->waiting[at] = maker;
    bytes[at] = size;
}

ot_status ot_sim_list_waiting(const ot_sim_plan *p, const ot_sim_step *last, ot_arena *a,
                              ot_sim_figures *out)
{
    int64_t bytes[OT_WAITING] = {0};
    bool *made = OT_NEW_N(a, bool, 2 * p->g->n_values + 1u);
    if (!made) return OT_E_NOMEM;
    size_t at = 0;
    for (; at < p->n && &p->steps[at] != last; at++)
        for (uint32_t k = 0; k < p->steps[at].n_writes; k++) made[p->steps[at].writes[k]] = true;
    for (at++; at < p->n; at++) {
        for (uint32_t k = 0; k < p->steps[at].n_reads; k++) {
            const uint32_t v = p->steps[at].reads[k];
            const ot_id maker = p->g->values[v % p->g->n_values].producer;
            if (made[v] && maker != OT_NONE) put_waiting(out, bytes, maker, p->values[v].bytes);
        }
    }
    return OT_OK;
}
