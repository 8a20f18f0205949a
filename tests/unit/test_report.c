/* The machine side of reports: XML by its schema, read back, JSON, CSV, files that appear whole.
 *
 * XML is judged by libxml2's validator with reports/benefit.xsd from the tree, JSON by a small
 * parser of its own here (which also counts what it sees), CSV by one that follows RFC 4180 to
 * the letter.
 */
#include "report_check.h"

#include <libxml/parser.h>
#include <libxml/xmlschemas.h>
#include <libxml/xpath.h>
#include <libxml/xpathInternals.h>
#include <locale.h>
#include <math.h>

#include "report/facts/facts_table.h"
#include "report/html/html.h"

/* ---- numbers and texts ---- */

static void numbers_are_short_and_exact(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *text;
    } cases[] = {{0, "0"},
                 {-0.0, "0"},
                 {1, "1"},
                 {-1, "-1"},
                 {0.1 + 0.2, "0.3"},
                 {1.0 / 3, "0.333333333"},
                 {4816896, "4816896"},
                 {9007199254740991.0, "9007199254740991"},
                 {1e16, "1e+16"},
                 {123456789012345.0, "123456789012345"},
                 {2.5e-7, "2.5e-07"},
                 {1234567890.5, "1.23456789e+09"},
                 {-0.0001, "-0.0001"}};
    char buffer[FACT_NUMBER_SIZE];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_string_equal(ot_fact_number(cases[k].x, buffer), cases[k].text);

    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
    bool found = false;
    for (size_t k = 0; k < 3 && !found; k++) found = setlocale(LC_NUMERIC, commas[k]) != NULL;
    /* with a comma where the system has such a locale */
    assert_string_equal(ot_fact_number(0.5, buffer), "0.5");
    setlocale(LC_NUMERIC, "C");
}

static void texts_become_what_xml_can_hold(void **state)
{
    (void)state;
#define BAD "\xef\xbf\xbd"
    static const struct {
        const char *text, *clean;
    } cases[] = {{"", ""},
                 {"a\tb\nc\rd", "a\tb\nc\rd"},
                 {"\x01\x1f\x7f", BAD BAD "\x7f"},
                 {"\xff\xc3", BAD BAD},
                 {"caf\xc3\xa9", "caf\xc3\xa9"},
                 {"\xc0\xaf", BAD BAD},
                 {"\xed\xa0\x80", BAD BAD BAD},
                 {"\xef\xbf\xbe", BAD BAD BAD},
                 {"\xef\xbf\xbd", BAD},
                 {"\xf0\x9f\x90\x99", "\xf0\x9f\x90\x99"},
                 {"\xf4\x90\x80\x80", BAD BAD BAD BAD},
                 {"\xf0\x9f\x90", BAD BAD BAD},
                 {"\xe0\x80\xaf", BAD BAD BAD}};
    ot_arena *a = ot_arena_new();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_string_equal(ot_fact_clean(a, cases[k].text), cases[k].clean);
    ot_arena_free(a);
}

/* ---- XML ---- */

static void note_error(void *context, xmlErrorPtr e)
{
    fprintf(stderr, "line %d: %s", e->line, e->message);
    ++*(int *)context;
}

/* Broken rules of the schema in the tree. */
static int schema_errors(const char *text)
{
    int errors = 0;
    xmlDoc *doc = xmlReadMemory(text, (int)strlen(text), NULL, NULL, XML_PARSE_NONET);
    assert_non_null(doc);
    xmlSchemaParserCtxt *parser = xmlSchemaNewParserCtxt("reports/benefit.xsd");
    xmlSchema *schema = xmlSchemaParse(parser);
    assert_non_null(schema);
    xmlSchemaValidCtxt *valid = xmlSchemaNewValidCtxt(schema);
    xmlSchemaSetValidStructuredErrors(valid, note_error, &errors);
    assert_true(xmlSchemaValidateDoc(valid, doc) >= 0);
    xmlSchemaFreeValidCtxt(valid);
    xmlSchemaFree(schema);
    xmlSchemaFreeParserCtxt(parser);
    xmlFreeDoc(doc);
    return errors;
}

