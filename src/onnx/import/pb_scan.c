/* Pre-scan of a protobuf file, before anything is unpacked.
 *
 * Why: the unpacker recurses once per nested message and allocates what lengths ask for; a
 * stranger's file must not choose our stack depth. The scan walks the wire format with an
 * explicit stack of open messages, guided by the generated descriptors, and accepts only what
 * the unpacker will accept:
 *
 *   field  = tag varint (number << 3 | wire type), then
 *     wire 0 varint | 1 eight bytes | 2 length + bytes | 5 four bytes      (3, 4: groups, refused)
 *
 *   stack:  ModelProto[0, n) > GraphProto[12, n) > NodeProto[80, 120) > ...   at most 100 deep
 *
 * Strings with a zero byte inside are refused as well: they would be cut when read as C strings,
 * and two different names could become one.
 */
#include "import.h"

typedef struct frame {
    const ProtobufCMessageDescriptor *type;
    const uint8_t *end;
} frame;

typedef struct scanner {
    const uint8_t *start;
    const uint8_t *at;
    ot_diag *d;
    uint32_t depth;
    frame stack[OT_IMPORT_DEPTH_MAX];
} scanner;

static const frame *top(const scanner *s) { return &s->stack[s->depth - 1]; }

static ot_status bad(const scanner *s, uint64_t field, const char *rule)
{
    return ot_fail(s->d, OT_E_INPUT, "not a valid ONNX file: in %s at byte %zu, field %llu: %s",
                   top(s)->type->short_name, (size_t)(s->at - s->start), (unsigned long long)field,
                   rule);
}

/* Read a varint below `end`; false when it is cut or longer than 10 bytes. */
static bool varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    uint64_t value = 0;
    const uint8_t *p = *at;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (p == end) return false;
        value |= shift < 64 ? (uint64_t)(*p & 0x7f) << shift : 0;
        if (!(*p++ & 0x80)) {
            *at = p;
            *out = value;
            return true;
        }
    }
    return false;
}

/* Wire type of one element of a scalar field; 2 for strings, bytes and messages. */
static unsigned wire_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT: return 5;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return 1;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return 2;
    default: return 0;
    }
}

/* Is [p, p+n) a whole number of packed elements? */
static bool packed_ok(const uint8_t *p, size_t n, unsigned wire)
{
    if (wire == 5) return n % 4 == 0;
    if (wire == 1) return n % 8 == 0;
    const uint8_t *end = p + n;
    uint64_t ignored;
    while (p < end)
        if (!varint(&p, end, &ignored)) return false;
    return true;
}

/* A length-delimited field, s->at just behind its tag. */
static ot_status scan_delimited(scanner *s, const ProtobufCFieldDescriptor *f, uint64_t number)
{
    uint64_t n;
    const uint8_t *end = top(s)->end;
    if (!varint(&s->at, end, &n)) return bad(s, number, "its length is cut off");
    if (n > (uint64_t)(end - s->at))
        return bad(s, number, "it is longer than the message around it");
    if (f && f->type == PROTOBUF_C_TYPE_MESSAGE) {
        if (s->depth == OT_IMPORT_DEPTH_MAX)
            return bad(s, number, "messages are nested more than 100 deep");
        s->stack[s->depth++] = (frame){f->descriptor, s->at + n};
        return OT_OK;
    }
    if (f && f->type == PROTOBUF_C_TYPE_STRING && n && memchr(s->at, 0, (size_t)n))
        return bad(s, number, "a string holds a zero byte");
    if (f && wire_of(f->type) != 2) {
        if (f->label != PROTOBUF_C_LABEL_REPEATED) return bad(s, number, "wrong wire type");
        if (!packed_ok(s->at, (size_t)n, wire_of(f->type)))
            return bad(s, number, "broken packed list");
    }
    s->at += n;
    return OT_OK;
}

static ot_status scan_field(scanner *s)
{
    const uint8_t *end = top(s)->end;
    uint64_t tag, ignored;
    if (!varint(&s->at, end, &tag)) return bad(s, 0, "a tag is cut off");
    uint64_t number = tag >> 3;
    unsigned wire = (unsigned)(tag & 7);
    if (number == 0 || number > 0x1fffffff) return bad(s, number, "impossible field number");
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(top(s)->type,
                                                                                (unsigned)number);
    if (f && wire != 2 && wire != wire_of(f->type)) return bad(s, number, "wrong wire type");
    switch (wire) {
    case 0:
        if (!varint(&s->at, end, &ignored)) return bad(s, number, "a number is cut off");
        return OT_OK;
    case 1:
    case 5: {
        size_t n = wire == 1 ? 8 : 4;
        if ((size_t)(end - s->at) < n) return bad(s, number, "a number is cut off");
        s->at += n;
        return OT_OK;
    }
    case 2: return scan_delimited(s, f, number);
    default: return bad(s, number, "unsupported wire type (group)");
    }
}

ot_status ot_pb_scan(const uint8_t *bytes, size_t n, const ProtobufCMessageDescriptor *type,
                     ot_diag *d)
{
    scanner s = {.start = bytes, .at = bytes, .d = d, .depth = 1};
    s.stack[0] = (frame){type, bytes + n};
    while (s.depth > 0) {
        if (s.at == top(&s)->end)
            s.depth--;
        else
            OT_TRY(scan_field(&s));
    }
    return OT_OK;
}
