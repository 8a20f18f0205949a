/* The facts of a run, copied out of the plan while the graph still has its original nodes.
 *
 *   ot_plan + ot_graph + ot_target --> ot_results --> results_table.c (a person), results_json.c (a
 * program)
 *
 * Both writers read this struct only, so that they cannot disagree.
 */
#include "results.h"

const char *ot_fact_label(const ot_graph *g, const ot_node *n)
{
    if (n->name && *n->name) return n->name;
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) return g->values[n->out[k]].name;
    return n->op_type;
}

/* Copies of the labels of nodes ids[0..n); NULL when memory ran out. */
static const char *const *copy_labels(ot_arena *a, const ot_graph *g, const ot_id *ids, uint32_t n)
{
    const char **names = OT_NEW_N(a, const char *, n);
    for (uint32_t k = 0; names && k < n; k++) {
        names[k] = ot_strdup(a, ot_fact_label(g, &g->nodes[ids[k]]));
        if (!names[k]) return NULL;
    }
    return names;
}

/* Operators and names of the nodes that reduce what the region cuts. */
static bool copy_sums(ot_arena *a, const ot_graph *g, const ot_region *from, ot_result_region *to)
{
    const char **names = OT_NEW_N(a, const char *, from->n_nodes);
    for (uint32_t k = 0; names && k < from->n_nodes; k++) {
        const ot_node *n = &g->nodes[from->nodes[k].node];
        bool sums = false;
        for (uint32_t d = 0; d < from->n_dims; d++) sums |= from->nodes[k].lead_axis[d] == OT_AX_SUM;
        if (!sums) continue;
        names[to->n_sums] = ot_format(a, "%s %s", n->op_type, ot_fact_label(g, n));
        if (!names[to->n_sums++]) return false;
    }
    to->sums = names;
    return names != NULL;
}

static bool copy_region(ot_arena *a, const ot_graph *g, const ot_region *from, ot_result_region *to)
{
    ot_id *ids = OT_NEW_N(a, ot_id, from->n_nodes);
    if (!ids) return false;
    for (uint32_t k = 0; k < from->n_nodes; k++) ids[k] = from->nodes[k].node;
    *to = (ot_result_region){.id = from->id,
                             .nodes = copy_labels(a, g, ids, from->n_nodes),
                             .n_nodes = from->n_nodes,
                             .n_dims = from->n_dims,
                             .form = ot_form_name(from->form),
                             .working_set = from->working_set,
                             .working_set_bound = from->working_set_bound,
                             .weights = from->weight_bytes,
                             .weights_stay = from->weights_stay,
                             .time_untiled = from->time_untiled,
                             .time_tiled = from->time_tiled,
                             .benefit = from->benefit,
                             .mac_ratio = from->mac_ratio,
                             .traffic = from->traffic};
    for (uint32_t d = 0; d < from->n_dims; d++) {
        const ot_rvalue *sink = &from->values[from->dims[d].sink];
        to->axes[d] = ot_axis_name(g->values[sink->value].rank, sink->axis[d]);
        to->tiles[d] = from->dims[d].n_tiles;
    }
    return copy_sums(a, g, from, to) && to->nodes != NULL;
}

static bool copy_lists(const ot_graph *g, const ot_plan *p, ot_results *r)
{
    ot_arena *a = r->arena;

    r->regions = OT_NEW_N(a, ot_result_region, p->n_regions);
    r->barriers = OT_NEW_N(a, ot_result_barrier, p->n_barriers);
    r->refused = OT_NEW_N(a, ot_result_refusal, p->n_refused);
    if (!r->regions || !r->barriers || !r->refused) return false;
    for (; r->n_regions < p->n_regions; r->n_regions++)
        if (!copy_region(a, g, &p->regions[r->n_regions], &r->regions[r->n_regions])) return false;
    for (; r->n_barriers < p->n_barriers; r->n_barriers++) {
        const ot_barrier *from = &p->barriers[r->n_barriers];
        const ot_node *n = &g->nodes[from->node];
        ot_result_barrier *to = &r->barriers[r->n_barriers];
        to->node = ot_strdup(a, ot_fact_label(g, n));
        to->op = ot_strdup(a, n->op_type);
        to->reason_id = ot_reason_name(from->reason.why);
        to->reason = ot_reason_text(a, from->reason);
        if (!to->node || !to->op || !to->reason) return false;
    }
    for (; r->n_refused < p->n_refused; r->n_refused++) {
        const ot_refusal *from = &p->refused[r->n_refused];
        ot_result_refusal *to = &r->refused[r->n_refused];
        *to = (ot_result_refusal){copy_labels(a, g, from->nodes, from->n), from->n, ot_reason_name(from->reason.why),
                                  ot_reason_text(a, from->reason)};
        if (!to->nodes || !to->reason) return false;
    }
    return true;
}

/* Bytes of everything that nodes make while running; constants and unknown shapes do not count. */
static double activation_sum(const ot_graph *g)
{
    double sum = 0;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        for (uint32_t j = 0; j < n->n_out; j++) {
            int64_t bytes;
            if (n->out[j] == OT_NONE) continue;
            const ot_value *v = &g->values[n->out[j]];
            if (!v->is_const && v->is_tensor && ot_value_bytes(v, &bytes)) sum += (double)bytes;
        }
    }
    return sum;
}

ot_status ot_results_build(const ot_graph *g, const ot_plan *p, const ot_target *t, const char *model, ot_results **out)
{
    ot_diag *d = g->model->diag;
    ot_arena *a = ot_arena_new();
    ot_results *r = a ? OT_NEW(a, ot_results) : NULL;
    if (!r) {
        ot_arena_free(a);
        return ot_fail_nomem(d);
    }
    r->arena = a;
    r->model = ot_strdup(a, model ? model : "");
    r->target = ot_strdup(a, t->name);
    r->fast_bytes = t->fast_bytes;
    r->untiled = p->untiled;
    r->tiled = p->tiled;
    r->compulsory_bytes = p->compulsory_bytes;
    r->activation_sum = activation_sum(g);
    r->n_live_nodes = g->n_order;
    ot_status st = r->model && r->target && copy_lists(g, p, r) ? OT_OK : ot_fail_nomem(d);
    if (st == OT_OK) st = ot_graph_arena(g, &r->activations, &r->n_unsized);
    if (st == OT_OK)
        *out = r;
    else
        ot_arena_free(a);
    return st;
}

void ot_results_free(ot_results *r)
{
    if (r) ot_arena_free(r->arena);
}
