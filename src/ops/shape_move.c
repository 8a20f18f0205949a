/* Shape rules of operators that rearrange or create data: Reshape and its relatives, Transpose,
 * Concat, Split, Expand, Tile, and the makers of shapes and constants.
 *
 * Shape operands are read through ot_known, whose elements may be unknown one by one: Reshape to
 * (batch, -1, 64) with a free batch still gives rank 3 and a last dim of 64.
 */
#include "shape.h"

#include <math.h>

/* Element e of k as an extent: OT_DIM_UNKNOWN when not known. */
static int64_t dim_of(const ot_known *k, uint32_t e)
{
    return ot_known_has(k, e) ? k->i[e] : OT_DIM_UNKNOWN;
}

/* Length of the 1-D shape operand k, or -1. */
static int64_t operand_length(const ot_infer *c, uint32_t k)
{
    const ot_value *v = ot_shape_ranked(c, k);
    return v != NULL && v->rank == 1 ? v->dims[0] : -1;
}

/* ---- Reshape ---- */

/* Product of the known dims of d but `skip`; false when another is unknown, or on overflow. */
static bool product_but(const int64_t *d, int32_t rank, int32_t skip, int64_t *out)
{
    *out = 1;
    for (int32_t k = 0; k < rank; k++)
        if (k != skip && (d[k] < 0 || !ot_mul_i64(*out, d[k], out))) return false;
    return true;
}

/* Output dims of a Reshape to `t` (holes in `hole`): resolves 0 and the single -1 (or the single
 * hole). */
static ot_status resolve_reshape(ot_infer *c, const ot_value *x, const int64_t *t, const bool *hole,
                                 int32_t rank, int64_t *d)
{
    bool allow_zero = ot_attr_int(c->n, "allowzero", 0) != 0;
    int32_t auto_at = -1, holes = 0, hole_at = -1;
    for (int32_t k = 0; k < rank; k++) {
        d[k] = OT_DIM_UNKNOWN;
        if (hole[k]) {
            holes++;
            hole_at = k;
            continue;
        }
        if (t[k] < -1)
            return ot_shape_fail(c, "dim %d of the new shape is %lld", k, (long long)t[k]);
        if (t[k] == -1 && auto_at >= 0)
            return ot_shape_fail(c, "the new shape has more than one -1");
        if (t[k] == -1)
            auto_at = k;
        else if (t[k] != 0 || allow_zero)
            d[k] = t[k];
        else if (x != NULL && k >= x->rank)
            return ot_shape_fail(
                c, "dim %d of the new shape is 0 (copy), but the input has rank %d", k, x->rank);
        else if (x != NULL)
            d[k] = x->dims[k];
    }
    int64_t total, rest;
    if (x == NULL || !product_but(x->dims, x->rank, -1, &total)) return OT_OK;
    int32_t open = auto_at >= 0 ? auto_at : hole_at;
    if (open >= 0) {
        if (holes > (auto_at < 0 ? 1 : 0) || !product_but(d, rank, open, &rest) ||
            (rest == 0 && hole_at >= 0))
            return OT_OK;
        if (rest == 0 ? total != 0 : total % rest != 0)
            return ot_shape_fail(c, "%lld elements do not fit the new shape", (long long)total);
        d[open] = rest == 0 ? 0 : total / rest;
        return OT_OK;
    }
    if (product_but(d, rank, -1, &rest) && rest != total)
        return ot_shape_fail(c, "the input has %lld elements, the new shape %lld", (long long)total,
                             (long long)rest);
    return OT_OK;
}

ot_status ot_shape_reshape(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_dtype type = ot_shape_dtype(c, 0);
    ot_shape_set_type(c, 0, type);
    size_t n = 0;
    const int64_t *attr = ot_attr_ints(c->n, "shape", &n); /* before opset 5 */
    const ot_known *known = ot_shape_known(c, 1);
    int64_t t[OT_RANK_MAX] = {0}, d[OT_RANK_MAX];
    bool hole[OT_RANK_MAX] = {false};
    if (attr == NULL) {
        int64_t length = operand_length(c, 1);
        if (c->n->n_in < 2) return ot_shape_fail(c, "has no shape operand");
        if (length < 0) return OT_OK;
        n = (size_t)length;
    }
    if (n > OT_RANK_MAX)
        return ot_shape_fail(c, "the new shape has %zu dims, more than %d", n, OT_RANK_MAX);
    for (uint32_t k = 0; k < n; k++) {
        hole[k] = attr == NULL && (known == NULL || known->i == NULL || !ot_known_has(known, k));
        if (!hole[k]) t[k] = attr != NULL ? attr[k] : known->i[k];
    }
    OT_TRY(resolve_reshape(c, x, t, hole, (int32_t)n, d));
    ot_shape_set(c, 0, type, (int32_t)n, d);
    return OT_OK;
}

