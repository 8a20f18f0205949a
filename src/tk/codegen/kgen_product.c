/* Products of matrices: an item makes a block of the result, which it holds in registers.
 *
 *             n0 .. n0+4
 *   b    k  [ y y y y ]        for every k: 4 elements of b and 2 of a make 8 products
 *   a    x  [ . . . . ] m0
 *        x  [ . . . . ] m0+1   sums grow in the order of k
 *
 * Blocks at the edges read the last row or column again, and write what is inside.
 */
#include "kgen_internal.h"

/* sums of a block: what vector registers of 32 bytes hold, beside a row of b, where there are 32
 * of them */
#define BLOCK_MOST 128

typedef struct matrix {
    int64_t rows, cols, row, col; /* strides */
} matrix;

typedef struct product {
    uint32_t a, b, addend; /* numbers of the inputs; addend OT_NONE: sums begin with 0 */
    matrix x, y;
    /* batches, rows, columns; operands: a, b, [addend], out: only their strides are used */
    kgen_nest n;
    int64_t tall, wide; /* of a block */
} product;

static ot_status matrix_of(const kgen_call *c, uint32_t k, const char *flag, matrix *m)
{
    const kgen_operand *o = &c->in[k];
    int64_t turned;
    if (o->rank < 2)
        return kgen_fail(c->g, "shape", "'%s' is no matrix", kgen_value(c->g, o->value)->name);
    OT_TRY(ot_tk_integer(&c->at, flag, 0, &turned));
    uint32_t row = o->rank - (turned ? 1 : 2), col = o->rank - (turned ? 2 : 1);
    *m = (matrix){o->dims[row], o->dims[col], o->stride[row], o->stride[col]};
    return OT_OK;
}

/* Strides of a factor along the batches; 0 along rows and columns, which the blocks walk. */
static void add_factor(kgen_nest *n, const kgen_operand *o)
{
    kgen_operand only = *o;
    only.dims[o->rank - 1] = only.dims[o->rank - 2] = 1;
    kgen_nest_broadcast(n, &only);
    n->op[n->n - 1] = o;
}

static ot_status shape(const kgen_call *c, product *p)
{
    const kgen_operand *a = &c->in[p->a], *b = &c->in[p->b];
    int64_t dims[OT_TK_RANK_MAX];
    uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    OT_TRY(matrix_of(c, p->a, "transpose_a", &p->x));
    OT_TRY(matrix_of(c, p->b, "transpose_b", &p->y));
    if (p->x.cols != p->y.rows)
        return kgen_fail(c->g, "shape", "%s sums over %lld columns and %lld rows", c->s->name,
                         (long long)p->x.cols, (long long)p->y.rows);
    for (uint32_t d = 0; d + 2 < rank; d++) {
        int64_t x = d + a->rank < rank ? 1 : a->dims[d + a->rank - rank],
                y = d + b->rank < rank ? 1 : b->dims[d + b->rank - rank];
        if (x != 1 && y != 1 && x != y)
            return kgen_fail(c->g, "broadcast", "the batches of %s do not fit each other",
                             c->s->name);
        dims[d] = ot_max(x, y);
    }
    dims[rank - 2] = p->x.rows;
    dims[rank - 1] = p->y.cols;
    OT_TRY(ot_tk_makes(&c->at, dims, rank, kgen_value(c->g, c->out->value)));
    kgen_nest_init(&p->n, dims, rank);
    add_factor(&p->n, a);
    add_factor(&p->n, b);
    if (p->addend != OT_NONE) {
        const kgen_operand *t = &c->in[p->addend];
        bool fits = t->rank <= rank;
        for (uint32_t d = 0; fits && d < t->rank; d++)
            fits = t->dims[d] == 1 || t->dims[d] == dims[d + rank - t->rank];
        if (!fits)
            return kgen_fail(c->g, "broadcast", "'%s' does not fit the product it is added to",
                             kgen_value(c->g, t->value)->name);
        kgen_nest_broadcast(&p->n, t);
    }
    kgen_nest_same(&p->n, c->out);
    return OT_OK;
}

