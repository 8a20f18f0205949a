/* The facts, walked along the tables of facts_table.h into a sink: XML and JSON are two sinks of
 * this one walk.
 *
 *   object: values of its fields, then its members and dims, then its lists, items of which are
 *   objects again
 *
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
    if (!isfinite(x) || (field->type == FACT_NUMBER && x < 0)) return NULL;
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
    case FACT_SIGNED: return double_word(field, at, buffer);
    case FACT_I64: memcpy(&wide, at, sizeof wide); return i64_word(wide, buffer);
    case FACT_U32:
    case FACT_INDEX:
    case FACT_REGION: return u32_word(f, field, fact_u32_at(base, field->offset), buffer);
    case FACT_TRUTH: memcpy(&truth, at, sizeof truth); return truth ? "true" : "false";
    case FACT_TEXT:
    case FACT_SOME:
    case FACT_MAYBE:
    case FACT_NAME:
    case FACT_OF_KERNEL: break;
    }
    return NULL;
}

/* The text of a field that is one; NULL: left out. */
static const char *field_text(const ot_facts *f, const fact_field *field, const void *base)
{
    if (field->type == FACT_NAME || field->type == FACT_OF_KERNEL) {
        bool means_nothing = field->type == FACT_OF_KERNEL && (!f->target || !*f->target);
        uint32_t k = fact_u32_at(base, field->offset);
        return means_nothing || k >= field->n_names ? NULL : field->names[k];
    }
    const char *text = fact_text_at(base, field->offset);
    if (field->type == FACT_TEXT) return text ? text : "";
    return text && (*text || field->type == FACT_MAYBE) ? text : NULL;
}

static bool is_text(fact_type type)
{
    return type == FACT_TEXT || type == FACT_SOME || type == FACT_MAYBE || type == FACT_NAME ||
           type == FACT_OF_KERNEL;
}

static void put_fields(const walk *w, const fact_struct *of, const void *base)
{
    char buffer[FACT_WORD_SIZE];
    for (const fact_field *field = of->fields; field->name; field++) {
        bool text = is_text(field->type);
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
    w->s->list(w->s, "members");
    for (uint32_t k = 0; k < n; k++) w->s->node(w->s, i64_word(nodes[k], buffer));
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
        if (n > 0 || !list->is_optional)
            put_items(w, list->name, list->item, list->of, fact_pointer_at(base, list->items), n);
    }
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
