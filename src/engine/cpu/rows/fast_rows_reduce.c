/* Reductions over any axes, and global pools.
 *
 *   dims are merged to kept and reduced ones in turn; the last of them says how the input is read:
 *
 *     reduced last:  every output folds rows                   x x x x x -> y
 *     kept last:     COLUMNS outputs at a time take rows       x x x x x
 *                    element by element                        x x x x x
 *                                                              y y y y y
 *
 * float32, and int32 and int64 for sums and extremes; the rest goes to the reference.
 */
#include "fast_rows_fold.h"
#include "engine/ref/ref_reduce.h"

#include <math.h>

/* Outputs side by side; rows that are folded in float before double takes over. Sums go one row
 * after the other as far as runtimes do so, too: networks subtract nearly equal sums, and then the
 * order shows. */
enum { COLUMNS = 1024, CHUNK = 32, CHUNK_SUM = 4096 };

typedef struct reduction {
    ot_op op;
    ot_fold fold;
    int64_t each; /* elements of one output */
    ot_rm_counter kept, gone;
    const ot_nd *in;
    void *out;
} reduction;

/* ---- float32 ---- */

static float result_of(const reduction *r, double v, double shift)
{
    switch ((int)r->op) {
    case OT_OP_ReduceMean: return (float)(v / (double)r->each);
    case OT_OP_ReduceL2: return (float)sqrt(v);
    case OT_OP_ReduceLogSum: return (float)log(v);
    case OT_OP_ReduceLogSumExp: return (float)(log(v) + shift);
    default: return (float)v;
    }
}

static double fold_all(const reduction *r, ot_fold f, const float *x, float shift)
{
    ot_rm_counter rows = r->gone;
    int64_t n, step;
    double v = ot_fold_start(f);
    ot_rm_counter_split(&rows, &n, &step);
    do v = ot_fold_join(f, v, ot_fold_row(f, x + rows.at, n, shift));
    while (ot_rm_counter_next(&rows));
    return v;
}

static void reduce_rows(const reduction *r, int64_t to)
{
    const float *x = (const float *)r->in->data + ot_rm_counter_at(&r->kept, to);
    float shift = 0;
    if (r->fold == OT_FOLD_EXP) {
        double most = fold_all(r, OT_FOLD_MOST, x, 0);
        if (isfinite(most)) shift = (float)most;
    }
    ((float *)r->out)[to] = result_of(r, fold_all(r, r->fold, x, shift), (double)shift);
}

static void fold_columns_all(const reduction *r, ot_fold f, const float *x, int64_t w,
                             const float *shift, double *total)
{
    ot_rm_counter rows = r->gone;
    float acc[COLUMNS];
    int64_t chunk = f == OT_FOLD_PRODUCT ? 1 : f == OT_FOLD_SUM ? CHUNK_SUM : CHUNK;
    bool more = true;
    for (int64_t i = 0; i < w; i++) total[i] = ot_fold_start(f);
    while (more) {
        for (int64_t i = 0; i < w; i++) acc[i] = (float)ot_fold_start(f);
        for (int64_t k = 0; k < chunk && more; k++) {
            ot_fold_columns(f, acc, x + rows.at, w, shift);
            more = ot_rm_counter_next(&rows);
        }
        for (int64_t i = 0; i < w; i++) total[i] = ot_fold_join(f, total[i], (double)acc[i]);
    }
}

/* Outputs [to, to + w), which lie next to each other in the input, too. */
static void reduce_columns(const reduction *r, int64_t to, int64_t w)
{
    const float *x = (const float *)r->in->data + ot_rm_counter_at(&r->kept, to);
    double total[COLUMNS];
    float shift[COLUMNS] = {0};
    if (r->fold == OT_FOLD_EXP) {
        fold_columns_all(r, OT_FOLD_MOST, x, w, NULL, total);
        for (int64_t i = 0; i < w; i++) shift[i] = isfinite(total[i]) ? (float)total[i] : 0;
    }
    fold_columns_all(r, r->fold, x, w, shift, total);
    for (int64_t i = 0; i < w; i++)
        ((float *)r->out)[to + i] = result_of(r, total[i], (double)shift[i]);
}

/* ---- int32, int64 ---- */

/* A row of x into the result `acc`, or w results into which the elements of a row go one by one.
 * Sums wrap. */
