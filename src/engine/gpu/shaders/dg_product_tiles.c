/* Matrix products in blocks of shared memory (dg_tiles.h): a chunk of A, a chunk of B, each loaded
 * along the axis where its elements are neighbours. */
#include "dg_product.h"
#include "dg_tiles.h"

typedef struct product_tiles {
    dg_matrices *p;
    dg_tiles t;
    bool whole; /* chunks fill the depth */
    bool packs; /* B lies as [N][K] */
} product_tiles;

/* Elements between neighbours along the rows (of A) or columns (of B), along the depth. */
static int64_t across(const dg_matrices *p, dg_side side)
{
    return side == DG_ROWS ? p->a.strides[p->a.rank - 2] : p->b.strides[p->b.rank - 1];
}
static int64_t down(const dg_matrices *p, dg_side side)
{
    return side == DG_ROWS ? p->a.strides[p->a.rank - 1] : p->b.strides[p->b.rank - 2];
}

/* Loads of one side, where its rows or columns and the depth go on. */
static void fetch_side(dg_build *b, const product_tiles *s, dg_side side)
{
    const dg_matrices *p = s->p;
    const char name = side == DG_ROWS ? 'a' : 'b';
    const uint32_t arg = side == DG_ROWS ? p->in_a : p->in_b;
    const char *most = dg_num(b, side == DG_ROWS ? p->rows : p->cols), *depth = dg_num(b, p->depth);
    for (uint32_t n = 0; n < dg_tile_loads(&s->t, side); n++) {
        const int64_t far = dg_tile_across(&s->t, side, n);
        for (uint32_t k = 0; k < dg_tile_parts(&s->t, side); k++) {
            const int64_t deep = dg_tile_down(&s->t, side, n) + k;
            const char *at = dg_num(b, far * across(p, side) + deep * down(p, side));
            const char *inside = dg_fmt(b, "at_r%c + %lld < %s", name, (long long)far, most);
            if (!s->whole)
                inside = dg_fmt(b, "%s && m + k%c + %lld < %s", inside, name, (long long)deep,
                                depth);
            dg_tile_load(b, &s->t, side, n, k, inside, arg, dg_fmt(b, "at_%c + %s", name, at));
        }
    }
    dg_line(b, "at_%c += %s;", name, dg_num(b, dg_tile_depth(&s->t) * down(p, side)));
}

static void start(dg_build *b, const void *state)
{
    const product_tiles *s = state;
    const dg_matrices *p = s->p;
    const char *at_b = s->packs ? dg_fmt(b, "(first_col + rb) * %s + kb", dg_num(b, p->depth))
                                : dg_product_index(b, p, p->in_b, "kb", "(first_col + rb)");
    dg_line(b, "m = 0;\nat_a = %s;\nat_b = %s;",
            dg_product_index(b, p, p->in_a, "(first_row + ra)", "ka"), at_b);
}

static void fetch(dg_build *b, const void *state)
{
    const product_tiles *s = state;
    fetch_side(b, s, DG_ROWS);
    fetch_side(b, s, DG_COLS);
    dg_line(b, "m += %u;", dg_tile_depth(&s->t));
}

static bool finish(dg_build *b, product_tiles *s)
{
    dg_matrices *p = s->p;
    dg_tiles_cols(b, &s->t);
    dg_line(b, "const int col = first_col + %s;\nif (col >= %s) continue;", dg_tile_col(b, &s->t),
            dg_num(b, p->cols));
    dg_tiles_rows(b, &s->t);
    dg_line(b, "const int row = first_row + %s;\nif (row >= %s) continue;", dg_tile_row(b, &s->t),
            dg_num(b, p->rows));
    if (!dg_product_rest(b, p, "row", "col", dg_tile_sum(b, &s->t))) return false;
    dg_tiles_end(b, &s->t);
    return true;
}

/* A constant B along the depth. */
static uint32_t packed(dg_build *b, dg_matrices *p)
{
    const ot_dg_packing pack = {.block = 1,
                                .groups = 1,
                                .maps = p->cols,
                                .map_stride = p->b.strides[1],
                                .depth_dims = {1, p->depth},
                                .depth_steps = {0, p->b.strides[0]}};
    p->b.strides[0] = 1;
    p->b.strides[1] = p->depth;
    return dg_packed(b, p->n->in[1], &pack);
}

