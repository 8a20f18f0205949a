/* GraphProto -> ot_graph.
 *
 * Values are made first, in the order inputs, initializers, node outputs, so that nodes may
 * stand in any order in the file (real ones are not always sorted) and every name a node reads
 * can be looked up:
 *
 *   opsets -> inputs -> initializers -> node outputs -> shapes (output, value_info) -> nodes ->
 *   outputs
 *
 * Rules checked here: one definition per name, no reads of undefined names, one version per domain.
 * A node that we cannot know for certain (other domain, old opset, model-local function, ambiguous
 * attributes) becomes OT_OP_OPAQUE: carried through unchanged, never looked into.
 */
#include "import.h"

#define OLDEST_OPSET 7 /* before it broadcasting was an attribute; such operators stay opaque */

/* ---- labels for messages ---- */

#define LABEL_MAX (2 * OT_NAME_SHOWN + 64)

static void label_node(const Onnx__NodeProto *p, size_t index, char label[LABEL_MAX])
{
    if (p->name && p->name[0])
        snprintf(label, LABEL_MAX, "node '%.*s' (%.*s)", OT_NAME_SHOWN, p->name, OT_NAME_SHOWN,
                 ot_text(p->op_type));
    else
        snprintf(label, LABEL_MAX, "node #%zu (%.*s)", index, OT_NAME_SHOWN, ot_text(p->op_type));
}

/* ---- opsets ---- */

/* Of a domain that is imported twice the last counts, as for ONNX Runtime; "ai.onnx" is "". */
ot_status ot_import_opsets(ot_importer *im, Onnx__OperatorSetIdProto *const *imports, size_t n)
{
    im->opsets = ot_map_new(im->scratch);
    if (!im->opsets) return ot_fail_nomem(im->d);
    for (size_t k = 0; k < n; k++) {
        const Onnx__OperatorSetIdProto *o = imports[k];
        const char *domain = ot_domain(o->domain);
        if (o->version < 0 || o->version > INT32_MAX)
            return ot_fail(im->d, OT_E_INPUT,
                           "opset import of domain '%.*s': impossible version %lld", OT_NAME_SHOWN,
                           domain, (long long)o->version);
        if (!ot_map_put(im->opsets, domain, (uint32_t)o->version)) return ot_fail_nomem(im->d);
    }
    uint32_t version = ot_map_get(im->opsets, "");
    if (version == OT_NONE) version = n == 0 && im->mp->ir_version < 3 ? 1 : 0;
    im->opset = (int32_t)version;
    return OT_OK;
}

/* ---- names ---- */

ot_id ot_import_lookup(ot_importer *im, const char *name, bool *nomem)
{
    ot_id v = ot_value_find(im->g, name);
    *nomem = false;
    if (v != OT_NONE || !name[0]) return v;
    const ot_graph *up = im->g->parent;
    while (up && ot_value_find(up, name) == OT_NONE) up = up->parent;
    if (!up) return OT_NONE;
    v = ot_value_new(im->g, name, OT_DT_UNKNOWN, -1, NULL);
    *nomem = v == OT_NONE;
    if (v != OT_NONE) im->g->values[v].is_outer = true;
    return v;
}

/* ---- values ---- */

