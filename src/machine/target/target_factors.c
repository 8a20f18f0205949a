/* Measured factors of a runtime in a target file (scripts/calibrate_runtime.py writes them):
 *
 *   <runtime name="onnxruntime" overlap="0.4" run-seconds="6e-8" ...>  attributes in FACTORS[],
 *                                                                      each optional
 *     <slow op="Resize" mode="linear" factor="9.5"/>                   before the rows of the
 *                                                                      runtime's own table
 *     <few below="8" part="0.4"/>                                      in place of the table's
 *                                                                      rows; `below` rises
 *   </runtime>
 *
 * The runtime's table is copied, what the file gives is put into the copy, and the target points
 * at that. What is not given stays.
 */
#include "target_xml.h"

#define SLOW_MAX 48 /* rows of a file; those of the table follow them */
#define FEW_MAX  8
#define MODE_MAX 16

struct ot_target_factors {
    ot_runtime table; /* what the target points at */
    ot_op_factor slow[2 * SLOW_MAX];
    char modes[SLOW_MAX][MODE_MAX];
    ot_few_channels few[FEW_MAX];
    uint32_t n_slow, n_few; /* rows that the file gave, from the first on */
    const ot_runtime *of;   /* the table that it was copied from */
};

typedef struct factor {
    const char *name;
    size_t offset; /* of a double in ot_runtime */
    double least, most;
} factor;

static const factor FACTORS[] = {
    {"overlap", offsetof(ot_runtime, overlap), 0, 1},
    {"run-seconds", offsetof(ot_runtime, run_seconds), 0, 1e-3},
    {"weights-seen", offsetof(ot_runtime, weights_seen), 0, 1},
    {"transposed-part", offsetof(ot_runtime, conv.transposed_part), 0.001, 1000},
    {"bytes-part", offsetof(ot_runtime, conv.bytes_part), 0.001, 1000},
    {"blocks-into", offsetof(ot_runtime, blocks.into), 0, 1000},
    {"blocks-out-of", offsetof(ot_runtime, blocks.out_of), 0, 1000},
    {"crop", offsetof(ot_runtime, blocks.crop), 0, 1000},
    {"crop-blocked", offsetof(ot_runtime, blocks.crop_blocked), 0, 1000},
    {"doubt", offsetof(ot_runtime, doubt), 1, 10},
    {"short-rows", offsetof(ot_runtime, short_rows), 1, 10},
};
#define N_FACTORS (sizeof FACTORS / sizeof *FACTORS)

void ot_target_free(ot_target *t)
{
    if (t->factors && t->runtime == &t->factors->table) t->runtime = t->factors->of;
    free(t->factors);
    t->factors = NULL;
}

const ot_runtime *ot_target_runtime_of_file(const ot_target *t, const ot_runtime *r)
{
    return t->factors && t->factors->of == r ? &t->factors->table : r;
}

const ot_runtime *ot_target_plain_runtime(const ot_target *t)
{
    return t->factors && t->runtime == &t->factors->table ? t->factors->of : t->runtime;
}

/* ---- reading ---- */

static ot_status bad(const ot_xml_reader *r, xmlNode *e, const char *name, const char *text,
                     const char *rule)
{
    return ot_fail(r->diag, OT_E_INPUT, "%s: <%s %s=\"%.60s\">: %s", r->path, (const char *)e->name,
                   name, text, rule);
}

static ot_status unknown(const ot_xml_reader *r, xmlNode *e, const xmlAttr *a)
{
    return ot_fail(r->diag, OT_E_INPUT, "%s: <%s>: no attribute '%s' here", r->path,
                   (const char *)e->name, (const char *)a->name);
}

/* Every attribute is one of names[n]. */
static ot_status only(const ot_xml_reader *r, xmlNode *e, const char *const *names, size_t n)
{
    for (const xmlAttr *a = e->properties; a; a = a->next) {
        bool known = false;
        for (size_t k = 0; k < n; k++) known |= strcmp((const char *)a->name, names[k]) == 0;
        if (!known) return unknown(r, e, a);
    }
    return OT_OK;
}

