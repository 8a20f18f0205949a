/* JSON, valid whatever names and numbers hold.
 *
 * Names come from strangers' files: quotes, control characters and broken UTF-8 are escaped or
 * replaced (U+FFFD), and numbers that JSON has no word for (NaN, infinity) become null or 0.
 */
#include "json.h"

#include <math.h>

/* Length of the valid UTF-8 sequence at s (at least 2), or 0. */
static size_t utf8_length(const unsigned char *s)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } kinds[] = {{0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t k = 0; k < 3; k++) {
        if ((s[0] & kinds[k].mask) != kinds[k].lead) continue;
        uint32_t code = (uint32_t)(s[0] & (unsigned char)~kinds[k].mask);
        for (size_t j = 1; j <= k + 1; j++) {
            if ((s[j] & 0xc0) != 0x80) return 0;
            code = code << 6 | (s[j] & 0x3fu);
        }
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        return code < kinds[k].least || code > 0x10ffff || surrogate ? 0 : k + 2;
    }
    return 0;
}

void ot_json_string(const char *text, FILE *f)
{
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', f);
    while (*s) {
        size_t n = 1;
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            fprintf(f, "\\u%04x", *s);
        else if (*s < 0x80)
            fputc(*s, f);
        else if ((n = utf8_length(s)) != 0)
            fwrite(s, 1, n, f);
        else {
            fputs("\\ufffd", f);
            n = 1;
        }
        s += n;
    }
    fputc('"', f);
}

void ot_json_number(double v, FILE *f) { fprintf(f, "%.12g", isfinite(v) ? v : 0.0); }

/* ---- objects and lists ---- */

static void put_key(const char *name, FILE *f)
{
    fputc('"', f);
    for (; *name; name++) fputc(*name == '-' ? '_' : *name, f);
    fputs("\": ", f);
}

/* Comma, line and key before a value; items of lists have no key. */
static void begin_value(ot_json *j, const char *key)
{
    if (j->depth == 0) return;
    uint32_t top = j->depth - 1;
    if (j->has_items[top]) fputc(',', j->f);
    if (j->depth <= 2 && (j->depth == 1 || j->is_list[top]))
        fprintf(j->f, "\n%*s", (int)(2 * j->depth), "");
    else if (j->has_items[top])
        fputc(' ', j->f);
    j->has_items[top] = true;
    if (!j->is_list[top]) put_key(key, j->f);
}

static void open_value(ot_json *j, const char *key, bool is_list)
{
    begin_value(j, key);
    if (j->depth >= OT_JSON_DEPTH) OT_BUG("JSON is nested too deep");
    j->is_list[j->depth] = is_list;
    j->has_items[j->depth++] = false;
    fputc(is_list ? '[' : '{', j->f);
}

void ot_json_open(ot_json *j, const char *key) { open_value(j, key, false); }

void ot_json_list(ot_json *j, const char *key) { open_value(j, key, true); }

void ot_json_close(ot_json *j)
{
    if (j->depth == 0) OT_BUG("JSON is closed more often than opened");
    bool is_list = j->is_list[--j->depth];
    if (j->depth == 0) fputc('\n', j->f);
    fputc(is_list ? ']' : '}', j->f);
    if (j->depth == 0) fputc('\n', j->f);
}

void ot_json_put_word(ot_json *j, const char *key, const char *word)
{
    begin_value(j, key);
    fputs(word, j->f);
}

void ot_json_put_null(ot_json *j, const char *key) { ot_json_put_word(j, key, "null"); }

void ot_json_put_truth(ot_json *j, const char *key, bool v)
{
    ot_json_put_word(j, key, v ? "true" : "false");
}

void ot_json_put_text(ot_json *j, const char *key, const char *text)
{
    if (!text) {
        ot_json_put_null(j, key);
        return;
    }
    begin_value(j, key);
    ot_json_string(text, j->f);
}

void ot_json_put_figure(ot_json *j, const char *key, double v)
{
    begin_value(j, key);
    ot_json_number(v, j->f);
}

void ot_json_put_number(ot_json *j, const char *key, double v)
{
    if (isfinite(v))
        ot_json_put_figure(j, key, v);
    else
        ot_json_put_null(j, key);
}

void ot_json_put_int(ot_json *j, const char *key, int64_t v)
{
    begin_value(j, key);
    fprintf(j->f, "%lld", (long long)v);
}
