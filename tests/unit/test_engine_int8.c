/* 8-bit products and quantization against sums by definition and against the references, bit by
 * bit. */
#include "fast_check.h"
#include "groups_check.h"

#include "engine/cpu/int8/int8_product.h"

static ot_nd bytes_of(ot_dtype t, uint32_t rank, const int64_t *dims)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < rank; d++) n *= dims[d];
    ot_nd a = over(t, test_malloc((size_t)n + 8), rank, dims);
    bool extreme = fast_random(4) == 0;
    uint32_t least = t == OT_I8 ? 128 : 0;
    for (int64_t i = 0; i < n; i++)
        ((uint8_t *)a.data)[i] = (uint8_t)(extreme ? least + 255 * fast_random(2)
                                                   : fast_random(256));
    return a;
}
#define BYTES(t, ...) \
    bytes_of(t, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static ot_dtype byte_type(void) { return fast_random(2) ? OT_I8 : OT_U8; }

static float scale_number(void) { return (float)(1 + fast_random(2000)) / 5000.0f; }

/* Scales in (0, 0.4]. */
static ot_nd scales_of(uint32_t rank, const int64_t *dims)
{
    ot_nd a = fast_array(OT_F32, rank, dims);
    for (int64_t i = 0; i < fast_count(&a); i++) ((float *)a.data)[i] = scale_number();
    return a;
}

/* ---- the product itself ---- */

typedef struct operands {
    int64_t m, n, k;
    ot_nd a, b, bias, zeros, scales, row_scales, shift;
    bool transposed;
    ot_i8_product p; /* what is asked for */
} operands;

static int64_t sum_of(const operands *o, int64_t i, int64_t j)
{
    int64_t sum = 0, za = o->p.a_zero,
            zb = o->p.job.b_zeros ? o->p.job.b_zeros[j] : o->p.job.b_zero;
    for (int64_t p = 0; p < o->k; p++)
        sum += (ot_nd_int(&o->a, i * o->k + p) - za) *
               (ot_nd_int(&o->b, o->transposed ? j * o->k + p : p * o->n + j) - zb);
    return sum + (o->p.job.out.bias ? o->p.job.out.bias[j] : 0);
}

static void check_sum(const operands *o, int64_t i, int64_t j, const char *to)
{
    const ot_i8_out *out = &o->p.job.out;
    int64_t sum = sum_of(o, i, j);
    float factor = out->scale * (out->scales ? out->scales[j] : 1) *
                   (out->row_scales ? out->row_scales[i] : 1);
    double got = 0, want = 0, near = 0;
    if (out->type == OT_I32) {
        got = ((const int32_t *)(const void *)to)[i * o->n + j];
        want = (double)(int32_t)(uint32_t)sum;
    } else if (out->type == OT_F32) {
        got = (double)((const float *)(const void *)to)[i * o->n + j];
        want = (double)sum * (double)factor + (out->shift ? (double)out->shift[j] : 0);
        near = 1e-6 * (fabs((double)sum * (double)factor) + 2);
    } else {
        bool is_signed = out->type == OT_I8;
        double least = out->most   ? out->least
                       : is_signed ? -128
                                   : 0,
               most = out->most   ? out->most
                      : is_signed ? 127
                                  : 255;
        got = is_signed ? ((const int8_t *)to)[i * o->n + j] : ((const uint8_t *)to)[i * o->n + j];
        double q = (double)sum * (double)factor + (out->shift ? (double)out->shift[j] : 0),
               half = fabs(q - floor(q) - 0.5);
        want = fmax(least,
                    fmin(most, rint(out->shift ? q : (double)((float)sum * factor)) + out->zero));
        near = out->shift && half < 1e-3 ? 1 : 0; /* the float sum may lie on the other side */
    }
    if (!(fabs(got - want) <= near))
        fail_msg("m %d n %d k %d: (%d, %d) is %.9g, not %.9g", (int)o->m, (int)o->n, (int)o->k,
                 (int)i, (int)j, got, want);
}

/* Rows and panels of either way, multiplied in two parts of panels. */
static void multiply_operands(operands *o, char *to)
{
    int64_t step = ot_i8_row_bytes(o->k) + 4 * fast_random(3), panels = (o->n + 15) / 16,
            cut = fast_random((uint32_t)panels + 1);
    char *rows = test_malloc((size_t)(o->m * step) + 64);
    ot_i8_end *ends = test_malloc((size_t)o->m * sizeof *ends + 1);
    ot_i8_job j = o->p.job;
    j.way = (ot_i8_way)fast_random(OT_I8_TILES + 1);
    uint8_t *packed = test_malloc((size_t)ot_i8_packed_size(o->k, o->n) + 1);
    ot_i8_pack(packed, o->b.data,
               &(ot_matrix_layout){o->k, o->n, o->transposed ? 1 : o->n, o->transposed ? o->k : 1},
               j.way, 0, panels);
    memset(rows, 0x55, (size_t)(o->m * step));
    j.m = o->m, j.n = o->n, j.k = o->k, j.rows = rows, j.row_bytes = step, j.panels = packed;
    j.ends = ends;
    bool is_signed = o->a.dtype == OT_I8;
    for (int64_t i = 0; i < o->m; i++)
        ot_i8_row(&j, rows + i * step, (const char *)o->a.data + i * o->k, is_signed, o->p.a_zero,
                  &ends[i]);
    if (ot_i8_reads(&j, is_signed) && fast_random(2)) {
        j.rows = o->a.data;
        j.row_bytes = o->k;
        for (int64_t i = 0; i < o->m; i++)
            ends[i] = ot_i8_end_of((const char *)o->a.data + i * o->k, o->k, is_signed,
                                   o->p.a_zero);
    }
    j.out.to = to;
    j.out.ld = o->n;
    ot_i8_multiply(&j, 0, cut);
    ot_i8_multiply(&j, cut, panels);
    test_free(packed);
    test_free(ends);
    test_free(rows);
}

static void product_of(int64_t m, int64_t n, int64_t k)
{
    const ot_dtype outs[] = {OT_I32, OT_F32, OT_U8, OT_I8};
    operands o = {.m = m, .n = n, .k = k, .transposed = fast_random(2)};
    o.a = BYTES(byte_type(), m, k);
    o.b = BYTES(byte_type(), k, n);
    o.bias = FAST_ARRAY(OT_I32, n);
    o.zeros = FAST_ARRAY(OT_I32, n);
    o.shift = FAST_ARRAY(OT_F32, n);
    o.scales = scales_of(1, &n);
    o.row_scales = scales_of(1, &m);
    for (int64_t j = 0; j < n; j++)
        ((int32_t *)o.zeros.data)[j] = (int32_t)fast_random(256) - (o.b.dtype == OT_I8 ? 128 : 0);
    o.p.a_zero = (int32_t)fast_random(256) - (o.a.dtype == OT_I8 ? 128 : 0);
    ot_i8_job *j = &o.p.job;
    j->b_signed = o.b.dtype == OT_I8;
    j->b_zero = (int32_t)fast_random(3) * 7;
    if (fast_random(2)) j->b_zeros = o.zeros.data;
    j->out = (ot_i8_out){.type = outs[fast_random(4)],
                         .scale = scale_number() / (float)ot_max(k, 1)};
    if (fast_random(2)) j->out.bias = o.bias.data;
    if (fast_random(2)) j->out.scales = o.scales.data;
    if (fast_random(2)) j->out.row_scales = o.row_scales.data;
    if (fast_random(2)) j->out.shift = o.shift.data;
    if (j->out.type != OT_I32 && j->out.type != OT_F32)
        j->out.zero = (int32_t)fast_random(200) - (j->out.type == OT_I8 ? 100 : 0);
    if (fast_random(3) == 0) j->out.least = j->out.zero, j->out.most = j->out.zero + 20;
    char *to = test_malloc((size_t)(m * n) * 4 + 8);
    multiply_operands(&o, to);
    for (int64_t i = 0; i < m; i++)
        for (int64_t c = 0; c < n; c++) check_sum(&o, i, c, to);
    ot_nd *all[] = {&o.a, &o.b, &o.bias, &o.zeros, &o.scales, &o.row_scales, &o.shift};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) test_free(all[i]->data);
    test_free(to);
}

