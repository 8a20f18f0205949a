/* What a device of the project's engine runs as one kernel (private to this folder). */
#ifndef OT_ALLOC_SIM_DEVICE_STEPS_H
#define OT_ALLOC_SIM_DEVICE_STEPS_H

#include "onnx/graph/ir.h"

/* A graph's nodes by place: their number in the order, those left out whose results are known
 * before the model runs, or that nobody wants. */
typedef struct ot_device_steps {
    const ot_graph *g;
    uint32_t n;
    ot_id *node; /* [n] */
    /* [n] the place of the last node of the kernel that it is part of, where that runs */
    uint32_t *at;
    uint32_t *maker;     /* [n_values] place; OT_NONE */
    uint32_t *first;     /* [n_values + 1] readers of v are readers[first[v] .. first[v + 1]), */
    uint32_t *readers;   /* places, each once and in order; bodies of the node count */
    const bool *taken;   /* [n] part of a group already, while groups are looked for */
    const bool *outward; /* [n_values] a body reads it */
} ot_device_steps;

/* Requires ORDER, USES, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_device_steps_find(const ot_graph *g, ot_arena *a, ot_device_steps *out) OT_MUST_USE;

static inline uint32_t ot_device_readers(const ot_device_steps *s, ot_id v)
{
    return s->first[v + 1] - s->first[v];
}
/* The place that alone reads v; OT_NONE. */
static inline uint32_t ot_device_only_reader(const ot_device_steps *s, ot_id v)
{
    return ot_device_readers(s, v) == 1 && !s->g->values[v].is_output ? s->readers[s->first[v]]
                                                                      : OT_NONE;
}
/* Somebody beside the kernel that makes v, which is at `place`, wants it. */
bool ot_device_stores(const ot_device_steps *s, ot_id v, uint32_t place);

#endif
