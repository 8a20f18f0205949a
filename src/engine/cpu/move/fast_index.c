/* Gather, GatherElements, GatherND: indices become byte offsets in one pass that checks them
 * all; then pieces are copied by a loop for their size.
 *
 *   index  2 -1 0   --check-->   offsets  2*b (n-1)*b 0   --copy-->   y = x[2] x[n-1] x[0]
 */
#include "fast_move.h"

#include "box_leaf.h"
#include "engine/ref/ref_move.h"
#include "engine/core/pool.h"

#include <stdatomic.h>

/* ---- indices ---- */

/* Indices [n] of int32 or int64 into offsets in elements, `step` for each, of `size` elements.
 * false: one is out of range. */
static bool read_index(const ot_nd *index, int64_t n, int64_t size, int64_t step, int64_t *offsets)
{
    bool inside = true;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = index->dtype == OT_I32 ? ((const int32_t *)index->data)[i]
                                           : ((const int64_t *)index->data)[i];
        v = v < 0 ? v + size : v;
        bool ok = v >= 0 && v < size;
        inside = inside && ok;
        offsets[i] = ok ? v * step : 0;
    }
    return inside;
}

static bool is_index(const ot_nd *a) { return a->dtype == OT_I32 || a->dtype == OT_I64; }

/* Product of dims [from, to) of an array in memory that has elements. */
static int64_t extent(const int64_t *dims, uint32_t from, uint32_t to)
{
    int64_t n = 1;
    for (uint32_t k = from; k < to; k++) n *= dims[k];
    return n;
}

/* ---- pieces ---- */

#define PICK(type)                                                \
    do {                                                          \
        const type *from = src;                                   \
        type *to = dst;                                           \
        for (int64_t i = 0; i < n; i++) to[i] = from[offsets[i]]; \
    } while (0)

/* Piece i of `count` elements: from src[offsets[i]] on to dst[i * count]. */
static void pick(size_t size, int64_t count, int64_t n, void *dst, const void *src,
                 const int64_t *offsets)
{
    size_t bytes = (size_t)count * size;
    if (count == 1 && size == 1)
        PICK(uint8_t);
    else if (count == 1 && size == 2)
        PICK(uint16_t);
    else if (count == 1 && size == 4)
        PICK(uint32_t);
    else if (count == 1 && size == 8)
        PICK(uint64_t);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy((char *)dst + (size_t)i * bytes, (const char *)src + (size_t)offsets[i] * size,
                   bytes);
}

typedef struct pick_job {
    size_t size;
    int64_t count, x_step, n, each; /* each: offsets of a piece of work */
    char *y;
    const char *x;
    const int64_t *offsets;
} pick_job;

static void pick_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const pick_job *j = job;
    int64_t pieces = ot_ceil_div(j->n, j->each), bytes = j->count * (int64_t)j->size;
    (void)worker;
    for (int64_t k = first; k < end; k++) {
        int64_t o = k / pieces, i = k % pieces * j->each;
        pick(j->size, j->count, ot_min(j->each, j->n - i), j->y + (o * j->n + i) * bytes,
             j->x + o * j->x_step * (int64_t)j->size, j->offsets + i);
    }
}

/* The same for `outer` sources, x_step elements apart, shared out among threads; y is dense. */
static void pick_all(const ot_call *c, pick_job j, int64_t outer)
{
    int64_t piece = j.count * (int64_t)j.size;
    j.each = ot_max(1, ot_min(j.n, (32 << 10) / ot_max(1, piece)));
    ot_pool_share((uint32_t)ot_move_threads(c, outer * j.n * piece),
                  outer * ot_ceil_div(j.n, j.each), 1, pick_share, &j);
}

/* n pieces of `count` elements of x, at these offsets, to output 0. */
static pick_job pieces_of(const ot_call *c, int64_t count, int64_t n, const int64_t *offsets)
{
    return (pick_job){.size = ot_mv_size(c->in[0]),
                      .count = count,
                      .n = n,
                      .y = c->out[0]->data,
                      .x = c->in[0]->data,
                      .offsets = offsets};
}

/* ---- the operators ---- */

