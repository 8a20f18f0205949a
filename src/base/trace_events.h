/* THE writer of traces: the trace event format that browsers show (chrome://tracing, Perfetto).
 *
 *   ot_trace_events t;
 *   ot_events_open(&t, f);
 *   ot_events_name_process(&t, 0, "original");         rows are threads, processes groups of rows
 *   ot_events_span(&t, (ot_event){.name = "conv1", .category = "Conv", .start = 0.5}, 0.002);
 *   ot_json_put_int(&t.json, "tile", 7);               members of its args
 *   ot_events_end(&t);
 *   ot_events_close(&t, 0);
 *
 * Names may be anything. Times are given in seconds, of one clock; before its origin is at 0. The
 * file has microseconds, nanoseconds behind the point.
 */
#ifndef OT_BASE_TRACE_EVENTS_H
#define OT_BASE_TRACE_EVENTS_H

#include "json.h"

typedef struct ot_trace_events {
    ot_json json; /* errors stay in json.f: ferror */
} ot_trace_events;

/* What every event has. */
typedef struct ot_event {
    const char *name;
    const char *category; /* NULL: none */
    uint32_t process, thread;
    double start; /* seconds */
} ot_event;

void ot_events_open(ot_trace_events *t, FILE *f);
/* dropped: events that could not be recorded. */
void ot_events_close(ot_trace_events *t, uint64_t dropped);

void ot_events_name_process(ot_trace_events *t, uint32_t process, const char *name);
void ot_events_name_thread(ot_trace_events *t, uint32_t process, uint32_t thread, const char *name);

/* A bar, and a mark at one time: `args` are open behind them, until ot_events_end. */
void ot_events_span(ot_trace_events *t, ot_event e, double seconds);
void ot_events_mark(ot_trace_events *t, ot_event e);
void ot_events_end(ot_trace_events *t);
/* The next point of a process's curve `name`. */
void ot_events_bytes(ot_trace_events *t, ot_event e, int64_t bytes);

#endif
