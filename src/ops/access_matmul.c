/* Slice relation of matrix products, Einsum and Attention: rows follow the left operand, columns
 * the right one, batch axes both; the contracted axis is needed whole.
 *
 *   A [b.., M, K] x B [b.., K, N] -> Y [b.., M, N]
 *       rows:    Y[.., m0:m1, :]  needs A[.., m0:m1, :]  and B whole
 *       columns: Y[.., :, n0:n1]  needs A whole          and B[.., :, n0:n1]
 *       batch:   both, unless one repeats itself there (extent 1 or axis absent)
 *
 * A 1-D operand lacks its row (or column) axis, and so does Y. Quantisation parameters given per
 * row or per column are cut with them. No attribute depends on an extent: the node of a tile is
 * a plain clone.
 */
#include "access_same.h"

/* ---- MatMul, MatMulInteger, QLinearMatMul ---- */

typedef struct mm_shape {
    const ot_value *a, *b, *out;
    int32_t n_batch;  /* leading axes of out */
    int32_t row, col; /* axes of out, or -1 when the operand is 1-D */
} mm_shape;

static bool mm_look(const ot_graph *g, const ot_node *n, uint32_t out_index, mm_shape *s,
                    ot_why *why)
{
    s->a = ot_acc_in(g, n, 0);
    s->b = ot_acc_in(g, n, ot_op_row_of(n->op)->weights);
    s->out = ot_acc_out(g, n, out_index);
    if (!s->a || !s->b || s->a->rank < 1 || s->b->rank < 1)
        return ot_acc_refuse(why, OT_WHY_MATMUL_OPERAND);
    bool has_row = s->a->rank > 1, has_col = s->b->rank > 1;
    s->n_batch = s->out->rank - has_row - has_col;
    s->row = has_row ? s->n_batch : -1;
    s->col = has_col ? s->out->rank - 1 : -1;
    if (s->n_batch < 0 || s->a->rank - 2 > s->n_batch || s->b->rank - 2 > s->n_batch)
        return ot_acc_refuse(why, OT_WHY_MATMUL_RANKS);
    return true;
}

/* Batch axis of an operand: its batch axes lie right-aligned under those of out. */
static int32_t mm_batch(const ot_value *v, const mm_shape *s, uint32_t axis)
{
    int32_t own = v->rank > 2 ? v->rank - 2 : 0;
    return ot_acc_broadcast(v, s->out, s->n_batch - own, axis);
}

/* Axis of a scale or zero point: one number is used whole; [E] lies along out axis `along`;
 * otherwise it has the rank of the matrix operand, with extent 1 on the contracted axis. */
static int32_t mm_param(const ot_value *p, const mm_shape *s, int32_t along, uint32_t axis)
{
    bool single = true;
    for (int32_t i = 0; i < p->rank; i++) single = single && p->dims[i] == 1;
    if (single) return OT_AX_WHOLE;
    if (along < 0) return OT_AX_BAD;
    if (p->rank == 1) {
        if (p->dims[0] != s->out->dims[along]) return OT_AX_BAD;
        return along == (int32_t)axis ? 0 : OT_AX_WHOLE;
    }
    if (s->row < 0 || s->col < 0 || p->rank > s->out->rank) return OT_AX_BAD;
    return ot_acc_broadcast_last(p, s->out, axis);
}

/* Number of the first output axis that operand k's parameters lie along: rows for A, columns for B;
 * -1 when the operand must be one number (those of Y), -2 when k is A or B itself. */
static int32_t mm_role(const ot_node *n, uint32_t k, const mm_shape *s)
{
    if (n->op == OT_OP_MatMulInteger) return k == 2 ? s->row : k == 3 ? s->col : -2;
    if (n->op != OT_OP_QLinearMatMul) return -2;
    switch (k) {
    case 1:
    case 2: return s->row;
    case 4:
    case 5: return s->col;
    case 6:
    case 7: return -1;
    default: return -2;
    }
}

static bool matmul_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    mm_shape s = {0};
    (void)out_axis;
    if (!ot_acc_regular(g, n, why) || !mm_look(g, n, out_index, &s, why)) return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const ot_value *v = ot_acc_in(g, n, k);
        int32_t role = mm_role(n, k, &s), ax = OT_AX_WHOLE;
        if (!v) continue;
        if (role != -2) {
            ax = mm_param(v, &s, role, axis);
        } else if ((int32_t)axis < s.n_batch) {
            ax = mm_batch(v, &s, axis);
        } else if (k == 0 && (int32_t)axis == s.row) {
            ax = v->rank - 2;
        } else if (k != 0 && (int32_t)axis == s.col) {
            ax = v->rank - 1;
        }
        if (ax >= 0 && role == -2 && v->dims[ax] != s.out->dims[axis]) ax = OT_AX_BAD;
        if (!ot_acc_set(in_axis, k, ax, why)) return false;
    }
    for (uint32_t k = 0; k < n->n_in; k++)
        if (in_axis[k] >= 0) return true;
    return ot_acc_refuse(why, OT_WHY_MATMUL_NO_OPERAND);
}

const ot_access_ops ot_access_matmul = {matmul_axis, NULL, NULL};

/* ---- Gemm: Y = alpha * A' * B' + beta * C ---- */

