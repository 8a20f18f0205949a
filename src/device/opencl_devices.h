/* The OpenCL devices of this machine (private to the files opencl_*.c). */
#ifndef OT_DEVICE_OPENCL_DEVICES_H
#define OT_DEVICE_OPENCL_DEVICES_H

#include "driver.h"
#include "opencl_api.h"

#define OPENCL_DEVICES_MAX 32

/* Every device of every platform; returns how many. */
uint32_t opencl_find_devices(const opencl_api *cl, cl_device_id ids[OPENCL_DEVICES_MAX]);
/* What the device `id`, the one of that number, can do. */
void opencl_ask(const opencl_api *cl, cl_device_id id, uint32_t number, ot_device_facts *f);
/* dev_driver.list: adds them to l, or says in l->missing why there are none. */
ot_status opencl_list(ot_arena *a, ot_device_list *l);

#endif
