/* A device for sessions: OpenCL's first, with caches of the test's own. */
#ifndef TEST_ENGINE_DEVICE_RIG_H
#define TEST_ENGINE_DEVICE_RIG_H

#include "engine/device/device_session.h"

#include <stdlib.h>

static ot_device *dev;
static ot_session_place place;
static unsigned first_seed;
static char cache_dir[32];

static inline int open_device(void **state)
{
    ot_device_error e;
    const char *one = getenv("OT_SEED");
    (void)state;
    first_seed = one ? (unsigned)atoi(one) : 1;
    print_message("seed %u\n", first_seed);
    strcpy(cache_dir, "/tmp/onnx-tile-device-XXXXXX"); /* nothing from an earlier run, of ours or of the driver */
    if (!mkdtemp(cache_dir)) return -1;
    setenv("XDG_CACHE_HOME", cache_dir, 1);
    setenv("POCL_CACHE_DIR", cache_dir, 1);
    if (ot_device_open(OT_DEV_OPENCL, 0, NULL, &e, &dev) != OT_OK) {
        if (e.fault != OT_DEV_NOT_HERE) fail_msg("%s", e.message);
        print_message("skipped: %s\n", e.message);
        dev = NULL;
        return 0;
    }
    place = ot_device_place(dev);
    return 0;
}

static inline int close_device(void **state)
{
    (void)state;
    uint32_t leaks = dev ? ot_device_leaks(dev, stderr) : 0;
    char command[64];
    ot_device_close(dev);
    snprintf(command, sizeof command, "rm -rf '%s'", cache_dir);
    return leaks != 0 || system(command) != 0;
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
