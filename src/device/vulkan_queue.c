/* Queues of Vulkan: a command is a command buffer of its own, which waits for the one before it
 * and signals its serial.
 *
 *   slot  command buffer, timestamps, descriptors, staging: of one command, used again once that is
 *         done
 *
 * Bytes to and from the host go through staging memory of the slot: filled when the command is
 * queued, read when it is retired.
 */
#if __has_include(<vulkan/vulkan.h>)

#include "vulkan_api.h"

typedef struct vk_slot {
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkQueryPool times;            /* start, end; none: VK_NULL_HANDLE */
    VkDescriptorPool descriptors; /* of one set; made with the first launch */
    vk_memory staging;
    int64_t staging_bytes; /* 0: none */
    uint64_t serial;       /* of the command under way; 0: the slot is free */
    double asked;          /* when it was queued, for devices without timestamps */
    void *sink;            /* DOWNLOAD: where the staging's bytes go */
    int64_t sink_bytes;
} vk_slot;

typedef struct vk_queue_state {
    VkSemaphore done; /* timeline */
    vk_slot **slots;  /* [n] */
    uint32_t n, cap;
} vk_queue_state;

static void free_slot(ot_device *dev, vk_slot *s)
{
    vk_state *x = vk_state_of(dev);
    if (s->staging_bytes) vk_memory_free(dev, &s->staging);
    x->vk.vkDestroyDescriptorPool(x->device, s->descriptors, NULL);
    x->vk.vkDestroyQueryPool(x->device, s->times, NULL);
    x->vk.vkDestroyCommandPool(x->device, s->pool, NULL);
    free(s);
}

static ot_status fill_slot(ot_device *dev, vk_slot *s, ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                    .queueFamilyIndex = x->family};
    VkResult code = x->vk.vkCreateCommandPool(x->device, &pool, NULL, &s->pool);
    VkCommandBufferAllocateInfo one = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                       .commandPool = s->pool,
                                       .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                       .commandBufferCount = 1};
    if (code == VK_SUCCESS) code = x->vk.vkAllocateCommandBuffers(x->device, &one, &s->commands);
    VkQueryPoolCreateInfo times = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                   .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                   .queryCount = 2};
    if (code == VK_SUCCESS && x->timestamp > 0)
        code = x->vk.vkCreateQueryPool(x->device, &times, NULL, &s->times);
    return code == VK_SUCCESS ? OT_OK : vk_failed(dev, e, "no command buffer", code);
}

/* A slot that is free. */
static ot_status get_slot(ot_device *dev, vk_queue_state *q, ot_device_error *e, vk_slot **out)
{
    *out = NULL;
    for (uint32_t k = 0; k < q->n && !*out; k++)
        if (q->slots[k]->serial == 0) *out = q->slots[k];
    if (*out) return OT_OK;
    if (q->n == q->cap) {
        uint32_t want = q->cap ? q->cap * 2 : 8;
        vk_slot **more = realloc(q->slots, want * sizeof *more);
        if (!more) return dev_fail_host_memory(e);
        q->slots = more;
        q->cap = want;
    }
    vk_slot *s = calloc(1, sizeof *s);
    if (!s) return dev_fail_host_memory(e);
    ot_status st = fill_slot(dev, s, e);
    if (st != OT_OK) {
        free_slot(dev, s);
        return st;
    }
    *out = q->slots[q->n++] = s;
    return OT_OK;
}

/* Staging of the slot for so many bytes, mapped only while it is copied. */
static ot_status get_staging(ot_device *dev, vk_slot *s, int64_t bytes, ot_device_error *e)
{
    const VkMemoryPropertyFlags need = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    if (s->staging_bytes >= bytes) return OT_OK;
    if (s->staging_bytes) vk_memory_free(dev, &s->staging);
    s->staging_bytes = 0;
    OT_TRY(vk_memory_new(dev, "staging", bytes, need, need | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, e,
                         &s->staging));
    s->staging_bytes = bytes;
    return OT_OK;
}

