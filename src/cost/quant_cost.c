/* Cost model, quantized networks in the engine: what stands between two 8-bit tensors is one
 * step (fusion/bytes_group.c).
 *
 *   xq --DequantizeLinear--> Conv, MatMul, MaxPool ... --QuantizeLinear--> yq
 *      `- costs nothing -'  `---- float32 values are never stored ----'
 *
 * The values inside have no bytes, and no region begins or ends between a DequantizeLinear and
 * its readers, or inside a group: what is stored between regions is the 8-bit tensor. Chains
 * read and write 8-bit tensors in the same way.
 */
#include "cost.h"

#include "ops/quirks.h"

static const ot_node *node_at(const ot_seq *s, uint32_t p) { return &s->g->nodes[s->node[p]]; }

/* No cut between the maker of v and its last reader. */
static void keep_together(ot_seq *s, ot_id v)
{
    s->bytes[v] = 0;
    for (uint32_t b = s->def[v] + 1; s->last[v] != OT_NONE && b <= s->last[v] && b <= s->n; b++)
        s->inside[b] = true;
}

void ot_cost_bytes_merge(ot_seq *s, const ot_bytes_group *x)
{
    uint32_t first = x->group.parts[0].place;
    s->on_bytes[first] = true;
    s->blocked[node_at(s, first)->out[0]] = false;
    for (uint32_t k = 0; k < x->group.n; k++) {
        ot_id v = node_at(s, x->group.parts[k].place)->out[0];
        if (v != x->group.result) keep_together(s, v);
    }
}

/* The node at p reads v as bytes wherever it reads it. */
static bool reads_bytes(const ot_seq *s, uint32_t p, ot_id v, bool chained)
{
    const ot_node *n = node_at(s, p);
    bool all = true;
    for (uint32_t k = 0; k < n->n_in; k++)
        all = all && (n->in[k] != v || (s->on_bytes[p] && ot_bytes_reads(n, k)));
    return chained || all;
}

/* All readers of what the DequantizeLinear at p makes read the bytes. */
static bool is_dropped(const ot_seq *s, const ot_group_view *v, uint32_t p, const bool *chained)
{
    ot_id y = node_at(s, p)->out[0];
    const ot_value *x = &s->g->values[y];
    if (v->is_kept(v->of, y) || x->n_uses == 0) return false;
    bool chains = ot_group_chain_dequantizes(v, p);
    for (uint32_t u = 0; u < x->n_uses; u++) {
        uint32_t q = s->pos[x->uses[u]];
        if (q == OT_NONE || !reads_bytes(s, q, y, chains && chained[q])) return false;
    }
    return true;
}

void ot_cost_quantizers_fill(ot_seq *s, const ot_group_view *v, const bool *chained)
{
    for (uint32_t p = 0; p < s->n; p++) {
        const ot_node *n = node_at(s, p);
        if (n->n_in < 1 || n->n_out < 1 || n->in[0] == OT_NONE || n->out[0] == OT_NONE) continue;
        if (n->op == OT_OP_DequantizeLinear && s->act[n->in[0]] && is_dropped(s, v, p, chained)) {
            keep_together(s, n->out[0]);
            s->fused[p] = true;
        }
        uint32_t maker = s->def[n->in[0]];
        if (n->op == OT_OP_QuantizeLinear && chained[p] && maker != OT_NONE &&
            s->head[maker] == s->head[p] && ot_group_only_reader(v, n->in[0]) == p)
            keep_together(s, n->in[0]);
    }
}

/* A boundary inside DequantizeLinear -> operator -> QuantizeLinear would leave float operators
 * behind, with other results. */
bool ot_cost_torn(const ot_seq *s, const ot_target *t, const ot_node *n, ot_id v)
{
    const ot_value *x = &s->g->values[v];
    if (n->op == OT_OP_DequantizeLinear || ot_value_is_quantized(s->g, v)) return true;
    for (uint32_t k = 0; k < x->n_uses; k++) {
        const ot_node *u = &s->g->nodes[x->uses[k]];
        /* A pool outside would read a plain tensor instead of a blocked one and sum in another
         * order. */
        if (s->strict && !ot_target_hard_limit(t) &&
            ot_quirk_hits(OT_QUIRK_PLAIN_AVERAGE, t->runtime->bit, u->op_type))
            return true;
    }
    return false;
}
