/* Strings and numbers of JSON, valid whatever they hold.
 *
 * Names come from strangers' files: quotes, control characters and broken UTF-8 are escaped or
 * replaced (U+FFFD), and numbers that JSON has no word for (NaN, infinity) become 0.
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
