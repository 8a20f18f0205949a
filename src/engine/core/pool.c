/* A pool of threads: chunks are taken from one counter, see pool.h.
 *
 *   open    threads that may take part << 32 | chunks that nobody has begun  taking one: count down
 *   undone  chunks that are not finished                                     0: the caller goes on
 *
 * A worker that was descheduled with an old value of `open` in its hands may find the next work
 * under it: taking a chunk by compare-and-swap makes it a chunk of the work that is there then,
 * whose description is read afterwards and stays as long as one of its chunks is undone.
 *
 * Waiting: look some microseconds, then sleep on a condition. Who finds that a look took longer
 * than it can has been descheduled: other processes want the cores, and for a while nobody looks
 * for long.
 */
#include "pool.h"
#include "base/signals.h"

#include <pthread.h>
#include <stdatomic.h>

#define CHUNKS_EACH 4 /* chunks that each thread gets, if all are equally fast */
/* seconds that a worker looks for work: longer than steps between that are not shared out */
#define LOOK_WORKER 200e-6
#define LOOK_CALLER 50e-6  /* that the caller looks for the end of chunks that others are at */
#define LOOK_BUSY   5e-6   /* that anybody looks on a busy machine */
#define GAP         300e-6 /* between two looks: this thread did not run */
#define BUSY        50e-3  /* a machine that was busy counts as busy */
#define LOOKS       32     /* between readings of the clock */

typedef struct member {
    pthread_t thread;
    ot_pool *pool;
    uint32_t id; /* 1 ...; the caller is 0 */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_bool asleep; /* or about to sleep: whoever clears it must signal */
} member;

struct ot_pool {
    _Atomic uint64_t open;
    _Atomic int64_t undone;
    /* the work; written by the caller when undone is 0 */
    ot_pool_fn *fn;
    void *job;
    int64_t n, chunks;
    atomic_bool quit;
    _Atomic double busy_until; /* of ot_now */
    pthread_mutex_t lock;      /* of the caller's sleep */
    pthread_cond_t done;
    atomic_bool caller_asleep;
    unsigned forks;            /* when workers were started, or the executor was set */
    uint32_t threads, started; /* the caller included; workers that run */
    bool tried;                /* to start them */
    ot_simulation executor;    /* run NULL: workers of its own */
    member workers[];          /* [threads - 1] */
};

static _Thread_local struct {
    ot_pool *pool;
    bool inside;
} here;

/* ---- processes that fork ---- */

static atomic_uint forks; /* that lead to this process */
static pthread_once_t forks_counted = PTHREAD_ONCE_INIT;

static void count_fork(void) { atomic_fetch_add(&forks, 1); }
static void count_forks(void) { (void)pthread_atfork(NULL, NULL, count_fork); }
static bool is_orphan(const ot_pool *p) { return p->forks != atomic_load(&forks); }

/* ---- waiting ---- */

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

typedef bool ready_fn(const void *of);

/* Look for at most that many seconds. Returns what `ready` said last. */
static bool look(ot_pool *p, double seconds, ready_fn *ready, const void *of)
{
    double start = ot_now(), before = start;
    if (start < atomic_load_explicit(&p->busy_until, memory_order_relaxed)) seconds = LOOK_BUSY;
    for (;;) {
        for (int k = 0; k < LOOKS; k++) {
            if (ready(of)) return true;
            relax();
        }
        double now = ot_now();
        if (now - before > GAP) {
            atomic_store_explicit(&p->busy_until, now + BUSY, memory_order_relaxed);
            return ready(of);
        }
        if (now - start > seconds) return false;
        before = now;
    }
}

/* ---- chunks ---- */

static int64_t range_start(const ot_pool *p, int64_t chunk)
{
    return p->n / p->chunks * chunk + ot_min(chunk, p->n % p->chunks);
}

/* Take chunks until there are none. */
static void work(ot_pool *p, uint32_t id)
{
    uint64_t open = atomic_load_explicit(&p->open, memory_order_acquire);
    while ((uint32_t)open != 0 && id < open >> 32) {
        if (!atomic_compare_exchange_weak_explicit(&p->open, &open, open - 1, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        int64_t chunk = p->chunks - (int64_t)(uint32_t)open;
        p->fn(p->job, range_start(p, chunk), range_start(p, chunk + 1), id);
        if (atomic_fetch_sub(&p->undone, 1) == 1 && id != 0 && atomic_load(&p->caller_asleep)) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->done);
            pthread_mutex_unlock(&p->lock);
        }
        open = atomic_load_explicit(&p->open, memory_order_acquire);
    }
}

/* ---- workers ---- */

static bool has_work(const void *of)
{
    const member *m = of;
    uint64_t open = atomic_load(&m->pool->open);
    return ((uint32_t)open != 0 && m->id < open >> 32) || atomic_load(&m->pool->quit);
}

