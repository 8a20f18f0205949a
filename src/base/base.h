/* Base layer: status codes, diagnostics, arenas, checked arithmetic, small containers.
 *
 * Everything above this header reports failure through ot_status and leaves one
 * readable line in an ot_diag. Memory comes from arenas with three named lifetimes
 * (model, pass, plan); nothing inside an arena is freed singly.
 */
#ifndef OT_BASE_BASE_H
#define OT_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Result of every function that can fail. The number is the exit code's cause:
 * INPUT 1, USAGE 2, BUDGET 3, SYSTEM and NOMEM 4. */
typedef enum ot_status {
    OT_OK = 0,
    OT_E_INPUT,  /* the model (or target file) is wrong */
    OT_E_USAGE,  /* the caller's options are wrong */
    OT_E_BUDGET, /* a hard budget cannot be met */
    OT_E_SYSTEM, /* I/O failed */
    OT_E_NOMEM   /* memory ran out */
} ot_status;

#define OT_MUST_USE          __attribute__((warn_unused_result))
#define OT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Return early when `expr` fails. */
#define OT_TRY(expr)                          \
    do {                                      \
        ot_status ot_try_ = (expr);           \
        if (ot_try_ != OT_OK) return ot_try_; \
    } while (0)

/* Our own bug: abort with the place. Never used for bad input. */
#define OT_BUG(msg)                                                                         \
    do {                                                                                    \
        fprintf(stderr, "onnx-tile: internal error: %s:%d: %s\n", __FILE__, __LINE__, msg); \
        abort();                                                                            \
    } while (0)

/* ---- diag.c: the one error line of a run ---- */

#define OT_DIAG_MAX 1024

typedef struct ot_diag {
    ot_status status;          /* of the first failure; OT_OK when none */
    char message[OT_DIAG_MAX]; /* one line, no newline, control characters replaced */
} ot_diag;

/* Record a failure (the first one wins) and return `status`, so that callers write
 * `return ot_fail(d, OT_E_INPUT, "node '%s': ...", name)`. Non-printable bytes of the
 * result are replaced by '?', long messages are cut. `d` may be NULL. */
ot_status ot_fail(ot_diag *d, ot_status status, const char *fmt, ...) OT_PRINTF(3, 4);

/* Length of the UTF-8 sequence at s (1..4) when it may be shown; 0 for control characters, marks
 * that turn or break the line, and what is no UTF-8. */
size_t ot_utf8_printable(const char *s);

/* Write what a stranger's file says, or the name of one, as a terminal may show it: what is not
 * printable as '?'. */
void ot_put_shown(const char *text, FILE *f);
/* The same in place: of a name that a driver gives. */
void ot_make_shown(char *text);

/* Shorthand for "out of memory". */
ot_status ot_fail_nomem(ot_diag *d);

/* For the static analyser only, which does not look into other files: a failure is not OT_OK. */
#ifdef __clang_analyzer__
#define ot_fail(d, status, ...) \
    (ot_fail(d, status, __VA_ARGS__), (status) == OT_OK ? abort() : (void)0, (status))
#define ot_fail_nomem(d) (ot_fail_nomem(d), OT_E_NOMEM)
#endif

/* ---- arena.c ---- */

typedef struct ot_arena ot_arena;

/* The allocation hook: every block of every arena comes from here (tests make it fail).
 * Behaves like realloc; new_size 0 frees. NULL restores the C library's. Not thread-safe:
 * set it before any other call. */
typedef void *(*ot_alloc_hook)(void *ptr, size_t old_size, size_t new_size);
extern ot_alloc_hook ot_alloc_with;
void *ot_libc_hook(void *ptr, size_t old_size, size_t new_size);
static inline void ot_set_alloc_hook(ot_alloc_hook hook)
{
    ot_alloc_with = hook ? hook : ot_libc_hook;
}
/* Call the current hook; for the few blocks that are no arena's (a third-party library's). */
void *ot_hook_alloc(void *ptr, size_t old_size, size_t new_size) OT_MUST_USE;

