/* From a file (or stdin, or memory) to an ot_model.
 *
 *   open + fstat -> read -> scan -> unpack -> external data -> functions -> graph
 *
 * What is scanned must be what is unpacked, so a file is read once, into a copy; the contents of
 * large tensors are read where they stay (pb_slim.c), so the peak is what is unpacked and little
 * more. protobuf-c allocates through our hook (a small header remembers each block's size), so that
 * a test can make every allocation fail, and so that "out of memory" can be told from "malformed".
 */
#include "import.h"
#include "model_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX   ((size_t)INT32_MAX) /* protobuf's own limit: 2 GiB - 1 */
#define WHOLE_MOST ((size_t)1 << 20)   /* files up to this size are read as a whole */

const char *ot_text(const char *s) { return s ? s : ""; }

const char *ot_domain(const char *s) { return !s || strcmp(s, "ai.onnx") == 0 ? "" : s; }

/* ---- protobuf-c's memory ---- */

/* Messages are many and small: what has less than POOLED bytes lies in an arena that outlives it,
 * and goes with that; the rest has a block of its own. Attributes lie apart with what they hold, in
 * slabs that go with the last of it, as nodes may share them (share_attributes.c). A mark in front
 * of each says where it is: 0, it is pooled; even, the size of its block; odd, its slab, at the
 * byte before.
 * Where accesses are checked, all have blocks. */
#define PB_HEADER 16u      /* keeps 16-byte alignment */
#if defined(__has_feature) /* clang's way to say it */
#if __has_feature(address_sanitizer)
#define POOLED 1u
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define POOLED 1u
#endif
#ifndef POOLED
#define POOLED 256u
#endif
#define FIRST_SLAB ((size_t)4096)
#define LAST_SLAB  ((size_t)1 << 22)

typedef struct slab {
    size_t bytes; /* of its block */
    size_t held;  /* blocks in it, and the model that is unpacked into it */
} slab;

typedef struct pb_memory {
    ot_arena *a;    /* NULL: nothing is pooled */
    slab *slab;     /* that is filled; NULL: none yet */
    size_t taken;   /* bytes of it */
    bool pools_all; /* attributes, too */
    bool apart;     /* an attribute is read: what comes now is its own */
    bool failed;    /* there was no memory */
} pb_memory;

static void let_go(slab *x)
{
    if (x && --x->held == 0) (void)!ot_hook_alloc(x, x->bytes, 0);
}

/* A small block in a slab; NULL: no memory. */
static void *take_apart(pb_memory *in, size_t size)
{
    const size_t room = sizeof(uintptr_t) + (size + 7) / 8 * 8;
    if (!in->slab || in->slab->bytes - in->taken < room) {
        const size_t full = in->slab ? in->slab->bytes : 0;
        const size_t bytes = full == 0 ? FIRST_SLAB : full < LAST_SLAB ? 2 * full : LAST_SLAB;
        slab *fresh = ot_hook_alloc(NULL, 0, bytes);
        if (!fresh) return NULL;
        let_go(in->slab);
        *fresh = (slab){bytes, 1};
        in->slab = fresh;
        in->taken = sizeof *fresh;
    }
    char *p = (char *)in->slab + in->taken;
    const uintptr_t mark = (uintptr_t)in->slab + 1;
    in->taken += room;
    in->slab->held++;
    memcpy(p, &mark, sizeof mark);
    return p + sizeof mark;
}

/* Whether a block of that size is an attribute's, by the messages, in the order of the file. What
 * is taken for another's goes with its slab then, or with the arena. */
static bool is_apart(pb_memory *in, size_t size)
{
    if (size == sizeof(Onnx__AttributeProto))
        in->apart = true;
    else if (size == sizeof(Onnx__NodeProto) || size == sizeof(Onnx__TensorProto) ||
             size == sizeof(Onnx__ValueInfoProto))
        in->apart = false;
    return in->apart;
}

