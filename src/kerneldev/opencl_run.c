/* A device program on an OpenCL device: build, buffers, launch, results.
 *
 *   params        a buffer each: the input, or zeros
 *   global arena  slow_bytes for each group, all poison
 *   launch        as many groups as have something to do, but not more than keep the device busy
 */
#if __has_include(<CL/cl.h>)

#include "kerneldev.h"
#include "device/opencl_api.h"

#define POISON          0xcb
#define PLATFORMS_MAX   16
#define DEVICES_MAX     32
#define GROUPS_FOR_UNIT 8                  /* work-groups for each compute unit */
#define ARENA_MOST      (INT64_C(1) << 30) /* bytes of all groups' parts of the global arena */

struct ot_kd_device {
    opencl_api cl;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    uint32_t units;
    ot_kd_facts facts;
};

static ot_status failed(ot_diag *d, const char *what, cl_int code)
{
    char buf[32];
    return ot_fail(d, OT_E_SYSTEM, "OpenCL: %s: %s", what, opencl_error(code, buf));
}

/* ---- the device ---- */

static ot_status find_device(ot_kd_device *dev, uint32_t number, ot_diag *d)
{
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_device_id devices[DEVICES_MAX];
    cl_uint n_platforms = 0, n = 0, before = 0;
    if (dev->cl.clGetPlatformIDs(PLATFORMS_MAX, platforms, &n_platforms) != CL_SUCCESS) n_platforms = 0;
    for (cl_uint p = 0; p < n_platforms && p < PLATFORMS_MAX; p++, before += n) {
        if (dev->cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &n) != CL_SUCCESS) n = 0;
        if (n > DEVICES_MAX) n = DEVICES_MAX;
        if (number - before >= n) continue;
        dev->id = devices[number - before];
        return OT_OK;
    }
    if (before == 0) return ot_fail(d, OT_E_USAGE, "no OpenCL device here (Debian: pocl-opencl-icd makes the CPU one)");
    return ot_fail(d, OT_E_USAGE, "no OpenCL device %u: there %s %u, from 0", number, before == 1 ? "is" : "are", before);
}

