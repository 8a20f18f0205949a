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
