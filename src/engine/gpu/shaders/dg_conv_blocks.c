/* Convolution of activations in blocks of channels (dg_blocks.c): a work-item makes LANES
 * elements of a row, BLOCK output channels of each in a vector.
 *
 *   for taps, blocks of input channels, channels of the block
 *       w    = BLOCK weights                     one load: they are packed,
 *                                                [O/BLOCK][taps][channels][BLOCK]
 *       acc0 = x[0] * w, acc1 = x[8] * w, ...    an input for all of a vector; those of the block
 *                                                lie side by side
 *
 * Depthwise, eight channels are eight products: x and w are vectors. An input may lie in rows,
 * too: then only what is made is in blocks.
 */
#include "dg_conv.h"

typedef dg_convolution conv;

bool dg_conv_takes_blocks(const dg_build *b, const conv *c)
{
    if (dg_nd(b, c->n->in[0])->chan_block) return true;
    if (b->g->n_stores == 0 || !dg_nd(b, b->g->stores[0])->chan_block || c->group != 1)
        return false;
    return c->x.dtype == OT_F32 && b->target->layout.packs != OT_DG_NEVER &&
           dg_block_of(dg_nd(b, c->n->in[1]), c->maps) != 0;
}

/* ---- what is chosen ---- */

enum { INPUT, WEIGHTS, RESULT, ACCESSES };

static void accesses(const dg_build *b, const conv *c, bool blocks, dg_access out[ACCESSES])
{
    const double taps = (double)dg_taps(c), in = c->depthwise ? DG_BLOCK : (double)c->in_maps;
    const uint32_t lanes = c->lanes;
    const int64_t stride = c->w.stride[2];
    const bool reads = blocks && dg_nd(b, c->n->in[0])->chan_block,
               makes = blocks && dg_nd(b, b->g->stores[0])->chan_block;
    const bool side = stride == 1; /* pixels without holes between them */
    if (reads)
        out[INPUT] = (dg_access){OT_F32, taps * in / DG_BLOCK * (side ? 1 : lanes),
                                 side ? lanes * DG_BLOCK : DG_BLOCK, 1, lanes * DG_BLOCK};
    else
        out[INPUT] = (dg_access){OT_F32, taps * in, lanes, stride, stride * lanes};
    out[WEIGHTS] = (dg_access){OT_F32, taps * (c->depthwise ? 1 : in), c->block,
                               blocks ? 1 : dg_taps(c) * c->in_maps, 0};
    if (makes)
        out[RESULT] = (dg_access){OT_F32, 1, lanes * c->block, 1, lanes * c->block};
    else
        out[RESULT] = (dg_access){OT_F32, c->block, lanes, 1, lanes};
}

static void choose(dg_build *b, conv *c)
{
    dg_access plain[ACCESSES], laid[ACCESSES];
    const int64_t row = c->y.dims[4];
    c->depthwise = c->group != 1;
    if (c->depthwise) { /* the channels of all groups side by side */
        c->maps = c->group;
        c->group = 1;
    }
    c->lanes = row >= 5 ? 8 : row >= 3 ? 4 : row == 2 ? 2 : 1;
    c->block = dg_block_of(dg_nd(b, c->n->in[1]), c->maps);
    c->blocks = ot_ceil_div(c->maps, c->block);
    c->packs = true;
    c->span = 1;
    const double items = (double)(c->y.dims[0] * c->blocks) *
                         (double)(c->y.dims[2] * c->y.dims[3]) * (double)ot_ceil_div(row, c->lanes);
    accesses(b, c, false, plain);
    accesses(b, c, true, laid);
    dg_count_plain(b, plain, ACCESSES, items);
    dg_count(b, laid, ACCESSES, items);
}

/* ---- the sums ---- */

static bool in_blocks(const dg_build *b, const conv *c) { return b->arrays[c->in].chan_block != 0; }

/* Elements between the inputs of neighbouring lanes. In blocks it stands in the text. */
static const char *lane_step(dg_build *b, const conv *c)
{
    const int64_t step = b->arrays[c->in].strides[4], stride = c->w.stride[2];
    if (step == DG_BLOCK || step == 1) return dg_fmt(b, "%lld", (long long)(step * stride));
    return dg_fmt(b, "%lld * %s", (long long)stride, dg_num(b, step));
}

