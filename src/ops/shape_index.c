/* Shape rules of operators that pick or place elements: Slice, Pad, the Gather family, and those
 * whose output size depends on the data (NonZero, Unique, Compress...), of which at least the rank
 * is known.
 */
#include "shape.h"

/* A small list operand: an attribute in old versions, an input (maybe with holes) in new ones. */
typedef struct list {
    bool given;
    int64_t n;        /* -1: unknown */
    const int64_t *v; /* NULL: contents unknown */
    const bool *ok;   /* NULL: all of v known */
} list;

static list read_list(const ot_infer *c, const char *attr, uint32_t input)
{
    list l = {.n = -1};
    size_t n = 0;
    l.v = attr == NULL ? NULL : ot_attr_ints(c->n, attr, &n);
    if (l.v != NULL) {
        l.given = true;
        l.n = (int64_t)n;
        return l;
    }
    const ot_value *x = ot_shape_in(c, input);
    const ot_known *k = ot_shape_known(c, input);
    l.given = x != NULL;
    if (x != NULL && x->rank == 1) l.n = x->dims[0];
    if (k != NULL && k->i != NULL && x != NULL && x->rank == 1) {
        l.v = k->i;
        l.ok = k->ok;
    }
    return l;
}

/* Element e; false when it is unknown. */
static bool item(const list *l, int64_t e, int64_t *out)
{
    if (l->v == NULL || (l->ok != NULL && !l->ok[e])) return false;
    *out = l->v[e];
    return true;
}

/* Axes of a list of n entries: named by `axes`, else 0..n-1. *known false: not determined. */
static ot_status entry_axes(ot_infer *c, const list *axes, int64_t n, int32_t rank,
                            uint32_t at[OT_RANK_MAX], bool *known)
{
    bool seen[OT_RANK_MAX] = {false};
    *known = false;
    if (n > rank)
        return ot_shape_fail(c, "names %lld axes, the input has rank %d", (long long)n, rank);
    if (axes->given && axes->n >= 0 && axes->n != n)
        return ot_shape_fail(c, "axes has %lld values, expected %lld", (long long)axes->n,
                             (long long)n);
    for (int64_t e = 0; e < n; e++) {
        int64_t a = e;
        if (axes->given && !item(axes, e, &a)) return OT_OK;
        OT_TRY(ot_shape_axis(c, "axis", a, rank, &at[e]));
        if (seen[at[e]]) return ot_shape_fail(c, "axis %u is named twice", at[e]);
        seen[at[e]] = true;
    }
    *known = true;
    return OT_OK;
}

/* ---- Slice ---- */

int64_t ot_shape_slice_range(int64_t dim, int64_t start, int64_t end, int64_t step, int64_t *first)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    bool to_the_end = end == INT32_MAX || end == INT64_MAX; /* "None" of numpy, also backwards */
    if (start < 0) start += dim;
    if (to_the_end)
        end = step > 0 ? dim : -1;
    else if (end < 0)
        end += dim;
    start = ot_min(ot_max(start, 0), high);
    end = ot_min(ot_max(end, low), high);
    *first = start;
    if (step > 0) return end > start ? (end - start - 1) / step + 1 : 0;
    if (step == INT64_MIN) step = -INT64_MAX;
    return start > end ? (start - end - 1) / -step + 1 : 0;
}

