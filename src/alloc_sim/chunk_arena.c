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
/* a quarter of a power of two each: by the highest bit of a size, and the two behind it */
#define BINS  256
#define WORDS (BINS / 64)

typedef struct chunk {
    /* neighbours in the region; OT_NONE. A chunk that is gone, merged into its neighbour, waits
     * for another use in a list linked by `after` */
    uint32_t region, before, after;
    uint32_t next, last; /* of the free ones of its bin, in no order; OT_NONE */
    bool is_free;
    int64_t at, bytes;
    int64_t touched; /* bytes at its start of which all pages are known to be */
} chunk;

typedef struct region {
    int64_t bytes;
    int page;         /* bytes of one: 2 to that */
    uint8_t *touched; /* [bytes >> page] */
    int64_t full;     /* pages at its start that all were */
} region;

struct ot_chunk_arena {
    ot_arena *a;
    chunk *chunks;
    region *regions;
    /* first free chunk of each bin, and (bit b % 64 of word b / 64) whether there is one: what fits
     * best is in the first bin where anything fits */
    uint32_t free[BINS];
    uint64_t any[WORDS];
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

/* bytes: of a granule or more. */
static int bin_of(int64_t bytes)
{
    const int top = 63 - __builtin_clzll((uint64_t)bytes);
    return top * 4 + (int)((uint64_t)bytes >> (top - 2) & 3);
}

static void list_free(ot_chunk_arena *x, uint32_t k)
{
    chunk *c = &x->chunks[k];
    const int b = bin_of(c->bytes);
    c->is_free = true;
    c->last = OT_NONE;
    c->next = x->free[b];
    if (c->next != OT_NONE) x->chunks[c->next].last = k;
    x->free[b] = k;
    x->any[b / 64] |= UINT64_C(1) << b % 64;
}

/* While its size is what it was when it was listed. */
static void unlist_free(ot_chunk_arena *x, uint32_t k)
{
    chunk *c = &x->chunks[k];
    c->is_free = false;
    if (c->next != OT_NONE) x->chunks[c->next].last = c->last;
    if (c->last != OT_NONE) {
        x->chunks[c->last].next = c->next;
        return;
    }
    const int b = bin_of(c->bytes);
    x->free[b] = c->next;
    if (c->next == OT_NONE) x->any[b / 64] &= ~(UINT64_C(1) << b % 64);
}

/* A chunk whose fields the caller sets; OT_NONE when memory ran out. */
static uint32_t new_chunk(ot_chunk_arena *x)
{
    const uint32_t k = x->spare;
    if (k == OT_NONE)
        return OT_PUSH(x->a, x->chunks, x->n, x->cap, (chunk){0}) ? (uint32_t)x->n - 1 : OT_NONE;
    x->spare = x->chunks[k].after;
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
    const int64_t page = ot_max(PAGE, x->due / PAGES_MOST);
    region r = {.bytes = x->due, .page = __builtin_ctzll((uint64_t)page)};
    r.touched = ot_alloc(x->a, (size_t)(r.bytes >> r.page));
    if (!r.touched || !OT_PUSH(x->a, x->regions, x->n_regions, x->cap_regions, r)) return OT_NONE;
    x->touched += r.bytes / GRANULE * HANDLE;
    if (ot_dbg['P'])
        fprintf(stderr, "  %10.2f MB  asked, a region of %.0f MB\n", (double)bytes / 1048576.0,
                (double)r.bytes / 1048576.0);
    if (!grown && x->due < MOST_DUE) x->due *= 2;
    const uint32_t k = new_chunk(x);
    if (k == OT_NONE) return OT_NONE;
    x->chunks[k] = (chunk){.region = (uint32_t)x->n_regions - 1,
                           .before = OT_NONE,
                           .after = OT_NONE,
                           .bytes = r.bytes};
    list_free(x, k);
    return k;
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
    uint64_t any = x->any[first / 64] >> first % 64 << first % 64;
    for (int w = first / 64;; any = x->any[w]) {
        for (; any; any &= any - 1) {
            const uint32_t best = best_of(x, w * 64 + __builtin_ctzll(any), bytes, roomy);
            if (best != OT_NONE) return best;
        }
        if (++w == WORDS) return OT_NONE;
    }
}

/* The first `bytes` of the chunk. One of 100 MB is some thousand pages, a plan is simulated with
 * thousands of chunks, and most of them were handed out before: whole, or as parts that were. */
static void touch(ot_chunk_arena *x, chunk *c, int64_t bytes)
{
    if (bytes <= c->touched) return;
    region *r = &x->regions[c->region];
    const int64_t first = (c->at + c->touched) >> r->page, n = ((c->at + bytes - 1) >> r->page) + 1;
    uint8_t *page = r->touched + ot_max(first, r->full), *end = r->touched + n;
    while (page < end && (page = memchr(page, 0, (size_t)(end - page))) != NULL) {
        *page++ = 1;
        x->touched += INT64_C(1) << r->page;
    }
    if (c->at >> r->page <= r->full) r->full = ot_max(r->full, n);
    c->touched = bytes;
}

/* The chunk, which is listed nowhere, keeps the first `bytes`; what is behind them is a free one.
 * false: no memory. */
static bool split(ot_chunk_arena *x, uint32_t k, int64_t bytes)
{
    const uint32_t rest = new_chunk(x);
    if (rest == OT_NONE) return false;
    chunk *c = &x->chunks[k], *y = &x->chunks[rest];
    y->region = c->region;
    y->before = k;
    y->after = c->after;
    y->at = c->at + bytes;
    y->bytes = c->bytes - bytes;
    y->touched = ot_max(0, c->touched - bytes);
    if (c->after != OT_NONE) x->chunks[c->after].before = rest;
    c->after = rest;
    c->bytes = bytes;
    c->touched = ot_min(c->touched, bytes);
    list_free(x, rest);
    return true;
}

static uint32_t take(ot_chunk_arena *x, int64_t bytes, bool roomy)
{
    if (bytes > INT64_MAX / 4) return OT_NONE;
    bytes = ot_ceil_div(bytes, GRANULE) * GRANULE;
    uint32_t k = best_fit(x, bytes, roomy);
    if (k == OT_NONE) k = extend(x, bytes);
    if (k == OT_NONE) return OT_NONE;
    unlist_free(x, k);
    const int64_t has = x->chunks[k].bytes;
    if ((has >= 2 * bytes || has - bytes >= DEAD_BYTES) && !split(x, k, bytes)) return OT_NONE;
    touch(x, &x->chunks[k], bytes);
    return k;
}

uint32_t ot_chunk_take(ot_chunk_arena *x, int64_t bytes) { return take(x, bytes, false); }

uint32_t ot_chunk_take_roomy(ot_chunk_arena *x, int64_t bytes) { return take(x, bytes, true); }

/* b, right behind a, becomes part of it; neither is listed. */
static void join(ot_chunk_arena *x, uint32_t a, uint32_t b)
{
    chunk *p = &x->chunks[a], *q = &x->chunks[b];
    if (p->touched == p->bytes) p->touched += q->touched;
    p->bytes += q->bytes;
    p->after = q->after;
    if (q->after != OT_NONE) x->chunks[q->after].before = a;
    q->after = x->spare;
    x->spare = b;
}

void ot_chunk_release(ot_chunk_arena *x, uint32_t k)
{
    const uint32_t after = x->chunks[k].after, before = x->chunks[k].before;
    if (after != OT_NONE && x->chunks[after].is_free) {
        unlist_free(x, after);
        join(x, k, after);
    }
    if (before != OT_NONE && x->chunks[before].is_free) {
        unlist_free(x, before);
        join(x, before, k);
        k = before;
    }
    list_free(x, k);
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
    for (int w = 0; w < WORDS; w++)
        for (uint64_t any = x->any[w]; any; any &= any - 1)
            for (uint32_t k = x->free[w * 64 + __builtin_ctzll(any)]; k != OT_NONE;
                 k = x->chunks[k].next)
                sum += mark_of(&x->chunks[k]);
    return sum;
}

uint64_t ot_chunk_mark(const ot_chunk_arena *x, uint32_t k)
{
    return k == OT_NONE ? 0 : mark_of(&x->chunks[k]);
}