ot_status ot_shape_flatten(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int64_t d[2] = {OT_DIM_UNKNOWN, OT_DIM_UNKNOWN};
    int64_t axis = ot_attr_int(c->n, "axis", 1);
    if (x != NULL) {
        if (axis < -x->rank || axis > x->rank)
            return ot_shape_fail(c, "axis %lld is not in [%d, %d]", (long long)axis, -x->rank,
                                 x->rank);
        int32_t a = (int32_t)(axis < 0 ? axis + x->rank : axis);
        if (!product_but(x->dims, a, -1, &d[0])) d[0] = OT_DIM_UNKNOWN;
        const int64_t *behind = a > 0 ? x->dims + a : x->dims; /* a scalar may have no dims */
        if (!product_but(behind, x->rank - a, -1, &d[1])) d[1] = OT_DIM_UNKNOWN;
    }
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), 2, d);
    return OT_OK;
}

/* ---- Squeeze, Unsqueeze ---- */

ot_status ot_shape_squeeze(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    bool given, mask[OT_RANK_MAX] = {false};
    const int64_t *axes;
    size_t n = 0;
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    ot_shape_axes_of(c, "axes", 1, &given, &axes, &n);
    if (x == NULL) return OT_OK;
    if (given && axes == NULL) { /* only the number of axes is known */
        if (n <= (size_t)x->rank) ot_shape_set(c, 0, x->dtype, x->rank - (int32_t)n, NULL);
        return OT_OK;
    }
    if (given) OT_TRY(ot_shape_axes(c, "axes", axes, n, x->rank, mask));
    int64_t d[OT_RANK_MAX];
    int32_t rank = 0;
    for (int32_t k = 0; k < x->rank; k++) {
        if (!given && x->dims[k] < 0) return OT_OK; /* may or may not be 1 */
        if (!given) mask[k] = x->dims[k] == 1;
        if (mask[k] && x->dims[k] >= 0 && x->dims[k] != 1)
            return ot_shape_fail(c, "axis %d has extent %lld, only 1 can be squeezed", k,
                                 (long long)x->dims[k]);
        if (!mask[k]) d[rank++] = x->dims[k];
    }
    ot_shape_set(c, 0, x->dtype, rank, d);
    return OT_OK;
}

ot_status ot_shape_unsqueeze(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    bool given, mask[OT_RANK_MAX];
    const int64_t *axes;
    size_t n = 0;
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    ot_shape_axes_of(c, "axes", 1, &given, &axes, &n);
    if (!given) return ot_shape_fail(c, "axes are missing");
    if (x == NULL || n > OT_RANK_MAX) return OT_OK;
    int32_t rank = x->rank + (int32_t)n;
    if (rank > OT_RANK_MAX)
        return ot_shape_fail(c, "the result has rank %d, more than %d", rank, OT_RANK_MAX);
    if (axes == NULL) {
        ot_shape_set(c, 0, x->dtype, rank, NULL);
        return OT_OK;
    }
    OT_TRY(ot_shape_axes(c, "axes", axes, n, rank, mask));
    int64_t d[OT_RANK_MAX];
    for (int32_t k = 0, from = 0; k < rank; k++) d[k] = mask[k] ? 1 : x->dims[from++];
    ot_shape_set(c, 0, x->dtype, rank, d);
    return OT_OK;
}

/* ---- Transpose, Concat, Split ---- */

