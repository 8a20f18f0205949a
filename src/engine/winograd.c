/* Winograd convolutions: what is chosen for a shape, the transformed weights, and a run.
 *
 *   all tiles in one line: image by image, row of tiles by row of tiles
 *   |-- strip --|-- strip --|-- ...            each thread takes strips; V of a strip stays in its cache
 *
 *   strip:  input tiles --> V [P][C/b][tiles][b]
 *           for each group of g blocks of output channels:
 *               for each position: M = U V      U is read once a strip, in the order in which it lies
 *               M [P][g][tiles][b] --> output tiles
 *
 * With fewer strips than threads these share out the blocks of one strip instead: channels for V, groups for M.
 */
#include "winograd_lanes.h"

#include "simd.h"

#include <math.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#define thread_number() ((int64_t)omp_get_thread_num())
#define in_parallel() (omp_in_parallel() != 0)
#else
#define thread_number() ((int64_t)0)
#define in_parallel() false
#endif

#define LINE 16 /* floats of a cache line */
#define ROWS 6  /* tiles that a product takes at once */
#define WORKERS_MAX 1024
#define V_BYTES ((int64_t)200 << 10)
#define U_OWN (256 << 10) /* bytes of U that stay in a core's cache */
#define U_NEAR ((int64_t)3 << 20) /* held by a cache that a few cores share, or by a core's own */
#define U_FAR ((int64_t)8 << 20)

struct ot_winograd {
    ot_winograd_spec s;        /* weights, scale and bias are NULL: what is needed of them is here */
    const ot_wino_code *code;
    int64_t b, m, positions;   /* floats of a block, outputs and positions of a tile */
    int64_t c_blocks, k_blocks;
    int64_t tile_rows, tile_cols, tiles; /* of an image, of an image, of all images */
    int64_t strip;             /* tiles of a strip */
    int64_t group;             /* blocks of output channels of a group */
    int64_t v_pos, m_pos;      /* floats between positions in V and M */
    int64_t workers;           /* threads that have something to do */
    bool shared;               /* threads work at one strip together */
    int64_t v_floats;          /* of a strip: once if shared, else for each thread */
    int64_t worker_floats;     /* scratch of a thread: M of a group, columns */
    void *memory;
    size_t memory_bytes;
    float *u, *bias;           /* bias: [k_blocks][b] */
    uint32_t *mask;            /* [b] of the last block of output channels: zeros where it is padded */
};

/* Limits of what is held: layers with small weights on large maps, which gain most, are the cheap ones. */
#define HELD_EACH  ((int64_t)12 << 20) /* bytes of one layer's transformed weights */
#define GROWTH_ALL ((int64_t)22 << 20) /* by which those of a session exceed the model's */

