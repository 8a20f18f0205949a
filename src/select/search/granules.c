/* Tiles that begin and end with granules of the DMA.
 *
 *   60 columns of floats, granules of 16          in tiles of 16
 *     |---- 20 ----|---- 20 ----|---- 20 ----|      |--- 16 ---|--- 16 ---|--- 16 ---|- 12 -|
 *      2 granules    3             2                  1          1          1          1
 *
 * A transfer moves whole granules: one that is cut is moved by both tiles. The cost model counts
 * half a granule a row, wherever it is cut, so the search does not see the difference; here they
 * are counted from the windows of all tiles.
 */
#include "search.h"

#include "tiling/forms.h"

/* Innermost axis of region value v that is cut; *d: by which dimension. -1: none. */
static int innermost(const ot_region *r, uint32_t v, uint32_t *d)
{
    int axis = -1;
    for (uint32_t k = 0; k < r->n_dims; k++)
        if (r->values[v].axis[k] > axis) axis = r->values[v].axis[k], *d = k;
    return axis;
}

/* Bytes of one step along `axis`; *rows: how many rows there are of it. false: the value's
 * elements have no fixed size. */
static bool measure(const ot_value *x, int axis, int64_t *step, double *rows)
{
    int64_t n = 1;
    *rows = 1;
    if (!ot_value_bytes(x, step) || *step == 0) return false;
    for (int a = 0; a <= axis; a++) n *= x->dims[a];
    for (int a = 0; a < axis; a++) *rows *= (double)x->dims[a];
    if (*step % n != 0) return false;
    *step /= n;
    return true;
}

int64_t ot_granule_steps(const ot_graph *g, const ot_region *r, uint32_t d, int64_t granule)
{
    const uint32_t sink = r->dims[d].sink;
    uint32_t by = OT_NONE;
    int64_t step;
    double rows;
    const int axis = sink == OT_NONE ? -1 : innermost(r, sink, &by);
    if (axis < 0 || by != d || !measure(&g->values[r->values[sink].value], axis, &step, &rows))
        return 0;
    /* Where rows begin inside of granules, no place is better than another. */
    if (step * r->dims[d].extent % granule != 0) return 0;
    return granule / ot_gcd(granule, step);
}

/* Bytes of the granules that w of a row touches, in rows of `extent` steps. */
static double touched(ot_win w, int64_t step, int64_t extent, int64_t granule)
{
    if (ot_win_empty(w)) return 0;
    /* at any place of a granule */
    if (step * extent % granule != 0) return (double)(ot_win_len(w) * step + granule);
    return (double)(ot_ceil_div(w.hi * step, granule) - w.lo * step / granule) * (double)granule;
}

/* Along dimension d, of value v: granules of the rows that it cuts, or how often the tiles take
 * each row of the others. */
static double along(const ot_graph *g, const ot_region *r, uint32_t d, uint32_t v,
                    const ot_tile_windows *tiles, int64_t granule)
{
    uint32_t by = OT_NONE;
    int64_t step;
    double rows, sum = 0;
    const ot_value *x = &g->values[r->values[v].value];
    const int axis = innermost(r, v, &by), own = r->values[v].axis[d];
    if (own < 0 || !measure(x, axis, &step, &rows)) return 1;
    for (uint32_t k = 0; k < r->dims[d].n_tiles; k++) {
        const ot_win w = v < r->n_inputs ? tiles[k].made[v] : tiles[k].piece[v];
        sum += by == d ? touched(w, step, x->dims[own], granule)
                       : (double)ot_win_len(w) / (double)x->dims[own];
    }
    return by == d ? sum * rows : sum;
}

ot_status ot_granules_moved(const ot_graph *g, const ot_region *r, int64_t granule, ot_arena *a,
                            double *out)
{
    double *bytes = OT_NEW_N(a, double, r->n_values + 1u);
    *out = 0;
    if (!bytes) return ot_fail_nomem(g->model->diag);
    for (uint32_t v = 0; v < r->n_values; v++)
        bytes[v] = v < r->n_inputs || r->values[v].is_output ? 1 : 0;
    for (uint32_t d = 0; d < r->n_dims; d++) {
        ot_tile_windows *tiles = OT_NEW_N(a, ot_tile_windows, r->dims[d].n_tiles + 1u);
        ot_why why;
        if (!tiles) return ot_fail_nomem(g->model->diag);
        for (uint32_t k = 0; k < r->dims[d].n_tiles; k++) {
            OT_TRY(ot_tile_windows_new(g, r, a, &tiles[k]));
            /* no tiles, nothing to compare */
            if (!ot_tile_windows_get(g, r, d, k, &tiles[k], &why)) return OT_OK;
        }
        for (uint32_t v = 0; v < r->n_values; v++) bytes[v] *= along(g, r, d, v, tiles, granule);
    }
    for (uint32_t v = 0; v < r->n_values; v++) {
        uint32_t d;
        if (innermost(r, v, &d) >= 0) *out += bytes[v];
    }
    return OT_OK;
}
