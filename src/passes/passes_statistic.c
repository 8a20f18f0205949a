/* Numbers of the rows that a chunk owns, in float64. A mask for each axis that is cut says which
 * rows of the crop's value these are: all others count as nothing, whatever they hold. The last
 * axis comes first, line by line, so that tiles of lines need nothing of each other; then the
 * lines.
 *
 *     x [N, C, H, W] --Cast--> where owned, else 0 --ReduceSum over W / n--> mean of lines
 *                 x - mean of lines, where owned, else 0 --ReduceSumSquare over W--> m2 of lines
 *
 *     mean = sum of means of owned lines / their number
 *     m2   = sum of m2 of owned lines + n of a line * sum of (mean of a line - mean)^2
 *
 * which is how parts are put together afterwards, too. Axes that are not cut are averaged at the
 * end: every part has them whole.
 */
#include "passes_internal.h"

#define WHERE_SINCE 9 /* opset; before, rows that are not owned are multiplied with 0 */
#define HUGE_NUMBER 1.7976931348623157e308

typedef struct parts {
    decomp_writer w;
    const pass_statistic *s;
    ot_id mask[OT_RANK_MAX];    /* [n_axes] as inputs */
    ot_id ones[OT_RANK_MAX];    /* [n_axes] 1 where rows are owned, else 0, float64 */
    ot_id count[OT_RANK_MAX];   /* [n_axes] how many rows are */
    int64_t whole[OT_RANK_MAX]; /* [n_whole] axes that are reduced and not cut */
    size_t n_whole;
} parts;

static ot_status op(parts *p, const char *type, const char *role, const ot_id *in, uint32_t n,
                    ot_id *out)
{
    const ot_value like = p->w.g->values[in[n - 1]];
    *out = OT_NONE;
    return decomp_op(&p->w, &(ot_node_def){.op = type, .name = role, .in = {in, n}},
                     (ot_tensor_type){OT_F64, like.rank, like.dims}, out);
}

static ot_status two(parts *p, const char *type, const char *role, ot_id a, ot_id b, ot_id *out)
{
    const ot_value x = p->w.g->values[a], y = p->w.g->values[b];
    int64_t dims[OT_RANK_MAX];
    for (int32_t k = 0; k < x.rank; k++) dims[k] = x.dims[k] == 1 ? y.dims[k] : x.dims[k];
    *out = OT_NONE;
    return decomp_op(&p->w, &(ot_node_def){.op = type, .name = role, .in = {(ot_id[]){a, b}, 2}},
                     (ot_tensor_type){OT_F64, x.rank, dims}, out);
}

static ot_status number(parts *p, double value, ot_id *out)
{
    int64_t dims[OT_RANK_MAX];
    const int32_t rank = p->w.g->values[p->s->x].rank;
    for (int32_t k = 0; k < rank; k++) dims[k] = 1;
    return decomp_doubles(&p->w, "number", &value, rank, dims, out);
}

/* v where axis k of those that are cut is owned, else `rest`. */
static ot_status owned(parts *p, uint32_t k, ot_id v, double rest, ot_id *out)
{
    const ot_value like = p->w.g->values[v];
    ot_id fill, aside;
    if (p->w.g->model->opset < WHERE_SINCE) {
        OT_TRY(two(p, "Mul", "owned", v, p->ones[k], out));
        if (rest == 0) return OT_OK;
        OT_TRY(number(p, 1, &fill));
        OT_TRY(two(p, "Sub", "others", fill, p->ones[k], &aside));
        OT_TRY(number(p, rest, &fill));
        OT_TRY(two(p, "Mul", "others", aside, fill, &aside));
        return two(p, "Add", "owned", *out, aside, out);
    }
    OT_TRY(number(p, rest, &fill));
    *out = OT_NONE;
    return decomp_op(
        &p->w,
        &(ot_node_def){.op = "Where", .name = "owned", .in = {(ot_id[]){p->mask[k], v, fill}, 3}},
        (ot_tensor_type){OT_F64, like.rank, like.dims}, out);
}

