/* Best fit with coalescing in regions that grow by powers of two, after ONNX Runtime's BFCArena
 * (kNextPowerOfTwo).
 *
 *   region 0  1 MB    |used|free  |used|
 *   region 1  256 MB  |used (200 MB)     |free  |  a chunk is cut where twice the size, or 128 MB,
 *                                                  would be left
 *
 * Sizes are multiples of 256 bytes. A request that no free chunk holds brings a region: of the
 * size that is due, doubled until it fits; each region makes the next one due at twice the size.
 * Nothing goes back to the system. Memory that was never written is not resident: pages count
 * when a chunk over them is handed out. The arena's own list of which chunk every 256 bytes
 * belong to is: a 32nd of all regions, used or not.
 */
#include "chunk_arena.h"

#define GRANULE     256
#define FIRST_BYTES (INT64_C(1) << 20)
#define MOST_DUE    (INT64_C(1) << 30) /* regions that come without need are no larger */
#define DEAD_BYTES  (INT64_C(128) << 20)
#define PAGE        (INT64_C(1) << 14)
#define PAGES_MOST  (INT64_C(1) << 16) /* of a region that are told apart */
/* bytes for each GRANULE of a region: the number of its chunk, set when the region comes */
#define HANDLE 8
#define BINS   63

typedef struct chunk {
    /* neighbours in the region; OT_NONE. A chunk that is gone, merged into its neighbour, waits
     * for another use in a list linked by `after` */
    uint32_t region, before, after;
    uint32_t next, last; /* of the free ones of its bin, in no order; OT_NONE */
    int64_t at, bytes;
    bool is_free;
    bool is_touched; /* all its pages are known to be */
} chunk;

typedef struct region {
    int64_t bytes, page;
    uint8_t *touched; /* [bytes / page] */
    int64_t full;     /* pages at its start that all were */
} region;

struct ot_chunk_arena {
    ot_arena *a;
    chunk *chunks;
    region *regions;
    /* first free chunk of 2^b bytes or more and less than twice that, and (bit b) whether there is
     * one: what fits best is in the first bin where anything fits */
    uint32_t free[BINS];
    uint64_t any;
    uint32_t spare; /* first entry of a chunk that is gone; OT_NONE */
    size_t n, cap, n_regions, cap_regions;
    int64_t due;
    int64_t touched; /* bytes of pages that were, and of the arena's own lists */
};

ot_chunk_arena *ot_chunk_arena_new(ot_arena *a)
{
    ot_chunk_arena *x = OT_NEW(a, ot_chunk_arena);
    if (!x) return NULL;
    *x = (ot_chunk_arena){.a = a, .spare = OT_NONE, .due = FIRST_BYTES};
    for (int b = 0; b < BINS; b++) x->free[b] = OT_NONE;
    return x;
}

/* bytes: above 0. */
static int bin_of(int64_t bytes) { return BINS - __builtin_clzll((uint64_t)bytes); }

static void list_free(ot_chunk_arena *x, uint32_t k)
{
    chunk *c = &x->chunks[k];
    const int b = bin_of(c->bytes);
    c->is_free = true;
    c->last = OT_NONE;
    c->next = x->free[b];
    if (c->next != OT_NONE) x->chunks[c->next].last = k;
    x->free[b] = k;
    x->any |= UINT64_C(1) << b;
}

/* While its size is what it was when it was listed. */
static void unlist_free(ot_chunk_arena *x, uint32_t k)
{
    chunk *c = &x->chunks[k];
    const int b = bin_of(c->bytes);
    c->is_free = false;
    if (c->next != OT_NONE) x->chunks[c->next].last = c->last;
    if (c->last != OT_NONE)
        x->chunks[c->last].next = c->next;
    else if ((x->free[b] = c->next) == OT_NONE)
        x->any &= ~(UINT64_C(1) << b);
}

/* A free chunk; OT_NONE when memory ran out. */
static uint32_t new_chunk(ot_chunk_arena *x, chunk c)
{
    uint32_t k = x->spare;
    if (k != OT_NONE) {
        x->spare = x->chunks[k].after;
        x->chunks[k] = c;
    } else if (OT_PUSH(x->a, x->chunks, x->n, x->cap, c)) {
        k = (uint32_t)x->n - 1;
    } else {
        return OT_NONE;
    }
    list_free(x, k);
    return k;
}

/* A free chunk over a new region that holds `bytes`. */
static uint32_t extend(ot_chunk_arena *x, int64_t bytes)
{
    bool grown = false;
    while (x->due < bytes) {
        x->due *= 2;
        grown = true;
    }
    region r = {.bytes = x->due, .page = ot_max(PAGE, x->due / PAGES_MOST)};
    r.touched = ot_alloc(x->a, (size_t)(r.bytes / r.page));
    if (!r.touched || !OT_PUSH(x->a, x->regions, x->n_regions, x->cap_regions, r)) return OT_NONE;
    x->touched += r.bytes / GRANULE * HANDLE;
    if (ot_dbg['P'])
        fprintf(stderr, "  %10.2f MB  asked, a region of %.0f MB\n", (double)bytes / 1048576.0,
                (double)r.bytes / 1048576.0);
    if (!grown && x->due < MOST_DUE) x->due *= 2;
    return new_chunk(x, (chunk){.region = (uint32_t)x->n_regions - 1,
                                .before = OT_NONE,
                                .after = OT_NONE,
                                .bytes = r.bytes});
}

