/* Constants that speak of extents, at another size: Reshape, Slice, Resize, Expand and Tile. See
 * other_size.h.
 *
 * Reshape. Input and output axes fall into groups of equal products, at the old size:
 *
 *   [1, 64, 32, 32] -> [1, 8, -1]  groups {1}->{1}, {64,32,32}->{8,-1}
 *                            A  X   64 is A = 8 * 8 before what moves, 32 x 32 is X: -1 holds A/8 *
 *                                   X whatever X is
 *
 * A group with an axis that moved is as it should be when its products agree at the new size,
 * too, and its numbers follow: one was computed of the size, or a 0 copies the axis, or -1 takes
 * all that moved, with constants before it that divide what comes before and constants behind it
 * that divide what comes behind.
 *
 * Slice. A bound is tied to the axis' begin (2) or its end (-2, or beyond it). Tied to both ends
 * it cuts margins; both bounds tied to one end leave a fixed number of elements, of which only a
 * single first or last one means the same at every size.
 */
#include "other_size.h"

#include <math.h>

/* ---- Reshape ---- */

/* A group: axes [i0, i1) of the input, [j0, j1) of the output. */
typedef struct group {
    int32_t i0, i1, j0, j1;
} group;

typedef struct reshape {
    ot_infer *c;
    ot_id x;
    const ot_was *in, *out;
    const ot_value *v;     /* the input now */
    const ot_shp *made;    /* the output now */
    const ot_size_list *t; /* its target */
    bool zero_copies;
} reshape;

static bool product(const int64_t *d, int32_t from, int32_t to, int64_t *out)
{
    *out = 1;
    for (int32_t k = from; k < to; k++)
        if (d[k] < 0 || !ot_mul_i64(*out, d[k], out)) return false;
    return true;
}

/* "32 x 32": extents [from, to) of dims. */
static const char *factors(const int64_t *dims, int32_t from, int32_t to, char *buf, size_t size)
{
    size_t at = 0;
    snprintf(buf, size, "1");
    for (int32_t k = from; k < to && at < size; k++) {
        int w = snprintf(buf + at, size - at, "%s%lld", k > from ? " x " : "", (long long)dims[k]);
        at += w < 0 ? 0 : (size_t)w;
    }
    return buf;
}

static ot_status refuse_group(const reshape *r, const group *g)
{
    char had[200], wants[200], has[200];
    return ot_size_refuse(
        r->c, "%s '%.200s' has the old size baked in: it makes %s of %s, which is %s now",
        r->t->what, r->t->name, factors(r->out->dims, g->j0, g->j1, wants, sizeof wants),
        factors(r->in->dims, g->i0, g->i1, had, sizeof had),
        factors(r->v->dims, g->i0, g->i1, has, sizeof has));
}

/* -1 at output axis j takes all axes of the group that moved. */
static bool absorbs(const reshape *r, const group *g, int32_t j)
{
    int32_t first = g->i1, last = g->i0;
    int64_t before, behind, want_before, want_behind;
    for (int32_t i = g->i0; i < g->i1; i++) {
        if (!ot_size_moved(r->c, r->x, i)) continue;
        if (first == g->i1) first = i;
        last = i;
    }
    return product(r->in->dims, g->i0, first, &before) &&
           product(r->in->dims, last + 1, g->i1, &behind) &&
           product(r->out->dims, g->j0, j, &want_before) &&
           product(r->out->dims, j + 1, g->j1, &want_behind) && want_before > 0 &&
           want_behind > 0 && before % want_before == 0 && behind % want_behind == 0;
}

/* A number of the target follows the axes that moved. */
static bool follows(const reshape *r, const group *g)
{
    for (int32_t j = g->j0; j < g->j1; j++) {
        int64_t t = 0;
        bool known = ot_size_item(r->t, (uint32_t)j, &t);
        if (!ot_size_fixed(r->t, (uint32_t)j)) return true;
        if (known && t == -1 && absorbs(r, g, j)) return true;
        if (known && t == 0 && r->zero_copies) return true;
    }
    return false;
}

