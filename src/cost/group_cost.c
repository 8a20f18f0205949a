/* Cost model, what the target's runtime merges: the groups of the recogniser (fusion/fusion.h)
 * as tables of a sequence.
 *
 *   group    [Conv BN Relu]  Add  [Mul Sigmoid]
 *   head      0    0  0      3     4   4             position of the group's first node
 *   fused     -    x  x      -     -   x
 *
 * A place of the recogniser is a position of the sequence; the runtime's rules say what is merged.
 *
 */
#include "cost.h"

/* A sequence as the recogniser sees it. */
typedef struct seq_view {
    const ot_seq *s;
    uint32_t *first;   /* [n_values + 1] readers of v are readers[first[v] .. first[v + 1]) */
    uint32_t *readers; /* positions */
    bool *pinned;      /* [n_values] */
    bool *taken;       /* [n] part of a group */
} seq_view;

static const ot_node *node_at(const void *of, uint32_t place)
{
    const seq_view *x = of;
    return x->taken[place] ? NULL : &x->s->g->nodes[x->s->node[place]];
}

static const ot_id *operands(const void *of, uint32_t place, uint32_t *n)
{
    const seq_view *x = of;
    const ot_node *node = &x->s->g->nodes[x->s->node[place]];
    *n = node->n_in;
    return node->in;
}

static const uint32_t *readers(const void *of, ot_id v, uint32_t *n)
{
    const seq_view *x = of;
    *n = x->first[v + 1] - x->first[v];
    return x->readers + x->first[v];
}

static uint32_t maker(const void *of, ot_id v) { return ((const seq_view *)of)->s->def[v]; }

static bool origin(const void *of, ot_id v, ot_group_origin *o)
{
    const ot_seq *s = ((const seq_view *)of)->s;
    const ot_value *x = &s->g->values[v];
    if (s->act[v] || x->producer == OT_NONE) return false;
    *o = (ot_group_origin){s->g, &s->g->nodes[x->producer], OT_NONE};
    return true;
}

static bool is_kept(const void *of, ot_id v) { return ((const seq_view *)of)->pinned[v]; }

/* Initializers that a caller might override are constants to a session that is not told to. */
static bool is_const(const void *of, ot_id v)
{
    const ot_seq *s = ((const seq_view *)of)->s;
    return !s->act[v] || s->g->values[v].init;
}

static bool shape(const void *of, ot_id v, ot_group_shape *s)
{
    const ot_value *x = &((const seq_view *)of)->s->g->values[v];
    if (!x->is_tensor || x->is_sequence || !ot_value_is_static(x)) return false;
    *s = (ot_group_shape){x->dtype, (uint32_t)x->rank, x->dims};
    return true;
}

static bool has_more_outputs(const void *of, uint32_t place)
{
    const seq_view *x = of;
    const ot_node *n = &x->s->g->nodes[x->s->node[place]];
    for (uint32_t k = 1; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) return true;
    return false;
}

static bool open_view(seq_view *x, const ot_seq *s)
{
    const ot_graph *g = s->g;
    uint32_t total = 0;
    *x = (seq_view){.s = s};
    x->first = OT_NEW_N(s->arena, uint32_t, g->n_values + 1u);
    x->pinned = OT_NEW_N(s->arena, bool, g->n_values + 1u);
    x->taken = OT_NEW_N(s->arena, bool, s->n + 1u);
    for (ot_id v = 0; v < g->n_values; v++) total += g->values[v].n_uses;
    x->readers = OT_NEW_N(s->arena, uint32_t, total + 1u);
    if (!x->first || !x->pinned || !x->taken || !x->readers) return false;
    total = 0;
    for (ot_id v = 0; v < g->n_values; v++) {
        const ot_value *y = &g->values[v];
        x->first[v] = total;
        for (uint32_t u = 0; u < y->n_uses; u++)
            if (s->pos[y->uses[u]] != OT_NONE) x->readers[total++] = s->pos[y->uses[u]];
        x->pinned[v] = y->is_output;
    }
    x->first[g->n_values] = total;
    for (uint32_t p = 0; p < s->n; p++) {
        const ot_node *n = &g->nodes[s->node[p]];
        for (uint32_t k = 0; k < n->n_captured; k++)
            if (n->captured[k] != OT_NONE) x->pinned[n->captured[k]] = true;
    }
    return true;
}

/* ---- tables ---- */

/* The first part of a group by position is its head. */
static void merge(ot_seq *s, seq_view *x, const ot_group *group)
{
    uint32_t head = group->parts[0].place;
    for (uint32_t k = 0; k < group->n; k++) {
        uint32_t p = group->parts[k].place;
        x->taken[p] = true;
        s->head[p] = head;
        s->fused[p] = p != head;
    }
}

/* Chains, and what quantizers leave when everybody who reads their tensors is known. */
static ot_status merge_chains(ot_seq *s, seq_view *x, const ot_group_view *v,
                              const ot_group_rules *rules)
{
    ot_group_list chains;
    bool *chained = OT_NEW_N(s->arena, bool, s->n + 1u);
    if (!chained) return ot_fail_nomem(s->g->model->diag);
    OT_TRY(ot_group_chains(v, rules, s->arena, s->g->model->diag, &chains));
    for (uint32_t k = 0; k < chains.n; k++)
        for (uint32_t j = 0; j < chains.groups[k].n; j++)
            chained[chains.groups[k].parts[j].place] = true;
    for (uint32_t k = 0; k < chains.n; k++) merge(s, x, &chains.groups[k]);
    ot_cost_quantizers_fill(s, v, chained);
    return OT_OK;
}

ot_status ot_cost_groups_fill(ot_seq *s, const ot_target *t)
{
    const ot_group_rules *rules = t->runtime->merges;
    seq_view x;
    for (uint32_t p = 0; p < s->n; p++) {
        s->fused[p] = s->on_bytes[p] = false;
        s->head[p] = p;
        s->tail[p] = OT_NONE;
        s->strided[p] = OT_NONE;
    }
    if (!rules) return OT_OK;
    if (!open_view(&x, s)) return ot_fail_nomem(s->g->model->diag);
    const ot_group_view v = {&x,    s->g,   s->n,    node_at,  operands, readers,
                             maker, origin, is_kept, is_const, shape,    has_more_outputs};
    for (uint32_t p = 0; p < s->n; p++) {
        ot_bytes_group bytes;
        if (!ot_group_bytes(&v, rules, p, &bytes)) continue;
        merge(s, &x, &bytes.group);
        ot_cost_bytes_merge(s, &bytes);
    }
    for (uint32_t p = 0; p < s->n; p++) {
        ot_group group;
        if (ot_group_conv(&v, rules, p, &group)) merge(s, &x, &group);
    }
    for (uint32_t p = 0; p < s->n; p++) {
        ot_attention_group attention;
        if (!ot_group_attention(&v, rules, p, &attention)) continue;
        ot_cost_attention_merge(s, &attention.group);
        for (uint32_t k = 0; k < attention.group.n; k++)
            x.taken[attention.group.parts[k].place] = true;
    }
    for (uint32_t p = 0; p < s->n; p++) {
        ot_group group;
        if (ot_group_product(&v, rules, p, &group)) merge(s, &x, &group);
    }
    return merge_chains(s, &x, &v, rules);
}
