/* The whole graph as the branch of an If that is always taken, and that is given a sequence.
 *
 *     top      x --> Slice --> SequenceConstruct --> SequenceErase --> sequence --> SequenceLength
 *              x                  (two elements)       (one left)         |             --> Cast
 *              |                                                          |                  |
 *              |                               y <-- If { branch, empty } <------------------'
 *     branch   '--> (all nodes of the graph) --> y       SequenceLength(sequence): nobody reads it
 *
 * A runtime that records a pattern of a graph's allocations, and later takes one block for all
 * of them beside what the first run took (docs/allocator-simulation.md), does so for graphs
 * whose inputs are tensors. The branch reads a sequence, so it has no pattern: its tensors come
 * from the arena and go back to it in every run. The condition is computed from the sequence,
 * which nobody folds away: not runtimes, as it is of an input; not simplifiers, which know the
 * length of what SequenceConstruct makes, and cannot keep a sequence that is a constant. It has
 * one element whatever the input holds, none included.
 *
 * The graph itself becomes the branch's body: its nodes, values and small initializers stay what
 * they are. Its inputs and its weights are captured by name: of a body's initializers the
 * runtime keeps the file's bytes besides its own, of the top graph's it does not (ResNet-50: 217
 * MB loaded, 111 this way). Where weights are in a file beside the model, there are no such bytes,
 * and they stay the body's, but for those of matrix products, which are let go of when they are
 * packed only where they are captured (BERT: 605 MB, 577 this way).
 */
#include "ops/quirks.h"
#include "transform_internal.h"

#define SINCE    11 /* sequences */
#define IR_SINCE 4  /* older ones list all constants as inputs */

static ot_status nomem(const ot_model *m) { return ot_fail_nomem(m->diag); }

/* An element type of which a tensor without contents can be written. */
static bool has_empty_tensor(const ot_value *v)
{
    return v->is_tensor && v->dtype != OT_DT_UNKNOWN && v->dtype != OT_STRING &&
           ot_dtype_bits(v->dtype) >= 8 && v->rank >= 0;
}

bool ot_branch_fits(const ot_graph *g)
{
    if (g->parent || g->model->opset < SINCE || g->model->ir_version < IR_SINCE ||
        g->n_outputs == 0)
        return false;
    if (ot_has_half_quantised(g) && ot_quirk_concerns(OT_QUIRK_HALF_WEIGHT, OT_BY_ALL))
        return false;
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        const ot_value *v = &g->values[g->outputs[k]];
        if (v->producer == OT_NONE || v->init || !has_empty_tensor(v)) return false;
        for (uint32_t j = 0; j < k; j++)
            if (g->outputs[j] == g->outputs[k]) return false;
    }
    return true;
}

/* A value of the top graph that is called as v is. */
static ot_status same_value(ot_graph *top, const ot_value *v, ot_id *out)
{
    *out = ot_value_new(top, v->name, v->dtype, v->rank, v->dims);
    if (*out == OT_NONE) return nomem(top->model);
    ot_value *x = &top->values[*out];
    x->proto = v->proto;
    x->is_tensor = v->is_tensor;
    x->is_sequence = v->is_sequence;
    return OT_OK;
}

/* The graph's inputs become those of the top graph; in the branch they are values of the
 * enclosing graph, where something reads them. */
static ot_status move_inputs(ot_graph *g, ot_graph *top)
{
    top->inputs = OT_NEW_N(top->model->arena, ot_id, g->n_inputs + 1u);
    if (!top->inputs) return nomem(top->model);
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        ot_value *v = &g->values[g->inputs[k]];
        ot_id at;
        OT_TRY(same_value(top, v, &at));
        ot_value *x = &top->values[at];
        x->is_input = true;
        x->init = v->init;
        x->overridable = v->overridable;
        x->removed = v->removed;
        top->inputs[top->n_inputs++] = at;
        v->is_outer = v->n_uses > 0;
        v->is_input = v->overridable = false;
        v->init = NULL;
    }
    g->n_inputs = 0;
    return OT_OK;
}

/* v, which is captured now, as a constant of g for its nodes: a Reshape to what it is, computed
 * when the model is loaded. */
