/* Convolutions of 8-bit tensors as products: a block of positions at a time.
 *
 *   k = (channel, tap)     lines of the block: x at that tap      panels of 16 positions, two or
 *                                                                 four of k together
 *   k     [x x x x x x x x x x z z]   --.
 *   k+1   [x x x x x x x x x z z z]   --+--interleaved by two or four-->  bytes, in the cache
 *                                                            |
 *   weights of some maps, as rows (ot_i8_row) ---------------+--ot_i8_multiply--> y
 *   [maps][positions of the block]
 *
 * An implementation of one element reads its lines where they lie. Threads take blocks; where
 * blocks are few, maps are split, too. Weights of a group stay widened while a thread goes from
 * block to block, if they are few enough.
 */
#include "qconv.h"

#include "engine/core/simd.h"
#include "engine/core/pool.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(OT_ONE_ISA)
#include <immintrin.h>
#define HAS_AVX512_LINES 1
#endif

/* Of a block's panels. Tiles multiply so fast that lines had better be long. */
#define PANEL_BYTES      ((int64_t)96 << 10)
#define TILE_PANEL_BYTES ((int64_t)384 << 10)
#define BLOCK_MAX        1024 /* positions */
#define LINES            4    /* of k, that are interleaved at the most */

/* How a convolution is cut into tasks. */
typedef struct cut {
    /* channels and maps of a group, products a sum, positions */
    int64_t per, maps_per, k, out_n;
    int64_t block, blocks; /* positions of a block */
    int64_t rows;          /* maps whose weights are widened at once */
    int64_t parts;         /* shares of a group's maps, tasks of their own */
    bool direct;           /* lines are those of x */
    int64_t line_bytes, panel_bytes, row_bytes, end_bytes; /* of each thread's scratch */
} cut;

static int64_t up64(int64_t n) { return ot_ceil_div(n, 64) * 64; }

static bool reads_x(const ot_qconv *v)
{
    for (uint32_t a = 0; a < 2; a++)
        if (v->kernel[a] != 1 || v->stride[a] != 1 || v->lo[a] != 0 || v->out[a] != v->in[a])
            return false;
    return v->in[0] == 1 || v->x_strides[2] == v->in[1];
}

static bool is_depthwise(const ot_qconv *v) { return v->group == v->channels && v->group > 1; }

/* false: sizes that cannot be counted. */
static bool make_cut(const ot_qconv *v, uint32_t threads, cut *c)
{
    int64_t taps, each;
    *c = (cut){.per = v->channels / v->group,
               .maps_per = v->maps / v->group,
               .direct = reads_x(v),
               .parts = 1};
    if (!ot_mul_i64(v->kernel[0], v->kernel[1], &taps) || !ot_mul_i64(c->per, taps, &c->k))
        return false;
    if (!ot_mul_i64(v->out[0], v->out[1], &c->out_n) || c->k > INT64_MAX >> 16) return false;
    int64_t panels = ot_i8_way_here() == OT_I8_TILES ? TILE_PANEL_BYTES : PANEL_BYTES;
    c->block = ot_max(OT_I8_PANEL, panels / c->k / OT_I8_PANEL * OT_I8_PANEL);
    c->block = ot_min(ot_min(c->block, BLOCK_MAX),
                      ot_ceil_div(c->out_n, OT_I8_PANEL) * OT_I8_PANEL);
    c->blocks = ot_ceil_div(c->out_n, c->block);
    /* all about as long */
    c->block = ot_ceil_div(ot_ceil_div(c->out_n, c->blocks), OT_I8_PANEL) * OT_I8_PANEL;
    c->blocks = ot_ceil_div(c->out_n, c->block);
    c->rows = ot_min(ot_i8_rows_at_once(c->k), c->maps_per);
    if (!ot_mul_i64(c->blocks, v->batch, &each) || !ot_mul_i64(each, v->group, &each)) return false;
    if (each < threads) c->parts = ot_min(threads, ot_ceil_div(c->maps_per, 6));
    c->line_bytes = up64(c->block);
    c->panel_bytes = up64(ot_i8_packed_size(c->k, c->block));
    c->row_bytes = up64(c->rows * ot_i8_row_bytes(c->k));
    c->end_bytes = up64(c->maps_per * (int64_t)sizeof(ot_i8_end));
    return true;
}

