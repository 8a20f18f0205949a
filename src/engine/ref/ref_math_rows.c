/* Rows and walks: the only code of these implementations that knows element types, strides and
 * broadcasting.
 *
 * A walk merges neighbouring dimensions that every operand runs through without a jump, so
 * operands of equal shape are one long row, and a bias per channel makes one row per channel:
 *
 *     output  [2, 3, 4, 5]      merged [2, 3, 20]     rows of 20
 *     bias    [   3, 1, 1]      steps  [0, 1,  0]
 */
#include "ref_math.h"

#include "base/half_float.h"

/* ---- element types ---- */

unsigned ot_rm_kind(ot_dtype t)
{
    switch ((int)t) {
    case OT_F32:
    case OT_F64:
    case OT_F16:
    case OT_BF16: return REF_FLOAT;
    case OT_I8:
    case OT_I16:
    case OT_I32:
    case OT_I64: return REF_SIGNED;
    case OT_U8:
    case OT_U16:
    case OT_U32:
    case OT_U64: return REF_UNSIGNED;
    case OT_BOOL: return REF_BOOL;
    default: return 0;
    }
}

bool ot_rm_wants(const ot_call *c, uint32_t k) { return k < c->n_out && c->out[k]; }
bool ot_rm_given(const ot_call *c, uint32_t k) { return k < c->n_in && c->in[k]; }
ot_op ot_rm_op(const ot_call *c)
{
    return c->node->op != OT_OP_OPAQUE ? c->node->op : ot_op_find(c->node->op_type);
}

ot_status ot_rm_bad_type(ot_call *c, uint32_t k)
{
    return ot_call_fail(c, "input %u has element type %s, which the operator does not take here", k,
                        ot_dtype_name(c->in[k]->dtype));
}

static ot_status need(ot_call *c, uint32_t k)
{
    return ot_rm_given(c, k) ? OT_OK : ot_call_fail(c, "input %u is missing", k);
}

ot_status ot_rm_need_kind(ot_call *c, uint32_t k, unsigned kinds)
{
    OT_TRY(need(c, k));
    return ot_rm_kind(c->in[k]->dtype) & kinds ? OT_OK : ot_rm_bad_type(c, k);
}

ot_status ot_rm_need_same(ot_call *c, uint32_t k)
{
    OT_TRY(need(c, k));
    if (c->in[k]->dtype == c->in[0]->dtype) return OT_OK;
    return ot_call_fail(c, "inputs 0 and %u have different element types (%s, %s)", k,
                        ot_dtype_name(c->in[0]->dtype), ot_dtype_name(c->in[k]->dtype));
}

/* ---- rows ---- */

/* For every element: v is what lies in an array of T. */
#define EACH(T, statement)                    \
    {                                         \
        const T *p = (const T *)a->data + at; \
        for (int64_t i = 0; i < n; i++) {     \
            T v = p[i * step];                \
            statement;                        \
        }                                     \
    }                                         \
    break

void ot_rm_load_f(const ot_nd *a, int64_t at, int64_t step, int64_t n, double *to)
{
    switch ((int)a->dtype) {
    case OT_F32: EACH(float, to[i] = (double)v);
    case OT_F64: EACH(double, to[i] = v);
    case OT_F16: EACH(uint16_t, to[i] = (double)ot_f16_to_f32(v));
    case OT_BF16: EACH(uint16_t, to[i] = (double)ot_bf16_to_f32(v));
    case OT_I8: EACH(int8_t, to[i] = v);
    case OT_I16: EACH(int16_t, to[i] = v);
    case OT_I32: EACH(int32_t, to[i] = v);
    case OT_I64: EACH(int64_t, to[i] = (double)v);
    case OT_U8: EACH(uint8_t, to[i] = v);
    case OT_U16: EACH(uint16_t, to[i] = v);
    case OT_U32: EACH(uint32_t, to[i] = v);
    case OT_U64: EACH(uint64_t, to[i] = (double)v);
    case OT_BOOL: EACH(uint8_t, to[i] = v != 0);
    default: OT_BUG("element type without rows");
    }
}