/* Are 16 bytes along `axis` of x neighbours, from every such place on? */
static bool has_quads(const ot_nd *x, uint32_t axis)
{
    const int64_t each = 16 / (int64_t)ot_dtype_bytes(x->dtype);
    if (x->strides[axis] != 1 || x->dims[axis] % each) return false;
    for (uint32_t k = 0; k < x->rank; k++)
        if (k != axis && x->dims[k] > 1 && x->strides[k] % each) return false;
    return true;
}

static bool write_kernel(dg_build *b, product_tiles *s, const dg_tiled *x)
{
    dg_matrices *p = s->p;
    const uint32_t rank = p->y.rank;
    int64_t dims[OT_RANK_MAX], groups;
    memcpy(dims, p->y.dims, rank * sizeof *dims);
    dims[rank - 2] = ot_ceil_div(p->rows, s->t.rows);
    dims[rank - 1] = ot_ceil_div(p->cols, s->t.cols);
    if (!ot_product(dims, rank, &groups)) return dg_refuse(b, "more elements than can be counted");
    dg_begin_group(b, groups, dg_tile_items(&s->t));
    dg_split(b, "c", rank, dims, p->coords);
    p->in_a = dg_arg(b, p->n->in[0], &p->a, false);
    p->in_b = s->packs ? packed(b, p) : dg_arg(b, p->n->in[1], &p->b, false);
    dg_tiles_open(b, &s->t);
    dg_line(b, "const int first_row = %s * %u, first_col = %s * %u;", p->coords[rank - 2],
            s->t.rows, p->coords[rank - 1], s->t.cols);
    dg_line(b, "const int at_ra = first_row + ra, at_rb = first_col + rb;");
    dg_line(b, "int m, at_a, at_b;");
    const dg_tile_text text = {start, fetch, NULL, s};
    dg_tiles_sums(b, &s->t, x, &text);
    if (!finish(b, s)) return false;
    b->spreads = false;
    dg_tiles_count(b, &s->t, x, p->a.dtype);
    dg_end(b, groups * dg_tile_items(&s->t), 0,
           2.0 * (double)(x->rows * x->times) * (double)x->cols * (double)p->depth);
    return !b->why;
}

bool dg_product_tiles(dg_build *b, dg_matrices *p, double plain, bool *done)
{
    dg_tiled x = {.rows = p->rows,
                  .cols = p->cols,
                  .depth = p->depth,
                  .taps = 1,
                  .times = 1,
                  .dtype = p->a.dtype,
                  .plain = plain};
    product_tiles s = {.p = p, .t.deep = {down(p, DG_ROWS) == 1, down(p, DG_COLS) == 1}};
    const ot_nd *weights = dg_nd(b, p->n->in[1]);
    const bool constant = weights->data && ot_nd_is_dense(weights) && p->b.rank == 2 &&
                          b->target->layout.packs != OT_DG_NEVER;
    x.deep_halves[DG_COLS] = constant;
    x.quads[DG_ROWS] = has_quads(&p->a, p->a.rank - (s.t.deep[DG_ROWS] ? 1 : 2));
    x.quads[DG_COLS] = constant && p->a.dtype != OT_F32
                           ? p->depth % 8 == 0
                           : has_quads(&p->b, p->b.rank - (s.t.deep[DG_COLS] ? 2 : 1));
    *done = false;
    for (uint32_t k = 0; k + 2 < p->y.rank; k++) x.times *= p->y.dims[k];
    if (x.rows == 0 || x.cols == 0 || x.times == 0 || p->depth == 0) return true;
    if (!dg_tiles_choose(b, &x, &s.t)) return true;
    s.packs = s.t.in_word > 1 && constant && down(p, DG_COLS) != 1;
    s.whole = p->depth % dg_tile_depth(&s.t) == 0;
    *done = true;
    return write_kernel(b, &s, &x);
}
