/* Windows that move over the places of an image: convolution, pooling, columns. An item makes an
 * element of the result.
 *
 *   for ch, for k0, for k1 {  i0 = o0 * stride + k0 * dilation - pad; where that is inside: acc +=
 *                             x[n, ch, i0, i1] * w[m, ch, k0, k1]  }
 *
 * A transposed convolution looks from the output, too: i0 = (o0 + pad - k0 * dilation) / stride,
 * where that divides.
 */
#include "kgen_internal.h"

#define SPACE_MAX (OT_TK_RANK_MAX - 2)

typedef struct window {
    uint32_t n; /* axes of places */
    int64_t in[SPACE_MAX], out[SPACE_MAX], kernel[SPACE_MAX], stride[SPACE_MAX],
        dilation[SPACE_MAX], before[SPACE_MAX];
    bool padded[SPACE_MAX];
    bool turned;             /* a transposed convolution: the input's places paint the output */
    int64_t n_out, n_kernel; /* products */
    int opened;              /* braces of the loops */
} window;

/* Places of the result along axis d. */
static ot_status extent(const kgen_call *c, const window *w, uint32_t d, int64_t pads,
                        int64_t extra, int64_t *out)
{
    const int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1, room = w->in[d] + pads - reach;
    if (!w->turned && room < 0)
        return kgen_fail(c->g, "shape", "the window of %s is larger than its input", c->s->name);
    *out = w->turned ? (w->in[d] - 1) * w->stride[d] + reach + extra - pads
                     : room / w->stride[d] + 1;
    return *out < 1 ? kgen_fail(c->g, "shape", "the pads of %s leave nothing", c->s->name) : OT_OK;
}

static ot_status settings(const kgen_call *c, window *w)
{
    int64_t pads[2 * SPACE_MAX], extra[SPACE_MAX] = {0};
    OT_TRY(ot_tk_integers(&c->at, "stride", w->n, 1, 1, w->stride));
    OT_TRY(ot_tk_integers(&c->at, "dilation", w->n, 1, 1, w->dilation));
    OT_TRY(ot_tk_integers(&c->at, "pad", 2 * w->n, 0, 0, pads));
    if (w->turned) OT_TRY(ot_tk_integers(&c->at, "extra", w->n, 0, 0, extra));
    w->n_out = w->n_kernel = 1;
    for (uint32_t d = 0; d < w->n; d++) {
        OT_TRY(extent(c, w, d, pads[d] + pads[w->n + d], extra[d], &w->out[d]));
        w->before[d] = pads[d];
        w->padded[d] = pads[d] > 0 || pads[w->n + d] > 0;
        if (!ot_mul_i64(w->n_out, w->out[d], &w->n_out) ||
            !ot_mul_i64(w->n_kernel, w->kernel[d], &w->n_kernel))
            return kgen_fail(c->g, "shape", "%s makes more elements than can be counted",
                             c->s->name);
    }
    return OT_OK;
}

static ot_status image(const kgen_call *c, window *w)
{
    const kgen_operand *x = &c->in[0];
    if (x->rank < 3)
        return kgen_fail(c->g, "shape", "'%s' has at least 3 axes: images, channels, places",
                         kgen_value(c->g, x->value)->name);
    w->n = x->rank - 2;
    memcpy(w->in, x->dims + 2, w->n * sizeof *w->in);
    return OT_OK;
}

static ot_status pool_window(const kgen_call *c, window *w)
{
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    OT_TRY(image(c, w));
    OT_TRY(ot_tk_integers(&c->at, "kernel", w->n, 0, 1, w->kernel));
    for (uint32_t d = 0; d < w->n; d++)
        if (w->kernel[d] == 0)
            return kgen_fail(c->g, "setting", "%s needs kernel=[...]", c->s->name);
    return settings(c, w);
}

/* `const int iD = ...`, then `if` it is inside. out, k: text of the coordinates. */
static void place(kgen *g, window *w, uint32_t d, const char *out, const char *k)
{
    const char *at = kgen_term(g, kgen_term(g, "", out, w->stride[d]), k, w->dilation[d]);
    kgen_line(g, "const int i%u = %s - %lld;", d, *at ? at : "0", (long long)w->before[d]);
    if (!w->padded[d]) return;
    kgen_open(g, "if ((uint)i%u < %lldu)", d, (long long)w->in[d]);
    w->opened++;
}

