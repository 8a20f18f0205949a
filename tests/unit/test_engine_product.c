/* Fast matrix products against sums in double: shapes, broadcasts, transposes, strides,
 * constants, threads. */
#include "fast_check.h"

#include "engine/cpu/product/fast_product.h"

/* ---- packed panels ---- */

static void panels_of(int64_t m, int64_t n, int64_t k, bool transposed, bool add, float alpha)
{
    int64_t lda = k + 3, ldb = (transposed ? k : n) + 5, ldc = n + 2;
    float *a = test_malloc((size_t)(m * lda + 1) * 4),
          *b = test_malloc((size_t)((k + n) * (ldb + n + k) + 1) * 4),
          *c = test_malloc((size_t)(m * ldc) * 4 + 4),
          *old = test_malloc((size_t)(m * ldc) * 4 + 4),
          *panels = test_malloc((size_t)ot_panels_size(k, n) * 4 + 4);
    for (int64_t i = 0; i < m * lda; i++) a[i] = fast_number();
    for (int64_t i = 0; i < (transposed ? n : k) * ldb; i++) b[i] = fast_number();
    for (int64_t i = 0; i < m * ldc; i++) old[i] = c[i] = fast_number();
    int64_t row = transposed ? 1 : ldb, column = transposed ? ldb : 1,
            all = (n + OT_PANEL - 1) / OT_PANEL;
    ot_panels_pack(panels, b, &(ot_matrix_layout){k, n, row, column}, 0, all / 2);
    ot_panels_pack(panels, b, &(ot_matrix_layout){k, n, row, column}, all / 2, all);
    ot_panels_job j = {m, n, k, lda, ldc, a, panels, c, alpha, add};
    ot_panels_product(&j, 0, all / 3);
    ot_panels_product(&j, all / 3, all);
    for (int64_t i = 0; i < m * ldc; i++) {
        double want = (double)old[i], size = 1;
        if (i % ldc < n) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += (double)a[i / ldc * lda + p] * (double)b[p * row + i % ldc * column];
            for (int64_t p = 0; p < k; p++)
                size += fabs((double)a[i / ldc * lda + p] * (double)b[p * row + i % ldc * column]);
            want = (double)alpha * sum + (add ? want : 0);
        }
        if (!(fabs((double)c[i] - want) <= 1e-6 * size))
            fail_msg("m %d n %d k %d: element %d is %.9g, not %.9g", (int)m, (int)n, (int)k, (int)i,
                     (double)c[i], want);
    }
    test_free(a);
    test_free(b);
    test_free(c);
    test_free(old);
    test_free(panels);
}

static void panels(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++)
        panels_of(1 + fast_random(30), 1 + fast_random(70), 1 + fast_random(60), fast_random(2),
                  fast_random(2), fast_random(2) ? 1.0f : -0.75f);
    panels_of(130, 40, 700, false, false, 1);
    panels_of(101, 33, 650, true, true, 2);
    assert_int_equal(ot_panels_size(10, 17), 320);
    assert_int_equal(ot_panels_size(INT64_MAX / 4, 17), -1);
}

/* ---- MatMul ---- */

/* Index in an operand of rank `rank` (of which the last `own` dims are set aside) for position
 * pos of the batch. */
static int64_t batch_base(const ot_nd *a, uint32_t own, uint32_t batch_rank, const int64_t *pos)
{
    int64_t at = 0;
    for (uint32_t d = 0; d + own < a->rank; d++) {
        int64_t p = pos[batch_rank - (a->rank - own) + d];
        at += (a->dims[d] == 1 ? 0 : p) * a->strides[d];
    }
    return at;
}

