/* Queues of CUDA: a stream; each command stands between two events, which are used again once it
 * is retired. */
#include "cuda_api.h"

typedef struct cu_slot {
    uint64_t serial; /* 0: free */
    cu_handle start, end;
} cu_slot;

typedef struct cu_queue_state {
    cu_handle stream, origin; /* origin: times are counted from this event */
    double began;             /* the host's clock at it */
    cu_slot *slots;           /* [n] */
    uint32_t n, cap;
} cu_queue_state;

static const cuda_api *enter(ot_device *dev)
{
    const cu_state *x = cu_state_of(dev);
    x->cu.cuCtxSetCurrent(x->context);
    return &x->cu;
}

ot_status cu_queue_new(ot_device *dev, dev_queue *q, ot_device_error *e)
{
    const cuda_api *cu = enter(dev);
    cu_queue_state *s = calloc(1, sizeof *s);
    if (!s) return dev_fail_host_memory(e);
    cu_result code = cu->cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING);
    if (code == 0) code = cu->cuEventCreate(&s->origin, 0);
    if (code == 0) code = cu->cuEventRecord(s->origin, s->stream);
    if (code == 0) code = cu->cuEventSynchronize(s->origin); /* the host's clock beside it */
    s->began = ot_now();
    q->api = s;
    if (code == 0) return OT_OK;
    cu_queue_free(dev, q);
    return cu_failed(dev, e, "no queue", code);
}

void cu_queue_free(ot_device *dev, dev_queue *q)
{
    const cuda_api *cu = enter(dev);
    cu_queue_state *s = q->api;
    if (s->stream) cu->cuStreamSynchronize(s->stream);
    for (uint32_t k = 0; k < s->n; k++) {
        cu->cuEventDestroy_v2(s->slots[k].start);
        cu->cuEventDestroy_v2(s->slots[k].end);
    }
    if (s->origin) cu->cuEventDestroy_v2(s->origin);
    if (s->stream) cu->cuStreamDestroy_v2(s->stream);
    free(s->slots);
    free(s);
}

ot_status cu_flush(ot_device *dev, dev_queue *q, ot_device_error *e)
{
    (void)dev;
    (void)q;
    (void)e;
    return OT_OK; /* streams begin by themselves */
}

/* The slot of a command; NULL: it is retired. */
static cu_slot *slot_of(const dev_queue *q, uint64_t serial)
{
    cu_queue_state *s = q->api;
    for (uint32_t k = 0; k < s->n; k++)
        if (s->slots[k].serial == serial) return &s->slots[k];
    return NULL;
}

ot_status cu_poll(ot_device *dev, dev_queue *q, ot_device_error *e)
{
    const cuda_api *cu = enter(dev);
    cu_queue_state *s = q->api;
    while (q->done < q->issued) {
        cu_slot *x = slot_of(q, q->done + 1);
        cu_result code = cu->cuEventQuery(x->end);
        float start = 0, took = 0;
        if (code == CU_NOT_READY) return OT_OK;
        if (code == 0) code = cu->cuEventElapsedTime(&start, s->origin, x->start);
        /* not from the origin: a difference of floats would lose what is short */
        if (code == 0) code = cu->cuEventElapsedTime(&took, x->start, x->end);
        const double began = s->began + (double)start * 1e-3;
        dev_retire(dev, q, x->serial, began, began + (double)took * 1e-3, code == 0);
        x->serial = 0;
        if (code != 0) return cu_failed(dev, e, "a command failed", code);
    }
    return OT_OK;
}

ot_status cu_wait(ot_device *dev, dev_queue *q, uint64_t serial, ot_device_error *e)
{
    const cuda_api *cu = enter(dev);
    dev_lock(dev);
    const cu_slot *x = slot_of(q, serial);
    cu_handle event = x ? x->end : NULL;
    dev_unlock(dev);
    /* recorded again at worst, for a later command of the queue */
    cu_result code = event ? cu->cuEventSynchronize(event) : 0;
    return code == 0 ? OT_OK : cu_failed(dev, e, "a command cannot be waited for", code);
}

/* ---- commands ---- */

static ot_status get_slot(ot_device *dev, cu_queue_state *s, ot_device_error *e, cu_slot **out)
{
    const cuda_api *cu = &cu_state_of(dev)->cu;
    for (uint32_t k = 0; k < s->n; k++) {
        *out = &s->slots[k];
        if ((*out)->serial == 0) return OT_OK;
    }
    if (s->n == s->cap) {
        uint32_t want = s->cap ? s->cap * 2 : 16;
        cu_slot *more = realloc(s->slots, want * sizeof *more);
        if (!more) return dev_fail_host_memory(e);
        s->slots = more;
        s->cap = want;
    }
    cu_slot made = {0};
    cu_result code = cu->cuEventCreate(&made.start, 0);
    if (code != 0) return cu_failed(dev, e, "no event", code);
    code = cu->cuEventCreate(&made.end, 0);
    if (code != 0) {
        cu->cuEventDestroy_v2(made.start);
        return cu_failed(dev, e, "no event", code);
    }
    *out = &s->slots[s->n++];
    **out = made;
    return OT_OK;
}

