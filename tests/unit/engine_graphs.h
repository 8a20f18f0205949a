/* Random small networks as text, and their sessions compared: fast kernels and fused steps against
 * the reference.
 *
 *   seed --> text --> model --> reference session  --.
 *                 --> model --> fast session         +--> every output, normalised squared error
 *                 --> model --tiled--> session     --'
 *
 * Values are [N,C,H,W]; a graph grows by one operator, or a few that belong together, at a time,
 * each on one of the latest values. Shapes are worked out here, by the definitions of the
 * operators, so that all of it is static. Weights are small enough for values to stay near 1.
 */
#ifndef TEST_ENGINE_GRAPHS_H
#define TEST_ENGINE_GRAPHS_H

#include "engine_check.h"

#include <math.h>
#include <stdlib.h>

#define GRAPH_TEXT    19000
#define GRAPH_VALUES  80
#define GRAPH_OUTPUTS 12
#define GRAPH_NMSE    1e-9

typedef struct graph_value {
    int name;
    int64_t d[4];
    bool is_output;
} graph_value;

typedef struct graph {
    char text[GRAPH_TEXT];
    size_t at;
    uint64_t state;
    graph_value v[GRAPH_VALUES];
    int n, names, outputs;
    bool plain; /* nothing that asks the heap for memory */
    bool wide;  /* high images, to be cut into tiles */
} graph;

static inline int graph_random(graph *g, int below)
{
    g->state = g->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((g->state >> 33) % (uint64_t)below);
}

static inline int graph_between(graph *g, int lo, int hi)
{
    return lo + graph_random(g, hi - lo + 1);
}

static inline void OT_PRINTF(2, 3) graph_put(graph *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(g->text + g->at, sizeof g->text - g->at, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof g->text - g->at) fail_msg("a test graph is too long");
    g->at += (size_t)n;
}

/* ---- values ---- */

static inline int graph_add(graph *g, int name, int64_t n, int64_t c, int64_t h, int64_t w)
{
    assert_true(g->n < GRAPH_VALUES);
    g->v[g->n] = (graph_value){name, {n, c, h, w}, false};
    return g->n++;
}

static inline int graph_name(graph *g) { return g->names++; }

/* One of the latest values. */
static inline const graph_value *graph_pick(graph *g)
{
    int near = g->n < 4 ? g->n : 4;
    return &g->v[g->n - 1 - graph_random(g, near)];
}

static inline bool graph_same(const graph_value *a, const graph_value *b, bool channels)
{
    for (int k = 0; k < 4; k++)
        if (a->d[k] != b->d[k] && (k != 1 || channels)) return false;
    return true;
}

/* Weights of `fan` products a result. */
static inline int graph_weights(graph *g, const char *dims, int64_t fan)
{
    int w = graph_name(g);
    graph_put(g, "init %%w%d : float32[%s] = random %d * %.4f\n", w, dims,
              graph_random(g, 1000000) + 1, 1.5 / sqrt((double)fan));
    return w;
}

static inline int graph_channels(graph *g)
{
    static const int some[] = {1, 2, 3, 4, 5, 6, 8, 8, 12, 16, 16, 20, 24};
    return some[graph_random(g, (int)(sizeof some / sizeof *some))];
}

/* y = op(x) of the shape of x. */
static inline int graph_unary(graph *g, const char *op, const graph_value *x, const char *attrs)
{
    int y = graph_name(g);
    graph_put(g, "%%v%d = %s(%%v%d)%s\n", y, op, x->name, attrs);
    return graph_add(g, y, x->d[0], x->d[1], x->d[2], x->d[3]);
}

/* ---- convolutions ---- */

typedef struct graph_window {
    int k, s, d, lo, hi;
    int64_t out;
} graph_window;

/* Kernel, stride, dilation and pads along one axis; out < 1: they do not fit. */
static inline graph_window graph_axis(graph *g, int64_t extent)
{
    graph_window a = {.k = graph_between(g, 1, 4),
                      .s = graph_random(g, 4) ? 1 : graph_between(g, 2, 3),
                      .d = graph_random(g, 6) ? 1 : 2};
    if (graph_random(g, 3)) {
        a.k = 3;
        a.lo = a.hi = a.d;
    } else {
        a.lo = graph_random(g, a.k);
        a.hi = graph_random(g, a.k);
    }
    a.out = (extent + a.lo + a.hi - a.d * (a.k - 1) - 1) / a.s + 1;
    if (extent + a.lo + a.hi < a.d * (a.k - 1) + 1) a.out = 0;
    return a;
}

