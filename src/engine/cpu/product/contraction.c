/* Sums of products of two arrays with strides: nests of loops, and matrix products in loops.
 *
 *   axes that lie one after another in every array count as one; then
 *     a nest      the result in blocks along the axis where it lies without steps
 *     products    the longest axis of the rows, the columns without steps, one sum: a product of
 *                 matrices; loops over what remains of batch, rows and columns
 */
#include "contraction.h"

#include "engine/core/pool.h"

#include <stdatomic.h>

enum {
    BLOCK = 2048,          /* elements of the result that a nest of loops keeps in a cache */
    ENOUGH_PRODUCT = 32768 /* from which a call costs nothing beside the product */
};

/* ---- axes ---- */

int64_t ot_axes_extent(const ot_strided_axes *x)
{
    int64_t n = 1;
    for (uint32_t k = 0; k < x->count; k++) n *= x->at[k].n;
    return n;
}

/* Does x enclose y in all three arrays? */
static bool encloses(const ot_strided_axis *x, const ot_strided_axis *y)
{
    return x->a == y->a * y->n && x->b == y->b * y->n && x->c == y->c * y->n;
}

static bool before(const ot_strided_axis *x, const ot_strided_axis *y)
{
    if (x->c != y->c) return x->c > y->c;
    return x->b != y->b ? x->b > y->b : x->a > y->a;
}

void ot_axes_merge(ot_strided_axes *x)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < x->count; i++)
        for (uint32_t k = i; k > 0 && before(&x->at[k], &x->at[k - 1]); k--) {
            ot_strided_axis swap = x->at[k];
            x->at[k] = x->at[k - 1];
            x->at[k - 1] = swap;
        }
    for (uint32_t i = 0; i < x->count; i++) {
        ot_strided_axis *last = count > 0 ? &x->at[count - 1] : NULL;
        if (last && encloses(last, &x->at[i])) {
            int64_t n = last->n;
            *last = x->at[i];
            last->n *= n;
        } else {
            x->at[count++] = x->at[i];
        }
    }
    x->count = count;
}

/* ---- nests of loops ---- */

typedef struct nest {
    ot_strided_axes outer, summed; /* outer: of the result */
    ot_strided_axis inner;         /* next to each other in the result */
    int64_t blocks;                /* of the inner axis */
    const float *a, *b;
    float *y;
} nest;

#define EACH(value)                                          \
    do {                                                     \
        if (add)                                             \
            for (int64_t i = 0; i < n; i++) y[i] += (value); \
        else                                                 \
            for (int64_t i = 0; i < n; i++) y[i] = (value);  \
    } while (0)

/* y [n] = a * b (+ y), with these steps. */
OT_CLONES static void multiply(float *restrict y, const float *a, int64_t a_step, const float *b,
                               int64_t b_step, int64_t n, bool add)
{
    if (a_step == 1 && b_step == 1)
        EACH(a[i] * b[i]);
    else if (a_step == 0 && b_step == 1)
        EACH(*a * b[i]);
    else if (a_step == 1 && b_step == 0)
        EACH(a[i] * *b);
    else
        EACH(a[i * a_step] * b[i * b_step]);
}

void ot_axes_go_to(const ot_strided_axes *x, int64_t i, const float **a, const float **b, float **y)
{
    for (uint32_t k = x->count; k-- > 0; i /= x->at[k].n) {
        int64_t at = i % x->at[k].n;
        *a += at * x->at[k].a;
        *b += at * x->at[k].b;
        if (y) *y += at * x->at[k].c;
    }
}

/* A block of the result at y. */
static void nest_block(const nest *t, int64_t sums, const float *a, const float *b, float *y,
                       int64_t block)
{
    int64_t from = block * BLOCK, n = ot_min(BLOCK, t->inner.n - from);
    a += from * t->inner.a;
    b += from * t->inner.b;
    for (int64_t s = 0; s < sums; s++) {
        const float *x = a, *z = b;
        if (sums > 1) ot_axes_go_to(&t->summed, s, &x, &z, NULL);
        multiply(y + from, x, t->inner.a, z, t->inner.b, n, s > 0);
    }
}

/* Blocks, of one position of the result after the other; those along the last axis are found by
 * its steps. */
static void nest_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const nest *t = job;
    int64_t sums = ot_axes_extent(&t->summed), row = 1;
    ot_strided_axis last = {1, 0, 0, 0};
    if (t->outer.count > 0) last = t->outer.at[t->outer.count - 1];
    row = last.n * t->blocks;
    (void)worker;
    for (int64_t at = first; at < end;) {
        const float *a = t->a, *b = t->b;
        float *y = t->y;
        int64_t stop = ot_min(end, (at / row + 1) * row);
        ot_axes_go_to(&t->outer, at / row * last.n, &a, &b, &y);
        for (; at < stop; at++) {
            int64_t k = at % row / t->blocks;
            nest_block(t, sums, a + k * last.a, b + k * last.b, y + k * last.c, at % t->blocks);
        }
    }
}

/* The axis along which the result lies without steps; the others of the result in `outer`. false:
 * there is none, or it is short. */
