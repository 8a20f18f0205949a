/* Cast and CastLike: every pair of the types that rows are made of, floating types of 8 and 4 bits,
 * and integers of 4 and 2 bits.
 *
 *     from \ to    floating            integer                bool
 *     floating     round               cut (ot_rm_to_int)       not zero (NaN is true)
 *     integer      round               keep the low bits      not zero
 *     bool         0, 1                0, 1                   -
 *
 * float16, bfloat16 and smaller types are reached through float32. Integers below a byte are bytes
 * here (engine.h); floating numbers are rounded to them, halves away from zero, as in ONNX Runtime,
 * and keep their low bits too. Strings are not held in memory.
 */
#include "ref_math.h"

#include <math.h>

/* What an integer below a byte is here; other types are themselves. */
static ot_dtype held_as(ot_dtype t)
{
    if (t == OT_I4 || t == OT_I2) return OT_I8;
    return t == OT_U4 || t == OT_U2 ? OT_U8 : t;
}

typedef struct cast_rule {
    bool saturate;
    ot_rm_rounding rounding; /* of float8e8m0 */
} cast_rule;

static void load(const ot_rm_walk *w, double *r)
{
    const ot_rm_operand *o = &w->ops[0];
    if (!ot_rm_is_float8(o->a->dtype)) {
        ot_rm_row_f(w, 0, r);
        return;
    }
    const uint8_t *codes = o->a->data;
    for (int64_t i = 0; i < w->n; i++)
        r[i] = ot_rm_float8_decode(o->a->dtype, codes[o->at + i * o->step]);
}

/* Of n elements of an integer type below a byte, the bits that it has. */
static void keep_low_bits(ot_nd *a, int64_t at, int64_t n)
{
    const uint32_t bits = ot_dtype_bits(a->dtype);
    const int sign = held_as(a->dtype) == OT_I8 ? 1 << (bits - 1) : 0;
    int8_t *v = (int8_t *)a->data + at;
    for (int64_t i = 0; i < n; i++) v[i] = (int8_t)(((v[i] & ((1 << bits) - 1)) ^ sign) - sign);
}

static void store_narrow(ot_nd *to, const ot_rm_walk *w, const double *r)
{
    double whole[REF_ROW];
    ot_nd as = *to;
    as.dtype = held_as(to->dtype);
    for (int64_t i = 0; i < w->n; i++) whole[i] = round(r[i]);
    ot_rm_store_f(&as, w->out, 1, w->n, whole);
    keep_low_bits(to, w->out, w->n);
}

static void store(const cast_rule *rule, ot_nd *to, const ot_rm_walk *w, const double *r)
{
    if (held_as(to->dtype) != to->dtype) {
        store_narrow(to, w, r);
        return;
    }
    if (!ot_rm_is_float8(to->dtype)) {
        ot_rm_store_f(to, w->out, 1, w->n, r);
        return;
    }
    uint8_t *codes = (uint8_t *)to->data + w->out;
    for (int64_t i = 0; i < w->n; i++)
        codes[i] = ot_rm_float8_encode(to->dtype, (double)(float)r[i], rule->saturate,
                                       rule->rounding);
}

static void from_integers(const cast_rule *rule, ot_nd *to, const ot_rm_walk *w)
{
    int64_t r[REF_ROW];
    double f[REF_ROW];
    bool is_u64 = w->ops[0].a->dtype == OT_U64;
    ot_rm_row_i(w, 0, r);
    if (ot_rm_kind(held_as(to->dtype)) & (REF_INT | REF_BOOL)) {
        ot_nd as = *to;
        as.dtype = held_as(to->dtype);
        ot_rm_store_i(&as, w->out, 1, w->n, r);
        if (as.dtype != to->dtype) keep_low_bits(to, w->out, w->n);
        return;
    }
    /* to float32 at once: an int64 may have too many digits for double */
    for (int64_t i = 0; i < w->n; i++) {
        if (to->dtype == OT_F64)
            f[i] = is_u64 ? (double)(uint64_t)r[i] : (double)r[i];
        else
            f[i] = (double)(is_u64 ? (float)(uint64_t)r[i] : (float)r[i]);
    }
    store(rule, to, w, f);
}

/* `to` was a name in version 1: "FLOAT". */
static ot_dtype named_type(const char *name)
{
    static const struct {
        const char *name;
        ot_dtype t;
    } names[] = {{"FLOAT", OT_F32},   {"UINT8", OT_U8},   {"INT8", OT_I8},    {"UINT16", OT_U16},
                 {"INT16", OT_I16},   {"INT32", OT_I32},  {"INT64", OT_I64},  {"BOOL", OT_BOOL},
                 {"FLOAT16", OT_F16}, {"DOUBLE", OT_F64}, {"UINT32", OT_U32}, {"UINT64", OT_U64}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(names[k].name, name) == 0) return names[k].t;
    return OT_DT_UNKNOWN;
}

static ot_status target_type(ot_call *c, ot_dtype *t)
{
    if (ot_rm_op(c) == OT_OP_CastLike) {
        OT_TRY(ot_call_need(c, 2));
        *t = c->in[1]->dtype;
    } else {
        const ot_attr *to = ot_attr_find(c->node, "to");
        if (!to) return ot_call_fail(c, "attribute `to` is missing");
        if (to->kind == OT_ATTR_STRING)
            *t = named_type(to->s);
        else
            *t = to->i > 0 && to->i <= OT_I2 ? (ot_dtype)to->i : OT_DT_UNKNOWN;
    }
    if (ot_rm_kind(held_as(*t)) || ot_rm_is_float8(*t)) return OT_OK;
    return ot_call_fail(c, "cast to element type %s is not supported", ot_dtype_name(*t));
}

static ot_status read_rule(ot_call *c, cast_rule *r)
{
    const char *mode = ot_attr_str(c->node, "round_mode", "up");
    r->saturate = ot_attr_int(c->node, "saturate", 1) != 0;
    if (strcmp(mode, "up") == 0)
        r->rounding = REF_UP;
    else if (strcmp(mode, "down") == 0)
        r->rounding = REF_DOWN;
    else if (strcmp(mode, "nearest") == 0)
        r->rounding = REF_NEAREST;
    else
        return ot_call_fail(c, "round_mode '%s' is none of up, down, nearest", mode);
    return OT_OK;
}

ot_status ot_rm_cast(ot_call *c)
{
    ot_dtype t = OT_DT_UNKNOWN;
    cast_rule rule = {0};
    OT_TRY(ot_call_need(c, 1));
    ot_nd from = *c->in[0];
    const ot_nd *a = &from;
    from.dtype = held_as(from.dtype);
    if (!ot_rm_kind(a->dtype) && !ot_rm_is_float8(a->dtype)) return ot_rm_bad_type(c, 0);
    OT_TRY(target_type(c, &t));
    OT_TRY(read_rule(c, &rule));
    OT_TRY(ot_call_output(c, 0, t, a->rank, a->dims));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    ot_rm_walk w;
    OT_TRY(ot_rm_walk_inputs(&w, c, 0, 1, a->rank, a->dims));
    w.ops[0].a = a;
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w)) {
        if (ot_rm_kind(a->dtype) & (REF_INT | REF_BOOL)) {
            from_integers(&rule, c->out[0], &w);
            continue;
        }
        double r[REF_ROW];
        load(&w, r);
        store(&rule, c->out[0], &w, r);
    }
    return OT_OK;
}
