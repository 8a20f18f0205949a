/* The comparison of two reports: what it finds, and what it refuses to read. Pages are parsed
 * strictly and read by XPath. */
#include "report_check.h"

#include "report/facts/facts_table.h"

#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <libxml/xpathInternals.h>

static void put_sample(const char *path, int variant)
{
    ot_facts *f = report_sample(variant);
    ot_diag d = {0};
    if (ot_report_write(f, path, &d) != OT_OK) fail_msg("%s", d.message);
    ot_facts_free(f);
}

/* Strictly parsed; texts of all elements that XPath finds, one behind the other; malloc'ed by
 * libxml2. */
static char *page_text(const char *path, const char *xpath)
{
    xmlDoc *doc = xmlReadFile(path, NULL, XML_PARSE_NONET);
    assert_non_null(doc);
    xmlXPathContext *x = xmlXPathNewContext(doc);
    xmlXPathRegisterNs(x, BAD_CAST "h", BAD_CAST "http://www.w3.org/1999/xhtml");
    xmlXPathObject *found = xmlXPathEvalExpression(BAD_CAST xpath, x);
    assert_non_null(found);
    xmlChar *text = NULL;
    for (int k = 0; found->nodesetval && k < found->nodesetval->nodeNr; k++) {
        xmlChar *content = xmlNodeGetContent(found->nodesetval->nodeTab[k]);
        text = xmlStrcat(text, content);
        text = xmlStrcat(text, BAD_CAST "|");
        xmlFree(content);
    }
    xmlXPathFreeObject(found);
    xmlXPathFreeContext(x);
    xmlFreeDoc(doc);
    return text ? (char *)text : (char *)xmlStrdup(BAD_CAST "");
}

static void expect_text(const char *path, const char *xpath, const char *want)
{
    char *text = page_text(path, xpath);
    if (!strstr(text, want)) fail_msg("%s has no '%s': %s", xpath, want, text);
    xmlFree(text);
}

static void comparison_says_what_changed(void **state)
{
    (void)state;
    const char *a = in_folder("a.xml"), *b = in_folder("b.xml"), *page = in_folder("page.html");
    ot_diag d = {0};
    put_sample(a, 0);
    put_sample(b, 1);
    if (ot_compare_reports(a, b, page, &d) != OT_OK) fail_msg("%s", d.message);
    expect_text(page, "//h:p[@class='summary']", "Predicted time 3.15 ms");
    expect_text(page, "//h:p[@class='summary']", "2 nodes no longer tiled, 4 nodes tiled anew.");
    expect_text(page, "//h:section[@id='regions']//h:tbody/h:tr[1]", "other tiles or form");
    expect_text(page, "//h:section[@id='regions']//h:tbody/h:tr[2]", "only before");
    expect_text(page, "//h:section[@id='nodes']//h:details[1]//h:td[1]", SAMPLE_NAMES[6]);
    expect_text(page, "//h:section[@id='nodes']//h:details[2]//h:td[1]", SAMPLE_NAMES[0]);
    expect_text(page, "//h:section[@id='target']//h:tr", "ch<i>p \"A&B\"");
    expect_text(page, "//h:section[@id='bench']//h:tbody/h:tr[1]", "least time");
    expect_text(page, "//h:section[@id='bench']//h:tbody/h:tr[h:td[1]='device memory']",
                "11.4 MiB");

    char *markup = page_text(page, "//h:img | //h:b[not(parent::h:p)] | //h:script[contains(., "
                                   "'alert')] | //@style | //@onerror");
    assert_string_equal(markup, "");
    xmlFree(markup);
    char *once = get_file(page);
    assert_int_equal(ot_compare_reports(a, b, page, &d), OT_OK);
    char *again = get_file(page);
    assert_string_equal(once, again);
    free(once);
    free(again);
}

static void comparison_of_the_same_finds_nothing(void **state)
{
    (void)state;
    const char *a = in_folder("a.xml"), *page = in_folder("page.html");
    ot_diag d = {0};
    put_sample(a, 0);
    assert_int_equal(ot_compare_reports(a, a, page, &d), OT_OK);
    expect_text(page, "//h:p[@class='summary']", "the same tiling.");
    char *changed = page_text(
        page, "//h:section[@id='nodes'] | //h:span[@class='less' or @class='more']");
    assert_string_equal(changed, "");
    xmlFree(changed);
    expect_text(page, "//h:section[@id='target']", "No difference.");
}

