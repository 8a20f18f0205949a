/* Batches of 8-bit products over threads.
 *
 *   one B for all            the matrices of A are one tall matrix (but for zero points or scales
 *                            of their rows)
 *
 *     blocks of rows  >= threads      each thread widens and multiplies blocks of its own
 *     fewer                           a block is widened once, then each thread takes some panels
 *
 *   many B                   each thread takes items, and packs B of each
 */
#include "int8_product.h"

#include <stdlib.h>

#include "engine/cpu/rows/rows.h"
#include "engine/core/pool.h"

/* ---- packed B ---- */

uint8_t *ot_i8_packed(const void *b, int64_t k, int64_t n, bool transposed)
{
    int64_t size = ot_i8_packed_size(k, n);
    if (size < 0 || size > INT64_MAX / 8) return NULL;
    uint8_t *to = aligned_alloc(64, ((size_t)size + 64) / 64 * 64);
    if (to)
        ot_i8_pack(to, b, &(ot_matrix_layout){k, n, transposed ? 1 : n, transposed ? k : 1},
                   ot_i8_way_here(), 0, (n + OT_I8_PANEL - 1) / OT_I8_PANEL);
    return to;
}

typedef struct kept {
    const void *from;
    int64_t k, n;
    uint8_t *panels;
} kept;

static void drop(void *data)
{
    kept *p = data;
    free(p->panels);
    free(p);
}

static kept *keep(const ot_i8_product *p)
{
    kept *new = malloc(sizeof *new);
    if (!new) return NULL;
    *new = (kept){p->b, p->shape.k, p->shape.n,
                  ot_i8_packed(p->b, p->shape.k, p->shape.n, p->b_transposed)};
    if (new->panels) return new;
    free(new);
    return NULL;
}

/* Threads may meet here at the same node: the first to finish wins. Without memory for it every
 * call packs. */
void ot_i8_product_constant(ot_call *c, uint32_t k, ot_i8_product *p)
{
    ot_id v = k < c->node->n_in ? c->node->in[k] : OT_NONE;
    if (!c->state || v == OT_NONE || !c->g->values[v].is_const ||
        ot_num_count(c->in[k]) != p->shape.k * p->shape.n)
        return;
    kept *have = __atomic_load_n(&c->state->data, __ATOMIC_ACQUIRE);
    if (!have) {
        void *none = NULL;
        have = keep(p);
        if (!have) return;
        if (__atomic_compare_exchange_n(&c->state->data, &none, have, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            c->state->free = drop;
        } else {
            drop(have);
            have = none;
        }
    }
    if (have->from == p->b && have->k == p->shape.k && have->n == p->shape.n)
        p->job.panels = have->panels;
}

/* ---- zero points ---- */

bool ot_i8_zeros(ot_call *c, const ot_nd *a, int64_t lines, int32_t *one, const int32_t **each)
{
    if (!a) return true;
    int64_t n = ot_num_count(a);
    if (n == 1) {
        *one = (int32_t)ot_nd_int(a, 0);
        return true;
    }
    int32_t *list = n == lines && n > 0 ? ot_call_scratch(c, (size_t)n * sizeof *list) : NULL;
    for (int64_t i = 0; list && i < n; i++) list[i] = (int32_t)ot_nd_int(a, i);
    *each = list;
    return list != NULL;
}

/* ---- running ---- */

/* What a thread works with: `rows` [height][step]; packed [ot_i8_packed_size], or NULL when B is
 * packed for good. */
typedef struct workspace {
    char *rows;
    ot_i8_end *ends; /* [height] */
    uint8_t *packed;
} workspace;

typedef struct run {
    const ot_i8_product *p;
    int64_t m, panels;               /* rows of an item; panels of B */
    int64_t step, height;            /* of a widened row; rows widened at a time */
    size_t rows_bytes, packed_bytes; /* of a thread, multiples of 64 */
    char *work;
} run;

static workspace workspace_of(const run *r, uint32_t worker)
{
    char *at = r->work + (size_t)worker * (r->rows_bytes + r->packed_bytes);
    return (workspace){at, (ot_i8_end *)(void *)(at + r->height * r->step),
                       r->packed_bytes ? (uint8_t *)at + r->rows_bytes : NULL};
}

static size_t element_bytes(ot_dtype t) { return t == OT_F32 || t == OT_I32 ? 4 : 1; }

/* Rows [first, first + n) of A, widened; what they are multiplied with and where the results go. */
static ot_i8_job widened(const run *r, const ot_i8_job *item, const uint8_t *a, int64_t first,
                         int64_t n, const workspace *w)
{
    const ot_i8_product *p = r->p;
    ot_i8_job j = *item;
    int64_t k = p->shape.k;
    bool reads = ot_i8_reads(&j, p->a_signed);
    j.m = n;
    j.rows = reads ? (const void *)(a + first * k) : w->rows;
    j.row_bytes = reads ? k : r->step;
    j.ends = w->ends;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *from = a + (first + i) * k;
        int32_t zero = p->a_zeros ? p->a_zeros[first + i] : p->a_zero;
        if (reads)
            w->ends[i] = ot_i8_end_of(from, k, p->a_signed, zero);
        else
            ot_i8_row(&j, w->rows + i * r->step, from, p->a_signed, zero, &w->ends[i]);
    }
    j.out.to = (char *)j.out.to + (size_t)(first * j.out.ld) * element_bytes(j.out.type);
    if (j.out.row_scales) j.out.row_scales += first;
    return j;
}

