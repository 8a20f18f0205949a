/* Products of 8-bit matrices with what stands around them, as one product.
 *
 *   dynamic    q, s, z = DynamicQuantizeLinear(x)                              q, s, z, weights
 *              MatMulInteger(q, w, z, wz) -> Cast -> Mul(s * ws) -> Add(bias)     --> float
 *
 *   static     xq -> DequantizeLinear -.
 *              wq -> DequantizeLinear -+-> MatMul, Gemm -> Add(bias) -> Relu -> QuantizeLinear      xq, weights --> float, u8, s8
 *
 * The sums are exact; nodes one after another round products and sums in between, so floats differ by some rounding errors and what
 * is quantized perhaps by one step where it lies half way between two. Constant weights are packed once, for all programs of the
 * session, and not kept in any other form. A DequantizeLinear whose float result others read, too, stays for them.
 */
#include "fuse_find.h"
#include "engine/int8/int8_product.h"

#include <math.h>
#include <stdlib.h>

/* ---- what a step knows ---- */

typedef enum int8_in { IN_A, IN_SCALE, IN_ZERO, IN_B, INPUTS } int8_in; /* the last three may be omitted */

typedef struct int8_plan {
    ot_nd b;               /* shape and type of B [k, n]; data NULL when it is input IN_B, else */
    const uint8_t *panels; /* what it is packed into */
    bool b_transposed;     /* IN_B is never */
    int32_t a_zero, b_zero;
    const int32_t *b_zeros; /* [n] or NULL */
    ot_i8_out out;          /* of which the scale is yet to be multiplied with input IN_SCALE */
} int8_plan;

static ot_status run_int8(ot_call *c)
{
    const int8_plan *plan = c->plan;
    const ot_nd *a = c->in[IN_A], *b = plan->panels ? &plan->b : c->in[IN_B], *scale = c->in[IN_SCALE], *zero = c->in[IN_ZERO];
    ot_i8_product p = {.a = a->data, .b = b->data, .a_signed = a->dtype == OT_I8, .a_zero = plan->a_zero};
    OT_TRY(ot_matmul_open(c, a, b, &p.shape));
    p.job = (ot_i8_job){
        .panels = plan->panels, .b_signed = b->dtype == OT_I8, .b_zero = plan->b_zero, .b_zeros = plan->b_zeros, .out = plan->out};
    if (scale) p.job.out.scale *= *(const float *)scale->data;
    if (zero) p.a_zero = (int32_t)ot_nd_int(zero, 0);
    OT_TRY(ot_call_output(c, 0, plan->out.type, p.shape.rank, p.shape.dims));
    if (!ot_num_out(c, 0) || p.shape.count == 0) return OT_OK;
    p.job.out.to = c->out[0]->data;
    return ot_i8_product_run(c, &p);
}

/* ---- questions ---- */

/* A product under way: the unit that it is found at, values, constants. */
typedef struct found {
    const lw_unit *unit;
    ot_id in[INPUTS], out; /* out: what was made so far */
    int64_t n;             /* columns */
    const ot_nd *b;        /* constant B as it lies, or NULL */
    float a_scale;         /* constant part of the factor */
    const float *b_scales; /* [n_scales], or NULL: 1 */
    int64_t n_scales;
    float *shift;  /* [n], or NULL */
    float y_scale; /* of a quantized result; 0: it is float */
    bool relu;
    uint32_t parts[8], n_parts;
    int8_plan plan;
} found;

/* One number, or one for each of n columns: a vector, or along the last axis. */
static bool is_by_column(const ot_nd *a, int64_t n)
{
    int64_t count = ot_num_count(a);
    return count == 1 || (count == n && a->rank > 0 && a->dims[a->rank - 1] == n);
}

/* The only unit that reads v is the node `op`. */
static bool followed_by(const lw_pass *l, ot_id v, ot_op op, uint32_t *reader)
{
    *reader = lw_only_reader(l, v);
    return *reader != OT_NONE && l->units[*reader].kind == LW_NODE && l->units[*reader].nodes[0]->op == op;
}

/* ---- a DequantizeLinear ---- */

