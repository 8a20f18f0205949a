/* Contents of shape arithmetic as terms: Shape(x) -> Gather -> Mul -> Concat -> what Reshape,
 * Resize and Expand read.
 *
 * Values of rank 0 and 1 with few elements, integers, and floats that are whole numbers
 * (exporters compute sizes of Resize in floats).
 */
#include "access.h"
#include "shape.h"
#include "size_rules.h"

/* A float that is a whole number; NaN and what no integer holds are none. */
static bool whole(double v) { return v > -1e15 && v < 1e15 && v == (double)(int64_t)v; }

/* What is the same at every size. */
static bool constant(ot_sizing *x, ot_id id)
{
    const ot_value *v = &x->g->values[id];
    int64_t elems = 0, ints[OT_SIZE_CONTENT_MAX];
    double floats[OT_SIZE_CONTENT_MAX];
    const ot_node alone = {.n_in = 1, .in = &id};
    float real[OT_SIZE_CONTENT_MAX];
    if (v->overridable || !ot_value_elems(v, &elems) || elems > OT_SIZE_CONTENT_MAX) return false;
    const int64_t n = ot_acc_ints(x->g, &alone, 0, ints, OT_SIZE_CONTENT_MAX);
    const int64_t m = n >= 0 ? -1 : ot_acc_floats(x->g, &alone, 0, real, OT_SIZE_CONTENT_MAX);
    if (n < 0 && m < 0) return false;
    for (int64_t k = 0; k < m; k++) {
        floats[k] = (double)real[k];
        if (!whole(floats[k])) return false;
        ints[k] = (int64_t)floats[k];
    }
    const uint32_t count = (uint32_t)ot_max(n, m);
    ot_term *t = OT_NEW_N(x->a, ot_term, count + 1u);
    if (!t) {
        x->nomem = true;
        return false;
    }
    for (uint32_t k = 0; k < count; k++) t[k] = ot_term_const(x->t->terms, ints[k]);
    x->t->content[id] = t;
    x->t->n_content[id] = count;
    return true;
}

const ot_term *ot_sizing_content(const ot_sizing *x, const ot_node *n, uint32_t k, uint32_t *count)
{
    if (k >= n->n_in || n->in[k] == OT_NONE) return NULL;
    const ot_id v = n->in[k];
    if (!x->t->content[v] && !constant((ot_sizing *)x, v)) return NULL;
    *count = x->t->n_content[v];
    return x->t->content[v];
}

/* Room for the contents of n's first result. */
static ot_term *begin(ot_sizing *x, const ot_node *n, uint32_t count)
{
    if (count > OT_SIZE_CONTENT_MAX) return NULL;
    ot_term *t = OT_NEW_N(x->a, ot_term, count + 1u);
    if (!t) {
        x->nomem = true;
        return NULL;
    }
    x->t->content[n->out[0]] = t;
    x->t->n_content[n->out[0]] = count;
    return t;
}

static void shape_of(ot_sizing *x, const ot_node *n)
{
    const ot_term *d = ot_sizing_dims(x, n, 0);
    int32_t start, end;
    if (!d) return;
    ot_shape_shape_range(n, x->g->values[n->in[0]].rank, &start, &end);
    ot_term *t = begin(x, n, (uint32_t)(end - start));
    for (int32_t k = start; t && k < end; k++) t[k - start] = d[k];
}

static void size_of(ot_sizing *x, const ot_node *n)
{
    const ot_term *d = ot_sizing_dims(x, n, 0);
    if (!d) return;
    ot_term product = ot_term_const(x->t->terms, 1), *t = begin(x, n, 1);
    for (int32_t k = 0; k < x->g->values[n->in[0]].rank; k++)
        product = ot_term_mul(x->t->terms, product, d[k]);
    if (t) t[0] = product;
}

/* Numbers that floats and narrow integers hold exactly. */
static ot_term exact(const ot_sizing *x, const ot_node *n, ot_term t)
{
    const ot_dtype type = x->g->values[n->out[0]].dtype;
    const int64_t most = type == OT_F32 ? INT64_C(1) << 24 : type == OT_I32 ? INT32_MAX : INT64_MAX;
    if (t == OT_NONE || ot_term_most(x->t->terms, t) > most ||
        ot_term_least(x->t->terms, t) < -most)
        return OT_NONE;
    return t;
}

/* The same elements in another shape or type. A float becomes an integer by being cut off, and
 * is whole here. */
static void copy(ot_sizing *x, const ot_node *n)
{
    uint32_t count;
    const ot_term *from = ot_sizing_content(x, n, 0, &count);
    ot_term *t = from ? begin(x, n, count) : NULL;
    for (uint32_t k = 0; t && k < count; k++) t[k] = exact(x, n, from[k]);
}

static void gather(ot_sizing *x, const ot_node *n)
{
    uint32_t count, n_index;
    const ot_term *from = ot_sizing_content(x, n, 0, &count),
                  *index = ot_sizing_content(x, n, 1, &n_index);
    if (!from || !index || x->g->values[n->in[0]].rank != 1) return;
    ot_term *t = begin(x, n, n_index);
    for (uint32_t k = 0; t && k < n_index; k++) {
        int64_t at = 0;
        const bool fixed = ot_term_is_const(x->t->terms, index[k], &at);
        if (at < 0) at += count;
        t[k] = fixed && at >= 0 && at < count ? from[at] : OT_NONE;
    }
}

