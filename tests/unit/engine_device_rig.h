/* A device for sessions: the first of `api`, with caches of the test's own; Vulkan's under the
 * validation layer, where there is one. */
#ifndef TEST_ENGINE_DEVICE_RIG_H
#define TEST_ENGINE_DEVICE_RIG_H

#include "device_rig.h"

#include "engine/gpu/device_session.h"

#include <math.h>
#include <stdlib.h>

static ot_dev_api api; /* OT_DEV_OPENCL unless the test says otherwise */
static ot_device *dev;
static ot_device_laid suited;
static ot_backend place;
static unsigned first_seed;
static char cache_dir[32];

static inline int open_device(void **state)
{
    const char *one = getenv("OT_SEED");
    (void)state;
    first_seed = one ? (unsigned)atoi(one) : 1;
    print_message("%s, seed %u\n", ot_dev_api_name(api), first_seed);
    /* nothing from an earlier run, of ours or of the driver */
    strcpy(cache_dir, "/tmp/onnx-tile-device-XXXXXX");
    if (!mkdtemp(cache_dir)) return -1;
    setenv("XDG_CACHE_HOME", cache_dir, 1);
    setenv("POCL_CACHE_DIR", cache_dir, 1);
    /* compilers of pocl and llvmpipe work longest at what is no matter here; the end-to-end tests
     * let them */
    setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);
    setenv("GALLIVM_PERF", "nopt", 0);
    dev = open_validated(api);
    if (!dev) return 0;
    print_message("%s\n",
                  dev->options.validate ? "under the validation layer" : "no validation layer");
    suited = ot_device_suited(dev);
    suited.poisons = true; /* what no shader wrote is NaN */
    place = ot_device_backend(&suited);
    return 0;
}

static inline int close_device(void **state)
{
    (void)state;
    const char *first = "";
    uint32_t bad = dev ? ot_device_leaks(dev, stderr) + ot_device_findings(dev, &first) : 0;
    char command[64];
    if (*first) print_message("the validation layer found: %s\n", first);
    ot_device_close(dev);
    snprintf(command, sizeof command, "rm -rf '%s'", cache_dir);
    return bad != 0 || system(command) != 0;
}

#define NEEDS_DEVICE(state) \
    do {                    \
        (void)(state);      \
        if (!dev) {         \
            skip();         \
            return;         \
        }                   \
    } while (0)

/* The tests on the first device of each API, of OT_DEVICE alone where that is set; returns how
 * many failed. Most of their time is that of drivers' compilers: under a sanitizer one API is
 * enough where OT_EVERY_API is not defined (shaders of each are made by the same code). */
#define RUN_ON_EVERY_DEVICE(tests) run_on_every_device(tests, sizeof(tests) / sizeof *(tests))
static inline int run_on_every_device(const struct CMUnitTest *tests, size_t n)
{
#if defined(OT_SANITIZED) && !defined(OT_EVERY_API)
    const char *only = getenv("OT_DEVICE") ? getenv("OT_DEVICE") : ot_dev_api_name(OT_DEV_VULKAN);
#else
    const char *only = getenv("OT_DEVICE");
#endif
    int failed = 0;
    for (api = OT_DEV_OPENCL; api < OT_DEV_APIS; api++)
        if (!only || strcmp(only, ot_dev_api_name(api)) == 0)
            failed += _cmocka_run_group_tests(ot_dev_api_name(api), tests, n, open_device,
                                              close_device);
    return failed;
}

/* Sum of squared differences by sum of squares; infinite where types or shapes differ. */
static inline double error_of(const ot_nd *want, const ot_nd *got)
{
    int64_t n = 0;
    double off = 0, all = 1e-30;
    if (!ot_nd_same_shape(want, got->dtype, got->rank, got->dims) || !ot_nd_elems(want, &n))
        return INFINITY;
    for (int64_t k = 0; k < n; k++) {
        double a = ot_nd_double(want, k), b = ot_nd_double(got, k);
        off += (a - b) * (a - b);
        all += a * a;
    }
    return isnan(off) ? INFINITY : off / all;
}

#endif
