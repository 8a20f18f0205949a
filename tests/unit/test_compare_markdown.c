/* The comparison of two reports in Markdown (src/report/compare/compare_markdown.c): its figures,
 * words and tables; names that cannot become markup. */
#include "report_check.h"

/* The comparison of two facts, through their reports, as the command makes it; malloc'ed. */
static char *summary_of(const ot_facts *before, const ot_facts *after)
{
    const char *a = in_folder("a.xml"), *b = in_folder("b.xml"), *out = in_folder("page.html");
    ot_diag d = {0};
    if (ot_report_write(before, a, &d) != OT_OK) fail_msg("%s", d.message);
    if (ot_report_write(after, b, &d) != OT_OK) fail_msg("%s", d.message);
    if (ot_compare_summary(a, b, out, &d) != OT_OK) fail_msg("%s", d.message);
    return get_file(out);
}

static void has(const char *text, const char *want)
{
    if (!strstr(text, want)) fail_msg("no '%s' in\n%s", want, text);
}

static void lacks(const char *text, const char *word)
{
    if (strstr(text, word)) fail_msg("'%s' in\n%s", word, text);
}

static uint32_t count(const char *text, const char *word)
{
    uint32_t n = 0;
    for (const char *p = text; (p = strstr(p, word)) != NULL; p += strlen(word)) n++;
    return n;
}

/* Figures of both sides with what the second is of the first, what became of nodes, regions. */
static void says_what_changed(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0), *g = report_sample(1);
    g->cards[0].after = 2408448; /* half of what it was */
    char *text = summary_of(f, g);
    has(text, "| | before | after | |\n|---|---:|---:|---:|\n");
    has(text, "| Peak memory | 4.59 MiB | 2.3 MiB | x0.5 |\n");
    has(text, "| Bytes moved | 14.5 MiB | 14.5 MiB | = |\n");
    has(text, "| Time | 3.15 ms | 1.57 ms | x0.5 |\n");
    has(text, "\n2 nodes no longer tiled, 4 nodes tiled anew.\n");
    has(text, "before: ");
    has(text, "after: ");
    has(text, ", goal time (measured)");
    has(text, ", target `host`");
    has(text, "| region | tiling before | tiling after | time before | time after | |\n");
    has(text,
        " and 3 more | H 4 x W 4, unrolled | H 4, scan | 650 \xc2\xb5s | 325 \xc2\xb5s | x0.5 |\n");
    has(text, " and 1 more | a0 8, loop-peeled | - | 1.6 ms | - | |\n");
    ot_facts_free(f);
    ot_facts_free(g);
    free(text);
}

/* The same twice: figures are equal, the tiling is the same, and there is no table of regions. */
static void the_same(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0);
    char *text = summary_of(f, f);
    has(text, "\nThe same tiling.\n");
    lacks(text, "| region |");
    assert_int_equal(count(text, " = |\n"), 5);
    ot_facts_free(f);
    free(text);
    f = report_sample_empty(OT_FACTS_INSPECT);
    text = summary_of(f, f);
    lacks(text, "tiling"); /* of no nodes there is nothing to say */
    has(text, "(predicted); after: ");
    ot_facts_free(f);
    free(text);
}

/* A figure that one side does not have is a dash and no ratio; from nothing to something there is
 * none either; one that neither has, or has in another unit, is left out. */
static void figures_that_are_absent(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0), *g = report_sample(0);
    f->cards[0].before = f->cards[0].after = OT_ABSENT;
    g->cards[2].before = g->cards[2].after = OT_ABSENT;
    f->cards[3].before = f->cards[3].after = OT_ABSENT;
    g->cards[3].before = g->cards[3].after = OT_ABSENT;
    g->cards[1].unit = "seconds";
    g->cards[4].after = 5;
    char *text = summary_of(f, g);
    has(text, "| Peak memory | not known | 4.59 MiB | |\n");
    has(text, "| Time | 3.15 ms | not known | |\n");
    has(text, "| Nothing before | 0 B | 5 B | |\n");
    lacks(text, "Bytes moved");
    lacks(text, "Multiply-accumulates");
    ot_facts_free(f);
    ot_facts_free(g);
    free(text);
}

/* One node is a node; a region of one node has no "and so many more"; one that only the model
 * after has takes its name from there. */
