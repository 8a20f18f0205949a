/* Between DequantizeLinear and QuantizeLinear: what moves bytes, and pools.
 *
 *   xq -> DequantizeLinear -> Transpose, Slice, Resize (nearest), ... -> QuantizeLinear -> yq     the node on xq
 *
 *   DequantizeLinear -. -> Concat -> QuantizeLinear                              parts copied
 *   DequantizeLinear -'
 *                         where the scales differ, bytes go through a table of 256
 *
 *   DequantizeLinear -> MaxPool -> QuantizeLinear                                qpool.h, with the same scale
 *   DequantizeLinear -> AveragePool, GlobalAveragePool [-> QuantizeLinear]       qpool.h, any scales
 *
 * The QLinear operators of com.microsoft for pools and Concat with constant scales run the same way.
 *
 * All but averages are what the nodes one after another make, bit by bit; a quantized average may be the neighbour of that where
 * it lies in the middle between two integers but for rounding.
 */
#include "fuse_find.h"
#include "engine/int8/qpool.h"
#include "engine/ref/ref_window.h"

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

/* The QuantizeLinear that alone reads v, and what it makes. */
static bool sink(const lw_pass *l, ot_id v, quantized *q, uint32_t *unit)
{
    *unit = lw_only_reader(l, v);
    if (*unit == OT_NONE) return false;
    const lw_unit *u = &l->units[*unit];
    if (u->kind != LW_NODE || u->nodes[0]->op != OT_OP_QuantizeLinear || u->step->plan || u->in[0] != v) return false;
    q->bytes = u->out[0];
    return q->bytes != OT_NONE && l->v[q->bytes].is_static && lw_same_dims(l, v, q->bytes) &&
           ot_chain_quantizer(l->p->g, u->nodes[0], &q->type, &q->scale, &q->zero);
}

/* Tensor `bytes` with constant scale (operand k) and zero point (behind it) of a QLinear operator. */
static bool operand(const lw_pass *l, const lw_unit *u, ot_id bytes, uint32_t k, quantized *q)
{
    int64_t n;
    if (k >= u->n_in || bytes == OT_NONE || u->in[k] == OT_NONE || !l->v[bytes].is_static || l->v[bytes].slot->absent) return false;
    const ot_slot *scale = l->p->at[u->in[k]], *zero = k + 1 < u->n_in && u->in[k + 1] != OT_NONE ? l->p->at[u->in[k + 1]] : NULL;
    *q = (quantized){.bytes = bytes, .type = l->v[bytes].slot->fore.dtype};
    if (!lw_is_byte(q->type) || !ot_nd_elems(&l->v[bytes].slot->fore, &n) || n == 0) return false;
    if (!scale->is_const || !scale->nd.data || scale->nd.dtype != OT_F32 || !ot_nd_elems(&scale->nd, &n) || n != 1) return false;
    q->scale = *(const float *)scale->nd.data;
    if (!(q->scale > 0) || !isfinite(q->scale)) return false;
    if (!zero) return true;
    if (!zero->is_const || !zero->nd.data || zero->nd.dtype != q->type || !ot_nd_elems(&zero->nd, &n) || n != 1) return false;
    q->zero = (float)ot_nd_int(&zero->nd, 0);
    return true;
}

static bool is_named(const ot_node *n, const char *op_type)
{
    return n->op == OT_OP_OPAQUE && strcmp(n->domain, "com.microsoft") == 0 && strcmp(n->op_type, op_type) == 0;
}

/* ---- units that are nodes on other values ---- */

typedef struct rewrite {
    uint32_t parts[2], n_parts; /* the first is the node */
    ot_id *in;                  /* [n_in] */
    uint32_t n_in;
    ot_id out;
    ot_kernel_fn run; /* NULL: the node's own */
    const void *plan;
} rewrite;

