/* Windows of one tile, computed backwards from the pieces of the region's outputs.
 *
 * A region is cut along each of its dimensions independently, so everything here looks at one
 * dimension d. Tile k owns a disjoint piece of every region output; walking the nodes backwards,
 * each node asks the slice relation which windows of its inputs it needs, and a value read twice
 * needs the hull of both readers.
 *
 *      x  |--------------====need=====---|      need(x) = hull of what conv and add want
 *             \        /        |
 *      conv    |-------===made==-|        |     made contains need (alignment may widen it)
 *                       \     / |         |
 *      add              |=piece=|               disjoint pieces cover the output
 *
 * The clamped variant (for one loop body over all tiles) makes every window equally long: all cut
 * axes are multiples of one number U of units, each tile reads w units, shifted so that they stay
 * inside the tensor, and every operator keeps its original border. What a false border spoils lies
 * outside the exact windows, which the clamped ones contain, and is cropped at the end.
 */
#include "region.h"

static bool is_empty(ot_win a) { return a.lo >= a.hi; }

static ot_win hull(ot_win a, ot_win b)
{
    if (is_empty(a)) return b;
    if (is_empty(b)) return a;
    return (ot_win){ot_min(a.lo, b.lo), ot_max(a.hi, b.hi)};
}

/* Extent of the cut axis of region value v in dimension d (which must be cut there). */
static int64_t cut_extent(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t v)
{
    return g->values[r->values[v].value].dims[r->values[v].axis[d]];
}

ot_status ot_tile_windows_new(const ot_graph *g, const ot_region *r, ot_arena *a,
                              ot_tile_windows *w)
{
    size_t n_in = 0;
    for (uint32_t i = 0; i < r->n_nodes; i++) n_in += g->nodes[r->nodes[i].node].n_in;
    w->need = OT_NEW_N(a, ot_win, r->n_values);
    w->made = OT_NEW_N(a, ot_win, r->n_values);
    w->piece = OT_NEW_N(a, ot_win, r->n_values);
    /* One hidden entry at the end keeps the storage of all `in` arrays, so that the same windows
     * can be filled for one dimension after the other. */
    w->ops = OT_NEW_N(a, ot_op_tile, (size_t)r->n_nodes + 1);
    ot_win *in = OT_NEW_N(a, ot_win, n_in);
    if (!w->need || !w->made || !w->piece || !w->ops || !in)
        return ot_fail_nomem(g->model ? g->model->diag : NULL);
    w->ops[r->n_nodes].in = in;
    w->kept = NULL;
    return OT_OK;
}

/* floor(b * extent / of): where boundary b of the sink axis lies on another output's axis. */
static int64_t scale_boundary(int64_t b, int64_t extent, int64_t of)
{
    return (int64_t)((__int128)b * extent / of);
}

/* What tile k has of the sink axis. */
static ot_win share_of(const ot_dim *dim, uint32_t k)
{
    int64_t lo = ot_min((int64_t)k * dim->tile, dim->extent);
    return (ot_win){lo, k + 1 == dim->n_tiles ? dim->extent : ot_min(lo + dim->tile, dim->extent)};
}

/* What is made of another axis with that share of the sink axis. */
static ot_win piece_of(const ot_dim *dim, ot_win share, int64_t extent)
{
    return (ot_win){scale_boundary(share.lo, extent, dim->extent),
                    scale_boundary(share.hi, extent, dim->extent)};
}

/* A reader wants `win` of `axis` of region value v; axis OT_AX_WHOLE: all of it. */
static void want(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t v, int8_t axis,
                 ot_win win, ot_tile_windows *w)
{
    if (r->values[v].axis[d] == OT_AX_WHOLE)
        w->need[v] = (ot_win){0, 1}; /* a mark, cleared before we return */
    else if (r->values[v].axis[d] == axis)
        w->need[v] = hull(w->need[v], win);
    else /* this reader does not follow the cut */
        w->need[v] = (ot_win){0, cut_extent(g, r, d, v)};
}