ot_status ot_shape_transpose(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (x == NULL) return OT_OK;
    size_t n = 0;
    const int64_t *perm = ot_attr_ints(c->n, "perm", &n);
    bool seen[OT_RANK_MAX] = {false};
    int64_t d[OT_RANK_MAX];
    if (perm != NULL && n != (size_t)x->rank)
        return ot_shape_fail(c, "perm has %zu values, the input has rank %d", n, x->rank);
    for (int32_t k = 0; k < x->rank; k++) {
        int64_t from = perm == NULL ? x->rank - 1 - k : perm[k];
        if (from < 0 || from >= x->rank || seen[from])
            return ot_shape_fail(c, "perm[%d] is %lld: perm must name each axis of rank %d once", k,
                                 (long long)from, x->rank);
        seen[from] = true;
        d[k] = x->dims[from];
    }
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    return OT_OK;
}

/* Join x (input k) to o along `axis`. */
static ot_status concat_one(ot_infer *c, const ot_value *x, uint32_t k, uint32_t axis, ot_shp *o)
{
    if (x->rank != o->rank)
        return ot_shape_fail(c, "input %u has rank %d, others have rank %d", k, x->rank, o->rank);
    for (int32_t a = 0; a < o->rank; a++) {
        if ((uint32_t)a != axis) {
            if (!ot_shape_merge(&o->d[a], x->dims[a]))
                return ot_shape_fail(c, "input %u has extent %lld on axis %d, others have %lld", k,
                                     (long long)x->dims[a], a, (long long)o->d[a]);
        } else if (x->dims[a] < 0 || o->d[a] < 0) {
            o->d[a] = OT_DIM_UNKNOWN;
        } else if (!ot_add_i64(o->d[a], x->dims[a], &o->d[a])) {
            return ot_shape_fail(c, "the output size overflows");
        }
    }
    return OT_OK;
}

ot_status ot_shape_concat(ot_infer *c)
{
    const ot_value *ranked = NULL;
    for (uint32_t k = 0; k < c->n->n_in && ranked == NULL; k++) ranked = ot_shape_ranked(c, k);
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (ranked == NULL) return OT_OK;
    if (ranked->rank == 0) return ot_shape_fail(c, "scalars cannot be concatenated");
    uint32_t axis;
    int64_t named = ot_attr_int(c->n, "axis", c->n->version < 4 ? 1 : INT64_MIN);
    if (named == INT64_MIN) return ot_shape_fail(c, "attribute axis is missing");
    OT_TRY(ot_shape_axis(c, "axis", named, ranked->rank, &axis));
    ot_shp o = {.dtype = ot_shape_dtype(c, 0), .rank = ranked->rank};
    for (int32_t a = 0; a < o.rank; a++) o.d[a] = (uint32_t)a == axis ? 0 : OT_DIM_UNKNOWN;
    for (uint32_t k = 0; k < c->n->n_in; k++) {
        const ot_value *x = ot_shape_ranked(c, k);
        if (x == NULL)
            o.d[axis] = OT_DIM_UNKNOWN;
        else
            OT_TRY(concat_one(c, x, k, axis, &o));
    }
    ot_shape_set(c, 0, o.dtype, o.rank, o.d);
    return OT_OK;
}

/* Extent of part k of n when `total` is split into equal parts (the last may be smaller since 18).
 */
static int64_t equal_part(int64_t total, int64_t n, int64_t k)
{
    if (total < 0) return OT_DIM_UNKNOWN;
    int64_t chunk = ot_ceil_div(total, n);
    return ot_max(0, ot_min(chunk, total - ot_min(total, chunk * k)));
}

/* Part sizes given as `sizes` add up to the axis. */
static ot_status check_parts(ot_infer *c, const int64_t *sizes, size_t n, int64_t total)
{
    int64_t sum = 0;
    if (n != c->n->n_out)
        return ot_shape_fail(c, "split has %zu values, the node has %u outputs", n, c->n->n_out);
    for (size_t k = 0; k < n; k++)
        if (sizes[k] < 0 || !ot_add_i64(sum, sizes[k], &sum))
            return ot_shape_fail(c, "split[%zu] is %lld", k, (long long)sizes[k]);
    if (total >= 0 && sum != total)
        return ot_shape_fail(c, "split adds up to %lld, the axis has extent %lld", (long long)sum,
                             (long long)total);
    return OT_OK;
}

