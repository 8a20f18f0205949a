/* Between DequantizeLinear and QuantizeLinear: what moves bytes, and pools (fusion/bytes_group.c
 * finds them).
 *
 *   xq -> DequantizeLinear -> Transpose, Slice, Resize (nearest), ... -> QuantizeLinear -> yq  the
 *   node on xq
 *
 *   DequantizeLinear -. -> Concat -> QuantizeLinear                              parts copied
 *   DequantizeLinear -'
 *                         where the scales differ, bytes go through a table of 256
 *
 *   DequantizeLinear -> MaxPool -> QuantizeLinear                           qpool.h, with the same
 *                                                                           scale
 *   DequantizeLinear -> AveragePool, GlobalAveragePool [-> QuantizeLinear]  qpool.h, any scales
 *
 * The QLinear operators of com.microsoft for pools and Concat with constant scales run the same
 * way.
 *
 * All but averages are what the nodes one after another make, bit by bit; a quantized average
 * may be the neighbour of that where it lies in the middle between two integers but for
 * rounding.
 */
#include "fuse_find.h"
#include "engine/cpu/int8/qpool.h"
#include "engine/ref/ref_window.h"
#include "engine/core/pool.h"

#include <math.h>

/* How 8-bit numbers stand for real ones. */
typedef struct quantized {
    ot_id bytes;
    ot_dtype type;
    float scale, zero;
} quantized;

static bool same(const quantized *a, const quantized *b)
{
    return a->type == b->type && a->scale == b->scale && a->zero == b->zero;
}

/* The 8-bit tensor behind the float32 value v. */
static bool source(const lw_pass *l, ot_id v, quantized *q)
{
    uint32_t maker = lw_dequantizer(l, v);
    if (maker == OT_NONE) return false;
    const lw_unit *u = &l->units[maker];
    q->bytes = u->in[0];
    return ot_chain_quantizer(l->p->g, u->nodes[0], &q->type, &q->scale, &q->zero);
}

/* What the QuantizeLinear of the group makes. */
static bool sink(const lw_pass *l, const ot_bytes_group *g, quantized *q)
{
    q->bytes = g->group.result;
    return g->y.n && ot_chain_quantizer(l->p->g, g->y.n, &q->type, &q->scale, &q->zero);
}

/* Tensor `bytes` with constant scale (operand k) and zero point (behind it) of a QLinear operator.
 */
static bool operand(const lw_pass *l, const lw_unit *u, ot_id bytes, uint32_t k, quantized *q)
{
    const ot_nd *scale = lw_constant(l->p, lw_operand_of(u, k)),
                *zero = lw_constant(l->p, lw_operand_of(u, k + 1));
    if (!scale || (lw_operand_of(u, k + 1) != OT_NONE && !zero)) return false;
    *q = (quantized){
        .bytes = bytes, .type = l->v[bytes].slot->fore.dtype, .scale = *(const float *)scale->data};
    if (zero) q->zero = (float)ot_nd_int(zero, 0);
    return q->scale > 0 && isfinite(q->scale);
}

/* ---- units that are nodes on other values ---- */

typedef struct rewrite {
    ot_id *in; /* [n_in] */
    uint32_t n_in;
    ot_op_fn run; /* NULL: the node's own */
    const void *plan;
} rewrite;

/* The unit is the group's operator, on bytes. */
static ot_status apply(lw_pass *l, const ot_group *g, const rewrite *r)
{
    uint32_t parts[2];
    for (uint32_t k = 0; k < g->n; k++) parts[k] = g->parts[k].place;
    const lw_rewrite w = {.parts = parts,
                          .n_parts = g->n,
                          .like = parts[0],
                          .in = r->in,
                          .n_in = r->n_in,
                          .out = g->result,
                          .run = r->run,
                          .plan = r->plan};
    return lw_apply(l, &w, NULL);
}

/* ---- bytes of one scale as bytes of another ---- */

/* `to` may be `from`. */
static void translate(uint8_t *to, const uint8_t *from, int64_t n, const uint8_t *table)
{
    for (int64_t i = 0; i < n; i++) to[i] = table[from[i]];
}

