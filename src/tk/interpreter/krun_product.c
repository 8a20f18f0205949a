/* Products: matrices, convolutions. Sums grow in the class of the operation, in the order of the
 * summed index.
 *
 *   matmul(a, b [, bias])      a: [batch...] M x K, b: [batch...] K x N; batch axes are broadcast;
 *                              transpose_a=1, transpose_b=1
 *   mmad(a, b, c)              the same, added to what c holds; accumulate(c, a, b) alike
 *   conv(x, w [, bias])        x: N x C x spatial, w: M x C/group x kernel; stride, dilation, pad
 *                              (before all axes, then after), group
 *   conv_transpose(x, w [, bias])   w: C x M/group x kernel; pad crops what was painted, extra:
 *                                   rows behind it that hold the bias alone
 */
#include "krun_internal.h"

/* sums[i] += x[i * step] * w for i in [0, n), each rounded as the class asks: products and sums
 * of 32 bits are exact in a double. The caller goes through the summed index in order;
 * neighbours in the result do not depend on each other. */
static void add_products(ot_tk_class c, double *sums, const double *x, int64_t step, double w,
                         int64_t n)
{
    switch (c) {
    case OT_TK_F32:
        for (int64_t i = 0; i < n; i++)
            sums[i] = (double)(float)(sums[i] + (double)(float)(x[i * step] * w));
        return;
    case OT_TK_F64:
        for (int64_t i = 0; i < n; i++) sums[i] += x[i * step] * w;
        return;
    default:
        for (int64_t i = 0; i < n; i++) sums[i] = krun_round(c, sums[i] + x[i * step] * w);
        return;
    }
}

/* ---- matrices ---- */

typedef struct matrix {
    const double *v;
    int64_t rows, cols, row, col; /* strides */
    uint32_t batch_rank;
    const int64_t *batch; /* [batch_rank] */
} matrix;

static ot_status matrix_of(const krun_call *c, const krun_tensor *t, const char *flag, matrix *x)
{
    int64_t turned;
    if (t->rank < 2) return krun_fail(c->m, "shape", "'%s' is no matrix", t->x->name);
    OT_TRY(ot_tk_integer(&c->at, flag, 0, &turned));
    int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
    *x = (matrix){t->v,
                  turned ? cols : rows,
                  turned ? rows : cols,
                  turned ? 1 : cols,
                  turned ? cols : 1,
                  t->rank - 2,
                  t->dims};
    return OT_OK;
}

/* Axis d (from the last) of the batch; 1 when there is none. */
static int64_t batch_dim(const matrix *x, uint32_t d)
{
    return d < x->batch_rank ? x->batch[x->batch_rank - 1 - d] : 1;
}

/* First element of the matrix that belongs to batch number i of the result. */
static const double *batch_at(const matrix *x, const int64_t *dims, uint32_t rank, int64_t i)
{
    int64_t at = 0, stride = 1;
    for (uint32_t d = 0; d < rank; d++) {
        int64_t n = batch_dim(x, d);
        at += n == 1 ? 0 : i % dims[rank - 1 - d] * stride;
        i /= dims[rank - 1 - d];
        stride *= n;
    }
    return x->v + at * x->rows * x->cols;
}

/* What a sum starts with: an element of `to`, repeated along axes of 1. NULL: 0. */
static ot_status addend(const krun_call *c, const krun_tensor *t, const int64_t *dims,
                        uint32_t rank, int64_t *strides)
{
    int64_t stride = 1;
    for (uint32_t d = 0; d < rank; d++) strides[d] = 0;
    if (t->rank > rank)
        return krun_fail(c->m, "shape", "'%s' has more axes than the product", t->x->name);
    for (uint32_t d = t->rank; d-- > 0;) {
        int64_t n = t->dims[d];
        if (n != 1 && n != dims[d + rank - t->rank])
            return krun_fail(c->m, "broadcast", "'%s' does not fit the product it is added to",
                             t->x->name);
        strides[d + rank - t->rank] = n == 1 ? 0 : stride;
        stride *= n;
    }
    return OT_OK;
}