ot_status ot_shape_slice(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (x == NULL) return OT_OK;
    bool inputs = c->n->version >= 10;
    if (inputs && c->n->n_in < 3) return ot_shape_fail(c, "needs inputs starts and ends");
    list starts = read_list(c, inputs ? NULL : "starts", 1),
         ends = read_list(c, inputs ? NULL : "ends", 2);
    list axes = read_list(c, inputs ? NULL : "axes", 3), steps = read_list(c, NULL, 4);
    if (!starts.given || !ends.given) return ot_shape_fail(c, "starts or ends is missing");
    int64_t n = starts.n >= 0 ? starts.n : ends.n, d[OT_RANK_MAX];
    uint32_t at[OT_RANK_MAX];
    bool known = false;
    if (starts.n >= 0 && ends.n >= 0 && starts.n != ends.n)
        return ot_shape_fail(c, "starts has %lld values, ends %lld", (long long)starts.n,
                             (long long)ends.n);
    if (steps.given && steps.n >= 0 && n >= 0 && steps.n != n)
        return ot_shape_fail(c, "starts has %lld values, steps %lld", (long long)n,
                             (long long)steps.n);
    if (n < 0 && axes.n >= 0) n = axes.n;
    if (n >= 0) OT_TRY(entry_axes(c, &axes, n, x->rank, at, &known));
    for (int32_t a = 0; a < x->rank; a++) d[a] = known ? x->dims[a] : OT_DIM_UNKNOWN;
    for (int64_t e = 0; known && e < n; e++) {
        int64_t s, t, step = 1, first, *dim = &d[at[e]], have = x->dims[at[e]];
        bool ok = item(&starts, e, &s) && item(&ends, e, &t) &&
                  (!steps.given || item(&steps, e, &step));
        if (ok && step == 0) return ot_shape_fail(c, "steps[%lld] is 0", (long long)e);
        *dim = ok && have >= 0 ? ot_shape_slice_range(have, s, t, step, &first) : OT_DIM_UNKNOWN;
    }
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    return OT_OK;
}

/* ---- Pad ---- */

/* Crop of opsets 1 to 9: border (left, top, right, bottom) is cut off a picture; scale (height,
 * width) instead of right and bottom. */
ot_status ot_shape_crop(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    size_t n = 0, n_scale = 0;
    const int64_t *b = ot_attr_ints(c->n, "border", &n),
                  *scale = ot_attr_ints(c->n, "scale", &n_scale);
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (b == NULL || n != 4)
        return ot_shape_fail(c, "attribute border has %zu values, expected 4", n);
    if (x == NULL) return OT_OK;
    if (x->rank != 4) return ot_shape_fail(c, "the input has rank %d, expected 4", x->rank);
    int64_t d[4] = {x->dims[0], x->dims[1], OT_DIM_UNKNOWN, OT_DIM_UNKNOWN};
    for (int k = 0; k < 2; k++) {
        int64_t lo = b[1 - k], hi = b[3 - k], in = x->dims[2 + k];
        bool sized = scale != NULL && n_scale == 2;
        if (lo < 0 || hi < 0 || lo > OT_SHAPE_DIM_MAX || hi > OT_SHAPE_DIM_MAX)
            return ot_shape_fail(c, "border is out of range");
        if (sized && (scale[k] < 1 || scale[k] > OT_SHAPE_DIM_MAX))
            return ot_shape_fail(c, "scale is out of range");
        if (in < 0) continue;
        d[2 + k] = sized ? scale[k] : in - lo - hi;
        if (d[2 + k] < 1 || lo + d[2 + k] > in)
            return ot_shape_fail(c, "border leaves nothing of axis %d", 2 + k);
    }
    ot_shape_set(c, 0, x->dtype, 4, d);
    return OT_OK;
}

ot_status ot_shape_pad(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (x == NULL) return OT_OK;
    const char *name = c->n->version >= 11 ? NULL : c->n->version >= 2 ? "pads" : "paddings";
    list pads = read_list(c, name, 1), axes = read_list(c, NULL, 3);
    if (!pads.given) return ot_shape_fail(c, "pads are missing");
    int64_t d[OT_RANK_MAX], n = axes.given ? axes.n : x->rank;
    uint32_t at[OT_RANK_MAX];
    bool known = false;
    if (n >= 0) OT_TRY(entry_axes(c, &axes, n, x->rank, at, &known));
    if (n >= 0 && pads.n >= 0 && pads.n != 2 * n)
        return ot_shape_fail(c, "pads has %lld values, needs two for each of %lld axes",
                             (long long)pads.n, (long long)n);
    for (int32_t a = 0; a < x->rank; a++) d[a] = known ? x->dims[a] : OT_DIM_UNKNOWN;
    for (int64_t e = 0; known && e < n; e++) {
        int64_t lo, hi, *dim = &d[at[e]], have = *dim;
        *dim = OT_DIM_UNKNOWN;
        if (!item(&pads, e, &lo) || !item(&pads, n + e, &hi)) continue;
        if (lo > OT_SHAPE_DIM_MAX || lo < -OT_SHAPE_DIM_MAX || hi > OT_SHAPE_DIM_MAX ||
            hi < -OT_SHAPE_DIM_MAX)
            return ot_shape_fail(c, "pads (%lld, %lld) of axis %u are out of range", (long long)lo,
                                 (long long)hi, at[e]);
        if (have < 0) {
            if (lo == 0 && hi == 0) *dim = have;
            continue;
        }
        *dim = have + lo + hi;
        if (*dim < 0)
            return ot_shape_fail(c, "pads (%lld, %lld) leave a negative extent on axis %u",
                                 (long long)lo, (long long)hi, at[e]);
    }
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    return OT_OK;
}

