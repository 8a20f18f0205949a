/* XML reports, read back: the inverse of xml_report.c along the same tables.
 *
 *   file --libxml2--> tree --reports/benefit.xsd--> valid tree --tables--> facts --> references
 *   checked
 *
 * Files come from strangers: at most 64 MiB, no network, no document type (so no entities: the
 * parser is stopped at the first sign of one), and every rule of the schema, which is a part of
 * the program, holds before a value is looked at. What the schema cannot say is checked behind
 * it: that nodes, barriers and refusals are numbered from 0, and that references stay inside the
 * lists.
 */
#include "report/facts/facts_table.h"

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <libxml/xmlschemas.h>
#include <libxml/xpath.h>
#include <errno.h>
#include <math.h>

#define FILE_MAX      (64u << 20)
#define CHUNK         (1u << 16)
#define PARSE_OPTIONS (XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING)
#define MESSAGE_MAX   400 /* bytes of libxml2's words */

extern const char ot_benefit_xsd[];

typedef struct region_id {
    uint32_t id, index;
} region_id;

typedef struct reader {
    ot_arena *a;
    ot_diag *d;
    const char *path;
    region_id *regions; /* [n_regions] by id */
    uint32_t n_regions;
    ot_status status; /* of the first failure */
} reader;

static ot_status read_struct(reader *r, const fact_struct *of, const xmlNode *node, void *base);

/* ---- file to valid tree ---- */

/* The whole file, malloc'ed; NULL with the failure told. */
static char *read_bytes(const char *path, size_t *n, ot_diag *d)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        ot_fail(d, OT_E_SYSTEM, "cannot open '%s': %s", path, strerror(errno));
        return NULL;
    }
    char *text = NULL;
    size_t used = 0, cap = 0, got = 1;
    while (got > 0 && used <= FILE_MAX) {
        if (cap - used < CHUNK) {
            char *more = realloc(text, cap = cap * 2 + CHUNK);
            if (!more) break;
            text = more;
        }
        got = fread(text + used, 1, CHUNK, f);
        used += got;
    }
    bool broken = ferror(f) != 0, ended = got == 0;
    fclose(f);
    *n = used;
    if (ended && !broken && used <= FILE_MAX) return text;
    free(text);
    if (broken)
        ot_fail(d, OT_E_SYSTEM, "cannot read '%s'", path);
    else if (used > FILE_MAX)
        ot_fail(d, OT_E_INPUT, "%s: larger than 64 MiB", path);
    else
        ot_fail_nomem(d);
    return NULL;
}

/* The parser met a document type: its owner is told, and nothing of it is read. */
static void refuse_doctype(void *context, const xmlChar *name, const xmlChar *external,
                           const xmlChar *system)
{
    xmlParserCtxt *parser = context;
    (void)name, (void)external, (void)system;
    *(bool *)parser->_private = true;
    xmlStopParser(parser);
}

/* What libxml2 would print of its own accord; errors that matter are taken from where they are
 * kept. */
static void stay_silent(void *context, xmlErrorPtr e) { (void)context, (void)e; }

static xmlDoc *parse(const char *path, const char *text, size_t n, ot_diag *d)
{
    bool has_doctype = false;
    xmlParserCtxt *parser = xmlNewParserCtxt();
    if (!parser || !parser->sax) {
        xmlFreeParserCtxt(parser);
        ot_fail_nomem(d);
        return NULL;
    }
    parser->_private = &has_doctype;
    parser->sax->internalSubset = refuse_doctype;
    xmlDoc *doc = xmlCtxtReadMemory(parser, text, (int)n, NULL, NULL, PARSE_OPTIONS);
    if (has_doctype || (doc && (doc->intSubset || doc->extSubset))) {
        ot_fail(d, OT_E_INPUT, "%s: has a document type, which reports have not", path);
        xmlFreeDoc(doc);
        doc = NULL;
    } else if (!doc) {
        const xmlError *e = xmlCtxtGetLastError(parser);
        if (e && e->code == XML_ERR_NO_MEMORY)
            ot_fail_nomem(d);
        else
            ot_fail(d, OT_E_INPUT, "%s:%d: not well-formed XML", path, e ? e->line : 1);
    }
    xmlFreeParserCtxt(parser);
    return doc;
}

/* The first broken rule of the schema. */
static void note_rule(void *context, xmlErrorPtr e)
{
    reader *r = context;
    const char *message = e->message ? e->message : "breaks a rule";
    size_t n = strlen(message);
    while (n > 0 && (message[n - 1] == '\n' || message[n - 1] == '.')) n--;
    ot_status st = e->code == XML_ERR_NO_MEMORY ? OT_E_NOMEM : OT_E_INPUT;
    if (n > MESSAGE_MAX) n = MESSAGE_MAX;
    if (r->status == OT_OK)
        r->status = ot_fail(r->d, st, "%s:%d: %.*s", r->path, e->line, (int)n, message);
}

