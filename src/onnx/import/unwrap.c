/* Operators that hold models (onnx/export/export_operator.c, export_parts.c), read as what they
 * hold:
 *
 *     one node               the model in its body
 *     several                the graph with the nodes of their bodies in their places
 *
 * Bodies that we wrote fit: their inputs and outputs are called as the node's, and no other name
 * is used twice but that of a constant which several have. One of somebody else that does not
 * fit is refused. Bodies are not looked into again.
 */
#include "import.h"

static const ProtobufCBinaryData *body_of(const Onnx__NodeProto *n)
{
    if (strcmp(ot_text(n->domain), OT_TILE_DOMAIN) != 0 ||
        strcmp(ot_text(n->op_type), OT_ENGINE_OP) != 0)
        return NULL;
    for (size_t k = 0; k < n->n_attribute; k++)
        if (strcmp(ot_text(n->attribute[k]->name), OT_ENGINE_BODY) == 0 && n->attribute[k]->has_s)
            return &n->attribute[k]->s;
    return NULL;
}

/* In the place of a model of one such node, what it holds. */
static ot_status take_whole(ot_source *src, const ProtobufCBinaryData *body, ot_arena *a,
                            ot_diag *d)
{
    Onnx__ModelProto *outer = src->model;
    src->model = NULL;
    ot_status st = ot_pb_unpack(body->data, body->len, a, d, &src->model);
    ot_pb_free(&outer->base);
    return st;
}

/* ---- several ---- */

typedef struct unwrapping {
    ot_diag *d;
    ot_arena *a, *in; /* in: where small parts of messages are */
    Onnx__ModelProto *outer;
    /* [nodes of outer] unpacked, owned; NULL: the node is no such operator */
    Onnx__ModelProto **bodies;
    ot_map *names; /* of values -> 1 + index in `constants`; 0: no constant */
    Onnx__TensorProto **constants;
    size_t n_constants, cap_constants;
    size_t n_node, n_init, n_info; /* of the graph when bodies are in it, at most */
} unwrapping;

static int64_t standard_version(const Onnx__ModelProto *m)
{
    for (size_t k = 0; k < m->n_opset_import; k++)
        if (!*ot_domain(m->opset_import[k]->domain)) return m->opset_import[k]->version;
    return 0;
}

static ot_status know(unwrapping *u, const char *name, Onnx__TensorProto *constant)
{
    uint32_t at = 0;
    if (constant) {
        if (!OT_PUSH(u->a, u->constants, u->n_constants, u->cap_constants, constant))
            return ot_fail_nomem(u->d);
        at = (uint32_t)u->n_constants;
    }
    return ot_map_put(u->names, ot_text(name), at) ? OT_OK : ot_fail_nomem(u->d);
}

static ot_status know_graph(unwrapping *u, const Onnx__GraphProto *g)
{
    for (size_t k = 0; k < g->n_input; k++) OT_TRY(know(u, g->input[k]->name, NULL));
    for (size_t k = 0; k < g->n_initializer; k++)
        OT_TRY(know(u, g->initializer[k]->name, g->initializer[k]));
    for (size_t k = 0; k < g->n_node; k++)
        for (size_t j = 0; j < g->node[k]->n_output; j++)
            OT_TRY(know(u, g->node[k]->output[j], NULL));
    return OT_OK;
}

static ot_status same_constant(unwrapping *u, const Onnx__TensorProto *a,
                               const Onnx__TensorProto *b, bool *out)
{
    const size_t n = protobuf_c_message_get_packed_size(&a->base);
    *out = n == protobuf_c_message_get_packed_size(&b->base);
    if (!*out) return OT_OK;
    uint8_t *bytes = ot_pb_take(2 * n + 1);
    if (!bytes) return ot_fail_nomem(u->d);
    protobuf_c_message_pack(&a->base, bytes);
    protobuf_c_message_pack(&b->base, bytes + n);
    *out = memcmp(bytes, bytes + n, n) == 0;
    ot_pb_release(bytes);
    return OT_OK;
}

