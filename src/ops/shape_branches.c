/* Shapes behind an If, Loop or Scan of the file, and calls of its functions: what the bodies make.
 * Of an If, what both do:
 *
 *     then: Conv -> Relu   [1,8,64,48]     else: Conv -> Tanh   [1,8,64,48]   -->  [1,8,64,48]
 *           ...            [1,8,32,48]           ...            [1,8,64,48]   -->  [1,8,?,48]
 *
 * Where the condition is known, what the branch that is taken makes: exporters write "squeeze an
 * axis if it is 1" as an If whose branches differ in rank.
 *
 * Bodies are inferred as the graph around is, from what they are handed and what they read; what
 * the file states of them is not asked. What a loop carries is as its body is handed it in every
 * iteration.
 */
#include "onnx/import/model_io.h"
#include "shape.h"

/* A body as a graph with shapes; NULL where it cannot be read. */
static ot_graph *body_of(const ot_infer *c, const char *name)
{
    const ot_attr *a = ot_attr_find(c->n, name);
    ot_graph *body;
    if (!a || a->kind != OT_ATTR_OPAQUE || !ot_attr_has_graph(c->g->model, a)) return NULL;
    return ot_inferred_body(c->g, c->n, a, &body) == OT_OK ? body : NULL;
}

/* What is the same in a and b. */
static void take_common(const ot_value *a, const ot_value *b, ot_shp *out)
{
    if (a->dtype != b->dtype || !a->is_tensor || !b->is_tensor) return;
    out->dtype = a->dtype;
    if (a->rank < 0 || a->rank != b->rank || !a->is_inferred || !b->is_inferred) return;
    out->rank = a->rank;
    for (int32_t k = 0; k < a->rank; k++)
        out->d[k] = a->dims[k] == b->dims[k] ? a->dims[k] : OT_DIM_UNKNOWN;
}

/* Body value x is what output k of the node is, in all iterations. */
static void take_carried(ot_infer *c, uint32_t k, const ot_value *x)
{
    if (!x->is_tensor) return;
    c->out[k].dtype = x->dtype;
    c->out[k].rank = x->rank;
    for (int32_t a = 0; a < x->rank; a++) c->out[k].d[a] = x->dims[a];
}

/* Output k of the node is x of all iterations, along `axis`. */
static void take_stacked(ot_infer *c, uint32_t k, const ot_value *x, int64_t axis, int64_t count)
{
    const int64_t rank = (int64_t)x->rank + 1;
    if (!x->is_tensor) return;
    c->out[k].dtype = x->dtype;
    if (axis < 0) axis += rank;
    if (x->rank < 0 || !x->is_inferred || rank > OT_RANK_MAX || axis < 0 || axis >= rank) return;
    c->out[k].rank = (int32_t)rank;
    for (int64_t a = 0; a < rank; a++)
        c->out[k].d[a] = a == axis ? count : x->dims[a < axis ? a : a - 1];
}

static int64_t axis_at(const ot_node *n, const char *name, uint32_t k)
{
    size_t count = 0;
    const int64_t *axes = ot_attr_ints(n, name, &count);
    return axes && k < count ? axes[k] : 0;
}

static void loop_outputs(ot_infer *c, const ot_graph *body)
{
    const uint32_t carried = c->n->n_in > 2 ? c->n->n_in - 2 : 0;
    for (uint32_t k = 0; k < c->n->n_out; k++)
        if (k < carried && k + 2 < body->n_inputs)
            take_carried(c, k, &body->values[body->inputs[k + 2]]);
        else if (k >= carried && k + 1 < body->n_outputs)
            take_stacked(c, k, &body->values[body->outputs[k + 1]], 0, OT_DIM_UNKNOWN);
}

static void scan_outputs(ot_infer *c, const ot_graph *body)
{
    const int64_t scans = ot_attr_int(c->n, "num_scan_inputs", 0);
    if (c->n->version < 9 || scans < 1 || scans > c->n->n_in) return;
    const uint32_t carried = c->n->n_in - (uint32_t)scans;
    const ot_value *first = ot_shape_ranked(c, carried);
    int64_t axis = axis_at(c->n, "scan_input_axes", 0), count = OT_DIM_UNKNOWN;
    if (first && axis < 0) axis += first->rank;
    if (first && axis >= 0 && axis < first->rank) count = first->dims[axis];
    for (uint32_t k = 0; k < c->n->n_out; k++)
        if (k < carried && k < body->n_inputs)
            take_carried(c, k, &body->values[body->inputs[k]]);
        else if (k >= carried && k < body->n_outputs)
            take_stacked(c, k, &body->values[body->outputs[k]],
                         axis_at(c->n, "scan_output_axes", k - carried), count);
}

static void if_outputs(ot_infer *c, const ot_graph *yes, const ot_graph *no)
{
    for (uint32_t k = 0; k < c->n->n_out && k < yes->n_outputs && k < no->n_outputs; k++)
        take_common(&yes->values[yes->outputs[k]], &no->values[no->outputs[k]], &c->out[k]);
}

/* Whether the condition of an If is known; *yes: its value. */
static bool is_decided(const ot_infer *c, bool *yes)
{
    const ot_known *k = ot_shape_known(c, 0);
    if (!k || !k->i || k->n != 1 || !ot_known_has(k, 0)) return false;
    *yes = k->i[0] != 0;
    return true;
}

static void call_outputs(ot_infer *c)
{
    ot_graph *body;
    if (ot_inferred_body(c->g, c->n, NULL, &body) == OT_OK && body) if_outputs(c, body, body);
}

void ot_shape_branches(ot_infer *c)
{
    const ot_op op = c->n->op;
    bool all = true;
    const bool control = op == OT_OP_If || op == OT_OP_Loop || op == OT_OP_Scan;
    if (!(control || c->n->calls_function) || c->g->parent) return;
    for (uint32_t k = 0; k < c->n->n_out; k++) { /* a graph that had shapes keeps them */
        const ot_value *v = c->n->out[k] == OT_NONE ? NULL : &c->g->values[c->n->out[k]];
        all = all && (!v || (c->g->model->shaped && ot_value_is_static(v)));
    }
    if (all) return;
    if (c->n->calls_function) {
        call_outputs(c);
        return;
    }
    bool yes = true;
    const bool decided = op == OT_OP_If && is_decided(c, &yes);
    const ot_graph *body = body_of(c, op != OT_OP_If ? "body"
                                      : yes          ? "then_branch"
                                                     : "else_branch");
    const ot_graph *other = op == OT_OP_If && !decided ? body_of(c, "else_branch") : body;
    if (!body || !other) return;
    if (op == OT_OP_If) if_outputs(c, body, other);
    if (op == OT_OP_Loop) loop_outputs(c, body);
    if (op == OT_OP_Scan) scan_outputs(c, body);
}
