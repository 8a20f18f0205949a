/* Devices: the list of all, opening, closing, and what was never freed. */
#include "driver.h"

#include "base/lock.h"

#include <stdatomic.h>

#if __has_include(<CL/cl.h>)
#define OPENCL &dev_opencl
#else
#define OPENCL NULL
#endif

#if __has_include(<vulkan/vulkan.h>)
#define VULKAN &dev_vulkan
#else
#define VULKAN NULL
#endif

const dev_driver *const dev_drivers[OT_DEV_APIS] = {
    [OT_DEV_OPENCL] = OPENCL, [OT_DEV_VULKAN] = VULKAN, [OT_DEV_CUDA] = &dev_cuda};

static const char *const API_NAMES[OT_DEV_APIS] = {"opencl", "vulkan", "cuda"};
/* Why one is not in dev_drivers. */
static const char *const NO_DRIVER[OT_DEV_APIS] = {
    "this program was built without OpenCL's headers (Debian: opencl-headers)",
    "this program was built without Vulkan's headers (Debian: libvulkan-dev)", ""};
static const char *const MEMORY_NAMES[OT_DEV_MEM_KINDS] = {"device", "host", "unified", "constant"};

const char *ot_dev_api_name(ot_dev_api api) { return API_NAMES[api]; }
const char *ot_dev_memory_name(ot_dev_memory kind) { return MEMORY_NAMES[kind]; }

ot_status ot_devices_list(ot_arena *a, ot_device_list **out)
{
    ot_device_list *l = OT_NEW(a, ot_device_list);
    *out = l;
    if (!l) return OT_E_NOMEM;
    for (uint32_t k = 0; k < OT_DEV_APIS; k++) {
        if (dev_drivers[k])
            OT_TRY(dev_drivers[k]->list(a, l));
        else
            snprintf(l->missing[k], sizeof l->missing[k], "%s", NO_DRIVER[k]);
        ot_make_shown(l->missing[k]); /* what the loader and drivers say may be in it */
    }
    return OT_OK;
}

bool ot_device_parse(const char *text, ot_dev_api *api, uint32_t *number)
{
    for (uint32_t k = 0; k < OT_DEV_APIS; k++) {
        size_t n = strlen(API_NAMES[k]);
        if (strncmp(text, API_NAMES[k], n) != 0) continue;
        *api = (ot_dev_api)k;
        *number = 0;
        if (!text[n]) return true;
        if (text[n] != ':' || !text[n + 1] || strlen(text + n + 1) > 4) return false;
        for (const char *c = text + n + 1; *c; c++) {
            if (*c < '0' || *c > '9') return false;
            *number = *number * 10 + (uint32_t)(*c - '0');
        }
        return true;
    }
    return false;
}

/* Handles of two devices differ until 4,095 have been opened. */
static uint32_t next_mark(void)
{
    static atomic_uint last;
    return (atomic_fetch_add(&last, 1) % 4095) + 1;
}

ot_status dev_open_with(const dev_driver *driver, uint32_t number, const ot_device_options *o,
                        ot_device_error *e, ot_device **out)
{
    ot_device *dev = calloc(1, sizeof *dev);
    *out = NULL;
    if (!dev || !ot_lock_new(&dev->lock)) {
        free(dev);
        return dev_fail_host_memory(e);
    }
    dev->driver = driver;
    dev->mark = next_mark();
    if (o) dev->options = *o;
    ot_status s = driver->open(dev, number, e);
    if (s != OT_OK) {
        ot_device_close(dev);
        return s;
    }
    dev->usage.budget = dev->options.budget > 0 ? dev->options.budget : dev->facts.memory_bytes;
    *out = dev;
    return OT_OK;
}

ot_status ot_device_open(ot_dev_api api, uint32_t number, const ot_device_options *o,
                         ot_device_error *e, ot_device **out)
{
    *out = NULL;
    if ((uint32_t)api >= OT_DEV_APIS) return dev_fail(e, OT_DEV_NOT_HERE, "no such API");
    if (!dev_drivers[api])
        return dev_fail(e, OT_DEV_NOT_HERE, "no %s here: %s", API_NAMES[api], NO_DRIVER[api]);
    return dev_open_with(dev_drivers[api], number, o, e, out);
}

static void free_all(ot_device *dev)
{
    for (uint32_t k = 0; k < dev->slots[DEV_QUEUE].n; k++) {
        dev_queue *q = dev->slots[DEV_QUEUE].records[k];
        if (q) ot_dev_queue_free(dev, (ot_dev_queue){q->id}, NULL);
    }
    for (uint32_t k = 0; k < dev->slots[DEV_PROGRAM].n; k++) {
        dev_program *p = dev->slots[DEV_PROGRAM].records[k];
        if (p) ot_dev_program_free(dev, (ot_dev_program){p->id}, NULL);
    }
    for (uint32_t k = 0; k < dev->slots[DEV_MAP].n; k++) {
        dev_map *m = dev->slots[DEV_MAP].records[k];
        if (m) m->buffer->n_maps--;
        free(m);
    }
    for (uint32_t k = 0; k < dev->slots[DEV_BUFFER].n; k++) {
        dev_buffer *b = dev->slots[DEV_BUFFER].records[k];
        if (b) ot_dev_buffer_free(dev, (ot_dev_buffer){b->id}, NULL);
    }
}

void ot_device_close(ot_device *dev)
{
    if (!dev) return;
    free_all(dev);
    dev->driver->close(dev);
    dev_profile_free(dev);
    for (uint32_t k = 0; k < DEV_KINDS; k++) dev_slots_free(&dev->slots[k]);
    pthread_mutex_destroy(&dev->lock);
    free(dev);
}

const ot_device_facts *ot_device_about(const ot_device *dev) { return &dev->facts; }

uint32_t ot_device_leaks(ot_device *dev, FILE *f)
{
    uint32_t n = 0;
    dev_lock(dev);
    for (uint32_t k = 0; k < dev->slots[DEV_BUFFER].n; k++) {
        const dev_buffer *b = dev->slots[DEV_BUFFER].records[k];
        if (!b) continue;
        n++;
        if (f)
            fprintf(f, "buffer '%s' of %lld bytes was never freed\n", b->name, (long long)b->bytes);
    }
    for (uint32_t k = 0; k < dev->slots[DEV_PROGRAM].n; k++) {
        const dev_program *p = dev->slots[DEV_PROGRAM].records[k];
        if (!p) continue;
        n++;
        if (f) fprintf(f, "program '%s' was never freed\n", p->name);
    }
    dev_unlock(dev);
    return n;
}

uint32_t ot_device_findings(ot_device *dev, const char **first)
{
    dev_lock(dev);
    uint32_t n = dev->n_findings;
    dev_unlock(dev);
    if (first) *first = dev->first_finding;
    return n;
}

ot_device_usage ot_device_use(ot_device *dev)
{
    dev_lock(dev);
    ot_device_usage u = dev->usage;
    dev_unlock(dev);
    return u;
}
