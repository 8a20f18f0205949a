/* Where contents of constants are: with the runtime while it compiles, then in the model's files.
 *
 *     runtime's memory --find--> equal bytes in model.onnx, or in its external data
 *                      --keep--> (file, offset), else a copy
 *     lend: a mapping of its own for each, read from the file   --session--> packed, given back
 *
 * So weights are in memory once while they are packed: the runtime lets its own go before. A file
 * that was written to since is noticed by its size and time.
 */
#include "ep_pieces.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Fields of the file: onnx.proto. */
enum { MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5 };
enum { TENSOR_NAME = 8, TENSOR_RAW = 9, TENSOR_OUTSIDE = 13 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

enum { TEXT = 512 /* of names that are compared */, CHUNK = 1 << 16 };

bool ep_pieces_add(ep_pieces *p, const char *name, const void *data, size_t bytes)
{
    if (p->n == p->cap) {
        const size_t cap = p->cap ? 2 * p->cap : 64;
        ep_piece *at = realloc(p->at, cap * sizeof *at);
        if (!at) return false;
        p->at = at;
        p->cap = cap;
    }
    p->at[p->n++] = (ep_piece){.name = name, .data = data, .bytes = bytes, .file = -1};
    return true;
}

void ep_pieces_count(const ep_pieces *p, size_t *in_files, size_t *all)
{
    *in_files = *all = 0;
    for (size_t k = 0; k < p->n; k++) {
        *all += p->at[k].bytes;
        *in_files += p->at[k].file >= 0 ? p->at[k].bytes : 0;
    }
}

/* ---- files ---- */

static bool read_at(int fd, uint64_t offset, void *to, size_t n)
{
    char *at = to;
    while (n > 0) {
        const ssize_t got = pread(fd, at, n, (off_t)offset);
        if (got <= 0) return false;
        at += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return true;
}

/* Its number; -1: it cannot be read; -2: out of memory. */
static int32_t open_file(ep_pieces *p, const char *path)
{
    for (size_t k = 0; k < p->n_files; k++)
        if (strcmp(p->files[k].path, path) == 0) return (int32_t)k;
    ep_file f = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (f.fd < 0) return -1;
    if (fstat(f.fd, &f.was) != 0 || !S_ISREG(f.was.st_mode)) {
        close(f.fd);
        return -1;
    }
    ep_file *more = realloc(p->files, (p->n_files + 1) * sizeof *more);
    if (more) p->files = more;
    f.path = more ? strdup(path) : NULL;
    if (!f.path) {
        close(f.fd);
        return -2;
    }
    p->files[p->n_files] = f;
    return (int32_t)p->n_files++;
}

static bool is_unchanged(const ep_file *f)
{
    struct stat now;
    return fstat(f->fd, &now) == 0 && now.st_size == f->was.st_size &&
           now.st_mtim.tv_sec == f->was.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == f->was.st_mtim.tv_nsec;
}

/* ---- messages in a file ---- */

/* A stretch of a file: a message, or the contents of a field. */
typedef struct stretch {
    uint64_t at, end;
} stretch;

static bool get_number(int fd, stretch *s, uint64_t *out)
{
    uint8_t text[10];
    const size_t n = s->end - s->at < sizeof text ? (size_t)(s->end - s->at) : sizeof text;
    *out = 0;
    if (!read_at(fd, s->at, text, n)) return false;
    for (size_t k = 0; k < n; k++) {
        *out |= (uint64_t)(text[k] & 0x7f) << (7 * k);
        if (text[k] & 0x80) continue;
        s->at += k + 1;
        return true;
    }
    return false;
}

/* The next field of s, which it moves past: its number, and what a field of bytes holds. */
static bool next_field(int fd, stretch *s, uint64_t *number, stretch *inner)
{
    uint64_t key, n = 0;
    if (s->at >= s->end || !get_number(fd, s, &key)) return false;
    *number = (key & 7) == BYTES ? key >> 3 : 0;
    switch (key & 7) {
    case VARINT: return get_number(fd, s, &n);
    case FIXED64: n = 8; break;
    case FIXED32: n = 4; break;
    case BYTES:
        if (!get_number(fd, s, &n)) return false;
        break;
    default: return false;
    }
    if (n > s->end - s->at) return false;
    *inner = (stretch){s->at, s->at + n};
    s->at += n;
    return true;
}

/* text[TEXT]; "": it is too long. */
static bool get_text(int fd, stretch s, char *text)
{
    const size_t n = s.end - s.at < TEXT ? (size_t)(s.end - s.at) : 0;
    text[n] = 0;
    return read_at(fd, s.at, text, n);
}

/* Where a tensor of a file is. */
typedef struct place {
    char name[TEXT], location[TEXT];
    stretch raw;
    uint64_t offset; /* in the file `location`, where that is given */
} place;

static bool get_entry(int fd, stretch s, place *out)
{
    char key[TEXT] = "", value[TEXT] = "";
    uint64_t number;
    stretch inner;
    while (s.at < s.end) {
        if (!next_field(fd, &s, &number, &inner)) return false;
        if (number == ENTRY_KEY && !get_text(fd, inner, key)) return false;
        if (number == ENTRY_VALUE && !get_text(fd, inner, value)) return false;
    }
    if (strcmp(key, "location") == 0) memcpy(out->location, value, sizeof value);
    if (strcmp(key, "offset") == 0) out->offset = strtoull(value, NULL, 10);
    return true;
}

static bool get_place(int fd, stretch s, place *out)
{
    uint64_t number;
    stretch inner;
    *out = (place){0};
    while (s.at < s.end) {
        if (!next_field(fd, &s, &number, &inner)) return false;
        if (number == TENSOR_NAME && !get_text(fd, inner, out->name)) return false;
        if (number == TENSOR_RAW) out->raw = inner;
        if (number == TENSOR_OUTSIDE && !get_entry(fd, inner, out)) return false;
    }
    return true;
}

/* ---- what of the runtime's contents is there ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(ep_piece *const *)a)->name, (*(ep_piece *const *)b)->name);
}

static bool is_there(const ep_piece *x, int fd, uint64_t offset, char *chunk)
{
    for (size_t k = 0, n; k < x->bytes; k += n) {
        n = x->bytes - k < CHUNK ? x->bytes - k : CHUNK;
        if (!read_at(fd, offset + k, chunk, n) || memcmp(chunk, (const char *)x->data + k, n) != 0)
            return false;
    }
    return true;
}

/* The piece is at that place, if it is. false: out of memory. */
static bool match(ep_pieces *p, ep_piece *x, int32_t model, const place *t, char *chunk)
{
    char *path = NULL;
    const char *of = p->files[model].path, *slash = strrchr(of, '/');
    int32_t file = model;
    uint64_t offset = t->raw.at;
    if (*t->location) {
        if (asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - of) : 0, of, t->location) < 0)
            return false;
        file = open_file(p, path);
        offset = t->offset;
        free(path);
        if (file == -2) return false;
    } else if (t->raw.end - t->raw.at != x->bytes) {
        return true;
    }
    if (file < 0 || !is_there(x, p->files[file].fd, offset, chunk)) return true;
    x->file = file;
    x->offset = offset;
    return true;
}

