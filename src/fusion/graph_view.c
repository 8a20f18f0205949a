/* Tables of a plain graph, and the recogniser's view of them. */
#include "graph_view.h"

/* ---- the view ---- */

static const ot_node *node_at(const void *of, uint32_t place)
{
    const ot_node_list *l = of;
    const ot_node *n = l->node[place];
    return l->taken[place] || !n || n->n_captured > 0 ? NULL : n;
}

static const ot_id *operands(const void *of, uint32_t place, uint32_t *n)
{
    const ot_node *node = ((const ot_node_list *)of)->node[place];
    *n = node->n_in;
    return node->in;
}

static const uint32_t *readers(const void *of, ot_id v, uint32_t *n)
{
    const ot_node_list *l = of;
    *n = ot_list_readers(l, v);
    return l->readers + l->first[v];
}

static uint32_t maker(const void *of, ot_id v) { return ((const ot_node_list *)of)->maker[v]; }

static bool origin(const void *of, ot_id v, ot_group_origin *o)
{
    const ot_node_list *l = of;
    const ot_value *x = &l->g->values[v];
    if (!l->shows_origins || l->maker[v] != OT_NONE || x->producer == OT_NONE) return false;
    *o = (ot_group_origin){l->g, &l->g->nodes[x->producer], OT_NONE};
    return true;
}

static bool is_kept(const void *of, ot_id v) { return ((const ot_node_list *)of)->kept[v]; }
static bool is_const(const void *of, ot_id v) { return ((const ot_node_list *)of)->constant[v]; }

static bool shape(const void *of, ot_id v, ot_group_shape *out)
{
    *out = ((const ot_node_list *)of)->shape[v];
    return out->rank != OT_NONE;
}

static bool has_more_outputs(const void *of, uint32_t place)
{
    const ot_node_list *l = of;
    const ot_node *n = l->node[place];
    for (uint32_t k = 1; k < n->n_out; k++)
        if (n->out[k] != OT_NONE && !l->unwanted[n->out[k]]) return true;
    return false;
}

ot_group_view ot_node_list_view(const ot_node_list *l)
{
    return (ot_group_view){l,     l->g,   l->n,    node_at,  operands, readers,
                           maker, origin, is_kept, is_const, shape,    has_more_outputs};
}

/* ---- the tables ---- */

static uint32_t n_operands(const ot_node *n) { return n->n_in + n->n_captured; }
static ot_id operand(const ot_node *n, uint32_t k)
{
    return k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
}

/* Counted, then filled in, each node once. */
static bool list_readers(ot_node_list *l, ot_arena *a)
{
    const uint32_t n_values = l->g->n_values;
    uint32_t *seen = OT_NEW_N(a, uint32_t, n_values + 1u),
             *fill = OT_NEW_N(a, uint32_t, n_values + 2u);
    if (!seen || !fill) return false;
    for (int pass = 0; pass < 2; pass++) {
        memset(seen, 0, n_values * sizeof *seen);
        for (uint32_t p = 0; p < l->n; p++)
            for (uint32_t k = 0; l->node[p] && k < n_operands(l->node[p]); k++) {
                const ot_id v = operand(l->node[p], k);
                if (v == OT_NONE || seen[v] == p + 1) continue;
                seen[v] = p + 1;
                if (pass == 0) l->first[v + 1]++;
                if (pass == 1) l->readers[fill[v]++] = p;
            }
        if (pass == 1) break;
        for (ot_id v = 0; v < n_values; v++) l->first[v + 1] += l->first[v];
        memcpy(fill, l->first, (n_values + 1u) * sizeof *fill);
        if (!(l->readers = OT_NEW_N(a, uint32_t, l->first[n_values] + 1u))) return false;
    }
    return true;
}

static void describe(ot_node_list *l, ot_id v)
{
    const ot_value *x = &l->g->values[v];
    const bool known = x->is_tensor && !x->is_sequence && ot_value_is_static(x) &&
                       x->rank <= OT_GROUP_RANK;
    l->maker[v] = OT_NONE;
    l->kept[v] = x->is_output;
    l->constant[v] = x->init || x->is_const;
    l->shape[v] = known ? (ot_group_shape){x->dtype, (uint32_t)x->rank, x->dims}
                        : (ot_group_shape){.rank = OT_NONE};
}

ot_status ot_node_list_fill(ot_node_list *l, ot_arena *a)
{
    const uint32_t n_values = l->g->n_values;
    l->maker = OT_NEW_N(a, uint32_t, n_values + 1u);
    l->first = OT_NEW_N(a, uint32_t, n_values + 2u);
    l->taken = OT_NEW_N(a, bool, l->n + 1u);
    l->kept = OT_NEW_N(a, bool, n_values + 1u);
    l->constant = OT_NEW_N(a, bool, n_values + 1u);
    l->unwanted = OT_NEW_N(a, bool, n_values + 1u);
    l->shape = OT_NEW_N(a, ot_group_shape, n_values + 1u);
    if (!l->maker || !l->first || !l->taken || !l->kept || !l->constant || !l->unwanted ||
        !l->shape)
        return OT_E_NOMEM;
    for (ot_id v = 0; v < n_values; v++) describe(l, v);
    for (uint32_t p = 0; p < l->n; p++) {
        const ot_node *n = l->node[p];
        for (uint32_t k = 0; n && k < n->n_out; k++)
            if (n->out[k] != OT_NONE) l->maker[n->out[k]] = p;
        for (uint32_t k = 0; n && k < n->n_captured; k++)
            if (n->captured[k] != OT_NONE) l->kept[n->captured[k]] = true;
    }
    return list_readers(l, a) ? OT_OK : OT_E_NOMEM;
}
