/* Programs of kernels: compiled once for a device, then from the folder onnx-tile/device of the
 * user's cache.
 *
 *   OpenCL C  prelude, __kernel void k0(...) {...} __kernel void k1 ...  one program; CUDA C the
 *             same
 *   GLSL      prelude, layout... void main() {...}                       one of each function,
 *                                                                        which models share
 *
 *   text  --hash of it, of the device's name and version-->  <hash>.bin
 *
 * What cannot be read, or does not build, is compiled anew; what cannot be written is not kept.
 *
 *
 *
 */
#include "device_internal.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPTIONS "-w"

/* Text of n functions from `first` on. */
static ot_status source(dv_session *s, size_t first, size_t n_functions, char **text, size_t *n)
{
    const char *prelude = ot_dg_prelude(&s->target, s->a), *head = ot_dg_function_head(&s->target);
    if (!prelude) return ot_fail_nomem(s->s->d);
    size_t size = strlen(prelude) + 1;
    for (size_t k = first; k < first + n_functions; k++) size += s->functions[k]->n_text + 64;
    *text = ot_alloc(s->a, size);
    if (!*text) return ot_fail_nomem(s->s->d);
    char *at = *text + sprintf(*text, "%s", prelude);
    for (size_t k = first; k < first + n_functions; k++) {
        if (head) at += sprintf(at, "%sk%zu", head, k);
        at += sprintf(at, "%s", s->functions[k]->text);
    }
    *n = (size_t)(at - *text);
    return OT_OK;
}

/* ---- the cache on disk ---- */

/* NULL: there is no place for it. */
static char *cache_path(dv_session *s, const char *text, size_t n)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const ot_device_facts *f = ot_device_about(s->dev);
    uint64_t hash = ot_hash_bytes(0, text, n);
    hash = ot_hash_bytes(hash, f->name, strlen(f->name));
    hash = ot_hash_bytes(hash, f->version, strlen(f->version));
    hash = ot_hash_bytes(hash, OPTIONS, strlen(OPTIONS));
    char *base = NULL;
    if (cache && cache[0] == '/')
        base = ot_strdup(s->a, cache);
    else if (home && home[0] == '/')
        base = ot_format(s->a, "%s/.cache", home);
    return base ? ot_format(s->a, "%s/onnx-tile/device/%s-%016llx.bin", base,
                            ot_dev_api_name(f->api), (unsigned long long)hash)
                : NULL;
}

static bool read_whole(ot_arena *a, const char *path, void **data, size_t *n)
{
    FILE *f = fopen(path, "rb");
    long size = -1;
    if (!f) return false;
    if (fseek(f, 0, SEEK_END) == 0) size = ftell(f);
    bool ok = size > 0 && fseek(f, 0, SEEK_SET) == 0;
    *data = ok ? ot_alloc(a, (size_t)size) : NULL;
    ok = *data && fread(*data, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    *n = (size_t)size;
    return ok;
}

/* Whole or not at all: another process may read it. */
static void write_whole(dv_session *s, const char *path, const void *data, size_t n)
{
    char *part = ot_format(s->a, "%s.%ld", path, (long)getpid()), *dir = ot_strdup(s->a, path);
    if (!part || !dir) return;
    for (char *c = dir + 1; *c; c++) {
        if (*c != '/') continue;
        *c = '\0';
        if (mkdir(dir, 0700) != 0 && errno != EEXIST) return;
        *c = '/';
    }
    FILE *f = fopen(part, "wb");
    if (!f) return;
    bool ok = fwrite(data, 1, n, f) == n;
    ok = fclose(f) == 0 && ok;
    if (!ok || rename(part, path) != 0) (void)remove(part);
}

static bool load_binary(dv_session *s, const char *path, ot_dev_program *out)
{
    ot_dev_source from = {.name = s->s->m->path ? s->s->m->path : "model",
                          .language = OT_DEV_BINARY,
                          .options = OPTIONS};
    void *data = NULL;
    ot_device_error e;
    if (!path || !read_whole(s->a, path, &data, &from.n)) return false;
    from.text = data;
    return ot_dev_program_new(s->dev, &from, &e, out) == OT_OK;
}

static void keep_binary(dv_session *s, const char *path, ot_dev_program p)
{
    void *data;
    size_t n;
    ot_device_error e;
    if (path && ot_dev_program_binary(s->dev, p, s->a, &e, &data, &n) == OT_OK)
        write_whole(s, path, data, n);
}

static ot_status make_program(dv_session *s, size_t first, size_t n_functions)
{
    ot_dev_source from = {.name = s->s->m->path ? s->s->m->path : "model",
                          .language = OT_DEV_NATIVE,
                          .options = OPTIONS};
    char *text;
    ot_device_error e;
    OT_TRY(source(s, first, n_functions, &text, &from.n));
    from.text = text;
    if (ot_dbg['K']) fprintf(stderr, "%s", text);
    const char *path = cache_path(s, text, from.n);
    ot_dev_program *p = &s->programs[s->n_programs];
    if (!load_binary(s, path, p)) {
        OT_TRY(dv_told(s, ot_dev_program_new(s->dev, &from, &e, p), &e));
        s->figures.from_disk = false;
        keep_binary(s, path, *p);
    }
    s->n_programs++;
    return OT_OK;
}

ot_status dv_compile(dv_session *s)
{
    const size_t n = s->n_functions, each = ot_dg_function_head(&s->target) ? n : 1;
    double start = ot_now();
    s->figures.n_programs = (uint32_t)n;
    if (n == 0) return OT_OK;
    s->programs = OT_NEW_N(s->a, ot_dev_program, n);
    if (!s->programs) return ot_fail_nomem(s->s->d);
    s->figures.from_disk = true;
    for (size_t k = 0; k < n; k += each) OT_TRY(make_program(s, k, each));
    s->figures.compile_seconds = ot_now() - start;
    return OT_OK;
}