static ot_status check_group(const reshape *r, const group *g)
{
    int64_t have, make;
    bool moved = false, done = r->made->rank == r->out->rank; /* else the shape rule failed */
    for (int32_t i = g->i0; i < g->i1; i++) moved |= ot_size_moved(r->c, r->x, i);
    bool agree = product(r->v->dims, g->i0, g->i1, &have) && done &&
                 product(r->made->d, g->j0, g->j1, &make) && have == make;
    if (done && !agree) return refuse_group(r, g);
    /* one axis, of as many elements as there are */
    if (!moved || (agree && g->j1 - g->j0 == 1)) return OT_OK;
    return follows(r, g) ? OT_OK : refuse_group(r, g);
}

ot_status ot_size_reshape(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_size_list t = ot_size_list_of(c, "shape", 1);
    if (x == NULL || !t.given || !ot_size_any_moved(c, c->n->in[0])) return OT_OK;
    reshape r = {c,
                 c->n->in[0],
                 &c->other->was[c->n->in[0]],
                 &c->other->was[c->n->out[0]],
                 x,
                 &c->out[0],
                 &t,
                 ot_attr_int(c->n, "allowzero", 0) == 0};
    if (r.in->rank != x->rank || r.out->rank < 0) return OT_OK; /* refused with its output */
    group g = {0};
    int64_t all_in, all_out;
    if (!product(r.in->dims, 0, r.in->rank, &all_in) ||
        !product(r.out->dims, 0, r.out->rank, &all_out) || all_in == 0)
        return OT_OK;
    while (g.i0 < r.in->rank || g.j0 < r.out->rank) {
        int64_t have = g.i0 < r.in->rank ? r.in->dims[g.i0] : 1,
                make = g.j0 < r.out->rank ? r.out->dims[g.j0] : 1;
        g.i1 = g.i0 < r.in->rank ? g.i0 + 1 : g.i0;
        g.j1 = g.j0 < r.out->rank ? g.j0 + 1 : g.j0;
        while (have != make) {
            if (have < make && g.i1 < r.in->rank)
                have *= r.in->dims[g.i1++];
            else if (have > make && g.j1 < r.out->rank)
                make *= r.out->dims[g.j1++];
            else
                return OT_OK;
        }
        OT_TRY(check_group(&r, &g));
        g.i0 = g.i1;
        g.j0 = g.j1;
    }
    return OT_OK;
}

/* ---- Slice ---- */

typedef struct bounds {
    int64_t start, end, step, was, now; /* was, now: extents of the axis */
    bool start_fixed, end_fixed;
} bounds;

/* cut off at one side is a quarter of the extent at the most: more may be a part of the old one */
#define MARGIN 4

/* A number beyond every extent, as exporters write "to the end". */
static bool beyond(int64_t v, const bounds *b) { return v > b->was && v >= b->now; }
static bool before(int64_t v, const bounds *b) { return v < -b->was && v <= -b->now; }

/* What a backward step takes: all of it, or what follows the size. */
static bool backward_ok(const bounds *b)
{
    bool from_last = b->start == -1 || beyond(b->start, b),
         to_first = before(b->end, b) || b->end == INT32_MAX || b->end == INT64_MAX;
    return (!b->start_fixed || from_last) && (!b->end_fixed || to_first);
}

/* Whether the elements mean the same at every extent. */
static bool forward_ok(const bounds *b)
{
    bool to_end = beyond(b->end, b), from_begin = before(b->start, b);
    bool start_at_end = b->start < 0 && !from_begin, end_at_end = b->end < 0 || to_end;
    if (b->end_fixed && !to_end && b->end >= b->was) return false; /* ends where the axis did */
    if (b->start_fixed && (b->start >= b->was || (b->start <= -b->was && !from_begin)))
        return false;
    if (!b->start_fixed && !b->end_fixed) return true;
    if (!b->start_fixed) return end_at_end;
    if (!b->end_fixed) return !start_at_end;
    if (!start_at_end && end_at_end) /* margins, and not a half of the old extent */
        return b->start <= b->was / MARGIN && (to_end || b->end >= -b->was / MARGIN);
    if (start_at_end) return b->start == -1 && to_end;
    return (from_begin || b->start == 0) && (b->end == 1 || b->end == 0);
}