ot_status ot_shape_split(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    uint32_t axis, parts = c->n->n_out;
    for (uint32_t k = 0; k < parts; k++) ot_shape_set_type(c, k, ot_shape_dtype(c, 0));
    if (x == NULL || parts == 0) return OT_OK;
    OT_TRY(ot_shape_axis(c, "axis", ot_attr_int(c->n, "axis", 0), x->rank, &axis));
    bool given;
    const int64_t *sizes;
    size_t n = 0;
    int64_t total = x->dims[axis], d[OT_RANK_MAX];
    int64_t wanted = ot_attr_int(c->n, "num_outputs", parts);
    ot_shape_axes_of(c, "split", 1, &given, &sizes, &n);
    if (sizes != NULL) OT_TRY(check_parts(c, sizes, n, total));
    if (wanted != parts)
        return ot_shape_fail(c, "num_outputs is %lld, the node has %u outputs", (long long)wanted,
                             parts);
    if (!given && c->n->version < 18 && total >= 0 && total % parts != 0)
        return ot_shape_fail(c, "extent %lld does not split into %u equal parts", (long long)total,
                             parts);
    for (int32_t a = 0; a < x->rank; a++) d[a] = x->dims[a];
    for (uint32_t k = 0; k < parts; k++) {
        d[axis] = sizes != NULL ? sizes[k] : given ? OT_DIM_UNKNOWN : equal_part(total, parts, k);
        ot_shape_set(c, k, x->dtype, x->rank, d);
    }
    return OT_OK;
}

/* ---- Expand, Tile ---- */

ot_status ot_shape_expand(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    const ot_known *t = ot_shape_known(c, 1);
    int64_t length = operand_length(c, 1), d[OT_RANK_MAX];
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (x == NULL || length < 0) return OT_OK;
    if (length > OT_RANK_MAX)
        return ot_shape_fail(c, "the new shape has %lld dims", (long long)length);
    for (uint32_t k = 0; k < length; k++) {
        d[k] = t == NULL || t->i == NULL ? OT_DIM_UNKNOWN : dim_of(t, k);
        if (t != NULL && t->i != NULL && ot_known_has(t, k) && d[k] < 0)
            return ot_shape_fail(c, "dim %u of the new shape is %lld", k, (long long)d[k]);
    }
    ot_shp o = {.dtype = x->dtype, .rank = x->rank};
    for (int32_t a = 0; a < x->rank; a++) o.d[a] = x->dims[a];
    if (!ot_shape_broadcast(&o, (int32_t)length, d))
        return ot_shape_fail(c, "the input does not broadcast to the new shape");
    ot_shape_set(c, 0, o.dtype, o.rank, o.d);
    return OT_OK;
}

ot_status ot_shape_tile(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    const ot_known *t = ot_shape_known(c, 1);
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (x == NULL) return OT_OK;
    int64_t length = operand_length(c, 1), d[OT_RANK_MAX];
    if (c->n->version >= 6 && length >= 0 && length != x->rank)
        return ot_shape_fail(c, "repeats has %lld values, the input has rank %d", (long long)length,
                             x->rank);
    bool usable = c->n->version >= 6 && t != NULL && t->i != NULL && length == x->rank;
    for (int32_t k = 0; k < x->rank; k++) {
        d[k] = OT_DIM_UNKNOWN;
        if (!usable || !ot_known_has(t, (uint32_t)k)) continue;
        if (t->i[k] < 0) return ot_shape_fail(c, "repeats[%d] is %lld", k, (long long)t->i[k]);
        if (x->dims[k] >= 0 && !ot_mul_i64(x->dims[k], t->i[k], &d[k]))
            return ot_shape_fail(c, "the output size overflows");
    }
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    return OT_OK;
}

/* ---- makers of shapes and constants ---- */

void ot_shape_shape_range(const ot_node *n, int32_t rank, int32_t *start, int32_t *end)
{
    int64_t s = ot_attr_int(n, "start", 0), e = ot_attr_int(n, "end", rank);
    if (s < 0) s += rank;
    if (e < 0) e += rank;
    *start = (int32_t)ot_min(ot_max(s, 0), rank);
    *end = (int32_t)ot_max(*start, ot_min(ot_max(e, 0), rank));
}

ot_status ot_shape_shape(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int32_t start = 0, end = 0;
    if (x != NULL) ot_shape_shape_range(c->n, x->rank, &start, &end);
    int64_t d[1] = {x == NULL ? OT_DIM_UNKNOWN : end - start};
    ot_shape_set(c, 0, OT_I64, 1, d);
    return OT_OK;
}

