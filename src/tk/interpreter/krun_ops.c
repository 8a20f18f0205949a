/* Operations: which there are, what they get, what comes out.
 *
 *   bytes of the inputs --> doubles --> the operation, in its class --> rounded once to the
 *   output's type --> bytes
 *
 * The class is ot_tk_class_of's.
 */
#include "krun_internal.h"

static krun_op find(const char *name)
{
    krun_op (*const tables[])(const char *) = {krun_elementwise, krun_reduction, krun_product,
                                               krun_shaping};
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        krun_op op = tables[k](name);
        if (op) return op;
    }
    return NULL;
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
    if (strcmp(t->x->dtype, "f32") == 0) { /* what most kernels have */
        float f;
        for (int64_t i = 0; i < t->n; i++)
            memcpy(&f, m->bytes + 4 * i, sizeof f), t->v[i] = (double)f;
        return OT_OK;
    }
    for (int64_t i = 0; i < t->n; i++) t->v[i] = krun_decode(t->x->dtype, m->bytes + i * width);
    return OT_OK;
}

static ot_status write_output(const krun_call *c, const krun_operand *o)
{
    krun *m = c->m;
    const krun_tensor *t = c->out;
    uint32_t width = ot_tk_dtype_bits(t->x->dtype) / 8;
    if (!krun_room(m, &m->bytes, &m->cap_bytes, t->x->bytes)) return ot_fail_nomem(m->d);
    for (int64_t i = 0; i < t->n; i++)
        krun_encode(t->x->dtype, krun_round(c->c, t->v[i]), m->bytes + i * width);
    return krun_write(m, o, m->bytes);
}

/* An operation reads while it writes: what it may not overwrite lies elsewhere. */
static ot_status check_overlap(krun *m, const ot_tk_stmt *s)
{
    for (uint32_t j = 0; j < s->n_in; j++) {
        const krun_operand *in = &m->in[j], *out = &m->out[0];
        if (!krun_overlap(in, out)) continue;
        if (krun_same_place(in, out) && ot_in_place_rule(s->name, j, m->request->restricted))
            continue;
        return krun_fail(m, "overlap",
                         "'%s' and '%s' share bytes, and %s reads one while it writes the other",
                         krun_value(m, out->value)->name, krun_value(m, in->value)->name, s->name);
    }
    return OT_OK;
}

/* describe(buffer): the buffer's planned address, whatever is there; describe(): 0. */
static ot_status describe(krun *m, const ot_tk_stmt *s)
{
    uint8_t bytes[8] = {0};
    if (s->n_in > 0)
        krun_encode(krun_value(m, s->out[0])->dtype, (double)m->in[0].spans.at[0].at, bytes);
    return krun_write(m, &m->out[0], bytes);
}

ot_status krun_compute(krun *m, const ot_tk_stmt *s)
{
    char key[OT_TK_OP_KEY];
    krun_call c = {.m = m,
                   .s = s,
                   .in = m->tin,
                   .n_in = s->n_in,
                   .out = &m->tout,
                   .c = ot_tk_class_of(m->k, s)};
    c.at = (ot_tk_site){m->path, s, m->d};
    c.name = ot_tk_op_key(s->name, key);
    if (s->n_out == 1 && krun_value(m, m->out[0].root)->scope == OT_SCOPE_DESCRIPTOR)
        return describe(m, s);
    krun_op op = find(c.name);
    if (!op)
        return krun_fail(m, "operation", "run-kernel does not know the operation '%s'", s->name);
    if (s->n_out != 1)
        return krun_fail(m, "operands", "%s makes one value, not %u", s->name, s->n_out);
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
