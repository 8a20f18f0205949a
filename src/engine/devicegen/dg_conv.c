/* Convolution: a work-item makes LANES neighbours along the last axis of MAPS output channels, in vectors.
 *
 *   for channels, taps     x  = LANES inputs                 one load, whole inside of the picture, lane by lane at its border
 *                          acc[j] += weight[j] * x           MAPS products
 *   then                   the nodes behind the convolution, element by element
 *
 * Each input is read once for MAPS results, each weight once for LANES. A convolution of single elements has no border: its rows are one
 * long row where the arrays allow it.
 */
#include "dg_internal.h"

typedef struct conv {
    const ot_node *n;
    dg_window w;
    ot_nd x, weights, y; /* of five axes; rows joined where `flat` */
    bool flat;
    int64_t group, in_maps, maps; /* channels of a group: of x, of y */
    uint32_t lanes, block;        /* block: output channels of a work-item */
    const char *coords[5];        /* of the first element: batch, channel, ... */
    uint32_t in, wt;              /* arguments */
} conv;

/* ---- what is chosen ---- */

/* Are the last two axes those of y, rows without holes between them, or both repeated? */
static bool rows_join(const ot_nd *x, const ot_nd *y)
{
    if (x->rank < 2) return x->rank == 0 || x->dims[0] == 1;
    uint32_t h = x->rank - 2, w = x->rank - 1;
    if (x->dims[h] == 1 && x->dims[w] == 1) return true;
    return x->dims[h] == y->dims[y->rank - 2] && x->dims[w] == y->dims[y->rank - 1] && x->strides[h] == x->dims[w] * x->strides[w];
}

static bool is_flat(const dg_build *b, const conv *c)
{
    const dg_window *w = &c->w;
    for (uint32_t k = 0; k < 3; k++)
        if (w->kernel[k] != 1 || w->stride[k] != 1 || w->lo[k] != 0 || w->hi[k] != 0) return false;
    if (w->n < 2 || !rows_join(&c->x, &c->y) || !rows_join(&c->y, &c->y)) return false;
    if (c->y.dims[4] == 1) return false; /* no coordinate to count on in */
    for (uint32_t k = 1; k < b->g->n_nodes; k++) {
        const ot_node *n = b->g->nodes[k];
        for (uint32_t j = 0; j < n->n_in + n->n_out; j++) {
            ot_id v = j < n->n_in ? n->in[j] : n->out[j - n->n_in];
            const ot_nd *x = v == OT_NONE ? NULL : dg_nd(b, v);
            bool by_channel = n->op == OT_OP_BatchNormalization && j > 0 && j < n->n_in;
            if (x && !by_channel && !rows_join(x, &c->y)) return false;
        }
    }
    return true;
}

static void join_rows(ot_nd *x)
{
    x->dims[4] *= x->dims[3];
    x->dims[3] = 1;
}

static void choose_blocks(conv *c)
{
    int64_t row = c->y.dims[4];
    c->lanes = row >= 5 ? 8 : row >= 3 ? 4 : 1;
    c->block = 8;
    while (c->maps % c->block != 0) c->block /= 2;
}

/* ---- the sums ---- */

/* Inputs of the lanes: the first is at row position iw; `row`: index of the row's first element. */
static void load_lanes(dg_build *b, const conv *c, const char *row)
{
    const ot_nd *x = &b->arrays[c->in];
    const char *in = dg_num(b, c->w.in[2]), *step = dg_num(b, x->strides[4]);
    int64_t stride = c->w.stride[2];
    bool packed = x->strides[4] == 1 || x->dims[4] == 1;
    const char *index = packed ? dg_fmt(b, "%s + iw", row) : dg_fmt(b, "%s + iw * %s", row, step);
    if (c->lanes == 1) {
        dg_line(b, "if (iw < 0 || iw >= %s) continue;\nconst float x = %s;", in, dg_load(b, c->in, index));
        return;
    }
    dg_line(b, "%s x;", dg_vector(b, c->lanes));
    dg_line(b, "const int at = %s;", row);
    dg_line(b, "if (iw >= 0 && iw + %lld < %s) {", (long long)((c->lanes - 1) * stride), in);
    bool whole = packed && stride == 1 && (x->dtype == OT_F32 || x->dtype == OT_F16);
    if (whole) dg_line(b, "x = %s;", dg_load_lanes(b, c->in, c->lanes, "at + iw"));
    for (uint32_t l = 0; l < c->lanes && !whole; l++)
        dg_line(b, "x.s%u = %s;", l, dg_load(b, c->in, dg_fmt(b, "at + (iw + %lld) * %s", (long long)(l * stride), step)));
    dg_line(b, "} else {");
    for (uint32_t l = 0; l < c->lanes; l++) {
        const char *w = dg_fmt(b, "iw + %lld", (long long)(l * stride));
        dg_line(b, "x.s%u = %s >= 0 && %s < %s ? %s : 0;", l, w, w, in, dg_load(b, c->in, dg_fmt(b, "at + (%s) * %s", w, step)));
    }
    dg_line(b, "}");
}

