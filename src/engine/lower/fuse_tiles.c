/* Tiled regions (domain onnx_tile): Alloc, While, Slice, Deslice.
 *
 *   Alloc -> While class A -> While class B -> While class C -> y  one step, its output is the
 *                                                                  whole of y
 *
 *   tasks   A0 | B0 B1 B2 B3 B4 | C0       shared out to workers one by one
 *   worker  0: A0 B1 B3 C0    1: B0 B2 B4  each has schedules of all classes and an arena of its
 *                                          own; tiles of all classes
 *                                          lie in it, one after another
 *
 * In a body, Slice is a window of an outer array at the iteration's row of its table (no copy),
 * and Deslice writes the tile into its place in the buffer, from whatever layout it is in,
 * unless its maker has put it there (lw_tile_place). Iterations write disjoint places
 * (ot_check_tile_ops), so their order is free and workers share no element.
 *
 * Where Whiles carry buffers from iteration to iteration, the caller runs the tasks in order,
 * and implementations share the workers. Windows of such a buffer are copies, taken before anything
 * is written to it, unless all who read them copy (a Concat) and come before that.
 */
#include "tiles.h"

#include "engine/core/pool.h"
#include "engine/core/row_window.h"

#include "base/watch.h"

#define ITERATIONS_MAX ((int64_t)1 << 24) /* of one While, as the form says */
#define ROW_ORDER_MAX  ((int64_t)1 << 20) /* of all that run together */

ot_status ot_run_tile_op(ot_call *c)
{
    return ot_call_fail(c, "this operator runs as part of a tiled region only");
}

/* ---- regions ---- */

typedef struct team {
    ot_call *c;
    const ot_tiles *t;
    ot_diag *diags;  /* [n_workers] */
    ot_status *said; /* [n_workers] */
    ot_watch *watch; /* of the caller */
    _Atomic int64_t done;
} team;

static void run_task(team *m, uint32_t worker, int64_t task)
{
    uint32_t k = 0;
    while (task >= m->t->classes[k].first + m->t->classes[k].count) k++;
    const lw_tile_class *class = &m->t->classes[k];
    ot_schedule *p = class->workers[worker];
    const ot_graph *g = p->g;
    int64_t i = task - class->first;
    ot_nd *at = &p->slots[g->inputs[0]].nd;
    ot_nd_set_dense(at, OT_I64, 0, NULL);
    at->data = &i;
    for (uint32_t j = 1; j < g->n_inputs; j++) {
        ot_nd *buffer = &p->slots[g->inputs[j]].nd;
        *buffer = *m->c->out[class->buffers[j - 1]];
        buffer->block = NULL;
    }
    p->d = &m->diags[worker];
    p->worker = m->t->n_workers == 1 ? m->c->frame->schedule->worker : worker;
    p->tile = task;
    ot_row_windows_enter(p->s->windows, p->worker);
    p->base = m->t->stride ? (char *)m->c->work + (int64_t)worker * m->t->stride : NULL;
    m->said[worker] = ot_schedule_run(p, p->times);
    ot_row_windows_leave(p->s->windows, p->worker);
    ot_schedule_clear(p);
}

static void tasks_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    team *m = job;
    const int64_t *by_row = m->c->frame->schedule->s->windows ? m->t->by_row : NULL;
    ot_watch *before = ot_watch_lend(m->watch);
    for (int64_t k = first; k < end && m->said[worker] == OT_OK; k++) {
        run_task(m, worker, by_row ? by_row[k] : k);
        ot_watch_part((double)atomic_fetch_add_explicit(&m->done, 1, memory_order_relaxed) + 1,
                      (double)m->t->tasks);
    }
    (void)ot_watch_lend(before);
}

static ot_status run_tiles(ot_call *c)
{
    team m = {.c = c, .t = c->plan, .watch = ot_watch_here()};
    uint32_t n = m.t->n_workers;
    for (uint32_t k = 0; k < c->n_out; k++) OT_TRY(ot_call_place(c, k));
    m.diags = ot_call_scratch(c, n * sizeof *m.diags);
    m.said = ot_call_scratch(c, n * sizeof *m.said);
    if (!m.diags || !m.said) return OT_E_NOMEM;
    if (m.t->ordered || m.t->alone)
        tasks_share(&m, 0, m.t->tasks, 0);
    else
        ot_pool_share_each(n, m.t->tasks, tasks_share, &m);
    for (uint32_t w = 0; w < n; w++)
        if (m.said[w] != OT_OK) return ot_fail(c->diag, m.said[w], "%s", m.diags[w].message);
    return OT_OK;
}

