/* One output: where its rows lie, the halo of crops, and how few rows a crop may have. Every phase
 * of its rows against aligned crops is composed back to the inputs; what repeats after that repeats
 * exactly.
 */
#include "finding.h"

#define LEAST_SEEN 256 /* extents tried one by one */

static bool has_rows(const ot_graph *g)
{
    for (ot_id v = 0; v < g->n_values; v++)
        for (int32_t k = 0; k < g->values[v].rank; k++)
            if (g->values[v].dims[k] == 0 && g->values[v].producer != OT_NONE &&
                !g->nodes[g->values[v].producer].is_static)
                return false;
    return true;
}

/* Fewest rows of the reference, as many as it has modulo align, at which shapes fit. */
static ot_status find_runs(ot_tracing *w)
{
    const ot_together *t = w->t;
    const int64_t extent = t->extent[t->first], align = w->flow.align;
    int64_t at = (extent - 1) % align + 1;
    for (int tries = 0; at < extent; tries++) {
        ot_model *m;
        ot_id node;
        const char *why;
        ot_geo_set_extents(w->f, t, at - extent);
        OT_TRY(ot_geo_model_at(w->f, &m, &node, &why));
        const bool runs = m && has_rows(m->graph);
        ot_model_free(m);
        if (runs) break;
        at += tries < LEAST_SEEN ? align : (at / align + 1) * align;
    }
    w->runs = ot_min(at, extent);
    return OT_OK;
}

/* Fewest rows with which what `y` reads at both borders is right. Requires need of one row of y. */
static ot_status find_least(ot_tracing *w, ot_id y, int64_t *least)
{
    const ot_graph *g = w->s.g;
    const ot_flow *f = &w->flow;
    bool *above = OT_NEW_N(w->a, bool, g->n_values + 1u);
    ot_win crop;
    if (!above) return ot_fail_nomem(w->f->diag);
    ot_flow_back(f, y, (ot_win){0, 1}, w->need, &crop);
    for (ot_id v = 0; v < g->n_values; v++) above[v] = w->need[2 * v] < w->need[2 * v + 1];
    *least = w->runs;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_id id = g->order[k];
        const ot_node *n = &g->nodes[id];
        for (uint32_t j = 0; w->map[id] && j < n->n_in; j++) {
            const ot_row_map *m = &w->map[id][j];
            if (m->p == 0 || !above[n->out[w->s.lead[id]]]) continue;
            const ot_id v = n->in[j];
            const int64_t rows = g->values[v].dims[w->s.axis[v]];
            if (m->p != m->q) /* a Resize of one row is no ordinary one everywhere */
                *least = ot_max(*least, ot_ceil_div(2 * f->den[v], f->num[v]));
            if (m->begin > 0) {
                ot_flow_back(f, v, (ot_win){m->begin - 1, m->begin}, w->need, &crop);
                *least = ot_max(*least, crop.hi);
            }
            if (m->end > 0) {
                ot_flow_back(f, v, (ot_win){rows - m->end, rows - m->end + 1}, w->need, &crop);
                *least = ot_max(*least, f->extent - crop.lo);
            }
        }
    }
    return OT_OK;
}

/* Where rows of the output lie: over their own rows of the reference where none is lost and those
 * are read, else in the middle of what is read. */
static int64_t find_offset(ot_tracing *w, ot_id y, int64_t rows)
{
    const int64_t num = w->flow.num[y], den = w->flow.den[y];
    const ot_id reference = w->f->at.input[w->t->first];
    const int64_t made = w->s.g->values[y].dims[w->s.axis[y]],
                  lost = w->flow.extent * num - made * den;
    bool own = lost < ot_max(num, den) && lost > -ot_max(num, den);
    int64_t sum = 0;
    for (int64_t a = 0; a < rows; a++) {
        ot_win crop;
        ot_flow_back(&w->flow, y, (ot_win){a, a + 1}, w->need, &crop);
        const ot_win r = ot_flow_read(w->need, reference);
        const int64_t at = ot_floor_div(a * den, num);
        own &= r.lo <= at && at < r.hi;
        sum += (r.lo + r.hi) * num - (2 * a + 1) * den;
    }
    return own ? 0 : -(sum / (2 * num * rows));
}