/* Take dtype and shape from a TypeProto where the value has none yet. */
static ot_status apply_type(ot_importer *im, ot_id id, const Onnx__TypeProto *type)
{
    ot_value *v = &im->g->values[id];
    if (!type || type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET) return OT_OK;
    if (type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
        if (v->init)
            return ot_fail(im->d, OT_E_INPUT, "initializer '%.*s' is listed as no tensor",
                           OT_NAME_SHOWN, v->name);
        v->is_tensor = false;
        return OT_OK;
    }
    const Onnx__TypeProto__Tensor *t = type->tensor_type;
    if (v->dtype == OT_DT_UNKNOWN && t->elem_type > 0 && t->elem_type <= OT_I2)
        v->dtype = (ot_dtype)t->elem_type;
    if (v->rank >= 0 || !t->shape) return OT_OK;
    if (t->shape->n_dim > OT_RANK_MAX)
        return ot_fail(im->d, OT_E_INPUT, "value '%.*s': %zu dimensions (at most %d are supported)",
                       OT_NAME_SHOWN, v->name, t->shape->n_dim, OT_RANK_MAX);
    int64_t dims[OT_RANK_MAX];
    for (size_t k = 0; k < t->shape->n_dim; k++) {
        const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[k];
        bool fixed = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
                     d->dim_value >= 0;
        dims[k] = fixed ? d->dim_value : OT_DIM_UNKNOWN; /* some writers say -1 for "any" */
    }
    return ot_value_set_shape(im->g, id, (int32_t)t->shape->n_dim, dims);
}

static ot_status import_inputs(ot_importer *im)
{
    ot_graph *g = im->g;
    g->inputs = OT_NEW_N(im->m->arena, ot_id, im->gp->n_input);
    if (!g->inputs) return ot_fail_nomem(im->d);
    for (size_t k = 0; k < im->gp->n_input; k++) {
        const Onnx__ValueInfoProto *p = im->gp->input[k];
        const char *name = ot_text(p->name);
        if (!name[0]) return ot_fail(im->d, OT_E_INPUT, "graph input #%zu has no name", k);
        if (ot_value_find(g, name) != OT_NONE)
            return ot_fail(im->d, OT_E_INPUT, "graph input '%.*s' is listed twice", OT_NAME_SHOWN,
                           name);
        ot_id v = ot_value_new(g, name, OT_DT_UNKNOWN, -1, NULL);
        if (v == OT_NONE) return ot_fail_nomem(im->d);
        OT_TRY(apply_type(im, v, p->type));
        g->values[v].is_input = true;
        g->values[v].proto = p;
        g->inputs[g->n_inputs++] = v;
    }
    return OT_OK;
}

bool ot_fits_stated(const ot_value *v, const ot_tensor *t)
{
    bool fits = v->rank < 0 || v->rank == (int32_t)t->rank;
    for (int32_t k = 0; k < v->rank && fits; k++)
        fits = v->dims[k] == OT_DIM_UNKNOWN || v->dims[k] == t->dims[k];
    return fits;
}

/* An initializer that is listed as an input has the type the input states, as far as it states one.
 */
static ot_status check_listed(ot_importer *im, const ot_value *v, const ot_tensor *t,
                              const char *where)
{
    if (!ot_fits_stated(v, t))
        return ot_fail(im->d, OT_E_INPUT, "%s: its shape is not that of the input of this name",
                       where);
    if (v->dtype != OT_DT_UNKNOWN && v->dtype != t->dtype)
        return ot_fail(im->d, OT_E_INPUT,
                       "%s: its type (%s) is not that of the input of this name (%s)", where,
                       ot_dtype_name(t->dtype), ot_dtype_name(v->dtype));
    return OT_OK;
}

