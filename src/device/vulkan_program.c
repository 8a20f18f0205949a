/* Programs of Vulkan: SPIR-V (of GLSL: vulkan_shader.c), and pipelines by signature. */
#if __has_include(<vulkan/vulkan.h>)

#include "vulkan_api.h"

typedef struct vk_program {
    uint32_t *words; /* [n_words] SPIR-V */
    size_t n_words;
    VkShaderModule module;
    vk_pipeline *pipelines; /* [n] */
    uint32_t n;
} vk_program;

static ot_status keep_words(vk_program *p, const void *data, size_t bytes, ot_device_error *e)
{
    p->n_words = bytes / 4;
    p->words = malloc(bytes ? bytes : 1);
    if (!p->words) return dev_fail_host_memory(e);
    memcpy(p->words, data, bytes);
    return OT_OK;
}

/* ---- programs ---- */

static void free_program(ot_device *dev, vk_program *p)
{
    vk_state *x = vk_state_of(dev);
    for (uint32_t k = 0; k < p->n; k++) {
        x->vk.vkDestroyPipeline(x->device, p->pipelines[k].pipeline, NULL);
        x->vk.vkDestroyPipelineLayout(x->device, p->pipelines[k].layout, NULL);
        x->vk.vkDestroyDescriptorSetLayout(x->device, p->pipelines[k].set, NULL);
    }
    x->vk.vkDestroyShaderModule(x->device, p->module, NULL);
    free(p->pipelines);
    free(p->words);
    free(p);
}

static ot_status fill_program(ot_device *dev, dev_program *d, vk_program *p, const ot_dev_source *s,
                              ot_device_error *e)
{
    vk_state *x = vk_state_of(dev);
    if (s->language == OT_DEV_BINARY &&
        (s->n < 20 || s->n % 4 || memcmp(s->text, "\x03\x02\x23\x07", 4) != 0))
        return dev_fail(e, OT_DEV_COMPILE, "program '%s': no SPIR-V", d->name);
    if (s->language == OT_DEV_BINARY)
        OT_TRY(keep_words(p, s->text, s->n, e));
    else
        OT_TRY(vk_compile(d->name, s, e, &p->words, &p->n_words));
    VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                     .codeSize = p->n_words * 4,
                                     .pCode = p->words};
    VkResult code = x->vk.vkCreateShaderModule(x->device, &info, NULL, &p->module);
    return code == VK_SUCCESS ? OT_OK : vk_failed(dev, e, "no program", code);
}

ot_status vk_program_new(ot_device *dev, dev_program *d, const ot_dev_source *s, ot_device_error *e)
{
    vk_program *p = calloc(1, sizeof *p);
    if (!p) return dev_fail_host_memory(e);
    ot_status st = fill_program(dev, d, p, s, e);
    if (st == OT_OK)
        d->api = p;
    else
        free_program(dev, p);
    return st;
}

void vk_program_free(ot_device *dev, dev_program *d) { free_program(dev, d->api); }

ot_status vk_program_binary(ot_device *dev, dev_program *d, ot_arena *a, ot_device_error *e,
                            void **data, size_t *n)
{
    const vk_program *p = d->api;
    (void)dev;
    *n = p->n_words * 4;
    *data = ot_memdup(a, p->words, *n);
    return *data ? OT_OK : dev_fail_host_memory(e);
}

/* ---- pipelines ---- */

static VkResult make_layouts(vk_state *x, vk_pipeline *p)
{
    VkDescriptorSetLayoutBinding bindings[OT_DEV_ARGS_MAX];
    for (uint32_t k = 0; k < p->n_slices; k++)
        bindings[k] = (VkDescriptorSetLayoutBinding){
            .binding = k,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = p->n_slices,
        .pBindings = bindings};
    VkResult code = x->vk.vkCreateDescriptorSetLayout(x->device, &set, NULL, &p->set);
    if (code != VK_SUCCESS) return code;
    VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, p->push_bytes};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                         .setLayoutCount = 1,
                                         .pSetLayouts = &p->set,
                                         .pushConstantRangeCount = p->push_bytes ? 1 : 0,
                                         .pPushConstantRanges = &push};
    return x->vk.vkCreatePipelineLayout(x->device, &layout, NULL, &p->layout);
}

ot_status vk_pipeline_of(ot_device *dev, dev_program *d, uint32_t n_slices, uint32_t push_bytes,
                         ot_device_error *e, vk_pipeline *out)
{
    vk_state *x = vk_state_of(dev);
    vk_program *p = d->api;
    for (uint32_t k = 0; k < p->n; k++) {
        *out = p->pipelines[k];
        if (out->n_slices == n_slices && out->push_bytes == push_bytes) return OT_OK;
    }
    vk_pipeline *more = realloc(p->pipelines, (p->n + 1) * sizeof *more);
    if (!more) return dev_fail_host_memory(e);
    p->pipelines = more;
    /* what of it could be made is freed with the program */
    vk_pipeline *made = &p->pipelines[p->n++];
    *made = (vk_pipeline){.n_slices = n_slices, .push_bytes = push_bytes};
    VkResult code = make_layouts(x, made);
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = p->module,
                  .pName = "main"},
        .layout = made->layout};
    if (code == VK_SUCCESS)
        code = x->vk.vkCreateComputePipelines(x->device, VK_NULL_HANDLE, 1, &info, NULL,
                                              &made->pipeline);
    if (code != VK_SUCCESS) {
        made->n_slices = OT_NONE; /* it is asked for again */
        return vk_failed(dev, e, "no pipeline", code);
    }
    *out = *made;
    return OT_OK;
}

#endif
