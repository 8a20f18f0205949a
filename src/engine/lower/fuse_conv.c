/* A convolution and what follows it, in one unit: fusion/fusion.h finds it, this file reads what
 * its implementations want to know.
 *
 *   Conv --> BatchNormalization, Mul, Add by channel --> Add of a tensor, activations
 *            `-- into weights and bias: y = (W x + b) * scale + shift --'   `-- post-operations on
 *                                                                           the result in registers
 *
 * A part joins if there are fast implementations for the convolution with it.
 */
#include "engine/cpu/conv/conv.h"
#include "lower.h"

#include "engine/ref/ref_window.h"

#include <math.h>

/* ---- the convolution itself ---- */

/* Weights and bias are held in memory. */
static bool constants_held(const lw_pass *l, const lw_unit *u)
{
    if (!l->v[u->in[1]].slot->is_const || !l->v[u->in[1]].slot->nd.data) return false;
    return u->n_in < 3 || u->in[2] == OT_NONE ||
           (l->v[u->in[2]].slot->is_const && l->v[u->in[2]].slot->nd.data);
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
    if (!constants_held(l, u)) return false;
    const ot_nd *w = &l->v[u->in[1]].slot->fore, *y = &l->v[u->out[0]].slot->fore;
    *k = (lw_conv){.node = n,
                   .x = u->in[0],
                   .w = u->in[1],
                   .y = u->out[0],
                   .residual = OT_NONE,
                   .transposed = n->op == OT_OP_ConvTranspose};
    if (!read_window(l, n, k)) return false;
    k->maps = y->dims[1];
    k->channels = w->dims[1];
    k->type = l->v[k->x].slot->fore.dtype;
    k->x_form = l->v[k->x].slot->fore;
    k->y_form = *y;
    k->x_form.dtype = k->y_form.dtype = OT_F32;
    k->weights_type = w->dtype;
    k->source = k->weights = l->v[k->w].slot->nd.data;
    if (k->transposed) return true;
    if (ot_window_conv_out(&c, &k->win) != OT_OK) return false;
    for (uint32_t a = 0; a < k->win.n; a++)
        if (k->win.out[a] != y->dims[a + 2]) return false;
    return true;
}

/* ---- groups ---- */

#define EXPANDED_GROUPS_MAX 4 /* more of them make more zeros than the faster loops make up for */

/* Groups whose channels fill no blocks have slow primitives only: such a convolution becomes one
 * of a single group, the weights between groups 0. */
static ot_status expand_groups(lw_pass *l, lw_conv *k)
{
    int64_t group = k->group, per = k->channels, maps = k->maps / ot_max(1, group), taps = 1, n,
            bytes, b = l->block;
    if (k->transposed || group < 2 || group > EXPANDED_GROUPS_MAX || per == 1 ||
        (per % b == 0 && maps % b == 0))
        return OT_OK;
    /* a weight in memory has so many elements */
    for (uint32_t a = 0; a < k->win.n; a++) taps *= k->win.kernel[a];
    uint64_t form = ot_hash_bytes(ot_hash_bytes(0, "groups", 6), &group, sizeof group);
    float *w = ot_packed_find(l->p->s, k->source, form);
    if (!w) {
        ot_block *copy;
        if (!ot_mul_i64(k->maps * per * taps, group, &n) || !ot_mul_i64(n, sizeof *w, &bytes))
            return OT_OK;
        const float *given = lw_conv_weights(k, k->maps * per * taps, &copy);
        w = given ? calloc((size_t)n, sizeof *w) : NULL;
        for (int64_t m = 0; w && m < k->maps; m++)
            memcpy(w + (m * group + m / maps) * per * taps, given + m * per * taps,
                   (size_t)(per * taps) * sizeof *w);
        ot_block_unref(copy);
        if (!w) return ot_fail_nomem(l->p->s->d);
        OT_TRY(ot_packed_keep(l->p->s, k->source, form, w, free));
    }
    k->weights = w;
    k->weights_type = OT_F32;
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
    const float *b = given ? lw_const_real(l, u->in[2]) : NULL;
    for (int64_t m = 0; m < k->maps; m++) {
        k->scale[m] = 1;
        k->shift[m] = b ? b[m] : 0;
    }
    k->scaled = false;
    return OT_OK;
}

/* ---- into the weights ---- */

