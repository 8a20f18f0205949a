/* What lives at once while a graph runs, its Loops over tiles included. See size_bounds.h.
 *
 *   outside  x ===================================
 *            pieces         ##  ####  ######  ====>  joined
 *   body             [--peak--][--peak--][--peak--]         the last iteration has most pieces
 *                                                           beside it
 */
#include "size_bounds.h"

#include "lifetime/lifetime.h"

typedef struct walk {
    ot_arena *a;
    int64_t peak, pieces; /* bytes; pieces: of all sequences that exist */
    const char *unknown;
} walk;

/* One run of a graph. */
typedef struct visit {
    const ot_graph *g;
    int64_t *bytes;  /* [n_values] of a tensor that takes memory; 0 */
    uint32_t *last;  /* [n_values] position that reads it last; n_order: the caller; OT_NONE */
    int64_t *pieces; /* [n_values] bytes of a sequence */
    int64_t live;
} visit;

static void saw(walk *w, int64_t live)
{
    int64_t sum;
    if (!ot_add_i64(live, w->pieces, &sum)) sum = INT64_MAX;
    w->peak = ot_max(w->peak, sum);
}

/* Bytes of what v takes; outer values are counted outside. */
static int64_t bytes_of(walk *w, const ot_value *v)
{
    int64_t bytes = 0;
    if (v->is_const || v->init || v->is_outer || v->is_sequence) return 0;
    if (!v->is_tensor || !ot_value_bytes(v, &bytes) || bytes > INT64_C(1) << 50) {
        if (!w->unknown) w->unknown = v->name;
        return 0;
    }
    return bytes;
}

static ot_status begin(walk *w, const ot_graph *g, visit *x)
{
    *x = (visit){.g = g,
                 .bytes = OT_NEW_N(w->a, int64_t, g->n_values + 1u),
                 .pieces = OT_NEW_N(w->a, int64_t, g->n_values + 1u)};
    ot_value_lifetimes lives;
    if (!x->bytes || !x->pieces) return OT_E_NOMEM;
    OT_TRY(ot_value_lifetimes_of(g, NULL, g->n_order, w->a, &lives));
    x->last = lives.last;
    return OT_OK;
}

static ot_status run(walk *w, visit *x, int64_t outside);

static bool is(const ot_node *n, const char *op_type)
{
    return n->domain[0] == 0 && strcmp(n->op_type, op_type) == 0;
}

/* One iteration of a loop's body: pieces of its sequences in, [n_outputs] out. */
static ot_status iterate(walk *w, const ot_graph *body, int64_t live, const int64_t *in,
                         int64_t *out)
{
    visit x;
    OT_TRY(begin(w, body, &x));
    for (uint32_t k = 2; k < body->n_inputs; k++) x.pieces[body->inputs[k]] = in[k - 2];
    OT_TRY(run(w, &x, live));
    for (uint32_t k = 1; k < body->n_outputs; k++) out[k - 1] = x.pieces[body->outputs[k]];
    return OT_OK;
}

/* All iterations are alike, but for the pieces that are there already: the first and the last
 * are looked at. */
static ot_status loop(walk *w, visit *x, const ot_node *n, const ot_graph *body, int64_t outside)
{
    const ot_value *count = n->in[0] == OT_NONE ? NULL : &x->g->values[n->in[0]];
    int64_t trips = 1, *in = OT_NEW_N(w->a, int64_t, body->n_inputs + 1u),
            *out = OT_NEW_N(w->a, int64_t, body->n_outputs + 1u);
    if (!in || !out) return OT_E_NOMEM;
    if (count && count->known && count->known_n == 1)
        trips = count->known[0];
    else if (!w->unknown)
        w->unknown = count ? count->name : n->name;
    for (uint32_t k = 2; k < n->n_in && k < body->n_inputs; k++)
        in[k - 2] = n->in[k] == OT_NONE ? 0 : x->pieces[n->in[k]];
    for (int64_t t = 0; t < trips; t++) {
        OT_TRY(iterate(w, body, outside, in, out));
        const int64_t more = t == 0 && trips > 2 ? trips - 2 : 0;
        for (uint32_t k = 0; k + 1 < body->n_outputs && k + 2 < body->n_inputs; k++) {
            int64_t grown = 0;
            if (!ot_mul_i64(more, out[k] - in[k], &grown) ||
                !ot_add_i64(w->pieces, grown, &w->pieces))
                w->pieces = INT64_MAX / 2;
            in[k] = out[k] + grown;
        }
        t += more;
    }
    for (uint32_t k = 0; k < n->n_out && k + 2 < body->n_inputs; k++)
        if (n->out[k] != OT_NONE) x->pieces[n->out[k]] = in[k];
    return OT_OK;
}

