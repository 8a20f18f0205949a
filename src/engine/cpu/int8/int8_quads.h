/* Tiles of exact products of bytes by four, as AVX-512 VNNI has them: sums += a0 b0 + a1 b1 + a2 b2
 * + a3 b3, where one of a and b is unsigned and the other signed. Private to this folder. */
#ifndef OT_ENGINE_CPU_INT8_INT8_QUADS_H
#define OT_ENGINE_CPU_INT8_INT8_QUADS_H

#include "int8_gemm.h"

/* sums [height][16] of each of `panels` (1 or 2) panels. */
typedef struct ot_i8_quads {
    const uint8_t *a, *b; /* a: [height], row_step bytes apart; b: [panels][quads][16][4] */
    int32_t *sums;        /* of the second panel: sums_step further */
    int64_t quads, row_step, sums_step;
    int64_t sums_ld; /* of tiles: int32 from row to row; else 16 */
    bool b_signed;   /* and a is not, or the other way round */
} ot_i8_quads;

/* k, filled up to whole quads. */
static inline int64_t ot_i8_up4(int64_t k) { return (k + 3) / 4 * 4; }

typedef void (*ot_i8_quads_fn)(const ot_i8_quads *t, int64_t height, int panels);

ot_i8_quads_fn ot_i8_best_quads(void);

/* ---- int8_tiles.c: the same by tile registers ---- */

/* Does the processor have them, and may this process use them? It is asked for once. */
bool ot_i8_tiles_here(void);
#define OT_I8_TILE_ROWS 16

/* Before the thread's products of m rows and of so many quads, and after them: until then the
 * thread calls nothing that uses these registers. */
void ot_i8_tiles_open(int64_t m, int64_t quads);
void ot_i8_tiles_close(void);
/* m rows: as many as were opened for, or any number of at least OT_I8_TILE_ROWS where those
 * were more. */
void ot_i8_tiles_run(const ot_i8_quads *t, int64_t m, int panels);

/* column[16] = sums of the columns of a panel of bytes. */
void ot_i8_column_sums(const uint8_t *panel, int64_t quads, bool is_signed, int32_t *column);

/* ---- int8_strips.c: tiles whose results are bytes ---- */

/* Can ot_i8_strips_run do panels [first, end) of a job, where there are tiles? */
bool ot_i8_strips_fit(const ot_i8_job *j, int64_t first, int64_t end);
void ot_i8_strips_run(const ot_i8_job *j, int64_t first, int64_t end);

#endif
