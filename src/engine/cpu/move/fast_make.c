/* Trilu, EyeLike, OneHot, Range: whole rows are filled or copied, then single elements set.
 *
 *   Trilu    row i   [0 0 0 x x x x]    zeros before (or behind) column i + k, a copy of the rest
 *   OneHot           all `off`, then one `on` for each index
 */
#include "fast_move.h"

#include "engine/core/pool.h"
#include "engine/core/simd.h"
#include "engine/ref/ref_move.h"

#include <math.h>

/* ---- Trilu ---- */

typedef struct triangle {
    int64_t rows, columns, k;
    size_t size;
    bool upper;
    char *y;
    const char *x;
} triangle;

static void triangle_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const triangle *t = job;
    size_t row = (size_t)t->columns * t->size;
    (void)worker;
    for (int64_t r = first; r < end; r++) {
        /* the column in front of which the upper part ends or the lower part goes on */
        int64_t at = r % t->rows + t->k + !t->upper;
        size_t cut = (size_t)ot_max(0, ot_min(at, t->columns)) * t->size;
        char *y = t->y + (size_t)r * row;
        const char *x = t->x + (size_t)r * row;
        if (t->upper) {
            memset(y, 0, cut);
            memcpy(y + cut, x + cut, row - cut);
        } else {
            memcpy(y, x, cut);
            memset(y + cut, 0, row - cut);
        }
    }
}

ot_status ot_fast_trilu(ot_call *c)
{
    int64_t k = 0;
    if (!ot_move_usual(c, 1) || c->in[0]->rank < 2 || ot_num_count(c->in[0]) == 0)
        return ot_op_reference(OT_OP_Trilu)(c);
    const ot_nd *x = c->in[0];
    if (ot_num_in(c, 1)) OT_TRY(ot_mv_scalar(c, 1, &k));
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, x->dims));
    triangle t = {.rows = x->dims[x->rank - 2],
                  .columns = x->dims[x->rank - 1],
                  .size = ot_mv_size(x),
                  .upper = ot_attr_int(c->node, "upper", 1) != 0,
                  .y = c->out[0]->data,
                  .x = x->data};
    t.k = ot_max(-t.rows, ot_min(k, t.columns));
    int64_t rows = ot_num_count(x) / t.columns;
    ot_pool_share((uint32_t)ot_move_threads(c, ot_num_count(x) * (int64_t)t.size), rows, 1,
                  triangle_share, &t);
    return OT_OK;
}

/* ---- EyeLike ---- */

ot_status ot_fast_eye_like(ot_call *c)
{
    bool usual = ot_move_usual(c, 1) && c->in[0]->rank == 2;
    int64_t type = usual ? ot_attr_int(c->node, "dtype", c->in[0]->dtype) : 0;
    if (type <= 0 || type > OT_I2 || !ot_num_is((ot_dtype)type, OT_NUM_ALL))
        return ot_op_reference(OT_OP_EyeLike)(c);
    OT_TRY(ot_call_output(c, 0, (ot_dtype)type, 2, c->in[0]->dims));
    ot_nd *y = c->out[0];
    int64_t rows = y->dims[0], columns = y->dims[1],
            k = ot_max(-rows, ot_min(ot_attr_int(c->node, "k", 0), columns));
    memset(y->data, 0, (size_t)ot_num_count(y) * ot_mv_size(y)); /* the 0 of all types */
    for (int64_t i = ot_max(0, -k); i < rows && i + k < columns; i++)
        ot_num_put(y, i * columns + i + k, 1);
    return OT_OK;
}

/* ---- OneHot ---- */

#define FILL(type)                                \
    do {                                          \
        type v, *restrict y = to;                 \
        memcpy(&v, one, sizeof v);                \
        for (int64_t i = 0; i < n; i++) y[i] = v; \
    } while (0)

OT_CLONES static void fill(void *to, const void *one, size_t size, int64_t n)
{
    switch (size) {
    case 1: FILL(uint8_t); break;
    case 2: FILL(uint16_t); break;
    case 4: FILL(uint32_t); break;
    default: FILL(uint64_t); break;
    }
}