static bool open_nest(const ot_contraction *p, nest *t)
{
    *t = (nest){.summed = p->kind[OT_AXES_SUMMED], .a = p->a, .b = p->b, .y = p->y};
    for (int kind = OT_AXES_BATCH; kind <= OT_AXES_COLUMNS; kind++) {
        for (uint32_t k = 0; k < p->kind[kind].count; k++) {
            const ot_strided_axis *x = &p->kind[kind].at[k];
            if (x->c == 1 && t->inner.n == 0)
                t->inner = *x;
            else
                t->outer.at[t->outer.count++] = *x;
        }
    }
    t->blocks = ot_ceil_div(t->inner.n, BLOCK);
    return t->inner.n >= 8;
}

bool ot_contract_in_nest(ot_call *c, const ot_contraction *p)
{
    nest t;
    if (!open_nest(p, &t)) return false;
    const int64_t n = ot_axes_extent(&t.outer) * t.blocks;
    const double work = (double)n * (double)t.inner.n / (double)t.blocks *
                        (double)ot_axes_extent(&t.summed);
    ot_pool_share((uint32_t)ot_rows_threads(c, work), n, 1, nest_share, &t);
    return true;
}

/* ---- products ---- */

typedef struct loops {
    ot_strided_axes over;
    ot_product_job job;
    const ot_contraction *p;
    atomic_bool failed;
} loops;

static const ot_strided_axis one = {1, 0, 0, 0};

/* The longest axis of a kind is part of the product, the others are looped over. */
static ot_strided_axis take_longest(const ot_strided_axes *x, ot_strided_axes *rest)
{
    uint32_t most = 0;
    if (x->count == 0) return one;
    for (uint32_t k = 1; k < x->count; k++)
        if (x->at[k].n > x->at[most].n) most = k;
    for (uint32_t k = 0; k < x->count; k++)
        if (k != most) rest->at[rest->count++] = x->at[k];
    return x->at[most];
}

/* Of the columns it is the axis without steps in the result. false: none is. */
static bool take_columns(const ot_strided_axes *x, ot_strided_axes *rest, ot_strided_axis *out)
{
    bool found = x->count == 0;
    *out = one;
    for (uint32_t k = 0; k < x->count; k++) {
        if (!found && x->at[k].c == 1) {
            *out = x->at[k];
            found = true;
        } else {
            rest->at[rest->count++] = x->at[k];
        }
    }
    return found;
}

/* Product and loops of a contraction as its arrays lie. false: they do not lie well. */
static bool open_loops(const ot_contraction *p, loops *t)
{
    ot_strided_axis m, n,
        k = p->kind[OT_AXES_SUMMED].count > 0 ? p->kind[OT_AXES_SUMMED].at[0] : one;
    t->p = p;
    t->over = p->kind[OT_AXES_BATCH];
    m = take_longest(&p->kind[OT_AXES_ROWS], &t->over);
    if (p->kind[OT_AXES_SUMMED].count > 1 || !take_columns(&p->kind[OT_AXES_COLUMNS], &t->over, &n))
        return false;
    ot_product_job *j = &t->job;
    *j = (ot_product_job){.m = m.n, .n = n.n, .k = k.n, .ldc = m.n > 1 ? m.c : n.n, .alpha = 1};
    bool fits = ot_product_view(p->a, m.n, k.n, m.a, k.a, &j->a);
    fits = ot_product_view(p->b, k.n, n.n, k.b, n.b, &j->b) && fits;
    bool few = ot_axes_extent(&t->over) == ot_axes_extent(&p->kind[OT_AXES_BATCH]);
    return fits && j->ldc >= j->n && (few || m.n * n.n * k.n >= ENOUGH_PRODUCT);
}

static ot_product_job job_at(const loops *t, int64_t i)
{
    ot_product_job j = t->job;
    j.c = t->p->y;
    ot_axes_go_to(&t->over, i, &j.a.data, &j.b.data, &j.c);
    return j;
}

static void loops_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    loops *t = job;
    (void)worker;
    for (int64_t i = first; i < end; i++) {
        ot_product_job j = job_at(t, i);
        if (ot_product_run(&j) != OT_OK) t->failed = true;
    }
}

static ot_status run_loops(ot_call *c, loops *t)
{
    int64_t count = ot_axes_extent(&t->over);
    double each = (double)t->job.m * (double)t->job.n * (double)t->job.k;
    int threads = ot_rows_threads(c, each * (double)count / 8);
    if (threads > 1 && count < 2 * threads) {
        for (int64_t i = 0; i < count; i++) {
            ot_product_job j = job_at(t, i);
            OT_TRY(ot_product_shared(c, &j));
        }
        return OT_OK;
    }
    ot_pool_share((uint32_t)threads, count, 1, loops_share, t);
    return t->failed ? ot_fail_nomem(c->diag) : OT_OK;
}

ot_status ot_contract_by_products(ot_call *c, const ot_contraction *p, bool *fits)
{
    loops t = {0};
    *fits = open_loops(p, &t);
    return *fits ? run_loops(c, &t) : OT_OK;
}
