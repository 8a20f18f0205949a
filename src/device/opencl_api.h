/* The functions of OpenCL's loader, which is found when the program runs. For device/ and
 * tk/device/; only where there are headers. */
#ifndef OT_DEVICE_OPENCL_API_H
#define OT_DEVICE_OPENCL_API_H

#include "base/base.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#define OPENCL_FUNCTIONS(X)      \
    X(clGetPlatformIDs)          \
    X(clGetDeviceIDs)            \
    X(clGetDeviceInfo)           \
    X(clCreateContext)           \
    X(clReleaseContext)          \
    X(clCreateCommandQueue)      \
    X(clReleaseCommandQueue)     \
    X(clCreateProgramWithSource) \
    X(clCreateProgramWithBinary) \
    X(clBuildProgram)            \
    X(clGetProgramBuildInfo)     \
    X(clGetProgramInfo)          \
    X(clReleaseProgram)          \
    X(clCreateKernel)            \
    X(clReleaseKernel)           \
    X(clSetKernelArg)            \
    X(clCreateBuffer)            \
    X(clCreateSubBuffer)         \
    X(clReleaseMemObject)        \
    X(clEnqueueReadBuffer)       \
    X(clEnqueueWriteBuffer)      \
    X(clEnqueueCopyBuffer)       \
    X(clEnqueueFillBuffer)       \
    X(clEnqueueMapBuffer)        \
    X(clEnqueueUnmapMemObject)   \
    X(clEnqueueNDRangeKernel)    \
    X(clGetEventProfilingInfo)   \
    X(clGetEventInfo)            \
    X(clWaitForEvents)           \
    X(clRetainEvent)             \
    X(clReleaseEvent)            \
    X(clFlush)                   \
    X(clFinish)

typedef struct opencl_api {
#define X(name) __typeof__(name) *name;
    OPENCL_FUNCTIONS(X)
#undef X
} opencl_api;

/* Functions that are in the process already (a checker that was loaded before the program) go
 * before the library's. OT_E_USAGE: there is no library, or it lacks one of them. */
ot_status opencl_load(ot_diag *d, opencl_api *out) OT_MUST_USE;
/* "CL_OUT_OF_RESOURCES", or a number. */
const char *opencl_error(cl_int code, char buf[32]);

#endif
