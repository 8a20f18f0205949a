/* Matrix products: a work-item makes BLOCK rows x LANES elements of the result, lanes along its
 * last axis.
 *
 *   for k      x = LANES elements of row k of B             one load
 *              acc0 += a[row][k] * x                        BLOCK products
 *
 * A constant B whose columns lie apart (Gemm's transB) is packed: [N/LANES][K][LANES], or [K][N]
 * where lanes are spread (dg_access.c).
 */
#include "dg_product.h"

typedef dg_matrices product;

static void swap_axes(ot_nd *x)
{
    int64_t dim = x->dims[0], stride = x->strides[0];
    x->dims[0] = x->dims[1];
    x->strides[0] = x->strides[1];
    x->dims[1] = dim;
    x->strides[1] = stride;
}

/* ---- what is chosen ---- */

enum { LEFT, RIGHT, RESULT, ACCESSES };

static void accesses(const product *p, bool packs, bool spread, dg_access out[ACCESSES])
{
    const int64_t items = ot_ceil_div(p->cols, p->lanes), lane = spread ? items : 1,
                  item = spread ? 1 : p->lanes;
    const int64_t in = packs ? 1 : p->b.strides[p->b.rank - 1], to = p->y.strides[p->y.rank - 1];
    out[LEFT] = (dg_access){p->a.dtype, (double)p->depth * p->block, 1, 0, 0};
    out[RIGHT] = (dg_access){p->b.dtype, (double)p->depth, p->lanes, in * lane,
                             packs && !spread && p->lanes > 1 ? p->depth * p->lanes : in * item};
    out[RESULT] = (dg_access){p->y.dtype, p->block, p->lanes, to * lane, to * item};
}

/* Packed as [N/LANES][K][LANES], not as [K][N]? */
static bool in_blocks(const product *p) { return p->packs && p->span == 1 && p->lanes > 1; }

static ot_dg_packing packing_of(const product *p)
{
    return (ot_dg_packing){.block = in_blocks(p) ? p->lanes : (uint32_t)p->cols,
                           .groups = 1,
                           .maps = p->cols,
                           .map_stride = p->b.strides[1],
                           .depth_dims = {1, p->depth},
                           .depth_steps = {0, p->b.strides[0]}};
}

/* May B be packed? Columns that fill up its last block take memory. */
static bool may_pack(const dg_build *b, const product *p)
{
    const int64_t filled = ot_ceil_div(p->cols, p->lanes) * p->lanes;
    if (p->b.rank != 2 || p->cols > INT32_MAX) return false;
    if (p->lanes == 1) return b->target->layout.busy > 0;
    return p->depth * p->cols * 4 <= DG_FILL_SMALL || filled <= p->cols + p->cols / 4;
}

/* Reading a row of lanes is as much work as two products. */
static void choose_block(product *p)
{
    int64_t best = 0;
    for (uint32_t block = 8; block > 0; block /= 2) {
        const int64_t work = ot_ceil_div(p->rows, block) * (block + 2);
        if (best > 0 && work >= best) continue;
        best = work;
        p->block = block;
    }
}

static double items_of(const product *p)
{
    double items = (double)(ot_ceil_div(p->rows, p->block) * ot_ceil_div(p->cols, p->lanes));
    for (uint32_t k = 0; k + 2 < p->y.rank; k++) items *= (double)p->y.dims[k];
    return items;
}

/* The same for a device that wants many work-items: lanes, too, where there would be few. */
static void choose_shape(const dg_build *b, product *p)
{
    const uint32_t widest = p->lanes;
    double best = 0;
    for (uint32_t lanes = widest; lanes > 0; lanes = lanes == 8 ? 4 : lanes == 4)
        for (uint32_t block = 8; block > 0; block /= 2) {
            product x = *p;
            x.lanes = lanes;
            x.block = block;
            const double work = dg_work(b, items_of(&x), lanes, block);
            if (best > 0 && work >= best) continue;
            best = work;
            p->lanes = lanes;
            p->block = block;
        }
}

static void choose(dg_build *b, product *p)
{
    dg_access plain[ACCESSES], laid[ACCESSES];
    p->lanes = p->cols >= 5 ? 8 : p->cols >= 3 ? 4 : 1;
    if (b->target->layout.busy > 0)
        choose_shape(b, p);
    else
        choose_block(p);
    accesses(p, false, false, plain);
    dg_count_plain(b, plain, ACCESSES, items_of(p));
    accesses(p, false, true, laid);
    b->spreads = p->lanes > 1 && dg_spreads(b, plain, laid, ACCESSES);
    p->span = b->spreads ? ot_ceil_div(p->cols, p->lanes) : 1;
    accesses(p, false, b->spreads, plain);
    accesses(p, true, b->spreads, laid);
    p->packs = may_pack(b, p) && dg_packs(b, p->n->in[1], &plain[RIGHT], &laid[RIGHT]);
    accesses(p, p->packs, b->spreads, laid);
    dg_count(b, laid, ACCESSES, items_of(p));
}

