/* Resize with align_corners, whose map depends on whole extents, in a form that can be cut along
 * its first resized axis:
 *
 *     x --Resize--> y          x --GatherRows(low)----Mul(weight)--.
 *                              x --GatherRows(high)---Mul(weight)--Add--> rows --Resize of the
 *                              other axes--> y
 *
 * Which rows, with which weights, stands in constants; a tile takes its part of these. Rows come
 * first, where the other axes are still short: the Resize behind them takes about the time that
 * the whole one did (65 x 65 to 513 x 513: 26.6 ms in place of 29.7; all axes by Gather, 49 to
 * 209 ms; products with matrices of weights, 22.3, but 166.8 in place of 29.4 for 256 x 256 to
 * 512 x 512; tf_crop_and_resize, 54.3, and ONNX Runtime alone has it). Weights are computed as
 * runtimes compute them, so that what differs is the order in which four products are added: an
 * NMSE of 5e-15. Nearest neighbours are the same to the bit.
 */
#include "decompose_internal.h"

bool decomp_find_corners(const ot_graph *g, ot_id id, ot_corners *out)
{
    const ot_node *n = &g->nodes[id];
    if (n->dead || n->op != OT_OP_Resize || !ot_corners_read(g, n, out)) return false;
    const ot_value *x = &g->values[n->in[0]];
    int64_t row[OT_CORNER_TAPS];
    float weight[OT_CORNER_TAPS];
    /* rows of one element are gathered one by one */
    if (out->axis + 1 >= (uint32_t)x->rank) return false;
    if (out->n_taps > 1 && x->dtype != OT_F32 && x->dtype != OT_F64) return false;
    for (int64_t o = 0; o < out->out; o++)
        if (!ot_corners_taps(out, o, row, weight)) return false;
    return true;
}

/* Tables of all output rows: index [n_taps][out], weight likewise. */
static bool fill_tables(const ot_corners *c, ot_arena *a, int64_t **index, float **weight)
{
    const size_t n = (size_t)c->out * c->n_taps;
    *index = OT_NEW_N(a, int64_t, n);
    *weight = OT_NEW_N(a, float, n);
    if (!*index || !*weight) return false;
    for (int64_t o = 0; o < c->out; o++) {
        int64_t row[OT_CORNER_TAPS];
        float w[OT_CORNER_TAPS];
        if (!ot_corners_taps(c, o, row, w))
            OT_BUG("a Resize was decomposed whose rows are not agreed on");
        for (uint32_t k = 0; k < c->n_taps; k++) {
            (*index)[k * (size_t)c->out + (size_t)o] = row[k];
            (*weight)[k * (size_t)c->out + (size_t)o] = w[k];
        }
    }
    return true;
}

/* Weights of one tap, which broadcast to x. */
static ot_status weight_table(decomp_writer *w, const ot_corners *c, const ot_value *x,
                              const float *weight, ot_id *out)
{
    int64_t dims[OT_RANK_MAX];
    const int32_t rank = x->rank - (int32_t)c->axis;
    for (int32_t k = 0; k < rank; k++) dims[k] = k == 0 ? c->out : 1;
    if (x->dtype == OT_F32) return decomp_floats(w, "weight", weight, rank, dims, out);
    double *wide = OT_NEW_N(w->g->model->arena, double, (size_t)c->out);
    if (!wide) return ot_fail_nomem(w->g->model->diag);
    for (int64_t o = 0; o < c->out; o++) wide[o] = (double)weight[o];
    return decomp_doubles(w, "weight", wide, rank, dims, out);
}

