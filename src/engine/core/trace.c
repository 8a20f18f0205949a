/* A record of what ran when: the events of each thread in a buffer of its own.
 *
 *   thread 0  | event | event | event |  room  |  n counts what is there, dropped what found no
 *             room
 *   thread 1  | event |         room           |  rows lie on cache lines of their own
 *
 * Written as spans of base/trace_events.h: a group is a process, a thread a thread of it.
 */
#include "engine_trace.h"

#include "base/trace_events.h"

#include <errno.h>

#define GROUPS_MAX 16
#define CACHE_LINE 64

typedef struct event {
    const char *name, *op;
    int64_t tile; /* -1: none */
    double start, end;
    uint32_t group;
} event;

typedef struct row {
    _Alignas(CACHE_LINE) event *events; /* [cap] */
    size_t n, dropped;
} row;

struct ot_trace {
    uint32_t n_threads;
    size_t cap;
    uint32_t n_groups;
    const char *groups[GROUPS_MAX]; /* [n_groups] */
    row *rows;                      /* [n_threads] */
};

static row *new_rows(uint32_t n)
{
    row *rows = aligned_alloc(CACHE_LINE, (size_t)n * sizeof *rows);
    if (rows) memset(rows, 0, n * sizeof *rows);
    return rows;
}

ot_trace *ot_trace_new(uint32_t threads, size_t events_max)
{
    ot_trace *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->n_threads = threads ? threads : 1;
    t->cap = events_max;
    t->rows = new_rows(t->n_threads);
    bool ok = t->rows != NULL;
    for (uint32_t k = 0; ok && k < t->n_threads; k++) {
        t->rows[k].events = calloc(events_max + 1, sizeof *t->rows[k].events);
        ok = t->rows[k].events != NULL;
    }
    if (ok) return t;
    ot_trace_free(t);
    return NULL;
}

void ot_trace_free(ot_trace *t)
{
    if (!t) return;
    for (uint32_t k = 0; t->rows && k < t->n_threads; k++) free(t->rows[k].events);
    free(t->rows);
    free(t);
}

void ot_trace_begin(ot_trace *t, const char *group)
{
    if (t->n_groups < GROUPS_MAX) t->groups[t->n_groups++] = group;
}

void ot_trace_add(ot_trace *t, uint32_t thread, const char *name, const char *op, int64_t tile,
                  double start, double end)
{
    if (thread >= t->n_threads) return;
    row *r = &t->rows[thread];
    if (r->n == t->cap) {
        r->dropped++;
        return;
    }
    r->events[r->n++] = (event){name, op, tile, start, end, t->n_groups ? t->n_groups - 1 : 0};
}

size_t ot_trace_dropped(const ot_trace *t)
{
    size_t sum = 0;
    for (uint32_t k = 0; k < t->n_threads; k++) sum += t->rows[k].dropped;
    return sum;
}

/* ---- writing ---- */

static double first_start(const ot_trace *t)
{
    double first = 0;
    bool any = false;
    for (uint32_t k = 0; k < t->n_threads; k++)
        for (size_t j = 0; j < t->rows[k].n; j++) {
            double start = t->rows[k].events[j].start;
            if (!any || start < first) first = start;
            any = true;
        }
    return first;
}

static void write_event(const event *e, uint32_t thread, double origin, ot_trace_events *to)
{
    const char *name = e->name && *e->name ? e->name : e->op, *op = e->op ? e->op : "";
    ot_event head = {name, op, e->group, thread, e->start - origin};
    ot_events_span(to, head, e->end - e->start);
    ot_json_put_text(&to->json, "op", op);
    if (e->tile >= 0) ot_json_put_int(&to->json, "tile", e->tile);
    ot_events_end(to);
}

static void write_names(const ot_trace *t, ot_trace_events *to)
{
    char name[32];
    for (uint32_t g = 0; g < (t->n_groups ? t->n_groups : 1); g++) {
        ot_events_name_process(to, g, t->n_groups ? t->groups[g] : "run");
        for (uint32_t k = 0; k < t->n_threads; k++) {
            snprintf(name, sizeof name, "thread %u", k);
            ot_events_name_thread(to, g, k, name);
        }
    }
}

ot_status ot_trace_write(const ot_trace *t, FILE *f, ot_diag *d)
{
    double origin = first_start(t);
    ot_trace_events to;
    ot_events_open(&to, f);
    write_names(t, &to);
    for (uint32_t k = 0; k < t->n_threads; k++)
        for (size_t j = 0; j < t->rows[k].n; j++)
            write_event(&t->rows[k].events[j], k, origin, &to);
    ot_events_close(&to, ot_trace_dropped(t));
    if (ferror(f)) return ot_fail(d, OT_E_SYSTEM, "cannot write the trace: %s", strerror(errno));
    return OT_OK;
}
