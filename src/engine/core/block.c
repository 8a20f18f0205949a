/* Heap memory of arrays: counted references, and a count of what lives.
 *
 *   | slack | ot_block | pad to 64 | bytes ... |
 *                                   ^ ot_block_data
 *   | slack | ot_block | pad to 64 | guard | bytes ... | guard |     of a session with guards
 *
 * Views share a block; the last reference frees it. Implementations share out their loops, not
 * their arrays, but tiles that run at once may view the same outer value, and they share the heap:
 * both counts are atomic.
 */
#include "session.h"

#include <sys/mman.h>

#define HEAD ((sizeof(ot_block) + OT_ARENA_ALIGN - 1) / OT_ARENA_ALIGN * OT_ARENA_ALIGN)

/* The allocator returns 16-byte aligned memory; the block lies where its data is aligned, and
 * remembers how far that is. */
typedef struct placed {
    ot_block b;
    void *start;
} placed;

_Static_assert(sizeof(placed) <= HEAD, "the head holds its start, too");

#define HUGE_PAGE ((uintptr_t)2 << 20)

/* Fewer, larger pages where the system has them: a tenth of the time of networks on large
 * images. A refusal costs nothing. */
static void ask_for_huge_pages(const char *start, size_t total)
{
    uintptr_t first = ((uintptr_t)start + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE,
              end = ((uintptr_t)start + total) / HUGE_PAGE * HUGE_PAGE;
    if (end > first) (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
}

void ot_heap_add(ot_heap *heap, int64_t bytes)
{
    int64_t live = atomic_fetch_add(&heap->live, bytes) + bytes, peak = atomic_load(&heap->peak);
    while (live > peak && !atomic_compare_exchange_weak(&heap->peak, &peak, live)) continue;
}

ot_block *ot_block_new(ot_heap *heap, size_t bytes)
{
    if (bytes > SIZE_MAX / 2 || bytes > INT64_MAX / 2) return NULL;
    const uint32_t guard = heap && heap->guards ? OT_GUARD : 0;
    size_t total = bytes + HEAD + OT_ARENA_ALIGN + 2 * guard;
    char *start = ot_hook_alloc(NULL, 0, total);
    if (!start) return NULL;
    ask_for_huge_pages(start, total);
    size_t shift = (OT_ARENA_ALIGN - (uintptr_t)start % OT_ARENA_ALIGN) % OT_ARENA_ALIGN;
    placed *p = (placed *)(void *)(start + shift);
    *p = (placed){.b = {.heap = heap, .total = total, .bytes = bytes, .guard = guard, .refs = 1},
                  .start = start};
    if (heap) { ot_heap_add(heap, (int64_t)bytes); }
    if (guard) ot_guard_fill(ot_block_data(&p->b), bytes);
    return &p->b;
}

void *ot_block_data(ot_block *b) { return (char *)b + HEAD + b->guard; }

void ot_block_ref(ot_block *b) { b->refs++; }

void ot_block_unref(ot_block *b)
{
    if (!b || --b->refs > 0) return;
    placed *p = (placed *)(void *)b;
    if (b->guard && !ot_guard_intact(ot_block_data(b), b->bytes))
        OT_BUG("something was written outside of a block");
    if (b->heap) ot_heap_add(b->heap, -(int64_t)b->bytes);
    (void)!ot_hook_alloc(p->start, b->total, 0);
}
