/* Facts as members of JSON objects: the names of facts_table.h with '_' for '-'. */
#include "facts_table.h"

static ot_json *json_of(fact_sink *s) { return ((fact_json *)s)->json; }

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

fact_json ot_facts_json_sink(ot_json *j, bool is_plan)
{
    return (fact_json){.base = {.open = open_object,
                                .list = open_list,
                                .close = close_value,
                                .text = put_text,
                                .word = put_word,
                                .node = put_node,
                                .is_json = true,
                                .is_plan = is_plan},
                       .json = j};
}
