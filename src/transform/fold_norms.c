/* BatchNormalizations become part of the convolution whose result they alone read. Runtimes do
 * so themselves when they load a model, but for each convolution that is written: tiles that are
 * written out would have folded weights of their own each, and weights that are made while the
 * model runs none at all. Here, tiles share them.
 *
 *     t0/conv (x, W) --> t0/bn (., s, b, m, v)       t0/conv (x, W', b')  W' = W s / sqrt(v +
 *                                                                         epsilon)
 *     t1/conv (x, W) --> t1/bn (., s, b, m, v)  -->  t1/conv (x, W', b')  b' = b - m s / sqrt(v +
 *                                                                         epsilon)
 *
 *
 *
 */
#include "transform.h"

#include "onnx/import/model_io.h"

#include <math.h>

/* weights, bias of the convolution; scale, shift, mean, variance of the normalisation */
#define N_OPERANDS 6

/* What was folded, and into what. */
typedef struct folded {
    ot_id from[N_OPERANDS]; /* OT_NONE: no bias */
    float epsilon;
    ot_id weights, bias;
} folded;

typedef struct folding {
    ot_graph *g;
    ot_arena *a;
    bool contents;
    folded *all; /* [n] */
    size_t n, cap;
} folding;

/* Its contents are known, and the same in every run. */
static bool is_weight(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    return x->init && !x->overridable && x->producer == OT_NONE && x->dtype == OT_F32 &&
           x->init->dtype == OT_F32 && ot_value_is_static(x);
}

/* The convolution that makes what n normalises, and that n can become part of; OT_NONE. from:
 * what they read. */
static ot_id convolution_of(const ot_graph *g, const ot_node *n, ot_id from[N_OPERANDS])
{
    if (n->dead || n->op != OT_OP_BatchNormalization || n->n_in < 5 ||
        ot_attr_int(n, "training_mode", 0))
        return OT_NONE;
    for (uint32_t k = 1; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) return OT_NONE;
    const ot_value *v = n->in[0] == OT_NONE ? NULL : &g->values[n->in[0]];
    if (!v || v->producer == OT_NONE || v->is_output || v->n_uses != 1) return OT_NONE;
    const ot_node *conv = &g->nodes[v->producer];
    if (conv->op != OT_OP_Conv || conv->n_in < 2) return OT_NONE;
    from[0] = conv->in[1];
    from[1] = conv->n_in > 2 ? conv->in[2] : OT_NONE;
    for (uint32_t k = 1; k < 5; k++) from[k + 1] = n->in[k];
    for (uint32_t k = 0; k < N_OPERANDS; k++) {
        if (k == 1 && from[k] == OT_NONE) continue;
        if (from[k] == OT_NONE || !is_weight(g, from[k])) return OT_NONE;
        const ot_value *x = &g->values[from[k]];
        if (x->rank < 1 || x->dims[0] != g->values[from[0]].dims[0]) return OT_NONE;
        if (k > 0 && x->rank != 1) return OT_NONE;
    }
    return v->producer;
}

static float *read(const folding *f, ot_id v)
{
    const ot_tensor *t = f->g->values[v].init;
    float *data = OT_NEW_N(f->a, float, t->bytes / sizeof *data + 1);
    return data && ot_tensor_read(t, data) ? data : NULL;
}

/* Contents of the folded weights and bias. *ok false: nobody holds them, and nothing is folded. */
static ot_status compute(const folding *f, const folded *x, float *weights, float *bias, bool *ok)
{
    const float *from[N_OPERANDS] = {0};
    const ot_value *w = &f->g->values[x->from[0]];
    const size_t n = (size_t)w->dims[0], each = n ? w->init->bytes / sizeof *weights / n : 0;
    *ok = false;
    for (uint32_t k = 0; k < N_OPERANDS; k++)
        if (x->from[k] != OT_NONE && !(from[k] = read(f, x->from[k]))) return OT_OK;
    for (size_t c = 0; c < n; c++) {
        const double factor = from[2][c] / sqrt((double)from[5][c] + (double)x->epsilon);
        for (size_t k = 0; k < each; k++)
            weights[c * each + k] = (float)(from[0][c * each + k] * factor);
        bias[c] = (float)(((from[1] ? (double)from[1][c] : 0) - (double)from[4][c]) * factor +
                          (double)from[3][c]);
    }
    *ok = true;
    return OT_OK;
}

