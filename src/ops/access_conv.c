/* Conv, ConvInteger, QLinearConv: windows with a halo.
 *
 *   output  [o0, o1)                          kernel k, stride s, dilation d, begin pad p
 *   input   [o0*s - p, (o1-1)*s - p + (k-1)*d + 1)
 *
 *        lo <0        0                              E        hi > E
 *         |--pad_lo--|##############################|--pad_hi--|
 *
 * What sticks out of [0, E) becomes the tile's own padding: zero for Conv, the zero point for the
 * quantised ones, exactly as at the border of the whole tensor; a cut inside the tensor has none.
 * The batch axis follows the batch axis. The output channels would cut the weights, which is
 * another operator's work (and weights are to stay whole, shared by all tiles).
 */
#include "access_spatial.h"

/* Operand number of the weights. */
static uint32_t weights_of(const ot_node *n) { return ot_op_row_of(n->op)->weights; }

static bool read(const ot_graph *g, const ot_node *n, ot_spatial *sp, ot_why *why)
{
    if (!ot_spatial_read(g, n, weights_of(n), sp, why) || !ot_spatial_read_pads(n, sp, why))
        return false;
    for (uint32_t i = 0; i < sp->n; i++) {
        const ot_spatial_axis *a = &sp->ax[i];
        if (a->out != ot_floor_div(a->in + a->pb + a->pe - ot_spatial_dk(a), a->s) + 1)
            return ot_acc_refuse(why, OT_WHY_KERNEL_EXTENT);
    }
    return true;
}

static bool conv_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                      int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    (void)out_index;
    (void)out_axis;
    ot_spatial sp;
    if (axis == 1) return ot_acc_refuse(why, OT_WHY_CONV_CHANNELS);
    if (axis == 0 && !ot_spatial_same_extent(g, n, 0))
        return ot_acc_refuse(why, OT_WHY_BATCH_DIFFERS);
    if (axis >= 2 && !read(g, n, &sp, why)) return false;
    in_axis[0] = (int8_t)axis;
    return true;
}

static bool conv_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        ot_op_tile *t, ot_why *why)
{
    (void)out_index;
    ot_spatial sp;
    t->in[0] = t->need;
    if (axis < 2) return true;
    return read(g, n, &sp, why) && ot_spatial_window(&sp.ax[axis - 2], t, why);
}

bool ot_conv_spatial(const ot_graph *g, const ot_node *n, uint32_t axis, ot_spatial_axis *out)
{
    ot_spatial sp;
    ot_why why;
    if (!read(g, n, &sp, &why)) return false;
    *out = sp.ax[axis - 2];
    return true;
}

static ot_status conv_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                            uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    ot_why why = OT_WHY_NONE;
    ot_spatial sp;
    if (!ot_spatial_is_cut(axes, n_axes)) return OT_OK;
    if (!read(g, n, &sp, &why)) OT_BUG("a tile was made of a convolution that refuses to be cut");
    return ot_spatial_set_pads(&sp, axes, n_axes, arena, out);
}

const ot_access_ops ot_access_conv = {conv_axis, conv_window, conv_adapt};
