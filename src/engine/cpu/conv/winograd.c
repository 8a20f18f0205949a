/* Winograd convolutions: what is chosen for a shape, the transformed weights, and a run.
 *
 *   all tiles in one line: image by image, row of tiles by row of tiles
 *   |-- strip --|-- strip --|-- ...            each thread takes strips; V of a strip stays in its
 *                                              cache
 *
 *   strip:  input tiles --> V [P][C/b][tiles][b]
 *           for each group of g blocks of output channels:
 *               for each position: M = U V      U is read once a strip, in the order in which it
 *                                               lies
 *               M [P][g][tiles][b] --> output tiles
 *
 * U is several times the weights. Where it would take too much, or come from far away, only the
 * weights are held, and each strip transforms them, two blocks of output channels and some
 * channels at a time:
 *
 *           for each two blocks:
 *               for some channels at a time:
 *                   weights --> U, which stays in the cache
 *                   for each position: M += U V
 *
 * With fewer strips than threads these share out the blocks of one strip instead: channels for
 * V, groups for M.
 */
#include "winograd_lanes.h"

#include "engine/core/pool.h"
#include "engine/core/simd.h"

#include <math.h>
#include <string.h>

#define LINE        16 /* floats of a cache line */
#define WORKERS_MAX 1024

struct ot_winograd {
    ot_winograd_spec s; /* weights, scale and bias are NULL: what is needed of them is here */
    const ot_wino_code *code;
    int64_t b, m, positions; /* floats of a block, outputs and positions of a tile */
    int64_t c_blocks, k_blocks;
    int64_t tile_rows, tile_cols, tiles; /* of an image, of an image, of all images */
    int64_t strip;                       /* tiles of a strip */
    int64_t group;                       /* blocks of output channels of a group */
    int64_t part;                        /* channels whose U is made at one time; 0: U is held */
    int64_t v_pos, m_pos, u_pos;         /* floats between positions in V, M and a part of U */
    int64_t workers;                     /* threads that have something to do */
    bool shared;                         /* threads work at one strip together */
    int64_t v_floats;                    /* of a strip: once if shared, else for each thread */
    int64_t column_floats;
    int64_t worker_floats; /* scratch of a thread: M of a group, columns, U */
    void *memory;
    size_t memory_bytes;
    float *u, *bias; /* u: the weights themselves if part > 0; bias: [k_blocks][b] */
    uint32_t *mask;  /* [b] of the last block of output channels: zeros where it is padded */
};

