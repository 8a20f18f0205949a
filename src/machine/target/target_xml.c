/* Target files: reading (checked by the rules of reports/target.xsd) and writing. With
 * target_factors.c the only user of libxml2 here.
 *
 *   <target name="chip" description="..." cores="8">
 *     <fast bytes="16777216" bandwidth="1.6e12" granule="256" cache="false" double-buffer="true"/>
 *     <mid bytes="..." bandwidth="..."/>                        (optional)
 *     <slow bytes="..." bandwidth="1e11"/>                      (bytes optional: unlimited)
 *     <rates conv="..." conv-depthwise="..." conv-pointwise="..." gemm="..." elementwise="..."
 *            transcendental="..." reduction="..." pooling="..."/>
 *     <overheads node="..." loop="..." region="..."/>
 *     <transfers upload="2e10" upload-seconds="8e-6" download="2e10" download-seconds="9e-6"/>
 *                                                                (optional: devices)
 *     <access lanes="32" banks="32" bank-bytes="4" sector="32" shared-bandwidth="3e13"/>
 *                                                                (optional)
 *     <runtime name="onnxruntime" ...>...</runtime>              (optional: target_factors.c)
 *     <memory scope="ub" bytes="196608" alignment="32"/>         (any number, one a scope)
 *   </target>
 *
 * Both directions walk one table: element, attribute, kind, place in ot_target; <memory> and
 * <runtime> are apart.
 * Files come from strangers: no network, no DTD, no entities, at most 1 MiB.
 */
#include "target_xml.h"

#include <ctype.h>
#include <errno.h>
#include <libxml/parser.h>
#include <math.h>

#define FILE_MAX  (1 << 20)
#define BYTES_MAX (1LL << 50)
#define RATE_MAX  1e18
#define ALIGN_MAX (1LL << 20)

/* FUSES and RUNTIME say who runs the model; they have no field of their own. */
typedef enum field_kind { BYTES, RATE, SECONDS, CORES, TRUTH, TEXT, FUSES, RUNTIME } field_kind;

typedef struct field {
    const char *element; /* "target" is the root */
    const char *name;
    field_kind kind;
    size_t offset;
    size_t size; /* of TEXT */
    bool optional;
} field;

#define F(element, name, kind, member)                             \
    {                                                              \
        element, name, kind, offsetof(ot_target, member), 0, false \
    }
static const field FIELDS[] = {
    {"target", "name", TEXT, offsetof(ot_target, name), sizeof((ot_target *)0)->name, false},
    {"target", "description", TEXT, offsetof(ot_target, description),
     sizeof((ot_target *)0)->description, true},
    {"target", "cpu", TEXT, offsetof(ot_target, cpu), sizeof((ot_target *)0)->cpu, true},
    F("target", "cores", CORES, cores),
    {"target", "vector-lanes", CORES, offsetof(ot_target, vector_lanes), 0, true},
    {"target", "fuses", FUSES, 0, 0, true},
    {"target", "runtime", RUNTIME, 0, 0, true},
    {"target", "inplace-depthwise", TRUTH, offsetof(ot_target, inplace_depthwise), 0, true},
    F("fast", "bytes", BYTES, fast_bytes),
    F("fast", "bandwidth", RATE, bw_fast),
    F("fast", "granule", BYTES, granule),
    F("fast", "cache", TRUTH, is_cache),
    F("fast", "double-buffer", TRUTH, double_buffer),
    {"fast", "weights", BYTES, offsetof(ot_target, weight_bytes), 0, true},
    F("mid", "bytes", BYTES, mid_bytes),
    F("mid", "bandwidth", RATE, bw_mid),
    {"mid", "core-bandwidth", RATE, offsetof(ot_target, bw_mid_core), 0, true},
    {"slow", "bytes", BYTES, offsetof(ot_target, memory_bytes), 0, true},
    F("slow", "bandwidth", RATE, bw_slow),
    {"slow", "core-bandwidth", RATE, offsetof(ot_target, bw_slow_core), 0, true},
    F("rates", "conv", RATE, rate_conv),
    F("rates", "conv-depthwise", RATE, rate_conv_depthwise),
    F("rates", "conv-pointwise", RATE, rate_conv_pointwise),
    {"rates", "conv-winograd", RATE, offsetof(ot_target, rate_conv_winograd), 0, true},
    F("rates", "gemm", RATE, rate_gemm),
    F("rates", "elementwise", RATE, rate_elem),
    F("rates", "transcendental", RATE, rate_trans),
    F("rates", "reduction", RATE, rate_reduce),
    F("rates", "pooling", RATE, rate_pool),
    F("overheads", "node", SECONDS, node_overhead),
    F("overheads", "loop", SECONDS, loop_overhead),
    F("overheads", "region", SECONDS, region_overhead),
    F("transfers", "upload", RATE, transfers.upload),
    F("transfers", "upload-seconds", SECONDS, transfers.upload_start),
    F("transfers", "download", RATE, transfers.download),
    F("transfers", "download-seconds", SECONDS, transfers.download_start),
    F("access", "lanes", CORES, access.lanes),
    F("access", "banks", CORES, access.banks),
    F("access", "bank-bytes", BYTES, access.bank_bytes),
    F("access", "sector", BYTES, access.sector),
    F("access", "shared-bandwidth", RATE, access.bw_shared),
};
#undef F
#define N_FIELDS (sizeof FIELDS / sizeof *FIELDS)