/* ---- blocks ---- */

static int64_t count(int64_t n, int64_t block) { return (n + block - 1) / block; }

/* The largest block with which every item has one; one that divides the matrix is better than
 * one that does not. */
static void choose_block(const kgen *g, product *p)
{
    static const int64_t wide_one[] = {32, 16, 8, 4, 2, 1}, tall_one[] = {8, 4, 2, 1},
                         few[] = {4, 2, 1};
    bool alone = g->options->items == 1;
    const int64_t *wides = alone ? wide_one : few, *talls = alone ? tall_one : few;
    int64_t batches = 1, best = -1;
    for (uint32_t d = 0; d + 2 < p->n.rank; d++) batches *= p->n.dims[d];
    p->tall = p->wide = 1;
    for (int i = 0; i < (alone ? 4 : 3); i++)
        for (int j = 0; j < (alone ? 6 : 3); j++) {
            int64_t rows = count(p->x.rows, talls[i]), cols = count(p->y.cols, wides[j]);
            int64_t done = rows * talls[i] * cols * wides[j], real = p->x.rows * p->y.cols;
            if (batches * rows * cols < g->options->items || done > real + real / 4) continue;
            if (alone && talls[i] * wides[j] > BLOCK_MOST) continue;
            int64_t worth = talls[i] * wides[j] * 4 * real / done + (done == real ? 1 : 0);
            if (worth <= best) continue;
            best = worth;
            p->tall = talls[i];
            p->wide = wides[j];
        }
}

/* Text of row m0 + i (or column), not beyond the last. */
static const char *inside(kgen *g, const char *start, const char *i, int64_t n, int64_t block)
{
    if (block == 1) return start;
    if (n % block == 0) return kgen_text(g, "(%s + %s)", start, i);
    return kgen_text(g, "(%s + %s < %lld ? %s + %s : %lld)", start, i, (long long)n, start, i,
                     (long long)(n - 1));
}

/* Where the block begins, and the batch's part of every position: p->n.lin. */
static void place_block(kgen *g, product *p)
{
    int64_t rows = count(p->x.rows, p->tall), cols = count(p->y.cols, p->wide), inner = rows * cols;
    kgen_line(g, "const int n0 = e %% %lld * %lld, m0 = e / %lld %% %lld * %lld;", (long long)cols,
              (long long)p->wide, (long long)cols, (long long)rows, (long long)p->tall);
    for (uint32_t k = 0; k < p->n.n; k++) p->n.lin[k] = "0";
    for (uint32_t d = p->n.rank - 2; d-- > 0; inner *= p->n.dims[d]) {
        if (p->n.dims[d] == 1) continue;
        kgen_line(g, "const int b%u = e / %lld %% %lld;", d, (long long)inner,
                  (long long)p->n.dims[d]);
        for (uint32_t k = 0; k < p->n.n; k++)
            p->n.lin[k] = kgen_term(g, p->n.lin[k], kgen_text(g, "b%u", d), p->n.stride[k][d]);
    }
}

static void loop(kgen *g, const char *var, int64_t n) /* unrolled */
{
    kgen_line(g, "UNROLL");
    kgen_open(g, "for (int %s = 0; %s < %lld; %s++)", var, var, (long long)n, var);
}

/* Position of element (m, n) of operand k of the nest. */
static const char *element(kgen *g, const product *p, uint32_t k, const char *m, const char *n)
{
    uint32_t rank = p->n.rank;
    return kgen_term(g, kgen_term(g, p->n.lin[k], m, p->n.stride[k][rank - 2]), n,
                     p->n.stride[k][rank - 1]);
}

static void begin_sums(const kgen_call *c, const product *p, const char *m, const char *n)
{
    kgen *g = c->g;
    kgen_line(g, "%s acc[%lld][%lld];", kgen_class_name(c->c), (long long)p->tall,
              (long long)p->wide);
    loop(g, "i", p->tall);
    loop(g, "j", p->wide);
    kgen_line(g, "acc[i][j] = %s;",
              p->addend == OT_NONE ? "0" : kgen_in(c, p->addend, element(g, p, 2, m, n)));
    kgen_close(g);
    kgen_close(g);
}

