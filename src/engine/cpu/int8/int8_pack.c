/* B of 8-bit products, packed: panels of 16 columns, two or four of k together (int8_gemm.h). */
#include "int8_quads.h"

#include "engine/core/simd.h"

int64_t ot_i8_panel_bytes(int64_t k) { return ot_i8_up4(k) * OT_I8_PANEL; }

int64_t ot_i8_packed_size(int64_t k, int64_t n)
{
    int64_t columns, rows, size;
    if (k < 0 || n < 0 || !ot_add_i64(n, OT_I8_PANEL - 1, &columns) || !ot_add_i64(k, 3, &rows))
        return -1;
    return ot_mul_i64(columns / OT_I8_PANEL * OT_I8_PANEL, rows / 4 * 4, &size) ? size : -1;
}

/* A whole panel of pairs of rows whose columns lie next to each other. */
OT_CLONES static void pack_pairs(uint8_t *restrict to, const uint8_t *restrict b, int64_t pairs,
                                 int64_t row_step)
{
    for (int64_t p = 0; p < pairs; p++, to += 2 * OT_I8_PANEL, b += 2 * row_step)
        for (int64_t j = 0; j < OT_I8_PANEL; j++) {
            to[2 * j] = b[j];
            to[2 * j + 1] = b[row_step + j];
        }
}

OT_CLONES static void pack_quads(uint8_t *restrict to, const uint8_t *restrict b, int64_t quads,
                                 int64_t row_step)
{
    for (int64_t q = 0; q < quads; q++, to += 4 * OT_I8_PANEL, b += 4 * row_step)
        for (int64_t j = 0; j < OT_I8_PANEL; j++)
            for (int64_t e = 0; e < 4; e++) to[4 * j + e] = b[e * row_step + j];
}

/* w <= 16 columns; `each` of k together: 2 or 4. */
static void pack_panel(uint8_t *to, const uint8_t *b, const ot_matrix_layout *m, int64_t w,
                       int64_t each)
{
    int64_t k = m->k;
    if (m->column_step == 1 && w == OT_I8_PANEL && k % 4 == 0) {
        if (each == 2)
            pack_pairs(to, b, k / 2, m->row_step);
        else
            pack_quads(to, b, k / 4, m->row_step);
        return;
    }
    if (w < OT_I8_PANEL || k % 4) memset(to, 0, (size_t)ot_i8_panel_bytes(k));
    for (int64_t i0 = 0; i0 < k; i0 += 64)
        for (int64_t j = 0; j < w; j++)
            for (int64_t i = i0; i < ot_min(k, i0 + 64); i++)
                to[i / each * each * OT_I8_PANEL + j * each + i % each] =
                    b[i * m->row_step + j * m->column_step];
}

void ot_i8_pack(uint8_t *to, const void *b, const ot_matrix_layout *m, ot_i8_way way, int64_t first,
                int64_t end)
{
    if (m->k == 0) return; /* there may be no memory, then */
    for (int64_t p = first; p < end; p++) {
        int64_t j = p * OT_I8_PANEL;
        pack_panel(to + p * ot_i8_panel_bytes(m->k), (const uint8_t *)b + j * m->column_step, m,
                   ot_min(OT_I8_PANEL, m->n - j), way == OT_I8_PAIRS ? 2 : 4);
    }
}