/* Conv with `out` maps (0: any), the shape of x when `same`. depthwise: one group a channel. */
static inline int graph_conv(graph *g, const graph_value *from, int64_t out, bool same,
                             bool depthwise)
{
    const graph_value x = *from;
    graph_window h = graph_axis(g, x.d[2]), w = graph_axis(g, x.d[3]);
    int64_t c = x.d[1], group = 1;
    char dims[100];
    if (same || h.out < 1 || w.out < 1) {
        h = (graph_window){3, 1, 1, 1, 1, x.d[2]};
        w = (graph_window){3, 1, 1, 1, 1, x.d[3]};
    }
    if (!out) out = graph_channels(g);
    if (depthwise) out = c * (same || graph_random(g, 3) ? 1 : 2);
    if (depthwise) group = c;
    for (int64_t d = 5; d > 1 && group == 1; d--)
        if (c % d == 0 && out % d == 0 && graph_random(g, 3) == 0) group = d;
    snprintf(dims, sizeof dims, "%lld,%lld,%d,%d", (long long)out, (long long)(c / group), h.k,
             w.k);
    int weights = graph_weights(g, dims, c / group * h.k * w.k), y = graph_name(g), bias = -1;
    if (graph_random(g, 2)) {
        snprintf(dims, sizeof dims, "%lld", (long long)out);
        bias = graph_weights(g, dims, 4);
        graph_put(g, "%%v%d = Conv(%%v%d, %%w%d, %%w%d)", y, x.name, weights, bias);
    } else {
        graph_put(g, "%%v%d = Conv(%%v%d, %%w%d)", y, x.name, weights);
    }
    graph_put(g, " {group=%lld, strides=[%d, %d], dilations=[%d, %d], pads=[%d, %d, %d, %d]}\n",
              (long long)group, h.s, w.s, h.d, w.d, h.lo, w.lo, h.hi, w.hi);
    return graph_add(g, y, x.d[0], out, h.out, w.out);
}

static inline void graph_deconv(graph *g, const graph_value *from)
{
    const graph_value x = *from;
    int64_t c = x.d[1], out = graph_channels(g), extent[2];
    int k[2], s[2], lo[2], hi[2], more[2];
    char dims[100];
    for (int a = 0; a < 2; a++) {
        k[a] = graph_between(g, 1, 5);
        s[a] = graph_between(g, 1, 3);
        lo[a] = graph_random(g, k[a]);
        hi[a] = graph_random(g, k[a]);
        more[a] = graph_random(g, 3) ? 0 : graph_random(g, s[a]);
        extent[a] = s[a] * (x.d[2 + a] - 1) + more[a] + k[a] - lo[a] - hi[a];
        if (extent[a] < 1 || extent[a] > 60) return;
    }
    int64_t group = c % 2 == 0 && out % 2 == 0 && graph_random(g, 3) == 0 ? 2 : 1;
    snprintf(dims, sizeof dims, "%lld,%lld,%d,%d", (long long)c, (long long)(out / group), k[0],
             k[1]);
    if (group > 1) g->plain = false;
    int weights = graph_weights(g, dims, c * k[0] * k[1] / (s[0] * s[1]) + 1), y = graph_name(g);
    graph_put(g,
              "%%v%d = ConvTranspose(%%v%d, %%w%d) {group=%lld, strides=[%d, %d], pads=[%d, %d, "
              "%d, %d], output_padding=[%d, %d]}\n",
              y, x.name, weights, (long long)group, s[0], s[1], lo[0], lo[1], hi[0], hi[1], more[0],
              more[1]);
    graph_add(g, y, x.d[0], out, extent[0], extent[1]);
}

