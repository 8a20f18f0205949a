/* Einsum of float32 by products, sums and copies.
 *
 *   labels that one term alone has are summed first; then the cheapest pair of terms becomes one,
 *   until one is left:
 *
 *       label in   A  B  result
 *                  x  x    x      batch   y[batch, m, n] = sum over k of
 *                  x       x      m                        a[batch, m, k] * b[batch, k, n]
 *                     x    x      n
 *                  x  x           k
 *
 *   Labels of a kind that lie one after another in every array count as one axis. What remains of
 *   batch, m and n is looped over. Operands, and a result, that do not lie as a product needs them
 *   are copied. Without k, with vectors and in small products a nest of plain loops computes the
 *   same. A single term is summed, transposed, its diagonal taken.
 *
 * Types other than floats of 16 and 32 bits, empty arrays, and what the operator refuses go to
 * the reference.
 */
#include "fast_product.h"

#include "engine/core/half.h"
#include "engine/core/pool.h"
#include "engine/cpu/move/fast_move.h"

#include <stdatomic.h>

enum {
    LABELS = OT_EINSUM_LABELS,
    TERMS_MAX = 16,
    BLOCK = 2048,          /* elements of the result that a nest of loops keeps in a cache */
    SMALL_PRODUCT = 512,   /* multiplications, below which loops are faster */
    ENOUGH_PRODUCT = 32768 /* from which a call costs nothing beside the product */
};

/* An operand or what came of some: the element at a position is the sum of position times step
 * over the labels. */
typedef struct term {
    const float *data;
    int64_t step[LABELS]; /* 0: has it not */
} term;

/* Labels that are one loop: positions, and steps in elements of A, B and the result. */
typedef struct axis {
    int64_t n, a, b, c;
} axis;

typedef struct axes {
    uint32_t count;
    axis at[LABELS];
} axes;

enum { BATCH, ROWS, COLUMNS, SUMMED, KINDS };

/* y = sum over SUMMED of a * b */
typedef struct contraction {
    const float *a, *b;
    float *y;
    axes kind[KINDS];
} contraction;

/* ---- axes ---- */

static int64_t extent(const axes *x)
{
    int64_t n = 1;
    for (uint32_t k = 0; k < x->count; k++) n *= x->at[k].n;
    return n;
}

/* Does x enclose y in all three arrays? */
static bool encloses(const axis *x, const axis *y)
{
    return x->a == y->a * y->n && x->b == y->b * y->n && x->c == y->c * y->n;
}

static bool before(const axis *x, const axis *y)
{
    if (x->c != y->c) return x->c > y->c;
    return x->b != y->b ? x->b > y->b : x->a > y->a;
}

/* In the order of the result (then of B, of A), those that are adjacent everywhere as one. */
static void merge(axes *x)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < x->count; i++)
        for (uint32_t k = i; k > 0 && before(&x->at[k], &x->at[k - 1]); k--) {
            axis swap = x->at[k];
            x->at[k] = x->at[k - 1];
            x->at[k - 1] = swap;
        }
    for (uint32_t i = 0; i < x->count; i++) {
        axis *last = count > 0 ? &x->at[count - 1] : NULL;
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

/* Dense steps for the labels in `order`, the last one fastest; returns the number of elements. */
static int64_t lay_out(const ot_einsum *e, const uint32_t *order, uint32_t n, int64_t *step)
{
    int64_t size = 1;
    memset(step, 0, LABELS * sizeof *step);
    for (uint32_t k = n; k-- > 0;) {
        step[order[k]] = size;
        if (!ot_mul_i64(size, e->extent[order[k]], &size)) return -1;
    }
    return size;
}

/* ---- nests of loops ---- */

typedef struct nest {
    axes outer, summed; /* outer: of the result */
    axis inner;         /* next to each other in the result */
    int64_t blocks;     /* of the inner axis */
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

/* Moves *a, *b, *y to position i of the axes, counted with the last one fastest. */
static void go_to(const axes *x, int64_t i, const float **a, const float **b, float **y)
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
        if (sums > 1) go_to(&t->summed, s, &x, &z, NULL);
        multiply(y + from, x, t->inner.a, z, t->inner.b, n, s > 0);
    }
}

