/* A model file without the contents of its large tensors, so that the file need not be in memory
 * beside what is unpacked of it.
 *
 *   file:  ... TensorProto { dims, name "w", raw_data [9 MiB] } ...
 *   copy:  ... TensorProto { dims, name "w", PLACE 0 } ...              places[0] = offset, length
 *
 * The copy is what is scanned and unpacked: nobody else can write to it. Then the contents are
 * read from the file to where they will stay. Each byte of the file is read once. Lengths of
 * messages that hold a place are written in five bytes, which readers of the format accept.
 *
 * What is no plain case (a tensor with its contents twice, a field that is ours, a broken file) is
 * refused here, and read as a whole instead.
 */
#include "import.h"

#include <errno.h>
#include <unistd.h>

#define PLACE_FIELD  ((1u << 29) - 1)  /* the last field number that the format has */
#define PLACE_LEAST  ((size_t)1 << 16) /* bytes of contents that are left out */
#define LENGTH_BYTES 5u
#define AHEAD        ((size_t)1 << 16)

struct ot_slim {
    ot_arena *a;
    int fd;
    uint64_t at;     /* next byte of the file */
    size_t ready, n; /* next byte of ahead, and how many there are: ahead[ready] is at `at` */
    uint8_t *ahead;  /* [AHEAD] */
    char *bytes;     /* the copy: [n_bytes] */
    size_t n_bytes, cap_bytes;
    ot_slim_range *places; /* [n_places] */
    size_t n_places, cap_places;
    size_t n_filled;
    bool no_memory;
};

/* ---- reading ---- */

/* false: the file ends, or cannot be read. */
static bool read_ahead(ot_slim *s)
{
    for (;;) {
        ssize_t got = pread(s->fd, s->ahead, AHEAD, (off_t)s->at);
        if (got < 0 && errno == EINTR) continue;
        s->ready = 0;
        s->n = got > 0 ? (size_t)got : 0;
        return got > 0;
    }
}

static bool room(ot_slim *s, size_t more)
{
    if (s->n_bytes + more <= s->cap_bytes) return true;
    s->no_memory = !ot_grow(s->a, (void **)&s->bytes, &s->cap_bytes, s->n_bytes + more, 1);
    return !s->no_memory;
}

/* Copy n bytes. */
static bool copy(ot_slim *s, uint64_t n)
{
    if (n > INT32_MAX || !room(s, (size_t)n)) return false;
    while (n > 0) {
        if (s->ready == s->n && !read_ahead(s)) return false;
        size_t now = s->n - s->ready < n ? s->n - s->ready : (size_t)n;
        memcpy(s->bytes + s->n_bytes, s->ahead + s->ready, now);
        s->n_bytes += now;
        s->ready += now;
        s->at += now;
        n -= now;
    }
    return true;
}

static void skip(ot_slim *s, uint64_t n)
{
    size_t left = s->n - s->ready;
    s->ready += n < left ? (size_t)n : left;
    s->at += n;
}

/* Read a varint, and copy it too. */
static bool varint(ot_slim *s, uint64_t end, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && s->at < end; shift += 7) {
        if (!copy(s, 1)) return false;
        uint8_t byte = (uint8_t)s->bytes[s->n_bytes - 1];
        value |= (uint64_t)(byte & 0x7f) << shift;
        *out = value;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

/* ---- writing ---- */

static bool put_varint(ot_slim *s, uint64_t value)
{
    if (!room(s, 10)) return false;
    for (; value > 0x7f; value >>= 7) s->bytes[s->n_bytes++] = (char)((value & 0x7f) | 0x80);
    s->bytes[s->n_bytes++] = (char)value;
    return true;
}

static bool put_place(ot_slim *s, uint64_t n)
{
    uint64_t index = s->n_places;
    if (!put_varint(s, (uint64_t)PLACE_FIELD << 3 | PROTOBUF_C_WIRE_TYPE_64BIT) ||
        !room(s, sizeof index))
        return false;
    memcpy(s->bytes + s->n_bytes, &index, sizeof index);
    s->n_bytes += sizeof index;
    ot_slim_range place = {.offset = s->at, .bytes = (size_t)n};
    s->no_memory = !OT_PUSH(s->a, s->places, s->n_places, s->cap_places, place);
    skip(s, n);
    return !s->no_memory;
}

/* ---- messages ---- */

static bool slim_message(ot_slim *s, uint64_t end, const ProtobufCMessageDescriptor *type,
                         unsigned depth);

/* A message inside another, of n bytes. */
static bool slim_inner(ot_slim *s, uint64_t n, const ProtobufCMessageDescriptor *type,
                       unsigned depth)
{
    if (depth == OT_IMPORT_DEPTH_MAX || !room(s, LENGTH_BYTES)) return false;
    size_t at = s->n_bytes;
    s->n_bytes += LENGTH_BYTES;
    if (!slim_message(s, s->at + n, type, depth + 1)) return false;
    size_t length = s->n_bytes - at - LENGTH_BYTES;
    if (length > INT32_MAX) return false;
    for (unsigned k = 0; k < LENGTH_BYTES; k++, length >>= 7)
        s->bytes[at + k] = (char)((length & 0x7f) | (k + 1 < LENGTH_BYTES ? 0x80 : 0));
    return true;
}

/* A field with a length, of a message that ends at `end`; its tag begins at bytes[tag]. */
static bool slim_delimited(ot_slim *s, uint64_t end, const ProtobufCFieldDescriptor *f, size_t tag,
                           unsigned depth)
{
    uint64_t n = 0;
    size_t behind_tag = s->n_bytes;
    if (!varint(s, end, &n) || n > end - s->at) return false;
    if (!f || n < PLACE_LEAST) return copy(s, n);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        s->n_bytes = behind_tag;
        return slim_inner(s, n, f->descriptor, depth);
    }
    if (f->type != PROTOBUF_C_TYPE_BYTES || strcmp(f->name, "raw_data") != 0) return copy(s, n);
    s->n_bytes = tag;
    return put_place(s, n);
}

