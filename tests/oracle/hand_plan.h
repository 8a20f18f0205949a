/* A tiny planner for tests: the longest region that ends at one value and follows the slice
 * relation backwards.
 *
 * Shares no code with src/partition: one walk over the order from the end, no costs, no choices.
 * A node joins when every dimension of the tile space can be followed through it; when it
 * cannot, it and everything before it stay outside (so that the region is convex), and the
 * values it makes become region inputs.
 */
#ifndef HAND_PLAN_H
#define HAND_PLAN_H

#include "select/search/plan_search.h"
#include "tiling/forms.h"

#define HAND_UNSET (-2)

typedef struct hand {
    ot_graph *g;
    ot_arena *a;
    uint32_t n_dims;
    int8_t (*axis)[OT_DIMS_MAX];  /* [n_values] */
    bool *clash;                  /* [n_values] readers disagree on the axis */
    bool *blocked;                /* [n_values] must be made outside */
    bool *inside;                 /* [n_nodes] */
    int8_t *in_axis[OT_DIMS_MAX]; /* [n_in] of the node being looked at */
    uint32_t lead_out[OT_DIMS_MAX];
    int8_t lead_axis[OT_DIMS_MAX];
    ot_region *r;
} hand;

/* Whether what node n makes can be produced in the region: known axes, agreed on, and cut in
 * every dimension when read outside. wanted: some node of the region reads it. Nodes that
 * nothing in front of the region's end needs are no matter. */
static bool hand_outputs_fit(const hand *h, const ot_node *n, bool *wanted)
{
    bool fits = true, all = true;
    *wanted = false;
    for (uint32_t o = 0; o < n->n_out; o++) {
        ot_id v = n->out[o];
        if (v == OT_NONE) continue;
        const ot_value *x = &h->g->values[v];
        bool touched = h->axis[v][0] != HAND_UNSET, cut = true, outside = x->is_output;
        for (uint32_t d = 0; d < h->n_dims; d++) cut = cut && h->axis[v][d] >= 0;
        for (uint32_t u = 0; u < x->n_uses; u++)
            outside |= !h->inside[x->uses[u]] && !h->g->nodes[x->uses[u]].is_static;
        if (h->blocked[v] || (touched && (h->clash[v] || (outside && !cut)))) fits = false;
        all = all && (touched || (!x->n_uses && !x->is_output));
        *wanted |= touched;
    }
    return fits && (all || !*wanted); /* kept simple: all outputs follow, or none */
}

static bool hand_follow(hand *h, const ot_node *n, ot_why *why)
{
    bool any = false;
    for (uint32_t d = 0; d < h->n_dims; d++) {
        int8_t out_axis[64];
        h->lead_axis[d] = OT_AX_WHOLE;
        h->lead_out[d] = 0;
        h->in_axis[d] = OT_NEW_N(h->a, int8_t, n->n_in + 1u);
        for (uint32_t i = 0; i < n->n_in; i++) h->in_axis[d][i] = OT_AX_WHOLE;
        for (uint32_t o = 0; o < n->n_out && h->lead_axis[d] < 0; o++)
            if (n->out[o] != OT_NONE && h->axis[n->out[o]][d] >= 0) {
                h->lead_out[d] = o;
                h->lead_axis[d] = h->axis[n->out[o]][d];
            }
        if (h->lead_axis[d] < 0) continue;
        any = true;
        if (!ot_access_axis(h->g, n, h->lead_out[d], (uint32_t)h->lead_axis[d], h->in_axis[d],
                            out_axis, why))
            return false;
        for (uint32_t o = 0; o < n->n_out; o++)
            if (n->out[o] != OT_NONE && h->axis[n->out[o]][d] != HAND_UNSET &&
                h->axis[n->out[o]][d] != out_axis[o])
                return false;
    }
    return any;
}

static void hand_mark_inputs(hand *h, const ot_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        ot_id v = n->in[i];
        if (v == OT_NONE) continue;
        for (uint32_t d = 0; d < h->n_dims; d++) {
            int8_t axis = h->in_axis[d][i];
            if (h->axis[v][d] == HAND_UNSET)
                h->axis[v][d] = axis;
            else if (h->axis[v][d] != axis) {
                h->clash[v] = true;
                h->axis[v][d] = OT_AX_WHOLE;
            }
        }
    }
}

static uint32_t hand_number(hand *h, uint32_t *index, ot_id v, uint32_t node)
{
    if (index[v] != OT_NONE) return index[v];
    ot_rvalue *x = &h->r->values[h->r->n_values];
    *x = (ot_rvalue){.value = v, .node = node};
    for (uint32_t d = 0; d < OT_DIMS_MAX; d++)
        x->axis[d] = d < h->n_dims && h->axis[v][d] >= 0 ? h->axis[v][d] : OT_AX_WHOLE;
    if (!ot_value_bytes(&h->g->values[v], &x->bytes)) x->bytes = 0;
    if (node != OT_NONE) {
        const ot_value *y = &h->g->values[v];
        x->is_output = y->is_output;
        for (uint32_t u = 0; u < y->n_uses; u++)
            x->is_output |= !h->inside[y->uses[u]] && !h->g->nodes[y->uses[u]].is_static;
    }
    return index[v] = h->r->n_values++;
}

static bool hand_takes_part(const hand *h, ot_id v)
{
    if (!h->g->values[v].is_const && !h->g->values[v].known) return true;
    for (uint32_t d = 0; d < h->n_dims; d++)
        if (h->axis[v][d] >= 0) return true;
    return false;
}