static ot_status keep_constant(ot_graph *g, ot_id v)
{
    const ot_value x = g->values[v];
    const int64_t rank = x.rank;
    const char *name = ot_fresh_name(g->model, "tile/branch/weight"),
               *label = ot_fresh_name(g->model, "tile/branch/shape");
    ot_id out = name ? ot_value_new(g, name, x.dtype, x.rank, x.dims) : OT_NONE;
    ot_id in[2] = {v, label ? ot_const_i64(g, label, x.dims, 1, &rank) : OT_NONE};
    if (out == OT_NONE || in[1] == OT_NONE) return nomem(g->model);
    OT_TRY(ot_replace_uses(g, v, out));
    ot_id n = ot_node_new(
        g, &(ot_node_def){.op = "Reshape", .name = name, .in = {in, 2}, .out = {&out, 1}});
    if (n == OT_NONE) return nomem(g->model);
    g->nodes[n].is_static = g->values[out].is_const = true;
    return OT_OK;
}

bool *rw_read_by_file(const ot_graph *g, ot_arena *a)
{
    bool *read = OT_NEW_N(a, bool, g->n_values + 1u);
    for (uint32_t k = 0; read && k < g->n_nodes; k++) {
        const ot_node *n = &g->nodes[k];
        bool opaque = false;
        for (uint32_t j = 0; j < n->n_attrs; j++) opaque |= n->attrs[j].kind == OT_ATTR_OPAQUE;
        for (uint32_t j = 0; j < n->n_captured && opaque && !n->dead; j++)
            read[n->captured[j]] = true;
    }
    return read;
}

/* Weights stay initializers of the top graph; those that the file's own subgraphs read stay where
 * they are. */
static ot_status move_weights(ot_graph *g, ot_graph *top)
{
    bool *kept = OT_NEW_N(
        g->model->arena, bool,
        g->n_values + 1u); /* a node of g reads it that asks for a constant of its own graph */
    const bool *named = rw_read_by_file(g, g->model->arena);
    if (!kept || !named) return nomem(top->model);
    for (uint32_t k = 0; k < g->n_nodes; k++)
        for (uint32_t j = 0; j < g->nodes[k].n_in && !g->nodes[k].dead; j++)
            if (g->nodes[k].in[j] != OT_NONE)
                kept[g->nodes[k].in[j]] |= !rw_packs_captured(g, &g->nodes[k], j);
    const uint32_t n_values = g->n_values;
    for (uint32_t k = 0; k < n_values; k++) {
        ot_value *v = &g->values[k];
        ot_id at;
        if (!v->init || v->removed || v->is_output || v->n_uses == 0 || named[k] ||
            !rw_stays_outer(g->model, v->init) || (g->model->data_file && kept[k]))
            continue;
        OT_TRY(same_value(top, v, &at));
        top->values[at].init = v->init;
        v->init = NULL;
        v->is_outer = v->is_const = true;
        if (kept[k]) OT_TRY(keep_constant(g, k));
    }
    return OT_OK;
}

/* A value made here; rank -1: no shape is stated. */
static ot_status new_value(ot_graph *g, const char *base, ot_dtype type, int32_t rank, ot_id *out)
{
    const char *name = ot_fresh_name(g->model, base);
    *out = name ? ot_value_new(g, name, type, rank, NULL) : OT_NONE;
    return *out == OT_NONE ? nomem(g->model) : OT_OK;
}

/* attr: NULL, or the one attribute. */
static ot_status new_node(ot_graph *g, const char *op, const char *base, const ot_id *in,
                          uint32_t n_in, ot_id out, const ot_attr *attr)
{
    const char *name = ot_fresh_name(g->model, base);
    if (!name || ot_node_new(g, &(ot_node_def){.op = op,
                                               .name = name,
                                               .in = {in, n_in},
                                               .out = {&out, 1},
                                               .attrs = {attr, attr != NULL}}) == OT_NONE)
        return nomem(g->model);
    return OT_OK;
}

static ot_status new_sequence(ot_graph *g, const char *base, ot_dtype type, ot_id *out)
{
    OT_TRY(new_value(g, base, type, -1, out));
    g->values[*out].is_tensor = false;
    g->values[*out].is_sequence = true;
    return OT_OK;
}

/* Element types of which there are sequences, and that every runtime cuts. */
static bool is_sequence_element(ot_dtype type)
{
    return type == OT_F32 || type == OT_F16 || type == OT_F64 || type == OT_BOOL || type == OT_U8 ||
           type == OT_I8 || type == OT_I32 || type == OT_I64;
}