static bool slim_field(ot_slim *s, uint64_t end, const ProtobufCMessageDescriptor *type,
                       uint32_t *n_raw, unsigned depth)
{
    uint64_t tag, ignored;
    size_t start = s->n_bytes;
    if (!varint(s, end, &tag) || tag >> 3 >= PLACE_FIELD) return false;
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(
        type, (unsigned)(tag >> 3));
    if (f && strcmp(f->name, "raw_data") == 0) (*n_raw)++;
    switch (tag & 7) {
    case PROTOBUF_C_WIRE_TYPE_VARINT: return varint(s, end, &ignored);
    case PROTOBUF_C_WIRE_TYPE_64BIT: return end - s->at >= 8 && copy(s, 8);
    case PROTOBUF_C_WIRE_TYPE_32BIT: return end - s->at >= 4 && copy(s, 4);
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED: return slim_delimited(s, end, f, start, depth);
    default: return false;
    }
}

/* What is left of the message that ends at `end`. */
static bool slim_message(ot_slim *s, uint64_t end, const ProtobufCMessageDescriptor *type,
                         unsigned depth)
{
    uint32_t n_raw = 0;
    while (s->at < end)
        if (!slim_field(s, end, type, &n_raw, depth)) return false;
    return n_raw < 2;
}

ot_status ot_slim_read(int fd, uint64_t n, ot_arena *a, ot_diag *d, ot_slim **out)
{
    ot_slim *s = OT_NEW(a, ot_slim);
    *out = NULL;
    if (!s || !(s->ahead = ot_alloc(a, AHEAD))) return ot_fail_nomem(d);
    s->a = a;
    s->fd = fd;
    bool done = slim_message(s, n, &onnx__model_proto__descriptor, 1);
    if (s->no_memory) return ot_fail_nomem(d);
    if (done) *out = s;
    return OT_OK;
}

const void *ot_slim_bytes(const ot_slim *s, size_t *n)
{
    *n = s->n_bytes;
    return s->bytes;
}

/* ---- the contents ---- */

/* The place that a tensor names, which it does not name any more; NULL: none. */
static ot_slim_range *take_place(const ot_slim *s, Onnx__TensorProto *t)
{
    for (unsigned k = 0; k < t->base.n_unknown_fields; k++) {
        ProtobufCMessageUnknownField *u = &t->base.unknown_fields[k];
        uint64_t index;
        if (u->tag != PLACE_FIELD || u->len != sizeof index) continue;
        memcpy(&index, u->data, sizeof index);
        ot_pb_release(u->data);
        *u = t->base.unknown_fields[--t->base.n_unknown_fields];
        return index < s->n_places ? &s->places[index] : NULL;
    }
    return NULL;
}

static bool read_at(int fd, uint8_t *to, size_t n, uint64_t offset)
{
    while (n > 0) {
        ssize_t got = pread(fd, to, n, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        to += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return true;
}

typedef struct filling {
    ot_slim *s;
    ot_diag *d;
} filling;

static ot_status fill(void *ctx, const ProtobufCMessage *msg)
{
    filling *x = ctx;
    if (msg->descriptor != &onnx__tensor_proto__descriptor) return OT_OK;
    Onnx__TensorProto *t = (Onnx__TensorProto *)(uintptr_t)msg;
    const ot_slim_range *p = take_place(x->s, t);
    if (!p) return OT_OK;
    uint8_t *data = ot_pb_take(p->bytes);
    if (!data) return ot_fail_nomem(x->d);
    t->has_raw_data = true;
    t->raw_data = (ProtobufCBinaryData){p->bytes, data};
    x->s->n_filled++;
    return read_at(x->s->fd, data, p->bytes, p->offset) ? OT_OK : OT_E_INPUT;
}

ot_status ot_slim_fill(ot_slim *s, Onnx__ModelProto *model, ot_diag *d)
{
    filling x = {s, d};
    OT_TRY(ot_pb_walk(&model->base, fill, &x));
    return s->n_filled == s->n_places ? OT_OK : OT_E_INPUT;
}
