/* From a file (or stdin, or memory) to an ot_model.
 *
 *   open + fstat -> map or read -> scan -> unpack -> unmap -> external data -> functions -> graph
 *
 * What is scanned must be what is unpacked, so a file is read once, into a copy. A large one is
 * mapped, only while it is unpacked, and pages that were unpacked are dropped on the way, so the
 * peak is the unpacked copy and little more; if it has changed meanwhile it is refused. protobuf-c
 * allocates through our hook (a small header remembers each block's size), so that a test can
 * make every allocation fail, and so that "out of memory" can be told from "malformed".
 */
#include "import.h"
#include "model_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX  ((size_t)INT32_MAX) /* protobuf's own limit: 2 GiB - 1 */
#define COPY_MOST ((size_t)32 << 20)  /* files up to this size are read into a copy */

const char *ot_text(const char *s) { return s ? s : ""; }

const char *ot_domain(const char *s) { return !s || strcmp(s, "ai.onnx") == 0 ? "" : s; }

/* ---- protobuf-c's memory ---- */

#define PB_HEADER  16u               /* keeps 16-byte alignment */
#define DROP_EVERY ((size_t)4 << 20) /* bytes unpacked */

/* One message being unpacked. */
typedef struct unpacking {
    bool failed;        /* no memory */
    void *map;          /* the file it comes from, or NULL */
    size_t size, since; /* bytes of map; bytes allocated since its pages were dropped */
} unpacking;

/* Pages of the file that are read again come from the system's cache. */
static void drop_pages(unpacking *u)
{
    if (u->map) (void)madvise(u->map, u->size, MADV_DONTNEED);
    u->since = 0;
}

static void *pb_alloc(void *context, size_t size)
{
    unpacking *u = context;
    if (size > SIZE_MAX - PB_HEADER) return NULL;
    size_t total = size + PB_HEADER;
    char *p = ot_hook_alloc(NULL, 0, total);
    if (!p) {
        if (u) u->failed = true;
        return NULL;
    }
    memcpy(p, &total, sizeof total);
    if (u && total > SIZE_MAX - u->since) drop_pages(u);
    if (u && (u->since += total) >= DROP_EVERY) drop_pages(u);
    return p + PB_HEADER;
}

static void pb_free(void *context, void *pointer)
{
    (void)context;
    if (!pointer) return;
    char *p = (char *)pointer - PB_HEADER;
    size_t total;
    memcpy(&total, p, sizeof total);
    (void)!ot_hook_alloc(p, total, 0);
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
    if (s->model) ot_pb_free(&s->model->base);
    for (ot_mapping *map = s->maps; map; map = map->next)
        if (map->data) munmap((void *)(uintptr_t)map->data, map->size);
}

/* ---- bytes -> model ---- */

/* map: the bytes, if they are a file's; or NULL. */
static ot_status unpack_mapped(const void *bytes, size_t n, void *map, ot_diag *d,
                               Onnx__ModelProto **out)
{
    if (n == 0) return ot_fail(d, OT_E_INPUT, "the model file is empty");
    if (n > FILE_MAX)
        return ot_fail(d, OT_E_INPUT,
                       "the model file is larger than 2 GiB - 1 bytes, which "
                       "no ONNX file may be (use external data)");
    OT_TRY(ot_pb_scan(bytes, n, &onnx__model_proto__descriptor, d));
    unpacking u = {.map = map, .size = n};
    drop_pages(&u); /* that the scan read */
    ProtobufCAllocator allocator = {pb_alloc, pb_free, &u};
    *out = onnx__model_proto__unpack(&allocator, n, bytes);
    if (!*out && u.failed) return ot_fail_nomem(d);
    if (!*out) return ot_fail(d, OT_E_INPUT, "not a valid ONNX file (protobuf-c refuses it)");
    return OT_OK;
}

ot_status ot_pb_unpack(const void *bytes, size_t n, ot_diag *d, Onnx__ModelProto **out)
{
    return unpack_mapped(bytes, n, NULL, d, out);
}

static ot_status build(ot_model *m, ot_source *src, int dir_fd)
{
    OT_TRY(ot_unwrap(src, m->diag));
    const Onnx__ModelProto *mp = src->model;
    if (!mp->graph)
        return ot_fail(m->diag, OT_E_INPUT, "the model holds no graph (is it an ONNX model?)");
    if (!mp->has_ir_version || mp->ir_version <= 0)
        return ot_fail(m->diag, OT_E_INPUT,
                       "the model states no IR version (is it an ONNX model?)");
    m->ir_version = mp->ir_version;
    ot_importer im = {.m = m, .d = m->diag, .src = src, .g = m->graph, .mp = mp, .gp = mp->graph};
    im.scratch = ot_arena_new();
    if (!im.scratch) return ot_fail_nomem(m->diag);
    ot_status st = ot_import_external(&im, dir_fd);
    if (st == OT_OK) st = ot_import_functions(&im);
    if (st == OT_OK) st = ot_import_graph(&im);
    ot_arena_free(im.scratch);
    return st;
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
    if (st == OT_OK) st = ot_pb_unpack(bytes, n, m->diag, &src->model);
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

static ot_status load_fd(int fd, const char *path, ot_model *m, ot_source *src)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return cannot(m->diag, "read", path);
    if (S_ISDIR(st.st_mode))
        return ot_fail(m->diag, OT_E_INPUT, "'%s' is a folder, not a model", path);
    if (!S_ISREG(st.st_mode) || st.st_size == 0) return load_stream(fd, path, m, src);
    if ((uint64_t)st.st_size > FILE_MAX)
        return ot_pb_unpack("", FILE_MAX + 1, m->diag, &src->model);
    size_t n = (size_t)st.st_size;
    if (n <= COPY_MOST) return load_stream(fd, path, m, src);
    void *map = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) return load_stream(fd, path, m, src); /* a file system without mmap */
    ot_status status = unpack_mapped(map, n, map, m->diag, &src->model);
    munmap(map, n);
    if (status == OT_OK && !is_unchanged(fd, &st))
        return ot_fail(m->diag, OT_E_INPUT, "'%s' was written while it was read", path);
    return status;
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
    ot_status st = build(m, src, dir_fd);
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
    ot_status st = ot_pb_unpack(bytes, n, m->diag, &src->model);
    int dir_fd = -1;
    if (st == OT_OK && dir) {
        dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0) st = cannot(diag, "open folder", dir);
    }
    if (st == OT_OK) st = build(m, src, dir_fd);
    if (dir_fd >= 0) close(dir_fd);
    return finish(m, st, out);
}
