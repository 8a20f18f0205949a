/* Products, convolutions, pools: a lane makes an element of the result, and all go through what
 * is summed up in step.
 *
 *   c = matmul(a, b)          c: M x N  a: extents M, N; strides row, 0; an axis of K that shifts
 *                             by a column
 *                                       b: extents M, N; strides 0, column; an axis of K that
 *                                       shifts by a row
 *   y = conv(x, w, stride=2, pad=1)     x: extents of y; strides image, 0, 2 rows, 2 columns;
 *                                       first index -1 -1 of a window; axes of
 *                                          the channels and of the kernel's places
 *                                       w: extents of y; strides 0, map, 0, 0; the same axes
 *
 * A window's places in the pads are not read. Maps of groups are walked as groups x maps of each.
 */
#include "kacc_internal.h"

#define SETTING_MAX (INT64_C(1) << 20)
#define STRIDE_MAX  (INT64_C(1) << 36)

typedef struct operation {
    kacc_walker *w;
    const ot_tk_stmt *s;
    const ot_tk_value *out;
    ot_diag d; /* of settings that are none: whoever runs the kernel says so */
    uint32_t n_in;
} operation;

static int64_t setting(operation *o, const char *name, int64_t other)
{
    const ot_tk_site at = {"", o->s, &o->d};
    int64_t x;
    return ot_tk_integer(&at, name, other, &x) == OT_OK ? x : other;
}

static bool settings(operation *o, const char *name, uint32_t n, int64_t other, int64_t least,
                     int64_t *out)
{
    const ot_tk_site at = {"", o->s, &o->d};
    bool ok = ot_tk_integers(&at, name, n, other, least, out) == OT_OK;
    for (uint32_t k = 0; k < n; k++) ok = ok && out[k] < SETTING_MAX;
    return ok;
}

static bool skip(operation *o, uint32_t n)
{
    o->w->skipped += n;
    return true;
}

/* ---- matrices ---- */

/* A factor of the product: `along` is the axis of the result that it has, 1 rows or 0 columns
 * from the last, the other one is summed up. */
static bool give_factor(operation *o, uint32_t v, bool turned, bool is_left, int64_t depth)
{
    kacc_layout p;
    const ot_tk_value *out = o->out;
    bool ok = kacc_locate(o->w, v, &p) && p.rank >= 2 && p.rank <= out->rank;
    if (!ok) return skip(o, 1);
    const uint32_t row = p.rank - (turned ? 1 : 2), col = p.rank - (turned ? 2 : 1);
    const uint32_t own = is_left ? row : col, summed = is_left ? col : row,
                   lane = out->rank - (is_left ? 2 : 1);
    kacc_walk x = kacc_walk_of(o->w, v, &p, false);
    x.rank = out->rank;
    memcpy(x.extent, out->dims, x.rank * sizeof *x.extent);
    x.stride[lane] = p.stride[own];
    ok = p.dims[own] == out->dims[lane] && p.dims[summed] == depth;
    for (uint32_t d = 0; ok && d + 2 < p.rank; d++) {
        const uint32_t to = d + out->rank - p.rank;
        ok = p.dims[d] == 1 || p.dims[d] == out->dims[to];
        x.stride[to] = p.dims[d] == 1 ? 0 : p.stride[d];
    }
    if (!ok) return skip(o, 1);
    x.axes[x.n_axes++] = (kacc_axis){.count = depth, .shift = p.stride[summed]};
    return kacc_give(o->w, &x, &p, NULL);
}

/* Factors are inputs number `left` and the one behind it, the rest is added. */
static bool give_matmul(operation *o, uint32_t left)
{
    if (o->n_in < left + 2 || o->out->rank < 2) return skip(o, o->n_in);
    const ot_tk_value *a = &o->w->k->values[o->s->in[left]];
    const bool turned_a = setting(o, "transpose_a", 0) != 0,
               turned_b = setting(o, "transpose_b", 0) != 0;
    if (a->rank < 2) return skip(o, o->n_in);
    const int64_t depth = a->dims[a->rank - (turned_a ? 2 : 1)];
    for (uint32_t j = 0; j < o->n_in; j++) {
        const uint32_t v = o->s->in[j];
        bool ok = j == left       ? give_factor(o, v, turned_a, true, depth)
                  : j == left + 1 ? give_factor(o, v, turned_b, false, depth)
                                  : kacc_give_broadcast(o->w, v, o->out->dims, o->out->rank);
        if (!ok) return false;
    }
    return true;
}

