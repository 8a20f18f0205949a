/* The facts, walked along the tables of facts_table.h into a sink: XML and JSON are two sinks of
 * this one walk.
 *
 *   object: values of its fields, then its members and dims, then its lists, items of which are
 *   objects again
 */
#include "facts_table.h"

#include "facts_number.h"

#include <math.h>

typedef struct walk {
    const ot_facts *f;
    fact_sink *s;
} walk;

static void put_struct(const walk *w, const fact_struct *of, const void *base);

/* ---- values ---- */

static const char *i64_word(int64_t n, char *buffer) { return ot_fact_number((double)n, buffer); }

static const char *double_word(const fact_field *field, const void *at, char *buffer)
{
    double x;
    memcpy(&x, at, sizeof x);
    if (!isfinite(x) || (field->type != FACT_SIGNED && x < 0)) return NULL;
    return ot_fact_number(x, buffer);
}

static const char *u32_word(const ot_facts *f, const fact_field *field, uint32_t n, char *buffer)
{
    if (field->type != FACT_U32 && n == OT_NONE) return NULL;
    if (field->type == FACT_REGION) {
        if (n >= f->n_regions) return NULL;
        n = f->regions[n].id;
    }
    return i64_word(n, buffer);
}

const char *ot_fact_field_word(const ot_facts *f, const fact_field *field, const void *base,
                               char buffer[FACT_WORD_SIZE])
{
    const char *at = (const char *)base + field->offset;
    int64_t wide;
    bool truth;

    switch (field->type) {
    case FACT_NUMBER:
    case FACT_TIME:
    case FACT_SIGNED: return double_word(field, at, buffer);
    case FACT_LIMIT:
    case FACT_I64: memcpy(&wide, at, sizeof wide); return i64_word(wide, buffer);
    case FACT_U32:
    case FACT_INDEX:
    case FACT_REGION: return u32_word(f, field, fact_u32_at(base, field->offset), buffer);
    case FACT_TRUTH: memcpy(&truth, at, sizeof truth); return truth ? "true" : "false";
    case FACT_TEXT:
    case FACT_SOME:
    case FACT_MAYBE:
    case FACT_NAME:
    case FACT_DETAIL:
    case FACT_LEVEL:
    case FACT_OF_KERNEL: break;
    }
    return NULL;
}

/* In plans, as null where there is none. */
static bool is_always_there(fact_type type)
{
    return type == FACT_MAYBE || type == FACT_OF_KERNEL || type == FACT_LEVEL;
}

static bool is_enum(fact_type type)
{
    return type == FACT_NAME || type == FACT_DETAIL || type == FACT_OF_KERNEL || type == FACT_LEVEL;
}

/* The text of a field that is one; NULL: left out. */
static const char *field_text(const ot_facts *f, const fact_field *field, const void *base)
{
    if (is_enum(field->type)) {
        bool of_kernel = field->type == FACT_OF_KERNEL || field->type == FACT_LEVEL;
        bool means_nothing = of_kernel && (!f || !f->target || !*f->target);
        uint32_t k = fact_u32_at(base, field->offset);
        return means_nothing || k >= field->n_names ? NULL : field->names[k];
    }
    const char *text = fact_text_at(base, field->offset);
    if (field->type == FACT_TEXT) return text ? text : "";
    return text && (*text || field->type == FACT_MAYBE) ? text : NULL;
}

static bool is_text(fact_type type)
{
    return type == FACT_TEXT || type == FACT_SOME || type == FACT_MAYBE || is_enum(type);
}

/* There is no such figure, although the field has a value. */
static bool is_none(const fact_field *field, const void *base)
{
    const char *at = (const char *)base + field->offset;
    double x = 1;
    int64_t limit = 1;
    if (field->type == FACT_TIME) memcpy(&x, at, sizeof x);
    if (field->type == FACT_LIMIT) memcpy(&limit, at, sizeof limit);
    return !(x > 0) || limit == 0 ||
           (field->type == FACT_LEVEL && fact_u32_at(base, field->offset) + 1 == field->n_names);
}

/* As programs read it: twelve digits in plans. */
static const char *json_word(const walk *w, const fact_field *field, const void *base, char *buffer)
{
    const char *word = ot_fact_field_word(w->f, field, base, buffer);
    bool real = field->type == FACT_NUMBER || field->type == FACT_TIME ||
                field->type == FACT_SIGNED;
    double x;
    if (!word || !real || !w->s->is_plan) return word;
    memcpy(&x, (const char *)base + field->offset, sizeof x);
    return ot_fact_digits(x, 12, buffer);
}

