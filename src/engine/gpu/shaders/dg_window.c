/* Windows over at most three spatial axes: what convolutions and pools share, pools, transposed
 * convolutions.
 *
 *   x [N, C, H, W]  is taken for  [N, C, 1, H, W]; kernels of the axes that a model lacks are 1
 */
#include "dg_internal.h"

/* ---- attributes ---- */

static bool window_ints(dg_build *b, const ot_node *n, const char *name, uint32_t spatial,
                        int64_t dflt, int64_t out[3])
{
    size_t have = 0;
    const int64_t *v = ot_attr_ints(n, name, &have);
    for (uint32_t k = 0; k < 3; k++) out[k] = dflt;
    if (!v || have == 0) return true;
    if (have != spatial) return dg_refuse(b, "an attribute of another length");
    for (uint32_t k = 0; k < spatial; k++) out[3 - spatial + k] = v[k];
    return true;
}

/* Border before the first element: as stated, or what SAME_* makes of it. */
static bool window_pads(dg_build *b, const ot_node *n, bool pool, dg_window *w)
{
    const char *mode = ot_attr_str(n, "auto_pad", "NOTSET");
    bool upper = strcmp(mode, "SAME_UPPER") == 0, lower = strcmp(mode, "SAME_LOWER") == 0;
    size_t have = 0;
    const int64_t *pads = ot_attr_ints(n, "pads", &have);
    bool stated = !upper && !lower && strcmp(mode, "VALID") != 0 && pads &&
                  have == 2 * (size_t)w->n;
    if (stated)
        for (uint32_t k = 0; k < w->n; k++) {
            w->lo[3 - w->n + k] = pads[k];
            w->hi[3 - w->n + k] = pads[w->n + k];
        }
    for (uint32_t k = 3 - w->n; k < 3 && (upper || lower); k++) {
        if (pool && w->dilation[k] != 1) return dg_refuse(b, "a dilated pool with auto_pad");
        int64_t all = (w->out[k] - 1) * w->stride[k] + (w->kernel[k] - 1) * w->dilation[k] + 1 -
                      w->in[k];
        if (!pool) all = ot_max(0, all);
        w->lo[k] = (upper ? all : all + 1) / 2;
        w->hi[k] = all - w->lo[k];
    }
    return true;
}

ot_nd dg_five_axes(const ot_nd *x)
{
    ot_nd y = *x;
    uint32_t lacking = 5 - x->rank;
    for (uint32_t k = 0; k < 3; k++) {
        bool there = k >= lacking;
        y.dims[2 + k] = there ? x->dims[2 + k - lacking] : 1;
        y.strides[2 + k] = there ? x->strides[2 + k - lacking] : 0;
    }
    y.rank = 5;
    return y;
}

bool dg_window_read(dg_build *b, const ot_node *n, const ot_nd *x, const ot_nd *weights,
                    const ot_nd *y, dg_window *w)
{
    if (weights && weights->rank != x->rank) return dg_refuse(b, DG_CONTRADICT);
    *w = (dg_window){.kernel = {1, 1, 1}, .in = {1, 1, 1}, .out = {1, 1, 1}};
    if (x->rank < 3 || x->rank > 5 || y->rank != x->rank)
        return dg_refuse(b, "more than three spatial axes");
    w->n = x->rank - 2;
    for (uint32_t k = 0; k < w->n; k++) {
        w->in[3 - w->n + k] = x->dims[2 + k];
        w->out[3 - w->n + k] = y->dims[2 + k];
    }
    if (weights)
        for (uint32_t k = 0; k < w->n; k++) w->kernel[3 - w->n + k] = weights->dims[2 + k];
    else if (!window_ints(b, n, "kernel_shape", w->n, 1, w->kernel))
        return false;
    if (!window_ints(b, n, "strides", w->n, 1, w->stride) ||
        !window_ints(b, n, "dilations", w->n, 1, w->dilation))
        return false;
    for (uint32_t k = 0; k < 3; k++)
        if (w->kernel[k] < 1 || w->stride[k] < 1 || w->dilation[k] < 1)
            return dg_refuse(b, "an impossible window");
    return window_pads(b, n, !weights, w);
}

int64_t dg_window_elements(const ot_nd *in, const dg_window *w)
{
    int64_t n = in->dims[0] * in->dims[1];
    for (uint32_t k = 0; k < 3; k++) {
        const int64_t end = (w->out[k] - 1) * w->stride[k] + (w->kernel[k] - 1) * w->dilation[k] +
                            1 - w->lo[k];
        n *= ot_max(0, ot_min(ot_min(in->dims[2 + k], end), w->out[k] * w->kernel[k]));
    }
    return n;
}

bool dg_is_bias(const dg_build *b, const ot_node *n, int64_t maps)
{
    const ot_nd *x = dg_in(n, 2) == OT_NONE ? NULL : dg_nd(b, n->in[2]);
    return !x || (x->rank == 1 && x->dims[0] == maps);
}

/* ---- pools ---- */

static const char *const AXIS[3] = {"d", "h", "w"};

