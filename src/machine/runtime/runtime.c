/* The runtimes by name, and what follows from their tables. */
#include "runtime.h"

const ot_runtime *const ot_runtimes[OT_RUNTIMES] = {
    &ot_runtime_onnxruntime,  &ot_runtime_openvino,     &ot_runtime_loop,
    &ot_runtime_portable,     &ot_runtime_engine,       &ot_runtime_device,
    &ot_runtime_device_plain, &ot_runtime_device_while, &ot_runtime_device_while_plain,
    &ot_runtime_gpu,          &ot_runtime_gpu_plain,    &ot_runtime_engine_device,
};

const ot_runtime *ot_runtime_named(const char *name)
{
    for (size_t k = 0; k < OT_RUNTIMES; k++)
        if (strcmp(ot_runtimes[k]->name, name) == 0) return ot_runtimes[k];
    return NULL;
}

const ot_runtime *ot_runtime_asked(const char *name, char *names, size_t size)
{
    const ot_runtime *r = ot_runtime_named(name);
    if (r && r->summary) return r;
    *names = '\0';
    for (size_t k = 0; k < OT_RUNTIMES; k++) {
        size_t used = strlen(names);
        if (ot_runtimes[k]->summary)
            snprintf(names + used, size - used, "%s%s", used ? ", " : "", ot_runtimes[k]->name);
    }
    return NULL;
}

ot_status ot_runtime_list(FILE *f)
{
    int rc = 0;
    for (size_t k = 0; k < OT_RUNTIMES && rc >= 0; k++)
        if (ot_runtimes[k]->summary)
            rc = fprintf(f, "%-16s %s\n", ot_runtimes[k]->name, ot_runtimes[k]->summary);
    return rc < 0 ? OT_E_SYSTEM : OT_OK;
}

const ot_runtime *ot_runtime_of(bool cache, bool fuses)
{
    if (cache) return fuses ? &ot_runtime_onnxruntime : &ot_runtime_gpu_plain;
    return fuses ? &ot_runtime_device : &ot_runtime_device_plain;
}

const ot_runtime *ot_runtime_with_lanes(const ot_runtime *r, uint32_t lanes)
{
    if (lanes == 8 && r == &ot_runtime_onnxruntime) return &ot_runtime_onnxruntime_8;
    return lanes == 8 && r == &ot_runtime_openvino ? &ot_runtime_openvino_8 : r;
}

const ot_runtime *ot_runtime_emitting(const ot_runtime *r, bool cache)
{
    if (ot_runtime_in_classes(r) && ot_runtime_drives(r, cache)) return r;
    if (r == &ot_runtime_gpu || r == &ot_runtime_gpu_plain) return &ot_runtime_engine_device;
    if (cache) return &ot_runtime_engine;
    return ot_runtime_fuses(r) ? &ot_runtime_device_while : &ot_runtime_device_while_plain;
}

static bool contains(const ot_op *ops, uint32_t n, ot_op op)
{
    for (uint32_t k = 0; k < n; k++)
        if (ops[k] == op) return true;
    return false;
}

double ot_runtime_slowness(const ot_runtime *r, const ot_node *n)
{
    for (uint32_t k = 0; k < r->n_slow; k++) {
        const ot_op_factor *x = &r->slow[k];
        if (x->op == n->op && (!x->mode || strcmp(ot_attr_str(n, "mode", "nearest"), x->mode) == 0))
            return x->factor;
    }
    return 1;
}

double ot_runtime_block_fill(const ot_runtime *r, int64_t channels)
{
    if (r->conv.block == 0) return 1;
    return (double)channels / (double)(r->conv.block * ot_ceil_div(channels, r->conv.block));
}

double ot_runtime_conv_part(const ot_runtime *r, int64_t out, int64_t in, double few)
{
    double part = ot_runtime_block_fill(r, out);
    for (uint32_t k = 0; k < r->conv.n_few; k++) {
        const double here = r->conv.few[k].part * (few > 0 ? few : 1);
        if (in < r->conv.few[k].below) return here < 1 ? part * here : part;
    }
    return r->conv.blocks_input ? part * ot_runtime_block_fill(r, in) : part;
}

bool ot_runtime_makes_blocks(const ot_runtime *r, const ot_node *n)
{
    return r->blocks.has_blocks && contains(r->blocks.makes, r->blocks.n_makes, n->op);
}

bool ot_runtime_keeps_blocks(const ot_runtime *r, const ot_node *n)
{
    if (!r->blocks.has_blocks) return false;
    if (contains(r->blocks.keeps, r->blocks.n_keeps, n->op)) return true;
    return r->blocks.chains_keep &&
           (ot_op_access(n->op) == OT_ACC_POINTWISE || n->op == OT_OP_BatchNormalization);
}

bool ot_runtime_in_place(const ot_runtime *r, const ot_node *n)
{
    return r->in_place && ot_op_row_of(n->op)->place != OT_OVER_NONE;
}

bool ot_runtime_overwrites(const ot_runtime *r, const ot_node *n, uint32_t in)
{
    if (!r->in_place || !ot_op_over(n->op, in)) return false;
    return !r->overwriters || contains(r->overwriters, r->n_overwriters, n->op);
}

const ot_op_memory *ot_runtime_scratch(const ot_runtime *r, const ot_node *n)
{
    for (uint32_t k = 0; k < r->n_scratch; k++)
        if (r->scratch[k].op == n->op) return &r->scratch[k];
    return NULL;
}
