/* Vulkan under the layer of devices: instances, devices, memory, maps.
 *
 *   buffer   a VkBuffer with memory of its own, of the type that the kind asks for
 *   queue    a timeline semaphore whose value is the serial of the last command that is done
 *            (vulkan_queue.c)
 *   program  SPIR-V, and a pipeline for each signature that was launched (vulkan_program.c)
 */
#if __has_include(<vulkan/vulkan.h>)

#include "vulkan_api.h"

#define DEVICES_MAX 16
#define VALIDATION  "VK_LAYER_KHRONOS_validation"

/* ---- instances ---- */

static VKAPI_ATTR VkBool32 VKAPI_CALL note_finding(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                   VkDebugUtilsMessageTypeFlagsEXT type,
                                                   const VkDebugUtilsMessengerCallbackDataEXT *data,
                                                   void *user)
{
    ot_device *dev = user;
    (void)severity;
    (void)type;
    dev_lock(dev);
    if (dev->n_findings++ == 0)
        snprintf(dev->first_finding, sizeof dev->first_finding, "%s",
                 data->pMessage ? data->pMessage : "");
    dev_unlock(dev);
    return VK_FALSE;
}

static bool has_validation(const vulkan_api *vk)
{
    VkLayerProperties layers[64];
    uint32_t n = 64;
    VkResult code = vk->vkEnumerateInstanceLayerProperties(&n, layers);
    if (code != VK_SUCCESS && code != VK_INCOMPLETE) return false;
    for (uint32_t k = 0; k < n; k++)
        if (strcmp(layers[k].layerName, VALIDATION) == 0) return true;
    return false;
}

/* watch: the device that counts what the validation layer finds; NULL: no such layer. */
static ot_status make_instance(vulkan_api *vk, ot_device *watch, ot_device_error *e,
                               VkInstance *out)
{
    const char *layer = VALIDATION, *extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    uint32_t n = watch ? 1 : 0, version = 0;
    OT_TRY(vk_load(vk, e));
    if (vk->vkEnumerateInstanceVersion(&version) != VK_SUCCESS || version < VK_API_VERSION_1_2)
        return dev_fail(e, OT_DEV_NOT_HERE, "no Vulkan here: the library is older than 1.2");
    if (watch && !has_validation(vk))
        return dev_fail(e, OT_DEV_NOT_HERE, "no %s here (Debian: vulkan-validationlayers)", layer);
    VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                     .pApplicationName = "onnx-tile",
                                     .apiVersion = VK_API_VERSION_1_2};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &application,
                                 .enabledLayerCount = n,
                                 .ppEnabledLayerNames = &layer,
                                 .enabledExtensionCount = n,
                                 .ppEnabledExtensionNames = &extension};
    VkResult code = vk->vkCreateInstance(&info, NULL, out);
    if (code != VK_SUCCESS)
        return dev_fail(e, OT_DEV_NOT_HERE, "no Vulkan here: no instance: error %d", (int)code);
    return vk_load_instance(vk, *out)
               ? OT_OK
               : dev_fail(e, OT_DEV_NOT_HERE, "no Vulkan here: the library lacks functions");
}

/* One instance stays as long as the process: drivers are not loaded again for every device, and
 * leave nothing behind that a checker of leaks could not find any more. Never destroyed. */
static void keep_drivers(void)
{
    static vulkan_api vk;
    static VkInstance kept;
    ot_status s = make_instance(&vk, NULL, NULL, &kept);
    (void)s; /* then they are loaded again */
}

static void watch_findings(ot_device *dev, vk_state *x)
{
    PFN_vkCreateDebugUtilsMessengerEXT make =
        (PFN_vkCreateDebugUtilsMessengerEXT)x->vk.vkGetInstanceProcAddr(
            x->instance, "vkCreateDebugUtilsMessengerEXT");
    VkDebugUtilsMessengerCreateInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT,
        .pfnUserCallback = note_finding,
        .pUserData = dev};
    if (make) make(x->instance, &info, NULL, &x->messenger);
}