static ot_status copy_staging(ot_device *dev, vk_slot *s, void *sink, const void *source,
                              int64_t bytes, ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    void *at;
    VkResult code = x->vk.vkMapMemory(x->device, s->staging.memory, 0, VK_WHOLE_SIZE, 0, &at);
    if (code != VK_SUCCESS) return vk_failed(dev, e, "staging cannot be mapped", code);
    memcpy(sink ? sink : at, sink ? at : source, (size_t)bytes);
    x->vk.vkUnmapMemory(x->device, s->staging.memory);
    return OT_OK;
}

/* ---- queues ---- */

ot_status vk_queue_new(ot_device *dev, dev_queue *q, ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    VkSemaphoreTypeCreateInfo timeline = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                  .pNext = &timeline};
    vk_queue_state *s = calloc(1, sizeof *s);
    if (!s) return dev_fail_host_memory(e);
    VkResult code = x->vk.vkCreateSemaphore(x->device, &info, NULL, &s->done);
    if (code != VK_SUCCESS) {
        free(s);
        return vk_failed(dev, e, "no queue", code);
    }
    q->api = s;
    return OT_OK;
}

void vk_queue_free(ot_device *dev, dev_queue *q)
{
    vk_state *x = vk_state_of(dev);
    vk_queue_state *s = q->api;
    if (q->done < q->issued) x->vk.vkDeviceWaitIdle(x->device);
    for (uint32_t k = 0; k < s->n; k++) free_slot(dev, s->slots[k]);
    x->vk.vkDestroySemaphore(x->device, s->done, NULL);
    free(s->slots);
    free(s);
}

ot_status vk_flush(ot_device *dev, dev_queue *q, ot_device_error *e)
{
    (void)dev;
    (void)q;
    (void)e;
    return OT_OK; /* every command is submitted at once */
}

static void retire(ot_device *dev, dev_queue *q, vk_slot *s)
{
    vk_state *x = vk_state_of(dev);
    uint64_t ticks[2] = {0};
    double start = s->asked, end = ot_now();
    bool ok = !s->sink || copy_staging(dev, s, s->sink, NULL, s->sink_bytes, NULL) == OT_OK;
    if (s->times &&
        x->vk.vkGetQueryPoolResults(x->device, s->times, 0, 2, sizeof ticks, ticks, sizeof ticks[0],
                                    VK_QUERY_RESULT_64_BIT) == VK_SUCCESS) {
        start = (double)ticks[0] * x->timestamp;
        end = (double)ticks[1] * x->timestamp;
    }
    dev_retire(dev, q, s->serial, start, end, ok);
    s->serial = 0;
    s->sink = NULL;
}

ot_status vk_poll(ot_device *dev, dev_queue *q, ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    vk_queue_state *s = q->api;
    uint64_t value = 0;
    VkResult code = x->vk.vkGetSemaphoreCounterValue(x->device, s->done, &value);
    if (code != VK_SUCCESS) return vk_failed(dev, e, "a queue cannot be read", code);
    while (q->done < value) {
        uint32_t k = 0;
        while (k < s->n && s->slots[k]->serial != q->done + 1) k++;
        if (k == s->n) OT_BUG("a command without a slot");
        retire(dev, q, s->slots[k]);
    }
    return OT_OK;
}

ot_status vk_wait(ot_device *dev, dev_queue *q, uint64_t serial, ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &((vk_queue_state *)q->api)->done,
                                .pValues = &serial};
    VkResult code = x->vk.vkWaitSemaphores(x->device, &info, UINT64_MAX);
    return code == VK_SUCCESS ? OT_OK : vk_failed(dev, e, "a command cannot be waited for", code);
}

/* ---- commands ---- */

static VkBuffer buffer_of(const dev_part *p) { return ((const vk_memory *)p->buffer->api)->buffer; }