/* Constant scale and zero point of Quantize- or DequantizeLinear `n`: one, or `columns` along `axis` of `rank`. */
static bool read_scale(const ot_prog *p, const ot_node *n, int64_t columns, int64_t axis, int64_t rank, const ot_nd **scale,
                       const ot_nd **zero)
{
    int64_t own = ot_attr_int(n, "axis", 1);
    *scale = lw_constant(p, lw_operand(n, 1));
    *zero = lw_constant(p, lw_operand(n, 2));
    if (!*scale || (*scale)->dtype != OT_F32 || (*scale)->rank > 1 || (lw_operand(n, 2) != OT_NONE && !*zero)) return false;
    if (ot_attr_int(n, "block_size", 0) || ot_attr_int(n, "output_dtype", 0) || ot_attr_int(n, "precision", 0)) return false;
    int64_t count = ot_num_count(*scale);
    for (int64_t k = 0; k < count; k++)
        if (!(ot_nd_double(*scale, k) > 0) || !isfinite(ot_nd_double(*scale, k))) return false;
    if (*zero && (!lw_is_byte((*zero)->dtype) || ot_num_count(*zero) != count)) return false;
    return count == 1 || (count == columns && (own < 0 ? own + rank : own) == axis);
}

/* Zero points of B's columns into the plan. */
static bool take_zeros(lw_pass *l, const ot_nd *zero, found *f)
{
    int64_t count = zero ? ot_num_count(zero) : 0;
    if (count == 1) f->plan.b_zero = (int32_t)ot_nd_int(zero, 0);
    if (count <= 1) return true;
    int32_t *zeros = OT_NEW_N(l->a, int32_t, count);
    for (int64_t k = 0; zeros && k < count; k++) zeros[k] = (int32_t)ot_nd_int(zero, k);
    f->plan.b_zeros = zeros;
    return zeros != NULL;
}

/* Constant weights [k, n], or [n, k]; bytes. */
static bool take_weights(const ot_prog *p, ot_id v, bool transposed, found *f)
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

/* ---- dynamic ---- */

/* Is v the scale of A times those of the columns of B, or one of them? *product: the unit that multiplies them for this reader
 * only, or OT_NONE. */
static bool read_factor(const lw_pass *l, ot_id v, uint32_t reader, found *f, uint32_t *product)
{
    const ot_nd *shape = lw_shape(l, v);
    ot_id pair[2] = {v, OT_NONE};
    *product = OT_NONE;
    if (!shape || shape->dtype != OT_F32) return false;
    const lw_unit *maker = l->v[v].maker == OT_NONE ? NULL : &l->units[l->v[v].maker];
    if (maker && maker->kind == LW_NODE && maker->nodes[0]->op == OT_OP_Mul && maker->n_in == 2) {
        pair[0] = maker->in[0];
        pair[1] = maker->in[1];
        if (lw_only_reader(l, v) == reader) *product = l->v[v].maker;
    }
    for (int k = 0; k < 2; k++) {
        const ot_nd *fixed = pair[k] == OT_NONE ? NULL : lw_constant(l->p, pair[k]);
        if (pair[k] == OT_NONE) continue;
        if (fixed && fixed->dtype == OT_F32 && is_by_column(fixed, f->n) && !f->b_scales) {
            f->b_scales = fixed->data;
            f->n_scales = ot_num_count(fixed);
        } else if (lw_is_single(l, pair[k], OT_F32) && f->in[IN_SCALE] == OT_NONE) {
            f->in[IN_SCALE] = pair[k];
        } else {
            return false;
        }
    }
    return true;
}

/* Cast and Mul behind a MatMulInteger: the result is float. */
static void find_factor(const lw_pass *l, found *f)
{
    uint32_t cast, mul, product;
    found with = *f;
    if (!followed_by(l, f->out, OT_OP_Cast, &cast) || !lw_is_f32(l, l->units[cast].out[0])) return;
    ot_id made = l->units[cast].out[0];
    if (!followed_by(l, made, OT_OP_Mul, &mul) || lw_other(&l->units[mul], made) == OT_NONE) return;
    if (!read_factor(l, lw_other(&l->units[mul], made), mul, &with, &product)) return;
    with.out = l->units[mul].out[0];
    with.plan.out.type = OT_F32;
    with.parts[with.n_parts++] = cast;
    with.parts[with.n_parts++] = mul;
    if (product != OT_NONE) with.parts[with.n_parts++] = product;
    if (lw_is_f32(l, with.out) && lw_same_dims(l, made, with.out)) *f = with;
}

