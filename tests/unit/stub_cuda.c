/* A libcuda.so.1 and a libnvrtc.so.13 that compute on the host, for tests where there is no GPU:
 * everything runs in the call. One GiB of memory, at most 10 MB at once.
 *
 *   PTX                  has kernel "incr"(bytes, n): adds one to each of n bytes
 *   CUDA C --"NVRTC"-->  ".version", the text --g++, with what CUDA C has beyond C++ (HOST)--> a
 *                        library of functions
 *
 *   stub_pageable()      transfers from or to memory of the host that was not pinned
 *   stub_pinned()        ranges that are pinned now
 *   stub_advance(ms)     its clock goes on by so much
 *
 * Kernels of CUDA C have pointers and longs for arguments. Where they meet at barriers, each
 * work-item of a group has a stack of its own, and goes on when all others have come as far.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

typedef unsigned long long ptr;
static double now;
static size_t used;

static int fine(void) { return 0; }
#define FINE(name, args) \
    int name args { return fine(); }

FINE(cuInit, (unsigned f))
FINE(cuDevicePrimaryCtxRelease_v2, (int d))
FINE(cuCtxSetCurrent, (void *c))
FINE(cuStreamSynchronize, (void *s))
FINE(cuStreamWaitEvent, (void *s, void *e, unsigned f))
FINE(cuEventQuery, (void *e))
FINE(cuEventSynchronize, (void *e))

int cuDriverGetVersion(int *v) { return *v = 12040, 0; }
int cuDeviceGetCount(int *n) { return *n = 1, 0; }
int cuDeviceGet(int *d, int k) { return *d = k, 0; }
int cuDeviceGetName(char *s, int n, int d) { return snprintf(s, (size_t)n, "stub\033[31m\n"), 0; }
int cuDeviceGetAttribute(int *v, int a, int d)
{
    return *v = a == 1    ? 1024
                : a == 8  ? 49152
                : a == 97 ? 220000
                : a == 16 ? 8
                : a == 75 ? 9
                          : a == 83 || a == 89,
           0;
}
int cuDeviceTotalMem_v2(size_t *n, int d) { return *n = 1 << 30, 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { return *c = &used, 0; }

int cuMemAlloc_v2(ptr *p, size_t n)
{
    size_t *m = n > 10000000 ? NULL : malloc(n + 256);
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
int cuEventElapsedTime(float *ms, void *a, void *b)
{
    return *ms = (float)(*(double *)b - *(double *)a), 0;
}

/* ---- pinned memory ---- */

static struct {
    char *at;
    size_t n;
} pinned[64];
static int pageable;

int cuMemHostRegister_v2(void *p, size_t n, unsigned f)
{
    for (int k = 0; k < 64; k++)
        if (!pinned[k].at) return pinned[k].at = p, pinned[k].n = n, 0;
    return 2;
}
int cuMemHostUnregister(void *p)
{
    for (int k = 0; k < 64; k++)
        if (pinned[k].at == p) return pinned[k].at = NULL, 0;
    return 713;
}
static void note_host(const char *p, size_t n)
{
    for (int k = 0; k < 64; k++)
        if (pinned[k].at && p >= pinned[k].at && p + n <= pinned[k].at + pinned[k].n) return;
    pageable++;
}
int stub_pageable(void) { return pageable; }
int stub_pinned(void)
{
    int n = 0;
    for (int k = 0; k < 64; k++) n += pinned[k].at != NULL;
    return n;
}
void stub_advance(double ms) { now += ms; }

/* ---- transfers ---- */

int cuMemcpyHtoDAsync_v2(ptr to, const void *from, size_t n, void *s)
{
    return note_host(from, n), memcpy((void *)(uintptr_t)to, from, n), 0;
}
int cuMemcpyDtoHAsync_v2(void *to, ptr from, size_t n, void *s)
{
    return note_host(to, n), memcpy(to, (void *)(uintptr_t)from, n), 0;
}
int cuMemcpyDtoDAsync_v2(ptr to, ptr from, size_t n, void *s)
{
    return memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, n), 0;
}
int cuMemsetD32Async(ptr to, unsigned v, size_t n, void *s)
{
    for (size_t k = 0; k < n; k++) memcpy((char *)(uintptr_t)to + 4 * k, &v, 4);
    return 0;
}