/* Of the chunks of bin b that hold `bytes` the smallest, of those the first in memory: the system
 * maps later regions below earlier ones. */
static uint32_t best_of(const ot_chunk_arena *x, int b, int64_t bytes, bool roomy)
{
    uint32_t best = OT_NONE;
    for (uint32_t k = x->free[b]; k != OT_NONE; k = x->chunks[k].next) {
        const chunk *c = &x->chunks[k];
        if (c->bytes < bytes) continue;
        if (roomy && c->bytes < 2 * bytes && (c->before != OT_NONE || c->after != OT_NONE))
            continue;
        const chunk *y = best == OT_NONE ? NULL : &x->chunks[best];
        if (!y || c->bytes < y->bytes ||
            (c->bytes == y->bytes &&
             (c->region > y->region || (c->region == y->region && c->at < y->at))))
            best = k;
    }
    return best;
}

/* The same of all chunks. */
static uint32_t best_fit(const ot_chunk_arena *x, int64_t bytes, bool roomy)
{
    const int first = bin_of(bytes);
    uint32_t best = OT_NONE;
    for (uint64_t any = x->any >> first << first; any && best == OT_NONE; any &= any - 1)
        best = best_of(x, __builtin_ctzll(any), bytes, roomy);
    return best;
}

/* The first `bytes` of the chunk. One of 100 MB is some thousand pages, a plan is simulated with
 * thousands of chunks, and most of them were handed out before: whole, or as parts that were. */
static void touch(ot_chunk_arena *x, chunk *c, int64_t bytes)
{
    region *r = &x->regions[c->region];
    if (c->is_touched) return;
    c->is_touched = bytes == c->bytes;
    const int64_t first = c->at / r->page, n = (c->at + bytes - 1) / r->page + 1;
    uint8_t *page = r->touched + ot_max(first, r->full), *end = r->touched + n;
    while (page < end && (page = memchr(page, 0, (size_t)(end - page))) != NULL) {
        *page++ = 1;
        x->touched += r->page;
    }
    if (first <= r->full) r->full = ot_max(r->full, n);
}

static uint32_t take(ot_chunk_arena *x, int64_t bytes, bool roomy)
{
    if (bytes > INT64_MAX / 4) return OT_NONE;
    bytes = ot_ceil_div(bytes, GRANULE) * GRANULE;
    uint32_t k = best_fit(x, bytes, roomy);
    if (k == OT_NONE) k = extend(x, bytes);
    if (k == OT_NONE) return OT_NONE;
    unlist_free(x, k);
    const chunk c = x->chunks[k];
    if (c.bytes >= 2 * bytes || c.bytes - bytes >= DEAD_BYTES) {
        chunk left = c;
        left.before = k;
        left.at += bytes;
        left.bytes -= bytes;
        const uint32_t rest = new_chunk(x, left);
        if (rest == OT_NONE) return OT_NONE;
        if (c.after != OT_NONE) x->chunks[c.after].before = rest;
        x->chunks[k].after = rest;
        x->chunks[k].bytes = bytes;
    }
    touch(x, &x->chunks[k], bytes);
    return k;
}

uint32_t ot_chunk_take(ot_chunk_arena *x, int64_t bytes) { return take(x, bytes, false); }

uint32_t ot_chunk_take_roomy(ot_chunk_arena *x, int64_t bytes) { return take(x, bytes, true); }

/* b, right behind a, becomes part of it; both are free. */
static void join(ot_chunk_arena *x, uint32_t a, uint32_t b)
{
    chunk *p = &x->chunks[a], *q = &x->chunks[b];
    unlist_free(x, a);
    unlist_free(x, b);
    p->bytes += q->bytes;
    p->is_touched &= q->is_touched;
    p->after = q->after;
    if (q->after != OT_NONE) x->chunks[q->after].before = a;
    q->after = x->spare;
    x->spare = b;
    list_free(x, a);
}

void ot_chunk_release(ot_chunk_arena *x, uint32_t k)
{
    list_free(x, k);
    uint32_t after = x->chunks[k].after, before = x->chunks[k].before;
    if (after != OT_NONE && x->chunks[after].is_free) join(x, k, after);
    if (before != OT_NONE && x->chunks[before].is_free) join(x, before, k);
}

int64_t ot_chunk_touched(const ot_chunk_arena *x) { return x->touched; }

/* Another one for any other place or size. */
static uint64_t mark_of(const chunk *c)
{
    uint64_t state = (uint64_t)c->at / GRANULE;
    state = ot_next_random(&state) ^ (uint64_t)c->bytes / GRANULE;
    state = ot_next_random(&state) ^ c->region;
    return ot_next_random(&state);
}

uint64_t ot_chunk_layout(const ot_chunk_arena *x)
{
    uint64_t sum = 0; /* the list is in no order */
    for (uint64_t any = x->any; any; any &= any - 1)
        for (uint32_t k = x->free[__builtin_ctzll(any)]; k != OT_NONE; k = x->chunks[k].next)
            sum += mark_of(&x->chunks[k]);
    return sum;
}

uint64_t ot_chunk_mark(const ot_chunk_arena *x, uint32_t k)
{
    return k == OT_NONE ? 0 : mark_of(&x->chunks[k]);
}