/* What becomes of each byte. */
static uint8_t *make_table(ot_arena *a, const quantized *x, const quantized *y)
{
    uint8_t *table = ot_alloc(a, 256);
    float least = y->type == OT_I8 ? INT8_MIN : 0;
    for (int k = 0; table && k < 256; k++) {
        float number = x->type == OT_I8 ? (float)(int8_t)k : (float)k,
              real = (number - x->zero) * x->scale;
        float q = fminf(fmaxf(real / y->scale, least - y->zero), least + 255 - y->zero);
        table[k] = (uint8_t)(int32_t)(rintf(q) + y->zero);
    }
    return table;
}

/* ---- moving ---- */

typedef struct moving_setup {
    ot_op_fn run;
    const uint8_t *table;
} moving_setup;

static ot_status run_moving(ot_call *c)
{
    const moving_setup *p = c->plan;
    int64_t n;
    c->plan = NULL;
    OT_TRY(p->run(c));
    if (c->out[0] && ot_nd_elems(c->out[0], &n))
        translate(c->out[0]->data, c->out[0]->data, n, p->table);
    return OT_OK;
}

static ot_status fuse_moving(lw_pass *l, const ot_bytes_group *g)
{
    const lw_unit *u = &l->units[g->group.parts[0].place];
    quantized x, y;
    rewrite r = {.n_in = u->n_in};
    if (!source(l, u->in[0], &x) || !sink(l, g, &y)) return OT_OK;
    if (!same(&x, &y)) {
        moving_setup *p = OT_NEW(l->a, moving_setup);
        if (!p) return ot_fail_nomem(l->p->s->d);
        *p = (moving_setup){u->step->run, make_table(l->a, &x, &y)};
        if (!p->table) return ot_fail_nomem(l->p->s->d);
        r.run = run_moving;
        r.plan = p;
    }
    r.in = ot_memdup(l->scratch, u->in, u->n_in * sizeof *r.in);
    if (!r.in) return ot_fail_nomem(l->p->s->d);
    r.in[0] = x.bytes;
    return apply(l, &g->group, &r);
}

/* ---- Concat ---- */

typedef struct concat_setup {
    uint32_t axis;
    /* [inputs] bytes of the result for bytes of the input; NULL: as they are */
    const uint8_t *const *tables;
} concat_setup;

static ot_status run_concat(ot_call *c)
{
    const concat_setup *p = c->plan;
    const ot_nd *first = c->in[0];
    int64_t dims[OT_RANK_MAX], outer = 1, inner = 1, done = 0;
    memcpy(dims, first->dims, first->rank * sizeof *dims);
    for (uint32_t k = 1; k < c->n_in; k++) dims[p->axis] += c->in[k]->dims[p->axis];
    for (uint32_t k = 0; k < p->axis; k++) outer *= dims[k];
    for (uint32_t k = p->axis + 1; k < first->rank; k++) inner *= dims[k];
    OT_TRY(ot_call_output(c, 0, first->dtype, first->rank, dims));
    if (!c->out[0]) return OT_OK;
    int64_t step = dims[p->axis] * inner;
    for (uint32_t k = 0; k < c->n_in; k++) {
        int64_t n = c->in[k]->dims[p->axis] * inner;
        const uint8_t *from = c->in[k]->data;
        uint8_t *to = (uint8_t *)c->out[0]->data + done;
        for (int64_t i = 0; i < outer; i++, from += n, to += step) {
            if (p->tables[k])
                translate(to, from, n, p->tables[k]);
            else
                memcpy(to, from, (size_t)n);
        }
        done += n;
    }
    return OT_OK;
}

/* Concat, or QLinearConcat: scale and zero point of the result, then tensor, scale, zero point
 * of each part. */
