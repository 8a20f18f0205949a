/* Which memory type: pure, so that it is tested without a device. */
#include "driver.h"

uint32_t dev_choose_memory(const uint32_t *flags, uint32_t n, uint32_t allowed, uint32_t required,
                           uint32_t preferred)
{
    uint32_t fallback = OT_NONE;
    for (uint32_t k = 0; k < n && k < 32; k++) {
        if (!(allowed & 1u << k) || (flags[k] & required) != required) continue;
        if ((flags[k] & preferred) == preferred) return k;
        if (fallback == OT_NONE) fallback = k;
    }
    return fallback;
}
