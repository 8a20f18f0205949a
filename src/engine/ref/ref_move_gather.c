/* Operators that read elements at places that another input names: Gather, GatherElements,
 * GatherND, Compress.
 *
 * Negative indices count from the end; an index outside is an error. When the output has no
 * element, no index is looked at: then every product of the input's dimensions below is one that
 * memory exists for.
 */
#include "ref_move.h"

static int64_t product(const int64_t *dims, uint32_t from, uint32_t to)
{
    int64_t n = 1;
    return from < to && !ot_product(dims + from, to - from, &n) ? 0 : n;
}

/* ---- Gather ---- */

/* y[before, i..., after] = x[before, index[i...] - first, after] */
static ot_status gather(ot_call *c, uint32_t axis, const ot_nd *index, int64_t first)
{
    int64_t dims[2 * OT_RANK_MAX], at;
    uint32_t rank = 0;
    const ot_nd *x = c->in[0];
    for (uint32_t k = 0; k < axis; k++) dims[rank++] = x->dims[k];
    for (uint32_t k = 0; k < index->rank; k++) dims[rank++] = index->dims[k];
    for (uint32_t k = axis + 1; k < x->rank; k++) dims[rank++] = x->dims[k];
    OT_TRY(ot_call_output(c, 0, x->dtype, rank, dims));
    if (ot_num_count(c->out[0]) == 0) return OT_OK;
    int64_t before = product(x->dims, 0, axis), n = ot_num_count(index),
            after = product(x->dims, axis + 1, x->rank);
    size_t bytes = (size_t)after * ot_mv_size(x);
    for (int64_t b = 0; b < before; b++)
        for (int64_t i = 0; i < n; i++) {
            OT_TRY(ot_mv_index(c, ot_nd_int(index, i) - first, x->dims[axis], &at));
            memcpy(ot_mv_at(c->out[0], (b * n + i) * after),
                   ot_mv_at(x, (b * x->dims[axis] + at) * after), bytes);
        }
    return OT_OK;
}

ot_status ot_mv_gather(ot_call *c)
{
    uint32_t axis;
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(ot_num_type(c, 1, OT_NUM_INDEX));
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", 0), c->in[0]->rank, &axis));
    return gather(c, axis, c->in[1], 0);
}

/* Of domain onnx_tile (src/transform/decompose): indices are numbers of rows, of which x has
 * those that its second operand lists. */
ot_status ot_mv_gather_rows(ot_call *c)
{
    uint32_t axis;
    OT_TRY(ot_call_need(c, 3));
    OT_TRY(ot_num_type(c, 1, OT_NUM_INDEX));
    OT_TRY(ot_num_type(c, 2, OT_NUM_INDEX));
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", 0), c->in[0]->rank, &axis));
    if (c->in[1]->rank != 1 || c->in[2]->rank != 1 || c->in[1]->dims[0] != c->in[0]->dims[axis] ||
        c->in[1]->dims[0] == 0)
        return ot_call_fail(c, "its rows are not numbered");
    return gather(c, axis, c->in[2], ot_nd_int(c->in[1], 0));
}

/* ---- GatherElements ---- */

/* y[p] = x[p, with index[p] in place of p's coordinate on the axis] */
ot_status ot_mv_gather_elements(ot_call *c)
{
    int64_t pos[OT_RANK_MAX] = {0}, at;
    uint32_t axis;
    OT_TRY(ot_call_need(c, 2));
    const ot_nd *x = c->in[0], *index = c->in[1];
    OT_TRY(ot_num_type(c, 1, OT_NUM_INDEX));
    OT_TRY(ot_num_rank(c, 1, x->rank));
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", 0), x->rank, &axis));
    for (uint32_t k = 0; k < x->rank; k++)
        if (k != axis && index->dims[k] > x->dims[k])
            return ot_call_fail(c, "the indices have %lld elements along axis %u, the data %lld",
                                (long long)index->dims[k], k, (long long)x->dims[k]);
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, index->dims));
    int64_t n = ot_num_count(index);
    for (int64_t i = 0; i < n; i++) {
        int64_t from = 0;
        OT_TRY(ot_mv_index(c, ot_nd_int(index, i), x->dims[axis], &at));
        for (uint32_t k = 0; k < x->rank; k++) from += (k == axis ? at : pos[k]) * x->strides[k];
        memcpy(ot_mv_at(c->out[0], i), ot_mv_at(x, from), ot_mv_size(x));
        (void)ot_num_next(x->rank, index->dims, pos);
    }
    return OT_OK;
}