static void xml_keeps_the_schema(void **state)
{
    (void)state;
    for (int k = 0; k < 6; k++) {
        ot_facts *f = k < 2 ? report_sample(k) : report_sample_empty((ot_fact_kind)(k - 2));
        char *text = written(f, ot_report_xml);
        assert_int_equal(schema_errors(text), 0);
        free(text);
        ot_facts_free(f);
    }
}

/* A report of a table: no target, and then neither scope nor level. */
static void xml_of_a_table_names_no_scope(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0);
    char *kernel = written(f, ot_report_xml);
    f->target = NULL;
    char *table = written(f, ot_report_xml);
    assert_int_equal(schema_errors(table), 0);
    assert_non_null(strstr(kernel, "scope=\"ub\""));
    assert_non_null(strstr(kernel, "level=\"none\""));
    assert_null(strstr(table, "scope=\"ub\""));
    assert_null(strstr(table, "level=\""));
    free(kernel);
    free(table);
    ot_facts_free(f);
}

static double number_at(xmlXPathContext *x, const char *path)
{
    xmlXPathObject *found = xmlXPathEvalExpression(BAD_CAST path, x);
    assert_non_null(found);
    double v = xmlXPathCastToNumber(found);
    xmlXPathFreeObject(found);
    return v;
}

static void expect_at(xmlXPathContext *x, double want, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void expect_at(xmlXPathContext *x, double want, const char *format, ...)
{
    char path[256];
    va_list list;
    va_start(list, format);
    vsnprintf(path, sizeof path, format, list);
    va_end(list);
    double got = number_at(x, path);
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-8 * fabs(want)))
        fail_msg("%s is %.17g, not %.17g", path, got, want);
}

/* Values of the struct, found by XPath: what the tables of the writer do not decide. */
static void xml_says_what_the_facts_are(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0);
    char *text = written(f, ot_report_xml);
    xmlDoc *doc = xmlReadMemory(text, (int)strlen(text), NULL, NULL, XML_PARSE_NONET);
    xmlXPathContext *x = xmlXPathNewContext(doc);
    for (uint32_t k = 0; k < f->n_nodes; k++) {
        const ot_fact_node *n = &f->nodes[k];
        expect_at(x, n->traffic, "/report/nodes/node[@id=%u]/@traffic-bytes", k);
        expect_at(x, n->time, "/report/nodes/node[@id=%u]/@time-seconds", k);
        expect_at(x, n->region == OT_NONE ? (double)NAN : f->regions[n->region].id,
                  "/report/nodes/node[@id=%u]/@region", k);
    }
    for (uint32_t k = 0; k < f->n_regions; k++) {
        const ot_fact_region *r = &f->regions[k];
        expect_at(x, r->benefit, "/report/regions/region[@id=%u]/@benefit-seconds", r->id);
        expect_at(x, r->error < 0 ? (double)NAN : r->error, "/report/regions/region[@id=%u]/@error",
                  r->id);
        expect_at(x, r->n_nodes, "count(/report/regions/region[@id=%u]/members/member)", r->id);
        expect_at(x, r->n_candidates, "count(/report/regions/region[@id=%u]/candidates/candidate)",
                  r->id);
        for (uint32_t d = 0; d < r->n_dims; d++)
            expect_at(x, (double)r->extent[d],
                      "/report/regions/region[@id=%u]/dims/dim[%u]/@extent", r->id, d + 1);
    }
    expect_at(x, NAN, "/report/edges/edge[1]/@from");
    expect_at(x, NAN, "/report/edges/edge[7]/@bytes");
    expect_at(x, 8, "count(/report/maps/map[@id='before']/boxes/box)");
    expect_at(x, 7e-4, "/report/bench/bench-regions/bench-region[1]/@measured-seconds");
    expect_at(x, 6000000, "/report/bench/sides/side[2]/@peak-bytes");
    expect_at(x, 0.5, "/report/bench/bench-outputs/bench-output[2]/@nmse");
    expect_at(x, 7, "/report/edges/edge[9]/@from");
    expect_at(x, 7000000, "/report/bench/devices/device[@side='tiled']/@peak-bytes");
    expect_at(x, 0.225, "/report/bench/devices/device[2]/@fragmentation");
    expect_at(x, 0.8,
              "/report/bench/devices/device[1]/transfers/transfer[@direction='upload']/@of-peak");
    expect_at(x, NAN, "/report/bench/devices/device[1]/transfers/transfer[2]/@of-peak");
    expect_at(x, 48, "/report/bench/devices/device[2]/kernels/kernel[@name='Conv, Relu']/@count");
    expect_at(x, 2, "/report/bench/devices/device[2]/fallbacks/fallback/@nodes");
    xmlXPathFreeContext(x);
    xmlFreeDoc(doc);
    free(text);
    ot_facts_free(f);
}