static inline void graph_pool(graph *g, const graph_value *from)
{
    const graph_value x = *from;
    graph_window h = graph_axis(g, x.d[2]), w = graph_axis(g, x.d[3]);
    bool average = graph_random(g, 2);
    if (h.out < 1 || w.out < 1 || h.lo >= h.k || h.hi >= h.k || w.lo >= w.k || w.hi >= w.k ||
        ((h.d > 1 || w.d > 1) && average))
        return;
    int y = graph_name(g);
    graph_put(
        g, "%%v%d = %s(%%v%d) {kernel_shape=[%d, %d], strides=[%d, %d], pads=[%d, %d, %d, %d]", y,
        average ? "AveragePool" : "MaxPool", x.name, h.k, w.k, h.s, w.s, h.lo, w.lo, h.hi, w.hi);
    if (average)
        graph_put(g, ", count_include_pad=%d}\n", graph_random(g, 2));
    else
        graph_put(g, ", dilations=[%d, %d]}\n", h.d, w.d);
    if (h.d > 1 || w.d > 1) g->plain = false;
    graph_add(g, y, x.d[0], x.d[1], h.out, w.out);
}

/* ---- by element ---- */

static inline void graph_norm(graph *g, const graph_value *from)
{
    const graph_value x = *from;
    char dims[40];
    snprintf(dims, sizeof dims, "%lld", (long long)x.d[1]);
    int scale = graph_weights(g, dims, 2), shift = graph_weights(g, dims, 9),
        mean = graph_weights(g, dims, 9), var = graph_name(g);
    int y = graph_name(g);
    graph_put(g, "init %%w%d : float32[%s] = fill %.2f\n", var, dims,
              0.3 + 0.1 * graph_random(g, 9));
    graph_put(g, "%%v%d = BatchNormalization(%%v%d, %%w%d, %%w%d, %%w%d, %%w%d)\n", y, x.name,
              scale, shift, mean, var);
    graph_add(g, y, x.d[0], x.d[1], x.d[2], x.d[3]);
}

static inline void graph_activation(graph *g, const graph_value *from)
{
    static const char *const ops[][2] = {{"Relu", ""},
                                         {"LeakyRelu", " {alpha=0.2}"},
                                         {"Sigmoid", ""},
                                         {"Tanh", ""},
                                         {"Elu", " {alpha=0.7}"},
                                         {"HardSwish", ""},
                                         {"HardSigmoid", ""},
                                         {"Abs", ""},
                                         {"Neg", ""},
                                         {"Softplus", ""}};
    const graph_value x = *from;
    int k = graph_random(g, 13);
    if (k < 10) {
        graph_unary(g, ops[k][0], &x, ops[k][1]);
        return;
    }
    int a = graph_name(g), y = graph_name(g);
    if (k == 10) {
        graph_put(g, "init %%w%d : float32[] = [-0.4]\ninit %%w%d : float32[] = [0.9]\n", a, y);
        int z = graph_name(g);
        graph_put(g, "%%v%d = Clip(%%v%d, %%w%d, %%w%d)\n", z, x.name, a, y);
        y = z;
    } else {
        const char *gate = k == 11 ? "Sigmoid" : "HardSigmoid";
        graph_put(g, "%%v%d = %s(%%v%d)%s\n%%v%d = Mul(%%v%d, %%v%d)\n", a, gate, x.name,
                  k == 12 ? " {alpha=0.16666667}" : "", y, x.name, a);
    }
    graph_add(g, y, x.d[0], x.d[1], x.d[2], x.d[3]);
}

/* With a constant by channel, or for all. */
static inline void graph_affine(graph *g, const graph_value *from)
{
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div"};
    const graph_value x = *from;
    const char *op = ops[graph_random(g, 4)];
    bool left = op[0] != 'D' && graph_random(g, 2);
    int w = graph_name(g), y = graph_name(g);
    if (graph_random(g, 2) || op[0] == 'D')
        graph_put(g, "init %%w%d : float32[] = [%.2f]\n", w, 0.5 + 0.25 * graph_random(g, 5));
    else
        graph_put(g, "init %%w%d : float32[%lld,1,1] = random %d\n", w, (long long)x.d[1], y + 1);
    if (left)
        graph_put(g, "%%v%d = %s(%%w%d, %%v%d)\n", y, op, w, x.name);
    else
        graph_put(g, "%%v%d = %s(%%v%d, %%w%d)\n", y, op, x.name, w);
    graph_add(g, y, x.d[0], x.d[1], x.d[2], x.d[3]);
}