/* An item on the calling thread; rows [first, end). */
static void run_rows(const run *r, const ot_i8_job *item, const uint8_t *a, int64_t first,
                     int64_t end, const workspace *w)
{
    for (int64_t i = first; i < end; i += r->height) {
        ot_i8_job j = widened(r, item, a, i, ot_min(r->height, end - i), w);
        ot_i8_multiply(&j, 0, r->panels);
    }
}

enum { ROW_UNIT = 6 }; /* the micro-kernel's height */

typedef struct row_job {
    const run *r;
    const ot_i8_job *item;
    const uint8_t *a;
} row_job;

static void rows_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const row_job *j = job;
    workspace w = workspace_of(j->r, worker);
    run_rows(j->r, j->item, j->a, first * ROW_UNIT, ot_min(j->r->m, end * ROW_UNIT), &w);
}

static void panels_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    (void)worker;
    ot_i8_multiply(job, first, end);
}

/* An item by all threads. */
static void run_shared(const run *r, const ot_i8_job *item, const uint8_t *a, int threads)
{
    int64_t units = (r->m + ROW_UNIT - 1) / ROW_UNIT;
    if (units >= 4 * threads && r->m >= r->panels) {
        row_job rows = {.r = r, .item = item, .a = a};
        ot_pool_share((uint32_t)threads, units, 1, rows_share, &rows);
        return;
    }
    workspace w = workspace_of(r, 0);
    for (int64_t i = 0; i < r->m; i += r->height) {
        ot_i8_job j = widened(r, item, a, i, ot_min(r->height, r->m - i), &w);
        ot_pool_share((uint32_t)threads, r->panels, 1, panels_share, &j);
    }
}

/* Item i of the batch. */
static void item_at(const run *r, int64_t i, ot_i8_job *j, const uint8_t **a, const uint8_t **b)
{
    const ot_matmul *s = &r->p->shape;
    int64_t at_a = 0, at_b = 0, rest = i;
    for (uint32_t k = s->batch_rank; k-- > 0; rest /= s->batch[k]) {
        at_a += rest % s->batch[k] * s->a_step[k];
        at_b += rest % s->batch[k] * s->b_step[k];
    }
    *a = r->p->a + at_a * s->m * s->k;
    *b = r->p->b ? r->p->b + at_b * s->k * s->n : NULL; /* NULL: panels alone are left */
    j->out.to = (char *)j->out.to + (size_t)(i * s->m * s->n) * element_bytes(j->out.type);
}

