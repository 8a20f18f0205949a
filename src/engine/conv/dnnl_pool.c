/* Pools by oneDNN: MaxPool without indices, AveragePool, and their global forms. Those of 16 bits have loops of our own (half_pool.c).
 *
 * Blocked where the input is there blocked, else on plain arrays. An average whose windows hang over the end of the pads
 * (ceil_mode) divides by what ONNX counts and oneDNN does not: it is left to the node's own kernel, like everything that oneDNN
 * would give to a reference.
 */
#include "conv.h"

#include "engine/core/dnnl_util.h"
#include "engine/ref/ref_window.h"

typedef struct pool_unit {
    dnnl_alg_kind_t alg;
    ot_window win;
} pool_unit;

typedef struct pool_plan {
    ot_dnnl_op op; /* src, dst, scratchpad */
    bool scratch;
} pool_plan;

static bool is_global(const ot_node *n) { return n->op == OT_OP_GlobalAveragePool || n->op == OT_OP_GlobalMaxPool; }

static uint32_t threads_for(const lw_pass *l, const lw_unit *u)
{
    const pool_unit *p = u->plan;
    int64_t n;
    double work = ot_nd_elems(&l->v[u->out[0]].slot->fore, &n) ? (double)n : 0;
    for (uint32_t a = 0; a < p->win.n; a++) work *= (double)p->win.kernel[a];
    return lw_threads(l, work);
}

/* The window of a pool whose result has the dims of y. */
static bool read_window(const lw_pass *l, const ot_node *n, const ot_nd *x, const ot_nd *y, ot_window *w)
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
    if (u->kind != LW_NODE || (!average && n->op != OT_OP_MaxPool && n->op != OT_OP_GlobalMaxPool)) return false;
    if (u->n_in != 1 || (u->n_out > 1 && u->step->out_slots[1]) || !lw_is_real(l, u->in[0]) || !lw_is_real(l, u->out[0]))
        return false;
    const ot_nd *x = &l->v[u->in[0]].slot->fore, *y = &l->v[u->out[0]].slot->fore;
    if (x->dtype != y->dtype || x->rank < 3 || x->rank > 5 || y->rank != x->rank || !read_window(l, n, x, y, &p->win)) return false;
    p->alg = !average                                 ? dnnl_pooling_max
             : ot_attr_int(n, "count_include_pad", 0) ? dnnl_pooling_avg_include_padding
                                                      : dnnl_pooling_avg_exclude_padding;
    for (uint32_t a = 0; a < p->win.n; a++) {
        int64_t reach = (p->win.out[a] - 1) * p->win.stride[a] + (p->win.kernel[a] - 1) * p->win.dilation[a] + 1;
        int64_t last = reach - p->win.in[a] - p->win.lo[a]; /* pads that the last window needs */
        if (p->alg == dnnl_pooling_avg_include_padding && last > p->win.hi[a]) return false;
        if (p->win.lo[a] >= p->win.kernel[a] || last >= (p->win.kernel[a] - 1) * p->win.dilation[a] + 1) return false;
        if (average && p->win.dilation[a] != 1) return false;
        p->win.hi[a] = last;
    }
    return true;
}