/* The same of the input place from which kernel place k paints output place `out`, where there
 * is one. */
static void painter(kgen *g, window *w, uint32_t d, const char *out, const char *k)
{
    const long long stride = w->stride[d];
    kgen_line(g, "const int t%u = %s + %lld - %s;", d, out, (long long)w->before[d],
              kgen_term(g, "", k, w->dilation[d]));
    kgen_open(g, "if (t%u >= 0 && t%u %% %lld == 0 && t%u / %lld < %lld)", d, d, stride, d, stride,
              (long long)w->in[d]);
    kgen_line(g, "const int i%u = t%u / %lld;", d, d, stride);
    w->opened++;
}

/* Loops over the window; o: the coordinates of its place. */
static void walk(kgen *g, window *w, const char *const *o)
{
    for (uint32_t d = 0; d < w->n; d++) {
        kgen_open(g, "for (int k%u = 0; k%u < %lld; k%u++)", d, d, (long long)w->kernel[d], d);
        w->opened++;
        (w->turned ? painter : place)(g, w, d, o[d], kgen_text(g, "k%u", d));
    }
}

static void leave(kgen *g, window *w)
{
    for (; w->opened > 0; w->opened--) kgen_close(g);
}

/* Position in an image operand: image n, channel, places i0, i1, ... */
static const char *at_place(kgen *g, const kgen_operand *x, const window *w, const char *n,
                            const char *channel)
{
    const char *at = kgen_term(g, kgen_term(g, "", n, x->stride[0]), channel, x->stride[1]);
    for (uint32_t d = 0; d < w->n; d++)
        at = kgen_term(g, at, kgen_text(g, "i%u", d), x->stride[2 + d]);
    return at;
}

/* ---- convolutions ---- */

/* What the weights [maps, depth, ...] of a convolution, [channels, maps of a group, ...] of a
 * transposed one, say of channels. */
typedef struct groups {
    int64_t n, depth, each; /* groups; channels of one in the input, in the output */
} groups;

static ot_status groups_of(const kgen_call *c, bool turned, groups *o)
{
    const kgen_operand *x = &c->in[0], *w = &c->in[1];
    const int64_t apart = w->dims[0], within = w->dims[1];
    OT_TRY(ot_tk_integers(&c->at, "group", 1, 1, 1, &o->n));
    int64_t product;
    const bool fits = apart % o->n == 0 && ot_mul_i64(within, o->n, &product) &&
                      x->dims[1] == (turned ? apart : product);
    o->depth = turned ? apart / o->n : within;
    o->each = turned ? within : apart / o->n;
    if (fits) return OT_OK;
    return kgen_fail(c->g, "shape", "%lld channels do not fit %lld x %lld weights in %lld groups",
                     (long long)x->dims[1], (long long)apart, (long long)within, (long long)o->n);
}

static ot_status conv_shape(const kgen_call *c, window *s, groups *o, kgen_nest *n)
{
    const kgen_operand *x = &c->in[0], *w = &c->in[1];
    int64_t dims[OT_TK_RANK_MAX];
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 2, 3));
    OT_TRY(image(c, s));
    if (w->rank != x->rank)
        return kgen_fail(c->g, "shape", "image and weights of %s have equally many axes",
                         c->s->name);
    memcpy(s->kernel, w->dims + 2, s->n * sizeof *s->kernel);
    OT_TRY(settings(c, s));
    OT_TRY(groups_of(c, s->turned, o));
    dims[0] = x->dims[0];
    dims[1] = o->n * o->each;
    if (c->n_in > 2 && kgen_elements(&c->in[2]) != dims[1])
        return kgen_fail(c->g, "shape", "the bias of %s has not one element a map", c->s->name);
    memcpy(dims + 2, s->out, s->n * sizeof *dims);
    OT_TRY(ot_tk_makes(&c->at, dims, x->rank, kgen_value(c->g, c->out->value)));
    kgen_nest_init(n, dims, x->rank);
    n->keep_axes = true;
    kgen_nest_same(n, c->out);
    return OT_OK;
}

