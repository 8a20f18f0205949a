/* Resize and Upsample: windows under a rational scale p/q.
 *
 * An output position o reads the input around f(o). All supported maps are affine in o with slope
 * q/p, so a shift by a whole period (q input rows, p output rows) maps onto itself:
 *
 *   q = 2, p = 3     in   | 0 1 | 2 3 | 4 5 |        a tile that starts at a multiple of q
 *                    out  |0 1 2|3 4 5|6 7 8|        sees the same coordinates, shifted
 *
 * The window is therefore widened to whole periods; the node makes a little more than was asked for
 * and the rewriter crops. The operator's float scale must be exactly the float nearest to p/q with
 * a small q, so that the tile computes the same coordinates. Where coordinates are rounded to a
 * neighbour (nearest), a flip at a tie would be a wrong pixel: every output position is checked
 * once in the very float arithmetic of the common runtimes (nearest_is_exact).
 *
 * Scales given as an operand or attribute stay as they are; `sizes` are rewritten.
 */
#include <math.h>

#include "access_resize.h"
#include "quirks.h"

#define PERIOD_MAX  64        /* largest q */
#define SCALE_MAX   4096      /* largest p */
#define CHECK_MAX   (1 << 16) /* outputs of one axis that are checked for nearest */
#define INEXACT_MAX 2048      /* input rows up to which float coordinates err by less than 2^-13 */

/* One resized axis. */
typedef struct rs_axis {
    int64_t in, out, p, q;
    float scale;
    bool identity; /* every output position reads exactly its own input position */
    bool dyadic;   /* p and q are powers of two: float coordinates are exact */
} rs_axis;

/* Index of s among n names, or -1. */
static int find(const char *s, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(s, names[i]) == 0) return i;
    return -1;
}

static bool read_modes(const ot_node *n, ot_resize *r, ot_why *why)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const maps[] = {
        "half_pixel",           "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric",
        "tf_half_pixel_for_nn", "align_corners",        "tf_crop_and_resize"};
    static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                         "ceil"};
    r->legacy = n->op == OT_OP_Upsample || n->version < 11;
    int mode = find(ot_attr_str(n, "mode", "nearest"), modes, 3);
    int map = RS_ASYMMETRIC, round = RS_FLOOR;
    if (!r->legacy) {
        map = find(ot_attr_str(n, "coordinate_transformation_mode", "half_pixel"), maps, 7);
        round = find(ot_attr_str(n, "nearest_mode", "round_prefer_floor"), rounds, 4);
        r->antialias = ot_attr_int(n, "antialias", 0) != 0;
        r->exclude = ot_attr_int(n, "exclude_outside", 0) != 0;
        r->aspect = strcmp(ot_attr_str(n, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0;
    }
    if (mode < 0 || map < 0 || round < 0) return ot_acc_refuse(why, OT_WHY_RESIZE_MODE);
    r->mode = (rs_mode)mode;
    r->map = (rs_map)map;
    r->round = (rs_round)round;
    return true;
}

/* Axes that scales or sizes speak of: all, or attribute `axes` (opset 18). */
static bool read_entries(const ot_node *n, int32_t rank, ot_resize *r)
{
    size_t count = 0;
    const int64_t *axes = r->legacy ? NULL : ot_attr_ints(n, "axes", &count);
    memset(r->entry, -1, sizeof r->entry);
    r->n_entries = axes ? (uint32_t)count : (uint32_t)rank;
    if (r->n_entries > (uint32_t)rank) return false;
    for (uint32_t i = 0; i < r->n_entries; i++) {
        int32_t a = ot_acc_norm_axis(axes ? axes[i] : (int64_t)i, rank);
        if (a < 0 || r->entry[a] >= 0) return false;
        r->entry[a] = (int8_t)i;
    }
    return true;
}

/* Operand i is there and has elements. */
static bool present(const ot_graph *g, const ot_node *n, uint32_t i)
{
    const ot_value *v = ot_acc_in(g, n, i);
    return v && v->rank == 1 && v->dims[0] > 0;
}

bool ot_resize_read(const ot_graph *g, const ot_node *n, ot_resize *r, ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, 0);
    *r = (ot_resize){0};
    if (!x || !y || x->rank < 1 || x->rank > OT_RANK_MAX || x->rank != y->rank)
        return ot_acc_refuse(why, OT_WHY_RESIZE_RANK);
    if (!read_modes(n, r, why)) return false;
    if (!read_entries(n, x->rank, r)) return ot_acc_refuse(why, OT_WHY_RESIZE_AXES);
    int64_t count = -1;
    if (n->op == OT_OP_Upsample && n->version < 9) {
        const ot_attr *a = ot_attr_find(n, "scales");
        r->operand = OT_NONE;
        if (a && a->kind == OT_ATTR_FLOATS && a->n <= OT_RANK_MAX) {
            count = (int64_t)a->n;
            memcpy(r->scales, a->floats, a->n * sizeof *r->scales);
        }
    } else {
        r->operand = r->legacy ? 1 : 2;
        r->by_sizes = !r->legacy && !present(g, n, 2) && present(g, n, 3);
        if (r->by_sizes) r->operand = 3;
        count = r->by_sizes ? ot_acc_ints(g, n, 3, r->sizes, OT_RANK_MAX)
                            : ot_acc_floats(g, n, r->operand, r->scales, OT_RANK_MAX);
    }
    if (count < 0) return ot_acc_refuse(why, OT_WHY_RESIZE_RUNTIME);
    if (count != r->n_entries) return ot_acc_refuse(why, OT_WHY_RESIZE_COUNT);
    return true;
}