/* The unit is the node, whatever else it replaces. */
static ot_status apply(lw_pass *l, const rewrite *r)
{
    lw_unit *u;
    const ot_node **node = l->units[r->parts[0]].nodes;
    const lw_rewrite w = {.parts = r->parts,
                          .n_parts = r->n_parts,
                          .like = r->parts[0],
                          .in = r->in,
                          .n_in = r->n_in,
                          .out = r->out,
                          .run = r->run,
                          .plan = r->plan};
    OT_TRY(lw_apply(l, &w, &u));
    u->nodes = node;
    u->n_nodes = 1;
    return OT_OK;
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
        float number = x->type == OT_I8 ? (float)(int8_t)k : (float)k, real = (number - x->zero) * x->scale;
        float q = fminf(fmaxf(real / y->scale, least - y->zero), least + 255 - y->zero);
        table[k] = (uint8_t)(int32_t)(rintf(q) + y->zero);
    }
    return table;
}

/* ---- moving ---- */

/* Operators whose elements are elements of input 0, whatever they are. */
static bool moves(const ot_node *n)
{
    switch ((int)n->op) {
    case OT_OP_Reshape:
    case OT_OP_Flatten:
    case OT_OP_Squeeze:
    case OT_OP_Unsqueeze:
    case OT_OP_Identity:
    case OT_OP_Transpose:
    case OT_OP_Slice:
    case OT_OP_DepthToSpace:
    case OT_OP_SpaceToDepth:
    case OT_OP_Expand:
    case OT_OP_Tile:
    case OT_OP_Gather: return true;
    case OT_OP_Resize:
    case OT_OP_Upsample:
        return strcmp(ot_attr_str(n, "mode", "nearest"), "nearest") == 0 &&
               strcmp(ot_attr_str(n, "coordinate_transformation_mode", "half_pixel"), "tf_crop_and_resize") != 0;
    default: return false;
    }
}

/* The result may be the very memory of the input. */
static bool is_view(const ot_node *n)
{
    int op = (int)n->op;
    return op == OT_OP_Reshape || op == OT_OP_Flatten || op == OT_OP_Squeeze || op == OT_OP_Unsqueeze || op == OT_OP_Identity;
}

typedef struct moving_plan {
    ot_kernel_fn run;
    const uint8_t *table;
} moving_plan;

static ot_status run_moving(ot_call *c)
{
    const moving_plan *p = c->plan;
    int64_t n;
    c->plan = NULL;
    OT_TRY(p->run(c));
    if (c->out[0] && ot_nd_elems(c->out[0], &n)) translate(c->out[0]->data, c->out[0]->data, n, p->table);
    return OT_OK;
}

static ot_status fuse_moving(lw_pass *l, uint32_t at)
{
    const lw_unit *u = &l->units[at];
    quantized x, y;
    rewrite r = {.parts = {at}, .n_parts = 2, .n_in = u->n_in};
    if (!source(l, u->in[0], &x) || !sink(l, u->out[0], &y, &r.parts[1]) || x.type != y.type) return OT_OK;
    if (!same(&x, &y)) {
        moving_plan *p = OT_NEW(l->a, moving_plan);
        if (is_view(u->nodes[0])) return OT_OK;
        if (!p) return ot_fail_nomem(l->p->s->d);
        *p = (moving_plan){u->step->run, make_table(l->a, &x, &y)};
        if (!p->table) return ot_fail_nomem(l->p->s->d);
        r.run = run_moving;
        r.plan = p;
    }
    r.in = ot_memdup(l->scratch, u->in, u->n_in * sizeof *r.in);
    if (!r.in) return ot_fail_nomem(l->p->s->d);
    r.in[0] = x.bytes;
    r.out = y.bytes;
    return apply(l, &r);
}

/* ---- Concat ---- */

typedef struct concat_plan {
    uint32_t axis;
    const uint8_t *const *tables; /* [inputs] bytes of the result for bytes of the input; NULL: as they are */
} concat_plan;