/* alpha * a * b by definition, for operands of any rank and strides. */
static double *product_of(const ot_nd *a, const ot_nd *b, double alpha, uint32_t *rank,
                          int64_t *dims, double *size)
{
    uint32_t own_a = a->rank > 1 ? 2 : 1, own_b = b->rank > 1 ? 2 : 1, ra = a->rank - own_a,
             rb = b->rank - own_b, r = ra > rb ? ra : rb;
    int64_t k = a->dims[a->rank - 1], m = own_a == 2 ? a->dims[a->rank - 2] : 1,
            n = own_b == 2 ? b->dims[b->rank - 1] : 1, count = 1;
    for (uint32_t d = 0; d < r; d++) {
        int64_t da = d + ra >= r ? a->dims[d + ra - r] : 1,
                db = d + rb >= r ? b->dims[d + rb - r] : 1;
        dims[d] = da == 1 ? db : da;
        count *= dims[d];
    }
    *rank = r;
    if (own_a == 2) dims[(*rank)++] = m;
    if (own_b == 2) dims[(*rank)++] = n;
    double *y = test_malloc((size_t)(count * m * n) * sizeof *y + 8);
    int64_t a_row = own_a == 2 ? a->strides[a->rank - 2] : 0, a_column = a->strides[a->rank - 1];
    int64_t b_row = b->strides[own_b == 2 ? b->rank - 2 : 0],
            b_column = own_b == 2 ? b->strides[b->rank - 1] : 0;
    *size = 1;
    for (int64_t i = 0; i < count * m * n; i++) {
        int64_t pos[OT_RANK_MAX], rest = i / (m * n);
        for (uint32_t d = r; d-- > 0; rest /= dims[d]) pos[d] = rest % dims[d];
        const float *x = (const float *)a->data + batch_base(a, own_a, r, pos) + i / n % m * a_row;
        const float *z = (const float *)b->data + batch_base(b, own_b, r, pos) + i % n * b_column;
        double sum = 0, sizes = 0;
        for (int64_t p = 0; p < k; p++) sum += (double)x[p * a_column] * (double)z[p * b_row];
        for (int64_t p = 0; p < k; p++)
            sizes += fabs((double)x[p * a_column] * (double)z[p * b_row]);
        y[i] = alpha * sum;
        *size = fmax(*size, sizes);
    }
    return y;
}

static void check_product(fast_run *r, const ot_nd *a, const ot_nd *b, double alpha)
{
    uint32_t rank;
    int64_t dims[OT_RANK_MAX];
    double size, *want = product_of(a, b, alpha, &rank, dims, &size);
    fast_same(r, 0, rank, dims, want, 1e-6, 5e-7 * size * fabs(alpha));
    test_free(want);
}

/* Operands of a product with batches of `ra` and `rb` axes, some broadcast. */
static void random_operands(fast_run *r, uint32_t ra, uint32_t rb, int64_t m, int64_t n, int64_t k)
{
    int64_t a[8], b[8];
    uint32_t most = ra > rb ? ra : rb;
    for (uint32_t d = 0; d < most; d++) {
        int64_t size = 1 + fast_random(4);
        if (d + ra >= most) a[d + ra - most] = fast_random(4) ? size : 1;
        if (d + rb >= most) b[d + rb - most] = fast_random(4) ? size : 1;
    }
    a[ra] = m;
    a[ra + 1] = k;
    b[rb] = k;
    b[rb + 1] = n;
    r->in[0] = fast_array(OT_F32, ra + 2, a);
    r->in[1] = fast_array(OT_F32, rb + 2, b);
    r->n_in = 2;
    r->n_out = 1;
}

static void matmul(void **state)
{
    (void)state;
    for (int round = 0; round < 80; round++) {
        fast_run r = {0};
        int64_t m = fast_random(3) ? 1 + fast_random(40) : 1,
                n = fast_random(3) ? 1 + fast_random(40) : 1, k = 1 + fast_random(50);
        random_operands(&r, fast_random(4), fast_random(4), m, n, k);
        fast_right(&r, 13, "MatMul(%a, %b)", fast_random(2) ? 3 : 1);
        check_product(&r, &r.in[0], &r.in[1], 1);
        fast_close(&r);
    }
}