/* ---- programs ---- */

static const char PTX[] = ".version 7.0\n// ";

/* Instructions of a subgroup's 32 work-items: words (row, k) of A, (k, column) of B by the work-item
 * that holds them. */
#define MATRICES                                                                                \
    "static unsigned stub_words[1024][6];\n"                                                    \
    "static float stub_product(int kind, unsigned a, unsigned b)\n{\n"                          \
    "    if (kind == 2) return as<float, unsigned>(a & 0xffffe000u) * as<float, unsigned>(b & " \
    "0xffffe000u);\n"                                                                           \
    "    if (kind == 1) return as<float, unsigned>(a << 16) * as<float, unsigned>(b << 16) + "  \
    "as<float, unsigned>(a & 0xffff0000u) * as<float, unsigned>(b & 0xffff0000u);\n"            \
    "    return of_bits(a) * of_bits(b) + of_bits(a >> 16) * of_bits(b >> 16);\n}\n"            \
    "static void stub_mma(int kind, float *d, const unsigned *a, const unsigned *b)\n{\n"       \
    "    const unsigned me = threadIdx.x, g = me % 32 / 4, q = me % 4;\n"                       \
    "    for (int k = 0; k < 6; k++) stub_words[me][k] = k < 4 ? a[k] : b[k - 4];\n"            \
    "    stub_meet();\n"                                                                        \
    "    for (unsigned c = 0; c < 4; c++)\n"                                                    \
    "        for (unsigned k = 0; k < 8; k++)\n"                                                \
    "            d[c] += stub_product(kind, stub_words[me / 32 * 32 + g * 4 + k % 4][c / 2 + "  \
    "k / 4 * 2], stub_words[me / 32 * 32 + (2 * q + c % 2) * 4 + k % 4][4 + k / 4]);\n"         \
    "    stub_meet();\n}\n"

static const char HOST[] =
    "#include <math.h>\n"
    "#define __launch_bounds__(...)\n#define __device__\n#define __global__\n#define __shared__ "
    "static\n"
    "#define __align__(n) __attribute__((aligned(n)))\n#define __syncthreads() stub_meet()\n"
    "extern \"C\" { void (*stub_meet)(void); struct { unsigned x, y, z; } blockIdx, blockDim, "
    "threadIdx; }\n"
    "template <class t> static t min(t a, t b) { return a < b ? a : b; }\n"
    "template <class t> static t max(t a, t b) { return a > b ? a : b; }\n"
    "template <class to, class from> static to as(from x) { to y; __builtin_memcpy(&y, &x, 4); "
    "return y; }\n"
    "static float of_bits(unsigned short h) { _Float16 y; __builtin_memcpy(&y, &h, 2); return "
    "(float)y; }\n"
    "static unsigned short to_bits(float f) { _Float16 x = (_Float16)f; unsigned short h; "
    "__builtin_memcpy(&h, &x, 2); return h; }\n"
    "#define __int_as_float as<float, int>\n#define __uint_as_float as<float, unsigned>\n#define "
    "__float_as_uint as<unsigned, float>\n"
    "#define __cvta_generic_to_shared(x) 0\n"
    "static int stub_any;\n"
    "static int __syncthreads_or(int x)\n"
    "{ stub_any |= x; stub_meet(); int r = stub_any; stub_meet(); stub_any = 0; stub_meet(); "
    "return r; }\n" MATRICES;

