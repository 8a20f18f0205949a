/* Gelu, BiasGelu and FastGelu of com.microsoft: act(x + bias), bias along the last axis; QuickGelu:
 * x * sigmoid(alpha * x). They have no reference: what is no float32 is refused.
 */
#include "fast_rows.h"

enum { PIECE = 8192 }; /* elements of one piece of work, when there is no bias */

typedef struct gelu {
    int64_t n, row; /* elements in all; of a piece */
    float *y;
    const float *x, *bias;
    ot_rows_act act;
    bool is_quick;
    float alpha;
} gelu;

static void gelu_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const gelu *g = job;
    (void)worker;
    for (int64_t at = first * g->row; at < ot_min(end * g->row, g->n); at += g->row)
        if (g->is_quick)
            ot_rows_quick_gelu(g->y + at, g->x + at, ot_min(g->row, g->n - at), g->alpha);
        else
            ot_rows_activate(g->y + at, g->x + at, g->bias, ot_min(g->row, g->n - at), g->act);
}

ot_status ot_fast_gelu(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_gelu, ot_rows_before(c, -1));
    const char *type = c->node->op_type;
    ot_rows_act act = strcmp(type, "FastGelu") == 0 ? OT_ROWS_GELU_TANH : OT_ROWS_GELU;
    OT_TRY(ot_call_need(c, strcmp(type, "BiasGelu") == 0 ? 2 : 1));
    const bool is_quick = strcmp(type, "QuickGelu") == 0,
               alone = is_quick || strcmp(type, "Gelu") == 0;
    const ot_nd *x = c->in[0], *bias = alone ? NULL : ot_rows_in(c, 1);
    int64_t n, row;
    if (x->dtype != OT_F32 || (bias && bias->dtype != OT_F32))
        return ot_call_fail(c, "only float32 is supported");
    if (bias && (x->rank < 1 || bias->rank != 1 || bias->dims[0] != x->dims[x->rank - 1]))
        return ot_call_fail(c, "the bias does not have as many numbers as the last axis");
    if (!ot_nd_elems(x, &n)) return ot_call_fail(c, "input 0 is too large");
    OT_TRY(ot_call_output(c, 0, OT_F32, x->rank, x->dims));
    if (!ot_rows_wants(c, 0) || n == 0) return OT_OK;
    row = bias ? bias->dims[0] : PIECE;
    gelu g = {.n = n,
              .row = row,
              .y = c->out[0]->data,
              .x = x->data,
              .bias = bias ? bias->data : NULL,
              .act = act,
              .is_quick = is_quick,
              .alpha = ot_attr_float(c->node, "alpha", 1.702f)};
    ot_pool_share((uint32_t)ot_rows_threads(c, 8.0 * (double)n), ot_ceil_div(n, row), 1, gelu_share,
                  &g);
    return OT_OK;
}