static bool match_all(ep_pieces *p, int32_t model, ep_piece **sorted, char *chunk)
{
    const int fd = p->files[model].fd;
    stretch file = {0, (uint64_t)p->files[model].was.st_size}, graph, inner;
    uint64_t number;
    place t;
    while (next_field(fd, &file, &number, &graph)) {
        if (number != MODEL_GRAPH) continue;
        while (next_field(fd, &graph, &number, &inner)) {
            ep_piece key = {.name = t.name}, *k = &key, **found;
            if (number != GRAPH_INITIALIZER || !get_place(fd, inner, &t)) continue;
            found = bsearch(&k, sorted, p->n, sizeof *sorted, by_name);
            if (found && (*found)->file < 0 && !match(p, *found, model, &t, chunk)) return false;
        }
    }
    return true;
}

bool ep_pieces_find(ep_pieces *p, const char *path)
{
    const int32_t model = *path && p->n > 0 ? open_file(p, path) : -1;
    if (model < 0) return model != -2;
    ep_piece **sorted = calloc(p->n, sizeof *sorted);
    char *chunk = malloc(CHUNK);
    for (size_t k = 0; sorted && k < p->n; k++) sorted[k] = &p->at[k];
    if (sorted) qsort(sorted, p->n, sizeof *sorted, by_name);
    const bool ok = sorted && chunk && match_all(p, model, sorted, chunk);
    free(sorted);
    free(chunk);
    return ok;
}

bool ep_pieces_keep(ep_pieces *p, const char *path)
{
    if (p->n_files == 0 && !ep_pieces_find(p, path)) return false;
    for (size_t k = 0; k < p->n; k++) {
        ep_piece *x = &p->at[k];
        void *copy = x->file < 0 && !x->is_own ? malloc(x->bytes) : NULL;
        x->name = NULL;
        if (x->file >= 0) x->data = NULL;
        if (x->file >= 0 || x->is_own) continue;
        if (!copy) return false;
        memcpy(copy, x->data, x->bytes);
        x->data = copy;
        x->is_own = true;
    }
    return true;
}

/* ---- lending ---- */

static void give_back(void *of, const void *data, size_t bytes)
{
    ep_piece *x = of;
    (void)munmap((void *)(uintptr_t)data, bytes);
    x->data = NULL;
}

const char *ep_pieces_lend(ep_pieces *p)
{
    p->lent = calloc(p->n + 1, sizeof *p->lent);
    if (!p->lent) return "";
    for (size_t k = 0; k < p->n; k++) {
        ep_piece *x = &p->at[k];
        p->lent[k] = (onnx_tile_lent){x->data, x->bytes, NULL, NULL};
        if (x->data) continue;
        const ep_file *f = &p->files[x->file];
        void *data = mmap(NULL, x->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                          0);
        if (data == MAP_FAILED) return "";
        x->data = data;
        p->lent[k] = (onnx_tile_lent){data, x->bytes, give_back, x};
        if (!is_unchanged(f) || !read_at(f->fd, x->offset, data, x->bytes)) return f->path;
    }
    return NULL;
}

void ep_pieces_return(ep_pieces *p)
{
    for (size_t k = 0; k < p->n; k++)
        if (p->at[k].file >= 0 && p->at[k].data) {
            if (p->lent && p->lent[k].release) give_back(&p->at[k], p->at[k].data, p->at[k].bytes);
        }
    free(p->lent);
    p->lent = NULL;
}

void ep_pieces_free(ep_pieces *p)
{
    ep_pieces_return(p);
    for (size_t k = 0; k < p->n; k++)
        if (p->at[k].is_own) free((void *)(uintptr_t)p->at[k].data);
    for (size_t k = 0; k < p->n_files; k++) {
        free(p->files[k].path);
        close(p->files[k].fd);
    }
    free(p->files);
    free(p->at);
    *p = (ep_pieces){0};
}
