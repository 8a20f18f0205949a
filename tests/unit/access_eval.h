/* Slow, obvious operators on small integer tensors: the oracle of test_access_point.c.
 *
 * Each operator is written from its definition, index by index, and shares nothing with src/ops.
 * Numbers are integers and every operator is replaced by one that has the same *reads* and is
 * exact: Softmax becomes "x plus the sum over its axis", BatchNormalization "x * scale + bias +
 * mean + var", and so on. Two results are equal only when each element has read the same inputs.
 */
#ifndef ACCESS_EVAL_H
#define ACCESS_EVAL_H

#include "onnx/graph/ir.h"

#define ARR_RANK 6
#define ARR_MAX  4096

typedef struct arr {
    bool present;
    int32_t rank;
    int64_t d[ARR_RANK];
    int64_t v[ARR_MAX];
} arr;

typedef struct ev_op { /* the node as it will run */
    const char *type;
    int32_t version;
    const ot_attr *attrs;
    uint32_t n_attrs;
} ev_op;

static int64_t arr_size(const arr *a)
{
    int64_t n = 1;
    for (int32_t i = 0; i < a->rank; i++) n *= a->d[i];
    return n;
}

static void arr_shape(arr *a, int32_t rank, const int64_t *d)
{
    a->present = true;
    a->rank = rank;
    memset(a->d, 0, sizeof a->d);
    for (int32_t i = 0; i < rank; i++) a->d[i] = d[i];
    if (arr_size(a) > ARR_MAX || arr_size(a) < 1) abort();
    memset(a->v, 0, (size_t)arr_size(a) * sizeof a->v[0]);
}

static void unflatten(const arr *a, int64_t flat, int64_t *ix)
{
    for (int32_t i = a->rank - 1; i >= 0; i--) {
        ix[i] = flat % a->d[i];
        flat /= a->d[i];
    }
}

static int64_t flatten(const arr *a, const int64_t *ix)
{
    int64_t f = 0;
    for (int32_t i = 0; i < a->rank; i++) {
        if (ix[i] < 0 || ix[i] >= a->d[i]) abort();
        f = f * a->d[i] + ix[i];
    }
    return f;
}

/* Element of a at the index of a tensor of rank `rank`, numpy broadcasting. */
static int64_t at_broadcast(const arr *a, int32_t rank, const int64_t *ix)
{
    int64_t own[ARR_RANK] = {0};
    for (int32_t i = 0; i < a->rank; i++) own[i] = a->d[i] == 1 ? 0 : ix[rank - a->rank + i];
    return a->v[flatten(a, own)];
}

static const ot_attr *ev_attr(const ev_op *op, const char *name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (strcmp(op->attrs[i].name, name) == 0) return &op->attrs[i];
    return NULL;
}

static int64_t ev_int(const ev_op *op, const char *name, int64_t dflt)
{
    const ot_attr *a = ev_attr(op, name);
    return a ? a->i : dflt;
}

static bool is(const ev_op *op, const char *type) { return strcmp(op->type, type) == 0; }

static int32_t wrap(int64_t axis, int32_t rank) { return (int32_t)(axis < 0 ? axis + rank : axis); }

/* ---- element-wise ---- */

static void broadcast_shape(const arr *in, uint32_t n_in, arr *out)
{
    int64_t d[ARR_RANK] = {0};
    int32_t rank = 0;
    for (uint32_t k = 0; k < n_in; k++)
        if (in[k].present && in[k].rank > rank) rank = in[k].rank;
    for (int32_t i = 0; i < rank; i++) {
        d[i] = 1;
        for (uint32_t k = 0; k < n_in; k++) {
            int32_t own = i - (rank - in[k].rank);
            if (!in[k].present || own < 0 || in[k].d[own] == 1) continue;
            if (d[i] != 1 && d[i] != in[k].d[own]) abort(); /* the tile's operands do not fit */
            d[i] = in[k].d[own];
        }
    }
    arr_shape(out, rank, d);
}

static void ev_pointwise(const ev_op *op, const arr *in, uint32_t n_in, arr *out)
{
    uint32_t data = is(op, "Clip") || is(op, "Dropout") || is(op, "CastLike") ? 1 : n_in;
    int64_t ix[ARR_RANK] = {0};
    (void)op;
    broadcast_shape(in, data, &out[0]);
    for (int64_t f = 0; f < arr_size(&out[0]); f++) {
        unflatten(&out[0], f, ix);
        for (uint32_t k = 0; k < data; k++)
            if (in[k].present) out[0].v[f] += (k + 1) * at_broadcast(&in[k], out[0].rank, ix);
        for (uint32_t k = data; k < n_in && !is(op, "CastLike"); k++)
            if (in[k].present) out[0].v[f] += 100 * in[k].v[0];
    }
    out[1] = out[0];
}

