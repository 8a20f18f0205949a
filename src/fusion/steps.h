/* What runs as one step: a graph and the rules of a runtime make steps. Cost model, memory model,
 * the engine and its devices read them.
 *
 *   place    0     1     2     3       leader  0 0 2 0       a step runs where its last node
 *            Conv  Relu  Pool  Add     next    1 3 - -       stands: whoever reads its results
 *                                      last    3 - 2 -       comes behind that
 */
#ifndef OT_FUSION_STEPS_H
#define OT_FUSION_STEPS_H

#include "graph_view.h"

typedef struct ot_steps {
    uint32_t n;        /* places */
    uint32_t *leader;  /* [n] the node that stands for its step; itself where it is alone */
    uint32_t *next;    /* [n] the next node of its step; OT_NONE */
    uint32_t *last;    /* [n] of a leader: its step's last node by place */
    uint32_t *product; /* [n] of a leader: its convolution or matrix product; OT_NONE */
    /* [n_groups] groups with the parts that their nodes play, as they were found. Rules that join
     * nodes one by one list attentions, each in a step, and chains */
    ot_group *groups;
    size_t n_groups, cap_groups;
    /* [n_bytes] groups on 8-bit tensors, in the order in which `groups` has them; where rules join
     * nodes one by one, they lie across steps */
    ot_bytes_group *bytes;
    size_t n_bytes, cap_bytes;
} ot_steps;

/* The steps of l's nodes by rules r, in arena a; what is part of a group becomes taken. Fails:
 * OT_E_NOMEM. */
ot_status ot_steps_find(ot_node_list *l, const ot_group_rules *r, ot_arena *a,
                        ot_steps *out) OT_MUST_USE;

/* The place where the step of the node at `place` runs. */
static inline uint32_t ot_step_at(const ot_steps *s, uint32_t place)
{
    return s->last[s->leader[place]];
}
/* Somebody beside the step of `leader` wants v. */
bool ot_step_stores(const ot_node_list *l, const ot_steps *s, ot_id v, uint32_t leader);
/* Convolution or matrix product. */
bool ot_step_is_product(const ot_node *n);

/* ---- for rules that find steps in a way of their own ---- */

/* The group's nodes run as one. Fails: OT_E_NOMEM. */
ot_status ot_steps_add(ot_steps *s, ot_node_list *l, ot_arena *a,
                       const ot_group *group) OT_MUST_USE;
/* The nodes of step b become part of step a. */
void ot_steps_unite(ot_steps *s, uint32_t a, uint32_t b);

/* openvino_rules.c */
ot_status ot_openvino_join(const ot_group_rules *r, ot_node_list *l, ot_arena *a,
                           ot_steps *s) OT_MUST_USE;
/* device_rules.c: heads, each with what follows it element by element, then chains. Asked whether
 * element-wise nodes may follow a node in its kernel: OT_ROLE_PRODUCT. */
ot_status ot_device_find(const ot_group_rules *r, ot_node_list *l, ot_arena *a,
                         ot_steps *s) OT_MUST_USE;

#endif
