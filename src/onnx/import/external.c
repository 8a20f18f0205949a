/* External data: tensors whose elements lie in files next to the model.
 *
 * The file names come from a stranger, so what they may reach is narrow:
 *   - relative, no "..", no empty name; walked component by component from the model's folder with
 *     openat(O_NOFOLLOW): a symbolic link anywhere below it is refused, not followed;
 *   - a regular file with a single link (a hard link could be someone else's secret);
 *   - offset and length are plain decimal numbers inside the file, and fit the tensor's dims and
 *   type;
 *   - keys are those the format defines, each at most once.
 * In place of files there may be memory of the caller's, which he gives a number each (ot_lent).
 * Each file is mapped once. Checks on the file are made on the open descriptor, so that swapping
 * names meanwhile gains nothing. Small tensors, as sizes and axes are, are copied: what was checked
 * stays. Of others the file may change; where it becomes shorter, the view is damaged and
 * ot_import_check fails.
 */
#include "import.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPIED_MOST 1023 /* bytes of a small tensor */

typedef struct loader {
    ot_importer *im;
    int dir_fd;
    const ot_lent *lent; /* [n_lent] in place of files; NULL: files */
    size_t n_lent;
    ot_map *by_location; /* location -> index in maps */
    ot_mapping **maps;   /* [n_maps] in scratch */
    uint32_t n_maps;
    size_t cap_maps;
} loader;

typedef struct entry {
    const char *location;
    const char *offset;   /* NULL: 0 */
    const char *length;   /* NULL: what the tensor needs */
    const ot_lent *piece; /* that it is lent; NULL: a file */
} entry;

static ot_status refuse(const loader *l, const Onnx__TensorProto *t, const char *rule,
                        const char *what)
{
    return ot_fail(l->im->d, OT_E_INPUT, "tensor '%.*s': external data %s '%.*s'", OT_NAME_SHOWN,
                   ot_text(t->name), rule, OT_NAME_SHOWN, what);
}

/* ---- what the tensor says ---- */

static ot_status read_entry(const loader *l, const Onnx__TensorProto *t, entry *e)
{
    *e = (entry){0};
    const char *checksum = NULL, *basepath = NULL;
    for (size_t k = 0; k < t->n_external_data; k++) {
        const char *key = ot_text(t->external_data[k]->key);
        const char **slot = strcmp(key, "location") == 0   ? &e->location
                            : strcmp(key, "offset") == 0   ? &e->offset
                            : strcmp(key, "length") == 0   ? &e->length
                            : strcmp(key, "checksum") == 0 ? &checksum
                            : strcmp(key, "basepath") == 0 ? &basepath
                                                           : NULL;
        if (!slot) return refuse(l, t, "has the unknown key", key);
        if (*slot) return refuse(l, t, "repeats the key", key);
        *slot = ot_text(t->external_data[k]->value);
    }
    if (!e->location) return refuse(l, t, "lacks the key", "location");
    return OT_OK;
}

/* Plain decimal digits; no sign, no space. */
static bool decimal(const char *s, int64_t *out)
{
    int64_t value = 0;
    if (!*s) return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        if (!ot_mul_i64(value, 10, &value) || !ot_add_i64(value, *s - '0', &value)) return false;
    }
    *out = value;
    return true;
}

/* ---- opening below the folder ---- */

/* Copy the next component of *path into name[NAME_LIMIT]; false at the end. Skips empty ones and
 * ".". */
#define NAME_LIMIT 256
static bool next_component(const char **path, char *name, bool *too_long)
{
    for (;;) {
        while (**path == '/') (*path)++;
        size_t n = strcspn(*path, "/");
        if (n == 0) return false;
        const char *start = *path;
        *path += n;
        if (n == 1 && start[0] == '.') continue;
        *too_long = n >= NAME_LIMIT;
        if (*too_long) n = NAME_LIMIT - 1;
        memcpy(name, start, n);
        name[n] = '\0';
        return true;
    }
}