/* The sum of two values of one shape. false: there is none but x itself. */
static inline bool graph_sum(graph *g, const graph_value *from)
{
    const graph_value x = *from;
    for (int tries = 0; tries < 8; tries++) {
        const graph_value *o = &g->v[graph_random(g, g->n)];
        if (o->name == x.name || !graph_same(&x, o, true)) continue;
        int other = o->name, y = graph_name(g);
        if (graph_random(g, 2))
            graph_put(g, "%%v%d = Add(%%v%d, %%v%d)\n", y, x.name, other);
        else
            graph_put(g, "%%v%d = %s(%%v%d, %%v%d)\n", y, graph_random(g, 3) ? "Add" : "Mul", other,
                      x.name);
        graph_add(g, y, x.d[0], x.d[1], x.d[2], x.d[3]);
        return true;
    }
    return false;
}

/* x + Conv(x), maybe with a BatchNormalization in between and a Relu after; x may be read again
 * later. */
static inline void graph_residual(graph *g, const graph_value *from)
{
    const graph_value x = *from;
    int c = graph_conv(g, &x, x.d[1], true, graph_random(g, 3) == 0);
    if (graph_random(g, 2)) {
        graph_norm(g, &g->v[c]);
        c = g->n - 1;
    }
    int y = graph_name(g), conv = g->v[c].name;
    if (graph_random(g, 2))
        graph_put(g, "%%v%d = Add(%%v%d, %%v%d)\n", y, conv, x.name);
    else
        graph_put(g, "%%v%d = Add(%%v%d, %%v%d)\n", y, x.name, conv);
    int sum = graph_add(g, y, x.d[0], x.d[1], x.d[2], x.d[3]);
    if (graph_random(g, 2)) graph_unary(g, "Relu", &g->v[sum], "");
}

/* ---- movement ---- */

static inline void graph_concat(graph *g, const graph_value *from)
{
    const graph_value x = *from;
    int parts = 1, names[4] = {x.name};
    int64_t c = x.d[1];
    for (int tries = 0; tries < 8 && parts < 3; tries++) {
        const graph_value *o = &g->v[graph_random(g, g->n)];
        if (!graph_same(&x, o, false) || c + o->d[1] > 48) continue;
        names[parts++] = o->name;
        c += o->d[1];
    }
    int y = graph_name(g);
    graph_put(g, "%%v%d = Concat(%%v%d", y, names[0]);
    for (int k = 1; k < parts; k++) graph_put(g, ", %%v%d", names[k]);
    graph_put(g, ") {axis=%d}\n", graph_random(g, 2) ? 1 : -3);
    graph_add(g, y, x.d[0], c, x.d[2], x.d[3]);
}

static inline void graph_ints(graph *g, const char *name, int id, int n, const int64_t *x)
{
    graph_put(g, "init %%%s%d : int64[%d] = [", name, id, n);
    for (int k = 0; k < n; k++) graph_put(g, "%s%lld", k ? ", " : "", (long long)x[k]);
    graph_put(g, "]\n");
}

/* A window along the channels, or along height and width; sometimes every other column. */
static inline void graph_slice(graph *g, const graph_value *from)
{
    const graph_value x = *from;
    int64_t d[4], axes[2] = {1, 3}, starts[2], ends[2], steps[2] = {1, 1};
    int n = 1, y = graph_name(g);
    memcpy(d, x.d, sizeof d);
    if (graph_random(g, 2)) {
        axes[0] = 2;
        n = 2;
    }
    for (int k = 0; k < n; k++) {
        int64_t all = x.d[axes[k]], at = graph_random(g, (int)(all + 1) / 2),
                end = all - graph_random(g, (int)(all - at));
        if (axes[k] == 1 && graph_random(g, 2)) at = at / 8 * 8;
        if (axes[k] == 3 && graph_random(g, 4) == 0) steps[k] = 2;
        starts[k] = graph_random(g, 2) ? at : at - all;
        ends[k] = end;
        d[axes[k]] = (end - at + steps[k] - 1) / steps[k];
        if (axes[k] > 1 && d[axes[k]] < 4) return;
    }
    if (steps[0] != 1 || steps[1] != 1) g->plain = false;
    graph_ints(g, "s", y, n, starts);
    graph_ints(g, "e", y, n, ends);
    graph_ints(g, "a", y, n, axes);
    graph_ints(g, "p", y, n, steps);
    graph_put(g, "%%v%d = Slice(%%v%d, %%s%d, %%e%d, %%a%d, %%p%d)\n", y, x.name, y, y, y, y);
    graph_add(g, y, d[0], d[1], d[2], d[3]);
}

