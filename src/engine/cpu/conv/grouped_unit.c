/* A grouped convolution of a unit by the loops of grouped_conv.h. */
#include "conv.h"
#include "grouped_conv.h"
#include "grouped_lanes.h"

/* What a step runs. */
typedef struct group_op {
    const ot_grouped_conv *conv;
    const float *packed;
} group_op;

/* How packed weights are made. */
typedef struct packing {
    const lw_conv *conv;
    const ot_grouped_conv *group;
} packing;

/* Which convolutions: see grouped_conv.h. Their posts are those that Winograd's loops have. */
static bool describe(const lw_pass *l, const lw_conv *k, ot_grouped_spec *s)
{
    int64_t maps = k->group > 0 ? k->maps / k->group : 0, b = l->block;
    ot_winograd_spec posts = {0};
    if (k->type != OT_F32 || k->transposed || k->win.n != 2 || k->group < 2 ||
        k->weights != k->source || (k->channels == 1 && maps == 1) ||
        (k->channels % b == 0 && maps % b == 0) || !lw_wino_posts(k, &posts))
        return false;
    *s = (ot_grouped_spec){.batch = k->x_form.dims[0],
                           .group = k->group,
                           .channels = k->channels,
                           .maps = maps,
                           .act = (int)posts.act,
                           .alpha = posts.alpha,
                           .beta = posts.beta};
    double work = (double)s->batch * (double)k->maps * (double)k->channels;
    for (uint32_t a = 0; a < 2; a++) {
        s->in[a] = k->win.in[a];
        s->out[a] = k->win.out[a];
        s->kernel[a] = k->win.kernel[a];
        s->stride[a] = k->win.stride[a];
        s->dilation[a] = k->win.dilation[a];
        s->lo[a] = k->win.lo[a];
        work *= (double)s->kernel[a] * (double)s->out[a];
    }
    s->threads = k->alone ? 1 : lw_threads(l, work);
    return ot_grouped_fits(s);
}

static void free_block(void *data) { ot_block_unref(data); }

static ot_status fill(ot_session *s, const ot_packed *packed, bool own)
{
    const packing *how = packed->how;
    const lw_conv *k = how->conv;
    int64_t each = k->channels * k->win.kernel[0] * k->win.kernel[1];
    ot_block *copy;
    const float *weights = lw_conv_weights(k, k->maps * each, &copy);
    (void)own;
    if (!weights) return ot_fail_nomem(s->d);
    ot_grouped_pack(how->group, weights, k->scaled ? k->scale : NULL, k->shift,
                    ot_block_data(packed->data));
    ot_block_unref(copy);
    return OT_OK;
}

/* Packed weights are the same for all sizes of arrays. */
static ot_status find_packed(lw_pass *l, const lw_conv *k, const ot_grouped_spec *spec,
                             const ot_grouped_conv *g, const float **out)
{
    ot_session *s = l->p->s;
    uint64_t form = ot_hash_bytes(3, &spec->group, sizeof spec->group);
    form = ot_hash_bytes(form, k->scale, (size_t)k->maps * sizeof *k->scale);
    form = ot_hash_bytes(form, k->shift, (size_t)k->maps * sizeof *k->shift);
    ot_block *packed = ot_packed_find(s, k->source, form);
    if (!packed) {
        int64_t bytes = ot_grouped_floats(g) * (int64_t)sizeof(float);
        packing *how = OT_NEW(l->a, packing);
        if (how) *how = (packing){lw_conv_keep(l, k), g};
        packed = how && how->conv ? ot_block_new(NULL, (size_t)bytes) : NULL;
        if (!packed) return ot_fail_nomem(s->d);
        OT_TRY(ot_packed_later(s, k->source, form, packed, free_block, fill, how));
        s->figures.weight_bytes += bytes;
    }
    *out = ot_block_data(packed);
    return OT_OK;
}

static ot_status run_group(ot_call *c)
{
    const group_op *op = c->state->data;
    OT_TRY(ot_call_place(c, 0));
    ot_grouped_run_all(op->conv, op->packed, c->in[0]->data, c->in[0]->strides, c->out[0]->data,
                       c->out[0]->strides, c->n_in > 1 ? c->in[1]->data : NULL, c->work);
    return OT_OK;
}

ot_status lw_write_grouped(lw_pass *l, lw_unit *u, bool in_place, bool *done)
{
    const lw_conv *k = u->plan;
    ot_grouped_spec spec;
    ot_id in[2], out;
    ot_step *step = NULL;
    bool residual = k->residual != OT_NONE;
    *done = false;
    if (!describe(l, k, &spec)) return OT_OK;
    group_op *op = OT_NEW(l->a, group_op);
    ot_grouped_conv *g = op ? ot_grouped_new(l->a, &spec, ot_grouped_machine()) : NULL;
    if (!g) return ot_fail_nomem(l->p->s->d);
    op->conv = g;
    OT_TRY(find_packed(l, k, &spec, g, &op->packed));
    OT_TRY(lw_need(l, k->x, LW_ANY_BLOCK, LW_BLOCK, &in[0]));
    if (residual) OT_TRY(lw_need(l, k->residual, LW_BIT(LW_BLOCK), LW_BLOCK, &in[1]));
    OT_TRY(lw_make(l, k->y, LW_BLOCK, &out));
    OT_TRY(lw_push(l, u->nodes[0], run_group, op, (ot_id_list){in, residual ? 2 : 1},
                   (ot_id_list){&out, 1}, &step));
    step->state = (ot_op_state){op, NULL};
    step->work = ot_grouped_scratch(g);
    if (in_place) step->in_place = 1;
    *done = true;
    return OT_OK;
}
