/* Pairs as JSON: a list of objects, or an object that has such a list as `pairs`.
 *
 *   [{"first": "b1", "second": "b2", "weight": 3}, {"first": "b1", "second": "b3"}]
 *
 * Members that mean nothing here are skipped, whatever they hold. Names may be numbers, too. */
#include "pack_pairs.h"

#define DEPTH_MAX 64

typedef struct parser {
    ot_reader r;
    ot_arena *arena;
    pack_pairs *list;
} parser;

OT_PRINTF(2, 3) static ot_status refuse(parser *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const ot_status st = ot_reader_vfail(&s->r, s->r.tok_line, s->r.tok_col, fmt, args);
    va_end(args);
    return st;
}

static bool is_scalar(int c)
{
    return ot_is_letter(c) || ot_is_digit(c) || (c > 0 && strchr("+-.", c));
}

/* The token that begins here: a mark, a string with its quotes, a number or a word. */
static ot_status next(parser *s)
{
    ot_reader *r = &s->r;
    ot_reader_skip(r, "//");
    const int c = ot_peek(r, 0);
    if (c == '"') {
        if (!ot_reader_string(r, true)) return refuse(s, "a string does not end on its line");
    } else if (is_scalar(c)) {
        ot_reader_while(r, is_scalar);
    } else if (c >= 0) {
        r->next++;
    }
    r->len = r->next - r->at;
    return OT_OK;
}

static int mark(const parser *s) { return s->r.len > 0 ? (unsigned char)s->r.text[s->r.at] : -1; }

static ot_status expect(parser *s, char c, const char *what)
{
    return mark(s) == c ? next(s) : ot_reader_expected(&s->r, what);
}

/* UTF-8 of a code point; the bytes' number. */
static size_t encode(uint32_t c, char *to)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t k = n - 1; k > 0; k--, c >>= 6) to[k] = (char)(0x80 | (c & 63));
    to[0] = (char)(lead[n] | c);
    return n;
}

/* Four hexadecimal digits; UINT32_MAX: they are none. */
static uint32_t hex4(const char *p, const char *end)
{
    uint32_t c = 0;
    if (end - p < 4) return UINT32_MAX;
    for (int k = 0; k < 4; k++) {
        const int digit = ot_hex_digit((unsigned char)p[k]);
        if (digit < 0) return UINT32_MAX;
        c = c << 4 | (uint32_t)digit;
    }
    return c;
}

/* The escape behind a backslash at *p, which goes on behind it; 0: it is none. */
static size_t unescape(const char **p, const char *end, char *to)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char *at = memchr(names, **p, sizeof names - 1);
    if (at) {
        *to = means[at - names];
        (*p)++;
        return 1;
    }
    uint32_t c = **p == 'u' ? hex4(*p + 1, end) : UINT32_MAX;
    if (c == UINT32_MAX || c == 0) return 0;
    *p += 5;
    if (c >= 0xd800 && c < 0xdc00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        const uint32_t low = hex4(*p + 2, end);
        if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
            *p += 6;
        }
    }
    return c >= 0xd800 && c < 0xe000 ? 0 : encode(c, to); /* half of a pair */
}

/* The text of the string or number at hand, and on to the next token. */
static ot_status take_text(parser *s, const char *what, char **out)
{
    const char *p = s->r.text + s->r.at, *end = p + s->r.len;
    char *to = *out = ot_strndup(s->arena, p, s->r.len);
    if (!to) return ot_fail_nomem(s->r.d);
    if (mark(s) != '"')
        return is_scalar(mark(s)) && !ot_is_letter(mark(s)) ? next(s)
                                                            : ot_reader_expected(&s->r, what);
    for (p++, end--; p < end;) {
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        p++;
        const size_t n = unescape(&p, end, to);
        if (n == 0) return refuse(s, "an escape in a string that means nothing");
        to += n;
    }
    *to = '\0';
    return next(s);
}

static ot_status skip_value(parser *s, uint32_t depth);

/* Members or items up to the closing mark. */
static ot_status skip_inside(parser *s, char close, uint32_t depth)
{
    const bool is_object = close == '}';
    OT_TRY(next(s));
    while (mark(s) != close) {
        if (is_object) {
            if (mark(s) != '"') return ot_reader_expected(&s->r, "a name in quotes");
            OT_TRY(next(s));
            OT_TRY(expect(s, ':', "':'"));
        }
        OT_TRY(skip_value(s, depth + 1));
        if (mark(s) != close) OT_TRY(expect(s, ',', is_object ? "',' or '}'" : "',' or ']'"));
    }
    return next(s);
}