/* Children of the root in the order of the schema, and what a commented file says of them. */
static const struct {
    const char *name;
    bool optional;
    const char *comment;
} ELEMENTS[] = {
    {"fast", false,
     "what the working set of a tile must fit. bandwidth: bytes a second, as everywhere; granule: "
     "bytes to which transfers are rounded up; cache: false for a scratchpad, where what does not "
     "fit cannot run; double-buffer: transfers go on while it computes; weights (optional): bytes "
     "of a memory beside it for constants"},
    {"mid", true,
     "a cache behind it, left out where there is none. core-bandwidth: what one core alone gets"},
    {"slow", false, "where models are. bytes left out: without a limit"},
    {"rates", false,
     "a second, all cores together: multiply-accumulates of conv* and gemm, elements of the "
     "others"},
    {"overheads", false,
     "seconds of a node, of an iteration of a loop beside its nodes, of a tiled region"},
    {"transfers", true, "between host and device: bytes a second, seconds of one of four bytes"},
    {"access", true, "how the lanes of a device reach memory"},
};
#define N_ELEMENTS (sizeof ELEMENTS / sizeof *ELEMENTS)

/* ---- reading ---- */

typedef ot_xml_reader reader;

/* What is wrong here says nothing of the next place: it is told with the others at the end. */
static ot_status note(reader *r, ot_status s)
{
    if (s != OT_E_INPUT) return s;
    const char *message = r->diag->message;
    const size_t prefix = strlen(r->path), used = strlen(r->found);
    if (strncmp(message, r->path, prefix) == 0 && strncmp(message + prefix, ": ", 2) == 0)
        message += prefix + 2;
    snprintf(r->found + used, sizeof r->found - used, "%s%s", used ? "; " : "", message);
    *r->diag = (ot_diag){0};
    return OT_OK;
}

static ot_status bad_value(const reader *r, const field *f, const char *text, const char *rule)
{
    return ot_fail(r->diag, OT_E_INPUT, "%s: <%s %s=\"%.60s\">: %s", r->path, f->element, f->name,
                   text, rule);
}

static bool parse_i64(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *out = v;
    return errno == 0 && end != text && *end == '\0' && !isspace((unsigned char)*text);
}

