/* Skip connections that are computed twice: a value that is read at once and much later is kept
 * in between, though it may be made of little.
 *
 *     image --Conv--Conv--> s --Pool--> ... encoder, decoder ... --> up --Concat(s)--Conv--> y  s
 *     is kept through all of it
 *
 *     image --Conv--Conv--> s --Pool--> ...   ... --> up --Concat(s')--Conv--> y  the image is kept
 *       `-----Conv'--Conv'--> s' -------------------------------'
 *
 * So is what is pooled, to be multiplied by what comes of that (squeeze and excitation):
 *
 *     x --Conv--> s --GlobalAveragePool--Conv--Sigmoid--> scale          s is kept until then
 *                 s --Mul(scale)--> y
 *
 *     x --Conv--> s --GlobalAveragePool--Conv--Sigmoid--> scale          tiles hand out their sums
 *     x --Conv'--> s' --Mul(scale)--> y
 *
 * In tiles, neither s nor s' is ever whole. Both are the same numbers: nothing but time is lost.
 * What pays is scored like every other plan (stage select/); a copy of which no region takes a
 * part is taken back.
 */
#include "decompose_internal.h"

#define HEAVY      2 /* so many products are computed again, */
#define HEAVY_DEEP 6 /* of values that wait in an arena: thin ones, at the size of the input */

/* Positions of nodes in the order of g; OT_NONE: does not run. */
static uint32_t *positions(const ot_graph *g, ot_arena *a)
{
    uint32_t *at = OT_NEW_N(a, uint32_t, g->n_nodes + 1u);
    for (uint32_t k = 0; at && k < g->n_nodes; k++) at[k] = OT_NONE;
    for (uint32_t k = 0; at && k < g->n_order; k++) at[g->order[k]] = k;
    return at;
}

/* The first of v's readers (ascending in order) behind the longest time in which nobody reads
 * it; that many steps in *wait. */
static uint32_t first_late(const ot_value *v, const uint32_t *at, uint32_t *wait)
{
    uint32_t late = 0;
    *wait = 0;
    for (uint32_t u = 1; u < v->n_uses; u++) {
        const uint32_t steps = at[v->uses[u]] - at[v->uses[u - 1]];
        if (steps <= *wait) continue;
        *wait = steps;
        late = u;
    }
    return late;
}

/* The first n readers of x reduce it to what tiles can sum up. */
static bool is_pooled(const ot_graph *g, const ot_value *x, uint32_t n)
{
    for (uint32_t u = 0; u < n; u++) {
        bool reduced[OT_RANK_MAX];
        if (ot_access_sum(g, &g->nodes[x->uses[u]], reduced) == OT_SUM_NONE) return false;
    }
    return n > 0;
}

/* v waits for some of its readers, of that kind, and is made of less. */
static bool find_skip(const ot_graph *g, ot_id v, ot_remat_kind kind, const uint32_t *at,
                      remat_chain *c, int64_t *saved)
{
    const ot_value *x = &g->values[v];
    uint32_t wait;
    if (x->producer == OT_NONE || x->is_output || x->is_const || x->n_uses < 2 ||
        at[x->producer] == OT_NONE)
        return false;
    const uint32_t late = first_late(x, at, &wait);
    for (uint32_t u = late; u < x->n_uses; u++)
        if (g->nodes[x->uses[u]].n_captured > 0) return false; /* subgraphs name what they read */
    if (kind == OT_REMAT_POOLED && !is_pooled(g, x, late)) return false;
    return remat_find_chain(g, v, kind == OT_REMAT_DEEP ? HEAVY_DEEP : HEAVY, c, saved) &&
           (kind == OT_REMAT_POOLED || wait > c->n);
}

ot_status ot_rematerialise_find_skips(const ot_graph *g, ot_remat_kind kind, ot_remat_skip *out,
                                      uint32_t max, uint32_t *n)
{
    ot_arena *a = ot_arena_new();
    const uint32_t *at = a ? positions(g, a) : NULL;
    *n = 0;
    for (ot_id v = 0; at && v < g->n_values; v++) {
        remat_chain c;
        int64_t saved;
        if (!find_skip(g, v, kind, at, &c, &saved)) continue;
        uint32_t k = *n < max ? (*n)++ : max;
        if (k == max && (max == 0 || out[max - 1].bytes >= saved)) continue;
        for (k -= k == max; k > 0 && out[k - 1].bytes < saved; k--) out[k] = out[k - 1];
        out[k] = (ot_remat_skip){.value = v, .bytes = saved, .macs = c.macs};
    }
    ot_arena_free(a);
    return at ? OT_OK : ot_fail_nomem(g->model->diag);
}

/* The late readers of v get a copy. planned: g at one size. */
static ot_status repeat(ot_graph *g, const ot_graph *planned, ot_id v, ot_remat_kind kind,
                        ot_rematerialised *made, bool *done)
{
    ot_arena *a = ot_arena_new();
    const uint32_t *at = a ? positions(g, a) : NULL;
    remat_chain c;
    int64_t saved;
    uint32_t wait;
    ot_status s = at ? OT_OK : ot_fail_nomem(g->model->diag);
    *done = at && find_skip(planned, v, kind, at, &c, &saved);
    if (*done) {
        const ot_value x = g->values[v];
        *made = (ot_rematerialised){.value = v, .n_nodes = c.n};
        s = remat_copy_chain(g, &c, v, &made->again, &made->nodes);
        for (uint32_t u = first_late(&x, at, &wait); s == OT_OK && u < x.n_uses; u++) {
            ot_node *n = &g->nodes[x.uses[u]];
            for (uint32_t i = 0; i < n->n_in; i++)
                if (n->in[i] == v) n->in[i] = made->again;
            n->proto = NULL;
        }
        g->props &= ~(unsigned)(OT_P_ORDER | OT_P_USES);
        if (s == OT_OK) s = ot_assure(g, OT_P_ORDER | OT_P_USES);
    }
    ot_arena_free(a);
    return s;
}

ot_status ot_rematerialise_skips(ot_graph *g, const ot_graph *planned, ot_remat_kind kind,
                                 const ot_id *values, uint32_t n)
{
    ot_rematerialised *all = OT_NEW_N(g->model->arena, ot_rematerialised, n + 1u);
    if (!all) return ot_fail_nomem(g->model->diag);
    g->model->rematerialised = all;
    for (uint32_t k = 0; k < n; k++) {
        bool done;
        OT_TRY(repeat(g, planned, values[k], kind, &all[g->model->n_rematerialised], &done));
        g->model->n_rematerialised += done;
    }
    return OT_OK;
}

/* No region has taken a part of what makes it, be that the first time or the second. */
static bool is_untouched(const ot_graph *g, const ot_rematerialised *r)
{
    const ot_id by = g->values[r->value].producer;
    for (uint32_t k = 0; k < r->n_nodes; k++)
        if (g->nodes[r->nodes[k]].dead) return false;
    return by != OT_NONE && !g->nodes[by].dead;
}

ot_status remat_undo_skips(ot_graph *g)
{
    for (uint32_t k = g->model->n_rematerialised; k-- > 0;) {
        const ot_rematerialised *r = &g->model->rematerialised[k];
        if (!is_untouched(g, r)) continue;
        for (uint32_t j = 0; j < r->n_nodes; j++) ot_node_remove(g, r->nodes[j]);
        OT_TRY(ot_replace_uses(g, r->again, r->value));
    }
    return OT_OK;
}