static void numbers_that_are_none_are_left_out(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0);
    f->nodes[0].time = NAN;
    f->nodes[0].macs = INFINITY;
    f->regions[0].benefit = -INFINITY;
    char *xml = written(f, ot_report_xml), *json = written(f, ot_report_json);
    assert_int_equal(schema_errors(xml), 0);
    assert_null(strstr(json, "nan"));
    assert_null(strstr(json, ": inf"));
    free(xml);
    free(json);
    ot_facts_free(f);
}

/* Read back and written again: the same bytes. */
static void xml_is_read_as_it_was_written(void **state)
{
    (void)state;
    for (int k = 0; k < 6; k++) {
        ot_facts *f = k < 2 ? report_sample(k) : report_sample_empty((ot_fact_kind)(k - 2)),
                 *back = NULL;
        const char *path = in_folder("back.xml");
        ot_diag d = {0};
        char *first = written(f, ot_report_xml);
        put_file(path, first);
        if (ot_report_read(path, &d, &back) != OT_OK) fail_msg("%s", d.message);
        char *second = written(back, ot_report_xml);
        assert_string_equal(first, second);
        free(first);
        free(second);
        ot_facts_free(f);
        ot_facts_free(back);
    }
}

/* The element, to be freed. */
static char *devices_in(const char *xml)
{
    const char *from = strstr(xml, "<devices>"), *to = strstr(xml, "</devices>");
    assert_true(from && to);
    char *part = strndup(from, (size_t)(to - from));
    assert_non_null(part);
    return part;
}

/* Of bench on a device: its memory is the headline, and everything is the facts' own. */
static void devices_are_copied(void **state)
{
    (void)state;
    ot_facts *from = report_sample(0), *f = report_sample_empty(OT_FACTS_BENCH);
    char *want = written(from, ot_report_xml);
    assert_int_equal(ot_facts_add_bench(f, from->bench, NULL), OT_OK);
    ot_facts_free(from);
    char *got = written(f, ot_report_xml);
    char *a = devices_in(want), *b = devices_in(got);
    assert_true(strlen(a) > 1000);
    assert_string_equal(a, b);
    free(a);
    free(b);
    assert_non_null(strstr(got, "<card id=\"device-memory\" title=\"Device memory\" unit=\"bytes\" "
                                "before=\"12000000\" after=\"7000000\""));
    assert_null(strstr(got, "peak-memory"));
    free(want);
    free(got);
    ot_facts_free(f);
}

/* ---- JSON ---- */

typedef struct json {
    const char *at;
    uint32_t n_strings, n_numbers, n_objects;
    uint32_t depth;
} json;

static void json_space(json *j) { j->at += strspn(j->at, " \n\r\t"); }

static bool json_text(json *j)
{
    if (*j->at++ != '"') return false;
    for (; *j->at != '"'; j->at++) {
        if ((unsigned char)*j->at < 0x20) return false; /* the end, too */
        if (*j->at != '\\') continue;
        j->at++;
        if (*j->at == 'u') {
            for (int k = 0; k < 4; k++)
                if (!strchr("0123456789abcdefABCDEF", *++j->at) || !*j->at) return false;
        } else if (!*j->at || !strchr("\"\\/bfnrt", *j->at)) {
            return false;
        }
    }
    j->at++;
    j->n_strings++;
    return true;
}

static bool json_digits(json *j)
{
    size_t n = strspn(j->at, "0123456789");
    j->at += n;
    return n > 0;
}

