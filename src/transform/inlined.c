/* Functions that a runtime writes out when it loads a model, written out in bodies.
 *
 *     body: x --> HardSwish --> y        body: x -+-> HardSigmoid --> Mul --> y
 *                                                 `--------------------^
 *
 * ONNX Runtime has no kernel for them and puts nodes in their place, which is the same that is
 * done here. But it calls their values alike in every graph, inside of one another or not, so
 * that a model which it saves in that form cannot be loaded: a name is given twice. Those of one
 * graph alone keep apart; hence only bodies are written so.
 */
#include "transform.h"

typedef struct inlined {
    ot_op op;
    const char *steps[2]; /* x through these, one after the other, times x; NULL: no more */
    ot_attr attrs[2];     /* of the first */
    uint32_t n_attrs;
} inlined;

static const inlined *find(ot_op op)
{
    static const inlined ALL[] = {
        {OT_OP_HardSwish,
         {"HardSigmoid", NULL},
         {{.name = "alpha", .kind = OT_ATTR_FLOAT, .f = 1.0f / 6},
          {.name = "beta", .kind = OT_ATTR_FLOAT, .f = 0.5f}},
         2},
        {OT_OP_Mish, {"Softplus", "Tanh"}, {{0}}, 0},
    };
    for (size_t k = 0; k < sizeof ALL / sizeof *ALL; k++)
        if (ALL[k].op == op) return &ALL[k];
    return NULL;
}

/* A node that reads `in` and makes `out`, or a new value like it; *made: that. */
static ot_status add_node(ot_graph *g, const char *op, const char *of, ot_attr_list attrs,
                          ot_id_list in, ot_id out, ot_id *made)
{
    const ot_value like = g->values[in.at[0]];
    const char *base = ot_format(g->model->arena, "%s/%s", of, op),
               *name = base ? ot_fresh_name(g->model, base) : NULL;
    *made = out;
    if (name && out == OT_NONE) *made = ot_value_new(g, name, like.dtype, like.rank, like.dims);
    if (!name || *made == OT_NONE ||
        ot_node_new(
            g, &(ot_node_def){
                   .op = op, .name = name, .in = in, .out = {made, 1}, .attrs = attrs}) == OT_NONE)
        return ot_fail_nomem(g->model->diag);
    return OT_OK;
}

static ot_status write_out(ot_graph *g, ot_id node, const inlined *how)
{
    const ot_node n = g->nodes[node];
    const char *of = n.name && *n.name ? n.name : g->values[n.out[0]].name;
    ot_id pair[2] = {n.in[0], n.in[0]}, made;
    ot_node_remove(g, node);
    for (size_t k = 0; k < 2 && how->steps[k]; k++) {
        const ot_id in = pair[1];
        OT_TRY(add_node(g, how->steps[k], of, (ot_attr_list){how->attrs, k == 0 ? how->n_attrs : 0},
                        (ot_id_list){&in, 1}, OT_NONE, &pair[1]));
    }
    return add_node(g, "Mul", of, (ot_attr_list){0}, (ot_id_list){pair, 2}, n.out[0], &made);
}

static ot_status in_bodies(ot_graph *g);

static ot_status in_body(ot_graph *g)
{
    const ot_id n_nodes = g->n_nodes;
    OT_TRY(in_bodies(g));
    for (ot_id k = 0; k < n_nodes; k++) {
        const inlined *how = g->nodes[k].dead ? NULL : find(g->nodes[k].op);
        if (how) OT_TRY(write_out(g, k, how));
    }
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}

/* Bodies nest as deep as forms do. */
static ot_status in_bodies(ot_graph *g)
{
    for (ot_id k = 0; k < g->n_nodes; k++) {
        const ot_node *n = &g->nodes[k];
        for (uint32_t j = 0; j < n->n_attrs && !n->dead; j++)
            if (n->attrs[j].kind == OT_ATTR_GRAPH && n->attrs[j].g) OT_TRY(in_body(n->attrs[j].g));
    }
    return OT_OK;
}

ot_status ot_write_inlined(ot_graph *g) { return in_bodies(g); }
