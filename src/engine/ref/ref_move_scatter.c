/* Operators that write updates into a copy of their first input: ScatterElements (and Scatter),
 * ScatterND, TensorScatter.
 *
 * With a reduction the copy is held as numbers until all updates are in, so that 16-bit floats
 * are rounded once.
 */
#include "ref_move.h"

typedef enum scatter_mode {
    SCATTER_SET,
    SCATTER_ADD,
    SCATTER_MUL,
    SCATTER_MIN,
    SCATTER_MAX
} scatter_mode;

/* Where updates go. */
typedef struct scatter_target {
    scatter_mode mode;
    ot_nd *y;
    const ot_nd *updates;
    double *f;  /* floats: the elements of y, with a reduction */
    int64_t *i; /* integers and bool, likewise */
} scatter_target;

static ot_status scatter_begin(ot_call *c, scatter_target *t)
{
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *name = ot_attr_str(c->node, "reduction", "none");
    const ot_nd *x = c->in[0];
    unsigned k = 0;
    while (k < 5 && strcmp(name, names[k]) != 0) k++;
    if (k == 5) return ot_call_fail(c, "reduction '%.40s' is unknown", name);
    *t = (scatter_target){.mode = (scatter_mode)k, .updates = c->in[2]};
    if (t->mode != SCATTER_SET) OT_TRY(ot_num_type(c, 0, OT_NUM_ALL));
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, x->dims));
    t->y = c->out[0];
    size_t bytes = (size_t)ot_num_count(x) * ot_mv_size(x);
    if (bytes) memcpy(t->y->data, x->data, bytes);
    if (t->mode == SCATTER_SET) return OT_OK;
    if (ot_num_is(x->dtype, OT_NUM_FLOATS))
        t->f = ot_num_doubles(c, x);
    else
        t->i = ot_num_ints(c, x);
    return t->f || t->i ? OT_OK : OT_E_NOMEM;
}

static double combine_float(scatter_mode mode, double a, double b)
{
    switch (mode) {
    case SCATTER_ADD: return a + b;
    case SCATTER_MUL: return a * b;
    case SCATTER_MIN: return b < a ? b : a;
    case SCATTER_MAX: return b > a ? b : a;
    default: return b;
    }
}

/* Integers wrap; u64 travels as the bits of an int64. */
static int64_t combine_int(scatter_mode mode, int64_t a, int64_t b, bool is_u64)
{
    bool less = is_u64 ? (uint64_t)b < (uint64_t)a : b < a;
    switch (mode) {
    case SCATTER_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case SCATTER_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case SCATTER_MIN: return less ? b : a;
    case SCATTER_MAX: return less || a == b ? a : b;
    default: return b;
    }
}

/* Elements [at, at + n) of the output take the updates [from, from + n). */
static void scatter_put(scatter_target *t, int64_t at, int64_t from, int64_t n)
{
    if (t->mode == SCATTER_SET) {
        memcpy(ot_mv_at(t->y, at), ot_mv_at(t->updates, from), (size_t)n * ot_mv_size(t->y));
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        if (t->f)
            t->f[at + k] = combine_float(t->mode, t->f[at + k], ot_nd_double(t->updates, from + k));
        else
            t->i[at + k] = combine_int(t->mode, t->i[at + k], ot_nd_int(t->updates, from + k),
                                       t->y->dtype == OT_U64);
    }
}

static void scatter_end(scatter_target *t)
{
    int64_t n = t->mode == SCATTER_SET ? 0 : ot_num_count(t->y);
    for (int64_t k = 0; k < n; k++) {
        if (t->f)
            ot_num_put(t->y, k, t->f[k]);
        else
            ot_num_put_int(t->y, k, t->i[k]);
    }
}

/* ---- ScatterElements ---- */

/* y[p, with index[p] in place of p's coordinate on the axis] = updates[p] */
ot_status ot_mv_scatter_elements(ot_call *c)
{
    scatter_target t;
    int64_t pos[OT_RANK_MAX] = {0}, at;
    uint32_t axis;
    OT_TRY(ot_call_need(c, 3));
    const ot_nd *x = c->in[0], *index = c->in[1];
    OT_TRY(ot_num_type(c, 1, OT_NUM_INDEX));
    OT_TRY(ot_num_same_type(c, 2, 0));
    OT_TRY(ot_num_rank(c, 1, x->rank));
    OT_TRY(ot_num_dims(c, 2, index->rank, index->dims));
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", 0), x->rank, &axis));
    for (uint32_t k = 0; k < x->rank; k++)
        if (k != axis && index->dims[k] > x->dims[k])
            return ot_call_fail(c, "the indices have %lld elements along axis %u, the data %lld",
                                (long long)index->dims[k], k, (long long)x->dims[k]);
    OT_TRY(scatter_begin(c, &t));
    int64_t n = ot_num_count(index);
    for (int64_t i = 0; i < n; i++) {
        int64_t to = 0;
        OT_TRY(ot_mv_index(c, ot_nd_int(index, i), x->dims[axis], &at));
        for (uint32_t k = 0; k < x->rank; k++) to += (k == axis ? at : pos[k]) * x->strides[k];
        scatter_put(&t, to, i, 1);
        (void)ot_num_next(x->rank, index->dims, pos);
    }
    scatter_end(&t);
    return OT_OK;
}

