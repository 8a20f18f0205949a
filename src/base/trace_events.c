/* The trace event format: complete events (ph X), instants (i), counters (C) and metadata (M) in
 * the list `traceEvents` of one object.
 */
#include "trace_events.h"

void ot_events_open(ot_trace_events *t, FILE *f)
{
    t->json = (ot_json){.f = f};
    ot_json_open(&t->json, NULL);
    ot_json_put_text(&t->json, "displayTimeUnit", "ms");
    ot_json_list(&t->json, "traceEvents");
}

void ot_events_close(ot_trace_events *t, uint64_t dropped)
{
    ot_json_close(&t->json);
    ot_json_open(&t->json, "otherData");
    ot_json_put_int(&t->json, "dropped", (int64_t)dropped);
    ot_json_close(&t->json);
    ot_json_close(&t->json);
}

static void begin(ot_trace_events *t, const char *phase, const char *name)
{
    ot_json_open(&t->json, NULL);
    ot_json_put_text(&t->json, "ph", phase);
    ot_json_put_text(&t->json, "name", name ? name : "");
}

void ot_events_end(ot_trace_events *t)
{
    ot_json_close(&t->json);
    ot_json_close(&t->json);
}

static void put_name(ot_trace_events *t, const char *name)
{
    ot_json_open(&t->json, "args");
    ot_json_put_text(&t->json, "name", name);
    ot_events_end(t);
}

void ot_events_name_process(ot_trace_events *t, uint32_t process, const char *name)
{
    begin(t, "M", "process_name");
    ot_json_put_int(&t->json, "pid", process);
    put_name(t, name);
}

void ot_events_name_thread(ot_trace_events *t, uint32_t process, uint32_t thread, const char *name)
{
    begin(t, "M", "thread_name");
    ot_json_put_int(&t->json, "pid", process);
    ot_json_put_int(&t->json, "tid", thread);
    put_name(t, name);
}

static void put_time(ot_trace_events *t, const char *key, double seconds)
{
    char text[64];
    snprintf(text, sizeof text, "%.3f", seconds > 0 && seconds < 1e30 ? seconds * 1e6 : 0.0);
    ot_json_put_word(&t->json, key, text);
}

static void put_head(ot_trace_events *t, const char *phase, const ot_event *e)
{
    begin(t, phase, e->name);
    if (e->category) ot_json_put_text(&t->json, "cat", e->category);
    ot_json_put_int(&t->json, "pid", e->process);
    ot_json_put_int(&t->json, "tid", e->thread);
    put_time(t, "ts", e->start);
}

void ot_events_span(ot_trace_events *t, ot_event e, double seconds)
{
    put_head(t, "X", &e);
    put_time(t, "dur", seconds);
    ot_json_open(&t->json, "args");
}

void ot_events_mark(ot_trace_events *t, ot_event e)
{
    put_head(t, "i", &e);
    ot_json_put_text(&t->json, "s", "t"); /* as high as its row */
    ot_json_open(&t->json, "args");
}

void ot_events_bytes(ot_trace_events *t, ot_event e, int64_t bytes)
{
    put_head(t, "C", &e);
    ot_json_open(&t->json, "args");
    ot_json_put_int(&t->json, "bytes", bytes);
    ot_events_end(t);
}
