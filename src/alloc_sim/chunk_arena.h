/* An arena of chunks, and a planner of patterns, as runtimes have them (private to this folder). */
#ifndef OT_ALLOC_SIM_CHUNK_ARENA_H
#define OT_ALLOC_SIM_CHUNK_ARENA_H

#include "base/base.h"

/* ---- chunk_arena.c ---- */

typedef struct ot_chunk_arena ot_chunk_arena;

ot_chunk_arena *ot_chunk_arena_new(ot_arena *a); /* NULL when memory ran out */
/* Takes `bytes` (> 0) and touches them all. Returns the chunk; OT_NONE when memory ran out. */
uint32_t ot_chunk_take(ot_chunk_arena *x, int64_t bytes);
/* The same in a region that has nothing else, or where as much again is free: where pieces of
 * many sizes come and go, it is chance which gaps they leave. */
uint32_t ot_chunk_take_roomy(ot_chunk_arena *x, int64_t bytes);
void ot_chunk_release(ot_chunk_arena *x, uint32_t chunk);
/* Bytes of pages that were ever touched, and what the arena itself holds for its regions. */
int64_t ot_chunk_touched(const ot_chunk_arena *x);
/* A mark of what is free: equal for equal places and sizes, whatever came and went in between. */
uint64_t ot_chunk_layout(const ot_chunk_arena *x);
/* A mark of the chunk's place and size; 0: of OT_NONE. */
uint64_t ot_chunk_mark(const ot_chunk_arena *x, uint32_t chunk);

/* ---- memory_pattern.c ---- */

typedef struct ot_pattern_block {
    uint32_t buffer;
    int64_t lo, hi;
} ot_pattern_block;

/* Offsets of the buffers of one run, as they came and went. */
typedef struct ot_pattern {
    ot_pattern_block *live; /* [n] by offset */
    size_t n, cap;
    int64_t height;
} ot_pattern;

/* false: memory ran out */
bool ot_pattern_take(ot_pattern *p, ot_arena *a, uint32_t buffer, int64_t bytes) OT_MUST_USE;
void ot_pattern_release(ot_pattern *p, uint32_t buffer);

#endif
