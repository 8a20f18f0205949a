/* Heaps: dedicated and pooled. A dedicated slice is a chunk of one block that goes back to the
 * device at once. */
#include "heap.h"
#include "driver.h"

#define CHUNK_BYTES    ((int64_t)1 << 20)
#define SMALLEST_CLASS 256

typedef struct heap_block {
    int64_t requested; /* 0: free */
    char name[32];     /* of who has it, or had it last */
} heap_block;

typedef struct heap_chunk {
    ot_dev_buffer buffer;
    int64_t block_bytes;
    uint32_t n_blocks, n_live;
    /* [n_blocks - n_live] the block that was given back last is the next to go */
    uint32_t *free_list;
    heap_block *blocks; /* [n_blocks] */
} heap_chunk;

struct ot_dev_heap {
    ot_device *dev;
    char name[32];
    ot_dev_heap_options options;
    heap_chunk *chunks; /* [n] */
    uint32_t n, cap;
    ot_dev_heap_stats stats;
};

ot_status ot_dev_heap_new(ot_device *dev, const ot_dev_heap_options *o, ot_device_error *e,
                          ot_dev_heap **out)
{
    ot_dev_heap *h = calloc(1, sizeof *h);
    *out = h;
    if (!h) return dev_fail_host_memory(e);
    h->dev = dev;
    h->options = *o;
    snprintf(h->name, sizeof h->name, "%s", o->name ? o->name : "heap");
    h->options.name = h->name;
    if (h->options.chunk_bytes <= 0) h->options.chunk_bytes = CHUNK_BYTES;
    return OT_OK;
}

/* ---- chunks ---- */

/* The least class that holds `bytes`: 4, 5, 6 or 7 times a power of two, and a multiple of the
 * alignment. */
static int64_t class_of(const ot_dev_heap *h, int64_t bytes)
{
    int64_t al = ot_max(ot_device_about(h->dev)->alignment, 1), step = SMALLEST_CLASS / 4;
    if (h->options.strategy == OT_DEV_DEDICATED) return bytes;
    while (step * 8 <= bytes && step < INT64_MAX / 32) step *= 2;
    int64_t best = ot_max(SMALLEST_CLASS, ot_ceil_div(bytes, step) * step);
    return ot_ceil_div(best, al) * al;
}

static void drop_chunk(ot_dev_heap *h, uint32_t k)
{
    heap_chunk *c = &h->chunks[k];
    h->stats.held -= c->block_bytes * c->n_blocks;
    ot_dev_buffer_free(h->dev, c->buffer, NULL);
    free(c->blocks);
    free(c->free_list);
    h->chunks[k] = h->chunks[--h->n];
}

int64_t ot_dev_trim(ot_dev_heap *h)
{
    int64_t before = h->stats.held;
    for (uint32_t k = h->n; k-- > 0;)
        if (h->chunks[k].n_live == 0) drop_chunk(h, k);
    return before - h->stats.held;
}

static ot_status fail_cap(const ot_dev_heap *h, const char *name, int64_t bytes, ot_device_error *e)
{
    int64_t rest = h->options.cap - h->stats.held;
    ot_status s = dev_fail(
        e, OT_DEV_OUT_OF_MEMORY,
        "heap '%s': '%s' of %lld bytes does not fit: %lld of %lld bytes are held", h->name, name,
        (long long)bytes, (long long)h->stats.held, (long long)h->options.cap);
    if (e) {
        e->requested = bytes;
        e->free = e->largest = rest;
    }
    return s;
}

/* The lists of a chunk, all blocks free. */
static bool prepare(heap_chunk *c)
{
    c->blocks = calloc(c->n_blocks, sizeof *c->blocks);
    c->free_list = malloc(c->n_blocks * sizeof *c->free_list);
    if (!c->blocks || !c->free_list) return false;
    /* the first block goes first */
    for (uint32_t k = 0; k < c->n_blocks; k++) c->free_list[k] = c->n_blocks - 1 - k;
    return true;
}

