/* Operators that move elements: transpositions, blocks, repetitions, parts and what lies around
 * them. */
#include "lower_ops.h"

static ot_status put_turned(lowered *p, const lowered_tensor *out, const lowered_tensor *in,
                            const int64_t *perm)
{
    lowered_op op = {.pipe = OT_PIPE_VECTOR, .name = "transpose", .out = *out, .n_in = 1};
    op.in[0] = *in;
    for (uint32_t k = 0; k < out->rank; k++) op.cut[k] = true, op.axis[0][k] = (int8_t)perm[k];
    tile_set_list(&op, "perm", perm, out->rank);
    return tile_put(p, &op);
}

ot_status tile_transpose(const tile_node *x)
{
    size_t n;
    int64_t turned[OT_TK_RANK_MAX];
    const int64_t *perm = ot_attr_ints(&x->n, "perm", &n);
    for (uint32_t k = 0; k < x->out.rank; k++)
        turned[k] = perm && n == x->out.rank ? perm[k] : (int64_t)x->out.rank - 1 - k;
    return put_turned(x->p, &x->out, &x->in[0], turned);
}

ot_status tile_blocks(const tile_node *x)
{
    const bool up = strcmp(x->n.op_type, "DepthToSpace") == 0;
    const bool crd = strcmp(ot_attr_str(&x->n, "mode", "DCR"), "CRD") == 0;
    static const int64_t dcr_perm[6] = {0, 3, 4, 1, 5, 2}, crd_perm[6] = {0, 1, 4, 2, 5, 3},
                         down_perm[6] = {0, 3, 5, 1, 2, 4};
    const int64_t b = ot_attr_int(&x->n, "blocksize", 1), *perm = !up   ? down_perm
                                                                  : crd ? crd_perm
                                                                        : dcr_perm;
    const lowered_tensor *in = &x->in[0];
    if (in->rank != 4 || b < 1) return tile_refuse(x, "blocks of no picture");
    const int64_t n = in->dims[0], c = in->dims[1], h = in->dims[2], w = in->dims[3],
                  deep = c / (b * b);
    int64_t from[6] = {n, up && crd ? deep : b, b, up && crd ? b : deep, h, w}, to[6];
    if (!up) memcpy(from, (int64_t[6]){n, c, h / b, b, w / b, b}, sizeof from);
    if (up && crd) memcpy(from, (int64_t[6]){n, deep, b, b, h, w}, sizeof from);
    for (uint32_t k = 0; k < 6; k++) to[k] = from[perm[k]];
    lowered_tensor src, dst;
    OT_TRY(lowered_alias(x->p, in, 6, from, &src));
    OT_TRY(lowered_alias(x->p, &x->out, 6, to, &dst));
    return put_turned(x->p, &dst, &src, perm);
}

/* Nearest neighbours in whole numbers: every element several times. */
ot_status tile_resize(const tile_node *x)
{
    const char *mode = ot_attr_str(&x->n, "mode", "nearest"),
               *at = ot_attr_str(&x->n, "coordinate_transformation_mode", "half_pixel"),
               *round = ot_attr_str(&x->n, "nearest_mode", "round_prefer_floor");
    const lowered_tensor *in = &x->in[0], *out = &x->out;
    const bool upsample = strcmp(x->n.op_type, "Upsample") == 0 || x->n.version < 11;
    const bool plain = upsample || strcmp(at, "half_pixel") == 0 ||
                       (strcmp(at, "asymmetric") == 0 && strcmp(round, "floor") == 0);
    int64_t from[OT_TK_RANK_MAX], to[OT_TK_RANK_MAX];
    uint32_t n = 0;
    if (strcmp(mode, "nearest") != 0 || !plain) return tile_refuse(x, "a Resize that interpolates");
    for (uint32_t k = 0; k < in->rank; k++) {
        const int64_t times = out->dims[k] / in->dims[k];
        if (times * in->dims[k] != out->dims[k] || n + 2 > OT_TK_RANK_MAX)
            return tile_refuse(x, "a Resize by a fraction");
        from[n] = to[n] = in->dims[k];
        n++;
        if (times == 1) continue;
        from[n] = 1;
        to[n++] = times;
    }
    lowered_tensor src, dst;
    OT_TRY(lowered_alias(x->p, in, n, from, &src));
    OT_TRY(lowered_alias(x->p, out, n, to, &dst));
    lowered_op op = tile_pointwise("expand", &dst, &src, 1);
    return tile_put(x->p, &op);
}

/* Operands of which the tile has nothing are not there. */
ot_status tile_concat(const tile_node *x)
{
    int64_t axis = ot_attr_int(&x->n, "axis", 0);
    lowered_op op = {.pipe = OT_PIPE_VECTOR, .name = "concat", .out = x->out};
    if (axis < 0) axis += x->out.rank;
    for (uint32_t j = 0; j < x->n_in; j++) {
        if (x->in[j].v == OT_NONE || (x->ad->drop && x->ad->drop[j])) continue;
        for (uint32_t k = 0; k < OT_TK_RANK_MAX; k++)
            op.axis[op.n_in][k] = k < x->out.rank && k != axis ? (int8_t)k : -1;
        op.in[op.n_in++] = x->in[j];
    }
    if (op.n_in == 0) return tile_refuse(x, "a Concat of nothing");
    for (uint32_t k = 0; k < x->out.rank; k++) op.cut[k] = k != axis;
    tile_set_number(&op, "axis", (double)axis);
    return tile_put(x->p, &op);
}