/* ---- Gather family ---- */

ot_status ot_shape_gather(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *i = ot_shape_ranked(c, 1);
    uint32_t axis;
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (x == NULL) return OT_OK;
    OT_TRY(ot_shape_axis(c, "axis", ot_attr_int(c->n, "axis", 0), x->rank, &axis));
    if (i == NULL) return OT_OK;
    int32_t rank = x->rank - 1 + i->rank, at = 0;
    if (rank > OT_RANK_MAX)
        return ot_shape_fail(c, "the result has rank %d, more than %d", rank, OT_RANK_MAX);
    int64_t d[OT_RANK_MAX];
    for (uint32_t a = 0; a < axis; a++) d[at++] = x->dims[a];
    for (int32_t a = 0; a < i->rank; a++) d[at++] = i->dims[a];
    for (int32_t a = (int32_t)axis + 1; a < x->rank; a++) d[at++] = x->dims[a];
    ot_shape_set(c, 0, x->dtype, rank, d);
    return OT_OK;
}

/* As many rows of x as there are indices. */
ot_status ot_shape_gather_rows(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *rows = ot_shape_ranked(c, 1),
                   *i = ot_shape_ranked(c, 2);
    uint32_t axis;
    int64_t d[OT_RANK_MAX];
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (x == NULL || i == NULL) return OT_OK;
    OT_TRY(ot_shape_axis(c, "axis", ot_attr_int(c->n, "axis", 0), x->rank, &axis));
    if (i->rank != 1 || (rows && rows->rank != 1))
        return ot_shape_fail(c, "numbers of rows and indices must be lists");
    memcpy(d, x->dims, (size_t)x->rank * sizeof *d);
    d[axis] = i->dims[0];
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    return OT_OK;
}

ot_status ot_shape_gather_elements(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *i = ot_shape_ranked(c, 1);
    if (x != NULL && i != NULL && x->rank != i->rank)
        return ot_shape_fail(c, "input has rank %d, indices have rank %d", x->rank, i->rank);
    ot_shape_set_like(c, 0, ot_shape_dtype(c, 0), i);
    return OT_OK;
}

ot_status ot_shape_gather_nd(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *i = ot_shape_ranked(c, 1);
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (x == NULL || i == NULL) return OT_OK;
    if (x->rank < 1 || i->rank < 1)
        return ot_shape_fail(c, "data and indices must have rank 1 or more");
    int64_t batch = ot_attr_int(c->n, "batch_dims", 0), tuple = i->dims[i->rank - 1],
            d[OT_RANK_MAX];
    if (batch < 0 || batch >= x->rank || batch >= i->rank)
        return ot_shape_fail(c, "batch_dims is %lld, ranks are %d and %d", (long long)batch,
                             x->rank, i->rank);
    if (tuple < 0) return OT_OK;
    if (tuple < 1 || tuple > x->rank - batch)
        return ot_shape_fail(c, "index tuples have %lld values, data has rank %d", (long long)tuple,
                             x->rank);
    int32_t from = (int32_t)(batch + tuple), rank = i->rank - 1 + x->rank - from;
    if (rank > OT_RANK_MAX)
        return ot_shape_fail(c, "the result has rank %d, more than %d", rank, OT_RANK_MAX);
    for (int32_t a = 0; a < i->rank - 1; a++) d[a] = i->dims[a];
    for (int32_t a = from; a < x->rank; a++) d[i->rank - 1 + a - from] = x->dims[a];
    ot_shape_set(c, 0, x->dtype, rank, d);
    return OT_OK;
}

