/* A model in one operator, for ONNX Runtime with the engine as a library of operators (src/ort,
 * docs/onnxruntime-operators.md):
 *
 *     graph of x -> ... -> y  becomes  y = "onnx_tile"::Engine(x) {model="the file that would have
 *                             been written"}
 *
 * onnx/import/unwrap.c reads such a file as the model inside. export_parts.c makes several
 * operators of a model.
 */
#include "export.h"

#define UNCONST(type, p) ((type)(uintptr_t)(p))
/* IR version from which on constants need not be inputs */
#define UNLISTED 4
/* leaves room for what is around it */
#define BODY_MAX ((uint64_t)INT32_MAX - ((uint64_t)1 << 20))

/* ---- contents that stay where they are, for who looks at bodies that are not written ---- */

#define LENT_LEAST ((size_t)1 << 12)

typedef struct lending {
    ot_arena *a;
    ot_store *store;         /* NULL: nothing was external */
    Onnx__TensorProto **own; /* [n] in the order of the message */
    ot_lent *lent;           /* [n] */
    size_t n, cap_own, cap_lent;
    size_t next; /* of own, while writing */
    uint64_t bytes;
    bool written; /* measured before */
    bool no_memory;
} lending;

/* p without its contents, which become the next that are lent; NULL: no memory. */
static Onnx__TensorProto *lend(lending *l, const Onnx__TensorProto *p)
{
    Onnx__TensorProto *own = ot_memdup(l->a, p, sizeof *p);
    Onnx__StringStringEntryProto *place = OT_NEW(l->a, Onnx__StringStringEntryProto);
    Onnx__StringStringEntryProto **list = OT_NEW(l->a, Onnx__StringStringEntryProto *);
    char *number = ot_format(l->a, "%zu", l->n);
    size_t n_lent = l->n;
    const ot_lent piece = {.data = p->raw_data.data, .bytes = p->raw_data.len};
    if (!own || !place || !list || !number || !OT_PUSH(l->a, l->lent, n_lent, l->cap_lent, piece) ||
        !OT_PUSH(l->a, l->own, l->n, l->cap_own, own))
        return NULL;
    l->bytes += piece.bytes;
    onnx__string_string_entry_proto__init(place);
    place->key = UNCONST(char *, "location");
    place->value = number;
    list[0] = place;
    own->has_raw_data = 0;
    own->raw_data = (ProtobufCBinaryData){0};
    own->has_data_location = 1;
    own->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    own->n_external_data = 1;
    own->external_data = list;
    return own;
}

/* Asked of each tensor when it is measured, and again, in the same order, when it is written. */
static const Onnx__TensorProto *lent_subst(void *ctx, const Onnx__TensorProto *t)
{
    lending *l = ctx;
    const Onnx__TensorProto *p = l->store ? ot_store_subst(l->store, t) : t;
    if (!p->has_raw_data || p->raw_data.len < LENT_LEAST || l->no_memory) return p;
    if (l->written) return l->own[l->next++];
    const Onnx__TensorProto *own = lend(l, p);
    l->no_memory = !own;
    return own ? own : p;
}

/* ---- bodies ---- */

/* The file that the message is, in the exporter's arena; external data goes inside. Who looks at
 * it meanwhile gets it without what is large. */
static ot_status pack(ot_exporter *ex, const Onnx__ModelProto *message, ProtobufCBinaryData *out)
{
    ot_pb_writer w = {.a = ex->a};
    lending l = {.a = ex->a};
    uint64_t size;
    if (ex->m->has_external || (ex->src && ex->src->is_lent))
        OT_TRY(ot_store_plan(ex, &message->base, NULL, false, &l.store));
    w.subst = ex->visit ? lent_subst : l.store ? ot_store_subst : NULL;
    w.ctx = ex->visit ? (void *)&l : l.store;
    if (!ot_pb_measure(&w, &message->base, &size) || l.no_memory) return ot_fail_nomem(ex->d);
    l.written = true;
    if (size > BODY_MAX || l.bytes > BODY_MAX - size)
        return ot_fail(ex->d, OT_E_INPUT,
                       "the model passes 2 GiB, and an operator has to hold all of it: write it "
                       "with --emit engine");
    out->len = (size_t)size;
    out->data = ot_alloc(ex->a, out->len);
    if (!out->data) return ot_fail_nomem(ex->d);
    ot_sink s = {
        .d = ex->d, .path = "memory", .fd = -1, .buffer = (char *)out->data, .cap = out->len};
    ot_pb_emit(&w, &message->base, &s);
    if (s.total != size) OT_BUG("a model was not written as measured");
    return ex->visit ? ex->visit(ex->visit_ctx, out->data, out->len, l.lent, l.n) : OT_OK;
}

/* ---- inputs and outputs ---- */

static ot_status check_type(const ot_exporter *ex, const Onnx__ValueInfoProto *v)
{
    const Onnx__TypeProto *t = v->type;
    bool tensor = t && t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && t->tensor_type;
    ot_dtype type = tensor && t->tensor_type->has_elem_type ? (ot_dtype)t->tensor_type->elem_type
                                                            : OT_DT_UNKNOWN;
    if (type != OT_DT_UNKNOWN && type != OT_STRING && ot_dtype_bits(type) >= 8) return OT_OK;
    return ot_fail(
        ex->d, OT_E_INPUT,
        "'%.200s' is no tensor of a type that the operator takes: write the model with --emit onnx",
        v->name ? v->name : "");
}

static bool has_default(const Onnx__GraphProto *g, const char *name)
{
    for (size_t k = 0; k < g->n_initializer; k++)
        if (g->initializer[k]->name && strcmp(g->initializer[k]->name, name ? name : "") == 0)
            return true;
    return false;
}

