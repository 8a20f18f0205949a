/* The command calibrate: this machine, as the native engine sees it, or a device, into a target
 * file. */
#ifndef OT_COMMANDS_CALIBRATE_COMMAND_H
#define OT_COMMANDS_CALIBRATE_COMMAND_H

#include "base/base.h"

typedef struct ot_calibrate_request {
    /* file, "-" for stdout; NULL: the cache, from where the target `host` takes it */
    const char *output;
    uint32_t threads; /* 0: all cores */
    /* "opencl:1", measured in place of this machine: then there is an output; NULL or "cpu":
     * none */
    const char *device;
    bool quiet, verbose;
    ot_progress *progress; /* NULL: none */
} ot_calibrate_request;

#ifdef OT_ENGINE
/* Measure, write, and print the figures. The file appears whole or not at all. OT_E_USAGE: there
 * is no cache to write to. */
ot_status ot_calibrate_command(const ot_calibrate_request *r, ot_diag *d) OT_MUST_USE;
#else
static inline ot_status ot_calibrate_command(const ot_calibrate_request *r, ot_diag *d)
{
    (void)r;
    return ot_fail(d, OT_E_USAGE, "this build lacks the native engine");
}
#endif

#endif