static inline void graph_resize(graph *g, const graph_value *from)
{
    static const char *const modes[] = {
        "mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"",
        "mode=\"linear\", coordinate_transformation_mode=\"half_pixel\"",
        "mode=\"linear\", coordinate_transformation_mode=\"align_corners\"", "mode=\"nearest\""};
    const graph_value x = *from;
    int y = graph_name(g);
    if (x.d[2] > 30 || x.d[3] > 30) return;
    int64_t sizes[4] = {x.d[0], x.d[1], x.d[2] * 2, x.d[3] * 2};
    graph_ints(g, "s", y, 4, sizes);
    graph_put(g, "%%v%d = Resize(%%v%d, _, _, %%s%d) {%s}\n", y, x.name, y,
              modes[graph_random(g, 4)]);
    graph_add(g, y, x.d[0], x.d[1], sizes[2], sizes[3]);
    g->plain = false;
}

/* ---- things of several operators ---- */

/* Softmax(q k' * f) v, where q, k and v are windows of one value or rows of two. */
static inline void graph_attention(graph *g, const graph_value *from)
{
    const graph_value x = *from;
    int y = graph_name(g), t = graph_name(g), s = graph_name(g), m = graph_name(g),
        p = graph_name(g), q = graph_name(g);
    int64_t half = x.d[3] / 2;
    if (half < 1) return;
    graph_ints(g, "s", y, 1, (int64_t[]){0});
    graph_ints(g, "e", y, 1, (int64_t[]){half});
    graph_ints(g, "f", y, 1, (int64_t[]){2 * half});
    graph_ints(g, "a", y, 1, (int64_t[]){3});
    graph_put(g, "init %%w%d : float32[] = [0.2]\n", y);
    graph_put(g, "%%v%d = Slice(%%v%d, %%s%d, %%e%d, %%a%d)\n", q, x.name, y, y, y);
    graph_put(g, "%%k%d = Slice(%%v%d, %%e%d, %%f%d, %%a%d)\n", q, x.name, y, y, y);
    graph_put(g, "%%v%d = Transpose(%%k%d) {perm=[0, 1, 3, 2]}\n", t, q);
    graph_put(g, "%%v%d = MatMul(%%v%d, %%v%d)\n", s, q, t);
    graph_put(g, graph_random(g, 2) ? "%%v%d = Mul(%%v%d, %%w%d)\n" : "%%v%d = Div(%%v%d, %%w%d)\n",
              m, s, y);
    graph_put(g, "%%v%d = Softmax(%%v%d) {axis=-1}\n", p, m);
    graph_put(g, "%%v%d = MatMul(%%v%d, %%v%d)\n", y, p, q);
    graph_add(g, y, x.d[0], x.d[1], x.d[2], half);
    g->plain = false;
}

/* Squeeze and excite: x * sigmoid(conv(mean of x)). */
static inline void graph_gate(graph *g, const graph_value *from)
{
    const graph_value x = *from;
    int mean = graph_name(g), s = graph_name(g), y = graph_name(g);
    graph_put(g, "%%v%d = GlobalAveragePool(%%v%d)\n", mean, x.name);
    graph_value m = {mean, {x.d[0], x.d[1], 1, 1}, false};
    char dims[60];
    snprintf(dims, sizeof dims, "%lld,%lld,1,1", (long long)x.d[1], (long long)x.d[1]);
    int w = graph_weights(g, dims, x.d[1]), c = graph_name(g);
    graph_put(g, "%%v%d = Conv(%%v%d, %%w%d)\n%%v%d = %s(%%v%d)\n", c, m.name, w, s,
              graph_random(g, 2) ? "Sigmoid" : "HardSigmoid", c);
    graph_put(g, "%%v%d = Mul(%%v%d, %%v%d)\n", y, x.name, s);
    graph_add(g, y, x.d[0], x.d[1], x.d[2], x.d[3]);
    g->plain = false;
}

