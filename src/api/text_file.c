/* .ot files: the graph's text form on disk, for golden tests and by hand.
 *
 * Writing follows the rule of every output of this program: whole or not at all. The text goes to a
 * temporary file in the same folder, is synced and renamed; what exists and is no regular file (a
 * pipe, /dev/null) is written to.
 */
#include "pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX (1LL << 30)

bool ot_is_text_path(const char *path)
{
    size_t n = strlen(path);
    return n > 3 && strcmp(path + n - 3, ".ot") == 0;
}

static ot_status read_all(const char *path, ot_diag *d, char **text, size_t *n)
{
    struct stat st;
    FILE *f = fopen(path, "re");
    if (!f) /* a wrong name is the caller's, the rest is the system's */
        return ot_fail(d, errno == ENOENT || errno == ENOTDIR ? OT_E_INPUT : OT_E_SYSTEM, "cannot read '%s': %s", path,
                       strerror(errno));
    if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > TEXT_MAX) {
        fclose(f);
        return ot_fail(d, OT_E_INPUT, "'%s': not a regular file of at most 1 GiB", path);
    }
    *n = (size_t)st.st_size;
    *text = malloc(*n + 1);
    bool ok = *text && fread(*text, 1, *n, f) == *n;
    fclose(f);
    if (!*text) return ot_fail_nomem(d);
    if (!ok) {
        free(*text);
        *text = NULL;
        return ot_fail(d, OT_E_SYSTEM, "cannot read '%s'", path);
    }
    (*text)[*n] = '\0';
    return OT_OK;
}

ot_status ot_text_file_read(const char *path, ot_diag *diag, ot_model **out)
{
    char *text = NULL;
    size_t n = 0;
    OT_TRY(read_all(path, diag, &text, &n));
    ot_status s = ot_text_parse(text, n, diag, out);
    free(text);
    OT_TRY(s);
    return ot_assure((*out)->graph, OT_P_ORDER | OT_P_USES);
}

static ot_status write_to(const ot_graph *g, FILE *f, bool sync)
{
    ot_status s = ot_text_print(g, f);
    if (s == OT_OK && (fflush(f) != 0 || (sync && fsync(fileno(f)) != 0))) s = OT_E_SYSTEM;
    return s;
}

/* Temporary file beside `path`, with the permissions a new file would get. NULL with errno. */
static FILE *open_beside(const char *path, char *tmp, size_t size)
{
    if ((size_t)snprintf(tmp, size, "%s.XXXXXX", path) >= size) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0) return NULL;
    mode_t mask = umask(0);
    umask(mask);
    FILE *f = fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "w") : NULL;
    if (!f) {
        close(fd);
        unlink(tmp);
    }
    return f;
}

ot_status ot_text_file_write(const ot_graph *g, const char *path, ot_diag *diag)
{
    struct stat st;
    char tmp[4096];
    bool replace = stat(path, &st) != 0 || S_ISREG(st.st_mode);
    FILE *f = replace ? open_beside(path, tmp, sizeof tmp) : fopen(path, "we");

    if (!f) return ot_fail(diag, OT_E_SYSTEM, "cannot write '%s': %s", path, strerror(errno));
    ot_status s = write_to(g, f, replace);
    if (fclose(f) != 0) s = OT_E_SYSTEM;
    if (replace && s == OT_OK && rename(tmp, path) != 0) s = OT_E_SYSTEM;
    if (replace && s != OT_OK) unlink(tmp);
    return s == OT_OK ? OT_OK : ot_fail(diag, s, "cannot write '%s': %s", path, strerror(errno));
}
