/* Inside PlanMemory: what planmem.c (the driver), planmem_rules.c (who may share with whom),
 * planmem_outline.c (what is placed where), planmem_place.c (a place for one buffer) and
 * planmem_rollback.c (history) share; and what mem_plan.c and overflow.c, which plan whole
 * kernels, take from it.
 *
 *   offset ^  outline: the placed slots, by offset
 *          |  +----+                     a slot is one copy of a buffer: a double buffer has two
 *          |  | A1 |  +---------+        an obstacle of a new slot is a placed one that it must not
 *                                        lie over,
 *          |  +----+  |    C    |        because they are alive together or the level forbids it
 *          |  | A0 |  +---------+        a gap is the room between two obstacles
 *          +--+----+--+---------+--> statements
 */
#ifndef OT_TK_PLANMEM_PLANMEM_INTERNAL_H
#define OT_TK_PLANMEM_PLANMEM_INTERNAL_H

#include "planmem.h"

/* ---- planmem_rules.c ---- */

/* Are both alive at one statement? */
bool pm_meet(const ot_buffer *a, const ot_buffer *b);
/* Is all that touches the two one pipe, and no DMA? Then sharing costs nothing: a pipe does one
 * thing after the other. */
bool pm_same_pipe(const ot_buffer *a, const ot_buffer *b);
/* Does sharing make one pipe wait for another? */
bool pm_cross_pipe(const ot_buffer *a, const ot_buffer *b);
/* Is statement `loop` the loop `outer` or inside it? OT_NONE is inside nothing. */
bool pm_loop_inside(const ot_kernel *k, uint32_t loop, uint32_t outer);
/* One of the slots that a buffer has. */
typedef struct pm_turn {
    const ot_buffer *of;
    uint32_t multi, slot; /* how many; which */
} pm_turn;
/* May these share memory at `level`, when their buffers are never alive together? */
bool pm_may_share(const ot_kernel *k, pm_turn a, pm_turn b, ot_reuse_level level);
/* The levels that a finished plan needed, of each buffer (both of a pair that shares), and of
 * all and the cross-pipe pairs in *stats. Asks only where the buffers are, not who planned them. */
void pm_grade(const ot_buffer *const *buffers, uint32_t n, const ot_kernel *k,
              int64_t (*offsets)[OT_TK_MULTI_MAX], const uint32_t *multi, ot_reuse_level *level,
              ot_scope_plan *stats);

/* ---- the state of an attempt ---- */

typedef struct pm_slot {
    int64_t offset, end; /* half-open */
    uint32_t buffer, slot;
} pm_slot;

/* A plan that led to a failure: not made again in the same attempt. */
typedef struct pm_failed {
    uint32_t buffer, multi;
    int64_t offset; /* of its first free slot */
} pm_failed;

typedef struct pm_state {
    const ot_buffer *const *buffers; /* [n] */
    uint32_t n;
    const ot_kernel *kernel;
    int64_t capacity; /* INT64_MAX: none */
    pm_slot *outline; /* [n_outline] ascending by offset, then buffer, then slot */
    uint32_t n_outline;
    pm_slot *apart, *over;  /* scratch of a search for a place: obstacles, the others */
    uint32_t *multi;        /* [n] slots now; more than the buffer's own after an upgrade */
    ot_reuse_level *level;  /* [n] level that it was placed at */
    ot_reuse_level *limit;  /* [n] highest level to try */
    ot_reuse_level floor;   /* lowest level to try, in this attempt */
    uint32_t max_rollbacks; /* of this attempt */
    bool lowest;            /* lowest places, whatever they share */
    /* [n] the later multi-buffer that made this one a multi-buffer; OT_NONE: none */
    uint32_t *upgraded_by;
    pm_failed *failed; /* [n_failed] */
    uint32_t n_failed;
    int64_t work;       /* slots looked at, all attempts together */
    int64_t max_work;   /* at most */
    bool is_shared_out; /* no floor may spend what is kept for lower ones */
    bool was_cut;       /* an attempt ended because its work was spent */
    uint32_t rollbacks; /* of this attempt */
} pm_state;

#define PM_MAX_ROLLBACKS 200                  /* of an attempt that may go down to level 0 */
#define PM_MAX_WORK      ((int64_t)200 << 20) /* slots looked at by all attempts; some seconds */

/* ---- planmem_outline.c ---- */

void pm_insert(pm_state *m, pm_slot s);
/* Take the slots of `buffer` from number `from` on out, fixed ones excepted. */
void pm_remove(pm_state *m, uint32_t buffer, uint32_t from);
int64_t pm_height(const pm_state *m);
/* Is any slot of the buffer free to be placed? */
bool pm_is_free(const ot_buffer *b);

/* ---- planmem_place.c ---- */

/* Put all free slots of buffer b where they cost least at `level` (planmem_place.c tells how
 * cost is counted); false, and nothing changed, when there is no place. */
