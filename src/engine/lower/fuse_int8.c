/* Products of 8-bit matrices with what stands around them (fusion/bytes_group.c finds it), as
 * one product.
 *
 *   dynamic    q, s, z = DynamicQuantizeLinear(x)                              q, s, z, weights
 *              MatMulInteger(q, w, z, wz) -> Cast -> Mul(s * ws) -> Add(bias)     --> float
 *
 *   static  xq -> DequantizeLinear -.
 *           wq -> DequantizeLinear -+-> MatMul, Gemm -> Add(bias) -> Relu -> QuantizeLinear  xq,
 *           weights --> float, u8, s8
 *
 * The sums are exact; nodes one after another round products and sums in between, so floats
 * differ by some rounding errors and what is quantized perhaps by one step where it lies half
 * way between two. Constant weights are packed once, for all schedules of the session, and not
 * kept in any other form. A DequantizeLinear whose float result others read, too, stays for
 * them.
 */
#include "fuse_find.h"
#include "engine/cpu/int8/int8_product.h"

#include <math.h>
#include <stdlib.h>

/* ---- what a step knows ---- */

/* the last three may be omitted */
typedef enum int8_in { IN_A, IN_SCALE, IN_ZERO, IN_B, INPUTS } int8_in;

typedef struct int8_setup {
    ot_nd b;               /* shape and type of B [k, n]; data NULL when it is input IN_B, else */
    const uint8_t *panels; /* what it is packed into */
    bool b_transposed;     /* IN_B is never */
    int32_t a_zero, b_zero;
    const int32_t *b_zeros; /* [n] or NULL */
    ot_i8_out out;          /* of which the scale is yet to be multiplied with input IN_SCALE */
} int8_setup;

static ot_status run_int8(ot_call *c)
{
    const int8_setup *plan = c->plan;
    const ot_nd *a = c->in[IN_A], *b = plan->panels ? &plan->b : c->in[IN_B],
                *scale = c->in[IN_SCALE], *zero = c->in[IN_ZERO];
    ot_i8_product p = {
        .a = a->data, .b = b->data, .a_signed = a->dtype == OT_I8, .a_zero = plan->a_zero};
    OT_TRY(ot_matmul_open(c, a, b, &p.shape));
    p.job = (ot_i8_job){.panels = plan->panels,
                        .b_signed = b->dtype == OT_I8,
                        .b_zero = plan->b_zero,
                        .b_zeros = plan->b_zeros,
                        .out = plan->out};
    if (scale) p.job.out.scale *= *(const float *)scale->data;
    if (zero) p.a_zero = (int32_t)ot_nd_int(zero, 0);
    OT_TRY(ot_call_output(c, 0, plan->out.type, p.shape.rank, p.shape.dims));
    if (!ot_num_out(c, 0) || p.shape.count == 0) return OT_OK;
    p.job.out.to = c->out[0]->data;
    return ot_i8_product_run(c, &p);
}

/* A product under way: the unit of its operator, values, constants. */
typedef struct found {
    const lw_unit *unit;
    ot_id in[INPUTS];
    int64_t n;             /* columns */
    const ot_nd *b;        /* constant B as it lies, or NULL */
    float a_scale;         /* constant part of the factor */
    const float *b_scales; /* [n_scales], or NULL: 1 */
    int64_t n_scales;
    float *shift;  /* [n], or NULL */
    float y_scale; /* of a quantized result; 0: it is float */
    bool fits;     /* all constants were there */
    int8_setup plan;
} found;

/* One number, or one for each of n columns: a vector, or along the last axis. */
static bool is_by_column(const ot_nd *a, int64_t n)
{
    int64_t count = ot_num_count(a);
    return count == 1 || (count == n && a->rank > 0 && a->dims[a->rank - 1] == n);
}

/* ---- contents of constants ---- */

/* Constant scales and zero points of Quantize- or DequantizeLinear: one, or one for each column. */
static bool read_scale(const ot_schedule *p, const ot_node *n, int64_t columns, const ot_nd **scale,
                       const ot_nd **zero)
{
    *scale = lw_constant(p, lw_operand(n, 1));
    *zero = lw_constant(p, lw_operand(n, 2));
    if (!*scale || (*scale)->dtype != OT_F32 || (lw_operand(n, 2) != OT_NONE && !*zero))
        return false;
    int64_t count = ot_num_count(*scale);
    if ((count != 1 && count != columns) ||
        (*zero && (!lw_is_byte((*zero)->dtype) || ot_num_count(*zero) != count)))
        return false;
    for (int64_t k = 0; k < count; k++)
        if (!(ot_nd_double(*scale, k) > 0) || !isfinite(ot_nd_double(*scale, k))) return false;
    return true;
}