/* Region values: inputs in the order they are read, then what the nodes make. */
static void hand_number_values(hand *h, uint32_t *index)
{
    const ot_graph *g = h->g;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t k = 0; k < g->n_order; k++) {
            const ot_node *n = &g->nodes[g->order[k]];
            if (!h->inside[g->order[k]]) continue;
            for (uint32_t i = 0; i < n->n_in && pass == 0; i++) {
                ot_id v = n->in[i];
                bool made = v != OT_NONE && g->values[v].producer != OT_NONE &&
                            h->inside[g->values[v].producer];
                if (v != OT_NONE && !made && hand_takes_part(h, v))
                    hand_number(h, index, v, OT_NONE);
            }
            for (uint32_t r = 0; r < h->r->n_nodes && pass == 1; r++)
                for (uint32_t o = 0; o < n->n_out && h->r->nodes[r].node == g->order[k]; o++)
                    if (n->out[o] != OT_NONE && h->axis[n->out[o]][0] != HAND_UNSET)
                        hand_number(h, index, n->out[o], r);
        }
        if (pass == 0) h->r->n_inputs = h->r->n_values;
    }
}

/* Fill *r with the region that ends at value `sink`, cut along axes[d] into tiles[d] tiles, and
 * reads `from`, where that is not OT_NONE. Returns the number of nodes (0: not even the producer
 * can be cut; *why says so). Everything lives in `a`. Requires ORDER, USES, SHAPES. */
static uint32_t hand_plan_from(ot_graph *g, ot_id from, ot_id sink, uint32_t n_dims,
                               const uint32_t *axes, const uint32_t *tiles, ot_form form,
                               ot_arena *a, ot_region *r, ot_why *why)
{
    hand h = {.g = g, .a = a, .n_dims = n_dims, .r = r};
    *why = OT_WHY_NO_INPUT_VARIES; /* the value has no producer */
    *r = (ot_region){.form = form, .n_dims = n_dims};
    h.axis = ot_alloc_n(a, g->n_values + 1u, sizeof *h.axis);
    h.clash = OT_NEW_N(a, bool, g->n_values + 1u);
    h.blocked = OT_NEW_N(a, bool, g->n_values + 1u);
    h.inside = OT_NEW_N(a, bool, g->n_nodes + 1u);
    r->nodes = OT_NEW_N(a, ot_rnode, g->n_nodes + 1u);
    uint32_t *index = OT_NEW_N(a, uint32_t, g->n_values + 1u), ends = 0;
    for (ot_id v = 0; v < g->n_values; v++) {
        index[v] = OT_NONE;
        for (uint32_t d = 0; d < OT_DIMS_MAX; d++)
            h.axis[v][d] = v == sink && d < n_dims ? (int8_t)axes[d] : HAND_UNSET;
    }
    if (from != OT_NONE) h.blocked[from] = true;
    for (uint32_t k = g->n_order; k-- > 0;) {
        ot_node *n = &g->nodes[g->order[k]];
        bool wanted = false;
        if (n->is_static) continue;
        bool fits = hand_outputs_fit(&h, n, &wanted);
        if (fits && !wanted) continue;
        if (fits && hand_follow(&h, n, why)) {
            h.inside[g->order[k]] = true;
            ot_rnode *rn = &r->nodes[r->n_nodes++];
            rn->node = g->order[k];
            for (uint32_t d = 0; d < n_dims; d++) {
                rn->lead_out[d] = h.lead_out[d];
                rn->lead_axis[d] = h.lead_axis[d];
                rn->in_axis[d] = h.lead_axis[d] < 0 ? NULL : h.in_axis[d];
            }
            hand_mark_inputs(&h, n);
            ends += n->n_in + n->n_out;
        } else {
            for (uint32_t i = 0; i < n->n_in; i++)
                if (n->in[i] != OT_NONE) h.blocked[n->in[i]] = true;
        }
    }
    for (uint32_t i = 0; i < r->n_nodes / 2; i++) { /* topological order */
        ot_rnode t = r->nodes[i];
        r->nodes[i] = r->nodes[r->n_nodes - 1 - i];
        r->nodes[r->n_nodes - 1 - i] = t;
    }
    r->values = OT_NEW_N(a, ot_rvalue, ends + 1u);
    hand_number_values(&h, index);
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_node *n = &g->nodes[r->nodes[i].node];
        uint32_t *in = OT_NEW_N(a, uint32_t, n->n_in + 1u),
                 *out = OT_NEW_N(a, uint32_t, n->n_out + 1u);
        for (uint32_t j = 0; j < n->n_in; j++)
            in[j] = n->in[j] == OT_NONE ? OT_NONE : index[n->in[j]];
        for (uint32_t o = 0; o < n->n_out; o++)
            out[o] = n->out[o] == OT_NONE ? OT_NONE : index[n->out[o]];
        r->nodes[i].in = in;
        r->nodes[i].out = out;
    }
    for (uint32_t d = 0; d < n_dims && r->n_nodes; d++) {
        int64_t extent = g->values[sink].dims[axes[d]], tile = ot_ceil_div(extent, tiles[d]);
        r->dims[d] = (ot_dim){.n_tiles = (uint32_t)ot_ceil_div(extent, tile),
                              .extent = extent,
                              .tile = tile,
                              .sink = index[sink]};
    }
    return r->n_nodes;
}

/* The longest such region. */
static inline uint32_t hand_plan(ot_graph *g, ot_id sink, uint32_t n_dims, const uint32_t *axes,
                                 const uint32_t *tiles, ot_form form, ot_arena *a, ot_region *r,
                                 ot_why *why)
{
    return hand_plan_from(g, OT_NONE, sink, n_dims, axes, tiles, form, a, r, why);
}

#endif