static int64_t each_thread(const cut *c)
{
    return LINES * c->line_bytes + c->panel_bytes + c->row_bytes + c->end_bytes;
}

int64_t ot_qconv_work(const ot_qconv *v, uint32_t threads)
{
    int64_t bytes = -1;
    cut c;
    if (is_depthwise(v)) {
        int64_t each = ot_qconv_depthwise_work(v);
        return each >= 0 && ot_mul_i64(each, threads, &bytes) ? bytes : -1;
    }
    return make_cut(v, threads, &c) && ot_mul_i64(each_thread(&c), threads, &bytes) ? bytes : -1;
}

/* ---- panels ---- */

/* n positions of two lines, together, in panels `step` bytes apart. */
static void interleave_pair(uint8_t *to, int64_t step, const uint8_t *a, const uint8_t *b,
                            int64_t n)
{
    int64_t i = 0;
#ifdef __SSE2__
    for (; i + OT_I8_PANEL <= n; i += OT_I8_PANEL, to += step) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(a + i));
        __m128i y = _mm_loadu_si128((const __m128i *)(const void *)(b + i));
        _mm_storeu_si128((__m128i *)(void *)to, _mm_unpacklo_epi8(x, y));
        _mm_storeu_si128((__m128i *)(void *)(to + OT_I8_PANEL), _mm_unpackhi_epi8(x, y));
    }
#endif
    for (; i < n; i += OT_I8_PANEL, to += step)
        for (int64_t j = 0; j < ot_min(OT_I8_PANEL, n - i); j++) {
            to[2 * j] = a[i + j];
            to[2 * j + 1] = b[i + j];
        }
}

#ifdef HAS_AVX512_LINES
/* Four panels at a time: a lane of 128 bits of the lines becomes a row of a panel. Returns how many
 * positions were done. */
__attribute__((target("avx512f,avx512bw"))) static int64_t
interleave_wide(uint8_t *to, int64_t step, const uint8_t *const line[LINES], int64_t n)
{
    int64_t i = 0;
    for (; i + 4 * OT_I8_PANEL <= n; i += 4 * OT_I8_PANEL, to += 4 * step) {
        __m512i x[LINES], q[LINES];
        for (int e = 0; e < LINES; e++) x[e] = _mm512_loadu_si512((const void *)(line[e] + i));
        const __m512i a = _mm512_unpacklo_epi8(x[0], x[1]), b = _mm512_unpacklo_epi8(x[2], x[3]),
                      c = _mm512_unpackhi_epi8(x[0], x[1]), d = _mm512_unpackhi_epi8(x[2], x[3]);
        q[0] = _mm512_unpacklo_epi16(a, b);
        q[1] = _mm512_unpackhi_epi16(a, b);
        q[2] = _mm512_unpacklo_epi16(c, d);
        q[3] = _mm512_unpackhi_epi16(c, d);
        /* lanes 0 1 2 3 of four vectors, transposed */
        const __m512i low01 = _mm512_shuffle_i32x4(q[0], q[1], 0x44),
                      high01 = _mm512_shuffle_i32x4(q[0], q[1], 0xee),
                      low23 = _mm512_shuffle_i32x4(q[2], q[3], 0x44),
                      high23 = _mm512_shuffle_i32x4(q[2], q[3], 0xee);
        _mm512_storeu_si512((void *)to, _mm512_shuffle_i32x4(low01, low23, 0x88));
        _mm512_storeu_si512((void *)(to + step), _mm512_shuffle_i32x4(low01, low23, 0xdd));
        _mm512_storeu_si512((void *)(to + 2 * step), _mm512_shuffle_i32x4(high01, high23, 0x88));
        _mm512_storeu_si512((void *)(to + 3 * step), _mm512_shuffle_i32x4(high01, high23, 0xdd));
    }
    return i;
}
#endif

