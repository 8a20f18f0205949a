/* A convolution and what follows it, in one unit.
 *
 *   Conv --> BatchNormalization, Mul, Add by channel --> Add of a tensor, activations
 *            `-- into weights and bias: y = (W x + b) * scale + shift --'   `-- post-operations on the result in registers
 *
 * Each value between may have one reader only (x * sigmoid(x) has two: the Sigmoid and the Mul).
 */
#include "engine/conv/conv.h"

#include "engine/ref/ref_window.h"

#include <math.h>

/* ---- the convolution itself ---- */

static bool constants_held(const lw_pass *l, const lw_unit *u)
{
    if (!lw_const_f32(l, u->in[1])) return false;
    return u->n_in < 3 || u->in[2] == OT_NONE || lw_const_f32(l, u->in[2]);
}

/* Attributes that hold together; pads of auto_pad as numbers. */
static bool read_window(const lw_pass *l, const ot_node *n, lw_conv *k)
{
    const ot_nd *x = &l->v[k->x].slot->fore, *w = &l->v[k->w].slot->fore;
    ot_diag ignored = {0};
    ot_call c = {.g = l->p->g, .node = n, .diag = &ignored};
    int64_t weights[OT_RANK_MAX];
    for (uint32_t a = 2; a < w->rank; a++) weights[a - 2] = w->dims[a];
    if (ot_window_read(&c, x, weights, &k->win) != OT_OK) return false;
    k->group = ot_attr_int(n, "group", 1);
    return k->group >= 1;
}

static bool open_conv(lw_pass *l, const lw_unit *u, lw_conv *k)
{
    const ot_node *n = u->nodes[0];
    ot_diag ignored = {0};
    ot_call c = {.g = l->p->g, .node = n, .diag = &ignored};
    if (u->kind != LW_NODE || (n->op != OT_OP_Conv && n->op != OT_OP_ConvTranspose)) return false;
    if (u->n_in < 2 || u->out[0] == OT_NONE) return false;
    if (!lw_is_f32(l, u->in[0]) || !lw_is_f32(l, u->in[1]) || !lw_is_f32(l, u->out[0]) || !constants_held(l, u)) return false;
    const ot_nd *x = &l->v[u->in[0]].slot->fore, *w = &l->v[u->in[1]].slot->fore, *y = &l->v[u->out[0]].slot->fore;
    if (x->rank < 3 || x->rank > 5 || w->rank != x->rank || y->rank != x->rank || y->dims[0] != x->dims[0]) return false;
    *k = (lw_conv){
        .node = n, .x = u->in[0], .w = u->in[1], .y = u->out[0], .residual = OT_NONE, .transposed = n->op == OT_OP_ConvTranspose};
    if (!read_window(l, n, k)) return false;
    k->maps = y->dims[1];
    k->channels = w->dims[1];
    k->weights = lw_const_f32(l, k->w);
    k->source = k->weights;
    if (k->transposed) return w->dims[0] == x->dims[1] && w->dims[1] * k->group == k->maps;
    if (ot_window_conv_out(&c, &k->win) != OT_OK) return false;
    for (uint32_t a = 0; a < k->win.n; a++)
        if (k->win.out[a] != y->dims[a + 2]) return false;
    return w->dims[0] == k->maps && w->dims[1] * k->group == x->dims[1] && k->maps % k->group == 0;
}

/* ---- groups ---- */

#define EXPANDED_GROUPS_MAX 4 /* more of them make more zeros than the faster loops make up for */

/* Groups whose channels fill no blocks have slow primitives only: such a convolution becomes one of a single group, the weights
 * between groups 0. */