/* Blocks, of one position of the result after the other; those along the last axis are found by
 * its steps. */
static void nest_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const nest *t = job;
    int64_t sums = extent(&t->summed), row = 1;
    axis last = {1, 0, 0, 0};
    if (t->outer.count > 0) last = t->outer.at[t->outer.count - 1];
    row = last.n * t->blocks;
    (void)worker;
    for (int64_t at = first; at < end;) {
        const float *a = t->a, *b = t->b;
        float *y = t->y;
        int64_t stop = ot_min(end, (at / row + 1) * row);
        go_to(&t->outer, at / row * last.n, &a, &b, &y);
        for (; at < stop; at++) {
            int64_t k = at % row / t->blocks;
            nest_block(t, sums, a + k * last.a, b + k * last.b, y + k * last.c, at % t->blocks);
        }
    }
}

/* The axis along which the result lies without steps; the others of the result in `outer`. false:
 * there is none, or it is short. */
static bool open_nest(const contraction *p, nest *t)
{
    *t = (nest){.summed = p->kind[SUMMED], .a = p->a, .b = p->b, .y = p->y};
    for (int kind = BATCH; kind <= COLUMNS; kind++) {
        for (uint32_t k = 0; k < p->kind[kind].count; k++) {
            const axis *x = &p->kind[kind].at[k];
            if (x->c == 1 && t->inner.n == 0)
                t->inner = *x;
            else
                t->outer.at[t->outer.count++] = *x;
        }
    }
    t->blocks = ot_ceil_div(t->inner.n, BLOCK);
    return t->inner.n >= 8;
}

static void run_nest(ot_call *c, nest *t)
{
    int64_t n = extent(&t->outer) * t->blocks;
    double work = (double)n * (double)t->inner.n / (double)t->blocks * (double)extent(&t->summed);
    ot_pool_share((uint32_t)ot_rows_threads(c, work), n, 1, nest_share, t);
}

/* ---- products ---- */

typedef struct loops {
    axes over;
    ot_product_job job;
    const contraction *p;
    atomic_bool failed;
} loops;

static const axis one = {1, 0, 0, 0};

/* The longest axis of a kind is part of the product, the others are looped over. */
static axis take_longest(const axes *x, axes *rest)
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
static bool take_columns(const axes *x, axes *rest, axis *out)
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
static bool open_loops(const contraction *p, loops *t)
{
    axis m, n, k = p->kind[SUMMED].count > 0 ? p->kind[SUMMED].at[0] : one;
    t->p = p;
    t->over = p->kind[BATCH];
    m = take_longest(&p->kind[ROWS], &t->over);
    if (p->kind[SUMMED].count > 1 || !take_columns(&p->kind[COLUMNS], &t->over, &n)) return false;
    ot_product_job *j = &t->job;
    *j = (ot_product_job){.m = m.n, .n = n.n, .k = k.n, .ldc = m.n > 1 ? m.c : n.n, .alpha = 1};
    bool fits = ot_product_view(p->a, m.n, k.n, m.a, k.a, &j->a);
    fits = ot_product_view(p->b, k.n, n.n, k.b, n.b, &j->b) && fits;
    bool few = extent(&t->over) == extent(&p->kind[BATCH]);
    return fits && j->ldc >= j->n && (few || m.n * n.n * k.n >= ENOUGH_PRODUCT);
}