/* MatMulInteger with constant weights. */
static bool find_integer(lw_pass *l, uint32_t at, found *f)
{
    const lw_unit *u = &l->units[at];
    ot_id zero = lw_operand_of(u, 2), b_zero = lw_operand_of(u, 3);
    const ot_nd *x = lw_shape(l, u->in[0]), *zeros = lw_constant(l->p, b_zero);
    f->unit = u;
    if (!x || !lw_is_byte(x->dtype) || x->rank < 2 || !lw_shape(l, u->out[0]) || !take_weights(l->p, u->in[1], false, f))
        return false;
    if (zero != OT_NONE && !lw_is_single(l, zero, x->dtype)) return false;
    if (b_zero != OT_NONE && (!zeros || zeros->dtype != f->b->dtype || zeros->rank > 1 || !is_by_column(zeros, f->n))) return false;
    f->in[IN_A] = u->in[0];
    f->in[IN_ZERO] = zero;
    f->out = u->out[0];
    f->plan.out.type = OT_I32;
    f->parts[f->n_parts++] = at;
    if (!take_zeros(l, zeros, f)) return false;
    find_factor(l, f);
    return true;
}

/* ---- static ---- */

/* Operand A, dequantized by one scale, as a value of this program. */
static bool find_bytes(const lw_pass *l, ot_id v, ot_id *bytes, const ot_nd **scale, const ot_nd **zero)
{
    lw_source s;
    if (v == OT_NONE || !lw_source_of(l, v, &s) || s.node->op != OT_OP_DequantizeLinear || !s.is_unit) return false;
    *bytes = lw_operand(s.node, 0);
    const ot_nd *x = lw_shape(l, *bytes);
    return x && lw_is_byte(x->dtype) && x->rank >= 2 && read_scale(s.p, s.node, 1, 0, 0, scale, zero);
}

/* Operand B: constant weights, or matrices that are computed. */
static bool find_b(lw_pass *l, ot_id v, bool transposed, found *f)
{
    lw_source s;
    const ot_nd *scale, *zero, *x;
    if (v == OT_NONE || !lw_source_of(l, v, &s) || s.node->op != OT_OP_DequantizeLinear) return false;
    if (take_weights(s.p, lw_operand(s.node, 0), transposed, f)) {
        if (!read_scale(s.p, s.node, f->n, !transposed, 2, &scale, &zero)) return false;
    } else {
        if (f->b || transposed || !find_bytes(l, v, &f->in[IN_B], &scale, &zero)) return false;
        x = lw_shape(l, f->in[IN_B]);
        f->n = x->dims[x->rank - 1];
        if (x->dims[x->rank - 2] > OT_I8_K_MAX) return false;
    }
    f->b_scales = scale->data;
    f->n_scales = ot_num_count(scale);
    return take_zeros(l, zero, f);
}

/* bias * beta for all columns. */
static bool take_bias(lw_pass *l, ot_id v, float beta, found *f)
{
    const ot_nd *bias = lw_constant(l->p, v);
    if (f->shift || !bias || bias->dtype != OT_F32 || !is_by_column(bias, f->n)) return false;
    int64_t step = ot_num_count(bias) == 1 ? 0 : 1;
    f->shift = OT_NEW_N(l->a, float, f->n);
    for (int64_t k = 0; f->shift && k < f->n; k++) f->shift[k] = beta * ((const float *)bias->data)[k * step];
    return f->shift != NULL;
}

