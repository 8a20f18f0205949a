/* Transfers: requests in the order of their tickets, until they are issued and done. */
#include "transfers.h"
#include "driver.h"

#define STAGING_BYTES ((int64_t)4 << 20)
#define PAGE          4096
#define PENDING_MOST  256
#define WAITS_MOST    16 /* events of one transfer */

typedef enum move_state {
    MOVE_PENDING,
    MOVE_FLYING,
    MOVE_DONE,
    MOVE_FAILED,
    MOVE_CANCELLED
} move_state;

typedef struct move { /* a request */
    ot_dev_request r;
    ot_dev_event waits[WAITS_MOST];
    uint32_t n_waits;
    move_state state;
    ot_dev_event event;  /* of its transfer, once it flies */
    const uint8_t *ring; /* TO_HOST, merged: where its bytes come to; NULL: to the sink at once */
} move;

struct ot_dev_mover {
    ot_device *dev;
    ot_dev_mover_options options;
    ot_dev_queue up, down;
    move *moves; /* [n] tickets first, first + 1, ... */
    uint32_t n, cap;
    ot_dev_ticket first;
    uint8_t *staging;            /* [staging_bytes] */
    bool pinned;                 /* it is: requests that fit go through it */
    int64_t staged;              /* bytes of the ring that may be in use: all from its begin */
    ot_device_error first_error; /* since the last finish; fault OT_DEV_FINE: none */
    ot_dev_mover_stats stats;
};

ot_status ot_dev_mover_new(ot_device *dev, const ot_dev_mover_options *o, ot_device_error *e,
                           ot_dev_mover **out)
{
    ot_dev_mover *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m) return dev_fail_host_memory(e);
    if (o) m->options = *o;
    if (m->options.staging_bytes <= 0) m->options.staging_bytes = STAGING_BYTES;
    m->dev = dev;
    m->first = 1;
    const size_t whole = (size_t)(ot_ceil_div(m->options.staging_bytes, PAGE) * PAGE);
    m->staging = aligned_alloc(PAGE, whole);
    m->pinned = m->staging && dev->facts.pins && ot_dev_pin(dev, m->staging, whole);
    ot_status s = m->staging ? ot_dev_queue_new(dev, e, &m->up) : dev_fail_host_memory(e);
    if (s == OT_OK) s = ot_dev_queue_new(dev, e, &m->down);
    if (s == OT_OK)
        *out = m;
    else
        ot_dev_mover_free(m);
    return s;
}

ot_dev_mover_stats ot_dev_mover_count(const ot_dev_mover *m) { return m->stats; }

void ot_dev_mover_queues(const ot_dev_mover *m, ot_dev_queue *up, ot_dev_queue *down)
{
    *up = m->up;
    *down = m->down;
}

/* ---- what meets what ---- */

