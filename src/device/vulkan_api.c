/* Vulkan's loader, opened when a device is asked for. */
#if __has_include(<vulkan/vulkan.h>)

#include "vulkan_api.h"

#include <dlfcn.h>

ot_status vk_load(vulkan_api *vk, ot_device_error *e)
{
    void *library = dlopen("libvulkan.so.1", RTLD_NOW); /* it stays open: drivers have threads */
    if (!library)
        return dev_fail(e, OT_DEV_NOT_HERE,
                        "no Vulkan here: there is no libvulkan.so.1 (Debian: libvulkan1)");
    *(void **)&vk->vkGetInstanceProcAddr = dlsym(library, "vkGetInstanceProcAddr");
    if (!vk->vkGetInstanceProcAddr)
        return dev_fail(e, OT_DEV_NOT_HERE,
                        "no Vulkan here: the library lacks vkGetInstanceProcAddr");
#define X(name)                                                    \
    vk->name = (PFN_##name)vk->vkGetInstanceProcAddr(NULL, #name); \
    if (!vk->name) return dev_fail(e, OT_DEV_NOT_HERE, "no Vulkan here: the library lacks " #name);
    VULKAN_GLOBALS(X)
#undef X
    return OT_OK;
}

bool vk_load_instance(vulkan_api *vk, VkInstance instance)
{
    bool all = true;
#define X(name)                                                        \
    vk->name = (PFN_##name)vk->vkGetInstanceProcAddr(instance, #name); \
    all = all && vk->name;
    VULKAN_INSTANCE(X)
#undef X
    return all;
}

bool vk_load_device(vulkan_api *vk, VkDevice device)
{
    bool all = true;
#define X(name)                                                    \
    vk->name = (PFN_##name)vk->vkGetDeviceProcAddr(device, #name); \
    all = all && vk->name;
    VULKAN_DEVICE(X)
#undef X
    return all;
}

ot_status vk_failed(ot_device *dev, ot_device_error *e, const char *what, VkResult code)
{
    if (code == VK_ERROR_OUT_OF_HOST_MEMORY) return dev_fail_host_memory(e);
    if (code == VK_ERROR_DEVICE_LOST) {
        dev->lost = true;
        return dev_fail(e, OT_DEV_LOST, "Vulkan: %s: '%s' was lost", what, dev->facts.name);
    }
    return dev_fail(e, OT_DEV_FAILED, "Vulkan: %s: error %d", what, (int)code);
}

#endif
