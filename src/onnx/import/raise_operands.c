/* Models of opset 11 and 12, read as opset 13: from then on a Loop hands sequences on, which
 * regions with dynamic dimensions are written with (transform/dynamic_form.c). Attributes of some
 * operators became operands, others got another meaning:
 *
 *   opset 11  Unsqueeze(x) {axes=[0]}   Split(x) {axis=1, split=[2,3]}
 *             ReduceSum(x) {axes=[1]}   Softmax(x: [N,C]) {}
 *   opset 13  Unsqueeze(x, [0])         Split(x, [2,3]) {axis=1}
 *             ReduceSum(x, [1])         Softmax(x) {axis=1}
 *
 * All others mean the same in the three opsets. A Softmax of more than one axis, a subgraph or a
 * local function leave the model as it is. The old nodes stay, dead: a model that nothing else
 * changes is taken back to what it was (replace.c).
 *
 * Sources: the standard's version history of each operator.
 */
#include "model_io.h"

#include "source.h"

#define OLDEST 11
#define NEWEST 13

/* Operators that are written otherwise from opset 13 on. attr: what became operand 1; NULL: an
 * axis that was the first of those behind which all are one. */
static const struct {
    ot_op op;
    const char *attr;
} CHANGED[] = {
    {OT_OP_Dropout, "ratio"},  {OT_OP_Hardmax, NULL},     {OT_OP_LogSoftmax, NULL},
    {OT_OP_ReduceSum, "axes"}, {OT_OP_Softmax, NULL},     {OT_OP_Split, "split"},
    {OT_OP_Squeeze, "axes"},   {OT_OP_Unsqueeze, "axes"},
};
#define N_CHANGED (sizeof CHANGED / sizeof *CHANGED)

static bool is_standard(const ot_node *n) { return !n->dead && !n->domain[0]; }

static size_t row_of(const ot_node *n)
{
    size_t k = 0;
    while (k < N_CHANGED && CHANGED[k].op != ot_op_find(n->op_type)) k++;
    return k;
}

/* The axis of a Softmax, where it is the last that has more than one number; else -1. */
static int64_t own_axis(const ot_graph *g, const ot_node *n)
{
    const ot_value *x = n->n_in > 0 && n->in[0] != OT_NONE ? &g->values[n->in[0]] : NULL;
    int64_t axis = ot_attr_int(n, "axis", 1);
    if (!x || x->rank < 1) return -1;
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank) return -1;
    for (int64_t k = axis + 1; k < x->rank; k++)
        if (x->dims[k] != 1) return -1;
    return axis;
}

static bool has_subgraph(const ot_model *m, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (ot_attr_has_graph(m, &n->attrs[k])) return true;
    return false;
}

/* n can be written for opset 13. */
static bool can_raise(const ot_graph *g, const ot_node *n)
{
    const size_t row = row_of(n);
    if (has_subgraph(g->model, n)) return false;
    if (!is_standard(n)) return true;
    /* it has no form that anybody knows */
    if (row < N_CHANGED && n->op == OT_OP_OPAQUE) return false;
    if (n->op == OT_OP_Resize &&
        strcmp(ot_attr_str(n, "coordinate_transformation_mode", ""), "tf_half_pixel_for_nn") == 0)
        return false;
    if (row == N_CHANGED) return true;
    if (!CHANGED[row].attr) return own_axis(g, n) >= 0;
    return n->n_in == 1 && n->n_out > 0 && (n->op != OT_OP_Dropout || n->n_out == 1);
}

/* An operand with what the attribute had. */
static ot_status write_operand(ot_graph *g, const ot_node *old, const char *attr, const char *base,
                               ot_id *out)
{
    size_t n = 0;
    const int64_t *data = ot_attr_ints(old, attr, &n);
    return ot_const_ints(g, ot_format(g->model->arena, "%s/%s", base, attr), data, (int64_t)n, out);
}

/* Node id as opset 13 has it, made anew where that is another form. */
static ot_status write_anew(ot_graph *g, ot_id id)
{
    const ot_node old = g->nodes[id];
    const size_t row = row_of(&old);
    const char *attr = CHANGED[row].attr,
               *base = old.name[0] ? old.name : g->values[old.out[0]].name;
    ot_id in[2] = {old.in[0], OT_NONE};
    ot_attr *attrs = OT_NEW_N(g->model->arena, ot_attr, old.n_attrs + 1u);
    uint32_t n_in = 1, n_attrs = 0;
    if (!attrs) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < old.n_attrs; k++)
        if (strcmp(old.attrs[k].name, attr ? attr : "axis") != 0) attrs[n_attrs++] = old.attrs[k];
    if (!attr) attrs[n_attrs++] = ot_mk_int("axis", own_axis(g, &old));
    if (attr && old.op != OT_OP_Dropout && ot_attr_find(&old, attr))
        OT_TRY(write_operand(g, &old, attr, base, &in[n_in++]));
    const char *name = ot_format(g->model->arena, "%s/13", base);
    name = name ? ot_fresh_name(g->model, name) : NULL;
    if (!name) return ot_fail_nomem(g->model->diag);
    ot_node_remove(g, id);
    const ot_id made = ot_node_new(g, &(ot_node_def){.op = old.op_type,
                                                     .name = name,
                                                     .in = {in, n_in},
                                                     .out = {old.out, old.n_out},
                                                     .attrs = {attrs, n_attrs}});
    return made == OT_NONE ? ot_fail_nomem(g->model->diag) : OT_OK;
}

ot_status ot_raise_operands(ot_model *m)
{
    ot_graph *g = m->graph;
    const ot_source *src = m->source;
    const uint32_t n = g->n_nodes;
    if (!src || m->opset < OLDEST || m->opset >= NEWEST || src->model->n_functions > 0)
        return OT_OK;
    for (ot_id id = 0; id < n; id++)
        if (!g->nodes[id].dead && !can_raise(g, &g->nodes[id])) return OT_OK;
    m->opset = NEWEST;
    for (ot_id id = 0; id < n; id++) {
        if (!is_standard(&g->nodes[id])) continue;
        g->nodes[id].version = NEWEST;
        if (row_of(&g->nodes[id]) < N_CHANGED) OT_TRY(write_anew(g, id));
    }
    g->props &= ~(unsigned)(OT_P_ORDER | OT_P_USES);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}
