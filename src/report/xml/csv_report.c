/* The region table as CSV (RFC 4180): a line of column names, then a line a region.
 *
 *   nodes,operators,first,last,axes,tiles,tile,extent,id,form,working_set_bytes,...
 *   4,Conv Relu Conv MaxPool,conv1,pool1,H W,4 4,14 14,56 56,0,unrolled,262144,...
 *
 * Columns behind `extent` are the fields of a region under the names of the JSON report; names
 * stay, new ones come at the end. Absent figures are empty cells. A text that a spreadsheet
 * would take for a formula (it begins with = + - @, a tab or a carriage return) gets an
 * apostrophe in front: names come from strangers' models.
 */
#include "report/facts/facts_table.h"

#include "report/facts/facts_number.h"

static void put_cell(const char *text, FILE *f)
{
    bool formula = *text && strchr("=+-@\t\r", *text);
    if (!formula && !strpbrk(text, ",\"\r\n")) {
        fputs(text, f);
        return;
    }
    fputs(formula ? "\"'" : "\"", f);
    for (; *text; text++) {
        if (*text == '"') fputc('"', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

/* A name from the model; false when memory ran out. */
static bool put_name(const char *name, ot_arena *a, FILE *f)
{
    char *clean = ot_fact_clean(a, name);
    fputc(',', f);
    if (clean) put_cell(clean, f);
    return clean != NULL;
}

/* Operators of the region's nodes, in order. */
static bool put_operators(const ot_facts *f, const ot_fact_region *r, ot_arena *a, FILE *out)
{
    size_t n = 1;
    for (uint32_t k = 0; k < r->n_nodes; k++) n += strlen(f->nodes[r->nodes[k]].op) + 1;
    char *text = ot_alloc(a, n), *at = text;
    for (uint32_t k = 0; text && k < r->n_nodes; k++)
        at += sprintf(at, "%s%s", k ? " " : "", f->nodes[r->nodes[k]].op);
    return text && put_name(text, a, out);
}

static void put_dims(const ot_fact_region *r, FILE *f)
{
    fputc(',', f);
    for (uint32_t d = 0; d < r->n_dims; d++) fprintf(f, "%s%s", d ? " " : "", r->axes[d]);
    fputc(',', f);
    for (uint32_t d = 0; d < r->n_dims; d++) fprintf(f, "%s%u", d ? " " : "", r->tiles[d]);
    fputc(',', f);
    for (uint32_t d = 0; d < r->n_dims; d++)
        fprintf(f, "%s%lld", d ? " " : "", (long long)r->tile[d]);
    fputc(',', f);
    for (uint32_t d = 0; d < r->n_dims; d++)
        fprintf(f, "%s%lld", d ? " " : "", (long long)r->extent[d]);
}

static void put_field(const ot_facts *f, const fact_field *field, const ot_fact_region *r,
                      FILE *out)
{
    char buffer[FACT_WORD_SIZE];
    const char *word = ot_fact_field_word(f, field, r, buffer);
    fputc(',', out);
    if (word)
        fputs(word, out);
    else if (field->type == FACT_TEXT ||
             (field->type == FACT_SOME && fact_text_at(r, field->offset)))
        put_cell(fact_text_at(r, field->offset), out);
    else if (field->type == FACT_DETAIL)
        fputs(field->names[fact_u32_at(r, field->offset)], out);
}

static bool put_region(const ot_facts *f, const ot_fact_region *r, ot_arena *a, FILE *out)
{
    fprintf(out, "%u", r->n_nodes);
    bool ok = put_operators(f, r, a, out);
    ok = ok && put_name(r->n_nodes ? f->nodes[r->nodes[0]].name : "", a, out);
    ok = ok && put_name(r->n_nodes ? f->nodes[r->nodes[r->n_nodes - 1]].name : "", a, out);
    put_dims(r, out);
    for (const fact_field *field = FACTS_REGION.fields; field->name; field++)
        put_field(f, field, r, out);
    fputs("\r\n", out);
    return ok;
}

ot_status ot_report_csv(const ot_facts *f, FILE *out)
{
    ot_arena *a = ot_arena_new();
    bool ok = a != NULL;
    fputs("nodes,operators,first,last,axes,tiles,tile,extent", out);
    for (const fact_field *field = FACTS_REGION.fields; field->name; field++) {
        fputc(',', out);
        for (const char *s = field->name; *s; s++) fputc(*s == '-' ? '_' : *s, out);
    }
    fputs("\r\n", out);
    for (uint32_t k = 0; ok && k < f->n_regions; k++) ok = put_region(f, &f->regions[k], a, out);
    ot_arena_free(a);
    if (!ok) return OT_E_NOMEM;
    return fflush(out) != 0 || ferror(out) ? OT_E_SYSTEM : OT_OK;
}
