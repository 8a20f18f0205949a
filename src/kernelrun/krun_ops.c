/* Operations: which there are, what they get, what comes out.
 *
 *   bytes of the inputs --> doubles --> the operation, in its class --> rounded once to the output's type --> bytes
 *
 *   class   f64 with an operand in f64, f32 with an operand in another float (f16 and bf16 are summed in f32),
 *           64-bit integers with an operand in them, else 32-bit integers (i8 products are summed in i32)
 */
#include "krun_internal.h"

#include <math.h>

/* ---- what operations ask for ---- */

ot_status krun_needs(const krun_call *c, uint32_t least, uint32_t most)
{
    if (c->n_in >= least && c->n_in <= most) return OT_OK;
    if (least == most)
        return krun_fail(c->m, "operands", "%s takes %u operand%s, not %u", c->s->name, least, least == 1 ? "" : "s", c->n_in);
    return krun_fail(c->m, "operands", "%s takes %u to %u operands, not %u", c->s->name, least, most, c->n_in);
}

static const char *dims_text(const int64_t *dims, uint32_t rank, char buf[200])
{
    size_t n = 0;
    buf[0] = '\0';
    for (uint32_t d = 0; d < rank && d < OT_TK_RANK_MAX; d++)
        n += (size_t)snprintf(buf + n, 200 - n, "%s%lld", d ? "x" : "", (long long)dims[d]);
    return rank == 0 ? "1" : buf;
}

ot_status krun_expect(const krun_call *c, const int64_t *dims, uint32_t rank)
{
    char want[200], have[200];
    const krun_tensor *o = c->out;
    uint32_t i = 0, j = 0;
    for (;; i++, j++) {
        while (i < rank && dims[i] == 1) i++;
        while (j < o->rank && o->dims[j] == 1) j++;
        if (i == rank || j == o->rank || dims[i] != o->dims[j]) break;
    }
    if (i == rank && j == o->rank) return OT_OK;
    return krun_fail(c->m, "shape", "%s makes %s, but '%s' is %s", c->s->name, dims_text(dims, rank, want), o->x->name,
                     dims_text(o->dims, o->rank, have));
}

double krun_setting(const krun_call *c, const char *name, double other)
{
    const ot_tk_attr *a = ot_tk_attr_find(c->s, name);
    return a ? a->values[0] : other;
}

ot_status krun_integers(const krun_call *c, const char *name, uint32_t n, int64_t other, int64_t least, int64_t *out)
{
    const ot_tk_attr *a = ot_tk_attr_find(c->s, name);
    for (uint32_t k = 0; k < n; k++) out[k] = other;
    if (!a) return OT_OK;
    if (a->n != n && a->n != 1) return krun_fail(c->m, "setting", "%s has %u numbers: 1 or %u are allowed", name, a->n, n);
    for (uint32_t k = 0; k < n; k++) {
        double x = a->values[a->n == 1 ? 0 : k];
        if (!(x >= (double)least && x <= 1e9) || x != floor(x))
            return krun_fail(c->m, "setting", "%s is an integer from %lld to 1000000000", name, (long long)least);
        out[k] = (int64_t)x;
    }
    return OT_OK;
}

ot_status krun_integer(const krun_call *c, const char *name, int64_t other, int64_t *out)
{
    return krun_integers(c, name, 1, other, -1000000000, out);
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

static krun_op find(const char *name)
{
    krun_op (*const tables[])(const char *) = {krun_elementwise, krun_reduction, krun_product, krun_shaping};
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        krun_op op = tables[k](name);
        if (op) return op;
    }
    return NULL;
}

static krun_class class_of(const krun *m, const ot_tk_stmt *s)
{
    bool is_float = false, wide = false, half = false, is_unsigned = false;
    for (uint32_t k = 0; k < s->n_in + s->n_out; k++) {
        const char *t = krun_value(m, k < s->n_in ? s->in[k] : s->out[k - s->n_in])->dtype;
        if (strcmp(t, "f64") == 0) return KRUN_F64;
        is_float = is_float || (krun_is_float(t) && strcmp(t, "bool") != 0);
        wide = wide || strcmp(t, "i64") == 0 || strcmp(t, "u64") == 0;
        half = half || strcmp(t, "i32") == 0;
        is_unsigned = is_unsigned || strcmp(t, "u32") == 0;
    }
    return is_float ? KRUN_F32 : wide ? KRUN_I64 : is_unsigned && !half ? KRUN_U32 : KRUN_I32;
}

