/* From rows of a value back to rows of the inputs, over all paths: the hull of what each reader
 * needs, operator by operator, backwards. Windows are not cut at the borders: a row that would lie
 * outside says how far a crop must be from there, unless it ends with the input itself.
 */
#include "geometry_internal.h"

static ot_win back(const ot_row_map *m, ot_win rows)
{
    const int64_t t = ot_floor_div(rows.lo, m->p), u = ot_floor_div(rows.hi - 1, m->p);
    return (ot_win){m->q * t + m->lo[rows.lo - t * m->p], m->q * u + m->hi[rows.hi - 1 - u * m->p]};
}

static bool is_needed(const int64_t *need, ot_id v) { return need[2 * v] < need[2 * v + 1]; }

static void add(int64_t *need, ot_id v, ot_win rows)
{
    const bool first = !is_needed(need, v);
    if (first || rows.lo < need[2 * v]) need[2 * v] = rows.lo;
    if (first || rows.hi > need[2 * v + 1]) need[2 * v + 1] = rows.hi;
}

/* The rows of value v lie in a crop that begins at or before begin and ends at or behind end. */
static void bound(const ot_flow *f, ot_id v, const int64_t *need, ot_win *crop)
{
    const ot_value *x = &f->s->g->values[v];
    const int64_t extent = x->dims[f->s->axis[v]], num = f->num[v], den = f->den[v];
    crop->lo = ot_min(crop->lo, ot_floor_div(need[2 * v] * den, num));
    crop->hi = ot_max(crop->hi, f->extent - ot_floor_div((extent - need[2 * v + 1]) * den, num));
}

void ot_flow_back(const ot_flow *f, ot_id v, ot_win rows, int64_t *need, ot_win *crop)
{
    const ot_graph *g = f->s->g;
    memset(need, 0, 2 * (size_t)g->n_values * sizeof *need);
    *crop = (ot_win){INT64_MAX, INT64_MIN};
    add(need, v, rows);
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_id id = g->order[k];
        const ot_node *n = &g->nodes[id];
        if (f->s->lead[id] == OT_NONE || !f->map[id]) continue;
        for (uint32_t o = 0; o < n->n_out; o++) {
            const ot_id y = n->out[o];
            if (y == OT_NONE || f->s->axis[y] < 0 || !is_needed(need, y)) continue;
            for (uint32_t j = 0; j < n->n_in; j++) {
                if (f->map[id][j].p == 0) continue;
                add(need, n->in[j], back(&f->map[id][j], (ot_win){need[2 * y], need[2 * y + 1]}));
            }
        }
    }
    for (ot_id x = 0; x < g->n_values; x++)
        if (is_needed(need, x) && f->num[x] > 0) bound(f, x, need, crop);
}

ot_win ot_flow_read(const int64_t *need, ot_id input)
{
    return (ot_win){need[2 * input], need[2 * input + 1]};
}