/* y: the rows of x that axis c->axis is made of. *y: the value to make, or OT_NONE. */
static ot_status write_rows(decomp_writer *w, const ot_corners *c, ot_id x, ot_id *y)
{
    ot_arena *a = w->g->model->arena;
    const ot_value v = w->g->values[x];
    const ot_attr attrs[3] = {ot_mk_int("axis", c->axis), ot_mk_int("before", c->before),
                              ot_mk_int("behind", c->behind)};
    int64_t dims[OT_RANK_MAX], *index, *numbers = OT_NEW_N(a, int64_t, (size_t)c->in);
    float *weight;
    ot_id rows, sum = OT_NONE;
    if (!numbers || !fill_tables(c, a, &index, &weight)) return ot_fail_nomem(w->g->model->diag);
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    dims[c->axis] = c->out;
    for (int64_t k = 0; k < c->in; k++) numbers[k] = k;
    OT_TRY(decomp_ints(w, "rows", numbers, c->in, &rows));
    for (uint32_t k = 0; k < c->n_taps; k++) {
        ot_id table, tap = c->n_taps == 1 ? *y : OT_NONE, by, part = OT_NONE;
        OT_TRY(decomp_ints(w, "index", index + k * (size_t)c->out, c->out, &table));
        OT_TRY(decomp_op(w,
                         &(ot_node_def){.op = "GatherRows",
                                        .name = "rows",
                                        .in = {(ot_id[]){x, rows, table}, 3},
                                        .attrs = {attrs, 3}},
                         (ot_tensor_type){v.dtype, v.rank, dims}, &tap));
        sum = k == 0 ? tap : sum;
        if (c->n_taps == 1) break;
        OT_TRY(weight_table(w, c, &v, weight + k * (size_t)c->out, &by));
        OT_TRY(decomp_op(
            w, &(ot_node_def){.op = "Mul", .name = "weighed", .in = {(ot_id[]){tap, by}, 2}},
            (ot_tensor_type){v.dtype, v.rank, dims}, &part));
        ot_id both = k + 1 == c->n_taps ? *y : OT_NONE;
        if (k > 0)
            OT_TRY(decomp_op(
                w, &(ot_node_def){.op = "Add", .name = "sum", .in = {(ot_id[]){sum, part}, 2}},
                (ot_tensor_type){v.dtype, v.rank, dims}, &both));
        sum = k > 0 ? both : part;
    }
    *y = sum;
    return OT_OK;
}

ot_status decomp_write_corners(decomp_writer *w, ot_id node, const ot_corners *c)
{
    ot_graph *g = w->g;
    const ot_node n = g->nodes[node];
    const ot_value v = g->values[n.out[0]];
    const int64_t entries = c->n_entries;
    ot_id y = n.out[0], rows = c->others ? OT_NONE : y,
          *in = ot_memdup(g->model->arena, n.in, n.n_in * sizeof *n.in);
    if (!in) return ot_fail_nomem(g->model->diag);
    ot_node_remove(g, node);
    OT_TRY(write_rows(w, c, n.in[0], &rows));
    if (!c->others) return OT_OK;
    in[0] = rows;
    if (c->by_sizes)
        OT_TRY(decomp_ints(w, "sizes", c->sizes, entries, &in[c->operand]));
    else
        OT_TRY(decomp_floats(w, "scales", c->scales, 1, &entries, &in[c->operand]));
    return decomp_op(
        w,
        &(ot_node_def){
            .op = "Resize", .name = "columns", .in = {in, n.n_in}, .attrs = {n.attrs, n.n_attrs}},
        ot_type_of(&v), &y);
}

ot_status decomp_agree_rows(ot_graph *g)
{
    for (ot_id k = 0; k < g->n_nodes; k++) {
        const ot_node n = g->nodes[k];
        if (n.dead || n.op != OT_OP_GatherRows || !ot_rows_are_near(g, &n)) continue;
        const ot_attr axis = ot_mk_int("axis", ot_attr_int(&n, "axis", 0));
        const ot_id in[2] = {n.in[0], n.in[2]};
        ot_node_remove(g, k);
        if (ot_node_new(g, &(ot_node_def){.op = "Gather",
                                          .name = n.name,
                                          .in = {in, 2},
                                          .out = {n.out, 1},
                                          .attrs = {&axis, 1}}) == OT_NONE)
            return ot_fail_nomem(g->model->diag);
    }
    return OT_OK;
}
