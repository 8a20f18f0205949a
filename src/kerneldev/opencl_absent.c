/* Where the program was built without OpenCL's headers: it says so. */
#if !__has_include(<CL/cl.h>)

#include "kerneldev.h"

ot_status ot_kd_open(uint32_t number, ot_diag *d, ot_kd_device **out)
{
    (void)number;
    *out = NULL;
    return ot_fail(d, OT_E_USAGE, "no OpenCL here: this program was built without its headers (Debian: opencl-headers)");
}

const ot_kd_facts *ot_kd_about(const ot_kd_device *dev)
{
    (void)dev;
    return NULL;
}

void ot_kd_close(ot_kd_device *dev) { (void)dev; }

ot_status ot_kd_run(ot_kd_device *dev, const ot_kernel *k, const char *path, const ot_kg_code *code, const ot_kd_request *r,
                    ot_diag *d, ot_kd_result **out)
{
    (void)dev;
    (void)k;
    (void)path;
    (void)code;
    (void)r;
    *out = NULL;
    return ot_fail(d, OT_E_USAGE, "no OpenCL here: this program was built without its headers (Debian: opencl-headers)");
}

void ot_kd_free(ot_kd_result *r) { (void)r; }

#endif