static bool open_product(dg_build *b, const ot_node *n, product *p)
{
    *p = (product){
        .n = n, .a = *dg_nd(b, n->in[0]), .b = *dg_nd(b, n->in[1]), .y = *dg_nd(b, n->out[0])};
    if (!ot_dtype_is_real(p->a.dtype) || p->b.dtype != p->a.dtype)
        return dg_refuse(b, "a product of this type");
    if (p->a.rank < 2 || p->b.rank < 2) return dg_refuse(b, "a product with a vector");
    if (n->op == OT_OP_Gemm && ot_attr_int(n, "transA", 0)) swap_axes(&p->a);
    if (n->op == OT_OP_Gemm && ot_attr_int(n, "transB", 0)) swap_axes(&p->b);
    p->rows = p->a.dims[p->a.rank - 2];
    p->depth = p->a.dims[p->a.rank - 1];
    p->cols = p->b.dims[p->b.rank - 1];
    if (p->b.dims[p->b.rank - 2] != p->depth || p->y.rank < 2 ||
        p->y.dims[p->y.rank - 2] != p->rows || p->y.dims[p->y.rank - 1] != p->cols)
        return dg_refuse(b, "extents that do not match");
    const ot_nd *bias = n->op == OT_OP_Gemm && dg_in(n, 2) != OT_NONE ? dg_nd(b, n->in[2]) : NULL;
    ot_nd of_a = p->a, of_b = p->b; /* their batch axes */
    of_a.dims[of_a.rank - 2] = of_a.dims[of_a.rank - 1] = of_b.dims[of_b.rank - 2] =
        of_b.dims[of_b.rank - 1] = 1;
    if (!dg_broadcasts(&of_a, p->y.rank, p->y.dims) ||
        !dg_broadcasts(&of_b, p->y.rank, p->y.dims) ||
        (bias && !dg_broadcasts(bias, p->y.rank, p->y.dims)) ||
        (n->op == OT_OP_Gemm && (p->a.rank != 2 || p->b.rank != 2)))
        return dg_refuse(b, DG_CONTRADICT);
    choose(b, p);
    return true;
}

const char *dg_product_index(dg_build *b, const product *p, uint32_t arg, const char *row,
                             const char *col)
{
    const char *c[OT_RANK_MAX];
    const ot_nd *x = &b->arrays[arg];
    for (uint32_t k = 0; k + 2 < x->rank; k++)
        c[k] = x->dims[k] == 1 ? "0" : p->coords[p->y.rank - x->rank + k];
    c[x->rank - 2] = row;
    c[x->rank - 1] = col;
    return dg_index(b, arg, c);
}

/* "col + 3", "col + 3 * span". */
static const char *lane_at(dg_build *b, const product *p, const char *lane)
{
    return dg_fmt(b, p->span == 1 ? "col + %s" : "col + %s * span", lane);
}

static const char *load_at(dg_build *b, const product *p, const char *col)
{
    if (!p->packs) return dg_product_index(b, p, p->in_b, "k", col);
    if (in_blocks(p))
        return dg_index(b, p->in_b, (const char *const[]){p->coords[p->y.rank - 1], "0", "k", "0"});
    return dg_index(b, p->in_b, (const char *const[]){"0", "0", "k", col});
}

/* A row of B. Its last block reads the last column again, unless columns were filled up. */
static void load_lanes(dg_build *b, const product *p)
{
    const ot_nd *x = &b->arrays[p->in_b];
    const char *cols = dg_num(b, p->cols);
    const bool neighbours = x->strides[x->rank - 1] == 1 && p->span == 1 && x->dtype != OT_BF16,
               blocks = in_blocks(p);
    if (p->lanes == 1) {
        dg_line(b, "const float x = %s;", dg_load(b, p->in_b, load_at(b, p, "col")));
        return;
    }
    dg_line(b, "%s x;", dg_vector(b, p->lanes));
    if (neighbours) {
        if (!blocks) dg_line(b, "if (col + %u <= %s)", p->lanes, cols);
        dg_line(b, "x = %s;", dg_load_lanes(b, p->in_b, p->lanes, load_at(b, p, "col")));
        if (blocks) return;
        dg_line(b, "else");
    }
    dg_line(b, "{");
    for (uint32_t l = 0; l < p->lanes; l++) {
        const char *lane = dg_fmt(b, "%u", l),
                   *col = dg_fmt(b, "min(%s, %s - 1)", lane_at(b, p, lane), cols);
        const char *at = blocks ? dg_fmt(b, "%s + %u", load_at(b, p, col), l) : load_at(b, p, col);
        dg_line(b, "x.s%u = %s;", l, dg_load(b, p->in_b, at));
    }
    dg_line(b, "}");
}

