/* Groups of the recogniser, kind after kind, as steps. */
#include "steps.h"

#define LARGE 10000u /* nodes */

bool ot_step_is_product(const ot_node *n)
{
    return n->op == OT_OP_Conv || n->op == OT_OP_ConvTranspose || n->op == OT_OP_MatMul ||
           n->op == OT_OP_Gemm;
}

ot_status ot_steps_add(ot_steps *s, ot_node_list *l, ot_arena *a, const ot_group *group)
{
    const uint32_t leader = group->parts[0].place;
    s->last[leader] = leader;
    for (uint32_t k = 0; k < group->n; k++) {
        const uint32_t p = group->parts[k].place;
        l->taken[p] = true;
        s->leader[p] = leader;
        s->next[p] = k + 1 < group->n ? group->parts[k + 1].place : OT_NONE;
        if (p > s->last[leader]) s->last[leader] = p;
        if (s->product[leader] == OT_NONE && ot_step_is_product(l->node[p])) s->product[leader] = p;
    }
    return OT_PUSH(a, s->groups, s->n_groups, s->cap_groups, *group) ? OT_OK : OT_E_NOMEM;
}

void ot_steps_unite(ot_steps *s, uint32_t a, uint32_t b)
{
    for (uint32_t k = b; k != OT_NONE; k = s->next[k]) s->leader[k] = a;
    s->next[s->last[a]] = b;
    s->last[a] = s->last[b];
    if (s->product[b] != OT_NONE) s->product[a] = s->product[b];
}

bool ot_step_stores(const ot_node_list *l, const ot_steps *s, ot_id v, uint32_t leader)
{
    if (l->g->values[v].is_output) return true;
    for (uint32_t k = l->first[v]; k < l->first[v + 1]; k++)
        if (s->leader[l->readers[k]] != leader) return true;
    return false;
}

static ot_status find_groups(const ot_group_rules *r, ot_node_list *l, ot_arena *a, ot_steps *s)
{
    const ot_group_view v = ot_node_list_view(l);
    ot_group_list chains;
    for (uint32_t p = 0; p < l->n; p++) {
        ot_bytes_group bytes;
        if (!ot_group_bytes(&v, r, p, &bytes)) continue;
        OT_TRY(ot_steps_add(s, l, a, &bytes.group));
        if (!OT_PUSH(a, s->bytes, s->n_bytes, s->cap_bytes, bytes)) return OT_E_NOMEM;
    }
    for (uint32_t p = 0; p < l->n; p++) {
        ot_group group;
        if (ot_group_conv(&v, r, p, &group)) OT_TRY(ot_steps_add(s, l, a, &group));
    }
    for (uint32_t p = 0; p < l->n; p++) {
        ot_attention_group attention;
        if (ot_group_attention(&v, r, p, &attention))
            OT_TRY(ot_steps_add(s, l, a, &attention.group));
    }
    for (uint32_t p = 0; p < l->n; p++) {
        ot_group group;
        if (ot_group_product(&v, r, p, &group)) OT_TRY(ot_steps_add(s, l, a, &group));
    }
    OT_TRY(ot_group_chains(&v, r, a, l->g->model->diag, &chains));
    for (uint32_t k = 0; k < chains.n; k++) OT_TRY(ot_steps_add(s, l, a, &chains.groups[k]));
    return OT_OK;
}

ot_status ot_steps_find(ot_node_list *l, const ot_group_rules *r, ot_arena *a, ot_steps *out)
{
    *out = (ot_steps){.n = l->n,
                      .leader = OT_NEW_N(a, uint32_t, l->n + 1u),
                      .next = OT_NEW_N(a, uint32_t, l->n + 1u),
                      .last = OT_NEW_N(a, uint32_t, l->n + 1u),
                      .product = OT_NEW_N(a, uint32_t, l->n + 1u)};
    if (!out->leader || !out->next || !out->last || !out->product) return OT_E_NOMEM;
    if (l->n >= LARGE) {        /* a list that grows leaves all that it was in the arena */
        out->cap_groups = l->n; /* a node is in one group at most */
        out->groups = OT_NEW_N(a, ot_group, out->cap_groups);
        if (!out->groups) return OT_E_NOMEM;
    }
    for (uint32_t p = 0; p < l->n; p++) {
        out->leader[p] = out->last[p] = p;
        out->next[p] = OT_NONE;
        out->product[p] = l->node[p] && ot_step_is_product(l->node[p]) ? p : OT_NONE;
    }
    if (!r) return OT_OK;
    return r->find ? r->find(r, l, a, out) : find_groups(r, l, a, out);
}