bool ot_xml_parse_double(const char *text, double *out)
{
    char *end;
    if (!*text || text[strspn(text, "0123456789+-.eE")] != '\0') return false;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

static ot_status set_field(reader *r, const field *f, const char *text)
{
    char *at = (char *)r->t + f->offset;
    int64_t i;
    double d;

    switch (f->kind) {
    case BYTES:
        if (!parse_i64(text, &i) || i < 1 || i > BYTES_MAX)
            return bad_value(r, f, text, "must be a whole number of bytes from 1 to 2^50");
        memcpy(at, &i, sizeof i);
        return OT_OK;
    case CORES: {
        if (!parse_i64(text, &i) || i < 1 || i > OT_TARGET_CORES_MAX)
            return bad_value(r, f, text, "must be a whole number from 1 to 4096");
        uint32_t cores = (uint32_t)i;
        memcpy(at, &cores, sizeof cores);
        return OT_OK;
    }
    case RATE:
        if (!ot_xml_parse_double(text, &d) || d < 1 || d > RATE_MAX)
            return bad_value(r, f, text, "must be a number from 1 to 1e18 per second");
        memcpy(at, &d, sizeof d);
        return OT_OK;
    case SECONDS:
        if (!ot_xml_parse_double(text, &d) || d < 0 || d > 1)
            return bad_value(r, f, text, "must be a number of seconds from 0 to 1");
        memcpy(at, &d, sizeof d);
        return OT_OK;
    case FUSES:
    case TRUTH: {
        bool truth = strcmp(text, "true") == 0;
        if (!truth && strcmp(text, "false") != 0)
            return bad_value(r, f, text, "must be true or false");
        if (f->kind == FUSES)
            r->fuses = truth;
        else
            memcpy(at, &truth, sizeof truth);
        return OT_OK;
    }
    case RUNTIME:
        r->t->runtime = ot_runtime_named(text);
        return r->t->runtime
                   ? OT_OK
                   : bad_value(r, f, text, "must be the name of a runtime (docs/runtimes.md)");
    case TEXT:
        if (!f->optional && !*text) return bad_value(r, f, text, "must not be empty");
        if (strlen(text) >= f->size) return bad_value(r, f, text, "is too long");
        memcpy(at, text, strlen(text) + 1);
        return OT_OK;
    }
    return OT_OK;
}

static const field *find_field(const char *element, const char *name)
{
    for (size_t k = 0; k < N_FIELDS; k++)
        if (strcmp(FIELDS[k].element, element) == 0 && strcmp(FIELDS[k].name, name) == 0)
            return &FIELDS[k];
    return NULL;
}

/* All attributes of one element: known ones set, required ones there. */
static ot_status read_attributes(reader *r, xmlNode *e)
{
    const char *element = (const char *)e->name;

    for (xmlAttr *a = e->properties; a; a = a->next) {
        const field *f = find_field(element, (const char *)a->name);
        if (!f) {
            OT_TRY(note(r, ot_fail(r->diag, OT_E_INPUT, "%s: <%s>: no attribute '%s' here", r->path,
                                   element, (const char *)a->name)));
            continue;
        }
        xmlChar *text = xmlNodeListGetString(e->doc, a->children, 1);
        ot_status s = set_field(r, f, text ? (const char *)text : "");
        xmlFree(text);
        OT_TRY(note(r, s));
    }
    for (size_t k = 0; k < N_FIELDS; k++) {
        const field *f = &FIELDS[k];
        if (f->optional || strcmp(f->element, element) != 0) continue;
        if (!xmlHasProp(e, (const xmlChar *)f->name))
            OT_TRY(note(r, ot_fail(r->diag, OT_E_INPUT, "%s: <%s>: attribute '%s' is missing",
                                   r->path, element, f->name)));
    }
    return OT_OK;
}

ot_status ot_xml_next_element(const reader *r, xmlNode *n, xmlNode **out)
{
    for (; n; n = n->next) {
        if (n->type == XML_ELEMENT_NODE) break;
        if (n->type == XML_COMMENT_NODE || n->type == XML_PI_NODE || xmlIsBlankNode(n)) continue;
        return ot_fail(r->diag, OT_E_INPUT, "%s: <%s>: text is not allowed here", r->path,
                       n->parent && n->parent->name ? (const char *)n->parent->name : "target");
    }
    *out = n;
    return OT_OK;
}

/* ---- <memory> ---- */

static ot_status bad_memory(const reader *r, const char *name, const char *text, const char *rule)
{
    return ot_fail(r->diag, OT_E_INPUT, "%s: <memory %s=\"%.60s\">: %s", r->path, name, text, rule);
}

/* A number of 1..max, 0 when the attribute is not there. */
static ot_status memory_number(const reader *r, xmlNode *e, const char *name, int64_t max,
                               const char *rule, int64_t *out)
{
    xmlChar *text = xmlGetNoNsProp(e, (const xmlChar *)name);
    *out = 0;
    if (!text) return OT_OK;
    ot_status s = OT_OK;
    if (!parse_i64((const char *)text, out) || *out < 1 || *out > max)
        s = bad_memory(r, name, (const char *)text, rule);
    xmlFree(text);
    return s;
}

static ot_status memory_scope(const reader *r, xmlNode *e, ot_scope *out)
{
    for (xmlAttr *a = e->properties; a; a = a->next) {
        const char *name = (const char *)a->name;
        if (strcmp(name, "scope") != 0 && strcmp(name, "bytes") != 0 &&
            strcmp(name, "alignment") != 0)
            return ot_fail(r->diag, OT_E_INPUT, "%s: <memory>: no attribute '%s' here", r->path,
                           name);
    }
    xmlChar *text = xmlGetNoNsProp(e, (const xmlChar *)"scope");
    if (!text)
        return ot_fail(r->diag, OT_E_INPUT, "%s: <memory>: attribute 'scope' is missing", r->path);
    ot_status s = OT_OK;
    if (!ot_scope_parse((const char *)text, out)) {
        char names[256] = "";
        for (int k = 0; k < OT_SCOPE_COUNT; k++) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, "%s%s", k ? ", " : "must be one of ",
                     ot_scope_name((ot_scope)k));
        }
        s = bad_memory(r, "scope", (const char *)text, names);
    }
    xmlFree(text);
    return s;
}