void ot_rm_load_i(const ot_nd *a, int64_t at, int64_t step, int64_t n, int64_t *to)
{
    switch ((int)a->dtype) {
    case OT_I8: EACH(int8_t, to[i] = v);
    case OT_I16: EACH(int16_t, to[i] = v);
    case OT_I32: EACH(int32_t, to[i] = v);
    case OT_I64: EACH(int64_t, to[i] = v);
    case OT_U8: EACH(uint8_t, to[i] = v);
    case OT_U16: EACH(uint16_t, to[i] = v);
    case OT_U32: EACH(uint32_t, to[i] = v);
    case OT_U64: EACH(uint64_t, to[i] = (int64_t)v);
    case OT_BOOL: EACH(uint8_t, to[i] = v != 0);
    default: OT_BUG("element type without integer rows");
    }
}
#undef EACH

#define EACH(T, value)                                       \
    {                                                        \
        T *p = (T *)a->data + at;                            \
        for (int64_t i = 0; i < n; i++) p[i * step] = value; \
    }                                                        \
    break

void ot_rm_store_i(ot_nd *a, int64_t at, int64_t step, int64_t n, const int64_t *from)
{
    switch ((int)a->dtype) {
    case OT_I8:
    case OT_U8: EACH(uint8_t, (uint8_t)from[i]);
    case OT_I16:
    case OT_U16: EACH(uint16_t, (uint16_t)from[i]);
    case OT_I32:
    case OT_U32: EACH(uint32_t, (uint32_t)from[i]);
    case OT_I64:
    case OT_U64: EACH(uint64_t, (uint64_t)from[i]);
    case OT_BOOL: EACH(uint8_t, from[i] != 0);
    default: OT_BUG("element type without integer rows");
    }
}

static void store_ints(ot_nd *a, int64_t at, int64_t step, int64_t n, const double *from)
{
    for (int64_t i = 0; i < n; i++, at += step) {
        int64_t v = ot_rm_to_int(from[i], a->dtype);
        ot_rm_store_i(a, at, 1, 1, &v);
    }
}

void ot_rm_store_f(ot_nd *a, int64_t at, int64_t step, int64_t n, const double *from)
{
    switch ((int)a->dtype) {
    case OT_F32: EACH(float, (float)from[i]);
    case OT_F64: EACH(double, from[i]);
    case OT_F16: EACH(uint16_t, ot_f32_to_f16((float)from[i]));
    case OT_BF16: EACH(uint16_t, ot_f32_to_bf16((float)from[i]));
    case OT_BOOL: EACH(uint8_t, from[i] != 0);
    default: store_ints(a, at, step, n, from);
    }
}
#undef EACH

int64_t ot_rm_to_int(double v, ot_dtype t)
{
    if (t == OT_U64 && v >= 0x1p63) return v < 0x1p64 ? (int64_t)(uint64_t)v : 0;
    int64_t wide = v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
    if (t == OT_I64 || t == OT_U64 || t == OT_U32) return wide;
    return wide >= INT32_MIN && wide <= INT32_MAX ? wide : INT32_MIN;
}

/* ---- walks ---- */

static ot_status disagree(ot_call *c, int64_t a, int64_t b)
{
    return ot_call_fail(c, "shapes do not agree: %lld and %lld in one dimension", (long long)a,
                        (long long)b);
}

ot_status ot_rm_broadcast(ot_call *c, uint32_t first, uint32_t n, uint32_t *rank, int64_t *dims)
{
    *rank = 0;
    for (uint32_t k = first; k < first + n; k++)
        if (c->in[k]->rank > *rank) *rank = c->in[k]->rank;
    for (uint32_t d = 0; d < *rank; d++) dims[d] = 1;
    for (uint32_t k = first; k < first + n; k++) {
        const ot_nd *a = c->in[k];
        for (uint32_t d = 0; d < a->rank; d++) {
            int64_t *out = &dims[*rank - a->rank + d];
            if (*out == 1)
                *out = a->dims[d];
            else if (a->dims[d] != 1 && a->dims[d] != *out)
                return disagree(c, *out, a->dims[d]);
        }
    }
    return OT_OK;
}

ot_status ot_rm_walk_new(ot_rm_walk *w, ot_call *c, uint32_t rank, const int64_t *dims, uint32_t n)
{
    *w = (ot_rm_walk){.rank = rank, .n_ops = n};
    for (uint32_t d = 0; d < rank; d++) w->dims[d] = dims[d];
    w->ops = ot_call_scratch(c, (n ? n : 1) * sizeof *w->ops);
    return w->ops ? OT_OK : ot_fail_nomem(c->diag);
}