/* One element of an input, or of a constant where no input has one. */
static ot_status take_element(ot_graph *top, ot_id *item)
{
    static const int64_t zeros[OT_RANK_MAX];
    int64_t ones[OT_RANK_MAX];
    ot_id in[3] = {OT_NONE, OT_NONE, OT_NONE};
    for (int k = 0; k < OT_RANK_MAX; k++) ones[k] = 1;
    for (uint32_t k = 0; k < top->n_inputs && in[0] == OT_NONE; k++) {
        const ot_value *v = &top->values[top->inputs[k]];
        if (v->is_tensor && !v->init && v->rank > 0 && is_sequence_element(v->dtype))
            in[0] = top->inputs[k];
    }
    if (in[0] == OT_NONE) {
        const char *name = ot_fresh_name(top->model, "tile/branch/one");
        *item = name ? ot_const_i64(top, name, ones, 0, NULL) : OT_NONE;
        return *item == OT_NONE ? nomem(top->model) : OT_OK;
    }
    const ot_value x = top->values[in[0]];
    const int64_t rank = x.rank;
    const char *const names[] = {ot_fresh_name(top->model, "tile/branch/first"),
                                 ot_fresh_name(top->model, "tile/branch/last"),
                                 ot_fresh_name(top->model, "tile/branch/element")};
    if (!names[0] || !names[1] || !names[2]) return nomem(top->model);
    in[1] = ot_const_i64(top, names[0], zeros, 1, &rank);
    in[2] = ot_const_i64(top, names[1], ones, 1, &rank);
    if (in[1] == OT_NONE || in[2] == OT_NONE) return nomem(top->model);
    for (int32_t k = 0; k < x.rank; k++)
        if (x.dims[k] < 1) ones[k] = x.dims[k]; /* none, or not known */
    *item = ot_value_new(top, names[2], x.dtype, x.rank, ones);
    if (*item == OT_NONE) return nomem(top->model);
    return ot_node_new(
               top,
               &(ot_node_def){.op = "Slice", .name = names[2], .in = {in, 3}, .out = {item, 1}}) ==
                   OT_NONE
               ? nomem(top->model)
               : OT_OK;
}

/* The sequence, and true, which is computed from it. */
static ot_status write_condition(ot_graph *top, ot_id *sequence, ot_id *condition)
{
    const ot_attr to = ot_mk_int("to", OT_BOOL);
    ot_id item[2], both, length;
    OT_TRY(take_element(top, &item[0]));
    item[1] = item[0];
    const ot_dtype type = top->values[item[0]].dtype;
    OT_TRY(new_sequence(top, "tile/branch/two", type, &both));
    OT_TRY(new_sequence(top, "tile/branch/sequence", type, sequence));
    OT_TRY(new_value(top, "tile/branch/length", OT_I64, 0, &length));
    OT_TRY(new_value(top, "tile/branch/condition", OT_BOOL, 0, condition));
    OT_TRY(new_node(top, "SequenceConstruct", "tile/branch/construct", item, 2, both, NULL));
    OT_TRY(new_node(top, "SequenceErase", "tile/branch/erase", &both, 1, *sequence, NULL));
    OT_TRY(new_node(top, "SequenceLength", "tile/branch/count", sequence, 1, length, NULL));
    return new_node(top, "Cast", "tile/branch/cast", &length, 1, *condition, &to);
}

/* What the branch reads of the sequence. */
static ot_status read_sequence(ot_graph *g, const ot_value *sequence, ot_id *length)
{
    ot_id at = ot_value_new(g, sequence->name, sequence->dtype, -1, NULL);
    if (at == OT_NONE) return nomem(g->model);
    g->values[at].is_outer = true;
    g->values[at].is_tensor = false;
    g->values[at].is_sequence = true;
    OT_TRY(new_value(g, "tile/branch/read", OT_I64, 0, length));
    return new_node(g, "SequenceLength", "tile/branch/read", &at, 1, *length, NULL);
}

/* A tensor of v's type and rank: nothing in it, or one zero where there are no axes. */
static ot_status write_empty(ot_graph *g, const ot_value *v, ot_id *out)
{
    static const int64_t none[OT_RANK_MAX];
    static const double zero[2];
    ot_tensor *t = OT_NEW(g->model->arena, ot_tensor);
    if (!t) return nomem(g->model);
    *t = (ot_tensor){.dtype = v->dtype, .rank = (uint32_t)v->rank, .dims = none, .data = zero};
    t->bytes = v->rank == 0 ? (size_t)ot_dtype_bits(v->dtype) / 8 : 0;
    const ot_attr value = ot_mk_tensor("value", t);
    OT_TRY(new_value(g, "tile/branch/empty", v->dtype, 0, out));
    OT_TRY(ot_value_set_shape(g, *out, v->rank, none));
    g->values[*out].is_output = true;
    return new_node(g, "Constant", "tile/branch/empty", NULL, 0, *out, &value);
}