static bool json_number(json *j)
{
    if (*j->at == '-') j->at++;
    if (*j->at == '0' && j->at[1] >= '0' && j->at[1] <= '9') return false;
    if (!json_digits(j)) return false;
    if (*j->at == '.' && (j->at++, !json_digits(j))) return false;
    if (*j->at == 'e' || *j->at == 'E') {
        j->at++;
        if (*j->at == '+' || *j->at == '-') j->at++;
        if (!json_digits(j)) return false;
    }
    j->n_numbers++;
    return true;
}

static bool json_value(json *j);

static bool json_items(json *j, char end, bool keyed)
{
    j->at++;
    json_space(j);
    if (*j->at == end) return j->at++, true;
    for (;;) {
        json_space(j);
        if (keyed) {
            if (!json_text(j)) return false;
            json_space(j);
            if (*j->at++ != ':') return false;
        }
        if (!json_value(j)) return false;
        json_space(j);
        if (*j->at == end) return j->at++, true;
        if (*j->at++ != ',') return false;
    }
}

static bool json_value(json *j)
{
    json_space(j);
    if (++j->depth > 32) return false;
    bool ok;
    if (*j->at == '{')
        j->n_objects++, ok = json_items(j, '}', true);
    else if (*j->at == '[')
        ok = json_items(j, ']', false);
    else if (*j->at == '"')
        ok = json_text(j);
    else if (strncmp(j->at, "true", 4) == 0)
        ok = true, j->at += 4;
    else if (strncmp(j->at, "false", 5) == 0)
        ok = true, j->at += 5;
    else if (strncmp(j->at, "null", 4) == 0)
        ok = true, j->at += 4;
    else
        ok = json_number(j);
    j->depth--;
    return ok;
}

static void json_is_well_formed(void **state)
{
    (void)state;
    for (int k = 0; k < 6; k++) {
        ot_facts *f = k < 2 ? report_sample(k) : report_sample_empty((ot_fact_kind)(k - 2));
        char *text = written(f, ot_report_json);
        json j = {.at = text};
        if (!json_value(&j)) fail_msg("no JSON at: %.60s", j.at);
        json_space(&j);
        assert_int_equal(*j.at, 0);
        assert_true(j.n_strings > 5);
        if (k == 0) {
            assert_non_null(strstr(
                text,
                "\"name\": \"ctl\\u0001\\u001b[31m\\u0009tab\\u000aline\\u000dreturn\\u007f\""));
            assert_non_null(strstr(text, "\"members\": [0, 1, 2, 3]"));
            assert_non_null(strstr(text, "\"benefit_seconds\": -0.0001"));
            assert_non_null(strstr(text, "\"stays_dynamic\": "));
            assert_null(strstr(text, "bench_regions"));
        }
        /* the figures that lists have null for */
        if (k == 1) assert_non_null(strstr(text, "\"capacity_bytes\": null"));
        if (k == 1) assert_non_null(strstr(text, "\"level\": null"));
        free(text);
        ot_facts_free(f);
    }
}

/* XML and JSON hold the same values: as many attributes as keys with a plain value. */
static void json_and_xml_hold_the_same(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0);
    char *xml = written(f, ot_report_xml), *text = written(f, ot_report_json);
    xmlDoc *doc = xmlReadMemory(xml, (int)strlen(xml), NULL, NULL, XML_PARSE_NONET);
    xmlXPathContext *x = xmlXPathNewContext(doc);
    double attributes = number_at(x, "count(//@*)"), members = number_at(x, "count(//member)");
    uint32_t pairs = 0; /* keys whose value is no object and no list, and bare numbers */
    for (const char *s = text; (s = strstr(s, "\": ")) != NULL; s += 3)
        pairs += s[3] != '{' && s[3] != '[';
    assert_int_equal(pairs + (uint32_t)members, (uint32_t)attributes);
    xmlXPathFreeContext(x);
    xmlFreeDoc(doc);
    free(xml);
    free(text);
    ot_facts_free(f);
}

/* ---- CSV ---- */

