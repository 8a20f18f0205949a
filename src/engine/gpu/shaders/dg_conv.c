/* Convolution: a work-item makes LANES elements along the last axis of BLOCK output channels, in
 * vectors.
 *
 *   for taps, channels  x  = LANES inputs                 one load, whole inside of the picture,
 *                                                         lane by lane at its border
 *                       acc0 += weight[0] * x             BLOCK products
 *   then                the nodes behind the convolution, element by element
 *
 * Each input is read once for BLOCK results, each weight once for LANES. A convolution of single
 * elements has no border: its rows are one long row where the arrays allow it. Constant weights
 * are packed, [O/BLOCK][taps][channels][BLOCK], so that those of a work-item follow each other;
 * and the lanes are neighbours, or spread over the row (dg_access.c).
 */
#include "dg_conv.h"

typedef dg_convolution conv;

/* ---- what is chosen ---- */

/* Are the last two axes those of y, rows without holes between them, or both repeated? */
static bool rows_join(const ot_nd *x, const ot_nd *y)
{
    if (x->rank < 2) return x->rank == 0 || x->dims[0] == 1;
    uint32_t h = x->rank - 2, w = x->rank - 1;
    if (x->dims[h] == 1 && x->dims[w] == 1) return true;
    return x->dims[h] == y->dims[y->rank - 2] && x->dims[w] == y->dims[y->rank - 1] &&
           x->strides[h] == x->dims[w] * x->strides[w];
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

static bool may_fill(const dg_build *b, const conv *c, uint32_t block)
{
    const ot_nd *w = dg_nd(b, c->n->in[1]);
    if (!w->data || !ot_nd_is_dense(w) || b->target->layout.packs == OT_DG_NEVER) return false;
    return dg_may_fill(c->maps, block, c->group * c->maps * c->in_maps * dg_taps(c) * 4);
}

/* Reading a lane's input is as much work as two products. */
static void choose_block(const dg_build *b, conv *c)
{
    int64_t best = 0;
    for (uint32_t block = 8; block > 0; block /= 2) {
        const int64_t blocks = ot_ceil_div(c->maps, block), work = blocks * (block + 2);
        if (blocks * block != c->maps && !may_fill(b, c, block)) continue;
        if (best > 0 && work >= best) continue;
        best = work;
        c->block = block;
        c->blocks = blocks;
    }
}

static double items_of(const conv *c)
{
    return (double)(c->y.dims[0] * c->group * c->blocks) * (double)(c->y.dims[2] * c->y.dims[3]) *
           (double)ot_ceil_div(c->y.dims[4], c->lanes);
}

/* The same for a device that wants many work-items: lanes, too, where there would be few. */
static void choose_shape(const dg_build *b, conv *c)
{
    const uint32_t widest = c->lanes;
    double best = 0;
    for (uint32_t lanes = widest; lanes > 0; lanes = lanes == 8 ? 4 : lanes == 4)
        for (uint32_t block = 8; block > 0; block /= 2) {
            conv x = *c;
            x.lanes = lanes;
            x.block = block;
            x.blocks = ot_ceil_div(c->maps, block);
            if (dg_fills_up(&x) && !may_fill(b, c, block)) continue;
            const double work = dg_work(b, items_of(&x), lanes, block);
            if (best > 0 && work >= best) continue;
            best = work;
            *c = x;
        }
}

enum { INPUT, WEIGHTS, RESULT, ACCESSES };

static void accesses(const conv *c, bool packs, bool spread, dg_access out[ACCESSES])
{
    const int64_t items = ot_ceil_div(c->y.dims[4], c->lanes), lane = spread ? items : 1,
                  item = spread ? 1 : c->lanes;
    const double times = (double)(c->in_maps * dg_taps(c));
    const int64_t in = c->w.stride[2] * c->x.strides[4], to = c->y.strides[4];
    out[INPUT] = (dg_access){c->x.dtype, times, c->lanes, in * lane, in * item};
    out[WEIGHTS] = (dg_access){c->x.dtype, times, c->block, packs ? 1 : c->weights.strides[0], 0};
    out[RESULT] = (dg_access){c->y.dtype, c->block, c->lanes, to * lane, to * item};
}

/* What a convolution makes of the row of its result, of its channels, of the device's layout. */
static void choose(dg_build *b, conv *c)
{
    dg_access plain[ACCESSES], laid[ACCESSES];
    const int64_t row = c->y.dims[4];
    c->lanes = row >= 5 ? 8 : row >= 3 ? 4 : 1;
    c->block = 8;
    while (c->maps % c->block != 0) c->block /= 2;
    c->blocks = c->maps / c->block;
    if (b->target->layout.busy > 0) choose_shape(b, c);
    accesses(c, false, false, plain);
    dg_count_plain(b, plain, ACCESSES, items_of(c));
    if (b->target->layout.busy == 0) choose_block(b, c);
    accesses(c, false, false, plain);
    accesses(c, true, true, laid);
    c->packs = c->block > 1 &&
               (dg_fills_up(c) || dg_packs(b, c->n->in[1], &plain[WEIGHTS], &laid[WEIGHTS]));
    b->spreads = c->lanes > 1 && dg_spreads(b, plain, laid, ACCESSES);
    c->span = b->spreads ? ot_ceil_div(row, c->lanes) : 1;
    accesses(c, c->packs, b->spreads, laid);
    dg_count(b, laid, ACCESSES, items_of(c));
}

/* ---- the sums ---- */

/* "iw + 3", "iw + 3 * span": where lane l of `first` is, `stride` elements of the array for one
 * of the result. */
static const char *lane_at(dg_build *b, const conv *c, const char *first, uint32_t l,
                           int64_t stride)
{
    if (l == 0) return first;
    return dg_fmt(b, c->span == 1 ? "%s + %lld" : "%s + %lld * span", first,
                  (long long)(l * stride));
}

/* Inputs of the lanes; the first is at position iw of its row, element `at`. */
static void load_lanes(dg_build *b, const conv *c, bool border)
{
    const ot_nd *x = &b->arrays[c->in];
    const int64_t stride = c->w.stride[2];
    const char *in = dg_num(b, c->w.in[2]), *step = dg_num(b, x->strides[4]);
    const bool packed = x->strides[4] == 1 || x->dims[4] == 1;
    if (c->lanes == 1) {
        dg_line(b, "const float x = %s;", dg_load(b, c->in, "at"));
        return;
    }
    dg_line(b, "%s x;", dg_vector(b, c->lanes));
    if (!border && packed && stride == 1 && c->span == 1 &&
        (x->dtype == OT_F32 || x->dtype == OT_F16)) {
        dg_line(b, "x = %s;", dg_load_lanes(b, c->in, c->lanes, "at"));
        return;
    }
    for (uint32_t l = 0; l < c->lanes; l++) {
        const char *more = lane_at(b, c, "0", l, stride), *w = lane_at(b, c, "iw", l, stride);
        const char *from = l == 0   ? "at"
                           : packed ? dg_fmt(b, "at + %s", more)
                                    : dg_fmt(b, "at + (%s) * %s", more, step);
        const char *value = dg_load(b, c->in, from);
        if (border)
            dg_line(b, "x.s%u = %s >= 0 && %s < %s ? %s : 0;", l, w, w, in, value);
        else
            dg_line(b, "x.s%u = %s;", l, value);
    }
}

void dg_conv_axis(dg_build *b, const conv *c, uint32_t k, const char *name, const char *out)
{
    const dg_window *w = &c->w;
    dg_line(b, "for (int k%s = 0; k%s < %lld; k%s++) {", name, name, (long long)w->kernel[k], name);
    dg_line(b, "const int i%s = %s * %lld - %s + k%s * %lld;", name, out, (long long)w->stride[k],
            dg_num(b, w->lo[k]), name, (long long)w->dilation[k]);
    if (k < 2 && w->n >= 3 - k)
        dg_line(b, "if (i%s < 0 || i%s >= %s) continue;", name, name, dg_num(b, w->in[k]));
}

/* All channels of a tap. */
static void sum_channels(dg_build *b, const conv *c, bool border)
{
    const ot_nd *wt = &b->arrays[c->wt];
    const char *map_step = dg_num(b, c->packs ? 1 : wt->strides[0]);
    dg_line(b, "for (int m = 0; m < %s; m++) {", dg_num(b, c->in_maps));
    load_lanes(b, c, border);
    for (uint32_t j = 0; j < c->block; j++) {
        const char *at = c->packs ? dg_fmt(b, "wt + %u", j)
                                  : dg_fmt(b, "wt + %u * %s", j, map_step);
        dg_line(b, "acc%u = madd(%s, x, acc%u);", j, dg_load(b, c->wt, j ? at : "wt"), j);
    }
    dg_line(b, "at += %s;\nwt += %s;\n}", dg_num(b, c->x.strides[1]),
            dg_num(b, c->packs ? c->block : wt->strides[1]));
}

/* Each sum begins as its channel's bias. */
static void open_sums(dg_build *b, const conv *c)
{
    const uint32_t bias = dg_in(c->n, 2) == OT_NONE ? 0 : dg_arg(b, c->n->in[2], NULL, false);
    for (uint32_t j = 0; j < c->block; j++) {
        const char *map = dg_fmt(b, "%s + %u", c->coords[1], j);
        if (dg_fills_up(c)) map = dg_fmt(b, "min(%s, %s)", map, dg_num(b, c->y.dims[1] - 1));
        dg_line(b, "%s acc%u = splat%u(%s);", dg_vector(b, c->lanes), j, c->lanes,
                dg_in(c->n, 2) == OT_NONE ? "0" : dg_load(b, bias, map));
    }
}

static const char *weight_index(dg_build *b, const conv *c, const char *block)
{
    const char *plain[5] = {c->coords[1], "0", "kd", "kh", "kw"};
    if (!c->packs) return dg_index(b, c->wt, plain);
    const char *tap = dg_fmt(b, "((kd * %lld + kh) * %lld + kw)", (long long)c->w.kernel[1],
                             (long long)c->w.kernel[2]);
    return dg_index(b, c->wt, (const char *const[]){block, tap, "0", "0"});
}

/* first: the group's first input channel; block: number of the work-item's block, of all. */
static void sums(dg_build *b, const conv *c, const char *first, const char *block)
{
    open_sums(b, c);
    dg_conv_axis(b, c, 0, "d", c->coords[2]);
    dg_conv_axis(b, c, 1, "h", c->coords[3]);
    dg_conv_axis(b, c, 2, "w", "ow");
    const char *row = dg_index(b, c->in,
                               (const char *const[]){c->coords[0], first, "id", "ih", "0"});
    const char *in = dg_num(b, c->w.in[2]);
    if (c->lanes == 1) dg_line(b, "if (iw < 0 || iw >= %s) continue;", in);
    dg_line(b, "int at = %s + iw * %s, wt = %s;", row, dg_num(b, b->arrays[c->in].strides[4]),
            weight_index(b, c, block));
    if (c->lanes > 1) {
        const char *last = lane_at(b, c, "iw", c->lanes - 1, c->w.stride[2]);
        dg_line(b, "if (iw >= 0 && %s < %s) {", last, in);
        sum_channels(b, c, false);
        dg_line(b, "} else {");
        sum_channels(b, c, true);
        dg_line(b, "}");
    } else {
        sum_channels(b, c, false);
    }
    dg_line(b, "}\n}\n}");
}

/* ---- what follows ---- */

bool dg_conv_rest(dg_build *b, const conv *c, const char *map, const char *at, const char *value)
{
    const ot_nd *y = dg_nd(b, c->n->out[0]);
    const char *five[5] = {c->coords[0], map, c->coords[2], c->coords[3], at}, *coords[OT_RANK_MAX];
    coords[0] = five[0];
    coords[1] = five[1];
    for (uint32_t k = 2; k < y->rank; k++) coords[k] = five[5 - y->rank + k];
    dg_element e = {.rank = y->rank, .dims = y->dims, .coords = coords};
    dg_element_var(b, &e, c->n->out[0], value);
    return dg_element_rest(b, &e, 1);
}

static bool finish(dg_build *b, conv *c)
{
    bool plain = b->g->n_nodes == 1 && c->y.dtype == OT_F32 && c->lanes > 1 && c->span == 1 &&
                 c->y.strides[4] == 1;
    uint32_t out = plain ? dg_arg(b, c->n->out[0], &c->y, true) : 0;
    const char *row = dg_num(b, c->y.dims[4]);
    dg_line(b, "%s sums[%u];", dg_vector(b, c->lanes), c->block);
    for (uint32_t j = 0; j < c->block; j++) dg_line(b, "sums[%u] = acc%u;", j, j);
    dg_line(b, "for (int j = 0; j < %u%s; j++) {", c->block, dg_fills_up(c) ? " && j < left" : "");
    const char *map = dg_fmt(b, "(%s + j)", c->coords[1]);
    if (plain) {
        dg_line(b, "if (ow + %u <= %s) {", c->lanes, row);
        const char *at = dg_index(
            b, out, (const char *const[]){c->coords[0], map, c->coords[2], c->coords[3], "ow"});
        dg_store_lanes(b, out, c->lanes, at, "sums[j]");
        dg_line(b, "continue;\n}");
    }
    const char *lane = c->span == 1 ? "ow + l" : "ow + l * span";
    if (c->lanes > 1) {
        dg_line(b, "float lane[%u];\nspread%u(sums[j], lane);", c->lanes, c->lanes);
        dg_line(b, "for (int l = 0; l < %u && %s < %s; l++) {", c->lanes, lane, row);
    } else {
        dg_line(b, "{\nconst int l = 0;");
    }
    if (!dg_conv_rest(b, c, map, dg_fmt(b, "(%s)", lane), c->lanes > 1 ? "lane[l]" : "sums[j]"))
        return false;
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
    if (c->group < 1 || y->dims[1] % c->group != 0 || wt->dims[1] * c->group != x->dims[1] ||
        wt->dims[0] != y->dims[1])
        return dg_refuse(b, "channels that do not match");
    if (y->dims[0] != x->dims[0] || !dg_is_bias(b, n, y->dims[1]))
        return dg_refuse(b, DG_CONTRADICT);
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
    const int64_t *kernel = c->w.kernel;
    return dg_steps(
        b, (double)c->in_maps *
               (1 + (double)kernel[0] * (1 + (double)kernel[1] * (1 + (double)kernel[2]))));
}

static uint32_t weights_arg(dg_build *b, const conv *c)
{
    const int64_t n_taps = dg_taps(c);
    const ot_dg_packing p = {.block = c->block,
                             .groups = c->group,
                             .maps = c->maps,
                             .map_stride = c->in_maps * n_taps,
                             .depth_dims = {n_taps, c->in_maps},
                             .depth_steps = {1, n_taps}};
    return c->packs ? dg_packed(b, c->n->in[1], &p) : dg_arg(b, c->n->in[1], &c->weights, false);
}

void dg_conv_maps(dg_build *b, conv *c, const char **first, const char **block)
{
    const char *blocks = dg_num(b, c->blocks),
               *number = c->group == 1 ? c->coords[1] : dg_fmt(b, "%s %% %s", c->coords[1], blocks);
    *block = c->coords[1];
    *first = c->group == 1
                 ? "0"
                 : dg_fmt(b, "(%s / %s * %s)", c->coords[1], blocks, dg_num(b, c->in_maps));
    if (dg_fills_up(c)) {
        const char *maps = dg_num(b, c->maps),
                   *group = c->group == 1 ? "0"
                                          : dg_fmt(b, "%s / %s * %s", c->coords[1], blocks, maps);
        dg_line(b, "const int map = %s + %s * %u, left = %s - %s * %u;", group, number, c->block,
                maps, number, c->block);
    } else {
        dg_line(b, "const int map = %s * %u;", c->coords[1], c->block);
    }
    c->coords[1] = "map";
}

bool dg_conv(dg_build *b, const ot_node *n)
{
    conv c;
    if (!open_conv(b, n, &c)) return false;
    if (dg_conv_takes_blocks(b, &c)) return dg_conv_blocks(b, &c);
    choose(b, &c);
    bool done;
    if (!dg_conv_tiles(b, &c, dg_work(b, items_of(&c), c.lanes, c.block), &done) || done)
        return !b->why;
    int64_t dims[5] = {c.y.dims[0], c.group * c.blocks, c.y.dims[2], c.y.dims[3],
                       ot_ceil_div(c.y.dims[4], c.lanes)};
    const char *first, *block;
    int64_t items, elems;
    if (!ot_product(dims, 5, &items) || items == 0 || !ot_nd_elems(dg_nd(b, n->out[0]), &elems))
        return dg_refuse(b, "an empty result");
    dg_begin(b, items);
    dg_split(b, "c", 5, dims, c.coords);
    if (c.span == 1)
        dg_line(b, "const int ow = %s * %u;", c.coords[4], c.lanes);
    else
        dg_line(b, "const int ow = %s, span = %s;", c.coords[4], dg_num(b, c.span));
    dg_conv_maps(b, &c, &first, &block);
    c.in = dg_arg(b, n->in[0], &c.x, false);
    if (!c.flat) dg_reads_at_most(b, c.in, dg_window_elements(&c.x, &c.w));
    c.wt = weights_arg(b, &c);
    sums(b, &c, first, block);
    if (!finish(b, &c)) return false;
    dg_end(b, items, 16, 2.0 * (double)elems * (double)(c.in_maps * dg_taps(&c)));
    return !b->why;
}
