/* Quantized convolutions (fusion/bytes_group.c finds them) as units on the 8-bit tensors (qconv.h).
 *
 *   xq --DequantizeLinear--.
 *   wq --DequantizeLinear--+--> Conv --> [Relu, Clip] --> QuantizeLinear --> yq    one unit
 *   bq --DequantizeLinear--'       `-- nobody quantizes the result: a unit that makes float32
 *
 *   QLinearConv with constant parameters, ConvInteger                                  a unit, too
 *
 *   xq, s, z = DynamicQuantizeLinear(x)
 *   ConvInteger(xq, w, z) --> Cast --> Mul(f(s)) --> Add(bias)    one unit: xq, z, f(s) --> float32
 *
 * The sum of the products is an integer, exact; (float)sum * (x_scale * w_scale / y_scale) is
 * rounded once and then to an integer. The nodes, one after another, multiply before they add,
 * so a result close to the middle between two integers may become the other one. Limits between
 * Conv and QuantizeLinear are limits of integers: quantizing does not change the order of
 * numbers.
 *
 * A DequantizeLinear stays a node for those that read its float32 result; when nobody does, it
 * is gone.
 */
#include "fuse_find.h"
#include "engine/cpu/int8/qconv.h"
#include "engine/ref/ref_window.h"

#include <math.h>

/* ---- constants ---- */

static int64_t count_of(const ot_nd *a)
{
    int64_t n = 0;
    return ot_nd_elems(a, &n) ? n : 0;
}

/* Numbers that an array of bytes, or of zero points, is quantized with: one, or `n` along its
 * first axis. */
typedef struct quantizer {
    const ot_nd *scale, *zero; /* zero NULL: 0 */
} quantizer;

/* Scale and zero point of Quantize- or DequantizeLinear: constants, one or (`slices` > 1) as
 * many along the first axis. */
static bool read_quantizer(lw_source s, int64_t slices, quantizer *q)
{
    *q = (quantizer){.scale = lw_constant(s.p, lw_operand(s.node, 1)),
                     .zero = lw_constant(s.p, lw_operand(s.node, 2))};
    int64_t n = q->scale ? count_of(q->scale) : 0, asked = ot_attr_int(s.node, "output_dtype", 0);
    if (!q->scale || q->scale->dtype != OT_F32 || q->scale->rank > 1 || (n != 1 && n != slices))
        return false;
    if (lw_operand(s.node, 2) != OT_NONE && (!q->zero || count_of(q->zero) != n)) return false;
    if (ot_attr_int(s.node, "block_size", 0) != 0 || ot_attr_int(s.node, "precision", 0) != 0 ||
        asked != 0)
        return false;
    if (n > 1 && ot_attr_int(s.node, "axis", 1) != 0) return false;
    for (int64_t k = 0; k < n; k++)
        if (!(ot_nd_double(q->scale, k) > 0) || !isfinite(ot_nd_double(q->scale, k))) return false;
    return true;
}

static float scale_at(const quantizer *q, int64_t k)
{
    return ((const float *)q->scale->data)[count_of(q->scale) == 1 ? 0 : k];
}

static int32_t zero_at(const quantizer *q, int64_t k)
{
    return q->zero ? (int32_t)ot_nd_int(q->zero, count_of(q->zero) == 1 ? 0 : k) : 0;
}

/* v is a constant array of `rank` dims (0: any) that a DequantizeLinear made; *q: with what. */
static bool dequantized(const lw_pass *l, ot_id v, int64_t slices, lw_source *s,
                        const ot_nd **array, quantizer *q)
{
    if (v == OT_NONE || !lw_source_of(l, v, s) || s->node->op != OT_OP_DequantizeLinear)
        return false;
    *array = lw_constant(s->p, lw_operand(s->node, 0));
    return *array && read_quantizer(*s, slices, q);
}

/* ---- the plan ---- */

