/* Which values wait for a reader when a process grows last: what regions could hold in pieces.
 *
 *   step    0    1    last   3        a: made before the last step, read behind it
 *           a ---------------> read
 */
#include "simulate.h"

/* The largest of what was put in. */
typedef struct largest {
    ot_id *ids;     /* [n] of `most`, largest first, each once */
    int64_t *bytes; /* [n] */
    uint32_t n, most;
} largest;

static void put_in(largest *x, ot_id id, int64_t size)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < x->n; k++)
        if (x->ids[k] == id) return;
    while (at < x->n && x->bytes[at] >= size) at++;
    if (at == x->most) return;
    if (x->n < x->most) x->n++;
    for (uint32_t k = x->n; k-- > at + 1;) {
        x->ids[k] = x->ids[k - 1];
        x->bytes[k] = x->bytes[k - 1];
    }
    x->ids[at] = id;
    x->bytes[at] = size;
}

ot_status ot_sim_list_waiting(const ot_sim_schedule *p, const ot_sim_step *last, ot_arena *a,
                              ot_sim_figures *out)
{
    int64_t bytes[OT_WAITING];
    largest x = {out->waiting, bytes, 0, OT_WAITING};
    bool *made = OT_NEW_N(a, bool, 2 * p->g->n_values + 1u);
    if (!made) return OT_E_NOMEM;
    size_t at = 0;
    for (; at < p->n && &p->steps[at] != last; at++)
        for (uint32_t k = 0; k < p->steps[at].n_writes; k++) made[p->steps[at].writes[k]] = true;
    for (at++; at < p->n; at++) {
        for (uint32_t k = 0; k < p->steps[at].n_reads; k++) {
            const uint32_t v = p->steps[at].reads[k];
            const ot_id maker = p->g->values[v % p->g->n_values].producer;
            if (made[v] && maker != OT_NONE && p->values[v].bytes > 0)
                put_in(&x, maker, p->values[v].bytes);
        }
    }
    return OT_OK;
}

ot_status ot_sim_list_held(const ot_sim_schedule *p, const ot_sim_step *last, ot_arena *a,
                           ot_sim_figures *out)
{
    int64_t bytes[OT_FULLEST];
    largest x = {out->held, bytes, 0, OT_FULLEST};
    const uint32_t n_values = p->g->n_values;
    bool *made = OT_NEW_N(a, bool, 2 * n_values + 1u);
    if (!made) return OT_E_NOMEM;
    const size_t at = (size_t)(last - p->steps);
    for (size_t i = 0; i < at; i++)
        for (uint32_t k = 0; k < p->steps[i].n_writes; k++) made[p->steps[i].writes[k]] = true;
    for (uint32_t k = 0; k < last->n_writes; k++)
        put_in(&x, last->writes[k] % n_values, p->values[last->writes[k]].bytes);
    for (size_t i = at; i < p->n; i++)
        for (uint32_t k = 0; k < p->steps[i].n_reads; k++) {
            const uint32_t v = p->steps[i].reads[k];
            if (made[v]) put_in(&x, v % n_values, p->values[v].bytes);
        }
    out->n_held = x.n;
    return OT_OK;
}