static void matmul_of_vectors(void **state)
{
    (void)state;
    const struct {
        uint32_t ra, rb;
        int64_t a[3], b[3];
    } cases[] = {
        {1, 1, {700}, {700}},         {1, 2, {30}, {30, 50}},       {2, 1, {50, 1200}, {1200}},
        {1, 3, {7}, {4, 7, 9}},       {3, 1, {3, 5, 7}, {7}},       {2, 2, {1, 600}, {600, 90}},
        {3, 2, {9, 1, 31}, {31, 17}}, {3, 3, {2, 1, 9}, {2, 9, 1}}, {2, 2, {0, 3}, {3, 4}},
        {2, 2, {3, 0}, {0, 4}},       {3, 2, {2, 3, 4}, {4, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fast_run r = {.n_in = 2, .n_out = 1};
        r.in[0] = fast_array(OT_F32, cases[i].ra, cases[i].a);
        r.in[1] = fast_array(OT_F32, cases[i].rb, cases[i].b);
        fast_right(&r, 13, "MatMul(%a, %b)", i % 2 ? 3 : 1);
        check_product(&r, &r.in[0], &r.in[1], 1);
        fast_close(&r);
    }
}

/* Large enough for several threads to share one product, by rows and by columns. */
static void matmul_shared(void **state)
{
    (void)state;
    const int64_t sizes[][3] = {
        {300, 40, 90}, {20, 500, 90}, {1, 700, 300}, {700, 1, 300}, {200, 200, 50}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fast_run r = {0};
        random_operands(&r, 0, 0, sizes[i][0], sizes[i][1], sizes[i][2]);
        fast_right(&r, 13, "MatMul(%a, %b)", 3);
        check_product(&r, &r.in[0], &r.in[1], 1);
        fast_close(&r);
    }
}

/* Arrays that the next kernel sees in place of those that the session passes. */
static ot_nd seen[2];

static ot_status matmul_of_seen(ot_call *c)
{
    const ot_nd *in[2] = {&seen[0], &seen[1]};
    ot_call inner = *c;
    inner.in = in;
    return ot_fast_matmul(&inner);
}

/* A window of `a`, its last two axes exchanged or its batch axes reversed. */
static ot_nd window_of(const ot_nd *a, bool exchanged)
{
    ot_nd w = *a;
    uint32_t r = w.rank;
    for (uint32_t d = 0; d < r; d++) {
        int64_t skip = w.dims[d] > 2 ? fast_random(2) : 0;
        w.data = (float *)w.data + skip * w.strides[d];
        w.dims[d] -= skip;
        if (d == 0 && w.dims[0] > 2) w.dims[0] -= 1;
    }
    if (exchanged) {
        int64_t d = w.dims[r - 1], s = w.strides[r - 1];
        w.dims[r - 1] = w.dims[r - 2];
        w.strides[r - 1] = w.strides[r - 2];
        w.dims[r - 2] = d;
        w.strides[r - 2] = s;
    }
    return w;
}

static void matmul_of_strided(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        fast_run r = {.n_in = 2, .n_out = 1};
        int64_t m = 3 + fast_random(20), n = 3 + fast_random(20), k = 3 + fast_random(20),
                batch = 1 + fast_random(4);
        r.in[0] = FAST_ARRAY(OT_F32, batch, 4, m, k);
        seen[0] = window_of(&r.in[0], fast_random(2));
        k = seen[0].dims[3];
        bool exchanged = fast_random(2);
        int64_t rows = exchanged ? n : k, columns = exchanged ? k : n;
        r.in[1] = FAST_ARRAY(OT_F32, rows + 2, columns + 2);
        seen[1] = r.in[1];
        seen[1].dims[0] = rows;
        seen[1].dims[1] = columns;
        if (exchanged) {
            seen[1].dims[0] = columns;
            seen[1].dims[1] = rows;
            seen[1].strides[0] = 1;
            seen[1].strides[1] = columns + 2;
        }
        if (fast_try(&r, 13, "MatMul(%a, %b)", round % 2 ? 3 : 1, matmul_of_seen) != OT_OK)
            fail_msg("%s", r.b.d.message);
        check_product(&r, &seen[0], &seen[1], 1);
        fast_close(&r);
    }
}

/* ---- FusedMatMul, Gemm ---- */

static ot_nd exchanged_view(const ot_nd *a, bool exchange)
{
    ot_nd w = *a;
    if (exchange) {
        w.dims[w.rank - 1] = a->dims[w.rank - 2];
        w.dims[w.rank - 2] = a->dims[w.rank - 1];
        w.strides[w.rank - 1] = a->strides[w.rank - 2];
        w.strides[w.rank - 2] = a->strides[w.rank - 1];
    }
    return w;
}

static void fused_matmul(void **state)
{
    (void)state;
    for (int round = 0; round < 24; round++) {
        fast_run r = {.n_in = 2, .n_out = 1};
        bool ta = fast_random(2), tb = fast_random(2);
        int64_t m = 1 + fast_random(30), n = 1 + fast_random(30), k = 1 + fast_random(30),
                batch = 1 + fast_random(3);
        char node[200];
        r.in[0] = FAST_ARRAY(OT_F32, batch, ta ? k : m, ta ? m : k);
        r.in[1] = FAST_ARRAY(OT_F32, 1, tb ? n : k, tb ? k : n);
        snprintf(node, sizeof node,
                 "\"com.microsoft\"::FusedMatMul@1(%%a, %%b) {transA=%d, transB=%d, alpha=0.5}", ta,
                 tb);
        fast_right(&r, 17, node, 1);
        ot_nd a = exchanged_view(&r.in[0], ta), b = exchanged_view(&r.in[1], tb);
        check_product(&r, &a, &b, 0.5);
        fast_close(&r);
    }
}

static void gemm(void **state)
{
    (void)state;
    const int64_t bias_rows[] = {1, 0, 1, 0}, bias_columns[] = {0, 1, 1, 0}; /* 1: broadcast */
    for (int round = 0; round < 48; round++) {
        fast_run r = {.n_in = round % 6 == 5 ? 2 : 3, .n_out = 1};
        bool ta = fast_random(2), tb = fast_random(2);
        int64_t m = 1 + fast_random(30), n = 1 + fast_random(30), k = 1 + fast_random(30);
        int64_t bias[2] = {bias_rows[round % 4] ? 1 : m, bias_columns[round % 4] ? 1 : n};
        uint32_t bias_rank = round % 8 == 0 ? 1 : round % 8 == 2 ? 0 : 2;
        char node[200];
        r.in[0] = FAST_ARRAY(OT_F32, ta ? k : m, ta ? m : k);
        r.in[1] = FAST_ARRAY(OT_F32, tb ? n : k, tb ? k : n);
        r.in[2] = fast_array(OT_F32, bias_rank, bias + 2 - bias_rank);
        snprintf(node, sizeof node, "Gemm(%%a, %%b%s) {transA=%d, transB=%d, alpha=1.5, beta=-0.5}",
                 r.n_in == 3 ? ", %c" : "", ta, tb);
        fast_right(&r, 13, node, round % 3 ? 1 : 3);
        ot_nd a = exchanged_view(&r.in[0], ta), b = exchanged_view(&r.in[1], tb);
        uint32_t rank;
        int64_t dims[OT_RANK_MAX];
        double size, *want = product_of(&a, &b, 1.5, &rank, dims, &size);
        for (int64_t i = 0; r.n_in == 3 && i < m * n; i++) {
            int64_t columns = bias_rank ? bias[1] : 1,
                    row = bias_rank < 2 || bias[0] == 1 ? 0 : i / n;
            want[i] += -0.5 *
                       (double)((float *)r.in[2].data)[row * columns + (columns == 1 ? 0 : i % n)];
        }
        fast_same(&r, 0, 2, dims, want, 1e-6, 1e-6 * size);
        test_free(want);
        r.n_in = 3;
        fast_close(&r);
    }
}

/* ---- constants: packed at the first run, used by the second ---- */

static void constant_operand(void **state)
{
    (void)state;
    char text[15000];
    enum { M = 13, K = 20, N = 37 };
    float a[M * K], b[K * N];
    size_t at = (size_t)snprintf(
        text, sizeof text, "input %%a : float32[%d,%d]\ninit %%b : float32[%d,%d] = [", M, K, K, N);
    for (int i = 0; i < K * N; i++) {
        b[i] = (float)(int)fast_random(65) / 16.0f - 2.0f;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.9g", i ? ", " : "", (double)b[i]);
    }
    snprintf(text + at, sizeof text - at, "]\n%%y : float32 = MatMul(%%a, %%b)\noutput %%y");
    bench bn;
    open_with(&bn, text, (ot_session_options){.threads = 2, .reference = true});
    assert_int_equal(bn.status, OT_OK);
    bn.s->top->steps[0].run = ot_fast_matmul;
    for (int round = 0; round < 3; round++) {
        double want[M * N];
        ot_nd in = F32S(a, M, K), out = {0};
        for (int i = 0; i < M * K; i++) a[i] = fast_number();
        for (int i = 0; i < M * N; i++) {
            want[i] = 0;
            for (int p = 0; p < K; p++)
                want[i] += (double)a[i / N * K + p] * (double)b[p * N + i % N];
        }
        run_ok(&bn, &in, &out);
        for (int i = 0; i < M * N; i++)
            if (!(fabs((double)((float *)out.data)[i] - want[i]) <= 1e-5))
                fail_msg("element %d of round %d", i, round);
    }
    if (ot_panels_pay()) assert_non_null(bn.s->top->steps[0].state.data);
    close_bench(&bn);
}

/* ---- attention ---- */

/* y[i] = sum over j of softmax(scale * q[i] . k[j] + bias[j]) * v[j]. Elements are `step` apart
 * per position. */
static void attend_one(const double *q, const double *k, const double *v, int64_t total,
                       int64_t step, int64_t size, double scale, const double *bias, double *y)
{
    double row[200], most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < total; j++) {
        row[j] = bias[j];
        for (int64_t d = 0; d < size; d++) row[j] += scale * q[d] * k[j * step + d];
        most = fmax(most, row[j]);
    }
    for (int64_t j = 0; j < total; j++) sum += row[j] = most == -INFINITY ? 0 : exp(row[j] - most);
    for (int64_t d = 0; d < size; d++) y[d] = 0;
    for (int64_t j = 0; j < total && sum > 0; j++)
        for (int64_t d = 0; d < size; d++) y[d] += row[j] / sum * v[j * step + d];
}

