/* Convolutions by oneDNN, with their post-operations.
 *
 *   layouts tried   source   result         for
 *                   BLOCK    BLOCK          most
 *                   PLAIN    BLOCK          few channels: blocks would be padding
 *                   PLAIN    PLAIN          what only the matrix product (im2col) can do
 *
 * An implementation that calls itself a reference is a hundred times slower: such a convolution
 * is left to the next layout, and if none is left the node is not fused. Weights are scaled (a
 * folded normalisation), packed as the primitive likes, and kept for all schedules of the
 * session. Primitives are made for one thread; threads share out parts (conv_cut.h), which read
 * their part of the weights where it lies in the whole.
 */
#include "conv_cut.h"
#include "dnnl_weights.h"

#include <stdatomic.h>

/* A part of the convolution, ready to run. */
typedef struct conv_piece {
    ot_dnnl_op op; /* src, weights, bias, dst, scratchpad, residual */
    lw_conv_part part;
    int64_t x_at, y_at; /* elements before what it reads and writes */
    bool copies;        /* its input, before */
} conv_piece;

struct conv_op {
    conv_piece *pieces; /* [n_pieces] */
    uint32_t n_pieces, threads;
    ot_nd x;                     /* form of the input */
    int64_t pad, copy;           /* bytes of scratch of a thread: oneDNN's, rows that are copied */
    const dnnl_stream_t *stream; /* [threads] */
    bool residual;               /* an argument of its own; else it is in dst before */
};

/* ---- descriptors ---- */

static dnnl_status_t append_eltwise(dnnl_post_ops_t ops, const lw_post *p)
{
    switch (p->kind) {
    case LW_POST_RELU: return dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, p->alpha, 0);
    case LW_POST_CLIP:
        return dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_clip, p->alpha, p->beta);
    case LW_POST_SIGMOID: return dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_logistic, 0, 0);
    case LW_POST_ELU: return dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_elu, p->alpha, 0);
    case LW_POST_SILU: return dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_swish, 1, 0);
    case LW_POST_HARDSWISH:
        return dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_hardswish, 0, 0);
    case LW_POST_NONE:
    case LW_POST_ADD: break;
    }
    return dnnl_invalid_arguments;
}

static dnnl_primitive_attr_t make_attr(const lw_conv *k, const dnnl_memory_desc_t *dst, bool sum)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    if (dnnl_primitive_attr_create(&attr) != dnnl_success) return NULL;
    bool ok = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) ==
                  dnnl_success &&
              dnnl_post_ops_create(&ops) == dnnl_success;
    for (uint32_t j = 0; ok && j < k->n_posts; j++)
        ok = (k->posts[j].kind != LW_POST_ADD ? append_eltwise(ops, &k->posts[j])
              : sum                           ? dnnl_post_ops_append_sum(ops, 1)
                    : dnnl_post_ops_append_binary(ops, dnnl_binary_add, dst)) == dnnl_success;
    ok = ok && dnnl_primitive_attr_set_post_ops(attr, ops) == dnnl_success;
    if (ops) dnnl_post_ops_destroy(ops);
    if (ok) return attr;
    dnnl_primitive_attr_destroy(attr);
    return NULL;
}

/* Sizes that ONNX allows and oneDNN does not mean the same by. */
static bool window_fits(const lw_conv *k)
{
    for (uint32_t a = 0; a < k->win.n; a++)
        if (k->win.lo[a] < 0 || k->win.hi[a] < 0 || k->win.out[a] < 1) return false;
    return true;
}

static const char *name_of(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";
    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success ? name
                                                                                             : "";
}

/* The implementation of that name, or NULL: others add up in another order. */
static dnnl_primitive_desc_t find_named(const dnnl_convolution_desc_t *conv,
                                        const_dnnl_primitive_attr_t attr, dnnl_engine_t e,
                                        const char *name)
{
    dnnl_primitive_desc_iterator_t i = NULL;
    dnnl_primitive_desc_t found = NULL;
    if (dnnl_primitive_desc_iterator_create(&i, conv, attr, e, NULL) != dnnl_success) return NULL;
    do {
        found = dnnl_primitive_desc_iterator_fetch(i);
        if (found && strcmp(name_of(found), name) == 0) break;
        if (found) dnnl_primitive_desc_destroy(found);
        found = NULL;
    } while (dnnl_primitive_desc_iterator_next(i) == dnnl_success);
    dnnl_primitive_desc_iterator_destroy(i);
    return found;
}

/* What the parts of a convolution take from the whole. */
typedef struct whole {
    const dnnl_memory_desc_t *weights; /* as they are packed */
    const char *name;                  /* of the implementation */
} whole;

