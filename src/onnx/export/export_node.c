/* Nodes and attributes: ot_node -> NodeProto.
 *
 * A node that did not change since import is the file's own message. A changed one is rebuilt
 * from the IR, keeping what the IR does not know about it (doc string, fields newer than our
 * protos), and each attribute that came from the file is reused as it is.
 */
#include "export.h"

#define UNCONST(type, p) ((type)(uintptr_t)(p))

static char *empty_text(void)
{
    static char none[1]; /* omitted inputs and outputs: present, with an empty name */
    return none;
}

/* ---- attributes ---- */

static ot_status fill_strings(ot_exporter *ex, const ot_attr *a, Onnx__AttributeProto *p)
{
    p->strings = OT_NEW_N(ex->a, ProtobufCBinaryData, a->n);
    if (!p->strings) return ot_fail_nomem(ex->d);
    for (size_t k = 0; k < a->n; k++)
        p->strings[k] = (ProtobufCBinaryData){strlen(a->strings[k]),
                                              UNCONST(uint8_t *, a->strings[k])};
    p->n_strings = a->n;
    return OT_OK;
}

static ot_status fill_attr(ot_exporter *ex, const ot_attr *a, Onnx__AttributeProto *p)
{
    switch (a->kind) {
    case OT_ATTR_INT:
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        p->has_i = 1;
        p->i = a->i;
        return OT_OK;
    case OT_ATTR_FLOAT:
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        p->has_f = 1;
        p->f = a->f;
        return OT_OK;
    case OT_ATTR_STRING:
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
        p->has_s = 1;
        p->s = (ProtobufCBinaryData){a->n, UNCONST(uint8_t *, a->s)};
        return OT_OK;
    case OT_ATTR_INTS:
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        p->n_ints = a->n;
        p->ints = UNCONST(int64_t *, a->ints);
        return OT_OK;
    case OT_ATTR_FLOATS:
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
        p->n_floats = a->n;
        p->floats = UNCONST(float *, a->floats);
        return OT_OK;
    case OT_ATTR_STRINGS:
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
        return fill_strings(ex, a, p);
    case OT_ATTR_TENSOR: {
        const Onnx__TensorProto *t;
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
        const Onnx__TensorProto *old = a->t->proto;
        OT_TRY(ot_export_tensor(ex, a->t, old && old->name ? old->name : "", &t));
        p->t = UNCONST(Onnx__TensorProto *, t);
        return OT_OK;
    }
    case OT_ATTR_GRAPH: {
        const Onnx__GraphProto *g;
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
        OT_TRY(ot_export_graph(ex, a->g, &g));
        p->g = UNCONST(Onnx__GraphProto *, g);
        return OT_OK;
    }
    default: return ot_fail_nomem(ex->d); /* a builder that ran out of memory leaves this */
    }
}

static ot_status export_attr(ot_exporter *ex, const ot_attr *a, const Onnx__AttributeProto **out)
{
    if (a->proto) {
        *out = a->proto;
        return OT_OK;
    }
    Onnx__AttributeProto *p = OT_NEW(ex->a, Onnx__AttributeProto);
    if (!p) return ot_fail_nomem(ex->d);
    onnx__attribute_proto__init(p);
    p->name = UNCONST(char *, a->name);
    p->has_type = 1;
    *out = p;
    return fill_attr(ex, a, p);
}

/* ---- nodes ---- */

static const char *name_of(const ot_graph *g, ot_id v)
{
    return v == OT_NONE ? empty_text() : g->values[v].name;
}

static bool same_names(const ot_graph *g, const ot_id *ids, uint32_t n, char *const *names,
                       size_t n_names)
{
    if (n != n_names) return false;
    for (uint32_t k = 0; k < n; k++)
        if (strcmp(name_of(g, ids[k]), names[k] ? names[k] : "") != 0) return false;
    return true;
}

static char **names_of(ot_exporter *ex, const ot_graph *g, const ot_id *ids, uint32_t n)
{
    char **names = OT_NEW_N(ex->a, char *, n);
    for (uint32_t k = 0; names && k < n; k++) names[k] = UNCONST(char *, name_of(g, ids[k]));
    return names;
}

/* The file's own message of a node of the top graph that was changed, or NULL. */
static const Onnx__NodeProto *ancestor(const ot_graph *g, const ot_node *n)
{
    const Onnx__GraphProto *gp = g->proto;
    if (!gp || n->source == OT_NONE || n->source >= gp->n_node) return NULL;
    const Onnx__NodeProto *p = gp->node[n->source];
    return p->op_type && strcmp(p->op_type, n->op_type) == 0 ? p : NULL;
}

/* ---- metadata ---- */

/* of NodeProto, since IR 10; older readers pass over it, and older descriptions do not know it */
#define NODE_METADATA_PROPS 9

static size_t varint_bytes(uint8_t *to, size_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) to[n++] = (uint8_t)(v | 0x80);
    to[n++] = (uint8_t)v;
    return n;
}

