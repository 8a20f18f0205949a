/* What tiles cost besides what the planner says: weights that they pack anew.
 *
 *   branch   loop over 10 tiles { MatMul(x, W) }      W is captured (transform/weights.c): there is
 *                                                     one copy of it, packed for each tile
 *
 * The planner prices regions as they run in the top graph, where a product packs once.
 */
#include "candidates.h"

#include "transform/transform.h"

ot_status ot_repacks_fill(ot_candidates *x)
{
    const ot_graph *g = x->g;
    const ot_target *t = x->t;
    x->repacks = OT_NEW_N(x->arena, double, g->n_nodes + 1u);
    if (!x->repacks) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < g->n_order && t->runtime->captured_rows > 0; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        const int64_t bytes = ot_captured_product(g, n);
        if (bytes > 0)
            x->repacks[g->order[k]] = t->runtime->captured_rows * (double)bytes /
                                      ((double)ot_dtype_bits(g->values[n->in[1]].dtype) / 8) /
                                      t->rate_gemm;
    }
    return OT_OK;
}

double ot_set_saves(const ot_candidates *x, const ot_region *r)
{
    const bool captures = x->how.branch && (x->how.data_file || x->t->runtime->outer_weights);
    if (!captures || !x->repacks || r->form == OT_FORM_UNROLLED) return r->benefit;
    double seconds = 0, tiles = 1;
    for (uint32_t k = 0; k < r->n_nodes; k++) {
        const ot_rnode *n = &r->nodes[k];
        if (x->repacks[n->node] > 0 && n->in[1] == OT_NONE)
            seconds += x->repacks[n->node]; /* tiles have it whole */
    }
    for (uint32_t d = 0; d < r->n_dims; d++) tiles *= r->dims[d].n_tiles;
    return r->benefit - seconds * tiles;
}

double ot_set_repacks(const ot_candidates *x, const ot_region_set *set)
{
    double seconds = 0;
    for (uint32_t k = 0; k < set->n; k++)
        seconds += set->all[k].benefit - ot_set_saves(x, &set->all[k]);
    return seconds;
}
