/* Attention written out in nodes.
 *
 *   Q --(Transpose)--+
 *                    MatMul --> Mul, Div by a number --> Add (mask) --> Softmax --> MatMul
 *                    --(Transpose)--> Y
 *   K --(Transpose)--+                                                             /
 *   V --(Transpose)----------------------------------------------------------------
 *   READS            PRODUCT    FACTOR                   MASK           SOFTMAX     MIX      WRITES
 *
 * The walk begins at Softmax, goes down to the second product and up to the first one. Each
 * value between has one reader. Transposes that nobody else needs are no copies but other
 * strides of the operands.
 */
#include "fusion.h"

#define RANK_LEAST  2
#define FACTORS_MAX 2

typedef struct search {
    const ot_group_view *v;
    const ot_group_rules *r;
    ot_attention_group *x;
    ot_dtype type; /* of all operands */
} search;

static bool take(search *s, uint32_t place, ot_group_role role)
{
    ot_group *x = &s->x->group;
    if (!s->r->supported(s->r->ctx, s->v, x, place, role)) return false;
    x->parts[x->n++] = (ot_group_part){place, role};
    return true;
}

/* Of the type of the scores: float32, or 16 bits. */
static bool is_real(const search *s, ot_id value)
{
    ot_group_shape x;
    return ot_group_is_real(s->v, value, &x) && x.dtype == s->type;
}

/* Requires: known. */
static ot_group_shape shape_of(const search *s, ot_id value)
{
    ot_group_shape x = {0};
    return s->v->shape(s->v->of, value, &x) ? x : (ot_group_shape){0};
}

static uint32_t rank_of(const search *s, ot_id value) { return shape_of(s, value).rank; }

/* The node of that operator that makes `value`, an array of real numbers that only the node at
 * `reader` reads; OT_NONE. */
static uint32_t made_by(const search *s, ot_id value, ot_op op, uint32_t reader)
{
    uint32_t place = value == OT_NONE ? OT_NONE : s->v->maker(s->v->of, value);
    if (place == OT_NONE || !is_real(s, value) || ot_group_only_reader(s->v, value) != reader)
        return OT_NONE;
    const ot_node *n = s->v->node(s->v->of, place);
    return n && n->op == op ? place : OT_NONE;
}

/* Operands of the node at `place` when it has two; else NULL. */
static const ot_id *two_operands(const search *s, uint32_t place)
{
    uint32_t n;
    const ot_id *in = s->v->operands(s->v->of, place, &n);
    return n == 2 && in[0] != OT_NONE && in[1] != OT_NONE ? in : NULL;
}

uint32_t ot_group_factor(const ot_group_view *v, uint32_t place)
{
    uint32_t n;
    const ot_id *in = v->operands(v->of, place, &n);
    for (uint32_t k = n == 2 ? 2 : 0; k-- > 0;) {
        ot_group_shape s;
        int64_t count;
        if (k == 0 && v->node(v->of, place)->op == OT_OP_Div) break;
        if (ot_group_is_real(v, in[k], &s) && v->is_const(v->of, in[k]) &&
            ot_product(s.dims, s.rank, &count) && count == 1)
            return k;
    }
    return OT_NONE;
}

/* ---- from the second product to the first ---- */

/* Follow scalar factors up from `value`, which the node at `reader` reads, to the product Q K'. */
static bool find_product(search *s, ot_id value, uint32_t reader)
{
    for (uint32_t factors = 0; factors <= FACTORS_MAX; factors++) {
        uint32_t place = made_by(s, value, OT_OP_MatMul, reader);
        if (place != OT_NONE) {
            const ot_id *in = two_operands(s, place);
            if (!in || in[0] == in[1] || !is_real(s, in[0]) || !is_real(s, in[1])) return false;
            s->x->q = in[0];
            s->x->k = in[1];
            s->x->scores = value;
            return take(s, place, OT_ROLE_PRODUCT);
        }
        place = made_by(s, value, OT_OP_Mul, reader);
        if (place == OT_NONE) place = made_by(s, value, OT_OP_Div, reader);
        uint32_t factor = place == OT_NONE ? OT_NONE : ot_group_factor(s->v, place);
        if (factor == OT_NONE || !take(s, place, OT_ROLE_FACTOR)) return false;
        value = ot_group_operand(s->v, place, 1 - factor);
        reader = place;
    }
    return false;
}