static void attention(void **state)
{
    (void)state;
    for (int round = 0; round < 24; round++) {
        int64_t batch = 1 + fast_random(2), kv = 1 + fast_random(2),
                heads = kv * (1 + fast_random(2)), length = 1 + fast_random(150),
                total = 1 + fast_random(150), size = 1 + fast_random(20);
        int mask = round % 3; /* none, float for all heads, bool for each sample */
        bool causal = round % 4 == 3, flat = round % 2;
        char node[200];
        fast_run r = {.n_in = mask ? 4 : 3, .n_out = 1};
        r.in[0] = flat ? FAST_ARRAY(OT_F32, batch, length, heads * size)
                       : FAST_ARRAY(OT_F32, batch, heads, length, size);
        for (int i = 1; i < 3; i++)
            r.in[i] = flat ? FAST_ARRAY(OT_F32, batch, total, kv * size)
                           : FAST_ARRAY(OT_F32, batch, kv, total, size);
        r.in[3] = mask == 1 ? FAST_ARRAY(OT_F32, length, total)
                            : FAST_ARRAY(OT_I64, batch, 1, 1, total);
        if (mask == 2) {
            r.in[3].dtype = OT_BOOL;
            for (int64_t i = 0; i < batch * total; i++)
                ((uint8_t *)r.in[3].data)[i] = fast_random(3) != 0;
        }
        if (mask == 1) /* a query that sees nothing */
            for (int64_t j = 0; j < total; j++) ((float *)r.in[3].data)[j] = -INFINITY;
        /* rank 4 does without the numbers of heads */
        snprintf(node, sizeof node,
                 flat ? "Attention(%%a, %%b, %%c%s) {is_causal=%d, q_num_heads=%d, kv_num_heads=%d}"
                      : "Attention(%%a, %%b, %%c%s) {is_causal=%d}",
                 mask ? ", %d" : "", causal, (int)heads, (int)kv);
        fast_right(&r, 23, node, round % 5 ? 1 : 3);
        double *q = fast_doubles(&r.in[0]), *k = fast_doubles(&r.in[1]),
               *v = fast_doubles(&r.in[2]), *y = fast_doubles(&r.in[0]);
        for (int64_t o = 0; o < batch * heads * length; o++) {
            int64_t i = o % length, h = o / length % heads, b = o / length / heads,
                    g = h / (heads / kv);
            double bias[200];
            for (int64_t j = 0; j < total; j++) {
                bias[j] = mask == 1 ? (double)((float *)r.in[3].data)[i * total + j] : 0;
                if (mask == 2 && !((uint8_t *)r.in[3].data)[b * total + j]) bias[j] = -INFINITY;
                if (causal && j > i) bias[j] = -INFINITY;
            }
            int64_t at = flat ? ((b * length + i) * heads + h) * size : o * size,
                    step = flat ? kv * size : size;
            int64_t from = flat ? (b * total * kv + g) * size : (b * kv + g) * total * size;
            attend_one(q + at, k + from, v + from, total, step, size, 1 / sqrt((double)size), bias,
                       y + at);
        }
        fast_same(&r, 0, r.in[0].rank, r.in[0].dims, y, 1e-5, 5e-6);
        test_free(q);
        test_free(k);
        test_free(v);
        test_free(y);
        r.n_in = 4;
        fast_close(&r);
    }
}

