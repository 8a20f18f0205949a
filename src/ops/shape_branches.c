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
 * iteration. That goes on inside of bodies, down to OT_NESTING_MAX of them; there an output is sure
 * (is_inferred) where what it is made of is, so that no word of the file passes for more.
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

/* Input `in` of the body is what output k of the node is, in all iterations: output `last` takes
 * its place in the next one. */
static void take_carried(ot_infer *c, uint32_t k, const ot_graph *body, uint32_t in, uint32_t last)
{
    const ot_value *x = &body->values[body->inputs[in]], *next = &body->values[body->outputs[last]];
    const ot_value *first = ot_shape_in(c, c->n->op == OT_OP_Loop ? k + 2 : k);
    if (!x->is_tensor) return;
    c->sure = c->sure && first && first->rank >= 0 && ot_shape_is_sure(c->g, first) &&
              (next == x || next->is_inferred);
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

/* A single boolean that is known to be true. */
static bool is_true(const ot_value *x) { return x->known && x->known_n == 1 && x->known[0] != 0; }

/* Does the body of a Loop hand on the condition that it is given, or one that always holds? */
static bool goes_on(const ot_graph *body)
{
    const ot_value *x = body->n_outputs ? &body->values[body->outputs[0]] : NULL;
    while (x && x->producer != OT_NONE && body->nodes[x->producer].op == OT_OP_Identity) {
        const ot_id from = body->nodes[x->producer].n_in ? body->nodes[x->producer].in[0] : OT_NONE;
        x = from == OT_NONE ? NULL : &body->values[from];
    }
    return x && (is_true(x) || (body->n_inputs > 1 && x == &body->values[body->inputs[1]]));
}

/* Iterations of a Loop, where its condition always holds. */
static int64_t iterations(const ot_infer *c, const ot_graph *body)
{
    const ot_value *go = ot_shape_in(c, 1);
    int64_t most;
    if (!ot_shape_int(c, 0, &most) || (go && !is_true(go)) || !goes_on(body)) return OT_DIM_UNKNOWN;
    return ot_max(most, 0);
}

static void loop_outputs(ot_infer *c, const ot_graph *body)
{
    const uint32_t carried = c->n->n_in > 2 ? c->n->n_in - 2 : 0;
    const int64_t count = iterations(c, body);
    for (uint32_t k = 0; k < c->n->n_out; k++)
        if (k < carried && k + 2 < body->n_inputs && k + 1 < body->n_outputs)
            take_carried(c, k, body, k + 2, k + 1);
        else if (k >= carried && k + 1 < body->n_outputs)
            take_stacked(c, k, &body->values[body->outputs[k + 1]], 0, count);
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
        if (k < carried && k < body->n_inputs && k < body->n_outputs)
            take_carried(c, k, body, k, k);
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

/* What the branch that is taken hands on is known outside where it is inside: exporters write the
 * repeats of a Tile as an If (known.c). */
static void take_contents(ot_infer *c, const ot_graph *body)
{
    for (uint32_t k = 0; k < c->n->n_out && k < body->n_outputs; k++) {
        const ot_value *x = &body->values[body->outputs[k]];
        if (c->n->out[k] == OT_NONE || !(x->known || x->known_floats)) continue;
        c->known[c->n->out[k]] = (ot_known){
            .n = x->known_n, .valid = true, .i = x->known, .f = x->known_floats};
    }
}

static void call_outputs(ot_infer *c)
{
    ot_graph *body;
    if (ot_inferred_body(c->g, c->n, NULL, &body) == OT_OK && body) if_outputs(c, body, body);
}

/* Output k, a vector as short as a shape, is of a branch that is known and might say what is in
 * it. */
static bool wants_contents(const ot_infer *c, uint32_t k)
{
    const ot_value *v = &c->g->values[c->n->out[k]];
    bool yes;
    int64_t n;
    return c->n->op == OT_OP_If && !c->known[c->n->out[k]].valid && ot_known_is_int(v->dtype) &&
           ot_value_elems(v, &n) && n <= OT_RANK_MAX && is_decided(c, &yes);
}

/* A graph that had shapes keeps them; a body of the file has those that the file states. */
static bool keeps_shapes(const ot_infer *c)
{
    bool all = !c->lenient;
    for (uint32_t k = 0; k < c->n->n_out; k++) {
        const ot_value *v = c->n->out[k] == OT_NONE ? NULL : &c->g->values[c->n->out[k]];
        all = all &&
              (!v || (c->g->model->shaped && ot_value_is_static(v) && !wants_contents(c, k)));
    }
    return all;
}

static void control_outputs(ot_infer *c)
{
    const ot_op op = c->n->op;
    bool yes = true;
    const bool decided = op == OT_OP_If && is_decided(c, &yes);
    const ot_graph *body = body_of(c, op != OT_OP_If ? "body"
                                      : yes          ? "then_branch"
                                                     : "else_branch");
    const ot_graph *other = op == OT_OP_If && !decided ? body_of(c, "else_branch") : body;
    if (!body || !other) return;
    if (op == OT_OP_If) if_outputs(c, body, other);
    if (decided) take_contents(c, body);
    if (op == OT_OP_Loop) loop_outputs(c, body);
    if (op == OT_OP_Scan) scan_outputs(c, body);
}

void ot_shape_branches(ot_infer *c)
{
    const ot_node *n = c->n;
    const bool control = n->op == OT_OP_If || n->op == OT_OP_Loop || n->op == OT_OP_Scan;
    /* the rewriter's own bodies have none of the file's inside */
    if (!(control || n->calls_function) || (c->g->parent && !c->lenient) || keeps_shapes(c)) return;
    c->sure = true;
    if (n->calls_function)
        call_outputs(c);
    else
        control_outputs(c);
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE && c->out[k].rank < 0) c->sure = false;
    c->sure = c->sure && c->lenient;
}