/* Of dequantized operands. */
static bool find_static(lw_pass *l, uint32_t at, found *f)
{
    const lw_unit *u = &l->units[at];
    const ot_node *n = u->nodes[0];
    bool gemm = n->op == OT_OP_Gemm, transposed = gemm && ot_attr_int(n, "transB", 0) != 0;
    const ot_nd *scale, *zero;
    f->unit = u;
    if (u->n_in < 2 || (gemm && ot_attr_int(n, "transA", 0) != 0) || !lw_is_f32(l, u->out[0])) return false;
    if (!find_bytes(l, u->in[0], &f->in[IN_A], &scale, &zero) || !find_b(l, u->in[1], transposed, f)) return false;
    f->a_scale = *(const float *)scale->data * (gemm ? ot_attr_float(n, "alpha", 1) : 1);
    f->plan.a_zero = zero ? (int32_t)ot_nd_int(zero, 0) : 0;
    f->out = u->out[0];
    f->plan.out.type = OT_F32;
    f->parts[f->n_parts++] = at;
    return lw_operand_of(u, 2) == OT_NONE || take_bias(l, u->in[2], ot_attr_float(n, "beta", 1), f);
}

/* QLinearMatMul with constant weights, scales and zero points. */
static bool find_qlinear(lw_pass *l, uint32_t at, found *f)
{
    const lw_unit *u = &l->units[at];
    const ot_nd *k[8] = {NULL}, *x = lw_shape(l, u->in[0]), *y = lw_shape(l, u->out[0]);
    f->unit = u;
    if (u->n_in != 8 || !x || !lw_is_byte(x->dtype) || x->rank < 2 || !y) return false;
    for (uint32_t i = 1; i < 8; i++) {
        k[i] = lw_constant(l->p, u->in[i]);
        bool scale = i == 1 || i == 4 || i == 6;
        if (!k[i] || (scale ? k[i]->dtype != OT_F32 : !lw_is_byte(k[i]->dtype))) return false;
    }
    if (!take_weights(l->p, u->in[3], false, f) || ot_num_count(k[1]) != 1 || ot_num_count(k[2]) != 1 || ot_num_count(k[6]) != 1 ||
        ot_num_count(k[7]) != 1 || !is_by_column(k[4], f->n) || !is_by_column(k[5], f->n))
        return false;
    if (k[2]->dtype != x->dtype || k[5]->dtype != f->b->dtype || k[7]->dtype != y->dtype) return false;
    f->in[IN_A] = u->in[0];
    f->out = u->out[0];
    f->a_scale = *(const float *)k[1]->data;
    f->b_scales = k[4]->data;
    f->n_scales = ot_num_count(k[4]);
    f->y_scale = *(const float *)k[6]->data;
    f->plan.a_zero = (int32_t)ot_nd_int(k[2], 0);
    f->plan.out.zero = (int32_t)ot_nd_int(k[7], 0);
    f->plan.out.type = y->dtype;
    f->parts[f->n_parts++] = at;
    return f->y_scale != 0 && take_zeros(l, k[5], f);
}

/* ---- what follows ---- */

/* Add of a constant by column. */
static void find_add(lw_pass *l, found *f)
{
    uint32_t add;
    if (f->shift || !followed_by(l, f->out, OT_OP_Add, &add)) return;
    const lw_unit *u = &l->units[add];
    ot_id bias = lw_other(u, f->out);
    if (bias == OT_NONE || !lw_is_f32(l, u->out[0]) || !lw_same_dims(l, f->out, u->out[0]) || !take_bias(l, bias, 1, f)) return;
    f->out = u->out[0];
    f->parts[f->n_parts++] = add;
}

/* QuantizeLinear by one scale, perhaps of max(0, result), which it makes the zero point. */
static void find_quantize(const lw_pass *l, found *f)
{
    uint32_t relu = OT_NONE, q;
    ot_id made = f->out;
    const ot_nd *scale, *zero;
    if (followed_by(l, made, OT_OP_Relu, &relu))
        made = l->units[relu].out[0];
    else
        relu = OT_NONE;
    if (!followed_by(l, made, OT_OP_QuantizeLinear, &q) || l->units[q].in[0] != made) return;
    const ot_node *n = l->units[q].nodes[0];
    const ot_nd *y = lw_shape(l, l->units[q].out[0]);
    if (!y || !lw_is_byte(y->dtype) || !read_scale(l->p, n, 1, 0, 0, &scale, &zero)) return;
    f->y_scale = *(const float *)scale->data;
    f->plan.out.zero = zero ? (int32_t)ot_nd_int(zero, 0) : 0;
    f->plan.out.type = y->dtype;
    f->out = l->units[q].out[0];
    if (relu != OT_NONE) {
        f->plan.out.least = f->plan.out.zero;
        f->plan.out.most = y->dtype == OT_I8 ? INT8_MAX : UINT8_MAX;
        f->parts[f->n_parts++] = relu;
    }
    f->parts[f->n_parts++] = q;
}

