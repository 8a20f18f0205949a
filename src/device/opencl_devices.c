/* The OpenCL devices of this machine, and what they can do. */
#if __has_include(<CL/cl.h>)

#include "opencl_devices.h"

#define PLATFORMS_MAX 16

uint32_t opencl_find_devices(const opencl_api *cl, cl_device_id ids[OPENCL_DEVICES_MAX])
{
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint n_platforms = 0, n = 0, total = 0;
    if (cl->clGetPlatformIDs(PLATFORMS_MAX, platforms, &n_platforms) != CL_SUCCESS) return 0;
    for (cl_uint p = 0; p < n_platforms && p < PLATFORMS_MAX && total < OPENCL_DEVICES_MAX; p++) {
        if (cl->clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, OPENCL_DEVICES_MAX - total,
                               ids + total, &n) != CL_SUCCESS)
            continue;
        total += n < OPENCL_DEVICES_MAX - total ? n : OPENCL_DEVICES_MAX - total;
    }
    return total;
}

static int64_t ask_long(const opencl_api *cl, cl_device_id id, cl_device_info what)
{
    cl_ulong v = 0;
    return cl->clGetDeviceInfo(id, what, sizeof v, &v, NULL) == CL_SUCCESS && v < INT64_MAX
               ? (int64_t)v
               : 0;
}

static uint32_t ask_int(const opencl_api *cl, cl_device_id id, cl_device_info what)
{
    cl_uint v = 0;
    return cl->clGetDeviceInfo(id, what, sizeof v, &v, NULL) == CL_SUCCESS ? v : 0;
}

static void ask_text(const opencl_api *cl, cl_device_id id, cl_device_info what, char *to,
                     size_t size)
{
    char text[16384] = ""; /* as long as lists of extensions are */
    if (cl->clGetDeviceInfo(id, what, sizeof text - 1, text, NULL) != CL_SUCCESS) *text = '\0';
    snprintf(to, size, "%s", text);
}

void opencl_ask(const opencl_api *cl, cl_device_id id, uint32_t number, ot_device_facts *f)
{
    char extensions[16384];
    size_t items = 1;
    cl_device_type type = 0;
    *f = (ot_device_facts){.api = OT_DEV_OPENCL, .number = number};
    ask_text(cl, id, CL_DEVICE_NAME, f->name, sizeof f->name);
    ask_text(cl, id, CL_DEVICE_VERSION, f->version, sizeof f->version);
    ot_make_shown(f->name);
    ot_make_shown(f->version);
    ask_text(cl, id, CL_DEVICE_EXTENSIONS, extensions, sizeof extensions);
    cl->clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    cl->clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof items, &items, NULL);
    f->is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
    f->has_f64 = ask_long(cl, id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
    f->has_i64 = f->has_shorts = f->has_bytes = true;
    f->groups_most = INT32_MAX;
    f->slices_most = OT_DEV_ARGS_MAX;
    f->has_f16 = strstr(extensions, "cl_khr_fp16") != NULL;
    f->unified = ask_int(cl, id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    f->memory_bytes = ask_long(cl, id, CL_DEVICE_GLOBAL_MEM_SIZE);
    f->allocation_most = ask_long(cl, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    f->shared_bytes = ask_long(cl, id, CL_DEVICE_LOCAL_MEM_SIZE);
    f->constant_bytes = ask_long(cl, id, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE);
    f->alignment = ot_max(1, ask_int(cl, id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8);
    f->granule = 1;
    f->cache_line = ask_int(cl, id, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE);
    f->cache_bytes = ask_long(cl, id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    f->units = ask_int(cl, id, CL_DEVICE_MAX_COMPUTE_UNITS);
    f->vector_floats = ask_int(cl, id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    if (f->vector_floats == 0) f->vector_floats = 1;
    f->items_most = (uint32_t)items;
}

ot_status opencl_list(ot_arena *a, ot_device_list *l)
{
    opencl_api cl;
    cl_device_id ids[OPENCL_DEVICES_MAX];
    ot_diag d = {0};
    if (opencl_load(&d, &cl) != OT_OK) {
        snprintf(l->missing[OT_DEV_OPENCL], sizeof l->missing[0], "%.255s", d.message);
        return OT_OK;
    }
    uint32_t n = opencl_find_devices(&cl, ids);
    if (n == 0)
        snprintf(l->missing[OT_DEV_OPENCL], sizeof l->missing[0],
                 "no OpenCL device here (Debian: pocl-opencl-icd makes the CPU one)");
    ot_device_facts *all = OT_NEW_N(a, ot_device_facts, (size_t)l->n + n);
    if (!all) return OT_E_NOMEM;
    if (l->n) memcpy(all, l->devices, l->n * sizeof *all);
    for (uint32_t k = 0; k < n; k++) opencl_ask(&cl, ids[k], k, &all[l->n + k]);
    l->devices = all;
    l->n += n;
    return OT_OK;
}

#endif
