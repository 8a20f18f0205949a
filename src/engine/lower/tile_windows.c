/* Windows of tiles: Slice and Deslice in the bodies of tiled regions. See fuse_tiles.c. */
#include "tiles.h"

#include "engine/core/row_window.h"
#include "engine/cpu/move/box.h"

ot_status lw_bad_node(const lw_pass *l, const ot_node *n, const char *what)
{
    char label[OT_LABEL_MAX];
    return ot_fail(l->p->s->d, OT_E_INPUT, "%s: %s", ot_node_label(n, label, sizeof label), what);
}

/* The table of a Slice or Deslice, its windows of `window` (dims) within `whole`. */
static ot_status read_table(lw_pass *l, const ot_node *n, const ot_nd *whole, const ot_nd *window,
                            lw_table *t)
{
    size_t n_axes, n_starts;
    t->axes = ot_attr_ints(n, "axes", &n_axes);
    t->starts = ot_attr_ints(n, "starts", &n_starts);
    bool whole_array = !t->axes || n_axes == 0;
    if (whole_array) n_axes = 0;
    if (whole->rank != window->rank || whole->dtype != window->dtype)
        return lw_bad_node(l, n, "its window has another rank or type");
    if (!whole_array && (!t->starts || n_starts % n_axes != 0))
        return lw_bad_node(l, n, "its starts are not a row for each iteration");
    t->n_axes = (uint32_t)n_axes;
    t->rows = whole_array ? INT64_MAX : (int64_t)(n_starts / n_axes);
    int64_t room[OT_RANK_MAX];
    for (uint32_t a = 0; a < whole->rank; a++) room[a] = whole->dims[a] - window->dims[a];
    bool cut[OT_RANK_MAX] = {false};
    for (uint32_t k = 0; k < n_axes; k++) {
        if (t->axes[k] < 0 || t->axes[k] >= whole->rank || cut[t->axes[k]])
            return lw_bad_node(l, n, "an axis is out of range or named twice");
        cut[t->axes[k]] = true;
    }
    for (size_t k = 0; n_axes && k < n_starts; k++) {
        int64_t a = t->axes[k % n_axes];
        if (t->starts[k] < 0 || t->starts[k] > room[a])
            return lw_bad_node(l, n, "a window lies outside of its tensor");
    }
    for (uint32_t a = 0; a < whole->rank; a++)
        if (!cut[a] && room[a] != 0)
            return lw_bad_node(l, n,
                               "its window differs from the tensor along an axis that is not cut");
    return OT_OK;
}

/* *w: the window of `whole` in this iteration; dims are set already. */
static ot_status open_window(ot_call *c, const lw_table *t, const ot_nd *whole,
                             const ot_nd *iteration, ot_nd *w)
{
    int64_t i = ot_nd_int(iteration, 0), at = 0;
    if (i < 0 || i >= t->rows) return ot_call_fail(c, "there is no iteration %lld", (long long)i);
    for (uint32_t k = 0; k < t->n_axes; k++)
        at += t->starts[i * t->n_axes + k] * whole->strides[t->axes[k]];
    memcpy(w->strides, whole->strides, sizeof w->strides);
    w->data = (char *)whole->data + at * (int64_t)ot_dtype_bytes(w->dtype);
    w->block = NULL;
    return OT_OK;
}

static ot_status run_tile_in(ot_call *c)
{
    ot_slot *slot = c->frame->step->out_slots[0];
    const lw_table *t = c->plan;
    slot->nd = slot->fore;
    slot->handed = true;
    OT_TRY(open_window(c, t, c->in[0], c->in[1], &slot->nd));
    if (t->dense) memcpy(slot->nd.strides, slot->fore.strides, sizeof slot->nd.strides);
    return OT_OK;
}

/* in: buffer, iteration; out: a copy of its window, which may be written over from now on. */
static ot_status run_tile_copy(ot_call *c)
{
    ot_nd window;
    OT_TRY(ot_call_place(c, 0));
    memset(&window, 0, sizeof window);
    ot_nd_set_dense(&window, c->in[0]->dtype, c->in[0]->rank, c->out[0]->dims);
    OT_TRY(open_window(c, c->plan, c->in[0], c->in[1], &window));
    ot_box_relayout(c->out[0], &window, 1);
    return OT_OK;
}

/* in: buffer, tile, iteration; out: the buffer. */
static ot_status run_tile_out(ot_call *c)
{
    ot_slot *slot = c->frame->step->out_slots[0];
    ot_nd window;
    memset(&window, 0, sizeof window);
    ot_nd_set_dense(&window, c->in[1]->dtype, c->in[1]->rank, c->in[1]->dims);
    OT_TRY(open_window(c, c->plan, c->in[0], c->in[2], &window));
    bool there = c->in[1]->data == window.data; /* made in its place */
    const ot_schedule *p = c->frame->schedule;
    if (p->s->windows && !there)
        OT_TRY(ot_row_windows_need(p->s->windows, c->in[1], p->worker, c->diag));
    if (!there) ot_box_relayout(&window, c->in[1], 1);
    OT_TRY(
        ot_row_windows_wrote(p->s->windows, &window, ((const lw_table *)c->plan)->again, c->diag));
    slot->nd = *c->in[0];
    slot->nd.block = NULL;
    slot->handed = true;
    return OT_OK;
}

