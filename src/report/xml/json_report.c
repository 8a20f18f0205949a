/* The facts as one JSON object: the same walk as the XML report's, the same names with
 * '_' for '-'.
 *
 *   {"version": "1",
 *    "kind": "optimise",
 *    "nodes": [
 *      {"id": 0, "name": "conv1", "op": "Conv", "region": 0, "time_seconds": 0.00012, ...},
 *      ...],
 *    "regions": [
 *      {"id": 0, "form": "scan", ..., "members": [0, 1], "dims": [{"axis": "H", ...}],
 *      "candidates": [{...}, ...]}],
 *    "bench": {...}}
 *
 * Values of the report and items of its lists have a line each, so that the file diffs. Figures
 * that are absent are left out.
 */
#include "report/facts/facts_table.h"

ot_status ot_report_json(const ot_facts *f, FILE *out)
{
    ot_json j = {.f = out};
    fact_json to = ot_facts_json_sink(&j, false);
    ot_facts_put(f, &to.base);
    return fflush(out) != 0 || ferror(out) ? OT_E_SYSTEM : OT_OK;
}
