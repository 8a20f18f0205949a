/* Pad: constant, edge, reflect; wrap only where it pads nothing.
 *
 *   out o  <->  in x = o - pb            x < 0 or x >= E: padding (negative pads crop instead)
 *
 *        x0 <0      0                         E      x1 > E
 *         |-pad_lo--|#########################|-pad_hi-|
 *
 * Tiles inside need plain windows; tiles at a border keep the part of the padding they contain. A
 * tile that is all padding grows to touch the interior, for a Pad of nothing is no operator.
 * Reflected rows are part of the window: x reads -x, E-1+x reads E-1-x. A tile without any padding
 * left, on any axis, needs no node at all: it is forwarded.
 */
#include "access_spatial.h"
#include "dynamic_dims.h"
#include "quirks.h"

#define PAD_LIMIT ((int64_t)1 << 40)

typedef enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP } pad_mode;

typedef struct pad_info {
    pad_mode mode;
    uint32_t rank;
    int64_t pb[OT_RANK_MAX], pe[OT_RANK_MAX], in[OT_RANK_MAX]; /* [rank] */
    /* axes that the pads vector speaks of */
    uint32_t n_listed;
    /* [n_listed] in the vector's order */
    uint32_t listed[OT_RANK_MAX];
} pad_info;

static bool read_mode(const ot_node *n, pad_mode *mode)
{
    static const char *const names[] = {"constant", "edge", "reflect", "wrap"};
    const char *s = ot_attr_str(n, "mode", "constant");
    for (int i = 0; i < 4; i++)
        if (strcmp(s, names[i]) == 0) {
            *mode = (pad_mode)i;
            return true;
        }
    return false;
}

/* Axes that the pads vector speaks of: all, or those of operand 3. */
static bool read_listed(const ot_graph *g, const ot_node *n, pad_info *p)
{
    int64_t axes[OT_RANK_MAX];
    if (!ot_acc_in(g, n, 3)) {
        p->n_listed = p->rank;
        for (uint32_t i = 0; i < p->rank; i++) p->listed[i] = i;
        return true;
    }
    int64_t count = ot_acc_ints(g, n, 3, axes, OT_RANK_MAX);
    if (count < 0) return false;
    bool seen[OT_RANK_MAX] = {false};
    p->n_listed = (uint32_t)count;
    for (int64_t i = 0; i < count; i++) {
        int32_t a = ot_acc_norm_axis(axes[i], (int32_t)p->rank);
        if (a < 0 || seen[a]) return false;
        seen[a] = true;
        p->listed[i] = (uint32_t)a;
    }
    return true;
}

static bool read(const ot_graph *g, const ot_node *n, pad_info *p, ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, 0);
    int64_t vec[2 * OT_RANK_MAX] = {0};
    *p = (pad_info){0};
    if (!x || !y || x->rank < 1 || x->rank > OT_RANK_MAX || x->rank != y->rank)
        return ot_acc_refuse(why, OT_WHY_PAD_RANK);
    if (n->version < 2) return ot_acc_refuse(why, OT_WHY_PAD_VERSION);
    if (!read_mode(n, &p->mode)) return ot_acc_refuse(why, OT_WHY_PAD_MODE);
    p->rank = (uint32_t)x->rank;
    if (!read_listed(g, n, p)) return ot_acc_refuse(why, OT_WHY_PAD_AXES);
    size_t count = 0;
    if (n->version < 11) {
        const int64_t *a = ot_attr_ints(n, "pads", &count);
        if (a && count <= 2 * OT_RANK_MAX) memcpy(vec, a, count * sizeof *vec);
    } else {
        int64_t c = ot_acc_ints(g, n, 1, vec, 2 * OT_RANK_MAX);
        if (c < 0) return ot_acc_refuse(why, OT_WHY_PAD_NOT_CONSTANT);
        count = (size_t)c;
    }
    if (count != 2 * (size_t)p->n_listed) return ot_acc_refuse(why, OT_WHY_PAD_COUNT);
    for (uint32_t i = 0; i < p->n_listed; i++) {
        p->pb[p->listed[i]] = vec[i];
        p->pe[p->listed[i]] = vec[p->n_listed + i];
    }
    for (uint32_t d = 0; d < p->rank; d++) {
        p->in[d] = x->dims[d];
        bool sane = p->pb[d] > -PAD_LIMIT && p->pb[d] < PAD_LIMIT && p->pe[d] > -PAD_LIMIT &&
                    p->pe[d] < PAD_LIMIT && x->dims[d] < PAD_LIMIT;
        if (!sane || y->dims[d] != x->dims[d] + p->pb[d] + p->pe[d])
            return ot_acc_refuse(why, OT_WHY_PAD_EXTENT);
    }
    return true;
}