static cu_ptr at(const dev_part *p)
{
    return ((const cu_buffer *)p->buffer->api)->at + (cu_ptr)p->offset;
}

#define SHARED_UNASKED (48 << 10) /* bytes that a launch may have without further ado */

static ot_status launch(ot_device *dev, cu_handle stream, const dev_command *c, ot_device_error *e)
{
    const cuda_api *cu = &cu_state_of(dev)->cu;
    const ot_dev_launch *l = c->launch;
    cu_ptr pointers[OT_DEV_ARGS_MAX];
    void *params[OT_DEV_ARGS_MAX];
    uint64_t shared = 0;
    uint32_t n = 0;
    cu_handle function;
    cu_result code = cu->cuModuleGetFunction(&function, cu_module_of(c->program), l->entry);
    if (code == CU_NOT_FOUND)
        return dev_fail(e, OT_DEV_INVALID_OBJECT, "program '%s' has no kernel '%s'",
                        c->program->name, l->entry);
    if (code != 0) return cu_failed(dev, e, "no kernel", code);
    for (uint32_t k = 0; k < l->n_args; k++) {
        if (c->parts[k].buffer) {
            pointers[n] = at(&c->parts[k]);
            params[n] = &pointers[n];
            n++;
        } else if (l->args[k].kind == OT_DEV_ARG_VALUE) {
            params[n++] = (void *)&l->args[k].value;
        } else {
            shared += l->args[k].value; /* one extern __shared__ array, no argument */
        }
    }
    if (shared > SHARED_UNASKED) {
        code = cu->cuFuncSetAttribute(function, CU_FUNCTION_SHARED_BYTES, (int)shared);
        if (code != 0) return cu_failed(dev, e, "so much shared memory", code);
    }
    char what[120];
    snprintf(what, sizeof what, "kernel '%.80s' cannot be run", l->entry);
    code = cu->cuLaunchKernel(function, l->groups[0], l->groups[1], l->groups[2], l->items[0],
                              l->items[1], l->items[2], (unsigned)shared, stream, params, NULL);
    return code == 0 ? OT_OK : cu_failed(dev, e, what, code);
}

static ot_status run_command(ot_device *dev, cu_handle stream, const dev_command *c,
                             ot_device_error *e)
{
    const cuda_api *cu = &cu_state_of(dev)->cu;
    cu_result code = 0;
    switch (c->verb) {
    case DEV_UPLOAD:
        code = cu->cuMemcpyHtoDAsync_v2(at(&c->to), c->source, (size_t)c->to.bytes, stream);
        break;
    case DEV_DOWNLOAD:
        code = cu->cuMemcpyDtoHAsync_v2(c->sink, at(&c->from), (size_t)c->from.bytes, stream);
        break;
    case DEV_COPY:
        code = cu->cuMemcpyDtoDAsync_v2(at(&c->to), at(&c->from), (size_t)c->to.bytes, stream);
        break;
    case DEV_FILL:
        code = cu->cuMemsetD32Async(at(&c->to), c->pattern, (size_t)c->to.bytes / 4, stream);
        break;
    default: return launch(dev, stream, c, e);
    }
    return code == 0 ? OT_OK : cu_failed(dev, e, "a transfer", code);
}

ot_status cu_submit(ot_device *dev, dev_queue *q, const dev_command *c, ot_device_error *e)
{
    const cuda_api *cu = enter(dev);
    cu_queue_state *s = q->api;
    cu_slot *x = NULL;
    OT_TRY(get_slot(dev, s, e, &x));
    cu_result code = 0;
    for (uint32_t k = 0; k < c->n_waits && code == 0; k++) {
        const cu_slot *other = slot_of(c->waits[k].queue, c->waits[k].serial);
        if (other) code = cu->cuStreamWaitEvent(s->stream, other->end, 0);
    }
    if (code == 0) code = cu->cuEventRecord(x->start, s->stream);
    if (code != 0) return cu_failed(dev, e, "an event", code);
    OT_TRY(run_command(dev, s->stream, c, e));
    code = cu->cuEventRecord(x->end, s->stream);
    if (code != 0) return cu_failed(dev, e, "an event", code);
    x->serial = c->serial;
    return OT_OK;
}