/* A constant of the graph with these contents; data NULL: nobody will read them. */
static ot_status new_constant(const folding *f, ot_id like, const char *role, int32_t rank,
                              const float *data, ot_id *out)
{
    ot_model *m = f->g->model;
    const ot_value x = f->g->values[like];
    const char *base = ot_format(m->arena, "tile/%s/%s", role, x.name),
               *name = base ? ot_fresh_name(m, base) : NULL;
    ot_tensor *t = OT_NEW(m->arena, ot_tensor);
    *out = name && t ? ot_value_new(f->g, name, OT_F32, rank, x.dims) : OT_NONE;
    if (*out == OT_NONE) return ot_fail_nomem(m->diag);
    int64_t bytes = 0;
    if (!ot_value_bytes(&f->g->values[*out], &bytes))
        return ot_fail(m->diag, OT_E_INPUT, "'%.300s' is too large", x.name);
    *t = (ot_tensor){.dtype = OT_F32,
                     .rank = (uint32_t)rank,
                     .dims = f->g->values[*out].dims,
                     .data = data,
                     .bytes = (size_t)bytes};
    f->g->values[*out].init = t;
    f->g->values[*out].is_const = true;
    return OT_OK;
}

/* x's weights and bias, as they were made for another convolution with the same constants, or
 * new ones. *ok false: there are none. */
static ot_status fold_constants(folding *f, folded *x, bool *ok)
{
    for (size_t k = 0; k < f->n; k++) {
        if (memcmp(f->all[k].from, x->from, sizeof x->from) != 0 || f->all[k].epsilon != x->epsilon)
            continue;
        *x = f->all[k];
        *ok = x->weights != OT_NONE;
        return OT_OK;
    }
    ot_arena *own = f->g->model->arena;
    float *weights = NULL, *bias = NULL;
    *ok = true;
    if (f->contents) {
        weights = ot_alloc_n(own, f->g->values[x->from[0]].init->bytes / sizeof *weights + 1,
                             sizeof *weights);
        bias = ot_alloc_n(own, (size_t)f->g->values[x->from[0]].dims[0] + 1, sizeof *bias);
        if (!weights || !bias) return ot_fail_nomem(f->g->model->diag);
        OT_TRY(compute(f, x, weights, bias, ok));
    }
    if (*ok) {
        OT_TRY(new_constant(f, x->from[0], "folded", f->g->values[x->from[0]].rank, weights,
                            &x->weights));
        OT_TRY(new_constant(f, x->from[0], "folded/bias", 1, bias, &x->bias));
    }
    return OT_PUSH(f->a, f->all, f->n, f->cap, *x) ? OT_OK : ot_fail_nomem(f->g->model->diag);
}

static ot_status fold_one(folding *f, ot_id norm)
{
    ot_graph *g = f->g;
    folded x = {.weights = OT_NONE, .bias = OT_NONE};
    const ot_id conv = convolution_of(g, &g->nodes[norm], x.from);
    bool ok;
    if (conv == OT_NONE) return OT_OK;
    x.epsilon = ot_attr_float(&g->nodes[norm], "epsilon", 1e-5f);
    OT_TRY(fold_constants(f, &x, &ok));
    if (!ok) return OT_OK;
    ot_node *n = &g->nodes[conv];
    ot_id *in = OT_NEW_N(g->model->arena, ot_id, 3);
    if (!in) return ot_fail_nomem(g->model->diag);
    const ot_id out = g->nodes[norm].out[0];
    in[0] = n->in[0];
    in[1] = x.weights;
    in[2] = x.bias;
    ot_node_remove(g, norm);
    n->in = in;
    n->n_in = 3;
    n->out[0] = out;
    n->proto = NULL;
    g->values[out].producer = conv;
    g->values[out].out_index = 0;
    return OT_OK;
}

/* What was folded is no longer in the model where nothing else reads it. */
static void drop_unread(ot_graph *g, const folding *f)
{
    for (size_t k = 0; k < f->n; k++)
        for (uint32_t j = 0; j < N_OPERANDS && f->all[k].weights != OT_NONE; j++) {
            const ot_id v = f->all[k].from[j];
            if (v != OT_NONE && !g->values[v].is_input) ot_value_drop_unread(g, v);
        }
}

/* requires ORDER, USES, SHAPES; keeps SHAPES, establishes ORDER and USES. */
ot_status ot_fold_norms(ot_graph *g, bool contents)
{
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES | OT_P_SHAPES));
    folding f = {.g = g, .a = ot_arena_new(), .contents = contents};
    ot_status st = f.a ? OT_OK : ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; st == OT_OK && k < g->n_order; k++) st = fold_one(&f, g->order[k]);
    if (st == OT_OK && f.n > 0) {
        ot_confirm(g, g->props & ~(unsigned)(OT_P_USES | OT_P_ORDER));
        st = ot_assure(g, OT_P_ORDER | OT_P_USES);
        if (st == OT_OK) drop_unread(g, &f);
        if (st == OT_OK) st = ot_assure(g, OT_P_ORDER | OT_P_USES);
    }
    ot_arena_free(f.a);
    return st;
}
