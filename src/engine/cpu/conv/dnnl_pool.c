/* Pools by oneDNN: MaxPool without indices, AveragePool, and their global forms. Those of 16
 * bits have loops of our own (half_pool.c).
 *
 * Blocked where the input is there blocked, else on plain arrays. An average whose windows hang
 * over the end of the pads (ceil_mode) divides by what ONNX counts and oneDNN does not: it is
 * left to the node's own implementation, like everything that oneDNN would give to a reference.
 */
#include "conv.h"

#include "engine/core/dnnl_util.h"
#include "engine/ref/ref_window.h"

#include <stdatomic.h>

typedef struct pool_unit {
    dnnl_alg_kind_t alg;
    ot_window win;
} pool_unit;

#define PARTS_EACH 2 /* parts that each thread gets, where there are as many channels */

/* Channels of all images lie one after another, and each is pooled by itself: [N, C, ...] is [1,
 * N C, ...], of which parts are taken. */
typedef struct pool_part {
    ot_dnnl_op op;      /* src, dst, scratchpad */
    int64_t x_at, y_at; /* elements before what it reads and writes */
} pool_part;

typedef struct pool_setup {
    pool_part *parts; /* [n] */
    uint32_t n, threads;
    int64_t pad;                 /* bytes of scratch of a thread */
    const dnnl_stream_t *stream; /* [threads] */
} pool_setup;

static bool is_global(const ot_node *n)
{
    return n->op == OT_OP_GlobalAveragePool || n->op == OT_OP_GlobalMaxPool;
}

static uint32_t threads_for(const lw_pass *l, const lw_unit *u)
{
    const pool_unit *p = u->plan;
    int64_t n;
    double work = ot_nd_elems(&l->v[u->out[0]].slot->fore, &n) ? (double)n : 0;
    for (uint32_t a = 0; a < p->win.n; a++) work *= (double)p->win.kernel[a];
    return lw_threads(l, work);
}

/* The window of a pool whose result has the dims of y. */
static bool read_window(const lw_pass *l, const ot_node *n, const ot_nd *x, const ot_nd *y,
                        ot_window *w)
{
    ot_diag ignored = {0};
    ot_call c = {.g = l->p->g, .node = n, .diag = &ignored};
    if (is_global(n)) {
        *w = (ot_window){.n = x->rank - 2};
        for (uint32_t a = 0; a < w->n; a++) {
            w->in[a] = w->kernel[a] = x->dims[a + 2];
            w->stride[a] = w->dilation[a] = w->out[a] = 1;
        }
        return true;
    }
    if (ot_window_read(&c, x, NULL, w) != OT_OK || w->n + 2 != y->rank) return false;
    for (uint32_t a = 0; a < w->n; a++) {
        int64_t reach, pads;
        w->out[a] = y->dims[a + 2];
        if (w->out[a] < 1) return false;
        reach = (w->out[a] - 1) * w->stride[a] + (w->kernel[a] - 1) * w->dilation[a] + 1;
        pads = ot_max(0, reach - w->in[a]);
        if (w->same_upper || w->same_lower) {
            w->lo[a] = w->same_upper ? pads / 2 : pads - pads / 2;
            w->hi[a] = pads - w->lo[a];
        }
    }
    return true;
}

static bool fits(const lw_pass *l, const lw_unit *u, pool_unit *p)
{
    const ot_node *n = u->nodes[0];
    bool average = n->op == OT_OP_AveragePool || n->op == OT_OP_GlobalAveragePool;
    if (u->kind != LW_NODE || (!average && n->op != OT_OP_MaxPool && n->op != OT_OP_GlobalMaxPool))
        return false;
    if (u->n_in != 1 || (u->n_out > 1 && u->step->out_slots[1]) || !lw_is_real(l, u->in[0]) ||
        !lw_is_real(l, u->out[0]))
        return false;
    const ot_nd *x = &l->v[u->in[0]].slot->fore, *y = &l->v[u->out[0]].slot->fore;
    if (x->dtype != y->dtype || x->rank < 3 || x->rank > 5 || y->rank != x->rank ||
        !read_window(l, n, x, y, &p->win))
        return false;
    p->alg = !average                                 ? dnnl_pooling_max
             : ot_attr_int(n, "count_include_pad", 0) ? dnnl_pooling_avg_include_padding
                                                      : dnnl_pooling_avg_exclude_padding;
    for (uint32_t a = 0; a < p->win.n; a++) {
        int64_t reach = (p->win.out[a] - 1) * p->win.stride[a] +
                        (p->win.kernel[a] - 1) * p->win.dilation[a] + 1;
        int64_t last = reach - p->win.in[a] - p->win.lo[a]; /* pads that the last window needs */
        if (p->alg == dnnl_pooling_avg_include_padding && last > p->win.hi[a]) return false;
        if (p->win.lo[a] >= p->win.kernel[a] ||
            last >= (p->win.kernel[a] - 1) * p->win.dilation[a] + 1)
            return false;
        if (average && p->win.dilation[a] != 1) return false;
        p->win.hi[a] = last;
    }
    return true;
}

