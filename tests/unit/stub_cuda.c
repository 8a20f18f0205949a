/* A libcuda.so.1 that computes on the host, for the test of the CUDA driver where there is no GPU: everything runs in the call.
 * Kernel "incr"(bytes, n): adds one to each of n bytes. One GiB of memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ptr;
static double now;
static size_t used;

static int fine(void) { return 0; }
#define FINE(name, args) \
    int name args { return fine(); }

FINE(cuInit, (unsigned f))
FINE(cuDevicePrimaryCtxRelease_v2, (int d))
FINE(cuCtxSetCurrent, (void *c))
FINE(cuMemHostRegister_v2, (void *p, size_t n, unsigned f))
FINE(cuMemHostUnregister, (void *p))
FINE(cuStreamSynchronize, (void *s))
FINE(cuStreamWaitEvent, (void *s, void *e, unsigned f))
FINE(cuEventQuery, (void *e))
FINE(cuEventSynchronize, (void *e))

int cuDriverGetVersion(int *v) { return *v = 12040, 0; }
int cuDeviceGetCount(int *n) { return *n = 1, 0; }
int cuDeviceGet(int *d, int k) { return *d = k, 0; }
int cuDeviceGetName(char *s, int n, int d) { return snprintf(s, (size_t)n, "stub"), 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { return *v = a == 1 ? 1024 : a == 8 ? 49152 : a == 75 ? 9 : a == 83 || a == 89, 0; }
int cuDeviceTotalMem_v2(size_t *n, int d) { return *n = 1 << 30, 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { return *c = &used, 0; }

int cuMemAlloc_v2(ptr *p, size_t n)
{
    size_t *m = n > 1000000 ? NULL : malloc(n + 256);
    if (!m) return 2;
    *m = n;
    used += n;
    *p = (ptr)(uintptr_t)m + 256;
    return 0;
}
int cuMemFree_v2(ptr p)
{
    size_t *m = (size_t *)(uintptr_t)(p - 256);
    used -= *m;
    free(m);
    return 0;
}
int cuMemAllocManaged(ptr *p, size_t n, unsigned f) { return cuMemAlloc_v2(p, n); }
int cuMemHostAlloc(void **p, size_t n, unsigned f) { return (*p = malloc(n)) ? 0 : 2; }
int cuMemFreeHost(void *p) { return free(p), 0; }
int cuMemHostGetDevicePointer_v2(ptr *p, void *h, unsigned f) { return *p = (ptr)(uintptr_t)h, 0; }

int cuStreamCreate(void **s, unsigned f) { return *s = malloc(1), 0; }
int cuStreamDestroy_v2(void *s) { return free(s), 0; }
int cuEventCreate(void **e, unsigned f) { return *e = calloc(1, sizeof(double)), 0; }
int cuEventDestroy_v2(void *e) { return free(e), 0; }
int cuEventRecord(void *e, void *s) { return *(double *)e = now += 0.25, 0; }
int cuEventElapsedTime(float *ms, void *a, void *b) { return *ms = (float)(*(double *)b - *(double *)a), 0; }

int cuMemcpyHtoDAsync_v2(ptr to, const void *from, size_t n, void *s) { return memcpy((void *)(uintptr_t)to, from, n), 0; }
int cuMemcpyDtoHAsync_v2(void *to, ptr from, size_t n, void *s) { return memcpy(to, (void *)(uintptr_t)from, n), 0; }
int cuMemcpyDtoDAsync_v2(ptr to, ptr from, size_t n, void *s)
{
    return memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, n), 0;
}
int cuMemsetD32Async(ptr to, unsigned v, size_t n, void *s)
{
    for (size_t k = 0; k < n; k++) memcpy((char *)(uintptr_t)to + 4 * k, &v, 4);
    return 0;
}

int cuModuleLoadData(void **m, const void *text) { return strncmp(text, ".version", 8) == 0 ? (*m = strdup(text), 0) : 218; }
int cuModuleUnload(void *m) { return free(m), 0; }
int cuModuleGetFunction(void **f, void *m, const char *name) { return strcmp(name, "incr") == 0 ? (*f = m, 0) : 500; }
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *s,
                   void **params, void **extra)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t) * (ptr *)params[0];
    if (shared == 4000) return 700; /* to see what a lost device is like */
    for (int k = 0; k < *(int *)params[1]; k++) bytes[k]++;
    return 0;
}
int cuGetErrorName(int code, const char **name) { return *name = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR", 0; }
