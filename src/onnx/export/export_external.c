/* The data file: which tensors go there, where, and what the model says about them.
 *
 *   out.onnx:          TensorProto { location "out.onnx.HASH.data", offset 64, length 1024 }
 *   out.onnx.HASH.data:  |tensor 0 ....|pad|tensor 1 ....|pad|...   every start a multiple of 64
 *
 * The name is of the contents: who writes the same file twice, at once even, or fails between the
 * two files, never leaves one model with the data of another.
 *
 * All tensors below the model message are visited, also those inside the user's subgraphs and
 * functions. Tensors that share their elements (one weight used by several bodies) share one
 * place in the file. Small ones (< 1 KiB) become raw_data: the model can then be read without a
 * second file access. Substitutes are looked up by address, but offsets follow the order of the
 * visit, so that the bytes are the same on every run.
 */
#include "export.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIGN ((uint64_t)64)
#define SMALL ((size_t)1024)

typedef struct item {
    const Onnx__TensorProto *from;
    Onnx__TensorProto *to;
    const uint8_t *data; /* [bytes] */
    size_t bytes;
    size_t visit;    /* position in visiting order */
    uint64_t offset; /* in the data file */
    bool outside;    /* goes to the data file; else becomes raw_data */
    bool first;      /* the first of those that share data: the one that is written */
} item;

struct ot_store {
    ot_exporter *ex;
    const char *base;     /* of the location; NULL: nothing goes to a file */
    const char *location; /* set once the contents are known */
    bool all;
    item *items; /* [n] in visiting order */
    size_t n, cap;
    item **by_from; /* [n] */
    bool has_data;
};

static ot_status visit(void *ctx, const ProtobufCMessage *msg)
{
    ot_store *st = ctx;
    if (msg->descriptor != &onnx__tensor_proto__descriptor) return OT_OK;
    const Onnx__TensorProto *t = (const Onnx__TensorProto *)msg;
    item it = {.from = t, .visit = st->n};
    const ot_ext *e = st->ex->src ? ot_source_ext(st->ex->src, t) : NULL;
    if (e) {
        it.data = e->data;
        it.bytes = e->bytes;
        it.outside = st->base && e->bytes >= SMALL;
    } else if (st->all && t->has_raw_data && t->raw_data.len >= SMALL) {
        it.data = t->raw_data.data;
        it.bytes = t->raw_data.len;
        it.outside = true;
    } else {
        return OT_OK;
    }
    st->has_data = st->has_data || it.outside;
    return OT_PUSH(st->ex->a, st->items, st->n, st->cap, it) ? OT_OK : ot_fail_nomem(st->ex->d);
}

static int compare(uintptr_t x, uintptr_t y) { return (x > y) - (x < y); }

static int by_data(const void *a, const void *b)
{
    const item *x = *(item *const *)a, *y = *(item *const *)b;
    int c = compare((uintptr_t)x->data, (uintptr_t)y->data);
    if (c == 0) c = compare(x->bytes, y->bytes);
    return c ? c : compare(x->visit, y->visit);
}

static int by_from(const void *a, const void *b)
{
    const item *x = *(item *const *)a, *y = *(item *const *)b;
    int c = compare((uintptr_t)x->from, (uintptr_t)y->from);
    return c ? c : compare(x->visit, y->visit);
}

/* Offsets: the first of each group in visiting order, then its followers. */
static ot_status assign_offsets(ot_store *st)
{
    item **sorted = OT_NEW_N(st->ex->a, item *, st->n);
    item **leader = OT_NEW_N(st->ex->a, item *, st->n);
    if (!sorted || !leader) return ot_fail_nomem(st->ex->d);
    for (size_t k = 0; k < st->n; k++) sorted[k] = &st->items[k];
    qsort(sorted, st->n, sizeof *sorted, by_data);
    for (size_t k = 0; k < st->n; k++) {
        item *it = sorted[k];
        bool same = k && sorted[k - 1]->data == it->data && sorted[k - 1]->bytes == it->bytes;
        leader[it->visit] = same ? leader[sorted[k - 1]->visit] : it;
    }
    uint64_t at = 0;
    for (size_t k = 0; k < st->n; k++) {
        item *it = &st->items[k];
        if (!it->outside) continue;
        it->first = leader[k] == it;
        if (!it->first) {
            it->offset = leader[k]->offset; /* visited before this one */
            continue;
        }
        it->offset = (at + ALIGN - 1) / ALIGN * ALIGN;
        at = it->offset + it->bytes;
    }
    return OT_OK;
}

