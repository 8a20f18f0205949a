/* Which operator has which kernel. */
#include "dg_internal.h"

static const struct {
    ot_op op;
    bool (*make)(dg_build *b, const ot_node *n);
    /* makes one number for each element of its result: others may follow in registers */
    bool posts;
} HEADS[] = {
    {OT_OP_Conv, dg_conv, true},
    {OT_OP_ConvTranspose, dg_conv_transpose, true},
    {OT_OP_MaxPool, dg_pool, true},
    {OT_OP_AveragePool, dg_pool, true},
    {OT_OP_MatMul, dg_product, true},
    {OT_OP_Gemm, dg_product, true},
    {OT_OP_GlobalAveragePool, dg_reduce, true},
    {OT_OP_GlobalMaxPool, dg_reduce, true},
    {OT_OP_ReduceMean, dg_reduce, true},
    {OT_OP_ReduceSum, dg_reduce, true},
    {OT_OP_ReduceMax, dg_reduce, true},
    {OT_OP_ReduceMin, dg_reduce, true},
    {OT_OP_ReduceProd, dg_reduce, true},
    {OT_OP_ReduceL1, dg_reduce, true},
    {OT_OP_ReduceL2, dg_reduce, true},
    {OT_OP_ReduceLogSum, dg_reduce, true},
    {OT_OP_ReduceSumSquare, dg_reduce, true},
    {OT_OP_ArgMax, dg_arg_reduce, false},
    {OT_OP_ArgMin, dg_arg_reduce, false},
    {OT_OP_Softmax, dg_softmax, false},
    {OT_OP_LogSoftmax, dg_softmax, false},
    {OT_OP_LayerNormalization, dg_norm, false},
    {OT_OP_RMSNormalization, dg_norm, false},
    {OT_OP_InstanceNormalization, dg_norm, false},
    {OT_OP_GroupNormalization, dg_norm, false},
    {OT_OP_LpNormalization, dg_norm, false},
    {OT_OP_LRN, dg_norm, false},
    {OT_OP_Moments, dg_moments, false},
    {OT_OP_NormFactors, dg_norm_factors, false},
    {OT_OP_Resize, dg_resize, true},
    {OT_OP_Upsample, dg_resize, true},
    {OT_OP_Concat, dg_concat, false},
    {OT_OP_Slice, dg_views, false},
    {OT_OP_Split, dg_views, false},
    {OT_OP_Transpose, dg_views, false},
    {OT_OP_Expand, dg_views, false},
    {OT_OP_Tile, dg_repeat, false},
    {OT_OP_DepthToSpace, dg_block, false},
    {OT_OP_SpaceToDepth, dg_block, false},
    {OT_OP_Pad, dg_pad, false},
    {OT_OP_Gather, dg_gather, false},
    {OT_OP_Reshape, dg_reshape, false},
    {OT_OP_Flatten, dg_reshape, false},
    {OT_OP_Squeeze, dg_reshape, false},
    {OT_OP_Unsqueeze, dg_reshape, false},
};

bool ot_dg_takes_posts(const ot_node *n)
{
    for (size_t k = 0; k < sizeof HEADS / sizeof *HEADS; k++)
        if (HEADS[k].op == n->op) return HEADS[k].posts;
    return false;
}

static bool make(dg_build *b)
{
    const ot_node *n = b->g->nodes[0];
    for (uint32_t k = 0; k < b->g->n_nodes; k++)
        for (uint32_t j = 0; j < b->g->nodes[k]->n_in; j++)
            if (b->g->nodes[k]->in[j] != OT_NONE &&
                b->g->arrays[b->g->nodes[k]->in[j]].dtype == OT_DT_UNKNOWN)
                return dg_refuse(b, "an operand whose shape is not known before it runs");
    for (size_t k = 0; k < sizeof HEADS / sizeof *HEADS; k++)
        if (HEADS[k].op == n->op) return HEADS[k].make(b, n);
    if (ot_dg_is_element(n, b->g->arrays)) return dg_chain(b);
    return dg_refuse(b, "an operator that has no kernel");
}

static ot_status close_build(const dg_build *b, ot_diag *d, ot_dg_code *out)
{
    *out = (ot_dg_code){.kernels = b->done, .n = b->why ? 0 : (uint32_t)b->n_done, .why = b->why};
    if (!b->why && b->n_done == 0) out->why = "nothing to do";
    return b->starved ? ot_fail_nomem(d) : OT_OK;
}

ot_status ot_dg_generate(const ot_dg_group *g, const ot_dg_target *t, ot_arena *a, ot_diag *d,
                         ot_dg_code *out)
{
    dg_build b = {.a = a, .g = g, .target = t};
    if (!make(&b) && !b.why) b.why = "no kernel";
    return close_build(&b, d, out);
}

ot_status ot_dg_copy(const ot_dg_target *t, ot_dg_array from, ot_dg_array to, ot_arena *a,
                     ot_diag *d, ot_dg_code *out)
{
    dg_build b = {.a = a, .target = t};
    (void)dg_copy_kernel(&b, (dg_view){.v = from.v, .x = *from.x},
                         (dg_view){.v = to.v, .x = *to.x});
    return close_build(&b, d, out);
}