/* Input of lane l, `more` elements further on. */
static const char *lane_at(dg_build *b, const conv *c, uint32_t l, uint32_t more)
{
    const int64_t step = b->arrays[c->in].strides[4];
    if (step == DG_BLOCK || step == 1)
        return dg_fmt(b, "%lld", (long long)(l * step * c->w.stride[2] + more));
    return dg_fmt(b, "%u * %s + %u", l, lane_step(b, c), more);
}

/* A tap of eight channels, each with its weight. */
static void sum_depthwise(dg_build *b, const conv *c, bool border)
{
    dg_from(b, c->in, "xs", "at");
    dg_from(b, c->wt, "ws", "wt");
    dg_line(b, "const %s w = %s;", dg_vector(b, c->block), dg_load_lanes(b, c->wt, c->block, "0"));
    for (uint32_t l = 0; l < c->lanes; l++) {
        const char *x = dg_load_lanes(b, c->in, c->block, lane_at(b, c, l, 0)),
                   *only = border ? dg_fmt(b, "if (in%u) ", l) : "";
        dg_line(b, "%sacc%u = madd_each(%s, w, acc%u);", only, l, x, l);
    }
}

/* All channels of a tap. */
static void sum_channels(dg_build *b, const conv *c, bool border)
{
    const uint32_t side = in_blocks(b, c) ? DG_BLOCK : 1; /* channels side by side */
    dg_line(b, "for (int m = 0; m < %s; m++) {", dg_num(b, c->in_maps / side));
    dg_from(b, c->in, "xs", "at");
    dg_from(b, c->wt, "ws", "wt");
    for (uint32_t j = 0; j < side; j++) {
        const char *w = dg_load_lanes(b, c->wt, c->block, dg_fmt(b, "%u", j * c->block));
        dg_line(b, "{\nconst %s w = %s;", dg_vector(b, c->block), w);
        for (uint32_t l = 0; l < c->lanes; l++) {
            const char *x = dg_load(b, c->in, lane_at(b, c, l, j));
            dg_line(b, "acc%u = madd(%s, w, acc%u);", l,
                    border ? dg_fmt(b, "(in%u ? %s : 0)", l, x) : x, l);
        }
        dg_line(b, "}");
    }
    dg_line(b, "at += %s;\nwt += %u;\n}", dg_num(b, b->arrays[c->in].strides[1]), c->block * side);
}

/* Each sum begins as the bias of its channels. */
static void open_sums(dg_build *b, const conv *c)
{
    const ot_id bias = dg_in(c->n, 2);
    dg_line(b, "%s first;", dg_vector(b, c->block));
    if (bias == OT_NONE) {
        dg_line(b, "first = splat%u(0);", c->block);
    } else {
        const uint32_t arg = dg_arg(b, bias, NULL, false);
        for (uint32_t j = 0; j < c->block; j++) {
            const char *map = dg_fmt(b, "%s + %u", c->coords[1], j);
            if (dg_fills_up(c)) map = dg_fmt(b, "min(%s, %s)", map, dg_num(b, c->maps - 1));
            dg_line(
                b, "first.s%u = %s;", j,
                dg_load(b, arg, dg_index(b, arg, (const char *const[]){dg_fmt(b, "(%s)", map)})));
        }
    }
    for (uint32_t l = 0; l < c->lanes; l++)
        dg_line(b, "%s acc%u = first;", dg_vector(b, c->block), l);
}

static void sum_tap(dg_build *b, const conv *c, bool border)
{
    if (c->depthwise)
        sum_depthwise(b, c, border);
    else
        sum_channels(b, c, border);
}

