/* Convolutions and matrix products in blocks of the cube: rows of the left matrix x columns of
 * the right one, summed up over parts of the depth in the accumulator.
 *
 *                                  Ascend                           GPU
 *   left (weights; a)              l2 -> l1 -> l0a                  l2 -> shared
 *   right (columns of x; b)        l2 -> l1 --im2col--> l0b         l2 -> shared --im2col--> shared
 *   sum, begun with the bias       bt -> l0c                        shared -> fragment
 *   result                         l0c -> l2, the fixpipe           fragment -> l2
 *
 *   for b0 in ... {                        images, maps, places
 *     c_block: 64x112 f32 @l0c = bias
 *     for b3 in 0..4 { ... c_block = cube.mmad(left_part, right_part, c_block) }
 *     copy y_tile[...] <- c_block
 *   }
 *
 * Larger blocks of maps read the picture less often, larger blocks of places the weights; what
 * costs least is taken.
 */
#include "inner_nest.h"

#include <float.h>
#include <math.h>

typedef struct product {
    lowered *p;
    const lowered_op *op;
    bool conv, gpu;
    uint32_t rank, rows;            /* rows: the output's axis of the left matrix */
    int64_t depth, taps;            /* channels, or what is summed; places of the kernel */
    int8_t left_depth, right_depth; /* axes of the operands that are summed */
    uint32_t left, right;           /* operands */
    int64_t block[OT_TK_RANK_MAX], depth_block;
    inner_axis axis[OT_TK_RANK_MAX], deep;
    uint32_t slots;
    lowered_tensor sum; /* of the block at hand */
} product;

static bool setting(const lowered_op *op, const char *name)
{
    for (uint32_t k = 0; k < op->n_attrs; k++)
        if (strcmp(op->attrs[k].name, name) == 0) return op->attrs[k].values[0] != 0;
    return false;
}

/* false: it is none that the cube does. */
static bool describe(lowered *p, const lowered_op *op, product *x)
{
    *x = (product){.p = p,
                   .op = op,
                   .conv = strcmp(op->name, "conv") == 0,
                   .gpu = inner_is_gpu(p->t),
                   .rank = op->out.rank,
                   .taps = 1};
    const uint32_t bits = ot_tk_dtype_bits(op->out.type);
    if ((strcmp(op->out.type, "f32") != 0 && bits != 16) || op->out.rank < 2) return false;
    /* what a place sums up depends on its phase of the stride */
    if (strcmp(op->name, "conv_transpose") == 0) return false;
    if (x->conv) {
        if (op->in[1].dims[1] != op->in[0].dims[1]) return false; /* groups: vector work */
        x->rows = 1;
        x->left = 1;
        x->right = 0;
        x->left_depth = x->right_depth = 1;
        x->depth = op->in[0].dims[1];
        for (uint32_t k = 2; k < op->in[1].rank; k++) x->taps *= op->in[1].dims[k];
        return true;
    }
    const lowered_tensor *a = &op->in[0], *b = &op->in[1];
    x->rows = x->rank - 2;
    x->left = 0;
    x->right = 1;
    x->left_depth = (int8_t)(setting(op, "transpose_a") ? a->rank - 2 : a->rank - 1);
    x->right_depth = (int8_t)(setting(op, "transpose_b") ? b->rank - 1 : b->rank - 2);
    x->depth = a->dims[x->left_depth];
    return true;
}

/* ---- blocks ---- */

/* Dims of operand j for a block; depth: of what is summed. */
static void operand_dims(const product *x, uint32_t j, const int64_t *block, int64_t depth,
                         int64_t *dims)
{
    const lowered_op *op = x->op;
    memcpy(dims, op->in[j].dims, sizeof op->in[j].dims);
    for (uint32_t k = 0; k < x->rank; k++) {
        const int8_t a = op->axis[j][k];
        if (a >= 0)
            dims[a] = j == 0 ? inner_reach(&op->window[k], block[k], op->in[0].dims[a]) : block[k];
    }
    if (j == x->left) dims[x->left_depth] = depth;
    if (j == x->right) dims[x->right_depth] = depth;
}

