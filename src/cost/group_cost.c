/* Cost model, what the target's runtime runs as one step (fusion/steps.h), as tables of a
 * sequence.
 *
 *   step     [Conv BN Relu]  Add  [Mul Sigmoid]
 *   head      0    0  0      3     4   4             position of the node that stands for the step
 *   fused     -    x  x      -     -   x
 *
 * A place of the recogniser is a position of the sequence.
 */
#include "cost.h"

#include "fusion/steps.h"

/* The sequence as the recogniser sees it, in arena a. Initializers that a caller might override
 * are constants to a session that is not told to. */
static ot_status list_sequence(const ot_seq *s, ot_arena *a, ot_node_list *l)
{
    const ot_graph *g = s->g;
    *l = (ot_node_list){
        .g = g, .n = s->n, .shows_origins = true, .node = OT_NEW_N(a, const ot_node *, s->n + 1u)};
    if (!l->node) return OT_E_NOMEM;
    for (uint32_t p = 0; p < s->n; p++) l->node[p] = &g->nodes[s->node[p]];
    OT_TRY(ot_node_list_fill(l, a));
    for (ot_id v = 0; v < g->n_values; v++) l->constant[v] = !s->act[v] || g->values[v].init;
    return OT_OK;
}

/* The nodes of a group run in that of its head. */
static void set_head(ot_seq *s, const ot_group *group)
{
    const uint32_t head = group->parts[0].place;
    for (uint32_t k = 0; k < group->n; k++) {
        s->head[group->parts[k].place] = head;
        s->fused[group->parts[k].place] = group->parts[k].place != head;
    }
}

/* Steps that rules join node by node: the first of the sequence is the head. */
static void set_heads(ot_seq *s, const ot_steps *steps)
{
    for (uint32_t p = 0; p < s->n; p++) {
        if (steps->leader[p] != p) continue;
        uint32_t head = p;
        for (uint32_t k = p; k != OT_NONE; k = steps->next[k]) head = k < head ? k : head;
        for (uint32_t k = p; k != OT_NONE; k = steps->next[k]) {
            s->head[k] = head;
            s->fused[k] = k != head;
        }
    }
}

/* Chains, and what quantizers leave when everybody who reads their tensors is known. */
static ot_status fill_quantizers(ot_seq *s, const ot_node_list *l, const ot_steps *steps,
                                 ot_arena *a)
{
    const ot_group_view v = ot_node_list_view(l);
    bool *chained = OT_NEW_N(a, bool, s->n + 1u);
    if (!chained) return OT_E_NOMEM;
    for (size_t k = 0; k < steps->n_groups; k++)
        for (uint32_t j = 0; j < steps->groups[k].n; j++)
            chained[steps->groups[k].parts[j].place] = steps->groups[k].kind == OT_GROUP_CHAIN;
    ot_cost_quantizers_fill(s, &v, chained);
    return OT_OK;
}

/* The recogniser's own lists, which are the most of it, lie in arena a. */
static ot_status fill(ot_seq *s, const ot_group_rules *rules, ot_arena *a)
{
    ot_node_list l;
    ot_steps steps;
    OT_TRY(list_sequence(s, a, &l));
    OT_TRY(ot_steps_find(&l, rules, a, &steps));
    set_heads(s, &steps);
    for (size_t k = 0; k < steps.n_bytes; k++) {
        set_head(s, &steps.bytes[k].group);
        ot_cost_bytes_merge(s, &steps.bytes[k]);
    }
    for (size_t k = 0; k < steps.n_groups; k++) {
        const ot_group *group = &steps.groups[k];
        if (group->kind != OT_GROUP_ATTENTION) continue;
        for (uint32_t j = 0; j < group->n; j++) { /* Transposes stay nodes of their own */
            s->head[group->parts[j].place] = group->parts[j].place;
            s->fused[group->parts[j].place] = false;
        }
        ot_cost_attention_merge(s, group);
    }
    return fill_quantizers(s, &l, &steps, a);
}

ot_status ot_cost_groups_fill(ot_seq *s, const ot_target *t)
{
    for (uint32_t p = 0; p < s->n; p++) {
        s->fused[p] = s->on_bytes[p] = false;
        s->head[p] = p;
        s->tail[p] = OT_NONE;
        s->strided[p] = OT_NONE;
    }
    if (!t->runtime->merges) return OT_OK;
    ot_arena *scratch = ot_arena_new();
    const bool ok = scratch && fill(s, t->runtime->merges, scratch) == OT_OK;
    ot_arena_free(scratch);
    return ok ? OT_OK : ot_fail_nomem(s->g->model->diag);
}