#define TAKE(T, U, name)                                                                \
    OT_CLONES static int64_t name##_row(ot_op op, int64_t acc, const T *x, int64_t n)   \
    {                                                                                   \
        U sum = 0;                                                                      \
        T most = x[0], least = x[0];                                                    \
        if (op == OT_OP_ReduceSum) {                                                    \
            for (int64_t i = 0; i < n; i++) sum += (U)x[i];                             \
            return (int64_t)((uint64_t)acc + (uint64_t)sum);                            \
        }                                                                               \
        if (op == OT_OP_ReduceMax) {                                                    \
            for (int64_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;           \
            return ot_max(acc, most);                                                   \
        }                                                                               \
        for (int64_t i = 1; i < n; i++) least = x[i] < least ? x[i] : least;            \
        return ot_min(acc, least);                                                      \
    }                                                                                   \
    OT_CLONES static void name##_columns(ot_op op, int64_t *acc, const T *x, int64_t w) \
    {                                                                                   \
        if (op == OT_OP_ReduceSum)                                                      \
            for (int64_t i = 0; i < w; i++) acc[i] = ot_rm_wrap_add(acc[i], x[i]);      \
        else if (op == OT_OP_ReduceMax)                                                 \
            for (int64_t i = 0; i < w; i++) acc[i] = ot_max(acc[i], x[i]);              \
        else                                                                            \
            for (int64_t i = 0; i < w; i++) acc[i] = ot_min(acc[i], x[i]);              \
    }
TAKE(int32_t, uint32_t, take_i32)
TAKE(int64_t, uint64_t, take_i64)
#undef TAKE

/* Outputs [to, to + w): one by rows (step 0), or many side by side (step 1). */
static void reduce_ints(const reduction *r, int64_t to, int64_t w, int64_t step)
{
    ot_rm_counter rows = r->gone;
    int64_t n = w, row_step, acc[COLUMNS], base = ot_rm_counter_at(&r->kept, to);
    if (step == 0) ot_rm_counter_split(&rows, &n, &row_step);
    for (int64_t i = 0; i < w; i++)
        acc[i] = r->op == OT_OP_ReduceSum ? 0 : r->op == OT_OP_ReduceMax ? INT64_MIN : INT64_MAX;
    do {
        const void *x = (const char *)r->in->data +
                        (base + rows.at) * (int64_t)ot_dtype_bytes(r->in->dtype);
        bool narrow = r->in->dtype == OT_I32;
        if (step == 0)
            *acc = narrow ? take_i32_row(r->op, *acc, x, n) : take_i64_row(r->op, *acc, x, n);
        else if (narrow)
            take_i32_columns(r->op, acc, x, w);
        else
            take_i64_columns(r->op, acc, x, w);
    } while (ot_rm_counter_next(&rows));
    for (int64_t i = 0; i < w; i++) {
        if (r->in->dtype == OT_I32)
            ((int32_t *)r->out)[to + i] = (int32_t)(uint32_t)(uint64_t)acc[i];
        else
            ((int64_t *)r->out)[to + i] = acc[i];
    }
}

/* ---- the walk ---- */

/* Results side by side, `wide` of them, in blocks. */
typedef struct reduction_walk {
    const reduction *r;
    bool floats, rows;
    int64_t wide, block, blocks;
} reduction_walk;

static void reduction_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const reduction_walk *k = job;
    (void)worker;
    for (int64_t p = first; p < end; p++) {
        int64_t at = p % k->blocks * k->block, to = p / k->blocks * k->wide + at,
                w = ot_min(k->block, k->wide - at);
        if (!k->floats)
            reduce_ints(k->r, to, w, k->rows ? 0 : 1);
        else if (k->rows)
            reduce_rows(k->r, to);
        else
            reduce_columns(k->r, to, w);
    }
}

static void run_reduction(const reduction *r, int64_t n_out, int threads)
{
    reduction_walk k = {.r = r, .floats = r->in->dtype == OT_F32};
    k.rows = r->gone.rank > 0 && r->gone.steps[r->gone.rank - 1] == 1;
    k.wide = r->kept.rank > 0 && !k.rows ? r->kept.dims[r->kept.rank - 1] : 1;
    k.block = ot_min(n_out == k.wide ? ot_max(ot_ceil_div(k.wide, threads), 64) : k.wide, COLUMNS);
    k.block = ot_min(k.block, k.wide);
    k.blocks = ot_ceil_div(k.wide, k.block);
    ot_pool_share((uint32_t)threads, n_out / k.wide * k.blocks, 1, reduction_share, &k);
}

/* ---- the implementation ---- */

static bool fold_of(ot_op op, ot_dtype t, ot_fold *f)
{
    switch ((int)op) {
    case OT_OP_ReduceSum: *f = OT_FOLD_SUM; return t == OT_F32 || t == OT_I32 || t == OT_I64;
    case OT_OP_ReduceMax: *f = OT_FOLD_MOST; return t == OT_F32 || t == OT_I32 || t == OT_I64;
    case OT_OP_ReduceMin: *f = OT_FOLD_LEAST; return t == OT_F32 || t == OT_I32 || t == OT_I64;
    case OT_OP_ReduceL1: *f = OT_FOLD_ABS; return t == OT_F32;
    case OT_OP_ReduceL2:
    case OT_OP_ReduceSumSquare: *f = OT_FOLD_SQUARE; return t == OT_F32;
    case OT_OP_ReduceProd: *f = OT_FOLD_PRODUCT; return t == OT_F32;
    case OT_OP_ReduceLogSumExp: *f = OT_FOLD_EXP; return t == OT_F32;
    default: *f = OT_FOLD_SUM; return t == OT_F32;
    }
}