/* What is known of a unit while it is found. */
typedef struct found {
    const lw_unit *unit; /* the Conv */
    ot_id x, y;          /* 8-bit input, result */
    /* computed in the run: zero point of x, factor of float32 results; OT_NONE: constants */
    ot_id zero, factor;
    ot_slot *w; /* 8-bit weights */
    quantizer xq, wq, yq;
    float *shift;       /* [maps] of float32 results, or NULL */
    const ot_nd *bias;  /* [maps] int32, or NULL */
    double least, most; /* of activations */
    uint32_t parts[4], n_parts;
    ot_dtype type; /* of the result */
    bool fits;
} found;

typedef struct qconv_setup {
    ot_qconv v;
    ot_slot *w;
    ot_id x, y, zero, factor;
    uint32_t threads;
} qconv_setup;

/* Sizes, attributes; x and w are shapes. */
static bool read_shape(const lw_pass *l, const ot_node *n, const ot_nd *x, const ot_nd *w,
                       const ot_nd *y, ot_qconv *v)
{
    ot_window win = {0};
    ot_diag ignored = {0};
    ot_call c = {.g = l->p->g, .node = n, .diag = &ignored};
    if ((x->rank != 3 && x->rank != 4) || w->rank != x->rank || y->rank != x->rank) return false;
    if (ot_window_read(&c, x, w->dims + 2, &win) != OT_OK || ot_window_conv_out(&c, &win) != OT_OK)
        return false;
    *v = (ot_qconv){.batch = x->dims[0],
                    .channels = x->dims[1],
                    .maps = w->dims[0],
                    .group = ot_attr_int(n, "group", 1)};
    if (v->group < 1 || v->channels % v->group || v->maps % v->group ||
        w->dims[1] * v->group != v->channels)
        return false;
    if (y->dims[0] != v->batch || y->dims[1] != v->maps || count_of(y) < 1 || count_of(x) < 1 ||
        count_of(w) < 1)
        return false;
    for (uint32_t a = 0; a < 2; a++)
        v->in[a] = v->out[a] = v->kernel[a] = v->stride[a] = v->dilation[a] = 1;
    for (uint32_t a = 0; a < win.n; a++) {
        uint32_t to = a + 2 - win.n;
        if (win.out[a] != y->dims[a + 2] || win.lo[a] < 0) return false;
        v->in[to] = win.in[a];
        v->out[to] = win.out[a];
        v->kernel[to] = win.kernel[a];
        v->stride[to] = win.stride[a];
        v->dilation[to] = win.dilation[a];
        v->lo[to] = win.lo[a];
    }
    return true;
}

/* Zero points of weights: one, or an array. */
static ot_status read_zeros(lw_pass *l, const quantizer *q, ot_qconv *v)
{
    bool same = true;
    for (int64_t m = 1; m < v->maps; m++) same = same && zero_at(q, m) == zero_at(q, 0);
    v->w_zero = zero_at(q, 0);
    if (same) return OT_OK;
    int32_t *zeros = OT_NEW_N(l->a, int32_t, (size_t)v->maps);
    if (!zeros) return ot_fail_nomem(l->p->s->d);
    for (int64_t m = 0; m < v->maps; m++) zeros[m] = zero_at(q, m);
    v->w_zeros = zeros;
    return OT_OK;
}

/* Factors, bias, limits. */
static ot_status read_result(lw_pass *l, const found *f, ot_qconv *v)
{
    bool integer = f->type == OT_I32, bytes = lw_is_byte(f->type);
    v->y = (ot_i8_out){.type = f->type, .scale = 1};
    if (!integer) {
        float *scales = OT_NEW_N(l->a, float, (size_t)v->maps),
              *shift = f->shift ? OT_NEW_N(l->a, float, (size_t)v->maps) : NULL;
        if (!scales || (f->shift && !shift)) return ot_fail_nomem(l->p->s->d);
        float by = bytes ? scale_at(&f->yq, 0) : 1;
        for (int64_t m = 0; m < v->maps; m++) {
            scales[m] = f->factor != OT_NONE ? 1 : scale_at(&f->xq, 0) * scale_at(&f->wq, m) / by;
            if (shift) shift[m] = f->shift[m] / by;
        }
        v->y.row_scales = scales;
        v->y.row_shift = shift;
    }
    if (f->bias) {
        v->y.row_bias = ot_memdup(l->a, f->bias->data, (size_t)v->maps * sizeof(int32_t));
        if (!v->y.row_bias) return ot_fail_nomem(l->p->s->d);
    }
    if (!bytes) return OT_OK;
    double floor = f->type == OT_I8 ? INT8_MIN : 0, ceiling = floor + 255,
           s = (double)scale_at(&f->yq, 0);
    v->y.zero = zero_at(&f->yq, 0);
    double least = nearbyint((double)((float)f->least / (float)s)) + v->y.zero;
    double most = nearbyint((double)((float)f->most / (float)s)) + v->y.zero;
    v->y.least = (int32_t)fmin(fmax(least, floor), ceiling);
    v->y.most = (int32_t)fmin(fmax(most, floor), ceiling);
    return OT_OK;
}

