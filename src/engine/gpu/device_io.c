/* Arrays on their way between host and device: inputs, results, what nodes on the host read and
 * make, weights.
 *
 *   unit        begin     0          1          2          3             end
 *   up          [a][b]                          [c]
 *   queue                 [unit 0]   [unit 1]   [unit 2]   [unit 3]
 *   down                                        [r]                  [y]
 *
 * An input is moved when the run begins, what is read first before the others; where another value
 * has its bytes before it (c), behind the last unit that uses that. A result leaves behind the
 * unit that makes it; where another value gets its bytes (r), that one's unit waits.
 *
 * Where the host is the device (a CPU under OpenCL or Vulkan), arrays are copied through maps of
 * its memory (src/device/maps.c), without commands, as long as no kernel runs: inputs before the
 * first one, results that keep their bytes after the last one, operands of a node on the host when
 * it is waited for, weights. A map stays for the session, or, where commands cannot use a buffer
 * that is mapped, until the next command.
 */
#include "device_internal.h"

#include "device/profile.h"

#define STAGING_BYTES ((int64_t)256 << 10) /* what is larger is not worth a copy on its way */

/* ---- windows ---- */

bool dv_maps(const ot_device_facts *f) { return f->is_cpu && f->unified; }

static ot_status close_window(dv_session *s, dv_mapping *w)
{
    ot_device_error e;
    if (!w->map.id) return OT_OK;
    const ot_dev_map map = w->map;
    *w = (dv_mapping){0};
    return dv_told(s, ot_dev_map_close(s->dev, map, &e), &e);
}

ot_status dv_windows_close(dv_session *s, bool all)
{
    if (!all && ot_device_about(s->dev)->maps_stay) return OT_OK;
    for (uint32_t k = 0; s->windows && k < s->n_windows; k++)
        OT_TRY(close_window(s, &s->windows[k]));
    return OT_OK;
}

/* The block of the session's memory that the slice lies in. */
static dv_mapping *window_of(const dv_session *s, ot_dev_slice x, ot_dev_slice *whole)
{
    for (uint32_t k = 0; k < s->n_windows; k++) {
        *whole = k < s->n_blocks ? s->weights[k] : s->arena[k - s->n_blocks];
        if (whole->buffer.id == x.buffer.id) return &s->windows[k];
    }
    OT_BUG("a slice of no block");
}

/* The host's view of x, as the device left it where the host reads it. Nothing that uses x runs. */
static ot_status look_at(dv_session *s, ot_dev_slice x, bool reads, dv_mapping **w, int64_t *at)
{
    ot_device_error e;
    ot_dev_slice whole;
    void *data;
    *w = window_of(s, x, &whole);
    *at = x.offset - whole.offset;
    if ((*w)->map.id && (!reads || !ot_device_about(s->dev)->maps_stay)) return OT_OK;
    if ((*w)->map.id)
        return dv_told(s, ot_dev_map_invalidate(s->dev, (*w)->map, *at, x.bytes, &e), &e);
    OT_TRY(dv_told(s,
                   ot_dev_map_open(s->dev, whole, OT_DEV_HOST_READS | OT_DEV_HOST_WRITES, &e,
                                   &(*w)->map, &data),
                   &e));
    (*w)->data = data;
    return OT_OK;
}

static ot_status wrote(dv_session *s, const dv_mapping *w, int64_t at, int64_t bytes)
{
    ot_device_error e;
    /* else the next command closes it */
    if (!ot_device_about(s->dev)->maps_stay) return OT_OK;
    return dv_told(s, ot_dev_map_flush(s->dev, w->map, at, bytes, &e), &e);
}

static ot_status write_mapped(dv_session *s, ot_dev_slice to, const void *from)
{
    dv_mapping *w;
    int64_t at;
    const double start = ot_now();
    OT_TRY(look_at(s, to, false, &w, &at));
    memcpy(w->data + at, from, (size_t)to.bytes);
    s->figures.mapped_up += to.bytes;
    OT_TRY(wrote(s, w, at, to.bytes));
    ot_device_profile_mapped(s->dev, "map", OT_DEV_WORK_UPLOAD, to.bytes, start, ot_now());
    return OT_OK;
}

