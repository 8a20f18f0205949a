/* A convolution of a unit by Winograd's algorithm (winograd.h).
 *
 * Transformed weights are two to seven times the model's. They are shared by all schedules of a
 * session (workers, classes of tiles), and what they take more than the model's, which they
 * replace, is limited (OT_WINOGRAD_ROOM): once there is no more room, weights are transformed in
 * each run. The planner asks the same functions (cost/winograd_cost.c).
 */
#include "conv.h"
#include "winograd.h"

static bool is_3x3(const lw_conv *k)
{
    if (k->win.n != 2 || k->group != 1) return false;
    for (uint32_t a = 0; a < 2; a++)
        if (k->win.kernel[a] != 3 || k->win.stride[a] != 1 || k->win.lo[a] < 0 ||
            k->win.dilation[a] != k->win.dilation[0])
            return false;
    return true;
}

bool lw_wino_posts(const lw_conv *k, ot_winograd_spec *s)
{
    uint32_t j = 0;
    s->act = OT_WINO_NONE;
    if (k->n_posts > j && k->posts[j].kind == LW_POST_ADD) {
        s->residual = true;
        j++;
    }
    if (j == k->n_posts) return true;
    const lw_post *p = &k->posts[j++];
    if (p->kind == LW_POST_RELU) {
        s->act = p->alpha == 0 ? OT_WINO_RELU : OT_WINO_LEAKY;
        s->alpha = p->alpha;
    } else if (p->kind == LW_POST_CLIP) {
        s->act = OT_WINO_CLIP;
        s->alpha = p->alpha;
        s->beta = p->beta;
    } else {
        return false;
    }
    return j == k->n_posts;
}

/* A dilated one is many that lie in one another. */
static bool set_dilated(const lw_conv *k, ot_winograd_spec *s)
{
    s->apart = k->win.dilation[0];
    for (uint32_t a = 0; a < 2; a++) {
        s->in[a] = k->win.in[a];
        s->out[a] = k->win.out[a];
    }
    return ot_winograd_take_apart(&s->sizes, s->apart);
}

static bool describe(const lw_pass *l, const lw_conv *k, ot_winograd_spec *s)
{
    const ot_nd *x = &k->x_form;
    *s = (ot_winograd_spec){
        .sizes.batch = x->dims[0], .sizes.in_channels = x->dims[1], .sizes.out_channels = k->maps};
    if (!is_3x3(k) || !lw_wino_posts(k, s)) return false;
    s->sizes.in_h = k->win.in[0];
    s->sizes.in_w = k->win.in[1];
    s->sizes.out_h = k->win.out[0];
    s->sizes.out_w = k->win.out[1];
    s->sizes.pad_top = k->win.lo[0];
    s->sizes.pad_left = k->win.lo[1];
    /* tiles and strips (16 bits) are small, and are priced as direct ones */
    if (k->win.dilation[0] > 1 && (l->p->outer || k->alone || !set_dilated(k, s))) return false;
    s->scale = k->scaled ? k->scale : NULL;
    s->bias = k->shift;
    s->room = OT_WINOGRAD_ROOM;
    double outputs = (double)x->dims[0] * (double)k->win.out[0] * (double)k->win.out[1];
    s->sizes.threads = k->alone ? 1
                                : lw_threads(l, outputs * 9 * (double)s->sizes.in_channels *
                                                    (double)s->sizes.out_channels);
    return ot_winograd_pays(s);
}

static void free_wino(void *data) { ot_winograd_free(data); }

static ot_status fill_wino(ot_session *s, const ot_packed *packed, bool own)
{
    const lw_conv *k = packed->how;
    ot_block *copy;
    const float *weights = lw_conv_weights(k, k->maps * k->channels * 9, &copy);
    (void)own;
    if (!weights) return ot_fail_nomem(s->d);
    ot_winograd_fill(packed->data, weights, k->scaled ? k->scale : NULL, k->shift);
    ot_block_unref(copy);
    return OT_OK;
}

static uint64_t key_of(const lw_conv *k, const ot_winograd_spec *spec)
{
    uint64_t form = ot_winograd_form(spec), key = ot_hash_bytes(2, &form, sizeof form);
    key = ot_hash_bytes(key, k->scale, (size_t)k->maps * sizeof *k->scale);
    return ot_hash_bytes(key, k->shift, (size_t)k->maps * sizeof *k->shift);
}

/* The operation, with weights of its own or of another that was made from the same: what is held
 * already needs no room. NULL: a direct convolution is faster. */
static ot_status make(lw_pass *l, const lw_conv *k, ot_winograd_spec *spec, ot_winograd **out)
{
    ot_session *s = l->p->s;
    uint64_t key = key_of(k, spec);
    *out = NULL;
    spec->like = ot_packed_find(s, k->source, key);
    if (!spec->like) {
        spec->room = OT_WINOGRAD_ROOM - s->winograd_growth;
        if (!ot_winograd_pays(spec)) return OT_OK;
        key = key_of(k, spec);
        spec->like = ot_packed_find(s, k->source, key);
    }
    if (!spec->like) {
        int64_t growth, bytes = ot_winograd_would_hold(spec, &growth);
        ot_winograd *first;
        const lw_conv *how = lw_conv_keep(l, k);
        if (!how) return ot_fail_nomem(s->d);
        OT_TRY(ot_winograd_new(spec, s->d, &first));
        OT_TRY(ot_packed_later(s, k->source, key, first, free_wino, fill_wino, how));
        s->winograd_growth += growth;
        s->figures.weight_bytes += bytes;
        spec->like = first;
    }
    return ot_winograd_new(spec, s->d, out);
}

static ot_status run_wino(ot_call *c)
{
    const ot_winograd *w = c->state->data;
    OT_TRY(ot_call_place(c, 0));
    ot_winograd_run(w, c->in[0]->data, c->in[0]->strides, c->out[0]->data, c->out[0]->strides,
                    c->n_in > 1 ? c->in[1]->data : NULL, c->work);
    return OT_OK;
}

ot_status lw_winograd_op(lw_pass *l, const lw_conv *k, ot_winograd **out)
{
    ot_winograd_spec spec;
    *out = NULL;
    return describe(l, k, &spec) ? make(l, k, &spec, out) : OT_OK;
}

ot_status lw_write_winograd(lw_pass *l, lw_unit *u, bool in_place, bool *done)
{
    const lw_conv *k = u->plan;
    ot_winograd *w;
    ot_id in[2], out;
    ot_step *step = NULL;
    bool residual = k->residual != OT_NONE;
    *done = false;
    OT_TRY(lw_winograd_op(l, k, &w));
    if (!w) return OT_OK;
    ot_status st = lw_need(l, k->x, LW_ANY_BLOCK, LW_BLOCK, &in[0]);
    if (st == OT_OK && residual) st = lw_need(l, k->residual, LW_BIT(LW_BLOCK), LW_BLOCK, &in[1]);
    if (st == OT_OK) st = lw_make(l, k->y, LW_BLOCK, &out);
    if (st == OT_OK)
        st = lw_push(l, u->nodes[0], run_wino, w, (ot_id_list){in, residual ? 2 : 1},
                     (ot_id_list){&out, 1}, &step);
    if (st != OT_OK) {
        ot_winograd_free(w);
        return st;
    }
    step->state = (ot_op_state){w, free_wino};
    step->work = ot_winograd_scratch(w);
    if (in_place) step->in_place = 1;
    *done = true;
    return OT_OK;
}