static void pack_item(const run *r, ot_i8_job *j, const uint8_t *b, const workspace *w)
{
    if (j->panels) return;
    int64_t k = r->p->shape.k, n = r->p->shape.n;
    bool transposed = r->p->b_transposed;
    ot_i8_pack(w->packed, b, &(ot_matrix_layout){k, n, transposed ? 1 : n, transposed ? k : 1},
               ot_i8_way_here(), 0, r->panels);
    j->panels = w->packed;
}

typedef struct item_job {
    const run *r;
    const ot_i8_job *job;
} item_job;

static void items_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const item_job *t = job;
    workspace w = workspace_of(t->r, worker);
    for (int64_t i = first; i < end; i++) {
        ot_i8_job j = *t->job;
        const uint8_t *a, *b;
        item_at(t->r, i, &j, &a, &b);
        pack_item(t->r, &j, b, &w);
        run_rows(t->r, &j, a, 0, t->r->m, &w);
    }
}

static void run_items(const run *r, const ot_i8_job *job, int64_t count, int threads)
{
    if (threads <= 1 || count < 2 * threads) {
        workspace w = workspace_of(r, 0);
        for (int64_t i = 0; i < count; i++) {
            ot_i8_job j = *job;
            const uint8_t *a, *b;
            item_at(r, i, &j, &a, &b);
            pack_item(r, &j, b, &w);
            if (threads > 1)
                run_shared(r, &j, a, threads);
            else
                run_rows(r, &j, a, 0, r->m, &w);
        }
        return;
    }
    item_job items = {r, job};
    ot_pool_share((uint32_t)threads, count, 1, items_share, &items);
}

static bool one_b(const ot_matmul *s)
{
    for (uint32_t k = 0; k < s->batch_rank; k++)
        if (s->batch[k] != 1 && s->b_step[k] != 0) return false;
    return true;
}

/* A is not broadcast either: its matrices follow on one another as those of the output do. */
static bool one_matrix(const ot_i8_product *p)
{
    int64_t step = 1;
    for (uint32_t k = p->shape.batch_rank; k-- > 0; step *= p->shape.batch[k])
        if (p->shape.batch[k] != 1 && p->shape.a_step[k] != step) return false;
    return one_b(&p->shape) && !p->a_zeros && !p->job.out.row_scales;
}

ot_status ot_i8_product_run(ot_call *c, const ot_i8_product *p)
{
    ot_i8_product q = *p;
    const ot_matmul *s = &p->shape;
    run r = {.p = &q,
             .m = s->m,
             .panels = (s->n + OT_I8_PANEL - 1) / OT_I8_PANEL,
             .step = ot_i8_row_bytes(s->k)};
    int64_t count = s->m * s->n > 0 ? s->count / (s->m * s->n) : 0, packed = 0, bytes;
    if (count == 0) return OT_OK;
    if (one_matrix(p)) {
        r.m *= count;
        count = 1;
        q.shape.batch_rank = 0;
    }
    int threads = ot_rows_threads(c,
                                  (double)r.m * (double)count * (double)s->n * (double)s->k / 16);
    r.height = ot_min(ot_i8_rows_at_once(s->k), r.m);
    if (!p->job.panels) packed = ot_i8_packed_size(s->k, s->n);
    if (packed < 0 || !ot_mul_i64(r.step + (int64_t)sizeof(ot_i8_end), r.height, &bytes) ||
        bytes > INT64_MAX / 1024 || packed > INT64_MAX / 1024)
        return ot_fail_nomem(c->diag);
    r.rows_bytes = ((size_t)bytes + 63) / 64 * 64;
    r.packed_bytes = ((size_t)packed + 63) / 64 * 64;
    r.work = ot_call_scratch(c, (size_t)threads * (r.rows_bytes + r.packed_bytes) + 64);
    if (!r.work) return ot_fail_nomem(c->diag);
    q.job.m = r.m;
    q.job.n = s->n;
    q.job.k = s->k;
    q.job.way = ot_i8_way_here();
    q.job.out.ld = s->n;
    run_items(&r, &q.job, count, threads);
    return OT_OK;
}
