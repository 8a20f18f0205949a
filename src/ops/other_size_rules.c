/* What each operator is asked at another size, but for those in other_size_move.c. See
 * other_size.h.
 *
 * Operators without constants that speak of extents pass: convolutions, reductions, Concat,
 * Transpose... What does not fit there is an error of their shape rules.
 */
#include "other_size.h"

#include <math.h>

#define SMALL_INPUT 16 /* smaller extents of inputs (a batch) are looked like by too many numbers */
#define FEW         8  /* elements of a constant that may be a size, or a reciprocal of one */

/* The operand does not follow the size: a constant, or what is computed without resized inputs. */
static bool is_constant(const ot_infer *c, uint32_t k)
{
    if (k >= c->n->n_in || c->n->in[k] == OT_NONE) return false;
    return !c->other->depends[c->n->in[k]];
}

static ot_status refuse_constant(ot_infer *c, uint32_t k, const char *rule)
{
    return ot_size_refuse(c, "'%.200s', which does not follow the size, %s",
                          c->g->values[c->n->in[k]].name, rule);
}

/* ---- operands that broadcast ---- */

/* Constant k has the old extent of an axis, counted from the last, of operand j, which moved. */
static ot_status check_aligned(ot_infer *c, uint32_t k, uint32_t j)
{
    const ot_value *v = ot_shape_ranked(c, k), *x = ot_shape_ranked(c, j);
    if (v == NULL || x == NULL) return OT_OK;
    for (int32_t back = 1; back <= v->rank && back <= x->rank; back++) {
        int64_t have = v->dims[v->rank - back];
        if (have == 1 || !ot_size_moved(c, c->n->in[j], x->rank - back)) continue;
        if (!v->is_const)
            return ot_size_refuse(
                c, "%s'%.200s' keeps its size of %lld along axis %d, '%.200s' has %lld there now%s",
                v->is_input ? "input " : "", v->name, (long long)have, v->rank - back, x->name,
                (long long)x->dims[x->rank - back], v->is_input ? ": give it a --shape, too" : "");
        return ot_size_refuse(c,
                              "the constant '%.200s' has the old size baked in: axis %d has %lld "
                              "elements, '%.200s' has %lld there now",
                              v->name, v->rank - back, (long long)have, x->name,
                              (long long)x->dims[x->rank - back]);
    }
    return OT_OK;
}

static ot_status check_all_aligned(ot_infer *c, uint32_t first)
{
    for (uint32_t k = first; k < c->n->n_in; k++)
        for (uint32_t j = 0; is_constant(c, k) && j < c->n->n_in; j++)
            if (j != k && !is_constant(c, j)) OT_TRY(check_aligned(c, k, j));
    return OT_OK;
}

/* Constant k has an axis of an extent that any axis of another operand had and has no more: for
 * operators that say nothing of how their operands belong together. */
static ot_status check_any_axis(ot_infer *c, uint32_t k)
{
    const ot_value *v = ot_shape_ranked(c, k);
    for (uint32_t j = 0; v != NULL && j < c->n->n_in; j++) {
        const ot_value *x = ot_shape_ranked(c, j);
        for (int32_t a = 0; x != NULL && a < x->rank; a++)
            for (int32_t b = 0; ot_size_moved(c, c->n->in[j], a) && b < v->rank; b++)
                if (v->dims[b] > 1 && v->dims[b] == c->other->was[c->n->in[j]].dims[a])
                    return refuse_constant(c, k, "has an axis of the old size");
    }
    return OT_OK;
}

/* ---- numbers that are sizes ---- */

/* Whether x is d, or 1 / d, as far as single precision tells. */
static bool is_size(double x, double d) { return x == d || (x > 0 && fabs(x * d - 1) < 1e-6); }

/* Extents of inputs that are no more, and products of two. */
static bool is_input_size(const ot_infer *c, double x)
{
    const ot_other_size *o = c->other;
    for (uint32_t k = 0; k < o->n_gone_inputs; k++) {
        if (o->gone[k] < SMALL_INPUT) continue;
        if (is_size(x, (double)o->gone[k])) return true;
        for (uint32_t j = 0; j <= k; j++)
            if (o->gone[j] >= SMALL_INPUT && is_size(x, (double)o->gone[k] * (double)o->gone[j]))
                return true;
    }
    return false;
}

