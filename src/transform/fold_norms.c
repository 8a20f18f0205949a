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
 * So do those of bodies: a runtime folds for each body, and what it makes on the way are copies
 * of all weights (ResNet-50 at batch 8, in a loop: 270 MB while it loads, 190 folded here).
 */
#include "transform.h"

#include "onnx/import/model_io.h"

#include <math.h>

/* weights, bias of the convolution; scale, shift, mean, variance of the normalisation */
#define N_OPERANDS 6

/* What was folded, and into what. Graphs share the contents; each has values of its own. */
typedef struct folded {
    const ot_tensor *from[N_OPERANDS]; /* NULL: no bias */
    float epsilon;
    ot_tensor *weights, *bias; /* NULL: nobody holds what they are made of */
    const ot_graph *graph;     /* of the values: the last that read them */
    ot_id weight_value, bias_value;
} folded;

typedef struct folding {
    ot_graph *g;
    ot_arena *a;
    bool contents;
    folded *all; /* [n] */
    size_t n, cap;
    ot_id *read; /* [n_read] values of g that were read for what is folded now */
    size_t n_read, cap_read;
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

static float *read(const folding *f, const ot_tensor *t)
{
    float *data = OT_NEW_N(f->a, float, t->bytes / sizeof *data + 1);
    return data && ot_tensor_read(t, data) ? data : NULL;
}

/* Contents of the folded weights and bias. *ok false: nobody holds them, and nothing is folded. */
static void compute(const folding *f, const folded *x, float *weights, float *bias, bool *ok)
{
    const float *from[N_OPERANDS] = {0};
    const ot_tensor *w = x->from[0];
    const size_t n = (size_t)w->dims[0], each = n ? w->bytes / sizeof *weights / n : 0;
    *ok = false;
    for (uint32_t k = 0; k < N_OPERANDS; k++)
        if (x->from[k] && !(from[k] = read(f, x->from[k]))) return;
    for (size_t c = 0; c < n; c++) {
        const double factor = from[2][c] / sqrt((double)from[5][c] + (double)x->epsilon);
        for (size_t k = 0; k < each; k++)
            weights[c * each + k] = (float)(from[0][c * each + k] * factor);
        bias[c] = (float)(((from[1] ? (double)from[1][c] : 0) - (double)from[4][c]) * factor +
                          (double)from[3][c]);
    }
    *ok = true;
}

/* Contents of a constant that is as `like`, of the first `rank` extents; data NULL: nobody will
 * read them. */
static ot_tensor *new_contents(const folding *f, const ot_tensor *like, uint32_t rank,
                               const float *data)
{
    ot_tensor *t = OT_NEW(f->g->model->arena, ot_tensor);
    if (t)
        *t = (ot_tensor){.dtype = OT_F32,
                         .rank = rank,
                         .dims = like->dims,
                         .data = data,
                         .bytes = rank == like->rank ? like->bytes
                                                     : (size_t)like->dims[0] * sizeof *data};
    return t;
}

/* A constant of the graph with these contents, called after the weights. */
static ot_status new_constant(const folding *f, const ot_value *like, const char *role,
                              ot_tensor *t, ot_id *out)
{
    ot_model *m = f->g->model;
    const char *base = ot_format(m->arena, "tile/%s/%s", role, like->name),
               *name = base ? ot_fresh_name(m, base) : NULL;
    *out = name ? ot_value_new(f->g, name, OT_F32, (int32_t)t->rank, t->dims) : OT_NONE;
    if (*out == OT_NONE) return ot_fail_nomem(m->diag);
    f->g->values[*out].init = t;
    f->g->values[*out].is_const = true;
    return OT_OK;
}

/* What x is made of becomes its weights and bias, unless nobody holds the contents. */
static ot_status fold_contents(folding *f, folded *x)
{
    ot_arena *own = f->g->model->arena;
    const ot_tensor *w = x->from[0];
    float *weights = NULL, *bias = NULL;
    bool ok = true;
    if (f->contents) {
        weights = ot_alloc_n(own, w->bytes / sizeof *weights + 1, sizeof *weights);
        bias = ot_alloc_n(own, (size_t)w->dims[0] + 1, sizeof *bias);
        if (!weights || !bias) return ot_fail_nomem(f->g->model->diag);
        compute(f, x, weights, bias, &ok);
    }
    if (!ok) return OT_OK;
    x->weights = new_contents(f, w, w->rank, weights);
    x->bias = new_contents(f, w, 1, bias);
    return x->weights && x->bias ? OT_OK : ot_fail_nomem(f->g->model->diag);
}

/* The entry of what is folded from these, which other convolutions and graphs share. */
static ot_status find_folded(folding *f, const folded *x, folded **out)
{
    for (size_t k = 0; k < f->n; k++)
        if (memcmp(f->all[k].from, x->from, sizeof x->from) == 0 &&
            f->all[k].epsilon == x->epsilon) {
            *out = &f->all[k];
            return OT_OK;
        }
    folded made = *x;
    OT_TRY(fold_contents(f, &made));
    if (!OT_PUSH(f->a, f->all, f->n, f->cap, made)) return ot_fail_nomem(f->g->model->diag);
    *out = &f->all[f->n - 1];
    return OT_OK;
}

/* Values of g for weights and bias, called after `like`. */
static ot_status use_folded(folding *f, folded *x, const ot_value *like)
{
    if (x->graph == f->g) return OT_OK;
    OT_TRY(new_constant(f, like, "folded", x->weights, &x->weight_value));
    OT_TRY(new_constant(f, like, "folded/bias", x->bias, &x->bias_value));
    x->graph = f->g;
    return OT_OK;
}

/* Convolution conv computes what `norm` made of its result. */
static ot_status replace_norm(folding *f, ot_id conv, ot_id norm, const folded *x)
{
    ot_graph *g = f->g;
    ot_node *n = &g->nodes[conv];
    ot_id *in = OT_NEW_N(g->model->arena, ot_id, 3);
    if (!in) return ot_fail_nomem(g->model->diag);
    const ot_id out = g->nodes[norm].out[0];
    in[0] = n->in[0];
    in[1] = x->weight_value;
    in[2] = x->bias_value;
    ot_node_remove(g, norm);
    n->in = in;
    n->n_in = 3;
    n->out[0] = out;
    n->proto = NULL;
    g->values[out].producer = conv;
    g->values[out].out_index = 0;
    return OT_OK;
}

static ot_status fold_one(folding *f, ot_id norm)
{
    ot_graph *g = f->g;
    ot_id from[N_OPERANDS];
    folded x = {.epsilon = ot_attr_float(&g->nodes[norm], "epsilon", 1e-5f)}, *shared = NULL;
    const ot_id conv = convolution_of(g, &g->nodes[norm], from);
    if (conv == OT_NONE) return OT_OK;
    for (uint32_t k = 0; k < N_OPERANDS; k++)
        x.from[k] = from[k] == OT_NONE ? NULL : g->values[from[k]].init;
    OT_TRY(find_folded(f, &x, &shared));
    if (!shared->weights) return OT_OK;
    const ot_value like = g->values[from[0]];
    OT_TRY(use_folded(f, shared, &like));
    for (uint32_t k = 0; k < N_OPERANDS; k++)
        if (from[k] != OT_NONE && !OT_PUSH(f->a, f->read, f->n_read, f->cap_read, from[k]))
            return ot_fail_nomem(g->model->diag);
    return replace_norm(f, conv, norm, shared);
}

/* What was folded is no longer in the graph where nothing else reads it. */
static void drop_unread(const folding *f)
{
    for (size_t k = 0; k < f->n_read; k++)
        if (!f->g->values[f->read[k]].is_input) ot_value_drop_unread(f->g, f->read[k]);
}

/* Those of g, then those of its bodies. */
static ot_status fold_graph(folding *f, ot_graph *g)
{
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES | OT_P_SHAPES));
    f->g = g;
    f->n_read = 0;
    for (uint32_t k = 0; k < g->n_order; k++) OT_TRY(fold_one(f, g->order[k]));
    if (f->n_read > 0) {
        ot_confirm(g, g->props & ~(unsigned)(OT_P_USES | OT_P_ORDER));
        OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
        drop_unread(f);
        OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    }
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        for (uint32_t j = 0; j < n->n_attrs; j++)
            if (n->attrs[j].kind == OT_ATTR_GRAPH && n->attrs[j].g)
                OT_TRY(fold_graph(f, n->attrs[j].g));
    }
    return OT_OK;
}

/* requires ORDER, USES, SHAPES; keeps SHAPES, establishes ORDER and USES. */
ot_status ot_fold_norms(ot_graph *g, bool contents)
{
    folding f = {.a = ot_arena_new(), .contents = contents};
    const ot_status st = f.a ? fold_graph(&f, g) : ot_fail_nomem(g->model->diag);
    ot_arena_free(f.a);
    return st;
}