static ot_status run_concat(ot_call *c)
{
    const concat_plan *p = c->plan;
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

/* Concat, or QLinearConcat: scale and zero point of the result, then tensor, scale, zero point of each part. */
static ot_status fuse_concat(lw_pass *l, uint32_t at, bool named)
{
    const lw_unit *u = &l->units[at];
    quantized x, y;
    rewrite r = {.parts = {at}, .n_parts = named ? 1 : 2, .n_in = named ? (u->n_in - 2) / 3 : u->n_in, .run = run_concat};
    if (named && (u->n_in < 5 || u->n_in % 3 != 2)) return OT_OK;
    concat_plan *p = OT_NEW(l->a, concat_plan);
    const uint8_t **tables = OT_NEW_N(l->a, const uint8_t *, r.n_in);
    r.in = OT_NEW_N(l->scratch, ot_id, r.n_in);
    if (!p || !tables || !r.in) return ot_fail_nomem(l->p->s->d);
    if (named ? !operand(l, u, u->out[0], 0, &y) : !sink(l, u->out[0], &y, &r.parts[1])) return OT_OK;
    const ot_nd *shape = &l->v[y.bytes].slot->fore;
    int64_t axis = ot_attr_int(u->nodes[0], "axis", named ? 0 : 1), sum = 0;
    if (axis < 0) axis += shape->rank;
    if (axis < 0 || axis >= shape->rank) return OT_OK;
    p->axis = (uint32_t)axis;
    p->tables = tables;
    for (uint32_t k = 0; k < r.n_in; k++) {
        bool found = named ? operand(l, u, u->in[3 * k + 2], 3 * k + 3, &x) : source(l, u->in[k], &x);
        if (!found || x.type != y.type) return OT_OK;
        const ot_nd *part = &l->v[x.bytes].slot->fore;
        if (part->rank != shape->rank) return OT_OK;
        for (uint32_t d = 0; d < shape->rank; d++)
            if (d != p->axis && part->dims[d] != shape->dims[d]) return OT_OK;
        sum += part->dims[p->axis];
        r.in[k] = x.bytes;
        if (!same(&x, &y) && !(tables[k] = make_table(l->a, &x, &y))) return ot_fail_nomem(l->p->s->d);
    }
    if (sum != shape->dims[p->axis]) return OT_OK;
    r.out = y.bytes;
    r.plan = p;
    return apply(l, &r);
}

/* ---- pools ---- */

typedef struct pool_plan {
    ot_qpool pool;
    uint32_t threads;
} pool_plan;

static ot_status run_pool(ot_call *c)
{
    const pool_plan *p = c->plan;
    const ot_qpool *q = &p->pool;
    const uint8_t *x = c->in[0]->data;
    int64_t dims[4] = {c->in[0]->dims[0], c->in[0]->dims[1], q->out[0], q->out[1]}, work = ot_qpool_work(q);
    uint32_t rank = c->in[0]->rank, threads = p->threads;
    if (rank == 3) dims[2] = q->out[1];
    OT_TRY(ot_call_output(c, 0, q->type, rank, dims));
    if (!c->out[0]) return OT_OK;
    char *lines = ot_call_scratch(c, (size_t)work * threads);
    if (!lines) return OT_E_NOMEM;
    void *y = c->out[0]->data;
#pragma omp parallel for schedule(static) num_threads((int)threads) if (threads > 1)
    for (uint32_t t = 0; t < threads; t++)
        for (int64_t k = q->planes * t / threads; k < q->planes * (t + 1) / threads; k++)
            ot_qpool_run(q, x, y, k, lines + work * t);
    return OT_OK;
}

static bool is_global(const ot_node *n)
{
    return is_named(n, "QLinearGlobalAveragePool") || n->op == OT_OP_GlobalAveragePool || n->op == OT_OP_GlobalMaxPool;
}

/* One axis of the window; false: not for this kernel. */
static bool read_axis(const ot_window *w, uint32_t a, int64_t out, uint32_t to, ot_qpool *p)
{
    int64_t lo = w->lo[a], reach = (out - 1) * w->stride[a] + (w->kernel[a] - 1) * w->dilation[a] + 1;
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

static bool read_window(const lw_pass *l, const ot_node *n, const ot_nd *x, const ot_nd *y, ot_qpool *p)
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
    for (uint32_t a = 0; a < 2; a++) p->in[a] = p->out[a] = p->kernel[a] = p->stride[a] = p->dilation[a] = 1;
    for (uint32_t a = 0; a < w.n; a++)
        if (!read_axis(&w, a, y->dims[a + 2], a + 2 - w.n, p)) return false;
    return w.n + 2 == y->rank;
}

/* Tensors of a pool, and the QuantizeLinear that may be part of it. */
static bool find_pool(const lw_pass *l, const lw_unit *u, bool named, quantized *x, quantized *y, rewrite *r)
{
    if (named)
        return ot_attr_int(u->nodes[0], "channels_last", 0) == 0 && operand(l, u, u->in[0], 1, x) &&
               operand(l, u, u->out[0], 3, y) && x->type == y->type;
    if (u->n_in != 1 || (u->n_out > 1 && u->step->out_slots[1]) || !source(l, u->in[0], x) || !lw_is_f32(l, u->out[0]))
        return false;
    if (sink(l, u->out[0], y, &r->parts[1]))
        r->n_parts = 2;
    else
        *y = (quantized){.bytes = u->out[0], .type = OT_F32, .scale = 1};
    return true;
}

static ot_status fuse_pool(lw_pass *l, uint32_t at, bool named)
{
    const lw_unit *u = &l->units[at];
    const ot_node *n = u->nodes[0];
    quantized x, y;
    rewrite r = {.parts = {at}, .n_parts = 1, .n_in = 1, .run = run_pool};
    if (!find_pool(l, u, named, &x, &y, &r)) return OT_OK;
    bool average = named || n->op == OT_OP_AveragePool || n->op == OT_OP_GlobalAveragePool;
    const ot_nd *from = &l->v[x.bytes].slot->fore, *to = &l->v[u->out[0]].slot->fore;
    if ((!average && (r.n_parts == 1 || !same(&x, &y))) || (from->rank != 3 && from->rank != 4) || to->rank != from->rank)
        return OT_OK;
    pool_plan *p = OT_NEW(l->a, pool_plan);
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
    if (!ot_mul_i64(p->pool.kernel[0], p->pool.kernel[1], &taps) || taps > (1 << 22)) return OT_OK; /* sums of int32 */
    p->threads = lw_threads(l, (double)p->pool.planes * (double)(p->pool.in[0] * p->pool.in[1]));
    r.in = &x.bytes;
    r.out = y.bytes;
    r.plan = p;
    return apply(l, &r);
}

/* ---- the pass ---- */

ot_status lw_fuse_qmove(lw_pass *l)
{
    bool any = false;
    for (uint32_t at = 0; at < l->n_units; at++) {
        const lw_unit *u = &l->units[at];
        if (u->kind != LW_NODE || u->step->plan || u->n_in < 1 || u->n_out < 1 || u->in[0] == OT_NONE || u->out[0] == OT_NONE ||
            u->step->n_bodies || u->nodes[0]->n_captured)
            continue;
        switch ((int)u->nodes[0]->op) {
        case OT_OP_MaxPool:
        case OT_OP_AveragePool:
        case OT_OP_GlobalMaxPool:
        case OT_OP_GlobalAveragePool: OT_TRY(fuse_pool(l, at, false)); break;
        case OT_OP_Concat: OT_TRY(fuse_concat(l, at, false)); break;
        case OT_OP_OPAQUE:
            if (is_named(u->nodes[0], "QLinearConcat"))
                OT_TRY(fuse_concat(l, at, true));
            else if (is_named(u->nodes[0], "QLinearAveragePool") || is_global(u->nodes[0]))
                OT_TRY(fuse_pool(l, at, true));
            break;
        default:
            if (moves(u->nodes[0])) OT_TRY(fuse_moving(l, at));
            break;
        }
        any = any || l->units[at].kind == LW_GONE || l->units[at].step->plan;
    }
    return any ? lw_drop_dequantized(l) : OT_OK;
}