/* l2 and gm have their bytes from <fast> and <slow>: repeated here, not contradicted. */
static ot_status memory_bytes(const reader *r, ot_scope scope, int64_t bytes)
{
    bool l2 = scope == OT_SCOPE_L2, gm = scope == OT_SCOPE_GM;
    int64_t own = l2 ? r->t->fast_bytes : r->t->memory_bytes;
    if (!l2 && !gm && bytes == 0)
        return ot_fail(r->diag, OT_E_INPUT,
                       "%s: <memory scope=\"%s\">: attribute 'bytes' is missing", r->path,
                       ot_scope_name(scope));
    if ((l2 || gm) && bytes != 0 && bytes != own && !*r->found)
        return ot_fail(r->diag, OT_E_INPUT,
                       "%s: <memory scope=\"%s\">: bytes must be those of <%s>, or be left out",
                       r->path, ot_scope_name(scope), l2 ? "fast" : "slow");
    r->t->scopes[scope].bytes = bytes;
    return OT_OK;
}

static ot_status read_memory(const reader *r, xmlNode *e, bool seen[OT_SCOPE_COUNT])
{
    ot_scope scope = OT_SCOPE_COUNT;
    int64_t bytes, alignment;
    xmlNode *child;

    OT_TRY(memory_scope(r, e, &scope));
    if (seen[scope]) return bad_memory(r, "scope", ot_scope_name(scope), "given twice");
    seen[scope] = true;
    OT_TRY(memory_number(r, e, "bytes", BYTES_MAX, "must be a whole number of bytes from 1 to 2^50",
                         &bytes));
    OT_TRY(memory_number(r, e, "alignment", ALIGN_MAX,
                         "must be a whole number of bytes from 1 to 2^20", &alignment));
    OT_TRY(memory_bytes(r, scope, bytes));
    r->t->scopes[scope].alignment = alignment;
    OT_TRY(ot_xml_next_element(r, e->children, &child));
    return child ? ot_fail(r->diag, OT_E_INPUT, "%s: <memory> must be empty", r->path) : OT_OK;
}