/* The branch that is never taken. */
static ot_status write_never(ot_graph *top, const ot_graph *g, ot_graph **out)
{
    const char *name = ot_fresh_name(top->model, "tile/branch/never");
    ot_graph *never = *out = name ? ot_graph_new(top->model, top, name) : NULL;
    if (!never) return nomem(top->model);
    never->outputs = OT_NEW_N(top->model->arena, ot_id, g->n_outputs);
    if (!never->outputs) return nomem(top->model);
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        OT_TRY(write_empty(never, &g->values[g->outputs[k]], &never->outputs[k]));
        never->n_outputs++;
    }
    OT_TRY(ot_topo_sort(never));
    ot_confirm(never, never->props | OT_P_SHAPES);
    return OT_OK;
}

static ot_status write_if(ot_graph *top, ot_graph *g, ot_id condition, ot_graph *never)
{
    const ot_attr branches[2] = {ot_mk_graph("then_branch", g), ot_mk_graph("else_branch", never)};
    const char *name = ot_fresh_name(top->model, "tile/branch");
    top->outputs = OT_NEW_N(top->model->arena, ot_id, g->n_outputs);
    if (!name || !top->outputs) return nomem(top->model);
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        OT_TRY(same_value(top, &g->values[g->outputs[k]], &top->outputs[k]));
        top->values[top->outputs[k]].is_output = true;
        top->n_outputs++;
    }
    if (ot_node_new(top, &(ot_node_def){.op = "If",
                                        .name = name,
                                        .in = {&condition, 1},
                                        .out = {top->outputs, top->n_outputs},
                                        .attrs = {branches, 2}}) == OT_NONE)
        return nomem(top->model);
    return OT_OK;
}

/* The runtime knows v's extents when the first part of it is made (loop.c). */
static bool is_late_stack(const ot_graph *g, const ot_value *v)
{
    const ot_node *n = &g->nodes[v->producer];
    const ot_attr *body = n->op == OT_OP_OPAQUE ? NULL : ot_attr_find(n, "body");
    if (!body || body->kind != OT_ATTR_GRAPH || v->out_index >= body->g->n_outputs) return false;
    return body->g->values[body->g->outputs[v->out_index]].is_unstated;
}

/* Results whose extents the branch states are taken before it runs, and in later runs at places
 * that its tensors could have had. What is joined from a sequence need not state them: it is
 * taken when it is made (super-resolution x4: 45 MB, 39 this way). */
static ot_status state_no_extents(ot_graph *g, bool hides)
{
    int64_t none[OT_RANK_MAX];
    for (int k = 0; k < OT_RANK_MAX; k++) none[k] = OT_DIM_UNKNOWN;
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        ot_value *v = &g->values[g->outputs[k]];
        if (is_late_stack(g, v)) {
            v->is_unstated = true;
            v->proto = NULL; /* which the file is written from */
            continue;
        }
        if (!hides && strcmp(g->nodes[v->producer].op_type, "ConcatFromSequence") != 0) continue;
        OT_TRY(ot_value_set_shape(g, g->outputs[k], v->rank, none));
        v->proto = NULL; /* which the file is written from */
    }
    return OT_OK;
}

/* requires USES, SHAPES of m->graph, and ot_branch_fits. keeps SHAPES; establishes ORDER, USES. */
ot_status ot_branch(ot_model *m, bool hides)
{
    ot_graph *g = m->graph, *top = ot_graph_new(m, NULL, g->name), *never = NULL;
    const char *name = ot_fresh_name(m, "tile/branch/body");
    ot_id sequence = OT_NONE, condition = OT_NONE, one = OT_NONE;
    if (!top || !name) return nomem(m);
    OT_TRY(move_inputs(g, top));
    OT_TRY(write_condition(top, &sequence, &condition));
    OT_TRY(read_sequence(g, &top->values[sequence], &one));
    OT_TRY(rw_hide_weights(g, one));
    OT_TRY(move_weights(g, top));
    if (hides) OT_TRY(rw_hide_extents(g, one));
    OT_TRY(ot_topo_sort(g));
    ot_confirm(g, g->props | OT_P_SHAPES);
    g->name = name;
    g->parent = top;
    m->graph = top;
    OT_TRY(write_never(top, g, &never));
    OT_TRY(write_if(top, g, condition, never));
    OT_TRY(state_no_extents(g, hides));
    OT_TRY(ot_topo_sort(top));
    ot_confirm(top, top->props | OT_P_SHAPES);
    return ot_assure(top, OT_P_ORDER | OT_P_USES | OT_P_SHAPES);
}