static ot_status make_unit(lw_pass *l, found *f)
{
    const ot_nd *x = &l->v[f->x].slot->fore, *w = &f->w->nd, *y = &l->v[f->y].slot->fore;
    qconv_setup *p = OT_NEW(l->a, qconv_setup);
    if (!p) return ot_fail_nomem(l->p->s->d);
    *p = (qconv_setup){.w = f->w, .x = f->x, .y = f->y, .zero = f->zero, .factor = f->factor};
    ot_qconv *v = &p->v;
    if (!read_shape(l, f->unit->nodes[0], x, w, y, v)) return OT_OK;
    OT_TRY(read_zeros(l, &f->wq, v));
    OT_TRY(read_result(l, f, v));
    v->x_signed = x->dtype == OT_I8;
    v->w_signed = w->dtype == OT_I8;
    v->x_zero = zero_at(&f->xq, 0);
    v->weights = w->data;
    p->threads = lw_threads(l, (double)count_of(y) / (double)v->maps * (double)count_of(w) / 2);
    int64_t work = ot_qconv_work(v, p->threads);
    if (work < 0 || (lw_is_byte(f->type) && v->y.least == 0 && v->y.most == 0)) return OT_OK;
    ot_id in[3] = {f->x};
    uint32_t n_in = 1;
    if (f->zero != OT_NONE) in[n_in++] = f->zero;
    if (f->factor != OT_NONE) in[n_in++] = f->factor;
    return lw_merge(l, f->parts, f->n_parts, LW_QCONV, (ot_id_list){in, n_in},
                    (ot_id_list){&f->y, 1}, p);
}

/* ---- DequantizeLinear, Conv, QuantizeLinear ---- */

static ot_status read_bias(lw_pass *l, found *f, int64_t maps)
{
    const lw_unit *u = f->unit;
    ot_id v = u->n_in > 2 ? u->in[2] : OT_NONE;
    lw_source s;
    quantizer q;
    const ot_nd *array;
    if (v == OT_NONE) return OT_OK;
    if (dequantized(l, v, maps, &s, &array, &q) && array->dtype == OT_I32 &&
        count_of(array) == maps) {
        bool same = true; /* it counts in units of the products */
        for (int64_t m = 0; m < maps; m++) {
            double unit = (double)scale_at(&f->xq, 0) * (double)scale_at(&f->wq, m);
            same = same && zero_at(&q, m) == 0 &&
                   fabs((double)scale_at(&q, m) - unit) <= 1e-6 * unit;
        }
        if (same) f->bias = array;
    }
    if (f->bias) return OT_OK;
    const float *c = lw_const_f32(l, v);
    f->fits = c && count_of(&l->v[v].slot->nd) == maps;
    if (!f->fits) return OT_OK;
    f->shift = ot_memdup(l->scratch, c, (size_t)maps * sizeof *c);
    return f->shift ? OT_OK : ot_fail_nomem(l->p->s->d);
}

/* An activation that is a pair of limits. */
static bool limits(const lw_pass *l, const lw_unit *u, float *lo, float *hi)
{
    const ot_node *n = u->nodes[0];
    *lo = n->op == OT_OP_Relu ? 0 : ot_attr_float(n, "min", -INFINITY);
    *hi = ot_attr_float(n, "max", INFINITY);
    if (n->op == OT_OP_Clip && u->n_in > 1 && u->in[1] != OT_NONE && !lw_scalar(l, u->in[1], lo))
        return false;
    if (n->op == OT_OP_Clip && u->n_in > 2 && u->in[2] != OT_NONE && !lw_scalar(l, u->in[2], hi))
        return false;
    return *lo <= *hi;
}

