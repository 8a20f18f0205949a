/* What moves through other types, integers and doubles: Cast, Where, Clip of integers, and
 * arithmetic and comparisons.
 *
 *   Cast    one loop for each pair of types; float16 by way of float32, some hundred elements at a
 *           time
 *   others  rows of the broadcast operands (ot_rm_walk), one loop for each type and operator
 */
#include "fast_move.h"

#include "box_leaf.h"
#include "base/half_float.h"
#include "engine/ref/ref_math.h"
#include "engine/ref/ref_number.h"
#include "engine/core/pool.h"

#define CHUNK 512 /* elements of a cast by way of float32 */

/* ---- loops of casts ---- */

/* As ot_rm_to_int. */
static inline int32_t float_to_int32(float v)
{
    return v >= -0x1p31f && v < 0x1p31f ? (int32_t)v : INT32_MIN;
}
static inline int64_t float_to_int64(float v)
{
    return v >= -0x1p63f && v < 0x1p63f ? (int64_t)v : INT64_MIN;
}

typedef void (*cast_loop)(int64_t n, void *to, const void *from);

#define CAST(name, to_type, from_type, expr)                                 \
    OT_CLONES static void cast_##name(int64_t n, void *to, const void *from) \
    {                                                                        \
        to_type *restrict y = to;                                            \
        const from_type *restrict x = from;                                  \
        for (int64_t i = 0; i < n; i++) y[i] = (to_type)(expr);              \
    }