ot_status ot_fast_gather(ot_call *c)
{
    int64_t dims[OT_RANK_MAX], axis = ot_attr_int(c->node, "axis", 0);
    uint32_t rank = 0;
    bool usual = ot_move_usual(c, 2) && is_index(c->in[1]) &&
                 c->in[0]->rank + c->in[1]->rank <= OT_RANK_MAX;
    if (!usual || axis < -(int64_t)c->in[0]->rank || axis >= (int64_t)c->in[0]->rank ||
        ot_num_count(c->in[0]) == 0 || ot_num_count(c->in[1]) == 0)
        return ot_op_reference(OT_OP_Gather)(c);
    const ot_nd *x = c->in[0], *index = c->in[1];
    uint32_t a = (uint32_t)(axis < 0 ? axis + x->rank : axis);
    int64_t n = ot_num_count(index), after = extent(x->dims, a + 1, x->rank),
            *offsets = ot_num_scratch(c, n, sizeof *offsets);
    if (!offsets) return OT_E_NOMEM;
    if (!read_index(index, n, x->dims[a], after, offsets)) return ot_op_reference(OT_OP_Gather)(c);
    for (uint32_t k = 0; k < a; k++) dims[rank++] = x->dims[k];
    for (uint32_t k = 0; k < index->rank; k++) dims[rank++] = index->dims[k];
    for (uint32_t k = a + 1; k < x->rank; k++) dims[rank++] = x->dims[k];
    OT_TRY(ot_call_output(c, 0, x->dtype, rank, dims));
    pick_job j = pieces_of(c, after, n, offsets);
    j.x_step = x->dims[a] * after;
    pick_all(c, j, extent(x->dims, 0, a));
    return OT_OK;
}

ot_status ot_move_element_offsets(ot_call *c, int64_t axis, int64_t **offsets)
{
    const ot_nd *x = c->in[0], *index = c->in[1];
    int64_t pos[OT_RANK_MAX] = {0};
    *offsets = NULL;
    if (!is_index(index) || x->rank != index->rank || axis < -(int64_t)x->rank ||
        axis >= (int64_t)x->rank || ot_num_count(index) == 0)
        return OT_OK;
    uint32_t a = (uint32_t)(axis < 0 ? axis + x->rank : axis), last = x->rank - 1;
    for (uint32_t k = 0; k < x->rank; k++)
        if (k != a && index->dims[k] > x->dims[k]) return OT_OK;
    int64_t n = ot_num_count(index), row = index->dims[last],
            *at = ot_num_scratch(c, n, sizeof *at);
    if (!at) return OT_E_NOMEM;
    if (!read_index(index, n, x->dims[a], x->strides[a], at)) return OT_OK;
    for (int64_t i = 0; i < n; i += row) {
        int64_t from = 0;
        for (uint32_t k = 0; k < last; k++) from += k == a ? 0 : pos[k] * x->strides[k];
        for (int64_t j = 0; j < row; j++) at[i + j] += a == last ? from : from + j;
        (void)ot_num_next(last, index->dims, pos);
    }
    *offsets = at;
    return OT_OK;
}

/* Along the last axis, of int64: rows are gathered without offsets. false: an index is out of
 * range. */
#define GATHER_ROWS(type)                                                                       \
    OT_CLONES static bool gather_##type(type *restrict y, const type *restrict x,               \
                                        const int64_t *restrict index, int64_t n, int64_t size) \
    {                                                                                           \
        int wrong = 0;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                       \
            int64_t v = index[i] < 0 ? index[i] + size : index[i];                              \
            int out = (uint64_t)v >= (uint64_t)size;                                            \
            wrong |= out;                                                                       \
            y[i] = x[out ? 0 : v];                                                              \
        }                                                                                       \
        return !wrong;                                                                          \
    }

GATHER_ROWS(uint32_t)
GATHER_ROWS(uint64_t)

typedef struct gather_job {
    size_t size;
    char *y;
    const char *x;
    const int64_t *index;
    const ot_nd *x_nd, *index_nd;
    atomic_bool wrong;
} gather_job;

static void gather_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    gather_job *j = job;
    uint32_t last = j->x_nd->rank - 1;
    int64_t n = j->index_nd->dims[last], size = j->x_nd->dims[last];
    (void)worker;
    for (int64_t r = first; r < end; r++) {
        int64_t rest = r, from = 0;
        for (uint32_t k = last; k-- > 0; rest /= j->index_nd->dims[k])
            from += rest % j->index_nd->dims[k] * j->x_nd->strides[k];
        char *y = j->y + (size_t)(r * n) * j->size;
        const char *x = j->x + (size_t)from * j->size;
        bool ok = j->size == 4
                      ? gather_uint32_t((uint32_t *)(void *)y, (const uint32_t *)(const void *)x,
                                        j->index + r * n, n, size)
                      : gather_uint64_t((uint64_t *)(void *)y, (const uint64_t *)(const void *)x,
                                        j->index + r * n, n, size);
        if (!ok) j->wrong = true;
    }
}