/* The primitive for these layouts, or NULL. of: NULL, or the whole that it is a part of;
 * `weights` are the part's then. */
static dnnl_primitive_desc_t describe(lw_pass *l, const lw_conv *k, const ot_nd *x, const ot_nd *y,
                                      bool sum, const whole *of)
{
    dnnl_engine_t e = ot_dnnl_engine(l->p->s);
    dnnl_memory_desc_t src, dst, weights, bias;
    dnnl_convolution_desc_t conv;
    dnnl_dims_t strides, dilations, lo, hi, maps = {k->maps};
    dnnl_primitive_desc_t pd = NULL;
    if (!e || !window_fits(k) || !ot_dnnl_md(&src, x) || !ot_dnnl_md(&dst, y) ||
        !lw_weights_md(k, &weights, true))
        return NULL;
    if (of) weights = *of->weights;
    if (dnnl_memory_desc_init_by_tag(&bias, 1, maps, dnnl_f32, dnnl_x) != dnnl_success) return NULL;
    for (uint32_t a = 0; a < k->win.n; a++) {
        strides[a] = k->win.stride[a];
        dilations[a] = k->win.dilation[a] - 1;
        lo[a] = k->win.lo[a];
        /* what the last window really reaches: less when the stride leaves a rest */
        hi[a] = (k->win.out[a] - 1) * k->win.stride[a] +
                (k->win.kernel[a] - 1) * k->win.dilation[a] + 1 - k->win.in[a] - lo[a];
    }
    if (dnnl_dilated_convolution_forward_desc_init(
            &conv, dnnl_forward_inference, dnnl_convolution_direct, &src, &weights, &bias, &dst,
            strides, dilations, lo, hi) != dnnl_success)
        return NULL;
    dnnl_primitive_attr_t attr = make_attr(k, &dst, sum);
    if (!attr) return NULL;
    if (of)
        pd = find_named(&conv, attr, e, of->name);
    else if (dnnl_primitive_desc_create(&pd, &conv, attr, e, NULL) != dnnl_success)
        pd = NULL;
    dnnl_primitive_attr_destroy(attr);
    if (pd && ot_dnnl_is_reference(pd)) {
        dnnl_primitive_desc_destroy(pd);
        pd = NULL;
    }
    return pd;
}

static const struct {
    lw_layout x, y;
} wide[] = {{LW_BLOCK, LW_BLOCK}, {LW_PLAIN, LW_BLOCK}, {LW_PLAIN, LW_PLAIN}},
  narrow[] = {{LW_PLAIN, LW_BLOCK}, {LW_BLOCK, LW_BLOCK}, {LW_PLAIN, LW_PLAIN}};

void lw_conv_in_layout(const lw_pass *l, const ot_nd *form, lw_layout layout, ot_nd *out)
{
    *out = *form;
    if (layout == LW_BLOCK) ot_nd_set_blocked(out, form->dtype, form->rank, form->dims, l->block);
}

static uint32_t threads_for(const lw_pass *l, const lw_conv *k)
{
    double work = (double)k->maps * (double)k->channels * (double)k->x_form.dims[0];
    if (k->alone) return 1;
    for (uint32_t a = 0; a < k->win.n; a++)
        work *= (double)k->win.kernel[a] * (double)k->win.out[a];
    return lw_threads(l, work);
}

bool lw_conv_takes(lw_pass *l, const lw_conv *k, const ot_nd *x, const ot_nd *y, bool sum)
{
    dnnl_primitive_desc_t pd = describe(l, k, x, y, sum, NULL);
    if (pd) dnnl_primitive_desc_destroy(pd);
    return pd != NULL;
}

bool lw_conv_choose(lw_pass *l, const lw_conv *k, bool sum, lw_layout *lx, lw_layout *ly)
{
    bool few = k->channels < 8 && k->group == 1;
    for (uint32_t j = 0; j < 3; j++) {
        ot_nd x, y;
        *lx = few ? narrow[j].x : wide[j].x;
        *ly = few ? narrow[j].y : wide[j].y;
        lw_conv_in_layout(l, &k->x_form, *lx, &x);
        lw_conv_in_layout(l, &k->y_form, *ly, &y);
        if (lw_conv_takes(l, k, &x, &y, sum)) return true;
    }
    return false;
}

bool lw_conv_supported(lw_pass *l, const lw_conv *k)
{
    lw_layout x, y;
    if (k->type != OT_F32) return lw_strips_supported(l, k);
    return lw_conv_choose(l, k, false, &x, &y);
}

