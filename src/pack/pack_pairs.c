/* Pairs of buffers with a price, for a table that was read: CSV here, JSON by pack_json.c.
 *
 *   first,second,weight        columns in any order; also called a, b; cost, penalty
 *   b1,b2,3                    sharing bytes costs 3
 *   b1,"b,3",                  1 where the cell is empty or the column is not there
 */
#include "pack_pairs.h"

typedef enum column { FIRST, SECOND, WEIGHT, KEPT } column;

static const struct {
    const char *name;
    column kind;
} COLUMNS[] = {{"first", FIRST},   {"a", FIRST},     {"second", SECOND}, {"b", SECOND},
               {"weight", WEIGHT}, {"cost", WEIGHT}, {"penalty", WEIGHT}};

/* ---- a list of pairs, whatever it is read from ---- */

ot_status pack_pairs_begin(pack_pairs *s)
{
    const ot_pack_file *f = s->file;
    s->rows = ot_map_new(f->arena);
    if (!s->rows) return ot_fail_nomem(s->d);
    for (uint32_t k = 0; k < f->problem.n; k++)
        if (!ot_map_put(s->rows, f->names[k], k)) return ot_fail_nomem(s->d);
    return OT_OK;
}

const char *pack_pairs_add(pack_pairs *s, const char *first, const char *second, int64_t weight,
                           const char **word)
{
    const ot_pack_pair x = {ot_map_get(s->rows, first), ot_map_get(s->rows, second), weight};
    *word = x.first == OT_NONE ? first : second;
    if (x.first == OT_NONE || x.second == OT_NONE) return "no buffer of the table is called";
    if (x.first == x.second) return "a pair of one buffer:";
    *word = "";
    if (!ot_add_i64(s->sum, weight, &s->sum) || s->sum > OT_PACK_WEIGHT_MAX)
        return "weights up to here add up to more than 2^39";
    if (!OT_PUSH(s->file->arena, s->pairs, s->n, s->cap, x)) s->nomem = true;
    return NULL;
}

void pack_pairs_end(pack_pairs *s)
{
    s->file->pairs = s->pairs;
    s->file->n_pairs = s->n;
}

/* ---- CSV ---- */

typedef struct reader {
    pack_lines in;
    pack_pairs *list;
    column *kinds; /* [n_columns] */
    size_t n_columns;
} reader;

static ot_status read_header(reader *r)
{
    static const char *const names[] = {"first", "second", "weight"};
    size_t count[KEPT + 1] = {0}, cap = 0, n = 0;
    const char *p = "";
    bool more = pack_next_line(&r->in, &p, &n, NULL);
    const char *end = p + n;
    if (!more) {
        r->in.line = 1;
        return pack_refuse(&r->in, "the file is empty; a header like first,second,weight comes "
                                   "first");
    }
    while (more) {
        pack_cell c = {0};
        column kind = KEPT;
        OT_TRY(pack_next_cell(&r->in, &p, end, &c, &more));
        const char *name = pack_cell_text(&r->in, &c);
        for (size_t k = 0; name && k < sizeof COLUMNS / sizeof *COLUMNS; k++)
            if (strcasecmp(COLUMNS[k].name, name) == 0) kind = COLUMNS[k].kind;
        if (!name || !OT_PUSH(r->in.a, r->kinds, r->n_columns, cap, kind))
            return ot_fail_nomem(r->in.d);
        count[kind]++;
    }
    for (size_t k = 0; k < KEPT; k++) {
        if (count[k] > 1) return pack_refuse(&r->in, "two columns mean '%s'", names[k]);
        if (k < WEIGHT && count[k] == 0)
            return pack_refuse(
                &r->in, "the header has no column '%s'; it must name first and second", names[k]);
    }
    return OT_OK;
}

/* A weight as a whole number; empty: 1. */
static ot_status read_weight(const reader *r, const char *text, int64_t *out)
{
    const size_t n = strlen(text);
    *out = 1;
    if (n == 0) return OT_OK;
    if (!ot_digits_value(text, n, out) || strspn(text, "0123456789") != n)
        return pack_refuse(&r->in, "weight '%.40s' is not a whole number of at least 0", text);
    return OT_OK;
}

static ot_status read_row(reader *r, const char *p, const char *end)
{
    pack_row w = {.at = p, .end = end, .columns = r->n_columns};
    const char *names[] = {"", ""}, *word;
    int64_t weight = 1;
    bool any = true;
    while (any) {
        pack_cell c;
        OT_TRY(pack_row_next(&r->in, &w, &c, &any));
        const column kind = any ? r->kinds[w.taken - 1] : KEPT;
        if (kind == KEPT) continue;
        char *text = pack_cell_text(&r->in, &c);
        if (!text) return ot_fail_nomem(r->in.d);
        if (kind == WEIGHT)
            OT_TRY(read_weight(r, text, &weight));
        else
            names[kind] = text;
    }
    const char *wrong = pack_pairs_add(r->list, names[0], names[1], weight, &word);
    if (wrong && *word) return pack_refuse(&r->in, "%s '%.80s'", wrong, word);
    return wrong ? pack_refuse(&r->in, "%s", wrong) : OT_OK;
}

static ot_status read_csv(reader *r, const char *text, size_t n)
{
    const char *p;
    OT_TRY(pack_lines_begin(&r->in, text, n));
    OT_TRY(read_header(r));
    while (pack_next_line(&r->in, &p, &n, NULL)) OT_TRY(read_row(r, p, p + n));
    return OT_OK;
}

/* JSON begins with a bracket or a brace, a header never does. */
static bool is_json(const char *text, size_t n)
{
    size_t k = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (k < n && (text[k] == ' ' || (text[k] >= '\t' && text[k] <= '\r'))) k++;
    return k < n && (text[k] == '[' || text[k] == '{');
}

ot_status ot_pack_read_pairs(ot_pack_file *f, const char *path, const char *text, size_t n,
                             ot_diag *d)
{
    pack_pairs list = {.file = f, .d = d};
    reader r = {.in = {.path = path, .d = d, .a = f->arena}, .list = &list};
    OT_TRY(pack_pairs_begin(&list));
    OT_TRY(is_json(text, n) ? pack_pairs_json(&list, path, text, n) : read_csv(&r, text, n));
    if (list.nomem) return ot_fail_nomem(d);
    pack_pairs_end(&list);
    return OT_OK;
}