/* ---- Pad before a pool ----
 *
 * ONNX Runtime merges Pad by zeros into the pool that follows, when that pool has explicit pads.
 * For MaxPool this changes results below zero (padding there is minus infinity), and pads that
 * become as large as the kernel are refused on loading. Whether it merges depends on what is
 * next to what; so where it matters, both nodes stay as they are. With ceil_mode a last window
 * that lay in the Pad lies in the pool's own padding then, and there is none:
 *
 *   0                          E   E+pe
 *   |###########################|-pe-|
 *                               [ window ]     begins at E or behind it
 */

/* Nothing in v is below zero. */
static bool never_negative(const ot_graph *g, ot_id v)
{
    const ot_node *n = g->values[v].producer == OT_NONE ? NULL : &g->nodes[g->values[v].producer];
    if (!n) return false;
    float lo;
    switch (n->op) {
    case OT_OP_Relu:
    case OT_OP_Sigmoid:
    case OT_OP_HardSigmoid:
    case OT_OP_Softmax:
    case OT_OP_Abs: return true;
    case OT_OP_Clip:
        if (n->version < 11) return ot_attr_float(n, "min", -1) >= 0;
        return ot_acc_floats(g, n, 1, &lo, 1) == 1 && lo >= 0;
    default: return false;
    }
}

static bool pads_by_zeros(const ot_graph *g, const ot_node *n)
{
    float value;
    if (strcmp(ot_attr_str(n, "mode", "constant"), "constant") != 0) return false;
    if (n->version < 11) return ot_attr_float(n, "value", 0) == 0;
    if (!ot_acc_in(g, n, 2)) return true;
    return ot_acc_floats(g, n, 2, &value, 1) != 1 || value == 0;
}

/* Pads of the pool and of the Pad before it stay below the kernel. */
static bool pads_stay_small(const ot_graph *g, const ot_node *pad, const ot_node *pool)
{
    ot_why why;
    pad_info p;
    ot_spatial sp;
    if (!read(g, pad, &p, &why) || !ot_spatial_read(g, pool, OT_NONE, &sp, &why) ||
        !ot_spatial_read_pads(pool, &sp, &why))
        return false;
    for (uint32_t i = 0; i < sp.n; i++)
        if (p.pb[2 + i] + sp.ax[i].pb >= sp.ax[i].k || p.pe[2 + i] + sp.ax[i].pe >= sp.ax[i].k)
            return false;
    return true;
}

bool ot_acc_pad_clash(const ot_graph *g, const ot_node *pool)
{
    const ot_value *x = ot_acc_in(g, pool, 0);
    const ot_node *pad = x && x->producer != OT_NONE ? &g->nodes[x->producer] : NULL;
    bool max = pool->op == OT_OP_MaxPool;
    if (g->model->unchanged) return false;
    if (!max && (pool->op != OT_OP_AveragePool || ot_attr_int(pool, "count_include_pad", 0) == 0))
        return false;
    if (!pad || pad->op != OT_OP_Pad || !pads_by_zeros(g, pad)) return false;
    return (max && !never_negative(g, pad->in[0])) || !pads_stay_small(g, pad, pool);
}

bool ot_acc_pad_lost(const ot_graph *g, const ot_node *pool)
{
    const ot_value *x = ot_acc_in(g, pool, 0);
    const ot_node *pad = x && x->producer != OT_NONE ? &g->nodes[x->producer] : NULL;
    ot_why why;
    pad_info p;
    ot_spatial sp;
    if (pool->op != OT_OP_MaxPool && pool->op != OT_OP_AveragePool) return false;
    if (!pad || pad->op != OT_OP_Pad || ot_attr_int(pool, "ceil_mode", 0) == 0) return false;
    if (!pads_by_zeros(g, pad) || !read(g, pad, &p, &why) ||
        !ot_spatial_read(g, pool, OT_NONE, &sp, &why) || !ot_spatial_read_pads(pool, &sp, &why))
        return false;
    for (uint32_t i = 0; i < sp.n; i++) {
        const ot_spatial_axis *a = &sp.ax[i];
        int64_t pb = p.pb[2 + i] + a->pb, pe = p.pe[2 + i] + a->pe;
        bool any = g->model->unchanged || ot_axis_is_dynamic(g, pad->in[0], (int32_t)(2 + i));
        if (p.pe[2 + i] <= 0) continue;
        if (any ? pe - ot_spatial_dk(a) + a->s > 0 : (a->out - 1) * a->s >= p.in[2 + i] + pb)
            return true;
    }
    return false;
}

