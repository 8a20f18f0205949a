/* Transpositions through registers; see box_leaf.h.
 *
 * A square of 8 x 8 floats: loads put rows i and i + 4 into one register, so that two squares of
 * 4 x 4 turn side by side and nothing crosses the halves of a register.
 *
 *   r0  row0[0..3] row4[0..3]  r4  row0[4..7] row4[4..7]
 *   r1  row1[0..3] row5[0..3]  ...                       8 shuffles turn r0..r3 into columns 0..3,
 *                                                        8 more the others
 *
 * Squares of bytes and of 16-bit numbers are turned by zipping row i with row i + half, as often
 * as their edge halves.
 *
 * Order: patches that fit into half a second-level cache. In a patch the side whose rows lie
 * farther apart is swept along its rows, so that its cache lines are done with when they leave
 * (rows far apart fall into one set of the cache).
 */
#include "box_leaf.h"

#define STRIP_BYTES 4096 /* of a row: a page, as rows far apart cost an address translation each */
#define PATCH_BYTES (256 << 10)
#define PATCH_ROWS  256

typedef uint8_t u8 __attribute__((aligned(1), may_alias));
typedef uint16_t u16 __attribute__((aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias));
typedef uint64_t u64 __attribute__((aligned(1), may_alias));
typedef uint8_t vec_u8 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t vec_u16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t half_u32 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t vec_u32 __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint64_t half_u64 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t vec_u64 __attribute__((vector_size(32), aligned(1), may_alias));

/* ---- squares ---- */

/* Columns 0..3 of two squares of 4 x 4 side by side in r[0..3], to four rows of dst. */
#define TURN_4X4_TWICE(r, dst, dst_q)                                                              \
    do {                                                                                           \
        vec_u32 ab_lo = __builtin_shufflevector(r[0], r[1], 0, 8, 1, 9, 4, 12, 5, 13);             \
        vec_u32 ab_hi = __builtin_shufflevector(r[0], r[1], 2, 10, 3, 11, 6, 14, 7, 15);           \
        vec_u32 cd_lo = __builtin_shufflevector(r[2], r[3], 0, 8, 1, 9, 4, 12, 5, 13);             \
        vec_u32 cd_hi = __builtin_shufflevector(r[2], r[3], 2, 10, 3, 11, 6, 14, 7, 15);           \
        *(vec_u32 *)(dst) = __builtin_shufflevector(ab_lo, cd_lo, 0, 1, 8, 9, 4, 5, 12, 13);       \
        *(vec_u32 *)((dst) + (dst_q)) = __builtin_shufflevector(ab_lo, cd_lo, 2, 3, 10, 11, 6, 7,  \
                                                                14, 15);                           \
        *(vec_u32 *)((dst) + 2 * (dst_q)) = __builtin_shufflevector(ab_hi, cd_hi, 0, 1, 8, 9, 4,   \
                                                                    5, 12, 13);                    \
        *(vec_u32 *)((dst) + 3 * (dst_q)) = __builtin_shufflevector(ab_hi, cd_hi, 2, 3, 10, 11, 6, \
                                                                    7, 14, 15);                    \
    } while (0)

static inline void square_u32(char *dst, int64_t dst_q, const char *src, int64_t src_p)
{
    for (int half = 0; half < 2; half++) {
        vec_u32 r[4];
        for (int i = 0; i < 4; i++)
            r[i] = __builtin_shufflevector(*(const half_u32 *)(src + i * src_p + 16 * half),
                                           *(const half_u32 *)(src + (i + 4) * src_p + 16 * half),
                                           0, 1, 2, 3, 4, 5, 6, 7);
        TURN_4X4_TWICE(r, dst + 4 * half * dst_q, dst_q);
    }
}