static ot_status import_initializer(ot_importer *im, const Onnx__TensorProto *p)
{
    ot_graph *g = im->g;
    const char *name = ot_text(p->name);
    if (!name[0]) return OT_OK; /* nothing can read it; it is written back as it was */
    char where[LABEL_MAX];
    snprintf(where, sizeof where, "initializer '%.*s'", OT_NAME_SHOWN, name);
    const ot_tensor *t;
    OT_TRY(ot_import_tensor(im, p, where, &t));
    ot_id v = ot_value_find(g, name);
    if (v != OT_NONE && g->values[v].init)
        return ot_fail(im->d, OT_E_INPUT, "%s is defined twice", where);
    if (v != OT_NONE && !g->values[v].is_tensor)
        return ot_fail(im->d, OT_E_INPUT, "%s is listed as no tensor", where);
    if (v != OT_NONE) OT_TRY(check_listed(im, &g->values[v], t, where));
    if (v == OT_NONE) v = ot_value_new(g, name, t->dtype, (int32_t)t->rank, t->dims);
    if (v == OT_NONE) return ot_fail_nomem(im->d);
    ot_value *val = &g->values[v];
    val->overridable = val->is_input && im->mp->ir_version >= 4 && g == im->m->graph;
    val->init = t;
    if (val->dtype == OT_DT_UNKNOWN) val->dtype = t->dtype;
    /* an override may have another size where the input leaves it open */
    if (!val->overridable || val->rank < 0)
        OT_TRY(ot_value_set_shape(g, v, (int32_t)t->rank, t->dims));
    if (g != im->m->graph) return OT_OK;
    if (!ot_add_i64((int64_t)im->m->weight_bytes, (int64_t)t->bytes,
                    (int64_t *)&im->m->weight_bytes))
        return ot_fail(im->d, OT_E_INPUT, "%s: the initializers are too large to be counted",
                       where);
    return OT_OK;
}

static ot_status import_sparse(ot_importer *im, const Onnx__SparseTensorProto *p)
{
    const char *name = p->values ? ot_text(p->values->name) : "";
    if (!name[0]) return OT_OK;
    ot_id v = ot_value_find(im->g, name);
    if (v != OT_NONE && (im->g->values[v].init || !im->g->values[v].is_input))
        return ot_fail(im->d, OT_E_INPUT, "initializer '%.*s' is defined twice", OT_NAME_SHOWN,
                       name);
    if (v == OT_NONE) v = ot_value_new(im->g, name, OT_DT_UNKNOWN, -1, NULL);
    if (v == OT_NONE) return ot_fail_nomem(im->d);
    im->g->values[v].is_tensor = false;
    return OT_OK;
}

static ot_status import_node_outputs(ot_importer *im, const Onnx__NodeProto *p, size_t index)
{
    for (size_t k = 0; k < p->n_output; k++) {
        const char *name = ot_text(p->output[k]);
        if (!name[0]) continue; /* omitted */
        if (ot_value_find(im->g, name) != OT_NONE) {
            char label[LABEL_MAX];
            label_node(p, index, label);
            return ot_fail(im->d, OT_E_INPUT, "%s: its output '%.*s' is already defined elsewhere",
                           label, OT_NAME_SHOWN, name);
        }
        if (ot_value_new(im->g, name, OT_DT_UNKNOWN, -1, NULL) == OT_NONE)
            return ot_fail_nomem(im->d);
    }
    return OT_OK;
}

/* Types from value_info; the first that states something wins. */
static ot_status import_value_info(ot_importer *im, const Onnx__ValueInfoProto *p)
{
    ot_id v = ot_value_find(im->g, ot_text(p->name));
    if (v == OT_NONE) return OT_OK; /* left over from an earlier life of the file */
    if (!im->g->values[v].proto) im->g->values[v].proto = p;
    return apply_type(im, v, p->type);
}

static ot_status import_outputs(ot_importer *im)
{
    ot_graph *g = im->g;
    g->outputs = OT_NEW_N(im->m->arena, ot_id, im->gp->n_output);
    if (!g->outputs) return ot_fail_nomem(im->d);
    for (size_t k = 0; k < im->gp->n_output; k++) {
        const char *name = ot_text(im->gp->output[k]->name);
        bool nomem;
        ot_id v = ot_import_lookup(im, name, &nomem);
        if (nomem) return ot_fail_nomem(im->d);
        if (v == OT_NONE)
            return ot_fail(im->d, OT_E_INPUT, "graph output '%.*s' is never defined", OT_NAME_SHOWN,
                           name);
        OT_TRY(import_value_info(im, im->gp->output[k]));
        g->values[v].is_output = true;
        g->outputs[g->n_outputs++] = v;
    }
    return OT_OK;
}