static ot_status misfit(const unwrapping *u, const Onnx__NodeProto *n, const char *why,
                        const char *name)
{
    return ot_fail(u->d, OT_E_INPUT,
                   "node '%.*s' (Engine): its body does not fit into the graph: %s%.*s",
                   OT_NAME_SHOWN, ot_text(n->name), why, OT_NAME_SHOWN, name);
}

/* Constants of a body are new, or the same as the one of that name. */
static ot_status constants_fit(unwrapping *u, const Onnx__NodeProto *n, const Onnx__GraphProto *g)
{
    for (size_t k = 0; k < g->n_initializer; k++) {
        const char *name = ot_text(g->initializer[k]->name);
        const uint32_t at = ot_map_get(u->names, name);
        bool same = at == OT_NONE;
        if (at > 0 && at != OT_NONE)
            OT_TRY(same_constant(u, g->initializer[k], u->constants[at - 1], &same));
        if (!same) return misfit(u, n, "another value is called as its constant ", name);
    }
    return OT_OK;
}

static bool has_name(char *const *names, size_t n, const char *name)
{
    for (size_t k = 0; k < n; k++)
        if (strcmp(ot_text(names[k]), name) == 0) return true;
    return false;
}

static bool ends_fit(const Onnx__NodeProto *n, const Onnx__GraphProto *g)
{
    if (n->n_input != g->n_input || n->n_output != g->n_output || g->n_sparse_initializer > 0)
        return false;
    for (size_t k = 0; k < n->n_input; k++)
        if (strcmp(ot_text(n->input[k]), ot_text(g->input[k]->name)) != 0) return false;
    for (size_t k = 0; k < n->n_output; k++)
        if (strcmp(ot_text(n->output[k]), ot_text(g->output[k]->name)) != 0) return false;
    return true;
}

/* What nodes of the body make is the operator's, or nobody else's. */
static ot_status nodes_fit(const unwrapping *u, const Onnx__NodeProto *n, const Onnx__GraphProto *g)
{
    for (size_t k = 0; k < g->n_node; k++)
        for (size_t j = 0; j < g->node[k]->n_output; j++) {
            const char *name = ot_text(g->node[k]->output[j]);
            if (*name && ot_map_get(u->names, name) != OT_NONE &&
                !has_name(n->output, n->n_output, name))
                return misfit(u, n, "another value is called as its ", name);
        }
    return OT_OK;
}

static ot_status check_fit(unwrapping *u, const Onnx__NodeProto *n, const Onnx__ModelProto *body)
{
    const Onnx__GraphProto *g = body->graph;
    if (!g) return misfit(u, n, "it has none", "");
    if (body->n_functions > 0) return misfit(u, n, "it has functions", "");
    if (standard_version(body) != standard_version(u->outer))
        return misfit(u, n, "it is of another opset", "");
    if (!ends_fit(n, g)) return misfit(u, n, "its inputs or outputs are not the node's", "");
    OT_TRY(nodes_fit(u, n, g));
    return constants_fit(u, n, g);
}

/* The body is now one of those that are freed with u. */
static ot_status take_body(unwrapping *u, const Onnx__NodeProto *n,
                           const ProtobufCBinaryData *bytes, Onnx__ModelProto **body)
{
    OT_TRY(ot_pb_unpack(bytes->data, bytes->len, u->in, u->d, body));
    OT_TRY(check_fit(u, n, *body));
    const Onnx__GraphProto *g = (*body)->graph;
    u->n_node += g->n_node;
    u->n_init += g->n_initializer;
    u->n_info += g->n_value_info;
    for (size_t k = 0; k < g->n_node; k++)
        for (size_t j = 0; j < g->node[k]->n_output; j++)
            OT_TRY(know(u, g->node[k]->output[j], NULL));
    for (size_t k = 0; k < g->n_initializer;
         k++) /* those that others have, too, go with the body */
        if (ot_map_get(u->names, ot_text(g->initializer[k]->name)) == OT_NONE)
            OT_TRY(know(u, g->initializer[k]->name, g->initializer[k]));
    return OT_OK;
}

