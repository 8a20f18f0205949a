/* Events of a run as a trace: transfers and computations as bars in the row of their pipe or
 * stream, allocations and frees as points, and how many bytes of each memory are allocated as
 * curves. A step is a microsecond. */
#include "krun_internal.h"

#include "base/json.h"

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

static void put_event(const ot_kernel *k, const ot_krun_event *e, FILE *f)
{
    char text[600];
    bool point = e->what == OT_KRUN_ALLOC || e->what == OT_KRUN_FREE;
    label(k, e, text);
    fputs("{\"name\": ", f);
    ot_json_string(text, f);
    fprintf(f, ", \"ph\": \"%s\", \"ts\": %lld, ", point ? "i" : "X", (long long)e->step);
    fprintf(f, "%s\"pid\": \"kernel\", \"tid\": ", point ? "\"s\": \"t\", " : "\"dur\": 1, ");
    ot_json_string(row_of(k, e), f);
    fprintf(f, ", \"args\": {\"line\": %u, \"bytes\": %lld", k->stmts[e->stmt].line,
            (long long)e->bytes);
    if (e->what == OT_KRUN_ALLOC) fprintf(f, ", \"offset\": %lld", (long long)e->offset);
    fputs("}}", f);
}

ot_status ot_krun_trace(const ot_kernel *k, const ot_krun_result *r, FILE *f)
{
    int64_t live[OT_SCOPE_COUNT] = {0};
    fputs("{\"traceEvents\": [\n", f);
    for (size_t i = 0; i < r->n_events; i++) {
        const ot_krun_event *e = &r->events[i];
        ot_scope scope = k->values[e->value].scope;
        if (i > 0) fputs(",\n", f);
        put_event(k, e, f);
        if (e->what != OT_KRUN_ALLOC && e->what != OT_KRUN_FREE) continue;
        live[scope] += e->what == OT_KRUN_ALLOC ? e->bytes : -e->bytes;
        fprintf(f,
                ",\n{\"name\": \"%s\", \"ph\": \"C\", \"ts\": %lld, \"pid\": \"kernel\", \"args\": "
                "{\"bytes\": %lld}}",
                ot_scope_name(scope), (long long)e->step, (long long)live[scope]);
    }
    fputs("\n]}\n", f);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