/* Zero points of B's columns into the plan. */
static ot_status take_zeros(lw_pass *l, const ot_nd *zero, found *f)
{
    int64_t count = zero ? ot_num_count(zero) : 0;
    if (count == 1) f->plan.b_zero = (int32_t)ot_nd_int(zero, 0);
    if (count <= 1) return OT_OK;
    int32_t *zeros = OT_NEW_N(l->a, int32_t, count);
    if (!zeros) return ot_fail_nomem(l->p->s->d);
    for (int64_t k = 0; k < count; k++) zeros[k] = (int32_t)ot_nd_int(zero, k);
    f->plan.b_zeros = zeros;
    return OT_OK;
}

/* Constant weights [k, n], or [n, k]; bytes. */
static bool take_weights(const ot_schedule *p, ot_id v, bool transposed, found *f)
{
    const ot_nd *b = lw_constant(p, v);
    if (!b || !lw_is_byte(b->dtype) || b->rank != 2 || !ot_nd_is_dense(b)) return false;
    int64_t dims[2] = {b->dims[transposed], b->dims[!transposed]};
    f->b = b;
    f->n = dims[1];
    f->plan.b_transposed = transposed;
    ot_nd_set_dense(&f->plan.b, b->dtype, 2, dims);
    return dims[0] > 0 && dims[1] > 0 && dims[0] <= OT_I8_K_MAX;
}

/* bias * beta for all columns. */
static ot_status take_bias(lw_pass *l, ot_id v, float beta, found *f)
{
    const ot_nd *bias = lw_constant(l->p, v);
    f->fits = f->fits && bias;
    if (!f->fits) return OT_OK;
    int64_t step = ot_num_count(bias) == 1 ? 0 : 1;
    f->shift = OT_NEW_N(l->a, float, f->n);
    if (!f->shift) return ot_fail_nomem(l->p->s->d);
    for (int64_t k = 0; k < f->n; k++) f->shift[k] = beta * ((const float *)bias->data)[k * step];
    return OT_OK;
}

/* ---- dynamic ---- */

/* The factor v is the scale of A times those of the columns of B, or one of them; a Mul that
 * makes the product stays, for others. */
static bool take_factor(const lw_pass *l, ot_id v, found *f)
{
    ot_id pair[2] = {v, OT_NONE};
    const lw_unit *maker = l->v[v].maker == OT_NONE ? NULL : &l->units[l->v[v].maker];
    if (maker && maker->kind == LW_NODE && maker->nodes[0]->op == OT_OP_Mul && maker->n_in == 2) {
        pair[0] = maker->in[0];
        pair[1] = maker->in[1];
    }
    for (int k = 0; k < 2; k++) {
        const ot_nd *fixed = pair[k] == OT_NONE ? NULL : lw_constant(l->p, pair[k]);
        if (pair[k] == OT_NONE) continue;
        if (fixed && is_by_column(fixed, f->n) && !f->b_scales) {
            f->b_scales = fixed->data;
            f->n_scales = ot_num_count(fixed);
        } else if (f->in[IN_SCALE] == OT_NONE) {
            f->in[IN_SCALE] = pair[k];
        } else {
            return false;
        }
    }
    return true;
}

/* MatMulInteger with constant weights. */
static ot_status read_integer(lw_pass *l, const ot_bytes_group *x, found *f)
{
    const lw_unit *u = f->unit;
    const ot_nd *zeros = lw_constant(l->p, lw_operand_of(u, 3));
    f->in[IN_A] = u->in[0];
    f->in[IN_ZERO] = lw_operand_of(u, 2);
    f->fits = take_weights(l->p, u->in[1], false, f) && (lw_operand_of(u, 3) == OT_NONE || zeros) &&
              (x->factor == OT_NONE || take_factor(l, x->factor, f));
    return take_zeros(l, zeros, f);
}

/* ---- static ---- */

