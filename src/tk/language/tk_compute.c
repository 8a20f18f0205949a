/* What an operation of a kernel asks for: facts that everyone who computes it needs, an
 * interpreter as well as a generator of programs.
 *
 *   y = vector.Reduce_Sum(x, axis=1)     key "reducesum", setting axis, computed in f32 when x or y
 *                                        is f16
 */
#include "kernel.h"

#include <math.h>
#include <stdarg.h>

ot_status(ot_tk_fail_at)(const ot_tk_site *at, const char *rule, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ot_status s = ot_tk_vfail_at(at, rule, fmt, args);
    va_end(args);
    return s;
}

ot_status ot_tk_vfail_at(const ot_tk_site *at, const char *rule, const char *fmt, va_list args)
{
    char message[700];
    vsnprintf(message, sizeof message, fmt, args);
    return ot_fail(at->d, OT_E_INPUT, "%s:%u:%u: %s [%s]", at->path, at->s->line, at->s->col,
                   message, rule);
}

/* ---- its name and its numbers ---- */

const char *ot_tk_op_key(const char *name, char buf[OT_TK_OP_KEY])
{
    size_t n = 0;
    for (; *name && n < OT_TK_OP_KEY - 1; name++) {
        if (*name == '_') continue;
        buf[n++] = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
    }
    buf[n] = '\0';
    return buf;
}

bool ot_tk_is_float(const char *dtype) { return dtype[0] == 'f' || strcmp(dtype, "bf16") == 0; }

ot_tk_class ot_tk_class_of(const ot_kernel *k, const ot_tk_stmt *s)
{
    bool is_float = false, wide = false, has_i32 = false, has_u32 = false;
    for (uint32_t j = 0; j < s->n_in + s->n_out; j++) {
        const char *t = k->values[j < s->n_in ? s->in[j] : s->out[j - s->n_in]].dtype;
        if (strcmp(t, "f64") == 0) return OT_TK_F64;
        is_float = is_float || ot_tk_is_float(t);
        wide = wide || strcmp(t, "i64") == 0 || strcmp(t, "u64") == 0;
        has_i32 = has_i32 || strcmp(t, "i32") == 0;
        has_u32 = has_u32 || strcmp(t, "u32") == 0;
    }
    if (is_float) return OT_TK_F32;
    if (wide) return OT_TK_I64;
    return has_u32 && !has_i32 ? OT_TK_U32 : OT_TK_I32;
}

/* ---- its settings ---- */

double ot_tk_setting(const ot_tk_stmt *s, const char *name, double other)
{
    const ot_tk_attr *a = ot_tk_attr_find(s, name);
    return a ? a->values[0] : other;
}

ot_status ot_tk_integers(const ot_tk_site *at, const char *name, uint32_t n, int64_t other,
                         int64_t least, int64_t *out)
{
    const ot_tk_attr *a = ot_tk_attr_find(at->s, name);
    for (uint32_t k = 0; k < n; k++) out[k] = other;
    if (!a) return OT_OK;
    if (a->n != n && a->n != 1)
        return ot_tk_fail_at(at, "setting", "%s has %u numbers: 1 or %u are allowed", name, a->n,
                             n);
    for (uint32_t k = 0; k < n; k++) {
        double x = a->values[a->n == 1 ? 0 : k];
        if (!(x >= (double)least && x <= 1e9) || x != floor(x))
            return ot_tk_fail_at(at, "setting", "%s is an integer from %lld to 1000000000", name,
                                 (long long)least);
        out[k] = (int64_t)x;
    }
    return OT_OK;
}

ot_status ot_tk_integer(const ot_tk_site *at, const char *name, int64_t other, int64_t *out)
{
    return ot_tk_integers(at, name, 1, other, -1000000000, out);
}

/* ---- its operands ---- */

ot_status ot_tk_needs(const ot_tk_site *at, uint32_t n_in, uint32_t least, uint32_t most)
{
    if (n_in >= least && n_in <= most) return OT_OK;
    const char *name = at->s->name;
    if (least == most)
        return ot_tk_fail_at(at, "operands", "%s takes %u operand%s, not %u", name, least,
                             least == 1 ? "" : "s", n_in);
    return ot_tk_fail_at(at, "operands", "%s takes %u to %u operands, not %u", name, least, most,
                         n_in);
}

#define DIMS_TEXT 200

/* "2x3x4" into buf; returns it. */
static const char *dims_text(const int64_t *dims, uint32_t rank, char buf[DIMS_TEXT])
{
    size_t n = 0;
    buf[0] = '\0';
    for (uint32_t d = 0; d < rank && d < OT_TK_RANK_MAX; d++)
        n += (size_t)snprintf(buf + n, DIMS_TEXT - n, "%s%lld", d ? "x" : "", (long long)dims[d]);
    return rank == 0 ? "1" : buf;
}

ot_status ot_tk_makes(const ot_tk_site *at, const int64_t *dims, uint32_t rank,
                      const ot_tk_value *x)
{
    char want[DIMS_TEXT], have[DIMS_TEXT];
    uint32_t i = 0, j = 0;
    for (;; i++, j++) {
        while (i < rank && dims[i] == 1) i++;
        while (j < x->rank && x->dims[j] == 1) j++;
        if (i == rank || j == x->rank || dims[i] != x->dims[j]) break;
    }
    if (i == rank && j == x->rank) return OT_OK;
    return ot_tk_fail_at(at, "shape", "%s makes %s, but '%s' is %s", at->s->name,
                         dims_text(dims, rank, want), x->name, dims_text(x->dims, x->rank, have));
}
