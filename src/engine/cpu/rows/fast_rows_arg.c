/* ArgMax, ArgMin, TopK.
 *
 * TopK: an element becomes a key whose order is the order of the elements, and the key with its
 * position behind it one integer:
 *
 *     key (32 bits, the first shall be smallest) | position (32 bits)
 *
 * so equal elements stay in order without being looked at. A buffer takes what is smaller than
 * the k-th seen so far; when it is full, the k smallest are selected from it. At the end these
 * are sorted. A few of short rows, and of lanes side by side, are found one after the other: each
 * time the smallest number behind the last one.
 */
#include "fast_rows.h"

#include <math.h>
#include <stdlib.h>

/* ---- ArgMax, ArgMin ---- */

/* Largest element (of sign * x); NaN is never larger. */
OT_CLONES static float best_of_row(const float *x, int64_t n, float sign)
{
    float best = sign * x[0];
#pragma omp simd reduction(max : best)
    for (int64_t i = 1; i < n; i++) best = sign * x[i] > best ? sign * x[i] : best;
    return best;
}

/* A row that starts with NaN has no larger element than the first. */
static int64_t arg_of_row(const float *x, int64_t n, float sign, bool last)
{
    float best = best_of_row(x, n, sign);
    if (isnan(x[0])) return 0;
    if (last)
        for (int64_t i = n; i-- > 0;)
            if (sign * x[i] == best) return i;
    for (int64_t i = 0; i < n; i++)
        if (sign * x[i] == best) return i;
    return 0;
}

enum { SIDE = 256 }; /* lanes side by side */

OT_CLONES static void arg_of_columns(int64_t *to, const float *x, int64_t n, int64_t w,
                                     int64_t stride, float sign, bool last)
{
    float best[SIDE];
    int32_t at[SIDE] = {0};
    for (int64_t k = 0; k < w; k++) best[k] = sign * x[k];
    for (int64_t i = 1; i < n; i++) {
        const float *row = x + i * stride;
        int32_t here = (int32_t)i;
#pragma omp simd
        for (int64_t k = 0; k < w; k++) {
            float v = sign * row[k];
            int take = last ? v >= best[k] : v > best[k];
            best[k] = take ? v : best[k];
            at[k] = take ? here : at[k];
        }
    }
    for (int64_t k = 0; k < w; k++) to[k] = at[k];
}

typedef struct arg {
    const ot_lanes *l;
    int64_t *to;
    const float *x;
    float sign;
    bool last;
} arg;

/* Pieces: lanes, or blocks of SIDE lanes beside each other. */
static int64_t arg_blocks(const ot_lanes *l)
{
    return (l->inner + ot_min(SIDE, l->inner) - 1) / ot_min(SIDE, l->inner);
}

static void arg_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const arg *g = job;
    const ot_lanes *l = g->l;
    int64_t block = ot_min(SIDE, l->inner), blocks = arg_blocks(l);
    (void)worker;
    for (int64_t p = first; p < end; p++) {
        int64_t o = p / blocks, k = p % blocks * block;
        const float *from = g->x + o * l->n * l->inner + k;
        if (l->inner == 1)
            g->to[o] = arg_of_row(from, l->n, g->sign, g->last);
        else
            arg_of_columns(g->to + o * l->inner + k, from, l->n, ot_min(block, l->inner - k),
                           l->inner, g->sign, g->last);
    }
}

ot_status ot_fast_arg(ot_call *c)
{
    if (ot_call_is_half(c))
        return ot_call_widened(c, ot_fast_arg, ot_rows_before(c, ot_attr_int(c->node, "axis", 0)));
    bool keep = ot_attr_int(c->node, "keepdims", 1) != 0,
         last = ot_attr_int(c->node, "select_last_index", 0) != 0;
    uint32_t axis = 0, rank = 0;
    ot_lanes l;
    int64_t dims[OT_RANK_MAX];
    if (!ot_rows_takes(c) ||
        !ot_rows_axis(ot_attr_int(c->node, "axis", 0), c->in[0]->rank, &axis) ||
        !ot_lanes_open(c->in[0], axis, axis + 1, &l) || l.n > INT32_MAX)
        return ot_op_reference(ot_rows_op(c))(c);
    const ot_nd *a = c->in[0];
    for (uint32_t d = 0; d < a->rank; d++)
        if (d != axis || keep) dims[rank++] = d == axis ? 1 : a->dims[d];
    OT_TRY(ot_call_output(c, 0, OT_I64, rank, dims));
    if (!ot_rows_wants(c, 0)) return OT_OK;
    arg g = {.l = &l,
             .to = c->out[0]->data,
             .x = a->data,
             .sign = ot_rows_op(c) == OT_OP_ArgMax ? 1.0f : -1.0f,
             .last = last};
    int threads = ot_rows_threads(c, 2.0 * (double)l.outer * (double)l.n * (double)l.inner);
    ot_pool_share((uint32_t)threads, l.outer * arg_blocks(&l), 1, arg_share, &g);
    return OT_OK;
}

/* ---- TopK ---- */