/* ---- windows ---- */

typedef struct window {
    uint32_t n; /* spatial axes */
    int64_t kernel[OT_TK_RANK_MAX], stride[OT_TK_RANK_MAX], dilation[OT_TK_RANK_MAX],
        pad[2 * OT_TK_RANK_MAX];
} window;

/* The settings, and whether in and out have the shapes that they make. kernel is set. */
static bool read_window(operation *o, const ot_tk_value *x, window *s)
{
    if (x->rank < 3 || x->rank != o->out->rank || x->dims[0] != o->out->dims[0]) return false;
    if (!settings(o, "stride", s->n, 1, 1, s->stride) ||
        !settings(o, "dilation", s->n, 1, 1, s->dilation) ||
        !settings(o, "pad", 2 * s->n, 0, 0, s->pad))
        return false;
    for (uint32_t d = 0; d < s->n; d++) {
        int64_t reach, room;
        if (s->kernel[d] < 1 || s->kernel[d] >= SETTING_MAX ||
            !ot_mul_i64(s->kernel[d] - 1, s->dilation[d], &reach))
            return false;
        room = x->dims[2 + d] + s->pad[d] + s->pad[s->n + d] - reach - 1;
        if (room < 0 || room / s->stride[d] + 1 != o->out->dims[2 + d]) return false;
    }
    return true;
}

/* Lanes over images, maps in `groups` x the rest, places. */
static bool lanes_of(const operation *o, int64_t groups, kacc_walk *x)
{
    const ot_tk_value *out = o->out;
    const bool split = groups > 1;
    if (out->rank + split > OT_TK_RANK_MAX) return false;
    x->rank = 0;
    x->extent[x->rank++] = out->dims[0];
    if (split) x->extent[x->rank++] = groups;
    x->extent[x->rank++] = out->dims[1] / groups;
    for (uint32_t d = 2; d < out->rank; d++) x->extent[x->rank++] = out->dims[d];
    return true;
}

/* What looks through the window: depth channels of a map's group, or with depth 0 the map's own. */
static bool give_seen(operation *o, uint32_t v, const window *s, int64_t groups, int64_t depth)
{
    kacc_layout p;
    if (!kacc_locate(o->w, v, &p)) return skip(o, 1);
    kacc_walk x = kacc_walk_of(o->w, v, &p, false);
    if (!lanes_of(o, groups, &x)) return skip(o, 1);
    const uint32_t first = x.rank - s->n;
    for (uint32_t d = 0; d < p.rank; d++)
        if (p.stride[d] > STRIDE_MAX) return skip(o, 1);
    x.stride[0] = p.stride[0];
    if (depth == 0)
        x.stride[1] = p.stride[1];
    else if (groups > 1)
        x.stride[1] = depth * p.stride[1];
    x.is_window = true;
    for (uint32_t d = 0; d < x.rank; d++) {
        x.limit[d] = x.extent[d];
        x.each[d] = 1;
    }
    if (depth > 0) x.axes[x.n_axes++] = (kacc_axis){.count = depth, .shift = p.stride[1]};
    for (uint32_t d = 0; d < s->n; d++) {
        const uint32_t at = first + d;
        x.stride[at] = s->stride[d] * p.stride[2 + d];
        x.each[at] = s->stride[d];
        x.limit[at] = p.dims[2 + d];
        x.first[at] = -s->pad[d];
        x.start -= s->pad[d] * p.stride[2 + d];
        x.axes[x.n_axes] = (kacc_axis){.count = s->kernel[d],
                                       .shift = s->dilation[d] * p.stride[2 + d]};
        x.axes[x.n_axes++].first[at] = s->dilation[d];
    }
    return kacc_give(o->w, &x, &p, NULL);
}

