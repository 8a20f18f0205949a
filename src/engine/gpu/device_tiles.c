/* The operators of tiled models on a device (docs/engine-form.md): loops whose windows move and
 * whose data stays where it is.
 *
 *   Alloc              memory of the arena
 *   While              the body's kernels, iteration by iteration; its buffers are the outer values
 *                      themselves
 *   Slice              a window of the outer value; of a buffer that is carried: a copy, since
 *                      Deslices write over it
 *   Deslice            nothing where the tile is made in its place, else a copy to it
 */
#include "device_internal.h"

static ot_status bad(const dv_schedule *q, const ot_node *n, const char *what)
{
    char label[OT_LABEL_MAX];
    return ot_fail(q->s->s->d, OT_E_INPUT, "%s: %s", ot_node_label(n, label, sizeof label), what);
}

/* Elements of x before each iteration's window; NULL with *ok where nothing moves.
 * ot_check_tile_ops has checked the table. */
static const int64_t *moves_of(dv_schedule *q, const ot_node *n, const ot_nd *x, bool *ok)
{
    size_t n_axes, n_starts;
    const int64_t *axes = ot_attr_ints(n, "axes", &n_axes),
                  *starts = ot_attr_ints(n, "starts", &n_starts);
    size_t rows = axes && n_axes ? n_starts / n_axes : 0;
    int64_t *moves = OT_NEW_N(q->s->a, int64_t, rows + 1);
    *ok = moves != NULL;
    for (size_t i = 0; moves && i < rows; i++)
        for (size_t k = 0; k < n_axes; k++)
            moves[i] += starts[i * n_axes + k] * x->strides[axes[k]];
    return rows ? moves : NULL;
}

/* Shape of the window, strides of the whole. */
static ot_nd window_of(const ot_nd *whole, const ot_nd *window)
{
    ot_nd x = *window;
    memcpy(x.strides, whole->strides, sizeof x.strides);
    x.data = NULL;
    return x;
}

static ot_status push_nothing(dv_schedule *q, ot_step *step)
{
    const dv_unit u = {.kind = DV_NOTHING, .step = step, .n_nodes = 1};
    q->s->figures.n_device++;
    return OT_PUSH(q->s->a, q->units, q->n_units, q->cap_units, u) ? OT_OK
                                                                   : ot_fail_nomem(q->s->s->d);
}

static ot_status copy(dv_schedule *q, ot_step *step, ot_dg_array from, ot_dg_array to,
                      const int64_t *const moves[2])
{
    ot_dg_code code;
    OT_TRY(ot_dg_copy(&q->s->target, from, to, q->s->a, q->s->s->d, &code));
    if (code.why) return bad(q, step->node, code.why);
    return dv_push_code(q, step, step->node->op_type, 1, &code, moves);
}

static bool is_buffer(const dv_schedule *q, ot_id v)
{
    for (uint32_t k = 1; k < q->p->g->n_inputs; k++)
        if (q->p->g->inputs[k] == v) return true;
    return false;
}

static ot_status slice(dv_schedule *q, ot_step *step)
{
    ot_id x = step->in_ids[0], y = step->out_ids[0];
    bool ok;
    if (!dv_known(q, x) || !dv_known(q, y))
        return bad(q, step->node, "its operands have no known shape");
    const int64_t *moves = moves_of(q, step->node, &q->arrays[x], &ok);
    const ot_nd window = window_of(&q->arrays[x], &q->arrays[y]);
    if (!ok) return ot_fail_nomem(q->s->s->d);
    if (q->at[x]->host) {
        OT_TRY(dv_stream_in(q, x, y, &window, moves));
        return push_nothing(q, step);
    }
    if (is_buffer(q, x))
        return copy(q, step, (ot_dg_array){x, &window}, (ot_dg_array){y, &q->arrays[y]},
                    (const int64_t *const[2]){moves, NULL});
    OT_TRY(dv_window(q, y, q->at[x], &window, 0, moves));
    return push_nothing(q, step);
}

/* The tile leaves from its own memory, or from a copy's. */
static ot_status store_tile(dv_schedule *q, ot_step *step, ot_id t, ot_id y, const ot_nd *window,
                            const int64_t *moves)
{
    ot_id own = t;
    if (dv_has_own(q, t)) {
        OT_TRY(push_nothing(q, step));
    } else {
        OT_TRY(dv_add(q, &q->arrays[t], &own));
        OT_TRY(copy(q, step, (ot_dg_array){t, &q->arrays[t]}, (ot_dg_array){own, &q->arrays[own]},
                    (const int64_t *const[2]){NULL, NULL}));
    }
    return dv_stream_out(q, own, y, window, moves);
}