/* Loops over the elements of x under the window of the output element at coordinates s0..s2;
 * `each` is a line of their body. */
static void pool_loops(dg_build *b, const dg_window *w, const char *const out[5], uint32_t x,
                       const char *each)
{
    const char *at[5] = {out[0], out[1], "0", "0", "0"};
    for (uint32_t k = 0; k < 3; k++) {
        if (w->kernel[k] == 1 && w->stride[k] == 1 && w->lo[k] == 0) {
            at[2 + k] = out[2 + k];
            continue;
        }
        at[2 + k] = dg_fmt(b, "i%s", AXIS[k]);
        dg_line(b, "for (int k%s = 0; k%s < %lld; k%s++) {", AXIS[k], AXIS[k],
                (long long)w->kernel[k], AXIS[k]);
        dg_line(b, "const int i%s = %s * %lld - %s + k%s * %lld;", AXIS[k], out[2 + k],
                (long long)w->stride[k], dg_num(b, w->lo[k]), AXIS[k], (long long)w->dilation[k]);
        dg_line(b, "if (i%s < 0 || i%s >= %s) continue;", AXIS[k], AXIS[k], dg_num(b, w->in[k]));
    }
    dg_line(b, "const %s x = %s;", b->arrays[x].dtype == OT_F64 ? "double" : "float",
            dg_load(b, x, dg_index(b, x, at)));
    dg_line(b, "%s", each);
    for (uint32_t k = 0; k < 3; k++)
        if (strcmp(at[2 + k], out[2 + k]) != 0) dg_line(b, "}");
}

/* How many places an average divides by: those on the input, or those on the input and its pads. */
static void pool_count(dg_build *b, const dg_window *w, const char *const out[5], bool with_pads)
{
    dg_line(b, "float count = 1;");
    for (uint32_t k = 0; k < 3; k++) {
        if (w->kernel[k] == 1 && w->stride[k] == 1 && w->lo[k] == 0) continue;
        dg_line(b,
                "{ int c = 0; for (int k = 0; k < %lld; k++) { const int at = %s * %lld - %s + k * "
                "%lld; c += to_int(at >= %s && at < %s); } count *= c; }",
                (long long)w->kernel[k], out[2 + k], (long long)w->stride[k], dg_num(b, w->lo[k]),
                (long long)w->dilation[k], with_pads ? dg_num(b, -w->lo[k]) : "0",
                dg_num(b, with_pads ? w->in[k] + w->hi[k] : w->in[k]));
    }
}

/* Coordinates of the result as the group's array has them, from those of five axes. */
static void outer_coords(uint32_t rank, const char *const five[5], const char **coords)
{
    coords[0] = five[0];
    coords[1] = five[1];
    for (uint32_t k = 2; k < rank; k++) coords[k] = five[5 - rank + k];
}

static bool finish_element(dg_build *b, const ot_node *n, const ot_nd *y, const char *const five[5],
                           const char *value)
{
    const char *coords[OT_RANK_MAX];
    outer_coords(y->rank, five, coords);
    dg_element e = {.rank = y->rank, .dims = y->dims, .coords = coords};
    dg_element_var(b, &e, n->out[0], value);
    return dg_element_rest(b, &e, 1);
}

/* What the group stores: an array of the dims of its head's result, in the order in which
 * work-items go through it. */
static const ot_nd *stored(const dg_build *b) { return dg_nd(b, b->g->stores[0]); }

bool dg_pool(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]), *y = dg_nd(b, n->out[0]);
    const char *c[5];
    dg_window w;
    dg_type t;
    int64_t items;
    bool max = n->op == OT_OP_MaxPool;
    if (n->n_out > 1 && n->out[1] != OT_NONE) return dg_refuse(b, "indices of MaxPool");
    if (!dg_type_of(x->dtype, &t) || (!t.is_float && !max) || t.bits == 64)
        return dg_refuse(b, "a pool of this type");
    if (!t.is_float && ot_dtype_bytes(x->dtype) > 1) return dg_refuse(b, "a pool of this type");
    if (!dg_window_read(b, n, x, NULL, y, &w)) return false;
    if (x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1]) return dg_refuse(b, DG_CONTRADICT);
    if (!dg_steps(b, (double)w.kernel[0] * (1 + (double)w.kernel[1] * (1 + (double)w.kernel[2]))))
        return false;
    const ot_nd x5 = dg_five_axes(x), y5 = dg_five_axes(stored(b));
    if (!ot_nd_elems(y, &items) || items == 0) return dg_refuse(b, "an empty result");
    dg_begin(b, items);
    dg_split_as(b, "c", &y5, c);
    uint32_t in = dg_arg(b, n->in[0], &x5, false);
    dg_reads_at_most(b, in, dg_window_elements(&x5, &w));
    dg_line(b, "float y = %s;", max ? "-INFINITY" : "0");
    pool_loops(b, &w, c, in, max ? "y = !is_nan(y) && (x > y || is_nan(x)) ? x : y;" : "y += x;");
    if (!max) {
        pool_count(b, &w, c, ot_attr_int(n, "count_include_pad", 0) != 0);
        dg_line(b, "y /= count > 0 ? count : 1;");
    }
    if (!finish_element(b, n, y, c, "y")) return false;
    dg_end(b, items, 64, (double)items * (double)(w.kernel[0] * w.kernel[1] * w.kernel[2]));
    return !b->why;
}