#define CASTS_OF_INT(short_name, type)          \
    CAST(short_name##_f32, float, type, x[i])   \
    CAST(short_name##_i64, int64_t, type, x[i]) \
    CAST(short_name##_i32, int32_t, type, x[i]) \
    CAST(short_name##_u8, uint8_t, type, x[i])  \
    CAST(short_name##_bool, uint8_t, type, x[i] != 0)

CASTS_OF_INT(u8, uint8_t)
CASTS_OF_INT(i8, int8_t)
CASTS_OF_INT(i32, int32_t)
CASTS_OF_INT(i64, int64_t)
CAST(f32_f32, float, float, x[i])
CAST(f32_i64, int64_t, float, float_to_int64(x[i]))
CAST(f32_i32, int32_t, float, float_to_int32(x[i]))
CAST(f32_u8, uint8_t, float, float_to_int32(x[i]))
CAST(f32_bool, uint8_t, float, x[i] != 0)

CAST(f16_f32, float, uint16_t, ot_f16_to_f32(x[i]))
CAST(f32_f16, uint16_t, float, ot_f32_to_f16(x[i]))

/* ---- Cast ---- */

enum { TO_F32, TO_I64, TO_I32, TO_U8, TO_BOOL, N_TO };

static int target_row(ot_dtype t)
{
    switch ((int)t) {
    case OT_F32: return TO_F32;
    case OT_I64: return TO_I64;
    case OT_I32: return TO_I32;
    case OT_U8:
    case OT_I8: return TO_U8; /* the low bits are the same */
    case OT_BOOL: return TO_BOOL;
    default: return N_TO;
    }
}

#define ROW_OF(s)                                                                      \
    {                                                                                  \
        cast_##s##_f32, cast_##s##_i64, cast_##s##_i32, cast_##s##_u8, cast_##s##_bool \
    }

static cast_loop loop_for(ot_dtype to, ot_dtype from)
{
    static const cast_loop of_u8[N_TO] = ROW_OF(u8), of_i8[N_TO] = ROW_OF(i8),
                           of_i32[N_TO] = ROW_OF(i32), of_i64[N_TO] = ROW_OF(i64),
                           of_f32[N_TO] = ROW_OF(f32);
    int row = target_row(to);
    if (row == N_TO) return NULL;
    switch ((int)from) {
    case OT_U8:
    case OT_BOOL: return of_u8[row];
    case OT_I8: return of_i8[row];
    case OT_I32: return of_i32[row];
    case OT_I64: return of_i64[row];
    case OT_F32: return of_f32[row];
    default: return NULL;
    }
}

static void cast_some(int64_t n, char *to, ot_dtype to_type, const char *from, ot_dtype from_type)
{
    float middle[CHUNK];
    cast_loop direct = loop_for(to_type, from_type);
    if (direct) {
        direct(n, to, from);
        return;
    }
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = ot_min(CHUNK, n - i);
        const char *x = from + i * (int64_t)ot_dtype_bytes(from_type);
        char *y = to + i * (int64_t)ot_dtype_bytes(to_type);
        if (from_type == OT_F16)
            cast_f16_f32(m, middle, x);
        else
            loop_for(OT_F32, from_type)(m, middle, x);
        if (to_type == OT_F16)
            cast_f32_f16(m, y, middle);
        else
            loop_for(to_type, OT_F32)(m, y, middle);
    }
}

enum { CAST_PIECE = 16 * CHUNK }; /* elements */

typedef struct cast_job {
    int64_t n;
    const ot_nd *x;
    ot_nd *y;
} cast_job;

static void cast_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const cast_job *j = job;
    int64_t at = first * CAST_PIECE, n = ot_min(end * CAST_PIECE, j->n) - at;
    (void)worker;
    cast_some(n, (char *)j->y->data + at * (int64_t)ot_dtype_bytes(j->y->dtype), j->y->dtype,
              (const char *)j->x->data + at * (int64_t)ot_dtype_bytes(j->x->dtype), j->x->dtype);
}

ot_status ot_fast_cast(ot_call *c)
{
    const ot_attr *attr = ot_attr_find(c->node, "to");
    bool usual = ot_move_usual(c, 1) && attr && attr->kind == OT_ATTR_INT;
    if (!usual) return ot_op_reference(OT_OP_Cast)(c);
    const ot_nd *x = c->in[0];
    ot_dtype from = x->dtype,
             to = attr->i > 0 && attr->i <= OT_I2 ? (ot_dtype)attr->i : OT_DT_UNKNOWN;
    usual = (from == OT_F16 || loop_for(OT_F32, from)) && (to == OT_F16 || loop_for(to, OT_F32)) &&
            from != to;
    if (!usual) return ot_op_reference(OT_OP_Cast)(c);
    OT_TRY(ot_call_output(c, 0, to, x->rank, x->dims));
    ot_nd *y = c->out[0];
    cast_job j = {.n = ot_num_count(x), .x = x, .y = y};
    int64_t bytes = j.n * (int64_t)(ot_dtype_bytes(from) + ot_dtype_bytes(to));
    ot_pool_share((uint32_t)ot_move_threads(c, bytes), ot_ceil_div(j.n, CAST_PIECE), 1, cast_share,
                  &j);
    return OT_OK;
}

/* ---- arithmetic and comparisons ---- */

#define EACH(result, expr)                             \
    for (int64_t i = 0; i < n; i++) {                  \
        int_type a = x[i * step_x], b = z[i * step_z]; \
        ((result *)y)[i] = (result)(expr);             \
    }                                                  \
    return

/* Both operands run on, or one of them stays: spelt out, so that the loops vectorise. */
#define BINARY(type, unsigned_type)                                                            \
    static inline void row_##type(ot_op op, int64_t n, void *y, const type *x, int64_t step_x, \
                                  const type *z, int64_t step_z)                               \
    {                                                                                          \
        typedef type int_type;                                                                 \
        switch ((int)op) {                                                                     \
        case OT_OP_Add: EACH(type, (unsigned_type)a + (unsigned_type)b);                       \
        case OT_OP_Sub: EACH(type, (unsigned_type)a - (unsigned_type)b);                       \
        case OT_OP_Mul: EACH(type, (unsigned_type)a *(unsigned_type)b);                        \
        case OT_OP_Equal: EACH(uint8_t, a == b);                                               \
        case OT_OP_Less: EACH(uint8_t, a < b);                                                 \
        case OT_OP_LessOrEqual: EACH(uint8_t, a <= b);                                         \
        case OT_OP_Greater: EACH(uint8_t, a > b);                                              \
        default: EACH(uint8_t, a >= b);                                                        \
        }                                                                                      \
    }                                                                                          \
    OT_CLONES static void binary_##type(ot_op op, int64_t n, void *y, const type *x,           \
                                        int64_t step_x, const type *z, int64_t step_z)         \
    {                                                                                          \
        if (step_x == 1 && step_z == 1)                                                        \
            row_##type(op, n, y, x, 1, z, 1);                                                  \
        else if (step_x == 1 && step_z == 0)                                                   \
            row_##type(op, n, y, x, 1, z, 0);                                                  \
        else if (step_x == 0 && step_z == 1)                                                   \
            row_##type(op, n, y, x, 0, z, 1);                                                  \
        else                                                                                   \
            row_##type(op, n, y, x, step_x, z, step_z);                                        \
    }

BINARY(int8_t, uint32_t)
BINARY(uint8_t, uint32_t)
BINARY(int16_t, uint32_t)
BINARY(uint16_t, uint32_t)
BINARY(int32_t, uint32_t)
BINARY(uint32_t, uint32_t)
BINARY(int64_t, uint64_t)
BINARY(uint64_t, uint64_t)
BINARY(double, double)

/* One row of the walk: n results at y. */
#define ROW(type)                                                      \
    binary_##type(op, n, y, (const type *)a->a->data + a->at, a->step, \
                  (const type *)b->a->data + b->at, b->step);          \
    break