/* The same of four lines. */
static void interleave_quad(uint8_t *to, int64_t step, const uint8_t *const line[LINES], int64_t n)
{
    int64_t i = 0;
#ifdef HAS_AVX512_LINES
    if (__builtin_cpu_supports("avx512bw")) i = interleave_wide(to, step, line, n);
    to += i / OT_I8_PANEL * step;
#endif
#ifdef __SSE2__
    for (; i + OT_I8_PANEL <= n; i += OT_I8_PANEL, to += step) {
        __m128i x[LINES];
        for (int e = 0; e < LINES; e++)
            x[e] = _mm_loadu_si128((const __m128i *)(const void *)(line[e] + i));
        __m128i a = _mm_unpacklo_epi8(x[0], x[1]), b = _mm_unpacklo_epi8(x[2], x[3]),
                c = _mm_unpackhi_epi8(x[0], x[1]), d = _mm_unpackhi_epi8(x[2], x[3]);
        __m128i *at = (__m128i *)(void *)to;
        _mm_storeu_si128(at, _mm_unpacklo_epi16(a, b));
        _mm_storeu_si128(at + 1, _mm_unpackhi_epi16(a, b));
        _mm_storeu_si128(at + 2, _mm_unpacklo_epi16(c, d));
        _mm_storeu_si128(at + 3, _mm_unpackhi_epi16(c, d));
    }
#endif
    for (; i < n; i += OT_I8_PANEL, to += step)
        for (int64_t j = 0; j < ot_min(OT_I8_PANEL, n - i); j++)
            for (int e = 0; e < LINES; e++) to[LINES * j + e] = line[e][i + j];
}

OT_CLONES static void take_every(uint8_t *restrict to, const uint8_t *restrict from, int64_t stride,
                                 int64_t n)
{
    if (stride == 2)
        for (int64_t i = 0; i < n; i++) to[i] = from[2 * i];
    else
        for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
}

/* Positions of a row of the output whose elements lie on x, at a tap whose first element is
 * column `from` of the row of x. */
typedef struct span {
    int64_t from, first, end;
} span;

static span span_of(const ot_qconv *v, int64_t from)
{
    int64_t s = v->stride[1], before = from < 0 ? -from : 0,
            rest = v->in[1] > from ? v->in[1] - from : 0;
    return s == 1 ? (span){from, before, rest}
                  : (span){from, ot_ceil_div(before, s), ot_ceil_div(rest, s)};
}

/* Positions [at, at + n) of a row of the output; those that are not on x are the zero point. */
static void take_columns(const ot_qconv *v, uint8_t *to, const uint8_t *row, const span *on,
                         int64_t at, int64_t n)
{
    int64_t s = v->stride[1], first = ot_min(ot_max(on->first, at), at + n),
            end = ot_min(ot_max(on->end, first), at + n);
    if (first > at) memset(to, v->x_zero, (size_t)(first - at));
    if (end < at + n) memset(to + (end - at), v->x_zero, (size_t)(at + n - end));
    if (first == end) return;
    const uint8_t *in = row + on->from + first * s;
    if (s == 1)
        memcpy(to + (first - at), in, (size_t)(end - first));
    else
        take_every(to + (first - at), in, s, end - first);
}

/* Where a line is taken: a tap of a channel, and the first position of the block. Counted on
 * rather than divided for each line. */
typedef struct line_walk {
    const uint8_t *plane; /* the channel */
    int64_t ky, kx;       /* tap */
    int64_t row, at;      /* of the output */
} line_walk;

static void next_line(const ot_qconv *v, line_walk *w)
{
    if (++w->kx < v->kernel[1]) return;
    w->kx = 0;
    if (++w->ky < v->kernel[0]) return;
    w->ky = 0;
    w->plane += v->x_strides[1];
}

/* Rows of the output as wide as those of x, which follow on one another: a tap of n positions is a
 * run of x, but for what lies beyond its borders. */
static bool takes_runs(const ot_qconv *v)
{
    return v->stride[0] == 1 && v->stride[1] == 1 && v->out[1] == v->in[1] &&
           v->x_strides[2] == v->in[1];
}

static void take_run(const ot_qconv *v, uint8_t *to, const line_walk *w, int64_t n)
{
    int64_t width = v->in[1], down = w->ky * v->dilation[0] - v->lo[0],
            right = w->kx * v->dilation[1] - v->lo[1], from = (w->row + down) * width + w->at,
            first = ot_min(ot_max(0, -from), n), /* positions on rows of x: [first, end) */
        end = ot_max(first, ot_min(n, v->in[0] * width - from));
    if (first > 0) memset(to, v->x_zero, (size_t)first);
    if (end < n) memset(to + end, v->x_zero, (size_t)(n - end));
    if (first == end) return;
    int64_t a = ot_max(first, -(from + right)), b = ot_min(end, v->in[0] * width - (from + right));
    if (a < b) memcpy(to + a, w->plane + from + right + a, (size_t)(b - a));
    if (right == 0) return;
    /* columns beyond the border, of each row */
    int64_t column = right < 0 ? 0 : ot_max(0, width - right),
            many = ot_min(width, right < 0 ? -right : right);
    for (int64_t row = -w->at; row < n; row += width) {
        int64_t least = ot_max(row + column, first), most = ot_min(row + column + many, end);
        for (int64_t i = least; i < most; i++) to[i] = (uint8_t)v->x_zero;
    }
}

