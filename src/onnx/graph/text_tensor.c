/* Contents of tensors in the .ot text form.
 *
 *   [1.5, -2.0, inf]     up to OT_TEXT_INLINE elements, in memory order whatever the rank
 *   fill 0.5             every element the same
 *   random 7             read only: pseudo-random elements from a seed; `random 7 * 0.1` scales
 *                        floats
 *   data "AACAPw=="      read only: the little-endian bytes in base64
 *   bits 0x0123...       the FNV-1a hash of the bytes: a large tensor whose contents the text does
 *                        not hold.
 *                        Read back, it makes a tensor without data that prints the same line.
 *   stored "w"           the contents of the constant w in the file that the text is in; likewise
 *
 * The generator is splitmix64: state += 0x9e3779b97f4a7c15; z = state; z = (z ^ z >> 30) *
 * 0xbf58476d1ce4e5b9; z = (z ^ z >> 27) * 0x94d049bb133111eb; z ^= z >> 31, with the seed as the
 * first state. A floating-point element is (z >> 40) * 2^-23 - 1, in [-1, 1); an 8-bit integer z
 * >> 56; a wider signed one (z >> 60) - 8, unsigned z >> 60; a bool z >> 63. Types without a
 * literal form here: complex, sub-byte, strings (8-bit floats are written as their codes
 * 0..255).
 */
#include <float.h>
#include <math.h>

#include "text.h"

#include "base/half_float.h"

typedef enum ot_lit { LIT_NONE, LIT_FLOAT, LIT_SIGNED, LIT_UNSIGNED } ot_lit;

/* How elements of a type are written. */
static ot_lit literal_of(ot_dtype t)
{
    switch (t) {
    case OT_F32:
    case OT_F64:
    case OT_F16:
    case OT_BF16: return LIT_FLOAT;
    case OT_I8:
    case OT_I16:
    case OT_I32:
    case OT_I64: return LIT_SIGNED;
    case OT_U8:
    case OT_U16:
    case OT_U32:
    case OT_U64:
    case OT_BOOL:
    case OT_F8E4M3FN:
    case OT_F8E4M3FNUZ:
    case OT_F8E5M2:
    case OT_F8E5M2FNUZ:
    case OT_F8E8M0: return LIT_UNSIGNED;
    default: return LIT_NONE;
    }
}

float ot_text_narrow(double d)
{
    if (!(fabs(d) > (double)FLT_MAX)) return (float)d;
    /* halfway to the next power of two */
    float most = fabs(d) < 0x1.ffffffp127 ? FLT_MAX : INFINITY;
    return d < 0 ? -most : most;
}

/* ---- single elements ---- */

static double load_float(ot_dtype t, const unsigned char *p)
{
    uint16_t half;
    float f;
    double d;
    switch (t) {
    case OT_F32: memcpy(&f, p, sizeof f); return (double)f;
    case OT_F64: memcpy(&d, p, sizeof d); return d;
    case OT_F16: memcpy(&half, p, sizeof half); return (double)ot_f16_to_f32(half);
    default: memcpy(&half, p, sizeof half); return (double)ot_bf16_to_f32(half);
    }
}

static void store_float(ot_dtype t, unsigned char *p, double d)
{
    float f = ot_text_narrow(d);
    uint16_t half = t == OT_F16 ? ot_f64_to_f16(d) : ot_f32_to_bf16(f);
    if (t == OT_F32)
        memcpy(p, &f, sizeof f);
    else if (t == OT_F64)
        memcpy(p, &d, sizeof d);
    else
        memcpy(p, &half, sizeof half);
}

/* Little-endian integer of `size` bytes, sign-extended when asked. */
static uint64_t load_int(const unsigned char *p, size_t size, bool sign)
{
    uint64_t u = 0;
    for (size_t k = 0; k < size; k++) u |= (uint64_t)p[k] << (8 * k);
    unsigned spare = (unsigned)(64 - 8 * size) & 63;
    return sign ? (uint64_t)((int64_t)(u << spare) >> spare) : u;
}

static void store_int(unsigned char *p, size_t size, uint64_t u)
{
    for (size_t k = 0; k < size; k++) p[k] = (unsigned char)(u >> (8 * k));
}

void ot_text_float(FILE *f, double x, int digits)
{
    char buf[40];
    if (isnan(x) || isinf(x)) {
        fputs(isnan(x) ? "nan" : x < 0 ? "-inf" : "inf", f);
        return;
    }
    snprintf(buf, sizeof buf, "%.*g", digits, x);
    fputs(buf, f);
    if (!strpbrk(buf, ".e")) fputs(".0", f);
}

/* ---- printing ---- */

