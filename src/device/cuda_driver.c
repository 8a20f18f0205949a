/* CUDA under the layer of devices: devices, memory, maps, programs.
 *
 *   buffer   device memory; pinned memory for `host` (imported: registered), managed memory for
 *            `unified`: both are their own map
 *   queue    a stream, and two events for each command that is not retired (cuda_queue.c)
 *   program  a module of PTX; CUDA C goes through NVRTC first
 */
#include "cuda_api.h"

typedef struct cu_program {
    char *text; /* PTX */
    cu_handle module;
} cu_program;

/* ---- devices ---- */

static int64_t ask_int(const cuda_api *cu, int device, int attribute)
{
    int v = 0;
    return cu->cuDeviceGetAttribute(&v, attribute, device) == 0 ? v : 0;
}

static void ask(const cuda_api *cu, int device, uint32_t number, ot_device_facts *f)
{
    int version = 0;
    size_t bytes = 0;
    *f = (ot_device_facts){.api = OT_DEV_CUDA, .number = number};
    cu->cuDriverGetVersion(&version);
    cu->cuDeviceTotalMem_v2(&bytes, device);
    if (cu->cuDeviceGetName(f->name, (int)sizeof f->name, device) != 0) *f->name = '\0';
    f->name[sizeof f->name - 1] = '\0';
    ot_make_shown(f->name);
    snprintf(f->version, sizeof f->version, "CUDA %d.%d, compute capability %d.%d", version / 1000,
             version % 1000 / 10, (int)ask_int(cu, device, CU_MAJOR),
             (int)ask_int(cu, device, CU_MINOR));
    f->has_f64 = f->has_i64 = f->has_shorts = f->has_bytes = true;
    f->pins = true;
    f->groups_most = INT32_MAX;
    f->slices_most = OT_DEV_ARGS_MAX;
    f->has_f16 = ask_int(cu, device, CU_MAJOR) >= 6;
    f->has_matrices = ask_int(cu, device, CU_MAJOR) >= 8;
    f->unified = ask_int(cu, device, CU_MANAGED) != 0;
    f->maps_stay = !f->unified || ask_int(cu, device, CU_CONCURRENT_MANAGED) != 0;
    f->memory_bytes = f->allocation_most = (int64_t)bytes;
    f->shared_bytes = ot_max(ask_int(cu, device, CU_SHARED_BYTES),
                             ask_int(cu, device, CU_SHARED_BYTES_MOST));
    f->alignment = 256;
    f->granule = 1;
    f->cache_line = 128;
    f->cache_bytes = ask_int(cu, device, CU_L2_BYTES);
    f->units = (uint32_t)ask_int(cu, device, CU_UNITS);
    f->vector_floats = 1;
    f->items_most = (uint32_t)ask_int(cu, device, CU_ITEMS_MOST);
}

static ot_status list(ot_arena *a, ot_device_list *l)
{
    cuda_api cu;
    int n = 0, device = 0;
    if (!cu_load(&cu, l->missing[OT_DEV_CUDA], sizeof l->missing[0])) return OT_OK;
    l->missing[OT_DEV_CUDA][0] = '\0';
    if (cu.cuDeviceGetCount(&n) != 0) n = 0;
    ot_device_facts *all = OT_NEW_N(a, ot_device_facts, (size_t)l->n + (size_t)n);
    if (!all) return OT_E_NOMEM;
    if (l->n) memcpy(all, l->devices, l->n * sizeof *all);
    for (int k = 0; k < n; k++)
        if (cu.cuDeviceGet(&device, k) == 0) ask(&cu, device, (uint32_t)k, &all[l->n++]);
    l->devices = all;
    return OT_OK;
}