/* A report that an earlier version wrote has stays-free. */
static void an_attribute_of_an_older_name_is_read(void **state)
{
    (void)state;
    const char *a = in_folder("a.xml");
    put_sample(a, 1);
    char *text = get_file(a),
         *older = replaced(text, "stays-dynamic=\"true\"", "stays-free=\"true\"");
    put_file(a, older);
    free(text);
    free(older);
    ot_diag d = {0};
    ot_facts *facts;
    if (ot_report_read(a, &d, &facts) != OT_OK) fail_msg("%s", d.message);
    assert_true(facts->stays_dynamic);
    ot_facts_free(facts);
}

/* Nodes of one name pair in order; a region that is split goes with its larger part. */
static void regions_pair_by_their_nodes(void **state)
{
    (void)state;
    static const uint32_t small[] = {0}, large[] = {1, 2, 3};
    ot_facts *f = report_sample(0), *g = report_sample(0);
    for (uint32_t k = 0; k < 4; k++) f->nodes[k].name = g->nodes[k].name = "twin";
    g->regions[1] = g->regions[0];
    g->regions[1].id = 9;
    g->regions[0].nodes = small, g->regions[0].n_nodes = 1;
    g->regions[1].nodes = large, g->regions[1].n_nodes = 3;
    for (uint32_t k = 1; k < 4; k++) g->nodes[k].region = 1;
    g->nodes[6].region = g->nodes[7].region = OT_NONE;
    g->n_points = 0;
    ot_diag d = {0};
    assert_int_equal(ot_report_write(f, in_folder("a.xml"), &d), OT_OK);
    assert_int_equal(ot_report_write(g, in_folder("b.xml"), &d), OT_OK);
    if (ot_compare_reports(in_folder("a.xml"), in_folder("b.xml"), in_folder("page.html"), &d) !=
        OT_OK)
        fail_msg("%s", d.message);
    const char *page = in_folder("page.html");
    expect_text(page, "//h:section[@id='regions']//h:tbody/h:tr[1]/h:td[2]", "r9");
    expect_text(page, "//h:section[@id='regions']//h:tbody/h:tr[1]/h:td[4]", "3 in both");
    expect_text(page, "//h:section[@id='regions']//h:tbody/h:tr[1]", "other nodes");
    expect_text(page, "//h:section[@id='regions']//h:tbody/h:tr[3]", "only after");
    expect_text(page, "//h:section[@id='nodes']//h:summary", "In another region1 node");
    ot_facts_free(f);
    ot_facts_free(g);
}

static void expect_refusal(const char *text, const char *want)
{
    const char *good = in_folder("a.xml"), *bad = in_folder("bad.xml"),
               *page = in_folder("none.html");
    ot_diag d = {0};
    put_file(bad, text);
    assert_int_equal(ot_compare_reports(good, bad, page, &d), OT_E_INPUT);
    if (!strstr(d.message, want) || !strstr(d.message, "bad.xml"))
        fail_msg("'%s' does not say '%s'", d.message, want);
    assert_null(strchr(d.message, '\n'));
    assert_int_not_equal(access(page, F_OK), 0);
}