static ot_status multiply(const krun_call *c, const krun_tensor *ta, const krun_tensor *tb,
                          const krun_tensor *to)
{
    matrix a, b;
    int64_t dims[OT_TK_RANK_MAX], strides[OT_TK_RANK_MAX] = {0}, n_batch = 1;
    OT_TRY(matrix_of(c, ta, "transpose_a", &a));
    OT_TRY(matrix_of(c, tb, "transpose_b", &b));
    if (a.cols != b.rows)
        return krun_fail(c->m, "shape", "%s sums over %lld columns of '%s' and %lld rows of '%s'",
                         c->s->name, (long long)a.cols, ta->x->name, (long long)b.rows,
                         tb->x->name);
    uint32_t batch = a.batch_rank > b.batch_rank ? a.batch_rank : b.batch_rank;
    for (uint32_t d = 0; d < batch; d++) {
        int64_t x = batch_dim(&a, d), y = batch_dim(&b, d);
        if (x != 1 && y != 1 && x != y)
            return krun_fail(c->m, "broadcast", "the batches of %s do not fit each other",
                             c->s->name);
        dims[batch - 1 - d] = ot_max(x, y);
        n_batch *= ot_max(x, y);
    }
    dims[batch] = a.rows;
    dims[batch + 1] = b.cols;
    OT_TRY(ot_tk_makes(&c->at, dims, batch + 2, c->out->x));
    if (to) OT_TRY(addend(c, to, dims, batch + 2, strides));
    for (int64_t i = 0; i < n_batch * a.rows * b.cols; i++) {
        int64_t rest = i, at = 0;
        for (uint32_t d = batch + 2; d-- > 0; rest /= dims[d]) at += rest % dims[d] * strides[d];
        c->out->v[i] = to ? to->v[at] : 0;
    }
    for (int64_t i = 0; i < n_batch * a.rows; i++) {
        const int64_t m = i / a.rows;
        const double *x = batch_at(&a, dims, batch, m) + i % a.rows * a.row,
                     *y = batch_at(&b, dims, batch, m);
        for (int64_t k = 0; k < a.cols; k++)
            add_products(c->c, c->out->v + i * b.cols, y + k * b.row, b.col, x[k * a.col], b.cols);
    }
    return OT_OK;
}

static ot_status matmul(const krun_call *c)
{
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 2, 3));
    return multiply(c, &c->in[0], &c->in[1], c->n_in > 2 ? &c->in[2] : NULL);
}

static ot_status mmad(const krun_call *c)
{
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 3, 3));
    return multiply(c, &c->in[0], &c->in[1], &c->in[2]);
}

static ot_status accumulate(const krun_call *c)
{
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 3, 3));
    return multiply(c, &c->in[1], &c->in[2], &c->in[0]);
}

/* ---- convolutions ---- */

typedef struct conv_shape {
    uint32_t n; /* spatial axes */
    /* a transposed convolution: the input's places paint the output */
    bool turned;
    int64_t in[6], out[6], kernel[6], stride[6], dilation[6]; /* [n] */
    int64_t before[6];                                        /* pads */
    int64_t n_in, n_out, n_kernel;                            /* products */
} conv_shape;

/* Places of the result along axis d. */
static ot_status extent(const krun_call *c, conv_shape *s, uint32_t d, int64_t pads, int64_t extra)
{
    const int64_t reach = (s->kernel[d] - 1) * s->dilation[d] + 1, room = s->in[d] + pads - reach;
    if (!s->turned && room < 0)
        return krun_fail(c->m, "shape", "the window of %s is larger than its input", c->s->name);
    s->out[d] = s->turned ? (s->in[d] - 1) * s->stride[d] + reach + extra - pads
                          : room / s->stride[d] + 1;
    return s->out[d] < 1 ? krun_fail(c->m, "shape", "the pads of %s leave nothing", c->s->name)
                         : OT_OK;
}

static ot_status conv_settings(const krun_call *c, conv_shape *s)
{
    int64_t pads[12], extra[6] = {0};
    OT_TRY(ot_tk_integers(&c->at, "stride", s->n, 1, 1, s->stride));
    OT_TRY(ot_tk_integers(&c->at, "dilation", s->n, 1, 1, s->dilation));
    OT_TRY(ot_tk_integers(&c->at, "pad", 2 * s->n, 0, 0, pads));
    if (s->turned) OT_TRY(ot_tk_integers(&c->at, "extra", s->n, 0, 0, extra));
    s->n_in = s->n_out = s->n_kernel = 1;
    for (uint32_t d = 0; d < s->n; d++) {
        OT_TRY(extent(c, s, d, pads[d] + pads[s->n + d], extra[d]));
        s->before[d] = pads[d];
        if (!ot_mul_i64(s->n_in, s->in[d], &s->n_in) ||
            !ot_mul_i64(s->n_out, s->out[d], &s->n_out) ||
            !ot_mul_i64(s->n_kernel, s->kernel[d], &s->n_kernel))
            return krun_fail(c->m, "shape", "%s makes more elements than can be counted",
                             c->s->name);
    }
    return OT_OK;
}

/* Place of `to` that place i of `from` meets at kernel place k; -1: outside of it. */
static int64_t meets(const conv_shape *s, const int64_t *from, const int64_t *to, int64_t i,
                     int64_t k)
{
    int64_t at = 0, stride = 1;
    for (uint32_t d = s->n; d-- > 0;) {
        const int64_t place = i % from[d] * s->stride[d] + k % s->kernel[d] * s->dilation[d] -
                              s->before[d];
        if (place < 0 || place >= to[d]) return -1;
        at += place * stride;
        stride *= to[d];
        i /= from[d];
        k /= s->kernel[d];
    }
    return at;
}