static ot_status read_mapped(dv_session *s, void *to, ot_dev_slice from)
{
    dv_mapping *w;
    int64_t at;
    const double start = ot_now();
    OT_TRY(look_at(s, from, true, &w, &at));
    memcpy(to, w->data + at, (size_t)from.bytes);
    s->figures.mapped_down += from.bytes;
    ot_device_profile_mapped(s->dev, "map", OT_DEV_WORK_DOWNLOAD, from.bytes, start, ot_now());
    return OT_OK;
}

/* ---- the mover ---- */

ot_status dv_need_mover(dv_session *s)
{
    ot_device_error e;
    const ot_dev_mover_options o = {.staging_bytes = ot_device_about(s->dev)->pins ? 0
                                                                                   : STAGING_BYTES};
    OT_TRY(dv_windows_close(s, false));
    if (s->mover) return OT_OK;
    OT_TRY(dv_told(s, ot_dev_mover_new(s->dev, &o, &e, &s->mover), &e));
    ot_dev_mover_queues(s->mover, &s->loads, &s->stores);
    return OT_OK;
}

static ot_status put(dv_session *s, const ot_dev_request *r, ot_dev_ticket *ticket)
{
    ot_device_error e;
    OT_TRY(dv_need_mover(s));
    return dv_told(s, ot_dev_request_put(s->mover, r, &e, ticket), &e);
}

static ot_status event_of(dv_session *s, ot_dev_ticket t, ot_dev_event *out)
{
    ot_device_error e;
    return dv_told(s, ot_dev_ticket_event(s->mover, t, &e, out), &e);
}

static ot_status wait_for(dv_session *s, ot_dev_event event)
{
    ot_device_error e;
    return event.serial ? dv_told(s, ot_dev_wait(s->dev, event, &e), &e) : OT_OK;
}

/* The next command waits for it, next to what it waits for already. */
static void wait_later(dv_session *s, dv_waits which, ot_dev_event event)
{
    if (event.serial > s->waits[which].serial) s->waits[which] = event;
}

/* ---- to the device ---- */

/* v of the graph, on the host. *ticket: 0 where it is there already. */
static ot_status send(const dv_at *r, ot_id v, ot_dev_priority priority, ot_dev_ticket *ticket)
{
    dv_session *s = r->s;
    const ot_nd *from = &r->q->p->at[v]->nd;
    const dv_value *x = r->q->at[v];
    ot_dev_slice to;
    *ticket = 0;
    if (!dv_root(r->q->at[v])->used) return OT_OK;
    OT_TRY(dv_check_array(s, r->q->p->g->values[v].name, from, &x->nd));
    OT_TRY(dv_slice_of(r, x, &to));
    s->figures.uploaded += to.bytes;
    s->figures.n_uploads++;
    if (s->maps && s->idle) {
        OT_TRY(wait_for(s, s->stored)); /* of a value whose bytes it gets */
        return write_mapped(s, to, from->data);
    }
    const ot_dev_event before[2] = {s->last, s->stored};
    const ot_dev_after after = {before, 2};
    const ot_dev_request put_it = {.priority = priority,
                                   .to = to,
                                   .source = from->data,
                                   .room = x->of ? 0 : dv_padding(to.bytes),
                                   .after = &after};
    return put(s, &put_it, ticket);
}

ot_status dv_send_first(dv_session *s)
{
    const dv_at r = {.s = s, .q = s->top};
    const dv_schedule *q = s->top;
    bool first = true; /* unit that reads any */
    for (size_t u = 0; u < q->n_units; u++) {
        const dv_unit *x = &q->units[u];
        for (uint32_t k = 0; k < x->n_inputs; k++) {
            ot_dev_ticket *t = &s->tickets[x->inputs[k].v];
            *t = 0;
            if (x->inputs[k].behind != OT_NONE) continue;
            OT_TRY(send(&r, x->inputs[k].v, first ? OT_DEV_HIGH : OT_DEV_NORMAL, t));
        }
        first = first && x->n_inputs == 0;
    }
    return OT_OK;
}

