/* Walking protobuf messages by their descriptors.
 *
 * The generated descriptors tell, for each message type, where its sub-messages lie; one generic
 * walk then serves everything that must see *all* tensors or *all* names of a model, whichever
 * of graph, subgraph, function or training info they hide in, also in message types added later.
 */
#include "source.h"

size_t ot_pb_children(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *f,
                      ProtobufCMessage *const **items)
{
    const char *base = (const char *)msg;
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        *items = *(ProtobufCMessage *const *const *)(const void *)(base + f->offset);
        return *(const size_t *)(const void *)(base + f->quantifier_offset);
    }
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        uint32_t set = *(const uint32_t *)(const void *)(base + f->quantifier_offset);
        if (set != f->id) return 0;
    }
    *items = (ProtobufCMessage *const *)(const void *)(base + f->offset);
    return **items ? 1 : 0;
}

ot_status ot_pb_walk(const ProtobufCMessage *msg, ot_pb_visit visit, void *ctx)
{
    OT_TRY(visit(ctx, msg));
    for (unsigned k = 0; k < msg->descriptor->n_fields; k++) {
        const ProtobufCFieldDescriptor *f = &msg->descriptor->fields[k];
        if (f->type != PROTOBUF_C_TYPE_MESSAGE) continue;
        ProtobufCMessage *const *items = NULL;
        size_t n = ot_pb_children(msg, f, &items);
        for (size_t j = 0; j < n; j++) OT_TRY(ot_pb_walk(items[j], visit, ctx));
    }
    return OT_OK;
}