/* ---- running one ---- */

typedef struct conv_run {
    const conv_op *op;
    float *x, *y, *residual;
    char *work;
    atomic_bool failed;
} conv_run;

static void run_piece(conv_run *r, conv_piece *p, uint32_t worker)
{
    const conv_op *op = r->op;
    char *work = r->work ? r->work + worker * (op->pad + op->copy) : NULL; /* none is needed */
    float *x = r->x + p->x_at;
    uint32_t at = 4;
    if (p->copies) {
        x = (float *)(void *)(work + op->pad);
        lw_conv_part_copy(&op->x, &p->part, x, r->x);
    }
    ot_dnnl_set(&p->op, 0, x);
    ot_dnnl_set(&p->op, 3, r->y + p->y_at);
    if (op->pad) ot_dnnl_set(&p->op, at++, work);
    if (op->residual) ot_dnnl_set(&p->op, at, r->residual + p->y_at);
    p->op.stream = op->stream[worker];
    if (!ot_dnnl_run(&p->op)) r->failed = true;
}

static void pieces_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    conv_run *r = job;
    for (int64_t k = first; k < end; k++) run_piece(r, &r->op->pieces[k], worker);
}

bool lw_conv_run(conv_op *op, void *x, void *y, void *residual, void *work)
{
    conv_run r = {.op = op, .x = x, .y = y, .residual = residual, .work = work};
    ot_pool_share_each(op->threads, op->n_pieces, pieces_share, &r);
    return !r.failed;
}

int64_t lw_conv_work(const conv_op *op) { return (op->pad + op->copy) * op->threads; }

void lw_conv_free(conv_op *op)
{
    for (uint32_t k = 0; op && op->pieces && k < op->n_pieces; k++)
        ot_dnnl_op_free(&op->pieces[k].op);
}

/* Which argument number the residual has: that of its post-operation. */
static int residual_arg(const lw_conv *k)
{
    for (uint32_t j = 0; j < k->n_posts; j++)
        if (k->posts[j].kind == LW_POST_ADD)
            return DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)j) | DNNL_ARG_SRC_1;
    return 0;
}

/* ---- making one ---- */

/* The shift, padded with zeros to whole blocks. */
static float *bias_of(const lw_pass *l, const lw_conv *k)
{
    int64_t n = ot_ceil_div(k->maps, 16) * 16;
    float *b = OT_NEW_N(l->a, float, n);
    if (b) memcpy(b, k->shift, (size_t)k->maps * sizeof *b);
    return b;
}

/* What pieces are made of. */
typedef struct maker {
    lw_pass *l;
    const lw_conv *k;
    const ot_nd *x, *y;
    bool sum;
    whole whole;
    char *packed;
    float *bias;
} maker;

/* The part's weights in those of the whole: their form, and the bytes before them. */
static bool part_weights(const maker *m, const lw_conv_part *part, dnnl_memory_desc_t *md,
                         int64_t *at)
{
    dnnl_dims_t dims, offsets = {0};
    /* along the first axis of weights */
    int64_t each = m->k->group > 1 ? m->k->maps / m->k->group : 1;
    memcpy(dims, m->whole.weights->dims, sizeof dims);
    dims[0] = part->maps / each;
    offsets[0] = part->map / each;
    if (dnnl_memory_desc_init_submemory(md, m->whole.weights, dims, offsets) != dnnl_success)
        return false;
    *at = md->offset0 * (int64_t)sizeof(float);
    md->offset0 = 0;
    return true;
}

static int64_t up(int64_t bytes) { return ot_ceil_div(bytes, OT_ARENA_ALIGN) * OT_ARENA_ALIGN; }

static bool add_args(const maker *m, dnnl_primitive_desc_t pd, const lw_conv_part *part,
                     int64_t weights_at, conv_op *op, conv_piece *p)
{
    dnnl_engine_t e = ot_dnnl_engine(m->l->p->s);
    const dnnl_memory_desc_t *src = dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0),
                             *dst = dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0),
                             *weights = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0),
                             *bias = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 1),
                             *pad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    return dnnl_primitive_create(&p->op.primitive, pd) == dnnl_success &&
           ot_dnnl_arg(&p->op, e, DNNL_ARG_SRC, src, NULL) &&
           ot_dnnl_arg(&p->op, e, DNNL_ARG_WEIGHTS, weights, m->packed + weights_at) &&
           ot_dnnl_arg(&p->op, e, DNNL_ARG_BIAS, bias, m->bias + part->map) &&
           ot_dnnl_arg(&p->op, e, DNNL_ARG_DST, dst, NULL) &&
           (!op->pad || ot_dnnl_arg(&p->op, e, DNNL_ARG_SCRATCHPAD, pad, NULL)) &&
           (!op->residual || ot_dnnl_arg(&p->op, e, residual_arg(m->k), dst, NULL));
}