static void products(void **state)
{
    (void)state;
    for (int round = 0; round < 120; round++)
        product_of(1 + fast_random(30), 1 + fast_random(50), 1 + fast_random(60));
    for (int round = 0; round < 40; round++) /* more rows than tiles have, and parts of them */
        product_of(1 + fast_random(130), 1 + fast_random(50), 1 + fast_random(300));
    for (int round = 0; round < 20; round++) /* over nothing */
        product_of(1 + fast_random(130), 1 + fast_random(50), 0);
    for (int round = 0; round < 12; round++) /* more columns than are looked at before rows */
        product_of(97 + fast_random(10), 1000 + fast_random(150), 4);
    product_of(101, 33, 1025);
    product_of(200, 17, 64);
    product_of(2, 5, OT_I8_K_MAX);
    assert_int_equal(ot_i8_packed_size(9, 17), 384);
    assert_int_equal(ot_i8_packed_size(INT64_MAX / 4, 17), -1);
    assert_int_equal(ot_i8_packed_size(INT64_MAX, 1), -1);
}

/* ---- kernels against references ---- */

/* Runs the node with the fast kernel and with the reference; all outputs must be the same bytes. */
static void same_as_reference(fast_run *r, const char *node, uint32_t threads, ot_op_fn reference)
{
    fast_right(r, 21, node, threads);
    fast_run s = {.n_in = r->n_in, .n_out = r->n_out};
    memcpy(s.in, r->in, sizeof s.in);
    if (fast_try(&s, 21, node, 1, reference) != OT_OK) fail_msg("%s: %s", s.what, s.b.d.message);
    for (uint32_t k = 0; k < r->n_out; k++) {
        const ot_nd *got = &r->out[k], *want = &s.out[k];
        assert_true(ot_nd_same_shape(got, want->dtype, want->rank, want->dims));
        for (int64_t i = 0; i < fast_count(want); i++) {
            double g = ot_nd_double(got, i), w = ot_nd_double(want, i);
            if (g != w && !(isnan(g) && isnan(w)))
                fail_msg("%s: output %u, element %d is %.9g, not %.9g", r->what, k, (int)i, g, w);
        }
    }
    fast_end(&s);
    while (r->n_in < FAST_IN && r->in[r->n_in].data) r->n_in++; /* made, but not given */
    fast_close(r);
}

