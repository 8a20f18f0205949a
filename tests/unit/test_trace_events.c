/* Traces are JSON whatever names hold, with times in microseconds.
 */
#include "base/trace_events.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static void every_kind_of_event(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    ot_trace_events t;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    ot_events_open(&t, f);
    ot_events_name_process(&t, 3, "a \"model\"");
    ot_events_name_thread(&t, 3, 1, "memory");
    ot_events_span(&t, (ot_event){"conv", "Conv", 3, 0, 1.5}, 2e-9);
    ot_json_put_int(&t.json, "tile", 7);
    ot_events_end(&t);
    ot_events_mark(&t, (ot_event){.name = "alloc", .process = 3, .thread = 1, .start = -1});
    ot_events_end(&t);
    ot_events_bytes(&t, (ot_event){.name = "ub", .process = 3, .start = (double)NAN}, 4096);
    ot_events_span(&t, (ot_event){.name = NULL}, (double)INFINITY);
    ot_events_end(&t);
    ot_events_close(&t, 2);
    fclose(f);
    assert_string_equal(
        text,
        "{\n  \"displayTimeUnit\": \"ms\",\n  \"traceEvents\": [\n"
        "    {\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 3, \"args\": {\"name\": "
        "\"a \\\"model\\\"\"}},\n"
        "    {\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 3, \"tid\": 1, \"args\": "
        "{\"name\": \"memory\"}},\n"
        "    {\"ph\": \"X\", \"name\": \"conv\", \"cat\": \"Conv\", \"pid\": 3, \"tid\": 0, "
        "\"ts\": "
        "1500000.000, \"dur\": 0.002, \"args\": {\"tile\": 7}},\n"
        "    {\"ph\": \"i\", \"name\": \"alloc\", \"pid\": 3, \"tid\": 1, \"ts\": 0.000, \"s\": "
        "\"t\", "
        "\"args\": {}},\n"
        "    {\"ph\": \"C\", \"name\": \"ub\", \"pid\": 3, \"tid\": 0, \"ts\": 0.000, \"args\": "
        "{\"bytes\": 4096}},\n"
        "    {\"ph\": \"X\", \"name\": \"\", \"pid\": 0, \"tid\": 0, \"ts\": 0.000, \"dur\": "
        "0.000, "
        "\"args\": {}}],\n"
        "  \"otherData\": {\"dropped\": 2}\n}\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_of_event)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
