/* Geometry of sliding-window operators: kernel, strides, dilations and pads as plain numbers.
 *
 * auto_pad is resolved here, once, against the whole tensor: a tile must never resolve it again,
 * since it would centre the padding on the tile. Every adapted node therefore carries explicit
 * pads.
 */
#include "access_spatial.h"

#define SPATIAL_LIMIT ((int64_t)1 << 30)

static bool in_range(int64_t v, int64_t lo) { return v >= lo && v < SPATIAL_LIMIT; }

/* Attributes of a window, NULL: absent. The planner asks for each tile, and they are read in one
 * pass. */
typedef struct window_attrs {
    const ot_attr *kernel, *strides, *dilations, *pads, *auto_pad;
} window_attrs;

static window_attrs attrs_of(const ot_node *n)
{
    window_attrs of = {NULL};
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        const ot_attr *a = &n->attrs[k], **to = NULL;
        const char *name = NULL;
        switch (a->name[0]) {
        case 'k': to = &of.kernel, name = "kernel_shape"; break;
        case 's': to = a->name[1] == 't' ? &of.strides : NULL, name = "strides"; break;
        case 'd': to = &of.dilations, name = "dilations"; break;
        case 'p': to = &of.pads, name = "pads"; break;
        case 'a': to = &of.auto_pad, name = "auto_pad"; break;
        default: break;
        }
        if (to && !*to && strcmp(a->name, name) == 0) *to = a;
    }
    return of;
}

/* An ints attribute that must have `n` entries when present; *ints is NULL when it is absent. */
static bool read_ints(const ot_attr *a, uint32_t n, const int64_t **ints)
{
    *ints = a && a->kind == OT_ATTR_INTS && a->n > 0 ? a->ints : NULL;
    return !*ints || a->n == n;
}

bool ot_spatial_read(const ot_graph *g, const ot_node *n, uint32_t weights, ot_spatial *sp,
                     ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, 0);
    const ot_value *w = weights == OT_NONE ? NULL : ot_acc_in(g, n, weights);
    if (!x || !y || x->rank < 3 || x->rank != y->rank)
        return ot_acc_refuse(why, OT_WHY_NO_SPATIAL_AXIS);
    if (x->rank > 2 + OT_SPATIAL_MAX) return ot_acc_refuse(why, OT_WHY_MANY_SPATIAL_AXES);
    if (weights != OT_NONE && (!w || w->rank != x->rank))
        return ot_acc_refuse(why, OT_WHY_WEIGHTS_RANK);
    sp->n = (uint32_t)x->rank - 2;
    const int64_t *kernel, *strides, *dilations;
    const window_attrs of = attrs_of(n);
    bool ok = read_ints(of.kernel, sp->n, &kernel) && read_ints(of.strides, sp->n, &strides) &&
              read_ints(of.dilations, sp->n, &dilations);
    for (uint32_t i = 0; i < sp->n; i++) {
        ot_spatial_axis *a = &sp->ax[i];
        if (ok)
            *a = (ot_spatial_axis){.in = x->dims[2 + i],
                                   .out = y->dims[2 + i],
                                   .k = kernel ? kernel[i]
                                        : w    ? w->dims[2 + i]
                                               : 0,
                                   .s = strides ? strides[i] : 1,
                                   .d = dilations ? dilations[i] : 1};
        if (!ok || !in_range(a->in, 1) || !in_range(a->out, 1) || !in_range(a->k, 1) ||
            !in_range(a->s, 1) || !in_range(a->d, 1))
            return ot_acc_refuse(why, OT_WHY_KERNEL_RANGE);
    }
    return true;
}

/* SAME padding of one axis: out = ceil(in / s), the odd element goes to the end named by `lower`.
 */
static void same_pads(ot_spatial_axis *a, bool lower)
{
    int64_t total = (ot_ceil_div(a->in, a->s) - 1) * a->s + ot_spatial_dk(a) - a->in;
    if (total < 0) total = 0;
    a->pb = lower ? (total + 1) / 2 : total / 2;
    a->pe = total - a->pb;
}