/* Matrices a and b with batches, some broadcast. */
static void random_matrices(ot_nd *a, ot_nd *b, int64_t m, int64_t n, int64_t k)
{
    int64_t da[8], db[8];
    uint32_t ra = fast_random(3), rb = fast_random(3), most = ra > rb ? ra : rb;
    for (uint32_t d = 0; d < most; d++) {
        int64_t size = 1 + fast_random(4);
        if (d + ra >= most) da[d + ra - most] = fast_random(4) ? size : 1;
        if (d + rb >= most) db[d + rb - most] = fast_random(4) ? size : 1;
    }
    da[ra] = m, da[ra + 1] = k, db[rb] = k, db[rb + 1] = n;
    *a = bytes_of(byte_type(), ra + 2, da);
    *b = bytes_of(byte_type(), rb + 2, db);
}

static void matmul_integer(void **state)
{
    (void)state;
    for (int round = 0; round < 120; round++) {
        fast_run r = {.n_in = 2 + fast_random(3), .n_out = 1};
        int64_t m = 1 + fast_random(round % 9 ? 20 : 200), n = 1 + fast_random(70),
                k = 1 + fast_random(40);
        random_matrices(&r.in[0], &r.in[1], m, n, k);
        if (r.n_in > 2) r.in[2] = BYTES(r.in[0].dtype, fast_random(3) ? 1 : m);
        if (r.n_in > 3) r.in[3] = BYTES(r.in[1].dtype, fast_random(2) ? 1 : n);
        const char *nodes[] = {"MatMulInteger(%a, %b)", "MatMulInteger(%a, %b, %c)",
                               "MatMulInteger(%a, %b, %c, %d)"};
        same_as_reference(&r, nodes[r.n_in - 2], round % 2 ? 3 : 1, ot_ref_matmul_integer);
    }
    fast_run vectors = {.n_in = 2, .n_out = 1, .in = {BYTES(OT_U8, 33), BYTES(OT_I8, 33)}};
    same_as_reference(&vectors, "MatMulInteger(%a, %b)", 1, ot_ref_matmul_integer);
    fast_run nothing = {.n_in = 2, .n_out = 1, .in = {BYTES(OT_U8, 3, 0), BYTES(OT_I8, 0, 5)}};
    same_as_reference(&nothing, "MatMulInteger(%a, %b)", 1, ot_ref_matmul_integer);
}

