/* Groups of element-wise nodes (fusion/fusion.h) become chains (chain.h).
 *
 * QuantizeLinear is such a node. DequantizeLinear is in no group: each chain that reads its
 * result reads the 8-bit tensor and computes it anew, so the float32 array is only made for
 * others.
 */
#include "lower.h"

uint32_t lw_dequantizer(const lw_pass *l, ot_id v)
{
    const ot_group_view view = lw_group_view(l);
    uint32_t maker = v == OT_NONE ? OT_NONE : l->v[v].maker;
    return maker != OT_NONE && ot_group_chain_dequantizes(&view, maker) ? maker : OT_NONE;
}

/* Nodes that dequantize operands of the units, each once. */
static uint32_t dequantizers(const lw_pass *l, const uint32_t *units, uint32_t n,
                             const ot_node **nodes)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < l->units[units[k]].n_in && count < OT_CHAIN_INPUTS; i++) {
            uint32_t at = lw_dequantizer(l, l->units[units[k]].in[i]);
            bool known = at == OT_NONE;
            for (uint32_t j = 0; j < count && !known; j++)
                known = nodes[j] == l->units[at].nodes[0];
            if (!known) nodes[count++] = l->units[at].nodes[0];
        }
    return count;
}

/* The chain of some units, as one unit; *made false: it holds more than a chain can. */
static ot_status make_chain(lw_pass *l, const uint32_t *units, uint32_t n, bool *made)
{
    const ot_node *nodes[OT_GROUP_PARTS + OT_CHAIN_INPUTS];
    ot_id outputs[OT_GROUP_PARTS];
    uint32_t n_out = 0, first = dequantizers(l, units, n, nodes);
    for (uint32_t k = 0; k < n; k++) {
        const lw_unit *u = &l->units[units[k]];
        const lw_value *x = &l->v[u->out[0]];
        bool outside = x->is_kept;
        for (uint32_t r = 0; r < x->n_readers && !outside; r++) {
            bool inside = false;
            for (uint32_t j = 0; j < n; j++)
                inside = inside || units[j] == l->readers[x->first + r];
            outside = !inside;
        }
        nodes[first + k] = u->nodes[0];
        if (outside) outputs[n_out++] = u->out[0];
    }
    *made = false;
    if (n_out == 0 || n_out > OT_CHAIN_OUTPUTS) return OT_OK;
    ot_chain_spec spec = {l->p->g, nodes, first + n, outputs, n_out};
    const ot_chain *chain;
    ot_diag ignored = {0};
    ot_status st = ot_chain_new(l->a, &spec, &ignored, &chain);
    if (st == OT_E_NOMEM) return ot_fail_nomem(l->p->s->d);
    if (st != OT_OK) return OT_OK;
    const ot_id *in;
    uint32_t n_in = ot_chain_inputs(chain, &in);
    *made = true;
    return lw_merge(l, units, n, LW_CHAIN, (ot_id_list){in, n_in}, (ot_id_list){outputs, n_out},
                    (void *)(uintptr_t)chain);
}

ot_status lw_fuse_chain(lw_pass *l)
{
    const ot_group_view v = lw_group_view(l);
    ot_group_list found;
    OT_TRY(ot_group_chains(&v, &ot_engine_rules, l->scratch, l->p->s->d, &found));
    for (uint32_t g = 0; g < found.n; g++) {
        uint32_t units[OT_GROUP_PARTS], n = found.groups[g].n;
        bool made;
        for (uint32_t k = 0; k < n; k++) units[k] = found.groups[g].parts[k].place;
        OT_TRY(make_chain(l, units, n, &made));
        for (uint32_t k = 0; !made && n > 1 && k < n; k++) {
            bool single;
            OT_TRY(make_chain(l, &units[k], 1, &single));
        }
    }
    return lw_drop_dequantized(l);
}
