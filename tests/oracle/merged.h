/* What the engine's lowering merged, held against what the cost model believes that it merges. */
#ifndef TEST_MERGED_H
#define TEST_MERGED_H

#include "engine/core/session.h"
#include "fusion/fusion.h"
#include "cost/cost.h"

/* The group that the planner has a position in: its head; of a Transpose that it takes for
 * strides, that of the attention. */
static uint32_t merged_group(const ot_seq *s, uint32_t p)
{
    return s->strided[p] != OT_NONE ? s->strided[p] : s->head[p];
}

/* The planner's group of a node; OT_NONE: the sequence has no such node. Graphs may be two
 * copies of one model, so nodes are known by the name of what they make. */
static uint32_t merged_head(const ot_seq *s, const ot_node *n, const ot_graph *g)
{
    ot_id v = n->n_out > 0 && n->out[0] != OT_NONE ? ot_value_find(s->g, g->values[n->out[0]].name)
                                                   : OT_NONE;
    return v == OT_NONE || s->def[v] == OT_NONE ? OT_NONE : merged_group(s, s->def[v]);
}

static uint32_t merged_size(const ot_seq *s, uint32_t head)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < s->n; p++) n += merged_group(s, p) == head;
    return n;
}

/* What the engine merges. Kinds tell on which numbers an operator computes. */
static uint32_t merged_engine(const ot_schedule *p, const ot_seq *s, FILE *out, uint32_t *same)
{
    uint32_t differ = 0;
    for (uint32_t k = 0; k < p->n_merged; k++) {
        const ot_merged *x = &p->merged[k];
        uint32_t head = OT_NONE, n = 0;
        bool together = true, bytes = false;
        for (uint32_t j = 0; j < x->n; j++) {
            uint32_t at = merged_head(s, x->nodes[j], p->g);
            together = together && at != OT_NONE && (n == 0 || at == head);
            head = at;
            n++;
        }
        if (together) bytes = s->on_bytes[head];
        if (together && merged_size(s, head) == n && bytes == (strcmp(x->kind, "bytes") == 0)) {
            ++*same;
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
    return differ;
}

/* Does a step of the engine run the node that makes this value? */
static bool merged_runs(const ot_schedule *p, const char *value)
{
    for (uint32_t k = 0; k < p->n_steps; k++) {
        const ot_node *n = p->steps[k].node;
        for (uint32_t j = 0; j < n->n_out; j++)
            if (n->out[j] != OT_NONE && strcmp(p->g->values[n->out[j]].name, value) == 0)
                return true;
    }
    return false;
}

/* Does an output of the graph depend on the node at p? lives: of all behind it. */
static bool merged_lives(const ot_seq *s, uint32_t p, const bool *lives)
{
    const ot_node *n = &s->g->nodes[s->node[p]];
    for (uint32_t k = 0; k < n->n_out; k++) {
        const ot_value *x = n->out[k] == OT_NONE ? NULL : &s->g->values[n->out[k]];
        for (uint32_t u = 0; x && u < x->n_uses; u++)
            if (s->pos[x->uses[u]] == OT_NONE || lives[s->pos[x->uses[u]]]) return true;
        if (x && x->is_output) return true;
    }
    return false;
}

/* What the planner merges, or leaves out, and the engine does not. */
static uint32_t merged_planner(const ot_schedule *p, const ot_seq *s, FILE *out)
{
    uint32_t differ = 0;
    bool *lives = OT_NEW_N(s->arena, bool, s->n + 1u);
    if (!lives) return 1;
    for (uint32_t q = s->n; q-- > 0;) {
        const ot_node *n = &s->g->nodes[s->node[q]];
        lives[q] = merged_lives(s, q, lives);
        if (n->n_out < 1 || n->out[0] == OT_NONE) continue;
        const char *name = s->g->values[n->out[0]].name;
        if (!lives[q]) continue; /* nobody runs it */
        bool found = merged_size(s, q) < 2 && !s->on_bytes[q];
        if (n->op == OT_OP_DequantizeLinear) found = s->fused[q] != merged_runs(p, name);
        if (n->op != OT_OP_DequantizeLinear && merged_group(s, q) != q) continue;
        for (uint32_t k = 0; k < p->n_merged && !found; k++)
            for (uint32_t j = 0; j < p->merged[k].n && !found; j++)
                found = merged_head(s, p->merged[k].nodes[j], p->g) == q;
        if (found) continue;
        differ++;
        if (out)
            fprintf(out, "planner: %u nodes from %s:%s\n", merged_size(s, q), n->op_type, name);
    }
    return differ;
}

/* Groups that differ, to `out` (NULL: not said): of all kinds, and DequantizeLinear that one
 * runs and the other does not. */
static uint32_t merged_differences(const ot_session *session, const ot_seq *s, FILE *out)
{
    uint32_t same = 0, differ = merged_engine(session->top, s, out, &same);
    differ += merged_planner(session->top, s, out);
    if (out) fprintf(out, "%u groups alike, %u differ\n", same, differ);
    return differ;
}

#endif