/* Open `location` below dir_fd. *fd is the caller's on success. */
static ot_status open_below(const loader *l, const Onnx__TensorProto *t, const char *location,
                            int *fd)
{
    if (location[0] == '/') return refuse(l, t, "may not have an absolute path:", location);
    char name[NAME_LIMIT], next[NAME_LIMIT];
    bool too_long = false;
    const char *rest = location;
    for (const char *look = location; next_component(&look, name, &too_long);)
        if (too_long || strcmp(name, "..") == 0)
            return refuse(l, t, "must lie below the model's folder:", location);
    if (!next_component(&rest, name, &too_long))
        return refuse(l, t, "needs a file name, not", location);
    int at = l->dir_fd;
    for (;;) {
        bool last = !next_component(&rest, next, &too_long);
        int flags = O_NOFOLLOW | O_CLOEXEC |
                    (last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY);
        int down = openat(at, name, flags);
        int error = errno;
        if (at != l->dir_fd) close(at);
        if (down < 0) {
            if (error == ELOOP || (error == ENOTDIR && !last))
                return refuse(l, t,
                              "may not pass a symbolic link or a file in its path:", location);
            return ot_fail(l->im->d, OT_E_INPUT,
                           "tensor '%.*s': cannot open external data '%.*s': %s", OT_NAME_SHOWN,
                           ot_text(t->name), OT_NAME_SHOWN, location, strerror(error));
        }
        at = down;
        if (last) break;
        memcpy(name, next, sizeof name);
    }
    *fd = at;
    return OT_OK;
}

static ot_status map_fd(loader *l, const Onnx__TensorProto *t, int fd, ot_mapping *map)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return refuse(l, t, "cannot be examined:", map->location);
    if (!S_ISREG(st.st_mode)) return refuse(l, t, "must be in a regular file:", map->location);
    if (st.st_nlink != 1)
        return refuse(l, t, "may not be in a file with several hard links:", map->location);
    map->device = st.st_dev;
    map->inode = st.st_ino;
    map->size = (size_t)st.st_size;
    if (map->size == 0) return OT_OK;
    ot_status s = ot_file_view_new(fd, map->size, &map->view);
    if (s != OT_OK)
        return ot_fail(l->im->d, s, "tensor '%.*s': cannot map external data '%.*s': %s",
                       OT_NAME_SHOWN, ot_text(t->name), OT_NAME_SHOWN, map->location,
                       strerror(errno));
    map->data = ot_file_view_data(map->view);
    return OT_OK;
}

/* The mapping of `location`, made when it is the first tensor there. */
static ot_status mapping_of(loader *l, const Onnx__TensorProto *t, const char *location,
                            ot_mapping **out)
{
    uint32_t k = ot_map_get(l->by_location, location);
    if (k != OT_NONE) {
        *out = l->maps[k];
        return OT_OK;
    }
    ot_mapping *map = OT_NEW(l->im->m->arena, ot_mapping);
    if (!map) return ot_fail_nomem(l->im->d);
    map->location = location;
    int fd = -1;
    OT_TRY(open_below(l, t, location, &fd));
    ot_status st = map_fd(l, t, fd, map);
    close(fd);
    OT_TRY(st);
    map->next = l->im->src->maps; /* from here on free_source unmaps it */
    l->im->src->maps = map;
    if (!OT_PUSH(l->im->scratch, l->maps, l->n_maps, l->cap_maps, map) ||
        !ot_map_put(l->by_location, location, l->n_maps - 1))
        return ot_fail_nomem(l->im->d);
    *out = map;
    return OT_OK;
}

/* ---- one tensor ---- */

/* The piece of memory that stands for a file. */
static ot_status lent_of(const loader *l, const Onnx__TensorProto *t, entry *e, ot_mapping *map)
{
    int64_t k = 0;
    if (!decimal(e->location, &k) || (uint64_t)k >= l->n_lent)
        return refuse(l, t, "is none of the pieces of memory that are lent:", e->location);
    e->piece = &l->lent[k];
    *map = (ot_mapping){.location = e->location, .data = e->piece->data, .size = e->piece->bytes};
    return OT_OK;
}

static ot_status place_tensor(loader *l, const Onnx__TensorProto *t, const entry *e,
                              const ot_mapping *map)
{
    int64_t offset = 0, length = -1, elems, need, end;
    if (e->offset && !decimal(e->offset, &offset))
        return refuse(l, t, "has a malformed offset:", e->offset);
    if (e->length && !decimal(e->length, &length))
        return refuse(l, t, "has a malformed length:", e->length);
    if (t->data_type == OT_STRING) return refuse(l, t, "cannot hold strings:", e->location);
    /* a type newer than this program: take it as bytes */
    if (ot_dtype_bits((ot_dtype)t->data_type) == 0) {
        need = length >= 0 ? length : (int64_t)map->size - offset;
    } else if (!ot_proto_nominal_bytes(t, &elems, &need)) {
        return refuse(l, t, "belongs to dims that are negative or too large:", e->location);
    }
    if (length >= 0 && length != need)
        return ot_fail(l->im->d, OT_E_INPUT,
                       "tensor '%.*s': external data has length %lld, but its dims and type ask "
                       "for %lld bytes",
                       OT_NAME_SHOWN, ot_text(t->name), (long long)length, (long long)need);
    if (need < 0 || !ot_add_i64(offset, need, &end) || (uint64_t)end > map->size)
        return ot_fail(
            l->im->d, OT_E_INPUT,
            "tensor '%.*s': external data at offset %lld passes the end of '%.*s' (%zu bytes)",
            OT_NAME_SHOWN, ot_text(t->name), (long long)offset, OT_NAME_SHOWN, e->location,
            map->size);
    ot_ext ext = {.key = t->external_data,
                  .data = need ? map->data + offset : (const uint8_t *)"",
                  .bytes = (size_t)need,
                  .release = e->piece ? e->piece->release : NULL,
                  .of = e->piece ? e->piece->of : NULL};
    ot_source *s = l->im->src;
    if (need <= COPIED_MOST) ext.data = ot_memdup(l->im->m->arena, ext.data, ext.bytes);
    if (!ext.data) return ot_fail_nomem(l->im->d);
    return OT_PUSH(l->im->m->arena, s->ext, s->n_ext, s->cap_ext, ext) ? OT_OK
                                                                       : ot_fail_nomem(l->im->d);
}