ot_status ot_rm_walk_operand(ot_rm_walk *w, ot_call *c, uint32_t j, const ot_nd *a, uint32_t first)
{
    ot_rm_operand *o = &w->ops[j];
    if (a->rank > w->rank || first > w->rank - a->rank)
        return ot_call_fail(c, "shapes do not agree: rank %u does not fit into rank %u", a->rank,
                            w->rank);
    *o = (ot_rm_operand){.a = a};
    /* meaningful when there are elements: then no product is larger than their number */
    uint64_t step = 1;
    for (uint32_t d = a->rank; d-- > 0;) {
        int64_t size = w->dims[first + d];
        if (a->dims[d] != size && a->dims[d] != 1) return disagree(c, size, a->dims[d]);
        o->steps[first + d] = a->dims[d] == 1 ? 0 : (int64_t)step;
        step *= (uint64_t)a->dims[d];
    }
    return OT_OK;
}

ot_status ot_rm_walk_inputs(ot_rm_walk *w, ot_call *c, uint32_t first, uint32_t n, uint32_t rank,
                            const int64_t *dims)
{
    OT_TRY(ot_rm_walk_new(w, c, rank, dims, n));
    for (uint32_t j = 0; j < n; j++) {
        const ot_nd *a = c->in[first + j];
        OT_TRY(ot_rm_walk_operand(w, c, j, a, a->rank <= rank ? rank - a->rank : 0));
    }
    return OT_OK;
}

/* Dimensions d and d + 1 are one to every operand. */
static bool mergeable(const ot_rm_walk *w, uint32_t d)
{
    for (uint32_t j = 0; j < w->n_ops; j++)
        if (w->ops[j].steps[d] != w->ops[j].steps[d + 1] * w->dims[d + 1]) return false;
    return true;
}

/* Dimension `gone` goes; `into` is run through in its steps from now on (OT_NONE: it had one
 * element). */
static void drop(ot_rm_walk *w, uint32_t gone, uint32_t into)
{
    for (uint32_t j = 0; j < w->n_ops; j++) {
        int64_t *s = w->ops[j].steps;
        if (into != OT_NONE) s[into] = s[gone];
        memmove(s + gone, s + gone + 1, (w->rank - gone - 1) * sizeof *s);
    }
    memmove(w->dims + gone, w->dims + gone + 1, (w->rank - gone - 1) * sizeof *w->dims);
    w->rank--;
}

static void merge(ot_rm_walk *w)
{
    for (uint32_t d = w->rank; d-- > 0;)
        if (w->dims[d] == 1) drop(w, d, OT_NONE);
    for (uint32_t d = w->rank; d-- > 1;) {
        if (!mergeable(w, d - 1)) continue;
        w->dims[d - 1] *= w->dims[d];
        drop(w, d, d - 1);
    }
    if (w->rank == 0) {
        w->rank = 1;
        w->dims[0] = 1;
        for (uint32_t j = 0; j < w->n_ops; j++) w->ops[j].steps[0] = 0;
    }
}

static int64_t row_length(const ot_rm_walk *w)
{
    return ot_min(REF_ROW, w->dims[w->rank - 1] - w->index[w->rank - 1]);
}

bool ot_rm_walk_first(ot_rm_walk *w)
{
    for (uint32_t d = 0; d < w->rank; d++)
        if (w->dims[d] == 0) return false;
    merge(w);
    memset(w->index, 0, sizeof w->index);
    w->out = 0;
    w->n = row_length(w);
    for (uint32_t j = 0; j < w->n_ops; j++) {
        w->ops[j].at = 0;
        w->ops[j].step = w->ops[j].steps[w->rank - 1];
    }
    return true;
}

bool ot_rm_walk_next(ot_rm_walk *w)
{
    uint32_t last = w->rank - 1;
    w->out += w->n;
    w->index[last] += w->n;
    for (uint32_t j = 0; j < w->n_ops; j++) w->ops[j].at += w->n * w->ops[j].step;
    for (uint32_t d = last; w->index[d] == w->dims[d]; d--) {
        if (d == 0) return false;
        w->index[d] = 0;
        w->index[d - 1]++;
        for (uint32_t j = 0; j < w->n_ops; j++) {
            ot_rm_operand *o = &w->ops[j];
            o->at += o->steps[d - 1] - o->steps[d] * w->dims[d];
        }
    }
    w->n = row_length(w);
    return true;
}
