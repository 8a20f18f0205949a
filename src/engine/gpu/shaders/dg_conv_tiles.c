/* Convolution as a product in blocks of shared memory (dg_tiles.h): output channels x depth,
 * depth x pixels.
 *
 *   depth     taps, then input channels; a chunk is of one tap
 *   rows      packed weights, [O/ROWS][taps][channels][ROWS]: a chunk is one piece
 *   columns   a work-item loads of one pixel alone, whose place it looks up once for each tap
 */
#include "dg_conv.h"
#include "dg_tiles.h"

typedef dg_convolution conv;

#define BEGINS         1250000.0 /* dg_tiled.begins of float32: 15 microseconds of an H200 */
#define CHANNELS_LEAST 8         /* of the input: fewer leave most of a chunk empty */

typedef struct conv_tiles {
    conv *c;
    dg_tiles t;
    bool whole;    /* channels fill all chunks */
    uint32_t bias; /* argument */
} conv_tiles;

static bool fits(const void *of, uint32_t rows)
{
    const conv *c = of;
    return dg_may_fill(c->maps, rows, c->group * c->maps * c->in_maps * dg_taps(c) * 4);
}

/* Coordinates of pixel `p` under this prefix. */
static void split_pixel(dg_build *b, const conv *c, const char *prefix, const char **coords)
{
    const int64_t dims[3] = {c->y.dims[2], c->y.dims[3], c->y.dims[4]};
    dg_line(b, "int %sr = %sp;", prefix, prefix);
    for (uint32_t k = 3; k-- > 0;) {
        coords[k] = "0";
        if (dims[k] == 1) continue;
        coords[k] = dg_fmt(b, "%s%u", prefix, k);
        const char *extent = dg_num(b, dims[k]);
        dg_line(b, "const int %s = %sr %% %s; %sr /= %s;", coords[k], prefix, extent, prefix,
                extent);
    }
}

/* The next tap: where the pixel's window is under it. */
static void next_tap(dg_build *b, const conv_tiles *s)
{
    static const char *const axis[3] = {"id", "ih", "iw"};
    const conv *c = s->c;
    const dg_window *w = &c->w;
    const char *inside = "here", *first[5] = {c->coords[0], "first", axis[0], axis[1], axis[2]};
    dg_line(b, "if (m >= %s) {\nm = 0;\nkw++;", dg_num(b, c->in_maps));
    dg_line(b, "if (kw == %lld) { kw = 0; kh++; }\nif (kh == %lld) { kh = 0; kd++; }",
            (long long)w->kernel[2], (long long)w->kernel[1]);
    for (uint32_t k = 0; k < 3; k++) {
        dg_line(b, "const int i%c = at%u + k%c * %lld;", "dhw"[k], k, "dhw"[k],
                (long long)w -> dilation[k]);
        if (c->flat || w->in[k] == 1) continue;
        inside = dg_fmt(b, "%s && %s >= 0 && %s < %s", inside, axis[k], axis[k],
                        dg_num(b, w->in[k]));
    }
    for (uint32_t k = 0; k < 3 && !c->flat; k++)
        if (w->in[k] == 1) inside = dg_fmt(b, "%s && %s == 0", inside, axis[k]);
    dg_line(b, "inside = %s;\nat = %s + kb * %s;\n}", inside, dg_index(b, c->in, first),
            dg_num(b, c->x.strides[1]));
}

/* Weights: packed as the rows of the block, or, as matrices of half precision take them, with
 * their depth side by side. */
static void fetch_weights(dg_build *b, const conv_tiles *s, const char *maps)
{
    const conv *c = s->c;
    const bool deep = s->t.deep[DG_ROWS];
    const uint32_t each = s->t.quads[DG_ROWS] ? 4 : 1;
    for (uint32_t n = 0; n < dg_tile_loads(&s->t, DG_ROWS); n++)
        for (uint32_t k = 0; k < dg_tile_parts(&s->t, DG_ROWS); k++) {
            const int64_t across = dg_tile_across(&s->t, DG_ROWS, n),
                          down = dg_tile_down(&s->t, DG_ROWS, n) + k;
            const char *inside = deep ? dg_fmt(b, "ra + %lld < left", (long long)across) : "true";
            if (!s->whole)
                inside = dg_fmt(b, "%s && m + ka + %lld < %s", inside, (long long)down, maps);
            const int64_t far = across * dg_taps(c) * c->in_maps + down;
            const char *at = deep ? dg_fmt(b, "wt + %s", dg_num(b, far))
                                  : dg_fmt(b, "wt + me * %u + %u", each,
                                           n * dg_tile_items(&s->t) * each);
            dg_tile_load(b, &s->t, DG_ROWS, n, k, inside, c->wt, at);
        }
    dg_line(b, "wt += min(%u, %s - m) * %u;", dg_tile_depth(&s->t), maps, deep ? 1 : s->t.rows);
}

