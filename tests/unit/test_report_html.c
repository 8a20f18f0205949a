/* The HTML report, read back: by a strict XML parser, as the polyglot that it is, and as bytes
 * where HTML's rules differ.
 *
 * Facts are those of report_sample.h, whose names try to become markup; the numbers of the page
 * are looked up in the XML report of the same facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report_sample.h"
#include "report/html/html.h"

#include <libxml/parser.h>
#include <libxml/tree.h>

typedef struct page {
    char *text;
    size_t size;
    xmlDoc *doc;
} page;

typedef ot_status (*writer)(const ot_facts *f, FILE *out);

static char *write_to_memory(writer write, const ot_facts *f, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    assert_non_null(out);
    assert_int_equal(write(f, out), OT_OK);
    assert_int_equal(fclose(out), 0);
    return text;
}

static xmlDoc *parse(const char *text, size_t size)
{
    xmlDoc *doc = xmlReadMemory(text, (int)size, "report", NULL, XML_PARSE_NONET | XML_PARSE_HUGE);
    assert_non_null(doc);
    return doc;
}

static page open_page(const ot_facts *f)
{
    page p = {0};
    p.text = write_to_memory(ot_report_html, f, &p.size);
    p.doc = parse(p.text, p.size);
    return p;
}

static void close_page(page *p)
{
    xmlFreeDoc(p->doc);
    free(p->text);
}

/* ---- walking ---- */

typedef void (*visitor)(xmlNode *n, void *context);

static void walk(xmlNode *n, visitor visit, void *context)
{
    for (; n; n = n->next) {
        if (n->type == XML_ELEMENT_NODE) visit(n, context);
        walk(n->children, visit, context);
    }
}

static void walk_page(const page *p, visitor visit, void *context)
{
    walk(xmlDocGetRootElement(p->doc), visit, context);
}

static bool is_tag(const xmlNode *n, const char *tag)
{
    return strcmp((const char *)n->name, tag) == 0;
}

static bool is_one_of(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(text, *list) == 0) return true;
    return false;
}

/* Texts in a sorted list. */
typedef struct words {
    char **list;
    size_t n, cap;
} words;