/* Weights: maps x depth x kernel. */
static bool give_weights(operation *o, uint32_t v, const window *s)
{
    kacc_layout p;
    if (!kacc_locate(o->w, v, &p)) return skip(o, 1);
    kacc_walk x = kacc_walk_of(o->w, v, &p, false);
    lanes_of(o, 1, &x);
    x.stride[1] = p.stride[0];
    x.axes[x.n_axes++] = (kacc_axis){.count = p.dims[1], .shift = p.stride[1]};
    for (uint32_t d = 0; d < s->n; d++)
        x.axes[x.n_axes++] = (kacc_axis){.count = s->kernel[d], .shift = p.stride[2 + d]};
    return kacc_give(o->w, &x, &p, NULL);
}

/* One element a map. */
static bool give_bias(operation *o, uint32_t v)
{
    kacc_layout p;
    if (!kacc_locate(o->w, v, &p)) return skip(o, 1);
    kacc_walk x = kacc_walk_of(o->w, v, &p, false);
    lanes_of(o, 1, &x);
    for (uint32_t d = 0; d < p.rank; d++)
        if (p.dims[d] == o->out->dims[1]) x.stride[1] = p.stride[d];
    return kacc_give(o->w, &x, &p, NULL);
}

static bool give_conv(operation *o)
{
    if (o->n_in < 2 || o->n_in > 3) return skip(o, o->n_in);
    const ot_tk_value *x = &o->w->k->values[o->s->in[0]], *w = &o->w->k->values[o->s->in[1]];
    const int64_t groups = setting(o, "group", 1);
    window s = {.n = x->rank - 2};
    if (x->rank < 3 || w->rank != x->rank) return skip(o, o->n_in);
    memcpy(s.kernel, w->dims + 2, s.n * sizeof *s.kernel);
    if (groups < 1 || x->dims[1] % groups != 0 || x->dims[1] / groups != w->dims[1] ||
        w->dims[0] % groups != 0 || !read_window(o, x, &s) || w->dims[0] != o->out->dims[1])
        return skip(o, o->n_in);
    if (!give_seen(o, o->s->in[0], &s, groups, w->dims[1]) || !give_weights(o, o->s->in[1], &s))
        return false;
    return o->n_in < 3 || give_bias(o, o->s->in[2]);
}

static bool give_pool(operation *o)
{
    const ot_tk_value *x = &o->w->k->values[o->s->in[0]];
    window s = {.n = x->rank - 2};
    if (o->n_in != 1 || x->rank < 3 || !settings(o, "kernel", s.n, 0, 1, s.kernel) ||
        !read_window(o, x, &s) || x->dims[1] != o->out->dims[1])
        return skip(o, o->n_in);
    return give_seen(o, o->s->in[0], &s, 1, 0);
}

/* ---- all ---- */

/* Inputs but descriptors, which say where the others are. */
static uint32_t inputs_of(const ot_kernel *k, const ot_tk_stmt *s)
{
    uint32_t n = 0;
    while (n < s->n_in && k->values[ot_tk_root(k, s->in[n], NULL)].scope != OT_SCOPE_DESCRIPTOR)
        n++;
    return n;
}

bool kacc_give_product(kacc_walker *w, const ot_tk_stmt *s, const char *key, bool *known)
{
    static const struct {
        const char *name;
        enum { MATMUL, ACCUMULATE, CONV, POOL } kind;
    } ops[] = {{"matmul", MATMUL}, {"gemm", MATMUL},           {"mmad", MATMUL},
               {"mma", MATMUL},    {"accumulate", ACCUMULATE}, {"conv", CONV},
               {"maxpool", POOL},  {"averagepool", POOL}};
    operation o = {.w = w, .s = s, .out = &w->k->values[s->out[0]], .n_in = inputs_of(w->k, s)};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        if (strcmp(ops[k].name, key) != 0) continue;
        *known = true;
        w->skipped += s->n_in - o.n_in;
        switch (ops[k].kind) {
        case MATMUL: return give_matmul(&o, 0);
        case ACCUMULATE: return give_matmul(&o, 1);
        case CONV: return give_conv(&o);
        case POOL: return give_pool(&o);
        }
    }
    return true;
}