/* A text of at most size - 1 characters; *out is empty when the attribute is not there. */
static ot_status text_of(const ot_xml_reader *r, xmlNode *e, const char *name, bool needed,
                         char *out, size_t size)
{
    xmlChar *text = xmlGetNoNsProp(e, (const xmlChar *)name);
    *out = '\0';
    if (!text && xmlHasProp(e, (const xmlChar *)name)) return ot_fail_nomem(r->diag);
    if (!text && !needed) return OT_OK;
    if (!text)
        return ot_fail(r->diag, OT_E_INPUT, "%s: <%s>: attribute '%s' is missing", r->path,
                       (const char *)e->name, name);
    ot_status s = OT_OK;
    if (strlen((const char *)text) >= size)
        s = bad(r, e, name, (const char *)text, "is too long");
    else
        memcpy(out, text, strlen((const char *)text) + 1);
    xmlFree(text);
    return s;
}

/* A number of least..most; *out stays when it need not be there and is not. */
static ot_status number_of(const ot_xml_reader *r, xmlNode *e, const factor *f, bool needed,
                           double *out)
{
    char text[64], rule[64];
    double d;
    OT_TRY(text_of(r, e, f->name, needed, text, sizeof text));
    if (!*text && !xmlHasProp(e, (const xmlChar *)f->name)) return OT_OK;
    snprintf(rule, sizeof rule, "must be a number from %g to %g", f->least, f->most);
    if (!ot_xml_parse_double(text, &d) || d < f->least || d > f->most)
        return bad(r, e, f->name, text, rule);
    *out = d;
    return OT_OK;
}

static ot_status read_slow(const ot_xml_reader *r, xmlNode *e, struct ot_target_factors *x)
{
    static const char *const names[] = {"op", "mode", "factor"};
    static const factor value = {"factor", 0, 0.001, 100000};
    char op[64];
    OT_TRY(only(r, e, names, 3));
    if (x->n_slow == SLOW_MAX)
        return ot_fail(r->diag, OT_E_INPUT, "%s: <slow>: more than %d rows", r->path, SLOW_MAX);
    ot_op_factor *row = &x->slow[x->n_slow];
    char *mode = x->modes[x->n_slow];
    OT_TRY(text_of(r, e, "op", true, op, sizeof op));
    row->op = ot_op_find(op);
    if (row->op == OT_OP_OPAQUE)
        return bad(r, e, "op", op, "must be an operator of ONNX that can be tiled");
    OT_TRY(text_of(r, e, "mode", false, mode, MODE_MAX));
    row->mode = *mode ? mode : NULL;
    OT_TRY(number_of(r, e, &value, true, &row->factor));
    x->n_slow++;
    return OT_OK;
}

static ot_status read_few(const ot_xml_reader *r, xmlNode *e, struct ot_target_factors *x)
{
    static const char *const names[] = {"below", "part"};
    static const factor below = {"below", 0, 2, 65536}, part = {"part", 0, 0.001, 1};
    double channels = 0;
    OT_TRY(only(r, e, names, 2));
    if (x->n_few == FEW_MAX)
        return ot_fail(r->diag, OT_E_INPUT, "%s: <few>: more than %d rows", r->path, FEW_MAX);
    OT_TRY(number_of(r, e, &below, true, &channels));
    ot_few_channels *row = &x->few[x->n_few];
    row->below = (int64_t)channels;
    if ((double)row->below != channels || (x->n_few && row->below <= row[-1].below))
        return ot_fail(
            r->diag, OT_E_INPUT,
            "%s: <few below=\"%g\">: must be a whole number above that of the row before", r->path,
            channels);
    OT_TRY(number_of(r, e, &part, true, &row->part));
    x->n_few++;
    return OT_OK;
}

static ot_status read_rows(const ot_xml_reader *r, xmlNode *e, struct ot_target_factors *x)
{
    xmlNode *row, *child;
    OT_TRY(ot_xml_next_element(r, e->children, &row));
    while (row) {
        if (strcmp((const char *)row->name, "slow") == 0 && x->n_few == 0)
            OT_TRY(read_slow(r, row, x));
        else if (strcmp((const char *)row->name, "few") == 0)
            OT_TRY(read_few(r, row, x));
        else
            return ot_fail(r->diag, OT_E_INPUT, "%s: <runtime>: <%s> is not allowed here", r->path,
                           (const char *)row->name);
        OT_TRY(ot_xml_next_element(r, row->children, &child));
        if (child)
            return ot_fail(r->diag, OT_E_INPUT, "%s: <%s> must be empty", r->path,
                           (const char *)row->name);
        OT_TRY(ot_xml_next_element(r, row->next, &row));
    }
    return OT_OK;
}