/* Which axes go; false: the reference shall say what is wrong, or do nothing. */
static bool read_axes(const ot_call *c, bool *reduced)
{
    const ot_nd *a = c->in[0], *list = ot_rows_in(c, 1);
    size_t n_attr = 0;
    int64_t n = 0;
    const int64_t *axes = ot_attr_ints(c->node, "axes", &n_attr);
    if (list && ((list->dtype != OT_I64 && list->dtype != OT_I32) || !ot_nd_elems(list, &n)))
        return false;
    if (!list && axes) n = (int64_t)n_attr;
    if (n == 0 && ot_attr_int(c->node, "noop_with_empty_axes", 0) != 0) return false;
    for (uint32_t d = 0; d < a->rank; d++) reduced[d] = n == 0;
    for (int64_t k = 0; k < n; k++) {
        uint32_t d = 0;
        if (a->rank == 0 || !ot_rows_axis(list ? ot_nd_int(list, k) : axes[k], a->rank, &d) ||
            reduced[d])
            return false;
        reduced[d] = true;
    }
    return true;
}

/* Axes before the first that goes. */
static uint32_t leading_of(const ot_call *c)
{
    bool reduced[OT_RANK_MAX] = {false};
    uint32_t n = 0;
    if (!c->in[0] || !read_axes(c, reduced)) return 0;
    while (n < c->in[0]->rank && !reduced[n]) n++;
    return n < c->in[0]->rank ? n : 0;
}

ot_status ot_fast_reduce(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_reduce, leading_of(c));
    reduction r = {.op = ot_rows_op(c), .in = ot_rows_in(c, 0)};
    bool reduced[OT_RANK_MAX] = {false}, keep = ot_attr_int(c->node, "keepdims", 1) != 0;
    int64_t dims[OT_RANK_MAX], elems, n_out = 1;
    uint32_t rank = 0;
    if (!r.in || !fold_of(r.op, r.in->dtype, &r.fold) || !ot_nd_is_dense(r.in) ||
        !ot_nd_elems(r.in, &elems) || elems == 0 || !read_axes(c, reduced))
        return ot_op_reference(r.op)(c);
    for (uint32_t d = 0; d < r.in->rank; d++) {
        if (!reduced[d]) n_out *= r.in->dims[d];
        if (!reduced[d] || keep) dims[rank++] = reduced[d] ? 1 : r.in->dims[d];
    }
    OT_TRY(ot_call_output(c, 0, r.in->dtype, rank, dims));
    if (!ot_rows_wants(c, 0)) return OT_OK;
    r.each = elems / n_out;
    r.out = c->out[0]->data;
    ot_rm_counter_new(&r.kept, r.in, reduced, false);
    ot_rm_counter_new(&r.gone, r.in, reduced, true);
    run_reduction(&r, n_out, ot_rows_threads(c, (double)elems));
    return OT_OK;
}

/* ---- global pools ---- */

typedef struct global_pool {
    bool most;
    int64_t n;
    float *y;
    const float *x;
} global_pool;

static void global_pool_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const global_pool *g = job;
    (void)worker;
    for (int64_t p = first; p < end; p++) {
        double v = ot_fold_row(g->most ? OT_FOLD_MOST : OT_FOLD_SUM, g->x + p * g->n, g->n, 0);
        g->y[p] = (float)(g->most ? v : v / (double)g->n);
    }
}

ot_status ot_fast_global_pool(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_global_pool, 2);
    ot_lanes l;
    bool most = ot_rows_op(c) == OT_OP_GlobalMaxPool;
    int64_t dims[OT_RANK_MAX];
    if (!ot_rows_takes(c) || c->in[0]->rank < 2 || !ot_lanes_open(c->in[0], 2, c->in[0]->rank, &l))
        return ot_op_reference(ot_rows_op(c))(c);
    const ot_nd *x = c->in[0];
    for (uint32_t d = 0; d < x->rank; d++) dims[d] = d < 2 ? x->dims[d] : 1;
    OT_TRY(ot_call_output(c, 0, OT_F32, x->rank, dims));
    if (!ot_rows_wants(c, 0)) return OT_OK;
    global_pool g = {.most = most, .n = l.n, .y = c->out[0]->data, .x = x->data};
    ot_pool_share((uint32_t)ot_rows_threads(c, (double)l.outer * (double)l.n), l.outer, 1,
                  global_pool_share, &g);
    return OT_OK;
}