static ot_status check_slice_axis(ot_infer *c, int32_t a, const bounds *b,
                                  const ot_size_list *starts, const ot_size_list *ends)
{
    if (b->step > 0 ? forward_ok(b) : backward_ok(b)) return OT_OK;
    const ot_size_list *l = b->end_fixed && b->end > 1 && !beyond(b->end, b) ? ends : starts;
    return ot_size_refuse(c,
                          "%s '%.200s' has the old size baked in: axis %d, from %lld to %lld, had "
                          "%lld elements and has %lld now",
                          l->what, l->name, a, (long long)b->start, (long long)b->end,
                          (long long)b->was, (long long)b->now);
}

ot_status ot_size_slice(ot_infer *c)
{
    bool inputs = c->n->version >= 10;
    ot_size_list starts = ot_size_list_of(c, inputs ? NULL : "starts", 1),
                 ends = ot_size_list_of(c, inputs ? NULL : "ends", 2);
    ot_size_list axes = ot_size_list_of(c, inputs ? NULL : "axes", 3),
                 steps = ot_size_list_of(c, NULL, inputs ? 4 : UINT32_MAX);
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_id id = c->n->in[0];
    if (x == NULL) return OT_OK;
    for (uint32_t e = 0; e < starts.n && e < ends.n; e++) {
        int64_t axis = e;
        bounds b = {.step = 1,
                    .start_fixed = ot_size_fixed(&starts, e),
                    .end_fixed = ot_size_fixed(&ends, e)};
        /* the shape does not follow: refused with the output */
        if (axes.given && !ot_size_item(&axes, e, &axis)) return OT_OK;
        if (axis < 0) axis += x->rank;
        if (!ot_size_moved(c, id, (int32_t)axis)) continue;
        if (steps.given && !ot_size_item(&steps, e, &b.step)) return OT_OK;
        if (!ot_size_item(&starts, e, &b.start) || !ot_size_item(&ends, e, &b.end)) return OT_OK;
        b.was = c->other->was[id].dims[axis];
        b.now = x->dims[axis];
        OT_TRY(check_slice_axis(c, (int32_t)axis, &b, &starts, &ends));
    }
    return OT_OK;
}

/* ---- Resize, Expand, Tile: extents and factors ---- */

/* The element, a constant, makes an extent of axis a of operand 0 that was an old extent, or
 * does not follow the axis. */
static ot_status check_extent(ot_infer *c, const ot_size_list *l, uint32_t e, int32_t a,
                              bool copies_one)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_id id = c->n->in[0];
    int64_t want;
    if (x == NULL || a < 0 || a >= x->rank || !ot_size_fixed(l, e) || !ot_size_item(l, e, &want))
        return OT_OK;
    if (copies_one && want == 1) return OT_OK;
    bool moved = ot_size_moved(c, id, a),
         was_old = x->dims[a] == 1 && want > 2 && ot_size_is_gone(c, want);
    if (!moved && !was_old) return OT_OK;
    if (moved)
        return ot_size_refuse(c,
                              "%s '%.200s' has the old size baked in: %lld for axis %d, which had "
                              "%lld elements and has %lld now",
                              l->what, l->name, (long long)want, a,
                              (long long)c->other->was[id].dims[a], (long long)x->dims[a]);
    return ot_size_refuse(c,
                          "%s '%.200s' has the old size baked in: %lld for axis %d, an extent that "
                          "moves with the size",
                          l->what, l->name, (long long)want, a);
}

/* A factor p/q of small numbers: meant as one, and not the quotient of two old extents. */
static bool plain_factor(double f)
{
    for (int q = 1; q <= 10; q++) {
        double p = f * q, r = q / f;
        if (p >= 0.5 && fabs(p - nearbyint(p)) <= 1e-6 * p) return true;
        if (r >= 0.5 && fabs(r - nearbyint(r)) <= 1e-6 * r) return true;
    }
    return false;
}