static void fetch(dg_build *b, const void *state)
{
    const conv_tiles *s = state;
    const conv *c = s->c;
    const int64_t step = c->x.strides[1];
    const char *maps = dg_num(b, c->in_maps);
    next_tap(b, s);
    fetch_weights(b, s, maps);
    for (uint32_t n = 0; n < dg_tile_loads(&s->t, DG_COLS); n++)
        for (uint32_t k = 0; k < dg_tile_parts(&s->t, DG_COLS); k++) {
            const int64_t down = dg_tile_down(&s->t, DG_COLS, n) + k;
            const char *inside = s->whole ? "inside"
                                          : dg_fmt(b, "inside && m + kb + %lld < %s",
                                                   (long long)down, maps);
            dg_tile_load(b, &s->t, DG_COLS, n, k, inside, c->in,
                         dg_fmt(b, "at + %s", dg_num(b, down * step)));
        }
    dg_line(b, "m += %u;\nat += %s;", dg_tile_depth(&s->t), dg_num(b, dg_tile_depth(&s->t) * step));
}

/* Where the work-item's pixel begins, before the first tap. */
static void open_pixel(dg_build *b, const conv_tiles *s, const char *pixels)
{
    const conv *c = s->c;
    const char *pixel[3];
    dg_line(b, "const int fromp = %s * %u + rb;\nconst bool here = fromp < %s;", c->coords[4],
            s->t.cols, pixels);
    split_pixel(b, c, "from", pixel);
    for (uint32_t k = 0; k < 3; k++)
        dg_line(b, "const int at%u = %s * %lld - %s;", k, pixel[k], (long long)c->w.stride[k],
                dg_num(b, c->w.lo[k]));
    dg_line(b, "int kd, kh, kw, m, at, wt;\nbool inside;");
}

static void start(dg_build *b, const void *state)
{
    const conv_tiles *s = state;
    const conv *c = s->c;
    dg_line(b, "kd = kh = at = 0;\nkw = -1;\nm = %s;\ninside = false;\nwt = first_wt;",
            dg_num(b, c->in_maps));
}

/* Each sum begins as its channel's bias; with matrices, bias(j) is added in the end. */
static const char *bias_of(dg_build *b, const conv_tiles *s, uint32_t arg, const char *row)
{
    const char *map = dg_fmt(b, "min(map + %s, %s)", row, dg_num(b, s->c->y.dims[1] - 1));
    return dg_in(s->c->n, 2) == OT_NONE ? "0" : dg_load(b, arg, map);
}

static void sum_up(dg_build *b, conv_tiles *s, const dg_tiled *x)
{
    const char *first[8];
    const bool has_bias = dg_in(s->c->n, 2) != OT_NONE;
    s->bias = has_bias ? dg_arg(b, s->c->n->in[2], NULL, false) : 0;
    for (uint32_t j = 0; j < s->t.tall && !s->t.steps; j++)
        first[j] = bias_of(b, s, s->bias, dg_fmt(b, "ty * %u + %u", s->t.tall, j));
    const dg_tile_text text = {start, fetch, s->t.steps ? NULL : first, s};
    dg_tiles_sums(b, &s->t, x, &text);
}

static bool finish(dg_build *b, conv_tiles *s, const char *pixels)
{
    conv *c = s->c;
    const char *pixel[3];
    dg_tiles_cols(b, &s->t);
    dg_line(b, "const int top = %s * %u + %s;\nif (top >= %s) continue;", c->coords[4], s->t.cols,
            dg_tile_col(b, &s->t), pixels);
    split_pixel(b, c, "to", pixel);
    dg_tiles_rows(b, &s->t);
    dg_line(b, "const int row = %s;\nif (row >= left) continue;", dg_tile_row(b, &s->t));
    const char *sum = dg_tile_sum(b, &s->t);
    if (s->t.steps && dg_in(c->n, 2) != OT_NONE)
        sum = dg_fmt(b, "(%s + %s)", sum, bias_of(b, s, s->bias, "row"));
    c->coords[2] = pixel[0];
    c->coords[3] = pixel[1];
    if (!dg_conv_rest(b, c, "(map + row)", pixel[2], sum)) return false;
    dg_tiles_end(b, &s->t);
    return true;
}

