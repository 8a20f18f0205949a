/* What run-kernel does with device programs: write them (--emit-source), run them (--device).
 *
 *   planned kernel --codegen--> OpenCL C, CUDA C --> F.cl, F.cu
 *                               `--device--> what the kernel wrote, with how many items, how long
 */
#ifndef OT_COMMANDS_KERNEL_DEVICE_H
#define OT_COMMANDS_KERNEL_DEVICE_H

#include "tk/device/kernel_device_run.h"

typedef struct ot_kernel_device {
    const char *device; /* "opencl" or "opencl:N"; NULL or "cpu": none */
    const char *source; /* file to write, ends in .cl or .cu; NULL: none */
    uint32_t items;     /* of a work-group; 0: 1 on a CPU, else OT_KG_ITEMS_DEFAULT */
    uint32_t repeat;    /* timed launches; 0: the one that counts */
} ot_kernel_device;

/* Is the kernel to run on a device (and not in the interpreter)? */
bool ot_kernel_device_wanted(const ot_kernel_device *k);
/* A planned kernel with its inputs, and what became of it. */
typedef struct ot_kernel_device_job {
    const ot_kernel *kernel;
    const char *path; /* for messages */
    const ot_mem_plan *plan;
    const ot_krun_array *inputs; /* [n_inputs] */
    uint32_t n_inputs;
    ot_kd_facts facts;    /* out: about the device that ran it */
    uint32_t items;       /* out: of a work-group */
    ot_kd_result *result; /* out: the caller's; NULL where nothing ran */
} ot_kernel_device_job;
/* Write the source if that is asked for, then run on the device if that is. For CUDA C, or
 * without a device, the program is made for groups of OT_KG_ITEMS_DEFAULT items that have
 * OT_KG_LOCAL_DEFAULT bytes. Fails as ot_kg_make, ot_kd_open and ot_kd_run do, or with
 * OT_E_SYSTEM: the file. */
ot_status ot_kernel_device_run(const ot_kernel_device *want, ot_kernel_device_job *j,
                               ot_diag *d) OT_MUST_USE;

#endif
