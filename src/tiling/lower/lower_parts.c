/* Reductions over an axis that is cut: every tile reduces its share, and the parts are combined
 * behind the loops.
 *
 *   y = ReduceMean(x) over 64 rows, in 4 tiles       y_parts: 4x...  in global memory
 *
 *     tile t: y_tile = reduce_mean(x_tile); y_tile = muls(y_tile, 16/64); y_parts[t] <- y_tile
 *     then:   y_all = reduce_sum(y_parts, axis=0); y <- y_all
 */
#include "lower_region.h"

bool lowered_is_part(const lowered *p, uint32_t v)
{
    for (uint32_t d = 0; d < p->r->n_dims; d++)
        if (ot_is_part(p->r, v, d)) return true;
    return false;
}

/* How parts are combined; NULL: not here. */
static const char *combination(const ot_node *n)
{
    static const char *const how[][2] = {
        {"ReduceSum", "reduce_sum"},  {"ReduceSumSquare", "reduce_sum"},
        {"ReduceMean", "reduce_sum"}, {"GlobalAveragePool", "reduce_sum"},
        {"ReduceMax", "reduce_max"},  {"GlobalMaxPool", "reduce_max"},
        {"ReduceMin", "reduce_min"}};
    for (size_t k = 0; k < sizeof how / sizeof *how; k++)
        if (strcmp(how[k][0], n->op_type) == 0) return how[k][1];
    return NULL;
}

static uint32_t add_slots(const lowered *p, uint32_t v, int64_t *dims, bool single)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < p->r->n_dims; d++)
        if (ot_is_part(p->r, v, d)) dims[n++] = single ? 1 : p->r->dims[d].n_tiles;
    return n;
}

ot_status lowered_declare_parts(lowered *p, uint32_t v, const lowered_tensor *like)
{
    lowered_tensor parts = *like;
    const uint32_t n = add_slots(p, v, parts.dims, false);
    const ot_value *x = &p->g->values[p->r->values[v].value];
    if (!combination(&p->g->nodes[p->r->nodes[p->r->values[v].node].node]))
        return lowered_refuse(p, "a reduction in parts of its kind");
    if (like->rank + n > OT_TK_RANK_MAX) return lowered_refuse(p, "parts of more than 8 axes");
    memcpy(parts.dims + n, like->dims, like->rank * sizeof *like->dims);
    parts.rank = like->rank + n;
    return lowered_alloc(p, x->name, "_parts", OT_SCOPE_GM, 1, &parts, &p->parts[v]);
}

/* A mean of a share counts for as much as the share is of all. */
static ot_status scale_by_share(lowered *p, uint32_t i)
{
    const ot_rnode *rn = &p->r->nodes[i];
    const ot_node *n = &p->g->nodes[rn->node];
    const lowered_tensor *tile = &p->tile[rn->out[0]];
    double share = 1;
    if (strcmp(n->op_type, "ReduceMean") != 0 && strcmp(n->op_type, "GlobalAveragePool") != 0)
        return OT_OK;
    for (uint32_t d = 0; d < p->r->n_dims; d++) {
        if (rn->lead_axis[d] != OT_AX_SUM) continue;
        const ot_win w = lowered_windows(p, d)->ops[i].in[0];
        share *= (double)(w.hi - w.lo) / (double)p->g->values[n->in[0]].dims[rn->in_axis[d][0]];
    }
    lowered_op op = {.pipe = OT_PIPE_VECTOR,
                     .name = "muls",
                     .out = *tile,
                     .n_in = 1,
                     .in = {*tile},
                     .n_attrs = 1};
    op.attrs[0] = (lowered_attr){.name = "value", .n = 1, .values = {share}};
    return lowered_statement(p, &op);
}

ot_status lowered_keep_part(lowered *p, uint32_t i)
{
    const uint32_t v = p->r->nodes[i].out[0];
    lowered_tensor piece, from, slot;
    ot_tk_affine lo[OT_TK_RANK_MAX], to[OT_TK_RANK_MAX] = {0}, inset[OT_TK_RANK_MAX] = {0};
    int64_t dims[OT_TK_RANK_MAX];
    uint32_t n = 0;
    if (!lowered_tile_shape(p, v, true, &piece, lo)) return OT_OK;
    OT_TRY(scale_by_share(p, i));
    for (uint32_t d = 0; d < p->r->n_dims; d++) {
        const int8_t axis = p->r->values[v].axis[d];
        if (ot_is_part(p->r, v, d))
            to[n] = lowered_moving(p, d, p->runs[d][p->at[d]].first, 1), dims[n++] = 1;
        if (axis >= 0)
            inset[axis].constant = lowered_windows(p, d)->piece[v].lo -
                                   lowered_tile_window(p, d, v).lo;
    }
    memcpy(to + n, lo, piece.rank * sizeof *to);
    memcpy(dims + n, piece.dims, piece.rank * sizeof *dims);
    OT_TRY(lowered_part(p, &p->tile[v], inset, piece.dims, &from));
    OT_TRY(lowered_alias(p, &from, piece.rank + n, dims, &from));
    OT_TRY(lowered_part(p, &p->parts[v], to, dims, &slot));
    return lowered_copy(p, &slot, &from);
}

ot_status lowered_combine(lowered *p, uint32_t i)
{
    const uint32_t v = p->r->nodes[i].out[0];
    if (v == OT_NONE || p->parts[v].v == OT_NONE) return OT_OK;
    lowered_tensor all = p->parts[v], whole;
    const uint32_t n = add_slots(p, v, all.dims, true);
    const ot_value *x = &p->g->values[p->r->values[v].value];
    OT_TRY(lowered_alloc(p, x->name, "_all", OT_SCOPE_GM, 1, &all, &whole));
    lowered_op op = {.pipe = OT_PIPE_VECTOR,
                     .name = combination(&p->g->nodes[p->r->nodes[i].node]),
                     .out = whole,
                     .n_in = 1,
                     .in = {p->parts[v]},
                     .n_attrs = 1};
    op.attrs[0] = (lowered_attr){.name = "axis", .n = n, .list = true};
    for (uint32_t k = 0; k < n; k++) op.attrs[0].values[k] = k;
    OT_TRY(lowered_statement(p, &op));
    OT_TRY(lowered_alias(p, &whole, all.rank - n, all.dims + n, &whole));
    return ot_kb_store(p->b, p->param[v], NULL, 0, whole.v) ? OT_OK : lowered_nomem(p);
}