int nvrtcCreateProgram(void **p, const char *text, const char *name, int n,
                       const char *const *headers, const char *const *names)
{
    return asprintf((char **)p, "%s\n%s", PTX, text) < 0;
}
int nvrtcCompileProgram(void *p, int n, const char *const *options) { return 0; }
int nvrtcGetPTXSize(void *p, size_t *n) { return *n = strlen(p) + 1, 0; }
int nvrtcGetPTX(void *p, char *text) { return strcpy(text, p), 0; }
int nvrtcGetProgramLogSize(void *p, size_t *n) { return *n = 1, 0; }
int nvrtcGetProgramLog(void *p, char *text) { return *text = '\0', 0; }
int nvrtcDestroyProgram(void **p) { return free(*p), 0; }

typedef struct index {
    unsigned x, y, z;
} index3;
typedef struct module {
    void *library; /* NULL: of PTX */
    char *text;
} module;
typedef struct function {
    void *run;
    int n_args;
    index3 *block, *size, *thread;
    void (**meet)(void); /* the barrier that it calls */
    int meets;           /* it may */
} function;

/* The instructions of PTX in the text are calls here. */
#define INSTRUCTIONS                                                                           \
    "s/asm(\"cvt.f32.*/f = of_bits(h);/; s/asm(\"cvt.rn.*/h = to_bits(f);/; "                  \
    "s/asm(\"mma.*[.]f16[.]f16.*/stub_mma(0, d, a, b);/; "                                     \
    "s/asm(\"mma.*[.]bf16[.]bf16.*/stub_mma(1, d, a, b);/; "                                   \
    "s/asm(\"mma.*[.]tf32[.]tf32.*/stub_mma(2, d, a, b);/; "                                   \
    "s/asm volatile(\"cp.async.ca.*/*to = there ? *(const uint *)from : 0;/; "                 \
    "s/asm volatile(\"cp.async.cg.*/for (int k = 0; k < 4; k++) to[k] = there ? ((const uint " \
    "*)from)[k] : 0;/; s/extern __shared__.*/static together uint pool[55000];/; "             \
    "s/asm volatile(\"cp.async.commit.*//; s/#define arrived.*/#define arrived(later)/"
static void *build(const char *text)
{
    char folder[] = "/tmp/onnx-tile-stub-XXXXXX", source[64], library[64], command[1100];
    if (!mkdtemp(folder)) return NULL;
    snprintf(source, sizeof source, "%s/k.cc", folder);
    snprintf(library, sizeof library, "%s/k.so", folder);
    snprintf(command, sizeof command,
             "sed -i '" INSTRUCTIONS "' %s && g++ -w -O0 -shared -fPIC -o %s %s", source, library,
             source);
    FILE *f = fopen(source, "w");
    if (f) fprintf(f, "%s%s", HOST, text);
    void *l = f && fclose(f) == 0 && system(command) == 0 ? dlopen(library, RTLD_NOW | RTLD_LOCAL)
                                                          : NULL;
    unlink(source);
    unlink(library);
    rmdir(folder);
    return l;
}

int cuModuleLoadData(void **m, const void *text)
{
    const char *kernels = strstr(text, "__global__") ? (const char *)text + sizeof PTX - 1 : NULL;
    module made = {kernels ? build(kernels) : NULL, kernels ? strdup(kernels) : NULL};
    if (strncmp(text, ".version", 8) != 0 || (kernels && !made.library)) return 218;
    *m = malloc(sizeof made);
    *(module *)*m = made;
    return 0;
}
int cuModuleUnload(void *m)
{
    module *x = m;
    if (x->library) dlclose(x->library);
    return free(x->text), free(x), 0;
}
/* Arguments of a kernel as its text lists them. */
static int count_args(const char *text, const char *name)
{
    char head[80];
    snprintf(head, sizeof head, " %s(", name); /* behind what is said of it */
    const char *at = strstr(text, head), *end = at ? strchr(at, ')') : NULL;
    int n = end != NULL;
    for (; at && at < end; at++) n += *at == ',';
    return n;
}

