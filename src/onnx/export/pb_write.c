/* A streaming packer for protobuf messages.
 *
 * protobuf-c's own pack_to_buffer gathers each sub-message in memory before it writes it, which
 * for a model means the whole graph a second time. Here the sizes of all sub-messages are
 * measured first, in the order in which they will be written, and then everything streams:
 *
 *   measure:  Model > Graph > Node Node Tensor      sizes = [Graph, Node, Node, Tensor]
 *   emit:     the same walk takes sizes one by one; raw_data goes straight from its place to the
 *             file
 *
 * Order and form of the bytes are protobuf-c's (fields by number, unknown ones last), so an
 * unchanged message gives the same bytes as protobuf_c_message_pack. Tensors can be replaced on
 * the way (external data), wherever in the model they are.
 */
#include "export.h"

#define FIELD(msg, at, type) (*(type const *)(const void *)((const char *)(msg) + (at)))

/* ---- varints ---- */

static unsigned varint_size(uint64_t v)
{
    unsigned n = 1;
    for (; v >= 0x80; v >>= 7) n++;
    return n;
}

static void put_varint(ot_sink *s, uint64_t v)
{
    uint8_t out[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) out[n++] = (uint8_t)(v | 0x80);
    out[n++] = (uint8_t)v;
    ot_sink_put(s, out, n);
}

static void put_tag(ot_sink *s, uint32_t id, unsigned wire)
{
    put_varint(s, (uint64_t)id << 3 | wire);
}

/* ---- scalars ---- */

/* Bytes of one element of a fixed-size type; 0 for varint types. */
static size_t fixed_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32: return 4;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64: return 8;
    default: return 0;
    }
}

/* Bytes of one element of a scalar array in memory. */
static size_t stride_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_SINT64: return 8;
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    default: return fixed_size(type) ? fixed_size(type) : 4;
    }
}

/* The varint that stands for the element at p. */
static uint64_t varint_of(ProtobufCType type, const void *p)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: return *(const uint64_t *)p;
    case PROTOBUF_C_TYPE_SINT64: {
        int64_t v = *(const int64_t *)p;
        return v < 0 ? ~((uint64_t)v << 1) : (uint64_t)v << 1;
    }
    case PROTOBUF_C_TYPE_SINT32: {
        int32_t v = *(const int32_t *)p;
        return v < 0 ? ~((uint32_t)v << 1) : (uint32_t)v << 1;
    }
    case PROTOBUF_C_TYPE_UINT32: return *(const uint32_t *)p;
    case PROTOBUF_C_TYPE_BOOL: return *(const protobuf_c_boolean *)p != 0;
    default: return (uint64_t)(int64_t) * (const int32_t *)p; /* int32, enum: sign-extended */
    }
}

static uint64_t scalar_size(ProtobufCType type, const void *p)
{
    size_t fixed = fixed_size(type);
    return fixed ? fixed : varint_size(varint_of(type, p));
}

static void put_scalar(ot_sink *s, ProtobufCType type, const void *p)
{
    if (fixed_size(type))
        ot_sink_put(s, p,
                    fixed_size(type)); /* little-endian hosts only, like the rest of the program */
    else
        put_varint(s, varint_of(type, p));
}

static unsigned wire_of(ProtobufCType type)
{
    if (fixed_size(type)) return fixed_size(type) == 4 ? 5 : 1;
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return 2;
    default: return 0;
    }
}

/* ---- which elements a field has ---- */

typedef struct span {
    const void *items; /* first element */
    size_t n;
    size_t stride;
} span;

static size_t element_stride(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    default: return stride_of(type);
    }
}

/* The elements of field f that are to be written; none when it is not set. */
static span elements(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *f)
{
    span sp = {(const char *)msg + f->offset, 0, element_stride(f->type)};
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        sp.n = FIELD(msg, f->quantifier_offset, size_t);
        sp.items = FIELD(msg, f->offset, void *);
        return sp;
    }
    if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
        FIELD(msg, f->quantifier_offset, uint32_t) != f->id)
        return sp;
    if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE) {
        const void *p = FIELD(msg, f->offset, void *);
        sp.n = p && p != f->default_value;
    } else {
        sp.n = (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) || f->label == PROTOBUF_C_LABEL_REQUIRED ||
               FIELD(msg, f->quantifier_offset, protobuf_c_boolean);
    }
    return sp;
}

static const void *element(const span *sp, size_t k)
{
    return (const char *)sp->items + k * sp->stride;
}

static bool is_packed(const ProtobufCFieldDescriptor *f)
{
    return f->label == PROTOBUF_C_LABEL_REPEATED && (f->flags & PROTOBUF_C_FIELD_FLAG_PACKED);
}

static uint64_t packed_size(ProtobufCType type, const span *sp)
{
    if (fixed_size(type)) return (uint64_t)sp->n * fixed_size(type);
    uint64_t size = 0;
    for (size_t k = 0; k < sp->n; k++) size += scalar_size(type, element(sp, k));
    return size;
}