static ot_status fuse_concat(lw_pass *l, const ot_bytes_group *g)
{
    const lw_unit *u = &l->units[g->group.parts[0].place];
    const bool named = !g->x.n;
    quantized x, y;
    rewrite r = {.n_in = named ? (u->n_in - 2) / 3 : u->n_in, .run = run_concat};
    concat_setup *p = OT_NEW(l->a, concat_setup);
    const uint8_t **tables = OT_NEW_N(l->a, const uint8_t *, r.n_in);
    r.in = OT_NEW_N(l->scratch, ot_id, r.n_in);
    if (!p || !tables || !r.in) return ot_fail_nomem(l->p->s->d);
    if (named ? !operand(l, u, u->out[0], 0, &y) : !sink(l, g, &y)) return OT_OK;
    const ot_nd *shape = &l->v[y.bytes].slot->fore;
    int64_t axis = ot_attr_int(u->nodes[0], "axis", named ? 0 : 1), sum = 0;
    if (axis < 0) axis += shape->rank;
    if (axis < 0 || axis >= shape->rank) return OT_OK;
    p->axis = (uint32_t)axis;
    p->tables = tables;
    for (uint32_t k = 0; k < r.n_in; k++) {
        bool found = named ? operand(l, u, u->in[3 * k + 2], 3 * k + 3, &x)
                           : source(l, u->in[k], &x);
        if (!found) return OT_OK;
        const ot_nd *part = &l->v[x.bytes].slot->fore;
        if (part->rank != shape->rank) return OT_OK;
        for (uint32_t d = 0; d < shape->rank; d++)
            if (d != p->axis && part->dims[d] != shape->dims[d]) return OT_OK;
        sum += part->dims[p->axis];
        r.in[k] = x.bytes;
        if (!same(&x, &y) && !(tables[k] = make_table(l->a, &x, &y)))
            return ot_fail_nomem(l->p->s->d);
    }
    if (sum != shape->dims[p->axis]) return OT_OK;
    r.plan = p;
    return apply(l, &g->group, &r);
}

/* ---- pools ---- */

typedef struct pool_setup {
    ot_qpool pool;
    uint32_t threads;
} pool_setup;

typedef struct pool_job {
    const ot_qpool *q;
    const uint8_t *x;
    void *y;
    char *lines; /* [threads][work] */
    int64_t work;
} pool_job;

static void pool_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const pool_job *j = job;
    for (int64_t k = first; k < end; k++)
        ot_qpool_run(j->q, j->x, j->y, k, j->lines + j->work * worker);
}

static ot_status run_pool(ot_call *c)
{
    const pool_setup *p = c->plan;
    const ot_qpool *q = &p->pool;
    const uint8_t *x = c->in[0]->data;
    int64_t dims[4] = {c->in[0]->dims[0], c->in[0]->dims[1], q->out[0], q->out[1]},
            work = ot_qpool_work(q);
    uint32_t rank = c->in[0]->rank, threads = p->threads;
    if (rank == 3) dims[2] = q->out[1];
    OT_TRY(ot_call_output(c, 0, q->type, rank, dims));
    if (!c->out[0]) return OT_OK;
    pool_job j = {.q = q, .x = x, .work = work};
    j.lines = ot_call_scratch(c, (size_t)work * threads);
    if (!j.lines) return OT_E_NOMEM;
    j.y = c->out[0]->data;
    ot_pool_share(threads, q->planes, 1, pool_share, &j);
    return OT_OK;
}

static bool is_global(const ot_node *n)
{
    return ot_bytes_is_named(n, "QLinearGlobalAveragePool") || n->op == OT_OP_GlobalAveragePool ||
           n->op == OT_OP_GlobalMaxPool;
}

/* One axis of the window; false: not for this implementation. */
static bool read_axis(const ot_window *w, uint32_t a, int64_t out, uint32_t to, ot_qpool *p)
{
    int64_t lo = w->lo[a],
            reach = (out - 1) * w->stride[a] + (w->kernel[a] - 1) * w->dilation[a] + 1;
    int64_t pads = ot_max(0, reach - w->in[a]), span = (w->kernel[a] - 1) * w->dilation[a] + 1;
    if (w->same_upper)
        lo = pads / 2;
    else if (w->same_lower)
        lo = pads - pads / 2;
    p->in[to] = w->in[a];
    p->out[to] = out;
    p->kernel[to] = w->kernel[a];
    p->stride[to] = w->stride[a];
    p->dilation[to] = w->dilation[a];
    p->lo[to] = lo;
    int64_t last = reach - w->in[a] - lo; /* pads that the last window needs */
    if (p->counts_pads && !w->same_upper && !w->same_lower && last > w->hi[a]) return false;
    return lo >= 0 && lo < span && last < span && out > 0;
}