static ot_status deslice(dv_schedule *q, ot_step *step)
{
    ot_id t = step->in_ids[0], y = step->in_ids[1];
    bool ok;
    if (!dv_known(q, t) || !dv_known(q, y))
        return bad(q, step->node, "its operands have no known shape");
    const int64_t *moves = moves_of(q, step->node, &q->arrays[y], &ok);
    const ot_nd window = window_of(&q->arrays[y], &q->arrays[t]);
    if (!ok) return ot_fail_nomem(q->s->s->d);
    dv_set(q, step->out_ids[0], q->at[y]);
    if (q->at[y]->host) return store_tile(q, step, t, y, &window, moves);
    if (q->placed_in[t] != OT_NONE) return push_nothing(q, step);
    return copy(q, step, (ot_dg_array){t, &q->arrays[t]}, (ot_dg_array){y, &window},
                (const int64_t *const[2]){NULL, moves});
}

/* ---- tiles made in their place ---- */

ot_status dv_unplace(dv_schedule *q, ot_id v)
{
    ot_id own;
    if (v >= q->p->g->n_values || q->placed_in[v] == OT_NONE) return OT_OK;
    OT_TRY(dv_add(q, &q->arrays[v], &own));
    dv_set(q, v, q->at[own]);
    q->placed_in[v] = OT_NONE;
    return OT_OK;
}

ot_status dv_place_tiles(dv_schedule *q)
{
    if (!q->outer) return OT_OK;
    for (uint32_t k = 0; k < q->p->n_steps; k++) {
        const ot_step *step = &q->p->steps[k];
        bool ok;
        if (!ot_device_makes_in_place(&q->list, k)) continue;
        ot_id t = step->in_ids[0], y = step->in_ids[1];
        if (!dv_known(q, t) || !dv_known(q, y) || q->at[y]->host) continue;
        const int64_t *moves = moves_of(q, step->node, &q->arrays[y], &ok);
        if (!ok) return ot_fail_nomem(q->s->s->d);
        const ot_nd window = window_of(&q->arrays[y], &q->arrays[t]);
        OT_TRY(dv_window(q, t, q->at[y], &window, 0, moves));
        q->placed_in[t] = y;
    }
    return OT_OK;
}

/* ---- loops ---- */

/* The body's first input is the iteration, which tables stand for; the others are the outer
 * buffers. */
static ot_status loop(dv_schedule *q, ot_step *step)
{
    const ot_node *n = step->node;
    dv_schedule *body = OT_NEW(q->s->a, dv_schedule);
    dv_unit u = {.kind = DV_TILES,
                 .step = step,
                 .n_nodes = 1,
                 .body = body,
                 .count = ot_attr_int(n, "count", 0)};
    if (!body) return ot_fail_nomem(q->s->s->d);
    if (step->n_bodies != 1) return bad(q, n, "it has no body");
    *body = (dv_schedule){.s = q->s, .p = step->bodies[0].schedule, .outer = q};
    const ot_graph *g = body->p->g;
    if (step->n_in != step->n_out || g->n_inputs != step->n_in + 1 || g->n_outputs != step->n_out)
        return bad(q, n, "its buffers do not match its body's inputs and outputs");
    OT_TRY(dv_describe(body));
    for (uint32_t k = 0; k < step->n_in; k++) {
        if (!dv_known(q, step->in_ids[k])) return bad(q, n, "a buffer has no known shape");
        dv_set(body, g->inputs[k + 1], q->at[step->in_ids[k]]);
        dv_set(q, step->out_ids[k], q->at[step->in_ids[k]]);
    }
    OT_TRY(dv_make_units(body));
    q->s->figures.n_device++;
    return OT_PUSH(q->s->a, q->units, q->n_units, q->cap_units, u) ? OT_OK
                                                                   : ot_fail_nomem(q->s->s->d);
}

ot_status dv_tile_unit(dv_schedule *q, ot_step *step)
{
    const ot_node *n = step->node;
    if (!q->outer && ot_is_tile_op(n, "While")) return loop(q, step);
    if (!q->outer && ot_is_tile_op(n, "Alloc") && dv_known(q, step->out_ids[0]))
        return push_nothing(q, step);
    if (q->outer && ot_is_tile_op(n, "Slice") && step->n_in == 2) return slice(q, step);
    if (q->outer && ot_is_tile_op(n, "Deslice") && step->n_in == 3) return deslice(q, step);
    return bad(q, n, "this operator runs as part of a tiled region only");
}