static ot_status open_bodies(unwrapping *u)
{
    const Onnx__GraphProto *g = u->outer->graph;
    OT_TRY(know_graph(u, g));
    u->n_node = g->n_node;
    u->n_init = g->n_initializer;
    u->n_info = g->n_value_info;
    for (size_t k = 0; k < g->n_node; k++) {
        const ProtobufCBinaryData *bytes = body_of(g->node[k]);
        if (bytes) OT_TRY(take_body(u, g->node[k], bytes, &u->bodies[k]));
    }
    return OT_OK;
}

/* Of the body, what goes into the graph is taken from it. */
static void move_body(unwrapping *u, Onnx__GraphProto *g, Onnx__GraphProto *body)
{
    size_t kept = 0;
    for (size_t k = 0; k < body->n_node; k++) g->node[g->n_node++] = body->node[k];
    body->n_node = 0;
    for (size_t k = 0; k < body->n_value_info; k++)
        g->value_info[g->n_value_info++] = body->value_info[k];
    body->n_value_info = 0;
    for (size_t k = 0; k < body->n_initializer; k++) {
        Onnx__TensorProto *t = body->initializer[k];
        const uint32_t at = ot_map_get(u->names, ot_text(t->name));
        if (at > 0 && u->constants[at - 1] == t)
            g->initializer[g->n_initializer++] = t;
        else
            body->initializer[kept++] = t;
    }
    body->n_initializer = kept;
}

static ot_status put_bodies(unwrapping *u)
{
    Onnx__GraphProto *g = u->outer->graph, old = *g;
    Onnx__NodeProto **node = ot_pb_take((u->n_node + 1) * sizeof *node);
    Onnx__TensorProto **init = ot_pb_take((u->n_init + 1) * sizeof *init);
    Onnx__ValueInfoProto **info = ot_pb_take((u->n_info + 1) * sizeof *info);
    if (!node || !init || !info) {
        ot_pb_release(node);
        ot_pb_release(init);
        ot_pb_release(info);
        return ot_fail_nomem(u->d);
    }
    for (size_t k = 0; k < old.n_initializer; k++) init[k] = old.initializer[k];
    for (size_t k = 0; k < old.n_value_info; k++) info[k] = old.value_info[k];
    g->node = node;
    g->initializer = init;
    g->value_info = info;
    g->n_node = 0;
    for (size_t k = 0; k < old.n_node; k++) {
        if (!u->bodies[k]) {
            g->node[g->n_node++] = old.node[k];
            continue;
        }
        move_body(u, g, u->bodies[k]->graph);
    }
    for (size_t k = 0; k < old.n_node; k++) /* their names were keys until now */
        if (u->bodies[k]) ot_pb_free(&old.node[k]->base);
    ot_pb_release(old.node);
    ot_pb_release(old.initializer);
    ot_pb_release(old.value_info);
    return OT_OK;
}

static ot_status take_parts(unwrapping *u)
{
    const size_t n = u->outer->graph->n_node;
    u->names = ot_map_new(u->a);
    u->bodies = OT_NEW_N(u->a, Onnx__ModelProto *, n + 1);
    if (!u->names || !u->bodies) return ot_fail_nomem(u->d);
    ot_status st = open_bodies(u);
    if (st == OT_OK) st = put_bodies(u);
    for (size_t k = 0; k < n; k++)
        if (u->bodies[k]) ot_pb_free(&u->bodies[k]->base); /* with what was not taken from it */
    return st;
}

ot_status ot_unwrap(ot_source *src, ot_arena *a, ot_diag *d)
{
    const Onnx__GraphProto *g = src->model->graph;
    size_t n = 0;
    for (size_t k = 0; g && k < g->n_node; k++) n += body_of(g->node[k]) != NULL;
    if (n == 0) return OT_OK;
    if (g->n_node == 1) return take_whole(src, body_of(g->node[0]), a, d);
    unwrapping u = {.d = d, .a = ot_arena_new(), .in = a, .outer = src->model};
    if (!u.a) return ot_fail_nomem(d);
    ot_status st = take_parts(&u);
    ot_arena_free(u.a);
    return st;
}
