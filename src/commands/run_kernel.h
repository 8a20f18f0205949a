/* The command run-kernel: a tile kernel, planned and run by the interpreter or on a device.
 *
 *   k.tk --parse, plan--> kernel with places --ot_krun---------------> D/NAME.npy for each param
 *   that is written
 *   NAME=F.npy --------------------^       |                   `----> figures, trace
 *                                          `--ot_kernel_device_run--> F.cl, F.cu; D/NAME.npy
 */
#ifndef OT_COMMANDS_RUN_KERNEL_H
#define OT_COMMANDS_RUN_KERNEL_H

#include "kernel_device.h"
#include "measure/measure.h"
#include "tk/planmem/planmem.h"

typedef struct ot_kernel_request {
    const char *path;   /* "-": stdin */
    const char *target; /* NULL: the kernel's own, else host */
    ot_mem_options plan;
    const ot_run_input *inputs; /* [n_inputs] */
    size_t n_inputs;
    /* [n_sizes] values of the kernel's sizes; others follow from the inputs' shapes */
    const ot_tk_binding *sizes;
    size_t n_sizes;
    const char *output_dir; /* NULL: results are not written */
    const char *trace;      /* file for a Chrome trace; NULL: none */
    ot_kernel_device on;    /* a device to run on, a source to write */
    /* memory, pipes, what was never freed; of a device: what it is, how long it took */
    bool stats;
    bool tune; /* on a device: other sizes and work-groups are tried, the fastest counts */
    bool json, quiet;
} ot_kernel_request;

#ifdef OT_ENGINE
/* Plan the kernel, run it, and say so on stdout. Results appear whole or not at all. Fails:
 * OT_E_INPUT (the kernel, an input, what the interpreter finds wrong), OT_E_USAGE, OT_E_BUDGET
 * (it does not fit), OT_E_SYSTEM, OT_E_NOMEM. */
ot_status ot_run_kernel(const ot_kernel_request *r, ot_diag *d) OT_MUST_USE;
#else
static inline ot_status ot_run_kernel(const ot_kernel_request *r, ot_diag *d)
{
    (void)r;
    return ot_fail(d, OT_E_USAGE, "this build lacks the native engine");
}
#endif

#endif