static const ot_wino_code *code_for_machine(void)
{
#ifdef OT_WINO_X86
    if (ot_simd_block() == 16 && __builtin_cpu_supports("avx512f")) return &ot_wino_avx512;
    if (ot_simd_block() == 8 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &ot_wino_avx2;
#endif
    return &ot_wino_plain;
}

/* ---- transformed weights ---- */

/* Points of F(m, 3), without infinity. Of the sets that were tried these lose least; with them sums of products keep the size of
 * the outputs. */
static const double points_2[] = {0, 1, -1};
static const double points_4[] = {0, OT_WINO_ROOT_HALF, -OT_WINO_ROOT_HALF, 2 * OT_WINO_ROOT_HALF, -2 * OT_WINO_ROOT_HALF};
static const double points_6[] = {0, 0.5, -0.5, 1, -1, 2, -2};

/* Row i of G: what 3 weights of a line become at point i. Every scale that B' and A' leave out is here. */
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
static void transform_weights(int64_t m, double g[8][3], const float *w, double scale, float *u, int64_t step)
{
    double rows[8][3];
    for (int64_t i = 0; i < m + 2; i++)
        for (int64_t k = 0; k < 3; k++)
            rows[i][k] = g[i][0] * (double)w[k] + g[i][1] * (double)w[3 + k] + g[i][2] * (double)w[6 + k];
    for (int64_t i = 0; i < m + 2; i++)
        for (int64_t j = 0; j < m + 2; j++, u += step)
            *u = (float)(scale * (rows[i][0] * g[j][0] + rows[i][1] * g[j][1] + rows[i][2] * g[j][2]));
}

/* Blocks of output channels outside, then channels: what is written for the lanes of a block lies together. */
static void fill_weights(ot_winograd *w, const float *weights, const float *scale)
{
    int64_t channels = w->s.in_channels, b = w->b;
    double g[8][3];
    transform_rows(w->m, g);
    for (int64_t kb = 0; kb < w->k_blocks; kb++) {
        int64_t first = kb / w->group * w->group, blocks = ot_min(w->group, w->k_blocks - first);
        int64_t pair = (kb - first) / 2 * 2, wide = ot_min(2, blocks - pair) * b; /* floats of a channel of this pair of blocks */
        float *u = w->u + first * b * channels * w->positions + pair * b * channels + (kb - first - pair) * b;
        int64_t end = ot_min((kb + 1) * b, w->s.out_channels);
        for (int64_t c = 0; c < channels; c++)
            for (int64_t k = kb * b; k < end; k++)
                transform_weights(w->m, g, weights + (k * channels + c) * 9, scale ? (double)scale[k] : 1,
                                  u + c * wide + k % b, channels * blocks * b);
    }
}

/* ---- what is chosen ---- */

static int64_t ceil_div(int64_t a, int64_t by)
{
    return (a + by - 1) / by;
}

/* An odd number of cache lines that holds n floats. */
static int64_t odd_lines(int64_t n)
{
    return (ceil_div(n, LINE) | 1) * LINE;
}

static int64_t tiles_of(const ot_winograd_spec *s, int64_t m)
{
    return s->batch * ceil_div(s->out_h, m) * ceil_div(s->out_w, m);
}

/* V of a strip should stay in the cache of a core, next to a group's M; U, read once a strip, asks for the more tiles the farther
 * away it lies. */
static void choose_strip(const ot_winograd_spec *s, ot_wino_choice *way)
{
    int64_t b = way->code->block, positions = (way->m + 2) * (way->m + 2), tiles = tiles_of(s, way->m);
    int64_t v_tile = positions * ceil_div(s->in_channels, b) * b * (int64_t)sizeof(float);
    int64_t k_blocks = ceil_div(s->out_channels, b), u_bytes = positions * s->in_channels * k_blocks * b * (int64_t)sizeof(float);
    int64_t least = u_bytes > U_FAR ? 48 : u_bytes > U_NEAR ? 24 : 12, threads = ot_max(s->threads, 1);
    int64_t want = ot_min(ot_max(V_BYTES / v_tile / ROWS * ROWS, least), 48);
    way->group = ot_min(want * v_tile <= 2 * V_BYTES ? 2 : 4, k_blocks);
    int64_t groups = ceil_div(k_blocks, way->group), strips = ot_max((tiles + want / 2) / want, 1);
    if (threads > 1 && strips < 2 * threads) {
        /* Too few strips to go around evenly: shorter ones, unless that means to read a large U more often. */
        way->shared = u_bytes > U_NEAR && groups >= threads;
        if (!way->shared) strips = ot_max(ot_min(ceil_div(strips, threads) * threads, ceil_div(tiles, ROWS)), 1);
    }
    way->strip = ot_max(strips > 1 ? ceil_div(ceil_div(tiles, strips), ROWS) * ROWS : tiles, 1);
}

/* Cycles of a core to transform a tile in one block of channels, as measured; columns of the input are shared. */
static const double input_cycles[] = {50, 115, 240}, output_cycles[] = {45, 110, 190};

/* Cycles to read `bytes` of weights: from a core's own cache nothing, from a shared one, from memory. */
static double weight_cycles(double bytes, double threads)
{
    return bytes <= U_OWN ? 0 : bytes <= U_NEAR ? bytes / 16 / threads : bytes / 7.5 / fmin(threads, 2);
}

/* Two vectors are multiplied in a cycle, given four tiles at once; a product of `channels` steps takes as long as two more. */
static double winograd_cycles(const ot_winograd_spec *s, const ot_wino_choice *way)
{
    int64_t b = way->code->block, positions = (way->m + 2) * (way->m + 2), tiles = tiles_of(s, way->m);
    double k_blocks = (double)ceil_div(s->out_channels, b), c_blocks = (double)ceil_div(s->in_channels, b);
    double rows = (double)way->strip / (double)ceil_div(way->strip, ROWS); /* tiles at once */
    double product = (double)positions * ceil(k_blocks / 2) * (double)(s->in_channels + 2) / (0.92 * fmin(rows / 4, 1));
    double tile = product + c_blocks * input_cycles[way->m / 2 - 1] + k_blocks * output_cycles[way->m / 2 - 1];
    double u_bytes = (double)positions * (double)s->in_channels * k_blocks * (double)b * sizeof(float);
    int64_t threads = ot_max(s->threads, 1), strips = ceil_div(tiles, way->strip);
    int64_t parts = way->shared ? ceil_div(ceil_div(s->out_channels, b), way->group) : ot_max(strips, 1);
    double share = (double)ceil_div(parts, threads) / (double)parts; /* of the thread with the most */
    return (double)tiles * tile * share + (double)strips * weight_cycles(u_bytes, (double)threads);
}

/* A good direct convolution multiplies two vectors in a cycle 85 times out of 100, and leaves out rows of zeros. */
static double direct_cycles(const ot_winograd_spec *s, int64_t block)
{
    double b = (double)block, threads = fmax(s->threads, 1);
    double pairs = (double)s->in_channels * ceil((double)s->out_channels / b);
    int64_t rows = 0; /* of the output, each as often as rows of the input reach it */
    for (int64_t t = 0; t < 3; t++) rows += ot_max(ot_min(s->out_h, s->in_h + s->pad_top - t) - ot_max(s->pad_top - t, 0), 0);
    double outputs = (double)s->batch * (double)rows * (double)s->out_w;
    return outputs * pairs * 3 / 2 / 0.85 / threads + weight_cycles(pairs * 9 * b * sizeof(float), threads);
}

/* *cycles: of a run in the way that is chosen. */
static ot_wino_choice choose_with(const ot_winograd_spec *s, const ot_wino_code *code, double *cycles)
{
    ot_wino_choice best = {0};
    double least = INFINITY;
    for (int64_t m = 2; m <= 6; m += 2) {
        ot_wino_choice way = {.code = code, .m = m};
        choose_strip(s, &way);
        double takes = winograd_cycles(s, &way), counts = takes * (m == 6 ? 1.04 : 1); /* larger errors should be worth something */
        if (counts >= least) continue;
        least = counts;
        best = way;
        *cycles = takes;
    }
    return best;
}

ot_wino_choice ot_wino_choose(const ot_winograd_spec *s)
{
    double cycles;
    return choose_with(s, code_for_machine(), &cycles);
}

/* Everything but memory. Requires sizes that were checked. */
static void measure(ot_winograd *w, const ot_winograd_spec *s, const ot_wino_choice *way)
{
    *w = (ot_winograd){.s = *s, .code = way->code, .m = way->m, .positions = (way->m + 2) * (way->m + 2), .shared = way->shared};
    w->s.weights = w->s.scale = w->s.bias = NULL;
    w->b = w->code->block;
    w->c_blocks = ceil_div(s->in_channels, w->b);
    w->k_blocks = ceil_div(s->out_channels, w->b);
    w->tile_rows = ceil_div(s->out_h, w->m);
    w->tile_cols = ceil_div(s->out_w, w->m);
    w->tiles = tiles_of(s, w->m);
    w->group = ot_min(way->group, w->k_blocks);
    w->strip = ot_max(ot_min(way->strip, w->tiles), 1);
    int64_t parts = way->shared ? ot_max(w->c_blocks, ceil_div(w->k_blocks, w->group)) : ceil_div(w->tiles, w->strip);
    w->workers = ot_max(ot_min(ot_min(s->threads, parts), WORKERS_MAX), 1);
    w->v_pos = odd_lines(w->c_blocks * w->strip * w->b);
    w->m_pos = odd_lines(w->group * w->strip * w->b);
    w->v_floats = w->positions * w->v_pos;
    w->worker_floats = w->positions * w->m_pos + odd_lines((w->m * OT_WINO_RUN + 2) * (w->m + 2) * w->b);
}

static bool sizes_fit(const ot_winograd_spec *s)
{
    const int64_t sizes[] = {s->in_channels, s->out_channels, s->in_h, s->in_w, s->out_h, s->out_w};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (sizes[k] < 1 || sizes[k] > INT32_MAX) return false;
    int64_t n;
    return s->batch >= 0 && s->pad_top >= 0 && s->pad_top < INT32_MAX && s->pad_left >= 0 && s->pad_left < INT32_MAX &&
           ot_product((const int64_t[]){s->batch, s->out_h, s->out_w}, 3, &n) &&
           ot_product((const int64_t[]){64 * sizeof(float), s->in_channels + 16, s->out_channels + 16}, 3, &n) && n < INT64_MAX / 2;
}

/* ---- the interface ---- */

ot_status ot_winograd_new(const ot_winograd_spec *s, ot_diag *d, ot_winograd **out)
{
    *out = NULL;
    if (!sizes_fit(s)) return ot_fail(d, OT_E_INPUT, "a 3x3 convolution of impossible sizes");
    ot_wino_choice way = ot_wino_choose(s);
    return ot_wino_make(s, &way, d, out);
}

ot_status ot_wino_make(const ot_winograd_spec *s, const ot_wino_choice *way, ot_diag *d, ot_winograd **out)
{
    *out = NULL;
    ot_winograd *w = ot_hook_alloc(NULL, 0, sizeof *w);
    if (!w) return ot_fail_nomem(d);
    measure(w, s, way);
    w->s.like = NULL;
    if (s->like && s->like->m == w->m && s->like->group == w->group && s->like->code == w->code) {
        w->u = s->like->u;
        w->bias = s->like->bias;
        w->mask = s->like->mask;
        *out = w;
        return OT_OK;
    }
    int64_t u_floats = w->positions * s->in_channels * w->k_blocks * w->b, bias_floats = w->k_blocks * w->b;
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
    for (int64_t k = 0; bias && k < w->s.out_channels; k++) w->bias[k] = bias[k];
    for (int64_t k = 0; k < w->b; k++) w->mask[k] = (w->k_blocks - 1) * w->b + k < w->s.out_channels ? UINT32_MAX : 0;
}

void ot_winograd_free(ot_winograd *w)
{
    if (!w) return;
    if (w->memory) (void)!ot_hook_alloc(w->memory, w->memory_bytes, 0);
    (void)!ot_hook_alloc(w, sizeof *w, 0);
}

int64_t ot_winograd_weight_bytes(const ot_winograd *w)
{
    return (int64_t)w->memory_bytes;
}

int64_t ot_winograd_scratch(const ot_winograd *w)
{
    return ((w->shared ? 1 : w->workers) * w->v_floats + w->workers * w->worker_floats) * (int64_t)sizeof(float);
}

uint64_t ot_winograd_form(const ot_winograd_spec *s)
{
    ot_wino_choice way = ot_wino_choose(s);
    return (uint64_t)way.m << 32 | (uint64_t)ot_min(way.group, ceil_div(s->out_channels, way.code->block));
}

static int64_t bytes_of(const ot_winograd_spec *s, const ot_wino_choice *way)
{
    int64_t b = way->code->block;
    return (way->m + 2) * (way->m + 2) * s->in_channels * ceil_div(s->out_channels, b) * b * (int64_t)sizeof(float);
}

int64_t ot_winograd_would_hold(const ot_winograd_spec *s)
{
    ot_wino_choice way = ot_wino_choose(s);
    return bytes_of(s, &way);
}

ot_winograd_guess ot_winograd_guess_for(const ot_winograd_spec *s, int64_t block)
{
    const ot_wino_code code = {.name = "guessed", .block = block};
    ot_winograd_guess g = {0};
    if (block < 1 || !sizes_fit(s) || 2 * s->in_channels < block) return g; /* a direct convolution takes so few without blocks */
    ot_wino_choice way = choose_with(s, &code, &g.cycles);
    g.pays = g.cycles < 0.9 * direct_cycles(s, block);
    g.bytes = bytes_of(s, &way);
    return g;
}

int64_t ot_winograd_block(void)
{
    const ot_wino_code *code = code_for_machine();
    return code == &ot_wino_plain ? 0 : code->block;
}

bool ot_winograd_pays(const ot_winograd_spec *s)
{
    return ot_winograd_guess_for(s, ot_winograd_block()).pays;
}

bool ot_winograd_admits(const ot_winograd_spec *s, int64_t bytes, int64_t grown, int64_t *growth)
{
    *growth = bytes - 9 * s->in_channels * s->out_channels * (int64_t)sizeof(float);
    return bytes <= HELD_EACH && grown + *growth <= GROWTH_ALL;
}

/* ---- a run ---- */

typedef struct wino_run {
    const ot_winograd *w;
    const float *src, *residual;
    float *dst;
    const int64_t *src_strides, *dst_strides;
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

/* V of channel block cb, tiles first..end. */
static void input_block(const wino_run *r, int64_t cb, int64_t first, int64_t end, float *v, float *columns)
{
    const ot_winograd *w = r->w;
    tile_run run;
    for (int64_t t = first; t < end; t += run.n) {
        run = tiles_at(w, t, end);
        ot_wino_input in = {
            .src = r->src + run.image * r->src_strides[0] + cb * r->src_strides[1],
            .row_stride = r->src_strides[2],
            .in_h = w->s.in_h,
            .in_w = w->s.in_w,
            .row = run.row * w->m - w->s.pad_top,
            .col = run.col * w->m - w->s.pad_left,
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
    bool padded = kb == w->k_blocks - 1 && w->s.out_channels % w->b;
    tile_run run;
    for (int64_t t = first; t < end; t += run.n) {
        run = tiles_at(w, t, end);
        int64_t y = run.row * w->m, x = run.col * w->m;
        int64_t at = run.image * r->dst_strides[0] + kb * r->dst_strides[1] + y * r->dst_strides[2] + x * w->b;
        ot_wino_output out = {
            .m = m + (t - first) * w->b,
            .pos_stride = w->m_pos,
            .tiles = run.n,
            .dst = r->dst + at,
            .residual = r->residual ? r->residual + at : NULL,
            .row_stride = r->dst_strides[2],
            .rows = w->s.out_h - y,
            .cols = w->s.out_w - x,
            .bias = w->bias + kb * w->b,
            .mask = padded ? w->mask : NULL,
            .act = (int)w->s.act,
            .alpha = w->s.alpha,
            .beta = w->s.beta,
        };
        w->code->output[w->m / 2 - 1](&out);
    }
}

/* The output channels of one group, all positions. */
static void group_of_channels(const wino_run *r, int64_t group, int64_t first, int64_t end, const float *v, float *m)
{
    const ot_winograd *w = r->w;
    int64_t kb = group * w->group, blocks = ot_min(w->group, w->k_blocks - kb), channels = w->s.in_channels;
    ot_wino_product p = {
        .u = w->u + kb * w->b * channels * w->positions,
        .channels = channels,
        .k_blocks = blocks,
        .tiles = end - first,
        .block_stride = w->strip * w->b,
    };
    for (int64_t pos = 0; pos < w->positions; pos++) {
        p.v = v + pos * w->v_pos;
        p.m = m + pos * w->m_pos;
        w->code->product(&p);
        p.u += channels * blocks * w->b;
    }
    for (int64_t k = 0; k < blocks; k++) output_block(r, kb + k, first, end, m + k * w->strip * w->b);
}

/* ---- threads ---- */

static float *columns_of(const ot_winograd *w, float *worker)
{
    return worker + w->positions * w->m_pos;
}

/* Each thread takes strips; V is its own. */
static void run_strips(const wino_run *r, float *scratch, int threads)
{
    const ot_winograd *w = r->w;
    int64_t strips = ceil_div(w->tiles, w->strip), groups = ceil_div(w->k_blocks, w->group);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1)
    for (int64_t s = 0; s < strips; s++) {
        int64_t first = s * w->strip, end = ot_min(first + w->strip, w->tiles);
        float *v = scratch + thread_number() * (w->v_floats + w->worker_floats), *m = v + w->v_floats;
        for (int64_t cb = 0; cb < w->c_blocks; cb++) input_block(r, cb, first, end, v, columns_of(w, m));
        for (int64_t g = 0; g < groups; g++) group_of_channels(r, g, first, end, v, m);
    }
}

/* The threads share V and work at one strip together. */
static void run_shared(const wino_run *r, float *scratch, int threads)
{
    const ot_winograd *w = r->w;
    int64_t groups = ceil_div(w->k_blocks, w->group);
    float *v = scratch, *workers = scratch + w->v_floats;
#pragma omp parallel num_threads(threads) if (threads > 1)
    for (int64_t first = 0; first < w->tiles; first += w->strip) {
        int64_t end = ot_min(first + w->strip, w->tiles);
        float *m = workers + thread_number() * w->worker_floats;
#pragma omp for schedule(static)
        for (int64_t cb = 0; cb < w->c_blocks; cb++) input_block(r, cb, first, end, v, columns_of(w, m));
#pragma omp for schedule(static)
        for (int64_t g = 0; g < groups; g++) group_of_channels(r, g, first, end, v, m);
    }
}

void ot_winograd_run(const ot_winograd *w, const float *src, const int64_t src_strides[3], float *dst,
                     const int64_t dst_strides[3], const float *residual, void *scratch)
{
    wino_run r = {w, src, w->s.residual ? residual : NULL, dst, src_strides, dst_strides};
    int threads = in_parallel() ? 1 : (int)w->workers;
    if (w->shared)
        run_shared(&r, scratch, threads);
    else
        run_strips(&r, scratch, threads);
}
