/* What the engine's lowering merged, held against what the cost model believes that it merges. */
#ifndef TEST_MERGED_H
#define TEST_MERGED_H

#include "engine/core/session.h"
#include "groups/groups.h"
#include "plan/cost/cost.h"

/* The group that the planner has a position in: its head; of a Transpose that it takes for strides, that of the attention. */
static uint32_t merged_group(const ot_seq *s, uint32_t p) { return s->strided[p] != OT_NONE ? s->strided[p] : s->head[p]; }

/* The planner's group of a node; OT_NONE: the sequence has no such node. Graphs may be two copies of one model, so nodes are known by
 * the name of what they make. */
static uint32_t merged_head(const ot_seq *s, const ot_node *n, const ot_graph *g)
{
    ot_id v = n->n_out > 0 && n->out[0] != OT_NONE ? ot_value_find(s->g, g->values[n->out[0]].name) : OT_NONE;
    return v == OT_NONE || s->def[v] == OT_NONE ? OT_NONE : merged_group(s, s->def[v]);
}

static uint32_t merged_size(const ot_seq *s, uint32_t head)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < s->n; p++) n += merged_group(s, p) == head;
    return n;
}

/* Groups of convolutions, chains and attention that differ, to `out` (NULL: not said); quantized networks are left out: parts that are
 * computed on bytes have their own finders. */
static uint32_t merged_differences(const ot_session *session, const ot_seq *s, FILE *out)
{
    const ot_prog *p = session->top;
    uint32_t differ = 0, same = 0;
    for (uint32_t k = 0; k < p->n_merged; k++) {
        const ot_merged *x = &p->merged[k];
        if (strcmp(x->kind, "convolution") && strcmp(x->kind, "chain") && strcmp(x->kind, "attention")) continue;
        uint32_t head = OT_NONE, n = 0;
        bool together = true;
        for (uint32_t j = 0; j < x->n; j++) {
            uint32_t at = merged_head(s, x->nodes[j], p->g);
            together = together && at != OT_NONE && (n == 0 || at == head);
            head = at;
            n++;
        }
        if (together && merged_size(s, head) == n) {
            same++;
            continue;
        }
        differ++;
        if (!out) continue;
        fprintf(out, "engine: %s of", x->kind);
        for (uint32_t j = 0; j < x->n; j++)
            fprintf(out, " %s:%s@%d", x->nodes[j]->op_type, p->g->values[x->nodes[j]->out[0]].name,
                    (int)merged_head(s, x->nodes[j], p->g));
        fprintf(out, "\n");
    }
    for (uint32_t q = 0; q < s->n; q++) { /* what the planner merges and the engine does not */
        if (merged_group(s, q) != q || merged_size(s, q) < 2) continue;
        const ot_node *n = &s->g->nodes[s->node[q]];
        bool found = n->op == OT_OP_DequantizeLinear || ot_cost_on_bytes(s->g, n);
        for (uint32_t k = 0; k < p->n_merged && !found; k++)
            for (uint32_t j = 0; j < p->merged[k].n && !found; j++) found = merged_head(s, p->merged[k].nodes[j], p->g) == q;
        if (found) continue;
        differ++;
        if (out) fprintf(out, "planner: %u nodes from %s:%s\n", merged_size(s, q), n->op_type, s->g->values[n->out[0]].name);
    }
    if (out) fprintf(out, "%u groups alike, %u differ\n", same, differ);
    return differ;
}

#endif