static const ot_wino_code *code_for_machine(void)
{
#ifdef OT_WINO_X86
    if (ot_simd_block() == 16 && __builtin_cpu_supports("avx512f")) return &ot_wino_avx512;
    if (ot_simd_block() == 8 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &ot_wino_avx2;
#endif
    return &ot_wino_plain;
}

/* ---- transformed weights ---- */

/* Points of F(m, 3), without infinity. Of the sets that were tried these lose least; with them
 * sums of products keep the size of the outputs. */
static const double points_2[] = {0, 1, -1};
static const double points_4[] = {0, OT_WINO_ROOT_HALF, -OT_WINO_ROOT_HALF, 2 * OT_WINO_ROOT_HALF,
                                  -2 * OT_WINO_ROOT_HALF};
static const double points_6[] = {0, 0.5, -0.5, 1, -1, 2, -2};

/* Row i of G: what 3 weights of a line become at point i. Every scale that B' and A' leave out
 * is here. */
static void transform_rows(int64_t m, double g[8][3])
{
    const double *points = m == 2 ? points_2 : m == 4 ? points_4 : points_6;
    for (int64_t i = 0; i < m + 1; i++) {
        double x = points[i], n = 1;
        for (int64_t k = 0; k < m + 1; k++)
            if (k != i) n *= x - points[k];
        if (i > 0) n /= fabs(x); /* output_line is given |x| times the values at x */
        g[i][0] = 1 / n;
        g[i][1] = x / n;
        g[i][2] = x * x / n;
    }
    g[m + 1][0] = g[m + 1][1] = 0;
    g[m + 1][2] = 1;
}

/* U of one pair of channels goes to u, u + step, ... */
static void transform_weights(int64_t m, double g[8][3], const float *w, double scale, float *u,
                              int64_t step)
{
    double rows[8][3];
    for (int64_t i = 0; i < m + 2; i++)
        for (int64_t k = 0; k < 3; k++)
            rows[i][k] = g[i][0] * (double)w[k] + g[i][1] * (double)w[3 + k] +
                         g[i][2] * (double)w[6 + k];
    for (int64_t i = 0; i < m + 2; i++)
        for (int64_t j = 0; j < m + 2; j++, u += step)
            *u = (float)(scale *
                         (rows[i][0] * g[j][0] + rows[i][1] * g[j][1] + rows[i][2] * g[j][2]));
}

static void copy_weights(const float *w, float scale, float *to, int64_t step)
{
    for (int64_t t = 0; t < 9; t++) to[t * step] = w[t] * scale;
}

/* Blocks of output channels outside, then channels: what is written for the lanes of a block
 * lies together. */
static void fill_weights(ot_winograd *w, const float *weights, const float *scale)
{
    int64_t channels = w->s.sizes.in_channels, b = w->b;
    double g[8][3];
    transform_rows(w->m, g);
    for (int64_t kb = 0; kb < w->k_blocks; kb++) {
        int64_t first = kb / w->group * w->group, blocks = ot_min(w->group, w->k_blocks - first);
        /* floats of a channel of this pair of blocks */
        int64_t pair = (kb - first) / 2 * 2, wide = ot_min(2, blocks - pair) * b;
        int64_t end = ot_min((kb + 1) * b, w->s.sizes.out_channels), lane = (kb - first - pair) * b;
        float *u = w->u + lane;
        u += w->part ? (first + pair) * b * channels * 9
                     : first * b * channels * w->positions + pair * b * channels;
        for (int64_t c = 0; c < channels; c++)
            for (int64_t k = kb * b; k < end; k++) {
                const float *from = weights + (k * channels + c) * 9;
                float by = scale ? scale[k] : 1;
                if (w->part)
                    copy_weights(from, by, u + c * 9 * wide + k % b, wide);
                else
                    transform_weights(w->m, g, from, (double)by, u + c * wide + k % b,
                                      channels * blocks * b);
            }
    }
}

/* ---- what is chosen: see fusion/winograd_rule.h ---- */

/* An odd number of cache lines that holds n floats. */
static int64_t odd_lines(int64_t n) { return (ot_ceil_div(n, LINE) | 1) * LINE; }

ot_wino_choice ot_wino_choose(const ot_winograd_spec *s)
{
    double cycles;
    const ot_wino_code *code = code_for_machine();
    ot_winograd_way way = ot_winograd_choose(&s->sizes, code->block, s->room, &cycles);
    return (ot_wino_choice){.code = code,
                            .m = way.m,
                            .strip = way.strip,
                            .group = way.group,
                            .part = way.part,
                            .shared = way.shared};
}

/* Everything but memory. Requires sizes that were checked. */
static void measure(ot_winograd *w, const ot_winograd_spec *s, const ot_wino_choice *way)
{
    *w = (ot_winograd){.s = *s,
                       .code = way->code,
                       .m = way->m,
                       .positions = (way->m + 2) * (way->m + 2),
                       .shared = way->shared};
    w->s.weights = w->s.scale = w->s.bias = NULL;
    if (!s->apart) {
        w->s.apart = 1;
        w->s.in[0] = s->sizes.in_h;
        w->s.in[1] = s->sizes.in_w;
        w->s.out[0] = s->sizes.out_h;
        w->s.out[1] = s->sizes.out_w;
    }
    w->b = w->code->block;
    w->c_blocks = ot_ceil_div(s->sizes.in_channels, w->b);
    w->k_blocks = ot_ceil_div(s->sizes.out_channels, w->b);
    w->tile_rows = ot_ceil_div(s->sizes.out_h, w->m);
    w->tile_cols = ot_ceil_div(s->sizes.out_w, w->m);
    w->tiles = ot_winograd_tiles(&s->sizes, w->m);
    w->group = ot_min(way->group, w->k_blocks);
    w->strip = ot_max(ot_min(way->strip, w->tiles), 1);
    int64_t parts = way->shared ? ot_max(w->c_blocks, ot_ceil_div(w->k_blocks, w->group))
                                : ot_ceil_div(w->tiles, w->strip);
    w->workers = ot_max(ot_min(ot_min(s->sizes.threads, parts), WORKERS_MAX), 1);
    w->v_pos = odd_lines(w->c_blocks * w->strip * w->b);
    w->m_pos = odd_lines(w->group * w->strip * w->b);
    w->part = ot_min(way->part, w->c_blocks * w->b);
    w->u_pos = w->part ? odd_lines(w->part * ot_min(2, w->group) * w->b) : 0;
    w->v_floats = w->positions * w->v_pos;
    w->column_floats = odd_lines((w->m * OT_WINO_RUN + 2) * (w->m + 2) * w->b);
    w->worker_floats = w->positions * (w->m_pos + w->u_pos) + w->column_floats;
}

/* ---- the interface ---- */

ot_status ot_winograd_new(const ot_winograd_spec *s, ot_diag *d, ot_winograd **out)
{
    *out = NULL;
    if (!ot_winograd_sizes_fit(&s->sizes))
        return ot_fail(d, OT_E_INPUT, "a 3x3 convolution of impossible sizes");
    ot_wino_choice way = ot_wino_choose(s);
    return ot_wino_make(s, &way, d, out);
}

ot_status ot_wino_make(const ot_winograd_spec *s, const ot_wino_choice *way, ot_diag *d,
                       ot_winograd **out)
{
    *out = NULL;
    ot_winograd *w = ot_hook_alloc(NULL, 0, sizeof *w);
    if (!w) return ot_fail_nomem(d);
    measure(w, s, way);
    w->s.like = NULL;
    if (s->like && (s->like->m == w->m || w->part) && !s->like->part == !w->part &&
        s->like->group == w->group && s->like->code == w->code) {
        w->u = s->like->u;
        w->bias = s->like->bias;
        w->mask = s->like->mask;
        *out = w;
        return OT_OK;
    }
    int64_t u_floats = (w->part ? 9 : w->positions) * s->sizes.in_channels * w->k_blocks * w->b,
            bias_floats = w->k_blocks * w->b;
    w->memory_bytes = (size_t)(u_floats + bias_floats + w->b + LINE) * sizeof(float);
    w->memory = ot_hook_alloc(NULL, 0, w->memory_bytes);
    if (!w->memory) {
        ot_winograd_free(w);
        return ot_fail_nomem(d);
    }
    w->u = (float *)(((uintptr_t)w->memory + 63) / 64 * 64);
    w->bias = w->u + u_floats;
    w->mask = (uint32_t *)(void *)(w->bias + bias_floats);
    *out = w;
    if (s->weights) ot_winograd_fill(w, s->weights, s->scale, s->bias);
    return OT_OK;
}

void ot_winograd_fill(ot_winograd *w, const float *weights, const float *scale, const float *bias)
{
    memset(w->memory, 0, w->memory_bytes);
    fill_weights(w, weights, scale);
    for (int64_t k = 0; bias && k < w->s.sizes.out_channels; k++) w->bias[k] = bias[k];
    for (int64_t k = 0; k < w->b; k++)
        w->mask[k] = (w->k_blocks - 1) * w->b + k < w->s.sizes.out_channels ? UINT32_MAX : 0;
}

void ot_winograd_free(ot_winograd *w)
{
    if (!w) return;
    if (w->memory) (void)!ot_hook_alloc(w->memory, w->memory_bytes, 0);
    (void)!ot_hook_alloc(w, sizeof *w, 0);
}

int64_t ot_winograd_scratch(const ot_winograd *w)
{
    return ((w->shared ? 1 : w->workers) * w->v_floats + w->workers * w->worker_floats) *
           (int64_t)sizeof(float);
}

uint64_t ot_winograd_form(const ot_winograd_spec *s)
{
    ot_wino_choice way = ot_wino_choose(s);
    return (uint64_t)(way.part ? 0 : way.m) << 32 |
           (uint64_t)ot_min(way.group, ot_ceil_div(s->sizes.out_channels, way.code->block));
}

int64_t ot_winograd_would_hold(const ot_winograd_spec *s, int64_t *growth)
{
    int64_t block = code_for_machine()->block;
    double cycles;
    ot_winograd_way way = ot_winograd_choose(&s->sizes, block, s->room, &cycles);
    *growth = ot_winograd_growth(&s->sizes, &way, block);
    return ot_winograd_bytes(&s->sizes, &way, block);
}

int64_t ot_winograd_block(void)
{
    const ot_wino_code *code = code_for_machine();
    return code == &ot_wino_plain ? 0 : code->block;
}

bool ot_winograd_pays(const ot_winograd_spec *s)
{
    return ot_winograd_guess_for(&s->sizes, ot_winograd_block(), s->room).pays;
}

/* ---- a run ---- */

typedef struct wino_run {
    const ot_winograd *w;
    const float *src, *residual;
    float *dst;
    const int64_t *src_strides, *dst_strides;
    float *scratch;
    int64_t first, end; /* tiles of the strip that all threads are at, when they share one */
} wino_run;

/* Tiles side by side in one image, from tile `at` on, but not beyond `end`. */
typedef struct tile_run {
    int64_t image, row, col, n; /* of the first, in tiles */
} tile_run;

static tile_run tiles_at(const ot_winograd *w, int64_t at, int64_t end)
{
    int64_t row = at / w->tile_cols, col = at % w->tile_cols;
    return (tile_run){row / w->tile_rows, row % w->tile_rows, col,
                      ot_min(OT_WINO_RUN, ot_min(w->tile_cols - col, end - at))};
}

/* Where an image lies in an array, and its extents there. */
typedef struct image_place {
    int64_t at, row_stride, pixel_stride, h, w;
} image_place;

static image_place place_of(const ot_winograd *w, int64_t image, const int64_t strides[3],
                            const int64_t whole[2])
{
    int64_t d = w->s.apart, n = image / (d * d), y = image / d % d, x = image % d;
    return (image_place){.at = n * strides[0] + y * strides[2] + x * w->b,
                         .row_stride = d * strides[2],
                         .pixel_stride = d * w->b,
                         .h = ot_ceil_div(whole[0] - y, d),
                         .w = ot_ceil_div(whole[1] - x, d)};
}

/* V of channel block cb, tiles first..end. */
static void input_block(const wino_run *r, int64_t cb, int64_t first, int64_t end, float *v,
                        float *columns)
{
    const ot_winograd *w = r->w;
    tile_run run;
    for (int64_t t = first; t < end; t += run.n) {
        run = tiles_at(w, t, end);
        image_place p = place_of(w, run.image, r->src_strides, w->s.in);
        ot_wino_input in = {
            .src = r->src + p.at + cb * r->src_strides[1],
            .row_stride = p.row_stride,
            .pixel_stride = p.pixel_stride,
            .in_h = p.h,
            .in_w = p.w,
            .row = run.row * w->m - w->s.sizes.pad_top,
            .col = run.col * w->m - w->s.sizes.pad_left,
            .tiles = run.n,
            .v = v + (cb * w->strip + t - first) * w->b,
            .pos_stride = w->v_pos,
            .columns = columns,
        };
        w->code->input[w->m / 2 - 1](&in);
    }
}

static void output_block(const wino_run *r, int64_t kb, int64_t first, int64_t end, const float *m)
{
    const ot_winograd *w = r->w;
    bool padded = kb == w->k_blocks - 1 && w->s.sizes.out_channels % w->b;
    tile_run run;
    for (int64_t t = first; t < end; t += run.n) {
        run = tiles_at(w, t, end);
        int64_t y = run.row * w->m, x = run.col * w->m;
        image_place p = place_of(w, run.image, r->dst_strides, w->s.out);
        int64_t at = p.at + kb * r->dst_strides[1] + y * p.row_stride + x * p.pixel_stride;
        ot_wino_output out = {
            .m = m + (t - first) * w->b,
            .pos_stride = w->m_pos,
            .tiles = run.n,
            .dst = r->dst + at,
            .residual = r->residual ? r->residual + at : NULL,
            .row_stride = p.row_stride,
            .pixel_stride = p.pixel_stride,
            .rows = p.h - y,
            .cols = p.w - x,
            .bias = w->bias + kb * w->b,
            .mask = padded ? w->mask : NULL,
            .act = (int)w->s.act,
            .alpha = w->s.alpha,
            .beta = w->s.beta,
        };
        w->code->output[w->m / 2 - 1](&out);
    }
}

/* One or two blocks of output channels, all positions; U is made in `u`. */
static void fresh_blocks(const ot_winograd *w, int64_t kb, int64_t blocks, int64_t tiles,
                         const float *v, float *m, float *u)
{
    int64_t channels = w->s.sizes.in_channels;
    for (int64_t c = 0; c < channels; c += w->part) {
        ot_wino_weights made = {
            .w = w->u + (kb * channels + c * blocks) * 9 * w->b,
            .u = u,
            .channels = ot_min(w->part, channels - c),
            .k_blocks = blocks,
            .pos_stride = w->u_pos,
        };
        ot_wino_product p = {
            .channels = made.channels,
            .k_blocks = blocks,
            .tiles = tiles,
            .block_stride = w->strip * w->b,
            .add = c > 0,
        };
        w->code->weights[w->m / 2 - 1](&made);
        for (int64_t pos = 0; pos < w->positions; pos++) {
            p.u = u + pos * w->u_pos;
            p.v = v + pos * w->v_pos + c * w->strip;
            p.m = m + pos * w->m_pos;
            w->code->product(&p);
        }
    }
}

/* The output channels of one group, all positions. */
static void group_of_channels(const wino_run *r, int64_t group, int64_t first, int64_t end,
                              const float *v, float *m)
{
    const ot_winograd *w = r->w;
    int64_t kb = group * w->group, blocks = ot_min(w->group, w->k_blocks - kb),
            channels = w->s.sizes.in_channels;
    ot_wino_product p = {
        .u = w->u + kb * w->b * channels * w->positions,
        .channels = channels,
        .k_blocks = blocks,
        .tiles = end - first,
        .block_stride = w->strip * w->b,
    };
    for (int64_t k = 0; w->part && k < blocks; k += 2)
        fresh_blocks(w, kb + k, ot_min(2, blocks - k), end - first, v, m + k * w->strip * w->b,
                     m + w->positions * w->m_pos + w->column_floats);
    for (int64_t pos = 0; !w->part && pos < w->positions; pos++) {
        p.v = v + pos * w->v_pos;
        p.m = m + pos * w->m_pos;
        w->code->product(&p);
        p.u += channels * blocks * w->b;
    }
    for (int64_t k = 0; k < blocks; k++)
        output_block(r, kb + k, first, end, m + k * w->strip * w->b);
}

/* ---- threads ---- */

static float *columns_of(const ot_winograd *w, float *worker)
{
    return worker + w->positions * w->m_pos;
}

/* Strips; V is the worker's own. */
static void strips_share(void *job, int64_t from, int64_t to, uint32_t worker)
{
    const wino_run *r = job;
    const ot_winograd *w = r->w;
    int64_t groups = ot_ceil_div(w->k_blocks, w->group);
    float *v = r->scratch + worker * (w->v_floats + w->worker_floats), *m = v + w->v_floats;
    for (int64_t s = from; s < to; s++) {
        int64_t first = s * w->strip, end = ot_min(first + w->strip, w->tiles);
        for (int64_t cb = 0; cb < w->c_blocks; cb++)
            input_block(r, cb, first, end, v, columns_of(w, m));
        for (int64_t g = 0; g < groups; g++) group_of_channels(r, g, first, end, v, m);
    }
}

/* Blocks of channels, then groups of channels, of one strip; V is shared. */
static float *own_m(const wino_run *r, uint32_t worker)
{
    return r->scratch + r->w->v_floats + worker * r->w->worker_floats;
}

static void inputs_share(void *job, int64_t from, int64_t to, uint32_t worker)
{
    const wino_run *r = job;
    for (int64_t cb = from; cb < to; cb++)
        input_block(r, cb, r->first, r->end, r->scratch, columns_of(r->w, own_m(r, worker)));
}

static void groups_share(void *job, int64_t from, int64_t to, uint32_t worker)
{
    const wino_run *r = job;
    for (int64_t g = from; g < to; g++)
        group_of_channels(r, g, r->first, r->end, r->scratch, own_m(r, worker));
}

/* The threads share V and work at one strip together. */
static void run_shared(wino_run *r, uint32_t threads)
{
    const ot_winograd *w = r->w;
    for (r->first = 0; r->first < w->tiles; r->first += w->strip) {
        r->end = ot_min(r->first + w->strip, w->tiles);
        ot_pool_share(threads, w->c_blocks, 1, inputs_share, r);
        ot_pool_share(threads, ot_ceil_div(w->k_blocks, w->group), 1, groups_share, r);
    }
}

void ot_winograd_run(const ot_winograd *w, const float *src, const int64_t src_strides[3],
                     float *dst, const int64_t dst_strides[3], const float *residual, void *scratch)
{
    wino_run r = {.w = w,
                  .src = src,
                  .dst = dst,
                  .src_strides = src_strides,
                  .dst_strides = dst_strides,
                  .scratch = scratch};
    r.residual = w->s.residual ? residual : NULL;
    if (w->shared)
        run_shared(&r, (uint32_t)w->workers);
    else
        ot_pool_share((uint32_t)w->workers, ot_ceil_div(w->tiles, w->strip), 1, strips_share, &r);
}
