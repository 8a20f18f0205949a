/* Threads that do the same thing at the same time.
 *
 *   thread 0   prepare ----.  gate  .---- measure
 *   thread 1   prepare --------.    |---- measure        nobody measures while another prepares
 *   thread 2   prepare -.           '---- measure
 *
 * A thread that cannot be started must not keep the others waiting: the gate is opened for good
 * then.
 */
#include "measure_team.h"

#include <pthread.h>
#include <sched.h>

typedef struct member {
    pthread_t thread;
    void (*work)(void *of, ot_gate *g);
    void *of;
    ot_gate *gate;
} member;

void ot_gate_pass(ot_gate *g)
{
    atomic_fetch_add(&g->arrived, 1);
    while (atomic_load(&g->arrived) < g->n) sched_yield();
}

static void *start(void *of)
{
    member *m = of;
    m->work(m->of, m->gate);
    return NULL;
}

bool ot_team_run(uint32_t n, void (*work)(void *member, ot_gate *g), void *members,
                 size_t member_size)
{
    ot_gate gate = {.n = n};
    member *team = calloc(n, sizeof *team);
    uint32_t started = 1;
    if (!team) return false;
    for (uint32_t k = 0; k < n; k++)
        team[k] = (member){.work = work, .of = (char *)members + k * member_size, .gate = &gate};
    while (started < n && pthread_create(&team[started].thread, NULL, start, &team[started]) == 0)
        started++;
    if (started < n) atomic_fetch_add(&gate.arrived, n);
    start(&team[0]);
    for (uint32_t k = 1; k < started; k++) pthread_join(team[k].thread, NULL);
    free(team);
    return started == n;
}