/* ---- finding them ---- */

static uint32_t root(uint32_t *group, uint32_t u)
{
    while (group[u] != u) u = group[u] = group[group[u]];
    return u;
}

static bool is_while(const lw_unit *u) { return ot_is_tile_op(u->nodes[0], "While"); }

/* The While that takes buffer v on; OT_NONE: v is done. */
static uint32_t taken_by(const lw_pass *l, ot_id v)
{
    for (uint32_t k = 0; k < l->v[v].n_readers; k++) {
        uint32_t u = l->readers[l->v[v].first + k];
        for (uint32_t j = 0; is_while(&l->units[u]) && j < l->units[u].n_in; j++)
            if (l->units[u].in[j] == v) return u;
    }
    return OT_NONE;
}

/* What a body was lowered for is what it will be given: the iteration, buffers of the outer
 * shape, as many rows as iterations. */
static ot_status check_body(const lw_pass *l, const lw_unit *u, int64_t count)
{
    const ot_schedule *body = u->step->bodies[0].schedule;
    const ot_graph *g = body->g;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_slot *slot = &body->slots[g->inputs[k]];
        const ot_nd *outer = k > 0 ? &l->v[u->in[k - 1]].slot->fore : NULL;
        if (slot->is_const ||
            !(outer ? ot_nd_same_shape(&slot->fore, outer->dtype, outer->rank, outer->dims)
                    : ot_nd_same_shape(&slot->fore, OT_I64, 0, NULL)))
            return lw_bad_node(l, u->nodes[0],
                               k > 0 ? "a buffer has another type or shape in its body"
                                     : "the first input of its body is no int64 scalar");
    }
    for (uint32_t k = 0; k < body->n_steps; k++) {
        const ot_step *step = &body->steps[k];
        const lw_table *t = lw_table_of(step);
        if (t && t->n_axes > 0 && t->rows != count)
            return lw_bad_node(l, step->node, "its starts are not a row for each iteration");
    }
    return OT_OK;
}

/* Buffers have one reader until they are done; a While gives back as many as it takes. */
static ot_status check_while(const lw_pass *l, const lw_unit *u)
{
    const ot_node *n = u->nodes[0];
    int64_t count = ot_attr_int(n, "count", -1);
    if (u->step->n_bodies != 1) return lw_bad_node(l, n, "it has no body");
    if (count < 1 || count > ITERATIONS_MAX)
        return lw_bad_node(l, n, "its count is not from 1 to 16777216");
    const ot_graph *g = u->step->bodies[0].schedule->g;
    if (u->n_in != u->n_out || g->n_inputs != u->n_in + 1 || g->n_outputs != u->n_out ||
        u->n_in == 0)
        return lw_bad_node(l, n, "its buffers do not match its body's inputs and outputs");
    for (uint32_t k = 0; k < u->n_in; k++) {
        ot_id v = u->in[k], w = u->out[k];
        if (v == OT_NONE || w == OT_NONE || l->v[v].maker == OT_NONE || !l->v[v].is_static ||
            !l->v[w].is_static || !lw_same_dims(l, v, w) ||
            l->v[v].slot->fore.dtype != l->v[w].slot->fore.dtype)
            return lw_bad_node(l, n, "a buffer has no known shape or was not allocated");
        const lw_unit *maker = &l->units[l->v[v].maker];
        if ((!is_while(maker) && !ot_is_tile_op(maker->nodes[0], "Alloc")) ||
            l->v[v].n_readers != 1 || l->v[v].is_kept)
            return lw_bad_node(l, n, "a buffer is no Alloc's, or is read before it is complete");
    }
    return check_body(l, u, count);
}

/* Output `out` of While u at last: the value of the finished buffer. */
static ot_id finished(const lw_pass *l, ot_id v)
{
    for (uint32_t u = taken_by(l, v); u != OT_NONE; u = taken_by(l, v))
        for (uint32_t k = 0; k < l->units[u].n_in; k++)
            if (l->units[u].in[k] == v) {
                v = l->units[u].out[k];
                break;
            }
    return v;
}

typedef struct region {
    uint32_t *parts; /* [n] units in order */
    uint32_t n;
    ot_id *in, *out; /* [n_in] what bodies read, each once; [n_out] finished buffers */
    size_t n_in, n_out, cap_in, cap_out;
} region;