/* Next cell of RFC 4180 into out; what ended it: ',' '\r' or 0. */
static char csv_cell(const char **at, char *out)
{
    const char *s = *at;
    bool quoted = *s == '"';
    for (s += quoted; *s; s++) {
        if (quoted && *s == '"' && s[1] != '"') break;
        if (!quoted && (*s == ',' || *s == '\r')) break;
        if (quoted && *s == '"') s++;
        assert_true(quoted || (*s != '"' && *s != '\n'));
        *out++ = *s;
    }
    if (quoted) assert_int_equal(*s++, '"');
    *out = '\0';
    char end = *s;
    if (end == ',') s++;
    if (end == '\r') {
        assert_int_equal(s[1], '\n');
        s += 2;
    }
    *at = s;
    return end;
}

static void csv_has_a_row_a_region(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0);
    char *text = written(f, ot_report_csv), cell[512], heads[64][64];
    const char *at = text,
               *want_heads =
                   "nodes,operators,first,last,axes,tiles,tile,extent,id,form,working_set_bytes,";
    uint32_t columns = 0, rows = 0;
    char end;
    assert_memory_equal(text, want_heads, strlen(want_heads));
    do {
        end = csv_cell(&at, cell);
        snprintf(heads[columns++], sizeof heads[0], "%.63s", cell);
    } while (end == ',');
    while (*at) {
        uint32_t column = 0;
        do {
            end = csv_cell(&at, cell);
            assert_true(column < columns);
            if (rows == 1 && strcmp(heads[column], "first") == 0)
                assert_string_equal(cell, "'+cmd|' /C calc'!A0, \"quoted\"");
            if (rows == 0 && strcmp(heads[column], "first") == 0)
                assert_string_equal(cell, SAMPLE_NAMES[0]);
            if (rows == 0 && strcmp(heads[column], "tile") == 0) assert_string_equal(cell, "14 14");
            if (rows == 1 && strcmp(heads[column], "benefit_seconds") == 0)
                assert_string_equal(cell, "-0.0001");
            if (rows == 1 && strcmp(heads[column], "error") == 0) assert_string_equal(cell, "");
            column++;
        } while (end == ',');
        assert_int_equal(column, columns);
        rows++;
    }
    assert_int_equal(rows, f->n_regions);
    free(text);
    ot_facts_free(f);
}

static void csv_guards_against_formulas(void **state)
{
    (void)state;
    static const char *const names[] = {"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a=1"};
    for (size_t k = 0; k < 7; k++) {
        ot_facts *f = report_sample(1);
        f->nodes[0].name = names[k];
        char *text = written(f, ot_report_csv), want[64];
        snprintf(want, sizeof want, k < 6 ? ",\"'%s\"," : ",%s,", names[k]);
        if (!strstr(text, want)) fail_msg("no %s in %s", want, text);
        free(text);
        ot_facts_free(f);
    }
}

/* ---- files ---- */

static void bytes_are_the_same_each_time(void **state)
{
    (void)state;
    static const writer writers[] = {ot_report_xml, ot_report_json, ot_report_csv};
    for (int k = 0; k < 3; k++) {
        ot_facts *f = report_sample(0), *g = report_sample(0);
        char *one = written(f, writers[k]), *two = written(g, writers[k]);
        assert_string_equal(one, two);
        free(one);
        free(two);
        ot_facts_free(f);
        ot_facts_free(g);
    }
}

static void form_follows_the_name(void **state)
{
    (void)state;
    assert_true(ot_report_is_known("a.html"));
    assert_true(ot_report_is_known("a/b.XML"));
    assert_true(ot_report_is_known("x.y.json"));
    assert_true(ot_report_is_known("c.csv"));
    assert_false(ot_report_is_known(".csv"));
    assert_false(ot_report_is_known("a.htm"));
    assert_false(ot_report_is_known("xml"));
    assert_false(ot_report_is_known("-"));
    assert_false(ot_report_is_known(""));

    ot_facts *f = report_sample(0);
    ot_diag d = {0};
    static const char *const names[] = {"r.xml", "r.json", "r.csv"};
    static const writer writers[] = {ot_report_xml, ot_report_json, ot_report_csv};
    for (int k = 0; k < 3; k++) {
        assert_int_equal(ot_report_write(f, in_folder(names[k]), &d), OT_OK);
        char *want = written(f, writers[k]), *got = get_file(in_folder(names[k]));
        assert_string_equal(got, want);
        free(want);
        free(got);
    }
    assert_int_equal(ot_report_write(f, in_folder("r.txt"), &d), OT_E_USAGE);
    ot_facts_free(f);
}