/* The node is not cut in this dimension: when used at all it reads everything. */
static void whole_node(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t i,
                       ot_tile_windows *w)
{
    const ot_rnode *rn = &r->nodes[i];
    const ot_node *n = &g->nodes[rn->node];
    bool used = false;
    for (uint32_t o = 0; o < n->n_out; o++)
        used |= rn->out[o] != OT_NONE && !is_empty(w->need[rn->out[o]]);
    w->ops[i].need = (ot_win){0, used};
    for (uint32_t j = 0; used && j < n->n_in; j++)
        if (rn->in[j] != OT_NONE) want(g, r, d, rn->in[j], OT_AX_WHOLE, (ot_win){0, 0}, w);
}

static bool cut_node(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t i,
                     ot_tile_windows *w, ot_win *in, ot_why *why)
{
    const ot_rnode *rn = &r->nodes[i];
    const ot_node *n = &g->nodes[rn->node];
    ot_op_tile *t = &w->ops[i];
    t->in = in;
    for (uint32_t o = 0; o < n->n_out; o++) {
        uint32_t v = rn->out[o];
        if (v == OT_NONE || is_empty(w->need[v])) continue;
        if (r->values[v].axis[d] == OT_AX_WHOLE) {
            *why = OT_WHY_OUTPUT_BESIDE;
            return false;
        }
        t->need = hull(t->need, w->need[v]);
    }
    if (is_empty(t->need)) return true; /* nobody wants it in this tile */
    if (!ot_access_window(g, n, rn->lead_out[d], (uint32_t)rn->lead_axis[d], t, why)) return false;
    for (uint32_t o = 0; o < n->n_out; o++)
        if (rn->out[o] != OT_NONE && r->values[rn->out[o]].axis[d] != OT_AX_WHOLE)
            w->made[rn->out[o]] = t->made;
    for (uint32_t j = 0; j < n->n_in; j++) {
        int8_t axis = rn->in_axis[d][j];
        if (rn->in[j] == OT_NONE) continue;
        if (axis != OT_AX_WHOLE && is_empty(t->in[j])) continue; /* not read in this tile */
        want(g, r, d, rn->in[j], axis, axis == OT_AX_WHOLE ? (ot_win){0, 0} : t->in[j], w);
    }
    return true;
}

/* The node reduces what it reads along this dimension: the tile's share of that, so that every
 * element counts once. false: it has none. */
static bool sum_node(const ot_graph *g, const ot_region *r, uint32_t d, ot_win tile, uint32_t i,
                     ot_tile_windows *w, ot_win *in)
{
    const ot_rnode *rn = &r->nodes[i];
    const ot_node *n = &g->nodes[rn->node];
    int64_t extent = g->values[n->in[0]].dims[rn->in_axis[d][0]];
    ot_win share = piece_of(&r->dims[d], tile, extent);
    if (is_empty(share)) return false;
    in[0] = share;
    w->ops[i] = (ot_op_tile){.need = share, .made = share, .in = in};
    for (uint32_t j = 0; j < n->n_in; j++)
        if (rn->in[j] != OT_NONE) want(g, r, d, rn->in[j], rn->in_axis[d][j], in[j], w);
    return true;
}

bool ot_tile_windows_get(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t k,
                         ot_tile_windows *w, ot_why *why)
{
    const ot_win share = share_of(&r->dims[d], k);
    return ot_tile_windows_part(g, r, d, share.lo, share.hi, w, why);
}

bool ot_tile_windows_part(const ot_graph *g, const ot_region *r, uint32_t d, int64_t lo, int64_t hi,
                          ot_tile_windows *w, ot_why *why)
{
    ot_win *in = w->ops[r->n_nodes].in;
    size_t n_in = 0;
    for (uint32_t v = 0; v < r->n_values; v++) {
        const ot_rvalue *rv = &r->values[v];
        w->need[v] = w->made[v] = w->piece[v] = (ot_win){0, 0};
        if (!rv->is_output) continue;
        if (rv->axis[d] == OT_AX_WHOLE)
            w->need[v] = (ot_win){0, 1};
        else
            w->need[v] = w->piece[v] = piece_of(&r->dims[d], (ot_win){lo, hi},
                                                cut_extent(g, r, d, v));
    }
    for (uint32_t i = 0; i < r->n_nodes; i++) n_in += g->nodes[r->nodes[i].node].n_in;
    memset(in, 0, n_in * sizeof *in);
    for (uint32_t i = r->n_nodes; i-- > 0;) {
        n_in -= g->nodes[r->nodes[i].node].n_in;
        w->ops[i] = (ot_op_tile){0};
        if (r->nodes[i].lead_axis[d] == OT_AX_WHOLE)
            whole_node(g, r, d, i, w);
        else if (r->nodes[i].lead_axis[d] == OT_AX_SUM) {
            if (!sum_node(g, r, d, (ot_win){lo, hi}, i, w, in + n_in)) {
                *why = OT_WHY_NO_SHARE;
                return false;
            }
        } else if (!cut_node(g, r, d, i, w, in + n_in, why))
            return false;
    }
    for (uint32_t v = 0; v < r->n_values; v++) {
        if (r->values[v].axis[d] == OT_AX_WHOLE)
            w->need[v] = (ot_win){0, 0};
        else if (v < r->n_inputs)
            w->made[v] = w->need[v];
    }
    return true;
}