/* Shapes of constants are as the rules of groups want them; are their contents held? */
static bool fold_norm(lw_pass *l, const lw_unit *u, lw_conv *k)
{
    const ot_node *n = u->nodes[0];
    const float *p[4];
    for (uint32_t j = 0; j < 4; j++) {
        p[j] = lw_const_real(l, u->in[j + 1]);
        if (!p[j]) return false;
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
static bool fold_affine(lw_pass *l, const lw_unit *u, ot_id v, lw_conv *k)
{
    const ot_node *n = u->nodes[0];
    ot_id other = u->in[u->in[0] == v ? 1 : 0];
    const float *c = lw_const_real(l, other);
    float number;
    int64_t step = lw_scalar(l, other, &number) ? 0 : 1;
    if (!c) return false;
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
static bool bound(const lw_pass *l, const lw_unit *u, uint32_t at, const char *name, float dflt,
                  float *out)
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
    case OT_OP_LeakyRelu:
        *post = (lw_post){LW_POST_RELU, ot_attr_float(n, "alpha", 0.01f), 0};
        return true;
    case OT_OP_Sigmoid: post->kind = LW_POST_SIGMOID; return true;
    case OT_OP_Elu: *post = (lw_post){LW_POST_ELU, ot_attr_float(n, "alpha", 1.0f), 0}; return true;
    case OT_OP_HardSwish: post->kind = LW_POST_HARDSWISH; return true;
    case OT_OP_Clip:
        post->kind = LW_POST_CLIP;
        return bound(l, u, 1, "min", -3.402823466e38f, &post->alpha) &&
               bound(l, u, 2, "max", 3.402823466e38f, &post->beta) && post->alpha <= post->beta;
    default: return false;
    }
}

/* x * g(x). */
static lw_post gate(const ot_node *g)
{
    if (g->op == OT_OP_Sigmoid) return (lw_post){LW_POST_SILU, 1, 0};
    return (lw_post){LW_POST_HARDSWISH, 0, 0};
}

/* ---- what the group becomes ---- */

/* A group under way, as its implementations will see it. */
typedef struct search {
    lw_pass *l;
    lw_conv k;
    ot_status status; /* not OT_OK: the search is over */
} search;

static bool has_implementation(lw_pass *l, const lw_conv *k)
{
    return k->transposed ? lw_deconv_supported(l, k) : lw_conv_supported(l, k);
}

static ot_status open_group(search *s, const lw_unit *u, bool *opened)
{
    *opened = false;
    if (!open_conv(s->l, u, &s->k)) return OT_OK;
    OT_TRY(expand_groups(s->l, &s->k));
    *opened = has_implementation(s->l, &s->k);
    return *opened ? read_bias(s->l, u, &s->k) : OT_OK;
}

/* oneDNN applies two of one kind with the numbers of one of them. */
static bool clashes(const lw_conv *k, const lw_post *post)
{
    for (uint32_t j = 0; j < k->n_posts && post->kind != LW_POST_ADD; j++)
        if (k->posts[j].kind == post->kind &&
            (k->posts[j].alpha != post->alpha || k->posts[j].beta != post->beta))
            return true;
    return false;
}

/* The convolution with one post-operation more, if there is an implementation. */
static bool add_post(search *s, const ot_group *x, const lw_unit *u, ot_group_role role)
{
    lw_conv with = s->k;
    lw_post *post = &with.posts[with.n_posts++];
    if (role == OT_ROLE_GATE) {
        *post = gate(u->nodes[0]);
    } else if (role == OT_ROLE_RESIDUAL) {
        *post = (lw_post){.kind = LW_POST_ADD};
        with.residual = u->in[u->in[0] == x->result ? 1 : 0];
    } else if (!activation(s->l, u, post)) {
        return false;
    }
    with.y = u->out[0];
    if (clashes(&s->k, post) || !has_implementation(s->l, &with)) return false;
    s->k = with;
    return true;
}

static bool supported(void *ctx, const ot_group_view *v, const ot_group *x, uint32_t place,
                      ot_group_role role)
{
    search *s = ctx;
    const lw_unit *u = &s->l->units[place];
    if (s->status != OT_OK || !ot_engine_merges(NULL, v, x, place, role)) return false;
    if (role == OT_ROLE_CONVOLUTION) {
        bool opened;
        s->status = open_group(s, u, &opened);
        return opened && s->status == OT_OK;
    }
    if (role == OT_ROLE_NORM) return fold_norm(s->l, u, &s->k);
    if (role == OT_ROLE_AFFINE) return fold_affine(s->l, u, x->result, &s->k);
    return add_post(s, x, u, role);
}

static ot_status fuse(lw_pass *l, const ot_group_view *v, uint32_t at)
{
    search s = {.l = l};
    ot_group x;
    const ot_group_rules rules = {.name = "engine", .supported = supported, .ctx = &s};
    bool found = ot_group_conv(v, &rules, at, &x);
    if (!found || s.status != OT_OK) return s.status;
    uint32_t parts[OT_GROUP_PARTS];
    for (uint32_t k = 0; k < x.n; k++) parts[k] = x.parts[k].place;
    s.k.y = x.result;
    lw_conv *own = ot_memdup(l->scratch, &s.k, sizeof s.k);
    if (!own) return ot_fail_nomem(l->p->s->d);
    ot_id in[2] = {s.k.x, s.k.residual};
    return lw_merge(l, parts, x.n, s.k.transposed ? LW_DECONV : LW_CONV,
                    (ot_id_list){in, s.k.residual == OT_NONE ? 1 : 2}, (ot_id_list){&s.k.y, 1},
                    own);
}

ot_status lw_fuse_conv(lw_pass *l)
{
    const ot_group_view v = lw_group_view(l);
    for (uint32_t u = 0; u < l->n_units; u++)
        if (l->units[u].kind == LW_NODE) OT_TRY(fuse(l, &v, u));
    return OT_OK;
}