ot_status ot_shape_one_hot(ot_infer *c)
{
    const ot_value *i = ot_shape_ranked(c, 0);
    ot_dtype type = ot_shape_dtype(c, 2);
    ot_shape_set_type(c, 0, type);
    if (i == NULL) return OT_OK;
    if (i->rank + 1 > OT_RANK_MAX) return ot_shape_fail(c, "indices have rank %d", i->rank);
    uint32_t axis;
    OT_TRY(ot_shape_axis(c, "axis", ot_attr_int(c->n, "axis", -1), i->rank + 1, &axis));
    int64_t depth = OT_DIM_UNKNOWN, d[OT_RANK_MAX];
    const ot_known *k = ot_shape_known(c, 1);
    if (!ot_shape_int(c, 1, &depth) && k != NULL && k->f != NULL && k->n == 1 && k->ok == NULL &&
        k->f[0] >= 0 && k->f[0] < 1e9)
        depth = (int64_t)k->f[0];
    if (depth < OT_DIM_UNKNOWN) return ot_shape_fail(c, "depth is %lld", (long long)depth);
    for (int32_t a = 0, from = 0; a <= i->rank; a++)
        d[a] = (uint32_t)a == axis ? depth : i->dims[from++];
    ot_shape_set(c, 0, type, i->rank + 1, d);
    return OT_OK;
}

/* ---- data-dependent sizes ---- */

ot_status ot_shape_top_k(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    ot_shape_set_type(c, 1, OT_I64);
    if (x == NULL) return OT_OK;
    if (x->rank == 0) return ot_shape_fail(c, "input is a scalar");
    uint32_t axis;
    OT_TRY(ot_shape_axis(c, "axis", ot_attr_int(c->n, "axis", -1), x->rank, &axis));
    int64_t k = OT_DIM_UNKNOWN, d[OT_RANK_MAX];
    if (c->n->version < 10)
        k = ot_attr_int(c->n, "k", OT_DIM_UNKNOWN);
    else if (ot_shape_int(c, 1, &k) && k < 0)
        return ot_shape_fail(c, "k is %lld", (long long)k);
    if (k < 0) k = OT_DIM_UNKNOWN;
    if (x->dims[axis] >= 0 && k > x->dims[axis])
        return ot_shape_fail(c, "k is %lld, the axis has extent %lld", (long long)k,
                             (long long)x->dims[axis]);
    for (int32_t a = 0; a < x->rank; a++) d[a] = (uint32_t)a == axis ? k : x->dims[a];
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    ot_shape_set(c, 1, OT_I64, x->rank, d);
    return OT_OK;
}

ot_status ot_shape_non_zero(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int64_t d[2] = {x == NULL ? OT_DIM_UNKNOWN : ot_max(x->rank, 1), OT_DIM_UNKNOWN};
    ot_shape_set(c, 0, OT_I64, 2, d);
    return OT_OK;
}

ot_status ot_shape_compress(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int64_t d[OT_RANK_MAX] = {OT_DIM_UNKNOWN};
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), 1, d);
    if (ot_attr_find(c->n, "axis") == NULL) return OT_OK;
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), -1, NULL);
    if (x == NULL) return OT_OK;
    uint32_t axis;
    OT_TRY(ot_shape_axis(c, "axis", ot_attr_int(c->n, "axis", 0), x->rank, &axis));
    for (int32_t a = 0; a < x->rank; a++) d[a] = (uint32_t)a == axis ? OT_DIM_UNKNOWN : x->dims[a];
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    return OT_OK;
}

ot_status ot_shape_unique(ot_infer *c)
{
    OT_TRY(ot_shape_compress(c)); /* the same shape rule */
    for (uint32_t k = 1; k < 4; k++) ot_shape_set(c, k, OT_I64, 1, NULL);
    return OT_OK;
}

ot_status ot_shape_nms(ot_infer *c)
{
    int64_t d[2] = {OT_DIM_UNKNOWN, 3};
    ot_shape_set(c, 0, OT_I64, 2, d);
    return OT_OK;
}