static ot_status skip_value(parser *s, uint32_t depth)
{
    if (depth > DEPTH_MAX)
        return refuse(s, "more than %d lists and objects in each other", DEPTH_MAX);
    if (mark(s) == '{') return skip_inside(s, '}', depth);
    if (mark(s) == '[') return skip_inside(s, ']', depth);
    if (mark(s) != '"' && !is_scalar(mark(s))) return ot_reader_expected(&s->r, "a value");
    return next(s);
}

static ot_status take_weight(parser *s, int64_t *out)
{
    const char *text = s->r.text + s->r.at;
    for (size_t k = 0; k < s->r.len; k++)
        if (!ot_is_digit((unsigned char)text[k]))
            return ot_reader_expected(&s->r, "a weight, a whole number of at least 0");
    if (!ot_digits_value(text, s->r.len, out))
        return ot_reader_expected(&s->r, "a weight, a whole number below 2^63");
    return next(s);
}

static ot_status read_pair(parser *s)
{
    const uint32_t line = s->r.tok_line, col = s->r.tok_col;
    char *first = NULL, *second = NULL, *key;
    const char *word;
    int64_t weight = 1;
    OT_TRY(expect(s, '{', "a pair: '{'"));
    while (mark(s) != '}') {
        if (mark(s) != '"') return ot_reader_expected(&s->r, "a name in quotes");
        OT_TRY(take_text(s, "a name", &key));
        OT_TRY(expect(s, ':', "':'"));
        if (strcmp(key, "first") == 0)
            OT_TRY(take_text(s, "a buffer's name", &first));
        else if (strcmp(key, "second") == 0)
            OT_TRY(take_text(s, "a buffer's name", &second));
        else if (strcmp(key, "weight") == 0 || strcmp(key, "cost") == 0)
            OT_TRY(take_weight(s, &weight));
        else
            OT_TRY(skip_value(s, 0));
        if (mark(s) != '}') OT_TRY(expect(s, ',', "',' or '}'"));
    }
    s->r.tok_line = line;
    s->r.tok_col = col;
    if (!first || !second) return refuse(s, "the pair has no '%s'", first ? "second" : "first");
    const char *wrong = pack_pairs_add(s->list, first, second, weight, &word);
    if (wrong && *word) return refuse(s, "%s '%.80s'", wrong, word);
    return wrong ? refuse(s, "%s", wrong) : next(s);
}

static ot_status read_list(parser *s)
{
    OT_TRY(expect(s, '[', "a list of pairs: '['"));
    while (mark(s) != ']') {
        OT_TRY(read_pair(s));
        if (mark(s) != ']') OT_TRY(expect(s, ',', "',' or ']'"));
    }
    return next(s);
}

static ot_status read_object(parser *s)
{
    bool found = false;
    char *key;
    OT_TRY(next(s));
    while (mark(s) != '}') {
        if (mark(s) != '"') return ot_reader_expected(&s->r, "a name in quotes");
        OT_TRY(take_text(s, "a name", &key));
        OT_TRY(expect(s, ':', "':'"));
        const bool pairs = strcmp(key, "pairs") == 0;
        if (pairs && found) return refuse(s, "two members are called 'pairs'");
        OT_TRY(pairs ? read_list(s) : skip_value(s, 0));
        found |= pairs;
        if (mark(s) != '}') OT_TRY(expect(s, ',', "',' or '}'"));
    }
    return found ? next(s) : refuse(s, "the object has no list 'pairs'");
}

ot_status pack_pairs_json(pack_pairs *list, const char *path, const char *text, size_t n)
{
    const size_t mark_bytes = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    parser s = {.r = ot_reader_of(path, text + mark_bytes, n - mark_bytes, list->d),
                .arena = list->file->arena,
                .list = list};
    OT_TRY(next(&s));
    OT_TRY(mark(&s) == '{' ? read_object(&s) : read_list(&s));
    return mark(&s) < 0 && s.r.next == s.r.n ? OT_OK
                                             : ot_reader_expected(&s.r, "the end of the text");
}
