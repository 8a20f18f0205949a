/* Memory maps: well-formed whatever the names are, the same bytes twice, small for any number of
 * boxes, and what they show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libxml/parser.h>
#include <libxml/tree.h>

#include "report/facts/map_svg.h"

/* A document of one map. capacity 0: no line for it. */
static ot_status one_map(const ot_map_box *boxes, uint32_t n, int64_t height, int64_t lower_bound,
                         int64_t capacity, const char *title, FILE *f)
{
    const ot_map_plot plot = {.title = "",
                              .boxes = boxes,
                              .n = n,
                              .height = height,
                              .lower_bound = lower_bound,
                              .capacity = capacity};
    return ot_maps_svg(&plot, 1, title, f);
}

#define SIZE_MAX_DOC 5000000

/* The document; malloc'ed. */
static char *draw(const ot_map_plot *plots, uint32_t n, const char *title, size_t *size)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, size);
    assert_non_null(f);
    assert_int_equal(ot_maps_svg(plots, n, title, f), OT_OK);
    assert_int_equal(fclose(f), 0);
    return text;
}

static xmlDoc *parse(const char *text, size_t size)
{
    xmlDoc *doc = xmlReadMemory(text, (int)size, "map.svg", NULL,
                                XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_HUGE);
    if (!doc) fail_msg("not well-formed: %.300s", text);
    return doc;
}

typedef struct counts {
    int boxes, tooltips, names, lines;
} counts;

static bool has_class(xmlNode *e, const char *class)
{
    xmlChar *text = xmlGetNoNsProp(e, (const xmlChar *)"class");
    bool yes = text && strcmp((const char *)text, class) == 0;
    xmlFree(text);
    return yes;
}

/* Walk the tree: only elements that the writer knows, and how many of which. */
static void count(xmlNode *e, counts *c)
{
    static const char *const known[] = {"svg",  "title", "style", "defs", "pattern",
                                        "rect", "path",  "g",     "text"};
    for (; e; e = e->next) {
        if (e->type != XML_ELEMENT_NODE) continue;
        bool ok = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            ok |= strcmp((const char *)e->name, known[k]) == 0;
        if (!ok) fail_msg("element <%s>", (const char *)e->name);
        bool rect = strcmp((const char *)e->name, "rect") == 0;
        if (rect && e->parent && strcmp((const char *)e->parent->name, "g") == 0) c->boxes++;
        if (rect && e->children) c->tooltips++;
        if (has_class(e, "n")) c->names++;
        if (has_class(e, "l cap")) c->lines++;
        count(e->children, c);
    }
}

static counts check(const ot_map_plot *plots, uint32_t n, const char *title)
{
    size_t size = 0, again = 0;
    char *text = draw(plots, n, title, &size), *twice = draw(plots, n, title, &again);
    counts c = {0, 0, 0, 0};
    assert_int_equal(size, again);
    assert_memory_equal(text, twice, size);
    assert_true(size < SIZE_MAX_DOC);
    xmlDoc *doc = parse(text, size);
    count(xmlDocGetRootElement(doc), &c);
    xmlFreeDoc(doc);
    free(text);
    free(twice);
    return c;
}

/* The example of minimalloc's documentation. */
static const ot_map_box FIVE[] = {{"b1", 0, 3, 8, 4, 0},
                                  {"b2", 3, 9, 8, 4, 0},
                                  {"b3", 0, 9, 4, 4, 0},
                                  {"b4", 9, 21, 4, 4, 0},
                                  {"b5", 0, 21, 0, 4, 0}};

static void five_boxes(void **state)
{
    (void)state;
    ot_map_plot p = {.title = "all",
                     .time = "step",
                     .boxes = FIVE,
                     .n = 5,
                     .height = 12,
                     .lower_bound = 12,
                     .capacity = 12};
    counts c = check(&p, 1, "five");
    assert_int_equal(c.boxes, 5);
    assert_int_equal(c.tooltips, 5);
    assert_int_equal(c.names, 5);
    assert_int_equal(c.lines, 1);
    size_t n = 0;
    char *text = draw(&p, 1, "five", &n);
    assert_non_null(strstr(text, "<title>b2\n4 B at 8, time 3 to 9</title>"));
    assert_non_null(strstr(text, ">lower bound = height = capacity<"));
    assert_non_null(strstr(text, "prefers-color-scheme:dark"));
    assert_non_null(strstr(text, ">step<"));
    free(text);
    n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_int_equal(one_map(FIVE, 5, 12, 12, 0, "five", f), OT_OK);
    fclose(f);
    xmlFreeDoc(parse(text, n));
    assert_null(strstr(text, "capacity"));
    free(text);
}