/* Field `id` of a message: tag, length, text. */
static size_t text_field(uint8_t *to, unsigned id, const char *text)
{
    size_t n = strlen(text), at = varint_bytes(to, id << 3 | 2);
    at += varint_bytes(to + at, n);
    memcpy(to + at, text, n);
    return at + n;
}

/* StringStringEntryProto {key = 1, value = 2} behind its length, as protobuf-c keeps fields that
 * it does not know. */
static bool note_field(ot_arena *a, const ot_note_entry *e, ProtobufCMessageUnknownField *f)
{
    size_t most = strlen(e->key) + strlen(e->value) + 24;
    uint8_t *entry = OT_NEW_N(a, uint8_t, most), *data = OT_NEW_N(a, uint8_t, most + 10);
    if (!entry || !data) return false;
    size_t n = text_field(entry, 1, e->key);
    n += text_field(entry + n, 2, e->value);
    size_t head = varint_bytes(data, n);
    memcpy(data + head, entry, n);
    *f = (ProtobufCMessageUnknownField){NODE_METADATA_PROPS, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                        head + n, data};
    return true;
}

/* The model's note for a node of that name, or NULL. */
static const ot_node_note *find_note(const ot_model *m, const char *name)
{
    static const char prefix[] = "tile/r";
    uint32_t id = 0;
    if (m->n_notes == 0 || strncmp(name, prefix, sizeof prefix - 1) != 0) return NULL;
    for (name += sizeof prefix - 1; *name >= '0' && *name <= '9' && id < UINT32_MAX / 10 - 1;
         name++)
        id = id * 10 + (uint32_t)(*name - '0');
    uint32_t k = id - m->notes[0].id;
    return *name == '/' && k < m->n_notes ? &m->notes[k] : NULL;
}

/* Notes about node n of the top graph, if it was made here. */
static ot_status add_notes(ot_exporter *ex, const ot_graph *g, const ot_node *n, Onnx__NodeProto *p)
{
    const ot_node_note *note = g->parent || n->source != OT_NONE ? NULL : find_note(ex->m, n->name);
    if (!note) return OT_OK;
    ProtobufCMessageUnknownField *f = OT_NEW_N(ex->a, ProtobufCMessageUnknownField, note->n);
    if (!f) return ot_fail_nomem(ex->d);
    for (uint32_t j = 0; j < note->n; j++)
        if (!note_field(ex->a, &note->entries[j], &f[j])) return ot_fail_nomem(ex->d);
    p->base.n_unknown_fields = note->n;
    p->base.unknown_fields = f;
    return OT_OK;
}

/* onnx.checker takes STFT without this attribute for one of both sides, against the standard; where
 * shapes are written anew, its bins would be at odds with theirs. */
static bool lacks_sides(const ot_exporter *ex, const ot_node *n)
{
    return ex->m->restated && n->op == OT_OP_OPAQUE && !n->domain[0] &&
           strcmp(n->op_type, "STFT") == 0 && !ot_attr_find(n, "onesided");
}

ot_status ot_export_node(ot_exporter *ex, const ot_graph *g, const ot_node *n,
                         const Onnx__NodeProto **out)
{
    const Onnx__NodeProto *own = n->proto;
    const ot_attr sides = ot_mk_int("onesided", 1);
    const bool says_sides = lacks_sides(ex, n);
    if (own && !says_sides && !(ex->raised && own->n_attribute != n->n_attrs) &&
        same_names(g, n->in, n->n_in, own->input, own->n_input) &&
        same_names(g, n->out, n->n_out, own->output, own->n_output)) {
        *out = own;
        return OT_OK;
    }
    Onnx__NodeProto *p = OT_NEW(ex->a, Onnx__NodeProto);
    if (!p) return ot_fail_nomem(ex->d);
    onnx__node_proto__init(p);
    const Onnx__NodeProto *old = ancestor(g, n);
    if (old) {
        p->doc_string = old->doc_string;
        p->base.n_unknown_fields = old->base.n_unknown_fields;
        p->base.unknown_fields = old->base.unknown_fields;
    } else {
        OT_TRY(add_notes(ex, g, n, p));
    }
    p->name = n->name[0] ? UNCONST(char *, n->name) : NULL;
    p->op_type = UNCONST(char *, n->op_type);
    p->domain = n->domain[0] ? UNCONST(char *, n->domain) : old ? old->domain : NULL;
    p->n_input = n->n_in;
    p->n_output = n->n_out;
    p->input = names_of(ex, g, n->in, n->n_in);
    p->output = names_of(ex, g, n->out, n->n_out);
    p->attribute = OT_NEW_N(ex->a, Onnx__AttributeProto *, n->n_attrs + 1u);
    if (!p->input || !p->output || !p->attribute) return ot_fail_nomem(ex->d);
    for (uint32_t k = 0; k < n->n_attrs + (says_sides ? 1u : 0u); k++) {
        const Onnx__AttributeProto *a = NULL;
        OT_TRY(export_attr(ex, k < n->n_attrs ? &n->attrs[k] : &sides, &a));
        p->attribute[p->n_attribute++] = UNCONST(Onnx__AttributeProto *, a);
    }
    *out = p;
    return OT_OK;
}

