/* Events of a run as a trace: transfers and computations as bars in the row of their pipe or
 * stream, allocations and frees as points, and how many bytes of each memory are allocated as
 * curves. A step is a microsecond. */
#include "krun_internal.h"

#include "base/trace_events.h"

#define STEP 1e-6 /* seconds that one is shown as */

static const char *const WHAT[] = {"alloc", "free", "move", "compute"};

/* Row of an event: pipes, then streams by the order of their names in the text. */
static const char *row_of(const ot_kernel *k, const ot_krun_event *e)
{
    const ot_tk_stmt *s = &k->stmts[e->stmt];
    if (e->what == OT_KRUN_ALLOC || e->what == OT_KRUN_FREE) return "memory";
    return s->stream ? s->stream : ot_pipe_name(s->pipe);
}

static void label(const ot_kernel *k, const ot_krun_event *e, char buf[600])
{
    const ot_tk_stmt *s = &k->stmts[e->stmt];
    const char *name = k->values[e->value].name;
    if (e->what == OT_KRUN_COMPUTE)
        snprintf(buf, 600, "%s = %s", name, s->name);
    else if (e->what == OT_KRUN_MOVE)
        snprintf(buf, 600, "%s <- %s", name, k->values[s->in[0]].name);
    else
        snprintf(buf, 600, "%s %s", WHAT[e->what], name);
}

/* Rows are threads, numbered as they come. */
typedef struct rows {
    ot_map *numbers; /* by name */
    uint32_t n;
} rows;

static bool find_row(rows *r, ot_trace_events *t, const char *name, uint32_t *row)
{
    *row = ot_map_get(r->numbers, name);
    if (*row != OT_NONE) return true;
    *row = r->n++;
    ot_events_name_thread(t, 0, *row, name);
    return ot_map_put(r->numbers, name, *row);
}

static bool put_event(const ot_kernel *k, const ot_krun_event *e, rows *r, ot_trace_events *t)
{
    char text[600];
    ot_event head = {.name = text, .start = (double)e->step * STEP};
    label(k, e, text);
    if (!find_row(r, t, row_of(k, e), &head.thread)) return false;
    if (e->what == OT_KRUN_ALLOC || e->what == OT_KRUN_FREE)
        ot_events_mark(t, head);
    else
        ot_events_span(t, head, STEP);
    ot_json_put_int(&t->json, "line", k->stmts[e->stmt].line);
    ot_json_put_int(&t->json, "bytes", e->bytes);
    if (e->what == OT_KRUN_ALLOC) ot_json_put_int(&t->json, "offset_bytes", e->offset);
    ot_events_end(t);
    return true;
}

static bool put_events(const ot_kernel *k, const ot_krun_result *r, rows *w, ot_trace_events *t)
{
    int64_t live[OT_SCOPE_COUNT] = {0};
    for (size_t i = 0; i < r->n_events; i++) {
        const ot_krun_event *e = &r->events[i];
        ot_scope scope = k->values[e->value].scope;
        if (!put_event(k, e, w, t)) return false;
        if (e->what != OT_KRUN_ALLOC && e->what != OT_KRUN_FREE) continue;
        live[scope] += e->what == OT_KRUN_ALLOC ? e->bytes : -e->bytes;
        ot_event curve = {.name = ot_scope_name(scope), .start = (double)e->step * STEP};
        ot_events_bytes(t, curve, live[scope]);
    }
    return true;
}

ot_status ot_krun_trace(const ot_kernel *k, const ot_krun_result *r, FILE *f)
{
    ot_arena *arena = ot_arena_new();
    rows w = {.numbers = arena ? ot_map_new(arena) : NULL};
    ot_trace_events t;
    ot_events_open(&t, f);
    ot_events_name_process(&t, 0, "kernel");
    bool ok = w.numbers && put_events(k, r, &w, &t);
    if (ok) ot_events_close(&t, 0);
    ot_arena_free(arena);
    return !ok ? OT_E_NOMEM : ferror(f) ? OT_E_SYSTEM : OT_OK;
}
