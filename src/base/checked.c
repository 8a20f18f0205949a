/* Checked arithmetic, and sizes and times as people write them.
 *
 * Every number that comes from a file goes through these before it becomes an allocation or
 * an index; a false return is an overflow, never a wrapped value.
 */
#include "base.h"

bool ot_add_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }

bool ot_mul_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }

bool ot_product(const int64_t *dims, size_t n, int64_t *out)
{
    /* A zero anywhere makes the product zero, whatever the others would overflow to. */
    bool zero = false;
    for (size_t k = 0; k < n; k++) {
        if (dims[k] < 0) return false;
        zero = zero || dims[k] == 0;
    }
    int64_t product = zero ? 0 : 1;
    for (size_t k = 0; k < n && !zero; k++)
        if (!ot_mul_i64(product, dims[k], &product)) return false;
    *out = product;
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Multiplier of the suffix at s ("", "B", "K", "KB", "KiB", ...), or 0 when malformed. */
static int64_t unit_of(const char *s)
{
    int64_t unit = 1;
    switch (*s) {
    case 'k':
    case 'K':
        unit = (int64_t)1 << 10;
        s++;
        break;
    case 'm':
    case 'M':
        unit = (int64_t)1 << 20;
        s++;
        break;
    case 'g':
    case 'G':
        unit = (int64_t)1 << 30;
        s++;
        break;
    case 't':
    case 'T':
        unit = (int64_t)1 << 40;
        s++;
        break;
    default: break;
    }
    if (unit > 1 && *s == 'i') {
        if (s[1] != 'B' && s[1] != 'b') return 0;
        s++;
    }
    if (*s == 'B' || *s == 'b') s++;
    return *s ? 0 : unit;
}

bool ot_parse_size(const char *text, int64_t *bytes)
{
    const char *s = text;
    int64_t whole = 0, fraction = 0, scale = 1;
    if (!is_digit(*s)) return false;
    for (; is_digit(*s); s++)
        if (!ot_mul_i64(whole, 10, &whole) || !ot_add_i64(whole, *s - '0', &whole)) return false;
    bool has_point = *s == '.';
    if (has_point) {
        s++;
        if (!is_digit(*s)) return false;
        for (; is_digit(*s); s++) {
            if (scale >= 100000) continue; /* further digits are below one byte in a KiB..GiB */
            fraction = fraction * 10 + (*s - '0');
            scale *= 10;
        }
    }
    int64_t unit = unit_of(s);
    if (unit == 0 || (has_point && unit == 1)) return false;
    int64_t out;
    if (!ot_mul_i64(whole, unit, &out)) return false;
    return ot_add_i64(out, fraction * unit / scale, bytes); /* < 1e5 * 2^40: fits */
}

char *ot_format_bytes(double bytes, char *buf, size_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t k = 0;
    double size = bytes < 0 ? -bytes : bytes;
    while (size >= 1024 && k + 1 < sizeof units / sizeof *units) {
        size /= 1024;
        k++;
    }
    int digits = k > 0 && size < 99.95 ? 1 : 0;
    snprintf(buf, n, "%s%.*f %s", bytes < 0 ? "-" : "", digits, size, units[k]);
    return buf;
}

char *ot_format_exact_bytes(int64_t bytes, char *buf, size_t n)
{
    char shown[32];
    ot_format_bytes((double)bytes, shown, sizeof shown);
    if (bytes > -1024 && bytes < 1024)
        snprintf(buf, n, "%s", shown);
    else
        snprintf(buf, n, "%s (%lld bytes)", shown, (long long)bytes);
    return buf;
}

char *ot_format_limit(int64_t bytes, char *buf, size_t n)
{
    int64_t unit = 1;
    while (unit < INT64_C(1) << 50 && bytes / unit >= 1024) unit *= 1024;
    if (bytes % unit != 0) return ot_format_exact_bytes(bytes, buf, n);
    return ot_format_bytes((double)bytes, buf, n);
}

char *ot_format_excess(int64_t required, int64_t available, char *buf, size_t n)
{
    char needs[64], has[64], over[32];
    snprintf(buf, n, "required %s, available %s, excess %s",
             ot_format_exact_bytes(required, needs, sizeof needs),
             ot_format_limit(available, has, sizeof has),
             ot_format_bytes((double)required - (double)available, over, sizeof over));
    return buf;
}

char *ot_format_seconds(double s, char *buf, size_t n)
{
    static const char *const units[] = {"s", "ms", "us", "ns"};
    size_t k = 0;
    double t = s < 0 ? -s : s;
    while (t > 0 && t < 0.9995 && k < 3) {
        t *= 1000;
        k++;
    }
    int digits = t < 9.995 ? 2 : t < 99.95 ? 1 : 0;
    snprintf(buf, n, "%s%.*f %s", s < 0 ? "-" : "", digits, t, units[k]);
    return buf;
}