/* Of positions: any extent that is no more, and the last position of one. */
static bool is_any_size(const ot_infer *c, double x)
{
    for (uint32_t k = 0; k < c->other->n_gone; k++) {
        int64_t e = c->other->gone[k];
        if (e > 2 && (is_size(fabs(x), (double)e) || is_size(fabs(x), (double)e - 1))) return true;
    }
    return is_input_size(c, fabs(x));
}

/* Last positions count where values are clipped to a picture; 255 is what pixels go up to. */
static bool is_last_position(const ot_infer *c, double x)
{
    for (uint32_t k = 0; k < c->other->n_gone_inputs; k++)
        if (c->other->gone[k] >= SMALL_INPUT && x != 255 && x == (double)(c->other->gone[k] - 1))
            return true;
    return false;
}

/* Elements that the operator's other operand, a sum, was added up of, at the old size; 0: it is
 * none. */
static int64_t summed(const ot_infer *c, uint32_t k)
{
    if (k >= c->n->n_in || c->n->in[k] == OT_NONE) return 0;
    ot_id by = c->g->values[c->n->in[k]].producer;
    if (by == OT_NONE || c->g->nodes[by].op != OT_OP_ReduceSum || c->g->nodes[by].n_in < 1)
        return 0;
    ot_id from = c->g->nodes[by].in[0];
    const ot_was *in = &c->other->was[from], *out = &c->other->was[c->n->in[k]];
    int64_t n, m;
    if (!ot_size_any_moved(c, from) || in->rank < 0 || out->rank < 0) return 0;
    if (!ot_product(in->dims, (size_t)in->rank, &n) ||
        !ot_product(out->dims, (size_t)out->rank, &m) || m == 0)
        return 0;
    return n / m;
}

static double element(const ot_known *k, uint32_t e)
{
    return k->f != NULL ? k->f[e] : (double)k->i[e];
}

/* A small constant k of arithmetic that holds a size. */
static ot_status check_number(ot_infer *c, uint32_t k, bool index, int64_t sum)
{
    const ot_known *v = ot_shape_known(c, k);
    bool scales = c->n->op == OT_OP_Mul || c->n->op == OT_OP_Div,
         clips = c->n->op == OT_OP_Clip || c->n->op == OT_OP_Min;
    if (v == NULL || v->n > FEW) return OT_OK;
    for (uint32_t e = 0; e < v->n; e++) {
        double x = ot_known_has(v, e) ? element(v, e) : 0;
        bool size = (scales || clips) && is_input_size(c, x);
        if (size || (index && is_any_size(c, x)) || (clips && is_last_position(c, x)) ||
            (scales && sum > 1 && is_size(x, (double)sum)))
            return ot_size_refuse(c, "the constant '%.200s' may be of the old size: %g%s",
                                  c->g->values[c->n->in[k]].name, x,
                                  index ? ", met by positions" : "");
    }
    return OT_OK;
}

static bool all_known(const ot_infer *c)
{
    for (uint32_t k = 0; k < c->n->n_in; k++)
        if (c->n->in[k] != OT_NONE && ot_shape_known(c, k) == NULL) return false;
    return true;
}

static ot_status check_pointwise(ot_infer *c)
{
    int64_t sum = 0;
    bool index = false;
    OT_TRY(check_all_aligned(c, 0));
    if (all_known(c)) return OT_OK; /* arithmetic of shapes: computed anew */
    for (uint32_t k = 0; k < c->n->n_in; k++) {
        if (c->n->in[k] == OT_NONE) continue;
        index |= c->other->index[c->n->in[k]];
        sum = ot_max(sum, summed(c, k));
    }
    for (uint32_t k = 0; k < c->n->n_in; k++)
        if (is_constant(c, k)) OT_TRY(check_number(c, k, index, sum));
    if (c->n->op == OT_OP_Clip && ot_attr_find(c->n, "max") != NULL) {
        double max = (double)ot_attr_float(c->n, "max", 0);
        if (is_input_size(c, max) || is_last_position(c, max))
            return ot_size_refuse(c, "attribute max, %g, may be of the old size", max);
    }
    return OT_OK;
}

