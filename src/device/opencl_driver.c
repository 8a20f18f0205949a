/* OpenCL under the layer of devices.
 *
 *   buffer   a cl_mem, and a sub-buffer for each slice that a kernel was given (kept, there are
 *            few)
 *   queue    an in-order queue with profiling; the events of commands that are not retired stand in
 *            a row, oldest first
 *   program  a cl_program, and a cl_kernel for each entry that was launched; arguments are set
 *            under the device's lock
 */
#if __has_include(<CL/cl.h>)

#include "opencl_devices.h"

typedef struct cl_state {
    opencl_api cl;
    cl_device_id id;
    cl_context context;
    cl_command_queue maps; /* what maps and unmaps run in */
} cl_state;

typedef struct cl_part { /* a sub-buffer */
    int64_t offset, bytes;
    cl_mem mem;
} cl_part;

typedef struct cl_buffer {
    cl_mem mem;
    cl_part *parts; /* [n] */
    size_t n, cap;
} cl_buffer;

typedef struct cl_queue_state {
    cl_command_queue queue;
    cl_event *events; /* [n] of commands first, first + 1, ... */
    size_t n, cap;
    uint64_t first; /* serial of events[0] */
} cl_queue_state;

typedef struct cl_entry {
    char *name;
    cl_kernel kernel;
} cl_entry;

typedef struct cl_program_state {
    cl_program program;
    cl_entry *entries; /* [n] */
    size_t n, cap;
} cl_program_state;

static cl_state *state_of(const ot_device *dev) { return dev->api; }

/* What an OpenCL call answered, as a typed error. */
static ot_status failed(ot_device *dev, ot_device_error *e, const char *what, cl_int code)
{
    char buf[32];
    if (code == CL_OUT_OF_HOST_MEMORY) return dev_fail_host_memory(e);
    if (code == CL_DEVICE_NOT_AVAILABLE) {
        dev->lost = true;
        return dev_fail(e, OT_DEV_LOST, "OpenCL: %s: '%s' was lost", what, dev->facts.name);
    }
    return dev_fail(e, OT_DEV_FAILED, "OpenCL: %s: %s", what, opencl_error(code, buf));
}

/* Room for one more; false when memory ran out. */
static bool grow(void **items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) return true;
    size_t want = *cap ? *cap * 2 : 8;
    void *more = realloc(*items, want * size);
    if (!more) return false;
    *items = more;
    *cap = want;
    return true;
}

/* ---- opening ---- */

static ot_status open_state(ot_device *dev, cl_state *x, uint32_t number, ot_device_error *e)
{
    cl_device_id ids[OPENCL_DEVICES_MAX];
    ot_diag d = {0};
    cl_int code = CL_SUCCESS;
    if (opencl_load(&d, &x->cl) != OT_OK) return dev_fail(e, OT_DEV_NOT_HERE, "%.400s", d.message);
    uint32_t n = opencl_find_devices(&x->cl, ids);
    if (n == 0)
        return dev_fail(e, OT_DEV_NOT_HERE,
                        "no OpenCL device here (Debian: pocl-opencl-icd makes the CPU one)");
    if (number >= n)
        return dev_fail(e, OT_DEV_NOT_HERE, "no OpenCL device %u: there %s %u, from 0", number,
                        n == 1 ? "is" : "are", n);
    x->id = ids[number];
    opencl_ask(&x->cl, x->id, number, &dev->facts);
    x->context = x->cl.clCreateContext(NULL, 1, &x->id, NULL, NULL, &code);
    if (!x->context) return failed(dev, e, "no context", code);
    x->maps = x->cl.clCreateCommandQueue(x->context, x->id, 0, &code);
    return x->maps ? OT_OK : failed(dev, e, "no queue", code);
}

static ot_status open_device(ot_device *dev, uint32_t number, ot_device_error *e)
{
    dev->api = calloc(1, sizeof(cl_state));
    return dev->api ? open_state(dev, dev->api, number, e) : dev_fail_host_memory(e);
}

static void close_device(ot_device *dev)
{
    cl_state *x = state_of(dev);
    if (x && x->maps) x->cl.clReleaseCommandQueue(x->maps);
    if (x && x->context) x->cl.clReleaseContext(x->context);
    free(x);
}

/* ---- buffers ---- */