/* The operator reads what the body's inputs are, but for those that have an initializer. */
static ot_status take_ends(const ot_exporter *ex, const Onnx__GraphProto *body, Onnx__NodeProto *n)
{
    n->input = OT_NEW_N(ex->a, char *, body->n_input + 1);
    n->output = OT_NEW_N(ex->a, char *, body->n_output + 1);
    if (!n->input || !n->output) return ot_fail_nomem(ex->d);
    for (size_t k = 0; k < body->n_input; k++) {
        const Onnx__ValueInfoProto *v = body->input[k];
        if (has_default(body, v->name)) continue;
        OT_TRY(check_type(ex, v));
        n->input[n->n_input++] = v->name;
    }
    if (n->n_input == 0)
        return ot_fail(ex->d, OT_E_INPUT,
                       "the model has no input, which an operator of ONNX Runtime needs: write it "
                       "with --emit onnx");
    for (size_t k = 0; k < body->n_output; k++) {
        OT_TRY(check_type(ex, body->output[k]));
        n->output[n->n_output++] = body->output[k]->name;
    }
    return OT_OK;
}

/* ---- the model around it ---- */

ot_status ot_operator_node(ot_exporter *ex, const Onnx__ModelProto *body, const char *name,
                           Onnx__NodeProto **out)
{
    Onnx__NodeProto *n = OT_NEW(ex->a, Onnx__NodeProto);
    Onnx__AttributeProto *a = OT_NEW(ex->a, Onnx__AttributeProto);
    Onnx__AttributeProto **list = OT_NEW(ex->a, Onnx__AttributeProto *);
    if (!n || !a || !list) return ot_fail_nomem(ex->d);
    onnx__node_proto__init(n);
    onnx__attribute_proto__init(a);
    n->name = UNCONST(char *, name);
    n->op_type = UNCONST(char *, OT_ENGINE_OP);
    n->domain = UNCONST(char *, OT_TILE_DOMAIN);
    n->attribute = list;
    n->n_attribute = 1;
    list[0] = a;
    a->name = UNCONST(char *, OT_ENGINE_BODY);
    a->has_type = 1;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    a->has_s = 1;
    *out = n;
    OT_TRY(take_ends(ex, body->graph, n));
    return pack(ex, body, &a->s);
}

static bool is_standard(const char *domain)
{
    return !domain || !*domain || strcmp(domain, "ai.onnx") == 0;
}

/* Domains as the model has them (or the standard one alone), and the operator's. */
static ot_status take_domains(const ot_exporter *ex, const Onnx__ModelProto *inner, bool all,
                              Onnx__ModelProto *p)
{
    Onnx__OperatorSetIdProto *own = OT_NEW(ex->a, Onnx__OperatorSetIdProto);
    p->opset_import = OT_NEW_N(ex->a, Onnx__OperatorSetIdProto *, inner->n_opset_import + 1);
    if (!own || !p->opset_import) return ot_fail_nomem(ex->d);
    onnx__operator_set_id_proto__init(own);
    own->domain = UNCONST(char *, OT_TILE_DOMAIN);
    own->has_version = 1;
    own->version = 1;
    p->n_opset_import = 0;
    for (size_t k = 0; k < inner->n_opset_import; k++) {
        const char *domain = inner->opset_import[k]->domain;
        const bool ours = domain && strcmp(domain, OT_TILE_DOMAIN) == 0;
        if (!ours && (all || is_standard(domain)))
            p->opset_import[p->n_opset_import++] = inner->opset_import[k];
    }
    p->opset_import[p->n_opset_import++] = own;
    return OT_OK;
}

static void drop_extras(Onnx__ModelProto *m)
{
    m->functions = NULL;
    m->n_functions = 0;
    m->training_info = NULL;
    m->n_training_info = 0;
}

ot_status ot_operator_model(const ot_exporter *ex, const Onnx__ModelProto *inner, bool around,
                            Onnx__ModelProto *out)
{
    *out = *inner;
    out->graph = NULL;
    if (!around) {
        drop_extras(out);
        out->ir_version = ot_max(out->ir_version, UNLISTED);
    }
    return take_domains(ex, inner, true, out);
}

ot_status ot_export_operator(ot_exporter *ex, const Onnx__ModelProto *inner,
                             const Onnx__ModelProto **out)
{
    Onnx__ModelProto *p = OT_NEW(ex->a, Onnx__ModelProto);
    Onnx__GraphProto *g = OT_NEW(ex->a, Onnx__GraphProto);
    Onnx__NodeProto *n = NULL, **list = OT_NEW(ex->a, Onnx__NodeProto *);
    if (!p || !g || !list) return ot_fail_nomem(ex->d);
    OT_TRY(ot_operator_node(ex, inner, "onnx_tile/engine", &n));
    *p = *inner;
    drop_extras(p);
    OT_TRY(take_domains(ex, inner, false, p));
    onnx__graph_proto__init(g);
    g->name = inner->graph->name;
    g->input = OT_NEW_N(ex->a, Onnx__ValueInfoProto *, inner->graph->n_input + 1);
    if (!g->input) return ot_fail_nomem(ex->d);
    for (size_t k = 0; k < inner->graph->n_input; k++)
        if (!has_default(inner->graph, inner->graph->input[k]->name))
            g->input[g->n_input++] = inner->graph->input[k];
    g->output = inner->graph->output;
    g->n_output = inner->graph->n_output;
    list[0] = n;
    g->node = list;
    g->n_node = 1;
    p->graph = g;
    *out = p;
    return OT_OK;
}