/* ---- pooling ---- */

/* A window over all of the old axis, or as many equal windows as an adaptive pooling makes, has
 * the size in its kernel. */
static ot_status check_pool(ot_infer *c)
{
    size_t n = 0, ns = 0, np = 0;
    const int64_t *kernel = ot_attr_ints(c->n, "kernel_shape", &n),
                  *strides = ot_attr_ints(c->n, "strides", &ns);
    const int64_t *pads = ot_attr_ints(c->n, "pads", &np);
    const ot_was *in = &c->other->was[c->n->in[0]], *out = &c->other->was[c->n->out[0]];
    for (size_t k = 0; kernel != NULL && k < n; k++) {
        int32_t a = (int32_t)k + 2;
        if (!ot_size_moved(c, c->n->in[0], a) || a >= out->rank || kernel[k] < 2) continue;
        bool padded = pads != NULL && np == 2 * n && (pads[k] != 0 || pads[k + n] != 0);
        bool apart = strides != NULL && ns == n && strides[k] == kernel[k];
        bool adaptive = apart && !padded && kernel[k] >= 4 && out->dims[a] < kernel[k] &&
                        in->dims[a] == kernel[k] * out->dims[a];
        if (out->dims[a] == 1 || adaptive)
            return ot_size_refuse(c,
                                  "attribute kernel_shape has the old size baked in: windows of "
                                  "%lld, %lld of them over the %lld "
                                  "elements that axis %d had",
                                  (long long)kernel[k], (long long)out->dims[a],
                                  (long long)in->dims[a], a);
    }
    return OT_OK;
}

/* ---- picking and placing ---- */

static int32_t axis_of(const ot_infer *c, int64_t dflt)
{
    int64_t axis = ot_attr_int(c->n, "axis", dflt);
    const ot_value *x = ot_shape_ranked(c, 0);
    return x == NULL ? -1 : (int32_t)(axis < 0 ? axis + x->rank : axis);
}

/* Fixed places of an axis that moved: only the first and the last mean the same. */
static ot_status check_gather(ot_infer *c)
{
    int32_t axis = axis_of(c, 0);
    const ot_value *x = ot_shape_ranked(c, 0), *i = ot_shape_ranked(c, 1);
    const ot_known *at = ot_shape_known(c, 1);
    if (x == NULL || i == NULL || axis < 0 || axis >= x->rank) return OT_OK;
    if (is_constant(c, 1) && ot_size_moved(c, c->n->in[0], axis)) {
        bool ends = at != NULL && at->i != NULL;
        for (uint32_t e = 0; ends && e < at->n; e++)
            ends = ot_known_has(at, e) && (at->i[e] == 0 || at->i[e] == -1);
        if (!ends) return refuse_constant(c, 1, "names places of an axis that moves with the size");
    }
    if (!is_constant(c, 0) || x->dims[axis] < 0) return OT_OK;
    for (uint32_t e = 0; at != NULL && at->i != NULL && e < at->n; e++)
        if (ot_known_has(at, e) && (at->i[e] >= x->dims[axis] || at->i[e] < -x->dims[axis]))
            return refuse_constant(c, 0, "is a table that is too short for the new size");
    for (int32_t a = 0; at == NULL && a < i->rank; a++) { /* one row for each place */
        int64_t was = ot_size_moved(c, c->n->in[1], a) ? c->other->was[c->n->in[1]].dims[a] : -1;
        if (was >= 0 && was <= x->dims[axis] && i->dims[a] > x->dims[axis])
            return refuse_constant(c, 0, "is a table that is too short for the new size");
    }
    return OT_OK;
}

/* Indices that do not follow the size, into what does, or the other way round. */
static ot_status check_scatter(ot_infer *c)
{
    uint32_t updates = c->n->n_in > 2 ? 2 : 0;
    if (is_constant(c, 1) && ot_size_any_moved(c, c->n->in[0]))
        return refuse_constant(c, 1, "names places of an axis that moves with the size");
    if (updates && is_constant(c, 0) && ot_size_any_moved(c, c->n->in[updates]))
        return refuse_constant(c, 0, "is filled with what moves with the size");
    return OT_OK;
}