/* The message to write in place of `msg`. */
static const ProtobufCMessage *actual(const ot_pb_writer *w, const ProtobufCMessage *msg)
{
    if (!w->subst || msg->descriptor != &onnx__tensor_proto__descriptor) return msg;
    return &w->subst(w->ctx, (const Onnx__TensorProto *)msg)->base;
}

/* ---- measuring ---- */

static bool measure_message(ot_pb_writer *w, const ProtobufCMessage *msg, uint64_t *size);

/* One element of a string, bytes or message field, without its tag. */
static bool measure_delimited(ot_pb_writer *w, ProtobufCType type, const void *p, uint64_t *size)
{
    uint64_t n = 0;
    if (type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(const char *const *)p;
        n = text ? strlen(text) : 0;
    } else if (type == PROTOBUF_C_TYPE_BYTES) {
        n = ((const ProtobufCBinaryData *)p)->len;
    } else {
        size_t slot = w->n_sizes;
        if (!OT_PUSH(w->a, w->sizes, w->n_sizes, w->cap_sizes, 0)) return false;
        if (!measure_message(w, actual(w, *(const ProtobufCMessage *const *)p), &n)) return false;
        w->sizes[slot] = n;
    }
    *size += varint_size(n) + n;
    return true;
}

static bool measure_field(ot_pb_writer *w, const ProtobufCMessage *msg,
                          const ProtobufCFieldDescriptor *f, uint64_t *size)
{
    span sp = elements(msg, f);
    if (sp.n == 0) return true;
    unsigned tag = varint_size((uint64_t)f->id << 3);
    if (is_packed(f)) {
        uint64_t n = packed_size(f->type, &sp);
        *size += tag + varint_size(n) + n;
        return true;
    }
    for (size_t k = 0; k < sp.n; k++) {
        *size += tag;
        if (wire_of(f->type) != 2)
            *size += scalar_size(f->type, element(&sp, k));
        else if (!measure_delimited(w, f->type, element(&sp, k), size))
            return false;
    }
    return true;
}

static bool measure_message(ot_pb_writer *w, const ProtobufCMessage *msg, uint64_t *size)
{
    *size = 0;
    for (unsigned k = 0; k < msg->descriptor->n_fields; k++)
        if (!measure_field(w, msg, &msg->descriptor->fields[k], size)) return false;
    for (unsigned k = 0; k < msg->n_unknown_fields; k++)
        *size += varint_size((uint64_t)msg->unknown_fields[k].tag << 3) +
                 msg->unknown_fields[k].len;
    return true;
}

bool ot_pb_measure(ot_pb_writer *w, const ProtobufCMessage *msg, uint64_t *size)
{
    w->n_sizes = 0;
    w->next = 0;
    return measure_message(w, msg, size);
}

/* ---- writing ---- */

static void emit_message(ot_pb_writer *w, const ProtobufCMessage *msg, ot_sink *s);

static void emit_delimited(ot_pb_writer *w, ProtobufCType type, const void *p, ot_sink *s)
{
    if (type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(const char *const *)p;
        size_t n = text ? strlen(text) : 0;
        put_varint(s, n);
        ot_sink_put(s, text, n);
    } else if (type == PROTOBUF_C_TYPE_BYTES) {
        const ProtobufCBinaryData *b = p;
        put_varint(s, b->len);
        ot_sink_put(s, b->data, b->len);
    } else {
        put_varint(s, w->sizes[w->next++]);
        emit_message(w, actual(w, *(const ProtobufCMessage *const *)p), s);
    }
}

static void emit_field(ot_pb_writer *w, const ProtobufCMessage *msg,
                       const ProtobufCFieldDescriptor *f, ot_sink *s)
{
    span sp = elements(msg, f);
    if (sp.n == 0) return;
    if (is_packed(f)) {
        put_tag(s, f->id, 2);
        put_varint(s, packed_size(f->type, &sp));
        if (fixed_size(f->type))
            ot_sink_put(s, sp.items, sp.n * fixed_size(f->type));
        else
            for (size_t k = 0; k < sp.n; k++) put_scalar(s, f->type, element(&sp, k));
        return;
    }
    for (size_t k = 0; k < sp.n; k++) {
        put_tag(s, f->id, wire_of(f->type));
        if (wire_of(f->type) == 2)
            emit_delimited(w, f->type, element(&sp, k), s);
        else
            put_scalar(s, f->type, element(&sp, k));
    }
}

static void emit_message(ot_pb_writer *w, const ProtobufCMessage *msg, ot_sink *s)
{
    for (unsigned k = 0; k < msg->descriptor->n_fields; k++)
        emit_field(w, msg, &msg->descriptor->fields[k], s);
    for (unsigned k = 0; k < msg->n_unknown_fields; k++) {
        const ProtobufCMessageUnknownField *u = &msg->unknown_fields[k];
        put_tag(s, u->tag, u->wire_type);
        ot_sink_put(s, u->data, u->len); /* a length prefix is part of data */
    }
}

void ot_pb_emit(ot_pb_writer *w, const ProtobufCMessage *msg, ot_sink *s)
{
    w->next = 0;
    emit_message(w, msg, s);
}