static int64_t pad_of(dnnl_primitive_desc_t pd)
{
    return up((int64_t)dnnl_memory_desc_get_size(
        dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0)));
}

/* The primitive of a part; NULL: there is none that is fast and reads weights as they lie. */
static dnnl_primitive_desc_t describe_part(const maker *m, const lw_conv_part *part, ot_nd *x,
                                           int64_t *weights_at)
{
    lw_conv k;
    ot_nd y;
    dnnl_memory_desc_t weights;
    lw_conv_part_of(m->k, m->x, m->y, part, &k, x, &y);
    if (!part_weights(m, part, &weights, weights_at)) return NULL;
    return describe(m->l, &k, x, &y, m->sum, &(whole){&weights, m->whole.name});
}

/* Has each of the parts a primitive? Sets what they need of scratch. */
static bool measure_parts(const maker *m, const lw_conv_part *parts, uint32_t n, conv_op *op)
{
    bool all = true;
    for (uint32_t k = 0; k < n && all; k++) {
        ot_nd x;
        int64_t at, bytes;
        dnnl_primitive_desc_t pd = describe_part(m, &parts[k], &x, &at);
        all = pd != NULL && ot_nd_span(&x, &bytes);
        if (!all) continue;
        op->pad = ot_max(op->pad, pad_of(pd));
        if (!lw_conv_part_is_dense(m->x, &parts[k])) op->copy = ot_max(op->copy, up(bytes));
        dnnl_primitive_desc_destroy(pd);
    }
    if (!all) op->pad = op->copy = 0;
    return all;
}

/* all: NULL, or the primitive of all of it, of which a single part is made. */
static ot_status make_pieces(const maker *m, const lw_conv_part *parts, uint32_t n,
                             dnnl_primitive_desc_t all, conv_op *op)
{
    op->pieces = OT_NEW_N(m->l->a, conv_piece, n);
    if (!op->pieces) return ot_fail_nomem(m->l->p->s->d);
    op->n_pieces = n;
    for (uint32_t k = 0; k < n; k++) {
        conv_piece *p = &op->pieces[k];
        int64_t at = 0;
        ot_nd x;
        dnnl_primitive_desc_t pd = all ? all : describe_part(m, &parts[k], &x, &at);
        bool ok = pd && add_args(m, pd, &parts[k], at, op, p);
        if (pd && pd != all) dnnl_primitive_desc_destroy(pd);
        if (!ok) return ot_fail_nomem(m->l->p->s->d);
        p->part = parts[k];
        p->x_at = lw_conv_part_source(m->x, &parts[k]);
        p->y_at = lw_conv_part_result(m->y, &parts[k]);
        p->copies = !all && !lw_conv_part_is_dense(m->x, &parts[k]);
    }
    return OT_OK;
}

/* Direct implementations add up each result in the same order wherever it lies; the matrix product
 * does so in parts of the same size. */
static uint32_t cut(const lw_pass *l, const lw_conv *k, const ot_nd *x, const ot_nd *y,
                    const char *name, uint32_t threads, lw_conv_part **parts)
{
    if (strstr(name, "gemm")) return lw_conv_cut_alike(l->scratch, k, x, parts);
    return lw_conv_cut(l->scratch, k, x, y, threads, parts);
}

static ot_status prepare(lw_pass *l, const lw_conv *k, const ot_nd *x, const ot_nd *y,
                         dnnl_primitive_desc_t pd, bool sum, conv_op *op)
{
    maker m = {.l = l, .k = k, .x = x, .y = y, .sum = sum, .bias = bias_of(l, k)};
    lw_conv_part *parts;
    void *packed = NULL;
    m.whole = (whole){dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0), name_of(pd)};
    uint32_t threads = threads_for(l, k), n = cut(l, k, x, y, m.whole.name, threads, &parts);
    if (!m.bias || !parts) return ot_fail_nomem(l->p->s->d);
    OT_TRY(lw_weights_pack(l, k, m.whole.weights, &packed));
    m.packed = packed;
    op->x = *x;
    op->residual = k->residual != OT_NONE && !sum;
    bool single = n <= 1 || !measure_parts(&m, parts, n, op);
    if (single && n > 1) n = lw_conv_cut(l->scratch, k, x, y, 1, &parts);
    if (!parts) return ot_fail_nomem(l->p->s->d);
    if (single) op->pad = pad_of(pd);
    op->threads = single ? 1 : (uint32_t)ot_min(threads, n);
    op->stream = ot_dnnl_streams(l->p, op->threads);
    if (!op->stream) return ot_fail_nomem(l->p->s->d);
    return make_pieces(&m, parts, n, single ? pd : NULL, op);
}