static int64_t elements(const int64_t *dims, uint32_t rank)
{
    int64_t n = 1;
    for (uint32_t k = 0; k < rank; k++)
        if (!ot_mul_i64(n, dims[k], &n)) return INT64_MAX / 1024;
    return n;
}

/* Places of the block that are columns: all axes but that of the rows. */
static int64_t columns(const product *x, const int64_t *block)
{
    int64_t n = 1;
    for (uint32_t k = 0; k < x->rank; k++) n *= k == x->rows ? 1 : block[k];
    return n;
}

static ot_scope first_scope(const product *x) { return x->gpu ? OT_SCOPE_SHARED : OT_SCOPE_L1; }

/* Where the block's part of the bias waits: the table, where it is no larger than that. */
static ot_scope bias_scope(const product *x, int64_t bytes)
{
    if (x->gpu) return OT_SCOPE_SHARED;
    return 2 * bytes <= inner_capacity(x->p->t, OT_SCOPE_BT) ? OT_SCOPE_BT : OT_SCOPE_L1;
}

static bool fits(const product *x, const int64_t *block, int64_t depth, int64_t slots)
{
    const ot_target *t = x->p->t;
    const int64_t width = ot_tk_dtype_bits(x->op->out.type) / 8, cols = columns(x, block);
    int64_t held[OT_SCOPE_COUNT] = {0}, left[OT_TK_RANK_MAX], right[OT_TK_RANK_MAX],
            bias[OT_TK_RANK_MAX];
    const ot_scope first = first_scope(x), sum = x->gpu ? OT_SCOPE_FRAGMENT : OT_SCOPE_L0C;
    operand_dims(x, x->left, block, depth, left);
    operand_dims(x, x->right, block, depth, right);
    const int64_t left_bytes = elements(left, x->op->in[x->left].rank) * width,
                  right_bytes = elements(right, x->op->in[x->right].rank) * width,
                  cols_bytes = depth * x->taps * cols * width;
    held[first] = slots * (inner_room(t, first, left_bytes) + inner_room(t, first, right_bytes));
    if (x->gpu && x->conv) held[first] += slots * inner_room(t, first, cols_bytes);
    if (!x->gpu) held[OT_SCOPE_L0A] = slots * inner_room(t, OT_SCOPE_L0A, left_bytes);
    if (!x->gpu) held[OT_SCOPE_L0B] = slots * inner_room(t, OT_SCOPE_L0B, cols_bytes);
    held[sum] += inner_room(t, sum, block[x->rows] * cols * 4);
    if (x->op->n_in > 2) {
        operand_dims(x, 2, block, 0, bias);
        const int64_t bytes = elements(bias, x->op->in[2].rank) * width;
        held[bias_scope(x, bytes)] += slots * inner_room(t, bias_scope(x, bytes), bytes);
    }
    for (int s = 0; s < OT_SCOPE_COUNT; s++)
        if (held[s] > inner_capacity(t, (ot_scope)s)) return false;
    return true;
}

/* Blocks of these, what they move, and how long that takes. */
static double score(const product *x, const int64_t *block, int64_t depth, int64_t granule,
                    double *bytes, int64_t *n)
{
    int64_t left[OT_TK_RANK_MAX], right[OT_TK_RANK_MAX], parts = ot_ceil_div(x->depth, depth);
    *n = 1;
    for (uint32_t k = 0; k < x->rank; k++) *n *= ot_ceil_div(x->op->out.dims[k], block[k]);
    operand_dims(x, x->left, block, depth, left);
    operand_dims(x, x->right, block, depth, right);
    const double in = inner_moved(&x->op->in[x->left], left, granule) +
                      inner_moved(&x->op->in[x->right], right, granule);
    *bytes = (double)*n * ((double)parts * in + inner_moved(&x->op->out, block, granule));
    *n *= parts;
    return inner_seconds(x->p->t, *bytes, *n);
}

static uint32_t halves(int64_t extent, int64_t out[INNER_LENGTHS_MAX])
{
    uint32_t n = 0;
    for (int64_t length = extent; n < INNER_LENGTHS_MAX; length = (length + 1) / 2) {
        out[n++] = length;
        if (length <= 1) break;
    }
    return n;
}

