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
#include "access.h"

#define PAD_LIMIT ((int64_t)1 << 40)

typedef enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP } pad_mode;

typedef struct pad_info {
    pad_mode mode;
    uint32_t rank;
    int64_t pb[OT_RANK_MAX], pe[OT_RANK_MAX], in[OT_RANK_MAX]; /* [rank] */
    uint32_t n_listed;            /* axes that the pads vector speaks of */
    uint32_t listed[OT_RANK_MAX]; /* [n_listed] in the vector's order */
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

static bool read(const ot_graph *g, const ot_node *n, pad_info *p, const char **why)
{
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, 0);
    int64_t vec[2 * OT_RANK_MAX] = {0};
    *p = (pad_info){0};
    if (!x || !y || x->rank < 1 || x->rank > OT_RANK_MAX || x->rank != y->rank)
        return ot_acc_refuse(why, "Pad changes the rank");
    if (n->version < 2) return ot_acc_refuse(why, "this version of Pad is not supported");
    if (!read_mode(n, &p->mode)) return ot_acc_refuse(why, "the padding mode is not known");
    p->rank = (uint32_t)x->rank;
    if (!read_listed(g, n, p))
        return ot_acc_refuse(why, "the padded axes are not constant or not valid");
    size_t count = 0;
    if (n->version < 11) {
        const int64_t *a = ot_attr_ints(n, "pads", &count);
        if (a && count <= 2 * OT_RANK_MAX) memcpy(vec, a, count * sizeof *vec);
    } else {
        int64_t c = ot_acc_ints(g, n, 1, vec, 2 * OT_RANK_MAX);
        if (c < 0) return ot_acc_refuse(why, "the pads are not constant");
        count = (size_t)c;
    }
    if (count != 2 * (size_t)p->n_listed)
        return ot_acc_refuse(why, "the pads do not have two entries per axis");
    for (uint32_t i = 0; i < p->n_listed; i++) {
        p->pb[p->listed[i]] = vec[i];
        p->pe[p->listed[i]] = vec[p->n_listed + i];
    }
    for (uint32_t d = 0; d < p->rank; d++) {
        p->in[d] = x->dims[d];
        bool sane = p->pb[d] > -PAD_LIMIT && p->pb[d] < PAD_LIMIT && p->pe[d] > -PAD_LIMIT &&
                    p->pe[d] < PAD_LIMIT && x->dims[d] < PAD_LIMIT;
        if (!sane || y->dims[d] != x->dims[d] + p->pb[d] + p->pe[d])
            return ot_acc_refuse(why, "the output extent is not what the pads give");
    }
    return true;
}

static bool pad_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                     int8_t *in_axis, int8_t *out_axis, const char **why)
{
    (void)out_index;
    (void)out_axis;
    pad_info p;
    if (!read(g, n, &p, why)) return false;
    int64_t pb = p.pb[axis], pe = p.pe[axis], e = p.in[axis];
    bool crops = pb < 0 || pe < 0;
    if (pb != 0 || pe != 0) {
        if (p.mode == PAD_WRAP)
            return ot_acc_refuse(why, "wrap padding reads the other end of the tensor");
        if (crops && p.mode != PAD_CONSTANT)
            return ot_acc_refuse(why, "negative pads together with a border mode");
        if (p.mode == PAD_REFLECT && (pb >= e || pe >= e))
            return ot_acc_refuse(why, "reflect padding is not smaller than the tensor");
        if (e + ot_min(pb, 0) + ot_min(pe, 0) < 1)
            return ot_acc_refuse(why, "nothing of the tensor remains between the pads");
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
                       ot_op_tile *t, const char **why)
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

static ot_status pad_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                           uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    const char *why = NULL;
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