/* The second factor: constant weights, or matrices that are computed. */
static ot_status read_b(lw_pass *l, ot_id v, bool transposed, found *f)
{
    lw_source s;
    const ot_nd *scale = NULL, *zero = NULL;
    f->fits = lw_source_of(l, v, &s);
    if (!f->fits) return OT_OK;
    ot_id bytes = lw_operand(s.node, 0);
    if (!take_weights(s.p, bytes, transposed, f)) {
        const ot_nd *shape = f->b || !s.is_unit || transposed ? NULL : lw_shape(l, bytes);
        f->fits = shape != NULL;
        if (!shape) return OT_OK;
        f->in[IN_B] = bytes;
        f->n = shape->dims[shape->rank - 1];
    }
    f->fits = read_scale(s.p, s.node, f->b ? f->n : 1, &scale, &zero);
    if (!f->fits) return OT_OK;
    f->b_scales = scale->data;
    f->n_scales = ot_num_count(scale);
    return take_zeros(l, zero, f);
}

/* Of dequantized operands. */
static ot_status read_static(lw_pass *l, const ot_bytes_group *x, found *f)
{
    const lw_unit *u = f->unit;
    const ot_node *n = u->nodes[0];
    bool gemm = n->op == OT_OP_Gemm;
    const ot_nd *scale, *zero;
    f->fits = read_scale(l->p, x->x.n, 1, &scale, &zero);
    if (!f->fits) return OT_OK;
    OT_TRY(read_b(l, u->in[1], gemm && ot_attr_int(n, "transB", 0) != 0, f));
    if (!f->fits) return OT_OK;
    f->in[IN_A] = x->x.n->in[0];
    f->a_scale = *(const float *)scale->data * (gemm ? ot_attr_float(n, "alpha", 1) : 1);
    f->plan.a_zero = zero ? (int32_t)ot_nd_int(zero, 0) : 0;
    return lw_operand_of(u, 2) == OT_NONE ? OT_OK
                                          : take_bias(l, u->in[2], ot_attr_float(n, "beta", 1), f);
}

/* QLinearMatMul with constant weights, scales and zero points. */
static ot_status read_qlinear(lw_pass *l, found *f)
{
    const lw_unit *u = f->unit;
    const ot_nd *k[8] = {NULL};
    f->fits = take_weights(l->p, u->in[3], false, f);
    for (uint32_t i = 1; i < 8; i++)
        f->fits = f->fits && (k[i] = lw_constant(l->p, u->in[i])) != NULL;
    if (!f->fits) return OT_OK;
    f->in[IN_A] = u->in[0];
    f->a_scale = *(const float *)k[1]->data;
    f->b_scales = k[4]->data;
    f->n_scales = ot_num_count(k[4]);
    f->y_scale = *(const float *)k[6]->data;
    f->plan.a_zero = (int32_t)ot_nd_int(k[2], 0);
    f->plan.out.zero = (int32_t)ot_nd_int(k[7], 0);
    f->fits = f->y_scale != 0;
    return take_zeros(l, k[5], f);
}

/* QuantizeLinear by one scale, perhaps of max(0, result), which it makes the zero point. */
static void read_quantize(const lw_pass *l, const ot_bytes_group *x, found *f)
{
    const ot_nd *scale, *zero;
    f->fits = f->fits && read_scale(l->p, x->y.n, 1, &scale, &zero);
    if (!f->fits) return;
    f->y_scale = *(const float *)scale->data;
    f->plan.out.zero = zero ? (int32_t)ot_nd_int(zero, 0) : 0;
    if (x->group.n < 2 || x->group.parts[x->group.n - 2].role != OT_ROLE_ACTIVATION) return;
    f->plan.out.least = f->plan.out.zero;
    f->plan.out.most = f->plan.out.type == OT_I8 ? INT8_MAX : UINT8_MAX;
}

/* ---- the unit ---- */

static void free_panels(void *panels) { free(panels); }

/* How weights are filled in when all schedules are made. */
typedef struct packing {
    int64_t k, n;
    bool transposed;
} packing;

static ot_status fill(ot_session *s, const ot_packed *packed, bool own)
{
    const packing *how = packed->how;
    (void)s;
    (void)own;
    ot_i8_pack(packed->data, packed->source,
               &(ot_matrix_layout){how->k, how->n, how->transposed ? 1 : how->n,
                                   how->transposed ? how->k : 1},
               ot_i8_way_here(), 0, (how->n + OT_I8_PANEL - 1) / OT_I8_PANEL);
    return OT_OK;
}