bool pm_place(pm_state *m, uint32_t b, ot_reuse_level level);
/* Undo a pm_place. */
void pm_unplace(pm_state *m, uint32_t b);

/* ---- planmem_rollback.c ---- */

/* order[*i] has no place. Undo placements from order[*i - 1] back until it would have one; the
 * last one undone must not go where it was, and may try levels below the one it had only, as all
 * up to order[*i]. Set *i to it. false: no rollback is left. */
bool pm_roll_back(pm_state *m, const uint32_t *order, uint32_t *i);
/* Is there no work left for this floor? */
bool pm_is_spent(pm_state *m);
/* Has the buffer been rolled back from this offset, with as many slots? */
bool pm_is_failed(const pm_state *m, uint32_t buffer, uint32_t multi, int64_t offset);

/* ---- planmem_seq.c ---- */

/* All slots one after the other around those with fixed offsets; *height: the end of the last. */
void pm_sequential(const ot_buffer *const *buffers, uint32_t n, int64_t (*offsets)[OT_TK_MULTI_MAX],
                   uint32_t *multi, int64_t *height);

/* ---- planmem_bound.c ---- */

/* Greatest common divisor of the alignments of all that is alive at some time; every offset is a
 * multiple of it. */
int64_t pm_granule(const ot_buffer *const *buffers, uint32_t n);
/* Bytes of all slots, each rounded up to a multiple of `granule`. */
int64_t pm_bytes(const ot_buffer *b, int64_t granule);
/* No plan is lower: the largest sum alive at one time, rounded up where alignment makes it so,
 * and the largest fixed end. */
ot_status pm_lower_bound(const ot_buffer *const *buffers, uint32_t n, ot_arena *a, ot_diag *d,
                         int64_t *bound) OT_MUST_USE;

/* ---- one scope of a kernel: mem_plan.c, planmem_pack.c, overflow.c ---- */

typedef struct mem_job {
    const ot_kernel *kernel;
    const char *path; /* for messages */
    const ot_mem_options *options;
    ot_diag *diag;
    ot_arena *scratch;
    ot_scope scope;
    const ot_buffer **buffers; /* [n] of this scope, by first write */
    uint32_t n;
    int64_t capacity;                    /* 0: unlimited */
    int64_t (*offsets)[OT_TK_MULTI_MAX]; /* [n] out, as multi and level */
    uint32_t *multi;
    ot_reuse_level *level;
    ot_scope_plan *stats;
    /* asked only whether it fits and how: bounded work, no message where it does not */
    bool is_trial;
    bool cut;        /* out: bounded work ended PlanMemory */
    bool impossible; /* out: the search proved that nothing fits */
} mem_job;

/* planmem_pack.c: pack slots as independent rectangles, their own slot counts only. capacity 0:
 * the lowest. */
ot_status mem_search(const mem_job *j, const ot_buffer *const *buffers, uint32_t n,
                     const ot_pack_options *o, int64_t (*offsets)[OT_TK_MULTI_MAX], uint32_t *multi,
                     ot_pack_result *r) OT_MUST_USE;

/* mem_pool.c: the buffers of pools are placed in their pool, and each pool takes their place in
 * the job: one buffer, alive while any of them is. Then the other way round: places of the
 * members from the pool's. */
typedef struct mem_pools mem_pools;
ot_status mem_pools_enter(mem_job *j, mem_pools **out) OT_MUST_USE;
/* Of buffer i of the job before it entered (x NULL: no pools). */
void mem_pools_place(const mem_job *j, const mem_pools *x, uint32_t i,
                     int64_t offsets[OT_TK_MULTI_MAX], uint32_t *multi, ot_reuse_level *level);
/* mem_pool.c: what the kernel's `check` statements ask of the planned addresses. */
ot_status mem_check_addresses(const ot_kernel *k, const char *path, const ot_mem_plan *p,
                              const ot_tk_machine *t, ot_diag *d) OT_MUST_USE;

/* mem_plan.c: a planned scope in another capacity. */
typedef struct mem_trial {
    ot_scope scope;
    int64_t capacity;   /* of it */
    bool fits;          /* out, as all below */
    bool certain;       /* not fits: it cannot; fits: nothing was left untried */
    ot_scope_plan plan; /* where it fits */
} mem_trial;
/* p, t and o: as ot_mem_plan_kernel made and took them. Bounded work. Fails: OT_E_NOMEM. */
ot_status mem_try_capacity(const ot_kernel *k, const ot_mem_plan *p, const ot_tk_machine *t,
                           const ot_mem_options *o, ot_arena *a, ot_diag *d,
                           mem_trial *trial) OT_MUST_USE;

/* overflow.c: the failure of a scope that does not fit; `mode` that tried last; `required`:
 * least height found. */
ot_status mem_overflow(const mem_job *j, ot_mem_mode mode, int64_t required) OT_MUST_USE;

#endif