typedef struct best_block {
    int64_t block[OT_TK_RANK_MAX], depth, n;
    double seconds, bytes;
} best_block;

/* The cheapest rows and depth beside these columns. */
static void try_columns(const product *x, int64_t *block, int64_t granule, best_block *best)
{
    int64_t rows[INNER_LENGTHS_MAX], depths[INNER_LENGTHS_MAX], n;
    const uint32_t n_rows = halves(x->op->out.dims[x->rows], rows),
                   n_depths = halves(x->depth, depths);
    double bytes;
    for (uint32_t r = 0; r < n_rows; r++)
        for (uint32_t k = 0; k < n_depths; k++) {
            block[x->rows] = rows[r];
            const double seconds = score(x, block, depths[k], granule, &bytes, &n);
            if (seconds >= best->seconds || !fits(x, block, depths[k], n > 1 ? 2 : 1)) continue;
            *best = (best_block){.depth = depths[k], .n = n, .seconds = seconds, .bytes = bytes};
            memcpy(best->block, block, sizeof best->block);
        }
}

/* Columns: whole inner axes, a part of one, single places of the outer ones. */
static best_block choose(const product *x, int64_t granule)
{
    best_block best = {.seconds = DBL_MAX};
    int64_t unit = ot_tk_dtype_bits(x->op->out.type) / 8;
    const uint32_t first = x->conv ? 2 : x->rows + 1; /* images and batches one by one */
    for (uint32_t pivot = x->rank; pivot-- > first;) {
        int64_t block[OT_TK_RANK_MAX], lengths[INNER_LENGTHS_MAX];
        for (uint32_t k = 0; k < x->rank; k++) block[k] = k < pivot ? 1 : x->op->out.dims[k];
        const uint32_t n = inner_lengths(x->op->out.dims[pivot], unit, granule, lengths);
        for (uint32_t k = 0; k < n; k++) {
            block[pivot] = lengths[k];
            try_columns(x, block, granule, &best);
        }
        unit *= x->op->out.dims[pivot];
    }
    return best;
}

/* ---- the nest ---- */

/* The block's part of operand j; of what is summed: the part whose loop is open. */
static ot_status part_of(const product *x, uint32_t j, lowered_tensor *out)
{
    const lowered_op *op = x->op;
    ot_tk_affine lo[OT_TK_RANK_MAX] = {0};
    int64_t dims[OT_TK_RANK_MAX];
    memcpy(dims, op->in[j].dims, sizeof op->in[j].dims);
    for (uint32_t k = 0; k < x->rank; k++) {
        const int8_t a = op->axis[j][k];
        if (a < 0) continue;
        const bool windowed = j == 0 && op->window[k].kernel > 0;
        lo[a] = windowed ? inner_in(&x->axis[k]) : inner_out(&x->axis[k]);
        dims[a] = windowed ? x->axis[k].at->in_len : x->axis[k].at->len;
    }
    if (j == x->left || j == x->right) {
        const int8_t a = j == x->left ? x->left_depth : x->right_depth;
        lo[a] = inner_out(&x->deep);
        dims[a] = x->deep.at->len;
    }
    return lowered_part(x->p, &op->in[j], lo, dims, out);
}

/* A part in a memory of its own. */
static ot_status fetch(const product *x, uint32_t j, const char *name, ot_scope scope,
                       lowered_tensor *out)
{
    lowered_tensor part;
    OT_TRY(part_of(x, j, &part));
    OT_TRY(lowered_alloc(x->p, name, "", scope, x->slots, &part, out));
    return lowered_copy(x->p, out, &part);
}

/* The last two axes of it: the others are single. */
static ot_status as_matrix(const product *x, const lowered_tensor *t, lowered_tensor *out)
{
    const int64_t dims[2] = {t->rank > 1 ? t->dims[t->rank - 2] : 1, t->dims[t->rank - 1]};
    return lowered_alias(x->p, t, 2, dims, out);
}