/* Eight bytes at a time, so that gigabytes take no time beside writing them. */
static uint64_t mix(uint64_t h, const uint8_t *data, size_t n)
{
    uint64_t word;
    for (; n >= sizeof word; n -= sizeof word, data += sizeof word) {
        memcpy(&word, data, sizeof word);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    word = n;
    memcpy(&word, data, n);
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/* The name of the data file, by what is in it and where. */
static ot_status name_file(ot_store *st)
{
    uint64_t h = 0;
    for (size_t k = 0; k < st->n; k++) {
        const item *it = &st->items[k];
        if (!it->outside || !it->first) continue;
        const uint64_t place[2] = {it->offset, it->bytes};
        h = mix(h, (const uint8_t *)place, sizeof place);
        h = mix(h, it->data, it->bytes);
    }
    st->location = ot_format(st->ex->a, "%s.%016llx.data", st->base, (unsigned long long)h);
    return st->location ? OT_OK : ot_fail_nomem(st->ex->d);
}

static Onnx__StringStringEntryProto *new_entry(ot_store *st, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = OT_NEW(st->ex->a, Onnx__StringStringEntryProto);
    if (!e || !value) return NULL;
    onnx__string_string_entry_proto__init(e);
    e->key = (char *)(uintptr_t)key;
    e->value = (char *)(uintptr_t)value;
    return e;
}

static ot_status make_substitute(ot_store *st, item *it)
{
    ot_arena *a = st->ex->a;
    Onnx__TensorProto *p = it->to = ot_memdup(a, it->from, sizeof *p);
    if (!p) return ot_fail_nomem(st->ex->d);
    p->n_external_data = 0;
    p->external_data = NULL;
    p->has_data_location = it->outside;
    p->has_raw_data = !it->outside;
    if (!it->outside) {
        p->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT;
        p->raw_data = (ProtobufCBinaryData){it->bytes, (uint8_t *)(uintptr_t)it->data};
        return OT_OK;
    }
    p->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    p->external_data = OT_NEW_N(a, Onnx__StringStringEntryProto *, 3);
    if (!p->external_data) return ot_fail_nomem(st->ex->d);
    p->external_data[0] = new_entry(st, "location", st->location);
    p->external_data[1] = new_entry(st, "offset",
                                    ot_format(a, "%llu", (unsigned long long)it->offset));
    p->external_data[2] = new_entry(st, "length", ot_format(a, "%zu", it->bytes));
    for (size_t k = 0; k < 3; k++)
        if (!p->external_data[k]) return ot_fail_nomem(st->ex->d);
    p->n_external_data = 3;
    return OT_OK;
}

ot_status ot_store_plan(ot_exporter *ex, const ProtobufCMessage *msg, const char *base, bool all,
                        ot_store **out)
{
    *out = NULL;
    ot_store *st = OT_NEW(ex->a, ot_store);
    if (!st) return ot_fail_nomem(ex->d);
    st->ex = ex;
    st->base = base;
    st->all = all;
    OT_TRY(ot_pb_walk(msg, visit, st));
    if (st->n == 0) return OT_OK;
    OT_TRY(assign_offsets(st));
    if (st->has_data) OT_TRY(name_file(st));
    st->by_from = OT_NEW_N(ex->a, item *, st->n);
    if (!st->by_from) return ot_fail_nomem(ex->d);
    for (size_t k = 0; k < st->n; k++) {
        OT_TRY(make_substitute(st, &st->items[k]));
        st->by_from[k] = &st->items[k];
    }
    qsort(st->by_from, st->n, sizeof *st->by_from, by_from);
    *out = st;
    return OT_OK;
}

const char *ot_store_location(const ot_store *st) { return st->location; }

bool ot_store_has_data(const ot_store *st) { return st && st->has_data; }

const Onnx__TensorProto *ot_store_subst(void *store, const Onnx__TensorProto *t)
{
    const ot_store *st = store;
    size_t lo = 0, hi = st->n;
    /* first entry of that address: a message that occurs twice has two equal ones */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if ((uintptr_t)st->by_from[mid]->from < (uintptr_t)t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < st->n && st->by_from[lo]->from == t ? st->by_from[lo]->to : t;
}

void ot_store_write(const ot_store *st, ot_sink *s)
{
    static const char zeros[64];
    for (size_t k = 0; k < st->n; k++) {
        const item *it = &st->items[k];
        if (!it->outside || !it->first) continue;
        ot_sink_put(s, zeros, (size_t)(it->offset - s->total));
        ot_sink_put(s, it->data, it->bytes);
    }
}

/* Bytes [at, at + n) of the file are these; NULL: zeros. */
static bool same_bytes(int fd, uint64_t at, const uint8_t *data, uint64_t n)
{
    uint8_t buffer[1 << 14];
    while (n > 0) {
        const size_t want = n < sizeof buffer ? (size_t)n : sizeof buffer;
        const ssize_t got = pread(fd, buffer, want, (off_t)at);
        if (got <= 0) return false;
        for (ssize_t k = 0; !data && k < got; k++)
            if (buffer[k]) return false;
        if (data && memcmp(buffer, data, (size_t)got) != 0) return false;
        data = data ? data + got : NULL;
        at += (uint64_t)got;
        n -= (uint64_t)got;
    }
    return true;
}

bool ot_store_is_in(const ot_store *st, const char *path)
{
    struct stat about;
    uint64_t at = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool same = fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
    for (size_t k = 0; same && k < st->n; k++) {
        const item *it = &st->items[k];
        if (!it->outside || !it->first) continue;
        same = same_bytes(fd, at, NULL, it->offset - at) &&
               same_bytes(fd, it->offset, it->data, it->bytes);
        at = it->offset + it->bytes;
    }
    same = same && at == (uint64_t)about.st_size;
    if (fd >= 0) close(fd);
    return same;
}