static int meets(const char *text, const char *name)
{
    char head[80];
    snprintf(head, sizeof head, " %s(", name); /* behind what is said of it */
    const char *at = strstr(text, head), *next = at ? strstr(at + 1, "__global__") : NULL,
               *found = at ? strstr(at, "meet();") : NULL;
    return found && (!next || found < next);
}

int cuModuleGetFunction(void **f, void *of, const char *name)
{
    static function found; /* launched at once */
    const module *m = of;
    found = (function){0};
    *f = &found;
    if (!m->library) return strcmp(name, "incr") == 0 ? 0 : 500;
    found = (function){dlsym(m->library, name),
                       count_args(m->text, name),
                       dlsym(m->library, "blockIdx"),
                       dlsym(m->library, "blockDim"),
                       dlsym(m->library, "threadIdx"),
                       dlsym(m->library, "stub_meet"),
                       meets(m->text, name)};
    return found.run ? 0 : 500;
}

#define TEN(a, k) \
    a[k], a[k + 1], a[k + 2], a[k + 3], a[k + 4], a[k + 5], a[k + 6], a[k + 7], a[k + 8], a[k + 9]
#define ALL(a) TEN(a, 0), TEN(a, 10), TEN(a, 20), TEN(a, 30), TEN(a, 40)

/* Registers and the stack hold as many arguments as the kernel takes, and more that it does not
 * look at. */
static void call(const function *f, const uint64_t a[50])
{
    ((void (*)(uint64_t, ...))f->run)(ALL(a));
}

/* ---- groups that meet ---- */

#define STACK 65536
static struct fiber {
    ucontext_t at;
    int ended;
    char *stack;
} fibers[1024];
static ucontext_t all; /* who lets them go on, one after the other */
static struct fiber *now_on;
static const function *now_of;
static const uint64_t *now_args;

static void meet(void) { swapcontext(&now_on->at, &all); }
static void enter(void)
{
    call(now_of, now_args);
    now_on->ended = 1;
}
static void run_group(const function *f, unsigned n, const uint64_t a[50])
{
    unsigned ended = 0;
    now_of = f;
    now_args = a;
    *f->meet = meet;
    for (unsigned k = 0; k < n; k++) {
        struct fiber *x = &fibers[k];
        if (!x->stack) x->stack = malloc(STACK);
        x->ended = 0;
        getcontext(&x->at);
        x->at.uc_stack.ss_sp = x->stack;
        x->at.uc_stack.ss_size = STACK;
        x->at.uc_link = &all;
        makecontext(&x->at, enter, 0);
    }
    for (unsigned k = 0; ended < n; k = (k + 1) % n) {
        if (fibers[k].ended) continue;
        now_on = &fibers[k];
        f->thread->x = k;
        swapcontext(&all, &fibers[k].at);
        ended += (unsigned)fibers[k].ended;
    }
}

static void run_all(const function *f, index3 grid, index3 block, const uint64_t a[50])
{
    *f->size = block;
    for (f->block->x = 0; f->block->x < grid.x; f->block->x++)
        if (f->meets)
            run_group(f, block.x, a);
        else
            for (f->thread->x = 0; f->thread->x < block.x; f->thread->x++) call(f, a);
}

int cuLaunchKernel(void *of, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *s, void **params, void **extra)
{
    const function *f = of;
    uint8_t *bytes = (uint8_t *)(uintptr_t) * (ptr *)params[0];
    if (shared == 4000) return 700; /* to see what a lost device is like */
    for (int k = 0; !f->run && k < *(int *)params[1]; k++) bytes[k]++;
    if (!f->run) return 0;
    uint64_t a[50] = {0};
    for (int k = 0; k < f->n_args; k++) a[k] = *(uint64_t *)params[k];
    run_all(f, (index3){gx, gy, gz}, (index3){bx, by, bz}, a);
    return 0;
}
int cuFuncSetAttribute(void *f, int a, int v) { return a != 8 || v > 220000; }
int cuGetErrorName(int code, const char **name)
{
    return *name = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR", 0;
}