static bool push_once(ot_arena *a, ot_id **list, size_t *n, size_t *cap, ot_id v)
{
    for (size_t k = 0; k < *n; k++)
        if ((*list)[k] == v) return true;
    return OT_PUSH(a, *list, *n, *cap, v);
}

static ot_status make_region(lw_pass *l, region *r)
{
    ot_tiles *t = OT_NEW(l->a, ot_tiles);
    if (!t) return ot_fail_nomem(l->p->s->d);
    t->classes = OT_NEW_N(l->a, lw_tile_class, r->n);
    if (!t->classes) return ot_fail_nomem(l->p->s->d);
    for (uint32_t k = 0; k < r->n; k++) {
        const lw_unit *u = &l->units[r->parts[k]];
        if (!is_while(u)) continue;
        uint32_t *buffers = OT_NEW_N(l->a, uint32_t, u->n_in);
        int64_t count = ot_attr_int(u->nodes[0], "count", 1);
        if (!buffers) return ot_fail_nomem(l->p->s->d);
        for (uint32_t j = 0; j < u->n_in; j++) {
            ot_id done = finished(l, u->in[j]);
            if (!push_once(l->scratch, &r->out, &r->n_out, &r->cap_out, done))
                return ot_fail_nomem(l->p->s->d);
            while (r->out[buffers[j]] != done) buffers[j]++;
        }
        for (uint32_t j = 0; j < u->nodes[0]->n_captured; j++)
            if (!push_once(l->scratch, &r->in, &r->n_in, &r->cap_in, u->nodes[0]->captured[j]))
                return ot_fail_nomem(l->p->s->d);
        t->classes[t->n] = (lw_tile_class){.node = u->nodes[0],
                                           .workers = &u->step->bodies[0].schedule,
                                           .first = t->tasks,
                                           .count = count,
                                           .buffers = buffers};
        t->n++;
        t->ordered = t->ordered || ot_attr_int(u->nodes[0], "carried", 0) > 0;
        t->alone = t->alone || ot_attr_int(u->nodes[0], "in_order", 0) > 0;
        if (!ot_add_i64(t->tasks, count, &t->tasks))
            return lw_bad_node(l, u->nodes[0], "its count is absurd");
    }
    return lw_merge(l, r->parts, r->n, LW_TILES, (ot_id_list){r->in, (uint32_t)r->n_in},
                    (ot_id_list){r->out, (uint32_t)r->n_out}, t);
}

/* The rules of the form, above all that no element is written twice. */
static ot_status check_form(const lw_pass *l)
{
    ot_graph *g = l->p->g;
    ot_graph **bodies = OT_NEW_N(l->scratch, ot_graph *, g->n_nodes);
    if (!bodies) return ot_fail_nomem(l->p->s->d);
    for (uint32_t u = 0; u < l->n_units; u++)
        if (is_while(&l->units[u]))
            bodies[l->units[u].nodes[0] - g->nodes] = l->units[u].step->bodies[0].schedule->g;
    return ot_check_tile_ops(g, bodies);
}

/* ---- the order behind ---- */

/* Units in a new order. */
typedef struct ordering {
    lw_pass *l;
    uint32_t *order, n;       /* [n] placed units */
    uint32_t *later, n_later; /* [n_later] units in order that read what is not made yet */
    uint32_t *place;          /* [n_units] in the new order; OT_NONE: not placed */
} ordering;

/* All that the unit reads is made by units that are placed. */
static bool is_ready(const ordering *x, uint32_t u)
{
    const lw_unit *unit = &x->l->units[u];
    const ot_node *n = unit->step->node;
    for (uint32_t k = 0; unit->kind != LW_GONE && k < unit->n_in + n->n_captured; k++) {
        const ot_id v = k < unit->n_in ? unit->in[k] : n->captured[k - unit->n_in];
        if (v == OT_NONE || x->l->v[v].maker == OT_NONE || x->l->v[v].maker == u) continue;
        if (x->l->units[x->l->v[v].maker].kind != LW_GONE && x->place[x->l->v[v].maker] == OT_NONE)
            return false;
    }
    return true;
}

static void put(ordering *x, uint32_t u)
{
    x->place[u] = x->n;
    x->order[x->n++] = u;
}

