/* Weights are held once: what only packed copies are read of is given back.
 *
 *   initializer --pack--> weights of a convolution         the initializer's contents: nobody reads them any more
 *
 * A constant is of no more use when every unit that reads it was written and no step of any program has its array among its
 * operands. What was computed from constants (folded) is the session's own; contents that came with the model are given
 * back only if the caller said so (ot_session_options.releases).
 */
#include "lower.h"

#include "model_io.h"

#define SMALL ((int64_t)16 << 10) /* bytes that are not worth the search */

static bool among(const ot_step *steps, size_t n, const ot_nd *a)
{
    for (size_t k = 0; k < n; k++)
        for (uint32_t j = 0; j < steps[k].n_in; j++)
            if (steps[k].in[j] == a) return true;
    return false;
}

/* Does a step of any program, written or under way, read the array? */
static bool is_read(const lw_pass *l, const ot_nd *a)
{
    if (among(l->steps, l->n_steps, a)) return true;
    for (const ot_prog *p = l->p->s->all; p; p = p->next)
        if (p != l->p && among(p->steps, p->n_steps, a)) return true;
    return false;
}

static void release(lw_pass *l, ot_id v, uint32_t unit)
{
    const lw_value *w = &l->v[v];
    ot_slot *slot = w->slot;
    const void *source = slot->nd.data;
    int64_t bytes;
    if (!slot->is_const || slot->is_result || !slot->nd.data || !ot_nd_span(&slot->nd, &bytes) || bytes < SMALL) return;
    for (uint32_t r = 0; r < w->n_readers; r++)
        if (l->readers[w->first + r] > unit) return;
    if (is_read(l, &slot->nd)) return;
    if (slot->nd.block) {
        ot_nd_release(&slot->nd);
    } else if (l->p->s->releases && w->x->init && w->x->init->data == slot->nd.data &&
               ot_tensor_release((ot_tensor *)(uintptr_t)w->x->init)) {
        slot->nd.data = NULL;
    } else {
        return;
    }
    /* the address may become another constant's */
    for (ot_packed *k = l->p->s->packed; k; k = k->next)
        if (k->source == source) k->source = NULL;
    l->p->s->figures.weight_bytes -= bytes;
}

void lw_release(lw_pass *l, uint32_t u)
{
    const lw_unit *unit = &l->units[u];
    if (l->p->s->reference || l->p->outer || l->p->g != l->p->s->m->graph) return;
    if (unit->kind == LW_CONV || unit->kind == LW_DECONV)
        for (uint32_t k = 0; k < unit->n_nodes; k++)
            if (unit->nodes[k]->n_in > 1 && unit->nodes[k]->in[1] != OT_NONE) release(l, unit->nodes[k]->in[1], u);
    for (uint32_t k = 0; unit->kind == LW_TILES && k < unit->n_in; k++)
        if (unit->in[k] != OT_NONE) release(l, unit->in[k], u);
}