static void put_json_field(const walk *w, const fact_field *field, const void *base)
{
    const char *name = field->json ? field->json : field->name;
    char buffer[FACT_WORD_SIZE];
    const char *text = is_text(field->type) ? field_text(w->f, field, base) : NULL;
    const char *word = text ? NULL : json_word(w, field, base, buffer);
    bool by_name = w->s->is_plan && field->type == FACT_INDEX;
    if (w->s->is_plan && field->type == FACT_DETAIL) return;
    if ((text || field->type == FACT_TIME || word) && is_none(field, base))
        w->s->word(w->s, name, "null");
    else if (text && field->type == FACT_LEVEL)
        w->s->word(w->s, name, text);
    else if (text)
        w->s->text(w->s, name, text);
    else if (word && by_name)
        w->s->text(w->s, name, w->f->nodes[fact_u32_at(base, field->offset)].name);
    else if (word)
        w->s->word(w->s, name, word);
    else if (w->s->is_plan && is_always_there(field->type))
        w->s->word(w->s, name, "null");
}

static void put_fields(const walk *w, const fact_struct *of, const void *base)
{
    char buffer[FACT_WORD_SIZE];
    for (const fact_field *field = of->fields; field->name; field++) {
        bool text = is_text(field->type);
        if (w->s->is_json) {
            put_json_field(w, field, base);
            continue;
        }
        const char *value = text ? field_text(w->f, field, base)
                                 : ot_fact_field_word(w->f, field, base, buffer);
        if (!value) continue;
        if (text)
            w->s->text(w->s, field->name, value);
        else
            w->s->word(w->s, field->name, value);
    }
}

/* ---- lists ---- */

static void put_members(const walk *w, const fact_struct *of, const void *base)
{
    char buffer[FACT_WORD_SIZE];
    const uint32_t *nodes = fact_pointer_at(base, of->members);
    uint32_t n = fact_u32_at(base, of->n_members);
    w->s->list(w->s, w->s->is_plan ? "nodes" : "members");
    for (uint32_t k = 0; k < n; k++)
        if (w->s->is_plan)
            w->s->text(w->s, "", w->f->nodes[nodes[k]].name);
        else
            w->s->node(w->s, i64_word(nodes[k], buffer));
    w->s->close(w->s);
}

static int64_t i64_at(const void *base, size_t array, uint32_t k)
{
    int64_t n;
    memcpy(&n, (const char *)base + array + k * sizeof n, sizeof n);
    return n;
}

static void put_dims(const walk *w, const fact_struct *of, const void *base)
{
    char buffer[FACT_WORD_SIZE];
    fact_sink *s = w->s;
    uint32_t n = fact_u32_at(base, of->n_dims);
    s->list(s, "dims");
    for (uint32_t k = 0; k < n && k < OT_DIMS_MAX; k++) {
        const char *axis = fact_text_at(base, of->axes + k * sizeof axis);
        s->open(s, "dim");
        s->text(s, "axis", axis ? axis : "");
        s->word(s, "tiles", i64_word(fact_u32_at(base, of->tiles + k * sizeof(uint32_t)), buffer));
        s->word(s, "tile", i64_word(i64_at(base, of->tile, k), buffer));
        if (of->extent) s->word(s, "extent", i64_word(i64_at(base, of->extent, k), buffer));
        s->close(s);
    }
    s->close(s);
}

static void put_items(const walk *w, const char *name, const char *item, const fact_struct *of,
                      const void *items, uint32_t n)
{
    char buffer[FACT_WORD_SIZE];
    w->s->list(w->s, name);
    for (uint32_t k = 0; k < n; k++) {
        w->s->open(w->s, item);
        if (of->is_numbered) w->s->word(w->s, "id", i64_word(k, buffer));
        put_struct(w, of, (const char *)items + k * of->size);
        w->s->close(w->s);
    }
    w->s->close(w->s);
}

static void put_struct(const walk *w, const fact_struct *of, const void *base)
{
    put_fields(w, of, base);
    if (of->has_members) put_members(w, of, base);
    if (of->has_dims) put_dims(w, of, base);
    for (const fact_list *list = of->lists; list && list->name; list++) {
        const uint32_t n = fact_u32_at(base, list->count);
        const char *name = w->s->is_json && list->json ? list->json : list->name;
        if ((n == 0 && (list->rules & FACT_IF_ANY)) ||
            (w->s->is_plan && (list->rules & FACT_NOT_IN_PLAN)))
            continue;
        put_items(w, name, list->item, list->of, fact_pointer_at(base, list->items), n);
    }
}

void ot_facts_put_fields(const ot_facts *f, const fact_struct *of, const void *base, fact_sink *s)
{
    put_fields(&(walk){f, s}, of, base);
}

void ot_facts_put_struct(const ot_facts *f, const fact_struct *of, const void *base, fact_sink *s)
{
    put_struct(&(walk){f, s}, of, base);
}

void ot_facts_put(const ot_facts *f, fact_sink *s)
{
    walk w = {f, s};
    s->open(s, "report");
    s->text(s, "version", FACTS_FORMAT);
    put_struct(&w, &FACTS_REPORT, f);
    if (f->bench) {
        s->open(s, "bench");
        put_struct(&w, &FACTS_BENCH_HEAD, f->bench);
        put_items(&w, "sides", "side", &FACTS_BENCH_SIDE, f->bench->side, 2);
        s->close(s);
    }
    s->close(s);
}
