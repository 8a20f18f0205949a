/* Which tile extents to try on an axis, and which axes together. Counts grow geometrically; near
 * each, an extent that divides the axis is preferred, because equal tiles allow the zero-copy
 * form and need no peeled tail. */
#include "walk.h"

#define MANY_NODES 1500 /* beyond, one axis at a time */

/* A divisor of extent within a third of want, the nearest; else want. */
static int64_t nearest_divisor(int64_t extent, int64_t want)
{
    int64_t lo = ot_max(1, want - want / 4), hi = want + want / 3, best = 0;
    if (hi - lo > 4096) return want;
    for (int64_t t = lo; t <= hi; t++) {
        if (extent % t != 0) continue;
        if (best == 0 || llabs(t - want) < llabs(best - want)) best = t;
    }
    return best ? best : want;
}

/* Few tail elements waste a tile: 4097 = 16 x 256 + 1 becomes 16 x 257. */
static int64_t balanced(int64_t extent, int64_t n) { return ot_ceil_div(extent, n); }

/* The multiple of unit that is next to want. */
static int64_t nearest_multiple(int64_t want, int64_t unit)
{
    return ot_max(unit, (want + unit / 2) / unit * unit);
}

/* Tiles that are alike begin at multiples of the strides in their region, and those are powers
 * of two as a rule. */
static int64_t power_below(int64_t x)
{
    int64_t p = 1;
    while (p < 32 && p * 2 <= x) p *= 2;
    return p;
}

uint32_t ot_candidate_dynamic_tiles(int64_t extent, uint32_t max_counts, int64_t *tiles)
{
    static const int64_t counts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128};
    uint32_t n = 0;
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        const int64_t want = ot_ceil_div(extent, counts[k]);
        const int64_t fine = nearest_multiple(want, power_below(want / 5)),
                      coarse = nearest_multiple(want, power_below(want));
        const int64_t both[2] = {ot_max(fine, coarse), ot_min(fine, coarse)};
        for (int i = 0; i < 2 && n < max_counts; i++) {
            const bool wanted = both[i] == fine || (want >= 24 && want <= 100);
            if (wanted && ot_ceil_div(extent, both[i]) >= 2 && (n == 0 || both[i] < tiles[n - 1]))
                tiles[n++] = both[i];
        }
    }
    return n;
}

uint32_t ot_candidate_tiles(int64_t extent, uint32_t max_counts, bool spread, int64_t *tiles)
{
    static const int64_t dense[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 0};
    static const int64_t sparse[] = {2, 4, 8, 16, 32, 64, 128, 0};
    const int64_t *counts = spread ? sparse : dense;
    uint32_t n = 0;
    for (size_t k = 0; counts[k] && n < max_counts; k++) {
        if (counts[k] > extent) break;
        int64_t t = nearest_divisor(extent, balanced(extent, counts[k]));
        if (ot_ceil_div(extent, t) < 2) continue;
        if (n > 0 && tiles[n - 1] == t) continue;
        tiles[n++] = t;
    }
    if (extent >= 2 && extent <= 64 && n < max_counts && (n == 0 || tiles[n - 1] != 1))
        tiles[n++] = 1;
    return n;
}

/* Axes that tiles of the node may be cut along, in `ok`. */
static uint32_t output_axes(const ot_seq *s, ot_walk *w, const ot_node *n, uint32_t out, int8_t *ok)
{
    const ot_value *x = &s->g->values[n->out[out]];
    ot_why why;
    uint32_t n_ok = 0;
    for (int32_t a = 0; a < x->rank; a++)
        if (x->dims[a] >= 2 &&
            ot_access_axis(s->g, n, out, (uint32_t)a, w->in_axis[0], w->out_axis[0], &why))
            ok[n_ok++] = (int8_t)a;
    return n_ok;
}

/* The same on what a reduction in parts reduces: the axes that it reduces, and those that it
 * hands on. */
static uint32_t reduced_axes(const ot_seq *s, ot_walk *w, const ot_node *n, const bool *reduced,
                             int8_t *ok)
{
    const ot_value *x = &s->g->values[n->in[0]], *y = &s->g->values[n->out[0]];
    ot_why why;
    uint32_t n_ok = 0;
    for (int32_t a = 0; a < x->rank; a++) {
        bool follows = reduced[a];
        for (int32_t o = 0; o < y->rank && !follows; o++)
            follows = ot_access_axis(s->g, n, 0, (uint32_t)o, w->in_axis[0], w->out_axis[0],
                                     &why) &&
                      w->in_axis[0][0] == a;
        if (x->dims[a] >= 2 && follows) ok[n_ok++] = (int8_t)a;
    }
    return n_ok;
}

/* Take out the sets without a reduced axis: those cut the node's output. */
static uint32_t keep_reducing(const bool *reduced, int8_t (*sets)[OT_DIMS_MAX], uint32_t *dims,
                              uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n; k++) {
        bool any = false;
        for (uint32_t d = 0; d < dims[k]; d++) any |= reduced[sets[k][d]];
        if (!any) continue;
        memcpy(sets[kept], sets[k], sizeof *sets);
        dims[kept++] = dims[k];
    }
    return kept;
}

uint32_t ot_candidate_axes(const ot_seq *s, ot_walk *w, uint32_t end, uint32_t out,
                           int8_t (*sets)[OT_DIMS_MAX], uint32_t *dims)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[end]];
    int8_t ok[OT_RANK_MAX];
    bool reduced[OT_RANK_MAX] = {false};
    uint32_t n_ok, n_sets = 0;
    if (out == OT_SUM_SINK && ot_seq_sum(s, n, reduced) == OT_SUM_NONE) return 0;
    n_ok = out == OT_SUM_SINK ? reduced_axes(s, w, n, reduced, ok) : output_axes(s, w, n, out, ok);
    for (uint32_t k = 0; k < n_ok && n_sets < OT_AXIS_SETS_MAX; k++) {
        sets[n_sets][0] = ok[k];
        dims[n_sets++] = 1;
    }
    if (s->n > MANY_NODES || g->model->dynamic_dims)
        return out == OT_SUM_SINK ? keep_reducing(reduced, sets, dims, n_sets) : n_sets;
    /* Three dims: batch, H and W of images. */
    if (n_ok >= 3 && n_sets < OT_AXIS_SETS_MAX && ok[0] == 0 && ok[n_ok - 1] == ok[n_ok - 2] + 1) {
        sets[n_sets][0] = ok[0];
        sets[n_sets][1] = ok[n_ok - 2];
        sets[n_sets][2] = ok[n_ok - 1];
        dims[n_sets++] = 3;
    }
    /* Two dims: neighbours among the cuttable axes, the last pair (H, W) first. */
    for (uint32_t k = n_ok; k-- > 1 && n_sets < OT_AXIS_SETS_MAX;) {
        sets[n_sets][0] = ok[k - 1];
        sets[n_sets][1] = ok[k];
        dims[n_sets++] = 2;
    }
    return out == OT_SUM_SINK ? keep_reducing(reduced, sets, dims, n_sets) : n_sets;
}