static void strange_files_are_refused(void **state)
{
    (void)state;
    put_sample(in_folder("a.xml"), 0);
    char *good = get_file(in_folder("a.xml"));
    static const struct {
        const char *from, *to, *want;
    } edits[] = {
        {"version=\"1\"", "version=\"2\"", "version"},
        {"<cards>", "<cardz>", "not well-formed"},
        {"fused=\"false\"", "fused=\"0\"", "fused"},
        {"depth=\"0\"", "depth=\"-1\"", "depth"},
        {"depth=\"0\"", "depth=\"4294967296\"", "depth"},
        {"depth=\"0\"", "", "depth"},
        {"macs=\"231211008\"", "macs=\"INF\"", "macs"},
        {"macs=\"231211008\"", "macs=\"NaN\"", "macs"},
        {" region=\"0\"", " region=\"1\"", "node-in-region"},
        {"peak-region=\"0\"", "peak-region=\"1\"", "peak-in-region"},
        {"maker=\"2\"", "maker=\"80\"", "tensor-maker"},
        {"reader=\"3\"", "reader=\"80\"", "tensor-reader"},
        {"barrier=\"0\"", "barrier=\"4000000000\"", "node-is-barrier"},
        {"<node id=\"1\"", "<node id=\"0\"", "node-id"},
        {"<member node=\"0\"/>", "<member node=\"8\"/>", "region-member"},
        {"to=\"1\"", "to=\"99\"", "edge-to"},
        {"<dims>",
         "<dims><dim axis=\"a\" tiles=\"1\" tile=\"1\"/><dim axis=\"b\" tiles=\"1\" tile=\"1\"/>",
         "axes"},
        {"<barrier id=\"0\"", "<barrier id=\"0\" onclick=\"x\"", "onclick"},
        {"<report ", "<!DOCTYPE report [<!ENTITY x \"y\">]><report ", "document type"},
        {"<report ", "<!DOCTYPE report SYSTEM \"http://127.0.0.1:1/x.dtd\"><report ",
         "document type"},
    };
    for (size_t k = 0; k < sizeof edits / sizeof *edits; k++) {
        char *bad = replaced(good, edits[k].from, edits[k].to);
        expect_refusal(bad, edits[k].want);
        free(bad);
    }
    expect_refusal("", "not well-formed");
    expect_refusal("<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "svg");
    expect_refusal("{\"version\": 1}", "not well-formed");
    expect_refusal("<!DOCTYPE a [<!ENTITY b \"bbbbbbbb\"><!ENTITY c \"&b;&b;&b;&b;\">]><a>&c;</a>",
                   "document type");
    free(good);
}

/* Ids that the schema lets pass: a node that is not where its number says. */
static void nodes_are_numbered_in_order(void **state)
{
    (void)state;
    put_sample(in_folder("a.xml"), 0);
    char *good = get_file(in_folder("a.xml"));
    char *x = replaced(good, "<node id=\"6\"", "<node id=\"X\"");
    char *y = replaced(x, "<node id=\"7\"", "<node id=\"6\""),
         *z = replaced(y, "<node id=\"X\"", "<node id=\"7\"");
    expect_refusal(z, "numbered");
    free(good);
    free(x);
    free(y);
    free(z);
}

/* Cut at every so many bytes: refused, never more. */
static void cut_files_are_refused(void **state)
{
    (void)state;
    put_sample(in_folder("a.xml"), 0);
    char *good = get_file(in_folder("a.xml"));
    size_t n = strlen(good) - 10;
    for (size_t k = 1; k < n; k += n / 60) {
        char keep = good[k];
        good[k] = '\0';
        expect_refusal(good, "not well-formed");
        good[k] = keep;
    }
    free(good);
}

static void comparison_needs_two_of_a_kind(void **state)
{
    (void)state;
    ot_diag d = {0};
    ot_facts *f = report_sample_empty(OT_FACTS_INSPECT);
    put_sample(in_folder("a.xml"), 0);
    assert_int_equal(ot_report_write(f, in_folder("b.xml"), &d), OT_OK);
    ot_facts_free(f);
    assert_int_equal(
        ot_compare_reports(in_folder("a.xml"), in_folder("b.xml"), in_folder("x.html"), &d),
        OT_E_INPUT);
    assert_non_null(strstr(d.message, "report of bench"));
    d = (ot_diag){0};
    assert_int_equal(
        ot_compare_reports(in_folder("nothing.xml"), in_folder("b.xml"), in_folder("x.html"), &d),
        OT_E_SYSTEM);
    assert_non_null(strstr(d.message, "nothing.xml"));
    d = (ot_diag){0};
    assert_int_equal(
        ot_compare_reports(in_folder("b.xml"), in_folder("b.xml"), in_folder("x.html"), &d), OT_OK);
    assert_int_equal(ot_compare_reports(in_folder("b.xml"), in_folder("b.xml"), "/dev/full", &d),
                     OT_E_SYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparison_says_what_changed),
        cmocka_unit_test(comparison_of_the_same_finds_nothing),
        cmocka_unit_test(an_attribute_of_an_older_name_is_read),
        cmocka_unit_test(regions_pair_by_their_nodes),
        cmocka_unit_test(strange_files_are_refused),
        cmocka_unit_test(nodes_are_numbered_in_order),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(comparison_needs_two_of_a_kind),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
