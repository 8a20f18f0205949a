/* A kernel's program on a device: build, buffers, launch, results.
 *
 *   params        a buffer each: the input, or zeros
 *   global arena  slow_bytes for each group, all poison
 *   launch        as many groups as have something to do, but not more than keep the device busy
 */
#include "kernel_device_run.h"
#include "device/device.h"

#define POISON          0xcb
#define GROUPS_FOR_UNIT 8                  /* work-groups for each compute unit */
#define ARENA_MOST      (INT64_C(1) << 30) /* bytes of all groups' parts of the global arena */

struct ot_kd_device {
    ot_device *dev;
    ot_dev_queue queue;
    ot_kd_facts facts;
};

static ot_status told(ot_status s, const ot_device_error *e, ot_diag *d)
{
    return s == OT_OK ? OT_OK : ot_device_tell(e, d);
}

/* ---- the device ---- */

static ot_status open_device(ot_kd_device *dev, uint32_t number, ot_diag *d)
{
    ot_device_error e;
    OT_TRY(told(ot_device_open(OT_DEV_OPENCL, number, NULL, &e, &dev->dev), &e, d));
    const ot_device_facts *f = ot_device_about(dev->dev);
    snprintf(dev->facts.name, sizeof dev->facts.name, "%s", f->name);
    dev->facts.local_bytes = f->shared_bytes;
    dev->facts.items_most = f->items_most > OT_KG_ITEMS_MAX ? OT_KG_ITEMS_MAX : f->items_most;
    dev->facts.is_cpu = f->is_cpu;
    dev->facts.has_f64 = f->has_f64;
    return told(ot_dev_queue_new(dev->dev, &e, &dev->queue), &e, d);
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
    ot_device_close(dev->dev); /* its queue with it */
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
    ot_dev_program program;
    ot_dev_buffer *buffers; /* [n_params + 1] the last is the arena */
    ot_dev_arg *args;       /* [n_params + 1] these, whole */
    ot_kd_result *x;
} launch;

static ot_status build(launch *l)
{
    const ot_dev_source text = {.name = l->path,
                                .language = OT_DEV_NATIVE,
                                .text = l->code->text,
                                .n = l->code->n,
                                .options = "-w"};
    ot_device_error e;
    if (l->code->needs_f64 && !l->dev->facts.has_f64)
        return ot_fail(l->d, OT_E_USAGE, "%s: the kernel computes in f64, which '%s' does not have",
                       l->path, l->dev->facts.name);
    return told(ot_dev_program_new(l->dev->dev, &text, &e, &l->program), &e, l->d);
}

static const ot_tk_value *param(const launch *l, uint32_t k)
{
    return &l->k->values[l->code->params[k]];
}

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
    if (!*out && !x->empty && !is_written(l, l->code->params[k]))
        return fail_param(l, x, "has no input [input-missing]");
    if (!*out) return OT_OK;
    if (x->empty) return fail_param(l, x, "is made by the kernel: it takes no input [input-empty]");
    bool same = strcmp((*out)->dtype, x->dtype) == 0 && (*out)->rank == x->rank;
    for (uint32_t d = 0; same && d < x->rank; d++) same = (*out)->dims[d] == x->dims[d];
    return same ? OT_OK
                : fail_param(l, x, "has another shape or element type than its input [input-type]");
}

static ot_status check_names(const launch *l)
{
    for (uint32_t i = 0; i < l->r->n_inputs; i++) {
        uint32_t k = 0;
        while (k < l->code->n_params && strcmp(param(l, k)->name, l->r->inputs[i].name) != 0) k++;
        if (k == l->code->n_params)
            return ot_fail(l->d, OT_E_USAGE, "%s: the kernel has no param '%.200s'", l->path,
                           l->r->inputs[i].name);
    }
    return OT_OK;
}

