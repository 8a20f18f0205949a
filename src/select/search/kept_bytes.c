/* What an interval keeps for others: a plan may pay for it (search.byte_seconds). */
#include "search.h"

/* Bytes that the node at p takes beside its operands when it runs whole: scratch of its kernel,
 * other layouts; distances, and of few numbers their squares, of a Moments that is written in
 * standard operators. */
static int64_t beside_bytes(const ot_seq *s, uint32_t p)
{
    const ot_node *n = &s->g->nodes[s->node[p]];
    size_t n_axes;
    if (n->op != OT_OP_Moments) return (int64_t)s->work[p];
    const int64_t *axes = ot_attr_ints(n, "axes", &n_axes);
    return s->bytes[n->in[0]] *
           (ot_moments_are_many(&s->g->values[n->in[0]], axes, n_axes) ? 1 : 2);
}

double ot_kept_bytes(const ot_seq *s, const ot_walk *w, int64_t level, uint32_t first, uint32_t end)
{
    double bytes = 0;
    for (uint32_t p = first; p <= end; p++) {
        const ot_node *n = &s->g->nodes[s->node[p]];
        const bool cut = w && w->state[p] == OT_ST_IN;
        const int64_t beside = cut || level == 0 ? 0 : beside_bytes(s, p);
        if (beside >= level) bytes += (double)beside;
        for (uint32_t k = 0; k < n->n_out; k++) {
            const ot_id id = n->out[k];
            const bool inside = id != OT_NONE && cut && !ot_walk_escapes(w, id);
            if (id != OT_NONE && !inside && !s->fused[p] && s->held[id] >= level)
                bytes += (double)s->held[id];
        }
    }
    return bytes;
}
