/* Normalisations that are what they look like at every size, where extents are free.
 *
 *   planned graph  [1, 32, 64, 64] --Reshape--> [1, 4, 32768] --InstanceNormalization--> ..
 *                  --Reshape--> [1, 32, 64, 64]         found here
 *   file's graph   [1, 32, h?, w?] --Reshape {0, 4, -1}--> .. --InstanceNormalization--> ..
 *                  --Reshape by Shape(x)--> ..          and judged by this
 *
 * At one size many graphs look like a normalisation. It is one at all sizes where the channels
 * are fixed, the groups are a constant of the Reshape in front, and the one behind goes back to
 * the shape of x by asking x itself.
 */
#include "decompose_internal.h"

#include "ops/access_same.h"

static bool is_constant(const ot_graph *file, const ot_node *n, uint32_t k)
{
    const ot_value *v = k < n->n_in && n->in[k] != OT_NONE ? &file->values[n->in[k]] : NULL;
    return v && !v->overridable && (v->init || v->known || v->is_const);
}

/* Absent, or of extents that the file fixes. */
static bool is_fixed(const ot_graph *file, ot_id v)
{
    return v == OT_NONE || ot_value_is_static(&file->values[v]);
}

/* To groups: a constant, that leaves the batch alone and says how many groups there are. */
static bool goes_to_groups(const ot_graph *planned, const ot_graph *file, const ot_norm *n,
                           const ot_node *to)
{
    int64_t shape[OT_RANK_MAX];
    if (!is_constant(file, to, 1) || ot_attr_int(to, "allowzero", 0) != 0) return false;
    if (ot_acc_ints(planned, to, 1, shape, OT_RANK_MAX) < 3) return false;
    return (shape[0] == 0 || (shape[0] > 0 && file->values[n->x].dims[0] == shape[0])) &&
           shape[1] == n->groups;
}

/* Back to the shape of x, which it asks for. */
static bool comes_back(const ot_graph *file, const ot_norm *n, const ot_node *back)
{
    const ot_id maker = back->n_in > 1 && back->in[1] != OT_NONE
                            ? file->values[back->in[1]].producer
                            : OT_NONE;
    if (maker == OT_NONE) return false;
    const ot_node *shape = &file->nodes[maker];
    return shape->op == OT_OP_Shape && shape->in[0] == n->x && !ot_attr_find(shape, "start") &&
           !ot_attr_find(shape, "end");
}

static bool holds_anyhow(const ot_graph *planned, const ot_graph *file, const ot_norm *n)
{
    const ot_value *x = &file->values[n->x], *now = &planned->values[n->x];
    if (x->rank != now->rank || x->dims[1] != now->dims[1] || (n->centred && x->dims[0] < 0))
        return false;
    /* a number for each element is refused at other sizes, where parts would broadcast it */
    for (int32_t a = 2; a < x->rank; a++)
        if (n->each_scale != OT_NONE && x->dims[a] < 0) return false;
    const ot_id operands[] = {n->scale, n->bias, n->gamma, n->beta, n->each_scale, n->each_bias};
    for (size_t k = 0; k < sizeof operands / sizeof *operands; k++)
        if (!is_fixed(file, operands[k])) return false;
    for (uint32_t k = 0; k < n->n_nodes; k++) {
        const ot_node *m = &planned->nodes[n->nodes[k]];
        if (m->op == OT_OP_ReduceMean && m->n_in > 1 && !is_constant(file, m, 1)) return false;
        if (m->op != OT_OP_Reshape) continue;
        if (!(m->in[0] == n->x ? goes_to_groups(planned, file, n, m) : comes_back(file, n, m)))
            return false;
    }
    return true;
}

ot_status ot_decompose_find_dynamic(const ot_graph *planned, const ot_graph *file, ot_arena *a,
                                    ot_norm **norms, uint32_t *n)
{
    size_t cap = 0;
    *norms = NULL;
    *n = 0;
    for (uint32_t k = 0; k < planned->n_order; k++) {
        ot_norm norm;
        if (planned->nodes[planned->order[k]].is_static ||
            !ot_decompose_find(planned, planned->order[k], &norm))
            continue;
        if (!holds_anyhow(planned, file, &norm)) continue;
        if (!OT_PUSH(a, *norms, *n, cap, norm)) return ot_fail_nomem(planned->model->diag);
    }
    return OT_OK;
}
