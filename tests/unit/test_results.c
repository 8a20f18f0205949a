/* The writers of results, on a struct made by hand: exact JSON for hostile names and numbers, and
 * the table's facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "report/facts/facts.h"

static char *written(const ot_facts *r, ot_status (*write)(const ot_facts *, bool, FILE *),
                     bool all)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    assert_int_equal(write(r, all, f), OT_OK);
    assert_int_equal(fclose(f), 0);
    return text;
}

static ot_status write_json(const ot_facts *r, bool all, FILE *f)
{
    (void)all;
    return ot_results_json(r, f);
}

static ot_status write_table(const ot_facts *r, bool all, FILE *f)
{
    return ot_results_print(r, all, 0, f);
}

static ot_status write_narrow(const ot_facts *r, bool all, FILE *f)
{
    return ot_results_print(r, all, 64, f);
}

static ot_status write_nodes(const ot_facts *r, bool narrow, FILE *f)
{
    return ot_results_nodes(r, narrow ? 50 : 0, f);
}

static ot_fact_node nodes[] = {{.name = "q\"uote"},
                               {.name = "back\\slash"},
                               {.name = "nl\n\x1b[0m"},
                               {.name = "caf\xc3\xa9"},
                               {.name = "bad\xff\xc3"},
                               {.name = "\xed\xa0\x80"},
                               {.name = "a", .op = "GlobalAveragePool"},
                               {.name = "b", .op = "Foo"},
                               {.name = "c", .op = "GlobalAveragePool"},
                               {.name = "/model/encoder/layer.0/attention/self/query/MatMul_17"}};
static const uint32_t region_nodes[] = {0, 1, 2, 3, 4, 5}, long_node[] = {9};

static ot_facts sample(ot_fact_region *region, ot_fact_barrier *barriers)
{
    *region = (ot_fact_region){.id = 7,
                               .nodes = region_nodes,
                               .n_nodes = 6,
                               .axes = {"H", "W"},
                               .tiles = {4, 2},
                               .n_dims = 2,
                               .form = "unrolled",
                               .working_set = 1024,
                               .working_set_bound = 1000,
                               .weights = 77,
                               .weights_stay = true,
                               .time_untiled = 0.5,
                               .time_tiled = 0.25,
                               .benefit = 0.25,
                               .mac_ratio = NAN,
                               .traffic = INFINITY,
                               .capacity = 2048,
                               .residence = "",
                               .cores = ""};
    barriers[0] = (ot_fact_barrier){6, "needs-all", "needs it all", ""};
    barriers[1] = (ot_fact_barrier){7, "unknown-operator", "unknown", ""};
    barriers[2] = (ot_fact_barrier){8, "needs-all", "needs it all", ""};
    return (ot_facts){.model = "m.onnx",
                      .unknown_sizes = "",
                      .missed = "",
                      .slow_nodes = "",
                      .target = "chip",
                      .fast_bytes = 2048,
                      .totals = {.untiled = {1.0, 4096, 8192, 0},
                                 .tiled = {0.5, 1024, 4096, 0},
                                 .compulsory_bytes = 100,
                                 .activations = {.naive = 5120,
                                                 .lower_bound = 3000,
                                                 .planned = 3072,
                                                 .greedy = 4096,
                                                 .in_place = 2048,
                                                 .n_buffers = 9,
                                                 .proved = true},
                                 .n_unsized = 2},
                      .nodes = nodes,
                      .n_nodes = sizeof nodes / sizeof *nodes,
                      .regions = region,
                      .n_regions = 1,
                      .barriers = barriers,
                      .n_barriers = 3};
}

static void json_is_exact(void **state)
{
    (void)state;
    ot_fact_region region;
    ot_fact_barrier barriers[3];
    ot_facts r = sample(&region, barriers);
    char *text = written(&r, write_json, false);
    const char *want[] = {
        "\"q\\\"uote\", \"back\\\\slash\", \"nl\\u000a\\u001b[0m\", \"caf\xc3\xa9\", "
        "\"bad\\ufffd\\ufffd\", \"\\ufffd\\ufffd\\ufffd\"",
        "\"dims\": [{\"axis\": \"H\", \"tiles\": 4, \"tile\": 0, \"extent\": 0}, {\"axis\": \"W\"",
        "\"benefit_seconds\": 0.25, \"untiled_traffic_bytes\": 0, ",
        "\"untiled\": {\"peak_bytes\": 4096, \"largest_tensor_bytes\": 0, "
        "\"traffic_bytes\": 8192, \"time_seconds\": 1, \"macs\": 0}",
        "\"speedup\": 2,",
        "\"untiled_seconds\": 0.5, \"tiled_seconds\": 0.25, \"benefit_seconds\": 0.25,",
        "\"working_set_bytes\": 1024, \"working_set_bound_bytes\": 1000, \"capacity_bytes\": 2048, "
        "\"fill\": 0, \"weight_bytes\": 77, "
        "\"weights_stay\": true, \"untiled_seconds\": 0.5",
        "\"arena\": {\"naive_bytes\": 5120, \"lower_bound_bytes\": 3000, \"planned_bytes\": 3072, "
        "\"greedy_by_size_bytes\": 4096, \"in_place_bytes\": 2048, \"buffers\": 9, \"unsized\": 2, "
        "\"proved\": true},",
        "\"benefit_seconds\": 0.5,",
        "\"target\": {\"name\": \"chip\", \"fast_bytes\": 2048}",
        "{\"node\": \"b\", \"reason_id\": \"unknown-operator\", \"reason\": \"unknown\", "
        "\"op\": \"Foo\"}",
        "\"refusals\": []"};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++)
        if (!strstr(text, want[k])) fail_msg("no %s in\n%s", want[k], text);
    free(text);
}

static void table_groups_barriers(void **state)
{
    (void)state;
    ot_fact_region region;
    ot_fact_barrier barriers[3];
    ot_facts r = sample(&region, barriers);
    region.mac_ratio = 1.5;
    char *text = written(&r, write_table, false);
    assert_non_null(strstr(text, "2 x GlobalAveragePool: needs it all\n"));
    assert_non_null(strstr(text, "1 x Foo: unknown\n"));
    assert_non_null(strstr(text, "3 barriers"));
    assert_non_null(strstr(text, "H/4 x W/2"));
    assert_non_null(strstr(text, "x1.50"));
    assert_non_null(strstr(text, "x0.25")); /* peak 4096 -> 1024 */
    assert_null(strchr(text, '\x1b'));
    assert_null(strstr(text, "at once")); /* for inspect only, like the arena */
    assert_null(strstr(text, "in one memory"));
    free(text);
    text = written(&r, write_table, true);
    assert_non_null(strstr(text, " a c\n"));
    assert_non_null(strstr(text, "1.0 KiB (50 %)   1000 B"));
    assert_non_null(
        strstr(text, "each at its own address (9 buffers; 2 of unknown size left out; "));
    assert_non_null(strstr(text, "3.0 KiB   the least of such layouts\n"));
    assert_non_null(strstr(text, "in place"));
    free(text);
}

