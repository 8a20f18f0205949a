/* Reading what commands plan and run: a text, and the target that is meant. */
#include "kernel_file.h"

#include "machine/target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

#define INPUT_MAX   ((size_t)1 << 30)
#define INPUT_CHUNK ((size_t)1 << 16)

typedef struct reader {
    const char *path; /* for messages */
    ot_arena *a;
    ot_diag *d;
    char *text; /* [n] */
    size_t n, cap;
} reader;

static ot_status cannot_read(const reader *r, int error)
{
    bool wrong = error == ENOENT || error == ENOTDIR || error == EISDIR;
    return ot_fail(r->d, wrong ? OT_E_INPUT : OT_E_SYSTEM, "cannot read '%.300s': %s", r->path,
                   strerror(error));
}

/* Everything that fd has. */
static ot_status read_all(reader *r, int fd)
{
    for (;;) {
        if (r->n == INPUT_MAX)
            return ot_fail(r->d, OT_E_INPUT, "'%.300s' is larger than 1 GiB", r->path);
        if (r->n + INPUT_CHUNK > r->cap &&
            !ot_grow(r->a, (void **)&r->text, &r->cap, r->n + INPUT_CHUNK, 1))
            return ot_fail_nomem(r->d);
        size_t room = r->cap - r->n < INPUT_MAX - r->n ? r->cap - r->n : INPUT_MAX - r->n;
        ssize_t got = read(fd, r->text + r->n, room);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot_read(r, errno);
        if (got == 0) return OT_OK;
        r->n += (size_t)got;
    }
}

ot_status ot_read_text(const char *path, ot_arena *a, ot_diag *d, char **out, size_t *n)
{
    bool is_stdin = strcmp(path, "-") == 0;
    reader r = {.path = is_stdin ? "stdin" : path, .a = a, .d = d};
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return cannot_read(&r, errno);
    ot_status s = read_all(&r, fd);
    if (!is_stdin) close(fd);
    *out = r.text;
    *n = r.n;
    return s;
}

bool ot_ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcasecmp(s + n - m, end) == 0;
}

static ot_status load_target(const ot_kernel *k, const char *path, const char *asked, ot_diag *d,
                             ot_target *t)
{
    ot_diag local = {0};
    if (asked) return ot_target_load(asked, 0, d, t);
    if (!k->target) return ot_target_load("host", 0, d, t);
    if (ot_ends_with(k->target, ".xml"))
        return ot_fail(d, OT_E_INPUT, "%.300s: a kernel cannot name a target file: use --target",
                       path);
    ot_status s = ot_target_load(k->target, 0, &local, t);
    if (s == OT_OK) return OT_OK;
    return ot_fail(d, s == OT_E_NOMEM || s == OT_E_SYSTEM ? s : OT_E_INPUT, "%.300s: %s", path,
                   local.message);
}

ot_status ot_kernel_machine(const ot_kernel *k, const char *path, const char *asked, ot_diag *d,
                            ot_tk_machine *out)
{
    ot_target t;
    OT_TRY(load_target(k, path, asked, d, &t));
    *out = ot_target_tk_machine(&t);
    ot_target_free(&t); /* memories do not depend on who runs */
    return OT_OK;
}

/* ---- kernel or table ---- */

const char *const ot_text_endings[3] = {".tk", ".csv", ".mlir"};

/* A kernel begins with its keyword or a comment, a table with the name of a column. */
static bool begins_as_kernel(const char *text, size_t n)
{
    if (n > 0 && *text == '#') return true;
    return n > 6 && memcmp(text, "kernel", 6) == 0 && (text[6] == ' ' || text[6] == '\t');
}

/* MLIR begins with a module, a function or one of its comments. */
static bool begins_as_mlir(const char *text, size_t n)
{
    static const char *const first[] = {"module", "func.func", "//"};
    for (size_t k = 0; k < sizeof first / sizeof *first; k++) {
        const size_t length = strlen(first[k]);
        if (n > length && memcmp(text, first[k], length) == 0) return true;
    }
    return false;
}

ot_text_kind ot_text_kind_of(const char *path, const char *text, size_t n)
{
    for (int k = 0; k < 3; k++)
        if (ot_ends_with(path, ot_text_endings[k])) return (ot_text_kind)k;
    size_t from = 0;
    while (from < n && (text[from] == ' ' || (text[from] >= '\t' && text[from] <= '\r'))) from++;
    if (begins_as_kernel(text + from, n - from)) return OT_TEXT_KERNEL;
    return begins_as_mlir(text + from, n - from) ? OT_TEXT_MLIR : OT_TEXT_TABLE;
}