static void *pb_alloc(void *context, size_t size)
{
    pb_memory *in = context;
    const bool pooled = in && in->a && size < POOLED;
    const bool apart = pooled && !in->pools_all && is_apart(in, size);
    size_t total = size <= SIZE_MAX - PB_HEADER - 1 ? (size + PB_HEADER + 1) & ~(size_t)1 : 0;
    char *p = apart       ? take_apart(in, size)
              : pooled    ? ot_alloc(in->a, sizeof total + size)
              : total > 0 ? ot_hook_alloc(NULL, 0, total)
                          : NULL;
    if (!p) {
        if (in) in->failed = true;
        return NULL;
    }
    if (apart) return p;
    if (pooled) return p + sizeof total; /* its mark is 0 */
    p += PB_HEADER;
    memcpy(p - sizeof total, &total, sizeof total);
    return p;
}

static uintptr_t mark_of(const void *block)
{
    uintptr_t mark;
    memcpy(&mark, (const char *)block - sizeof mark, sizeof mark);
    return mark;
}

static void pb_free(void *context, void *pointer)
{
    (void)context;
    const uintptr_t mark = pointer ? mark_of(pointer) : 0;
    if (mark & 1)
        let_go((slab *)(mark - 1));
    else if (mark > 0)
        (void)!ot_hook_alloc((char *)pointer - PB_HEADER, mark, 0);
}

bool ot_pb_pools(const void *block) { return !block || mark_of(block) == 0; }

bool ot_pb_is_small(const void *block)
{
    return !block || mark_of(block) == 0 || (mark_of(block) & 1);
}

Onnx__AttributeProto *ot_pb_pool(ot_arena *a, const uint8_t *bytes, size_t n)
{
    pb_memory in = {.a = a, .pools_all = true};
    ProtobufCAllocator allocator = {pb_alloc, pb_free, &in};
    return onnx__attribute_proto__unpack(&allocator, n, bytes);
}

void ot_pb_release(void *pointer) { pb_free(NULL, pointer); }

void *ot_pb_take(size_t size) { return pb_alloc(NULL, size); }

void ot_pb_free(ProtobufCMessage *message)
{
    ProtobufCAllocator allocator = {pb_alloc, pb_free, NULL};
    protobuf_c_message_free_unpacked(message, &allocator);
}

static void free_source(void *source)
{
    ot_source *s = source; /* the struct itself lives in the model's arena */
    if (s->model && s->model->graph) ot_unshare_attributes(s->model->graph);
    if (s->model) ot_pb_free(&s->model->base);
    for (ot_mapping *map = s->maps; map; map = map->next) ot_file_view_free(map->view);
}

/* ---- bytes -> model ---- */

ot_status ot_pb_unpack(const void *bytes, size_t n, ot_arena *a, ot_diag *d, Onnx__ModelProto **out)
{
    if (n == 0) return ot_fail(d, OT_E_INPUT, "the model file is empty");
    if (n > FILE_MAX)
        return ot_fail(d, OT_E_INPUT,
                       "the model file is larger than 2 GiB - 1 bytes, which "
                       "no ONNX file may be (use external data)");
    OT_TRY(ot_pb_scan(bytes, n, &onnx__model_proto__descriptor, d));
    pb_memory in = {.a = a};
    ProtobufCAllocator allocator = {pb_alloc, pb_free, &in};
    *out = onnx__model_proto__unpack(&allocator, n, bytes);
    let_go(in.slab);
    if (!*out && in.failed) return ot_fail_nomem(d);
    if (!*out) return ot_fail(d, OT_E_INPUT, "not a valid ONNX file (protobuf-c refuses it)");
    return OT_OK;
}

