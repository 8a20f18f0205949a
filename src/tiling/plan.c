/* Plans as data. */
#include "plan.h"

#include <stdlib.h>

void ot_plan_free(ot_plan *p)
{
    if (!p) return;
    for (uint32_t k = 0; k < p->n_lenders; k++) ot_plan_free(p->lenders[k]);
    ot_region_store_release(p->store);
    ot_arena_free(p->arena);
}
