/* Tiles on their way between host and device while the kernels of other tiles run.
 *
 *   queue    i - 1          i              i + 1
 *   loads    [window i   ]  [window i + 1]
 *   kernels  [body i - 1 ]  [body i      ] [body i + 1]  body i waits for window i, and for result
 *                                                        i - 2 (its place)
 *   stores                  [result i - 1] [result i  ]  window i + 1 waits for body i - 1 (its
 *                           place)
 *
 * The host packs windows that have holes into staging memory, and puts results from there into
 * their places, two iterations behind.
 */
#include "device_internal.h"

#include "engine/cpu/move/box.h"

static char *place_in(const dv_stream *x, int64_t i)
{
    return (char *)x->host->nd.data +
           (x->moves ? x->moves[i] : 0) * (int64_t)ot_dtype_bytes(x->window.dtype);
}

static ot_nd dense_like(const ot_nd *window)
{
    ot_nd x;
    ot_nd_set_dense(&x, window->dtype, window->rank, window->dims);
    return x;
}

static ot_status wait_for(dv_session *s, ot_dev_event event)
{
    ot_device_error e;
    return event.serial ? dv_told(s, ot_dev_wait(s->dev, event, &e), &e) : OT_OK;
}

static ot_status flush(dv_session *s, ot_dev_queue q)
{
    ot_device_error e;
    return dv_told(s, ot_dev_flush(s->dev, q, &e), &e);
}

/* ---- results ---- */

/* What staging has of that turn goes into the array. */
static ot_status finish_turn(dv_session *s, dv_stream *x, uint32_t turn)
{
    int64_t i = x->waits[turn];
    if (i < 0) return OT_OK;
    const ot_nd tile = dense_like(&x->window);
    OT_TRY(wait_for(s, x->moved[turn]));
    ot_box_copy((ot_box_shape){ot_dtype_bytes(tile.dtype), tile.rank, tile.dims}, place_in(x, i),
                x->window.strides, x->staging[turn], tile.strides, 1);
    x->waits[turn] = -1;
    return OT_OK;
}

static ot_status store(const dv_at *r, dv_stream *x)
{
    dv_session *s = r->s;
    const uint32_t turn = r->i & 1;
    const ot_dev_after after = {&s->last, 1};
    ot_dev_slice from;
    ot_device_error e;
    OT_TRY(finish_turn(s, x, turn));
    OT_TRY(dv_windows_close(s, false));
    OT_TRY(dv_slice_of(r, x->tile, &from));
    OT_TRY(dv_told(
        s, ot_dev_download(s->dev, s->stores, x->staging[turn], from, &after, &e, &s->stored), &e));
    x->moved[turn] = s->stored;
    x->waits[turn] = r->i;
    s->figures.downloaded += from.bytes;
    s->figures.n_downloads++;
    return OT_OK;
}

ot_status dv_moves_store(const dv_at *r)
{
    bool any = false;
    for (size_t k = 0; k < r->q->n_streams; k++) {
        if (!r->q->streams[k].is_result) continue;
        OT_TRY(store(r, &r->q->streams[k]));
        any = true;
    }
    r->s->turns[r->i & 1].computed = r->s->last;
    r->s->turns[r->i & 1].stored = r->s->stored;
    r->s->waits[DV_WAITS_LOADED] = (ot_dev_event){0};
    r->s->waits[DV_WAITS_STORED] = r->s->stored; /* for who uses the memory behind the loop */
    return any ? flush(r->s, r->s->stores) : OT_OK;
}

ot_status dv_moves_end(dv_session *s, bool failed)
{
    for (size_t u = 0; u < s->top->n_units; u++) {
        const dv_schedule *body = s->top->units[u].body;
        for (size_t k = 0; body && k < body->n_streams; k++) {
            dv_stream *x = &body->streams[k];
            const bool first = x->waits[0] > x->waits[1]; /* turn of the older one */
            if (failed) x->waits[0] = x->waits[1] = -1;
            OT_TRY(finish_turn(s, x, first));
            OT_TRY(finish_turn(s, x, !first));
        }
    }
    return OT_OK;
}

/* ---- inputs ---- */

static ot_status load(const dv_at *r, dv_stream *x)
{
    dv_session *s = r->s;
    dv_turn *turn = &s->turns[r->i & 1];
    /* other loops have used these places until now, this one has other places for what it stores */
    const ot_dev_event before[2] = {turn->computed, turn->stored};
    const ot_dev_after after = {before, r->i < 2 ? 2 : 1};
    const char *from = place_in(x, r->i);
    char *staging = x->staging[r->i & 1];
    ot_dev_slice to;
    ot_device_error e;
    if (staging) {
        const ot_nd tile = dense_like(&x->window);
        OT_TRY(wait_for(s, x->moved[r->i & 1]));
        ot_box_copy((ot_box_shape){ot_dtype_bytes(tile.dtype), tile.rank, tile.dims}, staging,
                    tile.strides, from, x->window.strides, 1);
    }
    OT_TRY(dv_slice_of(r, x->tile, &to));
    OT_TRY(dv_windows_close(s, false));
    OT_TRY(dv_told(
        s, ot_dev_upload(s->dev, s->loads, to, staging ? staging : from, &after, &e, &turn->loaded),
        &e));
    x->moved[r->i & 1] = turn->loaded;
    s->figures.uploaded += to.bytes;
    s->figures.n_uploads++;
    return OT_OK;
}

static ot_status load_all(const dv_at *r, int64_t count)
{
    bool any = false;
    for (size_t k = 0; k < r->q->n_streams && r->i < count; k++) {
        if (r->q->streams[k].is_result || !r->q->streams[k].tile->used) continue;
        OT_TRY(load(r, &r->q->streams[k]));
        any = true;
    }
    return any ? flush(r->s, r->s->loads) : OT_OK;
}

ot_status dv_moves_load(const dv_at *r, int64_t count)
{
    const dv_turn *turn = &r->s->turns[r->i & 1];
    const dv_at next = {r->s, r->q, r->i + 1};
    OT_TRY(load_all(&next, count));
    r->s->waits[DV_WAITS_LOADED] = turn->loaded;
    r->s->waits[DV_WAITS_STORED] = turn->stored;
    return OT_OK;
}

ot_status dv_moves_begin(const dv_at *r, int64_t count)
{
    dv_session *s = r->s;
    for (size_t k = 0; k < r->q->n_streams; k++) {
        const dv_stream *x = &r->q->streams[k];
        if (!x->is_result)
            OT_TRY(dv_check_array(s, x->name, &x->host->nd, x->whole));
        else if (!x->host->nd.data)
            OT_TRY(dv_make_array(s, x->host, x->whole));
    }
    s->turns[0] = s->turns[1] = (dv_turn){.computed = s->last, .stored = s->stored};
    return load_all(r, count);
}