static void open_axis(dg_build *b, const conv *c, uint32_t k, const char *name, const char *out)
{
    const dg_window *w = &c->w;
    dg_line(b, "for (int k%s = 0; k%s < %lld; k%s++) {", name, name, (long long)w->kernel[k], name);
    dg_line(b, "const int i%s = %s * %lld - %s + k%s * %lld;", name, out, (long long)w->stride[k], dg_num(b, w->lo[k]), name,
            (long long)w->dilation[k]);
    if (k < 2 && w->n >= 3 - k) dg_line(b, "if (i%s < 0 || i%s >= %s) continue;", name, name, dg_num(b, w->in[k]));
}

static void sums(dg_build *b, conv *c)
{
    const char *v = dg_vector(b, c->lanes), *bias = dg_in(c->n, 2) == OT_NONE ? NULL : "bias";
    dg_line(b, "%s acc[%u];", v, c->block);
    if (bias) {
        uint32_t arg = dg_arg(b, c->n->in[2], NULL, false);
        dg_line(b, "for (int j = 0; j < %u; j++) acc[j] = splat%u(%s);", c->block, c->lanes,
                dg_load(b, arg, dg_fmt(b, "%s + j", c->coords[1])));
    } else {
        dg_line(b, "for (int j = 0; j < %u; j++) acc[j] = splat%u(0);", c->block, c->lanes);
    }
    const char *first = c->group == 1 ? "0" : dg_fmt(b, "%s / %s * %s", c->coords[1], dg_num(b, c->maps), dg_num(b, c->in_maps));
    dg_line(b, "const int first = %s;", first);
    dg_line(b, "for (int m = 0; m < %s; m++) {", dg_num(b, c->in_maps));
    open_axis(b, c, 0, "d", c->coords[2]);
    open_axis(b, c, 1, "h", c->coords[3]);
    open_axis(b, c, 2, "w", "ow");
    const char *row = dg_index(b, c->in, (const char *const[]){c->coords[0], "(first + m)", "id", "ih", "0"});
    load_lanes(b, c, row);
    const char *wt = dg_index(b, c->wt, (const char *const[]){dg_fmt(b, "(%s + j)", c->coords[1]), "m", "kd", "kh", "kw"});
    dg_line(b, "for (int j = 0; j < %u; j++) acc[j] = madd(%s, x, acc[j]);\n}\n}\n}\n}", c->block, dg_load(b, c->wt, wt));
}

/* ---- what follows ---- */

