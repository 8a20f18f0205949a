/* A file that appears whole or not at all.
 *
 *   open:    <folder>/.onnx-tile-<pid>-<k>.tmp   created new, never followed
 *   seal:    flush, fsync
 *   publish: rename over the final name, fsync the folder
 *   close:   anything not published is removed
 *
 * Signals that end a program wait from open to close, so that nothing of this stays behind.
 *
 * What exists and is no regular file (a pipe, /dev/null), and standard output, is written to
 * directly: replacing a device by a file is never what anyone wants. An output that is a
 * symbolic link keeps being one: the file behind it is replaced.
 */
#include "out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER     ((size_t)1 << 18)
#define TEMP_TRIES 1000

static ot_status cannot(ot_diag *d, const char *what, const char *path)
{
    return ot_fail(d, OT_E_SYSTEM, "cannot %s '%s': %s", what, path, strerror(errno));
}

/* Write straight to what is there. */
static ot_status open_direct(ot_out *o, ot_diag *d)
{
    o->direct = true;
    o->owns_fd = true;
    o->sink.fd = open(o->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return o->sink.fd < 0 ? cannot(d, "write to", o->path) : OT_OK;
}

/* Folder part of path, "." when it has none. */
static char *folder_of(const char *path, ot_arena *a)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return ot_strdup(a, ".");
    return ot_strndup(a, path, slash == path ? 1 : (size_t)(slash - path));
}

static ot_status open_temp(ot_out *o, mode_t mode, ot_arena *a, ot_diag *d)
{
    char *folder = folder_of(o->path, a);
    if (!folder) return ot_fail_nomem(d);
    for (int k = 0; k < TEMP_TRIES; k++) {
        char *temp = ot_format(a, "%s/.onnx-tile-%ld-%d.tmp", folder, (long)getpid(), k);
        if (!temp) return ot_fail_nomem(d);
        o->sink.fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (o->sink.fd < 0 && errno == EEXIST) continue;
        if (o->sink.fd < 0) return cannot(d, "create a file for", o->path);
        o->owns_fd = true;
        o->temp = temp;
        o->sink.hold = &o->hold;
        if (mode) (void)!fchmod(o->sink.fd, mode); /* keep the replaced file's mode where we may */
        o->dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return OT_OK;
    }
    return ot_fail(d, OT_E_SYSTEM, "cannot create a temporary file for '%s'", o->path);
}

/* o->path is a symbolic link: write to the file behind it. A dangling one is refused. */
static ot_status resolve_link(ot_out *o, ot_arena *a, ot_diag *d)
{
    struct stat st;
    if (lstat(o->path, &st) != 0 || !S_ISLNK(st.st_mode)) return OT_OK;
    char *real = realpath(o->path, NULL);
    if (!real) return cannot(d, "write to", o->path);
    o->path = ot_strdup(a, real);
    free(real);
    return o->path ? OT_OK : ot_fail_nomem(d);
}

ot_status ot_out_check(const char *path, ot_diag *d)
{
    struct stat st;
    if (strcmp(path, "-") == 0) return OT_OK;
    const bool exists = stat(path, &st) == 0;
    if (!exists && errno != ENOENT) return cannot(d, "write to", path);
    if (exists && S_ISDIR(st.st_mode))
        return ot_fail(d, OT_E_SYSTEM, "cannot write to '%s': it is a folder", path);
    if (exists) return OT_OK;
    ot_arena *a = ot_arena_new();
    char *folder = a ? folder_of(path, a) : NULL;
    ot_status s = folder ? OT_OK : ot_fail_nomem(d);
    if (folder && stat(folder, &st) != 0) s = cannot(d, "create a file for", path);
    ot_arena_free(a);
    return s;
}

static ot_status open_any(ot_out *o, const char *path, ot_arena *a, ot_diag *d)
{
    o->sink = (ot_sink){
        .d = d, .path = path, .fd = -1, .cap = BUFFER, .buffer = ot_alloc(a, BUFFER)};
    if (!o->sink.buffer) return ot_fail_nomem(d);
    if (strcmp(path, "-") == 0) {
        o->direct = true;
        o->sink.path = "standard output";
        o->sink.fd = STDOUT_FILENO;
        return OT_OK;
    }
    struct stat st;
    OT_TRY(ot_out_check(path, d));
    bool exists = stat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode)) return open_direct(o, d);
    if (exists && access(path, W_OK) != 0) return cannot(d, "replace", path);
    OT_TRY(resolve_link(o, a, d));
    return open_temp(o, exists ? st.st_mode & 07777 : 0, a, d);
}

ot_status ot_out_open(ot_out *o, const char *path, ot_arena *a, ot_diag *d)
{
    *o = (ot_out){.path = path, .dir_fd = -1};
    ot_signals_hold(&o->hold);
    const ot_status s = open_any(o, path, a, d);
    if (s != OT_OK || o->direct) ot_signals_release(&o->hold); /* nothing would stay behind */
    return s;
}

/* File systems without fsync say so with these; there is nothing more to be done then. */
static bool sync_matters(int error)
{
    return error != EINVAL && error != ENOTSUP && error != EROFS;
}

ot_status ot_out_seal(ot_out *o)
{
    OT_TRY(ot_sink_flush(&o->sink));
    if (!o->direct && fsync(o->sink.fd) != 0 && sync_matters(errno))
        return cannot(o->sink.d, "write", o->path);
    if (!o->owns_fd) return OT_OK;
    int fd = o->sink.fd;
    o->sink.fd = -1;
    o->owns_fd = false;
    return close(fd) != 0 && errno != EINTR ? cannot(o->sink.d, "write", o->path) : OT_OK;
}

ot_status ot_out_publish(ot_out *o)
{
    if (!o->temp) return OT_OK;
    if (rename(o->temp, o->path) != 0) return cannot(o->sink.d, "rename a file to", o->path);
    o->temp = NULL;
    if (o->dir_fd >= 0 && fsync(o->dir_fd) != 0 && sync_matters(errno))
        return cannot(o->sink.d, "save the folder of", o->path);
    return OT_OK;
}

void ot_out_close(ot_out *o)
{
    if (o->owns_fd && o->sink.fd >= 0) close(o->sink.fd);
    if (o->temp) unlink(o->temp);
    if (o->dir_fd >= 0) close(o->dir_fd);
    o->owns_fd = false;
    o->temp = NULL;
    o->dir_fd = -1;
    o->sink.hold = NULL;
    ot_signals_release(&o->hold);
}

ot_status ot_out_write(const char *path, const char *bytes, size_t n, ot_diag *d)
{
    ot_arena *a = ot_arena_new();
    ot_out out;
    if (!a) return ot_fail_nomem(d);
    ot_status s = ot_out_open(&out, path, a, d);
    if (s == OT_OK) {
        ot_sink_put(&out.sink, bytes, n);
        s = ot_out_seal(&out);
    }
    if (s == OT_OK) s = ot_out_publish(&out);
    ot_out_close(&out);
    ot_arena_free(a);
    return s;
}