static ot_status visit(void *ctx, const ProtobufCMessage *msg)
{
    loader *l = ctx;
    if (msg->descriptor != &onnx__tensor_proto__descriptor) return OT_OK;
    const Onnx__TensorProto *t = (const Onnx__TensorProto *)msg;
    if (t->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) return OT_OK;
    if (l->dir_fd < 0 && !l->lent)
        return ot_fail(l->im->d, OT_E_INPUT,
                       "tensor '%.*s': external data needs the model's folder, but the model was "
                       "not read from a file",
                       OT_NAME_SHOWN, ot_text(t->name));
    entry e;
    ot_mapping *map = NULL, piece;
    OT_TRY(read_entry(l, t, &e));
    if (l->lent)
        OT_TRY(lent_of(l, t, &e, map = &piece));
    else
        OT_TRY(mapping_of(l, t, e.location, &map));
    return place_tensor(l, t, &e, map);
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const ot_ext *)a)->key, y = (uintptr_t)((const ot_ext *)b)->key;
    return (x > y) - (x < y);
}

ot_status ot_import_external(ot_importer *im, int dir_fd, const ot_lent *lent, size_t n_lent)
{
    loader l = {.im = im,
                .dir_fd = dir_fd,
                .lent = lent,
                .n_lent = n_lent,
                .by_location = ot_map_new(im->scratch)};
    if (!l.by_location) return ot_fail_nomem(im->d);
    OT_TRY(ot_pb_walk(&im->mp->base, visit, &l));
    if (im->src->n_ext > 1) qsort(im->src->ext, im->src->n_ext, sizeof *im->src->ext, by_address);
    im->src->is_lent = lent && im->src->n_ext > 0;
    im->m->has_external = !lent && im->src->n_ext > 0;
    return OT_OK;
}

const ot_ext *ot_source_ext(const ot_source *s, const Onnx__TensorProto *t)
{
    if (t->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) return NULL;
    ot_ext key = {.key = t->external_data};
    return s->n_ext ? bsearch(&key, s->ext, s->n_ext, sizeof key, by_address) : NULL;
}

bool ot_import_lent_at(const ot_model *m, const void *data, ot_lent *out)
{
    const ot_source *s = m->source;
    const uint8_t *at = data;
    for (size_t k = 0; s && s->is_lent && k < s->n_ext; k++) {
        const ot_ext *e = &s->ext[k];
        if (!e->data || at < e->data || at >= e->data + e->bytes) continue;
        *out = (ot_lent){e->data, e->bytes, e->release, e->of};
        return true;
    }
    return false;
}

void ot_import_return(ot_model *m, const ot_lent *piece)
{
    ot_source *s = m->source;
    for (size_t k = 0; s && k < s->n_ext; k++)
        if (s->ext[k].data == piece->data) {
            s->ext[k].data = NULL;
            s->ext[k].bytes = 0;
        }
    if (piece->release) piece->release(piece->of, piece->data, piece->bytes);
}

ot_status ot_import_check(const ot_model *m, ot_status so_far, ot_diag *d)
{
    const ot_source *s = m ? m->source : NULL;
    for (const ot_mapping *map = s ? s->maps : NULL; map; map = map->next) {
        if (!map->view || !ot_file_view_damaged(map->view)) continue;
        if (d) *d = (ot_diag){0}; /* whatever went wrong, this is why */
        return ot_fail(
            d, OT_E_INPUT,
            "external data '%.*s' has become shorter, or unreadable, while it was in use",
            OT_NAME_SHOWN, map->location);
    }
    return so_far;
}