/* Crops begin at rows that are aligned: a halo is no larger than what brings each row's crop to one
 * that begins, or ends, far enough out. */
static ot_status find_reach(ot_tracing *w, ot_id y, ot_reach *r)
{
    const int64_t num = w->flow.num[y], den = w->flow.den[y];
    const int64_t align = w->flow.align, extent = w->flow.extent, rows = align * num / den;
    int64_t whole = 1; /* rows of the reference that are a row of every input */
    for (uint32_t k = 0; k < w->f->at.n; k++)
        if (w->t->extent[k] > 0) whole = ot_geo_lcm(whole, w->flow.den[w->f->at.input[k]]);
    *r = (ot_reach){
        .known = true, .num = num, .den = den, .offset = find_offset(w, y, rows) / whole * whole};
    for (int64_t a = 0; a < rows; a++) {
        ot_win crop;
        ot_flow_back(&w->flow, y, (ot_win){a, a + 1}, w->need, &crop);
        /* the last row at which a crop may begin and the first at which it may end */
        const int64_t from = ot_floor_div(crop.lo, align) * align,
                      to = extent - ot_floor_div(extent - crop.hi, align) * align;
        r->halo_lo = ot_max(r->halo_lo,
                            ot_floor_div(a * den, num) - r->offset - from - (align - 1));
        r->halo_hi = ot_max(r->halo_hi,
                            to - (align - 1) - (ot_ceil_div((a + 1) * den, num) - r->offset));
    }
    r->halo_lo = ot_ceil_div(r->halo_lo, whole) * whole;
    r->halo_hi = ot_ceil_div(r->halo_hi, whole) * whole;
    return find_least(w, y, &r->least);
}

static int64_t field_of(ot_tracing *w, ot_id y, ot_id input)
{
    const int64_t rows = w->flow.align * w->flow.num[y] / w->flow.den[y];
    int64_t most = 0;
    for (int64_t a = 0; a < rows; a++) {
        ot_win crop;
        ot_flow_back(&w->flow, y, (ot_win){a, a + 1}, w->need, &crop);
        const ot_win r = ot_flow_read(w->need, input);
        most = ot_max(most, r.hi - r.lo);
    }
    return most;
}

/* The same in rows of input k. */
ot_geometry_axis ot_geo_axis_of(ot_tracing *w, ot_id y, uint32_t k, const ot_reach *r)
{
    const ot_id x = w->f->at.input[k];
    const int64_t p = w->flow.num[x], q = w->flow.den[x];
    ot_geometry_axis a = {.axis = (uint32_t)w->s.axis[y],
                          .input_axis = (uint32_t)w->s.axis[x],
                          .align = w->flow.align * p / q,
                          .num = w->flow.num[y] * q,
                          .den = w->flow.den[y] * p,
                          .offset = r->offset * p / q,
                          .halo_lo = r->halo_lo * p / q,
                          .halo_hi = r->halo_hi * p / q,
                          .least = ot_ceil_div(r->least * p, q),
                          .receptive_field = field_of(w, y, x),
                          .any_extent = r->any_extent,
                          .extent = w->f->base->graph->values[x].dims[w->s.axis[x]],
                          .made = w->f->base->graph->values[y].dims[w->s.axis[y]]};
    ot_geo_reduce(&a.num, &a.den);
    return a;
}

/* What every output that no barrier comes before needs. */
ot_status ot_geo_reaches(ot_tracing *w, ot_reach *found)
{
    const ot_spread *s = &w->s;
    OT_TRY(find_runs(w));
    for (uint32_t o = 0; o < s->g->n_outputs; o++) {
        const ot_id y = s->g->outputs[o];
        if (s->axis[y] >= 0 && s->reads[y] && !s->behind[y] && w->flow.num[y] > 0)
            OT_TRY(find_reach(w, y, &found[o]));
    }
    return OT_OK;
}
