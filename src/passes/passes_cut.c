/* The model without what needs all rows: the results of these nodes come from outside.
 *
 *     x --InstanceNormalization--> y     [mean, variance of all channels] --> factor, summand
 *                                        x --Mul(factor)--Add(summand)--> y
 *     x --GlobalAveragePool--> y         [mean of all channels] --Cast--Reshape--> y
 *
 * A statistic comes as float64 [numbers, 1], moments as pairs of mean and variance: of two axes, so
 * that it is no picture, and geometry does not take it for one.
 */
#include "passes_internal.h"

static ot_status nomem(const ot_graph *g) { return ot_fail_nomem(g->model->diag); }

static bool push(ot_graph *g, ot_id **list, uint32_t *n, ot_id v)
{
    ot_id *more = OT_NEW_N(g->model->arena, ot_id, *n + 1u);
    if (!more) return false;
    if (*n) memcpy(more, *list, *n * sizeof *more);
    more[(*n)++] = v;
    *list = more;
    return true;
}

ot_status passes_add_input(ot_graph *g, const char *name, ot_tensor_type type, ot_id *out)
{
    *out = ot_value_new(g, name, type.dtype, type.rank, type.dims);
    return *out == OT_NONE ? nomem(g) : passes_become_input(g, *out);
}

ot_status passes_become_input(ot_graph *g, ot_id v)
{
    g->values[v].is_input = true;
    return push(g, &g->inputs, &g->n_inputs, v) ? OT_OK : nomem(g);
}

ot_status passes_add_output(ot_graph *g, ot_id v)
{
    if (g->values[v].is_output) return OT_OK;
    g->values[v].is_output = true;
    return push(g, &g->outputs, &g->n_outputs, v) ? OT_OK : nomem(g);
}

/* The input that takes s, `each` numbers for every one of it. */
static ot_status take(ot_graph *g, const pass_statistic *s, int64_t each, ot_id *out)
{
    int64_t dims[2] = {0, 1};
    if (!ot_mul_i64(s->is.size, each, &dims[0])) return nomem(g);
    return passes_add_input(g, s->is.name, (ot_tensor_type){OT_F64, 2, dims}, out);
}

/* Value y, which no node makes, has the elements of x. */
static ot_status reshape_into(decomp_writer *w, ot_id x, ot_id y)
{
    const ot_value v = w->g->values[y];
    ot_id in[2] = {x, OT_NONE};
    OT_TRY(decomp_ints(w, "shape", v.dims, v.rank, &in[1]));
    return decomp_op(w, &(ot_node_def){.op = "Reshape", .name = "reshape", .in = {in, 2}},
                     ot_type_of(&v), &y);
}

static ot_status writer_of(ot_graph *g, const pass_statistic *s, decomp_writer *w)
{
    *w = (decomp_writer){.g = g, .base = ot_format(g->model->arena, "passes/%s", s->is.name)};
    return w->base ? OT_OK : nomem(g);
}

static ot_status cut_reduction(ot_graph *g, const pass_statistic *s)
{
    const ot_op op = g->nodes[s->node].op;
    const ot_attr to = ot_mk_int("to", g->values[s->y].dtype);
    const ot_tensor_type flat = {OT_F64, 2, (int64_t[]){s->is.size, 1}};
    decomp_writer w;
    ot_id v, out = OT_NONE;
    OT_TRY(writer_of(g, s, &w));
    ot_node_remove(g, s->node);
    OT_TRY(take(g, s, 1, &v));
    if (op == OT_OP_ReduceL2 || op == OT_OP_ReduceLogSum) {
        const char *f = op == OT_OP_ReduceL2 ? "Sqrt" : "Log";
        OT_TRY(decomp_op(&w, &(ot_node_def){.op = f, .name = "of_sum", .in = {&v, 1}}, flat, &out));
        v = out;
        out = OT_NONE;
    }
    OT_TRY(decomp_op(&w,
                     &(ot_node_def){.op = "Cast", .name = "cast", .in = {&v, 1}, .attrs = {&to, 1}},
                     (ot_tensor_type){g->values[s->y].dtype, 2, flat.dims}, &out));
    return reshape_into(&w, out, s->y);
}

/* Moments, which decomposing has made, come from outside; the rest is standard ONNX. */
static ot_status cut_moments(ot_graph *g, const pass_statistic *s, const ot_decomposed *made)
{
    const ot_id moments = made->parts[0], pairs = g->nodes[moments].out[0];
    decomp_writer w;
    ot_id v;
    OT_TRY(writer_of(g, s, &w));
    ot_node_remove(g, moments);
    OT_TRY(take(g, s, 2, &v));
    OT_TRY(reshape_into(&w, v, pairs));
    return ot_norm_factors_write(g, made->parts[1]);
}

ot_status passes_cut(const pass_maker *p, ot_graph *g)
{
    ot_norm *norms = OT_NEW_N(g->model->arena, ot_norm, p->n + 1u);
    uint32_t n = 0, at = 0;
    if (!norms) return nomem(g);
    for (uint32_t k = 0; k < p->n; k++)
        if (p->found[k].is.kind == OT_STATISTIC_MOMENTS) norms[n++] = p->found[k].norm;
    OT_TRY(ot_decompose_these(g, norms, n));
    const ot_decomposed *made = g->model->decomposed;
    g->model->decomposed = NULL;
    g->model->n_decomposed = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const pass_statistic *s = &p->found[k];
        if (s->is.kind == OT_STATISTIC_MOMENTS)
            OT_TRY(cut_moments(g, s, &made[at++]));
        else
            OT_TRY(cut_reduction(g, s));
    }
    return OT_OK;
}

/* ---- what is left out ---- */

static void need(const ot_node *n, bool *needed)
{
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE) needed[n->in[k]] = true;
    for (uint32_t k = 0; k < n->n_captured; k++) needed[n->captured[k]] = true;
}

ot_status passes_keep_needed(ot_graph *g)
{
    uint32_t inputs = 0;
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    const uint32_t n = g->n_order;
    const ot_id *order = ot_memdup(g->model->arena, g->order, n * sizeof *order);
    bool *needed = OT_NEW_N(g->model->arena, bool, g->n_values + 1u);
    if (!needed || !order) return nomem(g);
    for (uint32_t k = 0; k < g->n_outputs; k++) needed[g->outputs[k]] = true;
    for (uint32_t k = n; k-- > 0;) {
        const ot_node *x = &g->nodes[order[k]];
        bool any = false;
        for (uint32_t o = 0; o < x->n_out; o++) any |= x->out[o] != OT_NONE && needed[x->out[o]];
        if (any)
            need(x, needed);
        else
            ot_node_remove(g, order[k]);
    }
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    for (ot_id v = 0; v < g->n_values; v++)
        if (g->values[v].init && !needed[v]) ot_value_drop_unread(g, v);
    for (uint32_t k = 0; k < g->n_inputs; k++)
        if (needed[g->inputs[k]])
            g->inputs[inputs++] = g->inputs[k];
        else
            g->values[g->inputs[k]].is_input = false;
    g->n_inputs = inputs;
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}
