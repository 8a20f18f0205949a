/* ScatterElements, ScatterND: indices become offsets in one pass that checks them all; then updates
 * are written, or combined with what is there, in order.
 *
 *   offsets   8 0 8        updates  a b c      y[8] = a, y[0] = b, y[8] = c    (or +, *, min, max)
 *
 * Combined are float32, and int32 and int64; the rest goes to the reference.
 */
#include "fast_move.h"

#include "engine/core/simd.h"
#include "engine/ref/ref_move.h"

typedef enum combination { TAKE, ADD, MULTIPLY, LEAST, MOST, UNKNOWN } combination;

static combination combination_of(const ot_call *c)
{
    static const char *const names[UNKNOWN] = {"none", "add", "mul", "min", "max"};
    const char *name = ot_attr_str(c->node, "reduction", "none");
    unsigned k = 0;
    while (k < UNKNOWN && strcmp(name, names[k]) != 0) k++;
    return (combination)k;
}

/* ---- updates, `slice` elements at each offset ---- */

#define EACH(expr)                                          \
    for (int64_t i = 0; i < n; i++) {                       \
        type *to = y + at[i];                               \
        const type *u = from + i * slice;                   \
        for (int64_t j = 0; j < slice; j++) to[j] = (expr); \
    }                                                       \
    return

/* As the reference combines them: a NaN in y stays in a minimum and a maximum, one in the updates
 * does not come in. */
#define COMBINE(short_name, of, plus, times)                                                \
    OT_CLONES static void combine_##short_name(combination how, of *y, const of *from,      \
                                               const int64_t *at, int64_t n, int64_t slice) \
    {                                                                                       \
        typedef of type;                                                                    \
        switch (how) {                                                                      \
        case ADD: EACH(plus);                                                               \
        case MULTIPLY: EACH(times);                                                         \
        case LEAST: EACH(u[j] < to[j] ? u[j] : to[j]);                                      \
        default: EACH(u[j] > to[j] ? u[j] : to[j]);                                         \
        }                                                                                   \
    }

COMBINE(f32, float, to[j] + u[j], to[j] * u[j])
COMBINE(i32, int32_t, (int32_t)((uint32_t)to[j] + (uint32_t)u[j]),
        (int32_t)((uint32_t)to[j] * (uint32_t)u[j]))
COMBINE(i64, int64_t, (int64_t)((uint64_t)to[j] + (uint64_t)u[j]),
        (int64_t)((uint64_t)to[j] * (uint64_t)u[j]))

#define TAKE_EACH(type)                                                           \
    for (int64_t i = 0; i < n; i++) ((type *)y)[at[i]] = ((const type *)from)[i]; \
    return

static void take(size_t size, void *y, const void *from, const int64_t *at, int64_t n,
                 int64_t slice)
{
    size_t bytes = (size_t)slice * size;
    if (slice == 1) {
        switch (size) {
        case 1: TAKE_EACH(uint8_t);
        case 2: TAKE_EACH(uint16_t);
        case 4: TAKE_EACH(uint32_t);
        case 8: TAKE_EACH(uint64_t);
        default: break;
        }
    }
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)y + (size_t)at[i] * size, (const char *)from + (size_t)i * bytes, bytes);
}

/* ---- the operators ---- */

/* Input 0 with the updates of input 2: n of `slice` elements, at these offsets. */
static ot_status scatter(ot_call *c, combination how, const int64_t *at, int64_t n, int64_t slice)
{
    const ot_nd *x = c->in[0];
    const void *from = c->in[2]->data;
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, x->dims));
    void *y = c->out[0]->data;
    if (y != x->data) memcpy(y, x->data, (size_t)ot_num_count(x) * ot_mv_size(x));
    if (how == TAKE)
        take(ot_mv_size(x), y, from, at, n, slice);
    else if (x->dtype == OT_F32)
        combine_f32(how, y, from, at, n, slice);
    else if (x->dtype == OT_I32)
        combine_i32(how, y, from, at, n, slice);
    else
        combine_i64(how, y, from, at, n, slice);
    return OT_OK;
}

static bool usual(const ot_call *c, combination how)
{
    if (!ot_move_usual(c, 3) || how == UNKNOWN || c->in[2]->dtype != c->in[0]->dtype ||
        ot_num_count(c->in[1]) == 0 || ot_num_count(c->in[0]) == 0)
        return false;
    ot_dtype t = c->in[0]->dtype;
    return how == TAKE || t == OT_F32 || t == OT_I32 || t == OT_I64;
}

static bool has_dims(const ot_nd *a, uint32_t rank, const int64_t *dims)
{
    return a->rank == rank && (rank == 0 || memcmp(a->dims, dims, rank * sizeof *dims) == 0);
}

ot_status ot_fast_scatter_elements(ot_call *c)
{
    combination how = combination_of(c);
    int64_t *at = NULL;
    if (usual(c, how) && has_dims(c->in[2], c->in[1]->rank, c->in[1]->dims))
        OT_TRY(ot_move_element_offsets(c, ot_attr_int(c->node, "axis", 0), &at));
    if (!at) return ot_op_reference(OT_OP_ScatterElements)(c);
    return scatter(c, how, at, ot_num_count(c->in[1]), 1);
}

ot_status ot_fast_scatter_nd(ot_call *c)
{
    combination how = combination_of(c);
    int64_t dims[2 * OT_RANK_MAX], *at = NULL, slice = 1;
    uint32_t rank = 0;
    if (!usual(c, how) || !ot_num_is(c->in[1]->dtype, OT_NUM_INDEX) || c->in[0]->rank == 0 ||
        c->in[1]->rank == 0)
        return ot_op_reference(OT_OP_ScatterND)(c);
    const ot_nd *x = c->in[0], *index = c->in[1];
    uint32_t last = index->rank - 1;
    int64_t m = index->dims[last];
    for (uint32_t k = 0; k < last; k++) dims[rank++] = index->dims[k];
    for (int64_t k = m; k < x->rank; k++) slice *= dims[rank++] = x->dims[k];
    if (m <= x->rank && has_dims(c->in[2], rank, dims)) OT_TRY(ot_move_tuple_offsets(c, 0, &at));
    if (!at) return ot_op_reference(OT_OP_ScatterND)(c);
    return scatter(c, how, at, ot_num_count(index) / m, slice);
}