/* ---- devices ---- */

/* A family of queues that compute; OT_NONE: none. *ticks: its timestamps count. */
static uint32_t find_family(const vulkan_api *vk, VkPhysicalDevice physical, bool *ticks)
{
    VkQueueFamilyProperties families[16];
    uint32_t n = 16;
    vk->vkGetPhysicalDeviceQueueFamilyProperties(physical, &n, families);
    for (uint32_t k = 0; k < n; k++) {
        *ticks = families[k].timestampValidBits > 0;
        if (families[k].queueFlags & VK_QUEUE_COMPUTE_BIT) return k;
    }
    return OT_NONE;
}

/* Physical devices of Vulkan 1.2 that compute and have timelines; returns how many. */
static uint32_t find_devices(const vulkan_api *vk, VkInstance instance, VkPhysicalDevice *out)
{
    VkPhysicalDevice all[DEVICES_MAX];
    uint32_t n = DEVICES_MAX, good = 0;
    VkResult code = vk->vkEnumeratePhysicalDevices(instance, &n, all);
    if (code != VK_SUCCESS && code != VK_INCOMPLETE) return 0;
    for (uint32_t k = 0; k < n; k++) {
        bool ticks;
        VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
        VkPhysicalDeviceVulkan12Features f12 = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
        VkPhysicalDeviceFeatures2 f = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                       .pNext = &f12};
        vk->vkGetPhysicalDeviceProperties2(all[k], &p);
        if (p.properties.apiVersion < VK_API_VERSION_1_2 ||
            find_family(vk, all[k], &ticks) == OT_NONE)
            continue;
        vk->vkGetPhysicalDeviceFeatures2(all[k], &f);
        if (f12.timelineSemaphore) out[good++] = all[k];
    }
    return good;
}

static void ask_memory(const vulkan_api *vk, VkPhysicalDevice physical, ot_device_facts *f)
{
    const VkMemoryPropertyFlags both = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                       VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    VkPhysicalDeviceMemoryProperties m;
    vk->vkGetPhysicalDeviceMemoryProperties(physical, &m);
    for (uint32_t k = 0; k < m.memoryHeapCount; k++)
        if (m.memoryHeaps[k].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            f->memory_bytes += (int64_t)m.memoryHeaps[k].size;
    for (uint32_t k = 0; k < m.memoryTypeCount; k++)
        f->unified = f->unified || (m.memoryTypes[k].propertyFlags & both) == both;
}

static void ask(const vulkan_api *vk, VkPhysicalDevice physical, uint32_t number,
                ot_device_facts *f)
{
    VkPhysicalDeviceMaintenance3Properties m3 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                     .pNext = &m3};
    VkPhysicalDeviceVulkan11Features f11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
    VkPhysicalDeviceVulkan12Features f12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &f11};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &f12};
    vk->vkGetPhysicalDeviceProperties2(physical, &p);
    vk->vkGetPhysicalDeviceFeatures2(physical, &features);
    const VkPhysicalDeviceLimits *l = &p.properties.limits;
    uint64_t most = ot_min((int64_t)(m3.maxMemoryAllocationSize & INT64_MAX),
                           l->maxStorageBufferRange);
    uint32_t v = p.properties.apiVersion;
    *f = (ot_device_facts){.api = OT_DEV_VULKAN, .number = number};
    snprintf(f->name, sizeof f->name, "%.127s", p.properties.deviceName);
    ot_make_shown(f->name);
    snprintf(f->version, sizeof f->version, "Vulkan %u.%u.%u", VK_API_VERSION_MAJOR(v),
             VK_API_VERSION_MINOR(v), VK_API_VERSION_PATCH(v));
    ask_memory(vk, physical, f);
    f->is_cpu = p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    f->has_f64 = features.features.shaderFloat64;
    f->has_f16 = f12.shaderFloat16;
    f->has_i64 = features.features.shaderInt64;
    f->has_shorts = f11.storageBuffer16BitAccess;
    f->has_bytes = f12.storageBuffer8BitAccess;
    f->maps_stay = true;
    f->allocation_most = (int64_t)most;
    f->shared_bytes = l->maxComputeSharedMemorySize;
    f->alignment = ot_max(4, (int64_t)l->minStorageBufferOffsetAlignment);
    f->granule = ot_max(1, (int64_t)l->nonCoherentAtomSize);
    f->units = 1; /* Vulkan does not say */
    f->vector_floats = 1;
    f->items_most = l->maxComputeWorkGroupInvocations;
    f->groups_most = l->maxComputeWorkGroupCount[0];
    /* Mesa's llvmpipe ends the loops of a shader after so many iterations, without a word
     * (measured: products of depth 65000, 70000) */
    if (strncmp(f->name, "llvmpipe", 8) == 0) f->steps_most = 65535;
    f->slices_most = (uint32_t)ot_min(l->maxPerStageDescriptorStorageBuffers, OT_DEV_ARGS_MAX);
}