/* Buffer k, with contents (or so many bytes of one value). */
static ot_status make_buffer(launch *l, uint32_t k, const char *name, int64_t bytes,
                             const void *data, int value)
{
    const ot_dev_buffer_options o = {.name = name, .bytes = bytes, .kind = OT_DEV_MEM_DEVICE};
    ot_device *dev = l->dev->dev;
    ot_device_error e;
    void *filled = NULL;
    OT_TRY(told(ot_dev_buffer_new(dev, &o, &e, &l->buffers[k]), &e, l->d));
    const ot_dev_slice whole = ot_dev_whole(dev, l->buffers[k]);
    l->args[k] = ot_dev_writes(whole);
    if (!data) {
        filled = malloc((size_t)bytes);
        if (!filled) return ot_fail_nomem(l->d);
        memset(filled, value, (size_t)bytes);
    }
    ot_status s = ot_dev_upload(dev, l->dev->queue, whole, data ? data : filled, NULL, &e, NULL);
    if (s == OT_OK) s = ot_dev_finish(dev, l->dev->queue, &e);
    free(filled);
    return told(s, &e, l->d);
}

static ot_status make_buffers(launch *l)
{
    const ot_kg_code *c = l->code;
    l->buffers = OT_NEW_N(l->x->arena, ot_dev_buffer, (size_t)c->n_params + 1);
    l->args = OT_NEW_N(l->x->arena, ot_dev_arg, (size_t)c->n_params + 1);
    if (!l->buffers || !l->args) return ot_fail_nomem(l->d);
    OT_TRY(check_names(l));
    for (uint32_t k = 0; k < c->n_params; k++) {
        const ot_krun_array *in;
        OT_TRY(input_of(l, k, &in));
        OT_TRY(make_buffer(l, k, param(l, k)->name, param(l, k)->bytes, in ? in->data : NULL, 0));
    }
    int64_t groups = ot_min(c->n_groups,
                            (int64_t)ot_device_about(l->dev->dev)->units * GROUPS_FOR_UNIT);
    if (c->slow_bytes > 0) groups = ot_max(1, ot_min(groups, ARENA_MOST / c->slow_bytes));
    l->x->n_groups = groups;
    return c->slow_bytes > 0
               ? make_buffer(l, c->n_params, "global arena", groups * c->slow_bytes, NULL, POISON)
               : OT_OK;
}

static ot_status launch_once(launch *l, double *seconds)
{
    ot_device *dev = l->dev->dev;
    ot_device_error e;
    ot_dev_event done;
    double start, end;
    const ot_dev_launch what = {.program = l->program,
                                .entry = l->code->entry,
                                .args = l->args,
                                .n_args = l->code->n_params + (l->code->slow_bytes > 0),
                                .groups = {(uint32_t)l->x->n_groups},
                                .items = {l->code->items}};
    OT_TRY(told(ot_dev_run(dev, l->dev->queue, &what, NULL, &e, &done), &e, l->d));
    OT_TRY(told(ot_dev_wait(dev, done, &e), &e, l->d));
    *seconds = ot_dev_times(dev, done, &start, &end) ? end - start : 0;
    return OT_OK;
}

static ot_status read_outputs(launch *l)
{
    ot_kd_result *x = l->x;
    ot_device *dev = l->dev->dev;
    ot_device_error e;
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
        OT_TRY(told(ot_dev_download(dev, l->dev->queue, data, l->args[k].slice, NULL, &e, NULL), &e,
                    l->d));
    }
    return told(ot_dev_finish(dev, l->dev->queue, &e), &e, l->d);
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
    ot_device *dev = l->dev->dev;
    (void)!ot_dev_finish(dev, l->dev->queue, NULL); /* what was asked before a failure */
    for (uint32_t k = 0; l->buffers && k <= l->code->n_params; k++)
        if (l->buffers[k].id) ot_dev_buffer_free(dev, l->buffers[k], NULL);
    if (l->program.id) ot_dev_program_free(dev, l->program, NULL);
}

ot_status ot_kd_run(ot_kd_device *dev, const ot_kernel *k, const char *path, const ot_kg_code *code,
                    const ot_kd_request *r, ot_diag *d, ot_kd_result **out)
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