/* Add with the broadcast and axis attributes of opset 6. */
static void ev_legacy_add(const ev_op *op, const arr *in, arr *out)
{
    int64_t ix[ARR_RANK] = {0}, shift = ev_int(op, "axis", in[0].rank - in[1].rank);
    arr_shape(&out[0], in[0].rank, in[0].d);
    for (int64_t f = 0; f < arr_size(&out[0]); f++) {
        unflatten(&out[0], f, ix);
        out[0].v[f] = in[0].v[f] + 2 * in[1].v[flatten(&in[1], ix + shift)];
    }
}

/* ---- normalisations, softmax, reductions ---- */

/* Which axes element (..) sums over. */
static void ev_summed(const ev_op *op, const arr *in, uint32_t n_in, bool *over)
{
    int32_t rank = in[0].rank;
    const ot_attr *axes = ev_attr(op, "axes");
    memset(over, 0, ARR_RANK * sizeof *over);
    if (is(op, "Softmax") && op->version < 13) {
        for (int32_t i = wrap(ev_int(op, "axis", 1), rank); i < rank; i++) over[i] = true;
    } else if (is(op, "LayerNormalization") || is(op, "RMSNormalization")) {
        for (int32_t i = wrap(ev_int(op, "axis", -1), rank); i < rank; i++) over[i] = true;
    } else if (is(op, "InstanceNormalization")) {
        for (int32_t i = 2; i < rank; i++) over[i] = true;
    } else if (is(op, "GroupNormalization")) {
        for (int32_t i = 1; i < rank; i++) over[i] = true;
    } else if (is(op, "LRN")) {
        over[1] = true;
    } else if (is(op, "ArgMax")) {
        over[wrap(ev_int(op, "axis", 0), rank)] = true;
    } else if (is(op, "Softmax") || is(op, "LpNormalization")) {
        over[wrap(ev_int(op, "axis", -1), rank)] = true;
    } else if (axes) {
        for (size_t i = 0; i < axes->n; i++) over[wrap(axes->ints[i], rank)] = true;
    } else if (is(op, "ReduceSum") && n_in > 1 && in[1].present) {
        for (int64_t i = 0; i < arr_size(&in[1]); i++) over[wrap(in[1].v[i], rank)] = true;
    } else if (!is(op, "BatchNormalization") && !ev_int(op, "noop_with_empty_axes", 0)) {
        for (int32_t i = 0; i < rank; i++) over[i] = true;
    }
}

/* Sum over the marked axes, kept with extent 1. */
static void sum_over(const arr *x, const bool *over, arr *out)
{
    int64_t d[ARR_RANK] = {0}, ix[ARR_RANK] = {0};
    for (int32_t i = 0; i < x->rank; i++) d[i] = over[i] ? 1 : x->d[i];
    arr_shape(out, x->rank, d);
    for (int64_t f = 0; f < arr_size(x); f++) {
        unflatten(x, f, ix);
        for (int32_t i = 0; i < x->rank; i++)
            if (over[i]) ix[i] = 0;
        out->v[flatten(out, ix)] += x->v[f];
    }
}

static void ev_norm(const ev_op *op, const arr *in, uint32_t n_in, arr *out)
{
    bool over[ARR_RANK], channel = is(op, "BatchNormalization") ||
                                   is(op, "InstanceNormalization") || is(op, "GroupNormalization");
    int64_t ix[ARR_RANK] = {0};
    ev_summed(op, in, n_in, over);
    sum_over(&in[0], over, &out[1]);
    arr_shape(&out[0], in[0].rank, in[0].d);
    for (int64_t f = 0; f < arr_size(&in[0]); f++) {
        unflatten(&in[0], f, ix);
        int64_t y = 1000 * in[0].v[f] + at_broadcast(&out[1], in[0].rank, ix);
        for (uint32_t k = 1; k < n_in; k++) {
            if (!in[k].present) continue;
            /* one number per channel of the tile */
            if (channel && in[k].d[0] != in[0].d[1]) abort();
            y += (k + 1) * (channel ? in[k].v[ix[1]] : at_broadcast(&in[k], in[0].rank, ix));
        }
        out[0].v[f] = y;
    }
}