static void nothing_to_draw(void **state)
{
    (void)state;
    ot_map_plot p = {.title = "", .time = NULL, .boxes = NULL, .n = 0};
    counts c = check(&p, 1, "");
    assert_int_equal(c.boxes, 0);
    c = check(NULL, 0, "no map");
    assert_int_equal(c.boxes, 0);
}

/* A capacity that would flatten the boxes is told in words, without a line. */
static void far_capacity(void **state)
{
    (void)state;
    ot_map_plot p = {
        .title = "", .boxes = FIVE, .n = 5, .height = 12, .lower_bound = 12, .capacity = 1 << 20};
    assert_int_equal(check(&p, 1, "").lines, 0);
    size_t n = 0;
    char *text = draw(&p, 1, "", &n);
    assert_non_null(strstr(text, "capacity 1 MiB"));
    free(text);
    p.capacity = 20;
    assert_int_equal(check(&p, 1, "").lines, 1);
}

/* Each pipe has its own colour, pattern and entry in the legend; several maps make one document. */
static void pipes_and_maps(void **state)
{
    (void)state;
    ot_map_box boxes[6];
    for (uint32_t k = 0; k < 6; k++) boxes[k] = (ot_map_box){"buffer", k, k + 1, 64 * k, 64, k};
    ot_map_plot p[2] = {{.title = "ub",
                         .time = "statement",
                         .boxes = boxes,
                         .n = 6,
                         .height = 384,
                         .lower_bound = 64},
                        {.title = "l1",
                         .time = "statement",
                         .boxes = FIVE,
                         .n = 5,
                         .height = 12,
                         .lower_bound = 12}};
    counts c = check(p, 2, "kernel");
    assert_int_equal(c.boxes, 11);
    size_t n = 0;
    char *text = draw(p, 2, "kernel", &n), class[16], entry[32];
    for (uint32_t k = 1; k < 6; k++) {
        snprintf(class, sizeof class, "class=\"k%u\"", k);
        snprintf(entry, sizeof entry, ">%s</text>", ot_pipe_name((ot_pipe)(k - 1)));
        assert_non_null(strstr(text, class));
        assert_non_null(strstr(text, entry));
    }
    free(text);
}

/* A given span of time is shown even where no box is; it never cuts one off. */
static void given_times(void **state)
{
    (void)state;
    ot_map_plot p = {
        .title = "", .from = -40, .to = 60, .boxes = FIVE, .n = 5, .height = 12, .lower_bound = 12};
    size_t n = 0;
    char *text = draw(&p, 1, "", &n);
    assert_non_null(strstr(text, ">-40</text>"));
    assert_non_null(strstr(text, ">60</text>"));
    free(text);
    p.from = 10;
    p.to = 11;
    text = draw(&p, 1, "", &n);
    assert_non_null(strstr(text, ">0</text>"));
    assert_non_null(strstr(text, ">20</text>"));
    free(text);
}

static void hostile_names(void **state)
{
    (void)state;
    static const char *const names[] = {"</title><script>alert(1)</script>",
                                        "<!-- ",
                                        "]]>",
                                        "&amp;&#0;&lt;",
                                        "\" onload=\"x",
                                        "a\x01z\x1b[31m\x7f",
                                        "\xff\xfe\xc0\x80\xed\xa0\x80\xf8",
                                        "\xef\xbf\xbe\xef\xbf\xbf",
                                        "\xe2\x80\xae",
                                        "\xe6\xbc\xa2\xe5\xad\x97",
                                        "",
                                        "\xc3"};
    enum { N = sizeof names / sizeof *names };
    ot_map_box boxes[N];
    for (int k = 0; k < N; k++) boxes[k] = (ot_map_box){names[k], 0, 10, 100 * k, 100, (uint32_t)k};
    ot_map_plot p = {.title = names[0],
                     .time = names[6],
                     .boxes = boxes,
                     .n = N,
                     .height = 100 * N,
                     .lower_bound = 1};
    counts c = check(&p, 1, names[5]);
    assert_int_equal(c.boxes, N);
    size_t n = 0;
    char *text = draw(&p, 1, names[5], &n);
    assert_null(strstr(text, "<script"));
    assert_non_null(strstr(text, "<title>&lt;/title&gt;&lt;script&gt;"));
    assert_non_null(strstr(text, "<title>a\xef\xbf\xbdz\xef\xbf\xbd[31m\xef\xbf\xbd\n"));
    assert_non_null(strstr(text, "<title>\xe6\xbc\xa2\xe5\xad\x97\n"));
    for (const char *t = text; *t; t++) assert_true((unsigned char)*t >= 0x20 || *t == '\n');
    free(text);
}