/* The same for all axes that are cut but the last, reduced by `type` over them. */
static ot_status over_lines(parts *p, const char *type, const char *role, ot_id v, double rest,
                            ot_id *out)
{
    int64_t axes[OT_RANK_MAX];
    const uint32_t n = p->s->is.n_axes - 1;
    *out = v;
    for (uint32_t k = 0; k < n; k++) {
        axes[k] = p->s->is.axes[k];
        OT_TRY(owned(p, k, *out, rest, out));
    }
    return n ? decomp_reduce(&p->w, type, role, *out, axes, n, out) : OT_OK;
}

/* Over the last of the axes that are cut. */
static ot_status over_last(parts *p, const char *type, const char *role, ot_id v, double rest,
                           ot_id *out)
{
    const uint32_t last = p->s->is.n_axes - 1;
    const int64_t axis = p->s->is.axes[last];
    OT_TRY(owned(p, last, v, rest, out));
    return decomp_reduce(&p->w, type, role, *out, &axis, 1, out);
}

static ot_status over_whole(parts *p, const char *type, const char *role, ot_id v, ot_id *out)
{
    *out = v;
    return p->n_whole ? decomp_reduce(&p->w, type, role, v, p->whole, p->n_whole, out) : OT_OK;
}

/* Rows that are owned of axes [from, to) of those that are cut, multiplied with each other. */
static ot_status counted(parts *p, uint32_t from, uint32_t to, ot_id *out)
{
    *out = p->count[from];
    for (uint32_t k = from + 1; k < to; k++) OT_TRY(two(p, "Mul", "count", *out, p->count[k], out));
    return OT_OK;
}

/* v becomes the output <name>.<what>. */
static ot_status hand_out(parts *p, ot_id v, const char *what)
{
    ot_graph *g = p->w.g;
    const ot_value like = g->values[v];
    const char *name = ot_format(g->model->arena, "%s.%s", p->s->is.name, what);
    ot_id out = name ? ot_value_new(g, name, OT_F64, like.rank, like.dims) : OT_NONE;
    if (out == OT_NONE) return ot_fail_nomem(g->model->diag);
    OT_TRY(decomp_op(&p->w, &(ot_node_def){.op = "Identity", .name = what, .in = {&v, 1}},
                     ot_type_of(&like), &out));
    return passes_add_output(g, out);
}

static ot_status hand_out_mean(parts *p, ot_id x, ot_id *lines, ot_id *mean)
{
    const uint32_t n = p->s->is.n_axes;
    ot_id all, sum, lines_n;
    OT_TRY(over_last(p, "ReduceSum", "line_sum", x, 0, &sum));
    OT_TRY(two(p, "Div", "line_mean", sum, p->count[n - 1], lines));
    OT_TRY(over_lines(p, "ReduceSum", "sum", *lines, 0, mean));
    if (n > 1) {
        OT_TRY(counted(p, 0, n - 1, &lines_n));
        OT_TRY(two(p, "Div", "mean", *mean, lines_n, mean));
    }
    OT_TRY(counted(p, 0, n, &all));
    OT_TRY(hand_out(p, all, "n"));
    ot_id over;
    OT_TRY(over_whole(p, "ReduceMean", "whole_mean", *mean, &over));
    return hand_out(p, over, "mean");
}

/* n times the square of a - b, reduced to where b is. */
static ot_status hand_out_moments(parts *p, ot_id x)
{
    const uint32_t n = p->s->is.n_axes;
    ot_id lines, mean, away, squares, spread, over, all;
    OT_TRY(hand_out_mean(p, x, &lines, &mean));
    OT_TRY(two(p, "Sub", "away", x, lines, &away));
    OT_TRY(over_last(p, "ReduceSumSquare", "line_m2", away, 0, &squares));
    OT_TRY(over_lines(p, "ReduceSum", "lines_m2", squares, 0, &squares));
    if (n > 1) {
        OT_TRY(two(p, "Sub", "line_away", lines, mean, &away));
        OT_TRY(over_lines(p, "ReduceSumSquare", "spread", away, 0, &spread));
        OT_TRY(two(p, "Mul", "spread", spread, p->count[n - 1], &spread));
        OT_TRY(two(p, "Add", "m2", squares, spread, &squares));
    }
    if (p->n_whole == 0) return hand_out(p, squares, "m2");
    OT_TRY(over_whole(p, "ReduceMean", "over", mean, &over));
    OT_TRY(two(p, "Sub", "whole_away", mean, over, &away));
    OT_TRY(two(p, "Mul", "whole_square", away, away, &away));
    OT_TRY(counted(p, 0, n, &all));
    OT_TRY(two(p, "Mul", "whole_spread", away, all, &away));
    OT_TRY(two(p, "Add", "whole_m2", squares, away, &squares));
    OT_TRY(over_whole(p, "ReduceMean", "m2", squares, &squares));
    return hand_out(p, squares, "m2");
}

