/* What a run of the engine took, as members of a JSON object (docs/json.md): one writer for the
 * library and for `run --json`. */
#ifndef OT_API_SESSION_JSON_H
#define OT_API_SESSION_JSON_H

#include "base/json.h"

#ifdef OT_ENGINE
struct ot_session;
/* peak_bytes, planned_peak_bytes, weight_bytes; over all runs so far. */
void ot_session_json_memory(const struct ot_session *s, ot_json *j);
/* The list nodes, of name, op, measured_seconds: of the last run. */
void ot_session_json_nodes(const struct ot_session *s, ot_json *j);
#endif

#endif