static inline void square_u64(char *dst, int64_t dst_q, const char *src, int64_t src_p)
{
    for (int half = 0; half < 2; half++) {
        vec_u64 r[2];
        for (int i = 0; i < 2; i++)
            r[i] = __builtin_shufflevector(*(const half_u64 *)(src + i * src_p + 16 * half),
                                           *(const half_u64 *)(src + (i + 2) * src_p + 16 * half),
                                           0, 1, 2, 3);
        char *to = dst + 2 * half * dst_q;
        *(vec_u64 *)to = __builtin_shufflevector(r[0], r[1], 0, 4, 2, 6);
        *(vec_u64 *)(to + dst_q) = __builtin_shufflevector(r[0], r[1], 1, 5, 3, 7);
    }
}

#define ZIP_LOW_u16(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define ZIP_HIGH_u16(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define ZIP_LOW_u8(a, b) \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ZIP_HIGH_u8(a, b) \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

#define ZIPPED_SQUARE(type, edge)                                                              \
    static inline void square_##type(char *dst, int64_t dst_q, const char *src, int64_t src_p) \
    {                                                                                          \
        vec_##type r[edge], z[edge];                                                           \
        for (int i = 0; i < edge; i++) r[i] = *(const vec_##type *)(src + i * src_p);          \
        for (int zips = 1; zips < edge; zips *= 2) {                                           \
            for (int i = 0; i < edge / 2; i++) {                                               \
                z[2 * i] = ZIP_LOW_##type(r[i], r[i + edge / 2]);                              \
                z[2 * i + 1] = ZIP_HIGH_##type(r[i], r[i + edge / 2]);                         \
            }                                                                                  \
            for (int i = 0; i < edge; i++) r[i] = z[i];                                        \
        }                                                                                      \
        for (int i = 0; i < edge; i++) *(vec_##type *)(dst + i * dst_q) = r[i];                \
    }

ZIPPED_SQUARE(u16, 8)
ZIPPED_SQUARE(u8, 16)

/* ---- planes ---- */

/* Where the square that covers position i begins: the last one reaches back over the one before it.
 */
static inline int64_t square_at(int64_t i, int64_t n, int64_t edge)
{
    return i + edge <= n ? i : n - edge;
}

/* How far along the rows a patch reaches. */
static inline int64_t patch_length(int64_t n_rows, int64_t size)
{
    int64_t n = ot_min(STRIP_BYTES / size, PATCH_BYTES / (ot_min(n_rows, PATCH_ROWS) * size));
    return ot_max(1, n / 64) * 64;
}

#define TURN_PLANE(type, edge)                                                                   \
    OT_CLONES static void turn_##type(int64_t np, int64_t nq, char *dst, int64_t dst_q,          \
                                      const char *src, int64_t src_p)                            \
    {                                                                                            \
        const int64_t size = sizeof(type);                                                       \
        bool far_source = llabs(src_p) > llabs(dst_q);                                           \
        int64_t n_far = far_source ? nq : np, n_near = far_source ? np : nq;                     \
        const int64_t length = patch_length(n_near, size);                                       \
        for (int64_t f = 0; f < n_far; f += length)                                              \
            for (int64_t j = 0; j < n_near; j += edge)                                           \
                for (int64_t i = f; i < n_far && i < f + length; i += edge) {                    \
                    int64_t p = square_at(far_source ? j : i, np, edge),                         \
                            q = square_at(far_source ? i : j, nq, edge);                         \
                    square_##type(dst + q * dst_q + p * size, dst_q, src + p * src_p + q * size, \
                                  src_p);                                                        \
                }                                                                                \
    }

TURN_PLANE(u8, 16)
TURN_PLANE(u16, 8)
TURN_PLANE(u32, 8)
TURN_PLANE(u64, 4)

/* ---- few rows ---- */

/* n tuples of k elements <- k rows, or back; the tuples are dense. */
#define WEAVE(type, k)                                                                            \
    OT_CLONES static void weave_##type##_##k(int64_t n, char *to, const char *from, int64_t step) \
    {                                                                                             \
        type *restrict dst = (type *)to;                                                          \
        for (int64_t i = 0; i < n; i++)                                                           \
            for (int j = 0; j < k; j++) dst[i * k + j] = ((const type *)(from + j * step))[i];    \
    }                                                                                             \
    OT_CLONES static void unweave_##type##_##k(int64_t n, char *to, int64_t step,                 \
                                               const char *from)                                  \
    {                                                                                             \
        const type *restrict src = (const type *)from;                                            \
        for (int64_t i = 0; i < n; i++)                                                           \
            for (int j = 0; j < k; j++) ((type *)(to + j * step))[i] = src[i * k + j];            \
    }

