/* Cost model, attention written out in nodes: the engine runs it as one step (engine/lower/fuse_attention.c).
 *
 *   Q, K --> MatMul --> Mul, Div by a number --> Add (mask) --> Softmax --> MatMul <-- V
 *            head       [ values in between are never stored: bytes 0 ]      tail
 *
 * The head's position stands for the group, as with element-wise chains; it runs where the tail stands. No region may cut
 * through it, and all of it runs tiled or none: otherwise scores would be stored. Queries are taken 16 at a time, so a tile of 20
 * takes as long as one of 32; K and V are packed anew for each block of panels, and so in each tile.
 */
#include "cost.h"

#include "groups/attention_rule.h"

#define LINKS_MAX 3 /* scalar factors between the product and Softmax */
#define LEAST     8 /* queries of what the engine takes */

static const ot_node *node_at(const ot_seq *s, uint32_t p) { return &s->g->nodes[s->node[p]]; }

/* Position of the maker of v, that operator, whose result one node alone reads; OT_NONE. */
static uint32_t made_by(const ot_seq *s, ot_id v, ot_op op)
{
    if (v == OT_NONE || !s->act[v] || s->def[v] == OT_NONE) return OT_NONE;
    const ot_value *x = &s->g->values[v];
    if (x->dtype != OT_F32 || x->is_output || x->n_uses != 1) return OT_NONE;
    return node_at(s, s->def[v])->op == op ? s->def[v] : OT_NONE;
}

/* Follow scalar factors up from v to the product. parts: positions, [*n] so far. */
static bool find_product(const ot_seq *s, ot_id v, uint32_t *parts, uint32_t *n)
{
    for (uint32_t links = 0; links < LINKS_MAX; links++) {
        uint32_t p = made_by(s, v, OT_OP_MatMul);
        if (p != OT_NONE) {
            const ot_node *m = node_at(s, p);
            parts[(*n)++] = p;
            return m->n_in == 2 && s->act[m->in[0]] && s->act[m->in[1]];
        }
        p = made_by(s, v, OT_OP_Mul);
        if (p == OT_NONE) p = made_by(s, v, OT_OP_Div);
        if (p == OT_NONE || node_at(s, p)->n_in != 2) return false;
        const ot_node *f = node_at(s, p);
        uint32_t number = f->in[1] != OT_NONE && s->elems[f->in[1]] == 1 ? 1 : 0;
        if (f->in[number] == OT_NONE || s->act[f->in[number]] || s->elems[f->in[number]] != 1) return false;
        if (number == 0 && f->op == OT_OP_Div) return false;
        parts[(*n)++] = p;
        v = f->in[1 - number];
    }
    return false;
}

/* From the input of Softmax up: a mask on either side of an Add, or none. */
static bool find_scores(const ot_seq *s, ot_id v, uint32_t *parts, uint32_t *n)
{
    uint32_t add = made_by(s, v, OT_OP_Add), before = *n;
    if (add == OT_NONE) return find_product(s, v, parts, n);
    for (uint32_t side = 0; side < 2; side++) {
        *n = before;
        parts[(*n)++] = add;
        if (node_at(s, add)->n_in == 2 && find_product(s, node_at(s, add)->in[side], parts, n)) return true;
    }
    return false;
}

/* Positions of the attention around a Softmax, from its last product up to its first. */
static uint32_t find(const ot_seq *s, uint32_t softmax, uint32_t *parts)
{
    const ot_node *n = node_at(s, softmax);
    uint32_t count = 0;
    if (n->op != OT_OP_Softmax || n->n_in != 1 || n->in[0] == OT_NONE) return 0;
    const ot_value *x = &s->g->values[n->in[0]], *y = &s->g->values[n->out[0]];
    int64_t axis = ot_attr_int(n, "axis", n->version < 13 ? 1 : -1);
    if (x->dtype != OT_F32 || x->rank < 2 || (axis != -1 && axis != x->rank - 1) || x->dims[x->rank - 2] < LEAST) return 0;
    if (y->is_output || y->n_uses != 1 || s->pos[y->uses[0]] == OT_NONE) return 0;
    const ot_node *last = &s->g->nodes[y->uses[0]];
    if (last->op != OT_OP_MatMul || last->n_in != 2 || last->in[0] != n->out[0] || last->in[1] == n->out[0]) return 0;
    parts[count++] = s->pos[y->uses[0]];
    parts[count++] = softmax;
    return find_scores(s, n->in[0], parts, &count) ? count : 0;
}

/* The step runs where its last node stands: until then it needs what the others read. */
static void live_until(ot_seq *s, const ot_node *n, uint32_t tail)
{
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && s->act[n->in[k]]) s->last[n->in[k]] = s->last[n->in[k]] > tail ? s->last[n->in[k]] : tail;
}

void ot_cost_attention_fill(ot_seq *s, const ot_target *t)
{
    if (!ot_runtime_chains(t->runtime)) return;
    for (uint32_t p = 0; p < s->n; p++) {
        uint32_t parts[LINKS_MAX + 4], n = find(s, p, parts);
        if (n == 0) continue;
        uint32_t head = parts[n - 1], tail = parts[0];
        for (uint32_t k = 0; k < n; k++) {
            s->tail[parts[k]] = tail;
            s->head[parts[k]] = head;
            s->fused[parts[k]] = parts[k] != head;
            if (parts[k] != tail) s->bytes[node_at(s, parts[k])->out[0]] = 0;
            live_until(s, node_at(s, parts[k]), tail);
        }
        for (uint32_t b = head + 1; b <= tail; b++) s->inside[b] = true;
    }
}

double ot_cost_attention(const ot_seq *s, uint32_t p, const ot_target *t, const ot_share *cut, uint32_t n_dims, double compute)
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
    int64_t rows = ot_max(1, (int64_t)(queries + 0.5)), panels = ot_ceil_div(rows, OT_ATTENTION_PANEL);
    compute *= (double)(panels * OT_ATTENTION_PANEL) / (double)rows;
    if (ot_op_cost(n->op) != OT_COST_GEMM) return compute;
    const ot_node *last = node_at(s, s->tail[p]), *first = node_at(s, s->head[p]);
    const ot_value *q = &s->g->values[first->in[0]], *v = &s->g->values[last->in[1]];
    int64_t most = ot_attention_panels(q->dims[q->rank - 1], v->dims[v->rank - 1]);
    double blocks = tiles * (double)ot_ceil_div(panels, most);
    return compute + blocks * others * (double)s->bytes[n->in[1]] * t->runtime->attention_pack / t->bw_slow;
}