static bool finish(dg_build *b, conv *c)
{
    const ot_nd *y = dg_nd(b, c->n->out[0]);
    const char *coords[OT_RANK_MAX];
    bool plain = b->g->n_nodes == 1 && c->y.dtype == OT_F32 && c->lanes > 1 && c->y.strides[4] == 1;
    uint32_t out = plain ? dg_arg(b, c->n->out[0], &c->y, true) : 0;
    const char *row = dg_num(b, c->y.dims[4]);
    dg_line(b, "for (int j = 0; j < %u; j++) {", c->block);
    const char *map = dg_fmt(b, "(%s + j)", c->coords[1]);
    if (plain) {
        dg_line(b, "if (ow + %u <= %s) {", c->lanes, row);
        const char *at = dg_index(b, out, (const char *const[]){c->coords[0], map, c->coords[2], c->coords[3], "ow"});
        dg_store_lanes(b, out, c->lanes, at, "acc[j]");
        dg_line(b, "continue;\n}");
    }
    if (c->lanes > 1) {
        dg_line(b, "float lane[%u];\nspread%u(acc[j], lane);", c->lanes, c->lanes);
        dg_line(b, "for (int l = 0; l < %u && ow + l < %s; l++) {", c->lanes, row);
    } else {
        dg_line(b, "{\nconst int l = 0;");
    }
    const char *five[5] = {c->coords[0], map, c->coords[2], c->coords[3], "(ow + l)"};
    coords[0] = five[0];
    coords[1] = five[1];
    for (uint32_t k = 2; k < y->rank; k++) coords[k] = five[5 - y->rank + k];
    dg_element e = {.rank = y->rank, .dims = y->dims, .coords = coords};
    dg_element_var(b, &e, c->n->out[0], c->lanes > 1 ? "lane[l]" : "acc[j]");
    if (!dg_element_rest(b, &e, 1)) return false;
    dg_line(b, "}\n}");
    return true;
}

static bool open_conv(dg_build *b, const ot_node *n, conv *c)
{
    const ot_nd *x = dg_nd(b, n->in[0]), *wt = dg_nd(b, n->in[1]), *y = dg_nd(b, n->out[0]);
    *c = (conv){.n = n, .group = ot_attr_int(n, "group", 1)};
    if (!ot_dtype_is_real(x->dtype) || wt->dtype != x->dtype || wt->rank != x->rank)
        return dg_refuse(b, "a convolution of this type");
    if (!dg_window_read(b, n, x, wt, y, &c->w)) return false;
    if (c->group < 1 || y->dims[1] % c->group != 0 || wt->dims[1] * c->group != x->dims[1] || wt->dims[0] != y->dims[1])
        return dg_refuse(b, "channels that do not match");
    if (y->dims[0] != x->dims[0] || !dg_is_bias(b, n, y->dims[1])) return dg_refuse(b, DG_CONTRADICT);
    c->x = dg_five_axes(x);
    c->y = dg_five_axes(y);
    c->weights = dg_five_axes(wt);
    c->in_maps = wt->dims[1];
    c->maps = y->dims[1] / c->group;
    c->flat = is_flat(b, c);
    if (c->flat) {
        join_rows(&c->x);
        join_rows(&c->y);
        c->w.in[2] *= c->w.in[1];
        c->w.in[1] = 1;
    }
    choose_blocks(c);
    const int64_t *kernel = c->w.kernel;
    return dg_steps(b, (double)c->in_maps * (1 + (double)kernel[0] * (1 + (double)kernel[1] * (1 + (double)kernel[2]))));
}

bool dg_conv(dg_build *b, const ot_node *n)
{
    conv c;
    if (!open_conv(b, n, &c)) return false;
    int64_t dims[5] = {c.y.dims[0], c.y.dims[1] / c.block, c.y.dims[2], c.y.dims[3], ot_ceil_div(c.y.dims[4], c.lanes)};
    int64_t items, elems;
    if (!ot_product(dims, 5, &items) || items == 0 || !ot_nd_elems(dg_nd(b, n->out[0]), &elems))
        return dg_refuse(b, "an empty result");
    dg_begin(b, items);
    dg_split(b, "c", 5, dims, c.coords);
    dg_line(b, "const int ow = %s * %u;", c.coords[4], c.lanes);
    if (c.block > 1) {
        dg_line(b, "const int map = %s * %u;", c.coords[1], c.block);
        c.coords[1] = "map";
    }
    c.in = dg_arg(b, n->in[0], &c.x, false);
    if (!c.flat) dg_reads_at_most(b, c.in, dg_window_elements(&c.x, &c.w));
    c.wt = dg_arg(b, n->in[1], &c.weights, false);
    sums(b, &c);
    if (!finish(b, &c)) return false;
    const dg_window *w = &c.w;
    dg_end(b, items, 16, 2.0 * (double)elems * (double)(c.in_maps * w->kernel[0] * w->kernel[1] * w->kernel[2]));
    return !b->why;
}
