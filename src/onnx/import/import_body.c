/* Graphs inside nodes -> ot_graph: the subgraphs of If, Loop and Scan, and the bodies of
 * model-local functions.
 *
 * The importer leaves both in the file's form, since passes never look inside. Whoever runs a
 * model reads them here, one by one. A subgraph sees the values of the graphs around it; a
 * function sees its inputs only, and the attributes of the call:
 *
 *   function f(x) <a: int = 2> { y = Op <axis: int = @a> (x) }     call  z = f <a = 5> (w)
 *                                                                  body  y = Op <axis: int = 5> (x)
 *
 * A reference to an attribute (@a) is replaced by the call's, else by the function's default;
 * without either the attribute is left out. That is done on the file's form, nested subgraphs
 * included, so that everything after sees plain attributes.
 */
#include "import.h"
#include "model_io.h"

#define FUNCTION_DEFAULTS_TAG 11 /* FunctionProto.attribute_proto */

/* ---- setting up ---- */

/* Is this graph, or the one around all the others, a function's body? */
static const Onnx__FunctionProto *function_around(const ot_graph *g)
{
    while (g->parent) g = g->parent;
    const ProtobufCMessage *msg = g->proto;
    return msg && msg->descriptor == &onnx__function_proto__descriptor
               ? (const Onnx__FunctionProto *)msg
               : NULL;
}

/* Fill im->g from im->gp with the operator sets of `f`, or of the model. */
static ot_status fill(ot_importer *im, const Onnx__FunctionProto *f)
{
    im->functions = im->src->functions;
    if (f)
        OT_TRY(ot_import_opsets(im, f->opset_import, f->n_opset_import));
    else
        OT_TRY(ot_import_opsets(im, im->mp->opset_import, im->mp->n_opset_import));
    OT_TRY(ot_import_contents(im));
    return ot_topo_sort(im->g);
}

static ot_status fill_with_scratch(ot_model *m, ot_graph *g, const Onnx__GraphProto *gp,
                                   const Onnx__FunctionProto *f)
{
    ot_source *src = m->source;
    ot_importer im = {.m = m,
                      .d = m->diag,
                      .src = src,
                      .g = g,
                      .mp = src->model,
                      .gp = gp,
                      .scratch = ot_arena_new()};
    if (!im.scratch) return ot_fail_nomem(m->diag);
    ot_status s = fill(&im, f);
    ot_arena_free(im.scratch);
    return s;
}

bool ot_attr_has_graph(const ot_model *m, const ot_attr *a)
{
    const Onnx__AttributeProto *p = m->source ? a->proto : NULL;
    return a->kind == OT_ATTR_GRAPH ? a->g != NULL : p && p->g;
}

ot_status ot_import_body(ot_model *m, const ot_attr *a, ot_graph *outer, ot_graph **out)
{
    const Onnx__AttributeProto *p = m->source ? a->proto : NULL;
    if (!p || !p->g)
        return ot_fail(m->diag, OT_E_INPUT, "attribute '%.*s' holds no graph", OT_NAME_SHOWN,
                       a->name);
    ot_graph *g = ot_graph_new(m, outer, ot_text(p->g->name));
    if (!g) return ot_fail_nomem(m->diag);
    OT_TRY(fill_with_scratch(m, g, p->g, function_around(outer)));
    *out = g;
    return OT_OK;
}

/* ---- attributes of a call ---- */

typedef struct call {
    ot_arena *a;
    const Onnx__NodeProto *node;
    Onnx__AttributeProto **defaults; /* [n_defaults] */
    size_t n_defaults, cap_defaults;
    bool nomem;
} call;

static void *arena_alloc(void *data, size_t size)
{
    call *c = data;
    void *p = ot_alloc(c->a, size);
    c->nomem = c->nomem || !p;
    return p;
}

static void arena_keep(void *data, void *p)
{
    (void)data;
    (void)p;
}

