/* How high a plan must be at least. */
#include "planmem_internal.h"

int64_t pm_granule(const ot_buffer *const *buffers, uint32_t n)
{
    int64_t granule = 0;
    for (uint32_t i = 0; i < n; i++)
        if (buffers[i]->n_live) granule = ot_gcd(granule, buffers[i]->align);
    return granule > 0 ? granule : 1;
}

int64_t pm_bytes(const ot_buffer *b, int64_t granule)
{
    return ot_ceil_div(b->size, granule) * granule * b->multi;
}

typedef struct event {
    int64_t position, bytes, rounded; /* change of what is alive */
} event;

/* Ends before starts: spans are half-open. */
static int compare_events(const void *pa, const void *pb)
{
    const event *a = pa, *b = pb;
    if (a->position != b->position) return a->position < b->position ? -1 : 1;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

/* Offsets are multiples of the granule g, so a slot takes ceil(size / g) * g from all others
 * alive with it, only the highest one not: it may end within its last granule. */
ot_status pm_lower_bound(const ot_buffer *const *buffers, uint32_t n, ot_arena *a, ot_diag *d,
                         int64_t *bound)
{
    size_t n_events = 0;
    for (uint32_t i = 0; i < n; i++) n_events += 2 * (size_t)buffers[i]->n_live;
    event *events = OT_NEW_N(a, event, n_events);
    if (!events) return ot_fail_nomem(d);
    int64_t g = pm_granule(buffers, n), slack = 0, fixed = 0;
    size_t e = 0;
    for (uint32_t i = 0; i < n; i++) {
        const ot_buffer *b = buffers[i];
        int64_t bytes = pm_bytes(b, 1), rounded = pm_bytes(b, g);
        for (uint32_t s = 0; s < b->n_live; s++) {
            events[e++] = (event){b->live[s].lower, bytes, rounded};
            events[e++] = (event){b->live[s].upper, -bytes, -rounded};
        }
        for (uint32_t k = 0; k < b->multi && b->n_live; k++)
            if (b->fixed[k] >= 0) fixed = ot_max(fixed, b->fixed[k] + b->size);
        if (b->n_live) slack = ot_max(slack, ot_ceil_div(b->size, g) * g - b->size);
    }
    qsort(events, n_events, sizeof *events, compare_events);
    int64_t alive = 0, alive_rounded = 0;
    *bound = fixed;
    for (e = 0; e < n_events; e++) {
        alive += events[e].bytes;
        alive_rounded += events[e].rounded;
        *bound = ot_max(*bound, ot_max(alive, alive_rounded - slack));
    }
    return OT_OK;
}