/* n positions. */
static void take_line(const ot_qconv *v, uint8_t *to, const line_walk *w, int64_t n)
{
    const uint8_t *plane = w->plane;
    int64_t ky = w->ky, row = w->row, at = w->at;
    if (takes_runs(v)) {
        take_run(v, to, w, n);
        return;
    }
    span on = span_of(v, w->kx * v->dilation[1] - v->lo[1]);
    for (int64_t done = 0; done < n; row++, at = 0) {
        int64_t some = ot_min(v->out[1] - at, n - done),
                y = row * v->stride[0] - v->lo[0] + ky * v->dilation[0];
        if (y < 0 || y >= v->in[0])
            memset(to + done, v->x_zero, (size_t)some);
        else
            take_columns(v, to + done, plane + y * v->x_strides[2], &on, at, some);
        done += some;
    }
}

typedef struct worker {
    uint8_t *lines, *panels;
    char *rows;
    ot_i8_end *ends;
    const uint8_t *held; /* weights that `rows` and `ends` have, of `held_n` maps */
    int64_t held_n;
} worker;

/* The line, and on to the next. */
static const uint8_t *line_of(const ot_qconv *v, const cut *c, line_walk *walk, int64_t p,
                              int64_t n, uint8_t *buffer)
{
    const uint8_t *line = walk->plane + p;
    if (!c->direct) {
        take_line(v, buffer, walk, n);
        line = buffer;
    }
    next_line(v, walk);
    return line;
}

/* x: the first channel of the group. */
static void fill_panels(const ot_qconv *v, const cut *c, const uint8_t *x, int64_t p, int64_t n,
                        worker *w)
{
    int64_t step = ot_i8_panel_bytes(c->k), each = ot_i8_way_here() == OT_I8_PAIRS ? 2 : 4;
    line_walk walk = {.plane = x, .row = p / v->out[1], .at = p % v->out[1]};
    if (n % OT_I8_PANEL) memset(w->panels + n / OT_I8_PANEL * step, 0, (size_t)step);
    for (int64_t j = 0; j < c->k; j += each) {
        const uint8_t *line[LINES];
        for (int64_t e = 0; e < each; e++) {
            uint8_t *buffer = w->lines + e * c->line_bytes;
            if (j + e < c->k) {
                line[e] = line_of(v, c, &walk, p, n, buffer);
            } else {
                memset(buffer, 0, (size_t)n);
                line[e] = buffer;
            }
        }
        if (each == 2)
            interleave_pair(w->panels + j * OT_I8_PANEL, step, line[0], line[1], n);
        else
            interleave_quad(w->panels + j * OT_I8_PANEL, step, line, n);
    }
}

/* ---- products ---- */

/* Weights of maps from `first` on as rows of the job, or their ends alone where they are read as
 * they lie. */
static void make_rows(const ot_qconv *v, const cut *c, int64_t first, const ot_i8_job *j, worker *w)
{
    const uint8_t *from = v->weights + first * c->k;
    bool reads = j->rows == from;
    if (w->held == from && w->held_n == j->m) return;
    w->held = from;
    w->held_n = j->m;
    for (int64_t m = 0; m < j->m; m++, from += c->k) {
        int32_t zero = v->w_zeros ? v->w_zeros[first + m] : v->w_zero;
        if (reads)
            w->ends[m] = ot_i8_end_of(from, c->k, v->w_signed, zero);
        else
            ot_i8_row(j, w->rows + m * j->row_bytes, from, v->w_signed, zero, &w->ends[m]);
    }
}

/* Part of an image's output: maps [first, end) at positions [p, p + n). */
typedef struct piece {
    int64_t first, end, p, n;
    int64_t at; /* element of y that is (0, 0) of the image */
} piece;