/* Of a region what a terminal's lines do not hold stands in a second one. */
static void rows_keep_to_the_columns(void **state)
{
    (void)state;
    ot_fact_region region;
    ot_fact_barrier barriers[3];
    ot_facts r = sample(&region, barriers);
    region.form = "loop-peeled";
    char table[4096], *text = written(&r, write_narrow, true);
    snprintf(table, sizeof table, "%s", text);
    free(text);
    char *rows = strstr(table, "\n  region "), *end = rows ? strstr(rows, "3 barriers") : NULL;
    assert_non_null(end);
    *end = '\0';
    assert_null(strstr(rows, "benefit"));
    assert_null(strstr(rows, "from .. to"));
    assert_non_null(strstr(rows, "\n          6 nodes, q\"uote .. "));
    for (char *line = strtok(rows, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, "  working sets", 14)) assert_in_range(strlen(line), 0, 64);
}

/* A share of a cache's capacity puzzles: words say what fits it and what streams. */
static void caches_are_told_in_words(void **state)
{
    (void)state;
    ot_fact_region region;
    ot_fact_barrier barriers[3];
    ot_facts r = sample(&region, barriers);
    region.working_set = 186 << 20;
    region.weights = 18 << 20;
    region.residence =
        "186 MiB stream through the 2.0 KiB cache: 18 MiB of weights, 168 MiB of a tile's values";
    char *text = written(&r, write_table, false);
    assert_non_null(strstr(text, " MiB streams  "));
    assert_non_null(
        strstr(text, "\n  r7: 186 MiB stream through the 2.0 KiB cache: 18 MiB of weights"));
    assert_null(strstr(text, "%"));
    free(text);
    region.working_set = 1024;
    region.residence = "fits the 2.0 KiB cache";
    text = written(&r, write_table, false);
    assert_non_null(strstr(text, "1.0 KiB fits  "));
    assert_null(strstr(text, "r7:"));
    free(text);
    text = written(&r, write_json, false);
    assert_non_null(strstr(text, "\"residence\": \"fits the 2.0 KiB cache\""));
    free(text);
}