/* ---- ScatterND ---- */

/* Updates have the shape of the tuples, then that of the slices which a tuple names. */
static ot_status scatter_nd_check(ot_call *c)
{
    const ot_nd *x = c->in[0], *index = c->in[1];
    int64_t dims[2 * OT_RANK_MAX];
    uint32_t rank = 0;
    OT_TRY(ot_num_type(c, 1, OT_NUM_INDEX));
    OT_TRY(ot_num_same_type(c, 2, 0));
    if (x->rank == 0 || index->rank == 0)
        return ot_call_fail(c, "its inputs need at least one dimension");
    int64_t m = index->dims[index->rank - 1];
    if (m > x->rank)
        return ot_call_fail(c, "indices of %lld coordinates for %u dimensions", (long long)m,
                            x->rank);
    for (uint32_t k = 0; k + 1 < index->rank; k++) dims[rank++] = index->dims[k];
    for (uint32_t k = (uint32_t)m; k < x->rank; k++) dims[rank++] = x->dims[k];
    return ot_num_dims(c, 2, rank, dims);
}

ot_status ot_mv_scatter_nd(ot_call *c)
{
    scatter_target t;
    int64_t n, slice, at;
    OT_TRY(ot_call_need(c, 3));
    OT_TRY(scatter_nd_check(c));
    const ot_nd *x = c->in[0], *index = c->in[1];
    OT_TRY(scatter_begin(c, &t));
    if (ot_num_count(t.updates) == 0) return OT_OK;
    uint32_t last = index->rank - 1, m = (uint32_t)index->dims[last];
    if (!ot_product(index->dims, last, &n) || !ot_product(x->dims + m, x->rank - m, &slice))
        return ot_call_fail(c, "its dimensions overflow");
    for (int64_t i = 0; i < n; i++) {
        int64_t to = 0;
        for (uint32_t j = 0; j < m; j++) {
            OT_TRY(ot_mv_index(c, ot_nd_int(index, i * m + j), x->dims[j], &at));
            to += at * x->strides[j];
        }
        scatter_put(&t, to, i * slice, slice);
    }
    scatter_end(&t);
    return OT_OK;
}

/* ---- TensorScatter ---- */

static ot_status tensor_scatter_check(ot_call *c, uint32_t *axis, bool *circular)
{
    const ot_nd *x = c->in[0], *u = c->in[1];
    const char *mode = ot_attr_str(c->node, "mode", "linear");
    OT_TRY(ot_num_same_type(c, 1, 0));
    OT_TRY(ot_num_rank(c, 1, x->rank));
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", -2), x->rank, axis));
    if (*axis == 0) return ot_call_fail(c, "its axis is the batch dimension");
    OT_TRY(ot_num_type(c, 2, OT_NUM_INDEX));
    OT_TRY(ot_num_dims(c, 2, 1, x->dims));
    for (uint32_t k = 0; k < x->rank; k++)
        if (k == *axis ? u->dims[k] > x->dims[k] : u->dims[k] != x->dims[k])
            return ot_call_fail(c, "dimension %u of the update is %lld, that of the cache %lld", k,
                                (long long)u->dims[k], (long long)x->dims[k]);
    *circular = strcmp(mode, "circular") == 0;
    if (!*circular && strcmp(mode, "linear") != 0)
        return ot_call_fail(c, "mode '%.40s' is unknown", mode);
    return OT_OK;
}

/* The update of each batch goes to its place on the axis, row by row. */
ot_status ot_mv_tensor_scatter(ot_call *c)
{
    uint32_t axis;
    bool circular;
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(tensor_scatter_check(c, &axis, &circular));
    const ot_nd *x = c->in[0], *u = c->in[1], *where = ot_num_in(c, 2);
    scatter_target t = {.mode = SCATTER_SET, .updates = u};
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, x->dims));
    t.y = c->out[0];
    if (ot_num_count(x) == 0) return OT_OK;
    memcpy(t.y->data, x->data, (size_t)ot_num_count(x) * ot_mv_size(x));
    if (ot_num_count(u) == 0) return OT_OK;
    int64_t after = x->strides[axis], size = x->dims[axis], n = u->dims[axis],
            rows = ot_num_count(x) / (size * after);
    for (int64_t r = 0; r < rows; r++) {
        int64_t start = where ? ot_nd_int(where, r / (rows / x->dims[0])) : 0;
        if (start < 0 || (!circular && start > size - n))
            return ot_call_fail(c, "write index %lld is out of range", (long long)start);
        for (int64_t s = 0; s < n; s++)
            scatter_put(&t, (r * size + (start % size + s) % size) * after, (r * n + s) * after,
                        after);
    }
    return OT_OK;
}
