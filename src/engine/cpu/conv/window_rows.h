/* Windows of up to three spatial axes, row by row: missing axes are of size 1 in front. For
 * implementations of float32 (fast_pool.c, fast_deconv.c). */
#ifndef OT_ENGINE_CPU_CONV_WINDOW_ROWS_H
#define OT_ENGINE_CPU_CONV_WINDOW_ROWS_H

#include "engine/ref/ref_window.h"

enum { OT_ROW_AXES = 3 };

typedef struct ot_row_window {
    int64_t in[OT_ROW_AXES], out[OT_ROW_AXES], kernel[OT_ROW_AXES], stride[OT_ROW_AXES],
        dilation[OT_ROW_AXES], lo[OT_ROW_AXES];
    int64_t in_n, out_n, k_n;
} ot_row_window;

/* w->n is at most OT_ROW_AXES, and its sizes are those of arrays in memory. */
void ot_row_window_of(const ot_window *w, ot_row_window *v);
/* One plane [in_n]: y += columns x [k_n, out_n], each tap to where it was taken from. */
void ot_row_window_add(const ot_row_window *w, float *y, const float *x);

#endif