static ot_status expand_groups(lw_pass *l, lw_conv *k)
{
    int64_t group = k->group, per = k->channels, maps = k->maps / ot_max(1, group), taps = 1, n, bytes, b = l->block;
    if (k->transposed || group < 2 || group > EXPANDED_GROUPS_MAX || per == 1 || (per % b == 0 && maps % b == 0)) return OT_OK;
    for (uint32_t a = 0; a < k->win.n; a++) taps *= k->win.kernel[a]; /* a weight in memory has so many elements */
    uint64_t form = ot_hash_bytes(ot_hash_bytes(0, "groups", 6), &group, sizeof group);
    float *w = ot_packed_find(l->p->s, k->weights, form);
    if (!w) {
        if (!ot_mul_i64(k->maps * per * taps, group, &n) || !ot_mul_i64(n, sizeof *w, &bytes)) return OT_OK;
        w = calloc((size_t)n, sizeof *w);
        if (!w) return ot_fail_nomem(l->p->s->d);
        for (int64_t m = 0; m < k->maps; m++)
            memcpy(w + (m * group + m / maps) * per * taps, k->weights + m * per * taps, (size_t)(per * taps) * sizeof *w);
        OT_TRY(ot_packed_keep(l->p->s, k->weights, form, w, free));
    }
    k->weights = w;
    k->source = w;
    k->channels = per * group;
    k->group = 1;
    return OT_OK;
}

static ot_status read_bias(lw_pass *l, const lw_unit *u, lw_conv *k)
{
    k->scale = OT_NEW_N(l->scratch, float, k->maps);
    k->shift = OT_NEW_N(l->scratch, float, k->maps);
    if (!k->scale || !k->shift) return ot_fail_nomem(l->p->s->d);
    bool given = u->n_in > 2 && u->in[2] != OT_NONE;
    const float *b = given ? lw_const_f32(l, u->in[2]) : NULL;
    for (int64_t m = 0; m < k->maps; m++) {
        k->scale[m] = 1;
        k->shift[m] = b ? b[m] : 0;
    }
    k->scaled = false;
    return OT_OK;
}

static bool bias_fits(const lw_pass *l, const lw_unit *u, const lw_conv *k)
{
    if (u->n_in < 3 || u->in[2] == OT_NONE) return true;
    const ot_nd *b = &l->v[u->in[2]].slot->fore;
    return b->rank == 1 && b->dims[0] == k->maps;
}

/* ---- into the weights ---- */

/* Constant operand of one number a channel (or one for all): [C,1,1], [1,C,1,1], [1]... against a result of that rank. */
static bool by_channel(const lw_pass *l, ot_id v, uint32_t rank, int64_t maps, const float **data, int64_t *step)
{
    const float *c = v == OT_NONE ? NULL : lw_const_f32(l, v);
    int64_t n;
    if (!c) return false;
    const ot_nd *a = &l->v[v].slot->nd;
    if (!ot_nd_elems(a, &n) || a->rank > rank) return false;
    *data = c;
    *step = n == 1 ? 0 : 1;
    if (n == 1) return true;
    uint32_t axis = 1 + a->rank - rank; /* of the operand; wraps when it has none */
    return a->rank + 1 >= rank && n == maps && a->dims[axis] == maps;
}

static bool fold_norm(const lw_pass *l, const lw_unit *u, lw_conv *k)
{
    const ot_node *n = u->nodes[0];
    const float *p[4];
    if (u->n_in < 5 || ot_attr_int(n, "training_mode", 0) != 0) return false;
    for (uint32_t j = 1; j < u->n_out; j++)
        if (u->step->out_slots[j]) return false;
    for (uint32_t j = 0; j < 4; j++) {
        p[j] = u->in[j + 1] == OT_NONE ? NULL : lw_const_f32(l, u->in[j + 1]);
        if (!p[j] || l->v[u->in[j + 1]].slot->fore.rank != 1 || l->v[u->in[j + 1]].slot->fore.dims[0] != k->maps) return false;
    }
    double eps = (double)ot_attr_float(n, "epsilon", 1e-5f);
    for (int64_t m = 0; m < k->maps; m++) {
        double s = (double)p[0][m] / sqrt((double)p[3][m] + eps);
        k->shift[m] = (float)(((double)k->shift[m] - (double)p[2][m]) * s + (double)p[1][m]);
        k->scale[m] = (float)((double)k->scale[m] * s);
    }
    k->scaled = true;
    return true;
}