static const char NO_DEVICE[] =
    "no Vulkan device here (Debian: mesa-vulkan-drivers has one for the CPU)";

static ot_status add_devices(const vulkan_api *vk, VkInstance instance, ot_arena *a,
                             ot_device_list *l)
{
    VkPhysicalDevice found[DEVICES_MAX];
    uint32_t n = find_devices(vk, instance, found);
    if (n == 0) snprintf(l->missing[OT_DEV_VULKAN], sizeof l->missing[0], "%s", NO_DEVICE);
    ot_device_facts *all = OT_NEW_N(a, ot_device_facts, (size_t)l->n + n);
    if (!all) return OT_E_NOMEM;
    if (l->n) memcpy(all, l->devices, l->n * sizeof *all);
    for (uint32_t k = 0; k < n; k++) ask(vk, found[k], k, &all[l->n + k]);
    l->devices = all;
    l->n += n;
    return OT_OK;
}

static ot_status list(ot_arena *a, ot_device_list *l)
{
    vulkan_api vk = {0};
    VkInstance instance = VK_NULL_HANDLE;
    ot_device_error e = {0};
    ot_status s = OT_OK;
    if (make_instance(&vk, NULL, &e, &instance) != OT_OK)
        snprintf(l->missing[OT_DEV_VULKAN], sizeof l->missing[0], "%.255s", e.message);
    else
        s = add_devices(&vk, instance, a, l);
    if (instance && vk.vkDestroyInstance) vk.vkDestroyInstance(instance, NULL);
    return s;
}

static ot_status make_device(ot_device *dev, vk_state *x, ot_device_error *e)
{
    bool ticks = false;
    float priority = 1;
    x->family = find_family(&x->vk, x->physical, &ticks);
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueFamilyIndex = x->family,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkPhysicalDeviceVulkan11Features f11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .storageBuffer16BitAccess = dev->facts.has_shorts};
    VkPhysicalDeviceVulkan12Features f12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .pNext = &f11,
        .timelineSemaphore = VK_TRUE,
        .shaderFloat16 = dev->facts.has_f16,
        .storageBuffer8BitAccess = dev->facts.has_bytes};
    VkPhysicalDeviceFeatures2 features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &f12,
        .features = {.shaderFloat64 = dev->facts.has_f64, .shaderInt64 = dev->facts.has_i64}};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &features,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue};
    VkResult code = x->vk.vkCreateDevice(x->physical, &info, NULL, &x->device);
    if (code != VK_SUCCESS) return vk_failed(dev, e, "no device", code);
    if (!vk_load_device(&x->vk, x->device))
        return dev_fail(e, OT_DEV_NOT_HERE, "'%s' lacks functions of Vulkan 1.2", dev->facts.name);
    x->vk.vkGetDeviceQueue(x->device, x->family, 0, &x->queue);
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    x->vk.vkGetPhysicalDeviceProperties2(x->physical, &p);
    if (ticks) x->timestamp = (double)p.properties.limits.timestampPeriod * 1e-9;
    return OT_OK;
}

