/* Inputs and results of the graph that loops alone touch, tile by tile: they stay on the host,
 * and only tiles are on the device.
 *
 *   x (input, host)   ~~window i~~>  [tile, tile']  --kernels of the body-->  [tile, tile']
 *                     ~~place i~~>  y (result, host)
 *
 * A tile has two places, so that one moves while kernels use the other. An input stays on the
 * host where its two tiles take half of it at the most, and halos move it twice at the most.
 */
#include "device_internal.h"

#define PAGE 4096

ot_status dv_find_streams(dv_schedule *q)
{
    const ot_schedule *p = q->p;
    const ot_graph **bodies = OT_NEW_N(q->s->a, const ot_graph *, p->n_steps + 1u);
    ot_id *host_of;
    if (!bodies) return ot_fail_nomem(q->s->s->d);
    for (uint32_t k = 0; k < p->n_steps; k++)
        if (q->list.node[k] && ot_is_tile_op(p->steps[k].node, "While") &&
            p->steps[k].n_bodies == 1)
            bodies[k] = p->steps[k].bodies[0].schedule->g;
    if (ot_device_streams_find(&q->list, bodies, q->s->a, &host_of) != OT_OK)
        return ot_fail_nomem(q->s->s->d);
    for (ot_id v = 0; v < p->g->n_values; v++)
        if (host_of[v] != OT_NONE && dv_known(q, v)) q->at[v]->host = p->at[host_of[v]];
    return OT_OK;
}

/* ---- streams of a body ---- */

/* Memory of the host that tiles are packed in, pinned where the device wants that. */
static ot_status new_staging(dv_session *s, int64_t bytes, void **out)
{
    const size_t whole = ((size_t)bytes + PAGE - 1) / PAGE * PAGE;
    char *memory = bytes > INT64_MAX - 2 * PAGE ? NULL : ot_alloc(s->a, whole + PAGE);
    *out = NULL;
    if (!memory) return ot_fail_nomem(s->s->d);
    memory += (PAGE - (uintptr_t)memory % PAGE) % PAGE;
    if (ot_dev_pin(s->dev, memory, whole) &&
        !OT_PUSH(s->a, s->pinned, s->n_pinned, s->cap_pinned, (void *)memory)) {
        ot_dev_unpin(s->dev, memory);
        return ot_fail_nomem(s->s->d);
    }
    *out = memory;
    return OT_OK;
}

static ot_status push(dv_schedule *q, dv_value *whole, dv_value *tile, const ot_nd *window,
                      const int64_t *moves, bool is_result)
{
    dv_session *s = q->s;
    dv_stream x = {.host = whole->host,
                   .whole = &whole->nd,
                   .is_result = is_result,
                   .tile = tile,
                   .window = *window,
                   .moves = moves,
                   .waits = {-1, -1}};
    x.name = s->top->p->g->values[whole->host - s->top->p->slots].name;
    tile->room.twice = true;
    s->streams = true;
    if (!ot_nd_bytes(window->dtype, window->rank, window->dims, &x.bytes))
        OT_BUG("an array of impossible size");
    const bool staged = is_result || !ot_nd_is_dense(window) || ot_device_about(s->dev)->pins;
    for (uint32_t k = 0; k < 2 && staged; k++) OT_TRY(new_staging(s, x.bytes, &x.staging[k]));
    return OT_PUSH(s->a, q->streams, q->n_streams, q->cap_streams, x) ? OT_OK
                                                                      : ot_fail_nomem(s->s->d);
}

ot_status dv_stream_in(dv_schedule *q, ot_id x, ot_id y, const ot_nd *window, const int64_t *moves)
{
    ot_id own;
    dv_value *whole = q->at[x];
    OT_TRY(dv_add(q, window, &own));
    dv_set(q, y, q->at[own]);
    return push(q, whole, q->at[own], window, moves, false);
}

/* The memory that t fills, all of it; NULL: it is a part, not the body's, or moves already. */
static dv_value *own_memory(const dv_schedule *q, ot_id t)
{
    int64_t all, part;
    dv_value *x = q->at[t];
    if (!ot_nd_is_dense(&q->arrays[t])) return NULL;
    for (; x->of; x = x->of)
        if (x->first || x->moves) return NULL;
    if (x->owner != q || x->memory != DV_ARENA || x->room.twice || !ot_nd_elems(&x->nd, &all) ||
        !ot_nd_elems(&q->arrays[t], &part))
        return NULL;
    return all == part ? x : NULL;
}

bool dv_has_own(const dv_schedule *q, ot_id t) { return own_memory(q, t) != NULL; }

ot_status dv_stream_out(dv_schedule *q, ot_id t, ot_id y, const ot_nd *window, const int64_t *moves)
{
    dv_value *tile = own_memory(q, t);
    if (!tile) OT_BUG("a tile that is a part of something");
    tile->used = true;
    return push(q, q->at[y], tile, window, moves, true);
}