double ot_tile_share(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t i,
                     const ot_tile_windows *w)
{
    const ot_rnode *rn = &r->nodes[i];
    const ot_node *n = &g->nodes[rn->node];
    int64_t extent = 1;
    if (rn->lead_axis[d] == OT_AX_WHOLE) return 1;
    if (rn->lead_axis[d] == OT_AX_SUM)
        extent = g->values[n->in[0]].dims[rn->in_axis[d][0]];
    else
        extent = g->values[n->out[rn->lead_out[d]]].dims[rn->lead_axis[d]];
    return (double)(w->ops[i].made.hi - w->ops[i].made.lo) / (double)extent;
}

/* ---- clamped windows ---- */

/* How a node treats its cut axis. */
typedef struct probe {
    const ot_graph *g;
    const ot_node *n;
    uint32_t out;
    uint32_t axis;
    ot_win *in; /* [n_in] scratch */
} probe;

static bool ask(const probe *p, ot_win need, ot_op_tile *t, ot_why *why)
{
    *t = (ot_op_tile){.need = need, .in = p->in};
    memset(p->in, 0, p->n->n_in * sizeof *p->in);
    return ot_access_window(p->g, p->n, p->out, p->axis, t, why);
}

/* Every element of the axis depends on the same element of each cut input and on nothing else. */
static bool maps_to_itself(const probe *p, const int8_t *in_axis, int64_t extent)
{
    const int64_t at[3] = {0, extent / 2, extent - 1};
    ot_why why;
    ot_op_tile t;
    for (int i = 0; i < 3; i++) {
        if (!ask(p, (ot_win){at[i], at[i] + 1}, &t, &why) || t.pad_lo || t.pad_hi) return false;
        if (t.made.lo != at[i] || t.made.hi != at[i] + 1) return false;
        for (uint32_t j = 0; j < p->n->n_in; j++)
            if (in_axis[j] != OT_AX_WHOLE && (t.in[j].lo != at[i] || t.in[j].hi != at[i] + 1))
                return false;
    }
    return true;
}

#define PROBES_MAX 64 /* positions compared inside one unit */

/* Padding in the middle of the axis means that one element needs everything. (A transposed
 * convolution's "pads" are crops of what its inputs paint, and are never zero.) */
static bool is_inside(const probe *p, const ot_op_tile *t)
{
    return ot_op_access(p->n->op) == OT_ACC_CONVT || (!t->pad_lo && !t->pad_hi);
}

/* In the middle of the axis, moving the output by one unit moves every input by exactly one. */
static bool moves_by_units(const probe *p, const ot_region *r, uint32_t d, const ot_rnode *rn,
                           int64_t units, int64_t per_out)
{
    ot_why why;
    for (int64_t x = 0; x < ot_min(per_out, PROBES_MAX); x++) {
        ot_win first[OT_RANK_MAX], made;
        ot_op_tile t;
        int64_t at = units / 2 * per_out + x;
        if (p->n->n_in > OT_RANK_MAX) return false;
        if (!ask(p, (ot_win){at, at + 1}, &t, &why) || !is_inside(p, &t)) return false;
        memcpy(first, t.in, p->n->n_in * sizeof *first);
        made = t.made;
        int64_t pad_lo = t.pad_lo, pad_hi = t.pad_hi;
        if (!ask(p, (ot_win){at + per_out, at + per_out + 1}, &t, &why)) return false;
        if (t.pad_lo != pad_lo || t.pad_hi != pad_hi) return false;
        if (t.made.lo != made.lo + per_out || t.made.hi != made.hi + per_out) return false;
        for (uint32_t j = 0; j < p->n->n_in; j++) {
            if (rn->in_axis[d][j] == OT_AX_WHOLE || rn->in[j] == OT_NONE) continue;
            int64_t per_in = cut_extent(p->g, r, d, rn->in[j]) / units;
            if (t.in[j].lo != first[j].lo + per_in || t.in[j].hi != first[j].hi + per_in)
                return false;
        }
    }
    return true;
}

