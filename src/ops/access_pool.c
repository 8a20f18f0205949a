/* MaxPool, AveragePool, LpPool: windows like a convolution's, without weights; and the global
 * pools.
 *
 * ceil_mode adds a last window that may stick out beyond the end padding:
 *
 *   0                        E    E+pe
 *   |#########################|-pe-|
 *                          [ last window ]     only E+pe is padding; the rest does not exist
 *
 * The difference matters to an average that counts its padding. The tile with that window therefore
 * keeps the original end pad and ceil_mode (extra = 1): shifted by a whole number of strides it
 * sees exactly the same border. All other tiles have windows that divide evenly, where ceil_mode
 * has no effect.
 */
#include "access_spatial.h"
#include "quirks.h"

/* Does the last window stick out beyond the end padding? */
static bool overflows(const ot_spatial_axis *a)
{
    return (a->out - 1) * a->s + ot_spatial_dk(a) > a->in + a->pb + a->pe;
}

/* SAME padding of a dilated or very small kernel: runtimes disagree on it, so a resolved form would
 * change results. */
static bool same_is_unclear(const ot_node *n, const ot_spatial_axis *a)
{
    if (strncmp(ot_attr_str(n, "auto_pad", "NOTSET"), "SAME", 4) != 0) return false;
    return a->d > 1 || (ot_ceil_div(a->in, a->s) - 1) * a->s + a->k < a->in;
}

static bool read(const ot_graph *g, const ot_node *n, ot_spatial *sp, ot_why *why)
{
    if (!ot_spatial_read(g, n, OT_NONE, sp, why) || !ot_spatial_read_pads(n, sp, why)) return false;
    bool ceil_mode = ot_attr_int(n, "ceil_mode", 0) != 0;
    for (uint32_t i = 0; i < sp->n; i++) {
        const ot_spatial_axis *a = &sp->ax[i];
        if (ot_quirk_concerns(OT_QUIRK_SAME_POOL, OT_BY_ALL) && same_is_unclear(n, a))
            return ot_acc_refuse(why, OT_WHY_POOL_SAME);
        int64_t slack = a->in + a->pb + a->pe - ot_spatial_dk(a);
        int64_t down = ot_floor_div(slack, a->s) + 1, up = ot_ceil_div(slack, a->s) + 1;
        if (a->out != down && !(ceil_mode && a->out == up))
            return ot_acc_refuse(why, OT_WHY_KERNEL_EXTENT);
        if ((a->out - 1) * a->s >= a->in + a->pb)
            return ot_acc_refuse(why, OT_WHY_POOL_LAST_WINDOW);
        if (a->pb >= ot_spatial_dk(a) || a->pe >= ot_spatial_dk(a))
            return ot_acc_refuse(why, OT_WHY_POOL_PADS);
    }
    return true;
}

/* Its extent in ONNX Runtime is another than the model's. */
static bool loses_pad(const ot_graph *g, const ot_node *n)
{
    return ot_quirk_concerns(OT_QUIRK_POOL_LOSES_PAD, OT_BY_ALL) && ot_acc_pad_lost(g, n);
}

bool ot_pool_is_odd(const ot_graph *g, const ot_node *n)
{
    ot_spatial sp;
    ot_why why;
    if (ot_op_access(n->op) != OT_ACC_POOL || ot_attr_int(n, "ceil_mode", 0) == 0) return false;
    if (loses_pad(g, n)) return true;
    if (!ot_spatial_read(g, n, OT_NONE, &sp, &why) || !ot_spatial_read_pads(n, &sp, &why))
        return false;
    for (uint32_t i = 0; i < sp.n; i++) {
        const ot_spatial_axis *a = &sp.ax[i];
        if (ot_ceil_div(a->in + a->pb + a->pe - ot_spatial_dk(a), a->s) + 1 != a->out) return true;
    }
    return false;
}

/* MaxPool's second output counts positions in the whole tensor. */
static bool indices_used(const ot_graph *g, const ot_node *n)
{
    const ot_value *v = n->op == OT_OP_MaxPool ? ot_acc_out(g, n, 1) : NULL;
    if (!v) return false;
    return v->is_output || !(g->props & OT_P_USES) || v->n_uses > 0;
}