static ot_status check_factor(ot_infer *c, const char *name, double f, int32_t a)
{
    ot_id id = c->n->in[0];
    const ot_value *x = &c->g->values[id];
    if (ot_size_moved(c, id, a) && !plain_factor(f))
        return ot_size_refuse(c,
                              "scale %g for axis %d in '%.200s' is no plain factor: it may come of "
                              "the old extent, %lld",
                              f, a, name, (long long)c->other->was[id].dims[a]);
    if (a < x->rank && x->dims[a] == 1 && !ot_size_moved(c, id, a) && f > 2 && f < 1e9 &&
        f == nearbyint(f) && ot_size_is_gone(c, (int64_t)f))
        return ot_size_refuse(c,
                              "'%.200s' has the old size baked in: scale %g for axis %d, an extent "
                              "that moves with the size",
                              name, f, a);
    return OT_OK;
}

/* Scales are floats: constants, or computed at both sizes. */
static ot_status check_scales(ot_infer *c, uint32_t k, const int64_t *axes, size_t n_axes)
{
    size_t n_attr = 0;
    const ot_attr *attr = ot_attr_find(c->n, "scales");
    if (attr != NULL && attr->kind == OT_ATTR_FLOATS) n_attr = attr->n;
    for (size_t e = 0; e < n_attr && e < OT_RANK_MAX; e++)
        OT_TRY(check_factor(c, "scales", (double)attr->floats[e], (int32_t)e));
    const ot_known *now = n_attr ? NULL : ot_shape_known(c, k);
    if (now == NULL || now->f == NULL) return OT_OK;
    const ot_value *v = &c->g->values[c->n->in[k]];
    const ot_was *was = &c->other->was[c->n->in[k]];
    for (uint32_t e = 0; e < now->n && e < OT_RANK_MAX; e++) {
        int64_t a = axes != NULL && e < n_axes ? axes[e] : (int64_t)e;
        bool computed = !v->is_const && was->known_floats != NULL && was->known_n == now->n &&
                        was->known_floats[e] != now->f[e];
        if (!ot_known_has(now, e) || computed) continue;
        if (a < 0) a += c->g->values[c->n->in[0]].rank;
        OT_TRY(check_factor(c, v->name, now->f[e], (int32_t)a));
    }
    return OT_OK;
}

ot_status ot_size_resize(ot_infer *c)
{
    bool two = c->n->op == OT_OP_Resize && c->n->version >= 11;
    size_t n_axes = 0;
    const int64_t *axes = two && c->n->version >= 18 ? ot_attr_ints(c->n, "axes", &n_axes) : NULL;
    const ot_value *x = ot_shape_ranked(c, 0);
    if (x == NULL) return OT_OK;
    ot_size_list sizes = two ? ot_size_list_of(c, NULL, 3) : (ot_size_list){0};
    for (uint32_t e = 0; e < sizes.n; e++) {
        int64_t a = axes != NULL && e < n_axes ? axes[e] : (int64_t)e;
        if (a < 0) a += x->rank;
        if (a >= 0 && a < x->rank) OT_TRY(check_extent(c, &sizes, e, (int32_t)a, false));
    }
    return sizes.n > 0 ? OT_OK : check_scales(c, two ? 2 : 1, axes, n_axes);
}

/* Expand's target, aligned at the last axis, and Tile's repeats. */
ot_status ot_size_expand(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_size_list t = ot_size_list_of(c, NULL, 1);
    bool tile = c->n->op == OT_OP_Tile;
    if (x == NULL || !t.given) return OT_OK;
    for (uint32_t e = 0; e < t.n; e++) {
        int32_t a = tile ? (int32_t)e : x->rank - (int32_t)t.n + (int32_t)e;
        int64_t want;
        if (a < 0) { /* a new axis in front */
            if (ot_size_fixed(&t, e) && ot_size_item(&t, e, &want) && want > 2 &&
                ot_size_is_gone(c, want))
                return ot_size_refuse(c,
                                      "operand '%.200s' has the old size baked in: %lld, an extent "
                                      "that moves with the size",
                                      t.name, (long long)want);
            continue;
        }
        /* so many times whatever the extent is */
        bool factor = tile && a < x->rank && x->dims[a] != 1;
        if (!factor) OT_TRY(check_extent(c, &t, e, a, true));
    }
    return OT_OK;
}