/* A subgraph that reads a value of the graph around it, and has fused steps of its own. */
static inline void graph_branch(graph *g, const graph_value *from)
{
    const graph_value x = *from;
    char dims[100], kernel[60];
    snprintf(dims, sizeof dims, "%lld,%lld,%lld,%lld", (long long)x.d[0], (long long)x.d[1],
             (long long)x.d[2], (long long)x.d[3]);
    snprintf(kernel, sizeof kernel, "%lld,1,3,3", (long long)x.d[1]);
    int w = graph_weights(g, kernel, 9), y = graph_name(g);
    graph_put(g,
              "%%v%d : float32[%s] = If(%%cond) {then_branch=graph t%d {\nouter %%v%d : "
              "float32[%s]\nouter %%w%d : float32[%s]\n",
              y, dims, y, x.name, dims, w, kernel);
    graph_put(g,
              "%%c%d = Conv(%%v%d, %%w%d) {group=%lld, pads=[1, 1, 1, 1]}\n%%r%d : float32[%s] = "
              "Relu(%%c%d)\noutput %%r%d\n}, ",
              y, x.name, w, (long long)x.d[1], y, dims, y, y);
    graph_put(g,
              "else_branch=graph f%d {\nouter %%v%d : float32[%s]\n%%n%d = Neg(%%v%d)\n%%m%d : "
              "float32[%s] = Sigmoid(%%n%d)\noutput "
              "%%m%d\n}}\n",
              y, x.name, dims, y, x.name, y, dims, y, y);
    graph_add(g, y, x.d[0], x.d[1], x.d[2], x.d[3]);
    g->plain = false;
}

/* ---- the whole ---- */

static inline void graph_grow(graph *g)
{
    const graph_value x = *graph_pick(g);
    switch (graph_random(g, 26)) {
    default: graph_conv(g, &x, 0, false, false); break;
    case 5:
    case 6: graph_conv(g, &x, 0, false, true); break;
    case 7: graph_deconv(g, &x); break;
    case 8: graph_pool(g, &x); break;
    case 9:
    case 10: graph_norm(g, &x); break;
    case 11:
    case 12:
    case 13: graph_activation(g, &x); break;
    case 14: graph_affine(g, &x); break;
    case 15:
    case 16:
        if (!graph_sum(g, &x)) graph_residual(g, &x);
        break;
    case 17:
    case 18: graph_residual(g, &x); break;
    case 19:
    case 20: graph_concat(g, &x); break;
    case 21:
    case 22: graph_slice(g, &x); break;
    case 23: graph_resize(g, &x); break;
    case 24:
        if (graph_random(g, 2))
            graph_attention(g, &x);
        else
            graph_gate(g, &x);
        break;
    case 25:
        if (graph_random(g, 2))
            graph_branch(g, &x);
        else {
            g->plain = false;
            graph_unary(g, "Softmax", &x, graph_random(g, 2) ? " {axis=1}" : " {axis=-1}");
        }
        break;
    }
}

/* Its inputs: %cond (bool) and %v0. The last value is an output, and some others. */
static inline void graph_make(graph *g, uint64_t seed, bool wide)
{
    memset(g, 0, sizeof *g);
    g->state = seed * 2654435761u + 12345;
    g->plain = true;
    g->wide = wide;
    (void)graph_random(g, 2);
    int64_t c = graph_channels(g), h = wide ? graph_between(g, 24, 40) : graph_between(g, 5, 17),
            w = graph_between(g, 5, 17);
    int64_t n = graph_random(g, 3) ? 1 : 2;
    int steps = graph_between(g, 2, 9);
    graph_put(g, "input %%cond : bool[]\ninput %%v0 : float32[%lld,%lld,%lld,%lld]\n", (long long)n,
              (long long)c, (long long)h, (long long)w);
    graph_add(g, graph_name(g), n, c, h, w);
    for (int k = 0; k < steps || g->n < 2; k++) graph_grow(g);
    g->v[g->n - 1].is_output = true;
    for (int k = 1; k < g->n; k++)
        if (g->v[k].is_output || (graph_random(g, 6) == 0 && g->outputs < GRAPH_OUTPUTS - 2)) {
            graph_put(g, "output %%v%d\n", g->v[k].name);
            g->v[k].is_output = true;
            g->outputs++;
        }
    if (graph_random(g, 8) == 0) { /* one of them again */
        graph_put(g, "output %%v%d\n", g->v[g->n - 1].name);
        g->outputs++;
    }
}