/* An operand that has to be of one element for each of an axis that moved. */
static ot_status check_per_element(ot_infer *c, uint32_t k)
{
    if (is_constant(c, k) && ot_size_any_moved(c, c->n->in[0]))
        return refuse_constant(c, k, "speaks of elements that move with the size");
    return OT_OK;
}

/* A number in operand k that was the old extent of `axis`. */
static ot_status check_count(ot_infer *c, uint32_t k, int32_t axis)
{
    ot_size_list l = ot_size_list_of(c, NULL, k);
    int64_t n;
    if (!ot_size_moved(c, c->n->in[0], axis) || !ot_size_fixed(&l, 0) || !ot_size_item(&l, 0, &n))
        return OT_OK;
    if (n != c->other->was[c->n->in[0]].dims[axis]) return OT_OK;
    return refuse_constant(c, k, "was the old extent of its axis");
}

static ot_status check_one_hot(ot_infer *c)
{
    ot_size_list l = ot_size_list_of(c, NULL, 1);
    int64_t depth;
    if (!ot_size_fixed(&l, 0) || !ot_size_item(&l, 0, &depth) || !c->other->index[c->n->in[0]])
        return OT_OK;
    return ot_size_is_gone(c, depth)
               ? refuse_constant(c, 1, "was an extent that moves with the size")
               : OT_OK;
}

/* Attribute or operand that says the whole output's extents. */
static ot_status check_output_shape(ot_infer *c, const char *attr, uint32_t k)
{
    ot_size_list l = ot_size_list_of(c, attr, k);
    if (l.n == 0) return OT_OK;
    for (uint32_t e = 0; e < l.n; e++)
        if (ot_size_fixed(&l, e) && ot_size_any_moved(c, c->n->in[0]))
            return ot_size_refuse(c, "%s '%.200s' has the old size baked in", l.what, l.name);
    return OT_OK;
}

/* ---- the rest ---- */

/* Scales for each element of an axis (or blocks of it). */
static ot_status check_quantize(ot_infer *c)
{
    const ot_value *s = ot_shape_ranked(c, 1), *x = ot_shape_ranked(c, 0);
    if (s == NULL || x == NULL || s->rank == 0 || !is_constant(c, 1)) return OT_OK;
    if (s->rank == x->rank && s->rank > 1) return check_aligned(c, 1, 0);
    if (s->rank == 1 && s->dims[0] != 1 && ot_size_moved(c, c->n->in[0], axis_of(c, 1)))
        return refuse_constant(c, 1, "has an element for each of an axis that moves with the size");
    return OT_OK;
}

/* Lengths and states of what recurs. */
static ot_status check_recurrent(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *r = ot_shape_ranked(c, 2);
    int32_t batch = ot_attr_int(c->n, "layout", 0) ? 0 : 1;
    if (is_constant(c, 4) && ot_size_any_moved(c, c->n->in[0]))
        return refuse_constant(c, 4, "holds lengths of the old size");
    for (uint32_t k = 5; k <= 6; k++) { /* not checked by the shape rule */
        const ot_value *h = ot_shape_ranked(c, k);
        if (h == NULL || x == NULL || r == NULL || h->rank != 3 || x->rank != 3 || r->rank != 3)
            continue;
        if (h->dims[2] != r->dims[2] || h->dims[1 - batch] != r->dims[0] ||
            h->dims[batch] != x->dims[batch])
            return ot_size_refuse(c, "'%.200s' is no state for the new size", h->name);
    }
    return OT_OK;
}

/* Broadcast batches: an axis that shrank to 1 takes a constant's extent without an error. */
static ot_status check_batches(ot_infer *c)
{
    for (uint32_t k = 0; k < c->n->n_in; k++) {
        const ot_value *x = ot_shape_ranked(c, k);
        for (int32_t a = 0; x != NULL && a < x->rank; a++) {
            if (x->dims[a] != 1 || !ot_size_moved(c, c->n->in[k], a)) continue;
            for (uint32_t j = 0; j < c->n->n_in; j++)
                if (j != k && is_constant(c, j)) OT_TRY(check_any_axis(c, j));
        }
    }
    return OT_OK;
}