static ot_dg_packing packing_of(const conv_tiles *s)
{
    const int64_t taps = dg_taps(s->c);
    return (ot_dg_packing){.block = s->t.deep[DG_ROWS] ? 1 : s->t.rows,
                           .groups = s->c->group,
                           .maps = s->c->maps,
                           .map_stride = s->c->in_maps * taps,
                           .depth_dims = {taps, s->c->in_maps},
                           .depth_steps = {1, taps}};
}

/* Blocks of the same pixels follow each other: they find the inputs in a cache. */
static bool write_kernel(dg_build *b, conv_tiles *s, const dg_tiled *x)
{
    conv *c = s->c;
    const int64_t blocks = ot_ceil_div(c->maps, s->t.rows), taps = dg_taps(c);
    const int64_t dims[4] = {c->y.dims[0], c->group, ot_ceil_div(x->cols, s->t.cols), blocks};
    const ot_dg_packing pack = packing_of(s);
    const char *of[4], *pixels = dg_num(b, x->cols);
    int64_t groups;
    if (!ot_product(dims, 4, &groups)) return dg_refuse(b, "more elements than can be counted");
    dg_begin_group(b, groups, dg_tile_items(&s->t));
    dg_split(b, "c", 4, dims, of);
    c->coords[0] = of[0];
    c->coords[4] = of[2];
    c->in = dg_arg(b, c->n->in[0], &c->x, false);
    if (!c->flat) dg_reads_at_most(b, c->in, dg_window_elements(&c->x, &c->w));
    c->wt = dg_packed(b, c->n->in[1], &pack);
    dg_tiles_open(b, &s->t);
    dg_line(b, "const int first = %s * %s, inner = %s * %u, left = %s - inner;", of[1],
            dg_num(b, c->in_maps), of[3], s->t.rows, dg_num(b, c->maps));
    dg_line(b, "const int map = %s * %s + inner;", of[1], dg_num(b, c->maps));
    if (s->t.deep[DG_ROWS])
        dg_line(b, "const int first_wt = (map + ra) * %s + ka;", dg_num(b, taps * c->in_maps));
    else
        dg_line(b, "const int first_wt = (%s * %s + %s) * %s;", of[1], dg_num(b, blocks), of[3],
                dg_num(b, taps * c->in_maps * s->t.rows));
    open_pixel(b, s, pixels);
    sum_up(b, s, x);
    if (!finish(b, s, pixels)) return false;
    b->spreads = false;
    dg_tiles_count(b, &s->t, x, c->x.dtype);
    dg_end(b, groups * dg_tile_items(&s->t), 0,
           2.0 * (double)(x->rows * x->times) * (double)x->cols * (double)(c->in_maps * taps));
    return !b->why;
}

/* Are four pixels neighbours, from every fourth on? */
static bool has_quads(const conv *c)
{
    const ot_nd *x = &c->x;
    const int64_t pixels = c->y.dims[2] * c->y.dims[3] * c->y.dims[4];
    return c->flat && x->strides[4] == 1 && c->w.stride[2] == 1 && x->dims[4] == pixels &&
           pixels % 4 == 0 && x->strides[1] % 4 == 0 && (x->dims[0] == 1 || x->strides[0] % 4 == 0);
}

bool dg_conv_tiles(dg_build *b, dg_convolution *c, double plain, bool *done)
{
    const ot_nd *w = dg_nd(b, c->n->in[1]);
    const bool always = b->target->layout.tiles == OT_DG_ALWAYS;
    const dg_tiled x = {.rows = c->maps,
                        .cols = c->y.dims[2] * c->y.dims[3] * c->y.dims[4],
                        .depth = c->in_maps,
                        .taps = dg_taps(c),
                        .times = c->y.dims[0] * c->group,
                        .dtype = c->x.dtype,
                        .begins = c->x.dtype == OT_F32 ? BEGINS : 0,
                        .deep_halves = {true, false},
                        .quads = {c->x.dtype == OT_F32 || c->in_maps % 8 == 0, has_quads(c)},
                        .fits = fits,
                        .of = c,
                        .plain = plain};
    conv_tiles s = {.c = c};
    *done = false;
    if (!w->data || !ot_nd_is_dense(w) || b->target->layout.packs == OT_DG_NEVER) return true;
    if ((!always && c->in_maps < CHANNELS_LEAST) || x.cols == 0 || x.times == 0) return true;
    if (!dg_tiles_choose(b, &x, &s.t)) return true;
    s.whole = c->in_maps % dg_tile_depth(&s.t) == 0;
    *done = true;
    return write_kernel(b, &s, &x);
}