bool ot_spatial_read_pads(const ot_node *n, ot_spatial *sp, ot_why *why)
{
    const window_attrs of = attrs_of(n);
    const bool has_mode = of.auto_pad && of.auto_pad->kind == OT_ATTR_STRING && of.auto_pad->s;
    const char *mode = has_mode ? of.auto_pad->s : "";
    bool explicit_pads = mode[0] == '\0' || strcmp(mode, "NOTSET") == 0;
    bool same_upper = !explicit_pads && strcmp(mode, "SAME_UPPER") == 0;
    bool same_lower = !explicit_pads && strcmp(mode, "SAME_LOWER") == 0;
    if (!explicit_pads && !same_upper && !same_lower && strcmp(mode, "VALID") != 0)
        return ot_acc_refuse(why, OT_WHY_AUTO_PAD_UNKNOWN);
    const int64_t *pads = NULL;
    if (explicit_pads && !read_ints(of.pads, 2 * sp->n, &pads))
        return ot_acc_refuse(why, OT_WHY_SPATIAL_PADS_COUNT);
    for (uint32_t i = 0; i < sp->n; i++) {
        ot_spatial_axis *a = &sp->ax[i];
        if (same_upper || same_lower) same_pads(a, same_lower);
        if (!explicit_pads) continue;
        a->pb = pads ? pads[i] : 0;
        a->pe = pads ? pads[sp->n + i] : 0;
        if (!in_range(a->pb, 0) || !in_range(a->pe, 0))
            return ot_acc_refuse(why, OT_WHY_SPATIAL_PADS_RANGE);
    }
    return true;
}

bool ot_spatial_same_extent(const ot_graph *g, const ot_node *n, uint32_t axis)
{
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, 0);
    return x && y && x->rank == y->rank && x->rank >= 3 && x->dims[axis] == y->dims[axis];
}

bool ot_spatial_is_cut(const ot_tile_axis *axes, uint32_t n_axes)
{
    for (uint32_t i = 0; i < n_axes; i++)
        if (axes[i].axis >= 2) return true;
    return false;
}

bool ot_spatial_window(const ot_spatial_axis *x, ot_op_tile *t, ot_why *why)
{
    int64_t dk = ot_spatial_dk(x), o0 = t->need.lo, o1 = t->need.hi;
    /* A tile that lies wholly in the padding grows towards the interior until it touches it. */
    if ((o1 - 1) * x->s - x->pb + dk < 1) o1 = ot_ceil_div(1 + x->pb - dk, x->s) + 1;
    if (o0 * x->s - x->pb >= x->in) o0 = ot_floor_div(x->in - 1 + x->pb, x->s);
    if (o0 < 0 || o1 > x->out || o0 >= o1) return ot_acc_refuse(why, OT_WHY_AXIS_IN_PADDING);
    int64_t lo = o0 * x->s - x->pb, hi = (o1 - 1) * x->s - x->pb + dk;
    t->made = (ot_win){o0, o1};
    t->pad_lo = ot_max(0, -lo);
    t->pad_hi = ot_max(0, hi - x->in);
    t->in[0] = (ot_win){ot_max(0, lo), ot_min(hi, x->in)};
    if (t->in[0].lo >= t->in[0].hi) return ot_acc_refuse(why, OT_WHY_WINDOW_EMPTY);
    return true;
}

ot_status ot_spatial_set_pads(const ot_spatial *sp, const ot_tile_axis *axes, uint32_t n_axes,
                              ot_arena *arena, ot_adapted *out)
{
    int64_t pads[2 * OT_SPATIAL_MAX];
    for (uint32_t i = 0; i < sp->n; i++) {
        const ot_op_tile *t = ot_acc_cut(axes, n_axes, 2 + i);
        pads[i] = t ? t->pad_lo : sp->ax[i].pb;
        pads[sp->n + i] = t ? t->pad_hi : sp->ax[i].pe;
    }
    OT_TRY(ot_adapt_drop_attr(arena, out, "auto_pad"));
    return ot_adapt_set_ints(arena, out, "pads", pads, 2 * sp->n);
}