#define WEAVES(type) WEAVE(type, 2) WEAVE(type, 3) WEAVE(type, 4)

WEAVES(u8)
WEAVES(u16)
WEAVES(u32)
WEAVES(u64)

#define TURN(type, edge)                                 \
    do {                                                 \
        if (np >= edge && nq >= edge)                    \
            turn_##type(np, nq, dst, dst_q, src, src_p); \
        else if (np == 2 && dst_q == 2 * bytes)          \
            weave_##type##_2(nq, dst, src, src_p);       \
        else if (np == 3 && dst_q == 3 * bytes)          \
            weave_##type##_3(nq, dst, src, src_p);       \
        else if (np == 4 && dst_q == 4 * bytes)          \
            weave_##type##_4(nq, dst, src, src_p);       \
        else if (nq == 2 && src_p == 2 * bytes)          \
            unweave_##type##_2(np, dst, dst_q, src);     \
        else if (nq == 3 && src_p == 3 * bytes)          \
            unweave_##type##_3(np, dst, dst_q, src);     \
        else if (nq == 4 && src_p == 4 * bytes)          \
            unweave_##type##_4(np, dst, dst_q, src);     \
        else                                             \
            break;                                       \
        return;                                          \
    } while (0)

void ot_box_turn(size_t size, int64_t np, int64_t nq, char *dst, int64_t dst_q, const char *src,
                 int64_t src_p)
{
    int64_t bytes = (int64_t)size;
    switch (size) {
    case 1: TURN(u8, 16); break;
    case 2: TURN(u16, 8); break;
    case 4: TURN(u32, 8); break;
    default: TURN(u64, 4); break;
    }
    if (np < nq) {
        int64_t n[2] = {np, nq}, dst_step[2] = {bytes, dst_q}, src_step[2] = {src_p, bytes};
        ot_box_lines(size, n, dst, dst_step, src, src_step);
    } else {
        int64_t n[2] = {nq, np}, dst_step[2] = {dst_q, bytes}, src_step[2] = {bytes, src_p};
        ot_box_lines(size, n, dst, dst_step, src, src_step);
    }
}

/* ---- channels that only pad ---- */

/* Eight rows of which the first `given` exist (negative: none does), from element q on. */
static inline void padded_square(char *dst, int64_t dst_q, const char *src, int64_t src_p,
                                 int64_t given)
{
    static const half_u32 zeros = {0};
    for (int half = 0; half < 2; half++) {
        vec_u32 r[4];
        for (int i = 0; i < 4; i++) {
            half_u32 a = i < given ? *(const half_u32 *)(src + i * src_p + 16 * half) : zeros;
            half_u32 b = i + 4 < given ? *(const half_u32 *)(src + (i + 4) * src_p + 16 * half)
                                       : zeros;
            r[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
        }
        TURN_4X4_TWICE(r, dst + 4 * half * dst_q, dst_q);
    }
}

OT_CLONES void ot_box_pack_tail(int64_t block, int64_t given, int64_t nq, char *dst, int64_t dst_q,
                                const char *src, int64_t src_p)
{
    int64_t squares = nq >= 8 ? nq : 0;
    for (int64_t i = 0; i < squares; i += 8) {
        int64_t q = square_at(i, nq, 8);
        for (int64_t p = 0; p < block; p += 8)
            padded_square(dst + q * dst_q + p * 4, dst_q, src + p * src_p + q * 4, src_p,
                          given - p);
    }
    for (int64_t q = squares; q < nq; q++)
        for (int64_t p = 0; p < block; p++)
            *(u32 *)(dst + q * dst_q + p * 4) = p < given ? *(const u32 *)(src + p * src_p + q * 4)
                                                          : 0;
}