/* From the input of Softmax up: a mask on either side of an Add, or none. */
static bool find_scores(search *s, ot_id value, uint32_t softmax)
{
    uint32_t add = made_by(s, value, OT_OP_Add, softmax), n = s->x->group.n;
    if (add == OT_NONE) return find_product(s, value, softmax);
    const ot_id *in = two_operands(s, add);
    for (uint32_t side = 0; in && side < 2; side++) {
        s->x->group.n = n;
        s->x->mask = in[1 - side];
        if (is_real(s, s->x->mask) && take(s, add, OT_ROLE_MASK) &&
            find_product(s, in[side], add) && s->x->mask != s->x->scores)
            return true;
    }
    return false;
}

/* ---- shapes ---- */

/* Axes of an operand that is broadcast to those of `to`; the first `repeat_from` may be
 * repeated. false: it does not fit. */
static bool align(const search *s, ot_id value, ot_id to, uint32_t repeat_from, ot_group_axes *o)
{
    ot_group_shape own = shape_of(s, value), whole = shape_of(s, to);
    if (own.rank > whole.rank) return false;
    for (uint32_t k = 0; k < whole.rank; k++) {
        uint32_t axis = k + own.rank < whole.rank ? OT_NONE : k + own.rank - whole.rank;
        if (axis != OT_NONE && k < repeat_from && own.dims[axis] == 1) axis = OT_NONE;
        if (axis != OT_NONE && k < repeat_from && own.dims[axis] != whole.dims[k]) return false;
        o->axis[k] = axis;
    }
    return true;
}

/* Two products that fit together: [queries, size] x [size, keys], [queries, keys] x [keys, v_size].
 */
static bool products_fit(const search *s)
{
    const ot_attention_group *x = s->x;
    ot_group_shape q = shape_of(s, x->q), k = shape_of(s, x->k), v = shape_of(s, x->v),
                   y = shape_of(s, x->y), scores = shape_of(s, x->scores);
    uint32_t rank = scores.rank;
    if (rank < RANK_LEAST || q.rank < RANK_LEAST || k.rank < RANK_LEAST || v.rank < RANK_LEAST ||
        y.rank != rank)
        return false;
    for (uint32_t d = 0; d + 1 < rank; d++)
        if (scores.dims[d] != y.dims[d]) return false;
    int64_t keys = scores.dims[rank - 1];
    return v.dims[v.rank - 2] == keys && k.dims[k.rank - 1] == keys &&
           k.dims[k.rank - 2] == q.dims[q.rank - 1] && v.dims[v.rank - 1] == y.dims[rank - 1];
}

/* Axes of all operands, before Transposes are looked at. */
static bool align_all(const search *s)
{
    ot_attention_group *x = s->x;
    uint32_t rank = rank_of(s, x->scores);
    if (!align(s, x->q, x->scores, rank - 1, &x->of_q) ||
        !align(s, x->k, x->scores, rank - 2, &x->of_k) ||
        !align(s, x->v, x->y, rank - 2, &x->of_v) || !align(s, x->y, x->y, 0, &x->of_y))
        return false;
    uint32_t swap = x->of_k.axis[rank - 1]; /* the product reads K' */
    x->of_k.axis[rank - 1] = x->of_k.axis[rank - 2];
    x->of_k.axis[rank - 2] = swap;
    return x->mask == OT_NONE || align(s, x->mask, x->scores, rank, &x->of_mask);
}

/* ---- Transposes ---- */

bool ot_group_perm(const ot_group_view *v, uint32_t place, uint32_t *perm)
{
    size_t n;
    const ot_node *node = v->node(v->of, place);
    const int64_t *a = ot_attr_ints(node, "perm", &n);
    ot_group_shape x, y;
    if (!ot_group_is_real(v, ot_group_operand(v, place, 0), &x) ||
        !ot_group_is_real(v, node->out[0], &y) || x.rank != y.rank || (a && n != y.rank))
        return false;
    for (uint32_t k = 0; k < y.rank; k++) {
        if (a && (a[k] < 0 || a[k] >= y.rank)) return false;
        perm[k] = a ? (uint32_t)a[k] : y.rank - 1 - k;
        if (x.dims[perm[k]] != y.dims[k]) return false;
    }
    return true;
}