static ot_product_job job_at(const loops *t, int64_t i)
{
    ot_product_job j = t->job;
    j.c = t->p->y;
    go_to(&t->over, i, &j.a.data, &j.b.data, &j.c);
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
    int64_t count = extent(&t->over);
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

/* ---- contractions ---- */

typedef struct pairing {
    ot_call *call;
    const ot_einsum *e;
    term a, b, y;
    float *to;    /* y.data, for writing */
    bool *wanted; /* [LABELS] of y */
    bool *beyond; /* set when there are more axes than can be copied: the result is void */
} pairing;

static int kind_of(const pairing *p, uint32_t l)
{
    bool a = p->a.step[l] != 0, b = p->b.step[l] != 0;
    if (!a && !b) return KINDS;
    if (!p->wanted[l]) return SUMMED;
    return a && b ? BATCH : a ? ROWS : COLUMNS;
}

static void split(const pairing *p, contraction *out)
{
    *out = (contraction){.a = p->a.data, .b = p->b.data, .y = p->to};
    for (uint32_t l = 0; l < LABELS; l++) {
        int kind = kind_of(p, l);
        if (kind == KINDS) continue;
        axes *x = &out->kind[kind];
        x->at[x->count++] = (axis){p->e->extent[l], p->a.step[l], p->b.step[l], p->y.step[l]};
    }
    for (int kind = 0; kind < KINDS; kind++) merge(&out->kind[kind]);
}

/* Labels of these kinds, in this order, into order[]; within a kind as the result has them. */
static uint32_t in_order(const pairing *p, const int *kinds, uint32_t n_kinds, uint32_t *order)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < n_kinds; k++) {
        uint32_t first = n;
        for (uint32_t l = 0; l < LABELS; l++) {
            if (kind_of(p, l) != kinds[k]) continue;
            uint32_t at = n++;
            for (; at > first && p->y.step[order[at - 1]] < p->y.step[l]; at--)
                order[at] = order[at - 1];
            order[at] = l;
        }
    }
    return n;
}

/* to = from, of all elements of the labels that `to` has. */
static void copy_term(const pairing *p, float *to, const int64_t *to_step, const float *from,
                      const int64_t *from_step)
{
    int64_t dims[OT_RANK_MAX], steps[2][OT_RANK_MAX];
    axes x = {0};
    for (uint32_t l = 0; l < LABELS; l++)
        if (to_step[l] != 0) x.at[x.count++] = (axis){p->e->extent[l], from_step[l], 0, to_step[l]};
    merge(&x);
    if (x.count > OT_RANK_MAX) {
        *p->beyond = true;
        return;
    }
    for (uint32_t k = 0; k < x.count; k++) {
        dims[k] = x.at[k].n;
        steps[0][k] = x.at[k].c;
        steps[1][k] = x.at[k].a;
    }
    ot_move_box(p->call, (ot_box_shape){sizeof(float), x.count, dims}, (char *)to, steps[0],
                (const char *)from, steps[1]);
}

/* A dense copy of one operand. */
static ot_status pack_term(const pairing *p, const int kinds[3], term *x)
{
    uint32_t order[LABELS], n = in_order(p, kinds, 3, order);
    int64_t step[LABELS], size = lay_out(p->e, order, n, step);
    float *data = ot_num_scratch(p->call, size, sizeof *data);
    if (!data) return OT_E_NOMEM;
    copy_term(p, data, step, x->data, x->step);
    x->data = data;
    memcpy(x->step, step, sizeof step);
    return OT_OK;
}

/* Copies of what does not lie well, one after the other until it does: A, B, the result. */
static ot_status run_packed(pairing *p)
{
    static const int a_order[3] = {BATCH, ROWS, SUMMED}, b_order[3] = {BATCH, SUMMED, COLUMNS},
                     y_order[3] = {BATCH, ROWS, COLUMNS};
    contraction x;
    loops t = {0};
    OT_TRY(pack_term(p, a_order, &p->a));
    split(p, &x);
    if (open_loops(&x, &t)) return run_loops(p->call, &t);
    OT_TRY(pack_term(p, b_order, &p->b));
    split(p, &x);
    if (open_loops(&x, &t)) return run_loops(p->call, &t);
    uint32_t order[LABELS], n = in_order(p, y_order, 3, order);
    term y = p->y;
    float *to = p->to;
    int64_t size = lay_out(p->e, order, n, p->y.step);
    p->to = ot_num_scratch(p->call, size, sizeof *p->to);
    if (!p->to) return OT_E_NOMEM;
    split(p, &x);
    if (!open_loops(&x, &t)) OT_BUG("a packed product does not lie well");
    OT_TRY(run_loops(p->call, &t));
    copy_term(p, to, y.step, p->to, p->y.step);
    p->to = to;
    p->y = y;
    return OT_OK;
}

/* Are inner products what is asked for, and do both vectors lie without steps? */
static bool is_dots(const contraction *x)
{
    const axes *k = &x->kind[SUMMED];
    return k->count == 1 && k->at[0].a == 1 && k->at[0].b == 1 && k->at[0].n >= 8;
}