enum {
    BLOCK = 64, /* elements that are looked at together */
    FEW = 8,    /* that are found one after the other */
    SHORT = 512 /* elements of a row of which they are */
};

/* Unsigned numbers in the order of the elements; NaN above all. */
static inline uint32_t key_of(float v)
{
    uint32_t bits;
    v = v == 0.0f ? 0.0f : v; /* -0 is 0 */
    memcpy(&bits, &v, sizeof bits);
    uint32_t key = bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u);
    return v != v ? UINT32_MAX : key;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The k smallest of n different numbers come first, in any order (quickselect, middle of three
 * as pivot). */
static void select_smallest(uint64_t *v, int64_t n, int64_t k)
{
    int64_t lo = 0, hi = n - 1;
    while (lo < hi) {
        uint64_t a = v[lo], b = v[lo + (hi - lo) / 2], e = v[hi];
        uint64_t pivot = a < b ? (b < e ? b : a < e ? e : a) : (a < e ? a : b < e ? e : b);
        int64_t i = lo, j = hi;
        while (i <= j) {
            while (v[i] < pivot) i++;
            while (v[j] > pivot) j--;
            if (i > j) break;
            uint64_t t = v[i];
            v[i++] = v[j];
            v[j--] = t;
        }
        if (k - 1 <= j)
            hi = j;
        else if (k - 1 >= i)
            lo = i;
        else
            return;
    }
}

/* Has one of BLOCK elements a key of at most `limit`? */
OT_CLONES static int any_within(const float *x, uint32_t flip, uint32_t limit)
{
    int any = 0;
#pragma omp simd reduction(| : any)
    for (int i = 0; i < BLOCK; i++) any |= (key_of(x[i]) ^ flip) <= limit;
    return any;
}

typedef struct ranking {
    uint64_t *buffer; /* [capacity > k] */
    int64_t held, k, capacity;
    uint64_t limit; /* what is not smaller is not among the k first */
    uint32_t flip;
} ranking;

/* Elements [first, end) of a lane. */
static void rank_some(ranking *r, const float *x, int64_t step, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++) {
        uint64_t v = (uint64_t)(key_of(x[i * step]) ^ r->flip) << 32 | (uint64_t)i;
        if (v >= r->limit) continue;
        r->buffer[r->held++] = v;
        if (r->held < r->capacity) continue;
        select_smallest(r->buffer, r->held, r->k);
        r->held = r->k;
        r->limit = 0;
        for (int64_t j = 0; j < r->k; j++)
            r->limit = r->buffer[j] > r->limit ? r->buffer[j] : r->limit;
    }
}

/* buffer: [capacity > k] receives the k first of the lane, sorted. */
static void rank_lane(const float *x, int64_t n, int64_t step, int64_t k, uint32_t flip,
                      uint64_t *buffer, int64_t capacity)
{
    ranking r = {.buffer = buffer, .k = k, .capacity = capacity, .limit = UINT64_MAX, .flip = flip};
    for (int64_t at = 0; at < n; at += BLOCK) {
        bool skip = step == 1 && n - at >= BLOCK && r.limit != UINT64_MAX &&
                    !any_within(x + at, flip, (uint32_t)(r.limit >> 32));
        if (!skip) rank_some(&r, x, step, at, ot_min(n, at + BLOCK));
    }
    if (r.held > k) select_smallest(buffer, r.held, k);
    qsort(buffer, (size_t)k, sizeof *buffer, by_number);
}

/* ---- a few of them ---- */

/* The smallest number of the row that is at least `from`. */
OT_CLONES static uint64_t next_of_row(const float *x, int64_t n, uint32_t flip, uint64_t from)
{
    uint64_t best = UINT64_MAX;
#pragma omp simd reduction(min : best)
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = (uint64_t)(key_of(x[i]) ^ flip) << 32 | (uint64_t)i;
        v = v >= from ? v : UINT64_MAX;
        best = v < best ? v : best;
    }
    return best;
}

/* Of w columns: each one's key and position become those that follow them. */
OT_CLONES static void next_of_columns(const float *x, int64_t n, int64_t w, int64_t stride,
                                      uint32_t flip, uint32_t *keys, int32_t *at)
{
    uint32_t best[SIDE] = {0};
    int32_t where[SIDE];
    for (int64_t k = 0; k < w; k++) where[k] = -1; /* none yet */
    for (int64_t i = 0; i < n; i++) {
        const float *row = x + i * stride;
        const int32_t here = (int32_t)i;
#pragma omp simd
        for (int64_t k = 0; k < w; k++) {
            const uint32_t key = key_of(row[k]) ^ flip;
            const int follows = (key > keys[k]) | ((key == keys[k]) & (here > at[k])),
                      take = follows & ((key < best[k]) | (where[k] < 0));
            best[k] = take ? key : best[k];
            where[k] = take ? here : where[k];
        }
    }
    memcpy(keys, best, (size_t)w * sizeof *keys);
    memcpy(at, where, (size_t)w * sizeof *at);
}

typedef struct topk {
    ot_lanes l;
    int64_t k, capacity;
    uint32_t flip; /* of keys: all bits when the largest come first */
    const float *x;
    float *values; /* NULL: not wanted */
    int64_t *indices;
    uint64_t *buffers; /* [threads][capacity] */
} topk;