static ot_status import_values(ot_importer *im)
{
    OT_TRY(import_inputs(im));
    for (size_t k = 0; k < im->gp->n_initializer; k++)
        OT_TRY(import_initializer(im, im->gp->initializer[k]));
    for (size_t k = 0; k < im->gp->n_sparse_initializer; k++)
        OT_TRY(import_sparse(im, im->gp->sparse_initializer[k]));
    for (size_t k = 0; k < im->gp->n_node; k++) OT_TRY(import_node_outputs(im, im->gp->node[k], k));
    OT_TRY(import_outputs(im));
    for (size_t k = 0; k < im->gp->n_value_info; k++)
        OT_TRY(import_value_info(im, im->gp->value_info[k]));
    return OT_OK;
}

/* ---- nodes ---- */

static bool same_attr_twice(const Onnx__NodeProto *p)
{
    for (size_t k = 0; k < p->n_attribute; k++)
        for (size_t j = 0; j < k; j++)
            if (strcmp(ot_text(p->attribute[k]->name), ot_text(p->attribute[j]->name)) == 0)
                return true;
    return false;
}

/* *op: what the node is; *version: of its domain; *calls: it calls a function of the model. */
static ot_status classify(ot_importer *im, const Onnx__NodeProto *p, ot_op *op, int32_t *version,
                          bool *calls)
{
    const char *domain = ot_domain(p->domain);
    uint32_t imported = ot_map_get(im->opsets, domain), function;
    *version = !domain[0] ? im->opset : imported == OT_NONE ? 0 : (int32_t)imported;
    *op = OT_OP_OPAQUE;
    bool nomem;
    *calls = ot_calls_function(im, p, &function, &nomem);
    if (*calls) return OT_OK;
    if (nomem) return ot_fail_nomem(im->d);
    /* more attributes than any operator has would make the pairwise check slow */
    if (p->n_attribute > 64 || same_attr_twice(p)) return OT_OK;
    if (domain[0] ? strcmp(domain, OT_TILE_DOMAIN) != 0 : *version < OLDEST_OPSET) return OT_OK;
    *op = ot_op_of(domain, p->op_type);
    return OT_OK;
}

/* Ids of the values a node reads, OT_NONE for omitted ones. */
static ot_status resolve(ot_importer *im, const Onnx__NodeProto *p, const char *label, ot_id *in)
{
    for (size_t k = 0; k < p->n_input; k++) {
        const char *name = ot_text(p->input[k]);
        bool nomem;
        in[k] = ot_import_lookup(im, name, &nomem);
        if (nomem) return ot_fail_nomem(im->d);
        if (name[0] && in[k] == OT_NONE)
            return ot_fail(im->d, OT_E_INPUT,
                           "%s: input %zu reads '%.*s', which is defined nowhere", label, k,
                           OT_NAME_SHOWN, name);
    }
    return OT_OK;
}

/* Attributes that say nothing in the opset that the model is read as. */
static void drop_attrs(const Onnx__NodeProto *p, ot_attr *attrs, uint32_t *n)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < *n; k++)
        if (!ot_raise_drops(p, attrs[k].name)) attrs[kept++] = attrs[k];
    *n = kept;
}

