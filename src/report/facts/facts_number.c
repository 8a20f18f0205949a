/* Numbers and texts as all writers of reports print them, so that the page and its machine twins
 * cannot differ.
 *
 *   0.1 + 0.2   "0.3"              nine digits that count: predictions have no more to say
 *   4816896     "4816896"          whole numbers below 2^53 to the last digit: sizes and counts
 *   -0.0        "0"
 *   "a\x01\xff" "a" U+FFFD U+FFFD
 */
#include "facts_number.h"

#include <math.h>

#define WHOLE_MAX 9007199254740992.0 /* 2^53 */

const char *ot_fact_digits(double x, int digits, char buffer[FACT_NUMBER_SIZE])
{
    if (x == 0) x = 0; /* no minus */
    bool whole = fabs(x) < WHOLE_MAX && x == floor(x);
    if (whole)
        snprintf(buffer, FACT_NUMBER_SIZE, "%.0f", x);
    else
        snprintf(buffer, FACT_NUMBER_SIZE, "%.*g", digits, x);

    char *out = buffer; /* what a locale has for the point, one byte or more, becomes one */
    for (const char *p = buffer; *p; p++) {
        bool known = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || *p == '-' || *p == '+';
        if (known)
            *out++ = *p;
        else if (out == buffer || out[-1] != '.')
            *out++ = '.';
    }
    *out = '\0';
    return buffer;
}

const char *ot_fact_number(double x, char buffer[FACT_NUMBER_SIZE])
{
    return ot_fact_digits(x, 9, buffer);
}

/* Length of the UTF-8 sequence at s when XML 1.0 has its character, else 0. Stops at the
 * terminating zero. */
static size_t xml_length(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (s[0] < 0x80) return s[0] >= 0x20 || s[0] == '\t' || s[0] == '\n' || s[0] == '\r';
    size_t n = (s[0] & 0xe0) == 0xc0   ? 2
               : (s[0] & 0xf0) == 0xe0 ? 3
               : (s[0] & 0xf8) == 0xf0 ? 4
                                       : 0;
    if (n == 0) return 0;
    uint32_t code = s[0] & (0x7fu >> n);
    for (size_t k = 1; k < n; k++) {
        if ((s[k] & 0xc0) != 0x80) return 0;
        code = code << 6 | (s[k] & 0x3fu);
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff, mark = code == 0xfffe || code == 0xffff;
    return code >= least[n] && code <= 0x10ffff && !surrogate && !mark ? n : 0;
}

char *ot_fact_clean(ot_arena *a, const char *text)
{
    char *clean = ot_alloc_n(a, strlen(text) + 1, 3);
    if (!clean) return NULL;
    char *out = clean;
    for (const char *s = text; *s;) {
        size_t n = xml_length((const unsigned char *)s);
        memcpy(out, n ? s : "\xef\xbf\xbd", n ? n : 3);
        out += n ? n : 3;
        s += n ? n : 1;
    }
    return clean;
}

const char *ot_fact_short(const char *text, size_t width, char *out)
{
    size_t n = strlen(text), keep = n <= width ? n : (width - 2) / 2, used = 0;
    for (size_t k = 0; k < n; k++) {
        if (n > width && k == keep) {
            out[used++] = '.';
            out[used++] = '.';
            k = n - keep;
        }
        unsigned char c = (unsigned char)text[k];
        out[used++] = (char)(c < 0x20 || c >= 0x7f ? '?' : c);
    }
    out[used] = '\0';
    return out;
}

const char *ot_fact_capital(ot_arena *a, const char *text)
{
    char *copy = ot_strdup(a, text);
    if (copy && *copy >= 'a' && *copy <= 'z') *copy = (char)(*copy - 'a' + 'A');
    return copy;
}