static ot_status validate(reader *r, xmlDoc *doc)
{
    xmlSchemaParserCtxt *parser = xmlSchemaNewMemParserCtxt(ot_benefit_xsd,
                                                            (int)strlen(ot_benefit_xsd));
    xmlSchema *schema = parser ? xmlSchemaParse(parser) : NULL;
    xmlSchemaValidCtxt *valid = schema ? xmlSchemaNewValidCtxt(schema) : NULL;
    int result = -1;
    if (valid) {
        xmlSchemaSetValidStructuredErrors(valid, note_rule, r);
        result = xmlSchemaValidateDoc(valid, doc);
    }
    xmlSchemaFreeValidCtxt(valid);
    xmlSchemaFree(schema);
    xmlSchemaFreeParserCtxt(parser);
    if (result == 0 || r->status != OT_OK) return r->status;
    return result < 0 ? ot_fail_nomem(r->d)
                      : ot_fail(r->d, OT_E_INPUT, "%s: breaks the schema of reports", r->path);
}

/* ---- values ---- */

static ot_status wrong(reader *r, const xmlNode *node, const char *rule)
{
    return ot_fail(r->d, OT_E_INPUT, "%s:%ld: <%s> %s", r->path, xmlGetLineNo(node),
                   (const char *)node->name, rule);
}

/* Attributes of other names in reports that earlier versions wrote. */
static const struct {
    const char *name, *before;
} RENAMED[] = {{"stays-dynamic", "stays-free"}};

/* An attribute, in the arena; NULL: left out, or memory ran out (r->status). */
static const char *attribute(reader *r, const xmlNode *node, const char *name)
{
    xmlChar *value = xmlGetNoNsProp(node, BAD_CAST name);
    for (size_t k = 0; k < sizeof RENAMED / sizeof *RENAMED && !value; k++)
        if (strcmp(name, RENAMED[k].name) == 0)
            value = xmlGetNoNsProp(node, BAD_CAST RENAMED[k].before);
    if (!value) return NULL;
    const char *copy = ot_strdup(r->a, (const char *)value);
    xmlFree(value);
    if (!copy) r->status = ot_fail_nomem(r->d);
    return copy;
}

/* As XML Schema writes doubles, whatever the locale. */
static double number_of(const char *text, double absent)
{
    if (!text) return absent;
    text += strspn(text, " \t\r\n+");
    double x = xmlXPathCastStringToNumber(BAD_CAST text);
    return isfinite(x) ? x : absent;
}

static int64_t integer_of(const char *text)
{
    double x = number_of(text, 0);
    return x > 9e18 ? INT64_MAX : x < -9e18 ? INT64_MIN : (int64_t)x;
}

static uint32_t count_of(const char *text)
{
    int64_t n = integer_of(text);
    return n < 0 ? 0 : n > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)n;
}

static int by_id(const void *x, const void *y)
{
    const region_id *a = x, *b = y;
    return a->id < b->id ? -1 : a->id > b->id;
}

static uint32_t region_of(const reader *r, const char *text)
{
    region_id key = {count_of(text), 0};
    const region_id *found = r->n_regions
                                 ? bsearch(&key, r->regions, r->n_regions, sizeof key, by_id)
                                 : NULL;
    return found ? found->index : OT_NONE;
}

static uint32_t name_of(const fact_field *field, const char *text)
{
    for (uint32_t k = 0; text && k < field->n_names; k++)
        if (strcmp(text, field->names[k]) == 0) return k;
    return 0;
}

static void read_field(reader *r, const fact_field *field, const xmlNode *node, void *base)
{
    const char *text = attribute(r, node, field->name);
    char *at = (char *)base + field->offset;
    double x = number_of(text, field->type == FACT_SIGNED ? 0 : OT_ABSENT);
    int64_t wide = integer_of(text);
    uint32_t n = count_of(text);
    bool truth = text && strcmp(text, "true") == 0;

    switch (field->type) {
    case FACT_TEXT:
    case FACT_SOME:
        if (!text) text = "";
        memcpy(at, &text, sizeof text);
        return;
    case FACT_MAYBE: memcpy(at, &text, sizeof text); return;
    case FACT_NUMBER:
    case FACT_TIME:
    case FACT_SIGNED: memcpy(at, &x, sizeof x); return;
    case FACT_LIMIT:
    case FACT_I64: memcpy(at, &wide, sizeof wide); return;
    case FACT_TRUTH: memcpy(at, &truth, sizeof truth); return;
    case FACT_INDEX:
        if (!text) n = OT_NONE;
        break;
    case FACT_REGION: n = text ? region_of(r, text) : OT_NONE; break;
    case FACT_NAME:
    case FACT_DETAIL:
    case FACT_LEVEL:
    case FACT_OF_KERNEL: n = name_of(field, text); break;
    case FACT_U32: break;
    }
    memcpy(at, &n, sizeof n);
}

