/* Known contents of operators that make, pick or rearrange elements. */
#include "shape.h"

/* Contents of input k together with its value; false when the contents or the shape are unknown. */
static bool operand(const ot_infer *c, uint32_t k, const ot_known **known, const ot_value **v)
{
    *known = ot_shape_known(c, k);
    *v = ot_shape_in(c, k);
    int64_t n;
    return *known != NULL && ot_value_elems(*v, &n) && n == (*known)->n;
}

static bool copy_all(ot_infer *c, ot_known_buf *b)
{
    const ot_known *k;
    const ot_value *x;
    if (!operand(c, 0, &k, &x) || k->n != b->n) return false;
    for (uint32_t e = 0; e < b->n; e++) ot_known_copy(b, e, k, e);
    return true;
}

static bool shape_of(ot_infer *c, ot_known_buf *b)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int32_t start, end;
    if (x == NULL) return false;
    ot_shape_shape_range(c->n, x->rank, &start, &end);
    if (b->n != (uint32_t)(end - start)) return false;
    for (int32_t a = start; a < end; a++)
        if (x->dims[a] >= 0) ot_known_set_int(b, OT_I64, (uint32_t)(a - start), x->dims[a]);
    return true;
}

static bool size_of(ot_infer *c, ot_known_buf *b)
{
    const ot_value *x = ot_shape_in(c, 0);
    int64_t n;
    if (!ot_value_elems(x, &n)) return false;
    ot_known_set_int(b, OT_I64, 0, n);
    return true;
}

static bool fill(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_attr *value = ot_attr_find(c->n, "value");
    ot_known one = {.valid = false};
    if (value != NULL && value->t != NULL &&
        (!ot_known_of_tensor(c, value->t, &one) || !one.valid || one.n < 1))
        return false;
    for (uint32_t e = 0; e < b->n; e++) {
        if (one.valid)
            ot_known_copy(b, e, &one, 0);
        else if (b->f != NULL)
            ot_known_set_float(b, v->dtype, e, 0.0);
        else
            return false;
    }
    return true;
}

static bool expand(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *k;
    const ot_value *x;
    if (!operand(c, 0, &k, &x) || x->rank > v->rank) return false;
    for (uint32_t e = 0; e < b->n; e++) ot_known_copy(b, e, k, ot_known_broadcast(v, x, e));
    return true;
}

static bool transpose(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *k;
    const ot_value *x;
    size_t n = 0;
    const int64_t *perm = ot_attr_ints(c->n, "perm", &n);
    if (!operand(c, 0, &k, &x) || x->rank != v->rank) return false;
    for (uint32_t e = 0; e < b->n; e++) {
        int64_t at[OT_RANK_MAX], from[OT_RANK_MAX];
        ot_known_unravel(v, e, at);
        for (int32_t a = 0; a < v->rank; a++)
            from[perm == NULL ? v->rank - 1 - a : perm[a]] = at[a];
        ot_known_copy(b, e, k, ot_known_ravel(x, from));
    }
    return true;
}

/* Attribute axis (already checked by the shape rule) in [0, rank). */
static int32_t axis_of(const ot_node *n, int32_t rank, int64_t dflt)
{
    int64_t axis = ot_attr_int(n, "axis", dflt);
    return (int32_t)(axis < 0 ? axis + rank : axis);
}

/* Pieces whose contents are unknown leave holes. */
static bool concat(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    if (v->rank < 1) return false;
    int32_t axis = axis_of(c->n, v->rank, 0);
    int64_t done = 0;
    bool any = false;
    for (uint32_t i = 0; i < c->n->n_in; i++) {
        const ot_known *k;
        const ot_value *x;
        bool has = operand(c, i, &k, &x);
        if (x == NULL || x->rank != v->rank || !ot_value_is_static(x)) return false;
        for (uint32_t s = 0; has && s < k->n; s++) {
            int64_t at[OT_RANK_MAX];
            ot_known_unravel(x, s, at);
            at[axis] += done;
            ot_known_copy(b, ot_known_ravel(v, at), k, s);
        }
        any = any || has;
        done += x->dims[axis];
    }
    return any;
}