/* ---- running ---- */

typedef struct graph_run {
    ot_diag d;
    ot_model *m;
    ot_session *s;
    ot_nd out[GRAPH_OUTPUTS];
    bool mine; /* memory of the outputs is the test's */
} graph_run;

/* Session and one run; where `places`, outputs go to memory of the test's. */
static inline ot_status graph_open(graph_run *r, ot_model *m, ot_session_options o)
{
    r->m = m;
    return ot_session_new(m, &o, &r->d, &r->s);
}

static inline void graph_input(const graph *g, float *x, uint64_t seed)
{
    uint64_t state = seed * 77 + 1;
    int64_t n = g->v[0].d[0] * g->v[0].d[1] * g->v[0].d[2] * g->v[0].d[3];
    for (int64_t k = 0; k < n; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[k] = (float)(int)((state >> 33) % 4001) / 1000.0f - 2.0f;
    }
}

static inline ot_status graph_execute(graph_run *r, const graph *g, float *x, bool cond,
                                      bool places)
{
    ot_nd in[2] = {over(OT_BOOL, &cond, 0, NULL), over(OT_F32, x, 4, g->v[0].d)};
    uint32_t n = ot_session_outputs(r->s);
    memset(r->out, 0, sizeof r->out);
    for (uint32_t k = 0; places && k < n; k++) {
        const ot_value *v = ot_session_output(r->s, k);
        int64_t bytes;
        if (!ot_value_is_static(v) || v->rank != 4 || v->dtype != OT_F32)
            fail_msg("the shape of %s is not known\n%s", v->name, g->text);
        assert_true(ot_nd_bytes(v->dtype, (uint32_t)v->rank, v->dims, &bytes));
        r->out[k] = over(OT_F32, malloc((size_t)bytes + 1), 4, v->dims);
    }
    r->mine = places;
    return ot_session_run(r->s, in, r->out, &r->d);
}

static inline void graph_drop_outputs(graph_run *r)
{
    for (uint32_t k = 0; r->mine && k < GRAPH_OUTPUTS; k++) free(r->out[k].data);
    r->mine = false;
}

static inline void graph_close(graph_run *r)
{
    graph_drop_outputs(r);
    ot_session_free(r->s);
    ot_model_free(r->m);
}

/* Network `seed` and what the reference kernels make of it. Returns its input; free it, close ref.
 */
static inline float *graph_reference(graph *g, unsigned seed, bool wide, bool cond, graph_run *ref)
{
    *ref = (graph_run){.m = NULL};
    graph_make(g, seed, wide);
    float *x = malloc((size_t)(g->v[0].d[0] * g->v[0].d[1] * g->v[0].d[2] * g->v[0].d[3]) *
                      sizeof *x);
    assert_non_null(x);
    graph_input(g, x, seed);
    if (graph_open(ref, text_model(g->text, &ref->d), (ot_session_options){.reference = true}) !=
            OT_OK ||
        graph_execute(ref, g, x, cond, false) != OT_OK)
        fail_msg("seed %u: reference: %s\n%s", seed, ref->d.message, g->text);
    return x;
}

/* Sum of squared differences by the sum of squares. */
static inline double graph_error(const ot_nd *want, const ot_nd *got)
{
    int64_t n = 0;
    double off = 0, all = 1e-30;
    if (!ot_nd_same_shape(want, got->dtype, got->rank, got->dims) || !ot_nd_elems(want, &n))
        return INFINITY;
    for (int64_t k = 0; k < n; k++) {
        double a = (double)((const float *)want->data)[k],
               b = (double)((const float *)got->data)[k];
        off += (a - b) * (a - b);
        all += a * a;
    }
    return isnan(off) ? INFINITY : off / all;
}

#endif
