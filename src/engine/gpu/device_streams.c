/* Inputs and results of the graph that loops alone touch, tile by tile: they stay on the host,
 * and only tiles are on the device.
 *
 *   x (input, host)   ~~window i~~>  [tile, tile']  --kernels of the body-->  [tile, tile']
 *                     ~~place i~~>  y (result, host)
 *
 * A tile has two places, so that one moves while kernels use the other. An input stays on the
 * host where its two tiles take half of it at the most, and halos move it twice at the most.
 *
 */
#include "device_internal.h"

#include "machine/runtime/runtime.h"

#include <math.h>

/* What loops do with an array. */
typedef struct use {
    double tiles; /* bytes of tiles in one loop, at the most */
    double moved; /* bytes by all loops */
    bool otherwise;
} use;

static double bytes_of(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    int64_t bytes;
    return ot_value_is_static(x) && ot_nd_bytes(x->dtype, (uint32_t)x->rank, x->dims, &bytes)
               ? (double)bytes
               : INFINITY;
}

static bool is_loop(const ot_step *step)
{
    return ot_is_tile_op(step->node, "While") && step->n_bodies == 1;
}

/* ---- inputs ---- */

/* Adds what the loop does with the value of that slot: windows, or otherwise. */
static void add_windows(const ot_step *loop, const ot_slot *slot, use *u)
{
    const ot_prog *body = loop->bodies[0].prog;
    double tiles = 0;
    for (uint32_t k = 0; k < body->n_steps; k++) {
        const ot_step *step = &body->steps[k];
        for (uint32_t j = 0; j < step->n_in + step->node->n_captured; j++) {
            ot_id v = j < step->n_in ? step->in_ids[j] : step->node->captured[j - step->n_in];
            if (v == OT_NONE || body->at[v] != slot) continue;
            if (j > 0 || !ot_is_tile_op(step->node, "Slice"))
                u->otherwise = true;
            else
                tiles += bytes_of(body->g, step->out_ids[0]);
        }
    }
    u->tiles = fmax(u->tiles, tiles);
    u->moved += tiles * (double)ot_attr_int(loop->node, "count", 0);
}

static bool input_stays(const dv_prog *q, ot_id v)
{
    use u = {0};
    if (!dv_known(q, v) || q->p->at[v]->is_const || q->p->at[v]->is_result || q->n_readers[v] == 0)
        return false;
    for (uint32_t k = 0; k < q->n_readers[v] && !u.otherwise; k++) {
        const ot_step *step = &q->p->steps[q->readers[q->reader_first[v] + k]];
        for (uint32_t j = 0; j < step->n_in; j++) u.otherwise |= step->in_ids[j] == v;
        if (!is_loop(step)) return false;
        add_windows(step, q->p->at[v], &u);
    }
    double whole = bytes_of(q->p->g, v);
    return !u.otherwise && 2 * u.tiles <= OT_STREAM_PART_MOST * whole &&
           u.moved <= OT_STREAM_MOVES_MOST * whole;
}

/* ---- results ---- */

/* Bytes of the tiles that a body writes into its buffer j (from 1), by Deslices alone:
 * ot_check_tile_ops has seen to that. */
static double tiles_of(const ot_prog *body, uint32_t j)
{
    double tiles = 0;
    for (ot_id v = body->g->inputs[j]; v != OT_NONE;) {
        ot_id next = OT_NONE;
        for (uint32_t k = 0; k < body->n_steps && next == OT_NONE; k++) {
            const ot_step *step = &body->steps[k];
            if (!ot_is_tile_op(step->node, "Deslice") || step->in_ids[1] != v) continue;
            tiles += bytes_of(body->g, step->in_ids[0]);
            next = step->out_ids[0];
        }
        v = next;
    }
    return tiles;
}

/* The Alloc whose memory a chain of loops has filled when v is there, v being no rows that are
 * handed on; OT_NONE: it is not made so. */
static ot_id filled(const dv_prog *q, ot_id v, double *tiles)
{
    for (*tiles = 0;;) {
        uint32_t by = q->maker[v], j = 0;
        if (by == OT_NONE) return OT_NONE;
        const ot_step *step = &q->p->steps[by];
        if (ot_is_tile_op(step->node, "Alloc")) return *tiles > 0 ? v : OT_NONE;
        if (!is_loop(step) || step->n_in != step->n_out) return OT_NONE;
        while (j < step->n_out && step->out_ids[j] != v) j++;
        if (j >= step->n_in - (uint32_t)ot_attr_int(step->node, "carried", 0) ||
            step->n_in + 1 != step->bodies[0].prog->g->n_inputs)
            return OT_NONE;
        *tiles = fmax(*tiles, tiles_of(step->bodies[0].prog, j + 1));
        v = step->in_ids[j];
        if (dv_only_reader(q, v) != by) return OT_NONE;
    }
}

ot_status dv_find_streams(dv_prog *q)
{
    const ot_graph *g = q->p->g;
    double tiles;
    for (uint32_t k = 0; k < g->n_inputs; k++)
        if (input_stays(q, g->inputs[k])) q->at[g->inputs[k]]->host = q->p->at[g->inputs[k]];
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        ot_id v = g->outputs[k],
              buffer = dv_known(q, v) && q->n_readers[v] == 0 ? filled(q, v, &tiles) : OT_NONE;
        if (buffer != OT_NONE && 2 * tiles <= OT_STREAM_PART_MOST * bytes_of(g, v))
            q->at[buffer]->host = q->p->at[v];
    }
    return OT_OK;
}

/* ---- streams of a body ---- */

static ot_status push(dv_prog *q, dv_value *whole, dv_value *tile, const ot_nd *window,
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
    tile->twice = true;
    s->streams = true;
    if (!ot_nd_bytes(window->dtype, window->rank, window->dims, &x.bytes))
        OT_BUG("an array of impossible size");
    for (uint32_t k = 0; k < 2 && (is_result || !ot_nd_is_dense(window)); k++)
        if (!(x.staging[k] = ot_alloc(s->a, (size_t)x.bytes))) return ot_fail_nomem(s->s->d);
    return OT_PUSH(s->a, q->streams, q->n_streams, q->cap_streams, x) ? OT_OK
                                                                      : ot_fail_nomem(s->s->d);
}

ot_status dv_stream_in(dv_prog *q, ot_id x, ot_id y, const ot_nd *window, const int64_t *moves)
{
    ot_id own;
    dv_value *whole = q->at[x];
    OT_TRY(dv_add(q, window, &own));
    dv_set(q, y, q->at[own]);
    return push(q, whole, q->at[own], window, moves, false);
}

/* The memory that t fills, all of it; NULL: it is a part, not the body's, or moves already. */
static dv_value *own_memory(const dv_prog *q, ot_id t)
{
    int64_t all, part;
    dv_value *x = q->at[t];
    if (!ot_nd_is_dense(&q->arrays[t])) return NULL;
    for (; x->of; x = x->of)
        if (x->first || x->moves) return NULL;
    if (x->owner != q || x->memory != DV_ARENA || x->twice || !ot_nd_elems(&x->nd, &all) ||
        !ot_nd_elems(&q->arrays[t], &part))
        return NULL;
    return all == part ? x : NULL;
}

bool dv_has_own(const dv_prog *q, ot_id t) { return own_memory(q, t) != NULL; }

ot_status dv_stream_out(dv_prog *q, ot_id t, ot_id y, const ot_nd *window, const int64_t *moves)
{
    dv_value *tile = own_memory(q, t);
    if (!tile) OT_BUG("a tile that is a part of something");
    tile->used = true;
    return push(q, q->at[y], tile, window, moves, true);
}