/* Place in the input that output place `o` reads at kernel place `k`; -1: in the pads. */
static int64_t input_at(const conv_shape *s, int64_t o, int64_t k)
{
    return meets(s, s->out, s->in, o, k);
}

/* Place in the output that input place `i` paints with kernel place `k`; -1: it is cropped. */
static int64_t painted_at(const conv_shape *s, int64_t i, int64_t k)
{
    return meets(s, s->in, s->out, i, k);
}

/* What the weights [maps, depth, ...] of a convolution, [channels, maps of a group, ...] of a
 * transposed one, say of channels. */
typedef struct conv_groups {
    int64_t n, depth, each; /* groups; channels of one in the input, in the output */
} conv_groups;

static ot_status groups_of(const krun_call *c, bool turned, conv_groups *o)
{
    const krun_tensor *x = &c->in[0], *w = &c->in[1];
    const int64_t apart = w->dims[0], within = w->dims[1];
    int64_t product;
    OT_TRY(ot_tk_integers(&c->at, "group", 1, 1, 1, &o->n));
    const bool fits = apart % o->n == 0 && ot_mul_i64(within, o->n, &product) &&
                      x->dims[1] == (turned ? apart : product);
    o->depth = turned ? apart / o->n : within;
    o->each = turned ? within : apart / o->n;
    if (fits) return OT_OK;
    return krun_fail(
        c->m, "shape", "%lld channels of '%s' do not fit %lld x %lld weights in %lld groups",
        (long long)x->dims[1], x->x->name, (long long)apart, (long long)within, (long long)o->n);
}

static ot_status conv_dims(const krun_call *c, conv_shape *s, conv_groups *o)
{
    const krun_tensor *x = &c->in[0], *w = &c->in[1];
    int64_t dims[OT_TK_RANK_MAX];
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 2, 3));
    if (x->rank < 3 || x->rank > OT_TK_RANK_MAX || w->rank != x->rank)
        return krun_fail(c->m, "shape", "'%s' and '%s' have equally many axes, at least 3",
                         x->x->name, w->x->name);
    s->n = x->rank - 2;
    memcpy(s->in, x->dims + 2, s->n * sizeof *s->in);
    memcpy(s->kernel, w->dims + 2, s->n * sizeof *s->kernel);
    OT_TRY(conv_settings(c, s));
    OT_TRY(groups_of(c, s->turned, o));
    dims[0] = x->dims[0];
    dims[1] = o->n * o->each;
    memcpy(dims + 2, s->out, s->n * sizeof *dims);
    if (c->n_in > 2 && c->in[2].n != dims[1])
        return krun_fail(c->m, "shape", "'%s' has not one element a map", c->in[2].x->name);
    return ot_tk_makes(&c->at, dims, s->n + 2, c->out->x);
}

/* What kernel place k, of weight w, adds to all sums of a map: row by row, where the row reads
 * the input and not its pads. */
static void add_read(ot_tk_class c, const conv_shape *s, const double *x, int64_t k, double w,
                     double *sums)
{
    const uint32_t last = s->n - 1;
    const int64_t width = s->out[last], step = s->stride[last],
                  shift = k % s->kernel[last] * s->dilation[last] - s->before[last];
    /* first place whose input is there */
    const int64_t lo = shift < 0 ? ot_ceil_div(-shift, step) : 0;
    /* behind the last */
    const int64_t end = shift < s->in[last] ? (s->in[last] - 1 - shift) / step + 1 : 0;
    const int64_t hi = ot_min(end, width);
    for (int64_t row = 0; row < s->n_out && lo < hi; row += width) {
        const int64_t at = input_at(s, row + lo, k);
        if (at >= 0) add_products(c, sums + row + lo, x + at, step, w, hi - lo);
    }
}

/* The same where the input's places paint. */
static void add_painted(ot_tk_class c, const conv_shape *s, const double *x, int64_t k, double w,
                        double *sums)
{
    for (int64_t at = 0; at < s->n_in; at++) {
        const int64_t o = painted_at(s, at, k);
        if (o >= 0) add_products(c, sums + o, x + at, 1, w, 1);
    }
}