/* Titles, a line an operator, the total; what is not known is a dash; a narrow terminal has what
 * tells most. */
static void a_line_an_operator(void **state)
{
    (void)state;
    ot_fact_region region = {.id = 7};
    ot_fact_node of[] = {{.op = "Conv",
                          .name = "c",
                          .shape = "1x8x4x4",
                          .macs = 1152,
                          .parameters = 584,
                          .out_bytes = 512,
                          .time = 1e-3},
                         {.op = "Relu",
                          .name = "a\nname that is longer than a column is",
                          .shape = "1x8x4x4",
                          .macs = 128,
                          .out_bytes = 512,
                          .is_fused = true},
                         {.op = "NonZero",
                          .name = "z",
                          .shape = "",
                          .region = OT_NONE,
                          .macs = OT_ABSENT,
                          .out_bytes = OT_ABSENT,
                          .time = OT_ABSENT}};
    ot_facts r = {.model = "m.onnx",
                  .target = "chip",
                  .runtime = "onnxruntime",
                  .design = "",
                  .nodes = of,
                  .n_nodes = 3,
                  .regions = &region,
                  .n_regions = 1,
                  .totals = {.parameters = 584}};
    const char *wide =
        "operator     name                          makes      MACs  parameters  memory     time  "
        "tiled\n"
        "Conv         c                             1x8x4x4  1.15 K         584   512 B  1.00 ms  "
        "r7\n"
        "Relu         a?name that i..n a column is  1x8x4x4     128           0   512 B    fused  "
        "r7\n"
        "NonZero      z                             -             -           0       -        -  "
        "no\n"
        "3 operators                                              -         584                -  "
        "2 of them\n";
    const char *narrow = "operator       MACs  memory     time  tiled\n"
                         "Conv         1.15 K   512 B  1.00 ms  r7\n";
    char *text = written(&r, write_nodes, false);
    if (!strstr(text, wide)) fail_msg("%s", text);
    free(text);
    text = written(&r, write_nodes, true);
    if (!strstr(text, narrow)) fail_msg("%s", text);
    free(text);
}

static void nothing_tiled_is_said(void **state)
{
    (void)state;
    ot_facts r = {.model = "m",
                  .target = "chip",
                  .fast_bytes = 1,
                  .unknown_sizes = "",
                  .missed = "",
                  .slow_nodes = ""};
    char *text = written(&r, write_table, false);
    assert_non_null(strstr(text, "nothing is worth tiling"));
    free(text);
    text = written(&r, write_json, false);
    assert_non_null(strstr(text, "\"speedup\": 1,"));
    free(text);
}

static void long_names_keep_their_ends(void **state)
{
    (void)state;
    ot_fact_region region;
    ot_fact_barrier barriers[3];
    ot_facts r = sample(&region, barriers);
    region.nodes = long_node;
    region.n_nodes = 1;
    char *text = written(&r, write_table, false);
    assert_non_null(strstr(text, "/model/enc../MatMul_17"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_exact),
        cmocka_unit_test(table_groups_barriers),
        cmocka_unit_test(rows_keep_to_the_columns),
        cmocka_unit_test(caches_are_told_in_words),
        cmocka_unit_test(a_line_an_operator),
        cmocka_unit_test(nothing_tiled_is_said),
        cmocka_unit_test(long_names_keep_their_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