static bool split(ot_infer *c, uint32_t part, const ot_value *v, ot_known_buf *b)
{
    const ot_known *k;
    const ot_value *x;
    if (!operand(c, 0, &k, &x) || x->rank < 1 || x->rank != v->rank) return false;
    int32_t axis = axis_of(c->n, x->rank, 0);
    int64_t done = 0;
    for (uint32_t p = 0; p < part; p++) {
        const ot_shp *before = &c->out[p]; /* also of omitted outputs */
        if (before->rank != x->rank || before->d[axis] < 0) return false;
        done += before->d[axis];
    }
    if (done + v->dims[axis] > x->dims[axis]) return false;
    for (uint32_t e = 0; e < b->n; e++) {
        int64_t at[OT_RANK_MAX];
        ot_known_unravel(v, e, at);
        at[axis] += done;
        ot_known_copy(b, e, k, ot_known_ravel(x, at));
    }
    return true;
}

static bool gather(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *k, *idx;
    const ot_value *x, *i;
    if (!operand(c, 0, &k, &x) || !operand(c, 1, &idx, &i) || idx->i == NULL || x->rank < 1)
        return false;
    int32_t axis = axis_of(c->n, x->rank, 0);
    for (uint32_t e = 0; e < b->n; e++) {
        int64_t at[OT_RANK_MAX], from[OT_RANK_MAX];
        ot_known_unravel(v, e, at);
        uint32_t s = ot_known_ravel(i, at + axis);
        if (!ot_known_has(idx, s)) continue;
        int64_t pick = idx->i[s];
        if (pick < 0) pick += x->dims[axis];
        if (pick < 0 || pick >= x->dims[axis]) continue; /* fails at run time */
        for (int32_t a = 0; a < x->rank; a++)
            from[a] = a < axis ? at[a] : a == axis ? pick : at[a - 1 + i->rank];
        ot_known_copy(b, e, k, ot_known_ravel(x, from));
    }
    return true;
}

/* starts/ends/axes/steps: the attribute before opset 10, else input k. */
static const int64_t *slice_list(const ot_infer *c, const char *attr, uint32_t k, size_t *n)
{
    return c->n->version < 10 ? ot_attr_ints(c->n, attr, n) : ot_shape_ints(c, k, n);
}

static bool slice(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *k;
    const ot_value *x;
    size_t n = 0, ne = 0, na = 0, ns = 0;
    const int64_t *starts = slice_list(c, "starts", 1, &n), *ends = slice_list(c, "ends", 2, &ne);
    const int64_t *axes = slice_list(c, "axes", 3, &na), *steps = slice_list(c, "steps", 4, &ns);
    if (!operand(c, 0, &k, &x) || x->rank != v->rank || starts == NULL || ends == NULL || n != ne)
        return false;
    if (c->n->version >= 10 && ((axes == NULL && ot_shape_in(c, 3) != NULL) ||
                                (steps == NULL && ot_shape_in(c, 4) != NULL)))
        return false;
    if ((axes != NULL && na != n) || (steps != NULL && ns != n) || n > (size_t)x->rank)
        return false;
    int64_t first[OT_RANK_MAX] = {0}, step[OT_RANK_MAX];
    for (int32_t a = 0; a < x->rank; a++) step[a] = 1;
    for (size_t e = 0; e < n; e++) {
        int64_t a = axes == NULL ? (int64_t)e : axes[e] < 0 ? axes[e] + x->rank : axes[e];
        if (a < 0 || a >= x->rank) return false;
        step[a] = steps == NULL ? 1 : steps[e];
        if (step[a] == 0 ||
            ot_shape_slice_range(x->dims[a], starts[e], ends[e], step[a], &first[a]) != v->dims[a])
            return false;
    }
    for (uint32_t e = 0; e < b->n; e++) {
        int64_t at[OT_RANK_MAX];
        ot_known_unravel(v, e, at);
        for (int32_t a = 0; a < x->rank; a++) {
            at[a] = first[a] + (at[a] == 0 ? 0 : at[a] * step[a]);
            if (at[a] < 0 || at[a] >= x->dims[a]) return false;
        }
        ot_known_copy(b, e, k, ot_known_ravel(x, at));
    }
    return true;
}

static bool tile(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *k;
    const ot_value *x;
    if (!operand(c, 0, &k, &x) || x->rank != v->rank) return false;
    for (uint32_t e = 0; e < b->n; e++) {
        int64_t at[OT_RANK_MAX];
        ot_known_unravel(v, e, at);
        for (int32_t a = 0; a < x->rank; a++) at[a] %= x->dims[a];
        ot_known_copy(b, e, k, ot_known_ravel(x, at));
    }
    return true;
}

