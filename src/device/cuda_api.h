/* The few functions of the CUDA driver API and of NVRTC that are used, declared here: no header
 * of theirs is needed, and their libraries are found when the program runs. Names, argument
 * lists and numbers are those of the CUDA Driver API reference. Private to device/. */
#ifndef OT_DEVICE_CUDA_API_H
#define OT_DEVICE_CUDA_API_H

#include "driver.h"

typedef int cu_result;             /* 0: success */
typedef unsigned long long cu_ptr; /* CUdeviceptr */
typedef void *cu_handle;           /* context, stream, event, module, function */

enum {
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_FOUND = 500,
    CU_NOT_READY = 600,
    CU_FIRST_LOSS = 700,
    CU_LAST_LOSS = 720
};
enum { CU_FUNCTION_SHARED_BYTES = 8 }; /* attribute of a function */
enum { CU_HOST_PORTABLE_MAPPED = 3, CU_ATTACH_GLOBAL = 1, CU_STREAM_NON_BLOCKING = 1 };
enum { /* attributes */
       CU_ITEMS_MOST = 1,
       CU_SHARED_BYTES = 8,
       CU_UNITS = 16,
       CU_L2_BYTES = 38,
       CU_MAJOR = 75,
       CU_MINOR = 76,
       CU_MANAGED = 83,
       CU_CONCURRENT_MANAGED = 89,
       CU_SHARED_BYTES_MOST = 97 /* of a launch that asks for it */
};

#define CUDA_FUNCTIONS(X)                                                                   \
    X(cuInit, (unsigned flags))                                                             \
    X(cuDriverGetVersion, (int *version))                                                   \
    X(cuDeviceGetCount, (int *n))                                                           \
    X(cuDeviceGet, (int *device, int number))                                               \
    X(cuDeviceGetName, (char *name, int size, int device))                                  \
    X(cuDeviceGetAttribute, (int *value, int attribute, int device))                        \
    X(cuDeviceTotalMem_v2, (size_t * bytes, int device))                                    \
    X(cuDevicePrimaryCtxRetain, (cu_handle * context, int device))                          \
    X(cuDevicePrimaryCtxRelease_v2, (int device))                                           \
    X(cuCtxSetCurrent, (cu_handle context))                                                 \
    X(cuMemAlloc_v2, (cu_ptr * p, size_t bytes))                                            \
    X(cuMemFree_v2, (cu_ptr p))                                                             \
    X(cuMemHostAlloc, (void **p, size_t bytes, unsigned flags))                             \
    X(cuMemFreeHost, (void *p))                                                             \
    X(cuMemHostRegister_v2, (void *p, size_t bytes, unsigned flags))                        \
    X(cuMemHostUnregister, (void *p))                                                       \
    X(cuMemHostGetDevicePointer_v2, (cu_ptr * p, void *host, unsigned flags))               \
    X(cuMemAllocManaged, (cu_ptr * p, size_t bytes, unsigned flags))                        \
    X(cuStreamCreate, (cu_handle * stream, unsigned flags))                                 \
    X(cuStreamDestroy_v2, (cu_handle stream))                                               \
    X(cuStreamWaitEvent, (cu_handle stream, cu_handle event, unsigned flags))               \
    X(cuStreamSynchronize, (cu_handle stream))                                              \
    X(cuEventCreate, (cu_handle * event, unsigned flags))                                   \
    X(cuEventDestroy_v2, (cu_handle event))                                                 \
    X(cuEventRecord, (cu_handle event, cu_handle stream))                                   \
    X(cuEventQuery, (cu_handle event))                                                      \
    X(cuEventSynchronize, (cu_handle event))                                                \
    X(cuEventElapsedTime, (float *milliseconds, cu_handle from, cu_handle to))              \
    X(cuMemcpyHtoDAsync_v2, (cu_ptr to, const void *from, size_t bytes, cu_handle stream))  \
    X(cuMemcpyDtoHAsync_v2, (void *to, cu_ptr from, size_t bytes, cu_handle stream))        \
    X(cuMemcpyDtoDAsync_v2, (cu_ptr to, cu_ptr from, size_t bytes, cu_handle stream))       \
    X(cuMemsetD32Async, (cu_ptr to, unsigned value, size_t n, cu_handle stream))            \
    X(cuModuleLoadData, (cu_handle * module, const void *image))                            \
    X(cuModuleUnload, (cu_handle module))                                                   \
    X(cuModuleGetFunction, (cu_handle * function, cu_handle module, const char *name))      \
    X(cuFuncSetAttribute, (cu_handle function, int attribute, int value))                   \
    X(cuLaunchKernel,                                                                       \
      (cu_handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
       unsigned bz, unsigned shared, cu_handle stream, void **params, void **extra))        \
    X(cuGetErrorName, (cu_result code, const char **name))

typedef struct cuda_api {
#define X(name, args) cu_result(*name) args;
    CUDA_FUNCTIONS(X)
#undef X
} cuda_api;

typedef struct cu_state {
    cuda_api cu;
    int device;
    cu_handle context;
    char architecture[32]; /* "--gpu-architecture=compute_90" */
} cu_state;

static inline cu_state *cu_state_of(const ot_device *dev) { return dev->api; }

/* The functions and cuInit; else why not, in `why`. */
bool cu_load(cuda_api *cu, char *why, size_t size);
/* What a call answered, as a typed error. */
ot_status cu_failed(ot_device *dev, ot_device_error *e, const char *what, cu_result code);
/* PTX of CUDA C by NVRTC; *text is the caller's, to be freed. */
ot_status cu_compile(const cu_state *x, const char *name, const ot_dev_source *s,
                     ot_device_error *e, char **text);

cu_handle cu_module_of(const dev_program *d);

/* cuda_queue.c */
ot_status cu_queue_new(ot_device *dev, dev_queue *q, ot_device_error *e);
void cu_queue_free(ot_device *dev, dev_queue *q);
ot_status cu_submit(ot_device *dev, dev_queue *q, const dev_command *c, ot_device_error *e);
ot_status cu_flush(ot_device *dev, dev_queue *q, ot_device_error *e);
ot_status cu_poll(ot_device *dev, dev_queue *q, ot_device_error *e);
ot_status cu_wait(ot_device *dev, dev_queue *q, uint64_t serial, ot_device_error *e);

typedef struct cu_buffer {
    cu_ptr at;
    void *host; /* pinned or managed: where the host sees it; NULL: nowhere */
} cu_buffer;

#endif