ot_status dv_send_behind(const dv_at *r, const dv_unit *u)
{
    for (uint32_t k = 0; k < u->n_sends; k++)
        OT_TRY(send(r, u->sends[k], OT_DEV_NORMAL, &r->s->tickets[u->sends[k]]));
    return OT_OK;
}

ot_status dv_await_moves(dv_session *s, const dv_unit *u)
{
    for (uint32_t k = 0; k < u->n_inputs; k++) {
        const ot_dev_ticket t = s->tickets[u->inputs[k].v];
        ot_dev_event event;
        if (!t) continue;
        OT_TRY(event_of(s, t, &event));
        wait_later(s, DV_WAITS_UP, event);
    }
    if (u->after_results) wait_later(s, DV_WAITS_DOWN, s->stored);
    return OT_OK;
}

/* The later of the tickets' events: uploads are in one queue, in an order of its own. */
static ot_status wait_for_sent(dv_session *s, ot_dev_ticket first, ot_dev_ticket last)
{
    ot_dev_event event;
    for (ot_dev_ticket t = first; t && t <= last; t++) {
        OT_TRY(event_of(s, t, &event));
        wait_later(s, DV_WAITS_UP, event);
    }
    return OT_OK;
}

ot_status dv_send_made(const dv_at *r, const dv_unit *u)
{
    ot_dev_ticket first = 0, last = 0, t;
    for (uint32_t k = 0; k < u->n_uploads; k++) {
        OT_TRY(send(r, u->uploads[k], OT_DEV_HIGH, &t));
        if (!first) first = t;
        if (t) last = t;
    }
    return wait_for_sent(r->s, first, last);
}

/* ---- to the host ---- */

ot_status dv_make_array(dv_session *s, ot_slot *slot, const ot_nd *x)
{
    if (slot->place == OT_PLACE_CALLER &&
        ot_nd_same_shape(&slot->want, x->dtype, x->rank, x->dims)) {
        slot->nd = slot->want;
        slot->nd.block = NULL;
        return OT_OK;
    }
    ot_nd_set_dense(&slot->nd, x->dtype, x->rank, x->dims);
    return ot_nd_allocate(&slot->nd, &s->s->heap, s->s->d);
}

/* Nothing runs that the host's operands come from, nor what it will not see. */
static ot_status be_idle(dv_session *s)
{
    ot_device_error e;
    if (s->idle) return OT_OK;
    OT_TRY(dv_told(s, ot_dev_finish(s->dev, s->queue, &e), &e));
    for (uint32_t k = 0; k < DV_WAITS; k++) OT_TRY(wait_for(s, s->waits[k]));
    s->idle = true;
    return OT_OK;
}

/* Download k of the unit into its slot, or on its way to it (*ticket). */
static ot_status fetch(const dv_at *r, const dv_unit *u, uint32_t k, ot_dev_priority priority,
                       ot_dev_ticket *ticket)
{
    dv_session *s = r->s;
    ot_slot *slot = r->q->p->at[u->downloads[k]];
    const dv_value *x = r->q->at[u->from[k]];
    ot_dev_slice from;
    *ticket = 0;
    if (slot->nd.data) return OT_OK; /* for another reader */
    OT_TRY(dv_make_array(s, slot, &x->nd));
    OT_TRY(dv_slice_of(r, x, &from));
    s->figures.downloaded += from.bytes;
    s->figures.n_downloads++;
    if (s->maps && s->idle) return read_mapped(s, slot->nd.data, from);
    ot_dev_event before[1 + DV_WAITS] = {s->last};
    memcpy(before + 1, s->waits, sizeof s->waits);
    const ot_dev_after after = {before, 1 + DV_WAITS};
    const ot_dev_request put_it = {.direction = OT_DEV_TO_HOST,
                                   .priority = priority,
                                   .from = from,
                                   .sink = slot->nd.data,
                                   .after = &after};
    return put(s, &put_it, ticket);
}

ot_status dv_fetch_operands(const dv_at *r, const dv_unit *u)
{
    dv_session *s = r->s;
    ot_device_error e;
    ot_dev_ticket first = 0, last = 0, t;
    if (u->n_downloads && s->maps) OT_TRY(be_idle(s));
    for (uint32_t k = 0; k < u->n_downloads; k++) {
        OT_TRY(fetch(r, u, k, OT_DEV_HIGH, &t));
        if (!first) first = t;
        if (t) last = t;
    }
    for (t = first; t && t <= last; t++)
        OT_TRY(dv_told(s, ot_dev_ticket_wait(s->mover, t, &e), &e));
    return OT_OK;
}