/* A Transpose of an operand that only the node at `reader` reads. */
static void take_transpose(search *s, ot_id *value, ot_group_axes *o, uint32_t rank,
                           uint32_t reader)
{
    uint32_t perm[OT_GROUP_RANK], place = made_by(s, *value, OT_OP_Transpose, reader);
    if (place == OT_NONE || !ot_group_perm(s->v, place, perm) || !take(s, place, OT_ROLE_READS))
        return;
    for (uint32_t k = 0; k < rank; k++)
        if (o->axis[k] != OT_NONE) o->axis[k] = perm[o->axis[k]];
    *value = ot_group_operand(s->v, place, 0);
}

/* A Transpose that alone reads the result. */
static void give_transpose(search *s, uint32_t rank)
{
    uint32_t perm[OT_GROUP_RANK], place = ot_group_only_reader(s->v, s->x->y);
    const ot_node *n = place == OT_NONE ? NULL : s->v->node(s->v->of, place);
    if (!n || n->op != OT_OP_Transpose || !ot_group_perm(s->v, place, perm) ||
        !take(s, place, OT_ROLE_WRITES))
        return;
    for (uint32_t k = 0; k < rank; k++) s->x->of_y.axis[perm[k]] = k;
    s->x->y = n->out[0];
}

/* ---- all of it ---- */

/* Softmax along the last axis, and the product behind it. */
static bool find_mix(search *s, uint32_t softmax, uint32_t *mix)
{
    const ot_node *n = s->v->node(s->v->of, softmax);
    uint32_t n_in;
    const ot_id *in = s->v->operands(s->v->of, softmax, &n_in), *last;
    if (!n || n->op != OT_OP_Softmax || n_in != 1 || n->n_out < 1 || !is_real(s, in[0]) ||
        !is_real(s, n->out[0]))
        return false;
    uint32_t rank = rank_of(s, in[0]);
    int64_t axis = ot_attr_int(n, "axis", n->version < 13 ? 1 : -1);
    *mix = ot_group_only_reader(s->v, n->out[0]);
    if (rank < RANK_LEAST || (axis != -1 && axis != (int64_t)rank - 1) || *mix == OT_NONE)
        return false;
    const ot_node *m = s->v->node(s->v->of, *mix);
    if (!m || m->op != OT_OP_MatMul || m->n_out < 1 || !(last = two_operands(s, *mix)))
        return false;
    if (last[0] != n->out[0] || last[1] == n->out[0] || !is_real(s, last[1]) ||
        !is_real(s, m->out[0]))
        return false;
    s->x->weights = n->out[0];
    s->x->v = last[1];
    s->x->y = m->out[0];
    return true;
}

bool ot_group_attention(const ot_group_view *v, const ot_group_rules *r, uint32_t softmax,
                        ot_attention_group *out)
{
    search s = {v, r, out, OT_F32};
    ot_group_shape scores;
    uint32_t mix;
    if (v->node(v->of, softmax) && ot_group_is_real(v, ot_group_operand(v, softmax, 0), &scores))
        s.type = scores.dtype;
    *out = (ot_attention_group){
        .group = {.kind = OT_GROUP_ATTENTION, .result = OT_NONE, .residual = OT_NONE},
        .mask = OT_NONE};
    if (!find_mix(&s, softmax, &mix) || !take(&s, mix, OT_ROLE_MIX) ||
        !take(&s, softmax, OT_ROLE_SOFTMAX))
        return false;
    ot_id scored = ot_group_operand(v, softmax, 0);
    if (!find_scores(&s, scored, softmax)) return false;
    if (!ot_group_same_dims(v, out->scores, scored) ||
        !ot_group_same_dims(v, out->scores, out->weights))
        return false;
    if (!products_fit(&s) || !align_all(&s)) return false;
    uint32_t rank = rank_of(&s, out->scores), first = out->group.parts[out->group.n - 1].place;
    if (out->v != out->q && out->v != out->k) take_transpose(&s, &out->v, &out->of_v, rank, mix);
    take_transpose(&s, &out->q, &out->of_q, rank, first);
    take_transpose(&s, &out->k, &out->of_k, rank, first);
    give_transpose(&s, rank);
    out->group.result = out->y;
    return true;
}