static void qlinear_matmul(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        fast_run r = {.n_in = 8, .n_out = 1};
        int64_t m = 1 + fast_random(round % 9 ? 20 : 200), n = 1 + fast_random(70),
                k = 1 + fast_random(40), one = 1;
        int64_t lines = fast_random(2) ? 1 : n;
        random_matrices(&r.in[0], &r.in[3], m, n, k);
        r.in[1] = scales_of(fast_random(2), &one);
        r.in[2] = BYTES(r.in[0].dtype, 1);
        r.in[4] = scales_of(1, &lines);
        r.in[5] = BYTES(r.in[3].dtype, lines);
        r.in[6] = scales_of(0, NULL);
        ((float *)r.in[6].data)[0] *= (float)k;
        r.in[7] = BYTES(byte_type(), 1);
        same_as_reference(&r, "QLinearMatMul(%a, %b, %c, %d, %e, %f, %g, %h)", round % 2 ? 3 : 1,
                          ot_ref_qlinear_matmul);
    }
}

/* An array of rank 1 to 4 with sizes along `axis` that matter; scale and zero point of one
 * number or of one for each slice. */
static void random_lanes(fast_run *r, ot_dtype x, ot_dtype zero, char *node, size_t size,
                         const char *op)
{
    int64_t dims[4], one = 1;
    uint32_t rank = 1 + fast_random(4), axis = fast_random(rank);
    for (uint32_t d = 0; d < rank; d++) dims[d] = 1 + fast_random(d == axis ? 40 : 9);
    if (fast_random(8) == 0) dims[rank - 1] = 20000;
    bool each = fast_random(2);
    r->in[0] = x == OT_F32 || x == OT_I32 ? fast_array(x, rank, dims) : bytes_of(x, rank, dims);
    r->in[1] = each ? scales_of(1, &dims[axis]) : scales_of(fast_random(2), &one);
    r->in[2] = bytes_of(zero, r->in[1].rank, r->in[1].dims);
    r->n_in = 2 + fast_random(2);
    r->n_out = 1;
    snprintf(node, size, "%s(%%a, %%b%s) {axis=%d}", op, r->n_in == 3 ? ", %c" : "",
             (int)axis - (fast_random(2) ? (int)rank : 0));
}

/* As bytes_of, for 16 bits: dims are those of a. */
static void widen_to_shorts(ot_nd *a, ot_dtype t)
{
    int64_t n = fast_count(a);
    test_free(a->data);
    *a = over(t, test_malloc((size_t)n * 2 + 8), a->rank, a->dims);
    for (int64_t i = 0; i < n; i++) ((uint16_t *)a->data)[i] = (uint16_t)fast_random(65536);
}

static void quantize(void **state)
{
    (void)state;
    const ot_dtype types[] = {OT_U8, OT_I8, OT_U16, OT_I16};
    char node[200];
    for (int round = 0; round < 160; round++) {
        fast_run r = {0};
        ot_dtype t = types[round % 4];
        random_lanes(&r, round % 10 == 9 ? OT_I32 : OT_F32, OT_U8, node, sizeof node,
                     "QuantizeLinear");
        if (t == OT_U16 || t == OT_I16) widen_to_shorts(&r.in[2], t);
        r.in[2].dtype = t;
        float *x = r.in[0].data;
        /* halves, far away, not a number */
        for (int64_t i = 0; r.in[0].dtype == OT_F32 && i < fast_count(&r.in[0]); i++) {
            const float odd[] = {INFINITY, -INFINITY, NAN, 3e38f, -1e-40f, 0.5f};
            if (fast_random(20) == 0)
                x[i] = odd[fast_random(6)];
            else if (fast_random(3) == 0)
                x[i] = ((float)fast_random(300) - 150.5f) * ((float *)r.in[1].data)[0];
        }
        same_as_reference(&r, node, round % 2 ? 3 : 1, ot_ref_quantize_linear);
    }
}

static void dequantize(void **state)
{
    (void)state;
    const ot_dtype types[] = {OT_U8, OT_I8, OT_U16, OT_I16, OT_I32};
    char node[200];
    for (int round = 0; round < 120; round++) {
        fast_run r = {0};
        ot_dtype t = types[round % 5];
        random_lanes(&r, t == OT_I32 ? OT_I32 : OT_U8, OT_U8, node, sizeof node,
                     "DequantizeLinear");
        if (t == OT_U16 || t == OT_I16) widen_to_shorts(&r.in[0], t), widen_to_shorts(&r.in[2], t);
        if (t == OT_I32) {
            ot_nd zero = fast_array(OT_I32, r.in[2].rank, r.in[2].dims);
            test_free(r.in[2].data);
            r.in[2] = zero;
        }
        r.in[0].dtype = r.in[2].dtype = t;
        same_as_reference(&r, node, round % 2 ? 3 : 1, ot_ref_dequantize_linear);
    }
}

