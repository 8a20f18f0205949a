/* Vulkan's loader and shaderc, which are found when the program runs, and what the files of this
 * driver share. Private to device/. */
#ifndef OT_DEVICE_VULKAN_API_H
#define OT_DEVICE_VULKAN_API_H

#include "driver.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#define VULKAN_GLOBALS(X)         \
    X(vkCreateInstance)           \
    X(vkEnumerateInstanceVersion) \
    X(vkEnumerateInstanceLayerProperties)

#define VULKAN_INSTANCE(X)                      \
    X(vkDestroyInstance)                        \
    X(vkEnumeratePhysicalDevices)               \
    X(vkGetPhysicalDeviceProperties2)           \
    X(vkGetPhysicalDeviceFeatures2)             \
    X(vkGetPhysicalDeviceMemoryProperties)      \
    X(vkGetPhysicalDeviceQueueFamilyProperties) \
    X(vkCreateDevice)                           \
    X(vkGetDeviceProcAddr)

#define VULKAN_DEVICE(X)              \
    X(vkDestroyDevice)                \
    X(vkGetDeviceQueue)               \
    X(vkDeviceWaitIdle)               \
    X(vkCreateBuffer)                 \
    X(vkDestroyBuffer)                \
    X(vkGetBufferMemoryRequirements)  \
    X(vkAllocateMemory)               \
    X(vkFreeMemory)                   \
    X(vkBindBufferMemory)             \
    X(vkMapMemory)                    \
    X(vkUnmapMemory)                  \
    X(vkFlushMappedMemoryRanges)      \
    X(vkInvalidateMappedMemoryRanges) \
    X(vkCreateSemaphore)              \
    X(vkDestroySemaphore)             \
    X(vkWaitSemaphores)               \
    X(vkGetSemaphoreCounterValue)     \
    X(vkCreateCommandPool)            \
    X(vkDestroyCommandPool)           \
    X(vkAllocateCommandBuffers)       \
    X(vkBeginCommandBuffer)           \
    X(vkEndCommandBuffer)             \
    X(vkQueueSubmit)                  \
    X(vkCmdCopyBuffer)                \
    X(vkCmdFillBuffer)                \
    X(vkCmdPipelineBarrier)           \
    X(vkCmdBindPipeline)              \
    X(vkCmdBindDescriptorSets)        \
    X(vkCmdPushConstants)             \
    X(vkCmdDispatch)                  \
    X(vkCmdResetQueryPool)            \
    X(vkCmdWriteTimestamp)            \
    X(vkCreateQueryPool)              \
    X(vkDestroyQueryPool)             \
    X(vkGetQueryPoolResults)          \
    X(vkCreateShaderModule)           \
    X(vkDestroyShaderModule)          \
    X(vkCreateDescriptorSetLayout)    \
    X(vkDestroyDescriptorSetLayout)   \
    X(vkCreatePipelineLayout)         \
    X(vkDestroyPipelineLayout)        \
    X(vkCreateComputePipelines)       \
    X(vkDestroyPipeline)              \
    X(vkCreateDescriptorPool)         \
    X(vkDestroyDescriptorPool)        \
    X(vkResetDescriptorPool)          \
    X(vkAllocateDescriptorSets)       \
    X(vkUpdateDescriptorSets)

typedef struct vulkan_api {
#define X(name) PFN_##name name;
    VULKAN_GLOBALS(X)
    VULKAN_INSTANCE(X)
    VULKAN_DEVICE(X)
#undef X
    PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
} vulkan_api;

typedef struct vk_state {
    vulkan_api vk;
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger; /* VK_NULL_HANDLE: no validation */
    VkPhysicalDevice physical;
    VkPhysicalDeviceMemoryProperties memory;
    VkDevice device;
    uint32_t family;
    VkQueue queue;    /* every queue of the layer submits to it */
    double timestamp; /* seconds of a tick; 0: there are none */
} vk_state;

typedef struct vk_memory { /* a buffer and what lies behind it */
    VkBuffer buffer;
    VkDeviceMemory memory;
} vk_memory;

static inline vk_state *vk_state_of(const ot_device *dev) { return dev->api; }

/* The loader and its global functions. OT_DEV_NOT_HERE: there is no library. */
ot_status vk_load(vulkan_api *vk, ot_device_error *e);
/* Functions of the instance, of the device. */
bool vk_load_instance(vulkan_api *vk, VkInstance instance);
bool vk_load_device(vulkan_api *vk, VkDevice device);
/* What a call answered, as a typed error. */
ot_status vk_failed(ot_device *dev, ot_device_error *e, const char *what, VkResult code);

/* Memory of a buffer: the type that has all of preferred, else all of required. */
ot_status vk_memory_new(ot_device *dev, const char *name, int64_t bytes,
                        VkMemoryPropertyFlags required, VkMemoryPropertyFlags preferred,
                        ot_device_error *e, vk_memory *out);
void vk_memory_free(ot_device *dev, vk_memory *m);

/* vulkan_queue.c, vulkan_program.c: the rest of the table. */
ot_status vk_queue_new(ot_device *dev, dev_queue *q, ot_device_error *e);
void vk_queue_free(ot_device *dev, dev_queue *q);
ot_status vk_submit(ot_device *dev, dev_queue *q, const dev_command *c, ot_device_error *e);
ot_status vk_flush(ot_device *dev, dev_queue *q, ot_device_error *e);
ot_status vk_poll(ot_device *dev, dev_queue *q, ot_device_error *e);
ot_status vk_wait(ot_device *dev, dev_queue *q, uint64_t serial, ot_device_error *e);
ot_status vk_program_new(ot_device *dev, dev_program *p, const ot_dev_source *s,
                         ot_device_error *e);
void vk_program_free(ot_device *dev, dev_program *p);
ot_status vk_program_binary(ot_device *dev, dev_program *p, ot_arena *a, ot_device_error *e,
                            void **data, size_t *n);

/* vulkan_shader.c: SPIR-V of a text; *words is the caller's, to be freed. OT_DEV_COMPILE,
 * OT_DEV_UNSUPPORTED: there is no compiler. */
ot_status vk_compile(const char *name, const ot_dev_source *s, ot_device_error *e, uint32_t **words,
                     size_t *n);

/* The pipeline for launches with so many slices and bytes of push constants, made when it is
 * first asked for. */
typedef struct vk_pipeline {
    uint32_t n_slices, push_bytes;
    VkDescriptorSetLayout set;
    VkPipelineLayout layout;
    VkPipeline pipeline;
} vk_pipeline;
ot_status vk_pipeline_of(ot_device *dev, dev_program *p, uint32_t n_slices, uint32_t push_bytes,
                         ot_device_error *e, vk_pipeline *out);

#endif
