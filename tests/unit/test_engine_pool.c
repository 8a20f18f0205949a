/* The pool of threads: every chunk once, whoever takes it; workers that are never scheduled;
 * pools that come and go. */
#include "seeded.h"

#include "engine/core/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ITEMS   3000
#define THREADS 8

static ot_pool *new_pool(uint32_t threads)
{
    ot_pool *p = NULL;
    assert_int_equal(ot_pool_new(threads, &p), OT_OK);
    return p;
}

/* ---- counting ---- */

/* How often each item was taken, and whether two participants had one number at a time. */
typedef struct tally {
    int64_t n, least;
    uint32_t threads;
    atomic_int taken[ITEMS];
    atomic_int at[THREADS + 1];
    atomic_int calls, wrong;
} tally;

static void count(void *job, int64_t first, int64_t end, uint32_t worker)
{
    tally *t = job;
    bool fits = first >= 0 && first < end && end <= t->n && worker < t->threads && ot_pool_inside();
    if (!fits || atomic_fetch_add(&t->at[worker], 1) != 0) t->wrong++;
    if (end - first < t->least && t->n >= t->least) t->wrong++;
    for (int64_t k = first; fits && k < end; k++) t->taken[k]++;
    t->calls++;
    if (fits) t->at[worker]--;
}

static void check_tally(const tally *t)
{
    assert_int_equal(t->wrong, 0);
    for (int64_t k = 0; k < t->n; k++)
        if (t->taken[k] != 1)
            fail_msg("%d times item %d of %d, %u threads", t->taken[k], (int)k, (int)t->n,
                     t->threads);
}

/* With work for one thread only, the items are done outside of any chunk: nothing is said of
 * ot_pool_inside then. */
static void count_alone(void *job, int64_t first, int64_t end, uint32_t worker)
{
    tally *t = job;
    for (int64_t k = first; k < end; k++) t->taken[k]++;
    if (worker != 0) t->wrong++;
    t->calls++;
}

static void each_item_once(void **state)
{
    (void)state;
    static tally t;
    for (uint32_t threads = 1; threads <= THREADS; threads++) {
        ot_pool *p = new_pool(threads), *before = ot_pool_use(p);
        assert_null(before);
        for (int again = 0; again < 60; again++) {
            memset(&t, 0, sizeof t);
            t.n = below(3) ? below(ITEMS + 1) : below(12);
            t.least = again % 2 ? 1 : 1 + below(40);
            t.threads = 1 + (uint32_t)below(THREADS);
            bool alone = threads == 1 || t.threads == 1 || t.n / t.least < 2;
            if (again % 2)
                ot_pool_share_each(t.threads, t.n, alone ? count_alone : count, &t);
            else
                ot_pool_share(t.threads, t.n, t.least, alone ? count_alone : count, &t);
            check_tally(&t);
            if (alone) assert_int_equal(t.calls, t.n > 0);
            if (!alone && again % 2) assert_int_equal(t.calls, t.n);
        }
        assert_ptr_equal(ot_pool_use(before), p);
        ot_pool_free(p);
    }
}

static void without_a_pool(void **state)
{
    (void)state;
    static tally t;
    memset(&t, 0, sizeof t);
    t.n = 100;
    ot_pool_share(4, t.n, 1, count_alone, &t);
    check_tally(&t);
    assert_int_equal(t.calls, 1);
    assert_false(ot_pool_inside());
    ot_pool_free(NULL);
}

/* ---- calls inside of chunks ---- */

typedef struct nest {
    tally inner[40];
    atomic_int wrong;
} nest;

static void share_inside(void *job, int64_t first, int64_t end, uint32_t worker)
{
    nest *n = job;
    (void)worker;
    for (int64_t k = first; k < end; k++) {
        n->inner[k].n = 50;
        ot_pool_share(4, 50, 1, count_alone, &n->inner[k]);
        if (!ot_pool_inside()) n->wrong++;
    }
}

static void nested_work_stays_in_its_chunk(void **state)
{
    (void)state;
    static nest n;
    ot_pool *p = new_pool(4);
    (void)ot_pool_use(p);
    memset(&n, 0, sizeof n);
    ot_pool_share_each(4, 40, share_inside, &n);
    assert_int_equal(n.wrong, 0);
    for (int k = 0; k < 40; k++) {
        check_tally(&n.inner[k]);
        assert_int_equal(n.inner[k].calls, 1);
    }
    ot_pool_free(p);
    assert_null(ot_pool_use(NULL)); /* the pool that is freed is no longer used */
}

