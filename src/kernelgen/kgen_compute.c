/* Operations: which there are, what they get, what they make. The tables of the other files say how.
 *
 *   b = vector.exp(a)     {  pointers a0, out
 *                            loops { const float x = a0[..]; out[..] = exp(x); }  }
 */
#include "kgen_internal.h"

#include <math.h>

/* ---- what operations ask for ---- */

ot_status kgen_needs(const kgen_call *c, uint32_t least, uint32_t most)
{
    if (c->n_in >= least && c->n_in <= most) return OT_OK;
    return kgen_fail(c->g, "operands", "%s takes %u to %u operands, not %u", c->s->name, least, most, c->n_in);
}

static const char *dims_text(kgen *g, const int64_t *dims, uint32_t rank)
{
    const char *text = rank == 0 ? "1" : "";
    for (uint32_t d = 0; d < rank; d++) text = kgen_text(g, "%s%s%lld", text, d ? "x" : "", (long long)dims[d]);
    return text;
}

ot_status kgen_expect(const kgen_call *c, const int64_t *dims, uint32_t rank)
{
    const kgen_operand *o = c->out;
    uint32_t i = 0, j = 0;
    for (;; i++, j++) {
        while (i < rank && dims[i] == 1) i++;
        while (j < o->rank && o->dims[j] == 1) j++;
        if (i == rank || j == o->rank || dims[i] != o->dims[j]) break;
    }
    if (i == rank && j == o->rank) return OT_OK;
    return kgen_fail(c->g, "shape", "%s makes %s, but '%s' is %s", c->s->name, dims_text(c->g, dims, rank),
                     kgen_value(c->g, o->value)->name, dims_text(c->g, o->dims, o->rank));
}

double kgen_setting(const kgen_call *c, const char *name, double other)
{
    const ot_tk_attr *a = ot_tk_attr_find(c->s, name);
    return a ? a->values[0] : other;
}

ot_status kgen_integers(const kgen_call *c, const char *name, uint32_t n, int64_t other, int64_t least, int64_t *out)
{
    const ot_tk_attr *a = ot_tk_attr_find(c->s, name);
    for (uint32_t k = 0; k < n; k++) {
        double x = !a ? (double)other : a->values[a->n == 1 ? 0 : k < a->n ? k : 0];
        if (a && a->n != 1 && a->n != n) return kgen_fail(c->g, "setting", "%s has %u numbers: 1 or %u are allowed", name, a->n, n);
        if (a && (!(x >= (double)least && x <= 1e9) || x != floor(x)))
            return kgen_fail(c->g, "setting", "%s is an integer from %lld to 1000000000", name, (long long)least);
        out[k] = (int64_t)x;
    }
    return OT_OK;
}

ot_status kgen_integer(const kgen_call *c, const char *name, int64_t other, int64_t *out)
{
    return kgen_integers(c, name, 1, other, -1000000000, out);
}

/* ---- what bodies are made of ---- */

ot_status kgen_begin(const kgen_call *c, kgen_share share)
{
    kgen *g = c->g;
    OT_TRY(kgen_touch(g, c->in, c->n_in, c->out, share));
    kgen_block(g);
    for (uint32_t k = 0; k < c->n_in; k++) kgen_pointer(g, &c->in[k], kgen_text(g, "a%u", k), true, false);
    kgen_pointer(g, c->out, "out", false, false);
    return OT_OK;
}

const char *kgen_in(const kgen_call *c, uint32_t k, const char *lin)
{
    const kgen_operand *o = &c->in[k];
    return kgen_get(c->g, o->dtype, c->c, kgen_text(c->g, "a%u", k), kgen_index(c->g, o, lin));
}

void kgen_out(const kgen_call *c, const char *lin, const char *x)
{
    kgen_line(c->g, "%s", kgen_put(c->g, c->out->dtype, c->c, "out", kgen_index(c->g, c->out, lin), x));
}

/* ---- the operation ---- */

/* Small letters, no underscores. */
static const char *plain_name(const char *name, char buf[64])
{
    size_t n = 0;
    for (; *name && n < 63; name++) {
        if (*name == '_') continue;
        buf[n++] = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
    }
    buf[n] = '\0';
    return buf;
}

static kgen_op find(const char *name)
{
    kgen_op (*const tables[])(const char *) = {kgen_elementwise, kgen_reduction, kgen_product, kgen_window_op, kgen_shaping};
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        kgen_op op = tables[k](name);
        if (op) return op;
    }
    return NULL;
}

/* describe(buffer): the buffer's planned address in its memory; describe(): 0. */
static ot_status describe(kgen *g, const ot_tk_stmt *s, const kgen_operand *in, const kgen_operand *out)
{
    OT_TRY(kgen_touch(g, NULL, 0, out, (kgen_share){0}));
    kgen_open(g, "if (item == 0)");
    kgen_pointer(g, out, "out", false, false);
    const char *at = s->n_in > 0 ? kgen_text(g, "(long)(%lld%s)", (long long)in->constant, in->dynamic) : "0";
    kgen_line(g, "%s", kgen_put(g, out->dtype, KGEN_I64, "out", "0", at));
    kgen_close(g);
    return OT_OK;
}

/* What is read may not be overwritten meanwhile, but element by element. Places that overlap in part are for the interpreter to find. */
static ot_status check_overlap(const kgen_call *c)
{
    for (uint32_t k = 0; k < c->n_in; k++) {
        const kgen_operand *in = &c->in[k], *o = c->out;
        bool same = in->memory == o->memory && in->constant == o->constant && strcmp(in->dynamic, o->dynamic) == 0;
        if (!same || (in->width == o->width && ot_in_place_rule(c->s->name, k, false))) continue;
        return kgen_fail(c->g, "overlap", "'%s' and '%s' share bytes, and %s reads one while it writes the other",
                         kgen_value(c->g, o->value)->name, kgen_value(c->g, in->value)->name, c->s->name);
    }
    return OT_OK;
}

static bool is_descriptor(const kgen *g, const kgen_operand *o) { return kgen_value(g, o->root)->scope == OT_SCOPE_DESCRIPTOR; }

ot_status kgen_compute(kgen *g, const ot_tk_stmt *s)
{
    kgen_operand in[KGEN_OPERANDS_MAX], out;
    char name[64];
    if (s->n_in >= KGEN_OPERANDS_MAX) return kgen_fail(g, "operands", "a device takes at most %d operands", KGEN_OPERANDS_MAX - 1);
    for (uint32_t k = 0; k < s->n_in; k++) OT_TRY(kgen_locate(g, s->in[k], &in[k]));
    OT_TRY(kgen_locate(g, s->out[0], &out));
    if (s->n_out == 1 && is_descriptor(g, &out)) return describe(g, s, in, &out);
    kgen_call c = {.g = g, .s = s, .name = plain_name(s->name, name), .in = in, .n_in = s->n_in, .out = &out};
    kgen_op op = find(c.name);
    if (!op) return kgen_fail(g, "operation", "no device knows the operation '%s'", s->name);
    if (s->n_out != 1) return kgen_fail(g, "operands", "%s makes one value, not %u", s->name, s->n_out);
    for (uint32_t k = s->n_in; k-- > 0;)
        if (is_descriptor(g, &in[k])) c.n_in = k; /* it only tells where the others are */
    c.c = kgen_class_of(g, s);
    g->uses_f64 = g->uses_f64 || c.c == KGEN_F64;
    OT_TRY(check_overlap(&c));
    return op(&c);
}