static void dynamic(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        fast_run r = {.n_in = 1, .n_out = 3};
        r.in[0] = FAST_ARRAY(OT_F32, 1 + fast_random(30), 1 + fast_random(round % 5 ? 50 : 5000));
        float *x = r.in[0].data, shift = (float)fast_random(9) - 4,
              odd[] = {NAN, INFINITY, -INFINITY, 1e30f};
        for (int64_t i = 0; i < fast_count(&r.in[0]); i++)
            x[i] = round % 20 == 19 ? 0 : x[i] + shift;
        if (round % 6 == 5) x[0] = odd[round / 6 % 4];
        same_as_reference(&r, "DynamicQuantizeLinear(%a)", round % 2 ? 3 : 1,
                          ot_ref_dynamic_quantize_linear);
    }
}

/* ---- com.microsoft, which has no references ---- */

static void to_float(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        fast_run r = {.n_in = 7, .n_out = 1};
        int64_t m = 1 + fast_random(40), n = 1 + fast_random(40), k = 1 + fast_random(40), one = 1,
                lines = round % 2 ? 1 : n;
        r.in[0] = BYTES(byte_type(), m, k);
        r.in[1] = BYTES(byte_type(), k, n);
        r.in[2] = scales_of(1, &one);
        r.in[3] = scales_of(1, &lines);
        r.in[4] = BYTES(r.in[0].dtype, 1);
        r.in[5] = BYTES(r.in[1].dtype, lines);
        r.in[6] = FAST_ARRAY(OT_F32, n);
        fast_right(&r, 17, "\"com.microsoft\"::MatMulIntegerToFloat@1(%a, %b, %c, %d, %e, %f, %g)",
                   1 + (uint32_t)round % 3);
        double *want = test_malloc((size_t)(m * n) * sizeof *want), size = 1;
        for (int64_t i = 0; i < m * n; i++) {
            int64_t j = i % n, at = lines == 1 ? 0 : j, sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += (ot_nd_int(&r.in[0], i / n * k + p) - ot_nd_int(&r.in[4], 0)) *
                       (ot_nd_int(&r.in[1], p * n + j) - ot_nd_int(&r.in[5], at));
            want[i] = (double)sum * ot_nd_double(&r.in[2], 0) * ot_nd_double(&r.in[3], at);
            size = fmax(size, fabs(want[i]));
            want[i] += ot_nd_double(&r.in[6], j);
        }
        fast_same(&r, 0, 2, (int64_t[]){m, n}, want, 1e-6, 1e-6 * size);
        test_free(want);
        fast_close(&r);
    }
}

/* Quantizing and multiplying in one node, or in three. */
static void dynamic_matmul(void **state)
{
    (void)state;
    for (int round = 0; round < 30; round++) {
        fast_run r = {.n_in = 5, .n_out = 1}, q = {.n_in = 1, .n_out = 3},
                 f = {.n_in = 7, .n_out = 1};
        int64_t m = 1 + fast_random(40), n = 1 + fast_random(40), k = 1 + fast_random(40), one = 1,
                lines = round % 2 ? 1 : n;
        r.in[0] = q.in[0] = FAST_ARRAY(OT_F32, m, k);
        r.in[1] = f.in[1] = BYTES(byte_type(), k, n);
        r.in[2] = f.in[3] = round % 2 ? scales_of(fast_random(2), &one) : scales_of(1, &lines);
        r.in[3] = f.in[5] = bytes_of(r.in[1].dtype, r.in[2].rank, r.in[2].dims);
        r.in[4] = f.in[6] = FAST_ARRAY(OT_F32, n);
        fast_right(&r, 17, "\"com.microsoft\"::DynamicQuantizeMatMul@1(%a, %b, %c, %d, %e)",
                   1 + (uint32_t)round % 3);
        fast_right(&q, 17, "DynamicQuantizeLinear(%a)", 1);
        f.in[0] = q.out[0], f.in[2] = q.out[1], f.in[4] = q.out[2];
        fast_right(&f, 17, "\"com.microsoft\"::MatMulIntegerToFloat@1(%a, %b, %c, %d, %e, %f, %g)",
                   1);
        assert_memory_equal(r.out[0].data, f.out[0].data, (size_t)(m * n) * 4);
        fast_end(&f);
        fast_end(&q);
        fast_close(&r);
    }
}

