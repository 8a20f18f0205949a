/* A record of what ran when, on which thread: for the trace viewers of web browsers
 * (chrome://tracing, Perfetto).
 *
 *   ot_trace_new --> ot_trace_begin("original") --> threads add, each to its own row, without locks
 *                --> ot_trace_begin("tiled")    --> ...
 *                --> ot_trace_write: JSON
 */
#ifndef OT_ENGINE_CORE_ENGINE_TRACE_H
#define OT_ENGINE_CORE_ENGINE_TRACE_H

#include "base/base.h"

typedef struct ot_trace ot_trace;

/* Room for events_max events of each of `threads` threads; what comes later is dropped and
 * counted. NULL: no memory. */
ot_trace *ot_trace_new(uint32_t threads, size_t events_max) OT_MUST_USE;
void ot_trace_free(ot_trace *t); /* accepts NULL */
/* Later events belong to a group of this name, which viewers show as a process. Not while
 * threads add. At most 16 groups; without this call there is one without a name. The string is
 * borrowed until ot_trace_free. */
void ot_trace_begin(ot_trace *t, const char *group);
/* An event on thread 0..threads-1 (others are dropped): a node, or one tile of it (-1: none);
 * seconds of any one clock. Each thread adds under its own number only. Strings are borrowed
 * until ot_trace_free. */
void ot_trace_add(ot_trace *t, uint32_t thread, const char *name, const char *op, int64_t tile,
                  double start, double end);
/* Events that found no room. Not while threads add. */
size_t ot_trace_dropped(const ot_trace *t);
/* One JSON object; times in microseconds from the earliest start. */
ot_status ot_trace_write(const ot_trace *t, FILE *f, ot_diag *d) OT_MUST_USE;

#endif