static ot_status import_node(ot_importer *im, const Onnx__NodeProto *p, size_t index)
{
    char label[LABEL_MAX];
    label_node(p, index, label);
    if (!p->op_type || !p->op_type[0])
        return ot_fail(im->d, OT_E_INPUT, "%s: it has no op_type", label);
    size_t n_links = p->n_input > p->n_output ? p->n_input : p->n_output;
    if (n_links >= OT_NONE || p->n_attribute >= OT_NONE)
        return ot_fail(im->d, OT_E_INPUT, "%s: too many inputs, outputs or attributes", label);
    ot_op op;
    int32_t version;
    bool calls;
    OT_TRY(classify(im, p, &op, &version, &calls));
    ot_attr *attrs;
    OT_TRY(ot_import_attrs(im, p, label, op != OT_OP_OPAQUE, &attrs));
    ot_id *in = OT_NEW_N(im->scratch, ot_id, p->n_input),
          *out = OT_NEW_N(im->scratch, ot_id, p->n_output);
    if (!in || !out) return ot_fail_nomem(im->d);
    OT_TRY(resolve(im, p, label, in));
    for (size_t k = 0; k < p->n_output; k++) /* "" is no value's name: omitted */
        out[k] = ot_value_find(im->g, ot_text(p->output[k]));
    uint32_t n_attrs = (uint32_t)p->n_attribute;
    if (im->raised) drop_attrs(p, attrs, &n_attrs);
    ot_id id = ot_node_new(im->g, &(ot_node_def){.op = p->op_type,
                                                 .domain = ot_domain(p->domain),
                                                 .name = ot_text(p->name),
                                                 .in = {in, (uint32_t)p->n_input},
                                                 .out = {out, (uint32_t)p->n_output},
                                                 .attrs = {attrs, n_attrs}});
    if (id == OT_NONE) return ot_fail_nomem(im->d);
    ot_node *n = &im->g->nodes[id];
    n->op = op;
    n->calls_function = calls;
    n->version = version;
    n->source = (uint32_t)index;
    n->proto = p;
    ot_id *captured;
    uint32_t n_captured;
    OT_TRY(ot_import_captures(im, p, label, &captured, &n_captured));
    n->captured = captured;
    n->n_captured = n_captured;
    return OT_OK;
}

ot_status ot_import_contents(ot_importer *im)
{
    const Onnx__GraphProto *gp = im->gp;
    im->g->name = ot_text(gp->name);
    im->g->proto = gp;
    if (gp->n_node >= OT_NONE || gp->n_input >= OT_NONE || gp->n_output >= OT_NONE)
        return ot_fail(im->d, OT_E_INPUT, "the graph is too large");
    const size_t n_values = gp->n_node + gp->n_input + gp->n_initializer;
    if (!ot_graph_reserve(im->g, gp->n_node, n_values) ||
        !ot_map_reserve(im->g->by_name, n_values) ||
        !ot_map_reserve(im->m->names, n_values + gp->n_node))
        return ot_fail_nomem(im->d);
    OT_TRY(import_values(im));
    for (size_t k = 0; k < gp->n_node; k++) OT_TRY(import_node(im, gp->node[k], k));
    return OT_OK;
}

ot_status ot_import_graph(ot_importer *im)
{
    OT_TRY(ot_import_opsets(im, im->mp->opset_import, im->mp->n_opset_import));
    im->src->opset = im->opset;
    im->opset = im->m->opset = ot_raised_opset(im->mp, im->opset);
    im->raised = im->opset != im->src->opset;
    OT_TRY(ot_import_contents(im));
    OT_TRY(ot_import_names(im));
    im->src->n_values = im->g->n_values;
    OT_TRY(ot_raise_nodes(im));
    OT_TRY(ot_lift_constants(im));
    OT_TRY(ot_inline_functions(im));
    OT_TRY(ot_unfuse_nodes(im));
    OT_TRY(ot_unfuse_attention(im));
    OT_TRY(ot_unblock_nodes(im));
    OT_TRY(ot_turn_nhwc_nodes(im));
    return ot_topo_sort(im->g);
}

const char *ot_dim_name(const ot_value *input, uint32_t k)
{
    const Onnx__ValueInfoProto *p = input->proto;
    const Onnx__TypeProto *type = p ? p->type : NULL;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type)
        return NULL;
    const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
    if (!shape || k >= shape->n_dim ||
        shape->dim[k]->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
        return NULL;
    return shape->dim[k]->dim_param && shape->dim[k]->dim_param[0] ? shape->dim[k]->dim_param
                                                                   : NULL;
}
