/* CUDA's driver and NVRTC, opened when a device is asked for. */
#include "cuda_api.h"

#include <dlfcn.h>

bool cu_load(cuda_api *cu, char *why, size_t size)
{
    static const char *const names[] = {
#define X(name, args) #name,
        CUDA_FUNCTIONS(X)
#undef X
    };
    /* it stays open: the driver has threads */
    void *library = dlopen("libcuda.so.1", RTLD_NOW), **functions = (void **)cu;
    _Static_assert(sizeof *cu == sizeof names, "a pointer for each name");
    snprintf(why, size, "no CUDA device: there is no libcuda.so.1 (it comes with NVIDIA's driver)");
    if (!library) return false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        functions[k] = dlsym(library, names[k]);
        if (functions[k]) continue;
        snprintf(why, size, "no CUDA device: the library lacks %s", names[k]);
        return false;
    }
    cu_result code = cu->cuInit(0);
    int n = 0;
    if (code == 0) code = cu->cuDeviceGetCount(&n);
    if (code == 0 && n > 0) return true;
    snprintf(why, size, code ? "no CUDA device: error %d" : "no CUDA device", code);
    return false;
}

ot_status cu_failed(ot_device *dev, ot_device_error *e, const char *what, cu_result code)
{
    const char *name = NULL;
    if (cu_state_of(dev)->cu.cuGetErrorName(code, &name) != 0 || !name) name = "an unknown error";
    if (code >= CU_FIRST_LOSS && code <= CU_LAST_LOSS) { /* the context is of no more use */
        dev->lost = true;
        return dev_fail(e, OT_DEV_LOST, "CUDA: %s: %s: '%s' was lost", what, name, dev->facts.name);
    }
    return dev_fail(e, OT_DEV_FAILED, "CUDA: %s: %s", what, name);
}

/* ---- NVRTC ---- */

typedef struct nvrtc_api {
    int (*make)(void **program, const char *text, const char *name, int n_headers,
                const char *const *headers, const char *const *names);
    int (*compile)(void *program, int n_options, const char *const *options);
    int (*size)(void *program, size_t *n);
    int (*get)(void *program, char *text);
    int (*log_size)(void *program, size_t *n);
    int (*log)(void *program, char *text);
    int (*drop)(void **program);
} nvrtc_api;

static ot_status load_nvrtc(nvrtc_api *api, ot_device_error *e)
{
    static const char *const libraries[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                            "libnvrtc.so"};
    static const char *const names[] = {
        "nvrtcCreateProgram",     "nvrtcCompileProgram", "nvrtcGetPTXSize",    "nvrtcGetPTX",
        "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",  "nvrtcDestroyProgram"};
    void *library = NULL, **functions = (void **)api;
    _Static_assert(sizeof *api == sizeof names, "a pointer for each name");
    for (size_t k = 0; k < sizeof libraries / sizeof *libraries && !library; k++)
        library = dlopen(libraries[k], RTLD_NOW);
    if (!library)
        return dev_fail(e, OT_DEV_UNSUPPORTED,
                        "CUDA C needs libnvrtc, which is not here; PTX does not");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        functions[k] = dlsym(library, names[k]);
        if (!functions[k]) return dev_fail(e, OT_DEV_UNSUPPORTED, "libnvrtc lacks %s", names[k]);
    }
    return OT_OK;
}

static ot_status compile_failed(const nvrtc_api *api, void *program, const char *name,
                                ot_device_error *e)
{
    size_t n = 0;
    char *log = NULL;
    if (api->log_size(program, &n) == 0 && n > 0 && (log = calloc(1, n + 1)) != NULL &&
        api->log(program, log) != 0)
        *log = '\0';
    ot_status s = dev_fail(e, OT_DEV_COMPILE, "program '%s': NVRTC: %s", name, log ? log : "");
    free(log);
    return s;
}

ot_status cu_compile(const cu_state *x, const char *name, const ot_dev_source *s,
                     ot_device_error *e, char **text)
{
    nvrtc_api api;
    void *program = NULL;
    size_t n = 0;
    const char *options[] = {x->architecture};
    *text = NULL;
    OT_TRY(load_nvrtc(&api, e));
    char *source = calloc(1, s->n + 1);
    if (!source) return dev_fail_host_memory(e);
    memcpy(source, s->text, s->n);
    ot_status st = OT_OK;
    if (api.make(&program, source, name, 0, NULL, NULL) != 0)
        st = dev_fail(e, OT_DEV_FAILED, "program '%s': NVRTC takes it not", name);
    else if (api.compile(program, 1, options) != 0)
        st = compile_failed(&api, program, name, e);
    else if (api.size(program, &n) != 0 || (*text = calloc(1, n + 1)) == NULL ||
             api.get(program, *text) != 0)
        st = dev_fail_host_memory(e);
    if (program) api.drop(&program);
    free(source);
    if (st != OT_OK) {
        free(*text);
        *text = NULL;
    }
    return st;
}
