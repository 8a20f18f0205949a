/* Device programs of run-kernel: which device, how many items, the file of the source. */
#include "kernel_device.h"

#include "device/device.h"
#include "onnx/export/out_file.h"

bool ot_kernel_device_wanted(const ot_kernel_device *k)
{
    return k->device && strcmp(k->device, "cpu") != 0;
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

typedef struct work {
    const ot_kernel_device *want;
    ot_kernel_device_job *j;
    ot_diag *d;
    ot_kd_device *dev; /* NULL: none */
    ot_kg_options options;
} work;

/* The program in the language that the source's name asks for, else in the device's. */
static ot_status emit(work *w)
{
    ot_kg_code *c = NULL;
    ot_kg_options o = w->options;
    if (!w->want->source) return OT_OK;
    if (ends_in(w->want->source, ".cu")) {
        o = (ot_kg_options){
            .language = OT_KG_CUDA, .items = w->want->items, .local_bytes = OT_KG_LOCAL_DEFAULT};
        if (o.items == 0) o.items = OT_KG_ITEMS_DEFAULT;
    }
    OT_TRY(ot_kg_make(w->j->kernel, w->j->path, w->j->plan, &o, w->d, &c));
    ot_status s = ot_out_write(w->want->source, c->text, c->n, w->d);
    ot_kg_free(c);
    return s;
}

static ot_status resolve(work *w)
{
    ot_kd_facts *facts = &w->j->facts;
    ot_kg_options *o = &w->options;
    *o = (ot_kg_options){
        .language = OT_KG_OPENCL, .items = w->want->items, .local_bytes = OT_KG_LOCAL_DEFAULT};
    if (w->dev) {
        *facts = *ot_kd_about(w->dev);
        o->local_bytes = facts->local_bytes;
        if (o->items == 0) o->items = facts->is_cpu ? 1 : OT_KG_ITEMS_DEFAULT;
        if (o->items > facts->items_most)
            return ot_fail(w->d, OT_E_USAGE, "'%s' has work-groups of at most %u items",
                           facts->name, facts->items_most);
    }
    if (o->items == 0) o->items = OT_KG_ITEMS_DEFAULT;
    return OT_OK;
}

static ot_status all(work *w)
{
    ot_kernel_device_job *j = w->j;
    ot_kg_code *c = NULL;
    ot_dev_api api;
    uint32_t number;
    if (ot_kernel_device_wanted(w->want)) {
        if (!ot_device_parse(w->want->device, &api, &number))
            OT_BUG("a device that the options let pass");
        if (api != OT_DEV_OPENCL)
            return ot_fail(w->d, OT_E_USAGE,
                           "kernels run on OpenCL devices: --device opencl, not '%.100s'",
                           w->want->device);
        OT_TRY(ot_kd_open(number, w->d, &w->dev));
    }
    OT_TRY(resolve(w));
    OT_TRY(emit(w));
    if (!w->dev) return OT_OK;
    ot_kd_request r = {.inputs = j->inputs, .n_inputs = j->n_inputs, .repeat = w->want->repeat};
    OT_TRY(ot_kg_make(w->j->kernel, w->j->path, w->j->plan, &w->options, w->d, &c));
    ot_status s = ot_kd_run(w->dev, j->kernel, j->path, c, &r, w->d, &j->result);
    ot_kg_free(c);
    return s;
}

ot_status ot_kernel_device_run(const ot_kernel_device *want, ot_kernel_device_job *j, ot_diag *d)
{
    work w = {.want = want, .j = j, .d = d};
    j->result = NULL;
    ot_status s = all(&w);
    j->items = w.options.items;
    ot_kd_close(w.dev);
    return s;
}