static void sleep_until_work(member *m)
{
    pthread_mutex_lock(&m->lock);
    atomic_store(&m->asleep, true);
    if (has_work(m)) atomic_store(&m->asleep, false);
    while (atomic_load(&m->asleep)) pthread_cond_wait(&m->wake, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

static void *run_worker(void *of)
{
    member *m = of;
    ot_signal_hold hold; /* the thread that writes files is asked whether to stop */
    ot_signals_hold(&hold);
    here.inside = true;
    while (!atomic_load(&m->pool->quit)) {
        work(m->pool, m->id);
        if (!look(m->pool, LOOK_WORKER, has_work, m)) sleep_until_work(m);
    }
    return NULL;
}

/* Requires m->lock, which is given back. */
static void signal_member(member *m)
{
    atomic_store(&m->asleep, false);
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
}

/* A worker that holds its lock is about to sleep, or waking: it may miss this work, but nobody
 * waits for it here. */
static void wake(member *m)
{
    if (atomic_load(&m->asleep) && pthread_mutex_trylock(&m->lock) == 0) signal_member(m);
}

/* What an executor's thread does. */
static void participate(void *of, size_t id)
{
    bool before = here.inside;
    here.inside = true;
    work(of, (uint32_t)id);
    here.inside = before;
}

static void start_workers(ot_pool *p)
{
    p->tried = true;
    p->forks = atomic_load(&forks);
    while (p->started + 1 < p->threads) {
        member *m = &p->workers[p->started];
        *m = (member){.pool = p, .id = p->started + 1};
        if (pthread_mutex_init(&m->lock, NULL) != 0) return;
        bool ok = pthread_cond_init(&m->wake, NULL) == 0;
        if (ok && pthread_create(&m->thread, NULL, run_worker, m) != 0) {
            pthread_cond_destroy(&m->wake);
            ok = false;
        }
        if (!ok) {
            pthread_mutex_destroy(&m->lock);
            return;
        }
        p->started++;
    }
}

/* ---- pools ---- */

ot_status ot_pool_new(uint32_t threads, ot_pool **out)
{
    threads = (uint32_t)ot_max(1, ot_min(threads, OT_POOL_THREADS_MAX));
    size_t bytes = sizeof(ot_pool) + (threads - 1) * sizeof(member);
    ot_pool *p = *out = ot_hook_alloc(NULL, 0, bytes);
    if (!p) return OT_E_NOMEM;
    memset(p, 0, bytes);
    p->threads = threads;
    (void)pthread_once(&forks_counted, count_forks);
    if (pthread_mutex_init(&p->lock, NULL) == 0 && pthread_cond_init(&p->done, NULL) == 0)
        return OT_OK;
    (void)!ot_hook_alloc(p, bytes, 0);
    *out = NULL;
    return OT_E_NOMEM;
}

void ot_pool_free(ot_pool *p)
{
    if (!p) return;
    bool orphan = p->started > 0 && is_orphan(p);
    atomic_store(&p->quit, true);
    for (uint32_t k = 0; k < p->started && !orphan; k++) {
        pthread_mutex_lock(&p->workers[k].lock);
        signal_member(&p->workers[k]);
    }
    for (uint32_t k = 0; k < p->started && !orphan; k++) {
        pthread_join(p->workers[k].thread, NULL);
        pthread_cond_destroy(&p->workers[k].wake);
        pthread_mutex_destroy(&p->workers[k].lock);
    }
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    if (here.pool == p) here.pool = NULL;
    (void)!ot_hook_alloc(p, sizeof(ot_pool) + (p->threads - 1) * sizeof(member), 0);
}

ot_pool *ot_pool_use(ot_pool *p)
{
    ot_pool *before = here.pool;
    here.pool = p;
    return before;
}

void ot_pool_run_on(ot_pool *p, ot_simulation e)
{
    p->executor = e;
    p->forks = atomic_load(&forks);
    p->tried = true;
}

bool ot_pool_inside(void) { return here.inside; }

/* ---- sharing ---- */

static bool is_done(const void *of) { return atomic_load(&((const ot_pool *)of)->undone) == 0; }

static void wait_for_others(ot_pool *p)
{
    if (is_done(p) || look(p, LOOK_CALLER, is_done, p)) return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_asleep, true);
    while (!is_done(p)) pthread_cond_wait(&p->done, &p->lock);
    atomic_store(&p->caller_asleep, false);
    pthread_mutex_unlock(&p->lock);
}

/* chunks: at least 2 */
static void share(ot_pool *p, uint32_t threads, int64_t n, int64_t chunks, ot_pool_fn *fn,
                  void *job)
{
    p->fn = fn;
    p->job = job;
    p->n = n;
    p->chunks = chunks;
    atomic_store(&p->undone, chunks);
    atomic_store(&p->open, (uint64_t)threads << 32 | (uint64_t)chunks);
    if (p->executor.run)
        p->executor.run(p->executor.of, participate, (size_t)ot_min(threads, chunks), p);
    for (uint32_t k = 0; k < p->started && k + 1 < threads && k + 1 < chunks; k++)
        wake(&p->workers[k]);
    here.inside = true;
    work(p, 0);
    here.inside = false;
    wait_for_others(p);
}

static void run(uint32_t threads, int64_t n, int64_t chunks, ot_pool_fn *fn, void *job)
{
    ot_pool *p = here.pool;
    if (n <= 0) return;
    if (p && !here.inside && threads > 1 && chunks > 1 && !p->tried) start_workers(p);
    if (!p || here.inside || threads <= 1 || chunks <= 1 || (p->started == 0 && !p->executor.run) ||
        is_orphan(p)) {
        fn(job, 0, n, 0);
        return;
    }
    share(p, threads, n, ot_min(chunks, UINT32_MAX), fn, job);
}

void ot_pool_share(uint32_t threads, int64_t n, int64_t least, ot_pool_fn *fn, void *job)
{
    run(threads, n, ot_min((int64_t)threads * CHUNKS_EACH, n / ot_max(least, 1)), fn, job);
}

void ot_pool_share_each(uint32_t threads, int64_t n, ot_pool_fn *fn, void *job)
{
    run(threads, n, n, fn, job);
}