static void projected_attention(void **state)
{
    (void)state;
    for (int round = 0; round < 16; round++) {
        int64_t batch = 1 + fast_random(2), heads = 1 + fast_random(3),
                length = 1 + fast_random(80), size = 1 + fast_random(9), inner = 7,
                width = heads * size;
        int mask = round % 4; /* none, keys of each sample, which keys, which pairs */
        bool causal = round % 3 == 2;
        char node[200];
        fast_run r = {.n_in = mask ? 4 : 3, .n_out = 1};
        r.in[0] = FAST_ARRAY(OT_F32, batch, length, inner);
        r.in[1] = FAST_ARRAY(OT_F32, inner, 3 * width);
        r.in[2] = FAST_ARRAY(OT_F32, 3 * width);
        r.in[3] = mask == 1   ? FAST_ARRAY(OT_I32, batch)
                  : mask == 2 ? FAST_ARRAY(OT_I32, batch, length)
                              : FAST_ARRAY(OT_I32, batch, length, length);
        int32_t *m = r.in[3].data;
        for (int64_t i = 0; i < fast_count(&r.in[3]); i++)
            m[i] = mask == 1 ? 1 + (int32_t)fast_random((uint32_t)length) : (int32_t)fast_random(2);
        snprintf(node, sizeof node,
                 "\"com.microsoft\"::Attention@1(%%a, %%b, %%c%s) {num_heads=%d, "
                 "unidirectional=%d, mask_filter_value=-5.0}",
                 mask ? ", %d" : "", (int)heads, causal);
        fast_right(&r, 17, node, round % 5 ? 1 : 3);
        double *x = fast_doubles(&r.in[0]), *w = fast_doubles(&r.in[1]),
               *add = fast_doubles(&r.in[2]);
        double *all = test_malloc((size_t)(batch * length * 3 * width) * sizeof *all),
               *y = test_malloc((size_t)(batch * length * width) * sizeof *y);
        for (int64_t i = 0; i < batch * length * 3 * width; i++) {
            all[i] = add[i % (3 * width)];
            for (int64_t p = 0; p < inner; p++)
                all[i] += x[i / (3 * width) * inner + p] * w[p * 3 * width + i % (3 * width)];
        }
        for (int64_t o = 0; o < batch * length * heads; o++) {
            int64_t h = o % heads, i = o / heads % length, b = o / heads / length;
            const double *base = all + b * length * 3 * width + h * size;
            double bias[200];
            for (int64_t j = 0; j < length; j++) {
                bool sees =
                    mask == 0 ||
                    (mask == 1 ? j < m[b]
                               : m[mask == 2 ? b * length + j : (b * length + i) * length + j] > 0);
                bias[j] = causal && j > i ? -INFINITY : sees ? 0 : -5;
            }
            attend_one(base + i * 3 * width, base + width, base + 2 * width, length, 3 * width,
                       size, 1 / sqrt((double)size), bias, y + o * size);
        }
        int64_t dims[3] = {batch, length, width};
        fast_same(&r, 0, 3, dims, y, 1e-4, 2e-5);
        double *lists[] = {x, w, add, all, y};
        for (int i = 0; i < 5; i++) test_free(lists[i]);
        r.n_in = 4;
        fast_close(&r);
    }
}

