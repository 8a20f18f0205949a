/* Packing problems as CSV, the format of minimalloc, and plans written back into it.
 *
 *   id,lower,upper,size,alignment,gaps,hint,offset     columns in any order, the last four optional
 *   b1,0,9,4096,64,3-5 7-8,0,                           alive in [0,9) but for [3,5) and [7,8)
 *   "b,2",2,9,100,,,,512                                fixed at 512
 *
 *   column     also called            cell
 *   id         buffer, buffer_id      any text, once
 *   lower      begin, start           first time
 *   upper      end (last, inclusive)  time after the last; the ends of gaps follow it
 *   alignment                         1 when empty
 *   gaps                              LOWER-UPPER, several separated by spaces; LOWER-UPPER@A:B
 *                                     keeps bytes A..B
 *   hint                              offset to try first; empty or -1: none
 *   offset                            where it must lie; empty or -1: to be planned
 *
 * The reader keeps each line as it was, so that writing repeats it byte for byte and only the
 * offset is new. Files come from strangers: every rule that the planners rely on is checked here
 * and told with its line, and no sum of sizes that they can form overflows.
 */
#include "pack_cells.h"

#include <ctype.h>

#define SUM_MAX  ((int64_t)1 << 61) /* twice that is still no overflow */
#define ROWS_MAX (UINT32_MAX / 2)

typedef enum column { ID, LOWER, UPPER, SIZE, ALIGNMENT, GAPS, HINT, OFFSET, KEPT } column;

static const struct {
    const char *name;
    column kind;
    bool inclusive; /* an upper end that is the last moment, not the one after it */
} COLUMNS[] = {
    {"id", ID, false},
    {"buffer", ID, false},
    {"buffer_id", ID, false},
    {"lower", LOWER, false},
    {"begin", LOWER, false},
    {"start", LOWER, false},
    {"upper", UPPER, false},
    {"end", UPPER, true},
    {"size", SIZE, false},
    {"gaps", GAPS, false},
    {"alignment", ALIGNMENT, false},
    {"hint", HINT, false},
    {"offset", OFFSET, false},
};
#define N_NAMES (sizeof COLUMNS / sizeof *COLUMNS)

/* A line as read, without its end; where its offset cell is (n 0: an empty cell). */
typedef struct row {
    const char *text;
    size_t n;
    size_t offset_at, offset_n;
} row;

typedef struct table {
    row header;
    row *rows;       /* [n] */
    bool has_offset; /* the column is there */
    bool crlf;       /* lines end so */
} table;

typedef struct reader {
    pack_lines in;
    column *kinds; /* [n_columns] */
    size_t n_columns;
    int64_t inclusive; /* 1: upper ends are the last moment */
    ot_map *ids;       /* id -> line */
    int64_t sum;       /* of sizes and alignments so far */
    uint32_t n_windows;
} reader;

/* ---- numbers ---- */

/* Digits only. false when malformed; *out -1 when too large. */
static bool parse_digits(const char *text, size_t n, int64_t *out)
{
    int64_t v = 0;
    if (n == 0) return false;
    for (size_t k = 0; k < n; k++) {
        if (!isdigit((unsigned char)text[k])) return false;
        if (v >= 0 && (!ot_mul_i64(v, 10, &v) || !ot_add_i64(v, text[k] - '0', &v))) v = -1;
    }
    *out = v;
    return true;
}

/* A number of at least `least`; times stay one below the largest, so that an inclusive end can
 * be made exclusive. */
static ot_status parse_number(const reader *r, const char *what, const char *text, int64_t least,
                              int64_t *out)
{
    size_t n = strlen(text);
    if (n == 0) return pack_refuse(&r->in, "%s is empty", what);
    if (*text == '-' && parse_digits(text + 1, n - 1, out))
        return pack_refuse(&r->in, "%s '%.40s' must not be negative", what, text);
    if (!parse_digits(text, n, out))
        return pack_refuse(&r->in, "%s '%.40s' is not a whole number", what, text);
    if (*out < 0 || *out == INT64_MAX)
        return pack_refuse(&r->in, "%s '%.40s' is too large", what, text);
    if (*out < least)
        return pack_refuse(&r->in, "%s must be at least %lld", what, (long long)least);
    return OT_OK;
}

