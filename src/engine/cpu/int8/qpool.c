/* Pools of 8-bit tensors, a row of the output at a time.
 *
 *   rows of the window   x x x x x x x x
 *                        x x x x x x x x     --columns--> line with pads  [. . m m m m m m m m . .]
 *                        x x x x x x x x                                     `---'   `---'
 *                                                                            row of the output:
 *                                                                            every `stride`th
 *                                                                            window
 *
 * Lines hold bytes turned to unsigned, or int32 sums less their zero points.
 */
#include "qpool.h"

#include <math.h>

#include "engine/core/simd.h"

static int64_t up64(int64_t n) { return ot_ceil_div(n, 64) * 64; }

/* Elements of a line. */
static int64_t line_length(const ot_qpool *p)
{
    int64_t reach;
    if (!ot_mul_i64(p->out[1] - 1, p->stride[1], &reach)) return -1;
    if (p->dilation[1] > INT32_MAX || p->kernel[1] > INT32_MAX || reach > INT64_MAX / 4) return -1;
    reach += (p->kernel[1] - 1) * p->dilation[1] + 1;
    return ot_max(reach, p->lo[1] + p->in[1]);
}

int64_t ot_qpool_work(const ot_qpool *p)
{
    int64_t n = line_length(p);
    return n < 0 || n > INT64_MAX / 64 ? -1 : up64(n * (p->average ? (int64_t)sizeof(int32_t) : 1));
}

/* Rows [*first, *end) of the kernel that lie on x, and the row of x of the first. */
static int64_t rows_of(const ot_qpool *p, uint32_t axis, int64_t at, int64_t *first, int64_t *end)
{
    int64_t from = at * p->stride[axis] - p->lo[axis], d = p->dilation[axis];
    *first = from < 0 ? ot_ceil_div(-from, d) : 0;
    *end = from >= p->in[axis] ? *first
                               : ot_min(p->kernel[axis], ot_ceil_div(p->in[axis] - from, d));
    *end = ot_max(*end, *first);
    return from + *first * d;
}

/* ---- the largest ---- */

OT_CLONES static void largest_columns(uint8_t *restrict line, const uint8_t *restrict row,
                                      int64_t n, uint8_t flip)
{
    for (int64_t i = 0; i < n; i++) {
        uint8_t x = row[i] ^ flip;
        line[i] = x > line[i] ? x : line[i];
    }
}

OT_CLONES static void largest_step(uint8_t *restrict y, const uint8_t *restrict line, int64_t n,
                                   int64_t stride)
{
    if (stride == 1)
        for (int64_t i = 0; i < n; i++) y[i] = line[i] > y[i] ? line[i] : y[i];
    else if (stride == 2)
        for (int64_t i = 0; i < n; i++) y[i] = line[2 * i] > y[i] ? line[2 * i] : y[i];
    else
        for (int64_t i = 0; i < n; i++) y[i] = line[i * stride] > y[i] ? line[i * stride] : y[i];
}

OT_CLONES static void flip_back(uint8_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] ^= 0x80;
}

static void largest_row(const ot_qpool *p, const uint8_t *plane, int64_t at, uint8_t *y,
                        uint8_t *line, int64_t length)
{
    int64_t first, end, row = rows_of(p, 0, at, &first, &end);
    memset(line, 0, (size_t)length);
    for (int64_t k = first; k < end; k++, row += p->dilation[0])
        largest_columns(line + p->lo[1], plane + row * p->in[1], p->in[1], p->is_signed ? 0x80 : 0);
    memset(y, 0, (size_t)p->out[1]);
    for (int64_t k = 0; k < p->kernel[1]; k++)
        largest_step(y, line + k * p->dilation[1], p->out[1], p->stride[1]);
    if (p->is_signed) flip_back(y, p->out[1]);
}

/* ---- averages ---- */