static void qgemm(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        fast_run r = {.n_in = round % 3 ? 9 : 7, .n_out = 1};
        bool ta = fast_random(2), tb = fast_random(2);
        int64_t m = 1 + fast_random(30), n = 1 + fast_random(40), k = 1 + fast_random(40), one = 1,
                lines = round % 2 ? 1 : n;
        char node[300];
        r.in[0] = BYTES(byte_type(), ta ? k : m, ta ? m : k);
        r.in[1] = scales_of(0, NULL);
        r.in[2] = BYTES(r.in[0].dtype, 1);
        r.in[3] = BYTES(byte_type(), tb ? n : k, tb ? k : n);
        r.in[4] = scales_of(1, &lines);
        r.in[5] = BYTES(r.in[3].dtype, lines);
        r.in[6] = FAST_ARRAY(OT_I32, n);
        r.in[7] = scales_of(1, &one);
        r.in[8] = BYTES(byte_type(), 1);
        snprintf(node, sizeof node,
                 "\"com.microsoft\"::QGemm@1(%%a, %%b, %%c, %%d, %%e, %%f, %%g%s) {transA=%d, "
                 "transB=%d, alpha=0.5}",
                 r.n_in == 9 ? ", %h, %i" : "", ta, tb);
        fast_right(&r, 17, node, 1 + (uint32_t)round % 3);
        double *want = test_malloc((size_t)(m * n) * sizeof *want), size = 1;
        for (int64_t i = 0; i < m * n; i++) {
            int64_t j = i % n, at = lines == 1 ? 0 : j, sum = ot_nd_int(&r.in[6], j);
            for (int64_t p = 0; p < k; p++)
                sum += (ot_nd_int(&r.in[0], ta ? p * m + i / n : i / n * k + p) -
                        ot_nd_int(&r.in[2], 0)) *
                       (ot_nd_int(&r.in[3], tb ? j * k + p : p * n + j) - ot_nd_int(&r.in[5], at));
            float over = r.n_in == 9 ? ((float *)r.in[7].data)[0] : 1;
            float by = 0.5f * ((float *)r.in[1].data)[0] * ((float *)r.in[4].data)[at] / over;
            want[i] = (double)sum * (double)by;
            size = fmax(size, fabs(want[i]));
            double lo = r.in[8].dtype == OT_I8 ? -128 : 0;
            if (r.n_in == 9)
                want[i] = fmin(lo + 255, fmax(lo, rint((double)((float)sum * by)) +
                                                      ot_nd_double(&r.in[8], 0)));
        }
        fast_same(&r, 0, 2, (int64_t[]){m, n}, want, 1e-6, r.n_in == 9 ? 0 : 1e-6 * size);
        test_free(want);
        r.n_in = 9;
        fast_close(&r);
    }
}

/* ---- constants: packed at the first run, used by the second ---- */

static void constant_operand(void **state)
{
    (void)state;
    enum { DEPTH = 19, WIDTH = 37 };
    bench b;
    char text[8000];
    int8_t w[DEPTH * WIDTH];
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "input %%a : uint8[?,%d]\ninit %%b : int8[%d,%d] = [", DEPTH,
                                 DEPTH, WIDTH);
    for (int i = 0; i < DEPTH * WIDTH; i++) {
        w[i] = (int8_t)((int)fast_random(256) - 128);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", i ? ", " : "", w[i]);
    }
    snprintf(text + at, sizeof text - at, "]\n%%y = MatMulInteger(%%a, %%b)\noutput %%y\n");
    open_text(&b, text);
    for (int64_t m = 1; m < 30; m += 7) {
        ot_nd a = BYTES(OT_U8, m, DEPTH), y = {0};
        run_ok(&b, &a, &y);
        for (int64_t i = 0; i < m * WIDTH; i++) {
            int64_t sum = 0;
            for (int64_t p = 0; p < DEPTH; p++)
                sum += ot_nd_int(&a, i / WIDTH * DEPTH + p) * w[p * WIDTH + i % WIDTH];
            assert_int_equal(ot_nd_int(&y, i), sum);
        }
        test_free(a.data);
    }
    close_bench(&b);
}

/* ---- fused ---- */

enum { ROWS = 7, K = 18, N = 21 };

/* "init %name : type[dims] = [n numbers of [least, least + below)]" */
static size_t put_ints(char *to, size_t size, const char *name, const char *type, const char *dims,
                       int n, int least, uint32_t below)
{
    size_t at = (size_t)snprintf(to, size, "init %%%s : %s[%s] = [", name, type, dims);
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(to + at, size - at, "%s%d", i ? ", " : "",
                               least + (int)fast_random(below));
    return at + (size_t)snprintf(to + at, size - at, "]\n");
}