#define CONSTANT_SINCE 9                  /* opset: Constant makes all types */
#define EXACT          ((int64_t)1 << 53) /* integers up to it are float64 */

static ot_status constant_node(ot_exporter *ex, const char *name, const ot_tensor *value,
                               const Onnx__NodeProto **out)
{
    static const char op[] = "Constant", attr[] = "value";
    Onnx__NodeProto *p = OT_NEW(ex->a, Onnx__NodeProto);
    Onnx__AttributeProto *a = OT_NEW(ex->a, Onnx__AttributeProto);
    Onnx__AttributeProto **attrs = OT_NEW(ex->a, Onnx__AttributeProto *);
    char **output = OT_NEW(ex->a, char *);
    if (!p || !a || !attrs || !output) return ot_fail_nomem(ex->d);
    const Onnx__TensorProto *t;
    OT_TRY(ot_export_tensor(ex, value, name, &t));
    onnx__attribute_proto__init(a);
    a->name = UNCONST(char *, attr);
    a->has_type = 1;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    a->t = UNCONST(Onnx__TensorProto *, t);
    onnx__node_proto__init(p);
    p->op_type = UNCONST(char *, op);
    p->name = output[0] = UNCONST(char *, name);
    p->n_output = 1;
    p->output = output;
    attrs[0] = a;
    p->n_attribute = 1;
    p->attribute = attrs;
    *out = p;
    return OT_OK;
}

/* t as float64; NULL: it is no int64 that is held here, or not as exact. *nomem: memory ran out. */
static const ot_tensor *as_float64(ot_exporter *ex, const ot_tensor *t, bool *nomem)
{
    const size_t n = t->bytes / sizeof(int64_t);
    *nomem = false;
    if (t->dtype != OT_I64 || !t->data) return NULL;
    ot_tensor *copy = ot_memdup(ex->a, t, sizeof *t);
    double *to = OT_NEW_N(ex->a, double, n + 1);
    *nomem = !copy || !to;
    for (size_t k = 0; k < n && !*nomem; k++) {
        int64_t x;
        memcpy(&x, (const char *)t->data + k * sizeof x, sizeof x);
        if (x > EXACT || x < -EXACT) return NULL;
        to[k] = (double)x;
    }
    if (*nomem) return NULL;
    copy->dtype = OT_F64;
    copy->data = to;
    copy->proto = NULL;
    return copy;
}

/* A name like v's that the model has not. NULL: no memory. */
static const char *float_name(ot_exporter *ex, const ot_value *v)
{
    const char *name = ot_format(ex->a, "%s/float64", v->name);
    while (name && ot_map_get(ex->m->names, name) != OT_NONE) name = ot_format(ex->a, "%s_", name);
    return name;
}

/* value = Cast(name) to its type. */
static ot_status cast_node(ot_exporter *ex, const char *name, const ot_value *v,
                           const Onnx__NodeProto **out)
{
    static const char op[] = "Cast";
    const ot_attr to = ot_mk_int("to", (int64_t)v->dtype);
    Onnx__NodeProto *p = OT_NEW(ex->a, Onnx__NodeProto);
    Onnx__AttributeProto **attrs = OT_NEW(ex->a, Onnx__AttributeProto *);
    char **ends = OT_NEW_N(ex->a, char *, 2);
    const Onnx__AttributeProto *a = NULL;
    if (!p || !attrs || !ends) return ot_fail_nomem(ex->d);
    OT_TRY(export_attr(ex, &to, &a));
    onnx__node_proto__init(p);
    p->op_type = UNCONST(char *, op);
    ends[0] = UNCONST(char *, name);
    p->name = ends[1] = UNCONST(char *, v->name);
    p->input = ends;
    p->output = ends + 1;
    p->n_input = p->n_output = 1;
    attrs[0] = UNCONST(Onnx__AttributeProto *, a);
    p->attribute = attrs;
    p->n_attribute = 1;
    *out = p;
    return OT_OK;
}

ot_status ot_export_constant(ot_exporter *ex, const ot_value *v, const Onnx__NodeProto **out,
                             const Onnx__NodeProto **cast)
{
    bool nomem = false;
    const ot_tensor *floats = ex->m->opset > 0 && ex->m->opset < CONSTANT_SINCE
                                  ? as_float64(ex, v->init, &nomem)
                                  : NULL;
    *cast = NULL;
    if (nomem) return ot_fail_nomem(ex->d);
    if (!floats) return constant_node(ex, v->name, v->init, out);
    const char *name = float_name(ex, v);
    if (!name) return ot_fail_nomem(ex->d);
    OT_TRY(constant_node(ex, name, floats, out));
    return cast_node(ex, name, v, cast);
}