bool ot_resize_is_odd(const ot_graph *g, const ot_node *n)
{
    ot_resize r;
    ot_why why;
    if (ot_op_access(n->op) != OT_ACC_RESIZE || !ot_resize_read(g, n, &r, &why) || r.by_sizes)
        return false;
    const ot_value *x = ot_acc_in(g, n, 0);
    for (int32_t a = 0; a < x->rank; a++) {
        if (r.entry[a] < 0) continue;
        const float scale = r.scales[r.entry[a]];
        const double in = (double)x->dims[a];
        if (floor(in * (double)scale) != (double)floorf((float)in * scale)) return true;
    }
    return false;
}

static bool power_of_two(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

/* Smallest q with float(p/q) == scale. */
static bool rational(float scale, int64_t *p, int64_t *q)
{
    if (!(scale > 0.0f && scale <= (float)SCALE_MAX)) return false;
    for (*q = 1; *q <= PERIOD_MAX; ++*q) {
        *p = llround((double)scale * (double)*q);
        if (*p >= 1 && (float)((double)*p / (double)*q) == scale) return true;
    }
    return false;
}

/* Scale of one axis as p/q; the extents must agree with it. */
static bool read_axis(const ot_graph *g, const ot_node *n, const ot_resize *r, uint32_t axis,
                      rs_axis *a, ot_why *why)
{
    *a = (rs_axis){.in = ot_acc_in(g, n, 0)->dims[axis],
                   .out = ot_acc_out(g, n, 0)->dims[axis],
                   .p = 1,
                   .q = 1,
                   .scale = 1};
    ot_why odd = OT_WHY_RESIZE_EXTENT;
    if (a->in < 1 || a->in >= (1 << 24) || a->out >= (1 << 24))
        return ot_acc_refuse(why, OT_WHY_RESIZE_LENGTH);
    int8_t e = r->entry[axis];
    if (e >= 0 && r->by_sizes) {
        int64_t d = ot_gcd(a->in, a->out);
        a->p = a->out / d;
        a->q = a->in / d;
        a->scale = (float)a->out / (float)a->in;
        if (!r->aspect && r->sizes[e] != a->out) return ot_acc_refuse(why, odd);
        if (a->q > PERIOD_MAX || a->p > SCALE_MAX) return ot_acc_refuse(why, OT_WHY_RESIZE_RATIO);
    } else if (e >= 0) {
        a->scale = r->scales[e];
        if (!rational(a->scale, &a->p, &a->q)) return ot_acc_refuse(why, OT_WHY_RESIZE_SCALE);
        if ((int64_t)(a->scale * (float)a->in) != a->out || a->in * a->p / a->q != a->out)
            return ot_acc_refuse(why, odd);
    } else if (a->in != a->out) {
        return ot_acc_refuse(why, odd);
    }
    a->dyadic = power_of_two(a->p) && power_of_two(a->q);
    bool shifted = r->map == RS_TF_HALF && !(r->round == RS_PREFER_FLOOR || r->round == RS_FLOOR) &&
                   e >= 0;
    a->identity = a->p == a->q && a->in == a->out && !shifted && r->map != RS_CROP;
    return true;
}

/* ---- coordinates: f(x) = num(x) / (2p), exactly ---- */

static int64_t numerator(const ot_resize *r, const rs_axis *a, int64_t x)
{
    int64_t shift = r->map == RS_ASYMMETRIC ? 0 : r->map == RS_TF_HALF ? a->q : a->q - a->p;
    return 2 * x * a->q + shift;
}

/* Neighbour that output x takes, not clamped. */
static int64_t nearest(const ot_resize *r, const rs_axis *a, int64_t x)
{
    int64_t num = numerator(r, a, x), den = 2 * a->p;
    if (r->legacy) return a->p < a->q ? ot_ceil_div(num, den) : ot_floor_div(num, den);
    switch (r->round) {
    case RS_PREFER_FLOOR: return ot_ceil_div(num - a->p, den);
    case RS_PREFER_CEIL: return ot_floor_div(num + a->p, den);
    case RS_FLOOR: return ot_floor_div(num, den);
    case RS_CEIL: return ot_ceil_div(num, den);
    }
    return 0;
}

/* To the nearest; what lies within `slack` of the middle counts as the middle. */
static int64_t round_float(float f, bool up, float slack)
{
    float low = floorf(f);
    if (fabsf(f - low - 0.5f) <= slack) return (int64_t)low + (up ? 1 : 0);
    return (int64_t)roundf(f);
}

int64_t ot_resize_round(rs_round round, float f, float slack)
{
    switch (round) {
    case RS_PREFER_FLOOR: return round_float(f, false, slack);
    case RS_PREFER_CEIL: return round_float(f, true, slack);
    case RS_FLOOR: return (int64_t)floorf(f);
    case RS_CEIL: return (int64_t)ceilf(f);
    }
    return 0;
}

/* As `nearest`, in single precision, as runtimes compute it; their sum for half_pixel_symmetric
 * is a double where they allow for slack. */
static int64_t nearest_float(const ot_resize *r, const rs_axis *a, int64_t x, float slack)
{
    float o = (float)x, f;
    if (r->map == RS_ASYMMETRIC)
        f = o / a->scale;
    else if (r->map == RS_TF_HALF)
        f = (o + 0.5f) / a->scale;
    else if (r->map == RS_SYMMETRIC && slack > 0)
        f = (float)(((double)o + 0.5) / (double)a->scale - 0.5);
    else
        f = (o + 0.5f) / a->scale - 0.5f;
    if (r->legacy) return a->scale < 1.0f ? (int64_t)ceilf(f) : (int64_t)f;
    return ot_resize_round(r->round, f, slack);
}

/* half_pixel_symmetric adds in / 2 * (1 - out / (in * scale)). Is that 0, as it is without
 * rounding, for the whole and for every tile of whole periods? */
static bool is_centred(const rs_axis *a)
{
    for (int64_t in = a->q; in <= a->in; in += a->q)
        if ((float)(in / a->q * a->p) / ((float)in * a->scale) != 1.0f) return false;
    return true;
}

static bool nearest_is_exact(const ot_resize *r, const rs_axis *a)
{
    if (a->out > CHECK_MAX) return a->dyadic;
    if (r->map == RS_SYMMETRIC && !is_centred(a)) return false;
    for (int64_t x = 0; x < a->out; x++) {
        int64_t want = ot_min(ot_max(nearest(r, a, x), 0), a->in - 1);
        for (int k = 0; k < 2; k++)
            if (ot_min(ot_max(nearest_float(r, a, x, k ? RS_TIE_SLACK : 0), 0), a->in - 1) != want)
                return false;
    }
    return true;
}

/* Why a resized axis cannot be cut, or OT_WHY_NONE. */
static ot_why obstacle(const ot_graph *g, const ot_node *n, const ot_resize *r, const rs_axis *a)
{
    ot_dtype dt = ot_acc_in(g, n, 0)->dtype;
    bool is_float = dt == OT_F32 || dt == OT_F64 || dt == OT_F16 || dt == OT_BF16;
    if (r->map == RS_CORNERS) return OT_WHY_RESIZE_CORNERS;
    if (r->map == RS_CROP) return OT_WHY_RESIZE_CROP;
    if (r->aspect) return OT_WHY_RESIZE_ASPECT;
    if (r->antialias) return OT_WHY_RESIZE_ANTIALIAS;
    if (r->exclude && r->mode == RS_CUBIC) return OT_WHY_RESIZE_CUBIC;
    if (r->map == RS_SYMMETRIC && a->in * a->p != a->out * a->q) return OT_WHY_RESIZE_SYMMETRIC;
    if (r->map == RS_PYTORCH && a->out == 1) return OT_WHY_RESIZE_PYTORCH_ONE;
    if (!r->by_sizes && (double)a->scale * (double)a->q < (double)a->p) return OT_WHY_RESIZE_BELOW;
    if (ot_quirk_concerns(OT_QUIRK_RESIZE_EXTENT, OT_BY_ALL) && a->in == a->out && a->p != a->q)
        return OT_WHY_RESIZE_SAME_EXTENT;
    if (r->map == RS_TF_HALF && r->mode != RS_NEAREST) return OT_WHY_RESIZE_TF;
    if (r->mode == RS_NEAREST && !nearest_is_exact(r, a)) return OT_WHY_RESIZE_NEIGHBOURS;
    if (r->mode != RS_NEAREST && !a->dyadic && (a->in > INEXACT_MAX || !is_float))
        return OT_WHY_RESIZE_ROUNDING;
    return OT_WHY_NONE;
}

bool ot_resize_repeats(const ot_graph *g, const ot_node *n, uint32_t axis)
{
    ot_resize r;
    rs_axis a;
    ot_why why;
    if (!ot_resize_read(g, n, &r, &why) || !read_axis(g, n, &r, axis, &a, &why)) return false;
    return a.identity || a.dyadic || r.mode == RS_NEAREST;
}

static bool resize_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    (void)out_index;
    (void)out_axis;
    ot_resize r;
    rs_axis a;
    if (!ot_resize_read(g, n, &r, why)) return false;
    if (r.map == RS_CROP) return ot_acc_refuse(why, OT_WHY_RESIZE_CROP);
    if (r.aspect && r.by_sizes && r.entry[axis] >= 0)
        return ot_acc_refuse(why, OT_WHY_RESIZE_ASPECT);
    if (!read_axis(g, n, &r, axis, &a, why)) return false;
    ot_why reason = a.identity ? OT_WHY_NONE : obstacle(g, n, &r, &a);
    if (reason) return ot_acc_refuse(why, reason);
    in_axis[0] = (int8_t)axis;
    return true;
}