static size_t put_floats(char *to, size_t size, const char *name, const char *dims, int n,
                         float least, float by)
{
    size_t at = (size_t)snprintf(to, size, "init %%%s : float32[%s] = [", name, dims);
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(to + at, size - at, "%s%.9g", i ? ", " : "",
                               (double)(least + by * (float)(1 + fast_random(1000))));
    return at + (size_t)snprintf(to + at, size - at, "]\n");
}

/* Weights w [K, N] or [N, K], scale ws, zero point wz (one, or one a column), bias; scale and
 * zero point of a, and of y. */
static size_t put_constants(char *to, size_t size, bool by_column, bool transposed)
{
    char lines[20], dims[20];
    snprintf(lines, sizeof lines, "%s", by_column ? "21" : "");
    snprintf(dims, sizeof dims, "%d,%d", transposed ? N : K, transposed ? K : N);
    size_t at = put_ints(to, size, "w", "int8", dims, K * N, -128, 256);
    at += put_ints(to + at, size - at, "wz", "int8", lines, by_column ? N : 1, -9, 20);
    at += put_floats(to + at, size - at, "ws", lines, by_column ? N : 1, 0.001f, 1e-5f);
    at += put_floats(to + at, size - at, "bias", "21", N, -2.0f, 0.004f);
    at += put_floats(to + at, size - at, "as", "", 1, 0.01f, 1e-5f);
    at += put_ints(to + at, size - at, "az", "uint8", "", 1, 100, 50);
    at += put_floats(to + at, size - at, "ys", "", 1, 0.05f, 1e-4f);
    return at + put_ints(to + at, size - at, "yz", "uint8", "", 1, 100, 50);
}

/* The graph with references and fused: `steps` steps, the same output within `near`. */
static void same_fused(const char *text, uint32_t steps, double near)
{
    assert_same_groups(text);
    for (uint32_t threads = 1; threads < 4; threads += 2) {
        bench slow, fast;
        open_with(&slow, text, (ot_session_options){.reference = true});
        open_with(&fast, text, (ot_session_options){.threads = threads});
        if (slow.status != OT_OK || fast.status != OT_OK)
            fail_msg("%s%s", slow.d.message, fast.d.message);
        if (fast.s->top->n_steps != steps)
            fail_msg("%u steps, not %u: %s", fast.s->top->n_steps, steps, strstr(text, "%y"));
        ot_nd a = FAST_ARRAY(OT_F32, 2, ROWS, K), want = {0}, got = {0};
        const ot_value *x = ot_session_input(slow.s, 0);
        if (x->rank == 2)
            a.rank = 2, a.dims[0] = ROWS, a.dims[1] = K, a.strides[0] = K, a.strides[1] = 1;
        run_ok(&slow, &a, &want);
        run_ok(&fast, &a, &got);
        got = (ot_nd){0};
        run_ok(&fast, &a, &got); /* again: nothing of the first run is left */
        assert_true(ot_nd_same_shape(&got, want.dtype, want.rank, want.dims));
        for (int64_t i = 0; i < fast_count(&want); i++)
            if (!(fabs(ot_nd_double(&got, i) - ot_nd_double(&want, i)) <= near))
                fail_msg("element %d is %.9g, not %.9g: %s", (int)i, ot_nd_double(&got, i),
                         ot_nd_double(&want, i), strstr(text, "%y"));
        test_free(a.data);
        close_bench(&slow);
        close_bench(&fast);
    }
}

static void fused_dynamic(void **state)
{
    (void)state;
    char text[16000];
    for (int round = 0; round < 4; round++) {
        size_t at = (size_t)snprintf(text, sizeof text, "input %%x : float32[2,%d,%d]\n", ROWS, K);
        at += put_constants(text + at, sizeof text - at, round % 2, false);
        snprintf(
            text + at, sizeof text - at,
            "%%q, %%s, %%z = DynamicQuantizeLinear(%%x)\n%%f = Mul(%s)\n%%i = MatMulInteger(%%q, "
            "%%w, %%z, %%wz)\n"
            "%%c = Cast(%%i) {to=1}\n%%m = Mul(%%c, %%f)\n%%y = Add(%%bias, %%m)\noutput %%y\n",
            round < 2 ? "%s, %ws" : "%ws, %s");
        same_fused(text, 2, 2e-5);
    }
}