static void one_of_each(void **state)
{
    (void)state;
    static const uint32_t only[] = {6};
    ot_facts *f = report_sample(0), *g = report_sample(0);
    g->regions[1].nodes = only;
    g->regions[1].n_nodes = 1;
    g->nodes[7].region = OT_NONE;
    g->nodes[6].name = "new <one>";
    f->nodes[6].region = f->nodes[7].region = OT_NONE;
    f->n_regions = 1;
    char *text = summary_of(f, g);
    has(text, "\n1 node only in the model after, 1 node only in the model before.\n");
    has(text, "| `new <one>` | - | a0 8, loop-peeled | - | 1.6 ms | |\n");
    ot_facts_free(f);
    ot_facts_free(g);
    free(text);
}

/* A region with other time, working set or nodes has changed although it is cut as it was. */
static void regions_that_are_cut_alike(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        static const uint32_t less[] = {0, 1, 2};
        ot_facts *f = report_sample(0), *g = report_sample(0);
        if (k == 0) g->regions[0].time_tiled *= 2;
        if (k == 1) g->regions[0].working_set += 64;
        if (k == 2) {
            g->regions[0].nodes = less, g->regions[0].n_nodes = 3;
            g->nodes[3].region = OT_NONE;
        }
        char *text = summary_of(f, g);
        has(text, k == 2 ? "\n1 node no longer tiled.\n" : "\nThe same tiling.\n");
        has(text, "| H 4 x W 4, unrolled | H 4 x W 4, unrolled |");
        assert_int_equal(count(text, "loop-peeled"), 0);
        ot_facts_free(f);
        ot_facts_free(g);
        free(text);
    }
}

/* Names are strangers' texts: one line in a code span, without a backquote or a bar that ends
 * it. */
static void hostile_names(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0), *g = report_sample(1);
    f->nodes[0].name = g->nodes[0].name = "a|b`@c\n<i>\xff";
    f->model = "dir/x`y|z.onnx";
    g->model = "";
    char *text = summary_of(f, g);
    has(text, "before: `x'y\\|z.onnx`");
    has(text, "### onnx-tile: ` `\n"); /* an empty span would begin another */
    has(text, "| `a\\|b'@c");
    for (const char *p = text; *p; p++) assert_false((unsigned char)*p < 0x20 && *p != '\n');
    uint32_t cells = 0;
    char *line = strtok(text, "\n");
    for (; line; line = strtok(NULL, "\n")) { /* all lines of a table have the same cells */
        uint32_t n = 0;
        if (*line != '|') {
            cells = 0;
            continue;
        }
        for (const char *p = line; *p; p++) n += *p == '|' && (p == line || p[-1] != '\\');
        if (cells && n != cells) fail_msg("%u cells, not %u: %s", n, cells, line);
        cells = n;
    }
    ot_facts_free(f);
    ot_facts_free(g);
    free(text);
}

/* Of very many regions the first twenty are shown, and how many more there are. */
static void many_regions(void **state)
{
    (void)state;
    enum { MANY = 23 };
    static uint32_t of[MANY];
    static char names[MANY][8];
    ot_facts *f = report_sample_empty(OT_FACTS_INSPECT), *g = report_sample_empty(OT_FACTS_INSPECT);
    ot_facts *both[] = {f, g};
    for (int side = 0; side < 2; side++) {
        ot_fact_region *regions = OT_NEW_N(both[side]->arena, ot_fact_region, MANY);
        ot_fact_node *nodes = OT_NEW_N(both[side]->arena, ot_fact_node, MANY);
        ot_facts *sample = report_sample(0);
        for (uint32_t k = 0; k < MANY; k++) {
            of[k] = k;
            snprintf(names[k], sizeof names[k], "n%u", k);
            nodes[k] = (ot_fact_node){.name = names[k],
                                      .op = "Relu",
                                      .shape = "1",
                                      .depth = k,
                                      .region = k,
                                      .barrier = OT_NONE,
                                      .refusal = OT_NONE,
                                      .measured = OT_ABSENT};
            regions[k] = sample->regions[1];
            regions[k].id = k;
            regions[k].nodes = &of[k];
            regions[k].n_nodes = 1;
            regions[k].n_sums = 0;
            regions[k].sums = NULL;
            regions[k].time_tiled = 1e-3 * (1 + side);
        }
        both[side]->regions = regions;
        both[side]->nodes = nodes;
        both[side]->n_regions = both[side]->n_nodes = MANY;
        ot_facts_free(sample);
    }
    char *text = summary_of(f, g);
    has(text, "| `n19` |");
    lacks(text, "`n20`");
    has(text, "\nand 3 more regions that changed.\n");
    assert_int_equal(count(text, " x2 |\n"), 20);
    ot_facts_free(f);
    ot_facts_free(g);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_changed),
        cmocka_unit_test(the_same),
        cmocka_unit_test(figures_that_are_absent),
        cmocka_unit_test(one_of_each),
        cmocka_unit_test(regions_that_are_cut_alike),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(many_regions),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
