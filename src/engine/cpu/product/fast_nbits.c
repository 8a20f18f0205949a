/* MatMulNBits in float32: weights are unpacked some columns at a time, into a cache.
 *
 *   few rows    sum over the blocks of a column:  scale * (a . q - zero * (sum of a's block)); q
 *               becomes floats in registers
 *   more rows   PIECE columns unpacked, one product with all rows
 *
 * Threads take columns.
 */
#include "fast_product.h"

#include "engine/core/half.h"
#include "engine/core/pool.h"
#include "engine/ref/ref_nbits.h"

#include <stdatomic.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(OT_ONE_ISA)
#include <immintrin.h>
#define HAS_AVX512_DOT 1
#endif

enum { FEW_ROWS = 4, PIECE = 128 };

typedef struct nbits_job {
    const ot_nbits *p;
    const float *a;
    float *y;
    const float *split; /* [rows][blocks][block]: a, element e of a byte after element e - 1 of all
                           bytes of its block; zeros up to whole blocks */
    const float *sums;  /* [rows][blocks] of split */
    float *columns;     /* [threads][PIECE][k] */
    atomic_bool failed;
} nbits_job;

/* ---- few rows ---- */

/* A column of 4 bits, blocks of a multiple of 16 bytes; `zero` packed, NULL: 8. */
typedef struct column_4 {
    const uint8_t *q, *zero;
    const float *scale;
    int64_t blocks, bytes; /* bytes: of a block */
} column_4;

OT_CLONES static float dot_4(const float *restrict a, const float *restrict sums, column_4 x)
{
    float all[16] = {0}, below = 0, sum = 0;
    for (int64_t k = 0; k < x.blocks; k++, a += 2 * x.bytes, x.q += x.bytes) {
        float part[16] = {0}, scale = x.scale[k];
        for (int64_t i = 0; i < x.bytes; i += 16)
            for (int64_t e = 0; e < 16; e++)
                part[e] += a[i + e] * (float)(x.q[i + e] & 15) +
                           a[x.bytes + i + e] * (float)(x.q[i + e] >> 4);
        for (int64_t e = 0; e < 16; e++) all[e] += scale * part[e];
        below += scale * (float)(x.zero ? x.zero[k / 2] >> (k % 2 * 4) & 15 : 8) * sums[k];
    }
    for (int64_t e = 0; e < 16; e++) sum += all[e];
    return sum - below;
}

#ifdef HAS_AVX512_DOT
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

AVX512 static inline __attribute__((always_inline)) __m512 floats_of(__m128i bytes)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
}

/* scale * (dot product of a block), lane by lane. */
AVX512 static inline __attribute__((always_inline)) __m512
add_block(__m512 sum, const float *a, const uint8_t *q, int64_t bytes, float scale)
{
    const __m128i low = _mm_set1_epi8(15);
    __m512 part = _mm512_setzero_ps();
    for (int64_t i = 0; i < bytes; i += 16) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(q + i));
        part = _mm512_fmadd_ps(_mm512_loadu_ps(a + i), floats_of(_mm_and_si128(x, low)), part);
        part = _mm512_fmadd_ps(_mm512_loadu_ps(a + bytes + i),
                               floats_of(_mm_and_si128(_mm_srli_epi16(x, 4), low)), part);
    }
    return _mm512_fmadd_ps(_mm512_set1_ps(scale), part, sum);
}

/* As dot_4, two blocks at a time. */
AVX512 static float dot_4_avx512(const float *a, const float *sums, column_4 x)
{
    __m512 even = _mm512_setzero_ps(), odd = even;
    float below[2] = {0, 0};
    for (int64_t k = 0; k < x.blocks; k++, a += 2 * x.bytes, x.q += x.bytes) {
        float zero = (float)(x.zero ? x.zero[k / 2] >> (k % 2 * 4) & 15 : 8);
        below[k % 2] += x.scale[k] * zero * sums[k];
        if (k % 2)
            odd = add_block(odd, a, x.q, x.bytes, x.scale[k]);
        else
            even = add_block(even, a, x.q, x.bytes, x.scale[k]);
    }
    return _mm512_reduce_add_ps(_mm512_add_ps(even, odd)) - (below[0] + below[1]);
}
#endif

static float best_dot_4(const float *a, const float *sums, column_4 x)
{
#ifdef HAS_AVX512_DOT
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        return dot_4_avx512(a, sums, x);
#endif
    return dot_4(a, sums, x);
}

/* Is a column what dot_4 takes? */
static bool is_column_4(const ot_nbits *p)
{
    return p->bits == 4 && p->block % 32 == 0 && p->scale->dtype == OT_F32 &&
           (!p->zero || p->zero->dtype == OT_U8);
}

/* The dot product of a block of any bits; n bytes. */
OT_CLONES static float dot_any(const float *restrict a, const uint8_t *restrict q, int64_t n,
                               int bits)
{
    float sum = 0;
    for (int e = 0; e < 8 / bits; e++)
        for (int64_t i = 0; i < n; i++)
            sum += a[e * n + i] * (float)(q[i] >> (e * bits) & ((1 << bits) - 1));
    return sum;
}

static float column_of(const nbits_job *j, int64_t row, int64_t column)
{
    const ot_nbits *p = j->p;
    int64_t bytes = p->block * p->bits / 8;
    double sum = p->bias ? ot_nd_double(p->bias, column) : 0;
    const float *a = j->split + row * p->blocks * p->block, *sums = j->sums + row * p->blocks;
    if (is_column_4(p))
        return best_dot_4(a, sums,
                          (column_4){.q = ot_nbits_block(p, column, 0),
                                     .zero = p->zero ? (const uint8_t *)p->zero->data +
                                                           column * p->zero_step
                                                     : NULL,
                                     .scale = (const float *)p->scale->data + column * p->blocks,
                                     .blocks = p->blocks,
                                     .bytes = bytes}) +
               (float)sum;
    for (int64_t k = 0; k < p->blocks; k++, a += p->block) {
        const uint8_t *q = ot_nbits_block(p, column, k);
        float dot = dot_any(a, q, bytes, (int)p->bits);
        sum += ot_nbits_scale(p, column, k) *
               ((double)dot - ot_nbits_zero(p, column, k) * (double)sums[k]);
    }
    return (float)sum;
}

