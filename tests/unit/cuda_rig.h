/* Where there is no libcuda, one that computes on the host (stub_cuda.c), and an NVRTC that goes
 * with it. */
#ifndef TEST_CUDA_RIG_H
#define TEST_CUDA_RIG_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool cuda_is_stub; /* after cuda_load_stub */

/* Loads the stub under the name that the driver asks for. */
static inline bool cuda_load_as(const char *folder, const char *name)
{
    char command[512], path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(command, sizeof command,
             "cc -w -shared -fPIC -Wl,-soname,%s -o %s %.*sstub_cuda.c 2>/dev/null", name, path,
             (int)(strrchr(__FILE__, '/') - __FILE__ + 1), __FILE__);
    bool ok = system(command) == 0 && dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    unlink(path);
    return ok;
}

static inline void cuda_load_stub(void)
{
    char folder[] = "/tmp/onnx-tile-cuda-XXXXXX";
    if (dlopen("libcuda.so.1", RTLD_NOW) || !mkdtemp(folder)) return;
    cuda_is_stub = cuda_load_as(folder, "libcuda.so.1") && cuda_load_as(folder, "libnvrtc.so.13");
    rmdir(folder);
}

/* What the stub counts; 0 of a real driver. */
static inline int cuda_stub_count(const char *function)
{
    int (*count)(void);
    *(void **)&count = dlsym(RTLD_DEFAULT, function);
    return cuda_is_stub && count ? count() : 0;
}

#endif