static cl_mem_flags flags_of(const dev_buffer *b)
{
    bool reads = b->access & OT_DEV_KERNEL_READS, writes = b->access & OT_DEV_KERNEL_WRITES;
    bool host_reads = b->access & OT_DEV_HOST_READS, host_writes = b->access & OT_DEV_HOST_WRITES;
    cl_mem_flags f = reads == writes ? CL_MEM_READ_WRITE
                     : reads         ? CL_MEM_READ_ONLY
                                     : CL_MEM_WRITE_ONLY;
    if (!host_reads && !host_writes) f |= CL_MEM_HOST_NO_ACCESS;
    if (host_reads && !host_writes) f |= CL_MEM_HOST_READ_ONLY;
    if (!host_reads && host_writes) f |= CL_MEM_HOST_WRITE_ONLY;
    if (b->host) return f | CL_MEM_USE_HOST_PTR;
    return b->kind == OT_DEV_MEM_HOST || b->kind == OT_DEV_MEM_UNIFIED ? f | CL_MEM_ALLOC_HOST_PTR
                                                                       : f;
}

static ot_status buffer_new(ot_device *dev, dev_buffer *b, ot_device_error *e)
{
    cl_state *x = state_of(dev);
    cl_int code = CL_SUCCESS;
    cl_buffer *m = calloc(1, sizeof *m);
    if (!m) return dev_fail_host_memory(e);
    m->mem = x->cl.clCreateBuffer(x->context, flags_of(b), (size_t)b->bytes, b->host, &code);
    if (!m->mem) {
        char what[80];
        free(m);
        snprintf(what, sizeof what, "buffer '%s'", b->name);
        bool full = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                    code == CL_INVALID_BUFFER_SIZE;
        return full ? dev_fail_full(dev, e, what, b->bytes) : failed(dev, e, what, code);
    }
    b->api = m;
    return OT_OK;
}

static void buffer_free(ot_device *dev, dev_buffer *b)
{
    cl_state *x = state_of(dev);
    cl_buffer *m = b->api;
    for (size_t k = 0; k < m->n; k++) x->cl.clReleaseMemObject(m->parts[k].mem);
    x->cl.clReleaseMemObject(m->mem);
    free(m->parts);
    free(m);
}

static ot_status map_buffer(ot_device *dev, dev_buffer *b, ot_device_error *e)
{
    const cl_state *x = state_of(dev);
    cl_int code = CL_SUCCESS;
    cl_map_flags flags = (b->access & OT_DEV_HOST_READS ? CL_MAP_READ : 0) |
                         (b->access & OT_DEV_HOST_WRITES ? CL_MAP_WRITE : 0);
    b->mapped = x->cl.clEnqueueMapBuffer(x->maps, ((cl_buffer *)b->api)->mem, CL_TRUE, flags, 0,
                                         (size_t)b->bytes, 0, NULL, NULL, &code);
    return b->mapped ? OT_OK : failed(dev, e, "a buffer cannot be mapped", code);
}

static void unmap_buffer(ot_device *dev, dev_buffer *b)
{
    const cl_state *x = state_of(dev);
    if (x->cl.clEnqueueUnmapMemObject(x->maps, ((cl_buffer *)b->api)->mem, b->mapped, 0, NULL,
                                      NULL) == CL_SUCCESS)
        x->cl.clFinish(x->maps);
    b->mapped = NULL;
}

/* A map is in step with the device when it begins and ends only; memory of ALLOC_HOST_PTR comes
 * back to where it was. */
static ot_status sync_buffer(ot_device *dev, dev_buffer *b, int64_t offset, int64_t bytes,
                             bool to_device, ot_device_error *e)
{
    void *before = b->mapped;
    (void)offset;
    (void)bytes;
    (void)to_device;
    unmap_buffer(dev, b);
    OT_TRY(map_buffer(dev, b, e));
    return b->mapped == before ? OT_OK
                               : dev_fail(e, OT_DEV_UNSUPPORTED,
                                          "buffer '%s': its map moved: close and open it", b->name);
}