/* A tensor of so many elements, which nobody reads: it comes before all that the branch makes. */
static ot_status write_block(ot_graph *top, const ot_value *sequence, int64_t elements,
                             ot_graph **out)
{
    const int64_t rank = 1;
    const ot_attr to = ot_mk_int("to", OT_BOOL);
    const char *name = ot_fresh_name(top->model, "tile/branch/block/body"),
               *label = ot_fresh_name(top->model, "tile/branch/block/elements");
    ot_graph *g = *out = name && label ? ot_graph_new(top->model, top, name) : NULL;
    ot_id times[2], shape, block, size, taken;
    if (!g) return nomem(top->model);
    OT_TRY(read_sequence(g, sequence, &times[0]));
    times[1] = ot_const_i64(g, label, &elements, 1, &rank);
    if (times[1] == OT_NONE) return nomem(top->model);
    OT_TRY(new_value(g, "tile/branch/block/shape", OT_I64, 0, &shape));
    OT_TRY(new_value(g, "tile/branch/block/zeros", OT_F32, 0, &block));
    OT_TRY(new_value(g, "tile/branch/block/size", OT_I64, 0, &size));
    OT_TRY(new_value(g, "tile/branch/block/is_taken", OT_BOOL, 0, &taken));
    OT_TRY(ot_value_set_shape(g, shape, 1, &rank));
    OT_TRY(ot_value_set_shape(g, block, 1, &elements));
    g->values[block].is_unstated = true;
    OT_TRY(new_node(g, "Mul", "tile/branch/block/shape", times, 2, shape, NULL));
    OT_TRY(new_node(g, "ConstantOfShape", "tile/branch/block/zeros", &shape, 1, block, NULL));
    OT_TRY(new_node(g, "Size", "tile/branch/block/size", &block, 1, size, NULL));
    OT_TRY(new_node(g, "Cast", "tile/branch/block/cast", &size, 1, taken, &to));
    g->outputs = OT_NEW(top->model->arena, ot_id);
    if (!g->outputs) return nomem(top->model);
    g->outputs[g->n_outputs++] = taken;
    g->values[taken].is_output = true;
    OT_TRY(ot_topo_sort(g));
    ot_confirm(g, g->props | OT_P_SHAPES);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}

ot_status ot_first_block(ot_model *m, int64_t bytes)
{
    ot_graph *top = m->graph, *body = NULL, *never = NULL;
    const char *name = ot_fresh_name(m, "tile/branch/block");
    ot_id branch = OT_NONE, sequence = OT_NONE, done;
    for (uint32_t k = 0; k < top->n_nodes; k++) {
        if (strcmp(top->nodes[k].op_type, "If") == 0) branch = k;
        if (strcmp(top->nodes[k].op_type, "SequenceErase") == 0) sequence = top->nodes[k].out[0];
    }
    if (bytes <= 0 || branch == OT_NONE || sequence == OT_NONE) return OT_OK;
    if (!name) return nomem(m);
    const ot_value read = top->values[sequence];
    OT_TRY(write_block(top, &read, ot_max(bytes / (int64_t)sizeof(float), 1), &body));
    OT_TRY(write_never(top, body, &never));
    OT_TRY(new_value(top, "tile/branch/block/done", OT_BOOL, 0, &done));
    const ot_attr branches[2] = {ot_mk_graph("then_branch", body),
                                 ot_mk_graph("else_branch", never)};
    ot_id *condition = top->nodes[branch].in;
    if (ot_node_new(top, &(ot_node_def){.op = "If",
                                        .name = name,
                                        .in = {condition, 1},
                                        .out = {&done, 1},
                                        .attrs = {branches, 2}}) == OT_NONE)
        return nomem(m);
    top->nodes[branch].in[0] = done;
    OT_TRY(ot_topo_sort(top));
    ot_confirm(top, top->props | OT_P_SHAPES);
    return ot_assure(top, OT_P_ORDER | OT_P_USES | OT_P_SHAPES);
}