/* Input rows that outputs [o0, o1) touch, not clamped. */
static ot_win taps(const ot_resize *r, const rs_axis *a, ot_win need)
{
    if (r->mode == RS_NEAREST)
        return (ot_win){nearest(r, a, need.lo), nearest(r, a, need.hi - 1) + 1};
    int64_t reach = r->mode == RS_CUBIC ? 1 : 0, den = 2 * a->p;
    return (ot_win){ot_floor_div(numerator(r, a, need.lo), den) - reach,
                    ot_floor_div(numerator(r, a, need.hi - 1), den) + 2 + reach};
}

/* Widen to whole periods inside [0, in), and say what the node makes of it. */
static void whole_periods(const rs_axis *a, ot_win w, ot_op_tile *t)
{
    int64_t lo = ot_min(ot_max(w.lo, 0), a->in - 1) / a->q * a->q;
    int64_t hi = ot_min(ot_ceil_div(ot_max(w.hi, lo + 1), a->q) * a->q, a->in);
    t->in[0] = (ot_win){lo, hi};
    t->made = (ot_win){lo / a->q * a->p, hi == a->in ? a->out : hi / a->q * a->p};
}

/* Tiles that runtimes do not map like the whole: a single output element under pytorch_half_pixel
 * (it reads position 0), and an output of the input's extent (it is copied, whatever the scale
 * says). One more period makes them ordinary. */
