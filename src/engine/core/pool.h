/* Threads that share out the work of a step.
 *
 *   caller     publish --- chunk 0 --- chunk 2 --- chunk 3 --- chunk 5 --> all done? go on
 *   worker 1      `-- wakes -- chunk 1 ------- chunk 4 --'
 *   worker 2      (descheduled: has begun nothing, nobody waits for it)
 *
 * Work is cut into more chunks than threads, and whoever has time takes the next one. The caller
 * takes chunks like everybody, so it finishes what sleeping workers have not begun; it waits
 * only for chunks that somebody is at. Who waits looks for some microseconds, then sleeps: a
 * thread that spins takes time from those it waits for when other processes want the cores, too.
 *
 * Results must not depend on who computes what: chunks write disjoint places, and scratch
 * belongs to the participant.
 */
#ifndef OT_ENGINE_CORE_POOL_H
#define OT_ENGINE_CORE_POOL_H

#include "base/base.h"

#define OT_POOL_THREADS_MAX 1024

typedef struct ot_pool ot_pool;

/* A pool of that many threads, the caller's included (1 to OT_POOL_THREADS_MAX; more counts as
 * that). The others are started by the first work that is shared out; those that cannot be
 * started are done without. Fails with OT_E_NOMEM. */
ot_status ot_pool_new(uint32_t threads, ot_pool **out) OT_MUST_USE;
/* Accepts NULL. Nothing may be running. In a child of fork, which has no workers, it frees
 * memory only. */
void ot_pool_free(ot_pool *p);

/* Somebody else's threads, usable by this process while work is shared out. */
typedef void ot_task_fn(void *job, size_t k);
typedef struct ot_simulation {
    /* Calls task(job, k) for k in [0, n), each at most once, on any threads and in any order;
     * returns when the calls have returned. What it leaves out is done without them. NULL: none. */
    void (*run)(void *of, ot_task_fn *task, size_t n, void *job);
    void *of;
} ot_simulation;

/* Instead of threads of its own p uses those of e, of which up to p's number take part. Before
 * the first work. */
void ot_pool_run_on(ot_pool *p, ot_simulation e);

/* From now on ot_pool_share in this thread uses p (NULL: runs everything itself). Returns what
 * it was. One thread at a time may use a pool. */
ot_pool *ot_pool_use(ot_pool *p);

/* Is this thread at a chunk? What it shares out then, it does itself. */
bool ot_pool_inside(void);

/* Items [first, end) of the work `job`. `worker` is a number below the `threads` of the call
 * that no other participant has: of scratch. */
typedef void ot_pool_fn(void *job, int64_t first, int64_t end, uint32_t worker);

/* Calls fn for ranges that cover [0, n) once, each of at least `least` items (but the last), on
 * up to `threads` threads, the caller among them; returns when all are done. Allocates nothing
 * and cannot fail: what goes wrong in a chunk is noted in the job. With one thread, or inside a
 * chunk, fn is called once with all of it and worker 0. Ranges depend on n, `least` and
 * `threads`. */
void ot_pool_share(uint32_t threads, int64_t n, int64_t least, ot_pool_fn *fn, void *job);

/* The same one item at a time: for items that take long, or not equally long. */
void ot_pool_share_each(uint32_t threads, int64_t n, ot_pool_fn *fn, void *job);

#endif
