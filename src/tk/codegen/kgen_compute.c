/* Operations: which there are, what they get, what they make. The tables of the other files say
 * how.
 *
 *   b = vector.exp(a)     {  pointers a0, out
 *                            loops { const float x = a0[..]; out[..] = exp(x); }  }
 */
#include "kgen_internal.h"

/* ---- what bodies are made of ---- */

ot_status kgen_begin(const kgen_call *c, kgen_share share)
{
    kgen *g = c->g;
    OT_TRY(kgen_touch(g, c->in, c->n_in, c->out, share));
    kgen_block(g);
    for (uint32_t k = 0; k < c->n_in; k++)
        kgen_pointer(g, &c->in[k], kgen_text(g, "a%u", k), true, false);
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
    kgen_line(c->g, "%s",
              kgen_put(c->g, c->out->dtype, c->c, "out", kgen_index(c->g, c->out, lin), x));
}

/* ---- the operation ---- */

static kgen_op find(const char *name)
{
    kgen_op (*const tables[])(const char *) = {kgen_elementwise, kgen_reduction, kgen_product,
                                               kgen_window_op, kgen_shaping};
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        kgen_op op = tables[k](name);
        if (op) return op;
    }
    return NULL;
}

/* describe(buffer): the buffer's planned address in its memory; describe(): 0. */
static ot_status describe(kgen *g, const ot_tk_stmt *s, const kgen_operand *in,
                          const kgen_operand *out)
{
    OT_TRY(kgen_touch(g, NULL, 0, out, (kgen_share){0}));
    kgen_open(g, "if (item == 0)");
    kgen_pointer(g, out, "out", false, false);
    const char *at = s->n_in > 0
                         ? kgen_text(g, "(long)(%lld%s)", (long long)in->constant, in->dynamic)
                         : "0";
    kgen_line(g, "%s", kgen_put(g, out->dtype, OT_TK_I64, "out", "0", at));
    kgen_close(g);
    return OT_OK;
}

/* What is read may not be overwritten meanwhile, but element by element. Places that overlap in
 * part are for the interpreter to find. */
static ot_status check_overlap(const kgen_call *c)
{
    for (uint32_t k = 0; k < c->n_in; k++) {
        const kgen_operand *in = &c->in[k], *o = c->out;
        bool same = in->memory == o->memory && in->constant == o->constant &&
                    strcmp(in->dynamic, o->dynamic) == 0;
        if (!same || (in->width == o->width && ot_in_place_rule(c->s->name, k, false))) continue;
        return kgen_fail(c->g, "overlap",
                         "'%s' and '%s' share bytes, and %s reads one while it writes the other",
                         kgen_value(c->g, o->value)->name, kgen_value(c->g, in->value)->name,
                         c->s->name);
    }
    return OT_OK;
}

static bool is_descriptor(const kgen *g, const kgen_operand *o)
{
    return kgen_value(g, o->root)->scope == OT_SCOPE_DESCRIPTOR;
}

ot_status kgen_compute(kgen *g, const ot_tk_stmt *s)
{
    kgen_operand in[KGEN_OPERANDS_MAX], out;
    char key[OT_TK_OP_KEY];
    if (s->n_in >= KGEN_OPERANDS_MAX)
        return kgen_fail(g, "operands", "a device takes at most %d operands",
                         KGEN_OPERANDS_MAX - 1);
    for (uint32_t k = 0; k < s->n_in; k++) OT_TRY(kgen_locate(g, s->in[k], &in[k]));
    OT_TRY(kgen_locate(g, s->out[0], &out));
    if (s->n_out == 1 && is_descriptor(g, &out)) return describe(g, s, in, &out);
    kgen_call c = {.g = g,
                   .s = s,
                   .at = {g->path, s, g->d},
                   .name = ot_tk_op_key(s->name, key),
                   .in = in,
                   .n_in = s->n_in,
                   .out = &out};
    kgen_op op = find(c.name);
    if (!op) return kgen_fail(g, "operation", "no device knows the operation '%s'", s->name);
    if (s->n_out != 1)
        return kgen_fail(g, "operands", "%s makes one value, not %u", s->name, s->n_out);
    for (uint32_t k = s->n_in; k-- > 0;)
        if (is_descriptor(g, &in[k])) c.n_in = k; /* it only tells where the others are */
    c.c = ot_tk_class_of(g->k, s);
    g->uses_f64 = g->uses_f64 || c.c == OT_TK_F64;
    OT_TRY(check_overlap(&c));
    return op(&c);
}