static void add_word(words *w, const xmlChar *text)
{
    if (w->n == w->cap) {
        w->cap = w->cap ? 2 * w->cap : 64;
        w->list = realloc(w->list, w->cap * sizeof *w->list);
        assert_non_null(w->list);
    }
    w->list[w->n++] = strdup((const char *)text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_words(words *w)
{
    if (w->n) qsort(w->list, w->n, sizeof *w->list, by_text);
}

static bool has_word(const words *w, const char *text)
{
    return w->n && bsearch(&text, w->list, w->n, sizeof *w->list, by_text);
}

static void free_words(words *w)
{
    for (size_t k = 0; k < w->n; k++) free(w->list[k]);
    free(w->list);
}

/* ---- what elements and attributes there are ---- */

static const char *const KNOWN_TAGS[] = {
    "html",   "head",    "meta",     "title",    "style",      "script", "body",    "header",
    "nav",    "main",    "footer",   "section",  "div",        "p",      "span",    "a",
    "b",      "small",   "h1",       "h2",       "h3",         "h4",     "ul",      "li",
    "dl",     "dt",      "dd",       "table",    "thead",      "tbody",  "tr",      "th",
    "td",     "caption", "details",  "summary",  "data",       "form",   "label",   "input",
    "output", "kbd",     "code",     "svg",      "g",          "defs",   "pattern", "rect",
    "path",   "line",    "circle",   "polyline", "polygon",    "text",   "tspan",   "use",
    "symbol", "marker",  "clipPath", "figure",   "figcaption", NULL};

/* HTML puts an svg and what is in it into SVG's namespace by itself, XML must be told. */
static void check_namespace(const xmlNode *n)
{
    bool drawn = false;
    for (const xmlNode *p = n; p && p->type == XML_ELEMENT_NODE; p = p->parent)
        drawn |= is_tag(p, "svg");
    assert_non_null(n->ns);
    assert_string_equal((const char *)n->ns->href,
                        drawn ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml");
}

typedef struct census {
    uint32_t scripts, styles;
    words ids, links;
} census;

static void count_element(xmlNode *n, void *context)
{
    census *c = context;
    if (!is_one_of((const char *)n->name, KNOWN_TAGS))
        fail_msg("unknown element <%s>", (const char *)n->name);
    check_namespace(n);
    c->scripts += is_tag(n, "script");
    c->styles += is_tag(n, "style");
    for (xmlAttr *a = n->properties; a; a = a->next) {
        const char *name = (const char *)a->name;
        xmlChar *value = xmlNodeListGetString(n->doc, a->children, 1);
        if (strncmp(name, "on", 2) == 0 || strcmp(name, "style") == 0 || strcmp(name, "src") == 0 ||
            strcmp(name, "action") == 0)
            fail_msg("attribute %s of <%s>", name, (const char *)n->name);
        if (strcmp(name, "href") == 0) {
            assert_non_null(value);
            assert_int_equal(value[0], '#');
            add_word(&c->links, value + 1);
        }
        if (strcmp(name, "id") == 0) add_word(&c->ids, value);
        xmlFree(value);
    }
}

static void check_elements(const page *p)
{
    census c = {0};
    walk_page(p, count_element, &c);
    assert_int_equal(c.scripts, 1);
    assert_int_equal(c.styles, 1);
    sort_words(&c.ids);
    for (size_t k = 1; k < c.ids.n; k++)
        if (strcmp(c.ids.list[k], c.ids.list[k - 1]) == 0)
            fail_msg("two elements have the id %s", c.ids.list[k]);
    for (size_t k = 0; k < c.links.n; k++)
        if (!has_word(&c.ids, c.links.list[k]))
            fail_msg("a link leads to #%s, which is not there", c.links.list[k]);
    free_words(&c.ids);
    free_words(&c.links);
}

/* HTML reads <div/> as an open <div>: only void elements and those of SVG may end so. Comments
 * and character data sections mean something else there, too. */
static void check_bytes(const page *p)
{
    static const char *const may_end[] = {"meta",    "input", "br",   "hr",      "col",
                                          "rect",    "path",  "line", "circle",  "polyline",
                                          "polygon", "use",   "stop", "ellipse", NULL};
    assert_int_equal(strncmp(p->text, "<!DOCTYPE html>\n<html ", 22), 0);
    assert_null(strstr(p->text, "<!--"));
    assert_null(strstr(p->text, "<![CDATA["));
    assert_null(strstr(p->text, "<?"));
    for (const char *end = p->text; (end = strstr(end, "/>")) != NULL; end += 2) {
        const char *start = end;
        char tag[32];
        while (*start != '<') start--;
        assert_int_equal(sscanf(start, "<%31[a-zA-Z0-9]", tag), 1);
        if (!is_one_of(tag, may_end)) fail_msg("<%s/> is empty", tag);
    }
}

/* Every row has a cell for every heading. */
static void check_table(xmlNode *n, void *context)
{
    unsigned long columns = 0;
    if (!is_tag(n, "table")) return;
    (*(uint32_t *)context)++;
    for (xmlNode *part = xmlFirstElementChild(n); part; part = xmlNextElementSibling(part))
        for (xmlNode *row = xmlFirstElementChild(part); row; row = xmlNextElementSibling(row)) {
            assert_true(is_tag(row, "tr"));
            if (is_tag(part, "thead")) columns = xmlChildElementCount(row);
            assert_int_equal(xmlChildElementCount(row), columns);
        }
}

static void check_page(const page *p)
{
    uint32_t tables = 0;
    check_elements(p);
    check_bytes(p);
    walk_page(p, check_table, &tables);
}

/* ---- numbers ---- */

static void gather_values(xmlNode *n, void *context)
{
    for (xmlAttr *a = n->properties; a; a = a->next) {
        xmlChar *value = xmlNodeListGetString(n->doc, a->children, 1);
        if (value) add_word(context, value);
        xmlFree(value);
    }
}

typedef struct figures {
    words known;
    uint32_t n;
} figures;

static void check_number(xmlNode *n, void *context)
{
    figures *g = context;
    if (!is_tag(n, "data")) return;
    xmlChar *value = xmlGetProp(n, BAD_CAST "value");
    assert_non_null(value);
    if (!has_word(&g->known, (const char *)value))
        fail_msg("the page has %s, the XML report does not", (const char *)value);
    xmlFree(value);
    g->n++;
}

/* Returns how many numbers the page has. */
static uint32_t check_numbers(const ot_facts *f, const page *p)
{
    figures g = {0};
    size_t size;
    char *text = write_to_memory(ot_report_xml, f, &size);
    xmlDoc *doc = parse(text, size);
    walk(xmlDocGetRootElement(doc), gather_values, &g.known);
    sort_words(&g.known);
    walk_page(p, check_number, &g);
    free_words(&g.known);
    xmlFreeDoc(doc);
    free(text);
    return g.n;
}

/* ---- tests ---- */

static void test_hostile_names_stay_texts(void **state)
{
    (void)state;
    for (int variant = 0; variant < 2; variant++) {
        ot_facts *f = report_sample(variant);
        page p = open_page(f);
        check_page(&p);
        assert_true(check_numbers(f, &p) > 100);
        close_page(&p);
        ot_facts_free(f);
    }
}

static void find_name(xmlNode *n, void *context)
{
    words *names = context;
    xmlChar *cls = xmlGetProp(n, BAD_CAST "class");
    if (cls && strcmp((const char *)cls, "n") == 0) {
        xmlChar *text = xmlNodeGetContent(n);
        add_word(names, text);
        xmlFree(text);
    }
    xmlFree(cls);
}

static void test_names_are_shown_as_they_are(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0);
    page p = open_page(f);
    words names = {0};
    walk_page(&p, find_name, &names);
    sort_words(&names);
    assert_true(has_word(&names, SAMPLE_NAMES[0]));
    assert_true(has_word(&names, SAMPLE_NAMES[1]));
    assert_true(has_word(&names, SAMPLE_NAMES[5]));
    assert_true(has_word(&names,
                         "ctl\xef\xbf\xbd\xef\xbf\xbd["
                         "31m\xef\xbf\xbdtab\xef\xbf\xbdline\xef\xbf\xbdreturn\xef\xbf\xbd"));
    free_words(&names);
    close_page(&p);
    ot_facts_free(f);
}

static void find_device(xmlNode *n, void *context)
{
    xmlChar *id = xmlGetProp(n, BAD_CAST "id");
    if (id && strcmp((const char *)id, "device") == 0) {
        xmlChar *text = xmlNodeGetContent(n);
        add_word(context, text);
        xmlFree(text);
    }
    xmlFree(id);
}

/* Both models in one table of kernels, a name once; a fallback with its reason; nothing of it on
 * the host. */
static void test_the_device_has_a_section(void **state)
{
    (void)state;
    static const char *const said[] = {"opencl:1, <img src=x> & \"CPU\".",
                                       "Conv, Relu32.5 ms",
                                       "copy-",
                                       "Softmax12",
                                       "has no \"kernel\" & more",
                                       "Fragmentation of the arena10 %22.5 %",
                                       NULL};
    for (int on_host = 0; on_host < 2; on_host++) {
        ot_facts *f = report_sample(0);
        if (on_host) {
            ot_bench_facts *b = ot_memdup(f->arena, f->bench, sizeof *b);
            assert_non_null(b);
            b->n_devices = 0;
            f->bench = b;
        }
        page p = open_page(f);
        words sections = {0};
        check_page(&p);
        walk_page(&p, find_device, &sections);
        assert_int_equal(sections.n, on_host ? 0 : 1);
        for (uint32_t k = 0; said[k] && !on_host; k++)
            if (!strstr(sections.list[0], said[k]))
                fail_msg("no '%s' in %s", said[k], sections.list[0]);
        free_words(&sections);
        close_page(&p);
        ot_facts_free(f);
    }
}

static void test_every_kind_without_facts(void **state)
{
    (void)state;
    for (int kind = OT_FACTS_OPTIMISE; kind <= OT_FACTS_MEMORY; kind++) {
        ot_facts *f = report_sample_empty((ot_fact_kind)kind);
        page p = open_page(f);
        check_page(&p);
        check_numbers(f, &p);
        close_page(&p);
        ot_facts_free(f);
    }
}

/* The first sentence names the figure as the runtime does, whatever its card is called. */
static void test_the_growth_is_named(void **state)
{
    (void)state;
    static const char *const titles[] = {NULL, "in the blue memory"};
    for (size_t k = 0; k < 2; k++) {
        ot_facts *f = report_sample_empty(OT_FACTS_OPTIMISE);
        ot_fact_card cards[] = {{"process-growth", "On the device", "bytes", 4096, 1024, OT_ABSENT,
                                 0.25, "A note.", false}};
        f->cards = cards;
        f->n_cards = 1;
        f->totals.growth_title = titles[k];
        page p = open_page(f);
        assert_int_equal(strstr(p.text, "; peak resident growth ") != NULL, k == 0);
        assert_int_equal(strstr(p.text, "; in the blue memory ") != NULL, k == 1);
        close_page(&p);
        ot_facts_free(f);
    }
}

static void test_same_facts_same_bytes(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0), *g = report_sample(0);
    size_t n, m;
    char *a = write_to_memory(ot_report_html, f, &n), *b = write_to_memory(ot_report_html, g, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
    ot_facts_free(f);
    ot_facts_free(g);
}

static void test_full_disk_is_told(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0);
    FILE *out = fopen("/dev/full", "w");
    if (out) assert_int_equal(ot_report_html(f, out), OT_E_SYSTEM);
    if (out) fclose(out);
    ot_facts_free(f);
}

/* 4,000 nodes in 400 regions of 60 candidates, and a barrier with a reason of its own at every
 * other node. */
static ot_facts *make_large(void)
{
    enum { NODES = 4000, REGIONS = 400, PART = NODES / REGIONS, CANDIDATES = 60 };
    ot_facts *f = report_sample(0);
    ot_fact_region model = f->regions[0];
    f->nodes = OT_NEW_N(f->arena, ot_fact_node, NODES);
    f->edges = OT_NEW_N(f->arena, ot_fact_edge, NODES);
    f->regions = OT_NEW_N(f->arena, ot_fact_region, REGIONS);
    f->barriers = OT_NEW_N(f->arena, ot_fact_barrier, NODES / 2);
    uint32_t *index = OT_NEW_N(f->arena, uint32_t, NODES);
    char name[200];
    for (uint32_t k = 0; k < NODES; k++) {
        snprintf(name, sizeof name,
                 "/transformer/encoder/layers.%u/self_attention/query_key_value/MatMul_%u", k / 40,
                 k);
        f->nodes[k] = (ot_fact_node){.name = ot_strdup(f->arena, name),
                                     .op = k % 3 ? "MatMul" : "Add",
                                     .shape = "1x4096x768",
                                     .depth = k,
                                     .region = k / PART,
                                     .barrier = k % 2 ? OT_NONE : k / 2,
                                     .refusal = OT_NONE,
                                     .traffic = k,
                                     .time = 1e-6 * k,
                                     .measured = OT_ABSENT};
        f->edges[k] = (ot_fact_edge){k ? k - 1 : OT_NONE, k, f->nodes[k].name, 1e6, false};
        index[k] = k;
        snprintf(name, sizeof name,
                 "the tensor that node %u makes has a shape that depends on the values of another "
                 "tensor",
                 k);
        if (k % 2 == 0)
            f->barriers[k / 2] = (ot_fact_barrier){k, "input-shape", ot_strdup(f->arena, name),
                                                   "a fixed shape at the graph's input"};
    }
    for (uint32_t k = 0; k < REGIONS; k++) {
        ot_fact_candidate *list = OT_NEW_N(f->arena, ot_fact_candidate, CANDIDATES);
        for (uint32_t j = 0; j < CANDIDATES; j++)
            list[j] = model.candidates[j % model.n_candidates];
        f->regions[k] = model;
        f->regions[k].id = k;
        f->regions[k].nodes = index + k * PART;
        f->regions[k].n_nodes = PART;
        f->regions[k].candidates = list;
        f->regions[k].n_candidates = CANDIDATES;
    }
    f->n_nodes = f->n_edges = NODES;
    f->n_regions = REGIONS;
    f->n_barriers = NODES / 2;
    f->n_refusals = 0;
    return f;
}

static void test_large_models_have_small_pages(void **state)
{
    (void)state;
    ot_facts *f = make_large();
    page p = open_page(f);
    assert_true(p.size < 5u << 20);
    check_page(&p);
    close_page(&p);
    ot_facts_free(f);
}

static void test_numbers_as_people_like_them(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *unit, *shown;
    } cases[] = {
        {0, "bytes", "0 B"},
        {1023, "bytes", "1023 B"},
        {1024, "bytes", "1 KiB"},
        {1536, "bytes", "1.5 KiB"},
        {12897485, "bytes", "12.3 MiB"},
        {1048575, "bytes", "1 MiB"},
        {4.56e-3, "seconds", "4.56 ms"},
        {0, "seconds", "0 ns"},
        {2e-6, "seconds", "2 \xc2\xb5s"},
        {61.5, "seconds", "61.5 s"},
        {1234567, "count", "1 234 567"},
        {1.234e9, "macs", "1.23 G"},
        {999, "count", "999"},
        {1000, "count", "1 000"},
        {0.25, "count", "0.25"},
        {0.123, "percent", "12.3 %"},
        {0.2454, "ratio",
         "\xc3\x97"
         "0.245"},
        {1, "ratio",
         "\xc3\x97"
         "1"},
        {1e11, "bytes/s", "100 GB/s"},
        {2.5e12, "ops/s", "2.5 Top/s"},
        {-1, "bytes", "-"},
        {1.23e-9, "tiny", "1.2e-09"},
        {0, "tiny", "0"},
    };
    char shown[64];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_string_equal(html_format(cases[k].x, cases[k].unit, shown, sizeof shown),
                            cases[k].shown);
}

/* The policy allows style and script by these; a browser that computes another hash shows a bare
 * page. */
static void test_hashes_look_like_hashes(void **state)
{
    (void)state;
    assert_int_equal(strlen(ot_page_css_hash), 7 + 44);
    assert_int_equal(strlen(ot_page_js_hash), 7 + 44);
    assert_int_equal(strncmp(ot_page_js_hash, "sha256-", 7), 0);
    assert_null(strpbrk(ot_page_js, "<&"));
    assert_null(strpbrk(ot_page_css, "<&"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_names_stay_texts),
        cmocka_unit_test(test_names_are_shown_as_they_are),
        cmocka_unit_test(test_every_kind_without_facts),
        cmocka_unit_test(test_the_device_has_a_section),
        cmocka_unit_test(test_the_growth_is_named),
        cmocka_unit_test(test_same_facts_same_bytes),
        cmocka_unit_test(test_full_disk_is_told),
        cmocka_unit_test(test_large_models_have_small_pages),
        cmocka_unit_test(test_numbers_as_people_like_them),
        cmocka_unit_test(test_hashes_look_like_hashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