/* The piece, whose panels are there. */
static void multiply_rows(const ot_qconv *v, const cut *c, const piece *o, worker *w)
{
    size_t size = ot_dtype_bytes(v->y.type);
    const ot_i8_job whole = {.n = o->n,
                             .k = c->k,
                             .way = ot_i8_way_here(),
                             .panels = w->panels,
                             .b_signed = v->x_signed,
                             .b_zero = v->x_zero,
                             .out = v->y};
    bool reads = ot_i8_reads(&whole, v->w_signed);
    int64_t some = reads ? o->end - o->first : c->rows;
    for (int64_t m = o->first; m < o->end; m += some) {
        ot_i8_job j = whole;
        j.m = ot_min(some, o->end - m);
        j.rows = reads ? (const void *)(v->weights + m * c->k) : w->rows;
        j.row_bytes = reads ? c->k : ot_i8_row_bytes(c->k);
        j.ends = w->ends;
        make_rows(v, c, m, &j, w);
        j.out.to = (char *)v->y.to + (size_t)(o->at + m * c->out_n + o->p) * size;
        j.out.ld = c->out_n;
        if (v->y.row_scales) j.out.row_scales += m;
        if (v->y.row_bias) j.out.row_bias += m;
        if (v->y.row_shift) j.out.row_shift += m;
        ot_i8_multiply(&j, 0, ot_ceil_div(o->n, OT_I8_PANEL));
    }
}

/* Tasks, last fastest: image, group, share of the maps, block. */
static void run_task(const ot_qconv *v, const cut *c, const uint8_t *x, int64_t task, worker *w)
{
    int64_t p = task % c->blocks * c->block, n = ot_min(c->block, c->out_n - p);
    int64_t part = task / c->blocks % c->parts, g = task / c->blocks / c->parts % v->group;
    int64_t image = task / c->blocks / c->parts / v->group;
    fill_panels(v, c, x + image * v->x_strides[0] + g * c->per * v->x_strides[1], p, n, w);
    int64_t maps = g * c->maps_per;
    const piece o = {.first = maps + c->maps_per * part / c->parts,
                     .end = maps + c->maps_per * (part + 1) / c->parts,
                     .p = p,
                     .n = n,
                     .at = image * v->maps * c->out_n};
    multiply_rows(v, c, &o, w);
}

typedef struct product_job {
    const ot_qconv *v;
    const cut *c;
    const uint8_t *x;
    char *work; /* [threads][each_thread] */
} product_job;

static void products_share(void *job, int64_t first, int64_t end, uint32_t participant)
{
    const product_job *j = job;
    const cut *c = j->c;
    char *own = j->work + participant * each_thread(c);
    worker w = {
        .lines = (uint8_t *)own,
        .panels = (uint8_t *)own + LINES * c->line_bytes,
        .rows = own + LINES * c->line_bytes + c->panel_bytes,
        .ends = (ot_i8_end *)(void *)(own + LINES * c->line_bytes + c->panel_bytes + c->row_bytes)};
    for (int64_t k = first; k < end; k++) run_task(j->v, c, j->x, k, &w);
}

static void run_products(const ot_qconv *v, const cut *c, const uint8_t *x, uint32_t threads,
                         char *work)
{
    product_job j = {.v = v, .c = c, .x = x, .work = work};
    ot_pool_share(threads, v->batch * v->group * c->parts * c->blocks, 1, products_share, &j);
}

typedef struct depthwise_job {
    const ot_qconv *v;
    const uint8_t *x;
    char *work; /* [threads][each] */
    int64_t each;
} depthwise_job;

static void depthwise_share(void *job, int64_t first, int64_t end, uint32_t participant)
{
    const depthwise_job *j = job;
    for (int64_t k = first; k < end; k++)
        ot_qconv_depthwise(j->v, j->x, j->v->y.to, k / j->v->maps, k % j->v->maps,
                           j->work + participant * j->each);
}

static void run_depthwise(const ot_qconv *v, const uint8_t *x, uint32_t threads, char *work)
{
    depthwise_job j = {.v = v, .x = x, .work = work, .each = ot_qconv_depthwise_work(v)};
    ot_pool_share(threads, v->batch * v->maps, 1, depthwise_share, &j);
}

void ot_qconv_run(const ot_qconv *v, const void *x, void *y, uint32_t threads, void *work)
{
    ot_qconv own = *v;
    cut c;
    own.y.to = y;
    if (is_depthwise(v))
        run_depthwise(&own, x, threads, work);
    else if (make_cut(v, threads, &c))
        run_products(&own, &c, x, threads, work);
}