static bool feeds_clash(const ot_graph *g, const ot_node *n)
{
    const ot_value *y = ot_acc_out(g, n, 0);
    for (uint32_t u = 0; (g->props & OT_P_USES) && u < y->n_uses; u++)
        if (ot_acc_pad_clash(g, &g->nodes[y->uses[u]])) return true;
    return false;
}

static bool pad_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                     int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    (void)out_index;
    (void)out_axis;
    pad_info p;
    if (!read(g, n, &p, why)) return false;
    if (ot_quirk_concerns(OT_QUIRK_PAD_INTO_POOL, OT_BY_ALL) && feeds_clash(g, n))
        return ot_acc_refuse(why, OT_WHY_PAD_BEFORE_POOL);
    int64_t pb = p.pb[axis], pe = p.pe[axis], e = p.in[axis];
    bool crops = pb < 0 || pe < 0;
    if (pb != 0 || pe != 0) {
        if (p.mode == PAD_WRAP) return ot_acc_refuse(why, OT_WHY_PAD_WRAP);
        if (crops && p.mode != PAD_CONSTANT) return ot_acc_refuse(why, OT_WHY_PAD_NEGATIVE_BORDER);
        if (p.mode == PAD_REFLECT && (pb >= e || pe >= e))
            return ot_acc_refuse(why, OT_WHY_PAD_REFLECT);
        if (e + ot_min(pb, 0) + ot_min(pe, 0) < 1)
            return ot_acc_refuse(why, OT_WHY_PAD_NOTHING_LEFT);
    }
    in_axis[0] = (int8_t)axis;
    return true;
}

/* Reflected rows widen the window towards the interior, and what is made with it. */
static void reflect_window(int64_t e, int64_t pb, ot_op_tile *t)
{
    int64_t x0 = t->made.lo - pb, x1 = t->made.hi - pb; /* both ends touch the interior already */
    int64_t lo = ot_max(x0, 0), hi = ot_min(x1, e);
    if (x0 < 0) hi = ot_max(hi, -x0 + 1);
    if (x1 > e) lo = ot_min(lo, 2 * e - 1 - x1);
    t->in[0] = (ot_win){lo, hi};
    if (x0 >= 0) t->made.lo = lo + pb;
    if (x1 <= e) t->made.hi = hi + pb;
}

static bool pad_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       ot_op_tile *t, ot_why *why)
{
    (void)out_index;
    pad_info p;
    if (!read(g, n, &p, why)) return false;
    int64_t pb = p.pb[axis], e = p.in[axis];
    /* Interior that may be read: what negative pads crop away is not there. */
    int64_t first = ot_max(0, -pb), end = e + ot_min(p.pe[axis], 0);
    t->made.hi = ot_max(t->made.hi, first + pb + 1);
    t->made.lo = ot_min(t->made.lo, end + pb - 1);
    int64_t x0 = t->made.lo - pb, x1 = t->made.hi - pb;
    t->in[0] = (ot_win){ot_max(x0, first), ot_min(x1, end)};
    t->pad_lo = ot_max(0, -x0);
    t->pad_hi = ot_max(0, x1 - e);
    if (p.mode == PAD_REFLECT && (t->pad_lo > 0 || t->pad_hi > 0)) reflect_window(e, pb, t);
    return true;
}

int64_t ot_pad_end(const ot_graph *g, const ot_node *n, uint32_t axis)
{
    pad_info p;
    ot_why why = OT_WHY_NONE;
    return read(g, n, &p, &why) ? p.pe[axis] : 0;
}

static ot_status pad_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                           uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    ot_why why = OT_WHY_NONE;
    pad_info p;
    if (!read(g, n, &p, &why)) OT_BUG("a tile was made of a Pad that refuses to be cut");
    bool nothing = true;
    for (uint32_t d = 0; d < p.rank; d++) {
        const ot_op_tile *t = ot_acc_cut(axes, n_axes, d);
        if (t) {
            p.pb[d] = t->pad_lo;
            p.pe[d] = t->pad_hi;
        }
        nothing &= p.pb[d] == 0 && p.pe[d] == 0;
    }
    if (nothing) {
        out->kind = OT_ADAPT_FORWARD;
        out->forward = 0;
        return OT_OK;
    }
    int64_t vec[2 * OT_RANK_MAX] = {0};
    for (uint32_t i = 0; i < p.n_listed; i++) {
        vec[i] = p.pb[p.listed[i]];
        vec[p.n_listed + i] = p.pe[p.listed[i]];
    }
    if (n->version < 11) return ot_adapt_set_ints(arena, out, "pads", vec, 2 * (size_t)p.n_listed);
    return ot_adapt_set_i64(arena, out, 1, vec, 2 * (size_t)p.n_listed);
}

const ot_access_ops ot_access_pad = {pad_axis, pad_window, pad_adapt};
