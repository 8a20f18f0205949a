/* An open device for tests, or the reason why there is none. DEVICE=opencl:1 chooses. */
#ifndef TEST_DEVICE_RIG_H
#define TEST_DEVICE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/driver.h"

static inline const char *fault_name(ot_device_fault fault)
{
    switch (fault) {
    case OT_DEV_FINE: return "fine";
    case OT_DEV_NOT_HERE: return "not-here";
    case OT_DEV_OUT_OF_MEMORY: return "out-of-memory";
    case OT_DEV_HOST_MEMORY: return "host-memory";
    case OT_DEV_INVALID_POINTER: return "invalid-pointer";
    case OT_DEV_INVALID_OBJECT: return "invalid-object";
    case OT_DEV_NO_MEMORY_TYPE: return "no-memory-type";
    case OT_DEV_LOST: return "lost";
    case OT_DEV_COMPILE: return "compile";
    case OT_DEV_UNSUPPORTED: return "unsupported";
    case OT_DEV_CANCELLED: return "cancelled";
    case OT_DEV_FAILED: return "failed";
    }
    return "failed";
}

/* The device, NULL after a line that says why not. */
static inline ot_device *open_rig(ot_dev_api api, const ot_device_options *o)
{
    ot_device_error e;
    ot_device *dev = NULL;
    if (ot_device_open(api, 0, o, &e, &dev) == OT_OK) return dev;
    if (e.fault != OT_DEV_NOT_HERE) fail_msg("%s", e.message);
    print_message("skipped: %s\n", e.message);
    return NULL;
}

#define FINE(call)                                                                 \
    do {                                                                           \
        ot_device_error fine_ = {0};                                               \
        ot_device_error *e = &fine_;                                               \
        if ((call) != OT_OK)                                                       \
            fail_msg("%s: %s: %s", #call, fault_name(fine_.fault), fine_.message); \
    } while (0)

/* The same under Vulkan's validation layer, where there is one. */
static inline ot_device *open_validated(ot_dev_api api)
{
    ot_device_error e;
    ot_device *dev = NULL;
    if (api == OT_DEV_VULKAN &&
        ot_device_open(api, 0, &(ot_device_options){.validate = true}, &e, &dev) == OT_OK)
        return dev;
    return open_rig(api, NULL);
}

static inline void close_validated(ot_device *dev)
{
    const char *first;
    if (ot_device_findings(dev, &first) > 0) fail_msg("the validation layer found: %s", first);
    ot_device_close(dev);
}

/* The call fails with this fault and a message that holds `text`. In the call, the error is `e`. */
#define FAULT(which, text, call)                                                     \
    do {                                                                             \
        ot_device_error fault_ = {0};                                                \
        ot_device_error *e = &fault_;                                                \
        assert_int_not_equal(call, OT_OK);                                           \
        if (fault_.fault != (which) || !strstr(fault_.message, text))                \
            fail_msg("%s: %s: %s", #call, fault_name(fault_.fault), fault_.message); \
    } while (0)

static inline ot_dev_buffer make_buffer(ot_device *dev, const char *name, int64_t bytes,
                                        ot_dev_memory kind)
{
    ot_dev_buffer b;
    FINE(ot_dev_buffer_new(
        dev, &(ot_dev_buffer_options){.name = name, .bytes = bytes, .kind = kind}, e, &b));
    return b;
}

static inline ot_dev_slice part(ot_dev_buffer b, int64_t offset, int64_t bytes)
{
    return (ot_dev_slice){b, offset, bytes};
}

#endif
