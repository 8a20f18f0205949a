/* A copy of a model's graph to try a rewriting on: nodes, values and lists are its own, what
 * nobody edits (names, attributes, contents of tensors, shapes) is borrowed from the original,
 * which must live longer.
 */
#include "ir.h"

static bool copy_ids(ot_arena *a, ot_id **ids, uint32_t n)
{
    if (n == 0) return true;
    *ids = ot_memdup(a, *ids, n * sizeof **ids);
    return *ids != NULL;
}

/* *ids [n] become a copy of themselves at `at`; returns its end. */
static ot_id *move_ids(ot_id *at, ot_id **ids, uint32_t n)
{
    if (n == 0) return at;
    memcpy(at, *ids, n * sizeof **ids);
    *ids = at;
    return at + n;
}

/* Room for n, and for what a pass adds: a large table is not made anew for a few more. */
static size_t some_more(uint32_t n) { return (size_t)n + n / 4 + 1; }

static bool copy_nodes(ot_graph *to, const ot_graph *from, ot_arena *a)
{
    to->cap_nodes = some_more(from->n_nodes);
    to->nodes = OT_NEW_N(a, ot_node, to->cap_nodes);
    if (!to->nodes) return false;
    to->n_nodes = from->n_nodes;
    size_t total = 0;
    for (uint32_t k = 0; k < from->n_nodes; k++) {
        to->nodes[k] = from->nodes[k];
        total += (size_t)from->nodes[k].n_in + from->nodes[k].n_out + from->nodes[k].n_captured;
    }
    ot_id *block = OT_NEW_N(a, ot_id, total); /* of all lists */
    if (!block) return false;
    for (uint32_t k = 0; k < from->n_nodes; k++) {
        ot_node *n = &to->nodes[k];
        block = move_ids(block, &n->in, n->n_in);
        block = move_ids(block, &n->out, n->n_out);
        block = move_ids(block, &n->captured, n->n_captured);
    }
    return true;
}

static bool copy_values(ot_graph *to, const ot_graph *from, ot_arena *a)
{
    to->cap_values = some_more(from->n_values);
    to->values = OT_NEW_N(a, ot_value, to->cap_values);
    if (!to->values) return false;
    to->n_values = from->n_values;
    for (uint32_t k = 0; k < from->n_values; k++) {
        to->values[k] = from->values[k];
        to->values[k].uses = NULL;
        to->values[k].n_uses = 0;
    }
    to->by_name = ot_map_copy(a, from->by_name);
    if (!to->model->is_sketch) to->model->names = ot_map_copy(a, from->model->names);
    to->model->last_fresh = NULL;
    return to->by_name && to->model->names;
}

/* What is known of the order and of readers holds in the copy, too. */
static bool copy_order(ot_graph *to, const ot_graph *from, ot_arena *a)
{
    const unsigned both = OT_P_ORDER | OT_P_USES;
    if ((from->props & both) != both) return true;
    size_t total = 0;
    for (ot_id v = 0; v < from->n_values; v++) total += from->values[v].n_uses;
    ot_id *block = OT_NEW_N(a, ot_id, total);
    to->order = from->order;
    to->n_order = from->n_order;
    to->quantizes = from->quantizes;
    if (!block || !copy_ids(a, &to->order, to->n_order)) return false;
    for (ot_id v = 0; v < from->n_values; v++) {
        const ot_value *x = &from->values[v];
        if (x->n_uses) memcpy(block, x->uses, x->n_uses * sizeof *block);
        to->values[v].uses = block;
        to->values[v].n_uses = x->n_uses;
        block += x->n_uses;
    }
    to->props |= both;
    return true;
}

ot_model *ot_model_like(const ot_model *m)
{
    ot_model *x = ot_model_new(m->diag);
    if (!x) return NULL;
    x->ir_version = m->ir_version;
    x->opset = m->opset;
    x->static_inputs = m->static_inputs;
    x->resized = m->resized;
    x->shaped = m->shaped;
    x->restated = m->restated;
    x->weight_bytes = m->weight_bytes;
    return x;
}

static ot_status clone(const ot_model *m, bool is_sketch, ot_model **out)
{
    const ot_graph *from = m->graph;
    ot_model *x = ot_model_like(m);
    *out = NULL;
    if (!x) return ot_fail_nomem(m->diag);
    ot_graph *to = x->graph;
    x->is_sketch = is_sketch;
    if (is_sketch) x->names = m->names;
    x->dynamic_dims = m->dynamic_dims;
    x->decomposed = m->decomposed;
    x->n_decomposed = m->n_decomposed;
    x->rematerialised = m->rematerialised;
    x->n_rematerialised = m->n_rematerialised;
    to->name = from->name;
    to->n_inputs = from->n_inputs;
    to->n_outputs = from->n_outputs;
    to->inputs = from->inputs;
    to->outputs = from->outputs;
    bool ok = copy_ids(x->arena, &to->inputs, to->n_inputs) &&
              copy_ids(x->arena, &to->outputs, to->n_outputs) && copy_nodes(to, from, x->arena) &&
              copy_values(to, from, x->arena);
    ot_confirm(to, from->props & OT_P_SHAPES);
    ok = ok && copy_order(to, from, x->arena);
    ot_status s = ok ? ot_assure(to, (from->props & OT_P_SHAPES) | OT_P_ORDER | OT_P_USES)
                     : ot_fail_nomem(m->diag);
    if (s == OT_OK)
        *out = x;
    else
        ot_model_free(x);
    return s;
}

ot_status ot_model_clone(const ot_model *m, ot_model **out) { return clone(m, false, out); }

ot_status ot_model_sketch(const ot_model *m, ot_model **out) { return clone(m, true, out); }

ot_status ot_model_adopt(ot_model *m, const ot_model *copy)
{
    ot_graph *to = m->graph;
    const ot_graph *from = copy->graph;
    bool ok = copy_values(to, from, m->arena) && copy_nodes(to, from, m->arena);
    to->n_inputs = from->n_inputs;
    to->n_outputs = from->n_outputs;
    to->inputs = from->inputs;
    to->outputs = from->outputs;
    ok = ok && copy_ids(m->arena, &to->inputs, to->n_inputs) &&
         copy_ids(m->arena, &to->outputs, to->n_outputs);
    m->opset = copy->opset;
    m->static_inputs = copy->static_inputs;
    m->resized = copy->resized;
    m->shaped = copy->shaped;
    m->restated = copy->restated;
    m->decomposed = copy->decomposed;
    m->n_decomposed = copy->n_decomposed;
    m->rematerialised = copy->rematerialised;
    m->n_rematerialised = copy->n_rematerialised;
    to->props = 0;
    if (!ok) return ot_fail_nomem(m->diag);
    ot_confirm(to, from->props & OT_P_SHAPES);
    return ot_assure(to, (from->props & OT_P_SHAPES) | OT_P_ORDER | OT_P_USES);
}
