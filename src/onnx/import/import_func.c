/* Model-local functions: which (domain, name) pairs are functions, and that none calls itself.
 *
 * A node that calls a function is opaque to us; functions are carried through unread. But runtimes
 * inline them, and a cycle A -> B -> A makes naive inliners recurse for ever, so a cycle is refused
 * here. The call graph is walked depth first with an explicit stack: functions may be many.
 * Overloads (IR 10) came after the protos we build with: they are found among the unknown fields.
 */
#include "import.h"

#define FUNCTION_OVERLOAD_TAG 13
#define NODE_OVERLOAD_TAG     8

/* Contents of an unknown string field in the scratch arena; "" when absent, NULL on no memory. */
static const char *unknown_string(ot_importer *im, const ProtobufCMessage *msg, uint32_t tag)
{
    for (unsigned k = 0; k < msg->n_unknown_fields; k++) {
        const ProtobufCMessageUnknownField *u = &msg->unknown_fields[k];
        if (u->tag != tag || u->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) continue;
        size_t prefix = 0; /* data begins with the length varint */
        while (prefix < u->len && (u->data[prefix] & 0x80)) prefix++;
        if (prefix >= u->len) continue;
        return ot_strndup(im->scratch, (const char *)u->data + prefix + 1, u->len - prefix - 1);
    }
    return "";
}

static const char *key_of(ot_importer *im, ot_arena *a, const char *domain, const char *name,
                          const ProtobufCMessage *msg, uint32_t overload_tag)
{
    const char *overload = unknown_string(im, msg, overload_tag);
    if (!overload) return NULL;
    return ot_format(a, "%s\n%s\n%s", ot_domain(domain), ot_text(name), overload);
}

bool ot_calls_function(ot_importer *im, const Onnx__NodeProto *p, uint32_t *index, bool *nomem)
{
    *nomem = false;
    if (im->mp->n_functions == 0) return false;
    const char *key = key_of(im, im->scratch, p->domain, p->op_type, &p->base, NODE_OVERLOAD_TAG);
    *nomem = !key;
    *index = key ? ot_map_get(im->functions, key) : OT_NONE;
    return *index != OT_NONE;
}

bool ot_has_overload(const Onnx__NodeProto *p)
{
    for (unsigned k = 0; k < p->base.n_unknown_fields; k++)
        if (p->base.unknown_fields[k].tag == NODE_OVERLOAD_TAG) return true;
    return false;
}

/* ---- the call graph ---- */

typedef struct calls {
    ot_importer *im;
    uint32_t *to; /* callee of each call, grouped by caller */
    size_t n;
    size_t cap;
} calls;

static ot_status collect(void *ctx, const ProtobufCMessage *msg)
{
    calls *c = ctx;
    if (msg->descriptor != &onnx__node_proto__descriptor) return OT_OK;
    uint32_t callee;
    bool nomem;
    if (!ot_calls_function(c->im, (const Onnx__NodeProto *)msg, &callee, &nomem))
        return nomem ? ot_fail_nomem(c->im->d) : OT_OK;
    return OT_PUSH(c->im->scratch, c->to, c->n, c->cap, callee) ? OT_OK : ot_fail_nomem(c->im->d);
}

typedef struct call_frame {
    uint32_t function;
    size_t next; /* index into calls.to */
} call_frame;

/* at: [n + 1] start of each function's calls. */
static ot_status find_cycle(ot_importer *im, const calls *c, const size_t *at)
{
    size_t n = im->mp->n_functions;
    enum { NEW = 0, OPEN, DONE };
    char *state = OT_NEW_N(im->scratch, char, n);
    call_frame *stack = OT_NEW_N(im->scratch, call_frame, n);
    if (!state || !stack) return ot_fail_nomem(im->d);
    for (uint32_t root = 0; root < n; root++) {
        size_t depth = 0;
        if (state[root] == NEW) stack[depth++] = (call_frame){root, at[root]}, state[root] = OPEN;
        while (depth) {
            call_frame *f = &stack[depth - 1];
            if (f->next == at[f->function + 1]) {
                state[f->function] = DONE;
                depth--;
                continue;
            }
            uint32_t callee = c->to[f->next++];
            if (state[callee] == OPEN)
                return ot_fail(im->d, OT_E_INPUT,
                               "function '%.*s' calls itself (through function '%.*s')",
                               OT_NAME_SHOWN, ot_text(im->mp->functions[callee]->name),
                               OT_NAME_SHOWN, ot_text(im->mp->functions[f->function]->name));
            if (state[callee] == DONE) continue;
            state[callee] = OPEN;
            stack[depth++] = (call_frame){callee, at[callee]};
        }
    }
    return OT_OK;
}

static ot_status index_functions(ot_importer *im)
{
    for (uint32_t k = 0; k < im->mp->n_functions; k++) {
        const Onnx__FunctionProto *f = im->mp->functions[k];
        const char *key = key_of(im, im->m->arena, f->domain, f->name, &f->base,
                                 FUNCTION_OVERLOAD_TAG);
        if (!key) return ot_fail_nomem(im->d);
        if (ot_map_get(im->functions, key) != OT_NONE)
            return ot_fail(im->d, OT_E_INPUT, "function '%.*s' of domain '%.*s' is defined twice",
                           OT_NAME_SHOWN, ot_text(f->name), OT_NAME_SHOWN, ot_text(f->domain));
        if (!ot_map_put(im->functions, key, k)) return ot_fail_nomem(im->d);
    }
    return OT_OK;
}

ot_status ot_import_functions(ot_importer *im)
{
    size_t n = im->mp->n_functions;
    im->functions = im->src->functions = ot_map_new(im->m->arena); /* bodies are read later */
    size_t *at = OT_NEW_N(im->scratch, size_t, n + 1);
    if (!im->functions || !at) return ot_fail_nomem(im->d);
    if (n >= OT_NONE) return ot_fail(im->d, OT_E_INPUT, "too many functions");
    OT_TRY(index_functions(im));
    calls c = {.im = im};
    for (size_t k = 0; k < n; k++) {
        at[k] = c.n;
        OT_TRY(ot_pb_walk(&im->mp->functions[k]->base, collect, &c));
    }
    at[n] = c.n;
    return find_cycle(im, &c, at);
}