static void ev_reduce(const ev_op *op, const arr *in, uint32_t n_in, arr *out)
{
    bool over[ARR_RANK];
    int64_t d[ARR_RANK] = {0};
    int32_t rank = 0;
    arr *kept = malloc(sizeof *kept);
    ev_summed(op, in, n_in, over);
    sum_over(&in[0], over, kept);
    for (int32_t i = 0; i < kept->rank; i++)
        if (!over[i] || ev_int(op, "keepdims", 1)) d[rank++] = kept->d[i];
    arr_shape(&out[0], rank, d);
    memcpy(out[0].v, kept->v, sizeof kept->v);
    free(kept);
}

static void ev_cumsum(const arr *in, arr *out)
{
    int64_t ix[ARR_RANK] = {0};
    int32_t along = wrap(in[1].v[0], in[0].rank);
    arr_shape(&out[0], in[0].rank, in[0].d);
    for (int64_t f = 0; f < arr_size(&in[0]); f++) {
        unflatten(&in[0], f, ix);
        for (; ix[along] >= 0; ix[along]--) out[0].v[f] += in[0].v[flatten(&in[0], ix)];
    }
}

static void ev_quant(const ev_op *op, const arr *in, uint32_t n_in, arr *out)
{
    int64_t ix[ARR_RANK] = {0};
    arr_shape(&out[0], in[0].rank, in[0].d);
    for (int64_t f = 0; f < arr_size(&in[0]); f++) {
        unflatten(&in[0], f, ix);
        out[0].v[f] = in[0].v[f];
        for (uint32_t k = 1; k < n_in; k++) {
            bool single = arr_size(&in[k]) == 1;
            int32_t along = wrap(ev_int(op, "axis", 1), in[0].rank);
            if (!single && in[k].d[0] != in[0].d[along]) abort();
            out[0].v[f] += 100 * k * in[k].v[single ? 0 : ix[along]];
        }
    }
}

/* ---- products ---- */

/* numpy.matmul; scales and zero points (QLinearMatMul, MatMulInteger) are added per row or column.
 */
static void ev_matmul(const ev_op *op, const arr *in, uint32_t n_in, arr *out)
{
    bool ql = is(op, "QLinearMatMul");
    const arr *a = &in[0], *b = &in[ql ? 3 : 1];
    int32_t ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0,
            nb = ra > rb ? ra : rb;
    bool a1 = a->rank == 1, b1 = b->rank == 1;
    int64_t d[ARR_RANK] = {0}, ix[ARR_RANK] = {0}, ia[ARR_RANK] = {0}, ib[ARR_RANK] = {0};
    int32_t r = nb;
    for (int32_t i = 0; i < nb; i++) {
        int64_t da = i - (nb - ra) >= 0 ? a->d[i - (nb - ra)] : 1,
                db = i - (nb - rb) >= 0 ? b->d[i - (nb - rb)] : 1;
        if (da != db && da != 1 && db != 1) abort();
        d[i] = da > db ? da : db;
    }
    if (!a1) d[r++] = a->d[a->rank - 2];
    if (!b1) d[r++] = b->d[b->rank - 1];
    arr_shape(&out[0], r, d);
    int64_t K = a->d[a->rank - 1];
    if (K != b->d[b1 ? 0 : b->rank - 2]) abort();
    for (int64_t f = 0; f < arr_size(&out[0]); f++) {
        unflatten(&out[0], f, ix);
        int64_t row = a1 ? 0 : ix[nb], col = b1 ? 0 : ix[r - 1];
        for (int32_t i = 0; i < ra; i++) ia[i] = a->d[i] == 1 ? 0 : ix[nb - ra + i];
        for (int32_t i = 0; i < rb; i++) ib[i] = b->d[i] == 1 ? 0 : ix[nb - rb + i];
        for (int64_t k = 0; k < K; k++) {
            if (!a1) ia[ra] = row;
            ia[a->rank - 1] = k;
            ib[b1 ? 0 : b->rank - 2] = k;
            if (!b1) ib[b->rank - 1] = col;
            out[0].v[f] += a->v[flatten(a, ia)] * b->v[flatten(b, ib)];
        }
        for (uint32_t k = ql ? 1 : 2; k < n_in; k++) {
            if (!in[k].present || (ql && k == 3)) continue;
            bool of_row = ql ? k < 3 : k == 2, single = arr_size(&in[k]) == 1;
            if (!single && in[k].rank == 1 && in[k].d[0] != (of_row ? d[nb] : d[r - 1])) abort();
            out[0].v[f] += 1000 * k *
                           (single            ? in[k].v[0]
                            : in[k].rank == 1 ? in[k].v[of_row ? row : col]
                                              : at_broadcast(&in[k], r, ix));
        }
    }
}

