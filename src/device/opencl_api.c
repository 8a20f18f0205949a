/* OpenCL's loader, opened when a kernel is to run on a device: the program itself needs no such
 * library. */
#if __has_include(<CL/cl.h>)

#include "opencl_api.h"

#include <dlfcn.h>

ot_status opencl_load(ot_diag *d, opencl_api *out)
{
    static const char *const names[] = {
#define X(name) #name,
        OPENCL_FUNCTIONS(X)
#undef X
    };
    void *library = RTLD_DEFAULT, **functions = (void **)out;
    _Static_assert(sizeof *out == sizeof names / sizeof *names * sizeof(void *),
                   "a pointer for each name");
    /* it stays open: drivers have threads */
    if (!dlsym(RTLD_DEFAULT, names[0])) library = dlopen("libOpenCL.so.1", RTLD_NOW);
    if (!library && !dlsym(RTLD_DEFAULT, names[0]))
        return ot_fail(d, OT_E_USAGE,
                       "no OpenCL here: there is no libOpenCL.so.1 (Debian: ocl-icd-libopencl1)");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        functions[k] = dlsym(library, names[k]);
        if (!functions[k])
            return ot_fail(d, OT_E_USAGE, "no OpenCL here: the library lacks %s", names[k]);
    }
    return OT_OK;
}

const char *opencl_error(cl_int code, char buf[32])
{
    static const struct {
        cl_int code;
        const char *name;
    } names[] = {{CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"},
                 {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
                 {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
                 {CL_INVALID_BINARY, "CL_INVALID_BINARY"},
                 {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME"},
                 {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
                 {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE"},
                 {CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX"},
                 {CL_MISALIGNED_SUB_BUFFER_OFFSET, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
                 {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE"},
                 {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
                 {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
                 {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
                 {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
                 {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
                 {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k].code == code) return names[k].name;
    snprintf(buf, 32, "error %d", (int)code);
    return buf;
}

#endif