/* block: number of the work-item's block of output channels. */
static void sums(dg_build *b, const conv *c, const char *block)
{
    const char *in = dg_num(b, c->w.in[2]);
    open_sums(b, c);
    dg_conv_axis(b, c, 0, "d", c->coords[2]);
    dg_conv_axis(b, c, 1, "h", c->coords[3]);
    dg_conv_axis(b, c, 2, "w", "ow");
    const char *row = dg_index(
        b, c->in,
        (const char *const[]){c->coords[0], c->depthwise ? c->coords[1] : "0", "id", "ih", "0"});
    const char *tap = dg_fmt(b, "((kd * %lld + kh) * %lld + kw)", (long long)c->w.kernel[1],
                             (long long)c->w.kernel[2]);
    const char *weights = dg_index(b, c->wt, (const char *const[]){block, tap, "0", "0"});
    dg_line(b, "int at = %s + iw * %s, wt = %s;", row, dg_num(b, b->arrays[c->in].strides[4]),
            weights);
    dg_line(b, "if (iw >= 0 && iw + %lld < %s) {", (long long)((c->lanes - 1) * c->w.stride[2]),
            in);
    sum_tap(b, c, false);
    dg_line(b, "} else {");
    for (uint32_t l = 0; l < c->lanes; l++)
        dg_line(b, "const bool in%u = iw + %lld >= 0 && iw + %lld < %s;", l,
                (long long)(l * c->w.stride[2]), (long long)(l * c->w.stride[2]), in);
    sum_tap(b, c, true);
    dg_line(b, "}\n}\n}\n}");
    dg_from(b, c->in, NULL, NULL);
    dg_from(b, c->wt, NULL, NULL);
}

/* ---- what follows ---- */

static bool finish(dg_build *b, const conv *c, const char *block)
{
    const ot_nd *y = dg_nd(b, c->n->out[0]);
    const bool vector = b->g->n_nodes == 1 && y->chan_block == c->block && y->dtype == OT_F32 &&
                        !dg_fills_up(c);
    const char *map = c->coords[1], *at = c->lanes > 1 ? "(ow + l)" : "ow";
    dg_line(b, "%s sums[%u];", dg_vector(b, c->block), c->lanes);
    for (uint32_t l = 0; l < c->lanes; l++) dg_line(b, "sums[%u] = acc%u;", l, l);
    dg_line(b, "for (int l = 0; l < %u && ow + l < %s; l++) {", c->lanes, dg_num(b, c->y.dims[4]));
    if (vector) {
        const uint32_t out = dg_arg(b, c->n->out[0], &c->y, true);
        const char *to = dg_index(
            b, out, (const char *const[]){c->coords[0], map, c->coords[2], c->coords[3], at});
        dg_store_lanes(b, out, c->block, to, "sums[l]");
    } else {
        dg_line(b, "float lane[%u];\nspread%u(sums[l], lane);", c->block, c->block);
        dg_line(b, "for (int j = 0; j < %u%s; j++) {", c->block,
                dg_fills_up(c) ? " && j < left" : "");
        b->chan = dg_fmt(b, "(%s + j)", map);
        b->chan_block = block;
        b->chan_lane = "j";
        if (!dg_conv_rest(b, c, b->chan, at, "lane[j]")) return false;
        b->chan = NULL;
        dg_line(b, "}");
    }
    dg_line(b, "}");
    return true;
}

bool dg_conv_blocks(dg_build *b, conv *c)
{
    const char *first, *block;
    int64_t items, elems;
    choose(b, c);
    const int64_t n_taps = dg_taps(c), depth = c->depthwise ? 1 : c->in_maps;
    const int64_t dims[5] = {c->y.dims[0], c->blocks, c->y.dims[2], c->y.dims[3],
                             ot_ceil_div(c->y.dims[4], c->lanes)};
    if (c->block == 0 || (!c->depthwise && in_blocks(b, c) && c->in_maps % DG_BLOCK != 0))
        return dg_refuse(b, "channels that make no blocks");
    if (!ot_product(dims, 5, &items) || items == 0 || !ot_nd_elems(dg_nd(b, c->n->out[0]), &elems))
        return dg_refuse(b, "an empty result");
    dg_begin(b, items);
    dg_split(b, "c", 5, dims, c->coords);
    dg_line(b, "const int ow = %s * %u;", c->coords[4], c->lanes);
    dg_conv_maps(b, c, &first, &block);
    c->in = dg_arg(b, c->n->in[0], &c->x, false);
    if (!c->flat) dg_reads_at_most(b, c->in, dg_window_elements(&c->x, &c->w));
    const ot_dg_packing p = {.block = c->block,
                             .groups = 1,
                             .maps = c->maps,
                             .map_stride = depth * n_taps,
                             .depth_dims = {n_taps, depth},
                             .depth_steps = {1, n_taps}};
    c->wt = dg_packed(b, c->n->in[1], &p);
    sums(b, c, block);
    if (!finish(b, c, block)) return false;
    dg_end(b, items, 16, 2.0 * (double)elems * (double)(depth * n_taps));
    return !b->why;
}