/* Defaults came after the protos we build with: they are unpacked from the unknown fields. */
static ot_status read_defaults(call *c, const Onnx__FunctionProto *f, ot_diag *d)
{
    ProtobufCAllocator allocator = {arena_alloc, arena_keep, c};
    for (unsigned k = 0; k < f->base.n_unknown_fields; k++) {
        const ProtobufCMessageUnknownField *u = &f->base.unknown_fields[k];
        if (u->tag != FUNCTION_DEFAULTS_TAG || u->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            continue;
        size_t prefix = 0; /* data begins with the length varint */
        while (prefix < u->len && (u->data[prefix] & 0x80)) prefix++;
        if (prefix >= u->len) continue;
        const uint8_t *bytes = u->data + prefix + 1;
        size_t n = u->len - prefix - 1;
        OT_TRY(ot_pb_scan(bytes, n, &onnx__attribute_proto__descriptor, d));
        Onnx__AttributeProto *a = onnx__attribute_proto__unpack(&allocator, n, bytes);
        if (c->nomem) return ot_fail_nomem(d);
        if (!a)
            return ot_fail(d, OT_E_INPUT, "function '%.*s': a default of an attribute is malformed",
                           OT_NAME_SHOWN, ot_text(f->name));
        if (!OT_PUSH(c->a, c->defaults, c->n_defaults, c->cap_defaults, a)) return ot_fail_nomem(d);
    }
    return OT_OK;
}

static Onnx__AttributeProto *find(Onnx__AttributeProto *const *list, size_t n, const char *name)
{
    for (size_t k = 0; k < n; k++)
        if (strcmp(ot_text(list[k]->name), name) == 0) return list[k];
    return NULL;
}

static const Onnx__GraphProto *substitute_graph(call *c, const Onnx__GraphProto *p);

/* The attribute without references; NULL: it is left out, or memory ran out (c->nomem). */
static Onnx__AttributeProto *substitute_attr(call *c, Onnx__AttributeProto *p)
{
    const char *ref = ot_text(p->ref_attr_name);
    if (ref[0]) {
        Onnx__AttributeProto *given = find(c->node->attribute, c->node->n_attribute, ref);
        if (!given) given = find(c->defaults, c->n_defaults, ref);
        if (!given || strcmp(ot_text(given->name), ot_text(p->name)) == 0) return given;
        Onnx__AttributeProto *named = ot_memdup(c->a, given, sizeof *given);
        c->nomem = c->nomem || !named;
        if (named) named->name = p->name;
        return named;
    }
    if (!p->g) return p;
    Onnx__AttributeProto *own = ot_memdup(c->a, p, sizeof *p);
    const Onnx__GraphProto *g = own ? substitute_graph(c, p->g) : NULL;
    c->nomem = c->nomem || !g;
    if (!g) return NULL;
    own->g = (Onnx__GraphProto *)(uintptr_t)g;
    return own;
}

/* A copy of the node with the call's attributes; the node itself when it refers to none. */
static Onnx__NodeProto *substitute_node(call *c, Onnx__NodeProto *p)
{
    bool any = false;
    for (size_t k = 0; k < p->n_attribute; k++)
        any = any || p->attribute[k]->g || ot_text(p->attribute[k]->ref_attr_name)[0];
    if (!any) return p;
    Onnx__NodeProto *own = ot_memdup(c->a, p, sizeof *p);
    Onnx__AttributeProto **attrs = OT_NEW_N(c->a, Onnx__AttributeProto *, p->n_attribute);
    if (!own || !attrs) {
        c->nomem = true;
        return NULL;
    }
    own->attribute = attrs;
    own->n_attribute = 0;
    for (size_t k = 0; k < p->n_attribute; k++) {
        Onnx__AttributeProto *a = substitute_attr(c, p->attribute[k]);
        if (a) attrs[own->n_attribute++] = a;
    }
    return own;
}

static Onnx__NodeProto **substitute_nodes(call *c, Onnx__NodeProto **nodes, size_t n)
{
    Onnx__NodeProto **own = OT_NEW_N(c->a, Onnx__NodeProto *, n + 1);
    c->nomem = c->nomem || !own;
    for (size_t k = 0; k < n && !c->nomem; k++) own[k] = substitute_node(c, nodes[k]);
    return c->nomem ? NULL : own;
}

/* Depth is bounded by the scan of the file. */
static const Onnx__GraphProto *substitute_graph(call *c, const Onnx__GraphProto *p)
{
    Onnx__GraphProto *own = ot_memdup(c->a, p, sizeof *p);
    if (own) own->node = substitute_nodes(c, p->node, p->n_node);
    return own && own->node ? own : NULL;
}

/* ---- functions ---- */

/* Names as the inputs or outputs of a graph. */
static Onnx__ValueInfoProto **as_values(call *c, char *const *names, size_t n)
{
    Onnx__ValueInfoProto **list = OT_NEW_N(c->a, Onnx__ValueInfoProto *, n + 1);
    for (size_t k = 0; list && k < n; k++) {
        Onnx__ValueInfoProto *v = list[k] = OT_NEW(c->a, Onnx__ValueInfoProto);
        if (!v) return NULL;
        onnx__value_info_proto__init(v);
        v->name = names[k];
    }
    return list;
}

static ot_status function_graph(call *c, const Onnx__FunctionProto *f, ot_diag *d,
                                Onnx__GraphProto *gp)
{
    OT_TRY(read_defaults(c, f, d));
    onnx__graph_proto__init(gp);
    gp->name = f->name;
    gp->n_node = f->n_node;
    gp->n_input = f->n_input;
    gp->n_output = f->n_output;
    gp->node = substitute_nodes(c, f->node, f->n_node);
    gp->input = as_values(c, f->input, f->n_input);
    gp->output = as_values(c, f->output, f->n_output);
    return gp->node && gp->input && gp->output ? OT_OK : ot_fail_nomem(d);
}

/* The function that p calls; NULL: none. */
static ot_status find_function(ot_model *m, const Onnx__NodeProto *p,
                               const Onnx__FunctionProto **out)
{
    ot_source *src = m->source;
    ot_importer im = {.m = m,
                      .d = m->diag,
                      .src = src,
                      .mp = src->model,
                      .functions = src->functions,
                      .scratch = ot_arena_new()};
    uint32_t index;
    bool nomem;
    *out = NULL;
    if (!im.scratch) return ot_fail_nomem(m->diag);
    bool calls = ot_calls_function(&im, p, &index, &nomem);
    ot_arena_free(im.scratch);
    if (nomem) return ot_fail_nomem(m->diag);
    if (calls) *out = src->model->functions[index];
    return OT_OK;
}

/* The call as a node of a file: its own, or one made of it where another function was read as its
 * nodes (inline_functions.c). */
static ot_status proto_of(ot_model *m, const ot_node *n, const Onnx__NodeProto **out)
{
    *out = n->proto;
    if (n->proto) return OT_OK;
    Onnx__NodeProto *p = OT_NEW(m->arena, Onnx__NodeProto);
    Onnx__AttributeProto **attrs = OT_NEW_N(m->arena, Onnx__AttributeProto *, n->n_attrs + 1u);
    if (!p || !attrs) return ot_fail_nomem(m->diag);
    onnx__node_proto__init(p);
    p->op_type = (char *)(uintptr_t)n->op_type;
    p->domain = (char *)(uintptr_t)n->domain;
    p->attribute = attrs;
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        if (!n->attrs[k].proto) return OT_OK; /* made here: a call of no function of the file */
        attrs[p->n_attribute++] = (Onnx__AttributeProto *)(uintptr_t)n->attrs[k].proto;
    }
    *out = p;
    return OT_OK;
}

ot_status ot_import_call(ot_model *m, const ot_node *n, ot_graph **out)
{
    const Onnx__FunctionProto *f;
    const Onnx__NodeProto *p;
    ot_source *src = m->source;
    *out = NULL;
    if (!src || !(n->proto || n->calls_function) || src->model->n_functions == 0) return OT_OK;
    OT_TRY(proto_of(m, n, &p));
    if (!p) return OT_OK;
    OT_TRY(find_function(m, p, &f));
    if (!f) return OT_OK;
    call c = {.a = m->arena, .node = p};
    Onnx__GraphProto *gp = OT_NEW(m->arena, Onnx__GraphProto);
    ot_graph *g = ot_graph_new(m, NULL, ot_text(f->name));
    if (!gp || !g) return ot_fail_nomem(m->diag);
    OT_TRY(function_graph(&c, f, m->diag, gp));
    OT_TRY(fill_with_scratch(m, g, gp, f));
    g->proto = f; /* tells its subgraphs whose operator sets count */
    *out = g;
    return OT_OK;
}