/* The buffer itself, or the sub-buffer of the part. */
static ot_status mem_of(ot_device *dev, const dev_part *p, ot_device_error *e, cl_mem *out)
{
    cl_state *x = state_of(dev);
    cl_buffer *m = p->buffer->api;
    cl_int code = CL_SUCCESS;
    *out = m->mem;
    if (p->offset == 0) return OT_OK; /* kernels do not look at the length */
    for (size_t k = 0; k < m->n; k++) {
        if (m->parts[k].offset != p->offset || m->parts[k].bytes != p->bytes) continue;
        *out = m->parts[k].mem;
        return OT_OK;
    }
    if (!grow((void **)&m->parts, m->n, &m->cap, sizeof *m->parts)) return dev_fail_host_memory(e);
    cl_buffer_region region = {(size_t)p->offset, (size_t)p->bytes};
    cl_mem sub = x->cl.clCreateSubBuffer(m->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    if (!sub) return failed(dev, e, "no sub-buffer", code);
    m->parts[m->n++] = (cl_part){p->offset, p->bytes, sub};
    *out = sub;
    return OT_OK;
}

/* ---- queues ---- */

static ot_status queue_new(ot_device *dev, dev_queue *q, ot_device_error *e)
{
    cl_state *x = state_of(dev);
    cl_int code = CL_SUCCESS;
    cl_queue_state *c = calloc(1, sizeof *c);
    if (!c) return dev_fail_host_memory(e);
    c->first = 1;
    c->queue = x->cl.clCreateCommandQueue(x->context, x->id, CL_QUEUE_PROFILING_ENABLE, &code);
    if (!c->queue) {
        free(c);
        return failed(dev, e, "no queue", code);
    }
    q->api = c;
    return OT_OK;
}

static void queue_free(ot_device *dev, dev_queue *q)
{
    cl_state *x = state_of(dev);
    cl_queue_state *c = q->api;
    x->cl.clFinish(c->queue);
    for (size_t k = 0; k < c->n; k++) x->cl.clReleaseEvent(c->events[k]);
    x->cl.clReleaseCommandQueue(c->queue);
    free(c->events);
    free(c);
}

/* Of a command that is not retired. */
static cl_event event_of(const dev_queue *q, uint64_t serial)
{
    const cl_queue_state *c = q->api;
    return c->events[serial - c->first];
}

static ot_status flush(ot_device *dev, dev_queue *q, ot_device_error *e)
{
    cl_int code = state_of(dev)->cl.clFlush(((cl_queue_state *)q->api)->queue);
    return code == CL_SUCCESS ? OT_OK : failed(dev, e, "a queue cannot be flushed", code);
}

static double seconds(const opencl_api *cl, cl_event ev, cl_profiling_info what)
{
    cl_ulong t = 0;
    cl->clGetEventProfilingInfo(ev, what, sizeof t, &t, NULL);
    return (double)t * 1e-9;
}

static ot_status poll_queue(ot_device *dev, dev_queue *q, ot_device_error *e)
{
    const opencl_api *cl = &state_of(dev)->cl;
    cl_queue_state *c = q->api;
    size_t k = 0;
    for (; k < c->n; k++) {
        cl_int status = CL_QUEUED;
        cl_int code = cl->clGetEventInfo(c->events[k], CL_EVENT_COMMAND_EXECUTION_STATUS,
                                         sizeof status, &status, NULL);
        if (code != CL_SUCCESS) return failed(dev, e, "an event cannot be read", code);
        if (status > CL_COMPLETE) break;
        dev_retire(dev, q, c->first + k, seconds(cl, c->events[k], CL_PROFILING_COMMAND_START),
                   seconds(cl, c->events[k], CL_PROFILING_COMMAND_END), status == CL_COMPLETE);
        cl->clReleaseEvent(c->events[k]);
    }
    memmove(c->events, c->events + k, (c->n - k) * sizeof *c->events);
    c->n -= k;
    c->first += k;
    return OT_OK;
}

static ot_status wait_for(ot_device *dev, dev_queue *q, uint64_t serial, ot_device_error *e)
{
    const opencl_api *cl = &state_of(dev)->cl;
    cl_event ev = NULL;
    dev_lock(dev);
    if (serial > q->done) {
        ev = event_of(q, serial);
        cl->clRetainEvent(ev);
    }
    dev_unlock(dev);
    if (!ev) return OT_OK;
    cl_int code = cl->clWaitForEvents(1, &ev); /* flushes */
    cl->clReleaseEvent(ev);
    /* poll sees which failed */
    bool waited = code == CL_SUCCESS || code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return waited ? OT_OK : failed(dev, e, "an event cannot be waited for", code);
}

/* ---- commands ---- */

static ot_status kernel_of(ot_device *dev, dev_program *p, const char *entry, ot_device_error *e,
                           cl_kernel *out)
{
    cl_program_state *s = p->api;
    cl_int code = CL_SUCCESS;
    for (size_t k = 0; k < s->n; k++) {
        *out = s->entries[k].kernel;
        if (strcmp(s->entries[k].name, entry) == 0) return OT_OK;
    }
    if (!grow((void **)&s->entries, s->n, &s->cap, sizeof *s->entries))
        return dev_fail_host_memory(e);
    char *name = strdup(entry);
    if (!name) return dev_fail_host_memory(e);
    *out = state_of(dev)->cl.clCreateKernel(s->program, entry, &code);
    if (!*out) {
        free(name);
        return code == CL_INVALID_KERNEL_NAME
                   ? dev_fail(e, OT_DEV_INVALID_OBJECT, "program '%s' has no kernel '%s'", p->name,
                              entry)
                   : failed(dev, e, "no kernel", code);
    }
    s->entries[s->n++] = (cl_entry){name, *out};
    return OT_OK;
}

static ot_status set_args(ot_device *dev, const dev_command *c, cl_kernel kernel,
                          ot_device_error *e)
{
    const opencl_api *cl = &state_of(dev)->cl;
    for (uint32_t k = 0; k < c->launch->n_args; k++) {
        const ot_dev_arg *a = &c->launch->args[k];
        cl_int code = CL_SUCCESS;
        cl_mem mem;
        switch (a->kind) {
        case OT_DEV_ARG_SLICE:
            OT_TRY(mem_of(dev, &c->parts[k], e, &mem));
            code = cl->clSetKernelArg(kernel, k, sizeof mem, &mem);
            break;
        case OT_DEV_ARG_VALUE: code = cl->clSetKernelArg(kernel, k, a->bytes, &a->value); break;
        case OT_DEV_ARG_SHARED: code = cl->clSetKernelArg(kernel, k, (size_t)a->value, NULL); break;
        }
        char what[120];
        snprintf(what, sizeof what, "kernel '%.60s': argument %u", c->launch->entry, k);
        if (code != CL_SUCCESS) return failed(dev, e, what, code);
    }
    return OT_OK;
}

static ot_status launch(ot_device *dev, cl_command_queue queue, const dev_command *c,
                        const cl_event *waits, cl_event *ev, ot_device_error *e)
{
    const ot_dev_launch *l = c->launch;
    cl_kernel kernel = NULL;
    size_t all[3], items[3];
    OT_TRY(kernel_of(dev, c->program, l->entry, e, &kernel));
    OT_TRY(set_args(dev, c, kernel, e));
    for (uint32_t k = 0; k < 3; k++) {
        items[k] = l->items[k];
        all[k] = (size_t)l->groups[k] * l->items[k];
    }
    cl_int code = state_of(dev)->cl.clEnqueueNDRangeKernel(
        queue, kernel, 3, NULL, all, items, c->n_waits, c->n_waits ? waits : NULL, ev);
    char what[120];
    snprintf(what, sizeof what, "kernel '%.80s' cannot be run", l->entry);
    return code == CL_SUCCESS ? OT_OK : failed(dev, e, what, code);
}

static ot_status move(ot_device *dev, cl_command_queue queue, const dev_command *c,
                      const cl_event *waits, cl_event *ev, ot_device_error *e)
{
    const opencl_api *cl = &state_of(dev)->cl;
    const dev_part *p = c->to.buffer ? &c->to : &c->from;
    cl_mem mem = ((cl_buffer *)p->buffer->api)->mem;
    size_t at = (size_t)p->offset, n = (size_t)p->bytes;
    cl_uint n_waits = c->n_waits;
    const cl_event *w = n_waits ? waits : NULL;
    cl_int code = CL_SUCCESS;
    switch (c->verb) {
    case DEV_UPLOAD:
        code = cl->clEnqueueWriteBuffer(queue, mem, CL_FALSE, at, n, c->source, n_waits, w, ev);
        break;
    case DEV_DOWNLOAD:
        code = cl->clEnqueueReadBuffer(queue, mem, CL_FALSE, at, n, c->sink, n_waits, w, ev);
        break;
    case DEV_FILL:
        code = cl->clEnqueueFillBuffer(queue, mem, &c->pattern, 4, at, n, n_waits, w, ev);
        break;
    default:
        code = cl->clEnqueueCopyBuffer(queue, ((cl_buffer *)c->from.buffer->api)->mem, mem,
                                       (size_t)c->from.offset, at, n, n_waits, w, ev);
    }
    char what[100];
    snprintf(what, sizeof what, "a transfer of buffer '%s'", p->buffer->name);
    return code == CL_SUCCESS ? OT_OK : failed(dev, e, what, code);
}

static ot_status submit(ot_device *dev, dev_queue *q, const dev_command *c, ot_device_error *e)
{
    cl_queue_state *s = q->api;
    cl_event waits[DEV_QUEUES_MOST], ev = NULL;
    if (!grow((void **)&s->events, s->n, &s->cap, sizeof *s->events))
        return dev_fail_host_memory(e);
    for (uint32_t k = 0; k < c->n_waits; k++) {
        waits[k] = event_of(c->waits[k].queue, c->waits[k].serial);
        OT_TRY(flush(dev, c->waits[k].queue, e)); /* else it might never come */
    }
    OT_TRY(c->verb == DEV_LAUNCH ? launch(dev, s->queue, c, waits, &ev, e)
                                 : move(dev, s->queue, c, waits, &ev, e));
    s->events[s->n++] = ev;
    return OT_OK;
}

/* ---- programs ---- */

/* The compiler's words. */
static ot_status build_failed(ot_device *dev, cl_program program, const char *name, cl_int code,
                              ot_device_error *e)
{
    const cl_state *x = state_of(dev);
    char *log = NULL, buf[32];
    size_t n = 0;
    x->cl.clGetProgramBuildInfo(program, x->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &n);
    if (n > 0 && (log = calloc(1, n + 1)) != NULL)
        x->cl.clGetProgramBuildInfo(program, x->id, CL_PROGRAM_BUILD_LOG, n, log, NULL);
    ot_status s = dev_fail(e, OT_DEV_COMPILE, "program '%s': the device's compiler: %s: %s", name,
                           opencl_error(code, buf), log ? log : "");
    free(log);
    return s;
}

static ot_status program_new(ot_device *dev, dev_program *p, const ot_dev_source *s,
                             ot_device_error *e)
{
    const cl_state *x = state_of(dev);
    cl_int code = CL_SUCCESS, made = CL_SUCCESS;
    cl_program_state *state = calloc(1, sizeof *state);
    if (!state) return dev_fail_host_memory(e);
    state->program = s->language == OT_DEV_BINARY
                         ? x->cl.clCreateProgramWithBinary(x->context, 1, &x->id, &s->n,
                                                           &(const unsigned char *){s->text}, &made,
                                                           &code)
                         : x->cl.clCreateProgramWithSource(x->context, 1, &(const char *){s->text},
                                                           &s->n, &code);
    ot_status st = OT_OK;
    if (!state->program) {
        st = code == CL_INVALID_BINARY
                 ? dev_fail(e, OT_DEV_COMPILE, "program '%s': no binary of this device", p->name)
                 : failed(dev, e, "no program", code);
    } else {
        code = x->cl.clBuildProgram(state->program, 1, &x->id, s->options ? s->options : "", NULL,
                                    NULL);
        if (code != CL_SUCCESS) {
            st = build_failed(dev, state->program, p->name, code, e);
            x->cl.clReleaseProgram(state->program);
        }
    }
    if (st == OT_OK)
        p->api = state;
    else
        free(state);
    return st;
}

static void program_free(ot_device *dev, dev_program *p)
{
    const opencl_api *cl = &state_of(dev)->cl;
    cl_program_state *s = p->api;
    for (size_t k = 0; k < s->n; k++) {
        cl->clReleaseKernel(s->entries[k].kernel);
        free(s->entries[k].name);
    }
    cl->clReleaseProgram(s->program);
    free(s->entries);
    free(s);
}

static ot_status program_binary(ot_device *dev, dev_program *p, ot_arena *a, ot_device_error *e,
                                void **data, size_t *n)
{
    const opencl_api *cl = &state_of(dev)->cl;
    cl_program program = ((cl_program_state *)p->api)->program;
    cl_int code = cl->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *n, n, NULL);
    if (code != CL_SUCCESS || *n == 0)
        return dev_fail(e, OT_DEV_UNSUPPORTED, "program '%s': the device gives no binary", p->name);
    *data = ot_alloc(a, *n);
    if (!*data) return dev_fail_host_memory(e);
    code = cl->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof *data, data, NULL);
    return code == CL_SUCCESS ? OT_OK : failed(dev, e, "a program's binary", code);
}

const dev_driver dev_opencl = {.api = OT_DEV_OPENCL,
                               .list = opencl_list,
                               .open = open_device,
                               .close = close_device,
                               .buffer_new = buffer_new,
                               .buffer_free = buffer_free,
                               .map = map_buffer,
                               .unmap = unmap_buffer,
                               .sync = sync_buffer,
                               .queue_new = queue_new,
                               .queue_free = queue_free,
                               .submit = submit,
                               .flush = flush,
                               .poll = poll_queue,
                               .wait = wait_for,
                               .program_new = program_new,
                               .program_free = program_free,
                               .program_binary = program_binary};

#endif