ot_status ot_shape_size(ot_infer *c)
{
    ot_shape_set(c, 0, OT_I64, 0, NULL);
    return OT_OK;
}

ot_status ot_shape_constant(ot_infer *c)
{
    static const struct {
        const char *name;
        ot_dtype type;
        bool list;
    } forms[] = {
        {"value_int", OT_I64, false},       {"value_ints", OT_I64, true},
        {"value_float", OT_F32, false},     {"value_floats", OT_F32, true},
        {"value_string", OT_STRING, false}, {"value_strings", OT_STRING, true},
    };
    const ot_attr *value = ot_attr_find(c->n, "value");
    if (value != NULL && value->kind == OT_ATTR_TENSOR && value->t != NULL) {
        if (value->t->rank <= OT_RANK_MAX)
            ot_shape_set(c, 0, value->t->dtype, (int32_t)value->t->rank, value->t->dims);
        return OT_OK;
    }
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
        const ot_attr *a = ot_attr_find(c->n, forms[k].name);
        if (a == NULL) continue;
        int64_t d[1] = {(int64_t)a->n};
        ot_shape_set(c, 0, forms[k].type, forms[k].list ? 1 : 0, d);
        return OT_OK;
    }
    return OT_OK; /* sparse_value, or a tensor that is not held: as stated */
}

ot_status ot_shape_constant_of_shape(ot_infer *c)
{
    const ot_attr *value = ot_attr_find(c->n, "value");
    ot_dtype type = value != NULL && value->t != NULL ? value->t->dtype : OT_F32;
    ot_shape_set_type(c, 0, type);
    int64_t length = operand_length(c, 0), d[OT_RANK_MAX];
    const ot_known *t = ot_shape_known(c, 0);
    if (length < 0) return OT_OK;
    if (length > OT_RANK_MAX) return ot_shape_fail(c, "the shape has %lld dims", (long long)length);
    for (uint32_t k = 0; k < length; k++) {
        d[k] = t == NULL || t->i == NULL ? OT_DIM_UNKNOWN : dim_of(t, k);
        if (t != NULL && t->i != NULL && ot_known_has(t, k) && d[k] < 0)
            return ot_shape_fail(c, "dim %u of the shape is %lld", k, (long long)d[k]);
    }
    ot_shape_set(c, 0, type, (int32_t)length, d);
    return OT_OK;
}

ot_status ot_shape_range(ot_infer *c)
{
    int64_t d[1] = {OT_DIM_UNKNOWN}, start, limit, delta;
    if (ot_shape_int(c, 0, &start) && ot_shape_int(c, 1, &limit) && ot_shape_int(c, 2, &delta)) {
        int64_t span;
        if (delta == 0) return ot_shape_fail(c, "delta is 0");
        if (ot_add_i64(limit, start == INT64_MIN ? INT64_MAX : -start, &span) &&
            delta != INT64_MIN) {
            int64_t room = delta > 0 ? span : -ot_max(span, -INT64_MAX),
                    step = delta > 0 ? delta : -delta;
            d[0] = room <= 0 ? 0 : (room - 1) / step + 1;
        }
    } else {
        const ot_known *k[3] = {ot_shape_known(c, 0), ot_shape_known(c, 1), ot_shape_known(c, 2)};
        bool floats = true;
        for (int i = 0; i < 3; i++)
            floats = floats && k[i] != NULL && k[i]->f != NULL && k[i]->n == 1 && k[i]->ok == NULL;
        if (floats && k[2]->f[0] != 0) {
            double count = ceil((k[1]->f[0] - k[0]->f[0]) / k[2]->f[0]);
            if (count < 1)
                d[0] = 0;
            else if (count < 1e15)
                d[0] = (int64_t)count;
        }
    }
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), 1, d);
    return OT_OK;
}

ot_status ot_shape_eye_like(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int64_t to = ot_attr_int(c->n, "dtype", 0);
    ot_dtype type = to > 0 && to <= OT_I2 ? (ot_dtype)to : ot_shape_dtype(c, 0);
    if (x != NULL && x->rank != 2)
        return ot_shape_fail(c, "input has rank %d, must have 2", x->rank);
    ot_shape_set(c, 0, type, 2, x == NULL ? NULL : x->dims);
    return OT_OK;
}
