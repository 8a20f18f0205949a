/* What the engine merges on devices: convolutions with what follows them, and chains, as on
 * CPUs. Attention, products with a factor and groups of bytes are kernels of CPUs alone; on a
 * device their nodes are kernels one by one.
 *
 */
#include "fusion.h"

static bool merges(void *ctx, const ot_group_view *v, const ot_group *group, uint32_t place,
                   ot_group_role role)
{
    return (group->kind == OT_GROUP_CONV || group->kind == OT_GROUP_CHAIN) &&
           ot_engine_merges(ctx, v, group, place, role);
}

const ot_group_rules ot_device_rules = {.name = "device", .supported = merges};
