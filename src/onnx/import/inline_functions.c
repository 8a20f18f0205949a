/* Calls of model-local functions, read as the nodes of their bodies, as every runtime does:
 *
 *   y = my.Block(x, w) {k=3}                the call
 *   Block(a, b) {k}: c = Conv(a, b) {kernel_shape: @k}, d = Relu(c) -> d
 *   y/c = Conv(x, w) {kernel_shape=3}, y = Relu(y/c)
 *
 * Calls of functions in functions are read likewise. A body of another opset than the model's,
 * with a subgraph, or that is not in order, leaves its calls as they are: opaque. So do calls once
 * there are too many nodes. The functions stay in the file.
 */
#include "model_io.h"
#include "node_writer.h"

#define NODES_MOST   100000 /* nodes that are written: functions can multiply */
#define DEFAULTS_TAG 11 /* FunctionProto.attribute_proto, younger than the protos we build with */

typedef struct inlining {
    ot_importer *im;
    ot_graph *g;
    /* [cap] of a node that was written and calls a function: what it was written of */
    const Onnx__NodeProto **protos;
    size_t n_protos, cap_protos;
    ot_id first; /* node of protos[0] */
} inlining;

/* One call, and what the names of the body mean there. */
typedef struct call {
    const Onnx__FunctionProto *f;
    const Onnx__NodeProto *proto; /* whose attributes are given */
    ot_node old;
    ot_node_writer w;
    ot_map *values;
} call;

static ot_status nomem(const inlining *x) { return ot_fail_nomem(x->im->d); }

/* ---- attributes ---- */

static void *take(void *arena, size_t size) { return ot_alloc(arena, size ? size : 1); }
static void give_back(void *arena, void *pointer)
{
    (void)arena;
    (void)pointer;
}

