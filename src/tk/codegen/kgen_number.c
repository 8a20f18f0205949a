/* Numbers: elements of every type to the class that is computed in, and back.
 *
 *   stored    f16: half    bf16: the upper half of an f32  i8 ... u64  f32, f64  bool: a byte, 0 or
 *                                                                      not
 *   computed  float, double, int, uint, long
 *
 * Back from a class an element is rounded once: floats to nearest even; integers are cut towards
 * zero and saturate, NaN is 0.
 */
#include "kgen_internal.h"

#include <math.h>

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

const char *kgen_class_name(ot_tk_class c)
{
    static const char *const names[] = {"int", "uint", "long", "float", "double"};
    return names[c];
}

const char *kgen_element(const char *dtype, bool raw)
{
    static const char *const by_width[] = {"u8", "u16", "u32", "u64"};
    if (raw) return by_width[(uint32_t)__builtin_ctz(ot_tk_dtype_bits(dtype) / 8)];
    if (is(dtype, "f16")) return "half";
    if (is(dtype, "bf16")) return "u16";
    return is(dtype, "bool") ? "u8" : dtype;
}

const char *kgen_get(kgen *g, const char *dtype, ot_tk_class c, const char *p, const char *index)
{
    const char *name = kgen_class_name(c);
    if (is(dtype, "f16")) {
        g->uses_half = true;
        return c == OT_TK_F32 ? kgen_text(g, "GET_HALF(%s, %s)", p, index)
                              : kgen_text(g, "(%s)GET_HALF(%s, %s)", name, p, index);
    }
    if (is(dtype, "bf16")) {
        const char *x = kgen_text(g, "FLOAT_OF((uint)%s[%s] << 16)", p, index);
        return c == OT_TK_F32 ? x : kgen_text(g, "(%s)%s", name, x);
    }
    if (is(dtype, "bool")) return kgen_text(g, "(%s)(%s[%s] != 0)", name, p, index);
    if (is(dtype, "f32") && c == OT_TK_F32) return kgen_text(g, "%s[%s]", p, index);
    return kgen_text(g, "(%s)%s[%s]", name, p, index);
}

/* ---- integers ---- */

static const struct {
    const char *name;
    const char *least, *most; /* as literals */
    uint32_t bits;
    bool is_signed;
} INTEGERS[KGEN_INTEGERS] = {
    {"i8", "-128", "127", 8, true},
    {"u8", "0", "255", 8, false},
    {"i16", "-32768", "32767", 16, true},
    {"u16", "0", "65535", 16, false},
    {"i32", "(-2147483647 - 1)", "2147483647", 32, true},
    {"u32", "0", "4294967295u", 32, false},
    {"i64", "(-9223372036854775807L - 1)", "9223372036854775807L", 64, true},
    {"u64", "0", "18446744073709551615UL", 64, false},
};

static size_t integer_number(const char *dtype)
{
    size_t k = 0;
    while (k < KGEN_INTEGERS - 1 && !is(INTEGERS[k].name, dtype)) k++;
    return k;
}

/* Does every number of the class fit? */
static bool holds(size_t k, ot_tk_class c)
{
    if (c == OT_TK_I32) return is(INTEGERS[k].name, "i32") || is(INTEGERS[k].name, "i64");
    if (c == OT_TK_U32) return INTEGERS[k].bits == 64 || is(INTEGERS[k].name, "u32");
    return c == OT_TK_I64 && is(INTEGERS[k].name, "i64");
}

static void helper_of_floats(const kgen *g, size_t k, ot_tk_class c, FILE *f)
{
    const char *t = INTEGERS[k].name, *tail = c == OT_TK_F32 ? "f" : "";
    double limit = ldexp(1, (int)INTEGERS[k].bits - INTEGERS[k].is_signed);
    fprintf(f, "%s %s %s_of_%s(%s x)\n{\n    if (x != x) return 0;\n", g->dialect->function, t, t,
            kgen_class_name(c), kgen_class_name(c));
    fprintf(f, "    if (x >= %.1f%s) return %s;\n", limit, tail, INTEGERS[k].most);
    fprintf(f, "    return x <= %.1f%s ? %s : (%s)x;\n}\n", INTEGERS[k].is_signed ? -limit : 0.0,
            tail, INTEGERS[k].least, t);
}

