/* The facts as one JSON object: the same walk as the XML report's, the same names with '_' for '-'.
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
 *
 */
#include "report/facts/facts_table.h"

#include "base/json.h"

typedef struct json_sink {
    fact_sink base;
    ot_json json;
} json_sink;

static ot_json *json_of(fact_sink *s) { return &((json_sink *)s)->json; }

static void open_object(fact_sink *s, const char *name) { ot_json_open(json_of(s), name); }

static void open_list(fact_sink *s, const char *name) { ot_json_list(json_of(s), name); }

static void close_value(fact_sink *s) { ot_json_close(json_of(s)); }

static void put_text(fact_sink *s, const char *name, const char *value)
{
    ot_json_put_text(json_of(s), name, value);
}

static void put_word(fact_sink *s, const char *name, const char *value)
{
    ot_json_put_word(json_of(s), name, value);
}

static void put_node(fact_sink *s, const char *number) { put_word(s, "", number); }

ot_status ot_report_json(const ot_facts *f, FILE *out)
{
    json_sink j = {.base = {open_object, open_list, close_value, put_text, put_word, put_node},
                   .json = {.f = out}};
    ot_facts_put(f, &j.base);
    return fflush(out) != 0 || ferror(out) ? OT_E_SYSTEM : OT_OK;
}