/* Values one after the other, each aligned to its size and to four bytes; returns the bytes. */
static uint32_t push_values(const ot_dev_launch *l, uint8_t data[OT_DEV_ARGS_MAX * 8])
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < l->n_args; k++) {
        const ot_dev_arg *a = &l->args[k];
        uint32_t size = a->bytes > 4 ? 8 : 4;
        if (a->kind != OT_DEV_ARG_VALUE) continue;
        n = (n + size - 1) / size * size;
        memcpy(data + n, &a->value, size);
        n += size;
    }
    return n;
}

static ot_status bind_slices(ot_device *dev, vk_slot *s, const dev_command *c, const vk_pipeline *p,
                             VkDescriptorSet *set, ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, OT_DEV_ARGS_MAX};
    VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                       .maxSets = 1,
                                       .poolSizeCount = 1,
                                       .pPoolSizes = &size};
    VkResult code = s->descriptors
                        ? x->vk.vkResetDescriptorPool(x->device, s->descriptors, 0)
                        : x->vk.vkCreateDescriptorPool(x->device, &pool, NULL, &s->descriptors);
    VkDescriptorSetAllocateInfo one = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                       .descriptorPool = s->descriptors,
                                       .descriptorSetCount = 1,
                                       .pSetLayouts = &p->set};
    if (code == VK_SUCCESS) code = x->vk.vkAllocateDescriptorSets(x->device, &one, set);
    if (code != VK_SUCCESS) return vk_failed(dev, e, "no descriptors", code);
    VkDescriptorBufferInfo infos[OT_DEV_ARGS_MAX];
    VkWriteDescriptorSet writes[OT_DEV_ARGS_MAX];
    uint32_t n = 0;
    for (uint32_t k = 0; k < c->launch->n_args; k++) {
        const dev_part *part = &c->parts[k];
        if (!part->buffer) continue;
        infos[n] = (VkDescriptorBufferInfo){buffer_of(part), (VkDeviceSize)part->offset,
                                            (VkDeviceSize)part->bytes};
        writes[n] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                           .dstSet = *set,
                                           .dstBinding = n,
                                           .descriptorCount = 1,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .pBufferInfo = &infos[n]};
        n++;
    }
    x->vk.vkUpdateDescriptorSets(x->device, n, writes, 0, NULL);
    return OT_OK;
}

static ot_status record_launch(ot_device *dev, vk_slot *s, const dev_command *c, ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    const ot_dev_launch *l = c->launch;
    uint8_t values[OT_DEV_ARGS_MAX * 8];
    uint32_t n_slices = 0, n_push = push_values(l, values);
    vk_pipeline p;
    VkDescriptorSet set = VK_NULL_HANDLE;
    for (uint32_t k = 0; k < l->n_args; k++) {
        n_slices += c->parts[k].buffer != NULL;
        if (l->args[k].kind == OT_DEV_ARG_SHARED)
            return dev_fail(e, OT_DEV_UNSUPPORTED,
                            "kernel '%s': Vulkan's shared memory stands in the text, argument %u "
                            "cannot give it",
                            l->entry, k);
    }
    OT_TRY(vk_pipeline_of(dev, c->program, n_slices, n_push, e, &p));
    if (n_slices) OT_TRY(bind_slices(dev, s, c, &p, &set, e));
    x->vk.vkCmdBindPipeline(s->commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.pipeline);
    if (n_slices)
        x->vk.vkCmdBindDescriptorSets(s->commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.layout, 0, 1,
                                      &set, 0, NULL);
    if (n_push)
        x->vk.vkCmdPushConstants(s->commands, p.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, n_push,
                                 values);
    x->vk.vkCmdDispatch(s->commands, l->groups[0], l->groups[1], l->groups[2]);
    return OT_OK;
}

