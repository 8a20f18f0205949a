/* Cutting convolutions: see conv_cut.h. */
#include "conv_cut.h"

#define PARTS_EACH  2 /* parts that each thread gets, where that is possible */
#define ROWS_LEAST  4
#define TAPS_COPIED 4 /* convolutions with fewer taps take no longer than copying their input */
/* Of parts that are the same for every number of threads: */
#define ALIKE_PARTS 8
#define ALIKE_MAPS  128 /* each part copies the windows anew, which fewer maps do not make up for */
#define ALIKE_WORK  5e5 /* multiply-adds */

/* How many parts along each axis, and what stays together. */
typedef struct grid {
    int64_t images, maps, rows; /* parts */
    int64_t unit;               /* maps that stay together */
} grid;

static int64_t taps_of(const lw_conv *k)
{
    int64_t n = 1;
    for (uint32_t a = 0; a < k->win.n; a++) n *= k->win.kernel[a];
    return n;
}

/* Channels that lie together: of a block, else one. */
static int64_t lane(const ot_nd *a) { return a->chan_block ? a->chan_block : 1; }

/* Maps that must stay together; 0: all. Implementations for blocks of 8 channels keep sums of four
 * blocks in registers, those for blocks of 16 lose nothing by computing one. */
static int64_t least_unit(const lw_conv *k, const ot_nd *x, const ot_nd *y)
{
    int64_t maps_each = k->maps / k->group, block = y->chan_block;
    if (k->group == 1) return block ? block : 16;
    if (k->channels == 1 && maps_each == 1) return x->chan_block == block ? ot_max(block, 1) : 0;
    bool whole_blocks = maps_each % lane(y) == 0 && k->channels % lane(x) == 0;
    return whole_blocks ? maps_each : 0;
}

static int64_t choose_unit(const lw_conv *k, const ot_nd *x, const ot_nd *y, int64_t pieces)
{
    int64_t least = least_unit(k, x, y), most = k->group == 1 && y->chan_block == 16 ? 1
                                                : k->group == 1 || k->channels == 1  ? 4
                                                                                     : 1;
    if (least == 0) return k->maps;
    while (most > 1 && ot_ceil_div(k->maps, least * most) < pieces) most /= 2;
    return least * most;
}

/* Rows of the result lie one after another for so many maps, and cutting them costs less than it
 * gains. */
static bool rows_may_be_cut(const lw_conv *k, const ot_nd *x, const ot_nd *y, int64_t unit)
{
    if (k->win.n < 1 || unit > lane(y) || k->group != 1) return false;
    return taps_of(k) >= TAPS_COPIED || x->dims[1] <= lane(x);
}

static grid choose_grid(const lw_conv *k, const ot_nd *x, const ot_nd *y, int64_t threads)
{
    int64_t images = x->dims[0], want = threads * PARTS_EACH;
    grid g = {
        .images = threads == 1 ? 1 : ot_min(images, want), .maps = 1, .rows = 1, .unit = k->maps};
    if (threads == 1 || images >= want) return g;
    int64_t pieces = ot_ceil_div(want, images);
    g.unit = choose_unit(k, x, y, ot_ceil_div(threads, images));
    g.maps = ot_min(pieces, ot_ceil_div(k->maps, g.unit));
    int64_t parts = g.images * g.maps;
    bool uneven = parts < threads || (parts < want && parts % threads != 0);
    if (uneven &&
        rows_may_be_cut(
            k, x, y, ot_min(g.unit * ot_ceil_div(ot_ceil_div(k->maps, g.unit), g.maps), k->maps)))
        g.rows = ot_max(1, ot_min(ot_ceil_div(want, parts), k->win.out[0] / ROWS_LEAST));
    return g;
}

/* Images, and whole groups or many maps of each, by the convolution's sizes alone. */
static grid choose_alike(const lw_conv *k, const ot_nd *x)
{
    int64_t images = x->dims[0];
    double work = (double)images * (double)k->maps * (double)k->channels * (double)taps_of(k);
    for (uint32_t a = 0; a < k->win.n; a++) work *= (double)k->win.out[a];
    int64_t most = work < ALIKE_PARTS * ALIKE_WORK ? (int64_t)(work / ALIKE_WORK) : ALIKE_PARTS;
    grid g = {.images = ot_max(1, ot_min(images, most)),
              .rows = 1,
              .unit = k->group == 1 ? ALIKE_MAPS : k->maps / k->group};
    g.maps = ot_max(1, ot_min(most / g.images, k->maps / g.unit));
    return g;
}

/* Results [row, row + rows): what they read. false: some read zeros only. */
static bool reach_rows(const ot_window *w, lw_conv_part *p)
{
    int64_t first = p->row * w->stride[0] - w->lo[0];
    int64_t last = first + (p->rows - 1) * w->stride[0] + (w->kernel[0] - 1) * w->dilation[0] + 1;
    p->in_row = ot_max(0, first);
    p->lo = p->in_row - first;
    p->in_rows = ot_min(w->in[0], last) - p->in_row;
    return p->in_rows > 0;
}

