/* Every name in use anywhere in the model, for ot_fresh_name.
 *
 * ONNX forbids a body to reuse a visible outer name, and functions are inlined into the graph by
 * runtimes; so a fresh name must differ from all names of values and nodes in the graph, all
 * subgraphs, all functions and the training graphs.
 */
#include "import.h"

static ot_status add(ot_importer *im, const char *name)
{
    if (!name || !name[0] || ot_map_get(im->m->names, name) != OT_NONE) return OT_OK;
    return ot_map_put(im->m->names, name, 0) ? OT_OK : ot_fail_nomem(im->d);
}

static ot_status add_all(ot_importer *im, char *const *names, size_t n)
{
    for (size_t k = 0; k < n; k++) OT_TRY(add(im, names[k]));
    return OT_OK;
}

static ot_status visit(void *ctx, const ProtobufCMessage *msg)
{
    ot_importer *im = ctx;
    const ProtobufCMessageDescriptor *type = msg->descriptor;
    if (type == &onnx__node_proto__descriptor) {
        const Onnx__NodeProto *n = (const Onnx__NodeProto *)msg;
        OT_TRY(add(im, n->name));
        OT_TRY(add_all(im, n->input, n->n_input));
        return add_all(im, n->output, n->n_output);
    }
    if (type == &onnx__function_proto__descriptor) {
        const Onnx__FunctionProto *f = (const Onnx__FunctionProto *)msg;
        OT_TRY(add_all(im, f->input, f->n_input));
        return add_all(im, f->output, f->n_output);
    }
    if (type == &onnx__value_info_proto__descriptor)
        return add(im, ((const Onnx__ValueInfoProto *)msg)->name);
    if (type == &onnx__tensor_proto__descriptor)
        return add(im, ((const Onnx__TensorProto *)msg)->name);
    return OT_OK;
}

ot_status ot_import_names(ot_importer *im) { return ot_pb_walk(&im->mp->base, visit, im); }