/* ---- objects and lists ---- */

static const xmlNode *child(const xmlNode *node, const char *name)
{
    for (const xmlNode *c = node ? node->children : NULL; c; c = c->next)
        if (c->type == XML_ELEMENT_NODE && strcmp((const char *)c->name, name) == 0) return c;
    return NULL;
}

static const xmlNode *element_from(const xmlNode *node)
{
    while (node && node->type != XML_ELEMENT_NODE) node = node->next;
    return node;
}

#define EACH(c, list)                                                      \
    (const xmlNode *c = element_from((list) ? (list)->children : NULL); c; \
     c = element_from(c->next))

static uint32_t items_of(const xmlNode *list)
{
    uint32_t n = 0; /* cannot pass FILE_MAX */
    for
        EACH(c, list) n++;
    return n;
}

static ot_status read_members(reader *r, const fact_struct *of, const xmlNode *node, void *base)
{
    const xmlNode *list = child(node, "members");
    uint32_t n = items_of(list), k = 0;
    uint32_t *nodes = ot_alloc_n(r->a, n, sizeof *nodes);
    if (!nodes) return ot_fail_nomem(r->d);
    for
        EACH(c, list) nodes[k++] = count_of(attribute(r, c, "node"));
    memcpy((char *)base + of->members, &nodes, sizeof nodes);
    memcpy((char *)base + of->n_members, &n, sizeof n);
    return r->status;
}

static ot_status read_dims(reader *r, const fact_struct *of, const xmlNode *node, void *base)
{
    const xmlNode *list = child(node, "dims");
    uint32_t n = items_of(list), k = 0;
    if (n > OT_DIMS_MAX) return wrong(r, list, "has more axes than regions are cut along");
    memcpy((char *)base + of->n_dims, &n, sizeof n);
    for
        EACH(c, list)
        {
            const char *axis = attribute(r, c, "axis");
            uint32_t tiles = count_of(attribute(r, c, "tiles"));
            int64_t tile = integer_of(attribute(r, c, "tile")),
                    extent = integer_of(attribute(r, c, "extent"));
            if (!axis) axis = "";
            memcpy((char *)base + of->axes + k * sizeof axis, &axis, sizeof axis);
            memcpy((char *)base + of->tiles + k * sizeof tiles, &tiles, sizeof tiles);
            memcpy((char *)base + of->tile + k * sizeof tile, &tile, sizeof tile);
            if (of->extent)
                memcpy((char *)base + of->extent + k * sizeof extent, &extent, sizeof extent);
            k++;
        }
    return r->status;
}

/* Items of a list into `items`, [items_of(list)] of of->size. */
static ot_status read_items(reader *r, const fact_struct *of, const xmlNode *list, void *items)
{
    uint32_t k = 0;
    for
        EACH(c, list)
        {
            const char *id = of->is_numbered ? attribute(r, c, "id") : NULL;
            if (r->status != OT_OK) return r->status;
            if (of->is_numbered && count_of(id) != k)
                return wrong(r, c, "is not numbered from 0 in order");
            OT_TRY(read_struct(r, of, c, (char *)items + (size_t)k++ * of->size));
        }
    return r->status;
}

static ot_status read_list(reader *r, const fact_list *list, const xmlNode *parent, void *base)
{
    const xmlNode *node = child(parent, list->name);
    uint32_t n = items_of(node);
    void *items = ot_alloc_n(r->a, n, list->of->size);
    if (!items) return ot_fail_nomem(r->d);
    memcpy((char *)base + list->items, &items, sizeof items);
    memcpy((char *)base + list->count, &n, sizeof n);
    return read_items(r, list->of, node, items);
}

static ot_status read_struct(reader *r, const fact_struct *of, const xmlNode *node, void *base)
{
    for (const fact_field *field = of->fields; field->name; field++)
        read_field(r, field, node, base);
    if (r->status != OT_OK) return r->status;
    if (of->has_members) OT_TRY(read_members(r, of, node, base));
    if (of->has_dims) OT_TRY(read_dims(r, of, node, base));
    for (const fact_list *list = of->lists; list && list->name; list++)
        OT_TRY(read_list(r, list, node, base));
    return OT_OK;
}