ot_status dv_fetch_results(const dv_at *r, const dv_unit *u)
{
    ot_dev_ticket first = 0, last = 0, t;
    for (uint32_t k = 0; k < u->n_downloads; k++) {
        if (r->s->maps && u->stays && u->stays[k]) continue; /* dv_fetch_last */
        OT_TRY(fetch(r, u, k, OT_DEV_NORMAL, &t));
        if (!first) first = t;
        if (t) last = t;
    }
    for (t = first; t && t <= last; t++) {
        ot_dev_event event;
        OT_TRY(event_of(r->s, t, &event));
        if (event.serial > r->s->stored.serial) r->s->stored = event;
    }
    return OT_OK;
}

ot_status dv_fetch_last(dv_session *s)
{
    const dv_at r = {.s = s, .q = s->top};
    ot_dev_ticket none;
    for (size_t u = 0; s->maps && u < s->top->n_units; u++) {
        const dv_unit *x = &s->top->units[u];
        for (uint32_t k = 0; x->stays && k < x->n_downloads; k++)
            if (x->stays[k]) OT_TRY(fetch(&r, x, k, OT_DEV_NORMAL, &none));
    }
    return OT_OK;
}

/* ---- weights ---- */

static ot_dev_slice part_of(ot_dev_slice whole, int64_t offset, int64_t bytes)
{
    return (ot_dev_slice){whole.buffer, whole.offset + offset, bytes};
}

/* One at a time: a copy of the largest is all that the host needs. */
static ot_status send_packed(dv_session *s, const dv_value *x, ot_dev_slice to)
{
    ot_device_error e;
    ot_dev_ticket t;
    void *copy = malloc((size_t)to.bytes);
    if (!copy) return ot_fail_nomem(s->s->d);
    dv_pack_contents(x, copy);
    const ot_dev_request r = {.to = to, .source = copy, .room = dv_padding(to.bytes)};
    ot_status st = put(s, &r, &t);
    if (st == OT_OK) st = dv_told(s, ot_dev_ticket_wait(s->mover, t, &e), &e);
    free(copy);
    return st;
}

static ot_status write_packed(dv_session *s, const dv_value *x, ot_dev_slice to)
{
    dv_mapping *w;
    int64_t at;
    OT_TRY(look_at(s, to, false, &w, &at));
    dv_pack_contents(x, w->data + at);
    return wrote(s, w, at, to.bytes);
}

static ot_status send_weight(dv_session *s, ot_dev_slice to, const void *from)
{
    const ot_dev_request r = {.to = to, .source = from, .room = dv_padding(to.bytes)};
    ot_dev_ticket t;
    return s->maps ? write_mapped(s, to, from) : put(s, &r, &t);
}

ot_status dv_send_weights(dv_session *s)
{
    ot_device_error e;
    for (size_t k = 0; k < s->n_constants; k++) {
        const dv_value *x = s->constants[k];
        int64_t bytes;
        if (!ot_nd_bytes(x->nd.dtype, x->nd.rank, x->nd.dims, &bytes))
            OT_BUG("an array of impossible size");
        const ot_dev_slice to = part_of(s->weights[x->block], x->offset, bytes);
        if (bytes && x->plain)
            OT_TRY(s->maps ? write_packed(s, x, to) : send_packed(s, x, to));
        else if (bytes)
            OT_TRY(send_weight(s, to, x->nd.data));
    }
    const ot_dev_slice to = part_of(s->weights[s->n_blocks - 1], s->numbers_offset,
                                    (int64_t)(s->n_numbers * sizeof *s->numbers));
    if (s->n_numbers) OT_TRY(send_weight(s, to, s->numbers));
    OT_TRY(dv_windows_close(s, true)); /* nobody writes them again */
    return s->mover ? dv_told(s, ot_dev_mover_finish(s->mover, &e), &e) : OT_OK;
}