/* Empty and -1 say that there is none. */
static ot_status parse_optional(const reader *r, const char *what, const char *text, int64_t *out)
{
    *out = -1;
    if (!*text || strcmp(text, "-1") == 0) return OT_OK;
    return parse_number(r, what, text, 0, out);
}

/* ---- gaps ---- */

/* "3-5", "3-5@0:16"; *window: it keeps a part of the buffer. */
static ot_status parse_gap(reader *r, const char *word, size_t n, ot_span *out, bool *window)
{
    const char *at = memchr(word, '@', n),
               *colon = at ? memchr(at, ':', n - (size_t)(at - word)) : NULL;
    size_t times = at ? (size_t)(at - word) : n;
    const char *dash = memchr(word, '-', times);
    int64_t from = 0, to = 0;

    *window = at != NULL;
    if (!dash || !parse_digits(word, (size_t)(dash - word), &out->lower) ||
        !parse_digits(dash + 1, times - (size_t)(dash + 1 - word), &out->upper))
        return pack_refuse(&r->in, "gap '%.*s' is not LOWER-UPPER", (int)ot_min((int64_t)n, 60),
                           word);
    if (at &&
        (!colon || !parse_digits(at + 1, (size_t)(colon - at - 1), &from) ||
         !parse_digits(colon + 1, n - (size_t)(colon + 1 - word), &to) || from < 0 || to < from))
        return pack_refuse(&r->in, "gap '%.*s': what it keeps is not @FROM:TO",
                           (int)ot_min((int64_t)n, 60), word);
    if (out->lower < 0 || out->upper < 0 || out->upper == INT64_MAX)
        return pack_refuse(&r->in, "gap '%.*s': a time is too large", (int)ot_min((int64_t)n, 60),
                           word);
    out->upper += r->inclusive;
    if (out->lower >= out->upper)
        return pack_refuse(&r->in, "gap '%.*s' is empty", (int)ot_min((int64_t)n, 60), word);
    return OT_OK;
}

static int by_lower(const void *a, const void *b)
{
    const ot_span *x = a, *y = b;
    return x->lower < y->lower ? -1 : x->lower > y->lower;
}

/* All gaps of one cell, ascending. Those that keep a part are left out: the whole buffer then
 * counts as kept. */
static ot_status parse_gaps(reader *r, const char *text, ot_pack_item *item)
{
    ot_span *gaps = NULL;
    size_t n = 0, cap = 0;

    for (const char *p = text + strspn(text, " \t"); *p; p += strspn(p, " \t")) {
        size_t len = strcspn(p, " \t");
        ot_span gap = {0, 0};
        bool window = false;
        OT_TRY(parse_gap(r, p, len, &gap, &window));
        p += len;
        if (window)
            r->n_windows++;
        else if (!OT_PUSH(r->in.a, gaps, n, cap, gap))
            return ot_fail_nomem(r->in.d);
    }
    if (n > 1) qsort(gaps, n, sizeof *gaps, by_lower);
    for (size_t k = 1; k < n; k++)
        if (gaps[k].lower < gaps[k - 1].upper)
            return pack_refuse(&r->in, "two gaps overlap at time %lld", (long long)gaps[k].lower);
    item->gaps = gaps;
    item->n_gaps = (uint32_t)n;
    return OT_OK;
}

/* ---- header ---- */

static column column_kind(reader *r, const char *name)
{
    for (size_t k = 0; k < N_NAMES; k++) {
        if (strcasecmp(COLUMNS[k].name, name) != 0) continue;
        if (COLUMNS[k].inclusive) r->inclusive = 1;
        return COLUMNS[k].kind;
    }
    return KEPT;
}