static bool make_part(const lw_conv *k, const grid *g, int64_t i, lw_conv_part *p)
{
    int64_t row = i % g->rows, map = i / g->rows % g->maps, image = i / g->rows / g->maps;
    int64_t units = ot_ceil_div(k->maps, g->unit), n = p->images, maps_each = k->maps / k->group,
            rows = p->rows;
    p->image = n * image / g->images;
    p->images = n * (image + 1) / g->images - p->image;
    p->map = units * map / g->maps * g->unit;
    p->maps = ot_min(k->maps, units * (map + 1) / g->maps * g->unit) - p->map;
    if (k->group > 1) {
        p->channel = p->map / maps_each * k->channels;
        p->channels = p->maps / maps_each * k->channels;
    }
    if (g->rows == 1) return true;
    p->row = rows * row / g->rows;
    p->rows = rows * (row + 1) / g->rows - p->row;
    return reach_rows(&k->win, p);
}

static uint32_t make_parts(ot_arena *a, const lw_conv *k, const ot_nd *x, const grid *g,
                           lw_conv_part **parts)
{
    lw_conv_part whole = {.images = x->dims[0], .maps = k->maps, .channels = x->dims[1]};
    whole.rows = k->win.n ? k->win.out[0] : 1;
    whole.in_rows = k->win.n ? k->win.in[0] : 1;
    whole.lo = k->win.n ? k->win.lo[0] : 0;
    int64_t n = g->images * g->maps * g->rows;
    *parts = OT_NEW_N(a, lw_conv_part, n);
    for (int64_t i = 0; *parts && i < n; i++) {
        (*parts)[i] = whole;
        if (make_part(k, g, i, &(*parts)[i])) continue;
        (*parts)[0] = whole;
        return 1;
    }
    return (uint32_t)n;
}

uint32_t lw_conv_cut(ot_arena *a, const lw_conv *k, const ot_nd *x, const ot_nd *y,
                     uint32_t threads, lw_conv_part **parts)
{
    grid g = choose_grid(k, x, y, threads);
    return make_parts(a, k, x, &g, parts);
}

uint32_t lw_conv_cut_alike(ot_arena *a, const lw_conv *k, const ot_nd *x, lw_conv_part **parts)
{
    grid g = choose_alike(k, x);
    return make_parts(a, k, x, &g, parts);
}

static void set_form(ot_nd *a, const ot_nd *like, int64_t images, int64_t channels, int64_t rows)
{
    int64_t dims[OT_RANK_MAX];
    memcpy(dims, like->dims, like->rank * sizeof *dims);
    dims[0] = images;
    dims[1] = channels;
    if (like->rank > 2) dims[2] = rows;
    *a = *like;
    if (like->chan_block)
        ot_nd_set_blocked(a, like->dtype, like->rank, dims, like->chan_block);
    else
        ot_nd_set_dense(a, like->dtype, like->rank, dims);
}

void lw_conv_part_of(const lw_conv *k, const ot_nd *x, const ot_nd *y, const lw_conv_part *part,
                     lw_conv *sub, ot_nd *sub_x, ot_nd *sub_y)
{
    *sub = *k;
    sub->maps = part->maps;
    sub->group = part->maps / (k->maps / k->group);
    if (k->group == 1) sub->group = 1;
    if (k->win.n) {
        sub->win.out[0] = part->rows;
        sub->win.in[0] = part->in_rows;
        sub->win.lo[0] = part->lo;
    }
    set_form(sub_x, x, part->images, part->channels, part->in_rows);
    set_form(sub_y, y, part->images, part->maps, part->rows);
}

bool lw_conv_part_is_dense(const ot_nd *x, const lw_conv_part *part)
{
    return x->rank < 3 || part->in_rows == x->dims[2] ||
           (part->images == 1 && part->channels <= lane(x));
}

int64_t lw_conv_part_source(const ot_nd *x, const lw_conv_part *part)
{
    int64_t at = part->image * x->strides[0] + part->channel / lane(x) * x->strides[1];
    return x->rank > 2 ? at + part->in_row * x->strides[2] : at;
}

int64_t lw_conv_part_result(const ot_nd *y, const lw_conv_part *part)
{
    int64_t at = part->image * y->strides[0] + part->map / lane(y) * y->strides[1];
    return y->rank > 2 ? at + part->row * y->strides[2] : at;
}

void lw_conv_part_copy(const ot_nd *x, const lw_conv_part *part, float *to, const float *from)
{
    int64_t lines = ot_ceil_div(part->channels, lane(x)), n = part->in_rows * x->strides[2];
    from += lw_conv_part_source(x, part);
    for (int64_t i = 0; i < part->images; i++)
        for (int64_t k = 0; k < lines; k++, to += n)
            memcpy(to, from + i * x->strides[0] + k * x->strides[1], (size_t)n * sizeof *to);
}
