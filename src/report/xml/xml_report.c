/* The facts as XML, by the schema reports/benefit.xsd: one element an object with a value an
 * attribute, one element a list.
 *
 *   <report version="1" kind="optimise" model="net.onnx" ...>
 *    <cards> <card id="peak-memory" unit="bytes" before="9633792" after="4816896" .../> ...
 *    </cards>
 *    <nodes> <node id="0" name="conv1" op="Conv" region="0" time-seconds="0.00012" .../> ...
 *    </nodes>
 *    <regions>
 *     <region id="0" form="scan" ...>
 *      <members><member node="0"/>...</members> <dims><dim axis="H" .../></dims>
 *      <candidates>...</candidates>
 *
 * Texts are cleaned of what XML cannot hold; libxml2 escapes the rest, line breaks included.
 */
#include "report/facts/facts_table.h"

#include "report/facts/facts_number.h"

#include <libxml/xmlwriter.h>

typedef struct xml_sink {
    fact_sink base;
    xmlTextWriterPtr w;
    ot_arena *a; /* for cleaned texts */
    bool failed;
} xml_sink;

static void check(xml_sink *x, int result)
{
    if (result < 0) x->failed = true;
}

static void open_element(fact_sink *s, const char *name)
{
    xml_sink *x = (xml_sink *)s;
    if (!x->failed) check(x, xmlTextWriterStartElement(x->w, BAD_CAST name));
}

static void close_element(fact_sink *s)
{
    xml_sink *x = (xml_sink *)s;
    if (!x->failed) check(x, xmlTextWriterEndElement(x->w));
}

static void put_word(fact_sink *s, const char *name, const char *value)
{
    xml_sink *x = (xml_sink *)s;
    if (!x->failed) check(x, xmlTextWriterWriteAttribute(x->w, BAD_CAST name, BAD_CAST value));
}

static void put_text(fact_sink *s, const char *name, const char *value)
{
    xml_sink *x = (xml_sink *)s;
    char *clean = x->failed ? NULL : ot_fact_clean(x->a, value);
    if (clean)
        put_word(s, name, clean);
    else
        x->failed = true;
}

static void put_node(fact_sink *s, const char *number)
{
    open_element(s, "member");
    put_word(s, "node", number);
    close_element(s);
}

/* Failures stay in the file's error mark: libxml2 would print them. */
static int write_file(void *context, const char *bytes, int n)
{
    (void)!fwrite(bytes, 1, (size_t)n, context);
    return n;
}

ot_status ot_report_xml(const ot_facts *f, FILE *out)
{
    xml_sink x = {.base = {.open = open_element,
                           .list = open_element,
                           .close = close_element,
                           .text = put_text,
                           .word = put_word,
                           .node = put_node},

                  .a = ot_arena_new()};
    xmlOutputBuffer *buffer = xmlOutputBufferCreateIO(write_file, NULL, out, NULL);
    x.w = buffer ? xmlNewTextWriter(buffer) : NULL;
    if (!x.w) {
        if (buffer) xmlOutputBufferClose(buffer);
        ot_arena_free(x.a);
        return OT_E_NOMEM;
    }
    x.failed = !x.a;
    check(&x, xmlTextWriterSetIndent(x.w, 1));
    check(&x, xmlTextWriterStartDocument(x.w, NULL, "UTF-8", NULL));
    if (!x.failed) ot_facts_put(f, &x.base);
    if (!x.failed) check(&x, xmlTextWriterEndDocument(x.w));
    xmlFreeTextWriter(x.w);
    ot_arena_free(x.a);
    if (fflush(out) != 0 || ferror(out)) return OT_E_SYSTEM;
    return x.failed ? OT_E_NOMEM : OT_OK;
}
