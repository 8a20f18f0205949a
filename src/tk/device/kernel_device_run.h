/* Stage tk/device/: device programs of kernels (tk/codegen), built and run on OpenCL devices
 * (device/).
 *
 *   program + inputs --> build, buffers, launch --> what the kernel wrote
 */
#ifndef OT_TK_DEVICE_KERNEL_DEVICE_RUN_H
#define OT_TK_DEVICE_KERNEL_DEVICE_RUN_H

#include "tk/codegen/codegen.h"
#include "tk/interpreter/interpreter.h"

typedef struct ot_kd_device ot_kd_device;

typedef struct ot_kd_facts {
    char name[128];
    int64_t local_bytes; /* of a work-group */
    uint32_t items_most; /* of a work-group */
    bool is_cpu, has_f64;
} ot_kd_facts;

/* OpenCL device `number`, from 0. OT_E_USAGE: there is none, in one line that says what is
 * missing. *out is to be closed with ot_kd_close. */
ot_status ot_kd_open(uint32_t number, ot_diag *d, ot_kd_device **out) OT_MUST_USE;
const ot_kd_facts *ot_kd_about(const ot_kd_device *dev);
void ot_kd_close(ot_kd_device *dev); /* accepts NULL */

typedef struct ot_kd_request {
    const ot_krun_array *inputs; /* [n_inputs] of params, by name */
    uint32_t n_inputs;
    uint32_t repeat; /* launches that are timed, after one that counts; 0: none */
} ot_kd_request;

typedef struct ot_kd_result {
    ot_arena *arena; /* owns everything, itself included */
    /* [n_outputs] params that something writes, in order; 0 where nothing did */
    ot_krun_array *outputs;
    uint32_t n_outputs;
    int64_t n_groups; /* launched */
    double seconds;   /* of the kernel: the least of the timed launches, else of the one */
} ot_kd_result;

/* Build and run `code`, made of kernel k. Fails with OT_E_INPUT (an input that is missing or of
 * another type), OT_E_USAGE (no such param; the device lacks what the program needs),
 * OT_E_SYSTEM (the device's compiler or a launch failed: its message). *out is to be freed with
 * ot_kd_free. */
ot_status ot_kd_run(ot_kd_device *dev, const ot_kernel *k, const char *path, const ot_kg_code *code,
                    const ot_kd_request *r, ot_diag *d, ot_kd_result **out) OT_MUST_USE;
void ot_kd_free(ot_kd_result *r); /* accepts NULL */

#endif