static void grow_sums(const kgen_call *c, const product *p, const char *m, const char *n)
{
    kgen *g = c->g;
    const char *type = kgen_class_name(c->c);
    kgen_open(g, "for (int k = 0; k < %lld; k++)", (long long)p->x.cols);
    kgen_line(g, "%s y[%lld];", type, (long long)p->wide);
    loop(g, "j", p->wide);
    kgen_line(
        g, "y[j] = %s;",
        kgen_in(c, p->b, kgen_term(g, kgen_term(g, p->n.lin[1], "k", p->y.row), n, p->y.col)));
    kgen_close(g);
    loop(g, "i", p->tall);
    kgen_line(
        g, "const %s x = %s;", type,
        kgen_in(c, p->a, kgen_term(g, kgen_term(g, p->n.lin[0], m, p->x.row), "k", p->x.col)));
    loop(g, "j", p->wide);
    kgen_line(g, "acc[i][j] = %s;", kgen_mad(g, c->c, "x", "y[j]", "acc[i][j]"));
    kgen_close(g);
    kgen_close(g);
    kgen_close(g);
}

static void end_sums(const kgen_call *c, const product *p)
{
    kgen *g = c->g;
    const char *m = p->tall == 1 ? "m0" : "(m0 + i)", *n = p->wide == 1 ? "n0" : "(n0 + j)";
    bool edge = p->x.rows % p->tall != 0, side = p->y.cols % p->wide != 0;
    loop(g, "i", p->tall);
    loop(g, "j", p->wide);
    if (edge || side)
        kgen_line(g, "if (%s%s%s)", edge ? kgen_text(g, "m0 + i < %lld", (long long)p->x.rows) : "",
                  edge && side ? " && " : "",
                  side ? kgen_text(g, "n0 + j < %lld", (long long)p->y.cols) : "");
    kgen_out(c, element(g, p, p->n.n - 1, m, n), "acc[i][j]");
    kgen_close(g);
    kgen_close(g);
}

static ot_status multiply(const kgen_call *c, product *p)
{
    kgen *g = c->g;
    OT_TRY(shape(c, p));
    choose_block(g, p);
    int64_t blocks = count(p->x.rows, p->tall) * count(p->y.cols, p->wide);
    for (uint32_t d = 0; d + 2 < p->n.rank; d++) blocks *= p->n.dims[d];
    OT_TRY(kgen_begin(c, (kgen_share){0}));
    kgen_open(g, "for (int e = item; e < %lld; e += ITEMS)", (long long)blocks);
    place_block(g, p);
    const char *m = inside(g, "m0", "i", p->x.rows, p->tall),
               *n = inside(g, "n0", "j", p->y.cols, p->wide);
    begin_sums(c, p, m, n);
    grow_sums(c, p, m, n);
    end_sums(c, p);
    kgen_close(g);
    kgen_close(g);
    return OT_OK;
}

static ot_status matmul(const kgen_call *c)
{
    product p = {.a = 0, .b = 1, .addend = c->n_in > 2 ? 2 : OT_NONE};
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 2, 3));
    return multiply(c, &p);
}

static ot_status mmad(const kgen_call *c)
{
    product p = {.a = 0, .b = 1, .addend = 2};
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 3, 3));
    return multiply(c, &p);
}

static ot_status accumulate(const kgen_call *c)
{
    product p = {.a = 1, .b = 2, .addend = 0};
    OT_TRY(ot_tk_needs(&c->at, c->n_in, 3, 3));
    return multiply(c, &p);
}

kgen_op kgen_product(const char *name)
{
    if (strcmp(name, "matmul") == 0 || strcmp(name, "gemm") == 0) return matmul;
    if (strcmp(name, "mma") == 0 || strcmp(name, "mmad") == 0) return mmad;
    return strcmp(name, "accumulate") == 0 ? accumulate : NULL;
}
