/* Products of bytes by tile registers that become bytes: four panels at a time.
 *
 *   32 rows x 4 panels --int8_tiles.c--> [32][64] int32 in L1 --> 64 bytes of each row, a line of
 *                                                                 the cache, written at once
 *
 * Zero points come off as numbers of a row and of a column, so one of rows, and one of columns, is
 * needed for all. Factors of at most 1/2 keep results where the conversion to integers is exact;
 * then packing with saturation clamps.
 */
#include "int8_quads.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(OT_ONE_ISA)
#include <immintrin.h>
#define HAS_AVX512 1
#endif

#ifdef HAS_AVX512
#define WIDE __attribute__((target("avx512f,avx512bw,avx512vl")))

enum {
    PANELS = 4,
    WIDTH = PANELS * OT_I8_PANEL,
    HEIGHT = 2 * OT_I8_TILE_ROWS,
    ROWS = 96,  /* whose bytes stay in the core's cache from strip to strip */
    STRIPS = 16 /* whose columns are looked at before any row */
};

/* ---- when ---- */

static float largest(const float *x, int64_t n, float without)
{
    float most = 0;
    if (!x) return without;
    for (int64_t i = 0; i < n; i++) {
        float size = x[i] < 0 ? -x[i] : x[i];
        if (!(size <= most)) most = size; /* NaN, too */
    }
    return most;
}

bool ot_i8_strips_fit(const ot_i8_job *j, int64_t first, int64_t end)
{
    const ot_i8_out *o = &j->out;
    int64_t from = first * OT_I8_PANEL, n = ot_min(j->n, end * OT_I8_PANEL) - from;
    if (o->type != OT_U8 && o->type != OT_I8) return false;
    if (j->b_zeros || j->m == 0 || n <= 0) return false;
    for (int64_t i = 1; i < j->m; i++)
        if (j->ends[i].zero != j->ends[0].zero) return false;
    float scale = largest(&o->scale, 1, 0) * largest(o->row_scales, j->m, 1) *
                  largest(o->scales ? o->scales + from : NULL, n, 1);
    float shift = largest(o->row_shift, j->m, 0) + largest(o->shift ? o->shift + from : NULL, n, 0);
    return scale <= 0.5f && shift < 1e8f;
}

/* ---- from sums to bytes ---- */

/* What is added to the sums of a column, and what they are multiplied with. */
typedef struct columns {
    int32_t bias[WIDTH];
    float factors[WIDTH], shift[WIDTH];
} columns;

/* Columns from `from` on; w of them. */
static void columns_of(const ot_i8_job *j, int64_t from, int64_t w, columns *c)
{
    const ot_i8_out *o = &j->out;
    int32_t sums[WIDTH] = {0};
    uint32_t zero = (uint32_t)j->ends[0].zero, all = (uint32_t)j->k * (uint32_t)j->b_zero;
    for (int64_t p = 0; zero && p * OT_I8_PANEL < w; p++)
        ot_i8_column_sums(j->panels + (from / OT_I8_PANEL + p) * ot_i8_panel_bytes(j->k),
                          ot_i8_up4(j->k) / 4, j->b_signed, sums + p * OT_I8_PANEL);
    *c = (columns){0};
    for (int64_t i = 0; i < w; i++) {
        uint32_t bias = o->bias ? (uint32_t)o->bias[from + i] : 0;
        c->bias[i] = (int32_t)(bias - zero * ((uint32_t)sums[i] - all));
        c->factors[i] = o->scale * (o->scales ? o->scales[from + i] : 1);
        if (o->shift) c->shift[i] = o->shift[from + i];
    }
}

/* Rows [row, row + m), columns from `from` on, w of them. */
typedef struct patch {
    int64_t row, m, from, w;
    const int32_t *sums; /* [m][WIDTH] */
} patch;

/* Sixteen sums as integers of 32 bits: with one factor for the row, or one for each column. */
WIDE static inline __attribute__((always_inline)) __m512i integers(const int32_t *sums,
                                                                   const columns *c, int at,
                                                                   __m512i bias, __m512 scale,
                                                                   __m512 shift, bool by_column)
{
    __m512i s = _mm512_add_epi32(_mm512_loadu_si512((const void *)(sums + at)), bias);
    if (by_column) {
        s = _mm512_add_epi32(s, _mm512_loadu_si512((const void *)(c->bias + at)));
        scale = _mm512_mul_ps(scale, _mm512_loadu_ps(c->factors + at));
        shift = _mm512_add_ps(shift, _mm512_loadu_ps(c->shift + at));
    }
    return _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_cvtepi32_ps(s), scale, shift));
}