/* A part of the tile; along the cut it is what the tile's own bounds say. */
ot_status tile_slice(const tile_node *x)
{
    static const char *const names[4] = {"", "starts", "ends", "axes"};
    double list[5][OT_TK_RANK_MAX];
    size_t n[5] = {0};
    ot_tk_affine lo[OT_TK_RANK_MAX] = {0};
    lowered_tensor part;
    for (uint32_t j = 1; j < 5; j++) {
        size_t count = 0;
        const int64_t *attr = j < 4 ? ot_attr_ints(&x->n, names[j], &count) : NULL;
        for (n[j] = 0; attr && n[j] < count && n[j] < OT_TK_RANK_MAX; n[j]++)
            list[j][n[j]] = (double)attr[n[j]];
        if (!attr && x->n.version >= 10 && j < x->n.n_in && x->n.in[j] != OT_NONE &&
            !tile_numbers(x, j, list[j], OT_TK_RANK_MAX, &n[j]))
            return tile_refuse(x, "a Slice of unknown bounds");
    }
    for (size_t k = 0; k < n[1]; k++) {
        double axis = k < n[3] ? list[3][k] : (double)k, start = list[1][k];
        if (axis < 0) axis += x->in[0].rank;
        if (!(axis >= 0 && axis < x->in[0].rank) || (k < n[4] && list[4][k] != 1))
            return tile_refuse(x, "a Slice in steps");
        const double extent = (double)x->in[0].dims[(uint32_t)axis];
        if (start < 0) start += extent;
        lo[(uint32_t)axis].constant = (int64_t)(start < 0 ? 0 : start > extent ? extent : start);
    }
    for (uint32_t k = 0; k < x->out.rank; k++)
        if (lo[k].constant + x->out.dims[k] > x->in[0].dims[k])
            return tile_refuse(x, "a Slice beside its tile");
    OT_TRY(lowered_part(x->p, &x->in[0], lo, x->out.dims, &part));
    return tile_put_unary(x->p, "identity", &x->out, &part);
}

/* What lies inside is written after what lies around it. */
ot_status tile_pad(const tile_node *x)
{
    double pads[2 * OT_TK_RANK_MAX], value = 0;
    size_t n = 0, n_attr = 0, n_axes = 0, n_value = 0;
    double axes[OT_TK_RANK_MAX];
    const int64_t *attr = ot_attr_ints(&x->n, "pads", &n_attr);
    ot_tk_affine lo[OT_TK_RANK_MAX] = {0};
    lowered_tensor inside;
    if (strcmp(ot_attr_str(&x->n, "mode", "constant"), "constant") != 0)
        return tile_refuse(x, "a Pad that repeats");
    for (n = 0; attr && n < n_attr && n < 2 * OT_TK_RANK_MAX; n++) pads[n] = (double)attr[n];
    if (attr) value = (double)ot_attr_float(&x->n, "value", 0);
    if (!attr && !tile_numbers(x, 1, pads, 2 * OT_TK_RANK_MAX, &n))
        return tile_refuse(x, "a Pad of unknown size");
    if (!attr && x->n_in > 2 && x->n.in[2] != OT_NONE && !tile_numbers(x, 2, &value, 1, &n_value))
        return tile_refuse(x, "a Pad of unknown value");
    if (x->n_in > 3 && x->n.in[3] != OT_NONE && !tile_numbers(x, 3, axes, OT_TK_RANK_MAX, &n_axes))
        return tile_refuse(x, "a Pad of unknown axes");
    const size_t half = n / 2;
    for (size_t k = 0; k < half; k++) {
        double axis = n_axes > 0 ? axes[k] : (double)k;
        if (axis < 0) axis += x->out.rank;
        lo[(uint32_t)axis].constant = (int64_t)pads[k];
    }
    for (uint32_t k = 0; k < x->out.rank; k++)
        if (lo[k].constant < 0 || lo[k].constant + x->in[0].dims[k] > x->out.dims[k])
            return tile_refuse(x, "a Pad that crops");
    lowered_op fill = {.pipe = OT_PIPE_VECTOR, .name = "fill", .out = x->out};
    for (uint32_t k = 0; k < x->out.rank; k++) fill.cut[k] = true;
    tile_set_number(&fill, "value", value);
    OT_TRY(tile_put(x->p, &fill));
    OT_TRY(lowered_part(x->p, &x->out, lo, x->in[0].dims, &inside));
    return tile_put_unary(x->p, "identity", &inside, &x->in[0]);
}