static bool slices_meet(const ot_dev_slice *a, const ot_dev_slice *b)
{
    return a->buffer.id == b->buffer.id && a->buffer.id && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

static bool bytes_meet(const void *a, int64_t n, const void *b, int64_t m)
{
    return a && b && (uintptr_t)a < (uintptr_t)b + (uintptr_t)m &&
           (uintptr_t)b < (uintptr_t)a + (uintptr_t)n;
}

static bool meet_on_host(const ot_dev_request *a, const ot_dev_request *b)
{
    return bytes_meet(a->sink, a->from.bytes, b->sink, b->from.bytes) ||
           bytes_meet(a->sink, a->from.bytes, b->source, b->to.bytes) ||
           bytes_meet(a->source, a->to.bytes, b->sink, b->from.bytes);
}

/* Must stay in their order: one writes what the other reads or writes. */
static bool meet(const ot_dev_request *a, const ot_dev_request *b)
{
    return slices_meet(&a->to, &b->to) || slices_meet(&a->to, &b->from) ||
           slices_meet(&a->from, &b->to) || meet_on_host(a, b);
}

/* ---- what is done ---- */

static void finish(move *x, move_state state)
{
    if (state == MOVE_DONE && x->ring) memcpy(x->r.sink, x->ring, (size_t)x->r.from.bytes);
    x->state = state;
    x->ring = NULL;
}

/* Until the transfer is done; all requests that went with it are finished, in order: where their
 * host memory overlaps the later one counts. */
static void land(ot_dev_mover *m, ot_dev_event event)
{
    ot_device_error e = {0};
    ot_status s = ot_dev_wait(m->dev, event, &e);
    if (s != OT_OK && m->first_error.fault == OT_DEV_FINE) m->first_error = e;
    for (uint32_t k = 0; k < m->n; k++) {
        move *x = &m->moves[k];
        if (x->state == MOVE_FLYING && x->event.queue.id == event.queue.id &&
            x->event.serial == event.serial)
            finish(x, s == OT_OK ? MOVE_DONE : MOVE_FAILED);
    }
}

static void land_all(ot_dev_mover *m)
{
    for (uint32_t k = 0; k < m->n; k++)
        if (m->moves[k].state == MOVE_FLYING) land(m, m->moves[k].event);
    m->staged = 0;
}

/* A transfer may read the host's memory when it is queued, and write it when somebody waits:
 * what flies and meets it there lands first. */
static void land_on_host(ot_dev_mover *m, const ot_dev_request *r)
{
    for (uint32_t k = 0; k < m->n; k++) {
        const move *x = &m->moves[k];
        if (x->state == MOVE_FLYING && meet_on_host(&x->r, r)) land(m, x->event);
    }
}

void ot_dev_mover_free(ot_dev_mover *m)
{
    if (!m) return;
    land_all(m);
    if (m->up.id) ot_dev_queue_free(m->dev, m->up, NULL);
    if (m->down.id) ot_dev_queue_free(m->dev, m->down, NULL);
    if (m->pinned) ot_dev_unpin(m->dev, m->staging);
    free(m->staging);
    free(m->moves);
    free(m);
}

/* Tickets at the front that succeeded are forgotten: whoever asks for them is told so. */
static void forget(ot_dev_mover *m)
{
    uint32_t k = 0;
    while (k < m->n && m->moves[k].state == MOVE_DONE) k++;
    if (k == 0) return;
    memmove(m->moves, m->moves + k, (m->n - k) * sizeof *m->moves);
    m->n -= k;
    m->first += k;
}

/* ---- requests ---- */

static ot_status check_request(ot_dev_mover *m, const ot_dev_request *r, ot_device_error *e)
{
    dev_part p;
    ot_status s = OT_OK;
    dev_lock(m->dev);
    if (r->direction != OT_DEV_TO_HOST)
        s = dev_part_of(m->dev, r->to, r->direction == OT_DEV_TO_DEVICE ? OT_DEV_HOST_WRITES : 0, e,
                        &p);
    if (s == OT_OK && r->direction != OT_DEV_TO_DEVICE)
        s = dev_part_of(m->dev, r->from, r->direction == OT_DEV_TO_HOST ? OT_DEV_HOST_READS : 0, e,
                        &p);
    dev_unlock(m->dev);
    OT_TRY(s);
    if ((r->direction == OT_DEV_TO_DEVICE && !r->source) ||
        (r->direction == OT_DEV_TO_HOST && !r->sink))
        return dev_fail(e, OT_DEV_INVALID_POINTER, "a transfer without memory of the host");
    if (r->direction == OT_DEV_ON_DEVICE &&
        (r->to.bytes != r->from.bytes || slices_meet(&r->to, &r->from)))
        return dev_fail(e, OT_DEV_INVALID_POINTER, "a copy of %lld bytes to %lld, or onto itself",
                        (long long)r->from.bytes, (long long)r->to.bytes);
    if (r->after && r->after->n > WAITS_MOST)
        return dev_fail(e, OT_DEV_UNSUPPORTED, "a transfer waits for %d events at the most",
                        WAITS_MOST);
    return OT_OK;
}

ot_status ot_dev_request_put(ot_dev_mover *m, const ot_dev_request *r, ot_device_error *e,
                             ot_dev_ticket *out)
{
    *out = 0;
    OT_TRY(check_request(m, r, e));
    forget(m);
    if (m->n == m->cap) {
        uint32_t want = m->cap ? m->cap * 2 : 32;
        move *more = realloc(m->moves, want * sizeof *more);
        if (!more) return dev_fail_host_memory(e);
        m->moves = more;
        m->cap = want;
    }
    move *x = &m->moves[m->n];
    *x = (move){.r = *r};
    if (r->direction == OT_DEV_TO_DEVICE) x->r.from = (ot_dev_slice){{0}, 0, 0}, x->r.sink = NULL;
    if (r->direction != OT_DEV_TO_DEVICE) x->r.room = 0;
    if (r->direction == OT_DEV_TO_HOST) x->r.to = (ot_dev_slice){{0}, 0, 0}, x->r.source = NULL;
    if (r->direction == OT_DEV_ON_DEVICE) x->r.source = x->r.sink = NULL;
    x->r.after = NULL;
    for (uint32_t k = 0; r->after && k < r->after->n; k++)
        x->waits[x->n_waits++] = r->after->events[k];
    *out = m->first + m->n++;
    m->stats.n_requests++;
    m->stats.bytes_asked += (uint64_t)(r->direction == OT_DEV_TO_HOST ? r->from.bytes
                                                                      : r->to.bytes);
    uint32_t pending = 0;
    for (uint32_t k = 0; k < m->n; k++) pending += m->moves[k].state == MOVE_PENDING;
    return pending < PENDING_MOST ? OT_OK : ot_dev_mover_issue(m, e);
}

/* ---- order and groups ---- */

/* Pending moves by priority, older first, none before an older one that it meets. order: [n];
 * returns how many. */
static uint32_t sort_moves(const ot_dev_mover *m, uint32_t *order, bool *placed)
{
    uint32_t n = 0;
    memset(placed, 0, m->n * sizeof *placed);
    for (;;) {
        uint32_t best = OT_NONE;
        for (uint32_t k = 0; k < m->n; k++) {
            if (placed[k] || m->moves[k].state != MOVE_PENDING) continue;
            if (best != OT_NONE && m->moves[k].r.priority <= m->moves[best].r.priority) continue;
            bool is_free = true;
            for (uint32_t i = 0; i < k && is_free; i++)
                is_free = placed[i] || m->moves[i].state != MOVE_PENDING ||
                          !meet(&m->moves[i].r, &m->moves[k].r);
            if (is_free) best = k;
        }
        if (best == OT_NONE) return n;
        placed[best] = true;
        order[n++] = best;
    }
}

/* The device's side of a request that moves to or from the host. */
static const ot_dev_slice *side(const ot_dev_request *r)
{
    return r->direction == OT_DEV_TO_HOST ? &r->from : &r->to;
}

/* What a group moves. */
typedef struct range {
    ot_dev_slice hull; /* on the device: `to` unless TO_HOST */
    ot_dev_slice from; /* ON_DEVICE */
    int64_t room;      /* behind the hull */
} range;

/* Would the request and the range of a group be one? Then that grows. */
static bool joins(const ot_dev_request *head, const ot_dev_request *r, range *x)
{
    const ot_dev_slice *s = side(r);
    ot_dev_slice *hull = &x->hull, *from = &x->from;
    if (head->direction != r->direction || s->buffer.id != hull->buffer.id) return false;
    if (s->offset > hull->offset + hull->bytes + x->room ||
        hull->offset > s->offset + s->bytes + r->room)
        return false;
    int64_t begin = ot_min(hull->offset, s->offset),
            end = ot_max(hull->offset + hull->bytes, s->offset + s->bytes);
    if (head->direction == OT_DEV_ON_DEVICE) { /* both sides grow alike, and stay apart */
        ot_dev_slice more = {from->buffer, from->offset + begin - hull->offset, end - begin},
                     to = {hull->buffer, begin, end - begin};
        if (r->from.buffer.id != from->buffer.id ||
            r->from.offset - s->offset != from->offset - hull->offset)
            return false;
        if (slices_meet(&more, &to)) return false;
        *from = more;
    }
    /* of who ends last */
    x->room = ot_max(s->offset + s->bytes + r->room, hull->offset + hull->bytes + x->room) - end;
    hull->offset = begin;
    hull->bytes = end - begin;
    return true;
}

/* The group that begins with order[at]: members are marked, and come in order. May order[j] go
 * there, past those between? */
static bool may_pass(const ot_dev_mover *m, const uint32_t *order, const bool *grouped, uint32_t at,
                     uint32_t j)
{
    for (uint32_t i = at + 1; i < j; i++)
        if (!grouped[i] && meet(&m->moves[order[i]].r, &m->moves[order[j]].r)) return false;
    return true;
}

/* members: [n] out, places in order; returns how many. */
static uint32_t gather(const ot_dev_mover *m, const uint32_t *order, uint32_t n, bool *grouped,
                       uint32_t at, uint32_t *members, range *x)
{
    const ot_dev_request *head = &m->moves[order[at]].r;
    uint32_t count = 1;
    members[0] = order[at];
    *x = (range){*side(head), head->from, head->room};
    grouped[at] = true;
    for (bool more = !m->options.no_merge; more;) {
        more = false;
        for (uint32_t j = at + 1; j < n; j++) {
            range wider = *x;
            if (grouped[j] || !joins(head, &m->moves[order[j]].r, &wider) ||
                !may_pass(m, order, grouped, at, j))
                continue;
            if (head->direction != OT_DEV_ON_DEVICE &&
                wider.hull.bytes > m->options.staging_bytes / 2)
                continue;
            grouped[j] = more = true;
            *x = wider;
            members[count++] = order[j];
        }
    }
    return count;
}

/* ---- issuing ---- */

static int by_ticket(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Bytes of the ring; waits until it is empty when it is full. */
static uint8_t *stage(ot_dev_mover *m, int64_t bytes)
{
    if (m->staged + bytes > m->options.staging_bytes) {
        m->stats.n_waits_for_staging++;
        land_all(m);
    }
    uint8_t *at = m->staging + m->staged;
    m->staged += ot_ceil_div(bytes, 64) * 64;
    return at;
}

/* Events that the group waits for: its own, and the last transfers under way that it meets. */
static ot_status add_waits(ot_dev_mover *m, const uint32_t *members, uint32_t n,
                           ot_dev_event *waits, uint32_t *n_waits, ot_device_error *e)
{
    *n_waits = 0;
    for (uint32_t k = 0; k < n; k++) {
        const move *x = &m->moves[members[k]];
        for (uint32_t i = 0; i < m->n + x->n_waits; i++) {
            const move *o = i < m->n ? &m->moves[i] : NULL;
            if (o && (o->state != MOVE_FLYING || !meet(&o->r, &x->r))) continue;
            ot_dev_event ev = o ? o->event : x->waits[i - m->n];
            uint32_t w = 0;
            while (w < *n_waits && waits[w].queue.id != ev.queue.id) w++;
            if (w == DEV_QUEUES_MOST)
                return dev_fail(e, OT_DEV_INVALID_OBJECT,
                                "events of more queues than there can be");
            if (w == *n_waits) waits[(*n_waits)++] = ev;
            if (ev.serial > waits[w].serial) waits[w] = ev;
        }
    }
    return OT_OK;
}

static ot_status submit_group(ot_dev_mover *m, uint32_t *members, uint32_t n, const range *x,
                              ot_device_error *e)
{
    const ot_dev_slice hull = x->hull;
    ot_dev_event waits[DEV_QUEUES_MOST], event;
    uint32_t n_waits;
    const ot_dev_request *head = &m->moves[members[0]].r;
    ot_dev_direction direction = head->direction;
    const bool rings = n > 1 || (m->pinned && hull.bytes <= m->options.staging_bytes / 2);
    uint8_t *ring = rings && direction != OT_DEV_ON_DEVICE ? stage(m, hull.bytes) : NULL;
    for (uint32_t k = 0; k < n; k++) land_on_host(m, &m->moves[members[k]].r);
    OT_TRY(add_waits(m, members, n, waits, &n_waits, e));
    ot_dev_after after = {waits, n_waits};
    qsort(members, n, sizeof *members, by_ticket); /* where they overlap, the later one counts */
    if (ring && n > 1) memset(ring, 0, (size_t)hull.bytes); /* room between requests */
    for (uint32_t k = 0; ring && k < n && direction == OT_DEV_TO_DEVICE; k++) {
        const ot_dev_request *r = &m->moves[members[k]].r;
        memcpy(ring + (r->to.offset - hull.offset), r->source, (size_t)r->to.bytes);
    }
    switch (direction) {
    case OT_DEV_TO_DEVICE:
        OT_TRY(ot_dev_upload(m->dev, m->up, hull, ring ? ring : head->source, &after, e, &event));
        break;
    case OT_DEV_TO_HOST:
        OT_TRY(ot_dev_download(m->dev, m->down, ring ? ring : head->sink, hull, &after, e, &event));
        break;
    default: OT_TRY(ot_dev_copy(m->dev, m->up, hull, x->from, &after, e, &event));
    }
    for (uint32_t k = 0; k < n; k++) {
        move *y = &m->moves[members[k]];
        y->state = MOVE_FLYING;
        y->event = event;
        y->ring = ring && direction == OT_DEV_TO_HOST ? ring + (y->r.from.offset - hull.offset)
                                                      : NULL;
    }
    m->stats.n_transfers++;
    m->stats.n_merged += n - 1;
    m->stats.bytes_moved += (uint64_t)hull.bytes;
    return OT_OK;
}

uint32_t ot_dev_mover_cancel(ot_dev_mover *m)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->n; k++) {
        if (m->moves[k].state != MOVE_PENDING) continue;
        finish(&m->moves[k], MOVE_CANCELLED);
        n++;
    }
    m->stats.n_cancelled += n;
    return n;
}