ot_arena *ot_arena_new(void);    /* NULL when memory ran out */
void ot_arena_free(ot_arena *a); /* accepts NULL */
/* Zeroed, 16-byte aligned memory that lives as long as the arena; NULL when memory ran out.
 * size 0 returns a valid pointer. */
void *ot_alloc(ot_arena *a, size_t size) OT_MUST_USE;
/* Same for arrays; NULL also when count*size overflows. */
void *ot_alloc_n(ot_arena *a, size_t count, size_t size) OT_MUST_USE;
char *ot_strdup(ot_arena *a, const char *s) OT_MUST_USE;
char *ot_strndup(ot_arena *a, const char *s, size_t n) OT_MUST_USE;
char *ot_format(ot_arena *a, const char *fmt, ...) OT_PRINTF(2, 3) OT_MUST_USE;
/* The parts [n] one after the other: names are made by the million, and formats are slow. */
char *ot_join(ot_arena *a, const char *const *parts, size_t n) OT_MUST_USE;
#define OT_DECIMAL 24 /* characters of the longest number, with its end */
/* n in decimal, into buf; returns where it begins, which is within buf. */
char *ot_decimal(uint64_t n, char buf[OT_DECIMAL]);
void *ot_memdup(ot_arena *a, const void *p, size_t bytes) OT_MUST_USE;
size_t ot_arena_bytes(const ot_arena *a); /* held from the system */

#define OT_NEW(arena, type)      ((type *)ot_alloc((arena), sizeof(type)))
#define OT_NEW_N(arena, type, n) ((type *)ot_alloc_n((arena), (n), sizeof(type)))

/* Growable array in an arena: old storage is left behind until the arena is freed.
 * Use as: OT_PUSH(arena, list, n, cap, item) -> false when memory ran out. */
bool ot_grow(ot_arena *a, void **items, size_t *cap, size_t want, size_t item_size);
#define OT_PUSH(arena, items, n, cap, item)                                                       \
    ((n) < (cap) || ot_grow((arena), (void **)&(items), &(cap), (size_t)(n) + 1, sizeof *(items)) \
         ? ((items)[(n)++] = (item), true)                                                        \
         : false)

/* ---- checked.c: arithmetic on sizes; every function returns false on overflow ---- */

bool ot_add_i64(int64_t a, int64_t b, int64_t *out) OT_MUST_USE;
bool ot_mul_i64(int64_t a, int64_t b, int64_t *out) OT_MUST_USE;
/* Product of n non-negative dims; false on overflow or a negative dim. n 0 gives 1. */
bool ot_product(const int64_t *dims, size_t n, int64_t *out) OT_MUST_USE;
static inline int64_t ot_ceil_div(int64_t a, int64_t b) /* b > 0; rounds towards +inf */
{
    return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

/* Tiles of `tile` along `extent` (tile > 0); UINT32_MAX: so many or more. */
static inline uint32_t ot_tile_count(int64_t extent, int64_t tile)
{
    const int64_t n = ot_ceil_div(extent, tile);
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}
static inline int64_t ot_floor_div(int64_t a, int64_t b) /* b > 0; rounds towards -inf */
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}
static inline int64_t ot_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ot_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* Greatest common divisor of non-negative numbers; ot_gcd(0, b) is b. */
static inline int64_t ot_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Parse "512K", "16M", "1.5G", "362KB", "100"; K = 1024. false when malformed or too large. */
bool ot_parse_size(const char *text, int64_t *bytes) OT_MUST_USE;
/* "1.5 MiB", "362 KiB", "17 B" into buf; returns buf. */
char *ot_format_bytes(double bytes, char *buf, size_t n);
/* "97.8 MiB (102498304 bytes)", "17 B": to read, and to give again as an option's value. */
char *ot_format_exact_bytes(int64_t bytes, char *buf, size_t n);
/* "10.0 MiB", "684 KiB (700000 bytes)": what a user gave, to the byte. */
char *ot_format_limit(int64_t bytes, char *buf, size_t n);
/* "required 97.8 MiB (102498304 bytes), available 10.0 MiB, excess 87.8 MiB" into buf. */
#define OT_EXCESS_SIZE 160
char *ot_format_excess(int64_t required, int64_t available, char *buf, size_t n);
/* "1.23 ms", "45.0 us", "2.10 s" into buf; returns buf. */
char *ot_format_seconds(double s, char *buf, size_t n);