/* Every column that is needed is there, none twice. */
static ot_status check_header(const reader *r)
{
    static const char *const names[] = {"id",        "lower", "upper", "size",
                                        "alignment", "gaps",  "hint",  "offset"};
    size_t count[KEPT + 1] = {0};

    for (size_t k = 0; k < r->n_columns; k++) count[r->kinds[k]]++;
    for (size_t k = 0; k < KEPT; k++) {
        if (count[k] > 1) return pack_refuse(&r->in, "two columns mean '%s'", names[k]);
        if (k <= SIZE && count[k] == 0)
            return pack_refuse(
                &r->in, "the header has no column '%s'; it must name id, lower, upper and size",
                names[k]);
    }
    return OT_OK;
}

static bool next_row(pack_lines *in, row *out, bool *crlf)
{
    *out = (row){0};
    return pack_next_line(in, &out->text, &out->n, crlf);
}

static ot_status read_header(reader *r, table *t)
{
    size_t cap = 0;
    bool more = true;

    if (!next_row(&r->in, &t->header, &t->crlf)) {
        r->in.line = 1;
        return pack_refuse(&r->in,
                           "the file is empty; a header like id,lower,upper,size comes first");
    }
    const char *p = t->header.text, *end = p + t->header.n;
    while (more) {
        pack_cell c = {0};
        OT_TRY(pack_next_cell(&r->in, &p, end, &c, &more));
        char *name = pack_cell_text(&r->in, &c);
        if (!name || !OT_PUSH(r->in.a, r->kinds, r->n_columns, cap, column_kind(r, name)))
            return ot_fail_nomem(r->in.d);
        if (r->kinds[r->n_columns - 1] == OFFSET) t->has_offset = true;
    }
    return check_header(r);
}

/* ---- rows ---- */

static ot_status read_id(reader *r, const char *text, const char **out)
{
    if (!*text) return pack_refuse(&r->in, "id is empty");
    uint32_t line = ot_map_get(r->ids, text);
    if (line != OT_NONE) return pack_refuse(&r->in, "id '%.80s' is already on line %u", text, line);
    if (!ot_map_put(r->ids, text, r->in.line)) return ot_fail_nomem(r->in.d);
    *out = text;
    return OT_OK;
}

static ot_status read_cell(reader *r, column kind, const char *text, ot_pack_item *item,
                           const char **name)
{
    switch (kind) {
    case ID: return read_id(r, text, name);
    case LOWER: return parse_number(r, "lower", text, 0, &item->lower);
    case UPPER: return parse_number(r, "upper", text, 0, &item->upper);
    case SIZE: return parse_number(r, "size", text, 0, &item->size);
    case ALIGNMENT: return *text ? parse_number(r, "alignment", text, 1, &item->alignment) : OT_OK;
    case GAPS: return parse_gaps(r, text, item);
    case HINT: return parse_optional(r, "hint", text, &item->hint);
    case OFFSET: return parse_optional(r, "offset", text, &item->fixed);
    case KEPT: break;
    }
    return OT_OK;
}

/* What the cells of a row mean together. */
static ot_status check_item(reader *r, ot_pack_item *item)
{
    int64_t end = 0;
    item->upper += r->inclusive;
    if (item->lower >= item->upper)
        return pack_refuse(&r->in, "the lifetime is empty: upper must be larger than lower%s",
                           r->inclusive ? " (end: not smaller)" : "");
    if (item->n_gaps > 0 &&
        (item->gaps[0].lower < item->lower || item->gaps[item->n_gaps - 1].upper > item->upper))
        return pack_refuse(&r->in, "a gap reaches beyond the lifetime");
    if (item->fixed >= 0 && item->fixed % item->alignment != 0)
        return pack_refuse(&r->in, "offset %lld is not a multiple of the alignment %lld",
                           (long long)item->fixed, (long long)item->alignment);
    if (item->fixed >= 0 && (!ot_add_i64(item->fixed, item->size, &end) || end > SUM_MAX))
        return pack_refuse(&r->in, "offset and size add up to more than 2^61");
    if (!ot_add_i64(r->sum, item->size, &r->sum) ||
        !ot_add_i64(r->sum, item->alignment - 1, &r->sum) || r->sum > SUM_MAX)
        return pack_refuse(&r->in, "sizes and alignments up to here add up to more than 2^61");
    return OT_OK;
}

