/* From a tile's windows to the node that computes it: the dispatcher and the editing helpers.
 *
 * The default is the plain clone: the same operator on smaller inputs. Operators whose attributes
 * or constant operands speak of absolute positions (pads, starts, sizes, target shapes) change
 * them in their vtable's adapt function; they start from the clone and edit it.
 */
#include "access.h"

/* Are all windows of this cut the whole axes, so that nothing can have changed? */
static ot_status cut_is_full(const ot_graph *g, const ot_node *n, const ot_tile_axis *x,
                             const ot_access_ops *ops, ot_arena *arena, bool *full)
{
    ot_why why = OT_WHY_NONE;
    *full = false;
    const ot_value *out = ot_acc_out(g, n, x->out_index);
    if (!out || (int64_t)x->axis >= out->rank)
        OT_BUG("a tile is cut along an axis that does not exist");
    if (x->tile->made.lo != 0 || x->tile->made.hi != out->dims[x->axis]) return OT_OK;
    int8_t *in_axis = OT_NEW_N(arena, int8_t, (size_t)n->n_in + n->n_out);
    if (!in_axis) return OT_E_NOMEM;
    memset(in_axis, OT_AX_WHOLE, (size_t)n->n_in + n->n_out);
    if (!ops->axis(g, n, x->out_index, x->axis, in_axis, in_axis + n->n_in, &why)) return OT_OK;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const ot_value *v = ot_acc_in(g, n, i);
        if (in_axis[i] < 0 || !v) continue;
        if (x->tile->in[i].lo != 0 || x->tile->in[i].hi != v->dims[in_axis[i]]) return OT_OK;
    }
    *full = true;
    return OT_OK;
}

ot_status ot_tile_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                        uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    *out = (ot_adapted){.kind = OT_ADAPT_CLONE, .attrs = n->attrs, .n_attrs = n->n_attrs};
    out->drop = OT_NEW_N(arena, bool, n->n_in);
    if (!out->drop) return OT_E_NOMEM;
    const ot_access_ops *ops = ot_access_of(n);
    if (!ops || !ops->adapt || n_axes == 0) return OT_OK;
    bool all_full = true;
    for (uint32_t i = 0; i < n_axes && all_full; i++)
        OT_TRY(cut_is_full(g, n, &axes[i], ops, arena, &all_full));
    return all_full ? OT_OK : ops->adapt(g, n, axes, n_axes, arena, out);
}

/* ---- editing ---- */

static ot_status set_attr(ot_arena *arena, ot_adapted *out, ot_attr attr)
{
    /* An array payload that the builder could not allocate shows as OPAQUE without a message. */
    if (attr.kind == OT_ATTR_OPAQUE && !attr.proto) return OT_E_NOMEM;
    ot_attr *list = OT_NEW_N(arena, ot_attr, (size_t)out->n_attrs + 1);
    if (!list) return OT_E_NOMEM;
    uint32_t at = out->n_attrs;
    for (uint32_t i = 0; i < out->n_attrs; i++) {
        list[i] = out->attrs[i];
        if (strcmp(list[i].name, attr.name) == 0) at = i;
    }
    list[at] = attr;
    if (at == out->n_attrs) out->n_attrs++;
    out->attrs = list;
    return OT_OK;
}

ot_status ot_adapt_set_ints(ot_arena *arena, ot_adapted *out, const char *name, const int64_t *v,
                            size_t n)
{
    return set_attr(arena, out, ot_mk_ints(arena, name, v, n));
}

ot_status ot_adapt_drop_attr(ot_arena *arena, ot_adapted *out, const char *name)
{
    ot_attr *list = OT_NEW_N(arena, ot_attr, (size_t)out->n_attrs + 1);
    if (!list) return OT_E_NOMEM;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < out->n_attrs; i++)
        if (strcmp(out->attrs[i].name, name) != 0) list[kept++] = out->attrs[i];
    out->attrs = list;
    out->n_attrs = kept;
    return OT_OK;
}

static ot_status set_operand(ot_arena *arena, ot_adapted *out, ot_operand op)
{
    ot_operand *list = OT_NEW_N(arena, ot_operand, (size_t)out->n_operands + 1);
    if (!list) return OT_E_NOMEM;
    uint32_t at = out->n_operands;
    for (uint32_t i = 0; i < out->n_operands; i++) {
        list[i] = out->operands[i];
        if (list[i].input == op.input) at = i;
    }
    list[at] = op;
    if (at == out->n_operands) out->n_operands++;
    out->operands = list;
    return OT_OK;
}

ot_status ot_adapt_set_i64(ot_arena *arena, ot_adapted *out, uint32_t input, const int64_t *v,
                           size_t n)
{
    ot_tensor *t = OT_NEW(arena, ot_tensor);
    int64_t *dims = OT_NEW_N(arena, int64_t, 1);
    if (!t || !dims) return OT_E_NOMEM;
    dims[0] = (int64_t)n;
    *t = (ot_tensor){.dtype = OT_I64, .rank = 1, .dims = dims, .bytes = n * sizeof *v};
    t->data = n ? ot_memdup(arena, v, n * sizeof *v) : ot_alloc(arena, 1);
    if (!t->data) return OT_E_NOMEM;
    return set_operand(arena, out, (ot_operand){.input = input, .tensor = t});
}
