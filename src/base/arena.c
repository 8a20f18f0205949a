/* Arenas: memory with a named lifetime.
 *
 * What: a list of blocks from one allocation hook; an allocation bumps a pointer inside the
 * newest block. Nothing is freed singly, the whole arena goes at once.
 * Why: graph passes make many small objects that die together, and one hook is the one place
 * where a test can make memory run out.
 *
 *   arena -> [block: hdr | used ...... | free ] -> [block] -> [big block: one allocation]
 *
 * A request larger than a quarter of the current block size gets a block of its own, so that
 * big arrays waste nothing and the current block stays usable.
 */
#include "base.h"

#include <stdarg.h>

#define ALIGN       16u
#define FIRST_BLOCK ((size_t)4096)
#define LAST_BLOCK  ((size_t)1 << 20)

typedef struct block {
    struct block *next; /* older block */
    size_t size;        /* bytes asked from the hook, header included */
} block;

struct ot_arena {
    block *blocks;    /* newest first; owned */
    char *at;         /* next free byte of the current block, or NULL */
    size_t left;      /* bytes free at `at` */
    size_t next_size; /* size of the next ordinary block */
    size_t held;      /* bytes taken from the hook, this struct included */
};

#define HEADER ((sizeof(block) + ALIGN - 1) / ALIGN * ALIGN)

void *ot_libc_hook(void *ptr, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

ot_alloc_hook ot_alloc_with = ot_libc_hook;

void *ot_hook_alloc(void *ptr, size_t old_size, size_t new_size)
{
    return ot_alloc_with(ptr, old_size, new_size);
}

ot_arena *ot_arena_new(void)
{
    ot_arena *a = ot_alloc_with(NULL, 0, sizeof *a);
    if (!a) return NULL;
    memset(a, 0, sizeof *a);
    a->next_size = FIRST_BLOCK;
    a->held = sizeof *a;
    return a;
}

void ot_arena_free(ot_arena *a)
{
    if (!a) return;
    for (block *b = a->blocks; b;) {
        block *older = b->next;
        ot_alloc_with(b, b->size, 0);
        b = older;
    }
    ot_alloc_with(a, sizeof *a, 0);
}

/* A new block with room for `payload` bytes; NULL when memory ran out. *zero, where asked for:
 * they are 0. Pages of a large one that come from the system so are not touched, and take no memory
 * until somebody writes to them. */
static block *new_block(ot_arena *a, size_t payload, bool *zero)
{
    const bool plain = zero && ot_alloc_with == ot_libc_hook;
    if (zero) *zero = plain;
    block *b = plain ? calloc(1, HEADER + payload) : ot_alloc_with(NULL, 0, HEADER + payload);
    if (!b) return NULL;
    b->size = HEADER + payload;
    b->next = a->blocks;
    a->blocks = b;
    a->held += b->size;
    return b;
}

/* Bytes that the caller fills; *zero (may be NULL): they are 0 already. */
static void *take(ot_arena *a, size_t size, bool *zero)
{
    if (zero) *zero = false;
    if (size > SIZE_MAX / 2) return NULL;
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (size == 0) size = ALIGN;
    if (size > a->left) {
        if (size > a->next_size / 4) {
            block *b = new_block(a, size, zero);
            return b ? (char *)b + HEADER : NULL;
        }
        block *b = new_block(a, a->next_size - HEADER, NULL);
        if (!b) return NULL;
        a->at = (char *)b + HEADER;
        a->left = a->next_size - HEADER;
        if (a->next_size < LAST_BLOCK) a->next_size *= 2;
    }
    void *p = a->at;
    a->at += size;
    a->left -= size;
    return p;
}

void *ot_alloc(ot_arena *a, size_t size)
{
    bool zero;
    void *p = take(a, size, &zero);
    return p && !zero ? memset(p, 0, size) : p;
}

void *ot_alloc_n(ot_arena *a, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    return ot_alloc(a, bytes);
}

void *ot_memdup(ot_arena *a, const void *p, size_t bytes)
{
    void *copy = take(a, bytes, NULL);
    if (copy && bytes) memcpy(copy, p, bytes);
    return copy;
}

char *ot_strndup(ot_arena *a, const char *s, size_t n)
{
    if (n == SIZE_MAX) return NULL;
    char *copy = take(a, n + 1, NULL);
    if (!copy) return NULL;
    if (n) memcpy(copy, s, n);
    copy[n] = 0;
    return copy;
}

char *ot_strdup(ot_arena *a, const char *s) { return ot_strndup(a, s, strlen(s)); }

char *ot_format(ot_arena *a, const char *fmt, ...)
{
    char brief[256]; /* names mostly fit: printed once */
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(brief, sizeof brief, fmt, args);
    va_end(args);
    if (n < 0) return NULL;
    if ((size_t)n < sizeof brief) return ot_strndup(a, brief, (size_t)n);
    char *text = ot_alloc(a, (size_t)n + 1);
    if (!text) return NULL;
    va_start(args, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    va_end(args);
    return text;
}

char *ot_join(ot_arena *a, const char *const *parts, size_t n)
{
    size_t room = 1;
    for (size_t k = 0; k < n; k++) {
        const size_t length = strlen(parts[k]);
        if (length > SIZE_MAX / 4 - room) return NULL;
        room += length;
    }
    char *text = take(a, room, NULL), *at = text;
    if (!text) return NULL;
    for (size_t k = 0; k < n; k++)
        for (const char *from = parts[k]; *from;) *at++ = *from++;
    *at = 0;
    return text;
}

char *ot_decimal(uint64_t n, char buf[OT_DECIMAL])
{
    char *at = buf + OT_DECIMAL - 1;
    *at = 0;
    do *--at = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    return at;
}

size_t ot_arena_bytes(const ot_arena *a) { return a->held; }

bool ot_grow(ot_arena *a, void **items, size_t *cap, size_t want, size_t item_size)
{
    size_t next = *cap < 8 ? 8 : *cap;
    while (next < want) {
        if (next > SIZE_MAX / 2) return false;
        next *= 2;
    }
    if (next == *cap) { /* full and asked for one slot that exists already: double anyway */
        if (next > SIZE_MAX / 2) return false;
        next *= 2;
    }
    size_t bytes;
    if (__builtin_mul_overflow(next, item_size, &bytes)) return false;
    bool zero;
    char *fresh = take(a, bytes, &zero);
    if (!fresh) return false;
    const size_t held = *cap * item_size;
    if (held) memcpy(fresh, *items, held);
    if (!zero) memset(fresh + held, 0, bytes - held);
    *items = fresh;
    *cap = next;
    return true;
}