static bool range(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *start = ot_shape_known(c, 0), *delta = ot_shape_known(c, 2);
    if (start == NULL || delta == NULL || start->n != 1 || delta->n != 1 || start->ok != NULL ||
        delta->ok != NULL)
        return false;
    for (uint32_t e = 0; e < b->n; e++) {
        int64_t step;
        if (b->f != NULL && start->f != NULL && delta->f != NULL)
            ot_known_set_float(b, v->dtype, e, start->f[0] + (double)e * delta->f[0]);
        else if (b->i != NULL && start->i != NULL && delta->i != NULL &&
                 ot_mul_i64(delta->i[0], e, &step) && ot_add_i64(start->i[0], step, &step))
            ot_known_set_int(b, v->dtype, e, step);
    }
    return true;
}

/* One of two values everywhere, the other where the position along the new axis is the index; a
 * negative index counts from the end, and one outside is nowhere. */
static bool one_hot(ot_infer *c, const ot_value *v, ot_known_buf *b)
{
    const ot_known *idx, *off_on = ot_shape_known(c, 2);
    const ot_value *i;
    if (!operand(c, 0, &idx, &i) || idx->i == NULL || off_on == NULL || off_on->n != 2 ||
        v->rank != i->rank + 1)
        return false;
    int32_t axis = axis_of(c->n, v->rank, -1);
    if (axis < 0 || axis >= v->rank) return false;
    for (uint32_t e = 0; e < b->n; e++) {
        int64_t at[OT_RANK_MAX], of[OT_RANK_MAX];
        ot_known_unravel(v, e, at);
        for (int32_t a = 0; a < i->rank; a++) of[a] = at[a < axis ? a : a + 1];
        uint32_t s = ot_known_ravel(i, of);
        if (!ot_known_has(idx, s)) continue;
        int64_t hot = idx->i[s] < 0 ? idx->i[s] + v->dims[axis] : idx->i[s];
        ot_known_copy(b, e, off_on, at[axis] == hot);
    }
    return true;
}

/* Data with rows replaced: indices [..., q] name places of the first q axes, updates hold what goes
 * there. */
static bool scatter_nd(ot_infer *c, ot_known_buf *b)
{
    const ot_known *k, *idx, *up;
    const ot_value *x, *i, *u;
    if (strcmp(ot_attr_str(c->n, "reduction", "none"), "none") != 0 || !copy_all(c, b))
        return false;
    if (!operand(c, 0, &k, &x) || !operand(c, 1, &idx, &i) || !operand(c, 2, &up, &u)) return false;
    if (i->rank < 1 || idx->i == NULL || idx->ok != NULL) return false;
    int64_t q = i->dims[i->rank - 1], rows = 0, inner;
    if (q < 1 || q > x->rank || !ot_product(x->dims + q, (size_t)(x->rank - q), &inner))
        return false;
    rows = idx->n / q;
    if (rows * inner != up->n) return false;
    for (int64_t r = 0; r < rows; r++) {
        int64_t place = 0;
        for (int64_t a = 0; a < q; a++) {
            int64_t p = idx->i[r * q + a];
            if (p < 0) p += x->dims[a];
            if (p < 0 || p >= x->dims[a]) return false;
            place = place * x->dims[a] + p;
        }
        for (int64_t e = 0; e < inner; e++)
            ot_known_copy(b, (uint32_t)(place * inner + e), up, (uint32_t)(r * inner + e));
    }
    return true;
}

bool ot_known_move(ot_infer *c, uint32_t k, const ot_value *v, ot_known_buf *b)
{
    if (k > 0 && c->n->op != OT_OP_Split) return false;
    switch ((int)c->n->op) {
    case OT_OP_Shape: return shape_of(c, b);
    case OT_OP_Size: return size_of(c, b);
    case OT_OP_ConstantOfShape: return fill(c, v, b);
    case OT_OP_Identity:
    case OT_OP_Reshape:
    case OT_OP_Flatten:
    case OT_OP_Squeeze:
    case OT_OP_Unsqueeze: return copy_all(c, b);
    case OT_OP_Expand: return expand(c, v, b);
    case OT_OP_Transpose: return transpose(c, v, b);
    case OT_OP_Concat: return concat(c, v, b);
    case OT_OP_Split: return split(c, k, v, b);
    case OT_OP_Gather: return gather(c, v, b);
    case OT_OP_Slice: return slice(c, v, b);
    case OT_OP_Tile: return tile(c, v, b);
    case OT_OP_Range: return range(c, v, b);
    case OT_OP_OneHot: return one_hot(c, v, b);
    case OT_OP_ScatterND: return scatter_nd(c, b);
    default: return false;
    }
}
