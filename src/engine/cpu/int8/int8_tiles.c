/* Products of bytes by tile registers, Intel AMX:
 *
 *   a [16 rows][64 bytes of k] x panel [16 quads of k][16][4] --one instruction--> [16][16] int32
 *
 * Panels are what that instruction reads as they lie. Two blocks of rows by two panels are summed
 * at once. The last rows of a block begin so early that they are sixteen: some are computed twice.
 * What remains of k has registers of its own shape. Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 1, chapter 18.
 */
#include "int8_quads.h"

#if defined(__x86_64__) && defined(__linux__) && !defined(OT_ONE_ISA) && \
    (defined(__clang__) || __GNUC__ >= 11)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#define HAS_TILES 1
#endif

#ifdef HAS_TILES
#define TILES __attribute__((target("amx-tile,amx-int8")))

enum {
    HEIGHT = OT_I8_TILE_ROWS,
    DEPTH = 16, /* quads of a row of it */
    ASK_FOR_STATE = 0x1023 /* of arch_prctl: registers that are not saved unless asked for */,
    TILE_DATA = 18 /* which */
};

/* Tile registers 0 to 3 are sums, 4 and 5 a and b, 6 and 7 what remains of them. */
typedef struct tile_shapes {
    uint8_t palette, start, none[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;
_Static_assert(sizeof(tile_shapes) == 64, "as the instruction reads it");

/* The system lets a process use the registers when it is asked; it may refuse, where the stack of
 * a signal handler is too small for them. */
static bool are_there(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    if (!(d >> 24 & 1) || !(d >> 25 & 1)) return false;
    return syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0;
}

bool ot_i8_tiles_here(void)
{
    static int known; /* 0: not yet, 1: no, 2: yes */
    int k = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (k == 0) {
        k = are_there() ? 2 : 1;
        __atomic_store_n(&known, k, __ATOMIC_RELAXED);
    }
    return k == 2;
}

TILES void ot_i8_tiles_open(int64_t m, int64_t quads)
{
    uint8_t height = (uint8_t)ot_min(m, HEIGHT), rest = (uint8_t)(quads % DEPTH);
    tile_shapes s = {.palette = 1};
    for (int t = 0; t < 5; t++) s.rows[t] = height, s.row_bytes[t] = 64;
    s.rows[5] = DEPTH, s.row_bytes[5] = 64;
    if (rest) {
        s.rows[6] = height, s.row_bytes[6] = (uint16_t)(4 * rest);
        s.rows[7] = rest, s.row_bytes[7] = 64;
    }
    __asm__ volatile("" : : "r"(&s) : "memory"); /* it is read whole */
    _tile_loadconfig(&s);
}

TILES void ot_i8_tiles_close(void) { _tile_release(); }

#define MULTIPLY(sums, a, b)          \
    do {                              \
        if (b_signed)                 \
            _tile_dpbusd(sums, a, b); \
        else                          \
            _tile_dpbsud(sums, a, b); \
    } while (0)

/* Two blocks of rows from a0 and a1 on by two panels, or one by one; ra and rb: the registers. */
#define STEP(ra, rb)                                          \
    do {                                                      \
        _tile_loadd(ra, a0, t->row_step);                     \
        _tile_loadd(rb, b0, 64);                              \
        MULTIPLY(0, ra, rb);                                  \
        if (blocks > 1) {                                     \
            _tile_loadd(ra, a1, t->row_step);                 \
            MULTIPLY(2, ra, rb);                              \
        }                                                     \
        if (panels > 1) {                                     \
            _tile_loadd(rb, b1, 64);                          \
            if (blocks > 1) MULTIPLY(3, ra, rb);              \
            if (blocks > 1) _tile_loadd(ra, a0, t->row_step); \
            MULTIPLY(1, ra, rb);                              \
        }                                                     \
    } while (0)

/* Rows `first` and `second` on; the last three are constants. */
TILES static inline __attribute__((always_inline)) void
multiply(const ot_i8_quads *t, int64_t first, int64_t second, int blocks, int panels, bool b_signed)
{
    const uint8_t *a0 = t->a + first * t->row_step, *a1 = t->a + second * t->row_step, *b0 = t->b,
                  *b1 = t->b + (panels > 1 ? t->quads * 4 * OT_I8_PANEL : 0);
    int32_t *to = t->sums + first * t->sums_ld, *below = t->sums + second * t->sums_ld;
    const int64_t ld = t->sums_ld * (int64_t)sizeof *to;
    _tile_zero(0);
    if (panels > 1) _tile_zero(1);
    if (blocks > 1) _tile_zero(2);
    if (blocks > 1 && panels > 1) _tile_zero(3);
    for (int64_t q = t->quads / DEPTH; q > 0; q--) {
        STEP(4, 5);
        a0 += 64, a1 += 64, b0 += 1024, b1 += 1024;
    }
    if (t->quads % DEPTH) STEP(6, 7);
    _tile_stored(0, to, ld);
    if (panels > 1) _tile_stored(1, to + t->sums_step, ld);
    if (blocks > 1) _tile_stored(2, below, ld);
    if (blocks > 1 && panels > 1) _tile_stored(3, below + t->sums_step, ld);
}

TILES static void two_blocks(const ot_i8_quads *t, int64_t first, int64_t second, int panels)
{
    if (panels > 1 && t->b_signed)
        multiply(t, first, second, 2, 2, true);
    else if (panels > 1)
        multiply(t, first, second, 2, 2, false);
    else if (t->b_signed)
        multiply(t, first, second, 2, 1, true);
    else
        multiply(t, first, second, 2, 1, false);
}

TILES static void one_block(const ot_i8_quads *t, int64_t first, int panels)
{
    if (panels > 1 && t->b_signed)
        multiply(t, first, first, 1, 2, true);
    else if (panels > 1)
        multiply(t, first, first, 1, 2, false);
    else if (t->b_signed)
        multiply(t, first, first, 1, 1, true);
    else
        multiply(t, first, first, 1, 1, false);
}

TILES void ot_i8_tiles_run(const ot_i8_quads *t, int64_t m, int panels)
{
    int64_t last = ot_max(m - HEIGHT, 0); /* where the last block may begin */
    for (int64_t i = 0; i < m; i += 2 * HEIGHT)
        if (i < last)
            two_blocks(t, i, ot_min(i + HEIGHT, last), panels);
        else
            one_block(t, ot_min(i, last), panels);
}

#else

bool ot_i8_tiles_here(void) { return false; }
void ot_i8_tiles_open(int64_t m, int64_t quads) { (void)m, (void)quads; }
void ot_i8_tiles_close(void) {}
void ot_i8_tiles_run(const ot_i8_quads *t, int64_t m, int panels)
{
    ot_i8_best_quads()(t, ot_min(m, 6), panels); /* not called: there are no tiles */
}

#endif
