/* How attention that runs as one step takes its queries: the engine's kernel and the planner ask
 * the same rule. */
#ifndef OT_FUSION_ATTENTION_RULE_H
#define OT_FUSION_ATTENTION_RULE_H

#include "base/base.h"

#define OT_ATTENTION_PANEL 16 /* queries that are computed together */
/* bytes of queries and results that a call keeps: they stay in the second cache level */
#define OT_ATTENTION_KEPT 131072

/* Panels that one call should have at most: keys and values are packed once a call. size,
 * v_size: of a query and of a result. */
static inline int64_t ot_attention_panels(int64_t size, int64_t v_size)
{
    return ot_max(1, OT_ATTENTION_KEPT / (int64_t)sizeof(float) / OT_ATTENTION_PANEL /
                         (size + v_size));
}

#endif