/* Elements from e on, to the end of the root. */
static ot_status read_memories(reader *r, xmlNode *e)
{
    bool seen[OT_SCOPE_COUNT] = {false};
    while (e) {
        if (strcmp((const char *)e->name, "memory") != 0)
            return ot_fail(r->diag, OT_E_INPUT, "%s: <%s> is not allowed here", r->path,
                           (const char *)e->name);
        OT_TRY(note(r, read_memory(r, e, seen)));
        OT_TRY(ot_xml_next_element(r, e->next, &e));
    }
    return OT_OK;
}

/* ---- the file ---- */

static ot_status read_target(reader *r, xmlDoc *doc)
{
    xmlNode *root = xmlDocGetRootElement(doc), *e = NULL, *child = NULL;

    if (doc->intSubset) return ot_fail(r->diag, OT_E_INPUT, "%s: a DTD is not allowed", r->path);
    if (!root || strcmp((const char *)root->name, "target") != 0)
        return ot_fail(r->diag, OT_E_INPUT, "%s: the root element must be <target>", r->path);
    OT_TRY(read_attributes(r, root));
    OT_TRY(ot_xml_next_element(r, root->children, &e));
    for (size_t k = 0; k < N_ELEMENTS; k++) {
        if (!e || strcmp((const char *)e->name, ELEMENTS[k].name) != 0) {
            if (ELEMENTS[k].optional) continue;
            return ot_fail(r->diag, OT_E_INPUT, "%s: <%s> must come here, not %s%s%s", r->path,
                           ELEMENTS[k].name, e ? "<" : "the end", e ? (const char *)e->name : "",
                           e ? ">" : "");
        }
        OT_TRY(read_attributes(r, e));
        OT_TRY(ot_xml_next_element(r, e->children, &child));
        if (child)
            OT_TRY(note(r, ot_fail(r->diag, OT_E_INPUT, "%s: <%s> must be empty", r->path,
                                   ELEMENTS[k].name)));
        OT_TRY(ot_xml_next_element(r, e->next, &e));
    }
    if (e && strcmp((const char *)e->name, "runtime") == 0) {
        OT_TRY(note(r, ot_xml_read_factors(r, e)));
        OT_TRY(ot_xml_next_element(r, e->next, &e));
    }
    OT_TRY(read_memories(r, e));
    if (*r->found) return OT_OK; /* what follows compares numbers that are good */
    if (r->t->access.lanes > OT_LANES_MAX || r->t->access.banks > OT_BANKS_MAX)
        return ot_fail(r->diag, OT_E_INPUT, "%s: <access>: at most %d lanes and %d banks", r->path,
                       OT_LANES_MAX, OT_BANKS_MAX);
    if (r->t->mid_bytes == 0) r->t->bw_mid = r->t->bw_slow;
    if (!r->t->runtime) r->t->runtime = ot_runtime_of(r->t->is_cache, r->fuses);
    if (!ot_runtime_drives(r->t->runtime, r->t->is_cache))
        return ot_fail(r->diag, OT_E_INPUT,
                       "%s: <target runtime=\"%s\">: not for a fast memory with cache=\"%s\"",
                       r->path, r->t->runtime->name, r->t->is_cache ? "true" : "false");
    r->t->runtime = ot_runtime_with_lanes(r->t->runtime, r->t->vector_lanes);
    ot_target_fill_overheads(r->t, true);
    return OT_OK;
}

/* With the line and the parser's words. */
static ot_status not_xml(const char *path, ot_diag *diag)
{
    const xmlError *e = xmlGetLastError();
    const char *words = e && e->message ? e->message : "";
    return ot_fail(diag, OT_E_INPUT, "%s:%d: not well-formed XML%s%.*s", path, e ? e->line : 1,
                   *words ? ": " : "", (int)strcspn(words, "\n"), words);
}