static bool room(krun *m, krun_tensor *t)
{
    while ((int64_t)t->cap < t->n)
        if (!ot_grow(m->a, (void **)&t->v, &t->cap, (size_t)t->n, sizeof *t->v)) return false;
    return true;
}

static ot_status shape(krun *m, uint32_t v, krun_tensor *t)
{
    t->x = krun_value(m, v);
    t->rank = t->x->rank;
    memcpy(t->dims, t->x->dims, sizeof t->dims);
    if (!ot_product(t->dims, t->rank, &t->n) || !room(m, t)) return ot_fail_nomem(m->d);
    return OT_OK;
}

static ot_status read_input(krun *m, const krun_operand *o, krun_tensor *t)
{
    OT_TRY(shape(m, o->value, t));
    uint32_t width = ot_tk_dtype_bits(t->x->dtype) / 8;
    if (!krun_room(m, &m->bytes, &m->cap_bytes, t->x->bytes)) return ot_fail_nomem(m->d);
    OT_TRY(krun_read(m, o, m->bytes));
    for (int64_t i = 0; i < t->n; i++) t->v[i] = krun_decode(t->x->dtype, m->bytes + i * width);
    return OT_OK;
}

static ot_status write_output(const krun_call *c, const krun_operand *o)
{
    krun *m = c->m;
    const krun_tensor *t = c->out;
    uint32_t width = ot_tk_dtype_bits(t->x->dtype) / 8;
    if (!krun_room(m, &m->bytes, &m->cap_bytes, t->x->bytes)) return ot_fail_nomem(m->d);
    for (int64_t i = 0; i < t->n; i++) krun_encode(t->x->dtype, krun_round(c->c, t->v[i]), m->bytes + i * width);
    return krun_write(m, o, m->bytes);
}

/* An operation reads while it writes: what it may not overwrite lies elsewhere. */
static ot_status check_overlap(krun *m, const ot_tk_stmt *s)
{
    for (uint32_t j = 0; j < s->n_in; j++) {
        const krun_operand *in = &m->in[j], *out = &m->out[0];
        if (!krun_overlap(in, out)) continue;
        if (krun_same_place(in, out) && ot_in_place_rule(s->name, j, m->request->restricted)) continue;
        return krun_fail(m, "overlap", "'%s' and '%s' share bytes, and %s reads one while it writes the other",
                         krun_value(m, out->value)->name, krun_value(m, in->value)->name, s->name);
    }
    return OT_OK;
}

/* describe(buffer): the buffer's planned address, whatever is there; describe(): 0. */
static ot_status describe(krun *m, const ot_tk_stmt *s)
{
    uint8_t bytes[8] = {0};
    if (s->n_in > 0) krun_encode(krun_value(m, s->out[0])->dtype, (double)m->in[0].spans.at[0].at, bytes);
    return krun_write(m, &m->out[0], bytes);
}

ot_status krun_compute(krun *m, const ot_tk_stmt *s)
{
    char name[64];
    krun_call c = {.m = m, .s = s, .in = m->tin, .n_in = s->n_in, .out = &m->tout, .c = class_of(m, s)};
    c.name = plain_name(s->name, name);
    if (s->n_out == 1 && krun_value(m, m->out[0].root)->scope == OT_SCOPE_DESCRIPTOR) return describe(m, s);
    krun_op op = find(c.name);
    if (!op) return krun_fail(m, "operation", "run-kernel does not know the operation '%s'", s->name);
    if (s->n_out != 1) return krun_fail(m, "operands", "%s makes one value, not %u", s->name, s->n_out);
    OT_TRY(check_overlap(m, s));
    for (uint32_t j = 0; j < s->n_in; j++) {
        OT_TRY(read_input(m, &m->in[j], &m->tin[j]));
        if (krun_value(m, m->in[j].root)->scope == OT_SCOPE_DESCRIPTOR)
            c.n_in = j < c.n_in ? j : c.n_in; /* it only tells where the others are */
    }
    OT_TRY(shape(m, s->out[0], &m->tout));
    OT_TRY(op(&c));
    return write_output(&c, &m->out[0]);
}
