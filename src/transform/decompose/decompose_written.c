/* Normalisations that are written out, as frameworks without an operator for them export:
 *
 *     x --ReduceMean--> mean  x - mean --square--ReduceMean--> variance --Add eps--Sqrt-->
 *                             deviation  (x - mean) / deviation --> y
 *
 * The square is Mul of the difference with itself or Pow by 2; the difference may exist twice;
 * the quotient is a Div, or a Mul by the Reciprocal or by 1 / deviation. Nobody else may read
 * what is between x and y. Reduced are the spatial axes, or these and the channels.
 *
 * E[x^2] - E[x]^2 is none of these: in float32 its first digits cancel, and what a model gives
 * with it is not what exact moments give (ops/cancel.c).
 */
#include "decompose_internal.h"

#include "ops/access_same.h"

#define SPATIAL 2 /* the first spatial axis of [N, C, ...] */

/* The forms' nodes as they are found. */
typedef struct written {
    const ot_graph *g;
    ot_id x, mean, away[2]; /* [n_away] differences */
    uint32_t n_away;
    ot_norm *norm;
} written;

static bool take(written *w, ot_id node)
{
    ot_norm *n = w->norm;
    if (n->n_nodes == sizeof n->nodes / sizeof *n->nodes) return false;
    n->nodes[n->n_nodes++] = node;
    return true;
}

/* Operand k is the constant `want` (a scalar, or one element), of any number type. */
static bool is_number(const ot_graph *g, const ot_node *n, uint32_t k, double want)
{
    float real;
    int64_t whole;
    if (ot_acc_floats(g, n, k, &real, 1) == 1) return (double)real == want;
    return ot_acc_ints(g, n, k, &whole, 1) == 1 && (double)whole == want;
}

/* The first axis of those that n, a ReduceMean of x that keeps them, reduces up to the last; -1:
 * it reduces others. */
static int32_t reduces_from(const ot_graph *g, const ot_node *n, ot_id x)
{
    bool reduced[OT_RANK_MAX];
    ot_why why;
    const int32_t rank = g->values[x].rank;
    if (n->op != OT_OP_ReduceMean || n->n_captured > 0 || n->n_in < 1 || n->in[0] != x ||
        n->n_out != 1 || n->out[0] == OT_NONE)
        return -1;
    if (ot_attr_int(n, "keepdims", 1) == 0 || !ot_acc_reduced_axes(g, n, rank, reduced, &why))
        return -1;
    int32_t first = rank;
    while (first > 0 && reduced[first - 1]) first--;
    for (int32_t a = 0; a < first; a++)
        if (reduced[a]) return -1;
    return first < rank ? first : -1;
}

/* The only reader of v, where it is operator op. */
static ot_id next(const written *w, ot_id v, ot_op op)
{
    const ot_id reader = ot_value_only_reader(w->g, v);
    return reader != OT_NONE && w->g->nodes[reader].op == op && w->g->nodes[reader].n_out == 1
               ? reader
               : OT_NONE;
}

/* All that read the mean take it from x, and at most two do. */
static bool find_differences(written *w)
{
    const ot_value *m = &w->g->values[w->mean];
    if (m->is_output || m->n_uses < 1 || m->n_uses > 2) return false;
    for (uint32_t u = 0; u < m->n_uses; u++) {
        const ot_node *n = &w->g->nodes[m->uses[u]];
        if (n->op != OT_OP_Sub || n->n_captured > 0 || n->in[0] != w->x || n->in[1] != w->mean)
            return false;
        if (w->g->values[n->out[0]].is_output || !take(w, m->uses[u])) return false;
        w->away[w->n_away++] = n->out[0];
    }
    return true;
}

static bool is_difference(const written *w, ot_id v)
{
    for (uint32_t k = 0; k < w->n_away; k++)
        if (w->away[k] == v) return true;
    return false;
}

static bool is_square(const written *w, const ot_node *n)
{
    if (n->n_captured > 0 || n->n_in != 2 || !is_difference(w, n->in[0])) return false;
    return n->op == OT_OP_Mul ? n->in[1] == n->in[0]
                              : n->op == OT_OP_Pow && is_number(w->g, n, 1, 2);
}

/* The square of a difference, and the quotient, whatever that is; false: there are others, or
 * several. */