/* y = a * b, of which a and b have no labels to be summed alone. */
static ot_status contract(pairing *p)
{
    contraction x;
    nest n;
    loops t = {0};
    split(p, &x);
    for (uint32_t k = 0; k < x.kind[ROWS].count; k++) {
        if (x.kind[ROWS].at[k].c != 1) continue; /* columns are what lies without steps in y */
        term swap = p->a;
        p->a = p->b;
        p->b = swap;
        split(p, &x);
        break;
    }
    int64_t m = extent(&x.kind[ROWS]), c = extent(&x.kind[COLUMNS]), k = extent(&x.kind[SUMMED]);
    bool vectors = (m == 1 || c == 1) && !is_dots(&x);
    if ((k == 1 || vectors || m * c * k < SMALL_PRODUCT) && open_nest(&x, &n)) {
        run_nest(p->call, &n);
        return OT_OK;
    }
    return open_loops(&x, &t) ? run_loops(p->call, &t) : run_packed(p);
}

/* ---- one term ---- */

/* y = the sum of a over the labels that y has not. */
static ot_status sum_term(pairing *p)
{
    static const float unit = 1;
    contraction x;
    nest n;
    p->b = (term){.data = &unit};
    split(p, &x);
    axes *k = &x.kind[SUMMED];
    if (k->count == 0) {
        copy_term(p, p->to, p->y.step, p->a.data, p->a.step);
        return OT_OK;
    }
    uint32_t last = k->count - 1;
    if (k->at[last].a != 1 && open_nest(&x, &n)) {
        run_nest(p->call, &n);
        return OT_OK;
    }
    /* rows; what is summed beside them is a loop */
    axis row = k->at[last];
    k->count = last;
    int64_t sums = extent(k), count = extent(&x.kind[ROWS]);
    for (int64_t i = 0; i < count; i++) {
        const float *a = p->a.data, *b = &unit;
        float *y = p->to;
        double sum = 0;
        go_to(&x.kind[ROWS], i, &a, &b, &y);
        for (int64_t s = 0; s < sums; s++) {
            const float *from = a;
            go_to(k, s, &from, &b, NULL);
            if (row.a == 1) sum += ot_rows_mean(from, row.n) * (double)row.n;
            for (int64_t j = 0; row.a != 1 && j < row.n; j++) sum += (double)from[j * row.a];
        }
        *y = (float)sum;
    }
    return OT_OK;
}

/* ---- all terms ---- */

typedef struct state {
    ot_call *call;
    ot_einsum e;
    term t[TERMS_MAX];
    uint32_t n;
    bool beyond;
} state;

/* Labels of the output, and of the terms but those numbered `a` and `b`. */
static void mark_wanted(const state *s, uint32_t a, uint32_t b, bool *wanted)
{
    memset(wanted, 0, LABELS * sizeof *wanted);
    for (uint32_t k = 0; k < s->e.n_out; k++) wanted[s->e.order[k]] = true;
    for (uint32_t k = 0; k < s->n; k++)
        for (uint32_t l = 0; k != a && k != b && l < LABELS; l++)
            wanted[l] = wanted[l] || s->t[k].step[l] != 0;
}

static pairing pair_of(state *s, uint32_t a, uint32_t b, bool *wanted)
{
    return (pairing){.call = s->call,
                     .e = &s->e,
                     .a = s->t[a],
                     .b = s->t[b],
                     .wanted = wanted,
                     .beyond = &s->beyond};
}

/* Where the result of p goes: the output, or memory of its own. */
static ot_status open_result(state *s, pairing *p, bool is_output)
{
    static const int all[3] = {BATCH, ROWS, COLUMNS};
    uint32_t order[LABELS], n = 0;
    if (is_output) {
        int64_t size = lay_out(&s->e, s->e.order, s->e.n_out, p->y.step);
        for (uint32_t l = 0; l < LABELS; l++)
            if (s->e.extent[l] == 1) p->y.step[l] = 0;
        p->to = s->call->out[0]->data;
        return size < 0 ? OT_E_NOMEM : OT_OK;
    }
    /* as the larger steps of the operands have them */
    for (uint32_t l = 0; l < LABELS; l++) p->y.step[l] = ot_max(p->a.step[l], p->b.step[l]);
    n = in_order(p, all, 3, order);
    int64_t size = lay_out(&s->e, order, n, p->y.step);
    p->to = ot_num_scratch(s->call, size, sizeof *p->to);
    return p->to ? OT_OK : OT_E_NOMEM;
}