/* Rows of the last axis, of elements of 4 or 8 bytes. */
static bool gathers_rows(const ot_call *c)
{
    const ot_nd *x = c->in[0], *index = c->in[1];
    int64_t axis = ot_attr_int(c->node, "axis", 0);
    if (x->rank == 0 || x->rank != index->rank || index->dtype != OT_I64 ||
        (axis != -1 && axis != (int64_t)x->rank - 1) || ot_num_count(index) == 0 ||
        ot_num_count(x) == 0 || (ot_mv_size(x) != 4 && ot_mv_size(x) != 8))
        return false;
    for (uint32_t k = 0; k + 1 < x->rank; k++)
        if (index->dims[k] > x->dims[k]) return false;
    return true;
}

ot_status ot_fast_gather_elements(ot_call *c)
{
    int64_t *offsets = NULL;
    if (ot_move_usual(c, 2) && gathers_rows(c)) {
        const ot_nd *a = c->in[0], *at = c->in[1];
        OT_TRY(ot_call_output(c, 0, a->dtype, a->rank, at->dims));
        gather_job j = {.size = ot_mv_size(a),
                        .y = c->out[0]->data,
                        .x = a->data,
                        .index = at->data,
                        .x_nd = a,
                        .index_nd = at};
        int64_t n = ot_num_count(at);
        ot_pool_share((uint32_t)ot_move_threads(c, n * 8), n / at->dims[at->rank - 1], 1,
                      gather_share, &j);
        return j.wrong ? ot_op_reference(OT_OP_GatherElements)(c) : OT_OK;
    }
    if (ot_move_usual(c, 2))
        OT_TRY(ot_move_element_offsets(c, ot_attr_int(c->node, "axis", 0), &offsets));
    if (!offsets) return ot_op_reference(OT_OP_GatherElements)(c);
    const ot_nd *x = c->in[0], *index = c->in[1];
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, index->dims));
    pick_all(c, pieces_of(c, 1, ot_num_count(index), offsets), 1);
    return OT_OK;
}

ot_status ot_move_tuple_offsets(ot_call *c, uint32_t b, int64_t **offsets)
{
    const ot_nd *x = c->in[0], *index = c->in[1];
    uint32_t last = index->rank - 1;
    int64_t m = index->dims[last], n = extent(index->dims, 0, last),
            each = extent(index->dims, b, last), whole = b > 0 ? x->strides[b - 1] : 0,
            *at = ot_num_scratch(c, n, sizeof *at);
    *offsets = NULL;
    if (!at) return OT_E_NOMEM;
    for (int64_t i = 0; i < n; i++) {
        at[i] = b > 0 ? i / each * whole : 0;
        for (int64_t j = 0; j < m; j++) {
            int64_t v = index->dtype == OT_I32 ? ((const int32_t *)index->data)[i * m + j]
                                               : ((const int64_t *)index->data)[i * m + j],
                    size = x->dims[b + j];
            v = v < 0 ? v + size : v;
            if (v < 0 || v >= size) return OT_OK;
            at[i] += v * x->strides[b + j];
        }
    }
    *offsets = at;
    return OT_OK;
}

/* Tuples of m indices name slices; the first `batch` dims are common to both inputs. */
ot_status ot_fast_gather_nd(ot_call *c)
{
    int64_t dims[OT_RANK_MAX], batch = ot_attr_int(c->node, "batch_dims", 0);
    uint32_t rank = 0;
    bool usual = ot_move_usual(c, 2) && is_index(c->in[1]) && c->in[0]->rank > 0 &&
                 c->in[1]->rank > 0 && batch >= 0;
    usual = usual && batch < c->in[0]->rank && batch < c->in[1]->rank &&
            ot_num_count(c->in[0]) > 0 && ot_num_count(c->in[1]) > 0;
    if (!usual) return ot_op_reference(OT_OP_GatherND)(c);
    const ot_nd *x = c->in[0], *index = c->in[1];
    uint32_t b = (uint32_t)batch, last = index->rank - 1;
    int64_t m = index->dims[last];
    for (uint32_t k = 0; k < b; k++) usual = usual && x->dims[k] == index->dims[k];
    if (!usual || m > (int64_t)x->rank - batch || last + x->rank - b - m > OT_RANK_MAX)
        return ot_op_reference(OT_OP_GatherND)(c);
    int64_t n = extent(index->dims, 0, last), *offsets;
    OT_TRY(ot_move_tuple_offsets(c, b, &offsets));
    if (!offsets) return ot_op_reference(OT_OP_GatherND)(c);
    for (uint32_t k = 0; k < last; k++) dims[rank++] = index->dims[k];
    for (uint32_t k = b + (uint32_t)m; k < x->rank; k++) dims[rank++] = x->dims[k];
    OT_TRY(ot_call_output(c, 0, x->dtype, rank, dims));
    pick_all(c, pieces_of(c, extent(x->dims, b + (uint32_t)m, x->rank), n, offsets), 1);
    return OT_OK;
}
