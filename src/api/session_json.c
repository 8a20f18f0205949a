/* Figures of a session --> members of a JSON object. */
#include "session_json.h"

#include "engine/core/engine.h"

void ot_session_json_memory(const ot_session *s, ot_json *j)
{
    ot_session_figures x;
    ot_session_figures_get(s, &x);
    ot_json_put_int(j, "peak_bytes", x.peak);
    ot_json_put_int(j, "planned_peak_bytes", x.planned_peak);
    ot_json_put_int(j, "weight_bytes", x.weight_bytes);
}

void ot_session_json_nodes(const ot_session *s, ot_json *j)
{
    uint32_t n;
    const ot_node_time *t = ot_session_times(s, &n);
    ot_json_list(j, "nodes");
    for (uint32_t k = 0; k < n; k++) {
        ot_json_open(j, NULL);
        ot_json_put_text(j, "name", t[k].name);
        ot_json_put_text(j, "op", t[k].op);
        ot_json_put_figure(j, "measured_seconds", t[k].seconds);
        ot_json_close(j);
    }
    ot_json_close(j);
}
