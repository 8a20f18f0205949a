/* Grouped convolutions: what a block of results reads, packed weights, and a run.
 *
 *   for each image, block of results, row of results:
 *       for each run of pixels:
 *           rows of the input where they lie, or copied with zeros where columns lie outside
 *           sums in registers --> residual, activation --> dst
 *
 * Sums add rows of the kernel, then channels, then columns, wherever a pixel lies.
 */
#include "grouped_lanes.h"

#include "engine/core/session.h"
#include "engine/core/pool.h"
#include "engine/core/simd.h"

#include <string.h>

#define ROWS_LEAST 4 /* that a thread takes */

/* What a block of results reads. */
typedef struct block_reads {
    int64_t first, blocks; /* of the input */
    int64_t terms, n_terms;
} block_reads;

struct ot_grouped_conv {
    ot_grouped_spec s;
    const ot_grouped_code *code;
    int64_t b, all_maps, maps_blocks; /* of all groups */
    block_reads *reads;               /* [maps_blocks] */
    ot_grouped_term *terms;
    int64_t n_terms, most_blocks; /* in all; of the input, of one block of results */
    int64_t width;                /* columns that the longest run reads */
    uint32_t all[OT_GROUPED_LANES], last[OT_GROUPED_LANES];
};

const ot_grouped_code *ot_grouped_machine(void)
{
#ifdef OT_GROUPED_X86
    if (ot_simd_block() == 16 && __builtin_cpu_supports("avx512f")) return &ot_grouped_avx512;
    if (ot_simd_block() == 8 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &ot_grouped_avx2;
#endif
    return &ot_grouped_plain;
}

bool ot_grouped_fits(const ot_grouped_spec *s)
{
    int64_t sizes[] = {s->batch,     s->group,     s->channels,    s->maps,       s->in[0],
                       s->in[1],     s->out[0],    s->out[1],      s->kernel[0],  s->kernel[1],
                       s->stride[0], s->stride[1], s->dilation[0], s->dilation[1]};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (sizes[k] < 1 || sizes[k] >= (int64_t)1 << 24) return false;
    int64_t weights, taps, reach;
    return s->group > 1 && ot_product((int64_t[]){s->group, s->channels, s->maps}, 3, &weights) &&
           ot_product((int64_t[]){s->kernel[0], s->kernel[1], 64}, 3, &taps) &&
           ot_mul_i64(weights, taps, &weights) && weights < (int64_t)1 << 40 &&
           ot_mul_i64(s->kernel[1], s->dilation[1], &reach) && reach < (int64_t)1 << 20 &&
           s->stride[1] < 1 << 12 && s->lo[0] >= 0 && s->lo[1] >= 0 && s->lo[0] < 1 << 24 &&
           s->lo[1] < 1 << 24;
}

/* ---- terms ---- */

/* Channels of block `at` of the input that a map reads: from *first on; their number. */
static int64_t channels_in(const ot_grouped_spec *s, int64_t map, int64_t at, int64_t b,
                           int64_t *first)
{
    int64_t group = map / s->maps, end = ot_min((group + 1) * s->channels, (at + 1) * b);
    *first = ot_max(group * s->channels, at * b);
    return ot_max(end - *first, 0);
}

static int64_t terms_in(const ot_grouped_conv *g, int64_t block, int64_t at)
{
    int64_t most = 0, first, end = ot_min((block + 1) * g->b, g->all_maps);
    for (int64_t m = block * g->b; m < end; m++)
        most = ot_max(most, channels_in(&g->s, m, at, g->b, &first));
    return most;
}

static void measure(ot_grouped_conv *g)
{
    const ot_grouped_spec *s = &g->s;
    for (int64_t k = 0; k < g->maps_blocks; k++) {
        block_reads *r = &g->reads[k];
        int64_t from = k * g->b / s->maps, to = (ot_min((k + 1) * g->b, g->all_maps) - 1) / s->maps;
        r->first = from * s->channels / g->b;
        r->blocks = ot_ceil_div((to + 1) * s->channels, g->b) - r->first;
        r->terms = g->n_terms;
        for (int64_t at = 0; at < r->blocks; at++) r->n_terms += terms_in(g, k, r->first + at);
        g->n_terms += r->n_terms;
        g->most_blocks = ot_max(g->most_blocks, r->blocks);
    }
}

static void set_terms(const ot_grouped_conv *g, int64_t block)
{
    const block_reads *r = &g->reads[block];
    ot_grouped_term *t = g->terms + r->terms;
    for (int64_t at = 0; at < r->blocks; at++) {
        int64_t n = terms_in(g, block, r->first + at), first;
        for (int64_t k = 0; k < n; k++, t++) {
            *t = (ot_grouped_term){.block = at};
            for (int64_t l = 0; l < g->b && block * g->b + l < g->all_maps; l++) {
                bool reads = k < channels_in(&g->s, block * g->b + l, r->first + at, g->b, &first);
                t->is_partial |= !reads;
                t->mask[l] = reads ? UINT32_MAX : 0;
                t->pick[l] = reads ? (uint32_t)((first + k) % g->b) : 0;
            }
        }
    }
}

ot_grouped_conv *ot_grouped_new(ot_arena *a, const ot_grouped_spec *s, const ot_grouped_code *code)
{
    ot_grouped_conv *g = OT_NEW(a, ot_grouped_conv);
    if (!g) return NULL;
    g->s = *s;
    g->code = code;
    g->b = code->block;
    g->all_maps = s->group * s->maps;
    g->maps_blocks = ot_ceil_div(g->all_maps, g->b);
    g->width = (code->longest - 1) * s->stride[1] + (s->kernel[1] - 1) * s->dilation[1] + 1;
    g->reads = OT_NEW_N(a, block_reads, g->maps_blocks);
    if (!g->reads) return NULL;
    measure(g);
    g->terms = OT_NEW_N(a, ot_grouped_term, g->n_terms);
    if (!g->terms) return NULL;
    for (int64_t k = 0; k < g->maps_blocks; k++) set_terms(g, k);
    for (int64_t l = 0; l < g->b; l++) {
        g->all[l] = UINT32_MAX;
        g->last[l] = (g->maps_blocks - 1) * g->b + l < g->all_maps ? UINT32_MAX : 0;
    }
    return g;
}

/* ---- packed weights: [block][kernel rows][terms][kernel columns][b], then bias [block][b] ---- */

static int64_t taps_of(const ot_grouped_conv *g) { return g->s.kernel[0] * g->s.kernel[1]; }

int64_t ot_grouped_floats(const ot_grouped_conv *g)
{
    return (g->n_terms * taps_of(g) + g->maps_blocks) * g->b;
}

/* The weights of one map in a term, to the lane of each tap. */
static void pack_term(const ot_grouped_conv *g, int64_t map, int64_t channel, int64_t n_terms,
                      const float *weights, float by, float *to)
{
    const ot_grouped_spec *s = &g->s;
    const float *from = weights + (map * s->channels + channel % s->channels) * taps_of(g);
    for (int64_t y = 0; y < s->kernel[0]; y++)
        for (int64_t x = 0; x < s->kernel[1]; x++)
            to[(y * n_terms * s->kernel[1] + x) * g->b] = from[y * s->kernel[1] + x] * by;
}

void ot_grouped_pack(const ot_grouped_conv *g, const float *weights, const float *scale,
                     const float *bias, float *to)
{
    float *own_bias = to + g->n_terms * taps_of(g) * g->b;
    memset(to, 0, (size_t)ot_grouped_floats(g) * sizeof *to);
    for (int64_t m = 0; bias && m < g->all_maps; m++) own_bias[m] = bias[m];
    for (int64_t k = 0; k < g->maps_blocks; k++) {
        const block_reads *r = &g->reads[k];
        for (int64_t t = 0; t < r->n_terms; t++)
            for (int64_t l = 0; l < g->b; l++) {
                const ot_grouped_term *term = &g->terms[r->terms + t];
                int64_t map = k * g->b + l,
                        channel = (r->first + term->block) * g->b + term->pick[l];
                if (!term->mask[l]) continue;
                pack_term(g, map, channel, r->n_terms, weights, scale ? scale[map] : 1,
                          to + (r->terms * taps_of(g) + t * g->s.kernel[1]) * g->b + l);
            }
    }
}

/* ---- a run ---- */

typedef struct group_job {
    const ot_grouped_conv *g;
    const float *packed, *src, *residual;
    float *dst;
    const int64_t *src_strides, *dst_strides;
    char *scratch;
} group_job;

static int64_t aligned(int64_t bytes)
{
    return ot_ceil_div(bytes, OT_ARENA_ALIGN) * OT_ARENA_ALIGN;
}

static int64_t pointer_bytes(const ot_grouped_conv *g)
{
    return aligned(g->s.kernel[0] * g->most_blocks * (int64_t)sizeof(float *));
}

static int64_t worker_bytes(const ot_grouped_conv *g)
{
    return pointer_bytes(g) +
           aligned(g->s.kernel[0] * g->most_blocks * g->width * g->b * (int64_t)sizeof(float));
}

int64_t ot_grouped_scratch(const ot_grouped_conv *g) { return worker_bytes(g) * g->s.threads; }

/* Columns [first, first + n) of a row of one block, zeros outside. */
static void copy_columns(const ot_grouped_conv *g, const float *row, int64_t first, int64_t n,
                         float *to)
{
    int64_t from = ot_min(ot_max(-first, 0), n), end = ot_max(ot_min(g->s.in[1] - first, n), from);
    size_t pixel = (size_t)g->b * sizeof *to;
    memset(to, 0, (size_t)from * pixel);
    if (end > from)
        memcpy(to + from * g->b, row + (first + from) * g->b, (size_t)(end - from) * pixel);
    memset(to + end * g->b, 0, (size_t)(n - end) * pixel);
}

/* Rows of the kernel [*from, *end) that read rows of the input, for row y of the results. */
static void rows_inside(const ot_grouped_spec *s, int64_t y, int64_t *from, int64_t *end)
{
    int64_t top = y * s->stride[0] - s->lo[0];
    *from = top < 0 ? ot_min(ot_ceil_div(-top, s->dilation[0]), s->kernel[0]) : 0;
    *end = top >= s->in[0] ? 0 : ot_min((s->in[0] - 1 - top) / s->dilation[0] + 1, s->kernel[0]);
    *end = ot_max(*from, *end);
}

/* r->rows for the run whose first pixel is x. */
static void set_rows(const group_job *j, const block_reads *reads, const float *image, int64_t top,
                     int64_t x, const float **rows, float *copies, const ot_grouped_run *r)
{
    const ot_grouped_conv *g = j->g;
    int64_t first = x * g->s.stride[1] - g->s.lo[1], pixels = g->code->computed(r->n);
    int64_t n = (pixels - 1) * r->stride + (r->columns - 1) * r->dilation + 1;
    bool inside = first >= 0 && first + n <= g->s.in[1];
    for (int64_t y = 0; y < r->n_rows; y++)
        for (int64_t k = 0; k < reads->blocks; k++) {
            const float *row = image + (reads->first + k) * j->src_strides[1] +
                               (top + y * g->s.dilation[0]) * j->src_strides[2];
            *rows++ = inside ? row + first * g->b : copies;
            if (inside) continue;
            copy_columns(g, row, first, n, copies);
            copies += n * g->b;
        }
}

static void one_row(const group_job *j, int64_t image, int64_t block, int64_t y, char *scratch)
{
    const ot_grouped_conv *g = j->g;
    const ot_grouped_spec *s = &g->s;
    const block_reads *reads = &g->reads[block];
    const float **rows = (const float **)(void *)scratch;
    float *copies = (float *)(void *)(scratch + pointer_bytes(g));
    const float *bias = j->packed + (g->n_terms * taps_of(g) + block) * g->b;
    int64_t from, end,
        at = image * j->dst_strides[0] + block * j->dst_strides[1] + y * j->dst_strides[2];
    rows_inside(s, y, &from, &end);
    ot_grouped_run r = {.rows = rows,
                        .terms = g->terms + reads->terms,
                        .bias = bias,
                        .mask = block == g->maps_blocks - 1 ? g->last : g->all,
                        .n_rows = end - from,
                        .n_terms = reads->n_terms,
                        .blocks = reads->blocks,
                        .columns = s->kernel[1],
                        .stride = s->stride[1],
                        .dilation = s->dilation[1],
                        .act = s->act,
                        .alpha = s->alpha,
                        .beta = s->beta};
    r.weights = j->packed + (reads->terms * taps_of(g) + from * reads->n_terms * r.columns) * g->b;
    for (int64_t x = 0; x < s->out[1]; x += r.n) {
        r.n = ot_min(g->code->longest, s->out[1] - x);
        set_rows(j, reads, j->src + image * j->src_strides[0],
                 y * s->stride[0] - s->lo[0] + from * s->dilation[0], x, rows, copies, &r);
        r.dst = j->dst + at + x * g->b;
        r.residual = j->residual ? j->residual + at + x * g->b : NULL;
        g->code->run(&r);
    }
}

static void rows_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const group_job *j = job;
    int64_t rows = j->g->s.out[0], blocks = j->g->maps_blocks;
    for (int64_t k = first; k < end; k++)
        one_row(j, k / rows / blocks, k / rows % blocks, k % rows,
                j->scratch + worker * worker_bytes(j->g));
}

void ot_grouped_run_all(const ot_grouped_conv *g, const float *packed, const float *src,
                        const int64_t src_strides[3], float *dst, const int64_t dst_strides[3],
                        const float *residual, void *scratch)
{
    group_job j = {.g = g,
                   .packed = packed,
                   .src = src,
                   .residual = residual,
                   .dst = dst,
                   .src_strides = src_strides,
                   .dst_strides = dst_strides,
                   .scratch = scratch};
    ot_pool_share(g->s.threads, g->s.batch * g->maps_blocks * g->s.out[0], ROWS_LEAST, rows_share,
                  &j);
}