static int64_t spatial(const ot_node *n, const char *name, uint32_t axis)
{
    size_t count = 0;
    const int64_t *v = ot_attr_ints(n, name, &count);
    return v && axis >= 2 && axis - 2 < count ? v[axis - 2] : 1;
}

/* Output extent of a convolution or pool along `axis` with the border of `full`; -1: unknown. */
static int64_t extent_from(const ot_graph *g, const ot_node *n, uint32_t axis,
                           const ot_op_tile *full, int64_t in, int64_t in_full, int64_t out_full)
{
    uint32_t weight = ot_op_row_of(n->op)->weights;
    size_t count = 0;
    int64_t kernel = spatial(n, "kernel_shape", axis), stride = spatial(n, "strides", axis);
    if (!ot_attr_ints(n, "kernel_shape", &count)) {
        if (ot_op_access(n->op) == OT_ACC_POOL || n->n_in <= weight) return -1;
        const ot_value *wv = &g->values[n->in[weight]];
        if (!ot_value_is_static(wv) || (int32_t)axis >= wv->rank) return -1;
        kernel = wv->dims[axis];
    }
    kernel = (kernel - 1) * spatial(n, "dilations", axis) + 1;
    if (ot_op_access(n->op) == OT_ACC_CONVT) return out_full + (in - in_full) * stride;
    int64_t room = in + full->pad_lo + full->pad_hi - kernel;
    if (room < 0) return -1;
    if (!ot_attr_int(n, "ceil_mode", 0)) return room / stride + 1;
    int64_t out = ot_ceil_div(room, stride) + 1;
    /* A window that would start in the far border does not count. */
    return (out - 1) * stride >= in + full->pad_lo ? out - 1 : out;
}

/* Whether node i computes equal windows with its own border: `window` units in, `window` units out.
 */
static bool keeps_units(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t i,
                        const ot_clamp *c, ot_win *in, ot_why *why)
{
    const ot_rnode *rn = &r->nodes[i];
    const ot_node *n = &g->nodes[rn->node];
    uint32_t lead = rn->out[rn->lead_out[d]], axis = (uint32_t)rn->lead_axis[d];
    probe p = {g, n, rn->lead_out[d], axis, in};
    int64_t extent = cut_extent(g, r, d, lead), per_out = extent / c->units;
    for (uint32_t j = 0; j < n->n_in; j++)
        if (rn->in[j] != OT_NONE && rn->in_axis[d][j] != r->values[rn->in[j]].axis[d]) {
            *why = OT_WHY_CUT_AND_WHOLE;
            return false;
        }
    /* a Slice of the first rows maps elements to themselves, too, but its units are shorter than
     * its input's */
    bool alike = true;
    for (uint32_t j = 0; j < n->n_in; j++)
        if (rn->in[j] != OT_NONE && rn->in_axis[d][j] != OT_AX_WHOLE)
            alike &= cut_extent(g, r, d, rn->in[j]) == extent;
    if (alike && maps_to_itself(&p, rn->in_axis[d], extent)) return true;
    *why = OT_WHY_UNEQUAL_WINDOWS;
    ot_access_kind kind = ot_op_access(n->op);
    if (kind != OT_ACC_CONV && kind != OT_ACC_CONVT && kind != OT_ACC_POOL &&
        kind != OT_ACC_RESIZE && kind != OT_ACC_BLOCK && kind != OT_ACC_RESHAPE)
        return false;
    if (!moves_by_units(&p, r, d, rn, c->units, per_out)) return false;
    if (kind != OT_ACC_CONV && kind != OT_ACC_CONVT && kind != OT_ACC_POOL) return true;
    ot_op_tile full;
    if (axis < 2 || rn->in[0] == OT_NONE || !ask(&p, (ot_win){0, extent}, &full, why)) return false;
    int64_t in_full = cut_extent(g, r, d, rn->in[0]), per_in = in_full / c->units;
    return extent_from(g, n, axis, &full, in_full, in_full, extent) == extent &&
           extent_from(g, n, axis, &full, per_in * c->window, in_full, extent) ==
               per_out * c->window;
}