/* Gemm: alpha * sum + beta * C. */
static const char *scaled(dg_build *b, const product *p, const char *sum, const char *const *coords)
{
    if (p->n->op != OT_OP_Gemm) return sum;
    double alpha = (double)ot_attr_float(p->n, "alpha", 1),
           beta = (double)ot_attr_float(p->n, "beta", 1);
    if (alpha != 1) sum = dg_fmt(b, "%s * to_float(%.9g)", sum, alpha);
    ot_id v = dg_in(p->n, 2);
    if (v == OT_NONE || beta == 0) return sum;
    const char *c[OT_RANK_MAX];
    uint32_t arg = dg_arg(b, v, NULL, false);
    const ot_nd *x = &b->arrays[arg];
    for (uint32_t k = 0; k < x->rank; k++)
        c[k] = x->dims[k] == 1 ? "0" : coords[p->y.rank - x->rank + k];
    const char *load = dg_load(b, arg, dg_index(b, arg, c));
    return beta == 1 ? dg_fmt(b, "%s + %s", sum, load)
                     : dg_fmt(b, "%s + %s * to_float(%.9g)", sum, load, beta);
}

bool dg_product_rest(dg_build *b, product *p, const char *row, const char *col, const char *value)
{
    const char *coords[OT_RANK_MAX];
    const uint32_t rank = p->y.rank;
    memcpy(coords, p->coords, rank * sizeof *coords);
    coords[rank - 2] = row;
    coords[rank - 1] = col;
    dg_line(b, "const float y = %s;", scaled(b, p, value, coords));
    dg_element e = {.rank = rank, .dims = p->y.dims, .coords = coords};
    dg_element_var(b, &e, p->n->out[0], "y");
    return dg_element_rest(b, &e, 1);
}

static bool finish(dg_build *b, product *p)
{
    dg_line(b, "%s sums[%u];", dg_vector(b, p->lanes), p->block);
    for (uint32_t j = 0; j < p->block; j++) dg_line(b, "sums[%u] = acc%u;", j, j);
    dg_line(b, "for (int j = 0; j < %u && row + j < %s; j++) {", p->block, dg_num(b, p->rows));
    if (p->lanes > 1) {
        dg_line(b, "float lane[%u];\nspread%u(sums[j], lane);", p->lanes, p->lanes);
        dg_line(b, "for (int l = 0; l < %u && %s < %s; l++) {", p->lanes, lane_at(b, p, "l"),
                dg_num(b, p->cols));
    } else {
        dg_line(b, "{\nconst int l = 0;\nconst float lane[1] = {sums[j]};");
    }
    const char *col = dg_fmt(b, "(%s)", lane_at(b, p, "l"));
    if (!dg_product_rest(b, p, "(row + j)", col, "lane[l]")) return false;
    dg_line(b, "}\n}");
    return true;
}

bool dg_product(dg_build *b, const ot_node *n)
{
    product p;
    int64_t dims[OT_RANK_MAX], items, elems;
    bool done;
    if (!open_product(b, n, &p)) return false;
    if (!dg_product_tiles(b, &p, dg_work(b, items_of(&p), p.lanes, p.block), &done) || done)
        return !b->why;
    uint32_t rank = p.y.rank;
    memcpy(dims, p.y.dims, rank * sizeof *dims);
    dims[rank - 2] = ot_ceil_div(p.rows, p.block);
    dims[rank - 1] = ot_ceil_div(p.cols, p.lanes);
    if (!ot_product(dims, rank, &items) || items == 0 || !ot_nd_elems(&p.y, &elems))
        return dg_refuse(b, "an empty result");
    if (!dg_steps(b, (double)p.depth)) return false;
    dg_begin(b, items);
    dg_split(b, "c", rank, dims, p.coords);
    dg_line(b, "const int row = %s * %u;", p.coords[rank - 2], p.block);
    if (p.span == 1)
        dg_line(b, "const int col = %s * %u;", p.coords[rank - 1], p.lanes);
    else
        dg_line(b, "const int col = %s, span = %s;", p.coords[rank - 1], dg_num(b, p.span));
    const ot_dg_packing pack = packing_of(&p);
    p.in_a = dg_arg(b, n->in[0], &p.a, false);
    p.in_b = p.packs ? dg_packed(b, n->in[1], &pack) : dg_arg(b, n->in[1], &p.b, false);
    for (uint32_t j = 0; j < p.block; j++)
        dg_line(b, "%s acc%u = splat%u(0);", dg_vector(b, p.lanes), j, p.lanes);
    dg_line(b, "for (int k = 0; k < %s; k++) {", dg_num(b, p.depth));
    load_lanes(b, &p);
    const char *last = dg_fmt(b, "%s - 1", dg_num(b, p.rows));
    for (uint32_t j = 0; j < p.block; j++) {
        const char *row = p.block == 1 ? "row" : dg_fmt(b, "min(row + %u, %s)", j, last);
        dg_line(b, "acc%u = madd(%s, x, acc%u);", j,
                dg_load(b, p.in_a, dg_product_index(b, &p, p.in_a, row, "k")), j);
    }
    dg_line(b, "}");
    if (!finish(b, &p)) return false;
    dg_end(b, items, 16, 2.0 * (double)elems * (double)p.depth);
    return !b->why;
}