static dnnl_primitive_desc_t describe(lw_pass *l, const lw_unit *u, const pool_unit *p, bool blocked)
{
    dnnl_engine_t e = ot_dnnl_engine(l->p->s);
    ot_nd x = l->v[u->in[0]].slot->fore, y = l->v[u->out[0]].slot->fore;
    dnnl_memory_desc_t src, dst;
    dnnl_pooling_v2_desc_t pool;
    dnnl_dims_t strides, kernel, dilation, lo, hi;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    if (blocked) {
        ot_nd_set_blocked(&x, x.dtype, x.rank, x.dims, l->block);
        ot_nd_set_blocked(&y, y.dtype, y.rank, y.dims, l->block);
    }
    if (!e || !ot_dnnl_md(&src, &x) || !ot_dnnl_md(&dst, &y)) return NULL;
    for (uint32_t a = 0; a < p->win.n; a++) {
        strides[a] = p->win.stride[a];
        kernel[a] = p->win.kernel[a];
        dilation[a] = p->win.dilation[a] - 1;
        lo[a] = p->win.lo[a];
        hi[a] = p->win.hi[a];
    }
    if (dnnl_pooling_v2_forward_desc_init(&pool, dnnl_forward_inference, p->alg, &src, &dst, strides, kernel, dilation, lo, hi) !=
            dnnl_success ||
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

static bool is_half(const lw_pass *l, const lw_unit *u) { return ot_dtype_is_half(l->v[u->in[0]].slot->fore.dtype); }

ot_status lw_fuse_pool(lw_pass *l)
{
    for (uint32_t u = 0; u < l->n_units; u++) {
        pool_unit p, *own;
        lw_unit *unit = &l->units[u];
        if (!fits(l, unit, &p)) continue;
        if (!is_half(l, unit)) {
            dnnl_primitive_desc_t pd = describe(l, unit, &p, true);
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

static ot_status run_pool(ot_call *c)
{
    pool_plan *p = c->state->data;
    OT_TRY(ot_call_place(c, 0));
    ot_dnnl_set(&p->op, 0, c->in[0]->data);
    ot_dnnl_set(&p->op, 1, c->out[0]->data);
    if (p->scratch) ot_dnnl_set(&p->op, 2, c->work);
    return ot_dnnl_run(&p->op) ? OT_OK : ot_call_fail(c, "oneDNN failed");
}

static void free_plan(void *data)
{
    pool_plan *p = data;
    ot_dnnl_op_free(&p->op);
}

static bool prepare(lw_pass *l, const lw_unit *u, dnnl_primitive_desc_t pd, pool_plan *p, int64_t *work)
{
    dnnl_engine_t e = ot_dnnl_engine(l->p->s);
    const dnnl_memory_desc_t *pad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    *work = (int64_t)dnnl_memory_desc_get_size(pad);
    p->op.stream = ot_dnnl_stream(l->p);
    p->op.threads = threads_for(l, u);
    p->scratch = *work > 0;
    return p->op.stream && dnnl_primitive_create(&p->op.primitive, pd) == dnnl_success &&
           ot_dnnl_arg(&p->op, e, DNNL_ARG_SRC, dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0), NULL) &&
           ot_dnnl_arg(&p->op, e, DNNL_ARG_DST, dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0), NULL) &&
           (!p->scratch || ot_dnnl_arg(&p->op, e, DNNL_ARG_SCRATCHPAD, pad, NULL));
}

ot_status lw_write_pool(lw_pass *l, lw_unit *u)
{
    ot_id in, out;
    ot_step *step = NULL;
    int64_t work = 0;
    const pool_unit *unit = u->plan;
    if (is_half(l, u))
        return lw_write_half_pool(l, u, &unit->win, unit->alg == dnnl_pooling_max, unit->alg == dnnl_pooling_avg_include_padding);
    pool_plan *p = OT_NEW(l->a, pool_plan);
    bool blocked = lw_has(l, u->in[0], LW_ANY_BLOCK);
    if (!p) return ot_fail_nomem(l->p->s->d);
    int before = ot_dnnl_threads(threads_for(l, u));
    dnnl_primitive_desc_t pd = blocked ? NULL : describe(l, u, u->plan, false);
    blocked = !pd;
    if (!pd) pd = describe(l, u, u->plan, true);
    bool ok = pd && prepare(l, u, pd, p, &work);
    if (pd) dnnl_primitive_desc_destroy(pd);
    (void)ot_dnnl_threads((uint32_t)before);
    lw_layout layout = blocked ? LW_BLOCK : LW_PLAIN;
    ot_status st = ok ? lw_need(l, u->in[0], LW_BIT(layout), layout, &in) : ot_fail_nomem(l->p->s->d);
    if (st == OT_OK) st = lw_make(l, u->out[0], layout, &out);
    if (st == OT_OK) st = lw_push(l, u->nodes[0], run_pool, p, &in, 1, &out, 1, &step);
    if (st != OT_OK) {
        free_plan(p);
        return st;
    }
    step->state = (ot_kernel_state){p, free_plan};
    step->work = work;
    return OT_OK;
}