/* Smallest range of units that contains the exact windows in w. */
static ot_win units_needed(const ot_graph *g, const ot_region *r, uint32_t d, int64_t units,
                           const ot_tile_windows *w)
{
    ot_win u = {0, 0};
    for (uint32_t v = 0; v < r->n_values; v++) {
        if (r->values[v].axis[d] == OT_AX_WHOLE || is_empty(w->need[v])) continue;
        int64_t per = cut_extent(g, r, d, v) / units;
        u = hull(u, (ot_win){w->need[v].lo / per, ot_ceil_div(w->need[v].hi, per)});
    }
    return u;
}

bool ot_tile_clamp_plan(const ot_graph *g, const ot_region *r, uint32_t d, ot_tile_windows *w,
                        ot_clamp *c, ot_why *why)
{
    *c = (ot_clamp){0, 0};
    for (uint32_t v = 0; v < r->n_values; v++)
        if (r->values[v].axis[d] != OT_AX_WHOLE)
            c->units = ot_gcd(cut_extent(g, r, d, v), c->units);
    if (c->units < 4) {
        *why = OT_WHY_NO_COMMON_UNIT;
        return false;
    }
    for (uint32_t k = 0; k < r->dims[d].n_tiles; k++) {
        if (!ot_tile_windows_get(g, r, d, k, w, why)) return false;
        ot_win u = units_needed(g, r, d, c->units, w);
        c->window = ot_max(c->window, u.hi - u.lo);
        for (uint32_t i = 0; i < r->n_nodes; i++)
            if (is_empty(w->ops[i].need)) {
                *why = OT_WHY_NOT_IN_EVERY_TILE;
                return false;
            }
    }
    if (c->window >= c->units) {
        *why = OT_WHY_WINDOW_IS_ALL;
        return false;
    }
    for (uint32_t i = 0; i < r->n_nodes; i++)
        if (r->nodes[i].lead_axis[d] != OT_AX_WHOLE &&
            !keeps_units(g, r, d, i, c, w->ops[r->n_nodes].in, why))
            return false;
    return true;
}

bool ot_tile_clamp_fill(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t k,
                        const ot_clamp *c, ot_tile_windows *w, ot_why *why)
{
    if (!ot_tile_windows_get(g, r, d, k, w, why)) return false;
    int64_t start = units_needed(g, r, d, c->units, w).lo;
    start = ot_max(0, ot_min(start, c->units - c->window));
    for (uint32_t v = 0; v < r->n_values; v++) {
        if (r->values[v].axis[d] == OT_AX_WHOLE) continue;
        int64_t per = cut_extent(g, r, d, v) / c->units;
        w->made[v] = w->need[v] = (ot_win){start * per, (start + c->window) * per};
    }
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_rnode *rn = &r->nodes[i];
        const ot_node *n = &g->nodes[rn->node];
        ot_op_tile *t = &w->ops[i];
        if (rn->lead_axis[d] == OT_AX_WHOLE) continue;
        uint32_t lead = rn->out[rn->lead_out[d]];
        /* The border of the whole axis becomes the border of every window. */
        t->need = (ot_win){0, cut_extent(g, r, d, lead)};
        if (!ot_access_window(g, n, rn->lead_out[d], (uint32_t)rn->lead_axis[d], t, why))
            return false;
        t->need = t->made = w->made[lead];
        for (uint32_t j = 0; j < n->n_in; j++)
            if (rn->in_axis[d][j] != OT_AX_WHOLE && rn->in[j] != OT_NONE)
                t->in[j] = w->made[rn->in[j]];
    }
    return true;
}

bool ot_tile_windows_clamped(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t k,
                             ot_tile_windows *w, ot_why *why)
{
    ot_clamp c;
    return ot_tile_clamp_plan(g, r, d, w, &c, why) && ot_tile_clamp_fill(g, r, d, k, &c, w, why);
}