/* A grid has no size of its own where the image has moved. */
static ot_status check_grid(ot_infer *c)
{
    if (c->n->n_in > 1 && ot_size_any_moved(c, c->n->in[0]) && !ot_size_any_moved(c, c->n->in[1]))
        return refuse_constant(c, 1, "is a grid of the old size");
    return OT_OK;
}

/* Operators outside ops.def whose shapes are known. */
static ot_status check_extra(ot_infer *c)
{
    for (uint32_t k = 0; k < c->n->n_in; k++)
        if (is_constant(c, k)) OT_TRY(check_any_axis(c, k));
    const ot_value *x = ot_shape_ranked(c, 0);
    if (x != NULL && strcmp(c->n->op_type, "MatMulNBits") == 0 &&
        ot_size_moved(c, c->n->in[0], x->rank - 1))
        return refuse_constant(c, 1, "has rows of the old size");
    if (x != NULL && strcmp(c->n->op_type, "DFT") == 0 && is_constant(c, 1) &&
        ot_size_any_moved(c, c->n->in[0]))
        return refuse_constant(c, 1, "is a length of the old size");
    return OT_OK;
}

/* Operators that no access kind tells apart. */
static ot_status check_by_name(ot_infer *c)
{
    switch ((int)c->n->op) {
    case OT_OP_GatherElements:
    case OT_OP_GatherND:
    case OT_OP_Scatter:
    case OT_OP_ScatterElements:
    case OT_OP_ScatterND: return check_scatter(c);
    case OT_OP_TopK: return check_count(c, 1, axis_of(c, -1));
    case OT_OP_OneHot: return check_one_hot(c);
    case OT_OP_GridSample: return check_grid(c);
    case OT_OP_DeformConv: return is_constant(c, 2) ? check_any_axis(c, 2) : OT_OK;
    case OT_OP_Compress:
    case OT_OP_ReverseSequence:
    case OT_OP_RoiAlign: return check_per_element(c, 1);
    case OT_OP_MaxUnpool: return check_output_shape(c, NULL, 2);
    case OT_OP_LSTM:
    case OT_OP_GRU:
    case OT_OP_RNN: return check_recurrent(c);
    default: return OT_OK;
    }
}

ot_status ot_size_rule(ot_infer *c)
{
    if (c->n->op == OT_OP_OPAQUE) return check_extra(c);
    if (c->n->n_in == 0 || c->n->in[0] == OT_NONE || c->n->n_out == 0 || c->n->out[0] == OT_NONE)
        return OT_OK;
    switch (ot_op_access(c->n->op)) {
    case OT_ACC_POINTWISE: return check_pointwise(c);
    case OT_ACC_POOL: return check_pool(c);
    case OT_ACC_NORM:
        return c->n->op == OT_OP_LayerNormalization || c->n->op == OT_OP_RMSNormalization
                   ? check_all_aligned(c, 1)
                   : OT_OK;
    case OT_ACC_CONVT: return check_output_shape(c, "output_shape", UINT32_MAX);
    case OT_ACC_MATMUL:
    case OT_ACC_GEMM:
    case OT_ACC_EINSUM: return check_batches(c);
    case OT_ACC_ATTENTION:
        for (uint32_t k = 3; k < c->n->n_in; k++)
            if (is_constant(c, k)) OT_TRY(check_any_axis(c, k));
        return check_batches(c);
    case OT_ACC_QUANT: return check_quantize(c);
    case OT_ACC_RESHAPE: return c->n->op == OT_OP_Reshape ? ot_size_reshape(c) : OT_OK;
    case OT_ACC_EXPAND:
    case OT_ACC_TILE: return ot_size_expand(c);
    case OT_ACC_SLICE:
        return c->n->op == OT_OP_Crop ? check_output_shape(c, "scale", UINT32_MAX)
                                      : ot_size_slice(c);
    case OT_ACC_RESIZE: return ot_size_resize(c);
    case OT_ACC_GATHER: return check_gather(c);
    default: return check_by_name(c);
    }
}