static void binary_row(ot_op op, int64_t n, void *y, const ot_rm_operand *a, const ot_rm_operand *b)
{
    switch ((int)a->a->dtype) {
    case OT_I8: ROW(int8_t);
    case OT_U8: ROW(uint8_t);
    case OT_I16: ROW(int16_t);
    case OT_U16: ROW(uint16_t);
    case OT_I32: ROW(int32_t);
    case OT_U32: ROW(uint32_t);
    case OT_I64: ROW(int64_t);
    case OT_U64: ROW(uint64_t);
    default: ROW(double);
    }
}

ot_status ot_fast_int_binary(ot_call *c)
{
    ot_op op = c->node->op;
    uint32_t rank;
    int64_t dims[OT_RANK_MAX];
    bool usual = c->n_in == 2 && ot_move_usual(c, 2) && c->in[0]->dtype == c->in[1]->dtype &&
                 (c->node->version == 0 || c->node->version >= 7);
    usual = usual && ot_num_is(c->in[0]->dtype, OT_NUM_INTS | OT_NUM_BIT(OT_F64));
    if (!usual) return ot_op_reference(op)(c);
    bool number = op == OT_OP_Add || op == OT_OP_Sub || op == OT_OP_Mul;
    size_t size = number ? ot_dtype_bytes(c->in[0]->dtype) : 1;
    ot_rm_walk w;
    OT_TRY(ot_rm_broadcast(c, 0, 2, &rank, dims));
    OT_TRY(ot_call_output(c, 0, number ? c->in[0]->dtype : OT_BOOL, rank, dims));
    OT_TRY(ot_rm_walk_inputs(&w, c, 0, 2, rank, dims));
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w))
        binary_row(op, w.n, (char *)c->out[0]->data + (size_t)w.out * size, &w.ops[0], &w.ops[1]);
    return OT_OK;
}

/* ---- Clip ---- */

#define CLIP(type)                                                                             \
    OT_CLONES static void clip_##type(int64_t n, void *to, const void *from, type lo, type hi) \
    {                                                                                          \
        type *restrict y = to;                                                                 \
        const type *restrict x = from;                                                         \
        for (int64_t i = 0; i < n; i++) {                                                      \
            type v = x[i] < lo ? lo : x[i];                                                    \
            y[i] = v > hi ? hi : v;                                                            \
        }                                                                                      \
    }

CLIP(int8_t)
CLIP(uint8_t)
CLIP(int32_t)
CLIP(int64_t)

/* Input k, a limit, if it is given; false: the reference says what is wrong. */
static bool read_limit(const ot_call *c, uint32_t k, int64_t *v)
{
    const ot_nd *a = ot_num_in(c, k);
    if (!a) return true;
    if (a->dtype != c->in[0]->dtype || ot_num_count(a) != 1) return false;
    *v = ot_nd_int(a, 0);
    return true;
}