static void ev_gemm(const ev_op *op, const arr *in, uint32_t n_in, arr *out)
{
    bool ta = ev_int(op, "transA", 0), tb = ev_int(op, "transB", 0);
    int64_t d[2] = {in[0].d[ta ? 1 : 0], in[1].d[tb ? 0 : 1]}, K = in[0].d[ta ? 0 : 1];
    arr_shape(&out[0], 2, d);
    for (int64_t m = 0; m < d[0]; m++)
        for (int64_t c = 0; c < d[1]; c++) {
            int64_t ix[2] = {m, c}, *y = &out[0].v[m * d[1] + c];
            for (int64_t k = 0; k < K; k++)
                *y += in[0].v[ta ? k * d[0] + m : m * K + k] *
                      in[1].v[tb ? c * K + k : k * d[1] + c];
            if (n_in > 2 && in[2].present) {
                for (int32_t i = 0; i < in[2].rank;
                     i++) /* the tile's C must broadcast to the tile */
                    if (in[2].d[i] != 1 && in[2].d[i] != d[2 - in[2].rank + i]) abort();
                *y += 1000 * at_broadcast(&in[2], 2, ix);
            }
        }
}

/* Explicit equations without ellipsis: run over all values of all labels. */
static void ev_einsum(const ev_op *op, const arr *in, uint32_t n_in, arr *out)
{
    const char *eq = ev_attr(op, "equation")->s, *res = strstr(eq, "->") + 2;
    int64_t extent[128] = {0}, val[128] = {0}, d[ARR_RANK] = {0}, ix[ARR_RANK] = {0};
    uint32_t k = 0;
    int32_t pos = 0, r = 0;
    for (const char *c = eq; c < res - 2; c++) {
        if (*c == ',')
            k++, pos = 0;
        else if (*c != ' ') {
            int64_t e = in[k].d[pos++];
            if (extent[(int)*c] && extent[(int)*c] != e) abort();
            extent[(int)*c] = e;
        }
    }
    for (const char *c = res; *c; c++)
        if (*c != ' ') d[r++] = extent[(int)*c];
    arr_shape(&out[0], r, d);
    for (;;) {
        int64_t prod = 1;
        k = 0, pos = 0;
        for (const char *c = eq;; c++) {
            if (*c == ',' || *c == '-') {
                prod *= in[k].v[flatten(&in[k], ix)];
                k++, pos = 0;
                if (*c == '-') break;
            } else if (*c != ' ')
                ix[pos++] = val[(int)*c];
        }
        pos = 0;
        for (const char *c = res; *c; c++)
            if (*c != ' ') ix[pos++] = val[(int)*c];
        out[0].v[flatten(&out[0], ix)] += prod;
        int l = 0;
        for (; l < 128; l++) {
            if (!extent[l]) continue;
            if (++val[l] < extent[l]) break;
            val[l] = 0;
        }
        if (l == 128) break;
    }
    (void)n_in;
}

/* 4-D attention with the softmax left out: y = sum over keys of (q.k + mask) * v. */
static void ev_attention(const arr *in, uint32_t n_in, arr *out)
{
    const arr *q = &in[0], *kk = &in[1], *v = &in[2];
    int64_t d[4] = {q->d[0], q->d[1], q->d[2], v->d[3]};
    arr_shape(&out[0], 4, d);
    if (kk->d[0] != d[0] || v->d[0] != d[0] || d[1] % kk->d[1] || kk->d[1] != v->d[1]) abort();
    for (int64_t f = 0; f < arr_size(&out[0]); f++) {
        int64_t ix[4] = {0}, h;
        unflatten(&out[0], f, ix);
        h = ix[1] / (d[1] / kk->d[1]);
        for (int64_t j = 0; j < kk->d[2]; j++) {
            int64_t s = 0, full[4] = {ix[0], ix[1], ix[2], j};
            for (int64_t c = 0; c < q->d[3]; c++)
                s += q->v[flatten(q, (int64_t[4]){ix[0], ix[1], ix[2], c})] *
                     kk->v[flatten(kk, (int64_t[4]){ix[0], h, j, c})];
            if (n_in > 3 && in[3].present) s += at_broadcast(&in[3], 4, full);
            out[0].v[f] += s * v->v[flatten(v, (int64_t[4]){ix[0], h, j, ix[3]})];
        }
    }
}