static ot_status hand_out_sum(parts *p, ot_id x)
{
    const ot_op of = p->w.g->nodes[p->s->node].op;
    if (of == OT_OP_ReduceSumSquare || of == OT_OP_ReduceL2)
        OT_TRY(two(p, "Mul", "square", x, x, &x));
    if (of == OT_OP_ReduceL1) OT_TRY(op(p, "Abs", "size", &(ot_id){x}, 1, &x));
    OT_TRY(over_last(p, "ReduceSum", "line_sum", x, 0, &x));
    OT_TRY(over_lines(p, "ReduceSum", "sum", x, 0, &x));
    OT_TRY(over_whole(p, "ReduceSum", "whole_sum", x, &x));
    return hand_out(p, x, "sum");
}

static ot_status hand_out_extreme(parts *p, ot_id x)
{
    const bool max = p->s->is.kind == OT_STATISTIC_MAX;
    const char *type = max ? "ReduceMax" : "ReduceMin";
    const double rest = max ? -HUGE_NUMBER : HUGE_NUMBER;
    OT_TRY(over_last(p, type, "of_line", x, rest, &x));
    OT_TRY(over_lines(p, type, "of_lines", x, rest, &x));
    OT_TRY(over_whole(p, type, "of_whole", x, &x));
    return hand_out(p, x, max ? "max" : "min");
}

/* The input that says which rows of axis k of those that are cut are owned, and what follows. */
static ot_status take_mask(parts *p, uint32_t k)
{
    ot_graph *g = p->w.g;
    const int32_t rank = g->values[p->s->x].rank;
    const bool plain = g->model->opset < WHERE_SINCE;
    const int64_t axis = p->s->is.axes[k];
    int64_t dims[OT_RANK_MAX];
    for (int32_t a = 0; a < rank; a++) dims[a] = a == axis ? g->values[p->s->x].dims[a] : 1;
    OT_TRY(passes_add_input(g, p->s->is.owned[k],
                            (ot_tensor_type){plain ? OT_F64 : OT_BOOL, rank, dims}, &p->mask[k]));
    p->ones[k] = p->mask[k];
    if (!plain) OT_TRY(decomp_cast(&p->w, "ones", p->mask[k], OT_F64, &p->ones[k]));
    return decomp_reduce(&p->w, "ReduceSum", "count", p->ones[k], &axis, 1, &p->count[k]);
}

ot_status passes_hand_out(const pass_maker *m, const pass_statistic *s, ot_graph *g)
{
    parts p = {.w = {.g = g, .base = ot_format(g->model->arena, "passes/%s/part", s->is.name)},
               .s = s};
    ot_id x = s->x, lines, mean;
    if (!p.w.base) return ot_fail_nomem(m->m->diag);
    for (int32_t a = 0; a < g->values[x].rank; a++) {
        bool cut = false;
        for (uint32_t k = 0; k < s->is.n_axes; k++) cut |= s->is.axes[k] == (uint32_t)a;
        if (s->reduced[a] && !cut) p.whole[p.n_whole++] = a;
    }
    for (uint32_t k = 0; k < s->is.n_axes; k++) OT_TRY(take_mask(&p, k));
    if (g->values[x].dtype != OT_F64) OT_TRY(decomp_cast(&p.w, "wide", x, OT_F64, &x));
    switch (s->is.kind) {
    case OT_STATISTIC_MOMENTS: return hand_out_moments(&p, x);
    case OT_STATISTIC_MEAN: return hand_out_mean(&p, x, &lines, &mean);
    case OT_STATISTIC_SUM: return hand_out_sum(&p, x);
    case OT_STATISTIC_MAX:
    case OT_STATISTIC_MIN: return hand_out_extreme(&p, x);
    }
    return OT_OK;
}