static bool read_window(const lw_pass *l, const ot_node *n, const ot_nd *x, const ot_nd *y,
                        ot_qpool *p)
{
    ot_window w = {.n = x->rank - 2};
    ot_diag ignored = {0};
    ot_call c = {.g = l->p->g, .node = n, .diag = &ignored};
    if (is_global(n))
        for (uint32_t a = 0; a < w.n; a++) {
            w.in[a] = w.kernel[a] = x->dims[a + 2];
            w.stride[a] = w.dilation[a] = 1;
        }
    else if (ot_window_read(&c, x, NULL, &w) != OT_OK)
        return false;
    for (uint32_t a = 0; a < 2; a++)
        p->in[a] = p->out[a] = p->kernel[a] = p->stride[a] = p->dilation[a] = 1;
    for (uint32_t a = 0; a < w.n; a++)
        if (!read_axis(&w, a, y->dims[a + 2], a + 2 - w.n, p)) return false;
    return w.n + 2 == y->rank;
}

/* Tensors of a pool. */
static bool find_pool(const lw_pass *l, const ot_bytes_group *g, quantized *x, quantized *y)
{
    const lw_unit *u = &l->units[g->group.parts[0].place];
    if (!g->x.n) return operand(l, u, u->in[0], 1, x) && operand(l, u, u->out[0], 3, y);
    *y = (quantized){.bytes = g->group.result, .type = OT_F32, .scale = 1};
    return source(l, u->in[0], x) && (!g->y.n || sink(l, g, y));
}

static ot_status fuse_pool(lw_pass *l, const ot_bytes_group *g)
{
    const lw_unit *u = &l->units[g->group.parts[0].place];
    const ot_node *n = u->nodes[0];
    quantized x, y;
    rewrite r = {.n_in = 1, .run = run_pool};
    if (!find_pool(l, g, &x, &y)) return OT_OK;
    bool average = n->op == OT_OP_OPAQUE || n->op == OT_OP_AveragePool ||
                   n->op == OT_OP_GlobalAveragePool;
    const ot_nd *from = &l->v[x.bytes].slot->fore, *to = &l->v[u->out[0]].slot->fore;
    pool_setup *p = OT_NEW(l->a, pool_setup);
    if (!p) return ot_fail_nomem(l->p->s->d);
    p->pool = (ot_qpool){.planes = from->dims[0] * from->dims[1],
                         .average = average,
                         .is_signed = x.type == OT_I8,
                         .counts_pads = ot_attr_int(n, "count_include_pad", 0) != 0,
                         .zero = (int32_t)x.zero,
                         .factor = x.scale / y.scale,
                         .type = y.type,
                         .y_zero = (int32_t)y.zero};
    int64_t taps;
    if (!read_window(l, n, from, to, &p->pool) || ot_qpool_work(&p->pool) < 0) return OT_OK;
    /* sums of int32 */
    if (!ot_mul_i64(p->pool.kernel[0], p->pool.kernel[1], &taps) || taps > (1 << 22)) return OT_OK;
    p->threads = lw_threads(l, (double)p->pool.planes * (double)(p->pool.in[0] * p->pool.in[1]));
    r.in = &x.bytes;
    r.plan = p;
    return apply(l, &g->group, &r);
}

/* ---- the pass ---- */

ot_status lw_fuse_qmove(lw_pass *l)
{
    const ot_group_view v = lw_group_view(l);
    bool any = false;
    for (uint32_t at = 0; at < l->n_units; at++) {
        ot_bytes_group g;
        if (!ot_group_bytes(&v, &ot_engine_rules, at, &g)) continue;
        if (g.kind == OT_BYTES_POOL) OT_TRY(fuse_pool(l, &g));
        if (g.kind == OT_BYTES_CONCAT) OT_TRY(fuse_concat(l, &g));
        if (g.kind == OT_BYTES_MOVE) OT_TRY(fuse_moving(l, &g));
        any = any || l->units[at].kind == LW_GONE || l->units[at].step->plan;
    }
    return any ? lw_drop_dequantized(l) : OT_OK;
}