static ot_status open_device(ot_device *dev, uint32_t number, ot_device_error *e)
{
    char why[256];
    int n = 0;
    cu_state *x = dev->api = calloc(1, sizeof *x);
    if (!x) return dev_fail_host_memory(e);
    if (!cu_load(&x->cu, why, sizeof why)) return dev_fail(e, OT_DEV_NOT_HERE, "%s", why);
    if (x->cu.cuDeviceGetCount(&n) != 0 || number >= (uint32_t)n)
        return dev_fail(e, OT_DEV_NOT_HERE, "no CUDA device %u: there %s %d, from 0", number,
                        n == 1 ? "is" : "are", n);
    cu_result code = x->cu.cuDeviceGet(&x->device, (int)number);
    if (code != 0) return cu_failed(dev, e, "no device", code);
    ask(&x->cu, x->device, number, &dev->facts);
    snprintf(x->architecture, sizeof x->architecture, "--gpu-architecture=compute_%d%d",
             (int)ask_int(&x->cu, x->device, CU_MAJOR), (int)ask_int(&x->cu, x->device, CU_MINOR));
    code = x->cu.cuDevicePrimaryCtxRetain(&x->context, x->device);
    return code == 0 ? OT_OK : cu_failed(dev, e, "no context", code);
}

static void close_device(ot_device *dev)
{
    cu_state *x = cu_state_of(dev);
    if (x && x->context) x->cu.cuDevicePrimaryCtxRelease_v2(x->device);
    free(x);
}

/* ---- memory ---- */

static cu_result allocate(const cu_state *x, const dev_buffer *b, cu_buffer *m)
{
    const cuda_api *cu = &x->cu;
    size_t n = (size_t)b->bytes;
    cu_result code = cu->cuCtxSetCurrent(x->context);
    if (code != 0) return code;
    if (b->kind == OT_DEV_MEM_UNIFIED) {
        code = cu->cuMemAllocManaged(&m->at, n, CU_ATTACH_GLOBAL);
        m->host = (void *)(uintptr_t)m->at;
        return code;
    }
    if (b->kind != OT_DEV_MEM_HOST) return cu->cuMemAlloc_v2(&m->at, n);
    m->host = b->host;
    code = b->host ? cu->cuMemHostRegister_v2(b->host, n, CU_HOST_PORTABLE_MAPPED)
                   : cu->cuMemHostAlloc(&m->host, n, CU_HOST_PORTABLE_MAPPED);
    if (code != 0) return code;
    code = cu->cuMemHostGetDevicePointer_v2(&m->at, m->host, 0);
    if (code != 0 && b->host) cu->cuMemHostUnregister(m->host);
    if (code != 0 && !b->host) cu->cuMemFreeHost(m->host);
    return code;
}

static ot_status buffer_new(ot_device *dev, dev_buffer *b, ot_device_error *e)
{
    char what[80];
    cu_buffer *m = calloc(1, sizeof *m);
    if (!m) return dev_fail_host_memory(e);
    cu_result code = allocate(cu_state_of(dev), b, m);
    if (code == 0) {
        b->api = m;
        return OT_OK;
    }
    free(m);
    snprintf(what, sizeof what, "buffer '%s'", b->name);
    return code == CU_OUT_OF_MEMORY ? dev_fail_full(dev, e, what, b->bytes)
                                    : cu_failed(dev, e, what, code);
}

static void buffer_free(ot_device *dev, dev_buffer *b)
{
    const cu_state *x = cu_state_of(dev);
    cu_buffer *m = b->api;
    x->cu.cuCtxSetCurrent(x->context);
    if (b->kind != OT_DEV_MEM_HOST)
        x->cu.cuMemFree_v2(m->at);
    else if (b->host)
        x->cu.cuMemHostUnregister(m->host);
    else
        x->cu.cuMemFreeHost(m->host);
    free(m);
}

static ot_status map_buffer(ot_device *dev, dev_buffer *b, ot_device_error *e)
{
    (void)dev;
    (void)e;
    b->mapped = ((cu_buffer *)b->api)->host;
    return OT_OK;
}

static void unmap_buffer(ot_device *dev, dev_buffer *b)
{
    (void)dev;
    b->mapped = NULL;
}

/* Pinned and managed memory are always in step once commands are done. */
static ot_status sync_buffer(ot_device *dev, dev_buffer *b, int64_t offset, int64_t bytes,
                             bool to_device, ot_device_error *e)
{
    (void)dev;
    (void)b;
    (void)offset;
    (void)bytes;
    (void)to_device;
    (void)e;
    return OT_OK;
}

