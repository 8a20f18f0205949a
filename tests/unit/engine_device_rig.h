/* A device for sessions: the first of `api`, with caches of the test's own; Vulkan's under the validation layer, where there is one. */
#ifndef TEST_ENGINE_DEVICE_RIG_H
#define TEST_ENGINE_DEVICE_RIG_H

#include "device_rig.h"

#include "engine/device/device_session.h"

#include <stdlib.h>

static ot_dev_api api; /* OT_DEV_OPENCL unless the test says otherwise */
static ot_device *dev;
static ot_session_place place;
static unsigned first_seed;
static char cache_dir[32];

static inline int open_device(void **state)
{
    const char *one = getenv("OT_SEED");
    (void)state;
    first_seed = one ? (unsigned)atoi(one) : 1;
    print_message("%s, seed %u\n", ot_dev_api_name(api), first_seed);
    strcpy(cache_dir, "/tmp/onnx-tile-device-XXXXXX"); /* nothing from an earlier run, of ours or of the driver */
    if (!mkdtemp(cache_dir)) return -1;
    setenv("XDG_CACHE_HOME", cache_dir, 1);
    setenv("POCL_CACHE_DIR", cache_dir, 1);
    dev = open_validated(api);
    if (!dev) return 0;
    print_message("%s\n", dev->options.validate ? "under the validation layer" : "no validation layer");
    place = ot_device_place(dev);
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

#endif
