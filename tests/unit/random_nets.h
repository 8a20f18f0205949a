/* Random nets of plans (select/search/plan_net.h), and what a path in one is worth. Figures are
 * whole numbers, so that sums are exact in any order. */
#ifndef OT_TESTS_RANDOM_NETS_H
#define OT_TESTS_RANDOM_NETS_H

#include "select/search/plan_net.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { NET_ARCS_MAX = 600 };

typedef struct random_net {
    ot_net m;
    ot_net_arc arcs[NET_ARCS_MAX];
    bool used[NET_ARCS_MAX];
} random_net;

static inline uint32_t net_draw(uint64_t *seed, uint32_t below)
{
    return (uint32_t)(ot_next_random(seed) % below);
}

/* A chain of untiled runs, and regions over it that take more time or less for less memory. One
 * net in eight has a limit that nothing keeps. */
static inline void net_make(random_net *x, uint64_t seed, uint32_t n_nodes, uint32_t n_regions,
                            ot_arena *a)
{
    const uint32_t steps = 1 + net_draw(&seed, 4), peaks = 2 + net_draw(&seed, 6);
    double untiled = 0;
    x->m = (ot_net){.arena = a, .arcs = x->arcs, .n_nodes = n_nodes};
    for (uint32_t k = 0; k < n_regions; k++) {
        const uint32_t from = net_draw(&seed, n_nodes - 1), longest = n_nodes - 1 - from;
        const uint32_t to = from + 1 + net_draw(&seed, longest < 6 ? longest : 6);
        x->arcs[x->m.n_arcs++] = (ot_net_arc){.from = from,
                                              .to = to,
                                              .time = (to - from) * (5 + net_draw(&seed, 10)),
                                              .peak = (1 + net_draw(&seed, peaks)) * 1048576,
                                              .loops = net_draw(&seed, steps) > 0,
                                              .tiles = 2u << net_draw(&seed, 6)};
    }
    for (uint32_t p = 0; p + 1 < n_nodes; p++) {
        const double time = 8 + net_draw(&seed, 5);
        x->arcs[x->m.n_arcs++] = (ot_net_arc){
            .from = p, .to = p + 1, .time = time, .peak = (2 + net_draw(&seed, peaks)) * 1048576};
        untiled += time;
    }
    x->m.limit = net_draw(&seed, 8) == 0
                     ? 0.5
                     : (double)(int64_t)(untiled * (0.7 + net_draw(&seed, 9) * 0.1)) + 0.5;
}

/* What is looked for, in the order in which it counts. */
typedef struct net_value {
    int64_t peak;
    uint64_t loops, tiles;
    double time;
} net_value;

static inline int net_compare(const net_value *a, const net_value *b)
{
    if (a->peak != b->peak) return a->peak < b->peak ? -1 : 1;
    if (a->loops != b->loops) return a->loops < b->loops ? -1 : 1;
    if (a->tiles != b->tiles) return a->tiles < b->tiles ? -1 : 1;
    return (a->time > b->time) - (a->time < b->time);
}

static inline void net_add(net_value *v, const ot_net_arc *a)
{
    v->peak = a->peak > v->peak ? a->peak : v->peak;
    v->loops += a->loops;
    v->tiles += a->tiles;
    v->time += a->time;
}

/* Of the arcs that are used, which must be one path within the limit and nothing else. */
static inline net_value net_value_of(const ot_net *m, const bool *used)
{
    net_value v = {0};
    uint32_t at = 0, taken = 0, n_used = 0;
    while (at + 1 < m->n_nodes) {
        uint32_t k = 0;
        while (k < m->n_arcs && !(used[k] && m->arcs[k].from == at)) k++;
        if (k == m->n_arcs) fail_msg("no arc leads on from node %u", at);
        net_add(&v, &m->arcs[k]);
        at = m->arcs[k].to;
        taken++;
    }
    for (uint32_t k = 0; k < m->n_arcs; k++) n_used += used[k];
    assert_int_equal(taken, n_used);
    assert_true(v.time <= m->limit);
    return v;
}

#endif
