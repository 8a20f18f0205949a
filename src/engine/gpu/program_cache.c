/* The cache of compiled programs.
 *
 *   folder  $XDG_CACHE_HOME/onnx-tile/device      0700, the user's
 *   file    magic | bytes of key | bytes of program | hash of program | key | program
 *
 * A program is code that a driver runs: only what this user wrote is read, in a folder that nobody
 * else can write to, from a regular file (opening a pipe would wait for ever), and only when it is
 * whole. The key itself is compared, not a hash of it, so that nobody can make one program pass for
 * another.
 */
#include "program_cache.h"

#include "onnx/export/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC        "OTPROG1\n"
#define PROGRAM_MOST ((uint64_t)1 << 30)

typedef struct header {
    char magic[8];
    uint64_t key_bytes, program_bytes, hash;
} header;

/* ---- the folder ---- */

static bool make_folders(char *path)
{
    for (char *c = path + 1;; c++) {
        if (*c != '/' && *c != '\0') continue;
        const char end = *c;
        *c = '\0';
        const bool ok = mkdir(path, 0700) == 0 || errno == EEXIST;
        *c = end;
        if (!ok || end == '\0') return ok;
    }
}

/* Nobody else may write to it, or look into it. */
static bool is_own_folder(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid()) return false;
    return (st.st_mode & 077) == 0 || chmod(path, 0700) == 0;
}

char *ot_cache_folder(const char *name, ot_arena *a)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path = cache && cache[0] == '/' ? ot_format(a, "%s/onnx-tile/%s", cache, name)
                 : home && home[0] == '/' ? ot_format(a, "%s/.cache/onnx-tile/%s", home, name)
                                          : NULL;
    return path && make_folders(path) && is_own_folder(path) ? path : NULL;
}

/* ---- reading ---- */

static bool read_all(int fd, void *data, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t got = read(fd, (char *)data + at, n - at);
        if (got <= 0 && (got == 0 || errno != EINTR)) return false;
        if (got > 0) at += (size_t)got;
    }
    return true;
}

static bool read_entry(int fd, ot_bytes key, ot_arena *a, ot_bytes *program)
{
    struct stat st;
    header h;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 022) != 0)
        return false;
    if (!read_all(fd, &h, sizeof h) || memcmp(h.magic, MAGIC, sizeof h.magic) != 0 ||
        h.key_bytes != key.n || h.program_bytes == 0 || h.program_bytes > PROGRAM_MOST ||
        (uint64_t)st.st_size != sizeof h + h.key_bytes + h.program_bytes)
        return false;
    char *rest = ot_alloc(a, key.n + (size_t)h.program_bytes);
    if (!rest || !read_all(fd, rest, key.n + (size_t)h.program_bytes)) return false;
    *program = (ot_bytes){rest + key.n, (size_t)h.program_bytes};
    return (key.n == 0 || memcmp(rest, key.data, key.n) == 0) &&
           ot_hash_bytes(0, program->data, program->n) == h.hash;
}

bool ot_program_read(const char *path, ot_bytes key, ot_arena *a, ot_bytes *program)
{
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool ok = read_entry(fd, key, a, program);
    close(fd);
    return ok;
}

/* ---- writing ---- */

void ot_program_write(const char *path, ot_bytes key, ot_bytes program, ot_arena *a)
{
    header h = {.key_bytes = key.n,
                .program_bytes = program.n,
                .hash = ot_hash_bytes(0, program.data, program.n)};
    struct stat st;
    ot_diag ignored = {0};
    const size_t n = sizeof h + key.n + program.n;
    char *all = program.n > 0 && program.n <= PROGRAM_MOST ? ot_alloc(a, n) : NULL;
    if (!all) return;
    memcpy(h.magic, MAGIC, sizeof h.magic);
    memcpy(all, &h, sizeof h);
    if (key.n) memcpy(all + sizeof h, key.data, key.n);
    memcpy(all + sizeof h + key.n, program.data, program.n);
    /* a pipe or a link would be written through */
    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && unlink(path) != 0) return;
    if (ot_out_write(path, all, n, &ignored) == OT_OK) (void)chmod(path, 0600);
}