/* Room in the table and a buffer from the device; empty chunks of other classes make room first. */
static ot_status reserve(ot_dev_heap *h, const char *name, heap_chunk *c, ot_device_error *e)
{
    int64_t all = c->block_bytes * c->n_blocks, cap = h->options.cap;
    if (h->n == h->cap) {
        uint32_t want = h->cap ? h->cap * 2 : 8;
        heap_chunk *more = realloc(h->chunks, want * sizeof *more);
        if (!more) return dev_fail_host_memory(e);
        h->chunks = more;
        h->cap = want;
    }
    if (cap > 0 && all > cap - h->stats.held) ot_dev_trim(h);
    if (cap > 0 && all > cap - h->stats.held) return fail_cap(h, name, all, e);
    ot_dev_buffer_options o = {.name = h->options.strategy == OT_DEV_DEDICATED ? name : h->name,
                               .bytes = all,
                               .kind = h->options.kind,
                               .access = h->options.access};
    ot_device_error own = {0};
    ot_status s = ot_dev_buffer_new(h->dev, &o, &own, &c->buffer);
    if (s != OT_OK && own.fault == OT_DEV_OUT_OF_MEMORY && ot_dev_trim(h) > 0)
        s = ot_dev_buffer_new(h->dev, &o, &own, &c->buffer);
    if (s != OT_OK && e) *e = own;
    return s;
}

static ot_status add_chunk(ot_dev_heap *h, const char *name, int64_t block, uint32_t n_blocks,
                           ot_device_error *e)
{
    heap_chunk c = {.block_bytes = block, .n_blocks = n_blocks};
    ot_status s = prepare(&c) ? reserve(h, name, &c, e) : dev_fail_host_memory(e);
    if (s != OT_OK) {
        free(c.blocks);
        free(c.free_list);
        return s;
    }
    h->chunks[h->n++] = c;
    h->stats.held += block * n_blocks;
    h->stats.peak_held = ot_max(h->stats.peak_held, h->stats.held);
    return OT_OK;
}

/* ---- blocks ---- */

static ot_dev_slice take_from(ot_dev_heap *h, heap_chunk *c, const char *name, int64_t bytes)
{
    uint32_t at = c->free_list[c->n_blocks - c->n_live - 1];
    ot_dev_heap_stats *s = &h->stats;
    c->n_live++;
    c->blocks[at].requested = bytes;
    snprintf(c->blocks[at].name, sizeof c->blocks[at].name, "%s", name);
    s->requested += bytes;
    s->used += c->block_bytes;
    s->peak_used = ot_max(s->peak_used, s->used);
    s->n_taken++;
    s->n_live++;
    return (ot_dev_slice){c->buffer, (int64_t)at * c->block_bytes, bytes};
}

/* The fullest chunk of the class that has room, so that others may empty; NULL: none. */
static heap_chunk *chunk_with_room(ot_dev_heap *h, int64_t block)
{
    heap_chunk *best = NULL;
    for (uint32_t k = 0; k < h->n; k++) {
        heap_chunk *c = &h->chunks[k];
        if (c->block_bytes == block && c->n_live < c->n_blocks &&
            (!best || c->n_live > best->n_live))
            best = c;
    }
    return best;
}

ot_status ot_dev_take(ot_dev_heap *h, const char *name, int64_t bytes, ot_device_error *e,
                      ot_dev_slice *out)
{
    *out = (ot_dev_slice){{0}, 0, 0};
    if (!name) name = "";
    if (bytes <= 0)
        return dev_fail(e, OT_DEV_INVALID_OBJECT, "heap '%s': '%s' of %lld bytes", h->name, name,
                        (long long)bytes);
    if (bytes > INT64_MAX / 8) return dev_fail_full(h->dev, e, name, bytes);
    int64_t block = class_of(h, bytes);
    heap_chunk *c = h->options.strategy == OT_DEV_POOLED ? chunk_with_room(h, block) : NULL;
    if (c) {
        h->stats.n_reused++;
    } else {
        int64_t n = h->options.strategy == OT_DEV_POOLED ? ot_max(1, h->options.chunk_bytes / block)
                                                         : 1;
        ot_device_error many = {0};
        ot_status s = add_chunk(h, name, block, (uint32_t)n, &many);
        if (s != OT_OK && n > 1 && many.fault == OT_DEV_OUT_OF_MEMORY)
            s = add_chunk(h, name, block, 1, &many); /* better one than none */
        if (s != OT_OK && e) *e = many;
        if (s != OT_OK) return s;
        c = &h->chunks[h->n - 1];
    }
    *out = take_from(h, c, name, bytes);
    return OT_OK;
}