/* Position in the weights: of this channel and map, at k0, k1, ... */
static const char *weight_at(const kgen_call *c, const window *s, const groups *o, const char *map,
                             const char *channel)
{
    kgen *g = c->g;
    const kgen_operand *w = &c->in[1];
    const char *within = s->turned && o->n > 1
                             ? kgen_text(g, "(%s %% %lld)", map, (long long)o->each)
                         : s->turned ? map
                                     : "ch";
    const char *at = kgen_term(g, kgen_term(g, "", s->turned ? channel : map, w->stride[0]), within,
                               w->stride[1]);
    for (uint32_t d = 0; d < s->n; d++)
        at = kgen_term(g, at, kgen_text(g, "k%u", d), w->stride[2 + d]);
    return at;
}

static ot_status conv(const kgen_call *c)
{
    kgen *g = c->g;
    window s = {.turned = strcmp(c->name, "convtranspose") == 0};
    groups o;
    kgen_nest n;
    OT_TRY(conv_shape(c, &s, &o, &n));
    if (c->n_in > 2) OT_TRY(kgen_number_elements(g, &c->in[2]));
    OT_TRY(kgen_begin(c, (kgen_share){0}));
    kgen_nest_open(g, &n);
    const char *map = n.axis[1], *type = kgen_class_name(c->c);
    kgen_line(g, "%s acc = %s;", type, c->n_in > 2 ? kgen_in(c, 2, map) : "0");
    kgen_open(g, "for (int ch = 0; ch < %lld; ch++)", (long long)o.depth);
    s.opened = 1;
    walk(g, &s, n.axis + 2);
    const char *channel = o.n == 1 ? "ch"
                                   : kgen_text(g, "(%s / %lld * %lld + ch)", map, (long long)o.each,
                                               (long long)o.depth);
    kgen_line(g, "const %s x = %s;", type,
              kgen_in(c, 0, at_place(g, &c->in[0], &s, n.axis[0], channel)));
    kgen_line(g, "const %s y = %s;", type, kgen_in(c, 1, weight_at(c, &s, &o, map, channel)));
    kgen_line(g, "acc = %s;", kgen_mad(g, c->c, "x", "y", "acc"));
    leave(g, &s);
    kgen_out(c, n.lin[0], "acc");
    kgen_nest_close(g, &n);
    kgen_close(g);
    return OT_OK;
}

/* ---- pooling ---- */

/* Pads count for nothing, or with count_include_pad=1 as zeros of a mean. */
static ot_status pool(const kgen_call *c)
{
    kgen *g = c->g;
    const kgen_operand *x = &c->in[0];
    bool most = strcmp(c->name, "maxpool") == 0;
    window s = {0};
    int64_t dims[OT_TK_RANK_MAX], pads;
    kgen_nest n;
    OT_TRY(pool_window(c, &s));
    OT_TRY(ot_tk_integer(&c->at, "count_include_pad", 0, &pads));
    memcpy(dims, x->dims, sizeof dims);
    memcpy(dims + 2, s.out, s.n * sizeof *dims);
    OT_TRY(ot_tk_makes(&c->at, dims, x->rank, kgen_value(c->g, c->out->value)));
    kgen_nest_init(&n, dims, x->rank);
    n.keep_axes = true;
    kgen_nest_same(&n, c->out);
    OT_TRY(kgen_begin(c, (kgen_share){0}));
    const char *type = kgen_class_name(c->c);
    kgen_nest_open(g, &n);
    kgen_line(g, "%s acc = 0;", type);
    kgen_line(g, "int seen = 0;");
    walk(g, &s, n.axis + 2);
    kgen_line(g, "const %s x = %s;", type, kgen_in(c, 0, at_place(g, x, &s, n.axis[0], n.axis[1])));
    const char *larger = c->c < OT_TK_F32 ? "x > acc" : "x > acc || x != x"; /* NaN wins */
    kgen_line(g, most ? "acc = seen == 0 || %s ? x : acc;" : "acc = acc + x;", larger);
    kgen_line(g, "seen++;");
    leave(g, &s);
    if (most)
        kgen_out(c, n.lin[0], "acc");
    else if (pads)
        kgen_out(c, n.lin[0], kgen_text(g, "acc / (%s)%lld", type, (long long)s.n_kernel));
    else
        kgen_out(c, n.lin[0], kgen_text(g, "acc / (%s)(seen > 0 ? seen : 1)", type));
    kgen_nest_close(g, &n);
    kgen_close(g);
    return OT_OK;
}