static bool is_special(const ot_resize *r, const rs_axis *a, const ot_op_tile *t)
{
    if (!ot_quirk_concerns(OT_QUIRK_RESIZE_SPECIAL, OT_BY_ALL)) return false;
    int64_t rows = t->in[0].hi - t->in[0].lo, made = t->made.hi - t->made.lo;
    return (r->map == RS_PYTORCH && made == 1) || (a->p != a->q && rows == made);
}

static bool resize_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                          ot_op_tile *t, ot_why *why)
{
    (void)out_index;
    ot_resize r;
    rs_axis a;
    if (!ot_resize_read(g, n, &r, why) || !read_axis(g, n, &r, axis, &a, why)) return false;
    if (a.identity) {
        t->in[0] = t->need;
        return true;
    }
    ot_win w = taps(&r, &a, t->need);
    w.lo = ot_min(w.lo, ot_floor_div(t->need.lo * a.q, a.p));
    w.hi = ot_max(w.hi, ot_ceil_div(t->need.hi * a.q, a.p));
    whole_periods(&a, w, t);
    for (int k = 0; k < 2 && is_special(&r, &a, t); k++) {
        if (t->in[0].lo >= a.q)
            t->in[0].lo -= a.q;
        else
            t->in[0].hi += a.q;
        whole_periods(&a, t->in[0], t);
    }
    if (is_special(&r, &a, t)) return ot_acc_refuse(why, OT_WHY_RESIZE_SPECIAL);
    int64_t rows = t->in[0].hi - t->in[0].lo, made = t->made.hi - t->made.lo;
    if (!r.by_sizes && (int64_t)(a.scale * (float)rows) != made)
        return ot_acc_refuse(why, OT_WHY_RESIZE_WINDOW);
    return true;
}

static ot_status resize_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                              uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    ot_why why = OT_WHY_NONE;
    ot_resize r;
    if (!ot_resize_read(g, n, &r, &why))
        OT_BUG("a tile was made of a Resize that refuses to be cut");
    if (!r.by_sizes) return OT_OK; /* the same scales give the tile's extent */
    for (uint32_t i = 0; i < n_axes; i++) {
        int8_t e = r.entry[axes[i].axis];
        if (e >= 0) r.sizes[e] = axes[i].tile->made.hi - axes[i].tile->made.lo;
    }
    return ot_adapt_set_i64(arena, out, 3, r.sizes, r.n_entries);
}

const ot_access_ops ot_access_resize = {resize_axis, resize_window, resize_adapt};