/* ---- movement ---- */

static void ev_transpose(const ev_op *op, const arr *in, arr *out)
{
    const ot_attr *p = ev_attr(op, "perm");
    int64_t d[ARR_RANK] = {0}, ix[ARR_RANK] = {0}, src[ARR_RANK] = {0};
    int32_t r = in[0].rank;
    for (int32_t i = 0; i < r; i++) d[i] = in[0].d[p ? p->ints[i] : r - 1 - i];
    arr_shape(&out[0], r, d);
    for (int64_t f = 0; f < arr_size(&out[0]); f++) {
        unflatten(&out[0], f, ix);
        for (int32_t i = 0; i < r; i++) src[p ? p->ints[i] : r - 1 - i] = ix[i];
        out[0].v[f] = in[0].v[flatten(&in[0], src)];
    }
}

static void ev_reshape(const ev_op *op, const arr *in, uint32_t n_in, arr *out)
{
    int64_t d[ARR_RANK] = {0}, known = 1;
    int32_t r = 0, free_axis = -1;
    const arr *x = &in[0];
    if (is(op, "Reshape")) {
        for (int64_t i = 0; i < in[1].d[0]; i++) {
            d[r] = in[1].v[i] == 0 ? x->d[i] : in[1].v[i];
            if (d[r] < 0)
                free_axis = r;
            else
                known *= d[r];
            r++;
        }
        if (free_axis >= 0) d[free_axis] = arr_size(x) / known;
    } else if (is(op, "Flatten")) {
        d[0] = d[1] = 1, r = 2;
        for (int32_t i = 0; i < x->rank; i++) d[i < ev_int(op, "axis", 1) ? 0 : 1] *= x->d[i];
    } else if (is(op, "Squeeze")) {
        for (int32_t i = 0; i < x->rank; i++) {
            bool gone = n_in < 2 && x->d[i] == 1;
            for (int64_t j = 0; n_in > 1 && j < in[1].d[0]; j++)
                gone = gone || wrap(in[1].v[j], x->rank) == i;
            if (!gone) d[r++] = x->d[i];
        }
    } else { /* Unsqueeze */
        int32_t rank = x->rank + (int32_t)in[1].d[0], from = 0;
        for (r = 0; r < rank; r++) {
            bool fresh = false;
            for (int64_t j = 0; j < in[1].d[0]; j++) fresh = fresh || wrap(in[1].v[j], rank) == r;
            d[r] = fresh ? 1 : x->d[from++];
        }
    }
    arr_shape(&out[0], r, d);
    if (arr_size(&out[0]) != arr_size(x)) abort();
    memcpy(out[0].v, x->v, sizeof x->v);
}

static void ev_expand(const arr *in, arr *out)
{
    arr *both = calloc(2, sizeof *both);
    int64_t ix[ARR_RANK] = {0};
    both[0] = in[0];
    arr_shape(&both[1], (int32_t)in[1].d[0], in[1].v);
    broadcast_shape(both, 2, &out[0]);
    for (int64_t f = 0; f < arr_size(&out[0]); f++) {
        unflatten(&out[0], f, ix);
        out[0].v[f] = at_broadcast(&in[0], out[0].rank, ix);
    }
    free(both);
}

static void ev_tile(const arr *in, arr *out)
{
    int64_t d[ARR_RANK] = {0}, ix[ARR_RANK] = {0};
    for (int32_t i = 0; i < in[0].rank; i++) d[i] = in[0].d[i] * in[1].v[i];
    arr_shape(&out[0], in[0].rank, d);
    for (int64_t f = 0; f < arr_size(&out[0]); f++) {
        unflatten(&out[0], f, ix);
        for (int32_t i = 0; i < in[0].rank; i++) ix[i] %= in[0].d[i];
        out[0].v[f] = in[0].v[flatten(&in[0], ix)];
    }
}