ot_status ot_target_read_xml(const char *path, ot_diag *diag, ot_target *t)
{
    ot_diag one = {0};
    reader r = {path, &one, t, false, ""};
    FILE *f = fopen(path, "re");
    if (!f)
        return ot_fail(diag, errno == ENOENT || errno == ENOTDIR ? OT_E_INPUT : OT_E_SYSTEM,
                       "cannot read target file '%s': %s", path, strerror(errno));
    char *text = malloc(FILE_MAX + 1);
    size_t n = text ? fread(text, 1, FILE_MAX + 1, f) : 0;
    bool broken = ferror(f) != 0;
    fclose(f);
    ot_status s = OT_OK;
    xmlDoc *doc = NULL;
    if (!text)
        s = ot_fail_nomem(diag);
    else if (broken)
        s = ot_fail(diag, OT_E_SYSTEM, "cannot read target file '%s'", path);
    else if (n > FILE_MAX)
        s = ot_fail(diag, OT_E_INPUT, "%s: larger than 1 MiB", path);
    else if (!(doc = xmlReadMemory(text, (int)n, path, NULL,
                                   XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING)))
        s = not_xml(path, diag);
    else {
        s = note(&r, read_target(&r, doc));
        if (s != OT_OK)
            s = ot_fail(diag, s, "%s", one.message);
        else if (*r.found)
            s = ot_fail(diag, OT_E_INPUT, "%s: %s", path, r.found);
    }
    if (s != OT_OK) ot_target_free(t);
    xmlFreeDoc(doc);
    free(text);
    return s;
}

/* ---- writing ---- */

void ot_xml_print_double(double d, char *buf, size_t n)
{
    for (int digits = 12; digits <= 17; digits++) {
        snprintf(buf, n, "%.*g", digits, d);
        if (strtod(buf, NULL) == d) break;
    }
}

/* Value of a field as text; false when the field is left out. */
static bool field_text(const ot_target *t, const field *f, char *buf, size_t n)
{
    const char *at = (const char *)t + f->offset;
    switch (f->kind) {
    case BYTES: {
        int64_t i;
        memcpy(&i, at, sizeof i);
        snprintf(buf, n, "%lld", (long long)i);
        return i != 0 || !f->optional;
    }
    case CORES: {
        uint32_t c;
        memcpy(&c, at, sizeof c);
        snprintf(buf, n, "%u", c);
        return c > 0 || !f->optional;
    }
    case RATE:
    case SECONDS: {
        double d;
        memcpy(&d, at, sizeof d);
        ot_xml_print_double(d, buf, n);
        return d > 0 || !f->optional;
    }
    case TRUTH: {
        bool b;
        memcpy(&b, at, sizeof b);
        snprintf(buf, n, "%s", b ? "true" : "false");
        return true;
    }
    case FUSES:
        snprintf(buf, n, "%s", ot_runtime_fuses(t->runtime) ? "true" : "false");
        return true;
    case RUNTIME: /* where the rest does not say it; the engine is asked for by --emit */
        snprintf(buf, n, "%s", t->runtime->name);
        if (t->factors) return false; /* <runtime> says it */
        return !ot_runtime_in_classes(t->runtime) &&
               strcmp(t->runtime->name,
                      ot_runtime_of(t->is_cache, ot_runtime_fuses(t->runtime))->name) != 0;
    case TEXT: snprintf(buf, n, "%s", at); return *at != '\0' || !f->optional;
    }
    return false;
}

static int write_attributes(xmlTextWriter *w, const ot_target *t, const char *element)
{
    char buf[256];
    int rc = 0;
    for (size_t k = 0; k < N_FIELDS && rc >= 0; k++) {
        if (strcmp(FIELDS[k].element, element) != 0 || !field_text(t, &FIELDS[k], buf, sizeof buf))
            continue;
        rc = xmlTextWriterWriteAttribute(w, (const xmlChar *)FIELDS[k].name, (const xmlChar *)buf);
    }
    return rc;
}

