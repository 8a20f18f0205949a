/* A quantised weight of its own for each product that is written out.
 *
 *     wq, s --> DequantizeLinear --> t0/matmul         wq, s     --> DequantizeLinear --> t0/matmul
 *                       '----------> t1/matmul   -->   wq_1, s_1 --> DequantizeLinear --> t1/matmul
 *
 * A runtime multiplies by wq itself where one node alone reads it (ops/quantised_weight.c). What
 * was so in the file is so here as well; what several nodes read stays as it was. The contents are
 * in the file as often as products are: few bits each, against weights held as floats and another
 * rounding.
 */
#include "transform_internal.h"

bool *rw_quantised_alone(const ot_graph *g, ot_arena *a)
{
    bool *alone = OT_NEW_N(a, bool, g->n_values + 1u);
    for (ot_id v = 0; alone && v < g->n_values; v++) alone[v] = ot_quantised_weight_alone(g, v);
    return alone;
}

static ot_status value_again(ot_graph *g, ot_id v, ot_id *out)
{
    const ot_value x = g->values[v];
    const char *name = ot_fresh_name(g->model, x.name);
    *out = name ? ot_value_new(g, name, x.dtype, x.rank, x.dims) : OT_NONE;
    if (*out == OT_NONE) return ot_fail_nomem(g->model->diag);
    g->values[*out].init = x.overridable ? NULL : x.init;
    g->values[*out].is_const = true;
    return OT_OK;
}

/* A node of constants and one result once more, with operands `in` ([n_in]) of its own. */
static ot_status node_again(ot_graph *g, ot_id id, const ot_id *in, ot_id out)
{
    const ot_node n = g->nodes[id];
    const char *name = ot_fresh_name(g->model, n.name[0] ? n.name : g->values[out].name);
    if (!name) return ot_fail_nomem(g->model->diag);
    const ot_id made = ot_node_new(g, &(ot_node_def){.op = n.op_type,
                                                     .domain = n.domain,
                                                     .name = name,
                                                     .in = {in, n.n_in},
                                                     .out = {&out, 1},
                                                     .attrs = {n.attrs, n.n_attrs}});
    if (made == OT_NONE) return ot_fail_nomem(g->model->diag);
    g->nodes[made].version = n.version;
    g->nodes[made].is_static = true;
    return OT_OK;
}

/* Operand v of a DequantizeLinear once more: an initializer, or a Constant. What other nodes
 * make is shared: no runtime looks through those. */
static ot_status operand_again(ot_graph *g, ot_id v, ot_id *out)
{
    *out = v;
    if (v == OT_NONE) return OT_OK;
    const ot_value x = g->values[v];
    const bool constant = x.producer != OT_NONE && g->nodes[x.producer].op == OT_OP_Constant;
    if (!constant && (!x.init || x.overridable)) return OT_OK;
    OT_TRY(value_again(g, v, out));
    return constant ? node_again(g, x.producer, NULL, *out) : OT_OK;
}

static ot_status weight_again(ot_graph *g, ot_id v, ot_id *out)
{
    const ot_id id = g->values[v].producer;
    const ot_node n = g->nodes[id];
    ot_id in[3];
    for (uint32_t k = 0; k < n.n_in; k++) OT_TRY(operand_again(g, n.in[k], &in[k]));
    OT_TRY(value_again(g, v, out));
    return node_again(g, id, in, *out);
}

ot_status rw_own_quantised(ot_graph *g, const bool *alone, uint32_t n_before)
{
    ot_arena *a = ot_arena_new();
    bool *taken = a ? OT_NEW_N(a, bool, n_before + 1u) : NULL;
    ot_status st = taken ? OT_OK : ot_fail_nomem(g->model->diag);
    const ot_id n_nodes = g->n_nodes;
    for (ot_id k = 0; st == OT_OK && k < n_nodes; k++) {
        const ot_node *n = &g->nodes[k];
        if (n->dead || !ot_is_quantised_product(g, n)) continue;
        const ot_id v = n->in[1];
        ot_id own;
        if (v >= n_before || !alone[v] || g->nodes[g->values[v].producer].n_in > 3) continue;
        if (taken[v] && (st = weight_again(g, v, &own)) == OT_OK) g->nodes[k].in[1] = own;
        taken[v] = true;
    }
    ot_arena_free(a);
    return st == OT_OK ? ot_assure(g, OT_P_ORDER | OT_P_USES) : st;
}
