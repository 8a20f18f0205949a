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
 */
#include "device_internal.h"
#include "program_cache.h"

#define OPTIONS "-w"

/* Text of n functions from `first` on. */
static ot_status source(dv_session *s, size_t first, size_t n_functions, char **text, size_t *n)
{
    const char *prelude = ot_dg_prelude(&s->target, s->a), *head = ot_dg_function_head(&s->target);
    if (!prelude) return ot_fail_nomem(s->s->d);
    size_t size = strlen(prelude) + 1;
    for (size_t k = first; k < first + n_functions; k++) size += s->functions[k]->n_text + 128;
    *text = ot_alloc(s->a, size);
    if (!*text) return ot_fail_nomem(s->s->d);
    char *at = *text + sprintf(*text, "%s", prelude);
    for (size_t k = first; k < first + n_functions; k++) {
        const ot_dg_shader *f = s->functions[k];
        if (head) at += sprintf(at, "%s", head);
        if (head && f->groups_on_unit)
            at += sprintf(at, "__launch_bounds__(%u, %u) ", f->group_items, f->groups_on_unit);
        if (head) at += sprintf(at, "k%zu", k);
        at += sprintf(at, "%s", s->functions[k]->text);
    }
    *n = (size_t)(at - *text);
    return OT_OK;
}

/* ---- the cache on disk ---- */

/* What the program of this text depends on, and where it is kept; path NULL: nowhere. */
typedef struct entry {
    ot_bytes key;
    const char *path;
} entry;

static entry entry_of(dv_session *s, const char *text)
{
    const ot_device_facts *f = ot_device_about(s->dev);
    const char *folder = ot_cache_folder("device", s->a),
               *key = ot_format(s->a, "%s\n%s\n%s\n%s", f->name, f->version, OPTIONS, text);
    entry e = {{key, key ? strlen(key) : 0}, NULL};
    if (folder && key)
        e.path = ot_format(s->a, "%s/%s-%016llx.bin", folder, ot_dev_api_name(f->api),
                           (unsigned long long)ot_hash_bytes(0, key, e.key.n));
    return e;
}

static bool load_binary(dv_session *s, const entry *kept, ot_dev_program *out)
{
    ot_dev_source from = {.name = s->s->m->path ? s->s->m->path : "model",
                          .language = OT_DEV_BINARY,
                          .options = OPTIONS};
    ot_bytes program;
    ot_device_error e;
    if (!kept->path || !ot_program_read(kept->path, kept->key, s->a, &program)) return false;
    from.text = program.data;
    from.n = program.n;
    return ot_dev_program_new(s->dev, &from, &e, out) == OT_OK;
}

static void keep_binary(dv_session *s, const entry *kept, ot_dev_program p)
{
    void *data;
    size_t n;
    ot_device_error e;
    if (kept->path && ot_dev_program_binary(s->dev, p, s->a, &e, &data, &n) == OT_OK)
        ot_program_write(kept->path, kept->key, (ot_bytes){data, n}, s->a);
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
    const entry kept = entry_of(s, text);
    ot_dev_program *p = &s->programs[s->n_programs];
    if (!load_binary(s, &kept, p)) {
        OT_TRY(dv_told(s, ot_dev_program_new(s->dev, &from, &e, p), &e));
        s->figures.from_disk = false;
        keep_binary(s, &kept, *p);
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