/* A part of a: `channels` of those of all images together. */
static void set_form(ot_nd *a, bool blocked, int64_t channels, uint32_t block)
{
    int64_t dims[OT_RANK_MAX];
    memcpy(dims, a->dims, a->rank * sizeof *dims);
    dims[0] = 1;
    dims[1] = channels;
    if (blocked)
        ot_nd_set_blocked(a, a->dtype, a->rank, dims, block);
    else
        ot_nd_set_dense(a, a->dtype, a->rank, dims);
}

/* The primitive for so many channels, or NULL. */
static dnnl_primitive_desc_t describe(lw_pass *l, const lw_unit *u, const pool_unit *p,
                                      bool blocked, int64_t channels)
{
    dnnl_engine_t e = ot_dnnl_engine(l->p->s);
    ot_nd x = l->v[u->in[0]].slot->fore, y = l->v[u->out[0]].slot->fore;
    dnnl_memory_desc_t src, dst;
    dnnl_pooling_v2_desc_t pool;
    dnnl_dims_t strides, kernel, dilation, lo, hi;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    set_form(&x, blocked, channels, l->block);
    set_form(&y, blocked, channels, l->block);
    if (!e || !ot_dnnl_md(&src, &x) || !ot_dnnl_md(&dst, &y)) return NULL;
    for (uint32_t a = 0; a < p->win.n; a++) {
        strides[a] = p->win.stride[a];
        kernel[a] = p->win.kernel[a];
        dilation[a] = p->win.dilation[a] - 1;
        lo[a] = p->win.lo[a];
        hi[a] = p->win.hi[a];
    }
    if (dnnl_pooling_v2_forward_desc_init(&pool, dnnl_forward_inference, p->alg, &src, &dst,
                                          strides, kernel, dilation, lo, hi) != dnnl_success ||
        dnnl_primitive_attr_create(&attr) != dnnl_success)
        return NULL;
    if (dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) != dnnl_success ||
        dnnl_primitive_desc_create(&pd, &pool, attr, e, NULL) != dnnl_success)
        pd = NULL;
    dnnl_primitive_attr_destroy(attr);
    if (!pd || !ot_dnnl_is_reference(pd)) return pd;
    dnnl_primitive_desc_destroy(pd);
    return NULL;
}

static bool is_half(const lw_pass *l, const lw_unit *u)
{
    return ot_dtype_is_half(l->v[u->in[0]].slot->fore.dtype);
}

/* Of all images; blocked: with those that pad blocks. */
static int64_t channels_of(const lw_pass *l, const lw_unit *u, bool blocked)
{
    const ot_nd *x = &l->v[u->in[0]].slot->fore;
    return x->dims[0] * (blocked ? ot_ceil_div(x->dims[1], l->block) * l->block : x->dims[1]);
}

ot_status lw_fuse_pool(lw_pass *l)
{
    for (uint32_t u = 0; u < l->n_units; u++) {
        pool_unit p, *own;
        lw_unit *unit = &l->units[u];
        if (!fits(l, unit, &p)) continue;
        if (!is_half(l, unit)) {
            dnnl_primitive_desc_t pd = describe(l, unit, &p, true, channels_of(l, unit, true));
            if (!pd) continue;
            dnnl_primitive_desc_destroy(pd);
        }
        own = ot_memdup(l->a, &p, sizeof p);
        if (!own) return ot_fail_nomem(l->p->s->d);
        unit->kind = LW_POOL;
        unit->plan = own;
    }
    return OT_OK;
}

typedef struct pool_run {
    const pool_setup *p;
    float *x, *y;
    char *work; /* [threads][pad] */
    atomic_bool failed;
} pool_run;

static void parts_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    pool_run *r = job;
    const pool_setup *p = r->p;
    for (int64_t k = first; k < end; k++) {
        pool_part *part = &p->parts[k];
        ot_dnnl_set(&part->op, 0, r->x + part->x_at);
        ot_dnnl_set(&part->op, 1, r->y + part->y_at);
        if (p->pad) ot_dnnl_set(&part->op, 2, r->work + worker * p->pad);
        part->op.stream = p->stream[worker];
        if (!ot_dnnl_run(&part->op)) r->failed = true;
    }
}