static ot_status issue_groups(ot_dev_mover *m, uint32_t *order, uint32_t *members, bool *grouped,
                              ot_device_error *e)
{
    uint32_t n = sort_moves(m, order, grouped);
    memset(grouped, 0, m->n * sizeof *grouped);
    for (uint32_t at = 0; at < n; at++) {
        range x;
        if (grouped[at]) continue;
        uint32_t count = gather(m, order, n, grouped, at, members, &x);
        ot_status s = submit_group(m, members, count, &x, e);
        if (s == OT_OK) continue;
        for (uint32_t k = 0; k < count; k++) finish(&m->moves[members[k]], MOVE_FAILED);
        ot_dev_mover_cancel(m);
        return s;
    }
    OT_TRY(ot_dev_flush(m->dev, m->up, e));
    return ot_dev_flush(m->dev, m->down, e);
}

ot_status ot_dev_mover_issue(ot_dev_mover *m, ot_device_error *e)
{
    ot_device_error own = {0};
    if (m->n == 0) return OT_OK;
    uint32_t *order = malloc(m->n * sizeof *order), *members = malloc(m->n * sizeof *members);
    bool *grouped = malloc(m->n * sizeof *grouped);
    ot_status s = order && members && grouped ? issue_groups(m, order, members, grouped, &own)
                                              : dev_fail_host_memory(&own);
    free(order);
    free(members);
    free(grouped);
    if (s != OT_OK && m->first_error.fault == OT_DEV_FINE) m->first_error = own;
    if (s != OT_OK && e) *e = own;
    return s;
}