/* What the node makes of sequences. */
static ot_status sequences(walk *w, visit *x, const ot_node *n, int64_t live)
{
    const ot_attr *a = n->op == OT_OP_Loop ? ot_attr_find(n, "body") : NULL;
    if (a && a->kind == OT_ATTR_GRAPH && n->n_in > 0) return loop(w, x, n, a->g, live);
    if (n->n_out == 0 || n->out[0] == OT_NONE || n->n_in == 0 || n->in[0] == OT_NONE) return OT_OK;
    if (is(n, "Identity")) x->pieces[n->out[0]] = x->pieces[n->in[0]];
    if (!is(n, "SequenceInsert") || n->n_in < 2 || n->in[1] == OT_NONE) return OT_OK;
    int64_t bytes = 0;
    if (!ot_value_bytes(&x->g->values[n->in[1]], &bytes) && !w->unknown)
        w->unknown = x->g->values[n->in[1]].name;
    x->pieces[n->out[0]] = x->pieces[n->in[0]] + bytes;
    w->pieces += bytes;
    return OT_OK;
}

static bool hands_on(const visit *x, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE && x->g->values[n->out[k]].is_sequence) return true;
    return false;
}

/* What position `at` was the last to need goes. */
static void leave(walk *w, visit *x, const ot_node *n, uint32_t at)
{
    for (uint32_t k = 0; k < n->n_in + n->n_captured; k++) {
        const ot_id v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
        if (v == OT_NONE || x->last[v] != at) continue;
        x->live -= x->bytes[v];
        x->bytes[v] = 0;
        if (x->pieces[v] == 0 || hands_on(x, n)) continue;
        w->pieces -= x->pieces[v];
        x->pieces[v] = 0;
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        const ot_id v = n->out[k];
        if (v == OT_NONE || x->last[v] != OT_NONE) continue;
        x->live -= x->bytes[v];
        x->bytes[v] = 0;
    }
}

static void add(walk *w, visit *x, ot_id v)
{
    x->bytes[v] = bytes_of(w, &x->g->values[v]);
    if (!ot_add_i64(x->live, x->bytes[v], &x->live)) x->live = INT64_MAX / 2;
}

static ot_status run(walk *w, visit *x, int64_t outside)
{
    const ot_graph *g = x->g;
    x->live = outside;
    for (uint32_t k = 0; k < g->n_inputs; k++) add(w, x, g->inputs[k]);
    saw(w, x->live);
    for (uint32_t k = 0; k < g->n_inputs; k++) { /* nobody reads it */
        const ot_id v = g->inputs[k];
        if (x->last[v] != OT_NONE) continue;
        x->live -= x->bytes[v];
        x->bytes[v] = 0;
    }
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        OT_TRY(sequences(w, x, n, x->live));
        for (uint32_t o = 0; o < n->n_out; o++)
            if (n->out[o] != OT_NONE) add(w, x, n->out[o]);
        saw(w, x->live);
        leave(w, x, n, k);
    }
    return OT_OK;
}

ot_status ot_live_bytes_of(const ot_graph *g, ot_live_bytes *out)
{
    walk w = {.a = ot_arena_new()};
    visit x;
    ot_status s = w.a ? begin(&w, g, &x) : OT_E_NOMEM;
    if (s == OT_OK) s = run(&w, &x, 0);
    *out = (ot_live_bytes){.peak = w.peak, .unknown = w.unknown};
    ot_arena_free(w.a);
    return s == OT_OK ? OT_OK : ot_fail_nomem(g->model->diag);
}