static void few_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const nbits_job *j = job;
    (void)worker;
    for (int64_t row = 0; row < j->p->rows; row++)
        for (int64_t n = first; n < end; n++) j->y[row * j->p->n + n] = column_of(j, row, n);
}

static ot_status split_rows(ot_call *c, nbits_job *j)
{
    const ot_nbits *p = j->p;
    int64_t per = 8 / p->bits, bytes = p->block / per;
    float *split = ot_num_scratch(c, p->rows * p->blocks * p->block, sizeof *split),
          *sums = split ? ot_num_scratch(c, p->rows * p->blocks, sizeof *sums) : NULL;
    if (!sums) return OT_E_NOMEM;
    for (int64_t b = 0; b < p->rows * p->blocks; b++) {
        int64_t first = b % p->blocks * p->block, n = ot_min(p->block, p->k - first);
        const float *a = j->a + b / p->blocks * p->k + first;
        float *to = split + b * p->block;
        for (int64_t e = 0; e < n; e++) sums[b] += a[e];
        for (int64_t part = 0; part < per; part++)
            for (int64_t e = part, i = 0; e < n; e += per, i++) to[part * bytes + i] = a[e];
    }
    j->split = split;
    j->sums = sums;
    return OT_OK;
}

/* ---- more rows ---- */

OT_CLONES static void unpack(float *restrict to, const uint8_t *restrict q, int64_t n, int bits,
                             float zero, float scale)
{
    if (bits == 8)
        for (int64_t e = 0; e < n; e++) to[e] = ((float)q[e] - zero) * scale;
    else if (bits == 2)
        for (int64_t e = 0; e < n; e++)
            to[e] = ((float)(q[e / 4] >> (2 * (e & 3)) & 3) - zero) * scale;
    else
        for (int64_t i = 0; i < n / 2; i++) {
            to[2 * i] = ((float)(q[i] & 15) - zero) * scale;
            to[2 * i + 1] = ((float)(q[i] >> 4) - zero) * scale;
        }
    if (bits == 4 && n % 2 != 0) to[n - 1] = ((float)(q[n / 2] & 15) - zero) * scale;
}

/* Columns [first, end) as rows of floats. */
static void unpack_columns(const ot_nbits *p, float *to, int64_t first, int64_t end)
{
    for (int64_t n = first; n < end; n++)
        for (int64_t k = 0; k < p->blocks; k++)
            unpack(to + (n - first) * p->k + k * p->block, ot_nbits_block(p, n, k),
                   ot_min(p->block, p->k - k * p->block), (int)p->bits,
                   (float)ot_nbits_zero(p, n, k), (float)ot_nbits_scale(p, n, k));
}

static void many_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    nbits_job *j = job;
    const ot_nbits *p = j->p;
    float *columns = j->columns + worker * PIECE * p->k;
    for (int64_t g = first; g < end; g++) {
        int64_t from = g * PIECE, n = ot_min(PIECE, p->n - from);
        unpack_columns(p, columns, from, from + n);
        for (int64_t i = 0; p->bias && i < p->rows; i++)
            for (int64_t e = 0; e < n; e++)
                j->y[i * p->n + from + e] = (float)ot_nd_double(p->bias, from + e);
        ot_product_job product = {.m = p->rows,
                                  .n = n,
                                  .k = p->k,
                                  .ldc = p->n,
                                  .c = j->y + from,
                                  .alpha = 1,
                                  .add = p->bias != NULL};
        product.a = (ot_matrix){.data = j->a, .row_step = p->k, .column_step = 1, .ld = p->k};
        product.b = (ot_matrix){
            .data = columns, .row_step = 1, .column_step = p->k, .ld = p->k, .transposed = true};
        if (ot_product_run(&product) != OT_OK) j->failed = true;
    }
}

/* ---- the implementation ---- */

ot_status ot_fast_matmul_nbits(ot_call *c)
{
    ot_nbits p;
    int64_t dims[OT_RANK_MAX], size;
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_matmul_nbits, 0);
    if (c->n_in == 0 || !c->in[0] || c->in[0]->dtype != OT_F32) return ot_ref_matmul_nbits(c);
    OT_TRY(ot_nbits_open(c, &p));
    ot_nbits_dims(&p, dims);
    OT_TRY(ot_call_output(c, 0, OT_F32, p.a->rank, dims));
    if (!ot_num_out(c, 0) || p.rows == 0) return OT_OK;
    nbits_job j = {.p = &p, .a = p.a->data, .y = c->out[0]->data};
    int threads = ot_rows_threads(c, (double)p.rows * (double)p.n * (double)p.k / 8);
    if (p.rows <= FEW_ROWS) {
        OT_TRY(split_rows(c, &j));
        ot_pool_share((uint32_t)threads, p.n, 16, few_share, &j);
        return OT_OK;
    }
    if (!ot_mul_i64(p.k, PIECE * threads, &size)) return OT_E_NOMEM;
    if (!(j.columns = ot_num_scratch(c, size, sizeof *j.columns))) return OT_E_NOMEM;
    ot_pool_share((uint32_t)threads, ot_ceil_div(p.n, PIECE), 1, many_share, &j);
    return j.failed ? ot_fail_nomem(c->diag) : OT_OK;
}