static ot_status open_state(ot_device *dev, vk_state *x, uint32_t number, ot_device_error *e)
{
    VkPhysicalDevice found[DEVICES_MAX];
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, keep_drivers);
    OT_TRY(make_instance(&x->vk, dev->options.validate ? dev : NULL, e, &x->instance));
    if (dev->options.validate) watch_findings(dev, x);
    uint32_t n = find_devices(&x->vk, x->instance, found);
    if (n == 0) return dev_fail(e, OT_DEV_NOT_HERE, "%s", NO_DEVICE);
    if (number >= n)
        return dev_fail(e, OT_DEV_NOT_HERE, "no Vulkan device %u: there %s %u, from 0", number,
                        n == 1 ? "is" : "are", n);
    x->physical = found[number];
    ask(&x->vk, x->physical, number, &dev->facts);
    x->vk.vkGetPhysicalDeviceMemoryProperties(x->physical, &x->memory);
    return make_device(dev, x, e);
}

static ot_status open_device(ot_device *dev, uint32_t number, ot_device_error *e)
{
    dev->api = calloc(1, sizeof(vk_state));
    return dev->api ? open_state(dev, dev->api, number, e) : dev_fail_host_memory(e);
}

static void close_device(ot_device *dev)
{
    vk_state *x = vk_state_of(dev);
    if (!x) return;
    if (x->device && x->vk.vkDestroyDevice) x->vk.vkDestroyDevice(x->device, NULL);
    if (x->messenger) {
        PFN_vkDestroyDebugUtilsMessengerEXT end =
            (PFN_vkDestroyDebugUtilsMessengerEXT)x->vk.vkGetInstanceProcAddr(
                x->instance, "vkDestroyDebugUtilsMessengerEXT");
        if (end) end(x->instance, x->messenger, NULL);
    }
    if (x->instance && x->vk.vkDestroyInstance) x->vk.vkDestroyInstance(x->instance, NULL);
    free(x);
}

/* ---- memory ---- */

ot_status vk_memory_new(ot_device *dev, const char *name, int64_t bytes,
                        VkMemoryPropertyFlags required, VkMemoryPropertyFlags preferred,
                        ot_device_error *e, vk_memory *out)
{
    vk_state *x = vk_state_of(dev);
    VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                               .size = (VkDeviceSize)bytes,
                               .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    uint32_t flags[VK_MAX_MEMORY_TYPES];
    char what[80];
    *out = (vk_memory){0};
    snprintf(what, sizeof what, "buffer '%s'", name);
    VkResult code = x->vk.vkCreateBuffer(x->device, &info, NULL, &out->buffer);
    if (code == VK_ERROR_OUT_OF_DEVICE_MEMORY) return dev_fail_full(dev, e, what, bytes);
    if (code != VK_SUCCESS) return vk_failed(dev, e, what, code);
    VkMemoryRequirements need;
    x->vk.vkGetBufferMemoryRequirements(x->device, out->buffer, &need);
    for (uint32_t k = 0; k < x->memory.memoryTypeCount; k++)
        flags[k] = x->memory.memoryTypes[k].propertyFlags;
    uint32_t type = dev_choose_memory(flags, x->memory.memoryTypeCount, need.memoryTypeBits,
                                      required, preferred);
    ot_status s = OT_OK;
    if (type == OT_NONE) {
        s = dev_fail(e, OT_DEV_NO_MEMORY_TYPE, "%s: '%s' has no memory type with properties %#x",
                     what, dev->facts.name, required);
    } else {
        VkMemoryAllocateInfo get = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                    .allocationSize = need.size,
                                    .memoryTypeIndex = type};
        code = x->vk.vkAllocateMemory(x->device, &get, NULL, &out->memory);
        if (code == VK_SUCCESS)
            code = x->vk.vkBindBufferMemory(x->device, out->buffer, out->memory, 0);
        if (code == VK_ERROR_OUT_OF_DEVICE_MEMORY)
            s = dev_fail_full(dev, e, what, bytes);
        else if (code != VK_SUCCESS)
            s = vk_failed(dev, e, what, code);
    }
    if (s != OT_OK) vk_memory_free(dev, out);
    return s;
}