ot_status lw_conv_op(lw_pass *l, const lw_conv *k, const ot_nd *x, const ot_nd *y, bool sum,
                     conv_op **out)
{
    conv_op *p = *out = OT_NEW(l->a, conv_op);
    if (!p) return ot_fail_nomem(l->p->s->d);
    dnnl_primitive_desc_t pd = describe(l, k, x, y, sum, NULL);
    ot_status st = pd ? prepare(l, k, x, y, pd, sum, p) : OT_OK;
    if (!pd || st != OT_OK) {
        lw_conv_free(p);
        *out = NULL;
    }
    if (pd) dnnl_primitive_desc_destroy(pd);
    return st;
}

/* ---- the step ---- */

static ot_status run_conv(ot_call *c)
{
    conv_op *p = c->state->data;
    const ot_nd *residual = c->n_in > 1 ? c->in[1] : NULL;
    OT_TRY(ot_call_place(c, 0));
    if (residual && !p->residual && residual->data != c->out[0]->data) {
        int64_t bytes;
        if (!ot_nd_span(residual, &bytes)) OT_BUG("an array in memory cannot be counted");
        memcpy(c->out[0]->data, residual->data, (size_t)bytes);
    }
    bool ok = lw_conv_run(p, c->in[0]->data, c->out[0]->data, residual ? residual->data : NULL,
                          c->work);
    return ok ? OT_OK : ot_call_fail(c, "oneDNN failed");
}

static void free_state(void *data) { lw_conv_free(data); }

/* Can the result take the residual's place: is it added first, and does nobody read it after
 * unit `at`? oneDNN's implementations may keep partial sums in the result, so only its sum, which
 * knows, may read what is there. */
bool lw_conv_adds_in_place(const lw_pass *l, const lw_conv *k, uint32_t at)
{
    if (k->residual == OT_NONE || k->residual == k->x || k->posts[0].kind != LW_POST_ADD)
        return false;
    const lw_value *w = &l->v[k->residual];
    if (w->is_kept || w->maker == OT_NONE || w->of != OT_NONE) return false;
    for (uint32_t r = 0; r < w->n_readers; r++)
        if (l->readers[w->first + r] > at) return false;
    return true;
}

ot_status lw_write_conv(lw_pass *l, lw_unit *u)
{
    const lw_conv *k = u->plan;
    bool sum = lw_conv_adds_in_place(l, k, (uint32_t)(u - l->units)),
         residual = k->residual != OT_NONE;
    lw_layout lx, ly;
    ot_nd x, y;
    ot_id in[2], out;
    ot_step *step = NULL;
    conv_op *p;
    bool done;
    if (k->type != OT_F32) return lw_write_strips(l, u);
    OT_TRY(lw_write_winograd(l, u, sum, &done));
    if (done) return OT_OK;
    OT_TRY(lw_write_grouped(l, u, sum, &done));
    if (done) return OT_OK;
    bool found = lw_conv_choose(l, k, sum, &lx, &ly);
    if (!found && sum) found = lw_conv_choose(l, k, sum = false, &lx, &ly);
    if (!found) return ot_fail_nomem(l->p->s->d); /* it had one, which can only lack memory now */
    lw_conv_in_layout(l, &k->x_form, lx, &x);
    lw_conv_in_layout(l, &k->y_form, ly, &y);
    OT_TRY(lw_conv_op(l, k, &x, &y, sum, &p));
    if (!p) return ot_fail_nomem(l->p->s->d);
    ot_status st = lw_need(l, k->x, LW_BIT(lx), lx, &in[0]);
    if (st == OT_OK && residual) st = lw_need(l, k->residual, LW_BIT(ly), ly, &in[1]);
    if (st == OT_OK) st = lw_make(l, k->y, ly, &out);
    if (st == OT_OK)
        st = lw_push(l, u->nodes[0], run_conv, p, (ot_id_list){in, residual ? 2 : 1},
                     (ot_id_list){&out, 1}, &step);
    if (st != OT_OK) {
        lw_conv_free(p);
        return st;
    }
    step->state = (ot_op_state){p, free_state};
    step->work = lw_conv_work(p);
    if (sum) step->in_place = 1;
    return OT_OK;
}