static void ask(ot_kd_device *dev)
{
    cl_ulong local = 0;
    cl_uint units = 1;
    cl_device_type type = 0;
    cl_device_fp_config f64 = 0;
    size_t items = 1;
    dev->cl.clGetDeviceInfo(dev->id, CL_DEVICE_NAME, sizeof dev->facts.name, dev->facts.name, NULL);
    dev->cl.clGetDeviceInfo(dev->id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
    dev->cl.clGetDeviceInfo(dev->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    dev->cl.clGetDeviceInfo(dev->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof items, &items, NULL);
    dev->cl.clGetDeviceInfo(dev->id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    dev->cl.clGetDeviceInfo(dev->id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof f64, &f64, NULL);
    dev->facts.name[sizeof dev->facts.name - 1] = '\0';
    dev->facts.local_bytes = (int64_t)local;
    dev->facts.items_most = items > OT_KG_ITEMS_MAX ? OT_KG_ITEMS_MAX : (uint32_t)items;
    dev->facts.is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
    dev->facts.has_f64 = f64 != 0;
    dev->units = units;
}

static ot_status open_device(ot_kd_device *dev, uint32_t number, ot_diag *d)
{
    cl_int code = CL_SUCCESS;
    OT_TRY(opencl_load(d, &dev->cl));
    OT_TRY(find_device(dev, number, d));
    ask(dev);
    dev->context = dev->cl.clCreateContext(NULL, 1, &dev->id, NULL, NULL, &code);
    if (!dev->context) return failed(d, "no context", code);
    dev->queue = dev->cl.clCreateCommandQueue(dev->context, dev->id, CL_QUEUE_PROFILING_ENABLE, &code);
    return dev->queue ? OT_OK : failed(d, "no queue", code);
}

ot_status ot_kd_open(uint32_t number, ot_diag *d, ot_kd_device **out)
{
    ot_kd_device *dev = calloc(1, sizeof *dev);
    *out = NULL;
    if (!dev) return ot_fail_nomem(d);
    ot_status s = open_device(dev, number, d);
    if (s == OT_OK)
        *out = dev;
    else
        ot_kd_close(dev);
    return s;
}

const ot_kd_facts *ot_kd_about(const ot_kd_device *dev) { return &dev->facts; }

void ot_kd_close(ot_kd_device *dev)
{
    if (!dev) return;
    if (dev->queue) dev->cl.clReleaseCommandQueue(dev->queue);
    if (dev->context) dev->cl.clReleaseContext(dev->context);
    free(dev);
}

/* ---- a run ---- */

typedef struct launch {
    ot_kd_device *dev;
    const ot_kernel *k;
    const char *path;
    const ot_kg_code *code;
    const ot_kd_request *r;
    ot_diag *d;
    cl_program program;
    cl_kernel kernel;
    cl_mem *buffers; /* [n_params + 1] the last is the arena */
    size_t n_groups;
    ot_kd_result *x;
} launch;

/* The compiler's first words, for the message. */
static ot_status build_failed(const launch *l, cl_int code)
{
    char log[600] = "";
    size_t n = 0;
    char *all = NULL;
    l->dev->cl.clGetProgramBuildInfo(l->program, l->dev->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &n);
    if (n > 0 && (all = calloc(1, n + 1)) != NULL) {
        l->dev->cl.clGetProgramBuildInfo(l->program, l->dev->id, CL_PROGRAM_BUILD_LOG, n, all, NULL);
        snprintf(log, sizeof log, "%s", all);
        for (char *c = log; *c; c++)
            if (*c == '\n') *c = ' ';
    }
    free(all);
    char buf[32];
    return ot_fail(l->d, OT_E_SYSTEM, "%s: the device's compiler: %s: %s", l->path, opencl_error(code, buf), log);
}

static ot_status build(launch *l)
{
    opencl_api *cl = &l->dev->cl;
    cl_int code;
    if (l->code->needs_f64 && !l->dev->facts.has_f64)
        return ot_fail(l->d, OT_E_USAGE, "%s: the kernel computes in f64, which '%s' does not have", l->path, l->dev->facts.name);
    l->program = cl->clCreateProgramWithSource(l->dev->context, 1, &(const char *){l->code->text}, &l->code->n, &code);
    if (!l->program) return failed(l->d, "no program", code);
    code = cl->clBuildProgram(l->program, 1, &l->dev->id, "-w", NULL, NULL);
    if (code != CL_SUCCESS) return build_failed(l, code);
    l->kernel = cl->clCreateKernel(l->program, l->code->entry, &code);
    return l->kernel ? OT_OK : failed(l->d, "no kernel", code);
}

static const ot_tk_value *param(const launch *l, uint32_t k) { return &l->k->values[l->code->params[k]]; }

static bool is_written(const launch *l, uint32_t v)
{
    for (uint32_t i = 0; i < l->k->n_stmts; i++)
        for (uint32_t k = 0; k < l->k->stmts[i].n_out; k++)
            if (ot_tk_root(l->k, l->k->stmts[i].out[k], NULL) == v) return true;
    return false;
}

static ot_status fail_param(const launch *l, const ot_tk_value *x, const char *text)
{
    return ot_fail(l->d, OT_E_INPUT, "%s:%u:%u: '%s' %s", l->path, x->line, x->col, x->name, text);
}

/* The input of a param, NULL: none. */
static ot_status input_of(const launch *l, uint32_t k, const ot_krun_array **out)
{
    const ot_tk_value *x = param(l, k);
    *out = NULL;
    for (uint32_t i = 0; i < l->r->n_inputs; i++)
        if (strcmp(l->r->inputs[i].name, x->name) == 0) *out = &l->r->inputs[i];
    if (!*out && !x->empty && !is_written(l, l->code->params[k])) return fail_param(l, x, "has no input [input-missing]");
    if (!*out) return OT_OK;
    if (x->empty) return fail_param(l, x, "is made by the kernel: it takes no input [input-empty]");
    bool same = strcmp((*out)->dtype, x->dtype) == 0 && (*out)->rank == x->rank;
    for (uint32_t d = 0; same && d < x->rank; d++) same = (*out)->dims[d] == x->dims[d];
    return same ? OT_OK : fail_param(l, x, "has another shape or element type than its input [input-type]");
}

static ot_status check_names(const launch *l)
{
    for (uint32_t i = 0; i < l->r->n_inputs; i++) {
        uint32_t k = 0;
        while (k < l->code->n_params && strcmp(param(l, k)->name, l->r->inputs[i].name) != 0) k++;
        if (k == l->code->n_params)
            return ot_fail(l->d, OT_E_USAGE, "%s: the kernel has no param '%.200s'", l->path, l->r->inputs[i].name);
    }
    return OT_OK;
}

/* A buffer as argument k, with contents (or so many bytes of one value). */
static ot_status make_buffer(launch *l, uint32_t k, size_t n, const void *data, int value)
{
    opencl_api *cl = &l->dev->cl;
    cl_int code;
    void *filled = NULL;
    l->buffers[k] = cl->clCreateBuffer(l->dev->context, CL_MEM_READ_WRITE, n, NULL, &code);
    if (!l->buffers[k]) return failed(l->d, "no buffer", code);
    if (!data) {
        filled = malloc(n);
        if (!filled) return ot_fail_nomem(l->d);
        memset(filled, value, n);
    }
    code = cl->clEnqueueWriteBuffer(l->dev->queue, l->buffers[k], CL_TRUE, 0, n, data ? data : filled, 0, NULL, NULL);
    free(filled);
    if (code == CL_SUCCESS) code = cl->clSetKernelArg(l->kernel, k, sizeof(cl_mem), &l->buffers[k]);
    return code == CL_SUCCESS ? OT_OK : failed(l->d, "a buffer cannot be written", code);
}

static ot_status make_buffers(launch *l)
{
    const ot_kg_code *c = l->code;
    l->buffers = OT_NEW_N(l->x->arena, cl_mem, (size_t)c->n_params + 1);
    if (!l->buffers) return ot_fail_nomem(l->d);
    OT_TRY(check_names(l));
    for (uint32_t k = 0; k < c->n_params; k++) {
        const ot_krun_array *in;
        OT_TRY(input_of(l, k, &in));
        OT_TRY(make_buffer(l, k, (size_t)param(l, k)->bytes, in ? in->data : NULL, 0));
    }
    int64_t groups = ot_min(c->n_groups, (int64_t)l->dev->units * GROUPS_FOR_UNIT);
    if (c->slow_bytes > 0) groups = ot_max(1, ot_min(groups, ARENA_MOST / c->slow_bytes));
    l->n_groups = (size_t)groups;
    l->x->n_groups = groups;
    return c->slow_bytes > 0 ? make_buffer(l, c->n_params, (size_t)(groups * c->slow_bytes), NULL, POISON) : OT_OK;
}

static ot_status launch_once(launch *l, double *seconds)
{
    opencl_api *cl = &l->dev->cl;
    size_t items = l->code->items, all = l->n_groups * items;
    cl_event event = NULL;
    cl_ulong from = 0, to = 0;
    cl_int code = cl->clEnqueueNDRangeKernel(l->dev->queue, l->kernel, 1, NULL, &all, &items, 0, NULL, &event);
    if (code == CL_SUCCESS) code = cl->clFinish(l->dev->queue);
    if (code == CL_SUCCESS) cl->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof from, &from, NULL);
    if (code == CL_SUCCESS) cl->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof to, &to, NULL);
    if (event) cl->clReleaseEvent(event);
    *seconds = (double)(to - from) * 1e-9;
    return code == CL_SUCCESS ? OT_OK : failed(l->d, "the kernel cannot be run", code);
}

static ot_status read_outputs(launch *l)
{
    ot_kd_result *x = l->x;
    x->outputs = OT_NEW_N(x->arena, ot_krun_array, (size_t)l->code->n_params + 1);
    if (!x->outputs) return ot_fail_nomem(l->d);
    for (uint32_t k = 0; k < l->code->n_params; k++) {
        const ot_tk_value *v = param(l, k);
        if (!v->empty && !is_written(l, l->code->params[k])) continue;
        ot_krun_array *o = &x->outputs[x->n_outputs++];
        void *data = ot_alloc(x->arena, (size_t)v->bytes);
        *o = (ot_krun_array){.rank = v->rank, .data = data};
        o->name = ot_strdup(x->arena, v->name);
        o->dtype = ot_strdup(x->arena, v->dtype);
        memcpy(o->dims, v->dims, sizeof o->dims);
        if (!data || !o->name || !o->dtype) return ot_fail_nomem(l->d);
        cl_int code = l->dev->cl.clEnqueueReadBuffer(l->dev->queue, l->buffers[k], CL_TRUE, 0, (size_t)v->bytes, data, 0, NULL,
                                                     NULL);
        if (code != CL_SUCCESS) return failed(l->d, "a buffer cannot be read", code);
    }
    return OT_OK;
}

static ot_status run(launch *l)
{
    OT_TRY(build(l));
    OT_TRY(make_buffers(l));
    OT_TRY(launch_once(l, &l->x->seconds));
    OT_TRY(read_outputs(l));
    for (uint32_t k = 0; k < l->r->repeat; k++) {
        double seconds;
        OT_TRY(launch_once(l, &seconds));
        if (k == 0 || seconds < l->x->seconds) l->x->seconds = seconds;
    }
    return OT_OK;
}

static void release(launch *l)
{
    opencl_api *cl = &l->dev->cl;
    for (uint32_t k = 0; l->buffers && k <= l->code->n_params; k++)
        if (l->buffers[k]) cl->clReleaseMemObject(l->buffers[k]);
    if (l->kernel) cl->clReleaseKernel(l->kernel);
    if (l->program) cl->clReleaseProgram(l->program);
}

ot_status ot_kd_run(ot_kd_device *dev, const ot_kernel *k, const char *path, const ot_kg_code *code, const ot_kd_request *r,
                    ot_diag *d, ot_kd_result **out)
{
    ot_arena *a = ot_arena_new();
    ot_kd_result *x = a ? OT_NEW(a, ot_kd_result) : NULL;
    *out = NULL;
    if (!x) {
        ot_arena_free(a);
        return ot_fail_nomem(d);
    }
    x->arena = a;
    launch l = {.dev = dev, .k = k, .path = path, .code = code, .r = r, .d = d, .x = x};
    ot_status s = run(&l);
    release(&l);
    if (s == OT_OK)
        *out = x;
    else
        ot_arena_free(a);
    return s;
}

void ot_kd_free(ot_kd_result *r)
{
    if (r) ot_arena_free(r->arena);
}

#endif