void vk_memory_free(ot_device *dev, vk_memory *m)
{
    vk_state *x = vk_state_of(dev);
    x->vk.vkDestroyBuffer(x->device, m->buffer, NULL);
    x->vk.vkFreeMemory(x->device, m->memory, NULL);
    *m = (vk_memory){0};
}

static ot_status buffer_new(ot_device *dev, dev_buffer *b, ot_device_error *e)
{
    const VkMemoryPropertyFlags device = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                                cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    if (b->host)
        return dev_fail(e, OT_DEV_NO_MEMORY_TYPE,
                        "buffer '%s': Vulkan imports no memory of the host here", b->name);
    vk_memory *m = calloc(1, sizeof *m);
    if (!m) return dev_fail_host_memory(e);
    VkMemoryPropertyFlags required = b->kind == OT_DEV_MEM_HOST      ? host
                                     : b->kind == OT_DEV_MEM_UNIFIED ? device | host
                                                                     : 0;
    VkMemoryPropertyFlags preferred = b->kind == OT_DEV_MEM_HOST ? host | cached
                                                                 : required | device;
    ot_status s = vk_memory_new(dev, b->name, b->bytes, required, preferred, e, m);
    if (s == OT_OK)
        b->api = m;
    else
        free(m);
    return s;
}

static void buffer_free(ot_device *dev, dev_buffer *b)
{
    vk_memory_free(dev, b->api);
    free(b->api);
}

/* ---- maps ---- */

static VkMappedMemoryRange range_of(const dev_buffer *b, int64_t offset, int64_t bytes)
{
    return (VkMappedMemoryRange){.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                 .memory = ((const vk_memory *)b->api)->memory,
                                 .offset = (VkDeviceSize)offset,
                                 .size = offset + bytes == b->bytes ? VK_WHOLE_SIZE
                                                                    : (VkDeviceSize)bytes};
}

static ot_status sync_buffer(ot_device *dev, dev_buffer *b, int64_t offset, int64_t bytes,
                             bool to_device, ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    VkMappedMemoryRange r = range_of(b, offset, bytes);
    VkResult code = to_device ? x->vk.vkFlushMappedMemoryRanges(x->device, 1, &r)
                              : x->vk.vkInvalidateMappedMemoryRanges(x->device, 1, &r);
    return code == VK_SUCCESS ? OT_OK : vk_failed(dev, e, "a map cannot be brought in step", code);
}

static ot_status map_buffer(ot_device *dev, dev_buffer *b, ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    VkResult code = x->vk.vkMapMemory(x->device, ((vk_memory *)b->api)->memory, 0, VK_WHOLE_SIZE, 0,
                                      &b->mapped);
    if (code != VK_SUCCESS) return vk_failed(dev, e, "a buffer cannot be mapped", code);
    return sync_buffer(dev, b, 0, b->bytes, false, e);
}

static void unmap_buffer(ot_device *dev, dev_buffer *b)
{
    vk_state *x = vk_state_of(dev);
    x->vk.vkUnmapMemory(x->device, ((vk_memory *)b->api)->memory);
    b->mapped = NULL;
}

const dev_driver dev_vulkan = {.api = OT_DEV_VULKAN,
                               .list = list,
                               .open = open_device,
                               .close = close_device,
                               .buffer_new = buffer_new,
                               .buffer_free = buffer_free,
                               .map = map_buffer,
                               .unmap = unmap_buffer,
                               .sync = sync_buffer,
                               .queue_new = vk_queue_new,
                               .queue_free = vk_queue_free,
                               .submit = vk_submit,
                               .flush = vk_flush,
                               .poll = vk_poll,
                               .wait = vk_wait,
                               .program_new = vk_program_new,
                               .program_free = vk_program_free,
                               .program_binary = vk_program_binary};

#endif