static ot_status build(ot_model *m, ot_source *src, int dir_fd, const ot_lent *lent, size_t n_lent)
{
    OT_TRY(ot_unwrap(src, m->arena, m->diag));
    const Onnx__ModelProto *mp = src->model;
    if (!mp->graph)
        return ot_fail(m->diag, OT_E_INPUT, "the model holds no graph (is it an ONNX model?)");
    if (!mp->has_ir_version || mp->ir_version <= 0)
        return ot_fail(m->diag, OT_E_INPUT,
                       "the model states no IR version (is it an ONNX model?)");
    OT_TRY(ot_share_attributes(mp->graph, m->arena, m->diag));
    m->ir_version = mp->ir_version;
    ot_importer im = {.m = m, .d = m->diag, .src = src, .g = m->graph, .mp = mp, .gp = mp->graph};
    im.scratch = ot_arena_new();
    if (!im.scratch) return ot_fail_nomem(m->diag);
    ot_status st = ot_import_external(&im, dir_fd, lent, n_lent);
    if (st == OT_OK) st = ot_import_functions(&im);
    if (st == OT_OK) st = ot_import_graph(&im);
    ot_arena_free(im.scratch);
    return ot_import_check(m, st, m->diag);
}

/* A model whose `source` is ready to be filled. */
static ot_status begin(ot_diag *d, ot_model **m, ot_source **src)
{
    *m = ot_model_new(d);
    if (!*m) return ot_fail_nomem(d);
    *src = OT_NEW((*m)->arena, ot_source);
    if (!*src) {
        ot_model_free(*m);
        return ot_fail_nomem(d);
    }
    (*m)->source = *src;
    (*m)->free_source = free_source;
    return OT_OK;
}

static ot_status finish(ot_model *m, ot_status st, ot_model **out)
{
    if (st != OT_OK) {
        ot_model_free(m);
        return st;
    }
    *out = m;
    return OT_OK;
}

/* ---- files ---- */

static ot_status cannot(ot_diag *d, const char *what, const char *path)
{
    int e = errno;
    bool users = e == ENOENT || e == ENOTDIR || e == EISDIR || e == ENAMETOOLONG || e == ELOOP;
    return ot_fail(d, users ? OT_E_INPUT : OT_E_SYSTEM, "cannot %s '%s': %s", what, path,
                   strerror(e));
}