/* Mul, Add, Sub or Div of v by a constant; into scale and shift. */
static bool fold_affine(const lw_pass *l, const lw_unit *u, ot_id v, lw_conv *k)
{
    const ot_node *n = u->nodes[0];
    const float *c;
    int64_t step;
    if (u->n_in != 2 || (n->op != OT_OP_Mul && n->op != OT_OP_Add && n->op != OT_OP_Sub && n->op != OT_OP_Div)) return false;
    bool second = u->in[0] == v;
    if (!second && (n->op == OT_OP_Sub || n->op == OT_OP_Div)) return false;
    if (!by_channel(l, u->in[second ? 1 : 0], l->v[v].slot->fore.rank, k->maps, &c, &step) || !lw_same_dims(l, v, u->out[0]))
        return false;
    for (int64_t m = 0; m < k->maps; m++) {
        float f = c[m * step];
        if (n->op == OT_OP_Add) k->shift[m] += f;
        if (n->op == OT_OP_Sub) k->shift[m] -= f;
        if (n->op == OT_OP_Add || n->op == OT_OP_Sub) continue;
        k->scale[m] = n->op == OT_OP_Mul ? k->scale[m] * f : k->scale[m] / f;
        k->shift[m] = n->op == OT_OP_Mul ? k->shift[m] * f : k->shift[m] / f;
        k->scaled = true;
    }
    return true;
}

/* ---- on the result ---- */

/* Bound of a Clip: attribute, operand, or none. false: it is not known now. */
static bool bound(const lw_pass *l, const lw_unit *u, uint32_t at, const char *name, float dflt, float *out)
{
    *out = ot_attr_float(u->nodes[0], name, dflt);
    if (u->n_in <= at || u->in[at] == OT_NONE) return true;
    return lw_scalar(l, u->in[at], out);
}

static bool activation(const lw_pass *l, const lw_unit *u, lw_post *post)
{
    const ot_node *n = u->nodes[0];
    *post = (lw_post){.kind = LW_POST_NONE};
    switch ((int)n->op) {
    case OT_OP_Relu: post->kind = LW_POST_RELU; return true;
    case OT_OP_LeakyRelu: *post = (lw_post){LW_POST_RELU, ot_attr_float(n, "alpha", 0.01f), 0}; return true;
    case OT_OP_Sigmoid: post->kind = LW_POST_SIGMOID; return true;
    case OT_OP_Elu: *post = (lw_post){LW_POST_ELU, ot_attr_float(n, "alpha", 1.0f), 0}; return true;
    case OT_OP_HardSwish: post->kind = LW_POST_HARDSWISH; return true;
    case OT_OP_Clip:
        post->kind = LW_POST_CLIP;
        return bound(l, u, 1, "min", -3.402823466e38f, &post->alpha) && bound(l, u, 2, "max", 3.402823466e38f, &post->beta) &&
               post->alpha <= post->beta;
    default: return false;
    }
}

/* Add or Sum of v and another tensor of its shape. */
static bool residual(const lw_pass *l, const lw_unit *u, ot_id v, ot_id *other)
{
    const ot_node *n = u->nodes[0];
    if ((n->op != OT_OP_Add && n->op != OT_OP_Sum) || u->n_in != 2 || u->in[0] == u->in[1]) return false;
    *other = u->in[0] == v ? u->in[1] : u->in[0];
    return *other != OT_NONE && lw_is_f32(l, *other) && !l->v[*other].slot->is_const && lw_same_dims(l, v, *other);
}