static ot_status read_conv(lw_pass *l, const ot_bytes_group *x, found *f)
{
    const lw_unit *u = f->unit;
    const int64_t maps = l->v[u->in[1]].slot->fore.dims[0];
    lw_source s;
    const ot_nd *w;
    f->x = x->x.n->in[0];
    f->fits = read_quantizer((lw_source){.p = l->p, .node = x->x.n}, 1, &f->xq) &&
              dequantized(l, u->in[1], maps, &s, &w, &f->wq) &&
              (!x->y.n || read_quantizer((lw_source){.p = l->p, .node = x->y.n}, 1, &f->yq));
    f->fits = f->fits && lw_is_byte(w->dtype);
    if (!f->fits) return OT_OK;
    f->w = s.p->at[s.node->in[0]];
    for (uint32_t k = 1; k < x->group.n; k++) {
        float lo, hi;
        if (x->group.parts[k].role != OT_ROLE_ACTIVATION) continue;
        if (!limits(l, &l->units[x->group.parts[k].place], &lo, &hi))
            OT_BUG("limits were known before");
        f->least = fmin(fmax(f->least, (double)lo), (double)hi);
        f->most = fmin(fmax(f->most, (double)lo), (double)hi);
    }
    return read_bias(l, f, maps);
}

/* ---- QLinearConv, ConvInteger ---- */

/* Constant weights, and zero points where they are constants. */
static void read_weights(const lw_pass *l, uint32_t weights, uint32_t w_zero, found *f)
{
    const ot_node *n = f->unit->nodes[0];
    const ot_nd *w = lw_constant(l->p, f->unit->in[weights]);
    f->x = f->unit->in[0];
    f->w = l->p->at[f->unit->in[weights]];
    f->xq.zero = lw_constant(l->p, lw_operand(n, 2));
    f->wq.zero = lw_constant(l->p, lw_operand(n, w_zero));
    f->fits = w && (lw_operand(n, w_zero) == OT_NONE || f->wq.zero);
}

static ot_status read_integer(lw_pass *l, const ot_bytes_group *x, found *f)
{
    ot_id zero = lw_operand_of(f->unit, 2);
    read_weights(l, 1, 3, f);
    if (zero != OT_NONE && !f->xq.zero) f->zero = zero;
    f->factor = x->factor;
    const float *c = x->bias == OT_NONE ? NULL : lw_const_f32(l, x->bias);
    f->fits = f->fits && (x->bias == OT_NONE || c);
    if (!c) return OT_OK;
    f->shift = ot_memdup(l->scratch, c, (size_t)f->w->nd.dims[0] * sizeof *c);
    return f->shift ? OT_OK : ot_fail_nomem(l->p->s->d);
}

static void read_qlinear(const lw_pass *l, found *f)
{
    const ot_node *n = f->unit->nodes[0];
    read_weights(l, 3, 5, f);
    f->xq.scale = lw_constant(l->p, lw_operand(n, 1));
    f->wq.scale = lw_constant(l->p, lw_operand(n, 4));
    f->yq = (quantizer){lw_constant(l->p, lw_operand(n, 6)), lw_constant(l->p, lw_operand(n, 7))};
    f->bias = lw_constant(l->p, lw_operand(n, 8));
    f->fits = f->fits && f->xq.scale && f->wq.scale && f->yq.scale && f->yq.zero &&
              (lw_operand(n, 2) == OT_NONE || f->xq.zero) &&
              (lw_operand(n, 8) == OT_NONE || f->bias);
}

/* ---- the pass ---- */

/* Limits are read now. */
static bool supported(void *ctx, const ot_group_view *v, const ot_group *x, uint32_t place,
                      ot_group_role role)
{
    const lw_pass *l = ctx;
    float lo, hi;
    return ot_engine_merges(NULL, v, x, place, role) &&
           (role != OT_ROLE_ACTIVATION || limits(l, &l->units[place], &lo, &hi));
}

