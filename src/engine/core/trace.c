/* A record of what ran when: the events of each thread in a buffer of its own.
 *
 *   thread 0  | event | event | event |  room  |  n counts what is there, dropped what found no
 *             room
 *   thread 1  | event |         room           |  rows lie on cache lines of their own
 *
 * Written as the "trace event format": complete events (ph X) with ts and dur in microseconds; a
 * group is a process, a thread a thread of it.
 *
 *
 */
#include "engine_trace.h"

#include "base/json.h"

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

/* Nanoseconds are the clock's grain. */
static void write_time(const char *key, double seconds, FILE *f)
{
    fprintf(f, ", \"%s\": %.3f", key, seconds > 0 ? seconds * 1e6 : 0.0);
}

static void write_event(const event *e, uint32_t thread, double origin, FILE *f)
{
    const char *name = e->name && *e->name ? e->name : e->op;
    fputs(",\n{\"ph\": \"X\", \"name\": ", f);
    ot_json_string(name ? name : "", f);
    fputs(", \"cat\": ", f);
    ot_json_string(e->op ? e->op : "", f);
    fprintf(f, ", \"pid\": %u, \"tid\": %u", e->group, thread);
    write_time("ts", e->start - origin, f);
    write_time("dur", e->end - e->start, f);
    fputs(", \"args\": {\"op\": ", f);
    ot_json_string(e->op ? e->op : "", f);
    if (e->tile >= 0) fprintf(f, ", \"tile\": %lld", (long long)e->tile);
    fputs("}}", f);
}

/* Names of processes and threads; the first entry of the list, so that every other follows a comma.
 */
static void write_names(const ot_trace *t, FILE *f)
{
    for (uint32_t g = 0; g < (t->n_groups ? t->n_groups : 1); g++) {
        fprintf(f,
                "%s{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %u, \"args\": {\"name\": ",
                g ? ",\n" : "", g);
        ot_json_string(t->n_groups ? t->groups[g] : "run", f);
        fputs("}}", f);
        for (uint32_t k = 0; k < t->n_threads; k++)
            fprintf(f,
                    ",\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %u, \"tid\": %u, "
                    "\"args\": {\"name\": \"thread %u\"}}",
                    g, k, k);
    }
}

ot_status ot_trace_write(const ot_trace *t, FILE *f, ot_diag *d)
{
    double origin = first_start(t);
    fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n", f);
    write_names(t, f);
    for (uint32_t k = 0; k < t->n_threads; k++)
        for (size_t j = 0; j < t->rows[k].n; j++) write_event(&t->rows[k].events[j], k, origin, f);
    fprintf(f, "\n], \"otherData\": {\"dropped\": %zu}}\n", ot_trace_dropped(t));
    if (ferror(f)) return ot_fail(d, OT_E_SYSTEM, "cannot write the trace: %s", strerror(errno));
    return OT_OK;
}
