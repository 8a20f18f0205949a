/* Activations in blocks of channels, [N][C/8][H][W][8]: who makes and reads them, and how they
 * are gone through.
 *
 *   rows    c0: w0 w1 w2 ...   c1: w0 w1 w2 ...  a convolution reads a row of each channel: as many
 *                                                lines
 *   blocks  w0: c0 .. c7  w1: c0 .. c7  ...      eight channels of neighbours are one piece of
 *                                                memory
 *
 * Kernels whose elements are found by coordinates alone (dg_index) take either; the others want
 * arrays as models have them.
 */
#include "dg_conv.h"

/* ---- arrays ---- */

bool dg_is_whole(const ot_nd *x)
{
    ot_nd whole = *x;
    if (!x->chan_block) return ot_nd_is_dense(x);
    ot_nd_set_blocked(&whole, x->dtype, x->rank, x->dims, x->chan_block);
    for (uint32_t k = 0; k < x->rank; k++)
        if (x->dims[k] != 1 && x->strides[k] != whole.strides[k]) return false;
    return x->dims[1] % x->chan_block == 0;
}

ot_nd dg_unblock(const ot_nd *x, uint32_t block, bool last)
{
    ot_nd y = *x;
    const uint32_t in = last ? x->rank : 2; /* where the axis of a block's channels goes */
    const int64_t step = x->chan_block ? 1 : x->strides[1];
    y.rank++;
    y.chan_block = 0;
    for (uint32_t k = x->rank; k-- > in;) {
        y.dims[k + 1] = x->dims[k];
        y.strides[k + 1] = x->strides[k];
    }
    y.dims[1] = x->dims[1] / block;
    y.strides[1] = x->chan_block ? x->strides[1] : x->strides[1] * block;
    y.dims[in] = block;
    y.strides[in] = step;
    return y;
}

void dg_split_as(dg_build *b, const char *prefix, const ot_nd *x, const char **coords)
{
    const char *split[OT_RANK_MAX];
    if (!x->chan_block || x->rank == OT_RANK_MAX) {
        dg_split(b, prefix, x->rank, x->dims, coords);
        return;
    }
    const ot_nd y = dg_unblock(x, x->chan_block, true);
    dg_split(b, prefix, y.rank, y.dims, split);
    memcpy(coords, split, x->rank * sizeof *coords);
    dg_line(b, "const int %smap = %s * %u + %s;", prefix, split[1], x->chan_block, split[x->rank]);
    coords[1] = dg_fmt(b, "%smap", prefix);
    b->chan = coords[1];
    b->chan_block = split[1];
    b->chan_lane = split[x->rank];
}

/* ---- who takes them ---- */

/* Operators whose kernels find elements by coordinates; the axis of channels may be any to them. */
static bool by_coordinates(ot_op op)
{
    switch ((int)op) {
    case OT_OP_Conv:
    case OT_OP_ConvTranspose:
    case OT_OP_MaxPool:
    case OT_OP_AveragePool:
    case OT_OP_Resize:
    case OT_OP_Upsample:
    case OT_OP_Concat: return true;
    default: return false;
    }
}

/* Does a Concat join whole blocks? */
static bool joins_blocks(const ot_node *n, const ot_nd *arrays)
{
    const ot_nd *y = &arrays[n->out[0]];
    int64_t axis = ot_attr_int(n, "axis", n->version < 4 ? 1 : 0);
    if (axis < 0) axis += y->rank;
    for (uint32_t k = 0; k < n->n_in && axis == 1; k++)
        if (arrays[n->in[k]].rank < 2 || arrays[n->in[k]].dims[1] % DG_BLOCK != 0) return false;
    return y->rank < OT_RANK_MAX;
}

bool ot_dg_makes_blocks(const ot_node *head, const ot_nd *arrays)
{
    if (head->op == OT_OP_Concat) return joins_blocks(head, arrays);
    return by_coordinates(head->op) || ot_dg_is_element(head, arrays);
}

uint32_t dg_block_of(const ot_nd *w, int64_t maps)
{
    int64_t bytes;
    if (!w->data || !ot_nd_is_dense(w) || !ot_nd_elems(w, &bytes) ||
        !ot_mul_i64(bytes, (int64_t)ot_dtype_bytes(w->dtype), &bytes))
        return 0;
    if (maps % DG_BLOCK == 0) return DG_BLOCK;
    if (maps > 4 && dg_may_fill(maps, DG_BLOCK, bytes)) return DG_BLOCK;
    return dg_may_fill(maps, 4, bytes) ? 4 : 0;
}

static bool conv_reads(const ot_node *n, const ot_nd *arrays)
{
    const ot_nd *x = &arrays[n->in[0]], *w = &arrays[n->in[1]], *y = &arrays[n->out[0]];
    const int64_t group = ot_attr_int(n, "group", 1);
    if (x->dtype != OT_F32 || w->dtype != OT_F32 || w->rank != x->rank || x->rank < 3 ||
        x->rank > 5 || y->rank != x->rank)
        return false;
    if (x->dims[1] % DG_BLOCK != 0 || w->dims[0] != y->dims[1]) return false;
    if (group != 1 && (group != x->dims[1] || y->dims[1] != group || w->dims[1] != 1)) return false;
    return dg_block_of(w, y->dims[1]) != 0;
}

bool ot_dg_reads_blocks(const ot_node *head, const ot_node *n, uint32_t k, const ot_nd *arrays)
{
    if (!by_coordinates(head->op) && !ot_dg_is_element(head, arrays)) {
        const bool pool = n == head &&
                          (n->op == OT_OP_GlobalAveragePool || n->op == OT_OP_GlobalMaxPool);
        return pool && k == 0;
    }
    if (n->op == OT_OP_Concat) return arrays[n->in[k]].rank < OT_RANK_MAX;
    if (n != head || !by_coordinates(n->op))
        return ot_dg_is_element(n, arrays) && (k == 0 || n->op != OT_OP_BatchNormalization);
    return k == 0 && (n->op != OT_OP_Conv || conv_reads(n, arrays));
}

bool ot_dg_wants_blocks(const ot_node *head, uint32_t k)
{
    return head->op == OT_OP_Conv && k == 0;
}

bool ot_dg_blocks_pay(const ot_dg_layout *l, uint32_t block)
{
    const uint32_t row = 8; /* elements of a work-item along a row */
    const dg_access rows = {OT_F32, block, row, 1, row}, spread = {OT_F32, block, row, row, 1};
    const dg_access blocks = {OT_F32, 1, row * block, 1, row * block};
    const double apart = dg_transactions(l, &rows), near = dg_transactions(l, &spread);
    return dg_transactions(l, &blocks) < (apart < near ? apart : near);
}