/* Sums the labels that term k alone has; nothing to do without any. */
static ot_status sum_own(state *s, uint32_t k)
{
    bool wanted[LABELS], any = false;
    mark_wanted(s, k, k, wanted);
    for (uint32_t l = 0; l < LABELS; l++) any = any || (s->t[k].step[l] != 0 && !wanted[l]);
    if (!any) return OT_OK;
    pairing p = pair_of(s, k, k, wanted);
    p.b = (term){0};
    OT_TRY(open_result(s, &p, false));
    OT_TRY(sum_term(&p));
    s->t[k] = p.y;
    s->t[k].data = p.to;
    return OT_OK;
}

/* Multiplications of the product of terms a and b, and elements of its result. */
static double cost_of(const state *s, uint32_t a, uint32_t b)
{
    bool wanted[LABELS];
    double work = 1, result = 1;
    mark_wanted(s, a, b, wanted);
    for (uint32_t l = 0; l < LABELS; l++) {
        if (s->t[a].step[l] == 0 && s->t[b].step[l] == 0) continue;
        work *= (double)s->e.extent[l];
        if (wanted[l]) result *= (double)s->e.extent[l];
    }
    return work + 4 * result;
}

static void cheapest_pair(const state *s, uint32_t *a, uint32_t *b)
{
    double least = -1;
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = i + 1; k < s->n; k++) {
            double cost = cost_of(s, i, k);
            if (least >= 0 && cost >= least) continue;
            least = cost;
            *a = i;
            *b = k;
        }
}

static ot_status join_pair(state *s)
{
    uint32_t a = 0, b = 1;
    bool wanted[LABELS];
    cheapest_pair(s, &a, &b);
    mark_wanted(s, a, b, wanted);
    pairing p = pair_of(s, a, b, wanted);
    OT_TRY(open_result(s, &p, s->n == 2));
    OT_TRY(contract(&p));
    s->t[a] = p.y;
    s->t[a].data = p.to;
    s->t[b] = s->t[--s->n];
    return OT_OK;
}

static ot_status run_all(state *s)
{
    bool wanted[LABELS];
    if (s->n == 1) {
        mark_wanted(s, 0, 0, wanted);
        pairing p = pair_of(s, 0, 0, wanted);
        p.b = (term){0};
        OT_TRY(open_result(s, &p, true));
        return sum_term(&p);
    }
    for (uint32_t k = 0; k < s->n; k++) OT_TRY(sum_own(s, k));
    while (s->n > 1) OT_TRY(join_pair(s));
    return OT_OK;
}

/* Terms of the operands. A label of one position is none. */
static bool open_terms(state *s)
{
    const ot_call *c = s->call;
    s->n = s->e.n_ops;
    for (uint32_t l = 0; l < LABELS; l++)
        if (s->e.extent[l] == 0) return false;
    for (uint32_t k = 0; k < s->n; k++) {
        s->t[k].data = c->in[k]->data;
        memcpy(s->t[k].step, s->e.step[k], sizeof s->t[k].step);
    }
    return true;
}

ot_status ot_fast_einsum(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_einsum, 0);
    bool usual = c->n_in >= 1 && c->n_in <= TERMS_MAX;
    for (uint32_t k = 0; k < c->n_in; k++) usual = usual && c->in[k] && c->in[k]->dtype == OT_F32;
    state *s = usual ? ot_call_scratch(c, sizeof *s) : NULL;
    if (!s) return ot_ref_einsum(c);
    s->call = c;
    OT_TRY(ot_einsum_open(c, &s->e));
    if (!ot_num_out(c, 0)) return OT_OK;
    if (!open_terms(s)) return ot_ref_einsum(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, s->e.n_out, s->e.dims));
    OT_TRY(run_all(s));
    return s->beyond ? ot_ref_einsum(c) : OT_OK;
}