/* <memory> of the scopes that differ from the defaults. */
static int write_memories(xmlTextWriter *w, const ot_target *t)
{
    int rc = 0;
    for (int k = 0; k < OT_SCOPE_COUNT && rc >= 0; k++) {
        /* those of <fast> and <slow> */
        int64_t bytes = k == OT_SCOPE_L2 || k == OT_SCOPE_GM ? 0 : t->scopes[k].bytes;
        int64_t alignment = t->scopes[k].alignment;
        if (alignment == ot_target_scope_alignment((ot_scope)k)) alignment = 0;
        if (bytes == 0 && (alignment == 0 || (k != OT_SCOPE_L2 && k != OT_SCOPE_GM))) continue;
        rc = xmlTextWriterStartElement(w, (const xmlChar *)"memory");
        if (rc >= 0)
            rc = xmlTextWriterWriteAttribute(w, (const xmlChar *)"scope",
                                             (const xmlChar *)ot_scope_name((ot_scope)k));
        if (rc >= 0 && bytes)
            rc = xmlTextWriterWriteFormatAttribute(w, (const xmlChar *)"bytes", "%lld",
                                                   (long long)bytes);
        if (rc >= 0 && alignment)
            rc = xmlTextWriterWriteFormatAttribute(w, (const xmlChar *)"alignment", "%lld",
                                                   (long long)alignment);
        if (rc >= 0) rc = xmlTextWriterEndElement(w);
    }
    return rc;
}

/* A line of its own, indented as elements are. */
static int write_comment(xmlTextWriter *w, bool commented, const char *text)
{
    return commented ? xmlTextWriterWriteFormatComment(w, " %s ", text) : 0;
}

static const char ABOUT[] =
    "what a machine can do, for onnx-tile's option target (a file that ends in .xml). cores: "
    "workers that share a node's work; optional: vector-lanes (floats in a vector register), "
    "runtime (who runs the models: see list-runtimes), inplace-depthwise (true or false). Numbers "
    "need not be exact: what counts is how they relate. Rules: reports/target.xsd";

static int write_target(xmlTextWriter *w, const ot_target *t, bool commented)
{
    int rc = xmlTextWriterSetIndent(w, 1);
    if (rc >= 0) rc = xmlTextWriterStartDocument(w, NULL, "UTF-8", NULL);
    if (rc >= 0) rc = write_comment(w, commented, ABOUT);
    if (rc >= 0) rc = xmlTextWriterStartElement(w, (const xmlChar *)"target");
    if (rc >= 0) rc = write_attributes(w, t, "target");
    for (size_t k = 0; k < N_ELEMENTS && rc >= 0; k++) {
        if (strcmp(ELEMENTS[k].name, "mid") == 0 && t->mid_bytes == 0) continue;
        if (strcmp(ELEMENTS[k].name, "transfers") == 0 && t->transfers.upload <= 0) continue;
        if (strcmp(ELEMENTS[k].name, "access") == 0 && t->access.lanes == 0) continue;
        rc = write_comment(w, commented, ELEMENTS[k].comment);
        if (rc >= 0) rc = xmlTextWriterStartElement(w, (const xmlChar *)ELEMENTS[k].name);
        if (rc >= 0) rc = write_attributes(w, t, ELEMENTS[k].name);
        if (rc >= 0) rc = xmlTextWriterEndElement(w);
    }
    if (rc >= 0) rc = ot_xml_write_factors(w, t);
    if (rc >= 0)
        rc = write_comment(w, commented,
                           "memories that tile kernels name: scope, bytes, alignment; any number");
    if (rc >= 0) rc = write_memories(w, t);
    return rc >= 0 ? xmlTextWriterEndDocument(w) : rc;
}

static ot_status save(const ot_target *t, bool commented, FILE *f, ot_diag *diag)
{
    xmlBuffer *buf = xmlBufferCreate();
    xmlTextWriter *w = buf ? xmlNewTextWriterMemory(buf, 0) : NULL;
    if (!w) {
        xmlBufferFree(buf);
        return ot_fail_nomem(diag);
    }
    int rc = write_target(w, t, commented);
    xmlFreeTextWriter(w);
    if (rc >= 0 && fputs((const char *)xmlBufferContent(buf), f) < 0) rc = -1;
    xmlBufferFree(buf);
    return rc < 0 ? ot_fail(diag, OT_E_SYSTEM, "cannot write the target file") : OT_OK;
}

ot_status ot_target_save(const ot_target *t, FILE *f, ot_diag *diag)
{
    return save(t, false, f, diag);
}

ot_status ot_target_save_commented(const ot_target *t, FILE *f, ot_diag *diag)
{
    return save(t, true, f, diag);
}
