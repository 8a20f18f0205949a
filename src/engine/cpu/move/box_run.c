/* Copies row by row and element by element; see box_leaf.h.
 *
 * A row of at most 128 bytes is copied by two, four or eight loads and stores of which the last
 * ones reach back over the first: no loop, no call. Longer rows are memcpy's business.
 */
#include "box_leaf.h"

typedef uint8_t u8 __attribute__((aligned(1), may_alias));
typedef uint16_t u16 __attribute__((aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias));
typedef uint64_t u64 __attribute__((aligned(1), may_alias));
typedef uint64_t v16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t v32 __attribute__((vector_size(32), aligned(1), may_alias));

/* ---- rows ---- */

/* Rows of sizeof(type) to 2 * sizeof(type) bytes. */
#define ROWS_OF_TWO(type)                                                                    \
    for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step) {                      \
        type first = *(const type *)src, last = *(const type *)(src + bytes - sizeof(type)); \
        *(type *)dst = first;                                                                \
        *(type *)(dst + bytes - sizeof(type)) = last;                                        \
    }

OT_CLONES static void short_rows(size_t bytes, int64_t n, char *dst, int64_t dst_step,
                                 const char *src, int64_t src_step)
{
    if (bytes >= 64) {
        for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step) {
            v32 a = *(const v32 *)src, b = *(const v32 *)(src + 32);
            v32 c = *(const v32 *)(src + bytes - 64), d = *(const v32 *)(src + bytes - 32);
            *(v32 *)dst = a;
            *(v32 *)(dst + 32) = b;
            *(v32 *)(dst + bytes - 64) = c;
            *(v32 *)(dst + bytes - 32) = d;
        }
    } else if (bytes >= 32) {
        ROWS_OF_TWO(v32)
    } else if (bytes >= 16) {
        ROWS_OF_TWO(v16)
    } else if (bytes >= 8) {
        ROWS_OF_TWO(u64)
    } else if (bytes >= 4) {
        ROWS_OF_TWO(u32)
    } else if (bytes >= 2) {
        ROWS_OF_TWO(u16)
    } else {
        for (int64_t i = 0; i < n; i++) dst[i * dst_step] = src[i * src_step];
    }
}

/* Rows of 128 to 1024 bytes: vectors, the last ones reaching back. */
OT_CLONES static void medium_rows(size_t bytes, int64_t n, char *dst, int64_t dst_step,
                                  const char *src, int64_t src_step)
{
    for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step) {
        v32 y = *(const v32 *)(src + bytes - 64), z = *(const v32 *)(src + bytes - 32);
        for (size_t at = 0; at + 64 < bytes; at += 64) {
            v32 a = *(const v32 *)(src + at), b = *(const v32 *)(src + at + 32);
            *(v32 *)(dst + at) = a;
            *(v32 *)(dst + at + 32) = b;
        }
        *(v32 *)(dst + bytes - 64) = y;
        *(v32 *)(dst + bytes - 32) = z;
    }
}

void ot_box_rows(size_t bytes, int64_t n, char *dst, int64_t dst_step, const char *src,
                 int64_t src_step)
{
    if (bytes <= 128) {
        short_rows(bytes, n, dst, dst_step, src, src_step);
    } else if (bytes <= 1024) {
        medium_rows(bytes, n, dst, dst_step, src, src_step);
    } else {
        for (int64_t i = 0; i < n; i++) memcpy(dst + i * dst_step, src + i * src_step, bytes);
    }
}

/* ---- lines ---- */

#define LINE(to, from) \
    for (int64_t i = 0; i < n; i++) to = from

/* One line; the strides that vectorise are spelt out. */
#define LINES(type)                                                                               \
    static inline void line_##type(int64_t n, char *dst, int64_t ds, const char *src, int64_t ss) \
    {                                                                                             \
        const int64_t size = sizeof(type);                                                        \
        type *restrict d = (type *)dst;                                                           \
        const type *restrict s = (const type *)src;                                               \
        if (ds == size && ss == size)                                                             \
            LINE(d[i], s[i]);                                                                     \
        else if (ds == size && ss == 0)                                                           \
            LINE(d[i], s[0]);                                                                     \
        else if (ds == size && ss == -size)                                                       \
            LINE(d[i], s[-i]);                                                                    \
        else if (ds == size && ss == 2 * size)                                                    \
            LINE(d[i], s[2 * i]);                                                                 \
        else                                                                                      \
            LINE(*(type *)(dst + i * ds), *(const type *)(src + i * ss));                         \
    }                                                                                             \
    OT_CLONES static void lines_##type(const int64_t n[2], char *dst, const int64_t ds[2],        \
                                       const char *src, const int64_t ss[2])                      \
    {                                                                                             \
        for (int64_t i = 0; i < n[0]; i++)                                                        \
            line_##type(n[1], dst + i * ds[0], ds[1], src + i * ss[0], ss[1]);                    \
    }

LINES(u8)
LINES(u16)
LINES(u32)
LINES(u64)
LINES(v16)

void ot_box_lines(size_t size, const int64_t n[2], char *dst, const int64_t dst_step[2],
                  const char *src, const int64_t src_step[2])
{
    switch (size) {
    case 1: lines_u8(n, dst, dst_step, src, src_step); break;
    case 2: lines_u16(n, dst, dst_step, src, src_step); break;
    case 4: lines_u32(n, dst, dst_step, src, src_step); break;
    case 8: lines_u64(n, dst, dst_step, src, src_step); break;
    default: lines_v16(n, dst, dst_step, src, src_step); break;
    }
}

void ot_box_lines_fill(size_t size, const int64_t n[2], char *dst, const int64_t dst_step[2],
                       const void *value)
{
    const int64_t still[2] = {0, 0};
    const char *bytes = value;
    bool same = true;
    for (size_t k = 1; k < size; k++) same = same && bytes[k] == bytes[0];
    if (same && dst_step[1] == (int64_t)size) {
        for (int64_t i = 0; i < n[0]; i++)
            memset(dst + i * dst_step[0], bytes[0], (size_t)n[1] * size);
        return;
    }
    ot_box_lines(size, n, dst, dst_step, value, still);
}