static ot_status record(ot_device *dev, vk_slot *s, const dev_command *c, ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    VkBufferCopy copy = {0, 0, 0};
    switch (c->verb) {
    case DEV_UPLOAD:
        OT_TRY(get_staging(dev, s, c->to.bytes, e));
        OT_TRY(copy_staging(dev, s, NULL, c->source, c->to.bytes, e));
        copy = (VkBufferCopy){0, (VkDeviceSize)c->to.offset, (VkDeviceSize)c->to.bytes};
        x->vk.vkCmdCopyBuffer(s->commands, s->staging.buffer, buffer_of(&c->to), 1, &copy);
        return OT_OK;
    case DEV_DOWNLOAD:
        OT_TRY(get_staging(dev, s, c->from.bytes, e));
        copy = (VkBufferCopy){(VkDeviceSize)c->from.offset, 0, (VkDeviceSize)c->from.bytes};
        x->vk.vkCmdCopyBuffer(s->commands, buffer_of(&c->from), s->staging.buffer, 1, &copy);
        return OT_OK;
    case DEV_COPY:
        copy = (VkBufferCopy){(VkDeviceSize)c->from.offset, (VkDeviceSize)c->to.offset,
                              (VkDeviceSize)c->to.bytes};
        x->vk.vkCmdCopyBuffer(s->commands, buffer_of(&c->from), buffer_of(&c->to), 1, &copy);
        return OT_OK;
    case DEV_FILL:
        x->vk.vkCmdFillBuffer(s->commands, buffer_of(&c->to), (VkDeviceSize)c->to.offset,
                              (VkDeviceSize)c->to.bytes, c->pattern);
        return OT_OK;
    default: return record_launch(dev, s, c, e);
    }
}

/* The command between its timestamps, and what makes its writes visible to the host. */
static ot_status record_all(ot_device *dev, vk_slot *s, const dev_command *c, ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VkMemoryBarrier visible = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    VkResult code = x->vk.vkBeginCommandBuffer(s->commands, &begin); /* resets it */
    if (code != VK_SUCCESS) return vk_failed(dev, e, "a command cannot be recorded", code);
    if (s->times) x->vk.vkCmdResetQueryPool(s->commands, s->times, 0, 2);
    if (s->times)
        x->vk.vkCmdWriteTimestamp(s->commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, s->times, 0);
    ot_status st = record(dev, s, c, e);
    x->vk.vkCmdPipelineBarrier(s->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                               VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &visible, 0, NULL, 0, NULL);
    if (s->times)
        x->vk.vkCmdWriteTimestamp(s->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, s->times, 1);
    code = x->vk.vkEndCommandBuffer(s->commands);
    if (st == OT_OK && code != VK_SUCCESS)
        st = vk_failed(dev, e, "a command cannot be recorded", code);
    return st;
}

ot_status vk_submit(ot_device *dev, dev_queue *q, const dev_command *c, ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    vk_queue_state *state = q->api;
    VkSemaphore waits[DEV_QUEUES_MOST + 1];
    VkPipelineStageFlags stages[DEV_QUEUES_MOST + 1];
    uint64_t values[DEV_QUEUES_MOST + 1];
    uint32_t n = 0;
    vk_slot *s;
    OT_TRY(get_slot(dev, state, e, &s));
    OT_TRY(record_all(dev, s, c, e));
    for (uint32_t k = 0; k < c->n_waits; k++, n++) {
        waits[n] = ((vk_queue_state *)c->waits[k].queue->api)->done;
        values[n] = c->waits[k].serial;
    }
    if (c->serial > 1) {
        waits[n] = state->done;
        values[n++] = c->serial - 1;
    }
    for (uint32_t k = 0; k < n; k++) stages[k] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = n,
        .pWaitSemaphoreValues = values,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &c->serial};
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &timeline,
                         .waitSemaphoreCount = n,
                         .pWaitSemaphores = waits,
                         .pWaitDstStageMask = stages,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &s->commands,
                         .signalSemaphoreCount = 1,
                         .pSignalSemaphores = &state->done};
    VkResult code = x->vk.vkQueueSubmit(x->queue, 1, &info, VK_NULL_HANDLE);
    if (code != VK_SUCCESS) return vk_failed(dev, e, "a command cannot be submitted", code);
    s->serial = c->serial;
    s->asked = ot_now();
    s->sink = c->verb == DEV_DOWNLOAD ? c->sink : NULL;
    s->sink_bytes = c->from.bytes;
    return OT_OK;
}

#endif