/* ---- the unit ---- */

static void free_panels(void *panels) { free(panels); }

/* How weights are filled in when all programs are made. */
typedef struct packing {
    int64_t k, n;
    bool transposed;
} packing;

static ot_status fill(ot_session *s, const ot_packed *packed, bool own)
{
    const packing *how = packed->how;
    (void)s;
    (void)own;
    ot_i8_pack(packed->data, packed->source, how->k, how->n, how->transposed ? 1 : how->n, how->transposed ? how->k : 1, 0,
               (how->n + OT_I8_PANEL - 1) / OT_I8_PANEL);
    return OT_OK;
}

/* Panels for the weights: those that another program has, or new ones, to be filled later. */
static ot_status pack(lw_pass *l, found *f)
{
    ot_session *s = l->p->s;
    packing how = {f->plan.b.dims[0], f->plan.b.dims[1], f->plan.b_transposed};
    uint64_t form = ot_hash_bytes(ot_hash_bytes(3, &how.k, sizeof how.k), &how.n, sizeof how.n) + how.transposed;
    uint8_t *panels = ot_packed_find(s, f->b->data, form);
    if (!panels) {
        int64_t size = ot_i8_packed_size(how.k, how.n);
        const packing *kept = ot_memdup(l->a, &how, sizeof how);
        panels = size < 0 || size > INT64_MAX / 8 ? NULL : aligned_alloc(64, ((size_t)size + 64) / 64 * 64);
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

static ot_status make_unit(lw_pass *l, found *f)
{
    OT_TRY(set_factors(l, f));
    if (f->b) OT_TRY(pack(l, f));
    const int8_plan *plan = ot_memdup(l->a, &f->plan, sizeof *plan);
    if (!plan) return ot_fail_nomem(l->p->s->d);
    const lw_rewrite r = {.parts = f->parts,
                          .n_parts = f->n_parts,
                          .like = f->parts[0],
                          .in = f->in,
                          .n_in = INPUTS,
                          .out = f->out,
                          .run = run_int8,
                          .plan = plan};
    return lw_apply(l, &r, NULL);
}

/* The product that unit `at` is. */
static bool find(lw_pass *l, uint32_t at, found *f)
{
    *f = (found){.in = {OT_NONE, OT_NONE, OT_NONE, OT_NONE}, .a_scale = 1};
    const lw_unit *u = &l->units[at];
    if (u->kind != LW_NODE || u->step->plan || u->n_in < 2 || u->in[0] == OT_NONE || u->in[1] == OT_NONE || u->out[0] == OT_NONE)
        return false;
    switch ((int)u->nodes[0]->op) {
    case OT_OP_MatMulInteger: return find_integer(l, at, f);
    case OT_OP_QLinearMatMul: return find_qlinear(l, at, f);
    case OT_OP_MatMul:
    case OT_OP_Gemm: return find_static(l, at, f);
    default: return false;
    }
}

ot_status lw_fuse_int8(lw_pass *l)
{
    bool any = false;
    for (uint32_t u = 0; u < l->n_units; u++) {
        found f;
        if (!find(l, u, &f)) continue;
        if (f.plan.out.type == OT_F32) find_add(l, &f);
        if (f.plan.out.type == OT_F32 && f.in[IN_SCALE] == OT_NONE) find_quantize(l, &f);
        OT_TRY(make_unit(l, &f));
        any = true;
    }
    return any ? lw_drop_dequantized(l) : OT_OK;
}
