/* What a session knows before it runs: initializers, and what follows from them.
 *
 * Initializers lie where the importer put them. A step all of whose outputs are constants is run
 * when it is made, and its outputs stay; but not when that would hold much more memory than the
 * constants it reads (an Expand of a scalar to a picture, weights that a DequantizeLinear makes
 * four times larger are the limit), unless they are weights. A constant step that fails is left
 * to the run: it may lie in a branch that is never taken.
 */
#include "engine/core/session.h"

#include "onnx/import/model_io.h"

#define FOLD_ALWAYS ((int64_t)1 << 20) /* bytes that are made whatever is read */
#define FOLD_FACTOR 4                  /* bytes that may be made for each byte read */

ot_status ot_slot_set_tensor(ot_schedule *p, ot_slot *slot, const ot_tensor *t)
{
    slot->is_const = true;
    if (t->rank > OT_RANK_MAX)
        return ot_fail(p->s->d, OT_E_INPUT, "a constant of %u dimensions", t->rank);
    ot_nd_set_dense(&slot->nd, t->dtype, t->rank, t->dims);
    if (ot_dtype_bytes(t->dtype) == 0) return OT_OK; /* whoever reads it says what is missing */
    if (t->data) {
        slot->nd.data = (void *)(uintptr_t)t->data;
        return OT_OK;
    }
    if (!t->proto) return OT_OK;
    OT_TRY(ot_nd_allocate(&slot->nd, NULL, p->s->d));
    bool held = ot_dtype_bits(t->dtype) < 8
                    ? ot_tensor_unpack(t, slot->nd.data)
                    : slot->nd.block->bytes == t->bytes && ot_tensor_read(t, slot->nd.data);
    if (!held) {
        ot_block_unref(slot->nd.block);
        slot->nd.block = NULL;
        slot->nd.data = NULL;
    }
    return OT_OK;
}

static bool all_const(const ot_schedule *p, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE && !p->g->values[n->out[k]].is_const) return false;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && !p->at[n->in[k]]->is_const) return false;
    return true;
}

/* Is v a weight of a convolution or a product, perhaps after a change of shape? Then its size is
 * the model's, and implementations want to know it. */
static bool is_weight(const ot_graph *g, ot_id v, uint32_t depth)
{
    const ot_value *x = &g->values[v];
    for (uint32_t k = 0; k < x->n_uses; k++) {
        const ot_node *n = &g->nodes[x->uses[k]];
        bool product = n->op == OT_OP_Conv || n->op == OT_OP_ConvTranspose || n->op == OT_OP_Gemm ||
                       n->op == OT_OP_MatMul;
        if ((product && n->n_in > 1 && n->in[1] == v) || ot_is_tile_op(n, "While")) return true;
        bool moved = n->op == OT_OP_Reshape || n->op == OT_OP_Transpose ||
                     n->op == OT_OP_Identity || n->op == OT_OP_Cast;
        if (moved && depth > 0 && n->out[0] != OT_NONE && is_weight(g, n->out[0], depth - 1))
            return true;
    }
    return false;
}

/* Is what the step makes small, or not much larger than what it reads? Sizes that nobody knows
 * are taken for large. */
static bool is_cheap(const ot_schedule *p, const ot_node *n)
{
    int64_t made = 0, read = 0, bytes;
    if (n->n_out == 1 && n->out[0] != OT_NONE && is_weight(p->g, n->out[0], 3)) return true;
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE &&
            (!ot_value_bytes(&p->g->values[n->out[k]], &bytes) || !ot_add_i64(made, bytes, &made)))
            return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const ot_nd *a = n->in[k] == OT_NONE ? NULL : &p->at[n->in[k]]->nd;
        if (a &&
            (!ot_nd_bytes(a->dtype, a->rank, a->dims, &bytes) || !ot_add_i64(read, bytes, &read)))
            return false;
    }
    return made <= FOLD_ALWAYS || made / FOLD_FACTOR <= read;
}

static bool may_fold(const ot_schedule *p, const ot_step *step)
{
    const ot_node *n = step->node;
    if (n->op == OT_OP_Constant) return true;
    /* shapes, and with them what is constant, are inferred in the top graph only */
    return !p->outer && p->g == p->s->m->graph && step->n_bodies == 0 && n->n_captured == 0 &&
           n->op != OT_OP_OPAQUE && all_const(p, n) && is_cheap(p, n);
}

ot_status ot_step_fold(ot_schedule *p, ot_step *step, bool *done)
{
    ot_diag failed = {0}, *told = p->s->d;
    const ot_node *n = step->node;
    *done = false;
    if (p->s->checks_only || !may_fold(p, step)) return OT_OK;
    p->s->d = &failed;
    ot_status st = ot_step_run(p, step);
    p->s->d = told;
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_slot *slot = step->out_slots[k];
        if (!slot) continue;
        if (st != OT_OK) {
            ot_nd_release(&slot->nd);
            continue;
        }
        slot->is_const = true;
        if (!slot->nd.block || !slot->nd.block->heap) continue; /* of a view: counted before */
        slot->nd.block->heap = NULL;                            /* a weight from now on */
        ot_heap_add(&p->s->heap, -(int64_t)slot->nd.block->bytes);
        p->s->figures.weight_bytes += (int64_t)slot->nd.block->bytes;
    }
    if (st == OT_E_NOMEM) return ot_fail_nomem(told);
    if (st != OT_OK) return OT_OK;
    if (step->state.free) step->state.free(step->state.data);
    p->s->figures.n_folded++;
    *done = true;
    return OT_OK;
}