OT_CLONES static void add_unsigned(int32_t *restrict line, const uint8_t *restrict row, int64_t n,
                                   int32_t zero)
{
    for (int64_t i = 0; i < n; i++) line[i] += (int32_t)row[i] - zero;
}

OT_CLONES static void add_signed(int32_t *restrict line, const int8_t *restrict row, int64_t n,
                                 int32_t zero)
{
    for (int64_t i = 0; i < n; i++) line[i] += (int32_t)row[i] - zero;
}

enum { SUM_PIECE = 1 << 16 }; /* bytes whose sum is an int32 */

#define SUM_OF(name, type)                                    \
    OT_CLONES static int64_t name(const type *x, int64_t n)   \
    {                                                         \
        int64_t sum = 0;                                      \
        for (int64_t at = 0; at < n; at += SUM_PIECE) {       \
            int64_t end = ot_min(n, at + SUM_PIECE);          \
            int32_t piece = 0;                                \
            for (int64_t i = at; i < end; i++) piece += x[i]; \
            sum += piece;                                     \
        }                                                     \
        return sum;                                           \
    }

SUM_OF(sum_unsigned, uint8_t)
SUM_OF(sum_signed, int8_t)

static void put_average(const ot_qpool *p, void *y, int64_t at, int64_t sum, int64_t count)
{
    float average = count > 0 ? (float)sum * p->factor / (float)count : 0;
    if (p->type == OT_F32) {
        ((float *)y)[at] = average;
        return;
    }
    float least = p->type == OT_I8 ? INT8_MIN : 0, q = rintf(average) + (float)p->y_zero;
    int32_t byte = (int32_t)fminf(fmaxf(q, least), least + 255);
    ((uint8_t *)y)[at] = (uint8_t)byte;
}

static void average_row(const ot_qpool *p, const uint8_t *plane, int64_t at, void *y, int64_t y_at,
                        int32_t *line, int64_t length)
{
    int64_t first, end, row = rows_of(p, 0, at, &first, &end), rows = end - first;
    memset(line, 0, (size_t)length * sizeof *line);
    for (int64_t k = first; k < end; k++, row += p->dilation[0]) {
        const uint8_t *x = plane + row * p->in[1];
        if (p->is_signed)
            add_signed(line + p->lo[1], (const int8_t *)x, p->in[1], p->zero);
        else
            add_unsigned(line + p->lo[1], x, p->in[1], p->zero);
    }
    for (int64_t i = 0; i < p->out[1]; i++) {
        int64_t sum = 0, taps = p->kernel[0] * p->kernel[1];
        for (int64_t k = 0; k < p->kernel[1]; k++)
            sum += line[i * p->stride[1] + k * p->dilation[1]];
        if (!p->counts_pads) {
            (void)rows_of(p, 1, i, &first, &end);
            taps = rows * (end - first);
        }
        put_average(p, y, y_at + i, sum, taps);
    }
}

/* One window over all of the plane. */
static bool is_whole(const ot_qpool *p)
{
    for (int a = 0; a < 2; a++)
        if (p->kernel[a] != p->in[a] || p->dilation[a] != 1 || p->lo[a] != 0 || p->out[a] != 1)
            return false;
    return p->average;
}

void ot_qpool_run(const ot_qpool *p, const uint8_t *x, void *y, int64_t k, void *work)
{
    const uint8_t *plane = x + k * p->in[0] * p->in[1];
    int64_t length = line_length(p), n = p->in[0] * p->in[1];
    if (is_whole(p)) {
        int64_t sum = p->is_signed ? sum_signed((const int8_t *)plane, n) : sum_unsigned(plane, n);
        put_average(p, y, k, sum - n * p->zero, n);
        return;
    }
    for (int64_t r = 0; r < p->out[0]; r++) {
        int64_t at = (k * p->out[0] + r) * p->out[1];
        if (p->average)
            average_row(p, plane, r, y, at, work, length);
        else
            largest_row(p, plane, r, (uint8_t *)y + at, work, length);
    }
}