/* The chunk and block where the slice begins. */
static ot_status find_block(const ot_dev_heap *h, ot_dev_slice s, ot_device_error *e,
                            uint32_t *chunk, uint32_t *block)
{
    for (uint32_t k = 0; k < h->n; k++) {
        const heap_chunk *c = &h->chunks[k];
        if (c->buffer.id != s.buffer.id) continue;
        if (s.offset < 0 || s.offset >= c->block_bytes * c->n_blocks || s.offset % c->block_bytes)
            return dev_fail(e, OT_DEV_INVALID_POINTER, "heap '%s': no slice begins at %lld",
                            h->name, (long long)s.offset);
        *chunk = k;
        *block = (uint32_t)(s.offset / c->block_bytes);
        return OT_OK;
    }
    void *record;
    /* freed: the better message */
    OT_TRY(dev_slot_get(h->dev, DEV_BUFFER, s.buffer.id, OT_DEV_INVALID_POINTER, e, &record));
    return dev_fail(e, OT_DEV_INVALID_POINTER, "heap '%s': the slice is not of this heap", h->name);
}

ot_status ot_dev_give(ot_dev_heap *h, ot_dev_slice slice, ot_device_error *e)
{
    uint32_t k = 0, at = 0;
    OT_TRY(find_block(h, slice, e, &k, &at));
    heap_chunk *c = &h->chunks[k];
    heap_block *b = &c->blocks[at];
    if (b->requested == 0)
        return dev_fail(e, OT_DEV_INVALID_POINTER, "heap '%s': double free of '%s'", h->name,
                        b->name);
    h->stats.requested -= b->requested;
    h->stats.used -= c->block_bytes;
    h->stats.n_given++;
    h->stats.n_live--;
    b->requested = 0;
    c->n_live--;
    c->free_list[c->n_blocks - c->n_live - 1] = at;
    if (h->options.strategy == OT_DEV_DEDICATED) drop_chunk(h, k);
    return OT_OK;
}

/* ---- what there is ---- */

const char *ot_dev_heap_name(const ot_dev_heap *h) { return h->name; }

ot_dev_heap_stats ot_dev_heap_count(const ot_dev_heap *h)
{
    ot_dev_heap_stats s = h->stats;
    int64_t rest = s.held - s.used;
    s.n_chunks = h->n;
    for (uint32_t k = 0; k < h->n; k++) {
        const heap_chunk *c = &h->chunks[k];
        int64_t run = 0;
        for (uint32_t b = 0; b < c->n_blocks; b++) {
            run = c->blocks[b].requested ? 0 : run + c->block_bytes;
            s.largest_free = ot_max(s.largest_free, run);
        }
    }
    s.fragmentation = rest > 0 ? 1 - (double)s.largest_free / (double)rest : 0;
    return s;
}

uint32_t ot_dev_heap_leaks(const ot_dev_heap *h, FILE *f)
{
    for (uint32_t k = 0; f && k < h->n; k++)
        for (uint32_t b = 0; b < h->chunks[k].n_blocks; b++)
            if (h->chunks[k].blocks[b].requested)
                fprintf(f, "heap '%s': '%s' of %lld bytes was never given back\n", h->name,
                        h->chunks[k].blocks[b].name, (long long)h->chunks[k].blocks[b].requested);
    return h->stats.n_live;
}

void ot_dev_heap_free(ot_dev_heap *h)
{
    if (!h) return;
    while (h->n > 0) drop_chunk(h, h->n - 1);
    free(h->chunks);
    free(h);
}
