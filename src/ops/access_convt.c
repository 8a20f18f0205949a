/* ConvTranspose: each input element paints a kernel into the output.
 *
 *   y[o] += x[i] * w[j]   where   o = i*s - p + j*d,   0 <= j < k
 *
 *   inputs that reach [o0, o1):   i_lo = ceil((o0 + p - (k-1)*d) / s)
 *                                 i_hi = floor((o1-1 + p) / s) + 1
 *
 * The tile paints from i_lo on; its own crops ("pads") select the window:
 *
 *   pad_lo = p + o0 - i_lo*s                       elements painted before o0
 *   pad_hi = (n-1)*s + dk - pad_lo - (o1 - o0)     elements painted after o1
 *
 * When pad_hi is negative, that many rows past the last kernel are zero: output_padding (extra).
 *
 * With a kernel not smaller than the stride neither gaps nor negative crops can appear inside;
 * other kernels are refused.
 */
#include "access_spatial.h"

/* Operator with its crops resolved; op: output_padding. */
typedef struct convt {
    ot_spatial sp;
    int64_t op[OT_SPATIAL_MAX];
} convt;

/* Crops given through output_shape or auto_pad: total = natural extent - wanted extent, shared
 * by both ends. A few rows more than the kernel paints are nothing but bias at the end, as
 * output_padding is: the runtimes take a negative total for 0. */
static bool resolve_total(const ot_node *n, ot_spatial_axis *a, int64_t *op, ot_why *why)
{
    int64_t total = (a->in - 1) * a->s + *op + ot_spatial_dk(a) - a->out;
    if (total < 0 && *op - total >= ot_max(a->s, a->d))
        return ot_acc_refuse(why, OT_WHY_CONVT_SHAPE);
    if (total < 0) {
        *op -= total;
        total = 0;
    }
    bool upper = strcmp(ot_attr_str(n, "auto_pad", "NOTSET"), "SAME_UPPER") == 0;
    a->pb = upper ? total / 2 : total - total / 2;
    a->pe = total - a->pb;
    return true;
}

static bool read(const ot_graph *g, const ot_node *n, convt *c, ot_why *why)
{
    if (!ot_spatial_read(g, n, 1, &c->sp, why)) return false;
    size_t n_op = 0, n_shape = 0;
    const int64_t *op = ot_attr_ints(n, "output_padding", &n_op);
    (void)ot_attr_ints(n, "output_shape", &n_shape);
    const char *mode = ot_attr_str(n, "auto_pad", "NOTSET");
    bool same = strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0;
    if (n_op != 0 && n_op != c->sp.n) return ot_acc_refuse(why, OT_WHY_CONVT_PADDING_COUNT);
    if (n_shape == 0 && !same && !ot_spatial_read_pads(n, &c->sp, why)) return false;
    for (uint32_t i = 0; i < c->sp.n; i++) {
        ot_spatial_axis *a = &c->sp.ax[i];
        c->op[i] = n_op ? op[i] : 0;
        if (c->op[i] < 0 || c->op[i] >= ot_max(a->s, a->d))
            return ot_acc_refuse(why, OT_WHY_CONVT_PADDING_RANGE);
        if ((n_shape != 0 || same) && !resolve_total(n, a, &c->op[i], why)) return false;
        if (a->out != (a->in - 1) * a->s + c->op[i] + ot_spatial_dk(a) - a->pb - a->pe)
            return ot_acc_refuse(why, OT_WHY_KERNEL_EXTENT);
    }
    return true;
}

static bool convt_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    (void)out_index;
    (void)out_axis;
    convt c;
    if (axis == 1) return ot_acc_refuse(why, OT_WHY_CONV_CHANNELS);
    if (axis == 0 && !ot_spatial_same_extent(g, n, 0))
        return ot_acc_refuse(why, OT_WHY_BATCH_DIFFERS);
    if (axis >= 2 && !read(g, n, &c, why)) return false;
    if (axis >= 2 && ot_spatial_dk(&c.sp.ax[axis - 2]) < c.sp.ax[axis - 2].s)
        return ot_acc_refuse(why, OT_WHY_CONVT_GAPS);
    in_axis[0] = (int8_t)axis;
    return true;
}

static bool convt_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         ot_op_tile *t, ot_why *why)
{
    (void)out_index;
    convt c;
    t->in[0] = t->need;
    if (axis < 2) return true;
    if (!read(g, n, &c, why)) return false;
    const ot_spatial_axis *a = &c.sp.ax[axis - 2];
    int64_t reach = (a->k - 1) * a->d, o0 = t->need.lo, o1 = t->need.hi;
    /* Output that only output_padding reaches: grow the tile back to the last input row. */
    o0 = ot_max(0, ot_min(o0, (a->in - 1) * a->s - a->pb + reach));
    int64_t lo = ot_max(0, ot_ceil_div(o0 + a->pb - reach, a->s));
    int64_t hi = ot_min(a->in, ot_floor_div(o1 - 1 + a->pb, a->s) + 1);
    if (lo >= hi) return ot_acc_refuse(why, OT_WHY_CONVT_NO_INPUT);
    int64_t first = a->pb + o0 - lo * a->s;
    int64_t last = (hi - lo - 1) * a->s + reach + 1 - first - (o1 - o0);
    t->made = (ot_win){o0, o1};
    t->in[0] = (ot_win){lo, hi};
    t->pad_lo = first;
    t->pad_hi = ot_max(0, last);
    t->extra = ot_max(0, -last);
    if (first < 0 || t->extra >= ot_max(a->s, a->d)) return ot_acc_refuse(why, OT_WHY_CONVT_CROP);
    return true;
}

void ot_convt_end(const ot_graph *g, const ot_node *n, uint32_t axis, int64_t *crop,
                  int64_t *padding)
{
    convt c;
    ot_why why = OT_WHY_NONE;
    *crop = *padding = 0;
    if (!read(g, n, &c, &why)) return;
    *crop = c.sp.ax[axis - 2].pe;
    *padding = c.op[axis - 2];
}

static ot_status convt_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                             uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    ot_why why = OT_WHY_NONE;
    convt c;
    if (!ot_spatial_is_cut(axes, n_axes)) return OT_OK;
    if (!read(g, n, &c, &why))
        OT_BUG("a tile was made of a transposed convolution that refuses to be cut");
    int64_t op[OT_SPATIAL_MAX], any = 0;
    for (uint32_t i = 0; i < c.sp.n; i++) {
        const ot_op_tile *t = ot_acc_cut(axes, n_axes, 2 + i);
        op[i] = t ? t->extra : c.op[i];
        any |= op[i];
    }
    OT_TRY(ot_adapt_drop_attr(arena, out, "output_shape"));
    OT_TRY(ot_adapt_drop_attr(arena, out, "output_padding"));
    if (any) OT_TRY(ot_adapt_set_ints(arena, out, "output_padding", op, c.sp.n));
    return ot_spatial_set_pads(&c.sp, axes, n_axes, arena, out);
}

const ot_access_ops ot_access_convt = {convt_axis, convt_window, convt_adapt};