static ot_status global_pool(const kgen_call *c)
{
    kgen *g = c->g;
    const kgen_operand *x = &c->in[0];
    window s = {0};
    kgen_nest n;
    const char *type = kgen_class_name(c->c);
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 1, 1));
    OT_TRY(image(c, &s));
    OT_TRY(ot_tk_makes(&c->at, x->dims, 2, kgen_value(c->g, c->out->value)));
    kgen_nest_init(&n, x->dims, 2);
    n.keep_axes = true;
    kgen_nest_same(&n, c->out);
    OT_TRY(kgen_begin(c, (kgen_share){0}));
    kgen_nest_open(g, &n);
    kgen_line(g, "%s acc = 0;", type);
    for (uint32_t d = 0; d < s.n; d++)
        kgen_open(g, "for (int i%u = 0; i%u < %lld; i%u++)", d, d, (long long)s.in[d], d);
    kgen_line(g, "acc = acc + %s;", kgen_in(c, 0, at_place(g, x, &s, n.axis[0], n.axis[1])));
    for (uint32_t d = 0; d < s.n; d++) kgen_close(g);
    kgen_out(c, n.lin[0],
             kgen_text(g, "acc / (%s)%lld", type,
                       (long long)(kgen_elements(x) / kgen_elements(c->out))));
    kgen_nest_close(g, &n);
    kgen_close(g);
    return OT_OK;
}

/* ---- columns ---- */

/* Coordinates of a number: `name`0, `name`1, ... of axes `dims`. */
static void split_number(kgen *g, const char *name, const char *number, const int64_t *dims,
                         uint32_t n)
{
    int64_t inner = 1;
    for (uint32_t d = n; d-- > 0; inner *= dims[d])
        kgen_line(g, "const int %s%u = %s / %lld %% %lld;", name, d, number, (long long)inner,
                  (long long)dims[d]);
}

/* The columns that turn a convolution into a product: N x C*kernel x places. */
static ot_status im2col(const kgen_call *c)
{
    kgen *g = c->g;
    const kgen_operand *x = &c->in[0];
    window s = {0};
    kgen_nest n;
    OT_TRY(pool_window(c, &s));
    int64_t dims[3] = {x->dims[0], x->dims[1] * s.n_kernel, s.n_out};
    OT_TRY(ot_tk_makes(&c->at, dims, 3, kgen_value(c->g, c->out->value)));
    kgen_nest_init(&n, dims, 3);
    n.keep_axes = true;
    kgen_nest_same(&n, c->out);
    OT_TRY(kgen_begin(c, (kgen_share){0}));
    kgen_nest_open(g, &n);
    split_number(g, "o", n.axis[2], s.out, s.n);
    split_number(g, "k", n.axis[1], s.kernel, s.n);
    kgen_line(g, "%s x = 0;", kgen_class_name(c->c));
    for (uint32_t d = 0; d < s.n; d++)
        place(g, &s, d, kgen_text(g, "o%u", d), kgen_text(g, "k%u", d));
    const char *channel = kgen_text(g, "%s / %lld", n.axis[1], (long long)s.n_kernel);
    kgen_line(g, "x = %s;", kgen_in(c, 0, at_place(g, x, &s, n.axis[0], channel)));
    leave(g, &s);
    kgen_out(c, n.lin[0], "x");
    kgen_nest_close(g, &n);
    kgen_close(g);
    return OT_OK;
}

kgen_op kgen_window_op(const char *name)
{
    static const struct {
        const char *name;
        kgen_op op;
    } ops[] = {{"conv", conv},
               {"convtranspose", conv},
               {"maxpool", pool},
               {"averagepool", pool},
               {"im2col", im2col},
               {"img2col", im2col},
               {"globalaveragepool", global_pool}};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (strcmp(ops[k].name, name) == 0) return ops[k].op;
    return NULL;
}
