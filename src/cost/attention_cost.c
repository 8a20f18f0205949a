/* Cost model, attention written out in nodes (fusion/attention_group.c): the engine runs it as
 * one step.
 *
 *   Q, K --> MatMul --> Mul, Div by a number --> Add (mask) --> Softmax --> MatMul <-- V
 *            head       [ values in between are never stored: bytes 0 ]      tail
 *
 * The head's position stands for the group, as with element-wise chains; it runs where the tail
 * stands. No region may cut through it, and all of it runs tiled or none: otherwise scores would
 * be stored. Queries are taken 16 at a time, so a tile of 20 takes as long as one of 32; K and V
 * are packed anew for each block of panels, and so in each tile.
 *
 * Transposes of operands and of the result stay nodes of their own, between which regions may
 * begin and end, but move nothing. Where a region takes the attention without them they are
 * copies after all: that is not counted (at most half a percent of the predicted time of a ViT
 * with 4096 tokens).
 */
#include "cost.h"

#include "fusion/attention_rule.h"

static const ot_node *node_at(const ot_seq *s, uint32_t p) { return &s->g->nodes[s->node[p]]; }

/* The step runs where its last node stands: until then it needs what the others read. */
static void live_until(ot_seq *s, const ot_node *n, uint32_t end)
{
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && s->act[n->in[k]])
            s->last[n->in[k]] = s->last[n->in[k]] > end ? s->last[n->in[k]] : end;
}

void ot_cost_attention_merge(ot_seq *s, const ot_group *x)
{
    uint32_t head = OT_NONE, tail = OT_NONE;
    for (uint32_t k = 0; k < x->n; k++) {
        uint32_t p = x->parts[k].place;
        if (x->parts[k].role == OT_ROLE_PRODUCT) head = p;
        if (x->parts[k].role == OT_ROLE_MIX) tail = p;
    }
    for (uint32_t k = 0; k < x->n; k++) {
        uint32_t p = x->parts[k].place;
        if (x->parts[k].role == OT_ROLE_READS || x->parts[k].role == OT_ROLE_WRITES) {
            s->strided[p] = head;
            continue;
        }
        s->tail[p] = tail;
        s->head[p] = head;
        s->fused[p] = p != head;
        if (p != tail) s->bytes[node_at(s, p)->out[0]] = 0;
    }
    const uint32_t end = ot_seq_attention_end(s, head);
    for (uint32_t k = 0; k < x->n; k++) live_until(s, node_at(s, x->parts[k].place), end);
    for (uint32_t b = head + 1; b <= tail; b++) s->inside[b] = true;
}

double ot_cost_attention(const ot_seq *s, uint32_t p, const ot_target *t, const ot_share *cut,
                         uint32_t n_dims, double compute)
{
    const ot_node *n = node_at(s, p);
    const ot_value *y = &s->g->values[n->out[0]];
    double queries = (double)y->dims[y->rank - 2], tiles = 1, others = 1;
    for (uint32_t d = 0; d < n_dims; d++) {
        tiles *= cut[d].tiles;
        if (cut[d].axis == y->rank - 2)
            queries *= cut[d].made / cut[d].tiles;
        else
            others *= cut[d].made / cut[d].tiles;
    }
    int64_t rows = ot_max(1, (int64_t)(queries + 0.5)),
            panels = ot_ceil_div(rows, OT_ATTENTION_PANEL);
    compute *= (double)(panels * OT_ATTENTION_PANEL) / (double)rows;
    if (ot_op_cost(n->op) != OT_COST_GEMM) return compute;
    const ot_node *last = node_at(s, s->tail[p]), *first = node_at(s, s->head[p]);
    const ot_value *q = &s->g->values[first->in[0]], *v = &s->g->values[last->in[1]];
    int64_t most = ot_attention_panels(q->dims[q->rank - 1], v->dims[v->rank - 1]);
    double blocks = tiles * (double)ot_ceil_div(panels, most);
    return compute +
           blocks * others * (double)s->bytes[n->in[1]] * t->runtime->attention_pack / t->bw_slow;
}
