/* The facts as one JSON object: the same walk as the XML report's, the same names with '_' for '-'.
 *
 *   {"version": "1",
 *    "kind": "optimise",
 *    "nodes": [
 *      {"id": 0, "name": "conv1", "op": "Conv", "region": 0, "time_seconds": 0.00012, ...},
 *      ...],
 *    "regions": [
 *      {"id": 0, "form": "scan", ..., "members": [0, 1], "dims": [{"axis": "H", ...}], "candidates": [{...}, ...]}],
 *    "bench": {...}}
 *
 * Values of the report and items of its lists have a line each, so that the file diffs. Figures that are absent are left out.
 */
#include "report/facts/facts_table.h"

#include "base/json.h"

#define DEPTH_MAX 16

typedef struct json_sink {
    fact_sink base;
    FILE *f;
    uint32_t depth;
    bool is_list[DEPTH_MAX], has_items[DEPTH_MAX]; /* [depth] of what is open */
} json_sink;

static void put_key(const char *name, FILE *f)
{
    fputc('"', f);
    for (; *name; name++) fputc(*name == '-' ? '_' : *name, f);
    fputs("\": ", f);
}

/* Comma, line and key before a value; items of lists have no key. */
static void begin_value(json_sink *j, const char *name)
{
    if (j->depth == 0) return;
    uint32_t top = j->depth - 1;
    if (j->has_items[top]) fputc(',', j->f);
    if (j->depth <= 2 && (j->depth == 1 || j->is_list[top]))
        fprintf(j->f, "\n%*s", (int)(2 * j->depth), "");
    else if (j->has_items[top])
        fputc(' ', j->f);
    j->has_items[top] = true;
    if (!j->is_list[top]) put_key(name, j->f);
}

static void open_value(fact_sink *s, const char *name, bool is_list)
{
    json_sink *j = (json_sink *)s;
    begin_value(j, name);
    if (j->depth >= DEPTH_MAX) OT_BUG("the facts are nested too deep");
    j->is_list[j->depth] = is_list;
    j->has_items[j->depth++] = false;
    fputc(is_list ? '[' : '{', j->f);
}

static void open_object(fact_sink *s, const char *name) { open_value(s, name, false); }

static void open_list(fact_sink *s, const char *name) { open_value(s, name, true); }

static void close_value(fact_sink *s)
{
    json_sink *j = (json_sink *)s;
    bool is_list = j->is_list[--j->depth];
    if (j->depth == 0) fputc('\n', j->f);
    fputc(is_list ? ']' : '}', j->f);
}

static void put_text(fact_sink *s, const char *name, const char *value)
{
    json_sink *j = (json_sink *)s;
    begin_value(j, name);
    ot_json_string(value, j->f);
}

static void put_word(fact_sink *s, const char *name, const char *value)
{
    json_sink *j = (json_sink *)s;
    begin_value(j, name);
    fputs(value, j->f);
}

static void put_node(fact_sink *s, const char *number) { put_word(s, "", number); }

ot_status ot_report_json(const ot_facts *f, FILE *out)
{
    json_sink j = {.base = {open_object, open_list, close_value, put_text, put_word, put_node}, .f = out};
    ot_facts_put(f, &j.base);
    fputc('\n', out);
    return fflush(out) != 0 || ferror(out) ? OT_E_SYSTEM : OT_OK;
}