static bool find_readers(const written *w, ot_id *square, ot_id *quotient)
{
    *square = *quotient = OT_NONE;
    for (uint32_t k = 0; k < w->n_away; k++) {
        const ot_value *d = &w->g->values[w->away[k]];
        for (uint32_t u = 0; u < d->n_uses; u++) {
            ot_id *to = is_square(w, &w->g->nodes[d->uses[u]]) ? square : quotient;
            if (*to != OT_NONE) return false;
            *to = d->uses[u];
        }
    }
    return *square != OT_NONE && *quotient != OT_NONE && w->g->nodes[*quotient].n_captured == 0;
}

/* From the variance to the deviation: epsilon is added, and the root taken. */
static bool find_root(written *w, ot_id variance, ot_id *deviation)
{
    const ot_id add = next(w, variance, OT_OP_Add);
    if (add == OT_NONE || !take(w, add)) return false;
    const ot_node *n = &w->g->nodes[add];
    if (ot_acc_floats(w->g, n, n->in[0] == variance ? 1 : 0, &w->norm->epsilon, 1) != 1 ||
        !(w->norm->epsilon > 0))
        return false;
    const ot_id root = next(w, n->out[0], OT_OP_Sqrt);
    if (root == OT_NONE || !take(w, root)) return false;
    *deviation = w->g->nodes[root].out[0];
    return true;
}

/* Node `quotient` divides a difference by the deviation, or multiplies it with its reciprocal. */
static bool find_quotient(written *w, ot_id deviation, ot_id quotient)
{
    const ot_node *q = &w->g->nodes[quotient];
    ot_id by = deviation;
    if (q->op != OT_OP_Div && q->op != OT_OP_Mul) return false;
    if (q->op == OT_OP_Mul) {
        const ot_id turned = ot_value_only_reader(w->g, deviation);
        if (turned == OT_NONE || !take(w, turned)) return false;
        const ot_node *t = &w->g->nodes[turned];
        const bool inverse = t->op == OT_OP_Reciprocal ||
                             (t->op == OT_OP_Div && t->in[1] == deviation &&
                              is_number(w->g, t, 0, 1));
        if (!inverse) return false;
        by = t->out[0];
    }
    if (ot_value_only_reader(w->g, by) != quotient) return false;
    const bool first = is_difference(w, q->in[0]) && q->in[1] == by,
               second = q->in[0] == by && is_difference(w, q->in[1]);
    return (first || (second && q->op == OT_OP_Mul)) && take(w, quotient);
}

bool decomp_find_written(const ot_graph *g, ot_id id, ot_norm *out)
{
    const ot_node *n = &g->nodes[id];
    if (n->op != OT_OP_ReduceMean || n->n_in < 1 || n->in[0] == OT_NONE ||
        !decomp_is_image(&g->values[n->in[0]]))
        return false;
    *out = (ot_norm){.x = n->in[0],
                     .scale = OT_NONE,
                     .bias = OT_NONE,
                     .gamma = OT_NONE,
                     .beta = OT_NONE,
                     .each_scale = OT_NONE,
                     .each_bias = OT_NONE};
    written w = {.g = g, .x = n->in[0], .mean = n->out[0], .norm = out};
    const ot_value *x = &g->values[w.x];
    const int32_t first = reduces_from(g, n, w.x);
    ot_id square, quotient, deviation;
    if (first < 1 || first > SPATIAL || !take(&w, id) || !find_differences(&w) ||
        !find_readers(&w, &square, &quotient))
        return false;
    const ot_id squares = g->nodes[square].out[0], spread = next(&w, squares, OT_OP_ReduceMean);
    if (spread == OT_NONE || reduces_from(g, &g->nodes[spread], squares) != first ||
        !take(&w, square) || !take(&w, spread))
        return false;
    if (!find_root(&w, g->nodes[spread].out[0], &deviation) ||
        !find_quotient(&w, deviation, quotient))
        return false;
    out->groups = first == SPATIAL ? x->dims[1] : 1;
    out->y = g->nodes[quotient].out[0];
    const ot_value *y = &g->values[out->y];
    return y->dtype == x->dtype && ot_value_is_static(y) && y->rank == x->rank &&
           memcmp(y->dims, x->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}
