/* .ot files: the graph's text form on disk, for golden tests and by hand.
 *
 * Writing follows the rule of every output of this program: whole or not at all
 * (onnx/export/out_file.c).
 */
#include "pipeline.h"

#include "onnx/export/out_file.h"

#include <errno.h>
#include <sys/stat.h>

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
        return ot_fail(d, errno == ENOENT || errno == ENOTDIR ? OT_E_INPUT : OT_E_SYSTEM,
                       "cannot read '%s': %s", path, strerror(errno));
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

ot_status ot_text_file_write(const ot_graph *g, const char *path, ot_diag *diag)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);
    /* nothing can fail in memory but memory */
    ot_status s = memory ? ot_text_print(g, memory) : OT_E_NOMEM;
    if (memory && fclose(memory) != 0) s = OT_E_NOMEM;
    s = s == OT_OK ? ot_out_write(path, text, n, diag) : ot_fail_nomem(diag);
    free(text);
    return s;
}