/* ---- transposed convolution: each element of the result gathers what reaches it ---- */

/* Borders that follow from the result: what there would be without them, less what there is; fewer
 * than none are bias at the end. */
static void pads_of_result(const ot_node *n, dg_window *w)
{
    const bool upper = strcmp(ot_attr_str(n, "auto_pad", "NOTSET"), "SAME_UPPER") == 0;
    size_t have = 0;
    const int64_t *more = ot_attr_ints(n, "output_padding", &have);
    for (uint32_t k = 3 - w->n; k < 3; k++) {
        const int64_t last = have == w->n ? more[k + w->n - 3] : 0,
                      all = (w->in[k] - 1) * w->stride[k] + last +
                            (w->kernel[k] - 1) * w->dilation[k] + 1 - w->out[k];
        w->lo[k] = upper ? ot_max(0, all) / 2 : ot_max(0, all) - ot_max(0, all) / 2;
    }
}

bool dg_conv_transpose(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]), *wt = dg_nd(b, n->in[1]), *y = dg_nd(b, n->out[0]);
    const char *c[5], *at[5];
    dg_window w;
    int64_t group = ot_attr_int(n, "group", 1), items;
    if (!ot_dtype_is_real(x->dtype) || wt->dtype != x->dtype)
        return dg_refuse(b, "a convolution of this type");
    if (!dg_window_read(b, n, x, wt, y, &w)) return false;
    if (strncmp(ot_attr_str(n, "auto_pad", "NOTSET"), "SAME", 4) == 0 ||
        ot_attr_find(n, "output_shape"))
        pads_of_result(n, &w);
    if (group < 1 || wt->rank != x->rank || wt->dims[0] != x->dims[1] || x->dims[1] % group != 0 ||
        wt->dims[1] * group != y->dims[1] || y->dims[0] != x->dims[0] ||
        !dg_is_bias(b, n, y->dims[1]))
        return dg_refuse(b, DG_CONTRADICT);
    const ot_nd x5 = dg_five_axes(x), y5 = dg_five_axes(stored(b)), w5 = dg_five_axes(wt);
    int64_t in_maps = x->dims[1] / group, maps = wt->dims[1];
    if (!ot_nd_elems(y, &items) || items == 0) return dg_refuse(b, "an empty result");
    if (!dg_steps(b, (double)(w.kernel[0] * w.kernel[1]) * (double)w.kernel[2] *
                         (double)(in_maps + 3)))
        return false;
    dg_begin(b, items);
    dg_split_as(b, "c", &y5, c);
    uint32_t in = dg_arg(b, n->in[0], &x5, false), weights = dg_arg(b, n->in[1], &w5, false);
    dg_line(b, "const int first = %s / %s * %s, map = %s %% %s;", c[1], dg_num(b, maps),
            dg_num(b, in_maps), c[1], dg_num(b, maps));
    if (dg_in(n, 2) == OT_NONE)
        dg_line(b, "float y = 0;");
    else
        dg_line(b, "float y = %s;", dg_load(b, dg_arg(b, n->in[2], NULL, false), c[1]));
    for (uint32_t k = 0; k < 3; k++) {
        at[2 + k] = dg_fmt(b, "i%s", AXIS[k]);
        dg_line(b, "for (int k%s = 0; k%s < %lld; k%s++) {", AXIS[k], AXIS[k],
                (long long)w.kernel[k], AXIS[k]);
        dg_line(b, "const int at%s = %s + %s - k%s * %lld;", AXIS[k], c[2 + k], dg_num(b, w.lo[k]),
                AXIS[k], (long long)w.dilation[k]);
        dg_line(b, "if (at%s < 0 || at%s %% %lld != 0) continue;", AXIS[k], AXIS[k],
                (long long)w.stride[k]);
        dg_line(b, "const int i%s = at%s / %lld;", AXIS[k], AXIS[k], (long long)w.stride[k]);
        dg_line(b, "if (i%s >= %s) continue;", AXIS[k], dg_num(b, w.in[k]));
    }
    at[0] = c[0];
    at[1] = "(first + m)";
    dg_line(b, "for (int m = 0; m < %s; m++)", dg_num(b, in_maps));
    dg_line(b, "y += %s * %s;", dg_load(b, in, dg_index(b, in, at)),
            dg_load(b, weights,
                    dg_index(b, weights,
                             (const char *const[]){"(first + m)", "map", "kd", "kh", "kw"})));
    dg_line(b, "}\n}\n}");
    if (!finish_element(b, n, y, c, "y")) return false;
    dg_end(b, items, 64,
           2.0 * (double)items * (double)(in_maps * w.kernel[0] * w.kernel[1] * w.kernel[2]));
    return !b->why;
}