/* v as the window of `whole` at the iteration, by node n: its id. */
static ot_status take_window(lw_pass *l, const ot_node *n, ot_id whole, ot_id iteration, ot_id v,
                             ot_id *out)
{
    ot_id in[2];
    ot_step *step = NULL;
    lw_table *t = OT_NEW(l->a, lw_table);
    if (!t) return ot_fail_nomem(l->p->s->d);
    OT_TRY(read_table(l, n, &l->v[whole].slot->fore, &l->v[v].slot->fore, t));
    OT_TRY(lw_need(l, whole, LW_ANY_PLAIN, LW_PLAIN, &in[0]));
    OT_TRY(lw_need(l, iteration, LW_BIT(LW_PLAIN), LW_PLAIN, &in[1]));
    t->dense = !l->v[v].slot->is_result &&
               lw_stays_dense(&l->v[v].slot->fore, &l->ids[in[0]]->fore);
    OT_TRY(lw_make(l, v, t->dense ? LW_PLAIN : LW_PLAIN_VIEW, out));
    if (!t->dense)
        memcpy(l->ids[*out]->fore.strides, l->ids[in[0]]->fore.strides,
               sizeof l->ids[*out]->fore.strides);
    OT_TRY(lw_push(l, n, run_tile_in, t, (ot_id_list){in, 2}, (ot_id_list){out, 1}, &step));
    step->is_view = true;
    return OT_OK;
}

static ot_status copy_window(lw_pass *l, lw_unit *u)
{
    ot_id in[2], out;
    ot_step *step = NULL;
    lw_table *t = OT_NEW(l->a, lw_table);
    if (!t) return ot_fail_nomem(l->p->s->d);
    OT_TRY(read_table(l, u->nodes[0], &l->v[u->in[0]].slot->fore, &l->v[u->out[0]].slot->fore, t));
    OT_TRY(lw_need(l, u->in[0], LW_BIT(LW_PLAIN), LW_PLAIN, &in[0]));
    OT_TRY(lw_need(l, u->in[1], LW_BIT(LW_PLAIN), LW_PLAIN, &in[1]));
    OT_TRY(lw_make(l, u->out[0], LW_PLAIN, &out));
    return lw_push(l, u->nodes[0], run_tile_copy, t, (ot_id_list){in, 2}, (ot_id_list){&out, 1},
                   &step);
}

/* Whoever reads the window of a carried buffer copies it, before anything is written to the buffer.
 */
static bool read_in_time(const lw_pass *l, const lw_unit *u)
{
    const lw_value *window = &l->v[u->out[0]], *buffer = &l->v[u->in[0]];
    uint32_t written = l->n_units;
    for (uint32_t k = 0; k < buffer->n_readers; k++) {
        const uint32_t by = l->readers[buffer->first + k];
        if (l->units[by].kind == LW_TILE_OUT && by < written) written = by;
    }
    for (uint32_t k = 0; k < window->n_readers; k++) {
        const uint32_t by = l->readers[window->first + k];
        if (l->units[by].kind != LW_CONCAT || by >= written) return false;
    }
    return !window->is_kept;
}

ot_status lw_write_tile_in(lw_pass *l, lw_unit *u)
{
    ot_id out;
    if (l->p->g->values[u->in[0]].is_input && !read_in_time(l, u)) return copy_window(l, u);
    return take_window(l, u->nodes[0], u->in[0], u->in[1], u->out[0], &out);
}

ot_status lw_tile_place(lw_pass *l, ot_id v, ot_id *place)
{
    uint32_t reader = lw_only_reader(l, v);
    const lw_unit *u = reader == OT_NONE ? NULL : &l->units[reader];
    *place = OT_NONE;
    if (!u || u->kind != LW_TILE_OUT || u->in[0] != v || l->v[u->in[1]].maker != OT_NONE ||
        l->v[u->in[2]].maker != OT_NONE || lw_only_reader(l, u->in[1]) != reader)
        return OT_OK; /* or others write to the buffer before, or read it */
    return take_window(l, u->nodes[0], u->in[1], u->in[2], v, place);
}

ot_status lw_write_tile_out(lw_pass *l, lw_unit *u)
{
    ot_id in[3], out;
    ot_step *step = NULL;
    lw_table *t = OT_NEW(l->a, lw_table);
    if (!t) return ot_fail_nomem(l->p->s->d);
    OT_TRY(read_table(l, u->nodes[0], &l->v[u->in[1]].slot->fore, &l->v[u->in[0]].slot->fore, t));
    t->again = ot_attr_int(u->nodes[0], "again", 0) != 0;
    bool real = lw_is_real(l, u->in[0]);
    OT_TRY(lw_need(l, u->in[1], LW_BIT(LW_PLAIN), LW_PLAIN, &in[0]));
    OT_TRY(
        lw_need(l, u->in[0], real ? LW_ANY_PLAIN | LW_ANY_BLOCK : LW_ANY_PLAIN, LW_PLAIN, &in[1]));
    OT_TRY(lw_need(l, u->in[2], LW_BIT(LW_PLAIN), LW_PLAIN, &in[2]));
    OT_TRY(lw_make(l, u->out[0], LW_PLAIN, &out));
    OT_TRY(lw_push(l, u->nodes[0], run_tile_out, t, (ot_id_list){in, 3}, (ot_id_list){&out, 1},
                   &step));
    step->is_view = true;
    return OT_OK;
}

const lw_table *lw_table_of(const ot_step *step)
{
    const bool is = step->run == run_tile_in || step->run == run_tile_out ||
                    step->run == run_tile_copy;
    return is ? step->plan : NULL;
}

bool lw_is_tile_out(const ot_step *step) { return step->run == run_tile_out; }