static void concat(ot_sizing *x, const ot_node *n)
{
    uint32_t total = 0, count;
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (!ot_sizing_content(x, n, k, &count) || x->g->values[n->in[k]].rank != 1) return;
        total += count;
        if (total > OT_SIZE_CONTENT_MAX) return;
    }
    ot_term *t = begin(x, n, total);
    for (uint32_t k = 0, at = 0; t && k < n->n_in; k++) {
        const ot_term *from = ot_sizing_content(x, n, k, &count);
        for (uint32_t j = 0; from && j < count; j++) t[at++] = from[j];
    }
}

/* One number of the list that operand k is, or attribute `attr` of old versions; dflt where it
 * is left out. */
static bool number(const ot_sizing *x, const ot_node *n, const char *attr, uint32_t k, int64_t dflt,
                   int64_t *out)
{
    size_t have = 0;
    int64_t v[2];
    const int64_t *a = attr ? ot_attr_ints(n, attr, &have) : NULL;
    *out = dflt;
    if (a) *out = have == 1 ? a[0] : dflt;
    if (a || k >= n->n_in || n->in[k] == OT_NONE) return !a || have == 1;
    if (ot_acc_ints(x->g, n, k, v, 1) != 1) return false;
    *out = v[0];
    return true;
}

static void slice(ot_sizing *x, const ot_node *n)
{
    uint32_t count;
    int64_t start, end, axis, step, first;
    const bool inputs = n->version >= 10;
    const ot_term *from = ot_sizing_content(x, n, 0, &count);
    if (!from || x->g->values[n->in[0]].rank != 1) return;
    if (!number(x, n, inputs ? NULL : "starts", 1, 0, &start) ||
        !number(x, n, inputs ? NULL : "ends", 2, 0, &end) ||
        !number(x, n, inputs ? NULL : "axes", 3, 0, &axis) || !number(x, n, NULL, 4, 1, &step) ||
        step == 0)
        return;
    const int64_t len = ot_shape_slice_range(count, start, end, step, &first);
    ot_term *t = begin(x, n, (uint32_t)len);
    for (int64_t k = 0; t && k < len; k++) t[k] = from[first + k * step];
}

static ot_term combine(ot_size_terms *s, const ot_node *n, bool floats, ot_term a, ot_term b)
{
    int64_t v;
    switch (n->op) {
    case OT_OP_Add: return ot_term_add(s, a, b);
    case OT_OP_Sub: return ot_term_sub(s, a, b);
    case OT_OP_Mul: return ot_term_mul(s, a, b);
    case OT_OP_Div:
        return floats && !(ot_term_is_const(s, b, &v) && v == 1) ? OT_NONE : ot_term_div(s, a, b);
    case OT_OP_Max: return ot_term_max(s, a, b);
    case OT_OP_Min: return ot_term_min(s, a, b);
    default: return OT_NONE;
    }
}

static void arithmetic(ot_sizing *x, const ot_node *n)
{
    uint32_t na, nb;
    const ot_term *a = ot_sizing_content(x, n, 0, &na), *b = ot_sizing_content(x, n, 1, &nb);
    const bool floats = x->g->values[n->out[0]].dtype == OT_F32;
    if (n->n_in != 2 || !a || !b || (na != nb && na != 1 && nb != 1)) return;
    if (x->g->values[n->in[0]].rank > 1 || x->g->values[n->in[1]].rank > 1) return;
    const uint32_t count = na > nb ? na : nb;
    ot_term *t = begin(x, n, count);
    for (uint32_t k = 0; t && k < count; k++)
        t[k] = exact(x, n, combine(x->t->terms, n, floats, a[na == 1 ? 0 : k], b[nb == 1 ? 0 : k]));
}

void ot_sizing_fill_content(ot_sizing *x, const ot_node *n)
{
    if (n->n_out == 0 || n->out[0] == OT_NONE || constant(x, n->out[0])) return;
    const ot_dtype type = x->g->values[n->out[0]].dtype;
    if (type != OT_I64 && type != OT_I32 && type != OT_F32) return;
    switch (n->op) {
    case OT_OP_Shape: shape_of(x, n); break;
    case OT_OP_Size: size_of(x, n); break;
    case OT_OP_Cast:
    case OT_OP_Identity:
    case OT_OP_Reshape:
    case OT_OP_Squeeze:
    case OT_OP_Unsqueeze:
    case OT_OP_Floor:
    case OT_OP_Ceil:
    case OT_OP_Round: copy(x, n); break;
    case OT_OP_Gather: gather(x, n); break;
    case OT_OP_Concat: concat(x, n); break;
    case OT_OP_Slice: slice(x, n); break;
    case OT_OP_Add:
    case OT_OP_Sub:
    case OT_OP_Mul:
    case OT_OP_Div:
    case OT_OP_Max:
    case OT_OP_Min: arithmetic(x, n); break;
    default: break;
    }
}