static void topk_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const topk *t = job;
    int64_t inner = t->l.inner;
    for (int64_t p = first; p < end; p++) {
        const float *x = t->x + p / inner * t->l.n * inner + p % inner;
        uint64_t *buffer = t->buffers + worker * t->capacity;
        int64_t to = p / inner * t->k * inner + p % inner;
        rank_lane(x, t->l.n, inner, t->k, t->flip, buffer, t->capacity);
        for (int64_t j = 0; j < t->k; j++, to += inner) {
            int64_t at = (int64_t)(buffer[j] & UINT32_MAX);
            if (t->values) t->values[to] = x[at * inner];
            if (t->indices) t->indices[to] = at;
        }
    }
}

static void put(const topk *t, int64_t lane, int64_t j, int64_t at)
{
    int64_t inner = t->l.inner, o = lane / inner, k = lane % inner, to = (o * t->k + j) * inner + k;
    if (t->values) t->values[to] = t->x[(o * t->l.n + at) * inner + k];
    if (t->indices) t->indices[to] = at;
}

/* Pieces as in arg_share. */
static void few_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const topk *t = job;
    const ot_lanes *l = &t->l;
    int64_t block = ot_min(SIDE, l->inner), blocks = arg_blocks(l);
    (void)worker;
    for (int64_t p = first; p < end; p++) {
        int64_t o = p / blocks, k = p % blocks * block, w = ot_min(block, l->inner - k);
        const float *from = t->x + o * l->n * l->inner + k;
        uint32_t keys[SIDE] = {0};
        int32_t at[SIDE];
        uint64_t least = 0;
        for (int64_t i = 0; i < w; i++) at[i] = -1;
        for (int64_t j = 0; j < t->k; j++) {
            if (l->inner == 1) {
                const uint64_t found = next_of_row(from, l->n, t->flip, least);
                least = found + 1;
                at[0] = (int32_t)(found & UINT32_MAX);
            } else {
                next_of_columns(from, l->n, w, l->inner, t->flip, keys, at);
            }
            for (int64_t i = 0; i < w; i++) put(t, o * l->inner + k + i, j, at[i]);
        }
    }
}

/* false: the reference says what is wrong, or knows better. */
static bool open_topk(const ot_call *c, uint32_t *axis, topk *t)
{
    int64_t n;
    const ot_nd *k = ot_rows_in(c, 1);
    if (!ot_rows_takes(c) || c->in[0]->rank == 0 ||
        !ot_rows_axis(ot_attr_int(c->node, "axis", -1), c->in[0]->rank, axis) ||
        !ot_lanes_open(c->in[0], *axis, *axis + 1, &t->l) || t->l.n > INT32_MAX)
        return false;
    t->k = ot_attr_int(c->node, "k", -1);
    if (c->node->version >= 10) {
        if (!k || (k->dtype != OT_I64 && k->dtype != OT_I32) || !ot_nd_elems(k, &n) || n != 1)
            return false;
        t->k = ot_nd_int(k, 0);
    }
    if (t->k < 1 || t->k > t->l.n) return false;
    t->capacity = 2 * t->k + 256;
    t->flip = ot_attr_int(c->node, "largest", 1) != 0 ? UINT32_MAX : 0;
    return true;
}

ot_status ot_fast_topk(ot_call *c)
{
    if (ot_call_is_half(c))
        return ot_call_widened(c, ot_fast_topk,
                               ot_rows_before(c, ot_attr_int(c->node, "axis", -1)));
    topk t = {0};
    uint32_t axis = 0;
    int64_t dims[OT_RANK_MAX], bytes;
    if (!open_topk(c, &axis, &t)) return ot_op_reference(OT_OP_TopK)(c);
    const ot_nd *a = c->in[0];
    int threads = ot_rows_threads(c, 4.0 * (double)t.l.outer * (double)t.l.n * (double)t.l.inner);
    memcpy(dims, a->dims, sizeof dims);
    dims[axis] = t.k;
    OT_TRY(ot_call_output(c, 0, OT_F32, a->rank, dims));
    OT_TRY(ot_call_output(c, 1, OT_I64, a->rank, dims));
    t.x = a->data;
    t.values = ot_rows_wants(c, 0) ? c->out[0]->data : NULL;
    t.indices = ot_rows_wants(c, 1) ? c->out[1]->data : NULL;
    if (t.k <= FEW && (t.l.inner == 1 ? t.l.n <= SHORT : t.l.inner >= FEW)) {
        ot_pool_share((uint32_t)threads, t.l.outer * arg_blocks(&t.l), 1, few_share, &t);
        return OT_OK;
    }
    if (!ot_mul_i64(t.capacity * (int64_t)sizeof *t.buffers, threads, &bytes))
        return ot_fail_nomem(c->diag);
    t.buffers = ot_call_scratch(c, (size_t)bytes);
    if (!t.buffers) return ot_fail_nomem(c->diag);
    ot_pool_share((uint32_t)threads, t.l.outer * t.l.inner, 1, topk_share, &t);
    return OT_OK;
}