static bool pin(ot_device *dev, void *memory, size_t bytes)
{
    const cu_state *x = cu_state_of(dev);
    return x->cu.cuCtxSetCurrent(x->context) == 0 &&
           x->cu.cuMemHostRegister_v2(memory, bytes, CU_HOST_PORTABLE_MAPPED) == 0;
}

static void unpin(ot_device *dev, void *memory)
{
    const cu_state *x = cu_state_of(dev);
    x->cu.cuCtxSetCurrent(x->context);
    x->cu.cuMemHostUnregister(memory);
}

/* ---- programs ---- */

/* PTX is told from CUDA C by its first directive. */
static bool is_ptx(const ot_dev_source *s)
{
    const char *text = s->text;
    size_t n = s->n;
    while (n > 0 && (*text == '/' || *text == '\n')) { /* comments */
        const char *end = memchr(text, '\n', n);
        if (*text == '/' && (n < 2 || text[1] != '/')) return false;
        size_t skip = *text == '\n' ? 1 : end ? (size_t)(end - text) + 1 : n;
        text += skip;
        n -= skip;
    }
    return n > 8 && memcmp(text, ".version", 8) == 0;
}

static ot_status fill_program(ot_device *dev, const dev_program *d, cu_program *p,
                              const ot_dev_source *s, ot_device_error *e)
{
    const cu_state *x = cu_state_of(dev);
    if (s->language == OT_DEV_BINARY || is_ptx(s)) {
        p->text = calloc(1, s->n + 1);
        if (!p->text) return dev_fail_host_memory(e);
        memcpy(p->text, s->text, s->n);
    } else {
        OT_TRY(cu_compile(x, d->name, s, e, &p->text));
    }
    cu_result code = x->cu.cuCtxSetCurrent(x->context);
    if (code == 0) code = x->cu.cuModuleLoadData(&p->module, p->text);
    return code == 0
               ? OT_OK
               : dev_fail(e, OT_DEV_COMPILE, "program '%s': the driver takes its PTX not: error %d",
                          d->name, code);
}

static ot_status program_new(ot_device *dev, dev_program *d, const ot_dev_source *s,
                             ot_device_error *e)
{
    cu_program *p = calloc(1, sizeof *p);
    if (!p) return dev_fail_host_memory(e);
    ot_status st = fill_program(dev, d, p, s, e);
    if (st != OT_OK) {
        free(p->text);
        free(p);
        return st;
    }
    d->api = p;
    return OT_OK;
}

static void program_free(ot_device *dev, dev_program *d)
{
    const cu_state *x = cu_state_of(dev);
    cu_program *p = d->api;
    x->cu.cuCtxSetCurrent(x->context);
    x->cu.cuModuleUnload(p->module);
    free(p->text);
    free(p);
}

static ot_status program_binary(ot_device *dev, dev_program *d, ot_arena *a, ot_device_error *e,
                                void **data, size_t *n)
{
    const cu_program *p = d->api;
    (void)dev;
    *n = strlen(p->text);
    *data = ot_memdup(a, p->text, *n);
    return *data ? OT_OK : dev_fail_host_memory(e);
}

cu_handle cu_module_of(const dev_program *d) { return ((const cu_program *)d->api)->module; }

const dev_driver dev_cuda = {.api = OT_DEV_CUDA,
                             .list = list,
                             .open = open_device,
                             .close = close_device,
                             .buffer_new = buffer_new,
                             .buffer_free = buffer_free,
                             .map = map_buffer,
                             .unmap = unmap_buffer,
                             .sync = sync_buffer,
                             .pin = pin,
                             .unpin = unpin,
                             .queue_new = cu_queue_new,
                             .queue_free = cu_queue_free,
                             .submit = cu_submit,
                             .flush = cu_flush,
                             .poll = cu_poll,
                             .wait = cu_wait,
                             .program_new = program_new,
                             .program_free = program_free,
                             .program_binary = program_binary};