/* The default that the function has for attribute `name`; NULL: none. */
static ot_status default_of(const inlining *x, const Onnx__FunctionProto *f, const char *name,
                            const Onnx__AttributeProto **out)
{
    ProtobufCAllocator in_model = {take, give_back, x->im->m->arena};
    *out = NULL;
    for (unsigned k = 0; k < f->base.n_unknown_fields && !*out; k++) {
        const ProtobufCMessageUnknownField *u = &f->base.unknown_fields[k];
        if (u->tag != DEFAULTS_TAG || u->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            continue;
        size_t prefix = 0; /* data begins with the length */
        while (prefix < u->len && (u->data[prefix] & 0x80)) prefix++;
        if (prefix >= u->len) continue;
        const uint8_t *bytes = u->data + prefix + 1;
        const size_t n = u->len - prefix - 1;
        OT_TRY(ot_pb_scan(bytes, n, &onnx__attribute_proto__descriptor, x->im->d));
        const Onnx__AttributeProto *a = onnx__attribute_proto__unpack(&in_model, n, bytes);
        if (a && strcmp(ot_text(a->name), name) == 0) *out = a;
    }
    return OT_OK;
}

static const Onnx__AttributeProto *given_of(const Onnx__NodeProto *p, const char *name)
{
    for (size_t k = 0; k < p->n_attribute; k++)
        if (strcmp(ot_text(p->attribute[k]->name), name) == 0) return p->attribute[k];
    return NULL;
}

/* Body node p with the attributes of the call in the places that refer to them; those that nobody
 * gives are left out. */
static ot_status with_attributes(const inlining *x, const call *c, const Onnx__NodeProto *p,
                                 Onnx__NodeProto **out)
{
    ot_arena *a = x->im->m->arena;
    Onnx__NodeProto *copy = ot_memdup(a, p, sizeof *p);
    Onnx__AttributeProto **list = OT_NEW_N(a, Onnx__AttributeProto *, p->n_attribute + 1);
    if (!copy || !list) return nomem(x);
    copy->attribute = list;
    copy->n_attribute = 0;
    for (size_t k = 0; k < p->n_attribute; k++) {
        const char *refers = ot_text(p->attribute[k]->ref_attr_name);
        list[copy->n_attribute] = p->attribute[k];
        if (*refers) {
            const Onnx__AttributeProto *given = given_of(c->proto, refers);
            if (!given) OT_TRY(default_of(x, c->f, refers, &given));
            if (!given) continue;
            Onnx__AttributeProto *named = ot_memdup(a, given, sizeof *given);
            if (!named) return nomem(x);
            named->name = p->attribute[k]->name;
            list[copy->n_attribute] = named;
        }
        copy->n_attribute++;
    }
    *out = copy;
    return OT_OK;
}

/* ---- which calls ---- */

static bool knows_opsets(const inlining *x, const Onnx__FunctionProto *f)
{
    for (size_t k = 0; k < f->n_opset_import; k++) {
        const char *domain = ot_domain(f->opset_import[k]->domain);
        const uint32_t imported = ot_map_get(x->im->opsets, domain);
        const int64_t own = *domain ? (int64_t)imported : (int64_t)x->im->opset;
        if (own != f->opset_import[k]->version) return false;
    }
    return f->n_opset_import > 0;
}

static bool is_plain(const Onnx__NodeProto *p)
{
    if (!p->op_type || !p->op_type[0] || p->n_output == 0 || p->n_input >= OT_NONE) return false;
    if (ot_has_overload(p)) return false; /* nodes have no place for it when written */
    for (size_t k = 0; k < p->n_attribute; k++)
        if (p->attribute[k]->g || p->attribute[k]->n_graphs > 0) return false;
    return true;
}

/* Every name is defined once, before it is read, and the results are among them. *fits: so it is.
 */
static ot_status check_order(const inlining *x, const Onnx__FunctionProto *f, bool *fits)
{
    ot_map *known = ot_map_new(x->im->scratch);
    if (!known) return nomem(x);
    *fits = true;
    for (size_t k = 0; k < f->n_input; k++) {
        *fits &= ot_map_get(known, ot_text(f->input[k])) == OT_NONE && *ot_text(f->input[k]);
        if (!ot_map_put(known, ot_text(f->input[k]), 1)) return nomem(x);
    }
    for (size_t k = 0; k < f->n_node; k++) {
        const Onnx__NodeProto *p = f->node[k];
        *fits &= is_plain(p);
        for (size_t j = 0; j < p->n_input; j++)
            *fits &= !*ot_text(p->input[j]) || ot_map_get(known, ot_text(p->input[j])) != OT_NONE;
        for (size_t j = 0; j < p->n_output; j++) {
            const char *name = ot_text(p->output[j]);
            *fits &= !*name || ot_map_get(known, name) == OT_NONE;
            if (*name && !ot_map_put(known, name, 0)) return nomem(x);
        }
    }
    for (size_t k = 0; k < f->n_output; k++) {
        uint32_t was = ot_map_get(known, ot_text(f->output[k])); /* made in it, named once */
        *fits &= was == 0;
        if (!ot_map_put(known, ot_text(f->output[k]), 2)) return nomem(x);
    }
    return OT_OK;
}

static ot_status fits_call(const inlining *x, const Onnx__FunctionProto *f, const ot_node *n,
                           bool *fits)
{
    *fits = f->n_node > 0 && f->n_node < NODES_MOST && n->n_in <= f->n_input &&
            n->n_out <= f->n_output && knows_opsets(x, f);
    return *fits ? check_order(x, f, fits) : OT_OK;
}

/* ---- writing ---- */

static ot_status means(const inlining *x, call *c, const char *name, ot_id value)
{
    return ot_map_put(c->values, ot_text(name), value) ? OT_OK : nomem(x);
}

static ot_status bind_ends(const inlining *x, call *c)
{
    for (size_t k = 0; k < c->f->n_input; k++)
        if (k < c->old.n_in) OT_TRY(means(x, c, c->f->input[k], c->old.in[k]));
    for (size_t k = 0; k < c->old.n_out; k++)
        if (c->old.out[k] != OT_NONE) OT_TRY(means(x, c, c->f->output[k], c->old.out[k]));
    return OT_OK;
}

/* The value that the body calls `name`; made where it is a new one. */
static ot_status value_of(const inlining *x, call *c, const char *name, bool makes, ot_id *out)
{
    *out = *ot_text(name) ? ot_map_get(c->values, name) : OT_NONE;
    if (*out != OT_NONE || !makes || !*ot_text(name)) return OT_OK;
    const char *fresh = ot_writer_name(&c->w, name);
    *out = fresh ? ot_value_new(x->g, fresh, OT_DT_UNKNOWN, -1, NULL) : OT_NONE;
    return *out == OT_NONE ? nomem(x) : means(x, c, name, *out);
}

/* What a written node calls is inlined when its turn comes. */
static ot_status remember(inlining *x, ot_id id, const Onnx__NodeProto *p)
{
    uint32_t function;
    bool none;
    ot_node *n = &x->g->nodes[id];
    if (*n->domain) n->version = (int32_t)ot_map_get(x->im->opsets, n->domain);
    n->calls_function = ot_calls_function(x->im, p, &function, &none);
    if (none) return nomem(x);
    if (n->calls_function) n->op = OT_OP_OPAQUE;
    while (x->n_protos < id - x->first)
        if (!OT_PUSH(x->im->scratch, x->protos, x->n_protos, x->cap_protos, NULL)) return nomem(x);
    return OT_PUSH(x->im->scratch, x->protos, x->n_protos, x->cap_protos, p) ? OT_OK : nomem(x);
}

static ot_status write_node(inlining *x, call *c, const Onnx__NodeProto *body)
{
    ot_importer *im = x->im;
    Onnx__NodeProto *p = NULL;
    ot_attr *attrs;
    ot_id *in = OT_NEW_N(im->scratch, ot_id, body->n_input + 1),
          *out = OT_NEW_N(im->scratch, ot_id, body->n_output + 1);
    if (!in || !out) return nomem(x);
    OT_TRY(with_attributes(x, c, body, &p));
    const char *domain = ot_domain(p->domain), *role = p->name && *p->name ? p->name : p->op_type;
    const char *name = ot_writer_name(&c->w, role);
    if (!name) return nomem(x);
    OT_TRY(ot_import_attrs(im, p, name, ot_op_of(domain, p->op_type) != OT_OP_OPAQUE, &attrs));
    for (size_t k = 0; k < p->n_input; k++) OT_TRY(value_of(x, c, p->input[k], false, &in[k]));
    for (size_t k = 0; k < p->n_output; k++) OT_TRY(value_of(x, c, p->output[k], true, &out[k]));
    const ot_id id = ot_node_new(x->g, &(ot_node_def){.op = p->op_type,
                                                      .domain = domain,
                                                      .name = name,
                                                      .in = {in, (uint32_t)p->n_input},
                                                      .out = {out, (uint32_t)p->n_output},
                                                      .attrs = {attrs, (uint32_t)p->n_attribute}});
    return id == OT_NONE ? nomem(x) : remember(x, id, p);
}

static ot_status write_call(inlining *x, ot_id id, const Onnx__FunctionProto *f,
                            const Onnx__NodeProto *p)
{
    call c = {.f = f, .proto = p, .values = ot_map_new(x->im->scratch)};
    if (!c.values) return nomem(x);
    c.w = ot_writer_in_place_of(x->g, id, &c.old);
    OT_TRY(bind_ends(x, &c));
    for (size_t k = 0; k < f->n_node; k++) OT_TRY(write_node(x, &c, f->node[k]));
    return OT_OK;
}

static const Onnx__NodeProto *proto_of(const inlining *x, ot_id id)
{
    if (id < x->first) return x->g->nodes[id].proto;
    return id - x->first < x->n_protos ? x->protos[id - x->first] : NULL;
}

ot_status ot_inline_functions(ot_importer *im)
{
    inlining x = {.im = im, .g = im->g, .first = im->g->n_nodes};
    for (ot_id id = 0; im->mp->n_functions > 0 && id < im->g->n_nodes; id++) {
        const ot_node *n = &im->g->nodes[id];
        const Onnx__NodeProto *p = proto_of(&x, id);
        uint32_t function;
        bool none, fits;
        if (n->dead || !n->calls_function || !p || n->n_out == 0) continue;
        if (!n->name[0] && n->out[0] == OT_NONE) continue; /* what is written has no name */
        if (!ot_calls_function(im, p, &function, &none)) continue;
        const Onnx__FunctionProto *f = im->mp->functions[function];
        OT_TRY(fits_call(&x, f, n, &fits));
        if (fits && im->g->n_nodes - x.first + f->n_node <= NODES_MOST)
            OT_TRY(write_call(&x, id, f, p));
    }
    return im->g->n_nodes > x.first ? ot_raise_constants(im) : OT_OK;
}