/* Nodes and points name regions by id, and come before or after them. */
static ot_status note_regions(reader *r, const xmlNode *root)
{
    const xmlNode *list = child(root, "regions");
    r->regions = ot_alloc_n(r->a, items_of(list), sizeof *r->regions);
    if (!r->regions) return ot_fail_nomem(r->d);
    for
        EACH(c, list)
        {
            r->regions[r->n_regions] = (region_id){count_of(attribute(r, c, "id")), r->n_regions};
            r->n_regions++;
        }
    if (r->n_regions) qsort(r->regions, r->n_regions, sizeof *r->regions, by_id);
    return r->status;
}

static ot_status read_bench(reader *r, const xmlNode *node, ot_facts *f)
{
    if (!node) return OT_OK;
    ot_bench_facts *b = OT_NEW(r->a, ot_bench_facts);
    if (!b) return ot_fail_nomem(r->d);
    f->bench = b;
    OT_TRY(read_struct(r, &FACTS_BENCH_HEAD, node, b));
    const xmlNode *sides = child(node, "sides");
    if (items_of(sides) != 2) return wrong(r, node, "has not two sides");
    return read_items(r, &FACTS_BENCH_SIDE, sides, b->side);
}

/* ---- references ---- */

static bool is_inside(uint32_t k, uint32_t n) { return k == OT_NONE || k < n; }

static bool are_inside(const uint32_t *list, uint32_t count, uint32_t n)
{
    for (uint32_t k = 0; k < count; k++)
        if (list[k] >= n) return false;
    return true;
}

static ot_status check_references(reader *r, const ot_facts *f)
{
    bool ok = true;
    for (uint32_t k = 0; k < f->n_nodes; k++)
        ok = ok && is_inside(f->nodes[k].barrier, f->n_barriers) &&
             is_inside(f->nodes[k].refusal, f->n_refusals);
    for (uint32_t k = 0; k < f->n_edges; k++)
        ok = ok && is_inside(f->edges[k].from, f->n_nodes) && is_inside(f->edges[k].to, f->n_nodes);
    for (uint32_t k = 0; k < f->n_barriers; k++)
        ok = ok && is_inside(f->barriers[k].node, f->n_nodes);
    for (uint32_t k = 0; k < f->n_regions; k++)
        ok = ok && are_inside(f->regions[k].nodes, f->regions[k].n_nodes, f->n_nodes);
    for (uint32_t k = 0; k < f->n_refusals; k++)
        ok = ok && are_inside(f->refusals[k].nodes, f->refusals[k].n_nodes, f->n_nodes);
    for (uint32_t k = 0; k < f->n_alive; k++)
        ok = ok && is_inside(f->alive[k].maker, f->n_nodes) &&
             is_inside(f->alive[k].reader, f->n_nodes);
    for (uint32_t k = 0; k < f->n_obstacles; k++)
        ok = ok && is_inside(f->obstacles[k].node, f->n_nodes);
    return ok ? OT_OK
              : ot_fail(r->d, OT_E_INPUT,
                        "%s: refers to a node, barrier or refusal that it has not", r->path);
}

static ot_status read_report(reader *r, xmlDoc *doc, ot_facts *f)
{
    OT_TRY(validate(r, doc));
    const xmlNode *root = xmlDocGetRootElement(doc);
    OT_TRY(note_regions(r, root));
    OT_TRY(read_struct(r, &FACTS_REPORT, root, f));
    OT_TRY(read_bench(r, child(root, "bench"), f));
    return check_references(r, f);
}

ot_status ot_report_read(const char *path, ot_diag *d, ot_facts **out)
{
    ot_diag own = {0};
    if (!d) d = &own;
    *out = NULL;
    ot_arena *a = ot_arena_new();
    ot_facts *f = a ? OT_NEW(a, ot_facts) : NULL;
    size_t n = 0;
    xmlStructuredErrorFunc old = xmlStructuredError;
    void *old_context = xmlStructuredErrorContext;
    xmlSetStructuredErrorFunc(NULL, stay_silent);
    char *text = f ? read_bytes(path, &n, d) : (ot_fail_nomem(d), NULL);
    xmlDoc *doc = text ? parse(path, text, n, d) : NULL;
    reader r = {.a = a, .d = d, .path = path};
    ot_status st = doc ? read_report(&r, doc, f) : d->status;
    xmlSetStructuredErrorFunc(old_context, old);
    xmlFreeDoc(doc);
    free(text);
    if (st != OT_OK) {
        ot_arena_free(a);
        return st;
    }
    f->arena = a;
    *out = f;
    return OT_OK;
}