/* The first row that holds counts: those of the file come before the table's. */
static void join_rows(struct ot_target_factors *x)
{
    uint32_t n = x->n_slow;
    for (uint32_t k = 0; k < x->of->n_slow && n < 2 * SLOW_MAX; k++) x->slow[n++] = x->of->slow[k];
    x->table.slow = x->slow;
    x->table.n_slow = n;
    if (x->n_few == 0) return;
    x->table.conv.few = x->few;
    x->table.conv.n_few = x->n_few;
}

static ot_status read_runtime(const ot_xml_reader *r, xmlNode *e, struct ot_target_factors *x)
{
    char name[64], list[256];
    const char *names[N_FACTORS + 1] = {"name"};
    for (size_t k = 0; k < N_FACTORS; k++) names[k + 1] = FACTORS[k].name;
    OT_TRY(only(r, e, names, N_FACTORS + 1));
    OT_TRY(text_of(r, e, "name", true, name, sizeof name));
    x->of = ot_runtime_asked(name, list, sizeof list);
    if (!x->of || ot_runtime_in_classes(x->of) || !ot_runtime_drives(x->of, r->t->is_cache))
        return bad(r, e, "name", name,
                   "must be a runtime of --list-runtimes that drives this fast memory, and not the "
                   "engine");
    if (r->t->runtime && r->t->runtime != x->of)
        return bad(r, e, "name", name, "is not the runtime that <target> names");
    x->table = *ot_runtime_with_lanes(x->of, r->t->vector_lanes);
    for (size_t k = 0; k < N_FACTORS; k++)
        OT_TRY(
            number_of(r, e, &FACTORS[k], false, (double *)((char *)&x->table + FACTORS[k].offset)));
    OT_TRY(read_rows(r, e, x));
    join_rows(x);
    return OT_OK;
}

ot_status ot_xml_read_factors(const ot_xml_reader *r, xmlNode *e)
{
    struct ot_target_factors *x = calloc(1, sizeof *x);
    if (!x) return ot_fail_nomem(r->diag);
    ot_status s = read_runtime(r, e, x);
    if (s != OT_OK) {
        free(x);
        return s;
    }
    r->t->factors = x;
    r->t->runtime = &x->table;
    return OT_OK;
}

/* ---- writing ---- */

static int write_number(xmlTextWriter *w, const char *name, double d)
{
    char buf[32];
    ot_xml_print_double(d, buf, sizeof buf);
    return xmlTextWriterWriteAttribute(w, (const xmlChar *)name, (const xmlChar *)buf);
}

static int write_text(xmlTextWriter *w, const char *name, const char *text)
{
    return xmlTextWriterWriteAttribute(w, (const xmlChar *)name, (const xmlChar *)text);
}

static int write_rows(xmlTextWriter *w, const struct ot_target_factors *x)
{
    int rc = 0;
    for (uint32_t k = 0; k < x->n_slow && rc >= 0; k++) {
        rc = xmlTextWriterStartElement(w, (const xmlChar *)"slow");
        if (rc >= 0) rc = write_text(w, "op", ot_op_name(x->slow[k].op));
        if (rc >= 0 && x->slow[k].mode) rc = write_text(w, "mode", x->slow[k].mode);
        if (rc >= 0) rc = write_number(w, "factor", x->slow[k].factor);
        if (rc >= 0) rc = xmlTextWriterEndElement(w);
    }
    for (uint32_t k = 0; k < x->n_few && rc >= 0; k++) {
        rc = xmlTextWriterStartElement(w, (const xmlChar *)"few");
        if (rc >= 0) rc = write_number(w, "below", (double)x->few[k].below);
        if (rc >= 0) rc = write_number(w, "part", x->few[k].part);
        if (rc >= 0) rc = xmlTextWriterEndElement(w);
    }
    return rc;
}

int ot_xml_write_factors(xmlTextWriter *w, const ot_target *t)
{
    const struct ot_target_factors *x = t->factors;
    if (!x || t->runtime != &x->table) return 0;
    int rc = xmlTextWriterStartElement(w, (const xmlChar *)"runtime");
    if (rc >= 0) rc = write_text(w, "name", x->table.name);
    for (size_t k = 0; k < N_FACTORS && rc >= 0; k++) {
        const double d = *(const double *)((const char *)&x->table + FACTORS[k].offset);
        if (d >= FACTORS[k].least) rc = write_number(w, FACTORS[k].name, d); /* else: has none */
    }
    if (rc >= 0) rc = write_rows(w, x);
    return rc >= 0 ? xmlTextWriterEndElement(w) : rc;
}