/* Index i as an integer; a depth that nothing reaches where it is none. */
static int64_t index_at(const ot_nd *a, int64_t i)
{
    if (a->dtype == OT_I64) return ((const int64_t *)a->data)[i];
    return a->dtype == OT_I32 ? ((const int32_t *)a->data)[i] : ot_nd_int(a, i);
}

ot_status ot_fast_one_hot(ot_call *c)
{
    int64_t dims[OT_RANK_MAX], axis = ot_attr_int(c->node, "axis", -1), after = 1;
    bool usual = ot_move_usual(c, 3) && ot_num_is(c->in[0]->dtype, OT_NUM_INTS) &&
                 ot_num_is(c->in[1]->dtype, OT_NUM_INDEX) && ot_num_count(c->in[1]) == 1 &&
                 c->in[2]->rank == 1 && c->in[2]->dims[0] == 2 && c->in[0]->rank < OT_RANK_MAX;
    uint32_t rank = usual ? c->in[0]->rank + 1 : 0;
    size_t size = usual ? ot_mv_size(c->in[2]) : 0;
    int64_t depth = usual ? ot_nd_int(c->in[1], 0) : 0;
    if (depth < 1 || axis < -(int64_t)rank || axis >= (int64_t)rank || size > 8 ||
        ot_num_count(c->in[0]) == 0)
        return ot_op_reference(OT_OP_OneHot)(c);
    const ot_nd *index = c->in[0], *values = c->in[2];
    uint32_t a = (uint32_t)(axis < 0 ? axis + rank : axis);
    for (uint32_t k = 0; k < rank; k++)
        dims[k] = k < a ? index->dims[k] : k > a ? index->dims[k - 1] : depth;
    OT_TRY(ot_call_output(c, 0, values->dtype, rank, dims));
    char *y = c->out[0]->data;
    fill(y, values->data, size, ot_num_count(c->out[0]));
    for (uint32_t k = a; k < index->rank; k++) after *= index->dims[k];
    int64_t n = ot_num_count(index);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = index_at(index, i);
        if (at < 0 && c->node->version >= 11) at += depth;
        if (at < 0 || at >= depth) continue;
        memcpy(y + ((i / after * depth + at) * after + i % after) * (int64_t)size,
               (const char *)values->data + size, size);
    }
    return OT_OK;
}

/* ---- Range ---- */

OT_CLONES static void range_floats(float *y, double start, double delta, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)(start + (double)i * delta);
}

OT_CLONES static void range_ints(int64_t *y, int64_t start, int64_t delta, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)delta);
}

/* float32, and int64 of few enough elements that nothing overflows. */
ot_status ot_fast_range(ot_call *c)
{
    const double most = 0x1p40;
    bool usual = ot_move_usual(c, 3);
    for (uint32_t k = 0; usual && k < 3; k++)
        usual = c->in[k]->dtype == c->in[0]->dtype && ot_num_count(c->in[k]) == 1;
    ot_dtype t = usual ? c->in[0]->dtype : OT_DT_UNKNOWN;
    if (t != OT_F32 && t != OT_I64) return ot_op_reference(OT_OP_Range)(c);
    double start = ot_nd_double(c->in[0], 0), limit = ot_nd_double(c->in[1], 0),
           delta = ot_nd_double(c->in[2], 0), n = ceil((limit - start) / delta);
    if (!(fabs(start) < most && fabs(limit) < most && fabs(delta) < most && fabs(n) < most))
        return ot_op_reference(OT_OP_Range)(c);
    int64_t count = n > 0 ? (int64_t)n : 0;
    OT_TRY(ot_call_output(c, 0, t, 1, &count));
    if (t == OT_F32)
        range_floats(c->out[0]->data, start, delta, count);
    else
        range_ints(c->out[0]->data, (int64_t)start, (int64_t)delta, count);
    return OT_OK;
}