static void print_elem(FILE *f, const ot_tensor *t, size_t size, size_t k)
{
    const unsigned char *p = (const unsigned char *)t->data + k * size;
    ot_lit lit = literal_of(t->dtype);
    if (lit == LIT_FLOAT)
        ot_text_float(f, load_float(t->dtype, p), t->dtype == OT_F64 ? 17 : 9);
    else if (lit == LIT_SIGNED)
        fprintf(f, "%lld", (long long)load_int(p, size, true));
    else
        fprintf(f, "%llu", (unsigned long long)load_int(p, size, false));
}

static uint64_t hash_bytes(const unsigned char *p, size_t n)
{
    uint64_t h = ot_hash_bytes(0, p, n);
    return h ? h : 1; /* 0 means: not known */
}

void ot_text_print_contents(FILE *f, const ot_tensor *t, int64_t most)
{
    int64_t n;
    size_t size = ot_dtype_bits(t->dtype) / 8;
    if (!ot_product(t->dims, t->rank, &n)) return;
    bool literal = literal_of(t->dtype) != LIT_NONE;
    if (n == 0 && literal) {
        fputs(" = []", f);
    } else if (t->stored) {
        fputs(" = stored ", f);
        ot_text_quote(f, t->stored, strlen(t->stored));
    } else if (!t->data) {
        if (t->text_hash) fprintf(f, " = bits 0x%016llx", (unsigned long long)t->text_hash);
    } else if (literal && n <= most) {
        for (size_t k = 0; k < (size_t)n; k++) {
            fputs(k ? ", " : " = [", f);
            print_elem(f, t, size, k);
        }
        fputc(']', f);
    } else if (literal && memcmp(t->data, (const char *)t->data + size, t->bytes - size) == 0) {
        fputs(" = fill ", f); /* equal to itself shifted by one: all elements are equal */
        print_elem(f, t, size, 0);
    } else {
        fprintf(f, " = bits 0x%016llx", (unsigned long long)hash_bytes(t->data, t->bytes));
    }
}

/* ---- reading ---- */

static bool int_fits(const ot_lexer *lx, ot_dtype t, size_t size)
{
    unsigned bits = (unsigned)(8 * size);
    if (t == OT_BOOL) return lx->u <= 1 && !lx->neg;
    if (literal_of(t) == LIT_UNSIGNED)
        return (!lx->neg || lx->u == 0) && (bits == 64 || lx->u >> bits == 0);
    return lx->u <= ((uint64_t)1 << ((bits - 1) & 63)) - (lx->neg ? 0 : 1);
}

/* One literal of the tensor's type at p; advances. */
static ot_status parse_elem(ot_lexer *lx, ot_dtype t, size_t size, unsigned char *p)
{
    if (literal_of(t) == LIT_FLOAT) {
        double d = lx->tok == OT_TOK_FLOAT ? lx->d : (double)lx->u * (lx->neg ? -1.0 : 1.0);
        if (ot_lex_word(lx, "nan"))
            d = (double)NAN;
        else if (ot_lex_word(lx, "inf"))
            d = (double)INFINITY;
        else if (lx->tok != OT_TOK_FLOAT && lx->tok != OT_TOK_INT)
            return ot_lex_fail(lx, "expected a number");
        store_float(t, p, d);
    } else {
        if (lx->tok != OT_TOK_INT) return ot_lex_fail(lx, "expected an integer");
        if (!int_fits(lx, t, size))
            return ot_lex_fail(lx, "the number does not fit %s", ot_dtype_name(t));
        store_int(p, size, lx->neg ? 0 - lx->u : lx->u);
    }
    ot_lex_next(lx);
    return lx->r.status;
}

static ot_status parse_list(ot_lexer *lx, ot_dtype t, size_t size, unsigned char *p, size_t n)
{
    OT_TRY(ot_lex_expect(lx, '['));
    for (size_t k = 0; k < n; k++) {
        if (k && !ot_lex_accept(lx, ','))
            return ot_lex_fail(lx, "the shape needs %zu elements, here are %zu", n, k);
        OT_TRY(parse_elem(lx, t, size, p + k * size));
    }
    if (ot_lex_is(lx, ',')) return ot_lex_fail(lx, "more than the %zu elements of the shape", n);
    return ot_lex_expect(lx, ']');
}

static ot_status parse_fill(ot_lexer *lx, ot_dtype t, size_t size, unsigned char *p, size_t n)
{
    unsigned char one[16];
    OT_TRY(parse_elem(lx, t, size, one));
    for (size_t k = 0; k < n; k++) memcpy(p + k * size, one, size);
    return OT_OK;
}