/* On to the memory that the cube reads. */
static ot_status move_on(const product *x, const lowered_tensor *from, const char *name,
                         ot_scope scope, lowered_tensor *out)
{
    *out = *from;
    if (x->gpu) return OT_OK;
    OT_TRY(lowered_alloc(x->p, name, "", scope, x->slots, from, out));
    return lowered_copy(x->p, out, from);
}

/* The columns of the picture's part: input channels and places of the kernel x places. */
static ot_status put_columns(const product *x, const lowered_tensor *picture, lowered_tensor *out)
{
    const uint32_t n = x->rank - 2;
    lowered_tensor cols = {
        .rank = 3, .type = picture->type, .dims = {1, picture->dims[1] * x->taps, 1}};
    lowered_op op = {
        .pipe = OT_PIPE_CUBE, .name = "im2col", .n_in = 1, .in = {*picture}, .n_attrs = 4};
    static const char *const names[4] = {"kernel", "stride", "pad", "dilation"};
    for (uint32_t k = 0; k < 4; k++)
        op.attrs[k] = (lowered_attr){.name = names[k], .n = k == 2 ? 2 * n : n, .list = true};
    for (uint32_t d = 0; d < n; d++) {
        const lowered_window *w = &x->op->window[2 + d];
        const inner_run *r = x->axis[2 + d].at;
        op.attrs[0].values[d] = (double)w->kernel;
        op.attrs[1].values[d] = (double)w->stride;
        op.attrs[2].values[d] = (double)r->pad_lo;
        op.attrs[2].values[n + d] = (double)r->pad_hi;
        op.attrs[3].values[d] = (double)w->dilation;
        cols.dims[2] *= r->len;
    }
    OT_TRY(lowered_alloc(x->p, "columns", "", x->gpu ? OT_SCOPE_SHARED : OT_SCOPE_L0B, x->slots,
                         &cols, &op.out));
    OT_TRY(lowered_statement(x->p, &op));
    return as_matrix(x, &op.out, out);
}

/* One part of the depth is added to the sum. */
static ot_status add_part(const product *x)
{
    lowered *p = x->p;
    lowered_tensor left, right, held;
    lowered_op op = {.pipe = OT_PIPE_CUBE, .name = "mmad", .out = x->sum, .n_in = 3};
    OT_TRY(fetch(x, x->left, "left", first_scope(x), &held));
    if (x->conv) {
        const int64_t dims[2] = {held.dims[0], held.dims[1] * x->taps};
        OT_TRY(lowered_alias(p, &held, 2, dims, &left));
    } else {
        OT_TRY(as_matrix(x, &held, &left));
    }
    OT_TRY(move_on(x, &left, "left_part", OT_SCOPE_L0A, &op.in[0]));
    OT_TRY(fetch(x, x->right, "right", first_scope(x), &held));
    if (x->conv) {
        OT_TRY(put_columns(x, &held, &op.in[1]));
    } else {
        OT_TRY(as_matrix(x, &held, &right));
        OT_TRY(move_on(x, &right, "right_part", OT_SCOPE_L0B, &op.in[1]));
    }
    op.in[2] = x->sum;
    static const char *const turned[2] = {"transpose_a", "transpose_b"};
    for (uint32_t k = 0; k < 2; k++)
        if (setting(x->op, turned[k]))
            op.attrs[op.n_attrs++] = (lowered_attr){.name = turned[k], .n = 1, .values = {1}};
    return lowered_statement(p, &op);
}