/* v is read by a Sigmoid (HardSigmoid) and by the Mul of v with it, only. */
static bool gated(const lw_pass *l, ot_id v, uint32_t *gate, uint32_t *mul, lw_post *post)
{
    const lw_value *x = &l->v[v];
    if (x->pinned || x->n_readers != 2) return false;
    *gate = l->readers[x->first];
    *mul = l->readers[x->first + 1];
    const lw_unit *g = &l->units[*gate], *m = &l->units[*mul];
    const ot_node *n = g->nodes[0];
    if (g->kind != LW_NODE || m->kind != LW_NODE || m->nodes[0]->op != OT_OP_Mul || m->n_in != 2) return false;
    if (lw_only_reader(l, g->out[0]) != *mul ||
        !((m->in[0] == v && m->in[1] == g->out[0]) || (m->in[1] == v && m->in[0] == g->out[0])))
        return false;
    if (n->op == OT_OP_Sigmoid) *post = (lw_post){LW_POST_SILU, 1, 0};
    if (n->op == OT_OP_HardSigmoid) *post = (lw_post){LW_POST_HARDSWISH, 0, 0};
    if (n->op == OT_OP_HardSigmoid)
        return fabsf(ot_attr_float(n, "alpha", 0.2f) * 6 - 1) < 1e-5f && ot_attr_float(n, "beta", 0.5f) == 0.5f;
    return n->op == OT_OP_Sigmoid;
}

/* ---- following the result ---- */

typedef struct parts {
    uint32_t list[2 + 3 * LW_POSTS_MAX + 8];
    uint32_t n;
} parts;

/* Take in the next unit after k->y, if it can be. */
static bool extend(const lw_pass *l, lw_conv *k, parts *p)
{
    lw_post post;
    uint32_t gate, mul;
    ot_id other;
    if (p->n + 3 > sizeof p->list / sizeof *p->list || k->n_posts == LW_POSTS_MAX) return false;
    if (gated(l, k->y, &gate, &mul, &post)) {
        k->posts[k->n_posts++] = post;
        p->list[p->n++] = gate;
        p->list[p->n++] = mul;
        k->y = l->units[mul].out[0];
        return true;
    }
    uint32_t next = lw_only_reader(l, k->y);
    if (next == OT_NONE || l->units[next].kind != LW_NODE || l->units[next].n_out < 1) return false;
    const lw_unit *u = &l->units[next];
    if (u->n_in == 0 || u->out[0] == OT_NONE || !lw_is_f32(l, u->out[0]) || !lw_same_dims(l, k->y, u->out[0])) return false;
    bool first = k->n_posts == 0;
    if (first && u->nodes[0]->op == OT_OP_BatchNormalization && u->in[0] == k->y && fold_norm(l, u, k)) {
    } else if (first && fold_affine(l, u, k->y, k)) {
    } else if (activation(l, u, &post) && u->in[0] == k->y) {
        k->posts[k->n_posts++] = post;
    } else if (!k->transposed && k->residual == OT_NONE && residual(l, u, k->y, &other)) {
        k->residual = other;
        k->posts[k->n_posts++] = (lw_post){.kind = LW_POST_ADD};
    } else {
        return false;
    }
    p->list[p->n++] = next;
    k->y = u->out[0];
    return true;
}

static bool supported(lw_pass *l, const lw_conv *k) { return k->transposed ? lw_deconv_supported(l, k) : lw_conv_supported(l, k); }

static ot_status fuse(lw_pass *l, uint32_t at)
{
    lw_conv k, *own;
    parts p = {{at}, 1};
    const lw_unit *u = &l->units[at];
    if (!open_conv(l, u, &k) || !bias_fits(l, u, &k)) return OT_OK;
    OT_TRY(expand_groups(l, &k));
    if (!supported(l, &k)) return OT_OK;
    OT_TRY(read_bias(l, u, &k));
    for (bool more = true; more;) {
        lw_conv before = k;
        parts parts_before = p;
        more = extend(l, &k, &p);
        if (!more || k.n_posts == before.n_posts || supported(l, &k)) continue;
        k = before; /* its primitives do not take this one */
        p = parts_before;
        more = false;
    }
    own = ot_memdup(l->scratch, &k, sizeof k);
    if (!own) return ot_fail_nomem(l->p->s->d);
    ot_id in[2] = {k.x, k.residual};
    return lw_merge(l, p.list, p.n, k.transposed ? LW_DECONV : LW_CONV, in, k.residual == OT_NONE ? 1 : 2, &k.y, 1, own);
}

ot_status lw_fuse_conv(lw_pass *l)
{
    for (uint32_t u = 0; u < l->n_units; u++)
        if (l->units[u].kind == LW_NODE) OT_TRY(fuse(l, u));
    return OT_OK;
}