/* ---- waiting ---- */

/* The request of a ticket; NULL: done long ago. */
static ot_status find(ot_dev_mover *m, ot_dev_ticket t, ot_device_error *e, move **out)
{
    *out = NULL;
    if (t == 0 || t >= m->first + m->n)
        return dev_fail(e, OT_DEV_INVALID_OBJECT, "a ticket that was never given");
    if (t >= m->first) *out = &m->moves[t - m->first];
    return OT_OK;
}

static ot_status tell(const ot_dev_mover *m, const move *x, ot_device_error *e)
{
    const char *why = m->first_error.fault == OT_DEV_FINE ? "it was cancelled"
                                                          : m->first_error.message;
    if (!x || x->state == MOVE_DONE || x->state == MOVE_FLYING) return OT_OK;
    if (x->state == MOVE_CANCELLED)
        return dev_fail(e, OT_DEV_CANCELLED, "a transfer never ran: %.400s", why);
    ot_device_fault fault = m->first_error.fault == OT_DEV_FINE ? OT_DEV_FAILED
                                                                : m->first_error.fault;
    return dev_fail(e, fault, "a transfer failed: %.400s", why);
}

ot_status ot_dev_ticket_wait(ot_dev_mover *m, ot_dev_ticket t, ot_device_error *e)
{
    move *x;
    OT_TRY(find(m, t, e, &x));
    if (x && x->state == MOVE_PENDING) {
        ot_status s = ot_dev_mover_issue(m, NULL);
        (void)s; /* the request knows whether it was the one */
    }
    if (x && x->state == MOVE_FLYING) land(m, x->event);
    return tell(m, x, e);
}

ot_status ot_dev_ticket_event(ot_dev_mover *m, ot_dev_ticket t, ot_device_error *e,
                              ot_dev_event *out)
{
    move *x;
    *out = (ot_dev_event){{0}, 0};
    OT_TRY(find(m, t, e, &x));
    if (x && x->state == MOVE_PENDING) {
        ot_status s = ot_dev_mover_issue(m, NULL);
        (void)s; /* the request knows whether it was the one */
    }
    if (x && x->state == MOVE_FLYING) *out = x->event;
    return tell(m, x, e);
}

ot_status ot_dev_mover_finish(ot_dev_mover *m, ot_device_error *e)
{
    ot_status s = ot_dev_mover_issue(m, NULL);
    land_all(m);
    ot_device_error first = m->first_error;
    (void)s; /* in first_error, like what failed before */
    m->first += m->n;
    m->n = 0;
    m->first_error = (ot_device_error){0};
    return first.fault == OT_DEV_FINE ? OT_OK : dev_fail(e, first.fault, "%.500s", first.message);
}