/* ---- GatherND ---- */

static ot_status gather_nd_check(ot_call *c, int64_t batch)
{
    const ot_nd *x = c->in[0], *index = c->in[1];
    OT_TRY(ot_num_type(c, 1, OT_NUM_INDEX));
    if (x->rank == 0 || index->rank == 0)
        return ot_call_fail(c, "its inputs need at least one dimension");
    if (batch < 0 || batch >= x->rank || batch >= index->rank)
        return ot_call_fail(c, "batch_dims %lld is out of range", (long long)batch);
    int64_t m = index->dims[index->rank - 1];
    if (m > (int64_t)x->rank - batch)
        return ot_call_fail(c, "indices of %lld coordinates for %lld dimensions", (long long)m,
                            (long long)x->rank - batch);
    for (uint32_t k = 0; k < batch; k++)
        if (x->dims[k] != index->dims[k])
            return ot_call_fail(c, "data and indices differ in batch dimension %u", k);
    return OT_OK;
}

/* Each tuple of m indices names a slice of x; the first `batch` dimensions are common to both. */
ot_status ot_mv_gather_nd(ot_call *c)
{
    int64_t dims[2 * OT_RANK_MAX], at, batch = ot_attr_int(c->node, "batch_dims", 0);
    uint32_t rank = 0;
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(gather_nd_check(c, batch));
    const ot_nd *x = c->in[0], *index = c->in[1];
    uint32_t b = (uint32_t)batch, last = index->rank - 1, m = (uint32_t)index->dims[last];
    for (uint32_t k = 0; k < last; k++) dims[rank++] = index->dims[k];
    for (uint32_t k = b + m; k < x->rank; k++) dims[rank++] = x->dims[k];
    OT_TRY(ot_call_output(c, 0, x->dtype, rank, dims));
    if (ot_num_count(c->out[0]) == 0) return OT_OK;
    int64_t n = product(index->dims, 0, last), per_batch = product(index->dims, b, last);
    int64_t slice = product(x->dims, b + m, x->rank), whole = b > 0 ? x->strides[b - 1] : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t from = i / per_batch * whole;
        for (uint32_t j = 0; j < m; j++) {
            OT_TRY(ot_mv_index(c, ot_nd_int(index, i * m + j), x->dims[b + j], &at));
            from += at * x->strides[b + j];
        }
        memcpy(ot_mv_at(c->out[0], i * slice), ot_mv_at(x, from), (size_t)slice * ot_mv_size(x));
    }
    return OT_OK;
}

/* ---- Compress ---- */

/* The slices along the axis (or, without one, the elements) whose condition holds; a short
 * condition is false further on. */
ot_status ot_mv_compress(ot_call *c)
{
    int64_t dims[OT_RANK_MAX], kept = 0;
    uint32_t axis = 0;
    OT_TRY(ot_call_need(c, 2));
    const ot_nd *x = c->in[0], *condition = c->in[1];
    bool flat = !ot_attr_find(c->node, "axis");
    OT_TRY(ot_num_type(c, 1, OT_NUM_BIT(OT_BOOL)));
    OT_TRY(ot_num_rank(c, 1, 1));
    if (!flat) OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", 0), x->rank, &axis));
    int64_t size = flat ? ot_num_count(x) : x->dims[axis], n = condition->dims[0];
    for (int64_t i = 0; i < n; i++) kept += ot_nd_int(condition, i);
    if (n > size)
        return ot_call_fail(c, "%lld conditions for %lld elements", (long long)n, (long long)size);
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = kept;
    OT_TRY(ot_call_output(c, 0, x->dtype, flat ? 1 : x->rank, dims));
    if (ot_num_count(c->out[0]) == 0) return OT_OK;
    int64_t before = flat ? 1 : product(x->dims, 0, axis),
            after = flat ? 1 : product(x->dims, axis + 1, x->rank), to = 0;
    for (int64_t b = 0; b < before; b++)
        for (int64_t i = 0; i < n; i++) {
            if (!ot_nd_int(condition, i)) continue;
            memcpy(ot_mv_at(c->out[0], to), ot_mv_at(x, (b * size + i) * after),
                   (size_t)after * ot_mv_size(x));
            to += after;
        }
    return OT_OK;
}