/* A very long name is cut; a name that does not fit is in the tooltip only. */
static void long_names(void **state)
{
    (void)state;
    char name[2001];
    memset(name, 'x', 2000);
    name[2000] = '\0';
    ot_map_box b = {name, 0, 10, 0, 100, 0};
    ot_map_plot p = {
        .title = name, .time = name, .boxes = &b, .n = 1, .height = 100, .lower_bound = 100};
    assert_int_equal(check(&p, 1, name).names, 0);
    size_t n = 0;
    char *text = draw(&p, 1, name, &n);
    assert_non_null(strstr(text, "\xe2\x80\xa6\n100 B at 0"));
    name[300] = '\0';
    assert_null(strstr(text, name));
    free(text);
}

static void extreme_numbers(void **state)
{
    (void)state;
    static const ot_map_box boxes[] = {{"huge", INT64_MIN, INT64_MAX, INT64_MAX - 1, INT64_MAX, 9},
                                       {"none", 5, 6, 0, 0, 0},
                                       {"late", INT64_MAX - 1, INT64_MAX, 0, 1, 1}};
    ot_map_plot p = {.title = "",
                     .boxes = boxes,
                     .n = 3,
                     .height = INT64_MAX,
                     .lower_bound = 0,
                     .capacity = INT64_MAX};
    assert_int_equal(check(&p, 1, "").boxes, 3);
    p.boxes = &boxes[2];
    p.n = 1;
    assert_int_equal(check(&p, 1, "").boxes, 1);
    p.boxes = &boxes[1];
    p.height = p.capacity = 0;
    assert_int_equal(check(&p, 1, "").boxes, 1);
}

/* Random boxes with names as long as they come in models. */
static ot_map_box *many_boxes(uint32_t n, char (*names)[64])
{
    ot_map_box *b = malloc(n * sizeof *b);
    assert_non_null(b);
    uint32_t x = 12345;
    for (uint32_t k = 0; k < n; k++) {
        x = x * 1664525u + 1013904223u;
        int64_t lower = x % 1000000000u, upper = lower + 1 + (x >> 12);
        snprintf(names[k], sizeof names[k], "model/block_%u/conv2d & <bias> add:0/output tensor %u",
                 k % 97, k);
        b[k] = (ot_map_box){names[k], lower, upper, (int64_t)k * 12345, 1 + x % 100000, k % 7};
    }
    return b;
}

static void twenty_thousand(void **state)
{
    (void)state;
    enum { N = 20000 };
    char(*names)[64] = malloc(N * sizeof *names);
    assert_non_null(names);
    ot_map_box *b = many_boxes(N, names);
    ot_map_plot p = {.title = "many",
                     .boxes = b,
                     .n = N,
                     .height = N * 12345LL,
                     .lower_bound = 1,
                     .capacity = N * 12345LL};
    counts c = check(&p, 1, "many");
    assert_int_equal(c.boxes, N);
    assert_int_equal(c.tooltips, N);
    free(b);
    free(names);
}

static void more_than_can_be_shown(void **state)
{
    (void)state;
    enum { N = 200000 };
    char(*names)[64] = malloc(N * sizeof *names);
    assert_non_null(names);
    ot_map_box *b = many_boxes(N, names);
    ot_map_plot p[2] = {
        {.title = "many", .boxes = b, .n = N, .height = N * 12345LL, .lower_bound = 1}};
    p[1] = p[0];
    counts c = check(p, 2, "many");
    assert_int_equal(c.tooltips, 10000);
    assert_int_equal(c.boxes, 10000);
    size_t n = 0;
    char *text = draw(p, 2, "", &n);
    assert_non_null(strstr(text, "the 170000 smallest boxes are not drawn"));
    free(text);
    free(b);
    free(names);
}

static void full_disk(void **state)
{
    (void)state;
    FILE *f = fopen("/dev/full", "w");
    if (!f) skip();
    ot_map_plot p = {.title = "", .boxes = FIVE, .n = 5, .height = 12, .lower_bound = 12};
    assert_int_equal(setvbuf(f, NULL, _IONBF, 0), 0);
    assert_int_equal(ot_maps_svg(&p, 1, "", f), OT_E_SYSTEM);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_boxes),      cmocka_unit_test(nothing_to_draw),
        cmocka_unit_test(far_capacity),    cmocka_unit_test(pipes_and_maps),
        cmocka_unit_test(given_times),     cmocka_unit_test(hostile_names),
        cmocka_unit_test(long_names),      cmocka_unit_test(extreme_numbers),
        cmocka_unit_test(twenty_thousand), cmocka_unit_test(more_than_can_be_shown),
        cmocka_unit_test(full_disk),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    xmlCleanupParser();
    return failed;
}