static ot_status conv(const krun_call *c)
{
    const krun_tensor *x = &c->in[0], *w = &c->in[1], *bias = &c->in[2];
    conv_shape s = {.turned = strcmp(c->name, "convtranspose") == 0};
    conv_groups g;
    OT_TRY(conv_dims(c, &s, &g));
    const int64_t n_maps = g.n * g.each;
    for (int64_t i = 0; i < x->dims[0] * n_maps; i++) {
        const int64_t image = i / n_maps, map = i % n_maps, first = map / g.each * g.depth;
        double *to = c->out->v + i * s.n_out;
        for (int64_t o = 0; o < s.n_out; o++) to[o] = c->n_in > 2 ? bias->v[map] : 0;
        for (int64_t ch = 0; ch < g.depth; ch++) {
            const double *from = x->v + (image * x->dims[1] + first + ch) * s.n_in;
            const double *weights = w->v + (s.turned ? (first + ch) * g.each + map % g.each
                                                     : map * g.depth + ch) *
                                               s.n_kernel;
            for (int64_t k = 0; k < s.n_kernel; k++)
                (s.turned ? add_painted : add_read)(c->c, &s, from, k, weights[k], to);
        }
    }
    return OT_OK;
}

/* ---- windows ---- */

static ot_status window_dims(const krun_call *c, conv_shape *s)
{
    const krun_tensor *x = &c->in[0];
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    if (x->rank < 3)
        return krun_fail(c->m, "shape", "'%s' has at least 3 axes: images, channels, places",
                         x->x->name);
    s->n = x->rank - 2;
    memcpy(s->in, x->dims + 2, s->n * sizeof *s->in);
    OT_TRY(ot_tk_integers(&c->at, "kernel", s->n, 0, 1, s->kernel));
    for (uint32_t d = 0; d < s->n; d++)
        if (s->kernel[d] == 0)
            return krun_fail(c->m, "setting", "%s needs kernel=[...]", c->s->name);
    return conv_settings(c, s);
}

/* Pads count for nothing, or with count_include_pad=1 as zeros of a mean. */
static ot_status pool(const krun_call *c)
{
    const krun_tensor *x = &c->in[0];
    bool most = strcmp(c->name, "maxpool") == 0;
    conv_shape s = {0};
    int64_t dims[OT_TK_RANK_MAX], pads;
    OT_TRY(window_dims(c, &s));
    OT_TRY(ot_tk_integer(&c->at, "count_include_pad", 0, &pads));
    memcpy(dims, x->dims, sizeof dims);
    memcpy(dims + 2, s.out, s.n * sizeof *dims);
    OT_TRY(ot_tk_makes(&c->at, dims, x->rank, c->out->x));
    for (int64_t i = 0; i < c->out->n; i++) {
        const double *map = x->v + i / s.n_out * s.n_in;
        double sum = 0;
        int64_t n = 0;
        for (int64_t k = 0; k < s.n_kernel; k++) {
            int64_t at = input_at(&s, i % s.n_out, k);
            if (at < 0) continue;
            if (!most)
                sum = krun_round(c->c, sum + map[at]);
            else if (n == 0 || map[at] > sum || map[at] != map[at])
                sum = map[at];
            n++;
        }
        c->out->v[i] = most ? sum : sum / (double)(pads ? s.n_kernel : ot_max(n, 1));
    }
    return OT_OK;
}

/* The columns that turn a convolution into a product: N x C*kernel x places. */
static ot_status im2col(const krun_call *c)
{
    const krun_tensor *x = &c->in[0];
    conv_shape s = {0};
    OT_TRY(window_dims(c, &s));
    int64_t dims[3] = {x->dims[0], x->dims[1] * s.n_kernel, s.n_out};
    OT_TRY(ot_tk_makes(&c->at, dims, 3, c->out->x));
    for (int64_t i = 0; i < c->out->n; i++) {
        int64_t o = i % s.n_out, k = i / s.n_out % s.n_kernel, map = i / s.n_out / s.n_kernel;
        int64_t at = input_at(&s, o, k);
        c->out->v[i] = at < 0 ? 0 : x->v[map * s.n_in + at];
    }
    return OT_OK;
}

static ot_status global_pool(const krun_call *c)
{
    const krun_tensor *x = &c->in[0];
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    if (x->rank < 3)
        return krun_fail(c->m, "shape", "'%s' has at least 3 axes: images, channels, places",
                         x->x->name);
    OT_TRY(ot_tk_makes(&c->at, x->dims, 2, c->out->x));
    int64_t n = x->n / c->out->n;
    for (int64_t i = 0; i < c->out->n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++) sum = krun_round(c->c, sum + x->v[i * n + k]);
        c->out->v[i] = sum / (double)n;
    }
    return OT_OK;
}

krun_op krun_product(const char *name)
{
    static const struct {
        const char *name;
        krun_op op;
    } ops[] = {
        {"matmul", matmul},      {"gemm", matmul},           {"mma", mmad},
        {"mmad", mmad},          {"accumulate", accumulate}, {"conv", conv},
        {"convtranspose", conv}, {"maxpool", pool},          {"averagepool", pool},
        {"im2col", im2col},      {"img2col", im2col},        {"globalaveragepool", global_pool}};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (strcmp(ops[k].name, name) == 0) return ops[k].op;
    return NULL;
}