/* ---- what the reference takes over ---- */

static void other_types(void **state)
{
    (void)state;
    fast_run r = {.n_in = 2, .n_out = 1};
    r.in[0] = FAST_ARRAY(OT_I32, 2, 3);
    r.in[1] = FAST_ARRAY(OT_I32, 3, 1);
    fast_right(&r, 13, "MatMul(%a, %b)", 1);
    const int32_t *a = r.in[0].data, *b = r.in[1].data;
    for (int i = 0; i < 2; i++)
        assert_int_equal(((int32_t *)r.out[0].data)[i],
                         a[3 * i] * b[0] + a[3 * i + 1] * b[1] + a[3 * i + 2] * b[2]);
    fast_close(&r);
    r.in[0] = FAST_ARRAY(OT_F32, 2, 3);
    r.in[1] = FAST_ARRAY(OT_F32, 4, 1);
    assert_int_equal(fast_try(&r, 13, "MatMul(%a, %b)", 1, NULL), OT_E_INPUT);
    assert_non_null(strstr(r.b.d.message, "3 columns meet 4 rows"));
    fast_close(&r);
}

int main(void)
{
    const char *seed = getenv("OT_SEED");
    fast_state = seed ? strtoull(seed, NULL, 10) : 20240717;
    printf("seed %llu\n", (unsigned long long)fast_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(panels),
        cmocka_unit_test(matmul),
        cmocka_unit_test(matmul_of_vectors),
        cmocka_unit_test(matmul_shared),
        cmocka_unit_test(matmul_of_strided),
        cmocka_unit_test(fused_matmul),
        cmocka_unit_test(gemm),
        cmocka_unit_test(constant_operand),
        cmocka_unit_test(other_types),
        cmocka_unit_test(attention),
        cmocka_unit_test(projected_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
