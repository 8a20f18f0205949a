/* Operations on tiles as lower_ops.c and lower_moves.c put them together, and numbers that
 * operators have from the model. */
#include "lower_ops.h"

/* ---- operations ---- */

/* All axes in blocks; operands follow as NumPy broadcasts them. */
lowered_op tile_pointwise(const char *name, const lowered_tensor *out, const lowered_tensor *in,
                          uint32_t n_in)
{
    lowered_op op = {.pipe = OT_PIPE_VECTOR, .name = name, .out = *out, .n_in = n_in};
    for (uint32_t j = 0; j < n_in; j++) {
        op.in[j] = in[j];
        for (uint32_t k = 0; k < OT_TK_RANK_MAX; k++) {
            const int64_t at = (int64_t)k - (int64_t)out->rank + (int64_t)in[j].rank;
            op.axis[j][k] = at >= 0 && k < out->rank && in[j].dims[at] == out->dims[k] &&
                                    out->dims[k] > 1
                                ? (int8_t)at
                                : -1;
        }
    }
    for (uint32_t k = 0; k < out->rank; k++) op.cut[k] = true;
    return op;
}

/* One operand of the same axes, of which those in `whole` are wanted whole. */
lowered_op tile_along(const char *name, const lowered_tensor *out, const lowered_tensor *in,
                      const bool *whole)
{
    lowered_op op = {.pipe = OT_PIPE_VECTOR, .name = name, .out = *out, .n_in = 1};
    op.in[0] = *in;
    for (uint32_t k = 0; k < OT_TK_RANK_MAX; k++) {
        op.cut[k] = k < out->rank && !whole[k];
        op.axis[0][k] = op.cut[k] ? (int8_t)k : -1;
    }
    return op;
}

void tile_set_list(lowered_op *op, const char *name, const int64_t *values, uint32_t n)
{
    lowered_attr *a = &op->attrs[op->n_attrs++];
    *a = (lowered_attr){.name = name, .n = n, .list = true};
    for (uint32_t k = 0; k < n; k++) a->values[k] = (double)values[k];
}

void tile_set_number(lowered_op *op, const char *name, double value)
{
    op->attrs[op->n_attrs++] = (lowered_attr){.name = name, .n = 1, .values = {value}};
}

ot_status tile_put(lowered *p, const lowered_op *op)
{
    return p->second ? inner_op(p, op) : lowered_statement(p, op);
}

ot_status tile_put_unary(lowered *p, const char *name, const lowered_tensor *out,
                         const lowered_tensor *in)
{
    lowered_op op = tile_pointwise(name, out, in, 1);
    return tile_put(p, &op);
}

ot_status lowered_move(lowered *p, const lowered_tensor *to, const lowered_tensor *from)
{
    return tile_put_unary(p, "identity", to, from);
}

ot_status tile_put_number(lowered *p, const char *name, const lowered_tensor *out,
                          const lowered_tensor *in, const char *setting, double x)
{
    lowered_op op = tile_pointwise(name, out, in, 1);
    tile_set_number(&op, setting, x);
    return tile_put(p, &op);
}

ot_status tile_put_pair(lowered *p, const char *name, const lowered_tensor *out,
                        const lowered_tensor *x, const lowered_tensor *y)
{
    const lowered_tensor in[2] = {*x, *y};
    lowered_op op = tile_pointwise(name, out, in, 2);
    return tile_put(p, &op);
}

/* ---- numbers of the model ---- */

/* Contents of a constant operand, at most `max` numbers. false: not known. */
bool tile_numbers(const tile_node *x, uint32_t j, double *out, size_t max, size_t *n)
{
    const ot_graph *g = x->p->g;
    *n = 0;
    const ot_operand *changed = ot_adapted_operand(x->ad, j);
    if (changed) {
        const ot_tensor *t = changed->tensor;
        if (changed->omit) return false;
        if (!t || t->dtype != OT_I64 || !t->data || t->bytes / 8 > max) return false;
        for (*n = 0; *n < t->bytes / 8; ++*n) out[*n] = (double)((const int64_t *)t->data)[*n];
        return true;
    }
    if (j >= x->n.n_in || x->n.in[j] == OT_NONE) return false;
    const ot_value *v = &g->values[x->n.in[j]];
    if (v->known || v->known_floats) {
        if (v->known_n > max) return false;
        for (*n = 0; *n < v->known_n; ++*n)
            out[*n] = v->known ? (double)v->known[*n] : v->known_floats[*n];
        return true;
    }
    if (!v->init || !v->init->data || v->overridable) return false;
    const size_t width = v->init->dtype == OT_F32 || v->init->dtype == OT_I32 ? 4 : 8,
                 count = v->init->bytes / width;
    if (count > max) return false;
    for (*n = 0; *n < count; ++*n) {
        if (v->init->dtype == OT_F32)
            out[*n] = (double)((const float *)v->init->data)[*n];
        else if (v->init->dtype == OT_I32)
            out[*n] = (double)((const int32_t *)v->init->data)[*n];
        else if (v->init->dtype == OT_I64)
            out[*n] = (double)((const int64_t *)v->init->data)[*n];
        else
            return false;
    }
    return true;
}

ot_status tile_refuse(const tile_node *x, const char *why) { return lowered_refuse(x->p, why); }