/* The last two are constants. */
WIDE static inline __attribute__((always_inline)) void
finish(const ot_i8_job *j, const patch *p, const columns *c, bool by_column, bool is_signed)
{
    const ot_i8_out *o = &j->out;
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i zero = _mm512_set1_epi16((short)o->zero);
    const bool all = o->least == 0 && o->most == 0;
    const __m512i least = _mm512_set1_epi8((char)(all ? (is_signed ? INT8_MIN : 0) : o->least)),
                  most = _mm512_set1_epi8(
                      (char)(all ? (is_signed ? INT8_MAX : UINT8_MAX) : o->most));
    const __mmask64 mask = p->w >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << p->w) - 1;
    const int32_t *sums = p->sums;
    uint8_t *to = (uint8_t *)o->to + p->row * o->ld + p->from;
    for (int64_t i = p->row; i < p->row + p->m; i++, sums += WIDTH, to += o->ld) {
        uint32_t b = (o->row_bias ? (uint32_t)o->row_bias[i] : 0) -
                     (uint32_t)j->b_zero * (uint32_t)j->ends[i].sum;
        float by_row = o->row_scales ? o->row_scales[i] : 1.0f;
        const __m512i bias = _mm512_set1_epi32((int32_t)b);
        const __m512 scale = _mm512_set1_ps(by_column ? by_row : o->scale * by_row),
                     shift = _mm512_set1_ps(o->row_shift ? o->row_shift[i] : 0.0f);
        __m512i v0 = integers(sums, c, 0, bias, scale, shift, by_column),
                v1 = integers(sums, c, 16, bias, scale, shift, by_column),
                v2 = integers(sums, c, 32, bias, scale, shift, by_column),
                v3 = integers(sums, c, 48, bias, scale, shift, by_column);
        __m512i lo = _mm512_adds_epi16(_mm512_packs_epi32(v0, v1), zero),
                hi = _mm512_adds_epi16(_mm512_packs_epi32(v2, v3), zero);
        __m512i bytes = is_signed ? _mm512_packs_epi16(lo, hi) : _mm512_packus_epi16(lo, hi);
        bytes = is_signed ? _mm512_min_epi8(_mm512_max_epi8(bytes, least), most)
                          : _mm512_min_epu8(_mm512_max_epu8(bytes, least), most);
        bytes = _mm512_permutexvar_epi32(order, bytes);
        if (p->w >= WIDTH)
            _mm512_storeu_si512((void *)to, bytes);
        else
            _mm512_mask_storeu_epi8(to, mask, bytes);
    }
}

WIDE static void finish_patch(const ot_i8_job *j, const patch *p, const columns *c, bool by_column)
{
    if (by_column && j->out.type == OT_I8)
        finish(j, p, c, true, true);
    else if (by_column)
        finish(j, p, c, true, false);
    else if (j->out.type == OT_I8)
        finish(j, p, c, false, true);
    else
        finish(j, p, c, false, false);
}

/* ---- the product ---- */

/* Columns of up to four panels from `panel` on. */
static int64_t width_of(const ot_i8_job *j, int64_t panel, int64_t panels)
{
    return ot_min(j->n - panel * OT_I8_PANEL, panels * OT_I8_PANEL);
}

/* Rows [row, row + m) against up to four panels from `panel` on; c: NULL, or of their columns. */
static void strip(const ot_i8_job *j, int64_t panel, int panels, int64_t row, int64_t m,
                  const columns *c)
{
    _Alignas(64) int32_t sums[HEIGHT * WIDTH];
    int64_t from = panel * OT_I8_PANEL, w = width_of(j, panel, panels),
            step = ot_i8_panel_bytes(j->k), end = row + m, last = ot_max(j->m - OT_I8_TILE_ROWS, 0);
    for (int64_t at = row; at < end; at += HEIGHT) {
        patch p = {.row = ot_min(at, last), .from = from, .w = w, .sums = sums};
        p.m = ot_min(HEIGHT, end - p.row);
        ot_i8_quads t = {.a = (const uint8_t *)j->rows + p.row * j->row_bytes,
                         .quads = ot_i8_up4(j->k) / 4,
                         .row_step = j->row_bytes,
                         .sums_step = OT_I8_PANEL,
                         .sums_ld = WIDTH,
                         .b_signed = j->b_signed};
        for (int k = 0; k < panels; k += 2) {
            t.b = j->panels + (panel + k) * step;
            t.sums = sums + k * OT_I8_PANEL;
            ot_i8_tiles_run(&t, p.m, panels - k > 1 ? 2 : 1);
        }
        finish_patch(j, &p, c, c != NULL);
    }
}

/* All rows against panels [first, end), at most STRIPS * PANELS: sums of their columns are taken
 * once. */
static void strips(const ot_i8_job *j, int64_t first, int64_t end)
{
    columns all[STRIPS];
    const ot_i8_out *o = &j->out;
    bool by_column = o->bias || o->scales || o->shift || j->ends[0].zero != 0;
    for (int64_t p = first, s = 0; by_column && p < end; p += PANELS, s++)
        columns_of(j, p * OT_I8_PANEL, width_of(j, p, ot_min(PANELS, end - p)), &all[s]);
    for (int64_t row = 0; row < j->m; row += ROWS)
        for (int64_t p = first, s = 0; p < end; p += PANELS, s++)
            strip(j, p, (int)ot_min(PANELS, end - p), row, ot_min(ROWS, j->m - row),
                  by_column ? &all[s] : NULL);
}

void ot_i8_strips_run(const ot_i8_job *j, int64_t first, int64_t end)
{
    ot_i8_tiles_open(j->m, ot_i8_up4(j->k) / 4);
    for (int64_t p = first; p < end; p += STRIPS * PANELS)
        strips(j, p, ot_min(p + STRIPS * PANELS, end));
    ot_i8_tiles_close();
}

#else

bool ot_i8_strips_fit(const ot_i8_job *j, int64_t first, int64_t end)
{
    (void)j, (void)first, (void)end;
    return false;
}

void ot_i8_strips_run(const ot_i8_job *j, int64_t first, int64_t end)
{
    (void)j, (void)first, (void)end; /* not called: they do not fit */
}

#endif