static ot_status run_pool(ot_call *c)
{
    pool_run r = {.p = c->state->data, .work = c->work};
    OT_TRY(ot_call_place(c, 0));
    r.x = c->in[0]->data;
    r.y = c->out[0]->data;
    ot_pool_share_each(r.p->threads, r.p->n, parts_share, &r);
    return r.failed ? ot_call_fail(c, "oneDNN failed") : OT_OK;
}

static void free_plan(void *data)
{
    pool_setup *p = data;
    for (uint32_t k = 0; p->parts && k < p->n; k++) ot_dnnl_op_free(&p->parts[k].op);
}

/* Elements of a channel (of a block of channels, all of it). */
static int64_t plane_of(const lw_pass *l, ot_id v)
{
    const ot_nd *a = &l->v[v].slot->fore;
    int64_t n = 1;
    for (uint32_t k = 2; k < a->rank; k++) n *= a->dims[k];
    return n;
}

/* One part, channels [first, first + n). */
static bool prepare(lw_pass *l, const lw_unit *u, bool blocked, int64_t first, int64_t n,
                    pool_setup *p, pool_part *part)
{
    dnnl_engine_t e = ot_dnnl_engine(l->p->s);
    dnnl_primitive_desc_t pd = describe(l, u, u->plan, blocked, n);
    if (!pd) return false;
    const dnnl_memory_desc_t *pad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    int64_t bytes = ot_ceil_div((int64_t)dnnl_memory_desc_get_size(pad), OT_ARENA_ALIGN) *
                    OT_ARENA_ALIGN;
    p->pad = ot_max(p->pad, bytes);
    part->x_at = first * plane_of(l, u->in[0]);
    part->y_at = first * plane_of(l, u->out[0]);
    bool ok = dnnl_primitive_create(&part->op.primitive, pd) == dnnl_success &&
              ot_dnnl_arg(&part->op, e, DNNL_ARG_SRC,
                          dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0), NULL) &&
              ot_dnnl_arg(&part->op, e, DNNL_ARG_DST,
                          dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0), NULL) &&
              (!bytes || ot_dnnl_arg(&part->op, e, DNNL_ARG_SCRATCHPAD, pad, NULL));
    dnnl_primitive_desc_destroy(pd);
    return ok;
}

static bool prepare_all(lw_pass *l, const lw_unit *u, bool blocked, pool_setup *p)
{
    uint32_t threads = threads_for(l, u);
    int64_t unit = blocked ? l->block : 1, units = channels_of(l, u, blocked) / unit;
    p->n = (uint32_t)ot_min(units, threads > 1 ? (int64_t)threads * PARTS_EACH : 1);
    p->threads = (uint32_t)ot_min(threads, p->n);
    p->parts = OT_NEW_N(l->a, pool_part, p->n);
    p->stream = ot_dnnl_streams(l->p, p->threads);
    bool ok = p->parts && p->stream;
    for (int64_t k = 0; ok && k < p->n; k++) {
        int64_t first = units * k / p->n * unit;
        ok = prepare(l, u, blocked, first, units * (k + 1) / p->n * unit - first, p, &p->parts[k]);
    }
    return ok;
}

ot_status lw_write_pool(lw_pass *l, lw_unit *u)
{
    ot_id in, out;
    ot_step *step = NULL;
    const pool_unit *unit = u->plan;
    if (is_half(l, u))
        return lw_write_half_pool(l, u, &unit->win, unit->alg == dnnl_pooling_max,
                                  unit->alg == dnnl_pooling_avg_include_padding);
    pool_setup *p = OT_NEW(l->a, pool_setup);
    bool blocked = lw_has(l, u->in[0], LW_ANY_BLOCK);
    if (!p) return ot_fail_nomem(l->p->s->d);
    bool ok = !blocked && prepare_all(l, u, false, p);
    if (!ok) {
        free_plan(p);
        *p = (pool_setup){0};
        blocked = true;
        ok = prepare_all(l, u, true, p);
    }
    lw_layout layout = blocked ? LW_BLOCK : LW_PLAIN;
    ot_status st = ok ? lw_need(l, u->in[0], LW_BIT(layout), layout, &in)
                      : ot_fail_nomem(l->p->s->d);
    if (st == OT_OK) st = lw_make(l, u->out[0], layout, &out);
    if (st == OT_OK)
        st = lw_push(l, u->nodes[0], run_pool, p, (ot_id_list){&in, 1}, (ot_id_list){&out, 1},
                     &step);
    if (st != OT_OK) {
        free_plan(p);
        return st;
    }
    step->state = (ot_op_state){p, free_plan};
    step->work = p->pad * p->threads;
    return OT_OK;
}