static ot_status fuse(lw_pass *l, const ot_group_view *v, uint32_t at)
{
    const ot_group_rules rules = {.name = "engine", .supported = supported, .ctx = l};
    ot_bytes_group x;
    if (!ot_group_bytes(v, &rules, at, &x)) return OT_OK;
    found f = {.unit = &l->units[at],
               .y = x.group.result,
               .zero = OT_NONE,
               .factor = OT_NONE,
               .type = l->v[x.group.result].slot->fore.dtype,
               .least = -INFINITY,
               .most = INFINITY,
               .n_parts = x.group.n};
    for (uint32_t k = 0; k < x.group.n; k++) f.parts[k] = x.group.parts[k].place;
    if (x.x.n)
        OT_TRY(read_conv(l, &x, &f));
    else if (v->node(l, at)->op == OT_OP_ConvInteger)
        OT_TRY(read_integer(l, &x, &f));
    else
        read_qlinear(l, &f);
    return f.fits ? make_unit(l, &f) : OT_OK;
}

ot_status lw_fuse_qconv(lw_pass *l)
{
    const ot_group_view v = lw_group_view(l);
    bool any = false;
    for (uint32_t u = 0; u < l->n_units; u++) {
        const lw_unit *unit = &l->units[u];
        int op = (int)unit->nodes[0]->op;
        if (op == OT_OP_Conv || op == OT_OP_QLinearConv || op == OT_OP_ConvInteger)
            OT_TRY(fuse(l, &v, u));
        any = any || unit->kind != LW_NODE;
    }
    return any ? lw_drop_dequantized(l) : OT_OK;
}

/* ---- the step ---- */

static ot_status run_qconv(ot_call *c)
{
    const qconv_setup *p = c->plan;
    const ot_nd *x = c->in[0];
    ot_qconv v = p->v;
    uint32_t next = 2; /* behind x and the weights */
    OT_TRY(ot_call_place(c, 0));
    if (p->zero != OT_NONE) v.x_zero = (int32_t)ot_nd_int(c->in[next++], 0);
    if (p->factor != OT_NONE) v.y.scale = *(const float *)c->in[next]->data;
    v.x_strides[0] = x->strides[0];
    v.x_strides[1] = x->strides[1];
    v.x_strides[2] = x->rank == 4 ? x->strides[2] : 0;
    v.x_strides[3] = 1;
    ot_qconv_run(&v, x->data, c->out[0]->data, p->threads, c->work);
    return OT_OK;
}

/* The weights' id in this schedule: they may be an outer one's. */
static ot_status weights_id(lw_pass *l, ot_slot *w, ot_id *id)
{
    *id = (ot_id)l->n_ids;
    for (ot_id k = 0; k < l->n_ids; k++)
        if (l->ids[k] == w) {
            *id = k;
            return OT_OK;
        }
    return OT_PUSH(l->scratch, l->ids, l->n_ids, l->cap_ids, w) ? OT_OK : ot_fail_nomem(l->p->s->d);
}

ot_status lw_write_qconv(lw_pass *l, lw_unit *u)
{
    const qconv_setup *p = u->plan;
    ot_id in[4], out;
    uint32_t n_in = 2;
    ot_step *step = NULL;
    OT_TRY(lw_need(l, p->x, LW_ANY_PLAIN, LW_PLAIN, &in[0]));
    OT_TRY(weights_id(l, p->w, &in[1]));
    if (p->zero != OT_NONE) OT_TRY(lw_need(l, p->zero, LW_BIT(LW_PLAIN), LW_PLAIN, &in[n_in++]));
    if (p->factor != OT_NONE)
        OT_TRY(lw_need(l, p->factor, LW_BIT(LW_PLAIN), LW_PLAIN, &in[n_in++]));
    OT_TRY(lw_make(l, p->y, LW_PLAIN, &out));
    OT_TRY(lw_push(l, u->nodes[0], run_qconv, p, (ot_id_list){in, n_in}, (ot_id_list){&out, 1},
                   &step));
    step->work = ot_qconv_work(&p->v, p->threads);
    return OT_OK;
}
