/* Products of 8-bit integers, exact: int32 sums of (a - a_zero) * (b - b_zero), and how they
 * become outputs.
 *
 *   B [k, n] u8 or s8 --ot_i8_pack--> panels of 16 columns, two or four of k together, bytes:
 *                                     [n / 16][k / 4][2][16][2] or [n / 16][k / 4][16][4]
 *   A [m, k] u8 or s8 --ot_i8_row---> rows (the caller's scratch; a convolution gathers them):
 *
 *       pairs   int16 that lack their zero point
 *       quads   bytes, signed where those of B are not, and the sum of each row for zero points;
 *       tiles   the same
 *
 *       rows x panels --ot_i8_multiply--> int32 tile of up to 96 x 16 in L1 --ot_i8_out--> int32,
 *       float, u8 or s8
 *
 * Nothing saturates. Pairs: zero points are subtracted from 16-bit numbers, a pair of products fits
 * in 32 bits, and up to OT_I8_K_MAX products do. Quads: those of bytes do, too, and zero points
 * come off modulo 2^32. All functions run on the calling thread, allocate nothing and cannot fail;
 * callers share out rows, or panels.
 */
#ifndef OT_ENGINE_CPU_INT8_INT8_GEMM_H
#define OT_ENGINE_CPU_INT8_INT8_GEMM_H

#include "engine/cpu/rows/rows.h"
#include "engine/ref/ref_operators.h"
#include "fusion/engine_bytes_rules.h"

#define OT_I8_PANEL 16 /* columns */
#define OT_I8_K_MAX OT_BYTES_SUMS

/* ---- operands ---- */

typedef enum ot_i8_way { OT_I8_PAIRS, OT_I8_QUADS, OT_I8_TILES } ot_i8_way;

/* The fastest one: tiles where the processor has AMX, quads where it has AVX-512 VNNI. Tiles are
 * quads, multiplied by other instructions. Any machine can do all. */
ot_i8_way ot_i8_way_here(void);

/* Bytes of a panel: k is filled up to a multiple of four. Of B [k, n] packed; -1: more than can be
 * counted. */
int64_t ot_i8_panel_bytes(int64_t k);
int64_t ot_i8_packed_size(int64_t k, int64_t n);
/* Panels [first, end) of B, of bytes; signs and zero points come later. */
void ot_i8_pack(uint8_t *to, const void *b, const ot_matrix_layout *m, ot_i8_way way, int64_t first,
                int64_t end);

/* Bytes that a row of k takes, of either way: such that rows fall into different cache sets. */
int64_t ot_i8_row_bytes(int64_t k);
/* How many rows are well multiplied at once: with k columns they stay in the core's cache. A
 * multiple of 6. */
int64_t ot_i8_rows_at_once(int64_t k);
/* ---- product ---- */

/* What becomes of the sum s of row i, column j:
 *
 *   t              s + bias[j] + row_bias[i]                                         modulo 2^32
 *   OT_I32         t
 *   OT_F32         (float)t * (scale * scales[j] * row_scales[i]) + shift[j] + row_shift[i]
 *   OT_U8, OT_I8   clamp(round-half-even(r) + zero, least, most), r = (float)t * (scale...) +
 *                  (shift[j] + row_shift[i])
 *
 * Arrays that are NULL are left out. */
typedef struct ot_i8_out {
    ot_dtype type;
    void *to;                /* element (0, 0) */
    int64_t ld;              /* elements from row to row */
    const int32_t *bias;     /* [n] or NULL */
    float scale;             /* of all; not for OT_I32 */
    const float *scales;     /* [n] or NULL */
    const float *row_scales; /* [m] or NULL */
    const int32_t *row_bias; /* [m] or NULL */
    const float *row_shift;  /* [m] or NULL */
    const float *shift;      /* [n] or NULL */
    int32_t zero;
    int32_t least, most; /* both 0: all that the type holds */
} ot_i8_out;

/* What quads need to know of a row: the sum of its bytes as they lie, and their zero point. */
typedef struct ot_i8_end {
    int32_t sum, zero;
} ot_i8_end;

typedef struct ot_i8_job {
    int64_t m, n, k; /* k <= OT_I8_K_MAX when the sums must not wrap around */
    ot_i8_way way;
    /* row i is row_bytes * i further, made by ot_i8_row; quads may be A itself (ot_i8_reads) */
    const void *rows;
    int64_t row_bytes;
    const ot_i8_end *ends; /* [m] of quads */
    const uint8_t *panels; /* of B */
    bool b_signed;
    int32_t b_zero;         /* of all columns, unless */
    const int32_t *b_zeros; /* [n] or NULL */
    ot_i8_out out;
} ot_i8_job;

/* A row of the job, whose way, k and b_signed are set, at `row`: k numbers from `from` on, with
 * their zero point. *end: of quads. */
void ot_i8_row(const ot_i8_job *j, void *row, const void *from, bool is_signed, int32_t zero,
               ot_i8_end *end);
/* Quads read A as it lies, in rows of k bytes; then its rows are not made, but their ends. */
bool ot_i8_reads(const ot_i8_job *j, bool is_signed);
ot_i8_end ot_i8_end_of(const void *row, int64_t k, bool is_signed, int32_t zero);
/* Columns of panels [first, end): bias, scales, shift, b_zeros and out.to are indexed by column
 * of the whole B. */
void ot_i8_multiply(const ot_i8_job *j, int64_t first, int64_t end);

#endif