/* Everything from fd (no regular file) into a block of the hook: *bytes [*n], allocated *cap. */
static ot_status read_all(int fd, const char *path, ot_diag *d, char **bytes, size_t *n,
                          size_t *cap)
{
    for (;;) {
        if (*n == *cap) {
            size_t more = *cap ? *cap * 2 : (size_t)1 << 16;
            char *p = ot_hook_alloc(*bytes, *cap, more);
            if (!p) return ot_fail_nomem(d);
            *bytes = p;
            *cap = more;
        }
        ssize_t got = read(fd, *bytes + *n, *cap - *n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot(d, "read", path);
        if (got == 0) return OT_OK;
        *n += (size_t)got;
        if (*n > FILE_MAX) return OT_OK; /* too large: unpack says so */
    }
}

static ot_status load_stream(int fd, const char *path, ot_model *m, ot_source *src)
{
    char *bytes = NULL;
    size_t n = 0, cap = 0;
    ot_status st = read_all(fd, path, m->diag, &bytes, &n, &cap);
    if (st == OT_OK) st = ot_pb_unpack(bytes, n, m->arena, m->diag, &src->model);
    if (bytes) (void)!ot_hook_alloc(bytes, cap, 0);
    return st;
}

/* The file has not been written since `before`. */
static bool is_unchanged(int fd, const struct stat *before)
{
    struct stat now;
    return fstat(fd, &now) == 0 && now.st_size == before->st_size &&
           now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec &&
           now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
           now.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

/* Without the contents of its tensors, then these. *done false, nothing is loaded: read the file as
 * a whole. Fails: OT_E_NOMEM. */
static ot_status load_parts(int fd, size_t n, ot_model *m, ot_source *src, bool *done)
{
    ot_diag own = {0};
    ot_slim *slim;
    size_t n_slim;
    ot_arena *a = ot_arena_new();
    *done = false;
    if (!a) return ot_fail_nomem(m->diag);
    ot_status st = ot_slim_read(fd, n, a, &own, &slim);
    if (st == OT_OK && slim) {
        const void *bytes = ot_slim_bytes(slim, &n_slim);
        st = ot_pb_unpack(bytes, n_slim, m->arena, &own, &src->model);
        if (st == OT_OK) st = ot_slim_fill(slim, src->model, &own);
        *done = st == OT_OK;
    }
    ot_arena_free(a);
    if (!*done && src->model) {
        ot_pb_free(&src->model->base);
        src->model = NULL;
    }
    return st == OT_E_NOMEM ? ot_fail_nomem(m->diag) : OT_OK;
}

static ot_status load_fd(int fd, const char *path, ot_model *m, ot_source *src)
{
    struct stat st;
    bool done = false;
    if (fstat(fd, &st) != 0) return cannot(m->diag, "read", path);
    if (S_ISDIR(st.st_mode))
        return ot_fail(m->diag, OT_E_INPUT, "'%s' is a folder, not a model", path);
    if (!S_ISREG(st.st_mode) || st.st_size == 0) return load_stream(fd, path, m, src);
    if ((uint64_t)st.st_size > FILE_MAX)
        return ot_pb_unpack("", FILE_MAX + 1, m->arena, m->diag, &src->model);
    size_t n = (size_t)st.st_size;
    if (n > WHOLE_MOST) OT_TRY(load_parts(fd, n, m, src, &done));
    if (!is_unchanged(fd, &st))
        return ot_fail(m->diag, OT_E_INPUT, "'%s' was written while it was read", path);
    return done ? OT_OK : load_stream(fd, path, m, src);
}

/* Descriptor of the folder that holds `path`. */
static ot_status open_folder(const char *path, ot_model *m, int *fd)
{
    const char *slash = strrchr(path, '/');
    const char *dir = !slash          ? "."
                      : slash == path ? "/"
                                      : ot_strndup(m->arena, path, (size_t)(slash - path));
    if (!dir) return ot_fail_nomem(m->diag);
    *fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *fd < 0 ? cannot(m->diag, "open folder", dir) : OT_OK;
}

static ot_status import_path(const char *path, ot_model *m, ot_source *src)
{
    int dir_fd = -1;
    if (strcmp(path, "-") == 0) {
        OT_TRY(load_stream(STDIN_FILENO, "standard input", m, src));
    } else {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return cannot(m->diag, "open", path);
        ot_status st = load_fd(fd, path, m, src);
        close(fd);
        OT_TRY(st);
        m->path = ot_strdup(m->arena, path);
        if (!m->path) return ot_fail_nomem(m->diag);
        OT_TRY(open_folder(path, m, &dir_fd));
    }
    ot_status st = build(m, src, dir_fd, NULL, 0);
    if (dir_fd >= 0) close(dir_fd);
    return st;
}

ot_status ot_import_file(const char *path, ot_diag *diag, ot_model **out)
{
    ot_model *m;
    ot_source *src;
    OT_TRY(begin(diag, &m, &src));
    return finish(m, import_path(path, m, src), out);
}

ot_status ot_import_memory(const void *bytes, size_t n, const char *dir, ot_diag *diag,
                           ot_model **out)
{
    ot_model *m;
    ot_source *src;
    OT_TRY(begin(diag, &m, &src));
    ot_status st = ot_pb_unpack(bytes, n, m->arena, m->diag, &src->model);
    int dir_fd = -1;
    if (st == OT_OK && dir) {
        dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0) st = cannot(diag, "open folder", dir);
    }
    if (st == OT_OK) st = build(m, src, dir_fd, NULL, 0);
    if (dir_fd >= 0) close(dir_fd);
    return finish(m, st, out);
}

ot_status ot_import_lent(const void *bytes, size_t n, const ot_lent *lent, size_t n_lent,
                         ot_diag *diag, ot_model **out)
{
    static const ot_lent none = {.data = ""};
    ot_model *m;
    ot_source *src;
    OT_TRY(begin(diag, &m, &src));
    ot_status st = ot_pb_unpack(bytes, n, m->arena, m->diag, &src->model);
    if (st == OT_OK) st = build(m, src, -1, n_lent ? lent : &none, n_lent);
    return finish(m, st, out);
}