static void expect_failure(const ot_facts *f, const char *path, ot_status want)
{
    ot_diag d = {0};
    assert_int_equal(ot_report_write(f, path, &d), want);
    if (!strstr(d.message, path)) fail_msg("'%s' does not name %s", d.message, path);
}

static void failures_leave_nothing_behind(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0);
    expect_failure(f, in_folder("missing/r.xml"), OT_E_SYSTEM);
    assert_int_equal(mkdir(in_folder("dir.xml"), 0700), 0);
    expect_failure(f, in_folder("dir.xml"), OT_E_SYSTEM);
    assert_int_equal(symlink("/dev/full", in_folder("full.json")), 0);
    expect_failure(f, in_folder("full.json"), OT_E_SYSTEM);
    if (geteuid() != 0) { /* nothing is unwritable for root */
        assert_int_equal(mkdir(in_folder("locked"), 0500), 0);
        expect_failure(f, in_folder("locked/r.csv"), OT_E_SYSTEM);
        rmdir(in_folder("locked"));
    }
    assert_int_equal(rmdir(in_folder("dir.xml")), 0);
    assert_int_equal(unlink(in_folder("full.json")), 0);

    FILE *full = fopen("/dev/full", "w"); /* a writer by itself */
    assert_non_null(full);
    assert_int_equal(ot_report_xml(f, full), OT_E_SYSTEM);
    clearerr(full);
    assert_int_equal(ot_report_json(f, full), OT_E_SYSTEM);
    clearerr(full);
    assert_int_equal(ot_report_csv(f, full), OT_E_SYSTEM);
    fclose(full);
    ot_facts_free(f);
}

/* The k-th block of the arenas is refused, for every k: a status, and nothing else. */
static int blocks_left;

static void *failing_alloc(void *ptr, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (new_size == 0) return free(ptr), NULL;
    if (--blocks_left < 0) return NULL;
    return realloc(ptr, new_size);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    ot_facts *f = report_sample(0);
    ot_diag d = {0};
    ot_status st = OT_E_NOMEM;
    int k = 0;
    assert_int_equal(ot_report_write(f, in_folder("a.xml"), &d), OT_OK);
    for (; k < 200 && st != OT_OK; k++) {
        ot_facts *back = NULL;
        d = (ot_diag){0};
        ot_set_alloc_hook(failing_alloc);
        blocks_left = k;
        st = ot_report_read(in_folder("a.xml"), &d, &back);
        if (st == OT_OK) st = ot_report_write(back, in_folder("r.xml"), &d);
        if (st == OT_OK)
            st = ot_compare_reports(in_folder("a.xml"), in_folder("r.xml"), in_folder("page.html"),
                                    &d);
        ot_facts_free(back);
        ot_set_alloc_hook(NULL);
        if (st != OT_OK) assert_int_equal(st, OT_E_NOMEM);
    }
    assert_true(k > 3);
    assert_int_equal(st, OT_OK);
    ot_facts_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_short_and_exact),
        cmocka_unit_test(texts_become_what_xml_can_hold),
        cmocka_unit_test(xml_keeps_the_schema),
        cmocka_unit_test(xml_of_a_table_names_no_scope),
        cmocka_unit_test(xml_says_what_the_facts_are),
        cmocka_unit_test(numbers_that_are_none_are_left_out),
        cmocka_unit_test(xml_is_read_as_it_was_written),
        cmocka_unit_test(devices_are_copied),
        cmocka_unit_test(json_is_well_formed),
        cmocka_unit_test(json_and_xml_hold_the_same),
        cmocka_unit_test(csv_has_a_row_a_region),
        cmocka_unit_test(csv_guards_against_formulas),
        cmocka_unit_test(bytes_are_the_same_each_time),
        cmocka_unit_test(form_follows_the_name),
        cmocka_unit_test(failures_leave_nothing_behind),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