static void ev_concat(const ev_op *op, const arr *in, uint32_t n_in, arr *out)
{
    int64_t d[ARR_RANK] = {0}, ix[ARR_RANK] = {0};
    int32_t a = wrap(ev_int(op, "axis", 1), in[0].rank);
    memcpy(d, in[0].d, sizeof d);
    for (uint32_t k = 1; k < n_in; k++) d[a] += in[k].d[a];
    arr_shape(&out[0], in[0].rank, d);
    for (int64_t f = 0; f < arr_size(&out[0]); f++) {
        uint32_t k = 0;
        unflatten(&out[0], f, ix);
        while (ix[a] >= in[k].d[a]) ix[a] -= in[k++].d[a];
        out[0].v[f] = in[k].v[flatten(&in[k], ix)];
    }
}

static void ev_split(const ev_op *op, const arr *in, arr *out)
{
    int64_t at = 0;
    int32_t a = wrap(ev_int(op, "axis", 0), in[0].rank);
    for (uint32_t k = 0; k < 2; k++) { /* two outputs, sizes in operand 1 */
        int64_t d[ARR_RANK] = {0}, ix[ARR_RANK] = {0};
        memcpy(d, in[0].d, sizeof d);
        d[a] = in[1].v[k];
        arr_shape(&out[k], in[0].rank, d);
        for (int64_t f = 0; f < arr_size(&out[k]); f++) {
            unflatten(&out[k], f, ix);
            ix[a] += at;
            out[k].v[f] = in[0].v[flatten(&in[0], ix)];
        }
        at += d[a];
    }
}

static void ev_gather(const ev_op *op, const arr *in, arr *out)
{
    int32_t a = wrap(ev_int(op, "axis", 0), in[0].rank), q = in[1].rank, r = 0;
    int64_t d[ARR_RANK] = {0}, ix[ARR_RANK] = {0}, src[ARR_RANK] = {0};
    for (int32_t i = 0; i < a; i++) d[r++] = in[0].d[i];
    for (int32_t i = 0; i < q; i++) d[r++] = in[1].d[i];
    for (int32_t i = a + 1; i < in[0].rank; i++) d[r++] = in[0].d[i];
    arr_shape(&out[0], r, d);
    for (int64_t f = 0; f < arr_size(&out[0]); f++) {
        unflatten(&out[0], f, ix);
        for (int32_t i = 0; i < a; i++) src[i] = ix[i];
        src[a] = in[1].v[flatten(&in[1], ix + a)] % in[0].d[a];
        for (int32_t i = a + 1; i < in[0].rank; i++) src[i] = ix[i - 1 + q];
        out[0].v[f] = in[0].v[flatten(&in[0], src)];
    }
}

/* Run the operator; out has room for 3 tensors, those it makes are marked present. */
static void ev_run(const ev_op *op, const arr *in, uint32_t n_in, arr *out)
{
    static const char *const norms[] = {"BatchNormalization",
                                        "InstanceNormalization",
                                        "LayerNormalization",
                                        "RMSNormalization",
                                        "GroupNormalization",
                                        "LpNormalization",
                                        "MeanVarianceNormalization",
                                        "LRN",
                                        "Softmax"};
    static const char *const shapes[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
    for (int k = 0; k < 3; k++) out[k].present = false;
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        if (is(op, norms[i])) {
            ev_norm(op, in, n_in, out);
            return;
        }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (is(op, shapes[i])) {
            ev_reshape(op, in, n_in, out);
            return;
        }
    if (strncmp(op->type, "Reduce", 6) == 0 || is(op, "ArgMax"))
        ev_reduce(op, in, n_in, out);
    else if (is(op, "CumSum"))
        ev_cumsum(in, out);
    else if (is(op, "QuantizeLinear") || is(op, "DequantizeLinear"))
        ev_quant(op, in, n_in, out);
    else if (is(op, "MatMul") || is(op, "MatMulInteger") || is(op, "QLinearMatMul"))
        ev_matmul(op, in, n_in, out);
    else if (is(op, "Gemm"))
        ev_gemm(op, in, n_in, out);
    else if (is(op, "Einsum"))
        ev_einsum(op, in, n_in, out);
    else if (is(op, "Attention"))
        ev_attention(in, n_in, out);
    else if (is(op, "Transpose"))
        ev_transpose(op, in, out);
    else if (is(op, "Expand"))
        ev_expand(in, out);
    else if (is(op, "Tile"))
        ev_tile(in, out);
    else if (is(op, "Concat"))
        ev_concat(op, in, n_in, out);
    else if (is(op, "Split"))
        ev_split(op, in, out);
    else if (is(op, "Gather"))
        ev_gather(op, in, out);
    else if (is(op, "Add") && op->version < 7)
        ev_legacy_add(op, in, out);
    else
        ev_pointwise(op, in, n_in, out);
}

#endif