/* ---- threads of somebody else ---- */

/* An executor of some kind, and what it was asked for. */
typedef struct lender {
    enum { ON_THREADS, BACKWARDS, EVERY_OTHER, NONE, LENDERS } kind;
    size_t most; /* tasks of one call */
} lender;

typedef struct lent {
    ot_task_fn *task;
    void *job;
    size_t k;
} lent;

static void *run_lent(void *of)
{
    const lent *l = of;
    if (!ot_pool_inside()) l->task(l->job, l->k);
    return ot_pool_inside() ? of : NULL; /* the thread is given back as it was */
}

static void lend(void *of, ot_task_fn *task, size_t n, void *job)
{
    lender *l = of;
    lent each[THREADS];
    pthread_t threads[THREADS];
    void *wrong;
    l->most = ot_max(l->most, n);
    assert_true(n <= THREADS);
    for (size_t k = 0; k < n; k++) each[k] = (lent){task, job, k};
    for (size_t k = 0; l->kind == ON_THREADS && k < n; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, run_lent, &each[k]), 0);
    for (size_t k = 0; l->kind == ON_THREADS && k < n; k++) {
        assert_int_equal(pthread_join(threads[k], &wrong), 0);
        assert_null(wrong);
    }
    for (size_t k = n; l->kind == BACKWARDS && k-- > 0;) assert_null(run_lent(&each[k]));
    for (size_t k = 1; l->kind == EVERY_OTHER && k < n; k += 2) assert_null(run_lent(&each[k]));
}

static int threads_here(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[200];
    int n = -1;
    assert_non_null(f);
    while (n < 0 && fgets(line, sizeof line, f)) (void)sscanf(line, "Threads: %d", &n);
    (void)fclose(f);
    return n;
}

static void executors_do_what_they_can(void **state)
{
    (void)state;
    static tally t;
    int before = threads_here();
    for (int kind = 0; kind < LENDERS; kind++) {
        lender l = {.kind = kind};
        ot_pool *p = new_pool(THREADS);
        ot_pool_run_on(p, (ot_simulation){lend, &l});
        (void)ot_pool_use(p);
        for (int again = 0; again < 40; again++) {
            memset(&t, 0, sizeof t);
            t.n = 2 + below(ITEMS - 2);
            t.threads = 2 + (uint32_t)below(THREADS - 1);
            l.most = 0;
            ot_pool_share_each(t.threads, t.n, count, &t);
            check_tally(&t);
            assert_int_equal(t.calls, t.n);
            assert_int_equal(l.most, ot_min(t.threads, t.n));
        }
        assert_int_equal(threads_here(), before);
        ot_pool_free(p);
    }
}

/* ---- failures ---- */

typedef struct failing {
    atomic_int done;
    atomic_bool failed;
} failing;

static void fail_some(void *job, int64_t first, int64_t end, uint32_t worker)
{
    failing *f = job;
    (void)worker;
    for (int64_t k = first; k < end; k++) {
        if (k % 7 == 3) f->failed = true;
        f->done++;
    }
}

static void failures_are_the_job_s(void **state)
{
    (void)state;
    static tally t;
    ot_pool *p = new_pool(3);
    (void)ot_pool_use(p);
    failing f = {0};
    ot_pool_share_each(3, 100, fail_some, &f);
    assert_int_equal(f.done, 100);
    assert_true(f.failed);
    memset(&t, 0, sizeof t);
    t.n = 200;
    t.threads = 3;
    ot_pool_share_each(3, t.n, count, &t);
    check_tally(&t);
    ot_pool_free(p);
}

/* ---- a worker that does not run ---- */

static int gate[2]; /* a pipe that nobody has written to */
static atomic_int held;

static void hold(int signal)
{
    char c;
    (void)signal;
    held++;
    while (read(gate[0], &c, 1) < 0) {}
    held--;
}

/* Chunks that wait until every thread is at one: who the workers are. */
typedef struct census {
    atomic_int arrived;
    pthread_t who[THREADS];
} census;

static void be_counted(void *job, int64_t first, int64_t end, uint32_t worker)
{
    census *c = job;
    (void)first;
    (void)end;
    c->who[worker] = pthread_self();
    c->arrived++;
    while (c->arrived < 4) {}
}