static void helper_of_integers(const kgen *g, size_t k, ot_tk_class c, FILE *f)
{
    const char *t = INTEGERS[k].name, *from = kgen_class_name(c);
    bool low = c != OT_TK_U32,
         high = INTEGERS[k].bits < (c == OT_TK_I64 ? 64 : 32) || (c == OT_TK_U32 && is(t, "i32"));
    if (c == OT_TK_I64 && INTEGERS[k].bits == 32) high = true;
    fprintf(f, "%s %s %s_of_%s(%s x)\n{\n", g->dialect->function, t, t, from, from);
    if (high)
        fprintf(f, "    if (x > (%s)%s) return %s;\n", from, INTEGERS[k].most, INTEGERS[k].most);
    if (low)
        fprintf(f, "    return x < (%s)%s ? (%s)%s : (%s)x;\n}\n", from, INTEGERS[k].least, t,
                INTEGERS[k].least, t);
    else
        fprintf(f, "    return (%s)x;\n}\n", t);
}

void kgen_helpers(kgen *g, FILE *f)
{
    for (size_t k = 0; k < KGEN_INTEGERS; k++)
        for (int c = 0; c < OT_TK_CLASS_COUNT; c++) {
            if (!g->converts[k][c]) continue;
            (c == OT_TK_F32 || c == OT_TK_F64 ? helper_of_floats
                                              : helper_of_integers)(g, k, (ot_tk_class)c, f);
        }
    if (g->uses_bf16_out)
        fprintf(f,
                "%s u16 bf16_of(float x)\n{\n    const uint bits = BITS_OF(x);\n"
                "    if (x != x) return (u16)((bits >> 16 & 0x8000u) | 0x7fc0u);\n"
                "    return (u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);\n}\n",
                g->dialect->function);
    if (g->uses_wrap)
        fprintf(f,
                "%s uint wrapped(double x) /* modulo 2^32; 0 where that is not known */\n{\n"
                "    return fabs(x) < 9.2e18 ? (uint)(ulong)(long)x : 0u;\n}\n"
                "%s double finite_or_0(double x) { return x - x == 0 ? trunc(x) : 0; }\n",
                g->dialect->function, g->dialect->function);
}

const char *kgen_put(kgen *g, const char *dtype, ot_tk_class c, const char *p, const char *index,
                     const char *x)
{
    if (is(dtype, "f16")) {
        g->uses_half = true;
        return kgen_text(g, "PUT_HALF(%s, %s, (float)(%s));", p, index, x);
    }
    if (is(dtype, "bf16")) {
        g->uses_bf16_out = true;
        return kgen_text(g, "%s[%s] = bf16_of((float)(%s));", p, index, x);
    }
    if (is(dtype, "bool")) return kgen_text(g, "%s[%s] = (%s) != 0;", p, index, x);
    if (is(dtype, "f32"))
        return kgen_text(g, c == OT_TK_F32 ? "%s[%s] = %s;" : "%s[%s] = (float)(%s);", p, index, x);
    if (is(dtype, "f64"))
        return kgen_text(g, c == OT_TK_F64 ? "%s[%s] = %s;" : "%s[%s] = (double)(%s);", p, index,
                         x);
    size_t k = integer_number(dtype);
    if (holds(k, c)) return kgen_text(g, "%s[%s] = (%s)(%s);", p, index, INTEGERS[k].name, x);
    g->converts[k][c] = true;
    return kgen_text(g, "%s[%s] = %s_of_%s(%s);", p, index, INTEGERS[k].name, kgen_class_name(c),
                     x);
}

const char *kgen_number(kgen *g, ot_tk_class c, double x)
{
    if (c == OT_TK_F32) x = (double)(float)x;
    if (isinf(x)) return kgen_text(g, "%s(%s)INFINITY", x < 0 ? "-" : "", kgen_class_name(c));
    if (c != OT_TK_F32 && c != OT_TK_F64)
        return kgen_text(g, "(%s)%.0f", kgen_class_name(c), trunc(x));
    const char *text = kgen_text(g, c == OT_TK_F32 ? "%.9g" : "%.17g", x);
    return kgen_text(g, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", c == OT_TK_F32 ? "f" : "");
}

const char *kgen_expand(kgen *g, const char *expr, ot_tk_class c)
{
    static const char *const unsigned_of[] = {"uint", "uint", "ulong", "float", "double"};
    const char *text = "", *at;
    for (; (at = strchr(expr, '$')) != NULL; expr = at + 2)
        text = kgen_text(g, "%s%.*s%s", text, (int)(at - expr), expr,
                         at[1] == 'u' ? unsigned_of[c] : kgen_class_name(c));
    return kgen_text(g, "%s%s", text, expr);
}

const char *kgen_mad(kgen *g, ot_tk_class c, const char *x, const char *y, const char *acc)
{
    if (c == OT_TK_F32 || c == OT_TK_F64) return kgen_text(g, "MAD(%s, %s, %s)", x, y, acc);
    return kgen_expand(g, kgen_text(g, "($c)(($u)%s * ($u)%s + ($u)%s)", x, y, acc), c);
}