/* ---- hash.c: names -> ids ---- */

typedef struct ot_map ot_map;    /* string -> uint32_t; keys are borrowed */
ot_map *ot_map_new(ot_arena *a); /* NULL when memory ran out */
/* Room for so many keys in all, which then come without tables made anew; false when memory ran
 * out. */
bool ot_map_reserve(ot_map *m, size_t n) OT_MUST_USE;
/* Insert or replace; false when memory ran out. */
bool ot_map_put(ot_map *m, const char *key, uint32_t value) OT_MUST_USE;
/* Insert unless the key is there (*fresh: it was not); false when memory ran out. */
bool ot_map_add(ot_map *m, const char *key, uint32_t value, bool *fresh) OT_MUST_USE;
/* A map of the same keys and values, which m must outlive; NULL when memory ran out. Takes next to
 * nothing until one of the two changes. */
ot_map *ot_map_copy(ot_arena *a, ot_map *m);
/* The value, or OT_NONE. */
uint32_t ot_map_get(const ot_map *m, const char *key);
/* Whether some key begins so. */
bool ot_map_has_initial(const ot_map *m, char initial);

#define OT_NONE UINT32_MAX

/* FNV-1a of bytes, as a mark of contents: begin with h = 0, go on with what came before. Not
 * keyed: no table of strangers' names. */
uint64_t ot_hash_bytes(uint64_t h, const void *data, size_t n);

/* ---- clock.c, cpu.c, random.c, temp.c ---- */

double ot_now(void); /* seconds of a clock that never goes back */
/* Floats of a vector that fast code computes with on this machine: 16 with AVX-512, 8 with AVX2;
 * 0: there is none. */
uint32_t ot_cpu_lanes(void);
/* Channels of one block in ONNX Runtime's blocked layout on this machine; 0: not known. */
int64_t ot_cpu_channel_block(void);
/* Where temporary files go: $TMPDIR, else /tmp. The environment's, no slash at the end. */
const char *ot_temp_folder(void);
/* splitmix64: the next of a sequence that `state` begins */
uint64_t ot_next_random(uint64_t *state);

/* ---- nearest.c: what a mistyped word was to be ---- */

typedef struct ot_nearest {
    const char *word; /* borrowed, as the names are; not terminated: [length] */
    size_t length;
    const char *best; /* [best_length] the nearest name so far; NULL: none is near */
    size_t best_length, edits;
} ot_nearest;
ot_nearest ot_nearest_to(const char *word, size_t n);
/* One more name of n characters. Near is what two edits make the word (one, where it has three
 * letters or fewer), or what begins with it. */
void ot_nearest_try(ot_nearest *near, const char *name, size_t n);
/* The names of a list, between characters of `separators`. */
void ot_nearest_try_list(ot_nearest *near, const char *list, const char *separators);
/* `before` and "did you mean 'x'?" into buf, or an empty text; returns buf. */
const char *ot_nearest_hint(const ot_nearest *near, const char *before, char *buf, size_t size);

/* ---- terminal.c, progress.c: a bar on a terminal ---- */

/* A terminal that can wipe a line. */
bool ot_terminal_draws(FILE *f);
/* The same, and the user wants colours (NO_COLOR is not set). */
bool ot_terminal_colours(FILE *f);

typedef struct ot_progress {
    FILE *out;         /* a terminal; NULL: nothing is shown */
    const char *stage; /* the rest is progress.c's: zero at first */
    double start, shown;
} ot_progress;
/* `stage` (static) is done to the fraction `done`. A stage begins when it is first named. Cheap
 * to call often; p NULL: nothing. */
void ot_progress_at(ot_progress *p, const char *stage, double done);
/* Wipe the line. */
void ot_progress_end(ot_progress *p);

/* ---- debug mask: the only global state. ot_dbg['R'] is set by `-d R`. ---- */
extern bool ot_dbg[128];

#endif
