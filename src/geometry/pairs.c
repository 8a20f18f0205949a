/* What is told of each output beside each input that it depends on: an axis, or the nodes in the
 * way of it.
 */
#include "finding.h"

static ot_geometry_pair *pair_of(ot_finding *f, ot_id y, ot_id x)
{
    const ot_graph *g = f->base->graph;
    for (uint32_t k = 0; k < f->out->n_pairs; k++)
        if (f->out->pairs[k].output == g->values[y].name &&
            f->out->pairs[k].input == g->values[x].name)
            return &f->out->pairs[k];
    const ot_geometry_pair p = {.output = g->values[y].name,
                                .input = g->values[x].name,
                                .output_rank = (uint32_t)g->values[y].rank,
                                .input_rank = (uint32_t)g->values[x].rank};
    if (!OT_PUSH(f->out->arena, f->out->pairs, f->out->n_pairs, f->cap_pairs, p)) return NULL;
    return &f->out->pairs[f->out->n_pairs - 1];
}

/* Values that what input x holds goes into. */
static void mark_below(const ot_graph *g, ot_id x, bool *below)
{
    below[x] = true;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        bool any = false;
        if (ot_reads_extents(n)) continue;
        for (uint32_t j = 0; j < n->n_in; j++) any |= n->in[j] != OT_NONE && below[n->in[j]];
        for (uint32_t j = 0; j < n->n_captured; j++) any |= below[n->captured[j]];
        for (uint32_t o = 0; o < n->n_out && any; o++)
            if (n->out[o] != OT_NONE) below[n->out[o]] = true;
    }
}

/* Values that y is computed of. */
static void mark_above(const ot_graph *g, ot_id y, bool *above)
{
    above[y] = true;
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_node *n = &g->nodes[g->order[k]];
        bool any = false;
        for (uint32_t o = 0; o < n->n_out; o++) any |= n->out[o] != OT_NONE && above[n->out[o]];
        for (uint32_t j = 0; j < n->n_in && any; j++)
            if (n->in[j] != OT_NONE) above[n->in[j]] = true;
        for (uint32_t j = 0; j < n->n_captured && any; j++) above[n->captured[j]] = true;
    }
}

static bool is_between(const ot_node *n, const bool *below, const bool *above)
{
    bool from = false, to = false;
    for (uint32_t k = 0; k < n->n_in; k++) from |= n->in[k] != OT_NONE && below[n->in[k]];
    for (uint32_t k = 0; k < n->n_captured; k++) from |= below[n->captured[k]];
    for (uint32_t o = 0; o < n->n_out; o++) to |= n->out[o] != OT_NONE && above[n->out[o]];
    return from && to;
}

static bool add_barrier(ot_arena *a, ot_geometry_pair *p, ot_geometry_barrier b)
{
    ot_geometry_barrier *more = OT_NEW_N(a, ot_geometry_barrier, p->n_barriers + 1u);
    if (!more) return false;
    if (p->n_barriers) memcpy(more, p->barriers, p->n_barriers * sizeof *more);
    more[p->n_barriers++] = b;
    p->barriers = more;
    return true;
}

/* By output axis. */
static bool add_axis(ot_arena *a, ot_geometry_pair *p, ot_geometry_axis x)
{
    ot_geometry_axis *more = OT_NEW_N(a, ot_geometry_axis, p->n_axes + 1u);
    uint32_t at = 0;
    if (!more) return false;
    while (at < p->n_axes && p->axes[at].axis < x.axis) at++;
    for (uint32_t k = 0; k < p->n_axes; k++) more[k + (k >= at)] = p->axes[k];
    more[at] = x;
    p->axes = more;
    p->n_axes++;
    return true;
}

/* What output o of the graph says of input k. s: with the barriers. */
static ot_status tell_pair(ot_tracing *w, const ot_spread *s, uint32_t o, uint32_t k)
{
    const ot_graph *g = s->g;
    const ot_id y = g->outputs[o];
    const ot_id x = w->f->at.input[k];
    ot_arena *keep = w->f->out->arena;
    bool *below = OT_NEW_N(w->a, bool, g->n_values + 1u),
         *above = OT_NEW_N(w->a, bool, g->n_values + 1u);
    if (!below || !above) return ot_fail_nomem(w->f->diag);
    mark_below(g, x, below);
    if (!below[y]) return OT_OK;
    mark_above(g, y, above);
    ot_geometry_pair *p = pair_of(w->f, y, x);
    if (!p) return ot_fail_nomem(w->f->diag);
    if (w->found[o].known)
        return add_axis(keep, p, ot_geo_axis_of(w, y, k, &w->found[o])) ? OT_OK
                                                                        : ot_fail_nomem(w->f->diag);
    for (uint32_t j = 0; j < s->n_barriers; j++) {
        ot_geometry_barrier b = s->barriers[j];
        if (!is_between(&g->nodes[b.node], below, above)) continue;
        b.name = b.name[0] ? b.name : "";
        b.input_axis = (uint32_t)w->t->base.axis[x];
        if (!add_barrier(keep, p, b)) return ot_fail_nomem(w->f->diag);
    }
    return OT_OK;
}

ot_status ot_geo_tell(ot_tracing *w, const ot_spread *s)
{
    for (uint32_t o = 0; o < s->g->n_outputs; o++)
        for (uint32_t k = 0; k < w->f->at.n; k++)
            if (w->t->extent[k] > 0) OT_TRY(tell_pair(w, s, o, k));
    return OT_OK;
}