static bool gemm_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                      int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *a = ot_acc_in(g, n, 0), *b = ot_acc_in(g, n, 1), *c = ot_acc_in(g, n, 2);
    const ot_value *out = ot_acc_out(g, n, out_index);
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    if (!a || !b || a->rank != 2 || b->rank != 2 || out->rank != 2)
        return ot_acc_refuse(why, OT_WHY_GEMM_NO_MATRIX);
    if (axis == 0) {
        int32_t ax = ot_attr_int(n, "transA", 0) != 0 ? 1 : 0;
        if (!ot_acc_set(in_axis, 0, a->dims[ax] == out->dims[0] ? ax : OT_AX_BAD, why))
            return false;
    } else {
        int32_t ax = ot_attr_int(n, "transB", 0) != 0 ? 0 : 1;
        if (!ot_acc_set(in_axis, 1, b->dims[ax] == out->dims[1] ? ax : OT_AX_BAD, why))
            return false;
    }
    if (!c) return true;
    return ot_acc_set(in_axis, 2, c->rank > 2 ? OT_AX_BAD : ot_acc_broadcast_last(c, out, axis),
                      why);
}

const ot_access_ops ot_access_gemm = {gemm_axis, NULL, NULL};

/* ---- Attention (opset 23 and 24) ----
 *
 *   4-D: Q [B,h,q,d]  K [B,k,kv,d]  V [B,k,kv,v]  -> Y [B,h,q,v]      mask broadcasts to [B,h,q,kv]
 *   3-D: Q [B,q,h*d]  K [B,kv,k*d]  V [B,kv,k*v]  -> Y [B,q,h*v]
 *
 * Free: the batch, the rows of Q (when not causal: the causal offset depends on the row number),
 * and in 4-D the heads when Q and K have as many (each then attends alone). Row m of Y needs all
 * keys and values.
 */
enum { ATT_Q, ATT_K, ATT_V, ATT_MASK, ATT_PAST_K, ATT_PAST_V, ATT_NONPAD };

typedef enum att_axis { ATT_BATCH, ATT_HEADS, ATT_ROWS, ATT_OTHER } att_axis;

static att_axis att_classify(int32_t rank, uint32_t axis)
{
    if (axis == 0) return ATT_BATCH;
    if (rank == 4 && axis == 1) return ATT_HEADS;
    return axis == (rank == 4 ? 2u : 1u) ? ATT_ROWS : ATT_OTHER;
}

/* The mask's axis under batch, heads or rows of [B,h,q,kv]. A leading axis of a 3-D mask is read
 * as heads by the standard, as batch by others: only extent 1 is safe. */
static int32_t att_mask(const ot_value *m, att_axis what, int64_t extent)
{
    if (m->rank < 2 || m->rank > 4) return OT_AX_BAD;
    int32_t ax = what == ATT_ROWS ? m->rank - 2 : what == ATT_HEADS ? m->rank - 3 : m->rank - 4;
    if (m->rank == 3 && what != ATT_ROWS) return m->dims[0] == 1 ? OT_AX_WHOLE : OT_AX_BAD;
    if (ax < 0) return OT_AX_WHOLE;
    if (m->dims[ax] == extent) return ax;
    return m->dims[ax] == 1 ? OT_AX_WHOLE : OT_AX_BAD;
}

static bool att_usable(const ot_graph *g, const ot_node *n, const ot_value *out, ot_why *why)
{
    for (uint32_t k = ATT_Q; k <= ATT_V; k++) {
        const ot_value *v = ot_acc_in(g, n, k);
        if (!v || v->rank != out->rank) return ot_acc_refuse(why, OT_WHY_ATTENTION_OPERAND);
    }
    if (out->rank != 3 && out->rank != 4) return ot_acc_refuse(why, OT_WHY_ATTENTION_RANK);
    if (ot_acc_in(g, n, ATT_PAST_K) || ot_acc_in(g, n, ATT_PAST_V))
        return ot_acc_refuse(why, OT_WHY_ATTENTION_CACHE);
    for (uint32_t k = 1; k < n->n_out; k++)
        if (ot_acc_out(g, n, k)) return ot_acc_refuse(why, OT_WHY_ATTENTION_OUTPUTS);
    return true;
}

static bool attention_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                           int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *out = ot_acc_out(g, n, out_index), *mask = ot_acc_in(g, n, ATT_MASK);
    (void)out_axis;
    if (!ot_acc_regular(g, n, why) || !att_usable(g, n, out, why)) return false;
    att_axis what = att_classify(out->rank, axis);
    int64_t extent = out->dims[axis];
    if (what == ATT_OTHER) return ot_acc_refuse(why, OT_WHY_ATTENTION_WIDTH);
    if (what == ATT_ROWS && ot_attr_int(n, "is_causal", 0) != 0)
        return ot_acc_refuse(why, OT_WHY_ATTENTION_CAUSAL);
    for (uint32_t k = ATT_Q; k <= (what == ATT_ROWS ? ATT_Q : ATT_V); k++) {
        if (ot_acc_in(g, n, k)->dims[axis] != extent)
            return ot_acc_refuse(why, what == ATT_HEADS ? OT_WHY_ATTENTION_GROUPS
                                                        : OT_WHY_ATTENTION_DISAGREE);
        in_axis[k] = (int8_t)axis;
    }
    if (mask && !ot_acc_set(in_axis, ATT_MASK, att_mask(mask, what, extent), why)) return false;
    const ot_value *nonpad = ot_acc_in(g, n, ATT_NONPAD);
    if (nonpad && what == ATT_BATCH) {
        if (nonpad->rank != 1 || nonpad->dims[0] != extent)
            return ot_acc_refuse(why, OT_WHY_ATTENTION_LENGTHS);
        in_axis[ATT_NONPAD] = 0;
    }
    return true;
}

const ot_access_ops ot_access_attention = {attention_axis, NULL, NULL};