/* Held in a signal handler, workers are what descheduled ones are: they go on when they are let. */
static void workers_that_never_run(void **state)
{
    (void)state;
    static tally t;
    census c = {0};
    struct sigaction holding = {.sa_handler = hold}, before;
    assert_int_equal(pipe(gate), 0);
    assert_int_equal(sigaction(SIGUSR1, &holding, &before), 0);
    ot_pool *p = new_pool(4);
    (void)ot_pool_use(p);
    ot_pool_share_each(4, 4, be_counted, &c);
    for (int k = 1; k < 4; k++) assert_int_equal(pthread_kill(c.who[k], SIGUSR1), 0);
    while (held < 3) {}
    for (int again = 0; again < 50; again++) {
        memset(&t, 0, sizeof t);
        t.n = 1 + below(ITEMS);
        t.threads = 1;
        ot_pool_share_each(4, t.n, t.n == 1 ? count_alone : count, &t); /* worker 0 does it all */
        check_tally(&t);
    }
    assert_int_equal(held, 3);
    assert_int_equal(write(gate[1], "abc", 3), 3);
    while (held > 0) {}
    c.arrived = 0;
    ot_pool_share_each(4, 4, be_counted, &c); /* they are back */
    ot_pool_free(p);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    close(gate[0]);
    close(gate[1]);
}

/* ---- pools ---- */

static void pools_come_and_go(void **state)
{
    (void)state;
    for (int again = 0; again < 150; again++) {
        ot_pool *p = new_pool(1 + (uint32_t)below(THREADS));
        for (int64_t runs = below(3); runs > 0; runs--) {
            failing f = {0};
            int64_t n = 1 + below(30);
            (void)ot_pool_use(p);
            ot_pool_share_each(THREADS, n, fail_some, &f);
            assert_int_equal(f.done, n);
        }
        ot_pool_free(p);
    }
}

static void *own_pool(void *wrong)
{
    static const uint32_t threads[] = {1, 3, 2, 4};
    tally *t = calloc(1, sizeof *t);
    for (int again = 0; t && again < 60; again++) {
        ot_pool *p = NULL;
        memset(t, 0, sizeof *t);
        t->n = 500;
        t->threads = threads[again % 4];
        if (ot_pool_new(t->threads, &p) != OT_OK) ++*(int *)wrong;
        (void)ot_pool_use(p);
        ot_pool_share_each(t->threads, t->n, t->threads == 1 ? count_alone : count, t);
        for (int64_t k = 0; k < t->n; k++) *(int *)wrong += t->taken[k] != 1;
        *(int *)wrong += t->wrong;
        ot_pool_free(p);
    }
    free(t);
    return NULL;
}

static void pools_of_two_threads(void **state)
{
    (void)state;
    pthread_t other;
    int wrong[2] = {0, 0};
    assert_int_equal(pthread_create(&other, NULL, own_pool, &wrong[1]), 0);
    own_pool(&wrong[0]);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(wrong[0] + wrong[1], 0);
}

/* A child has no workers: it does everything itself, and frees the pool without them. */
static void a_child_does_it_alone(void **state)
{
    (void)state;
    static tally t;
    ot_pool *p = new_pool(3);
    (void)ot_pool_use(p);
    failing f = {0};
    ot_pool_share_each(3, 100, fail_some, &f);
    assert_int_equal(f.done, 100);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        memset(&t, 0, sizeof t);
        t.n = 300;
        ot_pool_share_each(3, t.n, count_alone, &t);
        bool ok = t.calls == 1;
        for (int k = 0; k < 300; k++) ok = ok && t.taken[k] == 1;
        ot_pool_free(p);
        _exit(ok ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    memset(&t, 0, sizeof t);
    t.n = 300;
    t.threads = 3;
    ot_pool_share_each(3, t.n, count, &t);
    check_tally(&t);
    ot_pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_once),
        cmocka_unit_test(without_a_pool),
        cmocka_unit_test(nested_work_stays_in_its_chunk),
        cmocka_unit_test(executors_do_what_they_can),
        cmocka_unit_test(failures_are_the_job_s),
        cmocka_unit_test(workers_that_never_run),
        cmocka_unit_test(pools_come_and_go),
        cmocka_unit_test(pools_of_two_threads),
        cmocka_unit_test(a_child_does_it_alone),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