ot_status ot_fast_int_clip(ot_call *c)
{
    const ot_nd *x = ot_num_in(c, 0);
    ot_dtype t = x ? x->dtype : OT_DT_UNKNOWN;
    int64_t lo = t == OT_U8    ? 0
                 : t == OT_I8  ? INT8_MIN
                 : t == OT_I32 ? INT32_MIN
                               : INT64_MIN,
            hi = t == OT_U8   ? UINT8_MAX
                 : t == OT_I8 ? INT8_MAX
                              : (t == OT_I32 ? INT32_MAX : INT64_MAX);
    if ((t != OT_U8 && t != OT_I8 && t != OT_I32 && t != OT_I64) || !ot_move_usual(c, 1) ||
        !read_limit(c, 1, &lo) || !read_limit(c, 2, &hi))
        return ot_op_reference(OT_OP_Clip)(c);
    OT_TRY(ot_call_output(c, 0, t, x->rank, x->dims));
    int64_t n = ot_num_count(x);
    void *y = c->out[0]->data;
    switch ((int)t) {
    case OT_I8: clip_int8_t(n, y, x->data, (int8_t)lo, (int8_t)hi); break;
    case OT_U8: clip_uint8_t(n, y, x->data, (uint8_t)lo, (uint8_t)hi); break;
    case OT_I32: clip_int32_t(n, y, x->data, (int32_t)lo, (int32_t)hi); break;
    default: clip_int64_t(n, y, x->data, lo, hi); break;
    }
    return OT_OK;
}

/* ---- Where ---- */

#define WHERE(type)                                                                   \
    static inline void chosen_##type(int64_t n, type *restrict y, const uint8_t *yes, \
                                     int64_t step_yes, const type *a, int64_t step_a, \
                                     const type *b, int64_t step_b)                   \
    {                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                             \
            type if_yes = a[i * step_a], if_no = b[i * step_b];                       \
            y[i] = yes[i * step_yes] ? if_yes : if_no;                                \
        }                                                                             \
    }                                                                                 \
    OT_CLONES static void where_##type(int64_t n, void *y, const ot_rm_operand *ops)  \
    {                                                                                 \
        const uint8_t *yes = (const uint8_t *)ops[0].a->data + ops[0].at;             \
        const type *a = (const type *)ops[1].a->data + ops[1].at,                     \
                   *b = (const type *)ops[2].a->data + ops[2].at;                     \
        if (ops[0].step == 1 && ops[1].step == 1 && ops[2].step == 1)                 \
            chosen_##type(n, y, yes, 1, a, 1, b, 1);                                  \
        else if (ops[0].step == 1 && ops[1].step == 1 && ops[2].step == 0)            \
            chosen_##type(n, y, yes, 1, a, 1, b, 0);                                  \
        else if (ops[0].step == 1 && ops[1].step == 0 && ops[2].step == 1)            \
            chosen_##type(n, y, yes, 1, a, 0, b, 1);                                  \
        else                                                                          \
            chosen_##type(n, y, yes, ops[0].step, a, ops[1].step, b, ops[2].step);    \
    }

WHERE(uint8_t)
WHERE(uint16_t)
WHERE(uint32_t)
WHERE(uint64_t)

ot_status ot_fast_where(ot_call *c)
{
    uint32_t rank;
    int64_t dims[OT_RANK_MAX];
    bool usual = c->n_in == 3 && ot_move_usual(c, 3) && c->in[0]->dtype == OT_BOOL &&
                 c->in[1]->dtype == c->in[2]->dtype;
    size_t size = usual ? ot_dtype_bytes(c->in[1]->dtype) : 0;
    if (!usual || size > 8) return ot_op_reference(OT_OP_Where)(c);
    ot_rm_walk w;
    OT_TRY(ot_rm_broadcast(c, 0, 3, &rank, dims));
    OT_TRY(ot_call_output(c, 0, c->in[1]->dtype, rank, dims));
    OT_TRY(ot_rm_walk_inputs(&w, c, 0, 3, rank, dims));
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w)) {
        void *y = (char *)c->out[0]->data + (size_t)w.out * size;
        switch (size) {
        case 1: where_uint8_t(w.n, y, w.ops); break;
        case 2: where_uint16_t(w.n, y, w.ops); break;
        case 4: where_uint32_t(w.n, y, w.ops); break;
        default: where_uint64_t(w.n, y, w.ops); break;
        }
    }
    return OT_OK;
}