static ot_status read_row(reader *r, row *line, ot_pack_item *item, const char **name)
{
    pack_row w = {.at = line->text, .end = line->text + line->n, .columns = r->n_columns};
    pack_cell c;
    bool any;

    *item = (ot_pack_item){.alignment = 1, .fixed = -1, .hint = -1};
    for (;;) {
        OT_TRY(pack_row_next(&r->in, &w, &c, &any));
        if (!any) return check_item(r, item);
        const column kind = r->kinds[w.taken - 1];
        if (kind == KEPT) continue;
        char *text = pack_cell_text(&r->in, &c);
        if (!text) return ot_fail_nomem(r->in.d);
        if (kind == OFFSET) {
            line->offset_at = (size_t)(c.at - line->text);
            line->offset_n = c.n;
        }
        OT_TRY(read_cell(r, kind, text, item, name));
    }
}

static ot_status read_rows(reader *r, table *t, ot_pack_file *f)
{
    ot_pack_item *items = NULL;
    size_t n = 0, cap = 0, n_rows = 0, cap_rows = 0, n_names = 0, cap_names = 0;
    row line;

    while (next_row(&r->in, &line, NULL)) {
        ot_pack_item item;
        const char *name = NULL;
        if (n == ROWS_MAX) return pack_refuse(&r->in, "too many rows");
        OT_TRY(read_row(r, &line, &item, &name));
        if (!OT_PUSH(r->in.a, items, n, cap, item) ||
            !OT_PUSH(r->in.a, t->rows, n_rows, cap_rows, line) ||
            !OT_PUSH(r->in.a, f->names, n_names, cap_names, name))
            return ot_fail_nomem(r->in.d);
    }
    f->problem = (ot_pack_problem){items, (uint32_t)n};
    return OT_OK;
}

static ot_status read_all(reader *r, const char *text, size_t n, ot_pack_file *f)
{
    table *t = OT_NEW(r->in.a, table);
    r->ids = ot_map_new(r->in.a);
    if (!t || !r->ids) return ot_fail_nomem(r->in.d);
    OT_TRY(pack_lines_begin(&r->in, text, n));
    OT_TRY(read_header(r, t));
    OT_TRY(read_rows(r, t, f));
    f->table = t;
    f->n_windows = r->n_windows;
    return OT_OK;
}

ot_status ot_pack_read_csv(const char *path, const char *text, size_t n, ot_diag *d,
                           ot_pack_file **out)
{
    ot_arena *a = ot_arena_new();
    ot_pack_file *f = a ? OT_NEW(a, ot_pack_file) : NULL;
    reader r = {.in = {.path = path, .d = d, .a = a}};
    ot_status s = OT_E_NOMEM;

    if (f) {
        f->arena = a;
        s = read_all(&r, text, n, f);
    } else {
        ot_fail_nomem(d);
    }
    if (s != OT_OK) {
        ot_arena_free(a);
        return s;
    }
    *out = f;
    return OT_OK;
}

/* ---- writing ---- */

static void put_row(const table *t, const row *line, const char *value, FILE *out)
{
    size_t behind = line->offset_at + line->offset_n;
    if (t->has_offset) {
        fwrite(line->text, 1, line->offset_at, out);
        fputs(value, out);
        fwrite(line->text + behind, 1, line->n - behind, out);
    } else {
        fwrite(line->text, 1, line->n, out);
        fprintf(out, ",%s", value);
    }
    fputs(t->crlf ? "\r\n" : "\n", out);
}

ot_status ot_pack_write_csv(const ot_pack_file *f, const int64_t *offsets, FILE *out)
{
    const table *t = f->table;

    fwrite(t->header.text, 1, t->header.n, out);
    fprintf(out, "%s%s", t->has_offset ? "" : ",offset", t->crlf ? "\r\n" : "\n");
    for (uint32_t k = 0; k < f->problem.n; k++) {
        char value[24];
        snprintf(value, sizeof value, "%lld", (long long)offsets[k]);
        put_row(t, &t->rows[k], value, out);
    }
    return ferror(out) ? OT_E_SYSTEM : OT_OK;
}

void ot_pack_file_free(ot_pack_file *f)
{
    if (f) ot_arena_free(f->arena);
}