static ot_status parse_random(ot_lexer *lx, ot_dtype t, size_t size, unsigned char *p, size_t n)
{
    int64_t seed;
    OT_TRY(ot_lex_i64(lx, &seed));
    double scale = 1.0;
    if (ot_lex_accept(lx, '*')) {
        if (literal_of(t) != LIT_FLOAT)
            return ot_lex_fail(lx, "only floating-point contents can be scaled");
        unsigned char raw[8];
        OT_TRY(parse_elem(lx, OT_F64, sizeof scale, raw));
        memcpy(&scale, raw, sizeof scale);
    }
    uint64_t state = (uint64_t)seed;
    ot_lit lit = literal_of(t);
    for (size_t k = 0; k < n; k++) {
        uint64_t z = ot_next_random(&state);
        if (lit == LIT_FLOAT)
            store_float(t, p + k * size, (ldexp((double)(z >> 40), -23) - 1.0) * scale);
        else if (t == OT_BOOL)
            store_int(p + k * size, size, z >> 63);
        else if (size == 1)
            store_int(p + k * size, size, z >> 56);
        else
            store_int(p + k * size, size, (z >> 60) - (lit == LIT_SIGNED ? 8u : 0u));
    }
    return OT_OK;
}

static int base64_value(int c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

static ot_status parse_base64(ot_lexer *lx, unsigned char *p, size_t n)
{
    if (lx->tok != OT_TOK_STRING) return ot_lex_fail(lx, "expected a string in base64");
    size_t len = lx->len, out = 0;
    while (len > 0 && lx->str[len - 1] == '=') len--;
    uint32_t acc = 0, bits = 0;
    for (size_t k = 0; k < len; k++) {
        int v = base64_value((unsigned char)lx->str[k]);
        if (v < 0)
            return ot_lex_fail(lx, "not a base64 character at place %zu of the string", k + 1);
        acc = (acc << 6 | (uint32_t)v) & 0xffffff;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        if (out < n) p[out] = (unsigned char)(acc >> bits);
        out++;
    }
    if (out != n) return ot_lex_fail(lx, "the shape needs %zu bytes, here are %zu", n, out);
    ot_lex_next(lx);
    return lx->r.status;
}

/* bits 0x...: remember the hash, hold nothing. */
static ot_status parse_bits(ot_lexer *lx, ot_tensor *t)
{
    if (lx->tok != OT_TOK_INT || lx->neg || lx->u == 0)
        return ot_lex_fail(lx,
                           "expected the hash of the contents, 0x and up to 16 digits, not zero");
    t->text_hash = lx->u;
    ot_lex_next(lx);
    return lx->r.status;
}

/* stored "name": remember the name, hold nothing. */
static ot_status parse_stored(ot_lexer *lx, ot_tensor *t)
{
    if (lx->tok != OT_TOK_STRING || memchr(lx->str, 0, lx->len))
        return ot_lex_fail(lx, "expected the name of a constant, in quotes");
    t->stored = lx->str;
    ot_lex_next(lx);
    return lx->r.status;
}

ot_status ot_text_parse_contents(ot_lexer *lx, ot_tensor *t, int64_t *budget)
{
    int64_t n, bytes;
    size_t size = ot_dtype_bits(t->dtype) / 8;
    if (!ot_product(t->dims, t->rank, &n) || !ot_mul_i64(n, (int64_t)size, &bytes))
        return ot_lex_fail(lx, "tensor too large");
    if (ot_lex_accept_word(lx, "bits")) return parse_bits(lx, t);
    if (ot_lex_accept_word(lx, "stored")) return parse_stored(lx, t);
    bool literal = literal_of(t->dtype) != LIT_NONE;
    if (!literal)
        return ot_lex_fail(lx, "contents of type %s cannot be written here",
                           ot_dtype_name(t->dtype));
    if (bytes > *budget)
        return ot_lex_fail(lx, "the file's tensors need more than %d bytes", OT_TEXT_DATA_MAX);
    *budget -= bytes;
    unsigned char *p = ot_alloc(lx->arena, t->bytes);
    if (!p) return ot_fail_nomem(lx->r.d);
    t->data = p;
    if (ot_lex_is(lx, '[')) return parse_list(lx, t->dtype, size, p, (size_t)n);
    if (ot_lex_accept_word(lx, "fill")) return parse_fill(lx, t->dtype, size, p, (size_t)n);
    if (ot_lex_accept_word(lx, "random")) return parse_random(lx, t->dtype, size, p, (size_t)n);
    if (ot_lex_accept_word(lx, "data")) return parse_base64(lx, p, t->bytes);
    return ot_lex_fail(lx, "expected [elements], fill, random, data, bits or stored");
}
