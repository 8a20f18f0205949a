/* Typed errors: the fault, its figures, one line. */
#include "driver.h"

#include <stdarg.h>

static ot_status status_of(ot_device_fault fault)
{
    switch (fault) {
    case OT_DEV_FINE: return OT_OK;
    case OT_DEV_NOT_HERE:
    case OT_DEV_NO_MEMORY_TYPE:
    case OT_DEV_UNSUPPORTED: return OT_E_USAGE;
    case OT_DEV_OUT_OF_MEMORY: return OT_E_BUDGET;
    case OT_DEV_HOST_MEMORY: return OT_E_NOMEM;
    default: return OT_E_SYSTEM;
    }
}

ot_status ot_device_tell(const ot_device_error *e, ot_diag *d)
{
    return ot_fail(d, status_of(e->fault), "%s", e->message);
}

ot_status dev_fail(ot_device_error *e, ot_device_fault fault, const char *fmt, ...)
{
    if (!e) return status_of(fault);
    va_list args;
    *e = (ot_device_error){.fault = fault, .requested = -1, .free = -1, .largest = -1};
    va_start(args, fmt);
    vsnprintf(e->message, sizeof e->message, fmt, args);
    va_end(args);
    for (char *c = e->message; *c; c++)
        if (*c == '\n' || *c == '\r' || *c == '\t') *c = ' '; /* compilers' words */
    return status_of(fault);
}

ot_status dev_fail_full(const ot_device *dev, ot_device_error *e, const char *what,
                        int64_t requested)
{
    const ot_device_usage *u = &dev->usage;
    int64_t rest = ot_max(0, u->budget - u->used);
    int64_t largest = dev->facts.allocation_most > 0 ? ot_min(rest, dev->facts.allocation_most)
                                                     : rest;
    ot_status s = dev_fail(
        e, OT_DEV_OUT_OF_MEMORY,
        "%s: out of device memory: %lld bytes requested, %lld free, %lld in one block", what,
        (long long)requested, (long long)rest, (long long)largest);
    if (e) {
        e->requested = requested;
        e->free = rest;
        e->largest = largest;
    }
    return s;
}

ot_status dev_fail_host_memory(ot_device_error *e)
{
    return dev_fail(e, OT_DEV_HOST_MEMORY, "out of memory");
}