/* The sum begins with the bias, or with 0. */
static ot_status begin_sum(product *x)
{
    lowered *p = x->p;
    int64_t cols = 1;
    for (uint32_t k = 0; k < x->rank; k++) cols *= k == x->rows ? 1 : x->axis[k].at->len;
    const lowered_tensor like = {
        .rank = 2, .type = "f32", .dims = {x->axis[x->rows].at->len, cols}};
    OT_TRY(
        lowered_alloc(p, "sum", "", x->gpu ? OT_SCOPE_FRAGMENT : OT_SCOPE_L0C, 1, &like, &x->sum));
    lowered_op op = {.pipe = OT_PIPE_CUBE,
                     .name = "fill",
                     .out = x->sum,
                     .n_attrs = 1,
                     .attrs = {{.name = "value", .n = 1}}};
    if (x->op->n_in <= 2) return lowered_statement(p, &op);
    lowered_tensor bias, part;
    OT_TRY(part_of(x, 2, &part));
    const int64_t bytes = elements(part.dims, part.rank) * ot_tk_dtype_bits(part.type) / 8;
    OT_TRY(fetch(x, 2, "bias", bias_scope(x, bytes), &bias));
    const int64_t column[2] = {bias.dims[0], 1};
    op = (lowered_op){.pipe = OT_PIPE_CUBE, .name = "expand", .out = x->sum, .n_in = 1};
    if (x->conv)
        OT_TRY(lowered_alias(p, &bias, 2, column, &op.in[0]));
    else
        OT_TRY(as_matrix(x, &bias, &op.in[0]));
    return lowered_statement(p, &op);
}

static ot_status put_block(product *x)
{
    lowered *p = x->p;
    ot_tk_affine lo[OT_TK_RANK_MAX] = {0};
    int64_t dims[OT_TK_RANK_MAX];
    lowered_tensor to, from;
    OT_TRY(begin_sum(x));
    for (uint32_t r = 0; r < x->deep.n; r++) {
        OT_TRY(inner_open(p, &x->deep, r));
        OT_TRY(add_part(x));
        OT_TRY(inner_close(p));
    }
    for (uint32_t k = 0; k < x->rank; k++) {
        lo[k] = inner_out(&x->axis[k]);
        dims[k] = x->axis[k].at->len;
    }
    OT_TRY(lowered_part(p, &x->op->out, lo, dims, &to));
    OT_TRY(lowered_alias(p, &x->sum, x->rank, dims, &from));
    return lowered_copy(p, &to, &from);
}

static ot_status put_axis(product *x, uint32_t k)
{
    if (k == x->rank) return put_block(x);
    for (uint32_t r = 0; r < x->axis[k].n; r++) {
        OT_TRY(inner_open(x->p, &x->axis[k], r));
        OT_TRY(put_axis(x, k + 1));
        OT_TRY(inner_close(x->p));
    }
    return OT_OK;
}

static ot_status note(const product *x, const best_block *c, const best_block *plain)
{
    double bytes = c->bytes;
    int64_t n;
    if (plain->seconds < DBL_MAX)
        (void)score(x, plain->block, plain->depth, x->p->t->granule, &bytes, &n);
    ot_inner_op note = {.operation = x->op->name,
                        .unit = "cube",
                        .rank = x->rank,
                        .depth = x->depth * x->taps,
                        .depth_block = c->depth * x->taps,
                        .n_blocks = c->n,
                        .bytes = (int64_t)c->bytes,
                        .granules_saved = (int64_t)fmax(bytes - c->bytes, 0),
                        .time = c->seconds};
    memcpy(note.extent, x->op->out.dims, sizeof note.extent);
    memcpy(note.block, c->block, sizeof note.block);
    return inner_note(x->p, note);
}

ot_status inner_product(lowered *p, const lowered_op *op, bool *done)
{
    product x;
    *done = false;
    if (!describe(p, op, &x)) return OT_OK;
    const best_block c = choose(&x, p->t->granule), plain = choose(&x, 1);
    if (c.seconds == DBL_MAX) return OT_OK;
    OT_TRY(note(&x, &c, &plain));
    x.slots = c.n > 1 ? 2 : 1;
    for (uint32_t k = 0; k < x.rank; k++) {
        const int64_t in_extent = op->axis[0][k] >= 0 ? op->in[0].dims[op->axis[0][k]] : 1;
        OT_TRY(inner_runs(p, op->out.dims[k], c.block[k], &op->window[k], in_extent,
                          &x.axis[k].runs, &x.axis[k].n));
    }
    OT_TRY(inner_runs(p, x.depth, c.depth, NULL, 0, &x.deep.runs, &x.deep.n));
    *done = true;
    return put_axis(&x, 0);
}