/* Panels for the weights: those that another schedule has, or new ones, to be filled later. */
static ot_status pack(lw_pass *l, found *f)
{
    ot_session *s = l->p->s;
    packing how = {f->plan.b.dims[0], f->plan.b.dims[1], f->plan.b_transposed};
    uint64_t form = ot_hash_bytes(ot_hash_bytes(3, &how.k, sizeof how.k), &how.n, sizeof how.n) +
                    how.transposed;
    uint8_t *panels = ot_packed_find(s, f->b->data, form);
    if (!panels) {
        int64_t size = ot_i8_packed_size(how.k, how.n);
        const packing *kept = ot_memdup(l->a, &how, sizeof how);
        panels = size < 0 || size > INT64_MAX / 8
                     ? NULL
                     : aligned_alloc(64, ((size_t)size + 64) / 64 * 64);
        if (!panels || !kept) {
            free(panels);
            return ot_fail_nomem(s->d);
        }
        OT_TRY(ot_packed_later(s, f->b->data, form, panels, free_panels, fill, kept));
    }
    f->plan.panels = panels;
    return OT_OK;
}

/* Factors: a_scale (and what input IN_SCALE says) * b_scale / y_scale. */
static ot_status set_factors(lw_pass *l, found *f)
{
    ot_i8_out *o = &f->plan.out;
    float over = f->y_scale != 0 ? f->y_scale : 1;
    o->scale = 1;
    if (f->n_scales <= 1) {
        o->scale = f->a_scale * (f->b_scales ? f->b_scales[0] : 1) / over;
    } else {
        float *scales = OT_NEW_N(l->a, float, f->n_scales);
        if (!scales) return ot_fail_nomem(l->p->s->d);
        for (int64_t k = 0; k < f->n_scales; k++) scales[k] = f->a_scale * f->b_scales[k] / over;
        o->scales = scales;
    }
    for (int64_t k = 0; f->shift && k < f->n; k++) f->shift[k] /= over;
    o->shift = f->shift;
    return OT_OK;
}

static ot_status make_unit(lw_pass *l, const ot_group *x, found *f)
{
    uint32_t parts[OT_GROUP_PARTS];
    OT_TRY(set_factors(l, f));
    if (f->b) OT_TRY(pack(l, f));
    const int8_setup *plan = ot_memdup(l->a, &f->plan, sizeof *plan);
    if (!plan) return ot_fail_nomem(l->p->s->d);
    for (uint32_t k = 0; k < x->n; k++) parts[k] = x->parts[k].place;
    const lw_rewrite r = {.parts = parts,
                          .n_parts = x->n,
                          .like = parts[0],
                          .in = f->in,
                          .n_in = INPUTS,
                          .out = x->result,
                          .run = run_int8,
                          .plan = plan};
    return lw_apply(l, &r, NULL);
}

static ot_status fuse(lw_pass *l, const ot_group_view *v, uint32_t at, bool *made)
{
    ot_bytes_group x;
    if (!ot_group_bytes(v, &ot_engine_rules, at, &x)) return OT_OK;
    found f = {.unit = &l->units[at], .in = {OT_NONE, OT_NONE, OT_NONE, OT_NONE}, .a_scale = 1};
    f.plan.out.type = l->v[x.group.result].slot->fore.dtype;
    if (x.x.n)
        OT_TRY(read_static(l, &x, &f));
    else if (v->node(l, at)->op == OT_OP_MatMulInteger)
        OT_TRY(read_integer(l, &x, &f));
    else
        OT_TRY(read_qlinear(l, &f));
    if (x.bias != OT_NONE) OT_TRY(take_bias(l, x.bias, 1, &f));
    if (x.y.n) read_quantize(l, &x, &f);
    if (!f.fits) return OT_OK;
    *made = true;
    return make_unit(l, &x.group, &f);
}

ot_status lw_fuse_int8(lw_pass *l)
{
    const ot_group_view v = lw_group_view(l);
    bool any = false;
    for (uint32_t u = 0; u < l->n_units; u++) {
        int op = (int)l->units[u].nodes[0]->op;
        if (op == OT_OP_MatMulInteger || op == OT_OP_QLinearMatMul || op == OT_OP_MatMul ||
            op == OT_OP_Gemm)
            OT_TRY(fuse(l, &v, u, &any));
    }
    return any ? lw_drop_dequantized(l) : OT_OK;
}
