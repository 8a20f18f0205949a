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

/* Put one in, largest first, each value once. */
static void put_held(ot_sim_figures *out, int64_t bytes[OT_FULLEST], ot_id value, int64_t size)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < out->n_held; k++)
        if (out->held[k] == value) return;
    while (at < out->n_held && bytes[at] >= size) at++;
    if (at == OT_FULLEST) return;
    if (out->n_held < OT_FULLEST) out->n_held++;
    for (uint32_t k = out->n_held; k-- > at + 1;) {
        out->held[k] = out->held[k - 1];
        bytes[k] = bytes[k - 1];
    }
    out->held[at] = value;
    bytes[at] = size;
}

ot_status ot_sim_list_held(const ot_sim_plan *p, const ot_sim_step *last, ot_arena *a,
                           ot_sim_figures *out)
{
    int64_t bytes[OT_FULLEST] = {0};
    const uint32_t n_values = p->g->n_values;
    bool *made = OT_NEW_N(a, bool, 2 * n_values + 1u);
    if (!made) return OT_E_NOMEM;
    const size_t at = (size_t)(last - p->steps);
    for (size_t i = 0; i < at; i++)
        for (uint32_t k = 0; k < p->steps[i].n_writes; k++) made[p->steps[i].writes[k]] = true;
    for (uint32_t k = 0; k < last->n_writes; k++)
        put_held(out, bytes, last->writes[k] % n_values, p->values[last->writes[k]].bytes);
    for (size_t i = at; i < p->n; i++)
        for (uint32_t k = 0; k < p->steps[i].n_reads; k++) {
            const uint32_t v = p->steps[i].reads[k];
            if (made[v]) put_held(out, bytes, v % n_values, p->values[v].bytes);
        }
    return OT_OK;
}
