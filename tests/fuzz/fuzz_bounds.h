/* What keeps one input of a fuzzer that runs models short: memory and steps are counted by the
 * allocation hook, arithmetic is estimated before anything runs. Past a bound, allocations fail,
 * and what runs ends with OT_E_NOMEM: the same for the same bytes.
 *
 *   ALIVE_MAX   bytes alive at one time      an array, a constant that is folded
 *   TAKEN_MAX   allocations in all           a loop takes some in each iteration
 *   MACS_MAX    of one run, bodies once      what one kernel does between two allocations
 */
#ifndef FUZZ_BOUNDS_H
#define FUZZ_BOUNDS_H

#include "ops/ops.h"

#include <stdatomic.h>

#define ALIVE_MAX (8 << 20)
#define TAKEN_MAX 200000
#define MACS_MAX  5e6

static _Atomic int64_t fuzz_alive, fuzz_taken;

static inline void *fuzz_bounded_hook(void *ptr, size_t old_size, size_t new_size)
{
    if (new_size > ALIVE_MAX || (new_size && atomic_fetch_add(&fuzz_taken, 1) >= TAKEN_MAX))
        return NULL;
    int64_t more = (int64_t)new_size - (int64_t)(ptr ? old_size : 0);
    if (new_size && atomic_load(&fuzz_alive) + more > ALIVE_MAX) return NULL;
    void *got = NULL;
    if (new_size)
        got = realloc(ptr, new_size);
    else
        free(ptr);
    if (got || !new_size) atomic_fetch_add(&fuzz_alive, more);
    return got;
}

/* Before each input. */
static inline void fuzz_begin(void)
{
    atomic_store(&fuzz_alive, 0);
    atomic_store(&fuzz_taken, 0);
    ot_set_alloc_hook(fuzz_bounded_hook);
}

/* A failure has one line that says so, and is the input's or the bounds' fault; anything else is
 * our bug. */
static inline void fuzz_expect_line(ot_status s, const char *message)
{
    if (s == OT_OK || s == OT_E_NOMEM) return;
    if (s != OT_E_INPUT && s != OT_E_USAGE) OT_BUG("a failure that no input can cause");
    if (!*message || strchr(message, '\n')) OT_BUG("a failure without its one line");
}

/* Whether a graph with inferred shapes is small enough to be run. */
static inline bool fuzz_is_small(const ot_graph *g)
{
    double macs = 0;
    int64_t bytes = 0, some;
    for (uint32_t k = 0; k < g->n_nodes; k++) {
        const ot_node *n = &g->nodes[k];
        macs += ot_node_macs(g, n);
        /* a kernel of four elements along each of four axes */
        if (n->op == OT_OP_Resize && n->n_out > 0 && n->out[0] != OT_NONE &&
            ot_value_elems(&g->values[n->out[0]], &some))
            macs += 256.0 * (double)some;
    }
    for (uint32_t k = 0; k < g->n_values; k++)
        if (g->values[k].is_tensor && ot_value_is_static(&g->values[k]) &&
            ot_value_bytes(&g->values[k], &some))
            bytes += some / 64;
    return macs <= MACS_MAX && bytes <= ALIVE_MAX;
}

/* n elements of a type, small numbers of both signs: indices and halves. */
static inline void fuzz_fill(void *data, ot_dtype type, int64_t n)
{
    for (int64_t k = 0; k < n; k++) switch (type) {
        case OT_F32: ((float *)data)[k] = (float)(k % 7) * 0.25f - 0.5f; break;
        case OT_F64: ((double *)data)[k] = (double)(k % 7) * 0.25 - 0.5; break;
        case OT_I64: ((int64_t *)data)[k] = k % 3; break;
        case OT_I32: ((int32_t *)data)[k] = (int32_t)(k % 3); break;
        case OT_F16:
        case OT_BF16: ((uint16_t *)data)[k] = (uint16_t)(k % 2 ? 0x3800 : 0x3400); break;
        default: ((uint8_t *)data)[k * (ot_dtype_bits(type) / 8)] = (uint8_t)(k % 2); break;
        }
}

#endif