static bool pool_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                      int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    (void)out_axis;
    ot_spatial sp;
    if (out_index != 0 || indices_used(g, n)) return ot_acc_refuse(why, OT_WHY_POOL_INDICES);
    if (ot_quirk_concerns(OT_QUIRK_POOL_TAKES_PAD, OT_BY_ALL) && ot_acc_pad_clash(g, n))
        return ot_acc_refuse(why, OT_WHY_POOL_AFTER_PAD);
    if (loses_pad(g, n)) return ot_acc_refuse(why, OT_WHY_POOL_LOSES_PAD);
    if (axis < 2 && !ot_spatial_same_extent(g, n, axis))
        return ot_acc_refuse(why, OT_WHY_CHANNELS_DIFFER);
    if (axis >= 2 && !read(g, n, &sp, why)) return false;
    in_axis[0] = (int8_t)axis;
    return true;
}

static bool pool_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        ot_op_tile *t, ot_why *why)
{
    (void)out_index;
    ot_spatial sp;
    t->in[0] = t->need;
    if (axis < 2) return true;
    if (!read(g, n, &sp, why)) return false;
    const ot_spatial_axis *a = &sp.ax[axis - 2];
    if (t->need.hi < a->out || !overflows(a)) return ot_spatial_window(a, t, why);
    /* The sticking-out window alone would be a kernel larger than its padded input: make its
     * neighbour, too. */
    ot_win need = t->need;
    t->need.lo = ot_max(
        0, ot_min(need.lo, ot_floor_div(a->in + a->pb + a->pe - ot_spatial_dk(a), a->s)));
    bool ok = ot_spatial_window(a, t, why);
    t->need = need;
    t->pad_hi = a->pe;
    t->extra = 1;
    return ok;
}

bool ot_pool_spatial(const ot_graph *g, const ot_node *n, uint32_t axis, ot_spatial_axis *out)
{
    ot_spatial sp;
    ot_why why;
    if (!read(g, n, &sp, &why) || overflows(&sp.ax[axis - 2])) return false;
    *out = sp.ax[axis - 2];
    return true;
}

static ot_status pool_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                            uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    ot_why why = OT_WHY_NONE;
    ot_spatial sp;
    if (!ot_spatial_is_cut(axes, n_axes)) return OT_OK;
    if (!read(g, n, &sp, &why)) OT_BUG("a tile was made of a pool that refuses to be cut");
    OT_TRY(ot_spatial_set_pads(&sp, axes, n_axes, arena, out));
    if (ot_attr_int(n, "ceil_mode", 0) == 0) return OT_OK;
    /* where windows divide evenly it has no effect, and other axes may have any extent */
    if (g->model->dynamic_dims) return OT_OK;
    /* ceil_mode stays where some axis still has its sticking-out window, and goes elsewhere. */
    bool wanted = false;
    for (uint32_t i = 0; i < sp.n; i++) {
        const ot_op_tile *t = ot_acc_cut(axes, n_axes, 2 + i);
        wanted |= t ? t->extra != 0 : overflows(&sp.ax[i]);
    }
    return wanted ? OT_OK : ot_adapt_drop_attr(arena, out, "ceil_mode");
}

const ot_access_ops ot_access_pool = {pool_axis, pool_window, pool_adapt};

/* ---- global pools: batch and channels only ---- */

static bool global_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    (void)out_index;
    (void)out_axis;
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, 0);
    if (!x || x->rank != y->rank || x->rank < 3)
        return ot_acc_refuse(why, OT_WHY_GLOBAL_POOL_NO_AXIS);
    if (axis >= 2) return ot_acc_refuse(why, OT_WHY_GLOBAL_POOL_EXTENT);
    in_axis[0] = (int8_t)axis;
    return true;
}

static bool global_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                          ot_op_tile *t, ot_why *why)
{
    (void)g;
    (void)n;
    (void)out_index;
    if (axis >= 2) return ot_acc_refuse(why, OT_WHY_GLOBAL_POOL_EXTENT);
    t->in[0] = t->need;
    return true;
}

const ot_access_ops ot_access_globalpool = {global_axis, global_window, NULL};