static void fused_static(void **state)
{
    (void)state;
    char text[16000];
    const struct {
        const char *nodes;
        bool transposed;
        uint32_t steps;
        double near;
    } cases[] = {
        {"%y = MatMul(%a, %b)\n", false, 2, 1e-4},
        {"%m = MatMul(%a, %b)\n%y = Add(%m, %bias)\n", false, 2, 1e-4},
        {"%m = MatMul(%a, %b)\n%n = Add(%m, %bias)\n%y = QuantizeLinear(%n, %ys, %yz)\n", false, 2,
         1},
        {"%m = MatMul(%a, %b)\n%n = Relu(%m)\n%y = QuantizeLinear(%n, %ys, %yz)\n", false, 2, 1},
        {"%m = Gemm(%a, %b, %bias) {alpha=1.5, beta=0.5, transB=1}\n%y = QuantizeLinear(%m, %ys, "
         "%yz)\n",
         true, 2, 1},
        {"%m = MatMul(%a, %b)\n%n = Neg(%a)\n%y = Concat(%n, %m) {axis=-1}\n", false, 4, 1e-4},
    };
    for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
        bool each = k % 2, transposed = cases[k / 2].transposed;
        size_t at = (size_t)snprintf(text, sizeof text, "input %%x : float32[%d,%d]\n", ROWS, K);
        at += put_constants(text + at, sizeof text - at, each, transposed);
        snprintf(text + at, sizeof text - at,
                 "%%q = QuantizeLinear(%%x, %%as, %%az)\n%%a = DequantizeLinear(%%q, %%as, %%az)\n"
                 "%%b = DequantizeLinear(%%w, %%ws, %%wz) {axis=%d}\n%soutput %%y\n",
                 transposed ? 0 : 1, cases[k / 2].nodes);
        same_fused(text, cases[k / 2].steps, cases[k / 2].near);
    }
}

/* Both operands are computed; and operators on bytes with constant weights. */
static void fused_others(void **state)
{
    (void)state;
    char text[16000];
    const char *nodes[] = {
        ("%t = Transpose(%q) {perm=[0, 2, 1]}\n%b = DequantizeLinear(%t, %as, %az)\n%m = "
         "MatMul(%a, %b)\n"
         "%y = QuantizeLinear(%m, %ys, %yz)\n"),
        "%y = QLinearMatMul(%q, %as, %az, %w, %ws, %wz, %ys, %yz)\n",
        "%y = MatMulInteger(%q, %w, %az, %wz)\n",
    };
    const uint32_t steps[] = {3, 2, 2};
    for (int k = 0; k < 3; k++) {
        size_t at = (size_t)snprintf(text, sizeof text, "input %%x : float32[2,%d,%d]\n", ROWS, K);
        at += put_constants(text + at, sizeof text - at, k > 0, false);
        snprintf(text + at, sizeof text - at,
                 "%%q = QuantizeLinear(%%x, %%as, %%az)\n%s%soutput %%y\n",
                 k == 0 ? "%a = DequantizeLinear(%q, %as, %az)\n" : "", nodes[k]);
        same_fused(text, steps[k], k == 0 ? 1 : 0);
    }
}

/* Operands that the kernels refuse, they refuse in a line. */
static void refused(void **state)
{
    (void)state;
    fast_run r = {.n_in = 2, .n_out = 1, .in = {BYTES(OT_U8, 3, 4), BYTES(OT_I8, 5, 2)}};
    assert_int_equal(fast_try(&r, 17, "MatMulInteger(%a, %b)", 1, NULL), OT_E_INPUT);
    fast_close(&r);
    fast_run s = {.n_in = 3,
                  .n_out = 1,
                  .in = {FAST_ARRAY(OT_F32, 3, 4), BYTES(OT_I8, 4, 2), FAST_ARRAY(OT_F32, 3)}};
    assert_int_equal(
        fast_try(&s, 17, "\"com.microsoft\"::DynamicQuantizeMatMul@1(%a, %b, %c)", 1, NULL),
        OT_E_INPUT);
    fast_close(&s);
}

int main(void)
{
    const char *seed = getenv("OT_SEED");
    if (seed) fast_state = strtoull(seed, NULL, 10);
    printf("seed %llu\n", (unsigned long long)fast_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),       cmocka_unit_test(matmul_integer),
        cmocka_unit_test(qlinear_matmul), cmocka_unit_test(quantize),
        cmocka_unit_test(dequantize),     cmocka_unit_test(dynamic),
        cmocka_unit_test(to_float),       cmocka_unit_test(dynamic_matmul),
        cmocka_unit_test(qgemm),          cmocka_unit_test(constant_operand),
        cmocka_unit_test(fused_dynamic),  cmocka_unit_test(fused_static),
        cmocka_unit_test(fused_others),   cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