/* Units that waited for u, directly or not. */
static void put_waiting(ordering *x)
{
    uint32_t left = 0;
    for (uint32_t k = 0; k < x->n_later; k++) {
        if (is_ready(x, x->later[k]))
            put(x, x->later[k]);
        else
            x->later[left++] = x->later[k];
    }
    x->n_later = left;
}

/* A region stands where its last While does. What reads a value that an earlier While finished
 * may stand before that: it moves behind. */
static ot_status order_units(lw_pass *l)
{
    ordering x = {.l = l,
                  .order = OT_NEW_N(l->scratch, uint32_t, l->n_units + 1u),
                  .later = OT_NEW_N(l->scratch, uint32_t, l->n_units + 1u),
                  .place = OT_NEW_N(l->scratch, uint32_t, l->n_units + 1u)};
    lw_unit *units = OT_NEW_N(l->scratch, lw_unit, l->n_units + 1u);
    bool moved = false;
    if (!x.order || !x.later || !x.place || !units) return ot_fail_nomem(l->p->s->d);
    for (uint32_t u = 0; u < l->n_units; u++) x.place[u] = OT_NONE;
    for (uint32_t u = 0; u < l->n_units; u++) {
        if (!is_ready(&x, u)) {
            x.later[x.n_later++] = u;
            moved = true;
            continue;
        }
        put(&x, u);
        if (l->units[u].kind == LW_TILES) put_waiting(&x);
    }
    if (x.n_later > 0)
        return lw_bad_node(l, l->units[x.later[0]].nodes[0],
                           "what it reads is made of what it makes");
    if (!moved) return OT_OK;
    for (uint32_t k = 0; k < x.n; k++) units[k] = l->units[x.order[k]];
    for (ot_id v = 0; v < l->p->g->n_values; v++)
        if (l->v[v].maker != OT_NONE) l->v[v].maker = x.place[l->v[v].maker];
    l->units = units;
    return lw_find_readers(l);
}

/* Groups of Alloc and While that share buffers. */
static ot_status find_regions(lw_pass *l)
{
    uint32_t *group = OT_NEW_N(l->scratch, uint32_t, l->n_units + 1u);
    if (!group) return ot_fail_nomem(l->p->s->d);
    for (uint32_t u = 0; u < l->n_units; u++) group[u] = u;
    for (uint32_t u = 0; u < l->n_units; u++) {
        if (!is_while(&l->units[u])) continue;
        OT_TRY(check_while(l, &l->units[u]));
        for (uint32_t k = 0; k < l->units[u].n_in; k++)
            group[root(group, l->v[l->units[u].in[k]].maker)] = root(group, u);
    }
    OT_TRY(check_form(l));
    for (uint32_t u = 0; u < l->n_units; u++) {
        region r = {.parts = NULL};
        if (!is_while(&l->units[u]) || root(group, u) != u) continue;
        r.parts = OT_NEW_N(l->scratch, uint32_t, l->n_units);
        if (!r.parts) return ot_fail_nomem(l->p->s->d);
        for (uint32_t k = 0; k < l->n_units; k++)
            if (root(group, k) == u) r.parts[r.n++] = k;
        OT_TRY(make_region(l, &r));
    }
    return order_units(l);
}

ot_status lw_fuse_tiles(lw_pass *l)
{
    bool any = false;
    for (uint32_t u = 0; u < l->n_units; u++) {
        lw_unit *unit = &l->units[u];
        bool in = ot_is_tile_op(unit->nodes[0], "Slice"),
             out = ot_is_tile_op(unit->nodes[0], "Deslice");
        any = any || is_while(unit);
        if (!in && !out) continue;
        if (unit->n_in != (in ? 2u : 3u) || unit->n_out < 1)
            return lw_bad_node(l, unit->nodes[0], "it has another number of inputs");
        for (uint32_t k = 0; k < unit->n_in; k++)
            if (unit->in[k] == OT_NONE || !l->v[unit->in[k]].is_static)
                return lw_bad_node(l, unit->nodes[0], "an input has no known shape");
        if (!l->v[unit->out[0]].is_static)
            return lw_bad_node(l, unit->nodes[0], "its output has no known shape");
        if (!ot_nd_same_shape(&l->v[unit->in[unit->n_in - 1]].slot->fore, OT_I64, 0, NULL))
            return lw_bad_node(l, unit->nodes[0], "its iteration is no int64 scalar");
        unit->kind = in ? LW_TILE_IN : LW_TILE_OUT;
    }
    return any ? find_regions(l) : OT_OK;
}

/* ---- writing them ---- */

/* Schedules of all workers for one class; plans their memory. */
static ot_status hire(lw_pass *l, ot_tiles *t, lw_tile_class *class)
{
    ot_schedule *first = class->workers[0];
    class->workers = OT_NEW_N(l->a, ot_schedule *, t->n_workers);
    if (!class->workers) return ot_fail_nomem(l->p->s->d);
    class->workers[0] = first;
    for (uint32_t w = 0; w < t->n_workers; w++) {
        OT_TRY(l->p->s->hire(l->p, first->g, first->threads, &class->workers[w]));
        t->stride = ot_max(t->stride, ot_ceil_div(class->workers[w]->arena_bytes, OT_ARENA_ALIGN) *
                                          OT_ARENA_ALIGN);
    }
    return OT_OK;
}

/* A tile and the element that it writes first. */
typedef struct tile_written {
    int64_t at, task;
} tile_written;

static int by_place(const void *a, const void *b)
{
    const tile_written *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

/* Where the iterations of a class write, by the first of its Deslices that cuts. */
static void find_places(const lw_tile_class *class, tile_written *places)
{
    const ot_schedule *body = class->workers[0];
    const ot_step *out = NULL;
    for (uint32_t k = 0; k < body->n_steps && !out; k++)
        if (lw_is_tile_out(&body->steps[k]) && lw_table_of(&body->steps[k])->n_axes > 0)
            out = &body->steps[k];
    const lw_table *at = out ? lw_table_of(out) : NULL;
    for (int64_t i = 0; i < class->count; i++) {
        tile_written *p = &places[class->first + i];
        *p = (tile_written){0, class->first + i};
        for (uint32_t k = 0; at && k < at->n_axes; k++)
            p->at += at->starts[i * at->n_axes + k] *
                     body->at[out->in_ids[0]]->fore.strides[at->axes[k]];
    }
}

/* Iterations of all classes in the order of their places, so that rows of inputs come, and rows of
 * outputs go, once. Where they are as many as ROW_ORDER_MAX their order stays. */
static ot_status order_by_row(lw_pass *l, ot_tiles *t)
{
    if (t->ordered || t->tasks > ROW_ORDER_MAX) return OT_OK;
    tile_written *places = ot_alloc_n(l->scratch, (size_t)t->tasks, sizeof *places);
    int64_t *order = ot_alloc_n(l->a, (size_t)t->tasks, sizeof *order);
    if (!places || !order) return ot_fail_nomem(l->p->s->d);
    for (uint32_t k = 0; k < t->n; k++) find_places(&t->classes[k], places);
    qsort(places, (size_t)t->tasks, sizeof *places, by_place);
    for (int64_t k = 0; k < t->tasks; k++) order[k] = places[k].task;
    t->by_row = order;
    return OT_OK;
}

ot_status lw_write_tiles(lw_pass *l, lw_unit *u)
{
    ot_tiles *t = u->plan;
    ot_step *step = NULL;
    ot_id *in = OT_NEW_N(l->scratch, ot_id, u->n_in + 1u),
          *out = OT_NEW_N(l->scratch, ot_id, u->n_out + 1u);
    uint32_t n_in = 0;
    if (!in || !out) return ot_fail_nomem(l->p->s->d);
    t->n_workers = t->ordered || t->alone ? 1 : (uint32_t)ot_min(l->p->threads, t->tasks);
    for (uint32_t k = 0; k < t->n; k++) OT_TRY(hire(l, t, &t->classes[k]));
    OT_TRY(order_by_row(l, t));
    for (uint32_t k = 0; k < u->n_in;
         k++) /* constants live anyway, unless bodies have no use for them */
        if (!l->v[u->in[k]].slot->is_const)
            OT_TRY(lw_need(l, u->in[k], LW_BIT(LW_PLAIN), LW_PLAIN, &in[n_in++]));
    for (uint32_t k = 0; k < u->n_out; k++) OT_TRY(lw_make(l, u->out[k], LW_PLAIN, &out[k]));
    OT_TRY(lw_push(l, u->nodes[u->n_nodes - 1], run_tiles, t, (ot_id_list){in, n_in},
                   (ot_id_list){out, u->n_out}, &step));
    step->is_tiles = true;
    return ot_mul_i64(t->stride, t->n_workers, &step->work) ? OT_OK : ot_fail_nomem(l->p->s->d);
}
